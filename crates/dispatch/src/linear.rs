//! Linear (incremental) hashing of names over a list of workers.

use crate::{Key, MAX_WORKERS, MapError, WorkerId};

/// A list of buckets, one a worker, that grows and shrinks at its end.
///
/// As Iqbal 2013 has it (sections 5.3.4 and 5.3.5, after Litwin 1980): with `m` buckets at
/// first, a bucket that is appended takes half of the names of one that is split, in turn,
/// and gives them back when it goes. Bucket `b` that comes moves at most 1/b of the names.
/// After `m`, `2m`, ... buckets all have the same share; in between, those that aren't yet
/// split have twice that of the others.
///
/// The thesis leaves open what happens with fewer buckets than at first: here, the names of
/// a bucket that goes then spread over all that are left, and come back with it. It gives
/// the round as `b / m - 1`, which holds for the first two; here it is the whole part of
/// `log2(b / m)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearMap {
    workers: Vec<WorkerId>,
    /// Buckets at first, `m`.
    n_first: u32,
    /// Buckets when the round began, `2^i m`.
    n_round: u32,
    /// The bucket to split next, `p`.
    split: u32,
}

impl LinearMap {
    /// A bucket for each of these workers.
    ///
    /// # Errors
    /// If there is no worker, or one comes twice.
    pub fn new(workers: &[WorkerId]) -> Result<Self, MapError> {
        if workers.is_empty() {
            return Err(MapError::NoWorker);
        }
        let mut map = Self {
            workers: Vec::with_capacity(MAX_WORKERS),
            n_first: workers.len() as u32,
            n_round: 0,
            split: 0,
        };
        for &worker in workers {
            map.push(worker)?;
        }
        Ok(map)
    }

    /// The bucket of a key.
    #[inline]
    #[must_use]
    pub fn bucket(&self, key: Key) -> usize {
        let hash = (key.spread() >> 32) as u32;
        // There is a bucket at least, so that nothing is divided by 0.
        let low = hash % self.n_round.max(1);
        if low < self.split {
            (hash % (2 * self.n_round)) as usize
        } else if (low as usize) < self.workers.len() {
            low as usize
        } else {
            self.fallback(hash, low)
        }
    }

    /// Where the names of a bucket are that is gone, of those there were at first.
    #[cold]
    fn fallback(&self, hash: u32, mut bucket: u32) -> usize {
        while bucket as usize >= self.workers.len() {
            // Twice: pairs that differ in few bits must draw independently.
            let pair = Key(u64::from(hash) << 32 | u64::from(bucket));
            let drawn = Key(pair.spread()).spread() >> 32;
            bucket = ((drawn * u64::from(bucket)) >> 32) as u32;
        }
        bucket as usize
    }

    /// The worker of a key.
    #[inline]
    #[must_use]
    pub fn home(&self, key: Key) -> WorkerId {
        self.workers[self.bucket(key)]
    }

    /// The part of all names that is at home at a worker; 0 if it has no bucket.
    #[must_use]
    pub(crate) fn share(&self, worker: WorkerId) -> f64 {
        let Some(bucket) = self.workers.iter().position(|&other| other == worker) else {
            return 0.0;
        };
        let n_round = self.n_round as usize;
        if self.workers.len() < n_round {
            // What is gone has spread over all.
            return 1.0 / self.workers.len() as f64;
        }
        let is_split = bucket < self.split as usize || bucket >= n_round;
        1.0 / if is_split { 2 * n_round } else { n_round } as f64
    }

    /// Whose each bucket is; the last one came last.
    #[must_use]
    pub fn workers(&self) -> &[WorkerId] {
        &self.workers
    }

    /// The bucket that the next one's names come from, and whose names it gets back; `None`
    /// if they come from all.
    fn buddy(&self, bucket: u32) -> Option<u32> {
        if bucket < self.n_first {
            return None;
        }
        let mut n_round = self.n_first;
        while bucket >= 2 * n_round {
            n_round *= 2;
        }
        Some(bucket - n_round)
    }

    /// The buckets that share names with bucket `bucket` when it comes or goes.
    pub(crate) fn touched_by(&self, bucket: usize) -> std::ops::Range<usize> {
        match self.buddy(bucket as u32) {
            Some(buddy) => buddy as usize..buddy as usize + 1,
            None => 0..bucket,
        }
    }

    /// Appends a bucket.
    ///
    /// # Errors
    /// If the worker has one, or there are as many as there may be.
    pub fn push(&mut self, worker: WorkerId) -> Result<(), MapError> {
        if self.workers.contains(&worker) {
            return Err(MapError::AlreadyThere { worker });
        }
        if self.workers.len() >= MAX_WORKERS || worker.idx() >= MAX_WORKERS {
            return Err(MapError::TooManyWorkers);
        }
        self.workers.push(worker);
        self.count();
        Ok(())
    }

    /// Takes the last bucket away, and returns whose it was.
    ///
    /// # Errors
    /// If it is the only one.
    pub fn pop(&mut self) -> Result<WorkerId, MapError> {
        match *self.workers.as_slice() {
            [.., _, worker] => {
                self.workers.pop();
                self.count();
                Ok(worker)
            }
            [worker] => Err(MapError::LastWorker { worker }),
            [] => Err(MapError::NoWorker),
        }
    }

    /// Takes a worker out wherever it stands: the one with the last bucket takes its place.
    /// Moves the names of both buckets, and no others.
    ///
    /// # Errors
    /// If it isn't there, or is the only one.
    pub fn remove(&mut self, worker: WorkerId) -> Result<(), MapError> {
        let at = (self.workers.iter())
            .position(|&other| other == worker)
            .ok_or(MapError::NotThere { worker })?;
        let last = self.pop()?;
        if last != worker {
            self.workers[at] = last;
        }
        Ok(())
    }

    /// Finds round and pointer from the number of buckets.
    fn count(&mut self) {
        let n_buckets = self.workers.len() as u32;
        self.n_round = self.n_first;
        while n_buckets >= 2 * self.n_round {
            self.n_round *= 2;
        }
        self.split = n_buckets.saturating_sub(self.n_round);
    }
}
