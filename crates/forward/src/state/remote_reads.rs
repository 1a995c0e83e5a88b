//! Interests of other engines that wait for reads of this engine's SSD level.

use std::collections::VecDeque;

use tachonym_store::Waiter;
use tachonym_tables::OfferRank;

/// Most Interests of other engines that wait for reads here; a choice of this module.
pub const MAX_REMOTE_READS: usize = 1_024;

/// The slot that no pending Interest has: a waiter with it is an Interest of another engine.
const NO_SLOT: u32 = u32::MAX;

/// At which engine an Interest waits, and under which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The engine, by the number that its owner gives it.
    pub engine: u16,
    /// The Interest, by the number that it has there.
    pub ticket: u64,
}

/// What the SSD level has for an Interest of another engine.
#[derive(Debug, PartialEq, Eq)]
pub struct RemoteRead {
    /// Where that Interest waits.
    pub requester: Requester,
    /// The Interest.
    pub interest: Vec<u8>,
    /// The Data and its rank; `None`: there is none, or it cannot be read now.
    pub data: Option<(OfferRank, Vec<u8>)>,
}

/// Reads under way, and those that have ended and were not fetched yet.
#[derive(Debug, Default)]
pub(crate) struct RemoteReads {
    /// With the number of its wait.
    waiting: Vec<(Waiter, RemoteRead)>,
    ended: VecDeque<RemoteRead>,
    last_number: u32,
}

/// Whether a waiter for a read is an Interest of another engine.
pub(crate) const fn is_remote(waiter: Waiter) -> bool {
    waiter as u32 == NO_SLOT
}

impl RemoteReads {
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() == MAX_REMOTE_READS
    }

    /// A number for the next Interest that waits.
    pub(crate) fn next_waiter(&mut self) -> Waiter {
        self.last_number = self.last_number.wrapping_add(1);
        u64::from(self.last_number) << 32 | u64::from(NO_SLOT)
    }

    pub(crate) fn wait(&mut self, waiter: Waiter, read: RemoteRead) {
        self.waiting.push((waiter, read));
    }

    pub(crate) fn end(&mut self, read: RemoteRead) {
        self.ended.push_back(read);
    }

    /// Ends those that wait under a number that `is_read` accepts, as `answer` completes them.
    pub(crate) fn end_waiting(
        &mut self,
        is_read: impl Fn(Waiter) -> bool,
        mut answer: impl FnMut(&mut RemoteRead),
    ) {
        let done = self.waiting.extract_if(.., |(waiter, _)| is_read(*waiter));
        self.ended.extend(done.map(|(_, mut read)| {
            answer(&mut read);
            read
        }));
    }

    /// The read that ended first and was not fetched yet.
    pub(crate) fn poll(&mut self) -> Option<RemoteRead> {
        self.ended.pop_front()
    }
}
