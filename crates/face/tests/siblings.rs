//! Several face systems of one router, side by side.

mod support;

use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::{Node, PATIENCE, every_channel, interest, loopback};
use tachonym_face::{
    ChannelOptions, CreateError, DropReason, FaceParams, FaceSystem, ListenError, Placement,
    SystemOptions, SystemShare, TURN_PKTS,
};
use tachonym_packet::FaceId;
use tachonym_packet::lp::Headers;
use tachonym_protocol::{FaceEventKind, FaceUri};

/// Most that can be made where the kernel would not bring them.
const MAX_MOVED: usize = 64;

fn nodes_with(n_systems: usize, options: &SystemOptions) -> Vec<Node> {
    let nodes = SystemShare::split(n_systems).into_iter().map(|share| {
        let mut options = options.clone();
        options.share = share;
        Node::new(options)
    });
    nodes.collect()
}

fn nodes(n_systems: usize) -> Vec<Node> {
    nodes_with(n_systems, &SystemOptions::default())
}

/// Reads what there is, until nobody gets anything.
fn read_all(nodes: &mut [Node]) {
    loop {
        let n_before: usize = nodes.iter().map(|node| node.packets.len()).sum();
        for node in nodes.iter_mut() {
            for _ in 0..32 {
                node.step(Duration::ZERO);
            }
        }
        if n_before == nodes.iter().map(|node| node.packets.len()).sum() {
            return;
        }
    }
}

/// A program that writes to `to`.
fn program(to: SocketAddr) -> UdpSocket {
    let any_port = SocketAddr::new(to.ip(), 0);
    let socket = UdpSocket::bind(any_port).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn uri_of(program: &UdpSocket) -> FaceUri {
    FaceUri::Udp(program.local_addr().unwrap())
}

fn write(program: &UdpSocket, n_datagrams: usize) {
    for _ in 0..n_datagrams {
        program.send(&interest(0)).unwrap();
    }
}

/// The faces of the program, and the systems that have them.
fn faces_of(nodes: &[Node], program: &UdpSocket) -> Vec<(usize, FaceId)> {
    let remote = uri_of(program);
    let all = nodes.iter().enumerate();
    all.flat_map(|(index, node)| {
        let faces = node.faces.faces().filter(|face| face.remote == remote);
        faces.map(move |face| (index, face.id))
    })
    .collect()
}

/// The packets of a face.
fn n_of(nodes: &[Node], (index, id): (usize, FaceId)) -> usize {
    let packets = nodes[index].packets.iter();
    packets.filter(|packet| packet.face == id).count()
}

/// Where a UDP listener may be, and where its peers write to.
fn udp_addresses() -> Vec<(SocketAddr, &'static str)> {
    let mut all = vec![("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1")];
    if UdpSocket::bind("[::1]:0").is_ok() {
        all.extend([("[::1]:0", "[::1]"), ("[::]:0", "[::1]")]);
    }
    let parsed = all.into_iter();
    parsed.map(|(at, to)| (at.parse().unwrap(), to)).collect()
}

/// Lets them listen; where peers write to.
fn listen_udp(nodes: &mut [Node], (at, to): (SocketAddr, &str)) -> SocketAddr {
    let uri = nodes[0].listen(&ChannelOptions::udp(at));
    read_all(nodes);
    let port = uri.socket_addr().unwrap().port();
    format!("{to}:{port}").parse().unwrap()
}

/// Sends everything back where it came from, until told to stop.
fn echo(mut node: Node, is_over: &AtomicBool) -> Node {
    let mut n_answered = 0;
    while !is_over.load(Ordering::Acquire) {
        node.step(PATIENCE);
        for packet in &node.packets[n_answered..] {
            let sent = node
                .faces
                .send(packet.face, &Headers::default(), &packet.l3);
            sent.expect("its face is there");
        }
        n_answered = node.packets.len();
        node.faces.flush();
    }
    node
}

#[test]
fn an_exchange_stays_within_one_system_and_all_systems_get_clients() {
    const N_CLIENTS: usize = 60;
    const N_PACKETS: u64 = 8;
    for n_systems in [2, 3] {
        let dir = tempfile::tempdir().unwrap();
        for (kind, options) in every_channel(dir.path()) {
            let mut nodes = nodes(n_systems);
            let uri = nodes[n_systems - 1].listen(&options);
            let is_over = Arc::new(AtomicBool::new(false));
            let wakers: Vec<_> = nodes.iter().map(|node| node.faces.waker()).collect();
            let threads: Vec<_> = nodes
                .into_iter()
                .map(|node| {
                    let is_over = Arc::clone(&is_over);
                    thread::spawn(move || echo(node, &is_over))
                })
                .collect();

            let number = |client: usize, n| client as u64 * 1000 + n;
            let mut clients: Vec<_> = (0..N_CLIENTS)
                .map(|_| {
                    let mut client = Node::default();
                    let params = FaceParams::new(uri.clone());
                    let id = client.faces.create(&params).unwrap().id;
                    (client, id)
                })
                .collect();
            // No more at a time than the queue of any socket holds.
            for n in 0..N_PACKETS {
                for (i, (client, id)) in clients.iter_mut().enumerate() {
                    client.send(*id, &interest(number(i, n)));
                }
                let start = Instant::now();
                let is_behind = |node: &Node| node.packets.len() as u64 <= n;
                while clients.iter().any(|(client, _)| is_behind(client)) {
                    assert!(start.elapsed() < PATIENCE, "{kind}: waited in vain");
                    let behind = clients.iter_mut().filter(|(client, _)| is_behind(client));
                    behind.for_each(|(client, _)| client.step(Duration::ZERO));
                    thread::yield_now();
                }
            }
            for (i, (client, _)) in clients.iter_mut().enumerate() {
                client.step(Duration::ZERO);
                let got: Vec<_> = client.packets.iter().map(|p| p.l3.clone()).collect();
                let sent: Vec<_> = (0..N_PACKETS).map(|n| interest(number(i, n))).collect();
                assert_eq!(got, sent, "{kind}");
            }
            is_over.store(true, Ordering::Release);
            wakers.iter().for_each(|waker| waker.wake());
            let nodes: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();

            let mut face_of_packet = HashMap::new();
            for node in &nodes {
                for packet in &node.packets {
                    let earlier = face_of_packet.insert(packet.l3.clone(), packet.face);
                    assert_eq!(earlier, None, "{kind}: a packet came twice");
                }
            }
            assert_eq!(face_of_packet.len(), N_CLIENTS * N_PACKETS as usize);
            let mut faces = HashSet::new();
            for i in 0..N_CLIENTS {
                let its = (0..N_PACKETS).map(|n| face_of_packet[&interest(number(i, n))]);
                let its: HashSet<_> = its.collect();
                assert_eq!(its.len(), 1, "{kind}: client {i} has several faces");
                faces.extend(its);
            }
            assert_eq!(faces.len(), N_CLIENTS, "{kind}");
            for (index, node) in nodes.iter().enumerate() {
                let n_faces = node.faces.n_faces();
                assert!(n_faces > 0, "{kind}: nobody came to system {index}");
                if !kind.starts_with("udp") {
                    assert_eq!(n_faces, N_CLIENTS / n_systems, "{kind}");
                }
                for id in node.faces.face_ids() {
                    assert_eq!(node.faces.share().owner_of(id), Some(index));
                }
                assert_eq!(node.faces.counters().drops.total(), 0, "{kind}");
            }
            let told: Vec<_> = nodes
                .iter()
                .flat_map(|node| node.faces.channels())
                .collect();
            assert_eq!(told.len(), 1, "{kind}");
            assert_eq!(told[0].local, uri);
        }
    }
}

#[test]
fn peers_stay_where_they_are_whoever_gets_a_socket_or_loses_it() {
    for address in udp_addresses() {
        let mut nodes = nodes(3);
        let to = listen_udp(&mut nodes, address);
        let programs: Vec<_> = (0..60).map(|_| program(to)).collect();
        programs.iter().for_each(|program| write(program, 1));
        read_all(&mut nodes);
        let faces: Vec<_> = programs.iter().map(|p| faces_of(&nodes, p)).collect();
        assert!(faces.iter().all(|its| its.len() == 1), "{faces:?}");
        let mut faces: Vec<_> = faces.into_iter().flatten().collect();
        for round in 0..4 {
            // Every third floods, and gets a socket of its own; after that some
            // faces go, and their sockets with them.
            for node in &mut nodes {
                node.packets.clear();
            }
            let n_datagrams = |i| if i % 3 == 0 { 4 * TURN_PKTS } else { 2 };
            for (i, program) in programs.iter().enumerate() {
                write(program, n_datagrams(i));
                if i % 3 == 0 {
                    read_all(&mut nodes);
                }
            }
            read_all(&mut nodes);
            for (i, program) in programs.iter().enumerate() {
                assert_eq!(faces_of(&nodes, program), [faces[i]], "{address:?}");
                assert_eq!(n_of(&nodes, faces[i]), n_datagrams(i), "{address:?}");
                // The program hears nobody but whom it has written to.
                let (index, id) = faces[i];
                nodes[index].send(id, &interest(1));
                assert_eq!(program.recv(&mut [0; 2_000]).unwrap(), interest(1).len());
            }
            for i in (0..programs.len()).filter(|i| i % 15 == 3 * round) {
                let (index, id) = faces[i];
                assert!(nodes[index].faces.destroy(id));
                write(&programs[i], 1);
                read_all(&mut nodes);
                let its = faces_of(&nodes, &programs[i]);
                assert_eq!(its.len(), 1);
                assert_eq!(its[0].0, index, "back where it was");
                faces[i] = its[0];
            }
        }
        let n_faces: usize = nodes.iter().map(|node| node.faces.n_faces()).sum();
        assert_eq!(n_faces, programs.len());
    }
}

#[test]
fn what_a_neighbour_writes_comes_to_the_system_that_was_asked_for_its_face() {
    for address in udp_addresses() {
        let mut nodes = nodes(3);
        let to = listen_udp(&mut nodes, address);
        let neighbours: Vec<_> = (0..12).map(|_| program(to)).collect();
        let mut faces = Vec::new();
        for (i, neighbour) in neighbours.iter().enumerate() {
            let params = FaceParams::new(uri_of(neighbour));
            for node in &nodes {
                assert_eq!(node.faces.placement(&params), Placement::Anywhere);
            }
            let index = i % 3;
            faces.push((index, nodes[index].dial_with(&params)));
            // Who has it is found, and makes no second one.
            let placements = nodes.iter().map(|node| node.faces.placement(&params));
            assert_eq!(placements.min(), Some(Placement::Exists(faces[i].1)));
            assert!(nodes[index].faces.create(&params).unwrap().already_existed);
        }
        let strangers: Vec<_> = (0..12).map(|_| program(to)).collect();
        strangers.iter().for_each(|stranger| write(stranger, 3));
        neighbours.iter().for_each(|neighbour| write(neighbour, 40));
        read_all(&mut nodes);
        for (neighbour, face) in neighbours.iter().zip(&faces) {
            assert_eq!(faces_of(&nodes, neighbour), [*face], "{address:?}");
            assert_eq!(n_of(&nodes, *face), 40, "{address:?}");
            nodes[face.0].send(face.1, &interest(1));
            let mut buffer = [0; 2_000];
            let n_bytes = neighbour.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..n_bytes], interest(1));
        }
        for stranger in &strangers {
            let its = faces_of(&nodes, stranger);
            assert_eq!(its.len(), 1);
            assert_eq!(n_of(&nodes, its[0]), 3);
        }
        // One that goes leaves its neighbour to the listener.
        for (neighbour, (index, id)) in neighbours.iter().zip(faces) {
            assert!(nodes[index].faces.destroy(id));
            write(neighbour, 1);
            read_all(&mut nodes);
            let its = faces_of(&nodes, neighbour);
            assert_eq!(its.len(), 1);
            assert_ne!(its[0].1, id);
        }
    }
}

#[test]
fn a_neighbour_that_writes_to_another_of_our_addresses_keeps_its_face() {
    let mut nodes = nodes(3);
    let to = listen_udp(&mut nodes, ("0.0.0.0:0".parse().unwrap(), "127.0.0.1"));
    for i in 0..12 {
        let neighbour = UdpSocket::bind(loopback()).unwrap();
        let face = (i % 3, nodes[i % 3].dial(&uri_of(&neighbour)));
        for last in [1, 9, 1] {
            let ours = SocketAddr::from(([127, 0, 0, last], to.port()));
            neighbour.send_to(&interest(0), ours).unwrap();
        }
        read_all(&mut nodes);
        assert_eq!(faces_of(&nodes, &neighbour), [face]);
        assert_eq!(n_of(&nodes, face), 3);
    }
}

#[test]
fn a_neighbour_that_wrote_before_its_face_was_made_elsewhere_has_one_face() {
    for is_read_before in [false, true] {
        let mut nodes = nodes(2);
        let to = listen_udp(&mut nodes, (loopback(), "127.0.0.1"));
        let neighbour = program(to);
        write(&neighbour, 1);
        read_all(&mut nodes);
        let (home, id) = faces_of(&nodes, &neighbour)[0];
        if !is_read_before {
            nodes[home].faces.destroy(id);
            write(&neighbour, 1);
        }
        let elsewhere = 1 - home;
        let id = nodes[elsewhere].dial(&uri_of(&neighbour));
        read_all(&mut nodes);
        write(&neighbour, 5);
        read_all(&mut nodes);
        assert_eq!(faces_of(&nodes, &neighbour), [(elsewhere, id)]);
        assert_eq!(n_of(&nodes, (elsewhere, id)), 5);
        let drops = nodes[home].faces.counters().drops;
        let n_late = u64::from(!is_read_before);
        assert_eq!(drops.get(DropReason::UnknownPeer), n_late);
    }
}

#[test]
fn where_no_more_neighbours_can_be_moved_the_one_who_hears_them_makes_the_face() {
    let mut nodes = nodes(2);
    let to = listen_udp(&mut nodes, (loopback(), "127.0.0.1"));
    let mut moved = Vec::new();
    let mut n_refused = 0;
    while n_refused == 0 {
        let neighbour = program(to);
        let params = FaceParams::new(uri_of(&neighbour));
        match nodes[1].faces.create(&params) {
            Ok(outcome) => moved.push((neighbour, outcome.id)),
            Err(CreateError::Elsewhere(index)) => {
                n_refused += 1;
                assert_eq!(index, 0);
                assert_eq!(nodes[1].faces.placement(&params), Placement::Elsewhere(0));
                assert_eq!(nodes[0].faces.placement(&params), Placement::Here);
                let id = nodes[0].dial_with(&params);
                write(&neighbour, 3);
                read_all(&mut nodes);
                assert_eq!(n_of(&nodes, (0, id)), 3);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(moved.len() >= MAX_MOVED, "{}", moved.len());
    // Each that goes makes room.
    for (_, id) in &moved {
        nodes[1].faces.destroy(*id);
    }
    let params = FaceParams::new(uri_of(&program(to)));
    assert!(
        nodes
            .iter()
            .all(|node| node.faces.placement(&params) == Placement::Anywhere)
    );
}

#[test]
fn an_address_where_several_listen_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, mut options) in every_channel(dir.path()) {
        let mut first = nodes(2);
        let uri = first[0].listen(&options);
        read_all(&mut first);
        if let Some(addr) = uri.socket_addr() {
            options = match options.address {
                tachonym_face::ChannelAddress::Tcp(_) => ChannelOptions::tcp(addr),
                tachonym_face::ChannelAddress::Udp(_) => ChannelOptions::udp(addr),
                _ => ChannelOptions::websocket(addr),
            };
        }
        let mut second = nodes(2);
        let mut alone = FaceSystem::new(SystemOptions::default()).unwrap();
        for system in [&mut second[1].faces, &mut alone, &mut first[1].faces] {
            let error = system.listen(&options);
            let is_refused = matches!(error, Err(ListenError::AddressInUse));
            assert!(is_refused, "{kind}: {error:?}");
        }
        drop(first);
        second[1].listen(&options);
        let error = alone.listen(&options);
        assert!(matches!(error, Err(ListenError::AddressInUse)), "{kind}");
        assert!(second[1].faces.close_channel(&uri), "{kind}");
        read_all(&mut second);
        alone.listen(&options).expect("it is free again");
    }
}

#[test]
fn who_joins_the_sockets_of_an_address_later_hears_nothing() {
    for address in udp_addresses() {
        let mut nodes = nodes(2);
        let to = listen_udp(&mut nodes, address);
        let at = SocketAddr::new(address.0.ip(), to.port());
        let domain = socket2::Domain::for_address(at);
        let other = socket2::Socket::new(domain, socket2::Type::DGRAM, None).unwrap();
        other.set_only_v6(at.is_ipv6()).ok();
        other.set_reuse_port(true).unwrap();
        other.bind(&at.into()).expect("it may join");
        other.set_nonblocking(true).unwrap();
        for _ in 0..60 {
            let program = program(to);
            write(&program, 1);
            read_all(&mut nodes);
            assert_eq!(faces_of(&nodes, &program).len(), 1, "{address:?}");
        }
        let heard = UdpSocket::from(other).recv(&mut [0; 2_000]);
        assert_eq!(heard.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[test]
fn a_channel_is_closed_by_all() {
    let mut nodes = nodes(3);
    let to = listen_udp(&mut nodes, (loopback(), "127.0.0.1"));
    let programs: Vec<_> = (0..30).map(|_| program(to)).collect();
    programs.iter().for_each(|program| write(program, 1));
    read_all(&mut nodes);
    assert!(nodes.iter().all(|node| node.faces.n_faces() > 0));
    assert!(
        !nodes[1].faces.close_channel(&FaceUri::Udp(to)),
        "it was not told"
    );
    assert!(nodes[0].faces.close_channel(&FaceUri::Udp(to)));
    for node in &mut nodes {
        node.until("no faces", |node| node.faces.n_faces() == 0);
    }
    UdpSocket::bind(to).expect("it is free");
}

#[test]
fn each_system_has_its_part_of_the_faces() {
    let mut options = SystemOptions::default();
    options.max_faces = 5;
    let mut nodes = nodes_with(3, &options);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let params = FaceParams::new(FaceUri::Unix(path.to_string_lossy().into_owned()));
    let n_made = nodes.iter_mut().map(|node| {
        let made = (0..10).map_while(|_| node.faces.create(&params).ok());
        made.count()
    });
    assert_eq!(n_made.collect::<Vec<_>>(), [2, 2, 1]);
}

#[test]
fn a_connection_that_leaves_makes_room_for_another_in_its_system() {
    let mut nodes = nodes(2);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    nodes[0].listen(&ChannelOptions::unix(&path));
    let connect = |nodes: &mut [Node], n_faces: usize| {
        let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        while nodes.iter().map(|node| node.faces.n_faces()).sum::<usize>() < n_faces {
            nodes
                .iter_mut()
                .for_each(|node| node.step(Duration::from_millis(1)));
        }
        stream
    };
    let mut streams: Vec<_> = (1..=10).map(|n| connect(&mut nodes, n)).collect();
    for node in &nodes {
        assert_eq!(node.faces.n_faces(), 5);
    }
    // Those of the second system leave.
    let first = |node: &Node| node.faces.face_ids().min();
    while let Some(id) = first(&nodes[1]) {
        nodes[1].faces.destroy(id);
    }
    streams.extend((6..=10).map(|n| connect(&mut nodes, n)));
    for node in &nodes {
        assert_eq!(node.faces.n_faces(), 5);
    }
    let n_created = |node: &Node| {
        let events = node.events.iter();
        events.filter(|e| e.kind == FaceEventKind::Created).count()
    };
    assert_eq!([n_created(&nodes[0]), n_created(&nodes[1])], [5, 10]);
}
