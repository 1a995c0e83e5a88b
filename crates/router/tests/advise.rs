//! What the router measures of popularity, and what `cs advise` makes of it, against what
//! the content store then does.

mod bed;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tachonym_client::{Controller, Endpoint, Received};
use tachonym_packet::{Component, Data, Interest, Name};
use tachonym_protocol::FaceUri;
use tachonym_security::Signer;

/// What is expected is that of one store: with several, as many names as these are divided by
/// chance, one half asked for more than the other.
const ONE_WORKER: &str = "";

use bed::Bed;

const N_NAMES: usize = 800;
const CAPACITY: &str = "100";

fn endpoint(bed: &Bed) -> Endpoint {
    let uri: FaceUri = bed.transport.parse().expect("the bed's own");
    Endpoint::connect(&uri).expect("it listens")
}

fn prefix() -> Name {
    "/zipf".parse().expect("a literal name")
}

/// Answers whatever is asked for until it is dropped.
struct Producer {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Producer {
    fn start(bed: &Bed) -> Self {
        let mut endpoint = endpoint(bed);
        Controller::new(&mut endpoint, Signer::digest())
            .register(&prefix())
            .expect("it is allowed");
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let deadline = endpoint.now() + Duration::from_millis(50);
                let answer = endpoint.poll(Some(deadline), |link, received| {
                    if let Received::Interest(interest, headers) = received {
                        let data = Data {
                            content: vec![7; 500],
                            ..Data::new(interest.name().to_name())
                        };
                        let wire = data.encode_with_digest();
                        link.send_data(&wire, headers.pit_token);
                    }
                    ControlFlow::Continue(())
                });
                answer.expect("the router runs");
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("dropped once");
        if thread.join().is_err() && !thread::panicking() {
            panic!("the producer failed");
        }
    }
}

/// Asks for names by Zipf's law, the same ones every time.
struct Consumer {
    endpoint: Endpoint,
    cumulated: Vec<f64>,
    state: u64,
}

impl Consumer {
    fn new(bed: &Bed) -> Self {
        let mut sum = 0.0;
        let cumulated = (1..=N_NAMES).map(|rank| {
            sum += (rank as f64).powf(-0.8);
            sum
        });
        Self {
            endpoint: endpoint(bed),
            cumulated: cumulated.collect(),
            state: 7,
        }
    }

    fn ask(&mut self, n_requests: usize) {
        let all = *self.cumulated.last().expect("there are names");
        for _ in 0..n_requests {
            self.state = self
                .state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let drawn = all * (self.state >> 11) as f64 / (1_u64 << 53) as f64;
            let rank = self.cumulated.partition_point(|&sum| sum < drawn);
            let name = prefix().with(&Component::segment(rank as u64));
            self.endpoint
                .express(&Interest::new(name), 3)
                .expect("an answer");
        }
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn what_is_expected_of_the_running_policy_is_what_is_seen() {
    let bed = Bed::of_workers(ONE_WORKER);
    bed.text(&["cs", "config", "--capacity", CAPACITY]);
    let _producer = Producer::start(&bed);
    let mut consumer = Consumer::new(&bed);
    // With a longer history the model has more insertions than there are: what is missing
    // was not asked for lately.
    let twice = "admission=filter,eviction=fifo,filter_threshold=2,filter_history=100";
    for (policy, n_requests) in [
        ("admission=none,eviction=lru", 10_000),
        ("admission=none,eviction=fifo", 6_000),
        (twice, 6_000),
    ] {
        bed.text(&["cs", "config", "--policy", policy]);
        consumer.ask(n_requests);
        let advice = bed.json(&["cs", "advise"]);
        let (seen, expected) = (&advice["seen"], &advice["expected"]);
        assert_eq!(expected["policy"], policy);
        assert_eq!(seen["policy"], bed.json(&["cs", "stats"])["policy"]);
        assert_eq!(seen["size"], 100);
        let n_seen = seen["requests"].as_u64().expect("a number") as usize;
        assert!(n_seen <= n_requests + 20, "since the change: {n_seen}");
        for (key, tolerance) in [("hit_ratio", 0.03), ("insert_ratio", 0.05)] {
            let (seen, expected) = (number(&seen[key]), number(&expected[key]));
            assert!(
                (seen - expected).abs() < tolerance,
                "{policy}: {key} is {seen}, expected {expected}"
            );
        }
        if policy.starts_with("admission=none,eviction=lru") {
            // It has run from the start.
            let stats = number(&bed.json(&["cs", "stats"])["hit_ratio"]);
            assert!((stats - number(&expected["hit_ratio"])).abs() < 0.03);
            let popularity = &advice["popularity"];
            assert!(number(&popularity["names"]) <= N_NAMES as f64 + 20.0);
            assert!(number(&popularity["requests"]) >= 10_000.0);
        }
    }
    // What is advised is done, and does as well as was expected, or nearly so.
    let advice = bed.json(&["cs", "advise"]);
    let command = advice["command"].as_str().expect("a command");
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    assert_eq!(&arguments[..2], ["cs", "config"]);
    bed.text(&arguments);
    // What admits little takes long until it has what it keeps.
    consumer.ask(30_000);
    let n_hits = |bed: &Bed| number(&bed.json(&["cs", "stats"])["hits"]);
    let n_hits_before = n_hits(&bed);
    consumer.ask(6_000);
    let seen = (n_hits(&bed) - n_hits_before) / 6_000.0;
    let expected = number(&advice["advice"]["hit_ratio"]);
    assert!(
        (seen - expected).abs() < 0.05,
        "{command}: {seen}, expected {expected}"
    );
}

#[test]
fn sizes_costs_and_policies_are_told_as_they_are_asked_for() {
    let bed = Bed::of_workers(ONE_WORKER);
    let (code, error) = bed.failure(&["cs", "advise"]);
    assert_eq!(code, 1);
    assert!(error.contains("received no Interest yet"), "{error}");
    bed.text(&["cs", "config", "--capacity", CAPACITY]);
    let _producer = Producer::start(&bed);
    Consumer::new(&bed).ask(1_000);

    let advice = bed.json(&["cs", "advise"]);
    let sizes = advice["best_hit_ratio"].as_array().expect("a list");
    let sizes: Vec<_> = sizes.iter().map(|entry| number(&entry["size"])).collect();
    assert_eq!(sizes, [25.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0]);
    let told = bed.text(&["cs", "advise", "--size", "70,200"]);
    for words in [
        "\n70 ",
        "\n200 ",
        "filter over lru",
        "upper bound: the most popular names",
        "\ntachonym cs config --capacity 70 --policy admission=",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }

    // A policy of which the model knows nothing has what is seen and nothing beside it.
    bed.text(&["cs", "config", "--policy", "admission=none,eviction=sieve"]);
    assert_eq!(bed.json(&["cs", "advise"])["expected"], Value::Null);
    assert!(bed.text(&["cs", "advise"]).contains("does not cover"));

    let blocks = bed.path("blocks.toml");
    let blocks = blocks.to_str().expect("text");
    std::fs::write(blocks, "always = 1000\nmiss = 0\n").expect("the folder is ours");
    let advice = bed.json(&["cs", "advise", "--blocks", blocks]);
    assert_eq!(advice["blocks_ns"]["always"], 1000.0);
    assert!(number(&advice["advice"]["ns"]) > 1000.0);
    for (text, complaint) in [
        ("always = -1\n", "not a number of nanoseconds"),
        ("\nallways = 1\n", "line 2"),
        ("always = \"x\"\n", "line 1"),
    ] {
        std::fs::write(blocks, text).expect("the folder is ours");
        let (code, error) = bed.failure(&["cs", "advise", "--blocks", blocks]);
        assert_eq!(code, 2, "{error}");
        assert!(
            error.contains(complaint) && error.contains(blocks),
            "{error}"
        );
    }
    for size in ["0", "x", ""] {
        let (code, error) = bed.failure(&["cs", "advise", "--size", size]);
        assert_eq!(code, 2, "{error}");
    }
}
