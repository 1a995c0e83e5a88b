//! Figure 3.11 and Table 3.2 of Yuan 2015: the FIB with several threads.
//!
//! Each thread is pinned and has names of its own, so that none finds in the shared cache
//! what another one has just read. A rate is the number of all names by the time from the
//! common start to the end of the slowest thread.

use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Cell, Column, Context, Cost, Experiment, Need, Param, ParamKind, Record, Table, cells,
};

use super::fib::{
    Case, Row, Rows, each_matching, measure, published_label, seven, sizes_param, stated,
};
use crate::beds::fib::{ENGINE_PARAM, Fetch, MATCHINGS, matching_label};

const PARAMS: &[Param] = &[
    sizes_param(["600", "1M", "32M"]),
    ENGINE_PARAM,
    Param::new(
        "threads",
        "most threads; 0: as many as there are processors",
        ParamKind::Count { min: 0, max: 1_024 },
        ["2", "0", "0"],
    ),
    Param::rounds(["3", "11", "15"]),
    Param::seed(),
];

/// In the order of the thesis.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "yuan/figure-3.11",
        title: "Names that several threads search for in one FIB",
        source: "Yuan 2015, section 3.4.3",
        cost: Cost::minutes(0.2, 12.0),
        needs: &[Need::Cpus(2), Need::MemoryGib(0.5, 6.5)],
        params: PARAMS,
        run: threads,
    },
    Experiment {
        id: "yuan/table-3.2",
        title: "Throughput by what is prefetched: the part of the FIB alone",
        source: "Yuan 2015, section 3.4.4",
        cost: Cost::minutes(0.3, 12.0),
        needs: &[Need::Cpus(2), Need::MemoryGib(0.5, 6.5)],
        params: PARAMS,
        run: throughput,
    },
];

/// 1, 2, 4 and so on, and the most.
fn numbers_of_threads(context: &Context) -> Vec<usize> {
    let most = match context.size("threads") {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let powers = std::iter::successors(Some(1), |n| Some(n * 2));
    let mut numbers: Vec<usize> = powers.take_while(|&n| n < most).collect();
    numbers.push(most);
    numbers
}

fn threads(context: &Context) -> anyhow::Result<Record> {
    let numbers = numbers_of_threads(context);
    let (mut record, rows) = measure(context, |n_rules| {
        each_matching(|matching| {
            let case = Case::new(seven(context, n_rules, matching), Fetch::All, false);
            let numbers = numbers.iter();
            numbers.map(|&n| case.clone().with_threads(n)).collect()
        })
    })?;
    let place = stated("section 3.4.3, Figure 3.11");
    for (matching, on_other_node) in MATCHINGS.into_iter().zip([-20.0, -8.0]) {
        let rows = Rows::of(&rows, matching);
        let label = published_label(matching);
        let with = |n: usize| rows.get(|row| row.case.way.n_threads == n);
        let ratio = |n| Some(with(n)?.mpps.median / with(1)?.mpps.median);
        for (n, value) in [(2, 2.0), (4, 4.0)] {
            let what = format!("{label}: {n} threads beside one");
            record.compare(what, value, "", place, ratio(n));
        }
        let what = format!("{label}: 4 threads on the other memory node than the FIB, 512 M rules");
        record.compare(what, on_other_node, "%", place, None);
    }
    let what = "8 threads on two memory nodes, 1 G rules";
    record.compare(what, 6.0, "million names/s", place, None);
    record.note("Each thread is pinned and searches for names of its own. The rate is all names by the time of the slowest thread.");
    record.note("Rows about two memory nodes are not measurable on a machine with one: the −20 and −8 % of threads on the other node, and the 6 million names a second of eight threads on both.");
    Ok(record)
}

/// Bytes of a packet in Table 3.2.
const PACKET_BYTES: f64 = 256.0;
/// Preamble and gap of an Ethernet frame, which the published Gbit/s contain: 4.4 million
/// packets of 256 bytes are 9.0 Gbit/s without them, and 9.7 with them.
const FRAME_BYTES: f64 = 20.0;

/// Gbit/s of packets of 256 bytes on the wire.
fn gbps(mpps: f64) -> f64 {
    mpps * (PACKET_BYTES + FRAME_BYTES) * 8.0 / 1e3
}

fn throughput(context: &Context) -> anyhow::Result<Record> {
    let n_threads = numbers_of_threads(context).pop().unwrap_or(1);
    let (mut record, rows) = measure(context, |n_rules| {
        each_matching(|matching| {
            let spec = seven(context, n_rules, matching);
            let case = |fetch| Case::new(spec, fetch, false).with_threads(n_threads);
            Fetch::ALL.map(case).to_vec()
        })
    })?;
    record.tables.insert(0, main_table(&rows));
    let place = stated("Table 3.2");
    let published = [
        [(4.1, 9.1), (4.2, 9.4), (4.4, 9.7)],
        [(3.8, 8.4), (4.0, 8.9), (4.1, 9.1)],
    ];
    for (matching, published) in MATCHINGS.into_iter().zip(published) {
        let rows = Rows::of(&rows, matching);
        for (fetch, (mpps, gbit)) in Fetch::ALL.into_iter().zip(published) {
            let row = rows.get(|row| row.case.way.fetch == fetch);
            let here = row.map(|row| row.mpps.median);
            let what = |of| {
                let label = published_label(matching);
                format!("{label}, prefetch {}: {of}", fetch.label())
            };
            record.compare(what("packets"), mpps, "million/s", place, here);
            record.compare(what("rate"), gbit, "Gbit/s", place, here.map(gbps));
        }
    }
    record.compare("8 workers, any prefetching", 10.0, "Gbit/s", place, None);
    record.note(format!(
        "Not the same quantity: published is a system that receives and sends packets, with two \
         I/O threads and four workers; here {n_threads} threads search the FIB for names in \
         memory, without I/O, packets, PIT or content store."
    ));
    record.note("Gbit/s are computed for packets of 256 bytes, and 20 bytes of preamble and gap on the wire.");
    Ok(record)
}

fn main_table(rows: &[Row]) -> Table {
    let columns: [Column; 5] = [
        "names compared, hash".into(),
        "prefetched".into(),
        "threads".into(),
        "million names/s, FIB alone".into(),
        "as packets of 256 bytes, Gbit/s".into(),
    ];
    let mut table = Table::new("", columns);
    for row in rows {
        let scaled = |spread: Spread| Spread {
            median: gbps(spread.median),
            p10: gbps(spread.p10),
            p90: gbps(spread.p90),
            min: gbps(spread.min),
            max: gbps(spread.max),
            n_rounds: spread.n_rounds,
        };
        let cells: [Cell; 5] = cells![
            matching_label(row.case.spec.matching),
            row.case.way.fetch.label(),
            row.case.way.n_threads,
            row.mpps,
            scaled(row.mpps),
        ];
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_rates_contain_preamble_and_gap() {
        let published = [(4.1, 9.1), (4.2, 9.4), (4.4, 9.7), (3.8, 8.4), (4.0, 8.9)];
        for (mpps, gbit) in published {
            // Both are printed with one digit.
            assert!((gbps(mpps) - gbit).abs() <= 0.05 + gbps(0.05), "{mpps}");
            assert!(mpps * PACKET_BYTES * 8.0 / 1e3 < gbit - 0.3, "{mpps}");
        }
    }
}
