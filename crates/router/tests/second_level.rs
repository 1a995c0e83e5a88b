//! The second level of the content store in a router that runs: on real files, through its end
//! and its sudden end, and what it refuses.

mod bed;

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bed::tachonym;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tachonym_router::Router;
use tachonym_router::config::Config;

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

    /// What can be fetched under a name.
    fn get(&self, name: &str) -> Option<Vec<u8>> {
        let name = format!("{name}/v=7");
        let arguments = ["get", "--discover", "exact", "-r", "0", "-l", "4000", &name];
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
    assert!(router.stats()["hits"].as_u64() > Some(100));
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
    assert_eq!(router.get("/object/1"), None);
    assert_eq!(router.get("/object/2").as_ref(), Some(&objects[2].1));
    router.end(Signal::TERM);
    router.start();
    assert_eq!(router.get("/object/1"), None, "what is erased stays so");
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

#[test]
fn what_is_not_asked_for_twice_is_not_written() {
    let router = Process::new("second_level.admission = \"filter\"\n");
    router.publish("/once", &noise(1, 100_000));
    let stats = router.stats();
    assert!(stats["not_admitted"].as_u64() >= Some(12), "{stats}");
    assert_eq!(stats["lost"], 0);
}

/// What a router says that does not start.
fn refusal(text: &str) -> String {
    let config = format!(
        "faces.unix.enabled = false\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
         faces.tcp.listen = []\nfaces.websocket.listen = []\n{text}"
    );
    let parsed = Config::parse(&config).expect("it makes sense");
    match Router::start(&parsed) {
        Ok(_) => panic!("it starts with {text}"),
        Err(error) => format!("{error:#}"),
    }
}

fn volume(path: &Path, bytes: u64) -> String {
    format!(
        "[[second_level.volume]]\npath = \"{}\"\nbytes = {bytes}\n",
        path.display()
    )
}

/// Starts a router with this configuration, and ends it.
fn start(text: &str) -> Router {
    let config = format!(
        "faces.unix.enabled = false\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
         faces.tcp.listen = []\nfaces.websocket.listen = []\n{text}"
    );
    Router::start(&Config::parse(&config).expect("it makes sense")).expect("it starts")
}

const BYTES: u64 = 64 << 20;

fn store_in(folder: &Path) -> PathBuf {
    folder.join("worker-0-of-1.store")
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let said = refusal(&volume(&path.join("absent"), BYTES));
    assert!(
        said.contains("is not there") && said.contains("mkdir"),
        "{said}"
    );
    let file = path.join("file");
    fs::write(&file, b"mine").expect("the folder is ours");
    let said = refusal(&volume(&file, BYTES));
    assert!(said.contains("not a directory"), "{said}");
    let said = refusal(&volume(path, 1 << 43));
    assert!(said.contains("to spare"), "{said}");
    assert!(!store_in(path).exists());
    fs::write(store_in(path), b"a diary\n".repeat(2_000)).expect("the folder is ours");
    let said = refusal(&volume(path, BYTES));
    assert!(said.contains("no content store"), "{said}");
    let kept = fs::read(store_in(path)).expect("it is there");
    assert_eq!(kept, b"a diary\n".repeat(2_000));
}

#[test]
fn a_store_of_another_version_key_size_or_batch_is_refused_and_kept() {
    let (first, second) = (tempfile::tempdir(), tempfile::tempdir());
    let (first, second) = (first.expect("a folder"), second.expect("a folder"));
    let (a, b) = (volume(first.path(), BYTES), volume(second.path(), BYTES));
    start(&a).stop().expect("it ends");
    start(&b).stop().expect("it ends");
    let said = refusal(&format!("{a}{b}"));
    assert!(
        said.contains("is volume 0 of 1") || said.contains("another key"),
        "{said}"
    );
    let said = refusal(&format!("second_level.batch = 8\n{a}"));
    assert!(said.contains("has batches of 10"), "{said}");
    let said = refusal(&volume(first.path(), BYTES / 2));
    assert!(
        said.contains("67108864 bytes") && said.contains("33554432"),
        "{said}"
    );
    let mut file = File::options()
        .write(true)
        .open(store_in(first.path()))
        .expect("it is there");
    for at in [16, 4096 + 16] {
        file.seek(SeekFrom::Start(at)).expect("a file");
        file.write_all(&[99]).expect("the file is ours");
    }
    let said = refusal(&a);
    assert!(said.contains("version 99"), "{said}");
    start(&b).stop().expect("it ends");
}

#[test]
fn two_routers_do_not_share_a_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = volume(folder.path(), BYTES);
    let router = start(&text);
    let said = refusal(&text);
    assert!(said.contains("is used by"), "{said}");
    router.stop().expect("it ends");
    start(&text).stop().expect("it ends");
}

#[test]
fn a_store_of_another_size_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    start(&volume(folder.path(), BYTES))
        .stop()
        .expect("it ends");
    let said = refusal(&volume(folder.path(), 2 * BYTES));
    assert!(
        said.contains("67108864 bytes") && said.contains("134217728"),
        "{said}"
    );
    start(&volume(folder.path(), BYTES))
        .stop()
        .expect("it ends");
    fs::remove_file(store_in(folder.path())).expect("it is there");
    start(&volume(folder.path(), 2 * BYTES))
        .stop()
        .expect("it ends");
}

/// One by one, the places of superblocks of two volumes are as a power loss may leave them when
/// a store is made anew: the router makes it to its end.
#[test]
fn a_store_that_was_half_made_is_made_anew() {
    let folders = [tempfile::tempdir(), tempfile::tempdir()].map(|it| it.expect("a folder"));
    let text: String = folders.iter().map(|it| volume(it.path(), BYTES)).collect();
    let heads = || -> Vec<Vec<u8>> {
        let read = |folder: &tempfile::TempDir| {
            let mut head = vec![0; 8192];
            let mut file = File::open(store_in(folder.path())).expect("it is there");
            file.read_exact(&mut head).expect("it is long");
            head
        };
        folders.iter().map(read).collect()
    };
    start(&text).stop().expect("it ends");
    let old = heads();
    for folder in &folders {
        fs::remove_file(store_in(folder.path())).expect("the folder is ours");
    }
    start(&text).stop().expect("it ends");
    let new = heads();
    // The order of writing: first copies, then second ones.
    let places = [(0, 0), (1, 0), (0, 4096), (1, 4096)];
    for former in [&vec![vec![0; 8192]; 2], &old] {
        for n_written in 0..places.len() {
            for (number, folder) in folders.iter().enumerate() {
                let mut head = former[number].clone();
                for &(_, at) in places[..n_written].iter().filter(|it| it.0 == number) {
                    head[at..at + 4096].copy_from_slice(&new[number][at..at + 4096]);
                }
                let mut file = File::options()
                    .write(true)
                    .open(store_in(folder.path()))
                    .expect("it is there");
                file.write_all(&head).expect("the file is ours");
            }
            start(&text).stop().expect("it ends");
            let [first, second] = [0, 1].map(|number| heads()[number][24..40].to_vec());
            assert_eq!(first, second, "{n_written}");
        }
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
    assert_eq!(router.stats()["volumes_out_of_service"], 0, "{}", router.said());
    assert_eq!(router.get("/object"), None);
}
