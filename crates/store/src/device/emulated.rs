//! A device that is not there: of any size and speed, after Mansilha et al. 2017, section 3.2
//! and Table 1.
//!
//! What is read comes from memory, or is made when it is read, and a transfer takes the time
//! that a throughput says (equation 1: its bytes over the throughput), one after another.

use std::collections::VecDeque;
use std::fmt;
use std::hint::black_box;
use std::mem;
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::{Duration, Instant};

use tachonym_packet::MonoNs;

use super::check::{Checked, check, complete};
use super::{Completion, Device, Op, Request};

/// Requests that one takes unless told otherwise.
const N_REQUESTS: usize = 128;

/// What a volume holds that is kept nowhere.
pub trait Content: Send {
    /// Writes what is at `offset` of `volume` to all of `buffer`.
    fn fill(&mut self, volume: u8, offset: u64, buffer: &mut [u8]);
}

/// Where what is read comes from (section 3.2.1).
pub enum Contents {
    /// From memory that was allocated before: these volumes, whose lengths are multiples of
    /// 4,096 bytes, or are cut so. What is written is kept.
    Static(Vec<Vec<u8>>),
    /// From `content`, into memory that is allocated for every read and freed after it, so
    /// that volumes may have any size. What is written is forgotten.
    Dynamic {
        /// What makes it.
        content: Box<dyn Content>,
        /// Bytes that the volumes have, rounded down to 4,096.
        volume_bytes: Vec<u64>,
    },
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static(volumes) => write!(f, "Static of {} volumes", volumes.len()),
            Self::Dynamic { volume_bytes, .. } => write!(f, "Dynamic of {volume_bytes:?} bytes"),
        }
    }
}

/// How the time of a transfer passes (section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// [`Device::start`] reads the clock until it is over: precise, and nothing else runs on
    /// that core.
    Busy,
    /// [`Device::start`] sleeps: nothing is wasted, but the system wakes it late.
    Sleep,
    /// Beside whatever else is done, as with a device that is there: a request ends in the
    /// first [`Device::poll`] after its time, which [`Device::next_poll`] tells.
    Deferred,
}

/// Volumes of a size and throughput that no disk here has.
///
/// Its clock is its own. With [`Waiting::Deferred`] what [`Device::next_poll`] tells is in
/// terms of the caller's: of the `now` of the latest [`Device::poll`], plus what was left then.
#[derive(Debug)]
pub struct Emulated {
    contents: Contents,
    waiting: Waiting,
    /// `None` if transfers take no time.
    bits_per_s: Option<u64>,
    capacity: usize,
    queued: VecDeque<(Request, u32)>,
    /// Started, and when each ends, in order.
    under_way: VecDeque<(Request, u32, Instant)>,
    ended: Vec<Completion>,
    /// When the latest transfer ends.
    busy_until: Instant,
    /// The two clocks, read at the same time.
    clocks: Option<(MonoNs, Instant)>,
}

impl Emulated {
    /// One whose volumes together transfer `bits_per_s` bits a second, or any number at once
    /// if that is `None`.
    #[must_use]
    pub fn new(contents: Contents, waiting: Waiting, bits_per_s: Option<u64>) -> Self {
        let align = tachonym_memory::IO_ALIGN;
        let mut contents = contents;
        match &mut contents {
            Contents::Static(volumes) => {
                for bytes in volumes {
                    bytes.truncate(bytes.len() - bytes.len() % align);
                }
            }
            Contents::Dynamic { volume_bytes, .. } => {
                for bytes in volume_bytes {
                    *bytes -= *bytes % align as u64;
                }
            }
        }
        Self {
            contents,
            waiting,
            bits_per_s,
            capacity: N_REQUESTS,
            queued: VecDeque::new(),
            under_way: VecDeque::new(),
            ended: Vec::new(),
            busy_until: Instant::now(),
            clocks: None,
        }
    }

    /// Takes up to so many requests at a time.
    #[must_use]
    pub fn with_capacity(mut self, n_requests: usize) -> Self {
        self.capacity = n_requests;
        self
    }

    /// How long a transfer takes (equation 1).
    #[must_use]
    pub fn transfer_time(&self, bytes: u32) -> Duration {
        let Some(bits_per_s) = self.bits_per_s else {
            return Duration::ZERO;
        };
        let ns = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(bits_per_s.max(1));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    fn volume_bytes(&self, volume: u8) -> Option<u64> {
        let volume = usize::from(volume);
        match &self.contents {
            Contents::Static(volumes) => volumes.get(volume).map(|bytes| bytes.len() as u64),
            Contents::Dynamic { volume_bytes, .. } => volume_bytes.get(volume).copied(),
        }
    }

    /// Moves the bytes of a request.
    fn transfer(&mut self, request: &mut Request, len: u32) {
        let len = len as usize;
        let (volume, offset) = (request.volume, request.offset);
        let Some(buffer) = &mut request.buffer else {
            return;
        };
        match (&mut self.contents, request.op) {
            (Contents::Static(volumes), Op::Read) => {
                let from = &volumes[usize::from(volume)][offset as usize..][..len];
                buffer.as_mut_slice()[..len].copy_from_slice(from);
            }
            (Contents::Static(volumes), Op::Write) => {
                let to = &mut volumes[usize::from(volume)][offset as usize..][..len];
                to.copy_from_slice(&buffer.as_slice()[..len]);
            }
            (Contents::Dynamic { content, .. }, Op::Read) => {
                // Allocated by hand, and not kept from being so by a clever compiler: it is
                // what this way costs.
                let mut made = black_box(vec![0; len]);
                content.fill(volume, offset, &mut made);
                buffer.as_mut_slice()[..len].copy_from_slice(&made);
            }
            (Contents::Dynamic { .. }, Op::Write) | (_, Op::Sync) => {}
        }
    }

    /// Ends what was submitted by waiting for it.
    fn wait_for_queued(&mut self) {
        for (mut request, len) in mem::take(&mut self.queued) {
            let start = Instant::now();
            let time = self.transfer_time(len);
            self.transfer(&mut request, len);
            match self.waiting {
                Waiting::Sleep => thread::sleep(time.saturating_sub(start.elapsed())),
                Waiting::Busy | Waiting::Deferred => {
                    while start.elapsed() < time {
                        std::hint::spin_loop();
                    }
                }
            }
            self.ended.push(complete(request, Ok(len)));
        }
    }
}

impl Device for Emulated {
    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.n_in_flight() >= self.capacity {
            return Err(request);
        }
        match check(&request, self.volume_bytes(request.volume)) {
            Checked::Do(len) => self.queued.push_back((request, len)),
            Checked::Ended(outcome) => self.ended.push(complete(request, outcome)),
        }
        Ok(())
    }

    fn start(&mut self) {
        if self.waiting != Waiting::Deferred {
            self.wait_for_queued();
            return;
        }
        if self.queued.is_empty() {
            return;
        }
        self.busy_until = self.busy_until.max(Instant::now());
        for (request, len) in mem::take(&mut self.queued) {
            self.busy_until += self.transfer_time(len);
            self.under_way.push_back((request, len, self.busy_until));
        }
    }

    fn poll(&mut self, now: MonoNs, completions: &mut Vec<Completion>) {
        completions.append(&mut self.ended);
        if self.waiting != Waiting::Deferred {
            return;
        }
        let clock = Instant::now();
        self.clocks = Some((now, clock));
        while let Some((mut request, len, _)) =
            self.under_way.pop_front_if(|(_, _, end)| *end <= clock)
        {
            self.transfer(&mut request, len);
            completions.push(complete(request, Ok(len)));
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn next_poll(&self) -> Option<MonoNs> {
        if !self.ended.is_empty() {
            return Some(MonoNs::ZERO);
        }
        let (_, _, end) = self.under_way.front()?;
        let Some((now, clock)) = self.clocks else {
            return Some(MonoNs::ZERO);
        };
        let left = end.saturating_duration_since(clock).as_nanos();
        Some(MonoNs(now.0.saturating_add(left as u64)))
    }

    fn n_in_flight(&self) -> usize {
        self.queued.len() + self.under_way.len() + self.ended.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tachonym_memory::{IO_ALIGN, IoBuffer};

    fn read(token: u64, offset: u64, n_blocks: u32) -> Request {
        Request {
            token,
            volume: 0,
            op: Op::Read,
            offset,
            len: n_blocks * IO_ALIGN as u32,
            buffer: IoBuffer::new(n_blocks as usize * IO_ALIGN, 0).ok(),
        }
    }

    fn content() -> Contents {
        Contents::Static(vec![vec![3; 64 * IO_ALIGN]])
    }

    /// Each block holds its own number.
    struct Numbers;

    impl Content for Numbers {
        fn fill(&mut self, volume: u8, offset: u64, buffer: &mut [u8]) {
            for (i, block) in buffer.chunks_mut(IO_ALIGN).enumerate() {
                let number = offset / IO_ALIGN as u64 + i as u64;
                block.fill(volume);
                block[..8].copy_from_slice(&number.to_le_bytes());
            }
        }
    }

    #[test]
    fn a_transfer_takes_its_bytes_over_the_throughput() {
        let at = |bits_per_s| Emulated::new(content(), Waiting::Deferred, bits_per_s);
        // A batch of ten chunks of 8 KiB at 4 Gbit/s, the paper's default.
        let batch = at(Some(4_000_000_000)).transfer_time(81_920);
        assert_eq!(batch, Duration::from_nanos(163_840));
        assert_eq!(
            at(Some(64_000_000_000)).transfer_time(81_920).as_nanos(),
            10_240
        );
        assert_eq!(at(None).transfer_time(u32::MAX), Duration::ZERO);
        assert!(at(Some(0)).transfer_time(u32::MAX) > Duration::from_secs(3600));
    }

    #[test]
    fn requests_take_their_time_one_after_another() {
        // 4 KiB take 100 us.
        let rate = Some(IO_ALIGN as u64 * 8 * 10_000);
        for waiting in [Waiting::Busy, Waiting::Sleep, Waiting::Deferred] {
            let mut device = Emulated::new(content(), waiting, rate);
            for token in 0..3 {
                device.submit(read(token, 0, 5)).unwrap();
            }
            let start = Instant::now();
            device.start();
            if waiting == Waiting::Deferred {
                assert_eq!(device.under_way.len(), 3);
                let ends = device.under_way.iter().map(|(_, _, end)| *end);
                let ends: Vec<_> = ends.collect();
                assert_eq!(ends[1] - ends[0], Duration::from_micros(500));
                assert_eq!(ends[2] - ends[1], Duration::from_micros(500));
            }
            let mut ended = Vec::new();
            while ended.len() < 3 {
                device.poll(MonoNs::ZERO, &mut ended);
            }
            // Never early, however late.
            assert!(
                start.elapsed() >= Duration::from_micros(1500),
                "{waiting:?}"
            );
            let tokens = ended.iter().map(|ended| ended.token);
            assert!(tokens.eq(0..3), "{waiting:?}");
            let is_all = |byte| {
                ended.iter().all(|ended| {
                    ended
                        .buffer
                        .as_ref()
                        .unwrap()
                        .as_slice()
                        .iter()
                        .all(|&b| b == byte)
                })
            };
            assert!(is_all(3));
        }
    }

    #[test]
    fn the_next_poll_is_told_on_the_clock_of_the_caller() {
        // 4 KiB take an hour.
        let rate = Some(IO_ALIGN as u64 * 8 / 3600);
        let mut device = Emulated::new(content(), Waiting::Deferred, rate);
        assert_eq!(device.next_poll(), None);
        device.submit(read(0, 0, 1)).unwrap();
        assert_eq!(device.next_poll(), None, "nothing was started");
        device.start();
        assert_eq!(
            device.next_poll(),
            Some(MonoNs::ZERO),
            "the clock is not known yet"
        );
        let mut ended = Vec::new();
        let now = MonoNs(5_000_000_000);
        device.poll(now, &mut ended);
        assert!(ended.is_empty());
        let (_, _, end) = device.under_way[0];
        let next = device.next_poll().unwrap().saturating_since(now);
        assert_eq!(next, end - device.clocks.unwrap().1);
        assert!(next > Duration::from_secs(3000), "{next:?}");
        // Dropped with a request under way: nothing to wait for.
    }

    #[test]
    fn a_terabyte_is_made_as_it_is_read() {
        let contents = Contents::Dynamic {
            content: Box::new(Numbers),
            volume_bytes: vec![1 << 40, 100],
        };
        let mut device = Emulated::new(contents, Waiting::Busy, None);
        let last = (1_u64 << 28) - 2;
        let mut written = read(1, last * IO_ALIGN as u64, 2);
        written.op = Op::Write;
        device.submit(written).unwrap();
        // Passes the end by a block.
        device.submit(read(2, last * IO_ALIGN as u64, 3)).unwrap();
        let mut small = read(3, 0, 1);
        small.volume = 1;
        device.submit(small).unwrap();
        device.start();
        let mut ended = Vec::new();
        device.poll(MonoNs::ZERO, &mut ended);
        ended.sort_by_key(|ended| ended.token);
        let lengths = ended.iter().map(|ended| *ended.outcome.as_ref().unwrap());
        let lengths: Vec<_> = lengths.collect();
        assert_eq!(lengths, [2 * IO_ALIGN as u32, 2 * IO_ALIGN as u32, 0]);
        let bytes = ended[1].buffer.as_ref().unwrap().as_slice();
        assert_eq!(bytes[..8], last.to_le_bytes());
        assert_eq!(bytes[IO_ALIGN..][..8], (last + 1).to_le_bytes());
    }
}
