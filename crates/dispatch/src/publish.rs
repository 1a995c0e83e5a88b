//! How receiving threads read homes that one thread changes.
//!
//! The owner publishes whole copies. A reader keeps the copy that it read last and asks,
//! once per burst, whether there is a newer one: a load of a line that changes only with
//! the homes. What a burst is dispatched by is one version, and reading it writes nothing,
//! takes no lock and allocates nothing; the copy that a reader leaves is freed by the
//! owner.
//!
//! Only when there is a newer version does a reader take the lock, under which a pointer is
//! exchanged or copied and nothing else is done. It must not go on with what it has instead:
//! an Interest may have been dispatched by the newer version, to a new home, before the Data
//! for it came to a worker that is the old one. Only by homes that are not older does that
//! worker know where else the Data is awaited; and each that begins with a burst after the
//! Interest was dispatched sees that there are such, since the version was told before
//! anybody could take it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Homes;

#[derive(Debug)]
struct Shared {
    /// The version in `latest`.
    version: AtomicU64,
    latest: Mutex<Arc<Homes>>,
}

impl Shared {
    fn latest(&self) -> MutexGuard<'_, Arc<Homes>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
    homes: Arc<Homes>,
}

impl Publisher {
    /// Publishes these homes.
    #[must_use]
    pub fn new(homes: &Homes) -> Self {
        let shared = Shared {
            version: AtomicU64::new(homes.version()),
            latest: Mutex::new(Arc::new(homes.clone())),
        };
        Self {
            shared: Arc::new(shared),
            former: Vec::new(),
        }
    }

    /// A reader, for one thread.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let homes = self.shared.latest().clone();
        Reader {
            shared: self.shared.clone(),
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
        let mut latest = self.shared.latest();
        let former = std::mem::replace(&mut *latest, copy);
        self.shared
            .version
            .store(homes.version(), Ordering::Release);
        drop(latest);
        self.former.push(former);
    }
}

impl Reader {
    /// Takes the latest homes, if they are newer than those it has: to be called between
    /// bursts, when all that was dispatched by the former ones stands in a queue. Returns
    /// whether they changed. Waits at most until another thread has exchanged or copied a
    /// pointer, and that only if there are newer ones.
    pub fn refresh(&mut self) -> bool {
        if self.shared.version.load(Ordering::Acquire) == self.homes.version() {
            return false;
        }
        let latest = self.shared.latest().clone();
        self.homes = latest;
        true
    }

    /// Where names are at home.
    #[inline]
    #[must_use]
    pub fn homes(&self) -> &Homes {
        &self.homes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::{Key, Laps, LapsConfig, ServiceId, WorkerId};

    #[test]
    fn a_reader_that_meets_another_one_has_the_latest_homes_all_the_same() {
        let mut laps = Laps::new(&LapsConfig::new(2)).expect("two workers");
        let mut publisher = Publisher::new(laps.homes());
        let mut reader = publisher.reader();
        let key = Key(1);
        let pinned = laps.pin(ServiceId(0), key, WorkerId(1));
        pinned.expect("room for a name");
        publisher.publish(laps.homes());
        let shared = publisher.shared.clone();
        let copying = shared.latest();
        let (begins, begun) = mpsc::channel();
        let met = std::thread::spawn(move || {
            begins.send(()).expect("the main thread listens");
            (reader.refresh(), reader.homes().version())
        });
        begun.recv().expect("it begins");
        // For so long that it most likely finds the lock taken; whether it does or not, the
        // outcome is the same.
        (0..1_000).for_each(|_| std::thread::yield_now());
        drop(copying);
        let met = met.join().expect("it ends");
        assert_eq!(met, (true, laps.homes().version()));
    }
}
