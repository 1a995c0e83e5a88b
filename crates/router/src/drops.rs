//! What the router has dropped, as of now, by reason.
//!
//! Owns the list of all counters of drops, those of the faces, of the engine,
//! and those that only the router as a whole has. Each reason has a label that
//! does not change; `docs/tools.md` tells what an operator makes of it.

use std::collections::HashMap;

use tachonym_packet::FaceId;
use tachonym_protocol::DropCount;

use crate::plane::Plane;

/// Management Interests that found the manager's queue full.
const MANAGER_QUEUE_FULL: &str = "manager-queue-full";
/// Announcements and Nacks that routes are learnt from, and that found the
/// manager's queue full.
const LESSON_QUEUE_FULL: &str = "lesson-queue-full";
/// Connections turned away.
const CONNECTION_REFUSED: &str = "connection-refused";
/// Connections turned away because their source had as many faces as it may.
const CONNECTION_REFUSED_OF_SOURCE: &str = "connection-refused-of-source";
/// Faces of remote peers that gave way to new ones.
const FACE_EVICTED: &str = "face-evicted";
/// Faces closed because their remote peer had sent no Interest in time.
const FACE_SILENT: &str = "face-silent";
/// WebSockets closed because a ping was not answered.
const PING_UNANSWERED: &str = "ping-unanswered";
/// Datagrams that the kernel dropped because a receive buffer was full.
const KERNEL_BUFFER_FULL: &str = "kernel-buffer-full";

/// Packets for a worker that had as many waiting as it may, and packets on the way between
/// threads that found no room.
const WORKER_QUEUE_FULL: &str = "worker-queue-full";
/// Packets that should have waited until their name had moved to another worker.
const MOVING_QUEUE_FULL: &str = "moving-queue-full";
/// Packets for a worker that had failed, until another was in its place.
const WORKER_FAILED: &str = "worker-failed";

/// Data that the content store did not take: alone larger than all that it may hold.
const NOT_CACHED_SIZE: &str = "not-cached-size";
/// The same: without a name, or of too many components.
const NOT_CACHED_NAME: &str = "not-cached-name";
/// Nonces of dead Interests that were forgotten before their time.
const DEAD_NONCE_EARLY: &str = "dead-nonce-early";

/// Drops for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// The face; `None`: the whole router.
    pub(crate) face: Option<FaceId>,
    pub(crate) reason: &'static str,
    pub(crate) count: u64,
}

impl From<Dropped> for DropCount {
    fn from(dropped: Dropped) -> Self {
        Self {
            face_id: dropped.face.map(|face| face.0),
            reason: dropped.reason.to_owned(),
            n_dropped: dropped.count,
        }
    }
}

/// Every count of a thread that is not zero, but the manager's: those of the whole router,
/// and those of each face, which are part of them.
pub(crate) fn collect(plane: &Plane) -> Vec<Dropped> {
    let faces = plane.faces.counters();
    let of_faces = faces.drops.iter().map(|(r, n)| (r.as_str(), n));
    let engine = plane.engine();
    let of_engine = engine
        .into_iter()
        .flat_map(|engine| engine.counters().drops());
    let of_engine = of_engine.map(|(r, n)| (r.label(), n));
    let store = engine
        .map(|engine| *engine.cs().counters())
        .unwrap_or_default();
    let receiver = plane
        .receiver()
        .map(|receiver| *receiver.counters())
        .unwrap_or_default();
    let of_router = [
        (MANAGER_QUEUE_FULL, plane.internal.interests().n_dropped()),
        (LESSON_QUEUE_FULL, plane.internal.n_dropped_lessons()),
        (
            CONNECTION_REFUSED,
            faces.n_refused - faces.n_refused_of_source,
        ),
        (CONNECTION_REFUSED_OF_SOURCE, faces.n_refused_of_source),
        (FACE_EVICTED, faces.n_evicted),
        (FACE_SILENT, faces.n_silent),
        (PING_UNANSWERED, faces.n_unanswered_pings),
        (KERNEL_BUFFER_FULL, faces.n_kernel_drops),
        (WORKER_QUEUE_FULL, plane.links().n_dropped()),
        (MOVING_QUEUE_FULL, receiver.n_order_full),
        (WORKER_FAILED, plane.counters.n_without_worker),
        (NOT_CACHED_SIZE, store.n_not_admitted_size),
        (NOT_CACHED_NAME, store.n_not_admitted_name),
        (
            DEAD_NONCE_EARLY,
            engine.map_or(0, |it| it.counters().n_dead_nonces_evicted_early),
        ),
    ];
    let whole = of_faces.chain(of_engine).chain(of_router);
    let whole = whole.map(|(reason, n)| (None, reason, n));
    let by_face = plane.faces.face_drops().flat_map(|(face, drops)| {
        let reasons = drops.iter();
        reasons.map(move |(reason, n)| (Some(face), reason.as_str(), n))
    });
    whole
        .chain(by_face)
        .filter(|&(.., count)| count > 0)
        .map(|(face, reason, count)| Dropped {
            face,
            reason,
            count,
        })
        .collect()
}

/// The counts of several threads as those of one router, in the order in which they first
/// come; those of the whole router first.
pub(crate) fn sum(of_threads: impl IntoIterator<Item = Vec<Dropped>>) -> Vec<Dropped> {
    let mut sums: Vec<Dropped> = Vec::new();
    let mut places = HashMap::new();
    for dropped in of_threads.into_iter().flatten() {
        let place = *places
            .entry((dropped.face, dropped.reason))
            .or_insert(sums.len());
        match sums.get_mut(place) {
            Some(sum) => sum.count += dropped.count,
            None => sums.push(dropped),
        }
    }
    sums.sort_by_key(|dropped| dropped.face);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every label there is, in the order of `docs/tools.md`.
    fn labels() -> Vec<&'static str> {
        let of_faces = tachonym_face::DropReason::ALL.iter().map(|r| r.as_str());
        let of_engine = tachonym_forward::DropReason::ALL.iter().map(|r| r.label());
        let of_manager = tachonym_manage::DropReason::ALL.iter().map(|r| r.label());
        of_faces
            .chain(of_engine)
            .chain(of_manager)
            .chain([
                MANAGER_QUEUE_FULL,
                LESSON_QUEUE_FULL,
                CONNECTION_REFUSED,
                CONNECTION_REFUSED_OF_SOURCE,
                FACE_EVICTED,
                FACE_SILENT,
                PING_UNANSWERED,
                KERNEL_BUFFER_FULL,
                WORKER_QUEUE_FULL,
                MOVING_QUEUE_FULL,
                WORKER_FAILED,
                NOT_CACHED_SIZE,
                NOT_CACHED_NAME,
                DEAD_NONCE_EARLY,
            ])
            .collect()
    }

    #[test]
    fn the_documentation_explains_every_reason_once() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");
        let text = std::fs::read_to_string(path).expect("docs/tools.md exists");
        let (_, table) = text
            .split_once("| reason | meaning | what to do |\n|---|---|---|\n")
            .expect("a table of the reasons");
        let rows: Vec<Vec<&str>> = table
            .lines()
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        for row in &rows {
            assert_eq!(row.len(), 3, "{row:?}");
            assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        }
        let documented: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
        assert_eq!(documented, labels());
    }

    #[test]
    fn counts_of_threads_are_added_by_face_and_reason() {
        let dropped = |face: Option<u64>, reason, count| Dropped {
            face: face.map(FaceId),
            reason,
            count,
        };
        let first = vec![dropped(None, "a", 1), dropped(Some(256), "a", 1)];
        let second = vec![
            dropped(None, "b", 2),
            dropped(None, "a", 3),
            dropped(Some(257), "a", 3),
        ];
        let sums = [
            dropped(None, "a", 4),
            dropped(None, "b", 2),
            dropped(Some(256), "a", 1),
            dropped(Some(257), "a", 3),
        ];
        assert_eq!(sum([first, second]), sums);
    }

    #[test]
    fn labels_are_distinct_and_lower_case_with_hyphens() {
        let mut all = labels();
        for label in &all {
            let is_plain = label.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            assert!(is_plain, "{label}");
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), labels().len());
    }
}
