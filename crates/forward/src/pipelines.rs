//! The tables, and what all pipelines share: scope, Nacks, the end of a
//! pending entry.

use tachonym_packet::lp::Headers;
use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::types::component::GENERIC;
use tachonym_packet::{
    FaceId, HashKey, HashSpan, InterestVariant, InterestView, MonoNs, NackReason, Name, NameHash,
    NameHashes, NameView, Nonce, PitToken,
};
use tachonym_policy::PolicyConfig;
use tachonym_store::SecondLevel;
use tachonym_tables::{
    CsConfig, DeadNonceList, EntryIdx, FibProbe, FibView, InRecord, MIN_DEAD_NONCE_LIFETIME, PitCs,
    PitCsConfig, PitEntry,
};

use crate::announcements::Announcements;
use crate::burst::Output;
use crate::cache::{EngineError, StorePolicy};
use crate::config::{EngineConfig, UnsolicitedDataPolicy};
use crate::counters::{Counters, DropReason};
use crate::engine::TableSizes;
use crate::faces::{FaceTable, FaceTraits};
use crate::recent_drops::{Dropped, RecentDrops};
use crate::rng::Rng;
use crate::second_level::KnownStale;
use crate::sharing::Served;
use crate::sought::SoughtReads;
use crate::strategy::{Departure, EntryState, InstanceIdx, StrategyTable};
use crate::upkeep::Upkeep;
use crate::wakeups::Wakeups;

/// A packet's circumstances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) face: FaceId,
    pub(crate) traits: FaceTraits,
    pub(crate) headers: &'a Headers,
    /// The prefix announcement that came with a Data.
    pub(crate) announcement: Option<&'a [u8]>,
    /// The Data of another engine's store that answers an Interest.
    pub(crate) lent: Option<Lent<'a>>,
    /// `hashes[i]` is the hash of the first `i` components of the name.
    pub(crate) hashes: &'a [NameHash],
    /// The FIB during this burst.
    pub(crate) fib: &'a FibView<'a>,
    /// What tags there promise of an Interest without a forwarding hint, if that was
    /// asked ahead.
    pub(crate) probe: Option<&'a FibProbe>,
}

/// A Data of another engine's store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lent<'a> {
    pub(crate) wire: &'a [u8],
    /// Whether it was in the first level there.
    pub(crate) is_in_memory: bool,
}

impl Arrival<'_> {
    /// The hash of the whole name.
    pub(crate) fn name_hash(&self) -> NameHash {
        *self.hashes.last().expect("even the empty name has a hash")
    }
}

/// Everything that packets meet.
#[derive(Debug)]
pub(crate) struct Pipelines {
    /// The time of the call in progress, or of the last one.
    pub(crate) now: MonoNs,
    pub(crate) key: HashKey,
    pub(crate) rng: Rng,
    pub(crate) faces: FaceTable,
    pub(crate) tables: PitCs<StorePolicy>,
    pub(crate) dead_nonces: DeadNonceList,
    /// What is behind the content store, if anything is.
    pub(crate) second: Option<Box<SecondLevel>>,
    /// What it has lately not had a fresh Data for.
    pub(crate) known_stale: KnownStale,
    /// Until when Data may come that it has, for there was no read for their Interests.
    pub(crate) unread_until: MonoNs,
    /// What it has been asked for by other engines.
    pub(crate) sought: SoughtReads,
    pub(crate) strategies: StrategyTable,
    pub(crate) announcements: Announcements,
    pub(crate) counters: Counters,
    /// Packets that were lately dropped.
    pub(crate) recent_drops: RecentDrops<DropReason>,
    pub(crate) upkeep: Upkeep,
    pub(crate) wakeups: Wakeups,
    pub(crate) max_lifetime_ms: u64,
    pub(crate) dead_nonce_lifetime_ms: u64,
    pub(crate) unsolicited_data: UnsolicitedDataPolicy,
    pub(crate) producer_regions: Vec<Name>,
    pub(crate) verify_parameters_digest: bool,
    pub(crate) management_prefix: Option<Name>,
    pub(crate) scratch: Scratch,
}

/// Buffers that outlive a packet, so that no packet allocates. Each is empty,
/// or its contents void, between two packets.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) matches: Vec<EntryIdx>,
    pub(crate) expired: Vec<EntryIdx>,
    pub(crate) walked: Vec<EntryIdx>,
    pub(crate) plan: Vec<Departure>,
    pub(crate) downstreams: Vec<Downstream>,
    /// Who has got the Data in hand from other engines, if they may.
    pub(crate) served: Option<Served>,
    /// An Interest that had to be written anew.
    pub(crate) interest: Vec<u8>,
    /// A prefix announcement to send with a Data.
    pub(crate) announcement: Vec<u8>,
    /// An Interest to return with a Nack.
    pub(crate) nack: Vec<u8>,
    /// The name of a Data whose neighbours are to be read.
    pub(crate) name: Vec<u8>,
    /// Of the Data that come from the second level.
    pub(crate) recalled_hashes: NameHashes,
    pub(crate) recalled_spans: Vec<HashSpan>,
    pub(crate) hint_hashes: NameHashes,
    pub(crate) name_hashes: NameHashes,
}

/// Flags of an in-record. Its Interest came marked NonDiscovery; it states its lifetime; it has
/// other parameters than the one that made the entry, which are not kept.
pub(crate) const NON_DISCOVERY: u8 = 1;
pub(crate) const STATES_LIFETIME: u8 = 2;
pub(crate) const OTHER_PARAMETERS: u8 = 4;

/// When the Interest of an in-record came, if none is pending for longer than `max_lifetime_ms`.
pub(crate) fn asked_at(record: &InRecord, max_lifetime_ms: u64) -> MonoNs {
    let lifetime_ms = u64::from(record.lifetime_ms).min(max_lifetime_ms);
    let lifetime_ns = lifetime_ms.saturating_mul(1_000_000);
    MonoNs(record.expiry.0.saturating_sub(lifetime_ns))
}

/// The Interest of an in-record, as far as it differs from the one that made the entry.
fn variant_of(record: &InRecord) -> InterestVariant {
    let states_lifetime = record.flags & STATES_LIFETIME != 0;
    InterestVariant {
        nonce: Some(record.nonce),
        lifetime_ms: states_lifetime.then_some(u64::from(record.lifetime_ms)),
        hop_limit: record.hop_limit,
    }
}

/// Puts the Interest of an entry into `wire` as the router sends it again by itself: with the
/// greatest HopLimit of the downstreams that wait, so that one that came with a small limit
/// keeps no other from being served.
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

/// Who gets an answer, and with which token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downstream {
    pub(crate) face: FaceId,
    pub(crate) pit_token: Option<PitToken>,
    /// It does not know the way yet, and asks for an announcement.
    pub(crate) is_discovering: bool,
}

impl Downstream {
    pub(crate) fn of(record: &InRecord) -> Self {
        Self {
            face: record.face,
            pit_token: record.pit_token,
            is_discovering: record.flags & NON_DISCOVERY == 0,
        }
    }

    /// Who an Interest came from.
    #[must_use]
    pub const fn of_interest(face: FaceId, headers: &Headers) -> Self {
        Self {
            face,
            pit_token: headers.pit_token,
            is_discovering: !headers.non_discovery,
        }
    }

    /// Brings equal downstreams together, one that is discovering first.
    pub(crate) fn sort_key(&self) -> (FaceId, &[u8], bool) {
        let token = self
            .pit_token
            .as_ref()
            .map_or(&[][..], |token| token.as_bytes());
        (self.face, token, !self.is_discovering)
    }

    /// Whether it is the same face, which waits with the same token.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.face == other.face && self.pit_token == other.pit_token
    }
}

impl Pipelines {
    /// # Errors
    /// If there is not as much memory as the tables need from the start, or no such policy
    /// of the content store.
    pub(crate) fn new(config: EngineConfig, key: HashKey, seed: u64) -> Result<Self, EngineError> {
        let mut faces = FaceTable::default();
        faces.insert(FaceId::INTERNAL, FaceTraits::LOCAL);
        let tables = PitCsConfig {
            cs: CsConfig {
                capacity: config.cs,
                index: config.pit.index,
                pages: config.pit.pages,
            },
            pit: config.pit,
            layout: config.pit_cs,
        };
        let n_slots = config.cs.max_slots();
        let policy = PolicyConfig {
            capacity: n_slots,
            pages: config.pit.pages,
            ..config.cs_policy
        };
        let policy = StorePolicy::new(&policy, n_slots)?.measuring();
        let dead_nonce_lifetime = config.dead_nonce_lifetime.max(MIN_DEAD_NONCE_LIFETIME);
        Ok(Self {
            now: MonoNs::ZERO,
            rng: Rng::from_seed(seed),
            faces,
            tables: PitCs::new(tables, policy, key.clone())?,
            dead_nonces: DeadNonceList::new(
                dead_nonce_lifetime,
                config.dead_nonces_max,
                config.pit.pages,
            )?,
            second: None,
            known_stale: KnownStale::default(),
            unread_until: MonoNs::ZERO,
            sought: SoughtReads::default(),
            strategies: StrategyTable::new(key.clone()),
            key,
            announcements: Announcements::default(),
            counters: Counters::default(),
            recent_drops: RecentDrops::new(),
            upkeep: Upkeep::default(),
            wakeups: Wakeups::default(),
            max_lifetime_ms: config.max_lifetime_ms,
            dead_nonce_lifetime_ms: u64::try_from(dead_nonce_lifetime.as_millis())
                .unwrap_or(u64::MAX),
            unsolicited_data: config.unsolicited_data,
            producer_regions: config.producer_regions,
            verify_parameters_digest: config.verify_parameters_digest,
            management_prefix: config.management_prefix,
            scratch: Scratch::default(),
        })
    }

    pub(crate) fn sizes(&self, n_fib_entries: usize) -> TableSizes {
        TableSizes {
            n_faces: self.faces.len(),
            n_fib_entries,
            n_pit_entries: self.tables.pit().len(),
            n_cs_entries: self.tables.cs().len(),
            n_measurements: self.strategies.n_measurements(),
            n_strategy_choices: self.strategies.len(),
            n_dead_nonces: self.dead_nonces.len(),
        }
    }

    /// Counts a drop, and records which packet it was.
    #[cold]
    pub(crate) fn drop_packet(&mut self, reason: DropReason, packet: Dropped<'_>) {
        self.counters.count_drop(reason);
        self.recent_drops.record(self.now, reason, &packet);
    }

    /// When an Interest that arrives now stops waiting.
    pub(crate) fn expiry_of(&self, interest: &InterestView<'_>) -> MonoNs {
        self.now
            .plus_ms(interest.lifetime_ms().min(self.max_lifetime_ms))
    }

    /// The strategy that serves an entry, and what it remembers there.
    pub(crate) fn strategy_of(&mut self, idx: EntryIdx) -> Option<(InstanceIdx, EntryState)> {
        let entry = self.tables.pit().get(idx)?;
        if let Some(served) = self.strategies.recall(&entry.strategy_state) {
            return Some(served);
        }
        let hashes = &mut self.scratch.name_hashes;
        hashes.clear();
        let span = hashes.push_name(&self.key, entry.name());
        let instance = self.strategies.find(entry.name(), hashes.slice(span));
        Some((instance, self.state_for(idx, instance)))
    }

    /// What `instance` remembers in an entry: nothing, if another one has
    /// served the entry.
    pub(crate) fn state_for(&mut self, idx: EntryIdx, instance: InstanceIdx) -> EntryState {
        let Some(entry) = self.tables.pit_mut().get_mut(idx) else {
            return EntryState::default();
        };
        let kept = self.strategies.state_for(instance, &entry.strategy_state);
        if kept.is_none() {
            for record in entry.out_records_mut() {
                record.strategy_word = 0;
            }
        }
        kept.unwrap_or_default()
    }

    pub(crate) fn save_state(&mut self, idx: EntryIdx, instance: InstanceIdx, state: EntryState) {
        if let Some(entry) = self.tables.pit_mut().get_mut(idx) {
            entry.strategy_state = self.strategies.words(instance, state);
        }
    }

    /// Sends Nacks to the downstreams of an entry, each with its own Interest and
    /// token, and ends the entry. Links with several peers get none: another
    /// peer may have the answer. Nor do those whose parameters are not kept.
    pub(crate) fn reject(&mut self, idx: EntryIdx, refusal: Refusal, out: &mut impl Output) {
        let Some(entry) = self.tables.pit().get(idx) else {
            return;
        };
        let rewritten = &mut self.scratch.nack;
        for record in entry.in_records() {
            let is_point_to_point = self
                .faces
                .find(record.face)
                .is_some_and(FaceTraits::is_point_to_point);
            if is_point_to_point && record.expiry > self.now && has_own_interest(record) {
                send_nack(entry, record, refusal, rewritten, out);
                self.counters.n_out_nacks += 1;
            }
        }
        self.end_unsatisfied(idx);
    }

    /// Sends a Nack to one downstream and forgets it.
    pub(crate) fn reject_one(
        &mut self,
        idx: EntryIdx,
        face: FaceId,
        refusal: Refusal,
        out: &mut impl Output,
    ) {
        let Some(record) = self.tables.pit_mut().remove_in_record(idx, face) else {
            return;
        };
        let Some(entry) = self.tables.pit().get(idx) else {
            return;
        };
        let is_point_to_point = self
            .faces
            .find(face)
            .is_some_and(FaceTraits::is_point_to_point);
        if is_point_to_point && record.expiry > self.now && has_own_interest(&record) {
            send_nack(entry, &record, refusal, &mut self.scratch.nack, out);
            self.counters.n_out_nacks += 1;
        }
    }

    /// Returns an Interest that has just come to where it came from.
    #[cold]
    pub(crate) fn nack_arrival(
        &mut self,
        arrival: &Arrival<'_>,
        wire: &[u8],
        reason: NackReason,
        out: &mut impl Output,
    ) {
        if arrival.traits.is_point_to_point() {
            let headers = nack_headers(Refusal::own(reason), arrival.headers.pit_token);
            out.send_nack(arrival.face, reason, wire, &headers);
            self.counters.n_out_nacks += 1;
        }
    }

    /// Removes an entry, whether Data has satisfied it or not.
    pub(crate) fn end(&mut self, idx: EntryIdx) {
        let entry = self.tables.pit().get(idx);
        if entry.is_some_and(|entry| entry.satisfied) {
            self.tables.remove_pending(idx);
        } else {
            self.end_unsatisfied(idx);
        }
    }

    /// Removes an entry that no Data answered; its nonces live on.
    pub(crate) fn end_unsatisfied(&mut self, idx: EntryIdx) {
        self.counters.n_unsatisfied_interests += 1;
        self.bury_nonces(idx);
        self.tables.remove_pending(idx);
    }

    /// Puts the nonces an entry was sent with on the dead nonce list.
    pub(crate) fn bury_nonces(&mut self, idx: EntryIdx) {
        let now = self.now;
        if let Some(entry) = self.tables.pit().get(idx) {
            for record in entry.out_records() {
                self.dead_nonces
                    .insert(entry.name_hash(), record.nonce, now);
            }
        }
    }
}

/// Whether the Interest of `record` can be written from that of its entry.
const fn has_own_interest(record: &InRecord) -> bool {
    record.flags & OTHER_PARAMETERS == 0
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
}

/// Returns its own Interest to the downstream of `record`.
fn send_nack(
    entry: &PitEntry,
    record: &InRecord,
    refusal: Refusal,
    rewritten: &mut Vec<u8>,
    out: &mut impl Output,
) {
    let interest = entry.interest();
    let headers = nack_headers(refusal, record.pit_token);
    rewritten.clear();
    variant_of(record).write_into(&interest, rewritten);
    out.send_nack(record.face, refusal.reason, rewritten, &headers);
}

fn nack_headers(refusal: Refusal, pit_token: Option<PitToken>) -> Headers {
    Headers {
        nack: Some(refusal.reason),
        pit_token,
        incoming_face_id: Some(refusal.face),
        ..Headers::default()
    }
}

/// Whether `name` is for this host only.
pub(crate) fn is_localhost(name: NameView<'_>) -> bool {
    begins_with(name, b"localhost")
}

/// Whether `name` is for this host and its neighbours only.
pub(crate) fn is_localhop(name: NameView<'_>) -> bool {
    begins_with(name, b"localhop")
}

/// Compares the first component, a generic one, by its encoding.
fn begins_with(name: NameView<'_>, text: &[u8]) -> bool {
    match name.value_bytes() {
        [typ, len, rest @ ..] => {
            u16::from(*typ) == GENERIC && usize::from(*len) == text.len() && rest.starts_with(text)
        }
        _ => false,
    }
}

/// Whether `nonce` on an Interest from `face` shows that it has been here
/// before: any downstream or upstream of the entry holds it. Over a link with
/// one peer, the same nonce from the same face is a retransmission instead;
/// where there are several, it may come from another one.
pub(crate) fn is_loop(entry: &PitEntry, nonce: Nonce, face: FaceId, link: FaceTraits) -> bool {
    let is_retransmission = link.is_point_to_point()
        && entry
            .in_record(face)
            .is_some_and(|record| record.nonce == nonce);
    !is_retransmission
        && (entry.in_records().any(|record| record.nonce == nonce)
            || entry.out_records().any(|record| record.nonce == nonce))
}
