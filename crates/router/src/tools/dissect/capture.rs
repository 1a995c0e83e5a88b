//! NDN packets in captures: pcap and pcapng, Ethernet down to UDP, TCP and
//! WebSocket.
//!
//! Owns the way from a captured frame to the packets in it, in order for each
//! direction of a TCP connection. Memory for what waits to be put in order is
//! bounded; what does not fit is passed over.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use anyhow::{anyhow, bail};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use tachonym_packet::PacketView;
use tachonym_packet::lp::LpView;
use tachonym_packet::tlv::element_len;

use super::tree::begins_frame;

/// Linux cooked capture, version 2.
const LINUX_SLL2: Linktype = Linktype(276);
/// Ethernet's type of NDN.
const ETHERTYPE_NDN: u16 = 0x8624;
/// TCP ports that are looked at unless others are named.
const TCP_PORTS: [u16; 2] = [6363, 9696];
/// Connections that are followed at once.
const MAX_STREAMS: usize = 1024;
/// Bytes of one direction of a connection that wait for others.
const MAX_STREAM_BYTES: usize = 1 << 18;
/// Segments of one direction of a connection that came too early.
const MAX_EARLY_SEGMENTS: usize = 256;
/// Largest head of HTTP before a WebSocket.
const MAX_HTTP_BYTES: usize = 8192;
/// Packets of which some fragments have been seen.
const MAX_PARTIAL_PKTS: usize = 1024;
/// Bytes of all fragments that wait for others.
const MAX_PARTIAL_BYTES: usize = 16 << 20;
/// UDP ports at which what is malformed is shown; elsewhere it is something else.
const UDP_PORTS: [u16; 2] = [6363, 56_363];
/// Largest element of a stream that is believed.
const MAX_ELEMENT_BYTES: usize = 1 << 16;
/// Size of the window over the capture; no block may be larger.
const WINDOW_BYTES: usize = 16 << 20;

/// A packet and where it was found.
pub(super) struct Captured {
    /// Time and addresses.
    pub(super) place: Option<String>,
    /// The packet.
    pub(super) wire: Vec<u8>,
}

/// What is not shown, by the reason.
#[derive(Default)]
pub(super) struct PassedOver {
    n_ip_fragments: u64,
    n_damaged_frames: u64,
    n_unknown_links: u64,
    n_stream_bytes: u64,
    n_streams_refused: u64,
    n_fragments: u64,
}

impl PassedOver {
    /// A line for each reason that there was.
    pub(super) fn lines(&self) -> Vec<String> {
        [
            (self.n_ip_fragments, "fragments of IP packets"),
            (
                self.n_damaged_frames,
                "frames that are cut short or damaged",
            ),
            (
                self.n_unknown_links,
                "frames of links that are not known here",
            ),
            (
                self.n_stream_bytes,
                "bytes of connections that are no packets, or out of order",
            ),
            (
                self.n_streams_refused,
                "segments of more connections than are followed at once",
            ),
            (
                self.n_fragments,
                "fragments of packets that never became whole",
            ),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

type Sink<'s> = dyn FnMut(Captured) -> anyhow::Result<()> + 's;

/// Whether `input` begins as a capture does.
pub(super) fn is_capture(input: &[u8]) -> bool {
    matches!(
        input.first_chunk(),
        Some(
            [0xd4, 0xc3, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0xc3, 0xd4]
                | [0x4d, 0x3c, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0x3c, 0x4d]
                | [0x0a, 0x0d, 0x0d, 0x0a]
        )
    )
}

/// Hands every packet of the capture `input` to `sink`. Tells what was passed
/// over even if the capture turns out to be damaged.
pub(super) fn read(
    input: &[u8],
    ports: &[u16],
    sink: &mut Sink<'_>,
) -> (PassedOver, anyhow::Result<()>) {
    let mut frames = Frames {
        ports,
        streams: HashMap::new(),
        partial: HashMap::new(),
        partial_bytes: 0,
        passed_over: PassedOver::default(),
    };
    let result = read_frames(input, &mut frames, sink);
    let mut passed_over = frames.passed_over;
    let waiting = frames.streams.values();
    passed_over.n_stream_bytes += waiting
        .map(|s| s.n_lost_bytes + s.n_waiting() as u64)
        .sum::<u64>();
    let partial = frames.partial.values().flatten();
    passed_over.n_fragments += partial.flatten().count() as u64;
    (passed_over, result)
}

fn read_frames(input: &[u8], frames: &mut Frames<'_>, sink: &mut Sink<'_>) -> anyhow::Result<()> {
    let mut reader = create_reader(WINDOW_BYTES, input)
        .map_err(|error| anyhow!("not a capture, or cut off at its head: {error:?}"))?;
    let mut ticks_per_us = 1;
    let mut interfaces: Vec<(Linktype, u64)> = Vec::new();
    let mut link = Linktype::ETHERNET;
    loop {
        match reader.next() {
            Ok((n_bytes, block)) => {
                match &block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        link = header.network;
                        if header.is_nanosecond_precision() {
                            ticks_per_us = 1000;
                        }
                    }
                    PcapBlockOwned::Legacy(frame) => {
                        let us = u64::from(frame.ts_usec) / ticks_per_us;
                        let us = u64::from(frame.ts_sec) * 1_000_000 + us;
                        frames.take(link, us, frame.data, sink)?;
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        let resolution = interface.ts_resolution().unwrap_or(1_000_000);
                        interfaces.push((interface.linktype, resolution.max(1)));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(frame)) => {
                        let interface = interfaces.get(frame.if_id as usize);
                        if let Some(&(link, resolution)) = interface {
                            let ticks = u64::from(frame.ts_high) << 32 | u64::from(frame.ts_low);
                            let us = u128::from(ticks) * 1_000_000 / u128::from(resolution);
                            let us = u64::try_from(us).unwrap_or(u64::MAX);
                            frames.take(link, us, frame.packet_data(), sink)?;
                        }
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(frame)) => {
                        if let Some(&(link, _)) = interfaces.first() {
                            frames.take(link, 0, frame.packet_data(), sink)?;
                        }
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(n_bytes);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) => {
                if reader.reader_exhausted() {
                    bail!("the capture is cut off");
                }
                reader
                    .refill()
                    .map_err(|error| anyhow!("a block is too large: {error:?}"))?;
            }
            Err(PcapError::UnexpectedEof) => bail!("the capture is cut off"),
            Err(error) => bail!("the capture is damaged: {error:?}"),
        }
    }
}

/// From frames to packets.
struct Frames<'p> {
    ports: &'p [u16],
    streams: HashMap<(SocketAddr, SocketAddr), Stream>,
    /// Fragments by flow and the sequence number of the first.
    partial: HashMap<(String, u64), Vec<Option<Vec<u8>>>>,
    partial_bytes: usize,
    passed_over: PassedOver,
}

impl Frames<'_> {
    fn take(
        &mut self,
        link: Linktype,
        us: u64,
        frame: &[u8],
        sink: &mut Sink<'_>,
    ) -> anyhow::Result<()> {
        let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        if !is_known(link) {
            self.passed_over.n_unknown_links += 1;
            return Ok(());
        }
        let Some((ethertype, payload)) = link_payload(link, frame) else {
            self.passed_over.n_damaged_frames += 1;
            return Ok(());
        };
        if ethertype == Some(ETHERTYPE_NDN) {
            return self.packets(&format!("{time} ether"), payload, sink);
        }
        if !matches!(ethertype, None | Some(0x0800 | 0x86dd)) {
            return Ok(());
        }
        let Ok(packet) = SlicedPacket::from_ip(payload) else {
            self.passed_over.n_damaged_frames += 1;
            return Ok(());
        };
        let ip = packet.net.as_ref().and_then(NetSlice::ip_payload_ref);
        if ip.is_some_and(|ip| ip.fragmented) {
            self.passed_over.n_ip_fragments += 1;
            return Ok(());
        }
        let Some((from, to)) = packet.net.as_ref().and_then(addresses) else {
            return Ok(());
        };
        match &packet.transport {
            Some(TransportSlice::Udp(udp)) => {
                let from = SocketAddr::new(from, udp.source_port());
                let to = SocketAddr::new(to, udp.destination_port());
                if !self.ports.is_empty() && !self.has_port(from, to, &[]) {
                    return Ok(());
                }
                let is_shown = match self.has_port(from, to, &UDP_PORTS) {
                    true => begins_frame(udp.payload()),
                    false => is_packet(udp.payload()),
                };
                if !is_shown {
                    return Ok(());
                }
                self.packets(&format!("{time} udp {from} > {to}"), udp.payload(), sink)
            }
            Some(TransportSlice::Tcp(tcp)) => {
                let from = SocketAddr::new(from, tcp.source_port());
                let to = SocketAddr::new(to, tcp.destination_port());
                if !self.has_port(from, to, &TCP_PORTS) {
                    return Ok(());
                }
                let is_known = self.streams.contains_key(&(from, to));
                if !is_known && self.streams.len() >= MAX_STREAMS {
                    self.passed_over.n_streams_refused += 1;
                    return Ok(());
                }
                let stream = self.streams.entry((from, to)).or_default();
                let mut sequence = tcp.sequence_number();
                if tcp.syn() {
                    // SYN takes a number of its own.
                    sequence = sequence.wrapping_add(1);
                    stream.restart_at(sequence);
                }
                stream.add(sequence, tcp.payload());
                let mut found = Vec::new();
                while let Some(wire) = stream.next_element() {
                    found.push(wire);
                }
                if tcp.rst() {
                    let lost = stream.n_lost_bytes + stream.n_waiting() as u64;
                    self.passed_over.n_stream_bytes += lost;
                    self.streams.remove(&(from, to));
                }
                for wire in found {
                    self.packet(&format!("{time} tcp {from} > {to}"), wire, sink)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn has_port(&self, from: SocketAddr, to: SocketAddr, usual: &[u16]) -> bool {
        let ports = if self.ports.is_empty() {
            usual
        } else {
            self.ports
        };
        ports.contains(&from.port()) || ports.contains(&to.port())
    }

    /// The packets of one datagram: one, and padding of Ethernet behind it.
    fn packets(&mut self, place: &str, payload: &[u8], sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let wire = match element_len(payload) {
            Ok(Some(len)) if len <= payload.len() => &payload[..len],
            _ => payload,
        };
        self.packet(place, wire.to_vec(), sink)
    }

    /// One frame of the link, and the packet that it completes.
    fn packet(&mut self, place: &str, wire: Vec<u8>, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let whole = self.reassemble(place, &wire);
        sink(Captured {
            place: Some(place.to_owned()),
            wire,
        })?;
        match whole {
            Some(wire) => sink(Captured {
                place: Some(format!("{place} reassembled")),
                wire,
            }),
            None => Ok(()),
        }
    }

    fn reassemble(&mut self, place: &str, wire: &[u8]) -> Option<Vec<u8>> {
        let frame = LpView::parse(wire).ok()?;
        let headers = frame.headers();
        let (index, count) = (headers.frag_index, headers.frag_count);
        if !(2..=256).contains(&count) || index >= count {
            return None;
        }
        let first = headers.sequence?.wrapping_sub(index);
        // The flow is what stands behind the time.
        let flow = place
            .split_once(' ')
            .map_or(place, |(_, flow)| flow)
            .to_owned();
        let fragment = frame.fragment()?;
        let waiting = self.partial_bytes + fragment.len();
        if self.partial.len() >= MAX_PARTIAL_PKTS || waiting > MAX_PARTIAL_BYTES {
            let partial = self.partial.values().flatten();
            self.passed_over.n_fragments += partial.flatten().count() as u64;
            self.partial.clear();
            self.partial_bytes = 0;
        }
        let count = usize::try_from(count).ok()?;
        let key = (flow, first);
        let parts = self
            .partial
            .entry(key.clone())
            .or_insert_with(|| vec![None; count]);
        let place = parts.get_mut(usize::try_from(index).ok()?)?;
        let before = place.replace(fragment.to_vec());
        self.partial_bytes += fragment.len();
        self.partial_bytes -= before.map_or(0, |bytes| bytes.len());
        if parts.iter().any(Option::is_none) {
            return None;
        }
        let parts = self.partial.remove(&key)?;
        let whole: Vec<u8> = parts.into_iter().flatten().flatten().collect();
        self.partial_bytes -= whole.len();
        Some(whole)
    }
}

fn addresses(net: &NetSlice<'_>) -> Option<(IpAddr, IpAddr)> {
    match net {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            Some((
                header.source_addr().into(),
                header.destination_addr().into(),
            ))
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            Some((
                header.source_addr().into(),
                header.destination_addr().into(),
            ))
        }
        NetSlice::Arp(_) => None,
    }
}

/// Whether a datagram is a well-formed packet, or a fragment of one.
fn is_packet(payload: &[u8]) -> bool {
    let Ok(frame) = LpView::parse(payload) else {
        return false;
    };
    match frame.fragment() {
        Some(_) if frame.headers().is_fragmented() => true,
        Some(fragment) => PacketView::parse(fragment).is_ok(),
        None => true,
    }
}

/// Whether frames of `link` can be read.
const fn is_known(link: Linktype) -> bool {
    matches!(
        link,
        Linktype::ETHERNET
            | Linktype::LINUX_SLL
            | LINUX_SLL2
            | Linktype::NULL
            | Linktype::LOOP
            | Linktype::RAW
            | Linktype::IPV4
            | Linktype::IPV6
    )
}

/// The Ethernet type, if the link has one, and what follows the link's header.
fn link_payload(link: Linktype, frame: &[u8]) -> Option<(Option<u16>, &[u8])> {
    let ethertype_at = |at: usize| -> Option<u16> {
        let bytes = frame.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    match link {
        Linktype::ETHERNET => {
            let mut at = 12;
            // Tags of virtual LANs.
            while matches!(ethertype_at(at)?, 0x8100 | 0x88a8 | 0x9100) {
                at += 4;
            }
            Some((ethertype_at(at), frame.get(at + 2..)?))
        }
        Linktype::LINUX_SLL => Some((ethertype_at(14), frame.get(16..)?)),
        LINUX_SLL2 => Some((ethertype_at(0), frame.get(20..)?)),
        Linktype::NULL | Linktype::LOOP => Some((None, frame.get(4..)?)),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => Some((None, frame)),
        _ => None,
    }
}

/// One direction of a TCP connection.
#[derive(Default)]
struct Stream {
    /// Sequence number and offset of the byte behind `ready`.
    next: Option<(u32, u64)>,
    /// Bytes in order; the first `n_read` have been taken out.
    ready: Vec<u8>,
    n_read: usize,
    /// Segments that came too early, by offset.
    early: BTreeMap<u64, Vec<u8>>,
    early_bytes: usize,
    is_websocket: bool,
    /// Bytes that became part of no packet.
    n_lost_bytes: u64,
}

impl Stream {
    /// Begins anew: what waits is lost.
    fn restart_at(&mut self, sequence: u32) {
        *self = Self {
            next: Some((sequence, 0)),
            n_lost_bytes: self.n_lost_bytes + self.n_waiting() as u64,
            ..Self::default()
        };
    }

    /// Bytes that are held.
    fn n_waiting(&self) -> usize {
        self.ready.len() - self.n_read + self.early_bytes
    }

    fn add(&mut self, sequence: u32, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        self.ready.drain(..self.n_read);
        self.n_read = 0;
        let (next, offset) = *self.next.get_or_insert((sequence, 0));
        let is_too_much = self.n_waiting() + payload.len() > MAX_STREAM_BYTES
            || self.early.len() >= MAX_EARLY_SEGMENTS;
        if is_too_much {
            // Something is missing for good, or it is not what we take it for.
            let is_websocket = self.is_websocket;
            self.restart_at(sequence);
            self.is_websocket = is_websocket;
            self.append(payload);
            return;
        }
        let behind = next.wrapping_sub(sequence);
        if behind < 1 << 31 {
            // Perhaps sent again, with more behind it.
            self.append(payload.get(behind as usize..).unwrap_or_default());
        } else {
            let at = offset + u64::from(sequence.wrapping_sub(next));
            let segment = self.early.entry(at).or_default();
            if segment.len() < payload.len() {
                self.early_bytes += payload.len() - segment.len();
                *segment = payload.to_vec();
            }
        }
        while let Some((_, offset)) = self.next
            && let Some(first) = self.early.first_entry()
            && *first.key() <= offset
        {
            let (at, segment) = first.remove_entry();
            self.early_bytes -= segment.len();
            let n_known = usize::try_from(offset - at).unwrap_or(usize::MAX);
            self.append(segment.get(n_known..).unwrap_or_default());
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        self.ready.extend_from_slice(bytes);
        self.next = self.next.map(|(sequence, offset)| {
            let len = bytes.len();
            (sequence.wrapping_add(len as u32), offset + len as u64)
        });
    }

    /// What has not been taken out.
    fn unread(&self) -> &[u8] {
        self.ready.get(self.n_read..).unwrap_or_default()
    }

    /// Gives up what is ready; a later segment may begin with a packet.
    fn pass_over(&mut self) {
        self.n_lost_bytes += self.unread().len() as u64;
        self.n_read = self.ready.len();
    }

    /// The next whole packet.
    fn next_element(&mut self) -> Option<Vec<u8>> {
        if self.unread().is_empty() {
            return None;
        }
        let is_http = [&b"GET "[..], b"HTTP/"].iter().any(|start| {
            let len = start.len().min(self.unread().len());
            self.unread()[..len] == start[..len]
        });
        if is_http && !self.is_websocket {
            let Some(end) = self.unread().windows(4).position(|w| w == b"\r\n\r\n") else {
                if self.unread().len() > MAX_HTTP_BYTES {
                    self.pass_over();
                }
                return None;
            };
            self.n_read += end + 4;
            self.is_websocket = true;
        }
        if self.is_websocket {
            return self.next_message();
        }
        match element_len(self.unread()) {
            _ if !begins_frame(self.unread()) => self.pass_over(),
            Ok(Some(len)) if len <= self.unread().len() => {
                let wire = self.unread()[..len].to_vec();
                self.n_read += len;
                return Some(wire);
            }
            Ok(Some(len)) if len <= MAX_ELEMENT_BYTES => {}
            Ok(None) => {}
            _ => self.pass_over(),
        }
        None
    }

    /// The next WebSocket message that is binary and in one frame (RFC 6455,
    /// section 5.2). Messages in several frames are passed over.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        loop {
            let bytes = self.unread();
            let [first, second, ..] = *bytes else {
                return None;
            };
            let (len, mut at) = match second & 0x7f {
                126 => {
                    let len: [u8; 2] = bytes.get(2..4)?.try_into().ok()?;
                    (u64::from(u16::from_be_bytes(len)), 4)
                }
                127 => {
                    let len: [u8; 8] = bytes.get(2..10)?.try_into().ok()?;
                    (u64::from_be_bytes(len), 10)
                }
                len => (u64::from(len), 2),
            };
            let len = match usize::try_from(len) {
                Ok(len) if len <= MAX_ELEMENT_BYTES => len,
                _ => {
                    self.pass_over();
                    return None;
                }
            };
            let mut mask = [0; 4];
            if second & 0x80 != 0 {
                mask = bytes.get(at..at + 4)?.try_into().ok()?;
                at += 4;
            }
            let mut message = bytes.get(at..at + len)?.to_vec();
            self.n_read += at + len;
            for (i, byte) in message.iter_mut().enumerate() {
                *byte ^= mask[i % 4];
            }
            match first & 0x8f {
                0x82 => return Some(message),
                // Control frames belong to the connection.
                0x88..=0x8f => {}
                _ => self.n_lost_bytes += len as u64,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: [u8; 7] = [5, 5, 7, 3, 8, 1, b'a'];

    fn starting_at(sequence: u32) -> Stream {
        let mut stream = Stream::default();
        stream.restart_at(sequence);
        stream
    }

    #[test]
    fn segments_are_put_in_order_and_repeated_ones_ignored() {
        let two = [PACKET, PACKET].concat();
        let mut stream = starting_at(u32::MAX - 2);
        let at = |offset: u32| (u32::MAX - 2).wrapping_add(offset);
        stream.add(at(9), &two[9..]);
        stream.add(at(0), &two[..4]);
        assert_eq!(stream.next_element(), None);
        stream.add(at(2), &two[2..9]);
        stream.add(at(0), &two[..4]);
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
        assert_eq!(stream.next_element(), None);
    }

    #[test]
    fn websocket_messages_are_unmasked() {
        let mut stream = starting_at(0);
        let mut bytes = b"GET / HTTP/1.1\r\n\r\n".to_vec();
        bytes.extend([0x82, 0x87, 1, 2, 3, 4]);
        bytes.extend(
            PACKET
                .iter()
                .zip([1, 2, 3, 4].into_iter().cycle())
                .map(|(b, m)| b ^ m),
        );
        for (i, byte) in bytes.iter().enumerate() {
            assert_eq!(stream.next_element(), None);
            stream.add(i as u32, &[*byte]);
        }
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
    }

    #[test]
    fn a_stream_of_something_else_is_passed_over() {
        let mut stream = starting_at(0);
        stream.add(0, &[0; 5000]);
        assert_eq!(stream.next_element(), None);
        assert_eq!(stream.n_lost_bytes, 5000);
        for i in 0..4000_u32 {
            stream.add(1_000_000 + i * 2000, &[7; 1000]);
            assert_eq!(stream.next_element(), None);
            let early: usize = stream.early.values().map(Vec::len).sum();
            assert_eq!(stream.early_bytes, early);
            assert!(stream.n_waiting() <= MAX_STREAM_BYTES);
            assert!(stream.early.len() <= MAX_EARLY_SEGMENTS);
        }
        // A packet at the start of a segment is found again.
        stream.add(20_000_000, &[9; 100]);
        for i in 0..2 * MAX_EARLY_SEGMENTS as u32 {
            stream.add(30_000_000 + i * 100, &PACKET);
        }
        assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
    }

    #[test]
    fn early_segments_may_overlap_what_is_there() {
        let three = [PACKET, PACKET, PACKET].concat();
        let mut stream = starting_at(100);
        stream.add(105, &three[5..12]);
        stream.add(105, &three[5..9]);
        stream.add(110, &three[10..]);
        stream.add(100, &three[..8]);
        for _ in 0..3 {
            assert_eq!(stream.next_element(), Some(PACKET.to_vec()));
        }
        assert_eq!((stream.n_waiting(), stream.n_lost_bytes), (0, 0));
    }

    proptest! {
        #[test]
        fn segments_in_any_order_make_the_same_packets(
            cuts in prop::collection::vec(0..70_usize, 0..20),
            seed in any::<u64>(),
        ) {
            let bytes = PACKET.repeat(10);
            let mut cuts = [cuts, vec![0, 70]].concat();
            cuts.sort_unstable();
            let mut segments: Vec<_> = cuts.windows(2).map(|w| (w[0], &bytes[w[0]..w[1]])).collect();
            segments.sort_by_key(|(at, _)| (*at as u64 + 1).wrapping_mul(seed | 1));
            let mut stream = starting_at(u32::MAX - 30);
            let mut n_found = 0;
            for (at, segment) in segments {
                stream.add((u32::MAX - 30).wrapping_add(at as u32), segment);
                while let Some(wire) = stream.next_element() {
                    prop_assert_eq!(wire, PACKET.to_vec());
                    n_found += 1;
                }
            }
            prop_assert_eq!(n_found, 10);
        }

        #[test]
        fn any_bytes_after_the_head_of_a_capture_are_survived(
            link in prop::sample::select(vec![0_u8, 1, 101, 108, 113]),
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..8),
            tail in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
            capture.extend([0; 8]);
            capture.extend([0xff, 0xff, 0, 0, link, 0, 0, 0]);
            for frame in &frames {
                capture.extend([0; 8]);
                capture.extend((frame.len() as u32).to_le_bytes());
                capture.extend((frame.len() as u32).to_le_bytes());
                capture.extend(frame);
            }
            capture.extend(&tail);
            let (passed_over, _) = read(&capture, &[], &mut |_| Ok(()));
            passed_over.lines();
        }
    }
}
