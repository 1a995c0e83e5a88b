//! What the engine would do with an Interest, and why.
//!
//! [`Inspect::explain`] looks at the same tables in the same order as the way of an Interest
//! (`interest.rs`), and changes nothing that a packet can notice: no counter, no order of
//! eviction, no pending entry, nothing that a strategy has measured. It allocates; so it is for
//! management, between two bursts.

use std::time::Duration;

use tachonym_packet::{
    FaceId, InterestView, MonoNs, NackReason, Name, NameHash, NameHashes, NameScope,
};
use tachonym_tables::{FibReader, PitCs, PitEntry};

use crate::faces::{FaceTable, FaceTraits, LinkType, Scope};
use crate::pending::asked_at;
use crate::route::{RouteLookup, reach_of};
use crate::state::{Core, Second, State};
use crate::strategy::Reach;

/// Most pending entries of one name that are shown: they differ in CanBePrefix, MustBeFresh or
/// their forwarding hint.
const MAX_ENTRIES: usize = 8;

/// Most records of a pending entry that are shown, of each kind.
const MAX_RECORDS: usize = 16;

/// What an Interest would meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Whether the Interest is dropped because names under `/localhost` are for local faces
    /// alone.
    pub is_out_of_scope: bool,
    /// Whether the Interest may go to local faces alone.
    pub is_for_local_faces: bool,
    /// Whether the content store answers Interests at all.
    pub store_serves: bool,
    /// What the DRAM level of the content store has.
    pub cached: Option<CachedData>,
    /// What the SSD level has; `None`: there is no such level.
    pub on_ssd: Option<SsdFinding>,
    /// Interests for this name that are pending, whatever their other fields; up to 8.
    pub pending: Vec<ExplainedInterest>,
    /// The longest prefix in the FIB; `None`: no route.
    pub route: Option<ExplainedRoute>,
    /// Full name of the strategy that decides.
    pub strategy: Name,
    /// The prefix at which that strategy is set.
    pub strategy_prefix: Name,
}

/// A Data in the DRAM level of the content store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedData {
    /// Its name.
    pub name: Name,
    /// Length of the packet in bytes.
    pub n_bytes: usize,
    /// For how long it stays fresh; zero: it is stale.
    pub fresh_for: Duration,
    /// Whether it answers the Interest. If not, it is stale and the Interest has MustBeFresh.
    pub answers: bool,
}

/// What the index of the SSD level says. It knows hashes alone, so only a read tells whether
/// the Data is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsdFinding {
    /// There is no Data.
    Nothing,
    /// There is a Data, unless its hash merely collides: the Interest waits for a read.
    Probable,
    /// The level is not asked: the DRAM level has the Data, which is stale, or a read has lately
    /// found none that is fresh.
    OnlyStale,
    /// The level is still reading its index after the start; it answers nothing yet.
    Recovering,
}

/// A pending Interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedInterest {
    /// Whether it has CanBePrefix.
    pub can_be_prefix: bool,
    /// Whether it has MustBeFresh.
    pub must_be_fresh: bool,
    /// Whether it has a forwarding hint.
    pub has_hint: bool,
    /// Whether Data has answered it already; it stays for slower next hops.
    pub is_satisfied: bool,
    /// Whether it waits for a read of the SSD level, and was sent nowhere yet.
    pub awaits_store: bool,
    /// Time until it expires.
    pub expires_in: Duration,
    /// The faces that asked, up to 16.
    pub waiting: Vec<WaitingFace>,
    /// The faces that it was sent to, up to 16.
    pub asked: Vec<AskedFace>,
}

/// An in-record of a pending Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingFace {
    /// The face.
    pub face: FaceId,
    /// Time since its last Interest.
    pub since: Duration,
    /// Time until it stops waiting.
    pub expires_in: Duration,
}

/// An out-record of a pending Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedFace {
    /// The face.
    pub face: FaceId,
    /// Time since the Interest was last sent there.
    pub since: Duration,
    /// The Nack that came back, if one did.
    pub nack: Option<NackReason>,
}

/// An entry of the FIB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedRoute {
    /// The prefix.
    pub prefix: Name,
    /// Its next hops, the best first.
    pub next_hops: Vec<ExplainedHop>,
}

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainedHop {
    /// The face.
    pub face: FaceId,
    /// Lower is better.
    pub cost: u64,
    /// Components by which the prefix that has the route is shorter; 0: the prefix itself has it.
    pub distance: u8,
    /// Whether the strategy may choose it.
    pub eligibility: Eligibility,
}

/// Whether a strategy may choose a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligibility {
    /// It may.
    Eligible,
    /// The face has gone; the route goes too.
    FaceGone,
    /// The Interest comes from this face.
    Incoming,
    /// The Interest is for local faces alone, and this face is not local.
    OutOfScope,
}

/// An engine as a diagnosis looks at it.
#[derive(Debug)]
pub struct Inspect<'e> {
    pub(crate) state: &'e mut State,
    pub(crate) fib: &'e mut FibReader,
    pub(crate) hashes: &'e mut NameHashes,
}

impl Inspect<'_> {
    /// What would become of `interest` if it came now from `ingress`; from a program on this
    /// host that has no face here if that is `None`.
    #[must_use]
    pub fn explain(
        self,
        now: MonoNs,
        interest: &InterestView<'_>,
        ingress: Option<FaceId>,
    ) -> Explanation {
        let Self { state, fib, hashes } = self;
        let State { core, second, .. } = state;
        let fib = fib.pin();
        let now = core.world.now.max(now);
        hashes.clear();
        let span = hashes.push_name(&core.world.key, interest.name());
        let hashes = hashes.slice(span);
        let cached = explain_cached(&mut core.tables.pit_cs, now, interest, hashes);
        let pending = explain_pending(core, now, interest, hashes);
        let Core {
            tables,
            world,
            scratch,
        } = core;
        let faces = &world.faces;
        let traits = ingress.and_then(|face| faces.find(face));
        let is_local = ingress.is_none() || traits.is_some_and(FaceTraits::is_local);
        let reach = reach_of(interest.name(), || is_local);
        let lookup = RouteLookup {
            fib: &fib,
            key: &world.key,
            hashes,
            probe: None,
            ingress: if is_local {
                Scope::Local
            } else {
                Scope::NonLocal
            },
        };
        let management = world.settings.management_prefix.as_ref();
        let management = management.map(|prefix| prefix.view());
        let route = lookup.find_with_management(interest, management, &mut scratch.hint_hashes);
        let route = route.map(|route| ExplainedRoute {
            prefix: route.prefix().to_name(),
            next_hops: route
                .next_hops()
                .iter()
                .map(|hop| ExplainedHop {
                    face: hop.face(),
                    cost: hop.cost(),
                    distance: hop.distance(),
                    eligibility: eligibility(faces, hop.face(), ingress, reach),
                })
                .collect(),
        });
        let (strategy_prefix, strategy) = world.strategies.choice(interest.name(), hashes);
        Explanation {
            is_out_of_scope: !is_local && interest.name().scope() == NameScope::Localhost,
            is_for_local_faces: reach == Reach::LocalOnly,
            store_serves: tables.pit_cs.cs().serves(),
            on_ssd: explain_ssd(
                second,
                &tables.pit_cs,
                (now, interest, hashes),
                cached.as_ref(),
            ),
            cached,
            pending,
            route,
            strategy: strategy.to_name(),
            strategy_prefix: strategy_prefix.to_name(),
        }
    }

    /// Whether an Interest like this one from `face` is pending: it is a retransmission.
    #[must_use]
    pub fn is_pending_from(self, interest: &InterestView<'_>, face: FaceId) -> bool {
        let Core { tables, world, .. } = &self.state.core;
        self.hashes.clear();
        let span = self.hashes.push_name(&world.key, interest.name());
        let pending = tables
            .pit_cs
            .find_pending(interest, self.hashes.slice(span));
        pending.is_some_and(|idx| tables.pit_cs.pit().matched(idx).in_record(face).is_some())
    }
}

/// As [`is_eligible`](crate::strategy::is_eligible) says, with the reason.
fn eligibility(
    faces: &FaceTable,
    face: FaceId,
    ingress: Option<FaceId>,
    reach: Reach,
) -> Eligibility {
    let Some(traits) = faces.find(face) else {
        return Eligibility::FaceGone;
    };
    if Some(face) == ingress && traits.link != LinkType::AdHoc {
        Eligibility::Incoming
    } else if reach == Reach::LocalOnly && !traits.is_local() {
        Eligibility::OutOfScope
    } else {
        Eligibility::Eligible
    }
}

/// What the DRAM level has for an Interest: what answers it, or else what would if it took
/// stale Data.
fn explain_cached(
    tables: &mut PitCs,
    now: MonoNs,
    interest: &InterestView<'_>,
    hashes: &[NameHash],
) -> Option<CachedData> {
    let offer = tables.offer(interest, hashes, now);
    let answers = offer.is_some();
    let offer = match offer {
        Some(offer) => offer,
        None => {
            let lenient = with_selectors(interest, interest.can_be_prefix(), false);
            let lenient = InterestView::parse(&lenient).ok()?;
            tables.offer(&lenient, hashes, now)?
        }
    };
    let (data, fresh_until) = tables.peek(offer);
    Some(CachedData {
        name: data.view().name().to_name(),
        n_bytes: data.wire().len(),
        fresh_for: fresh_until.saturating_since(now),
        answers,
    })
}

/// What the SSD level has, by the rules of `second_level.rs`.
fn explain_ssd(
    second: &Second,
    tables: &PitCs,
    (now, interest, hashes): (MonoNs, &InterestView<'_>, &[NameHash]),
    cached: Option<&CachedData>,
) -> Option<SsdFinding> {
    let level = second.level.as_deref()?;
    let name_hash = hashes[interest.name().len()];
    let has_stale = cached.is_some_and(|data| !data.answers)
        && tables.has_data_named(interest.name(), name_hash);
    let is_only_stale =
        interest.must_be_fresh() && (has_stale || second.known_stale.contains(name_hash, now));
    Some(match level.peek(interest) {
        _ if is_only_stale => SsdFinding::OnlyStale,
        Some(_) => SsdFinding::Probable,
        None if level.is_recovering() => SsdFinding::Recovering,
        None => SsdFinding::Nothing,
    })
}

/// Every pending Interest for this name.
fn explain_pending(
    core: &Core,
    now: MonoNs,
    interest: &InterestView<'_>,
    hashes: &[NameHash],
) -> Vec<ExplainedInterest> {
    let max_lifetime_ms = core.world.settings.max_lifetime_ms;
    let mut pending = Vec::new();
    for (can_be_prefix, must_be_fresh) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let wire = with_selectors(interest, can_be_prefix, must_be_fresh);
        let Ok(like) = InterestView::parse(&wire) else {
            continue;
        };
        let tables = &core.tables.pit_cs;
        // The closure accepts none, so the search visits all.
        let _none = tables.find_pending_with_any_hint(&like, hashes, |entry| {
            if entry.expiry() > now && pending.len() < MAX_ENTRIES {
                pending.push(explain_entry(now, entry, max_lifetime_ms));
            }
            false
        });
    }
    pending
}

fn explain_entry(now: MonoNs, entry: &PitEntry, max_lifetime_ms: u64) -> ExplainedInterest {
    let in_records = entry.in_records().filter(|record| record.expiry > now);
    let waiting = in_records.map(|record| WaitingFace {
        face: record.face,
        since: now.saturating_since(asked_at(record, max_lifetime_ms)),
        expires_in: record.expiry.saturating_since(now),
    });
    let asked = entry.out_records().map(|record| AskedFace {
        face: record.face,
        since: now.saturating_since(record.last_sent),
        nack: record.nack,
    });
    ExplainedInterest {
        can_be_prefix: entry.can_be_prefix(),
        must_be_fresh: entry.must_be_fresh(),
        has_hint: entry.has_forwarding_hint(),
        is_satisfied: entry.satisfied,
        awaits_store: entry.awaits_store(),
        expires_in: entry.expiry().saturating_since(now),
        waiting: waiting.take(MAX_RECORDS).collect(),
        asked: asked.take(MAX_RECORDS).collect(),
    }
}

/// An Interest for the same name with these selectors.
fn with_selectors(
    interest: &InterestView<'_>,
    can_be_prefix: bool,
    must_be_fresh: bool,
) -> Vec<u8> {
    tachonym_packet::Interest {
        can_be_prefix,
        must_be_fresh,
        ..tachonym_packet::Interest::new(interest.name().to_name())
    }
    .encode()
}
