//! A router's engine with its second level and their device, driven by one thread as the
//! router does it, without faces: packets come from memory, and go nowhere.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Output, RxPacket};
use tachonym_packet::lp::{Headers, PitToken};
use tachonym_packet::{
    FaceId, HashKey, HashKind, InterestRewrite, InterestView, MonoNs, NackReason, NameView,
    PacketView,
};
use tachonym_policy::{AdmissionKind, EvictionKind, PolicyConfig};
use tachonym_store::device::{Completion, Device, Opened, Volume};
use tachonym_store::layout::Superblock;
use tachonym_store::{Beginning, Config, SecondLevel};
use tachonym_tables::{CsCapacity, FibConfig, NextHop};

use super::disk;
use super::packets::{ChunkId, Packets, chunk_of};
use crate::engine_bed::workload::Burst;

/// The first of those who ask.
const CONSUMER: FaceId = FaceId(256);
/// Who answers what the store does not.
const PRODUCER: FaceId = FaceId(1_024);

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

/// Counts what the engine sends, and reads each cache line of it, as whoever copies it would.
#[derive(Debug, Default)]
pub(super) struct Sink {
    /// Data to those who ask, and their bytes.
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
        let consumer = (face.0 - CONSUMER.0) as usize;
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
    /// Who asks; each has a face.
    pub(super) n_consumers: u16,
    /// The second level's.
    pub(super) config: Config,
}

/// See the module.
pub(super) struct Rig {
    pub(super) engine: Engine,
    device: Option<Box<dyn Device>>,
    pub(super) opened: Option<Opened>,
    pub(super) sink: Sink,
    completions: Vec<Completion>,
    nonce: u32,
}

impl Rig {
    /// With one level alone.
    pub(super) fn new(options: &RigOptions) -> anyhow::Result<Self> {
        let config = EngineConfig {
            cs: CsCapacity {
                max_pkts: options.l1_pkts,
                // The number of packets is to be what bounds it.
                max_bytes: options.l1_pkts * 10_240 + (64 << 20),
            },
            cs_policy: PolicyConfig::new(
                options.admission,
                EvictionKind::default(),
                options.l1_pkts,
            ),
            fib: FibConfig::with_max_entries(1_024),
            ..EngineConfig::default()
        };
        let key = HashKey::new(HashKind::fastest(), &[7; 32]);
        let mut engine = Engine::new(config, key, 3)?;
        engine.add_face(PRODUCER, FaceTraits::REMOTE);
        for consumer in 0..options.n_consumers {
            engine.add_face(face_of(consumer), FaceTraits::REMOTE);
        }
        engine.add_next_hop(NameView::parse_value(&[])?, NextHop::new(PRODUCER, 0))?;
        Ok(Self {
            engine,
            device: None,
            opened: None,
            sink: Sink {
                n_ended: vec![0; options.n_consumers.into()],
                reads: true,
                ..Sink::default()
            },
            completions: Vec::new(),
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
        rig.engine.set_second_level(Some(second));
        rig.device = Some(device);
        rig.opened = Some(opened);
        Ok(rig)
    }

    /// The second level.
    pub(super) fn second(&self) -> anyhow::Result<&SecondLevel> {
        self.engine.second_level().context("there is one level")
    }

    /// Writes the Interest for a chunk into a burst.
    pub(super) fn ask(&mut self, chunk: ChunkId, burst: &mut Burst) {
        self.nonce = self.nonce.wrapping_mul(0x9E37_79B1).wrapping_add(1);
        burst.push(|out| Packets::write_interest(chunk, self.nonce, out));
    }

    /// Receives a burst of Interests from a consumer, or of Data from the producer.
    pub(super) fn receive(&mut self, face: FaceId, burst: &Burst) -> anyhow::Result<()> {
        let headers = Headers::default();
        let mut rx = Vec::with_capacity(burst.len());
        for wire in burst.iter() {
            let packet = RxPacket::new(face, &headers, PacketView::parse(wire)?);
            rx.push(packet.context("a packet without headers makes sense")?);
        }
        self.engine.handle_burst(now(), &rx, &mut self.sink);
        Ok(())
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
        let packet = RxPacket::new(face_of(0), &headers, PacketView::parse(wire)?);
        let packet = packet.context("a packet with a token makes sense")?;
        self.engine.handle_burst(now(), &[packet], &mut self.sink);
        Ok(())
    }

    /// Has the producer answer what it was asked for. How many Data.
    pub(super) fn produce(&mut self, packets: &Packets) -> anyhow::Result<usize> {
        let asked = std::mem::take(&mut self.sink.upstream);
        for chunks in asked.chunks(BURST_PKTS) {
            let mut burst = Burst::default();
            for &chunk in chunks {
                burst.push(|out| packets.write_data(chunk, out));
            }
            self.receive(PRODUCER, &burst)?;
        }
        Ok(asked.len())
    }

    /// Fetches chunks that nobody has yet, not faster than the device can write them.
    pub(super) fn fill(
        &mut self,
        packets: &Packets,
        chunks: impl Iterator<Item = ChunkId>,
    ) -> anyhow::Result<u64> {
        const MAX_WRITES: usize = 4;
        // They take a part of the memory in which batches are put together.
        const MAX_WAITING: u64 = 2_000;
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
            while self.n_in_flight() > MAX_WRITES || self.n_waiting() > MAX_WAITING {
                self.turn_or_wait();
            }
        }
        Ok(n_filled)
    }

    /// Data that the store has taken, and not begun to write.
    fn n_waiting(&self) -> u64 {
        self.engine.second_level().map_or(0, |second| {
            let counters = second.counters();
            counters.n_offered - counters.n_ended()
        })
    }

    /// Requests that the device has.
    pub(super) fn n_in_flight(&self) -> usize {
        self.device
            .as_ref()
            .map_or(0, |device| device.n_in_flight())
    }

    /// Writes all that was offered, for good.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        let second = self.engine.second_level_mut();
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
        let (Some(device), Some(second)) = (&mut self.device, self.engine.second_level_mut())
        else {
            return false;
        };
        let mut has_worked = false;
        while let Some(request) = second.poll_request() {
            if let Err(request) = device.submit(request) {
                second.give_back(request);
                break;
            }
            has_worked = true;
        }
        if has_worked {
            device.start();
        }
        let at = now();
        device.poll(at, &mut self.completions);
        let n = self.completions.len().min(MAX_COMPLETIONS);
        for completion in self.completions.drain(..n) {
            has_worked = true;
            self.engine
                .handle_completion(at, completion, &mut self.sink);
        }
        if self.engine.poll_timeout().is_some_and(|due| due <= at) {
            self.engine.handle_timeout(at, &mut self.sink);
        }
        has_worked
    }

    /// Waits for the device, no longer than so.
    pub(super) fn wait(&self, limit: Duration) {
        if let Some(fd) = self.device.as_ref().and_then(|device| device.wake_fd()) {
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
        drop(self.device);
    }

    /// Counts from zero again.
    pub(super) fn forget_sent(&mut self) {
        (self.sink.n_data, self.sink.n_bytes, self.sink.n_nacks) = (0, 0, 0);
    }

    /// Has no consumer wait for anything any more.
    pub(super) fn forget_ended(&mut self) {
        self.sink.n_ended.fill(0);
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
            self.engine.sizes(),
            self.engine.counters(),
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

/// The face of a consumer.
pub(super) const fn face_of(consumer: u16) -> FaceId {
    FaceId(CONSUMER.0 + consumer as u64)
}

/// Waits until a device has something to tell, no longer than so.
pub(super) fn wait_for(fd: BorrowedFd<'_>, limit: Duration) {
    let limit = Timespec::try_from(limit).ok();
    // Woken for nothing, one looks and waits again.
    let _: Result<usize, io::Error> =
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], limit.as_ref()).map_err(Into::into);
}
