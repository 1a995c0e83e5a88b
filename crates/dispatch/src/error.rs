//! What can't be done, and what to do about it.

use crate::{MAX_SERVICES, MAX_WORKERS, ServiceId, WorkerId};

/// Why a map stayed as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// Names would have no home.
    #[error("a shard map needs at least one worker")]
    NoWorker,
    /// The last worker can't go.
    #[error("worker {worker} is the only one; add another one before it is removed")]
    LastWorker {
        /// Which.
        worker: WorkerId,
    },
    /// It has names already.
    #[error("worker {worker} is in the shard map already")]
    AlreadyThere {
        /// Which.
        worker: WorkerId,
    },
    /// There is nothing to take from it.
    #[error("worker {worker} is not in the shard map")]
    NotThere {
        /// Which.
        worker: WorkerId,
    },
    /// Workers are numbered up to a bound.
    #[error("at most {MAX_WORKERS} workers are possible, numbered from 0")]
    TooManyWorkers,
    /// Too few buckets, or too many.
    #[error(
        "2^{n_buckets_log2} buckets do not suit {n_workers} workers: use at least one bucket a \
         worker, and at most 2^16"
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
        "{n_workers} workers are too few for {n_services} services: each service needs a worker \
         of its own; use more workers or fewer services"
    )]
    ServiceWithoutWorker {
        /// Services.
        n_services: usize,
        /// Workers.
        n_workers: usize,
    },
    /// Nothing to do, or too much.
    #[error("{n_services} services are not possible: use 1 to {MAX_SERVICES}")]
    Services {
        /// Services.
        n_services: usize,
    },
    /// Workers are numbered up to a bound.
    #[error("{n_workers} workers are not possible: use 1 to {MAX_WORKERS}")]
    Workers {
        /// Workers.
        n_workers: usize,
    },
    /// Rates are divided by it.
    #[error(
        "{rate_pps} packets per second are not a rate of a worker of service {service}: give \
         the measured rate, above 0"
    )]
    Rate {
        /// Which.
        service: ServiceId,
        /// The rate.
        rate_pps: f64,
    },
    /// A size is out of its range.
    #[error("{what} is {value}, but must be from {min} to {max}")]
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
    #[error("worker {worker} does not serve service {service}; choose one of its workers")]
    OtherService {
        /// The worker.
        worker: WorkerId,
        /// The service.
        service: ServiceId,
    },
    /// No such service.
    #[error("unknown service {service}")]
    NoSuchService {
        /// Which.
        service: ServiceId,
    },
    /// All places that a name may have are pinned, or of names on their way home.
    #[error("too many names are pinned or migrated; unpin one first")]
    Pinned,
    /// A place was made free, and will be once the name that had it is at home.
    #[error(
        "another name is migrating home to make room for the pinned one; try again in a second"
    )]
    NotYet,
    /// A map refused.
    #[error(transparent)]
    Map(#[from] MapError),
}
