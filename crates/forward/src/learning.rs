//! What Data and Nacks teach about routes, where a strategy learns them.
//!
//! The engine neither believes nor checks an announcement: it tells its output
//! what came, hands announcements on to downstreams that discover, and attaches
//! those that management has given it.

use tachonym_packet::{DataView, InterestView, NackReason};
use tachonym_tables::PitEntry;

use crate::burst::Output;
use crate::pending::{live_downstreams, strategy_of};
use crate::state::{Arrival, Core};
use crate::strategy::{Lesson, Strategy};

/// Which announcement goes on with a Data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Announce<'a> {
    Nothing,
    /// The one that came with it.
    Received(&'a [u8]),
    /// The one that this router knows for its name.
    Known,
}

/// Learns what a Data teaches that answers the entries in `scratch.matches`, and says which
/// announcement goes on with it.
pub(crate) fn learn_from_data<'a>(
    core: &mut Core,
    arrival: &Arrival<'a>,
    data: &DataView<'_>,
    out: &mut impl Output,
) -> Announce<'a> {
    if arrival.announcement.is_none() && !is_announcement_wanted(core) {
        return Announce::Nothing;
    }
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let mut is_known_route = false;
    let mut is_new_route = false;
    for &idx in &scratch.matches {
        let mut entry = tables.pit_cs.matched(idx);
        let (instance, _) = strategy_of(&mut entry, world, &mut scratch.name_hashes);
        let strategy = world.strategies.strategy_mut(instance);
        match lesson_of(strategy, &entry, arrival) {
            Lesson::KnownRoute => is_known_route = true,
            Lesson::NewRoute => is_new_route = true,
            Lesson::None => {}
        }
    }
    if let Some(announcement) = arrival.announcement.filter(|_| is_new_route) {
        out.learn_route(arrival.face, data.name(), announcement);
        return Announce::Received(announcement);
    }
    let known = world.announcements.find(data.name(), arrival.hashes);
    if known.is_some() && is_known_route {
        return Announce::Known;
    }
    let received = arrival.announcement;
    received.map_or(Announce::Nothing, Announce::Received)
}

/// Whether a downstream of the entries in `scratch.matches` would learn from an announcement.
fn is_announcement_wanted(core: &Core) -> bool {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let entries = scratch.matches.iter();
    entries
        .flat_map(|&idx| live_downstreams(tables.pit_cs.pit().matched(idx), world.now))
        .filter(|downstream| downstream.is_discovering)
        .any(|downstream| {
            let traits = world.faces.find(downstream.face);
            traits.is_some_and(|traits| !traits.is_local())
        })
}

/// Learns what an Interest teaches that leads back to where it came from: that
/// neighbour looks for the route itself.
pub(crate) fn learn_from_interest(
    arrival: &Arrival<'_>,
    interest: &InterestView<'_>,
    out: &mut impl Output,
) {
    // On a link with several peers it may be another one who knows the route.
    if !arrival.traits.is_local() && arrival.traits.is_point_to_point() {
        out.forget_learnt_route(arrival.face, interest.name());
    }
}

/// Learns what a Nack teaches: a neighbour without a route is no route.
pub(crate) fn learn_from_nack(
    strategy: &Strategy,
    entry: &PitEntry,
    arrival: &Arrival<'_>,
    reason: NackReason,
    interest: &InterestView<'_>,
    out: &mut impl Output,
) {
    if reason == NackReason::NoRoute
        && !arrival.traits.is_local()
        && lesson_of(strategy, entry, arrival) == Lesson::KnownRoute
    {
        out.forget_learnt_route(arrival.face, interest.name());
    }
}

fn lesson_of(strategy: &Strategy, entry: &PitEntry, arrival: &Arrival<'_>) -> Lesson {
    let record = entry.out_record(arrival.face);
    record.map_or(Lesson::None, |record| strategy.lesson_of(record))
}
