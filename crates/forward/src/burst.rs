//! What goes into the engine and what comes out of it.
//!
//! The engine borrows received packets from the owner of the receive buffer
//! and tells an [`Output`] what to send; it keeps neither.

use tachonym_packet::lp::Headers;
use tachonym_packet::{
    DataView, FaceId, InterestRewrite, InterestView, NackReason, NameView, types,
};

use crate::block::Block;
use crate::counters::Counters;
use crate::recent_drops::{Dropped, PacketKind};

/// A network-layer packet with the face it came from.
#[derive(Clone, Copy, Debug)]
pub struct RxPacket<'a> {
    /// Where it came from.
    pub face: FaceId,
    /// The packet.
    pub packet: RxKind<'a>,
    /// The link-layer fields that came with it. Local fields must already
    /// have been refused where the face does not allow them.
    pub headers: &'a Headers,
    /// The prefix announcement that came with a Data.
    pub prefix_announcement: Option<&'a [u8]>,
}

const _: () = assert!(size_of::<RxPacket<'_>>() <= 128, "two cache lines");

/// The kinds of packet that the engine carries.
#[derive(Clone, Copy, Debug)]
pub enum RxKind<'a> {
    /// An Interest.
    Interest(InterestView<'a>),
    /// A Data.
    Data(DataView<'a>),
    /// A Nack with the Interest it returns.
    Nack(NackReason, InterestView<'a>),
}

impl<'a> RxPacket<'a> {
    /// Reads a packet that came with link-layer headers. `None` if it is malformed, or if the
    /// headers make no sense on it (a Nack header on a Data).
    #[must_use]
    #[inline(always)]
    pub fn parse(face: FaceId, headers: &'a Headers, wire: &'a [u8]) -> Option<Self> {
        // Not by way of `PacketView`, and inlined: each step between would move the view once
        // more, which costs an eighth of reading it.
        let packet = match (u32::from(*wire.first()?), headers.nack) {
            (types::INTEREST, nack) => {
                let interest = InterestView::parse(wire).ok()?;
                match nack {
                    None => RxKind::Interest(interest),
                    Some(reason) => RxKind::Nack(reason, interest),
                }
            }
            (types::DATA, None) => RxKind::Data(DataView::parse(wire).ok()?),
            _ => return None,
        };
        Some(Self {
            face,
            packet,
            headers,
            prefix_announcement: None,
        })
    }

    /// The block of the packet path in which it is received.
    #[inline(always)]
    pub(crate) fn reception(&self) -> Block {
        match self.packet {
            RxKind::Interest(_) | RxKind::Nack(..) => Block::InterestReception,
            RxKind::Data(_) => Block::DataReception,
        }
    }

    /// Whether the FIB is asked about its name.
    pub(crate) fn is_routed_by_name(&self) -> bool {
        matches!(&self.packet, RxKind::Interest(interest) if !interest.has_forwarding_hint())
    }

    /// What is recorded of it when it is dropped.
    #[must_use]
    pub fn as_dropped(&self) -> Dropped<'a> {
        Dropped {
            kind: match self.packet {
                RxKind::Interest(_) => PacketKind::Interest,
                RxKind::Data(_) => PacketKind::Data,
                RxKind::Nack(..) => PacketKind::Nack,
            },
            face: self.face,
            name: self.name(),
        }
    }

    /// Counts it as received.
    pub(crate) fn count_received(&self, counters: &mut Counters) {
        match self.packet {
            RxKind::Interest(_) => counters.n_in_interests += 1,
            RxKind::Data(_) => counters.n_in_data += 1,
            RxKind::Nack(..) => counters.n_in_nacks += 1,
        }
    }

    /// Its name; of a Nack, that of the Interest in it.
    #[must_use]
    pub fn name(&self) -> NameView<'a> {
        match &self.packet {
            RxKind::Interest(interest) | RxKind::Nack(_, interest) => interest.name(),
            RxKind::Data(data) => data.name(),
        }
    }
}

/// Gives the memory of a vector, whose packets it forgets, to one whose packets live
/// otherwise: what reads bursts keeps one, and allocates for none.
#[must_use]
pub fn relend<'b>(mut packets: Vec<RxPacket<'_>>) -> Vec<RxPacket<'b>> {
    packets.clear();
    // The collection happens in place, since the elements are of one size.
    packets
        .into_iter()
        .map(|_| unreachable!("the vector was cleared"))
        .collect()
}

/// Where the engine's packets go.
///
/// Calls come in the order in which packets must leave. What is passed is
/// borrowed for the call only: an implementation copies it into the out-face's
/// queue. `headers.incoming_face_id` is always set; it must reach the wire only where local
/// fields are enabled. On a Nack it is the upstream that refused, or [`FaceId::INTERNAL`] if
/// this router refuses by itself.
pub trait Output {
    /// Whether [`Self::note_unanswered`] is called. Where it is not, nothing is spent on it.
    const NOTES_UNANSWERED: bool = false;

    /// Sends `interest`, changed as `rewrite` says, to `face`.
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    );

    /// Sends the Data whose element is `data_wire` to `face`.
    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers);

    /// As [`Self::send_data`], with the announcement of a prefix of its name (NDNLPv2,
    /// "Self-Learning"): the Data that `announcement` is the wire of. Without it,
    /// routers downstream learn no route.
    fn send_data_announcing(
        &mut self,
        face: FaceId,
        data_wire: &[u8],
        headers: &Headers,
        announcement: &[u8],
    ) {
        let _ = announcement;
        self.send_data(face, data_wire, headers);
    }

    /// A Data named `name` has come from `face`, which was found by asking
    /// everybody, with an announcement that is not checked yet. If it is to be
    /// believed, it makes a route to `face`.
    fn learn_route(&mut self, face: FaceId, name: NameView<'_>, announcement: &[u8]) {
        let _ = (face, name, announcement);
    }

    /// The neighbour behind `face` has no route for `name`: a route to it that was
    /// learnt is wrong.
    fn forget_learnt_route(&mut self, face: FaceId, name: NameView<'_>) {
        let _ = (face, name);
    }

    /// Returns the Interest whose element is `interest_wire` to `face`;
    /// `headers.nack` says the same reason as `reason`.
    fn send_nack(
        &mut self,
        face: FaceId,
        reason: NackReason,
        interest_wire: &[u8],
        headers: &Headers,
    );

    /// The lifetime of a pending Interest has ended without Data. It came from the face
    /// `from`, and was sent to the faces that `sent_to` returns.
    fn note_unanswered(
        &mut self,
        interest: &InterestView<'_>,
        from: Option<FaceId>,
        sent_to: &mut dyn Iterator<Item = FaceId>,
    ) {
        let _ = (interest, from, sent_to);
    }

    /// The engine enters `block` of the packet path. A measurement overrides it; by default
    /// it does nothing.
    #[inline(always)]
    fn enter(&mut self, block: Block) {
        let _ = block;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_lent_again() {
        let packets: Vec<RxPacket<'static>> = Vec::with_capacity(40);
        let (at, capacity) = (packets.as_ptr(), packets.capacity());
        let again = relend(relend(packets));
        assert_eq!((again.as_ptr(), again.capacity()), (at, capacity));
    }
}
