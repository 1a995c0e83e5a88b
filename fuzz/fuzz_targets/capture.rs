//! A capture of connections and datagrams as they may come: out of order, again,
//! with gaps, begun and ended at any time. Each step is four bytes, and a payload:
//! what it is, a sequence number of two bytes, the length of the payload.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_router::tools::dissect::{Form, Options, dissect};

/// Most bytes that are shown for a byte of the capture.
const MAX_GROWTH: usize = 20;

/// Takes one step off `rest`: an IPv4 packet.
fn next_packet(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let [what, high, low, len, tail @ ..] = *rest else {
        return None;
    };
    let (payload, tail) = tail.split_at(tail.len().min(usize::from(*len)));
    *rest = tail;
    let (protocol, port) = match what & 3 {
        0 => (17, 6363_u16),
        1 => (6, 6363),
        2 => (6, 9696),
        _ => (17, 9999),
    };
    let mut ports = [40_000 + u16::from(what >> 3 & 1), port];
    let mut hosts = [[192, 0, 2, 1], [192, 0, 2, 2]];
    if what & 4 != 0 {
        ports.reverse();
        hosts.reverse();
    }
    let mut transport: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    if protocol == 17 {
        transport.extend((8 + payload.len() as u16).to_be_bytes());
        transport.extend([0; 2]);
    } else {
        // Where numbers begin anew.
        let sequence = u32::from(u16::from_be_bytes([*high, *low])).wrapping_sub(256);
        transport.extend(sequence.to_be_bytes());
        transport.extend([0; 4]);
        let flag = |bit: u8, flag: u8| if what >> bit & 1 != 0 { flag } else { 0 };
        let flags = flag(4, 2) | flag(5, 1) | flag(6, 4) | 16;
        transport.extend([0x50, flags, 255, 255, 0, 0, 0, 0]);
    }
    transport.extend(payload);
    let mut packet = vec![0x45, 0];
    packet.extend((20 + transport.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(hosts.concat());
    packet.extend(transport);
    Some(packet)
}

fuzz_target!(|bytes: &[u8]| {
    // The head of a pcap of IP packets.
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    capture.extend([0; 8]);
    capture.extend([0xff, 0xff, 0, 0, 101, 0, 0, 0]);
    let mut rest = bytes;
    while let Some(packet) = next_packet(&mut rest) {
        let len = (packet.len() as u32).to_le_bytes();
        capture.extend([[0; 4], [0; 4], len, len].concat());
        capture.extend(packet);
    }
    let options = Options {
        input: Some(Form::Capture),
        brief: true,
        ..Options::default()
    };
    let mut out = Vec::new();
    let result = dissect(&capture, &options, &mut out, &mut |line| {
        assert!(!line.is_empty());
    });
    assert!(result.is_ok(), "the capture itself is sound");
    assert!(out.len() <= MAX_GROWTH * capture.len());
});
