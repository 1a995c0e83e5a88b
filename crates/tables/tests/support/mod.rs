//! Packets and hashes for the tests of the tables.
#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod policy;

use tachonym_packet::{HashKey, Name, NameHash, NameHashes, NameView, tlv, types};
use tachonym_tables::{FibEngine, FibMatching, PrefixHasher};

/// How a test hashes names: as the router does, or so badly that only
/// comparing bytes can tell names apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hashing {
    /// SipHash with a fixed key.
    Keyed,
    /// All names alike.
    Constant,
    /// One of four values.
    TwoBits,
}

impl Hashing {
    pub(crate) const ALL: [Self; 3] = [Self::Keyed, Self::Constant, Self::TwoBits];

    /// Hashes of all prefixes of a name.
    pub(crate) fn hashes(self, name: NameView<'_>) -> Vec<NameHash> {
        let key = HashKey::from_u64s(0x0123_4567_89ab_cdef, 42);
        let mut buffer = NameHashes::new();
        let span = buffer.push_name(&key, name);
        let weaken = |hash: &NameHash| match self {
            Self::Keyed => *hash,
            Self::Constant => NameHash(7),
            Self::TwoBits => NameHash(hash.0 & 3),
        };
        buffer.slice(span).iter().map(weaken).collect()
    }
}

impl PrefixHasher for Hashing {
    fn hash_prefixes(&self, name: NameView<'_>, hashes: &mut Vec<NameHash>) {
        *hashes = self.hashes(name);
    }
}

/// How a FIB is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) engine: FibEngine,
    pub(crate) matching: FibMatching,
    pub(crate) level_pulling: u32,
}

impl Layout {
    /// Every way.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let engines = [
            FibEngine::LongestFirst,
            FibEngine::TwoStage { first: 0 },
            FibEngine::TwoStage { first: 1 },
            FibEngine::TwoStage { first: 3 },
            FibEngine::BinarySearch,
            FibEngine::ShortestFirst,
        ];
        let ways = [
            (FibMatching::AtEnd, 0),
            (FibMatching::Always, 0),
            (FibMatching::AtEnd, 1),
            (FibMatching::Always, 2),
        ];
        engines.into_iter().flat_map(move |engine| {
            ways.map(|(matching, level_pulling)| Self {
                engine,
                matching,
                level_pulling,
            })
        })
    }
}

/// A name from its URI.
pub(crate) fn name(uri: &str) -> Name {
    uri.parse().expect("a test's own URI")
}

/// An Interest to be encoded.
#[derive(Clone, Debug)]
pub(crate) struct InterestSpec {
    pub(crate) name: Name,
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    pub(crate) hint: Option<Name>,
    pub(crate) lifetime_ms: u64,
}

impl InterestSpec {
    pub(crate) fn new(name: Name) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            hint: None,
            lifetime_ms: 4000,
        }
    }

    pub(crate) fn can_be_prefix(mut self) -> Self {
        self.can_be_prefix = true;
        self
    }

    pub(crate) fn must_be_fresh(mut self) -> Self {
        self.must_be_fresh = true;
        self
    }

    pub(crate) fn hint(mut self, uri: &str) -> Self {
        self.hint = Some(name(uri));
        self
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut wire = Vec::new();
        tlv::write_nested(&mut wire, types::INTEREST, |out| {
            self.name.encode_into(out);
            if self.can_be_prefix {
                tlv::write_tlv(out, types::CAN_BE_PREFIX, &[]);
            }
            if self.must_be_fresh {
                tlv::write_tlv(out, types::MUST_BE_FRESH, &[]);
            }
            if let Some(hint) = &self.hint {
                tlv::write_nested(out, types::FORWARDING_HINT, |out| hint.encode_into(out));
            }
            tlv::write_tlv(out, types::NONCE, &[1, 2, 3, 4]);
            tlv::write_nni(out, types::INTEREST_LIFETIME, self.lifetime_ms);
        });
        wire
    }
}

/// Wire of a Data; `freshness_ms` of 0 leaves the element out.
pub(crate) fn data_wire(name: &Name, freshness_ms: u64, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    tlv::write_nested(&mut wire, types::DATA, |out| {
        name.encode_into(out);
        if freshness_ms > 0 {
            tlv::write_nested(out, types::META_INFO, |out| {
                tlv::write_nni(out, types::FRESHNESS_PERIOD, freshness_ms);
            });
        }
        tlv::write_tlv(out, types::CONTENT, content);
        tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
        });
        tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0xaa; 32]);
    });
    wire
}
