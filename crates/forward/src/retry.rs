//! A pending Interest goes out again, though its consumer has not asked again.

use tachonym_packet::lp::Headers;
use tachonym_packet::{InterestView, NameHash};
use tachonym_tables::{EntryIdx, FibView, InRecord, Inserted, PitEntry};

use crate::burst::Output;
use crate::faces::FaceTraits;
use crate::outgoing::{Outbound, route_and_send, send_interest};
use crate::pending::{scope_of, strategy_of, write_pending};
use crate::route::RouteLookup;
use crate::state::{Again, Arrival, Core, NON_DISCOVERY, Scratch, World};
use crate::strategy::{Ask, Remarks, Strategy, is_eligible};

/// Why a strategy may send a pending Interest again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Occasion {
    /// Routes have got new next hops.
    NewNextHops,
    /// An upstream has nacked, or not answered in time.
    Silence,
}

impl Occasion {
    fn is_used_by(self, strategy: &Strategy) -> bool {
        match self {
            Self::NewNextHops => strategy.wants_new_next_hops(),
            Self::Silence => strategy.wants_silence(),
        }
    }
}

/// Writes the Interest of an entry into `again` and hashes its name.
fn write_again<'a>(
    again: &'a mut Again,
    entry: &PitEntry,
    world: &World,
) -> (InterestView<'a>, &'a [NameHash]) {
    let Again { wire, hashes } = again;
    write_pending(entry, world.now, wire);
    let interest = InterestView::parse(wire).expect("written as an Interest");
    hashes.clear();
    let span = hashes.push_name(&world.key, interest.name());
    (interest, hashes.slice(span))
}

/// Sends a pending Interest to more next hops, where its strategy does that: for the first
/// downstream that may be served there.
pub(crate) fn retry(
    core: &mut Core,
    fib: &FibView<'_>,
    idx: EntryIdx,
    occasion: Occasion,
    out: &mut impl Output,
) {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let mut entry = tables.pit_cs.matched(idx);
    let (instance, mut state) = strategy_of(&mut entry, world, &mut scratch.name_hashes);
    if !occasion.is_used_by(world.strategies.strategy_mut(instance)) {
        return;
    }
    let Scratch {
        again,
        hint_hashes,
        plan,
        ..
    } = scratch;
    let (interest, hashes) = write_again(again, &entry, world);
    let lookup = RouteLookup {
        fib,
        key: &world.key,
        hashes,
        probe: None,
        ingress: scope_of(&entry, world),
    };
    let route = lookup.find(&interest, hint_hashes);
    plan.clear();
    let now = world.now;
    let live = entry.in_records().filter(|record| record.expiry > now);
    let outbound = live
        .map(|record| Outbound::for_downstream(&interest, record))
        .find(|outbound| {
            let ask = Ask {
                now,
                reach: outbound.reach(&world.faces),
                rng: &mut world.rng,
                faces: &world.faces,
                ingress: outbound.ingress,
                non_discovery: outbound.non_discovery,
                entry: &entry,
                hashes,
                route,
                state: &mut state,
                remarks: Remarks::default(),
            };
            let strategy = world.strategies.strategy_mut(instance);
            match occasion {
                Occasion::NewNextHops => strategy.after_new_next_hops(&ask, plan),
                Occasion::Silence => strategy.after_silence(&ask, plan),
            }
            !plan.is_empty()
        });
    if let Some(outbound) = outbound {
        for departure in plan.iter() {
            send_interest(tables, world, idx, departure, &outbound, out);
        }
    }
}

/// Sends a pending Interest upstream that the SSD level has no Data for after all: for the
/// first downstream that a next hop may serve, and else for the first.
#[cold]
pub(crate) fn send_after_store(
    core: &mut Core,
    fib: &FibView<'_>,
    idx: EntryIdx,
    out: &mut impl Output,
) {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let entry = tables.pit_cs.pit().matched(idx);
    // Taken out, since the Interest in it goes the way of a new one.
    let mut again = std::mem::take(&mut scratch.again);
    let (interest, hashes) = write_again(&mut again, entry, world);
    let scope = scope_of(entry, world);
    let lookup = RouteLookup {
        fib,
        key: &world.key,
        hashes,
        probe: None,
        ingress: scope,
    };
    let route = lookup.find(&interest, &mut scratch.hint_hashes);
    let may_be_served = |record: &InRecord| {
        let reach = Outbound::for_downstream(&interest, record).reach(&world.faces);
        let mut next_hops = route.iter().flat_map(|route| route.next_hops().iter());
        next_hops.any(|hop| is_eligible(&world.faces, hop.face(), record.face, reach))
    };
    let live = || {
        let records = entry.in_records();
        records
            .filter(|record| record.expiry > world.now)
            .filter_map(|record| Some((record, world.faces.find(record.face)?)))
    };
    let served = live().find(|(record, _)| may_be_served(record));
    if let Some((record, traits)) = served.or_else(|| live().next()) {
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
            borrowed: None,
            hashes,
            fib,
            probe: None,
        };
        let outbound = Outbound::for_downstream(&interest, record);
        route_and_send(core, (idx, Inserted::New), &arrival, &outbound, out);
    }
    core.scratch.again = again;
}
