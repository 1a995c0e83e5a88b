//! Which faces share their limits.
//!
//! Owns the sources of one system's faces: a small index for each, by which the memory
//! of incomplete packets is accounted, and the on-demand faces of each remote address.
//! The number of these faces is limited for the whole router, so systems that are
//! several count them together. A face without a remote peer that made it is a source
//! of its own, and not limited.

use std::sync::Arc;

use hashbrown::HashMap;
use tachonym_packet::{FaceId, MonoNs, SourceId};

use crate::share::{Siblings, SystemShare};
use crate::source::{FaceCounts, SourceIdx};

#[derive(Debug)]
struct Source {
    id: SourceId,
    /// Faces that have the index, those being closed included.
    n_users: usize,
    /// Limited faces of this system.
    faces: Vec<FaceId>,
    /// No face of it could give way when last looked; not looked again before.
    look_again_at: MonoNs,
}

/// The sources of the faces of one system.
pub(crate) struct Sources {
    by_id: HashMap<SourceId, SourceIdx, foldhash::fast::RandomState>,
    slots: Vec<Source>,
    free: Vec<SourceIdx>,
    /// Where the system is alone.
    own_counts: FaceCounts,
    siblings: Option<Arc<Siblings>>,
    /// The source of a face that is counted and about to be made.
    reserved: Option<SourceId>,
}

impl Sources {
    pub(super) fn new(share: &SystemShare) -> Self {
        Self {
            by_id: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            own_counts: FaceCounts::default(),
            siblings: share.siblings().cloned(),
            reserved: None,
        }
    }

    fn change_counts<T>(&mut self, change: impl FnOnce(&mut FaceCounts) -> T) -> T {
        match &self.siblings {
            Some(siblings) => siblings.change_face_counts(change),
            None => change(&mut self.own_counts),
        }
    }

    /// Counts a face of a source before it is made, unless the source has `max` faces.
    /// Checking and counting are one step, so that systems that accept connections at
    /// the same time do not exceed `max` together.
    pub(super) fn reserve(&mut self, id: SourceId, max: usize) -> bool {
        self.release();
        let has_room = self.change_counts(|counts| {
            let has_room = counts.of(id) < max;
            if has_room {
                counts.add(id);
            }
            has_room
        });
        self.reserved = has_room.then_some(id);
        has_room
    }

    /// Gives back what [`Sources::reserve`] counted, if no face was made.
    pub(super) fn release(&mut self) {
        if let Some(id) = self.reserved.take() {
            self.change_counts(|counts| counts.remove(id));
        }
    }

    /// Limited faces of a source in the whole router.
    #[cfg(test)]
    pub(super) fn n_faces(&mut self, id: SourceId) -> usize {
        self.change_counts(|counts| counts.of(id))
    }

    /// A face begins to have a source: that of a remote peer, or its own.
    pub(crate) fn join(&mut self, face: FaceId, shared: Option<SourceId>) -> SourceIdx {
        let id = shared.unwrap_or_else(|| SourceId::of_face(face));
        let idx = match self.by_id.get(&id) {
            Some(&idx) => idx,
            None => self.add(id),
        };
        let source = &mut self.slots[idx.idx()];
        source.n_users += 1;
        if shared.is_some() {
            source.faces.push(face);
            if self.reserved.take_if(|reserved| *reserved == id).is_none() {
                self.change_counts(|counts| counts.add(id));
            }
        }
        idx
    }

    fn add(&mut self, id: SourceId) -> SourceIdx {
        let source = Source {
            id,
            n_users: 0,
            faces: Vec::new(),
            look_again_at: MonoNs::ZERO,
        };
        let idx = match self.free.pop() {
            Some(idx) => {
                self.slots[idx.idx()] = source;
                idx
            }
            None => {
                self.slots.push(source);
                SourceIdx(self.slots.len() as u32 - 1)
            }
        };
        self.by_id.insert(id, idx);
        idx
    }

    /// A face counts no longer to the limit of its source: it is about to go, or is now
    /// one that was asked for.
    pub(super) fn uncount(&mut self, face: FaceId, idx: SourceIdx) {
        let source = &mut self.slots[idx.idx()];
        if let Some(place) = source.faces.iter().position(|id| *id == face) {
            source.faces.swap_remove(place);
            let id = source.id;
            self.change_counts(|counts| counts.remove(id));
        }
    }

    /// A face has its source no longer.
    pub(super) fn leave(&mut self, face: FaceId, idx: SourceIdx) {
        self.uncount(face, idx);
        let source = &mut self.slots[idx.idx()];
        source.n_users -= 1;
        if source.n_users == 0 {
            self.by_id.remove(&source.id);
            self.free.push(idx);
        }
    }

    /// Limited faces of a source in this system.
    pub(super) fn faces_of(&self, id: SourceId) -> &[FaceId] {
        let idx = self.by_id.get(&id);
        idx.map_or(&[], |idx| &self.slots[idx.idx()].faces)
    }

    /// Whether a face of the source may be looked for that could give way.
    pub(super) fn may_look(&self, id: SourceId, now: MonoNs) -> bool {
        let idx = self.by_id.get(&id);
        idx.is_some_and(|idx| self.slots[idx.idx()].look_again_at <= now)
    }

    /// None could: do not look before `at`.
    pub(super) fn look_again(&mut self, id: SourceId, at: MonoNs) {
        if let Some(idx) = self.by_id.get(&id) {
            self.slots[idx.idx()].look_again_at = at;
        }
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        // Systems that go on do not count what is gone.
        self.release();
        for source in std::mem::take(&mut self.slots) {
            for _ in source.faces {
                self.change_counts(|counts| counts.remove(source.id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SourceId = SourceId::of_face(FaceId(1));

    #[test]
    fn indexes_are_used_again_and_counts_come_back_to_nothing() {
        let mut sources = Sources::new(&SystemShare::default());
        let [first, second, own] = [10, 11, 12].map(FaceId);
        let idx = sources.join(first, Some(A));
        assert_eq!(sources.join(second, Some(A)), idx);
        let other = sources.join(own, None);
        assert_ne!(other, idx);
        assert_eq!(sources.n_faces(A), 2);
        assert_eq!(sources.n_faces(SourceId::of_face(own)), 0, "not limited");
        sources.uncount(first, idx);
        assert_eq!(sources.n_faces(A), 1);
        sources.leave(first, idx);
        assert_eq!(
            (sources.n_faces(A), sources.faces_of(A)),
            (1, &[second][..])
        );
        sources.leave(second, idx);
        assert_eq!(sources.n_faces(A), 0);
        assert_eq!(sources.join(first, None), idx, "it is free again");
        assert_eq!(sources.slots.len(), 2);
    }

    #[test]
    fn systems_of_a_router_count_the_faces_of_a_source_together() {
        let shares = SystemShare::split(2);
        let mut both: Vec<_> = shares.iter().map(Sources::new).collect();
        for (n, sources) in both.iter_mut().enumerate() {
            sources.join(FaceId(256 + n as u64), Some(A));
        }
        assert_eq!(both[0].n_faces(A), 2);
        assert_eq!(both[0].faces_of(A).len(), 1);
        both.pop();
        assert_eq!(both[0].n_faces(A), 1, "those of a system that has ended");
    }

    #[test]
    fn systems_that_accept_at_the_same_time_share_one_limit() {
        const MAX: usize = 64;
        let shares = SystemShare::split(4);
        let counts: Vec<_> = std::thread::scope(|scope| {
            let run = |share| {
                let mut sources = Sources::new(share);
                for n in 0..MAX {
                    if sources.reserve(A, MAX) {
                        sources.join(FaceId(n as u64), Some(A));
                    }
                    // A face of another source keeps what was reserved.
                    sources.join(FaceId(1000 + n as u64), None);
                }
                sources
            };
            let threads: Vec<_> = shares
                .iter()
                .map(|it| scope.spawn(move || run(it)))
                .collect();
            threads
                .into_iter()
                .map(|it| it.join().expect("it ends"))
                .collect()
        });
        let n_faces: usize = counts.iter().map(|it| it.faces_of(A).len()).sum();
        assert_eq!(n_faces, MAX);
    }

    #[test]
    fn a_reservation_without_a_face_is_released() {
        let mut sources = Sources::new(&SystemShare::default());
        assert!(sources.reserve(A, 1));
        assert!(
            sources.reserve(A, 1),
            "the former reservation led to no face"
        );
        sources.release();
        assert_eq!(sources.n_faces(A), 0);
        let idx = sources.join(FaceId(9), Some(A));
        assert!(!sources.reserve(A, 1));
        sources.release();
        sources.leave(FaceId(9), idx);
        assert_eq!(sources.n_faces(A), 0);
    }
}
