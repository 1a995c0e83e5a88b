//! A router as a process of its own, with a second level of its content store.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file includes this and uses its part"
)]

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tachonym_client::Endpoint;

use crate::bed::tachonym;

/// Bytes of the volume that each of these routers has.
pub const VOLUME_BYTES: u64 = 128 << 20;

/// Long enough for a loaded machine; reached only by a test that fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A router as a process of its own.
pub struct Process {
    folder: tempfile::TempDir,
    child: Option<Child>,
    config: PathBuf,
}

impl Process {
    /// With a content store that has room for few packets, and a second level.
    pub fn new(extra: &str) -> Self {
        let workers = std::env::var("TACHONYM_TEST_CONFIG").unwrap_or_default();
        Self::with_workers(&workers, extra)
    }

    /// The same, whatever workers are tested otherwise.
    pub fn with_workers(workers: &str, extra: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ssd = folder.path().join("ssd");
        fs::create_dir(&ssd).expect("the folder is ours");
        let mut it = Self::at_rest(folder, &ssd, &format!("{workers}{extra}"));
        it.start();
        it
    }

    /// With a second level on a block device.
    pub fn on_block_device(device: &Path, workers: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut it = Self::at_rest(folder, device, workers);
        it.start();
        it
    }

    /// One that does not run yet.
    pub fn at_rest(folder: tempfile::TempDir, volume: &Path, extra: &str) -> Self {
        let config = folder.path().join("router.toml");
        let it = Self {
            folder,
            child: None,
            config,
        };
        it.configure(volume, extra);
        it
    }

    /// Changes the configuration, for the next start.
    pub fn configure(&self, volume: &Path, extra: &str) {
        let path = self.folder.path().display();
        let volume = volume.display();
        let text = format!(
            "log.level = \"info\"\nfaces.unix.path = \"{path}/s\"\n\
             faces.udp.listen = []\nfaces.tcp.listen = []\nfaces.websocket.listen = []\n\
             tables.cs_packets = 16\n{extra}\n\
             [[second_level.volume]]\npath = \"{volume}\"\nbytes = {VOLUME_BYTES}\n"
        );
        fs::write(&self.config, text).expect("the folder is ours");
    }

    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub fn start(&mut self) {
        let log = File::create(self.log()).expect("the folder is ours");
        let mut run = tachonym(&["run", "--config"]);
        run.arg(&self.config).stdin(Stdio::null()).stderr(log);
        self.child = Some(run.spawn().expect("it runs"));
        self.wait(|it| it.run(&["status"]).status.success());
        self.wait(|it| it.stats()["recovering"] == false);
    }

    /// Waits until something is so.
    pub fn wait(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            if let Some(child) = &mut self.child {
                let ended = child.try_wait().expect("it is ours");
                assert!(ended.is_none(), "{ended:?}: {}", self.said());
            }
            assert!(Instant::now() < deadline, "{}", self.said());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it says that does not start.
    pub fn refusal(&self) -> String {
        let mut run = tachonym(&["run", "--config"]);
        let ended = run.arg(&self.config).stdin(Stdio::null()).output();
        let ended = ended.expect("it runs");
        assert!(!ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stderr).expect("text")
    }

    pub fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    pub fn end(&mut self, signal: Signal) {
        let mut child = self.child.take().expect("it runs");
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let status = child.wait().expect("it is ours");
        assert_eq!(status.success(), signal == Signal::TERM, "{}", self.said());
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tachonym(arguments);
        command
            .env("NDN_CLIENT_TRANSPORT", self.transport())
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn transport(&self) -> String {
        format!("unix://{}", self.folder.path().join("s").display())
    }

    pub fn endpoint(&self) -> Endpoint {
        let uri = self.transport().parse().expect("its own");
        Endpoint::connect(&uri).expect("it listens")
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    /// A figure of [`Self::stats`].
    pub fn count(&self, key: &str) -> u64 {
        let stats = self.stats();
        let figure = stats[key].as_u64();
        figure.unwrap_or_else(|| panic!("no {key} in {stats}: {}", self.said()))
    }

    pub fn stats(&self) -> Value {
        let output = self.run(&["cs", "stats", "--json"]);
        let stats: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        stats["second_level"].clone()
    }

    /// Publishes bytes under a name, fetches them once, and stops publishing.
    pub fn publish(&self, name: &str, bytes: &[u8]) {
        let file = self.folder.path().join("published");
        fs::write(&file, bytes).expect("the folder is ours");
        let file = file.to_str().expect("text");
        let mut put = self.command(&["put", name, file, "--version", "7", "--json"]);
        let mut put = put.spawn().expect("it runs");
        let mut said = [0; 1];
        let mut stdout = put.stdout.take().expect("a pipe");
        stdout.read_exact(&mut said).expect("it is ready");
        assert_eq!(self.get(name).as_deref(), Some(bytes));
        put.kill().expect("it runs");
        put.wait().expect("it is ours");
    }

    /// What can be fetched under a name. What is there but late is asked for again.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.get_with(name, &[])
    }

    /// The same, of what is not to be there.
    pub fn get_at_once(&self, name: &str) -> Option<Vec<u8>> {
        self.get_with(name, &["--retries", "0"])
    }

    pub fn get_with(&self, name: &str, options: &[&str]) -> Option<Vec<u8>> {
        let name = format!("{name}/v=7");
        let mut arguments = vec!["get", "--discover", "exact", "-l", "4000", &name];
        arguments.extend(options);
        let output = self.run(&arguments);
        output.status.success().then_some(output.stdout)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Only after a failed assertion is it still there.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Bytes that repeat nothing.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}
