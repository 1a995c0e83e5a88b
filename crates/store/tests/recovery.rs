//! What a store does while it looks for what it had, and what it makes of volumes that have
//! lost a part of it.

mod common;

use common::{Harness, chunk, data, name_of};
use tachonym_packet::{Component, Name};
use tachonym_store::device::{Device, Fault, Injection, Op, Ram};
use tachonym_store::layout::{REGIONS_START, STEP};
use tachonym_store::{Config, Event, Offered};

fn config() -> Config {
    Config {
        batch_len: 4,
        max_batches: 4_000,
        max_reads: 8,
        n_write_buffers: 4,
        write_buffer_bytes: 64 << 10,
        assembly_bytes: 256 << 10,
        ..Config::default()
    }
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn has(it: &mut Harness, wire: &[u8]) -> bool {
    let found = it.ask(name_of(wire).view(), false);
    found.is_some_and(|(found, _)| found == wire)
}

/// Offers so many chunks of an object, each batch whole.
fn fill(it: &mut Harness, object: &str, n_chunks: u64, len: usize) -> Vec<Vec<u8>> {
    let wires: Vec<_> = (0..n_chunks).map(|n| chunk(object, n, 1, len)).collect();
    for wire in &wires {
        assert_eq!(it.offer(wire, true), Offered::Kept);
        it.pump();
    }
    wires
}

#[test]
fn nothing_erased_or_replaced_is_given_out_while_regions_are_looked_through() {
    let mut it = Harness::new(&[24 << 20], config());
    let erased = fill(&mut it, "/erased", 4, 1_000);
    let old = fill(&mut it, "/new", 4, 1_000);
    fill(&mut it, "/other", 800, 8_000);
    it.store.erase(it.now, name("/erased").view());
    let new: Vec<_> = (0..4).map(|n| chunk("/new", n, 2, 1_000)).collect();
    for wire in &new {
        it.offer(wire, true);
    }
    it.flush();
    let mut again = it.begin_again(it.device.image(), config());
    again.device = Ram::from_image(it.device.image()).with_seed(5);
    let mut n_rounds = 0;
    while again.store.is_recovering() {
        for (old, new) in old.iter().zip(&new) {
            let found = again.ask_memory(name_of(old).view(), false);
            assert!(found.is_none_or(|found| found == *new));
        }
        for wire in &erased {
            assert_eq!(again.ask_memory(name_of(wire).view(), false), None);
        }
        assert_eq!(again.ask_memory(name("/erased").view(), true), None);
        assert!(again.pump_once() || again.go_on());
        n_rounds += 1;
    }
    assert!(n_rounds > 2, "there was time to ask");
    assert!(again.store.counters().n_reads == 0);
    assert!(new.iter().all(|wire| has(&mut again, wire)));
    assert!(!erased.iter().any(|wire| has(&mut again, wire)));
}

#[test]
fn what_is_erased_and_offered_while_regions_are_looked_through_is_so_for_good() {
    let mut it = Harness::new(&[24 << 20], config());
    let first = fill(&mut it, "/a", 4, 1_000);
    fill(&mut it, "/other", 800, 8_000);
    let last = fill(&mut it, "/a/b", 4, 1_000);
    it.flush();
    let mut again = it.begin_again(it.device.image(), config());
    again.store.erase(again.now, name("/a").view());
    let offered = chunk("/a/c", 0, 1, 1_000);
    assert_eq!(again.offer(&offered, true), Offered::Kept);
    assert!(again.store.is_recovering());
    assert!(again.ask_memory(name_of(&offered).view(), false).is_some());
    let ticket = again.flush();
    assert_eq!(again.store.poll_flushed(), ticket);
    let reboot = again.reboot(again.device.image(), config());
    for mut it in [again, reboot] {
        assert!(!first.iter().chain(&last).any(|wire| has(&mut it, wire)));
        assert!(has(&mut it, &offered));
    }
}

#[test]
fn regions_whose_heads_are_lost_are_not_taken_for_those_written_after() {
    let mut it = Harness::new(&[24 << 20], config());
    // The first page is written alone, here and later, so that what follows it is in reach.
    fill(&mut it, "/c", 4, 100);
    it.flush();
    let erased = fill(&mut it, "/a", 4, 100);
    it.flush();
    let mut image = it.device.image();
    let head = REGIONS_START as usize;
    image[0][head..head + STEP].fill(0);
    let mut second = it.reboot(image, config());
    second.store.erase(second.now, name("/a").view());
    let flushed = fill(&mut second, "/b", 4, 100);
    second.flush();
    let mut third = second.reboot(second.device.image(), config());
    assert!(flushed.iter().all(|wire| has(&mut third, wire)));
    assert!(!erased.iter().any(|wire| has(&mut third, wire)));
}

#[test]
fn what_is_flushed_is_there_where_a_table_of_contents_of_a_lost_head_remains() {
    let mut it = Harness::new(&[24 << 20], config());
    // The first region is ended.
    fill(&mut it, "/a", 400, 8_000);
    it.flush();
    let mut image = it.device.image();
    let region_bytes = it.volumes[0].region_bytes as usize;
    for region in 0..it.volumes[0].n_regions as usize {
        let head = REGIONS_START as usize + region * region_bytes;
        image[0][head..head + STEP].fill(0);
    }
    let mut second = it.reboot(image, config());
    assert!(second.events.contains(&Event::Recovered { n_batches: 0 }));
    let flushed = fill(&mut second, "/b", 4, 100);
    second.flush();
    let mut third = second.reboot(second.device.image(), config());
    assert!(flushed.iter().all(|wire| has(&mut third, wire)));
}

#[test]
fn a_volume_that_stalls_does_not_keep_the_others_from_being_looked_through() {
    let mut it = Harness::new(&[12 << 20, 12 << 20], config());
    fill(&mut it, "/a", 400, 8_000);
    it.flush();
    let mut again = it.begin_again(it.device.image(), config());
    // Those of the first volume that are under way; the volumes' regions take turns.
    for skip in [0, 1, 2, 3] {
        again.device.inject(Injection {
            op: Op::Read,
            skip,
            times: u64::from(skip % 2 == 0),
            fault: Fault::Stall,
        });
    }
    again.tick(0);
    assert!(again.store.is_recovering());
    again.tick(6_000);
    assert!(!again.store.is_recovering());
    assert_eq!(again.store.n_lost_volumes(), 1);
    assert!(again.store.counters().n_recovered > 0);
    let last = name("/a").with(&Component::segment(399));
    let _ = again.ask(last.view(), false);
    let kept = fill(&mut again, "/b", 4, 100);
    again.flush();
    assert!(kept.iter().all(|wire| has(&mut again, wire)));
}

/// What is written next is behind what was found last: in a region of the volume that is lost.
#[test]
fn a_volume_lost_while_regions_are_looked_through_does_not_keep_the_other_from_being_written() {
    let mut it = Harness::new(&[24 << 20, 24 << 20], config());
    fill(&mut it, "/a", 2_400, 8_000);
    it.flush();
    let mut image = it.device.image();
    image[1].truncate(REGIONS_START as usize);
    let mut again = it.reboot(image, config());
    assert_eq!(again.store.n_lost_volumes(), 1);
    let kept = fill(&mut again, "/b", 4, 100);
    let ticket = again.flush();
    assert_eq!(again.store.poll_flushed(), ticket);
    assert!(again.store.poll_flush_failed() < ticket);
    let mut third = again.reboot(again.device.image(), config());
    assert!(kept.iter().all(|wire| has(&mut third, wire)));
}

/// The heads of two regions are lost, but not the table of contents of the first. What is
/// written there next is not taken for what had it.
#[test]
fn what_power_has_left_of_a_region_is_not_taken_for_what_is_written_there_next() {
    let mut it = Harness::new(&[4 << 20, 4 << 20], config());
    fill(&mut it, "/a", 8, 1_000);
    it.flush();
    let mut second = it.reboot(it.device.image(), config());
    // A region of the other volume, which is ended, and the next.
    fill(&mut second, "/b", 160, 8_000);
    second.flush();
    let mut image = second.device.image();
    for (volume, region) in [(1, 0), (0, 1)] {
        let region_bytes = it.volumes[volume].region_bytes as usize;
        let head = REGIONS_START as usize + region * region_bytes;
        image[volume][head..head + STEP].fill(0);
    }
    let mut third = second.reboot(image, config());
    let flushed = fill(&mut third, "/c", 4, 100);
    third.flush();
    let mut fourth = third.reboot(third.device.image(), config());
    assert!(flushed.iter().all(|wire| has(&mut fourth, wire)));
}

#[test]
fn what_is_older_is_not_found_for_want_of_room_for_what_is_newer() {
    let mut it = Harness::new(&[24 << 20], config());
    let old = fill(&mut it, "/a", 4, 1_000);
    fill(&mut it, "/other", 1_600, 8_000);
    let new: Vec<_> = (0..4).map(|n| chunk("/a", n, 2, 1_000)).collect();
    for wire in &new {
        it.offer(wire, true);
    }
    it.flush();
    let small = Config {
        max_batches: 100,
        ..config()
    };
    let mut again = it.begin_again(it.device.image(), small);
    while again.store.is_recovering() {
        assert!(again.pump_once() || again.go_on());
    }
    assert!(again.store.counters().n_not_indexed > 0);
    for (old, new) in old.iter().zip(&new) {
        let found = again.ask(name_of(old).view(), false);
        assert!(found.is_none_or(|(found, _)| found == *new));
    }
}

/// Entries of the index that come or go in one call, most.
const MAX_STEP: usize = 4_096;

/// Lets device and store go on until neither has anything to do, as [`Harness::pump`] does. In
/// no call does the index become larger or smaller by more than a step; how often by a whole one.
fn pump_by_steps(it: &mut Harness) -> usize {
    let (mut n_whole, mut completions) = (0, Vec::new());
    let mut note = |before: usize, after: usize| {
        let n = before.abs_diff(after);
        assert!(n <= MAX_STEP, "{n} at once");
        // What is put in its place meanwhile may be some.
        n_whole += usize::from(n > MAX_STEP / 2);
    };
    loop {
        while let Some(request) = it.store.poll_request() {
            if let Err(request) = it.device.submit(request) {
                it.store.give_back(request);
                break;
            }
        }
        it.device.start();
        it.device.poll(it.now, &mut completions);
        let is_idle = completions.is_empty();
        for completion in completions.drain(..) {
            let (before, _) = it.store.index_len();
            assert!(it.store.handle_completion(it.now, completion).is_none());
            note(before, it.store.index_len().0);
        }
        let (before, _) = it.store.index_len();
        let is_due = it.go_on();
        note(before, it.store.index_len().0);
        if is_idle && !is_due {
            return n_whole;
        }
    }
}

/// A Data with thirty prefixes, which no other has.
fn many_prefixes(n: u64) -> Vec<u8> {
    let parts = (0..30).map(|part| format!("/{n}.{part}"));
    data(name(&parts.collect::<String>()), 1, 10, None)
}

/// Packets wait while the index is changed.
#[test]
fn a_region_of_very_many_prefixes_comes_into_the_index_and_leaves_it_by_steps() {
    let config = Config {
        max_batches: 200_000,
        ..config()
    };
    let mut it = Harness::new(&[5 << 20], config.clone());
    let (mut n, mut n_whole) = (0, 0);
    while it.store.counters().n_regions_emptied < 2 {
        assert_eq!(it.offer(&many_prefixes(n), true), Offered::Kept);
        n_whole += pump_by_steps(&mut it);
        n += 1;
    }
    assert!(n_whole >= 2 * 3, "of a region {n_whole} whole steps");
    it.flush();
    assert_eq!(it.store.counters().n_not_indexed, 0);
    let (n_entries, _) = it.store.index_len();
    let first = (0..n)
        .find(|&n| has(&mut it, &many_prefixes(n)))
        .expect("some");
    assert!((first..n).all(|n| has(&mut it, &many_prefixes(n))));
    assert!(n_entries as u64 <= 31 * (n - first), "{n_entries}");

    let mut again = it.begin_again(it.device.image(), config);
    let n_whole = pump_by_steps(&mut again);
    assert!(!again.store.is_recovering());
    assert_eq!(again.store.index_len().0, n_entries);
    assert!(n_whole > n_entries / MAX_STEP / 2, "{n_whole} whole steps");
    for n in first..n {
        assert!(has(&mut again, &many_prefixes(n)));
        let below = name(&format!("/{n}.0/{n}.1"));
        let found = again.ask(below.view(), true);
        assert_eq!(found.map(|(found, _)| found), Some(many_prefixes(n)));
    }
}

/// Whatever of it has been put into the index by then, and whatever is left to be.
#[test]
fn a_volume_may_be_lost_while_regions_come_into_the_index_by_steps() {
    let config = Config {
        max_batches: 200_000,
        max_read_errors: 1,
        ..config()
    };
    let mut it = Harness::new(&[5 << 20, 5 << 20], config.clone());
    let mut n = 0;
    while it.store.counters().n_regions_emptied < 1 {
        it.offer(&many_prefixes(n), true);
        it.pump();
        n += 1;
    }
    it.flush();
    let image = it.device.image();
    let n_found = |it: &mut Harness| (0..n).filter(|&n| has(it, &many_prefixes(n))).count();
    let n_before = n_found(&mut it);
    for skip in 0..20 {
        let mut again = it.begin_again(image.clone(), config.clone());
        again.device.inject(Injection {
            op: Op::Read,
            skip,
            times: 1,
            fault: Fault::Error(5),
        });
        again.pump();
        assert!(!again.store.is_recovering());
        assert_eq!(again.store.n_lost_volumes(), 1);
        let n_after = n_found(&mut again);
        let share = 0.3..0.7;
        assert!(
            share.contains(&(n_after as f64 / n_before as f64)),
            "{skip}"
        );
        assert!(again.store.index_len().0 <= 31 * n_after, "{skip}");
        let new = chunk("/new", 0, 1, 10);
        again.offer(&new, true);
        again.flush();
        assert!(has(&mut again, &new), "{skip}");
    }
}
