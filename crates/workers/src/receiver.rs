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
use tachonym_forward::{RxKind, RxPacket};
use tachonym_packet::{HashedNames, NameHash};

use crate::batch::{Batch, Parcel};
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
    /// Each packet that waits for its name to have moved is a batch.
    order: Order<Box<Batch>>,
    status: Arc<Status>,
    samples: Producer<(ServiceId, Key)>,
    n_until_sample: u32,
    /// By worker: packets put into its ring so far, and done of them.
    queued: Vec<u64>,
    done: Vec<u64>,
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
    pub fn begin(&mut self, links: &mut Links, n_unread: u32, handle_own: impl FnMut(&Parcel<'_>)) {
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
        mut handle_own: impl FnMut(&Parcel<'_>),
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
            counters,
            ..
        } = self;
        order.release(dispatcher.homes(), done, |worker, _, _, held| {
            for parcel in held.iter() {
                if Some(worker) == *own {
                    handle_own(&parcel);
                } else {
                    send(links, worker, &parcel, config, counters);
                }
            }
        });
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

    /// Takes the packets of a burst to their homes. What is left in `burst` is for this thread's
    /// own worker, as far as `admits` lets it pass; `names` has the hashes of just these then.
    pub fn take(
        &mut self,
        burst: &mut Vec<RxPacket<'_>>,
        names: &mut HashedNames,
        links: &mut Links,
        mut admits: impl FnMut(&RxPacket<'_>) -> bool,
    ) {
        self.dispatcher
            .hash(names, burst.iter().map(RxPacket::name));
        let mut n_own = 0;
        for idx in 0..burst.len() {
            let packet = &burst[idx];
            if self.is_own(packet, names.get(idx), links) && admits(packet) {
                burst[n_own] = burst[idx];
                names.replace(n_own, idx);
                n_own += 1;
            }
        }
        burst.truncate(n_own);
        names.truncate(n_own);
    }

    /// Whether a packet is for this thread's own worker; if not, it is sent to another one,
    /// held, or dropped and counted.
    #[inline]
    fn is_own(&mut self, packet: &RxPacket<'_>, hashes: &[NameHash], links: &mut Links) -> bool {
        let is_answer = !matches!(packet.packet, RxKind::Interest(_));
        // One to be sampled goes by its name, which tells what it is.
        if is_answer
            && self.order.is_calm()
            && self.n_until_sample > 1
            && let Some(home) = self.dispatcher.by_token(packet.headers.pit_token.as_ref())
        {
            self.n_until_sample -= 1;
            return self.is_own_or_sent(home, packet, hashes, links);
        }
        let (key, home) = self.dispatcher.place(packet.name(), hashes);
        let Some(key) = key else {
            return self.is_own_or_sent(home, packet, hashes, links);
        };
        self.n_until_sample -= 1;
        if self.n_until_sample == 0 {
            self.n_until_sample = self.config.sample_every.max(1);
            // One that finds no room is as good as one that was not taken.
            let _ = self.samples.push(key);
        }
        if self.order.is_calm() {
            return self.is_own_or_sent(home, packet, hashes, links);
        }
        let Self {
            order,
            dispatcher,
            done,
            ..
        } = self;
        let copy = || {
            let mut held = Box::new(Batch::new());
            held.push(&Parcel::arrived(packet, hashes));
            held
        };
        match order.offer_made(dispatcher.homes(), key, done, copy) {
            Offer::Go(()) => return self.is_own_or_sent(home, packet, hashes, links),
            Offer::Held => self.counters.n_held += 1,
            Offer::NoRoom(()) => self.counters.n_order_full += 1,
        }
        false
    }

    #[inline]
    fn is_own_or_sent(
        &mut self,
        home: WorkerId,
        packet: &RxPacket<'_>,
        hashes: &[NameHash],
        links: &mut Links,
    ) -> bool {
        let is_own = Some(home) == self.own;
        if !is_own {
            let parcel = Parcel::arrived(packet, hashes);
            send(links, home, &parcel, &self.config, &mut self.counters);
        }
        is_own
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

/// Puts a packet into the ring to a worker, or drops and counts it if that has too many.
fn send(
    links: &mut Links,
    worker: WorkerId,
    parcel: &Parcel<'_>,
    config: &ReceiverConfig,
    counters: &mut ReceiverCounters,
) {
    if links.n_under_way(worker) >= u64::from(config.max_queue_pkts) {
        counters.n_queue_full += 1;
        return links.refuse(worker, parcel);
    }
    // What finds no room then is counted by the links.
    counters.n_crossed += u64::from(links.push(worker, parcel));
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
