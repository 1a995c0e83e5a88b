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
//! name that is asked for all the time would never leave. What is held is bounded, by names
//! and by packets of each ([`OrderConfig`]); what finds no room is handed back, for the
//! caller to drop and count. A wait ends with what the worker's queue held at the mark.
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
    /// Names with packets held.
    pub n_names: usize,
    /// Packets held of each.
    pub n_packets: usize,
}

impl Default for OrderConfig {
    /// 16 names, as many as are tracked, of which as many packets wait as a queue of 100 has
    /// room for: those of a name with half of all traffic, when another such queue is
    /// drained. Choices of this module.
    fn default() -> Self {
        Self {
            n_changes: 16,
            n_names: 16,
            n_packets: 100,
        }
    }
}

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

#[derive(Clone, Debug)]
struct HeldName<T> {
    service: ServiceId,
    key: Key,
    packets: VecDeque<T>,
}

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
    /// The first `n_held_names` have packets.
    held: Vec<HeldName<T>>,
    n_held_names: usize,
}

impl<T> Order<T> {
    /// For queues of so many workers, numbered from 0, and homes of this version.
    ///
    /// # Panics
    /// If no change may be on its way.
    #[must_use]
    pub fn new(config: OrderConfig, n_workers: usize, version: u64) -> Self {
        assert!(config.n_changes > 0, "a change takes time");
        let held = (0..config.n_names).map(|_| HeldName {
            service: ServiceId::default(),
            key: Key(0),
            packets: VecDeque::with_capacity(config.n_packets),
        });
        Self {
            n_workers,
            version,
            in_effect: version,
            changes: VecDeque::with_capacity(config.n_changes),
            marks: VecDeque::with_capacity(config.n_changes * n_workers),
            held: held.collect(),
            n_held_names: 0,
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

    /// The latest version that is in effect: all that went to queues before is done.
    #[must_use]
    pub const fn in_effect(&self) -> u64 {
        self.in_effect
    }

    /// Whether no change is on its way and nothing is held: then each packet goes.
    #[inline]
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.changes.is_empty() && self.n_held_names == 0
    }

    /// Names with packets held.
    #[must_use]
    pub const fn n_held_names(&self) -> usize {
        self.n_held_names
    }

    /// Says what becomes of a packet. `homes` are those adopted, `done` has how many packets
    /// of each worker's queue are done. Takes time linear in the names held if there are
    /// any, and allocates nothing.
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
        if self.is_calm() {
            return Offer::Go(packet);
        }
        let held = &mut self.held[..self.n_held_names];
        if let Some(name) = (held.iter_mut()).find(|it| it.key == key && it.service == service) {
            if name.packets.len() == self.config.n_packets {
                return Offer::NoRoom(packet);
            }
            name.packets.push_back(packet);
            return Offer::Held;
        }
        if !self.must_wait(homes, service, key, done) {
            return Offer::Go(packet);
        }
        if self.n_held_names == self.held.len() || self.config.n_packets == 0 {
            return Offer::NoRoom(packet);
        }
        let name = &mut self.held[self.n_held_names];
        (name.service, name.key) = (service, key);
        name.packets.push_back(packet);
        self.n_held_names += 1;
        Offer::Held
    }

    /// Hands out what need not wait any more, with its home; packets of a name in order. To
    /// be called whenever packets may have been done, and before [`offer`](Self::offer) for
    /// a new burst. Takes time linear in the workers, and in the names held; allocates
    /// nothing.
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
        let mut idx = 0;
        while idx < self.n_held_names {
            let (service, key) = (self.held[idx].service, self.held[idx].key);
            if self.must_wait(homes, service, key, done) {
                idx += 1;
                continue;
            }
            let home = homes.home(service, key);
            for packet in self.held[idx].packets.drain(..) {
                out(home, service, key, packet);
            }
            self.n_held_names -= 1;
            self.held.swap(idx, self.n_held_names);
        }
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
