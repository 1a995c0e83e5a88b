//! What a loss of power undoes, and what it must not.

mod common;

use common::{Harness, chunk, data, name_of};
use tachonym_packet::Name;
use tachonym_store::device::{Device, Fault, Injection, Op, Request, Survivors};
use tachonym_store::layout::{REGIONS_START, decode_region_head};
use tachonym_store::{Config, Event, Offered};

fn config() -> Config {
    Config {
        batch_len: 4,
        max_batches: 200_000,
        max_reads: 8,
        n_write_buffers: 4,
        write_buffer_bytes: 64 << 10,
        assembly_bytes: 256 << 10,
        max_read_errors: 1,
        ..Config::default()
    }
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn has(it: &mut Harness, name: &Name) -> bool {
    it.ask(name.view(), false).is_some()
}

/// Offers Data of a few kilobytes until so many bytes have been written since the store was made.
fn write_up_to(it: &mut Harness, next: &mut u64, n_bytes: u64) {
    while it.store.counters().n_written_bytes < n_bytes {
        it.offer(&data(name(&format!("/f/{next}")), 1, 6_000, None), true);
        it.pump();
        *next += 1;
    }
}

/// In how many of a hundred losses of power something is there after them.
fn n_found_after_loss(it: &Harness, wanted: &mut dyn FnMut(&mut Harness) -> bool) -> usize {
    let is_found = |seed: &u64| {
        let image = it.device.image_after_power_loss(Survivors::Some(*seed));
        wanted(&mut it.reboot(image, config()))
    };
    (0..100).filter(is_found).count()
}

/// The region with the erased Data is written over before the one with the erasure.
#[test]
fn a_flushed_erasure_is_not_undone() {
    let mut it = Harness::new(&[5 << 20], config());
    let erased = name("/x/y/z");
    it.offer(&data(erased.clone(), 1, 10, None), true);
    it.flush();
    let mut next = 0;
    write_up_to(&mut it, &mut next, (1 << 20) + (100 << 10));
    it.store.erase(it.now, name("/x").view());
    it.flush();
    write_up_to(&mut it, &mut next, (3 << 20) + (500 << 10));
    it.flush();
    // From here on nobody flushes.
    for tenths_of_mib in 36..70 {
        write_up_to(&mut it, &mut next, (tenths_of_mib << 20) / 10);
        let n_found = n_found_after_loss(&it, &mut |again| has(again, &erased));
        assert_eq!(n_found, 0, "{tenths_of_mib}");
    }
    assert!(it.store.counters().n_regions_emptied >= 2);
}

/// The same with what replaced a Data, and has gone.
#[test]
fn what_was_replaced_does_not_come_back() {
    let mut it = Harness::new(&[5 << 20], config());
    let old = chunk("/x", 0, 1, 10);
    it.offer(&old, true);
    it.flush();
    let mut next = 0;
    write_up_to(&mut it, &mut next, (1 << 20) + (100 << 10));
    it.offer(&chunk("/x", 0, 2, 10), true);
    it.flush();
    write_up_to(&mut it, &mut next, (3 << 20) + (500 << 10));
    it.flush();
    for tenths_of_mib in 36..70 {
        write_up_to(&mut it, &mut next, (tenths_of_mib << 20) / 10);
        let n_found = n_found_after_loss(&it, &mut |again| {
            let found = again.ask(name_of(&old).view(), false);
            found.is_some_and(|(found, _)| found == old)
        });
        assert_eq!(n_found, 0, "{tenths_of_mib}");
    }
    assert!(!has(&mut it, &name_of(&old)), "both have gone");
}

/// A region is ended, and the next one begun, when its head and the erasures in it last.
#[test]
fn the_log_waits_for_a_sync() {
    for is_erasure in [false, true] {
        let mut it = Harness::new(&[5 << 20], config());
        if is_erasure {
            it.offer(&data(name("/x/y"), 1, 6_000, None), true);
            it.flush();
            it.store.erase(it.now, name("/x").view());
        }
        it.device.inject(Injection {
            op: Op::Sync,
            skip: 0,
            times: 1,
            fault: Fault::Stall,
        });
        for number in 0.. {
            let wire = data(name(&format!("/f/{number}")), 1, 6_000, None);
            let offered = it.offer(&wire, true);
            it.pump();
            if offered == Offered::Refused {
                break;
            }
        }
        let n_bytes = it.store.counters().n_written_bytes;
        assert!(n_bytes > 900 << 10 && n_bytes <= 1 << 20, "{n_bytes}");
        let end = REGIONS_START as usize + (1 << 20);
        let foot = &it.device.image()[0][end - 64..end];
        assert_eq!(foot, [0; 64], "{is_erasure}");
        // Its volume is given up for it in the end.
        it.tick(40_000);
        assert_eq!(it.store.n_lost_volumes(), 1);
    }
}

#[test]
fn a_sync_for_each_region_is_enough() {
    let mut it = Harness::new(&[5 << 20], config());
    let mut n_syncs = 0;
    for number in 0..1_500 {
        let wire = data(name(&format!("/f/{number}")), 1, 6_000, None);
        assert_eq!(it.offer(&wire, true), Offered::Kept);
        loop {
            let mut completions = Vec::new();
            while let Some(request) = it.store.poll_request() {
                n_syncs += u64::from(request.op == Op::Sync);
                assert!(it.device.submit(request).is_ok());
            }
            it.device.start();
            it.device.poll(it.now, &mut completions);
            let is_idle = completions.is_empty();
            for completion in completions {
                let recalled = it.store.handle_completion(it.now, completion);
                assert!(recalled.is_none(), "nobody asks");
            }
            if !it.go_on() && is_idle {
                break;
            }
        }
    }
    let n_regions = it.store.counters().n_written_bytes >> 20;
    assert!(n_syncs.abs_diff(n_regions) <= 1, "{n_syncs} {n_regions}");
}

/// Erasures of the region that goes are needed still, for a volume has come back, and are written
/// again into the one that takes its place: there is no other after a start. The power goes
/// whenever.
#[test]
fn erasures_of_the_region_that_is_written_over_first_after_a_start_are_not_lost() {
    // Regions of both take turns, as long as there are any of the second: the first two and four.
    let mut it = Harness::new(&[8 << 20, 3 << 20], config());
    let n_regions: u64 = it.volumes.iter().map(|it| u64::from(it.n_regions)).sum();
    let erased: Vec<Name> = (0..20).map(|n| name(&format!("/x{n}/y"))).collect();
    let has_any = |it: &mut Harness| erased.iter().any(|erased| has(it, erased));
    let mut next = 0;
    write_up_to(&mut it, &mut next, (1 << 20) + (100 << 10));
    for erased in &erased {
        it.offer(&data(erased.clone(), 1, 10, None), true);
    }
    it.flush();
    assert!(has_any(&mut it));
    let old = it.device.image();
    write_up_to(&mut it, &mut next, (5 << 20) + (100 << 10));
    for erased in &erased {
        it.store.erase(it.now, erased.prefix(1));
    }
    it.flush();
    // Up to where the region with the erasures is the next one.
    let n_bytes = ((n_regions + 4) << 20) + (500 << 10);
    write_up_to(&mut it, &mut next, n_bytes);
    it.flush();
    let mut image = it.device.image();
    image[1] = old[1].clone();
    let mut n_written_over = 0;
    for n_steps in 0..40 {
        let mut again = it.begin_again(image.clone(), config());
        again.device = again.device.with_seed(n_steps);
        again.pump();
        assert!(!has_any(&mut again));
        for number in 0..n_steps {
            again.offer(&data(name(&format!("/g/{number}")), 1, 6_000, None), true);
            again.pump_once();
            again.go_on();
        }
        n_written_over += u32::from(again.store.counters().n_written_bytes > 0);
        for seed in 0..10 {
            let mut image = again.device.image_after_power_loss(Survivors::Some(seed));
            image[1] = old[1].clone();
            let mut third = again.reboot(image, config());
            assert!(!has_any(&mut third), "{n_steps} {seed}");
        }
    }
    assert!(n_written_over > 10, "{n_written_over}");
}

/// Numbers of the writings of the regions of the first volume.
fn writings(it: &Harness) -> Vec<u64> {
    let region_bytes = it.volumes[0].region_bytes as usize;
    let image = &it.device.image()[0];
    (0..it.volumes[0].n_regions as usize)
        .map(|region| {
            let start = REGIONS_START as usize + region * region_bytes;
            decode_region_head(&image[start..]).unwrap_or(0)
        })
        .collect()
}

/// The region of the first volume that is being written.
fn newest(it: &Harness) -> usize {
    let writings = writings(it);
    let newest = (0..writings.len()).max_by_key(|&region| writings[region]);
    newest.expect("there are regions")
}

/// As [`Harness::pump_once`], but for reads, which are put into `held`.
fn pump_writes(it: &mut Harness, held: &mut Vec<Request>) {
    let mut completions = Vec::new();
    while let Some(request) = it.store.poll_request() {
        match request.op {
            Op::Read => held.push(request),
            _ => assert!(it.device.submit(request).is_ok()),
        }
    }
    it.device.start();
    it.device.poll(it.now, &mut completions);
    for completion in completions {
        let recalled = it.store.handle_completion(it.now, completion);
        assert!(recalled.is_none(), "nobody asks");
    }
}

/// A region has no table of contents, for the power went while it was written, and the one before
/// still tells of erasures. Those of its records are needed, for a volume will come back, and the
/// region before it is full before it is known what it holds.
#[test]
fn erasures_of_a_region_that_was_not_ended_are_not_lost_when_it_is_written_over() {
    let mut it = Harness::new(&[5 << 20, 3 << 20], config());
    let erased: Vec<Name> = (0..20).map(|n| name(&format!("/x{n}/y"))).collect();
    let has_any = |it: &mut Harness| erased.iter().any(|erased| has(it, erased));
    let mut next = 0;
    write_up_to(&mut it, &mut next, (1 << 20) + (100 << 10));
    for erased in &erased {
        it.offer(&data(erased.clone(), 1, 10, None), true);
    }
    it.flush();
    let old = it.device.image();
    it.device.inject(Injection {
        op: Op::Read,
        skip: 0,
        times: 1,
        fault: Fault::Error(5),
    });
    assert!(!has_any(&mut it) && it.store.n_lost_volumes() == 1);
    // The erasure of which the table of contents will tell.
    it.store.erase(it.now, name("/other").view());
    it.flush();
    let region = newest(&it);
    let fill = |it: &mut Harness, next: &mut u64, region: usize| {
        while newest(it) != region {
            let n_bytes = it.store.counters().n_written_bytes;
            write_up_to(it, next, n_bytes + 1);
        }
    };
    let n_regions = writings(&it).len();
    fill(&mut it, &mut next, (region + 1) % n_regions);
    fill(&mut it, &mut next, region);
    for erased in &erased {
        it.store.erase(it.now, erased.prefix(1));
    }
    it.flush();
    let image = it.device.image();

    let mut again = (0..10)
        .map(|skip| {
            let mut again = it.begin_again(image.clone(), config());
            again.device.inject(Injection {
                op: Op::Read,
                skip,
                times: 1,
                fault: Fault::Error(5),
            });
            again.pump();
            again
        })
        .find(|again| {
            let is_lost = |event: &Event| matches!(event, Event::VolumeLost { volume: 1, .. });
            again.events.iter().any(is_lost)
        })
        .expect("one of the reads is of the second volume");
    fill(&mut again, &mut next, (region + n_regions - 2) % n_regions);
    let mut held = Vec::new();
    loop {
        let wire = data(name(&format!("/f/{next}")), 1, 6_000, None);
        next += 1;
        if again.offer(&wire, true) == Offered::Refused {
            break;
        }
        for _ in 0..3 {
            pump_writes(&mut again, &mut held);
        }
    }
    assert_eq!(newest(&again), (region + n_regions - 1) % n_regions);
    assert_eq!(held.len(), 1);
    let held = held.pop().expect("one");
    assert!(again.device.submit(held).is_ok());
    let mut n_written_over = 0;
    for step in 0..40 {
        again.offer(&data(name(&format!("/g/{step}")), 1, 6_000, None), true);
        again.pump_once();
        again.go_on();
        n_written_over += usize::from(newest(&again) == region);
        for seed in 0..10 {
            let mut image = again.device.image_after_power_loss(Survivors::Some(seed));
            image[1] = old[1].clone();
            let mut third = again.reboot(image, config());
            assert!(!has_any(&mut third), "{step} {seed}");
        }
    }
    assert!(n_written_over > 0);
}

/// Where both the table of contents and the records of a region are damaged, what it had leaves
/// the index all the same, and its erasures are written again.
#[test]
fn a_damaged_region_takes_no_erasure_with_it() {
    let mut it = Harness::new(&[5 << 20, 5 << 20], config());
    let (erased, kept) = (name("/x/y/z"), name("/keep/1"));
    let mut next = 0;
    it.offer(&data(erased.clone(), 1, 10, None), true);
    it.offer(&data(kept.clone(), 1, 10, None), true);
    write_up_to(&mut it, &mut next, (1 << 20) + (100 << 10));
    it.store.erase(it.now, name("/x").view());
    it.flush();
    // The volume with the Data is lost, and will come back.
    it.device.inject(Injection {
        op: Op::Read,
        skip: 0,
        times: 1,
        fault: Fault::Error(5),
    });
    assert!(!has(&mut it, &kept));
    assert_eq!(it.store.n_lost_volumes(), 1);
    it.flush();
    let n_bytes = it.store.counters().n_written_bytes;
    write_up_to(&mut it, &mut next, n_bytes + (2 << 20));
    it.flush();
    for region in 0..3 {
        let start = REGIONS_START as usize + (region << 20);
        it.device.corrupt(1, start + (1 << 20) - 60, 1);
        it.device.corrupt(1, start + 64, 1);
    }
    write_up_to(&mut it, &mut next, n_bytes + (9 << 20));
    it.flush();
    assert!(it.store.counters().n_regions_emptied > 3);
    // Batches, and two prefixes of each name, of the regions that there are.
    let (n_entries, _) = it.store.index_len();
    assert!(n_entries < 4 * 180 * 2, "{n_entries}");
    let mut again = it.reboot(it.device.image(), config());
    assert_eq!(again.store.n_lost_volumes(), 0);
    assert!(has(&mut again, &kept) && !has(&mut again, &erased));
}

#[test]
fn a_flush_does_not_wait_for_what_is_erased_after_it() {
    let mut it = Harness::new(&[5 << 20], config());
    it.offer(&data(name("/x/y"), 1, 10, None), true);
    let ticket = it.store.flush(it.now);
    for number in 0..3 {
        it.store.erase(it.now, name(&format!("/{number}")).view());
    }
    it.pump();
    assert_eq!(it.store.poll_flushed(), ticket);
    assert_eq!(it.store.poll_flush_failed().0, 0);
}
