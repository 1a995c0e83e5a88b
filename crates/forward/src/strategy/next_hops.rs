//! What the `asf` strategy knows of the next hops of one route.
//!
//! Bounded in faces. Nothing here needs a timer: what should have happened at
//! some time happens when the next packet asks.

use std::time::Duration;

use tachonym_packet::lp::FaceId;
use tachonym_packet::{MonoNs, NameHash};

use super::rtt::RttEstimator;

/// Faces measured per route; next hops beyond stay unmeasured.
const MAX_FACES_PER_NAMESPACE: usize = 32;

/// What the last exchange with a next hop told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Unmeasured,
    Working,
    TimedOut,
}

/// One next hop of a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaceInfo {
    face: FaceId,
    pub(super) health: Health,
    rtt: RttEstimator,
    n_timeouts: u32,
    /// Forgotten at this time.
    expiry: MonoNs,
    /// The Interest whose answer is being waited for, and until when.
    awaited: Option<(NameHash, MonoNs)>,
}

/// One route.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    faces: Vec<FaceInfo>,
    /// When the next probe is due; `None` before the first was planned.
    pub(super) probe_at: Option<MonoNs>,
}

/// Limits and life times of what `asf` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) max_namespaces: usize,
    pub(super) max_timeouts: u32,
    pub(super) lifetime: Duration,
}

impl Namespace {
    /// What is known of `face` now; `None` for nothing.
    pub(super) fn face_mut(
        &mut self,
        face: FaceId,
        now: MonoNs,
        limits: Limits,
    ) -> Option<&mut FaceInfo> {
        let info = self.faces.iter_mut().find(|info| info.face == face)?;
        info.settle(now, limits);
        (info.expiry > now).then_some(info)
    }

    /// Like [`Self::face_mut`], but an unknown face becomes known. `None` if
    /// there are too many.
    pub(super) fn face_or_insert(
        &mut self,
        face: FaceId,
        now: MonoNs,
        limits: Limits,
    ) -> Option<&mut FaceInfo> {
        if self.face_mut(face, now, limits).is_none() {
            self.faces
                .retain(|info| info.face != face && info.expiry > now);
            if self.faces.len() >= MAX_FACES_PER_NAMESPACE {
                return None;
            }
            self.faces.push(FaceInfo {
                face,
                health: Health::Unmeasured,
                rtt: RttEstimator::default(),
                n_timeouts: 0,
                expiry: now + limits.lifetime,
                awaited: None,
            });
        }
        self.faces.iter_mut().find(|info| info.face == face)
    }

    /// Health and smoothed round-trip time of `face`; the time is only
    /// meaningful for a working one.
    pub(super) fn rank(&mut self, face: FaceId, now: MonoNs, limits: Limits) -> (Health, u64) {
        match self.face_mut(face, now, limits) {
            Some(info) => (info.health, info.rtt.srtt_ns()),
            None => (Health::Unmeasured, 0),
        }
    }
}

impl FaceInfo {
    /// An Interest named by `name_hash` has left by this face.
    pub(super) fn note_departure(&mut self, name_hash: NameHash, now: MonoNs, limits: Limits) {
        self.expiry = now + limits.lifetime;
        if self.awaited.is_none() {
            self.awaited = Some((name_hash, now + self.rtt.rto()));
        }
    }

    /// The Data for `name_hash` has come, `rtt` after the Interest left if
    /// that is known.
    pub(super) fn note_data(
        &mut self,
        name_hash: NameHash,
        rtt: Option<Duration>,
        now: MonoNs,
        limits: Limits,
    ) {
        if let Some(rtt) = rtt {
            self.rtt.add(rtt);
            self.health = Health::Working;
        }
        self.expiry = now + limits.lifetime;
        self.n_timeouts = 0;
        self.stop_waiting_for(name_hash);
    }

    /// The upstream has refused the Interest named by `name_hash`.
    pub(super) fn note_nack(&mut self, name_hash: NameHash) {
        self.health = Health::TimedOut;
        self.n_timeouts = 0;
        self.stop_waiting_for(name_hash);
    }

    fn stop_waiting_for(&mut self, name_hash: NameHash) {
        if self.awaited.is_some_and(|(hash, _)| hash == name_hash) {
            self.awaited = None;
        }
    }

    /// Takes note of a time-out that has passed since the last look.
    fn settle(&mut self, now: MonoNs, limits: Limits) {
        let Some((_, timeout_at)) = self.awaited else {
            return;
        };
        if timeout_at > now {
            return;
        }
        self.awaited = None;
        self.n_timeouts += 1;
        if self.n_timeouts < limits.max_timeouts {
            self.expiry = self.expiry.max(timeout_at + limits.lifetime);
        } else {
            self.health = Health::TimedOut;
            self.n_timeouts = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        max_namespaces: 4,
        max_timeouts: 3,
        lifetime: Duration::from_secs(300),
    };

    #[test]
    fn third_timeout_in_a_row_marks_a_face_and_data_clears_it() {
        let mut namespace = Namespace::default();
        let face = FaceId(256);
        let mut now = MonoNs(0);
        for n in 0..3 {
            assert_eq!(
                namespace.rank(face, now, LIMITS).0,
                Health::Unmeasured,
                "{n}"
            );
            namespace
                .face_or_insert(face, now, LIMITS)
                .unwrap()
                .note_departure(NameHash(n), now, LIMITS);
            now = now + RttEstimator::default().rto();
        }
        assert_eq!(namespace.rank(face, now, LIMITS).0, Health::TimedOut);
        namespace.face_mut(face, now, LIMITS).unwrap().note_data(
            NameHash(9),
            Some(Duration::from_millis(5)),
            now,
            LIMITS,
        );
        assert_eq!(
            namespace.rank(face, now, LIMITS),
            (Health::Working, 5_000_000)
        );
    }

    #[test]
    fn faces_of_a_namespace_are_bounded() {
        let mut namespace = Namespace::default();
        for id in 0..100 {
            namespace.face_or_insert(FaceId(256 + id), MonoNs(0), LIMITS);
        }
        assert_eq!(namespace.faces.len(), MAX_FACES_PER_NAMESPACE);
        // The old ones make room once they are forgotten.
        let later = MonoNs(0) + LIMITS.lifetime;
        assert!(
            namespace
                .face_or_insert(FaceId(999), later, LIMITS)
                .is_some()
        );
        assert_eq!(namespace.faces.len(), 1);
    }
}
