//! The process that is counted: it builds a bed, tells when to begin, and
//! leaves word of where it is in a page that the counting one reads.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::Context;
use rustix::process::{Signal, getpid, kill_process};
use tachonym_forward::Block;

use super::CountOptions;
use crate::beds::engine::workload::Burst;
use crate::beds::engine::{Bed, Kind, Listener, SendBuffer};
use crate::sys::page::{PAGE_BYTES, SharedPage};

/// Byte of the page with the [`place`] of the burst in progress.
pub(super) const PLACE_AT: usize = 0;
/// Byte of the page with the block entered last.
pub(super) const BLOCK_AT: usize = 1;

/// Between two bursts: nothing counts.
pub(super) const NOWHERE: u8 = 0;

/// Packets of each kind before the count: so many that the store has measured which names
/// are popular for a while, of which it notes each until it has some thousands.
const N_WARM_UP_PKTS: usize = 1 << 18;

/// What the page says during a burst: what it carries, and whether it tells its
/// blocks, which takes instructions of its own.
pub(super) fn place(kind: Kind, tells_blocks: bool) -> u8 {
    let idx = Kind::ALL.iter().position(|&k| k == kind);
    let idx = idx.expect("all kinds are among all kinds") as u8;
    1 + 2 * idx + u8::from(tells_blocks)
}

/// How many places there are, [`NOWHERE`] included.
pub(super) const N_PLACES: usize = 1 + 2 * Kind::ALL.len();

/// Writes into the page where a burst is.
struct Teller<'a, const TELLS_BLOCKS: bool> {
    page: &'a [AtomicU8; PAGE_BYTES],
    place: u8,
}

impl<const TELLS_BLOCKS: bool> Listener for Teller<'_, TELLS_BLOCKS> {
    #[inline(always)]
    fn begin(&mut self) {
        if TELLS_BLOCKS {
            // The last burst's last block has nothing to do with this one.
            self.page[BLOCK_AT].store(0, Ordering::Relaxed);
        }
        self.page[PLACE_AT].store(self.place, Ordering::Relaxed);
    }

    #[inline(always)]
    fn enter(&mut self, block: Block) {
        if TELLS_BLOCKS {
            self.page[BLOCK_AT].store(block as u8, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn end(&mut self) {
        self.page[PLACE_AT].store(NOWHERE, Ordering::Relaxed);
    }
}

/// Builds the bed, stops, carries what is to be counted, and stops again.
///
/// # Errors
/// If the page cannot be mapped or the bed not be built, or packets went
/// another way than they should.
pub(super) fn run(page: &Path, options: &CountOptions) -> anyhow::Result<()> {
    let file = File::options().read(true).write(true).open(page);
    let file = file.with_context(|| format!("cannot open {}", page.display()))?;
    let page = SharedPage::map(&file).context("cannot map the page")?;
    let mut bed = Bed::new(options.bed())?;
    let mut plain = SendBuffer::new(Teller::<false> {
        page: page.bytes(),
        place: NOWHERE,
    });
    let mut telling = SendBuffer::new(Teller::<true> {
        page: page.bytes(),
        place: NOWHERE,
    });
    for _ in 0..(N_WARM_UP_PKTS / 2).div_ceil(options.burst_pkts) {
        let round = write_round(&mut bed);
        carry(&mut bed, &round, &mut plain);
        let round = write_round(&mut bed);
        carry(&mut bed, &round, &mut telling);
    }
    // Writing packets would take most of the time, and is not what counts.
    let n_rounds = options.n_rounds();
    let for_total = write_rounds(&mut bed, n_rounds);
    let for_blocks = write_rounds(&mut bed, n_rounds);
    stop()?;
    for_total
        .iter()
        .for_each(|bursts| carry(&mut bed, bursts, &mut plain));
    for_blocks
        .iter()
        .for_each(|bursts| carry(&mut bed, bursts, &mut telling));
    stop()?;
    bed.check()
}

/// A burst of each kind, in the order in which they are carried.
type Round = Vec<(Kind, Burst)>;

fn write_round(bed: &mut Bed) -> Round {
    // A Data must come after its Interest.
    [Kind::Miss, Kind::Data, Kind::Hit]
        .into_iter()
        .map(|kind| {
            let mut burst = Burst::default();
            bed.write_burst(kind, &mut burst);
            (kind, burst)
        })
        .collect()
}

fn write_rounds(bed: &mut Bed, n_rounds: usize) -> Vec<Round> {
    (0..n_rounds).map(|_| write_round(bed)).collect()
}

fn carry<const TELLS_BLOCKS: bool>(
    bed: &mut Bed,
    bursts: &Round,
    out: &mut SendBuffer<Teller<'_, TELLS_BLOCKS>>,
) {
    for (kind, burst) in bursts {
        out.listener.place = place(*kind, TELLS_BLOCKS);
        bed.carry(*kind, burst, out);
    }
}

/// Waits for whoever counts.
fn stop() -> anyhow::Result<()> {
    kill_process(getpid(), Signal::STOP).context("stop")
}
