//! NDN packets in captures: pcap and pcapng, Ethernet down to UDP, TCP and
//! WebSocket.
//!
//! Owns the way from a captured frame to the packets in it, and fragments of
//! NDNLPv2 that wait for others: of [`MAX_PARTIAL_PKTS`] packets, and
//! [`MAX_PARTIAL_BYTES`] in all; beyond, those that wait are passed over. TCP
//! connections are put in order in `streams`, within bounds of its own.

mod stream;
mod streams;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::{anyhow, bail};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use tachonym_packet::PacketView;
use tachonym_packet::lp::LpView;
use tachonym_packet::tlv::element_len;

use super::tree::begins_frame;
use streams::{Segment, Streams};

/// Linux cooked capture, version 2.
const LINUX_SLL2: Linktype = Linktype(276);
/// Ethernet's type of NDN.
const ETHERTYPE_NDN: u16 = 0x8624;
/// TCP ports that are looked at unless others are named.
const TCP_PORTS: [u16; 2] = [6363, 9696];
/// Packets of which some fragments have been seen.
const MAX_PARTIAL_PKTS: usize = 1024;
/// Bytes of all fragments that wait for others.
const MAX_PARTIAL_BYTES: usize = 16 << 20;
/// UDP ports at which what is malformed is shown; elsewhere it is something else.
const UDP_PORTS: [u16; 2] = [6363, 56_363];
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
    n_streams_given_up: u64,
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
                self.n_streams_given_up,
                "connections, in one direction, that made room for others",
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

/// Passes every packet of the capture `input` to `sink`. Reports what was skipped even if
/// the capture turns out to be damaged.
pub(super) fn read(
    input: &[u8],
    ports: &[u16],
    sink: &mut Sink<'_>,
) -> (PassedOver, anyhow::Result<()>) {
    let mut frames = Frames {
        ports,
        streams: Streams::default(),
        partial: HashMap::new(),
        partial_bytes: 0,
        passed_over: PassedOver::default(),
    };
    let result = read_frames(input, &mut frames, sink);
    let mut passed_over = frames.passed_over;
    passed_over.n_stream_bytes = frames.streams.n_lost_bytes();
    passed_over.n_streams_given_up = frames.streams.n_given_up();
    let partial = frames.partial.values().flatten();
    passed_over.n_fragments += partial.flatten().count() as u64;
    (passed_over, result)
}

fn read_frames(input: &[u8], frames: &mut Frames<'_>, sink: &mut Sink<'_>) -> anyhow::Result<()> {
    // Room for what is there and a little more, lest the end go unnoticed.
    let window_bytes = WINDOW_BYTES.min(input.len() + 64);
    let mut reader = create_reader(window_bytes, input).map_err(|error| match error {
        PcapError::HeaderNotRecognized => anyhow!("not a capture: neither pcap nor pcapng"),
        error => anyhow!("the head of the capture is {}", fault(&error)),
    })?;
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
                    .map_err(|error| anyhow!("a block of the capture is {}", fault(&error)))?;
            }
            Err(error) => bail!("the capture is {}", fault(&error)),
        }
    }
}

/// What is wrong with a capture, or its part, that gives `error`.
const fn fault<I>(error: &PcapError<I>) -> &'static str {
    match error {
        PcapError::Eof | PcapError::UnexpectedEof | PcapError::Incomplete(_) => "cut off",
        PcapError::BufferTooSmall => "too large",
        PcapError::HeaderNotRecognized => "of an unknown form",
        PcapError::ReadError => "not readable",
        PcapError::NomError(..) | PcapError::OwnedNomError(..) => "damaged",
    }
}

/// From frames to packets.
struct Frames<'p> {
    ports: &'p [u16],
    streams: Streams,
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
                let found = self.streams.add(&Segment {
                    flow: (from, to),
                    sequence: tcp.sequence_number(),
                    is_syn: tcp.syn(),
                    is_fin: tcp.fin(),
                    is_rst: tcp.rst(),
                    payload: tcp.payload(),
                });
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
