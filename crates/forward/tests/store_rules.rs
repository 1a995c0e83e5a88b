//! Rules for the content store as the engine uses it: asked first, answers
//! without touching upstream, admits what it may.

mod bed;

use bed::*;
use tachonym_forward::{DropReason, EngineConfig, UnsolicitedDataPolicy};
use tachonym_packet::FaceId;
use tachonym_packet::lp::Headers;

/// A node whose store holds `stored`, fetched by A from B.
fn node_with(stored: &Data) -> Node {
    let mut node = Node::with_remote_faces();
    node.route("/", B, 0);
    let asked = bed::Interest {
        name: stored.name.clone(),
        ..interest("/")
    };
    assert_eq!(node.interest(A, &asked).len(), 1);
    assert_eq!(node.data(B, stored).len(), 1);
    node
}

fn is_hit(node: &mut Node, asked: Interest) -> bool {
    let sent = node.interest(C, &asked.nonce(99));
    match sent[..] {
        [ref sent] => {
            assert_eq!(sent.face, if sent.kind == Kind::Data { C } else { B });
            sent.kind == Kind::Data
        }
        _ => panic!("{sent:?}"),
    }
}

#[test]
fn stored_data_answers_its_exact_name_without_touching_upstream() {
    let mut node = node_with(&data("/a/b"));
    let sent = node.interest(C, &interest("/a/b").nonce(2));
    assert_eq!(summary(&sent), [(C, Kind::Data)]);
    assert_eq!(sent[0].wire, data("/a/b").wire());
    assert_eq!(
        sent[0].headers.incoming_face_id,
        Some(FaceId::CONTENT_STORE)
    );
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
    let counters = node.engine.counters();
    assert_eq!((counters.n_cs_hits, counters.n_cs_misses), (1, 1));
    assert_eq!(
        (counters.n_satisfied_interests, counters.n_out_data),
        (2, 2)
    );
    assert!(!is_hit(&mut node, interest("/a")));
}

#[test]
fn stored_data_answers_prefixes_only_if_they_may_be() {
    let mut node = node_with(&data("/a/b/c"));
    assert!(is_hit(&mut node, interest("/a").prefix()));
    assert!(is_hit(&mut node, interest("/a/b/c").prefix()));
    assert!(!is_hit(&mut node, interest("/a/b")));
    assert!(!is_hit(&mut node, interest("/a/b/c/d").prefix()));
}

#[test]
fn must_be_fresh_is_answered_within_the_freshness_period_only() {
    let mut node = node_with(&data("/a").fresh_ms(1_000));
    node.advance(ms(999));
    assert!(is_hit(&mut node, interest("/a").fresh()));
    node.advance(ms(1));
    assert!(!is_hit(&mut node, interest("/a").fresh()));
    assert!(is_hit(&mut node, interest("/a")));
}

#[test]
fn data_without_freshness_period_is_never_fresh() {
    let mut node = node_with(&data("/a"));
    assert!(!is_hit(&mut node, interest("/a").fresh()));
}

#[test]
fn prefix_with_must_be_fresh_finds_fresh_data_beside_stale_one() {
    let mut node = node_with(&data("/a/1").fresh_ms(1_000));
    node.interest(A, &interest("/a/2").nonce(50));
    node.data(B, &data("/a/2"));
    assert!(is_hit(&mut node, interest("/a").prefix().fresh()));
    node.advance(ms(1_000));
    assert!(!is_hit(&mut node, interest("/a").prefix().fresh()));
}

#[test]
fn freshness_counts_from_the_latest_arrival() {
    let mut node = node_with(&data("/a").fresh_ms(1_000));
    node.advance(ms(1_000));
    node.interest(A, &interest("/a").fresh().nonce(50));
    node.data(B, &data("/a").fresh_ms(1_000));
    node.advance(ms(999));
    assert!(is_hit(&mut node, interest("/a").fresh()));
}

#[test]
fn implicit_digest_is_answered_by_that_data_only() {
    let stored = data("/a");
    let mut node = node_with(&stored);
    let by_digest = |data: &Data| bed::Interest {
        name: data.full_name(),
        ..interest("/")
    };
    assert!(is_hit(&mut node, by_digest(&stored)));
    assert!(!is_hit(
        &mut node,
        by_digest(&data("/a").content(b"another"))
    ));
    assert!(is_hit(&mut node, by_digest(&stored).prefix()));
    assert!(!is_hit(&mut node, by_digest(&stored).fresh()));
}

#[test]
fn pit_tokens_of_every_length_come_back_from_the_store() {
    let mut node = node_with(&data("/a"));
    for len in 1..=32 {
        let bytes: Vec<u8> = (0..len).collect();
        let sent = node.receive(C, &interest("/a").nonce(2).wire(), token(&bytes));
        assert_eq!((sent[0].kind, sent[0].token()), (Kind::Data, Some(bytes)));
    }
}

#[test]
fn data_marked_no_cache_is_delivered_and_not_cached() {
    let mut node = Node::with_remote_faces();
    node.route("/", B, 0);
    node.interest(A, &interest("/a"));
    let headers = Headers {
        no_cache: true,
        ..Headers::default()
    };
    assert_eq!(
        summary(&node.receive(B, &data("/a").wire(), headers)),
        [(A, Kind::Data)]
    );
    assert_eq!(node.engine.sizes().n_cs_entries, 0);
    assert!(!is_hit(&mut node, interest("/a")));
}

#[test]
fn unsolicited_data_is_dropped_by_default() {
    let mut node = Node::with_remote_faces();
    node.face(D, LOCAL);
    for face in [A, D] {
        assert_eq!(node.data(face, &data("/a")), []);
    }
    assert_eq!(node.engine.sizes().n_cs_entries, 0);
    assert_eq!(node.n_dropped(DropReason::UnsolicitedData), 2);
    assert_eq!(node.engine.counters().n_unsolicited_data, 2);
}

#[test]
fn unsolicited_data_is_admitted_as_the_policy_says() {
    use UnsolicitedDataPolicy::{AdmitAll, AdmitLocal, AdmitNetwork, DropAll};
    for (policy, admits_local, admits_remote) in [
        (DropAll, false, false),
        (AdmitLocal, true, false),
        (AdmitNetwork, false, true),
        (AdmitAll, true, true),
    ] {
        let config = EngineConfig {
            unsolicited_data: policy,
            ..EngineConfig::default()
        };
        let mut node = Node::with(config);
        node.face(A, LOCAL)
            .face(B, REMOTE)
            .face(C, REMOTE)
            .route("/", B, 0);
        node.data(A, &data("/from/here"));
        node.data(C, &data("/from/elsewhere"));
        assert_eq!(
            is_hit(&mut node, interest("/from/here")),
            admits_local,
            "{policy}"
        );
        assert_eq!(
            is_hit(&mut node, interest("/from/elsewhere")),
            admits_remote,
            "{policy}"
        );
    }
}

#[test]
fn unsolicited_data_marked_no_cache_is_not_admitted() {
    let mut node = Node::with_remote_faces_and(EngineConfig {
        unsolicited_data: UnsolicitedDataPolicy::AdmitAll,
        ..EngineConfig::default()
    });
    let headers = Headers {
        no_cache: true,
        ..Headers::default()
    };
    node.receive(A, &data("/a").wire(), headers);
    assert_eq!(node.engine.sizes().n_cs_entries, 0);
}

#[test]
fn erased_data_is_not_served() {
    let mut node = node_with(&data("/a/b"));
    assert_eq!(node.engine.cs_mut().erase(name("/a").view(), 10), 1);
    assert!(!is_hit(&mut node, interest("/a/b")));
}
