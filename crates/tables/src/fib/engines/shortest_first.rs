//! The shortest prefix first (Yuan 2015, section 3.4.2): a prefix has a marker at each
//! shorter length, so the first length without a marker is the last to look at.

use super::{FibProbe, Look, Search, below};

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
        for length in 1..=lengths.ilog2() as usize {
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
        match look.own(0) {
            Some(node) if best.n_components == 0 => FibProbe::own(node, 0),
            _ => best,
        }
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
