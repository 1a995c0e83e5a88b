//! `self-learning`: finds producers by asking everybody, and then keeps to the
//! path that answered (Shi, Newberry, Zhang 2017, "On Broadcast-based
//! Self-Learning in Named Data Networking"; version 1 of NFD's).
//!
//! An Interest without a route is a discovery: it goes to every face that leads
//! off this host. The Data that comes back brings an announcement of its
//! producer's prefix, from which the manager makes a route to the face it came
//! by. An Interest with a route goes to its next hops, marked NonDiscovery: a
//! router that has no route for such a one says so by a Nack instead of asking
//! everybody, and the learnt route is forgotten.

use tachonym_packet::FaceId;
use tachonym_tables::OutRecord;

use super::suppression::Suppression;
use super::{Ask, Departure, Verdict};

/// Most faces that one discovery goes to, the oldest first: those that were
/// configured come before those that strangers made.
const MAX_DISCOVERY_FACES: usize = 256;

/// What the out-record of a discovery remembers.
const DISCOVERY: u32 = 1;

#[derive(Debug, Default)]
pub(crate) struct SelfLearning {
    suppression: Suppression,
}

impl SelfLearning {
    pub(super) fn after_interest(&self, ask: &mut Ask<'_>, plan: &mut Vec<Departure>) -> Verdict {
        let is_pending = ask.is_pending();
        if is_pending {
            let age = ask.age_of_last_transmission();
            if self.suppression.holds_back(ask.state.interval, age) {
                return Verdict::Hold;
            }
        }
        if ask.route.is_some() {
            plan.extend(ask.eligible_next_hops().map(|hop| along_route(hop.face)));
        } else if !ask.non_discovery {
            plan.extend(discovered_by(ask).map(discovery));
        }
        match (plan.is_empty(), is_pending) {
            (false, true) => {
                ask.state.interval = self.suppression.grown(ask.state.interval);
                Verdict::Forward
            }
            (false, false) => Verdict::Forward,
            (true, true) => Verdict::Hold,
            (true, false) => Verdict::Reject,
        }
    }
}

/// Whether `record` is of an Interest that went to everybody.
pub(super) fn is_discovery(record: &OutRecord) -> bool {
    record.strategy_word == DISCOVERY
}

fn discovered_by(ask: &Ask<'_>) -> impl Iterator<Item = FaceId> {
    let faces = ask.faces.non_local();
    let eligible = faces.filter(|&face| ask.is_eligible(face));
    eligible.take(MAX_DISCOVERY_FACES)
}

fn discovery(face: FaceId) -> Departure {
    Departure {
        memory: DISCOVERY,
        ..Departure::to(face)
    }
}

fn along_route(face: FaceId) -> Departure {
    Departure {
        non_discovery: true,
        ..Departure::to(face)
    }
}
