//! Rules for the `self-learning` strategy and for what it makes of prefix
//! announcements, through a whole engine.

mod bed;

use bed::*;
use tachonym_forward::{DropReason, EngineConfig, FaceTraits};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, NackReason};

type Ask<'a> = &'a dyn Fn(&mut Node, Interest) -> Vec<Sent>;

const PROGRAM: FaceId = FaceId(300);
const PRODUCER: FaceId = FaceId(301);

fn to(face: FaceId) -> (FaceId, Kind) {
    (face, Kind::Interest)
}

/// Four faces to other hosts, two to programs here, and no route.
fn node() -> Node {
    let mut node = Node::with_remote_faces();
    node.face(PROGRAM, LOCAL).face(PRODUCER, LOCAL);
    node.strategy("/a", "self-learning");
    // The store must not answer instead.
    node.engine.cs_mut().set_serves(false);
    node
}

fn non_discovery() -> Headers {
    Headers {
        non_discovery: true,
        ..Headers::default()
    }
}

fn marks(sent: &[Sent]) -> Vec<bool> {
    sent.iter().map(|sent| sent.headers.non_discovery).collect()
}

fn announcements(sent: &[Sent]) -> Vec<(FaceId, Option<&[u8]>)> {
    sent.iter()
        .filter(|sent| sent.kind == Kind::Data)
        .map(|sent| (sent.face, sent.announcement.as_deref()))
        .collect()
}

#[test]
fn interest_without_a_route_goes_to_everybody_elsewhere() {
    let mut node = node();
    let sent = node.interest(PROGRAM, &interest("/a/1"));
    assert_eq!(summary(&sent), [A, B, C, D].map(to));
    assert_eq!(marks(&sent), [false; 4]);
    // Not back, unless the link is ad hoc.
    let sent = node.interest(B, &interest("/a/2"));
    assert_eq!(summary(&sent), [A, C, D].map(to));
    node.face(B, AD_HOC);
    let sent = node.interest(B, &interest("/a/3"));
    assert_eq!(summary(&sent), [A, B, C, D].map(to));
}

#[test]
fn discovery_keeps_the_scope_of_names() {
    let mut node = node();
    node.strategy("/localhop", "self-learning");
    node.strategy("/localhost", "self-learning");
    let none = [(A, Kind::Nack(NackReason::NoRoute))];
    assert_eq!(summary(&node.interest(A, &interest("/localhop/1"))), none);
    let sent = node.interest(PROGRAM, &interest("/localhop/2"));
    assert_eq!(summary(&sent), [A, B, C, D].map(to));
    let sent = node.interest(PROGRAM, &interest("/localhost/1"));
    assert_eq!(summary(&sent), [(PROGRAM, Kind::Nack(NackReason::NoRoute))]);
}

#[test]
fn discovery_goes_to_256_faces_at_most_and_to_strangers_last() {
    let mut node = node();
    let remote = FaceTraits {
        is_on_demand: true,
        ..REMOTE
    };
    for id in (1_000..2_000).rev() {
        node.face(FaceId(id), remote);
    }
    // One that is asked for later comes first, and so does one that has become so.
    node.face(FaceId(5_000), REMOTE);
    node.face(FaceId(1_999), REMOTE);
    node.engine.remove_face(B);
    let sent = node.interest(PROGRAM, &interest("/a/1"));
    let faces: Vec<_> = sent.iter().map(|sent| sent.face.0).collect();
    let asked_for = [A.0, C.0, D.0, 1_999, 5_000];
    let expected: Vec<_> = asked_for.into_iter().chain(1_000..1_251).collect();
    assert_eq!(faces, expected);
    assert_eq!(node.n_dropped(DropReason::DiscoveryTooWide), 1);
    for id in 1_251..1_999 {
        node.engine.remove_face(FaceId(id));
    }
    node.interest(PROGRAM, &interest("/a/2"));
    assert_eq!(node.n_dropped(DropReason::DiscoveryTooWide), 1);
}

#[test]
fn who_discovers_much_leaves_the_pending_interest_table_to_others() {
    let mut config = EngineConfig::default();
    config.pit.max_bytes = 4 << 20;
    let mut node = Node::with(config);
    node.strategy("/", "self-learning");
    for id in 1_000..1_256 {
        node.face(FaceId(id), REMOTE);
    }
    let (greedy, other) = (FaceId(1_000), FaceId(1_001));
    for n in 0..1_000 {
        node.interest(greedy, &interest(&format!("/greedy/{n}")));
    }
    assert!(node.n_dropped(DropReason::PitShareUsed) > 500);
    for n in 0..50 {
        let sent = node.interest(other, &interest(&format!("/other/{n}")));
        assert_eq!(sent.len(), 255, "{n}");
    }
}

#[test]
fn interest_with_a_route_follows_it_marked_non_discovery() {
    let mut node = node();
    node.route("/a", B, 10).route("/a", C, 20);
    let sent = node.interest(A, &interest("/a/1"));
    assert_eq!(summary(&sent), [to(B), to(C)]);
    assert_eq!(marks(&sent), [true; 2]);
    let sent = node.receive(A, &interest("/a/2").wire(), non_discovery());
    assert_eq!(summary(&sent), [to(B), to(C)]);
    assert_eq!(marks(&sent), [true; 2]);
}

#[test]
fn non_discovery_interest_without_a_route_is_nacked() {
    let mut node = node();
    let sent = node.receive(A, &interest("/a/1").wire(), non_discovery());
    assert_eq!(summary(&sent), [(A, Kind::Nack(NackReason::NoRoute))]);
    assert_eq!(node.n_dropped(DropReason::NoRoute), 1);
    assert_eq!(node.engine.sizes().n_pit_entries, 0);
    // While another downstream's discovery is under way, its answer may come.
    node.interest(B, &interest("/a/2"));
    node.advance(ms(20));
    let joined = interest("/a/2").nonce(2).wire();
    assert_eq!(node.receive(A, &joined, non_discovery()), []);
    let sent = node.data(C, &data("/a/2"));
    assert_eq!(sent.len(), 2);
}

#[test]
fn retransmissions_are_held_back_10_ms_and_then_twice_as_long_each_time() {
    let mut node = node();
    let again =
        |node: &mut Node, nonce| node.interest(PROGRAM, &interest("/a/1").nonce(nonce)).len();
    assert_eq!(again(&mut node, 1), 4);
    node.advance(ms(9));
    assert_eq!(again(&mut node, 2), 0);
    node.advance(ms(1));
    assert_eq!(again(&mut node, 3), 4);
    node.advance(ms(19));
    assert_eq!(again(&mut node, 4), 0);
    node.advance(ms(1));
    assert_eq!(again(&mut node, 5), 4);
    assert_eq!(node.engine.counters().n_aggregated_interests, 2);
}

#[test]
fn announcement_with_the_data_of_a_discovery_is_learnt_and_handed_on() {
    let mut node = node();
    node.interest(A, &interest("/a/1"));
    node.interest(PROGRAM, &interest("/a/1").nonce(2));
    let sent = node.announcing_data(C, &data("/a/1"), b"announcement");
    assert_eq!((sent[0].face, sent[0].kind), (C, Kind::LearnRoute));
    assert_eq!(sent[0].wire, name("/a/1").view().value_bytes());
    assert_eq!(sent[0].announcement.as_deref(), Some(&b"announcement"[..]));
    // Programs here have no use for it.
    assert_eq!(
        announcements(&sent),
        [(A, Some(&b"announcement"[..])), (PROGRAM, None)]
    );
}

#[test]
fn only_downstreams_that_discover_get_an_announcement() {
    let mut node = node();
    node.route("/a", C, 10);
    node.receive(A, &interest("/a/1").wire(), non_discovery());
    node.interest(B, &interest("/a/1").nonce(2));
    let sent = node.announcing_data(C, &data("/a/1"), b"announcement");
    assert_eq!(
        announcements(&sent),
        [(A, None), (B, Some(&b"announcement"[..]))]
    );
}

#[test]
fn nothing_is_learnt_from_who_was_not_asked_to_be_discovered() {
    let mut node = node();
    // Along a route.
    node.route("/a", C, 10);
    node.interest(A, &interest("/a/1"));
    let sent = node.announcing_data(C, &data("/a/1"), b"announcement");
    assert_eq!(summary(&sent), [(A, Kind::Data)]);
    // From a face that was not asked at all.
    node.interest(A, &interest("/a/2"));
    let sent = node.announcing_data(D, &data("/a/2"), b"announcement");
    assert_eq!(sent, []);
    assert_eq!(node.n_dropped(DropReason::UnsolicitedData), 1);
    // By another strategy.
    node.route("/b", C, 10);
    node.interest(A, &interest("/b/1"));
    let sent = node.announcing_data(C, &data("/b/1"), b"announcement");
    assert_eq!(summary(&sent), [(A, Kind::Data)]);
    assert_eq!(announcements(&sent), [(A, Some(&b"announcement"[..]))]);
    // From one that became another's, though that learns routes, too.
    node.engine
        .routes()
        .lock()
        .remove_next_hop(name("/a").view(), C);
    node.interest(A, &interest("/a/x/3"));
    node.strategy("/a/x", "self-learning");
    let sent = node.announcing_data(C, &data("/a/x/3"), b"announcement");
    assert_eq!(summary(&sent), [(A, Kind::Data)]);
}

#[test]
fn unasked_data_teaches_nothing() {
    let mut node = node();
    assert_eq!(node.announcing_data(C, &data("/a/1"), b"announcement"), []);
    assert_eq!(node.n_dropped(DropReason::UnsolicitedData), 1);
}

fn keep(node: &mut Node, prefix: &str, wire: &[u8]) {
    let kept = node
        .engine
        .choices_mut()
        .keep_announcement(name(prefix).view(), 1, wire);
    kept.unwrap();
}

#[test]
fn known_announcement_goes_with_the_data_of_a_route_to_who_discovers() {
    let mut node = node();
    node.route("/a", PRODUCER, 0);
    keep(&mut node, "/a", b"of a");
    keep(&mut node, "/a/b", b"of b");
    let exchange = |node: &mut Node, uri: &str, brought: Option<&[u8]>| {
        node.interest(A, &interest(uri));
        node.receive(B, &interest(uri).nonce(2).wire(), non_discovery());
        node.interest(PROGRAM, &interest(uri).nonce(3));
        let sent = match brought {
            Some(wire) => node.announcing_data(PRODUCER, &data(uri), wire),
            None => node.data(PRODUCER, &data(uri)),
        };
        assert_eq!(sent.len(), 3);
        let announced: Vec<_> = announcements(&sent)
            .into_iter()
            .filter_map(|(face, wire)| Some((face, wire?.to_vec())))
            .collect();
        announced
    };
    assert_eq!(exchange(&mut node, "/a/1", None), [(A, b"of a".to_vec())]);
    assert_eq!(exchange(&mut node, "/a/b/1", None), [(A, b"of b".to_vec())]);
    // What was checked counts more than what comes.
    let garbage = Some(&b"garbage"[..]);
    assert_eq!(
        exchange(&mut node, "/a/2", garbage),
        [(A, b"of a".to_vec())]
    );
    // The other strategies learn no routes.
    node.strategy("/a", "best-route");
    assert_eq!(exchange(&mut node, "/a/3", None), []);
    node.strategy("/a", "self-learning");
    node.engine
        .choices_mut()
        .forget_announcement(name("/a/b").view());
    assert_eq!(exchange(&mut node, "/a/b/2", None), [(A, b"of a".to_vec())]);
    node.engine
        .choices_mut()
        .forget_announcement(name("/a").view());
    assert_eq!(exchange(&mut node, "/a/4", None), []);
}

#[test]
fn known_announcement_goes_with_what_the_content_store_answers() {
    let mut node = node();
    node.engine.cs_mut().set_serves(true);
    node.route("/a", PRODUCER, 0);
    keep(&mut node, "/a", b"of a");
    node.interest(PROGRAM, &interest("/a/1"));
    node.data(PRODUCER, &data("/a/1"));
    let announced = |sent: &[Sent]| match announcements(sent)[..] {
        [(_, wire)] => wire.map(<[u8]>::to_vec),
        _ => panic!("{sent:?}"),
    };
    let ask = interest("/a/1").nonce(2);
    let of_a = Some(b"of a".to_vec());
    assert_eq!(announced(&node.interest(A, &ask)), of_a);
    assert_eq!(announced(&node.interest(A, &interest("/a").prefix())), of_a);
    assert_eq!(announced(&node.interest(PROGRAM, &ask)), None);
    let known = node.receive(A, &ask.wire(), non_discovery());
    assert_eq!(announced(&known), None);
    node.strategy("/a", "best-route");
    assert_eq!(announced(&node.interest(A, &ask)), None);
}

#[test]
fn neighbour_that_looks_for_what_is_routed_to_it_is_no_route() {
    let mut node = node();
    node.route("/a", B, 10);
    let sent = node.interest(B, &interest("/a/1"));
    assert_eq!(sent[0].wire, name("/a/1").view().value_bytes());
    assert_eq!(
        summary(&sent),
        [(B, Kind::ForgetRoute), to(A), to(C), to(D)]
    );
    assert_eq!(marks(&sent), [false; 4]);
    // There is another way: perhaps that is the better one.
    node.route("/a", C, 10);
    assert_eq!(summary(&node.interest(B, &interest("/a/2"))), [to(C)]);
    // It knows that it has no route, and wants none found.
    node.engine
        .routes()
        .lock()
        .remove_next_hop(name("/a").view(), C);
    let sent = node.receive(B, &interest("/a/3").wire(), non_discovery());
    assert_eq!(summary(&sent), [(B, Kind::Nack(NackReason::NoRoute))]);
    // Where there are several peers, another one may know the way.
    node.face(B, MULTI_ACCESS);
    let sent = node.interest(B, &interest("/a/4"));
    assert_eq!(summary(&sent), [A, C, D].map(to));
    // A program of this host does not have its route taken.
    node.route("/p", PROGRAM, 0).strategy("/p", "self-learning");
    let sent = node.interest(PROGRAM, &interest("/p/1"));
    assert_eq!(summary(&sent), [A, B, C, D].map(to));
}

#[test]
fn data_that_answers_several_interests_of_a_face_announces_if_one_discovers() {
    let mut node = node();
    node.route("/a", C, 10);
    let plain = |node: &mut Node, ask: Interest| node.interest(A, &ask.nonce(2));
    let marked = |node: &mut Node, ask: Interest| node.receive(A, &ask.wire(), non_discovery());
    for (n, asks) in [[&plain as Ask<'_>, &marked], [&marked, &plain]]
        .into_iter()
        .enumerate()
    {
        let uri = format!("/a/{n}");
        asks[0](&mut node, interest(&uri).prefix());
        asks[1](&mut node, interest(&uri));
        let sent = node.announcing_data(C, &data(&uri), b"announcement");
        assert_eq!(announcements(&sent), [(A, Some(&b"announcement"[..]))]);
    }
}

#[test]
fn nack_no_route_of_a_next_hop_takes_its_learnt_route() {
    let mut node = node();
    node.route("/a", B, 10).route("/a", C, 10);
    let sent = node.interest(A, &interest("/a/1"));
    let forgotten = node.nack(B, NackReason::NoRoute, &sent[0].wire);
    assert_eq!(summary(&forgotten), [(B, Kind::ForgetRoute)]);
    assert_eq!(forgotten[0].wire, name("/a/1").view().value_bytes());
    // Another reason says nothing about routes.
    let nacked = node.nack(C, NackReason::Congestion, &sent[1].wire);
    assert_eq!(summary(&nacked), [(A, Kind::Nack(NackReason::Congestion))]);
}

#[test]
fn nacks_of_a_discovery_and_of_programs_here_take_no_route() {
    let mut node = node();
    let sent = node.interest(A, &interest("/a/1"));
    for sent in &sent {
        let told = summary(&node.nack(sent.face, NackReason::NoRoute, &sent.wire));
        let last = [(A, Kind::Nack(NackReason::NoRoute))];
        assert_eq!(told, if sent.face == D { &last[..] } else { &[] });
    }
    node.route("/a", PRODUCER, 0);
    let sent = node.interest(A, &interest("/a/2"));
    let told = node.nack(PRODUCER, NackReason::NoRoute, &sent[0].wire);
    assert_eq!(summary(&told), [(A, Kind::Nack(NackReason::NoRoute))]);
    node.strategy("/a", "best-route").route("/a", B, 0);
    node.engine
        .routes()
        .lock()
        .remove_next_hop(name("/a").view(), PRODUCER);
    let sent = node.interest(A, &interest("/a/3"));
    let told = node.nack(B, NackReason::NoRoute, &sent[0].wire);
    assert_eq!(summary(&told), [(A, Kind::Nack(NackReason::NoRoute))]);
}

#[test]
fn every_strategy_leaves_the_mark_non_discovery_on_an_interest() {
    for strategy in tachonym_forward::registered_strategies() {
        let mut node = node();
        let set = node
            .engine
            .choices_mut()
            .set_strategy(name("/a").view(), strategy.view());
        set.unwrap();
        node.route("/a", B, 10);
        let sent = node.receive(A, &interest("/a/1").wire(), non_discovery());
        assert_eq!((summary(&sent), marks(&sent)), (vec![to(B)], vec![true]));
        let sent = node.interest(A, &interest("/a/2"));
        let is_marked = strategy.to_string().contains("self-learning");
        assert_eq!(marks(&sent), [is_marked], "{strategy}");
    }
}

#[test]
fn mark_non_discovery_stays_on_what_is_sent_later() {
    let mut node = node();
    node.route("/m", B, 10).strategy("/m", "multicast");
    node.route("/c", B, 10).route("/c", C, 10);
    node.strategy("/c", "access");
    node.receive(A, &interest("/m/1").wire(), non_discovery());
    node.route("/m", C, 10);
    let sent = node.advance(ms(1_000));
    assert_eq!((summary(&sent), marks(&sent)), (vec![to(C)], vec![true]));
    // `access` has learnt that B works, and B nacks.
    node.interest(A, &interest("/c/1"));
    node.data(B, &data("/c/1"));
    let sent = node.receive(A, &interest("/c/2").wire(), non_discovery());
    assert_eq!(summary(&sent), [to(B)]);
    let sent = node.nack(B, NackReason::Congestion, &sent[0].wire);
    assert_eq!((summary(&sent), marks(&sent)), (vec![to(C)], vec![true]));
}
