//! The shortest prefix first (Yuan 2015, section 3.4.2): a prefix has a marker at each
//! shorter length, so the first length without a marker is the last to look at. The
//! search begins at the shortest length that any prefix has.

use super::{FibProbe, Look, Promise, longest_first, up_to_longest};

#[inline]
pub(super) fn search(look: &impl Look, lengths: u64) -> FibProbe {
    let mut best = FibProbe::NOTHING;
    if lengths == 0 {
        return best;
    }
    let shortest = (lengths & !1).trailing_zeros() as usize;
    look.goes_through(up_to_longest(lengths));
    for length in shortest..=lengths.ilog2() as usize {
        let seen = look.all(length);
        if seen.is_unsure {
            return FibProbe::UNSURE;
        }
        if let Some(node) = seen.own {
            best = FibProbe::own(node, length);
        }
        if seen.marker.is_none() {
            break;
        }
    }
    if best.promise == Promise::Nothing && lengths & 1 != 0 {
        return longest_first(look, 1);
    }
    best
}
