//! Schedulers to compare with: those that Iqbal 2013 compares with, and an oracle.
//!
//! | scheduler | what |
//! |---|---|
//! | [`Fcfs`] | each packet to the shortest queue, whatever its name: section 5.4.1 |
//! | [`StaticHash`] | each name where the map says, for ever: "no flow migrated" of Figure 4.9 |
//! | [`FlowShift`] by name | Dittmann's load balancer (DLB) as section 2.3.2 describes it: on imbalance, the arriving flow moves to the least loaded worker, aggressive or not |
//! | [`FlowShift`] by bundle | the same of a bucket of the map table, which needs no table of flows; arbitrary flow shift (AFS) |
//! | [`RoundRobin`] | batches of packets to one worker after another, whatever their names: batch scheduling (Guo et al. 2005, section 2.3.1) with [order restored](crate::restoration) |
//! | [`AdaptiveHash`](crate::adaptive::AdaptiveHash) | weights of workers that follow their load: section 2.3.2 |
//! | [`TopNames`] | LAPS with exact counts of all names instead of the detector |
//!
//! The thesis tells apart neither DLB from AFS, which it describes alike, nor says of
//! which grain they are; both grains are here. All share the threshold with
//! [`Laps`], and, as there, nothing moves to a worker that is overloaded, too.
//! They have one service, and neither bound their memory nor are for a router, except
//! [`StaticHash`].

use std::collections::HashMap;

use crate::buckets::BucketMap;
use crate::{Homes, Key, Laps, MapError, ServiceId, ServiceLoad, WorkerId, WorkerSet};

/// What chooses the worker of each packet.
pub trait Scheduler {
    /// The worker of a packet that arrives, by the lengths of the workers' queues.
    fn dispatch(&mut self, service: ServiceId, key: Key, queue_lens: &[u32]) -> WorkerId;

    /// How many names, or bundles of them, were moved so far; packets that go their own way
    /// don't count.
    fn n_shifts(&self) -> u64;

    /// Hears what services did in an interval that ends now. Loads lack the mean queue,
    /// which is for the scheduler to find.
    fn handle_loads(&mut self, _: u64, _: u64, _: &mut [ServiceLoad], _queue_lens: &[u32]) {}

    /// The homes by which it dispatches, if changes of them are told apart by version, so
    /// that packets of what moves can be kept in [order](crate::order).
    fn homes(&self) -> Option<&Homes> {
        None
    }

    /// Hears up to which version changes are in effect.
    fn handle_in_effect(&mut self, _: u64) {}

    /// Workers in deep sleep. No packet goes to them. The set changes in
    /// [`handle_loads`](Self::handle_loads) alone.
    fn sleeping(&self) -> WorkerSet {
        WorkerSet::EMPTY
    }
}

impl<T: Scheduler + ?Sized> Scheduler for Box<T> {
    fn dispatch(&mut self, service: ServiceId, key: Key, queue_lens: &[u32]) -> WorkerId {
        (**self).dispatch(service, key, queue_lens)
    }

    fn n_shifts(&self) -> u64 {
        (**self).n_shifts()
    }

    fn handle_loads(
        &mut self,
        now_ns: u64,
        interval_ns: u64,
        loads: &mut [ServiceLoad],
        queue_lens: &[u32],
    ) {
        (**self).handle_loads(now_ns, interval_ns, loads, queue_lens);
    }

    fn homes(&self) -> Option<&Homes> {
        (**self).homes()
    }

    fn handle_in_effect(&mut self, version: u64) {
        (**self).handle_in_effect(version);
    }

    fn sleeping(&self) -> WorkerSet {
        (**self).sleeping()
    }
}

impl Scheduler for Laps {
    fn dispatch(&mut self, service: ServiceId, key: Key, queue_lens: &[u32]) -> WorkerId {
        Self::dispatch(self, service, key, queue_lens)
    }

    fn n_shifts(&self) -> u64 {
        self.counters().n_migrations
    }

    fn handle_loads(
        &mut self,
        now_ns: u64,
        interval_ns: u64,
        loads: &mut [ServiceLoad],
        queue_lens: &[u32],
    ) {
        for (service, load) in loads.iter_mut().enumerate() {
            load.mean_queue = self.mean_queue(ServiceId(service as u8), queue_lens);
        }
        self.handle_interval(now_ns, interval_ns, loads);
    }

    fn homes(&self) -> Option<&Homes> {
        Some(Self::homes(self))
    }

    fn handle_in_effect(&mut self, version: u64) {
        Self::handle_in_effect(self, version);
    }
}

/// The first of `workers` with the shortest queue, counted from the one at `first` on.
pub(crate) fn shortest(workers: &[WorkerId], first: usize, queue_lens: &[u32]) -> WorkerId {
    let (before, after) = workers.split_at(first % workers.len());
    let in_turn = after.iter().chain(before).copied();
    // There is a worker: the maps and constructors see to it.
    (in_turn.min_by_key(|worker| queue_lens[worker.idx()])).unwrap_or_default()
}

fn numbered(n_workers: usize) -> Vec<WorkerId> {
    (0..n_workers).map(|w| WorkerId(w as u16)).collect()
}

/// First come, first served: each packet joins the shortest queue. Of several that are
/// equally short the next one after the last packet's is taken, so that load spreads as it
/// does when whoever is free takes the next packet.
#[derive(Clone, Debug)]
pub struct Fcfs {
    workers: Vec<WorkerId>,
    next: usize,
}

impl Fcfs {
    /// For so many workers.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(n_workers: usize) -> Result<Self, MapError> {
        if n_workers == 0 {
            return Err(MapError::NoWorker);
        }
        Ok(Self {
            workers: numbered(n_workers),
            next: 0,
        })
    }

    /// Workers that it sends packets to.
    pub(crate) const fn n_workers(&self) -> usize {
        self.workers.len()
    }

    /// Sends packets to the first `n_workers` from now on, of which there is one at least.
    pub(crate) fn set_workers(&mut self, n_workers: usize) {
        if n_workers != self.workers.len() {
            self.workers = numbered(n_workers.max(1));
        }
    }
}

impl Scheduler for Fcfs {
    fn dispatch(&mut self, _: ServiceId, _: Key, queue_lens: &[u32]) -> WorkerId {
        let worker = shortest(&self.workers, self.next, queue_lens);
        self.next = worker.idx() + 1;
        worker
    }

    fn n_shifts(&self) -> u64 {
        0
    }
}

/// As many packets as a batch has to one worker, then to the next.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    n_workers: u16,
    batch_pkts: u32,
    worker: u16,
    n_left: u32,
}

impl RoundRobin {
    /// For so many workers, in batches of so many packets.
    ///
    /// # Errors
    /// If there is no worker, or a batch is empty.
    pub fn new(n_workers: usize, batch_pkts: u32) -> Result<Self, MapError> {
        if n_workers == 0 || batch_pkts == 0 {
            return Err(MapError::NoWorker);
        }
        Ok(Self {
            n_workers: n_workers as u16,
            batch_pkts,
            worker: 0,
            n_left: batch_pkts,
        })
    }
}

impl Scheduler for RoundRobin {
    fn dispatch(&mut self, _: ServiceId, _: Key, _: &[u32]) -> WorkerId {
        if self.n_left == 0 {
            self.worker = (self.worker + 1) % self.n_workers;
            self.n_left = self.batch_pkts;
        }
        self.n_left -= 1;
        WorkerId(self.worker)
    }

    fn n_shifts(&self) -> u64 {
        0
    }
}

/// Each name where the name dispatch table says.
#[derive(Clone, Debug)]
pub struct StaticHash {
    map: BucketMap,
}

impl StaticHash {
    /// For so many workers, with `2^n_buckets_log2` buckets.
    ///
    /// # Errors
    /// As [`BucketMap::new`] says.
    pub fn new(n_workers: usize, n_buckets_log2: u8) -> Result<Self, MapError> {
        let map = BucketMap::new(n_buckets_log2, &numbered(n_workers))?;
        Ok(Self { map })
    }
}

impl Scheduler for StaticHash {
    fn dispatch(&mut self, _: ServiceId, key: Key, _: &[u32]) -> WorkerId {
        self.map.home(key)
    }

    fn n_shifts(&self) -> u64 {
        0
    }
}

/// What [`FlowShift`] moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// A name.
    Name,
    /// All names of a bucket.
    Bundle,
}

/// On imbalance, moves whatever arrives to the least loaded worker.
#[derive(Clone, Debug)]
pub struct FlowShift {
    map: BucketMap,
    grain: Grain,
    moved: HashMap<Key, WorkerId>,
    high_threshold: u32,
    n_shifts: u64,
}

impl FlowShift {
    /// For so many workers, with `2^n_buckets_log2` buckets.
    ///
    /// # Errors
    /// As [`BucketMap::new`] says.
    pub fn new(
        n_workers: usize,
        n_buckets_log2: u8,
        grain: Grain,
        high_threshold: u32,
    ) -> Result<Self, MapError> {
        Ok(Self {
            map: BucketMap::new(n_buckets_log2, &numbered(n_workers))?,
            grain,
            moved: HashMap::new(),
            high_threshold,
            n_shifts: 0,
        })
    }
}

impl Scheduler for FlowShift {
    fn dispatch(&mut self, _: ServiceId, key: Key, queue_lens: &[u32]) -> WorkerId {
        let home = match self.grain {
            Grain::Name if !self.moved.is_empty() => {
                let moved = self.moved.get(&key).copied();
                moved.unwrap_or_else(|| self.map.home(key))
            }
            Grain::Name | Grain::Bundle => self.map.home(key),
        };
        if queue_lens[home.idx()] < self.high_threshold {
            return home;
        }
        let least = shortest(self.map.workers(), 0, queue_lens);
        if queue_lens[least.idx()] >= self.high_threshold {
            return home;
        }
        match self.grain {
            Grain::Name => {
                self.moved.insert(key, least);
            }
            Grain::Bundle => {
                let bucket = self.map.bucket(key);
                if self.map.assign(bucket, least).is_err() {
                    return home;
                }
            }
        }
        self.n_shifts += 1;
        least
    }

    fn n_shifts(&self) -> u64 {
        self.n_shifts
    }
}

/// Moves only the `n_top` names of most packets so far, counted exactly.
#[derive(Clone, Debug)]
pub struct TopNames {
    map: BucketMap,
    moved: HashMap<Key, WorkerId>,
    top: ExactTop,
    high_threshold: u32,
    n_shifts: u64,
}

impl TopNames {
    /// For so many workers, with `2^n_buckets_log2` buckets.
    ///
    /// # Errors
    /// As [`BucketMap::new`] says.
    pub fn new(
        n_workers: usize,
        n_buckets_log2: u8,
        n_top: usize,
        high_threshold: u32,
    ) -> Result<Self, MapError> {
        Ok(Self {
            map: BucketMap::new(n_buckets_log2, &numbered(n_workers))?,
            moved: HashMap::new(),
            top: ExactTop::new(n_top),
            high_threshold,
            n_shifts: 0,
        })
    }
}

impl Scheduler for TopNames {
    fn dispatch(&mut self, _: ServiceId, key: Key, queue_lens: &[u32]) -> WorkerId {
        self.top.handle_packet(key);
        let home = self.moved.get(&key).copied();
        let home = home.unwrap_or_else(|| self.map.home(key));
        if queue_lens[home.idx()] < self.high_threshold || !self.top.contains(key) {
            return home;
        }
        let least = shortest(self.map.workers(), 0, queue_lens);
        if queue_lens[least.idx()] >= self.high_threshold {
            return home;
        }
        self.moved.insert(key, least);
        self.n_shifts += 1;
        least
    }

    fn n_shifts(&self) -> u64 {
        self.n_shifts
    }
}

/// The names that came most often so far, exactly; of names that came equally often, those
/// that did so first.
#[derive(Clone, Debug)]
pub struct ExactTop {
    counts: HashMap<Key, u64>,
    top: Vec<(Key, u64)>,
    n_top: usize,
}

impl ExactTop {
    /// Of so many names.
    #[must_use]
    pub fn new(n_top: usize) -> Self {
        Self {
            counts: HashMap::new(),
            top: Vec::with_capacity(n_top),
            n_top,
        }
    }

    /// Counts a packet.
    pub fn handle_packet(&mut self, key: Key) {
        let count = self.counts.entry(key).or_default();
        *count += 1;
        if let Some(it) = self.top.iter_mut().find(|it| it.0 == key) {
            it.1 = *count;
        } else if self.top.len() < self.n_top {
            self.top.push((key, *count));
        } else if let Some(least) = self.top.iter_mut().min_by_key(|it| it.1)
            && *count > least.1
        {
            *least = (key, *count);
        }
    }

    /// Whether a name is among them.
    #[must_use]
    pub fn contains(&self, key: Key) -> bool {
        self.top.iter().any(|it| it.0 == key)
    }

    /// The names with their counts, in no order.
    #[must_use]
    pub fn names(&self) -> &[(Key, u64)] {
        &self.top
    }

    /// Names that came at all.
    #[must_use]
    pub fn n_names(&self) -> usize {
        self.counts.len()
    }
}
