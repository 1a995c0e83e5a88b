//! The FIB as it is changed: prefixes with their next hops, and faces that go.
//!
//! Owns the one who writes the FIB, under a lock that the packet path never waits for: it
//! searches through a reader of its own, and what it has to change, which is that faces
//! have gone, waits until no other thread writes. So any thread may change routes while
//! packets travel, and a table that grows stops none of them. A face that goes leaves its
//! routes in bounded steps, since it may have very many; from the moment it is gone
//! nothing is sent to it anyway.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tachonym_memory::MemoryError;
use tachonym_packet::{FaceId, HashKey, MonoNs};
use tachonym_tables::{Fib, FibConfig, FibReader};

/// Most different sets of next hops that a face is taken out of when it goes rather than
/// in a later call: many faces may go at once.
const MAX_SETS_AT_ONCE: usize = 64;

/// Most in a later call, and most prefixes without next hops that it frees; they take
/// less than a millisecond.
const MAX_PER_CALL: usize = 1024;

/// The routes of an [`Engine`](crate::Engine), to be read and changed on any
/// thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Routes {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    writer: Mutex<Writer>,
    /// Faces that have gone since the FIB was last written.
    gone: Mutex<Vec<FaceId>>,
    /// Whether [`Routes::continue_removal`] has something to do.
    has_work: AtomicBool,
    n_prefixes: AtomicUsize,
}

#[derive(Debug)]
struct Writer {
    fib: Fib,
    /// Faces that have gone and are still next hops.
    unrouted: Vec<FaceId>,
    /// Whether some prefixes have lost their last next hop and are not freed yet.
    has_dead: bool,
}

/// The FIB, to be changed or listed: no other thread changes it meanwhile.
#[derive(Debug)]
pub struct RoutesGuard<'a> {
    writer: MutexGuard<'a, Writer>,
    shared: &'a Shared,
}

impl Deref for RoutesGuard<'_> {
    type Target = Fib;

    fn deref(&self) -> &Fib {
        &self.writer.fib
    }
}

impl DerefMut for RoutesGuard<'_> {
    fn deref_mut(&mut self) -> &mut Fib {
        &mut self.writer.fib
    }
}

impl Drop for RoutesGuard<'_> {
    fn drop(&mut self) {
        let mut gone = lock(&self.shared.gone);
        self.writer.unrouted.append(&mut gone);
        // Under the lock of `gone`: a thread that adds a face later sets the flag afterwards.
        self.shared
            .has_work
            .store(self.writer.has_work(), Ordering::Release);
        drop(gone);
        let n_prefixes = self.writer.fib.len();
        self.shared.n_prefixes.store(n_prefixes, Ordering::Relaxed);
    }
}

/// A panic in between leaves a FIB that is as whole as its last store of a word.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Routes {
    pub(crate) fn new(config: FibConfig, key: HashKey) -> Result<Self, MemoryError> {
        let writer = Writer {
            fib: Fib::new(config, key)?,
            unrouted: Vec::new(),
            has_dead: false,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                writer: Mutex::new(writer),
                gone: Mutex::default(),
                has_work: AtomicBool::new(false),
                n_prefixes: AtomicUsize::new(0),
            }),
        })
    }

    /// The FIB, to be changed or listed. Waits for others who do; so the thread on which
    /// packets travel should not ask for it.
    ///
    /// After a change the engine is to be told by
    /// [`Engine::note_new_next_hops`](crate::Engine::note_new_next_hops).
    #[must_use]
    pub fn lock(&self) -> RoutesGuard<'_> {
        RoutesGuard {
            writer: lock(&self.shared.writer),
            shared: &self.shared,
        }
    }

    fn try_lock(&self) -> Option<RoutesGuard<'_>> {
        let writer = match self.shared.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(RoutesGuard {
            writer,
            shared: &self.shared,
        })
    }

    /// Number of prefixes, as of the last change.
    #[must_use]
    pub fn n_prefixes(&self) -> usize {
        self.shared.n_prefixes.load(Ordering::Relaxed)
    }

    pub(crate) fn reader(&self) -> FibReader {
        self.lock().reader()
    }

    /// A face has the number of another before it: what led there must not lead to it.
    pub(crate) fn note_reused_number(&self, face: FaceId) {
        let mut routes = self.lock();
        let gone = std::mem::take(&mut *lock(&self.shared.gone));
        routes.writer.unrouted.extend(gone);
        if routes.writer.unrouted.contains(&face) {
            routes.writer.unrouted.retain(|&gone| gone != face);
            routes.remove_face(face);
            routes.writer.has_dead = true;
        }
    }

    /// A face has gone; most have few routes, and lose them at once unless another thread
    /// is changing routes.
    pub(crate) fn note_gone_face(&self, face: FaceId) {
        lock(&self.shared.gone).push(face);
        let had_work = self.shared.has_work.swap(true, Ordering::AcqRel);
        if !had_work {
            self.remove_gone_faces_from(MAX_SETS_AT_ONCE);
        }
    }

    /// When [`Routes::continue_removal`] should be called: at once, or a little later if another
    /// thread changes routes.
    pub(crate) fn next_work(&self, now: MonoNs) -> Option<MonoNs> {
        let has_work = self.shared.has_work.load(Ordering::Acquire);
        has_work.then(|| match self.shared.writer.try_lock() {
            Err(TryLockError::WouldBlock) => now.plus_ms(1),
            _ => now,
        })
    }

    /// Goes on with taking faces that have gone out of the FIB.
    pub(crate) fn continue_removal(&self) {
        if self.shared.has_work.load(Ordering::Acquire) {
            self.remove_gone_faces_from(MAX_PER_CALL);
        }
    }

    fn remove_gone_faces_from(&self, max_steps: usize) {
        let Some(mut routes) = self.try_lock() else {
            return;
        };
        let gone = std::mem::take(&mut *lock(&self.shared.gone));
        routes.writer.unrouted.extend(gone);
        routes.writer.remove_gone_faces(max_steps);
    }
}

impl Writer {
    fn has_work(&self) -> bool {
        self.has_dead || !self.unrouted.is_empty()
    }

    fn remove_gone_faces(&mut self, max_steps: usize) {
        let mut n_left = max_steps;
        while n_left > 0
            && let Some(&face) = self.unrouted.last()
        {
            self.has_dead = true;
            n_left -= self.fib.remove_face_from_some(face, n_left).n_sets;
            if n_left > 0 {
                self.unrouted.pop();
            }
        }
        if self.has_dead {
            self.has_dead = self.fib.sweep(max_steps);
        }
    }
}
