//! Peers that take more than their share: others are served all the same.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use support::{Node, interest};
use tachonym_face::{ChannelOptions, TURN_PKTS};
use tachonym_packet::FaceId;

/// Messages of one WebSocket that a poll takes.
const WEBSOCKET_SHARE: usize = 32;

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A message from a client: its mask is zero.
fn message(head: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![head, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    frame.extend(payload);
    frame
}

/// A peer that never waits, and writes the same over and over.
struct Flood<S> {
    stream: S,
    bytes: Vec<u8>,
    next: usize,
}

impl<S: Write> Flood<S> {
    /// `bytes` is written many times: its end need not be a border of anything.
    fn new(stream: S, unit: &[u8]) -> Self {
        Self {
            stream,
            bytes: unit.repeat((64 << 10) / unit.len()),
            next: 0,
        }
    }

    /// Writes as much as the kernel takes, but no more than `max_bytes`.
    fn fill(&mut self, max_bytes: usize) -> usize {
        let mut n_bytes = 0;
        while n_bytes < max_bytes {
            let room = (self.bytes.len() - self.next).min(max_bytes - n_bytes);
            match self.stream.write(&self.bytes[self.next..][..room]) {
                Ok(n) => {
                    n_bytes += n;
                    self.next = (self.next + n) % self.bytes.len();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        n_bytes
    }
}

/// An open WebSocket without a face at our end.
fn open_websocket(node: &mut Node, remote: std::net::SocketAddr) -> TcpStream {
    let before = node.faces.face_ids().count();
    let mut peer = TcpStream::connect(remote).unwrap();
    peer.write_all(UPGRADE.as_bytes()).unwrap();
    node.until("an open WebSocket", |node| {
        node.faces.face_ids().count() > before
    });
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        peer.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    peer.set_nonblocking(true).unwrap();
    peer
}

fn websocket_node() -> (Node, std::net::SocketAddr) {
    let mut node = Node::default();
    let uri = node.listen(&ChannelOptions::websocket(support::loopback()));
    let remote = uri.socket_addr().unwrap();
    (node, remote)
}

#[test]
fn a_websocket_that_never_falls_silent_leaves_others_their_turn() {
    let (mut node, remote) = websocket_node();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nfd.sock");
    node.listen(&ChannelOptions::unix(&path));
    let udp = node.listen(&ChannelOptions::udp(support::loopback()));

    let peers: Vec<TcpStream> = (0..3).map(|_| open_websocket(&mut node, remote)).collect();
    let mut floods: Vec<_> = peers
        .into_iter()
        .map(|peer| Flood::new(peer, &message(0x82, &interest(0))))
        .collect();
    node.until("floods", |node| {
        for flood in &mut floods {
            flood.fill(1 << 20);
        }
        node.packets.len() > 20 * WEBSOCKET_SHARE
    });

    // A new connection, and a datagram.
    let mut unix = UnixStream::connect(&path).unwrap();
    unix.write_all(&interest(1)).unwrap();
    let datagrams = std::net::UdpSocket::bind(support::loopback()).unwrap();
    datagrams
        .send_to(&interest(2), udp.socket_addr().unwrap())
        .unwrap();
    let has = |node: &Node, n| node.packets.iter().any(|packet| packet.l3 == interest(n));
    for _ in 0..100 {
        for flood in &mut floods {
            flood.fill(1 << 20);
        }
        node.step(Duration::ZERO);
        if has(&node, 1) && has(&node, 2) {
            return;
        }
    }
    panic!("the connection or the datagram was never looked at");
}

#[test]
fn websockets_with_much_to_say_take_turns() {
    const N_PEERS: usize = 20;
    let (mut node, remote) = websocket_node();
    let mut peers = Vec::new();
    for _ in 0..N_PEERS {
        peers.push(open_websocket(&mut node, remote));
    }
    let ids: Vec<FaceId> = node.faces.faces().map(|face| face.id).collect();
    let mut floods: Vec<_> = peers
        .into_iter()
        .map(|peer| Flood::new(peer, &message(0x82, &interest(0))))
        .collect();
    node.until("a packet of each", |node| {
        for flood in &mut floods {
            flood.fill(32 << 10);
        }
        let has = |id| node.packets.iter().any(|packet| packet.face == id);
        ids.iter().copied().all(has)
    });
    let mut n_packets = vec![0; N_PEERS];
    for round in 0..50 {
        for flood in &mut floods {
            flood.fill(32 << 10);
        }
        node.packets.clear();
        node.step(Duration::ZERO);
        for (n_packets, id) in n_packets.iter_mut().zip(&ids) {
            let n_new = node.packets.iter().filter(|p| p.face == *id).count();
            assert!(n_new <= WEBSOCKET_SHARE, "{n_new} in round {round}");
            *n_packets += n_new;
        }
    }
    let (least, most) = (n_packets.iter().min(), n_packets.iter().max());
    let spread = most.unwrap() - least.unwrap();
    assert!(
        *least.unwrap() > 0 && spread <= 2 * WEBSOCKET_SHARE,
        "{n_packets:?}"
    );
}

#[test]
fn all_messages_that_lie_in_memory_are_read_in_their_order() {
    let (mut node, remote) = websocket_node();
    let mut peer = open_websocket(&mut node, remote);
    let id = node.faces.faces().next().unwrap().id;
    // More than one share, of both kinds, then silence.
    let mut wire = Vec::new();
    let mut sent = Vec::new();
    for n in 0..500 {
        wire.extend(message(0x82, &interest(n)));
        wire.extend(message(0x89, b"ping"));
        sent.push(interest(n));
    }
    peer.write_all(&wire).unwrap();
    node.until("all packets", |node| node.packets.len() >= sent.len());
    let received: Vec<_> = node
        .packets
        .iter()
        .map(|packet| packet.l3.clone())
        .collect();
    assert_eq!(received, sent);
    assert!(node.info(id).is_up());
}

/// A node with a Unix listener, whose folder goes with the second value.
fn unix_node() -> (Node, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut node = Node::default();
    node.listen(&ChannelOptions::unix(dir.path().join("nfd.sock")));
    (node, dir)
}

/// A connection, and the number of its face.
fn open_unix(node: &mut Node, dir: &tempfile::TempDir) -> (UnixStream, FaceId) {
    let before: Vec<_> = node.faces.face_ids().collect();
    let stream = UnixStream::connect(dir.path().join("nfd.sock")).unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut new = None;
    node.until("a face", |node| {
        new = node.faces.face_ids().find(|id| !before.contains(id));
        new.is_some()
    });
    (stream, new.unwrap())
}

/// Packets of one read at most, however small they are.
fn first_bite(packet: &[u8]) -> usize {
    (64 << 10) / packet.len()
}

#[test]
fn a_stream_of_small_packets_is_read_in_smaller_bites() {
    const N_ROUNDS: usize = 200;
    let (mut node, dir) = unix_node();
    let (stream, _) = open_unix(&mut node, &dir);
    let small = interest(0);
    let mut flood = Flood::new(stream, &small);
    let mut n_all = 0;
    for round in 0..N_ROUNDS {
        flood.fill(1 << 20);
        node.packets.clear();
        node.step(Duration::ZERO);
        // The first bite tells how small they are.
        let n_packets = node.packets.len();
        assert!(
            round == 0 || n_packets < TURN_PKTS * 3 / 2,
            "{n_packets} packets in one poll"
        );
        n_all += n_packets;
    }
    // What the first one brought too much is made good, and no more than that.
    let fair = N_ROUNDS * TURN_PKTS;
    assert!(n_all <= fair + TURN_PKTS, "{n_all} of {fair}");
    assert!(n_all >= fair - 2 * TURN_PKTS, "{n_all} of {fair}");

    // Large ones come by the full bite again, once the small ones are read.
    while flood.next != 0 {
        flood.fill(flood.bytes.len() - flood.next);
        node.step(Duration::ZERO);
    }
    let large = support::data(1, 8000);
    let mut flood = Flood::new(flood.stream, &large);
    node.until("eight large packets in one poll", |node| {
        flood.fill(1 << 20);
        let n_packets = node.packets.len();
        node.packets.clear();
        n_packets == 8
    });
}

#[test]
fn a_stream_that_never_waits_gets_as_many_packets_as_one_with_a_turn_in_flight() {
    const N_ROUNDS: usize = 200;
    let (mut node, dir) = unix_node();
    let (hostile, hostile_id) = open_unix(&mut node, &dir);
    let (mut honest, honest_id) = open_unix(&mut node, &dir);
    let mut flood = Flood::new(hostile, &interest(0));
    let turn = interest(1).repeat(TURN_PKTS);
    let (mut n_honest, mut n_hostile, mut n_sent) = (0, 0, 0);
    for _ in 0..N_ROUNDS {
        flood.fill(1 << 20);
        // What has come is asked for again.
        if n_honest == n_sent {
            honest.write_all(&turn).unwrap();
            n_sent += TURN_PKTS;
        }
        node.packets.clear();
        node.step(Duration::ZERO);
        let of = |id| node.packets.iter().filter(|p| p.face == id).count();
        n_honest += of(honest_id);
        n_hostile += of(hostile_id);
    }
    // Only the first bite of the other one filled a batch and made it wait.
    let fair = N_ROUNDS * TURN_PKTS;
    assert!(n_honest >= fair - 2 * TURN_PKTS, "{n_honest}");
    assert!(n_hostile <= fair + TURN_PKTS, "{n_hostile}");
}

#[test]
fn a_stream_gains_no_packets_by_changing_their_size() {
    const N_ROUNDS: usize = 2_000;
    let (mut node, dir) = unix_node();
    let (stream, _) = open_unix(&mut node, &dir);
    // Large ones make the bites long, and then come small ones.
    let small = interest(0);
    let unit = [support::data(1, 8000).repeat(4), small.repeat(1000)].concat();
    let mut flood = Flood::new(stream, &unit);
    let mut n_packets = 0;
    for _ in 0..N_ROUNDS {
        flood.fill(1 << 20);
        node.packets.clear();
        node.step(Duration::ZERO);
        n_packets += node.packets.len();
    }
    let most = N_ROUNDS * TURN_PKTS + first_bite(&small);
    assert!(n_packets <= most, "{n_packets} of {most}");
    assert!(n_packets >= N_ROUNDS * TURN_PKTS / 4, "{n_packets}");
}

#[test]
fn pings_are_answered_by_one_write_a_turn() {
    const N_PINGS: usize = 2 * WEBSOCKET_SHARE;
    let (mut node, remote) = websocket_node();
    let mut peer = open_websocket(&mut node, remote);
    let pings: Vec<u8> = (0..N_PINGS as u8)
        .flat_map(|n| message(0x89, &[n]))
        .collect();
    let n_writes = |node: &Node| node.faces.counters().n_tx_syscalls;
    let of_handshake = n_writes(&node);
    assert_eq!(peer.write(&message(0x89, &[0xff])).unwrap(), 7);
    node.until("a pong", |node| n_writes(node) > of_handshake);
    let before = n_writes(&node);
    assert_eq!(peer.write(&pings).unwrap(), pings.len());
    node.until("pongs", |node| n_writes(node) >= before + 2);
    let n_writes = n_writes(&node) - before;
    assert_eq!(n_writes, 2, "for {N_PINGS} pings");

    // Each has its pong, in order.
    let mut pongs = vec![0; 3 * N_PINGS];
    peer.set_nonblocking(false).unwrap();
    peer.read_exact(&mut pongs[..3]).unwrap();
    assert_eq!(pongs[..3], [0x8a, 1, 0xff]);
    peer.read_exact(&mut pongs).unwrap();
    for (n, pong) in pongs.chunks(3).enumerate() {
        assert_eq!(pong, [0x8a, 1, n as u8]);
    }
}

#[test]
fn a_closing_handshake_is_answered_behind_the_pongs() {
    let (mut node, remote) = websocket_node();
    let mut peer = open_websocket(&mut node, remote);
    let id = node.faces.faces().next().unwrap().id;
    let wire = [message(0x89, b"a"), message(0x88, &[])].concat();
    assert_eq!(peer.write(&wire).unwrap(), wire.len());
    node.destroyed(id);
    let mut answer = Vec::new();
    peer.set_nonblocking(false).unwrap();
    peer.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, [0x8a, 1, b'a', 0x88, 0]);
}
