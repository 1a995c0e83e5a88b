//! Rules for Interests: what is admitted, what is a loop, what waits together,
//! where it goes.

mod bed;

use std::time::Duration;

use bed::*;
use tachonym_forward::{DropReason, EngineConfig, FaceTraits, MAX_DELEGATIONS};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, NackReason, SourceId};

const INTEREST_TO_B: (FaceId, Kind) = (B, Kind::Interest);

/// A consumer on A, a producer of `/a` behind B.
fn forwarding_node() -> Node {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    node
}

fn in_region(region: &str) -> EngineConfig {
    EngineConfig {
        producer_regions: vec![name(region)],
        ..EngineConfig::default()
    }
}

/// The same node in a producer region.
fn forwarding_node_in(region: &str) -> Node {
    let mut node = Node::with_remote_faces_and(in_region(region));
    node.route("/a", B, 0);
    node
}

#[test]
fn interest_follows_the_route_of_its_longest_prefix() {
    let mut node = forwarding_node();
    node.route("/a/b", C, 9);
    assert_eq!(
        summary(&node.interest(A, &interest("/a/x"))),
        [INTEREST_TO_B]
    );
    assert_eq!(
        summary(&node.interest(A, &interest("/a/b/x"))),
        [(C, Kind::Interest)]
    );
    assert_eq!(node.engine.counters().n_out_interests, 2);
    assert_eq!(node.engine.counters().n_cs_misses, 2);
}

#[test]
fn forwarded_interest_is_the_received_one_bit_for_bit() {
    let mut node = forwarding_node();
    let received = interest("/a/x").prefix().fresh().lifetime_ms(1234).wire();
    let sent = node.receive(A, &received, Headers::default());
    assert_eq!(sent[0].wire, received);
    assert_eq!(sent[0].headers.incoming_face_id, Some(A));
}

#[test]
fn interest_without_nonce_gets_one() {
    let mut node = forwarding_node();
    let first = node.interest(A, &interest("/a/1").without_nonce());
    let second = node.interest(A, &interest("/a/2").without_nonce());
    assert_ne!(first[0].nonce(), second[0].nonce());
    assert_eq!(first[0].interest().name(), name("/a/1").view());
    // The Data finds its way back all the same.
    assert_eq!(summary(&node.data(B, &data("/a/1"))), [(A, Kind::Data)]);
}

#[test]
fn interest_too_large_for_a_nonce_is_dropped() {
    let mut node = forwarding_node();
    let mut large = interest("/a").without_nonce();
    large.padding_bytes = 8800 - large.wire().len() - 8;
    large.padding_bytes += 8800 - large.wire().len();
    assert_eq!(large.wire().len(), 8800);
    assert_eq!(node.interest(A, &large), []);
    assert_eq!(node.n_dropped(DropReason::Oversized), 1);
}

#[test]
fn interest_with_hop_limit_zero_is_dropped() {
    let mut node = forwarding_node();
    assert_eq!(node.interest(A, &interest("/a").hop_limit(0)), []);
    assert_eq!(node.n_dropped(DropReason::HopLimitZero), 1);
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
}

#[test]
fn hop_limit_zero_is_not_answered_from_the_store_either_and_one_is() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a"));
    node.data(B, &data("/a"));
    let asked = |nonce, hop_limit| interest("/a").nonce(nonce).hop_limit(hop_limit);
    assert_eq!(node.interest(C, &asked(2, 0)), []);
    assert_eq!(summary(&node.interest(C, &asked(3, 1))), [(C, Kind::Data)]);
    // A local program's Interest counts its hops like any other.
    node.face(D, LOCAL);
    assert_eq!(node.interest(D, &interest("/a/x").hop_limit(1)), []);
    assert_eq!(node.n_dropped(DropReason::HopLimitExhausted), 1);
}

#[test]
fn parameters_are_checked_against_their_digest_only_where_that_is_set() {
    let mut asked = tachonym_packet::Interest::new(name("/a"));
    asked.nonce = Some(tachonym_packet::Nonce([7; 4]));
    asked.application_parameters = Some(b"parameters".to_vec());
    let good = asked.encode();
    let mut bad = good.clone();
    *bad.last_mut().expect("not empty") ^= 1;
    for (verify_parameters_digest, n_bad_sent) in [(false, 1), (true, 0)] {
        let mut node = Node::with(EngineConfig {
            verify_parameters_digest,
            ..EngineConfig::default()
        });
        node.face(A, REMOTE).face(B, REMOTE).route("/", B, 0);
        let sent = node.receive(A, &bad, Headers::default());
        assert_eq!(sent.len(), n_bad_sent);
        let n_dropped = node.n_dropped(DropReason::BadParametersDigest);
        assert_eq!(n_dropped, 1 - n_bad_sent as u64);
        assert_eq!(node.engine.sizes().n_pit_entries, n_bad_sent);
        node.advance(ms(5_000));
        node.advance(ms(7_000));
        assert_eq!(node.receive(A, &good, Headers::default()).len(), 1);
        assert_eq!(node.interest(A, &interest("/b")).len(), 1);
    }
}

#[test]
fn hop_limit_is_decreased_by_one() {
    let mut node = forwarding_node();
    let sent = node.interest(A, &interest("/a").hop_limit(7));
    assert_eq!(sent[0].interest().hop_limit(), Some(6));
}

#[test]
fn interest_whose_hop_limit_has_become_zero_leaves_only_to_local_faces() {
    let mut node = forwarding_node();
    node.face(D, LOCAL).route("/local", D, 0);
    assert_eq!(node.interest(A, &interest("/a").hop_limit(1)), []);
    assert_eq!(node.n_dropped(DropReason::HopLimitExhausted), 1);
    let sent = node.interest(A, &interest("/local").hop_limit(1));
    assert_eq!(summary(&sent), [(D, Kind::Interest)]);
    assert_eq!(sent[0].interest().hop_limit(), Some(0));
}

#[test]
fn lifetime_defaults_to_four_seconds() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a"));
    node.advance(ms(3_999));
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
    node.advance(ms(3));
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
    assert_eq!(node.engine.counters().n_unsatisfied_interests, 1);
}

#[test]
fn endless_lifetime_is_cut_to_the_configured_maximum() {
    let mut node = Node::with(EngineConfig {
        max_lifetime_ms: 60_000,
        ..EngineConfig::default()
    });
    node.face(A, REMOTE).face(B, REMOTE).route("/", B, 0);
    node.interest(A, &interest("/a").lifetime_ms(u64::MAX));
    node.advance(ms(59_999));
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
    node.advance(ms(3));
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
}

#[test]
fn congestion_mark_of_an_interest_travels_on() {
    let mut node = forwarding_node();
    let headers = Headers {
        congestion_mark: 1,
        ..Headers::default()
    };
    let sent = node.receive(A, &interest("/a").wire(), headers);
    assert_eq!(sent[0].headers.congestion_mark, 1);
}

#[test]
fn pit_token_never_travels_upstream() {
    let mut node = forwarding_node();
    let sent = node.receive(A, &interest("/a").wire(), token(b"secret"));
    assert_eq!(sent[0].token(), None);
}

#[test]
fn localhost_interest_from_a_non_local_face_is_dropped() {
    let mut node = Node::with_remote_faces();
    node.face(D, LOCAL).route("/localhost", D, 0);
    assert_eq!(node.interest(A, &interest("/localhost/x")), []);
    assert_eq!(node.n_dropped(DropReason::LocalhostScope), 1);
    // A name that only looks like it is not in that scope.
    node.route("/localhosts", D, 0);
    assert_eq!(
        summary(&node.interest(A, &interest("/localhosts"))),
        [(D, Kind::Interest)]
    );
}

#[test]
fn localhost_interest_goes_to_local_faces_only() {
    let mut node = Node::with_remote_faces();
    node.face(C, LOCAL).face(D, LOCAL);
    node.route("/localhost", B, 0).route("/localhost", D, 5);
    assert_eq!(
        summary(&node.interest(C, &interest("/localhost/x"))),
        [(D, Kind::Interest)]
    );
}

#[test]
fn localhost_data_from_a_non_local_face_is_dropped() {
    let mut node = Node::with_remote_faces();
    node.face(C, LOCAL).face(D, LOCAL).route("/localhost", D, 0);
    node.interest(C, &interest("/localhost/x"));
    assert_eq!(node.data(B, &data("/localhost/x")), []);
    assert_eq!(node.n_dropped(DropReason::LocalhostScope), 1);
    assert_eq!(
        summary(&node.data(D, &data("/localhost/x"))),
        [(C, Kind::Data)]
    );
}

#[test]
fn localhop_interest_from_a_non_local_face_is_not_forwarded_to_a_non_local_face() {
    let mut node = Node::with_remote_faces();
    node.face(C, LOCAL).face(D, LOCAL);
    node.route("/localhop", B, 0).route("/localhop", D, 5);
    assert_eq!(
        summary(&node.interest(A, &interest("/localhop/1"))),
        [(D, Kind::Interest)]
    );
    assert_eq!(
        summary(&node.interest(C, &interest("/localhop/2"))),
        [INTEREST_TO_B]
    );
}

#[test]
fn nonce_pending_from_another_face_is_a_loop_and_nacked() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(7));
    let looped = interest("/a").nonce(7).wire();
    let sent = node.receive(C, &looped, token(b"t"));
    assert_eq!(summary(&sent), [(C, Kind::Nack(NackReason::Duplicate))]);
    assert_eq!(
        (&sent[0].wire, sent[0].token()),
        (&looped, Some(b"t".to_vec()))
    );
    assert_eq!(node.n_dropped(DropReason::InterestLoop), 1);
    // The first downstream alone is served.
    assert_eq!(summary(&node.data(B, &data("/a"))), [(A, Kind::Data)]);
}

#[test]
fn nonce_coming_back_from_the_upstream_is_a_loop() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(7));
    let sent = node.interest(B, &interest("/a").nonce(7));
    assert_eq!(summary(&sent), [(B, Kind::Nack(NackReason::Duplicate))]);
}

#[test]
fn loop_on_a_link_with_several_peers_is_dropped_without_a_nack() {
    for traits in [MULTI_ACCESS, AD_HOC] {
        let mut node = forwarding_node();
        node.face(C, traits);
        node.interest(A, &interest("/a").nonce(7));
        assert_eq!(node.interest(C, &interest("/a").nonce(7)), []);
        // There, even the same face may be another peer.
        node.interest(C, &interest("/a").nonce(8));
        assert_eq!(node.interest(C, &interest("/a").nonce(8)), []);
        assert_eq!(node.n_dropped(DropReason::InterestLoop), 2);
    }
}

#[test]
fn same_nonce_from_the_same_face_is_a_retransmission() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(7));
    assert_eq!(node.interest(A, &interest("/a").nonce(7)), []);
    node.advance(ms(20));
    assert_eq!(
        summary(&node.interest(A, &interest("/a").nonce(7))),
        [INTEREST_TO_B]
    );
    assert_eq!(node.n_dropped(DropReason::InterestLoop), 0);
}

#[test]
fn nonce_in_the_dead_nonce_list_is_a_loop() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(7).lifetime_ms(100));
    node.advance(ms(102));
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
    node.advance(ms(5_900));
    for face in [A, C] {
        let sent = node.interest(face, &interest("/a").nonce(7));
        assert_eq!(summary(&sent), [(face, Kind::Nack(NackReason::Duplicate))]);
    }
    assert_eq!(
        summary(&node.interest(C, &interest("/a").nonce(8))),
        [INTEREST_TO_B]
    );
    assert_eq!(
        summary(&node.interest(C, &interest("/a/b").nonce(7))),
        [INTEREST_TO_B]
    );
}

#[test]
fn dead_nonce_is_forgotten_soon_after_six_seconds_though_no_other_dies() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(7).lifetime_ms(100));
    node.advance(ms(102));
    assert_eq!(node.engine.sizes().n_dead_nonces, 1);
    node.advance(ms(6_500));
    assert_eq!(
        summary(&node.interest(C, &interest("/a").nonce(7))),
        [INTEREST_TO_B]
    );
}

#[test]
fn localhop_data_reaches_local_and_non_local_downstreams() {
    let mut node = Node::with_remote_faces();
    node.face(C, LOCAL).face(D, LOCAL).route("/localhop", D, 0);
    node.interest(A, &interest("/localhop/1").nonce(1));
    node.interest(C, &interest("/localhop/1").nonce(2));
    let sent = node.data(D, &data("/localhop/1"));
    assert_eq!(summary(&sent), [(A, Kind::Data), (C, Kind::Data)]);
    // A neighbour cannot have its Interest sent on by joining a local one.
    node.route("/localhop", B, 0);
    node.interest(C, &interest("/localhop/2").nonce(1));
    node.advance(ms(300));
    let sent = node.interest(A, &interest("/localhop/2").nonce(2));
    assert!(sent.iter().all(|sent| sent.face != B), "{sent:?}");
}

#[test]
fn next_hop_face_id_does_not_lead_back_nor_beyond_the_hop_limit() {
    let mut node = forwarding_node();
    node.face(A, LOCAL);
    let told = |face| Headers {
        next_hop_face_id: Some(face),
        ..Headers::default()
    };
    assert_eq!(node.receive(A, &interest("/b").wire(), told(A)), []);
    assert_eq!(node.n_dropped(DropReason::NextHopFaceUnusable), 1);
    let last_hop = interest("/c").hop_limit(1).wire();
    assert_eq!(node.receive(A, &last_hop, told(C)), []);
    assert_eq!(node.n_dropped(DropReason::HopLimitExhausted), 1);
}

#[test]
fn content_store_answers_before_a_next_hop_face_id_counts() {
    let mut node = forwarding_node();
    node.face(C, LOCAL);
    node.interest(A, &interest("/a"));
    node.data(B, &data("/a"));
    let told = Headers {
        next_hop_face_id: Some(D),
        ..Headers::default()
    };
    let sent = node.receive(C, &interest("/a").nonce(2).wire(), told);
    assert_eq!(summary(&sent), [(C, Kind::Data)]);
}

#[test]
fn forwarding_hint_steers_by_the_first_delegation_that_matches() {
    let mut node = forwarding_node();
    node.route("/isp2", C, 0).route("/isp3", D, 0);
    let hinted = interest("/a/x").hint(&["/isp1", "/isp2/site", "/isp3"]);
    let sent = node.interest(A, &hinted);
    assert_eq!(summary(&sent), [(C, Kind::Interest)]);
    assert_eq!(sent[0].wire, hinted.wire());
    // None that matches: the name does not count.
    let sent = node.interest(A, &interest("/a/y").hint(&["/isp1"]));
    assert_eq!(summary(&sent), [(A, Kind::Nack(NackReason::NoRoute))]);
}

#[test]
fn delegations_beyond_the_first_ones_are_not_looked_at() {
    let mut node = forwarding_node();
    node.route("/isp", C, 0);
    let delegations = |n_others: usize| {
        let others = (0..n_others).map(|n| format!("/other/{n}"));
        others.chain(["/isp".to_owned()]).collect::<Vec<_>>()
    };
    let hinted = |uri: &str, n_others: usize| {
        let hint = delegations(n_others);
        let hint: Vec<&str> = hint.iter().map(String::as_str).collect();
        interest(uri).hint(&hint)
    };
    let sent = node.interest(A, &hinted("/a/x", MAX_DELEGATIONS - 1));
    assert_eq!(summary(&sent), [(C, Kind::Interest)]);
    let sent = node.interest(A, &hinted("/a/y", MAX_DELEGATIONS));
    assert_eq!(summary(&sent), [(A, Kind::Nack(NackReason::NoRoute))]);
    // Nor does one of them make a region: the Interest keeps its hint, which leads nowhere.
    let mut node = forwarding_node_in("/isp/site");
    let sent = node.interest(A, &hinted("/a/z", MAX_DELEGATIONS));
    assert_eq!(summary(&sent), [(A, Kind::Nack(NackReason::NoRoute))]);
}

#[test]
fn forwarding_hint_is_stripped_inside_the_producer_region() {
    let mut node = forwarding_node_in("/isp2/site/7");
    let sent = node.interest(
        A,
        &interest("/a/x").hint(&["/isp1", "/isp2/site"]).hop_limit(9),
    );
    assert_eq!(summary(&sent), [INTEREST_TO_B]);
    assert!(!sent[0].interest().has_forwarding_hint());
    assert_eq!(
        (sent[0].nonce(), sent[0].interest().hop_limit()),
        (1, Some(8))
    );
    // It joins what is pending without a hint.
    node.interest(C, &interest("/a/x").nonce(2));
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
    let elsewhere = node.interest(A, &interest("/a/y").hint(&["/isp2/site/7/8"]));
    assert_eq!(summary(&elsewhere), [(A, Kind::Nack(NackReason::NoRoute))]);
}

#[test]
fn nack_for_a_stripped_interest_returns_it_as_it_came() {
    let mut node = Node::with_remote_faces_and(in_region("/isp"));
    node.route("/a", B, 0);
    let hinted = interest("/a").hint(&["/isp"]).wire();
    node.receive(A, &hinted, Headers::default());
    let sent = node.receive(C, &hinted, Headers::default());
    assert_eq!(summary(&sent), [(C, Kind::Nack(NackReason::Duplicate))]);
    assert_eq!(sent[0].wire, hinted);
}

#[test]
fn interests_differing_in_name_selectors_or_hint_are_pending_apart() {
    let mut node = forwarding_node();
    node.route("/isp", B, 0);
    let variants = [
        interest("/a"),
        interest("/a/b"),
        interest("/a").prefix(),
        interest("/a").fresh(),
        interest("/a").prefix().fresh(),
        interest("/a").hint(&["/isp"]),
        interest("/a").hint(&["/isp/x"]),
    ];
    for (n, variant) in variants.iter().enumerate() {
        assert_eq!(node.interest(A, &variant.clone().nonce(10)).len(), 1, "{n}");
        assert_eq!(node.engine.sizes().n_pit_entries, n + 1);
        // The same again, from another face, joins it.
        assert_eq!(node.interest(C, &variant.clone().nonce(11)), [], "{n}");
        assert_eq!(node.engine.sizes().n_pit_entries, n + 1);
    }
    assert_eq!(
        node.engine.counters().n_aggregated_interests,
        variants.len() as u64
    );
}

#[test]
fn pending_interest_from_a_second_face_is_aggregated_with_its_own_token() {
    let mut node = forwarding_node();
    node.receive(A, &interest("/a").nonce(1).wire(), token(b"A's"));
    assert_eq!(
        node.receive(C, &interest("/a").nonce(2).wire(), token(b"C's")),
        []
    );
    assert_eq!(node.interest(D, &interest("/a").nonce(3)), []);
    assert_eq!(node.engine.counters().n_aggregated_interests, 2);
    let sent = node.data(B, &data("/a"));
    let mut tokens: Vec<_> = sent.iter().map(|sent| (sent.face, sent.token())).collect();
    tokens.sort();
    assert_eq!(
        tokens,
        [
            (A, Some(b"A's".to_vec())),
            (C, Some(b"C's".to_vec())),
            (D, None)
        ]
    );
}

#[test]
fn expired_downstream_gets_no_data() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(1).lifetime_ms(100));
    node.interest(C, &interest("/a").nonce(2).lifetime_ms(200));
    node.advance(ms(150));
    assert_eq!(summary(&node.data(B, &data("/a"))), [(C, Kind::Data)]);
}

#[test]
fn retransmission_extends_the_wait_of_its_downstream() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(1).lifetime_ms(100));
    node.advance(ms(60));
    node.interest(A, &interest("/a").nonce(2).lifetime_ms(100));
    node.advance(ms(90));
    assert_eq!(summary(&node.data(B, &data("/a"))), [(A, Kind::Data)]);
}

#[test]
fn interest_without_route_is_nacked_to_point_to_point_downstreams() {
    let mut node = Node::with_remote_faces();
    node.face(C, MULTI_ACCESS).face(D, AD_HOC);
    let unroutable = interest("/a").wire();
    let sent = node.receive(A, &unroutable, token(b"t"));
    assert_eq!(summary(&sent), [(A, Kind::Nack(NackReason::NoRoute))]);
    assert_eq!(
        (&sent[0].wire, sent[0].token()),
        (&unroutable, Some(b"t".to_vec()))
    );
    assert_eq!(node.interest(C, &interest("/b")), []);
    assert_eq!(node.interest(D, &interest("/c")), []);
    assert_eq!(node.n_dropped(DropReason::NoRoute), 3);
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
    assert_eq!(node.engine.counters().n_unsatisfied_interests, 3);
}

#[test]
fn interest_never_goes_back_to_the_face_it_came_from() {
    let mut node = forwarding_node();
    let sent = node.interest(B, &interest("/a"));
    assert_eq!(summary(&sent), [(B, Kind::Nack(NackReason::NoRoute))]);
}

#[test]
fn interest_and_data_do_not_go_back_to_a_multi_access_face() {
    let mut node = forwarding_node();
    node.face(B, MULTI_ACCESS).route("/a", C, 5);
    assert_eq!(
        summary(&node.interest(B, &interest("/a"))),
        [(C, Kind::Interest)]
    );
    // It leaves by the link for another face; all who wait there hear the answer.
    node.advance(ms(20));
    let sent = node.interest(A, &interest("/a").nonce(2));
    assert_eq!(summary(&sent), [INTEREST_TO_B]);
    assert_eq!(summary(&node.data(B, &data("/a"))), [(A, Kind::Data)]);
    assert_eq!(node.engine.counters().n_satisfied_interests, 1);
}

#[test]
fn interest_goes_back_to_an_ad_hoc_face() {
    let mut node = forwarding_node();
    node.face(B, AD_HOC);
    assert_eq!(summary(&node.interest(B, &interest("/a"))), [INTEREST_TO_B]);
    assert_eq!(summary(&node.data(B, &data("/a"))), [(B, Kind::Data)]);
}

#[test]
fn next_hop_face_id_overrides_the_fib() {
    let mut node = forwarding_node();
    node.face(A, LOCAL);
    let told = |face| Headers {
        next_hop_face_id: Some(face),
        ..Headers::default()
    };
    let sent = node.receive(A, &interest("/a").wire(), told(C));
    assert_eq!(summary(&sent), [(C, Kind::Interest)]);
    assert_eq!(sent[0].headers.next_hop_face_id, None);
    assert_eq!(summary(&node.data(C, &data("/a"))), [(A, Kind::Data)]);
    // Not over a face that is not there, nor beyond the scope of the name.
    assert_eq!(
        node.receive(A, &interest("/b").wire(), told(FaceId(999))),
        []
    );
    assert_eq!(
        node.receive(A, &interest("/localhost/c").wire(), told(C)),
        []
    );
    assert_eq!(node.n_dropped(DropReason::NextHopFaceUnusable), 2);
}

#[test]
fn interest_that_finds_the_pit_full_is_counted_and_nacked_with_congestion() {
    let mut config = EngineConfig::default();
    config.pit.max_entries = 2;
    let mut node = Node::with(config);
    node.face(A, REMOTE)
        .face(B, REMOTE)
        .face(C, MULTI_ACCESS)
        .face(D, REMOTE)
        .route("/", B, 0);
    node.interest(A, &interest("/1"));
    node.interest(D, &interest("/2"));
    let sent = node.receive(A, &interest("/3").wire(), token(b"t"));
    assert_eq!(summary(&sent), [(A, Kind::Nack(NackReason::Congestion))]);
    assert_eq!(sent[0].token(), Some(b"t".to_vec()));
    assert_eq!(node.interest(C, &interest("/4")), []);
    assert_eq!(node.n_dropped(DropReason::PitFull), 2);
    assert_eq!(node.engine.pit().refusals().n_too_many_entries, 2);
    // Pending ones can still be joined, and room comes back.
    assert_eq!(node.interest(C, &interest("/1").nonce(2)), []);
    node.data(B, &data("/2"));
    assert_eq!(summary(&node.interest(D, &interest("/3"))), [INTEREST_TO_B]);
}

#[test]
fn a_consumer_that_asks_for_everything_leaves_room_for_others() {
    let mut config = EngineConfig::default();
    config.pit.max_entries = 100;
    let mut node = Node::with(config);
    for face in [A, B, C] {
        node.face(face, REMOTE);
    }
    node.route("/", B, 0);
    let greedy = |n: usize| interest(&format!("/greedy/{n}")).lifetime_ms(600_000);
    for n in 0..50 {
        assert_eq!(summary(&node.interest(A, &greedy(n))), [INTEREST_TO_B]);
    }
    for n in 50..200 {
        let sent = node.interest(A, &greedy(n));
        assert_eq!(summary(&sent), [(A, Kind::Nack(NackReason::Congestion))]);
    }
    assert_eq!(node.n_dropped(DropReason::PitShareUsed), 150);
    assert_eq!(node.n_dropped(DropReason::PitFull), 0);
    for n in 0..20 {
        let sent = node.interest(C, &interest(&format!("/modest/{n}")));
        assert_eq!(summary(&sent), [INTEREST_TO_B]);
    }
    // No lifetime is longer than a minute.
    node.advance(Duration::from_secs(61));
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
    assert_eq!(summary(&node.interest(A, &greedy(999))), [INTEREST_TO_B]);
}

#[test]
fn a_source_gets_no_more_of_the_pit_by_opening_more_faces() {
    let refused_at = |n_faces: u64| {
        let mut config = EngineConfig::default();
        config.pit.max_entries = 100;
        let mut node = Node::with(config);
        node.face(B, REMOTE).face(C, REMOTE).route("/", B, 0);
        let address = "192.0.2.1:6363".parse().expect("an address");
        let traits = FaceTraits {
            source: Some(SourceId::of_peer(&address)),
            ..REMOTE
        };
        let face = |n: u64| FaceId(10_000 + n % n_faces);
        for n in 0..n_faces {
            node.face(face(n), traits);
        }
        let is_served = |node: &mut Node, n: u64| {
            let sent = node.interest(face(n), &interest(&format!("/greedy/{n}")));
            summary(&sent) == [INTEREST_TO_B]
        };
        let n_served = (0..100).position(|n| !is_served(&mut node, n));
        assert_eq!(summary(&node.interest(C, &interest("/c"))), [INTEREST_TO_B]);
        n_served
    };
    assert_eq!(refused_at(1), Some(50));
    assert_eq!(refused_at(50), Some(50));
}

#[test]
fn a_neighbours_hint_does_not_lead_to_what_is_local() {
    let mut node = Node::new();
    node.face(A, REMOTE)
        .face(B, REMOTE)
        .face(C, LOCAL)
        .face(D, LOCAL)
        .route("/localhost/nfd", D, 0)
        .route("/region", B, 0);
    let hinted = |uri: &str| interest(uri).hint(&["/localhost/nfd"]);
    let sent = node.interest(A, &hinted("/x"));
    assert_eq!(summary(&sent), [(A, Kind::Nack(NackReason::NoRoute))]);
    // Another delegation serves, and so does the same one on this host.
    let both = interest("/y").hint(&["/localhost/nfd", "/region"]);
    let sent = node.interest(A, &both);
    assert_eq!(summary(&sent), [INTEREST_TO_B]);
    let sent = node.interest(C, &hinted("/z"));
    assert_eq!(summary(&sent), [(D, Kind::Interest)]);
}

#[test]
fn downstream_beyond_the_records_of_an_entry_is_counted_and_nacked() {
    let mut config = EngineConfig::default();
    config.pit.max_records_per_entry = 2;
    let mut node = Node::with(config);
    for face in [A, B, C, D] {
        node.face(face, REMOTE);
    }
    node.route("/", B, 0);
    node.interest(A, &interest("/1").nonce(1));
    node.interest(C, &interest("/1").nonce(2));
    let sent = node.interest(D, &interest("/1").nonce(3));
    assert_eq!(summary(&sent), [(D, Kind::Nack(NackReason::Congestion))]);
    assert_eq!(node.n_dropped(DropReason::InRecordsFull), 1);
    assert_eq!(node.data(B, &data("/1")).len(), 2);
}

#[test]
fn packet_from_an_unknown_face_is_dropped() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a"));
    node.engine.remove_face(B);
    assert_eq!(node.data(B, &data("/a")), []);
    assert_eq!(node.interest(FaceId(999), &interest("/a")), []);
    assert_eq!(node.n_dropped(DropReason::UnknownFace), 2);
}

#[test]
fn an_interest_for_a_prefix_of_management_takes_the_route_of_management() {
    let mut node = Node::with(EngineConfig {
        management_prefix: Some(name("/localhost/nfd")),
        ..EngineConfig::default()
    });
    let management = FaceId::INTERNAL;
    node.face(A, LOCAL).face(B, LOCAL).face(C, REMOTE);
    node.route("/localhost/nfd", management, 0);
    let mut nonce = 0;
    let mut asks = |node: &mut Node, face, uri: &str, can_be_prefix| {
        nonce += 1;
        let mut asked = interest(uri).nonce(nonce);
        asked.can_be_prefix = can_be_prefix;
        let sent = summary(&node.interest(face, &asked));
        node.advance(ms(5_000));
        sent
    };
    let to_management = [(management, Kind::Interest)];
    assert_eq!(asks(&mut node, A, "/localhost", true), to_management);
    assert_eq!(asks(&mut node, A, "/localhost/nfd", true), to_management);
    let counters = node.engine.counters();
    assert_eq!(counters.n_cs_misses_of_management, 1);
    let nack = [(A, Kind::Nack(NackReason::NoRoute))];
    assert_eq!(asks(&mut node, A, "/localhost", false), nack);
    assert_eq!(
        asks(&mut node, A, "/localhost/nfd/a/b", false),
        to_management
    );
    let counters = node.engine.counters();
    assert_eq!(
        (counters.n_cs_misses, counters.n_cs_misses_of_management),
        (4, 2)
    );
    assert_eq!(asks(&mut node, A, "/localhost/x", true), nack);
    assert_eq!(asks(&mut node, C, "/localhost", true), []);
    assert_eq!(node.n_dropped(DropReason::LocalhostScope), 1);
    // A default route does not hide it, and one of the name itself does.
    node.route("/", B, 0);
    assert_eq!(asks(&mut node, B, "/localhost", true), to_management);
    node.route("/localhost", B, 0);
    let to_program = [(B, Kind::Interest)];
    assert_eq!(asks(&mut node, A, "/localhost", true), to_program);
}

#[test]
fn a_refused_interest_does_not_shorten_its_entry() {
    let mut config = EngineConfig::default();
    config.pit.max_entries = 8;
    let mut node = Node::with(config);
    for face in [A, B, C, D] {
        node.face(face, REMOTE);
    }
    node.route("/", B, 0);
    node.interest(A, &interest("/z").lifetime_ms(4_000).nonce(1));
    node.interest(D, &interest("/z").lifetime_ms(10).nonce(2));
    for (face, uri) in [(C, "/0"), (C, "/1"), (C, "/2"), (D, "/3")] {
        node.interest(face, &interest(uri).lifetime_ms(60_000));
    }
    // C has its share. A is gone, and what is left of the entry has expired.
    node.engine.remove_face(A);
    node.advance(ms(200));
    assert_eq!(node.engine.sizes().n_pit_entries, 5);
    let sent = node.interest(C, &interest("/z").nonce(3));
    assert_eq!(summary(&sent), [(C, Kind::Nack(NackReason::Congestion))]);
    node.advance(ms(10));
    assert_eq!(node.engine.sizes().n_pit_entries, 5);
    node.advance(ms(4_000));
    assert_eq!(node.engine.sizes().n_pit_entries, 4);
}
