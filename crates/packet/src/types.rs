//! Assigned TLV-TYPE numbers, signature types and content types.
//!
//! Owns the numbers of NDN Packet Format 0.3 (section "TLV Type Registry") and
//! of NDNLPv2; which of them may appear where is the business of the views.

/// Largest network-layer packet, in bytes, its outermost type and length
/// included. Larger ones are refused by every view.
pub const MAX_PACKET_BYTES: usize = 8800;

/// `Interest` packet.
pub const INTEREST: u32 = 0x05;
/// `Data` packet.
pub const DATA: u32 = 0x06;
/// `Name`.
pub const NAME: u32 = 0x07;

/// `CanBePrefix` of an Interest; empty.
pub const CAN_BE_PREFIX: u32 = 0x21;
/// `MustBeFresh` of an Interest; empty.
pub const MUST_BE_FRESH: u32 = 0x12;
/// `ForwardingHint` of an Interest: one or more names.
pub const FORWARDING_HINT: u32 = 0x1e;
/// `Delegation` of a forwarding hint in the older form: a preference and a name. Read as
/// its name alone, as ndn-cxx does; never written.
pub const DELEGATION: u32 = 0x1f;
/// `Nonce` of an Interest: four bytes.
pub const NONCE: u32 = 0x0a;
/// `InterestLifetime` of an Interest, in milliseconds.
pub const INTEREST_LIFETIME: u32 = 0x0c;
/// `HopLimit` of an Interest: one byte.
pub const HOP_LIMIT: u32 = 0x22;
/// `ApplicationParameters` of an Interest.
pub const APPLICATION_PARAMETERS: u32 = 0x24;
/// `InterestSignatureInfo`.
pub const INTEREST_SIGNATURE_INFO: u32 = 0x2c;
/// `InterestSignatureValue`.
pub const INTEREST_SIGNATURE_VALUE: u32 = 0x2e;

/// `MetaInfo` of a Data.
pub const META_INFO: u32 = 0x14;
/// `Content` of a Data.
pub const CONTENT: u32 = 0x15;
/// `SignatureInfo` of a Data.
pub const SIGNATURE_INFO: u32 = 0x16;
/// `SignatureValue` of a Data.
pub const SIGNATURE_VALUE: u32 = 0x17;
/// `ContentType` in MetaInfo.
pub const CONTENT_TYPE: u32 = 0x18;
/// `FreshnessPeriod` in MetaInfo, in milliseconds.
pub const FRESHNESS_PERIOD: u32 = 0x19;
/// `FinalBlockId` in MetaInfo: one name component.
pub const FINAL_BLOCK_ID: u32 = 0x1a;

/// `SignatureType` in a signature information element.
pub const SIGNATURE_TYPE: u32 = 0x1b;
/// `KeyLocator` in a signature information element.
pub const KEY_LOCATOR: u32 = 0x1c;
/// `KeyDigest` in a key locator.
pub const KEY_DIGEST: u32 = 0x1d;
/// `SignatureNonce` in a signature information element.
pub const SIGNATURE_NONCE: u32 = 0x26;
/// `SignatureTime` in a signature information element, in milliseconds since
/// the Unix epoch.
pub const SIGNATURE_TIME: u32 = 0x28;
/// `SignatureSeqNum` in a signature information element.
pub const SIGNATURE_SEQ_NUM: u32 = 0x2a;
/// `ValidityPeriod` of a certificate.
pub const VALIDITY_PERIOD: u32 = 0xfd;
/// `NotBefore` in a validity period.
pub const NOT_BEFORE: u32 = 0xfe;
/// `NotAfter` in a validity period.
pub const NOT_AFTER: u32 = 0xff;
/// `AdditionalDescription` of a certificate.
pub const ADDITIONAL_DESCRIPTION: u32 = 0x0102;
/// `DescriptionEntry` in an additional description.
pub const DESCRIPTION_ENTRY: u32 = 0x0200;
/// `DescriptionKey` in a description entry.
pub const DESCRIPTION_KEY: u32 = 0x0201;
/// `DescriptionValue` in a description entry.
pub const DESCRIPTION_VALUE: u32 = 0x0202;

/// `LpPacket` of NDNLPv2.
pub const LP_PACKET: u32 = 100;
/// `Fragment` of an LpPacket.
pub const LP_FRAGMENT: u32 = 80;
/// `Sequence` of an LpPacket: eight bytes.
pub const LP_SEQUENCE: u32 = 81;
/// `FragIndex` of an LpPacket.
pub const LP_FRAG_INDEX: u32 = 82;
/// `FragCount` of an LpPacket.
pub const LP_FRAG_COUNT: u32 = 83;
/// `PitToken` of an LpPacket: 1 to 32 bytes.
pub const LP_PIT_TOKEN: u32 = 98;
/// `Nack` of an LpPacket.
pub const LP_NACK: u32 = 800;
/// `NackReason` in a Nack.
pub const LP_NACK_REASON: u32 = 801;
/// `IncomingFaceId` of an LpPacket.
pub const LP_INCOMING_FACE_ID: u32 = 812;
/// `NextHopFaceId` of an LpPacket.
pub const LP_NEXT_HOP_FACE_ID: u32 = 816;
/// `CachePolicy` of an LpPacket.
pub const LP_CACHE_POLICY: u32 = 820;
/// `CachePolicyType` in a cache policy.
pub const LP_CACHE_POLICY_TYPE: u32 = 821;
/// `CongestionMark` of an LpPacket.
pub const LP_CONGESTION_MARK: u32 = 832;
/// `Ack` of an LpPacket: eight bytes; may repeat.
pub const LP_ACK: u32 = 836;
/// `TxSequence` of an LpPacket: eight bytes.
pub const LP_TX_SEQUENCE: u32 = 840;
/// `NonDiscovery` of an LpPacket; empty.
pub const LP_NON_DISCOVERY: u32 = 844;
/// `PrefixAnnouncement` of an LpPacket: one Data.
pub const LP_PREFIX_ANNOUNCEMENT: u32 = 848;

/// Name component types.
pub mod component {
    /// `GenericNameComponent`: any bytes.
    pub const GENERIC: u16 = 8;
    /// `ImplicitSha256DigestComponent`: 32 bytes.
    pub const IMPLICIT_SHA256_DIGEST: u16 = 1;
    /// `ParametersSha256DigestComponent`: 32 bytes.
    pub const PARAMETERS_SHA256_DIGEST: u16 = 2;
    /// `KeywordNameComponent`.
    pub const KEYWORD: u16 = 32;
    /// `SegmentNameComponent`: a number.
    pub const SEGMENT: u16 = 50;
    /// `ByteOffsetNameComponent`: a number.
    pub const BYTE_OFFSET: u16 = 52;
    /// `VersionNameComponent`: a number.
    pub const VERSION: u16 = 54;
    /// `TimestampNameComponent`: microseconds since the Unix epoch.
    pub const TIMESTAMP: u16 = 56;
    /// `SequenceNumNameComponent`: a number.
    pub const SEQUENCE_NUM: u16 = 58;
}

/// Values of `SignatureType`.
pub mod signature_type {
    /// SHA-256 digest: integrity only.
    pub const DIGEST_SHA256: u64 = 0;
    /// RSASSA-PKCS1-v1_5 over SHA-256.
    pub const SHA256_WITH_RSA: u64 = 1;
    /// ECDSA over SHA-256, DER encoded.
    pub const SHA256_WITH_ECDSA: u64 = 3;
    /// HMAC with SHA-256.
    pub const HMAC_WITH_SHA256: u64 = 4;
    /// Ed25519.
    pub const ED25519: u64 = 5;
    /// No signature: the value is empty.
    pub const NULL: u64 = 200;
}

/// Values of `ContentType`.
pub mod content_type {
    /// Payload identified by the name; the default.
    pub const BLOB: u64 = 0;
    /// A list of delegations.
    pub const LINK: u64 = 1;
    /// A public key: a certificate.
    pub const KEY: u64 = 2;
    /// An application-level negative answer.
    pub const NACK: u64 = 3;
    /// A manifest.
    pub const MANIFEST: u64 = 4;
    /// A prefix announcement.
    pub const PREFIX_ANNOUNCEMENT: u64 = 5;
}
