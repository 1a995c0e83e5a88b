//! The load generator end to end over real sockets, consumers wired to
//! producers: every Interest must come back as exactly one right Data.

use std::process::{Command, Output};

use tachonym_lab::exchange::address::Transport;
use tachonym_lab::exchange::flow::Mode;
use tachonym_lab::exchange::measure::{Load, Target, measure};
use tachonym_lab::exchange::report::Measurement;

const TRANSPORTS: [Transport; 3] = [Transport::Unix, Transport::Udp, Transport::Tcp];

/// A load whose bursts fit small socket buffers, and whose Interests live so
/// long that a slow machine changes nothing.
fn load() -> Load {
    Load {
        content_bytes: 1_000,
        in_flight: 16,
        flows: 1,
        count: 3_000,
        max_seconds: 600,
        token_bytes: None,
        lifetime_ms: 60_000,
        must_be_fresh: false,
        freshness_ms: 1_000,
        catalogue: 100,
        warm_up: 50,
        spin: false,
        cpu: None,
    }
}

fn measure_direct(transport: Transport, mode: Mode, load: &Load) -> Measurement {
    let measured = measure(&Target::Direct(transport), mode, load);
    let measurement = measured.expect("loopback works");
    println!("{measurement}\nseed {}", measurement.seed);
    measurement
}

/// Nothing but `n_exchanges` Interests and their Data.
fn assert_clean(measurement: &Measurement, n_exchanges: u64) {
    let c = &measurement.counters;
    let seed = measurement.seed;
    assert_eq!(c.n_sent, n_exchanges, "seed {seed}");
    assert_eq!(c.n_exchanges, n_exchanges, "seed {seed}");
    assert_eq!(c.n_produced, n_exchanges, "seed {seed}");
    let others = c.n_timed_out
        + c.n_nacks()
        + c.n_wrong_data
        + c.n_wrong_tokens
        + c.n_late
        + c.n_unexpected
        + c.n_marked
        + measurement.generator_dropped_pkts;
    assert_eq!(others, 0, "seed {seed}: {c:?}");
    assert!(measurement.loss_pct.abs() < f64::EPSILON);
    assert!(measurement.forwarder.is_none());
    assert!(measurement.exchanges_per_s > 0.0 && measurement.latency.p50_us > 0.0);
    assert!(measurement.latency.p50_us <= measurement.latency.p99_9_us);
}

#[test]
fn every_interest_is_answered_over_each_transport() {
    for transport in TRANSPORTS {
        for mode in [Mode::Miss, Mode::Hit] {
            assert_clean(&measure_direct(transport, mode, &load()), 3_000);
        }
    }
}

#[test]
fn contents_of_100_to_8000_bytes_come_whole() {
    for transport in TRANSPORTS {
        for content_bytes in [0, 100, 3_333, 8_000] {
            let load = Load {
                content_bytes,
                count: 500,
                in_flight: 8,
                ..load()
            };
            assert_clean(&measure_direct(transport, Mode::Miss, &load), 500);
        }
    }
}

#[test]
fn tokens_of_every_length_come_back() {
    for token_bytes in 0..=64 {
        let load = Load {
            token_bytes: Some(token_bytes),
            count: 64,
            ..load()
        };
        let transport = TRANSPORTS[token_bytes % 3];
        assert_clean(&measure_direct(transport, Mode::Miss, &load), 64);
    }
}

#[test]
fn flows_share_the_count() {
    for transport in TRANSPORTS {
        let load = Load {
            flows: 7,
            in_flight: 4,
            count: 1_001,
            ..load()
        };
        assert_clean(&measure_direct(transport, Mode::Miss, &load), 1_001);
    }
}

#[test]
fn spinning_changes_no_figure_but_time() {
    let load = Load {
        spin: true,
        must_be_fresh: true,
        count: 500,
        ..load()
    };
    assert_clean(&measure_direct(Transport::Unix, Mode::Hit, &load), 500);
}

fn exchange(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .arg("exchange")
        .args(args)
        .output()
        .expect("the binary was built for this test")
}

#[test]
fn the_command_prints_one_line_of_json() {
    let output = exchange(&["--direct", "tcp", "--count", "200", "--json"]);
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["measurement"]["counters"]["n_exchanges"], 200);
    assert_eq!(report["measurement"]["consumer"], "tcp");
    assert!(report["machine"]["kernel"].is_string());
}

#[test]
fn other_machines_and_absent_forwarders_are_refused() {
    for (args, word) in [
        (["--consumer", "udp://192.0.2.1:6363"], "loopback"),
        (
            ["--consumer", "unix:///nonexistent/nfd.sock"],
            "cannot connect",
        ),
        (["--content-bytes", "8001"], "8000"),
        (["--mode", "miss"], "--consumer"),
    ] {
        let output = exchange(&args);
        assert!(!output.status.success(), "{args:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(word), "{args:?}: {message}");
    }
}

#[test]
fn a_socket_without_management_is_an_error_and_not_a_figure() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("s.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("the folder is ours");
    let hang_up = std::thread::spawn(move || {
        // Consumer and producer connect; then both are closed.
        drop([listener.accept(), listener.accept()]);
    });
    let output = exchange(&["--consumer", &format!("unix://{}", path.display())]);
    hang_up.join().expect("both connected");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("closed the connection"));
}
