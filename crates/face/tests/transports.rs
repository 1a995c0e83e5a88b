//! Every transport, between two face systems.

mod support;

use support::{Node, connect, data, every_channel, interest, until_both};
use tachonym_face::{ChannelOptions, CloseReason, FaceParams, SystemOptions};
use tachonym_packet::NackReason;
use tachonym_packet::lp::{Headers, PitToken};
use tachonym_protocol::{FaceEventKind, FacePersistency, FaceScope, FaceUri, LinkType};

#[test]
fn packets_cross_every_transport_in_order_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, options) in every_channel(dir.path()) {
        let (mut a, mut b) = (Node::default(), Node::default());
        let (to_b, to_a) = connect(&mut a, &mut b, &options);
        let sent: Vec<Vec<u8>> = (0..500)
            .map(|n| match n % 3 {
                0 => interest(n),
                1 => data(n, 1000),
                _ => data(n, 8800),
            })
            .collect();
        for packet in &sent {
            a.send(to_b, packet);
            b.faces.send(to_a, &Headers::default(), packet).unwrap();
            // UDP has room for so much at a time.
            a.step(std::time::Duration::ZERO);
            b.step(std::time::Duration::ZERO);
        }
        until_both(&mut a, &mut b, kind, |a, b| {
            a.packets.len() >= sent.len() && b.packets.len() >= sent.len()
        });
        for (node, face) in [(&a, to_b), (&b, to_a)] {
            let got: Vec<&Vec<u8>> = node.packets.iter().map(|packet| &packet.l3).collect();
            assert_eq!(got, sent.iter().collect::<Vec<_>>(), "{kind}");
            let counters = node.info(face).counters;
            assert_eq!(counters.n_in_data, 333, "{kind}");
            assert_eq!(counters.n_out_data, 333, "{kind}");
            assert_eq!(counters.drops.total(), 0, "{kind} {:?}", counters.drops);
            assert_eq!(node.faces.counters().drops.total(), 0, "{kind}");
        }
        assert_eq!(a.info(to_b).backlog_bytes, 0);
        assert!(a.faces.counters().syscalls_per_packet() > 0.0);
    }
}

#[test]
fn headers_cross_every_transport() {
    let dir = tempfile::tempdir().unwrap();
    let variants = [
        Headers {
            pit_token: PitToken::new(&[9; 32]),
            congestion_mark: 1,
            ..Headers::default()
        },
        Headers {
            nack: Some(NackReason::Congestion),
            ..Headers::default()
        },
        Headers {
            non_discovery: true,
            ..Headers::default()
        },
    ];
    for (kind, options) in every_channel(dir.path()) {
        let (mut a, mut b) = (Node::default(), Node::default());
        let (to_b, _) = connect(&mut a, &mut b, &options);
        for headers in &variants {
            a.faces.send(to_b, headers, &interest(1)).unwrap();
        }
        for headers in &variants {
            let write = |out: &mut Vec<u8>| out.extend_from_slice(&interest(2));
            a.faces.send_with(to_b, headers, 20, write).unwrap();
        }
        let announcement = data(7, 100);
        let announced =
            a.faces
                .send_announcing(to_b, &Headers::default(), Some(&announcement), &data(3, 50));
        announced.unwrap();
        a.faces.flush();
        until_both(&mut a, &mut b, kind, |_, b| b.packets.len() >= 7);
        for (idx, packet) in b.packets[..6].iter().enumerate() {
            assert_eq!(packet.headers, variants[idx % 3], "{kind}");
            assert_eq!(packet.l3, interest(if idx < 3 { 1 } else { 2 }), "{kind}");
        }
        assert_eq!(b.packets[6].prefix_announcement, Some(announcement));
        assert_eq!(b.info(b.packets[0].face).counters.n_in_nacks, 2);
    }
}

#[test]
fn a_data_leaves_without_an_announcement_that_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, options) in every_channel(dir.path()) {
        let (mut a, mut b) = (Node::default(), Node::default());
        let (to_b, _) = connect(&mut a, &mut b, &options);
        let whole = data(1, 8_000);
        let announcements = [data(7, 300), data(7, 8_700)];
        for announcement in &announcements {
            a.faces
                .send_announcing(to_b, &Headers::default(), Some(announcement), &whole)
                .unwrap();
        }
        a.faces.flush();
        until_both(&mut a, &mut b, kind, |_, b| b.packets.len() >= 2);
        let [fits, does_not] = &b.packets[..] else {
            panic!("{kind}: more packets than were sent");
        };
        assert_eq!(fits.prefix_announcement.as_ref(), Some(&announcements[0]));
        assert_eq!(does_not.prefix_announcement, None, "{kind}");
        assert!(fits.l3 == whole && does_not.l3 == whole, "{kind}");
    }
}

#[test]
fn a_packet_without_headers_leaves_bare() {
    let (mut a, mut b) = (Node::default(), Node::default());
    let uri = b.listen(&ChannelOptions::udp(support::loopback()));
    let raw = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to_raw = a.dial(&FaceUri::Udp(raw.local_addr().unwrap()));
    for packet in [interest(1), data(1, 500)] {
        a.send(to_raw, &packet);
        let write = |out: &mut Vec<u8>| out.extend_from_slice(&packet);
        a.faces
            .send_with(to_raw, &Headers::default(), packet.len(), write)
            .unwrap();
        a.faces.flush();
        for _ in 0..2 {
            let mut buffer = [0; 9000];
            let n = raw.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..n], packet);
        }
    }
    let silent = a.faces.send_with(to_raw, &Headers::default(), 10, |_| {});
    silent.unwrap();
    assert_eq!(a.info(to_raw).backlog_bytes, 0);
    drop(uri);
}

#[test]
fn faces_say_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, options) in every_channel(dir.path()) {
        let (mut a, mut b) = (Node::default(), Node::default());
        let (dialled, accepted) = connect(&mut a, &mut b, &options);
        let (dialled, accepted) = (a.info(dialled), b.info(accepted));
        assert_eq!(dialled.persistency, FacePersistency::Persistent, "{kind}");
        assert_eq!(accepted.persistency, FacePersistency::OnDemand, "{kind}");
        let may_idle_away = accepted.expires_in.is_some();
        assert_eq!(may_idle_away, kind.starts_with("udp"), "{kind}");
        for info in [&dialled, &accepted] {
            let scope = match kind {
                "unix" | "tcp4" | "tcp6" => FaceScope::Local,
                _ => FaceScope::NonLocal,
            };
            assert_eq!(info.scope, scope, "{kind}");
            assert_eq!(info.link_type, LinkType::PointToPoint, "{kind}");
            assert!(info.is_up(), "{kind}");
            assert_eq!(info.mtu_bytes.is_some(), kind.starts_with("udp"), "{kind}");
            assert!(info.id.0 >= 256, "{kind}");
        }
        match kind {
            "unix" => {
                assert_eq!(dialled.remote, accepted.local);
                assert_eq!(accepted.remote.scheme(), "fd");
            }
            "ws4" | "ws6" => {
                assert_eq!(dialled.remote, accepted.local);
                assert_eq!(dialled.local, accepted.remote);
                assert_eq!(accepted.remote.scheme(), "wsclient");
            }
            _ => {
                assert_eq!(dialled.remote, accepted.local, "{kind}");
                assert_eq!(dialled.local, accepted.remote, "{kind}");
            }
        }
    }
}

#[test]
fn a_closed_connection_ends_the_face_and_its_backlog_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, options) in every_channel(dir.path()) {
        if kind.starts_with("udp") {
            continue;
        }
        let (mut a, mut b) = (Node::default(), Node::default());
        let (to_b, to_a) = connect(&mut a, &mut b, &options);
        assert!(a.faces.destroy(to_b), "{kind}");
        assert!(!a.faces.destroy(to_b), "{kind}");
        let ended = a.destroyed(to_b);
        assert_eq!(ended.reason, Some(CloseReason::Destroyed), "{kind}");
        let ended = b.destroyed(to_a);
        assert_eq!(ended.reason, Some(CloseReason::ClosedByPeer), "{kind}");
        assert_eq!(b.faces.n_faces(), 0, "{kind}");
        let gone = b.faces.send(to_a, &Headers::default(), &interest(1));
        assert_eq!(gone, Err(tachonym_face::DropReason::NoSuchFace));
    }
}

#[test]
fn numbers_of_faces_are_never_used_again() {
    let (mut a, mut b) = (Node::default(), Node::default());
    let uri = b.listen(&ChannelOptions::tcp(support::loopback()));
    let mut ids = Vec::new();
    for _ in 0..20 {
        let id = a.dial(&uri);
        ids.push(id);
        a.faces.destroy(id);
    }
    assert!(ids.is_sorted_by(|x, y| x < y), "{ids:?}");
}

#[test]
fn what_was_sent_before_the_end_is_received_before_it() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, options) in every_channel(dir.path()) {
        if kind.starts_with("udp") {
            continue;
        }
        let (mut a, mut b) = (Node::default(), Node::default());
        let (to_b, to_a) = connect(&mut a, &mut b, &options);
        for n in 0..20 {
            a.send(to_b, &data(n, 1000));
        }
        a.faces.destroy(to_b);
        b.destroyed(to_a);
        assert_eq!(b.packets.len(), 20, "{kind}");
        assert!(b.packets.iter().all(|packet| packet.face == to_a), "{kind}");
    }
}

#[test]
fn dialling_twice_finds_the_first_face() {
    let (mut a, mut b) = (Node::default(), Node::default());
    for options in [
        ChannelOptions::udp(support::loopback()),
        ChannelOptions::tcp(support::loopback()),
        ChannelOptions::websocket(support::loopback()),
    ] {
        let uri = b.listen(&options);
        let id = a.faces.create(&FaceParams::new(uri.clone())).unwrap().id;
        let again = a.faces.create(&FaceParams::new(uri)).unwrap();
        assert!(again.already_existed);
        assert_eq!(again.id, id);
        until_both(&mut a, &mut b, "face up", |a, _| a.info(id).is_up());
        let again = a.faces.create(&FaceParams::new(a.info(id).remote)).unwrap();
        assert!(again.already_existed && again.is_up);
    }
}

#[test]
fn a_dialled_udp_face_uses_the_channel_and_is_found_by_its_peer() {
    let (mut a, mut b) = (Node::default(), Node::default());
    let uri_a = a.listen(&ChannelOptions::udp(support::loopback()));
    let uri_b = b.listen(&ChannelOptions::udp(support::loopback()));
    let to_b = a.dial(&uri_b);
    let to_a = b.dial(&uri_a);
    assert_eq!(a.info(to_b).local, uri_a);
    a.send(to_b, &interest(1));
    b.send(to_a, &interest(2));
    until_both(&mut a, &mut b, "packets", |a, b| {
        !a.packets.is_empty() && !b.packets.is_empty()
    });
    assert_eq!((a.packets[0].face, b.packets[0].face), (to_b, to_a));
    assert_eq!(a.faces.n_faces(), 1);
    // It stays, whatever the other end does.
    assert!(b.faces.close_channel(&uri_b));
    a.send(to_b, &interest(3));
    a.send(to_b, &interest(4));
    assert!(a.info(to_b).is_up());
    assert!(!a.has(FaceEventKind::Destroyed));
}

#[test]
fn a_wildcard_channel_answers_from_the_address_that_was_asked() {
    let mut node = Node::default();
    let uri = node.listen(&ChannelOptions::udp("0.0.0.0:0".parse().unwrap()));
    let port = uri.socket_addr().unwrap().port();
    let raw = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    // A connected socket hears nobody else.
    raw.connect(("127.0.0.7", port)).unwrap();
    raw.send(&interest(1)).unwrap();
    node.until("a packet", |node| !node.packets.is_empty());
    let id = node.packets[0].face;
    assert_eq!(
        node.info(id).local,
        format!("udp4://127.0.0.7:{port}").parse().unwrap()
    );
    assert_eq!(node.info(id).scope, FaceScope::NonLocal);
    node.send(id, &data(1, 100));
    raw.set_read_timeout(Some(support::PATIENCE)).unwrap();
    let mut buffer = [0; 200];
    let n = raw.recv(&mut buffer).unwrap();
    assert_eq!(buffer[..n], data(1, 100));
}

#[test]
fn a_receive_queue_that_fills_up_marks_data_and_shows_what_it_lost() {
    let mut options = SystemOptions::default();
    options.udp_receive_buffer_bytes = 64 << 10;
    let mut node = Node::new(options);
    let uri = node.listen(&ChannelOptions::udp(support::loopback()));
    let raw = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    raw.connect(uri.socket_addr().unwrap()).unwrap();
    // A Data alone makes no face.
    raw.send(&support::interest(0)).unwrap();
    node.until("the Interest", |node| node.packets.len() == 1);
    // One packet is no congestion.
    raw.send(&data(0, 4000)).unwrap();
    node.until("one packet", |node| node.packets.len() == 2);
    assert_eq!(node.packets[1].headers.congestion_mark, 0);
    // Nobody reads while 400 kB arrive: most of it is lost.
    node.packets.clear();
    for n in 0..100 {
        raw.send(&data(n, 4000)).unwrap();
    }
    // A datagram on loopback is in the queue, or lost, when `send` returns.
    node.until("what was kept", |node| !node.packets.is_empty());
    node.step(std::time::Duration::ZERO);
    let n_kept = node.packets.len() as u64;
    assert!(n_kept < 100);
    assert!(node.packets.iter().all(|p| p.headers.congestion_mark > 0));
    assert_eq!(node.faces.counters().n_kernel_drops, 100 - n_kept);
}

#[test]
fn a_websocket_message_without_end_takes_its_turn_like_others() {
    use std::io::{ErrorKind, Write};
    use std::time::Duration;

    let mut node = Node::default();
    let uri = node.listen(&ChannelOptions::websocket(support::loopback()));
    let mut peer = std::net::TcpStream::connect(uri.socket_addr().unwrap()).unwrap();
    let upgrade = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    peer.write_all(upgrade.as_bytes()).unwrap();
    let id = node.accepted();
    node.until("face up", |node| node.info(id).is_up());

    // A message whose pieces are empty, as many as the sockets hold.
    let frame = |head: u8, payload: &[u8]| {
        let mut frame = vec![head, 0x80 | payload.len() as u8, 0, 0, 0, 0];
        frame.extend(payload);
        frame
    };
    peer.write_all(&frame(0x02, &[])).unwrap();
    let pieces = frame(0, &[]).repeat(20_000);
    peer.set_nonblocking(true).unwrap();
    let (mut n_bytes, mut n_left) = (0, 0);
    while n_bytes < 4 << 20 {
        match peer.write(&pieces[n_left..]) {
            Ok(n) => (n_bytes, n_left) = (n_bytes + n, (n_left + n) % pieces.len()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(n_bytes > 200_000, "{n_bytes}");
    let before = node.faces.counters().n_rx_syscalls;
    node.step(Duration::ZERO);
    let n_reads = node.faces.counters().n_rx_syscalls - before;
    assert!((1..=16).contains(&n_reads), "{n_reads} reads in one round");

    // Nothing of it is lost: its last piece is a packet.
    peer.set_nonblocking(false).unwrap();
    let (rest, last) = (pieces[n_left..].to_vec(), frame(0x80, &interest(1)));
    let writer = std::thread::spawn(move || {
        peer.write_all(&rest).unwrap();
        peer.write_all(&last).unwrap();
        peer
    });
    node.until("a packet", |node| !node.packets.is_empty());
    assert_eq!(node.packets[0].l3, interest(1));
    drop(writer.join());
}
