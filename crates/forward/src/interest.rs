//! The way of an Interest: scope, loops, content store, pending Interest table,
//! FIB, strategy, out.

use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, InterestRewrite, InterestView, NackReason, NameHash, NameHashes, NameView,
    Nonce,
};
use tachonym_tables::{
    EntryIdx, FibMatch, FibProbe, FibView, InRecord, Inserted, Missed, OutRecord, PitRefusal,
};

use crate::block::Block;
use crate::burst::Output;
use crate::counters::DropReason;
use crate::faces::{FaceTable, FaceTraits, Scope};
use crate::pipelines::{
    Arrival, Lent, NON_DISCOVERY, OTHER_PARAMETERS, Pipelines, Refusal, STATES_LIFETIME,
    is_localhop, is_localhost, is_loop,
};
use crate::recent_drops::Dropped;
use crate::second_level;
use crate::strategy::{
    Ask, Departure, DepartureNonce, EntryState, Reach, Remarks, Verdict, is_eligible,
};
use crate::wakeups::Wakeup;

/// Delegations of a forwarding hint that are looked at: an Interest has room for more than
/// a thousand, each of which takes a search of the FIB.
pub const MAX_DELEGATIONS: usize = 16;

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

impl Pipelines {
    /// An Interest has come.
    pub(crate) fn incoming_interest(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        out: &mut impl Output,
    ) {
        self.counters.n_in_interests += 1;
        if let Some(reason) = self.refusal(interest, arrival.traits) {
            return self.drop_packet(reason, Dropped::interest(arrival.face, interest.name()));
        }
        match interest.nonce() {
            Some(nonce) if !self.is_in_producer_region(interest) => {
                self.admitted_interest(arrival, interest, nonce, interest.wire(), out);
            }
            _ => self.amended_interest(arrival, interest, out),
        }
    }

    /// Why an Interest may not go on, wherever it has been.
    #[inline]
    pub(crate) fn refusal(
        &self,
        interest: &InterestView<'_>,
        traits: FaceTraits,
    ) -> Option<DropReason> {
        if interest.hop_limit() == Some(0) {
            Some(DropReason::HopLimitZero)
        } else if !traits.is_local() && is_localhost(interest.name()) {
            Some(DropReason::LocalhostScope)
        } else if self.verify_parameters_digest && !interest.verify_parameters_digest() {
            Some(DropReason::BadParametersDigest)
        } else {
            None
        }
    }

    /// Whether an Interest is dropped for its nonce whatever the stores have. A nonce that is
    /// still pending does not count here: a store may have Data that came from a face which
    /// the pending Interest was not sent to, and such Data answers first.
    pub(crate) fn has_dead_nonce(&self, interest: &InterestView<'_>, hashes: &[NameHash]) -> bool {
        let name_hash = hashes[interest.name().len()];
        interest
            .nonce()
            .is_some_and(|nonce| self.dead_nonces.contains(name_hash, nonce, self.now))
    }

    /// An Interest that lacks a Nonce, or has a forwarding hint that has led it
    /// where it should: the one is added, the other goes.
    #[cold]
    fn amended_interest(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        out: &mut impl Output,
    ) {
        let nonce = interest
            .nonce()
            .unwrap_or_else(|| Nonce(self.rng.nonce_bytes()));
        let rewrite = InterestRewrite {
            nonce: Some(nonce),
            strip_forwarding_hint: self.is_in_producer_region(interest),
            ..InterestRewrite::default()
        };
        let mut buffer = std::mem::take(&mut self.scratch.interest);
        buffer.clear();
        rewrite.write_into(interest, &mut buffer);
        match InterestView::parse(&buffer) {
            Ok(amended) => {
                self.admitted_interest(arrival, &amended, nonce, interest.wire(), out);
            }
            // The Nonce has made it too large.
            Err(_) => {
                let dropped = Dropped::interest(arrival.face, interest.name());
                self.drop_packet(DropReason::Oversized, dropped);
            }
        }
        self.scratch.interest = buffer;
    }

    /// An Interest that may be served. A Nack returns `wire`, the Interest as
    /// it came.
    fn admitted_interest(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        nonce: Nonce,
        wire: &[u8],
        out: &mut impl Output,
    ) {
        let name_hash = arrival.name_hash();
        if self.dead_nonces.contains(name_hash, nonce, self.now) {
            return self.looped_interest(arrival, interest, wire, out);
        }
        out.enter(Block::StoreLookup);
        let Err(missed) = self.answer_from_store(arrival, interest, out) else {
            return;
        };
        out.enter(Block::PendingInsertion);
        let found = self
            .tables
            .find_or_insert(interest, arrival.hashes, missed, self.now);
        let Ok((mut idx, mut inserted)) = found else {
            return self.refuse_for_room(arrival, interest, wire, out);
        };
        let mut flags = 0;
        if inserted == Inserted::Existing {
            let Some(entry) = self.tables.pit().get(idx) else {
                return;
            };
            if is_loop(entry, nonce, arrival.face, arrival.traits) {
                return self.looped_interest(arrival, interest, wire, out);
            }
            if entry.has_parameters() || interest.application_parameters().is_some() {
                match self.compare_parameters(idx, interest) {
                    Parameters::Same => {}
                    Parameters::Other => flags = OTHER_PARAMETERS,
                    Parameters::Forged => {
                        let dropped = Dropped::interest(arrival.face, interest.name());
                        return self.drop_packet(DropReason::BadParametersDigest, dropped);
                    }
                    Parameters::PendingForged => {
                        self.end(idx);
                        let (hashes, missed) = (arrival.hashes, Missed::default());
                        let begun = self
                            .tables
                            .find_or_insert(interest, hashes, missed, self.now);
                        let Ok(begun) = begun else {
                            return self.refuse_for_room(arrival, interest, wire, out);
                        };
                        (idx, inserted) = begun;
                    }
                }
            }
            self.revive(idx);
        }
        if let Err(refusal) = self.join_downstream(idx, arrival, interest, (nonce, flags)) {
            let reason = match refusal {
                PitRefusal::SourceShareUsed => DropReason::PitShareUsed,
                _ => DropReason::InRecordsFull,
            };
            self.drop_packet(reason, Dropped::interest(arrival.face, interest.name()));
            return self.nack_arrival(arrival, wire, NackReason::Congestion, out);
        }
        let outbound = Outbound {
            interest,
            nonce,
            hop_limit: interest.hop_limit().map(|hop_limit| hop_limit - 1),
            ingress: arrival.face,
            congestion_mark: arrival.headers.congestion_mark,
            non_discovery: arrival.headers.non_discovery,
        };
        match arrival.headers.next_hop_face_id {
            Some(next_hop) => self.send_where_told(idx, next_hop, &outbound, out),
            None if self.second.is_some()
                && self.ask_second_level((idx, inserted), arrival, interest, out) => {}
            None => self.send_by_strategy((idx, inserted), arrival, &outbound, out),
        }
    }

    #[cold]
    fn refuse_for_room(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        wire: &[u8],
        out: &mut impl Output,
    ) {
        let dropped = Dropped::interest(arrival.face, interest.name());
        self.drop_packet(DropReason::PitFull, dropped);
        self.nack_arrival(arrival, wire, NackReason::Congestion, out);
    }

    /// How the parameters of an Interest stand to those of the pending one that it joins, whose
    /// name has the same digest: of two that differ, one has another digest.
    #[cold]
    fn compare_parameters(&self, idx: EntryIdx, interest: &InterestView<'_>) -> Parameters {
        let Some(entry) = self.tables.pit().get(idx) else {
            return Parameters::Same;
        };
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
        &mut self,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        wire: &[u8],
        out: &mut impl Output,
    ) {
        let dropped = Dropped::interest(arrival.face, interest.name());
        self.drop_packet(DropReason::InterestLoop, dropped);
        let instance = self.strategies.find(interest.name(), arrival.hashes);
        if self.strategies.strategy_mut(instance).returns_nacks() {
            self.nack_arrival(arrival, wire, NackReason::Duplicate, out);
        }
    }

    /// Sends the Data if the content store has it, or returns what was seen of pending
    /// Interests on the way. Scope needs no second look: Data begins with the Interest's
    /// own first component.
    fn answer_from_store(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        out: &mut impl Output,
    ) -> Result<(), Missed> {
        if let Some(lent) = arrival.lent {
            return self.answer_with_lent(arrival, lent, out);
        }
        let enter = |step| out.enter(Block::of_step(step, Block::StoreLookup));
        let found = self
            .tables
            .find_data_by_step(interest, arrival.hashes, self.now, enter);
        let data = match found {
            Ok(data) => data,
            Err(missed) => {
                self.counters.n_cs_misses += 1;
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
        let announcement = if is_discovering && !self.announcements.is_empty() {
            let instance = self.strategies.find(interest.name(), arrival.hashes);
            let known = self.announcements.find(interest.name(), arrival.hashes);
            known.filter(|_| self.strategies.strategy_mut(instance).learns_routes())
        } else {
            None
        };
        out.enter(Block::DataTransmission);
        match announcement {
            Some(known) => out.send_data_announcing(arrival.face, data.wire(), &headers, known),
            None => out.send_data(arrival.face, data.wire(), &headers),
        }
        self.counters.n_cs_hits += 1;
        self.counters.n_satisfied_interests += 1;
        self.counters.n_out_data += 1;
        let marks = data.marks();
        if !marks.is_empty()
            && let Some(second) = &mut self.second
        {
            let name = &mut self.scratch.name;
            let next = second_level::handle_marked_hit(second, self.now, &data, name);
            self.follow_marked_hit(arrival.hashes, next);
        }
        Ok(())
    }

    /// Sends the Data of another engine's store: the Interest is too short to look for a
    /// route to what it names.
    #[cold]
    fn answer_with_lent(
        &mut self,
        arrival: &Arrival<'_>,
        lent: Lent<'_>,
        out: &mut impl Output,
    ) -> Result<(), Missed> {
        let headers = Headers {
            pit_token: arrival.headers.pit_token,
            incoming_face_id: Some(FaceId::CONTENT_STORE),
            ..Headers::default()
        };
        out.send_data(arrival.face, lent.wire, &headers);
        self.counters.n_cs_hits += u64::from(lent.is_in_memory);
        self.counters.n_cs_misses += u64::from(!lent.is_in_memory);
        self.counters.n_second_level_hits += u64::from(!lent.is_in_memory);
        self.counters.n_satisfied_interests += 1;
        self.counters.n_out_data += 1;
        Ok(())
    }

    /// Counts an Interest for which Data has come before any store was looked through.
    pub(crate) fn count_met(&mut self, arrival: &Arrival<'_>, interest: &InterestView<'_>) {
        self.counters.n_in_interests += 1;
        self.counters.n_cs_misses += 1;
        self.counters.n_satisfied_interests += 1;
        self.tables.note_miss(interest, arrival.hashes);
    }

    /// Answers it with that Data, which came from a face with these headers.
    pub(crate) fn send_to_met(
        &mut self,
        arrival: &Arrival<'_>,
        (data_face, data_headers): (FaceId, &Headers),
        data_wire: &[u8],
        out: &mut impl Output,
    ) {
        let headers = Headers {
            pit_token: arrival.headers.pit_token,
            incoming_face_id: Some(data_face),
            congestion_mark: data_headers.congestion_mark,
            ..Headers::default()
        };
        out.send_data(arrival.face, data_wire, &headers);
        self.counters.n_out_data += 1;
    }

    /// Notes who waits, and until when.
    fn join_downstream(
        &mut self,
        idx: EntryIdx,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        (nonce, flags): (Nonce, u8),
    ) -> Result<(), PitRefusal> {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let record = InRecord {
            face: arrival.face,
            nonce,
            expiry: self.expiry_of(interest),
            pit_token: arrival.headers.pit_token,
            hop_limit: interest.hop_limit(),
            flags: flags
                | flag(arrival.headers.non_discovery, NON_DISCOVERY)
                | flag(interest.stated_lifetime_ms().is_some(), STATES_LIFETIME),
            lifetime_ms: u32::try_from(interest.lifetime_ms()).unwrap_or(u32::MAX),
        };
        let joined = self.tables.pit_mut().insert_in_record(idx, record);
        let Some(entry) = self.tables.pit().get(idx) else {
            return joined;
        };
        match entry.in_records().map(|record| record.expiry).max() {
            // An entry that nobody waits for must not stay.
            None => {
                self.tables.remove_pending(idx);
            }
            // A refused Interest changes nothing: what is left may have expired already.
            Some(last) if joined.is_ok() && last != entry.expiry() => {
                self.tables.pit_mut().set_expiry(idx, last);
            }
            Some(_) => {}
        }
        joined
    }

    /// An entry that is satisfied, and lingers for slower upstreams, begins
    /// anew when it is asked for again.
    fn revive(&mut self, idx: EntryIdx) {
        let Some(entry) = self.tables.pit_mut().get_mut(idx) else {
            return;
        };
        if entry.satisfied {
            entry.satisfied = false;
            entry.strategy_state = Default::default();
            entry.retain_out_records(|_| false);
        }
    }

    /// A local program has chosen the next hop itself: the FIB does not matter,
    /// scope does.
    #[cold]
    fn send_where_told(
        &mut self,
        idx: EntryIdx,
        next_hop: FaceId,
        outbound: &Outbound<'_>,
        out: &mut impl Output,
    ) {
        let reach = reach_of(&self.faces, outbound);
        if is_eligible(&self.faces, next_hop, outbound.ingress, reach) {
            self.outgoing_interest(idx, &Departure::to(next_hop), outbound, out);
        } else {
            let dropped = Dropped::interest(outbound.ingress, outbound.interest.name());
            self.drop_packet(DropReason::NextHopFaceUnusable, dropped);
        }
    }

    pub(crate) fn send_by_strategy(
        &mut self,
        (idx, inserted): (EntryIdx, Inserted),
        arrival: &Arrival<'_>,
        outbound: &Outbound<'_>,
        out: &mut impl Output,
    ) {
        let interest = outbound.interest;
        out.enter(Block::Strategy);
        let instance = self.strategies.find(interest.name(), arrival.hashes);
        let mut state = match inserted {
            Inserted::New => EntryState::default(),
            Inserted::Existing => self.state_for(idx, instance),
        };
        let reach = reach_of(&self.faces, outbound);
        if reach == Reach::LocalOnly {
            self.count_management(interest);
        }
        let Some(entry) = self.tables.pit().get(idx) else {
            return;
        };
        let mut plan = std::mem::take(&mut self.scratch.plan);
        plan.clear();
        out.enter(Block::FibLookup);
        let mut route = find_route(
            arrival.fib,
            &self.key,
            &mut self.scratch.hint_hashes,
            interest,
            (arrival.hashes, arrival.probe),
            arrival.traits.scope,
        );
        if interest.can_be_prefix()
            && let Some(managed) = &self.management_prefix
            && managed.starts_with(interest.name())
        {
            let hashes = &mut self.scratch.hint_hashes;
            route = find_management(arrival.fib, &self.key, hashes, managed.view(), route);
        }
        out.enter(Block::Strategy);
        let mut ask = Ask {
            now: self.now,
            rng: &mut self.rng,
            faces: &self.faces,
            ingress: outbound.ingress,
            non_discovery: outbound.non_discovery,
            reach,
            entry,
            hashes: arrival.hashes,
            route,
            state: &mut state,
            remarks: Remarks::default(),
        };
        let verdict = self
            .strategies
            .strategy_mut(instance)
            .after_interest(&mut ask, &mut plan);
        let remarks = ask.remarks;
        self.save_state(idx, instance, state);
        if remarks.leads_back {
            self.learn_from_interest(arrival, interest, out);
        }
        if remarks.is_cut {
            let dropped = Dropped::interest(arrival.face, interest.name());
            self.drop_packet(DropReason::DiscoveryTooWide, dropped);
        }
        match verdict {
            Verdict::Forward => {
                for departure in &plan {
                    self.outgoing_interest(idx, departure, outbound, out);
                }
            }
            Verdict::Hold => self.counters.n_aggregated_interests += 1,
            Verdict::Strand => {
                let dropped = Dropped::interest(arrival.face, interest.name());
                self.drop_packet(DropReason::NoRoute, dropped);
            }
            Verdict::Reject => {
                let dropped = Dropped::interest(arrival.face, interest.name());
                self.drop_packet(DropReason::NoRoute, dropped);
                self.reject(idx, Refusal::own(NackReason::NoRoute), out);
            }
        }
        self.scratch.plan = plan;
    }

    /// Counts an Interest that may not leave this machine if it is for management.
    #[cold]
    fn count_management(&mut self, interest: &InterestView<'_>) {
        let managed = self.management_prefix.as_ref();
        let is_managed = managed.is_some_and(|it| interest.name().starts_with(it.view()));
        self.counters.n_cs_misses_of_management += u64::from(is_managed);
    }

    /// Records and sends one transmission.
    pub(crate) fn outgoing_interest(
        &mut self,
        idx: EntryIdx,
        departure: &Departure,
        outbound: &Outbound<'_>,
        out: &mut impl Output,
    ) {
        let Some(traits) = self.faces.find(departure.face) else {
            return;
        };
        out.enter(Block::InterestTransmission);
        if outbound.hop_limit == Some(0) && !traits.is_local() {
            let dropped = Dropped::interest(outbound.ingress, outbound.interest.name());
            return self.drop_packet(DropReason::HopLimitExhausted, dropped);
        }
        let nonce = match departure.nonce {
            DepartureNonce::AsReceived => outbound.nonce,
            DepartureNonce::Fresh => Nonce(self.rng.nonce_bytes()),
        };
        let record = OutRecord {
            face: departure.face,
            nonce,
            expiry: self.expiry_of(outbound.interest),
            last_sent: self.now,
            nack: None,
            strategy_word: departure.memory,
        };
        if self
            .tables
            .pit_mut()
            .insert_out_record(idx, record)
            .is_err()
        {
            let dropped = Dropped::interest(outbound.ingress, outbound.interest.name());
            return self.drop_packet(DropReason::OutRecordsFull, dropped);
        }
        if let Some(timeout) = departure.timeout {
            let wakeup = Wakeup {
                at: self.now + timeout,
                idx,
                face: departure.face,
                sent: self.now,
            };
            // Later, the Interest would begin anew anyway.
            if wakeup.at < record.expiry {
                self.wakeups.insert(wakeup, self.tables.pit());
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
        self.counters.n_out_interests += 1;
    }

    /// Whether a forwarding hint has led the Interest to its producer's region:
    /// a delegation is a prefix of a name this router's region has.
    fn is_in_producer_region(&self, interest: &InterestView<'_>) -> bool {
        interest.has_forwarding_hint()
            && delegations(interest).any(|delegation| {
                self.producer_regions
                    .iter()
                    .any(|region| region.starts_with(delegation))
            })
    }
}

/// How far an Interest may go, by its name and where it came from.
pub(crate) fn reach_of(faces: &FaceTable, outbound: &Outbound<'_>) -> Reach {
    reach_of_name(outbound.interest.name(), || {
        faces
            .find(outbound.ingress)
            .is_some_and(FaceTraits::is_local)
    })
}

/// How far an Interest for `name` may go; `is_from_here`: a local face has it.
#[inline]
pub(crate) fn reach_of_name(name: NameView<'_>, is_from_here: impl FnOnce() -> bool) -> Reach {
    if is_localhost(name) || is_localhop(name) && !is_from_here() {
        Reach::LocalOnly
    } else {
        Reach::Anywhere
    }
}

/// The delegations of a forwarding hint that are looked at.
fn delegations<'a>(interest: &InterestView<'a>) -> impl Iterator<Item = NameView<'a>> {
    interest.forwarding_hint().take(MAX_DELEGATIONS)
}

/// The route of management, for an Interest that Data under `managed` can answer though
/// its name is shorter; unless the name has a `route` of its own.
#[cold]
pub(crate) fn find_management<'a>(
    fib: &'a FibView<'_>,
    key: &HashKey,
    hashes: &mut NameHashes,
    managed: NameView<'a>,
    route: Option<FibMatch<'a>>,
) -> Option<FibMatch<'a>> {
    if let Some(route) = route
        && route.n_components() > 0
    {
        return Some(route);
    }
    hashes.clear();
    let span = hashes.push_name(key, managed);
    fib.find_longest(managed, hashes.slice(span))
}

/// What the FIB says of an Interest: of its name, or of the first delegation
/// of its forwarding hint that leads anywhere. A hint must not lead where a
/// name would not: what is under `/localhost` only `ingress` on this host finds.
pub(crate) fn find_route<'a>(
    fib: &'a FibView<'_>,
    key: &HashKey,
    hint_hashes: &mut NameHashes,
    interest: &InterestView<'a>,
    (hashes, probe): (&[NameHash], Option<&FibProbe>),
    ingress: Scope,
) -> Option<FibMatch<'a>> {
    if !interest.has_forwarding_hint() {
        let probe = probe.copied().unwrap_or_else(|| fib.probe(hashes));
        return fib.confirm(interest.name(), hashes, probe);
    }
    delegations(interest).find_map(|delegation| {
        if ingress == Scope::NonLocal && is_localhost(delegation) {
            return None;
        }
        hint_hashes.clear();
        let span = hint_hashes.push_name(key, delegation);
        fib.find_longest(delegation, hint_hashes.slice(span))
    })
}
