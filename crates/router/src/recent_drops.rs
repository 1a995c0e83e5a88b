//! The record of recent drops of a thread, as management shows it.
//!
//! Two records make it up: the engine's, and the thread's own of packets that were refused
//! before the engine saw them. Drops of frames that are no packet, and of whole batches
//! between threads, have no name and are only counted.

use std::cmp::Reverse;

use tachonym_face::monotonic_now;
use tachonym_forward::DropRecord;
use tachonym_packet::{MonoNs, Name};
use tachonym_protocol::RecentDrop;

use crate::handle::{Threads, WorkerGone};
use crate::packet_trace::is_of_traces;
use crate::plane::Plane;

/// A drop, with the time of the last one.
type Timed = (MonoNs, RecentDrop);

/// The drops of a thread under `prefix`, newest first, `limit` at most.
pub(crate) fn collect(plane: &Plane, prefix: &Name, limit: usize) -> Vec<Timed> {
    let now = monotonic_now();
    let before = plane.recent_drops.newest_under(prefix.view(), limit);
    let before = before
        .into_iter()
        .map(|record| shown(now, record, record.reason().as_str()));
    let in_engine = plane
        .engine()
        .map(|engine| engine.recent_drops().newest_under(prefix.view(), limit));
    let in_engine = in_engine.into_iter().flatten();
    let in_engine = in_engine.map(|record| shown(now, record, record.reason().label()));
    let is_shown = |drop: &Timed| !is_of_traces(drop.1.name.view());
    newest(before.chain(in_engine).filter(is_shown), limit)
}

/// The drops of all threads.
///
/// # Errors
/// When all threads have ended.
pub(crate) fn of_all(
    threads: &Threads,
    prefix: &Name,
    limit: usize,
) -> Result<Vec<RecentDrop>, WorkerGone> {
    let prefix = prefix.clone();
    let drops = threads.each(move |plane| collect(plane, &prefix, limit))?;
    let drops = newest(drops.into_iter().flatten(), limit);
    Ok(drops.into_iter().map(|(_, drop)| drop).collect())
}

fn newest(drops: impl Iterator<Item = Timed>, limit: usize) -> Vec<Timed> {
    let mut drops: Vec<_> = drops.collect();
    drops.sort_by_key(|&(last, _)| Reverse(last));
    drops.truncate(limit);
    drops
}

fn shown<R: Copy + Eq>(now: MonoNs, record: &DropRecord<R>, reason: &str) -> Timed {
    let age = now.saturating_since(record.last());
    let drop = RecentDrop {
        name: record.name().name(),
        is_name_cut: record.name().is_cut(),
        kind: record.kind().as_str().to_owned(),
        face_id: record.face().0,
        reason: reason.to_owned(),
        n_drops: record.n_drops().into(),
        age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
    };
    (record.last(), drop)
}
