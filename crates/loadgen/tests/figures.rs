//! Every figure against a router in this process or, where it must be started,
//! in a child process: counts are checked, times and sizes are only there.

#[path = "support/router.rs"]
mod router;

use std::path::{Path, PathBuf};

use tachonym_loadgen::exchange::address::Address;
use tachonym_loadgen::fairness::neighbour::Kind;
use tachonym_loadgen::fairness::{self, FairnessArgs};
use tachonym_loadgen::footprint::{self, FootprintArgs};
use tachonym_loadgen::launch::ForwarderArgs;
use tachonym_loadgen::launch::LOCAL_UDP;
use tachonym_loadgen::routes::{self, RoutesArgs};
use tachonym_loadgen::soak::{self, SoakArgs};
use tachonym_loadgen::startup::{self, StartupArgs};
use tachonym_loadgen::transfer::{self, Rate, TransferArgs};
use tachonym_protocol::FaceUri;
use tachonym_router::Router;
use tachonym_router::config::Config;

fn config_text(socket: &Path) -> String {
    format!(
        "faces.unix.path = \"{}\"\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
         faces.tcp.listen = [\"127.0.0.1:0\"]\nfaces.websocket.listen = []\n{LOCAL_UDP}",
        socket.display()
    )
}

/// A router in this process, whose figures are this process's.
struct Bed {
    folder: tempfile::TempDir,
    router: Router,
}

impl Bed {
    fn new(extra: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = config_text(&folder.path().join("s")) + extra;
        let config = Config::parse(&text).expect("a good configuration");
        let router = Router::start(&config).expect("it starts");
        Self { folder, router }
    }

    fn forwarder(&self) -> ForwarderArgs {
        ForwarderArgs {
            address: unix(&self.folder.path().join("s")),
            pid: None,
            start: None,
        }
    }

    fn network_addresses(&self) -> Vec<Address> {
        let address = |uri: &FaceUri| match uri {
            FaceUri::Tcp(addr) => Some(Address::Tcp(*addr)),
            FaceUri::Udp(addr) => Some(Address::Udp(*addr)),
            _ => None,
        };
        let found: Vec<_> = self.router.listening().iter().filter_map(address).collect();
        assert_eq!(found.len(), 2);
        found
    }
}

fn unix(path: &Path) -> Address {
    Address::Unix(PathBuf::from(path))
}

#[test]
fn every_route_is_taken_forwards_and_goes() {
    let bed = Bed::new("");
    let mut args = RoutesArgs {
        forwarder: bed.forwarder(),
        count: 500,
        window: 32,
        sample: 50,
        lifetime_ms: 60_000,
        json: false,
    };
    let report = routes::measure(&args).expect("the router takes routes");
    println!("{report}");
    assert_eq!(report.pid, std::process::id());
    assert_eq!(report.register.commands.n_done, 500);
    assert_eq!(report.unregister.commands.n_done, 500);
    assert_eq!((report.n_sampled, report.n_came_back), (50, 50));
    // A route works as soon as its command is answered.
    assert_eq!(report.n_too_early, 0);

    // Over TCP the socket does not tell whose it is.
    args.forwarder.address = bed.network_addresses().swap_remove(0);
    if matches!(args.forwarder.address, Address::Udp(_)) {
        args.forwarder.address = bed.network_addresses().swap_remove(1);
    }
    args.count = 20;
    let error = routes::measure(&args).expect_err("which process is it?");
    assert!(format!("{error:#}").contains("--pid"));
    args.forwarder.pid = Some(std::process::id());
    let report = routes::measure(&args).expect("the router takes routes");
    assert_eq!((report.n_sampled, report.n_came_back), (20, 20));
}

#[test]
fn routes_beyond_the_limit_are_counted_as_refused() {
    let bed = Bed::new("tables.routes = 100\n");
    let args = RoutesArgs {
        forwarder: bed.forwarder(),
        count: 150,
        window: 1,
        sample: 0,
        lifetime_ms: 60_000,
        json: false,
    };
    let report = routes::measure(&args).expect("the router takes some routes");
    let commands = &report.register.commands;
    let n_refused: u64 = commands.n_refused_by_code.values().sum();
    assert!(commands.n_done <= 100 && commands.n_done > 0);
    assert_eq!(commands.n_done + n_refused, 150);
}

fn footprint_args(forwarder: ForwarderArgs) -> FootprintArgs {
    FootprintArgs {
        forwarder,
        kinds: Vec::new(),
        faces_at: Vec::new(),
        faces: 20,
        pit_entries: 400,
        routes: 200,
        cached: 300,
        content_bytes: 1_000,
        steps: 4,
        json: false,
    }
}

#[test]
fn every_kind_of_item_is_added_in_steps() {
    let bed = Bed::new("");
    let args = FootprintArgs {
        faces_at: bed.network_addresses(),
        ..footprint_args(bed.forwarder())
    };
    let report = footprint::measure(&args).expect("the router takes them");
    println!("{report}");
    let counts = |kind: footprint::Kind| -> Vec<Vec<u64>> {
        let of_kind = report.footprints.iter().filter(|f| f.kind == kind);
        of_kind
            .map(|f| f.steps.iter().map(|s| s.n_items).collect())
            .collect()
    };
    assert_eq!(
        counts(footprint::Kind::Face),
        vec![vec![0, 5, 10, 15, 20]; 3]
    );
    assert_eq!(counts(footprint::Kind::Pit), [[0, 100, 200, 300, 400]]);
    assert_eq!(counts(footprint::Kind::Route), [[0, 50, 100, 150, 200]]);
    assert_eq!(counts(footprint::Kind::Cached), [[0, 75, 150, 225, 300]]);
    for item in &report.footprints {
        assert_eq!(item.limit, None);
        let has_own = matches!(item.kind, footprint::Kind::Pit | footprint::Kind::Cached);
        assert_eq!(item.own_bytes_per_item > 0, has_own);
        assert!(item.steps.iter().all(|s| s.rss_bytes > 0));
    }
}

#[test]
fn a_limit_of_the_forwarder_ends_the_steps() {
    let bed = Bed::new("faces.max_faces = 12\n");
    let args = FootprintArgs {
        kinds: vec![footprint::Kind::Face],
        ..footprint_args(bed.forwarder())
    };
    let report = footprint::measure(&args).expect("some faces are taken");
    let faces = &report.footprints[0];
    let n_faces = faces.steps.last().map_or(0, |s| s.n_items);
    assert!(n_faces > 0 && n_faces <= 12, "{n_faces}");
    assert!(faces.limit.is_some());
}

#[test]
fn a_soak_reads_memory_at_each_tenth_and_loses_nothing() {
    let bed = Bed::new("tables.cs_packets = 100\n");
    let args = SoakArgs {
        forwarder: bed.forwarder(),
        producer: None,
        names: 1_234,
        content_bytes: 500,
        in_flight: 16,
        json: false,
    };
    let report = soak::measure(&args).expect("the router forwards");
    println!("{report}");
    assert_eq!(report.n_lost, 0);
    let names: Vec<_> = report.readings.iter().map(|r| r.n_names).collect();
    assert_eq!(names.len(), 11);
    assert_eq!((names[0], names[5], names[10]), (0, 617, 1_234));
    assert!(report.cpu_ns_per_exchange > 0.0);
}

#[test]
fn an_honest_program_is_measured_beside_every_kind_of_neighbour() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = unix(&folder.path().join("s"));
    let args = FairnessArgs {
        forwarder: ForwarderArgs {
            address: socket,
            pid: None,
            start: Some(router_command(folder.path())),
        },
        over: Vec::new(),
        kinds: Vec::new(),
        in_flight: 16,
        rounds: 1,
        seconds: 1,
        json: false,
    };
    let report = fairness::measure(&args).expect("the router forwards");
    println!("{report}");
    let besides: Vec<_> = report.rows.iter().map(|row| row.beside).collect();
    let all = std::iter::once(None).chain(Kind::ALL.map(Some));
    assert_eq!(besides, all.collect::<Vec<_>>());
    for row in &report.rows {
        // How fast is a figure; but every neighbour did what it is there for.
        assert!(row.exchanges_per_s.min > 0.0, "{row:?}");
        assert!(row.part_of_fair.is_some());
        let has_sent = row.neighbour_pkts_per_s.min > 0.0;
        assert_eq!(has_sent, row.beside.is_some(), "{row:?}");
        match row.beside {
            Some(Kind::Garbage | Kind::Churn) => assert!(row.n_neighbour_connections > 1),
            Some(Kind::Honest) => assert_eq!(row.n_neighbour_connections, 2),
            Some(_) => assert_eq!(row.n_neighbour_connections, 1, "{row:?}"),
            None => assert_eq!(row.n_neighbour_connections, 0),
        }
    }
}

#[test]
fn a_transfer_brings_every_segment_over_each_transport() {
    let bed = Bed::new("");
    let mut over = bed.network_addresses();
    over.push(bed.forwarder().address);
    let args = TransferArgs {
        forwarder: bed.forwarder(),
        over,
        rates: vec![Rate::Limited(50_000_000), Rate::Unlimited],
        seconds: 1,
        bytes: Some(1_999_999),
        segment_bytes: 4_000,
        max_window: 32,
        max_seconds: 600,
        json: false,
    };
    let report = transfer::measure(&args).expect("the router forwards");
    println!("{report}");
    assert_eq!(report.transfers.len(), 6);
    for transfer in &report.transfers {
        assert!(transfer.is_complete, "{transfer:?}");
        assert_eq!(transfer.n_segments, 500);
        assert_eq!((transfer.n_nacks, transfer.n_unexpected), (0, 0));
        assert!(transfer.goodput_mb_s > 0.0);
    }
}

/// A command line that starts a router at `s` in `folder`.
fn router_command(folder: &Path) -> String {
    let config = folder.join("config");
    std::fs::write(&config, config_text(&folder.join("s"))).expect("the folder is ours");
    let program = router::program(folder);
    format!(
        "'{}' run --config '{}'",
        program.display(),
        config.display()
    )
}

#[test]
fn this_program_is_a_router_where_asked() {
    router::run_if_asked();
}

#[test]
fn a_forwarder_is_started_measured_and_stopped_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let args = StartupArgs {
        start: router_command(folder.path()),
        address: unix(&socket),
        consumer: None,
        count: 3,
        json: false,
    };
    let report = startup::measure(&args).expect("the router starts");
    println!("{report}");
    assert_eq!(report.exchanged_ms.n_rounds, 3);
    assert!(report.connected_ms.min > 0.0 && report.rss_bytes.min > 0.0);
    assert!(report.connected_ms.min <= report.registered_ms.min);
    assert!(report.registered_ms.min <= report.exchanged_ms.min);
    std::os::unix::net::UnixStream::connect(&socket).expect_err("its socket is closed");

    // Other commands start it as well.
    let args = FootprintArgs {
        kinds: vec![footprint::Kind::Route],
        ..footprint_args(ForwarderArgs {
            address: unix(&socket),
            pid: None,
            start: Some(router_command(folder.path())),
        })
    };
    let report = footprint::measure(&args).expect("the router starts");
    assert_eq!(report.footprints[0].limit, None);
    std::os::unix::net::UnixStream::connect(&socket).expect_err("its socket is closed");
}

#[test]
fn a_command_that_ends_at_once_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = StartupArgs {
        start: "false".to_owned(),
        address: unix(&folder.path().join("s")),
        consumer: None,
        count: 1,
        json: false,
    };
    let error = startup::measure(&args).expect_err("it ends");
    assert!(format!("{error:#}").contains("has ended"));
}
