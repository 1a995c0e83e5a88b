//! What can't be done, and what to do about it.

use crate::{MAX_SERVICES, MAX_WORKERS, ServiceId, WorkerId};

/// Why a map stayed as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// Names would have no home.
    #[error("a map needs a worker: give it one at least")]
    NoWorker,
    /// The last worker can't go.
    #[error("worker {worker} is the only one: add another before it is taken away")]
    LastWorker {
        /// Which.
        worker: WorkerId,
    },
    /// It has names already.
    #[error("worker {worker} is in the map already")]
    AlreadyThere {
        /// Which.
        worker: WorkerId,
    },
    /// There is nothing to take from it.
    #[error("worker {worker} is not in the map")]
    NotThere {
        /// Which.
        worker: WorkerId,
    },
    /// Workers are numbered up to a bound.
    #[error("there are at most {MAX_WORKERS} workers, numbered from 0")]
    TooManyWorkers,
    /// Too few buckets, or too many.
    #[error(
        "2^{n_buckets_log2} buckets for {n_workers} workers: \
         give each worker one at least, and take at most 2^16"
    )]
    Buckets {
        /// Buckets, as a power of two.
        n_buckets_log2: u8,
        /// Workers.
        n_workers: usize,
    },
}

/// Why a scheduler was not made, or did not change.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LapsError {
    /// Each service has a worker of its own.
    #[error(
        "{n_services} services and {n_workers} workers: each service needs one worker at \
         least, so have more workers or fewer services"
    )]
    ServiceWithoutWorker {
        /// Services.
        n_services: usize,
        /// Workers.
        n_workers: usize,
    },
    /// Nothing to do, or too much.
    #[error("{n_services} services: there is one at least, and {MAX_SERVICES} at most")]
    Services {
        /// Services.
        n_services: usize,
    },
    /// Workers are numbered up to a bound.
    #[error("{n_workers} workers: there is one at least, and {MAX_WORKERS} at most")]
    Workers {
        /// Workers.
        n_workers: usize,
    },
    /// Rates are divided by it.
    #[error(
        "a worker of service {service} does {rate_pps} packets per second: give the rate that \
         was measured, above 0"
    )]
    Rate {
        /// Which.
        service: ServiceId,
        /// The rate.
        rate_pps: f64,
    },
    /// A size is out of its range.
    #[error("{what} is {value}: it is from {min} to {max}")]
    Size {
        /// Of what.
        what: &'static str,
        /// What it was.
        value: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// A worker serves one service at a time.
    #[error("worker {worker} does not serve service {service}: name one of its workers")]
    OtherService {
        /// The worker.
        worker: WorkerId,
        /// The service.
        service: ServiceId,
    },
    /// No such service.
    #[error("there is no service {service}")]
    NoSuchService {
        /// Which.
        service: ServiceId,
    },
    /// All places that a name may have are pinned, or of names on their way home.
    #[error("no place for another pinned name: unpin one, or have room for more migrations")]
    Pinned,
    /// A place was made free, and will be once the name that had it is at home.
    #[error("another name is going home to make room for the pinned one: try again in a moment")]
    NotYet,
    /// A map refused.
    #[error(transparent)]
    Map(#[from] MapError),
}
