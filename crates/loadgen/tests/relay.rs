//! The impairment relay between real sockets: what arrives is exactly what
//! the model with the same seed decides, whatever the timing.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tachonym_loadgen::impair::model::{Fate, Impairment};
use tachonym_loadgen::impair::relay::{Relay, RelayOptions, RelayReport, link_models};
use tachonym_packet::MonoNs;

/// Sent before the next batch waits for its replies: fits any receive buffer.
const LOCKSTEP_PKTS: u32 = 32;

fn socket() -> UdpSocket {
    socket_at("127.0.0.1:0")
}

/// A test that frees a port and needs it again takes an address of its own,
/// so that no other test's socket can get it meanwhile.
fn socket_at(addr: &str) -> UdpSocket {
    let socket = UdpSocket::bind(addr).expect("loopback has free ports");
    let patience = Some(Duration::from_secs(20));
    socket
        .set_read_timeout(patience)
        .expect("a timeout is accepted");
    socket
}

fn addr(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("it is bound")
}

struct RunningRelay {
    addr: SocketAddr,
    stop: Option<UnixStream>,
    thread: JoinHandle<RelayReport>,
}

fn options(forward: SocketAddr, impairment: Impairment, seed: u64) -> RelayOptions {
    RelayOptions {
        listen: ([127, 0, 0, 1], 0).into(),
        forward,
        client: None,
        upstream_bind: None,
        max_clients: 8,
        impairment,
        seed,
    }
}

fn start(options: RelayOptions) -> RunningRelay {
    println!("seed {}", options.seed);
    let mut relay = Relay::new(options).expect("the settings are good");
    let addr = relay.local_addr().expect("it is bound");
    let (stop, stopped) = UnixStream::pair().expect("a socket pair");
    let thread = thread::spawn(move || {
        let report = relay.run(stopped.as_fd(), Some(Duration::from_secs(120)));
        report.expect("no socket fails")
    });
    RunningRelay {
        addr,
        stop: Some(stop),
        thread,
    }
}

impl RunningRelay {
    fn finish(mut self) -> RelayReport {
        drop(self.stop.take()); // Closing makes the other end readable.
        self.thread.join().expect("the relay does not panic")
    }
}

fn receive_number(socket: &UdpSocket) -> (u32, SocketAddr) {
    let mut bytes = [0; 2_000];
    let (len, from) = socket.recv_from(&mut bytes).expect("a packet arrives");
    let number = bytes[..len].first_chunk().expect("it holds a number");
    (u32::from_be_bytes(*number), from)
}

#[test]
fn loss_and_duplicates_follow_the_seed_in_both_directions() {
    let seed = 20_261;
    let impairment = Impairment {
        loss_pct: 20.0,
        duplicate_pct: 10.0,
        ..Impairment::none()
    };
    let (client, server) = (socket(), socket());
    let relay = start(options(addr(&server), impairment.clone(), seed));
    let [mut up, mut down] = link_models(&impairment, seed);
    let copies_of = |fate| match fate {
        Fate::Lost => 0,
        Fate::QueueFull => panic!("the queue is long"),
        Fate::Forward { copy_at, .. } => 1 + usize::from(copy_at.is_some()),
    };
    let mut relay_upstream = None;
    let (mut n_up, mut n_down) = (0, 0);
    for first in (0..2_000).step_by(LOCKSTEP_PKTS as usize) {
        let numbers = first..first + LOCKSTEP_PKTS;
        let mut due_up = Vec::new();
        for number in numbers.clone() {
            client
                .send_to(&number.to_be_bytes(), relay.addr)
                .expect("loopback");
            due_up.extend(vec![number; copies_of(up.offer(MonoNs::ZERO, 4, 0))]);
        }
        for due in &due_up {
            let (number, from) = receive_number(&server);
            assert_eq!(number, *due, "seed {seed}");
            relay_upstream = Some(from);
        }
        n_up += due_up.len() as u64;
        let to = relay_upstream.expect("the first batch is not lost whole");
        let mut due_down = Vec::new();
        for number in numbers {
            server.send_to(&number.to_be_bytes(), to).expect("loopback");
            due_down.extend(vec![number; copies_of(down.offer(MonoNs::ZERO, 4, 0))]);
        }
        for due in &due_down {
            assert_eq!(receive_number(&client), (*due, relay.addr), "seed {seed}");
        }
        n_down += due_down.len() as u64;
    }
    let report = relay.finish();
    for (counters, n_sent) in [(report.up, n_up), (report.down, n_down)] {
        assert_eq!(counters.received_pkts, 2_016);
        assert_eq!(counters.received_bytes, 2_016 * 4);
        assert_eq!(counters.sent_pkts, n_sent);
        assert_eq!(
            counters.sent_pkts,
            counters.received_pkts - counters.lost_pkts + counters.duplicated_pkts
        );
        assert_eq!((counters.send_failed_pkts, counters.held_pkts), (0, 0));
    }
    assert_ne!(report.up.lost_pkts, report.down.lost_pkts, "own sequences");
    assert_eq!((report.n_clients, report.kernel_dropped_pkts), (1, 0));
}

#[test]
fn clients_have_upstream_sockets_of_their_own_up_to_the_bound() {
    let server = socket();
    let relay = start(RelayOptions {
        max_clients: 3,
        ..options(addr(&server), Impairment::none(), 1)
    });
    let clients: Vec<UdpSocket> = (0..4).map(|_| socket()).collect();
    let mut upstreams = Vec::new();
    for (number, client) in (0_u32..).zip(&clients[..3]) {
        client
            .send_to(&number.to_be_bytes(), relay.addr)
            .expect("loopback");
        let (got, from) = receive_number(&server);
        assert_eq!(got, number);
        upstreams.push(from);
    }
    clients[3].send_to(&[0; 4], relay.addr).expect("loopback");
    upstreams.dedup();
    assert_eq!(upstreams.len(), 3);
    for (number, (client, upstream)) in (10_u32..).zip(clients.iter().zip(&upstreams)) {
        server
            .send_to(&number.to_be_bytes(), upstream)
            .expect("loopback");
        assert_eq!(receive_number(client), (number, relay.addr));
    }
    // Behind the refused packet in the same queue: it has been judged.
    clients[0].send_to(&[9; 4], relay.addr).expect("loopback");
    receive_number(&server);
    let report = relay.finish();
    assert_eq!((report.n_clients, report.refused_client_pkts), (3, 1));
}

#[test]
fn a_given_client_is_served_before_it_speaks() {
    let (client, server, stranger) = (socket(), socket(), socket());
    let upstream_bind = addr(&socket_at("127.0.0.2:0")); // Free again at once.
    let relay = start(RelayOptions {
        client: Some(addr(&client)),
        upstream_bind: Some(upstream_bind),
        ..options(addr(&server), Impairment::none(), 1)
    });
    server
        .send_to(&7_u32.to_be_bytes(), upstream_bind)
        .expect("loopback");
    assert_eq!(receive_number(&client), (7, relay.addr));
    stranger.send_to(&[0; 4], relay.addr).expect("loopback");
    client
        .send_to(&8_u32.to_be_bytes(), relay.addr)
        .expect("loopback");
    assert_eq!(receive_number(&server), (8, upstream_bind));
    assert_eq!(relay.finish().refused_client_pkts, 1);
}

#[test]
fn a_full_queue_drops_and_stays_within_its_bound() {
    let (client, server) = (socket(), socket());
    let relay = start(options(
        addr(&server),
        Impairment {
            delay: Duration::from_secs(100_000),
            queue_packets: 10,
            ..Impairment::none()
        },
        1,
    ));
    for number in 0..100_u32 {
        client
            .send_to(&number.to_be_bytes(), relay.addr)
            .expect("loopback");
    }
    // What is in the socket before the stop is read before the end.
    let report = relay.finish();
    assert_eq!(report.up.received_pkts, 100);
    assert_eq!((report.up.queue_full_pkts, report.up.held_pkts), (90, 10));
    assert_eq!((report.up.sent_pkts, report.max_held_pkts), (0, 10));
}

#[test]
fn a_closed_port_costs_packets_and_not_the_relay() {
    let (client, server) = (socket(), socket_at("127.0.0.3:0"));
    let forward = addr(&server);
    drop(server);
    let relay = start(options(forward, Impairment::none(), 1));
    for _ in 0..50 {
        client.send_to(&[1; 4], relay.addr).expect("loopback");
    }
    let server = UdpSocket::bind(forward).expect("free again");
    server
        .set_read_timeout(Some(Duration::from_millis(100)))
        .expect("accepted");
    // Lost to the closed port or not, one of these gets through.
    let arrived = (0..200).any(|_| {
        client.send_to(&[2; 4], relay.addr).expect("loopback");
        server.recv_from(&mut [0; 8]).is_ok()
    });
    assert!(arrived);
    relay.finish();
}
