//! What becomes due: expired entries, upstreams that have not answered in time, records
//! of faces that have gone, pending Interests that a new next hop may answer.
//!
//! Faces may come and go, and routes change, faster than the pending Interest
//! table can be walked; so each walk serves all such events since the last, and
//! walks keep a distance.

use tachonym_packet::{FaceId, InterestView, MonoNs};
use tachonym_tables::EntryIdx;

use crate::burst::Output;
use crate::interest::{Outbound, find_route};
use crate::pipelines::Pipelines;
use crate::strategy::Ask;

/// Distance of two walks for faces that have gone, in milliseconds.
const SWEEP_INTERVAL_MS: u64 = 100;

/// Distance of two walks for new next hops, in milliseconds.
const OFFER_INTERVAL_MS: u64 = 10;

/// Work put off, and when it was last done.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// Faces have gone, and their records may still be there.
    has_gone_faces: bool,
    last_sweep: MonoNs,
    /// The FIB has new next hops that some strategy wants to hear of.
    has_new_next_hops: bool,
    last_offer: MonoNs,
    highest_face: FaceId,
}

/// Why a pending Interest may be sent again without its consumer's asking.
#[derive(Clone, Copy, Debug)]
enum Occasion {
    NewNextHops,
    /// An upstream has nacked, or not answered in time.
    Silence,
}

impl Upkeep {
    fn sweep_at(&self) -> Option<MonoNs> {
        self.has_gone_faces
            .then(|| self.last_sweep.plus_ms(SWEEP_INTERVAL_MS))
    }

    fn offer_at(&self) -> Option<MonoNs> {
        self.has_new_next_hops
            .then(|| self.last_offer.plus_ms(OFFER_INTERVAL_MS))
    }
}

impl Pipelines {
    /// Sets the clock and does what is due.
    pub(crate) fn handle_timers(&mut self, now: MonoNs, out: &mut impl Output) {
        self.now = self.now.max(now);
        self.expire();
        while let Some(late) = self.wakeups.pop_due(self.now, &self.pit) {
            self.ask_elsewhere(late.idx, out);
        }
        if self.upkeep.sweep_at().is_some_and(|at| at <= self.now) {
            self.forget_gone_faces();
        }
        if self.upkeep.offer_at().is_some_and(|at| at <= self.now) {
            self.offer_to_new_next_hops(out);
        }
    }

    pub(crate) fn next_timer(&self) -> Option<MonoNs> {
        let timers = [
            self.pit.next_expiry(),
            self.wakeups.next(),
            self.upkeep.sweep_at(),
            self.upkeep.offer_at(),
        ];
        timers.into_iter().flatten().min()
    }

    /// A face is new. If its number was another's before, what was pending
    /// there must not become its own.
    pub(crate) fn note_new_face(&mut self, face: FaceId) {
        if face > self.upkeep.highest_face {
            self.upkeep.highest_face = face;
        } else if self.upkeep.has_gone_faces {
            self.forget_gone_faces();
        }
    }

    pub(crate) fn note_gone_face(&mut self) {
        self.upkeep.has_gone_faces = true;
    }

    pub(crate) fn note_new_next_hop(&mut self) {
        self.upkeep.has_new_next_hops |= self.strategies.any_wants_new_next_hops();
    }

    fn expire(&mut self) {
        let mut expired = std::mem::take(&mut self.scratch.expired);
        expired.clear();
        self.pit.expire(self.now, &mut expired);
        for &idx in &expired {
            if self.pit.get(idx).is_some_and(|entry| entry.satisfied) {
                self.pit.remove(idx);
            } else {
                self.end_unsatisfied(idx);
            }
        }
        self.scratch.expired = expired;
    }

    /// Removes the records of faces that have gone, and entries that nobody
    /// else waits for.
    fn forget_gone_faces(&mut self) {
        self.upkeep.has_gone_faces = false;
        self.upkeep.last_sweep = self.now;
        let is_gone = |face: FaceId| !self.faces.contains(face);
        let touched: Vec<EntryIdx> = self
            .pit
            .iter()
            .filter(|(_, entry)| {
                entry.in_records().any(|record| is_gone(record.face))
                    || entry.out_records().any(|record| is_gone(record.face))
            })
            .map(|(idx, _)| idx)
            .collect();
        for idx in touched {
            self.forget_gone_faces_in(idx);
        }
    }

    fn forget_gone_faces_in(&mut self, idx: EntryIdx) {
        let Some(entry) = self.pit.get_mut(idx) else {
            return;
        };
        let faces = &self.faces;
        entry.retain_in_records(|record| faces.contains(record.face));
        if entry.n_in_records() == 0 && !entry.satisfied {
            return self.end_unsatisfied(idx);
        }
        entry.retain_out_records(|record| faces.contains(record.face));
    }

    /// Sends pending Interests to next hops they have not been sent to, where
    /// the strategy wants that.
    fn offer_to_new_next_hops(&mut self, out: &mut impl Output) {
        self.upkeep.has_new_next_hops = false;
        self.upkeep.last_offer = self.now;
        let pending: Vec<EntryIdx> = self
            .pit
            .iter()
            .filter(|(_, entry)| !entry.satisfied)
            .map(|(idx, _)| idx)
            .collect();
        let mut wire = std::mem::take(&mut self.scratch.interest);
        for idx in pending {
            self.send_more(idx, Occasion::NewNextHops, &mut wire, out);
        }
        self.scratch.interest = wire;
    }

    /// Sends a pending Interest elsewhere, now that an upstream has failed it,
    /// where the strategy wants that.
    pub(crate) fn ask_elsewhere(&mut self, idx: EntryIdx, out: &mut impl Output) {
        let mut wire = std::mem::take(&mut self.scratch.interest);
        self.send_more(idx, Occasion::Silence, &mut wire, out);
        self.scratch.interest = wire;
    }

    fn send_more(
        &mut self,
        idx: EntryIdx,
        occasion: Occasion,
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
        let Some(entry) = self.pit.get(idx) else {
            return;
        };
        wire.clear();
        wire.extend_from_slice(entry.interest_wire());
        let interest = InterestView::parse(wire).expect("copied from an Interest");
        let hashes = &mut self.scratch.name_hashes;
        hashes.clear();
        let span = hashes.push_name(&self.key, interest.name());
        let hint_hashes = &mut self.scratch.hint_hashes;
        let hashes = hashes.slice(span);
        let route = find_route(&self.fib, &self.key, hint_hashes, &interest, hashes);
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
            })
            .find(|outbound| {
                let ask = Ask {
                    now: self.now,
                    rng: &mut self.rng,
                    faces: &self.faces,
                    ingress: outbound.ingress,
                    reach: crate::interest::reach_of(&self.faces, outbound),
                    entry,
                    hashes,
                    route,
                    state: &mut state,
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
