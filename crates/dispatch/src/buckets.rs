//! The name dispatch table: a fixed number of buckets, each of which a worker has.

use crate::{Key, MapError, WorkerId};

/// Most buckets, as a power of two.
pub const MAX_BUCKETS_LOG2: u8 = 16;

/// Buckets of names that workers share out evenly: none has two buckets more than another.
///
/// A worker that comes takes its share from those who have most, one that goes leaves its
/// buckets to those who have fewest, and no other bucket moves. With `B` buckets, the
/// worker that makes it `N` moves `B / N` of them, rounded down, and so at most 1/N of the
/// names; one that goes moves what it had and no more. Which buckets move depends on the
/// buckets alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketMap {
    buckets: Vec<WorkerId>,
    /// Bits by which a 32-bit number is shifted to be a bucket's.
    shift: u8,
    workers: Vec<WorkerId>,
}

impl BucketMap {
    /// `2^n_buckets_log2` buckets for these workers.
    ///
    /// # Errors
    /// If there is no worker, one comes twice, there are fewer buckets than workers, or
    /// more buckets than 2^16.
    pub fn new(n_buckets_log2: u8, workers: &[WorkerId]) -> Result<Self, MapError> {
        let (&first, others) = workers.split_first().ok_or(MapError::NoWorker)?;
        let n_buckets = 1_usize << n_buckets_log2.min(MAX_BUCKETS_LOG2);
        if n_buckets_log2 > MAX_BUCKETS_LOG2 || workers.len() > n_buckets {
            return Err(MapError::Buckets {
                n_buckets_log2,
                n_workers: workers.len(),
            });
        }
        let mut map = Self {
            buckets: vec![first; n_buckets],
            shift: 32 - n_buckets_log2,
            workers: Vec::with_capacity(crate::MAX_WORKERS),
        };
        map.workers.push(first);
        for &worker in others {
            map.insert(worker, |_, _| ())?;
        }
        Ok(map)
    }

    /// The bucket of a key.
    #[inline]
    #[must_use]
    pub const fn bucket(&self, key: Key) -> usize {
        // From 64 bits, since a shift by 32 leaves nothing of one bucket.
        ((key.spread() >> 32) >> self.shift) as usize
    }

    /// The worker of a key.
    #[inline]
    #[must_use]
    pub fn home(&self, key: Key) -> WorkerId {
        self.buckets[self.bucket(key)]
    }

    /// Whose each bucket is.
    #[must_use]
    pub fn buckets(&self) -> &[WorkerId] {
        &self.buckets
    }

    /// The workers, in the order in which they came.
    #[must_use]
    pub fn workers(&self) -> &[WorkerId] {
        &self.workers
    }

    /// Gives a worker its share, and tells `moved` each bucket that became its, and whose
    /// it was. Takes time linear in the buckets.
    ///
    /// # Errors
    /// If it is there, or each bucket has a worker of its own.
    pub fn insert(
        &mut self,
        worker: WorkerId,
        mut moved: impl FnMut(usize, WorkerId),
    ) -> Result<(), MapError> {
        if self.workers.contains(&worker) {
            return Err(MapError::AlreadyThere { worker });
        }
        let n_workers = self.workers.len() + 1;
        if n_workers > self.buckets.len() {
            return Err(MapError::Buckets {
                n_buckets_log2: 32 - self.shift,
                n_workers,
            });
        }
        let mut counts = self.counts();
        let share = self.buckets.len() / n_workers;
        // How many each gives, decided one by one, the richest first.
        let mut n_given = [0_u32; crate::MAX_WORKERS];
        for _ in 0..share {
            if let Some(&richest) = (self.workers.iter())
                .max_by_key(|worker| (counts[worker.idx()], std::cmp::Reverse(worker.idx())))
            {
                counts[richest.idx()] -= 1;
                n_given[richest.idx()] += 1;
            }
        }
        for (bucket, owner) in self.buckets.iter_mut().enumerate().rev() {
            if n_given[owner.idx()] > 0 {
                n_given[owner.idx()] -= 1;
                moved(bucket, *owner);
                *owner = worker;
            }
        }
        self.workers.push(worker);
        Ok(())
    }

    /// Gives what a worker has to the others, and tells `moved` each bucket that was its
    /// and whose it became. Takes time linear in the buckets.
    ///
    /// # Errors
    /// If it isn't there, or is the last one.
    pub fn remove(
        &mut self,
        worker: WorkerId,
        mut moved: impl FnMut(usize, WorkerId),
    ) -> Result<(), MapError> {
        let at = (self.workers.iter())
            .position(|&other| other == worker)
            .ok_or(MapError::NotThere { worker })?;
        if self.workers.len() == 1 {
            return Err(MapError::LastWorker { worker });
        }
        self.workers.remove(at);
        let mut counts = self.counts();
        for (bucket, owner) in self.buckets.iter_mut().enumerate() {
            if *owner != worker {
                continue;
            }
            if let Some(&poorest) =
                (self.workers.iter()).min_by_key(|worker| (counts[worker.idx()], worker.idx()))
            {
                counts[poorest.idx()] += 1;
                *owner = poorest;
                moved(bucket, poorest);
            }
        }
        Ok(())
    }

    /// Gives one bucket to a worker of the map, whatever shares come of it, and returns
    /// whose it was.
    ///
    /// # Errors
    /// If there is no such worker.
    ///
    /// # Panics
    /// If there is no such bucket.
    pub fn assign(&mut self, bucket: usize, worker: WorkerId) -> Result<WorkerId, MapError> {
        if self.workers.contains(&worker) {
            Ok(std::mem::replace(&mut self.buckets[bucket], worker))
        } else {
            Err(MapError::NotThere { worker })
        }
    }

    fn counts(&self) -> [u32; crate::MAX_WORKERS] {
        let mut counts = [0; crate::MAX_WORKERS];
        for worker in &self.buckets {
            counts[worker.idx()] += 1;
        }
        counts
    }
}
