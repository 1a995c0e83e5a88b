//! Faces: the NDNLPv2 link service over Unix, UDP, TCP and WebSocket.
//!
//! A [`FaceSystem`] owns every socket of one worker and turns readiness into
//! batches of network-layer packets, and packets into as few system calls as
//! the kernel allows. It knows no table and no strategy: it says which face a
//! packet came from, and takes packets for faces. Unsafe code lives in `sys`.
//! Several of them make one router if each has its [`SystemShare`].
//!
//! ```no_run
//! use tachonym_face::{ChannelOptions, FaceSystem, RxBatch, SystemOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut faces = FaceSystem::new(SystemOptions::default())?;
//! faces.listen(&ChannelOptions::unix("/run/example.sock"))?;
//! let mut batch = RxBatch::new();
//! loop {
//!     faces.poll(None, &mut batch)?;
//!     while let Some(event) = faces.poll_event() {
//!         println!("face {} is {}", event.face.id, event.kind);
//!     }
//!     for frame in batch.frames() {
//!         // Sends every packet back to where it came from.
//!         let _ = faces.send(frame.face, frame.headers, frame.l3);
//!     }
//!     faces.flush();
//! }
//! # }
//! ```

mod batch;
mod clock;
mod counters;
mod error;
mod face;
mod framing;
mod info;
mod link;
mod locality;
mod options;
mod poller;
mod share;
mod source;
mod steering;
mod sys;
mod system;
mod transport;
mod turns;
mod tx_queue;
mod waiting;
mod waker;

pub use batch::{BATCH_TARGET_PKTS, Frame, RxBatch};
pub use clock::{monotonic_now, thread_cpu_ns};
pub use counters::{DropCounts, DropReason, FaceCounters, N_DROP_REASONS, SystemCounters};
pub use error::{CloseReason, CreateError, CreateOutcome, ListenError, UpdateError};
pub use framing::MAX_FRAME_BYTES;
pub use info::{ChannelInfo, FaceEvent, FaceInfo};
pub use locality::{Localities, Locality};
pub use options::{
    ChannelAddress, ChannelOptions, DEFAULT_MTU_BYTES, FaceParams, FaceUpdate, LinkOptions,
    Loopback, MAX_MTU_BYTES, MIN_MTU_BYTES, MulticastOptions, Offload,
};
pub use share::SystemShare;
pub use system::{FaceSystem, Placement, SystemOptions};
pub use turns::TURN_PKTS;
pub use waiting::{Monitor, MonitorKind, Wait, WaitFlag, Waiting, WaitingLimits, WaitingStatus};
pub use waker::Waker;
