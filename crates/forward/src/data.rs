//! The way of a Data: pending Interest table, content store, downstreams.

use tachonym_packet::lp::Headers;
use tachonym_packet::{DataView, FaceId, MonoNs};
use tachonym_tables::{EntryIdx, Known, PitEntry, PolicyStep};

use crate::block::Block;
use crate::burst::Output;
use crate::counters::{Counters, DropReason};
use crate::faces::{FaceTraits, LinkType};
use crate::pipelines::{Arrival, Downstream, Pipelines, asked_at, is_localhost};
use crate::recent_drops::{Dropped, RecentDrops};
use crate::sharing::Served;
use crate::strategy::{Answer, is_awaited};

/// A Data on its way to downstreams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery<'a> {
    pub(crate) arrival: &'a Arrival<'a>,
    pub(crate) data: &'a DataView<'a>,
    /// For those who look for the way to its prefix.
    pub(crate) announcement: Option<&'a [u8]>,
}

impl Pipelines {
    /// A Data has come.
    pub(crate) fn incoming_data(
        &mut self,
        arrival: &Arrival<'_>,
        data: &DataView<'_>,
        out: &mut impl Output,
    ) {
        if !self.admits_data(arrival, data) {
            return;
        }
        out.enter(Block::PendingRemoval);
        let mut matches = std::mem::take(&mut self.scratch.matches);
        let known = self
            .tables
            .matches_for_data(data, arrival.hashes, &mut matches);
        matches.retain(|&idx| self.is_solicited_by(idx, arrival, data));
        if matches.is_empty() {
            out.enter(Block::StoreInsertion);
            let enter = |step| out.enter(Block::of_step(step, Block::StoreInsertion));
            self.unsolicited_data(arrival, data, known, enter);
        } else {
            out.enter(Block::DataTransmission);
            let delivery = Delivery {
                announcement: None,
                arrival,
                data,
            };
            if arrival.announcement.is_none() && self.announcements.is_empty() {
                self.deliver(&matches, &delivery, out);
            } else {
                self.learn_and_deliver(&matches, delivery, out);
            }
            out.enter(Block::PendingRemoval);
            if !arrival.headers.no_cache {
                self.tables.note_answer(&matches, arrival.name_hash());
            }
            matches.retain(|&idx| self.satisfy(idx, arrival, data));
            out.enter(Block::StoreInsertion);
            let enter = |step| out.enter(Block::of_step(step, Block::StoreInsertion));
            self.store(arrival, data, (&matches, known), enter);
        }
        self.scratch.matches = matches;
    }

    /// A Data has come for which Interests may wait at several engines. Whether it satisfied
    /// any here; then they have it, and `served` is longer by them. This engine caches it if
    /// Data of its name are at home here.
    pub(crate) fn shared_data(
        &mut self,
        arrival: &Arrival<'_>,
        data: &DataView<'_>,
        is_home: bool,
        served: &mut Served,
        out: &mut impl Output,
    ) -> bool {
        let mut matches = std::mem::take(&mut self.scratch.matches);
        let known = self
            .tables
            .matches_for_data(data, arrival.hashes, &mut matches);
        matches.retain(|&idx| self.is_solicited_by(idx, arrival, data));
        let is_wanted = !matches.is_empty();
        if is_wanted {
            self.scratch.served = Some(std::mem::take(served));
            let delivery = Delivery {
                announcement: None,
                arrival,
                data,
            };
            self.learn_and_deliver(&matches, delivery, out);
            *served = self.scratch.served.take().unwrap_or_default();
            if is_home && !arrival.headers.no_cache {
                self.tables.note_answer(&matches, arrival.name_hash());
            }
            matches.retain(|&idx| self.satisfy(idx, arrival, data));
            if is_home {
                self.store(arrival, data, (&matches, known), |_| ());
            } else {
                for &idx in &matches {
                    self.tables.remove_pending(idx);
                }
            }
        }
        self.scratch.matches = matches;
        is_wanted
    }

    /// A Data for which Interests might have waited at other engines has been there. Caches
    /// it if it satisfied any there, and else treats it as unsolicited.
    pub(crate) fn settle_shared_data(
        &mut self,
        arrival: &Arrival<'_>,
        data: &DataView<'_>,
        was_wanted: bool,
    ) {
        if was_wanted {
            if !arrival.headers.no_cache {
                self.tables.note_far_answer(arrival.name_hash());
            }
            self.store(arrival, data, (&[], Known::default()), |_| ());
        } else {
            self.unsolicited_data(arrival, data, Known::default(), |_| ());
        }
    }

    /// Whether a Data may go on: the scope of its name allows where it came from.
    pub(crate) fn admits_data(&mut self, arrival: &Arrival<'_>, data: &DataView<'_>) -> bool {
        self.counters.n_in_data += 1;
        let is_in_scope = arrival.traits.is_local() || !is_localhost(data.name());
        if !is_in_scope {
            let dropped = Dropped::data(arrival.face, data.name());
            self.drop_packet(DropReason::LocalhostScope, dropped);
        }
        is_in_scope
    }

    /// Delivers a Data that may tell of a route, or that somebody may want to learn the way
    /// from.
    #[inline(never)]
    fn learn_and_deliver(
        &mut self,
        matches: &[EntryIdx],
        delivery: Delivery<'_>,
        out: &mut impl Output,
    ) {
        let mut buffer = std::mem::take(&mut self.scratch.announcement);
        let Delivery { arrival, data, .. } = delivery;
        let delivery = Delivery {
            announcement: self.learn_from_data(matches, arrival, data, &mut buffer, out),
            ..delivery
        };
        self.deliver(matches, &delivery, out);
        self.scratch.announcement = buffer;
    }

    pub(crate) fn deliver(
        &mut self,
        matches: &[EntryIdx],
        delivery: &Delivery<'_>,
        out: &mut impl Output,
    ) {
        match *matches {
            [idx] if self.scratch.served.is_none() => self.deliver_to_one_entry(idx, delivery, out),
            _ => self.deliver_to_entries(matches, delivery, out),
        }
    }

    /// Caches a Data, which may get the place of one of the entries that end with it.
    #[inline]
    fn store(
        &mut self,
        arrival: &Arrival<'_>,
        data: &DataView<'_>,
        (ended, known): (&[EntryIdx], Known),
        enter: impl FnMut(PolicyStep),
    ) {
        if arrival.headers.no_cache {
            for &idx in ended {
                self.tables.remove_pending(idx);
            }
        } else {
            // The store counts what it does not admit.
            let known = (ended, known);
            let admission =
                self.tables
                    .insert_data_by_step(data, arrival.hashes, known, self.now, enter);
            if self.second.is_some() {
                self.offer_to_second_level(data, arrival.hashes, admission);
            }
        }
    }

    fn unsolicited_data(
        &mut self,
        arrival: &Arrival<'_>,
        data: &DataView<'_>,
        known: Known,
        enter: impl FnMut(PolicyStep),
    ) {
        // Management tells its news whether anybody listens or not.
        let is_own = arrival.face == FaceId::INTERNAL;
        if is_own {
            self.counters.n_unawaited_replies += 1;
        } else {
            self.counters.n_unsolicited_data += 1;
        }
        if self.unsolicited_data.admits(arrival.traits) {
            self.store(arrival, data, (&[], known), enter);
        } else if !is_own {
            let dropped = Dropped::data(arrival.face, data.name());
            self.drop_packet(DropReason::UnsolicitedData, dropped);
        }
    }

    /// Whether a Data satisfies an entry that it matches: the Interest was sent to the face
    /// that brings the Data, and a downstream still waits. Any out-record will do, whatever
    /// its time: an upstream may answer late, and after a Nack. An entry that is satisfied
    /// already only measures its slower upstreams.
    fn is_solicited_by(
        &mut self,
        idx: EntryIdx,
        arrival: &Arrival<'_>,
        data: &DataView<'_>,
    ) -> bool {
        let Some(entry) = self.tables.pit().get(idx) else {
            return false;
        };
        if entry.satisfied {
            self.measure_straggler(idx, arrival, data);
            return false;
        }
        entry.out_record(arrival.face).is_some()
            && entry
                .in_records()
                .any(|record| record.expiry > self.now && self.faces.contains(record.face))
    }

    fn deliver_to_one_entry(
        &mut self,
        idx: EntryIdx,
        delivery: &Delivery<'_>,
        out: &mut impl Output,
    ) {
        let Some(entry) = self.tables.pit().get(idx) else {
            return;
        };
        for record in entry.in_records() {
            if record.expiry > self.now {
                let downstream = Downstream::of(record);
                match self.faces.find(downstream.face) {
                    Some(traits) => {
                        let counters = &mut self.counters;
                        send_data((&downstream, traits), delivery, counters, out);
                    }
                    None => drop_for_gone(
                        delivery,
                        self.now,
                        (&mut self.counters, &mut self.recent_drops),
                    ),
                }
            }
        }
    }

    /// Each downstream gets the Data once, whatever number of its Interests it
    /// answers, unless it gave them different tokens: then once for each token.
    fn deliver_to_entries(
        &mut self,
        matches: &[EntryIdx],
        delivery: &Delivery<'_>,
        out: &mut impl Output,
    ) {
        let max_lifetime_ms = self.max_lifetime_ms;
        let downstreams = &mut self.scratch.downstreams;
        downstreams.clear();
        for entry in matches.iter().filter_map(|&idx| self.tables.pit().get(idx)) {
            match &self.scratch.served {
                None => downstreams.extend(live_downstreams(entry, self.now)),
                Some(served) => {
                    let live = entry.in_records().filter(|record| record.expiry > self.now);
                    let unserved = live.filter(|record| {
                        !served.includes(&Downstream::of(record), asked_at(record, max_lifetime_ms))
                    });
                    downstreams.extend(unserved.map(Downstream::of));
                }
            }
        }
        downstreams.sort_unstable_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        downstreams.dedup_by(|later, first| later.is_same(first));
        if let Some(served) = &mut self.scratch.served {
            served.add(downstreams);
        }
        for downstream in downstreams {
            match self.faces.find(downstream.face) {
                Some(traits) => {
                    let counters = &mut self.counters;
                    send_data((downstream, traits), delivery, counters, out);
                }
                None => drop_for_gone(
                    delivery,
                    self.now,
                    (&mut self.counters, &mut self.recent_drops),
                ),
            }
        }
    }

    /// Notes that the Data of an entry has been delivered. True if the entry ends.
    fn satisfy(&mut self, idx: EntryIdx, arrival: &Arrival<'_>, data: &DataView<'_>) -> bool {
        self.counters.n_satisfied_interests += 1;
        let Some(entry) = self.tables.pit().get(idx) else {
            return false;
        };
        // The same Interest may be sent again before its nonces are forgotten,
        // since the content store will not answer it for long.
        if entry.must_be_fresh() && data.freshness_period_ms() < self.dead_nonce_lifetime_ms {
            self.bury_nonces(idx);
        }
        !(self.strategies.any_measures() && self.measures_on(idx, arrival, data))
    }

    /// Tells the strategy of an entry that its Data has come. True if the entry
    /// lingers, for other upstreams may answer too and the strategy wants to know.
    fn measures_on(&mut self, idx: EntryIdx, arrival: &Arrival<'_>, data: &DataView<'_>) -> bool {
        let Some((instance, state)) = self.strategy_of(idx) else {
            return false;
        };
        let Some(entry) = self.tables.pit().get(idx) else {
            return false;
        };
        let answer = Answer {
            now: self.now,
            ingress: arrival.face,
            name: data.name(),
            hashes: arrival.hashes,
            entry,
            state: &state,
        };
        let linger = self
            .strategies
            .strategy_mut(instance)
            .before_satisfy(&answer);
        if linger.is_zero() {
            return false;
        }
        let Some(entry) = self.tables.pit_mut().get_mut(idx) else {
            return false;
        };
        entry.remove_out_record(arrival.face);
        let (faces, now) = (&self.faces, self.now);
        let is_awaited = entry
            .out_records()
            .any(|record| is_awaited(record, faces, now));
        if !is_awaited {
            return false;
        }
        entry.satisfied = true;
        self.tables.pit_mut().retain_in_records(idx, |_| false);
        self.save_state(idx, instance, state);
        self.tables.pit_mut().set_expiry(idx, now + linger);
        true
    }

    /// A slower upstream has answered too.
    fn measure_straggler(&mut self, idx: EntryIdx, arrival: &Arrival<'_>, data: &DataView<'_>) {
        let Some((instance, state)) = self.strategy_of(idx) else {
            return;
        };
        let Some(entry) = self.tables.pit().get(idx) else {
            return;
        };
        if entry.out_record(arrival.face).is_none() {
            return;
        }
        let answer = Answer {
            now: self.now,
            ingress: arrival.face,
            name: data.name(),
            hashes: arrival.hashes,
            entry,
            state: &state,
        };
        self.strategies
            .strategy_mut(instance)
            .before_satisfy(&answer);
        if let Some(entry) = self.tables.pit_mut().get_mut(idx) {
            entry.remove_out_record(arrival.face);
        }
    }
}

pub(crate) fn live_downstreams(entry: &PitEntry, now: MonoNs) -> impl Iterator<Item = Downstream> {
    let live = entry.in_records().filter(move |record| record.expiry > now);
    live.map(Downstream::of)
}

/// Drops a Data for a downstream whose face has gone.
#[cold]
fn drop_for_gone(
    delivery: &Delivery<'_>,
    now: MonoNs,
    (counters, recent_drops): (&mut Counters, &mut RecentDrops<DropReason>),
) {
    counters.count_drop(DropReason::DownstreamGone);
    let dropped = Dropped::data(delivery.arrival.face, delivery.data.name());
    recent_drops.record(now, DropReason::DownstreamGone, &dropped);
}

/// Sends a Data to a downstream, unless it came from there over a link on which every
/// peer has received it. Scope needs no check: a downstream that waits for a name under
/// `/localhost` is local.
fn send_data(
    (downstream, traits): (&Downstream, FaceTraits),
    delivery: &Delivery<'_>,
    counters: &mut Counters,
    out: &mut impl Output,
) {
    let arrival = delivery.arrival;
    if downstream.face == arrival.face && traits.link != LinkType::AdHoc {
        return;
    }
    let headers = Headers {
        pit_token: downstream.pit_token,
        incoming_face_id: Some(arrival.face),
        congestion_mark: arrival.headers.congestion_mark,
        ..Headers::default()
    };
    let wire = delivery.data.wire();
    match delivery.announcement {
        Some(announcement) if downstream.is_discovering && !traits.is_local() => {
            out.send_data_announcing(downstream.face, wire, &headers, announcement);
        }
        _ => out.send_data(downstream.face, wire, &headers),
    }
    counters.n_out_data += 1;
}
