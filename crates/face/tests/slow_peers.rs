//! Peers that take nothing, or little, of what is sent to them.

mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use support::{Node, PATIENCE, data, interest, loopback, lp};
use tachonym_face::{ChannelOptions, CloseReason, DropReason, SystemOptions};
use tachonym_packet::lp::{FaceId, Headers};
use tachonym_packet::types;
use tachonym_protocol::FaceUri;

/// Connects to a listener of `node`; the peer, and the face to it.
fn dial_in(node: &mut Node, path: &Path) -> (UnixStream, FaceId) {
    let n_before = node.faces.n_faces();
    let peer = UnixStream::connect(path).unwrap();
    node.until("face", |node| node.faces.n_faces() > n_before);
    let newest = node.faces.faces().map(|face| face.id).max().unwrap();
    (peer, newest)
}

/// Sends to a face until it refuses; why.
fn fill(node: &mut Node, id: FaceId) -> DropReason {
    let packet = data(1, 8000);
    loop {
        if let Err(reason) = node.faces.send(id, &Headers::default(), &packet) {
            return reason;
        }
        node.faces.flush();
    }
}

#[test]
fn peers_that_never_read_do_not_silence_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let mut options = SystemOptions::default();
    options.max_total_backlog_bytes = 1_000_000;
    let bound = options.max_total_backlog_bytes + 50 * options.face_backlog_reserve_bytes;
    let mut node = Node::new(options);
    node.listen(&ChannelOptions::unix(&path));
    let deaf: Vec<_> = (0..50)
        .map(|_| {
            let (peer, id) = dial_in(&mut node, &path);
            assert_eq!(fill(&mut node, id), DropReason::TotalBacklogFull);
            peer
        })
        .collect();
    let waiting: usize = node.faces.faces().map(|face| face.backlog_bytes).sum();
    assert!(waiting <= bound, "{waiting}");

    let (mut peer, id) = dial_in(&mut node, &path);
    let mut room = vec![0; 8000];
    for n in 0..20 {
        node.send(id, &data(n, 8000));
        peer.read_exact(&mut room).unwrap();
        assert_eq!(room, data(n, 8000));
    }
    drop(deaf);
}

#[test]
fn a_connection_whose_peer_takes_nothing_is_closed_in_the_end() {
    let dir = tempfile::tempdir().unwrap();
    for channel in [
        ChannelOptions::unix(dir.path().join("s")),
        ChannelOptions::tcp(loopback()),
        ChannelOptions::websocket(loopback()),
    ] {
        let mut options = SystemOptions::default();
        options.stall_timeout = Duration::from_millis(50);
        let (mut client, mut node) = (Node::default(), Node::new(options));
        let (_, id) = support::connect(&mut client, &mut node, &channel);
        // The client reads no more from now on.
        assert_eq!(fill(&mut node, id), DropReason::BacklogFull);
        assert_eq!(node.destroyed(id).reason, Some(CloseReason::Stalled));
        let counters = node.faces.counters();
        assert_eq!(counters.n_stalled, 1);
        assert!(counters.drops.get(DropReason::ConnectionLost) > 0);
    }
}

#[test]
fn a_slow_reader_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = SystemOptions::default();
    options.stall_timeout = Duration::from_secs(1);
    let mut node = Node::new(options);
    let uri = node.listen(&ChannelOptions::unix(dir.path().join("s")));
    let FaceUri::Unix(path) = uri else {
        panic!("{uri}");
    };
    let (mut peer, id) = dial_in(&mut node, Path::new(&path));
    fill(&mut node, id);
    // Longer than it may take nothing, in steps shorter than that.
    let start = Instant::now();
    let mut room = vec![0; 100_000];
    while start.elapsed() < Duration::from_millis(1500) {
        assert!(peer.read(&mut room).unwrap() > 0);
        node.step(Duration::from_millis(50));
        assert!(node.info(id).backlog_bytes > 0, "it was fast");
    }
    assert_eq!(node.faces.counters().n_stalled, 0);
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn acknowledgements_that_nobody_reads_do_not_pile_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let mut channel = ChannelOptions::unix(&path);
    channel.link.reliability = true;
    let mut node = Node::default();
    node.listen(&channel);
    let (mut peer, id) = dial_in(&mut node, &path);
    let packet = interest(1);
    // Eight bytes that are nowhere else.
    let tx_sequence = |n: u64| (0x7a7b_7c7d_0000_0000 + n).to_be_bytes();
    let n_packets = 100_000;
    let mut n_frames = 0;
    for burst in 0..n_packets / 100 {
        let frames: Vec<u8> = (burst * 100..(burst + 1) * 100)
            .flat_map(|n| {
                lp(&[
                    (types::LP_TX_SEQUENCE, &tx_sequence(n)),
                    (types::LP_FRAGMENT, &packet),
                ])
            })
            .collect();
        peer.write_all(&frames).unwrap();
        n_frames += 100;
        node.until("frames", |node| {
            node.info(id).counters.n_in_frames == n_frames
        });
        node.packets.clear();
        let waiting = node.info(id).backlog_bytes;
        assert!(waiting <= 48 << 10, "{waiting}");
    }
    // Once it reads, it hears of the last ones.
    peer.set_nonblocking(true).unwrap();
    let mut heard = Vec::new();
    let last = tx_sequence(n_packets - 1);
    node.until("last acknowledgement", |_| {
        let mut room = [0; 65_536];
        while let Ok(len) = peer.read(&mut room) {
            heard.extend_from_slice(&room[..len]);
        }
        let tail = heard.len().saturating_sub(200_000);
        heard[tail..].windows(8).any(|part| part == last)
    });
}
