//! A WebSocket whose other end sends anything, in pieces: handshake, messages and
//! what is in them. The first byte says which end that is and whether its
//! handshake is a good one; the second, where the rest is cut in two.
#![no_main]

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tachonym_face::{ChannelOptions, FaceParams, FaceSystem, RxBatch, SystemOptions};
use tachonym_packet::lp::FaceId;
use tachonym_protocol::FaceUri;
use tungstenite::handshake::derive_accept_key;

/// The other end was dialled, and answers; else it dials.
const IS_DIALLED: u8 = 1;
/// Its handshake is a good one, and what it sends comes behind.
const IS_OPEN: u8 = 2;

const UPGRADE: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

struct Bed {
    faces: FaceSystem,
    batch: RxBatch,
    /// Where the faces listen.
    channel: FaceUri,
    /// What they dial.
    listener: TcpListener,
}

impl Bed {
    fn new() -> Self {
        let mut faces = FaceSystem::new(SystemOptions::default()).expect("epoll");
        let channel = ChannelOptions::websocket("127.0.0.1:0".parse().expect("an address"));
        let channel = faces.listen(&channel).expect("it listens");
        let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
        Self {
            faces,
            batch: RxBatch::new(),
            channel,
            listener,
        }
    }

    /// Polls until nothing comes.
    fn turn(&mut self) {
        let mut n_idle = 0;
        while n_idle < 2 {
            self.faces
                .poll(Some(Duration::ZERO), &mut self.batch)
                .expect("it waits");
            n_idle += 1;
            while self.faces.poll_event().is_some() {
                n_idle = 0;
            }
            for frame in self.batch.frames() {
                assert!(!frame.l3.is_empty() && frame.l3.len() <= 8800);
                n_idle = 0;
            }
            self.faces.flush();
        }
    }

    /// A peer that has dialled.
    fn accept(&mut self, is_open: bool) -> TcpStream {
        let address = self.channel.socket_addr().expect("an address");
        let mut peer = TcpStream::connect(address).expect("it listens");
        if is_open {
            peer.write_all(UPGRADE).expect("there is room");
        }
        self.turn();
        peer
    }

    /// A peer that was dialled, and the face to it.
    fn dial(&mut self, is_open: bool) -> (TcpStream, FaceId) {
        let address = self.listener.local_addr().expect("it is bound");
        let params = FaceParams::new(FaceUri::WebSocket(address));
        let id = self.faces.create(&params).expect("a new face").id;
        let (mut peer, _) = self.listener.accept().expect("it is dialled");
        if is_open {
            peer.set_nonblocking(true).expect("a socket");
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                self.turn();
                let mut part = [0; 1024];
                if let Ok(n_bytes) = peer.read(&mut part) {
                    assert!(n_bytes > 0, "it asks");
                    request.extend(&part[..n_bytes]);
                }
            }
            peer.set_nonblocking(false).expect("a socket");
            let request = String::from_utf8(request).expect("HTTP");
            let mut lines = request.lines();
            let key = lines.find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                 Upgrade: websocket\r\nSec-WebSocket-Accept: {}\r\n\r\n",
                derive_accept_key(key.expect("a key").as_bytes())
            );
            peer.write_all(answer.as_bytes()).expect("there is room");
        }
        self.turn();
        (peer, id)
    }
}

thread_local! {
    static BED: RefCell<Bed> = RefCell::new(Bed::new());
}

fuzz_target!(|bytes: &[u8]| {
    let [mode, cut, bytes @ ..] = bytes else {
        return;
    };
    BED.with_borrow_mut(|bed| {
        let is_open = mode & IS_OPEN != 0;
        let (mut peer, dialled) = match mode & IS_DIALLED {
            0 => (bed.accept(is_open), None),
            _ => {
                let (peer, id) = bed.dial(is_open);
                (peer, Some(id))
            }
        };
        let (first, second) = bytes.split_at(bytes.len().min(usize::from(*cut)));
        for part in [first, second] {
            // The connection may be closed by then.
            let _ = peer.write_all(part);
            bed.turn();
        }
        drop(peer);
        if let Some(id) = dialled {
            bed.faces.destroy(id);
        }
        for _ in 0..1000 {
            bed.turn();
            if bed.faces.n_faces() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("a face outlives its peer");
    });
});
