//! The device of the tests loses and spoils exactly what it is told to.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use proptest::prelude::*;
use tachonym_memory::{IO_ALIGN, IoBuffer};
use tachonym_packet::MonoNs;
use tachonym_store::device::{
    Completion, Device, Fault, Injection, Op, Ram, Request, SECTOR_BYTES, Survivors,
};

const BLOCK: u64 = IO_ALIGN as u64;
const SECTORS_PER_BLOCK: usize = IO_ALIGN / SECTOR_BYTES;
/// `EIO`.
const EIO: i32 = 5;

fn submit(device: &mut Ram, token: u64, op: Op, block: u64, fill: u8) {
    let mut buffer = IoBuffer::new(IO_ALIGN, 0).unwrap();
    buffer.as_mut_slice().fill(fill);
    let request = Request {
        token,
        volume: 0,
        op,
        offset: block * BLOCK,
        len: IO_ALIGN as u32,
        buffer: Some(buffer),
    };
    device.submit(request).unwrap();
}

fn poll(device: &mut Ram) -> Vec<Completion> {
    let mut ended = Vec::new();
    device.start();
    device.poll(MonoNs::ZERO, &mut ended);
    ended
}

/// Does one request to its end.
fn run(device: &mut Ram, op: Op, block: u64, fill: u8) -> Completion {
    submit(device, 0, op, block, fill);
    poll(device).pop().expect("it ends at once")
}

fn ram() -> Ram {
    Ram::new(&[8 * IO_ALIGN])
}

#[test]
fn what_was_not_started_does_not_happen() {
    let mut device = ram();
    submit(&mut device, 1, Op::Write, 0, 1);
    device.start();
    submit(&mut device, 2, Op::Write, 1, 1);
    let mut ended = Vec::new();
    device.poll(MonoNs::ZERO, &mut ended);
    assert_eq!(ended.len(), 1);
    assert_eq!(device.n_in_flight(), 1);
    assert_eq!(device.next_poll(), None);
    assert_eq!(device.image()[0][IO_ALIGN], 0);
    assert_eq!(poll(&mut device).len(), 1);
    assert_eq!(device.image()[0][IO_ALIGN], 1);
}

#[test]
fn a_sync_covers_what_had_ended_before_it_was_submitted() {
    let mut device = ram();
    run(&mut device, Op::Write, 0, 1);
    submit(&mut device, 1, Op::Write, 1, 2);
    submit(&mut device, 2, Op::Sync, 0, 0);
    assert_eq!(poll(&mut device).len(), 2);
    let lost = &device.image_after_power_loss(Survivors::First(0))[0];
    assert_eq!((lost[0], lost[IO_ALIGN]), (1, 0));
    assert_eq!(device.n_unsynced_sectors(0), SECTORS_PER_BLOCK);
    assert_eq!(
        device.image_after_power_loss(Survivors::All),
        device.image()
    );
    run(&mut device, Op::Sync, 0, 0);
    assert_eq!(device.n_unsynced_sectors(0), 0);
    assert_eq!(
        device.image_after_power_loss(Survivors::First(0)),
        device.image()
    );
}

#[test]
fn a_sync_that_fails_covers_nothing() {
    let mut device = ram();
    run(&mut device, Op::Write, 0, 1);
    device.inject(Injection {
        op: Op::Sync,
        skip: 0,
        times: 1,
        fault: Fault::Error(EIO),
    });
    let failed = run(&mut device, Op::Sync, 0, 0).outcome.unwrap_err();
    assert_eq!(failed.raw_os_error(), Some(EIO));
    assert_eq!(device.image_after_power_loss(Survivors::First(0))[0][0], 0);
}

#[test]
fn the_power_is_cut_within_a_write() {
    let mut device = ram();
    run(&mut device, Op::Write, 0, 1);
    device.cut_power_after(3);
    assert!(!device.power_is_off());
    submit(&mut device, 1, Op::Write, 0, 2);
    submit(&mut device, 2, Op::Write, 1, 3);
    submit(&mut device, 3, Op::Read, 1, 0);
    assert!(poll(&mut device).is_empty(), "nobody is there to be told");
    assert!(device.power_is_off());
    assert_eq!((device.n_in_flight(), device.next_poll()), (3, None));
    assert!(poll(&mut device).is_empty());
    let image = &device.image_after_power_loss(Survivors::All)[0];
    let (new, rest) = image.split_at(3 * SECTOR_BYTES);
    let (old, rest) = rest.split_at(5 * SECTOR_BYTES);
    assert!(new.iter().all(|&byte| byte == 2));
    assert!(old.iter().all(|&byte| byte == 1));
    assert!(rest.iter().all(|&byte| byte == 0));
    // After the first six sectors of the first write, nothing of the second.
    let image = &device.image_after_power_loss(Survivors::First(6))[0];
    assert_eq!(
        (image[6 * SECTOR_BYTES - 1], image[6 * SECTOR_BYTES]),
        (1, 0)
    );
    // And it starts again with what is left.
    let mut again = Ram::from_image(device.image_after_power_loss(Survivors::All));
    let read = run(&mut again, Op::Read, 0, 0).buffer.unwrap();
    assert_eq!(read.as_slice()[..], device.image()[0][..IO_ALIGN]);
}

#[test]
fn faults_come_when_they_are_to() {
    let fault = |op, skip, times, fault| Injection {
        op,
        skip,
        times,
        fault,
    };
    let mut device = ram();
    device.inject(fault(Op::Read, 1, 2, Fault::Error(EIO)));
    let failed: Vec<_> = (0..5)
        .map(|_| run(&mut device, Op::Read, 0, 0).outcome.is_err())
        .collect();
    assert_eq!(failed, [false, true, true, false, false]);

    device.inject(fault(Op::Write, 0, 1, Fault::Error(EIO)));
    assert!(run(&mut device, Op::Write, 0, 9).outcome.is_err());
    assert_eq!(device.image()[0][0], 0, "it was not written");

    device.inject(fault(Op::Write, 0, 1, Fault::Short(1100)));
    let short = run(&mut device, Op::Write, 0, 9).outcome.unwrap();
    assert_eq!(short, 1024);
    assert_eq!(device.image()[0][1023..1025], [9, 0]);

    device.inject(fault(Op::Read, 0, 1, Fault::Short(0)));
    let none = run(&mut device, Op::Read, 0, 5);
    assert_eq!(none.outcome.unwrap(), 0);
    assert!(
        none.buffer
            .unwrap()
            .as_slice()
            .iter()
            .all(|&byte| byte == 5)
    );

    device.inject(fault(Op::Read, 0, 1, Fault::Flip(8 * IO_ALIGN as u64 + 10)));
    let flipped = run(&mut device, Op::Read, 7, 5).buffer.unwrap();
    assert_eq!(flipped.as_slice()[..3], [0, 4, 0]);
    assert!(run(&mut device, Op::Read, 7, 5).buffer.unwrap().as_slice()[1] == 0);

    device.inject(fault(Op::Write, 0, 1, Fault::Flip(0)));
    run(&mut device, Op::Write, 7, 6);
    assert_eq!(device.image()[0][7 * IO_ALIGN..][..2], [7, 6]);

    device.corrupt(0, 7 * IO_ALIGN, 0x80);
    assert_eq!(
        run(&mut device, Op::Read, 7, 0).buffer.unwrap().as_slice()[0],
        0x87
    );
    run(&mut device, Op::Sync, 0, 0);
    assert_eq!(
        device.image_after_power_loss(Survivors::First(0)),
        device.image()
    );

    device.inject(fault(Op::Read, 0, u64::MAX, Fault::Stall));
    submit(&mut device, 1, Op::Read, 0, 0);
    submit(&mut device, 2, Op::Sync, 0, 0);
    let ended = poll(&mut device);
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].token, 2, "others go on");
    assert_eq!((device.n_in_flight(), device.next_poll()), (1, None));
}

#[test]
fn a_seed_decides_the_order() {
    let order = |seed| {
        let mut device = ram().with_seed(seed);
        for token in 0..20 {
            submit(&mut device, token, Op::Read, 0, 0);
        }
        let mut tokens = Vec::new();
        let mut n_polls = 0;
        while device.n_in_flight() > 0 {
            let ended = poll(&mut device);
            assert!(!ended.is_empty(), "at least one ends");
            tokens.extend(ended.into_iter().map(|ended| ended.token));
            n_polls += 1;
        }
        (tokens, n_polls)
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    let (mut tokens, n_polls) = order(3);
    assert!(n_polls > 1);
    assert!(!tokens.is_sorted());
    tokens.sort_unstable();
    assert!(tokens.into_iter().eq(0..20));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever survives, each sector holds what was synced, or something that was written
    /// there since; and never is anything lost that a sync had covered.
    #[test]
    fn a_loss_of_power_leaves_what_was_synced_or_written_later(
        writes in prop::collection::vec((0..8_u64, 1..=255_u8, prop::bool::weighted(0.2)), 1..40),
        cut in 1..200_u64,
        seed in any::<u64>(),
        n_first in 0..64_usize,
    ) {
        let mut device = ram();
        device.cut_power_after(cut);
        // By sector: what it may hold.
        let mut may_hold: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let n_sectors = 8 * SECTORS_PER_BLOCK;
        let mut n_written = 0;
        for sector in 0..n_sectors {
            may_hold.insert(sector, vec![0]);
        }
        for (block, fill, syncs) in writes {
            submit(&mut device, 0, Op::Write, block, fill);
            let ended = poll(&mut device);
            for i in 0..SECTORS_PER_BLOCK {
                if n_written < cut {
                    let sector = block as usize * SECTORS_PER_BLOCK + i;
                    may_hold.get_mut(&sector).unwrap().push(fill);
                    n_written += 1;
                }
            }
            prop_assert_eq!(ended.is_empty(), n_written >= cut);
            if syncs {
                submit(&mut device, 0, Op::Sync, 0, 0);
                if !poll(&mut device).is_empty() {
                    may_hold.values_mut().for_each(|values| {
                        values.drain(..values.len() - 1);
                    });
                }
            }
        }
        for survivors in [
            Survivors::All,
            Survivors::First(n_first),
            Survivors::Some(seed),
        ] {
            let image = device.image_after_power_loss(survivors);
            for (sector, bytes) in image[0].chunks(SECTOR_BYTES).enumerate() {
                prop_assert!(bytes.iter().all(|&byte| byte == bytes[0]));
                prop_assert!(may_hold[&sector].contains(&bytes[0]));
                if survivors == Survivors::All {
                    prop_assert_eq!(Some(&bytes[0]), may_hold[&sector].last());
                }
            }
        }
    }
}

#[test]
fn a_full_device_says_so() {
    let mut device = ram().with_capacity(1);
    submit(&mut device, 1, Op::Read, 0, 0);
    let more = Request {
        token: 2,
        volume: 9,
        op: Op::Sync,
        offset: 0,
        len: 0,
        buffer: None,
    };
    let more = device.submit(more).unwrap_err();
    assert_eq!(poll(&mut device).len(), 1);
    device.submit(more).unwrap();
    let kind = poll(&mut device).pop().unwrap().outcome.unwrap_err().kind();
    assert_eq!(kind, ErrorKind::InvalidInput);
}
