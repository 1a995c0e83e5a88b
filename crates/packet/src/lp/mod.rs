//! NDNLPv2, the link protocol: header fields as values.
//!
//! Owns what a hop tells the next one about a packet: [`Headers`] and the types
//! in it. Fragmentation and reassembly need time and memory and live with the
//! faces.

mod wire;

use std::fmt;

pub use wire::{LpView, MisplacedHeader, PacketKind, write_packet};

/// Number of a face, unique for the life of the router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaceId(pub u64);

impl FaceId {
    /// No face.
    pub const INVALID: Self = Self(0);
    /// The router's own face, where management listens.
    pub const INTERNAL: Self = Self(1);
    /// The face that Data from the content store seem to come from.
    pub const CONTENT_STORE: Self = Self(254);
    /// The face that drops everything.
    pub const NULL: Self = Self(255);
    /// Faces made at run time count from here.
    pub const FIRST_DYNAMIC: Self = Self(256);
}

impl fmt::Display for FaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An opaque token of 1 to 32 bytes that comes back with the answer.
#[derive(Clone, Copy)]
pub struct PitToken {
    // Bytes beyond `len` are zero, so that equality may compare everything.
    bytes: [u8; Self::MAX_BYTES],
    len: u8,
}

impl PitToken {
    /// Longest token, in bytes.
    pub const MAX_BYTES: usize = 32;

    /// A token of these bytes; `None` unless there are 1 to 32 of them.
    #[must_use]
    #[inline]
    pub fn new(token: &[u8]) -> Option<Self> {
        if token.is_empty() || token.len() > Self::MAX_BYTES {
            return None;
        }
        let mut bytes = [0; Self::MAX_BYTES];
        bytes[..token.len()].copy_from_slice(token);
        Some(Self {
            bytes,
            len: token.len() as u8,
        })
    }

    /// The token's bytes.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for PitToken {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for PitToken {}

impl std::hash::Hash for PitToken {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for PitToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PitToken(")?;
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

/// Why an Interest came back unanswered. Equal if their
/// [codes](NackReason::code) are.
#[derive(Clone, Copy, Debug)]
pub enum NackReason {
    /// No reason given; code 0, and codes below 50 without a name here.
    None,
    /// The next link or router is congested; code 50.
    Congestion,
    /// The nonce was seen before; code 100.
    Duplicate,
    /// No next hop for the name; code 150.
    NoRoute,
    /// A code of 50 or more without a name here; the greatest stands for all beyond it.
    Other(u32),
}

// A pending Interest keeps one for each upstream.
const _: () = assert!(size_of::<Option<NackReason>>() == 8);

impl NackReason {
    /// The reason with this number on the wire. Numbers grow with severity but for that of no
    /// reason, which is the most severe; a number below all that have a name says nothing
    /// better than that (NFD takes every unknown one for it).
    #[must_use]
    pub const fn from_code(code: u64) -> Self {
        match code {
            0..=49 => Self::None,
            50 => Self::Congestion,
            100 => Self::Duplicate,
            150 => Self::NoRoute,
            other if other < u32::MAX as u64 => Self::Other(other as u32),
            _ => Self::Other(u32::MAX),
        }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Congestion => 50,
            Self::Duplicate => 100,
            Self::NoRoute => 150,
            Self::Other(code) => code as u64,
        }
    }

    /// For comparisons: the lower, the less severe. No reason is the most
    /// severe one.
    #[must_use]
    pub const fn severity(self) -> u64 {
        match self.code() {
            0..=49 => u64::MAX,
            code => code,
        }
    }
}

impl PartialEq for NackReason {
    fn eq(&self, other: &Self) -> bool {
        self.code() == other.code()
    }
}

impl Eq for NackReason {}

impl std::hash::Hash for NackReason {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.code().hash(state);
    }
}

/// Lower case, words joined by hyphens, as the reasons of drops are; a reason without a
/// name by its number.
impl fmt::Display for NackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::from_code(self.code()) {
            Self::None => f.write_str("none"),
            Self::Congestion => f.write_str("congestion"),
            Self::Duplicate => f.write_str("duplicate"),
            Self::NoRoute => f.write_str("no-route"),
            Self::Other(code) => write!(f, "{code}"),
        }
    }
}

/// The header fields of an LpPacket, but Acks and the PrefixAnnouncement, which
/// are borrowed from its bytes. The default is what a bare packet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// PitToken: to be returned with the answer.
    pub pit_token: Option<PitToken>,
    /// Nack: the fragment is an Interest that comes back.
    pub nack: Option<NackReason>,
    /// NextHopFaceId: where a local application wants its Interest to go.
    pub next_hop_face_id: Option<FaceId>,
    /// IncomingFaceId: where the packet came from, told to local applications.
    pub incoming_face_id: Option<FaceId>,
    /// CachePolicy NoCache: the Data should not be cached.
    pub no_cache: bool,
    /// CongestionMark; 0 is none.
    pub congestion_mark: u64,
    /// NonDiscovery: the Interest is not to be flooded in search of a producer.
    pub non_discovery: bool,
    /// Sequence of the fragment.
    pub sequence: Option<u64>,
    /// FragIndex, below `frag_count`; 0 if absent.
    pub frag_index: u64,
    /// FragCount, at least 1; 1 if absent.
    pub frag_count: u64,
    /// TxSequence, to be acknowledged.
    pub tx_sequence: Option<u64>,
}

impl Default for Headers {
    #[inline]
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Headers {
    /// What a bare packet has.
    pub const EMPTY: Self = Self {
        pit_token: None,
        nack: None,
        next_hop_face_id: None,
        incoming_face_id: None,
        no_cache: false,
        congestion_mark: 0,
        non_discovery: false,
        sequence: None,
        frag_index: 0,
        frag_count: 1,
        tx_sequence: None,
    };

    /// Whether no field is set, so that the packet may go bare.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pit_token.is_none()
            && self.nack.is_none()
            && self.next_hop_face_id.is_none()
            && self.incoming_face_id.is_none()
            && !self.no_cache
            && self.congestion_mark == 0
            && !self.non_discovery
            && self.sequence.is_none()
            && !self.is_fragmented()
            && self.tx_sequence.is_none()
    }

    /// Whether the packet is one of several fragments.
    #[must_use]
    #[inline]
    pub const fn is_fragmented(&self) -> bool {
        self.frag_count > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pit_tokens_have_one_to_32_bytes() {
        for len in 0..=64_usize {
            let bytes: Vec<u8> = (0..len as u8).map(|i| i + 1).collect();
            let token = PitToken::new(&bytes);
            assert_eq!(token.is_some(), (1..=32).contains(&len), "{len}");
            if let Some(token) = token {
                assert_eq!(token.as_bytes(), bytes);
            }
        }
        assert_ne!(PitToken::new(&[0]), PitToken::new(&[0, 0]));
    }

    #[test]
    fn congestion_is_the_least_severe_reason_and_none_the_most() {
        let ascending = [
            NackReason::Congestion,
            NackReason::Duplicate,
            NackReason::NoRoute,
            NackReason::Other(151),
            NackReason::None,
        ];
        assert!(ascending.map(NackReason::severity).is_sorted());
        for reason in ascending {
            assert_eq!(NackReason::from_code(reason.code()), reason);
        }
    }

    #[test]
    fn codes_below_all_that_have_a_name_mean_no_reason() {
        for code in 0..50 {
            assert!(matches!(NackReason::from_code(code), NackReason::None));
        }
        for code in [51, 99, 101, 149, 151, u64::from(u32::MAX)] {
            let reason = NackReason::from_code(code);
            assert!(matches!(reason, NackReason::Other(_)), "{code}");
            assert_eq!((reason.code(), reason.severity()), (code, code));
        }
        let greatest = NackReason::from_code(u64::MAX);
        assert_eq!(greatest, NackReason::Other(u32::MAX));
        assert!(greatest.severity() < NackReason::None.severity());
    }
}
