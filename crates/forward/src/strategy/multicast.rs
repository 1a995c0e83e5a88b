//! `multicast`: every next hop, each with its own suppression of
//! retransmissions (NFD Developer's Guide, section 5.3.2; version 5). Downstreams get no Nacks:
//! another next hop may come, and among many a Nack from one of them says little.

use super::suppression::Suppression;
use super::{Ask, Departure, IntervalMs, Verdict};

#[derive(Debug, Default)]
pub(crate) struct Multicast {
    pub(super) suppression: Suppression,
}

impl Multicast {
    pub(super) fn after_interest(&self, ask: &mut Ask<'_>, plan: &mut Vec<Departure>) -> Verdict {
        for hop in ask.eligible_next_hops() {
            let mut departure = Departure::to(hop.face());
            if let Some(record) = ask.entry.out_record(hop.face()) {
                let age = ask.now.saturating_since(record.last_sent);
                if self.suppression.holds_back(IntervalMs::of(record), age) {
                    continue;
                }
                departure.memory = self.suppression.grown(IntervalMs::of(record)).0;
            }
            plan.push(departure);
        }
        if !plan.is_empty() {
            Verdict::ForwardPlan
        } else if ask.is_pending() || ask.eligible_next_hops().next().is_some() {
            Verdict::Hold
        } else {
            Verdict::Strand
        }
    }

    /// Next hops that the Interest has not gone to yet.
    pub(super) fn after_new_next_hops(&self, ask: &Ask<'_>, plan: &mut Vec<Departure>) {
        let unasked = ask
            .eligible_next_hops()
            .filter(|hop| ask.entry.out_record(hop.face()).is_none());
        plan.extend(unasked.map(|hop| Departure::to(hop.face())));
    }
}
