//! The index against a list of pairs.

use proptest::prelude::*;

use super::*;

fn index_of(kind: IndexKind, max_slots: usize) -> BucketIndex {
    BucketIndex::new(kind, max_slots, PagePreference::Base).expect("a small index")
}

fn slots_under(index: &BucketIndex, hash: u64) -> Vec<u32> {
    let mut slots = Vec::new();
    index.for_each(hash, |slot| slots.push(slot));
    slots.sort_unstable();
    slots
}

/// Hashes of a kind: all alike, few, of one line but many tags, of many lines
/// but one tag, any.
fn hash_of(weakness: u8, n: u64) -> u64 {
    // As SplitMix64 does (Steele, Lea and Flood 2014).
    let spread = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let spread = (spread ^ spread >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let spread = (spread ^ spread >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let spread = spread ^ spread >> 31;
    match weakness {
        0 => 42,
        1 => n % 4,
        2 => spread & !0xffff,
        3 => spread & 0xff,
        _ => spread,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 100 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_index_agrees_with_a_list_of_pairs_under_any_hash(
        weakness in 0_u8..5,
        max_slots in prop_oneof![Just(1_usize), Just(100), Just(100_000)],
        // Runs of insertions and removals, so that it grows and empties.
        runs in proptest::collection::vec((any::<bool>(), 1_usize..200, any::<u64>()), 1..12)
    ) {
        for kind in IndexKind::ALL {
            let mut index = index_of(kind, max_slots);
            let mut oracle = Vec::<(u64, u32)>::new();
            let mut n_inserted = 0_u32;
            for &(inserts, n_steps, salt) in &runs {
                for step in 0..n_steps as u64 {
                    if inserts {
                        let hash = hash_of(weakness, u64::from(n_inserted) / 2);
                        index.insert(hash, n_inserted);
                        oracle.push((hash, n_inserted));
                        n_inserted += 1;
                    } else if !oracle.is_empty() {
                        let nth = (salt.wrapping_mul(step + 1) >> 7) as usize % oracle.len();
                        let (hash, slot) = oracle.swap_remove(nth);
                        prop_assert!(index.remove(hash, slot));
                        prop_assert!(!index.remove(hash, slot));
                        if let Some((hash, slot)) = oracle.get_mut(nth) {
                            index.replace(*hash, *slot, n_inserted);
                            *slot = n_inserted;
                            n_inserted += 1;
                        }
                    }
                }
                prop_assert_eq!(index.len(), oracle.len());
                for &(hash, slot) in &oracle {
                    prop_assert_eq!(index.find(hash, |found| found == slot), Some(slot));
                }
                for n in 0..u64::from(n_inserted) / 2 + 2 {
                    let hash = hash_of(weakness, n);
                    let mut expected: Vec<u32> = oracle
                        .iter()
                        .filter(|pair| pair.0 == hash)
                        .map(|pair| pair.1)
                        .collect();
                    expected.sort_unstable();
                    let found = slots_under(&index, hash);
                    prop_assert!(expected.iter().all(|slot| found.contains(slot)));
                    let mut distinct = found.clone();
                    distinct.dedup();
                    prop_assert_eq!(distinct, found, "each once");
                }
            }
            for (hash, slot) in oracle {
                prop_assert!(index.remove(hash, slot));
            }
            prop_assert_eq!((index.len(), index.n_stashed()), (0, 0));
        }
    }
}

#[test]
fn slots_under_one_hash_are_all_candidates_and_leave_one_by_one() {
    for kind in IndexKind::ALL {
        let mut index = index_of(kind, 1000);
        for slot in 0..100 {
            index.insert(42, slot);
        }
        assert_eq!(index.n_stashed(), 100 - 2 * 8);
        index.insert(43, 1000);
        assert_eq!(slots_under(&index, 42), (0..100).collect::<Vec<_>>());
        assert!(index.remove(42, 17));
        assert!(!index.remove(42, 17));
        assert_eq!(index.find(42, |slot| slot == 17), None);
        assert_eq!(index.find(42, |slot| slot == 18), Some(18));
        assert_eq!(index.len(), 100);
    }
}

#[test]
fn keyed_hashes_find_their_places_and_tags_tell_them_apart() {
    let n_slots = if cfg!(miri) { 2_000 } else { 200_000 };
    for kind in IndexKind::ALL {
        let mut index = index_of(kind, n_slots as usize);
        for slot in 0..n_slots {
            index.insert(hash_of(9, u64::from(slot)), slot);
        }
        let n_stashed = index.n_stashed();
        assert!(n_stashed <= n_slots as usize / 200, "{kind}: {n_stashed}");
        let mut n_asked = 0_u32;
        for n in u64::from(n_slots)..2 * u64::from(n_slots) {
            index.for_each(hash_of(9, n), |_| n_asked += 1);
        }
        assert!(n_asked < n_slots / 100, "{kind}: {n_asked} without a match");
        let bytes = index.memory_bytes() / n_slots as usize;
        assert!(bytes <= 26, "{kind}: {bytes}");
    }
}

#[test]
fn filters_are_clean_again_when_nothing_overflows() {
    let mut index = index_of(IndexKind::Single, 100);
    for round in 0..100_u64 {
        for slot in 0..60 {
            index.insert(hash_of(2, round * 60 + u64::from(slot)), slot);
        }
        for slot in 0..60 {
            assert!(index.remove(hash_of(2, round * 60 + u64::from(slot)), slot));
        }
    }
    let lines = &index.left;
    for tag in 0..8 {
        let pattern = lines.pattern(tag << 61 | tag << 22);
        assert!(!lines.may_overflow(lines.line(0), pattern));
    }
}

#[test]
fn a_full_index_goes_on() {
    for kind in IndexKind::ALL {
        let mut index = index_of(kind, 10);
        for slot in 0..10_000 {
            index.insert(hash_of(9, u64::from(slot)), slot);
        }
        assert!(index.n_stashed() > 9_000);
        for slot in 0..10_000 {
            let hash = hash_of(9, u64::from(slot));
            assert_eq!(index.find(hash, |found| found == slot), Some(slot));
        }
    }
}
