//! Requests under way at the device except writes, and the Interests that wait for them.
//!
//! Owns the read buffers. A read of a batch is known by the batch's position, so that Interests
//! for other segments of it wait for the same read. What each wants is kept, because the index
//! may have taken one batch for another. Tokens of requests show whether a completion belongs to
//! the request that is in a slot now, or to one that was given up.
//!
//! Faces share the buffers by source: each may hold [`SHARE_ALPHA`] times as many as are free,
//! and always one.

use std::collections::VecDeque;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use tachonym_memory::IoBuffer;
use tachonym_packet::MonoNs;

use crate::index::Location;
use crate::layout::{Position, Record};

/// Who waits for a read: a number of the owner's choice.
pub type Waiter = u64;

/// Whose share of the reads one counts to: a number of the owner's choice, such as that of the
/// face that asked.
pub type Sharer = u64;

/// Most Interests that wait for one read; a choice of this module. Interests that expire while
/// a device stalls, and come again, would otherwise add up.
pub const MAX_WAITERS_PER_READ: usize = 1_024;

/// How many times the free buffers one sharer may hold in use: the dynamic threshold of
/// Choudhury and Hahne (1998). One alone gets 57 of 64, two get 30 each, and there is always
/// one left for the next.
const SHARE_ALPHA: usize = 8;

/// By what a record was found in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// A batch that is believed to have this key.
    Batch(u64),
    /// Whatever there is below a prefix with this hash.
    Below(u64),
}

impl Sought {
    /// What it is indexed by.
    #[must_use]
    pub const fn hash(self) -> u64 {
        match self {
            Self::Batch(hash) | Self::Below(hash) => hash,
        }
    }

    /// Whether a record has it.
    pub(crate) fn is_in(self, record: &Record<'_>) -> bool {
        match self {
            Self::Batch(key) => key == record.key(),
            Self::Below(prefix) => record.prefixes().any(|it| it == prefix),
        }
    }
}

/// What is wanted of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) sought: Sought,
    /// A bit for each place of the batch that will do; none if it is sought by a prefix.
    pub(crate) places: u16,
    /// Where the index has it.
    pub(crate) location: Location,
    /// The last record that the index had taken for what is sought, and was not; zero if there
    /// was none.
    pub(crate) passed_over: Position,
    /// Who waits, and whose share the read counts to; none for what is read ahead.
    pub(crate) waiter: Option<(Waiter, Sharer)>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A record of a batch, and which it was when the read began: another one may be in its
    /// place when that ends.
    Batch {
        location: Location,
        position: Position,
    },
    /// A part of a region that is looked through, from this byte of it on.
    Region {
        region: u32,
        start: usize,
        len: usize,
    },
    /// That what was written stays.
    Sync,
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) purpose: Purpose,
    pub(crate) volume: u8,
    /// Since when the device has it to do; none while its record is on the way there.
    pub(crate) since: Option<MonoNs>,
    /// Whose share it counts to; none for what is read ahead, or by the store for itself.
    sharer: Option<Sharer>,
    pub(crate) wishes: Vec<Wish>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Grows with every request, so that tokens differ.
    generation: u32,
    read: Option<Read>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Reads {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_position: HashMap<Position, u32, foldhash::fast::FixedState>,
    /// Those of no request. The one that was looked at longest ago is read into next: into one
    /// that the cache still has, disks were seen to read a third slower.
    buffers: VecDeque<IoBuffer>,
    n_buffers: usize,
    buffer_bytes: usize,
    /// Buffers that others have come for while a device kept them.
    n_replaced: usize,
    /// Requests for each volume.
    n_by_volume: Vec<usize>,
    /// Requests of each sharer that has any.
    n_by_sharer: HashMap<Sharer, usize, foldhash::fast::FixedState>,
    /// For reads to come.
    spare: Vec<Vec<Wish>>,
}

/// Marks tokens of reads; those of writes have it not.
const READ_TOKEN: u64 = 1 << 63;

/// Whether a token is of a request in [`Reads`].
pub(crate) const fn is_read(token: u64) -> bool {
    token & READ_TOKEN != 0
}

impl Reads {
    pub(crate) fn new(buffers: Vec<IoBuffer>) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_position: HashMap::default(),
            n_buffers: buffers.len(),
            buffer_bytes: buffers.first().map_or(0, |it| it.as_slice().len()),
            n_replaced: 0,
            n_by_volume: Vec::new(),
            n_by_sharer: HashMap::default(),
            buffers: buffers.into(),
            spare: Vec::new(),
        }
    }

    /// Buffers that there are, in use or not.
    pub(crate) const fn n_buffers(&self) -> usize {
        self.n_buffers
    }

    pub(crate) fn n_free_buffers(&self) -> usize {
        self.buffers.len()
    }

    pub(crate) fn take_buffer(&mut self) -> Option<IoBuffer> {
        self.buffers.pop_front()
    }

    pub(crate) fn give_buffer(&mut self, buffer: Option<IoBuffer>) {
        self.buffers.extend(buffer);
    }

    /// So many requests were given up while the device had their buffers, which may never come
    /// back: others take their place, as far as there is memory.
    pub(crate) fn replace_buffers(&mut self, n_kept_by_device: usize) {
        let numbers = 0..n_kept_by_device as u16;
        let replaced = IoBuffer::many(numbers, self.buffer_bytes).unwrap_or_default();
        self.n_replaced += replaced.len();
        self.buffers.extend(replaced);
    }

    /// Takes the buffer of a request that was given up, unless another one has its place.
    pub(crate) fn give_late_buffer(&mut self, buffer: Option<IoBuffer>) {
        match self.n_replaced.checked_sub(1) {
            Some(rest) if buffer.is_some() => self.n_replaced = rest,
            _ => self.give_buffer(buffer),
        }
    }

    /// Requests for a volume.
    pub(crate) fn n_of_volume(&self, volume: u8) -> usize {
        let n = self.n_by_volume.get(usize::from(volume));
        n.copied().unwrap_or_default()
    }

    /// Whether one more read fits into the share of a sharer, while `n_free` buffers are free: its
    /// first does in any case.
    pub(crate) fn has_share(&self, sharer: Sharer, n_free: usize) -> bool {
        let n_held = self.n_by_sharer.get(&sharer).copied().unwrap_or_default();
        n_held == 0 || n_free > 1 && n_held < SHARE_ALPHA * n_free
    }

    /// The read of the record at a position, if there is one.
    pub(crate) fn of_position(&mut self, position: Position) -> Option<&mut Read> {
        let slot = *self.by_position.get(&position)?;
        self.slots[slot as usize].read.as_mut()
    }

    /// Notes a request that counts to no share; its token.
    pub(crate) fn begin(&mut self, purpose: Purpose, volume: u8, now: MonoNs) -> u64 {
        self.begin_for(None, purpose, volume, now)
    }

    /// Notes a request that counts to a sharer, if to any; its token.
    pub(crate) fn begin_for(
        &mut self,
        sharer: Option<Sharer>,
        purpose: Purpose,
        volume: u8,
        now: MonoNs,
    ) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        if let Purpose::Batch { position, .. } = purpose {
            self.by_position.insert(position, slot);
        }
        let wishes = self.spare.pop().unwrap_or_default();
        let of_slot = &mut self.slots[slot as usize];
        of_slot.generation = of_slot.generation.wrapping_add(1) & 0x7FFF_FFFF;
        of_slot.read = Some(Read {
            purpose,
            volume,
            since: Some(now),
            sharer,
            wishes,
        });
        if let Some(sharer) = sharer {
            *self.n_by_sharer.entry(sharer).or_default() += 1;
        }
        match self.n_by_volume.get_mut(usize::from(volume)) {
            Some(n) => *n += 1,
            None => {
                self.n_by_volume.resize(usize::from(volume), 0);
                self.n_by_volume.push(1);
            }
        }
        READ_TOKEN | u64::from(of_slot.generation) << 32 | u64::from(slot)
    }

    /// The request of a token, unless it was given up.
    pub(crate) fn get(&self, token: u64) -> Option<&Read> {
        let slot = self.slots.get(token as u32 as usize)?;
        let is_it = u64::from(slot.generation) == token >> 32 & 0x7FFF_FFFF;
        slot.read.as_ref().filter(|_| is_it)
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, token: u64) -> Option<&mut Read> {
        self.get(token)?;
        self.slots[token as u32 as usize].read.as_mut()
    }

    /// Forgets a request, and gives what was noted of it.
    pub(crate) fn end(&mut self, token: u64) -> Option<Read> {
        self.get(token)?;
        let slot = token as u32;
        let read = self.slots[slot as usize].read.take()?;
        self.free.push(slot);
        self.n_by_volume[usize::from(read.volume)] -= 1;
        if let Some(sharer) = read.sharer
            && let Entry::Occupied(mut held) = self.n_by_sharer.entry(sharer)
        {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
        if let Purpose::Batch { position, .. } = read.purpose {
            self.by_position.remove(&position);
        }
        Some(read)
    }

    /// Keeps the memory of wishes for others.
    pub(crate) fn recycle(&mut self, mut wishes: Vec<Wish>) {
        wishes.clear();
        if self.spare.len() < self.n_buffers {
            self.spare.push(wishes);
        }
    }

    /// Tokens of all requests that are as `is_one` says.
    pub(crate) fn tokens(&self, mut is_one: impl FnMut(&Read) -> bool) -> Vec<u64> {
        let slots = self.slots.iter().enumerate();
        let found = slots.filter(|(_, slot)| slot.read.as_ref().is_some_and(&mut is_one));
        let token = |(idx, slot): (usize, &Slot)| {
            READ_TOKEN | u64::from(slot.generation) << 32 | idx as u64
        };
        found.map(token).collect()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Extent;

    #[test]
    fn a_read_is_known_by_its_place_until_it_ends() {
        let location = Location {
            region: 3,
            extent: Extent::unpack(77 | 9 << 20),
        };
        let mut reads = Reads::new(Vec::new());
        let position = (8, 77);
        let purpose = Purpose::Batch { location, position };
        let wish = Wish {
            sought: Sought::Batch(5),
            places: 1,
            location,
            passed_over: (0, 0),
            waiter: Some((42, 7)),
        };
        let token = reads.begin(purpose, 1, MonoNs(10));
        assert!(is_read(token));
        reads
            .of_position(position)
            .expect("under way")
            .wishes
            .push(wish);
        let sync = reads.begin(Purpose::Sync, 0, MonoNs(15));
        assert_eq!(reads.tokens(|read| read.volume == 1), [token]);
        let ended = reads.end(token).expect("under way");
        assert_eq!((ended.purpose, ended.wishes), (purpose, vec![wish]));
        assert!(reads.end(token).is_none() && reads.of_position(position).is_none());
        let again = reads.begin(purpose, 1, MonoNs(11));
        assert_ne!(again, token);
        assert!(reads.get(token).is_none() && reads.get(again).is_some());
        assert!(reads.end(sync).is_some() && !reads.is_empty());
        assert!(reads.end(again).is_some() && reads.is_empty());
    }

    #[test]
    fn a_sharer_leaves_room_for_others_and_gets_its_first_read_in_any_case() {
        let mut reads = Reads::new(Vec::new());
        let begin = |reads: &mut Reads, sharer, n_free| {
            let may = reads.has_share(sharer, n_free);
            may.then(|| reads.begin_for(Some(sharer), Purpose::Sync, 0, MonoNs(1)))
        };
        let mut n_free = 64;
        let mut alone = Vec::new();
        while let Some(token) = begin(&mut reads, 1, n_free) {
            alone.push(token);
            n_free -= 1;
        }
        assert_eq!((alone.len(), n_free), (57, 7));
        // Another one takes what is left but the last buffer, and the next one has that.
        for _ in 0..6 {
            assert!(begin(&mut reads, 2, n_free).is_some());
            n_free -= 1;
        }
        assert!(begin(&mut reads, 2, n_free).is_none());
        assert!(begin(&mut reads, 3, n_free).is_some());
        // Reads of the first that end are the others', until these have as much.
        for token in alone.drain(..40) {
            assert!(reads.end(token).is_some());
        }
        assert!(begin(&mut reads, 1, 2).is_none());
        assert!(begin(&mut reads, 2, 2).is_some());
        for token in alone {
            assert!(reads.end(token).is_some());
        }
        assert!(reads.has_share(1, 1), "it holds none");
    }

    #[test]
    fn buffers_that_others_have_come_for_are_not_kept_when_they_come_back() {
        let buffers = IoBuffer::many(0..4, 4_096).expect("memory");
        let mut reads = Reads::new(buffers);
        let late: Vec<_> = (0..3).map(|_| reads.take_buffer()).collect();
        reads.replace_buffers(2);
        assert_eq!(reads.n_free_buffers(), 3);
        for (buffer, n_free) in late.into_iter().zip([3, 3, 4]) {
            reads.give_late_buffer(buffer);
            assert_eq!(reads.n_free_buffers(), n_free);
        }
    }
}
