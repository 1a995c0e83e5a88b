//! What the router would do with an Interest, put together from its workers and faces.
//!
//! Each worker has its part of the names. Route, scope and strategy are those of the worker at
//! which the name is at home; Data and pending Interests are looked for at all of them, because
//! Data for an Interest with CanBePrefix may be at any, and a name that has moved may still be
//! pending where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tachonym_dispatch::WorkerId;
use tachonym_face::monotonic_now;
use tachonym_forward as forward;
use tachonym_manage::ControlError;
use tachonym_packet::{FaceId, Interest, InterestView};
use tachonym_protocol::{
    AskedFace, CachedData, ExplainQuery, ExplainedNextHop, FaceState, FaceStatus, NameExplanation,
    NextHopUse, PendingInterest, SsdFinding, WaitingFace,
};

use crate::face_status::face_status;
use crate::handle::{Threads, WorkerGone};
use crate::null_face;
use crate::plane::Plane;

/// Most faces whose status one explanation has.
const MAX_FACES: usize = 128;

/// What would become of the Interest of `query`, whose name is at home at `home`.
///
/// # Errors
/// If no Interest can have the name, there is no such face, or no worker is left.
pub(crate) fn explain(
    threads: &Threads,
    home: WorkerId,
    query: &ExplainQuery,
) -> Result<NameExplanation, ControlError> {
    let interest = Interest {
        can_be_prefix: query.can_be_prefix,
        must_be_fresh: query.must_be_fresh,
        ..Interest::new(query.name.clone())
    };
    let wire = interest.encode();
    if let Err(error) = InterestView::parse(&wire) {
        return Err(ControlError::BadName(error.to_string()));
    }
    let ingress = query.face_id.map(FaceId);
    let found = threads.each(move |plane: &mut Plane| {
        let thread = plane.thread();
        let engine = plane.engine_mut()?;
        let interest = InterestView::parse(&wire).ok()?;
        let is_known = ingress.is_none_or(|face| engine.face(face).is_some());
        let found = is_known.then(|| {
            engine
                .inspect()
                .explain(monotonic_now(), &interest, ingress)
        });
        Some((thread, found))
    });
    let found = found.map_err(|WorkerGone| ControlError::Unavailable)?;
    let found: Vec<_> = found.into_iter().flatten().collect();
    if found.is_empty() {
        return Err(ControlError::Unavailable);
    }
    let found = found
        .into_iter()
        .filter_map(|(thread, found)| Some((thread, found?)));
    let found: BTreeMap<WorkerId, forward::Explanation> = found.collect();
    // A worker that has just failed is replaced in a moment; the others have the same routes.
    let (&worker, at_home) = found
        .get_key_value(&home)
        .or_else(|| found.first_key_value())
        .ok_or(ControlError::FaceNotFound)?;
    let mut explanation = NameExplanation {
        worker: worker.0.into(),
        is_out_of_scope: at_home.is_out_of_scope,
        is_for_local_faces: at_home.is_for_local_faces,
        store_serves: at_home.store_serves,
        cached: best_cached(found.values()),
        on_ssd: on_ssd(found.values()),
        pending: found
            .values()
            .flat_map(|found| &found.pending)
            .map(pending)
            .take(PendingInterest::MAX)
            .collect(),
        route_prefix: at_home.route.as_ref().map(|route| route.prefix.clone()),
        next_hops: at_home
            .route
            .iter()
            .flat_map(|route| &route.next_hops)
            .map(next_hop)
            .take(ExplainedNextHop::MAX)
            .collect(),
        strategy: at_home.strategy.clone(),
        strategy_prefix: at_home.strategy_prefix.clone(),
        faces: Vec::new(),
    };
    explanation.faces = faces_of(threads, &explanation, query.face_id)?;
    for hop in &mut explanation.next_hops {
        let mut faces = explanation.faces.iter();
        let face = faces.find(|face| face.face_id == hop.face_id);
        let is_down = face.is_some_and(|face| face.state == Some(FaceState::Down));
        if hop.usage == NextHopUse::Usable && is_down {
            hop.usage = NextHopUse::FaceDown;
        }
    }
    Ok(explanation)
}

/// Of what the DRAM levels of all workers have, what would answer; else what is stale.
fn best_cached<'a>(found: impl Iterator<Item = &'a forward::Explanation>) -> Option<CachedData> {
    let cached = found.filter_map(|found| found.cached.as_ref());
    let best = cached.max_by_key(|data| (data.answers, data.fresh_for))?;
    Some(CachedData {
        name: best.name.clone(),
        n_bytes: best.n_bytes as u64,
        // What is fresh for less than a millisecond is not stale.
        fresh_for_ms: best.fresh_for.as_nanos().div_ceil(1_000_000) as u64,
        answers: best.answers,
    })
}

/// What the SSD levels of all workers say together.
fn on_ssd<'a>(found: impl Iterator<Item = &'a forward::Explanation>) -> SsdFinding {
    let findings: BTreeSet<_> = found
        .filter_map(|found| found.on_ssd)
        .map(|finding| match finding {
            forward::SsdFinding::Probable => (3, SsdFinding::Probable),
            forward::SsdFinding::OnlyStale => (2, SsdFinding::OnlyStale),
            forward::SsdFinding::Recovering => (1, SsdFinding::Recovering),
            forward::SsdFinding::Nothing => (0, SsdFinding::Nothing),
        })
        .collect();
    findings
        .last()
        .map_or(SsdFinding::NotConfigured, |&(_, finding)| finding)
}

fn pending(pending: &forward::ExplainedInterest) -> PendingInterest {
    let waiting = pending.waiting.iter().map(|waiting| WaitingFace {
        face_id: waiting.face.0,
        since_ms: ms(waiting.since),
        expires_in_ms: ms(waiting.expires_in),
    });
    let asked = pending.asked.iter().map(|asked| AskedFace {
        face_id: asked.face.0,
        since_ms: ms(asked.since),
        nack: asked.nack.map(|reason| reason.code()),
    });
    PendingInterest {
        can_be_prefix: pending.can_be_prefix,
        must_be_fresh: pending.must_be_fresh,
        has_hint: pending.has_hint,
        is_satisfied: pending.is_satisfied,
        awaits_store: pending.awaits_store,
        expires_in_ms: ms(pending.expires_in),
        waiting: waiting.take(WaitingFace::MAX).collect(),
        asked: asked.take(AskedFace::MAX).collect(),
    }
}

fn next_hop(hop: &forward::ExplainedHop) -> ExplainedNextHop {
    ExplainedNextHop {
        face_id: hop.face.0,
        cost: hop.cost,
        usage: match hop.eligibility {
            forward::Eligibility::Eligible => NextHopUse::Usable,
            forward::Eligibility::FaceGone => NextHopUse::FaceGone,
            forward::Eligibility::Incoming => NextHopUse::Incoming,
            forward::Eligibility::OutOfScope => NextHopUse::OutOfScope,
        },
        origin: None,
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The faces that an explanation mentions, as they are now.
fn faces_of(
    threads: &Threads,
    explanation: &NameExplanation,
    ingress: Option<u64>,
) -> Result<Vec<FaceStatus>, ControlError> {
    let hops = explanation.next_hops.iter().map(|hop| hop.face_id);
    let pending = explanation.pending.iter();
    let records = pending.flat_map(|pending| {
        let waiting = pending.waiting.iter().map(|record| record.face_id);
        waiting.chain(pending.asked.iter().map(|record| record.face_id))
    });
    // The face that asks comes first, so that the limit never leaves it out.
    let mut ids = BTreeSet::new();
    for id in ingress.into_iter().chain(hops).chain(records) {
        if ids.len() == MAX_FACES {
            break;
        }
        ids.insert(id);
    }
    let mut of_thread: BTreeMap<usize, Vec<FaceId>> = BTreeMap::new();
    let mut faces = Vec::new();
    for id in ids.into_iter().map(FaceId) {
        if id == FaceId::NULL {
            faces.push(null_face::status());
        } else if let Some(thread) = threads.team().layout.thread_of_face(id) {
            of_thread.entry(thread.idx()).or_default().push(id);
        }
    }
    for (thread, ids) in of_thread {
        let infos = threads.at(thread, move |plane| {
            let infos = ids.iter().filter_map(|&id| plane.faces.info(id));
            infos.collect::<Vec<_>>()
        });
        let infos = infos.map_err(|WorkerGone| ControlError::Unavailable)?;
        faces.extend(infos.iter().map(face_status));
    }
    faces.sort_unstable_by_key(|face| face.face_id);
    Ok(faces)
}
