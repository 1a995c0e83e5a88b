//! The NFD management protocol, the RIB and command authorisation.
#![forbid(unsafe_code)]

mod control;
mod rib;

pub use control::{
    ControlError, ControlPlane, CsConfig, FaceChanges, FaceCreateRequest, FaceCreated, FibChange,
    FibRefusal, FibRefusalReason, LinkOptions,
};
pub use rib::{Rib, RibError, RibLimits, RibRoute, RouteInserted};
