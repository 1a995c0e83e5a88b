//! UDP peers with a socket of their own: a flood of one is its own affair.

mod support;

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use support::{Node, interest};
use tachonym_face::{
    BATCH_TARGET_PKTS, ChannelOptions, DropReason, FaceParams, FaceSystem, FaceUpdate, ListenError,
    SystemOptions, TURN_PKTS,
};
use tachonym_packet::FaceId;
use tachonym_packet::lp::Headers;
use tachonym_protocol::{FaceEventKind, FacePersistency, FaceUri};

/// More datagrams than any queue of the kernel holds here.
const FLOOD: usize = 20_000;

/// A node with small queues, and where it listens.
fn node() -> (Node, SocketAddr) {
    let mut options = SystemOptions::default();
    options.udp_receive_buffer_bytes = 1 << 20;
    let mut node = Node::new(options);
    let uri = node.listen(&ChannelOptions::udp(support::loopback()));
    (node, uri.socket_addr().unwrap())
}

/// A program that writes to `to`.
fn program(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(support::loopback()).unwrap();
    socket.connect(to).unwrap();
    socket
        .set_read_timeout(Some(support::PATIENCE))
        .expect("a time-out");
    socket
}

/// Writes as many datagrams without anybody reading them.
fn flood(socket: &UdpSocket, n_datagrams: usize) {
    for _ in 0..n_datagrams {
        let _ = socket.send(&interest(0));
    }
}

/// The face of the program.
fn face_of(node: &Node, socket: &UdpSocket) -> Option<FaceId> {
    let remote = FaceUri::Udp(socket.local_addr().unwrap());
    node.faces
        .faces()
        .find(|f| f.remote == remote)
        .map(|f| f.id)
}

fn n_from(node: &Node, socket: &UdpSocket) -> usize {
    let id = face_of(node, socket);
    node.packets.iter().filter(|p| Some(p.face) == id).count()
}

/// Reads what there is.
fn read_all(node: &mut Node) {
    loop {
        let before = node.packets.len();
        for _ in 0..64 {
            node.step(Duration::ZERO);
        }
        if node.packets.len() == before {
            return;
        }
    }
}

/// A node that has seen a flood of a stranger and read all of it.
fn flooded() -> (Node, SocketAddr, UdpSocket) {
    let (mut node, at) = node();
    let hostile = program(at);
    flood(&hostile, 2 * BATCH_TARGET_PKTS);
    node.until("the flood", |node| n_from(node, &hostile) > TURN_PKTS);
    read_all(&mut node);
    (node, at, hostile)
}

#[test]
fn a_flood_fills_only_its_own_queue() {
    let (mut node, at, hostile) = flooded();
    let honest = program(at);
    flood(&hostile, FLOOD);
    flood(&honest, 10);
    read_all(&mut node);
    assert_eq!(n_from(&node, &honest), 10);
    assert!(n_from(&node, &hostile) < FLOOD, "the kernel held all of it");
    assert_eq!(node.faces.n_faces(), 2);
}

#[test]
fn answers_come_from_where_the_peer_has_written_to() {
    let (mut node, at, hostile) = flooded();
    let id = face_of(&node, &hostile).expect("a face");
    assert_eq!(node.info(id).local, FaceUri::Udp(at));
    // The program's socket is connected: it hears nobody else.
    node.send(id, &interest(7));
    let mut buffer = [0; 2_000];
    let n_bytes = hostile.recv(&mut buffer).expect("an answer");
    assert_eq!(buffer[..n_bytes], interest(7));
}

#[test]
fn answers_follow_the_peer_from_one_of_our_addresses_to_another() {
    let mut node = Node::default();
    let uri = node.listen(&ChannelOptions::udp("0.0.0.0:0".parse().unwrap()));
    let port = uri.socket_addr().unwrap().port();
    let peer = UdpSocket::bind(support::loopback()).unwrap();
    peer.set_read_timeout(Some(support::PATIENCE)).unwrap();
    // Much to one address, so that it has a branch there; then to the other.
    for (ours, n_datagrams) in [(1, 4 * TURN_PKTS), (9, 1), (1, 1), (9, 1)] {
        let ours = SocketAddr::from(([127, 0, 0, ours], port));
        node.packets.clear();
        for _ in 0..n_datagrams {
            peer.send_to(&interest(0), ours).unwrap();
        }
        node.until("all", |node| node.packets.len() == n_datagrams);
        assert_eq!(node.faces.n_faces(), 1);
        let id = node.packets[0].face;
        node.send(id, &interest(1));
        let (_, from) = peer.recv_from(&mut [0; 2_000]).expect("an answer");
        assert_eq!(from, ours);
    }
}

#[test]
fn a_face_that_goes_leaves_its_peer_to_the_listener() {
    let (mut node, _, hostile) = flooded();
    let id = face_of(&node, &hostile).expect("a face");
    assert!(node.faces.destroy(id));
    node.destroyed(id);
    flood(&hostile, 1);
    node.until("a new face", |node| face_of(node, &hostile).is_some());
    assert_ne!(face_of(&node, &hostile), Some(id));
}

#[test]
fn a_face_that_was_asked_for_is_out_of_reach_of_strangers_from_the_start() {
    let (mut node, at) = node();
    let neighbour = program(at);
    let params = FaceParams::new(FaceUri::Udp(neighbour.local_addr().unwrap()));
    let id = node.dial_with(&params);
    assert_eq!(node.info(id).local, FaceUri::Udp(at));
    // Nothing has been read of the flood when the neighbour writes.
    let hostile = program(at);
    flood(&hostile, FLOOD);
    flood(&neighbour, 10);
    read_all(&mut node);
    assert_eq!(n_from(&node, &neighbour), 10);
    assert_eq!(face_of(&node, &neighbour), Some(id));
}

#[test]
fn who_never_waits_brings_no_more_than_a_turn_while_others_have_something_to_say() {
    const N_ROUNDS: usize = 200;
    let (mut node, at, hostile) = flooded();
    let honest = program(at);
    let (mut n_hostile, mut n_honest) = (0, 0);
    for _ in 0..N_ROUNDS {
        flood(&hostile, 4 * TURN_PKTS);
        flood(&honest, TURN_PKTS / 2);
        node.packets.clear();
        node.step(Duration::ZERO);
        n_hostile += n_from(&node, &hostile);
        n_honest += n_from(&node, &honest);
    }
    let fair = N_ROUNDS * TURN_PKTS;
    assert!(n_hostile <= fair + BATCH_TARGET_PKTS, "{n_hostile}");
    assert!(n_honest >= fair / 2 - 2 * TURN_PKTS, "{n_honest}");
}

#[test]
fn of_many_floods_each_gets_its_turn() {
    const N_ROUNDS: usize = 400;
    let (mut node, at) = node();
    let programs: Vec<_> = (0..5).map(|_| program(at)).collect();
    let mut n_read = vec![0; programs.len()];
    for _ in 0..N_ROUNDS {
        for program in &programs {
            flood(program, TURN_PKTS);
        }
        node.packets.clear();
        node.step(Duration::ZERO);
        for (n_read, program) in n_read.iter_mut().zip(&programs) {
            *n_read += n_from(&node, program);
        }
    }
    let (least, most) = (n_read.iter().min(), n_read.iter().max());
    let (least, most) = (least.unwrap(), most.unwrap());
    assert!(least * 2 > *most, "{n_read:?}");
}

#[test]
fn a_face_that_is_to_last_gets_a_socket_of_its_own_whatever_it_began_as() {
    for is_known_as_stranger in [false, true] {
        let (mut node, at) = node();
        let neighbour = program(at);
        flood(&neighbour, if is_known_as_stranger { 200 } else { 1 });
        node.until("a face", |node| face_of(node, &neighbour).is_some());
        read_all(&mut node);
        let id = face_of(&node, &neighbour).unwrap();
        let update = FaceUpdate {
            persistency: Some(FacePersistency::Permanent),
            ..FaceUpdate::default()
        };
        node.faces.update(id, &update).unwrap();
        node.packets.clear();
        let hostile = program(at);
        flood(&hostile, FLOOD);
        flood(&neighbour, 10);
        read_all(&mut node);
        assert_eq!(n_from(&node, &neighbour), 10);
    }
}

#[test]
fn a_neighbour_that_is_heard_is_read_though_datagrams_to_it_come_back() {
    let (mut node, at) = node();
    let neighbour = program(at);
    let params = FaceParams::new(FaceUri::Udp(neighbour.local_addr().unwrap()));
    let id = node.dial_with(&params);
    let from = neighbour.local_addr().unwrap();
    // Nobody is there for a moment: a datagram comes back.
    drop(neighbour);
    node.send(id, &interest(1));
    let neighbour = UdpSocket::bind(from).expect("it is free");
    neighbour.connect(at).unwrap();
    flood(&neighbour, 1);
    node.step(support::PATIENCE);
    assert_eq!(n_from(&node, &neighbour), 1, "read in the very first turn");
    // And the other way: the error of one datagram does not cost the next.
    drop(neighbour);
    node.send(id, &interest(2));
    let neighbour = UdpSocket::bind(from).expect("it is free");
    neighbour.set_read_timeout(Some(support::PATIENCE)).unwrap();
    node.send(id, &interest(3));
    let mut buffer = [0; 2_000];
    let n_bytes = neighbour.recv(&mut buffer).expect("a datagram");
    assert_eq!(buffer[..n_bytes], interest(3));
}

#[test]
fn an_address_that_is_taken_stays_so() {
    let (node, at, _hostile) = flooded();
    let mut other = FaceSystem::new(SystemOptions::default()).unwrap();
    let error = other.listen(&ChannelOptions::udp(at));
    assert!(matches!(error, Err(ListenError::AddressInUse)), "{error:?}");
    drop(node);
    other
        .listen(&ChannelOptions::udp(at))
        .expect("it is free again");
}

#[test]
fn many_strangers_flood_and_each_keeps_its_one_face() {
    let (mut node, at) = node();
    let programs: Vec<_> = (0..80).map(|_| program(at)).collect();
    for program in &programs {
        flood(program, 1);
        read_all(&mut node);
    }
    for _ in 0..4 {
        for program in &programs {
            flood(program, 40);
            node.step(Duration::ZERO);
        }
        read_all(&mut node);
    }
    // More than may have a socket of their own: none is lost, none is doubled.
    assert_eq!(node.faces.n_faces(), programs.len());
    let created = node
        .events
        .iter()
        .filter(|e| e.kind == FaceEventKind::Created);
    assert_eq!(created.count(), programs.len());
    for program in &programs {
        let id = face_of(&node, program).expect("a face");
        let answer = interest(id.0);
        node.faces.send(id, &Headers::default(), &answer).unwrap();
        node.faces.flush();
        let mut buffer = [0; 2_000];
        let n_bytes = program.recv(&mut buffer).expect("an answer");
        assert_eq!(buffer[..n_bytes], answer);
    }
}

#[test]
fn datagrams_leave_faces_to_those_who_connect() {
    let mut options = SystemOptions::default();
    options.max_faces = 16;
    options.localities.udp = tachonym_face::Locality::Loopback;
    let mut node = Node::new(options);
    let at = node.listen(&ChannelOptions::udp(support::loopback()));
    let at = at.socket_addr().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    node.listen(&ChannelOptions::unix(&path));
    let programs: Vec<_> = (0..20).map(|_| program(at)).collect();
    for program in &programs {
        flood(program, 1);
    }
    read_all(&mut node);
    assert_eq!(node.faces.n_faces(), 12);
    let drops = node.faces.counters().drops;
    assert_eq!(drops.get(DropReason::TooManyFaces), 8);
    let streams: Vec<_> = (0..8)
        .map(|_| std::os::unix::net::UnixStream::connect(&path).unwrap())
        .collect();
    node.until("two connections", |node| node.faces.n_faces() == 14);
    read_all(&mut node);
    assert_eq!(node.faces.n_faces(), 14, "{} wanted one", streams.len());
}
