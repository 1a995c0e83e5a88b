//! Which part of a name decides where it goes, and which packets concern more workers
//! than one.
//!
//! # One worker, or more
//!
//! Each worker has its own PIT and content store. A name has a *home*: the worker that a
//! map gives for its [`Key`]. N workers do what one would if these rules are kept:
//!
//! | packet | goes to | because |
//! |---|---|---|
//! | Interest that [`Reach::One`] | its home | every Data that may answer it has the same key |
//! | Interest that [`Reach::All`] | its home, which alone keeps it in its PIT and forwards it; it first asks the content stores of all workers | Data for it may be at home anywhere |
//! | Nack | its home; if that has not sent the Interest in it, whoever held the name before it moved, one after the other until one has | the Interest was sent from where the name was at home then |
//! | Data | its home, which caches it; further the home of each prefix of it whose length is in [`waiting_lengths`](DispatchBy::waiting_lengths) and that has a pending Interest with CanBePrefix; and whoever held the name before it moved | Interests wait at each of them |
//!
//! An Interest that reaches all workers stands in its home's PIT *before* the stores are
//! asked, so that Data that comes meanwhile meets it. It leaves for upstream once, and not
//! before all stores have said that they have nothing. Counting, per length, the pending
//! Interests that reach all workers makes the common case cheap: Data has further homes only
//! while there are some.
//!
//! **MustBeFresh** changes nothing: every worker judges what it holds by the same clock.
//! **Implicit digests** at the end of a name are left out of the key, however many there
//! are: the Interest for a full name, the Data with that digest, and a Data whose own name
//! ends in such a component all have the same key. **Forwarding hints** are not looked at:
//! Data is found by its name. **PIT tokens** tell a worker that has a pending Interest for
//! the Data, maybe a former home; other Interests may wait elsewhere, so that the token adds
//! its worker to those above and replaces none.
//!
//! Keys are 64 bits of a keyed hash. Two names with one key share a home, and count as one
//! when aggressive names are looked for; no answer depends on it.

use std::num::{NonZeroU8, NonZeroU32};
use std::ops::Range;

use tachonym_packet::types::component::{IMPLICIT_SHA256_DIGEST, SEGMENT};
use tachonym_packet::{NameHash, NameView};

/// What a name is dispatched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

impl Key {
    /// Bits that depend on all of the key and on no few of them alone, so that what maps
    /// use here says nothing about the bits that a worker's tables use of the same hash.
    #[inline]
    #[must_use]
    pub const fn spread(self) -> u64 {
        let wide = (self.0 ^ 0x2545_F491_4F6C_DD1D) as u128 * 0x9E37_79B9_7F4A_7C15;
        (wide as u64) ^ (wide >> 64) as u64
    }
}

/// Which part of a name is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchBy {
    /// The first components; of a shorter name, all.
    Prefix {
        /// How many.
        n_components: NonZeroU8,
    },
    /// All components.
    Name,
    /// The name without its last component, which is a segment number, and that number
    /// by `n_segments`: batches of neighbours stay together, and an object's batches
    /// spread over the workers (Mansilha 2017, sections 2.3 and 5.2). Names that end in
    /// no segment number go by all components.
    Batch {
        /// Segments of a batch.
        n_segments: NonZeroU32,
    },
}

/// What dispatching needs to know of a name besides its hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameShape {
    /// Components, without implicit digests at the end.
    pub n_components: usize,
    /// The number that the last of these is, if it is a segment number.
    pub segment: Option<u64>,
}

impl NameShape {
    /// That of a name. Looks at the components only if the name ends in an implicit
    /// digest; finds no segment number.
    #[inline]
    fn without_segment(name: NameView<'_>) -> Self {
        let n_components = match name.last_implicit_digest() {
            Some(_) => len_without_digests(name),
            None => name.len(),
        };
        Self {
            n_components,
            segment: None,
        }
    }

    /// That of a name.
    #[inline]
    #[must_use]
    pub fn of(name: NameView<'_>) -> Self {
        let mut shape = Self::without_segment(name);
        let last = name.prefix(shape.n_components).last();
        shape.segment = last
            .filter(|last| last.typ() == SEGMENT)
            .and_then(|last| last.as_number());
        shape
    }
}

/// Looks at each component once, from the first on: there is no way from the last one back.
#[cold]
fn len_without_digests(name: NameView<'_>) -> usize {
    let mut n_components = 0;
    for (nth, component) in (1..).zip(name.components()) {
        if component.typ() != IMPLICIT_SHA256_DIGEST {
            n_components = nth;
        }
    }
    n_components
}

/// Which workers' content stores may hold an answer to an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its home's alone.
    One,
    /// Any: see the [module](self).
    All,
}

impl DispatchBy {
    /// The key of a name, from the hashes of its prefixes: of no component first, of all
    /// last.
    ///
    /// # Panics
    /// If there are fewer hashes than prefixes.
    #[inline]
    #[must_use]
    pub fn key(self, name: NameView<'_>, hashes: &[NameHash]) -> Key {
        let shape = match self {
            Self::Batch { .. } => NameShape::of(name),
            Self::Prefix { .. } | Self::Name => NameShape::without_segment(name),
        };
        self.key_of(shape, |n_components| hashes[n_components].0)
    }

    /// The key of a name, from what gives the hash of a prefix of so many components.
    #[inline]
    #[must_use]
    pub fn key_of(self, shape: NameShape, hash_of: impl Fn(usize) -> u64) -> Key {
        match (self, shape.segment) {
            (Self::Prefix { n_components }, _) => {
                Key(hash_of(shape.n_components.min(n_components.get().into())))
            }
            (Self::Batch { n_segments }, Some(segment)) if shape.n_components > 0 => {
                let batch = segment / u64::from(n_segments.get());
                batch_key(hash_of(shape.n_components - 1), batch)
            }
            (Self::Name | Self::Batch { .. }, _) => Key(hash_of(shape.n_components)),
        }
    }

    /// Which content stores may answer an Interest whose name has so many components,
    /// [without implicit digests](NameShape::n_components).
    ///
    /// `n_service_components` are those of the longest prefix that gives a name its
    /// service; 0 if there is one service. Below it, names of several services begin
    /// alike.
    #[inline]
    #[must_use]
    pub fn interest_reach(
        self,
        n_components: usize,
        can_be_prefix: bool,
        n_service_components: usize,
    ) -> Reach {
        let n_deciding = match self {
            Self::Prefix { n_components } => n_service_components.max(n_components.get().into()),
            Self::Name | Self::Batch { .. } => usize::MAX,
        };
        if can_be_prefix && n_components < n_deciding {
            Reach::All
        } else {
            Reach::One
        }
    }

    /// At which lengths a prefix of a Data's name may have a home of its own where
    /// Interests with CanBePrefix wait for it. The Data's name has so many components,
    /// [without implicit digests](NameShape::n_components); see
    /// [`interest_reach`](Self::interest_reach) for `n_service_components`.
    ///
    /// A prefix's home is that of the Interest with this name: its segment number, if it
    /// ends in one, counts as everywhere else.
    #[inline]
    #[must_use]
    pub fn waiting_lengths(self, n_components: usize, n_service_components: usize) -> Range<usize> {
        match self {
            Self::Prefix {
                n_components: n_deciding,
            } => {
                let n_deciding = n_service_components.max(n_deciding.get().into());
                0..n_components.min(n_deciding)
            }
            Self::Name | Self::Batch { .. } => 0..n_components,
        }
    }
}

/// The key of a batch of an object with this hash.
#[inline]
const fn batch_key(object: u64, batch: u64) -> Key {
    // Batch 0 is moved away from the object's own hash, too: the two are told apart.
    let wide =
        (object ^ 0xA076_1D64_78BD_642F) as u128 * (batch.wrapping_mul(2).wrapping_add(1)) as u128;
    let folded = (wide as u64) ^ (wide >> 64) as u64;
    Key(Key(folded.wrapping_add(batch)).spread())
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{Component, Name};

    use super::*;

    #[test]
    fn digests_count_but_for_those_at_the_end() {
        let digest = Component::implicit_digest(&[7; 32]);
        let generic = Component::generic("a");
        let lens = [0, 1, 2, 230];
        for (n_first, n_last) in lens.iter().flat_map(|&a| lens.map(|b| (a, b))) {
            let mut name = Name::new();
            (0..n_first).for_each(|_| name.push(&digest));
            let only_digests = NameShape::of(name.view());
            assert_eq!(only_digests.n_components, 0);
            name.push(&generic);
            (0..n_last).for_each(|_| name.push(&digest));
            let shape = NameShape::of(name.view());
            assert_eq!((shape.n_components, shape.segment), (n_first + 1, None));
        }
    }
}
