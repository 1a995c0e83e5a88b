//! The link service of one face: NDNLPv2 headers off and on, fragmentation,
//! congestion marks.

use std::time::Duration;

use tachonym_packet::lp::{self, Headers, LpView, PacketKind};
use tachonym_packet::{FaceId, MonoNs, types};

use crate::batch::RxBatch;
use crate::info::{DropReason, FaceCounters, FaceOptions};
use crate::reassembly::Reassembler;

/// Room that the headers of a fragment may take: a token of 32 bytes, a Nack,
/// a face number, a mark, sequence, index and count, and the heads.
const FRAGMENT_OVERHEAD_BYTES: usize = 120;

/// Link service of one face.
pub(crate) struct LinkService {
    pub(crate) options: FaceOptions,
    pub(crate) counters: FaceCounters,
    pub(crate) reassembler: Reassembler,
    next_sequence: u64,
    marker: CongestionMarker,
    framing: Framing,
}

/// Whether frames are cut to the MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A byte stream carries a packet of any size.
    Stream,
    /// Datagrams: larger packets go in fragments.
    Datagram,
}

impl LinkService {
    pub(crate) fn new(options: FaceOptions, framing: Framing) -> Self {
        Self {
            options,
            counters: FaceCounters::default(),
            reassembler: Reassembler::default(),
            next_sequence: 0,
            marker: CongestionMarker::default(),
            framing,
        }
    }

    /// Takes one frame, which lies in the batch at `at`, and adds the packet in
    /// it, if it completes one. `is_congested` marks it.
    pub(crate) fn receive(
        &mut self,
        now: MonoNs,
        face: FaceId,
        at: std::ops::Range<usize>,
        is_congested: bool,
        batch: &mut RxBatch,
    ) {
        self.counters.n_in_bytes += at.len() as u64;
        if let Err(reason) = self.try_receive(now, face, at, is_congested, batch) {
            self.counters.count_drop(reason);
        }
    }

    fn try_receive(
        &mut self,
        now: MonoNs,
        face: FaceId,
        at: std::ops::Range<usize>,
        is_congested: bool,
        batch: &mut RxBatch,
    ) -> Result<(), DropReason> {
        let start = at.start;
        let frame = batch.bytes(at);
        let view = LpView::parse(frame).map_err(|_| DropReason::Malformed)?;
        let Some(fragment) = view.fragment() else {
            return Ok(());
        };
        let mut headers = *view.headers();
        headers.congestion_mark = headers.congestion_mark.max(u64::from(is_congested));
        let offset = |part: &[u8]| start + (part.as_ptr().addr() - frame.as_ptr().addr());
        let range = |part: &[u8]| offset(part)..offset(part) + part.len();
        if !headers.is_fragmented() {
            let (packet, announcement) = (range(fragment), view.prefix_announcement().map(range));
            return self.deliver(face, headers, packet, announcement, batch);
        }
        let announcement = view.prefix_announcement();
        let whole = self
            .reassembler
            .insert(now, &headers, fragment, announcement)?;
        if let Some(whole) = whole {
            let packet = batch.append(&whole.packet).ok_or(DropReason::BatchFull)?;
            let announcement = whole
                .prefix_announcement
                .and_then(|bytes| batch.append(&bytes));
            return self.deliver(face, whole.headers, packet, announcement, batch);
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        face: FaceId,
        mut headers: Headers,
        packet: std::ops::Range<usize>,
        announcement: Option<std::ops::Range<usize>>,
        batch: &mut RxBatch,
    ) -> Result<(), DropReason> {
        let kind = kind_of(batch.bytes(packet.clone())).ok_or(DropReason::Malformed)?;
        if !headers.is_valid_for(kind) || (kind == PacketKind::Interest && announcement.is_some()) {
            return Err(DropReason::MisplacedHeader);
        }
        if !self.options.local_fields && (headers.next_hop_face_id.is_some() || headers.no_cache) {
            return Err(DropReason::LocalFieldDisabled);
        }
        // Where it came from is for this router to say.
        headers.incoming_face_id = None;
        match (kind, headers.nack) {
            (PacketKind::Interest, None) => self.counters.n_in_interests += 1,
            (PacketKind::Interest, Some(_)) => self.counters.n_in_nacks += 1,
            (PacketKind::Data, _) => self.counters.n_in_data += 1,
        }
        batch.push(face, headers, packet, announcement);
        Ok(())
    }

    /// Appends `packet` as one or more frames to `out` and tells `frame` the
    /// length of each. `queue_bytes` is what waits on this face already.
    pub(crate) fn send(
        &mut self,
        now: MonoNs,
        queue_bytes: usize,
        headers: &Headers,
        packet: &[u8],
        out: &mut Vec<u8>,
        mut frame: impl FnMut(usize),
    ) -> Result<(), DropReason> {
        let mut headers = *headers;
        if !self.options.local_fields {
            headers.incoming_face_id = None;
        }
        headers.next_hop_face_id = None;
        headers.no_cache = false;
        if self.options.congestion_marking && self.marker.marks(now, &self.options, queue_bytes) {
            headers.congestion_mark = headers.congestion_mark.max(1);
        }
        let start = out.len();
        lp::write_packet(out, &headers, None, &[], Some(packet));
        if self.framing == Framing::Datagram && out.len() - start > self.options.mtu_bytes {
            out.truncate(start);
            self.send_fragments(&headers, packet, out, &mut frame)?;
        } else {
            frame(out.len() - start);
        }
        self.counters.n_out_bytes += (out.len() - start) as u64;
        match (kind_of(packet), headers.nack) {
            (Some(PacketKind::Data), _) => self.counters.n_out_data += 1,
            (_, Some(_)) => self.counters.n_out_nacks += 1,
            _ => self.counters.n_out_interests += 1,
        }
        Ok(())
    }

    fn send_fragments(
        &mut self,
        headers: &Headers,
        packet: &[u8],
        out: &mut Vec<u8>,
        frame: &mut impl FnMut(usize),
    ) -> Result<(), DropReason> {
        let room = self
            .options
            .mtu_bytes
            .saturating_sub(FRAGMENT_OVERHEAD_BYTES);
        if room == 0 {
            return Err(DropReason::ExceedsMtu);
        }
        let frag_count = packet.len().div_ceil(room) as u64;
        for (index, piece) in packet.chunks(room).enumerate() {
            let base = if index == 0 {
                *headers
            } else {
                Headers::default()
            };
            let headers = Headers {
                sequence: Some(self.next_sequence),
                frag_index: index as u64,
                frag_count,
                ..base
            };
            self.next_sequence = self.next_sequence.wrapping_add(1);
            let start = out.len();
            lp::write_packet(out, &headers, None, &[], Some(piece));
            frame(out.len() - start);
        }
        Ok(())
    }
}

/// What kind of packet begins with these bytes.
fn kind_of(packet: &[u8]) -> Option<PacketKind> {
    match packet.first().copied().map(u32::from) {
        Some(types::INTEREST) => Some(PacketKind::Interest),
        Some(types::DATA) => Some(PacketKind::Data),
        _ => None,
    }
}

/// When to mark: while the queue stays above its threshold, at intervals that
/// shrink with the square root of the marks given (the schedule of CoDel, RFC
/// 8289, section 4.2, which NFD's link service applies to marks).
#[derive(Debug, Default)]
struct CongestionMarker {
    next_mark: Option<MonoNs>,
    n_marks: u32,
}

impl CongestionMarker {
    fn marks(&mut self, now: MonoNs, options: &FaceOptions, queue_bytes: usize) -> bool {
        if (queue_bytes as u64) <= options.congestion_threshold_bytes {
            self.next_mark = None;
            self.n_marks = 0;
            return false;
        }
        if self.next_mark.is_some_and(|at| now < at) {
            return false;
        }
        self.n_marks += 1;
        let interval = options.congestion_interval.as_secs_f64() / f64::from(self.n_marks).sqrt();
        self.next_mark = Some(now + Duration::from_secs_f64(interval));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &[u8] = &[0x06, 0x00];

    fn send(link: &mut LinkService, headers: &Headers, packet: &[u8]) -> Vec<Vec<u8>> {
        let (mut out, mut lens) = (Vec::new(), Vec::new());
        link.send(MonoNs(1), 0, headers, packet, &mut out, |n| lens.push(n))
            .expect("sent");
        let mut rest = &out[..];
        let mut frames = Vec::new();
        for len in lens {
            let (frame, others) = rest.split_at(len);
            frames.push(frame.to_vec());
            rest = others;
        }
        frames
    }

    fn receive(link: &mut LinkService, frames: &[Vec<u8>]) -> Vec<(Headers, Vec<u8>)> {
        let mut batch = RxBatch::new();
        for frame in frames {
            let at = batch.append(frame).expect("room");
            link.receive(MonoNs(1), FaceId(300), at, false, &mut batch);
        }
        batch
            .frames()
            .map(|f| (*f.headers, f.packet.to_vec()))
            .collect()
    }

    #[test]
    fn a_bare_packet_leaves_and_arrives_bare() {
        let mut link = LinkService::new(FaceOptions::default(), Framing::Datagram);
        let frames = send(&mut link, &Headers::default(), DATA);
        assert_eq!(frames, [DATA]);
        assert_eq!(
            receive(&mut link, &frames),
            [(Headers::default(), DATA.to_vec())]
        );
    }

    #[test]
    fn fragments_stay_within_the_mtu_and_are_joined_out_of_order() {
        let options = FaceOptions {
            mtu_bytes: 500,
            ..FaceOptions::default()
        };
        let mut link = LinkService::new(options, Framing::Datagram);
        let packet: Vec<u8> = DATA
            .iter()
            .copied()
            .chain((0..4000).map(|i| i as u8))
            .collect();
        let headers = Headers {
            pit_token: tachonym_packet::PitToken::new(&[9; 32]),
            ..Headers::default()
        };
        let mut frames = send(&mut link, &headers, &packet);
        assert!(frames.len() > 8 && frames.iter().all(|f| f.len() <= 500));
        frames.reverse();
        frames.insert(3, frames[2].clone());
        assert_eq!(receive(&mut link, &frames), [(headers, packet)]);
    }

    #[test]
    fn local_fields_are_refused_where_not_enabled() {
        let mut wire = Vec::new();
        let headers = Headers {
            no_cache: true,
            ..Headers::default()
        };
        lp::write_packet(&mut wire, &headers, None, &[], Some(DATA));
        let mut link = LinkService::new(FaceOptions::default(), Framing::Datagram);
        assert_eq!(receive(&mut link, &[wire.clone()]), []);
        assert_eq!(link.counters.n_dropped(DropReason::LocalFieldDisabled), 1);
        link.options.local_fields = true;
        assert_eq!(receive(&mut link, &[wire]).len(), 1);
    }

    #[test]
    fn a_bad_frame_is_counted_and_disturbs_no_other() {
        let mut link = LinkService::new(FaceOptions::default(), Framing::Datagram);
        let frames = [vec![0x06, 0x05, 0x00], vec![1, 2, 3], DATA.to_vec()];
        assert_eq!(receive(&mut link, &frames).len(), 1);
        assert_eq!(link.counters.n_dropped(DropReason::Malformed), 2);
    }

    #[test]
    fn a_long_queue_is_marked_at_shrinking_intervals() {
        let options = FaceOptions::default();
        let mut marker = CongestionMarker::default();
        assert!(!marker.marks(MonoNs(0), &options, 65_536));
        assert!(marker.marks(MonoNs(0), &options, 65_537));
        assert!(!marker.marks(MonoNs(0).plus_ms(99), &options, 70_000));
        assert!(marker.marks(MonoNs(0).plus_ms(100), &options, 70_000));
        // 100 ms / √2.
        assert!(!marker.marks(MonoNs(0).plus_ms(170), &options, 70_000));
        assert!(marker.marks(MonoNs(0).plus_ms(171), &options, 70_000));
    }
}
