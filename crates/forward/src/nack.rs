//! The way of a Nack: to the upstream it answers for, and on to the
//! downstreams once no upstream is left to answer.

use tachonym_packet::{InterestView, NackReason};
use tachonym_tables::{EntryIdx, PitEntry};

use crate::burst::Output;
use crate::counters::DropReason;
use crate::learning::learn_from_nack;
use crate::outgoing::{Refusal, reject, reject_one};
use crate::pending::strategy_of;
use crate::recent_drops::Dropped;
use crate::retry::{Occasion, retry};
use crate::state::{Arrival, Core, State, Tables, World};
use crate::strategy::Answer;

/// What became of a Nack at an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nacked {
    /// It has met the Interest that it answers, or is dropped and counted.
    Done,
    /// It answers nothing that was sent from here; nothing is counted.
    Unknown {
        /// Whether an Interest like the one that it returns is pending here.
        is_pending: bool,
    },
}

/// A Nack has come; `interest` is the one it returns.
pub(crate) fn incoming_nack(
    state: &mut State,
    arrival: &Arrival<'_>,
    reason: NackReason,
    interest: &InterestView<'_>,
    out: &mut impl Output,
) {
    let core = &mut state.core;
    core.world.counters.n_in_nacks += 1;
    if let Nacked::Unknown { is_pending } = apply_nack(core, arrival, reason, interest, out) {
        let dropped = Dropped::nack(arrival.face, interest.name());
        drop_unknown_nack(&mut core.world, dropped, is_pending);
    }
}

/// Has a Nack meet the entry that it answers, if the Interest was sent from this engine.
pub(crate) fn apply_nack(
    core: &mut Core,
    arrival: &Arrival<'_>,
    reason: NackReason,
    interest: &InterestView<'_>,
    out: &mut impl Output,
) -> Nacked {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    if !arrival.traits.is_point_to_point() {
        let dropped = Dropped::nack(arrival.face, interest.name());
        world.drop_packet(DropReason::NackLinkType, dropped);
        return Nacked::Done;
    }
    let exact = tables.pit_cs.find_pending(interest, arrival.hashes);
    let nacked = find_nacked(tables, exact, arrival, interest);
    let Some(idx) = nacked else {
        let is_pending = exact.is_some_and(|idx| !tables.pit_cs.matched(idx).satisfied);
        return Nacked::Unknown { is_pending };
    };
    let mut entry = tables.pit_cs.matched(idx);
    if let Some(record) = entry.out_record_mut(arrival.face) {
        record.nack = Some(reason);
    }
    let (instance, state) = strategy_of(&mut entry, world, &mut scratch.name_hashes);
    let answer = Answer {
        now: world.now,
        ingress: arrival.face,
        name: interest.name(),
        hashes: arrival.hashes,
        entry: &entry,
        state: &state,
    };
    let strategy = world.strategies.strategy_mut(instance);
    strategy.after_nack(&answer);
    let returns_nacks = strategy.returns_nacks();
    learn_from_nack(strategy, &entry, arrival, reason, interest, out);
    retry(core, arrival.fib, idx, Occasion::Silence, out);
    // Some strategies pass no Nack on: then the entry waits for Data, or a new next hop.
    if returns_nacks {
        pass_nack_on(core, idx, out);
    }
    Nacked::Done
}

/// Drops a Nack that answers nothing that was sent from any engine; `is_pending` says
/// whether an Interest like the one it returns is pending.
pub(crate) fn drop_unknown_nack(world: &mut World, nack: Dropped<'_>, is_pending: bool) {
    let reason = if is_pending {
        DropReason::NackMismatch
    } else {
        DropReason::NackNotPending
    };
    world.drop_packet(reason, nack);
}

/// The pending entry that a Nack answers: this Interest left to this face,
/// last with this nonce. An upstream in the producer's region has stripped
/// the forwarding hint, and may return the Interest without it.
fn find_nacked(
    tables: &Tables,
    exact: Option<EntryIdx>,
    arrival: &Arrival<'_>,
    interest: &InterestView<'_>,
) -> Option<EntryIdx> {
    let is_nacked = |entry: &PitEntry| {
        let sent = entry.out_record(arrival.face);
        !entry.satisfied && sent.is_some_and(|record| interest.nonce() == Some(record.nonce))
    };
    let pit = tables.pit_cs.pit();
    let exact = exact.filter(|&idx| is_nacked(pit.matched(idx)));
    if exact.is_some() || interest.has_forwarding_hint() {
        return exact;
    }
    tables
        .pit_cs
        .find_pending_with_any_hint(interest, arrival.hashes, is_nacked)
}

/// Sends downstreams the least severe reason once every upstream has nacked; silence is no
/// Nack, however long it lasts. If the only silent upstream is itself a downstream, it waits
/// for this router as this router waits for it, and gets its Nack at once.
fn pass_nack_on(core: &mut Core, idx: EntryIdx, out: &mut impl Output) {
    let entry = core.tables.pit_cs.pit().matched(idx);
    let mut first_silent = None;
    let mut n_silent = 0;
    for record in entry.out_records() {
        if record.nack.is_none() && core.world.faces.contains(record.face) {
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
        (0, _) => reject(core, idx, refusal, out),
        (1, Some(face)) if entry.in_record(face).is_some() => {
            reject_one(core, idx, face, refusal, out);
        }
        _ => {}
    }
}
