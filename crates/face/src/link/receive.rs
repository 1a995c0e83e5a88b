//! From frames to packets.

use std::net::SocketAddr;

use tachonym_packet::lp::{FaceId, Headers, LpView, PacketKind};
use tachonym_packet::{MonoNs, offset_in, types};

use super::Link;
use super::budget::ReassemblyBudget;
use super::partial::Reassembled;
use super::reassembly::Reassembler;
use crate::batch::{FrameRecord, Frames, Source, Span};
use crate::counters::{DropReason, FaceCounters};

/// What receiving needs beside the link itself.
pub(crate) struct RxContext<'a> {
    pub(crate) face: FaceId,
    pub(crate) now: MonoNs,
    /// Tells the senders of a multi-access face apart.
    pub(crate) peer: Option<SocketAddr>,
    /// The receive queue that the frame came from is filling up.
    pub(crate) is_congested: bool,
    pub(crate) counters: &'a mut FaceCounters,
    pub(crate) frames: &'a mut Frames,
    pub(crate) budget: &'a mut ReassemblyBudget,
}

/// A packet with what came around it.
struct Received {
    headers: Headers,
    kind: PacketKind,
    source: Source,
    l3: Span,
    prefix_announcement: Span,
}

impl Link {
    /// Takes the frame `wire`, which lies at `at` in the arena, and adds the
    /// packet that it is, or completes, to the batch.
    pub(crate) fn receive(&mut self, wire: &[u8], at: usize, cx: &mut RxContext<'_>) {
        cx.counters.n_in_frames += 1;
        cx.counters.n_in_bytes += wire.len() as u64;
        if let Err(reason) = self.receive_frame(wire, at, cx) {
            cx.counters.drops.add(reason, 1);
        }
    }

    fn receive_frame(
        &mut self,
        wire: &[u8],
        at: usize,
        cx: &mut RxContext<'_>,
    ) -> Result<(), DropReason> {
        let view = LpView::parse(wire).map_err(|_| DropReason::Malformed)?;
        if view.is_bare() {
            let received = Received {
                headers: Headers::default(),
                kind: kind_of(wire)?,
                source: Source::Arena,
                l3: span(at, wire.len()),
                prefix_announcement: span(0, 0),
            };
            self.deliver(received, cx);
            return Ok(());
        }
        if let Some(reliability) = &mut self.reliability {
            for tx_sequence in view.acks() {
                reliability.handle_ack(cx.now, tx_sequence);
            }
            if let (Some(tx_sequence), Some(_)) = (view.headers().tx_sequence, view.fragment()) {
                reliability.handle_received(cx.now, tx_sequence);
            }
        }
        // Without a fragment it is an IDLE packet: its headers were all of it.
        let Some(fragment) = view.fragment() else {
            return Ok(());
        };
        if let (Some(reliability), Some(sequence)) =
            (&mut self.reliability, view.headers().sequence)
            && reliability.is_repeated(cx.now, sequence)
        {
            return Err(DropReason::Duplicate);
        }
        let received = if view.headers().is_fragmented() {
            match self.reassemble(&view, fragment, cx)? {
                Some(received) => received,
                None => return Ok(()),
            }
        } else {
            let kind = kind_of(fragment)?;
            view.check_for(kind)
                .map_err(|_| DropReason::MisplacedHeader)?;
            let place_of = |part: &[u8]| span(at + offset_in(wire, part), part.len());
            Received {
                headers: *view.headers(),
                kind,
                source: Source::Arena,
                l3: place_of(fragment),
                prefix_announcement: view.prefix_announcement().map_or(span(0, 0), place_of),
            }
        };
        self.check_headers(&received)?;
        self.deliver(received, cx);
        Ok(())
    }

    fn reassemble(
        &mut self,
        view: &LpView<'_>,
        fragment: &[u8],
        cx: &mut RxContext<'_>,
    ) -> Result<Option<Received>, DropReason> {
        let reassembler = self
            .reassembler
            .get_or_insert_with(|| Box::new(Reassembler::default()));
        let out = &mut cx.frames.assembled;
        let start = out.len();
        let drops = &mut cx.counters.drops;
        let outcome = reassembler.receive(
            cx.now,
            cx.peer,
            view.headers(),
            view.prefix_announcement().unwrap_or_default(),
            fragment,
            cx.budget,
            out,
            self.source,
            || drops.add(DropReason::ReassemblyOverflow, 1),
        );
        match outcome {
            Reassembled::Waiting => Ok(None),
            Reassembled::Dropped(reason) => Err(reason),
            Reassembled::Complete {
                headers,
                l3_bytes,
                prefix_announcement_bytes,
            } => Ok(Some(Received {
                headers,
                kind: kind_of(&out[start..])?,
                source: Source::Assembled,
                l3: span(start, l3_bytes),
                prefix_announcement: span(start + l3_bytes, prefix_announcement_bytes),
            })),
        }
    }

    /// Whether the headers may be on this packet, and on this face. CachePolicy is no
    /// privilege: every peer may ask that its Data is not cached. IncomingFaceId on Data
    /// is ignored where local fields are not enabled. NFD does both.
    fn check_headers(&self, received: &Received) -> Result<(), DropReason> {
        let headers = &received.headers;
        let is_nack = headers.nack.is_some();
        let misplaced = match received.kind {
            PacketKind::Interest => {
                headers.no_cache
                    || received.prefix_announcement.len > 0
                    || (is_nack && (headers.next_hop_face_id.is_some() || headers.non_discovery))
            }
            PacketKind::Data => {
                is_nack || headers.next_hop_face_id.is_some() || headers.non_discovery
            }
        };
        if misplaced {
            return Err(DropReason::MisplacedHeader);
        }
        let has_local_field = received.kind == PacketKind::Interest
            && (headers.next_hop_face_id.is_some() || headers.incoming_face_id.is_some());
        if has_local_field && !self.options.local_fields {
            return Err(DropReason::LocalFieldsDisabled);
        }
        Ok(())
    }

    fn deliver(&mut self, received: Received, cx: &mut RxContext<'_>) {
        let mut headers = Headers {
            // They belong to this link and end here.
            sequence: None,
            frag_index: 0,
            frag_count: 1,
            tx_sequence: None,
            // The engine knows the face of a packet by itself.
            incoming_face_id: None,
            ..received.headers
        };
        match (received.kind, headers.nack) {
            (PacketKind::Interest, None) => cx.counters.n_in_interests += 1,
            (PacketKind::Interest, Some(_)) => {
                cx.counters.n_in_nacks += 1;
                // A program reads from it which router refused; the engine ignores it.
                headers.incoming_face_id = received.headers.incoming_face_id;
            }
            (PacketKind::Data, _) => {
                cx.counters.n_in_data += 1;
                if self.options.local_fields {
                    // A program reads from it where its answer was; the engine ignores it.
                    headers.incoming_face_id = received.headers.incoming_face_id;
                }
                // More Data than Interests: some were not asked for.
                if cx.counters.n_in_data <= cx.counters.n_out_interests {
                    self.last_exchange_at = cx.now;
                }
                // Data, because it is their consumers who slow down; and each of
                // them, because a round trip may be far shorter than an
                // interval and the next one may overflow the queue.
                if self.options.congestion_marking && cx.is_congested {
                    headers.congestion_mark = headers.congestion_mark.max(1);
                    cx.counters.n_congestion_marked += 1;
                }
            }
        }
        cx.frames.records.push(FrameRecord {
            face: cx.face,
            source: received.source,
            headers,
            l3: received.l3,
            prefix_announcement: received.prefix_announcement,
        });
    }
}

fn span(start: usize, len: usize) -> Span {
    // The arena and what is reassembled in one batch are far below 4 GiB.
    Span {
        start: start as u32,
        len: len as u32,
    }
}

fn kind_of(packet: &[u8]) -> Result<PacketKind, DropReason> {
    match packet.first().map(|&byte| u32::from(byte)) {
        Some(types::INTEREST) => Ok(PacketKind::Interest),
        Some(types::DATA) => Ok(PacketKind::Data),
        _ => Err(DropReason::UnknownPacketType),
    }
}
