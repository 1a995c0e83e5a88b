//! How receiving threads read homes that one thread changes.
//!
//! The owner publishes whole copies. A reader keeps the copy that it read last and asks,
//! once per burst, whether there is a newer one: a load of a line that changes only with
//! the homes. What a burst is dispatched by is one version, and reading it writes nothing,
//! takes no lock and allocates nothing; the copy that a reader leaves is freed by the
//! owner. The lock inside guards the exchange alone: a reader that finds it held goes on
//! with what it has.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use crate::Homes;

#[derive(Debug)]
struct Shared {
    /// The version in `latest`.
    version: AtomicU64,
    latest: Mutex<Arc<Homes>>,
    seen: Mutex<Vec<Arc<Seen>>>,
}

/// The version that a reader uses, on a line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Seen(AtomicU64);

/// A reader is gone.
const GONE: u64 = u64::MAX;

/// The side of the owner.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    /// Copies that readers may still have.
    former: Vec<Arc<Homes>>,
}

/// The side of a receiving thread.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    seen: Arc<Seen>,
    homes: Arc<Homes>,
}

impl Publisher {
    /// Publishes these homes.
    #[must_use]
    pub fn new(homes: &Homes) -> Self {
        let shared = Shared {
            version: AtomicU64::new(homes.version()),
            latest: Mutex::new(Arc::new(homes.clone())),
            seen: Mutex::new(Vec::new()),
        };
        Self {
            shared: Arc::new(shared),
            former: Vec::new(),
        }
    }

    /// A reader, for one thread.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let latest = self.shared.latest.lock();
        let homes = latest.unwrap_or_else(PoisonError::into_inner).clone();
        let seen = Arc::new(Seen(AtomicU64::new(homes.version())));
        let all = self.shared.seen.lock();
        all.unwrap_or_else(PoisonError::into_inner)
            .push(seen.clone());
        Reader {
            shared: self.shared.clone(),
            seen,
            homes,
        }
    }

    /// Publishes these homes if they are newer, in time linear in their size, and frees
    /// copies that no reader has.
    pub fn publish(&mut self, homes: &Homes) {
        self.former.retain(|former| Arc::strong_count(former) > 1);
        if homes.version() == self.shared.version.load(Ordering::Relaxed) {
            return;
        }
        let copy = Arc::new(homes.clone());
        let mut latest = (self.shared.latest.lock()).unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *latest, copy);
        self.shared
            .version
            .store(homes.version(), Ordering::Release);
        drop(latest);
        self.former.push(former);
    }

    /// The oldest version that a reader uses: with every queue that was filled by older ones
    /// drained, earlier changes are in effect everywhere. The latest one if there is no
    /// reader.
    #[must_use]
    pub fn oldest_in_use(&self) -> u64 {
        let mut all = (self.shared.seen.lock()).unwrap_or_else(PoisonError::into_inner);
        all.retain(|seen| seen.0.load(Ordering::Acquire) != GONE);
        let versions = all.iter().map(|seen| seen.0.load(Ordering::Acquire));
        let latest = self.shared.version.load(Ordering::Relaxed);
        versions.min().map_or(latest, |oldest| oldest.min(latest))
    }
}

impl Reader {
    /// Takes the latest homes, if they are newer than those it has: to be called between
    /// bursts, when all that was dispatched by the former ones stands in a queue. Returns
    /// whether they changed. Never waits.
    pub fn refresh(&mut self) -> bool {
        if self.shared.version.load(Ordering::Acquire) == self.homes.version() {
            return false;
        }
        let latest = match self.shared.latest.try_lock() {
            Ok(latest) => latest,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.homes = latest.clone();
        drop(latest);
        self.seen.0.store(self.homes.version(), Ordering::Release);
        true
    }

    /// Where names are at home.
    #[inline]
    #[must_use]
    pub fn homes(&self) -> &Homes {
        &self.homes
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.seen.0.store(GONE, Ordering::Release);
    }
}
