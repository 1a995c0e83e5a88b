//! What faces may cost: which peers get one, who gives way, and for how long a peer
//! may be silent.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use support::{Node, PATIENCE, data, interest, lp};
use tachonym_face::{
    ChannelOptions, CloseReason, DropReason, FaceParams, SystemOptions, SystemShare,
};
use tachonym_packet::lp::{FaceId, Headers};
use tachonym_packet::types;
use tachonym_protocol::{FaceEventKind, FaceScope, FaceUri};

/// An address of this machine from which a peer counts as remote.
fn own_address() -> IpAddr {
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    // Nothing is sent: the kernel chooses the address from its routes.
    probe.connect("192.0.2.250:9").unwrap();
    probe.local_addr().unwrap().ip()
}

/// A node that listens on all addresses, and where remote peers reach it.
struct Bed {
    node: Node,
    tcp: SocketAddr,
    udp: SocketAddr,
    websocket: SocketAddr,
}

impl Bed {
    fn new(options: SystemOptions) -> Self {
        let mut node = Node::new(options);
        let any = "0.0.0.0:0".parse().unwrap();
        let mut listen = |channel: ChannelOptions| {
            let port = node.listen(&channel).socket_addr().unwrap().port();
            SocketAddr::new(own_address(), port)
        };
        let tcp = listen(ChannelOptions::tcp(any));
        let udp = listen(ChannelOptions::udp(any));
        let websocket = listen(ChannelOptions::websocket(any));
        Self {
            node,
            tcp,
            udp,
            websocket,
        }
    }

    /// A connection from 127.0.0.`host`, and its face if it got one.
    fn connect(&mut self, host: u8) -> (TcpStream, Option<FaceId>) {
        let counted = |node: &Node| {
            let counters = node.faces.counters();
            counters.n_accepted + counters.n_refused
        };
        let before = counted(&self.node);
        let stream = connect(host, self.tcp);
        self.node
            .until("accepted or refused", |node| counted(node) > before);
        let local = FaceUri::Tcp(stream.local_addr().unwrap());
        (stream, self.node.faces.find(&local))
    }

    /// A datagram from a new port of 127.0.0.`host`, and the face if it made one.
    fn write(&mut self, host: u8, wire: &[u8]) -> (UdpSocket, Option<FaceId>) {
        let socket = UdpSocket::bind((IpAddr::from([127, 0, 0, host]), 0)).unwrap();
        socket.connect(self.udp).unwrap();
        socket.send(wire).unwrap();
        let remote = FaceUri::Udp(socket.local_addr().unwrap());
        let before = self.node.faces.counters().drops.total();
        self.node.until("read", |node| {
            node.faces.find(&remote).is_some() || node.faces.counters().drops.total() > before
        });
        (socket, self.node.faces.find(&remote))
    }

    /// Sends a Data to a face, as if it had asked for one.
    fn answer(&mut self, face: FaceId) {
        self.node.send(face, &data(1, 200));
    }

    fn wait(&mut self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            self.node.step(Duration::from_millis(5));
        }
    }

    fn n_dropped(&self, reason: DropReason) -> u64 {
        self.node.faces.counters().drops.get(reason)
    }

    fn has(&self, face: FaceId) -> bool {
        self.node.faces.closing_reason(face).is_none() && self.node.faces.info(face).is_some()
    }
}

fn connect(host: u8, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from = SocketAddr::from(([127, 0, 0, host], 0));
    socket.bind(&from.into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

/// Longer than a new face may take for its first exchange.
const OLD_ENOUGH: Duration = Duration::from_millis(1100);

fn few_faces(max_faces: usize) -> SystemOptions {
    let mut options = SystemOptions::default();
    options.max_faces = max_faces;
    options
}

#[test]
fn idle_connections_give_way_to_newcomers() {
    let mut bed = Bed::new(few_faces(64));
    // A quarter of the faces is not for remote connections.
    let idle: Vec<_> = (0..60).map(|_| bed.connect(2)).collect();
    assert_eq!(bed.node.faces.n_faces(), 48);
    assert_eq!(bed.node.faces.counters().n_refused, 12, "all were new");
    assert!(bed.write(3, &interest(1)).1.is_none());
    bed.wait(OLD_ENOUGH);
    let (udp, over_udp) = bed.write(3, &interest(2));
    let (tcp, over_tcp) = bed.connect(4);
    assert!(over_udp.is_some() && over_tcp.is_some());
    assert_eq!(bed.node.faces.counters().n_evicted, 2);
    // The oldest went first.
    let (mut gone, id) = idle.into_iter().next().unwrap();
    let reason = bed.node.destroyed(id.unwrap()).reason;
    assert_eq!(reason, Some(CloseReason::Evicted));
    assert_eq!(gone.read(&mut [0]).unwrap(), 0, "it is closed");
    assert_eq!(bed.node.faces.n_faces(), 48);
    drop((udp, tcp));
}

#[test]
fn a_face_in_use_does_not_give_way_to_a_flood_of_datagrams() {
    let mut bed = Bed::new(few_faces(64));
    let (honest, face) = bed.write(2, &interest(0));
    let face = face.expect("it is the first");
    bed.answer(face);
    let mut flood = Vec::new();
    let start = Instant::now();
    let mut n_evicted = 0;
    while start.elapsed() < 2 * OLD_ENOUGH || n_evicted < 40 {
        for host in 10..250 {
            flood.push(bed.write(host, &interest(u64::from(host))));
        }
        flood.drain(..flood.len().saturating_sub(300));
        n_evicted = bed.node.faces.counters().n_evicted;
        assert!(start.elapsed() < PATIENCE);
        assert!(bed.node.faces.n_faces() <= 32, "half of the faces");
        assert!(bed.has(face), "evicted after {n_evicted}");
    }
    assert!(bed.n_dropped(DropReason::TooManyFaces) > 100);
    drop(honest);
}

#[test]
fn junk_does_not_make_a_face_useful() {
    let mut bed = Bed::new(few_faces(8));
    let mut faces = Vec::new();
    for host in 2..6 {
        let (socket, face) = bed.write(host, &interest(0));
        faces.push((socket, face.expect("there is room")));
    }
    // The first was answered; the second answered what it was asked.
    bed.answer(faces[0].1);
    bed.node.send(faces[1].1, &interest(1));
    faces[1].0.send(&data(1, 200)).unwrap();
    bed.wait(OLD_ENOUGH);
    for (socket, _) in &faces[2..] {
        for n in 0..10 {
            socket.send(&data(n, 200)).unwrap();
            socket.send(&interest(n)).unwrap();
        }
    }
    bed.wait(Duration::from_millis(50));
    for host in 10..12 {
        assert!(bed.write(host, &interest(0)).1.is_some());
    }
    let are_there: Vec<_> = faces.iter().map(|(_, face)| bed.has(*face)).collect();
    assert_eq!(are_there, [true, true, false, false]);
    assert!(bed.write(12, &interest(0)).1.is_none());
}

#[test]
fn a_source_has_so_many_faces_and_its_least_useful_gives_way() {
    let mut options = SystemOptions::default();
    options.max_faces_per_source = 8;
    let mut bed = Bed::new(options);
    let first: Vec<_> = (0..20).map(|_| bed.connect(2)).collect();
    let n_made = first.iter().filter(|(_, face)| face.is_some()).count();
    assert_eq!(n_made, 8);
    let counters = bed.node.faces.counters();
    assert_eq!((counters.n_refused, counters.n_refused_of_source), (12, 12));
    // Datagrams of the same address count together with its connections.
    assert!(bed.write(2, &interest(0)).1.is_none());
    assert_eq!(bed.n_dropped(DropReason::TooManyFacesOfSource), 1);
    let (_other, face) = bed.connect(3);
    assert!(face.is_some(), "another source");
    bed.wait(OLD_ENOUGH);
    let useful = first[0].1.expect("the first");
    bed.answer(useful);
    assert!(bed.write(2, &interest(0)).1.is_some());
    assert_eq!(bed.node.faces.counters().n_evicted, 1);
    assert!(bed.has(useful), "the second is less useful");
    assert_eq!(bed.node.faces.n_faces(), 9);
    // A face that goes leaves its place to another.
    bed.node.faces.destroy(useful);
    assert!(bed.connect(2).1.is_some());
}

#[test]
fn faces_of_this_machine_and_those_asked_for_neither_count_nor_give_way() {
    let mut options = few_faces(16);
    options.max_faces_per_source = 2;
    let mut bed = Bed::new(options);
    let loopback = SocketAddr::from(([127, 0, 0, 1], bed.tcp.port()));
    let local: Vec<_> = (0..5).map(|_| connect(1, loopback)).collect();
    bed.node
        .until("five faces", |node| node.faces.n_faces() == 5);
    let is_local = |node: &Node| {
        node.faces
            .faces()
            .all(|face| face.scope == FaceScope::Local)
    };
    assert!(is_local(&bed.node));
    let peers: Vec<_> = (0..5)
        .map(|_| UdpSocket::bind("127.0.0.2:0").unwrap())
        .collect();
    for peer in &peers {
        // From an address that is not loopback, so that it is remote.
        let mut params = FaceParams::new(FaceUri::Udp(peer.local_addr().unwrap()));
        params.local = Some(FaceUri::Udp(bed.udp));
        bed.node.faces.create(&params).unwrap();
    }
    let lasting: Vec<_> = bed.node.faces.face_ids().collect();
    assert!(bed.write(2, &interest(0)).1.is_none(), "half are taken");
    bed.wait(OLD_ENOUGH);
    assert!(bed.write(2, &interest(0)).1.is_none());
    let on_demand: Vec<_> = (0..2).map(|_| bed.connect(2)).collect();
    assert!(on_demand.iter().all(|(_, face)| face.is_some()));
    bed.wait(OLD_ENOUGH);
    for _ in 0..20 {
        bed.connect(3);
    }
    assert!(lasting.iter().all(|face| bed.has(*face)));
    drop((local, peers));
}

#[test]
fn only_a_datagram_with_an_interest_makes_a_face() {
    let mut bed = Bed::new(SystemOptions::default());
    let whole = interest(1);
    let fragment = |index: u64, payload: &[u8]| {
        lp(&[
            (types::LP_SEQUENCE, &(100 + index).to_be_bytes()),
            (types::LP_FRAG_INDEX, &[index as u8]),
            (types::LP_FRAG_COUNT, &[2]),
            (types::LP_FRAGMENT, payload),
        ])
    };
    let (head, tail) = whole.split_at(whole.len() / 2);
    let useless = [
        lp(&[]),
        lp(&[(types::LP_PIT_TOKEN, &[1])]),
        lp(&[(types::LP_NACK, &[]), (types::LP_FRAGMENT, &whole)]),
        data(1, 200),
        lp(&[(types::LP_FRAGMENT, &data(1, 200))]),
        fragment(1, tail),
        fragment(0, &data(1, 200)[..100]),
    ];
    for (n, wire) in useless.iter().enumerate() {
        assert!(bed.write(2, wire).1.is_none(), "{n}");
        assert_eq!(bed.n_dropped(DropReason::NoInterest), n as u64 + 1);
    }
    let malformed = [vec![0x64], vec![0x05, 0], vec![0x64, 2, 0x50, 0], {
        let mut cut = whole.clone();
        cut.pop();
        cut
    }];
    for (n, wire) in malformed.iter().enumerate() {
        assert!(bed.write(2, wire).1.is_none(), "{n}");
        assert_eq!(bed.n_dropped(DropReason::BadDatagram), n as u64 + 1);
    }
    for _ in 0..2048 {
        // Some may be lost on the way here; none makes a face.
        let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
        socket.send_to(&[0x64, 0], bed.udp).unwrap();
        bed.node.step(Duration::ZERO);
    }
    assert_eq!(bed.node.faces.n_faces(), 0);
    for wire in [
        whole.clone(),
        lp(&[(types::LP_FRAGMENT, &whole)]),
        fragment(0, head),
    ] {
        assert!(bed.write(2, &wire).1.is_some());
    }
}

#[test]
fn a_remote_peer_that_never_sends_an_interest_is_closed_in_time() {
    let mut options = SystemOptions::default();
    options.silent_timeout = Some(Duration::from_millis(300));
    let mut bed = Bed::new(options);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    bed.node.listen(&ChannelOptions::unix(&path));
    let local = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let (mut speaking, speaks) = bed.connect(2);
    speaking.write_all(&interest(1)).unwrap();
    let (mut silent, is_silent) = bed.connect(2);
    // A Data that was not asked for says nothing.
    silent.write_all(&data(1, 200)).unwrap();
    let (_udp, speaks_udp) = bed.write(2, &interest(1));
    let is_silent = is_silent.expect("there is room");
    let reason = bed.node.destroyed(is_silent).reason;
    assert_eq!(reason, Some(CloseReason::Silent));
    assert_eq!(bed.node.faces.counters().n_silent, 1);
    bed.wait(Duration::from_millis(400));
    assert!(bed.has(speaks.unwrap()) && bed.has(speaks_udp.unwrap()));
    let is_unix = |uri: &FaceUri| matches!(uri, FaceUri::Unix(_));
    assert!(bed.node.faces.faces().any(|face| is_unix(&face.local)));
    drop(local);
}

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A WebSocket whose handshake is over, and its face.
fn open_websocket(node: &mut Node, to: SocketAddr) -> (TcpStream, FaceId) {
    let mut peer = TcpStream::connect(to).unwrap();
    peer.write_all(UPGRADE.as_bytes()).unwrap();
    let uri = FaceUri::WebSocketClient(peer.local_addr().unwrap());
    let find = |node: &Node| {
        let mut faces = node.faces.faces();
        faces.find(|face| face.remote == uri && face.is_up())
    };
    node.until("open", |node| find(node).is_some());
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        peer.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    peer.set_nonblocking(true).unwrap();
    let id = find(node).unwrap().id;
    (peer, id)
}

#[test]
fn a_websocket_that_answers_no_ping_is_closed() {
    let mut options = SystemOptions::default();
    options.websocket_ping_interval = Duration::from_millis(100);
    // After this it is looked after for the first time.
    options.connect_timeout = Duration::from_millis(200);
    options.silent_timeout = None;
    let mut bed = Bed::new(options);
    let to = bed.websocket;
    let (mut alive, alive_face) = open_websocket(&mut bed.node, to);
    let (mut gone, gone_face) = open_websocket(&mut bed.node, to);
    let mut n_pings = 0;
    let mut room = [0; 100];
    bed.node.until("an end", |node| {
        match alive.read(&mut room) {
            // An empty ping, which is answered by an empty pong with an empty mask.
            Ok(n_read) => {
                assert_eq!(room[..n_read], [0x89, 0]);
                alive.write_all(&[0x8a, 0x80, 0, 0, 0, 0]).unwrap();
                n_pings += 1;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        node.has(FaceEventKind::Destroyed)
    });
    let reason = bed.node.destroyed(gone_face).reason;
    assert_eq!(reason, Some(CloseReason::NoPong));
    assert_eq!(bed.node.faces.counters().n_unanswered_pings, 1);
    assert!(n_pings > 0 && bed.has(alive_face));
    assert!(gone.read(&mut room).unwrap() >= 2, "it was sent a ping");
}

#[test]
fn what_a_websocket_holds_back_counts_to_its_backlog() {
    let mut options = SystemOptions::default();
    options.max_face_backlog_bytes = 200_000;
    options.stall_timeout = PATIENCE;
    let mut bed = Bed::new(options.clone());
    let to = bed.websocket;
    let (mut peer, face) = open_websocket(&mut bed.node, to);
    let packet = data(1, 8000);
    // Handed over in large pieces, of which the protocol collects what it can.
    let refusal = loop {
        if let Err(reason) = bed.node.faces.send(face, &Headers::default(), &packet) {
            break reason;
        }
    };
    bed.node.faces.flush();
    assert_eq!(refusal, DropReason::BacklogFull);
    let waiting = bed.node.info(face).backlog_bytes;
    assert!(waiting <= options.max_face_backlog_bytes);
    // What the kernel has comes though the node writes no more.
    let mut n_read = 0;
    let mut room = vec![0; 1 << 20];
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_millis(200) {
        match peer.read(&mut room) {
            Ok(n_bytes) => (n_read, since) = (n_read + n_bytes, Instant::now()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    // Each frame has a head of four bytes, which its packet lacks while it waits.
    let counters = bed.node.info(face).counters;
    let n_bytes = (counters.n_out_bytes + 4 * counters.n_out_frames) as usize;
    let held = n_bytes - n_read;
    let n_heads = 4 * options.max_face_backlog_bytes / packet.len();
    assert!(
        held <= waiting + n_heads,
        "{held} bytes are held, and {waiting} are known"
    );
    // And all of it arrives in the end.
    bed.node.until("the rest", |node| {
        n_read += peer.read(&mut room).unwrap_or(0);
        node.info(face).backlog_bytes == 0
    });
    while let Ok(n_bytes) = peer.read(&mut room) {
        n_read += n_bytes;
    }
    assert_eq!(n_read, n_bytes);
}

#[test]
fn systems_of_one_router_limit_a_source_together() {
    let mut options = SystemOptions::default();
    options.max_faces_per_source = 6;
    let mut nodes: Vec<_> = SystemShare::split(2)
        .into_iter()
        .map(|share| {
            let mut options = options.clone();
            options.share = share;
            Node::new(options)
        })
        .collect();
    let uri = nodes[0].listen(&ChannelOptions::tcp("0.0.0.0:0".parse().unwrap()));
    let to = SocketAddr::new(own_address(), uri.socket_addr().unwrap().port());
    let streams: Vec<_> = (0..10).map(|_| connect(2, to)).collect();
    let start = Instant::now();
    let n_seen = |nodes: &[Node]| {
        let counters = nodes.iter().map(|node| node.faces.counters());
        counters.map(|c| c.n_accepted + c.n_refused).sum::<u64>()
    };
    while n_seen(&nodes) < 10 {
        assert!(start.elapsed() < PATIENCE);
        for node in &mut nodes {
            node.step(Duration::from_millis(1));
        }
    }
    let n_faces: Vec<_> = nodes.iter().map(|node| node.faces.n_faces()).collect();
    assert_eq!(n_faces.iter().sum::<usize>(), 6, "{n_faces:?}");
    assert!(n_faces.iter().all(|n| *n > 0), "{n_faces:?}");
    drop(streams);
}
