//! Round-trip times per route and next hop, as the `asf` strategy needs them.
//!
//! Bounded in routes and in faces per route; a full table replaces routes that
//! have not been used for long. Nothing here needs a timer: what should have
//! happened at some time happens when somebody looks after it.

use std::time::Duration;

use hashbrown::HashTable;
use tachonym_packet::lp::FaceId;
use tachonym_packet::{MonoNs, Name, NameHash, NameView};

/// Faces measured per route; next hops beyond stay unmeasured.
const MAX_FACES_PER_NAMESPACE: usize = 32;

/// Slots looked at for an expired one before a live one is replaced.
const CLOCK_STEPS: usize = 8;

const INITIAL_RTO: Duration = Duration::from_secs(1);
const MIN_RTO: Duration = Duration::from_millis(200);
const MAX_RTO: Duration = Duration::from_secs(60);

/// Where a namespace was; checked on use, since slots are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamespaceRef {
    pub(crate) slot: u32,
    /// 0: nowhere.
    pub(crate) generation: u32,
}

/// What the last exchange with a next hop told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Unmeasured,
    Working,
    TimedOut,
}

/// Mean-deviation estimator of round-trip times (RFC 6298, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RttEstimator {
    srtt_ns: u64,
    rttvar_ns: u64,
    has_samples: bool,
}

impl RttEstimator {
    fn add(&mut self, rtt: Duration) {
        let rtt_ns = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX / 8);
        let rtt_ns = rtt_ns.min(u64::MAX / 8);
        if self.has_samples {
            let error_ns = self.srtt_ns.abs_diff(rtt_ns);
            self.rttvar_ns = (3 * self.rttvar_ns) / 4 + error_ns / 4;
            self.srtt_ns = self.srtt_ns / 8 * 7 + rtt_ns / 8;
        } else {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
            self.has_samples = true;
        }
    }

    /// How long to wait for an answer before taking it for lost.
    fn rto(&self) -> Duration {
        if !self.has_samples {
            return INITIAL_RTO;
        }
        let rto_ns = self
            .srtt_ns
            .saturating_add(self.rttvar_ns.saturating_mul(4));
        Duration::from_nanos(rto_ns).clamp(MIN_RTO, MAX_RTO)
    }
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
#[derive(Debug)]
pub(super) struct Namespace {
    prefix: Name,
    hash: NameHash,
    generation: u32,
    expiry: MonoNs,
    faces: Vec<FaceInfo>,
    /// When the next probe is due; `None` before the first was planned.
    pub(super) probe_at: Option<MonoNs>,
}

/// Limits and life times of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) max_namespaces: usize,
    pub(super) max_timeouts: u32,
    pub(super) lifetime: Duration,
}

/// The routes.
#[derive(Debug)]
pub(super) struct Measurements {
    slots: Vec<Namespace>,
    by_hash: HashTable<u32>,
    clock_hand: usize,
    next_generation: u32,
    limits: Limits,
}

impl Measurements {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            slots: Vec::new(),
            by_hash: HashTable::new(),
            clock_hand: 0,
            next_generation: 1,
            limits,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The namespace of `prefix`, made if it is not there, its life extended.
    pub(super) fn find_or_insert(
        &mut self,
        prefix: NameView<'_>,
        hash: NameHash,
        now: MonoNs,
    ) -> NamespaceRef {
        let slots = &self.slots;
        let found = self.by_hash.find(hash.0, |&slot| {
            let namespace = &slots[slot as usize];
            namespace.hash == hash && namespace.prefix.view() == prefix
        });
        let slot = match found {
            Some(&slot) => slot,
            None => self.insert(prefix, hash, now),
        };
        let lifetime = self.limits.lifetime;
        let namespace = &mut self.slots[slot as usize];
        if namespace.expiry <= now {
            namespace.faces.clear();
            namespace.probe_at = None;
        }
        namespace.expiry = now + lifetime;
        NamespaceRef {
            slot,
            generation: namespace.generation,
        }
    }

    /// The namespace at `place`, if it is still the same one.
    pub(super) fn get_mut(&mut self, place: NamespaceRef) -> Option<&mut Namespace> {
        self.slots
            .get_mut(place.slot as usize)
            .filter(|namespace| namespace.generation == place.generation)
    }

    fn insert(&mut self, prefix: NameView<'_>, hash: NameHash, now: MonoNs) -> u32 {
        let generation = self.next_generation;
        // 0 stands for nowhere.
        self.next_generation = generation.wrapping_add(1).max(1);
        let namespace = Namespace {
            prefix: prefix.to_name(),
            hash,
            generation,
            expiry: now + self.limits.lifetime,
            faces: Vec::new(),
            probe_at: None,
        };
        let slot = if self.slots.len() < self.limits.max_namespaces {
            self.slots.push(namespace);
            self.slots.len() - 1
        } else {
            let victim = self.pick_victim(now);
            let old_hash = self.slots[victim].hash;
            if let Ok(entry) = self
                .by_hash
                .find_entry(old_hash.0, |&slot| slot as usize == victim)
            {
                entry.remove();
            }
            self.slots[victim] = namespace;
            victim
        };
        let slot = u32::try_from(slot).expect("max_namespaces fits a u32");
        let slots = &self.slots;
        self.by_hash
            .insert_unique(hash.0, slot, |&slot| slots[slot as usize].hash.0);
        slot
    }

    /// An expired slot if one is near the hand, else the one at the hand.
    fn pick_victim(&mut self, now: MonoNs) -> usize {
        let n_slots = self.slots.len();
        let start = self.clock_hand;
        let victim = (0..CLOCK_STEPS)
            .map(|step| (start + step) % n_slots)
            .find(|&slot| self.slots[slot].expiry <= now)
            .unwrap_or(start % n_slots);
        self.clock_hand = (victim + 1) % n_slots;
        victim
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }
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
            Some(info) => (info.health, info.rtt.srtt_ns),
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

    /// Takes note of a time-out that has passed since anybody looked.
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

    fn name(n: u64) -> Name {
        format!("/n/{n}").parse().unwrap()
    }

    #[test]
    fn rto_follows_the_mean_deviation() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(), INITIAL_RTO);
        rtt.add(Duration::from_millis(400));
        // SRTT 400 ms, RTTVAR 200 ms.
        assert_eq!(rtt.rto(), Duration::from_millis(1200));
        rtt.add(Duration::from_millis(400));
        assert_eq!(rtt.rto(), Duration::from_millis(1000));
        for _ in 0..200 {
            rtt.add(Duration::from_millis(1));
        }
        assert_eq!(rtt.rto(), MIN_RTO);
        rtt.add(Duration::MAX);
        assert_eq!(rtt.rto(), MAX_RTO);
    }

    #[test]
    fn full_table_replaces_and_stale_references_find_nothing() {
        let mut table = Measurements::new(LIMITS);
        let first = table.find_or_insert(name(0).view(), NameHash(0), MonoNs(0));
        // All the same hash: told apart by their names.
        for n in 1..20 {
            table.find_or_insert(name(n).view(), NameHash(0), MonoNs(n));
            assert!(table.len() <= LIMITS.max_namespaces);
        }
        assert!(table.get_mut(first).is_none());
        let last = table.find_or_insert(name(19).view(), NameHash(0), MonoNs(20));
        assert_eq!(table.get_mut(last).unwrap().prefix, name(19));
    }

    #[test]
    fn third_timeout_in_a_row_marks_a_face_and_data_clears_it() {
        let mut table = Measurements::new(LIMITS);
        let place = table.find_or_insert(name(0).view(), NameHash(0), MonoNs(0));
        let namespace = table.get_mut(place).unwrap();
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
            now = now + INITIAL_RTO;
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
        let mut table = Measurements::new(LIMITS);
        let place = table.find_or_insert(name(0).view(), NameHash(0), MonoNs(0));
        let namespace = table.get_mut(place).unwrap();
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
