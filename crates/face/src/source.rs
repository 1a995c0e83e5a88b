//! What faces that share their limits are known by, and how many faces each remote source has.

use hashbrown::HashMap;
use tachonym_packet::SourceId;

/// Index of a source in its system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceIdx(pub(crate) u32);

impl SourceIdx {
    pub(crate) const fn idx(self) -> usize {
        self.0 as usize
    }
}

/// Faces by remote source, of one system or of all that share a router.
#[derive(Debug, Default)]
pub(crate) struct FaceCounts(HashMap<SourceId, usize, foldhash::fast::RandomState>);

impl FaceCounts {
    pub(crate) fn of(&self, id: SourceId) -> usize {
        self.0.get(&id).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, id: SourceId) {
        *self.0.entry(id).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, id: SourceId) {
        if let Some(n_faces) = self.0.get_mut(&id) {
            *n_faces -= 1;
            if *n_faces == 0 {
                self.0.remove(&id);
            }
        }
    }
}
