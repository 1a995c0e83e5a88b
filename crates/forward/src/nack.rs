//! The way of a Nack: to the upstream it answers for, and on to the
//! downstreams once no upstream is left to answer.

use tachonym_packet::{InterestView, NackReason};
use tachonym_tables::EntryIdx;

use crate::burst::Output;
use crate::counters::DropReason;
use crate::pipelines::{Arrival, Pipelines};
use crate::strategy::{Answer, is_awaited};

impl Pipelines {
    /// A Nack has come; `interest` is the one it returns.
    pub(crate) fn incoming_nack(
        &mut self,
        arrival: &Arrival<'_>,
        reason: NackReason,
        interest: &InterestView<'_>,
        out: &mut impl Output,
    ) {
        self.counters.n_in_nacks += 1;
        if !arrival.traits.is_point_to_point() {
            return self.drop_packet(DropReason::NackLinkType);
        }
        let Some(idx) = self.pit.find(interest, arrival.hashes) else {
            return self.drop_packet(DropReason::NackNotPending);
        };
        let Some(entry) = self.pit.get_mut(idx).filter(|entry| !entry.satisfied) else {
            return self.drop_packet(DropReason::NackNotPending);
        };
        let sent = entry.out_record_mut(arrival.face);
        let Some(record) = sent.filter(|record| interest.nonce() == Some(record.nonce)) else {
            return self.drop_packet(DropReason::NackMismatch);
        };
        record.nack = Some(reason);
        self.tell_strategy(idx, arrival);
        self.pass_nack_on(idx, out);
    }

    fn tell_strategy(&mut self, idx: EntryIdx, arrival: &Arrival<'_>) {
        let Some((instance, state)) = self.strategy_of(idx) else {
            return;
        };
        let Some(entry) = self.pit.get(idx) else {
            return;
        };
        let answer = Answer {
            now: self.now,
            ingress: arrival.face,
            entry,
            state: &state,
        };
        self.strategies.strategy_mut(instance).after_nack(&answer);
    }

    /// Downstreams hear of the least severe reason when every upstream has
    /// nacked. If the only one that has not is itself a downstream, it waits
    /// for this router as this router waits for it, and hears at once.
    fn pass_nack_on(&mut self, idx: EntryIdx, out: &mut impl Output) {
        let Some(entry) = self.pit.get(idx) else {
            return;
        };
        let mut first_awaited = None;
        let mut n_awaited = 0;
        for record in entry.out_records() {
            if is_awaited(record, &self.faces, self.now) {
                n_awaited += 1;
                first_awaited = first_awaited.or(Some(record.face));
            }
        }
        let reason = entry
            .out_records()
            .filter_map(|record| record.nack)
            .min_by_key(|reason| reason.severity())
            .unwrap_or(NackReason::None);
        match (n_awaited, first_awaited) {
            (0, _) => self.reject(idx, reason, out),
            (1, Some(face)) if entry.in_record(face).is_some() => {
                self.reject_one(idx, face, reason, out);
            }
            _ => {}
        }
    }
}
