//! The engine tells which block of the packet path it enters.

mod bed;

use bed::{A, B, Node, Outbox, data, interest};
use tachonym_forward::{Block, Output, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, InterestRewrite, InterestView, NackReason};

/// Blocks as they were entered, repetitions once.
#[derive(Default)]
struct Listener {
    entered: Vec<Block>,
    outbox: Outbox,
}

impl Output for Listener {
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        assert_eq!(self.entered.last(), Some(&Block::InterestTransmission));
        self.outbox.send_interest(face, interest, rewrite, headers);
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        assert_eq!(self.entered.last(), Some(&Block::DataTransmission));
        self.outbox.send_data(face, data_wire, headers);
    }

    fn send_nack(
        &mut self,
        face: FaceId,
        reason: NackReason,
        interest_wire: &[u8],
        headers: &Headers,
    ) {
        self.outbox.send_nack(face, reason, interest_wire, headers);
    }

    fn enter(&mut self, block: Block) {
        if self.entered.last() != Some(&block) {
            self.entered.push(block);
        }
    }
}

/// The blocks that a packet goes through which a figure shows, by number.
fn numbers(node: &mut Node, face: FaceId, wire: &[u8]) -> Vec<u8> {
    let packet = RxPacket::parse(face, &Headers::EMPTY, wire).expect("a packet that may come");
    let mut listener = Listener::default();
    node.engine.handle_burst(node.now, &[packet], &mut listener);
    assert_eq!(listener.outbox.0.len(), 1, "{:?}", listener.outbox.0);
    let entered = listener.entered.iter();
    entered.filter_map(|block| block.number()).collect()
}

#[test]
fn packets_go_through_the_blocks_of_the_published_figures() {
    let mut node = Node::with_remote_faces();
    node.route("/a", B, 0);
    let asked = interest("/a/b").wire();
    let again = interest("/a/b").nonce(2).wire();
    let answer = data("/a/b").wire();
    assert_eq!(numbers(&mut node, A, &asked), [1, 3, 2, 5, 6, 7], "a miss");
    assert_eq!(
        numbers(&mut node, B, &answer),
        [8, 9, 11, 9, 10, 9, 10],
        "its Data: the entry goes when the Data has left, and leaves its place to it"
    );
    assert_eq!(numbers(&mut node, A, &again), [1, 3, 2, 4, 11], "a hit");
}
