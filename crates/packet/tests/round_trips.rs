//! Value, bytes, view and value again: nothing is lost on the way.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tachonym_packet::lp::{Headers, LpView, write_packet};
use tachonym_packet::{
    Component, ComponentView, Data, DataView, FaceId, Interest, InterestRewrite, InterestSignature,
    InterestVariant, InterestView, KeyLocator, NackReason, Name, NameView, Nonce, PitToken,
    SignatureInfo, SignatureInfoView, ValidityPeriod, types,
};

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=max)
}

/// Any component but a parameters digest, which encoding places.
fn component() -> impl Strategy<Value = Component> {
    let number = prop_oneof![
        Just(0),
        Just(252),
        Just(253),
        Just(65_535),
        Just(65_536),
        Just(u64::MAX),
        any::<u64>(),
    ];
    let dots = (0_usize..8).prop_map(|n| vec![b'.'; n]);
    prop_oneof![
        4 => bytes(12).prop_map(Component::generic),
        1 => dots.prop_map(Component::generic),
        1 => bytes(300).prop_map(Component::generic),
        2 => (3..=u16::MAX, bytes(10))
            .prop_map(|(typ, value)| Component::new(typ, value).expect("no digest")),
        1 => any::<[u8; 32]>().prop_map(|digest| Component::implicit_digest(&digest)),
        2 => (0_usize..5, number).prop_map(|(kind, number)| match kind {
            0 => Component::segment(number),
            1 => Component::version(number),
            2 => Component::byte_offset(number),
            3 => Component::timestamp(number),
            _ => Component::sequence(number),
        }),
    ]
}

fn name_of(n_components: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Name> {
    vec(component(), n_components).prop_map(|components| {
        let mut name = Name::new();
        components.iter().for_each(|component| name.push(component));
        name
    })
}

fn info() -> impl Strategy<Value = SignatureInfo> {
    let locator = prop_oneof![
        name_of(0..=6).prop_map(KeyLocator::Name),
        bytes(40).prop_map(KeyLocator::Digest),
    ];
    let time = (0_u64..1_000_000_000, 0_u64..1_000_000).prop_map(|(date, time)| {
        let text = format!("{:08}T{time:06}", date % 100_000_000);
        <[u8; 15]>::try_from(text.as_bytes()).expect("fifteen characters")
    });
    let period = (time.clone(), time).prop_map(|(not_before, not_after)| ValidityPeriod {
        not_before,
        not_after,
    });
    (
        prop_oneof![0_u64..6, Just(200), any::<u64>()],
        option::of(locator),
        option::of(vec(any::<u8>(), 1..20)),
        option::of(any::<u64>()),
        option::of(any::<u64>()),
        option::of(period),
        option::of(bytes(30)),
    )
        .prop_map(|fields| SignatureInfo {
            typ: fields.0,
            key_locator: fields.1,
            nonce: fields.2,
            time_ms: fields.3,
            seq_num: fields.4,
            validity_period: fields.5,
            additional_description: fields.6,
        })
}

fn interest() -> impl Strategy<Value = Interest> {
    let signature = (info(), bytes(80)).prop_map(|(info, value)| InterestSignature { info, value });
    (
        name_of(1..=6),
        any::<(bool, bool)>(),
        vec(name_of(0..=4), 0..4),
        option::of(any::<[u8; 4]>()),
        option::of(any::<u64>()),
        option::of(any::<u8>()),
        option::of(bytes(400)),
        option::of(signature),
    )
        .prop_map(|fields| Interest {
            name: fields.0,
            can_be_prefix: fields.1.0,
            must_be_fresh: fields.1.1,
            forwarding_hint: fields.2,
            nonce: fields.3.map(Nonce),
            lifetime_ms: fields.4,
            hop_limit: fields.5,
            // A signature covers parameters, be they empty.
            application_parameters: fields.6.or_else(|| fields.7.as_ref().map(|_| Vec::new())),
            signature: fields.7,
        })
}

fn data() -> impl Strategy<Value = Data> {
    (
        name_of(0..=6),
        prop_oneof![Just(0), 1_u64..10, any::<u64>()],
        option::of(any::<u64>()),
        option::of(component()),
        bytes(600),
        info(),
        bytes(300),
    )
        .prop_map(|fields| Data {
            name: fields.0,
            content_type: fields.1,
            freshness_period_ms: fields.2,
            final_block_id: fields.3,
            content: fields.4,
            signature_info: fields.5,
            signature_value: fields.6,
        })
}

fn headers() -> impl Strategy<Value = Headers> {
    (
        option::of(vec(any::<u8>(), 1..=32)),
        option::of(prop_oneof![
            Just(0),
            Just(50),
            Just(100),
            Just(150),
            any::<u64>()
        ]),
        any::<(Option<u64>, Option<u64>)>(),
        any::<(bool, bool)>(),
        prop_oneof![Just(0), any::<u64>()],
        any::<(Option<u64>, Option<u64>)>(),
        (1_u64..=u64::MAX, any::<u64>()),
    )
        .prop_map(|fields| Headers {
            pit_token: fields.0.and_then(|token| PitToken::new(&token)),
            nack: fields.1.map(NackReason::from_code),
            next_hop_face_id: fields.2.0.map(FaceId),
            incoming_face_id: fields.2.1.map(FaceId),
            no_cache: fields.3.0,
            non_discovery: fields.3.1,
            congestion_mark: fields.4,
            sequence: fields.5.0,
            tx_sequence: fields.5.1,
            frag_count: fields.6.0,
            frag_index: fields.6.1 % fields.6.0,
        })
}

proptest! {
    #[test]
    fn components_come_back_from_bytes_and_text(component in component()) {
        let mut wire = Vec::new();
        component.view().encode_into(&mut wire);
        prop_assert_eq!(wire.len(), component.view().wire_len());
        prop_assert_eq!(ComponentView::parse_element(&wire), Ok(component.view()));
        prop_assert_eq!(component.to_string().parse(), Ok(component));
    }

    #[test]
    fn names_come_back_from_bytes_and_text(name in name_of(0..=8)) {
        let wire = name.encode();
        let view = NameView::parse_element(&wire).expect("own encoding");
        prop_assert_eq!(view, name.view());
        prop_assert_eq!(view.to_name().encode(), wire);
        let uri = name.to_string();
        prop_assert!(uri.is_ascii());
        prop_assert_eq!(uri.parse(), Ok(name.clone()));
        prop_assert_eq!(format!("ndn:{uri}").parse(), Ok(name));
    }

    #[test]
    fn canonical_order_is_that_of_the_components(a in name_of(0..=4), b in name_of(0..=4)) {
        let components = |name: &Name| -> Vec<Component> {
            name.components().map(|c| c.to_component()).collect()
        };
        prop_assert_eq!(a.cmp(&b), components(&a).cmp(&components(&b)));
    }

    #[test]
    fn a_name_starts_with_its_prefixes_only(a in name_of(0..=5), b in name_of(0..=3)) {
        let joined = a.join(&b);
        for n_components in 0..=joined.len() {
            prop_assert!(joined.starts_with(joined.prefix(n_components)));
        }
        let equal = b.len() <= a.len() && a.components().zip(b.components()).all(|(a, b)| a == b);
        prop_assert_eq!(a.starts_with(&b), equal);
    }

    #[test]
    fn signature_information_comes_back(info in info()) {
        let mut wire = Vec::new();
        info.write(&mut wire, types::SIGNATURE_INFO);
        let value = tachonym_packet::tlv::read_single(&wire, types::SIGNATURE_INFO).expect("own");
        let view = SignatureInfoView::parse_value(value).expect("own encoding");
        prop_assert_eq!(view.to_info(), info);
    }

    #[test]
    fn interests_come_back(interest in interest()) {
        let wire = interest.encode();
        let view = InterestView::parse(&wire).expect("own encoding");
        prop_assert!(view.verify_parameters_digest());
        let value = view.to_interest();
        prop_assert_eq!(&value.encode(), &wire);
        // Encoding has placed the digest of the parameters, and nothing else.
        let mut expected = interest;
        if expected.application_parameters.is_some() {
            expected.name.push(view.name().last().expect("not empty"));
        }
        prop_assert_eq!(value, expected);
    }

    #[test]
    fn a_rewrite_changes_what_it_says_and_nothing_else(
        interest in interest(),
        hop_limit in option::of(any::<u8>()),
        nonce in option::of(any::<[u8; 4]>()),
        strip_forwarding_hint in any::<bool>(),
    ) {
        let wire = interest.encode();
        let view = InterestView::parse(&wire).expect("own encoding");
        let nonce = nonce.map(Nonce);
        let rewrite = InterestRewrite { hop_limit, nonce, strip_forwarding_hint };
        let mut out = b"before".to_vec();
        rewrite.write_into(&view, &mut out);
        let mut expected = view.to_interest();
        expected.hop_limit = hop_limit.or(expected.hop_limit);
        expected.nonce = nonce.or(expected.nonce);
        if strip_forwarding_hint {
            expected.forwarding_hint.clear();
        }
        prop_assert_eq!(&out[..6], b"before");
        prop_assert_eq!(&out[6..], expected.encode());
    }

    #[test]
    fn a_variant_is_the_interest_that_asks_for_the_same(
        interest in interest(),
        nonce in option::of(any::<[u8; 4]>()),
        lifetime_ms in option::of(any::<u64>()),
        hop_limit in option::of(any::<u8>()),
    ) {
        let wire = interest.encode();
        let view = InterestView::parse(&wire).expect("own encoding");
        let variant = InterestVariant { nonce: nonce.map(Nonce), lifetime_ms, hop_limit };
        let mut out = b"before".to_vec();
        variant.write_into(&view, &mut out);
        let expected = Interest {
            nonce: variant.nonce,
            lifetime_ms,
            hop_limit,
            ..view.to_interest()
        };
        prop_assert_eq!(&out[..6], b"before");
        prop_assert_eq!(&out[6..], expected.encode());
        let other = InterestView::parse(&out[6..]).expect("an Interest");
        prop_assert_eq!(other.variant(), variant);
        prop_assert!(other.verify_parameters_digest());
        // And back.
        let mut back = Vec::new();
        view.variant().write_into(&other, &mut back);
        prop_assert_eq!(back, wire);
    }

    #[test]
    fn data_come_back(data in data()) {
        let wire = data.encode();
        let view = DataView::parse(&wire).expect("own encoding");
        prop_assert_eq!(view.to_data(), data.clone());
        prop_assert_eq!(view.to_data().encode(), wire.clone());
        let mut covered = Vec::new();
        let info = data.signature_info.clone();
        let again = data.encode_signed(&info, |parts| {
            covered = parts.concat();
            Ok::<_, ()>(data.signature_value.clone())
        });
        prop_assert_eq!(again, Ok(wire.clone()));
        prop_assert_eq!(view.signed_portion(), covered);
    }

    #[test]
    fn what_a_signed_interest_covers_is_what_was_signed(interest in interest(), info in info()) {
        let mut covered = Vec::new();
        let wire = interest
            .encode_signed(&info, |parts| {
                covered = parts.concat();
                Ok::<_, ()>(vec![1; 32])
            })
            .expect("signing cannot fail");
        let view = InterestView::parse(&wire).expect("own encoding");
        prop_assert_eq!(view.signed_portion().concat(), covered);
        prop_assert!(view.verify_parameters_digest());
    }

    #[test]
    fn link_headers_come_back(
        headers in headers(),
        acks in vec(any::<u64>(), 0..5),
        announcement in option::of(data()),
        fragment in option::of(data()),
    ) {
        let announcement = announcement.map(|data| data.encode());
        let fragment = fragment.map(|data| data.encode());
        let mut wire = Vec::new();
        write_packet(&mut wire, &headers, announcement.as_deref(), &acks, fragment.as_deref());
        let view = LpView::parse(&wire).expect("own encoding");
        let mut expected = headers;
        if !headers.is_fragmented() {
            expected.frag_index = 0;
        }
        prop_assert_eq!(*view.headers(), expected);
        prop_assert!(view.acks().eq(acks.iter().copied()));
        prop_assert_eq!(view.prefix_announcement(), announcement.as_deref());
        prop_assert_eq!(view.fragment(), fragment.as_deref());
        let is_plain = headers.is_empty() && acks.is_empty() && announcement.is_none();
        prop_assert_eq!(view.is_bare(), is_plain && fragment.is_some());
    }
}
