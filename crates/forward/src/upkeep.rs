//! What becomes due: expired entries, upstreams that have not answered in time, records
//! of faces that have gone, pending Interests that a new next hop may answer.
//!
//! Faces may come and go, and routes change, faster than the pending Interest
//! table can be walked; so each walk serves all such events since the last, and
//! walks keep a distance. What is to be done at once is bounded too: a walk stops
//! after some entries and goes on in the next call, behind the packets that have
//! come meanwhile.

use std::ops::Range;

use tachonym_packet::{FaceId, InterestView, MonoNs};
use tachonym_tables::{EntryIdx, FibView};

use crate::burst::Output;
use crate::faces::{FaceTraits, Scope};
use crate::interest::{Outbound, find_route};
use crate::pipelines::{NON_DISCOVERY, Pipelines, write_pending};
use crate::strategy::{Ask, Remarks};

/// Distance of two walks for faces that have gone, in milliseconds.
const SWEEP_INTERVAL_MS: u64 = 100;

/// Distance of two walks for new next hops, in milliseconds.
const OFFER_INTERVAL_MS: u64 = 10;

/// Most entries that one kind of work visits in a call; they take less than a
/// millisecond.
const MAX_ENTRIES_PER_CALL: usize = 1024;

/// Walks over the pending Interest table: wanted ones, and one under way.
#[derive(Debug, Default)]
struct Walk {
    is_wanted: bool,
    /// Where the walk under way goes on.
    next_place: Option<u32>,
    last: MonoNs,
}

impl Walk {
    /// When there is something to do, if walks begin `interval_ms` apart.
    fn due_at(&self, interval_ms: u64) -> Option<MonoNs> {
        match self.next_place {
            Some(_) => Some(self.last),
            None => self.is_wanted.then(|| self.last.plus_ms(interval_ms)),
        }
    }

    fn is_open(&self) -> bool {
        self.is_wanted || self.next_place.is_some()
    }

    /// The places to visit now, of `n_places`.
    fn step(&mut self, now: MonoNs, n_places: u32) -> Range<u32> {
        let start = self.next_place.take().unwrap_or_else(|| {
            // What happens from now on may be behind the walk already.
            self.is_wanted = false;
            0
        });
        self.last = now;
        let end = start.saturating_add(MAX_ENTRIES_PER_CALL as u32);
        self.next_place = (end < n_places).then_some(end);
        start..end.min(n_places)
    }
}

/// Work put off, and when it was last done.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// For records of faces that have gone.
    sweep: Walk,
    /// For pending Interests that new next hops may answer, since some strategy
    /// wants to hear of those.
    offer: Walk,
    highest_face: FaceId,
}

/// Why a pending Interest may be sent again without its consumer's asking.
#[derive(Clone, Copy, Debug)]
enum Occasion {
    NewNextHops,
    /// An upstream has nacked, or not answered in time.
    Silence,
}

impl Pipelines {
    /// Sets the clock and does what is due.
    pub(crate) fn handle_timers(&mut self, now: MonoNs, fib: &FibView<'_>, out: &mut impl Output) {
        self.now = self.now.max(now);
        self.expire(out);
        for _ in 0..MAX_ENTRIES_PER_CALL {
            let Some(late) = self.wakeups.pop_due(self.now, self.tables.pit()) else {
                break;
            };
            self.ask_elsewhere(late.idx, fib, out);
        }
        let is_due = |at: Option<MonoNs>| at.is_some_and(|at| at <= self.now);
        let sweeps = is_due(self.upkeep.sweep.due_at(SWEEP_INTERVAL_MS));
        let offers = is_due(self.upkeep.offer.due_at(OFFER_INTERVAL_MS));
        if self.second.is_some() {
            self.handle_second_level_timers(fib, out);
        }
        if sweeps {
            self.forget_gone_faces();
        }
        if offers {
            self.offer_to_new_next_hops(fib, out);
        }
    }

    pub(crate) fn next_timer(&self) -> Option<MonoNs> {
        let second = self.second.as_ref();
        let timers = [
            second.and_then(|second| second.poll_timeout()),
            self.tables.pit().next_expiry(),
            self.wakeups.next(),
            self.upkeep.sweep.due_at(SWEEP_INTERVAL_MS),
            self.upkeep.offer.due_at(OFFER_INTERVAL_MS),
        ];
        timers.into_iter().flatten().min()
    }

    /// A face is new. If its number was another's before, what was pending
    /// there must not become its own.
    pub(crate) fn note_new_face(&mut self, face: FaceId) {
        if face > self.upkeep.highest_face {
            self.upkeep.highest_face = face;
            return;
        }
        self.faces.forget_past(face);
        if self.upkeep.sweep.is_open() {
            self.upkeep.sweep.next_place = None;
            self.forget_gone_faces();
            while self.upkeep.sweep.next_place.is_some() {
                self.forget_gone_faces();
            }
        }
    }

    /// A face has gone.
    pub(crate) fn note_gone_face(&mut self) {
        self.upkeep.sweep.is_wanted = true;
    }

    pub(crate) fn note_new_next_hop(&mut self) {
        self.upkeep.offer.is_wanted |= self.strategies.any_wants_new_next_hops();
    }

    fn expire<O: Output>(&mut self, out: &mut O) {
        let mut expired = std::mem::take(&mut self.scratch.expired);
        expired.clear();
        self.tables
            .pit_mut()
            .expire_some(self.now, MAX_ENTRIES_PER_CALL, &mut expired);
        for &idx in &expired {
            if O::NOTES_UNANSWERED
                && let Some(entry) = self.tables.pit().get(idx).filter(|it| !it.satisfied)
            {
                let from = entry.in_records().next().map(|record| record.face);
                let mut sent_to = entry.out_records().map(|record| record.face);
                out.note_unanswered(&entry.interest(), from, &mut sent_to);
            }
            self.end(idx);
        }
        self.scratch.expired = expired;
    }

    /// Removes the records of faces that have gone, and entries that nobody
    /// else waits for.
    fn forget_gone_faces(&mut self) {
        if self.upkeep.sweep.next_place.is_none() {
            self.faces.begin_sweep();
        }
        let places = self
            .upkeep
            .sweep
            .step(self.now, self.tables.pit().n_places());
        let is_gone = |face: FaceId| !self.faces.contains(face);
        let mut touched = std::mem::take(&mut self.scratch.walked);
        touched.clear();
        touched.extend(
            self.tables
                .pit()
                .iter_places(places)
                .filter(|(_, entry)| {
                    entry.in_records().any(|record| is_gone(record.face))
                        || entry.out_records().any(|record| is_gone(record.face))
                })
                .map(|(idx, _)| idx),
        );
        for &idx in &touched {
            self.forget_gone_faces_in(idx);
        }
        self.scratch.walked = touched;
    }

    fn forget_gone_faces_in(&mut self, idx: EntryIdx) {
        let faces = &self.faces;
        self.tables
            .pit_mut()
            .retain_in_records(idx, |record| faces.contains(record.face));
        let Some(entry) = self.tables.pit_mut().get_mut(idx) else {
            return;
        };
        if entry.n_in_records() == 0 && !entry.satisfied {
            return self.end_unsatisfied(idx);
        }
        // With several engines, Data that the face brought may not be here yet, and counts
        // only with the record. The next sweep takes it.
        let mut is_kept = false;
        entry.retain_out_records(|record| {
            let is_late = !faces.contains(record.face) && faces.went_lately(record.face);
            is_kept |= is_late;
            is_late || faces.contains(record.face)
        });
        self.upkeep.sweep.is_wanted |= is_kept;
    }

    /// Sends pending Interests to next hops they have not been sent to, where
    /// the strategy wants that.
    fn offer_to_new_next_hops(&mut self, fib: &FibView<'_>, out: &mut impl Output) {
        let places = self
            .upkeep
            .offer
            .step(self.now, self.tables.pit().n_places());
        let mut pending = std::mem::take(&mut self.scratch.walked);
        pending.clear();
        pending.extend(
            self.tables
                .pit()
                .iter_places(places)
                .filter(|(_, entry)| !entry.satisfied && !entry.awaits_store())
                .map(|(idx, _)| idx),
        );
        let mut wire = std::mem::take(&mut self.scratch.interest);
        for &idx in &pending {
            self.send_more(idx, Occasion::NewNextHops, fib, &mut wire, out);
        }
        self.scratch.interest = wire;
        self.scratch.walked = pending;
    }

    /// Sends a pending Interest elsewhere, now that an upstream has failed it,
    /// where the strategy wants that.
    pub(crate) fn ask_elsewhere(
        &mut self,
        idx: EntryIdx,
        fib: &FibView<'_>,
        out: &mut impl Output,
    ) {
        let mut wire = std::mem::take(&mut self.scratch.interest);
        self.send_more(idx, Occasion::Silence, fib, &mut wire, out);
        self.scratch.interest = wire;
    }

    fn send_more(
        &mut self,
        idx: EntryIdx,
        occasion: Occasion,
        fib: &FibView<'_>,
        wire: &mut Vec<u8>,
        out: &mut impl Output,
    ) {
        let Some((instance, mut state)) = self.strategy_of(idx) else {
            return;
        };
        let strategy = self.strategies.strategy_mut(instance);
        let is_wanted = match occasion {
            Occasion::NewNextHops => strategy.wants_new_next_hops(),
            Occasion::Silence => strategy.wants_silence(),
        };
        if !is_wanted {
            return;
        }
        let Some(entry) = self.tables.pit().get(idx) else {
            return;
        };
        write_pending(entry, self.now, wire);
        let interest = InterestView::parse(wire).expect("written as an Interest");
        let hashes = &mut self.scratch.name_hashes;
        hashes.clear();
        let span = hashes.push_name(&self.key, interest.name());
        let hint_hashes = &mut self.scratch.hint_hashes;
        let hashes = hashes.slice(span);
        let is_all_local = entry.in_records().all(|record| {
            let traits = self.faces.find(record.face);
            traits.is_some_and(FaceTraits::is_local)
        });
        let ingress = if is_all_local {
            Scope::Local
        } else {
            Scope::NonLocal
        };
        let route = find_route(
            fib,
            &self.key,
            hint_hashes,
            &interest,
            (hashes, None),
            ingress,
        );
        let mut plan = std::mem::take(&mut self.scratch.plan);
        plan.clear();
        let live = entry.in_records().filter(|record| record.expiry > self.now);
        // One downstream that may be served there is enough.
        let outbound = live
            .map(|record| Outbound {
                interest: &interest,
                nonce: record.nonce,
                hop_limit: interest
                    .hop_limit()
                    .map(|hop_limit| hop_limit.saturating_sub(1)),
                ingress: record.face,
                congestion_mark: 0,
                non_discovery: record.flags & NON_DISCOVERY != 0,
            })
            .find(|outbound| {
                let ask = Ask {
                    now: self.now,
                    rng: &mut self.rng,
                    faces: &self.faces,
                    ingress: outbound.ingress,
                    non_discovery: outbound.non_discovery,
                    reach: crate::interest::reach_of(&self.faces, outbound),
                    entry,
                    hashes,
                    route,
                    state: &mut state,
                    remarks: Remarks::default(),
                };
                let strategy = self.strategies.strategy_mut(instance);
                match occasion {
                    Occasion::NewNextHops => strategy.after_new_next_hops(&ask, &mut plan),
                    Occasion::Silence => strategy.after_silence(&ask, &mut plan),
                }
                !plan.is_empty()
            });
        if let Some(outbound) = outbound {
            for departure in &plan {
                self.outgoing_interest(idx, departure, &outbound, out);
            }
        }
        self.scratch.plan = plan;
    }
}
