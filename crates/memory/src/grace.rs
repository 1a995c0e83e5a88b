//! When what a writer has unlinked may be used again, though readers take no
//! lock: periods of grace.
//!
//! Readers say when they begin and end a walk through shared tables; the writer
//! unlinks an entry, begins a new [`Era`], and may give the entry another meaning
//! once no reader is left that began before. Nothing is counted per entry, and
//! nothing is freed here: it is the writer that keeps, per era, the numbers of
//! what it unlinked. The scheme is that of Fraser, "Practical lock-freedom", 2004,
//! section 5.2.3, with as many eras as there are, and with readers only.
//!
//! A table that grows into an array of its own needs none of this: arrays that
//! readers hold by `Arc` go with the last of them.
//!
//! ```
//! use tachonym_memory::grace::Domain;
//!
//! let domain = Domain::new();
//! let mut reader = domain.reader();
//! let pin = reader.pin();
//! // The writer unlinks something that the reader may be looking at.
//! let era = domain.advance();
//! assert!(!domain.is_over(era));
//! drop(pin);
//! assert!(domain.is_over(era));
//! ```

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError};

use crate::sync::{AtomicU64, Mutex, Ordering, back_off, fence};

/// What a reader's slot holds while it does not read. Eras begin after it.
const IDLE: u64 = 0;

/// A value with cache lines of its own: two of 64 bytes, for processors fetch the
/// neighbour, too.
#[repr(align(128))]
struct Apart<T>(T);

const _: () = assert!(align_of::<Apart<u64>>() == 128 && size_of::<Apart<u64>>() == 128);

/// The era that a reader was in when it began to read, or [`IDLE`].
type Slot = Apart<AtomicU64>;

/// Readers of the same tables, and the writer that waits for them.
pub struct Domain {
    era: Apart<AtomicU64>,
    /// Where each reader says that it reads. Readers lock it to come and to go
    /// only, so a slot that is not in it belongs to nobody who reads.
    slots: Mutex<Vec<Arc<Slot>>>,
}

/// Who reads, one walk at a time. It belongs to one thread at a time.
pub struct Reader {
    domain: Arc<Domain>,
    slot: Arc<Slot>,
}

/// A walk through shared tables. What it can reach keeps its meaning until this
/// is dropped.
#[must_use = "tables may be read only while it lives"]
pub struct Pin<'a> {
    slot: &'a Slot,
    /// A walk ends on the thread that began it: it is neither `Send` nor `Sync`.
    _thread: PhantomData<*const ()>,
}

/// A time of unlinking. Eras are ordered: one that is over has only ended ones
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Era(u64);

impl Domain {
    /// A domain without readers.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            era: Apart(AtomicU64::new(IDLE + 1)),
            slots: Mutex::new(Vec::new()),
        })
    }

    /// Registers a reader, until it is dropped. There may be any number; a writer
    /// looks at each of them whenever it asks whether an era is over.
    pub fn reader(self: &Arc<Self>) -> Reader {
        let slot = Arc::new(Apart(AtomicU64::new(IDLE)));
        self.with_slots(|slots| slots.push(Arc::clone(&slot)));
        Reader {
            domain: Arc::clone(self),
            slot,
        }
    }

    /// Ends an era and begins the next. What this thread, and whoever told it,
    /// unlinked before is out of every reader's reach once the result
    /// [is over](Self::is_over).
    pub fn advance(&self) -> Era {
        // Pairs with the fence of `pin`. One of the two comes first:
        // - this one: then the reader finds nothing that was unlinked before;
        // - the reader's: then its slot is seen by whoever asks after this, and
        //   holds an older era, for the new one is not there yet.
        fence(Ordering::SeqCst);
        Era(self.era.0.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Whether every reader is idle or began to read in `era` or later. To be
    /// asked by the thread that [advanced](Self::advance), or one that it told.
    #[must_use]
    pub fn is_over(&self, era: Era) -> bool {
        self.with_slots(|slots| {
            slots.iter().all(|slot| {
                // Acquire: pairs with the releases of `pin` and of its end, so
                // that what was read comes before what the caller does next.
                let began = slot.0.load(Ordering::Acquire);
                began == IDLE || began >= era.0
            })
        })
    }

    /// Returns when `era` is over. A reader that never ends its walk, on the
    /// calling thread in particular, makes this wait for ever.
    pub fn wait(&self, era: Era) {
        let mut n_asked = 0;
        while !self.is_over(era) {
            back_off(n_asked);
            n_asked += 1;
        }
    }

    fn with_slots<T>(&self, work: impl FnOnce(&mut Vec<Arc<Slot>>) -> T) -> T {
        // Nothing panics between two states of the list.
        let slots = self.slots.lock();
        let mut slots = slots.unwrap_or_else(PoisonError::into_inner);
        work(&mut slots)
    }
}

impl Reader {
    /// Begins a walk: one store and one fence, whatever other threads do.
    #[inline]
    pub fn pin(&mut self) -> Pin<'_> {
        let era = self.domain.era.0.load(Ordering::Relaxed);
        // Release: a writer that sees this and not the end of the walk before
        // must see that walk's reads as done all the same.
        self.slot.0.store(era, Ordering::Release);
        // Pairs with the fence of `advance`, as said there.
        fence(Ordering::SeqCst);
        Pin {
            slot: &self.slot,
            _thread: PhantomData,
        }
    }

    /// The domain that it reads in.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let own = &self.slot;
        self.domain
            .with_slots(|slots| slots.retain(|slot| !Arc::ptr_eq(slot, own)));
    }
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.0.store(IDLE, Ordering::Release);
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_readers = self.with_slots(|slots| slots.len());
        let era = self.era.0.load(Ordering::Relaxed);
        f.debug_struct("Domain")
            .field("era", &era)
            .field("n_readers", &n_readers)
            .finish()
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("domain", &self.domain)
            .finish()
    }
}

impl fmt::Debug for Pin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let era = self.slot.0.load(Ordering::Relaxed);
        f.debug_tuple("Pin").field(&era).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn era_is_over_when_those_who_began_before_have_ended() {
        let domain = Domain::new();
        assert!(domain.is_over(domain.advance()));
        let (mut first, mut second) = (domain.reader(), domain.reader());
        let of_first = first.pin();
        let before = domain.advance();
        let of_second = second.pin();
        assert!(!domain.is_over(before));
        let after = domain.advance();
        assert!(before < after);
        drop(of_first);
        assert!(domain.is_over(before));
        assert!(!domain.is_over(after));
        drop(of_second);
        assert!(domain.is_over(after));
    }

    #[test]
    fn later_walks_of_a_reader_do_not_hold_an_era() {
        let domain = Domain::new();
        let mut reader = domain.reader();
        let era = domain.advance();
        for _ in 0..3 {
            let _pin = reader.pin();
            assert!(domain.is_over(era));
        }
    }

    #[test]
    fn reader_that_is_gone_holds_nothing() {
        let domain = Domain::new();
        let mut reader = domain.reader();
        std::mem::forget(reader.pin());
        let era = domain.advance();
        assert!(!domain.is_over(era));
        drop(reader);
        assert!(domain.is_over(era));
        assert_eq!(domain.with_slots(|slots| slots.len()), 0);
    }

    #[test]
    fn any_number_of_readers_is_waited_for() {
        let n_readers = if cfg!(miri) { 10 } else { 300 };
        let domain = Domain::new();
        let mut readers: Vec<_> = (0..n_readers).map(|_| domain.reader()).collect();
        let mut pins: Vec<_> = readers.iter_mut().map(Reader::pin).collect();
        let era = domain.advance();
        while let Some(pin) = pins.pop() {
            assert!(!domain.is_over(era));
            drop(pin);
        }
        assert!(domain.is_over(era));
    }

    #[test]
    fn wait_returns_when_the_walk_has_ended() {
        let domain = Domain::new();
        let (pinned, is_pinned) = mpsc::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let mut reader = domain.reader();
        thread::scope(|scope| {
            scope.spawn(move || {
                let pin = reader.pin();
                pinned.send(()).unwrap();
                may_end.recv().unwrap();
                drop(pin);
            });
            is_pinned.recv().unwrap();
            let era = domain.advance();
            assert!(!domain.is_over(era));
            end.send(()).unwrap();
            domain.wait(era);
            assert!(domain.is_over(era));
        });
    }

    /// Entries are numbers in a few cells; each carries the version it had when
    /// it was linked. Readers compare; the writer reuses as fast as it may, until there were
    /// enough versions and each reader has met some. All of them give way now and then: a reader
    /// that the system stops within a walk, as others want its core, holds the writer.
    #[test]
    fn reused_entries_are_never_reached() {
        const N_CELLS: u64 = 4;
        const N_READERS: u64 = 2;
        const N_AT_A_TIME: u64 = 256;
        let (n_versions, n_versions_met) = if cfg!(miri) { (200, 20) } else { (20_000, 200) };
        let domain = Domain::new();
        let cells: Vec<[AtomicU64; 2]> = (0..N_CELLS).map(|_| Default::default()).collect();
        // The version above, the number of the cell in the last two bits.
        let link = AtomicU64::new(0);
        let n_content = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..N_READERS {
                let mut reader = domain.reader();
                let (cells, link, n_content) = (&cells, &link, &n_content);
                scope.spawn(move || {
                    let (mut last, mut n_met) = (0, 0_u32);
                    for n_walks in 1_u64.. {
                        if n_walks.is_multiple_of(N_AT_A_TIME) {
                            thread::yield_now();
                        }
                        let _pin = reader.pin();
                        let found = link.load(Ordering::Acquire);
                        if found == u64::MAX {
                            return;
                        }
                        let cell = &cells[(found % N_CELLS) as usize];
                        let halves = cell.each_ref().map(|half| half.load(Ordering::Relaxed));
                        if halves != [found / N_CELLS; 2] {
                            // Nobody need go on.
                            n_content.store(N_READERS, Ordering::Relaxed);
                        }
                        assert_eq!(halves, [found / N_CELLS; 2]);
                        n_met += u32::from(found != last);
                        if found != last && n_met == n_versions_met {
                            n_content.fetch_add(1, Ordering::Relaxed);
                        }
                        last = found;
                    }
                });
            }
            for version in 1_u64.. {
                if version.is_multiple_of(N_AT_A_TIME) {
                    thread::yield_now();
                }
                let idx = version % N_CELLS;
                for half in &cells[idx as usize] {
                    half.store(version, Ordering::Relaxed);
                }
                link.store(version * N_CELLS + idx, Ordering::Release);
                // The cell of the version before is free when this returns.
                domain.wait(domain.advance());
                let old = (version - 1) % N_CELLS;
                for half in &cells[old as usize] {
                    half.store(u64::MAX, Ordering::Relaxed);
                }
                if version >= n_versions && n_content.load(Ordering::Relaxed) >= N_READERS {
                    break;
                }
            }
            link.store(u64::MAX, Ordering::Release);
        });
    }
}
