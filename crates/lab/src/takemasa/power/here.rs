//! Cycles of the blocks of the packet path measured here, in the router's own engine, for the
//! case study.

use tachonym_bench::stats::Spread;
use tachonym_bench::{Context, Param, ParamKind, Record};
use tachonym_dispatch::power::load::{Blocks, N_BLOCKS, Store};
use tachonym_forward::{Block, Schedule};
use tachonym_packet::HashKind;

use super::super::bottleneck_counters::{self as counters, Counted};
use crate::beds::engine::cycles::{Cycles, TICK};
use crate::beds::engine::params::PACKETS;
use crate::beds::engine::{Bed, BedOptions, Kind, policy};

pub(super) const PARAMS: [Param; 7] = [
    Param::choice(
        "cycles",
        "whether cycles measured here are shown beside the published ones",
        &["both", "published"],
        "both",
    ),
    Param::choice(
        "schedule",
        "order of work in a burst of the optimised router here",
        &["naive", "bucket-prefetch", "pre-hash", "shtl", "burst"],
        "burst",
    ),
    Param::count(
        "prefixes",
        "prefixes in the FIB of the router here; the published measurement has 13548815",
        ["2k", "1M", "1M"],
    ),
    Param::new(
        "store",
        "Data in the content store of the router here, which is full",
        ParamKind::Count {
            min: 4_096,
            max: 1 << 28,
        },
        ["4096", "100k", "100k"],
    ),
    PACKETS,
    Param::rounds(["2", "11", "31"]),
    Param::seed(),
];

/// Cycles of a router's blocks, and of the clock that they were measured by.
pub(super) struct Measured {
    pub(super) cycles: Blocks,
    tick_ns: f64,
    /// Whether the processor's own counter has the cycles of whole packets.
    is_counted: bool,
}

/// Cycles of the naive router and of the optimised one, each with the store of the case
/// study. `None` if only published cycles are shown.
///
/// # Errors
/// If the tables cannot be built.
pub(super) fn measure(
    context: &Context,
    [naive, optimised]: [Store; 2],
    record: &mut Record,
) -> anyhow::Result<Option<[Measured; 2]>> {
    if context.text("cycles") == "published" {
        return Ok(None);
    }
    let schedule: Schedule = context.text("schedule").parse()?;
    let measured = [
        router(context, Schedule::Naive, "fifo", naive)?,
        router(context, schedule, "filter/fifo", optimised)?,
    ];
    let Measured {
        tick_ns,
        is_counted,
        ..
    } = measured[0];
    let clock = if is_counted {
        "Cycles of whole packets are those of the processor's counter, divided among blocks"
    } else {
        "Cycles are those of the time-stamp counter"
    };
    record.note(format!(
        "Cycles here: this router's engine on this machine, naive without prefetching and with \
         FIFO, optimised with the schedule {} and Filter. {clock} (one {TICK} is {tick_ns:.3} ns: \
         {:.2} GHz). They are taken for cycles of server 2, whose watts the model has; of this \
         machine no watts are known.",
        context.text("schedule"),
        1.0 / tick_ns,
    ));
    record.note(
        "Filter has the threshold 1 while cycles are measured, so that every Data is inserted and \
         B10 has its cost (medians over rounds); the share of insertions is that of the parameters. What the published \
         router has no block for (checks, strategy, timers, prefetching) is in B1 for an Interest \
         and in B8 for a Data, the eviction of the optimised router in B10. Blocks are scaled such \
         that they add up to the packet measured as a whole.",
    );
    Ok(Some(measured))
}

fn router(
    context: &Context,
    schedule: Schedule,
    name: &str,
    store: Store,
) -> anyhow::Result<Measured> {
    let mut policy = policy(name)?;
    policy.threshold = 1;
    let options = BedOptions {
        n_prefixes: context.count("prefixes"),
        store_pkts: context.size("store"),
        seed: context.seed(),
        name_hash: HashKind::fastest(),
        schedule,
        policy,
        ..BedOptions::default()
    };
    let n_bursts = context.size("packets").div_ceil(options.burst_pkts);
    let mut bed = Bed::new(options)?;
    let measured = Cycles::measure(&mut bed, context.rounds(), n_bursts)?;
    let counted = counters::count(&mut bed, n_bursts).ok();
    bed.check()?;
    let counted = counted.and_then(counted_cycles);
    Ok(Measured {
        cycles: blocks(&measured, counted, store),
        tick_ns: measured.clock.tick_ns,
        is_counted: counted.is_some(),
    })
}

/// Cycles of each kind of packet, if all were counted.
fn counted_cycles(counted: [Counted; 3]) -> Option<[f64; 3]> {
    let [miss, hit, data] = counted.map(|it| it.cycles);
    Some([miss?, hit?, data?])
}

/// Cycles of a block where it runs, such that an exchange takes what was measured of whole
/// packets by the hits of `store`, if every Data is inserted.
fn blocks(cycles: &Cycles, counted: Option<[f64; 3]>, store: Store) -> Blocks {
    let (hits, admits) = (store.hits(), matches!(store, Store::Admits { .. }));
    let mut taken = [0.0; N_BLOCKS];
    for (idx, kind) in Kind::ALL.into_iter().enumerate() {
        let share = match kind {
            Kind::Hit => hits,
            Kind::Miss | Kind::Data => 1.0 - hits,
        };
        let of_kind = cycles.of(kind);
        // A block that takes less than its border is measured as less than nothing.
        let ticks = |it: &(Block, Spread)| it.1.median.max(0.0);
        let all: f64 = of_kind.blocks.iter().map(ticks).sum();
        let whole = counted.map_or(of_kind.whole.median, |it| it[idx]);
        for it in &of_kind.blocks {
            let n = match (it.0.number(), kind) {
                (Some(12), _) if admits => 10,
                (Some(13), _) if !admits => 10,
                (Some(n), _) => n,
                (None, Kind::Data) => 8,
                (None, Kind::Hit | Kind::Miss) => 1,
            };
            taken[usize::from(n) - 1] += share * ticks(it) * whole / all;
        }
    }
    let all_inserted = match store {
        Store::AdmitsAll { .. } => store,
        Store::Admits { hits, .. } => Store::Admits {
            hits,
            insertions: cycles.insertion_ratio,
        },
    };
    let runs = all_inserted.runs();
    Blocks(std::array::from_fn(|idx| match runs[idx] {
        0.0 => 0.0,
        runs => taken[idx] / runs,
    }))
}
