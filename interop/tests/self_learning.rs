//! Routers without a single configured route, which find producers by
//! `self-learning`. Needs the right to make network namespaces, as a way that is
//! learnt leads off the host.

use std::path::Path;

use serde_json::Value;
use tachonym_interop::namespace::{Namespace, connect};
use tachonym_interop::{Router, Running, write_noise};

const N_BYTES: usize = 100_000;
const STRATEGY: &str = "[[strategy]]\nprefix = \"/\"\nstrategy = \"self-learning\"\n";
const LEARN: &str = "[management.announcements]\nlearn = true\n";
const ANYBODY: &str = "any = true\n";

/// Three hosts in a row; the outer ones see the one in the middle only.
struct Row {
    west: Namespace,
    middle: Namespace,
    east: Namespace,
}

impl Row {
    fn new() -> Self {
        let [west, middle, east] = [(); 3].map(|()| Namespace::new());
        connect(&west, "10.77.4.1/24", &middle, "10.77.4.2/24");
        connect(&middle, "10.77.5.1/24", &east, "10.77.5.2/24");
        Self { west, middle, east }
    }
}

/// A router in `host`, with `extra` in its configuration.
fn router(host: &Namespace, extra: &str) -> Router {
    let listen = "udp.listen = [\"0.0.0.0:0\"]\ntcp.listen = []\nwebsocket.listen = []\n";
    Router::configured(listen, extra, Some(host.path()))
}

fn learner(host: &Namespace) -> Router {
    router(host, &[STRATEGY, LEARN, ANYBODY].concat())
}

/// Connects `from` to the router `to`, whose host has the address `ip`.
fn link(from: &Router, to: &Router, ip: &str) {
    let (_, port) = to.uri("udp4").rsplit_once(':').expect("a port");
    from.tool(&["face", "create", &format!("udp4://{ip}:{port}")]);
}

/// Serves `file` as `name` and announces that.
fn put(router: &Router, name: &str, file: &Path, extra: &[&str]) -> Running {
    let file = file.to_str().expect("text");
    let arguments = [&["put", name, file, "--json", "--announce"], extra].concat();
    let mut serving = Running::start(&mut router.tool_command(&arguments));
    assert!(serving.line().contains("ready"));
    serving
}

fn get(router: &Router, name: &str, content: &[u8]) {
    let target = router.folder().join("fetched");
    let file = target.to_str().expect("text");
    router.tool(&["get", name, "--quiet", "-o", file]);
    assert!(std::fs::read(target).expect("a file") == content, "{name}");
}

/// Prefixes of the routes that a router has learnt.
fn learnt(router: &Router) -> Vec<String> {
    let entries = json(router, &["route", "list"]);
    let entries = entries.as_array().expect("a list").iter();
    let is_learnt = |entry: &&Value| {
        let routes = entry["routes"].as_array().expect("a list");
        routes.iter().any(|route| route["cost"] == 2048)
    };
    let prefix = |entry: &Value| entry["prefix"].as_str().expect("a prefix").to_owned();
    entries.filter(is_learnt).map(prefix).collect()
}

fn json(router: &Router, arguments: &[&str]) -> Value {
    let text = router.tool(&[arguments, &["--json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_way_to_a_file_is_learnt_along_a_chain_and_handed_on() {
    let row = Row::new();
    let (consumer, middle, producer) =
        (learner(&row.west), learner(&row.middle), learner(&row.east));
    link(&consumer, &middle, "10.77.4.2");
    link(&middle, &producer, "10.77.5.2");
    let file = producer.folder().join("file");
    let _ = write_noise(&file, N_BYTES, 302);
    let content = std::fs::read(&file).expect("a file");
    let serving = put(&producer, "/site/file", &file, &[]);
    get(&consumer, "/site/file", &content);
    for router in [&consumer, &middle] {
        assert_eq!(learnt(router), ["/site/file"]);
        let routes = json(router, &["route", "list"]);
        let routes = routes.as_array().and_then(|all| all.last());
        let route = &routes.expect("a route")["routes"][0];
        assert_eq!(route["origin"], "prefixann");
        assert!(route["expires_ms"].as_u64() <= Some(600_000), "{route}");
    }

    // A router that discovers later gets the announcement from the router in the middle,
    // although that one follows its own route by then.
    middle.tool(&["cs", "erase", "/"]);
    let latecomer = learner(&row.west);
    link(&latecomer, &middle, "10.77.4.2");
    get(&latecomer, "/site/file", &content);
    assert_eq!(learnt(&latecomer), ["/site/file"]);
    drop(latecomer);

    // The producer goes; each router that learns of it removes the route.
    drop(serving);
    while json(&producer, &["route", "list"])
        .as_array()
        .expect("a list")
        .iter()
        .any(|entry| entry["prefix"] == "/site/file")
    {}
    let mut peek = consumer.tool_command(&["peek", "/site/file/new"]);
    let output = peek.output().expect("it runs");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    for router in [&consumer, &middle] {
        // The Nack may arrive before the route is removed.
        while !learnt(router).is_empty() {}
    }

    // It comes back elsewhere and is discovered there without an announcement, now that
    // no content store answers.
    for router in [&consumer, &middle, &producer] {
        router.tool(&["cs", "erase", "/"]);
    }
    let elsewhere = learner(&row.middle);
    link(&consumer, &elsewhere, "10.77.4.2");
    let _serving = put(&elsewhere, "/site/file", &file, &[]);
    get(&consumer, "/site/file", &content);
    assert_eq!(learnt(&consumer), ["/site/file"]);
}

#[test]
fn only_announcements_that_are_configured_to_count_are_learnt_from() {
    let row = Row::new();
    let producer = learner(&row.east);
    let keys = producer.folder().join("keys");
    let certify = |store: &str| {
        let store = keys.join(store);
        let store = ["--key-store", store.to_str().expect("text")];
        producer.tool(&[&["keys", "generate", "/site"][..], &store].concat());
        producer.tool(&[&["keys", "certificate", "/site"][..], &store].concat())
    };
    let certificate = keys.join("site.ndncert");
    let text = certify("right");
    certify("wrong");
    std::fs::write(&certificate, text).expect("a file");
    let file = producer.folder().join("file");
    std::fs::write(&file, "content").expect("a file");

    let anchors = format!("anchors = [\"{}\"]\n", certificate.display());
    let trusting = [STRATEGY, LEARN, &anchors].concat();
    for (prefix, extra, store, refusal) in [
        ("/site/a", &*trusting, "wrong", Some("announcement-refused")),
        ("/site/b", STRATEGY, "right", Some("announcement-unwanted")),
        ("/site/c", &*trusting, "right", None),
        // A trusted signer announces nothing outside its identity.
        ("/other", &*trusting, "right", Some("announcement-refused")),
    ] {
        let consumer = router(&row.middle, extra);
        link(&consumer, &producer, "10.77.5.2");
        let store = keys.join(store);
        let signed = ["--identity", "/site", "--key-store"];
        let signed = [&signed[..], &[store.to_str().expect("text")]].concat();
        let _serving = put(&producer, prefix, &file, &signed);
        // The Data comes in any case.
        get(&consumer, prefix, b"content");
        match refusal {
            None => assert_eq!(learnt(&consumer), [prefix]),
            Some(reason) => {
                assert!(learnt(&consumer).is_empty());
                let status = json(&consumer, &["status"]);
                assert!(status["drops"][reason].as_u64() > Some(0), "{status}");
            }
        }
    }
}
