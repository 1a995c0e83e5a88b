//! What volumes take with them that go out of service, and what outlives them.

mod common;

use common::{Harness, chunk, name_of};
use tachonym_packet::Name;
use tachonym_store::device::{Fault, Injection, Op};
use tachonym_store::{Config, Event, Offered, VolumeFault};

fn config() -> Config {
    Config {
        batch_len: 4,
        max_batches: 8_000,
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

fn fail(it: &mut Harness, op: Op, times: u64) {
    it.device.inject(Injection {
        op,
        skip: 0,
        times,
        fault: Fault::Error(5),
    });
}

/// Lets time pass, in which the device does nothing.
fn wait_without_device(it: &mut Harness, ms: u64) {
    for _ in 0..ms / 250 {
        it.now = it.now.plus_ms(250);
        it.store.handle_timeout(it.now);
    }
}

/// Volumes as the first, but for one as the second holds it.
fn with_volume(mut image: Vec<Vec<u8>>, volume: usize, old: &[Vec<u8>]) -> Vec<Vec<u8>> {
    image[volume] = old[volume].clone();
    image
}

/// Of two volumes one holds Data, the other the erasure and fails: in both orders.
#[test]
fn an_erasure_outlives_the_volume_with_its_record() {
    let mut it = Harness::new(&[8 << 20, 8 << 20], config());
    let erased = fill(&mut it, "/a", 4, 1_000);
    it.flush();
    // Volumes take turns: the record of the erasure is in the region of the second.
    fill(&mut it, "/b", 160, 8_000);
    let n_before = it.store.counters().n_written_bytes;
    assert!(n_before > u64::from(it.volumes[0].region_bytes));
    it.store.erase(it.now, name("/a").view());
    fail(&mut it, Op::Write, 1);
    it.flush();
    let why = VolumeFault::Writing;
    assert_eq!(it.events, [Event::VolumeLost { volume: 1, why }]);
    it.flush();
    let later = fill(&mut it, "/a/later", 4, 1_000);
    it.flush();
    let mut again = it.reboot(it.device.image(), config());
    assert!(!erased.iter().any(|wire| has(&mut again, wire)));
    assert!(later.iter().all(|wire| has(&mut again, wire)));
}

#[test]
fn an_erasure_outlives_its_region_while_a_lost_volume_may_come_back() {
    let mut it = Harness::new(&[8 << 20, 8 << 20], config());
    let in_first = fill(&mut it, "/a", 4, 1_000);
    fill(&mut it, "/b", 160, 8_000);
    let in_second = fill(&mut it, "/a/c", 4, 1_000);
    it.flush();
    let old = it.device.image();
    // It is lost with all that it has, which is to come back.
    fail(&mut it, Op::Read, 8);
    for wire in in_second.iter().cycle().take(8) {
        it.ask(name_of(wire).view(), false);
    }
    let why = VolumeFault::Reading;
    assert_eq!(it.events, [Event::VolumeLost { volume: 1, why }]);
    it.store.erase(it.now, name("/a").view());
    let later = fill(&mut it, "/a/later", 4, 1_000);
    it.flush();
    assert!(later.iter().all(|wire| has(&mut it, wire)));
    let check = |it: &mut Harness| {
        for wire in in_first.iter().chain(&in_second) {
            assert!(!has(it, wire));
        }
    };
    check(&mut it);
    // Soon, and after the region with the record has been written over, more than once.
    for round in 0..3 {
        let mut again = it.reboot(with_volume(it.device.image(), 1, &old), config());
        assert_eq!(again.store.n_lost_volumes(), 0);
        check(&mut again);
        if round == 0 {
            assert!(later.iter().all(|wire| has(&mut again, wire)));
        }
        // The ring's order is not that of age now.
        fill(&mut again, "/e", 1_000, 8_000);
        again.flush();
        let image = with_volume(again.device.image(), 1, &old);
        check(&mut again.reboot(image, config()));
        fill(&mut it, &format!("/d/{round}"), 1_200, 8_000);
        it.flush();
    }
}

#[test]
fn data_that_are_lost_with_a_volume_are_counted() {
    for fault in [Fault::Error(5), Fault::Stall] {
        let mut it = Harness::new(&[8 << 20], config());
        let wires = fill(&mut it, "/a", 40, 1_000);
        it.flush();
        assert_eq!(it.store.counters().n_lost, 0);
        it.device.inject(Injection {
            op: Op::Write,
            skip: 2,
            times: 1,
            fault,
        });
        let n_before = it.store.counters().n_written;
        assert_eq!(n_before, wires.len() as u64);
        for number in 0..400 {
            if it.offer(&chunk("/b", number, 1, 1_000), true) != Offered::Kept {
                break;
            }
            it.pump();
        }
        it.flush();
        it.tick(6_000);
        assert!(!it.store.is_in_use());
        let counters = it.store.counters();
        let n_lost = counters.n_lost + counters.n_dropped;
        let n_kept = counters.n_offered - counters.n_unsuited - counters.n_no_room;
        let by_write = (64 << 10) / 1_100..(64 << 10) / 1_000;
        match fault {
            // All but one write ended well.
            Fault::Stall => assert!(by_write.contains(&n_lost), "{n_lost}"),
            // But for two writes nothing did.
            _ => {
                let n_there = n_kept - n_before - n_lost;
                assert!(by_write.contains(&(n_there / 2)), "{n_there} of {n_kept}");
            }
        }
    }
}

#[test]
fn a_flush_during_which_a_volume_fails_is_known_to_have_failed() {
    for op in [Op::Write, Op::Sync] {
        let mut it = Harness::new(&[8 << 20, 8 << 20], config());
        fill(&mut it, "/a", 4, 1_000);
        let first = it.flush();
        assert!(it.store.poll_flush_failed() < first);
        fill(&mut it, "/b", 4, 1_000);
        fail(&mut it, op, 1);
        let second = it.flush();
        assert_eq!(it.store.poll_flushed(), second);
        assert_eq!(it.store.poll_flush_failed(), second, "{op:?}");
        fill(&mut it, "/c", 4, 1_000);
        let third = it.flush();
        assert_eq!(it.store.poll_flushed(), third);
        assert_eq!(it.store.poll_flush_failed(), second);
    }
}

#[test]
fn what_a_lost_volume_had_leaves_the_index() {
    let mut it = Harness::new(&[8 << 20, 8 << 20], config());
    fill(&mut it, "/a", 900, 8_000);
    it.flush();
    let (n_before, _) = it.store.index_len();
    fail(&mut it, Op::Write, 1);
    fill(&mut it, "/b", 4, 1_000);
    it.flush();
    assert_eq!(it.store.n_lost_volumes(), 1);
    let (n_after, _) = it.store.index_len();
    assert!(
        n_after > n_before / 4 && n_after < n_before * 3 / 4,
        "{n_after} of {n_before}"
    );
}

#[test]
fn requests_that_were_given_back_leave_their_buffers_where_they_belong() {
    let mut it = Harness::new(&[8 << 20, 8 << 20], config());
    for number in 0..20 {
        it.offer(&chunk("/b", number, 1, 8_000), true);
    }
    let request = it.store.poll_request().expect("a buffer was full");
    assert_eq!(request.op, Op::Write);
    it.store.give_back(request);
    // The volume is lost before it has had the write.
    wait_without_device(&mut it, 6_000);
    it.pump();
    assert_eq!(it.store.n_lost_volumes(), 1);
    let n_errors = it.store.counters().n_device_errors;
    // More than a volume: regions are looked through, with the largest reads.
    let wires = fill(&mut it, "/c", 1_600, 8_000);
    it.flush();
    assert!(it.store.counters().n_regions_emptied > 0);
    assert!(wires.iter().rev().take(100).all(|wire| has(&mut it, wire)));
    assert_eq!(it.store.counters().n_device_errors, n_errors);
}

/// A read of what is half in a buffer has that written; what is asked of the device now has
/// not been waiting since the last offer.
#[test]
fn writes_are_dated_by_the_call_that_makes_them() {
    let config = Config {
        stall_ms: 1_000,
        write_delay_ms: 2_000,
        ..config()
    };
    let mut it = Harness::new(&[8 << 20], config);
    // The last batch begins in a buffer and ends in the next.
    let wires = fill(&mut it, "/a", 8, 8_200);
    let last = wires.last().expect("some");
    assert_eq!(it.store.counters().n_reads, 0);
    wait_without_device(&mut it, 1_500);
    let asked = it.begin_asking(name_of(last).view(), false);
    assert!(matches!(asked, Some(Err(_))), "it is to be read: {asked:?}");
    wait_without_device(&mut it, 750);
    assert!(it.store.is_in_use(), "nothing has stalled yet");
    wait_without_device(&mut it, 250);
    assert!(!it.store.is_in_use());
}

/// All that it may have of them until it is lost, and none after that.
#[test]
fn a_volume_that_stalls_does_not_keep_the_buffers() {
    let mut it = Harness::new(&[8 << 20, 8 << 20], config());
    let in_first = fill(&mut it, "/first", 64, 1_000);
    it.flush();
    fill(&mut it, "/b", 160, 8_000);
    let in_second = fill(&mut it, "/second", 64, 1_000);
    it.flush();
    let stall = |it: &mut Harness, op, times| {
        it.device.inject(Injection {
            op,
            skip: 0,
            times,
            fault: Fault::Stall,
        });
    };
    stall(&mut it, Op::Read, 6);
    let ask = |it: &mut Harness, wires: &[Vec<u8>]| -> usize {
        let firsts = wires.iter().step_by(4);
        let asked = firsts.map(|wire| it.begin_asking(name_of(wire).view(), false));
        asked.filter(|it| matches!(it, Some(Err(_)))).count()
    };
    // Of eight buffers six.
    assert_eq!(ask(&mut it, &in_second), 6);
    it.pump();
    assert!(in_first.iter().all(|wire| has(&mut it, wire)));
    it.tick(6_000);
    let why = VolumeFault::Stalled;
    assert_eq!(it.events, [Event::VolumeLost { volume: 1, why }]);
    assert_eq!(ask(&mut it, &in_first), 8);
    it.pump();
    assert!(in_first.iter().all(|wire| has(&mut it, wire)));
}

#[test]
fn a_volume_whose_writes_stall_does_not_keep_the_buffers() {
    let mut it = Harness::new(&[8 << 20, 8 << 20], config());
    it.device.inject(Injection {
        op: Op::Write,
        skip: 0,
        times: 4,
        fault: Fault::Stall,
    });
    for number in 0..100 {
        it.offer(&chunk("/a", number, 1, 8_000), true);
        it.pump();
    }
    let stalled = it.flush();
    assert!(it.store.poll_flushed() < stalled);
    it.tick(6_000);
    let why = VolumeFault::Stalled;
    assert_eq!(it.events, [Event::VolumeLost { volume: 0, why }]);
    assert_eq!(it.store.poll_flush_failed(), stalled);
    let kept = fill(&mut it, "/b", 100, 8_000);
    let ticket = it.flush();
    assert_eq!(it.store.poll_flushed(), ticket);
    assert!(it.store.poll_flush_failed() < ticket);
    let mut again = it.reboot(it.device.image(), config());
    assert!(kept.iter().all(|wire| has(&mut again, wire)));
}

#[test]
fn a_flush_ends_that_the_last_volume_leaves_without_anything_to_wait_for() {
    let mut it = Harness::new(&[8 << 20], config());
    // More than the buffers for writes take.
    for number in 0..60 {
        it.offer(&chunk("/a", number, 1, 8_000), true);
    }
    let first = it.store.flush(it.now);
    assert!(it.store.poll_flushed() < first);
    fail(&mut it, Op::Write, 1);
    it.pump();
    assert!(!it.store.is_in_use());
    assert_eq!(it.store.poll_flushed(), first);
    assert_eq!(it.store.poll_flush_failed(), first);
    it.store.erase(it.now, name("/a").view());
    let second = it.flush();
    assert_eq!(it.store.poll_flushed(), second);
    assert_eq!(it.store.poll_flush_failed(), second);
}

#[test]
fn what_a_region_had_that_cannot_be_read_leaves_the_index() {
    let index_len = |n_faults| {
        let mut it = Harness::new(&[5 << 20], config());
        fail(&mut it, Op::Read, n_faults);
        for number in 0..2_000 {
            it.offer(&chunk("/a", number, 1, 8_000), true);
            it.pump();
        }
        it.flush();
        assert!(it.store.is_in_use());
        assert_eq!(it.store.counters().n_device_errors, n_faults);
        it.store.index_len().0
    };
    assert_eq!(index_len(1), index_len(0));
}

/// A process that was stopped has not seen what devices have done meanwhile.
#[test]
fn a_pause_of_everything_costs_no_volume() {
    let mut it = Harness::new(&[8 << 20], config());
    let wires = fill(&mut it, "/a", 8, 1_000);
    it.flush();
    it.device.inject(Injection {
        op: Op::Read,
        skip: 0,
        times: 1,
        fault: Fault::Stall,
    });
    let asked = it.begin_asking(name_of(&wires[0]).view(), false);
    assert!(matches!(asked, Some(Err(_))), "{asked:?}");
    it.pump();
    it.tick(100);
    it.stand_still(60_000);
    assert!(it.store.is_in_use());
    let due = it.store.poll_timeout().expect("a read is under way");
    assert!(due <= it.now.plus_ms(it.store.config().stall_ms / 4));
    // Of what does not end then, a volume is out of service all the same.
    it.tick(4_900);
    assert!(it.store.is_in_use());
    it.tick(200);
    let why = VolumeFault::Stalled;
    assert_eq!(it.events, [Event::VolumeLost { volume: 0, why }]);
}

#[test]
fn a_sync_may_take_longer_than_a_read() {
    let mut it = Harness::new(&[8 << 20], config());
    fill(&mut it, "/a", 8, 1_000);
    it.device.inject(Injection {
        op: Op::Sync,
        skip: 0,
        times: 1,
        fault: Fault::Stall,
    });
    let ticket = it.flush();
    it.tick(29_000);
    assert!(it.store.is_in_use() && it.store.poll_flushed() < ticket);
    it.tick(2_000);
    assert!(!it.store.is_in_use());
    assert_eq!(it.store.poll_flush_failed(), ticket);
}

#[test]
fn a_flush_ends_though_a_region_that_is_looked_through_is_of_the_last_volume_lost() {
    let config = Config {
        max_read_errors: 1,
        ..config()
    };
    let mut it = Harness::new(&[5 << 20], config);
    fill(&mut it, "/a", 4, 1_000);
    it.store.erase(it.now, name("/a").view());
    it.flush();
    // The first read is that of the region which is to be written again.
    fail(&mut it, Op::Read, 1);
    for number in 0.. {
        if !it.store.is_in_use() {
            break;
        }
        it.offer(&chunk("/b", number, 1, 6_000), true);
        it.pump();
    }
    let ticket = it.flush();
    assert_eq!(it.store.poll_flushed(), ticket);
    assert_eq!(it.store.poll_flush_failed(), ticket);
}
