//! Equation 3.1 of Takemasa 2019: a router forwards at most min(N F / C, B / M) packets a
//! second, with N cores of F cycles a second, C cycles a packet, a memory bandwidth B, and M
//! bytes of memory traffic a packet.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use tachonym_bench::cpu;
use tachonym_bench::stats::{Spread, median};
use tachonym_bench::{
    Cell, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Reference,
    Table, cells,
};

use super::bottleneck_published::{CYCLES, DOCUMENT, MEMORY_BYTES};
use crate::beds::engine::Bed;
use crate::beds::engine::cycles::Cycles;
use crate::beds::engine::params::{
    BURST, HASH, LATE, PACKETS, PAGES, PIT_CS, PREFIXES, STORE, n_bursts, options, policy_of,
};

/// The experiment.
pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/equation-3.1",
    title: "Most packets a second by computation and by memory bandwidth",
    source: "Takemasa 2019, section 3.2.3",
    cost: Cost::minutes(0.1, 5.0),
    needs: &[Need::MemoryGib(2.5, 12.0)],
    params: &[
        PREFIXES,
        BURST,
        STORE,
        LATE,
        PACKETS,
        policy_of("fifo"),
        PIT_CS,
        HASH,
        PAGES,
        Param::new(
            "hit-share",
            "share of Interests that hit",
            ParamKind::Number,
            ["0.3"; 3],
        ),
        Param::count(
            "read-mib",
            "MiB that each thread reads for the bandwidth: more than the last cache has",
            ["8", "512", "2k"],
        ),
        Param::rounds(["2", "11", "31"]),
        Param::seed(),
    ],
    run,
}];

/// Published averages at 30 % hits: cycles and bytes.
const MEAN_CYCLES: f64 = 925.4;
const MEAN_BYTES: f64 = 800.7;
/// Bytes a second of the DRAM channels of both published computers.
const BANDWIDTH: f64 = 76.8e9;

/// A computer.
#[derive(Clone, Copy, Debug)]
struct Computer {
    n_cores: f64,
    hz: f64,
    cycles: f64,
    bandwidth: f64,
    bytes: f64,
}

impl Computer {
    const fn published(n_cores: f64, hz: f64) -> Self {
        Self {
            n_cores,
            hz,
            cycles: MEAN_CYCLES,
            bandwidth: BANDWIDTH,
            bytes: MEAN_BYTES,
        }
    }

    /// Packets a second that computation allows.
    fn by_computation(&self) -> f64 {
        self.n_cores * self.hz / self.cycles
    }

    /// Packets a second that memory bandwidth allows.
    fn by_memory(&self) -> f64 {
        self.bandwidth / self.bytes
    }

    fn row(&self, name: &str) -> [Cell; 9] {
        let (computation, memory) = (self.by_computation(), self.by_memory());
        cells![
            name,
            self.n_cores,
            self.hz / 1e9,
            self.cycles,
            computation / 1e6,
            self.bandwidth / 1e9,
            self.bytes,
            memory / 1e6,
            computation.min(memory) / 1e6,
        ]
    }
}

/// The mean over packets with a Data for each Interest, hit or not.
fn mean_with_all_data([miss, hit, data]: [f64; 3], hit_share: f64) -> f64 {
    (hit_share * hit + (1.0 - hit_share) * miss + data) / 2.0
}

/// The mean over packets with a Data for each miss only.
fn mean_with_received_data([miss, hit, data]: [f64; 3], hit_share: f64) -> f64 {
    let miss_share = 1.0 - hit_share;
    (hit_share * hit + miss_share * (miss + data)) / (1.0 + miss_share)
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let hit_share = context.number("hit-share");
    let n_cpus = cpu::available().len().max(1);
    let bandwidth: Vec<f64> = (0..context.rounds())
        .map(|_| read_bandwidth(n_cpus, context.size("read-mib")))
        .collect();
    let cycles = {
        let mut bed = Bed::new(options(context)?)?;
        Cycles::measure(&mut bed, context.rounds(), n_bursts(context))?
    };
    let ticks = [&cycles.miss, &cycles.hit, &cycles.data].map(|it| it.whole.median);
    let here = Computer {
        n_cores: n_cpus as f64,
        hz: 1e9 / cycles.clock.tick_ns,
        cycles: mean_with_all_data(ticks, hit_share),
        bandwidth: median(&bandwidth),
        bytes: MEAN_BYTES,
    };
    let (first, second) = (
        Computer::published(22.0, 2.2e9),
        Computer::published(4.0, 2.6e9),
    );
    let mut record = Record::new(Kind::Measured);
    let mut table = Table::new(
        "Bounds",
        [
            Column::new("computer"),
            Column::fixed("cores N", 0),
            Column::fixed("GHz F", 2),
            Column::fixed("cycles C", 1),
            Column::fixed("N F / C, million/s", 1),
            Column::fixed("GB/s B", 1),
            Column::fixed("bytes M", 1),
            Column::fixed("B / M, million/s", 1),
            Column::fixed("at most, million/s", 1),
        ],
    );
    table.row(first.row("computer 1, published"));
    table.row(second.row("computer 2, published"));
    table.row(here.row("this machine"));
    record.tables.push(table);
    record.tables.push(means(hit_share));
    let reference = Reference::stated(DOCUMENT, "section 3.2.3");
    for (what, value, unit, here) in [
        (
            "N F / C of computer 1",
            52.3,
            "million/s",
            first.by_computation() / 1e6,
        ),
        (
            "N F / C of computer 2",
            11.2,
            "million/s",
            second.by_computation() / 1e6,
        ),
        ("B / M of both", 95.9, "million/s", first.by_memory() / 1e6),
        (
            "mean cycles C, by Table 3.1",
            MEAN_CYCLES,
            "cycles",
            mean_with_all_data(CYCLES.values.map(f64::from), 0.3),
        ),
        (
            "mean bytes M, by Table 3.1",
            MEAN_BYTES,
            "bytes",
            mean_with_received_data(MEMORY_BYTES.values.map(f64::from), 0.3),
        ),
    ] {
        record.compare(what, value, unit, reference, Some(here));
    }
    let bandwidth = Spread::of(&bandwidth).map_or((0.0, 0.0), |it| (it.p10, it.p90));
    record.note(format!(
        "This machine: C and F are in cycles of the time-stamp counter, at {:.0} % hits; B is what \
         {n_cpus} pinned threads read of memory, {:.1} to {:.1} GB/s (p10 to p90). M needs counters \
         of the memory controller: the published value stands in for it.",
        100.0 * hit_share,
        bandwidth.0 / 1e9,
        bandwidth.1 / 1e9
    ));
    Ok(record)
}

/// The published means, by both ways to weight Data.
fn means(hit_share: f64) -> Table {
    let title = format!("Means of Table 3.1 at {:.0} % hits", 100.0 * hit_share);
    let columns = [
        "mean of",
        "with a Data for each Interest",
        "with a Data for each miss",
    ];
    let columns = columns.map(|title| Column::fixed(title, 1)).into_iter();
    let mut table = Table::new(title, columns.chain([Column::fixed("published", 1)]));
    for (row, published) in [(CYCLES, MEAN_CYCLES), (MEMORY_BYTES, MEAN_BYTES)] {
        let values = row.values.map(f64::from);
        table.row(cells![
            row.what,
            mean_with_all_data(values, hit_share),
            mean_with_received_data(values, hit_share),
            published,
        ]);
    }
    table
}

/// Bytes a second that pinned threads read of memory, by the time of the slowest.
fn read_bandwidth(n_threads: usize, n_mib: usize) -> f64 {
    let n_words = n_mib << 17;
    let start = Barrier::new(n_threads);
    let cpus = cpu::available();
    let seconds: Vec<f64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads)
            .map(|idx| {
                let (start, cpus) = (&start, &cpus);
                scope.spawn(move || {
                    // It reads wherever it runs.
                    let _ = cpu::pin(idx, cpus);
                    // Written here, so that the pages are this thread's.
                    let words: Vec<u64> = (0..n_words as u64).collect();
                    start.wait();
                    let begun = Instant::now();
                    black_box(sum(black_box(&words)));
                    begun.elapsed().as_secs_f64()
                })
            })
            .collect();
        let threads = threads.into_iter().filter_map(|thread| thread.join().ok());
        threads.collect()
    });
    let slowest = seconds.iter().copied().fold(0.0, f64::max);
    (n_threads * n_words * 8) as f64 / slowest
}

/// Eight sums at once, so that reading is what takes the time.
fn sum(words: &[u64]) -> u64 {
    let mut sums = [0_u64; 8];
    for line in words.chunks_exact(8) {
        for (sum, word) in sums.iter_mut().zip(line) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_bounds_follow_from_the_equation() {
        let first = Computer::published(22.0, 2.2e9);
        let second = Computer::published(4.0, 2.6e9);
        let millions = |it: f64| (it / 1e5).round() / 10.0;
        assert_eq!(millions(first.by_computation()), 52.3);
        assert_eq!(millions(second.by_computation()), 11.2);
        assert_eq!(millions(first.by_memory()), 95.9);
    }

    #[test]
    fn the_two_published_means_weight_data_differently() {
        let cycles = CYCLES.values.map(f64::from);
        let bytes = MEMORY_BYTES.values.map(f64::from);
        assert!((mean_with_all_data(cycles, 0.3) - 926.0).abs() < 0.1);
        assert!((mean_with_received_data(cycles, 0.3) - 989.7).abs() < 0.1);
        assert!((mean_with_all_data(bytes, 0.3) - 802.8).abs() < 0.1);
        assert!((mean_with_received_data(bytes, 0.3) - 800.5).abs() < 0.1);
    }

    #[test]
    fn all_words_are_read() {
        assert_eq!(sum(&[1, 2, 3, 4, 5, 6, 7, 8, 10, 0, 0, 0, 0, 0, 0, 0]), 46);
    }
}
