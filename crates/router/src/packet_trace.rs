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

use std::collections::VecDeque;

use tachonym_dispatch::WorkerId;
use tachonym_face::{self as face, FaceSystem, monotonic_now};
use tachonym_forward::{
    Block, Counters, DropReason, KeptName, Output, PacketKind, RxKind, RxPacket,
};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    DataView, FaceId, InterestRewrite, InterestView, MonoNs, NackReason, Name, NameView, PacketView,
};
use tachonym_protocol::{TRACE_LEASE_MS, TraceDecision, TraceFace};
use tachonym_workers::{Batch, Crossing, Parcel, Port, Worker};

use crate::ports::Ports;
use crate::task::Task;

/// Records of one trace that wait on a thread until they are read.
const MAX_RECORDS: usize = 1_024;
/// Packets that a trace records in one second on a thread.
const MAX_PER_SECOND: u64 = 1_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Packets that leave in one task without having come in it, which are recorded.
const MAX_SENT: usize = 64;
/// Reasons of drops that a record holds.
const MAX_DROPS: usize = 3;

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
    /// It is gone then, unless it has been read before.
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

/// A packet, and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) at: MonoNs,
    pub(crate) kind: PacketKind,
    pub(crate) face: Option<FaceId>,
    /// Its remote address, if the face is this thread's. It may have gone when this is read.
    pub(crate) remote: Option<String>,
    pub(crate) name: KeptName,
    pub(crate) decision: TraceDecision,
    pub(crate) to: FaceList,
    pub(crate) nacked: FaceList,
    pub(crate) nack_reason: Option<NackReason>,
    pub(crate) drops: [Option<&'static str>; MAX_DROPS],
}

/// Faces that something was sent to: the first, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FaceList {
    first: [FaceId; TraceFace::MAX],
    n_faces: u32,
}

impl FaceList {
    fn push(&mut self, face: FaceId) {
        if let Some(place) = self.first.get_mut(self.n_faces as usize) {
            *place = face;
        }
        self.n_faces = self.n_faces.saturating_add(1);
    }

    const fn is_empty(&self) -> bool {
        self.n_faces == 0
    }

    /// Those that are known.
    pub(crate) fn faces(&self) -> &[FaceId] {
        &self.first[..(self.n_faces as usize).min(TraceFace::MAX)]
    }

    /// How many there are beyond these.
    pub(crate) fn n_more(&self) -> u64 {
        u64::from(self.n_faces) - self.faces().len() as u64
    }
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
    /// Begins a trace; it ends by itself unless it is read.
    pub(crate) fn start(&mut self, order: TraceOrder) {
        let now = monotonic_now();
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
        match task {
            Task::Burst(rx) => self.run_burst(now, rx, worker, ports),
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
        if is_own(name) {
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
                Crossing::Arrived => received(&parcel),
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
                engine.is_pending_from(interest, packet.face)
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
        let Traced { seen, sent, .. } = traced;
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
    /// unless it `is_muted`: then it answers packets that a trace has left out.
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
        let sent = traced.sent;
        if !is_muted {
            let counted = Counted::between(&before, worker.engine().counters());
            self.push_sent(now, sent, &counted);
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

/// Whether packets of this name belong to traces themselves.
fn is_own(name: NameView<'_>) -> bool {
    let own: [&[u8]; 3] = [b"localhost", b"nfd", b"trace"];
    let mut components = name.components();
    own.iter()
        .all(|own| components.next().is_some_and(|it| it.value() == *own))
}

/// The remote address of a face that this thread has.
fn remote_of(faces: &FaceSystem, face: FaceId) -> Option<String> {
    faces.info(face).map(|info| info.remote.to_string())
}

/// The packet in a parcel, if it is one.
fn received<'a>(parcel: &Parcel<'a>) -> Option<RxPacket<'a>> {
    let packet = PacketView::parse(parcel.wire).ok()?;
    RxPacket::new(parcel.face, parcel.headers, packet)
}

/// What the engine counted while it handled a packet.
#[derive(Debug)]
struct Counted {
    n_aggregated: u64,
    n_dram_hits: u64,
    n_ssd_hits: u64,
    n_unsolicited: u64,
    drops: [Option<&'static str>; MAX_DROPS],
}

impl Counted {
    fn between(before: &Counters, after: &Counters) -> Self {
        let mut drops = [None; MAX_DROPS];
        let reasons = DropReason::ALL.iter();
        let dropped = reasons.filter(|&&it| after.n_dropped(it) > before.n_dropped(it));
        for (place, reason) in drops.iter_mut().zip(dropped) {
            *place = Some(reason.label());
        }
        Self {
            n_aggregated: after.n_aggregated_interests - before.n_aggregated_interests,
            n_dram_hits: after.n_cs_hits - before.n_cs_hits,
            n_ssd_hits: after.n_second_level_hits - before.n_second_level_hits,
            n_unsolicited: after.n_unsolicited_data - before.n_unsolicited_data,
            drops,
        }
    }

    /// Whether the SSD level alone answered.
    const fn is_from_ssd(&self) -> bool {
        self.n_ssd_hits > 0 && self.n_dram_hits == 0
    }
}

impl Record {
    /// A packet that has come; its decision is not known yet.
    fn of(now: MonoNs, packet: &RxPacket<'_>) -> Self {
        let packet = packet.as_dropped();
        Self::new(now, (packet.kind, packet.name), Some(packet.face))
    }

    fn new(now: MonoNs, (kind, name): (PacketKind, NameView<'_>), face: Option<FaceId>) -> Self {
        Self {
            at: now,
            kind,
            face,
            remote: None,
            name: KeptName::new(name),
            decision: TraceDecision::Pending,
            to: FaceList::default(),
            nacked: FaceList::default(),
            nack_reason: None,
            drops: [None; MAX_DROPS],
        }
    }

    /// Notes what became of the packet.
    fn finish(&mut self, seen: &Seen, counted: &Counted, is_retransmission: bool, has_ssd: bool) {
        type D = TraceDecision;
        self.to = seen.to;
        self.nacked = seen.nacked;
        self.nack_reason = seen.nack_reason;
        self.drops = counted.drops;
        if let Some(reason) = seen.refused {
            self.drops[0] = Some(reason.as_str());
        }
        let is_dropped = self.drops[0].is_some();
        self.decision = match self.kind {
            PacketKind::Interest if seen.n_data > 0 && counted.is_from_ssd() => D::AnsweredFromSsd,
            PacketKind::Interest if seen.n_data > 0 => D::AnsweredFromDram,
            PacketKind::Interest if seen.to.faces() == [FaceId::INTERNAL] => D::ToManagement,
            PacketKind::Interest if !seen.to.is_empty() => D::Forwarded,
            PacketKind::Data if !seen.to.is_empty() => D::Delivered,
            PacketKind::Nack if !seen.to.is_empty() => D::SentAgain,
            _ if is_dropped => D::Dropped,
            PacketKind::Interest if counted.n_aggregated > 0 && is_retransmission => {
                D::RetransmissionSuppressed
            }
            PacketKind::Interest if counted.n_aggregated > 0 => D::Aggregated,
            PacketKind::Interest if seen.has_passed => D::AsksWorkers,
            PacketKind::Interest if has_ssd => D::WaitsForSsd,
            PacketKind::Interest => D::Pending,
            PacketKind::Nack if !seen.nacked.is_empty() => D::Nacked,
            PacketKind::Data | PacketKind::Nack if seen.has_passed => D::HandedOver,
            PacketKind::Data if counted.n_unsolicited > 0 => D::CachedUnsolicited,
            PacketKind::Data => D::NotAwaited,
            PacketKind::Nack => D::WaitsForOthers,
        };
    }
}

/// The packet of a task that has one alone.
struct Current<'n> {
    kind: PacketKind,
    name: NameView<'n>,
}

impl Current<'_> {
    /// Whether a packet of this name leaves because of it.
    fn explains(&self, name: NameView<'_>) -> bool {
        match self.kind {
            // A Data may have a longer name than the Interest that it answers.
            PacketKind::Interest => name.starts_with(self.name),
            PacketKind::Data | PacketKind::Nack => name.value_bytes() == self.name.value_bytes(),
        }
    }
}

/// What has left because of the current packet.
#[derive(Debug, Default)]
struct Seen {
    to: FaceList,
    n_data: u32,
    nacked: FaceList,
    nack_reason: Option<NackReason>,
    /// It went on to another worker.
    has_passed: bool,
    refused: Option<face::DropReason>,
}

/// Why packets leave that did not come in the same task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Packets,
    Timer,
    Disks,
}

/// Ports that note what passes.
struct Traced<'t, 'p, 'n> {
    now: MonoNs,
    ports: &'t mut Ports<'p>,
    current: Option<Current<'n>>,
    occasion: Occasion,
    seen: Seen,
    /// Packets that leave for other reasons.
    sent: Vec<Record>,
}

impl<'t, 'p, 'n> Traced<'t, 'p, 'n> {
    fn new(
        now: MonoNs,
        ports: &'t mut Ports<'p>,
        current: Option<Current<'n>>,
        task: &Task<'_, '_>,
    ) -> Self {
        Self {
            now,
            ports,
            current,
            occasion: match task {
                Task::Burst(_) | Task::Batch(_) => Occasion::Packets,
                Task::Timeout => Occasion::Timer,
                Task::Completions(_) | Task::ShutDown(_) => Occasion::Disks,
            },
            seen: Seen::default(),
            sent: Vec::new(),
        }
    }

    fn is_current(&self, name: NameView<'_>) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.explains(name))
    }

    /// The record of a packet that leaves for another reason than the current one; a packet
    /// that leaves by several faces has one.
    fn sent(
        &mut self,
        (kind, name): (PacketKind, NameView<'_>),
        from: Option<FaceId>,
        decision: TraceDecision,
    ) -> Option<&mut Record> {
        let record = Record {
            decision,
            ..Record::new(self.now, (kind, name), from)
        };
        let is_same = |last: &Record| {
            last.kind == kind
                && last.face == from
                && last.decision == decision
                && last.name == record.name
        };
        if !self.sent.last().is_some_and(is_same) {
            if self.sent.len() >= MAX_SENT {
                return None;
            }
            self.sent.push(record);
        }
        self.sent.last_mut()
    }

    fn note_interest(&mut self, face: FaceId, interest: &InterestView<'_>, headers: &Headers) {
        let name = interest.name();
        if self.is_current(name) {
            return self.seen.to.push(face);
        }
        let decision = match (face, self.occasion) {
            (FaceId::INTERNAL, _) => TraceDecision::ToManagement,
            (_, Occasion::Timer) => TraceDecision::SentAgain,
            (_, Occasion::Packets | Occasion::Disks) => TraceDecision::Forwarded,
        };
        let packet = (PacketKind::Interest, name);
        if let Some(sent) = self.sent(packet, headers.incoming_face_id, decision) {
            sent.to.push(face);
        }
    }

    fn note_data(&mut self, face: FaceId, wire: &[u8], headers: &Headers) {
        let Ok(data) = DataView::parse(wire) else {
            return;
        };
        let name = data.name();
        if self.is_current(name) {
            self.seen.n_data += 1;
            return self.seen.to.push(face);
        }
        let from = headers.incoming_face_id;
        let decision = match (from, self.occasion) {
            (Some(FaceId::CONTENT_STORE), Occasion::Disks) => TraceDecision::AnsweredFromSsd,
            (Some(FaceId::CONTENT_STORE), _) => TraceDecision::AnsweredFromDram,
            _ => TraceDecision::Delivered,
        };
        if let Some(sent) = self.sent((PacketKind::Data, name), from, decision) {
            sent.to.push(face);
        }
    }

    fn note_nack(&mut self, face: FaceId, reason: NackReason, interest_wire: &[u8]) {
        let Ok(interest) = InterestView::parse(interest_wire) else {
            return;
        };
        let name = interest.name();
        if self.is_current(name) {
            self.seen.nacked.push(face);
            self.seen.nack_reason = Some(reason);
            return;
        }
        let packet = (PacketKind::Nack, name);
        if let Some(sent) = self.sent(packet, None, TraceDecision::Nacked) {
            sent.nacked.push(face);
            sent.nack_reason = Some(reason);
        }
    }
}

impl Output for Traced<'_, '_, '_> {
    const NOTES_UNANSWERED: bool = true;

    fn note_unanswered(
        &mut self,
        interest: &InterestView<'_>,
        from: Option<FaceId>,
        sent_to: &mut dyn Iterator<Item = FaceId>,
    ) {
        let packet = (PacketKind::Interest, interest.name());
        if let Some(sent) = self.sent(packet, from, TraceDecision::Unanswered) {
            sent_to.for_each(|face| sent.to.push(face));
        }
    }

    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        self.note_interest(face, interest, headers);
        self.ports.send_interest(face, interest, rewrite, headers);
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        self.note_data(face, data_wire, headers);
        self.ports.send_data(face, data_wire, headers);
    }

    fn send_data_announcing(
        &mut self,
        face: FaceId,
        data_wire: &[u8],
        headers: &Headers,
        announcement: &[u8],
    ) {
        self.note_data(face, data_wire, headers);
        self.ports
            .send_data_announcing(face, data_wire, headers, announcement);
    }

    fn learn_route(&mut self, face: FaceId, name: NameView<'_>, announcement: &[u8]) {
        self.ports.learn_route(face, name, announcement);
    }

    fn forget_learnt_route(&mut self, face: FaceId, name: NameView<'_>) {
        self.ports.forget_learnt_route(face, name);
    }

    fn send_nack(
        &mut self,
        face: FaceId,
        reason: NackReason,
        interest_wire: &[u8],
        headers: &Headers,
    ) {
        self.note_nack(face, reason, interest_wire);
        self.ports.send_nack(face, reason, interest_wire, headers);
    }

    fn enter(&mut self, block: Block) {
        self.ports.enter(block);
    }
}

impl Port for Traced<'_, '_, '_> {
    fn pass(&mut self, to: WorkerId, parcel: &Parcel<'_>) -> bool {
        self.seen.has_passed |= self.current.is_some()
            && matches!(
                parcel.crossing,
                Crossing::Asking { .. } | Crossing::Visiting { .. } | Crossing::Nacking { .. }
            );
        self.ports.pass(to, parcel)
    }

    fn admits(&mut self, packet: &RxPacket<'_>) -> bool {
        let refused = self.ports.refuse(packet);
        if self.current.is_some() {
            self.seen.refused = refused;
        }
        refused.is_none()
    }
}

#[cfg(test)]
mod tests {
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
        traces.expire(late);
        assert!(traces.is_empty());
        let recorded = traces.read(7, usize::MAX);
        assert!(recorded.has_ended && recorded.records.is_empty());
        traces.start(order(1, u64::MAX));
        traces.stop(7);
        assert!(traces.is_empty());
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
