//! `random`: any eligible next hop, each as likely as the others, for every
//! Interest (version 1).

use super::{Ask, Departure, Verdict};

#[derive(Debug, Default)]
pub(crate) struct Random;

impl Random {
    pub(super) fn after_interest(&self, ask: &mut Ask<'_>) -> Verdict {
        let n_eligible = ask.eligible_next_hops().count();
        // A usize fits a u64 wherever Rust runs; the pick is below it.
        let pick = ask.rng.below(n_eligible as u64) as usize;
        match ask.eligible_next_hops().nth(pick) {
            Some(hop) => Verdict::Forward(Departure::to(hop.face())),
            None => Verdict::Reject,
        }
    }
}
