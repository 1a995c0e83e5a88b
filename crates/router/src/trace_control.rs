//! Traces of packets, as management starts, reads and ends them on all threads.

use std::time::{SystemTime, UNIX_EPOCH};

use tachonym_face::monotonic_now;
use tachonym_manage::{ControlError, TraceRequest};
use tachonym_packet::{MonoNs, Name};
use tachonym_protocol::{MAX_TRACES, TRACE_LEASE_MS, TraceBatch, TraceFace, TraceRecord};
use tracing::info;

use crate::handle::{Threads, WorkerGone};
use crate::packet_trace::{FaceList, Record, TraceOrder};

/// The traces that run.
pub(crate) struct TraceControl {
    threads: Threads,
    running: Vec<Running>,
}

struct Running {
    trace_id: u64,
    prefix: Name,
    /// It counts as ended then, unless it has been read before.
    lease_ends: MonoNs,
    /// The last read, and what it returned: its reader may not have got all of it.
    last_read: Option<(u64, TraceBatch)>,
}

impl TraceControl {
    pub(crate) const fn new(threads: Threads) -> Self {
        Self {
            threads,
            running: Vec::new(),
        }
    }

    /// Begins a trace on all threads, those included that have no worker yet.
    pub(crate) fn start(&mut self, request: &TraceRequest) -> Result<u64, ControlError> {
        let now = monotonic_now();
        let ended = self.running.iter().filter(|trace| trace.lease_ends <= now);
        for trace_id in ended.map(|trace| trace.trace_id).collect::<Vec<_>>() {
            self.stop(trace_id)?;
        }
        if self.running.len() >= MAX_TRACES {
            return Err(ControlError::LimitReached(
                "4 traces run already; end one, or wait until one ends",
            ));
        }
        let trace_id = getrandom::u64().map_err(|error| ControlError::Socket(error.to_string()))?;
        let order = TraceOrder {
            trace_id,
            prefix: request.prefix.clone(),
            ends: now.plus_ms(request.duration_ms),
            max_records: request.max_records.unwrap_or(u64::MAX),
            sample: request.sample.max(1),
        };
        let started = self.threads.each(move |plane| {
            let traces = plane.traces.get_or_insert_default();
            traces.start(order.clone());
        });
        started.map_err(|WorkerGone| ControlError::Unavailable)?;
        info!(
            "a trace of packets under {} begins, for {} ms at most",
            request.prefix, request.duration_ms
        );
        self.running.push(Running {
            trace_id,
            prefix: request.prefix.clone(),
            lease_ends: now.plus_ms(TRACE_LEASE_MS),
            last_read: None,
        });
        Ok(trace_id)
    }

    /// Takes out what all threads have recorded, in the order of time.
    pub(crate) fn read(&mut self, trace_id: u64, read: u64) -> Result<TraceBatch, ControlError> {
        let now = monotonic_now();
        let mut running = self.running.iter_mut();
        let trace = running.find(|trace| trace.trace_id == trace_id && now < trace.lease_ends);
        let trace = trace.ok_or(ControlError::TraceNotFound)?;
        trace.lease_ends = now.plus_ms(TRACE_LEASE_MS);
        if let Some((number, batch)) = &trace.last_read
            && *number == read
        {
            return Ok(batch.clone());
        }
        let n_threads = self.threads.team().layout.n_threads();
        let limit = TraceRecord::MAX / n_threads.max(1);
        let recorded = self.threads.each(move |plane| {
            let traces = plane.traces.as_mut();
            traces.map(|traces| traces.read(trace_id, limit))
        });
        let recorded = recorded.map_err(|WorkerGone| ControlError::Unavailable)?;
        let mut batch = TraceBatch {
            has_ended: true,
            ..TraceBatch::default()
        };
        let clock = WallClock::now();
        let mut records = Vec::new();
        for of_thread in recorded.into_iter().flatten() {
            batch.n_not_shown += of_thread.n_not_shown;
            batch.has_ended &= of_thread.has_ended;
            records.extend(of_thread.records);
        }
        records.sort_by_key(|record| record.at);
        batch.records = records.iter().map(|it| shown(clock, it)).collect();
        trace.last_read = Some((read, batch.clone()));
        Ok(batch)
    }

    /// Ends a trace on all threads.
    pub(crate) fn stop(&mut self, trace_id: u64) -> Result<(), ControlError> {
        let idx = self.running.iter().position(|it| it.trace_id == trace_id);
        let Some(idx) = idx else {
            return Ok(());
        };
        let trace = self.running.swap_remove(idx);
        let stopped = self.threads.each(move |plane| {
            if let Some(traces) = &mut plane.traces {
                traces.stop(trace_id);
            }
            plane.traces.take_if(|traces| traces.is_empty());
        });
        stopped.map_err(|WorkerGone| ControlError::Unavailable)?;
        info!("the trace of packets under {} ends", trace.prefix);
        Ok(())
    }
}

/// One moment on both clocks.
#[derive(Clone, Copy)]
struct WallClock {
    mono: MonoNs,
    unix_us: u64,
}

impl WallClock {
    fn now() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            mono: monotonic_now(),
            unix_us: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// Microseconds since the Unix epoch at a moment that has passed.
    fn unix_us(self, at: MonoNs) -> u64 {
        let ago_us = self.mono.saturating_since(at).as_micros();
        self.unix_us
            .saturating_sub(u64::try_from(ago_us).unwrap_or(u64::MAX))
    }
}

fn shown(clock: WallClock, record: &Record) -> TraceRecord {
    let faces = |list: &FaceList| {
        let faces = list.faces().iter();
        faces.map(|face| TraceFace { face_id: face.0 }).collect()
    };
    let drops: Vec<_> = record.drops.iter().flatten().copied().collect();
    TraceRecord {
        at_us: clock.unix_us(record.at),
        kind: record.kind.as_str().to_owned(),
        name: record.name.name(),
        is_name_cut: record.name.is_cut(),
        face_id: record.face.map(|face| face.0),
        remote: record.remote.clone(),
        decision: record.decision,
        to: faces(&record.to),
        n_more_faces: record.to.n_more(),
        nacked: faces(&record.nacked),
        n_more_nacked: record.nacked.n_more(),
        nack_reason: record.nack_reason.map(|reason| reason.to_string()),
        drop_reason: (!drops.is_empty()).then(|| drops.join(",")),
    }
}
