//! What admissions are for: what nobody asks for again costs no write, and does not push out
//! what many ask for.

mod common;

use common::{Harness, chunk, name_of};
use tachonym_store::{Admission, Config, Offered};

/// Objects of one batch that are asked for in every round, and those that are once.
const N_POPULAR: u64 = 100;
const N_ONCE: u64 = 400;
const N_ROUNDS: u64 = 24;
const BATCH_LEN: u64 = 4;

fn config(admission: Admission) -> Config {
    Config {
        batch_len: BATCH_LEN as usize,
        max_batches: 8_000,
        max_reads: 8,
        n_write_buffers: 4,
        write_buffer_bytes: 64 << 10,
        assembly_bytes: 256 << 10,
        admission,
        ..Config::default()
    }
}

/// What came of it.
#[derive(Debug)]
struct Outcome {
    /// Requests for what is popular that were answered, of those of the latter half.
    hit_ratio: f64,
    n_written: u64,
    n_regions_emptied: u64,
}

/// Asks for all chunks of an object, one by one, and offers what is not there; how many were, and
/// what became of the others.
fn stream(it: &mut Harness, object: &str) -> (u64, Vec<Offered>) {
    let mut n_hits = 0;
    let mut offered = Vec::new();
    let mut first_level: Vec<Vec<u8>> = Vec::new();
    for number in 0..BATCH_LEN {
        let wire = chunk(object, number, 1, 1_500);
        // The chunks of a batch that was read are in the first level.
        if first_level.contains(&wire) {
            n_hits += 1;
            continue;
        }
        it.came.clear();
        match it.ask(name_of(&wire).view(), false) {
            Some((found, _)) => {
                assert_eq!(found, wire);
                n_hits += 1;
                first_level.append(&mut it.came);
            }
            None => offered.push(it.offer(&wire, false)),
        }
    }
    (n_hits, offered)
}

/// What many ask for, and between that a scan through what nobody asks for again, of more than
/// the store has room for.
fn popular_and_scan(admission: Admission) -> Outcome {
    let mut it = Harness::new(&[8 << 20], config(admission));
    let (mut n_hits, mut n_asked) = (0, 0);
    for round in 0..N_ROUNDS {
        for number in 0..N_ONCE.max(N_POPULAR) {
            if number < N_ONCE {
                stream(&mut it, &format!("/once/{round}/{number}"));
            }
            if number < N_POPULAR {
                let (n, _) = stream(&mut it, &format!("/popular/{number}"));
                if round >= N_ROUNDS / 2 {
                    n_hits += n;
                    n_asked += BATCH_LEN;
                }
            }
            it.tick(10);
        }
        it.flush();
    }
    let counters = it.store.counters();
    Outcome {
        hit_ratio: n_hits as f64 / n_asked as f64,
        n_written: counters.n_written,
        n_regions_emptied: counters.n_regions_emptied,
    }
}

#[test]
fn what_went_though_it_was_popular_comes_back_whole() {
    // What goes is still known by its requests, with so long a window.
    let admission = Admission::TinyLfu {
        window_len: 1_000_000,
    };
    let mut it = Harness::new(&[5 << 20], config(admission));
    let (mut n_back, mut number) = (0, 0_u64);
    while n_back < 2 {
        // All else is asked for six times, mostly of the disk.
        for before in [0, 100, 120, 140, 160, 180] {
            if let Some(number) = number.checked_sub(before) {
                stream(&mut it, &format!("/usual/{number}"));
            }
        }
        it.pump();
        number += 1;
        assert!(number < 100_000, "it never went");
        if number.is_multiple_of(50) {
            let (n_hits, offered) = stream(&mut it, "/popular");
            if n_hits == 0 {
                assert_eq!(offered, [Offered::Kept; BATCH_LEN as usize], "{number}");
                n_back += 1;
            }
            (0..10).for_each(|_| drop(stream(&mut it, "/popular")));
        }
    }
    let counters = it.store.counters();
    assert!(counters.n_not_admitted > 0, "{counters:?}");
}

/// What is here and has been replaced would be given out else.
#[test]
fn what_replaces_a_stored_data_is_written_though_it_has_not_earned_it() {
    let mut before = Harness::new(&[5 << 20], config(Admission::All));
    for number in 0..BATCH_LEN {
        before.offer(&chunk("/live", number, 1, 1_500), false);
    }
    before.flush();
    let policies = [
        Admission::Filter {
            threshold: 2,
            history_len: 100_000,
        },
        Admission::Lcp {
            probability: 0.0,
            seed: 1,
        },
    ];
    for policy in policies {
        let mut it = before.reboot(before.device.image(), config(policy));
        let (other, new) = (chunk("/other", 2, 2, 1_500), chunk("/live", 2, 2, 1_500));
        assert_eq!(it.offer(&other, true), Offered::NotAdmitted, "{policy:?}");
        assert_eq!(it.offer(&new, true), Offered::Kept, "{policy:?}");
        let newer = chunk("/live", 2, 3, 1_500);
        assert_eq!(it.offer(&newer, true), Offered::Kept, "{policy:?}");
        it.flush();
        let found = it.ask(name_of(&new).view(), false);
        assert_eq!(found.map(|(wire, _)| wire), Some(newer), "{policy:?}");
        // The others are as they were.
        let first = chunk("/live", 0, 1, 1_500);
        let found = it.ask(name_of(&first).view(), false);
        assert_eq!(found.map(|(wire, _)| wire), Some(first), "{policy:?}");
    }
    // While it is not known yet what is here, something may be.
    let mut it = before.begin_again(before.device.image(), config(policies[0]));
    let new = chunk("/live", 2, 2, 1_500);
    assert_eq!(it.offer(&new, true), Offered::Kept);
    it.flush();
    let found = it.ask(name_of(&new).view(), false);
    assert_eq!(found.map(|(wire, _)| wire), Some(new));
}

#[test]
fn a_scan_is_not_written_and_pushes_nothing_out() {
    let all = popular_and_scan(Admission::All);
    let n_offered = (N_ROUNDS * N_ONCE + N_POPULAR) * BATCH_LEN;
    assert!(
        all.n_written >= n_offered && all.n_regions_emptied > 0,
        "{all:?}"
    );
    let policies = [
        Admission::TinyLfu { window_len: 40_000 },
        Admission::FilterAuto { capacity: 4_000 },
        Admission::Filter {
            threshold: 2,
            history_len: 40_000,
        },
    ];
    for policy in policies {
        let outcome = popular_and_scan(policy);
        eprintln!("{policy:?}: {outcome:?}, {all:?}");
        assert!(
            outcome.n_written < all.n_written / 2,
            "{policy:?}: {outcome:?}, {all:?}"
        );
        assert!(
            outcome.hit_ratio >= all.hit_ratio && outcome.hit_ratio > 0.97,
            "{policy:?}: {outcome:?}, {all:?}"
        );
    }
}

/// There is no room for a Data that replaces another one, stored or waiting: neither is given
/// out.
#[test]
fn what_was_replaced_is_not_given_out_though_the_other_one_was_refused() {
    let config = Config {
        assembly_bytes: 64 << 10,
        ..config(Admission::All)
    };
    let (old, new) = (chunk("/live", 0, 1, 1_500), chunk("/live", 0, 2, 1_500));
    // The device takes nothing meanwhile.
    let fill = |it: &mut Harness, objects: std::ops::Range<u64>| {
        let mut objects = objects;
        objects.find(|object| {
            let wire = chunk(&format!("/{object}"), 0, 1, 8_000);
            it.offer(&wire, false) == Offered::Refused
        })
    };
    let mut stored = Harness::new(&[5 << 20], config.clone());
    stored.offer(&old, false);
    stored.flush();
    let n_room = fill(&mut stored, 0..1_000).expect("it is bounded");
    let mut waiting = Harness::new(&[5 << 20], config);
    assert_eq!(fill(&mut waiting, 0..n_room - 3), None);
    assert_eq!(waiting.offer(&old, false), Offered::Kept);
    assert!(fill(&mut waiting, n_room..1_000).is_some());
    let waits = waiting.ask_memory(name_of(&old).view(), false);
    assert_eq!(waits.as_ref(), Some(&old));
    for mut it in [stored, waiting] {
        let n_replaced = it.store.counters().n_replaced;
        assert_eq!(it.offer(&new, true), Offered::Refused);
        assert_eq!(it.ask(name_of(&old).view(), false), None);
        it.flush();
        assert_eq!(it.ask(name_of(&old).view(), false), None);
        assert!(it.store.counters().n_replaced <= n_replaced + 1);
        assert_eq!(it.offer(&new, true), Offered::Kept);
        let found = it.ask(name_of(&old).view(), false).map(|(found, _)| found);
        assert_eq!(found.as_ref(), Some(&new));
    }
}
