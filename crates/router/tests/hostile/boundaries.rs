//! Who counts as local, and what a local stream may carry.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use tachonym_packet::lp::LpView;
use tachonym_packet::{Interest, Name};
use tachonym_protocol::{CommandName, ControlParameters, FaceScope, Scope};

use super::bed::*;

/// A WebSocket listener and commands as a configuration may open them.
const OPEN_WEBSOCKET: &str = "faces.websocket.local = \"loopback\"\n\
                              management.transports = [\"unix\", \"websocket\"]\n";

/// Neighbours may register.
const NEIGHBOURS: &str = "management.localhop.enabled = true\nmanagement.localhop.any = true\n";

/// A command of a peer that is not local is dropped, and makes no route.
fn assert_no_command(bed: &Bed, peer: &mut WebSocket, what: &str) {
    let before = bed.n_dropped("localhost-scope");
    peer.send(&registration(Scope::Localhost, "/taken"));
    // What follows is answered, so the command was handled.
    assert!(peer.probe("/nowhere").is_some(), "{what}");
    bed.drops_of_become("localhost-scope", before + 1);
    assert_eq!(
        bed.face("wsclient").face_scope,
        FaceScope::NonLocal,
        "{what}"
    );
    assert!(!bed.has_route("/taken"), "{what}");
}

#[test]
fn a_web_page_commands_nothing_over_a_websocket() {
    for extra in ["", OPEN_WEBSOCKET] {
        for lines in [
            "Origin: https://evil.example\r\n",
            "origin: null\r\n",
            "X-Forwarded-For: 192.0.2.1\r\n",
            "Forwarded: for=192.0.2.1\r\n",
            "Via: 1.1 front\r\n",
        ] {
            let bed = Bed::new(extra);
            let (answer, mut peer) = bed.upgrade(lines);
            assert!(answer.starts_with("HTTP/1.1 101 "), "{lines}: {answer}");
            assert_no_command(&bed, &mut peer, lines);
        }
    }
}

#[test]
fn a_websocket_is_local_only_where_the_listener_says_so() {
    let bed = Bed::new("");
    assert_no_command(&bed, &mut bed.websocket(), "by default");
    let bed = Bed::new(OPEN_WEBSOCKET);
    let mut peer = bed.websocket();
    peer.send(&registration(Scope::Localhost, "/given"));
    let answer = peer.receive().expect("the connection stands");
    assert_eq!(response(&answer).code, 200);
    assert_eq!(bed.face("wsclient").face_scope, FaceScope::Local);
    assert!(bed.has_route("/given"));
}

#[test]
fn an_origin_that_is_not_listed_is_refused_by_403() {
    let bed = Bed::new("faces.websocket.origins = [\"https://good.example:8443\"]\n");
    for lines in [
        "Origin: https://evil.example\r\n",
        "Origin: http://good.example:8443\r\n",
        "Origin: https://good.example:8443.evil.example\r\n",
        "Origin: https://good.example:8443\r\nOrigin: https://evil.example\r\n",
    ] {
        let before = bed.n_dropped("origin-refused");
        let (answer, mut peer) = bed.upgrade(lines);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{lines}: {answer}");
        let mut rest = Vec::new();
        // The router closes the connection.
        let _ = peer.socket.read_to_end(&mut rest);
        assert_eq!(bed.n_dropped("origin-refused"), before + 1, "{lines}");
    }
    let (answer, mut listed) = bed.upgrade("Origin: https://Good.example:8443\r\n");
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert_no_command(&bed, &mut listed, "a listed origin");
    // A program sends no Origin.
    assert!(bed.websocket().probe("/nowhere/program").is_some());
    bed.honest().exchange();
}

/// A request that leads through the head of HTTP to a frame that ends exactly
/// where the commands begin, wherever in the first 251 bytes of the body the head's
/// last junk frame ends.
fn http_post() -> Vec<u8> {
    let commands = registration(Scope::Localhost, "/taken");
    let ramp: Vec<u8> = (0..=250).rev().collect();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:6363\r\nContent-Type: text/plain\r\n\
         Origin: https://evil.example\r\nContent-Length: {}\r\n\r\n",
        ramp.len() + commands.len()
    );
    [head.as_bytes(), &ramp, &commands].concat()
}

#[test]
fn a_web_page_commands_nothing_by_a_post_to_the_tcp_port() {
    fn check<S: Read + Write>(bed: &Bed, mut peer: Stream<S>) {
        let before = bed.n_dropped("not-ndn");
        // The router may close the connection while it is written to.
        let _ = peer.socket.write_all(&http_post());
        assert_eq!(peer.frame(), None, "the connection is closed");
        assert_eq!(bed.n_dropped("not-ndn"), before + 1);
        assert!(!bed.has_route("/taken"));
    }
    let bed = Bed::new("");
    let mut honest = bed.honest();
    check(&bed, bed.tcp());
    check(&bed, bed.unix());
    honest.exchange();
}

#[test]
fn the_first_byte_of_another_protocol_ends_the_stream() {
    let bed = Bed::new("");
    let mut honest = bed.honest();
    // TLS (RFC 8446, section 5.1), HTTP, SSH, and types of NDN that no stream begins with.
    for first in [0x16, b'G', b'P', b'S', 0x07, 0x50, 0x00, 0xfd, 0xff] {
        let before = bed.n_dropped("not-ndn");
        let (mut tcp, mut unix) = (bed.tcp(), bed.unix());
        tcp.send(&[first]);
        unix.send(&[first]);
        assert_eq!((tcp.frame(), unix.frame()), (None, None), "{first:#x}");
        assert_eq!(bed.n_dropped("not-ndn"), before + 2, "{first:#x}");
    }
    // In the middle of a stream too.
    let mut tcp = bed.tcp();
    tcp.send(&interest("/nowhere/before"));
    tcp.frame().expect("a Nack");
    tcp.send(&element(0x55, b"x"));
    assert_eq!(tcp.frame(), None);
    honest.exchange();
}

#[test]
fn a_message_or_datagram_of_another_type_is_counted_and_no_more() {
    let bed = Bed::new("");
    let mut peer = bed.websocket();
    let udp = bed.udp();
    udp.send(&interest("/nowhere/face")).expect("loopback");
    udp.recv(&mut [0; 9000]).expect("a Nack");
    let before = bed.n_dropped("not-ndn");
    peer.send(&element(0x55, b"x"));
    assert!(peer.probe("/nowhere/ws").is_some());
    udp.send(&element(0x55, b"x")).expect("loopback");
    udp.send(&interest("/nowhere/udp")).expect("loopback");
    udp.recv(&mut [0; 9000]).expect("a Nack");
    bed.drops_of_become("not-ndn", before + 2);
}

#[test]
fn a_datagram_commands_nothing_unless_udp_is_local() {
    let bed = Bed::new(NEIGHBOURS);
    let udp = bed.udp();
    let before = bed.n_dropped("localhost-scope");
    udp.send(&registration(Scope::Localhost, "/taken"))
        .expect("loopback");
    udp.send(&registration(Scope::Localhop, "/near"))
        .expect("loopback");
    let mut room = [0; 9000];
    let n_read = udp.recv(&mut room).expect("an answer to the second");
    assert_eq!(response(&room[..n_read]).code, 200);
    bed.drops_of_become("localhost-scope", before + 1);
    assert!(!bed.has_route("/taken") && bed.has_route("/near"));
    assert_eq!(bed.face("udp4").face_scope, FaceScope::NonLocal);

    let bed = Bed::new("faces.udp.local = \"loopback\"\nmanagement.transports = [\"udp\"]\n");
    let udp = bed.udp();
    udp.send(&registration(Scope::Localhost, "/given"))
        .expect("loopback");
    let n_read = udp.recv(&mut room).expect("an answer");
    assert_eq!(response(&room[..n_read]).code, 200);
    assert_eq!(bed.face("udp4").face_scope, FaceScope::Local);
}

#[test]
fn a_listener_behind_a_tunnel_makes_no_local_face() {
    let bed = Bed::new("faces.tcp.local = \"never\"\n");
    let mut tcp = bed.tcp();
    let before = bed.n_dropped("localhost-scope");
    tcp.send(&registration(Scope::Localhost, "/taken"));
    tcp.send(&interest("/nowhere/tcp"));
    let nack = tcp.frame().expect("the answer to the second");
    assert!(
        LpView::parse(&nack)
            .expect("a frame")
            .headers()
            .nack
            .is_some()
    );
    bed.drops_of_become("localhost-scope", before + 1);
    assert_eq!(bed.face("tcp4").face_scope, FaceScope::NonLocal);
    assert!(!bed.has_route("/taken"));
    // The Unix socket is another listener.
    bed.unix().register("/given");
    // Local fields follow.
    let tcp_face = bed.face("tcp4").face_id;
    let mut wanted = ControlParameters {
        face_id: Some(tcp_face),
        ..ControlParameters::default()
    };
    wanted.set_flag(tachonym_protocol::face_flags::LOCAL_FIELDS, true);
    bed.operator(|operator| {
        let refused = operator.command("faces", "update", &wanted);
        assert!(refused.is_err(), "a face that is not local");
    });
}

/// A peer that the router dials, as `[[face]]` with these `keys` asks, commands; its
/// face has this scope.
fn check_command_of_a_dialled_peer(root_keys: &str, keys: &str, scope: FaceScope) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let face = format!("[[face]]\nremote = \"tcp4://{address}\"\n{keys}");
    let bed = Bed::new(&format!("{root_keys}{face}"));
    let (socket, _) = listener.accept().expect("the router dials");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let mut peer = Stream::new(socket);
    peer.send(&registration(Scope::Localhost, "/dialled"));
    match scope {
        FaceScope::Local => {
            let answer = peer.frame().expect("the connection stands");
            assert_eq!(response(&answer).code, 200);
        }
        FaceScope::NonLocal => bed.drops_of_become("localhost-scope", 1),
    }
    assert_eq!(bed.has_route("/dialled"), scope == FaceScope::Local);
    assert_eq!(bed.face("tcp4").face_scope, scope);
}

#[test]
fn a_configured_face_is_local_as_it_says_or_as_its_transport() {
    use FaceScope::{Local, NonLocal};
    let of_tcp = "faces.tcp.local = \"never\"\n";
    let (never, loopback) = ("locality = \"never\"\n", "locality = \"loopback\"\n");
    check_command_of_a_dialled_peer("", "", Local);
    check_command_of_a_dialled_peer("", never, NonLocal);
    check_command_of_a_dialled_peer(of_tcp, "", NonLocal);
    check_command_of_a_dialled_peer(of_tcp, loopback, Local);
}

#[test]
fn no_command_makes_a_face_to_a_unix_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("service");
    let service = UnixListener::bind(&path).expect("a socket");
    service.set_nonblocking(true).expect("a socket");
    let bed = Bed::new("");
    let create = ControlParameters {
        uri: Some(format!("unix://{}", path.display())),
        ..ControlParameters::default()
    };
    let mut operator = bed.unix();
    operator.send(&command_wire(
        CommandName::local("faces", "create"),
        &create,
    ));
    let (_, wire) = operator.packet();
    let refused = response(&wire);
    assert_eq!(refused.code, 406, "{}", refused.text);
    assert!(refused.text.contains("[[face]]"), "{}", refused.text);
    let error = service.accept().expect_err("no connection");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);

    service.set_nonblocking(false).expect("a socket");
    let bed = Bed::new(&format!(
        "[[face]]\nremote = \"unix://{}\"\n",
        path.display()
    ));
    let _accepted = service.accept().expect("the configuration may ask for it");
    assert_eq!(bed.face("unix").face_scope, FaceScope::Local);
}

#[test]
fn only_listed_transports_carry_commands_and_all_local_ones_datasets() {
    let bed = Bed::new("management.transports = [\"unix\"]\n");
    let mut tcp = bed.tcp();
    tcp.send(&registration(Scope::Localhost, "/taken"));
    let refused = response(&tcp.frame().expect("the connection stands"));
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(
        refused.text.contains("management.transports"),
        "{}",
        refused.text
    );
    let drops = bed.operator(|operator| operator.drops().expect("a list"));
    let counted = drops.iter().find(|drop| drop.reason == "command-transport");
    assert_eq!(counted.expect("it is counted").n_dropped, 1);
    assert!(!bed.has_route("/taken"));
    let dataset: Name = "/localhost/nfd/rib/list".parse().expect("a name");
    let asked = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        ..Interest::new(dataset)
    };
    tcp.send(&asked.encode());
    let frame = tcp.frame().expect("the connection stands");
    assert!(
        LpView::parse(&frame)
            .expect("a frame")
            .headers()
            .nack
            .is_none()
    );
    bed.unix().register("/given");

    // A listener that is local is not therefore one for commands.
    let bed = Bed::new("faces.websocket.local = \"loopback\"\n");
    let mut peer = bed.websocket();
    peer.send(&registration(Scope::Localhost, "/taken"));
    let refused = response(&peer.receive().expect("the connection stands"));
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(!bed.has_route("/taken"));
}
