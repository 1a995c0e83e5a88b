//! Real NDN programs against the real router: what the tests here share.
//!
//! [`Router`] runs the binary as users do; [`Peer`] runs python-ndn, NDNts, jndn
//! or the project's own tools as consumer and producer. Every program is an
//! ordinary process and reports what it did in one line of JSON. `cargo xtask
//! interop` installs the programs and passes their folders in [`INSTALLED`] and
//! [`BINARIES`]; run the tests through it.
#![forbid(unsafe_code)]

pub mod chain;
pub mod namespace;
mod peer;
mod router;

pub use peer::{Fetched, Peer, Registration, Serving, home, node};
pub use router::{Router, in_namespace};

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Environment variable: the folder in which the peers are installed.
pub const INSTALLED: &str = "TACHONYM_INTEROP";
/// Environment variable: the folder with the binaries `tachonym` and
/// `tachonym-lab`.
pub const BINARIES: &str = "TACHONYM_BINARIES";

fn folder(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable);
    folder
        .unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask interop`"))
        .into()
}

/// One of the project's binaries.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    folder(BINARIES).join(name)
}

/// Something that the test command has installed.
#[must_use]
pub fn installed(path: &str) -> PathBuf {
    folder(INSTALLED).join(path)
}

/// Configuration: neighbours may register. Over UDP and WebSocket programs of this
/// machine are neighbours too. NDNts registers as one over both, jndn and the
/// project's own tools too where they have them; python-ndn does not.
pub const NEIGHBOURS: &str = "[management.localhop]\nenabled = true\nany = true\n";

/// Configuration that continues `[faces]`: over every transport programs of this
/// machine are local and may command, and neighbours may register. For libraries
/// that command by `/localhost` whatever the transport, as python-ndn does.
pub const EVERYTHING_LOCAL: &str = "udp.local = \"loopback\"\nwebsocket.local = \"loopback\"\n\
    [management]\ntransports = [\"unix\", \"tcp\", \"udp\", \"websocket\"]\n\
    [management.localhop]\nenabled = true\nany = true\n";

/// Longest that a program may take to its end, the largest transfers included.
const TIME_TO_END: Duration = Duration::from_secs(8 * 60);
/// Longest that a program may take to its next line.
const TIME_TO_SPEAK: Duration = Duration::from_secs(60);
/// How often the end of a program is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// `command`, but the program is killed when the thread that starts it ends, so
/// that nothing survives a test however that ends.
fn bound_to_this_thread(command: &Command) -> Command {
    let mut bound = Command::new("setpriv");
    bound.args(["--pdeathsig", "KILL"]);
    bound.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => bound.env(key, value),
            None => bound.env_remove(key),
        };
    }
    bound
}

/// Runs a program to its end and returns what it printed.
///
/// # Panics
/// If it fails, or still runs after eight minutes: the message holds both its
/// output streams.
pub fn output_of(command: &mut Command) -> String {
    let mut child = bound_to_this_thread(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = text_of(child.stdout.take().expect("it is piped"));
    let stderr = text_of(child.stderr.take().expect("it is piped"));
    let status = wait(&mut child, TIME_TO_END);
    let stdout = stdout.join().expect("a reader does not fail");
    let stderr = stderr.join().expect("a reader does not fail");
    match status {
        Some(status) if status.success() => stdout,
        Some(status) => panic!("{command:?}: {status}\n{stdout}{stderr}"),
        None => panic!("{command:?}: still ran after {TIME_TO_END:?}\n{stdout}{stderr}"),
    }
}

/// Reads `stream` to its end, on a thread of its own.
fn text_of(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Whatever was read before an error is shown.
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// How `child` ended; `None` if it did not within `limit` and was killed.
fn wait(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return Some(status);
        }
        if begun.elapsed() > limit {
            // Whether it is gone already does not matter here.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// The last line that a program prints, as JSON.
///
/// # Panics
/// If it fails, or prints something else.
pub fn json_of(command: &mut Command) -> Value {
    let text = output_of(command);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{command:?}: {error}: {text}"))
}

/// A program that runs until it is dropped, or the thread that started it ends.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    shown: String,
}

impl Running {
    /// Starts it; its standard input stays open.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let shown = format!("{command:?}");
        let mut child = bound_to_this_thread(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        // Ends with the program. Lines that no test reads are still taken from the
        // pipe, or the program would block on it.
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The receiver may be gone.
                let _ = sender.send(line);
            }
        });
        Self {
            child,
            lines,
            shown,
        }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints.
    ///
    /// # Panics
    /// If it has ended, or prints nothing for a minute.
    pub fn line(&mut self) -> String {
        let line = self.lines.recv_timeout(TIME_TO_SPEAK);
        line.unwrap_or_else(|error| panic!("{}: no line: {error}", self.shown))
    }

    /// Gives it an empty line of input.
    ///
    /// # Panics
    /// If it has ended.
    pub fn press_enter(&mut self) {
        let input = self.child.stdin.as_mut().expect("it is piped");
        let written = input.write_all(b"\n");
        written.unwrap_or_else(|error| panic!("{}: no input: {error}", self.shown));
    }

    /// Asks it to end, by SIGTERM.
    ///
    /// # Panics
    /// If it may not be asked.
    pub fn terminate(&self) {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM).expect("a child that was not waited for takes signals");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whether it is gone already does not matter here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// SHA-256 of `bytes` in hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Writes `n_bytes` that no compression and no repetition could fake, different
/// for each `seed`, and returns their SHA-256.
///
/// # Panics
/// If the file cannot be written.
#[must_use]
pub fn write_noise(path: &Path, n_bytes: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(n_bytes + 8);
    while bytes.len() < n_bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(n_bytes);
    std::fs::write(path, &bytes).expect("a file");
    sha256_hex(&bytes)
}
