//! Keyed hashes of names and of all their prefixes.
//!
//! Owns [`NameHash`], 64 bits of a keyed hash of a name's components, and
//! [`NameHashes`], which computes the hash of every prefix of names in one
//! pass, in time linear in their bytes and components. Where the key comes from
//! is the caller's business.
//!
//! **What an attacker can do.** He knows the functions and chooses names, as
//! many as he can send. A key that is random and secret keeps him from choosing
//! names that collide (Aumasson and Bernstein 2012, section 1). Seeing neither
//! hashes nor times, he is left with chance, for every [`HashKind`]: two names
//! agree in `b` bits of their hashes with a probability of 2⁻ᵇ, near enough.
//! Measuring times, he may learn that two names share a place in a table; he
//! then knows of these two, and can send them again, but learns nothing of
//! names that he has not tried, because each kind is believed to be
//! a pseudo-random function: every further one that shares the place costs him
//! as many trials as there are places. What that belief rests on differs: see
//! [`HashKind`]. Collisions that he does find cost time and never a wrong
//! answer, since tables compare names by their bytes and are bounded.

mod burst;
mod kind;
mod multilinear;
mod sip;
mod words;

pub use self::burst::HashedNames;
pub use self::kind::HashKind;
use self::multilinear::{Multilinear, Sums};
use self::sip::Sip;
use crate::NameView;

/// The secret key of the hashes, and the function that it is for.
#[derive(Clone)]
pub struct HashKey(Keyed);

#[derive(Clone)]
enum Keyed {
    SipHash24(Sip<2, 4>),
    SipHash13(Sip<1, 3>),
    MultilinearAes(Box<Multilinear>),
}

impl HashKey {
    /// A key for hashes of `kind` from 256 bits, which should be random and
    /// secret. SipHash uses the first 128.
    #[must_use]
    pub fn new(kind: HashKind, secret: &[u8; 32]) -> Self {
        let (k0, k1) = (words::word_at(secret, 0), words::word_at(secret, 8));
        Self(match kind {
            HashKind::SipHash24 => Keyed::SipHash24(Sip::new(k0, k1)),
            HashKind::SipHash13 => Keyed::SipHash13(Sip::new(k0, k1)),
            HashKind::MultilinearAes => Keyed::MultilinearAes(Box::new(Multilinear::new(secret))),
        })
    }

    /// A key for SipHash-1-3 from its two words.
    #[must_use]
    pub const fn from_u64s(k0: u64, k1: u64) -> Self {
        Self(Keyed::SipHash13(Sip::new(k0, k1)))
    }

    /// The function that the key is for.
    #[must_use]
    pub const fn kind(&self) -> HashKind {
        match self.0 {
            Keyed::SipHash24(_) => HashKind::SipHash24,
            Keyed::SipHash13(_) => HashKind::SipHash13,
            Keyed::MultilinearAes(_) => HashKind::MultilinearAes,
        }
    }

    /// The hash of a whole name.
    #[must_use]
    pub fn hash_name(&self, name: NameView<'_>) -> NameHash {
        let bytes = name.value_bytes();
        match &self.0 {
            Keyed::SipHash24(sip) => sip.hash(bytes),
            Keyed::SipHash13(sip) => sip.hash(bytes),
            Keyed::MultilinearAes(multilinear) => multilinear.hash(name),
        }
    }
}

/// Hides the key, which would let a remote party choose collisions.
impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HashKey({}, ..)", self.kind())
    }
}

/// Keyed hash of a name or of a prefix of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameHash(pub u64);

/// Where the hashes of one name lie in a [`NameHashes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashSpan {
    start: u32,
    n_hashes: u32,
}

impl HashSpan {
    /// That of `name`, whose hashes begin at `start`.
    #[inline(always)]
    fn of(name: NameView<'_>, start: usize) -> Self {
        Self {
            start: start as u32,
            n_hashes: name.len() as u32 + 1,
        }
    }
}

/// A reusable buffer of the prefix hashes of many names.
#[derive(Clone, Debug, Default)]
pub struct NameHashes {
    hashes: Vec<NameHash>,
    sums: Sums,
}

impl NameHashes {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all hashes, keeps the memory. Spans given out so far are void.
    pub fn clear(&mut self) {
        self.hashes.clear();
    }

    /// Hashes every prefix of `name`, from no component to all of them.
    pub fn push_name(&mut self, key: &HashKey, name: NameView<'_>) -> HashSpan {
        let mut span = HashSpan::default();
        self.push(key, std::iter::once(name), |only| span = only);
        span
    }

    /// Does [`push_name`](Self::push_name) for each of `names`, appending where
    /// the hashes are to `spans`. Many names together cost less than one by
    /// one.
    #[inline(never)]
    pub fn push_burst<'n>(
        &mut self,
        key: &HashKey,
        names: impl Iterator<Item = NameView<'n>>,
        spans: &mut Vec<HashSpan>,
    ) {
        self.push(key, names, |span| spans.push(span));
    }

    /// Hashes the prefixes of `names`, and says of each name where they are.
    #[inline(always)]
    fn push<'n>(
        &mut self,
        key: &HashKey,
        names: impl Iterator<Item = NameView<'n>>,
        mut say: impl FnMut(HashSpan),
    ) {
        let hashes = &mut self.hashes;
        match &key.0 {
            Keyed::SipHash24(sip) => names.for_each(|name| {
                let (span, hashes) = room_for(name, hashes);
                sip.hash_prefixes(name, hashes);
                say(span);
            }),
            Keyed::SipHash13(sip) => names.for_each(|name| {
                let (span, hashes) = room_for(name, hashes);
                sip.hash_prefixes(name, hashes);
                say(span);
            }),
            Keyed::MultilinearAes(multilinear) => {
                let start = hashes.len();
                for name in names {
                    let (first, sums) = self.sums.room_for(name);
                    multilinear.sum_prefixes(name, sums);
                    say(HashSpan::of(name, start + first));
                }
                multilinear.push_hashes(&mut self.sums, hashes);
            }
        }
    }

    /// The hashes of one name; index `i` is that of its first `i` components.
    ///
    /// # Panics
    /// If the span is from before the last [`clear`](Self::clear), or from
    /// another buffer, and out of range here.
    #[must_use]
    pub fn slice(&self, span: HashSpan) -> &[NameHash] {
        let start = span.start as usize;
        &self.hashes[start..start + span.n_hashes as usize]
    }

    /// The hash of the first `n_components` components.
    ///
    /// # Panics
    /// As [`slice`](Self::slice), and if the name has fewer components.
    #[must_use]
    pub fn get(&self, span: HashSpan, n_components: usize) -> NameHash {
        self.slice(span)[n_components]
    }
}

/// Appends a hash for each prefix of `name`, to be written.
fn room_for<'h>(
    name: NameView<'_>,
    hashes: &'h mut Vec<NameHash>,
) -> (HashSpan, &'h mut [NameHash]) {
    let start = hashes.len();
    hashes.resize(start + name.len() + 1, NameHash::default());
    (HashSpan::of(name, start), &mut hashes[start..])
}
