//! Order: packets of a name that moves to another worker follow those that went before.
//!
//! A receiving thread puts packets into queues, one for each worker, and knows how many it
//! put into each and how many of these are done. When it adopts homes of another version it
//! marks how far its queues are filled. As long as a worker has not done what stood before
//! the mark, packets of names that left the worker are held back by the receiving thread,
//! and go to their new home, in order, once it has. Other names are not concerned, and a
//! thread that adopts nothing new pays a comparison per packet.
//!
//! Why packets wait, and do not go on to the old home until that has none of the name: a
//! name that is asked for all the time would never leave. What is held is bounded, all
//! together and of each name ([`OrderConfig`]); what finds no room is handed back, for the
//! caller to drop and count. A wait ends with what the worker's queue held at the mark.
//!
//! Held packets stand in lanes, by their names' keys. A name that moves in a crowd, as when
//! a worker comes, may wait behind others of its lane, but never longer than the change
//! takes.
//!
//! With several receiving threads, each has an [`Order`] and queues of its own: what one
//! thread receives of a name leaves in its order. Changes are in effect everywhere up to
//! the least of the threads' [`in_effect`](Order::in_effect).

use std::collections::VecDeque;

use crate::{Homes, Key, ServiceId, WorkerId};

/// Bounds of an [`Order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderConfig {
    /// Changes that may be on their way, each with marks of its own, from 1 on. Further ones
    /// share the marks of the latest, which move on then.
    pub n_changes: usize,
    /// Packets held, up to 2^20.
    pub n_packets: usize,
    /// Packets held in one lane, and so at most of one name.
    pub n_of_lane: usize,
}

impl Default for OrderConfig {
    /// Of a name, as many packets as a queue of 100 has room for, and some; all together,
    /// what ten such queues have. Choices of this module.
    fn default() -> Self {
        Self {
            n_changes: 16,
            n_packets: 1_024,
            n_of_lane: 128,
        }
    }
}

/// Lanes of an [`Order`].
pub const N_LANES: usize = 256;

/// Most packets that an [`Order`] may hold.
const MAX_PACKETS: usize = 1 << 20;

/// No place.
const NONE: u32 = u32::MAX;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer<T> {
    /// It goes to its home now.
    Go(T),
    /// It is held, and comes out of [`Order::release`] later.
    Held,
    /// It must wait, and there is no room to hold it.
    NoRoom(T),
}

/// A place for a packet that is held; in a list of a lane's, or of empty ones.
#[derive(Clone, Debug)]
struct Place<T> {
    held: Option<(ServiceId, Key, T)>,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    first: u32,
    last: u32,
    len: u32,
}

const EMPTY: Lane = Lane {
    first: NONE,
    last: NONE,
    len: 0,
};

/// See the [module](self). Takes all memory when it is made.
#[derive(Clone, Debug)]
pub struct Order<T> {
    config: OrderConfig,
    n_workers: usize,
    /// The version adopted last, and the latest one in effect.
    version: u64,
    in_effect: u64,
    /// Versions that are not in effect, the oldest first.
    changes: VecDeque<u64>,
    /// For each of them, how many packets had been put into each worker's queue.
    marks: VecDeque<u64>,
    places: Vec<Place<T>>,
    /// The first empty place.
    free: u32,
    n_held: usize,
    lanes: Vec<Lane>,
    /// Which lanes have packets, a bit each.
    occupied: [u64; N_LANES / 64],
}

impl<T> Order<T> {
    /// For queues of so many workers, numbered from 0, and homes of this version.
    ///
    /// # Panics
    /// If no change may be on its way.
    #[must_use]
    pub fn new(config: OrderConfig, n_workers: usize, version: u64) -> Self {
        assert!(config.n_changes > 0, "a change takes time");
        let n_places = config.n_packets.min(MAX_PACKETS) as u32;
        let place = |nth: u32| Place {
            held: None,
            next: if nth + 1 < n_places { nth + 1 } else { NONE },
        };
        Self {
            n_workers,
            version,
            in_effect: version,
            changes: VecDeque::with_capacity(config.n_changes),
            marks: VecDeque::with_capacity(config.n_changes * n_workers),
            places: (0..n_places).map(place).collect(),
            free: if n_places > 0 { 0 } else { NONE },
            n_held: 0,
            lanes: vec![EMPTY; N_LANES],
            occupied: [0; N_LANES / 64],
            config,
        }
    }

    /// Takes note that packets are dispatched by homes of this version from now on.
    /// `queued` has how many packets were put into each worker's queue so far, by number.
    ///
    /// # Panics
    /// If there is a worker without a number.
    pub fn adopt(&mut self, version: u64, queued: &[u64]) {
        if version == self.version {
            return;
        }
        self.version = version;
        if self.changes.len() == self.config.n_changes {
            self.changes.pop_back();
            let others = self.marks.len() - self.n_workers;
            self.marks.truncate(others);
        }
        self.changes.push_back(version);
        self.marks.extend(&queued[..self.n_workers]);
    }

    /// Waits for a worker no longer: it died, and what its queue held will not be done.
    ///
    /// # Panics
    /// If the worker has no number here.
    pub fn forget(&mut self, worker: WorkerId) {
        assert!(worker.idx() < self.n_workers, "a worker with a queue");
        let marks = self.marks.iter_mut().skip(worker.idx());
        marks.step_by(self.n_workers).for_each(|mark| *mark = 0);
    }

    /// The latest version that is in effect: all that went to queues before is done.
    #[must_use]
    pub const fn in_effect(&self) -> u64 {
        self.in_effect
    }

    /// Whether no change is on its way and nothing is held: then each packet goes.
    #[inline]
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.changes.is_empty() && self.n_held == 0
    }

    /// Says what becomes of a packet. `homes` are those adopted, `done` has how many packets
    /// of each worker's queue are done. Takes time linear in the changes on their way, and
    /// allocates nothing.
    ///
    /// # Panics
    /// If there is a worker without a number.
    #[inline]
    pub fn offer(
        &mut self,
        homes: &Homes,
        (service, key): (ServiceId, Key),
        done: &[u64],
        packet: T,
    ) -> Offer<T> {
        let mut packet = Some(packet);
        let take = || packet.take().expect("taken once");
        match self.offer_made(homes, (service, key), done, take) {
            Offer::Held => Offer::Held,
            Offer::Go(()) => Offer::Go(packet.expect("not taken")),
            Offer::NoRoom(()) => Offer::NoRoom(packet.expect("not taken")),
        }
    }

    /// As [`offer`](Self::offer), but has the packet made by `make` only if it is held: for
    /// those that have to be copied for that.
    ///
    /// # Panics
    /// As [`offer`](Self::offer).
    #[inline]
    pub fn offer_made(
        &mut self,
        homes: &Homes,
        (service, key): (ServiceId, Key),
        done: &[u64],
        make: impl FnOnce() -> T,
    ) -> Offer<()> {
        if self.is_calm() {
            return Offer::Go(());
        }
        let lane_idx = lane_of(key);
        let lane = self.lanes[lane_idx];
        if lane.len == 0 && !self.must_wait(homes, service, key, done) {
            return Offer::Go(());
        }
        let place = self.free;
        if place == NONE || lane.len as usize >= self.config.n_of_lane {
            return Offer::NoRoom(());
        }
        let taken = &mut self.places[place as usize];
        self.free = taken.next;
        taken.next = NONE;
        taken.held = Some((service, key, make()));
        if lane.len == 0 {
            self.lanes[lane_idx].first = place;
            self.occupied[lane_idx / 64] |= 1 << (lane_idx % 64);
        } else {
            self.places[lane.last as usize].next = place;
        }
        self.lanes[lane_idx].last = place;
        self.lanes[lane_idx].len += 1;
        self.n_held += 1;
        Offer::Held
    }

    /// Hands out what need not wait any more, with its home; packets of a name in order. To
    /// be called whenever packets may have been done, and before [`offer`](Self::offer) for
    /// a new burst. Takes time linear in the workers and changes, and in the lanes that have
    /// packets; allocates nothing.
    ///
    /// # Panics
    /// If there is a worker without a number.
    pub fn release(
        &mut self,
        homes: &Homes,
        done: &[u64],
        mut out: impl FnMut(WorkerId, ServiceId, Key, T),
    ) {
        while !self.changes.is_empty()
            && (self.marks.iter().take(self.n_workers).zip(done)).all(|(mark, done)| mark <= done)
        {
            self.in_effect = self.changes.pop_front().unwrap_or(self.in_effect);
            self.marks.drain(..self.n_workers);
        }
        for word in 0..self.occupied.len() {
            let mut left = self.occupied[word];
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                self.release_lane(word * 64 + bit as usize, homes, done, &mut out);
            }
        }
    }

    fn release_lane(
        &mut self,
        lane_idx: usize,
        homes: &Homes,
        done: &[u64],
        out: &mut impl FnMut(WorkerId, ServiceId, Key, T),
    ) {
        loop {
            let first = self.lanes[lane_idx].first;
            let Some(place) = self.places.get(first as usize) else {
                break;
            };
            let Some((service, key, _)) = place.held else {
                break;
            };
            if self.must_wait(homes, service, key, done) {
                return;
            }
            let place = &mut self.places[first as usize];
            let held = place.held.take();
            let next = std::mem::replace(&mut place.next, self.free);
            self.free = first;
            self.lanes[lane_idx].first = next;
            self.lanes[lane_idx].len -= 1;
            self.n_held -= 1;
            if let Some((service, key, packet)) = held {
                out(homes.home(service, key), service, key, packet);
            }
        }
        self.lanes[lane_idx] = EMPTY;
        self.occupied[lane_idx / 64] &= !(1 << (lane_idx % 64));
    }

    /// Whether a worker that a name has left may still have packets of it to do.
    fn must_wait(&self, homes: &Homes, service: ServiceId, key: Key, done: &[u64]) -> bool {
        let Some((former, version)) = homes.moved_since(service, key, self.in_effect) else {
            return false;
        };
        // The first adopted version that has the change; if none has, it is not adopted.
        let Some(nth) = self.changes.iter().position(|&adopted| adopted >= version) else {
            return false;
        };
        let marks = nth * self.n_workers;
        former
            .into_iter()
            .filter(|worker| worker.idx() < self.n_workers)
            .any(|worker| done[worker.idx()] < self.marks[marks + worker.idx()])
    }
}

#[inline]
const fn lane_of(key: Key) -> usize {
    // Bits that neither maps nor tables begin with.
    (key.spread() >> 8) as usize % N_LANES
}
