//! The way of a Nack: to the upstream it answers for, and on to the
//! downstreams once no upstream is left to answer.

use tachonym_packet::{InterestView, NackReason};
use tachonym_tables::{EntryIdx, PitEntry};

use crate::burst::Output;
use crate::counters::DropReason;
use crate::pipelines::{Arrival, Pipelines, Refusal};
use crate::recent_drops::Dropped;
use crate::sharing::Nacked;
use crate::strategy::Answer;

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
        if let Nacked::Unknown { is_pending } = self.shared_nack(arrival, reason, interest, out) {
            self.drop_unknown_nack(Dropped::nack(arrival.face, interest.name()), is_pending);
        }
    }

    /// A Nack that may answer what another engine has sent.
    pub(crate) fn shared_nack(
        &mut self,
        arrival: &Arrival<'_>,
        reason: NackReason,
        interest: &InterestView<'_>,
        out: &mut impl Output,
    ) -> Nacked {
        if !arrival.traits.is_point_to_point() {
            let dropped = Dropped::nack(arrival.face, interest.name());
            self.drop_packet(DropReason::NackLinkType, dropped);
            return Nacked::Done;
        }
        let exact = self.tables.find_pending(interest, arrival.hashes);
        let Some(idx) = self.find_nacked(exact, arrival, interest) else {
            let is_pending = exact
                .and_then(|idx| self.tables.pit().get(idx))
                .is_some_and(|entry| !entry.satisfied);
            return Nacked::Unknown { is_pending };
        };
        let entry = self.tables.pit_mut().get_mut(idx);
        if let Some(record) = entry.and_then(|entry| entry.out_record_mut(arrival.face)) {
            record.nack = Some(reason);
        }
        self.tell_strategy(idx, arrival, interest);
        self.learn_from_nack(idx, arrival, reason, interest, out);
        self.ask_elsewhere(idx, arrival.fib, out);
        self.pass_nack_on(idx, out);
        Nacked::Done
    }

    /// Drops a Nack that answers nothing that was sent, anywhere; `is_pending` tells whether
    /// an Interest like it is pending.
    pub(crate) fn drop_unknown_nack(&mut self, nack: Dropped<'_>, is_pending: bool) {
        let reason = match is_pending {
            true => DropReason::NackMismatch,
            false => DropReason::NackNotPending,
        };
        self.drop_packet(reason, nack);
    }

    /// The pending entry that a Nack answers: this Interest left to this face,
    /// last with this nonce. An upstream in the producer's region has stripped
    /// the forwarding hint, and may return the Interest without it.
    fn find_nacked(
        &self,
        exact: Option<EntryIdx>,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
    ) -> Option<EntryIdx> {
        let is_nacked = |entry: &PitEntry| {
            let sent = entry.out_record(arrival.face);
            !entry.satisfied && sent.is_some_and(|record| interest.nonce() == Some(record.nonce))
        };
        let exact = exact.filter(|&idx| self.tables.pit().get(idx).is_some_and(is_nacked));
        if exact.is_some() || interest.has_forwarding_hint() {
            return exact;
        }
        self.tables
            .find_pending_with_any_hint(interest, arrival.hashes, is_nacked)
    }

    fn tell_strategy(&mut self, idx: EntryIdx, arrival: &Arrival<'_>, interest: &InterestView<'_>) {
        let Some((instance, state)) = self.strategy_of(idx) else {
            return;
        };
        let Some(entry) = self.tables.pit().get(idx) else {
            return;
        };
        let answer = Answer {
            now: self.now,
            ingress: arrival.face,
            name: interest.name(),
            hashes: arrival.hashes,
            entry,
            state: &state,
        };
        self.strategies.strategy_mut(instance).after_nack(&answer);
    }

    /// Downstreams hear of the least severe reason when every upstream has
    /// nacked; silence is no Nack, however long it lasts. If the only one that
    /// has not is itself a downstream, it waits for this router as this router
    /// waits for it, and hears at once. Some strategies pass none on: then the entry waits for
    /// Data, or a new next hop, until it expires.
    fn pass_nack_on(&mut self, idx: EntryIdx, out: &mut impl Output) {
        let strategy = self.strategy_of(idx);
        let returns_nacks = strategy.is_some_and(|(instance, _)| {
            let strategy = self.strategies.strategy_mut(instance);
            strategy.returns_nacks()
        });
        if !returns_nacks {
            return;
        }
        let Some(entry) = self.tables.pit().get(idx) else {
            return;
        };
        let mut first_silent = None;
        let mut n_silent = 0;
        for record in entry.out_records() {
            if record.nack.is_none() && self.faces.contains(record.face) {
                n_silent += 1;
                first_silent = first_silent.or(Some(record.face));
            }
        }
        let refusal = entry
            .out_records()
            .filter_map(|record| Some(Refusal::by_upstream(record.face, record.nack?)))
            .min_by_key(|refusal| refusal.reason.severity())
            .unwrap_or(Refusal::own(NackReason::None));
        match (n_silent, first_silent) {
            (0, _) => self.reject(idx, refusal, out),
            (1, Some(face)) if entry.in_record(face).is_some() => {
                self.reject_one(idx, face, refusal, out);
            }
            _ => {}
        }
    }
}
