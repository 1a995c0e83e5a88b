//! Interests of other engines that wait for reads of this engine's SSD level.

use std::collections::VecDeque;

use tachonym_store::Waiter;
use tachonym_tables::OfferRank;

/// Most Interests of other engines that wait for reads here; a choice of this module.
pub const MAX_SOUGHT: usize = 1_024;

/// The slot that no pending Interest has: a waiter with it is an Interest of another engine.
const NO_SLOT: u32 = u32::MAX;

/// At which engine an Interest waits, and under which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeker {
    /// The engine, by the number that its owner gives it.
    pub engine: u16,
    /// The Interest, by the number that it has there.
    pub ticket: u64,
}

/// What the SSD level has for an Interest of another engine.
#[derive(Debug, PartialEq, Eq)]
pub struct Sought {
    /// Where that Interest waits.
    pub seeker: Seeker,
    /// The Interest.
    pub interest: Vec<u8>,
    /// The Data and its rank; `None`: there is none, or it cannot be read now.
    pub data: Option<(OfferRank, Vec<u8>)>,
}

/// Reads under way, and those that have ended and were not fetched yet.
#[derive(Debug, Default)]
pub(crate) struct SoughtReads {
    /// With the number of its wait.
    waiting: Vec<(Waiter, Sought)>,
    ended: VecDeque<Sought>,
    last_number: u32,
}

/// Whether a waiter for a read is an Interest of another engine.
pub(crate) const fn is_seeker(waiter: Waiter) -> bool {
    waiter as u32 == NO_SLOT
}

impl SoughtReads {
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() == MAX_SOUGHT
    }

    /// A number for the next Interest that waits.
    pub(crate) fn next_waiter(&mut self) -> Waiter {
        self.last_number = self.last_number.wrapping_add(1);
        u64::from(self.last_number) << 32 | u64::from(NO_SLOT)
    }

    pub(crate) fn wait(&mut self, waiter: Waiter, sought: Sought) {
        self.waiting.push((waiter, sought));
    }

    pub(crate) fn end(&mut self, sought: Sought) {
        self.ended.push_back(sought);
    }

    /// Ends those that wait under a number that `is_read` accepts, as `answer` completes them.
    pub(crate) fn end_waiting(
        &mut self,
        is_read: impl Fn(Waiter) -> bool,
        mut answer: impl FnMut(&mut Sought),
    ) {
        let read = self.waiting.extract_if(.., |(waiter, _)| is_read(*waiter));
        self.ended.extend(read.map(|(_, mut sought)| {
            answer(&mut sought);
            sought
        }));
    }

    /// The read that ended first and was not fetched yet.
    pub(crate) fn poll(&mut self) -> Option<Sought> {
        self.ended.pop_front()
    }
}
