//! Where the engine's packets go in the bed, and who hears of its blocks.

use tachonym_forward::{Block, Output};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, InterestRewrite, InterestView, NackReason};

/// Hears where in the packet path a burst is. Every method does nothing unless
/// written.
pub trait Listener {
    /// A burst begins; nothing of it has been read.
    #[inline(always)]
    fn begin(&mut self) {}

    /// The burst enters a block.
    #[inline(always)]
    fn enter(&mut self, block: Block) {
        let _ = block;
    }

    /// The burst has been carried.
    #[inline(always)]
    fn end(&mut self) {}
}

/// Hears nothing.
impl Listener for () {}

/// Bytes after which the send buffer starts over.
const SEND_BYTES: usize = 1 << 16;
/// Room beyond, for a burst's last packet.
const SPARE_BYTES: usize = 1 << 14;

/// Copies what is sent, as the send queue of a face does.
#[derive(Debug)]
pub struct SendBuffer<L> {
    bytes: Vec<u8>,
    /// Who hears of blocks.
    pub listener: L,
}

impl<L: Listener> SendBuffer<L> {
    /// An empty buffer.
    #[must_use]
    pub fn new(listener: L) -> Self {
        Self {
            bytes: Vec::with_capacity(SEND_BYTES + SPARE_BYTES),
            listener,
        }
    }

    fn room(&mut self) -> &mut Vec<u8> {
        if self.bytes.len() > SEND_BYTES {
            self.bytes.clear();
        }
        &mut self.bytes
    }
}

impl<L: Listener> Output for SendBuffer<L> {
    fn send_interest(
        &mut self,
        _: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        _: &Headers,
    ) {
        rewrite.write_into(interest, self.room());
    }

    fn send_data(&mut self, _: FaceId, data_wire: &[u8], _: &Headers) {
        self.room().extend_from_slice(data_wire);
    }

    fn send_nack(&mut self, _: FaceId, _: NackReason, interest_wire: &[u8], _: &Headers) {
        self.room().extend_from_slice(interest_wire);
    }

    #[inline(always)]
    fn enter(&mut self, block: Block) {
        self.listener.enter(block);
    }
}
