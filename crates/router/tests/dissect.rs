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
        "no-route",
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

fn with_content(uri: &str, content: Vec<u8>) -> Vec<u8> {
    Data {
        content,
        ..Data::new(name(uri))
    }
    .encode_with_digest()
}

#[test]
fn answers_of_management_are_read_by_their_name() {
    use tachonym_protocol::{ControlParameters, ControlResponse, FibEntry, NextHopRecord};
    let parameters = ControlParameters {
        face_id: Some(300),
        origin: Some(255),
        ..ControlParameters::default()
    };
    let response = ControlResponse::new(200, "OK").with_parameters(&parameters);
    let shown = text(
        &[],
        &with_content("/localhost/nfd/rib/register/x", response.encode()),
    );
    for part in [
        "StatusCode (102), 1 bytes: 200",
        "FaceId (105), 2 bytes: 300",
        "Origin (111), 1 bytes: static (255)",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let entry = FibEntry {
        name: name("/p/q"),
        next_hops: vec![NextHopRecord {
            face_id: 301,
            cost: 9,
        }],
    };
    let list = FibEntry::encode_list([&entry, &entry]);
    let dataset = "/localhost/nfd/fib/list/v=1/seg=0";
    let shown = text(&[], &with_content(dataset, list.clone()));
    assert_eq!(shown.matches("FibEntry (128)").count(), 2, "{shown}");
    assert_eq!(shown.matches("Cost (106), 1 bytes: 9").count(), 2);
    // A segment may end within an entry: nothing is wrong with it.
    text(&[], &with_content(dataset, list[..list.len() - 3].to_vec()));
}

#[test]
fn metadata_are_read_by_their_name() {
    let uri = "/file/32=metadata/v=1700000000000000/seg=0";
    let content = name("/file/v=7").encode();
    let shown = text(&[], &with_content(uri, content));
    assert!(shown.contains("Name (7), 9 bytes: /file/v=7"), "{shown}");
}

#[test]
fn data_are_shown_with_their_implicit_digest() {
    let wire = data();
    let digest = tachonym_packet::DataView::parse(&wire)
        .expect("own encoding")
        .implicit_digest();
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(text(&[], &wire).contains(&format!("sha256digest={digest}")));
    assert_eq!(
        packets(&wire)[0]["implicit_digest"],
        format!("sha256digest={digest}")
    );
}

#[test]
fn certificates_and_safe_bags_are_no_malformed_packets() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../security/testdata");
    let certificate = text(&[&format!("{folder}/operator.ndncert")], b"");
    for part in ["KEY (2)", "Ecdsa public key", "NotAfter (255), 15 bytes"] {
        assert!(
            certificate.contains(part),
            "{part} is not in\n{certificate}"
        );
    }
    let bag = text(&[&format!("{folder}/operator.safebag")], b"");
    assert!(bag.starts_with("SafeBag (576 bytes)"), "{bag}");
    assert!(bag.contains("EncryptedKey (129)"), "{bag}");
}

#[test]
fn a_packet_nested_beyond_measure_is_shown_to_a_depth() {
    let mut wire = Vec::new();
    for _ in 0..20_000 {
        let len = wire.len() as u32;
        let mut outer = vec![0x64, 254];
        // Not the shortest form for small ones; thousands are well-formed.
        outer.extend(len.to_be_bytes());
        outer.extend(&wire);
        wire = outer;
    }
    let output = dissect(&["--input", "raw"], &wire);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.len() < 100_000);
    // One element of three megabytes, full of empty ones.
    let mut wide = vec![0x64, 254, 0, 0x30, 0, 0];
    wide.extend([6, 0].repeat(0x30_0000 / 2));
    let output = dissect(&["--input", "raw"], &wide);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.len() < 100_000);
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
    pcap_of(0xa1b2_c3d4, 1, 0, frames)
}

/// A pcap of frames of a link, a second apart, each at `fraction` of a second.
fn pcap_of(magic: u32, link: u32, fraction: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(magic.to_le_bytes());
    out.extend([2, 0, 4, 0]);
    out.extend([0; 8]);
    out.extend(65_535_u32.to_le_bytes());
    out.extend(link.to_le_bytes());
    for (i, frame) in frames.iter().enumerate() {
        let len = (frame.len() as u32).to_le_bytes();
        out.extend((1_700_000_000 + i as u32).to_le_bytes());
        out.extend(fraction.to_le_bytes());
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
    // Pieces of packets are nothing malformed.
    text(&[], &capture);
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
        let output = dissect(&[], &capture[..len]);
        let error = String::from_utf8(output.stderr).expect("text");
        let is_told = error.contains("capture is cut off") || output.status.success();
        assert!(is_told, "{len}: {error}");
    }
    let output = dissect(&["--input", "capture"], &data());
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.contains("neither pcap nor pcapng"), "{error}");
}

#[test]
fn captures_of_nanoseconds_and_cooked_links_are_read() {
    let ip = udp(&interest()).split_off(14);
    let cooked = [&[0; 14][..], &[8, 0], &ip].concat();
    let cooked2 = [&[8, 0][..], &[0; 18], &ip].concat();
    let loopback = [&[2, 0, 0, 0][..], &ip].concat();
    for (link, frame) in [(113, cooked), (276, cooked2), (0, loopback), (101, ip)] {
        let capture = pcap_of(0xa1b2_3c4d, link, 123_456_789, &[frame]);
        let shown = text(&["--brief"], &capture);
        let place = "1700000000.123456 udp 192.0.2.1:6363 > 192.0.2.2:6363  Interest /a/b";
        assert!(shown.starts_with(place), "{link}: {shown}");
    }
}

#[test]
fn a_pcapng_is_read() {
    fn block(typ: u32, body: &[u8]) -> Vec<u8> {
        let len = (12 + body.len().next_multiple_of(4)) as u32;
        let mut out = [typ.to_le_bytes(), len.to_le_bytes()].concat();
        out.extend(body);
        out.resize(len as usize - 4, 0);
        out.extend(len.to_le_bytes());
        out
    }
    let frame = udp(&interest());
    let len = (frame.len() as u32).to_le_bytes();
    let us = 1_700_000_000_000_005_u64;
    let (high, low) = ((us >> 32) as u32, us as u32);
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    let interface = [1, 0, 0, 0, 0, 0, 0, 0];
    let mut packet = [[0; 4], high.to_le_bytes(), low.to_le_bytes(), len, len].concat();
    packet.extend(&frame);
    let capture = [
        block(0x0a0d_0d0a, &section),
        block(1, &interface),
        block(6, &packet),
    ]
    .concat();
    let shown = text(&["--brief"], &capture);
    assert!(shown.starts_with("1700000000.000005 udp"), "{shown}");
    for len in 4..capture.len() {
        let output = dissect(&["--brief"], &capture[..len]);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{len}: {output:?}"
        );
    }
}

#[test]
fn what_is_passed_over_is_told() {
    let mut fragment = udp(&interest());
    // More fragments follow.
    fragment[20] |= 0x20;
    let short = udp(&interest())[..30].to_vec();
    let lost = tcp(1, b"\x01not NDN");
    let builder = PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(5353, 5353);
    let mut other = Vec::new();
    // Begins as an Interest might, and is none.
    builder.write(&mut other, &[5, 9, 1, 2]).expect("memory");
    let output = dissect(&["--brief"], &pcap(&[fragment, short, lost, other]));
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let told = String::from_utf8(output.stderr).expect("text");
    for part in [
        "passed over 1 fragments of IP packets",
        "passed over 1 frames that are cut short",
        "passed over 8 bytes of connections",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
}
