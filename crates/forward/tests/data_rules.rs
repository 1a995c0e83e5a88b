//! Rules for Data: whom it satisfies, who gets it, when it comes too late.

mod bed;

use bed::*;
use tachonym_forward::{DropReason, PacketKind};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, NackReason};

fn forwarding_node() -> Node {
    let mut node = Node::with_remote_faces();
    node.route("/", B, 0);
    node
}

#[test]
fn data_goes_to_the_downstream_bit_for_bit() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a"));
    let sent = node.data(B, &data("/a"));
    assert_eq!(summary(&sent), [(A, Kind::Data)]);
    assert_eq!(sent[0].wire, data("/a").wire());
    let headers = Headers {
        incoming_face_id: Some(B),
        ..Headers::default()
    };
    assert_eq!(sent[0].headers, headers);
    assert_eq!(node.engine.counters().n_satisfied_interests, 1);
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
}

#[test]
fn data_satisfies_exact_prefix_digest_and_fresh_interests_at_once() {
    let mut node = Node::new();
    let answer = data("/a/b/c");
    let full = bed::Interest {
        name: answer.full_name(),
        ..interest("/")
    };
    let asked = [
        interest("/a/b/c"),
        interest("/a/b/c").prefix(),
        interest("/a").prefix(),
        interest("/a/b").prefix().fresh(),
        full,
    ];
    let not_asked = [
        interest("/a/b"),
        interest("/a/b/c/d").prefix(),
        interest("/b").prefix(),
    ];
    let faces = |n: usize| tachonym_packet::FaceId(300 + n as u64);
    node.face(B, REMOTE).route("/", B, 0);
    for (n, asked) in asked.iter().chain(&not_asked).enumerate() {
        node.face(faces(n), REMOTE);
        assert_eq!(node.interest(faces(n), asked).len(), 1, "{n}");
    }
    let mut got: Vec<_> = node.data(B, &answer).iter().map(|sent| sent.face).collect();
    got.sort();
    assert_eq!(got, (0..asked.len()).map(faces).collect::<Vec<_>>());
    assert_eq!(node.engine.sizes().n_pit_entries, not_asked.len());
    assert_eq!(
        node.engine.counters().n_satisfied_interests,
        asked.len() as u64
    );
}

#[test]
fn data_that_answers_two_interests_of_a_downstream_is_sent_to_it_once() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a/b").nonce(1));
    node.interest(A, &interest("/a").prefix().nonce(2));
    node.interest(C, &interest("/a").prefix().nonce(3));
    assert_eq!(
        summary(&node.data(B, &data("/a/b"))),
        [(A, Kind::Data), (C, Kind::Data)]
    );
}

#[test]
fn downstream_with_different_tokens_gets_each_of_them_back() {
    let mut node = forwarding_node();
    node.receive(A, &interest("/a/b").nonce(1).wire(), token(b"1"));
    node.receive(A, &interest("/a").prefix().nonce(2).wire(), token(b"2"));
    let sent = node.data(B, &data("/a/b"));
    let tokens: Vec<_> = sent.iter().map(|sent| sent.token()).collect();
    assert_eq!(tokens, [Some(b"1".to_vec()), Some(b"2".to_vec())]);
}

#[test]
fn data_does_not_go_back_to_the_face_that_brought_it() {
    // C asks for what it has been asked for itself.
    let mut node = forwarding_node();
    node.route("/", C, 0).strategy("/", "multicast");
    assert_eq!(node.interest(A, &interest("/a").nonce(1)).len(), 2);
    node.interest(C, &interest("/a").nonce(2));
    assert_eq!(summary(&node.data(C, &data("/a"))), [(A, Kind::Data)]);
}

#[test]
fn pit_tokens_of_every_length_come_back_with_the_data() {
    let mut node = forwarding_node();
    for len in 1..=32 {
        let bytes: Vec<u8> = (0..len).collect();
        let uri = format!("/a/{len}");
        node.receive(A, &interest(&uri).wire(), token(&bytes));
        // What the upstream says of tokens is its own affair.
        let sent = node.receive(B, &data(&uri).wire(), token(b"upstream's"));
        assert_eq!(sent[0].token(), Some(bytes));
    }
}

#[test]
fn latest_token_of_a_downstream_comes_back() {
    let mut node = forwarding_node();
    node.receive(A, &interest("/a").nonce(1).wire(), token(b"old"));
    node.receive(A, &interest("/a").nonce(2).wire(), token(b"new"));
    assert_eq!(node.data(B, &data("/a"))[0].token(), Some(b"new".to_vec()));
}

#[test]
fn congestion_mark_of_data_travels_to_every_downstream_and_is_not_stored() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(1));
    node.interest(C, &interest("/a").nonce(2));
    let headers = Headers {
        congestion_mark: 3,
        ..Headers::default()
    };
    let sent = node.receive(B, &data("/a").wire(), headers);
    assert!(sent.iter().all(|sent| sent.headers.congestion_mark == 3));
    assert_eq!(sent.len(), 2);
    let stored = node.interest(D, &interest("/a").nonce(3));
    assert_eq!(
        (stored[0].kind, stored[0].headers.congestion_mark),
        (Kind::Data, 0)
    );
}

#[test]
fn data_after_satisfaction_is_unsolicited() {
    let mut node = forwarding_node();
    node.route("/", C, 0).strategy("/", "multicast");
    assert_eq!(node.interest(A, &interest("/a")).len(), 2);
    assert_eq!(node.data(B, &data("/a").content(b"first")).len(), 1);
    assert_eq!(node.data(C, &data("/a").content(b"second")), []);
    assert_eq!(node.n_dropped(DropReason::UnsolicitedData), 1);
    // It has not replaced the first one in the store either.
    let sent = node.interest(D, &interest("/a").nonce(2));
    assert_eq!(sent[0].wire, data("/a").content(b"first").wire());
}

#[test]
fn a_drop_is_on_record_with_face_kind_reason_and_time() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    node.now = node.now + ms(10);
    node.data(A, &data("/a/unsolicited"));
    node.now = node.now + ms(10);
    node.interest(C, &interest("/elsewhere").nonce(7));
    node.nack(B, NackReason::NoRoute, &interest("/a/nack").wire());
    let last_ms = node.now;
    node.now = node.now + ms(10);
    node.interest(A, &interest("/a/answered"));
    node.data(B, &data("/a/answered"));
    let records = |prefix: &str| {
        let found = node
            .engine
            .recent_drops()
            .newest_under(name(prefix).view(), 9);
        let fields = found
            .iter()
            .map(|it| (it.name().name(), it.kind(), it.face(), it.reason()));
        fields.collect::<Vec<_>>()
    };
    let unsolicited = (
        name("/a/unsolicited"),
        PacketKind::Data,
        A,
        DropReason::UnsolicitedData,
    );
    let nack = (
        name("/a/nack"),
        PacketKind::Nack,
        B,
        DropReason::NackNotPending,
    );
    let stranded = (
        name("/elsewhere"),
        PacketKind::Interest,
        C,
        DropReason::NoRoute,
    );
    assert_eq!(records("/a"), [nack, unsolicited]);
    assert_eq!(records("/elsewhere"), [stranded]);
    let newest = node
        .engine
        .recent_drops()
        .newest_under(name("/elsewhere").view(), 1);
    assert_eq!((newest[0].last(), newest[0].n_drops()), (last_ms, 1));
}

#[test]
fn data_of_the_internal_face_that_nobody_waits_for_is_no_drop() {
    let mut node = forwarding_node();
    assert_eq!(node.data(FaceId::INTERNAL, &data("/localhost/nfd/x")), []);
    let counters = node.engine.counters();
    assert_eq!(
        (counters.n_unawaited_replies, counters.n_unsolicited_data),
        (1, 0)
    );
    assert!(counters.drops().all(|(_, n_dropped)| n_dropped == 0));
    assert_eq!(node.engine.sizes().n_cs_entries, 0);
    // That of any other face is.
    node.data(A, &data("/x"));
    let counters = node.engine.counters();
    assert_eq!(
        (counters.n_unawaited_replies, counters.n_unsolicited_data),
        (1, 1)
    );
    assert_eq!(node.n_dropped(DropReason::UnsolicitedData), 1);
}

#[test]
fn data_for_an_expired_interest_is_unsolicited_even_before_the_timer_runs() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").lifetime_ms(100));
    node.now = node.now + ms(100);
    assert_eq!(node.data(B, &data("/a")), []);
    assert_eq!(node.n_dropped(DropReason::UnsolicitedData), 1);
    assert_eq!(node.engine.sizes().n_cs_entries, 0);
}

#[test]
fn nonces_of_unsatisfied_interests_live_on_for_six_seconds() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(7).lifetime_ms(10));
    node.advance(ms(12));
    assert_eq!(node.engine.sizes().n_dead_nonces, 1);
    node.advance(ms(5_990));
    let sent = node.interest(C, &interest("/a").nonce(7));
    assert_eq!(summary(&sent), [(C, Kind::Nack(NackReason::Duplicate))]);
}

#[test]
fn nonces_live_on_after_must_be_fresh_data_that_is_fresh_for_less_than_the_list_lasts() {
    let is_dead = |fresh: bool, freshness_ms: u64| {
        let mut node = forwarding_node();
        let mut asked = interest("/a").nonce(7);
        asked.must_be_fresh = fresh;
        node.interest(A, &asked);
        node.data(B, &data("/a").fresh_ms(freshness_ms));
        node.engine.sizes().n_dead_nonces == 1
    };
    assert!(is_dead(true, 0));
    assert!(is_dead(true, 5_999));
    assert!(!is_dead(true, 6_000));
    assert!(!is_dead(false, 0));
}

#[test]
fn data_for_a_downstream_that_has_gone_is_unsolicited() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a"));
    assert!(node.engine.remove_face(A));
    assert_eq!(node.data(B, &data("/a")), []);
    assert_eq!(node.engine.counters().n_unsolicited_data, 1);
}

#[test]
fn face_that_goes_takes_its_routes_and_pending_records_with_it() {
    let mut node = Node::with_remote_faces();
    node.route("/1", B, 0).route("/1", C, 5).route("/2", B, 0);
    node.interest(A, &interest("/1").nonce(1));
    node.interest(D, &interest("/1").nonce(2));
    node.interest(A, &interest("/2").nonce(3));
    assert!(node.engine.remove_face(B));
    assert!(node.engine.remove_face(A));
    assert!(!node.engine.remove_face(A));
    assert_eq!(node.engine.sizes().n_fib_entries, 1);
    assert!(node.engine.poll_timeout().is_some_and(|at| at <= node.now));
    node.advance(ms(0));
    // No downstream waits for /2; D waits for /1, whose upstream has gone: a
    // retransmission is as good as new.
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
    let sent = node.interest(D, &interest("/1").nonce(4));
    assert_eq!(summary(&sent), [(C, Kind::Interest)]);
}

#[test]
fn new_face_with_the_number_of_one_that_has_gone_inherits_nothing() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a"));
    node.engine.remove_face(A);
    node.engine.remove_face(B);
    node.face(A, REMOTE).face(B, REMOTE);
    assert_eq!(node.engine.sizes().n_fib_entries, 0);
    assert_eq!(node.data(B, &data("/a")), []);
    assert_eq!(node.engine.counters().n_unsolicited_data, 1);
}

#[test]
fn new_face_is_not_the_upstream_that_had_its_number() {
    let mut node = forwarding_node();
    let sent = node.interest(A, &interest("/a"));
    node.engine.remove_face(B);
    node.face(B, REMOTE);
    assert_eq!(node.nack(B, NackReason::NoRoute, &sent[0].wire), []);
    assert_eq!(node.n_dropped(DropReason::NackMismatch), 1);
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
}

#[test]
fn face_that_vanishes_in_mid_burst_costs_only_its_own_packets() {
    let mut node = forwarding_node();
    for n in 0..10 {
        node.interest(A, &interest(&format!("/a/{n}")));
        node.interest(C, &interest(&format!("/a/{n}")).nonce(2));
    }
    for n in 0..10 {
        if n == 5 {
            // Records of faces that have gone are swept out now and then only.
            node.engine.remove_face(D);
            node.advance(ms(0));
            node.engine.remove_face(A);
        }
        let sent = node.data(B, &data(&format!("/a/{n}")));
        assert_eq!(sent.len(), if n < 5 { 2 } else { 1 });
    }
    assert_eq!(node.n_dropped(DropReason::DownstreamGone), 5);
}
