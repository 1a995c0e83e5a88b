//! What a thread does that receives packets: it takes each to the worker where its name is
//! at home.
//!
//! Packets of a name leave in the order in which this thread has received them, wherever
//! the name moves meanwhile: those of names on their way wait here until the former home has
//! done what it had ([`Order`]). Of every so many packets one is shown to the scheduler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};
use tachonym_dispatch::order::{Offer, Order, OrderConfig};
use tachonym_dispatch::{Key, ServiceId, WorkerId};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, PacketView, types};

use crate::batch::{Crossing, Parcel};
use crate::dispatcher::Dispatcher;
use crate::links::Links;

/// Samples that may wait for the scheduler; further ones are not taken.
const MAX_SAMPLES: usize = 1_024;

/// How a thread receives.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// Of how many packets one is shown to the scheduler, at least 1.
    pub sample_every: u32,
    /// Most packets in a ring to a worker, above which further ones for it are dropped.
    pub max_queue_pkts: u32,
    /// How many packets may wait until a name has moved.
    pub order: OrderConfig,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            sample_every: 16,
            max_queue_pkts: 1_024,
            order: OrderConfig::default(),
        }
    }
}

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The face that brought it.
    pub face: FaceId,
    /// Its link-layer headers.
    pub headers: &'a Headers,
    /// The packet.
    pub wire: &'a [u8],
    /// A prefix announcement that came with it.
    pub announcement: Option<&'a [u8]>,
}

impl<'a> Received<'a> {
    /// Whether it is a Data or a Nack, going by its first byte.
    fn is_answer(&self) -> bool {
        self.headers.nack.is_some() || self.wire.first() == Some(&(types::DATA as u8))
    }

    fn parcel(self) -> Parcel<'a> {
        Parcel {
            crossing: Crossing::Arrived,
            face: self.face,
            headers: self.headers,
            wire: self.wire,
            announcement: self.announcement,
            served: &[],
        }
    }
}

/// Where a received packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is for this thread's own worker.
    Own,
    /// It is in a ring, or waits here until its name has moved.
    Sent,
    /// It is dropped, and counted: the worker has as many waiting as it may.
    Dropped,
    /// It has no name that can be read; it is for the caller to count.
    Malformed,
}

/// What a receiver has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Packets that went to other threads.
    pub n_crossed: u64,
    /// Packets dropped since their worker had as many under way as it may: part of those that
    /// [links count](Links::n_dropped).
    pub n_queue_full: u64,
    /// Packets dropped since too many waited for names to move.
    pub n_order_full: u64,
    /// Packets that have waited for a name to move.
    pub n_held: u64,
}

/// A packet that waits for its name to have moved.
#[derive(Debug)]
struct Held {
    face: FaceId,
    headers: Headers,
    wire: Vec<u8>,
    announcement: Option<Vec<u8>>,
}

/// What a receiver tells the scheduler, written once a burst by it alone.
#[derive(Debug)]
#[repr(align(64))]
struct Status {
    in_effect: AtomicU64,
    queue_lens: Box<[AtomicU32]>,
}

/// What the scheduler sees of a receiver.
#[derive(Debug)]
pub struct ReceiverView {
    status: Arc<Status>,
    samples: Consumer<(ServiceId, Key)>,
    /// Packets of which each sample is one.
    sample_every: u32,
}

/// See the module.
#[derive(Debug)]
pub struct Receiver {
    /// The worker of this thread, if it has one.
    own: Option<WorkerId>,
    dispatcher: Dispatcher,
    config: ReceiverConfig,
    order: Order<Box<Held>>,
    status: Arc<Status>,
    samples: Producer<(ServiceId, Key)>,
    n_until_sample: u32,
    /// By worker: packets put into its ring so far, and done of them.
    queued: Vec<u64>,
    done: Vec<u64>,
    /// Packets of names that have moved, for this thread's own worker.
    released: Vec<Held>,
    counters: ReceiverCounters,
}

impl Receiver {
    /// A receiver, and what the scheduler sees of it. `own` is the worker of the thread, if
    /// it has one: its packets cross no ring.
    #[must_use]
    pub fn new(
        own: Option<WorkerId>,
        n_workers: usize,
        dispatcher: Dispatcher,
        config: ReceiverConfig,
    ) -> (Self, ReceiverView) {
        let version = dispatcher.homes().version();
        let status = Arc::new(Status {
            in_effect: AtomicU64::new(version),
            queue_lens: (0..n_workers).map(|_| AtomicU32::new(0)).collect(),
        });
        let (samples, seen) = RingBuffer::new(MAX_SAMPLES);
        let view = ReceiverView {
            status: status.clone(),
            samples: seen,
            sample_every: config.sample_every.max(1),
        };
        let receiver = Self {
            own,
            order: Order::new(config.order, n_workers, version),
            dispatcher,
            config,
            status,
            samples,
            n_until_sample: config.sample_every.max(1),
            queued: vec![0; n_workers],
            done: vec![0; n_workers],
            released: Vec::new(),
            counters: ReceiverCounters::default(),
        };
        (receiver, view)
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Begins a burst: [observes](Self::observe) and [releases](Self::release).
    pub fn begin(
        &mut self,
        links: &mut Links,
        n_unread: u32,
        handle_own: impl FnMut(Received<'_>),
    ) {
        self.observe(links);
        self.release(links, n_unread, handle_own);
    }

    /// Sees what workers have done, and takes the latest homes.
    ///
    /// What workers have sent back for what they have done is in the rings then: whoever sends
    /// it on before [`release`](Self::release) keeps the order of what leaves, too.
    pub fn observe(&mut self, links: &mut Links) {
        for worker in (0..self.queued.len()).filter(|&idx| Some(idx) != self.own.map(WorkerId::idx))
        {
            (self.queued[worker], self.done[worker]) = links.progress(WorkerId(worker as u16));
        }
        if self.dispatcher.refresh() {
            let version = self.dispatcher.homes().version();
            self.order.adopt(version, &self.queued);
        }
    }

    /// Sends what has waited for names that have moved. What of that is for this thread's own
    /// worker `handle_own` gets. `n_unread` is how many packets wait to be received by this
    /// thread, as far as can be told: its own worker has to see to them, or to what they keep
    /// it from.
    pub fn release(
        &mut self,
        links: &mut Links,
        n_unread: u32,
        mut handle_own: impl FnMut(Received<'_>),
    ) {
        if self.order.is_calm() {
            return self.report(n_unread);
        }
        let Self {
            order,
            dispatcher,
            config,
            done,
            own,
            released,
            counters,
            ..
        } = self;
        order.release(dispatcher.homes(), done, |worker, _, _, held| {
            if Some(worker) == *own {
                released.push(*held);
            } else {
                send(links, worker, &held.received(), config, counters);
            }
        });
        for held in released.drain(..) {
            handle_own(held.received());
        }
        self.report(n_unread);
    }

    /// Whether nothing waits here for names to move. As long as something does,
    /// [`begin`](Self::begin) is to be called every now and then.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.order.is_calm()
    }

    /// Waits for a worker no longer: it died with what its ring held.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn forget(&mut self, worker: WorkerId) {
        self.order.forget(worker);
    }

    /// Takes a packet to its home.
    pub fn take(&mut self, received: Received<'_>, links: &mut Links) -> Taken {
        // One to be sampled goes by its name, which tells what it is.
        if received.is_answer()
            && self.order.is_calm()
            && self.n_until_sample > 1
            && let Some(home) = self
                .dispatcher
                .by_token(received.headers.pit_token.as_ref())
        {
            self.n_until_sample -= 1;
            return self.send(home, &received, links);
        }
        let Ok(name) = PacketView::name_of(received.wire) else {
            return Taken::Malformed;
        };
        let (key, home) = self.dispatcher.place(name);
        let Some(key) = key else {
            return self.send(home, &received, links);
        };
        self.n_until_sample -= 1;
        if self.n_until_sample == 0 {
            self.n_until_sample = self.config.sample_every.max(1);
            // One that finds no room is as good as one that was not taken.
            let _ = self.samples.push(key);
        }
        if self.order.is_calm() {
            return self.send(home, &received, links);
        }
        let Self {
            order,
            dispatcher,
            done,
            ..
        } = self;
        let copy = || Box::new(Held::of(&received));
        match order.offer_made(dispatcher.homes(), key, done, copy) {
            Offer::Go(()) => self.send(home, &received, links),
            Offer::Held => {
                self.counters.n_held += 1;
                Taken::Sent
            }
            Offer::NoRoom(()) => {
                self.counters.n_order_full += 1;
                Taken::Dropped
            }
        }
    }

    fn send(&mut self, home: WorkerId, received: &Received<'_>, links: &mut Links) -> Taken {
        if Some(home) == self.own {
            return Taken::Own;
        }
        match send(links, home, received, &self.config, &mut self.counters) {
            true => Taken::Sent,
            false => Taken::Dropped,
        }
    }

    /// Tells the scheduler how long queues are.
    fn report(&self, n_unread: u32) {
        let lens = self
            .queued
            .iter()
            .zip(&self.done)
            .map(|(queued, done)| queued - done);
        for (told, len) in self.status.queue_lens.iter().zip(lens) {
            told.store(u32::try_from(len).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
        if let Some(own) = self.own {
            self.status.queue_lens[own.idx()].store(n_unread, Ordering::Relaxed);
        }
        let in_effect = self.order.in_effect();
        self.status.in_effect.store(in_effect, Ordering::Release);
    }
}

/// Puts a packet into the ring to a worker, unless that has too many; whether it did, which
/// is counted.
fn send(
    links: &mut Links,
    worker: WorkerId,
    received: &Received<'_>,
    config: &ReceiverConfig,
    counters: &mut ReceiverCounters,
) -> bool {
    if links.n_under_way(worker) >= u64::from(config.max_queue_pkts) {
        counters.n_queue_full += 1;
        links.refuse(worker, &received.parcel());
        return false;
    }
    // What finds no room then is counted by the links.
    let is_sent = links.push(worker, &received.parcel());
    counters.n_crossed += u64::from(is_sent);
    is_sent
}

impl Held {
    fn of(received: &Received<'_>) -> Self {
        Self {
            face: received.face,
            headers: *received.headers,
            wire: received.wire.to_vec(),
            announcement: received.announcement.map(<[u8]>::to_vec),
        }
    }

    fn received(&self) -> Received<'_> {
        Received {
            face: self.face,
            headers: &self.headers,
            wire: &self.wire,
            announcement: self.announcement.as_deref(),
        }
    }
}

impl ReceiverView {
    /// The latest homes whose changes are in effect for what this receiver receives.
    pub(crate) fn in_effect(&self) -> u64 {
        self.status.in_effect.load(Ordering::Acquire)
    }

    /// Adds how many packets it has under way to each worker.
    pub(crate) fn add_queue_lens(&self, lens: &mut [u32]) {
        for (len, own) in lens.iter_mut().zip(&self.status.queue_lens) {
            *len = len.saturating_add(own.load(Ordering::Relaxed));
        }
    }

    /// Of how many packets each sample is one.
    pub(crate) const fn sample_every(&self) -> u64 {
        self.sample_every as u64
    }

    /// The next sample.
    pub(crate) fn next_sample(&mut self) -> Option<(ServiceId, Key)> {
        self.samples.pop().ok()
    }
}
