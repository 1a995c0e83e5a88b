//! The bed of a content store with its SSD level on a disk, and the sink that stands for the
//! faces: it counts what is sent.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use tachonym_forward::{Output, RxPacket};
use tachonym_packet::lp::{Headers, PitToken};
use tachonym_packet::{
    FaceId, HashKey, HashKind, InterestRewrite, InterestView, MonoNs, NackReason, NameView,
};
use tachonym_policy::{AdmissionKind, EvictionKind, PolicyConfig};
use tachonym_store::device::{Opened, Volume};
use tachonym_store::layout::Superblock;
use tachonym_store::{Beginning, Config, SecondLevel};
use tachonym_tables::CsCapacity;

use super::disk;
use super::packets::{ChunkId, Packets, chunk_of};
use crate::beds::engine::workload::Burst;
pub(super) use crate::beds::store::face_of;
use crate::beds::store::{PRODUCER, StoreBed, StoreOptions};

/// Packets of a burst, at most.
pub(super) const BURST_PKTS: usize = 64;

/// Completions that the engine is given in a turn, as by the router.
const MAX_COMPLETIONS: usize = 8;

/// Requests that a store may have beside its reads.
const OTHER_REQUESTS: usize = 64;

/// The time by the clock that never goes back.
pub(super) fn now() -> MonoNs {
    let time = clock_gettime(ClockId::Monotonic);
    MonoNs(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// CPU time of this process, the kernel's threads for it included, in nanoseconds.
pub(super) fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this thread, in nanoseconds.
pub(super) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Counts what the engine sends, and reads each cache line of it, as a face that copies it does.
#[derive(Debug, Default)]
pub(super) struct Sink {
    /// Data to consumers, and their bytes.
    pub(super) n_data: u64,
    pub(super) n_bytes: u64,
    pub(super) n_nacks: u64,
    /// Of each consumer, Interests that have come to their end.
    pub(super) n_ended: Vec<u64>,
    /// Tokens of Interests that were answered, if they are wanted.
    pub(super) tokens: Option<Vec<u32>>,
    /// What was asked for upstream.
    pub(super) upstream: Vec<ChunkId>,
    /// Whether what is sent is read.
    pub(super) reads: bool,
    seen: u8,
}

impl Sink {
    fn end(&mut self, face: FaceId) {
        let consumer = (face.0 - face_of(0).0) as usize;
        if let Some(n_ended) = self.n_ended.get_mut(consumer) {
            *n_ended += 1;
        }
    }
}

impl Output for Sink {
    fn send_interest(
        &mut self,
        _: FaceId,
        interest: &InterestView<'_>,
        _: &InterestRewrite,
        _: &Headers,
    ) {
        self.upstream.extend(chunk_of(interest.name()));
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        self.n_data += 1;
        self.n_bytes += data_wire.len() as u64;
        if self.reads {
            let (lines, _) = data_wire.as_chunks::<64>();
            self.seen = lines.iter().fold(self.seen, |seen, line| seen ^ line[0]);
        }
        if let (Some(tokens), Some(token)) = (&mut self.tokens, &headers.pit_token) {
            let bytes = token.as_bytes().first_chunk().copied();
            tokens.push(u32::from_le_bytes(bytes.unwrap_or_default()));
        }
        self.end(face);
    }

    fn send_nack(&mut self, face: FaceId, _: NackReason, _: &[u8], _: &Headers) {
        self.n_nacks += 1;
        self.end(face);
    }
}

/// What a rig is made with.
#[derive(Clone, Debug)]
pub(super) struct RigOptions {
    /// Data in the first level.
    pub(super) l1_pkts: usize,
    /// What of that is cached which has come because it was asked for.
    pub(super) admission: AdmissionKind,
    /// Consumers; each has a face.
    pub(super) n_consumers: u16,
    /// The second level's.
    pub(super) config: Config,
}

/// A content store between consumers and a producer.
pub(super) struct Rig {
    pub(super) bed: StoreBed<Sink>,
    pub(super) opened: Option<Opened>,
    nonce: u32,
}

impl Rig {
    /// With one level alone.
    pub(super) fn new(options: &RigOptions) -> anyhow::Result<Self> {
        let eviction = EvictionKind::default();
        let bed = StoreOptions {
            capacity: CsCapacity {
                max_pkts: options.l1_pkts,
                // The number of packets is to be what bounds it.
                max_bytes: options.l1_pkts * 10_240 + (64 << 20),
            },
            policy: PolicyConfig::new(options.admission, eviction, options.l1_pkts),
            key: HashKey::new(HashKind::fastest(), &[7; 32]),
            n_consumers: options.n_consumers,
            prefix: NameView::parse_value(&[])?,
        };
        let sink = Sink {
            n_ended: vec![0; options.n_consumers.into()],
            reads: true,
            ..Sink::default()
        };
        Ok(Self {
            bed: StoreBed::new(bed, sink)?,
            opened: None,
            nonce: 1,
        })
    }

    /// With the store that is on a volume.
    pub(super) fn with_store(
        options: &RigOptions,
        (volume, superblock): (Volume, Superblock),
        beginning: Beginning,
    ) -> anyhow::Result<Self> {
        let mut rig = Self::new(options)?;
        let config = options.config.clone();
        let n_requests = config.max_reads + config.n_write_buffers + OTHER_REQUESTS;
        let buffers = SecondLevel::buffers(&config, &superblock)?;
        let (device, opened) = disk::open(volume, &buffers, n_requests)?;
        let mut second = SecondLevel::with_buffers(config, &[superblock], beginning, buffers)?;
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        second.set_wall_clock(now(), unix.as_millis() as u64);
        rig.bed.set_second(second, device);
        rig.opened = Some(opened);
        Ok(rig)
    }

    /// The second level.
    pub(super) fn second(&self) -> anyhow::Result<&SecondLevel> {
        self.bed.second()
    }

    /// Writes the Interest for a chunk into a burst.
    pub(super) fn ask(&mut self, chunk: ChunkId, burst: &mut Burst) {
        self.nonce = self.nonce.wrapping_mul(0x9E37_79B1).wrapping_add(1);
        burst.push(|out| Packets::write_interest(chunk, self.nonce, out));
    }

    /// Receives a burst of Interests from a consumer, or of Data from the producer.
    pub(super) fn receive(&mut self, face: FaceId, burst: &Burst) -> anyhow::Result<()> {
        self.bed.receive(now(), face, burst.iter())
    }

    /// Receives an Interest whose answer is known by a number.
    pub(super) fn receive_known(&mut self, chunk: ChunkId, token: u32) -> anyhow::Result<()> {
        let mut burst = Burst::default();
        self.ask(chunk, &mut burst);
        let headers = Headers {
            pit_token: PitToken::new(&token.to_le_bytes()),
            ..Headers::default()
        };
        let wire = burst.iter().next().context("one was written")?;
        let packet = RxPacket::parse(face_of(0), &headers, wire).context("well-formed")?;
        let Self { bed, .. } = self;
        bed.engine.handle_burst(now(), &[packet], &mut bed.out);
        Ok(())
    }

    /// Has the producer answer what it was asked for. How many Data.
    pub(super) fn produce(&mut self, packets: &Packets) -> anyhow::Result<usize> {
        let asked = std::mem::take(&mut self.bed.out.upstream);
        for chunks in asked.chunks(BURST_PKTS) {
            let mut burst = Burst::default();
            for &chunk in chunks {
                burst.push(|out| packets.write_data(chunk, out));
            }
            self.receive(PRODUCER, &burst)?;
        }
        Ok(asked.len())
    }

    /// Fetches chunks that the store lacks, not faster than the device can write them.
    pub(super) fn fill(
        &mut self,
        packets: &Packets,
        chunks: impl Iterator<Item = ChunkId>,
    ) -> anyhow::Result<u64> {
        let mut chunks = chunks.peekable();
        let (mut burst, mut n_filled) = (Burst::default(), 0);
        while chunks.peek().is_some() {
            burst.clear();
            for chunk in chunks.by_ref().take(BURST_PKTS / 2) {
                self.ask(chunk, &mut burst);
            }
            self.receive(face_of(0), &burst)?;
            n_filled += self.produce(packets)? as u64;
            self.turn();
            while !self.bed.may_fill() {
                self.turn_or_wait();
            }
        }
        Ok(n_filled)
    }

    /// Requests that the device has.
    pub(super) fn n_in_flight(&self) -> usize {
        self.bed.n_in_flight()
    }

    /// Writes all that was offered, for good.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        let second = self.bed.engine.cs_mut().second_level();
        let ticket = second.context("there is one level")?.flush(now());
        while self.second()?.poll_flushed() != ticket {
            self.turn_or_wait();
        }
        Ok(())
    }

    /// Goes on until nothing is under way.
    pub(super) fn settle(&mut self) {
        while self.turn() || self.n_in_flight() > 0 {
            self.wait(Duration::from_millis(1));
        }
    }

    /// Takes requests to the device and completions back, once. Whether there were any.
    pub(super) fn turn(&mut self) -> bool {
        let at = now();
        let has_submitted = self.bed.exchange(at);
        self.bed.complete(at, MAX_COMPLETIONS) > 0 || has_submitted
    }

    /// Waits for the device, at most `limit`.
    pub(super) fn wait(&self, limit: Duration) {
        if let Some(fd) = self.bed.device().and_then(|device| device.wake_fd()) {
            wait_for(fd, limit);
        }
    }

    /// Takes a turn, and waits for the device if there was nothing to do.
    pub(super) fn turn_or_wait(&mut self) {
        if !self.turn() {
            self.wait(Duration::from_millis(5));
        }
    }

    /// Ends, with what is under way undone as far as it can be.
    pub(super) fn stop(self) {
        drop(self.bed);
    }

    /// Counts from zero again.
    pub(super) fn forget_sent(&mut self) {
        let sink = &mut self.bed.out;
        (sink.n_data, sink.n_bytes, sink.n_nacks) = (0, 0, 0);
    }

    /// Has no consumer wait for anything any more.
    pub(super) fn forget_ended(&mut self) {
        self.bed.out.n_ended.fill(0);
    }

    /// Checks that Interests still come to their end, of which the last did then.
    pub(super) fn check_alive(&self, last: MonoNs, n_pending: u64) -> anyhow::Result<()> {
        const LOST_AFTER: Duration = Duration::from_secs(10);
        let is_alive = now().saturating_since(last) < LOST_AFTER;
        ensure!(
            is_alive,
            "{n_pending} Interests were never answered; the device has {} requests; {:?}; {:?}; \
             {:?}",
            self.n_in_flight(),
            self.bed.engine.sizes(),
            self.bed.engine.counters(),
            self.second().map(SecondLevel::counters)
        );
        Ok(())
    }

    /// Checks that nothing was lost or refused since the store was made.
    pub(super) fn check_stored(&self, n_chunks: u64) -> anyhow::Result<()> {
        let counters = self.second()?.counters();
        let n_refused =
            counters.n_no_room + counters.n_unsuited + counters.n_lost + counters.n_dropped;
        ensure!(
            n_refused == 0 && counters.n_written + counters.n_known == n_chunks,
            "of {n_chunks} Data, {} were written and {n_refused} refused",
            counters.n_written
        );
        Ok(())
    }
}

/// Waits until a device has completions, at most `limit`.
pub(super) fn wait_for(fd: BorrowedFd<'_>, limit: Duration) {
    let limit = Timespec::try_from(limit).ok();
    // Woken for nothing, one looks and waits again.
    let _: Result<usize, io::Error> =
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], limit.as_ref()).map_err(Into::into);
}
