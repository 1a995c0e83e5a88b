//! Traces of packets on one thread: which packets under a prefix it handles, and what becomes
//! of each.
//!
//! While no trace runs, nothing of this is executed for a packet: the thread decides once for
//! each task of its worker whether to run it with plain [`Ports`] or here. Here, each packet
//! that a trace selects is given to the worker alone, with ports that note what is sent; a
//! burst does the same as its packets one by one. What the engine did without sending is read
//! from its counters before and after. All other packets stay together, and what they send
//! is noted only where its name is under the prefix.
//!
//! A trace is bounded: it keeps [`MAX_RECORDS`] records, and takes at most
//! [`MAX_PER_SECOND`] a second; what it leaves out is counted.

mod record;
mod traced;

use std::collections::VecDeque;

use tachonym_face::{self as face, FaceSystem, monotonic_now};
use tachonym_forward::{RxKind, RxPacket};
use tachonym_packet::{FaceId, MonoNs, Name, NameView};
use tachonym_protocol::{TRACE_LEASE_MS, TraceDecision};
use tachonym_workers::{Batch, Crossing, Worker};

use crate::ports::Ports;
use crate::task::Task;
use record::Counted;
pub(crate) use record::{FaceList, Record};
use traced::{Current, Traced};

/// Records of one trace that wait on a thread until they are read.
const MAX_RECORDS: usize = 1_024;
/// Packets that a trace records in one second on a thread.
const MAX_PER_SECOND: u64 = 1_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Traces that a thread runs at a time: a bit for each in [`Choice::wanted`]. Management starts
/// fewer; those that it has ended may still wait to be ended here.
const MAX_ON_THREAD: usize = 8;

/// What a trace records.
#[derive(Clone, Debug)]
pub(crate) struct TraceOrder {
    pub(crate) trace_id: u64,
    /// Names under this prefix.
    pub(crate) prefix: Name,
    /// Until when.
    pub(crate) ends: MonoNs,
    /// Most records.
    pub(crate) max_records: u64,
    /// One of this many packets is recorded.
    pub(crate) sample: u64,
}

/// The traces that run on this thread.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    traces: Vec<Trace>,
    /// Lends its memory to packets of another thread that no trace selects, and to one that
    /// a trace does.
    rest: Batch,
    single: Batch,
}

#[derive(Debug)]
struct Trace {
    order: TraceOrder,
    /// It ends then, unless it is read earlier.
    lease_ends: MonoNs,
    n_matching: u64,
    n_recorded: u64,
    second: MonoNs,
    n_in_second: u64,
    records: VecDeque<Record>,
    n_not_shown: u64,
}

/// What a thread has recorded for a trace since it was last read.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) records: Vec<Record>,
    /// Since the trace began.
    pub(crate) n_not_shown: u64,
    pub(crate) has_ended: bool,
}

/// What the traces make of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    /// A bit for each trace that records it.
    wanted: u8,
    /// A trace leaves it out, though its name is under the prefix.
    is_left_out: bool,
}

impl Trace {
    fn is_on(&self, now: MonoNs) -> bool {
        now < self.order.ends && now < self.lease_ends && !self.is_full()
    }

    const fn is_full(&self) -> bool {
        self.n_recorded >= self.order.max_records
    }

    /// Whether a packet of this name is recorded; `None`: it is not under the prefix.
    fn selects(&mut self, now: MonoNs, name: NameView<'_>) -> Option<bool> {
        if !name.starts_with(self.order.prefix.view()) || !self.is_on(now) {
            return None;
        }
        if now.0.saturating_sub(self.second.0) >= SECOND_NS {
            (self.second, self.n_in_second) = (now, 0);
        }
        let is_sample = self.n_matching.is_multiple_of(self.order.sample);
        self.n_matching += 1;
        let is_selected = is_sample && self.n_in_second < MAX_PER_SECOND;
        match is_selected {
            true => {
                self.n_in_second += 1;
                self.n_recorded += 1;
            }
            false => self.n_not_shown += 1,
        }
        Some(is_selected)
    }

    fn push(&mut self, record: Record) {
        if self.records.len() < MAX_RECORDS {
            self.records.push_back(record);
        } else {
            self.n_not_shown += 1;
        }
    }
}

impl Traces {
    /// Begins a trace; it ends by itself unless it is read. The oldest trace ends if there
    /// are too many.
    pub(crate) fn start(&mut self, order: TraceOrder) {
        let now = monotonic_now();
        self.expire(now);
        if self.traces.len() == MAX_ON_THREAD {
            self.traces.remove(0);
        }
        self.traces.push(Trace {
            order,
            lease_ends: now.plus_ms(TRACE_LEASE_MS),
            n_matching: 0,
            n_recorded: 0,
            second: now,
            n_in_second: 0,
            records: VecDeque::with_capacity(MAX_RECORDS),
            n_not_shown: 0,
        });
    }

    /// Takes out what a trace has recorded, `limit` records at most.
    pub(crate) fn read(&mut self, trace_id: u64, limit: usize) -> Recorded {
        let now = monotonic_now();
        let mut traces = self.traces.iter_mut();
        let Some(trace) = traces.find(|trace| trace.order.trace_id == trace_id) else {
            return Recorded {
                has_ended: true,
                ..Recorded::default()
            };
        };
        trace.lease_ends = now.plus_ms(TRACE_LEASE_MS);
        let n_records = trace.records.len().min(limit);
        let records: Vec<_> = trace.records.drain(..n_records).collect();
        Recorded {
            records,
            n_not_shown: trace.n_not_shown,
            has_ended: !trace.is_on(now) && trace.records.is_empty(),
        }
    }

    /// Ends a trace.
    pub(crate) fn stop(&mut self, trace_id: u64) {
        self.traces.retain(|trace| trace.order.trace_id != trace_id);
    }

    /// Forgets traces that are not read any more.
    pub(crate) fn expire(&mut self, now: MonoNs) {
        self.traces.retain(|trace| now < trace.lease_ends);
    }

    /// Whether no trace is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }

    /// Runs a task, and records what it does with packets under a prefix.
    pub(crate) fn run(
        &mut self,
        now: MonoNs,
        task: Task<'_, '_>,
        worker: &mut Worker,
        ports: &mut Ports<'_>,
    ) {
        if !self.traces.iter().any(|trace| trace.is_on(now)) {
            return task.run(now, worker, ports);
        }
        if matches!(
            task,
            Task::Burst(_) | Task::HashedBurst(..) | Task::Batch(_)
        ) {
            // Else what is due would be sent and counted as if the first packet had caused it.
            self.run_others(now, Task::Timeout, false, worker, ports);
        }
        match task {
            // Its packets are hashed once more, each of those that a trace selects alone.
            Task::Burst(rx) | Task::HashedBurst(rx, _) => self.run_burst(now, rx, worker, ports),
            Task::Batch(batch) => self.run_batch(now, batch, worker, ports),
            task => self.run_others(now, task, false, worker, ports),
        }
    }

    /// Records a packet that was refused before a worker saw it.
    pub(crate) fn note_refused(
        &mut self,
        now: MonoNs,
        reason: face::DropReason,
        packet: &RxPacket<'_>,
        faces: &FaceSystem,
    ) {
        let choice = self.choose(now, packet.name());
        if choice.wanted == 0 {
            return;
        }
        let mut record = Record::of(now, packet);
        record.remote = remote_of(faces, packet.face);
        record.decision = TraceDecision::Dropped;
        record.drops[0] = Some(reason.as_str());
        self.push(choice.wanted, &record);
    }

    /// Decides for each trace whether it records a packet of this name, and counts it.
    fn choose(&mut self, now: MonoNs, name: NameView<'_>) -> Choice {
        let mut choice = Choice::default();
        if is_of_traces(name) {
            return choice;
        }
        for (idx, trace) in self.traces.iter_mut().enumerate() {
            match trace.selects(now, name) {
                Some(true) => choice.wanted |= 1 << idx,
                Some(false) => choice.is_left_out = true,
                None => {}
            }
        }
        choice
    }

    fn push(&mut self, wanted: u8, record: &Record) {
        for (idx, trace) in self.traces.iter_mut().enumerate() {
            if wanted & (1 << idx) != 0 {
                trace.push(record.clone());
            }
        }
    }

    fn run_burst(
        &mut self,
        now: MonoNs,
        rx: &[RxPacket<'_>],
        worker: &mut Worker,
        ports: &mut Ports<'_>,
    ) {
        let (mut start, mut is_muted) = (0, false);
        for (idx, packet) in rx.iter().enumerate() {
            let choice = self.choose(now, packet.name());
            if choice.wanted == 0 {
                is_muted |= choice.is_left_out;
                continue;
            }
            if start < idx {
                self.run_others(now, Task::Burst(&rx[start..idx]), is_muted, worker, ports);
            }
            let single = Task::Burst(&rx[idx..=idx]);
            self.run_single(now, single, (packet, choice.wanted), worker, ports);
            (start, is_muted) = (idx + 1, false);
        }
        if start < rx.len() || rx.is_empty() {
            self.run_others(now, Task::Burst(&rx[start..]), is_muted, worker, ports);
        }
    }

    fn run_batch(
        &mut self,
        now: MonoNs,
        batch: &Batch,
        worker: &mut Worker,
        ports: &mut Ports<'_>,
    ) {
        let mut rest = std::mem::take(&mut self.rest);
        let mut single = std::mem::take(&mut self.single);
        rest.clear();
        let mut is_muted = false;
        for parcel in batch.iter() {
            let packet = match parcel.crossing {
                Crossing::Arrived => parcel.packet(),
                _ => None,
            };
            let choice = packet
                .as_ref()
                .map(|packet| self.choose(now, packet.name()));
            let choice = choice.unwrap_or_default();
            let Some(packet) = packet.filter(|_| choice.wanted != 0) else {
                is_muted |= choice.is_left_out;
                rest.push(&parcel);
                continue;
            };
            if !rest.is_empty() {
                self.run_others(now, Task::Batch(&rest), is_muted, worker, ports);
                rest.clear();
            }
            is_muted = false;
            single.clear();
            single.push(&parcel);
            let task = Task::Batch(&single);
            self.run_single(now, task, (&packet, choice.wanted), worker, ports);
        }
        if !rest.is_empty() {
            self.run_others(now, Task::Batch(&rest), is_muted, worker, ports);
        }
        (self.rest, self.single) = (rest, single);
    }

    /// Runs a task of one packet, and records what becomes of it.
    fn run_single(
        &mut self,
        now: MonoNs,
        task: Task<'_, '_>,
        (packet, wanted): (&RxPacket<'_>, u8),
        worker: &mut Worker,
        ports: &mut Ports<'_>,
    ) {
        let is_retransmission = match &packet.packet {
            RxKind::Interest(interest) => {
                let engine = worker.engine_mut();
                engine.inspect().is_pending_from(interest, packet.face)
            }
            RxKind::Data(_) | RxKind::Nack(..) => false,
        };
        let mut record = Record::of(now, packet);
        record.remote = remote_of(ports.faces, packet.face);
        let current = Current {
            kind: record.kind,
            name: packet.name(),
        };
        let before = worker.engine().counters().clone();
        let mut traced = Traced::new(now, ports, Some(current), &task);
        task.run(now, worker, &mut traced);
        let Traced {
            seen,
            sent,
            n_unsent,
            ..
        } = traced;
        self.count_not_shown(n_unsent);
        let engine = worker.engine();
        let counted = Counted::between(&before, engine.counters());
        record.finish(
            &seen,
            &counted,
            is_retransmission,
            engine.second_level().is_some(),
        );
        self.push(wanted, &record);
        self.push_sent(now, sent, &counted);
    }

    /// Runs a task whose packets no trace selects. What it sends is recorded by its name,
    /// unless it `is_muted`: then packets that leave at once answer those that a trace has left
    /// out.
    fn run_others(
        &mut self,
        now: MonoNs,
        task: Task<'_, '_>,
        is_muted: bool,
        worker: &mut Worker,
        ports: &mut Ports<'_>,
    ) {
        let before = worker.engine().counters().clone();
        let mut traced = Traced::new(now, ports, None, &task);
        task.run(now, worker, &mut traced);
        let Traced {
            mut sent, n_unsent, ..
        } = traced;
        self.count_not_shown(n_unsent);
        if is_muted {
            let has_own_cause = |it: &Record| {
                matches!(
                    it.decision,
                    TraceDecision::Unanswered | TraceDecision::SentAgain
                )
            };
            sent.retain(has_own_cause);
        }
        let counted = Counted::between(&before, worker.engine().counters());
        self.push_sent(now, sent, &counted);
    }

    /// Counts packets whose records had no room in a task; their names are not known.
    fn count_not_shown(&mut self, n_packets: u64) {
        for trace in &mut self.traces {
            trace.n_not_shown += n_packets;
        }
    }

    /// Records packets that left without having come in the same task.
    fn push_sent(&mut self, now: MonoNs, sent: Vec<Record>, counted: &Counted) {
        for mut record in sent {
            if record.decision == TraceDecision::AnsweredFromDram && counted.is_from_ssd() {
                record.decision = TraceDecision::AnsweredFromSsd;
            }
            let name = record.name.name();
            let choice = self.choose(now, name.view());
            self.push(choice.wanted, &record);
        }
    }
}

/// Whether packets of this name belong to traces themselves: they are not shown, and their
/// names hold the numbers of traces, which only those who started them may know.
pub(crate) fn is_of_traces(name: NameView<'_>) -> bool {
    let own: [&[u8]; 3] = [b"localhost", b"nfd", b"trace"];
    let mut components = name.components();
    own.iter()
        .all(|own| components.next().is_some_and(|it| it.value() == *own))
}

/// The remote address of a face that this thread has.
fn remote_of(faces: &FaceSystem, face: FaceId) -> Option<String> {
    faces.info(face).map(|info| info.remote.to_string())
}

#[cfg(test)]
mod tests {
    use tachonym_forward::PacketKind;

    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().expect("a literal name")
    }

    fn order(sample: u64, max_records: u64) -> TraceOrder {
        TraceOrder {
            trace_id: 7,
            prefix: name("/a"),
            ends: monotonic_now().plus_ms(60_000),
            max_records,
            sample,
        }
    }

    /// Has packets of a name come, all at `now`.
    fn offer(traces: &mut Traces, now: MonoNs, uri: &str, n_packets: u64) {
        let name = name(uri);
        for _ in 0..n_packets {
            let choice = traces.choose(now, name.view());
            let packet = (PacketKind::Interest, name.view());
            traces.push(choice.wanted, &Record::new(now, packet, None));
        }
    }

    #[test]
    fn a_flood_is_cut_to_the_rate_and_to_memory_and_what_is_left_out_is_counted() {
        let mut traces = Traces::default();
        traces.start(order(1, u64::MAX));
        let now = monotonic_now();
        offer(&mut traces, now, "/a/1", MAX_PER_SECOND + 10);
        offer(&mut traces, now, "/b", 10);
        let recorded = traces.read(7, usize::MAX);
        assert_eq!(recorded.records.len() as u64, MAX_PER_SECOND);
        assert_eq!(recorded.n_not_shown, 10);
        for second in 1..4 {
            let now = now.plus_ms(1_000 * second);
            offer(&mut traces, now, "/a/1", MAX_PER_SECOND);
        }
        let recorded = traces.read(7, usize::MAX);
        assert_eq!(recorded.records.len(), MAX_RECORDS);
        let n_beyond = 3 * MAX_PER_SECOND - MAX_RECORDS as u64;
        assert_eq!(recorded.n_not_shown, 10 + n_beyond);
        assert!(!recorded.has_ended);
    }

    #[test]
    fn a_trace_samples_and_ends_with_its_count() {
        let mut traces = Traces::default();
        traces.start(order(10, 3));
        offer(&mut traces, monotonic_now(), "/a", 100);
        let recorded = traces.read(7, usize::MAX);
        assert_eq!(recorded.records.len(), 3);
        assert!(recorded.has_ended);
        assert_eq!(recorded.n_not_shown, 18, "none after the third record");
    }

    #[test]
    fn a_trace_that_is_not_read_ends_and_keeps_nothing() {
        let mut traces = Traces::default();
        traces.start(order(1, u64::MAX));
        let late = monotonic_now().plus_ms(TRACE_LEASE_MS + 1);
        offer(&mut traces, late, "/a", 5);
        assert_eq!(traces.choose(late, name("/a").view()).wanted, 0);
        traces.expire(late);
        assert!(traces.is_empty());
        let recorded = traces.read(7, usize::MAX);
        assert!(recorded.has_ended && recorded.records.is_empty());
        traces.start(order(1, u64::MAX));
        traces.stop(7);
        assert!(traces.is_empty());
    }

    #[test]
    fn a_thread_runs_eight_traces_at_most_and_the_oldest_ends() {
        let mut traces = Traces::default();
        for trace_id in 0..20 {
            traces.start(TraceOrder {
                trace_id,
                ..order(1, u64::MAX)
            });
        }
        offer(&mut traces, monotonic_now(), "/a", 1);
        let n_records = |traces: &mut Traces, id| traces.read(id, usize::MAX).records.len();
        assert_eq!(n_records(&mut traces, 11), 0);
        assert_eq!(n_records(&mut traces, 12), 1);
        assert_eq!(n_records(&mut traces, 19), 1);
    }

    #[test]
    fn packets_of_traces_themselves_are_not_recorded() {
        let mut traces = Traces::default();
        traces.start(TraceOrder {
            prefix: Name::new(),
            ..order(1, u64::MAX)
        });
        let now = monotonic_now();
        offer(&mut traces, now, "/localhost/nfd/trace/records/x", 5);
        offer(&mut traces, now, "/localhost/nfd/faces/list", 1);
        assert_eq!(traces.read(7, usize::MAX).records.len(), 1);
    }
}
