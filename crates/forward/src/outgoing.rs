//! What leaves a pending entry: Interests upstream, Nacks downstream.

use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, InterestRewrite, InterestView, NackReason, Nonce, PitToken};
use tachonym_tables::{EntryIdx, InRecord, Inserted, OutRecord, PitEntry};

use crate::block::Block;
use crate::burst::Output;
use crate::counters::DropReason;
use crate::faces::{FaceTable, FaceTraits};
use crate::learning::learn_from_interest;
use crate::pending::{end, state_for, variant_of};
use crate::recent_drops::Dropped;
use crate::route::{RouteLookup, reach_of};
use crate::state::{Arrival, Core, NON_DISCOVERY, OTHER_PARAMETERS, Tables, World};
use crate::strategy::{
    Ask, Departure, DepartureNonce, EntryState, Reach, Remarks, Verdict, is_eligible,
};
use crate::wakeups::Wakeup;

/// An Interest on its way out of a pending entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outbound<'a> {
    pub(crate) interest: &'a InterestView<'a>,
    pub(crate) nonce: Nonce,
    /// Already one less than it came with.
    pub(crate) hop_limit: Option<u8>,
    pub(crate) ingress: FaceId,
    pub(crate) congestion_mark: u64,
    pub(crate) non_discovery: bool,
}

impl<'a> Outbound<'a> {
    /// The Interest of a pending entry, which the router sends again for one downstream.
    pub(crate) fn for_downstream(interest: &'a InterestView<'a>, record: &InRecord) -> Self {
        Self {
            interest,
            nonce: record.nonce,
            hop_limit: interest.hop_limit().map(|limit| limit.saturating_sub(1)),
            ingress: record.face,
            congestion_mark: 0,
            non_discovery: record.flags & NON_DISCOVERY != 0,
        }
    }

    /// How far it may go, by its name and the face that it came from.
    pub(crate) fn reach(&self, faces: &FaceTable) -> Reach {
        reach_of(self.interest.name(), || {
            let ingress = faces.find(self.ingress);
            ingress.is_some_and(FaceTraits::is_local)
        })
    }

    fn as_dropped(&self) -> Dropped<'a> {
        Dropped::interest(self.ingress, self.interest.name())
    }
}

/// Looks up the route of an Interest, has the strategy of its name decide, and does what it
/// decided.
pub(crate) fn route_and_send(
    core: &mut Core,
    (idx, inserted): (EntryIdx, Inserted),
    arrival: &Arrival<'_>,
    outbound: &Outbound<'_>,
    out: &mut impl Output,
) {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let interest = outbound.interest;
    out.enter(Block::FibLookup);
    let lookup = RouteLookup {
        fib: arrival.fib,
        key: &world.key,
        hashes: arrival.hashes,
        probe: arrival.probe,
        ingress: arrival.traits.scope,
    };
    let management = world.settings.management_prefix.as_ref();
    let management = management.map(|prefix| prefix.view());
    let route = lookup.find_with_management(interest, management, &mut scratch.hint_hashes);
    out.enter(Block::Strategy);
    let mut entry = tables.pit_cs.matched(idx);
    let instance = world.strategies.find(interest.name(), arrival.hashes);
    let mut state = match inserted {
        Inserted::New => EntryState::default(),
        Inserted::Existing => state_for(&mut entry, world, instance),
    };
    let reach = outbound.reach(&world.faces);
    let mut ask = Ask {
        now: world.now,
        rng: &mut world.rng,
        faces: &world.faces,
        ingress: outbound.ingress,
        non_discovery: outbound.non_discovery,
        reach,
        entry: &entry,
        hashes: arrival.hashes,
        route,
        state: &mut state,
        remarks: Remarks::default(),
    };
    scratch.plan.clear();
    let strategy = world.strategies.strategy_mut(instance);
    let verdict = strategy.after_interest(&mut ask, &mut scratch.plan);
    let remarks = ask.remarks;
    entry.strategy_state = world.strategies.words(instance, state);
    if reach == Reach::LocalOnly {
        count_management(world, interest);
    }
    if remarks.leads_back {
        learn_from_interest(arrival, interest, out);
    }
    if remarks.is_cut {
        world.drop_packet(DropReason::DiscoveryTooWide, outbound.as_dropped());
    }
    match verdict {
        Verdict::Forward(departure) => {
            send_interest(tables, world, idx, &departure, outbound, out);
        }
        Verdict::ForwardPlan => {
            for departure in &scratch.plan {
                send_interest(tables, world, idx, departure, outbound, out);
            }
        }
        Verdict::Hold => world.counters.n_aggregated_interests += 1,
        Verdict::Strand => world.drop_packet(DropReason::NoRoute, outbound.as_dropped()),
        Verdict::Reject => {
            world.drop_packet(DropReason::NoRoute, outbound.as_dropped());
            reject(core, idx, Refusal::own(NackReason::NoRoute), out);
        }
    }
}

/// Sends an Interest to the next hop that a local application has chosen itself: the FIB
/// does not matter, scope does.
#[cold]
pub(crate) fn send_to_chosen(
    core: &mut Core,
    idx: EntryIdx,
    next_hop: FaceId,
    outbound: &Outbound<'_>,
    out: &mut impl Output,
) {
    let Core { tables, world, .. } = core;
    let reach = outbound.reach(&world.faces);
    if is_eligible(&world.faces, next_hop, outbound.ingress, reach) {
        send_interest(tables, world, idx, &Departure::to(next_hop), outbound, out);
    } else {
        world.drop_packet(DropReason::NextHopFaceUnusable, outbound.as_dropped());
    }
}

/// Counts an Interest that may not leave this host if it is for management.
#[cold]
fn count_management(world: &mut World, interest: &InterestView<'_>) {
    let managed = world.settings.management_prefix.as_ref();
    let is_managed = managed.is_some_and(|it| interest.name().starts_with(it.view()));
    world.counters.n_cs_misses_of_management += u64::from(is_managed);
}

/// Records and sends one transmission.
pub(crate) fn send_interest(
    tables: &mut Tables,
    world: &mut World,
    idx: EntryIdx,
    departure: &Departure,
    outbound: &Outbound<'_>,
    out: &mut impl Output,
) {
    let Some(traits) = world.faces.find(departure.face) else {
        return;
    };
    out.enter(Block::InterestTransmission);
    if outbound.hop_limit == Some(0) && !traits.is_local() {
        return world.drop_packet(DropReason::HopLimitExhausted, outbound.as_dropped());
    }
    let nonce = match departure.nonce {
        DepartureNonce::AsReceived => outbound.nonce,
        DepartureNonce::Fresh => Nonce(world.rng.nonce_bytes()),
    };
    let record = OutRecord {
        face: departure.face,
        nonce,
        expiry: world.expiry_of(outbound.interest),
        last_sent: world.now,
        nack: None,
        strategy_word: departure.memory,
    };
    let mut entry = tables.pit_cs.matched(idx);
    if let Err(refusal) = entry.insert_out_record(record) {
        return world.drop_packet(refusal.into(), outbound.as_dropped());
    }
    if let Some(timeout) = departure.timeout {
        let wakeup = Wakeup {
            at: world.now + timeout,
            idx,
            face: departure.face,
            sent: world.now,
        };
        // An out-record that has expired is no reason to retry.
        if wakeup.at < record.expiry {
            tables.wakeups.insert(wakeup, tables.pit_cs.pit());
        }
    }
    let rewrite = InterestRewrite {
        hop_limit: outbound.hop_limit,
        nonce: (outbound.interest.nonce() != Some(nonce)).then_some(nonce),
        ..InterestRewrite::default()
    };
    let headers = Headers {
        incoming_face_id: Some(outbound.ingress),
        congestion_mark: outbound.congestion_mark,
        non_discovery: outbound.non_discovery || departure.non_discovery,
        ..Headers::default()
    };
    out.send_interest(departure.face, outbound.interest, &rewrite, &headers);
    world.counters.n_out_interests += 1;
}

/// Why Interests go back to their downstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: NackReason,
    /// The face that brought the Nack with this reason; [`FaceId::INTERNAL`] if this
    /// router refuses by itself.
    face: FaceId,
}

impl Refusal {
    /// This router refuses.
    pub(crate) const fn own(reason: NackReason) -> Self {
        Self {
            reason,
            face: FaceId::INTERNAL,
        }
    }

    /// The upstream behind `face` has refused.
    pub(crate) const fn by_upstream(face: FaceId, reason: NackReason) -> Self {
        Self { reason, face }
    }

    fn headers(self, pit_token: Option<PitToken>) -> Headers {
        Headers {
            nack: Some(self.reason),
            pit_token,
            incoming_face_id: Some(self.face),
            ..Headers::default()
        }
    }
}

/// Sends Nacks to the downstreams of an entry, each with its own Interest and token, and
/// ends the entry.
pub(crate) fn reject(core: &mut Core, idx: EntryIdx, refusal: Refusal, out: &mut impl Output) {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let entry = tables.pit_cs.matched(idx);
    for record in entry.in_records() {
        send_nack(world, (&entry, record), refusal, &mut scratch.nack, out);
    }
    end(entry, &mut tables.dead_nonces, world);
}

/// Sends a Nack to one downstream and forgets it.
pub(crate) fn reject_one(
    core: &mut Core,
    idx: EntryIdx,
    face: FaceId,
    refusal: Refusal,
    out: &mut impl Output,
) {
    let mut entry = core.tables.pit_cs.matched(idx);
    if let Some(record) = entry.remove_in_record(face) {
        let rewritten = &mut core.scratch.nack;
        send_nack(&mut core.world, (&entry, &record), refusal, rewritten, out);
    }
}

/// Returns its own Interest to the downstream of a record. Links with several peers get no
/// Nack: another peer may have the answer. Nor do downstreams whose parameters are not kept.
fn send_nack(
    world: &mut World,
    (entry, record): (&PitEntry, &InRecord),
    refusal: Refusal,
    rewritten: &mut Vec<u8>,
    out: &mut impl Output,
) {
    let traits = world.faces.find(record.face);
    let has_own_interest = record.flags & OTHER_PARAMETERS == 0;
    if traits.is_some_and(FaceTraits::is_point_to_point)
        && record.expiry > world.now
        && has_own_interest
    {
        rewritten.clear();
        variant_of(record).write_into(&entry.interest(), rewritten);
        let headers = refusal.headers(record.pit_token);
        out.send_nack(record.face, refusal.reason, rewritten, &headers);
        world.counters.n_out_nacks += 1;
    }
}

/// Returns an Interest that has just come to where it came from.
#[cold]
pub(crate) fn nack_arrival(
    world: &mut World,
    arrival: &Arrival<'_>,
    wire: &[u8],
    reason: NackReason,
    out: &mut impl Output,
) {
    if arrival.traits.is_point_to_point() {
        let headers = Refusal::own(reason).headers(arrival.headers.pit_token);
        out.send_nack(arrival.face, reason, wire, &headers);
        world.counters.n_out_nacks += 1;
    }
}
