//! Rules for Nacks: which count, and when downstreams hear of them.

mod bed;

use bed::*;
use tachonym_forward::DropReason;
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, NackReason};

/// `/a` leads to B and C.
fn node_with_two_upstreams() -> Node {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0).route("/a", C, 1);
    node
}

/// Has A ask twice, with nonces 1 and 2, so that both upstreams are asked; what they get.
fn ask_both(node: &mut Node) -> Vec<Sent> {
    let mut sent = node.interest(A, &interest("/a").nonce(1));
    node.advance(ms(20));
    sent.extend(node.interest(A, &interest("/a").nonce(2)));
    assert_eq!(sent.len(), 2);
    sent
}

fn nack(reason: NackReason, face: FaceId) -> (FaceId, Kind) {
    (face, Kind::Nack(reason))
}

#[test]
fn downstream_hears_a_nack_only_when_every_upstream_has_nacked() {
    let mut node = node_with_two_upstreams();
    let sent = ask_both(&mut node);
    assert_eq!(node.nack(B, NackReason::Congestion, &sent[0].wire), []);
    let heard = node.nack(C, NackReason::NoRoute, &sent[1].wire);
    assert_eq!(summary(&heard), [nack(NackReason::Congestion, A)]);
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
    let counters = node.engine.counters();
    assert_eq!((counters.n_in_nacks, counters.n_out_nacks), (2, 1));
    assert_eq!(counters.n_unsatisfied_interests, 1);
}

#[test]
fn a_nack_names_the_face_of_the_upstream_or_the_router_itself() {
    let mut node = node_with_two_upstreams();
    let sent = ask_both(&mut node);
    node.nack(B, NackReason::Congestion, &sent[0].wire);
    let heard = node.nack(C, NackReason::NoRoute, &sent[1].wire);
    assert_eq!(heard[0].headers.incoming_face_id, Some(B));
    let own = node.interest(A, &interest("/unrouted"));
    assert_eq!(summary(&own), [nack(NackReason::NoRoute, A)]);
    assert_eq!(own[0].headers.incoming_face_id, Some(FaceId::INTERNAL));
}

#[test]
fn least_severe_reason_reaches_the_downstream() {
    use NackReason::{Congestion, Duplicate, NoRoute, Other};
    for (first, second, heard) in [
        (Congestion, Duplicate, Congestion),
        (NoRoute, Duplicate, Duplicate),
        (NoRoute, Congestion, Congestion),
        (NackReason::None, NoRoute, NoRoute),
        (Other(999), NoRoute, NoRoute),
        (Other(120), NoRoute, Other(120)),
        // What is below all that have a name is taken for none.
        (NackReason::from_code(7), Congestion, Congestion),
        (NackReason::from_code(49), NoRoute, NoRoute),
        (NackReason::from_code(7), NackReason::None, NackReason::None),
        (NackReason::None, NackReason::None, NackReason::None),
    ] {
        let mut node = node_with_two_upstreams();
        let sent = ask_both(&mut node);
        assert_eq!(node.nack(B, first, &sent[0].wire), []);
        let got = node.nack(C, second, &sent[1].wire);
        assert_eq!(summary(&got), [nack(heard, A)], "{first} {second}");
    }
}

#[test]
fn every_downstream_hears_the_nack_with_its_own_nonce_and_token() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    let ours = node.receive(A, &interest("/a").nonce(1).wire(), token(b"A's"));
    node.receive(C, &interest("/a").nonce(2).wire(), token(b"C's"));
    node.interest(D, &interest("/a").nonce(3));
    let mut heard = node.nack(B, NackReason::NoRoute, &ours[0].wire);
    heard.sort_by_key(|sent| sent.face);
    let heard: Vec<_> = heard
        .iter()
        .map(|sent| (sent.face, sent.nonce(), sent.token()))
        .collect();
    let expected = [
        (A, 1, Some(b"A's".to_vec())),
        (C, 2, Some(b"C's".to_vec())),
        (D, 3, None),
    ];
    assert_eq!(heard, expected);
}

/// An Interest with parameters, as a program writes it: the digest is theirs.
fn with_parameters(uri: &str, parameters: &[u8]) -> tachonym_packet::Interest {
    tachonym_packet::Interest {
        application_parameters: Some(parameters.to_vec()),
        ..tachonym_packet::Interest::new(name(uri))
    }
}

/// The wire of such an Interest with other parameters of the same length in the place of its
/// own.
fn forged(wire: &[u8], parameters: &[u8], other: &[u8]) -> Vec<u8> {
    assert_eq!(parameters.len(), other.len());
    let start = wire
        .windows(parameters.len())
        .rposition(|it| it == parameters)
        .expect("it has them");
    let mut forged = wire.to_vec();
    forged[start..][..other.len()].copy_from_slice(other);
    forged
}

fn nonce(nonce: u32) -> Option<tachonym_packet::Nonce> {
    Some(tachonym_packet::Nonce(nonce.to_be_bytes()))
}

#[test]
fn every_downstream_gets_its_own_interest_back() {
    let mut node = Node::with_remote_faces();
    let late = FaceId(300);
    node.face(late, REMOTE).route("/a", B, 0);
    let asked = [
        (A, interest("/a").nonce(1).lifetime_ms(9_000).hop_limit(3)),
        (C, interest("/a").nonce(2)),
        (D, interest("/a").nonce(3).lifetime_ms(700)),
        (late, interest("/a").nonce(4).hop_limit(200)),
    ];
    let mut ours = Vec::new();
    for (face, asked) in &asked {
        ours.extend(node.interest(*face, asked));
    }
    assert_eq!(ours.len(), 1);
    let mut heard = node.nack(B, NackReason::NoRoute, &ours[0].wire);
    heard.sort_by_key(|sent| sent.face);
    assert_eq!(heard.len(), 4);
    for (heard, (face, asked)) in heard.iter().zip(&asked) {
        assert_eq!((heard.face, &heard.wire), (*face, &asked.wire()));
    }
}

#[test]
fn unrecognised_elements_go_back_to_their_sender_only() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    let marked = Interest {
        padding_bytes: 20,
        ..interest("/a").nonce(1)
    };
    let ours = node.interest(A, &marked);
    node.interest(C, &interest("/a").nonce(2));
    let mut heard = node.nack(B, NackReason::NoRoute, &ours[0].wire);
    heard.sort_by_key(|sent| sent.face);
    assert_eq!(heard[0].wire, marked.wire());
    assert_eq!(heard[1].wire, interest("/a").nonce(2).wire());
}

#[test]
fn forged_parameters_are_not_forwarded_and_give_way() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    let asked = tachonym_packet::Interest {
        nonce: nonce(1),
        ..with_parameters("/a", b"true parameters")
    };
    let right = asked.encode();
    let again = |number| {
        tachonym_packet::Interest {
            nonce: nonce(number),
            ..asked.clone()
        }
        .encode()
    };
    let forge = |wire: &[u8]| forged(wire, b"true parameters", b"forged settings");
    // Theirs came first: what differs is dropped.
    let ours = node.receive(A, &right, token(b"A's"));
    assert_eq!(ours.len(), 1);
    assert_eq!(node.receive(C, &forge(&again(2)), token(b"C's")), []);
    assert_eq!(node.n_dropped(DropReason::BadParametersDigest), 1);
    // The same ones join.
    assert_eq!(node.receive(D, &again(3), token(b"D's")), []);
    let mut heard = node.nack(B, NackReason::NoRoute, &ours[0].wire);
    heard.sort_by_key(|sent| sent.face);
    let heard: Vec<_> = heard.iter().map(|it| (it.face, &it.wire)).collect();
    assert_eq!(heard, [(A, &right), (D, &again(3))]);
    // The forged ones came first: they are sent, and no more once the true ones come.
    let sent = node.receive(C, &forge(&again(4)), token(b"C's"));
    assert_eq!(sent[0].wire, forge(&again(4)));
    let sent = node.receive(A, &again(5), token(b"A's"));
    assert_eq!((sent.len(), &sent[0].wire), (1, &again(5)));
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
    let heard = node.nack(B, NackReason::NoRoute, &sent[0].wire);
    assert_eq!(summary(&heard), [nack(NackReason::NoRoute, A)]);
    assert_eq!(heard[0].wire, again(5));
}

#[test]
fn one_without_the_parameters_of_the_pending_interest_gets_none_of_them() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    let right = tachonym_packet::Interest {
        nonce: nonce(1),
        ..with_parameters("/a", b"secret")
    };
    let right = right.encode();
    let ours = node.receive(A, &right, Headers::default());
    // It knows the name, with the digest in it, and asks for the Data.
    let full = ours[0].interest().name().to_name();
    let by_name = Interest {
        name: full,
        ..interest("/").nonce(2)
    };
    assert_eq!(node.interest(C, &by_name), []);
    let heard = node.nack(B, NackReason::NoRoute, &ours[0].wire);
    assert_eq!(summary(&heard), [nack(NackReason::NoRoute, A)]);
    assert_eq!(heard[0].wire, right);
    // Data goes to both.
    let again = Interest {
        nonce: Some(3),
        ..by_name.clone()
    };
    assert_eq!(node.interest(C, &again).len(), 1);
    node.receive(A, &right_with_nonce(&right, 4), Headers::default());
    let answer = Data {
        name: by_name.name,
        ..data("/")
    };
    assert_eq!(node.data(B, &answer).len(), 2);
}

fn right_with_nonce(wire: &[u8], number: u32) -> Vec<u8> {
    let view = tachonym_packet::InterestView::parse(wire).expect("well-formed");
    let mut interest = view.to_interest();
    interest.nonce = nonce(number);
    interest.encode()
}

#[test]
fn multicast_returns_no_nacks() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0)
        .route("/a", C, 1)
        .strategy("/a", "multicast");
    let sent = node.interest(A, &interest("/a").nonce(1));
    assert_eq!(sent.len(), 2);
    assert_eq!(node.nack(B, NackReason::NoRoute, &sent[0].wire), []);
    assert_eq!(node.nack(C, NackReason::NoRoute, &sent[1].wire), []);
    assert_eq!(node.engine.counters().n_in_nacks, 2);
    // A loop is dropped and counted.
    assert_eq!(node.interest(D, &interest("/a").nonce(1)), []);
    assert_eq!(node.n_dropped(DropReason::InterestLoop), 1);
    // The Interest waits: another next hop is asked, and may answer.
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
    node.route("/a", D, 2);
    assert_eq!(summary(&node.advance(ms(20))), [(D, Kind::Interest)]);
    assert_eq!(summary(&node.data(D, &data("/a"))), [(A, Kind::Data)]);
    // Once it is dead, a loop is one still.
    node.interest(A, &interest("/a/2").nonce(5).lifetime_ms(10));
    node.advance(ms(20));
    assert_eq!(node.interest(D, &interest("/a/2").nonce(5)), []);
    assert_eq!(node.n_dropped(DropReason::InterestLoop), 2);
    assert_eq!(node.engine.counters().n_out_nacks, 0);
}

#[test]
fn multi_access_downstream_hears_no_nack() {
    let mut node = Node::with_remote_faces();
    node.face(A, MULTI_ACCESS).face(C, AD_HOC).route("/a", B, 0);
    let sent = node.interest(A, &interest("/a").nonce(1));
    node.interest(C, &interest("/a").nonce(2));
    assert_eq!(node.nack(B, NackReason::NoRoute, &sent[0].wire), []);
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
}

#[test]
fn nack_from_a_link_with_several_peers_does_not_count() {
    for traits in [MULTI_ACCESS, AD_HOC] {
        let mut node = Node::with_remote_faces();
        node.face(B, traits).route("/a", B, 0);
        let sent = node.interest(A, &interest("/a"));
        assert_eq!(node.nack(B, NackReason::NoRoute, &sent[0].wire), []);
        assert_eq!(node.n_dropped(DropReason::NackLinkType), 1);
        assert_eq!(summary(&node.data(B, &data("/a"))), [(A, Kind::Data)]);
    }
}

#[test]
fn nack_without_matching_out_record_or_nonce_does_not_count() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    node.interest(A, &interest("/a").nonce(1));
    let wrong = |nonce| interest("/a").nonce(nonce).wire();
    assert_eq!(node.nack(C, NackReason::NoRoute, &wrong(1)), []);
    assert_eq!(node.nack(B, NackReason::NoRoute, &wrong(2)), []);
    assert_eq!(node.n_dropped(DropReason::NackMismatch), 2);
    assert_eq!(
        node.nack(B, NackReason::NoRoute, &interest("/b").wire()),
        []
    );
    assert_eq!(
        node.nack(B, NackReason::NoRoute, &interest("/a").prefix().wire()),
        []
    );
    assert_eq!(node.n_dropped(DropReason::NackNotPending), 2);
    assert_eq!(node.engine.sizes().n_pit_entries, 1);
    let right = node.nack(B, NackReason::NoRoute, &wrong(1));
    assert_eq!(summary(&right), [nack(NackReason::NoRoute, A)]);
}

#[test]
fn nack_for_the_nonce_before_the_last_does_not_count() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    let first = node.interest(A, &interest("/a").nonce(1));
    node.advance(ms(20));
    let second = node.interest(A, &interest("/a").nonce(2));
    assert_eq!(node.nack(B, NackReason::Congestion, &first[0].wire), []);
    let heard = node.nack(B, NackReason::Congestion, &second[0].wire);
    assert_eq!((heard[0].face, heard[0].nonce()), (A, 2));
}

#[test]
fn upstream_that_is_a_downstream_hears_a_nack_when_all_others_have_nacked() {
    // B and this node ask each other; D is the only other upstream.
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0).route("/a", D, 1);
    let sent = ask_both(&mut node);
    node.receive(B, &interest("/a").nonce(3).wire(), token(b"B's"));
    let heard = node.nack(D, NackReason::NoRoute, &sent[1].wire);
    assert_eq!(summary(&heard), [nack(NackReason::NoRoute, B)]);
    assert_eq!(
        (heard[0].nonce(), heard[0].token()),
        (3, Some(b"B's".to_vec()))
    );
    // A hears when B has given up too.
    let heard = node.nack(B, NackReason::NoRoute, &sent[0].wire);
    assert_eq!(summary(&heard), [nack(NackReason::NoRoute, A)]);
}

#[test]
fn upstream_whose_face_has_gone_is_not_waited_for() {
    let mut node = node_with_two_upstreams();
    let sent = ask_both(&mut node);
    // Records of faces that have gone are swept out now and then only.
    node.engine.remove_face(D);
    node.advance(ms(0));
    node.engine.remove_face(B);
    let heard = node.nack(C, NackReason::NoRoute, &sent[1].wire);
    assert_eq!(summary(&heard), [nack(NackReason::NoRoute, A)]);
}

#[test]
fn silent_upstream_has_not_nacked_even_when_its_time_is_over() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0).route("/a", C, 1);
    let short = interest("/a").nonce(1).lifetime_ms(100);
    assert_eq!(node.interest(A, &short).len(), 1);
    node.advance(ms(50));
    let second = node.interest(A, &interest("/a").nonce(2));
    assert_eq!(summary(&second), [(C, Kind::Interest)]);
    node.advance(ms(60));
    assert_eq!(node.nack(C, NackReason::NoRoute, &second[0].wire), []);
    // What it sends late is still welcome.
    assert_eq!(summary(&node.data(B, &data("/a"))), [(A, Kind::Data)]);
}

#[test]
fn downstream_whose_time_is_over_hears_no_nack() {
    // B and this node ask each other, as below; B no longer waits.
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0).route("/a", D, 1);
    let sent = ask_both(&mut node);
    node.interest(B, &interest("/a").nonce(3).lifetime_ms(10));
    node.advance(ms(20));
    assert_eq!(node.nack(D, NackReason::NoRoute, &sent[1].wire), []);
    let heard = node.nack(B, NackReason::NoRoute, &sent[0].wire);
    assert_eq!(summary(&heard), [nack(NackReason::NoRoute, A)]);
}

#[test]
fn nack_for_an_expired_interest_does_not_count() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    let sent = node.interest(A, &interest("/a").lifetime_ms(100));
    node.now = node.now + ms(100);
    assert_eq!(node.nack(B, NackReason::NoRoute, &sent[0].wire), []);
    node.advance(ms(2));
    assert_eq!(node.nack(B, NackReason::NoRoute, &sent[0].wire), []);
    assert_eq!(node.n_dropped(DropReason::NackNotPending), 1);
    assert_eq!(node.engine.counters().n_out_nacks, 0);
}

#[test]
fn nack_from_the_producer_region_counts_without_the_hint() {
    // The upstream has stripped the hint before it found no route.
    let mut node = Node::with_remote_faces();
    node.route("/isp", B, 0).route("/a", C, 0);
    let hinted = interest("/a").hint(&["/isp"]).nonce(1).wire();
    assert_eq!(node.receive(A, &hinted, token(b"t")).len(), 1);
    // Another Interest for the same name, which has no hint and went elsewhere.
    assert_eq!(node.interest(D, &interest("/a").nonce(2)).len(), 1);
    let stripped = interest("/a").nonce(1).wire();
    let heard = node.nack(B, NackReason::NoRoute, &stripped);
    assert_eq!(summary(&heard), [nack(NackReason::NoRoute, A)]);
    assert_eq!(
        (&heard[0].wire, heard[0].token()),
        (&hinted, Some(b"t".to_vec()))
    );
    // A hint that this node did not send is no such thing.
    node.receive(
        A,
        &interest("/a").nonce(3).hint(&["/isp"]).wire(),
        token(b"t"),
    );
    let other = interest("/a").nonce(3).hint(&["/isp/2"]).wire();
    assert_eq!(node.nack(B, NackReason::NoRoute, &other), []);
    assert_eq!(node.n_dropped(DropReason::NackNotPending), 1);
}

#[test]
fn pit_tokens_of_every_length_come_back_with_the_nack() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    for len in 1..=32 {
        let bytes: Vec<u8> = (0..len).collect();
        let uri = format!("/a/{len}");
        let sent = node.receive(A, &interest(&uri).wire(), token(&bytes));
        let heard = node.nack(B, NackReason::NoRoute, &sent[0].wire);
        assert_eq!(heard[0].token(), Some(bytes));
    }
}

#[test]
fn nack_without_a_nonce_does_not_count() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    node.interest(A, &interest("/a"));
    let bare = interest("/a").without_nonce().wire();
    assert_eq!(node.nack(B, NackReason::NoRoute, &bare), []);
    assert_eq!(node.n_dropped(DropReason::NackMismatch), 1);
}

#[test]
fn nacked_interest_may_be_asked_again_at_once() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    let sent = node.interest(A, &interest("/a").nonce(1));
    node.nack(B, NackReason::Congestion, &sent[0].wire);
    let again = node.interest(A, &interest("/a").nonce(2));
    assert_eq!(summary(&again), [(B, Kind::Interest)]);
    // With the nonce of the dead one it is a loop.
    let looped = node.interest(C, &interest("/a").nonce(1));
    assert_eq!(summary(&looped), [nack(NackReason::Duplicate, C)]);
}

#[test]
fn nack_after_the_data_does_not_count() {
    let mut node = node_with_two_upstreams();
    let sent = ask_both(&mut node);
    node.data(B, &data("/a"));
    assert_eq!(node.nack(C, NackReason::NoRoute, &sent[1].wire), []);
    assert_eq!(node.n_dropped(DropReason::NackNotPending), 1);
}

#[test]
fn nack_header_on_a_data_is_refused() {
    let wire = data("/a").wire();
    assert!(tachonym_forward::RxPacket::parse(A, &Headers::EMPTY, &wire).is_some());
    let headers = Headers {
        nack: Some(NackReason::NoRoute),
        ..Headers::default()
    };
    assert!(tachonym_forward::RxPacket::parse(A, &headers, &wire).is_none());
}
