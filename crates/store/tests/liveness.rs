//! Whatever devices do, and in whatever order: all that was begun comes to an end, and nothing
//! goes on for ever.

mod common;

use std::collections::BTreeSet;

use common::{Harness, chunk, data, name_of};
use proptest::prelude::*;
use tachonym_packet::{Component, MonoNs, Name};
use tachonym_store::device::{Completion, Device, Fault, Injection, Op, Request, Survivors};
use tachonym_store::{Config, Event, Recalled, Ticket};

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

fn numbered(number: u64) -> Name {
    let files: Name = "/files".parse().expect("a name");
    files.with(&Component::generic(number.to_string().as_bytes()))
}

/// A Data with a name of its own, without others of its batch.
fn alone(number: u64, len: usize) -> Vec<u8> {
    data(numbered(number), 1, len, None)
}

fn has(it: &mut Harness, wire: &[u8]) -> bool {
    let found = it.ask(name_of(wire).view(), false);
    found.is_some_and(|(found, _)| found == wire)
}

fn inject(it: &mut Harness, op: Op, fault: Fault) {
    it.device.inject(Injection {
        op,
        skip: 0,
        times: 1,
        fault,
    });
}

/// Lets device and store go on, at most so many times; whether neither has anything left to do.
fn comes_to_rest(it: &mut Harness, n_steps: usize) -> bool {
    (0..n_steps).any(|_| !it.pump_once() && !it.go_on())
}

fn give(it: &mut Harness, request: Request) {
    assert!(it.device.submit(request).is_ok());
}

fn completions(it: &mut Harness) -> Vec<Completion> {
    let mut completions = Vec::new();
    it.device.start();
    it.device.poll(it.now, &mut completions);
    completions
}

/// Writes until the devices have been given so many bytes; the number of the next Data.
fn write_up_to(it: &mut Harness, mut next: u64, n_bytes: u64) -> u64 {
    while it.store.counters().n_written_bytes < n_bytes {
        it.offer(&alone(next, 6_000), true);
        it.pump();
        next += 1;
    }
    next
}

/// Of two volumes the large one fails, and the small one has one region, which goes round while
/// a write of its former writing is still under way and somebody waits for what that writes.
#[test]
fn a_region_is_not_begun_again_while_something_is_written_to_it() {
    let mut it = Harness::new(&[4 << 20, 2 << 20], config());
    assert_eq!(it.volumes[1].n_regions, 1);
    inject(&mut it, Op::Write, Fault::Error(5));
    it.offer(&chunk("/lost", 0, 1, 6_000), true);
    it.flush();
    assert_eq!(it.store.n_lost_volumes(), 1);
    let mut next = write_up_to(&mut it, 0, 900 << 10);
    it.flush();
    let (slow_name, slow) = (numbered(next), alone(next, 6_000));
    it.offer(&slow, true);
    it.store.flush(it.now);
    let write = it.store.poll_request().expect("a write");
    assert_eq!(write.op, Op::Write);
    let Some(Err(waiter)) = it.begin_asking(slow_name.view(), false) else {
        panic!("it is on its way to the device");
    };
    let mut fill = |it: &mut Harness| {
        for _ in 0..30 {
            next += 1;
            it.offer(&alone(next, 6_000), true);
            it.pump();
        }
        it.store.counters()
    };
    let counters = fill(&mut it);
    assert_eq!(counters.n_regions_emptied, 1);
    assert_eq!(fill(&mut it).n_written_bytes, counters.n_written_bytes);
    give(&mut it, write);
    let ticket = it.flush();
    assert_eq!(it.store.poll_flushed(), ticket);
    assert_eq!(it.answer(waiter, slow_name.view(), false), None);
    assert_eq!(it.ask(slow_name.view(), false), None);
    let last = chunk("/last", 0, 1, 6_000);
    it.offer(&last, true);
    it.flush();
    assert!(has(&mut it, &last));
}

#[test]
fn a_flush_that_waits_for_another_fails_with_its_data() {
    let mut it = Harness::new(&[8 << 20, 8 << 20], config());
    it.offer(&alone(1, 6_000), true);
    it.store.flush(it.now);
    it.offer(&alone(2, 6_000), true);
    let second = it.store.flush(it.now);
    inject(&mut it, Op::Write, Fault::Error(5));
    it.pump();
    assert_eq!(it.store.n_lost_volumes(), 1);
    assert_eq!(it.store.counters().n_lost, 2);
    assert_eq!(it.store.poll_flushed(), second);
    assert_eq!(it.store.poll_flush_failed(), second);
    let third = it.flush();
    assert_eq!(it.store.poll_flushed(), third);
    assert_eq!(it.store.poll_flush_failed(), second);
}

/// The owner sleeps until the store wants to be asked.
#[test]
fn a_slow_sync_does_not_have_the_store_asked_without_end() {
    let mut it = Harness::new(&[8 << 20], config());
    it.offer(&alone(1, 6_000), true);
    inject(&mut it, Op::Sync, Fault::Stall);
    it.flush();
    let mut n_asked = 0;
    while it.store.is_in_use() {
        let due = it.store.poll_timeout().expect("a sync is under way");
        it.now = it.now.max(due);
        it.store.handle_timeout(it.now);
        n_asked += 1;
        assert!(n_asked < 100, "{:?}", it.now);
    }
    assert!(it.now >= MonoNs(30_000_000_000));
}

/// What the index tells of its length may reach beyond the write that has it whole.
#[test]
fn a_record_is_read_as_soon_as_it_has_been_written_itself() {
    for len in (6_800..8_000).step_by(64) {
        let mut it = Harness::new(&[8 << 20], config());
        let wire = alone(1, len);
        it.offer(&wire, true);
        it.store.flush(it.now);
        let write = it.store.poll_request().expect("a write");
        let Some(Err(waiter)) = it.begin_asking(numbered(1).view(), false) else {
            panic!("it is on its way to the device");
        };
        for number in 0..4 {
            it.offer(&chunk("/next", number, 1, 1_000), true);
        }
        give(&mut it, write);
        it.pump();
        let answer = it.answer(waiter, numbered(1).view(), false);
        assert_eq!(answer.expect("it has been written").0, wire, "{len}");
    }
}

/// A device has as long for a read as for others, however long the write took it waits for.
#[test]
fn a_read_that_waits_for_a_write_has_its_own_time() {
    let config = Config {
        stall_ms: 1_000,
        ..config()
    };
    let mut it = Harness::new(&[8 << 20], config);
    let pass = |it: &mut Harness| {
        for _ in 0..8 {
            it.now = it.now.plus_ms(100);
            it.store.handle_timeout(it.now);
        }
        assert_eq!(it.store.n_lost_volumes(), 0, "{:?}", it.events);
    };
    let wire = alone(1, 6_000);
    it.offer(&wire, true);
    it.store.flush(it.now);
    let write = it.store.poll_request().expect("a write");
    let Some(Err(waiter)) = it.begin_asking(numbered(1).view(), false) else {
        panic!("it is on its way to the device");
    };
    pass(&mut it);
    give(&mut it, write);
    for completion in completions(&mut it) {
        assert!(it.store.handle_completion(it.now, completion).is_none());
    }
    pass(&mut it);
    it.pump();
    let answer = it.answer(waiter, numbered(1).view(), false);
    assert_eq!(answer.expect("it has been written").0, wire);
}

#[test]
fn the_end_of_the_last_volume_erases_nothing() {
    let mut it = Harness::new(&[8 << 20], config());
    for number in 0..3 {
        it.store.erase(it.now, numbered(number).view());
    }
    inject(&mut it, Op::Write, Fault::Error(5));
    it.flush();
    assert!(!it.store.is_in_use());
    assert_eq!(it.store.counters().n_erasures_merged, 0);
    let is_merging = |event: &Event| matches!(event, Event::ErasuresMerged { .. });
    assert!(!it.events.iter().any(is_merging));
}

/// All buffers are on their way to the device meanwhile.
#[test]
fn what_is_erased_again_and_again_is_written_once() {
    let mut it = Harness::new(&[16 << 20], config());
    for number in 0..80 {
        it.offer(&chunk("/filling", number, 1, 6_000), true);
    }
    for number in 0..100_000 {
        it.store.erase(it.now, numbered(number % 100).view());
    }
    it.flush();
    assert_eq!(it.store.counters().n_erasures_merged, 0);
    let n_bytes = it.store.counters().n_written_bytes;
    assert!(n_bytes < 1 << 20, "{n_bytes}");
}

/// The volume that is left is too small for as many erasures as both had room for.
#[test]
fn erasures_leave_room_on_what_is_left_of_a_store() {
    let mut it = Harness::new(&[40 << 20, 4 << 20], config());
    assert_eq!(it.volumes[1].n_regions, 3);
    for number in 0..25_000 {
        it.store.erase(it.now, numbered(number).view());
        if number % 100 == 0 {
            it.pump();
        }
    }
    it.flush();
    assert_eq!(it.store.counters().n_erasures_merged, 0);
    let mut next = write_up_to(&mut it, 30_000, 8 << 20);
    while it.store.n_lost_volumes() == 0 {
        inject(&mut it, Op::Write, Fault::Error(5));
        it.offer(&alone(next, 6_000), true);
        it.store.flush(it.now);
        assert!(comes_to_rest(&mut it, 10_000));
        next += 1;
    }
    assert!(it.store.is_in_use());
    let is_merging = |event: &Event| matches!(event, Event::ErasuresMerged { .. });
    assert!(it.events.iter().any(is_merging));
    assert_eq!(it.store.counters().n_erasures_merged, 1);
    let new = chunk("/new", 0, 1, 6_000);
    it.offer(&new, true);
    let ticket = it.store.flush(it.now);
    assert!(comes_to_rest(&mut it, 10_000));
    assert_eq!(it.store.poll_flushed(), ticket);
    assert!(has(&mut it, &new));
}

/// All buffers together are shorter than a record.
#[test]
fn a_record_longer_than_all_buffers_is_written() {
    let config = Config {
        n_write_buffers: 2,
        write_buffer_bytes: 5_000,
        ..config()
    };
    let mut it = Harness::new(&[8 << 20], config);
    let wires: Vec<_> = (0..4).map(|number| chunk("/a", number, 1, 8_000)).collect();
    for wire in &wires {
        it.offer(wire, true);
    }
    let ticket = it.flush();
    assert_eq!(it.store.poll_flushed(), ticket);
    assert!(wires.iter().all(|wire| has(&mut it, wire)));
}

/// The owner takes all completions, and gives what came with them back only then.
#[test]
fn a_flush_ends_whenever_buffers_are_given_back() {
    let config = Config {
        max_reads: 4,
        ..config()
    };
    let mut it = Harness::new(&[5 << 20], config);
    assert_eq!(it.volumes[0].n_regions, 4);
    // All of them but for a part of the last.
    let mut next = write_up_to(&mut it, 0, (3 << 20) - (100 << 10));
    it.flush();
    let waiters: Vec<_> = (next - 80..next - 76)
        .map(|number| it.begin_asking(numbered(number).view(), false))
        .collect();
    assert!(waiters.iter().all(|it| matches!(it, Some(Err(_)))));
    let (mut reads, mut ticket) = (Vec::new(), it.store.poll_flushed());
    while it.store.poll_flushed() == ticket {
        it.offer(&alone(next, 6_000), true);
        next += 1;
        ticket = it.store.flush(it.now);
        // Writes and syncs end; reads are kept by the device.
        let mut is_busy = true;
        while is_busy {
            let requests: Vec<_> = std::iter::from_fn(|| it.store.poll_request()).collect();
            for request in requests {
                match request.op {
                    Op::Read => reads.push(request),
                    _ => give(&mut it, request),
                }
            }
            let ended = completions(&mut it);
            is_busy = !ended.is_empty();
            for completion in ended {
                assert!(it.store.handle_completion(it.now, completion).is_none());
            }
            is_busy |= it.go_on();
        }
    }
    assert_eq!(reads.len(), 4, "only those of batches");
    for read in reads {
        give(&mut it, read);
    }
    let recalled: Vec<Recalled> = completions(&mut it)
        .into_iter()
        .filter_map(|completion| it.store.handle_completion(it.now, completion))
        .collect();
    assert_eq!(recalled.len(), 4);
    for recalled in recalled {
        it.take(recalled);
    }
    it.pump();
    assert_eq!(it.store.poll_flushed(), ticket);
}

/// What happens to a store whose devices answer in any order.
#[derive(Clone, Debug)]
enum Happening {
    Flush,
    Erase(u64),
    EraseAll,
    /// The power is lost, and comes back; what survives of what was not synced is drawn.
    PowerLoss(u64),
    Ask(u64),
    Pause {
        ms: u64,
    },
    Fault(Op, Fault),
    Offer {
        len: usize,
        is_chunk: bool,
    },
    /// One of the requests, by this number, is not answered for long.
    Hold(usize),
    /// Those of which that is so may be answered.
    Release,
    /// Some requests are answered, which of them by these numbers.
    Answers(Vec<usize>),
}

fn happening() -> impl Strategy<Value = Happening> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write), Just(Op::Sync)];
    let fault = prop_oneof![
        Just(Fault::Error(5)),
        Just(Fault::Stall),
        Just(Fault::Short(512)),
        Just(Fault::Flip(777)),
    ];
    let len = prop_oneof![Just(8_usize), Just(3_000), Just(7_500)];
    prop_oneof![
        10 => Just(Happening::Flush),
        10 => any::<u64>().prop_map(Happening::Erase),
        50 => any::<u64>().prop_map(Happening::Ask),
        10 => (0_u64..300).prop_map(|ms| Happening::Pause { ms }),
        1 => Just(Happening::EraseAll),
        1 => any::<u64>().prop_map(Happening::PowerLoss),
        20 => any::<usize>().prop_map(Happening::Hold),
        3 => Just(Happening::Release),
        1 => (op, fault).prop_map(|(op, fault)| Happening::Fault(op, fault)),
        300 => (len, any::<bool>()).prop_map(|(len, is_chunk)| Happening::Offer { len, is_chunk }),
        350 => prop::collection::vec(any::<usize>(), 1..6).prop_map(Happening::Answers),
    ]
}

/// What has been erased of the Data that are alone in their batches.
#[derive(Clone, Debug, Default)]
struct Erased {
    /// All with lower numbers.
    before: u64,
    others: BTreeSet<u64>,
}

impl Erased {
    fn has(&self, number: u64) -> bool {
        number < self.before || self.others.contains(&number)
    }
}

/// A store, and what its devices have been asked for.
struct Disorder {
    it: Harness,
    config: Config,
    asked: Vec<Request>,
    held: Vec<Request>,
    n_offered: u64,
    /// Who waits for which Data.
    waiters: Vec<(u64, u64)>,
    erased: Erased,
    /// What was erased before a flush.
    flushes: Vec<(Ticket, Erased)>,
    /// What stays erased whenever the power is lost.
    is_to_last: Erased,
    /// Records of erasures may have been damaged, or not read.
    is_damaged: bool,
    /// When the store was last asked what is due.
    asked_at: Option<MonoNs>,
}

impl Disorder {
    fn new(volume_bytes: &[usize], config: Config) -> Self {
        let it = Harness::new(volume_bytes, config.clone());
        // A region that is the only one left is written over with the erasures that it has.
        let is_damaged = it.volumes.iter().any(|volume| volume.n_regions == 1);
        Self {
            it,
            config,
            asked: Vec::new(),
            held: Vec::new(),
            n_offered: 0,
            waiters: Vec::new(),
            erased: Erased::default(),
            flushes: Vec::new(),
            is_to_last: Erased::default(),
            is_damaged,
            asked_at: None,
        }
    }

    fn happen(&mut self, what: &Happening) {
        let it = &mut self.it;
        let earlier = |number: u64| number % self.n_offered.max(1);
        match *what {
            Happening::Flush => {
                let ticket = it.store.flush(it.now);
                self.flushes.push((ticket, self.erased.clone()));
            }
            Happening::Erase(number) => {
                let number = earlier(number);
                it.store.erase(it.now, numbered(number).view());
                if number < self.n_offered {
                    self.erased.others.insert(number);
                }
            }
            Happening::EraseAll => {
                let all: Name = "/files".parse().expect("a name");
                it.store.erase(it.now, all.view());
                self.erased.before = self.n_offered;
            }
            Happening::PowerLoss(seed) => self.lose_power(seed),
            Happening::Ask(number) => {
                let number = earlier(number);
                match it.begin_asking(numbered(number).view(), false) {
                    Some(Err(waiter)) => self.waiters.push((waiter, number)),
                    Some(Ok(_)) => assert!(!self.erased.has(number), "{number}"),
                    None => {}
                }
            }
            Happening::Pause { ms } => it.now = it.now.plus_ms(ms),
            Happening::Fault(op, fault) => {
                self.is_damaged |= matches!(fault, Fault::Flip(_));
                if it.store.is_recovering() {
                    self.is_damaged = true;
                    self.erased = Erased::default();
                }
                inject(it, op, fault);
            }
            Happening::Offer { len, is_chunk } => {
                let wire = match is_chunk {
                    true => chunk("/object", self.n_offered, 1, len),
                    false => alone(self.n_offered, len),
                };
                it.offer(&wire, true);
                self.n_offered += 1;
            }
            Happening::Hold(number) => self.hold(number),
            Happening::Release => self.asked.append(&mut self.held),
            Happening::Answers(ref numbers) => {
                for &number in numbers {
                    self.answer(number);
                }
            }
        }
    }

    fn lose_power(&mut self, seed: u64) {
        self.note_flushed();
        self.asked.clear();
        self.held.clear();
        self.waiters.clear();
        self.flushes.clear();
        let image = self.it.device.image_after_power_loss(Survivors::Some(seed));
        self.it = self.it.begin_again(image, self.config.clone());
        self.asked_at = None;
        self.erased = match self.is_damaged {
            true => Erased::default(),
            false => self.is_to_last.clone(),
        };
    }

    /// What was erased before a flush that has not failed, stays so.
    fn note_flushed(&mut self) {
        let (done, failed) = (
            self.it.store.poll_flushed(),
            self.it.store.poll_flush_failed(),
        );
        while self
            .flushes
            .first()
            .is_some_and(|&(ticket, _)| ticket <= done)
        {
            let (ticket, erased) = self.flushes.remove(0);
            if ticket > failed {
                self.is_to_last = erased;
            }
        }
    }

    fn hold(&mut self, number: usize) {
        self.take_requests();
        if !self.asked.is_empty() {
            let request = self.asked.swap_remove(number % self.asked.len());
            self.held.push(request);
        }
    }

    fn take_requests(&mut self) {
        while let Some(request) = self.it.store.poll_request() {
            self.asked.push(request);
        }
    }

    /// Answers one of the requests, and has the store do what is due; false if there is neither.
    fn answer(&mut self, number: usize) -> bool {
        self.take_requests();
        let it = &mut self.it;
        let is_asked = !self.asked.is_empty();
        if is_asked {
            let request = self.asked.swap_remove(number % self.asked.len());
            give(it, request);
            for completion in completions(it) {
                if let Some(recalled) = it.store.handle_completion(it.now, completion) {
                    it.take(recalled);
                }
            }
        }
        it.take_given_up();
        // What was due at a time has been done when it was asked then, but for what is left.
        let due = it.store.poll_timeout();
        let is_new = self.asked_at != Some(it.now);
        let is_due = due.is_some_and(|at| at == MonoNs::ZERO || at <= it.now && is_new);
        if is_due {
            self.asked_at = Some(it.now);
            it.store.handle_timeout(it.now);
            it.take_given_up();
        }
        self.note_flushed();
        is_asked || is_due
    }

    /// Answers all requests.
    fn come_to_rest(&mut self) {
        self.asked.append(&mut self.held);
        let comes_to_rest = (0..100_000).any(|number| !self.answer(number));
        assert!(comes_to_rest, "{:?}", self.it.store.counters());
    }

    /// Lets time pass, in which requests are answered.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 250 {
            self.come_to_rest();
            self.it.now = self.it.now.plus_ms(250);
        }
    }

    /// Whether a Data is there that is alone in its batch.
    fn has(&mut self, number: u64) -> bool {
        let name = numbered(number);
        let found = match self.it.begin_asking(name.view(), false) {
            Some(Err(waiter)) => {
                self.pass(2 * self.it.store.config().stall_ms);
                self.it.answer(waiter, name.view(), false)
            }
            here => here.and_then(Result::ok),
        };
        found.is_some_and(|(wire, _)| name_of(&wire) == name)
    }

    /// Flushes, and has volumes given up that do not answer.
    fn flush(&mut self) {
        let ticket = self.it.store.flush(self.it.now);
        // Each may take six times as long for a sync, and is found out a little later.
        let n_volumes = self.it.volumes.len() as u64;
        self.pass(n_volumes * 7 * self.it.store.config().stall_ms);
        assert_eq!(self.it.store.poll_flushed(), ticket);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_in_whatever_order_comes_to_an_end(
        shape in prop_oneof![
            Just(vec![5 << 20]),
            Just(vec![4 << 20, 2 << 20]),
            Just(vec![4 << 20, 3 << 20]),
            Just(vec![3 << 20, 3 << 20, 3 << 20]),
            Just(vec![3 << 20, 2 << 20, 2 << 20]),
            Just(vec![3 << 20, 3 << 20, 3 << 20, 2 << 20, 2 << 20, 2 << 20]),
        ],
        max_reads in 4_usize..7,
        n_write_buffers in 2_usize..6,
        max_read_errors in 1_u32..3,
        happenings in prop::collection::vec(happening(), 1_000..3_000),
    ) {
        let config = Config { max_reads, n_write_buffers, max_read_errors, ..config() };
        let mut disorder = Disorder::new(&shape, config);
        for what in &happenings {
            disorder.happen(what);
        }
        disorder.flush();
        for (waiter, number) in std::mem::take(&mut disorder.waiters) {
            disorder.it.answer(waiter, numbered(number).view(), false);
        }
        if !disorder.it.store.is_recovering() {
            let erased = disorder.erased.clone();
            for number in (0..disorder.n_offered).filter(|&number| erased.has(number)) {
                prop_assert!(!disorder.has(number), "{}", number);
            }
        }
        // When no fault is left it goes on as if nothing had been.
        let goes_on = (0..happenings.len()).any(|_| {
            for _ in 0..20 {
                disorder.happen(&Happening::Offer { len: 7_500, is_chunk: false });
                disorder.come_to_rest();
            }
            disorder.flush();
            !disorder.it.store.is_in_use() || disorder.has(disorder.n_offered - 1)
        });
        prop_assert!(goes_on);
        let counters = disorder.it.store.counters();
        prop_assert_eq!(counters.n_ended(), counters.n_offered);
        prop_assert!(counters.n_lost <= counters.n_written);
    }
}
