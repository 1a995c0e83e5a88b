//! The longest prefix first (Takemasa 2019, section 4.1.2): whatever is found first is
//! the answer, so no prefix needs a marker.

use super::{FibProbe, Look, Search};

/// See the module.
pub(crate) struct LongestFirst;

impl Search for LongestFirst {
    fn marker_lengths(_first: usize, _n_components: usize) -> u64 {
        0
    }

    #[inline]
    fn search(look: &impl Look, lengths: u64, _first: usize) -> FibProbe {
        look.goes_through(lengths);
        let mut lengths = lengths;
        while lengths != 0 {
            let length = lengths.ilog2() as usize;
            if let Some(node) = look.own(length) {
                return FibProbe::own(node, length);
            }
            lengths &= !(1 << length);
        }
        FibProbe::NOTHING
    }

    #[inline]
    fn fetched(lengths: u64, _first: usize) -> u64 {
        lengths
    }
}
