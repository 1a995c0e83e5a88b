//! Packets and frames as bytes, and what they mean, as the specifications and
//! other implementations have it: NDN Packet Format 0.3, NDNLPv2, and the unit
//! tests of ndn-cxx (`tests/unit`, the file is named at each table). What
//! python-ndn and NDNts encode lies in `testdata`, with the programs that made it.

mod support;

use sha2::{Digest as _, Sha256};
use support::{bytes, name};
use tachonym_packet::lp::{Headers, LpView, NackReason, PitToken, write_packet};
use tachonym_packet::{
    Component, Data, DataView, DecodeError, FaceId, Interest, InterestSignature, InterestView,
    KeyLocator, Name, Nonce, SignatureInfo, ValidityPeriod, types,
};

fn file(name: &str) -> Vec<u8> {
    let path = format!("{}/testdata/{name}.tlv", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("a file of the repository")
}

fn sha256(parts: &[&[u8]]) -> Vec<u8> {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().to_vec()
}

/// That `wire` means `interest`, and that `interest` is written so.
fn check_interest(wire: &[u8], interest: &Interest) {
    let view = InterestView::parse(wire).expect("well-formed");
    assert!(view.verify_parameters_digest());
    let mut read = view.to_interest();
    // The digest of the parameters is put in again when it is encoded.
    let kept = read.name.components();
    let kept = kept.filter(|c| c.typ() != types::component::PARAMETERS_SHA256_DIGEST);
    let kept: Vec<Component> = kept.map(|c| c.to_component()).collect();
    read.name = Name::new();
    kept.iter().for_each(|component| read.name.push(component));
    assert_eq!(&read, interest);
    assert_eq!(interest.encode(), wire);
}

/// That `wire` means `data`, and that `data` is written so.
fn check_data(wire: &[u8], data: &Data) {
    assert_eq!(&DataView::parse(wire).expect("well-formed").to_data(), data);
    assert_eq!(data.encode(), wire);
}

// Packets of ndn-cxx.

const PREFIX: &str = "0805 6C6F63616C 0803 6E646E 0806 707265666978";

#[test]
fn interests_of_ndn_cxx_are_read_and_written_alike() {
    // ndn-cxx `interest.t.cpp`, suite Encode.
    let basic = Interest {
        nonce: Some(Nonce([1, 2, 3, 4])),
        ..Interest::new(name("/local/ndn/prefix"))
    };
    check_interest(&bytes(&format!("051C 0714 {PREFIX} 0A04 01020304")), &basic);

    let digest = "FF9100E04EAADCF30674D98026A051BA25F56B69BFA026DCCCD72C6EA0F7315A";
    let full = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        forwarding_hint: vec![name("/H")],
        nonce: Some(Nonce([0x4c, 0x1e, 0xcb, 0x4a])),
        lifetime_ms: Some(30_369),
        hop_limit: Some(220),
        application_parameters: Some(vec![0xc0, 0xc1, 0xc2, 0xc3]),
        ..Interest::new(name("/local/ndn/prefix"))
    };
    let wire = bytes(&format!(
        "0556 0736 {PREFIX} 0220 {digest} 2100 1200 1E05 0703080148 \
         0A04 4C1ECB4A 0C02 76A1 2201 DC 2404 C0C1C2C3"
    ));
    check_interest(&wire, &full);

    let signed = Interest {
        must_be_fresh: true,
        nonce: Some(Nonce([0x4c, 0x1e, 0xcb, 0x4a])),
        application_parameters: Some(vec![0xc0, 0xc1, 0xc2, 0xc3]),
        signature: Some(InterestSignature {
            info: SignatureInfo {
                nonce: Some(vec![1, 2, 3, 4, 5, 6, 7, 8]),
                ..SignatureInfo::digest()
            },
            value: bytes("12471AE0F8723AC1156C370A38711EBEBF2817DE9B2DD94E9B7E62F117B876C1"),
        }),
        ..Interest::new(name("/local/ndn/prefix"))
    };
    let wire = bytes(&format!(
        "0577 0736 {PREFIX} \
         0220 6F29586053EE9FCCD8A422122925287C0A18435F4074C40ABB0D5B30E4AA6220 \
         1200 0A04 4C1ECB4A 2404 C0C1C2C3 2C0D 1B0100 2608 0102030405060708 \
         2E20 12471AE0F8723AC1156C370A38711EBEBF2817DE9B2DD94E9B7E62F117B876C1"
    ));
    check_interest(&wire, &signed);
}

#[test]
fn elements_that_ndn_cxx_skips_in_interests_are_skipped() {
    // ndn-cxx `interest.t.cpp`, suite Decode.
    let wire = bytes(
        "052B 0703080149 FC00 2100 FC00 1200 FC00 1E050703080148 FC00 0A044ACB1E4C \
         FC00 0C0276A1 FC00 2201D6 FC00",
    );
    let read = InterestView::parse(&wire).expect("well-formed");
    let meant = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        forwarding_hint: vec![name("/H")],
        nonce: Some(Nonce([0x4a, 0xcb, 0x1e, 0x4c])),
        lifetime_ms: Some(30_369),
        hop_limit: Some(214),
        ..Interest::new(name("/I"))
    };
    assert_eq!(read.to_interest(), meant);

    // The second HopLimit and the second ApplicationParameters are out of order.
    let digest = "FF9100E04EAADCF30674D98026A051BA25F56B69BFA026DCCCD72C6EA0F7315A";
    let wires = [
        format!("0536 0725 080149 0220{digest} 2201D6 2200 2404C0C1C2C3 22020101"),
        format!(
            "0541 0725 080149 0220{digest} 2100 1200 0A044ACB1E4C 0C0276A1 2201D6 \
             2404C0C1C2C3 2401EE"
        ),
    ];
    for wire in wires {
        let wire = bytes(&wire);
        let read = InterestView::parse(&wire).expect("well-formed");
        assert_eq!(read.hop_limit(), Some(214));
        let parameters = read.application_parameters();
        assert_eq!(parameters, Some(&[0xc0, 0xc1, 0xc2, 0xc3][..]));
    }

    for wire in [
        "0507 FC00 0703080149",
        "051D 0703080149 1200 2100 1E050703080148 0A044ACB1E4C 0C0276A1 2201D6",
        "051D 0703080149 2100 1200 0A044ACB1E4C 1E050703080148 0C0276A1 2201D6",
        "051D 0703080149 2100 1200 1E050703080148 0C0276A1 0A044ACB1E4C 2201D6",
        "051D 0703080149 2100 1200 1E050703080148 0A044ACB1E4C 2201D6 0C0276A1",
        // A name without components, a nonce of another length, an empty HopLimit.
        "0502 0700",
        "050A 0703080149 0A0304ACB1",
        "0507 0703080149 2200",
        "4202 CAFE",
    ] {
        assert!(InterestView::parse(&bytes(wire)).is_err(), "{wire}");
    }
}

#[test]
fn data_of_ndn_cxx_is_read_and_written_alike() {
    // ndn-cxx `data.t.cpp`; the signature there is of RSA, and any here.
    let signature = vec![0x2f; 128];
    let wire = bytes(&format!(
        "06C5 0714 {PREFIX} 1404 1902 2710 1508 5355434345535321 \
         161B 1B0101 1C16 0714 0804 74657374 0803 6B6579 0807 6C6F6361746F72 \
         1780 {}",
        "2F".repeat(128)
    ));
    let data = Data {
        freshness_period_ms: Some(10_000),
        content: b"SUCCESS!".to_vec(),
        signature_info: SignatureInfo {
            key_locator: Some(KeyLocator::Name(name("/test/key/locator"))),
            ..SignatureInfo::new(types::signature_type::SHA256_WITH_RSA)
        },
        signature_value: signature,
        ..Data::new(name("/local/ndn/prefix"))
    };
    check_data(&wire, &data);

    let digest = "612A79399E60304A9F701C1ECAC7956BF2F1B046E6C6F0D6C29B3FE3A29BAD76";
    let minimal = [
        format!("062C 0703080144 16031B0100 1720{digest}"),
        format!("063A 0703080144 FC00 1400 FC00 1500 FC00 16031B0100 FC00 1720{digest} FC00"),
    ];
    for wire in minimal {
        let wire = bytes(&wire);
        let read = DataView::parse(&wire).expect("well-formed").to_data();
        let meant = Data {
            signature_info: SignatureInfo::digest(),
            signature_value: bytes(digest),
            ..Data::new(name("/D"))
        };
        assert_eq!(read, meant);
    }
    for wire in [
        "0609 0700 16031B0100 1700",
        "060B 0700 1400 16031B0100 1700",
    ] {
        let wire = bytes(wire);
        let read = DataView::parse(&wire).expect("well-formed");
        assert!(read.name().is_empty() && read.content().is_empty());
        assert_eq!((read.content_type(), read.freshness_period_ms()), (0, 0));
    }
    for wire in [
        "060C FC00 0703080144 16031B0100 1700",
        "060B 1400 0703080144 1500 16031B0100 1700",
        "0610 0703080144 1500 1400 16031B0100 1700",
        "0605 0703080144",
        "060A 0703080144 16031B0100",
        "4202 CAFE",
    ] {
        assert!(DataView::parse(&bytes(wire)).is_err(), "{wire}");
    }
}

// NDNLPv2.

/// What a frame says: header fields, Acks, and the fragment.
type Frame = (Headers, Vec<u64>, Option<Vec<u8>>);

fn frame(wire: &[u8]) -> Result<Frame, DecodeError> {
    let view = LpView::parse(wire)?;
    let acks = view.acks().collect();
    Ok((*view.headers(), acks, view.fragment().map(<[u8]>::to_vec)))
}

fn token(hex: &str) -> Option<PitToken> {
    PitToken::new(&bytes(hex))
}

#[test]
fn header_fields_have_the_bytes_of_ndnlpv2() {
    // ndn-cxx `lp/packet.t.cpp`, `lp/nack-header.t.cpp`, `lp/cache-policy.t.cpp`,
    // `lp/pit-token.t.cpp`; types and lengths of the rest are those of NDNLPv2.
    let of = Headers::default();
    let table: [(&str, Headers, &[u64]); 13] = [
        ("6400", of, &[]),
        (
            "640A 5108 A0A1A2A3A4A5A6A7",
            Headers {
                sequence: Some(0xa0a1_a2a3_a4a5_a6a7),
                ..of
            },
            &[],
        ),
        (
            "6407 520103 5302012C",
            Headers {
                frag_index: 3,
                frag_count: 300,
                ..of
            },
            &[],
        ),
        (
            "6407 6205 A0A1A2A3A4",
            Headers {
                pit_token: token("A0A1A2A3A4"),
                ..of
            },
            &[],
        ),
        (
            "6409 FD0320 05 FD0321 01 64",
            Headers {
                nack: Some(NackReason::Duplicate),
                ..of
            },
            &[],
        ),
        (
            "640C FD0320 08 FD0321 04 1FFFFFFF",
            Headers {
                nack: Some(NackReason::Other(0x1fff_ffff)),
                ..of
            },
            &[],
        ),
        (
            "6404 FD0320 00",
            Headers {
                nack: Some(NackReason::None),
                ..of
            },
            &[],
        ),
        (
            "6406 FD032C 02 012C",
            Headers {
                incoming_face_id: Some(FaceId(300)),
                ..of
            },
            &[],
        ),
        (
            "640C FD0330 08 0000000100000000",
            Headers {
                next_hop_face_id: Some(FaceId(1 << 32)),
                ..of
            },
            &[],
        ),
        (
            "6409 FD0334 05 FD0335 01 01",
            Headers {
                no_cache: true,
                ..of
            },
            &[],
        ),
        (
            "6405 FD0340 01 01",
            Headers {
                congestion_mark: 1,
                ..of
            },
            &[],
        ),
        (
            "6424 FD0344 08 0000000000000002 FD0344 08 0000000000000004 \
             FD0348 08 0000000000000003",
            Headers {
                tx_sequence: Some(3),
                ..of
            },
            &[2, 4],
        ),
        (
            "6404 FD034C 00",
            Headers {
                non_discovery: true,
                ..of
            },
            &[],
        ),
    ];
    for (wire, headers, acks) in table {
        let wire = bytes(wire);
        assert_eq!(frame(&wire), Ok((headers, acks.to_vec(), None)));
        let mut out = Vec::new();
        write_packet(&mut out, &headers, None, acks, None);
        assert_eq!(out, wire);
    }
}

#[test]
fn frames_of_ndn_cxx_are_read() {
    // ndn-cxx `lp/packet.t.cpp`.
    let fragment = Some(vec![0x03, 0xe8]);
    let of = Headers::default();
    let table = [
        (
            "640E 5108 00000000000003E8 5002 03E8",
            Headers {
                sequence: Some(1000),
                ..of
            },
            vec![],
            fragment.clone(),
        ),
        (
            "642E 520100 530101 FD034408 0000000000000001 FD034408 0000000000000003 \
             FD034408 0000000000000002 5002 03E8",
            of,
            vec![1, 3, 2],
            fragment.clone(),
        ),
        ("6406 520100 530101", of, vec![], None),
        ("6404 5002 03E8", of, vec![], fragment.clone()),
        // Type 804 is unknown, and may be ignored.
        ("640C 520100 FD03240102 5002 03E8", of, vec![], fragment),
    ];
    for (wire, headers, acks, fragment) in table {
        assert_eq!(frame(&bytes(wire)), Ok((headers, acks, fragment)), "{wire}");
    }
    let bare = bytes("050D 0705 0803 414243 0A04 01020304");
    assert_eq!(frame(&bare), Ok((of, vec![], Some(bare.clone()))));
}

#[test]
fn frames_that_ndn_cxx_refuses_are_refused() {
    // ndn-cxx: the same files.
    for wire in [
        // Fields that come twice, or behind the fragment.
        "6406 520100 520101",
        "6408 5002 03E8 5002 03E9",
        "640A 520100 5002 03E8 530101",
        // Type 802 is unknown, and may not be ignored.
        "640C 520100 FD03220102 5002 03E8",
        // Lengths that are not those of the field.
        "640A 5104 A4A5A6A7 5002 FFFF",
        "6405 6200 5001 C0",
        "6426 6221 A0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0 5001 C0",
        "6407 FD0344 03 000001",
        "6407 FD0340 03 000001",
        // Cache policies that are none.
        "6404 FD0334 00",
        "6409 FD0334 05 FD0335 01 00",
        "640C FD0334 08 FD0335 04 1FFFFFFF",
        // No network-layer packet.
        "0703 080141",
    ] {
        assert!(frame(&bytes(wire)).is_err(), "{wire}");
    }
}

#[test]
fn header_fields_may_come_in_any_order() {
    // Stricter receivers want them by ascending type, as they are written here.
    let wire = bytes("640A 530102 520101 5002 03E8");
    let (headers, ..) = frame(&wire).expect("well-formed");
    assert_eq!((headers.frag_index, headers.frag_count), (1, 2));
}

// Packets of python-ndn.

#[test]
fn interests_of_python_ndn_are_read_and_written_alike() {
    let interest = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        forwarding_hint: vec![name("/isp/a"), name("/isp/b")],
        nonce: Some(Nonce([1, 2, 3, 4])),
        lifetime_ms: Some(2000),
        hop_limit: Some(7),
        ..Interest::new(name("/golden/python/%00%FF/32=metadata/v=1"))
    };
    check_interest(&file("python-ndn-interest"), &interest);

    let parameters = Interest {
        nonce: Some(Nonce([0, 0, 0, 5])),
        lifetime_ms: Some(4000),
        application_parameters: Some(b"hello".to_vec()),
        ..Interest::new(name("/golden/params"))
    };
    check_interest(&file("python-ndn-interest-params"), &parameters);

    let wire = file("python-ndn-interest-signed");
    let view = InterestView::parse(&wire).expect("well-formed");
    assert!(view.verify_parameters_digest());
    let digest = sha256(&view.signed_portion());
    assert_eq!(view.signature_value(), Some(&digest[..]));
    assert_eq!(view.application_parameters(), Some(&[][..]));
}

#[test]
fn data_of_python_ndn_is_read_and_written_alike() {
    let wire = file("python-ndn-data-digest");
    let data = Data {
        freshness_period_ms: Some(1000),
        final_block_id: Some(Component::segment(65_536)),
        content: b"content".to_vec(),
        ..Data::new(name(
            "/golden/seg=300/off=4096/v=1700000000000000/t=1/seq=70000",
        ))
    };
    let read = DataView::parse(&wire).expect("well-formed");
    assert_eq!(read.signature_value(), sha256(&[read.signed_portion()]));
    // It writes the content type though it is the default.
    let meant = Data {
        signature_info: SignatureInfo::digest(),
        signature_value: read.signature_value().to_vec(),
        ..data
    };
    assert_eq!(read.to_data(), meant);

    let wire = file("python-ndn-data-hmac");
    let read = DataView::parse(&wire).expect("well-formed").to_data();
    assert_eq!(read.content_type, types::content_type::KEY);
    assert_eq!(read.content, [0; 300]);
    let info = SignatureInfo {
        key_locator: Some(KeyLocator::Name(name("/golden/KEY/hmac"))),
        ..SignatureInfo::new(types::signature_type::HMAC_WITH_SHA256)
    };
    assert_eq!(read.signature_info, info);
    assert_eq!(read.signature_value.len(), 32);
    assert_eq!(read.encode(), wire);

    let wire = file("python-ndn-data-null");
    let read = DataView::parse(&wire).expect("well-formed").to_data();
    assert_eq!(read.signature_info.typ, types::signature_type::NULL);
    assert!(read.signature_value.is_empty());
}

#[test]
fn frames_of_python_ndn_are_read() {
    let (headers, acks, fragment) = frame(&file("python-ndn-nack")).expect("well-formed");
    let nack = Headers {
        nack: Some(NackReason::NoRoute),
        ..Headers::default()
    };
    assert_eq!((headers, acks), (nack, vec![]));
    assert_eq!(fragment, Some(file("python-ndn-interest")));

    let wire = file("python-ndn-lp");
    let (headers, _, fragment) = frame(&wire).expect("well-formed");
    let all = Headers {
        pit_token: PitToken::new(&(1..=32).collect::<Vec<u8>>()),
        incoming_face_id: Some(FaceId(300)),
        no_cache: true,
        congestion_mark: 1,
        non_discovery: true,
        ..Headers::default()
    };
    assert_eq!(headers, all);
    let mut out = Vec::new();
    write_packet(&mut out, &headers, None, &[], fragment.as_deref());
    assert_eq!(out, wire);
}

// Packets of NDNts.

const NDNTS_NAME: &str =
    "/golden/NDNts/.../..../%00%2F%FF/65535=x/seg=300/off=4096/v=1/t=1700000000000000/seq=255";

#[test]
fn interests_of_ndnts_are_read_and_written_alike() {
    let interest = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        forwarding_hint: vec![name("/isp/a"), name("/isp/b")],
        nonce: Some(Nonce([1, 2, 3, 4])),
        lifetime_ms: Some(65_536),
        hop_limit: Some(255),
        ..Interest::new(name(NDNTS_NAME))
    };
    // It leaves out a HopLimit of 255.
    let without = Interest {
        hop_limit: None,
        ..interest
    };
    check_interest(&file("ndnts-interest"), &without);

    let parameters = Interest {
        nonce: Some(Nonce([0, 0, 0, 5])),
        application_parameters: Some(vec![1, 2, 3]),
        ..Interest::new(name("/golden/params"))
    };
    check_interest(&file("ndnts-interest-params"), &parameters);

    let wire = file("ndnts-interest-signed");
    let view = InterestView::parse(&wire).expect("well-formed");
    let digest = sha256(&view.signed_portion());
    let signed = Interest {
        nonce: Some(Nonce([0, 0, 0, 6])),
        application_parameters: Some(Vec::new()),
        signature: Some(InterestSignature {
            info: SignatureInfo {
                nonce: Some(vec![9, 8, 7, 6]),
                time_ms: Some(1_700_000_000_000_000),
                seq_num: Some(42),
                ..SignatureInfo::digest()
            },
            value: digest,
        }),
        ..Interest::new(name("/golden/signed"))
    };
    check_interest(&wire, &signed);
}

#[test]
fn data_of_ndnts_is_read_and_written_alike() {
    let wire = file("ndnts-data-digest");
    let data = Data {
        freshness_period_ms: Some(1000),
        final_block_id: Some(Component::sequence(255)),
        content: vec![7; 3],
        ..Data::new(name(NDNTS_NAME))
    };
    assert_eq!(data.encode_with_digest(), wire);

    let validity = Data {
        content_type: types::content_type::KEY,
        content: vec![0; 300],
        signature_info: SignatureInfo {
            key_locator: Some(KeyLocator::Name(name("/golden/KEY/%01"))),
            validity_period: Some(ValidityPeriod {
                not_before: *b"20200101T000000",
                not_after: *b"20991231T235959",
            }),
            ..SignatureInfo::new(types::signature_type::SHA256_WITH_ECDSA)
        },
        signature_value: vec![3; 71],
        // A convention is none in a name that spells it as text.
        ..Data::new(name("/golden/KEY/%01/self/v%3D1"))
    };
    check_data(&file("ndnts-data-validity"), &validity);

    let key_digest = Data {
        signature_info: SignatureInfo {
            key_locator: Some(KeyLocator::Digest(vec![4; 32])),
            ..SignatureInfo::new(types::signature_type::SHA256_WITH_RSA)
        },
        signature_value: vec![5; 256],
        ..Data::new(name("/golden/locator"))
    };
    // Without content at all, which is read like an empty one.
    let wire = file("ndnts-data-key-digest");
    let read = DataView::parse(&wire).expect("well-formed");
    assert_eq!(read.to_data(), key_digest);

    let null = Data {
        signature_info: SignatureInfo::new(types::signature_type::NULL),
        ..Data::new(name("/golden/null"))
    };
    let wire = file("ndnts-data-null");
    let read = DataView::parse(&wire).expect("well-formed");
    assert_eq!(read.to_data(), null);
}

#[test]
fn frames_of_ndnts_are_read() {
    let data = file("ndnts-data-validity");
    let whole = Headers {
        pit_token: PitToken::new(&[6; 32]),
        congestion_mark: 1,
        ..Headers::default()
    };
    let wire = file("ndnts-lp");
    assert_eq!(frame(&wire), Ok((whole, vec![], Some(data.clone()))));
    let mut out = Vec::new();
    write_packet(&mut out, &whole, None, &[], Some(&data));
    assert_eq!(out, wire);

    // Header fields of the packet come with its first fragment.
    let (first, _, head) = frame(&file("ndnts-fragment-0")).expect("well-formed");
    let (second, _, tail) = frame(&file("ndnts-fragment-1")).expect("well-formed");
    let sequence = first.sequence.expect("a fragment has a number");
    let of_first = Headers {
        sequence: Some(sequence),
        frag_count: 2,
        ..whole
    };
    let of_second = Headers {
        sequence: Some(sequence + 1),
        frag_index: 1,
        frag_count: 2,
        ..Headers::default()
    };
    assert_eq!((first, second), (of_first, of_second));
    let parts = [head.expect("a fragment"), tail.expect("a fragment")];
    assert_eq!(parts.concat(), data);

    assert_eq!(
        frame(&file("ndnts-idle")),
        Ok((Headers::default(), vec![], None))
    );
}
