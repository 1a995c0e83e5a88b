//! Faces that come, stay and go by themselves in a running router.

mod bed;

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use bed::Bed;
use tachonym_packet::Interest;

/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Bed {
    fn n_faces(&self) -> usize {
        self.router.snapshot().expect("it runs").n_faces
    }

    /// That a router with nothing to do does nothing: one that spins makes many
    /// thousands of system calls meanwhile.
    fn assert_rests(&self) {
        let n_syscalls = || self.router.snapshot().expect("it runs").n_syscalls;
        let before = n_syscalls();
        std::thread::sleep(Duration::from_millis(300));
        let n_made = n_syscalls() - before;
        assert!(n_made < 1_000, "{n_made} system calls");
    }
}

#[test]
fn an_idle_face_goes_and_the_router_rests() {
    let bed = Bed::with(|_| "faces.udp.idle_timeout_s = 1\n".into());
    let peer = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = bed.listening("udp4");
    let address = address.strip_prefix("udp4://").expect("its scheme");
    let interest = Interest::new("/nobody/has/this".parse().expect("a name"));
    peer.send_to(&interest.encode(), address).expect("sent");
    wait_until("a face", || bed.n_faces() == 1);
    wait_until("its end", || bed.n_faces() == 0);
    bed.assert_rests();
}

#[test]
fn strangers_leave_room_for_programs_and_commands() {
    let bed = Bed::with(|_| "faces.max_faces = 16\n".into());
    // Over loopback they all are programs of this machine.
    let socket = bed.path("s");
    let programs: Vec<_> = (0..16)
        .map(|_| std::os::unix::net::UnixStream::connect(&socket).expect("it listens"))
        .collect();
    let n_refused = || {
        bed.router
            .snapshot()
            .expect("it runs")
            .n_refused_connections
    };
    wait_until("refusals", || n_refused() == 2);
    assert_eq!(bed.n_faces(), 14);
    drop(programs);
    wait_until("their end", || bed.n_faces() == 0);
    bed.text(&["face", "create", "udp4://192.0.2.1:6363"]);
}

#[test]
fn faces_made_by_command_are_as_the_configuration_says() {
    let bed = Bed::with(|_| {
        "faces.congestion_marking = false\nfaces.congestion_threshold_bytes = 1234\n".into()
    });
    let face = bed.text(&["face", "create", "udp4://127.0.0.1:9", "--json"]);
    let face: serde_json::Value = serde_json::from_str(&face).expect(&face);
    let flags = face["flags"].to_string();
    assert!(!flags.contains("congestion-marking"), "{face}");
    let threshold = &face["congestion_threshold_bytes"];
    assert_eq!(threshold.as_u64(), Some(1234), "{face}");
}

/// The next connection.
fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("it can be asked");
    let mut accepted = None;
    wait_until("a connection", || {
        accepted = listener.accept().ok();
        accepted.is_some()
    });
    accepted.expect("it came").0
}

#[test]
fn a_permanent_face_is_dialled_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let bed = Bed::with(|_| format!("[[face]]\nremote = \"tcp4://{address}\"\n"));
    for _ in 0..3 {
        drop(accept(&listener));
    }
    drop(listener);
    bed.assert_rests();
    assert_eq!(bed.n_faces(), 1);
    let listener = TcpListener::bind(address).expect("the same port");
    let _peer = accept(&listener);
    bed.assert_rests();
}
