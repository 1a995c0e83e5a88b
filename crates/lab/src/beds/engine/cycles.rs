//! Time by the time-stamp counter: of whole bursts, and of their blocks.
//!
//! A border of two blocks costs a reading of the counter, and the reading waits for loads
//! that would otherwise overlap with what follows. The cost is measured and subtracted. The
//! lost overlap cannot be subtracted: so the whole is measured without borders, in every
//! other burst, and blocks show how it is divided.

use std::time::Instant;

use anyhow::{Context, ensure};
use tachonym_bench::stats::{Spread, median};
use tachonym_forward::Block;

use super::workload::Burst;
use super::{Bed, Kind, Listener, SendBuffer};
pub(crate) use crate::sys::clock::TICK;
use crate::sys::clock::now_ticks;

/// Blocks with their numbers, and 0 for none.
const N_BLOCKS: usize = Block::ALL.len() + 1;

/// A burst that takes more than this times the median was interrupted, and is left out.
const INTERRUPTED: f64 = 4.0;

/// How a tick relates to time, and what reading the clock costs.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Length of a tick in nanoseconds.
    pub tick_ns: f64,
    /// Ticks from one border to the next with nothing between them.
    pub border_ticks: f64,
    /// Ticks of a burst with nothing in it.
    pub burst_ticks: f64,
}

impl Clock {
    /// Measures it; takes some tens of milliseconds.
    #[must_use]
    pub fn measure() -> Self {
        const N_SAMPLES: usize = 201;
        const N_BORDERS: usize = 256;
        let (begun, begun_ticks) = (Instant::now(), now_ticks());
        let mut borders = Vec::new();
        let mut bursts = Vec::new();
        while borders.len() < N_SAMPLES || begun.elapsed().as_millis() < 20 {
            let mut stopwatch = Stopwatch::default();
            stopwatch.begin();
            for _ in 0..N_BORDERS / 2 {
                stopwatch.enter(std::hint::black_box(Block::FibLookup));
                stopwatch.enter(std::hint::black_box(Block::Strategy));
            }
            stopwatch.end();
            let n_ticks: u64 = stopwatch.ticks.iter().sum();
            borders.push(n_ticks as f64 / (N_BORDERS + 1) as f64);
            let mut whole = Whole::default();
            whole.begin();
            whole.end();
            bursts.push(whole.ticks as f64);
        }
        let elapsed_ticks = now_ticks() - begun_ticks;
        Self {
            tick_ns: begun.elapsed().as_nanos() as f64 / elapsed_ticks as f64,
            border_ticks: median(&borders),
            burst_ticks: median(&bursts),
        }
    }
}

/// Times a burst as a whole.
#[derive(Default)]
struct Whole {
    since: u64,
    ticks: u64,
}

impl Listener for Whole {
    #[inline(always)]
    fn begin(&mut self) {
        self.since = now_ticks();
    }

    #[inline(always)]
    fn end(&mut self) {
        self.ticks = now_ticks() - self.since;
    }
}

/// Times the blocks of a burst.
#[derive(Default)]
struct Stopwatch {
    current: usize,
    since: u64,
    ticks: [u64; N_BLOCKS],
    /// How often each block was left.
    n_borders: [u32; N_BLOCKS],
}

impl Stopwatch {
    #[inline(always)]
    fn turn_to(&mut self, block: usize) {
        let now = now_ticks();
        self.ticks[self.current] += now - self.since;
        self.n_borders[self.current] += 1;
        self.current = block;
        self.since = now;
    }
}

impl Listener for Stopwatch {
    #[inline(always)]
    fn begin(&mut self) {
        self.ticks = [0; N_BLOCKS];
        self.n_borders = [0; N_BLOCKS];
        self.current = 0;
        self.since = now_ticks();
    }

    #[inline(always)]
    fn enter(&mut self, block: Block) {
        self.turn_to(block as usize);
    }

    #[inline(always)]
    fn end(&mut self) {
        self.turn_to(0);
    }
}

/// Ticks per packet of one kind in one round.
#[derive(Clone, Debug)]
struct RoundTicks {
    /// Of bursts timed as a whole.
    whole: f64,
    /// By block, of bursts timed by block.
    blocks: [f64; N_BLOCKS],
}

/// What a round has measured.
#[derive(Clone, Debug, Default)]
struct Round {
    /// As in [`Kind::ALL`]; `None` if no burst of the kind was timed.
    kinds: [Option<RoundTicks>; Kind::ALL.len()],
    /// Bursts that were interrupted.
    n_left_out: usize,
    /// Bursts that were timed.
    n_timed: usize,
}

/// Ticks per packet of one kind, over rounds.
#[derive(Clone, Debug)]
pub struct KindTicks {
    /// Of bursts timed as a whole.
    pub whole: Spread,
    /// Of all blocks together: more than the whole by the overlap that borders prevent.
    pub all_blocks: Spread,
    /// Blocks that packets of the kind enter.
    pub blocks: Vec<(Block, Spread)>,
}

impl KindTicks {
    /// `None` without rounds.
    fn of(rounds: &[&RoundTicks]) -> Option<Self> {
        let spread_of = |figure: &dyn Fn(&RoundTicks) -> f64| {
            let figures: Vec<f64> = rounds.iter().map(|round| figure(round)).collect();
            Spread::of(&figures)
        };
        let mut blocks = Vec::new();
        for block in Block::ALL {
            let ticks = spread_of(&|round| round.blocks[block as usize])?;
            // A block that is never entered takes exactly nothing.
            if (ticks.min, ticks.max) != (0.0, 0.0) {
                blocks.push((block, ticks));
            }
        }
        Some(Self {
            whole: spread_of(&|round| round.whole)?,
            all_blocks: spread_of(&|round| round.blocks.iter().sum())?,
            blocks,
        })
    }

    /// Ticks per packet in a block; `None` if no packet of the kind enters it.
    #[must_use]
    pub fn block(&self, block: Block) -> Option<Spread> {
        let found = self.blocks.iter().find(|(it, _)| *it == block);
        found.map(|(_, ticks)| *ticks)
    }
}

/// Where the cycles of the packet path go in a bed.
#[derive(Clone, Debug)]
pub struct Cycles {
    /// The clock.
    pub clock: Clock,
    /// An Interest that misses.
    pub miss: KindTicks,
    /// An Interest that hits.
    pub hit: KindTicks,
    /// A Data.
    pub data: KindTicks,
    /// Data inserted by Data that came. Blocks are per packet: B12 per inserted Data is B12
    /// by this.
    pub insertion_ratio: f64,
    /// Bursts that were timed.
    pub n_bursts: usize,
    /// Of these, left out because they were interrupted.
    pub n_bursts_left_out: usize,
}

impl Cycles {
    /// Measures `n_bursts` of each kind, whole and by block, in each of `n_rounds` rounds,
    /// after a round that is not counted.
    ///
    /// # Errors
    /// If packets went another way than they should, or there is no round.
    pub fn measure(bed: &mut Bed, n_rounds: usize, n_bursts: usize) -> anyhow::Result<Self> {
        let clock = Clock::measure();
        // The first fills what comes late.
        run_round(bed, &clock, n_bursts.max(bed.n_late_bursts()));
        let (n_inserts, n_answered) = (bed.n_inserts(), bed.n_answered());
        let rounds: Vec<Round> = (0..n_rounds)
            .map(|_| run_round(bed, &clock, n_bursts))
            .collect();
        bed.check()?;
        let kinds = (0..Kind::ALL.len()).map(|idx| {
            let of_kind = rounds.iter().filter_map(|round| round.kinds[idx].as_ref());
            KindTicks::of(&of_kind.collect::<Vec<_>>()).context("no burst was timed")
        });
        let kinds: Vec<KindTicks> = kinds.collect::<anyhow::Result<_>>()?;
        let [miss, hit, data] = kinds.try_into().expect("as many as kinds");
        let n_data = bed.n_answered() - n_answered;
        ensure!(n_data > 0, "no Data came");
        Ok(Self {
            clock,
            miss,
            hit,
            data,
            insertion_ratio: (bed.n_inserts() - n_inserts) as f64 / n_data as f64,
            n_bursts: rounds.iter().map(|round| round.n_timed).sum(),
            n_bursts_left_out: rounds.iter().map(|round| round.n_left_out).sum(),
        })
    }

    /// What packets of a kind take.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> &KindTicks {
        match kind {
            Kind::Miss => &self.miss,
            Kind::Hit => &self.hit,
            Kind::Data => &self.data,
        }
    }

    /// Ticks of a block for a packet that enters it: the mean over the kinds of packet that
    /// do; `None` if none does. B10 and B12 are by the Data that comes, whether it is
    /// inserted or not.
    #[must_use]
    pub fn block(&self, block: Block) -> Option<f64> {
        let kinds = Kind::ALL.into_iter();
        let ticks: Vec<f64> = kinds
            .filter_map(|kind| Some(self.of(kind).block(block)?.median))
            .collect();
        (!ticks.is_empty()).then(|| ticks.iter().sum::<f64>() / ticks.len() as f64)
    }
}

/// Ticks of single bursts, overhead taken off, per packet.
#[derive(Default)]
struct Samples {
    whole: Vec<f64>,
    blocks: Vec<[f64; N_BLOCKS]>,
}

/// Carries `n_bursts` of each kind timed as a whole and as many timed by block,
/// in turns.
fn run_round(bed: &mut Bed, clock: &Clock, n_bursts: usize) -> Round {
    let mut samples: [Samples; Kind::ALL.len()] = Default::default();
    let mut whole = SendBuffer::new(Whole::default());
    let mut blocks = SendBuffer::new(Stopwatch::default());
    let mut burst = Burst::default();
    for i in 0..2 * n_bursts {
        // A Data comes after its Interest.
        for idx in [0, 2, 1] {
            let kind = Kind::ALL[idx];
            bed.write_burst(kind, &mut burst);
            if burst.is_empty() {
                continue;
            }
            let n_pkts = burst.len() as f64;
            if i % 2 == 0 {
                bed.carry(kind, &burst, &mut whole);
                let ticks = whole.listener.ticks as f64 - clock.burst_ticks;
                samples[idx].whole.push(ticks / n_pkts);
            } else {
                bed.carry(kind, &burst, &mut blocks);
                let Stopwatch {
                    ticks, n_borders, ..
                } = &blocks.listener;
                samples[idx].blocks.push(std::array::from_fn(|block| {
                    let borders = f64::from(n_borders[block]) * clock.border_ticks;
                    (ticks[block] as f64 - borders) / n_pkts
                }));
            }
        }
    }
    let mut round = Round::default();
    for (idx, samples) in samples.into_iter().enumerate() {
        let n_timed = samples.whole.len() + samples.blocks.len();
        let (whole, n_whole) =
            mean_of_uninterrupted(&samples.whole, |ticks| *ticks, |ticks| [*ticks]);
        let (blocks, n_blocks) =
            mean_of_uninterrupted(&samples.blocks, |ticks| ticks.iter().sum(), |ticks| *ticks);
        round.n_timed += n_timed;
        round.n_left_out += n_timed - n_whole - n_blocks;
        round.kinds[idx] = (n_whole > 0 && n_blocks > 0).then_some(RoundTicks {
            whole: whole[0],
            blocks,
        });
    }
    round
}

/// The mean over samples that were not interrupted, and how many these are.
fn mean_of_uninterrupted<T, const N: usize>(
    samples: &[T],
    sum: impl Fn(&T) -> f64,
    parts: impl Fn(&T) -> [f64; N],
) -> ([f64; N], usize) {
    let sums: Vec<f64> = samples.iter().map(&sum).collect();
    let limit = median(&sums) * INTERRUPTED;
    let kept = samples.iter().filter(|sample| sum(sample) <= limit);
    let mut mean = [0.0; N];
    let mut n_kept = 0;
    for sample in kept {
        n_kept += 1;
        for (mean, part) in mean.iter_mut().zip(parts(sample)) {
            *mean += part;
        }
    }
    mean.iter_mut()
        .for_each(|mean| *mean /= f64::from(n_kept.max(1)));
    (mean, n_kept as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_bursts_are_left_out_and_counted() {
        let samples = [[1.0, 3.0], [2.0, 2.0], [3.0, 1.0], [50.0, 9.0]];
        let sum = |sample: &[f64; 2]| sample[0] + sample[1];
        let (mean, n_kept) = mean_of_uninterrupted(&samples, sum, |sample| *sample);
        assert_eq!((mean, n_kept), ([2.0, 2.0], 3));
        let none: [[f64; 2]; 0] = [];
        assert_eq!(mean_of_uninterrupted(&none, sum, |s| *s).1, 0);
    }

    #[test]
    fn a_stopwatch_gives_every_tick_to_the_block_that_was_entered() {
        let mut stopwatch = Stopwatch::default();
        stopwatch.begin();
        stopwatch.enter(Block::FibLookup);
        stopwatch.enter(Block::Strategy);
        stopwatch.enter(Block::FibLookup);
        stopwatch.end();
        let left = |block: Block| stopwatch.n_borders[block as usize];
        assert_eq!((left(Block::FibLookup), left(Block::Strategy)), (2, 1));
        assert_eq!(stopwatch.n_borders.iter().sum::<u32>(), 4);
        assert_eq!(stopwatch.current, 0);
    }
}
