//! The router's own two levels: its engine with a second level on a device, for which nothing
//! waits but who asked for what is read.
//!
//! Owns the device, as a worker of the router does, and moves requests and completions
//! between it and the engine after each burst. Interests are let in as long as not too many
//! are pending.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use tachonym_forward::{Engine, EngineConfig, FaceTraits, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{Component, FaceId, MonoNs, Name, PacketView};
use tachonym_store::device::{Completion, Content, Contents, Device, Emulated, Waiting};
use tachonym_store::layout::{MAX_BATCH_LEN, Superblock};
use tachonym_store::{Beginning, Config, Counters, Geometry, SecondLevel};
use tachonym_tables::{CsCapacity, FibConfig, NextHop};

use super::catalogue::{Chunk, Share};
use super::dram::{MAX_BYTES_EACH, fifo, hash_key};
use super::emulated::Memory;
use super::made::MadeVolume;
use super::packets::{Asked, MAX_DATA_BYTES, PREFIX, write_data};
use super::store::{Counts, Hcs, Hit};
use crate::engine_bed::SendBuffer;
use crate::ssd::disk::{self, Disk};

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
/// Writes under way at most.
const N_WRITES: usize = 8;
/// Packets of a burst.
const BURST_PKTS: usize = 32;
/// Requests of the device that are under way while the store is filled: what is offered then
/// finds room where batches are put together.
const MAX_FILLING: usize = 4;
/// Data that are put together or wait to be written meanwhile, which takes a part of the memory for
/// that.
const MAX_WAITING: u64 = 2_000;
/// How long filling may take without that anything ends, in nanoseconds.
const PATIENCE_NS: u64 = 10_000_000_000;

/// What the second level is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Segments in a batch.
    pub(super) batch_chunks: u32,
    /// Batches that are read ahead at most; 0 for none.
    pub(super) max_ahead: u32,
    /// Reads under way at most.
    pub(super) max_reads: usize,
    /// Interests that may be pending, at least one.
    pub(super) max_pending: usize,
}

/// See the module.
pub(super) struct TwoLevels {
    engine: Engine,
    device: Box<dyn Device>,
    completions: Vec<Completion>,
    epoch: Instant,
    out: SendBuffer<()>,
    max_pending: usize,
    counts: Counts,
    /// From when on the device is busy, of which the time before is counted.
    busy_since_ns: Option<u64>,
    data: Vec<u8>,
}

/// Bytes of a file for so many chunks: 15 % more than their packets and some regions more, so
/// that nothing is forgotten.
pub(super) const fn volume_bytes(n_chunks: u64) -> u64 {
    n_chunks * MAX_DATA_BYTES as u64 * 115 / 100 + (64 << 20)
}

/// A superblock of a store of one volume that is divided so.
///
/// # Errors
/// If batches are too long.
pub(super) fn superblock_of(geometry: &Geometry, batch_chunks: u32) -> anyhow::Result<Superblock> {
    ensure!(
        batch_chunks as usize <= MAX_BATCH_LEN,
        "a batch has at most {MAX_BATCH_LEN} segments"
    );
    Ok(Superblock {
        key: [7; 16],
        worker: 0,
        volume: 0,
        n_volumes: 1,
        batch_len: batch_chunks as u8,
        region_bytes: geometry.region_bytes,
        n_regions: geometry.n_regions.first().copied().unwrap_or(0),
        first_seq: 1,
        context: 0,
    })
}

impl TwoLevels {
    /// A first level of so many chunks, and a second one that has a share of a catalogue, in a
    /// file that is gone with it.
    ///
    /// # Errors
    /// If the file, or as much memory, is not to be had, or not everything could be written.
    pub(super) fn on_disk(
        l1_chunks: usize,
        share: Share<'_>,
        settings: &Settings,
        disk: &Disk,
        file: &str,
    ) -> anyhow::Result<Self> {
        let bytes = volume_bytes(share.chunks().count() as u64);
        let (volume, block) = disk.format(file, bytes, settings.batch_chunks as usize)?;
        let (device, _) = disk::open(volume, &[], settings.max_reads + N_WRITES)?;
        // Who has it open keeps it.
        disk.remove(file)?;
        Self::on_device(l1_chunks, share, settings, device, block)
    }

    /// The same on a device with an empty store.
    ///
    /// # Errors
    /// If there is not as much memory, or not everything could be written.
    fn on_device(
        l1_chunks: usize,
        share: Share<'_>,
        settings: &Settings,
        device: Box<dyn Device>,
        block: Superblock,
    ) -> anyhow::Result<Self> {
        let n_chunks = share.chunks().count();
        // Batches of the share and some more, since a prefix takes an entry, too.
        let max_batches = n_chunks / settings.batch_chunks as usize * 2
            + share.catalogue().n_contents as usize * 2
            + 1_024;
        let begins = (block, max_batches, Beginning::New);
        let mut store = Self::begin(l1_chunks, settings, device, begins)?;
        store.fill(share, n_chunks as u64)?;
        Ok(store)
    }

    /// The same with a share of a catalogue, of whole batches, on a device that is emulated
    /// (`store::device::Emulated`), as if it had been written before and were found again: with
    /// Data in memory or made when they are read, which takes none, and transfers of so many
    /// Gbit/s.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub(super) fn emulated(
        l1_chunks: usize,
        share: Share<'_>,
        settings: &Settings,
        memory: Memory,
        (waiting, rate_gbps): (Waiting, f64),
    ) -> anyhow::Result<Self> {
        let mut volume = MadeVolume::new(share, settings.batch_chunks)?;
        let (block, n_batches) = (volume.superblock(), volume.n_batches());
        let contents = match memory {
            Memory::Static => {
                let mut bytes = vec![0; usize::try_from(volume.bytes())?];
                for (region, bytes) in (0..).zip(bytes.chunks_mut(block.region_bytes as usize)) {
                    volume.fill(0, region * u64::from(block.region_bytes), bytes);
                }
                Contents::Static(vec![bytes])
            }
            Memory::Dynamic => Contents::Dynamic {
                volume_bytes: vec![volume.bytes()],
                content: Box::new(volume),
            },
        };
        let n_requests = settings.max_reads + N_WRITES;
        let device = Emulated::new(contents, waiting, Some((rate_gbps * 1e9) as u64))
            .with_capacity(n_requests);
        let max_batches = n_batches as usize * 5 / 4 + 1_024;
        let begins = (block, max_batches, Beginning::Existing);
        let mut store = Self::begin(l1_chunks, settings, Box::new(device), begins)?;
        store.wait("finding what was written", |store| {
            let second = store.engine.second_level();
            second.is_some_and(|second| !second.is_recovering())
        })?;
        let n_found = store.engine.second_level().map_or(0, |it| it.index_len().0);
        ensure!(
            n_found as u64 == n_batches,
            "only {n_found} of {n_batches} batches were found"
        );
        Ok(store)
    }

    /// With what a second level begins with: its superblock, most batches, and whether there
    /// are any.
    fn begin(
        l1_chunks: usize,
        settings: &Settings,
        device: Box<dyn Device>,
        (block, max_batches, beginning): (Superblock, usize, Beginning),
    ) -> anyhow::Result<Self> {
        let second = Config {
            batch_len: settings.batch_chunks as usize,
            max_batches,
            max_reads: settings.max_reads,
            n_write_buffers: N_WRITES,
            max_ahead: settings.max_ahead,
            ..Config::default()
        };
        let second = SecondLevel::new(second, &[block], beginning)?;
        let config = EngineConfig {
            cs: CsCapacity {
                max_pkts: l1_chunks,
                max_bytes: l1_chunks.saturating_mul(MAX_BYTES_EACH),
            },
            cs_policy: fifo(l1_chunks),
            fib: FibConfig::with_max_entries(1_024),
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(config, hash_key(7), 3)
            .with_context(|| format!("an engine with {l1_chunks} chunks"))?;
        for face in [CONSUMER, PRODUCER] {
            engine.add_face(face, FaceTraits::REMOTE);
        }
        let prefix = Name::new().with(Component::generic(PREFIX).view());
        engine.add_next_hop(prefix.view(), NextHop::new(PRODUCER, 0))?;
        engine.set_second_level(Some(second));
        Ok(Self {
            engine,
            device,
            completions: Vec::new(),
            epoch: Instant::now(),
            out: SendBuffer::new(()),
            max_pending: settings.max_pending.max(1),
            counts: Counts::default(),
            busy_since_ns: None,
            data: Vec::new(),
        })
    }

    /// Data that the second level has taken, and not begun to write.
    fn n_waiting(&self) -> u64 {
        self.engine.second_level().map_or(0, |second| {
            let counters = second.counters();
            counters.n_offered - counters.n_ended()
        })
    }

    /// Has the producer answer for every chunk, so that all of these are written.
    fn fill(&mut self, share: Share<'_>, n_chunks: u64) -> anyhow::Result<()> {
        let mut asked = Asked::default();
        let mut chunks = share.chunks().peekable();
        while chunks.peek().is_some() {
            asked.clear();
            chunks
                .by_ref()
                .take(BURST_PKTS)
                .for_each(|chunk| asked.push(chunk));
            self.carry(&asked.iter().collect::<Vec<_>>());
            self.wait("writes", |store| {
                store.device.n_in_flight() <= MAX_FILLING && store.n_waiting() <= MAX_WAITING
            })?;
        }
        let now = self.now();
        let second = self.engine.second_level_mut().context("it was given one")?;
        let ticket = second.flush(now);
        self.wait("a flush", |store| {
            let second = store.engine.second_level();
            second.is_some_and(|second| second.poll_flushed() >= ticket)
        })?;
        let second = self.engine.second_level().context("it was given one")?;
        let counters = second.counters();
        let (written, n_known) = (counters.n_written, counters.n_known);
        // Of absent names one in some thousands looks stored, by its tag in the index.
        ensure!(
            written + n_known == n_chunks && n_known <= n_chunks / 1_000,
            "only {written} of {n_chunks} segments were written; {n_known} looked stored already, \
             and {} found no room",
            counters.n_no_room
        );
        self.counts = Counts::default();
        Ok(())
    }

    fn now(&self) -> MonoNs {
        let elapsed = self.epoch.elapsed().as_nanos();
        MonoNs(1_000_000_000 + u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Moves requests and completions until `is_enough`.
    fn wait(&mut self, what: &str, is_enough: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        let begun = self.now();
        loop {
            self.exchange();
            if is_enough(self) {
                return Ok(());
            }
            let waited_ns = self.now().0 - begun.0;
            ensure!(waited_ns < PATIENCE_NS, "{what} did not end within 10 s");
            std::hint::spin_loop();
        }
    }

    /// Moves requests to the device and completions to the engine until there are none, and does
    /// what is due.
    fn exchange(&mut self) {
        let now = self.now();
        if self.engine.poll_timeout().is_some_and(|due| due <= now) {
            self.engine.handle_timeout(now, &mut self.out);
        }
        loop {
            self.turn_device();
            if self.completions.is_empty() {
                return;
            }
            let mut completions = std::mem::take(&mut self.completions);
            for completion in completions.drain(..) {
                self.engine
                    .handle_completion(now, completion, &mut self.out);
            }
            self.completions = completions;
        }
    }

    /// Has the device begin what there is to do, and tell what has ended.
    fn turn_device(&mut self) {
        let now = self.now();
        let Some(second) = self.engine.second_level_mut() else {
            return;
        };
        while let Some(request) = second.poll_request() {
            if let Err(request) = self.device.submit(request) {
                second.give_back(request);
                break;
            }
            self.busy_since_ns.get_or_insert(now.0);
        }
        // Here an emulated device may wait.
        self.device.start();
        self.device.poll(now, &mut self.completions);
        let now_ns = self.now().0;
        if let Some(since_ns) = self.busy_since_ns {
            self.counts.second_ns += now_ns - since_ns;
        }
        self.busy_since_ns = (self.device.n_in_flight() > 0).then_some(now_ns);
    }

    /// Carries a burst of Interests; what neither level has is answered by the producer.
    fn carry(&mut self, asked: &[(Chunk, &[u8])]) {
        let before = self.engine.counters();
        let before = (before.n_cs_hits, before.n_out_interests, self.n_refused());
        self.receive(asked.iter().map(|(_, wire)| *wire), CONSUMER);
        let counters = self.engine.counters();
        let n_first = counters.n_cs_hits - before.0;
        let n_upstream = counters.n_out_interests - before.1;
        let n_refused = self.n_refused() - before.2;
        // What gets no read goes upstream, too.
        let n_missed = n_upstream.saturating_sub(n_refused);
        let n_elsewhere = n_first + n_missed + n_refused;
        self.counts.n_requests += asked.len() as u64;
        self.counts.n_first += n_first;
        self.counts.n_missed += n_missed;
        self.counts.n_refused += n_refused;
        self.counts.n_second += (asked.len() as u64).saturating_sub(n_elsewhere);
        if n_upstream == 0 {
            return;
        }
        // Data that nobody waits for are dropped, and those for which the second level is
        // read come from there or from here: so it need not be known which went upstream.
        let mut data = std::mem::take(&mut self.data);
        for &(chunk, _) in asked {
            data.clear();
            write_data(chunk, &mut data);
            self.receive(std::iter::once(&data[..]), PRODUCER);
        }
        self.data = data;
    }

    fn receive<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>, face: FaceId) {
        let headers = Headers::default();
        let rx: Vec<_> = packets
            .map(|wire| {
                let packet = PacketView::parse(wire).expect("written here");
                RxPacket::new(face, &headers, packet).expect("no headers")
            })
            .collect();
        let now = self.now();
        self.engine.handle_burst(now, &rx, &mut self.out);
    }

    /// What the second level has counted since it was made.
    pub(super) fn counters(&self) -> Counters {
        let second = self.engine.second_level();
        second.map_or_else(Counters::default, SecondLevel::counters)
    }

    fn n_refused(&self) -> u64 {
        self.counters().n_busy
    }

    fn n_pending(&self) -> usize {
        self.engine.sizes().n_pit_entries
    }
}

impl Hcs for TwoLevels {
    fn request(&mut self, chunk: Chunk, interest: &[u8]) -> Hit {
        let before = self.counts;
        self.carry(&[(chunk, interest)]);
        self.exchange();
        self.settle();
        match self.counts.since(&before) {
            Counts { n_first: 1, .. } => Hit::First,
            Counts { n_second: 1, .. } => Hit::Second,
            _ => Hit::Miss,
        }
    }

    fn request_burst(&mut self, asked: &Asked) {
        let asked: Vec<_> = asked.iter().collect();
        for burst in asked.chunks(BURST_PKTS.min(self.max_pending)) {
            while self.n_pending() + burst.len() > self.max_pending {
                self.exchange();
            }
            self.carry(burst);
            self.exchange();
        }
    }

    fn is_waiting(&self) -> bool {
        true
    }

    fn go_on(&mut self) {
        self.exchange();
    }

    fn settle(&mut self) {
        // A read that fails or stalls ends, too: its Interest goes upstream, or expires.
        while self.n_pending() > 0 {
            self.exchange();
        }
    }

    fn counts(&self) -> Counts {
        // What was waited for and could not be read, goes upstream after all.
        let n_failed = self.engine.counters().n_second_level_failures;
        Counts {
            n_second: self.counts.n_second.saturating_sub(n_failed),
            n_missed: self.counts.n_missed + n_failed,
            second_bytes: self.counters().n_read_bytes,
            ..self.counts
        }
    }
}

#[cfg(test)]
mod tests {
    use tachonym_store::device::Ram;

    use super::super::catalogue::Catalogue;
    use super::super::model;
    use super::super::store::{measure, warm};
    use super::super::workload::{Kind, Requests};
    use super::*;

    const CATALOGUE: Catalogue = Catalogue {
        n_contents: 12,
        content_chunks: 60,
    };

    fn store(l1_chunks: usize, max_ahead: u32) -> TwoLevels {
        let settings = Settings {
            batch_chunks: 10,
            max_ahead,
            max_reads: 16,
            max_pending: 8,
        };
        store_of(l1_chunks, settings)
    }

    fn store_of(l1_chunks: usize, settings: Settings) -> TwoLevels {
        let bytes = volume_bytes(CATALOGUE.n_chunks());
        let device = Box::new(Ram::new(&[bytes as usize]));
        let geometry = Geometry::new(&[bytes], 10).expect("large enough");
        let block = superblock_of(&geometry, 10).expect("short batches");
        let share = Share::all(CATALOGUE);
        TwoLevels::on_device(l1_chunks, share, &settings, device, block).expect("a small store")
    }

    #[test]
    fn who_is_refused_counts_as_no_hit() {
        let settings = Settings {
            batch_chunks: 10,
            max_ahead: 0,
            max_reads: 4,
            max_pending: 32,
        };
        let mut store = store_of(100, settings);
        let settings = model::shrunk_settings(CATALOGUE, 1);
        let mut requests = Requests::new(Kind::Unif, &settings, 3);
        let counts = measure(&mut store, &mut requests, 2_000, |_| true).counts;
        assert!(counts.n_refused > 500, "{counts:?}");
        assert_eq!(
            counts.n_first + counts.n_second + counts.n_refused,
            2_000,
            "{counts:?}"
        );
        let error = counts.ensure_answered().expect_err("many were refused");
        assert!(error.to_string().contains("--pending"), "{error}");
    }

    #[test]
    fn everything_is_answered_from_one_of_both_levels() {
        let mut store = store(100, 0);
        let settings = model::shrunk_settings(CATALOGUE, 1);
        for kind in Kind::ALL {
            let mut requests = Requests::new(kind, &settings, 3);
            warm(&mut store, &mut requests, 1_000, |_| true);
            let counts = measure(&mut store, &mut requests, 2_000, |_| true).counts;
            assert_eq!(
                counts.n_first + counts.n_second,
                2_000,
                "{kind}: {counts:?}"
            );
            assert!(
                counts.second_bytes > 0 && counts.n_missed == 0,
                "{kind}: {counts:?}"
            );
        }
    }

    #[test]
    fn a_read_brings_the_batch_and_the_next_one_if_it_looks_ahead() {
        for (max_ahead, expected) in [(0, Hit::Second), (2, Hit::First)] {
            let mut store = store(100, max_ahead);
            let mut ask = |content, segment| {
                let mut asked = Asked::default();
                asked.push(Chunk { content, segment });
                let (chunk, interest) = asked.iter().next().expect("one was pushed");
                let hit = store.request(chunk, interest);
                // What is read ahead is waited for by nobody.
                while store.device.n_in_flight() > 0 {
                    store.exchange();
                }
                hit
            };
            assert_eq!(ask(2, 0), Hit::Second);
            for segment in 1..10 {
                assert_eq!(ask(2, segment), Hit::First, "{segment}");
            }
            assert_eq!(ask(2, 10), expected);
            assert_eq!(ask(40, 0), Hit::Miss);
        }
    }

    #[test]
    fn what_is_made_is_found_and_answers_as_what_was_written() {
        // Of 25 batches of ten, and one of five.
        let catalogue = Catalogue {
            n_contents: 12,
            content_chunks: 255,
        };
        for (memory, waiting) in [
            (Memory::Dynamic, Waiting::Deferred),
            (Memory::Static, Waiting::Busy),
        ] {
            let settings = Settings {
                batch_chunks: 10,
                max_ahead: 0,
                max_reads: 16,
                max_pending: 8,
            };
            let share = Share::all(catalogue);
            let mut store = TwoLevels::emulated(200, share, &settings, memory, (waiting, 50.0))
                .expect("a small store");
            let requests = model::shrunk_settings(catalogue, 1);
            for kind in Kind::ALL {
                let mut requests = Requests::new(kind, &requests, 3);
                warm(&mut store, &mut requests, 1_000, |_| true);
                let counts = measure(&mut store, &mut requests, 4_000, |_| true).counts;
                let n_answered = counts.n_first + counts.n_second;
                assert_eq!(
                    (n_answered, counts.n_missed),
                    (4_000, 0),
                    "{kind}: {counts:?}"
                );
                assert!(counts.second_bytes > 0, "{kind}: {counts:?}");
            }
            let counters = store.counters();
            assert_eq!((counters.n_damaged, counters.n_false_reads), (0, 0));
        }
    }

    #[test]
    fn a_share_is_made_of_its_own_batches() {
        let catalogue = Catalogue {
            n_contents: 12,
            content_chunks: 255,
        };
        let settings = Settings {
            batch_chunks: 10,
            max_ahead: 0,
            max_reads: 16,
            max_pending: 8,
        };
        let is_here = |chunk: Chunk| (chunk.content + chunk.segment / 10).is_multiple_of(3);
        let share = Share::new(catalogue, &is_here);
        let passes = (Waiting::Deferred, 50.0);
        let mut store = TwoLevels::emulated(20, share, &settings, Memory::Dynamic, passes)
            .expect("a small store");
        for content in 0..12 {
            for segment in [0, 17, 138, 254] {
                let chunk = Chunk { content, segment };
                let mut asked = Asked::default();
                asked.push(chunk);
                let (chunk, interest) = asked.iter().next().expect("one was pushed");
                let expected = if is_here(chunk) {
                    Hit::Second
                } else {
                    Hit::Miss
                };
                assert_eq!(store.request(chunk, interest), expected, "{chunk:?}");
            }
        }
    }
}
