//! Rules for strategies, each through a whole engine.

mod bed;

use bed::*;
use tachonym_forward::{DropReason, StrategyError, registered_strategies};
use tachonym_packet::{FaceId, NackReason};

fn to(face: FaceId) -> (FaceId, Kind) {
    (face, Kind::Interest)
}

/// `/a` leads to B, C and D, in this order of cost.
fn node_with(strategy: &str) -> Node {
    let mut node = Node::with_remote_faces();
    node.route("/a", D, 30)
        .route("/a", B, 10)
        .route("/a", C, 20);
    node.strategy("/a", strategy);
    node
}

/// What the `nonce`-th transmission by A leads to.
fn ask(node: &mut Node, nonce: u32) -> Vec<(FaceId, Kind)> {
    summary(&node.interest(A, &interest("/a").nonce(nonce).lifetime_ms(60_000)))
}

#[test]
fn best_route_takes_the_cheapest_next_hop() {
    let mut node = node_with("best-route");
    assert_eq!(ask(&mut node, 1), [to(B)]);
    node.engine
        .routes()
        .lock()
        .remove_next_hop(name("/a").view(), B);
    assert_eq!(summary(&node.interest(A, &interest("/a/x"))), [to(C)]);
    // The cheapest one that is eligible: not back to C.
    assert_eq!(summary(&node.interest(C, &interest("/a/y"))), [to(D)]);
}

#[test]
fn of_equal_cost_the_own_next_hop_comes_before_inherited_ones_and_older_faces() {
    for strategy in ["best-route", "asf"] {
        let mut node = Node::with_remote_faces();
        node.inherited_route("/a", B, 5, 2)
            .inherited_route("/a", C, 5, 1)
            .route("/a", D, 5);
        node.strategy("/a", strategy);
        let ask = |node: &mut Node, uri| {
            let sent = summary(&node.interest(A, &interest(uri)));
            sent.first().copied()
        };
        assert_eq!(ask(&mut node, "/a/1"), Some(to(D)), "{strategy}");
        // As the route goes, the nearer ancestor's follows; a lower cost counts
        // more than nearness.
        node.engine
            .routes()
            .lock()
            .remove_next_hop(name("/a").view(), D);
        assert_eq!(ask(&mut node, "/a/2"), Some(to(C)), "{strategy}");
        node.inherited_route("/a", B, 4, 2);
        assert_eq!(ask(&mut node, "/a/3"), Some(to(B)), "{strategy}");
        // Of equal distance the older face; a change of distance alone counts.
        node.inherited_route("/a", B, 5, 1);
        assert_eq!(ask(&mut node, "/a/4"), Some(to(B)), "{strategy}");
        node.route("/a", C, 5);
        assert_eq!(ask(&mut node, "/a/5"), Some(to(C)), "{strategy}");
    }
}

#[test]
fn best_route_holds_retransmissions_back_for_10_ms_doubling_to_250_ms() {
    let mut node = node_with("best-route");
    assert_eq!(ask(&mut node, 1), [to(B)]);
    let mut nonce = 1;
    for interval_ms in [10, 20, 40, 80, 160, 250, 250] {
        node.advance(ms(interval_ms - 1));
        nonce += 1;
        assert_eq!(ask(&mut node, nonce), [], "{interval_ms}");
        node.advance(ms(1));
        nonce += 1;
        assert_eq!(ask(&mut node, nonce).len(), 1, "{interval_ms}");
    }
    assert_eq!(node.engine.counters().n_aggregated_interests, 7);
}

#[test]
fn best_route_retransmits_to_the_next_unused_hop_then_to_the_one_used_longest_ago() {
    let mut node = node_with("best-route");
    let mut went_to = Vec::new();
    for nonce in 1..=7 {
        went_to.extend(ask(&mut node, nonce));
        node.advance(ms(300));
    }
    assert_eq!(went_to, [B, C, D, B, C, D, B].map(to));
}

#[test]
fn best_route_begins_anew_when_every_upstream_has_nacked_or_expired() {
    let mut node = node_with("best-route");
    let short = |nonce| interest("/a").nonce(nonce).lifetime_ms(50);
    assert_eq!(summary(&node.interest(A, &short(1))), [to(B)]);
    // Another downstream keeps the entry alive, held back.
    node.advance(ms(5));
    assert_eq!(ask(&mut node, 2), []);
    node.advance(ms(60));
    assert_eq!(ask(&mut node, 3), [to(B)]);
}

#[test]
fn best_route_parameters_change_the_suppression() {
    let mut node = node_with("best-route/v=5/retx-suppression-initial~100");
    ask(&mut node, 1);
    node.advance(ms(99));
    assert_eq!(ask(&mut node, 2), []);
    node.advance(ms(1));
    assert_eq!(ask(&mut node, 3), [to(C)]);
}

#[test]
fn multicast_takes_all_next_hops_but_the_downstream() {
    let mut node = node_with("multicast");
    assert_eq!(ask(&mut node, 1), [to(B), to(C), to(D)]);
    assert_eq!(
        summary(&node.interest(C, &interest("/a/x"))),
        [to(B), to(D)]
    );
}

#[test]
fn multicast_suppresses_retransmissions_for_each_upstream_alone() {
    let mut node = node_with("multicast");
    node.engine
        .routes()
        .lock()
        .remove_next_hop(name("/a").view(), D);
    assert_eq!(ask(&mut node, 1), [to(B), to(C)]);
    node.advance(ms(5));
    // D is new, the others were asked 5 ms ago.
    node.route("/a", D, 0);
    assert_eq!(ask(&mut node, 2), [to(D)]);
    node.advance(ms(5));
    assert_eq!(ask(&mut node, 3), [to(B), to(C)]);
    node.advance(ms(5));
    assert_eq!(ask(&mut node, 4), [to(D)]);
    // B and C are at 20 ms now, and so is D.
    node.advance(ms(14));
    assert_eq!(ask(&mut node, 5), []);
    node.advance(ms(1));
    assert_eq!(ask(&mut node, 6), [to(B), to(C)]);
}

#[test]
fn multicast_retransmission_that_is_held_back_does_not_lack_a_route() {
    let mut node = node_with("multicast");
    let short = interest("/a").nonce(1).lifetime_ms(5);
    assert_eq!(node.interest(A, &short).len(), 3);
    node.advance(ms(1));
    assert_eq!(node.interest(D, &interest("/a").nonce(2)), []);
    // No upstream is awaited any more, and it is too early to ask again.
    node.advance(ms(5));
    assert_eq!(node.interest(D, &interest("/a").nonce(3)), []);
    assert_eq!(node.n_dropped(DropReason::NoRoute), 0);
    assert_eq!(node.engine.counters().n_aggregated_interests, 2);
}

#[test]
fn multicast_interest_without_next_hop_waits_and_goes_to_one_that_comes() {
    let mut node = Node::with_remote_faces();
    node.strategy("/a", "multicast");
    assert_eq!(node.interest(A, &interest("/a/x").hop_limit(9)), []);
    assert_eq!(node.n_dropped(DropReason::NoRoute), 1);
    node.route("/b", B, 0).route("/a", A, 0);
    assert_eq!(node.advance(ms(10)), []);
    node.route("/a", B, 0);
    assert!(
        node.engine
            .poll_timeout()
            .is_some_and(|at| at <= node.now + ms(10))
    );
    let sent = node.advance(ms(10));
    assert_eq!(summary(&sent), [to(B)]);
    assert_eq!(
        (sent[0].nonce(), sent[0].interest().hop_limit()),
        (1, Some(8))
    );
    assert_eq!(sent[0].headers.incoming_face_id, Some(A));
    assert_eq!(node.advance(ms(10)), []);
    assert_eq!(summary(&node.data(B, &data("/a/x"))), [(A, Kind::Data)]);
}

#[test]
fn new_next_hop_means_nothing_to_interests_of_other_strategies() {
    let mut node = Node::with_remote_faces();
    node.strategy("/z", "multicast").route("/a", B, 0);
    node.interest(A, &interest("/a"));
    node.route("/a", C, 0);
    assert_eq!(node.advance(ms(20)), []);
}

#[test]
fn random_takes_each_eligible_next_hop_about_as_often() {
    let mut node = node_with("random");
    let mut n_by_face = [0; 3];
    for n in 0..3_000 {
        let sent = node.interest(A, &interest(&format!("/a/{n}")));
        let [ref sent] = sent[..] else {
            panic!("{sent:?}")
        };
        n_by_face[[B, C, D]
            .iter()
            .position(|&face| face == sent.face)
            .unwrap()] += 1;
    }
    assert!(
        n_by_face.iter().all(|n| (850..1150).contains(n)),
        "{n_by_face:?}"
    );
    assert_eq!(
        summary(&node.interest(A, &interest("/b"))),
        [(A, Kind::Nack(NackReason::NoRoute))]
    );
}

/// Lets an Interest be answered by the upstream it is sent to, after that face's
/// round-trip time; returns where it went.
fn exchange(node: &mut Node, n: usize, rtt_ms: impl Fn(FaceId) -> Option<u64>) -> Vec<FaceId> {
    let uri = format!("/a/{n}");
    let asked = interest(&uri).nonce(n as u32 + 1).lifetime_ms(5_000);
    let upstreams: Vec<FaceId> = node
        .interest(A, &asked)
        .iter()
        .map(|sent| sent.face)
        .collect();
    let mut answers: Vec<_> = upstreams
        .iter()
        .filter_map(|&face| Some((rtt_ms(face)?, face)))
        .collect();
    answers.sort();
    let mut elapsed_ms = 0;
    for (rtt_ms, face) in answers {
        node.advance(ms(rtt_ms - elapsed_ms));
        elapsed_ms = rtt_ms;
        node.data(face, &data(&uri));
    }
    node.advance(ms(1_000));
    upstreams
}

#[test]
fn asf_probes_unmeasured_next_hops_and_settles_on_the_fastest() {
    let mut node = node_with("asf/v=5/probing-interval~1000");
    let rtt_ms = |face| Some(if face == D { 5 } else { 40 });
    let went_to: Vec<_> = (0..30).map(|n| exchange(&mut node, n, rtt_ms)).collect();
    assert_eq!(went_to[0][0], B, "nothing is measured: the cheapest");
    assert!(
        went_to.iter().flatten().any(|&face| face == C),
        "{went_to:?}"
    );
    assert!(
        went_to[20..].iter().all(|faces| faces[0] == D),
        "{went_to:?}"
    );
    // Probes go on, with a nonce of their own.
    assert!(
        went_to[20..].iter().any(|faces| faces.len() == 2),
        "{went_to:?}"
    );
    assert_eq!(node.engine.sizes().n_measurements, 1);
}

#[test]
fn asf_probe_has_a_nonce_of_its_own() {
    let mut node = node_with("asf/v=5/probing-interval~1000");
    for n in 0..20 {
        let sent = node.interest(A, &interest(&format!("/a/{n}")).nonce(5));
        if let [first, probe] = &sent[..] {
            assert_eq!(first.nonce(), 5);
            assert_ne!(probe.nonce(), 5);
            return;
        }
        node.advance(ms(1_000));
    }
    panic!("no probe within 20 seconds");
}

#[test]
fn asf_leaves_a_next_hop_that_times_out() {
    let mut node = node_with("asf");
    for n in 0..5 {
        exchange(&mut node, n, |_| Some(10));
    }
    let went_to: Vec<_> = (5..20)
        .map(|n| exchange(&mut node, n, |face| (face != B).then_some(10)))
        .collect();
    assert_eq!(went_to[0][0], B);
    assert_ne!(went_to[14][0], B, "{went_to:?}");
}

#[test]
fn asf_leaves_a_next_hop_that_nacks() {
    let mut node = node_with("asf");
    for n in 0..5 {
        exchange(&mut node, n, |_| Some(10));
    }
    let sent = node.interest(A, &interest("/a/x"));
    let first = &sent[0];
    assert_eq!(first.face, B);
    let wires: Vec<_> = sent
        .iter()
        .map(|sent| (sent.face, sent.wire.clone()))
        .collect();
    for (face, wire) in wires {
        node.nack(face, NackReason::Congestion, &wire);
    }
    assert_ne!(node.interest(A, &interest("/a/y"))[0].face, B);
}

#[test]
fn asf_entry_lingers_for_slower_probes_and_takes_their_data_for_unsolicited() {
    let mut node = node_with("asf/v=5/probing-interval~1000");
    for n in 0..20 {
        let uri = format!("/a/{n}");
        let sent = node.interest(A, &interest(&uri));
        let faces: Vec<_> = sent.iter().map(|sent| sent.face).collect();
        assert_eq!(node.data(faces[0], &data(&uri)).len(), 1);
        if let [_, probed] = faces[..] {
            assert_eq!(node.engine.sizes().n_pit_entries, 1);
            assert_eq!(node.data(probed, &data(&uri)), []);
            assert_eq!(node.engine.counters().n_unsolicited_data, 1);
            let n_satisfied = node.engine.counters().n_satisfied_interests;
            node.advance(ms(52));
            assert_eq!(node.engine.sizes().n_pit_entries, 0);
            let counters = node.engine.counters();
            assert_eq!(counters.n_satisfied_interests, n_satisfied);
            assert_eq!(counters.n_unsatisfied_interests, 0);
            return;
        }
        assert_eq!(node.engine.sizes().n_pit_entries, 0);
        node.advance(ms(1_000));
    }
    panic!("no probe within 20 seconds");
}

#[test]
fn what_is_asked_for_by_prefix_counts_once_whether_its_entry_lingers_or_not() {
    let mut node = node_with("asf/v=5/probing-interval~1000");
    let n_requests = |node: &Node| node.engine.cs().policy().outcomes().n_requests;
    let mut n_lingered = 0;
    for n in 0..40 {
        assert_eq!(n_requests(&node), n);
        let by_prefix = interest(&format!("/a/{n}")).prefix();
        let sent = node.interest(A, &by_prefix);
        let faces: Vec<_> = sent.iter().map(|sent| sent.face).collect();
        assert_eq!(
            n_requests(&node),
            n,
            "which Data it is for is not known yet"
        );
        for &face in &faces {
            node.data(face, &data(&format!("/a/{n}/x")));
            n_lingered += node.engine.sizes().n_pit_entries;
            assert_eq!(n_requests(&node), n + 1);
        }
        node.advance(ms(1_000));
    }
    assert!(n_lingered > 0, "no probe within 40 seconds");
}

#[test]
fn probe_that_loops_back_to_a_lingering_entry_is_a_loop() {
    let mut node = node_with("asf/v=5/probing-interval~1000");
    // The store must not answer instead.
    node.engine.cs_mut().set_serves(false);
    for n in 0..20 {
        let uri = format!("/a/{n}");
        let sent = node.interest(A, &interest(&uri));
        node.data(sent[0].face, &data(&uri));
        if let [_, probe] = &sent[..] {
            let looped = node.interest(probe.face, &interest(&uri).nonce(probe.nonce()));
            let duplicate = Kind::Nack(NackReason::Duplicate);
            assert_eq!(summary(&looped), [(probe.face, duplicate)]);
            return;
        }
        node.advance(ms(1_000));
    }
    panic!("no probe within 20 seconds");
}

#[test]
fn lingering_entry_asked_for_again_begins_anew() {
    let mut node = node_with("asf/v=5/probing-interval~1000");
    for n in 0..20 {
        let uri = format!("/a/{n}");
        let asked = interest(&uri).fresh();
        let faces: Vec<_> = node
            .interest(A, &asked)
            .iter()
            .map(|sent| sent.face)
            .collect();
        node.data(faces[0], &data(&uri));
        if faces.len() == 2 {
            let again = node.interest(A, &asked.nonce(77));
            assert_eq!(again.len(), 1);
            // The other one was asked for what has been answered.
            let slower = faces.iter().find(|&&face| face != again[0].face);
            let slower = *slower.expect("two faces");
            assert_eq!(node.data(slower, &data(&uri)), []);
            assert_eq!(
                summary(&node.data(again[0].face, &data(&uri))),
                [(A, Kind::Data)]
            );
            return;
        }
        node.advance(ms(1_000));
    }
    panic!("no probe within 20 seconds");
}

#[test]
fn nack_of_a_probe_after_the_data_does_not_count() {
    let mut node = node_with("asf/v=5/probing-interval~1000");
    for n in 0..20 {
        let uri = format!("/a/{n}");
        let sent = node.interest(A, &interest(&uri));
        node.data(sent[0].face, &data(&uri));
        if let [_, probe] = &sent[..] {
            assert_eq!(node.nack(probe.face, NackReason::NoRoute, &probe.wire), []);
            assert_eq!(node.n_dropped(DropReason::NackNotPending), 1);
            node.advance(ms(60));
            assert_eq!(node.engine.counters().n_unsatisfied_interests, 0);
            return;
        }
        node.advance(ms(1_000));
    }
    panic!("no probe within 20 seconds");
}

#[test]
fn entry_begun_anew_does_not_wait_for_the_probe_of_its_earlier_life() {
    let mut node = node_with("asf/v=5/probing-interval~1000");
    node.engine.cs_mut().set_serves(false);
    for n in 0..20 {
        let uri = format!("/a/{n}");
        let sent = node.interest(A, &interest(&uri));
        node.data(sent[0].face, &data(&uri));
        if sent.len() == 2 {
            let again = node.interest(A, &interest(&uri).nonce(77));
            assert_eq!(again.len(), 1);
            let heard = node.nack(again[0].face, NackReason::NoRoute, &again[0].wire);
            assert_eq!(summary(&heard), [(A, Kind::Nack(NackReason::NoRoute))]);
            return;
        }
        node.advance(ms(1_000));
    }
    panic!("no probe within 20 seconds");
}

#[test]
fn asf_retransmits_like_the_others() {
    let mut node = node_with("asf");
    let mut went_to = ask(&mut node, 1);
    assert_eq!(
        ask(&mut node, 2),
        [to(C)],
        "another upstream has no suppression yet"
    );
    went_to.clear();
    for nonce in 3..=7 {
        node.advance(ms(300));
        went_to.extend(ask(&mut node, nonce));
    }
    assert_eq!(went_to, [D, B, C, D, B].map(to));
}

#[test]
fn every_strategy_nacks_where_there_is_no_route_but_multicast() {
    for strategy in registered_strategies() {
        // `self-learning` has no other face to ask.
        let mut node = Node::new();
        node.face(A, REMOTE).face(B, LOCAL);
        node.engine
            .choices_mut()
            .set_strategy(name("/a").view(), strategy.view())
            .unwrap();
        let sent = summary(&node.interest(A, &interest("/a")));
        if strategy.to_string().contains("multicast") {
            assert_eq!(sent, []);
        } else {
            assert_eq!(sent, [(A, Kind::Nack(NackReason::NoRoute))], "{strategy}");
        }
        assert_eq!(node.n_dropped(DropReason::NoRoute), 1);
    }
}

#[test]
fn changing_the_strategy_clears_its_state_and_forwarding_goes_on() {
    let mut node = node_with("best-route");
    ask(&mut node, 1);
    for nonce in 2..6 {
        node.advance(ms(300));
        ask(&mut node, nonce);
    }
    // Suppression is at 160 ms by now. The same strategy chosen again keeps it.
    node.strategy("/a", "best-route").advance(ms(20));
    assert_eq!(ask(&mut node, 10), []);
    // Another one begins at 10 ms, with the records of the pending entry.
    node.strategy("/a", "multicast");
    assert_eq!(ask(&mut node, 11), [to(B), to(C), to(D)]);
    node.advance(ms(15));
    assert_eq!(ask(&mut node, 12), []);
    node.strategy("/a", "best-route");
    assert_eq!(ask(&mut node, 13).len(), 1);
    assert_eq!(summary(&node.data(B, &data("/a"))), [(A, Kind::Data)]);
}

#[test]
fn unknown_strategy_is_refused_and_the_root_keeps_one() {
    let mut node = Node::new();
    let unknown = name("/localhost/nfd/strategy/unheard-of");
    let root = name("/");
    let refused = node
        .engine
        .choices_mut()
        .set_strategy(root.view(), unknown.view());
    assert_eq!(refused, Err(StrategyError::NotRegistered));
    assert_eq!(
        node.engine.choices_mut().unset_strategy(root.view()),
        Err(StrategyError::RootNeedsStrategy)
    );
    let choices: Vec<_> = node
        .engine
        .choices_mut()
        .strategies()
        .map(|(prefix, it)| (prefix.to_name(), it.to_name()))
        .collect();
    assert_eq!(
        choices,
        [(root, name("/localhost/nfd/strategy/best-route/v=5"))]
    );
}

#[test]
fn unset_strategy_leaves_the_names_to_the_next_shorter_prefix() {
    let mut node = node_with("multicast");
    assert_eq!(ask(&mut node, 1).len(), 3);
    assert_eq!(
        node.engine.choices_mut().unset_strategy(name("/a").view()),
        Ok(true)
    );
    assert_eq!(summary(&node.interest(A, &interest("/a/x"))), [to(B)]);
}
