//! What the load generator reads from any forwarder: a stream of frames, and
//! packets in fragments.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_loadgen::exchange::frame::{Frame, Reassembler};
use tachonym_packet::tlv;

fuzz_target!(|bytes: &[u8]| {
    let mut reassembler = Reassembler::default();
    let mut rest = bytes;
    while let Ok(Some(len)) = tlv::element_len(rest)
        && let Some((wire, behind)) = rest.split_at_checked(len)
    {
        rest = behind;
        let Ok(frame) = Frame::parse(wire) else {
            continue;
        };
        assert!(frame.payload.len() <= wire.len());
        if let Some(whole) = reassembler.accept(&frame) {
            assert!(whole.packet.len() <= bytes.len());
        }
    }
});
