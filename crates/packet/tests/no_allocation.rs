//! Views allocate nothing: not when they parse, and not when every field is
//! looked at.

#[path = "../../memory/tests/support/allocations.rs"]
mod allocations;

use allocations::n_allocations;
use tachonym_packet::lp::{self, Headers, LpView, PacketKind};
use tachonym_packet::{
    Component, Data, DataView, FaceId, HashKey, Interest, InterestView, NackReason, Name,
    NameHashes, Nonce, PacketView, PitToken, SignatureInfo,
};

/// How often `work` allocates.
fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = n_allocations();
    work();
    n_allocations() - before
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

fn interest() -> Vec<u8> {
    let info = SignatureInfo {
        nonce: Some(vec![1, 2, 3]),
        time_ms: Some(5),
        seq_num: Some(6),
        ..SignatureInfo::digest()
    };
    Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        forwarding_hint: vec![name("/h/1"), name("/h/2")],
        nonce: Some(Nonce([1, 2, 3, 4])),
        lifetime_ms: Some(100),
        hop_limit: Some(9),
        application_parameters: Some(vec![7; 50]),
        ..Interest::new(name("/a/b/c/seg=1"))
    }
    .encode_with_digest(&info)
}

fn data() -> Vec<u8> {
    Data {
        freshness_period_ms: Some(1000),
        final_block_id: Some(Component::segment(3)),
        content: vec![1; 1000],
        ..Data::new(name("/a/b/c/seg=1"))
    }
    .encode_with_digest()
}

#[test]
fn an_allocation_is_counted() {
    assert_eq!(
        allocations_of(|| drop(std::hint::black_box(Box::new(1)))),
        1
    );
}

#[test]
fn interests_are_viewed_without_allocating() {
    let wire = interest();
    let n_allocations = allocations_of(|| {
        let view = InterestView::parse(&wire).expect("own encoding");
        assert_eq!(view.name().components().count(), view.name().len());
        assert_eq!(view.forwarding_hint().count(), 2);
        assert!(view.can_be_prefix() && view.must_be_fresh());
        assert!(view.verify_parameters_digest());
        assert_eq!(view.lifetime_ms(), 100);
        assert_eq!(view.hop_limit(), Some(9));
        assert!(view.nonce().is_some() && view.application_parameters().is_some());
        let info = view.signature_info().expect("it is signed");
        assert_eq!(info.typ(), 0);
        assert!(view.signature_value().is_some());
        assert!(!view.signed_portion().is_empty());
    });
    assert_eq!(n_allocations, 0);
}

#[test]
fn data_is_viewed_without_allocating() {
    let wire = data();
    let n_allocations = allocations_of(|| {
        let view = DataView::parse(&wire).expect("own encoding");
        assert!(view.name().starts_with(view.name().prefix(2)));
        assert_eq!(view.content().len(), 1000);
        assert_eq!(view.freshness_period_ms(), 1000);
        assert!(view.final_block_id() == view.name().last() || view.final_block_id().is_some());
        assert_eq!(view.implicit_digest().len(), 32);
        assert!(view.signed_portion().len() > 1000);
        assert_eq!(view.signature_value().len(), 32);
    });
    assert_eq!(n_allocations, 0);
}

#[test]
fn frames_are_viewed_without_allocating() {
    let headers = Headers {
        pit_token: PitToken::new(&[1; 32]),
        nack: Some(NackReason::NoRoute),
        incoming_face_id: Some(FaceId(1)),
        congestion_mark: 1,
        ..Headers::default()
    };
    let packet = interest();
    let mut wire = Vec::new();
    lp::write_packet(&mut wire, &headers, None, &[1, 2, 3], Some(&packet));
    let n_allocations = allocations_of(|| {
        let view = LpView::parse(&wire).expect("own encoding");
        assert_eq!(*view.headers(), headers);
        assert_eq!(view.acks().count(), 3);
        assert!(view.check_for(PacketKind::Interest).is_ok());
        assert_eq!(view.fragment(), Some(&*packet));
    });
    assert_eq!(n_allocations, 0);
}

#[test]
fn packets_are_refused_without_allocating() {
    let packets = [interest(), data()];
    let n_allocations = allocations_of(|| {
        for wire in &packets {
            for len in 0..wire.len() {
                assert!(PacketView::parse(&wire[..len]).is_err());
                assert!(LpView::parse(&wire[..len]).is_err());
            }
        }
    });
    assert_eq!(n_allocations, 0);
}

#[test]
fn names_are_hashed_into_memory_that_is_used_again() {
    let (name, key) = (name("/a/b/c/d/e/f"), HashKey::from_u64s(1, 2));
    let mut hashes = NameHashes::default();
    for _ in 0..4 {
        hashes.push_name(&key, name.view());
    }
    hashes.clear();
    let n_allocations = allocations_of(|| {
        for _ in 0..4 {
            hashes.push_name(&key, name.view());
        }
    });
    assert_eq!(n_allocations, 0);
}
