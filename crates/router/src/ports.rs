//! Where a worker's packets go: to a face of this thread, to the thread whose face it is, to
//! another worker, or to the manager.

use std::collections::HashMap;

use tachonym_dispatch::WorkerId;
use tachonym_face::{DropReason, FaceSystem};
use tachonym_forward::{Output, RecentDrops, RxKind, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, InterestRewrite, InterestView, MonoNs, NackReason, NameView};
use tachonym_workers::{Links, Parcel, Port, TokenMaker};

use crate::internal::InternalFace;
use crate::team::Team;
use crate::verification::DataGate;

/// See the module.
pub(crate) struct Ports<'a> {
    /// The thread.
    pub(crate) me: WorkerId,
    pub(crate) now: MonoNs,
    pub(crate) team: &'a Team,
    pub(crate) faces: &'a mut FaceSystem,
    pub(crate) internal: &'a mut InternalFace,
    pub(crate) gate: &'a mut DataGate,
    pub(crate) links: &'a mut Links,
    /// For Interests that leave by another thread as they do not lie in memory.
    pub(crate) scratch: &'a mut Vec<u8>,
    pub(crate) foreign_drops: &'a mut ForeignDrops,
    pub(crate) recent_drops: &'a mut RecentDrops<DropReason>,
    /// What brings answers home, if Interests carry it.
    pub(crate) tokens: Option<TokenMaker>,
}

/// Packets of other threads' faces that were dropped here in this round.
#[derive(Debug, Default)]
pub(crate) struct ForeignDrops(HashMap<(FaceId, DropReason), u64>);

impl ForeignDrops {
    #[cold]
    fn add(&mut self, face: FaceId, reason: DropReason) {
        *self.0.entry((face, reason)).or_default() += 1;
    }

    /// Tells those whose faces they are.
    pub(crate) fn tell(&mut self, team: &Team) {
        for ((face, reason), n_dropped) in self.0.drain() {
            team.tell_drops(face, reason, n_dropped);
        }
    }
}

impl Ports<'_> {
    /// The other thread whose face this is.
    #[inline]
    fn elsewhere(&self, face: FaceId) -> Option<WorkerId> {
        if self.team.layout.is_single() {
            return None;
        }
        let thread = self.team.layout.thread_of_face(face);
        thread.filter(|&thread| thread != self.me)
    }

    /// Sends to another thread, which begins with a full batch at once. What finds no room is
    /// counted by the links.
    fn push(&mut self, to: WorkerId, parcel: &Parcel<'_>) -> bool {
        let is_sent = self.links.push(to, parcel);
        self.team.wake(self.links.take_sent());
        is_sent
    }

    fn send(&mut self, face: FaceId, wire: &[u8], headers: &Headers, announcement: Option<&[u8]>) {
        if face < FaceId::FIRST_DYNAMIC {
            return;
        }
        match self.elsewhere(face) {
            None => {
                // What cannot be sent is counted on its face.
                let _ = self
                    .faces
                    .send_announcing(face, headers, announcement, wire);
            }
            Some(thread) => {
                self.push(thread, &Parcel::leaving(face, headers, wire, announcement));
            }
        }
    }
}

impl Ports<'_> {
    /// Why a packet that another thread has received is refused, if it is; counted and
    /// recorded.
    pub(crate) fn refuse(&mut self, packet: &RxPacket<'_>) -> Option<DropReason> {
        let reason = refusal(self.internal, self.gate, packet, self.now)?;
        self.note_refused(packet, reason);
        Some(reason)
    }

    #[cold]
    fn note_refused(&mut self, packet: &RxPacket<'_>, reason: DropReason) {
        match self.elsewhere(packet.face) {
            None => self.faces.count_drop(packet.face, reason),
            Some(_) => self.foreign_drops.add(packet.face, reason),
        }
        let dropped = packet.as_dropped();
        self.recent_drops.record(self.now, reason, &dropped);
    }

    fn send_to_management(
        &mut self,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        let mut wire = Vec::with_capacity(interest.wire().len() + 8);
        rewrite.write_into(interest, &mut wire);
        let Some(incoming) = headers.incoming_face_id else {
            debug_assert!(false, "the engine tells where an Interest came from");
            return;
        };
        self.internal.deliver_interest(incoming, wire);
    }
}

impl Output for Ports<'_> {
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        if face < FaceId::FIRST_DYNAMIC {
            // Else it is the null face, which drops it.
            if face == FaceId::INTERNAL {
                self.send_to_management(interest, rewrite, headers);
            }
            return;
        }
        let with_token;
        let headers = match &self.tokens {
            None => headers,
            Some(tokens) => {
                with_token = Headers {
                    pit_token: tokens.token(interest),
                    ..*headers
                };
                &with_token
            }
        };
        if self.elsewhere(face).is_none() {
            let hint_bytes = interest.wire().len();
            let _ = self.faces.send_with(face, headers, hint_bytes, |out| {
                rewrite.write_into(interest, out);
            });
        } else {
            let mut wire = std::mem::take(self.scratch);
            wire.clear();
            rewrite.write_into(interest, &mut wire);
            self.send(face, &wire, headers, None);
            *self.scratch = wire;
        }
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        self.send(face, data_wire, headers, None);
    }

    fn send_data_announcing(
        &mut self,
        face: FaceId,
        data_wire: &[u8],
        headers: &Headers,
        announcement: &[u8],
    ) {
        self.send(face, data_wire, headers, Some(announcement));
    }

    fn learn_route(&mut self, face: FaceId, name: NameView<'_>, announcement: &[u8]) {
        self.internal.deliver_announcement(face, name, announcement);
    }

    fn forget_learnt_route(&mut self, face: FaceId, name: NameView<'_>) {
        self.internal.deliver_unreachable(face, name);
    }

    fn send_nack(
        &mut self,
        face: FaceId,
        reason: NackReason,
        interest_wire: &[u8],
        headers: &Headers,
    ) {
        let headers = Headers {
            nack: Some(reason),
            ..*headers
        };
        self.send(face, interest_wire, &headers, None);
    }
}

impl Port for Ports<'_> {
    fn pass(&mut self, to: WorkerId, parcel: &Parcel<'_>) -> bool {
        self.push(to, parcel)
    }

    fn admits(&mut self, packet: &RxPacket<'_>) -> bool {
        self.refuse(packet).is_none()
    }
}

/// Why a packet is not to be looked at: it is one for the manager that has heard enough, or
/// not signed as it has to be.
#[inline]
pub(crate) fn refusal(
    internal: &mut InternalFace,
    gate: &mut DataGate,
    packet: &RxPacket<'_>,
    now: MonoNs,
) -> Option<DropReason> {
    match &packet.packet {
        RxKind::Interest(interest) => internal.refusal(packet.face, interest.name(), now),
        RxKind::Data(data) => gate.refusal(data),
        RxKind::Nack(..) => None,
    }
}
