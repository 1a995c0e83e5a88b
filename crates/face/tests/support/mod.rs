//! Two ends of faces, and packets to send over them.
#![allow(dead_code)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tachonym_face::{
    ChannelOptions, CreateOutcome, FaceEvent, FaceInfo, FaceParams, FaceSystem, RxBatch,
    SystemOptions,
};
use tachonym_packet::lp::{FaceId, Headers};
use tachonym_packet::{Data, Interest, tlv};
use tachonym_protocol::{FaceEventKind, FaceUri};

/// Longest time that anything in these tests takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A received packet, out of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) face: FaceId,
    pub(crate) headers: Headers,
    pub(crate) l3: Vec<u8>,
    pub(crate) prefix_announcement: Option<Vec<u8>>,
}

/// A face system with what it has received so far.
pub(crate) struct Node {
    pub(crate) faces: FaceSystem,
    pub(crate) packets: Vec<Packet>,
    pub(crate) events: Vec<FaceEvent>,
    batch: RxBatch,
}

impl Default for Node {
    fn default() -> Self {
        Self::new(SystemOptions::default())
    }
}

impl Node {
    pub(crate) fn new(options: SystemOptions) -> Self {
        Self {
            faces: FaceSystem::new(options).unwrap(),
            packets: Vec::new(),
            events: Vec::new(),
            batch: RxBatch::new(),
        }
    }

    /// One round, as the router makes them.
    pub(crate) fn step(&mut self, timeout: Duration) {
        self.faces.poll(Some(timeout), &mut self.batch).unwrap();
        while let Some(event) = self.faces.poll_event() {
            self.events.push(event);
        }
        self.packets.extend(self.batch.frames().map(|frame| Packet {
            face: frame.face,
            headers: *frame.headers,
            l3: frame.l3.to_vec(),
            prefix_announcement: frame.prefix_announcement.map(<[u8]>::to_vec),
        }));
        self.faces.flush();
        while let Some(event) = self.faces.poll_event() {
            self.events.push(event);
        }
    }

    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
            self.step(Duration::from_millis(5));
        }
    }

    pub(crate) fn listen(&mut self, options: &ChannelOptions) -> FaceUri {
        self.faces.listen(options).unwrap()
    }

    /// Dials, and waits until the face is up.
    pub(crate) fn dial(&mut self, remote: &FaceUri) -> FaceId {
        self.dial_with(&FaceParams::new(remote.clone()))
    }

    pub(crate) fn dial_with(&mut self, params: &FaceParams) -> FaceId {
        let CreateOutcome { id, is_up, .. } = self.faces.create(params).unwrap();
        if !is_up {
            self.until("face up", |node| {
                node.faces.info(id).is_some_and(|face| face.is_up())
            });
        }
        id
    }

    /// The first face that was made by somebody else, once there is one.
    pub(crate) fn accepted(&mut self) -> FaceId {
        self.until("a face", |node| node.has(FaceEventKind::Created));
        self.events
            .iter()
            .find(|event| event.kind == FaceEventKind::Created)
            .unwrap()
            .face
            .id
    }

    pub(crate) fn has(&self, kind: FaceEventKind) -> bool {
        self.events.iter().any(|event| event.kind == kind)
    }

    /// The end of a face, once it has come.
    pub(crate) fn destroyed(&mut self, id: FaceId) -> FaceEvent {
        let is_end =
            |event: &&FaceEvent| event.kind == FaceEventKind::Destroyed && event.face.id == id;
        self.until("face destroyed", |node| {
            node.events.iter().any(|e| is_end(&e))
        });
        self.events.iter().find(is_end).unwrap().clone()
    }

    pub(crate) fn info(&self, id: FaceId) -> FaceInfo {
        self.faces.info(id).unwrap()
    }

    pub(crate) fn send(&mut self, id: FaceId, l3: &[u8]) {
        self.faces.send(id, &Headers::default(), l3).unwrap();
        self.faces.flush();
    }
}

/// Runs both until `done`.
pub(crate) fn until_both(
    a: &mut Node,
    b: &mut Node,
    what: &str,
    mut done: impl FnMut(&mut Node, &mut Node) -> bool,
) {
    let start = Instant::now();
    while !done(a, b) {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        a.step(Duration::from_millis(1));
        b.step(Duration::from_millis(1));
    }
}

/// Connects `client` to a listener of `server`; the two ends of the face.
pub(crate) fn connect(
    client: &mut Node,
    server: &mut Node,
    options: &ChannelOptions,
) -> (FaceId, FaceId) {
    let uri = server.listen(options);
    let outcome = client.faces.create(&FaceParams::new(uri)).unwrap();
    let a = outcome.id;
    client
        .faces
        .send(a, &Headers::default(), &interest(0))
        .unwrap();
    client.faces.flush();
    until_both(client, server, "first packet", |_, server| {
        !server.packets.is_empty()
    });
    let b = server.packets.remove(0).face;
    (a, b)
}

pub(crate) fn interest(n: u64) -> Vec<u8> {
    Interest::new(format!("/interest/{n}").parse().unwrap()).encode()
}

/// A Data of `size` bytes, which must be neither too few nor one of the few
/// sizes that no Data has.
pub(crate) fn data(n: u64, size: usize) -> Vec<u8> {
    let mut data = Data::new(format!("/data/{n}").parse().unwrap());
    let overhead = data.encode().len();
    (0..=size - overhead)
        .rev()
        .map(|content_bytes| {
            data.content = vec![n as u8; content_bytes];
            data.encode()
        })
        .find(|wire| wire.len() == size)
        .expect("a size that a Data can have")
}

/// An LpPacket of these elements.
pub(crate) fn lp(elements: &[(u32, &[u8])]) -> Vec<u8> {
    let mut wire = Vec::new();
    tlv::write_nested(&mut wire, 0x64, |out| {
        for (typ, value) in elements {
            tlv::write_tlv(out, *typ, value);
        }
    });
    wire
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn loopback6() -> SocketAddr {
    "[::1]:0".parse().unwrap()
}

/// Options for every kind of listener, with a name for messages.
pub(crate) fn every_channel(dir: &std::path::Path) -> Vec<(&'static str, ChannelOptions)> {
    let mut all = vec![
        ("unix", ChannelOptions::unix(dir.join("nfd.sock"))),
        ("tcp4", ChannelOptions::tcp(loopback())),
        ("udp4", ChannelOptions::udp(loopback())),
        ("ws4", ChannelOptions::websocket(loopback())),
    ];
    if std::net::UdpSocket::bind("[::1]:0").is_ok() {
        all.push(("tcp6", ChannelOptions::tcp(loopback6())));
        all.push(("udp6", ChannelOptions::udp(loopback6())));
        all.push(("ws6", ChannelOptions::websocket(loopback6())));
    }
    all
}
