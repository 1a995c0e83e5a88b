//! PIT and content store with one index beside two: the question that Yuan 2015, section
//! 7.1.1, leaves open.
//!
//! Two engines that differ in nothing else carry the same packets in turns.

use std::time::Instant;

use anyhow::Context as _;
use tachonym_bench::stats::{Spread, median};
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells, cpu,
};
use tachonym_packet::HashKind;
use tachonym_tables::PitCsLayout;

use crate::beds::engine::workload::Burst;
use crate::beds::engine::{Bed, BedOptions, Kind as Packet, Listener, SendBuffer};
use crate::beds::fib::{PAGES_PARAM, page_choice};

/// The only one.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/pit-cs",
    title: "One index of PIT and content store beside an index of each",
    source: "Yuan 2015, section 7.1.1",
    cost: Cost::minutes(0.1, 5.0),
    needs: &[Need::HugePages, Need::MemoryGib(1.5, 8.0)],
    params: &[
        Param::count("prefixes", "prefixes in the FIB", ["100", "100k", "1M"]),
        Param::new(
            "store",
            "Data in the content store, which is full",
            ParamKind::Count {
                min: 256,
                max: 1 << 28,
            },
            ["1024", "262144", "1048576"],
        ),
        Param::new(
            "late",
            "bursts of Interests between a burst and its Data",
            ParamKind::Count {
                min: 0,
                max: 65_536,
            },
            ["8", "256", "2048"],
        ),
        Param::new(
            "packets",
            "packets of each kind in a round",
            ParamKind::Count {
                min: 64,
                max: 1 << 24,
            },
            ["256", "16384", "65536"],
        ),
        PAGES_PARAM,
        Param::rounds(["3", "31", "51"]),
        Param::seed(),
    ],
    run,
}];

/// Packets of a burst.
const BURST: usize = 32;

/// Times a burst.
#[derive(Default)]
struct Stopwatch {
    begun: Option<Instant>,
    elapsed_ns: f64,
}

impl Listener for Stopwatch {
    fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    fn end(&mut self) {
        let elapsed = self.begun.take().map(|begun| begun.elapsed());
        self.elapsed_ns = elapsed.unwrap_or_default().as_nanos() as f64;
    }
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let (pinned, record) = cpu::on_pinned_thread(|| measure(context));
    let mut record = record?;
    record.note(cpu::note(&[pinned]));
    Ok(record)
}

fn measure(context: &Context) -> anyhow::Result<Record> {
    let bed_of = |layout| {
        Bed::new(BedOptions {
            n_prefixes: context.count("prefixes"),
            burst_pkts: BURST,
            store_pkts: context.size("store"),
            late_bursts: context.size("late"),
            seed: context.seed(),
            name_hash: HashKind::fastest(),
            pit_cs: layout,
            pages: page_choice(context.text("pages")).into(),
            ..BedOptions::default()
        })
    };
    let layouts = PitCsLayout::ALL;
    let mut beds = [bed_of(layouts[0])?, bed_of(layouts[1])?];
    let n_bursts = context.size("packets").div_ceil(BURST);
    for bed in &mut beds {
        // Until as many Interests are pending as in the rounds.
        round(bed, n_bursts.max(context.size("late") + 1));
    }
    let rounds = rotated(beds.len(), context.rounds(), |idx, _| {
        Ok(round(&mut beds[idx], n_bursts))
    })?;
    for bed in &beds {
        bed.check()?;
    }
    let mut record = Record::new(Kind::Measured);
    let mut table = Table::new("", ["packet", "index", "ns a packet", "ratio to separate"]);
    let packets = Packet::ALL.map(Packet::label);
    let mut chart = Chart::bars("Time of a packet", packets, "nanoseconds");
    let separate = layouts.iter().position(|it| *it == PitCsLayout::Separate);
    let separate = separate.context("one of the layouts")?;
    for (of_packet, label) in packets.into_iter().enumerate() {
        let of_layout =
            |idx: usize| -> Vec<f64> { rounds[idx].iter().map(|round| round[of_packet]).collect() };
        for (idx, layout) in layouts.into_iter().enumerate() {
            let ns = of_layout(idx);
            let spread = Spread::of(&ns).context("no round")?;
            let ratio = Spread::of_ratios(&ns, &of_layout(separate));
            table.row(cells![label, layout.as_str(), spread, ratio]);
            chart.point(layout.as_str(), of_packet as f64, spread.median);
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    let n_pending = context.size("late") * BURST;
    record.note(format!(
        "{n_pending} Interests are pending when a Data comes. The engine does the same with \
         both; the order of work in a burst is the default one. A round's time is the median of \
         its bursts. Nothing is published to compare."
    ));
    Ok(record)
}

/// Nanoseconds a packet of each kind, in the order of [`Packet::ALL`]: the median of the
/// bursts, since some are interrupted.
fn round(bed: &mut Bed, n_bursts: usize) -> [f64; 3] {
    let mut burst = Burst::default();
    let mut times = [const { Vec::new() }; 3];
    let mut out = SendBuffer::new(Stopwatch::default());
    for _ in 0..n_bursts {
        // Data after the Interests: each of them misses.
        for kind in [Packet::Miss, Packet::Data, Packet::Hit] {
            bed.write_burst(kind, &mut burst);
            if burst.is_empty() {
                continue;
            }
            bed.carry(kind, &burst, &mut out);
            let idx = Packet::ALL.iter().position(|it| *it == kind);
            let ns = out.listener.elapsed_ns / burst.len() as f64;
            times[idx.expect("one of all")].push(ns);
        }
    }
    times.map(|times| median(&times))
}
