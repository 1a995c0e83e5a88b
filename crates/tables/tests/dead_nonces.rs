//! The dead nonce list: lifetime, limits, and against a map.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tachonym_memory::PagePreference;
use tachonym_packet::{MonoNs, NameHash, Nonce};
use tachonym_tables::{DeadNonceList, MIN_DEAD_NONCE_LIFETIME};

fn list_of(lifetime: Duration, max_entries: usize) -> DeadNonceList {
    DeadNonceList::new(lifetime, max_entries, PagePreference::Base).expect("a small table")
}

fn nonce(number: u32) -> Nonce {
    Nonce(number.to_be_bytes())
}

#[test]
fn a_nonce_is_remembered_for_the_lifetime_on_its_name_only() {
    let mut list = list_of(MIN_DEAD_NONCE_LIFETIME, 100);
    let start = MonoNs(123_456_789);
    list.insert(NameHash(1), nonce(1), start);
    assert!(list.contains(NameHash(1), nonce(1), start));
    assert!(!list.contains(NameHash(2), nonce(1), start));
    assert!(!list.contains(NameHash(1), nonce(2), start));
    let (in_time, late) = (start.plus_ms(6000), start.plus_ms(6500));
    list.expire(in_time, usize::MAX);
    assert!(list.contains(NameHash(1), nonce(1), in_time));
    // A list that nobody adds to forgets it too.
    assert!(!list.contains(NameHash(1), nonce(1), late));
    list.expire(late, usize::MAX);
    assert!(list.is_empty());
}

#[test]
fn a_short_lifetime_is_raised_to_six_seconds() {
    let list = list_of(Duration::from_millis(1), 100);
    assert_eq!(list.lifetime(), Duration::from_secs(6));
}

#[test]
fn a_full_list_forgets_the_oldest_and_counts_it() {
    let mut list = list_of(MIN_DEAD_NONCE_LIFETIME, 1000);
    let n_nonces = 50_000;
    for number in 0..n_nonces {
        list.insert(NameHash(9), nonce(number), MonoNs(u64::from(number)));
    }
    assert_eq!(list.len(), 1000);
    assert_eq!(list.n_evicted_early(), u64::from(n_nonces) - 1000);
    let now = MonoNs(u64::from(n_nonces));
    assert!(list.contains(NameHash(9), nonce(n_nonces - 1000), now));
    assert!(!list.contains(NameHash(9), nonce(n_nonces - 1001), now));
    assert!(list.memory_bytes() < 100 * 1024);
}

#[test]
fn a_nonce_that_comes_again_lives_on_from_then() {
    let mut list = list_of(MIN_DEAD_NONCE_LIFETIME, 3);
    let start = MonoNs(0);
    for _ in 0..100 {
        list.insert(NameHash(9), nonce(1), start);
    }
    assert_eq!(list.len(), 3);
    let later = start.plus_ms(4000);
    list.insert(NameHash(9), nonce(1), later);
    list.insert(NameHash(9), nonce(2), later);
    // The earlier insertions are over, and went first.
    let at = start.plus_ms(9000);
    list.expire(at, usize::MAX);
    assert_eq!(list.len(), 2);
    assert!(list.contains(NameHash(9), nonce(1), at));
    assert!(list.contains(NameHash(9), nonce(2), at));
    list.expire(start.plus_ms(60_000), usize::MAX);
    assert!(list.is_empty());
    list.insert(NameHash(9), nonce(1), later);
    assert!(list.contains(NameHash(9), nonce(1), later));
}

#[test]
fn nonces_of_any_names_are_told_apart() {
    let mut list = list_of(MIN_DEAD_NONCE_LIFETIME, 1 << 16);
    let names = [0, 1, 0xa076_1d64_78bd_642f, 1 << 32, u64::MAX];
    let numbers = || (0..200).chain(u32::MAX - 200..=u32::MAX);
    for name in names {
        for number in numbers().filter(|number| number.is_multiple_of(2)) {
            list.insert(NameHash(name), nonce(number), MonoNs(0));
        }
    }
    // One hash in 2 to the power of 64 is none: a factor of zero.
    for name in names.into_iter().filter(|&name| name != names[2]) {
        for number in numbers() {
            let is_there = list.contains(NameHash(name), nonce(number), MonoNs(0));
            assert_eq!(is_there, number.is_multiple_of(2), "{name:x} {number}");
        }
    }
}

#[test]
fn insertions_alone_keep_an_old_list_short() {
    let mut list = list_of(MIN_DEAD_NONCE_LIFETIME, 1 << 20);
    for number in 0..10_000 {
        list.insert(NameHash(9), nonce(number), MonoNs(0));
    }
    let later = MonoNs(0).plus_ms(60_000);
    for number in 10_000..16_000 {
        list.insert(NameHash(9), nonce(number), later);
    }
    assert_eq!(list.len(), 6000);
    assert_eq!(list.n_evicted_early(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The oracle maps each nonce to its latest insertion.
    #[test]
    fn nothing_is_forgotten_early_or_kept_for_long(
        steps in proptest::collection::vec((0_u32..20, 0_u64..2000), 1..100)
    ) {
        let mut list = list_of(MIN_DEAD_NONCE_LIFETIME, 1000);
        let mut oracle = HashMap::new();
        let mut now = MonoNs(1);
        for (number, wait_ms) in steps {
            now = now.plus_ms(wait_ms);
            list.insert(NameHash(5), nonce(number), now);
            oracle.insert(number, now);
            list.expire(now, usize::MAX);
            for number in 0..20 {
                let age = oracle.get(&number).map(|&at| now.saturating_since(at));
                let found = list.contains(NameHash(5), nonce(number), now);
                match age {
                    None => prop_assert!(!found),
                    Some(age) if age <= list.lifetime() => prop_assert!(found),
                    Some(age) if age >= list.lifetime() + Duration::from_millis(500) => {
                        prop_assert!(!found);
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
