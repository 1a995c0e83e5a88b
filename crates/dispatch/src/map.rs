//! The map of one service: where its names are at home, and who held them before.

use crate::buckets::BucketMap;
use crate::linear::LinearMap;
use crate::{Key, MAX_WORKERS, MapError, WorkerId, WorkerSet};

/// How a map divides names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// As published: see [`LinearMap`]. Shares differ by up to a factor of two.
    Linear,
    /// A name dispatch table: see [`BucketMap`]. Shares are even.
    Buckets {
        /// Buckets, as a power of two: from as many as there are workers, to 2^16.
        n_buckets_log2: u8,
    },
}

#[derive(Clone, Debug)]
enum Map {
    Linear(LinearMap),
    Buckets(BucketMap),
}

/// Names of a service, divided among its workers.
///
/// Besides its home, a bucket remembers whose its names were until the change has
/// [settled](Self::settle): those workers may still have Interests pending that Data has to
/// meet.
#[derive(Clone, Debug)]
pub struct ServiceMap {
    map: Map,
    former: Vec<Former>,
    /// Buckets that have changed hands and not settled.
    n_unsettled: usize,
}

/// Who had the names of a bucket, other than its worker.
#[derive(Clone, Copy, Debug, Default)]
struct Former {
    workers: WorkerSet,
    /// The latest version in which one was added; 0 once that has settled. A bucket that has
    /// come back has no other workers, but names that were moved off it meanwhile have.
    version: u64,
}

impl ServiceMap {
    /// For these workers.
    ///
    /// # Errors
    /// As the map of the kind says.
    pub fn new(kind: MapKind, workers: &[WorkerId]) -> Result<Self, MapError> {
        let (map, n_buckets) = match kind {
            MapKind::Linear => (Map::Linear(LinearMap::new(workers)?), MAX_WORKERS),
            MapKind::Buckets { n_buckets_log2 } => {
                let map = BucketMap::new(n_buckets_log2, workers)?;
                let n_buckets = map.buckets().len();
                (Map::Buckets(map), n_buckets)
            }
        };
        Ok(Self {
            map,
            former: vec![Former::default(); n_buckets],
            n_unsettled: 0,
        })
    }

    /// The worker of a key. Takes constant time.
    #[inline]
    #[must_use]
    pub fn home(&self, key: Key) -> WorkerId {
        match &self.map {
            Map::Linear(map) => map.home(key),
            Map::Buckets(map) => map.home(key),
        }
    }

    /// The workers that may have state of a key: its home, and who it was before.
    #[inline]
    #[must_use]
    pub fn holders(&self, key: Key) -> WorkerSet {
        let mut holders = WorkerSet::only(self.home(key));
        if self.n_unsettled > 0 {
            holders = holders.union(self.former[self.bucket(key)].workers);
        }
        holders
    }

    /// Who had a key before changes later than `version`, and the latest of these changes;
    /// nobody if there was none.
    #[inline]
    pub(crate) fn moved_since(&self, key: Key, version: u64) -> (WorkerSet, u64) {
        if self.n_unsettled == 0 {
            return (WorkerSet::EMPTY, 0);
        }
        let former = &self.former[self.bucket(key)];
        if former.version > version {
            (former.workers, former.version)
        } else {
            (WorkerSet::EMPTY, 0)
        }
    }

    /// The part of all names, each as likely as another, that is at home at a worker; 0 if
    /// it isn't in the map. Takes time linear in the buckets.
    #[must_use]
    pub fn share(&self, worker: WorkerId) -> f64 {
        match &self.map {
            Map::Linear(map) => map.share(worker),
            Map::Buckets(map) => {
                let n_here = (map.buckets().iter()).filter(|&&it| it == worker).count();
                n_here as f64 / map.buckets().len() as f64
            }
        }
    }

    fn bucket(&self, key: Key) -> usize {
        match &self.map {
            Map::Linear(map) => map.bucket(key),
            Map::Buckets(map) => map.bucket(key),
        }
    }

    /// Whose each bucket is.
    #[must_use]
    pub fn buckets(&self) -> &[WorkerId] {
        match &self.map {
            Map::Linear(map) => map.workers(),
            Map::Buckets(map) => map.buckets(),
        }
    }

    /// The workers; the last one goes first.
    #[must_use]
    pub fn workers(&self) -> &[WorkerId] {
        match &self.map {
            Map::Linear(map) => map.workers(),
            Map::Buckets(map) => map.workers(),
        }
    }

    /// Buckets whose names changed their home and have not settled.
    #[must_use]
    pub const fn n_unsettled(&self) -> usize {
        self.n_unsettled
    }

    /// Gives a worker its share of the names, in this version, from 1 on as in all changes.
    ///
    /// # Errors
    /// As the map says.
    pub fn insert(&mut self, worker: WorkerId, version: u64) -> Result<(), MapError> {
        let former = &mut self.former;
        match &mut self.map {
            Map::Linear(map) => {
                let bucket = map.workers().len();
                map.push(worker)?;
                let mut held = WorkerSet::EMPTY;
                for from in map.touched_by(bucket) {
                    held.insert(map.workers()[from]);
                    held = held.union(former[from].workers);
                }
                remember(former, bucket, held, version);
            }
            Map::Buckets(map) => map.insert(worker, |bucket, was| {
                remember(former, bucket, WorkerSet::only(was), version);
            })?,
        }
        self.tidy();
        Ok(())
    }

    /// Takes a worker's names away, in this version.
    ///
    /// # Errors
    /// As the map says.
    pub fn remove(&mut self, worker: WorkerId, version: u64) -> Result<(), MapError> {
        let former = &mut self.former;
        match &mut self.map {
            Map::Linear(map) => {
                let before = map.workers();
                let place = before.iter().position(|&other| other == worker);
                let bucket = before.len() - 1;
                let last = before[bucket];
                map.remove(worker)?;
                let held = former[bucket].workers.union(WorkerSet::only(last));
                former[bucket] = Former::default();
                for to in map.touched_by(bucket) {
                    remember(former, to, held, version);
                }
                if let Some(place) = place.filter(|&place| place != bucket) {
                    remember(former, place, WorkerSet::only(worker), version);
                }
            }
            Map::Buckets(map) => map.remove(worker, |bucket, _| {
                remember(former, bucket, WorkerSet::only(worker), version);
            })?,
        }
        self.tidy();
        Ok(())
    }

    /// Gives one bucket to a worker of the map, in this version.
    ///
    /// # Errors
    /// If the worker isn't in the map, or the map is a linear one, whose buckets are the
    /// workers'.
    ///
    /// # Panics
    /// If there is no such bucket.
    pub fn assign(
        &mut self,
        bucket: usize,
        worker: WorkerId,
        version: u64,
    ) -> Result<(), MapError> {
        match &mut self.map {
            Map::Linear(_) => return Err(MapError::AlreadyThere { worker }),
            Map::Buckets(map) => {
                let was = map.assign(bucket, worker)?;
                remember(&mut self.former, bucket, WorkerSet::only(was), version);
            }
        }
        self.tidy();
        Ok(())
    }

    /// Has the bucket of a key remember who had that key before a change in this version.
    /// The other names of the bucket are thought to have been there too, which does no harm.
    pub(crate) fn remember(&mut self, key: Key, mut workers: WorkerSet, version: u64) {
        workers.remove(self.home(key));
        if workers.is_empty() {
            return;
        }
        let bucket = self.bucket(key);
        let former = &mut self.former[bucket];
        self.n_unsettled += usize::from(former.version == 0);
        former.workers = former.workers.union(workers);
        former.version = former.version.max(version);
    }

    /// Forgets who held names before, for changes up to this version: nothing that was
    /// pending then is pending any more.
    pub fn settle(&mut self, version: u64) {
        for former in &mut self.former {
            if former.version <= version {
                *former = Former::default();
            }
        }
        self.tidy();
    }

    /// Forgets a worker as former holder of anything: it is gone, with all it had.
    pub fn forget(&mut self, worker: WorkerId) {
        for former in &mut self.former {
            former.workers.remove(worker);
        }
        self.tidy();
    }

    /// Takes out of each bucket's former holders who has it now, and counts.
    fn tidy(&mut self) {
        let buckets = match &self.map {
            Map::Linear(map) => map.workers(),
            Map::Buckets(map) => map.buckets(),
        };
        self.n_unsettled = 0;
        for (former, &worker) in self.former.iter_mut().zip(buckets) {
            former.workers.remove(worker);
            self.n_unsettled += usize::from(former.version > 0);
        }
    }
}

fn remember(former: &mut [Former], bucket: usize, held: WorkerSet, version: u64) {
    former[bucket].workers = former[bucket].workers.union(held);
    former[bucket].version = version;
}
