//! Rules for what becomes due all at once: it is done in parts, and packets are
//! served between them.

mod bed;

use std::time::Duration;

use bed::*;
use tachonym_tables::NextHop;

/// More than one call does.
const N_ENTRIES: usize = 3000;

/// Interests from A that B does not answer.
fn node_with_pending() -> Node {
    let mut node = Node::with_remote_faces();
    node.route("/", B, 0);
    for n in 0..N_ENTRIES {
        node.interest(A, &interest(&format!("/{n}")).lifetime_ms(1000));
    }
    assert_eq!(node.engine.sizes().n_pit_entries, N_ENTRIES);
    node
}

/// Calls the engine until it has nothing to do at once, and tells how often;
/// `left` has to shrink by no more than 1024 in a call.
fn calls_until_idle(node: &mut Node, left: impl Fn(&Node) -> usize) -> usize {
    let mut n_calls = 0;
    while node.engine.poll_timeout().is_some_and(|at| at <= node.now) {
        let before = left(node);
        node.advance(Duration::ZERO);
        assert!(before - left(node) <= 1024);
        n_calls += 1;
    }
    assert_eq!(left(node), 0);
    n_calls
}

fn n_pending(node: &Node) -> usize {
    node.engine.sizes().n_pit_entries
}

#[test]
fn a_table_that_expires_at_once_does_so_in_parts() {
    let mut node = node_with_pending();
    node.now = node.now + Duration::from_secs(2);
    assert!(calls_until_idle(&mut node, n_pending) >= 3);
    let counters = node.engine.counters();
    assert_eq!(counters.n_unsatisfied_interests, N_ENTRIES as u64);
}

#[test]
fn records_of_a_gone_face_are_forgotten_in_parts() {
    let mut node = node_with_pending();
    node.engine.remove_face(A);
    assert!(calls_until_idle(&mut node, n_pending) >= 3);
}

#[test]
fn a_new_next_hop_is_offered_pending_interests_in_parts() {
    let mut node = Node::with_remote_faces();
    node.strategy("/", "multicast").route("/", B, 0);
    for n in 0..N_ENTRIES {
        node.interest(A, &interest(&format!("/{n}")));
    }
    node.route("/", C, 0);
    node.now = node.now + Duration::from_millis(20);
    let mut n_sent = 0;
    while node.engine.poll_timeout().is_some_and(|at| at <= node.now) {
        let sent = node.advance(Duration::ZERO);
        assert!(sent.len() <= 1024 && sent.iter().all(|sent| sent.face == C));
        n_sent += sent.len();
    }
    assert_eq!(n_sent, N_ENTRIES);
}

#[test]
fn what_timers_send_goes_with_the_greatest_hop_limit_of_those_who_wait() {
    for (second, leaves_with) in [(Some(9), Some(8)), (None, None)] {
        let mut node = Node::with_remote_faces();
        node.strategy("/a", "multicast");
        // The first to ask lets it go nowhere.
        assert_eq!(node.interest(A, &interest("/a").nonce(1).hop_limit(1)), []);
        let asked = Interest {
            hop_limit: second,
            ..interest("/a").nonce(2)
        };
        assert_eq!(node.interest(C, &asked), []);
        node.route("/a", B, 0);
        let sent = node.advance(Duration::from_millis(20));
        assert_eq!(summary(&sent), [(B, Kind::Interest)]);
        assert_eq!(sent[0].interest().hop_limit(), leaves_with);
        assert_eq!(node.data(B, &data("/a")).len(), 2);
    }
}

#[test]
fn a_gone_face_leaves_the_fib_in_parts_and_is_sent_nothing_meanwhile() {
    let mut node = Node::with_remote_faces();
    for n in 0..N_ENTRIES {
        // Equal next hops are kept once, and would go at once.
        node.route(&format!("/{n}"), B, n as u64);
    }
    node.route("/kept", C, 0);
    node.engine.remove_face(B);
    let others = |node: &Node| node.engine.routes().lock().len() - 1;
    assert!(others(&node) >= N_ENTRIES - 1024);
    let sent = node.interest(A, &interest(&format!("/{}", N_ENTRIES - 1)));
    assert!(sent.iter().all(|sent| sent.face == A));
    assert!(others(&node) > 0);
    assert!(calls_until_idle(&mut node, others) >= 2);

    // Another face with the number of one that is going has none of its routes.
    for n in 0..N_ENTRIES {
        node.route(&format!("/{n}"), D, n as u64);
    }
    node.engine.remove_face(D);
    node.face(D, REMOTE);
    assert_eq!(others(&node), 0);
}

#[test]
fn packets_travel_while_others_change_routes() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0).route("/b", C, 0);
    let routes = node.engine.routes().clone();
    let changing = routes.lock();
    let n_routes = changing.len();
    let sent = node.interest(A, &interest("/a/1"));
    assert!(sent.iter().any(|sent| sent.face == B));
    // A face goes meanwhile: nothing is sent to it, and its routes go a little later.
    node.engine.remove_face(B);
    let sent = node.interest(A, &interest("/a/2"));
    assert!(sent.iter().all(|sent| sent.face != B));
    let later = node.engine.poll_timeout().expect("there is work left");
    assert!(later > node.now);
    node.advance(Duration::ZERO);
    assert_eq!(changing.len(), n_routes);
    drop(changing);
    assert!(node.engine.poll_timeout().is_some_and(|at| at <= node.now));
    node.advance(Duration::ZERO);
    assert_eq!(node.engine.routes().lock().len(), n_routes - 1);
}

#[test]
fn a_route_to_a_face_that_went_meanwhile_goes_too() {
    let mut node = Node::with_remote_faces();
    let routes = node.engine.routes().clone();
    let n_routes = routes.lock().len();
    node.engine.remove_face(B);
    let prefix = name("/a");
    let added = routes
        .lock()
        .add_next_hop(prefix.view(), NextHop::new(B, 0));
    assert_eq!(added, Ok(()));
    node.engine.note_new_next_hops(&[B, C]);
    node.advance(Duration::ZERO);
    assert_eq!(node.engine.routes().lock().len(), n_routes);
}
