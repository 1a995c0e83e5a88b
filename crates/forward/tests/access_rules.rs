//! Rules for the `access` strategy, through a whole engine.

mod bed;

use bed::*;
use tachonym_packet::{FaceId, NackReason};

fn to(face: FaceId) -> (FaceId, Kind) {
    (face, Kind::Interest)
}

/// `/a` leads to B, C and D.
fn node() -> Node {
    let mut node = Node::with_remote_faces();
    for face in [B, C, D] {
        node.route("/a", face, 10);
    }
    node.strategy("/a", "access");
    // The store must not answer instead.
    node.engine.cs_mut().set_serves(false);
    node
}

/// Lets A ask for `uri`; where that leads.
fn ask(node: &mut Node, uri: &str) -> Vec<(FaceId, Kind)> {
    summary(&node.interest(A, &interest(uri).lifetime_ms(60_000)))
}

/// Lets A ask for `uri` and `face` answer after `rtt_ms`.
fn exchange(node: &mut Node, uri: &str, face: FaceId, rtt_ms: u64) {
    assert!(ask(node, uri).contains(&to(face)));
    node.advance(ms(rtt_ms));
    assert_eq!(summary(&node.data(face, &data(uri))), [(A, Kind::Data)]);
}

#[test]
fn first_interest_goes_everywhere_and_later_ones_to_who_answered() {
    let mut node = node();
    assert_eq!(ask(&mut node, "/a/x/1"), [to(B), to(C), to(D)]);
    node.data(C, &data("/a/x/1"));
    // The slower ones do not count.
    node.data(D, &data("/a/x/1"));
    assert_eq!(ask(&mut node, "/a/x/2"), [to(C)]);
    assert_eq!(node.engine.sizes().n_measurements, 1);
}

#[test]
fn what_is_learnt_of_a_data_holds_for_the_names_under_its_parent() {
    let mut node = node();
    exchange(&mut node, "/a/x/1", C, 5);
    exchange(&mut node, "/a/y/z/1", D, 5);
    assert_eq!(ask(&mut node, "/a/x/2/3"), [to(C)]);
    assert_eq!(ask(&mut node, "/a/y/w"), [to(B), to(C), to(D)]);
    assert_eq!(ask(&mut node, "/a/y/z/2"), [to(D)]);
    // A Data right under the route speaks for all of it.
    exchange(&mut node, "/a/1", B, 5);
    assert_eq!(ask(&mut node, "/a/2"), [to(B)]);
    assert_eq!(ask(&mut node, "/a/x/3"), [to(C)]);
}

#[test]
fn last_next_hop_that_is_silent_for_its_rto_is_joined_by_the_others() {
    let mut node = node();
    exchange(&mut node, "/a/1", C, 100);
    // One sample of 100 ms: RTO 100 ms + 4 * 50 ms.
    let sent = node.interest(A, &interest("/a/2").nonce(7).hop_limit(9));
    assert_eq!(summary(&sent), [to(C)]);
    assert_eq!(node.advance(ms(299)), []);
    assert_eq!(node.engine.poll_timeout(), Some(node.now + ms(1)));
    let sent = node.advance(ms(1));
    assert_eq!(summary(&sent), [to(B), to(D)]);
    for sent in &sent {
        assert_eq!((sent.nonce(), sent.interest().hop_limit()), (7, Some(8)));
        assert_eq!(sent.headers.incoming_face_id, Some(A));
    }
    assert_eq!(node.advance(ms(1_000)), []);
    assert_eq!(summary(&node.data(D, &data("/a/2"))), [(A, Kind::Data)]);
    assert_eq!(ask(&mut node, "/a/3"), [to(D)]);
}

#[test]
fn answer_in_time_ends_the_matter() {
    let mut node = node();
    exchange(&mut node, "/a/1", C, 10);
    exchange(&mut node, "/a/2", C, 199);
    assert_eq!(node.advance(ms(5_000)), []);
    assert_eq!(node.engine.poll_timeout(), None);
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
}

#[test]
fn rto_follows_the_prefix_and_begins_with_what_is_known_of_the_face() {
    let mut node = node();
    exchange(&mut node, "/a/x/1", C, 400);
    // New to the prefix, but the second sample of 400 ms for C:
    // RTO 400 ms + 4 * 150 ms.
    exchange(&mut node, "/a/y/1", C, 400);
    assert_eq!(ask(&mut node, "/a/y/2"), [to(C)]);
    assert_eq!(node.advance(ms(999)), []);
    assert_eq!(summary(&node.advance(ms(1))), [to(B), to(D)]);
    // The other prefix has its own: 400 ms + 4 * 200 ms.
    assert_eq!(ask(&mut node, "/a/x/2"), [to(C)]);
    assert_eq!(node.advance(ms(1_199)), []);
    assert_eq!(summary(&node.advance(ms(1))), [to(B), to(D)]);
}

#[test]
fn retransmissions_go_everywhere_once_in_100_ms() {
    let mut node = node();
    exchange(&mut node, "/a/1", C, 300);
    let again = |nonce| interest("/a/2").nonce(nonce).lifetime_ms(60_000);
    assert_eq!(summary(&node.interest(A, &again(1))), [to(C)]);
    node.advance(ms(99));
    assert_eq!(node.interest(A, &again(2)), []);
    assert_eq!(node.engine.counters().n_aggregated_interests, 1);
    node.advance(ms(1));
    assert_eq!(summary(&node.interest(A, &again(3))), [to(B), to(C), to(D)]);
    // Of another downstream, not back to it.
    node.advance(ms(100));
    assert_eq!(summary(&node.interest(B, &again(4))), [to(C), to(D)]);
    // All have been asked: the first one's time-out adds nothing.
    assert_eq!(node.advance(ms(5_000)), []);
}

#[test]
fn nack_of_the_last_next_hop_sends_the_interest_to_the_others() {
    let mut node = node();
    exchange(&mut node, "/a/1", C, 10);
    let sent = node.interest(A, &interest("/a/2"));
    assert_eq!(summary(&sent), [to(C)]);
    let others = node.nack(C, NackReason::NoRoute, &sent[0].wire);
    assert_eq!(summary(&others), [to(B), to(D)]);
    assert_eq!(node.advance(ms(1_000)), []);
    assert_eq!(node.nack(B, NackReason::NoRoute, &others[0].wire), []);
    assert_eq!(
        summary(&node.nack(D, NackReason::Congestion, &others[1].wire)),
        [(A, Kind::Nack(NackReason::Congestion))]
    );
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
}

#[test]
fn last_next_hop_that_may_not_be_used_is_passed_over() {
    let mut node = node();
    exchange(&mut node, "/a/x/1", C, 10);
    // It is the downstream.
    assert_eq!(
        summary(&node.interest(C, &interest("/a/x/2"))),
        [to(B), to(D)]
    );
    // It is no next hop any more.
    node.engine
        .routes()
        .lock()
        .remove_next_hop(name("/a").view(), C);
    assert_eq!(ask(&mut node, "/a/x/3"), [to(B), to(D)]);
    node.data(D, &data("/a/x/3"));
    // Its face has gone.
    node.engine.remove_face(D);
    assert_eq!(ask(&mut node, "/a/x/4"), [to(B)]);
}

#[test]
fn next_hop_that_goes_away_before_its_rto_is_replaced_by_the_others() {
    let mut node = node();
    exchange(&mut node, "/a/1", C, 10);
    assert_eq!(ask(&mut node, "/a/2"), [to(C)]);
    // A retransmission finds no entry.
    node.engine.remove_face(C);
    node.advance(ms(1));
    let again = interest("/a/2").nonce(2);
    assert_eq!(summary(&node.interest(A, &again)), [to(B), to(D)]);
}

#[test]
fn others_are_asked_though_the_face_of_the_last_next_hop_has_gone_meanwhile() {
    let mut node = node();
    exchange(&mut node, "/a/1", C, 10);
    assert_eq!(ask(&mut node, "/a/2"), [to(C)]);
    node.engine.remove_face(C);
    // Its records are swept out before the time-out.
    assert_eq!(node.advance(ms(150)), []);
    assert_eq!(summary(&node.advance(ms(50))), [to(B), to(D)]);
}

#[test]
fn what_was_learnt_is_forgotten_after_eight_seconds_without_data() {
    let mut node = node();
    exchange(&mut node, "/a/1", C, 10);
    node.advance(ms(7_999));
    exchange(&mut node, "/a/2", C, 0);
    node.advance(ms(7_999));
    assert_eq!(ask(&mut node, "/a/3"), [to(C)]);
    node.advance(ms(1));
    assert_eq!(ask(&mut node, "/a/4"), [to(B), to(C), to(D)]);
}

#[test]
fn time_out_of_an_entry_that_another_strategy_has_taken_over_means_nothing() {
    let mut node = node();
    exchange(&mut node, "/a/1", C, 10);
    assert_eq!(ask(&mut node, "/a/2"), [to(C)]);
    node.strategy("/a", "best-route");
    assert_eq!(node.advance(ms(1_000)), []);
}

#[test]
fn names_deeper_than_any_prefix_are_served_by_a_shorter_one() {
    let mut node = node();
    let deep = |n: u32| format!("/a{}/{n}", "/x".repeat(200));
    exchange(&mut node, &deep(1), D, 10);
    assert_eq!(ask(&mut node, &deep(2)), [to(D)]);
}
