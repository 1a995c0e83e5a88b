//! Binary search of lengths (Yuan 2015, section 3.3.1; Waldvogel, Varghese, Turner and
//! Plattner 2001): half of the lengths that are left fall away with each that is asked
//! for. A longer prefix has markers where a search for it turns to longer lengths. A
//! search that ends at a marker answers what the marker inherits, the longest prefix
//! above it, so it never turns back; that is read last (see `partitions`).
//!
//! Lengths are asked for as if their number were one less than a power of two. Then the
//! markers of a prefix are where its length, in binary, loses its lowest ones, and do not
//! depend on what other lengths there are. Those from which there is nothing to learn are
//! passed over.

use super::{FibProbe, Look, Promise, below, longest_first, up_to};

pub(super) fn marker_lengths(n_components: usize) -> u64 {
    let mut lengths = 0;
    let mut length = n_components;
    while length != 0 {
        length &= length - 1;
        lengths |= 1 << length;
    }
    lengths & !1
}

#[inline]
pub(super) fn search(look: &impl Look, lengths: u64) -> FibProbe {
    let mut best = FibProbe::NOTHING;
    if lengths == 0 {
        return best;
    }
    let longest = lengths.ilog2() as usize;
    let mut step = if longest == 0 {
        0
    } else {
        1 << longest.ilog2()
    };
    let mut matched = 0;
    while step > 0 {
        let length = matched + step;
        let from_here = lengths & !below(length) & up_to(length + step - 1);
        let between = lengths & !up_to(matched) & below(length);
        step /= 2;
        if from_here == 0 {
            continue;
        }
        if between == 0 && from_here & 1 << length == 0 {
            matched = length;
            continue;
        }
        let seen = look.all(length);
        if seen.is_unsure {
            return FibProbe::UNSURE;
        }
        if let Some(node) = seen.own {
            best = FibProbe::own(node, length);
        }
        match seen.marker {
            Some(_) if seen.own.is_some() => matched = length,
            Some(marker) => {
                matched = length;
                best = FibProbe::new(marker, length, Promise::Inherited);
            }
            // Nothing is below a prefix that has no marker.
            None if seen.own.is_some() => return best,
            None => {}
        }
    }
    if best.promise == Promise::Nothing && lengths & 1 != 0 {
        return longest_first(look, 1);
    }
    best
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::RefCell;

    use super::super::super::nodes::NodeRef;
    use super::super::Seen;
    use super::*;

    /// A name of which one prefix is there, with its markers.
    struct One {
        length: usize,
        asked: RefCell<Vec<usize>>,
    }

    impl Look for One {
        fn own(&self, length: usize) -> Option<NodeRef> {
            (length == self.length).then_some(NodeRef(1))
        }

        fn all(&self, length: usize) -> Seen {
            self.asked.borrow_mut().push(length);
            let markers = marker_lengths(self.length);
            Seen {
                own: self.own(length),
                marker: (markers >> length & 1 != 0).then_some(NodeRef(1)),
                is_unsure: false,
            }
        }

        fn info(&self, _marker: NodeRef, _length: usize) -> Option<u32> {
            None
        }
    }

    #[test]
    fn each_length_is_found_with_a_logarithm_of_lookups() {
        for longest in 0..64_usize {
            for length in 0..=longest {
                let one = One {
                    length,
                    asked: RefCell::default(),
                };
                let found = search(&one, 1 << longest | 1 << length);
                assert_eq!(usize::from(found.n_components), length);
                let n_asked = one.asked.borrow().len() as u32;
                assert!(n_asked <= (longest + 1).next_power_of_two().ilog2());
            }
        }
    }
}
