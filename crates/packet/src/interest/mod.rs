//! Interest: the view of a received one, and the value that programs build. What a
//! forwarder changes of one is in [`InterestRewrite`].
//!
//! Elements and their order are those of NDN Packet Format 0.3, section
//! "Interest Packet". The view is validated once; the value side is in
//! [`Interest`].

mod rewrite;

use sha2::{Digest, Sha256};

pub use self::rewrite::{InterestRewrite, InterestVariant};
use self::rewrite::{write_hop_limit, write_nonce};
use crate::signature::{SignatureInfo, SignatureInfoView};
use crate::span::{Span, element_offset, offset_in};
use crate::tlv::{self, Element, Field, FieldReader, Fields, Reader};
use crate::types::{self, component};
use crate::{Component, DecodeError, Name, NameView};

/// `InterestLifetime` where an Interest states none, in milliseconds.
pub const DEFAULT_LIFETIME_MS: u64 = 4000;

static FIELDS: Fields = Fields::new(&[
    Field::Once(types::NAME),
    Field::Once(types::CAN_BE_PREFIX),
    Field::Once(types::MUST_BE_FRESH),
    Field::Once(types::FORWARDING_HINT),
    Field::Once(types::NONCE),
    Field::Once(types::INTEREST_LIFETIME),
    Field::Once(types::HOP_LIMIT),
    Field::Once(types::APPLICATION_PARAMETERS),
    Field::Once(types::INTEREST_SIGNATURE_INFO),
    Field::Once(types::INTEREST_SIGNATURE_VALUE),
]);

/// The four bytes that tell a looping Interest from a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub [u8; 4]);

/// An Interest borrowed from a receive buffer.
///
/// Invariant: everything it refers to lies inside `wire` and is well-formed;
/// [`InterestView::parse`] is the only constructor, but for copies of what it has read.
#[derive(Clone, Copy, Debug)]
pub struct InterestView<'a> {
    wire: &'a [u8],
    name: NameView<'a>,
    forwarding_hint: Span,
    application_parameters: Span,
    signature_info: Span,
    signature_value: Span,
    lifetime_ms: Option<u64>,
    /// Where the four bytes of Nonce lie in `wire`; 0: there is none.
    nonce_at: u16,
    /// Where the one byte of HopLimit lies in `wire`; 0: there is none.
    hop_limit_at: u16,
    can_be_prefix: bool,
    must_be_fresh: bool,
}

const _: () = assert!(size_of::<InterestView<'_>>() <= 80);

impl<'a> InterestView<'a> {
    /// Reads `wire` as exactly one Interest.
    ///
    /// # Errors
    /// If it is too large, malformed, breaks an evolvability rule, has an empty
    /// name, parameters without their digest in the name, or two such digests.
    #[inline]
    pub fn parse(wire: &'a [u8]) -> Result<Self, DecodeError> {
        if wire.len() > types::MAX_PACKET_BYTES {
            return Err(DecodeError::PacketTooLarge);
        }
        let value = tlv::read_single(wire, types::INTEREST)?;
        let (name, rest) = tlv::split_first_field(value, types::NAME)?;
        let name = NameView::parse_packet_name(name)?;
        if name.is_empty() {
            return Err(DecodeError::EmptyInterestName);
        }
        let mut view = Self {
            wire,
            name,
            forwarding_hint: Span::default(),
            application_parameters: Span::default(),
            signature_info: Span::default(),
            signature_value: Span::default(),
            lifetime_ms: None,
            nonce_at: 0,
            hop_limit_at: 0,
            can_be_prefix: false,
            must_be_fresh: false,
        };
        view.read_fields(rest)?;
        let signs = view.signature_info.is_some() || view.signature_value.is_some();
        if view.application_parameters.is_some() || signs {
            view.check_parameters()?;
        }
        Ok(view)
    }

    /// Reads what follows the name. By itself, so that each field is written to its
    /// place and no other one moves.
    #[inline(never)]
    fn read_fields(&mut self, rest: &'a [u8]) -> Result<(), DecodeError> {
        let mut fields = FieldReader::after_first(rest, &FIELDS);
        while let Some(element) = fields.read_field()? {
            let typ = element.typ;
            let place = Span::of(self.wire, element.value);
            match (typ, element.value.len()) {
                (types::CAN_BE_PREFIX, 0) => self.can_be_prefix = true,
                (types::MUST_BE_FRESH, 0) => self.must_be_fresh = true,
                (types::NONCE, 4) => self.nonce_at = place.start(),
                (types::HOP_LIMIT, 1) => self.hop_limit_at = place.start(),
                (types::INTEREST_LIFETIME, _) => self.lifetime_ms = Some(element.nni()?),
                (types::FORWARDING_HINT, _) => {
                    check_forwarding_hint(element.value)?;
                    self.forwarding_hint = place;
                }
                (types::APPLICATION_PARAMETERS, _) => self.application_parameters = place,
                (types::INTEREST_SIGNATURE_INFO, _) => {
                    SignatureInfoView::check(element.value)?;
                    self.signature_info = place;
                }
                (types::INTEREST_SIGNATURE_VALUE, _) => self.signature_value = place,
                _ => return Err(DecodeError::BadLength { typ }),
            }
        }
        Ok(())
    }

    /// Parameters and signature come together with a digest in the name.
    #[cold]
    fn check_parameters(&self) -> Result<(), DecodeError> {
        if self.signature_value.is_some() && !self.signature_info.is_some() {
            return Err(DecodeError::Missing {
                typ: types::INTEREST_SIGNATURE_INFO,
            });
        }
        if self.signature_info.is_some() && !self.signature_value.is_some() {
            return Err(DecodeError::Missing {
                typ: types::INTEREST_SIGNATURE_VALUE,
            });
        }
        if self.signature_info.is_some() && !self.application_parameters.is_some() {
            return Err(DecodeError::Missing {
                typ: types::APPLICATION_PARAMETERS,
            });
        }
        if self.application_parameters.is_some() && self.parameters_digest().is_none() {
            return Err(DecodeError::MissingParametersDigest);
        }
        Ok(())
    }

    /// The view of a copy of the packet, whose name's components are `name`.
    #[inline]
    pub(crate) const fn of_copy<'c>(&self, wire: &'c [u8], name: &'c [u8]) -> InterestView<'c> {
        InterestView {
            wire,
            name: self.name.of_copy(name),
            forwarding_hint: self.forwarding_hint,
            application_parameters: self.application_parameters,
            signature_info: self.signature_info,
            signature_value: self.signature_value,
            lifetime_ms: self.lifetime_ms,
            nonce_at: self.nonce_at,
            hop_limit_at: self.hop_limit_at,
            can_be_prefix: self.can_be_prefix,
            must_be_fresh: self.must_be_fresh,
        }
    }

    /// The whole element.
    #[must_use]
    #[inline]
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The name; at least one component.
    #[must_use]
    #[inline]
    pub const fn name(&self) -> NameView<'a> {
        self.name
    }

    /// Where the TLV-VALUE of the name lies in [`wire`](Self::wire).
    #[must_use]
    #[inline]
    pub fn name_span(&self) -> Span {
        Span::of(self.wire, self.name.value_bytes())
    }

    /// Whether Data of a longer name may answer.
    #[must_use]
    #[inline]
    pub const fn can_be_prefix(&self) -> bool {
        self.can_be_prefix
    }

    /// Whether only fresh Data may answer from a cache.
    #[must_use]
    #[inline]
    pub const fn must_be_fresh(&self) -> bool {
        self.must_be_fresh
    }

    /// Whether there is a forwarding hint.
    #[must_use]
    #[inline]
    pub const fn has_forwarding_hint(&self) -> bool {
        self.forwarding_hint.is_some()
    }

    /// Where the TLV-VALUE of the forwarding hint lies in [`wire`](Self::wire).
    #[must_use]
    #[inline]
    pub const fn forwarding_hint_span(&self) -> Span {
        self.forwarding_hint
    }

    /// TLV-VALUE of the forwarding hint: consecutive names.
    #[must_use]
    #[inline]
    pub fn forwarding_hint_bytes(&self) -> Option<&'a [u8]> {
        self.forwarding_hint.of_wire(self.wire)
    }

    /// The delegations of the forwarding hint, in their order.
    pub fn forwarding_hint(&self) -> impl Iterator<Item = NameView<'a>> + use<'a> {
        let mut reader = Reader::new(self.forwarding_hint_bytes().unwrap_or_default());
        std::iter::from_fn(move || {
            while !reader.is_empty() {
                // `parse` has read these elements before.
                let element = reader.read_element().ok()?;
                if let Some(delegation) = delegation_of(element).ok()? {
                    return Some(delegation);
                }
            }
            None
        })
    }

    /// The nonce, if there is one.
    #[must_use]
    #[inline]
    pub fn nonce(&self) -> Option<Nonce> {
        let at = usize::from(self.nonce_at);
        let bytes = self.wire.get(at..)?.first_chunk()?;
        (at != 0).then_some(Nonce(*bytes))
    }

    /// For how long the Interest is pending, in milliseconds;
    /// [`DEFAULT_LIFETIME_MS`] if it does not say.
    #[must_use]
    #[inline]
    pub fn lifetime_ms(&self) -> u64 {
        self.lifetime_ms.unwrap_or(DEFAULT_LIFETIME_MS)
    }

    /// The lifetime that it states, in milliseconds.
    #[must_use]
    #[inline]
    pub const fn stated_lifetime_ms(&self) -> Option<u64> {
        self.lifetime_ms
    }

    /// How many more hops it may take, if it says.
    #[must_use]
    #[inline]
    pub fn hop_limit(&self) -> Option<u8> {
        match self.hop_limit_at {
            0 => None,
            at => self.wire.get(usize::from(at)).copied(),
        }
    }

    /// `ApplicationParameters`, if there are any.
    #[must_use]
    pub fn application_parameters(&self) -> Option<&'a [u8]> {
        self.application_parameters.of_wire(self.wire)
    }

    /// `ApplicationParameters` and all that follows: what the digest in the name is of. Empty if
    /// there are none.
    #[must_use]
    pub fn parameters_bytes(&self) -> &'a [u8] {
        match self.application_parameters() {
            Some(parameters) => &self.wire[self.parameters_offset(parameters)..],
            None => &[],
        }
    }

    /// What may differ between Interests that ask for the same.
    #[must_use]
    pub fn variant(&self) -> InterestVariant {
        InterestVariant {
            nonce: self.nonce(),
            lifetime_ms: self.lifetime_ms,
            hop_limit: self.hop_limit(),
        }
    }

    /// What signed it, for a signed Interest of Packet Format 0.3. Reads the
    /// element again, so not meant for the packet path.
    #[must_use]
    pub fn signature_info(&self) -> Option<SignatureInfoView<'a>> {
        let value = self.signature_info.of_wire(self.wire)?;
        // `parse` has read it before.
        SignatureInfoView::parse_value(value).ok()
    }

    /// The signature, for a signed Interest of Packet Format 0.3.
    #[must_use]
    pub fn signature_value(&self) -> Option<&'a [u8]> {
        self.signature_value.of_wire(self.wire)
    }

    /// The ParametersSha256DigestComponent of the name.
    fn parameters_digest(&self) -> Option<&'a [u8]> {
        let mut components = self.name.components();
        let digest = components.find(|c| c.typ() == component::PARAMETERS_SHA256_DIGEST)?;
        Some(digest.value())
    }

    /// What the signature covers: the name's components without the parameters
    /// digest (up to two parts), and everything from the parameters up to the
    /// signature value. Parts may be empty.
    #[must_use]
    pub fn signed_portion(&self) -> [&'a [u8]; 3] {
        let name = self.name.value_bytes();
        let (before, after) = match self.parameters_digest() {
            Some(digest) => {
                let typ = u32::from(component::PARAMETERS_SHA256_DIGEST);
                let start = element_offset(name, typ, digest);
                (
                    &name[..start],
                    &name[offset_in(name, digest) + digest.len()..],
                )
            }
            None => (name, &name[..0]),
        };
        let covered = match (self.application_parameters(), self.signature_value()) {
            (Some(parameters), Some(signature)) => {
                let typ = types::INTEREST_SIGNATURE_VALUE;
                let end = element_offset(self.wire, typ, signature);
                &self.wire[self.parameters_offset(parameters)..end]
            }
            _ => &self.wire[..0],
        };
        [before, after, covered]
    }

    fn parameters_offset(&self, parameters: &[u8]) -> usize {
        element_offset(self.wire, types::APPLICATION_PARAMETERS, parameters)
    }

    /// Whether the digest in the name is that of the parameters. True for an
    /// Interest without parameters. Costs a SHA-256 over them.
    #[must_use]
    pub fn verify_parameters_digest(&self) -> bool {
        if !self.application_parameters.is_some() {
            return true;
        }
        let digest = Sha256::digest(self.parameters_bytes());
        self.parameters_digest() == Some(digest.as_slice())
    }

    /// A value of the same content.
    #[must_use]
    pub fn to_interest(&self) -> Interest {
        Interest {
            name: self.name.to_name(),
            can_be_prefix: self.can_be_prefix,
            must_be_fresh: self.must_be_fresh,
            forwarding_hint: self.forwarding_hint().map(|name| name.to_name()).collect(),
            nonce: self.nonce(),
            lifetime_ms: self.lifetime_ms,
            hop_limit: self.hop_limit(),
            application_parameters: self.application_parameters().map(<[u8]>::to_vec),
            signature: self
                .signature_info()
                .zip(self.signature_value())
                .map(|(info, value)| InterestSignature {
                    info: info.to_info(),
                    value: value.to_vec(),
                }),
        }
    }
}

fn check_forwarding_hint(value: &[u8]) -> Result<(), DecodeError> {
    let mut reader = Reader::new(value);
    let mut n_names = 0;
    while !reader.is_empty() {
        n_names += usize::from(delegation_of(reader.read_element()?)?.is_some());
    }
    if n_names == 0 {
        return Err(DecodeError::Missing { typ: types::NAME });
    }
    Ok(())
}

/// The name that an element of a forwarding hint delegates to; `None` if it is to be
/// skipped.
fn delegation_of(element: Element<'_>) -> Result<Option<NameView<'_>>, DecodeError> {
    match element.typ {
        types::NAME => NameView::parse_value(element.value).map(Some),
        types::DELEGATION => {
            let mut reader = Reader::new(element.value);
            while !reader.is_empty() {
                let inner = reader.read_element()?;
                if inner.typ == types::NAME {
                    return NameView::parse_value(inner.value).map(Some);
                }
            }
            Err(DecodeError::Missing { typ: types::NAME })
        }
        typ if tlv::is_critical(typ) => Err(DecodeError::UnrecognisedCritical { typ }),
        _ => Ok(None),
    }
}
/// Signature of a signed Interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterestSignature {
    /// What signed it.
    pub info: SignatureInfo,
    /// `InterestSignatureValue`.
    pub value: Vec<u8>,
}

/// An Interest as a value. Its ParametersSha256DigestComponent is computed when
/// it is encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// The name; at least one component.
    pub name: Name,
    /// Whether Data of a longer name may answer.
    pub can_be_prefix: bool,
    /// Whether only fresh Data may answer from a cache.
    pub must_be_fresh: bool,
    /// Delegations; empty: no forwarding hint.
    pub forwarding_hint: Vec<Name>,
    /// The nonce.
    pub nonce: Option<Nonce>,
    /// Lifetime in milliseconds; `None` means [`DEFAULT_LIFETIME_MS`].
    pub lifetime_ms: Option<u64>,
    /// How many hops it may take.
    pub hop_limit: Option<u8>,
    /// `ApplicationParameters`.
    pub application_parameters: Option<Vec<u8>>,
    /// Signature over name and parameters.
    pub signature: Option<InterestSignature>,
}

impl Interest {
    /// An Interest for `name` with nothing else set.
    #[must_use]
    pub fn new(name: Name) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// The wire form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut tail = Vec::new();
        if let Some(signature) = &self.signature {
            self.write_signed_tail(&signature.info, &mut tail);
            tlv::write_tlv(&mut tail, types::INTEREST_SIGNATURE_VALUE, &signature.value);
        } else if let Some(parameters) = &self.application_parameters {
            tlv::write_tlv(&mut tail, types::APPLICATION_PARAMETERS, parameters);
        }
        self.encode_with_tail(&tail)
    }

    /// The wire form as a signed Interest of Packet Format 0.3. `sign` is given
    /// what the signature covers, in parts, and returns the signature.
    ///
    /// # Errors
    /// Those of `sign`.
    pub fn encode_signed<E>(
        &self,
        info: &SignatureInfo,
        sign: impl FnOnce(&[&[u8]]) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        let mut covered_name = Vec::new();
        for component in self.name.components() {
            if component.typ() != component::PARAMETERS_SHA256_DIGEST {
                component.encode_into(&mut covered_name);
            }
        }
        let mut tail = Vec::new();
        self.write_signed_tail(info, &mut tail);
        let signature = sign(&[&covered_name, &tail])?;
        tlv::write_tlv(&mut tail, types::INTEREST_SIGNATURE_VALUE, &signature);
        Ok(self.encode_with_tail(&tail))
    }

    /// The wire form as a signed Interest whose signature is a plain digest.
    #[must_use]
    pub fn encode_with_digest(&self, info: &SignatureInfo) -> Vec<u8> {
        let Ok(wire) = self.encode_signed(info, |parts| {
            Ok::<_, std::convert::Infallible>(digest_of(parts).to_vec())
        });
        wire
    }

    fn write_signed_tail(&self, info: &SignatureInfo, tail: &mut Vec<u8>) {
        let parameters = self.application_parameters.as_deref().unwrap_or_default();
        tlv::write_tlv(tail, types::APPLICATION_PARAMETERS, parameters);
        info.write(tail, types::INTEREST_SIGNATURE_INFO);
    }

    /// Encodes with `tail` from the parameters on, and its digest in the name.
    fn encode_with_tail(&self, tail: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.name.wire_len() + tail.len() + 96);
        tlv::write_nested(&mut out, types::INTEREST, |out| {
            if tail.is_empty() {
                self.name.encode_into(out);
            } else {
                self.name_with_digest(&Sha256::digest(tail).into())
                    .encode_into(out);
            }
            if self.can_be_prefix {
                tlv::write_tlv(out, types::CAN_BE_PREFIX, &[]);
            }
            if self.must_be_fresh {
                tlv::write_tlv(out, types::MUST_BE_FRESH, &[]);
            }
            if !self.forwarding_hint.is_empty() {
                tlv::write_nested(out, types::FORWARDING_HINT, |out| {
                    self.forwarding_hint
                        .iter()
                        .for_each(|name| name.encode_into(out));
                });
            }
            write_nonce(out, self.nonce);
            if let Some(lifetime_ms) = self.lifetime_ms {
                tlv::write_nni(out, types::INTEREST_LIFETIME, lifetime_ms);
            }
            write_hop_limit(out, self.hop_limit);
            out.extend_from_slice(tail);
        });
        out
    }

    /// The name with this digest where its parameters digest is, or at the end.
    fn name_with_digest(&self, digest: &[u8; 32]) -> Name {
        let digest = Component::parameters_digest(digest);
        let mut name = Name::new();
        let mut placed = false;
        for component in self.name.components() {
            if component.typ() == component::PARAMETERS_SHA256_DIGEST {
                name.push(&digest);
                placed = true;
            } else {
                name.push(component);
            }
        }
        if !placed {
            name.push(&digest);
        }
        name
    }
}

impl From<InterestView<'_>> for Interest {
    fn from(view: InterestView<'_>) -> Self {
        view.to_interest()
    }
}

/// SHA-256 over `parts` as if they were one.
pub(crate) fn digest_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn name(uri: &str) -> Name {
        uri.parse().expect("a literal name")
    }

    pub(super) fn full() -> Interest {
        Interest {
            name: name("/a/b"),
            can_be_prefix: true,
            must_be_fresh: true,
            forwarding_hint: vec![name("/x"), name("/y/z")],
            nonce: Some(Nonce([1, 2, 3, 4])),
            lifetime_ms: Some(300),
            hop_limit: Some(9),
            application_parameters: None,
            signature: None,
        }
    }

    #[test]
    fn every_field_is_read_back() {
        let wire = full().encode();
        let view = InterestView::parse(&wire).expect("own encoding");
        assert_eq!(view.to_interest(), full());
        assert_eq!(view.to_interest().encode(), wire);
        assert_eq!(view.forwarding_hint().count(), 2);
    }

    #[test]
    fn parameters_digest_is_computed_and_checked() {
        let mut interest = Interest::new(name("/p"));
        interest.application_parameters = Some(b"abc".to_vec());
        let mut wire = interest.encode();
        let view = InterestView::parse(&wire).expect("own encoding");
        assert_eq!(view.name().len(), 2);
        assert!(view.verify_parameters_digest());
        let last = wire.len() - 1;
        wire[last] ^= 1;
        assert!(
            !InterestView::parse(&wire)
                .expect("well-formed")
                .verify_parameters_digest()
        );
    }

    #[test]
    fn signed_interest_covers_name_without_digest_and_parameters() {
        let interest = Interest::new(name("/cmd/verb"));
        let info = SignatureInfo {
            nonce: Some(vec![5; 8]),
            ..SignatureInfo::digest()
        };
        let wire = interest.encode_with_digest(&info);
        let view = InterestView::parse(&wire).expect("own encoding");
        assert_eq!(
            view.signature_value(),
            Some(digest_of(&view.signed_portion()).as_slice())
        );
        assert!(view.verify_parameters_digest());
        assert_eq!(view.to_interest().encode(), wire);
    }

    #[test]
    fn empty_name_is_rejected() {
        assert_eq!(
            InterestView::parse(&[0x05, 0x02, 0x07, 0x00]).unwrap_err(),
            DecodeError::EmptyInterestName
        );
    }

    #[test]
    fn parameters_without_digest_in_the_name_are_rejected() {
        let wire = [0x05, 0x07, 0x07, 0x03, 0x08, 0x01, b'A', 0x24, 0x00];
        assert_eq!(
            InterestView::parse(&wire).unwrap_err(),
            DecodeError::MissingParametersDigest
        );
    }

    #[test]
    fn unrecognised_critical_element_is_rejected_and_non_critical_skipped() {
        let critical = [0x05, 0x07, 0x07, 0x03, 0x08, 0x01, b'A', 0x25, 0x00];
        assert!(InterestView::parse(&critical).is_err());
        let ignored = [
            0x05, 0x09, 0x07, 0x03, 0x08, 0x01, b'A', 0xfc, 0x00, 0x12, 0x00,
        ];
        assert!(
            InterestView::parse(&ignored)
                .expect("skipped")
                .must_be_fresh()
        );
    }

    #[test]
    fn an_oversized_packet_is_rejected() {
        let mut interest = Interest::new(name("/p"));
        interest.application_parameters = Some(vec![0; types::MAX_PACKET_BYTES]);
        assert_eq!(
            InterestView::parse(&interest.encode()).unwrap_err(),
            DecodeError::PacketTooLarge
        );
        let overhead = interest.encode().len() - types::MAX_PACKET_BYTES;
        let largest = types::MAX_PACKET_BYTES - overhead;
        for (n_bytes, ok) in [(largest, true), (largest + 1, false)] {
            interest.application_parameters = Some(vec![0; n_bytes]);
            let wire = interest.encode();
            assert_eq!(wire.len() <= types::MAX_PACKET_BYTES, ok);
            assert_eq!(InterestView::parse(&wire).is_ok(), ok);
        }
    }
}
