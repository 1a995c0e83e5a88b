//! Face systems against real sockets: each other, and peers that misbehave.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tachonym_face::{
    CloseReason, CreateOutcome, DropReason, FaceEvent, FaceOptions, FaceParams, FaceSystem,
    RxBatch, SystemOptions,
};
use tachonym_packet::lp::Headers;
use tachonym_packet::{Data, FaceId, MonoNs};
use tachonym_protocol::{FacePersistency, FaceUri};

/// Long enough for a loaded machine; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(20);

struct Bed {
    faces: FaceSystem,
    batch: RxBatch,
    start: Instant,
}

impl Bed {
    fn new(options: SystemOptions) -> Self {
        Self {
            faces: FaceSystem::new(options).expect("epoll is there"),
            batch: RxBatch::new(),
            start: Instant::now(),
        }
    }

    /// One round; what it received.
    fn round(&mut self) -> Vec<(FaceId, Vec<u8>)> {
        let start = self.start;
        self.faces.flush();
        self.faces
            .poll(Some(Duration::from_millis(5)), &mut self.batch, || {
                MonoNs::ZERO + start.elapsed()
            })
            .expect("epoll waits");
        let packets = self
            .batch
            .frames()
            .map(|f| (f.face, f.packet.to_vec()))
            .collect();
        self.faces.flush();
        packets
    }

    fn dial(&mut self, remote: FaceUri, options: FaceOptions) -> FaceId {
        let params = FaceParams {
            remote,
            local: None,
            persistency: FacePersistency::Persistent,
            options,
        };
        match self.faces.create(&params).expect("the peer listens") {
            CreateOutcome::New(id) | CreateOutcome::Existing(id) => id,
        }
    }

    fn send(&mut self, id: FaceId, packet: &[u8]) {
        self.faces
            .send(MonoNs::ZERO, id, &Headers::default(), packet);
    }
}

fn data(number: u64, content_bytes: usize) -> Vec<u8> {
    let mut data = Data::new(format!("/test/seg={number}").parse().expect("a name"));
    data.content = vec![number as u8; content_bytes];
    data.encode_with_digest()
}

fn until<T>(mut step: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(done) = step() {
            return done;
        }
        assert!(start.elapsed() < PATIENCE, "nothing came");
    }
}

/// Sends packets from one system to another and back.
fn exchange(server: &mut Bed, uri: FaceUri, options: FaceOptions, content_bytes: usize) {
    let mut client = Bed::new(SystemOptions::default());
    let id = client.dial(uri, options);
    let sent: Vec<_> = (0..50).map(|i| data(i, content_bytes)).collect();
    for packet in &sent {
        client.send(id, packet);
    }
    let (mut received, mut returned) = (Vec::new(), Vec::new());
    until(|| {
        returned.extend(client.round().into_iter().map(|(_, packet)| packet));
        for (face, packet) in server.round() {
            server.send(face, &packet);
            received.push(packet);
        }
        (received.len() >= sent.len()).then_some(())
    });
    assert_eq!(received, sent);
    until(|| {
        server.round();
        returned.extend(client.round().into_iter().map(|(_, packet)| packet));
        (returned.len() >= sent.len()).then_some(())
    });
    assert_eq!(returned, sent);
    let counters = client.faces.counters(id).expect("the face is there");
    assert_eq!((counters.n_out_data, counters.n_in_data), (50, 50));
}

#[test]
fn packets_travel_both_ways_over_unix() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Bed::new(SystemOptions::default());
    let uri = server
        .faces
        .listen_unix(&folder.path().join("s"), 0o600)
        .expect("free");
    exchange(&mut server, uri, FaceOptions::default(), 8000);
}

#[test]
fn packets_travel_both_ways_over_tcp() {
    let mut server = Bed::new(SystemOptions::default());
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let uri = server.faces.listen_tcp(any).expect("a free port");
    exchange(&mut server, uri, FaceOptions::default(), 1000);
}

#[test]
fn packets_travel_both_ways_over_udp_ipv6() {
    let mut server = Bed::new(SystemOptions::default());
    let any: SocketAddr = "[::1]:0".parse().expect("an address");
    let uri = server.faces.listen_udp(any).expect("a free port");
    exchange(&mut server, uri, FaceOptions::default(), 1000);
}

#[test]
fn packets_larger_than_the_mtu_travel_in_fragments() {
    let mut server = Bed::new(SystemOptions::default());
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let uri = server.faces.listen_udp(any).expect("a free port");
    let options = FaceOptions {
        mtu_bytes: 1400,
        ..FaceOptions::default()
    };
    exchange(&mut server, uri, options, 8000);
}

#[test]
fn many_packets_share_a_system_call() {
    let mut server = Bed::new(SystemOptions::default());
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let uri = server.faces.listen_udp(any).expect("a free port");
    let mut client = Bed::new(SystemOptions::default());
    let id = client.dial(uri, FaceOptions::default());
    for i in 0..64 {
        client.send(id, &data(i, 500));
    }
    client.faces.flush();
    let counters = client.faces.system_counters();
    assert_eq!(counters.n_tx_frames, 64);
    assert!(counters.n_tx_calls <= 2, "{counters:?}");
}

#[test]
fn half_a_packet_waits_and_is_joined_with_its_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let mut server = Bed::new(SystemOptions::default());
    server.faces.listen_unix(&path, 0o600).expect("free");
    let mut peer = UnixStream::connect(&path).expect("it listens");
    let packet = data(1, 300);
    peer.write_all(&packet[..100]).expect("written");
    until(|| {
        assert!(server.round().is_empty());
        (server.faces.faces().count() == 1).then_some(())
    });
    for _ in 0..3 {
        assert!(server.round().is_empty());
    }
    peer.write_all(&packet[100..]).expect("written");
    assert_eq!(until(|| server.round().pop()).1, packet);
}

#[test]
fn garbage_on_a_stream_closes_its_face_and_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let mut server = Bed::new(SystemOptions::default());
    server.faces.listen_unix(&path, 0o600).expect("free");
    let mut good = UnixStream::connect(&path).expect("it listens");
    let mut bad = UnixStream::connect(&path).expect("it listens");
    bad.write_all(&[0x06, 0xfe, 0xff, 0xff, 0xff, 0xff])
        .expect("written");
    let reason = until(|| {
        server.round();
        while let Some(event) = server.faces.poll_event() {
            if let FaceEvent::Destroyed { reason, .. } = event {
                return Some(reason);
            }
        }
        None
    });
    assert_eq!(reason, CloseReason::MalformedStream);
    assert_eq!(bad.read(&mut [0; 8]).expect("closed in order"), 0);
    good.write_all(&data(1, 10)).expect("still open");
    until(|| server.round().pop());
}

#[test]
fn a_peer_that_never_reads_costs_only_its_own_packets() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let mut server = Bed::new(SystemOptions::default());
    server.faces.listen_unix(&path, 0o600).expect("free");
    let mut peer = UnixStream::connect(&path).expect("it listens");
    peer.write_all(&data(0, 10)).expect("written");
    let (id, _) = until(|| server.round().pop());
    let packet = data(1, 8000);
    for _ in 0..1000 {
        server.send(id, &packet);
        server.faces.flush();
    }
    let counters = server.faces.counters(id).expect("the face stays");
    assert!(counters.n_dropped(DropReason::BacklogFull) > 500);
    // Whoever begins to read gets whole packets.
    let mut first = vec![0; packet.len()];
    peer.read_exact(&mut first).expect("the stream goes on");
    assert_eq!(first, packet);
}

#[test]
fn a_datagram_that_claims_more_than_it_holds_is_counted_and_the_next_one_taken() {
    let mut server = Bed::new(SystemOptions::default());
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let uri = server.faces.listen_udp(any).expect("a free port");
    let peer = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let to = uri.socket_addr().expect("bound");
    peer.send_to(&[0x06, 0xfd, 0x20, 0x00, 1, 2, 3], to)
        .expect("sent");
    let packet = data(1, 10);
    peer.send_to(&packet, to).expect("sent");
    let (id, received) = until(|| server.round().pop());
    assert_eq!(received, packet);
    let counters = server.faces.counters(id).expect("on demand");
    assert_eq!(counters.n_dropped(DropReason::Malformed), 1);
}

#[test]
fn a_closed_udp_port_costs_packets_and_not_the_face() {
    let closed = UdpSocket::bind("127.0.0.1:0")
        .expect("a free port")
        .local_addr()
        .expect("bound");
    let mut client = Bed::new(SystemOptions::default());
    let id = client.dial(FaceUri::Udp(closed), FaceOptions::default());
    for i in 0..5 {
        client.send(id, &data(i, 10));
        client.round();
    }
    assert!(client.faces.info(id).is_some());
}

#[test]
fn a_peer_beyond_the_limit_is_refused_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let mut server = Bed::new(SystemOptions {
        max_faces: 2,
        ..SystemOptions::default()
    });
    server.faces.listen_unix(&path, 0o600).expect("free");
    let _peers: Vec<_> = (0..3)
        .map(|_| UnixStream::connect(&path).expect("queued"))
        .collect();
    until(|| {
        server.round();
        (server.faces.system_counters().n_refused_peers == 1).then_some(())
    });
    assert_eq!(server.faces.faces().count(), 2);
}

#[test]
fn face_numbers_are_never_used_again() {
    let mut client = Bed::new(SystemOptions::default());
    let uri = FaceUri::Udp(SocketAddr::from(([127, 0, 0, 1], 9)));
    let first = client.dial(uri.clone(), FaceOptions::default());
    assert!(client.faces.destroy(first, CloseReason::Requested));
    assert!(!client.faces.destroy(first, CloseReason::Requested));
    let second = client.dial(uri, FaceOptions::default());
    assert!(second > first);
}

#[test]
fn a_socket_left_by_a_dead_program_is_replaced_and_a_living_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("free"));
    let mut first = Bed::new(SystemOptions::default());
    first
        .faces
        .listen_unix(&path, 0o600)
        .expect("the old one is dead");
    let mut second = Bed::new(SystemOptions::default());
    assert!(second.faces.listen_unix(&path, 0o600).is_err());
}
