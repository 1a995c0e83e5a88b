//! The experiments of this project that are about the whole router, its workers, its RIB and
//! its verification of Data, at scale tiny: counts are checked, times and sizes are only
//! there.

#[path = "../../loadgen/tests/support/router.rs"]
mod router;
mod support;

use support::{run, run_with};
use tachonym_bench::{Cell, Kind, Record, Table};

#[test]
fn this_program_is_a_router_where_asked() {
    router::run_if_asked();
}

/// The record of an experiment that starts a router.
fn run_router(id: &str, set: &[&str]) -> Record {
    let folder = tempfile::tempdir().expect("a folder");
    let program = router::program(folder.path());
    run_with(Some(&program), id, set)
}

fn cells<'a>(table: &'a Table, title: &str) -> Vec<&'a Cell> {
    let column = table.column(title).expect(title);
    table.rows.iter().map(|row| &row[column]).collect()
}

/// The numbers of a column, of which none is missing.
fn numbers(table: &Table, title: &str) -> Vec<f64> {
    let number = |cell: &Cell| cell.number().unwrap_or_else(|| panic!("{title}: {cell:?}"));
    cells(table, title).into_iter().map(number).collect()
}

fn words(table: &Table, title: &str) -> Vec<String> {
    let word = |cell: &Cell| match cell {
        Cell::Text(text) => text.clone(),
        cell => panic!("{title}: {cell:?}"),
    };
    cells(table, title).into_iter().map(word).collect()
}

fn all_positive(table: &Table, titles: &[&str]) {
    for title in titles {
        let numbers = numbers(table, title);
        assert!(numbers.iter().all(|&it| it > 0.0), "{title}: {numbers:?}");
    }
}

#[test]
fn exchanges_are_measured_over_each_transport_beside_the_generator_alone() {
    let record = run_router("own/exchange", &[]);
    assert_eq!(record.kind, Kind::Measured);
    let table = &record.tables[0];
    // Three transports, UDP also with offload; a miss and a hit, the router and the generator
    // alone.
    assert_eq!(table.rows.len(), 16);
    let over = words(table, "transport");
    assert!(over[8..12].iter().all(|it| *it == "udp"), "{over:?}");
    assert!(
        over[12..].iter().all(|it| *it == "udp, offload"),
        "{over:?}"
    );
    let labels = words(table, "forwarder");
    for (idx, label) in labels.iter().enumerate() {
        let is_ceiling = label.starts_with('(');
        assert_eq!(is_ceiling, idx % 2 == 1, "{labels:?}");
        let column = table.column("CPU, µs/exchange").expect("a column");
        let cpu = table.rows[idx][column].number();
        assert_eq!(cpu.is_none(), is_ceiling, "{cpu:?}");
        assert!(cpu.is_none_or(|cpu| cpu > 0.0));
    }
    all_positive(table, &["thousand exchanges/s", "p50, µs", "p99, µs"]);
    assert_eq!(numbers(table, "lost, %"), [0.0; 16]);
    assert!(!record.notes.iter().any(|note| note.contains("failed")));
}

#[test]
fn system_calls_are_fewer_when_more_is_in_flight() {
    let record = run_router("own/syscalls", &["exchanges=2000"]);
    let table = &record.tables[0];
    assert_eq!(words(table, "transport"), ["unix", "tcp", "udp"]);
    let (one, many) = (
        numbers(table, "1 in flight, miss"),
        numbers(table, "64 in flight, miss"),
    );
    for (one, many) in one.iter().zip(&many) {
        // A wait, a read and a write for a packet in and a packet out.
        assert!((0.9..3.0).contains(one), "{one}");
        assert!(*many > 0.0 && many < one, "{many} {one}");
    }
}

#[test]
fn every_route_is_registered_and_works() {
    let record = run_router("own/routes", &[]);
    let table = &record.tables[0];
    assert_eq!(numbers(table, "routes"), [300.0]);
    assert_eq!(numbers(table, "refused or unanswered"), [0.0]);
    assert_eq!(numbers(table, "work at once, %"), [100.0]);
    assert_eq!(numbers(table, "work in the end, %"), [100.0]);
    all_positive(table, &["registered in, s", "p50, µs", "p99, µs"]);
    assert_eq!(record.verdicts.len(), 1);
}

#[test]
fn the_router_is_started_as_often_as_asked() {
    let record = run_router("own/startup", &["starts=2"]);
    let table = &record.tables[0];
    let column = table.column("first Data, ms").expect("a column");
    match &table.rows[0][column] {
        Cell::Spread(spread) => assert_eq!(spread.n_rounds, 2),
        cell => panic!("{cell:?}"),
    }
    let [connected, registered, exchanged] = [
        "connection accepted, ms",
        "route registered, ms",
        "first Data, ms",
    ]
    .map(|title| numbers(table, title)[0]);
    assert!(connected > 0.0 && connected <= registered && registered <= exchanged);
    all_positive(table, &["stopped within, ms", "memory then, MiB"]);
}

#[test]
fn memory_is_read_for_every_kind_of_item() {
    let record = run_router("own/footprint", &[]);
    let table = &record.tables[0];
    let items = [
        "unix face",
        "udp face",
        "tcp face",
        "pending Interest",
        "route",
        "cached Data",
    ];
    assert_eq!(words(table, "item"), items);
    let counts = [20.0, 20.0, 20.0, 300.0, 300.0, 300.0];
    assert_eq!(numbers(table, "items"), counts);
    // A cached Data is its own bytes, 1,000 of content among them.
    assert!(numbers(table, "of these from outside")[5] > 1_000.0);
    assert_eq!(record.charts[0].lines.len(), items.len());
}

#[test]
fn a_soak_loses_nothing() {
    let record = run_router("own/soak", &[]);
    let readings = numbers(&record.tables[0], "names");
    assert_eq!(readings.len(), 11);
    assert_eq!((readings[0], readings[10]), (0.0, 2_000.0));
    all_positive(&record.tables[0], &["resident memory, MiB"]);
    assert_eq!(numbers(&record.tables[1], "lost"), [0.0]);
    all_positive(&record.tables[1], &["CPU, µs/exchange"]);
    assert_eq!(record.verdicts.len(), 1);
}

#[test]
fn every_segment_of_a_transfer_arrives() {
    let record = run_router("own/transfer", &[]);
    let table = &record.tables[0];
    assert_eq!(
        words(table, "asked for, MB/s"),
        ["50", "unlimited"].repeat(3)
    );
    assert_eq!(numbers(table, "segments"), [50.0; 6]);
    all_positive(table, &["goodput, MB/s", "window at the end", "RTT, µs"]);
    // At a limited rate, goodput is at most that rate.
    let goodput = numbers(table, "goodput, MB/s");
    let limited = goodput.iter().step_by(2);
    assert!(limited.clone().all(|&it| it < 55.0), "{goodput:?}");
    assert!(!record.notes.iter().any(|note| note.contains("complete")));
}

#[test]
fn an_honest_program_is_measured_alone_and_beside_others() {
    let record = run_router("own/fairness", &[]);
    let table = &record.tables[0];
    assert_eq!(words(table, "beside"), ["nothing", "honest", "garbage"]);
    all_positive(table, &["thousand exchanges/s", "by the fair share"]);
    // Beside an equal, the fair share is what it has.
    assert_eq!(numbers(table, "by the fair share")[1], 1.0);
    let sent = numbers(table, "neighbour's thousand packets/s");
    assert!(sent[0] == 0.0 && sent[1] > 0.0 && sent[2] > 0.0, "{sent:?}");
    assert_eq!(numbers(table, "its connections")[..2], [0.0, 2.0]);
}

/// What both experiments with several workers have to show.
fn is_divided(table: &Table) {
    all_positive(table, &["thousand packets/s", "router's CPU, ns/packet"]);
    let numbers_of = numbers(table, "workers");
    for (shares, n_workers) in words(table, "share of each worker").iter().zip(numbers_of) {
        let shares = shares
            .split(' ')
            .map(|it| it.parse::<f64>().expect("a number"));
        let shares: Vec<_> = shares.collect();
        assert_eq!(shares.len() as f64, n_workers);
        // Each is printed with two digits.
        let sum: f64 = shares.iter().sum();
        assert!((sum - 1.0).abs() < 0.011, "{shares:?}");
    }
    let busiest = numbers(table, "busiest by mean");
    let n_workers = numbers(table, "workers");
    for (busiest, n_workers) in busiest.iter().zip(n_workers) {
        assert!((1.0..=n_workers).contains(busiest), "{busiest}");
    }
}

#[test]
fn the_running_router_has_several_workers() {
    let record = run_router("own/live", &[]);
    let table = &record.tables[0];
    let feeds = words(table, "feed");
    assert_eq!(feeds[..2], ["run-to-completion", "run-to-completion"]);
    assert_eq!(feeds[2..], ["io-threads", "io-threads"]);
    assert_eq!(numbers(table, "workers"), [1.0, 2.0, 1.0, 2.0]);
    is_divided(table);
    let by_fewest = numbers(table, "by the fewest workers");
    assert_eq!((by_fewest[0], by_fewest[2]), (1.0, 1.0));
    let most = record.published("packets per second at most");
    assert!(most.is_some_and(|it| it.value == 42.49 && it.here > Some(0.0)));
}

#[test]
fn names_are_dispatched_by_each_rule_over_udp() {
    let record = run_router("own/live-dispatch", &["over=udp"]);
    let table = &record.tables[0];
    assert_eq!(
        words(table, "dispatch by"),
        ["prefix", "prefix", "name", "batch"].repeat(2)
    );
    is_divided(table);
    // Of names by segments, both workers have some; whole objects may all fall to one.
    let by_name = &words(table, "share of each worker")[2];
    assert!(!by_name.contains("1.00"), "{by_name}");
    assert_eq!(record.published.len(), 2);
    assert!(record.published.iter().all(|it| it.here > Some(0.0)));
}

#[test]
fn every_kind_of_signature_is_verified() {
    let record = run("own/verify", &[]);
    let table = &record.tables[0];
    let kinds = [
        "digest",
        "HMAC",
        "RSA 2048",
        "RSA 4096",
        "ECDSA P-256",
        "Ed25519",
    ];
    assert_eq!(words(table, "signature"), kinds);
    all_positive(
        table,
        &[
            "SHA-256 alone, µs",
            "no memory, µs",
            "first time, µs",
            "again, µs",
            "forged, µs",
            "unknown key, µs",
        ],
    );
    let bytes = numbers(table, "Data, bytes");
    assert!(bytes.iter().all(|&it| it > 1_000.0), "{bytes:?}");
    // What is remembered costs less than its signature, by far.
    let by_again = numbers(table, "no memory by again");
    assert!(by_again[2..].iter().all(|&it| it > 2.0), "{by_again:?}");
    assert_eq!(
        numbers(&record.tables[1], "prefixes"),
        [0.0, 1.0, 16.0, 256.0]
    );
}

#[test]
fn workers_answer_every_interest_and_all_but_their_own_share_crosses() {
    for rule in ["dispatch=prefix", "dispatch=name"] {
        // Fails unless every Interest is answered.
        let record = run("own/workers", &["requests=98304", rule]);
        let table = &record.tables[0];
        // The last row is of engines that share nothing.
        assert_eq!(numbers(table, "workers"), [1.0, 3.0, 3.0]);
        let crossed = numbers(table, "crossed a ring");
        assert_eq!([crossed[0], crossed[2]], [0.0; 2]);
        assert!((crossed[1] - 2.0 / 3.0).abs() < 0.05, "{crossed:?}");
        assert!(numbers(table, "busiest by mean")[1] < 1.1);
        assert_eq!(numbers(table, "by the fewest workers")[0], 1.0);
    }
}

#[test]
fn a_name_with_most_of_the_traffic_is_measured_with_and_without_the_scheduler() {
    let record = run("own/hot", &[]);
    let table = &record.tables[0];
    assert_eq!(numbers(table, "offered by one worker's"), [0.5, 3.0]);
    for title in ["answered, static hash", "answered, LAPS"] {
        // What one measurement leaves pending the next may answer.
        let shares = numbers(table, title);
        let is_share = |share: &f64| *share > 0.0 && *share < 1.05;
        assert!(shares.iter().all(is_share), "{title}: {shares:?}");
    }
}

#[test]
fn every_route_that_was_loaded_is_found() {
    // Fails unless each route is found and listed in order.
    let record = run("own/rib", &["components=2,4", "pages=base", "seed=5"]);
    let table = &record.tables[0];
    assert_eq!(numbers(table, "routes"), [3_000.0; 2]);
    all_positive(
        table,
        &[
            "RIB, ns/route",
            "FIB, ns/route",
            "RIB, bytes/route",
            "FIB, bytes/route",
        ],
    );
    // Longer names take more.
    let bytes = numbers(table, "RIB, bytes/route");
    assert!(bytes[1] > bytes[0], "{bytes:?}");
}

#[test]
fn waiting_is_measured_at_each_load_with_gathering_and_without() {
    let record = run_router("own/waiting", &[]);
    let table = &record.tables[0];
    // Seven loads, each without gathering and with it.
    assert_eq!(table.rows.len(), 14);
    assert_eq!(words(table, "gathering")[..2], ["off", "on"]);
    for (load, cell) in words(table, "load").iter().zip(cells(table, "p99, µs")) {
        assert_eq!(cell.number().is_some(), load != "rest", "{load}");
    }
    assert!(numbers(table, "lost").iter().all(|&lost| lost == 0.0));
    assert_eq!(record.verdicts.len(), 6);
}

#[test]
fn rates_that_change_are_carried_with_a_governor_and_without() {
    let record = run_router("own/power", &[]);
    let table = &record.tables[0];
    let profiles = words(table, "profile");
    assert_eq!(profiles[..3], ["step", "step", "sine"]);
    assert_eq!(words(table, "governor"), ["none", "tap"].repeat(4));
    let column = |title| numbers(table, title);
    let (sent, answered) = (column("Interests sent"), column("answered"));
    let (lost, not_sent) = (column("lost"), column("due, not sent"));
    for row in 0..8 {
        assert!(sent[row] > 0.0, "{sent:?}");
        assert_eq!(answered[row] + lost[row], sent[row]);
    }
    // Both governors have the same load; over a Unix socket the kernel loses nothing.
    let due: Vec<_> = sent.iter().zip(&not_sent).map(|(a, b)| a + b).collect();
    assert!(due.chunks(2).all(|pair| pair[0] == pair[1]), "{due:?}");
    assert_eq!(lost, [0.0; 8]);
    for (row, &workers) in column("workers, mean").iter().enumerate() {
        match row % 2 {
            0 => assert_eq!(workers, 2.0),
            _ => assert!((1.0..=2.0).contains(&workers), "{workers}"),
        }
    }
    all_positive(table, &["router's cores", "CPU, µs/exchange", "p99, µs"]);
    all_positive(
        &record.tables[1],
        &["thousand exchanges/s", "router's cores"],
    );
    let lines = record.charts.iter().map(|chart| chart.lines.len());
    assert_eq!(lines.collect::<Vec<_>>(), [3; 4]);
    assert_eq!(record.verdicts.len(), 4);
}
