//! The null face, which drops everything: where routes lead that shall lead nowhere.
//!
//! Number and address are NFD's. No face system has it: engines know it, so that it may be
//! a next hop, and what they send to it is forgotten. An Interest that goes there is neither
//! answered nor nacked. It counts as local, as with NFD, so that names under `/localhost`
//! may end there too.

use tachonym_forward::{FaceTraits, LinkType as ForwardLink, Scope};
use tachonym_packet::FaceId;
use tachonym_protocol::{FacePersistency, FaceScope, FaceState, FaceStatus, FaceUri, LinkType};

/// What forwarding knows of it.
pub(crate) const TRAITS: FaceTraits = FaceTraits {
    scope: Scope::Local,
    link: ForwardLink::PointToPoint,
    is_on_demand: false,
    source: None,
};

/// How management shows it. It counts nothing.
pub(crate) fn status() -> FaceStatus {
    FaceStatus {
        face_id: FaceId::NULL.0,
        uri: FaceUri::Null.to_string(),
        local_uri: FaceUri::Null.to_string(),
        expiration_period_ms: None,
        face_scope: FaceScope::Local,
        face_persistency: FacePersistency::Permanent,
        link_type: LinkType::PointToPoint,
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
        mtu_bytes: None,
        n_in_interests: 0,
        n_in_data: 0,
        n_in_nacks: 0,
        n_out_interests: 0,
        n_out_data: 0,
        n_out_nacks: 0,
        n_in_bytes: 0,
        n_out_bytes: 0,
        flags: 0,
        state: Some(FaceState::Up),
    }
}
