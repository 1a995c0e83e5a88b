//! What Data and Nacks teach about routes, where a strategy learns them.
//!
//! The engine neither believes nor checks an announcement: it tells its output
//! what came, hands announcements on to those who asked for them, and attaches
//! those that management has given it.

use tachonym_packet::{DataView, InterestView, NackReason, NameView};
use tachonym_tables::EntryIdx;

use crate::announcements::AnnouncementRefused;
use crate::burst::Output;
use crate::data::live_downstreams;
use crate::engine::Engine;
use crate::pipelines::{Arrival, Pipelines};
use crate::strategy::Lesson;

impl Engine {
    /// Keeps an announcement that was found good, until it is to be forgotten:
    /// `wire` is the Data that announces `prefix`. Routers downstream that look for
    /// the way to a name under it get it with their Data, where a strategy that
    /// learns routes serves the name. A later version stays.
    ///
    /// # Errors
    /// If there is no room, or the prefix is too deep for any route.
    pub fn keep_announcement(
        &mut self,
        prefix: NameView<'_>,
        version: u64,
        wire: &[u8],
    ) -> Result<(), AnnouncementRefused> {
        let hash = self.pipelines.key.hash_name(prefix);
        let kept = &mut self.pipelines.announcements;
        kept.insert(prefix, hash, version, wire)
    }

    /// Forgets the announcement of `prefix`, if there is one.
    pub fn forget_announcement(&mut self, prefix: NameView<'_>) {
        let hash = self.pipelines.key.hash_name(prefix);
        self.pipelines.announcements.remove(prefix, hash);
    }
}

impl Pipelines {
    /// Learns what a Data teaches, and says which announcement goes on with it: one
    /// that is known here, which is copied to `buffer`, or the one it came with.
    pub(crate) fn learn_from_data<'b>(
        &mut self,
        matches: &[EntryIdx],
        arrival: &Arrival<'b>,
        data: &DataView<'_>,
        buffer: &'b mut Vec<u8>,
        out: &mut impl Output,
    ) -> Option<&'b [u8]> {
        if arrival.announcement.is_none() && !self.is_announcement_wanted(matches) {
            return None;
        }
        let mut is_known_route = false;
        let mut is_new_route = false;
        for &idx in matches {
            match self.lesson_of(idx, arrival) {
                Lesson::KnownRoute => is_known_route = true,
                Lesson::NewRoute => is_new_route = true,
                Lesson::None => {}
            }
        }
        if let Some(announcement) = arrival.announcement.filter(|_| is_new_route) {
            out.learn_route(arrival.face, data.name(), announcement);
            return Some(announcement);
        }
        let known = self.announcements.find(data.name(), arrival.hashes);
        let Some(known) = known.filter(|_| is_known_route) else {
            return arrival.announcement;
        };
        buffer.clear();
        buffer.extend_from_slice(known);
        Some(buffer)
    }

    /// Whether anybody who waits would learn from an announcement.
    fn is_announcement_wanted(&self, matches: &[EntryIdx]) -> bool {
        let entries = matches.iter().filter_map(|&idx| self.tables.pit().get(idx));
        entries
            .flat_map(|entry| live_downstreams(entry, self.now))
            .filter(|downstream| downstream.is_discovering)
            .any(|downstream| {
                let traits = self.faces.find(downstream.face);
                traits.is_some_and(|traits| !traits.is_local())
            })
    }

    /// Learns what an Interest teaches that leads back to where it came from: that
    /// neighbour looks for the way itself.
    pub(crate) fn learn_from_interest(
        &self,
        arrival: &Arrival<'_>,
        interest: &InterestView<'_>,
        out: &mut impl Output,
    ) {
        // On a link with several peers it may be another one who knows the way.
        if !arrival.traits.is_local() && arrival.traits.is_point_to_point() {
            out.forget_learnt_route(arrival.face, interest.name());
        }
    }

    /// Learns what a Nack teaches: a neighbour without a route is no route.
    pub(crate) fn learn_from_nack(
        &mut self,
        idx: EntryIdx,
        arrival: &Arrival<'_>,
        reason: NackReason,
        interest: &InterestView<'_>,
        out: &mut impl Output,
    ) {
        if reason == NackReason::NoRoute
            && !arrival.traits.is_local()
            && self.lesson_of(idx, arrival) == Lesson::KnownRoute
        {
            out.forget_learnt_route(arrival.face, interest.name());
        }
    }

    fn lesson_of(&mut self, idx: EntryIdx, arrival: &Arrival<'_>) -> Lesson {
        let Some((instance, _)) = self.strategy_of(idx) else {
            return Lesson::None;
        };
        let record = self.tables.pit().get(idx);
        let record = record.and_then(|entry| entry.out_record(arrival.face));
        record.map_or(Lesson::None, |record| {
            self.strategies.strategy_mut(instance).lesson_of(record)
        })
    }
}
