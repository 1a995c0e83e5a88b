//! Faces: the NDNLPv2 link service over Unix, UDP and TCP transports.
//!
//! A [`FaceSystem`] owns every socket of a router: it waits for packets, reads
//! them in bursts into an [`RxBatch`], and sends in bursts. Start reading at
//! [`FaceSystem::poll`]. It knows no table and no strategy, and looks into
//! packets no further than their outermost type.

mod batch;
mod info;
mod link;
mod reassembly;
mod stream;
pub mod sys;
mod system;
mod udp;
mod waker;

pub use batch::{RxBatch, RxFrame};
pub use info::{
    CloseReason, CreateError, CreateOutcome, DropReason, FaceCounters, FaceEvent, FaceInfo,
    FaceOptions, FaceParams, FaceUpdate, SystemCounters, SystemOptions,
};
pub use system::FaceSystem;
pub use waker::Waker;
