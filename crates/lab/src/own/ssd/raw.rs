//! The device alone: the store's requests without the store.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tachonym_bench::stats::Histogram;
use tachonym_memory::{IO_ALIGN, IoBuffer};
use tachonym_packet::MonoNs;
use tachonym_store::device::{Completion, Device, Op, Request, Volume};

use super::disk;
use super::rig::{now, process_cpu_ns, wait_for};
use tachonym_bench::random::Random;

/// Reads a volume.
pub(super) struct Raw {
    device: Box<dyn Device>,
    /// As in the store, the one that was read into longest ago is the next.
    free: VecDeque<IoBuffer>,
    read_bytes: usize,
    volume_bytes: u64,
    next: u64,
    completions: Vec<Completion>,
}

/// Rate and cost of some reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRead {
    pub(super) mib_per_s: f64,
    pub(super) cpu_us_per_read: f64,
}

impl Raw {
    /// Reads of `read_bytes`, rounded up to what a device takes, `depth` at a time, of the
    /// first `used_bytes` of a volume: what was never written costs no reading.
    pub(super) fn new(
        (volume, used_bytes): (Volume, u64),
        read_bytes: usize,
        depth: usize,
    ) -> anyhow::Result<Self> {
        let read_bytes = read_bytes.next_multiple_of(IO_ALIGN);
        let used_bytes = used_bytes.min(volume.bytes());
        let volume_bytes = used_bytes / read_bytes as u64 * read_bytes as u64;
        ensure!(volume_bytes > 0, "less was written than one read takes");
        let free = IoBuffer::many(0..depth as u16, read_bytes)?;
        let (device, _) = disk::open(volume, &free, depth)?;
        Ok(Self {
            device,
            free: free.into(),
            read_bytes,
            volume_bytes,
            next: 0,
            completions: Vec::new(),
        })
    }

    /// Bytes of each read.
    pub(super) const fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    fn submit(&mut self, offset: u64, token: u64) {
        let request = Request {
            token,
            volume: 0,
            op: Op::Read,
            offset,
            len: self.read_bytes as u32,
            buffer: self.free.pop_front(),
        };
        // There are as many places as buffers.
        let refused = self.device.submit(request);
        debug_assert!(refused.is_ok(), "a place for each buffer");
    }

    /// Takes what has ended: tells each token. Whether there was any.
    fn poll(&mut self, mut ended: impl FnMut(u64)) -> anyhow::Result<bool> {
        self.device.start();
        self.device.poll(now(), &mut self.completions);
        let has_any = !self.completions.is_empty();
        for completion in self.completions.drain(..) {
            let n_bytes = completion.outcome.context("the disk failed")?;
            ensure!(n_bytes as usize == self.read_bytes, "a read ended short");
            self.free.extend(completion.buffer);
            ended(completion.token);
        }
        Ok(has_any)
    }

    fn wait(&self, limit: Duration) {
        if let Some(fd) = self.device.wake_fd() {
            wait_for(fd, limit);
        }
    }

    /// Reads in order, as much as it can, for `time` or until `max_bytes`.
    pub(super) fn read_in_order(
        &mut self,
        time: Duration,
        max_bytes: u64,
    ) -> anyhow::Result<RawRead> {
        let (begun, cpu_begun) = (now(), process_cpu_ns());
        let max_reads = max_bytes.div_ceil(self.read_bytes as u64);
        let (mut n_begun, mut n_reads) = (0, 0_u64);
        loop {
            let is_over = now().saturating_since(begun) >= time || n_begun >= max_reads;
            while !is_over && !self.free.is_empty() && n_begun < max_reads {
                let offset = self.next;
                self.next = (offset + self.read_bytes as u64) % self.volume_bytes;
                self.submit(offset, 0);
                n_begun += 1;
            }
            if !self.poll(|_| n_reads += 1)? {
                if is_over && self.device.n_in_flight() == 0 {
                    break;
                }
                self.wait(Duration::from_millis(5));
            }
        }
        let elapsed = now().saturating_since(begun);
        Ok(RawRead {
            mib_per_s: (n_reads * self.read_bytes as u64) as f64
                / f64::from(1 << 20)
                / elapsed.as_secs_f64(),
            cpu_us_per_read: (process_cpu_ns() - cpu_begun) as f64 / 1e3 / n_reads.max(1) as f64,
        })
    }

    /// Reads here and there, as much as it can; reads a second.
    pub(super) fn saturate(&mut self, time: Duration, random: &mut Random) -> anyhow::Result<f64> {
        let begun = now();
        let mut n_reads = 0_u64;
        loop {
            let is_over = now().saturating_since(begun) >= time;
            while !is_over && !self.free.is_empty() {
                let offset = self.anywhere(random);
                self.submit(offset, 0);
            }
            if !self.poll(|_| n_reads += 1)? {
                if is_over && self.device.n_in_flight() == 0 {
                    break;
                }
                self.wait(Duration::from_millis(5));
            }
        }
        Ok(n_reads as f64 / now().saturating_since(begun).as_secs_f64())
    }

    fn anywhere(&self, random: &mut Random) -> u64 {
        let n_places = self.volume_bytes / self.read_bytes as u64;
        random.next_u64() % n_places * self.read_bytes as u64
    }

    /// Reads here and there at times that are given, whatever has ended; how long each took
    /// from when it was to begin.
    pub(super) fn read_at(
        &mut self,
        times: &[MonoNs],
        random: &mut Random,
    ) -> anyhow::Result<Histogram> {
        let mut histogram = Histogram::default();
        let mut waiting: VecDeque<usize> = VecDeque::new();
        let (mut n_due, mut n_ended) = (0, 0);
        while n_ended < times.len() {
            let at = now();
            while times.get(n_due).is_some_and(|&due| due <= at) {
                waiting.push_back(n_due);
                n_due += 1;
            }
            while let (Some(&first), false) = (waiting.front(), self.free.is_empty()) {
                waiting.pop_front();
                let offset = self.anywhere(random);
                self.submit(offset, first as u64);
            }
            let mut ended = Vec::new();
            self.poll(|token| ended.push(token as usize))?;
            let at = now();
            for idx in ended {
                histogram.record(at.saturating_since(times[idx]).as_nanos() as u64);
                n_ended += 1;
            }
        }
        Ok(histogram)
    }
}
