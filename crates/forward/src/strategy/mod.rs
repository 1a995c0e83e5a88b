//! Strategies: where an Interest goes.
//!
//! A strategy decides and the engine acts. It is asked with an [`Ask`] (the
//! next hops, what was already sent, time, randomness) and answers with a
//! [`Verdict`] and a plan of [`Departure`]s; it sends nothing itself and owns
//! no clock. What it remembers is small: [`EntryState`] inside a pending
//! entry, a word of its own inside an out-record, and bounded measurements.
//!
//! A new strategy is a module with these three functions, a variant of
//! [`Strategy`], and a line in [`instance`]. Dispatch is a `match`, so the
//! packet path has no indirect call.

mod access;
mod asf;
mod best_route;
mod choice;
mod instance;
mod measurements;
mod multicast;
mod next_hops;
mod random;
mod rtt;
mod self_learning;
mod suppression;

use std::time::Duration;

use tachonym_packet::{FaceId, MonoNs, NameHash, NameView};
use tachonym_tables::{FibMatch, NextHop, OutRecord, PitEntry};

pub(crate) use choice::{InstanceIdx, StrategyTable};
pub(crate) use suppression::IntervalMs;

pub use instance::{StrategyError, registered_strategies, resolve_strategy};

use crate::faces::{FaceTable, LinkType};
use crate::rng::Rng;

/// A strategy with its parameters and what it has measured.
#[derive(Debug)]
pub(crate) enum Strategy {
    BestRoute(best_route::BestRoute),
    Multicast(multicast::Multicast),
    Random(random::Random),
    /// Boxed, like the next: they are much larger than the others.
    Asf(Box<asf::Asf>),
    Access(Box<access::Access>),
    SelfLearning(self_learning::SelfLearning),
}

/// What becomes of an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It leaves once.
    Forward(Departure),
    /// It leaves as the plan says.
    ForwardPlan,
    /// It stays with the pending entry; nothing leaves.
    Hold,
    /// Nothing may take it: the entry ends with Nacks.
    Reject,
    /// Nothing may take it now: it waits for a new next hop, without Nacks.
    Strand,
}

/// One transmission of an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) face: FaceId,
    /// What the out-record remembers for the strategy.
    pub(crate) memory: u32,
    /// Whether it must not make others ask everybody (NDNLPv2, "Self-Learning"),
    /// though the Interest came without that mark.
    pub(crate) non_discovery: bool,
    pub(crate) nonce: DepartureNonce,
    /// When the strategy wants to hear that no answer has come.
    pub(crate) timeout: Option<Duration>,
}

/// The nonce an Interest leaves with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DepartureNonce {
    /// The one it came with.
    AsReceived,
    /// A new one: a probe must not look like a loop to its sibling.
    Fresh,
}

impl Departure {
    pub(crate) fn to(face: FaceId) -> Self {
        Self {
            face,
            memory: 0,
            non_discovery: false,
            nonce: DepartureNonce::AsReceived,
            timeout: None,
        }
    }
}

/// What strategies remember in a pending entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryState {
    /// How long retransmissions of the entry are held back.
    pub(crate) interval: IntervalMs,
    /// Where the measurements of the entry's route are.
    pub(crate) namespace: measurements::NamespaceRef,
}

/// Where an Interest may go, by its name and the face that brought it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Anywhere,
    LocalOnly,
}

/// A question to a strategy: where does this Interest go?
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) now: MonoNs,
    pub(crate) rng: &'a mut Rng,
    pub(crate) faces: &'a FaceTable,
    pub(crate) ingress: FaceId,
    /// Whether the Interest came marked NonDiscovery.
    pub(crate) non_discovery: bool,
    pub(crate) reach: Reach,
    /// The pending entry that the Interest has become or joined.
    pub(crate) entry: &'a PitEntry,
    /// Hashes of its name's prefixes, from the empty one to the name itself.
    pub(crate) hashes: &'a [NameHash],
    /// What the FIB says; `None` for nothing.
    pub(crate) route: Option<FibMatch<'a>>,
    pub(crate) state: &'a mut EntryState,
    /// What the strategy has to say besides its answer.
    pub(crate) remarks: Remarks,
}

/// What a strategy has noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    /// The route leads back to where the Interest came from, and nowhere else.
    pub(crate) leads_back: bool,
    /// There are more faces than the Interest may go to.
    pub(crate) is_cut: bool,
}

impl Strategy {
    /// An Interest that the content store could not answer has become, or
    /// joined, a pending entry. `plan` is empty on entry.
    pub(crate) fn after_interest(
        &mut self,
        ask: &mut Ask<'_>,
        plan: &mut Vec<Departure>,
    ) -> Verdict {
        match self {
            Self::BestRoute(it) => it.after_interest(ask),
            Self::Multicast(it) => it.after_interest(ask, plan),
            Self::Random(it) => it.after_interest(ask),
            Self::Asf(it) => it.after_interest(ask, plan),
            Self::Access(it) => it.after_interest(ask, plan),
            Self::SelfLearning(it) => it.after_interest(ask, plan),
        }
    }

    /// A Data answers an entry. Returns how long the entry should linger to
    /// measure slower upstreams; zero for not at all.
    pub(crate) fn before_satisfy(&mut self, answer: &Answer<'_>) -> Duration {
        match self {
            Self::Asf(it) => it.before_satisfy(answer),
            Self::Access(it) => {
                it.before_satisfy(answer);
                Duration::ZERO
            }
            Self::BestRoute(_) | Self::Multicast(_) | Self::Random(_) | Self::SelfLearning(_) => {
                Duration::ZERO
            }
        }
    }

    /// An upstream has nacked. Whether downstreams get a Nack is not decided here: see
    /// [`Self::returns_nacks`].
    pub(crate) fn after_nack(&mut self, answer: &Answer<'_>) {
        match self {
            Self::Asf(it) => it.after_nack(answer),
            Self::BestRoute(_)
            | Self::Multicast(_)
            | Self::Random(_)
            | Self::Access(_)
            | Self::SelfLearning(_) => {}
        }
    }

    /// Whether downstreams get Nacks: for a loop, and once all upstreams have nacked. The rule
    /// when that is so is the same for all strategies.
    pub(crate) fn returns_nacks(&self) -> bool {
        !matches!(self, Self::Multicast(_))
    }

    /// The FIB has new next hops: more transmissions of a pending Interest, if
    /// the strategy wants them. `plan` is empty on entry.
    pub(crate) fn after_new_next_hops(&self, ask: &Ask<'_>, plan: &mut Vec<Departure>) {
        if let Self::Multicast(it) = self {
            it.after_new_next_hops(ask, plan);
        }
    }

    /// An upstream has nacked, or has not answered within the time-out of its
    /// departure: more transmissions of the Interest, if the strategy wants them.
    /// `plan` is empty on entry.
    pub(crate) fn after_silence(&self, ask: &Ask<'_>, plan: &mut Vec<Departure>) {
        if let Self::Access(it) = self {
            it.after_silence(ask, plan);
        }
    }

    /// Routes that the strategy has measured.
    pub(crate) fn n_measurements(&self) -> usize {
        match self {
            Self::Asf(it) => it.n_measurements(),
            Self::Access(it) => it.n_measurements(),
            Self::BestRoute(_) | Self::Multicast(_) | Self::Random(_) | Self::SelfLearning(_) => 0,
        }
    }

    /// Whether routes are learnt from announcements.
    pub(crate) fn learns_routes(&self) -> bool {
        matches!(self, Self::SelfLearning(_))
    }

    /// What an upstream's answer says about routes; `record` is that upstream's.
    pub(crate) fn lesson_of(&self, record: &OutRecord) -> Lesson {
        match self {
            Self::SelfLearning(_) if self_learning::is_discovery(record) => Lesson::NewRoute,
            Self::SelfLearning(_) => Lesson::KnownRoute,
            _ => Lesson::None,
        }
    }

    /// Whether [`Self::before_satisfy`] ever does anything.
    pub(crate) fn measures(&self) -> bool {
        matches!(self, Self::Asf(_) | Self::Access(_))
    }

    /// Whether [`Self::after_new_next_hops`] ever plans anything.
    pub(crate) fn wants_new_next_hops(&self) -> bool {
        matches!(self, Self::Multicast(_))
    }

    /// Whether [`Self::after_silence`] ever plans anything.
    pub(crate) fn wants_silence(&self) -> bool {
        matches!(self, Self::Access(_))
    }
}

/// What a strategy that learns routes makes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lesson {
    /// Nothing: the strategy leaves routes to others.
    None,
    /// The upstream was found by asking everybody: an announcement that comes
    /// with its Data makes a route.
    NewRoute,
    /// The upstream was on a known route. Who asked to discover it gets the
    /// announcement that is known here; a Nack says that the route is wrong.
    KnownRoute,
}

/// What came back from an upstream.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) now: MonoNs,
    /// The upstream.
    pub(crate) ingress: FaceId,
    /// Name of what has come back.
    pub(crate) name: NameView<'a>,
    /// Hashes of its prefixes, from the empty one to the name itself.
    pub(crate) hashes: &'a [NameHash],
    pub(crate) entry: &'a PitEntry,
    pub(crate) state: &'a EntryState,
}

impl Ask<'_> {
    fn is_eligible(&self, face: FaceId) -> bool {
        is_eligible(self.faces, face, self.ingress, self.reach)
    }

    fn eligible_next_hops(&self) -> impl Iterator<Item = NextHop> {
        let next_hops = self.route.map(|route| route.next_hops().iter());
        let next_hops = next_hops.into_iter().flatten();
        next_hops.filter(|hop| self.is_eligible(hop.face()))
    }

    /// Whether any upstream may still answer.
    fn is_pending(&self) -> bool {
        self.entry
            .out_records()
            .any(|record| is_awaited(record, self.faces, self.now))
    }

    /// How long ago the Interest last went to any upstream.
    fn age_of_last_transmission(&self) -> Duration {
        let last = self
            .entry
            .out_records()
            .map(|record| record.last_sent)
            .max();
        self.now.saturating_since(last.unwrap_or(MonoNs::ZERO))
    }

    /// Whether `face` holds an unexpired transmission of this Interest.
    fn is_used(&self, face: FaceId) -> bool {
        self.entry
            .out_record(face)
            .is_some_and(|record| record.expiry > self.now)
    }

    /// The cheapest eligible next hop without an unexpired transmission.
    fn first_unused(&self) -> Option<FaceId> {
        self.eligible_next_hops()
            .map(|hop| hop.face())
            .find(|&face| !self.is_used(face))
    }

    /// The eligible next hop whose transmission is the oldest.
    fn used_longest_ago(&self) -> Option<FaceId> {
        self.eligible_next_hops()
            .filter_map(|hop| self.entry.out_record(hop.face()))
            .min_by_key(|record| record.last_sent)
            .map(|record| record.face)
    }
}

/// Whether `face` may take an Interest from `ingress`: it exists, the scope
/// allows it, and it is not where the Interest came from, unless that link is
/// ad hoc.
pub(crate) fn is_eligible(faces: &FaceTable, face: FaceId, ingress: FaceId, reach: Reach) -> bool {
    let Some(traits) = faces.find(face) else {
        return false;
    };
    (face != ingress || traits.link == LinkType::AdHoc)
        && (reach == Reach::Anywhere || traits.is_local())
}

impl IntervalMs {
    /// What the strategy remembers of one upstream.
    pub(crate) fn of(record: &OutRecord) -> Self {
        Self(record.strategy_word)
    }
}

/// Whether `record` may still bring an answer.
pub(crate) fn is_awaited(record: &OutRecord, faces: &FaceTable, now: MonoNs) -> bool {
    record.nack.is_none() && record.expiry > now && faces.contains(record.face)
}
