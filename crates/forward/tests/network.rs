//! Several engines, linked, on one virtual clock: what no single engine shows.

mod bed;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bed::*;
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, MonoNs, NackReason};

/// Where a packet arrives: a node and a face of it, or an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Port {
    node: usize,
    face: FaceId,
}

type InFlight = Reverse<(u64, u64, Port, Vec<u8>, Option<u64>)>;

/// Nodes, links with a delay, and packets on their way. Faces without a link
/// belong to applications.
struct Network {
    nodes: Vec<Node>,
    links: Vec<(Port, Port, u64)>,
    in_flight: BinaryHeap<InFlight>,
    n_sent: u64,
    /// What reached applications.
    delivered: Vec<(Port, Kind, Vec<u8>)>,
}

impl Network {
    /// `n_nodes` nodes; each has one application, on face A.
    fn new(n_nodes: usize) -> Self {
        let nodes = (0..n_nodes)
            .map(|_| {
                let mut node = Node::new();
                node.face(A, LOCAL);
                node
            })
            .collect();
        Self {
            nodes,
            links: Vec::new(),
            in_flight: BinaryHeap::new(),
            n_sent: 0,
            delivered: Vec::new(),
        }
    }

    fn link(&mut self, a: (usize, FaceId), b: (usize, FaceId), delay_ms: u64) {
        let [a, b] = [a, b].map(|(node, face)| Port { node, face });
        for port in [a, b] {
            self.nodes[port.node].face(port.face, REMOTE);
        }
        self.links.push((a, b, delay_ms));
    }

    fn send(&mut self, from: usize, sent: Vec<Sent>) {
        for sent in sent {
            let port = Port {
                node: from,
                face: sent.face,
            };
            let to = self.links.iter().find_map(|&(a, b, delay_ms)| {
                (a == port)
                    .then_some((b, delay_ms))
                    .or((b == port).then_some((a, delay_ms)))
            });
            match to {
                None => self.delivered.push((port, sent.kind, sent.wire)),
                Some((to, delay_ms)) => {
                    let at = self.nodes[from].now.plus_ms(delay_ms);
                    let nack = match sent.kind {
                        Kind::Nack(reason) => Some(reason.code()),
                        _ => None,
                    };
                    self.in_flight
                        .push(Reverse((at.0, self.n_sent, to, sent.wire, nack)));
                    self.n_sent += 1;
                }
            }
        }
    }

    fn app_sends(&mut self, node: usize, wire: &[u8]) {
        let sent = self.nodes[node].receive(A, wire, Headers::default());
        self.send(node, sent);
    }

    /// Runs timers and packets in order until `until`; producers of `produced`
    /// answer at once.
    fn run_until(&mut self, until: MonoNs, producer: Option<(usize, &str)>) {
        loop {
            if let Some((node, uri)) = producer
                && self
                    .delivered
                    .iter()
                    .any(|(port, kind, _)| port.node == node && *kind == Kind::Interest)
            {
                self.delivered.retain(|(port, ..)| port.node != node);
                self.app_sends(node, &data(uri).wire());
                continue;
            }
            let timer = self
                .nodes
                .iter()
                .filter_map(|node| node.engine.poll_timeout())
                .min();
            let packet = self.in_flight.peek().map(|Reverse((at, ..))| MonoNs(*at));
            let Some(next) = timer
                .into_iter()
                .chain(packet)
                .min()
                .filter(|&at| at <= until)
            else {
                break;
            };
            for n in 0..self.nodes.len() {
                self.nodes[n].now = self.nodes[n].now.max(next);
                let sent = self.nodes[n].advance(ms(0));
                self.send(n, sent);
            }
            if let Some(Reverse((at, ..))) = self.in_flight.peek()
                && *at <= next.0
            {
                let Reverse((_, _, to, wire, nack)) = self.in_flight.pop().expect("peeked");
                let headers = Headers {
                    nack: nack.map(NackReason::from_code),
                    ..Headers::default()
                };
                let sent = self.nodes[to.node].receive(to.face, &wire, headers);
                self.send(to.node, sent);
            }
        }
        for node in &mut self.nodes {
            node.now = node.now.max(until);
        }
    }
}

#[test]
fn data_crosses_a_chain_of_routers_and_is_cached_on_the_way() {
    let mut net = Network::new(4);
    for n in 0..3 {
        net.link((n, C), (n + 1, B), 10);
        net.nodes[n].route("/p", C, 0);
    }
    net.nodes[3].route("/p", A, 0);
    let start = net.nodes[0].now;
    net.app_sends(0, &interest("/p/1").hop_limit(5).wire());
    net.run_until(start + ms(59), Some((3, "/p/1")));
    assert_eq!(net.delivered, []);
    net.run_until(start + ms(60), Some((3, "/p/1")));
    let app = Port { node: 0, face: A };
    assert_eq!(net.delivered, [(app, Kind::Data, data("/p/1").wire())]);
    // The next one to ask is served by its own router.
    net.delivered.clear();
    net.app_sends(2, &interest("/p/1").nonce(9).wire());
    assert_eq!(net.delivered.len(), 1);
    assert_eq!(net.in_flight.len(), 0);
}

#[test]
fn hop_limit_ends_a_long_way() {
    let mut net = Network::new(4);
    for n in 0..3 {
        net.link((n, C), (n + 1, B), 1);
        net.nodes[n].route("/p", C, 0);
    }
    net.nodes[3].route("/p", A, 0);
    let end = net.nodes[0].now + ms(100);
    net.app_sends(0, &interest("/p").hop_limit(3).wire());
    net.run_until(end, None);
    assert_eq!(net.delivered, []);
    net.app_sends(0, &interest("/p").nonce(2).hop_limit(4).wire());
    net.run_until(end + ms(100), None);
    assert_eq!(net.delivered.len(), 1);
}

#[test]
fn interest_in_a_ring_of_routes_ends_and_but_for_multicast_with_a_nack() {
    for strategy in ["best-route", "multicast", "random", "asf", "access"] {
        let mut net = Network::new(5);
        for n in 0..5 {
            net.link((n, C), ((n + 1) % 5, B), 3);
        }
        for node in &mut net.nodes {
            node.route("/p", C, 0).strategy("/", strategy);
        }
        let end = net.nodes[0].now + ms(1_000);
        net.app_sends(2, &interest("/p/x").wire());
        net.run_until(end, None);
        let app = Port { node: 2, face: A };
        let delivered: Vec<_> = net
            .delivered
            .iter()
            .map(|(port, kind, _)| (*port, *kind))
            .collect();
        let nack = (app, Kind::Nack(NackReason::Duplicate));
        if strategy == "multicast" {
            assert_eq!(delivered, []);
            // It ends with its lifetime.
            net.run_until(end + ms(4_000), None);
            assert_eq!(net.delivered, []);
        } else {
            assert_eq!(delivered, [nack], "{strategy}");
        }
        assert!(
            net.nodes
                .iter()
                .all(|node| node.engine.sizes().n_pit_entries == 0)
        );
        assert!(net.n_sent < 12, "{strategy}: {}", net.n_sent);
    }
}

#[test]
fn multicast_in_a_full_mesh_delivers_once_and_dies_down() {
    const N_NODES: usize = 6;
    let mut net = Network::new(N_NODES);
    let face = |to: usize| FaceId(300 + to as u64);
    for a in 0..N_NODES {
        for b in a + 1..N_NODES {
            net.link((a, face(b)), (b, face(a)), 1 + (a * b) as u64 % 7);
        }
    }
    for n in 0..N_NODES {
        net.nodes[n].strategy("/", "multicast");
        for to in (0..N_NODES).filter(|&to| to != n) {
            net.nodes[n].route("/p", face(to), 1);
        }
    }
    net.nodes[5].route("/p", A, 0);
    let end = net.nodes[0].now + ms(10_000);
    net.app_sends(0, &interest("/p/x").wire());
    net.run_until(end, Some((5, "/p/x")));
    let app = Port { node: 0, face: A };
    assert_eq!(net.delivered, [(app, Kind::Data, data("/p/x").wire())]);
    assert_eq!(net.in_flight.len(), 0);
    assert!(
        net.nodes
            .iter()
            .all(|node| node.engine.sizes().n_pit_entries == 0)
    );
}

#[test]
fn broken_link_is_routed_around_by_retransmission() {
    // 0 → 1 → 3 is cheap and loses everything; 0 → 2 → 3 works.
    let mut net = Network::new(4);
    net.link((0, C), (2, B), 5);
    net.link((2, C), (3, C), 5);
    net.nodes[0]
        .face(B, REMOTE)
        .route("/p", B, 0)
        .route("/p", C, 10);
    net.nodes[2].route("/p", C, 0);
    net.nodes[3].route("/p", A, 0);
    let start = net.nodes[0].now;
    net.app_sends(0, &interest("/p").nonce(1).wire());
    net.delivered.clear();
    net.run_until(start + ms(50), Some((3, "/p")));
    assert_eq!(net.delivered, []);
    net.app_sends(0, &interest("/p").nonce(2).wire());
    net.run_until(start + ms(80), Some((3, "/p")));
    let app = Port { node: 0, face: A };
    assert_eq!(net.delivered, [(app, Kind::Data, data("/p").wire())]);
}
