//! Value to bytes to view to value is the identity; whatever is cut or changed is
//! refused or read, and never worse.

use proptest::prelude::*;
use tachonym_packet::lp::{self, Headers, LpView};
use tachonym_packet::{
    Component, Data, DataView, FaceId, Interest, InterestView, KeyLocator, NackReason, Name,
    NameView, Nonce, PacketView, PitToken, SignatureInfo,
};

fn component() -> impl Strategy<Value = Component> {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        bytes.prop_map(Component::generic),
        (3_u16.., prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(typ, value)| Component::new(typ, value).expect("no digest")),
        any::<u64>().prop_map(Component::segment),
        any::<u64>().prop_map(Component::version),
        any::<u64>().prop_map(Component::byte_offset),
        any::<u64>().prop_map(Component::timestamp),
        any::<u64>().prop_map(Component::sequence),
        any::<[u8; 32]>().prop_map(|digest| Component::implicit_digest(&digest)),
        "[a-z.%/=]{0,10}".prop_map(Component::generic),
    ]
}

fn name(n_components: std::ops::Range<usize>) -> impl Strategy<Value = Name> {
    prop::collection::vec(component(), n_components).prop_map(|components| {
        let mut name = Name::new();
        for component in &components {
            name.push(component);
        }
        name
    })
}

fn interest() -> impl Strategy<Value = Interest> {
    (
        name(1..8),
        any::<(bool, bool)>(),
        prop::collection::vec(name(1..3), 0..3),
        any::<Option<[u8; 4]>>(),
        any::<Option<u64>>(),
        any::<Option<u8>>(),
    )
        .prop_map(
            |(name, (can_be_prefix, must_be_fresh), hint, nonce, lifetime, hops)| Interest {
                can_be_prefix,
                must_be_fresh,
                forwarding_hint: hint,
                nonce: nonce.map(Nonce),
                lifetime_ms: lifetime,
                hop_limit: hops,
                ..Interest::new(name)
            },
        )
}

fn signature_info() -> impl Strategy<Value = SignatureInfo> {
    let locator = prop_oneof![
        Just(None),
        name(1..4).prop_map(|name| Some(KeyLocator::Name(name))),
    ];
    (0_u64..10, locator).prop_map(|(typ, key_locator)| SignatureInfo {
        key_locator,
        ..SignatureInfo::new(typ)
    })
}

fn data() -> impl Strategy<Value = Data> {
    (
        name(0..8),
        any::<u64>(),
        any::<Option<u64>>(),
        prop::option::of(component()),
        prop::collection::vec(any::<u8>(), 0..300),
        signature_info(),
        prop::collection::vec(any::<u8>(), 0..80),
    )
        .prop_map(
            |(name, content_type, freshness, last, content, info, value)| Data {
                content_type,
                freshness_period_ms: freshness,
                final_block_id: last,
                content,
                signature_info: info,
                signature_value: value,
                ..Data::new(name)
            },
        )
}

fn headers() -> impl Strategy<Value = Headers> {
    (
        prop::option::of(prop::collection::vec(any::<u8>(), 1..33)),
        prop::option::of(any::<u64>()),
        any::<(Option<u64>, Option<u64>, bool, bool)>(),
        any::<(u64, Option<u64>, Option<u64>)>(),
        (0_u64..5, 1_u64..5),
    )
        .prop_map(
            |(token, nack, (next, incoming, no_cache, non_discovery), (mark, seq, tx), (i, n))| {
                Headers {
                    pit_token: token.and_then(|token| PitToken::new(&token)),
                    nack: nack.map(NackReason::from_code),
                    next_hop_face_id: next.map(FaceId),
                    incoming_face_id: incoming.map(FaceId),
                    no_cache,
                    congestion_mark: mark,
                    non_discovery,
                    sequence: seq,
                    frag_index: i % n,
                    frag_count: n,
                    tx_sequence: tx,
                }
            },
        )
}

proptest! {
    #[test]
    fn names_survive_bytes_and_text(name in name(0..10)) {
        let wire = name.encode();
        prop_assert_eq!(NameView::parse_element(&wire).unwrap(), name.view());
        let uri = name.to_string();
        prop_assert_eq!(uri.parse::<Name>().unwrap(), name, "{}", uri);
    }

    #[test]
    fn interests_survive_bytes(interest in interest()) {
        let wire = interest.encode();
        let view = InterestView::parse(&wire).unwrap();
        prop_assert_eq!(view.to_interest(), interest);
        prop_assert_eq!(view.to_interest().encode(), wire);
    }

    #[test]
    fn data_survives_bytes(data in data()) {
        let wire = data.encode();
        let view = DataView::parse(&wire).unwrap();
        prop_assert_eq!(view.to_data(), data);
        prop_assert_eq!(view.to_data().encode(), wire);
    }

    #[test]
    fn frames_survive_bytes(headers in headers(), interest in interest(), acks in prop::collection::vec(any::<u64>(), 0..4)) {
        let packet = interest.encode();
        let mut wire = Vec::new();
        lp::write_packet(&mut wire, &headers, None, &acks, Some(&packet));
        let view = LpView::parse(&wire).unwrap();
        prop_assert_eq!(view.headers(), &headers);
        prop_assert_eq!(view.fragment(), Some(&*packet));
        prop_assert!(view.acks().eq(acks));
    }

    #[test]
    fn what_is_cut_off_is_refused(data in data(), interest in interest(), cut in any::<prop::sample::Index>()) {
        for wire in [data.encode(), interest.encode()] {
            let n_bytes = cut.index(wire.len());
            prop_assert!(PacketView::parse(&wire[..n_bytes]).is_err());
        }
    }

    #[test]
    fn changed_bytes_are_refused_or_read(
        data in data(),
        interest in interest(),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        for mut wire in [data.encode(), interest.encode()] {
            let at = at.index(wire.len());
            wire[at] = byte;
            if let Ok(packet) = PacketView::parse(&wire) {
                match packet {
                    PacketView::Interest(view) => {
                        let again = view.to_interest().encode();
                        prop_assert!(InterestView::parse(&again).is_ok());
                    }
                    PacketView::Data(view) => {
                        let again = view.to_data().encode();
                        prop_assert!(DataView::parse(&again).is_ok());
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_elements_are_ignored_or_refused_by_their_type(interest in interest(), typ in 32_u32..2000) {
        // Numbers that mean something in an Interest, or a signature's.
        prop_assume!(![33, 34, 36, 44, 46].contains(&typ));
        let wire = interest.encode();
        let mut value = tachonym_packet::tlv::read_single(&wire, 5).unwrap().to_vec();
        tachonym_packet::tlv::write_tlv(&mut value, typ, b"x");
        let mut extended = Vec::new();
        tachonym_packet::tlv::write_tlv(&mut extended, 5, &value);
        let is_read = InterestView::parse(&extended).is_ok();
        prop_assert_eq!(is_read, typ % 2 == 0);
    }
}
