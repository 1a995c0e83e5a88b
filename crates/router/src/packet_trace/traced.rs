//! Ports that note what passes, for a task with one packet that a trace selects, or with
//! none.

use tachonym_dispatch::WorkerId;
use tachonym_forward::{Block, Output, PacketKind, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    DataView, FaceId, InterestRewrite, InterestView, MonoNs, NackReason, NameView,
};
use tachonym_protocol::TraceDecision;
use tachonym_workers::{Crossing, Parcel, Port};

use super::record::{Record, Seen};
use crate::ports::Ports;
use crate::task::Task;

/// Most packets that are recorded of those that leave in one task without having come in it;
/// others are counted.
const MAX_SENT: usize = 1_024;

/// The packet of a task that has one alone.
pub(super) struct Current<'n> {
    pub(super) kind: PacketKind,
    pub(super) name: NameView<'n>,
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

/// Why packets leave that did not come in the same task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Packets,
    Timer,
    Disks,
}

/// Ports that note what passes.
pub(super) struct Traced<'t, 'p, 'n> {
    now: MonoNs,
    ports: &'t mut Ports<'p>,
    current: Option<Current<'n>>,
    occasion: Occasion,
    /// What left because of the current packet.
    pub(super) seen: Seen,
    /// Packets that leave for other reasons.
    pub(super) sent: Vec<Record>,
    /// Those of them without a record.
    pub(super) n_unsent: u64,
}

impl<'t, 'p, 'n> Traced<'t, 'p, 'n> {
    pub(super) fn new(
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
                Task::Burst(_) | Task::HashedBurst(..) | Task::Batch(_) => Occasion::Packets,
                Task::Timeout => Occasion::Timer,
                Task::Completions(_) | Task::ShutDown(_) => Occasion::Disks,
            },
            seen: Seen::default(),
            sent: Vec::new(),
            n_unsent: 0,
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
                self.n_unsent += 1;
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
