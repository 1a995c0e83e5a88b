//! The NFD management protocol, the RIB and command authorisation.
#![forbid(unsafe_code)]

mod control;

pub use control::{
    ControlError, ControlPlane, CsConfig, FaceChanges, FaceCreateRequest, FaceCreated, FibChange,
    FibRefusal, FibRefusalReason, LinkOptions,
};
