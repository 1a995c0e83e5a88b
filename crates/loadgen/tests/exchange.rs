//! The load generator end to end over real sockets, consumers wired to
//! producers: every Interest must come back as exactly one right Data.

use std::time::{Duration, Instant};

use tachonym_loadgen::exchange::address::{Address, Transport, UdpPeers};
use tachonym_loadgen::exchange::flow::Mode;
use tachonym_loadgen::exchange::measure::{Forwarder, Load, Target, measure};
use tachonym_loadgen::exchange::report::Measurement;
use tachonym_loadgen::launch::LOCAL_UDP;
use tachonym_router::Router;
use tachonym_router::config::Config;

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
        udp: UdpPeers::Offload,
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
    assert!(measurement.is_complete && measurement.n_not_sent == 0);
    let others = c.n_timed_out
        + c.n_cut_off
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
fn every_interest_is_answered_over_single_datagrams() {
    let load = Load {
        udp: UdpPeers::Single,
        flows: 2,
        ..load()
    };
    for mode in [Mode::Miss, Mode::Hit] {
        let measurement = measure_direct(Transport::Udp, mode, &load);
        assert_clean(&measurement, 3_000);
        assert!(measurement.to_string().contains("UDP without offload"));
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

/// Far more than the seconds that are given, and far less than what waiting for
/// every Interest, probe and command would take.
const GENEROUS: Duration = Duration::from_secs(40);

#[test]
fn a_run_ends_in_time_though_nothing_that_was_sent_comes_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("s");
    let text = format!(
        "faces.unix.path = \"{}\"\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
         faces.tcp.listen = []\nfaces.websocket.listen = []\n{LOCAL_UDP}",
        path.display()
    );
    let config = Config::parse(&text).expect("a good configuration");
    let router = Router::start(&config).expect("it starts");
    let udp = router
        .listening()
        .iter()
        .find(|uri| uri.scheme().starts_with("udp"))
        .expect("it listens on UDP")
        .to_string();
    let unix = format!("unix://{}", path.display());
    for (uri, mode) in [(&unix, Mode::Hit), (&udp, Mode::Hit), (&udp, Mode::Miss)] {
        let address: Address = uri.parse().expect("an address");
        let target = Target::Forwarder(Forwarder {
            consumer: address.clone(),
            producer: address,
            pid: Some(std::process::id()),
            control: None,
        });
        let load = Load {
            // Longer than tokens may be: no Interest gets through.
            token_bytes: Some(33),
            max_seconds: 2,
            count: 1_000_000_000,
            flows: 2,
            ..load()
        };
        let started = Instant::now();
        let measurement = measure(&target, mode, &load).expect("probes come through");
        println!("{measurement}");
        assert!(started.elapsed() < GENEROUS, "{:?}", started.elapsed());
        assert!(!measurement.is_complete);
        let c = &measurement.counters;
        assert_eq!((c.n_exchanges, c.n_sent, c.n_cut_off), (0, 32, 32));
        assert_eq!(measurement.n_not_sent, 1_000_000_000 - 32);
        assert!(measurement.n_not_warmed_up > 0);
        assert!((measurement.loss_pct - 100.0).abs() < f64::EPSILON);
    }
    router.stop().expect("it ends");
}
