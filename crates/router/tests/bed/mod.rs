//! What the tools' tests share: a router to run them against.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file includes this and uses its part"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tachonym_client::wall_ms;
use tachonym_packet::Component;
use tachonym_router::Router;
use tachonym_router::config::Config;
use tachonym_security::{Certificate, SigningKey, Validity};

/// A running router.
pub struct Bed {
    pub folder: tempfile::TempDir,
    pub router: Router,
    pub transport: String,
}

impl Bed {
    pub fn new() -> Self {
        Self::with(|_| String::new())
    }

    /// A router whose configuration ends with what `extra` says; it may write
    /// files into the folder.
    pub fn with(extra: impl FnOnce(&Path) -> String) -> Self {
        // `cargo xtask test` runs the same tests with several workers.
        let workers = std::env::var("TACHONYM_TEST_CONFIG").unwrap_or_default();
        Self::configured(&workers, extra)
    }

    /// A router whose workers are as `workers` says, whatever is tested otherwise.
    pub fn of_workers(workers: &str) -> Self {
        Self::configured(workers, |_| String::new())
    }

    /// The same, and its configuration ends with what `extra` says.
    pub fn with_workers(workers: &str, extra: impl FnOnce(&Path) -> String) -> Self {
        Self::configured(workers, extra)
    }

    fn configured(workers: &str, extra: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        let mut text = format!(
            "faces.unix.path = \"{}\"\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
             faces.tcp.listen = [\"127.0.0.1:0\"]\nfaces.websocket.listen = [\"127.0.0.1:0\"]\n",
            socket.display()
        );
        text.push_str(workers);
        let extra = extra(folder.path());
        if !extra.contains("power.sysfs") {
            // That of this machine is not for tests.
            let none = folder.path().join("no-sysfs");
            text.push_str(&format!("power.sysfs = \"{}\"\n", none.display()));
        }
        text.push_str(&extra);
        let router = Router::start(&Config::parse(&text).expect("good")).expect("it starts");
        Self {
            transport: format!("unix://{}", socket.display()),
            folder,
            router,
        }
    }

    /// The address that the router listens on with this scheme.
    pub fn listening(&self, scheme: &str) -> String {
        let uris = self.router.listening().iter().map(ToString::to_string);
        let mut of_scheme = uris.filter(|uri| uri.starts_with(scheme));
        of_scheme.next().expect("it listens")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tachonym(arguments);
        command
            .env("NDN_CLIENT_TRANSPORT", &self.transport)
            .env("HOME", self.folder.path())
            .env_remove("XDG_DATA_HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    /// What a tool prints that must succeed.
    pub fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        serde_json::from_str(&self.text(&arguments)).expect("JSON")
    }

    /// The exit code and error of a tool that must fail.
    pub fn failure(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let code = output.status.code().expect("it ends by itself");
        assert_ne!(code, 0, "{arguments:?}: {output:?}");
        (code, String::from_utf8(output.stderr).expect("text"))
    }

    /// Starts a tool that serves, and waits until it says so.
    pub fn serve(&self, arguments: &[&str], input: &[u8]) -> Server {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input).expect("it reads");
        drop(stdin);
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(ready["ready"], true);
        Server {
            child,
            stdout,
            ready,
        }
    }
}

/// The program with these arguments. It takes signals as one that a terminal
/// starts: what a shell starts in the background inherits that SIGINT is ignored.
pub fn tachonym(arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_tachonym")]);
    command.args(arguments);
    command
}

/// What looks like sysfs of a server, in the folder `sys`: a policy of frequencies for each
/// core, and an energy counter.
pub fn sysfs(folder: &Path) {
    let write = |file: String, text: &str| {
        let path = folder.join("sys").join(file);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    for core in 0..128 {
        let policy = format!("devices/system/cpu/cpufreq/policy{core}");
        write(format!("{policy}/affected_cpus"), &core.to_string());
        write(format!("{policy}/cpuinfo_min_freq"), "1000000");
        write(format!("{policy}/scaling_max_freq"), "3000000");
        write(format!("{policy}/scaling_driver"), "intel_cpufreq");
        write(format!("{policy}/scaling_governor"), "schedutil");
    }
    let package = "class/powercap/intel-rapl:0";
    write(format!("{package}/name"), "package-0");
    write(format!("{package}/energy_uj"), "1000000");
    write(format!("{package}/max_energy_range_uj"), "9000000");
}

/// Makes a key for `identity` in the key store `store`, and returns its
/// certificate.
pub fn generate(store: &Path, identity: &str) -> String {
    let keys = |verb: &str| {
        let mut command = tachonym(&["keys", verb, identity, "--key-store"]);
        let output = command.arg(store).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    keys("generate");
    keys("certificate")
}

/// A new certificate of `identity` in base64, whose key nobody has.
pub fn certificate(identity: &str) -> String {
    certificate_from(identity, wall_ms() - 1000)
}

/// The same, that holds for ten days from `unix_ms` on.
pub fn certificate_from(identity: &str, unix_ms: u64) -> String {
    let key = SigningKey::generate_ecdsa().expect("randomness");
    let identity = identity.parse().expect("a name");
    let key_name = tachonym_security::key_name(&identity, &Component::generic("1"));
    let validity = Validity::days_from(unix_ms, 10);
    let certificate = Certificate::self_signed(&key_name, &key, 1, validity).expect("a key");
    certificate.to_base64()
}

/// A tool that serves.
pub struct Server {
    pub child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    pub ready: Value,
}

impl Server {
    /// Asks it to end, and returns the last thing that it says.
    pub fn stop(mut self) -> Value {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        self.last_words()
    }

    pub fn last_words(&mut self) -> Value {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("text");
        assert!(self.child.wait().expect("it ends").success());
        rest.lines().last().map_or(Value::Null, |line| {
            serde_json::from_str(line).expect("JSON")
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only after a failed assertion is it still there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes that no compression and no repetition could fake.
pub fn noise(n_bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..n_bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}
