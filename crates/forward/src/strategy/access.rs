//! `access`: for routers at the edge, whose next hops are the hosts that
//! consumers and producers run on, over links that lose packets (NFD
//! Developer's Guide, "Access Strategy"; version 1).
//!
//! An Interest goes to the next hop that has last brought Data under its prefix.
//! If none has, or it nacks, or says nothing for as long as its round-trip times
//! let one expect (RFC 6298), the Interest goes to all the others, as
//! retransmissions do from the start.

use std::time::Duration;

use tachonym_packet::FaceId;
use tachonym_tables::{MAX_PREFIX_COMPONENTS, NextHop};

use super::measurements::Measurements;
use super::rtt::RttEstimator;
use super::{Answer, Ask, Departure, Verdict};

/// A retransmission sooner than this after the last transmission stays.
const MIN_RETX_INTERVAL: Duration = Duration::from_millis(100);

/// Prefixes whose last working next hop one instance knows.
const MAX_NAMESPACES: usize = 65_536;

/// How long it is known without Data.
const LIFETIME: Duration = Duration::from_secs(8);

/// Faces with an estimate of their own; see [`FaceRtts`].
const N_FACE_RTTS: usize = 1_024;

#[derive(Debug)]
pub(crate) struct Access {
    /// By the parents of the names of Data.
    last_hops: Measurements<LastHop>,
    faces: FaceRtts,
}

/// What has last worked for a prefix.
#[derive(Debug, Default)]
struct LastHop {
    /// `None` before the first Data.
    face: Option<FaceId>,
    rtt: RttEstimator,
}

/// Round-trip times by face, whatever the name: where a prefix begins that the
/// face has not served yet. Two faces may fall on one place, and then the later
/// one has it: that costs an estimate, and the table never grows.
#[derive(Debug, Default)]
struct FaceRtts {
    places: Vec<(FaceId, RttEstimator)>,
}

impl Access {
    pub(super) fn new() -> Self {
        Self {
            last_hops: Measurements::new(MAX_NAMESPACES, LIFETIME),
            faces: FaceRtts::default(),
        }
    }

    pub(super) fn n_measurements(&self) -> usize {
        self.last_hops.len()
    }

    pub(super) fn after_interest(&self, ask: &mut Ask<'_>, plan: &mut Vec<Departure>) -> Verdict {
        if ask.is_pending() {
            if ask.age_of_last_transmission() >= MIN_RETX_INTERVAL {
                plan.extend(others(ask).map(|hop| Departure::to(hop.face())));
            }
            return if plan.is_empty() {
                Verdict::Hold
            } else {
                Verdict::ForwardPlan
            };
        }
        match self.last_hop(ask) {
            Some(departure) => plan.push(departure),
            None => plan.extend(others(ask).map(|hop| Departure::to(hop.face()))),
        }
        if plan.is_empty() {
            Verdict::Reject
        } else {
            Verdict::ForwardPlan
        }
    }

    /// The next hop that worked last, if it still is one.
    fn last_hop(&self, ask: &Ask<'_>) -> Option<Departure> {
        let known = self
            .last_hops
            .find_longest(ask.entry.name(), ask.hashes, ask.now)?;
        let face = known.face?;
        others(ask).find(|hop| hop.face() == face)?;
        Some(Departure {
            timeout: Some(known.rtt.rto()),
            ..Departure::to(face)
        })
    }

    /// The next hop that was asked first has failed: all that have not been
    /// asked yet.
    pub(super) fn after_silence(&self, ask: &Ask<'_>, plan: &mut Vec<Departure>) {
        let unasked = others(ask).filter(|hop| !ask.is_used(hop.face()));
        plan.extend(unasked.map(|hop| Departure::to(hop.face())));
    }

    pub(super) fn before_satisfy(&mut self, answer: &Answer<'_>) {
        let Some(record) = answer.entry.out_record(answer.ingress) else {
            return;
        };
        if answer.entry.satisfied {
            return;
        }
        let rtt = answer.now.saturating_since(record.last_sent);
        let of_face = self.faces.add(answer.ingress, rtt);
        let length = answer.name.len().saturating_sub(1);
        let length = length.min(MAX_PREFIX_COMPONENTS);
        let prefix = answer.name.prefix(length);
        let place = self
            .last_hops
            .find_or_insert(prefix, answer.hashes[length], answer.now);
        let known = self
            .last_hops
            .get_mut(place)
            .expect("the namespace was found or inserted just now");
        if known.face == Some(answer.ingress) {
            known.rtt.add(rtt);
        } else {
            known.face = Some(answer.ingress);
            known.rtt = of_face;
        }
    }
}

/// Next hops but the downstream, even where the link is ad hoc.
fn others(ask: &Ask<'_>) -> impl Iterator<Item = NextHop> {
    ask.eligible_next_hops()
        .filter(|hop| hop.face() != ask.ingress)
}

impl FaceRtts {
    /// Adds a sample; returns the estimate with it.
    fn add(&mut self, face: FaceId, rtt: Duration) -> RttEstimator {
        if self.places.is_empty() {
            let vacant = (face, RttEstimator::default());
            self.places.resize(N_FACE_RTTS, vacant);
        }
        // The remainder fits a usize, since the divisor came from one.
        let place = &mut self.places[(face.0 % N_FACE_RTTS as u64) as usize];
        if place.0 != face {
            *place = (face, RttEstimator::default());
        }
        place.1.add(rtt);
        place.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_on_one_place_do_not_mix_their_round_trip_times() {
        let mut faces = FaceRtts::default();
        let one = faces.add(FaceId(256), Duration::from_millis(400));
        let same = faces.add(FaceId(256), Duration::from_millis(400));
        assert!(same.rto() < one.rto());
        let other = faces.add(FaceId(256 + N_FACE_RTTS as u64), Duration::from_secs(9));
        assert_eq!(other.srtt_ns(), 9_000_000_000);
        assert_eq!(faces.add(FaceId(256), Duration::from_millis(400)), one);
        assert_eq!(faces.places.len(), N_FACE_RTTS);
    }
}
