//! What Data and Nacks teach about routes, where a strategy learns them.
//!
//! The engine neither believes nor checks an announcement: it tells its output
//! what came, hands announcements on to those who asked for them, and attaches
//! those that management has given it.

use tachonym_packet::{DataView, InterestView, MonoNs, NackReason, NameView};
use tachonym_tables::EntryIdx;

use crate::announcements::AnnouncementsFull;
use crate::burst::Output;
use crate::engine::Engine;
use crate::pipelines::{Arrival, Pipelines};
use crate::strategy::Lesson;

impl Engine {
    /// Keeps an announcement that was found good: `wire` is the Data that
    /// announces `prefix`. Until `until`, routers downstream that look for the
    /// way to a name under it get it with their Data, where a strategy that
    /// learns routes serves the name.
    ///
    /// # Errors
    /// If there is no room, or the prefix is too deep for any route.
    pub fn keep_announcement(
        &mut self,
        prefix: NameView<'_>,
        wire: &[u8],
        until: MonoNs,
    ) -> Result<(), AnnouncementsFull> {
        let pipelines = &mut self.pipelines;
        let hash = pipelines.key.hash_name(prefix);
        pipelines
            .announcements
            .insert(prefix, hash, wire, until, pipelines.now)
    }
}

impl Pipelines {
    /// Learns what a Data teaches, and says which announcement goes on with it: the
    /// one it came with, or one that is known here, which is copied to `buffer`.
    pub(crate) fn learn_from_data<'b>(
        &mut self,
        matches: &[EntryIdx],
        arrival: &Arrival<'b>,
        data: &DataView<'_>,
        buffer: &'b mut Vec<u8>,
        out: &mut impl Output,
    ) -> Option<&'b [u8]> {
        if arrival.announcement.is_none() && self.announcements.is_empty() {
            return None;
        }
        let mut is_new_route = false;
        let mut is_known_route = false;
        for &idx in matches {
            match self.lesson_of(idx, arrival) {
                Lesson::NewRoute => is_new_route = true,
                Lesson::KnownRoute => is_known_route = true,
                Lesson::None => {}
            }
        }
        if let Some(announcement) = arrival.announcement {
            if is_new_route {
                out.learn_route(arrival.face, data.name(), announcement);
            }
            return Some(announcement);
        }
        if !is_known_route {
            return None;
        }
        let known = self
            .announcements
            .find(data.name(), arrival.hashes, self.now)?;
        buffer.clear();
        buffer.extend_from_slice(known);
        Some(buffer)
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
        let record = self.pit.get(idx);
        let record = record.and_then(|entry| entry.out_record(arrival.face));
        record.map_or(Lesson::None, |record| {
            self.strategies.strategy_mut(instance).lesson_of(record)
        })
    }
}
