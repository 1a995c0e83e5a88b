//! The tools against a running router, each as the program that it is.

mod bed;

use std::os::unix::process::ExitStatusExt as _;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use bed::{Bed, noise};

#[test]
fn status_counts_what_happened() {
    let bed = Bed::new();
    let before = bed.json(&["status"]);
    let after = bed.json(&["status"]);
    let interests = |status: &Value| status["in"]["interests"].as_u64().expect("a number");
    assert!(interests(&after) > interests(&before));
    assert_eq!(after["listening"].as_array().expect("a list").len(), 4);
    assert!(bed.text(&["status"]).contains("content store"));
}

#[test]
fn the_tools_own_queries_are_neither_hits_nor_misses() {
    let bed = Bed::new();
    let lookups = |command: &str, part: &str| {
        let value = bed.json(&[command, part]);
        (value["hits"].clone(), value["misses"].clone())
    };
    for _ in 0..3 {
        bed.text(&["status"]);
        bed.text(&["face", "list"]);
        bed.text(&["route", "add", "/a", "udp4://127.0.0.1:9"]);
    }
    let none = (Value::from(0), Value::from(0));
    assert_eq!(lookups("cs", "info"), none);
    assert_eq!(lookups("cs", "stats"), none);
    assert_eq!(bed.json(&["status"])["cs"]["misses"], 0);
    assert_eq!(bed.json(&["status"])["cs"]["hit_ratio"], Value::Null);

    let _server = bed.serve(&["poke", "/b", "--json", "-f", "60000"], b"content");
    for _ in 0..4 {
        bed.text(&["peek", "/b"]);
    }
    assert_eq!(lookups("cs", "info"), (Value::from(3), Value::from(1)));
    assert_eq!(bed.json(&["cs", "stats"])["hit_ratio"], 0.75);
    let status = bed.text(&["status"]);
    for part in ["75.00 % of 4 Interests", "3 hits, 1 misses (75.00 %)"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    assert!(
        status.contains("DRAM level") && !status.contains("SSD level"),
        "{status}"
    );
}

#[test]
fn help_has_examples_and_keeps_common_options_apart() {
    let bed = Bed::new();
    for tool in [
        "status",
        "face",
        "route",
        "strategy",
        "cs",
        "workers",
        "ping",
        "pingserver",
        "peek",
        "poke",
        "put",
        "get",
        "dissect",
        "keys",
    ] {
        let help = bed.text(&[tool, "--help"]);
        let (own, common) = help.split_once("Common options:").expect(tool);
        assert!(
            !own.contains("--json") && common.contains("--json"),
            "{tool}: {help}"
        );
        assert!(!own.contains("--transport"), "{tool}: {help}");
        let example = format!("\n  tachonym {tool} ");
        assert!(
            common.contains("Examples:") && common.contains(&example),
            "{tool}: {help}"
        );
    }
    for command in [
        &["face", "create", "--help"][..],
        &["route", "add", "--help"],
    ] {
        let help = bed.text(command);
        for persistency in ["- on-demand:", "- persistent:", "- permanent:"] {
            assert!(help.contains(persistency), "{command:?}: {help}");
        }
    }
}

#[test]
fn get_requests_no_segment_beyond_the_last() {
    let bed = Bed::new();
    for (name, n_bytes, n_segments) in [("/one", 90, 1), ("/few", 450, 5), ("/many", 4_000, 40)] {
        let put = ["put", name, "-", "--json", "--segment-bytes", "100"];
        let _server = bed.serve(&put, &noise(n_bytes));
        let copy = bed.path("copy");
        let report = bed.json(&["get", name, "-o", copy.to_str().expect("text")]);
        assert_eq!(report["segments"], n_segments, "{report}");
        assert_eq!(report["interests"], n_segments, "{report}");
        assert_eq!(report["stale"], false, "{report}");
    }
}

#[test]
fn face_events_are_told_as_they_happen() {
    let bed = Bed::new();
    let mut events = bed
        .command(&["face", "events", "--count", "2", "--json"])
        .spawn()
        .expect("it runs");
    // Its own face is the first event that it may see; keep making others until
    // it has seen two.
    let mut n_made = 0;
    while events.try_wait().expect("a child").is_none() {
        n_made += 1;
        bed.text(&[
            "face",
            "create",
            &format!("udp4://127.0.0.2:{}", 1000 + n_made),
        ]);
    }
    let output = events.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.lines().count(), 2);
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        assert!(event["face_id"].as_u64().is_some());
    }
}

#[test]
fn routes_are_added_shown_and_removed() {
    let bed = Bed::new();
    // Of the router's own faces, only the null face is a next hop.
    for face in ["1", "254", "9999"] {
        let (code, error) = bed.failure(&["route", "add", "/a", face]);
        assert_eq!(code, 5, "{error}");
        assert!(error.contains("410"), "{error}");
    }
    for null in ["255", "null://"] {
        let added = bed.json(&["route", "add", "/nowhere", null]);
        assert_eq!(added["face_id"], 255, "{null}");
        bed.text(&["route", "remove", "/nowhere", null]);
    }
    let remote = "udp4://127.0.0.1:9";
    let added = bed.json(&["route", "add", "/a", remote, "--cost", "7"]);
    let face = added["face_id"].as_u64().expect("a number").to_string();
    bed.text(&[
        "route",
        "add",
        "/a/b",
        &face,
        "--origin",
        "nlsr",
        "--capture",
    ]);
    let routes = bed.json(&["route", "list"]);
    let find = |prefix: &str| {
        let routes = routes.as_array().expect("a list");
        routes
            .iter()
            .find(|r| r["prefix"] == prefix)
            .expect("it is listed")["routes"][0]
            .clone()
    };
    assert_eq!(find("/a")["cost"], 7);
    assert_eq!(find("/a")["origin"], "static");
    assert_eq!(find("/a/b")["origin"], "nlsr");
    let shown = bed.json(&["route", "show", "/a/b/c"]);
    assert_eq!(shown["prefix"], "/a/b");
    bed.text(&["route", "remove", "/a/b", &face, "--origin", "nlsr"]);
    assert_eq!(bed.json(&["route", "show", "/a/b/c"])["prefix"], "/a");
    let (code, error) = bed.failure(&["route", "remove", "/a/x", &face]);
    assert_eq!(code, 1);
    assert!(error.contains("has no route"), "{error}");
}

#[test]
fn strategies_are_set_and_inherited_again() {
    let bed = Bed::new();
    let set = bed.json(&["strategy", "set", "/m", "multicast"]);
    let strategy = set["strategy"].as_str().expect("text");
    assert!(strategy.starts_with("/localhost/nfd/strategy/multicast/"));
    assert_eq!(bed.json(&["strategy", "show", "/m/n"])["prefix"], "/m");
    bed.text(&["strategy", "unset", "/m"]);
    assert_eq!(bed.json(&["strategy", "show", "/m/n"])["prefix"], "/");
    let (code, error) = bed.failure(&["strategy", "set", "/m", "no-such-thing"]);
    assert_eq!(code, 5);
    assert!(error.contains("404"), "{error}");
}

#[test]
fn a_content_store_that_shrinks_keeps_as_many_as_it_may() {
    let bed = Bed::new();
    let _server = bed.serve(
        &["put", "/cs", "-", "--json", "--segment-bytes", "10"],
        &noise(40_000),
    );
    bed.run(&["get", "/cs", "--quiet"]);
    let n_entries = || bed.json(&["cs", "info"])["entries"].as_u64();
    assert!(n_entries() >= Some(4_000));
    bed.text(&["cs", "config", "--capacity", "50"]);
    // The commands' own Data may be among them. Of two workers one has all, for the names are
    // at home there.
    assert!(matches!(n_entries(), Some(25 | 26 | 50)));
    assert_eq!(bed.json(&["cs", "info"])["capacity"], 50);
}

#[test]
fn the_content_store_is_configured_and_erased() {
    let bed = Bed::new();
    let _server = bed.serve(
        &["put", "/cs", "-", "--json", "--segment-bytes", "100"],
        &noise(5_000),
    );
    bed.run(&["get", "/cs", "--quiet"]);
    assert!(
        bed.json(&["cs", "info"])["entries"]
            .as_u64()
            .expect("a number")
            >= 50
    );
    let erased = bed.json(&["cs", "erase", "/cs", "--count", "10"]);
    assert_eq!(erased["erased"], 10);
    let rest = bed.json(&["cs", "erase", "/cs"])["erased"].as_u64();
    assert!(rest.expect("a number") >= 40);
    let (code, error) = bed.failure(&["cs", "config"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("nothing to change"), "{error}");
    let changed = bed.json(&["cs", "config", "--capacity", "123", "--serve", "off"]);
    assert_eq!(changed["capacity"], 123);
    assert_eq!(changed["serve"], false);
    assert_eq!(changed["admit"], true);
}

#[test]
fn the_content_store_gets_another_policy_while_it_runs() {
    let bed = Bed::new();
    let _server = bed.serve(
        &["put", "/cs", "-", "--json", "--segment-bytes", "100"],
        &noise(5_000),
    );
    let stats = || bed.json(&["cs", "stats"]);
    let count = |key: &str| stats()[key].as_u64().expect("a number");
    assert_eq!(stats()["policy"], "admission=none,eviction=lru");
    let filter = "admission=filter,eviction=fifo,filter_threshold=2,filter_history=1000";
    bed.text(&["cs", "config", "--policy", filter]);
    assert_eq!(stats()["policy"], filter);
    bed.text(&["cs", "erase", "/"]);
    let n_before = count("not_admitted");
    bed.run(&["get", "/cs", "--quiet"]);
    assert!(count("not_admitted") >= n_before + 50, "asked for once");
    bed.run(&["get", "/cs", "--quiet"]);
    assert!(count("inserts") >= 50, "asked for twice");
    let n_hits = count("hits");
    bed.run(&["get", "/cs", "--quiet"]);
    assert!(count("hits") >= n_hits + 50);
    // What is not named stays.
    bed.text(&["cs", "config", "--policy", "eviction=sieve"]);
    assert_eq!(stats()["policy"], filter.replace("fifo", "sieve"));
    let n_hits = count("hits");
    bed.run(&["get", "/cs", "--quiet"]);
    assert!(count("hits") >= n_hits + 50, "what was cached is still");
    for (words, reason) in [
        ("eviction=arc", "learns from names"),
        ("eviction=best", "unknown variant"),
    ] {
        let (code, error) = bed.failure(&["cs", "config", "--policy", words]);
        assert_eq!(code, 5, "{error}");
        assert!(error.contains(reason), "{error}");
    }
    assert!(bed.text(&["cs", "stats"]).contains("eviction=sieve"));
}

#[test]
fn a_store_whose_policy_would_take_more_than_its_data_stays_as_it_is() {
    let bed = Bed::new();
    let of_store = || {
        let stats = bed.json(&["cs", "stats"]);
        (stats["policy"].clone(), stats["capacity"].clone())
    };
    let auto = "admission=filter-auto,eviction=gclock";
    bed.text(&["cs", "config", "--policy", auto]);
    let before = of_store();
    assert_eq!(before.0, auto);
    let history = "admission=filter,eviction=fifo,filter_history=100000000";
    for arguments in [
        ["cs", "config", "--policy", history].as_slice(),
        &["cs", "config", "--capacity", "10000000"],
        &["cs", "config", "--capacity", "10", "--policy", history],
    ] {
        let (code, error) = bed.failure(arguments);
        assert_eq!(code, 5, "{error}");
        assert!(error.contains("the policy's tables take"), "{error}");
        assert_eq!(of_store(), before, "{arguments:?}");
    }
    // Without history it may be as large as it likes.
    let lru = "admission=none,eviction=lru";
    bed.text(&["cs", "config", "--capacity", "10000000", "--policy", lru]);
    assert_eq!(of_store().0, lru);
}

#[test]
fn the_one_worker_is_shown_and_has_nothing_to_divide() {
    let bed = Bed::of_workers("");
    let shown = bed.json(&["workers"]);
    let workers = shown["workers"].as_array().expect("a list");
    assert_eq!(workers.len(), 1);
    assert_eq!(workers[0]["worker"], 0);
    assert_eq!(workers[0]["state"], "running");
    assert_eq!(workers[0]["share_permille"], 1000);
    let count = |key: &str| bed.json(&["workers"])["workers"][0][key].as_u64();
    // Each question is a packet itself.
    let n_before = count("in_pkts");
    assert!(count("in_pkts") > n_before);
    let _server = bed.serve(
        &["put", "/w", "-", "--json", "--segment-bytes", "100"],
        &noise(1_000),
    );
    bed.run(&["get", "/w", "--quiet"]);
    assert_eq!(
        count("cs_entries"),
        bed.json(&["cs", "info"])["entries"].as_u64()
    );
    assert!(count("cs_entries") >= Some(10));

    let text = bed.text(&["workers"]);
    let heads = text.lines().find(|line| line.starts_with("WORKER"));
    assert!(heads.is_some_and(|heads| heads.contains("SHARE")), "{text}");
    let map = bed.json(&["workers", "map"]);
    assert_eq!(map["shares"][0]["share_permille"], 1000);
    assert_eq!(map["moved"], serde_json::json!([]));
    assert!(bed.text(&["workers", "map"]).contains("100.0 %"));

    for line in [
        "workers freeze",
        "workers thaw",
        "workers pin /a/b 0",
        "workers unpin /a/b",
        "workers add",
        "workers remove 0",
    ] {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let (code, error) = bed.failure(&arguments);
        assert_eq!(code, 5, "{line}: {error}");
        for part in ["runs one worker", "workers.threads", "409"] {
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

#[test]
fn what_the_router_makes_of_a_value_is_told() {
    let bed = Bed::new();
    let told = |line: &str| {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let output = bed.run(&arguments);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    for (line, remark) in [
        (
            "face create udp4://127.0.0.1:9 --mtu-bytes 10",
            "--mtu-bytes: 10 was requested, the router uses 128",
        ),
        (
            "face create udp4://127.0.0.1:9 --persistency permanent",
            "--persistency: permanent was requested, the router uses persistent",
        ),
        (
            "face update udp4://127.0.0.1:9 --mtu-bytes 99999",
            "--mtu-bytes: 99999 was requested, the router uses 65507",
        ),
        (
            "cs config --capacity 999999999999",
            "--capacity: 999999999999 was requested, the router uses ",
        ),
    ] {
        let remarks = told(line);
        assert!(remarks.contains(remark), "{line}: {remarks}");
        assert_eq!(remarks.lines().count(), 1, "{line}: {remarks}");
    }
    for line in [
        "face create udp4://127.0.0.1:8 --mtu-bytes 1400 --reliability on \
         --congestion-marking off --local-fields off --persistency permanent \
         --congestion-interval-ms 7 --congestion-threshold-bytes 9999",
        "face update udp4://127.0.0.1:8 --mtu-bytes 1300 --reliability off",
        "cs config --capacity 100 --admit off --serve on",
    ] {
        assert_eq!(told(line), "");
    }
}

#[test]
fn a_ping_that_comes_back_tells_the_reason_apart() {
    let bed = Bed::new();
    let output = bed.run(&["ping", "/nowhere", "-c", "1", "--json"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().next().expect("a line");
    let line: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(line["event"], "nack");
    assert_eq!(line["reason"], "no-route");
}

#[test]
fn pings_are_answered_and_counted() {
    let bed = Bed::new();
    let server = bed.serve(&["pingserver", "/p", "--json", "--size-bytes", "50"], b"");
    let text = bed.text(&["ping", "/p", "-c", "5", "-i", "1", "--json"]);
    let summary: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(summary["sent"], 5);
    assert_eq!(summary["received"], 5);
    assert_eq!(server.stop()["answered"], 5);
}

#[test]
fn a_poked_data_is_peeked_at() {
    let bed = Bed::new();
    let mut server = bed.serve(&["poke", "/poked", "-f", "1000", "--json"], b"content");
    assert_eq!(bed.text(&["peek", "/poked"]), "content");
    server.last_words();
    // The producer is gone and the content store has it.
    assert_eq!(bed.text(&["peek", "/poked"]), "content");
    let shown = bed.json(&["peek", "/poked"]);
    assert_eq!(shown["freshness_ms"], 1000);
    let (code, error) = bed.failure(&["peek", "/nobody"]);
    assert_eq!(code, 4, "{error}");
}

#[test]
fn poke_gives_up_unless_it_was_asked_for_often_enough() {
    let bed = Bed::new();
    let poke = ["poke", "/poked", "--json", "-c", "2", "-t", "200"];
    let mut server = bed.serve(&poke, b"content");
    // Asked for once, or on a slow machine not at all: not twice in any case.
    bed.run(&["peek", "/poked", "--lifetime-ms", "100"]);
    assert_eq!(server.child.wait().expect("it ends").code(), Some(3));
    let (code, error) = bed.failure(&["poke", "/k/2", "-t", "50"]);
    assert_eq!(code, 3);
    assert!(
        error.contains("no Interest for /k/2 came in time"),
        "{error}"
    );
}

#[test]
fn poke_is_ended_by_the_signal_that_interrupts_it() {
    let bed = Bed::new();
    for signal in [Signal::INT, Signal::TERM] {
        let mut server = bed.serve(&["poke", "/poked", "--json"], b"content");
        let pid = Pid::from_child(&server.child);
        kill_process(pid, signal).expect("it runs");
        let status = server.child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
    }
}

#[test]
fn a_tool_over_udp_says_which_key_the_router_lacks() {
    let bed = Bed::new();
    let udp = bed.listening("udp4");
    std::fs::write(bed.path("original"), "x").expect("a file");
    let original = bed.path("original");
    let original = original.to_str().expect("text");
    let (code, error) = bed.failure(&["put", "/file", original, "--transport", &udp]);
    assert_eq!(code, 4, "{error}");
    assert!(error.contains("[management.localhop]"), "{error}");
}

#[test]
fn a_file_arrives_whole_over_every_transport() {
    // Over UDP and WebSocket programs register as neighbours.
    let localhop = "management.localhop.enabled = true\nmanagement.localhop.any = true\n";
    let bed = Bed::with(|_| localhop.into());
    let content = noise(1_000_003);
    std::fs::write(bed.path("original"), &content).expect("a file");
    let original = bed.path("original");
    let original = original.to_str().expect("text");
    for (i, producer) in ["unix", "tcp4", "udp4", "ws"].into_iter().enumerate() {
        let uri = |scheme: &str| match scheme {
            "unix" => bed.transport.clone(),
            other => bed.listening(other),
        };
        let name = format!("/file/{i}");
        let put = [
            "put",
            &name,
            original,
            "--json",
            "--transport",
            &uri(producer),
        ];
        let server = bed.serve(&put, b"");
        assert_eq!(server.ready["segments"], 126);
        for consumer in ["unix", "tcp4", "udp4", "ws"] {
            let copy = bed.path("copy");
            let copy = copy.to_str().expect("text");
            let get = ["get", &name, "-o", copy, "--transport", &uri(consumer)];
            let report = bed.json(&get);
            assert_eq!(report["segments"], 126, "{producer} to {consumer}");
            assert!(
                std::fs::read(copy).expect("a file") == content,
                "{producer} to {consumer}"
            );
            bed.text(&["cs", "erase", &name]);
        }
        assert!(server.stop()["segments_sent"].as_u64().expect("a number") >= 4 * 126);
    }
}

#[test]
fn the_version_is_found_by_metadata_or_by_prefix_or_taken_as_given() {
    let bed = Bed::new();
    let content = noise(20_000);
    let put = [
        "put",
        "/v",
        "-",
        "--json",
        "--version",
        "5",
        "--segment-bytes",
        "1000",
    ];
    let _server = bed.serve(&put, &content);
    for extra in [
        &["get", "/v", "--discover", "metadata"][..],
        &["get", "/v", "--discover", "prefix"],
        &["get", "/v"],
        &["get", "/v/v=5"],
        &["get", "/v/v=5", "--discover", "exact"],
    ] {
        let output = bed.run(extra);
        assert!(output.stdout == content, "{extra:?}: {:?}", output.stderr);
    }
    let (code, _) = bed.failure(&["get", "/v/v=6", "-r", "0", "--lifetime-ms", "100"]);
    assert_eq!(code, 3);
    assert_eq!(bed.failure(&["get", "/nobody", "-o", "/dev/null/x"]).0, 1);
}

#[test]
fn an_empty_file_is_an_object_too() {
    let bed = Bed::new();
    let _server = bed.serve(&["put", "/empty", "-", "--json"], b"");
    let output = bed.run(&["get", "/empty", "--quiet"]);
    assert!(output.status.success() && output.stdout.is_empty());
}

#[test]
fn what_goes_wrong_is_told_by_exit_code_and_words() {
    let bed = Bed::new();
    let (code, error) = bed.failure(&["status", "--transport", "unix:///nowhere/s"]);
    assert_eq!(code, 6, "{error}");
    assert!(error.contains("/nowhere/s"), "{error}");
    let (code, error) = bed.failure(&["status", "--transport", "tcp4://127.0.0.1:1"]);
    assert_eq!(code, 6, "{error}");
    assert_eq!(bed.failure(&["route", "add", "/a"]).0, 2);
    assert_eq!(bed.failure(&["peek", "/%zz"]).0, 2);
    let (code, error) = bed.failure(&["put", "/x", "/nowhere/file"]);
    assert_eq!(code, 1);
    assert!(error.contains("/nowhere/file"), "{error}");
}
