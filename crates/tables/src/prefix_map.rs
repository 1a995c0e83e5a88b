//! A bounded map from names to values with longest-prefix search.
//!
//! Owns names and values; the hashes come from the caller, one per prefix.
//! A search probes only prefix lengths that have entries, longest first, and
//! compares bytes before it believes a hash. Names deeper than
//! [`MAX_PREFIX_COMPONENTS`] are refused, so a search makes as many probes at
//! most, whatever a peer sends. Strategy choices and announcements are such maps.

use tachonym_packet::{NameHash, NameView};

use crate::hash_index::HashIndex;

/// Most components of a name in a [`PrefixMap`], and of a prefix in a FIB.
pub const MAX_PREFIX_COMPONENTS: usize = 63;

/// Why a [`PrefixMap`] did not take a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixMapError {
    /// The map holds as many names as it may.
    Full,
    /// The name has more than [`MAX_PREFIX_COMPONENTS`] components.
    NameTooLong,
}

impl std::fmt::Display for PrefixMapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "the table is full",
            Self::NameTooLong => "the name has too many components",
        })
    }
}

impl std::error::Error for PrefixMapError {}

/// A name in a [`PrefixMap`] with its value.
#[derive(Debug)]
pub struct PrefixEntry<V> {
    hash: NameHash,
    name: Box<[u8]>,
    n_components: u32,
    /// What the name maps to.
    pub value: V,
}

impl<V> PrefixEntry<V> {
    /// The name. Checks its bytes again, so not meant for the packet path.
    #[must_use]
    pub fn name(&self) -> NameView<'_> {
        NameView::parse_value(&self.name).expect("copied from a name")
    }

    /// Number of components of the name.
    #[must_use]
    pub const fn n_components(&self) -> usize {
        self.n_components as usize
    }

    /// Hash of the name under the key its inserter used.
    #[must_use]
    pub const fn name_hash(&self) -> NameHash {
        self.hash
    }
}

/// Map from names to values; see the module.
#[derive(Debug)]
pub struct PrefixMap<V> {
    slots: Vec<Option<PrefixEntry<V>>>,
    free: Vec<u32>,
    index: HashIndex,
    /// Bit per number of components that some entry has.
    lengths: u64,
    n_by_length: [u32; MAX_PREFIX_COMPONENTS + 1],
    len: usize,
    max_entries: usize,
    name_bytes: usize,
}

impl<V> PrefixMap<V> {
    /// An empty map that holds `max_entries` names at most.
    #[must_use]
    pub fn new(max_entries: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index: HashIndex::new(),
            lengths: 0,
            n_by_length: [0; MAX_PREFIX_COMPONENTS + 1],
            len: 0,
            max_entries: max_entries.min(u32::MAX as usize - 1),
            name_bytes: 0,
        }
    }

    /// Number of names.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the map holds no name.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entry of the longest prefix of `name` that the map holds, `name` itself
    /// included. `hashes[i]` is the hash of its first `i` components.
    ///
    /// # Panics
    /// If `hashes` has not one hash more than `name` has components.
    #[must_use]
    pub fn find_longest(&self, name: NameView<'_>, hashes: &[NameHash]) -> Option<&PrefixEntry<V>> {
        self.find_longest_where(name, hashes, |_| true)
    }

    /// As [`PrefixMap::find_longest`], among the values that `accepts` takes.
    ///
    /// # Panics
    /// If `hashes` has not one hash more than `name` has components.
    #[must_use]
    pub fn find_longest_where(
        &self,
        name: NameView<'_>,
        hashes: &[NameHash],
        mut accepts: impl FnMut(&V) -> bool,
    ) -> Option<&PrefixEntry<V>> {
        assert_eq!(hashes.len(), name.len() + 1, "one hash per prefix");
        let n_components = name.len().min(MAX_PREFIX_COMPONENTS);
        let mut lengths = self.lengths & (u64::MAX >> (63 - n_components));
        while lengths != 0 {
            let length = lengths.ilog2();
            lengths &= !(1 << length);
            // Equal bytes are equal components, and so as many of them.
            let slot = self.index.find(hashes[length as usize].0, |slot| {
                self.slots[slot as usize].as_ref().is_some_and(|entry| {
                    name.value_bytes().starts_with(&entry.name) && entry.n_components == length
                })
            });
            if let Some(entry) = slot.and_then(|slot| self.slots[slot as usize].as_ref())
                && accepts(&entry.value)
            {
                return Some(entry);
            }
        }
        None
    }

    /// Entry of exactly this name.
    #[must_use]
    pub fn get(&self, name: NameView<'_>, hash: NameHash) -> Option<&PrefixEntry<V>> {
        self.slots[self.slot_of(name, hash)? as usize].as_ref()
    }

    /// Entry of exactly this name, to change its value.
    pub fn get_mut(&mut self, name: NameView<'_>, hash: NameHash) -> Option<&mut PrefixEntry<V>> {
        let slot = self.slot_of(name, hash)?;
        self.slots[slot as usize].as_mut()
    }

    /// Maps `name` to `value`; the value it had before, if any.
    ///
    /// # Errors
    /// If the name is too deep, or is new and the map is full.
    pub fn insert(
        &mut self,
        name: NameView<'_>,
        hash: NameHash,
        value: V,
    ) -> Result<Option<V>, PrefixMapError> {
        if let Some(entry) = self.get_mut(name, hash) {
            return Ok(Some(std::mem::replace(&mut entry.value, value)));
        }
        let length = name.len();
        if length > MAX_PREFIX_COMPONENTS {
            return Err(PrefixMapError::NameTooLong);
        }
        if self.len >= self.max_entries {
            return Err(PrefixMapError::Full);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let name: Box<[u8]> = name.value_bytes().into();
        self.name_bytes += name.len();
        self.slots[slot as usize] = Some(PrefixEntry {
            hash,
            name,
            n_components: length as u32,
            value,
        });
        self.index.insert(hash.0, slot);
        self.len += 1;
        self.n_by_length[length] += 1;
        self.lengths |= 1 << length;
        Ok(None)
    }

    /// Removes `name`; its value, if the map held it.
    pub fn remove(&mut self, name: NameView<'_>, hash: NameHash) -> Option<V> {
        let slot = self.slot_of(name, hash)?;
        self.remove_slot(slot)
    }

    /// Keeps the entries that `keep` accepts; how many it removed.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut PrefixEntry<V>) -> bool) -> usize {
        let mut n_removed = 0;
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize]
                .as_mut()
                .is_some_and(|entry| !keep(entry))
            {
                self.remove_slot(slot);
                n_removed += 1;
            }
        }
        n_removed
    }

    /// Every entry, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &PrefixEntry<V>> {
        self.slots.iter().flatten()
    }

    /// The entries in up to `max_slots` slots from the one numbered `from` on,
    /// and the number of the next slot, if there is one. A walk that begins at
    /// 0 and goes on at that number meets every entry that is there throughout
    /// once, because entries never move; one that comes meanwhile it may miss,
    /// and one that goes and comes again it may meet twice.
    pub fn slice(
        &self,
        from: u32,
        max_slots: u32,
    ) -> (impl Iterator<Item = &PrefixEntry<V>>, Option<u32>) {
        let n_slots = self.slots.len() as u32;
        let end = from.saturating_add(max_slots).min(n_slots);
        let entries = (from..end).filter_map(|slot| self.slots[slot as usize].as_ref());
        (entries, (end < n_slots).then_some(end))
    }

    /// Heap memory in use, without what the values point to.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<PrefixEntry<V>>>()
            + self.free.capacity() * size_of::<u32>()
            + self.index.memory_bytes()
            + self.name_bytes
    }

    fn slot_of(&self, name: NameView<'_>, hash: NameHash) -> Option<u32> {
        self.index.find(hash.0, |slot| {
            self.slots[slot as usize]
                .as_ref()
                .is_some_and(|entry| *entry.name == *name.value_bytes())
        })
    }

    pub(crate) fn remove_slot(&mut self, slot: u32) -> Option<V> {
        let entry = self.slots[slot as usize].take()?;
        self.index.remove(entry.hash.0, slot);
        self.free.push(slot);
        self.name_bytes -= entry.name.len();
        self.len -= 1;
        let length = entry.n_components();
        self.n_by_length[length] -= 1;
        if self.n_by_length[length] == 0 {
            self.lengths &= !(1 << length);
        }
        Some(entry.value)
    }
}
