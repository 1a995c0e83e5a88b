//! How long faces live, and what their link service does about bad links.

mod support;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use support::{Node, connect, data, interest, loopback, until_both};
use tachonym_face::{
    ChannelAddress, ChannelOptions, CloseReason, CreateError, DropReason, FaceParams, FaceUpdate,
    Loopback, MulticastOptions, SystemOptions, UpdateError,
};
use tachonym_packet::lp::Headers;
use tachonym_protocol::{FaceEventKind, FacePersistency, FaceUri, LinkType};

/// Redials at once, so that no test waits for it.
fn hasty() -> SystemOptions {
    let mut options = SystemOptions::default();
    options.redial_wait = Duration::from_millis(10);
    options.max_redial_wait = Duration::from_millis(50);
    options
}

#[test]
fn on_demand_faces_go_when_idle_and_dialled_ones_stay() {
    for mut options in [
        ChannelOptions::udp(loopback()),
        ChannelOptions::tcp(loopback()),
        ChannelOptions::websocket(loopback()),
    ] {
        // Connections tell when they end: only peers over UDP have to be missed.
        let is_udp = matches!(options.address, ChannelAddress::Udp(_));
        assert_eq!(options.idle_timeout.is_some(), is_udp);
        options.idle_timeout = Some(Duration::from_millis(50));
        let (mut a, mut b) = (Node::default(), Node::default());
        let (to_b, to_a) = connect(&mut a, &mut b, &options);
        assert_eq!(b.info(to_a).persistency, FacePersistency::OnDemand);
        assert!(b.info(to_a).expires_in.is_some());
        assert_eq!(b.destroyed(to_a).reason, Some(CloseReason::Idle));
        assert_eq!(a.info(to_b).persistency, FacePersistency::Persistent);
    }
}

#[test]
fn traffic_keeps_an_on_demand_face() {
    let mut options = ChannelOptions::udp(loopback());
    options.idle_timeout = Some(Duration::from_secs(3));
    let (mut a, mut b) = (Node::default(), Node::default());
    let (to_b, to_a) = connect(&mut a, &mut b, &options);
    // Longer than it may be idle, in steps shorter than that.
    for n in 0..35 {
        a.send(to_b, &interest(n));
        let so_far = b.packets.len();
        until_both(&mut a, &mut b, "packet", |_, b| b.packets.len() > so_far);
        b.step(Duration::from_millis(100));
    }
    assert!(b.faces.info(to_a).is_some());
    assert_eq!(b.destroyed(to_a).reason, Some(CloseReason::Idle));
}

#[test]
fn a_permanent_face_comes_back_by_itself_and_from_its_own_address() {
    for (options, local) in [
        (ChannelOptions::tcp(loopback()), "tcp4://127.0.0.7"),
        (ChannelOptions::websocket(loopback()), "ws://127.0.0.7"),
    ] {
        let (mut a, mut b) = (Node::new(hasty()), Node::default());
        let uri = b.listen(&options);
        let mut params = FaceParams::new(uri.clone());
        params.persistency = FacePersistency::Permanent;
        params.local = Some(FaceUri::parse_local(local).unwrap());
        let id = a.faces.create(&params).unwrap().id;
        until_both(&mut a, &mut b, "connection", |a, b| {
            a.info(id).is_up() && b.has(FaceEventKind::Created)
        });
        // The other end goes, and comes back at the same address.
        drop(b);
        a.until("down", |a| a.has(FaceEventKind::Down));
        assert!(!a.info(id).is_up());
        let down = a.events.iter().find(|it| it.kind == FaceEventKind::Down);
        let reason = down.and_then(|event| event.reason).expect("a cause");
        assert!(
            matches!(reason, CloseReason::ClosedByPeer | CloseReason::Failed(_)),
            "{reason:?}"
        );
        a.events.clear();
        let mut again = options.clone();
        again.address = match uri {
            FaceUri::Tcp(addr) => ChannelOptions::tcp(addr).address,
            FaceUri::WebSocket(addr) => ChannelOptions::websocket(addr).address,
            ref other => panic!("{other}"),
        };
        let mut b = Node::default();
        b.listen(&again);
        until_both(&mut a, &mut b, "up again", |a, _| {
            a.has(FaceEventKind::Up) && a.info(id).is_up()
        });
        a.send(id, &interest(7));
        until_both(&mut a, &mut b, "packet", |_, b| !b.packets.is_empty());
        assert_eq!(b.packets[0].l3, interest(7));
        let seen_from = b.info(b.packets[0].face).remote.socket_addr().unwrap();
        assert_eq!(seen_from.ip().to_string(), "127.0.0.7");
    }
}

#[test]
fn a_persistent_face_ends_with_its_connection() {
    let (mut a, mut b) = (Node::default(), Node::default());
    let (to_b, _) = connect(&mut a, &mut b, &ChannelOptions::tcp(loopback()));
    drop(b);
    let reason = a.destroyed(to_b).reason.unwrap();
    assert!(
        matches!(reason, CloseReason::ClosedByPeer | CloseReason::Failed(_)),
        "{reason:?}"
    );
}

#[test]
fn dialling_nobody_fails_without_blocking() {
    let mut a = Node::default();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = port.local_addr().unwrap();
    drop(port);
    let outcome = a.faces.create(&FaceParams::new(FaceUri::Tcp(addr)));
    match outcome {
        Ok(outcome) => {
            let reason = a.destroyed(outcome.id).reason.unwrap();
            assert!(
                matches!(reason, CloseReason::ConnectFailed(_)),
                "{reason:?}"
            );
        }
        Err(error) => assert!(matches!(error, CreateError::Io(_)), "{error}"),
    }
    let nowhere = FaceUri::Unix("/nowhere/s".into());
    assert!(a.faces.create(&FaceParams::new(nowhere)).is_err());
}

#[test]
fn a_closed_port_costs_datagrams_and_not_the_face() {
    let mut a = Node::default();
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = peer.local_addr().unwrap();
    let to_peer = a.dial(&FaceUri::Udp(addr));
    drop(peer);
    assert_eq!(a.faces.returned(to_peer), None);
    // The kernel reports the closed port by an error of a later call.
    for n in 0..5 {
        a.send(to_peer, &interest(n));
        a.step(Duration::from_millis(2));
    }
    assert!(!a.has(FaceEventKind::Destroyed));
    let refused = std::io::ErrorKind::ConnectionRefused;
    assert_eq!(a.faces.returned(to_peer), Some(refused));
    let peer = UdpSocket::bind(addr).unwrap();
    peer.set_read_timeout(Some(support::PATIENCE)).unwrap();
    a.step(Duration::ZERO);
    // The first one may still meet the last error.
    a.send(to_peer, &interest(6));
    a.send(to_peer, &interest(7));
    let mut room = [0; 100];
    let len = peer.recv(&mut room).unwrap();
    assert!([interest(6), interest(7)].contains(&room[..len].to_vec()));
}

#[test]
fn a_face_is_changed_as_asked_or_not_at_all() {
    let (mut a, mut b) = (Node::default(), Node::default());
    let (to_b, to_a) = connect(&mut a, &mut b, &ChannelOptions::udp(loopback()));
    let update = FaceUpdate {
        persistency: Some(FacePersistency::Permanent),
        mtu_bytes: Some(1400),
        reliability: Some(true),
        ..FaceUpdate::default()
    };
    a.faces.update(to_b, &update).unwrap();
    let info = a.info(to_b);
    assert_eq!(info.persistency, FacePersistency::Permanent);
    assert_eq!(info.mtu_bytes, Some(1400));
    assert!(info.link.reliability);
    let mut gone = Node::default();
    assert_eq!(
        gone.faces.update(to_b, &update),
        Err(UpdateError::NoSuchFace)
    );
    assert!(b.faces.destroy(to_a));
    assert!(!b.faces.destroy(to_a));
}

#[test]
fn large_packets_cross_a_small_mtu_in_fragments() {
    for mtu_bytes in [128, 500, 1400] {
        let mut options = ChannelOptions::udp(loopback());
        options.mtu_bytes = mtu_bytes;
        let (mut a, mut b) = (Node::default(), Node::default());
        let (to_b, _) = connect(&mut a, &mut b, &options);
        let update = FaceUpdate {
            mtu_bytes: Some(mtu_bytes),
            ..FaceUpdate::default()
        };
        a.faces.update(to_b, &update).unwrap();
        let sent: Vec<_> = [100, 1399, 1400, 4000, 8800].map(|n| data(1, n)).to_vec();
        for packet in &sent {
            a.send(to_b, packet);
            let wanted = b.packets.len() + 1;
            until_both(&mut a, &mut b, "packet", |_, b| b.packets.len() >= wanted);
        }
        let got: Vec<_> = b.packets.iter().map(|packet| packet.l3.clone()).collect();
        assert_eq!(got, sent, "{mtu_bytes}");
        let counters = a.info(to_b).counters;
        assert!(counters.n_out_frames > 10, "{counters:?}");
    }
}

/// Passes datagrams between two peers and loses every `lose`-th, both ways.
struct LossyLink {
    left: UdpSocket,
    right: UdpSocket,
    client: Option<SocketAddr>,
    server: SocketAddr,
    n_seen: u64,
    lose: u64,
}

impl LossyLink {
    fn new(server: SocketAddr, lose: u64) -> Self {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        Self {
            left: socket(),
            right: socket(),
            client: None,
            server,
            n_seen: 0,
            lose,
        }
    }

    fn pass(&mut self) {
        let mut room = [0; 65_536];
        while let Ok((len, from)) = self.left.recv_from(&mut room) {
            self.client = Some(from);
            self.n_seen += 1;
            if !self.n_seen.is_multiple_of(self.lose) {
                self.right.send_to(&room[..len], self.server).unwrap();
            }
        }
        while let Ok((len, _)) = self.right.recv_from(&mut room) {
            self.n_seen += 1;
            if let (false, Some(client)) = (self.n_seen.is_multiple_of(self.lose), self.client) {
                self.left.send_to(&room[..len], client).unwrap();
            }
        }
    }
}

#[test]
fn reliability_carries_every_packet_over_a_lossy_link() {
    let (mut a, mut b) = (Node::default(), Node::default());
    let mut options = ChannelOptions::udp(loopback());
    options.link.reliability = true;
    let uri = b.listen(&options);
    let mut link = LossyLink::new(uri.socket_addr().unwrap(), 10);
    let mut params = FaceParams::new(FaceUri::Udp(link.left.local_addr().unwrap()));
    params.link.reliability = true;
    params.mtu_bytes = Some(1400);
    let to_b = a.dial_with(&params);
    let sent: Vec<_> = (0..300).map(|n| data(n, 3000)).collect();
    // A Data alone makes no face at the other end.
    a.send(to_b, &interest(0));
    link.pass();
    b.until("the Interest", |b| !b.packets.is_empty());
    b.packets.clear();
    let mut waiting = sent.iter();
    let start = std::time::Instant::now();
    while b.packets.len() < sent.len() {
        assert!(
            start.elapsed() < support::PATIENCE,
            "{} came",
            b.packets.len()
        );
        if let Some(packet) = waiting.next() {
            a.send(to_b, packet);
        }
        a.step(Duration::from_millis(1));
        link.pass();
        b.step(Duration::from_millis(1));
        link.pass();
    }
    let mut got: Vec<_> = b.packets.iter().map(|packet| packet.l3.clone()).collect();
    // Retransmission puts packets out of order.
    got.sort();
    let mut sent = sent;
    sent.sort();
    assert_eq!(got, sent);
    assert!(a.info(to_b).counters.n_retransmitted > 0);
}

#[test]
fn without_reliability_what_is_lost_is_given_up_in_time() {
    let (mut a, mut b) = (Node::default(), Node::default());
    let uri = b.listen(&ChannelOptions::udp(loopback()));
    let mut link = LossyLink::new(uri.socket_addr().unwrap(), 3);
    let mut params = FaceParams::new(FaceUri::Udp(link.left.local_addr().unwrap()));
    params.mtu_bytes = Some(1400);
    let to_b = a.dial_with(&params);
    // A Data alone makes no face at the other end.
    a.send(to_b, &interest(0));
    link.pass();
    b.until("the Interest", |b| !b.packets.is_empty());
    b.packets.clear();
    // Three fragments each, of which every third is lost.
    for n in 0..10 {
        a.send(to_b, &data(n, 4000));
        link.pass();
    }
    b.until("give up", |b| {
        b.faces.counters().drops.get(DropReason::ReassemblyTimeout) > 0
    });
    assert!(b.packets.len() < 10);
}

/// A program of another kind that takes part in `group` over loopback.
fn group_member(group: SocketAddrV4) -> UdpSocket {
    let (domain, kind) = (socket2::Domain::IPV4, socket2::Type::DGRAM);
    let socket = socket2::Socket::new(domain, kind, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddr::V4(group).into()).unwrap();
    let socket = UdpSocket::from(socket);
    let interface = Ipv4Addr::LOCALHOST;
    socket.join_multicast_v4(group.ip(), &interface).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

#[test]
fn a_multicast_face_reaches_the_group_and_ignores_itself() {
    let group = SocketAddrV4::new(Ipv4Addr::new(224, 0, 23, 170), 56_400);
    let mut options = MulticastOptions::new(group.into(), "lo");
    options.loopback = Loopback::On;
    let mut node = Node::default();
    let id = node.faces.create_multicast(&options).unwrap();
    assert_eq!(node.info(id).link_type, LinkType::MultiAccess);
    assert_eq!(node.info(id).persistency, FacePersistency::Permanent);

    let member = group_member(group);
    node.send(id, &interest(1));
    let mut room = [0; 2000];
    let start = std::time::Instant::now();
    let len = loop {
        assert!(start.elapsed() < support::PATIENCE);
        node.step(Duration::from_millis(1));
        if let Ok((len, _)) = member.recv_from(&mut room) {
            break len;
        }
    };
    assert_eq!(room[..len], interest(1));

    // One more of its own comes back to it before the member's answer.
    node.send(id, &interest(2));
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = socket2::SockRef::from(&sender);
    options.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    sender.send_to(&data(1, 500), group).unwrap();
    node.until("packet", |node| !node.packets.is_empty());
    assert_eq!(node.packets.len(), 1, "a face does not hear itself");
    assert_eq!(node.packets[0].face, id);
    assert_eq!(node.packets[0].l3, data(1, 500));
}

#[test]
fn a_backlog_is_bounded_for_each_and_for_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut limits = SystemOptions::default();
    limits.max_face_backlog_bytes = 100_000;
    limits.face_backlog_reserve_bytes = 10_000;
    limits.max_total_backlog_bytes = 120_000;
    let mut a = Node::new(limits);
    let uri = a.listen(&ChannelOptions::unix(dir.path().join("s")));
    let FaceUri::Unix(path) = uri else {
        panic!("{uri}");
    };
    // Three peers that never read.
    let peers: Vec<_> = (0..3)
        .map(|_| std::os::unix::net::UnixStream::connect(&path).unwrap())
        .collect();
    a.until("faces", |a| a.faces.n_faces() == 3);
    let ids: Vec<_> = a.faces.faces().map(|face| face.id).collect();
    let mut n_dropped = 0;
    for n in 0..1000 {
        for &id in &ids {
            let sent = a.faces.send(id, &Headers::default(), &data(n, 8000));
            n_dropped += u64::from(sent.is_err());
        }
        a.faces.flush();
    }
    let waiting: usize = a.faces.faces().map(|face| face.backlog_bytes).sum();
    assert!(waiting <= 150_000, "{waiting}");
    assert!(a.faces.faces().all(|face| face.backlog_bytes <= 100_000));
    assert_eq!(a.faces.counters().drops.total(), n_dropped);
    assert!(n_dropped > 2000);
    drop(peers);
}
