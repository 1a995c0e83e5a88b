//! Who may do what.
//!
//! Owns the check of a command's signature, in both forms that clients use, and
//! the rules by which a module is open to its signer. Source: NDN Packet Format
//! 0.3, "Signed Interest"; NFD Management protocol, "ControlCommand".

use sha2::{Digest, Sha256};
use tachonym_packet::types::{self, component, signature_type};
use tachonym_packet::{
    ComponentView, DataView, InterestView, MonoNs, NameView, SignatureInfoView, tlv,
};
use tachonym_protocol::{CommandName, Scope};

use crate::counters::RejectReason;
use crate::verbs::Module;

/// Who may do what. The default is that of NFD's sample configuration: whoever
/// reaches the router over a local face may do anything, if the command is
/// signed; digests are checked, and keys that nobody here knows are believed.
/// Neighbours may do nothing.
#[derive(Debug, Default)]
pub struct ManagementTrust {}

/// Checks commands against a [`ManagementTrust`].
#[derive(Debug)]
pub(crate) struct Authorizer {}

impl Authorizer {
    pub(crate) const fn new(_trust: ManagementTrust) -> Self {
        Self {}
    }

    /// Whether commands on `/localhop/nfd` are looked at.
    pub(crate) const fn is_localhop_enabled(&self) -> bool {
        false
    }

    /// Whether the signer of `interest` may command `module`.
    pub(crate) fn check(
        &mut self,
        interest: &InterestView<'_>,
        _scope: Scope,
        _module: Module,
        _now: MonoNs,
        _wall_ms: u64,
    ) -> Result<(), RejectReason> {
        let signature = CommandSignature::of(interest)?;
        if signature.info.typ() == signature_type::DIGEST_SHA256 {
            signature.check_digest()?;
        }
        Ok(())
    }

    /// Whether the announcement `data` is to be believed.
    pub(crate) fn check_announcement(
        &mut self,
        data: &DataView<'_>,
        _wall_ms: u64,
    ) -> Result<(), RejectReason> {
        if data.signature_info().typ() == signature_type::DIGEST_SHA256 {
            let digest = Sha256::digest(data.signed_portion());
            if *digest != *data.signature_value() {
                return Err(RejectReason::BadSignature);
            }
        }
        Ok(())
    }
}

/// The signature of a command, whichever form it came in.
struct CommandSignature<'a> {
    info: SignatureInfoView<'a>,
    value: &'a [u8],
    /// What the signature covers.
    parts: [&'a [u8]; 3],
}

impl<'a> CommandSignature<'a> {
    fn of(interest: &InterestView<'a>) -> Result<Self, RejectReason> {
        match (interest.signature_info(), interest.signature_value()) {
            (Some(info), Some(value)) => {
                if !interest.verify_parameters_digest() {
                    return Err(RejectReason::BadDigest);
                }
                Ok(Self {
                    info,
                    value,
                    parts: interest.signed_portion(),
                })
            }
            (None, None) => Self::of_legacy_name(interest.name()),
            _ => Err(RejectReason::MalformedSignature),
        }
    }

    /// The form that came before Packet Format 0.3: behind the parameters follow
    /// four generic components with a timestamp, a nonce, a SignatureInfo and a
    /// SignatureValue, and the signature covers the name but for the last.
    fn of_legacy_name(name: NameView<'a>) -> Result<Self, RejectReason> {
        // The parameters take one component.
        let first = name.len().checked_sub(4).ok_or(RejectReason::Unsigned)?;
        if first <= CommandName::N_COMPONENTS {
            return Err(RejectReason::Unsigned);
        }
        let element = |idx, typ| -> Option<&'a [u8]> {
            let component: ComponentView<'a> = name.get(idx)?;
            (component.typ() == component::GENERIC)
                .then(|| tlv::read_single(component.value(), typ).ok())
                .flatten()
        };
        let value = element(first + 3, types::SIGNATURE_VALUE).ok_or(RejectReason::Unsigned)?;
        let info = element(first + 2, types::SIGNATURE_INFO)
            .and_then(|info| SignatureInfoView::parse_value(info).ok())
            .ok_or(RejectReason::MalformedSignature)?;
        Ok(Self {
            info,
            value,
            parts: [name.prefix(first + 3).value_bytes(), &[], &[]],
        })
    }

    fn check_digest(&self) -> Result<(), RejectReason> {
        let mut digest = Sha256::new();
        for part in self.parts {
            digest.update(part);
        }
        if *digest.finalize() == *self.value {
            Ok(())
        } else {
            Err(RejectReason::BadSignature)
        }
    }
}
