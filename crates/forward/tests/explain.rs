//! What the engine says it would do with an Interest, against what it does.

mod bed;
mod two_levels_bed;

use std::time::Duration;

use bed::*;
use tachonym_forward::{AskedFace, Eligibility, Explanation, SsdFinding, WaitingFace};
use tachonym_packet::{FaceId, InterestView, NackReason};
use tachonym_tables::CsCapacity;
use two_levels_bed::TwoLevels;

fn explain_from(node: &mut Node, asked: &Interest, ingress: Option<FaceId>) -> Explanation {
    let wire = asked.wire();
    let interest = InterestView::parse(&wire).expect("an Interest of a test is well-formed");
    node.engine.inspect().explain(node.now, &interest, ingress)
}

fn explain(node: &mut Node, asked: &Interest) -> Explanation {
    explain_from(node, asked, None)
}

/// Faces, costs and eligibilities of the route.
fn hops(explanation: &Explanation) -> Vec<(FaceId, u64, Eligibility)> {
    let route = explanation.route.as_ref().expect("a route");
    let hops = route.next_hops.iter();
    hops.map(|hop| (hop.face, hop.cost, hop.eligibility))
        .collect()
}

#[test]
fn a_name_without_a_route_is_explained_with_the_strategy_that_refuses_it() {
    let mut node = Node::with_remote_faces();
    node.route("/other", B, 0).strategy("/a", "multicast");
    let found = explain(&mut node, &interest("/a/b"));
    assert_eq!(
        (found.route, found.cached, found.on_ssd),
        (None, None, None)
    );
    assert_eq!(found.pending, []);
    assert!(found.store_serves && !found.is_for_local_faces && !found.is_out_of_scope);
    assert_eq!(found.strategy_prefix, name("/a"));
    assert_eq!(
        found.strategy,
        name("/localhost/nfd/strategy/multicast/v=5")
    );
    assert_eq!(
        explain(&mut node, &interest("/b")).strategy_prefix,
        name("/")
    );
}

#[test]
fn next_hops_are_explained_in_their_order_and_with_the_reason_against_each() {
    use Eligibility::{Eligible, Incoming, OutOfScope};
    let mut node = Node::with_remote_faces();
    let local = FaceId(300);
    node.face(local, LOCAL);
    node.route("/a", C, 10)
        .route("/a", B, 1)
        .route("/localhop/a", B, 0);
    node.inherited_route("/a", D, 20, 1);
    node.route("/localhop/a", local, 5);
    let found = explain_from(&mut node, &interest("/a/b"), Some(B));
    assert_eq!(
        hops(&found),
        [(B, 1, Incoming), (C, 10, Eligible), (D, 20, Eligible)]
    );
    let route = found.route.expect("a route");
    assert_eq!((route.prefix, route.next_hops[2].distance), (name("/a"), 1));
    // What comes from a neighbour and is under /localhop goes to local programs alone.
    let found = explain_from(&mut node, &interest("/localhop/a"), Some(C));
    assert_eq!(hops(&found), [(B, 0, OutOfScope), (local, 5, Eligible)]);
    assert!(found.is_for_local_faces && !found.is_out_of_scope);
    let found = explain(&mut node, &interest("/localhop/a"));
    assert_eq!(hops(&found), [(B, 0, Eligible), (local, 5, Eligible)]);
    node.engine.remove_face(B);
    assert_eq!(hops(&explain(&mut node, &interest("/localhop/a"))).len(), 1);
}

#[test]
fn names_of_this_host_are_out_of_scope_for_faces_to_others() {
    let mut node = Node::with_remote_faces();
    let asked = interest("/localhost/x");
    assert!(explain_from(&mut node, &asked, Some(A)).is_out_of_scope);
    let found = explain(&mut node, &asked);
    assert!(!found.is_out_of_scope && found.is_for_local_faces);
}

#[test]
fn cached_data_is_explained_fresh_and_stale() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    node.interest(A, &interest("/a/b"));
    let sent = data("/a/b").fresh_ms(1_000);
    node.data(B, &sent);
    let fresh = |node: &mut Node, asked| explain(node, &asked).cached.expect("it is cached");
    let found = fresh(&mut node, interest("/a").prefix().fresh());
    assert!(found.answers);
    assert_eq!(
        (found.name, found.n_bytes),
        (name("/a/b"), sent.wire().len())
    );
    assert_eq!(found.fresh_for, ms(1_000));
    node.advance(ms(400));
    assert_eq!(fresh(&mut node, interest("/a/b")).fresh_for, ms(600));
    node.advance(ms(600));
    let found = fresh(&mut node, interest("/a/b").fresh());
    assert_eq!((found.answers, found.fresh_for), (false, Duration::ZERO));
    assert!(fresh(&mut node, interest("/a/b")).answers);
    assert_eq!(explain(&mut node, &interest("/a")).cached, None);
    node.engine.cs_mut().set_serves(false);
    let found = explain(&mut node, &interest("/a/b"));
    assert_eq!((found.store_serves, found.cached), (false, None));
}

#[test]
fn pending_interests_are_explained_with_who_waits_and_who_was_asked() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0).route("/a", C, 1);
    let sent = node.interest(A, &interest("/a").lifetime_ms(4_000));
    node.advance(ms(1_000));
    node.interest(D, &interest("/a").nonce(2).lifetime_ms(9_000));
    node.nack(B, NackReason::Congestion, &sent[0].wire);
    node.interest(A, &interest("/a").prefix().nonce(3));
    node.advance(ms(500));
    // Whatever selectors are asked about.
    for asked in [interest("/a").nonce(9), interest("/a").fresh()] {
        let pending = explain(&mut node, &asked).pending;
        let [plain, prefix] = &pending[..] else {
            panic!("{pending:?}");
        };
        assert_eq!((plain.can_be_prefix, prefix.can_be_prefix), (false, true));
        assert_eq!(plain.expires_in, ms(8_500));
        let waits = |face, since, expires_in| WaitingFace {
            face,
            since: ms(since),
            expires_in: ms(expires_in),
        };
        assert_eq!(
            plain.waiting,
            [waits(A, 1_500, 2_500), waits(D, 500, 8_500)]
        );
        let asked = |face, since, nack| AskedFace {
            face,
            since: ms(since),
            nack,
        };
        let expected = [
            asked(B, 1_500, Some(NackReason::Congestion)),
            asked(C, 500, None),
        ];
        assert_eq!(plain.asked, expected);
    }
    node.advance(Duration::from_secs(10));
    assert_eq!(explain(&mut node, &interest("/a")).pending, []);
}

#[test]
fn the_ssd_level_is_explained_without_a_read() {
    let stored: Vec<_> = (0..4).map(|i| data(&format!("/video/{i}"))).collect();
    let mut it = TwoLevels::holding(&stored);
    let n_lookups = it.store().counters().n_lookups;
    let on_ssd = |it: &mut TwoLevels, uri| explain(&mut it.node, &interest(uri)).on_ssd;
    assert_eq!(on_ssd(&mut it, "/video/2"), Some(SsdFinding::Probable));
    assert_eq!(on_ssd(&mut it, "/video/9"), Some(SsdFinding::Nothing));
    assert_eq!(it.store().counters().n_lookups, n_lookups);
}

#[test]
fn an_explanation_changes_nothing_that_a_packet_meets() {
    let mut nodes = [0, 1].map(|_| {
        let mut node = Node::with(tachonym_forward::EngineConfig {
            cs: CsCapacity {
                max_pkts: 2,
                ..CsCapacity::default()
            },
            ..Default::default()
        });
        node.face(A, REMOTE).face(B, REMOTE).route("/", B, 0);
        node
    });
    for (i, node) in nodes.iter_mut().enumerate() {
        for uri in ["/a/1", "/a/2"] {
            node.interest(A, &interest(uri));
            node.data(B, &data(uri));
        }
        for _ in 0..i * 9 {
            // The oldest Data stays the first to be evicted.
            for asked in [interest("/a/1"), interest("/a").prefix(), interest("/a/3")] {
                explain(node, &asked);
            }
        }
        node.interest(A, &interest("/a/3"));
        node.data(B, &data("/a/3"));
    }
    let [plain, explained] = &mut nodes;
    for uri in ["/a/1", "/a/2", "/a/3"] {
        let asked = interest(uri).nonce(7);
        let sent = [&mut *plain, &mut *explained].map(|node| summary(&node.interest(A, &asked)));
        assert_eq!(sent[0], sent[1], "{uri}");
    }
    assert_eq!(plain.engine.counters(), explained.engine.counters());
    let cs = |node: &Node| *node.engine.cs().counters();
    assert_eq!(cs(plain), cs(explained));
}
