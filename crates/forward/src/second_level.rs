//! The way to the second level of the content store, and back.
//!
//! An Interest that the first level cannot answer, and the second seems to have Data for, is
//! pending as any other, but goes nowhere: its entry *awaits the store*. When the batch has
//! been read, its chunks are put into the first level, and each answers whoever waits for it,
//! whether he asked for this read or not. Who still waits then goes upstream, as if he had
//! come now. So an Interest is aggregated, expires and is told apart from a loop as ever.
//!
//! The engine makes no input or output: its owner takes requests from the second level to a
//! device, and completions back ([`Engine::handle_completion`]).

use tachonym_packet::lp::Headers;
use tachonym_packet::{DataView, FaceId, InterestView, MonoNs, NameHash, NameView, SourceId};
use tachonym_store::device::Completion;
use tachonym_store::layout::MAX_BATCH_LEN;
use tachonym_store::{
    Novelty, Offered, Place, Recall, Recalled, RecalledChunk, SecondLevel, Sharer,
};
use tachonym_tables::{
    Admission, DataRef, EntryIdx, FibView, InRecord, Inserted, Marks, NotAdmitted, PitEntry,
    Regained,
};

use crate::block::Block;
use crate::burst::Output;
use crate::data::Delivery;
use crate::engine::Engine;
use crate::faces::{FaceTraits, Scope};
use crate::interest::{Outbound, find_route, reach_of};
use crate::pipelines::{Arrival, NON_DISCOVERY, Pipelines, write_pending};
use crate::sought::{SoughtReads, is_seeker};
use crate::strategy::is_eligible;

/// When this Data answers, the next batch of its object is to be read, if the first level does
/// not have it. After that was looked for, it mostly leaves the first level later than this.
/// Where it was sooner after all, and somebody has had to wait for it, it is looked for anew.
const TRIGGERS: Marks = Marks::new(1);
/// When this Data answers, it is to be offered to the second level again.
const IS_TO_BE_OFFERED: Marks = Marks::new(2);

/// Answers for which the first level is believed to have the next batch once it has had it.
const N_BELIEVED: u8 = Marks::MAX_PAUSE;

/// How long it is remembered that the second level has no fresh Data of a name.
pub(crate) const STALE_MS: u64 = 1_000;

/// How far the clock that freshness is kept by may be set back without being taken for wrong.
const CLOCK_SLACK_MS: u64 = 100;

/// Names of which that is remembered.
const N_STALE: usize = 1_024;

/// How long after an Interest found no read a Data that comes may be one that the second level
/// has already, in milliseconds: about as long as upstreams take to answer.
const UNREAD_MS: u64 = 4_000;

/// Whose share of the reads an Interest counts to, by the source of its face.
pub(crate) const fn sharer_of(source: SourceId) -> Sharer {
    source.to_bits()
}

/// What a face would be that Data of the second level came from.
const STORE_TRAITS: FaceTraits = FaceTraits::LOCAL;

/// Names for which the second level has lately had no Data that was fresh: who asks for fresh
/// Data again and again shall not have the same batch read each time.
#[derive(Debug)]
pub(crate) struct KnownStale {
    names: Box<[(NameHash, MonoNs)]>,
}

impl Default for KnownStale {
    fn default() -> Self {
        Self {
            names: vec![(NameHash(0), MonoNs::ZERO); N_STALE].into(),
        }
    }
}

impl KnownStale {
    fn place(name: NameHash) -> usize {
        name.0 as usize % N_STALE
    }

    pub(crate) fn add(&mut self, name: NameHash, until: MonoNs) {
        self.names[Self::place(name)] = (name, until);
    }

    pub(crate) fn contains(&self, name: NameHash, now: MonoNs) -> bool {
        let (known, until) = self.names[Self::place(name)];
        known == name && now < until
    }
}

/// Until when a Data of the second level is fresh, if it is noted with that time: none is for
/// longer than its period, unless the clock was set back.
pub(crate) fn credible(noted: MonoNs, data: &DataView<'_>, now: MonoNs) -> MonoNs {
    let period_ms = data.freshness_period_ms();
    match noted <= now.plus_ms(period_ms.saturating_add(CLOCK_SLACK_MS)) {
        true => noted,
        false => MonoNs::ZERO,
    }
}

/// What is to be done after a Data with marks has answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    /// Its neighbours are to be read; its name is in the buffer.
    reads_ahead: bool,
    /// It is not to be offered again.
    is_offered: bool,
}

/// A Data with marks has answered an Interest. Leaves its name in `name`.
#[cold]
pub(crate) fn handle_marked_hit(
    second: &mut SecondLevel,
    now: MonoNs,
    data: &DataRef<'_>,
    name: &mut Vec<u8>,
) -> Next {
    let marks = data.marks();
    let data = data.view();
    name.clear();
    name.extend_from_slice(data.name().value_bytes());
    let mut next = Next {
        reads_ahead: marks.include(TRIGGERS),
        is_offered: false,
    };
    if marks.include(IS_TO_BE_OFFERED) {
        let hash = second.request_hash(data.name());
        second.note_request(hash);
        next.is_offered = second.offer(now, &data, hash, Novelty::New) != Offered::NotAdmitted;
    }
    next
}

impl Pipelines {
    /// Does what [`handle_marked_hit`] says.
    #[cold]
    pub(crate) fn follow_marked_hit(&mut self, hashes: &[NameHash], next: Next) {
        let name = std::mem::take(&mut self.scratch.name);
        if let Ok(view) = NameView::parse_value(&name) {
            let mut is_done = false;
            if next.reads_ahead
                && let Some(mut second) = self.second.take()
            {
                is_done = self.read_ahead(&mut second, view);
                self.second = Some(second);
            }
            let hash = match hashes.get(view.len()) {
                // The Interest had this name, or a longer one.
                Some(&hash) => hash,
                None => self.key.hash_name(view),
            };
            self.tables.change_marks(view, hash, |marks| {
                let marks = match next.is_offered {
                    true => marks.without(IS_TO_BE_OFFERED),
                    false => marks,
                };
                match is_done && marks == TRIGGERS {
                    true => marks.after(N_BELIEVED),
                    false => marks,
                }
            });
        }
        self.scratch.name = name;
    }

    /// Has what follows a chunk read; false if not all of it can be now.
    fn read_ahead(&self, second: &mut SecondLevel, name: NameView<'_>) -> bool {
        second.read_ahead(self.now, name, |first| {
            let hash = self.key.hash_name(first);
            self.tables.has_data_named(first, hash)
        })
    }

    /// Somebody has to wait for a chunk: when the batch before it is asked for again, this one
    /// is to be read ahead.
    fn mark_batch_before(&mut self, second: &SecondLevel, name: NameView<'_>) {
        let buffer = &mut self.scratch.name;
        if second.write_trigger_before(name, buffer)
            && let Ok(trigger) = NameView::parse_value(buffer)
        {
            let hash = self.key.hash_name(trigger);
            self.tables
                .change_marks(trigger, hash, |marks| marks.with(TRIGGERS).after(0));
        }
    }

    /// Has the second level asked about an Interest that has just become pending, or was so
    /// before. True if nobody else is to be asked now.
    pub(crate) fn ask_second_level(
        &mut self,
        (idx, inserted): (EntryIdx, Inserted),
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        out: &mut impl Output,
    ) -> bool {
        if inserted == Inserted::Existing {
            let entry = self.tables.pit().get(idx);
            let is_waiting = entry.is_some_and(PitEntry::awaits_store);
            self.counters.n_aggregated_interests += u64::from(is_waiting);
            return is_waiting;
        }
        let Some(mut second) = self.second.take() else {
            return false;
        };
        let is_answered = self
            .seek(&mut second, arrival, interest)
            .is_some_and(|place| self.recall(&mut second, (idx, place), arrival, interest, out));
        self.second = Some(second);
        is_answered
    }

    /// Where the second level has a Data for an Interest, as far as it knows.
    fn seek(
        &mut self,
        second: &mut SecondLevel,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
    ) -> Option<Place> {
        let is_hopeless = || {
            // What the first level has of this name is no older, and not fresh enough.
            let hash = arrival.name_hash();
            interest.must_be_fresh()
                && (self.tables.has_data_named(interest.name(), hash)
                    || self.known_stale.contains(hash, self.now))
        };
        if !self.tables.cs().serves() || is_hopeless() {
            return None;
        }
        second.find(interest)
    }

    /// Gets what the second level has found. True if it is on its way, or has been sent.
    fn recall(
        &mut self,
        second: &mut SecondLevel,
        (idx, place): (EntryIdx, Place),
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        out: &mut impl Output,
    ) -> bool {
        let waiter = (
            idx.to_bits(),
            sharer_of(arrival.traits.source_of(arrival.face)),
        );
        match second.recall(self.now, place, waiter) {
            Recall::Here(wire, fresh_until) => {
                let chunk = RecalledChunk {
                    wire,
                    fresh_until,
                    is_trigger: false,
                };
                self.take_chunks([chunk].into_iter(), arrival.fib, out);
                self.tables.pit().get(idx).is_none()
            }
            recall @ (Recall::Reading | Recall::Joined) => {
                let is_new = matches!(recall, Recall::Reading);
                if let Some(entry) = self.tables.pit_mut().get_mut(idx) {
                    entry.set_awaits_store(true);
                }
                if is_new {
                    self.mark_batch_before(second, interest.name());
                }
                true
            }
            Recall::Busy => {
                self.unread_until = self.now.plus_ms(UNREAD_MS);
                false
            }
            Recall::Gone => {
                self.counters.n_second_level_failures += 1;
                false
            }
        }
    }

    /// Takes a batch that has been read, or could not be.
    fn take_batch(
        &mut self,
        second: &mut SecondLevel,
        recalled: &Recalled,
        fib: &FibView<'_>,
        out: &mut impl Output,
    ) {
        if recalled.waiters().any(is_seeker) {
            self.take_for_seekers(recalled);
        }
        if let Some((name, hash)) = self.take_chunks(recalled.chunks(), fib, out)
            && self.read_ahead(second, name)
        {
            self.tables
                .change_marks(name, hash, |marks| marks.after(N_BELIEVED));
        }
        for waiter in recalled.waiters().filter(|&it| !is_seeker(it)) {
            let idx = EntryIdx::from_bits(waiter);
            let Some(entry) = self.tables.pit_mut().get_mut(idx) else {
                continue;
            };
            if !entry.awaits_store() {
                continue;
            }
            entry.set_awaits_store(false);
            if entry.must_be_fresh() {
                let until = self.now.plus_ms(STALE_MS);
                self.known_stale.add(entry.name_hash(), until);
            }
            self.counters.n_second_level_failures += 1;
            self.resume(idx, fib, out);
        }
    }

    /// Puts chunks into the first level, after they have answered who waits for them. The name
    /// of the one after which the next batch is to be read, if somebody wanted it.
    ///
    /// As with a burst, what each looks at is on its way to the cache while others are dealt
    /// with.
    fn take_chunks<'r>(
        &mut self,
        chunks: impl Iterator<Item = RecalledChunk<'r>>,
        fib: &FibView<'_>,
        out: &mut impl Output,
    ) -> Option<(NameView<'r>, NameHash)> {
        let mut all = [None; MAX_BATCH_LEN];
        // Whoever can write to the disk can put anything there.
        let data = chunks.filter_map(|chunk| Some((chunk, DataView::parse(chunk.wire).ok()?)));
        for (place, chunk) in all.iter_mut().zip(data) {
            *place = Some(chunk);
        }
        let all = all.iter().flatten();
        let mut hashes = std::mem::take(&mut self.scratch.recalled_hashes);
        let mut spans = std::mem::take(&mut self.scratch.recalled_spans);
        hashes.clear();
        spans.clear();
        let names = all.clone().map(|(_, data)| data.name());
        hashes.push_burst(&self.key, names, &mut spans);
        for &span in &spans {
            self.tables.prefetch_buckets_for_data(hashes.slice(span));
        }
        for &span in &spans {
            self.tables.prefetch_entries_for_data(hashes.slice(span));
        }
        let mut trigger = None;
        for ((chunk, data), &span) in all.zip(&spans) {
            self.tables.prefetch_victims();
            let hashes = hashes.slice(span);
            let is_wanted = self.take_chunk(chunk, data, (hashes, fib), out);
            if is_wanted && chunk.is_trigger {
                trigger = Some((data.name(), hashes[data.name().len()]));
            }
        }
        self.scratch.recalled_hashes = hashes;
        self.scratch.recalled_spans = spans;
        trigger
    }

    /// The same for one, whose name has these hashes. Whether anybody waited for it.
    fn take_chunk(
        &mut self,
        chunk: &RecalledChunk<'_>,
        data: &DataView<'_>,
        (hashes, fib): (&[NameHash], &FibView<'_>),
        out: &mut impl Output,
    ) -> bool {
        let fresh_until = credible(chunk.fresh_until, data, self.now);
        let arrival = Arrival {
            face: FaceId::CONTENT_STORE,
            traits: STORE_TRAITS,
            headers: &Headers::EMPTY,
            announcement: None,
            lent: None,
            hashes,
            fib,
            probe: None,
        };
        let is_wanted = self.answer_with(&arrival, data, fresh_until, out);
        out.enter(Block::StoreInsertion);
        let period_ms = data.freshness_period_ms();
        let regained = Regained {
            fresh_until: fresh_until.min(self.now.plus_ms(period_ms)),
            marks: match chunk.is_trigger {
                true => TRIGGERS,
                false => Marks::NONE,
            },
            has_answered: is_wanted,
        };
        self.tables.insert_recalled(data, hashes, regained);
        is_wanted
    }

    /// Sends a Data of the second level to who waits for it; whether anybody did.
    fn answer_with(
        &mut self,
        arrival: &Arrival<'_>,
        data: &DataView<'_>,
        fresh_until: MonoNs,
        out: &mut impl Output,
    ) -> bool {
        out.enter(Block::PendingRemoval);
        let mut matches = std::mem::take(&mut self.scratch.matches);
        self.tables
            .matches_for_data(data, arrival.hashes, &mut matches);
        let is_fresh = self.now < fresh_until;
        matches.retain(|&idx| {
            let entry = self.tables.pit().get(idx);
            entry.is_some_and(|entry| !entry.satisfied && (is_fresh || !entry.must_be_fresh()))
        });
        if !matches.is_empty() {
            out.enter(Block::DataTransmission);
            let delivery = Delivery {
                arrival,
                data,
                announcement: None,
            };
            self.deliver(&matches, &delivery, out);
            for &idx in &matches {
                self.counters.n_satisfied_interests += 1;
                self.counters.n_second_level_hits += 1;
                let entry = self.tables.pit().get(idx);
                if entry.is_some_and(PitEntry::must_be_fresh)
                    && data.freshness_period_ms() < self.dead_nonce_lifetime_ms
                {
                    self.bury_nonces(idx);
                }
                self.tables.remove_pending(idx);
            }
        }
        let is_wanted = !matches.is_empty();
        self.scratch.matches = matches;
        is_wanted
    }

    /// Sends a pending Interest on that has waited for the second level in vain: for the first
    /// downstream that a next hop may serve.
    #[cold]
    fn resume(&mut self, idx: EntryIdx, fib: &FibView<'_>, out: &mut impl Output) {
        let Some(entry) = self.tables.pit().get(idx) else {
            return;
        };
        let is_all_local = entry.in_records().all(|record| {
            let traits = self.faces.find(record.face);
            traits.is_some_and(FaceTraits::is_local)
        });
        let scope = match is_all_local {
            true => Scope::Local,
            false => Scope::NonLocal,
        };
        let mut wire = std::mem::take(&mut self.scratch.interest);
        write_pending(entry, self.now, &mut wire);
        let interest = InterestView::parse(&wire).expect("written as an Interest");
        let mut name_hashes = std::mem::take(&mut self.scratch.recalled_hashes);
        name_hashes.clear();
        let span = name_hashes.push_name(&self.key, interest.name());
        let hashes = name_hashes.slice(span);
        let hint_hashes = &mut self.scratch.hint_hashes;
        let route = find_route(
            fib,
            &self.key,
            hint_hashes,
            &interest,
            (hashes, None),
            scope,
        );
        let outbound_for = |record: &InRecord| Outbound {
            interest: &interest,
            nonce: record.nonce,
            hop_limit: interest
                .hop_limit()
                .map(|hop_limit| hop_limit.saturating_sub(1)),
            ingress: record.face,
            congestion_mark: 0,
            non_discovery: record.flags & NON_DISCOVERY != 0,
        };
        let may_be_served = |record: &&InRecord| {
            let reach = reach_of(&self.faces, &outbound_for(record));
            let mut next_hops = route.iter().flat_map(|route| route.next_hops().iter());
            next_hops.any(|hop| is_eligible(&self.faces, hop.face(), record.face, reach))
        };
        let is_there = |record: &&InRecord| record.expiry > self.now;
        let live = || entry.in_records().filter(is_there);
        let live = || live().filter_map(|it| Some((it, self.faces.find(it.face)?)));
        let chosen = live().find(|(record, _)| may_be_served(record));
        if let Some((record, traits)) = chosen.or_else(|| live().next()) {
            let headers = Headers {
                pit_token: record.pit_token,
                non_discovery: record.flags & NON_DISCOVERY != 0,
                ..Headers::default()
            };
            let arrival = Arrival {
                face: record.face,
                traits: FaceTraits { scope, ..traits },
                headers: &headers,
                announcement: None,
                lent: None,
                hashes,
                fib,
                probe: None,
            };
            let outbound = outbound_for(record);
            self.send_by_strategy((idx, Inserted::New), &arrival, &outbound, out);
        }
        self.scratch.recalled_hashes = name_hashes;
        self.scratch.interest = wire;
    }

    /// Offers a Data that has come to the second level.
    pub(crate) fn offer_to_second_level(
        &mut self,
        data: &DataView<'_>,
        hashes: &[NameHash],
        admission: Admission,
    ) {
        let Some(second) = &mut self.second else {
            return;
        };
        if admission == Admission::NotAdmitted(NotAdmitted::AdmitOff) {
            return;
        }
        let name = data.name();
        let novelty = match admission {
            // It was offered when it was not there yet.
            Admission::Refreshed => return,
            Admission::Replaced => Novelty::Replacement,
            // The second level may have one that is not fresh, or that there was no read for.
            _ if self.now < self.unread_until
                || self.known_stale.contains(hashes[name.len()], self.now) =>
            {
                Novelty::Unsure
            }
            _ => Novelty::New,
        };
        let hash = second.request_hash(name);
        let offered = second.offer(self.now, data, hash, novelty);
        let mut marks = Marks::NONE;
        if second.is_trigger(name) {
            marks = marks.with(TRIGGERS);
        }
        if offered == Offered::NotAdmitted && second.admission_learns() {
            marks = marks.with(IS_TO_BE_OFFERED);
        }
        if !marks.is_empty() {
            let hash = hashes[name.len()];
            self.tables.change_marks(name, hash, |_| marks);
        }
    }

    /// Takes what waited for reads that were given up.
    fn take_given_up(&mut self, fib: &FibView<'_>, out: &mut impl Output) {
        let Some(mut second) = self.second.take() else {
            return;
        };
        while let Some(recalled) = second.poll_given_up() {
            self.take_batch(&mut second, &recalled, fib, out);
            second.recycle(recalled);
        }
        self.second = Some(second);
    }

    /// Does what has become due in the second level.
    pub(crate) fn handle_second_level_timers(&mut self, fib: &FibView<'_>, out: &mut impl Output) {
        let now = self.now;
        let Some(second) = &mut self.second else {
            return;
        };
        if second.poll_timeout().is_some_and(|at| at <= now) {
            second.handle_timeout(now);
            self.take_given_up(fib, out);
        }
    }
}

impl Engine {
    /// Puts a second level behind the content store, or takes it away.
    pub fn set_second_level(&mut self, second: Option<SecondLevel>) -> Option<SecondLevel> {
        let before = self.pipelines.second.take();
        self.pipelines.sought = SoughtReads::default();
        self.pipelines.second = second.map(Box::new);
        before.map(|before| *before)
    }

    /// The second level of the content store, if there is one.
    #[must_use]
    pub fn second_level(&self) -> Option<&SecondLevel> {
        self.pipelines.second.as_deref()
    }

    /// The same, to be changed.
    pub fn second_level_mut(&mut self) -> Option<&mut SecondLevel> {
        self.pipelines.second.as_deref_mut()
    }

    /// Erases all Data under `prefix` from the second level, and begins to make that last; how
    /// many of them were in memory. What lies on disks is not counted.
    pub fn erase_second_level(&mut self, now: MonoNs, prefix: NameView<'_>) -> usize {
        let Some(second) = &mut self.pipelines.second else {
            return 0;
        };
        let n_erased = second.erase(now, prefix);
        second.flush(now);
        n_erased
    }

    /// Takes what has become of a request of the second level, and answers who waited for it.
    pub fn handle_completion(
        &mut self,
        now: MonoNs,
        completion: Completion,
        out: &mut impl Output,
    ) {
        let fib = self.fib.pin();
        let pipelines = &mut self.pipelines;
        pipelines.now = pipelines.now.max(now);
        let Some(mut second) = pipelines.second.take() else {
            return;
        };
        if let Some(recalled) = second.handle_completion(pipelines.now, completion) {
            pipelines.take_batch(&mut second, &recalled, &fib, out);
            second.recycle(recalled);
        }
        pipelines.second = Some(second);
        pipelines.take_given_up(&fib, out);
    }
}
