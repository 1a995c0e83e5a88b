//! Faces that are dialled from a given address.

mod support;

use std::net::{IpAddr, SocketAddr};

use support::{Node, interest, loopback, loopback6, until_both};
use tachonym_face::{ChannelOptions, CreateError, FaceParams};
use tachonym_packet::FaceId;
use tachonym_protocol::FaceUri;

fn from(local: &str, remote: &FaceUri) -> FaceParams {
    let mut params = FaceParams::new(remote.clone());
    params.local = Some(FaceUri::parse_local(local).unwrap());
    params
}

/// Dials, and waits until the face is up, for which `b` has to answer.
fn dial(a: &mut Node, b: &mut Node, params: &FaceParams) -> FaceId {
    let id = a.faces.create(params).unwrap().id;
    until_both(a, b, "face up", |a, _| a.info(id).is_up());
    id
}

fn channels(addr: SocketAddr) -> [ChannelOptions; 3] {
    [
        ChannelOptions::udp(addr),
        ChannelOptions::tcp(addr),
        ChannelOptions::websocket(addr),
    ]
}

#[test]
fn a_face_begins_at_the_given_address_and_any_port() {
    for (listener, here) in [(loopback(), "127.0.0.7"), (loopback6(), "[::1]")] {
        let ip: IpAddr = here.trim_matches(['[', ']']).parse().unwrap();
        for schemes in [["udp", "tcp", "ws"], ["udp", "tcp", "wsclient"]] {
            for (options, scheme) in channels(listener).iter().zip(schemes) {
                let (mut a, mut b) = (Node::default(), Node::default());
                let remote = b.listen(options);
                // At the port that a listener has by default, nobody dials.
                let params = from(&format!("{scheme}://{here}"), &remote);
                let id = dial(&mut a, &mut b, &params);
                let local = a.info(id).local;
                let addr = local.socket_addr().unwrap();
                assert_eq!(addr.ip(), ip, "{local}");
                assert!(![0, 6363, 9696].contains(&addr.port()), "{local}");
                a.send(id, &interest(1));
                until_both(&mut a, &mut b, scheme, |_, b| !b.packets.is_empty());
                let seen_from = b.info(b.packets[0].face).remote;
                assert_eq!(seen_from.socket_addr(), Some(addr), "{scheme}");
            }
        }
    }
}

#[test]
fn a_face_begins_at_the_given_port() {
    for (options, scheme) in channels(loopback()).iter().zip(["udp4", "tcp4", "ws"]) {
        let (mut a, mut b) = (Node::default(), Node::default());
        let remote = b.listen(options);
        let free = match scheme {
            "udp4" => std::net::UdpSocket::bind("127.0.0.7:0").and_then(|s| s.local_addr()),
            _ => std::net::TcpListener::bind("127.0.0.7:0").and_then(|s| s.local_addr()),
        };
        let free = free.unwrap();
        let params = from(&format!("{scheme}://{free}"), &remote);
        let id = dial(&mut a, &mut b, &params);
        assert_eq!(a.info(id).local.socket_addr(), Some(free));
    }
}

#[test]
fn a_udp_face_from_the_address_of_a_listener_shares_its_socket() {
    let (mut a, mut b) = (Node::default(), Node::default());
    let own = a.listen(&ChannelOptions::udp(loopback()));
    let mut dial = |local: &str| {
        let remote = b.listen(&ChannelOptions::udp(loopback()));
        let id = a.dial_with(&from(local, &remote));
        a.info(id).local
    };
    assert_eq!(dial(&own.to_string()), own);
    assert_eq!(dial("udp4://127.0.0.1"), own);
    assert_eq!(dial("udp4://0.0.0.0"), own, "it says nothing");
    let other = dial("udp4://127.0.0.7").socket_addr().unwrap();
    assert_eq!(other.ip().to_string(), "127.0.0.7");
}

#[test]
fn a_udp_face_from_an_address_of_a_wildcard_listener_leaves_from_there() {
    let (mut a, mut b) = (Node::default(), Node::default());
    let own = a.listen(&ChannelOptions::udp("0.0.0.0:0".parse().unwrap()));
    let port = own.socket_addr().unwrap().port();
    let remote = b.listen(&ChannelOptions::udp(loopback()));
    let id = a.dial_with(&from(&format!("udp4://127.0.0.7:{port}"), &remote));
    let local = SocketAddr::from(([127, 0, 0, 7], port));
    assert_eq!(a.info(id).local, FaceUri::Udp(local));
    a.send(id, &interest(1));
    until_both(&mut a, &mut b, "a packet", |_, b| !b.packets.is_empty());
    let to_a = b.packets[0].face;
    assert_eq!(b.info(to_a).remote, FaceUri::Udp(local));
    b.send(to_a, &interest(2));
    until_both(&mut a, &mut b, "an answer", |a, _| !a.packets.is_empty());
    assert_eq!(a.packets[0].face, id);
    assert_eq!(a.faces.n_faces(), 1);
}

#[test]
fn an_address_that_cannot_be_the_local_end_is_refused() {
    let mut node = Node::default();
    let udp = FaceUri::Udp("127.0.0.1:9".parse().unwrap());
    let tcp = FaceUri::Tcp("127.0.0.1:9".parse().unwrap());
    let ws = FaceUri::WebSocket("127.0.0.1:9".parse().unwrap());
    for (local, remote) in [
        ("tcp4://127.0.0.7", &udp),
        ("udp6://[::1]", &udp),
        ("udp4://224.0.23.170", &udp),
        ("udp4://127.0.0.7", &tcp),
        ("wsclient://127.0.0.7", &tcp),
        ("tcp6://[::1]", &tcp),
        ("tcp4://127.0.0.7", &ws),
        ("ws://[::1]", &ws),
    ] {
        let refused = node.faces.create(&from(local, remote));
        assert!(matches!(refused, Err(CreateError::BadLocalUri)), "{local}");
    }
}
