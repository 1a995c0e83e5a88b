//! Parts of a packet by their place in it, which makes the views small: they are
//! copied more often than most of their parts are looked at.

use crate::tlv;
use crate::types::MAX_PACKET_BYTES;

const _: () = assert!(MAX_PACKET_BYTES <= u16::MAX as usize);

/// A part of a packet of at most [`MAX_PACKET_BYTES`], or none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// 0: there is none, since no part begins where the packet does.
    start: u16,
    len: u16,
}

impl Span {
    /// Where `part`, which lies inside `wire` behind its first byte, is in it.
    #[inline]
    pub(crate) fn of(wire: &[u8], part: &[u8]) -> Self {
        Self {
            start: offset_in(wire, part) as u16,
            len: part.len() as u16,
        }
    }

    /// Where the part begins; 0: there is none.
    #[inline]
    pub(crate) const fn start(self) -> u16 {
        self.start
    }

    /// Whether there is such a part.
    #[inline]
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.start != 0
    }

    /// The part in `wire`, the packet that the span is of, or a copy of it.
    #[must_use]
    #[inline]
    pub fn of_wire(self, wire: &[u8]) -> Option<&[u8]> {
        if !self.is_some() {
            return None;
        }
        let start = usize::from(self.start);
        wire.get(start..start + usize::from(self.len))
    }
}

/// Offset of `part`, which lies inside `whole`, from its first byte.
#[must_use]
#[inline]
pub fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}

/// Offset of the element in `wire` whose TLV-VALUE is `value`.
pub(crate) fn element_offset(wire: &[u8], typ: u32, value: &[u8]) -> usize {
    let head = tlv::tlv_len(typ, value.len()) - value.len();
    offset_in(wire, value) - head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_absent_ones_do_not() {
        let wire = [1, 2, 3, 4];
        assert_eq!(
            Span::of(&wire, &wire[1..3]).of_wire(&wire),
            Some(&[2, 3][..])
        );
        assert_eq!(Span::of(&wire, &wire[4..]).of_wire(&wire), Some(&[][..]));
        assert_eq!(Span::default().of_wire(&wire), None);
    }
}
