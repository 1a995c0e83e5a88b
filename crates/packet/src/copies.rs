//! Copies of parsed packets, which are viewed again without being parsed again.

use crate::span::Span;
use crate::{NameView, PacketView};

/// Copies of packets, each with what parsing has found.
#[derive(Clone, Debug, Default)]
pub struct PacketCopies {
    bytes: Vec<u8>,
    copies: Vec<PacketCopy>,
}

/// A packet whose bytes lie elsewhere.
///
/// Invariant: what lies at `start` is the packet that the view was of.
#[derive(Clone, Copy, Debug)]
struct PacketCopy {
    /// Of no bytes.
    view: PacketView<'static>,
    start: u32,
    len: u32,
    /// Where the components of its name are in it.
    name: Span,
}

impl PacketCopies {
    /// No packets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of packets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.copies.len()
    }

    /// Whether there are no packets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Bytes of all packets.
    #[must_use]
    pub const fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a copy of a packet.
    pub fn push(&mut self, packet: &PacketView<'_>) {
        let wire = packet.wire();
        self.copies.push(PacketCopy {
            view: packet.of_copy(&[], &[]),
            start: self.bytes.len() as u32,
            len: wire.len() as u32,
            name: Span::of(wire, packet.name().value_bytes()),
        });
        self.bytes.extend_from_slice(wire);
    }

    /// Packet `idx`.
    ///
    /// # Panics
    /// If there is no such packet.
    #[must_use]
    #[inline]
    pub fn get(&self, idx: usize) -> PacketView<'_> {
        let copy = &self.copies[idx];
        let wire = self.wire(copy);
        copy.view
            .of_copy(wire, copy.name.of_wire(wire).unwrap_or_default())
    }

    /// The bytes of each packet.
    pub fn wires(&self) -> impl Iterator<Item = &[u8]> {
        self.copies.iter().map(|copy| self.wire(copy))
    }

    #[inline]
    fn wire(&self, copy: &PacketCopy) -> &[u8] {
        let start = copy.start as usize;
        &self.bytes[start..start + copy.len as usize]
    }

    /// Forgets all packets, and keeps memory for `max_bytes` of them.
    pub fn clear_and_shrink(&mut self, max_bytes: usize) {
        self.copies.clear();
        self.bytes.clear();
        self.bytes.shrink_to(max_bytes);
    }
}

impl<'a> PacketView<'a> {
    /// The name.
    #[must_use]
    #[inline]
    pub const fn name(&self) -> NameView<'a> {
        match self {
            Self::Interest(interest) => interest.name(),
            Self::Data(data) => data.name(),
        }
    }

    /// The view of a copy of the packet, whose name's components are `name`.
    #[inline]
    const fn of_copy<'c>(&self, wire: &'c [u8], name: &'c [u8]) -> PacketView<'c> {
        match self {
            Self::Interest(interest) => PacketView::Interest(interest.of_copy(wire, name)),
            Self::Data(data) => PacketView::Data(data.of_copy(wire, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Data, Interest, Name, Nonce};

    #[test]
    fn a_copy_is_viewed_as_the_packet_was() {
        let name: Name = "/a/b".parse().expect("a literal name");
        let mut interest = Interest::new(name.clone());
        interest.can_be_prefix = true;
        interest.hop_limit = Some(7);
        interest.nonce = Some(Nonce([1, 2, 3, 4]));
        interest.forwarding_hint = vec!["/hint".parse().expect("a literal name")];
        let mut data = Data::new(name);
        data.freshness_period_ms = Some(9);
        data.content = vec![5; 300];
        let nameless = Data::new(Name::new());
        let wires = [
            interest.encode(),
            data.encode_with_digest(),
            nameless.encode_with_digest(),
        ];
        let mut copies = PacketCopies::new();
        for _ in 0..2 {
            for wire in &wires {
                copies.push(&PacketView::parse(wire).expect("own encoding"));
            }
            assert_eq!(copies.n_bytes(), wires.concat().len());
            for (idx, wire) in wires.iter().enumerate() {
                let parsed = PacketView::parse(wire).expect("own encoding");
                // Both views show their bytes, and where in them everything is.
                assert_eq!(format!("{:?}", copies.get(idx)), format!("{parsed:?}"));
            }
            copies.clear_and_shrink(0);
            assert!(copies.is_empty());
        }
    }
}
