//! The way of a Data: pending Interest table, downstreams, content store.
//!
//! The order is the same wherever a Data comes from: downstreams first, since they wait;
//! then the popularity of its name, the end of the entries, and last the content store,
//! where in a shared index the Data takes the place of an entry that it ends.

use tachonym_packet::lp::Headers;
use tachonym_packet::{DataView, FaceId, MonoNs, NameHashes, NameScope};
use tachonym_tables::{EntryIdx, Known, PolicyStep};

use crate::block::Block;
use crate::burst::Output;
use crate::counters::DropReason;
use crate::faces::LinkType;
use crate::learning::{Announce, learn_from_data};
use crate::marks::offer_to_second_level;
use crate::pending::{asked_at, bury_nonces, live_downstreams, strategy_of};
use crate::recent_drops::Dropped;
use crate::state::{Arrival, Core, Downstream, Scratch, Second, Served, State, Tables, World};
use crate::strategy::{Answer, is_awaited};

/// Where a Data comes from that pending Interests are answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From an upstream; this engine is the home of its name.
    Upstream,
    /// From an upstream; another engine is the home of its name.
    UpstreamOfOther,
    /// From the SSD level, fresh until then.
    SsdLevel { fresh_until: MonoNs },
}

/// What became of a Data in the pending Interest table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// Whether it answered any entry. Those that ended are in `scratch.matches`.
    pub(crate) is_wanted: bool,
    /// What the search has seen of the content store.
    pub(crate) known: Known,
}

/// A Data on its way to downstreams.
#[derive(Clone, Copy, Debug)]
struct Delivery<'a> {
    arrival: &'a Arrival<'a>,
    data: &'a DataView<'a>,
    /// For downstreams that discover the route to its prefix.
    announcement: Option<&'a [u8]>,
}

/// A Data has come.
pub(crate) fn incoming_data(
    state: &mut State,
    arrival: &Arrival<'_>,
    data: &DataView<'_>,
    out: &mut impl Output,
) {
    let State { core, second, .. } = state;
    if !admits_data(&mut core.world, arrival, data) {
        return;
    }
    let answered = answer_pending(core, arrival, data, Source::Upstream, None, out);
    out.enter(Block::StoreInsertion);
    let enter = |step| out.enter(Block::of_step(step, Block::StoreInsertion));
    if answered.is_wanted {
        store(core, second, arrival, data, answered.known, enter);
    } else {
        unsolicited_data(core, second, arrival, data, answered.known, enter);
    }
}

/// Whether the scope of a Data's name allows where it came from. Counts the Data.
pub(crate) fn admits_data(world: &mut World, arrival: &Arrival<'_>, data: &DataView<'_>) -> bool {
    world.counters.n_in_data += 1;
    let is_in_scope = arrival.traits.is_local() || data.name().scope() != NameScope::Localhost;
    if !is_in_scope {
        let dropped = Dropped::data(arrival.face, data.name());
        world.drop_packet(DropReason::LocalhostScope, dropped);
    }
    is_in_scope
}

/// Has a Data answer the entries that it matches: sends it to their downstreams, but to none
/// that has been `served` with it by another engine. The entries that end with it are left
/// in `scratch.matches`, to be removed by the caller, who may cache the Data in their place.
pub(crate) fn answer_pending(
    core: &mut Core,
    arrival: &Arrival<'_>,
    data: &DataView<'_>,
    source: Source,
    served: Option<&mut Served>,
    out: &mut impl Output,
) -> Answered {
    out.enter(Block::PendingRemoval);
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let Scratch {
        matches,
        name_hashes,
        ..
    } = scratch;
    let known = tables
        .pit_cs
        .matches_for_data(data, arrival.hashes, matches);
    keep(matches, |idx| match source {
        Source::Upstream | Source::UpstreamOfOther => {
            is_solicited(tables, world, name_hashes, idx, arrival, data)
        }
        // Whether it was asked for does not matter: the entry could have been answered at once.
        Source::SsdLevel { fresh_until } => {
            let entry = tables.pit_cs.pit().matched(idx);
            !entry.satisfied && (world.now < fresh_until || !entry.must_be_fresh())
        }
    });
    let is_wanted = !matches.is_empty();
    if !is_wanted {
        return Answered { is_wanted, known };
    }
    out.enter(Block::DataTransmission);
    let delivery = Delivery {
        arrival,
        data,
        announcement: None,
    };
    if arrival.announcement.is_none() && world.announcements.is_empty() {
        deliver(core, served, delivery, out);
    } else {
        learn_and_deliver(core, served, delivery, out);
    }
    out.enter(Block::PendingRemoval);
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let Scratch {
        matches,
        name_hashes,
        ..
    } = scratch;
    if source == Source::Upstream && !arrival.headers.no_cache {
        tables.pit_cs.note_answer(matches, arrival.name_hash());
    }
    world.counters.n_satisfied_interests += matches.len() as u64;
    if matches!(source, Source::SsdLevel { .. }) {
        world.counters.n_second_level_hits += matches.len() as u64;
    }
    keep(matches, |idx| {
        ends(tables, world, name_hashes, idx, arrival, data)
    });
    Answered { is_wanted, known }
}

/// As [`Vec::retain`], with a short way for the one entry that most Data answer.
#[inline(always)]
fn keep(matches: &mut Vec<EntryIdx>, mut is_kept: impl FnMut(EntryIdx) -> bool) {
    if let [only] = matches[..] {
        if !is_kept(only) {
            matches.clear();
        }
    } else {
        matches.retain(|&idx| is_kept(idx));
    }
}

/// Delivers a Data that may announce a route, or whose downstreams may discover one.
#[inline(never)]
fn learn_and_deliver(
    core: &mut Core,
    served: Option<&mut Served>,
    delivery: Delivery<'_>,
    out: &mut impl Output,
) {
    let Delivery { arrival, data, .. } = delivery;
    let announce = learn_from_data(core, arrival, data, out);
    // Taken out, since delivery reads it and changes the counters.
    let mut buffer = std::mem::take(&mut core.scratch.announcement);
    let announcement = match announce {
        Announce::Nothing => None,
        Announce::Received(announcement) => Some(announcement),
        Announce::Known => {
            let known = core.world.announcements.find(data.name(), arrival.hashes);
            buffer.clear();
            buffer.extend_from_slice(known.unwrap_or_default());
            Some(&buffer[..])
        }
    };
    let delivery = Delivery {
        announcement,
        ..delivery
    };
    deliver(core, served, delivery, out);
    core.scratch.announcement = buffer;
}

/// Sends a Data to each downstream of the entries in `scratch.matches` once, however many of
/// its Interests it answers, unless it gave them different tokens: then once for each token.
fn deliver(
    core: &mut Core,
    served: Option<&mut Served>,
    delivery: Delivery<'_>,
    out: &mut impl Output,
) {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let pit = tables.pit_cs.pit();
    let Scratch {
        matches,
        downstreams,
        ..
    } = scratch;
    let entries = matches.iter().map(|&idx| pit.matched(idx));
    // A face stands in one entry once: nothing to compare.
    if matches.len() == 1 && served.is_none() {
        let now = world.now;
        for downstream in entries.flat_map(|entry| live_downstreams(entry, now)) {
            send_data(world, &downstream, delivery, out);
        }
        return;
    }
    let max_lifetime_ms = world.settings.max_lifetime_ms;
    downstreams.clear();
    for entry in entries {
        match &served {
            None => downstreams.extend(live_downstreams(entry, world.now)),
            Some(served) => {
                let live = entry
                    .in_records()
                    .filter(|record| record.expiry > world.now);
                let unserved = live.filter(|record| {
                    !served.includes(&Downstream::of(record), asked_at(record, max_lifetime_ms))
                });
                downstreams.extend(unserved.map(Downstream::of));
            }
        }
    }
    downstreams.sort_unstable_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    downstreams.dedup_by(|later, first| later.is_same(first));
    if let Some(served) = served {
        served.add(downstreams);
    }
    for downstream in downstreams {
        send_data(world, downstream, delivery, out);
    }
}

/// Sends a Data to a downstream, unless it came from there over a link on which every peer
/// has received it. Scope needs no check: a downstream that waits for a name under
/// `/localhost` is local.
fn send_data(
    world: &mut World,
    downstream: &Downstream,
    delivery: Delivery<'_>,
    out: &mut impl Output,
) {
    let Delivery {
        arrival,
        data,
        announcement,
    } = delivery;
    let Some(traits) = world.faces.find(downstream.face) else {
        let dropped = Dropped::data(arrival.face, data.name());
        return world.drop_packet(DropReason::DownstreamGone, dropped);
    };
    if downstream.face == arrival.face && traits.link != LinkType::AdHoc {
        return;
    }
    let headers = Headers {
        pit_token: downstream.pit_token,
        incoming_face_id: Some(arrival.face),
        congestion_mark: arrival.headers.congestion_mark,
        ..Headers::default()
    };
    match announcement {
        Some(announcement) if downstream.is_discovering && !traits.is_local() => {
            out.send_data_announcing(downstream.face, data.wire(), &headers, announcement);
        }
        _ => out.send_data(downstream.face, data.wire(), &headers),
    }
    world.counters.n_out_data += 1;
}

/// Caches a Data, which may take the place of one of the entries in `scratch.matches`, and
/// removes these.
#[inline]
pub(crate) fn store(
    core: &mut Core,
    second: &mut Second,
    arrival: &Arrival<'_>,
    data: &DataView<'_>,
    known: Known,
    enter: impl FnMut(PolicyStep),
) {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    if arrival.headers.no_cache {
        return remove(core);
    }
    let (hashes, ended) = (arrival.hashes, &scratch.matches[..]);
    // The store counts what it does not admit.
    let admission =
        tables
            .pit_cs
            .insert_data_by_step(data, hashes, (ended, known), world.now, enter);
    if second.level.is_some() {
        offer_to_second_level(core, second, data, hashes, admission);
    }
}

/// Removes the entries in `scratch.matches`.
pub(crate) fn remove(core: &mut Core) {
    for &idx in &core.scratch.matches {
        core.tables.pit_cs.matched(idx).remove();
    }
}

/// Counts a Data that answers nothing, and caches it if configured so.
pub(crate) fn unsolicited_data(
    core: &mut Core,
    second: &mut Second,
    arrival: &Arrival<'_>,
    data: &DataView<'_>,
    known: Known,
    enter: impl FnMut(PolicyStep),
) {
    let world = &mut core.world;
    // Management publishes its notifications whether a consumer waits or not.
    let is_own = arrival.face == FaceId::INTERNAL;
    if is_own {
        world.counters.n_unawaited_replies += 1;
    } else {
        world.counters.n_unsolicited_data += 1;
    }
    if world.settings.unsolicited_data.admits(arrival.traits) {
        store(core, second, arrival, data, known, enter);
    } else if !is_own {
        let dropped = Dropped::data(arrival.face, data.name());
        world.drop_packet(DropReason::UnsolicitedData, dropped);
    }
}

/// Whether a Data satisfies an entry that it matches: the Interest was sent to the face
/// that brings the Data, and a downstream still waits. Any out-record counts, whatever
/// its time: an upstream may answer late, and after a Nack. For an entry that is satisfied
/// already, only the upstream is measured.
fn is_solicited(
    tables: &mut Tables,
    world: &mut World,
    hashes: &mut NameHashes,
    idx: EntryIdx,
    arrival: &Arrival<'_>,
    data: &DataView<'_>,
) -> bool {
    let mut entry = tables.pit_cs.matched(idx);
    if entry.out_record(arrival.face).is_none() {
        return false;
    }
    if !entry.satisfied {
        return entry
            .in_records()
            .any(|record| record.expiry > world.now && world.faces.contains(record.face));
    }
    let (instance, state) = strategy_of(&mut entry, world, hashes);
    let answer = Answer {
        now: world.now,
        ingress: arrival.face,
        name: data.name(),
        hashes: arrival.hashes,
        entry: &entry,
        state: &state,
    };
    let strategy = world.strategies.strategy_mut(instance);
    strategy.before_satisfy(&answer);
    entry.remove_out_record(arrival.face);
    false
}

/// Whether an entry ends with the Data that has answered it. If not, it stays as satisfied
/// for a while: other upstreams may answer too, and its strategy measures them.
fn ends(
    tables: &mut Tables,
    world: &mut World,
    hashes: &mut NameHashes,
    idx: EntryIdx,
    arrival: &Arrival<'_>,
    data: &DataView<'_>,
) -> bool {
    let mut entry = tables.pit_cs.matched(idx);
    // The same Interest may be sent again before its nonces are forgotten,
    // since the content store will not answer it for long.
    if entry.must_be_fresh() && data.freshness_period_ms() < world.settings.dead_nonce_lifetime_ms {
        bury_nonces(&mut tables.dead_nonces, &entry, world);
    }
    if !world.strategies.any_measures() {
        return true;
    }
    let (instance, state) = strategy_of(&mut entry, world, hashes);
    let answer = Answer {
        now: world.now,
        ingress: arrival.face,
        name: data.name(),
        hashes: arrival.hashes,
        entry: &entry,
        state: &state,
    };
    let strategy = world.strategies.strategy_mut(instance);
    let linger = strategy.before_satisfy(&answer);
    if linger.is_zero() {
        return true;
    }
    entry.remove_out_record(arrival.face);
    let is_other_awaited = entry
        .out_records()
        .any(|record| is_awaited(record, &world.faces, world.now));
    if !is_other_awaited {
        return true;
    }
    entry.satisfied = true;
    entry.strategy_state = world.strategies.words(instance, state);
    entry.retain_in_records(|_| false);
    entry.set_expiry(world.now + linger);
    false
}
