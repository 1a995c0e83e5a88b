//! `tachonym dissect` on packets and captures, good and bad.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use etherparse::PacketBuilder;
use serde_json::Value;
use tachonym_packet::lp::{self, Headers};
use tachonym_packet::{Component, Data, Interest, NackReason, Name, Nonce, PitToken};

fn dissect(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tachonym"))
        .arg("dissect")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A program that refuses its input may not read all of it.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn text(arguments: &[&str], input: &[u8]) -> String {
    let output = dissect(arguments, input);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn packets(input: &[u8]) -> Vec<Value> {
    let output = dissect(&["--json"], input);
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

fn data() -> Vec<u8> {
    Data {
        freshness_period_ms: Some(2500),
        final_block_id: Some(Component::segment(9)),
        content: b"hello".to_vec(),
        ..Data::new(name("/a/b/seg=3"))
    }
    .encode_with_digest()
}

fn interest() -> Vec<u8> {
    Interest {
        must_be_fresh: true,
        nonce: Some(Nonce([1, 2, 3, 4])),
        forwarding_hint: vec![name("/hint")],
        ..Interest::new(name("/a/b"))
    }
    .encode()
}

fn in_lp(headers: &Headers, packet: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    lp::write_packet(&mut out, headers, None, &[], Some(packet));
    out
}

#[test]
fn a_packet_is_shown_whatever_form_it_comes_in() {
    let wire = data();
    let raw = text(&[], &wire);
    for part in [
        "Data /a/b/seg=3, 5 bytes of content",
        "FreshnessPeriod (25), 2 bytes: 2500 ms",
        "FinalBlockId (26), 3 bytes: seg=9",
        "Content (21), 5 bytes: \"hello\"",
        "SignatureType (27), 1 bytes: DigestSha256 (0)",
    ] {
        assert!(raw.contains(part), "{part} is not in\n{raw}");
    }
    let hex: String = wire.iter().map(|byte| format!("{byte:02X} ")).collect();
    assert_eq!(text(&[], hex.as_bytes()), raw);
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD.encode(&wire);
    assert_eq!(text(&[], base64.as_bytes()), raw);
}

#[test]
fn link_headers_are_shown_around_the_packet() {
    let headers = Headers {
        pit_token: PitToken::new(&[0xab; 4]),
        nack: Some(NackReason::NoRoute),
        ..Headers::default()
    };
    let shown = text(&[], &in_lp(&headers, &interest()));
    for part in [
        "Nack /a/b",
        "PitToken (98), 4 bytes: abababab",
        "NoRoute",
        "/hint",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

#[test]
fn commands_are_shown_with_their_parameters() {
    use tachonym_protocol::{CommandName, ControlParameters};
    let parameters = ControlParameters {
        name: Some(name("/p")),
        cost: Some(7),
        ..ControlParameters::default()
    };
    let command = CommandName::local("rib", "register").with_parameters(&parameters);
    let shown = text(&[], &Interest::new(command).encode());
    assert!(shown.contains("Name=/p Cost=7"), "{shown}");
}

#[test]
fn what_is_malformed_is_shown_where_it_is() {
    let wire = data();
    let output = dissect(&[], &wire[..wire.len() - 5]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).expect("text");
    assert!(shown.contains("malformed"), "{shown}");
    for garbage in [
        &b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"[..],
        b"\x05\x80",
        b"\x64\x00\x00",
    ] {
        assert_eq!(dissect(&[], garbage).status.code(), Some(1));
    }
    assert_eq!(dissect(&[], b"").status.code(), Some(1));
    assert_eq!(dissect(&["/nowhere"], b"").status.code(), Some(1));
    assert_eq!(dissect(&["--type", "x"], b"").status.code(), Some(2));
}

/// A pcap of Ethernet frames, a second apart.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(0xa1b2_c3d4_u32.to_le_bytes());
    out.extend([2, 0, 4, 0]);
    out.extend([0; 8]);
    out.extend(65_535_u32.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    for (i, frame) in frames.iter().enumerate() {
        let len = (frame.len() as u32).to_le_bytes();
        out.extend((1_700_000_000 + i as u32).to_le_bytes());
        out.extend([0; 4]);
        out.extend(len);
        out.extend(len);
        out.extend(frame);
    }
    out
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(6363, 6363);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).expect("memory");
    frame
}

fn tcp(sequence: u32, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv6([1; 16], [2; 16], 64)
        .tcp(40_000, 6363, sequence, 1000);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).expect("memory");
    frame
}

#[test]
fn packets_are_found_in_a_capture() {
    let wire = data();
    let (head, tail) = wire.split_at(20);
    let fragment = |index: u64, part: &[u8]| {
        let headers = Headers {
            sequence: Some(100 + index),
            frag_index: index,
            frag_count: 2,
            ..Headers::default()
        };
        udp(&in_lp(&headers, part))
    };
    let mut ethernet = vec![0; 12];
    ethernet.extend([0x81, 0, 0, 5, 0x86, 0x24]);
    ethernet.extend(interest());
    // What Ethernet pads a short frame with.
    ethernet.extend([0; 20]);
    let capture = pcap(&[
        udp(&interest()),
        tcp(500, head),
        tcp(520, tail),
        fragment(1, tail),
        fragment(0, head),
        ethernet,
        udp(b"not NDN"),
    ]);
    let found = packets(&capture);
    let kinds: Vec<_> = found
        .iter()
        .map(|p| p["kind"].as_str().expect("text"))
        .collect();
    assert_eq!(
        kinds,
        [
            "Interest", "Data", "fragment", "fragment", "Data", "Interest"
        ]
    );
    let place = found[0]["place"].as_str().expect("text");
    assert_eq!(
        place,
        "1700000000.000000 udp 192.0.2.1:6363 > 192.0.2.2:6363"
    );
    let only = text(&["--type", "data", "--brief", "--name", "/a"], &capture);
    assert_eq!(only.lines().count(), 2, "{only}");
    let other = text(&["--port", "7777", "--brief"], &capture);
    assert_eq!(other.lines().count(), 1, "{other}");
}

#[test]
fn a_damaged_capture_shows_what_comes_before_the_damage() {
    let capture = pcap(&[udp(&interest()), udp(&data())]);
    let output = dissect(&["--brief"], &capture[..capture.len() - 10]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).expect("text");
    assert_eq!(shown.lines().count(), 1, "{shown}");
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.contains("cut off"), "{error}");
    for len in 4..40 {
        dissect(&[], &capture[..len]);
    }
}
