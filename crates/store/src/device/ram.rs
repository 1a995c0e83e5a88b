//! A device in memory, for tests: nothing happens but in its calls, everything in an order
//! that a seed decides, and it fails as it is told.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use tachonym_packet::MonoNs;

use super::check::{Checked, check, complete};
use super::{Completion, Device, Op, Request};

/// What a disk writes wholly or not at all, in bytes.
pub const SECTOR_BYTES: usize = 512;

/// Requests that one takes unless told otherwise.
const N_REQUESTS: usize = 128;

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does nothing, and ends with this error of the system (`errno`).
    Error(i32),
    /// Only so many bytes, rounded down to [`SECTOR_BYTES`], are read or written, if more
    /// were to be.
    Short(u32),
    /// It never ends.
    Stall,
    /// This bit of what is read or written, counted round and round, is the wrong one.
    Flip(u64),
}

/// A fault of some requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// Of requests of this kind,
    pub op: Op,
    /// after so many that are submitted from now on,
    pub skip: u64,
    /// so many, `u64::MAX` for all,
    pub times: u64,
    /// have this fault.
    pub fault: Fault,
}

/// Which sectors that were written, but not synced, are there after a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// All.
    All,
    /// So many, those that were written first; of each volume.
    First(usize),
    /// Any, chosen by this seed.
    Some(u64),
}

/// Volumes in memory.
///
/// Requests are carried out in [`Device::poll`]: all that have been started, in their order,
/// or, with a [seed](Ram::with_seed), some of them, at least one, in any order. A write is
/// then visible to reads, and survives a loss of power once a sync that was submitted later
/// has ended.
#[derive(Debug)]
pub struct Ram {
    volumes: Vec<Image>,
    /// Those that have been submitted; the first `n_started` have been started.
    under_way: VecDeque<UnderWay>,
    n_started: usize,
    stalled: Vec<Request>,
    ended: Vec<Completion>,
    injections: Vec<Injection>,
    order: Option<Seed>,
    capacity: usize,
    /// Sectors that can yet be written before the power is cut.
    n_sectors_left: u64,
}

#[derive(Debug)]
struct Image {
    /// What reads see.
    now: Vec<u8>,
    /// What would be there after a loss of power, but for `unsynced`.
    synced: Vec<u8>,
    /// What was written since, in order, by the byte where it begins.
    unsynced: VecDeque<(usize, [u8; SECTOR_BYTES])>,
    /// Sectors that were written before those in `unsynced`.
    n_synced: u64,
}

#[derive(Debug)]
struct UnderWay {
    request: Request,
    len: u32,
    fault: Option<Fault>,
    /// For a sync: how many sectors of the volume it covers.
    n_covered: u64,
}

impl Ram {
    /// Volumes of zeros, of so many bytes, rounded down to 4,096.
    #[must_use]
    pub fn new(volume_bytes: &[usize]) -> Self {
        Self::from_image(volume_bytes.iter().map(|&bytes| vec![0; bytes]).collect())
    }

    /// Volumes that hold this, each cut to a multiple of 4,096 bytes.
    #[must_use]
    pub fn from_image(image: Vec<Vec<u8>>) -> Self {
        let volume = |mut now: Vec<u8>| {
            now.truncate(now.len() - now.len() % tachonym_memory::IO_ALIGN);
            Image {
                synced: now.clone(),
                now,
                unsynced: VecDeque::new(),
                n_synced: 0,
            }
        };
        Self {
            volumes: image.into_iter().map(volume).collect(),
            under_way: VecDeque::new(),
            n_started: 0,
            stalled: Vec::new(),
            ended: Vec::new(),
            injections: Vec::new(),
            order: None,
            capacity: N_REQUESTS,
            n_sectors_left: u64::MAX,
        }
    }

    /// Has requests end in an order that `seed` decides, not all with one poll.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.order = Some(Seed(seed));
        self
    }

    /// Takes up to so many requests at a time.
    #[must_use]
    pub fn with_capacity(mut self, n_requests: usize) -> Self {
        self.capacity = n_requests;
        self
    }

    /// Has requests that are submitted from now on fail. Of several faults for one request
    /// the one that was injected first counts.
    pub fn inject(&mut self, injection: Injection) {
        self.injections.push(injection);
    }

    /// Cuts the power once `n_sectors` more sectors of [`SECTOR_BYTES`] have been written, on
    /// all volumes together; at once for 0. From then on nothing is written, and no request
    /// ends.
    pub fn cut_power_after(&mut self, n_sectors: u64) {
        self.n_sectors_left = n_sectors;
    }

    /// Whether the power has been cut.
    #[must_use]
    pub fn power_is_off(&self) -> bool {
        self.n_sectors_left == 0
    }

    /// Inverts the bits of `mask` in a byte of a volume, where it lies.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn corrupt(&mut self, volume: u8, offset: usize, mask: u8) {
        let volume = &mut self.volumes[usize::from(volume)];
        volume.now[offset] ^= mask;
        volume.synced[offset] ^= mask;
        for (start, bytes) in &mut volume.unsynced {
            if let Some(byte) = offset.checked_sub(*start).and_then(|i| bytes.get_mut(i)) {
                *byte ^= mask;
            }
        }
    }

    /// What the volumes hold for who reads them now: what is found after an orderly end.
    #[must_use]
    pub fn image(&self) -> Vec<Vec<u8>> {
        self.volumes
            .iter()
            .map(|volume| volume.now.clone())
            .collect()
    }

    /// What is found if the power is lost now, or was.
    #[must_use]
    pub fn image_after_power_loss(&self, survivors: Survivors) -> Vec<Vec<u8>> {
        let mut seed = match survivors {
            Survivors::Some(seed) => Seed(seed),
            Survivors::All | Survivors::First(_) => Seed(0),
        };
        let image = |volume: &Image| {
            let mut image = volume.synced.clone();
            for (i, (start, bytes)) in volume.unsynced.iter().enumerate() {
                let survives = match survivors {
                    Survivors::All => true,
                    Survivors::First(n_sectors) => i < n_sectors,
                    Survivors::Some(_) => seed.below(2) == 0,
                };
                if survives {
                    image[*start..start + SECTOR_BYTES].copy_from_slice(bytes);
                }
            }
            image
        };
        self.volumes.iter().map(image).collect()
    }

    /// Sectors that were written and not synced, of a volume.
    ///
    /// # Panics
    /// If there is no such volume.
    #[must_use]
    pub fn n_unsynced_sectors(&self, volume: u8) -> usize {
        self.volumes[usize::from(volume)].unsynced.len()
    }

    /// The fault of a request of this kind that is submitted now.
    fn next_fault(&mut self, op: Op) -> Option<Fault> {
        let mut fault = None;
        for injection in &mut self.injections {
            if injection.op != op {
                continue;
            }
            if injection.skip > 0 {
                injection.skip -= 1;
            } else if injection.times > 0 && fault.is_none() {
                injection.times = match injection.times {
                    u64::MAX => u64::MAX,
                    times => times - 1,
                };
                fault = Some(injection.fault);
            }
        }
        fault
    }

    /// Carries out a request; `None` if it does not end.
    fn carry_out(&mut self, under_way: UnderWay) -> Option<Completion> {
        let UnderWay {
            mut request,
            len,
            fault,
            n_covered,
        } = under_way;
        let len = match fault {
            Some(Fault::Stall) => {
                self.stalled.push(request);
                return None;
            }
            Some(Fault::Error(errno)) => {
                let error = io::Error::from_raw_os_error(errno);
                return Some(complete(request, Err(error)));
            }
            Some(Fault::Short(keep)) => len.min(keep - keep % SECTOR_BYTES as u32),
            Some(Fault::Flip(_)) | None => len,
        };
        let volume = &mut self.volumes[usize::from(request.volume)];
        let (start, end) = match request.op {
            Op::Sync => (0, 0),
            _ => (
                request.offset as usize,
                request.offset as usize + len as usize,
            ),
        };
        let flip = |bytes: &mut [u8]| {
            if let (Some(Fault::Flip(bit)), false) = (fault, bytes.is_empty()) {
                let bit = bit % (bytes.len() as u64 * 8);
                bytes[bit as usize / 8] ^= 1 << (bit % 8);
            }
        };
        match (request.op, &mut request.buffer) {
            (Op::Read, Some(buffer)) => {
                let to = &mut buffer.as_mut_slice()[..len as usize];
                to.copy_from_slice(&volume.now[start..end]);
                flip(to);
            }
            (Op::Write, Some(buffer)) => {
                let mut bytes = buffer.as_slice()[..len as usize].to_vec();
                flip(&mut bytes);
                let (sectors, _) = bytes.as_chunks::<SECTOR_BYTES>();
                for (i, sector) in sectors.iter().enumerate() {
                    let at = start + i * SECTOR_BYTES;
                    volume.now[at..at + SECTOR_BYTES].copy_from_slice(sector);
                    volume.unsynced.push_back((at, *sector));
                    if self.n_sectors_left != u64::MAX {
                        self.n_sectors_left -= 1;
                    }
                    if self.n_sectors_left == 0 {
                        self.stalled.push(request);
                        return None;
                    }
                }
            }
            (Op::Sync, _) => volume.sync(n_covered),
            (Op::Read | Op::Write, None) => unreachable!("checked when it was submitted"),
        }
        Some(complete(request, Ok(len)))
    }
}

impl Image {
    /// Makes the first `n_covered` sectors that were ever written durable.
    fn sync(&mut self, n_covered: u64) {
        while self.n_synced < n_covered {
            let (start, bytes) = self
                .unsynced
                .pop_front()
                .expect("n_covered counts written sectors");
            self.synced[start..start + SECTOR_BYTES].copy_from_slice(&bytes);
            self.n_synced += 1;
        }
    }
}

impl Device for Ram {
    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.n_in_flight() >= self.capacity {
            return Err(request);
        }
        let volume = self.volumes.get(usize::from(request.volume));
        let (bytes, n_covered) = match volume {
            Some(volume) => (
                Some(volume.now.len() as u64),
                volume.n_synced + volume.unsynced.len() as u64,
            ),
            None => (None, 0),
        };
        match check(&request, bytes) {
            Checked::Do(len) => {
                let fault = self.next_fault(request.op);
                self.under_way.push_back(UnderWay {
                    request,
                    len,
                    fault,
                    n_covered,
                });
            }
            Checked::Ended(outcome) => self.ended.push(complete(request, outcome)),
        }
        Ok(())
    }

    fn start(&mut self) {
        self.n_started = self.under_way.len();
    }

    fn poll(&mut self, _: MonoNs, completions: &mut Vec<Completion>) {
        if self.power_is_off() {
            return;
        }
        completions.append(&mut self.ended);
        let mut n_to_do = self.n_started as u64;
        if let Some(order) = &mut self.order
            && n_to_do > 0
        {
            n_to_do = 1 + order.below(n_to_do);
        }
        for _ in 0..n_to_do {
            let i = match &mut self.order {
                Some(order) => order.below(self.n_started as u64) as usize,
                None => 0,
            };
            let next = self
                .under_way
                .remove(i)
                .expect("i is below the number under way");
            self.n_started -= 1;
            completions.extend(self.carry_out(next));
            if self.power_is_off() {
                return;
            }
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn next_poll(&self) -> Option<MonoNs> {
        let has_some = self.n_started > 0 || !self.ended.is_empty();
        (has_some && !self.power_is_off()).then_some(MonoNs::ZERO)
    }

    fn n_in_flight(&self) -> usize {
        self.under_way.len() + self.stalled.len() + self.ended.len()
    }
}

/// Numbers that look random, the same for the same seed (SplitMix64; Steele, Lea and Flood
/// 2014).
#[derive(Debug)]
struct Seed(u64);

impl Seed {
    /// A number below `bound`, which is not zero; a little less often one of the larger ones.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
