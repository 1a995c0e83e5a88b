//! The router's own two levels: its engine with an SSD level on a device. Only Interests for
//! what is being read wait.
//! Requests and completions are moved between the device and the engine after each burst, and
//! Interests are let in as long as not too many are pending.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use tachonym_packet::{FaceId, MonoNs};
use tachonym_store::device::{Content, Contents, Device, Emulated, Waiting};
use tachonym_store::layout::Superblock;
use tachonym_store::{Beginning, Config, Counters, SecondLevel};

use super::catalogue::{Chunk, Share};
use super::emulated::Memory;
use super::forwarder::{Bed, bed};
use super::made::MadeVolume;
use super::packets::{Asked, MAX_DATA_BYTES, write_data};
use super::store::{Counts, Hcs, Hit};
use crate::beds::store::{PRODUCER, face_of};
use crate::own::ssd::disk::{self, Disk};

/// Writes under way at most.
const N_WRITES: usize = 8;
/// Packets of a burst.
const BURST_PKTS: usize = 32;
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

/// The router's engine with its SSD level and the device, in one thread.
pub(super) struct TwoLevels {
    bed: Bed,
    epoch: Instant,
    max_pending: usize,
    counts: Counts,
    /// From when on the device is busy, of which the time before is counted.
    busy_since_ns: Option<u64>,
    data: Vec<u8>,
}

/// Bytes of a file for `n_chunks`: 15 % more than their packets and some regions more, so that
/// nothing is evicted.
pub(super) const fn volume_bytes(n_chunks: u64) -> u64 {
    n_chunks * MAX_DATA_BYTES as u64 * 115 / 100 + (64 << 20)
}

impl TwoLevels {
    /// An L1 of `l1_chunks`, and an L2 that has a share of a catalogue, in a file that is removed
    /// at once.
    ///
    /// # Errors
    /// If the file cannot be made, memory is missing, or not everything could be written.
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
        // The open file stays until it is closed.
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
    /// Data in memory or made when they are read, which takes none, and transfers of `rate_gbps`.
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
            let second = store.bed.second();
            second.is_ok_and(|second| !second.is_recovering())
        })?;
        let n_found = store.bed.second()?.index_len().0;
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
        let mut bed = bed(l1_chunks)?;
        bed.set_second(second, device);
        Ok(Self {
            bed,
            epoch: Instant::now(),
            max_pending: settings.max_pending.max(1),
            counts: Counts::default(),
            busy_since_ns: None,
            data: Vec::new(),
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
            // A name that looks stored is read first, and goes upstream after that.
            while self.n_pending() > 0 {
                self.exchange();
                self.answer(asked.chunks().iter().copied());
            }
            self.wait("writes", |store| store.bed.may_fill())?;
        }
        let now = self.now();
        let second = self.bed.engine.cs_mut().second_level();
        let ticket = second.context("it was given one")?.flush(now);
        self.wait("a flush", |store| {
            let second = store.bed.second();
            second.is_ok_and(|second| second.poll_flushed() >= ticket)
        })?;
        let counters = self.counters();
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
        loop {
            let begun = self.now();
            if self.bed.exchange(begun) {
                self.busy_since_ns.get_or_insert(begun.0);
            }
            let now = self.now();
            if let Some(since_ns) = self.busy_since_ns {
                self.counts.second_ns += now.0 - since_ns;
            }
            self.busy_since_ns = (self.bed.n_in_flight() > 0).then_some(now.0);
            if self.bed.complete(begun, usize::MAX) == 0 {
                return;
            }
        }
    }

    /// Carries a burst of Interests; what neither level has is answered by the producer.
    fn carry(&mut self, asked: &[(Chunk, &[u8])]) {
        let before = self.bed.engine.counters();
        let before = (before.n_cs_hits, before.n_out_interests, self.n_refused());
        self.receive(asked.iter().map(|(_, wire)| *wire), face_of(0));
        let counters = self.bed.engine.counters();
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
        // Unsolicited Data are dropped, and those for which the SSD level is read come from
        // there or from here, so all of the burst can be sent.
        self.answer(asked.iter().map(|&(chunk, _)| chunk));
    }

    /// Sends the Data of chunks from the producer.
    fn answer(&mut self, chunks: impl Iterator<Item = Chunk>) {
        let mut data = std::mem::take(&mut self.data);
        for chunk in chunks {
            data.clear();
            write_data(chunk, &mut data);
            self.receive(std::iter::once(&data[..]), PRODUCER);
        }
        self.data = data;
    }

    fn receive<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>, face: FaceId) {
        let received = self.bed.receive(self.now(), face, packets);
        received.expect("written here");
    }

    /// What the SSD level has counted since it was made.
    pub(super) fn counters(&self) -> Counters {
        self.bed.counters()
    }

    fn n_refused(&self) -> u64 {
        self.counters().n_busy
    }

    fn n_pending(&self) -> usize {
        self.bed.engine.sizes().n_pit_entries
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
        let n_failed = self.bed.engine.counters().n_second_level_failures;
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
    use tachonym_store::Geometry;
    use tachonym_store::device::Ram;

    use super::super::catalogue::Catalogue;
    use super::super::made::superblock_of;
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
    fn refused_interests_are_no_hits() {
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
        assert!(error.to_string().contains("lower pending"), "{error}");
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
                // No Interest waits for what is read ahead.
                while store.bed.n_in_flight() > 0 {
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
