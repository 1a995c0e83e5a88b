//! Interest and Data: what parses is walked through, and comes back from a value
//! as an equal view; what a forwarder rewrites stays an Interest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_packet::{
    DataView, HashKey, InterestRewrite, InterestView, NameHashes, NameView, Nonce, PacketView,
};

fn walk_name(name: NameView<'_>) {
    let mut hashes = NameHashes::default();
    hashes.push_name(&HashKey::from_u64s(1, 2), name);
    let owned = name.to_name();
    assert_eq!(owned, name);
    assert_eq!(name.components().count(), name.len());
    let uri = name.to_string();
    assert_eq!(uri.parse::<tachonym_packet::Name>().expect(&uri), owned);
}

fn walk_interest(interest: &InterestView<'_>) {
    walk_name(interest.name());
    interest.forwarding_hint().for_each(walk_name);
    let _ = interest.verify_parameters_digest();
    let _ = interest.signed_portion();
    let value = interest.to_interest();
    let wire = value.encode();
    let again = InterestView::parse(&wire).expect("a value encodes to a packet");
    assert_eq!(again.to_interest().encode(), wire);

    for rewrite in [
        InterestRewrite {
            hop_limit: Some(7),
            nonce: Some(Nonce([1, 2, 3, 4])),
            strip_forwarding_hint: false,
        },
        InterestRewrite {
            hop_limit: interest.hop_limit(),
            nonce: None,
            strip_forwarding_hint: true,
        },
    ] {
        let mut out = Vec::new();
        rewrite.write_into(interest, &mut out);
        if out.len() <= tachonym_packet::types::MAX_PACKET_BYTES {
            let changed = InterestView::parse(&out).expect("still an Interest");
            assert_eq!(changed.name(), interest.name());
            assert_eq!(changed.lifetime_ms(), interest.lifetime_ms());
        }
    }
}

fn walk_data(data: &DataView<'_>) {
    walk_name(data.name());
    let value = data.to_data();
    let wire = value.encode();
    let again = DataView::parse(&wire).expect("a value encodes to a packet");
    assert_eq!(again.to_data(), value);
    assert_eq!(data.implicit_digest().len(), 32);
    assert!(data.signed_portion().len() < data.wire().len());
}

fuzz_target!(|bytes: &[u8]| {
    match PacketView::parse(bytes) {
        Ok(PacketView::Interest(interest)) => walk_interest(&interest),
        Ok(PacketView::Data(data)) => walk_data(&data),
        Err(_) => {}
    }
});
