//! Time by the time-stamp counter: of whole bursts, and of their blocks.
//!
//! A border of two blocks costs a reading of the counter, and it waits for loads
//! that would else overlap with what follows. The cost is measured and taken off.
//! The lost overlap cannot be: so the whole is measured without borders, in
//! every other burst, and blocks say how it is shared out.

use std::time::Instant;

use tachonym_forward::Block;

use crate::engine_bed::workload::Burst;
use crate::engine_bed::{Bed, Kind, Listener, SendBuffer};
use crate::sys::clock::now_ticks;

/// Blocks with their numbers, and 0 for none.
pub(super) const N_BLOCKS: usize = Block::ALL.len() + 1;

/// A burst that takes more times the median than this was interrupted, and is left
/// out.
const INTERRUPTED: f64 = 4.0;

/// How a clock's tick relates to time, and what reading it costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Length of a tick in nanoseconds.
    pub(super) tick_ns: f64,
    /// Ticks from one border to the next with nothing between them.
    pub(super) border_ticks: f64,
    /// Ticks of a burst with nothing in it.
    pub(super) burst_ticks: f64,
}

impl Clock {
    /// Measures it; takes some tens of milliseconds.
    pub(super) fn measure() -> Self {
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
            border_ticks: median(&mut borders),
            burst_ticks: median(&mut bursts),
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
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
pub(super) struct RoundTicks {
    /// Of bursts timed as a whole.
    pub(super) whole: f64,
    /// By block, of bursts timed by block.
    pub(super) blocks: [f64; N_BLOCKS],
}

/// What a round has brought.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// As in [`Kind::ALL`]; `None` if no burst of the kind was timed.
    pub(super) kinds: [Option<RoundTicks>; Kind::ALL.len()],
    /// Bursts that were interrupted.
    pub(super) n_left_out: usize,
    /// Bursts that were timed.
    pub(super) n_timed: usize,
}

/// Ticks of single bursts, overhead taken off, per packet.
#[derive(Default)]
struct Samples {
    whole: Vec<f64>,
    blocks: Vec<[f64; N_BLOCKS]>,
}

/// Carries `n_bursts` of each kind timed as a whole and as many timed by block,
/// in turns.
pub(super) fn run_round(bed: &mut Bed, clock: &Clock, n_bursts: usize) -> Round {
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
    let mut sums: Vec<f64> = samples.iter().map(&sum).collect();
    let limit = median(&mut sums) * INTERRUPTED;
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
