//! What becomes due: expired entries, upstreams that have not answered in time, records
//! of faces that have gone, pending Interests that a new next hop may answer.
//!
//! Faces may come and go, and routes change, faster than the pending Interest
//! table can be walked; so each walk serves all such events since the last, and
//! walks keep a distance. The work of one call is bounded too: a walk stops
//! after some entries and continues in the next call, behind the packets that have
//! come meanwhile.

use tachonym_packet::{FaceId, MonoNs};
use tachonym_tables::FibView;

use crate::burst::Output;
use crate::pending::end;
use crate::retry::{Occasion, retry};
use crate::second_level;
use crate::state::{Core, MAX_ENTRIES_PER_CALL, Scratch, State};

impl State {
    /// Sets the clock and does what is due.
    pub(crate) fn handle_timers(&mut self, now: MonoNs, fib: &FibView<'_>, out: &mut impl Output) {
        let Self {
            core,
            second,
            upkeep,
        } = self;
        core.world.advance(now);
        let now = core.world.now;
        expire(core, out);
        for _ in 0..MAX_ENTRIES_PER_CALL {
            let tables = &mut core.tables;
            let Some(late) = tables.wakeups.pop_due(now, tables.pit_cs.pit()) else {
                break;
            };
            retry(core, fib, late.idx, Occasion::Silence, out);
        }
        if second.level.is_some() {
            second_level::handle_timers(core, second, fib, out);
        }
        if upkeep.sweep.is_due(now) {
            self.forget_gone_faces();
        }
        if self.upkeep.retry.is_due(now) {
            self.retry_new_next_hops(fib, out);
        }
    }

    /// When [`Self::handle_timers`] next has work.
    pub(crate) fn next_timer(&self) -> Option<MonoNs> {
        let level = self.second.level.as_ref();
        let tables = &self.core.tables;
        let timers = [
            level.and_then(|level| level.poll_timeout()),
            tables.pit_cs.pit().next_expiry(),
            tables.wakeups.next(),
            self.upkeep.sweep.due_at(),
            self.upkeep.retry.due_at(),
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
        self.core.world.faces.forget_past(face);
        if self.upkeep.sweep.is_open() {
            self.upkeep.sweep.restart();
            self.forget_gone_faces();
            while self.upkeep.sweep.is_under_way() {
                self.forget_gone_faces();
            }
        }
    }

    /// A face has gone.
    pub(crate) fn note_gone_face(&mut self) {
        self.upkeep.sweep.is_wanted = true;
    }

    pub(crate) fn note_new_next_hop(&mut self) {
        self.upkeep.retry.is_wanted |= self.core.world.strategies.any_wants_new_next_hops();
    }

    /// Removes the records of faces that have gone, and entries without another downstream.
    fn forget_gone_faces(&mut self) {
        let Core {
            tables,
            world,
            scratch,
        } = &mut self.core;
        let sweep = &mut self.upkeep.sweep;
        if !sweep.is_under_way() {
            world.faces.begin_sweep();
        }
        let pit = tables.pit_cs.pit();
        let places = sweep.step(world.now, pit.n_places());
        let is_gone = |face: FaceId| !world.faces.contains(face);
        let touched = pit.iter_places(places).filter(|(_, entry)| {
            entry.in_records().any(|record| is_gone(record.face))
                || entry.out_records().any(|record| is_gone(record.face))
        });
        scratch.walked.clear();
        scratch.walked.extend(touched.map(|(idx, _)| idx));
        for &idx in &scratch.walked {
            let (mut entry, faces) = (tables.pit_cs.matched(idx), &world.faces);
            entry.retain_in_records(|record| faces.contains(record.face));
            if entry.n_in_records() == 0 && !entry.satisfied {
                end(entry, &mut tables.dead_nonces, world);
                continue;
            }
            // With several engines, Data that the face brought may not be here yet, and counts
            // only with the record. The next sweep takes it.
            entry.retain_out_records(|record| {
                let is_late = !faces.contains(record.face) && faces.went_lately(record.face);
                sweep.is_wanted |= is_late;
                is_late || faces.contains(record.face)
            });
        }
    }

    /// Sends pending Interests to next hops they have not been sent to, where
    /// the strategy does that.
    fn retry_new_next_hops(&mut self, fib: &FibView<'_>, out: &mut impl Output) {
        let core = &mut self.core;
        let pit = core.tables.pit_cs.pit();
        let places = self.upkeep.retry.step(core.world.now, pit.n_places());
        let Scratch { walked, .. } = &mut core.scratch;
        walked.clear();
        let unanswered = pit
            .iter_places(places)
            .filter(|(_, entry)| !entry.satisfied && !entry.awaits_store());
        walked.extend(unanswered.map(|(idx, _)| idx));
        for n in 0..core.scratch.walked.len() {
            let idx = core.scratch.walked[n];
            retry(core, fib, idx, Occasion::NewNextHops, out);
        }
    }
}

/// Ends entries that have expired.
fn expire<O: Output>(core: &mut Core, out: &mut O) {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let expired = &mut scratch.walked;
    expired.clear();
    let pit = tables.pit_cs.pit_mut();
    pit.expire_some(world.now, MAX_ENTRIES_PER_CALL, expired);
    for &idx in &*expired {
        let entry = tables.pit_cs.matched(idx);
        if O::NOTES_UNANSWERED && !entry.satisfied {
            let from = entry.in_records().next().map(|record| record.face);
            let mut sent_to = entry.out_records().map(|record| record.face);
            out.note_unanswered(&entry.interest(), from, &mut sent_to);
        }
        end(entry, &mut tables.dead_nonces, world);
    }
}
