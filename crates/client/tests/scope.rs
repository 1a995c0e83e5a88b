//! Where a program registers, by its transport, and what it says of silence.

use std::net::{TcpListener, UdpSocket};
use std::thread;

use tachonym_client::{CommandError, Controller, Endpoint, ExpressError};
use tachonym_packet::lp::{Headers, LpView, write_packet};
use tachonym_packet::{InterestView, NackReason, Name};
use tachonym_protocol::{FaceUri, Scope};
use tachonym_security::Signer;

/// A router over UDP that returns every Interest as a Nack; the names of the first
/// `n_interests`.
fn refuser(n_interests: usize) -> (FaceUri, thread::JoinHandle<Vec<Name>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let uri = FaceUri::Udp(socket.local_addr().expect("it is bound"));
    let names = thread::spawn(move || {
        let mut room = vec![0; 9000];
        let receive = |_| {
            let (n_bytes, peer) = socket.recv_from(&mut room).expect("a datagram");
            let frame = LpView::parse(&room[..n_bytes]).expect("a frame");
            let packet = frame.fragment().expect("a packet");
            let interest = InterestView::parse(packet).expect("an Interest");
            let headers = Headers {
                nack: Some(NackReason::NoRoute),
                ..Headers::default()
            };
            let mut nack = Vec::new();
            write_packet(&mut nack, &headers, None, &[], Some(packet));
            socket.send_to(&nack, peer).expect("loopback");
            interest.name().to_name()
        };
        (0..n_interests).map(receive).collect()
    });
    (uri, names)
}

#[test]
fn a_program_registers_by_localhop_over_udp_and_learns_what_the_router_lacks() {
    let (uri, names) = refuser(3);
    let mut endpoint = Endpoint::connect(&uri).expect("UDP needs no answer");
    assert_eq!(endpoint.registration_scope(), Scope::Localhop);
    let mut controller = Controller::new(&mut endpoint, Signer::digest());
    let prefix = "/a".parse().expect("a name");
    let refused = |result: Result<(), CommandError>, key: &str| {
        let error = result.expect_err("a Nack");
        let CommandError::OutOfScope { error: cause, .. } = &error else {
            panic!("{error}");
        };
        assert!(matches!(cause, ExpressError::Nack(_)));
        let text = error.to_string();
        assert!(text.contains(key) && text.contains("udp4"), "{text}");
    };
    refused(controller.register(&prefix), "management.localhop");
    let announced = controller.announce(b"");
    refused(announced.map(|_| ()), "management.localhop");
    refused(controller.faces().map(|_| ()), "udp.local");
    let names: Vec<_> = names.join().expect("three Interests");
    let begins = |name: &Name, with: &str| {
        let prefix: Name = with.parse().expect("a name");
        assert!(name.view().starts_with(prefix.view()), "{name}");
    };
    begins(&names[0], "/localhop/nfd/rib/register");
    begins(&names[1], "/localhop/nfd/rib/announce");
    begins(&names[2], "/localhost/nfd/faces/list");
}

#[test]
fn a_program_registers_by_localhost_over_tcp_of_this_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = FaceUri::Tcp(listener.local_addr().expect("it is bound"));
    let endpoint = Endpoint::connect(&uri).expect("it listens");
    assert_eq!(endpoint.registration_scope(), Scope::Localhost);
}
