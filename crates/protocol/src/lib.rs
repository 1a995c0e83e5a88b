//! Values of the NFD management protocol and of RDR metadata.
//!
//! Owns what management says on the wire, as plain values with strict decoders,
//! and [`FaceUri`]. It does no I/O, holds no state and knows no table: the
//! manager, the faces, the client library and the tools all speak through it.
#![forbid(unsafe_code)]

pub mod face_uri;
mod kinds;

pub use face_uri::{FaceUri, FaceUriError, HostUri, IpFamily, IpTransport};
pub use kinds::{
    FaceEventKind, FacePersistency, FaceScope, LinkType, cs_flags, face_flags, route_flags,
    route_origin, status_code,
};
