//! What hostile or newer programs send: every packet here is cut, stretched,
//! reordered or extended at every place, and is refused or read by the rules of
//! the packet format (sections "TLV" and "Evolvability"), never worse.

use proptest::prelude::*;
use tachonym_packet::lp::{Headers, LpView, write_packet};
use tachonym_packet::tlv::{Reader, read_single, write_head, write_nested, write_tlv};
use tachonym_packet::types::{self, component};
use tachonym_packet::{
    Component, Data, DataView, DecodeError, FaceId, Interest, InterestSignature, InterestView,
    KeyLocator, NackReason, Name, NameView, Nonce, PacketView, PitToken, SignatureInfo,
    ValidityPeriod,
};

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

fn info() -> SignatureInfo {
    SignatureInfo {
        typ: types::signature_type::SHA256_WITH_ECDSA,
        key_locator: Some(KeyLocator::Name(name("/site/KEY/%01%02"))),
        nonce: Some(vec![1; 8]),
        time_ms: Some(1_700_000_000_000),
        seq_num: Some(9),
        validity_period: Some(ValidityPeriod {
            not_before: *b"20260101T000000",
            not_after: *b"20270101T000000",
        }),
        additional_description: Some(vec![0xfd, 2, 0, 0]),
    }
}

fn interest() -> Vec<u8> {
    Interest {
        name: name("/a/b/seg=300/32=metadata"),
        can_be_prefix: true,
        must_be_fresh: true,
        forwarding_hint: vec![name("/isp/one"), name("/isp/two")],
        nonce: Some(Nonce([1, 2, 3, 4])),
        lifetime_ms: Some(2000),
        hop_limit: Some(64),
        application_parameters: Some(vec![5; 50]),
        signature: Some(InterestSignature {
            info: info(),
            value: vec![6; 71],
        }),
    }
    .encode()
}

fn data() -> Vec<u8> {
    Data {
        name: name("/a/b/v=1/seg=300"),
        content_type: types::content_type::KEY,
        freshness_period_ms: Some(1000),
        final_block_id: Some(Component::segment(400)),
        content: vec![7; 300],
        signature_info: info(),
        signature_value: vec![8; 71],
    }
    .encode()
}

fn link_packet() -> Vec<u8> {
    let headers = Headers {
        pit_token: PitToken::new(&[9; 8]),
        nack: Some(NackReason::NoRoute),
        next_hop_face_id: Some(FaceId(300)),
        incoming_face_id: Some(FaceId(70_000)),
        no_cache: true,
        congestion_mark: 1,
        non_discovery: true,
        sequence: Some(7),
        frag_index: 1,
        frag_count: 2,
        tx_sequence: Some(8),
    };
    let mut wire = Vec::new();
    write_packet(
        &mut wire,
        &headers,
        Some(&data()),
        &[1, 2],
        Some(&interest()),
    );
    wire
}

fn is_read(wire: &[u8]) -> bool {
    match wire.first() {
        Some(100) => LpView::parse(wire).is_ok(),
        _ => PacketView::parse(wire).is_ok(),
    }
}

/// The elements of a sequence, each with its type and value.
fn elements(value: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut reader = Reader::new(value);
    let mut elements = Vec::new();
    while !reader.is_empty() {
        let element = reader.read_element().expect("own encoding");
        elements.push((element.typ, element.value.to_vec()));
    }
    elements
}

fn wrap(typ: u32, elements: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut wire = Vec::new();
    write_nested(&mut wire, typ, |out| {
        elements
            .iter()
            .for_each(|(typ, value)| write_tlv(out, *typ, value));
    });
    wire
}

fn interest_elements() -> Vec<(u32, Vec<u8>)> {
    elements(read_single(&interest(), types::INTEREST).expect("own encoding"))
}

fn data_elements() -> Vec<(u32, Vec<u8>)> {
    elements(read_single(&data(), types::DATA).expect("own encoding"))
}

/// Types that neither packet knows, and whether they may be skipped.
const UNKNOWN: [(u32, bool); 10] = [
    (3, false),
    (4, false),
    (0x10, false),
    (0x1f, false),
    (0x2b, false),
    (0x2d, false),
    (0x3039, false),
    (0x60, true),
    (252, true),
    (0x3038, true),
];

#[test]
fn unknown_elements_follow_the_evolvability_rule_at_every_place() {
    for (outer, original) in [
        (types::INTEREST, interest_elements()),
        (types::DATA, data_elements()),
    ] {
        for (typ, skipped) in UNKNOWN {
            for at in 0..=original.len() {
                let mut changed = original.clone();
                changed.insert(at, (typ, b"later".to_vec()));
                let wire = wrap(outer, &changed);
                // Nothing comes before the name.
                let expected = skipped && at > 0;
                assert_eq!(is_read(&wire), expected, "{outer}: {typ} at {at}");
            }
        }
    }
}

#[test]
fn unknown_elements_follow_the_evolvability_rule_inside_nested_elements() {
    let nested = [types::META_INFO, types::SIGNATURE_INFO];
    for (idx, (typ, value)) in data_elements().into_iter().enumerate() {
        if !nested.contains(&typ) {
            continue;
        }
        let inner = elements(&value);
        for (unknown, skipped) in UNKNOWN {
            for at in 0..=inner.len() {
                let mut changed = inner.clone();
                changed.insert(at, (unknown, Vec::new()));
                let value = wrap(typ, &changed);
                let mut outer = data_elements();
                outer[idx].1 = read_single(&value, typ).expect("just made").to_vec();
                let wire = wrap(types::DATA, &outer);
                assert_eq!(is_read(&wire), skipped, "{unknown} at {at} of {typ}");
            }
        }
    }
}

#[test]
fn skipped_elements_change_nothing_that_is_read() {
    let mut changed = interest_elements();
    for at in (1..=changed.len()).rev() {
        changed.insert(at, (252, vec![0; 3]));
    }
    let (wire, original) = (wrap(types::INTEREST, &changed), interest());
    let view = InterestView::parse(&wire).expect("all skipped");
    let original = InterestView::parse(&original).expect("own encoding");
    assert_eq!(view.to_interest(), original.to_interest());

    let mut changed = data_elements();
    for at in (1..=changed.len()).rev() {
        changed.insert(at, (252, vec![0; 3]));
    }
    let (wire, original) = (wrap(types::DATA, &changed), data());
    let view = DataView::parse(&wire).expect("all skipped");
    let original = DataView::parse(&original).expect("own encoding");
    assert_eq!(view.to_data(), original.to_data());
    // What is skipped is covered by the signature all the same.
    assert!(view.signed_portion().len() > original.signed_portion().len());
}

#[test]
fn critical_elements_out_of_order_are_refused() {
    for (outer, original) in [
        (types::INTEREST, interest_elements()),
        (types::DATA, data_elements()),
    ] {
        for at in 1..original.len() {
            let mut changed = original.clone();
            changed.swap(at - 1, at);
            let wire = wrap(outer, &changed);
            // The one that now comes too late is skipped if it may be; then a
            // signature lacks what it needs.
            let late = original[at - 1].0;
            let expected = late == types::HOP_LIMIT;
            assert_eq!(is_read(&wire), expected, "{outer}: {late} too late");
        }
    }
}

#[test]
fn repeated_elements_are_refused_or_the_first_counts() {
    for (outer, original) in [
        (types::INTEREST, interest_elements()),
        (types::DATA, data_elements()),
    ] {
        for at in 0..original.len() {
            let mut changed = original.clone();
            let mut again = changed[at].clone();
            if let Some(last) = again.1.last_mut() {
                *last ^= 1;
            }
            let typ = again.0;
            changed.insert(at + 1, again);
            let wire = wrap(outer, &changed);
            let critical = typ < 32 || typ % 2 == 1;
            assert_eq!(is_read(&wire), !critical, "{outer}: {typ} twice");
        }
    }
    let mut changed = interest_elements();
    let at = changed.iter().position(|e| e.0 == types::HOP_LIMIT);
    let at = at.expect("it has one");
    changed.insert(at + 1, (types::HOP_LIMIT, vec![1]));
    let wire = wrap(types::INTEREST, &changed);
    let view = InterestView::parse(&wire).expect("the second is skipped");
    assert_eq!(view.hop_limit(), Some(64));
}

#[test]
fn packets_cut_at_any_byte_are_refused() {
    for wire in [interest(), data(), link_packet()] {
        assert!(is_read(&wire));
        for len in 0..wire.len() {
            assert!(!is_read(&wire[..len]), "{len} of {}", wire.len());
        }
    }
}

#[test]
fn bytes_after_the_packet_are_refused() {
    for mut wire in [interest(), data(), link_packet()] {
        wire.push(0);
        assert!(!is_read(&wire));
    }
}

/// How one head is written wrongly.
#[derive(Clone, Copy)]
enum Longer {
    Type,
    Length,
}

/// Writes `value` again as the elements of `parent`, with the head of element
/// number `target`, counted depth first, longer than needed. `n_seen` counts.
fn write_longer(
    value: &[u8],
    target: usize,
    longer: Longer,
    n_seen: &mut usize,
    out: &mut Vec<u8>,
) {
    const NESTED: [u32; 12] = [
        types::INTEREST,
        types::DATA,
        types::LP_PACKET,
        types::NAME,
        types::FORWARDING_HINT,
        types::META_INFO,
        types::FINAL_BLOCK_ID,
        types::SIGNATURE_INFO,
        types::INTEREST_SIGNATURE_INFO,
        types::KEY_LOCATOR,
        types::VALIDITY_PERIOD,
        types::LP_CACHE_POLICY,
    ];
    for (typ, value) in elements(value) {
        let is_target = *n_seen == target;
        *n_seen += 1;
        let mut inner = Vec::new();
        if NESTED.contains(&typ) {
            write_longer(&value, target, longer, n_seen, &mut inner);
        } else {
            inner = value;
        }
        match longer {
            _ if !is_target => write_tlv(out, typ, &inner),
            Longer::Type => {
                out.push(254);
                out.extend_from_slice(&typ.to_be_bytes());
                let mut rest = Vec::new();
                write_head(&mut rest, 1, inner.len());
                out.extend_from_slice(&rest[1..]);
                out.extend_from_slice(&inner);
            }
            Longer::Length => {
                let mut head = Vec::new();
                write_head(&mut head, typ, 0);
                out.extend_from_slice(&head[..head.len() - 1]);
                out.push(254);
                out.extend_from_slice(&(inner.len() as u32).to_be_bytes());
                out.extend_from_slice(&inner);
            }
        }
    }
}

#[test]
fn nonminimal_numbers_are_refused_at_every_depth() {
    for wire in [interest(), data(), link_packet()] {
        let mut n_elements = 0;
        let mut same = Vec::new();
        write_longer(&wire, usize::MAX, Longer::Type, &mut n_elements, &mut same);
        assert_eq!(same, wire);
        assert!(n_elements > 15);
        for target in 0..n_elements {
            for longer in [Longer::Type, Longer::Length] {
                let mut out = Vec::new();
                write_longer(&wire, target, longer, &mut 0, &mut out);
                let refusal = match out[0] {
                    100 => LpView::parse(&out).err(),
                    _ => PacketView::parse(&out).err(),
                };
                assert_eq!(refusal, Some(DecodeError::NonMinimalNumber), "{target}");
            }
        }
    }
}

#[test]
fn nesting_as_deep_as_a_packet_can_hold_is_no_burden() {
    for outer in [types::NAME, types::FORWARDING_HINT, types::CONTENT, 252, 1] {
        let mut deep = Vec::new();
        while deep.len() < types::MAX_PACKET_BYTES - 300 {
            let mut wrapped = Vec::with_capacity(deep.len() + 6);
            write_tlv(&mut wrapped, outer, &deep);
            deep = wrapped;
        }
        for (packet, first) in [
            (types::INTEREST, interest_elements()),
            (types::DATA, data_elements()),
        ] {
            let mut elements = first[..1].to_vec();
            elements.push((outer, deep.clone()));
            let wire = wrap(packet, &elements);
            let _ = PacketView::parse(&wire);
            let _ = LpView::parse(&wrap(types::LP_PACKET, &[(types::LP_FRAGMENT, wire)]));
        }
        let _ = NameView::parse_element(&deep);
    }
    let mut packets = interest();
    while packets.len() < types::MAX_PACKET_BYTES {
        packets = wrap(types::LP_PACKET, &[(types::LP_FRAGMENT, packets)]);
    }
    assert!(LpView::parse(&packets).is_ok());
}

#[test]
fn names_of_packets_have_at_most_one_parameters_digest() {
    let digest = Component::parameters_digest(&[7; 32]);
    let twice = Name::new().with(&digest).with("a").with(&digest);
    let elements = [(types::NAME, twice.value_bytes().to_vec())];
    assert_eq!(
        InterestView::parse(&wrap(types::INTEREST, &elements)).unwrap_err(),
        DecodeError::RepeatedParametersDigest
    );
    let mut elements = data_elements();
    elements[0].1 = twice.value_bytes().to_vec();
    assert_eq!(
        DataView::parse(&wrap(types::DATA, &elements)).unwrap_err(),
        DecodeError::RepeatedParametersDigest
    );
    let once = Name::new().with("a").with(&digest).with("b");
    let elements = [(types::NAME, once.value_bytes().to_vec())];
    assert!(InterestView::parse(&wrap(types::INTEREST, &elements)).is_ok());
}

#[test]
fn component_types_are_1_to_65535_and_digests_have_32_bytes() {
    for (typ, len, ok) in [
        (1, 32, true),
        (1, 31, false),
        (2, 0, false),
        (2, 33, false),
        (8, 0, true),
        (u32::from(component::SEGMENT), 3, true),
        (65_535, 1, true),
        (65_536, 1, false),
        (u32::MAX, 1, false),
    ] {
        let mut value = Vec::new();
        write_tlv(&mut value, typ, &vec![1; len]);
        assert_eq!(NameView::parse_value(&value).is_ok(), ok, "{typ}, {len}");
        let wire = wrap(types::INTEREST, &[(types::NAME, value)]);
        assert_eq!(is_read(&wire), ok, "{typ}, {len}");
    }
}

#[test]
fn fields_of_fixed_size_are_refused_in_any_other() {
    for (typ, sizes) in [
        (types::CAN_BE_PREFIX, &[0][..]),
        (types::MUST_BE_FRESH, &[0]),
        (types::NONCE, &[4]),
        (types::INTEREST_LIFETIME, &[1, 2, 4, 8]),
        (types::HOP_LIMIT, &[1]),
    ] {
        for len in 0..=9 {
            let name = name("/a").value_bytes().to_vec();
            let wire = wrap(types::INTEREST, &[(types::NAME, name), (typ, vec![1; len])]);
            assert_eq!(is_read(&wire), sizes.contains(&len), "{typ} of {len}");
        }
    }
    for (typ, sizes) in [
        (types::CONTENT_TYPE, &[1, 2, 4, 8][..]),
        (types::FRESHNESS_PERIOD, &[1, 2, 4, 8]),
    ] {
        for len in 0..=9 {
            let mut elements = data_elements();
            let meta = wrap(types::META_INFO, &[(typ, vec![1; len])]);
            elements[1].1 = read_single(&meta, types::META_INFO).expect("made").to_vec();
            let wire = wrap(types::DATA, &elements);
            assert_eq!(is_read(&wire), sizes.contains(&len), "{typ} of {len}");
        }
    }
    for (typ, sizes) in [
        (types::LP_SEQUENCE, &[8][..]),
        (types::LP_TX_SEQUENCE, &[8]),
        (types::LP_ACK, &[8]),
        (types::LP_INCOMING_FACE_ID, &[1, 2, 4, 8]),
        (types::LP_NEXT_HOP_FACE_ID, &[1, 2, 4, 8]),
        (types::LP_CONGESTION_MARK, &[1, 2, 4, 8]),
    ] {
        for len in 0..=9 {
            let wire = wrap(
                types::LP_PACKET,
                &[(typ, vec![1; len]), (types::LP_FRAGMENT, interest())],
            );
            assert_eq!(is_read(&wire), sizes.contains(&len), "{typ} of {len}");
        }
    }
}

#[test]
fn elements_that_claim_more_than_there_is_are_refused() {
    for claim in [
        1_u64,
        252,
        253,
        65_535,
        65_536,
        u64::from(u32::MAX),
        u64::MAX,
    ] {
        let mut head = Vec::new();
        tachonym_packet::tlv::write_var_number(&mut head, claim);
        for typ in [5, 6, 100] {
            let mut wire = vec![typ];
            wire.extend_from_slice(&head);
            assert!(!is_read(&wire), "{typ} claims {claim}");
        }
        let mut name = vec![7];
        name.extend_from_slice(&head);
        let mut wire = Vec::new();
        write_tlv(&mut wire, types::INTEREST, &name);
        assert!(!is_read(&wire), "a name claims {claim}");
    }
}

proptest! {
    #[test]
    fn changed_bytes_are_refused_or_read_to_the_end(
        which in 0_usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut wire = [interest(), data(), link_packet()][which].clone();
        for (at, byte) in changes {
            let at = at.index(wire.len());
            wire[at] = byte;
        }
        if let Ok(frame) = LpView::parse(&wire) {
            prop_assert!(frame.acks().count() <= wire.len());
        }
        match PacketView::parse(&wire) {
            Ok(PacketView::Interest(view)) => {
                let again = view.to_interest().encode();
                prop_assert!(InterestView::parse(&again).is_ok());
                prop_assert!(view.signed_portion().iter().all(|part| part.len() < wire.len()));
                let _ = view.verify_parameters_digest();
            }
            Ok(PacketView::Data(view)) => {
                let again = view.to_data().encode();
                let again = DataView::parse(&again).expect("own encoding");
                prop_assert_eq!(again.to_data(), view.to_data());
            }
            Err(_) => {}
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for typ in [5, 6, 7, 100] {
            let mut wire = Vec::new();
            write_tlv(&mut wire, typ, &bytes);
            if let Ok(name) = NameView::parse_element(&wire) {
                prop_assert_eq!(name.components().count(), name.len());
            }
            if let Ok(packet) = PacketView::parse(&wire) {
                let name = packet.name();
                prop_assert_eq!(name.components().count(), name.len());
            }
            let _ = LpView::parse(&wire);
        }
    }
}

/// A Data whose MetaInfo ends with an element of type `typ`.
fn with_application_element(typ: u32) -> Vec<u8> {
    let mut changed = data_elements();
    let at = changed.iter().position(|e| e.0 == types::META_INFO);
    let at = at.expect("it has one");
    let mut inner = elements(&changed[at].1);
    inner.push((typ, b"own".to_vec()));
    let meta = wrap(types::META_INFO, &inner);
    let value = read_single(&meta, types::META_INFO).expect("just made");
    changed[at].1 = value.to_vec();
    wrap(types::DATA, &changed)
}

#[test]
fn elements_of_applications_in_meta_info_are_skipped_even_of_odd_types() {
    let original = data();
    let original = DataView::parse(&original).expect("own encoding");
    for typ in [128, 129, 200, 201, 251, 252] {
        let wire = with_application_element(typ);
        let view = DataView::parse(&wire).expect("skipped");
        assert_eq!(view.to_data(), original.to_data(), "{typ}");
        assert!(view.signed_portion().len() > original.signed_portion().len());
    }
    for typ in [1, 31, 33, 127, 253, 255, 1001] {
        assert!(!is_read(&with_application_element(typ)), "{typ}");
    }
}

#[test]
fn a_validity_period_that_says_nothing_drops_no_packet() {
    let time = b"20260101T000000".to_vec();
    let good = wrap(
        types::VALIDITY_PERIOD,
        &[
            (types::NOT_BEFORE, time.clone()),
            (types::NOT_AFTER, time.clone()),
        ],
    );
    let bad = [
        wrap(types::VALIDITY_PERIOD, &[]),
        wrap(types::VALIDITY_PERIOD, &[(types::NOT_BEFORE, time.clone())]),
        wrap(
            types::VALIDITY_PERIOD,
            &[
                (types::NOT_BEFORE, b"today".to_vec()),
                (types::NOT_AFTER, time),
            ],
        ),
    ];
    for (period, is_good) in std::iter::once((&good, true)).chain(bad.iter().map(|p| (p, false))) {
        let value = read_single(period, types::VALIDITY_PERIOD).expect("just made");
        let info = wrap(
            types::SIGNATURE_INFO,
            &[
                (types::SIGNATURE_TYPE, vec![0]),
                (types::VALIDITY_PERIOD, value.to_vec()),
            ],
        );
        let mut changed = data_elements();
        let at = changed.iter().position(|e| e.0 == types::SIGNATURE_INFO);
        let value = read_single(&info, types::SIGNATURE_INFO).expect("just made");
        changed[at.expect("it has one")].1 = value.to_vec();
        let wire = wrap(types::DATA, &changed);
        let view = DataView::parse(&wire).expect("it is forwarded");
        assert_eq!(view.signature_info().validity_period().is_some(), is_good);
    }
}

#[test]
fn delegations_of_the_older_form_are_read_as_their_names() {
    let delegation = |uri: &str| {
        let name = (types::NAME, name(uri).value_bytes().to_vec());
        let value = wrap(types::DELEGATION, &[(30, vec![1]), name]);
        let value = read_single(&value, types::DELEGATION).expect("just made");
        (types::DELEGATION, value.to_vec())
    };
    let hinted = |delegations: &[(u32, Vec<u8>)]| {
        let hint = wrap(types::FORWARDING_HINT, delegations);
        let hint = read_single(&hint, types::FORWARDING_HINT).expect("just made");
        let name = (types::NAME, name("/a").value_bytes().to_vec());
        wrap(
            types::INTEREST,
            &[name, (types::FORWARDING_HINT, hint.to_vec())],
        )
    };
    let new = (types::NAME, name("/new").value_bytes().to_vec());
    let wire = hinted(&[delegation("/old"), new, delegation("/older")]);
    let view = InterestView::parse(&wire).expect("ndn-cxx reads it");
    let names: Vec<_> = view.forwarding_hint().map(|it| it.to_string()).collect();
    assert_eq!(names, ["/old", "/new", "/older"]);
    for bad in [
        (types::DELEGATION, Vec::new()),
        (types::DELEGATION, vec![30, 1, 1]),
        (types::DELEGATION, vec![7, 9, 8]),
        (29, Vec::new()),
    ] {
        assert!(!is_read(&hinted(&[delegation("/old"), bad])));
    }
    assert!(!is_read(&hinted(&[(252, Vec::new())])), "no name");
}
