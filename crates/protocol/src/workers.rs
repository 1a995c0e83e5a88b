//! How the router's workers stand: the dataset `workers/list`, this router's own.
//!
//! Owns the values, and the bounds of how many there are in one; what the workers do is
//! measured elsewhere. The TLV-TYPEs are in the table of `dataset`.

use tachonym_packet::Name;

use crate::WorkerState;
use crate::codec::{Bounded, management_value};

management_value! {
    /// How all workers stand; the entry of `workers/list`.
    #[derive(Default)]
    WorkersStatus = 36906 {
        /// How packets come to workers: `run-to-completion`, where each thread receives and
        /// forwards, or `io-threads`, where some only receive.
        feed: Required<String> = 36909,
        /// By what of a name its worker is found: `prefix 2` for its first two components,
        /// `name`, `batch 8` for segments by eight, or `none` where one worker has all.
        dispatch: Required<String> = 36911,
        /// Whether names stay where they are, whatever the queues say.
        is_frozen: Required<bool> = 36913,
        /// Version of the map from names to workers: it grows with each change.
        map_version: Required<u64> = 36915,
        /// Buckets of the map; 0 where there is none.
        n_buckets: Required<u64> = 36917,
        /// Names that were moved since the start, each time that one was.
        n_moved: Required<u64> = 36919,
        /// Names that are at another worker now than the map says; not fewer than
        /// `moved_names` has.
        n_away: Required<u64> = 36921,
        /// Of these, up to [`MovedName::MAX`].
        moved_names: Few<MovedName> = 36922,
        /// Every worker, in the order of their numbers, those that have gone included; up to
        /// [`WorkerStatus::MAX`].
        workers: Few<WorkerStatus> = 36930,
        /// Every thread that only receives, in the order of their numbers; up to
        /// [`ReceiverStatus::MAX`].
        receivers: Few<ReceiverStatus> = 36946,
    }
}

management_value! {
    /// A name that is at another worker than the map says, of a [`WorkersStatus`].
    MovedName = 36922 {
        /// What its packets are dispatched by: a hash, which each start of the router
        /// makes another one.
        key: Required<u64> = 36923,
        /// The worker that has it.
        worker: Required<u64> = 36908,
        /// Whether an operator keeps it there; otherwise queues have moved it, and may again.
        is_pinned: Required<bool> = 36925,
        /// The name, as far as it decides; `None` if it is not remembered.
        name: Optional<Name> = 7,
    }
}

management_value! {
    /// A worker, of a [`WorkersStatus`]. What it counts begins with its start.
    WorkerStatus = 36930 {
        /// Its number, from 0.
        worker: Required<u64> = 36908,
        /// What it is there for.
        state: Required<WorkerState> = 36931,
        /// What it does: `forwarding`.
        service: Required<String> = 36933,
        /// The CPU that it is bound to; `None`: any.
        cpu: Optional<u64> = 36934,
        /// How much of the last second or so it was busy, from 0 to 1000; `None` if that
        /// is not measured.
        busy_permille: Optional<u64> = 36936,
        /// Packets that wait for it.
        n_queued_pkts: Required<u64> = 36939,
        /// How much of all names, each as likely as another, the map gives it, from 0 to
        /// 1000, rounded.
        share_permille: Required<u64> = 36941,
        /// Packets that came and were at home here.
        n_in_pkts: Required<u64> = 36943,
        /// Of these, those that another thread received.
        n_crossed_pkts: Required<u64> = 36945,
        /// Packets that found its queue full, and were dropped.
        n_dropped_pkts: Required<u64> = 36867,
        /// Entries in its PIT.
        n_pit_entries: Required<u64> = 133,
        /// Packets in its content store.
        n_cs_entries: Required<u64> = 135,
        /// How it waits for packets; `None` from a router that does not say.
        waiting: Optional<WaitingStatus> = 37200,
    }
}

management_value! {
    /// A thread that only receives, of a [`WorkersStatus`].
    ReceiverStatus = 36946 {
        /// Its number, from 0, among those that only receive.
        thread: Required<u64> = 36947,
        /// The CPU that it is bound to; `None`: any.
        cpu: Optional<u64> = 36934,
        /// How much of the last second or so it was busy, from 0 to 1000; `None` if that
        /// is not measured.
        busy_permille: Optional<u64> = 36936,
        /// Packets that it has received.
        n_received_pkts: Required<u64> = 36949,
        /// How it waits for packets; `None` from a router that does not say.
        waiting: Optional<WaitingStatus> = 37200,
    }
}

management_value! {
    /// How a thread waits for packets, of a [`WorkerStatus`] or [`ReceiverStatus`]: what it
    /// has learned, and what it counts since its start.
    WaitingStatus = 37200 {
        /// Time that it polls without packets before it blocks; 0: it blocks at once.
        spin_ns: Required<u64> = 37201,
        /// Time for which it gathers packets now; 0: it does not.
        gather_ns: Required<u64> = 37203,
        /// CPU time of one wake-up, as measured.
        wake_cost_ns: Required<u64> = 37205,
        /// Waits that blocked.
        n_wakeups: Required<u64> = 37207,
        /// Waits that gathered.
        n_gathers: Required<u64> = 37209,
        /// By which instruction it watches its rings while it polls: `umwait`, `mwaitx` or
        /// `none`; `None` from a router that does not say.
        monitor: Optional<String> = 37210,
    }
}

impl MovedName {
    /// Most that a [`WorkersStatus`] tells of.
    pub const MAX: usize = 64;
}

impl WorkerStatus {
    /// Most that a [`WorkersStatus`] tells of.
    pub const MAX: usize = 128;
}

impl ReceiverStatus {
    /// Most that a [`WorkersStatus`] tells of.
    pub const MAX: usize = 128;
}

impl Bounded for MovedName {
    const MAX: usize = Self::MAX;
}

impl Bounded for WorkerStatus {
    const MAX: usize = Self::MAX;
}

impl Bounded for ReceiverStatus {
    const MAX: usize = Self::MAX;
}
