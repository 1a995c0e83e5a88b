//! Captures of packets: pcap and pcapng files.
//!
//! [`for_each_frame`] hands out what was captured; [`flows`] numbers flows by addresses,
//! ports and protocol. Files are hostile: what cannot be read is an error that names the
//! packet, counted from 1.

use std::collections::HashMap;

use anyhow::{Context as _, bail, ensure};
use etherparse::{LaxNetSlice, LaxSlicedPacket, ip_number};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

/// Most bytes of a block of a capture.
const WINDOW_BYTES: usize = 16 << 20;

/// A captured packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// What kind of link it was captured on; `None` if the file doesn't tell.
    pub(crate) link: Option<Linktype>,
    /// As much of it as was captured.
    pub(crate) bytes: &'a [u8],
    /// Bytes that it had.
    pub(crate) n_bytes: u32,
}

/// Hands each packet of a capture to `take`, whose errors come back with the packet's
/// number. Returns how many there are.
///
/// # Errors
/// If this is no capture, it is cut short or damaged, or `take` fails.
pub(crate) fn for_each_frame(
    capture: &[u8],
    mut take: impl FnMut(Frame<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let window_bytes = WINDOW_BYTES.min(capture.len() + 64);
    let mut reader = match create_reader(window_bytes, capture) {
        Ok(reader) => reader,
        Err(error) => bail!("the file is neither pcap nor pcapng: {error:?}"),
    };
    let mut links: Vec<Linktype> = Vec::new();
    let mut n_packets = 0_u64;
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                let frame = match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        links = vec![header.network];
                        None
                    }
                    PcapBlockOwned::Legacy(block) => {
                        let link = links.first().copied();
                        Some((link, block.data, block.origlen))
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                        links.clear();
                        None
                    }
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        links.push(interface.linktype);
                        None
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                        let link = links.get(block.if_id as usize).copied();
                        let len = block.data.len().min(block.caplen as usize);
                        Some((link, &block.data[..len], block.origlen))
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(block)) => {
                        let len = block.data.len().min(block.origlen as usize);
                        Some((links.first().copied(), &block.data[..len], block.origlen))
                    }
                    PcapBlockOwned::NG(_) => None,
                };
                if let Some((link, bytes, n_bytes)) = frame {
                    n_packets += 1;
                    let frame = Frame {
                        link,
                        bytes,
                        n_bytes,
                    };
                    take(frame).with_context(|| format!("packet {n_packets}"))?;
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return Ok(n_packets),
            Err(PcapError::Incomplete(_)) => {
                let is_cut = reader.reader_exhausted() || reader.refill().is_err();
                ensure!(
                    !is_cut,
                    "the capture ends within the packet after packet {n_packets}"
                );
            }
            Err(PcapError::UnexpectedEof) => {
                bail!("the capture ends within the packet after packet {n_packets}")
            }
            Err(error) => bail!("the capture is damaged after packet {n_packets}: {error:?}"),
        }
    }
}

/// Packets of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flows {
    /// The flow of each packet, numbered as they first come, and its size in bytes; larger
    /// ones than 65,535 count as that.
    pub(crate) packets: Vec<(u32, u16)>,
    /// Packets that are not of IP, and were left out.
    pub(crate) n_left_out: u64,
}

/// Addresses, as IPv6 has them, protocol and ports.
type FiveTuple = ([u8; 16], [u8; 16], u8, [u8; 4]);

/// Flows of a capture's IP packets, on Ethernet, with VLAN tags or without, or on raw IP.
///
/// The two directions of a connection are two flows. Fragments, and protocols without
/// ports, count as having ports 0; so do packets captured so short that they lack them.
///
/// # Errors
/// If this is no capture, it is cut short or damaged, a packet claims to be of IP and is
/// not, or none is.
pub(crate) fn flows(capture: &[u8]) -> anyhow::Result<Flows> {
    let mut numbers: HashMap<FiveTuple, u32> = HashMap::new();
    let mut packets = Vec::new();
    let mut n_left_out = 0;
    for_each_frame(capture, |frame| {
        let Some(flow) = five_tuple(&frame)? else {
            n_left_out += 1;
            return Ok(());
        };
        let next = u32::try_from(numbers.len()).context("more than 2^32 flows")?;
        let flow = *numbers.entry(flow).or_insert(next);
        packets.push((flow, frame.n_bytes.min(u32::from(u16::MAX)) as u16));
        Ok(())
    })?;
    ensure!(!packets.is_empty(), "the capture has no IP packet");
    Ok(Flows {
        packets,
        n_left_out,
    })
}

/// The flow of a packet; `None` if it is not of IP.
fn five_tuple(frame: &Frame<'_>) -> anyhow::Result<Option<FiveTuple>> {
    let packet = match frame.link {
        Some(Linktype::ETHERNET) => {
            LaxSlicedPacket::from_ethernet(frame.bytes).context("malformed")?
        }
        Some(Linktype::RAW | Linktype::IPV4 | Linktype::IPV6) => {
            LaxSlicedPacket::from_ip(frame.bytes).context("malformed")?
        }
        _ => bail!("unsupported link type; only Ethernet and raw IP are supported"),
    };
    let (source, destination) = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let mapped = |address: std::net::Ipv4Addr| address.to_ipv6_mapped().octets();
            (
                mapped(header.source_addr()),
                mapped(header.destination_addr()),
            )
        }
        Some(LaxNetSlice::Ipv6(ip)) => (ip.header().source(), ip.header().destination()),
        _ => {
            // Frames of other kinds end without an error.
            if let Some((error, _)) = packet.stop_err {
                return Err(error).context("malformed");
            }
            return Ok(None);
        }
    };
    let Some(payload) = packet.net.as_ref().and_then(LaxNetSlice::ip_payload_ref) else {
        return Ok(None);
    };
    let has_ports = matches!(
        payload.ip_number,
        ip_number::TCP | ip_number::UDP | ip_number::SCTP | ip_number::DCCP | ip_number::UDP_LITE
    );
    let ports = (payload.payload.first_chunk::<4>()).filter(|_| has_ports && !payload.fragmented);
    let protocol = payload.ip_number.0;
    let ports = ports.copied().unwrap_or_default();
    Ok(Some((source, destination, protocol, ports)))
}

#[cfg(test)]
pub(crate) mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    /// A pcap file of frames of a link, each of which may be captured shorter than it was.
    pub(crate) fn capture(link: u8, frames: &[(Vec<u8>, usize)]) -> Vec<u8> {
        let mut file = vec![0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        file.extend([0, 0, 1, 0, link, 0, 0, 0]);
        for (frame, cut) in frames {
            let captured = &frame[..frame.len().min(*cut)];
            file.extend([0; 8]);
            file.extend((captured.len() as u32).to_le_bytes());
            file.extend((frame.len() as u32).to_le_bytes());
            file.extend(captured);
        }
        file
    }

    const ETHERNET: u8 = 1;
    const RAW: u8 = 101;

    fn udp4(source: u16, n_bytes: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
            .udp(source, 53)
            .write(&mut frame, &vec![0; n_bytes])
            .expect("it fits");
        frame
    }

    fn tcp4_on_vlans(source: u16) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .double_vlan(3.try_into().expect("a tag"), 4.try_into().expect("a tag"))
            .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
            .tcp(source, 80, 7, 8)
            .write(&mut frame, b"data")
            .expect("it fits");
        frame
    }

    fn tcp6(source: u16) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .single_vlan(5.try_into().expect("a tag"))
            .ipv6([1; 16], [2; 16], 64)
            .tcp(source, 80, 7, 8)
            .write(&mut frame, b"data")
            .expect("it fits");
        frame
    }

    fn arp() -> Vec<u8> {
        let mut frame = vec![1; 12];
        frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend([3; 20]);
        frame
    }

    fn flow_numbers(file: &[u8]) -> Vec<u32> {
        let flows = flows(file).expect("a sound capture");
        flows.packets.iter().map(|it| it.0).collect()
    }

    fn error(file: &[u8]) -> String {
        format!("{:#}", flows(file).expect_err("a broken capture"))
    }

    fn whole(frames: Vec<Vec<u8>>) -> Vec<(Vec<u8>, usize)> {
        frames
            .into_iter()
            .map(|frame| (frame, usize::MAX))
            .collect()
    }

    #[test]
    fn flows_are_told_by_addresses_ports_and_protocol() {
        let frames = vec![
            udp4(1_000, 100),
            tcp4_on_vlans(1_000),
            arp(),
            udp4(1_001, 10),
            tcp6(9),
            udp4(1_000, 200),
            tcp6(9),
            tcp4_on_vlans(1_000),
        ];
        let file = capture(ETHERNET, &whole(frames));
        let flows = flows(&file).expect("a sound capture");
        assert_eq!(flows.n_left_out, 1);
        let sizes = [142, 66, 52, 82, 242, 82, 66];
        let numbers = [0, 1, 2, 3, 0, 3, 1];
        let expected: Vec<_> = numbers.into_iter().zip(sizes).collect();
        assert_eq!(flows.packets, expected);
    }

    #[test]
    fn short_captures_tell_flows_as_long_as_ports_are_there() {
        // Addresses and ports of IPv4 end at byte 38 of a frame.
        let frames = [(udp4(1, 900), 38), (udp4(2, 900), 38), (udp4(1, 900), 60)];
        let flows = flows(&capture(ETHERNET, &frames)).expect("a sound capture");
        assert_eq!(flows.packets, [(0, 942), (1, 942), (0, 942)]);
        let frames = [(udp4(1, 900), 37), (udp4(2, 900), 37)];
        assert_eq!(flow_numbers(&capture(ETHERNET, &frames)), [0, 0]);
        let text = error(&capture(ETHERNET, &[(udp4(1, 9), 60), (udp4(1, 9), 30)]));
        assert!(text.starts_with("packet 2: malformed"), "{text}");
    }

    #[test]
    fn fragments_have_no_ports() {
        let fragment = |source: u16, flags: u8, offset: u8| {
            let mut frame = udp4(source, 64);
            frame[20] = flags;
            frame[21] = offset;
            frame
        };
        let frames = vec![fragment(1, 0x20, 0), fragment(2, 0, 8), udp4(1, 64)];
        assert_eq!(flow_numbers(&capture(ETHERNET, &whole(frames))), [0, 0, 1]);
    }

    #[test]
    fn raw_ip_is_read_and_other_links_are_not() {
        let ip = |frame: Vec<u8>| frame[14..].to_vec();
        let frames = vec![ip(udp4(1, 9)), ip(udp4(2, 9)), ip(udp4(1, 9))];
        assert_eq!(
            flow_numbers(&capture(RAW, &whole(frames.clone()))),
            [0, 1, 0]
        );
        let text = error(&capture(113, &whole(frames)));
        assert!(
            text.starts_with("packet 1: unsupported link type"),
            "{text}"
        );
        let text = error(&capture(RAW, &whole(vec![ip(udp4(1, 9)), vec![0x95; 30]])));
        assert!(text.starts_with("packet 2: malformed"), "{text}");
    }

    #[test]
    fn what_is_no_capture_is_told_with_the_place() {
        let file = capture(ETHERNET, &whole(vec![udp4(1, 9), udp4(2, 9)]));
        assert_eq!(
            error(&file[..file.len() - 3]),
            "the capture ends within the packet after packet 1"
        );
        assert!(error(b"no capture").starts_with("the file is neither pcap nor"));
        assert!(error(&[]).starts_with("the file is neither pcap nor"));
        assert_eq!(
            error(&capture(ETHERNET, &whole(vec![arp()]))),
            "the capture has no IP packet"
        );
        // A packet that claims to be larger than any may be.
        let mut huge = file.clone();
        huge[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        let text = error(&huge);
        assert!(text.contains("after packet 0"), "{text}");
    }

    proptest! {
        #[test]
        fn hostile_files_are_errors_or_flows(
            mut changes in prop::collection::vec((0_usize..400, any::<u8>()), 0..12),
            len in 0_usize..400,
        ) {
            let mut file = capture(ETHERNET, &whole(vec![udp4(1, 9), tcp6(2), tcp4_on_vlans(3)]));
            for (at, byte) in changes.drain(..) {
                let at = at % file.len();
                file[at] = byte;
            }
            file.truncate(len);
            if let Ok(flows) = flows(&file) {
                prop_assert!(!flows.packets.is_empty());
            }
        }
    }
}
