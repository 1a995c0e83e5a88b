//! Peers that mean harm, or behave as if: every packet ends forwarded or
//! counted, memory stays at its limits, and the others are served.

#[path = "hostile/bed.rs"]
mod bed;
#[path = "hostile/boundaries.rs"]
mod boundaries;
#[path = "hostile/conformance.rs"]
mod conformance;
#[path = "hostile/face_limits.rs"]
mod face_limits;
#[path = "hostile/solicited.rs"]
mod solicited;
#[path = "hostile/trusted_names.rs"]
mod trusted_names;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use tachonym_packet::lp::LpView;
use tachonym_packet::{Component, Interest, InterestView, types};

use bed::*;

/// Packets that are not to be forwarded. Each is one element for a stream.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let a = name("/a").encode();
    let mut deep = Vec::new();
    while deep.len() < 4000 {
        deep = element(types::FORWARDING_HINT, &deep);
    }
    let mut bodies = vec![
        ("without a name", element(types::INTEREST, &[])),
        ("with an empty name", element(types::INTEREST, &[7, 0])),
        (
            "with a name that ends beyond it",
            element(types::INTEREST, &[7, 9, 8, 1, b'a']),
        ),
        (
            "with a component of type 0",
            element(types::INTEREST, &[7, 3, 0, 1, b'a']),
        ),
        (
            "nonminimal",
            element(types::INTEREST, &[7, 0xfd, 0, 3, 8, 1, b'a']),
        ),
        ("deep", element(types::INTEREST, &[&a[..], &deep].concat())),
        (
            "with a nonce of 3 bytes",
            element(types::INTEREST, &[&a[..], &[10, 3, 1, 2, 3]].concat()),
        ),
        (
            "unknown critical",
            element(types::INTEREST, &[&a[..], &[0xfb, 1, 0]].concat()),
        ),
        (
            "with two names",
            element(types::INTEREST, &[&a[..], &a].concat()),
        ),
        ("Data without a signature", element(types::DATA, &a)),
        ("of an unknown type", element(0x55, &a)),
        (
            "an LpPacket with garbage",
            element(types::LP_PACKET, &[0x50, 0xff]),
        ),
        (
            "an LpPacket of an LpPacket",
            element(types::LP_PACKET, &element(80, &element(100, &a))),
        ),
    ];
    let large = element(types::CONTENT, &vec![0; 8800]);
    bodies.push((
        "too large",
        element(types::DATA, &[&a[..], &large].concat()),
    ));
    bodies
}

#[test]
fn malformed_datagrams_are_counted_one_by_one() {
    let bed = Bed::new("");
    let mut honest = bed.honest();
    let hostile = bed.udp();
    let mut bad = malformed();
    let whole = interest("/a/b");
    bad.push(("truncated", whole[..whole.len() - 1].to_vec()));
    bad.push((
        "claiming more than it holds",
        vec![5, 200, 7, 3, 8, 1, b'a'],
    ));
    bad.push((
        "claiming 2^63 bytes",
        vec![5, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0],
    ));
    bad.push(("with a byte behind it", [&whole[..], &[0]].concat()));
    bad.push(("garbage", vec![0xff; 50]));
    bad.push(("empty", Vec::new()));
    for (what, wire) in bad {
        let before = bed.n_drops();
        hostile.send(&wire).expect("loopback");
        // What follows on the same face is served, so the bad one was handled.
        let probe = format!("/nowhere/{}", what.replace(' ', "-"));
        hostile.send(&interest(&probe)).expect("loopback");
        let mut room = [0; 9000];
        let n_read = hostile.recv(&mut room).expect("a Nack");
        let frame = LpView::parse(&room[..n_read]).expect("a frame");
        assert!(frame.headers().nack.is_some(), "{what}");
        let after = bed.n_drops();
        // The probe itself finds no route.
        assert_eq!(after - before, 2, "{what}");
        honest.exchange();
    }
}

#[test]
fn malformed_packets_on_streams_are_counted_or_end_the_stream() {
    fn check<S: Read + Write>(bed: &Bed, honest: &mut Honest, connect: impl Fn() -> Stream<S>) {
        for (what, wire) in malformed() {
            let before = bed.n_drops();
            let mut hostile = connect();
            hostile.send(&wire);
            // Either the stream goes on, or it is closed.
            let _ = hostile.socket.write_all(&interest("/nowhere/x"));
            let answer = hostile.frame();
            let n_expected = if let Some(frame) = answer {
                let frame = LpView::parse(&frame).expect("a frame");
                assert!(frame.headers().nack.is_some(), "{what}");
                // The probe itself finds no route.
                2
            } else {
                let ends = matches!(what, "too large" | "of an unknown type");
                assert!(ends, "closed for a packet {what}");
                1
            };
            bed.drops_become(before + n_expected, what);
            honest.exchange();
        }
        for garbage in [&[0xff_u8; 64][..], &[0; 64], &[5, 0xfd, 0, 1]] {
            let before = bed.n_drops();
            let mut hostile = connect();
            hostile.send(garbage);
            assert_eq!(hostile.frame(), None, "it is closed");
            bed.drops_become(before + 1, "garbage");
            honest.exchange();
        }
        let whole = interest("/nowhere/x");
        for n_bytes in [1, whole.len() / 2, whole.len() - 1] {
            let before = bed.n_drops();
            let mut hostile = connect();
            hostile.send(&whole[..n_bytes]);
            drop(hostile);
            bed.drops_become(before + 1, "truncated");
            honest.exchange();
        }
    }
    let bed = Bed::new("");
    let mut honest = bed.honest();
    check(&bed, &mut honest, || bed.unix());
    check(&bed, &mut honest, || bed.tcp());
    assert!(bed.router.is_running());
}

#[test]
fn tokens_come_back_if_they_are_valid_and_are_counted_if_not() {
    let bed = Bed::new("");
    let mut honest = bed.honest();
    let (mut unix, mut tcp, udp) = (bed.unix(), bed.tcp(), bed.udp());
    for len in 0..=64_usize {
        let token = vec![0x5a; len];
        let fields = [
            element(types::LP_PIT_TOKEN, &token),
            element(types::LP_FRAGMENT, &interest(&format!("/nowhere/{len}"))),
        ];
        let wire = element(types::LP_PACKET, &fields.concat());
        let before = bed.n_drops();
        let mut echoed = Vec::new();
        for transport in 0..3 {
            if transport == 2 {
                udp.send(&wire).expect("loopback");
            } else if transport == 1 {
                tcp.send(&wire);
            } else {
                unix.send(&wire);
            }
            if !(1..=32).contains(&len) {
                continue;
            }
            let frame = match transport {
                0 => unix.frame(),
                1 => tcp.frame(),
                _ => {
                    let mut room = [0; 9000];
                    let n_read = udp.recv(&mut room).expect("a Nack");
                    Some(room[..n_read].to_vec())
                }
            };
            let frame = frame.expect("the connection stands");
            let headers = *LpView::parse(&frame).expect("a frame").headers();
            assert!(headers.nack.is_some());
            echoed.push(
                headers
                    .pit_token
                    .expect("it comes back")
                    .as_bytes()
                    .to_vec(),
            );
        }
        honest.exchange();
        if (1..=32).contains(&len) {
            assert_eq!(echoed, [&*token, &*token, &*token]);
        } else {
            bed.drops_become(before + 3, &format!("tokens of {len} bytes"));
        }
    }
    // None of the faces was closed for it.
    tcp.send(&interest("/nowhere/end"));
    tcp.frame().expect("the connection stands");
}

#[test]
fn tokens_over_a_websocket_come_back_if_they_are_valid_and_are_counted_if_not() {
    let bed = Bed::new("");
    let mut honest = bed.honest();
    let mut peer = bed.websocket();
    for len in 0..=64_usize {
        let token = vec![0x5a; len];
        let fields = [
            element(types::LP_PIT_TOKEN, &token),
            element(types::LP_FRAGMENT, &interest(&format!("/nowhere/{len}"))),
        ];
        let before = bed.n_drops();
        peer.send(&element(types::LP_PACKET, &fields.concat()));
        if (1..=32).contains(&len) {
            let wire = peer.receive().expect("the connection stands");
            let headers = *LpView::parse(&wire).expect("a frame").headers();
            assert!(headers.nack.is_some());
            let echoed = headers.pit_token.expect("it comes back");
            assert_eq!(echoed.as_bytes(), token);
        }
        // On the same connection, which was not closed for it.
        let headers = peer.probe(&format!("/nowhere/{len}/probe"));
        assert_eq!(headers.expect("the connection stands").pit_token, None);
        assert_eq!(bed.n_drops() - before, 2, "{len}");
        honest.exchange();
    }
}

#[test]
fn bad_messages_over_a_websocket_are_counted_or_end_the_connection() {
    let bed = Bed::new("");
    let mut honest = bed.honest();
    let whole = interest("/a/b");
    let mut bad = malformed();
    bad.push(("garbage", vec![0xff; 60]));
    bad.push(("zeros", vec![0; 70]));
    bad.push(("truncated", whole[..whole.len() - 1].to_vec()));
    bad.push(("with a byte behind it", [&whole[..], &[0]].concat()));
    bad.push(("empty", Vec::new()));
    bad.push(("oversize", vec![5; 60_000]));
    for (i, (what, wire)) in bad.into_iter().enumerate() {
        let before = bed.n_drops();
        let mut peer = bed.websocket();
        let is_oversize = wire.len() > 8800;
        // A connection that is closed shows when it is read.
        let _ = peer.socket.write_all(&message(BINARY, &wire));
        match peer.probe(&format!("/nowhere/{i}")) {
            Some(_) => assert_eq!(bed.n_drops() - before, 2, "{what}"),
            None => {
                assert!(is_oversize, "closed for a message {what}");
                bed.drops_become(before + 1, what);
            }
        }
        honest.exchange();
    }
    // What is no WebSocket frame ends the connection.
    let before = bed.n_drops();
    let mut peer = bed.websocket();
    peer.socket.write_all(&[0xff; 64]).expect("it reads");
    assert_eq!(peer.receive(), None);
    bed.drops_become(before + 1, "no frame");
    honest.exchange();
    assert!(bed.router.is_running());
}

#[test]
fn half_a_websocket_message_is_waited_for_without_harm() {
    let bed = Bed::new("");
    let mut honest = bed.honest();
    let wire = interest("/nowhere/slow");
    let (head, tail) = wire.split_at(wire.len() / 2);
    // Half a frame, and a message of which half the frames have come.
    let cut = message(BINARY, &wire);
    let fragments = [message(0x02, head), message(0x80, tail)];
    for [first, second] in [[cut[..9].to_vec(), cut[9..].to_vec()], fragments] {
        let mut peer = bed.websocket();
        peer.socket.write_all(&first).expect("it reads");
        for _ in 0..20 {
            honest.exchange();
        }
        peer.socket.write_all(&second).expect("it reads");
        let answer = peer.receive().expect("the connection stands");
        let frame = LpView::parse(&answer).expect("a frame");
        assert!(frame.headers().nack.is_some());
    }
}

#[test]
fn half_a_packet_is_waited_for_without_harm() {
    let bed = Bed::new("");
    let mut honest = bed.honest();
    check_half_packets((0..50).map(|_| bed.tcp()).collect(), &mut honest);
    check_half_packets((0..50).map(|_| bed.unix()).collect(), &mut honest);
}

/// The packet of each of these comes in two halves.
fn check_half_packets<S: Read + Write>(mut slow: Vec<Stream<S>>, honest: &mut Honest) {
    let wire = interest("/nowhere/slow");
    let (head, tail) = wire.split_at(wire.len() / 2);
    for peer in &mut slow {
        peer.send(head);
        honest.exchange();
    }
    for peer in &mut slow {
        peer.send(tail);
        let frame = peer.frame().expect("the connection stands");
        assert!(
            LpView::parse(&frame)
                .expect("a frame")
                .headers()
                .nack
                .is_some()
        );
    }
}

#[test]
fn a_packet_that_is_never_finished_ends_its_connection_and_is_counted() {
    let bed = Bed::new("faces.stall_timeout_s = 1\n");
    let mut honest = bed.honest();
    let wire = interest("/nowhere/slow");
    let half = &wire[..wire.len() / 2];
    let before = bed.n_drops();
    let (mut unix, mut tcp) = (bed.unix(), bed.tcp());
    unix.send(half);
    tcp.send(half);
    honest.exchange();
    // The read waits until the router closes.
    assert_eq!((unix.frame(), tcp.frame()), (None, None));
    bed.drops_become(before + 2, "unfinished");
    let snapshot = bed.router.snapshot().expect("it runs");
    assert_eq!(snapshot.n_stalled_connections, 2);
    honest.exchange();
}

#[test]
fn a_peer_that_never_reads_costs_its_backlog_and_no_more() {
    let bed = Bed::new("faces.max_backlog_bytes = 200000\n");
    let mut honest = bed.honest();
    honest.exchange();
    // Its Interests come back as Nacks, with all that they carry.
    let deaf = bed.unix();
    let mut socket = deaf.socket;
    socket.set_nonblocking(true).expect("a socket");
    let padding = "x".repeat(4000);
    let mut n_asked = 0;
    while bed
        .router
        .snapshot()
        .expect("it runs")
        .n_dropped("backlog-full")
        == 0
    {
        for _ in 0..16 {
            n_asked += 1;
            let wire = interest(&format!("/nowhere/{n_asked}/{padding}"));
            // A part of a packet would make all that follows garbage.
            let mut rest = &wire[..];
            while !rest.is_empty() {
                match socket.write(rest) {
                    Ok(n_written) => rest = &rest[n_written..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => honest.exchange(),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        honest.exchange();
        assert!(n_asked < 100_000, "the backlog has no limit");
    }
    honest.exchange();
}

#[test]
fn whoever_takes_a_gone_peers_place_gets_none_of_its_answers() {
    let bed = Bed::new("");
    let mut producer = bed.unix();
    producer.register("/slow");
    let mut honest = bed.honest();
    for round in 0..100 {
        // Asks, and is gone before the answer; its descriptor is free again.
        let mut gone = bed.unix();
        for i in 0..20 {
            gone.send(&interest(&format!("/slow/{round}/{i}")));
        }
        let asked: Vec<_> = (0..20).map(|_| producer.packet()).collect();
        drop(gone);
        let mut next = bed.unix();
        next.send(&interest(&format!("/nowhere/{round}")));
        for (headers, wire) in asked {
            let asked = InterestView::parse(&wire).expect("an Interest");
            producer.send(&framed(headers.pit_token, &data(asked.name().to_name())));
        }
        let (headers, wire) = next.packet();
        assert!(headers.nack.is_some());
        let back = InterestView::parse(&wire).expect("its own Interest");
        assert_eq!(back.name(), name(&format!("/nowhere/{round}")));
        honest.exchange();
        // Nothing else has come for it.
        next.socket.set_nonblocking(true).expect("a socket");
        let more = next.socket.read(&mut [0; 16]).expect_err("nothing");
        assert_eq!(more.kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn floods_of_new_peers_take_no_more_faces_than_allowed() {
    let bed = Bed::new("faces.max_faces = 64\n");
    let mut honest = bed.honest();
    let udp: Vec<_> = (0..200).map(|_| bed.udp()).collect();
    for (i, socket) in udp.iter().enumerate() {
        socket
            .send(&interest(&format!("/nowhere/{i}")))
            .expect("loopback");
        if i % 10 == 0 {
            honest.exchange();
        }
    }
    let tcp: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(bed.address("tcp")).expect("the kernel accepts"))
        .collect();
    for _ in 0..20 {
        honest.exchange();
    }
    let snapshot = bed.router.snapshot().expect("it runs");
    assert!(snapshot.n_faces <= 64, "{snapshot:?}");
    assert!(snapshot.n_dropped("too-many-faces") >= 100, "{snapshot:?}");
    drop(tcp);
    // Those who are gone leave their place to others.
    while bed.router.snapshot().expect("it runs").n_faces > 64 {
        honest.exchange();
    }
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split_whitespace().nth(1).expect("a number");
    pages.parse::<usize>().expect("a number") * 4096
}

#[test]
fn two_million_names_leave_memory_where_the_limits_put_it() {
    const N_NAMES: usize = 2_000_000;
    const BURST: usize = 500;
    let bed = Bed::new("[tables]\ncs_packets = 1000\npit_entries = 2000\n");
    let mut producer = bed.unix();
    producer.register("/n");
    let mut consumer = bed.unix();
    let mut after_warming_up = 0;
    for round in 0..N_NAMES / BURST {
        let mut burst = Vec::new();
        for i in 0..BURST {
            let number = Component::segment((round * BURST + i) as u64);
            burst.extend(Interest::new(name("/n").with(&number)).encode());
        }
        consumer.send(&burst);
        burst.clear();
        for _ in 0..BURST {
            let (headers, wire) = producer.packet();
            let asked = InterestView::parse(&wire).expect("an Interest");
            burst.extend(framed(headers.pit_token, &data(asked.name().to_name())));
        }
        producer.send(&burst);
        for _ in 0..BURST {
            consumer.frame().expect("an answer");
        }
        if round == N_NAMES / BURST / 10 {
            after_warming_up = resident_bytes();
        }
    }
    let snapshot = bed.router.snapshot().expect("it runs");
    assert_eq!(snapshot.n_cs_entries, 1000);
    assert!(snapshot.n_pit_entries <= 2000);
    let grown = resident_bytes().saturating_sub(after_warming_up);
    assert!(grown < 16 << 20, "{grown} bytes more than after a tenth");
}
