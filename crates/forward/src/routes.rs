//! The FIB as its owner changes it: prefixes with their next hops, and faces that go.
//!
//! Owns the one who writes the FIB. A face that goes leaves its routes in bounded steps,
//! since it may have very many; from the moment it is gone nothing is sent to it anyway.

use tachonym_memory::MemoryError;
use tachonym_packet::{FaceId, HashKey};
use tachonym_tables::{Fib, FibConfig, FibReader};

/// Most different sets of next hops that a face is taken out of when it goes rather than
/// in a later call: many faces may go at once.
const MAX_SETS_AT_ONCE: usize = 64;

/// Most in a later call, and most prefixes without next hops that it frees; they take
/// less than a millisecond.
const MAX_PER_CALL: usize = 1024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) fib: Fib,
    /// Faces that have gone and are still next hops.
    unrouted: Vec<FaceId>,
    /// Whether some prefixes have lost their last next hop and are not freed yet.
    has_dead: bool,
    highest_face: FaceId,
}

impl Routes {
    pub(crate) fn new(config: FibConfig, key: HashKey) -> Result<Self, MemoryError> {
        Ok(Self {
            fib: Fib::new(config, key)?,
            unrouted: Vec::new(),
            has_dead: false,
            highest_face: FaceId::default(),
        })
    }

    pub(crate) fn reader(&self) -> FibReader {
        self.fib.reader()
    }

    /// A face is new. If its number was another's before, what led there must not lead
    /// to it.
    pub(crate) fn note_new_face(&mut self, face: FaceId) {
        if face > self.highest_face {
            self.highest_face = face;
        } else if self.unrouted.contains(&face) {
            self.unrouted.retain(|&gone| gone != face);
            self.fib.remove_face(face);
            self.has_dead = true;
        }
    }

    /// A face has gone; most have few routes, and lose them at once.
    pub(crate) fn note_gone_face(&mut self, face: FaceId) {
        self.unrouted.push(face);
        if self.unrouted.len() == 1 {
            self.unroute(MAX_SETS_AT_ONCE);
        }
    }

    /// Whether [`Routes::go_on`] has something to do.
    pub(crate) fn has_work(&self) -> bool {
        self.has_dead || !self.unrouted.is_empty()
    }

    /// Goes on with taking faces that have gone out of the FIB.
    pub(crate) fn go_on(&mut self) {
        if !self.unrouted.is_empty() {
            self.unroute(MAX_PER_CALL);
        }
        if self.has_dead {
            self.has_dead = self.fib.sweep(MAX_PER_CALL);
        }
    }

    fn unroute(&mut self, max_sets: usize) {
        let mut n_left = max_sets;
        while let Some(&face) = self.unrouted.last() {
            self.has_dead = true;
            n_left -= self.fib.remove_face_from_some(face, n_left).n_sets;
            if n_left == 0 {
                return;
            }
            self.unrouted.pop();
        }
    }
}
