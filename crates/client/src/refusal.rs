//! Which router refuses an Interest.
//!
//! Owns one question: who sent the Nack? A router of this kind writes IncomingFaceId
//! (NDNLPv2) on the Nacks that it sends to local applications that enabled local fields: its
//! own face number for its own refusal, else the face that brought the Nack. Other
//! forwarders write nothing, which is reported as unknown.

use tachonym_packet::{FaceId, Interest, NackReason};
use tachonym_security::Signer;

use crate::controller::Controller;
use crate::endpoint::{Endpoint, Reply};

/// Longest wait for the second Nack, in milliseconds.
const MAX_WAIT_MS: u64 = 1_000;

/// Who refused an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuser {
    /// The router at the other end of the endpoint.
    ThisRouter,
    /// A router or application behind this face of that router.
    Behind(FaceId),
}

/// Sends `interest`, which came back as a Nack, once more and reads from the Nack who
/// refused it, with the reason. Takes two round trips.
///
/// `None` if that stays unknown: the router is on another machine, does not allow local
/// fields or does not write them, or answers otherwise this time.
pub fn find_refuser(endpoint: &mut Endpoint, interest: &Interest) -> Option<(Refuser, NackReason)> {
    let enabled = Controller::new(endpoint, Signer::digest()).enable_local_fields();
    if !matches!(enabled, Ok(true)) {
        return None;
    }
    let lifetime_ms = interest.lifetime_ms.unwrap_or(MAX_WAIT_MS);
    let again = Interest {
        lifetime_ms: Some(lifetime_ms.min(MAX_WAIT_MS)),
        ..interest.clone()
    };
    let Ok(Reply::Nack {
        reason,
        incoming_face_id: Some(face),
        ..
    }) = endpoint.ask(&again)
    else {
        return None;
    };
    let refuser = match face {
        FaceId::INTERNAL => Refuser::ThisRouter,
        face => Refuser::Behind(face),
    };
    Some((refuser, reason))
}
