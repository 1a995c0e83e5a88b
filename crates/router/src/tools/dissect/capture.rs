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
use tachonym_packet::lp::LpView;
use tachonym_packet::tlv::element_len;

/// Ethernet's type of NDN.
const ETHERTYPE_NDN: u16 = 0x8624;
/// TCP ports that are looked at unless others are named.
const TCP_PORTS: [u16; 2] = [6363, 9696];
/// Connections that are followed at once.
const MAX_STREAMS: usize = 4096;
/// Bytes of one direction of a connection that wait for others.
const MAX_STREAM_BYTES: usize = 1 << 20;
/// Packets of which some fragments have been seen.
const MAX_PARTIAL_PKTS: usize = 1024;
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

/// Hands every packet of the capture `input` to `sink`.
pub(super) fn read(input: &[u8], ports: &[u16], sink: &mut Sink<'_>) -> anyhow::Result<()> {
    let mut reader = create_reader(WINDOW_BYTES, input)
        .map_err(|error| anyhow!("not a capture, or cut off at its head: {error:?}"))?;
    let mut frames = Frames {
        ports,
        streams: HashMap::new(),
        partial: HashMap::new(),
    };
    let mut interfaces: Vec<(Linktype, u64)> = Vec::new();
    let mut link = Linktype::ETHERNET;
    loop {
        match reader.next() {
            Ok((n_bytes, block)) => {
                match &block {
                    PcapBlockOwned::LegacyHeader(header) => link = header.network,
                    PcapBlockOwned::Legacy(frame) => {
                        let us = u64::from(frame.ts_sec) * 1_000_000 + u64::from(frame.ts_usec);
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
        let Some((ethertype, payload)) = link_payload(link, frame) else {
            return Ok(());
        };
        if ethertype == Some(ETHERTYPE_NDN) {
            return self.packets(&format!("{time} ether"), payload, sink);
        }
        // What is no IP packet, or a piece of one, holds nothing to see.
        let Ok(packet) = SlicedPacket::from_ip(payload) else {
            return Ok(());
        };
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
                if !super::tree::begins_packet(udp.payload()) {
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
                if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&(from, to)) {
                    return Ok(());
                }
                let stream = self.streams.entry((from, to)).or_default();
                if tcp.syn() {
                    *stream = Stream::starting_at(tcp.sequence_number().wrapping_add(1));
                }
                stream.add(tcp.sequence_number(), tcp.payload());
                let mut found = Vec::new();
                while let Some(wire) = stream.next_element() {
                    found.push(wire);
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
        if self.partial.len() >= MAX_PARTIAL_PKTS {
            self.partial.clear();
        }
        let count = usize::try_from(count).ok()?;
        let key = (flow, first);
        let parts = self
            .partial
            .entry(key.clone())
            .or_insert_with(|| vec![None; count]);
        *parts.get_mut(usize::try_from(index).ok()?)? = Some(frame.fragment()?.to_vec());
        if parts.iter().any(Option::is_none) {
            return None;
        }
        let parts = self.partial.remove(&key)?;
        Some(parts.into_iter().flatten().flatten().collect())
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
        Linktype(276) => Some((ethertype_at(0), frame.get(20..)?)),
        Linktype::NULL | Linktype::LOOP => Some((None, frame.get(4..)?)),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => Some((None, frame)),
        _ => None,
    }
}

/// One direction of a TCP connection.
#[derive(Default)]
struct Stream {
    /// Sequence number of the byte behind `ready`.
    next: Option<u32>,
    /// Bytes in order that are no whole element yet.
    ready: Vec<u8>,
    /// Segments that came too early, by sequence number.
    early: BTreeMap<u32, Vec<u8>>,
    is_websocket: bool,
}

impl Stream {
    fn starting_at(sequence: u32) -> Self {
        Self {
            next: Some(sequence),
            ..Self::default()
        }
    }

    fn add(&mut self, sequence: u32, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        let next = *self.next.get_or_insert(sequence);
        let n_waiting: usize = self.ready.len() + self.early.values().map(Vec::len).sum::<usize>();
        if n_waiting + payload.len() > MAX_STREAM_BYTES {
            // It is not what we take it for, or something is missing for good.
            *self = Self::starting_at(sequence.wrapping_add(payload.len() as u32));
            return;
        }
        let behind = next.wrapping_sub(sequence);
        if behind == 0 {
            self.append(payload);
        } else if behind < 1 << 31 {
            // Sent again, and perhaps with more behind it.
            if let Some(new) = payload.get(behind as usize..) {
                self.append(new);
            }
        } else {
            self.early.insert(sequence, payload.to_vec());
        }
        while let Some(next) = self.next
            && let Some(payload) = self.early.remove(&next)
        {
            self.append(&payload);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        self.ready.extend_from_slice(bytes);
        self.next = self.next.map(|next| next.wrapping_add(bytes.len() as u32));
    }

    /// The next whole packet.
    fn next_element(&mut self) -> Option<Vec<u8>> {
        if self.ready.starts_with(b"GET ") || self.ready.starts_with(b"HTTP/") {
            let end = self.ready.windows(4).position(|w| w == b"\r\n\r\n")?;
            self.ready.drain(..end + 4);
            self.is_websocket = true;
        }
        if self.is_websocket {
            return self.next_message();
        }
        match element_len(&self.ready) {
            Ok(Some(len)) if len > MAX_ELEMENT_BYTES => {
                self.ready.clear();
                None
            }
            Ok(Some(len)) if len <= self.ready.len() => Some(self.ready.drain(..len).collect()),
            Ok(_) => None,
            Err(_) => {
                self.ready.clear();
                None
            }
        }
    }

    /// The next WebSocket message that is binary and in one frame (RFC 6455,
    /// section 5.2).
    fn next_message(&mut self) -> Option<Vec<u8>> {
        loop {
            let [first, second, ..] = *self.ready.as_slice() else {
                return None;
            };
            let (len, mut at) = match second & 0x7f {
                126 => {
                    let bytes = self.ready.get(2..4)?;
                    (usize::from(u16::from_be_bytes([bytes[0], bytes[1]])), 4)
                }
                127 => {
                    self.ready.clear();
                    return None;
                }
                len => (usize::from(len), 2),
            };
            let mask = match second & 0x80 != 0 {
                true => {
                    let mask: [u8; 4] = self.ready.get(at..at + 4)?.try_into().ok()?;
                    at += 4;
                    mask
                }
                false => [0; 4],
            };
            if self.ready.len() < at + len {
                return None;
            }
            let mut message: Vec<u8> = self.ready.drain(..at + len).skip(at).collect();
            for (i, byte) in message.iter_mut().enumerate() {
                *byte ^= mask[i % 4];
            }
            if first & 0x8f == 0x82 {
                return Some(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: [u8; 7] = [5, 5, 7, 3, 8, 1, b'a'];

    #[test]
    fn segments_are_put_in_order_and_repeated_ones_ignored() {
        let two = [PACKET, PACKET].concat();
        let mut stream = Stream::starting_at(u32::MAX - 2);
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
        let mut stream = Stream::starting_at(0);
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
        let mut stream = Stream::starting_at(0);
        stream.add(0, &[0; 5000]);
        assert_eq!(stream.next_element(), None);
        for i in 0..4000_u32 {
            stream.add(1_000_000 + i * 2000, &[7; 1000]);
        }
        let waiting: usize = stream.early.values().map(Vec::len).sum();
        assert!(waiting <= MAX_STREAM_BYTES);
    }
}
