//! Several forwarding engines that answer as one would.
//!
//! Each [`Worker`] has an engine with a PIT and a content store of its own; the FIB is
//! shared. A name is at home at one worker, and whoever receives a packet takes it there:
//! that is all that most packets need. What the others are needed for is done among the
//! workers themselves, by the rules of [`tachonym_dispatch::key`]:
//!
//! | packet | at its home | elsewhere |
//! |---|---|---|
//! | Interest with CanBePrefix, so short that Data for it may be at home anywhere | [waits](parked) until all stores have said what they have, and is then answered with the best, or goes on | the store says what it has |
//! | Data for which such Interests may wait elsewhere, or whose name has had another home | is delivered; the home of its name alone caches it | [is visited](Crossing::Visiting) by it, one worker after the other, so that nobody gets it twice |
//! | Nack for a name that has had another home | meets the Interest that it answers, if that was sent from there | [gets it](Crossing::Nacking) if not, one former home after the other until one knows it |
//!
//! A [`Receiver`] takes what a thread receives to where it is at home; a [`Scheduler`] moves
//! names off workers that have too much to do.
//!
//! Packets cross in [batches](Batch) through [rings](Links) of which each has one sender and
//! one receiver: no thread waits for another, and no memory is written by two. Threads,
//! sockets and clocks are not known here.
#![forbid(unsafe_code)]

mod batch;
mod dispatcher;
mod links;
pub mod parked;
mod receiver;
mod scheduler;
mod services;
mod tokens;
mod waiting;
mod worker;

pub use batch::{Batch, Crossing, Level, MAX_BATCH_PKTS, Parcel};
pub use dispatcher::Dispatcher;
pub use links::{LinkConfig, Links};
pub use receiver::{Receiver, ReceiverConfig, ReceiverCounters, ReceiverView};
pub use scheduler::Scheduler;
pub use services::Services;
pub use tokens::{TokenMaker, Tokens};
pub use waiting::WaitingLengths;
pub use worker::{Port, Worker, WorkerCounters};
