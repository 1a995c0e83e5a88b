//! The forwarding engine under bursts of whatever parses: limits hold, and
//! nothing is sent to a face that is not there.
//!
//! The input is a sequence of steps: a byte for the face, a byte for the time
//! that passes, a length of two bytes, and an LpPacket. If the first byte is 128 or more, the
//! content store has a second level, which has memory and no device.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Output, RxPacket};
use tachonym_packet::lp::{Headers, LpView};
use tachonym_packet::{FaceId, HashKey, InterestRewrite, InterestView, MonoNs, NackReason, Name};
use tachonym_store::layout::Superblock;
use tachonym_store::{Beginning, Config, SecondLevel};
use tachonym_tables::{CsCapacity, NextHop, PitConfig};

const FIRST_FACE: u64 = 256;
const N_FACES: u64 = 4;
const MAX_PIT: usize = 16;
const MAX_CS: usize = 8;

struct Sent;

fn check_face(face: FaceId) {
    assert!((FIRST_FACE..FIRST_FACE + N_FACES).contains(&face.0));
}

impl Output for Sent {
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        _: &Headers,
    ) {
        check_face(face);
        let mut wire = Vec::new();
        rewrite.write_into(interest, &mut wire);
    }

    fn send_data(&mut self, face: FaceId, wire: &[u8], _: &Headers) {
        check_face(face);
        tachonym_packet::DataView::parse(wire).expect("only whole Data is sent");
    }

    fn send_nack(&mut self, face: FaceId, _: NackReason, wire: &[u8], _: &Headers) {
        check_face(face);
        InterestView::parse(wire).expect("only whole Interests come back");
    }
}

fn engine() -> Engine {
    let config = EngineConfig {
        pit: PitConfig {
            max_entries: MAX_PIT,
            ..PitConfig::default()
        },
        cs: CsCapacity {
            max_pkts: MAX_CS,
            ..CsCapacity::default()
        },
        dead_nonces_max: 64,
        ..EngineConfig::default()
    };
    let mut engine =
        Engine::new(config, HashKey::from_u64s(1, 2), 3).expect("memory for small tables");
    for i in 0..N_FACES {
        let traits = match i {
            0 => FaceTraits::LOCAL,
            _ => FaceTraits::REMOTE,
        };
        engine.add_face(FaceId(FIRST_FACE + i), traits);
    }
    for (prefix, face) in [("/", 1), ("/a", 2), ("/a", 3), ("/a/b", 0)] {
        let prefix: Name = prefix.parse().expect("a literal name");
        let hop = NextHop::new(FaceId(FIRST_FACE + face), face);
        engine
            .add_next_hop(prefix.view(), hop)
            .expect("there is room");
    }
    let prefix: Name = "/a/m".parse().expect("a literal name");
    let multicast: Name = "/localhost/nfd/strategy/multicast"
        .parse()
        .expect("a literal name");
    engine
        .choices_mut()
        .set_strategy(prefix.view(), multicast.view())
        .expect("it exists");
    engine
}

/// A second level that has what it puts together to give out, and whose reads are never done.
fn second_level() -> SecondLevel {
    let config = Config {
        batch_len: 4,
        max_batches: 100,
        max_reads: 4,
        n_write_buffers: 2,
        write_buffer_bytes: 64 << 10,
        assembly_bytes: 1 << 20,
        ..Config::default()
    };
    let volume = Superblock {
        key: [5; 16],
        worker: 0,
        volume: 0,
        n_volumes: 1,
        batch_len: config.batch_len as u8,
        region_bytes: 1 << 20,
        n_regions: 15,
        first_seq: 1,
        context: 0,
    };
    SecondLevel::new(config, &[volume], Beginning::New).expect("memory for a small one")
}

fuzz_target!(|bytes: &[u8]| {
    let mut engine = engine();
    if bytes.first().is_some_and(|&first| first >= 128) {
        engine.cs_mut().set_second_level(Some(second_level()));
    }
    let mut now = MonoNs(1_000_000_000);
    let mut rest = bytes;
    while let [face, ms, high, low, tail @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(tail.len());
        let (wire, tail) = tail.split_at(len);
        rest = tail;
        now = now + Duration::from_millis(u64::from(*ms) * 8);
        engine.handle_timeout(now, &mut Sent);
        let Ok(frame) = LpView::parse(wire) else {
            continue;
        };
        let Some(fragment) = frame.fragment() else {
            continue;
        };
        let face = FaceId(FIRST_FACE + u64::from(*face) % N_FACES);
        if let Some(rx) = RxPacket::parse(face, frame.headers(), fragment) {
            engine.handle_burst(now, &[rx, rx], &mut Sent);
        }
        let sizes = engine.sizes();
        assert!(sizes.n_pit_entries <= MAX_PIT && sizes.n_cs_entries <= MAX_CS);
    }
    // Everything pending goes in the end.
    engine.handle_timeout(now + Duration::from_secs(3600), &mut Sent);
    assert_eq!(engine.sizes().n_pit_entries, 0);
});
