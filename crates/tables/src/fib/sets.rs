//! Sets of next hops, shared by the prefixes that have the same.
//!
//! Owns the next hops of all prefixes. Many prefixes lead to few faces, so equal sets
//! are kept once and prefixes hold their number; a face that goes is taken out of the
//! sets it is in, and so out of every prefix at once. A set that loses its last next
//! hop by that stays, empty, until the prefixes that have it are removed.
//!
//! A reader finds a set by two loads from memory that is warm, as sets are few. Next
//! hops in shared memory are written before the set tells of them, and written over
//! when no reader can know of them any more.

use std::collections::BTreeSet;
use std::hash::RandomState;

use hashbrown::HashMap;
use tachonym_memory::sync::Ordering;
use tachonym_memory::{MemoryError, PagePreference, Pages, Words, available_address_space};
use tachonym_packet::FaceId;

use super::next_hops::{MAX_NEXT_HOPS, NEXT_HOP_WORDS, NextHop, NextHops, NextHopsView};

/// Number of a set; 0 is the empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SetId(pub(crate) u32);

/// Bits of the number of next hops in the word of a set; above it, where they are.
const LEN_BITS: u32 = 16;
const COMMIT_WORDS: usize = if cfg!(loom) { 8 } else { 1 << 12 };
/// Sets beyond those of prefixes: released ones wait for readers, and their successors
/// stand beside them.
const N_SPARE_SETS: usize = if cfg!(loom) { 4 } else { 1024 };
/// Next hops for which there is address space, by set.
const HOPS_PER_SET: usize = if cfg!(loom) { 1 } else { 16 };

/// The sets, as readers see them.
#[derive(Debug)]
pub(crate) struct Sets {
    /// By number: where its next hops are, and how many.
    heads: Words,
    hops: Words,
}

impl Sets {
    /// The next hops of a set; none if it was emptied.
    #[inline]
    pub(crate) fn get(&self, set: SetId) -> NextHopsView<'_> {
        let head = self.heads.words()[set.0 as usize].load(Ordering::Acquire);
        let at = (head >> LEN_BITS) as usize;
        let n_words = (head as usize & ((1 << LEN_BITS) - 1)) * NEXT_HOP_WORDS;
        NextHopsView::new(&self.hops.words()[at..at + n_words])
    }

    /// Whether a set has lost its last next hop.
    pub(crate) fn is_empty(&self, set: SetId) -> bool {
        self.heads.words()[set.0 as usize].load(Ordering::Acquire) & ((1 << LEN_BITS) - 1) == 0
    }

    pub(crate) fn pages(&self) -> Pages {
        self.heads.pages() + self.hops.pages()
    }
}

/// Next hops in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HopsPlace {
    at: u64,
    n_hops: u16,
}

/// What a change of sets left behind. Some reader may still know of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leftover {
    pub(crate) set: Option<SetId>,
    pub(crate) hops: Option<HopsPlace>,
}

/// What the writer knows of the sets.
#[derive(Debug)]
pub(crate) struct SetWriter {
    interned: HashMap<Box<[NextHop]>, SetId, RandomState>,
    /// How many prefixes have a set, by its number.
    n_users: Vec<u32>,
    free_sets: Vec<SetId>,
    /// Where next hops may be written, by their number.
    free_hops: Vec<Vec<u64>>,
    next_hop_word: u64,
    /// The sets that have a face. Ordered sets, since they grow and shrink without ever
    /// moving as a whole.
    by_face: HashMap<FaceId, BTreeSet<SetId>, foldhash::fast::FixedState>,
    n_hops: usize,
}

impl SetWriter {
    /// No set but the empty one, and room for as many as `max_prefixes` may have.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) fn new(
        max_prefixes: usize,
        pages: PagePreference,
    ) -> Result<(Self, Sets), MemoryError> {
        let max_sets = max_prefixes.saturating_mul(2).saturating_add(N_SPARE_SETS);
        let max_hop_words = max_sets.saturating_mul(HOPS_PER_SET * NEXT_HOP_WORDS);
        let by_addresses = usize::try_from(available_address_space() / 32 / 8);
        let max_hop_words = max_hop_words.min(by_addresses.unwrap_or(usize::MAX));
        let heads = Words::reserve(max_sets, pages)?;
        let hops = Words::reserve(max_hop_words.max(COMMIT_WORDS), pages)?;
        heads.commit(COMMIT_WORDS.min(max_sets))?;
        hops.commit(COMMIT_WORDS)?;
        let writer = Self {
            interned: HashMap::default(),
            n_users: vec![0],
            free_sets: Vec::new(),
            free_hops: vec![Vec::new(); MAX_NEXT_HOPS + 1],
            next_hop_word: 0,
            by_face: HashMap::default(),
            n_hops: 0,
        };
        Ok((writer, Sets { heads, hops }))
    }

    /// The set of these next hops, for one more prefix.
    ///
    /// # Errors
    /// If there is no memory for a new one.
    pub(crate) fn acquire(&mut self, sets: &Sets, hops: &NextHops) -> Result<SetId, MemoryError> {
        if let Some(&set) = self.interned.get(&**hops) {
            self.n_users[set.0 as usize] += 1;
            return Ok(set);
        }
        let place = self.write_hops(sets, hops)?;
        let set = match self.take_number(sets) {
            Ok(set) => set,
            Err(error) => {
                self.free(Leftover {
                    set: None,
                    hops: Some(place),
                });
                return Err(error);
            }
        };
        publish(sets, set, place);
        self.n_users[set.0 as usize] = 1;
        self.n_hops += hops.len();
        for hop in hops.iter() {
            self.by_face.entry(hop.face()).or_default().insert(set);
        }
        self.interned.insert(hops.to_vec().into_boxed_slice(), set);
        Ok(set)
    }

    /// One prefix less has the set; what is free once no reader knows of it, if that
    /// was the last.
    pub(crate) fn release(&mut self, sets: &Sets, set: SetId) -> Leftover {
        let n_users = &mut self.n_users[set.0 as usize];
        *n_users -= 1;
        if *n_users > 0 {
            return Leftover::default();
        }
        let hops: Box<[NextHop]> = sets.get(set).iter().collect();
        self.forget(set, &hops);
        Leftover {
            set: Some(set),
            hops: (!hops.is_empty()).then(|| place_of(sets, set)),
        }
    }

    /// Some set that has `face`.
    pub(crate) fn set_with_face(&self, face: FaceId) -> Option<SetId> {
        self.by_face.get(&face)?.first().copied()
    }

    /// Takes `face` out of a set; what is free once no reader knows of it, and how many
    /// prefixes have the set.
    ///
    /// # Errors
    /// If there is no memory for what is left; nothing has changed.
    pub(crate) fn remove_face(
        &mut self,
        sets: &Sets,
        set: SetId,
        face: FaceId,
    ) -> Result<(Leftover, u32), MemoryError> {
        let old: Box<[NextHop]> = sets.get(set).iter().collect();
        let rest: Vec<NextHop> = old
            .iter()
            .copied()
            .filter(|hop| hop.face() != face)
            .collect();
        let old_place = place_of(sets, set);
        match NextHops::new(rest) {
            Ok(rest) => {
                let place = self.write_hops(sets, &rest)?;
                self.forget(set, &old);
                publish(sets, set, place);
                self.n_hops += rest.len();
                for hop in rest.iter() {
                    self.by_face.entry(hop.face()).or_default().insert(set);
                }
                // Another set may have the same next hops; then prefixes join that one.
                let rest = rest.to_vec().into_boxed_slice();
                self.interned.entry(rest).or_insert(set);
            }
            Err(_) => {
                return Ok((self.clear(sets, set), self.n_users(set)));
            }
        }
        let leftover = Leftover {
            set: None,
            hops: Some(old_place),
        };
        Ok((leftover, self.n_users[set.0 as usize]))
    }

    /// Takes every next hop out of a set; what is free once no reader knows of it.
    pub(crate) fn clear(&mut self, sets: &Sets, set: SetId) -> Leftover {
        let old: Box<[NextHop]> = sets.get(set).iter().collect();
        let place = place_of(sets, set);
        self.forget(set, &old);
        sets.heads.words()[set.0 as usize].store(0, Ordering::Release);
        Leftover {
            set: None,
            hops: Some(place),
        }
    }

    /// Number of prefixes that have a set.
    pub(crate) fn n_users(&self, set: SetId) -> u32 {
        self.n_users[set.0 as usize]
    }

    /// Takes back what no reader knows of any more.
    pub(crate) fn free(&mut self, leftover: Leftover) {
        if let Some(set) = leftover.set {
            self.free_sets.push(set);
        }
        if let Some(place) = leftover.hops {
            self.free_hops[usize::from(place.n_hops)].push(place.at);
        }
    }

    /// Bytes in use; nodes of ordered sets are half full at worst.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.n_users.capacity() * (size_of::<u32>() + size_of::<u64>())
            + self.next_hop_word as usize * size_of::<u64>()
            + self.n_hops * (size_of::<NextHop>() + 2 * size_of::<SetId>())
            + self.interned.allocation_size()
            + self.by_face.allocation_size()
    }

    fn forget(&mut self, set: SetId, hops: &[NextHop]) {
        if self.interned.get(hops) == Some(&set) {
            self.interned.remove(hops);
        }
        self.n_hops -= hops.len();
        for hop in hops {
            if let Some(sets) = self.by_face.get_mut(&hop.face()) {
                sets.remove(&set);
                if sets.is_empty() {
                    self.by_face.remove(&hop.face());
                }
            }
        }
    }

    fn take_number(&mut self, sets: &Sets) -> Result<SetId, MemoryError> {
        if let Some(set) = self.free_sets.pop() {
            return Ok(set);
        }
        let number = self.n_users.len();
        commit(&sets.heads, number + 1)?;
        self.n_users.push(0);
        Ok(SetId(number as u32))
    }

    fn write_hops(&mut self, sets: &Sets, hops: &NextHops) -> Result<HopsPlace, MemoryError> {
        let at = match self.free_hops[hops.len()].pop() {
            Some(at) => at,
            None => {
                let end = self.next_hop_word as usize + hops.len() * NEXT_HOP_WORDS;
                commit(&sets.hops, end)?;
                std::mem::replace(&mut self.next_hop_word, end as u64)
            }
        };
        let words = hops.iter().flat_map(|hop| hop.to_words());
        for (word, idx) in words.zip(at as usize..) {
            sets.hops.words()[idx].store(word, Ordering::Relaxed);
        }
        Ok(HopsPlace {
            at,
            n_hops: hops.len() as u16,
        })
    }
}

/// Makes the first `n_words` usable, and some more for the next.
fn commit(words: &Words, n_words: usize) -> Result<(), MemoryError> {
    let n_committed = words.words().len();
    if n_words <= n_committed {
        return Ok(());
    }
    words
        .commit(n_words + n_committed / 8 + COMMIT_WORDS)
        .or_else(|_| words.commit(n_words))
}

fn publish(sets: &Sets, set: SetId, place: HopsPlace) {
    let head = place.at << LEN_BITS | u64::from(place.n_hops);
    sets.heads.words()[set.0 as usize].store(head, Ordering::Release);
}

fn place_of(sets: &Sets, set: SetId) -> HopsPlace {
    let head = sets.heads.words()[set.0 as usize].load(Ordering::Relaxed);
    HopsPlace {
        at: head >> LEN_BITS,
        n_hops: head as u16,
    }
}
