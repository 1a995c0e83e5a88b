//! What the client's tests talk to: a router that does what its script says.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file includes this and uses its part"
)]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::thread;

use tachonym_client::Endpoint;
use tachonym_packet::lp::{Headers, LpView, write_packet};
use tachonym_packet::{Component, Data, Interest, NackReason, Name, PacketView, tlv};
use tachonym_protocol::FaceUri;

/// What a router does about an Interest.
pub enum Reply {
    /// Sends these frames at once, or nothing.
    Frames(Vec<Vec<u8>>),
    /// Closes the connection.
    HangUp,
}

/// An endpoint at a router that asks `script` about each Interest.
pub fn endpoint(mut script: impl FnMut(&Interest) -> Reply + Send + 'static) -> Endpoint {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).expect("it binds");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut pending = Vec::new();
        let mut room = vec![0; 65_536];
        while let Ok(n_read @ 1..) = stream.read(&mut room) {
            pending.extend_from_slice(&room[..n_read]);
            while let Ok(Some(len)) = tlv::element_len(&pending)
                && len <= pending.len()
            {
                let frame: Vec<u8> = pending.drain(..len).collect();
                match script(&interest_of(&frame)) {
                    // Who hung up wants no answer.
                    Reply::Frames(frames) => drop(stream.write_all(&frames.concat())),
                    Reply::HangUp => return,
                }
            }
        }
    });
    let uri = FaceUri::Unix(socket.to_string_lossy().into_owned());
    Endpoint::connect(&uri).expect("it listens")
}

/// Segment `segment` of `last + 1` under `prefix`, with its own number as its
/// content.
pub fn segment(prefix: &Name, segment: u64, last: u64) -> Data {
    Data {
        final_block_id: Some(Component::segment(last)),
        content: segment.to_string().into_bytes(),
        ..Data::new(prefix.clone().with(&Component::segment(segment)))
    }
}

/// The number of the segment that is asked for.
pub fn segment_of(interest: &Interest) -> u64 {
    let last = interest.name.last().expect("a component");
    last.as_number().expect("a segment")
}

/// The frame that sends `interest` back.
pub fn nack(interest: &Interest, reason: NackReason) -> Vec<u8> {
    let headers = Headers {
        nack: Some(reason),
        ..Headers::default()
    };
    let mut frame = Vec::new();
    write_packet(&mut frame, &headers, None, &[], Some(&interest.encode()));
    frame
}

fn interest_of(frame: &[u8]) -> Interest {
    let frame = LpView::parse(frame).expect("a frame");
    let packet = frame.fragment().expect("a packet");
    match PacketView::parse(packet).expect("well-formed") {
        PacketView::Interest(interest) => interest.to_interest(),
        PacketView::Data(_) => panic!("consumers send Interests"),
    }
}
