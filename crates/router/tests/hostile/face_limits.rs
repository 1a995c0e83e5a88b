//! What faces cost a peer, and what one peer may hold of everything.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use tachonym_packet::lp::LpView;
use tachonym_packet::{Component, DataView, Interest, types};
use tachonym_router::Snapshot;

use super::bed::*;

/// A router for which peers at 127.0.0.0/8 are remote.
struct Remote {
    bed: Bed,
}

impl Remote {
    fn new(extra: &str) -> Self {
        let bed = Bed::new(&format!("faces.tcp.local = \"never\"\n{extra}"));
        Self { bed }
    }

    fn address(&self, transport: &str) -> SocketAddr {
        self.bed.address(transport)
    }

    fn snapshot(&self) -> Snapshot {
        self.bed.router.snapshot().expect("it runs")
    }

    /// Waits until the router is so.
    fn until(&self, what: &str, is_so: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let snapshot = self.snapshot();
            if is_so(&snapshot) {
                return snapshot;
            }
            assert!(Instant::now() < deadline, "{what}: {snapshot:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A TCP connection from an address.
    fn tcp(&self, from: [u8; 4]) -> Stream<TcpStream> {
        let stream = connect(from, self.address("tcp"));
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Stream::new(stream)
    }

    /// A UDP socket at an address.
    fn udp(&self, from: [u8; 4]) -> UdpSocket {
        let socket = UdpSocket::bind(SocketAddr::from((from, 0))).expect("a port");
        socket.connect(self.address("udp")).expect("loopback");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        socket
    }
}

fn connect(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let from = SocketAddr::from((from, 0));
    socket.bind(&from.into()).expect("an address");
    socket.connect(&to.into()).expect("it listens");
    socket.into()
}

/// Whether a new peer is served over UDP: it gets a Nack.
fn is_served_over_udp(remote: &Remote, from: [u8; 4]) -> bool {
    let socket = remote.udp(from);
    let patience = Duration::from_millis(500);
    socket.set_read_timeout(Some(patience)).expect("a time-out");
    socket.send(&interest("/nowhere/udp")).expect("loopback");
    let mut room = [0; 9000];
    let Ok(n_read) = socket.recv(&mut room) else {
        return false;
    };
    let frame = LpView::parse(&room[..n_read]).expect("a frame");
    frame.headers().nack.is_some()
}

/// The same over TCP.
fn is_served_over_tcp(remote: &Remote, from: [u8; 4]) -> bool {
    let mut stream = remote.tcp(from);
    let _ = stream.socket.write_all(&interest("/nowhere/tcp"));
    let Some(frame) = stream.frame() else {
        return false;
    };
    let frame = LpView::parse(&frame).expect("a frame");
    frame.headers().nack.is_some()
}

/// Lets this process have many descriptors.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("up to the hard limit");
}

/// As many as are for remote connections by default.
const N_IDLE: usize = 3072;

#[test]
fn idle_connections_of_one_address_leave_room_for_others() {
    raise_descriptor_limit();
    let remote = Remote::new("");
    let mut idle = Vec::new();
    for _ in 0..N_IDLE {
        idle.push(connect([127, 0, 0, 2], remote.address("tcp")));
    }
    let snapshot = remote.until("all were seen", |snapshot| {
        let n_gone = snapshot.n_evicted_faces + snapshot.n_silent_faces;
        let n_without = snapshot.n_refused_connections + n_gone;
        snapshot.n_faces as u64 + n_without >= N_IDLE as u64
    });
    assert!(snapshot.n_faces <= 64, "{snapshot:?}");
    assert!(snapshot.n_dropped("connection-refused-of-source") > 0);
    assert!(is_served_over_udp(&remote, [127, 0, 0, 3]));
    assert!(is_served_over_tcp(&remote, [127, 0, 0, 4]));
}

#[test]
fn idle_connections_of_many_addresses_leave_room_for_others() {
    raise_descriptor_limit();
    let remote = Remote::new("faces.silent_timeout_s = 0\n");
    let mut idle = Vec::new();
    for host in 0..(N_IDLE / 64) as u8 {
        for _ in 0..64 {
            idle.push(connect([127, 0, 1, host], remote.address("tcp")));
        }
    }
    // Where several threads have a part of the faces each, one may be full before others; on a
    // slow machine the first are then old enough to give way.
    let snapshot = remote.until("all were seen", |snapshot| {
        let n_without = snapshot.n_refused_connections + snapshot.n_evicted_faces;
        snapshot.n_faces as u64 + n_without == N_IDLE as u64
    });
    assert!(snapshot.n_faces > N_IDLE / 4 * 3, "{snapshot:?}");
    // Those who are new may yet say something.
    let deadline = Instant::now() + Duration::from_secs(5);
    while !is_served_over_udp(&remote, [127, 0, 0, 3]) {
        assert!(Instant::now() < deadline, "{:?}", remote.snapshot());
    }
    assert!(is_served_over_tcp(&remote, [127, 0, 0, 4]));
    // Where one thread was full and another had room, no face had to give way.
    if snapshot.n_refused_connections == 0 {
        assert!(remote.snapshot().n_dropped("face-evicted") >= 1);
    }
    // One was closed, and the others were not.
    let is_closed = |stream: &mut TcpStream| {
        stream.set_nonblocking(true).expect("a socket");
        match stream.read(&mut [0]) {
            Ok(n_read) => n_read == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    };
    let n_closed = idle.iter_mut().filter_map(|it| is_closed(it).then_some(()));
    let n_closed = n_closed.count() as u64;
    let snapshot = remote.snapshot();
    let n_without = snapshot.n_refused_connections + snapshot.n_evicted_faces;
    assert_eq!(n_closed, n_without, "{snapshot:?}");
}

#[test]
fn two_byte_datagrams_make_no_face() {
    let remote = Remote::new("");
    let idle_packet = element(types::LP_PACKET, &[]);
    assert_eq!(idle_packet.len(), 2);
    let reason = "no-interest-from-new-peer";
    for n in 1..=2048 {
        let host = (n % 200) as u8;
        let socket = remote.udp([127, 0, 2, host]);
        socket.send(&idle_packet).expect("loopback");
        if n % 128 == 0 {
            remote.until("all were read", |it| it.n_dropped(reason) == n);
        }
    }
    assert_eq!(remote.snapshot().n_faces, 0);
    assert!(is_served_over_udp(&remote, [127, 0, 0, 3]));
}

#[test]
fn a_connection_in_use_survives_a_flood_of_new_peers() {
    let remote = Remote::new("faces.max_faces = 64\n");
    let mut producer = remote.bed.unix();
    producer.register("/honest");
    let mut consumer = remote.tcp([127, 0, 0, 2]);
    let mut n_exchanged = 0;
    let mut exchange = |producer: &mut Stream<_>| {
        n_exchanged += 1;
        let asked = name("/honest").with(&Component::segment(n_exchanged));
        consumer.send(&Interest::new(asked.clone()).encode());
        producer.answer();
        let (_, data) = consumer.packet();
        assert_eq!(DataView::parse(&data).expect("a Data").name(), asked);
    };
    exchange(&mut producer);
    let flood = Instant::now();
    let mut sockets = Vec::new();
    let mut n = 0_u32;
    // Until many have come, and some have replaced others.
    while n < 2000 || remote.snapshot().n_evicted_faces < 60 {
        assert!(flood.elapsed() < PATIENCE, "{:?}", remote.snapshot());
        n += 1;
        let [.., a, b] = n.to_be_bytes();
        let socket = remote.udp([127, 3, a, b.max(1)]);
        let uri = format!("/nowhere/{n}");
        socket.send(&interest(&uri)).expect("loopback");
        sockets.push(socket);
        if n.is_multiple_of(100) {
            sockets.clear();
            exchange(&mut producer);
            assert!(remote.snapshot().n_faces <= 64);
        }
    }
    // On the same connection, which an eviction would have closed.
    exchange(&mut producer);
    assert!(remote.snapshot().n_dropped("too-many-faces") > 0);
}

/// How many Interests of connections from one address are pending, of 4000 that are
/// sent by `n_faces` of these in turns.
fn n_pending(n_faces: usize) -> usize {
    const N_SENT: usize = 4000;
    let remote = Remote::new("tables.pit_entries = 2000\n");
    let mut producer = remote.bed.unix();
    producer.register("/slow");
    let mut greedy: Vec<_> = (0..n_faces).map(|_| remote.tcp([127, 0, 0, 2])).collect();
    let mut snapshot = Snapshot::default();
    for n in 0..N_SENT {
        let mut asked = Interest::new(name(&format!("/slow/{n}")));
        asked.lifetime_ms = Some(60_000);
        greedy[n % n_faces].send(&asked.encode());
        if (n + 1).is_multiple_of(100) {
            // No more at once than any queue takes.
            snapshot = remote.until("all were seen", |snapshot| {
                let n_refused = snapshot.n_dropped("pit-share-used") as usize;
                snapshot.n_pit_entries + n_refused == n + 1
            });
        }
    }
    // There is as much left for others.
    let mut honest = remote.tcp([127, 0, 0, 3]);
    honest.send(&interest("/slow/honest"));
    remote.until("one more", |it| {
        it.n_pit_entries == snapshot.n_pit_entries + 1
    });
    snapshot.n_pit_entries
}

#[test]
fn an_address_with_50_faces_has_the_pending_interests_of_one_face() {
    let (of_one, of_many) = (n_pending(1), n_pending(50));
    // Several workers have a part of the table each, and of the names.
    assert!(of_one >= 600, "{of_one}");
    assert!(of_many.abs_diff(of_one) <= 20, "{of_many} and {of_one}");
}

#[test]
fn remote_peers_that_ask_for_nothing_are_closed_and_local_ones_stay() {
    let remote = Remote::new("faces.silent_timeout_s = 1\n");
    let mut local = remote.bed.unix().socket;
    let mut speaking = remote.tcp([127, 0, 0, 2]);
    speaking.send(&interest("/nowhere/a"));
    speaking.frame().expect("a Nack");
    let mut silent = remote.tcp([127, 0, 0, 2]);
    let mut websocket = connect([127, 0, 0, 2], remote.address("ws"));
    websocket.write_all(UPGRADE.as_bytes()).expect("it reads");
    assert_eq!(silent.frame(), None);
    remote.until("both are closed", |it| it.n_silent_faces == 2);
    let patience = Some(Duration::from_millis(1500));
    local.set_read_timeout(patience).expect("a time-out");
    let speaking = &mut speaking.socket;
    speaking.set_read_timeout(patience).expect("a time-out");
    for open in [&mut local as &mut dyn Read, speaking] {
        let error = open.read(&mut [0]).expect_err("nothing comes");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
    assert_eq!(remote.snapshot().n_dropped("face-silent"), 2);
}
