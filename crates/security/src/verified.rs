//! Which Data were found to be signed well: a bounded memory of digests.
//!
//! Owns a table in sets of eight, least recently used out first. It allocates when it is
//! made and never again. What it is asked for are tags of 128 bits from a hash under a
//! secret, so nobody outside can aim at a set, nor at a tag that is there. Whether a key
//! still counts is not its business.

/// Places of a set.
const N_WAYS: usize = 8;
/// The key of a place that is free.
const FREE: u32 = u32::MAX;

/// What stands for a Data and its signature: part of a hash under a secret.
pub(crate) type Tag = [u8; 16];

#[derive(Clone, Copy, Debug)]
struct Place {
    tag: Tag,
    /// The key whose signature it is, or [`FREE`].
    key_idx: u32,
}

type Set = [Place; N_WAYS];

/// A memory of tags, each with the key that had signed.
#[derive(Debug)]
pub(crate) struct Verified {
    sets: Box<[Set]>,
}

impl Verified {
    /// Room for `n_data`, rounded up to a multiple of eight; with 0 it remembers nothing.
    pub(crate) fn new(n_data: usize) -> Self {
        const EMPTY: Set = [Place {
            tag: [0; 16],
            key_idx: FREE,
        }; N_WAYS];
        Self {
            sets: vec![EMPTY; n_data.div_ceil(N_WAYS)].into_boxed_slice(),
        }
    }

    /// Whether it remembers anything at all.
    pub(crate) const fn is_in_use(&self) -> bool {
        !self.sets.is_empty()
    }

    /// The key that had signed what `tag` stands for.
    pub(crate) fn find(&mut self, tag: &Tag) -> Option<u32> {
        let set = self.set_of(tag)?;
        let way = set.iter().position(|place| place.is_of(tag))?;
        set[..=way].rotate_right(1);
        Some(set[0].key_idx)
    }

    /// Remembers that key `key_idx` had signed what `tag` stands for, in the place of what
    /// was not asked for longest if need be.
    pub(crate) fn insert(&mut self, tag: Tag, key_idx: u32) {
        let Some(set) = self.set_of(&tag) else {
            return;
        };
        let way = set.iter().position(|place| place.is_of(&tag));
        set[..=way.unwrap_or(N_WAYS - 1)].rotate_right(1);
        set[0] = Place { tag, key_idx };
    }

    fn set_of(&mut self, tag: &Tag) -> Option<&mut Set> {
        let (bits, _) = tag.split_first_chunk::<8>()?;
        let n_sets = self.sets.len() as u128;
        // Less than `n_sets`, and as even as the tags are (Lemire 2019).
        let idx = (u128::from(u64::from_le_bytes(*bits)) * n_sets) >> 64;
        self.sets.get_mut(idx as usize)
    }
}

impl Place {
    fn is_of(&self, tag: &Tag) -> bool {
        self.key_idx != FREE && self.tag == *tag
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tag(n: u32) -> Tag {
        let mut tag = [0; 16];
        tag.copy_from_slice(&crate::sha256(&[&n.to_le_bytes()])[..16]);
        tag
    }

    #[test]
    fn without_room_nothing_is_remembered() {
        let mut verified = Verified::new(0);
        assert!(!verified.is_in_use());
        verified.insert(tag(1), 1);
        assert_eq!(verified.find(&tag(1)), None);
    }

    #[test]
    fn a_free_place_answers_no_tag() {
        let mut verified = Verified::new(8);
        assert_eq!(verified.find(&[0; 16]), None);
    }

    proptest! {
        #[test]
        fn it_is_a_plain_list_of_what_was_used_last(
            steps in proptest::collection::vec((0_u32..24, 0_u32..3, any::<bool>()), 0..200),
        ) {
            // One set, so the oracle is a list.
            let mut verified = Verified::new(1);
            let mut list: Vec<(u32, u32)> = Vec::new();
            for (n, key_idx, is_inserted) in steps {
                let at = list.iter().position(|&(other, _)| other == n);
                let known = at.map(|at| list.remove(at));
                if is_inserted {
                    verified.insert(tag(n), key_idx);
                    list.insert(0, (n, key_idx));
                    list.truncate(N_WAYS);
                } else {
                    prop_assert_eq!(verified.find(&tag(n)), known.map(|(_, key)| key));
                    list.splice(0..0, known);
                }
            }
        }

        #[test]
        fn it_keeps_to_its_size_and_never_answers_for_another(n_data in 1_usize..200) {
            let mut verified = Verified::new(n_data);
            for n in 0..1_000 {
                verified.insert(tag(n), n);
                prop_assert_eq!(verified.find(&tag(n)), Some(n));
            }
            let found: Vec<_> = (0..1_000).filter_map(|n| Some((n, verified.find(&tag(n))?))).collect();
            prop_assert!(found.iter().all(|(n, key_idx)| n == key_idx));
            prop_assert!(found.len() <= n_data.next_multiple_of(N_WAYS));
            // No set of a thousand tags is empty but by a chance of one in 10^7 a set.
            prop_assert!(2 * found.len() > n_data);
        }
    }
}
