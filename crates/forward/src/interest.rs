//! The way of an Interest: scope, loops, content store, pending Interest table,
//! FIB, strategy, out.

use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, InterestRewrite, InterestView, NackReason, NameHash, NameScope, Nonce,
};
use tachonym_tables::{InRecord, Inserted, Missed, PitEntry, PitRefusal};

use crate::block::Block;
use crate::burst::Output;
use crate::counters::DropReason;
use crate::faces::FaceTraits;
use crate::marks::{follow_marked_hit, handle_marked_hit};
use crate::outgoing::{Outbound, nack_arrival, route_and_send, send_to_chosen};
use crate::pending::{end, is_loop};
use crate::recent_drops::Dropped;
use crate::route::is_in_producer_region;
use crate::second_level;
use crate::state::{
    Arrival, BorrowedData, Core, NON_DISCOVERY, OTHER_PARAMETERS, STATES_LIFETIME, Second, State,
    World,
};

/// How the parameters of an Interest stand to those of the one that it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameters {
    /// They are the same, or neither has any.
    Same,
    /// One of both has none.
    Other,
    /// They differ, and the digest is not that of the new ones.
    Forged,
    /// They differ, and the digest is that of the new ones.
    PendingForged,
}

/// An Interest with a nonce, ready to be served.
#[derive(Clone, Copy)]
struct Admitted<'a> {
    interest: &'a InterestView<'a>,
    nonce: Nonce,
    /// The Interest as it came, which a Nack returns.
    received: &'a [u8],
}

/// An Interest has come.
pub(crate) fn incoming_interest(
    state: &mut State,
    arrival: &Arrival<'_>,
    interest: &InterestView<'_>,
    out: &mut impl Output,
) {
    let world = &mut state.core.world;
    world.counters.n_in_interests += 1;
    if let Some(reason) = refusal(world, interest, arrival.traits) {
        return drop_interest(world, reason, arrival, interest);
    }
    match interest.nonce() {
        Some(nonce) if !is_in_producer_region(&world.settings, interest) => {
            let received = interest.wire();
            let admitted = Admitted {
                interest,
                nonce,
                received,
            };
            admitted_interest(state, arrival, admitted, out);
        }
        _ => amended_interest(state, arrival, interest, out),
    }
}

/// Why an Interest is dropped, whatever the tables hold.
#[inline]
pub(crate) fn refusal(
    world: &World,
    interest: &InterestView<'_>,
    traits: FaceTraits,
) -> Option<DropReason> {
    if interest.hop_limit() == Some(0) {
        Some(DropReason::HopLimitZero)
    } else if !traits.is_local() && interest.name().scope() == NameScope::Localhost {
        Some(DropReason::LocalhostScope)
    } else if world.settings.verify_parameters_digest && !interest.verify_parameters_digest() {
        Some(DropReason::BadParametersDigest)
    } else {
        None
    }
}

/// Whether an Interest is dropped for its nonce whatever the stores have. A nonce that is
/// still pending does not count here: a store may have Data from a face which the pending
/// Interest was not sent to, and such Data answers first.
pub(crate) fn has_dead_nonce(
    core: &Core,
    interest: &InterestView<'_>,
    hashes: &[NameHash],
) -> bool {
    let name_hash = hashes[interest.name().len()];
    let dead_nonces = &core.tables.dead_nonces;
    let nonce = interest.nonce();
    nonce.is_some_and(|nonce| dead_nonces.contains(name_hash, nonce, core.world.now))
}

/// An Interest that lacks a Nonce, or has a forwarding hint that has led it where it should:
/// the one is added, the other removed.
#[cold]
fn amended_interest(
    state: &mut State,
    arrival: &Arrival<'_>,
    interest: &InterestView<'_>,
    out: &mut impl Output,
) {
    let Core { world, scratch, .. } = &mut state.core;
    let nonce = interest
        .nonce()
        .unwrap_or_else(|| Nonce(world.rng.nonce_bytes()));
    let rewrite = InterestRewrite {
        nonce: Some(nonce),
        strip_forwarding_hint: is_in_producer_region(&world.settings, interest),
        ..InterestRewrite::default()
    };
    // Taken out, since the whole way of the Interest reads it.
    let mut buffer = std::mem::take(&mut scratch.amended);
    buffer.clear();
    rewrite.write_into(interest, &mut buffer);
    match InterestView::parse(&buffer) {
        Ok(amended) => {
            let admitted = Admitted {
                interest: &amended,
                nonce,
                received: interest.wire(),
            };
            admitted_interest(state, arrival, admitted, out);
        }
        // The Nonce has made it too large.
        Err(_) => drop_interest(world, DropReason::Oversized, arrival, interest),
    }
    state.core.scratch.amended = buffer;
}

fn admitted_interest(
    state: &mut State,
    arrival: &Arrival<'_>,
    admitted: Admitted<'_>,
    out: &mut impl Output,
) {
    let State { core, second, .. } = state;
    let Admitted {
        interest, nonce, ..
    } = admitted;
    let Core { tables, world, .. } = core;
    if tables
        .dead_nonces
        .contains(arrival.name_hash(), nonce, world.now)
    {
        return looped_interest(world, arrival, admitted, out);
    }
    out.enter(Block::StoreLookup);
    let Err(missed) = answer_from_store(core, second, arrival, interest, out) else {
        return;
    };
    out.enter(Block::PendingInsertion);
    let Core { tables, world, .. } = core;
    let found = tables
        .pit_cs
        .find_or_insert(interest, arrival.hashes, missed, world.now);
    let (mut entry, mut inserted) = match found {
        Ok(found) => found,
        Err(refusal) => return refuse(world, refusal, arrival, admitted, out),
    };
    let mut flags = 0;
    if inserted == Inserted::Existing {
        if is_loop(&entry, nonce, arrival.face, arrival.traits) {
            return looped_interest(world, arrival, admitted, out);
        }
        match compare_parameters(&entry, interest) {
            Parameters::Same => revive(&mut entry),
            Parameters::Other => {
                flags = OTHER_PARAMETERS;
                revive(&mut entry);
            }
            Parameters::Forged => {
                let reason = DropReason::BadParametersDigest;
                return drop_interest(world, reason, arrival, interest);
            }
            Parameters::PendingForged => {
                end(entry, &mut tables.dead_nonces, world);
                let missed = Missed::default();
                let begun =
                    tables
                        .pit_cs
                        .find_or_insert(interest, arrival.hashes, missed, world.now);
                (entry, inserted) = match begun {
                    Ok(begun) => begun,
                    Err(refusal) => return refuse(world, refusal, arrival, admitted, out),
                };
            }
        }
    }
    let record = in_record(world, arrival, admitted, flags);
    match entry.insert_in_record(record) {
        Ok(last_expiry) if last_expiry != entry.expiry() => entry.set_expiry(last_expiry),
        Ok(_) => {}
        Err(refusal) => {
            // An entry without downstreams must not stay.
            if entry.n_in_records() == 0 {
                entry.remove();
            }
            return refuse(world, refusal, arrival, admitted, out);
        }
    }
    let idx = entry.idx();
    let outbound = Outbound {
        interest,
        nonce,
        hop_limit: interest.hop_limit().map(|hop_limit| hop_limit - 1),
        ingress: arrival.face,
        congestion_mark: arrival.headers.congestion_mark,
        non_discovery: arrival.headers.non_discovery,
    };
    if let Some(next_hop) = arrival.headers.next_hop_face_id {
        return send_to_chosen(core, idx, next_hop, &outbound, out);
    }
    if second.level.is_some()
        && second_level::lookup(core, second, (idx, inserted), arrival, interest, out)
    {
        return;
    }
    route_and_send(core, (idx, inserted), arrival, &outbound, out);
}

#[cold]
fn drop_interest(
    world: &mut World,
    reason: DropReason,
    arrival: &Arrival<'_>,
    interest: &InterestView<'_>,
) {
    world.drop_packet(reason, Dropped::interest(arrival.face, interest.name()));
}

/// Drops an Interest that finds no room, and says so to its sender.
#[cold]
fn refuse(
    world: &mut World,
    refusal: PitRefusal,
    arrival: &Arrival<'_>,
    admitted: Admitted<'_>,
    out: &mut impl Output,
) {
    drop_interest(world, refusal.into(), arrival, admitted.interest);
    nack_arrival(
        world,
        arrival,
        admitted.received,
        NackReason::Congestion,
        out,
    );
}

/// How the parameters of an Interest stand to those of the pending one that it joins, whose
/// name has the same digest: of two that differ, one has another digest.
fn compare_parameters(entry: &PitEntry, interest: &InterestView<'_>) -> Parameters {
    if !entry.has_parameters() && interest.application_parameters().is_none() {
        return Parameters::Same;
    }
    let pending = entry.interest();
    if pending.parameters_bytes() == interest.parameters_bytes() {
        Parameters::Same
    } else if !interest.verify_parameters_digest() {
        Parameters::Forged
    } else if entry.has_parameters() && interest.application_parameters().is_some() {
        Parameters::PendingForged
    } else {
        Parameters::Other
    }
}

#[cold]
fn looped_interest(
    world: &mut World,
    arrival: &Arrival<'_>,
    admitted: Admitted<'_>,
    out: &mut impl Output,
) {
    let interest = admitted.interest;
    drop_interest(world, DropReason::InterestLoop, arrival, interest);
    let instance = world.strategies.find(interest.name(), arrival.hashes);
    if world.strategies.strategy_mut(instance).returns_nacks() {
        nack_arrival(
            world,
            arrival,
            admitted.received,
            NackReason::Duplicate,
            out,
        );
    }
}

/// Sends the Data if the content store has it, or returns what the search has seen of
/// pending Interests. Scope needs no second look: Data begins with the Interest's own first
/// component.
fn answer_from_store(
    core: &mut Core,
    second: &mut Second,
    arrival: &Arrival<'_>,
    interest: &InterestView<'_>,
    out: &mut impl Output,
) -> Result<(), Missed> {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    if let Some(borrowed) = arrival.borrowed {
        answer_with_borrowed(world, arrival, borrowed, out);
        return Ok(());
    }
    let enter = |step| out.enter(Block::of_step(step, Block::StoreLookup));
    let found = tables
        .pit_cs
        .find_data_by_step(interest, arrival.hashes, world.now, enter);
    let data = match found {
        Ok(data) => data,
        Err(missed) => {
            world.counters.n_cs_misses += 1;
            return Err(missed);
        }
    };
    out.enter(Block::StoreFetch);
    let headers = Headers {
        pit_token: arrival.headers.pit_token,
        incoming_face_id: Some(FaceId::CONTENT_STORE),
        ..Headers::default()
    };
    let is_discovering = !arrival.headers.non_discovery && !arrival.traits.is_local();
    let announcement = if is_discovering && !world.announcements.is_empty() {
        let instance = world.strategies.find(interest.name(), arrival.hashes);
        let learns_routes = world.strategies.strategy_mut(instance).learns_routes();
        let known = world.announcements.find(interest.name(), arrival.hashes);
        known.filter(|_| learns_routes)
    } else {
        None
    };
    out.enter(Block::DataTransmission);
    match announcement {
        Some(known) => out.send_data_announcing(arrival.face, data.wire(), &headers, known),
        None => out.send_data(arrival.face, data.wire(), &headers),
    }
    world.counters.n_cs_hits += 1;
    world.counters.n_satisfied_interests += 1;
    world.counters.n_out_data += 1;
    if !data.marks().is_empty()
        && let Some(level) = &mut second.level
    {
        let next = handle_marked_hit(level, world.now, &data, &mut scratch.name);
        follow_marked_hit(core, level, arrival.hashes, next);
    }
    Ok(())
}

/// Sends the Data of another engine's store: the Interest's name is too short for a home of
/// its own.
#[cold]
fn answer_with_borrowed(
    world: &mut World,
    arrival: &Arrival<'_>,
    borrowed: BorrowedData<'_>,
    out: &mut impl Output,
) {
    let headers = Headers {
        pit_token: arrival.headers.pit_token,
        incoming_face_id: Some(FaceId::CONTENT_STORE),
        ..Headers::default()
    };
    out.send_data(arrival.face, borrowed.wire, &headers);
    world.counters.n_cs_hits += u64::from(borrowed.is_in_memory);
    world.counters.n_cs_misses += u64::from(!borrowed.is_in_memory);
    world.counters.n_second_level_hits += u64::from(!borrowed.is_in_memory);
    world.counters.n_satisfied_interests += 1;
    world.counters.n_out_data += 1;
}

/// The in-record of an Interest.
fn in_record(
    world: &World,
    arrival: &Arrival<'_>,
    Admitted {
        interest, nonce, ..
    }: Admitted<'_>,
    flags: u8,
) -> InRecord {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    InRecord {
        face: arrival.face,
        nonce,
        expiry: world.expiry_of(interest),
        pit_token: arrival.headers.pit_token,
        hop_limit: interest.hop_limit(),
        flags: flags
            | flag(arrival.headers.non_discovery, NON_DISCOVERY)
            | flag(interest.stated_lifetime_ms().is_some(), STATES_LIFETIME),
        lifetime_ms: u32::try_from(interest.lifetime_ms()).unwrap_or(u32::MAX),
    }
}

/// Has an entry begin again that is satisfied, and lingers for slower upstreams.
fn revive(entry: &mut PitEntry) {
    if entry.satisfied {
        entry.satisfied = false;
        entry.strategy_state = Default::default();
        entry.retain_out_records(|_| false);
    }
}
