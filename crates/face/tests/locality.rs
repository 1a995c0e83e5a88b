//! Which faces count as local, from their first event on.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use support::{Node, every_channel, loopback};
use tachonym_face::{
    ChannelOptions, CloseReason, DropReason, FaceParams, FaceUpdate, Localities, Locality,
    SystemOptions, UpdateError,
};
use tachonym_protocol::{FaceEventKind, FaceScope};

fn node(locality: Locality) -> Node {
    let mut options = SystemOptions::default();
    options.localities = Localities {
        unix: locality,
        tcp: locality,
        udp: locality,
        websocket: locality,
    };
    Node::new(options)
}

#[test]
fn the_scope_of_every_face_follows_its_transports_locality() {
    let dir = tempfile::tempdir().unwrap();
    for (locality, scope) in [
        (Locality::Never, FaceScope::NonLocal),
        (Locality::Loopback, FaceScope::Local),
    ] {
        for (kind, options) in every_channel(dir.path()) {
            let (mut a, mut b) = (node(locality), node(locality));
            let (dialled, accepted) = support::connect(&mut a, &mut b, &options);
            assert_eq!(a.info(dialled).scope, scope, "{kind}");
            assert_eq!(b.info(accepted).scope, scope, "{kind}");
            for node in [&a, &b] {
                let scopes = node.events.iter().map(|event| event.face.scope);
                assert!(scopes.into_iter().all(|of| of == scope), "{kind}");
            }
            let local_fields = FaceUpdate {
                local_fields: Some(true),
                ..FaceUpdate::default()
            };
            let outcome = b.faces.update(accepted, &local_fields);
            let expected = match locality {
                Locality::Never => Err(UpdateError::NotLocal),
                Locality::Loopback => Ok(()),
            };
            assert_eq!(outcome, expected, "{kind}");
        }
    }
}

#[test]
fn a_dialled_face_may_differ_from_its_transport() {
    let mut peer = Node::default();
    let uri = peer.listen(&ChannelOptions::tcp(loopback()));
    let mut node = node(Locality::Loopback);
    let mut params = FaceParams::new(uri);
    params.locality = Some(Locality::Never);
    let id = node.dial_with(&params);
    assert_eq!(node.info(id).scope, FaceScope::NonLocal);
    let mut update = FaceUpdate {
        locality: Some(Locality::Loopback),
        local_fields: Some(true),
        ..FaceUpdate::default()
    };
    node.faces.update(id, &update).unwrap();
    assert_eq!(node.info(id).scope, FaceScope::Local);
    assert!(node.info(id).link.local_fields);
    update.locality = Some(Locality::Never);
    assert_eq!(node.faces.update(id, &update), Err(UpdateError::NotLocal));
    update.local_fields = None;
    node.faces.update(id, &update).unwrap();
    assert_eq!(node.info(id).scope, FaceScope::NonLocal);
    assert!(!node.info(id).link.local_fields);
}

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[test]
fn a_websocket_is_announced_once_its_handshake_has_said_whose_it_is() {
    for (lines, scope) in [
        ("", FaceScope::Local),
        ("Origin: https://page.example\r\n", FaceScope::NonLocal),
        ("Via: 1.1 proxy\r\n", FaceScope::NonLocal),
    ] {
        let mut node = node(Locality::Loopback);
        let mut options = ChannelOptions::websocket(loopback());
        options.link.local_fields = true;
        let uri = node.listen(&options);
        let mut peer = TcpStream::connect(uri.socket_addr().unwrap()).unwrap();
        peer.write_all(REQUEST.as_bytes()).unwrap();
        node.until("a connection", |node| node.faces.n_faces() == 1);
        for _ in 0..10 {
            node.step(Duration::from_millis(1));
        }
        assert!(node.events.is_empty());
        assert_eq!(node.faces.face_ids().count(), 0);
        assert_eq!(node.faces.faces().count(), 0);
        peer.write_all(format!("{lines}\r\n").as_bytes()).unwrap();
        let id = node.accepted();
        let [created] = &node.events[..] else {
            panic!("{lines}: {:?}", node.events);
        };
        assert_eq!(created.face.scope, scope, "{lines}");
        assert!(created.face.is_up());
        let info = node.info(id);
        assert_eq!(info.scope, scope, "{lines}");
        assert_eq!(info.link.local_fields, scope == FaceScope::Local, "{lines}");
        drop(peer);
        node.destroyed(id);
    }
}

#[test]
fn a_handshake_that_fails_leaves_no_event() {
    let mut node = Node::default();
    let mut options = ChannelOptions::websocket(loopback());
    options.origins = ["https://page.example".to_owned()].into();
    let uri = node.listen(&options);
    let other = format!("{REQUEST}Origin: https://other.example\r\n\r\n");
    for (request, status, n_refused) in [("POST / HTTP/1.1\r\n\r\n", "", 0), (&other, "403", 1)] {
        let mut peer = TcpStream::connect(uri.socket_addr().unwrap()).unwrap();
        peer.write_all(request.as_bytes()).unwrap();
        node.until("a connection", |node| node.faces.n_faces() == 1);
        node.until("its end", |node| node.faces.n_faces() == 0);
        let mut answer = String::new();
        let _ = peer.read_to_string(&mut answer);
        assert!(answer.contains(status), "{answer}");
        let drops = node.faces.counters().drops;
        assert_eq!(drops.get(DropReason::OriginRefused), n_refused, "{request}");
    }
    assert!(node.events.is_empty());
}

#[test]
fn a_stream_of_another_protocol_ends_by_its_first_byte() {
    let mut node = Node::default();
    let uri = node.listen(&ChannelOptions::tcp(loopback()));
    for first in [0x16, b'P', 0x07] {
        node.events.clear();
        let mut peer = TcpStream::connect(uri.socket_addr().unwrap()).unwrap();
        let id = node.accepted();
        peer.write_all(&[first]).unwrap();
        let end = node.destroyed(id);
        assert_eq!(end.reason, Some(CloseReason::NotNdn));
        assert_eq!(end.face.counters.drops.get(DropReason::NotNdn), 1);
        assert_eq!(end.face.counters.drops.total(), 1);
        assert!(node.has(FaceEventKind::Destroyed));
    }
}
