//! A pending entry: its Interest, its strategy, how it ends.

use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{FaceId, InterestVariant, MonoNs, NameHashes, Nonce};
use tachonym_tables::{DeadNonceList, InRecord, Pending, PitEntry};

use crate::faces::{FaceTraits, Scope};
use crate::state::{Downstream, STATES_LIFETIME, World};
use crate::strategy::{EntryState, InstanceIdx};

/// When the Interest of an in-record came, if none is pending for longer than `max_lifetime_ms`.
pub(crate) fn asked_at(record: &InRecord, max_lifetime_ms: u64) -> MonoNs {
    let lifetime_ms = u64::from(record.lifetime_ms).min(max_lifetime_ms);
    let lifetime_ns = lifetime_ms.saturating_mul(1_000_000);
    MonoNs(record.expiry.0.saturating_sub(lifetime_ns))
}

/// The Interest of an in-record, as far as it differs from the one that made the entry.
pub(crate) fn variant_of(record: &InRecord) -> InterestVariant {
    let states_lifetime = record.flags & STATES_LIFETIME != 0;
    InterestVariant {
        nonce: Some(record.nonce),
        lifetime_ms: states_lifetime.then_some(u64::from(record.lifetime_ms)),
        hop_limit: record.hop_limit,
    }
}

/// Puts the Interest of an entry into `wire` as the router sends it again by itself: with the
/// greatest HopLimit of its live in-records, so that one that came with a small limit does
/// not keep the others from being served.
pub(crate) fn write_pending(entry: &PitEntry, now: MonoNs, wire: &mut Vec<u8>) {
    let live = entry.in_records().filter(|record| record.expiry > now);
    let hop_limit = live
        .map(|record| record.hop_limit)
        .reduce(|one, other| Some(one?.max(other?)));
    let interest = entry.interest();
    let variant = InterestVariant {
        hop_limit: hop_limit.unwrap_or(interest.hop_limit()),
        ..interest.variant()
    };
    wire.clear();
    variant.write_into(&interest, wire);
    if wire.len() > MAX_PACKET_BYTES {
        // There was no room for a HopLimit.
        wire.clear();
        wire.extend_from_slice(interest.wire());
    }
}

/// The downstreams of an entry that have not expired.
pub(crate) fn live_downstreams(entry: &PitEntry, now: MonoNs) -> impl Iterator<Item = Downstream> {
    let live = entry.in_records().filter(move |record| record.expiry > now);
    live.map(Downstream::of)
}

/// The scope in which an entry may be served: local if all its downstreams are.
pub(crate) fn scope_of(entry: &PitEntry, world: &World) -> Scope {
    let is_local = |face| world.faces.find(face).is_some_and(FaceTraits::is_local);
    if entry.in_records().all(|record| is_local(record.face)) {
        Scope::Local
    } else {
        Scope::NonLocal
    }
}

/// Whether `nonce` on an Interest from `face` is a loop: an in-record or out-record of the
/// entry holds it. Over a link with one peer, the same nonce from the same face is a
/// retransmission instead; where there are several, it may come from another one.
pub(crate) fn is_loop(entry: &PitEntry, nonce: Nonce, face: FaceId, link: FaceTraits) -> bool {
    let is_retransmission = link.is_point_to_point()
        && entry
            .in_record(face)
            .is_some_and(|record| record.nonce == nonce);
    !is_retransmission
        && (entry.in_records().any(|record| record.nonce == nonce)
            || entry.out_records().any(|record| record.nonce == nonce))
}

/// The strategy that serves an entry, and what it remembers there.
pub(crate) fn strategy_of(
    entry: &mut PitEntry,
    world: &World,
    hashes: &mut NameHashes,
) -> (InstanceIdx, EntryState) {
    if let Some(served) = world.strategies.recall(&entry.strategy_state) {
        return served;
    }
    hashes.clear();
    let span = hashes.push_name(&world.key, entry.name());
    let instance = world.strategies.find(entry.name(), hashes.slice(span));
    (instance, state_for(entry, world, instance))
}

/// What `instance` remembers in an entry: nothing, if another one has served the entry.
pub(crate) fn state_for(entry: &mut PitEntry, world: &World, instance: InstanceIdx) -> EntryState {
    let kept = world.strategies.state_for(instance, &entry.strategy_state);
    if kept.is_none() {
        for record in entry.out_records_mut() {
            record.strategy_word = 0;
        }
    }
    kept.unwrap_or_default()
}

/// Removes an entry. If no Data has satisfied it, its nonces live on.
pub(crate) fn end(entry: Pending<'_>, dead_nonces: &mut DeadNonceList, world: &mut World) {
    if !entry.satisfied {
        world.counters.n_unsatisfied_interests += 1;
        bury_nonces(dead_nonces, &entry, world);
    }
    entry.remove();
}

/// Puts the nonces that an entry was sent with on the dead nonce list.
pub(crate) fn bury_nonces(dead_nonces: &mut DeadNonceList, entry: &PitEntry, world: &mut World) {
    let n_before = dead_nonces.n_evicted_early();
    for record in entry.out_records() {
        dead_nonces.insert(entry.name_hash(), record.nonce, world.now);
    }
    world.counters.n_dead_nonces_evicted_early += dead_nonces.n_evicted_early() - n_before;
}
