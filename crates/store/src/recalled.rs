//! A batch that has been read.

use tachonym_memory::IoBuffer;
use tachonym_packet::MonoNs;

use crate::layout::{Position, Record};
use crate::reads::{Waiter, Wish};

/// Tells Unix time from the clock that never goes back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WallClock {
    now: MonoNs,
    unix_ms: u64,
}

impl WallClock {
    pub(crate) const fn at(now: MonoNs, unix_ms: u64) -> Self {
        Self { now, unix_ms }
    }

    pub(crate) fn unix_ms(&self, now: MonoNs) -> u64 {
        let since_ms = now.saturating_since(self.now).as_millis() as u64;
        self.unix_ms.saturating_add(since_ms)
    }

    /// When it will be `fresh_until_ms` by Unix time; [`MonoNs::ZERO`] if that is over.
    pub(crate) fn fresh_until(&self, now: MonoNs, fresh_until_ms: u64) -> MonoNs {
        match fresh_until_ms.saturating_sub(self.unix_ms(now)) {
            0 => MonoNs::ZERO,
            rest_ms => now.plus_ms(rest_ms),
        }
    }
}

/// A chunk of a batch that has been read.
#[derive(Clone, Copy, Debug)]
pub struct RecalledChunk<'a> {
    /// The Data as it was offered.
    pub wire: &'a [u8],
    /// Until when it is fresh; [`MonoNs::ZERO`] if it is not.
    pub fresh_until: MonoNs,
    /// Whether the next batch is to be read when it is asked for.
    pub is_trigger: bool,
}

/// See the module. What could not be read, or is not what was looked for, has no chunks.
#[derive(Debug)]
pub struct Recalled {
    pub(crate) buffer: Option<IoBuffer>,
    /// Where the record begins in the buffer, and which it is; `None`: there is none.
    pub(crate) record: Option<(usize, Position)>,
    pub(crate) wishes: Vec<Wish>,
    /// A bit for each place whose Data has been erased.
    pub(crate) erased: u64,
    pub(crate) trigger_place: u8,
    pub(crate) wall: WallClock,
    pub(crate) now: MonoNs,
}

impl Recalled {
    /// Who waits.
    pub fn waiters(&self) -> impl Iterator<Item = Waiter> + use<'_> {
        self.wishes.iter().filter_map(|wish| Some(wish.waiter?.0))
    }

    /// The chunks.
    pub fn chunks(&self) -> impl Iterator<Item = RecalledChunk<'_>> {
        let record = self.record.and_then(|(start, position)| {
            let bytes = self.buffer.as_ref()?.as_slice().get(start..)?;
            Record::parse_head(bytes, position).ok()
        });
        let chunks = record.into_iter().flat_map(|record| record.chunks());
        let there = chunks.filter(|(chunk, _)| self.erased >> chunk.place & 1 == 0);
        there.map(|(chunk, wire)| RecalledChunk {
            wire,
            fresh_until: self.wall.fresh_until(self.now, chunk.fresh_until_ms),
            is_trigger: chunk.place == self.trigger_place,
        })
    }

    pub(crate) fn into_parts(self) -> (Option<IoBuffer>, Vec<Wish>) {
        (self.buffer, self.wishes)
    }
}
