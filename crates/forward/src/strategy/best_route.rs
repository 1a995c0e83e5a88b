//! `best-route`: the cheapest next hop, and another one each time the
//! consumer asks again (NFD Developer's Guide, section 5.3.1; version 5).

use super::suppression::Suppression;
use super::{Ask, Departure, Verdict};

#[derive(Debug, Default)]
pub(crate) struct BestRoute {
    pub(super) suppression: Suppression,
}

impl BestRoute {
    pub(super) fn after_interest(&self, ask: &mut Ask<'_>) -> Verdict {
        let face = if !ask.is_pending() {
            let Some(cheapest) = ask.eligible_next_hops().next() else {
                return Verdict::Reject;
            };
            cheapest.face()
        } else {
            let age = ask.age_of_last_transmission();
            if self.suppression.holds_back(ask.state.interval, age) {
                return Verdict::Hold;
            }
            ask.state.interval = self.suppression.grown(ask.state.interval);
            match ask.first_unused().or_else(|| ask.used_longest_ago()) {
                Some(face) => face,
                None => return Verdict::Hold,
            }
        };
        Verdict::Forward(Departure::to(face))
    }
}
