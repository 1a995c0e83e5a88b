//! A UDP socket that receives anything: each datagram by itself, NDNLPv2,
//! fragments and acknowledgements. The input is cut into datagrams, each with a
//! length of two bytes before it.
#![no_main]

use std::cell::RefCell;
use std::net::UdpSocket;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tachonym_face::{ChannelOptions, FaceSystem, RxBatch, SystemOptions};

struct Bed {
    faces: FaceSystem,
    batch: RxBatch,
    peer: UdpSocket,
}

impl Bed {
    fn new() -> Self {
        let mut faces = FaceSystem::new(SystemOptions::default()).expect("epoll");
        let mut channel = ChannelOptions::udp("127.0.0.1:0".parse().expect("an address"));
        channel.link.reliability = true;
        let uri = faces.listen(&channel).expect("it listens");
        let peer = UdpSocket::bind("127.0.0.1:0").expect("a port");
        peer.connect(uri.socket_addr().expect("an address"))
            .expect("it is there");
        Self {
            faces,
            batch: RxBatch::new(),
            peer,
        }
    }
}

thread_local! {
    static BED: RefCell<Bed> = RefCell::new(Bed::new());
}

fuzz_target!(|bytes: &[u8]| {
    BED.with_borrow_mut(|bed| {
        let mut rest = bytes;
        while let [high, low, tail @ ..] = rest {
            let len = usize::from(u16::from_be_bytes([*high, *low])).min(tail.len());
            let (datagram, tail) = tail.split_at(len);
            rest = tail;
            // An error of an earlier datagram may be reported here.
            let _ = bed.peer.send(datagram);
        }
        bed.faces
            .poll(Some(Duration::ZERO), &mut bed.batch)
            .expect("it waits");
        while bed.faces.poll_event().is_some() {}
        for frame in bed.batch.frames() {
            assert!(!frame.l3.is_empty() && frame.l3.len() <= 8800);
        }
        bed.faces.flush();
        assert!(bed.faces.n_faces() <= 1);
    });
});
