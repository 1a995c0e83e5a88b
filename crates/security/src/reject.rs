//! Why signed Interests are refused.

use tachonym_packet::DecodeError;

/// Why a signed Interest is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// It has no signature, or one of type Null.
    #[error("not signed")]
    Unsigned,
    /// Its signature elements are malformed.
    #[error("malformed signature")]
    Malformed(DecodeError),
    /// It does not tell when it was signed, and its signer has to.
    #[error("the signature has no SignatureTime; sign with one")]
    MissingTime,
    /// It was signed too long ago, or in the future.
    #[error("signed too long ago or in the future; compare the clocks of both machines")]
    OutsideGrace,
    /// It was seen before, or is older than what is remembered.
    #[error("this command was seen before (replay); sign it again")]
    Replayed,
    /// It was signed before this verifier was made, so a former one may have accepted
    /// it already.
    #[error(
        "signed before the router started, so it may be a replay; sign it again, and compare \
         the clocks if it is refused again"
    )]
    BeforeStart,
    /// Too many Interests of the face were refused lately.
    #[error("too many commands of this face were refused; wait a second")]
    Throttled,
    /// No policy knows the key.
    #[error("signed by a key that is not trusted here; add its certificate to [management]")]
    UnknownKey,
    /// The key's certificate, or one that it depends on, does not hold now.
    #[error("the certificate of the key has expired or is not valid yet")]
    Expired,
    /// The key is trusted, but not for this.
    #[error("the key is not authorised for this command")]
    NotAuthorized,
    /// The key is trusted, but only for names under its identity.
    #[error("the name is not under the identity of the key")]
    ForeignName,
    /// The signature type is unknown, or not that of the key.
    #[error("signature type does not match the key")]
    WrongType,
    /// The digest of the parameters in the name is wrong.
    #[error("digest of the parameters does not verify")]
    BadParametersDigest,
    /// The signature is wrong.
    #[error("signature does not verify")]
    BadSignature,
}
