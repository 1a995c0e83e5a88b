//! From packets to frames.

use tachonym_packet::lp::Headers;
use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{MonoNs, types};

use super::Link;
use super::congestion::FirstMark;
use super::encode::{ACK_BYTES, Scratch, overhead_bytes, write_frame};
use super::reassembly::MAX_FRAGMENTS;
use super::reliability::{ACK_BATCH, Reliability};
use crate::counters::{DropReason, FaceCounters};
use crate::tx_queue::{TxPool, TxQueue};

/// A queue that has grown to this takes no retransmissions and, without a
/// packet that they travel with, no acknowledgements: they wait where they are,
/// bounded. Less than the reserve of a face by default.
pub(crate) const MAX_DUE_BYTES: usize = 32 << 10;

/// What sending needs beside the link itself.
pub(crate) struct TxContext<'a> {
    pub(crate) now: MonoNs,
    pub(crate) queue: &'a mut TxQueue,
    pub(crate) pool: &'a mut TxPool,
    pub(crate) counters: &'a mut FaceCounters,
    pub(crate) scratch: &'a mut Scratch,
}

/// All header fields together are shorter, but for a prefix announcement.
const MAX_HEADER_BYTES: usize = 160;

/// How congested the way out is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Congested {
    No,
    /// What we send piles up.
    SendQueue,
    /// What we send piles up, and soon there will be no room for more.
    SendQueueNearlyFull,
    /// What the peers of this socket send piles up.
    ReceiveQueue,
}

impl Link {
    /// Queues the packet `l3`, in fragments if it does not fit the MTU.
    pub(crate) fn send(
        &mut self,
        headers: &Headers,
        prefix_announcement: Option<&[u8]>,
        l3: &[u8],
        congested: Congested,
        cx: &mut TxContext<'_>,
    ) -> Result<(), DropReason> {
        if l3.len() > MAX_PACKET_BYTES {
            return Err(DropReason::OverMtu);
        }
        let mut headers = self.own_headers(headers);
        self.mark(&mut headers, congested, cx);
        let prefix_announcement =
            prefix_announcement.filter(|announcement| self.has_room_for(announcement, l3));
        match &mut self.reliability {
            None => self.send_unreliable(&headers, prefix_announcement, l3, cx)?,
            Some(_) => self.send_fragments(&headers, prefix_announcement, l3, cx)?,
        }
        self.count_packet(cx, &headers, l3);
        Ok(())
    }

    /// Whether an announcement may go with the packet `l3`, which matters more: beside
    /// the other headers it has to fit the first fragment, and on a stream a frame
    /// that every peer takes.
    fn has_room_for(&self, announcement: &[u8], l3: &[u8]) -> bool {
        let n_bytes = announcement.len() + MAX_HEADER_BYTES;
        match self.mtu_bytes {
            Some(mtu_bytes) => n_bytes < mtu_bytes,
            None => n_bytes + l3.len() <= MAX_PACKET_BYTES,
        }
    }

    /// Whether a packet with these headers leaves as the very bytes it is, so
    /// that [`Link::send_bare`] may write it in place.
    #[inline]
    pub(crate) fn sends_bare(&self, headers: &Headers, congested: Congested) -> bool {
        self.reliability.is_none()
            && (congested == Congested::No || !self.options.congestion_marking)
            && self.own_headers(headers).is_empty()
    }

    /// Queues the packet that `write` appends, if it fits the MTU; else gives
    /// it back in `cx.scratch.l3`, to be sent otherwise.
    pub(crate) fn send_bare(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>),
        cx: &mut TxContext<'_>,
    ) -> Result<BareOutcome, DropReason> {
        // The end of a congestion must be noticed.
        self.out_congestion.check(
            cx.now,
            false,
            FirstMark::AfterInterval,
            self.options.base_congestion_marking_interval,
        );
        let len = cx.queue.push(cx.pool, write);
        if len == 0 {
            return Ok(BareOutcome::Sent);
        }
        let waiting = cx.queue.bytes();
        let l3 = &waiting[waiting.len() - len..];
        let typ = l3.first().copied();
        if len > MAX_PACKET_BYTES {
            cx.queue.pop_last();
            return Err(DropReason::OverMtu);
        }
        if self.mtu_bytes.is_some_and(|mtu| len > mtu) {
            cx.scratch.l3.clear();
            cx.scratch.l3.extend_from_slice(l3);
            cx.queue.pop_last();
            return Ok(BareOutcome::TooLong);
        }
        cx.counters.n_out_frames += 1;
        cx.counters.n_out_bytes += len as u64;
        self.count_packet(cx, &Headers::default(), typ.as_slice());
        Ok(BareOutcome::Sent)
    }

    /// Counts a packet that was queued. Of `l3`, only the first byte is looked at.
    fn count_packet(&mut self, cx: &mut TxContext<'_>, headers: &Headers, l3: &[u8]) {
        let counters = &mut *cx.counters;
        if headers.nack.is_some() {
            counters.n_out_nacks += 1;
        } else if l3.first().is_some_and(|&typ| u32::from(typ) == types::DATA) {
            counters.n_out_data += 1;
            self.last_exchange_at = cx.now;
        } else {
            counters.n_out_interests += 1;
        }
    }

    /// The headers that may leave on this link.
    #[inline]
    fn own_headers(&self, headers: &Headers) -> Headers {
        let mut own = Headers {
            next_hop_face_id: None,
            sequence: None,
            frag_index: 0,
            frag_count: 1,
            tx_sequence: None,
            ..*headers
        };
        if !self.options.local_fields {
            own.incoming_face_id = None;
            own.no_cache = false;
        }
        own
    }

    fn mark(&mut self, headers: &mut Headers, congested: Congested, cx: &mut TxContext<'_>) {
        if !self.options.congestion_marking {
            return;
        }
        let first = match congested {
            Congested::No | Congested::SendQueue => FirstMark::AfterInterval,
            Congested::SendQueueNearlyFull | Congested::ReceiveQueue => FirstMark::AtOnce,
        };
        let is_due = self.out_congestion.check(
            cx.now,
            congested != Congested::No,
            first,
            self.options.base_congestion_marking_interval,
        );
        // A consumer in slow start doubles what it asks for while an interval
        // passes: where the next answer is loss, every packet says so.
        if is_due || congested == Congested::SendQueueNearlyFull {
            headers.congestion_mark = headers.congestion_mark.max(1);
            cx.counters.n_congestion_marked += 1;
        }
    }

    fn send_unreliable(
        &mut self,
        headers: &Headers,
        prefix_announcement: Option<&[u8]>,
        l3: &[u8],
        cx: &mut TxContext<'_>,
    ) -> Result<(), DropReason> {
        let fields = &mut cx.scratch.fields;
        let len = cx.queue.push(cx.pool, |out| {
            write_frame(out, fields, headers, prefix_announcement, &[], l3);
        });
        if self.mtu_bytes.is_some_and(|mtu| len > mtu) {
            cx.queue.pop_last();
            return self.send_fragments(headers, prefix_announcement, l3, cx);
        }
        cx.counters.n_out_frames += 1;
        cx.counters.n_out_bytes += len as u64;
        Ok(())
    }

    /// Sends `l3` with sequences, in as many fragments as it takes.
    fn send_fragments(
        &mut self,
        headers: &Headers,
        prefix_announcement: Option<&[u8]>,
        l3: &[u8],
        cx: &mut TxContext<'_>,
    ) -> Result<(), DropReason> {
        // Headers as long as they can get, to know what remains for payload.
        let mut longest = Headers {
            sequence: Some(u64::MAX),
            tx_sequence: self.reliability.as_ref().map(|_| u64::MAX),
            frag_index: MAX_FRAGMENTS - 1,
            frag_count: MAX_FRAGMENTS,
            ..*headers
        };
        let mtu = self.mtu_bytes.unwrap_or(usize::MAX);
        let fields = &mut cx.scratch.fields;
        let first_room = mtu.saturating_sub(overhead_bytes(fields, &longest, prefix_announcement));
        let continued = own_fields(&longest);
        longest = continued;
        let rest_room = mtu.saturating_sub(overhead_bytes(fields, &longest, None));
        if first_room == 0 || rest_room == 0 {
            return Err(DropReason::OverMtu);
        }
        let rest_bytes = l3.len().saturating_sub(first_room);
        let frag_count = 1 + rest_bytes.div_ceil(rest_room) as u64;
        if frag_count > MAX_FRAGMENTS {
            return Err(DropReason::OverMtu);
        }
        if let Some(reliability) = &mut self.reliability {
            reliability.begin_packet();
        }
        let mut rest = l3;
        for frag_index in 0..frag_count {
            let is_first = frag_index == 0;
            let room = if is_first { first_room } else { rest_room };
            let (fragment, after) = rest.split_at(room.min(rest.len()));
            rest = after;
            let mut own = if is_first {
                *headers
            } else {
                Headers::default()
            };
            own.sequence = Some(self.next_sequence);
            own.frag_index = frag_index;
            own.frag_count = frag_count;
            self.next_sequence = self.next_sequence.wrapping_add(1);
            let announcement = prefix_announcement.filter(|_| is_first);
            cx.scratch.acks.clear();
            if let Some(reliability) = &mut self.reliability {
                own.tx_sequence = Some(reliability.watch(cx.now, &own, announcement, fragment));
                let free = room - fragment.len();
                take_acks(reliability, mtu, free, &mut cx.scratch.acks);
            }
            write_queued(cx, &own, announcement, fragment);
        }
        if let Some(reliability) = &mut self.reliability {
            count_report(reliability, cx.counters);
        }
        Ok(())
    }

    /// Whether [`Link::write_due`] would write something.
    #[inline]
    pub(crate) fn is_due(&self, now: MonoNs) -> bool {
        self.reliability.as_ref().is_some_and(|reliability| {
            reliability.are_acks_due(now)
                || reliability.poll_timeout().is_some_and(|due| due <= now)
        })
    }

    /// When [`Link::write_due`] next has something to write.
    pub(crate) fn due_at(&self) -> Option<MonoNs> {
        self.reliability.as_ref()?.poll_timeout()
    }

    /// Queues what no packet has carried: fragments to be sent again, and
    /// acknowledgements that have waited for long enough; as much as a queue of
    /// [`MAX_DUE_BYTES`] takes. The rest stays due.
    pub(crate) fn write_due(&mut self, cx: &mut TxContext<'_>) {
        let mtu = self.mtu_bytes.unwrap_or(MAX_PACKET_BYTES);
        let Some(reliability) = &mut self.reliability else {
            return;
        };
        reliability.handle_timeout(cx.now);
        while cx.queue.len_bytes() < MAX_DUE_BYTES {
            let TxContext {
                queue,
                pool,
                counters,
                scratch,
                ..
            } = cx;
            let did_send = reliability.resend(cx.now, |tx_sequence, resend| {
                let headers = Headers {
                    tx_sequence: Some(tx_sequence),
                    ..resend.headers
                };
                let len = queue.push(pool, |out| {
                    let fields = &mut scratch.fields;
                    let announcement = resend.prefix_announcement;
                    write_frame(out, fields, &headers, announcement, &[], resend.fragment);
                });
                counters.n_retransmitted += 1;
                counters.n_out_frames += 1;
                counters.n_out_bytes += len as u64;
            });
            if !did_send {
                break;
            }
        }
        if reliability.are_acks_due(cx.now) {
            while reliability.n_acks() > 0 && cx.queue.len_bytes() < MAX_DUE_BYTES {
                take_acks(reliability, mtu, mtu - 8, &mut cx.scratch.acks);
                let TxContext {
                    queue,
                    pool,
                    counters,
                    scratch,
                    ..
                } = cx;
                let len = queue.push(pool, |out| {
                    let headers = Headers::default();
                    tachonym_packet::lp::write_packet(out, &headers, None, &scratch.acks, None);
                });
                counters.n_out_frames += 1;
                counters.n_out_bytes += len as u64;
            }
        }
        count_report(reliability, cx.counters);
    }
}

/// What became of a packet written in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BareOutcome {
    Sent,
    TooLong,
}

/// The fields that every fragment has, of those in `headers`.
fn own_fields(headers: &Headers) -> Headers {
    Headers {
        sequence: headers.sequence,
        tx_sequence: headers.tx_sequence,
        frag_index: headers.frag_index,
        frag_count: headers.frag_count,
        ..Headers::default()
    }
}

/// Takes as many acknowledgements as fit in `free_bytes` of a frame. Frames of
/// streams have no limit of their own and carry one batch.
fn take_acks(reliability: &mut Reliability, mtu: usize, free_bytes: usize, acks: &mut Vec<u64>) {
    let max = if mtu == usize::MAX {
        ACK_BATCH
    } else {
        free_bytes / ACK_BYTES
    };
    reliability.take_acks(max, acks);
}

fn write_queued(
    cx: &mut TxContext<'_>,
    headers: &Headers,
    prefix_announcement: Option<&[u8]>,
    fragment: &[u8],
) {
    let Scratch { fields, acks, .. } = &mut *cx.scratch;
    let len = cx.queue.push(cx.pool, |out| {
        write_frame(out, fields, headers, prefix_announcement, acks, fragment);
    });
    cx.counters.n_out_frames += 1;
    cx.counters.n_out_bytes += len as u64;
}

fn count_report(reliability: &mut Reliability, counters: &mut FaceCounters) {
    let report = reliability.take_report();
    counters.n_unwatched += report.n_unwatched;
    counters
        .drops
        .add(DropReason::RetransmissionsExhausted, report.n_exhausted);
}
