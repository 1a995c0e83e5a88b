//! Next hops: the faces that lead towards a prefix, the best first.
//!
//! Owns the order of next hops and the rule that a set of them is never empty. Which
//! prefix they belong to is known elsewhere.

use tachonym_memory::sync::{AtomicU64, Ordering};
use tachonym_packet::lp::FaceId;

/// Most next hops of one prefix.
pub const MAX_NEXT_HOPS: usize = 256;

/// A face that leads towards a prefix. The better of two next hops is less: it
/// costs less, or as much and was inherited from less far up, or both are the
/// same and its face is older.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NextHops(Box<[NextHop]>);

impl NextHops {
    /// Sorts `hops`; of two for one face the better one stays.
    ///
    /// # Errors
    /// If there is none, or more than [`MAX_NEXT_HOPS`].
    pub fn new(mut hops: Vec<NextHop>) -> Result<Self, NextHopsError> {
        hops.sort_unstable_by_key(|hop| (hop.face(), *hop));
        hops.dedup_by_key(|hop| hop.face());
        hops.sort_unstable();
        match hops.len() {
            0 => Err(NextHopsError::NoNextHop),
            1..=MAX_NEXT_HOPS => Ok(Self(hops.into_boxed_slice())),
            _ => Err(NextHopsError::TooManyNextHops),
        }
    }
}

impl std::ops::Deref for NextHops {
    type Target = [NextHop];

    fn deref(&self) -> &[NextHop] {
        &self.0
    }
}

/// Why next hops make no set of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextHopsError {
    /// There is none.
    NoNextHop,
    /// There are more than [`MAX_NEXT_HOPS`].
    TooManyNextHops,
}

/// The next hops of a prefix as a reader of the FIB sees them: at least one, each face
/// once, the best first.
#[derive(Clone, Copy)]
pub struct NextHopsView<'f> {
    /// Two for each.
    words: &'f [AtomicU64],
}

/// Words of a next hop in shared memory.
pub(super) const NEXT_HOP_WORDS: usize = 2;

impl<'f> NextHopsView<'f> {
    pub(super) const fn new(words: &'f [AtomicU64]) -> Self {
        Self { words }
    }

    /// The next hops, the best first.
    pub fn iter(self) -> impl Iterator<Item = NextHop> + use<'f> {
        let (hops, _) = self.words.as_chunks::<NEXT_HOP_WORDS>();
        hops.iter().map(|[cost, distance_and_face]| NextHop {
            cost: cost.load(Ordering::Relaxed),
            distance_and_face: distance_and_face.load(Ordering::Relaxed),
        })
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.words.len() / NEXT_HOP_WORDS
    }

    /// Never, of a prefix that was found.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.words.is_empty()
    }
}

impl std::fmt::Debug for NextHopsView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl NextHop {
    pub(super) const fn to_words(self) -> [u64; NEXT_HOP_WORDS] {
        [self.cost, self.distance_and_face]
    }
}
