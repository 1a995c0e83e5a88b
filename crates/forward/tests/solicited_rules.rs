//! Rules for solicited Data: a Data satisfies only Interests that were sent to the face that
//! brings it, and is cached only if it satisfies one.

mod bed;

use bed::*;
use tachonym_forward::{DropReason, EngineConfig, UnsolicitedDataPolicy};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, NackReason};

/// `/` leads to B; A, C and D are peers, too.
fn forwarding_node() -> Node {
    let mut node = Node::with_remote_faces();
    node.route("/", B, 0);
    node
}

/// The forged Data, and the producer's.
fn forged_and_true(uri: &str) -> (Data, Data) {
    (data(uri).content(b"forged"), data(uri).content(b"true"))
}

/// Checks that the router has nothing cached under `uri`, asks the producer at B, and delivers
/// and caches its answer.
fn assert_served_by_producer(node: &mut Node, uri: &str) {
    let true_data = data(uri).content(b"true");
    assert_eq!(node.engine.sizes().n_cs_entries, 0);
    let sent = node.interest(C, &interest(uri).nonce(901));
    assert_eq!(summary(&sent), [(B, Kind::Interest)]);
    let sent = node.data(B, &true_data);
    assert!(sent.iter().any(|it| it.face == C), "{sent:?}");
    assert!(sent.iter().all(|it| it.wire == true_data.wire()));
    let cached = node.interest(D, &interest(uri).nonce(902));
    assert_eq!(summary(&cached), [(D, Kind::Data)]);
    assert_eq!(cached[0].wire, true_data.wire());
}

#[test]
fn an_interest_that_went_nowhere_is_not_satisfied_by_its_own_sender() {
    let mut node = forwarding_node();
    let (forged, _) = forged_and_true("/bank/x");
    assert_eq!(node.interest(A, &interest("/bank/x").hop_limit(1)), []);
    assert_eq!(node.data(A, &forged), []);
    assert_eq!(node.n_dropped(DropReason::UnsolicitedData), 1);
    assert_eq!(node.engine.counters().n_unsolicited_data, 1);
    assert_eq!(node.engine.counters().n_satisfied_interests, 0);
    assert_served_by_producer(&mut node, "/bank/x");
}

#[test]
fn a_face_that_was_not_asked_satisfies_nothing_while_the_asked_one_still_may() {
    let mut node = forwarding_node();
    let (forged, true_data) = forged_and_true("/bank/x");
    node.interest(A, &interest("/bank/x").nonce(1));
    node.interest(D, &interest("/bank").prefix().nonce(2));
    for face in [A, C, D] {
        assert_eq!(node.data(face, &forged), [], "{face}");
    }
    assert_eq!(node.n_dropped(DropReason::UnsolicitedData), 3);
    assert_eq!(node.engine.sizes().n_pit_entries, 2);
    assert_eq!(node.engine.sizes().n_cs_entries, 0);
    let sent = node.data(B, &true_data);
    assert_eq!(summary(&sent), [(A, Kind::Data), (D, Kind::Data)]);
    assert_eq!(node.engine.sizes().n_cs_entries, 1);
}

#[test]
fn data_satisfies_of_several_entries_those_that_went_to_its_face() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0).route("/isp", C, 0);
    node.interest(A, &interest("/a").nonce(1));
    let hinted = node.interest(D, &interest("/a").hint(&["/isp"]).nonce(2));
    assert_eq!(summary(&hinted), [(C, Kind::Interest)]);
    let sent = node.data(B, &data("/a"));
    assert_eq!(summary(&sent), [(A, Kind::Data)]);
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
    let sent = node.data(C, &data("/a"));
    assert_eq!(summary(&sent), [(D, Kind::Data)]);
}

#[test]
fn an_upstream_may_answer_late_as_long_as_the_entry_is_pending() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a").nonce(1).lifetime_ms(100));
    node.advance(ms(5));
    // Held back, so B is not asked again; the first transmission is over before the answer.
    assert_eq!(node.interest(D, &interest("/a").nonce(2)), []);
    node.advance(ms(200));
    assert_eq!(summary(&node.data(B, &data("/a"))), [(D, Kind::Data)]);
}

#[test]
fn a_retransmission_finds_the_upstream_that_came_back_under_a_new_number() {
    for kind in ["best-route", "multicast", "asf", "random", "access"] {
        let mut node = forwarding_node();
        node.strategy("/", kind);
        node.interest(A, &interest("/a").nonce(1));
        node.engine.remove_face(B);
        let back = FaceId(300);
        node.face(back, REMOTE).route("/", back, 0);
        // It was asked as B, and answers as another face, which was not asked unless the
        // strategy did so as soon as there was the route.
        let asked_at_once = node.advance(ms(15));
        if asked_at_once.is_empty() {
            assert_eq!(node.data(back, &data("/a")), [], "{kind}");
            let sent = node.interest(A, &interest("/a").nonce(2));
            assert_eq!(summary(&sent), [(back, Kind::Interest)], "{kind}");
        }
        let sent = node.data(back, &data("/a"));
        assert_eq!(summary(&sent), [(A, Kind::Data)], "{kind}");
        assert_eq!(node.engine.sizes().n_cs_entries, 1, "{kind}");
    }
}

#[test]
fn a_face_does_not_inherit_what_its_number_was_asked_for() {
    let mut node = forwarding_node();
    node.interest(A, &interest("/a"));
    node.engine.remove_face(B);
    node.face(B, REMOTE);
    assert_eq!(node.data(B, &data("/a").content(b"forged")), []);
    assert_eq!(node.n_dropped(DropReason::UnsolicitedData), 1);
    assert_eq!(node.engine.sizes().n_cs_entries, 0);
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
}

#[test]
fn a_nack_leaves_its_sender_asked() {
    // It may have found a way meanwhile, and the entry waits for another upstream.
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0).route("/a", C, 1);
    let first = node.interest(A, &interest("/a").nonce(1));
    node.advance(ms(20));
    assert_eq!(node.interest(A, &interest("/a").nonce(2)).len(), 1);
    assert_eq!(node.nack(B, NackReason::NoRoute, &first[0].wire), []);
    assert_eq!(summary(&node.data(B, &data("/a"))), [(A, Kind::Data)]);
}

#[test]
fn the_slower_upstream_of_an_entry_that_is_satisfied_is_measured_and_not_cached() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0)
        .route("/a", C, 1)
        .strategy("/a", "asf");
    // The first probe of a route is sent within five seconds.
    let mut n_sent = 0;
    let mut number = 0;
    while n_sent != 2 {
        node.advance(ms(100));
        number += 1;
        n_sent = node.interest(A, &interest(&format!("/a/{number}"))).len();
        if n_sent == 1 {
            node.data(B, &data(&format!("/a/{number}")));
        }
        assert!(number < 60, "no probe");
    }
    let (uri, n_cached) = (format!("/a/{number}"), node.engine.sizes().n_cs_entries);
    assert_eq!(node.data(B, &data(&uri).content(b"first")).len(), 1);
    for _ in 0..2 {
        assert_eq!(node.data(C, &data(&uri).content(b"second")), []);
    }
    assert_eq!(node.engine.sizes().n_cs_entries, n_cached + 1);
    let cached = node.interest(D, &interest(&uri).nonce(9));
    assert_eq!(cached[0].wire, data(&uri).content(b"first").wire());
}

#[test]
fn an_entry_asked_for_again_while_it_lingers_waits_for_those_asked_since() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0)
        .route("/a", C, 1)
        .strategy("/a", "asf");
    let mut number = 0;
    loop {
        node.advance(ms(100));
        number += 1;
        if node.interest(A, &interest(&format!("/a/{number}"))).len() == 2 {
            break;
        }
        node.data(B, &data(&format!("/a/{number}")));
        assert!(number < 60, "no probe");
    }
    let uri = format!("/a/{number}");
    let no_cache = Headers {
        no_cache: true,
        ..Headers::default()
    };
    assert_eq!(node.receive(B, &data(&uri).wire(), no_cache).len(), 1);
    // Sent again, to B only. What C still owes was for the Interest before.
    let again = node.interest(D, &interest(&uri).nonce(7));
    assert_eq!(summary(&again), [(B, Kind::Interest)]);
    assert_eq!(node.data(C, &data(&uri)), []);
    assert_eq!(summary(&node.data(B, &data(&uri))), [(D, Kind::Data)]);
}

#[test]
fn data_overheard_on_a_link_with_several_peers_satisfies_only_what_was_sent_there() {
    let mut node = Node::with_remote_faces();
    node.face(A, MULTI_ACCESS).route("/", B, 0);
    // A neighbour on the link asks, and another one there answers.
    node.interest(A, &interest("/a").nonce(1));
    assert_eq!(node.data(A, &data("/a").content(b"overheard")), []);
    assert_eq!(node.engine.sizes().n_cs_entries, 0);
    assert_eq!(summary(&node.data(B, &data("/a"))), [(A, Kind::Data)]);
    // What the router asks for on the link comes back by it.
    let mut node = Node::with_remote_faces();
    node.face(B, MULTI_ACCESS).route("/", B, 0);
    node.interest(A, &interest("/a").nonce(1));
    assert_eq!(summary(&node.data(B, &data("/a"))), [(A, Kind::Data)]);
    assert_eq!(node.engine.sizes().n_cs_entries, 1);
}

#[test]
fn a_next_hop_that_the_application_chose_was_asked() {
    let mut node = forwarding_node();
    node.face(A, LOCAL);
    let chosen = Headers {
        next_hop_face_id: Some(C),
        ..Headers::default()
    };
    let sent = node.receive(A, &interest("/a").wire(), chosen);
    assert_eq!(summary(&sent), [(C, Kind::Interest)]);
    assert_eq!(node.data(B, &data("/a").content(b"unasked")), []);
    assert_eq!(summary(&node.data(C, &data("/a"))), [(A, Kind::Data)]);
}

#[test]
fn replies_of_the_internal_face_are_solicited_by_the_route_to_it() {
    let mut node = forwarding_node();
    node.face(A, LOCAL)
        .route("/localhost/nfd", FaceId::INTERNAL, 0);
    let sent = node.interest(A, &interest("/localhost/nfd/x").prefix());
    assert_eq!(summary(&sent), [(FaceId::INTERNAL, Kind::Interest)]);
    let sent = node.data(FaceId::INTERNAL, &data("/localhost/nfd/x/1"));
    assert_eq!(summary(&sent), [(A, Kind::Data)]);
    assert_eq!(node.engine.sizes().n_cs_entries, 1);
}

#[test]
fn only_those_that_a_discovery_went_to_may_answer() {
    let mut node = Node::with_remote_faces();
    node.strategy("/", "self-learning");
    let sent = node.interest(A, &interest("/a"));
    assert_eq!(sent.len(), 3);
    let late = FaceId(300);
    node.face(late, REMOTE);
    for face in [A, late] {
        assert_eq!(node.data(face, &data("/a").content(b"forged")), []);
    }
    assert_eq!(summary(&node.data(D, &data("/a"))), [(A, Kind::Data)]);
}

#[test]
fn a_policy_that_admits_unsolicited_data_caches_it_and_satisfies_nothing() {
    let mut node = Node::with(EngineConfig {
        unsolicited_data: UnsolicitedDataPolicy::AdmitAll,
        ..EngineConfig::default()
    });
    for face in [A, B, C] {
        node.face(face, REMOTE);
    }
    node.route("/", B, 0);
    node.interest(A, &interest("/a").nonce(1));
    assert_eq!(node.data(C, &data("/a")), []);
    assert_eq!(node.engine.sizes().n_cs_entries, 1);
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
    let cached = node.interest(A, &interest("/a").nonce(2));
    assert_eq!(summary(&cached), [(A, Kind::Data)]);
}
