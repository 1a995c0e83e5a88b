//! The second level against a record of what it was given, through reboots, losses of power
//! and devices that fail.

mod common;

use std::collections::BTreeMap;

use common::{Harness, chunk, data, name_of};
use proptest::prelude::*;
use tachonym_packet::{Component, Interest, InterestView, Name};
use tachonym_store::device::{Fault, Injection, Op, Survivors};
use tachonym_store::{Config, Event, Offered, Place, VolumeFault};

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

#[test]
fn what_was_offered_is_found_in_the_making_unwritten_written_and_after_a_reboot() {
    let mut it = Harness::new(&[8 << 20], config());
    let wires: Vec<_> = (0..6).map(|n| chunk("/video/v=1", n, 1, 1_000)).collect();
    for wire in &wires {
        assert_eq!(it.offer(wire, false), Offered::Kept);
        assert_eq!(it.offer(wire, false), Offered::Known);
    }
    let check = |it: &mut Harness| {
        for wire in &wires {
            let found = it.ask(name_of(wire).view(), false);
            assert_eq!(found.map(|(wire, _)| wire).as_ref(), Some(wire));
        }
        let missing = name("/video/v=1").with(&Component::segment(6));
        assert_eq!(it.ask(missing.view(), false), None);
        let below = it
            .ask(name("/video").view(), true)
            .expect("something is below");
        assert!(wires.contains(&below.0));
        assert_eq!(it.ask(name("/video").view(), false), None);
        assert_eq!(it.ask(name("/vid").view(), true), None);
    };
    check(&mut it);
    assert_eq!(it.store.counters().n_reads, 0, "nothing is written yet");
    let ticket = it.flush();
    assert_eq!(it.store.poll_flushed(), ticket);
    check(&mut it);
    assert!(it.store.counters().n_reads > 0);
    let mut again = it.reboot(
        it.device.image_after_power_loss(Survivors::First(0)),
        config(),
    );
    assert_eq!(again.events, [Event::Recovered { n_batches: 2 }]);
    check(&mut again);
}

#[test]
fn neighbours_come_with_one_read_and_whoever_wants_one_joins_it() {
    let mut it = Harness::new(&[8 << 20], config());
    let wires: Vec<_> = (0..4).map(|n| chunk("/a", n, 1, 8_000)).collect();
    for wire in wires.iter().rev() {
        it.offer(wire, false);
    }
    it.flush();
    let waiters: Vec<_> = wires
        .iter()
        .map(|wire| match it.begin_asking(name_of(wire).view(), false) {
            Some(Err(waiter)) => waiter,
            other => panic!("{other:?}"),
        })
        .collect();
    it.pump();
    for (waiter, wire) in waiters.into_iter().zip(&wires) {
        let found = it.answer(waiter, name_of(wire).view(), false);
        assert_eq!(found.map(|(wire, _)| wire).as_ref(), Some(wire));
    }
    let counters = it.store.counters();
    assert_eq!((counters.n_reads, counters.n_joined), (1, 3));
}

#[test]
fn freshness_outlives_a_reboot_and_ends_in_time() {
    let mut it = Harness::new(&[8 << 20], config());
    let wire = data(name("/news"), 1, 10, Some(60_000));
    let never = data(name("/old"), 1, 10, None);
    it.offer(&wire, false);
    it.offer(&never, false);
    it.flush();
    assert_eq!(
        it.ask(name("/news").view(), false),
        Some((wire.clone(), true))
    );
    assert_eq!(it.ask(name("/old").view(), false), Some((never, false)));
    it.tick(30_000);
    let mut again = it.reboot(it.device.image(), config());
    assert_eq!(
        again.ask(name("/news").view(), false),
        Some((wire.clone(), true))
    );
    again.tick(31_000);
    assert_eq!(again.ask(name("/news").view(), false), Some((wire, false)));
}

#[test]
fn everything_that_was_erased_stays_so_after_a_reboot() {
    let mut it = Harness::new(&[8 << 20], config());
    let (before, after) = (chunk("/a", 0, 1, 100), chunk("/a", 1, 1, 100));
    it.offer(&before, false);
    it.flush();
    it.store.erase(it.now, Name::new().view());
    it.offer(&after, false);
    it.flush();
    for mut it in [it.reboot(it.device.image(), config()), it] {
        assert_eq!(it.ask(name_of(&before).view(), false), None);
        assert!(it.ask(name_of(&after).view(), false).is_some());
    }
}

/// A small store keeps few erased prefixes; one more erases everything that is older. That is
/// counted each time, and told once a minute.
#[test]
fn more_erased_prefixes_than_are_kept_erase_all_which_is_counted_and_told() {
    let mut it = Harness::new(&[8 << 20], config());
    let geometry = &it.volumes[0];
    let store_bytes = u64::from(geometry.n_regions) * u64::from(geometry.region_bytes);
    let max_prefixes = (store_bytes / 1024) as usize;
    let mut n_erased = 0;
    let mut erase = |it: &mut Harness, n_prefixes: usize| {
        for _ in 0..n_prefixes {
            it.store
                .erase(it.now, name(&format!("/e/{n_erased}")).view());
            n_erased += 1;
            it.pump();
        }
    };
    let (before, after) = (chunk("/a", 0, 1, 100), chunk("/a", 4, 1, 100));
    it.offer(&before, false);
    it.flush();
    erase(&mut it, max_prefixes);
    assert!(it.ask(name_of(&before).view(), false).is_some());
    assert_eq!(it.store.counters().n_erasures_merged, 0);
    erase(&mut it, 1);
    it.offer(&after, false);
    it.flush();
    assert_eq!(it.store.counters().n_erasures_merged, 1);
    assert_eq!(it.ask(name_of(&before).view(), false), None);
    assert!(it.ask(name_of(&after).view(), false).is_some());
    let told = Event::ErasuresMerged { max_prefixes };
    assert_eq!(it.events, [told]);
    erase(&mut it, max_prefixes + 1);
    assert_eq!(it.store.counters().n_erasures_merged, 2);
    assert_eq!(it.events, [told]);
    it.tick(60_000);
    erase(&mut it, max_prefixes + 1);
    assert_eq!(it.store.counters().n_erasures_merged, 3);
    assert_eq!(it.events, [told, told]);
}

#[test]
fn the_next_batch_is_read_ahead_unless_it_is_at_hand() {
    let mut it = Harness::new(&[8 << 20], config());
    for number in 0..12 {
        it.offer(&chunk("/a", number, 1, 500), false);
    }
    it.flush();
    let third = name("/a").with(&Component::segment(2));
    assert!(it.store.is_trigger(third.view()));
    assert!(
        !it.store
            .is_trigger(name("/a").with(&Component::segment(3)).view())
    );
    let (now, mut asked) = (it.now, Vec::new());
    it.store.read_ahead(now, third.view(), |first| {
        asked.push(first.to_name());
        true
    });
    it.pump();
    assert_eq!(asked, [name("/a").with(&Component::segment(4))]);
    assert!(it.came_ahead.is_empty());
    let now = it.now;
    it.store
        .read_ahead(now, name("/a").with(&Component::segment(6)).view(), |_| {
            false
        });
    it.pump();
    let expected = (8..12).map(|n| name("/a").with(&Component::segment(n)));
    assert!(it.came_ahead.iter().cloned().eq(expected));
    assert_eq!(it.store.counters().n_reads_ahead, 1);
}

/// What is asked for comes before what may be.
#[test]
fn nothing_is_read_ahead_while_more_than_half_of_the_buffers_are_in_use() {
    let mut it = Harness::new(&[8 << 20], config());
    let n_buffers = config().max_reads as u64;
    let objects = 0..=n_buffers;
    for object in objects.clone().map(|n| format!("/object/{n}")) {
        for number in 0..8 {
            it.offer(&chunk(&object, number, 1, 500), false);
        }
    }
    it.flush();
    let ask = |it: &mut Harness, object| {
        let name = name(&format!("/object/{object}")).with(&Component::segment(0));
        let waiter = it.begin_asking(name.view(), false);
        assert!(matches!(waiter, Some(Err(_))), "{waiter:?}");
    };
    let trigger = name("/object/0").with(&Component::segment(2));
    let read_ahead = |it: &mut Harness| it.store.read_ahead(it.now, trigger.view(), |_| false);
    let (few, many) = (n_buffers / 2 - 1, n_buffers / 2 + 1);
    for object in objects.clone().skip(1).take(many as usize) {
        ask(&mut it, object);
    }
    assert!(!read_ahead(&mut it), "not all that could be");
    it.pump();
    assert_eq!(it.store.counters().n_reads_ahead, 0);
    assert!(it.came_ahead.is_empty());
    for object in objects.skip(1).take(few as usize) {
        ask(&mut it, object);
    }
    assert!(read_ahead(&mut it), "there is room again");
    it.pump();
    assert_eq!(it.store.counters().n_reads_ahead, 1);
    assert_eq!(it.came_ahead.len(), 4);
}

#[test]
fn little_more_is_written_than_the_data() {
    for (len, batch_len) in [(1_000, 10), (7_900, 10), (1_000, 16)] {
        let config = Config {
            batch_len,
            ..config()
        };
        let mut it = Harness::new(&[24 << 20], config);
        let mut number = 0;
        while it.store.counters().n_written_data_bytes < 16 << 20 {
            let object = format!("/a/video/name/{}", number / 200);
            it.offer(&chunk(&object, number % 200, 1, len), false);
            it.pump();
            number += 1;
        }
        let counters = it.store.counters();
        let amplification = counters.write_amplification().expect("written");
        assert!(amplification < 1.05, "{len} bytes: {amplification}");
        assert_eq!(counters.n_no_room, 0);
    }
}

/// It comes with its neighbours, of which one has been replaced, and is in another record.
#[test]
fn a_replaced_chunk_does_not_come_back_with_its_neighbours() {
    let mut it = Harness::new(&[8 << 20], config());
    for number in 0..4 {
        it.offer(&chunk("/a", number, 1, 1_000), true);
    }
    it.flush();
    it.offer(&chunk("/a", 2, 2, 1_000), true);
    for _ in 0..2 {
        let name = name("/a").with(&Component::segment(3));
        assert!(it.ask(name.view(), false).is_some());
        let came = std::mem::take(&mut it.came);
        let expected = [0, 1, 3].map(|number| chunk("/a", number, 1, 1_000));
        assert_eq!(came, expected);
        // The replacement is in the making first, and then in the log.
        it.flush();
    }
}

#[test]
fn the_oldest_goes_first_and_the_index_forgets_it() {
    let mut it = Harness::new(&[5 << 20], config());
    for number in 0..8_000 {
        it.offer(&chunk("/a", number, 1, 1_000), false);
        it.pump();
    }
    it.flush();
    let counters = it.store.counters();
    assert!(counters.n_regions_emptied >= 4 && counters.n_regions_emptied_early == 0);
    let has = |it: &mut Harness, number| {
        let name = name("/a").with(&Component::segment(number));
        it.ask(name.view(), false).is_some()
    };
    assert!(has(&mut it, 7_999) && has(&mut it, 6_500));
    assert!(!has(&mut it, 0) && !has(&mut it, 3_000));
    assert_eq!(it.store.counters().n_damaged, 0);
    let first = (0..8_000).find(|&n| has(&mut it, n)).expect("some");
    assert!((first..8_000).all(|n| has(&mut it, n)));
    let (n_entries, _) = it.store.index_len();
    assert!(n_entries as u64 <= (8_000 - first) / 4 + 3);
}

#[test]
fn a_full_index_forgets_the_oldest_early() {
    let config = Config {
        max_batches: 600,
        ..config()
    };
    let mut it = Harness::new(&[16 << 20], config);
    for number in 0..8_000 {
        it.offer(&chunk("/a", number, 1, 1_000), false);
        it.pump();
    }
    let counters = it.store.counters();
    assert!(counters.n_regions_emptied_early > 0);
    assert_eq!(counters.n_not_indexed, 0);
    assert!(it.events.contains(&Event::IndexFull));
    let last = name("/a").with(&Component::segment(7_000));
    assert!(it.ask(last.view(), false).is_some());
}

/// Objects of a crowded index.
const N_OBJECTS: u64 = 30_000;

fn object(n: u64) -> Name {
    name(&format!("/{n}"))
}

/// A store of so many objects that its index takes some of them for others.
fn crowded() -> Harness {
    let config = Config {
        max_batches: 40_000,
        ..config()
    };
    let mut it = Harness::new(&[24 << 20], config);
    for n in 0..N_OBJECTS {
        it.offer(&data(object(n), 1, 10, None), true);
        it.pump();
    }
    it.flush();
    it
}

#[test]
fn no_name_hides_another_that_the_index_takes_for_it() {
    let mut it = crowded();
    for n in 0..N_OBJECTS {
        let found = it
            .ask(object(n).view(), false)
            .map(|(wire, _)| name_of(&wire));
        assert_eq!(found, Some(object(n)));
    }
    assert!(it.store.counters().n_false_reads > 0);
}

/// Whoever waits for a read that the index has taken for his looks on, and whoever waits with
/// him has what it brings.
#[test]
fn who_joins_a_read_of_another_batch_finds_his_own_as_who_began_it_does() {
    let mut it = crowded();
    let seems_at = |it: &Harness, n: u64| {
        let wire = Interest::new(object(n)).encode();
        let place = it
            .store
            .peek(&InterestView::parse(&wire).expect("an Interest"));
        place.map(|place| match place {
            Place::Stored { location, .. } => (location.region, location.extent.at),
            Place::Open { .. } => panic!("{n} was written"),
        })
    };
    let mut last_at = BTreeMap::new();
    let mut pairs = Vec::new();
    for n in (0..N_OBJECTS).rev() {
        let at = seems_at(&it, n).expect("it is there");
        match last_at.get(&at) {
            Some(&later) => pairs.push((n, later)),
            None => drop(last_at.insert(at, n)),
        }
    }
    assert!(!pairs.is_empty());
    let found = |it: &mut Harness, waiter, n| {
        let answer = it.answer(waiter, object(n).view(), false);
        assert_eq!(answer.map(|(wire, _)| name_of(&wire)), Some(object(n)));
    };
    for &(older, later) in &pairs {
        for (first, second) in [(older, later), (later, older)] {
            let before = it.store.counters();
            let [first, second] = [first, second].map(|n| {
                let waiter = it.begin_asking(object(n).view(), false);
                (waiter.expect("there").expect_err("not in memory"), n)
            });
            it.pump();
            found(&mut it, first.0, first.1);
            found(&mut it, second.0, second.1);
            let after = it.store.counters();
            assert_eq!(after.n_joined, before.n_joined + 1);
            assert_eq!(after.n_reads, before.n_reads + 2);
            assert_eq!(after.n_false_reads, before.n_false_reads + 1);
        }
    }
    // Nor does what waits to be written hide what was written.
    let (new, at) = (30_000..)
        .find_map(|n| Some((n, seems_at(&it, n)?)))
        .expect("one that the index takes for another");
    it.offer(&data(object(new), 1, 10, None), true);
    let n = last_at[&at];
    assert_ne!(seems_at(&it, n), Some(at), "the new one seems to be it");
    let answer = it.ask(object(n).view(), false);
    assert_eq!(answer.map(|(wire, _)| name_of(&wire)), Some(object(n)));
}

#[test]
fn a_volume_that_fails_is_left_and_the_other_goes_on() {
    for (fault, op, why) in [
        (Fault::Error(5), Op::Write, VolumeFault::Writing),
        (Fault::Short(512), Op::Write, VolumeFault::Writing),
        (Fault::Stall, Op::Write, VolumeFault::Stalled),
    ] {
        let mut it = Harness::new(&[8 << 20, 8 << 20], config());
        it.device.inject(Injection {
            op,
            skip: 0,
            times: 1,
            fault,
        });
        for number in 0..400 {
            it.offer(&chunk("/a", number, 1, 1_000), false);
            it.pump();
            it.tick(20);
        }
        it.flush();
        it.tick(6_000);
        let lost: Vec<_> = it.events.clone();
        assert_eq!(lost, [Event::VolumeLost { volume: 0, why }], "{fault:?}");
        for number in 0..400 {
            it.offer(&chunk("/b", number, 1, 1_000), false);
            it.pump();
        }
        let ticket = it.flush();
        assert_eq!(it.store.poll_flushed(), ticket);
        let name = name("/b").with(&Component::segment(7));
        assert!(it.ask(name.view(), false).is_some());
    }
}

#[test]
fn reads_that_fail_answer_those_who_wait_and_end_with_the_volume() {
    for fault in [Fault::Error(5), Fault::Short(4_096), Fault::Stall] {
        let mut it = Harness::new(&[8 << 20], config());
        for number in 0..400 {
            it.offer(&chunk("/a", number, 1, 1_000), false);
            it.pump();
        }
        it.flush();
        it.device.inject(Injection {
            op: Op::Read,
            skip: 0,
            times: u64::MAX,
            fault,
        });
        for batch in 0..12 {
            let name = name("/a").with(&Component::segment(batch * 4));
            if let Some(Err(waiter)) = it.begin_asking(name.view(), false) {
                it.pump();
                it.tick(6_000);
                assert_eq!(it.answer(waiter, name.view(), false), None);
            }
        }
        let why = match fault {
            Fault::Stall => VolumeFault::Stalled,
            _ => VolumeFault::Reading,
        };
        assert_eq!(it.events, [Event::VolumeLost { volume: 0, why }]);
        assert!(!it.store.is_in_use());
        assert_eq!(it.offer(&chunk("/b", 0, 1, 10), false), Offered::Refused);
        assert_eq!(it.ask(name("/a").view(), true), None);
    }
}

#[test]
fn a_flipped_bit_is_never_given_out() {
    let mut it = Harness::new(&[8 << 20], config());
    let wires: Vec<_> = (0..40).map(|n| chunk("/a", n, 1, 1_000)).collect();
    for wire in &wires {
        it.offer(wire, false);
    }
    it.flush();
    for seed in 0..200 {
        it.device.inject(Injection {
            op: Op::Read,
            skip: 0,
            times: 1,
            fault: Fault::Flip(seed * 977),
        });
        let wire = &wires[seed as usize % 40];
        if let Some((found, _)) = it.ask(name_of(wire).view(), false) {
            assert_eq!(&found, wire);
        }
    }
    assert!(it.store.counters().n_damaged > 0);
}

/// What is done to a store.
#[derive(Clone, Debug)]
enum Step {
    Offer {
        object: u8,
        number: u64,
        len: usize,
    },
    Ask {
        object: u8,
        number: u64,
    },
    AskBelow {
        object: u8,
    },
    Erase {
        object: u8,
        number: Option<u64>,
    },
    /// So many Data of other names, which turn regions over.
    Fill {
        n_data: u64,
    },
    Tick {
        ms: u64,
    },
    Flush,
    Reboot,
    /// Once, or again and again while it is being found out what is left.
    LosePower {
        survivors: Vec<(Survivors, usize)>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let object = 0..6_u8;
    let number = 0..24_u64;
    let survivors = prop_oneof![
        Just(Survivors::All),
        (0..400_usize).prop_map(Survivors::First),
        any::<u64>().prop_map(Survivors::Some),
    ];
    prop_oneof![
        30 => (object.clone(), number.clone(), 0..8_000_usize)
            .prop_map(|(object, number, len)| Step::Offer { object, number, len }),
        20 => (object.clone(), number.clone())
            .prop_map(|(object, number)| Step::Ask { object, number }),
        4 => object.clone().prop_map(|object| Step::AskBelow { object }),
        2 => (object, proptest::option::of(number))
            .prop_map(|(object, number)| Step::Erase { object, number }),
        2 => (1..12_000_u64).prop_map(|ms| Step::Tick { ms }),
        2 => Just(Step::Flush),
        1 => Just(Step::Reboot),
        2 => prop::collection::vec((survivors, 0..40_usize), 1..4)
            .prop_map(|survivors| Step::LosePower { survivors }),
        1 => (50..400_u64).prop_map(|n_data| Step::Fill { n_data }),
    ]
}

/// What may be found under a name.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Versions that were taken, oldest first, since the last erasure that lasts.
    versions: Vec<Vec<u8>>,
    /// How many of these are older than an erasure that may be undone by a loss of power.
    n_erased: usize,
    /// The first version that a flush has made last; nothing older is found again.
    n_lasting: usize,
    /// Whether it was ever erased.
    was_erased: bool,
    /// Whether what was to replace it, or another one of its batch, was refused: then it need not
    /// be found, and after a restart an older one may be.
    was_forgotten: bool,
}

fn object_name(object: u8) -> Name {
    name(&format!("/o/{object}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens, what is found was offered under this name, not erased since, and is
    /// the last version but for what a loss of power has undone; and what was flushed is found
    /// as long as nothing has had to make room. It is so while regions are looked through, too,
    /// but that nothing need be found.
    #[test]
    fn it_gives_out_what_it_was_given(
        steps in prop::collection::vec(step(), 1..150),
        seed: u64,
        n_volumes in 1..3_usize,
        volume_mib in prop_oneof![Just(4_usize), Just(24)],
    ) {
        let volumes = vec![(volume_mib << 20) + 8192; n_volumes];
        let mut it = Harness::new(&volumes, config());
        it.device = tachonym_store::device::Ram::new(&volumes).with_seed(seed);
        let mut known: BTreeMap<(u8, u64), Known> = BTreeMap::new();
        let (mut version, mut has_lost_power) = (0_u8, false);
        let (mut n_filled, mut has_made_room) = (0, false);
        for step in steps {
            let is_after_loss = matches!(step, Step::LosePower { .. });
            match step {
                Step::Offer { object, number, len } => {
                    version = version.wrapping_add(1);
                    let wire = chunk(&format!("/o/{object}"), number, version, len);
                    let offered = it.offer(&wire, true);
                    prop_assert!(matches!(offered, Offered::Kept | Offered::Refused));
                    if offered == Offered::Kept {
                        let entry = known.entry((object, number)).or_default();
                        entry.versions.push(wire);
                        entry.was_forgotten = false;
                    } else {
                        let of_batch = known.iter_mut().filter(|((of, at), _)| {
                            *of == object && at / 4 == number / 4
                        });
                        of_batch.for_each(|(_, entry)| entry.was_forgotten = true);
                    }
                }
                Step::Ask { object, number } => {
                    let name = object_name(object).with(&Component::segment(number));
                    let found = it.ask(name.view(), false).map(|(wire, _)| wire);
                    let entry = known.entry((object, number)).or_default();
                    let expected = entry.versions[entry.n_erased..].last();
                    let may_be_missed =
                        it.store.is_recovering() || has_made_room || entry.was_forgotten;
                    if found.is_some() || !may_be_missed {
                        prop_assert_eq!(found.as_ref(), expected, "{}", name);
                    }
                }
                Step::AskBelow { object } => {
                    let found = it.ask(object_name(object).view(), true);
                    let of_object = known.iter().filter(|((it, _), _)| *it == object);
                    let mut versions = of_object.clone()
                        .flat_map(|(_, it)| &it.versions[it.n_erased..]);
                    if let Some((wire, _)) = found {
                        prop_assert!(versions.any(|it| *it == wire));
                    } else {
                        // A chunk that was erased alone, or torn, may be the last of its record.
                        let may_be_missed = has_lost_power
                            || has_made_room
                            || it.store.is_recovering()
                            || of_object.clone().any(|(_, it)| it.was_erased || it.was_forgotten);
                        prop_assert!(may_be_missed || versions.next().is_none());
                    }
                }
                Step::Erase { object, number } => {
                    let name = match number {
                        Some(number) => object_name(object).with(&Component::segment(number)),
                        None => object_name(object),
                    };
                    it.store.erase(it.now, name.view());
                    for ((of, at), entry) in &mut known {
                        if *of == object && number.is_none_or(|number| number == *at) {
                            entry.n_erased = entry.versions.len();
                            entry.was_erased = true;
                        }
                    }
                }
                Step::Fill { n_data } => {
                    for _ in 0..n_data {
                        it.offer(&chunk("/filled", n_filled, 1, 8_000), true);
                        n_filled += 1;
                        it.pump_once();
                    }
                }
                Step::Tick { ms } => {
                    // What is under way has not stalled.
                    it.pump();
                    it.tick(ms);
                }
                Step::Flush => {
                    let ticket = it.flush();
                    prop_assert_eq!(it.store.poll_flushed(), ticket);
                    note_lasting(&mut known);
                }
                Step::Reboot => {
                    it.flush();
                    note_lasting(&mut known);
                    has_made_room |= it.store.counters().n_regions_emptied > 0;
                    let image = it.device.image();
                    it = it.begin_again(image, config());
                }
                Step::LosePower { survivors } => {
                    has_lost_power = true;
                    has_made_room |= it.store.counters().n_regions_emptied > 0;
                    for (survivors, n_rounds) in survivors {
                        for _ in 0..n_rounds {
                            it.pump_once();
                        }
                        let image = it.device.image_after_power_loss(survivors);
                        it = it.begin_again(image, config());
                        it.device = it.device.with_seed(seed);
                    }
                    it.pump();
                    prop_assert!(!it.store.is_recovering());
                    for ((object, number), entry) in &mut known {
                        let name = object_name(*object).with(&Component::segment(*number));
                        // A torn record hides the one before it until it has been read.
                        let found = (0..8).find_map(|_| it.ask(name.view(), false));
                        let found = found.map(|(wire, _)| wire);
                        // Whatever is there now is what there is from now on.
                        let at = found.as_ref().map(|found| {
                            entry.versions.iter().rposition(|it| it == found)
                        });
                        match at {
                            Some(at) => {
                                prop_assert!(at.is_some(), "{} was never offered", name);
                                let at = at.unwrap_or_default();
                                let is_last = at + 1 >= entry.n_lasting || entry.was_forgotten;
                                prop_assert!(is_last, "{} is older than what lasts", name);
                                entry.versions.drain(..at);
                                entry.versions.truncate(1);
                            }
                            None => {
                                let lasts = !has_made_room
                                    && !entry.was_forgotten
                                    && entry.n_lasting > 0
                                    && entry.versions.len() == entry.n_lasting
                                    && entry.n_erased < entry.n_lasting;
                                prop_assert!(!lasts, "{} was to last", name);
                                entry.versions.clear();
                            }
                        }
                        (entry.n_erased, entry.n_lasting) = (0, 0);
                    }
                }
            }
            match it.store.is_recovering() {
                // Others ask meanwhile.
                true => drop(it.pump_once()),
                false => it.pump(),
            }
            has_made_room |= it.store.counters().n_regions_emptied > 0;
            // Neighbours, too, are what is to be given out, but for what has just been found
            // to be left by a loss of power.
            for wire in std::mem::take(&mut it.came) {
                let name = name_of(&wire);
                let entry = known.iter().find(|((object, number), _)| {
                    object_name(*object).with(&Component::segment(*number)) == name
                });
                if let Some((_, entry)) = entry && !is_after_loss {
                    let expected = entry.versions[entry.n_erased..].last();
                    prop_assert_eq!(Some(&wire), expected, "{}", name);
                }
            }
        }
        // What was half written when power went is found to be damaged when it is read.
        prop_assert!(it.store.counters().n_damaged == 0 || has_lost_power);
        prop_assert!(it.store.is_in_use());
    }

    /// On a store that is full all the time nothing wrong is found, and what was written last
    /// is there.
    #[test]
    fn a_full_store_gives_out_nothing_wrong(
        numbers in prop::collection::vec((0..400_u64, 1_000..8_000_usize), 1_500..2_500),
        seed: u64,
        survivors in prop_oneof![Just(Survivors::All), any::<u64>().prop_map(Survivors::Some)],
    ) {
        let volumes = [5 << 20];
        let mut it = Harness::new(&volumes, config());
        it.device = tachonym_store::device::Ram::new(&volumes).with_seed(seed);
        let mut last: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
        for (i, &(number, len)) in numbers.iter().enumerate() {
            let wire = chunk("/a", number, i as u8, len);
            if it.offer(&wire, true) == Offered::Kept {
                last.entry(number).or_default().push(wire);
            }
            it.pump();
        }
        let image = it.device.image_after_power_loss(survivors);
        let mut again = it.reboot(image, config());
        let mut n_found = 0;
        for (&number, versions) in &last {
            let name = name("/a").with(&Component::segment(number));
            if let Some((found, _)) = it.ask(name.view(), false) {
                prop_assert_eq!(Some(&found), versions.last());
                n_found += 1;
            }
            if let Some((found, _)) = again.ask(name.view(), false) {
                prop_assert!(versions.contains(&found));
            }
        }
        prop_assert!(n_found > 100, "{} found", n_found);
    }
}

/// What was taken will survive.
fn note_lasting(known: &mut BTreeMap<(u8, u64), Known>) {
    for entry in known.values_mut() {
        entry.versions.drain(..entry.n_erased);
        entry.n_erased = 0;
        entry.n_lasting = entry.versions.len();
    }
}
