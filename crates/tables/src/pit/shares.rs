//! What each face holds of the PIT.
//!
//! Owns one sum per face that waits for anything: how many entries it waits at,
//! and their bytes. An entry with several downstreams counts for each. The rule
//! that follows from them is the PIT's.

use hashbrown::HashMap;
use tachonym_packet::FaceId;

/// What one face holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) n_entries: usize,
    pub(super) n_bytes: usize,
}

/// Shares of the faces that hold any.
#[derive(Debug, Default)]
pub(super) struct Shares {
    by_face: HashMap<FaceId, Share, foldhash::fast::FixedState>,
}

impl Shares {
    /// Adds an entry of `n_bytes` to the share of `face`, if `allows` it with
    /// what the face holds already. False if not.
    #[inline]
    pub(super) fn add(
        &mut self,
        face: FaceId,
        n_bytes: usize,
        allows: impl FnOnce(Share) -> bool,
    ) -> bool {
        let held = self.by_face.get_mut(&face);
        if !allows(held.as_deref().copied().unwrap_or_default()) {
            return false;
        }
        match held {
            Some(share) => {
                share.n_entries += 1;
                share.n_bytes += n_bytes;
            }
            None => self.add_first(face, n_bytes),
        }
        true
    }

    /// Adds the first entry that `face` waits at.
    #[inline(never)]
    fn add_first(&mut self, face: FaceId, n_bytes: usize) {
        let share = Share {
            n_entries: 1,
            n_bytes,
        };
        self.by_face.insert(face, share);
    }

    /// An entry that `face` waits at has grown by `n_bytes`.
    pub(super) fn grow(&mut self, face: FaceId, n_bytes: usize) {
        if let Some(share) = self.by_face.get_mut(&face) {
            share.n_bytes += n_bytes;
        }
    }

    /// Takes back a [`Shares::add`] that was allowed.
    #[inline]
    pub(super) fn remove(&mut self, face: FaceId, n_bytes: usize) {
        if let Some(share) = self.by_face.get_mut(&face) {
            share.n_entries -= 1;
            share.n_bytes -= n_bytes;
            if share.n_entries == 0 {
                self.by_face.remove(&face);
            }
        }
    }

    pub(super) fn get(&self, face: FaceId) -> Share {
        self.by_face.get(&face).copied().unwrap_or_default()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.by_face.allocation_size()
    }
}
