//! Several workers in a running router: what an operator changes while packets travel.

mod bed;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bed::{Bed, sysfs};
use tachonym_packet::lp::LpView;
use tachonym_packet::{
    Component, Data, DataView, Interest, InterestView, Name, SignatureInfo, tlv,
};
use tachonym_protocol::{CommandName, ControlParameters, ControlResponse};

/// Long enough for a loaded machine; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interests that a consumer has under way.
const WINDOW: u64 = 32;

const FEEDS: [&str; 3] = [
    "workers.feed = \"run-to-completion\"\n",
    "workers.feed = \"io-threads\"\nworkers.io_threads = 2\n",
    "workers.map = \"linear\"\nworkers.migrate = \"published\"\n",
];

/// A router with so many workers, and one more that may be added.
fn bed(feed: &str, n_workers: usize) -> Bed {
    let extra = format!(
        "workers.threads = {n_workers}\nworkers.max_threads = {}\nworkers.dispatch = \"name\"\n\
         power.governor = \"none\"\n{feed}",
        n_workers + 1
    );
    Bed::of_workers(&extra)
}

/// A program that speaks NDN over the Unix socket.
struct Program {
    stream: UnixStream,
    pending: Vec<u8>,
}

impl Program {
    fn new(folder: &Path) -> Self {
        let stream = UnixStream::connect(folder.join("s")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Self {
            stream,
            pending: Vec::new(),
        }
    }

    /// The next packet; `None` when nobody writes any more.
    fn receive(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Ok(Some(len)) = tlv::element_len(&self.pending)
                && len <= self.pending.len()
            {
                let wire: Vec<u8> = self.pending.drain(..len).collect();
                let frame = LpView::parse(&wire).expect("a frame");
                return Some(frame.fragment().expect("a packet").to_vec());
            }
            let mut room = [0; 16_384];
            let n_read = self.stream.read(&mut room).expect("something in time");
            if n_read == 0 {
                return None;
            }
            self.pending.extend_from_slice(&room[..n_read]);
        }
    }

    fn register(&mut self, prefix: &str) {
        static N_COMMANDS: AtomicU64 = AtomicU64::new(0);
        let parameters = ControlParameters {
            name: Some(name(prefix)),
            ..ControlParameters::default()
        };
        let command = CommandName::local("rib", "register").name();
        let command = command.with(&Component::generic(parameters.encode()));
        let nonce = N_COMMANDS.fetch_add(1, Ordering::Relaxed);
        let info = SignatureInfo {
            nonce: Some(nonce.to_be_bytes().to_vec()),
            ..SignatureInfo::digest()
        };
        let wire = Interest::new(command).encode_with_digest(&info);
        self.stream.write_all(&wire).expect("it reads");
        let wire = self.receive().expect("an answer");
        let data = DataView::parse(&wire).expect("a Data");
        let response = ControlResponse::decode(data.content()).expect("a response");
        assert_eq!(response.code, 200, "{}", response.text);
    }

    /// Answers every Interest until nobody asks any more.
    fn answer_all(&mut self) {
        while let Some(wire) = self.receive() {
            let interest = InterestView::parse(&wire).expect("asked");
            let data = Data::new(interest.name().to_name());
            if self.stream.write_all(&data.encode_with_digest()).is_err() {
                return;
            }
        }
    }

    /// Asks for names under `prefix`, each once, until told to stop and `n_least` were
    /// answered; how many were.
    fn ask(&mut self, prefix: &str, n_least: u64, stop: &AtomicBool) -> u64 {
        let (mut n_asked, mut n_answered) = (0, 0);
        while n_answered < n_least || !stop.load(Ordering::Relaxed) {
            while n_asked < n_answered + WINDOW {
                let component = Component::generic(format!("{n_asked}").into_bytes());
                let mut interest = Interest::new(name(prefix).with(&component));
                interest.lifetime_ms = Some(60_000);
                self.stream.write_all(&interest.encode()).expect("it reads");
                n_asked += 1;
            }
            self.receive().expect("an answer");
            n_answered += 1;
        }
        while n_answered < n_asked {
            self.receive().expect("an answer");
            n_answered += 1;
        }
        n_answered
    }
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

/// What was dropped for want of room or of a worker.
fn n_lost(bed: &Bed) -> u64 {
    let snapshot = bed.router.snapshot().expect("it runs");
    let reasons = [
        "worker-queue-full",
        "moving-queue-full",
        "worker-failed",
        "unknown-face",
    ];
    reasons
        .iter()
        .map(|reason| snapshot.n_dropped(reason))
        .sum()
}

#[test]
fn workers_are_added_and_removed_under_load_and_nothing_is_lost() {
    for feed in FEEDS {
        let bed = bed(feed, 1);
        let (folder, stop) = (bed.folder.path(), AtomicBool::new(false));
        let mut producer = Program::new(folder);
        producer.register("/load");
        let socket = producer.stream.try_clone().expect("a descriptor");
        let answering = thread::spawn(move || producer.answer_all());
        thread::scope(|scope| {
            let consumers = ["/load/a", "/load/b"].map(|prefix| {
                let (mut program, stop) = (Program::new(folder), &stop);
                scope.spawn(move || program.ask(prefix, 2_000, stop))
            });
            let shares = |shown: &serde_json::Value| -> Vec<u64> {
                let workers = shown["workers"].as_array().expect("a list").iter();
                workers
                    .map(|it| it["share_permille"].as_u64().expect("a number"))
                    .collect()
            };
            for _ in 0..3 {
                assert_eq!(shares(&bed.json(&["workers", "add"])), [500, 500], "{feed}");
                assert_eq!(shares(&bed.json(&["workers", "remove", "0"])), [0, 1000]);
                assert_eq!(shares(&bed.json(&["workers", "add"])), [500, 500]);
                assert_eq!(shares(&bed.json(&["workers", "remove", "1"])), [1000, 0]);
            }
            stop.store(true, Ordering::Relaxed);
            // All that was asked for was answered, none of it asked for twice.
            let n_answered = consumers.map(|consumer| consumer.join().expect("all answered"));
            assert!(n_answered.iter().all(|&n| n >= 2_000));
        });
        assert_eq!(n_lost(&bed), 0, "{feed}");
        socket.shutdown(std::net::Shutdown::Both).expect("a socket");
        answering.join().expect("it ends");
        let shown = bed.json(&["workers"]);
        let n_in = |worker: usize| shown["workers"][worker]["in_pkts"].as_u64();
        assert!(n_in(0) > Some(0) && n_in(1) > Some(0), "{shown}");
    }
}

#[test]
fn names_are_pinned_and_the_scheduler_frozen() {
    for feed in FEEDS {
        let bed = bed(feed, 2);
        let shown = bed.json(&["workers", "pin", "/pinned", "1"]);
        assert_eq!(shown["moved"][0]["name"], "/pinned", "{shown}");
        assert_eq!(shown["moved"][0]["worker"], 1);
        let n_in = || bed.json(&["workers"])["workers"][1]["in_pkts"].as_u64();
        let before = n_in().expect("a number");
        bed.failure(&["peek", "/pinned", "--lifetime-ms", "100"]);
        assert!(n_in() > Some(before));
        for (arguments, why) in [
            (&["workers", "pin", "/pinned", "2"], "does not run"),
            (
                &["workers", "pin", "/localhost/nfd", "1"],
                "stay at worker 0",
            ),
        ] {
            let (_, error) = bed.failure(arguments);
            assert!(error.contains(why), "{error}");
        }
        bed.text(&["workers", "unpin", "/pinned"]);
        let (_, error) = bed.failure(&["workers", "unpin", "/pinned"]);
        assert!(error.contains("is not pinned"), "{error}");
        assert_eq!(bed.json(&["workers", "freeze"])["frozen"], true);
        assert_eq!(bed.json(&["workers", "thaw"])["frozen"], false);
        // Linear hashing has a bucket for each worker.
        let n_buckets = if feed.contains("linear") { 2 } else { 1_024 };
        assert_eq!(bed.json(&["workers"])["buckets"], n_buckets, "{feed}");
        bed.text(&["workers", "add"]);
        let (_, error) = bed.failure(&["workers", "add"]);
        assert!(error.contains("workers.max_threads"), "{error}");
    }
}

#[test]
fn only_workers_without_sockets_watch_their_rings() {
    let monitors = |feed: &str| {
        let shown = bed(feed, 1).json(&["workers"]);
        let of = |list: &str| shown[list][0]["waiting"]["monitor"].clone();
        (of("workers"), of("receivers"))
    };
    let (worker, _) = monitors(FEEDS[0]);
    assert_eq!(worker, "none");
    let (worker, receiver) = monitors(FEEDS[1]);
    let detected = tachonym_face::Monitor::detect().kind();
    assert_eq!(
        (worker, receiver),
        (detected.as_str().into(), "none".into())
    );
}

#[test]
fn data_of_a_face_that_closes_is_delivered_wherever_it_is_waited_for() {
    const N_TRIALS: usize = 30;
    for feed in FEEDS {
        let bed = bed(feed, 3);
        let folder = bed.folder.path();
        let mut consumer = Program::new(folder);
        for trial in 0..N_TRIALS {
            let prefix = format!("/closing{trial}");
            let mut producer = Program::new(folder);
            producer.register(&prefix);
            let mut interest = Interest::new(name(&prefix));
            interest.can_be_prefix = true;
            let wire = interest.encode();
            consumer.stream.write_all(&wire).expect("it reads");
            producer.receive().expect("an Interest");
            // At home at another worker than the Interest, as like as not.
            let data = Data::new(name(&format!("{prefix}/a/b"))).encode_with_digest();
            producer.stream.write_all(&data).expect("it reads");
            drop(producer);
            let answer = consumer.receive().expect("an answer");
            assert_eq!(answer, data, "{feed}: trial {trial}");
        }
    }
}

#[test]
fn workers_that_come_and_go_share_one_content_store() {
    let bed = Bed::of_workers(
        "workers.threads = 2\nworkers.max_threads = 3\npower.governor = \"none\"\n\
         tables.cs_packets = 1000\n",
    );
    let capacity = || bed.json(&["cs", "info"])["capacity"].as_u64();
    for change in [
        &["add"][..],
        &["remove", "0"],
        &["remove", "1"],
        &["add"],
        &["remove", "2"],
    ] {
        bed.text(&[&["workers"], change].concat());
        assert_eq!(capacity(), Some(1000), "{change:?}");
    }
    bed.text(&["cs", "config", "--capacity", "7"]);
    assert_eq!(capacity(), Some(7));
}

/// Asks until what `tachonym workers` shows is `wanted`.
fn until(bed: &Bed, wanted: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let begun = std::time::Instant::now();
    loop {
        let shown = bed.json(&["workers"]);
        if wanted(&shown) {
            return shown;
        }
        assert!(begun.elapsed() < PATIENCE, "{shown}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_worker_that_is_not_needed_sleeps_and_wakes_under_load() {
    for feed in &FEEDS[..2] {
        let workers = format!("workers.threads = 2\nworkers.dispatch = \"name\"\n{feed}");
        let bed = Bed::with_workers(&workers, |folder| {
            sysfs(folder);
            format!(
                "power.sysfs = \"{}\"\npower.kept = \"{}\"\n",
                folder.join("sys").display(),
                folder.join("kept").display()
            )
        });
        let is_asleep = |shown: &serde_json::Value| shown["workers"][1]["state"] == "asleep";
        let folder = bed.folder.path();
        let mut producer = Program::new(folder);
        producer.register("/load");
        let socket = producer.stream.try_clone().expect("a descriptor");
        let answering = thread::spawn(move || producer.answer_all());
        let asleep = until(&bed, is_asleep);
        assert_eq!(asleep["workers"][0]["share_permille"], 1000, "{feed}");
        let (_, error) = bed.failure(&["workers", "add"]);
        assert!(error.contains("power.governor"), "{error}");
        let cpufreq = || {
            let shown = bed.json(&["power", "--seconds", "0.1"]);
            assert_eq!(
                shown["governor"]["name"], "tap",
                "the default of several workers"
            );
            shown["governor"]["levers"][1].clone()
        };
        assert_eq!(cpufreq()["used"], true);
        std::fs::remove_dir_all(bed.path("sys/devices")).expect("it is there");

        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let prefixes = [
                "/load/a", "/load/b", "/load/c", "/load/d", "/load/e", "/load/f",
            ];
            let consumers = prefixes.map(|prefix| {
                let (mut program, stop) = (Program::new(folder), &stop);
                scope.spawn(move || program.ask(prefix, 1_000, stop))
            });
            let version = |shown: &serde_json::Value| shown["map_version"].as_u64();
            until(&bed, |shown| version(shown) > version(&asleep));
            stop.store(true, Ordering::Relaxed);
            for consumer in consumers {
                consumer
                    .join()
                    .expect("all that was asked for was answered");
            }
        });
        assert_eq!(n_lost(&bed), 0, "{feed}");
        // A frequency that can't be set any more leaves the number of workers governed. Those
        // on cores of their own got another one as they woke.
        if !asleep["workers"][0]["cpu"].is_null() {
            let detail = cpufreq()["detail"].to_string();
            assert!(detail.contains("lost: cannot write"), "{detail}");
        }
        until(&bed, is_asleep);
        // What an operator freezes stays so, and what is pinned keeps its worker awake.
        bed.text(&["workers", "freeze"]);
        thread::sleep(Duration::from_millis(300));
        assert!(is_asleep(&bed.json(&["workers"])));
        socket.shutdown(std::net::Shutdown::Both).expect("a socket");
        answering.join().expect("it ends");
    }
}
