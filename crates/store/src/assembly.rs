//! Batches that are being assembled.
//!
//! Owns copies of Data to be written, by batch, in any order of arrival, interleaved and with
//! gaps. A batch is closed when it is complete, at the last segment of its object, when it has
//! waited for `assembly_ms`, or when memory runs out, the oldest first. It stays here, and can
//! be read, until it is in the log.

use std::collections::VecDeque;

use hashbrown::HashMap;
use tachonym_packet::{DataView, MonoNs};

use crate::layout::{Chunk, RecordHead, RecordKind};
use crate::naming::{Names, Part, mask_bit};

/// Batches that have gone and are still in the list by age, if that is more than there are.
const MAX_GONE: usize = 1024;

/// What an open batch takes beside its Data, in bytes, about.
const BATCH_BYTES: usize = 512;

/// A batch in the making.
#[derive(Debug, Default)]
pub(crate) struct OpenBatch {
    key: u64,
    since: MonoNs,
    chunks: Vec<Chunk>,
    /// Their Data, one after another.
    wires: Vec<u8>,
    prefixes: Vec<u64>,
    /// A bit for each place.
    places: u64,
    /// The last place of the object, if it is in this batch and known.
    final_place: Option<u8>,
    /// Which of its slot's batches it is; odd while there is one.
    generation: u32,
    is_closed: bool,
}

impl OpenBatch {
    /// As it is to be written.
    pub(crate) fn head(&self) -> RecordHead<'_> {
        RecordHead {
            kind: RecordKind::Batch,
            key: self.key,
            prefixes: &self.prefixes,
            chunks: &self.chunks,
        }
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// The Data of its chunks.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.wires
    }

    pub(crate) fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Which places it has, as bits of an index entry.
    pub(crate) fn mask(&self) -> u16 {
        let bits = self.chunks.iter().map(|it| mask_bit(it.place));
        bits.fold(0, |mask, bit| mask | bit)
    }

    pub(crate) fn chunks(&self) -> impl Iterator<Item = (Chunk, &[u8])> {
        let mut rest = self.wires.as_slice();
        self.chunks.iter().map(move |chunk| {
            let (wire, others) = rest.split_at(usize::from(chunk.len));
            rest = others;
            (*chunk, wire)
        })
    }

    /// The Data at a place.
    pub(crate) fn find(&self, place: u8) -> Option<(Chunk, &[u8])> {
        self.chunks().find(|(chunk, _)| chunk.place == place)
    }

    /// Whether it is still the one of this generation, and is not closed.
    fn is_open(&self, generation: u32) -> bool {
        self.generation == generation && !self.is_closed
    }

    fn bytes(&self) -> usize {
        BATCH_BYTES + self.wires.capacity()
    }

    fn is_whole(&self, batch_len: u64) -> bool {
        let last = self.final_place.map_or(batch_len - 1, u64::from);
        let all = u64::MAX >> (63 - last);
        self.places & all == all
    }

    /// Whether another one made way.
    fn add(&mut self, chunk: Chunk, wire: &[u8]) -> bool {
        let is_taken = self.places >> chunk.place & 1 == 1;
        if is_taken {
            self.retain(|it, _| it.place != chunk.place);
        }
        self.places |= 1 << chunk.place;
        self.chunks.push(chunk);
        self.wires.extend_from_slice(wire);
        is_taken
    }

    /// Drops chunks; how many.
    fn retain(&mut self, mut is_kept: impl FnMut(&Chunk, &[u8]) -> bool) -> usize {
        let (mut from, mut to) = (0, 0);
        let (wires, places) = (&mut self.wires, &mut self.places);
        let n_before = self.chunks.len();
        self.chunks.retain(|chunk| {
            let range = from..from + usize::from(chunk.len);
            from = range.end;
            let stays = is_kept(chunk, &wires[range.clone()]);
            if stays {
                wires.copy_within(range.clone(), to);
                to += range.len();
            } else {
                *places &= !(1 << chunk.place);
            }
            stays
        });
        wires.truncate(to);
        n_before - self.chunks.len()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Assembler {
    names: Names,
    slots: Vec<OpenBatch>,
    free: Vec<u32>,
    by_key: HashMap<u64, u32, foldhash::fast::FixedState>,
    /// By the hash of each prefix, what was opened last below it.
    below: HashMap<u64, u32, foldhash::fast::FixedState>,
    /// Slots of chunks' batches with their generations, by age; some of batches that have gone
    /// are still there.
    by_age: VecDeque<(u32, u32)>,
    /// Closed ones, in the order in which they are to be written.
    closed: VecDeque<u32>,
    used_bytes: usize,
    /// Of buffers of free slots.
    free_bytes: usize,
    max_bytes: usize,
    max_age_ms: u64,
}

impl Assembler {
    pub(crate) fn new(names: Names, max_bytes: usize, max_age_ms: u64) -> Self {
        Self {
            names,
            slots: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::default(),
            below: HashMap::default(),
            by_age: VecDeque::new(),
            closed: VecDeque::new(),
            used_bytes: 0,
            free_bytes: 0,
            max_bytes,
            max_age_ms,
        }
    }

    /// The open batch with a key.
    pub(crate) fn find(&self, key: u64) -> Option<&OpenBatch> {
        self.by_key
            .get(&key)
            .map(|&slot| &self.slots[slot as usize])
    }

    /// The batch that was opened last of those below a prefix of this hash.
    pub(crate) fn find_below(&self, prefix: u64) -> Option<&OpenBatch> {
        let slot = *self.below.get(&prefix)?;
        Some(&self.slots[slot as usize]).filter(|batch| !batch.chunks.is_empty())
    }

    /// Closed batches that wait to be written.
    pub(crate) fn n_closed(&self) -> usize {
        self.closed.len()
    }

    /// Forgets everything; how many Data it was.
    pub(crate) fn drop_all(&mut self) -> usize {
        self.close_all();
        let mut n_dropped = 0;
        while let Some(batch) = self.next_closed() {
            n_dropped += batch.n_chunks();
            self.drop_closed();
        }
        n_dropped
    }

    /// Data that wait to be written.
    pub(crate) fn n_data(&self) -> usize {
        let slots = self.by_key.values();
        slots
            .map(|&slot| self.slots[slot as usize].n_chunks())
            .sum()
    }

    /// Adds a copy of a Data. Another one in its place goes; whether there was one.
    pub(crate) fn add(
        &mut self,
        now: MonoNs,
        part: &Part,
        data: &DataView<'_>,
        fresh_until_ms: u64,
    ) -> bool {
        let slot = match self.by_key.get(&part.key) {
            Some(&slot) => slot,
            None => self.open(now, part, data),
        };
        let batch = &mut self.slots[slot as usize];
        self.used_bytes -= batch.bytes();
        let wire = data.wire();
        let chunk = Chunk {
            place: part.place,
            len: wire.len() as u16,
            fresh_until_ms,
        };
        let has_replaced = batch.add(chunk, wire);
        if let Some(chunk) = &part.chunk
            && let Some(last) = data.final_block_id()
            && (last.typ(), last.as_number()) == (chunk.typ, Some(chunk.number))
        {
            batch.final_place = Some(part.place);
        }
        self.used_bytes += batch.bytes();
        let is_whole = part.chunk.is_none() || batch.is_whole(self.names.batch_len());
        if is_whole && !batch.is_closed {
            self.close(slot);
        }
        self.close_for_room();
        has_replaced
    }

    fn open(&mut self, now: MonoNs, part: &Part, data: &DataView<'_>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(OpenBatch::default());
            self.slots.len() as u32 - 1
        });
        let batch = &mut self.slots[slot as usize];
        self.free_bytes -= batch.wires.capacity();
        (batch.key, batch.since) = (part.key, now);
        batch.generation += 1;
        self.names.prefixes(data.name(), &mut batch.prefixes);
        for &prefix in &batch.prefixes {
            self.below.insert(prefix, slot);
        }
        self.used_bytes += batch.bytes();
        self.by_key.insert(part.key, slot);
        // A Data that is alone is closed at once.
        if part.chunk.is_some() {
            self.by_age.push_back((slot, batch.generation));
            self.forget_gone();
        }
        slot
    }

    /// Behind one that waits, those that have gone do not gather.
    fn forget_gone(&mut self) {
        if self.by_age.len() > 2 * self.by_key.len() + MAX_GONE {
            let slots = &self.slots;
            self.by_age
                .retain(|&(slot, generation)| slots[slot as usize].is_open(generation));
        }
    }

    fn close(&mut self, slot: u32) {
        self.slots[slot as usize].is_closed = true;
        self.closed.push_back(slot);
    }

    /// The oldest batch that is not closed.
    fn oldest(&mut self) -> Option<u32> {
        while let Some(&(slot, generation)) = self.by_age.front() {
            if self.slots[slot as usize].is_open(generation) {
                return Some(slot);
            }
            self.by_age.pop_front();
        }
        None
    }

    fn close_for_room(&mut self) {
        // What is closed is written in a moment; so half of the room is for what is not.
        while self.used_bytes > self.max_bytes / 2
            && self.closed.is_empty()
            && let Some(slot) = self.oldest()
        {
            self.close(slot);
        }
    }

    /// Closes what is too old.
    pub(crate) fn handle_timeout(&mut self, now: MonoNs) {
        while let Some(slot) = self.oldest()
            && self.slots[slot as usize].since.plus_ms(self.max_age_ms) <= now
        {
            self.close(slot);
        }
    }

    /// When [`Assembler::handle_timeout`] next has work.
    pub(crate) fn poll_timeout(&self) -> Option<MonoNs> {
        let mut slots = self.by_age.iter();
        let is_open =
            |(slot, generation): (u32, u32)| self.slots[slot as usize].is_open(generation);
        let &(slot, _) = slots.find(|&&it| is_open(it))?;
        Some(self.slots[slot as usize].since.plus_ms(self.max_age_ms))
    }

    /// Closes all.
    pub(crate) fn close_all(&mut self) {
        while let Some(slot) = self.oldest() {
            self.close(slot);
        }
    }

    /// The batch that is to be written next.
    pub(crate) fn next_closed(&self) -> Option<&OpenBatch> {
        self.closed.front().map(|&slot| &self.slots[slot as usize])
    }

    /// Forgets the batch that was to be written next.
    pub(crate) fn drop_closed(&mut self) {
        let Some(slot) = self.closed.pop_front() else {
            return;
        };
        let batch = &mut self.slots[slot as usize];
        self.used_bytes -= batch.bytes();
        self.by_key.remove(&batch.key);
        for prefix in &batch.prefixes {
            if self.below.get(prefix) == Some(&slot) {
                self.below.remove(prefix);
            }
        }
        batch.generation += 1;
        batch.is_closed = false;
        (batch.places, batch.final_place) = (0, None);
        batch.chunks.clear();
        batch.wires.clear();
        // Buffers are kept for batches to come, but not as many as there may be batches.
        match self.free_bytes + batch.wires.capacity() <= self.max_bytes / 4 {
            true => self.free_bytes += batch.wires.capacity(),
            false => batch.wires = Vec::new(),
        }
        self.free.push(slot);
        // What has gone is not to be looked at for ever.
        self.oldest();
    }

    /// Drops the Data of a place; whether there was one.
    pub(crate) fn drop_chunk(&mut self, part: &Part) -> bool {
        let slot = self.by_key.get(&part.key);
        slot.is_some_and(|&slot| {
            let batch = &mut self.slots[slot as usize];
            batch.retain(|chunk, _| chunk.place != part.place) > 0
        })
    }

    /// Whether there is no room for another Data before something is written.
    pub(crate) fn is_full(&self) -> bool {
        self.used_bytes >= self.max_bytes
    }

    /// Drops what `is_erased` tells of each Data; how many.
    pub(crate) fn erase(&mut self, mut is_erased: impl FnMut(&DataView<'_>) -> bool) -> usize {
        let mut n_erased = 0;
        for &slot in self.by_key.values() {
            let batch = &mut self.slots[slot as usize];
            n_erased += batch.retain(|_, wire| {
                let data = DataView::parse(wire).expect("copied from a Data");
                !is_erased(&data)
            });
        }
        n_erased
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tachonym_packet::{Component, Data, Name};

    use super::*;

    fn chunk(object: &str, number: u64, content: &[u8], last: Option<u64>) -> Vec<u8> {
        let name: Name = object.parse().expect("a name");
        let mut data = Data::new(name.with(&Component::segment(number)));
        data.content = content.to_vec();
        data.final_block_id = last.map(Component::segment);
        data.encode_with_digest()
    }

    fn assembler(max_bytes: usize) -> (Names, Assembler) {
        let names = Names::new([3; 16], 4);
        (names.clone(), Assembler::new(names, max_bytes, 1_000))
    }

    fn add(assembler: &mut Assembler, names: &Names, now: MonoNs, wire: &[u8]) {
        let data = DataView::parse(wire).expect("a Data");
        assembler.add(now, &names.part_of(data.name()), &data, 0);
    }

    #[test]
    fn a_batch_is_closed_when_it_is_whole_in_any_order() {
        let (names, mut assembler) = assembler(1 << 20);
        for number in [3, 0, 1] {
            add(
                &mut assembler,
                &names,
                MonoNs(5),
                &chunk("/a", number, b"x", None),
            );
            add(
                &mut assembler,
                &names,
                MonoNs(5),
                &chunk("/b", number, b"y", None),
            );
        }
        assert!(assembler.next_closed().is_none());
        add(
            &mut assembler,
            &names,
            MonoNs(9),
            &chunk("/b", 2, b"y", None),
        );
        let batch = assembler.next_closed().expect("/b is whole");
        let places: Vec<u8> = batch.chunks().map(|(chunk, _)| chunk.place).collect();
        assert_eq!(places, [3, 0, 1, 2]);
        assert_eq!(
            batch.find(2).map(|(_, wire)| wire),
            Some(&*chunk("/b", 2, b"y", None))
        );
        assembler.drop_closed();
        assert!(assembler.next_closed().is_none() && assembler.oldest().is_some());
    }

    #[test]
    fn the_last_batch_of_an_object_is_as_long_as_the_object() {
        let (names, mut assembler) = assembler(1 << 20);
        add(
            &mut assembler,
            &names,
            MonoNs(1),
            &chunk("/a", 4, b"x", Some(5)),
        );
        assert!(assembler.next_closed().is_none());
        add(
            &mut assembler,
            &names,
            MonoNs(1),
            &chunk("/a", 5, b"x", Some(5)),
        );
        assert_eq!(assembler.next_closed().map(OpenBatch::n_chunks), Some(2));
    }

    #[test]
    fn what_waits_too_long_or_lacks_room_is_closed_the_oldest_first() {
        let (names, mut assembler) = assembler(16_000);
        add(
            &mut assembler,
            &names,
            MonoNs(1),
            &chunk("/a", 0, &[1; 500], None),
        );
        add(
            &mut assembler,
            &names,
            MonoNs(2),
            &chunk("/b", 0, &[2; 500], None),
        );
        assert_eq!(assembler.poll_timeout(), Some(MonoNs(1).plus_ms(1_000)));
        assembler.handle_timeout(MonoNs(1).plus_ms(1_000));
        let first = assembler
            .next_closed()
            .map(OpenBatch::payload)
            .map(<[u8]>::to_vec);
        assert_eq!(first, Some(chunk("/a", 0, &[1; 500], None)));
        assembler.drop_closed();
        for number in 0..9 {
            let object = format!("/c/{number}");
            add(
                &mut assembler,
                &names,
                MonoNs(3),
                &chunk(&object, 0, &[3; 500], None),
            );
        }
        let first = assembler
            .next_closed()
            .map(OpenBatch::payload)
            .map(<[u8]>::to_vec);
        assert_eq!(first, Some(chunk("/b", 0, &[2; 500], None)));
        assert!(!assembler.is_full());
    }

    #[test]
    fn batches_that_have_gone_do_not_gather_behind_one_that_waits() {
        let (names, mut assembler) = assembler(1 << 20);
        let now = MonoNs(1);
        add(&mut assembler, &names, now, &chunk("/waits", 0, b"x", None));
        for number in 0..4_000 {
            let alone: Name = format!("/alone/{number}").parse().expect("a name");
            let wire = Data::new(alone).encode_with_digest();
            add(&mut assembler, &names, now, &wire);
            let last = chunk(&format!("/short/{number}"), 0, b"x", Some(0));
            add(&mut assembler, &names, now, &last);
            while assembler.next_closed().is_some() {
                assembler.drop_closed();
            }
        }
        assert!(assembler.by_age.len() <= MAX_GONE + 4);
        assert_eq!(assembler.poll_timeout(), Some(now.plus_ms(1_000)));
        assembler.close_all();
        assert_eq!(assembler.n_closed(), 1);
    }

    proptest! {
        #[test]
        fn what_is_added_is_there_until_it_is_written_or_erased(
            steps in prop::collection::vec((0..3_u64, 0..9_u64, 0..40_usize, 0..8_u8), 1..200),
        ) {
            let (names, mut assembler) = assembler(1 << 20);
            let mut oracle = std::collections::BTreeMap::new();
            for (object, number, len, what) in steps {
                let prefix = format!("/o/{object}");
                match what {
                    0 => {
                        let erased: Name = prefix.parse().expect("a name");
                        let n = assembler.erase(|data| data.name().starts_with(erased.view()));
                        let before = oracle.len();
                        oracle.retain(|&(it, _), _| it != object);
                        prop_assert_eq!(n, before - oracle.len());
                    }
                    1 => {
                        if let Some(batch) = assembler.next_closed() {
                            for (_, wire) in batch.chunks() {
                                let found = oracle.iter().find(|(_, it)| **it == wire);
                                let key = *found.expect("it was added").0;
                                oracle.remove(&key);
                            }
                            assembler.drop_closed();
                        }
                    }
                    _ => {
                        let wire = chunk(&prefix, number, &vec![what; len], None);
                        add(&mut assembler, &names, MonoNs(1), &wire);
                        oracle.insert((object, number), wire);
                    }
                }
                for ((object, number), wire) in &oracle {
                    let name: Name = format!("/o/{object}").parse().expect("a name");
                    let part = names.part_of(name.with(&Component::segment(*number)).view());
                    let found = assembler.find(part.key).and_then(|it| it.find(part.place));
                    prop_assert_eq!(found.map(|(_, wire)| wire), Some(wire.as_slice()));
                }
            }
            let used: usize = assembler.by_key.values()
                .map(|&slot| assembler.slots[slot as usize].bytes()).sum();
            prop_assert_eq!(assembler.used_bytes, used);
        }
    }
}
