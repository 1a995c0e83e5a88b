//! `asf`: adaptive forwarding by measured round-trip time, with probes of the
//! next hops not in use (Lehman et al., "An Experimental Investigation of
//! Hyperbolic Routing with a Smart Forwarding Plane in NDN", 2016, section 4;
//! version 5).

use std::time::Duration;

use tachonym_packet::FaceId;

use super::measurements::Measurements;
use super::next_hops::{Health, Limits, Namespace};
use super::suppression::Suppression;
use super::{Answer, Ask, Departure, DepartureNonce, IntervalMs, Verdict};

/// How long a satisfied entry lingers for slower upstreams.
const LINGER: Duration = Duration::from_millis(50);

/// The first probe of a route is sent within this many milliseconds.
const FIRST_PROBE_WITHIN_MS: u64 = 5_000;

/// Next hops that take part in the draw for a probe.
const MAX_PROBE_CANDIDATES: usize = 32;

/// Parameters of the strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AsfOptions {
    pub(super) suppression: Suppression,
    pub(super) probing_interval: Duration,
    pub(super) limits: Limits,
}

#[derive(Debug)]
pub(crate) struct Asf {
    options: AsfOptions,
    measurements: Measurements<Namespace>,
}

impl Asf {
    pub(super) fn new(options: AsfOptions) -> Self {
        Self {
            options,
            measurements: Measurements::new(options.limits.max_namespaces, options.limits.lifetime),
        }
    }

    pub(super) fn n_measurements(&self) -> usize {
        self.measurements.len()
    }

    pub(super) fn after_interest(
        &mut self,
        ask: &mut Ask<'_>,
        plan: &mut Vec<Departure>,
    ) -> Verdict {
        let Some(route) = ask.route else {
            return Verdict::Reject;
        };
        let (prefix, hash) = (route.prefix(), route.prefix_hash());
        let place = self.measurements.find_or_insert(prefix, hash, ask.now);
        ask.state.namespace = place;
        let limits = self.options.limits;
        let namespace = self
            .measurements
            .get_mut(place)
            .expect("the namespace was found or inserted just now");
        if ask.is_pending() {
            retransmit(&self.options.suppression, namespace, limits, ask, plan)
        } else {
            self.options.forward_new(namespace, ask, plan)
        }
    }

    pub(super) fn before_satisfy(&mut self, answer: &Answer<'_>) -> Duration {
        let limits = self.options.limits;
        let info = self
            .measurements
            .get_mut(answer.state.namespace)
            .and_then(|namespace| namespace.face_mut(answer.ingress, answer.now, limits));
        let Some(info) = info else {
            return Duration::ZERO;
        };
        let rtt = answer
            .entry
            .out_record(answer.ingress)
            .map(|record| answer.now.saturating_since(record.last_sent));
        info.note_data(answer.entry.name_hash(), rtt, answer.now, limits);
        LINGER
    }

    pub(super) fn after_nack(&mut self, answer: &Answer<'_>) {
        let limits = self.options.limits;
        if let Some(info) = self
            .measurements
            .get_mut(answer.state.namespace)
            .and_then(|namespace| namespace.face_mut(answer.ingress, answer.now, limits))
        {
            info.note_nack(answer.entry.name_hash());
        }
    }
}

impl AsfOptions {
    fn forward_new(
        &self,
        namespace: &mut Namespace,
        ask: &mut Ask<'_>,
        plan: &mut Vec<Departure>,
    ) -> Verdict {
        let Some(face) = best_face(namespace, self.limits, ask, |_| true) else {
            return Verdict::Reject;
        };
        depart(namespace, self.limits, ask, face);
        plan.push(Departure::to(face));
        if self.is_probe_due(namespace, ask)
            && let Some(probed) = face_to_probe(namespace, self.limits, ask, face)
        {
            depart(namespace, self.limits, ask, probed);
            plan.push(Departure {
                nonce: DepartureNonce::Fresh,
                ..Departure::to(probed)
            });
            namespace.probe_at = Some(ask.now + self.probing_interval);
        }
        Verdict::ForwardPlan
    }

    /// The first probe of a route is spread over some seconds, so that routes
    /// that appear together do not probe together.
    fn is_probe_due(&self, namespace: &mut Namespace, ask: &mut Ask<'_>) -> bool {
        let now = ask.now;
        let probe_at = *namespace
            .probe_at
            .get_or_insert_with(|| now.plus_ms(ask.rng.below(FIRST_PROBE_WITHIN_MS + 1)));
        probe_at <= now
    }
}

/// The best next hop not in use; if all are, the one used longest ago. Held
/// back for each upstream on its own.
fn retransmit(
    suppression: &Suppression,
    namespace: &mut Namespace,
    limits: Limits,
    ask: &mut Ask<'_>,
    plan: &mut Vec<Departure>,
) -> Verdict {
    let unused = best_face(namespace, limits, ask, |face| !ask.is_used(face));
    let Some(face) = unused.or_else(|| ask.used_longest_ago()) else {
        return Verdict::Hold;
    };
    let mut departure = Departure::to(face);
    if let Some(record) = ask.entry.out_record(face) {
        let age = ask.now.saturating_since(record.last_sent);
        if suppression.holds_back(IntervalMs::of(record), age) {
            return Verdict::Hold;
        }
        departure.memory = suppression.grown(IntervalMs::of(record)).0;
    }
    if unused.is_some() {
        depart(namespace, limits, ask, face);
    }
    plan.push(departure);
    Verdict::ForwardPlan
}

fn depart(namespace: &mut Namespace, limits: Limits, ask: &Ask<'_>, face: FaceId) {
    if let Some(info) = namespace.face_or_insert(face, ask.now, limits) {
        info.note_departure(ask.entry.name_hash(), ask.now, limits);
    }
}

/// Working next hops by smoothed round-trip time, then unmeasured ones, then
/// those that timed out, in the order of the FIB.
fn best_face(
    namespace: &mut Namespace,
    limits: Limits,
    ask: &Ask<'_>,
    allowed: impl Fn(FaceId) -> bool,
) -> Option<FaceId> {
    ask.eligible_next_hops()
        .filter(|hop| allowed(hop.face()))
        .min_by_key(|hop| {
            let (health, srtt_ns) = namespace.rank(hop.face(), ask.now, limits);
            let (group, srtt_ns) = match health {
                Health::Working => (1, srtt_ns),
                Health::Unmeasured => (2, u64::MAX),
                Health::TimedOut => (3, u64::MAX),
            };
            // Of equals the first stays: the FIB has the better one first.
            (group, srtt_ns)
        })
        .map(|hop| hop.face())
}

/// An unmeasured next hop if there is one; else a draw among the others in
/// which a better rank has the better odds: the j-th of n wins with weight
/// n + 1 - j.
fn face_to_probe(
    namespace: &mut Namespace,
    limits: Limits,
    ask: &mut Ask<'_>,
    used: FaceId,
) -> Option<FaceId> {
    let mut ranked = [(0_u8, 0_u64, 0_usize, FaceId(0)); MAX_PROBE_CANDIDATES];
    let mut n_ranked = 0;
    for hop in ask.eligible_next_hops() {
        // A probe never goes back, even where the link is ad hoc.
        if hop.face() == used || hop.face() == ask.ingress || n_ranked == MAX_PROBE_CANDIDATES {
            continue;
        }
        let (health, srtt_ns) = namespace.rank(hop.face(), ask.now, limits);
        let (group, srtt_ns) = match health {
            Health::Unmeasured => (1, u64::MAX),
            Health::Working => (2, srtt_ns),
            Health::TimedOut => (3, u64::MAX),
        };
        ranked[n_ranked] = (group, srtt_ns, n_ranked, hop.face());
        n_ranked += 1;
    }
    let ranked = &mut ranked[..n_ranked];
    ranked.sort_unstable();
    let &(group, _, _, first) = ranked.first()?;
    if group == 1 {
        return Some(first);
    }
    let n = n_ranked as u64;
    let mut draw = ask.rng.below(n * (n + 1) / 2);
    for (&(_, _, _, face), weight) in ranked.iter().zip((1..=n).rev()) {
        if draw < weight {
            return Some(face);
        }
        draw -= weight;
    }
    None
}
