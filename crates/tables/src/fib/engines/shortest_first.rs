//! The shortest prefix first (Yuan 2015, section 3.4.2): a prefix has a marker at each
//! shorter length, so the first length without a marker is the last to look at. The
//! search begins at the shortest length that any prefix has.

use super::{FibProbe, LongestFirst, Look, Promise, Search, below};

/// See the module.
pub(crate) struct ShortestFirst;

impl Search for ShortestFirst {
    fn marker_lengths(_first: usize, n_components: usize) -> u64 {
        below(n_components) & !1
    }

    #[inline]
    fn search(look: &impl Look, lengths: u64, _first: usize) -> FibProbe {
        let mut best = FibProbe::NOTHING;
        if lengths == 0 {
            return best;
        }
        let shortest = (lengths & !1).trailing_zeros() as usize;
        look.goes_through(Self::fetched(lengths, 0));
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
            return LongestFirst::search(look, 1, 0);
        }
        best
    }

    #[inline]
    fn fetched(lengths: u64, _first: usize) -> u64 {
        // Lengths without prefixes have markers.
        match lengths {
            0 => 0,
            _ => below(lengths.ilog2() as usize) | lengths,
        }
    }
}
