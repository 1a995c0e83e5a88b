//! What a trace records of a packet.

use tachonym_face as face;
use tachonym_forward::{Counters, DropReason, KeptName, PacketKind, RxPacket};
use tachonym_packet::{FaceId, MonoNs, NackReason, NameView};
use tachonym_protocol::{TraceDecision, TraceFace};

/// Reasons of drops that a record holds.
const MAX_DROPS: usize = 3;

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
    /// Adds one.
    pub(super) fn push(&mut self, face: FaceId) {
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

/// What has left because of the current packet.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) to: FaceList,
    pub(super) n_data: u32,
    pub(super) nacked: FaceList,
    pub(super) nack_reason: Option<NackReason>,
    /// It went on to another worker.
    pub(super) has_passed: bool,
    pub(super) refused: Option<face::DropReason>,
}

/// What the engine counted while it handled a packet.
#[derive(Debug)]
pub(super) struct Counted {
    n_aggregated: u64,
    n_dram_hits: u64,
    n_ssd_hits: u64,
    n_unsolicited: u64,
    drops: [Option<&'static str>; MAX_DROPS],
}

impl Counted {
    /// What was counted between two readings.
    pub(super) fn between(before: &Counters, after: &Counters) -> Self {
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
    pub(super) const fn is_from_ssd(&self) -> bool {
        self.n_ssd_hits > 0 && self.n_dram_hits == 0
    }
}

impl Record {
    /// A packet that has come; its decision is not known yet.
    pub(super) fn of(now: MonoNs, packet: &RxPacket<'_>) -> Self {
        let packet = packet.as_dropped();
        Self::new(now, (packet.kind, packet.name), Some(packet.face))
    }

    /// A packet that leaves, or has come; its decision is not known yet.
    pub(super) fn new(
        now: MonoNs,
        (kind, name): (PacketKind, NameView<'_>),
        face: Option<FaceId>,
    ) -> Self {
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
    pub(super) fn finish(
        &mut self,
        seen: &Seen,
        counted: &Counted,
        is_retransmission: bool,
        has_ssd: bool,
    ) {
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
