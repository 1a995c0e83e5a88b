//! Regions that are taken out of the index, or into it, step by step: more entries than are
//! dealt with at a time, while others ask.

mod common;

use common::{Harness, data, name_of};
use tachonym_packet::{MonoNs, Name};
use tachonym_store::device::{Device, Fault, Injection, Op, Ram};
use tachonym_store::layout::{REGIONS_START, Superblock};
use tachonym_store::{Beginning, Config, Event};

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

/// A Data for which the index has thirty entries.
fn many_prefixes(n: u64) -> Vec<u8> {
    let parts = (0..30).map(|part| format!("/{n}.{part}"));
    data(name(&parts.collect::<String>()), 1, 10, None)
}

/// A store whose first region has Data below `/x/y`, the erasure of all of them, and then
/// others.
fn erased(n_data: u64, device: Ram) -> Harness {
    let mut it = Harness::new(&[5 << 20], config());
    it.device = device;
    for n in 0..n_data {
        it.offer(&data(name(&format!("/x/y/z{n}/w")), 1, 10, None), true);
        it.pump();
    }
    it.flush();
    it.store.erase(it.now, name("/x/y").view());
    it.flush();
    it
}

/// Whether the store has something left to do at once: here, with a region.
fn is_at_it(it: &Harness) -> bool {
    it.store.poll_timeout() == Some(MonoNs::ZERO)
}

/// Offers Data until a region has gone for them, and does something whenever the device has been
/// asked.
fn until_a_region_has_gone(it: &mut Harness, mut between: impl FnMut(&mut Harness)) {
    for n in 0.. {
        if it.store.counters().n_regions_emptied > 0 {
            break;
        }
        it.offer(&many_prefixes(n), true);
        loop {
            let is_busy = it.pump_once();
            between(it);
            if !it.go_on() && !is_busy {
                break;
            }
        }
    }
    it.pump();
}

#[test]
fn what_was_erased_is_not_found_while_its_region_goes() {
    let n_data = 300;
    let mut it = erased(n_data, Ram::new(&[5 << 20]));
    let mut asked = Vec::new();
    let mut next = 0;
    until_a_region_has_gone(&mut it, |it| {
        if !is_at_it(it) || next == n_data {
            return;
        }
        let prefix = name(&format!("/x/y/z{next}"));
        next += 1;
        match it.begin_asking(prefix.view(), true) {
            Some(Ok((wire, _))) => panic!("{} is in memory", name_of(&wire)),
            Some(Err(waiter)) => asked.push((waiter, prefix)),
            None => {}
        }
    });
    assert!(next > 0, "it goes by steps");
    for (waiter, prefix) in asked {
        let answer = it.answer(waiter, prefix.view(), true);
        assert_eq!(answer, None, "{prefix}");
    }
}

/// The read of a Data that is known to be erased takes so long that its region has gone
/// meanwhile, and the erasure with it.
#[test]
fn what_was_erased_does_not_come_by_a_read_that_began_before_its_region_went() {
    let mut it = erased(200, Ram::new(&[5 << 20]));
    let names: Vec<Name> = (0..4).map(|n| name(&format!("/x/y/z{n}/w"))).collect();
    let mut reads = Vec::new();
    for name in &names {
        let Some(Err(waiter)) = it.begin_asking(name.view(), false) else {
            panic!("{name} is not read");
        };
        let request = it.store.poll_request().expect("a read");
        assert_eq!(request.op, Op::Read);
        reads.push((waiter, name, request));
    }
    until_a_region_has_gone(&mut it, |_| {});
    for (waiter, name, request) in reads {
        assert!(it.device.submit(request).is_ok());
        it.pump();
        assert_eq!(it.answer(waiter, name.view(), false), None, "{name}");
    }
}

/// A volume fails while what its regions tell is being taken in.
#[test]
fn an_erasure_of_a_volume_that_is_lost_at_the_start_is_written_again() {
    let erased = name("/x/y/z");
    let mut it = Harness::new(&[5 << 20, 5 << 20], config());
    it.offer(&data(erased.clone(), 1, 10, None), true);
    it.flush();
    let mut next = 0;
    let mut write_up_to = |it: &mut Harness, n_bytes: u64| {
        while it.store.counters().n_written_bytes < n_bytes {
            it.offer(&many_prefixes(next), true);
            it.pump();
            next += 1;
        }
    };
    // Regions of both volumes take turns: the Data is on the first, its erasure on the second.
    write_up_to(&mut it, (1 << 20) + (300 << 10));
    it.store.erase(it.now, name("/x").view());
    it.flush();
    write_up_to(&mut it, (4 << 20) + (300 << 10));
    it.flush();
    let mut n_lost = 0;
    for skip in 0..40 {
        let mut again = it.begin_again(it.device.image(), config());
        again.device.inject(Injection {
            op: Op::Read,
            skip,
            times: 1,
            fault: Fault::Error(5),
        });
        again.pump();
        again.flush();
        let lost = again.events.iter().find_map(|event| match event {
            Event::VolumeLost { volume, .. } => Some(*volume),
            _ => None,
        });
        // Before it was read nobody knows what was erased.
        let is_known = again.ask(erased.view(), false).is_none();
        if lost != Some(1) || !is_known {
            continue;
        }
        n_lost += 1;
        let mut image = again.device.image();
        image[1][REGIONS_START as usize..].fill(0);
        let mut third = again.reboot(image, config());
        assert_eq!(third.ask(erased.view(), false), None, "{skip}");
    }
    assert!(n_lost > 0, "it fails in time");
}

#[test]
fn a_volume_may_be_lost_while_a_region_goes() {
    let mut losses = Vec::new();
    // Regions of both volumes take turns, so that these are on the one or on the other.
    for number in [2_000, 3_000] {
        let mut it = Harness::new(&[5 << 20, 5 << 20], config());
        let mut n_data = 0;
        while !is_at_it(&it) {
            it.offer(&many_prefixes(n_data), true);
            n_data += 1;
            while it.pump_once() && !is_at_it(&it) {}
        }
        it.go_on();
        assert!(is_at_it(&it), "it goes by steps");
        it.device.inject(Injection {
            op: Op::Read,
            skip: 0,
            times: 1,
            fault: Fault::Error(5),
        });
        let name_of_number = |number| name_of(&many_prefixes(number));
        assert_eq!(it.ask(name_of_number(number).view(), false), None);
        let lost = it.events.iter().find_map(|event| match event {
            Event::VolumeLost { volume, .. } => Some(*volume),
            _ => None,
        });
        losses.extend(lost);
        // The other one goes on, over and over.
        let n_twice = 2 * n_data;
        while n_data < n_twice {
            it.offer(&many_prefixes(n_data), true);
            it.pump();
            n_data += 1;
        }
        it.flush();
        assert!(it.store.counters().n_regions_emptied > 0);
        for number in n_data - 100..n_data {
            let name = name_of_number(number);
            assert!(it.ask(name.view(), false).is_some(), "{number}");
        }
    }
    losses.sort_unstable();
    assert_eq!(losses, [0, 1]);
}

/// Regions of [`of_regions`].
const N_REGIONS: u32 = 4;

/// An empty store of regions of so many bytes.
fn of_regions(region_bytes: u32, config: Config) -> Harness {
    let volume = Superblock {
        key: [7; 16],
        worker: 0,
        volume: 0,
        n_volumes: 1,
        batch_len: config.batch_len as u8,
        region_bytes,
        n_regions: N_REGIONS,
        first_seq: 1,
        context: 0,
    };
    let bytes = REGIONS_START + u64::from(N_REGIONS) * u64::from(region_bytes);
    let device = Ram::new(&[bytes as usize]);
    Harness::on(device, vec![volume], config, Beginning::New)
}

/// Prefixes of a region that the index may have.
const MAX_PREFIXES: usize = 1 << 16;

/// All that a region has leaves in one go from its table of contents, so that this is bounded.
#[test]
fn prefixes_of_a_region_are_bounded_and_data_are_not() {
    let region_bytes = 4 << 20;
    let config = Config {
        max_batches: 1_000_000,
        ..config()
    };
    let mut it = of_regions(region_bytes, config.clone());
    let mut n_data = 0;
    let write = |it: &mut Harness, n_bytes: u64, n_data: &mut u64| {
        while it.store.counters().n_written_bytes < n_bytes {
            it.offer(&many_prefixes(*n_data), true);
            it.pump();
            *n_data += 1;
        }
        it.flush();
    };
    // Most of a region.
    write(&mut it, 5 << 19, &mut n_data);
    let n_full = MAX_PREFIXES as u64 / 29;
    assert!(n_data > n_full + 100, "{n_data} are enough for the bound");
    let n_prefixes = 29 * n_data + 29;
    let n_left_out = it.store.counters().n_prefixes_not_indexed;
    let n_expected = n_prefixes - MAX_PREFIXES as u64;
    assert!(
        n_left_out.abs_diff(n_expected) < 60,
        "{n_left_out} {n_expected}"
    );
    // A few take the places of others that the index cannot tell from them.
    let n_expected = n_data as usize + MAX_PREFIXES;
    let is_expected = |it: &Harness| it.store.index_len().0.abs_diff(n_expected) <= 20;
    assert!(is_expected(&it), "{n_expected} {:?}", it.store.index_len());
    let is_found = |it: &mut Harness, number: u64, prefix: bool| {
        let name = name_of(&many_prefixes(number));
        match prefix {
            true => it.ask(name.prefix(20), true).is_some(),
            false => it.ask(name.view(), false).is_some(),
        }
    };
    // What the index knows is the same when records are followed one by one.
    let again = it.reboot(it.device.image(), config.clone());
    assert!(is_expected(&again), "{:?}", again.store.index_len());
    for store in [&mut it, &mut { again }] {
        for number in [0, n_full - 1, n_full + 2, n_data - 1] {
            assert!(is_found(store, number, false), "{number}");
            assert_eq!(is_found(store, number, true), number < n_full, "{number}");
        }
    }
    // Nothing of what goes stays in the index.
    write(&mut it, 30 << 20, &mut n_data);
    assert!(it.store.counters().n_regions_emptied > 3);
    let n_entries = it.store.index_len().0;
    let per_region = MAX_PREFIXES + n_data as usize / 7;
    assert!(n_entries <= N_REGIONS as usize * per_region, "{n_entries}");
}

/// However small Data are, a region has as many as there is room for.
#[test]
fn small_data_fill_a_region_and_are_found_again() {
    let region_bytes = 32 << 20;
    let config = Config {
        max_batches: 600_000,
        ..config()
    };
    let mut it = of_regions(region_bytes, config.clone());
    let wire = |n: u64| data(name(&format!("/{n}")), 1, 1, None);
    // A record of 128 bytes, and an entry of the table of contents.
    let n_data = u64::from(region_bytes) / 144 - 1_000;
    for n in 0..n_data {
        it.offer(&wire(n), true);
        if n % 64 == 0 {
            it.pump();
        }
    }
    it.flush();
    let n_bytes = it.store.counters().n_written_bytes;
    assert!(n_bytes < u64::from(region_bytes), "one region has them all");
    for n in n_data..n_data + 40_000 {
        it.offer(&wire(n), true);
        if n % 64 == 0 {
            it.pump();
        }
    }
    it.flush();
    let n_bytes = it.store.counters().n_written_bytes;
    assert!(n_bytes > u64::from(region_bytes), "that one has been ended");
    let mut again = it.reboot(it.device.image(), config);
    assert_eq!(again.store.counters().n_recovered, n_data + 40_000);
    for n in (0..n_data).step_by(10_000) {
        let found = again.ask(name_of(&wire(n)).view(), false);
        assert_eq!(found.map(|(found, _)| found), Some(wire(n)));
    }
}
