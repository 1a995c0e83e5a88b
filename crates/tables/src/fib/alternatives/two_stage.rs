//! A middle length first (So et al. 2013; Takemasa 2019, section 4.1.2). Each longer
//! prefix has a marker at that length, which tells the lengths of the prefixes below:
//! a search goes on among those, the longest first, and then, or if there is no marker,
//! among the shorter ones.

use super::{FibProbe, Look, below, longest_first};

/// What a marker at the length `first`, which may be that of a pulled prefix's children,
/// says about prefixes of so many components below it. The last bit stands for all from
/// its length on.
pub(crate) fn reach_bit(first: usize, n_components: usize) -> u32 {
    1 << (n_components - first - 1).min(31)
}

/// The lengths that a marker speaks of.
fn reach(first: usize, info: u32) -> u64 {
    let beyond = if info >> 31 != 0 { u64::MAX << 31 } else { 0 };
    let above_first = u64::from(info) | beyond;
    above_first.checked_shl(first as u32 + 1).unwrap_or(0)
}

#[inline]
pub(super) fn search(look: &impl Look, lengths: u64, first: usize) -> FibProbe {
    let shorter = lengths & below(first);
    if lengths >> first == 0 {
        return longest_first(look, shorter);
    }
    let seen = look.all(first);
    if seen.is_unsure {
        return FibProbe::UNSURE;
    }
    let info = seen.marker.and_then(|marker| look.info(marker, first));
    let longer = lengths & reach(first, info.unwrap_or(0));
    let found = longest_first(look, longer);
    match seen.own {
        _ if found.n_components > 0 => found,
        Some(node) => FibProbe::own(node, first),
        None => longest_first(look, shorter),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn markers_speak_of_the_lengths_below_them() {
        for first in 1..63 {
            assert_eq!(reach(first, 0), 0);
            for n_components in first + 1..64 {
                let lengths = reach(first, reach_bit(first, n_components));
                assert_ne!(lengths & 1 << n_components, 0);
                assert_eq!(lengths & below(first + 1), 0);
                if n_components - first <= 31 {
                    assert_eq!(lengths, 1 << n_components);
                }
            }
        }
    }
}
