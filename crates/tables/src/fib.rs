//! The Forwarding Information Base: which faces lead towards a name.
//!
//! Owns prefixes and their next hops. [`FibEngine`] is the interface of every
//! FIB; [`HashFib`] is the first, a hash table probed from the longest prefix
//! length that exists downwards. It also knows the prefixes of each face, so that
//! a face that goes costs as much as it had routes. It knows a face only by its number, and
//! computes no hash: callers pass those of `packet::NameHashes`.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use tachonym_packet::lp::FaceId;
use tachonym_packet::{NameHash, NameView};

use crate::prefix_map::{PrefixEntry, PrefixMap, PrefixMapError};

/// Most next hops of one prefix.
pub const MAX_NEXT_HOPS: usize = 256;

/// A face that leads towards a prefix. The better of two next hops is less: it
/// costs less, or as much and was inherited from less far up, or both are the
/// same and its face is older.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextHop {
    // The order of the fields and of the bits in them is that of next hops.
    cost: u64,
    /// Distance above [`DISTANCE_SHIFT`], face below.
    distance_and_face: u64,
}

/// Bits of a next hop's face: as many as no router ever counts to.
const DISTANCE_SHIFT: u32 = 56;
/// Highest number that a next hop's face can have.
const MAX_FACE: u64 = (1 << DISTANCE_SHIFT) - 1;

const _: () = assert!(size_of::<NextHop>() == 16);

impl NextHop {
    /// A next hop of the prefix itself. No face has a number of more than 56
    /// bits: such numbers become the highest of 56 bits, which none has either.
    #[must_use]
    pub const fn new(face: FaceId, cost: u64) -> Self {
        Self::inherited(face, cost, 0)
    }

    /// A next hop that the prefix has from a prefix of its own, shorter by
    /// `distance` components; 0: from itself. See [`NextHop::new`].
    #[must_use]
    pub const fn inherited(face: FaceId, cost: u64, distance: u8) -> Self {
        let face = if face.0 < MAX_FACE { face.0 } else { MAX_FACE };
        Self {
            cost,
            distance_and_face: (distance as u64) << DISTANCE_SHIFT | face,
        }
    }

    /// Where to send.
    #[must_use]
    pub const fn face(self) -> FaceId {
        FaceId(self.distance_and_face & MAX_FACE)
    }

    /// Lower is better.
    #[must_use]
    pub const fn cost(self) -> u64 {
        self.cost
    }

    /// How many components shorter the prefix is from which this was inherited.
    #[must_use]
    pub const fn distance(self) -> u8 {
        (self.distance_and_face >> DISTANCE_SHIFT) as u8
    }
}

impl std::fmt::Debug for NextHop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NextHop")
            .field("face", &self.face())
            .field("cost", &self.cost())
            .field("distance", &self.distance())
            .finish()
    }
}

/// Next hops of a prefix: never empty, each face once, the best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHops(Box<[NextHop]>);

impl NextHops {
    /// Sorts `hops`; of two for one face the better one stays.
    ///
    /// # Errors
    /// If there is none, or more than [`MAX_NEXT_HOPS`].
    pub fn new(mut hops: Vec<NextHop>) -> Result<Self, FibError> {
        hops.sort_unstable_by_key(|hop| (hop.face(), *hop));
        hops.dedup_by_key(|hop| hop.face());
        hops.sort_unstable();
        match hops.len() {
            0 => Err(FibError::NoNextHop),
            1..=MAX_NEXT_HOPS => Ok(Self(hops.into_boxed_slice())),
            _ => Err(FibError::TooManyNextHops),
        }
    }
}

impl std::ops::Deref for NextHops {
    type Target = [NextHop];

    fn deref(&self) -> &[NextHop] {
        &self.0
    }
}

/// A prefix and its next hops.
pub type FibEntry = PrefixEntry<NextHops>;

impl PrefixEntry<NextHops> {
    /// Next hops, the best first; at least one.
    #[must_use]
    pub fn next_hops(&self) -> &[NextHop] {
        &self.value
    }
}

/// Why a FIB was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FibError {
    /// The FIB holds as many prefixes as it may.
    Full,
    /// The prefix has more than [`crate::MAX_PREFIX_COMPONENTS`] components.
    NameTooLong,
    /// The prefix would have more than [`MAX_NEXT_HOPS`] next hops.
    TooManyNextHops,
    /// An entry without a next hop leads nowhere.
    NoNextHop,
}

impl std::fmt::Display for FibError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "the FIB is full",
            Self::NameTooLong => "the prefix has too many components",
            Self::TooManyNextHops => "the prefix has too many next hops",
            Self::NoNextHop => "a FIB entry needs a next hop",
        })
    }
}

impl std::error::Error for FibError {}

impl From<PrefixMapError> for FibError {
    fn from(error: PrefixMapError) -> Self {
        match error {
            PrefixMapError::Full => Self::Full,
            PrefixMapError::NameTooLong => Self::NameTooLong,
        }
    }
}

/// What every FIB does. In each method `hashes[i]` is the hash of the first `i`
/// components of `name`; there is one more of them than components.
pub trait FibEngine {
    /// Entry of the longest prefix of `name`.
    fn find_longest(&self, name: NameView<'_>, hashes: &[NameHash]) -> Option<&FibEntry>;

    /// Entry of exactly this prefix.
    fn find_exact(&self, name: NameView<'_>, hashes: &[NameHash]) -> Option<&FibEntry>;

    /// Sets all next hops of a prefix, replacing those it had.
    ///
    /// # Errors
    /// If the prefix is too deep, or is new and the FIB is full.
    fn insert(
        &mut self,
        name: NameView<'_>,
        hashes: &[NameHash],
        next_hops: NextHops,
    ) -> Result<(), FibError>;

    /// Removes a prefix; `false` if it was not there.
    fn remove(&mut self, name: NameView<'_>, hashes: &[NameHash]) -> bool;

    /// Removes a face from every entry, and the entries that have no other next
    /// hop; the number of entries changed or removed.
    fn remove_face(&mut self, face: FaceId) -> usize {
        self.remove_face_from_some(face, usize::MAX)
    }

    /// As [`FibEngine::remove_face`], but changes `max_entries` at most: if it
    /// changes fewer, there are no more.
    fn remove_face_from_some(&mut self, face: FaceId, max_entries: usize) -> usize;

    /// Every entry, in no particular order.
    fn iter(&self) -> impl Iterator<Item = &FibEntry>;

    /// Some of the entries, for at most `max_work` steps, and where the walk
    /// through all of them, which begins at 0, goes on; `None`: it is complete.
    /// Entries that are there throughout a walk are met once.
    fn slice(&self, from: u32, max_work: u32) -> (impl Iterator<Item = &FibEntry>, Option<u32>);

    /// Number of prefixes.
    fn len(&self) -> usize;

    /// Heap memory in use, next hops included.
    fn memory_bytes(&self) -> usize;

    /// Whether no prefix has a next hop.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a next hop to a prefix, or changes the one of its face.
    ///
    /// # Errors
    /// As [`FibEngine::insert`], and if the prefix has too many next hops.
    fn add_next_hop(
        &mut self,
        name: NameView<'_>,
        hashes: &[NameHash],
        hop: NextHop,
    ) -> Result<(), FibError> {
        let mut hops = self.other_next_hops(name, hashes, hop.face());
        hops.push(hop);
        self.insert(name, hashes, NextHops::new(hops)?)
    }

    /// Removes a next hop from a prefix, and the prefix with its last one;
    /// `false` if it was not there.
    fn remove_next_hop(&mut self, name: NameView<'_>, hashes: &[NameHash], face: FaceId) -> bool {
        let present = self
            .find_exact(name, hashes)
            .is_some_and(|entry| entry.next_hops().iter().any(|hop| hop.face() == face));
        if present {
            match NextHops::new(self.other_next_hops(name, hashes, face)) {
                Ok(rest) => self
                    .insert(name, hashes, rest)
                    .expect("the prefix is there"),
                Err(_) => {
                    self.remove(name, hashes);
                }
            }
        }
        present
    }

    /// Next hops of a prefix but for one face; empty if it has none.
    fn other_next_hops(
        &self,
        name: NameView<'_>,
        hashes: &[NameHash],
        face: FaceId,
    ) -> Vec<NextHop> {
        let hops = self
            .find_exact(name, hashes)
            .map_or(&[][..], FibEntry::next_hops);
        hops.iter()
            .copied()
            .filter(|hop| hop.face() != face)
            .collect()
    }
}

/// FIB in one hash table; see the module.
#[derive(Debug)]
pub struct HashFib {
    map: PrefixMap<NextHops>,
    n_next_hops: usize,
    /// The entries that have a face among their next hops. Ordered sets, since
    /// they grow and shrink without ever moving as a whole.
    by_face: HashMap<FaceId, BTreeSet<u32>, foldhash::fast::FixedState>,
}

impl HashFib {
    /// An empty FIB that holds `max_entries` prefixes at most.
    #[must_use]
    pub fn new(max_entries: usize) -> Self {
        Self {
            map: PrefixMap::new(max_entries),
            n_next_hops: 0,
            by_face: HashMap::default(),
        }
    }

    fn unlink(&mut self, face: FaceId, slot: u32) {
        if let Some(slots) = self.by_face.get_mut(&face) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.by_face.remove(&face);
            }
        }
    }
}

/// Whether `face` is one of `hops`.
fn leads_to(hops: &[NextHop], face: FaceId) -> bool {
    hops.iter().any(|hop| hop.face() == face)
}

/// Hash of the whole name.
fn full_hash(name: NameView<'_>, hashes: &[NameHash]) -> NameHash {
    hashes[name.len()]
}

impl FibEngine for HashFib {
    fn find_longest(&self, name: NameView<'_>, hashes: &[NameHash]) -> Option<&FibEntry> {
        self.map.find_longest(name, hashes)
    }

    fn find_exact(&self, name: NameView<'_>, hashes: &[NameHash]) -> Option<&FibEntry> {
        self.map.get(name, full_hash(name, hashes))
    }

    fn insert(
        &mut self,
        name: NameView<'_>,
        hashes: &[NameHash],
        next_hops: NextHops,
    ) -> Result<(), FibError> {
        let hash = full_hash(name, hashes);
        let before = self.map.insert(name, hash, next_hops)?;
        let slot = self.map.find_slot(name, hash).expect("just inserted");
        let before = before.as_deref().unwrap_or_default();
        let entry = self.map.slot_mut(slot).expect("just inserted");
        let after = entry.next_hops();
        self.n_next_hops += after.len();
        self.n_next_hops -= before.len();
        for hop in after.iter().filter(|hop| !leads_to(before, hop.face())) {
            self.by_face.entry(hop.face()).or_default().insert(slot);
        }
        let lost = before.iter().filter(|hop| !leads_to(after, hop.face()));
        let lost: Vec<FaceId> = lost.map(|hop| hop.face()).collect();
        for face in lost {
            self.unlink(face, slot);
        }
        Ok(())
    }

    fn remove(&mut self, name: NameView<'_>, hashes: &[NameHash]) -> bool {
        let Some(slot) = self.map.find_slot(name, full_hash(name, hashes)) else {
            return false;
        };
        let removed = self.map.remove_slot(slot);
        for hop in removed.iter().flat_map(|hops| hops.iter()) {
            self.n_next_hops -= 1;
            self.unlink(hop.face(), slot);
        }
        removed.is_some()
    }

    fn remove_face_from_some(&mut self, face: FaceId, max_entries: usize) -> usize {
        let mut n_changed = 0;
        while n_changed < max_entries
            && let Some(slot) = self.by_face.get_mut(&face).and_then(BTreeSet::pop_first)
        {
            n_changed += 1;
            // A face occurs once in an entry.
            self.n_next_hops -= 1;
            let Some(entry) = self.map.slot_mut(slot) else {
                debug_assert!(false, "the index knows live entries only");
                continue;
            };
            let others = entry.next_hops().iter().filter(|hop| hop.face() != face);
            match NextHops::new(others.copied().collect()) {
                Ok(rest) => entry.value = rest,
                Err(_) => {
                    self.map.remove_slot(slot);
                }
            }
        }
        if self.by_face.get(&face).is_some_and(BTreeSet::is_empty) {
            self.by_face.remove(&face);
        }
        n_changed
    }

    fn iter(&self) -> impl Iterator<Item = &FibEntry> {
        self.map.iter()
    }

    fn slice(&self, from: u32, max_work: u32) -> (impl Iterator<Item = &FibEntry>, Option<u32>) {
        self.map.slice(from, max_work)
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn memory_bytes(&self) -> usize {
        // Nodes of ordered sets are half full at worst.
        self.map.memory_bytes()
            + self.n_next_hops * (size_of::<NextHop>() + 2 * size_of::<u32>())
            + self.by_face.allocation_size()
    }
}
