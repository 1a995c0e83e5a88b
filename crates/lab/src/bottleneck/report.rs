//! What `tachonym-lab bottleneck` prints.

use std::fmt;

use serde::Serialize;
use tachonym_forward::Block;

use super::counters::Counted;
use super::published;
use crate::engine_bed::Kind;
use crate::instructions::{self, PerPacket};
use crate::stats::Spread;

/// Where the cycles of the packet path go.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BottleneckReport {
    /// Prefixes in the FIB.
    pub n_fib_prefixes: u64,
    /// Packets of a burst.
    pub burst_pkts: usize,
    /// Data in the content store.
    pub n_store_pkts: u32,
    /// Bursts of Interests that left before the Data of one came back.
    pub n_late_bursts: u32,
    /// What a tick is.
    pub tick: &'static str,
    /// Length of a tick in nanoseconds.
    pub tick_ns: f64,
    /// Ticks that each border of blocks cost, which have been taken off.
    pub border_ticks: f64,
    /// Bursts that were timed.
    pub n_bursts: usize,
    /// Of these, left out because they were interrupted.
    pub n_bursts_left_out: usize,
    /// What packets of each kind take.
    pub kinds: Vec<KindReport>,
    /// Whether instructions were counted.
    pub instructions: Instructions,
    /// The processor's counters.
    pub counters: Vec<Counted>,
    /// Why there are none, if so.
    pub no_counters: Option<String>,
    /// Packets per second that follow.
    pub throughput: Throughput,
}

/// Whether instructions were counted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Instructions {
    /// By stepping, with so many prefixes in the FIB.
    Counted {
        /// Prefixes in the FIB.
        n_fib_prefixes: u64,
    },
    /// They were not to be.
    NotAsked,
    /// This machine does not allow it.
    Unavailable {
        /// Why, in one line.
        reason: String,
    },
}

/// What packets of one kind take.
#[derive(Clone, Debug, Serialize)]
pub(super) struct KindReport {
    /// As in the published tables.
    pub kind: &'static str,
    /// Ticks per packet, whole bursts.
    pub ticks: Spread,
    /// The median in nanoseconds.
    pub ns: f64,
    /// Ticks per packet, all blocks together: more than the whole by what could
    /// not overlap because of the borders.
    pub ticks_by_blocks: Spread,
    /// By block.
    pub blocks: Vec<BlockReport>,
    /// Instructions per packet.
    pub instructions: Option<PerPacket>,
    /// Cycles per packet in Table 3.1.
    pub published_cycles: u32,
}

/// What one block of a kind takes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BlockReport {
    /// Its number in Figures 5.1 and 5.2.
    pub number: Option<u8>,
    /// The block, with its number.
    pub block: String,
    /// Ticks per packet.
    pub ticks: Spread,
    /// The median in nanoseconds.
    pub ns: f64,
    /// Instructions per packet.
    pub instructions: Option<PerPacket>,
    /// Cycles in Table 5.1, or their span over cache algorithms in Table 5.2.
    pub published_cycles: Option<&'static str>,
}

/// Packets per second as computation bounds them (equation 3.1: N F / C).
#[derive(Clone, Debug, Serialize)]
pub(super) struct Throughput {
    /// Share of Interests that hit.
    pub hit_share: f64,
    /// Ticks per packet at that share: an Interest that hits counts as two
    /// packets, itself and the Data that goes back.
    pub mean_ticks: f64,
    /// Nanoseconds per packet.
    pub mean_ns: f64,
    /// Packets per second of one core.
    pub pkts_per_s: f64,
    /// Packets per second of 22 such cores.
    pub pkts_per_s_22_cores: f64,
    /// Nanoseconds of a miss with its Data.
    pub exchange_ns: f64,
}

impl Throughput {
    /// From the medians of each kind, in the order of [`Kind::ALL`].
    pub(super) fn of(kinds: &[KindReport], tick_ns: f64) -> Self {
        let ticks = |kind: Kind| {
            let found = kinds.iter().find(|k| k.kind == kind.label());
            found.map_or(f64::NAN, |found| found.ticks.median)
        };
        let hit_share = published::HIT_SHARE;
        let mean_ticks = mean_per_packet(
            hit_share,
            ticks(Kind::Miss),
            ticks(Kind::Hit),
            ticks(Kind::Data),
        );
        let mean_ns = mean_ticks * tick_ns;
        let pkts_per_s = 1e9 / mean_ns;
        Self {
            hit_share,
            mean_ticks,
            mean_ns,
            pkts_per_s,
            pkts_per_s_22_cores: published::N_CORES * pkts_per_s,
            exchange_ns: (ticks(Kind::Miss) + ticks(Kind::Data)) * tick_ns,
        }
    }
}

/// The mean as the thesis has it: half of the packets are Interests, of which a
/// share hits, and the other half are Data.
fn mean_per_packet(hit_share: f64, miss: f64, hit: f64, data: f64) -> f64 {
    (hit_share * hit + (1.0 - hit_share) * miss + data) / 2.0
}

impl BottleneckReport {
    /// Blocks of the figures that no packet entered, by title: the engine does not
    /// do, or not tell apart, what they stand for.
    fn unseen_blocks(&self) -> Vec<String> {
        let is_seen = |title: &String| {
            let mut blocks = self.kinds.iter().flat_map(|kind| &kind.blocks);
            blocks.any(|block| block.block == *title)
        };
        let numbered = Block::ALL.into_iter().filter(|b| b.number().is_some());
        let titles = numbered.map(instructions::title);
        titles.filter(|title| !is_seen(title)).collect()
    }
}

impl fmt::Display for BottleneckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = match self.n_late_bursts {
            0 => "right after their burst".to_owned(),
            n => format!("{n} bursts later"),
        };
        writeln!(
            f,
            "{} prefixes of 4 components, names of 7, Data of 128 bytes; {} Data cached; bursts \
             of {}, Data come {late}",
            self.n_fib_prefixes, self.n_store_pkts, self.burst_pkts
        )?;
        writeln!(
            f,
            "one {} is {:.3} ns; {:.0} taken off for each border of blocks; {} of {} bursts left \
             out as interrupted",
            self.tick, self.tick_ns, self.border_ticks, self.n_bursts_left_out, self.n_bursts
        )?;
        match &self.instructions {
            Instructions::Counted { n_fib_prefixes } => writeln!(
                f,
                "instructions: by stepping, {n_fib_prefixes} prefixes; in brackets the C library's"
            )?,
            Instructions::NotAsked => {}
            Instructions::Unavailable { reason } => {
                writeln!(f, "instructions cannot be counted: {reason}")?;
            }
        }
        writeln!(
            f,
            "published: cycles of a Xeon E5-2699 v4 at 2.2 GHz (Takemasa 2019, Tables 3.1, 5.1, \
             5.2); blocks numbered as in Figures 5.1 and 5.2"
        )?;
        let unseen = self.unseen_blocks();
        if !unseen.is_empty() {
            writeln!(f, "never entered: {}", unseen.join(", "))?;
        }
        for kind in &self.kinds {
            write_kind(f, kind)?;
        }
        write_counters(f, &self.counters, self.no_counters.as_deref())?;
        self.throughput.fmt(f)
    }
}

fn write_kind(f: &mut fmt::Formatter<'_>, kind: &KindReport) -> fmt::Result {
    writeln!(
        f,
        "\n{:<24}{:>22}{:>8}{:>18}{:>11}",
        kind.kind, "ticks (p10-p90)", "ns", "instructions", "published"
    )?;
    for block in &kind.blocks {
        let (ticks, ns) = (&block.ticks, block.ns);
        let published = block.published_cycles.unwrap_or("");
        write_row(
            f,
            &block.block,
            ticks,
            ns,
            block.instructions.as_ref(),
            published,
        )?;
    }
    let per_ns = kind.ns / kind.ticks.median;
    let sum_ns = kind.ticks_by_blocks.median * per_ns;
    write_row(f, "all blocks", &kind.ticks_by_blocks, sum_ns, None, "")?;
    let published = kind.published_cycles.to_string();
    write_row(
        f,
        "without borders",
        &kind.ticks,
        kind.ns,
        kind.instructions.as_ref(),
        &published,
    )
}

fn write_row(
    f: &mut fmt::Formatter<'_>,
    label: &str,
    ticks: &Spread,
    ns: f64,
    instructions: Option<&PerPacket>,
    published: &str,
) -> fmt::Result {
    let ticks = format!("{:.0} ({:.0}-{:.0})", ticks.median, ticks.p10, ticks.p90);
    let instructions = instructions.map_or(String::new(), |count| {
        format!("{:.0} ({:.0})", count.own, count.library)
    });
    writeln!(
        f,
        "  {label:<22}{ticks:>22}{ns:>8.1}{instructions:>18}{published:>11}"
    )
}

fn write_counters(
    f: &mut fmt::Formatter<'_>,
    counters: &[Counted],
    refusal: Option<&str>,
) -> fmt::Result {
    if let Some(refusal) = refusal {
        return writeln!(
            f,
            "\nthis machine has no hardware counters ({refusal}): no stall categories, IPC or \
             cache misses"
        );
    }
    writeln!(
        f,
        "\n{:<26}{:>20}{:>20}{:>20}",
        "counters, per packet", "I-miss (published)", "I-hit (published)", "Data (published)"
    )?;
    for counted in counters {
        write!(f, "  {:<24}", counted.event)?;
        for (figure, published) in counted.per_packet.iter().zip(counted.published) {
            let figure = figure.map_or("-".to_owned(), |figure| format!("{figure:.1}"));
            let published = published.map_or(String::new(), |cycles| format!(" ({cycles})"));
            write!(f, "{:>20}", format!("{figure}{published}"))?;
        }
        writeln!(f)?;
    }
    let find = |event: &str| counters.iter().find(|counted| counted.event == event);
    let of = |event: &str, kind_idx: usize| find(event)?.per_packet[kind_idx];
    write!(f, "  {:<24}", "cycles not stalled")?;
    for (idx, kind) in Kind::ALL.into_iter().enumerate() {
        let busy = of("cycles", idx)
            .zip(of("cycles stalled, frontend", idx))
            .zip(of("cycles stalled, backend", idx))
            .map(|((all, frontend), backend)| format!("{:.1}", all - frontend - backend));
        let of = published::of(kind);
        let busy = busy.unwrap_or("-".to_owned());
        let published = of.speculation + of.retirement;
        write!(f, "{:>20}", format!("{busy} ({published})"))?;
    }
    write!(f, "\n  {:<24}", "instructions per cycle")?;
    for idx in 0..Kind::ALL.len() {
        let ipc = of("cycles", idx).zip(of("instructions", idx));
        let ipc = ipc.map(|(cycles, instructions)| format!("{:.2}", instructions / cycles));
        write!(f, "{:>20}", ipc.unwrap_or("-".to_owned()))?;
    }
    writeln!(f)
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let published_core = published::CORE_HZ / published::MEAN_CYCLES / 1e6;
        writeln!(
            f,
            "\nat {:.0} % hits a packet takes {:.0} ticks ({:.0} ns); published {:.0} cycles",
            self.hit_share * 100.0,
            self.mean_ticks,
            self.mean_ns,
            published::MEAN_CYCLES
        )?;
        writeln!(
            f,
            "N F / C: {:.2} million packets/s a core, {:.1} with 22; published {published_core:.2} \
             and {:.1}",
            self.pkts_per_s / 1e6,
            self.pkts_per_s_22_cores / 1e6,
            published_core * published::N_CORES
        )?;
        write!(
            f,
            "a miss and its Data: {:.0} ns in memory",
            self.exchange_ns
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_cycles_give_the_published_mean() {
        let of = |kind| f64::from(published::of(kind).cycles);
        let mean = mean_per_packet(
            published::HIT_SHARE,
            of(Kind::Miss),
            of(Kind::Hit),
            of(Kind::Data),
        );
        // The tables are rounded.
        assert!((mean - published::MEAN_CYCLES).abs() < 1.0, "{mean}");
    }
}
