//! The link service by its rules: which header fields may come with which
//! packet, over which face, and what leaves again (NDNLPv2).

mod support;

use std::net::UdpSocket;

use support::{Node, data, interest, loopback, lp};
use tachonym_face::{
    ChannelOptions, DropReason, FaceUpdate, Locality, MulticastOptions, SystemOptions, UpdateError,
};
use tachonym_packet::lp::{FaceId, Headers, LpView, PitToken};
use tachonym_packet::types;
use tachonym_protocol::FaceUri;

const FRAGMENT: u32 = types::LP_FRAGMENT;
const NACK: (u32, &[u8]) = (types::LP_NACK, &[]);
const NEXT_HOP: (u32, &[u8]) = (types::LP_NEXT_HOP_FACE_ID, &[9]);
const INCOMING: (u32, &[u8]) = (types::LP_INCOMING_FACE_ID, &[8]);
/// CachePolicyType NoCache.
const NO_CACHE: (u32, &[u8]) = (types::LP_CACHE_POLICY, &[0xfd, 0x03, 0x35, 1, 1]);
const NON_DISCOVERY: (u32, &[u8]) = (types::LP_NON_DISCOVERY, &[]);

/// A node, and a bare socket that is the peer of one of its faces.
struct Bed {
    node: Node,
    peer: UdpSocket,
    face: FaceId,
}

impl Bed {
    fn new(mut options: SystemOptions, local_fields: bool) -> Self {
        // Local fields are for local faces.
        options.localities.udp = Locality::Loopback;
        let mut node = Node::new(options);
        let mut channel = ChannelOptions::udp(loopback());
        channel.link.local_fields = local_fields;
        let FaceUri::Udp(addr) = node.listen(&channel) else {
            panic!("a UDP channel has a UDP address");
        };
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.connect(addr).unwrap();
        peer.set_read_timeout(Some(support::PATIENCE)).unwrap();
        peer.send(&interest(0)).unwrap();
        let face = node.accepted();
        let mut bed = Self { node, peer, face };
        bed.settle(1);
        bed.node.packets.clear();
        bed
    }

    /// Sends `frames`, and waits until they and one packet after them are here.
    fn receive(&mut self, frames: &[Vec<u8>]) {
        let n_frames = self.node.info(self.face).counters.n_in_frames;
        for frame in frames {
            self.peer.send(frame).unwrap();
        }
        self.settle(n_frames + frames.len() as u64);
    }

    fn settle(&mut self, n_frames: u64) {
        let face = self.face;
        self.node.until("frames", |node| {
            node.info(face).counters.n_in_frames >= n_frames
        });
    }

    fn n_dropped(&self, reason: DropReason) -> u64 {
        self.node.info(self.face).counters.drops.get(reason)
    }
}

fn with_fields(fields: &[(u32, &[u8])], packet: &[u8]) -> Vec<u8> {
    let mut elements = fields.to_vec();
    elements.push((FRAGMENT, packet));
    lp(&elements)
}

#[test]
fn header_field_that_makes_no_sense_on_its_packet_drops_it() {
    let mut bed = Bed::new(SystemOptions::default(), true);
    let (interest, data) = (interest(1), data(1, 200));
    let announcement = (types::LP_PREFIX_ANNOUNCEMENT, &data[..]);
    let frames = [
        with_fields(&[NACK], &data),
        with_fields(&[NEXT_HOP], &data),
        with_fields(&[NON_DISCOVERY], &data),
        with_fields(&[NO_CACHE], &interest),
        with_fields(&[NACK, NO_CACHE], &interest),
        with_fields(&[announcement], &interest),
        with_fields(&[NACK, announcement], &interest),
        with_fields(&[NACK, NEXT_HOP], &interest),
        with_fields(&[NACK, NON_DISCOVERY], &interest),
    ];
    bed.receive(&frames);
    assert_eq!(bed.node.packets, []);
    let n_frames = frames.len() as u64;
    assert_eq!(bed.n_dropped(DropReason::MisplacedHeader), n_frames);
    // Each is right on another packet.
    bed.receive(&[
        with_fields(&[NACK], &interest),
        with_fields(&[NEXT_HOP, NON_DISCOVERY], &interest),
        with_fields(&[NO_CACHE, announcement], &data),
    ]);
    assert_eq!(bed.node.packets.len(), 3);
    assert_eq!(bed.n_dropped(DropReason::MisplacedHeader), n_frames);
}

#[test]
fn local_field_on_an_interest_is_honoured_only_where_enabled_and_else_drops_it() {
    let mut bed = Bed::new(SystemOptions::default(), false);
    let frames = [
        with_fields(&[NEXT_HOP], &interest(1)),
        with_fields(&[INCOMING], &interest(2)),
        with_fields(&[NACK, INCOMING], &interest(3)),
    ];
    bed.receive(&frames);
    assert_eq!(bed.node.packets, []);
    assert_eq!(bed.n_dropped(DropReason::LocalFieldsDisabled), 3);
    let enable = FaceUpdate {
        local_fields: Some(true),
        ..FaceUpdate::default()
    };
    bed.node.faces.update(bed.face, &enable).unwrap();
    bed.receive(&frames);
    let got: Vec<_> = bed
        .node
        .packets
        .iter()
        .map(|packet| packet.headers)
        .collect();
    assert_eq!(got.len(), 3);
    assert_eq!(got[0].next_hop_face_id, Some(FaceId(9)));
    // On a Nack it says which router refused; of other packets the router knows the face.
    let incoming: Vec<_> = got.iter().map(|it| it.incoming_face_id).collect();
    assert_eq!(incoming, [None, None, Some(FaceId(8))]);
    assert_eq!(bed.n_dropped(DropReason::LocalFieldsDisabled), 3);
}

#[test]
fn local_field_in_fragments_is_no_way_around() {
    let mut bed = Bed::new(SystemOptions::default(), false);
    let packet = interest(1);
    let (first, second) = packet.split_at(6);
    let fragment = |index: u8, extra: Option<(u32, &'static [u8])>, part: &[u8]| {
        let sequence = (100 + u64::from(index)).to_be_bytes();
        let mut elements: Vec<(u32, &[u8])> = vec![
            (types::LP_SEQUENCE, &sequence),
            (types::LP_FRAG_INDEX, std::slice::from_ref(&index)),
            (types::LP_FRAG_COUNT, &[2]),
        ];
        elements.extend(extra);
        elements.push((FRAGMENT, part));
        lp(&elements)
    };
    bed.receive(&[
        fragment(0, Some(NEXT_HOP), first),
        fragment(1, None, second),
    ]);
    assert_eq!(bed.node.packets, []);
    assert_eq!(bed.n_dropped(DropReason::LocalFieldsDisabled), 1);
}

#[test]
fn incoming_face_id_on_data_is_ignored_unless_local_fields_are_enabled() {
    for (has_local_fields, incoming) in [(false, None), (true, Some(FaceId(8)))] {
        let mut bed = Bed::new(SystemOptions::default(), has_local_fields);
        bed.receive(&[
            with_fields(&[NO_CACHE], &data(1, 200)),
            with_fields(&[INCOMING], &data(2, 200)),
            with_fields(&[NO_CACHE, INCOMING], &data(3, 200)),
        ]);
        let got = bed.node.packets.iter().map(|packet| packet.headers);
        let got: Vec<_> = got.map(|it| (it.no_cache, it.incoming_face_id)).collect();
        assert_eq!(got, [(true, None), (false, incoming), (true, incoming)]);
        assert_eq!(bed.node.info(bed.face).counters.drops.total(), 0);
    }
}

#[test]
fn tokens_and_congestion_marks_need_no_permission() {
    let mut bed = Bed::new(SystemOptions::default(), false);
    let mark: (u32, &[u8]) = (types::LP_CONGESTION_MARK, &[3]);
    for len in 1..=32_u8 {
        let token: Vec<u8> = (0..len).collect();
        let token_field = (types::LP_PIT_TOKEN, &token[..]);
        bed.receive(&[
            with_fields(&[token_field, mark], &interest(1)),
            with_fields(&[token_field, mark], &data(1, 200)),
        ]);
        for packet in bed.node.packets.drain(..) {
            assert_eq!(packet.headers.pit_token, PitToken::new(&token));
            assert_eq!(packet.headers.congestion_mark, 3);
        }
    }
    assert_eq!(bed.node.info(bed.face).counters.drops.total(), 0);
}

#[test]
fn local_fields_leave_only_where_enabled() {
    let mut bed = Bed::new(SystemOptions::default(), false);
    let headers = Headers {
        incoming_face_id: Some(FaceId(300)),
        next_hop_face_id: Some(FaceId(301)),
        no_cache: true,
        ..Headers::default()
    };
    let packet = data(1, 200);
    let mut room = [0; 9000];
    for local_fields in [false, true] {
        let update = FaceUpdate {
            local_fields: Some(local_fields),
            ..FaceUpdate::default()
        };
        bed.node.faces.update(bed.face, &update).unwrap();
        bed.node.faces.send(bed.face, &headers, &packet).unwrap();
        bed.node.faces.flush();
        let n = bed.peer.recv(&mut room).unwrap();
        let sent = LpView::parse(&room[..n]).unwrap();
        assert_eq!(sent.fragment(), Some(&packet[..]));
        let expected = if local_fields {
            Headers {
                next_hop_face_id: None,
                ..headers
            }
        } else {
            Headers::default()
        };
        assert_eq!(*sent.headers(), expected);
        assert_eq!(sent.is_bare(), !local_fields);
    }
}

#[test]
fn idle_packet_is_neither_packet_nor_drop_and_empty_fragment_is_malformed() {
    let mut bed = Bed::new(SystemOptions::default(), false);
    bed.receive(&[lp(&[]), lp(&[(types::LP_PIT_TOKEN, &[1])])]);
    assert_eq!(bed.node.info(bed.face).counters.drops.total(), 0);
    bed.receive(&[lp(&[(FRAGMENT, &[])]), interest(1)]);
    assert_eq!(bed.n_dropped(DropReason::Malformed), 1);
    assert_eq!(bed.node.packets.len(), 1);
}

#[test]
fn datagram_is_one_packet_and_a_bad_one_does_not_disturb_the_next() {
    let mut bed = Bed::new(SystemOptions::default(), false);
    let good = interest(1);
    let two = [&good[..], &good].concat();
    let cut = good[..good.len() - 1].to_vec();
    let claims_more = vec![0x05, 0xfd, 0xff, 0xff, 0x07];
    for bad in [two, cut, claims_more, vec![0], vec![0x05]] {
        bed.peer.send(&bad).unwrap();
        bed.peer.send(&good).unwrap();
        bed.node
            .until("the good one", |node| !node.packets.is_empty());
        let got: Vec<_> = bed.node.packets.drain(..).map(|packet| packet.l3).collect();
        assert_eq!(got, std::slice::from_ref(&good), "{bad:?}");
    }
    let of_face = bed.node.info(bed.face).counters.drops.total();
    let of_all = bed.node.faces.counters().drops.total();
    assert_eq!(of_face.max(of_all), 5);
}

#[test]
fn local_fields_cannot_be_had_on_a_face_to_other_machines() {
    let mut node = Node::default();
    let group = "224.0.23.170:56364".parse().unwrap();
    let options = MulticastOptions::new(group, "lo");
    let face = node.faces.create_multicast(&options).unwrap();
    let enable = FaceUpdate {
        local_fields: Some(true),
        mtu_bytes: Some(1400),
        ..FaceUpdate::default()
    };
    assert_eq!(node.faces.update(face, &enable), Err(UpdateError::NotLocal));
    // All or nothing.
    assert_ne!(node.info(face).mtu_bytes, Some(1400));
}
