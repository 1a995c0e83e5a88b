//! A store on a device in memory, and Data for it.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;

use tachonym_packet::{Component, Data, DataView, Interest, InterestView, MonoNs, Name, NameView};
use tachonym_store::device::{Device, Ram};
use tachonym_store::layout::Superblock;
use tachonym_store::{
    Beginning, Config, Event, Geometry, Novelty, Offered, Recall, SecondLevel, Ticket,
};

pub(crate) const MS: u64 = 1_000_000;

/// Unix time when the clock of the tests is at zero, in milliseconds.
const UNIX_MS: u64 = 1_800_000_000_000;

/// A Data of an object; its content tells the version.
pub(crate) fn chunk(object: &str, number: u64, version: u8, len: usize) -> Vec<u8> {
    let name: Name = object.parse().expect("a name");
    data(name.with(&Component::segment(number)), version, len, None)
}

pub(crate) fn data(name: Name, version: u8, len: usize, freshness_ms: Option<u64>) -> Vec<u8> {
    let mut data = Data::new(name);
    data.content = vec![version; len];
    data.freshness_period_ms = freshness_ms;
    data.encode_with_digest()
}

pub(crate) fn name_of(wire: &[u8]) -> Name {
    DataView::parse(wire).expect("a Data").name().to_name()
}

pub(crate) struct Harness {
    pub(crate) store: SecondLevel,
    pub(crate) device: Ram,
    pub(crate) volumes: Vec<Superblock>,
    pub(crate) now: MonoNs,
    pub(crate) events: Vec<Event>,
    /// Chunks of batches that were read, by waiter.
    answers: BTreeMap<u64, Vec<(Vec<u8>, bool)>>,
    next_waiter: u64,
    /// Names of chunks that came without anybody waiting.
    pub(crate) came_ahead: Vec<Name>,
    /// All that reads have brought.
    pub(crate) came: Vec<Vec<u8>>,
}

impl Harness {
    pub(crate) fn new(volume_bytes: &[usize], config: Config) -> Self {
        let bytes: Vec<u64> = volume_bytes.iter().map(|&it| it as u64).collect();
        let geometry = Geometry::new(&bytes, config.batch_len).expect("large enough");
        let volumes = geometry.n_regions.iter().enumerate();
        let volumes: Vec<_> = volumes
            .map(|(idx, &n_regions)| Superblock {
                key: [7; 16],
                worker: 0,
                volume: idx as u8,
                n_volumes: volume_bytes.len() as u8,
                batch_len: config.batch_len as u8,
                region_bytes: geometry.region_bytes,
                n_regions,
                first_seq: 1,
                context: 0,
            })
            .collect();
        Self::on(Ram::new(volume_bytes), volumes, config, Beginning::New)
    }

    pub(crate) fn on(
        device: Ram,
        volumes: Vec<Superblock>,
        config: Config,
        beginning: Beginning,
    ) -> Self {
        let mut store = SecondLevel::new(config, &volumes, beginning).expect("memory");
        store.set_wall_clock(MonoNs::ZERO, UNIX_MS);
        Self {
            store,
            device,
            volumes,
            now: MonoNs(MS),
            events: Vec::new(),
            answers: BTreeMap::new(),
            next_waiter: 0,
            came_ahead: Vec::new(),
            came: Vec::new(),
        }
    }

    /// The same volumes with these contents, in a router that has looked through them.
    pub(crate) fn reboot(&self, image: Vec<Vec<u8>>, config: Config) -> Self {
        let mut again = self.begin_again(image, config);
        again.tick(0);
        assert!(!again.store.is_recovering());
        again
    }

    /// The same volumes with these contents, in a router that has not read anything yet.
    pub(crate) fn begin_again(&self, image: Vec<Vec<u8>>, config: Config) -> Self {
        let config = Config {
            seed: self.store.config().seed + 1,
            ..config
        };
        let device = Ram::from_image(image);
        let mut again = Self::on(device, self.volumes.clone(), config, Beginning::Existing);
        let since_ms = self.now.0 / MS;
        again.store.set_wall_clock(MonoNs(0), UNIX_MS + since_ms);
        assert_eq!(again.store.poll_timeout(), Some(MonoNs::ZERO));
        assert!(again.store.is_recovering());
        again.store.handle_timeout(again.now);
        again
    }

    /// Lets device and store go on until neither has anything to do.
    pub(crate) fn pump(&mut self) {
        while self.pump_once() || self.go_on() {}
        self.check_balance();
    }

    /// Lets the store do what it has left for later, but is due at once; false if there is
    /// nothing.
    pub(crate) fn go_on(&mut self) -> bool {
        let is_due = self.store.poll_timeout() == Some(MonoNs::ZERO);
        if is_due {
            self.store.handle_timeout(self.now);
            self.take_given_up();
        }
        is_due
    }

    /// Of each Data that was offered it is known what became of it, once.
    fn check_balance(&self) {
        let counters = self.store.counters();
        let n_known = counters.n_ended() + self.store.n_waiting() as u64;
        assert_eq!(n_known, counters.n_offered, "{counters:?}");
        assert!(counters.n_lost <= counters.n_written, "{counters:?}");
    }

    /// Lets the device do some of what it has to do, and the store go on; false if neither has
    /// anything to do.
    pub(crate) fn pump_once(&mut self) -> bool {
        let mut completions = Vec::new();
        let mut has_submitted = false;
        while let Some(request) = self.store.poll_request() {
            if let Err(request) = self.device.submit(request) {
                self.store.give_back(request);
                break;
            }
            has_submitted = true;
        }
        self.device.start();
        self.device.poll(self.now, &mut completions);
        let is_busy = has_submitted || !completions.is_empty();
        for completion in completions.drain(..) {
            if let Some(recalled) = self.store.handle_completion(self.now, completion) {
                self.take(recalled);
            }
        }
        self.take_given_up();
        while let Some(event) = self.store.poll_event() {
            self.events.push(event);
        }
        is_busy
    }

    pub(crate) fn take_given_up(&mut self) {
        while let Some(recalled) = self.store.poll_given_up() {
            self.take(recalled);
        }
    }

    pub(crate) fn take(&mut self, recalled: tachonym_store::Recalled) {
        let chunks: Vec<_> = recalled
            .chunks()
            .map(|chunk| (chunk.wire.to_vec(), chunk.fresh_until > self.now))
            .collect();
        self.came
            .extend(chunks.iter().map(|(wire, _)| wire.clone()));
        if recalled.waiters().next().is_none() {
            self.came_ahead
                .extend(chunks.iter().map(|(wire, _)| name_of(wire)));
        }
        for waiter in recalled.waiters() {
            self.answers.insert(waiter, chunks.clone());
        }
        self.store.recycle(recalled);
    }

    /// Lets time pass, in which the store is asked as often as it wants to be.
    pub(crate) fn tick(&mut self, ms: u64) {
        let step_ms = (self.store.config().stall_ms / 4).max(1);
        for begun_ms in (0..ms.max(1)).step_by(step_ms as usize) {
            self.stand_still(step_ms.min(ms - begun_ms));
        }
    }

    /// Lets time pass in which nobody asks the store.
    pub(crate) fn stand_still(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.store.handle_timeout(self.now);
        self.take_given_up();
        self.pump();
    }

    pub(crate) fn offer(&mut self, wire: &[u8], is_other: bool) -> Offered {
        let data = DataView::parse(wire).expect("a Data");
        let hash = self.store.request_hash(data.name());
        let novelty = match is_other {
            true => Novelty::Replacement,
            false => Novelty::Unsure,
        };
        self.store.offer(self.now, &data, hash, novelty)
    }

    /// What the store has for a name: a Data, and whether it is fresh.
    pub(crate) fn ask(
        &mut self,
        name: NameView<'_>,
        can_be_prefix: bool,
    ) -> Option<(Vec<u8>, bool)> {
        let waiter = self.begin_asking(name, can_be_prefix)?;
        match waiter {
            Ok(found) => Some(found),
            Err(waiter) => {
                self.pump();
                self.answer(waiter, name, can_be_prefix)
            }
        }
    }

    /// What the store has for a name without reading.
    ///
    /// # Panics
    /// If it would read.
    pub(crate) fn ask_memory(
        &mut self,
        name: NameView<'_>,
        can_be_prefix: bool,
    ) -> Option<Vec<u8>> {
        match self.begin_asking(name, can_be_prefix)? {
            Ok((wire, _)) => Some(wire),
            Err(_) => panic!("{} is read", name.to_name()),
        }
    }

    /// As [`Harness::ask`]; if the Data must be read, who waits for it.
    pub(crate) fn begin_asking(
        &mut self,
        name: NameView<'_>,
        can_be_prefix: bool,
    ) -> Option<Result<(Vec<u8>, bool), u64>> {
        let mut interest = Interest::new(name.to_name());
        interest.can_be_prefix = can_be_prefix;
        let wire = interest.encode();
        let interest = InterestView::parse(&wire).expect("an Interest");
        let place = self.store.find(&interest)?;
        let waiter = self.next_waiter;
        self.next_waiter += 1;
        match self.store.recall(self.now, place, (waiter, waiter)) {
            Recall::Here(wire, fresh_until) => Some(Ok((wire.to_vec(), fresh_until > self.now))),
            Recall::Reading | Recall::Joined => Some(Err(waiter)),
            Recall::Busy | Recall::Gone => None,
        }
    }

    /// What a read has brought for a name.
    pub(crate) fn answer(
        &mut self,
        waiter: u64,
        name: NameView<'_>,
        can_be_prefix: bool,
    ) -> Option<(Vec<u8>, bool)> {
        let chunks = self.answers.remove(&waiter).expect("whoever waits is told");
        let suits = |wire: &[u8]| {
            let found = name_of(wire);
            found.view() == name || can_be_prefix && found.starts_with(name)
        };
        chunks.into_iter().find(|(wire, _)| suits(wire))
    }

    pub(crate) fn flush(&mut self) -> Ticket {
        let ticket = self.store.flush(self.now);
        self.pump();
        ticket
    }
}
