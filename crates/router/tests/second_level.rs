//! The second level of the content store in a router that runs: on real files, through its end
//! and its sudden end. What it refuses is in `second_level_refused.rs`.

mod bed;

use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bed::tachonym;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Long enough for a loaded machine; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A router as a process of its own.
struct Process {
    folder: tempfile::TempDir,
    child: Option<Child>,
    config: PathBuf,
}

impl Process {
    /// With a content store that has room for few packets, and a second level.
    fn new(extra: &str) -> Self {
        let workers = std::env::var("TACHONYM_TEST_CONFIG").unwrap_or_default();
        Self::with_workers(&workers, extra)
    }

    /// The same, whatever workers are tested otherwise.
    fn with_workers(workers: &str, extra: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        fs::create_dir(path.join("ssd")).expect("the folder is ours");
        let text = format!(
            "log.level = \"info\"\nfaces.unix.path = \"{0}/s\"\n\
             faces.udp.listen = []\nfaces.tcp.listen = []\nfaces.websocket.listen = []\n\
             tables.cs_packets = 16\n{workers}{extra}\n\
             [[second_level.volume]]\npath = \"{0}/ssd\"\nbytes = 134217728\n",
            path.display()
        );
        let config = path.join("router.toml");
        fs::write(&config, text).expect("the folder is ours");
        let mut it = Self {
            folder,
            child: None,
            config,
        };
        it.start();
        it
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn start(&mut self) {
        let log = File::create(self.log()).expect("the folder is ours");
        let mut run = tachonym(&["run", "--config"]);
        run.arg(&self.config).stdin(Stdio::null()).stderr(log);
        self.child = Some(run.spawn().expect("it runs"));
        self.wait(|it| it.run(&["status"]).status.success());
        self.wait(|it| it.stats()["recovering"] == false);
    }

    /// Waits until something is so.
    fn wait(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
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

    fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    fn end(&mut self, signal: Signal) {
        let mut child = self.child.take().expect("it runs");
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let status = child.wait().expect("it is ours");
        assert_eq!(status.success(), signal == Signal::TERM, "{}", self.said());
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tachonym(arguments);
        let socket = self.folder.path().join("s");
        command
            .env(
                "NDN_CLIENT_TRANSPORT",
                format!("unix://{}", socket.display()),
            )
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    fn stats(&self) -> Value {
        let output = self.run(&["cs", "stats", "--json"]);
        let stats: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        stats["second_level"].clone()
    }

    /// Publishes bytes under a name, fetches them once, and stops publishing.
    fn publish(&self, name: &str, bytes: &[u8]) {
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
    fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.get_with(name, &[])
    }

    /// The same, of what is not to be there.
    fn get_at_once(&self, name: &str) -> Option<Vec<u8>> {
        self.get_with(name, &["--retries", "0"])
    }

    fn get_with(&self, name: &str, options: &[&str]) -> Option<Vec<u8>> {
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
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Most chunks that come with one read in these tests.
const LONGEST_BATCH: u64 = 16;

fn served_through_ends(extra: &str) {
    let mut router = Process::new(extra);
    let objects: Vec<_> = (0..3)
        .map(|n| {
            (
                format!("/object/{n}"),
                noise(n, 400_000 + 1_000 * n as usize),
            )
        })
        .collect();
    for (name, bytes) in &objects {
        router.publish(name, bytes);
    }
    // Nobody has them but the second level.
    for (name, bytes) in &objects {
        assert_eq!(router.get(name).as_ref(), Some(bytes), "{name}");
    }
    // What was not asked for before it was there has come with a batch.
    let stats = router.stats();
    let figure = |key: &str| stats[key].as_u64().expect("a number");
    let most = figure("hits") + LONGEST_BATCH * figure("reads");
    assert!(most > 100, "{stats}");
    assert!(n_of_offered(&stats) > 100, "{stats}");
    router.end(Signal::TERM);
    router.start();
    assert!(router.stats()["recovered"].as_u64() > Some(10));
    for (name, bytes) in &objects {
        assert_eq!(
            router.get(name).as_ref(),
            Some(bytes),
            "{name} after its end"
        );
    }
    router.end(Signal::KILL);
    router.start();
    for (name, bytes) in &objects {
        assert_eq!(
            router.get(name).as_ref(),
            Some(bytes),
            "{name} after its sudden end"
        );
    }
    let erased = router.run(&["cs", "erase", "/object/1"]);
    assert!(erased.status.success(), "{erased:?}");
    assert_eq!(router.get_at_once("/object/1"), None);
    assert_eq!(router.get("/object/2").as_ref(), Some(&objects[2].1));
    router.end(Signal::TERM);
    router.start();
    assert_eq!(
        router.get_at_once("/object/1"),
        None,
        "what is erased stays so"
    );
    assert_eq!(router.get("/object/2").as_ref(), Some(&objects[2].1));
    router.end(Signal::TERM);
}

#[test]
fn what_was_cached_is_served_after_the_routers_end_and_its_sudden_end() {
    served_through_ends("");
}

#[test]
fn the_same_holds_where_threads_read_and_write() {
    served_through_ends("second_level.io = \"threads\"\nsecond_level.batch = 16\n");
}

/// Each Data is at home by its whole name at one of two workers, and so is the prefix that it is
/// asked by, mostly at the other: all are found though they are on SSD only.
fn found_by_prefix_at_any_worker(feed: &str) {
    const N: u64 = 24;
    let workers = format!("workers.threads = 2\nworkers.dispatch = \"name\"\n{feed}");
    let mut router = Process::with_workers(&workers, "");
    for n in 0..N {
        router.publish(&format!("/object/{n}"), &noise(n, 100));
    }
    router.end(Signal::TERM);
    router.start();
    for n in 0..N {
        let found = router.run(&["peek", "--prefix", &format!("/object/{n}")]);
        assert_eq!(found.stdout, noise(n, 100), "/object/{n}: {found:?}");
    }
    let stats = router.stats();
    assert_eq!(stats["hits"], N, "{stats}");
    // What none of them has goes on, and nobody serves it.
    let absent = router.run(&["peek", "--prefix", "/absent"]);
    assert!(!absent.status.success(), "{absent:?}");
    router.end(Signal::TERM);
}

#[test]
fn a_short_prefix_finds_what_is_on_the_second_levels_of_all_workers() {
    found_by_prefix_at_any_worker("");
}

#[test]
fn the_same_holds_where_io_threads_feed_the_workers() {
    found_by_prefix_at_any_worker("workers.feed = \"io-threads\"\nworkers.io_threads = 1\n");
}

/// Data that were offered: what became of each is in one row.
fn n_of_offered(stats: &Value) -> u64 {
    let figure = |key: &str| stats[key].as_u64().expect("a number");
    let rows = [
        "written",
        "known",
        "not_admitted",
        "unsuited",
        "no_room",
        "replaced",
        "erased_unwritten",
        "lost",
        "waiting",
    ];
    let sum: u64 = rows.into_iter().map(figure).sum();
    assert_eq!(sum, figure("offered"), "{stats}");
    sum
}

#[test]
fn what_is_not_asked_for_twice_is_not_written() {
    let router = Process::new("second_level.admission = \"filter\"\n");
    router.publish("/once", &noise(1, 100_000));
    let stats = router.stats();
    assert!(stats["not_admitted"].as_u64() >= Some(12), "{stats}");
    assert_eq!(stats["lost"], 0);
    n_of_offered(&stats);
    let text = router.run(&["cs", "stats"]).stdout;
    let text = String::from_utf8(text).expect("text");
    for label in ["known", "no room", "lost", "waiting", "batches crowded out"] {
        let row = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(label));
        assert_eq!(row.map(str::trim), Some("0"), "{label}: {text}");
    }
}

/// Nothing of what idle threads are asked to write is taken for late.
#[test]
fn an_erasure_costs_idle_workers_no_volume() {
    let workers = match std::env::var_os("TACHONYM_TEST_CONFIG") {
        Some(_) => "",
        None => "workers.threads = 2\n",
    };
    let router = Process::new(&format!("second_level.stall_ms = 1500\n{workers}"));
    router.publish("/object", &noise(5, 100_000));
    let erased = router.run(&["cs", "erase", "/object"]);
    assert!(erased.status.success(), "{erased:?}");
    // For so long nobody wakes them but their timers.
    thread::sleep(Duration::from_millis(2_500));
    assert_eq!(
        router.stats()["volumes_out_of_service"],
        0,
        "{}",
        router.said()
    );
    assert_eq!(router.get_at_once("/object"), None);
}
