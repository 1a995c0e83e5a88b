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
use super::{Ask, Departure, Reach, Verdict};

/// Most faces that one discovery goes to: those that were asked for before those
/// that remote peers made, and the oldest first.
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
        plan.extend(ask.eligible_next_hops().map(|hop| along_route(hop.face())));
        if plan.is_empty() && !ask.non_discovery && ask.reach == Reach::Anywhere {
            ask.remarks.leads_back = ask.route.is_some_and(|route| {
                let mut next_hops = route.next_hops().iter();
                next_hops.any(|hop| hop.face() == ask.ingress)
            });
            plan_discovery(ask, plan);
        }
        match (plan.is_empty(), is_pending) {
            (false, true) => {
                ask.state.interval = self.suppression.grown(ask.state.interval);
                Verdict::ForwardPlan
            }
            (false, false) => Verdict::ForwardPlan,
            (true, true) => Verdict::Hold,
            (true, false) => Verdict::Reject,
        }
    }
}

/// Whether `record` is of an Interest that went to everybody.
pub(super) fn is_discovery(record: &OutRecord) -> bool {
    record.strategy_word == DISCOVERY
}

fn plan_discovery(ask: &mut Ask<'_>, plan: &mut Vec<Departure>) {
    // Only the one that the Interest came by may be left out.
    let faces = ask.faces.non_local();
    let mut eligible = faces.filter(|&face| ask.is_eligible(face));
    plan.extend(eligible.by_ref().take(MAX_DISCOVERY_FACES).map(discovery));
    ask.remarks.is_cut = eligible.next().is_some();
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
