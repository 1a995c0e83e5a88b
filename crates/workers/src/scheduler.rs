//! Who decides where names are at home, for all receivers.
//!
//! One thread asks it every millisecond or so to look at samples and queues. It moves names
//! off overloaded workers, and publishes what changed. A name's former homes are remembered
//! until no Interest of their time is pending any more.

use std::collections::VecDeque;

use tachonym_dispatch::{Homes, Laps, Publisher, Reader, ServiceId, ServiceLoad};
use tachonym_packet::MonoNs;

use crate::dispatcher::is_settled;
use crate::receiver::ReceiverView;

/// Most samples that are looked at in one go: what came in a millisecond, and some.
const MAX_SAMPLES_AT_ONCE: usize = 8_192;

/// How long loads of services are measured before workers may change service.
const INTERVAL_NS: u64 = 100_000_000;

/// Changes that are waited for apart from each other.
const MAX_SETTLING: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct Scheduler {
    laps: Laps,
    publisher: Publisher,
    receivers: Vec<ReceiverView>,
    /// By worker: how many packets are under way to it.
    queue_lens: Vec<u32>,
    /// The longest time that an Interest stays pending, in milliseconds.
    lifetime_ms: u64,
    /// Versions in effect, each a new one, and until when Interests of the time before are
    /// pending.
    settling: VecDeque<(u64, MonoNs)>,
    n_samples: u64,
    /// By service: packets that have come in this interval, as far as samples tell.
    n_arrived: Vec<u64>,
    interval_began: MonoNs,
}

impl Scheduler {
    /// Schedules for `n_workers` by what `receivers` tell; `publisher` is whom their
    /// dispatchers read from. Interests stay pending for `lifetime_ms` at most.
    #[must_use]
    pub fn new(
        laps: Laps,
        n_workers: usize,
        publisher: Publisher,
        receivers: Vec<ReceiverView>,
        lifetime_ms: u64,
    ) -> Self {
        Self {
            n_arrived: vec![0; laps.homes().n_services()],
            interval_began: MonoNs::ZERO,
            laps,
            publisher,
            receivers,
            queue_lens: vec![0; n_workers],
            lifetime_ms,
            settling: VecDeque::new(),
            n_samples: 0,
        }
    }

    /// Schedules from now on by what these receivers tell.
    pub fn set_receivers(&mut self, receivers: Vec<ReceiverView>) {
        self.receivers = receivers;
    }

    /// Looks at what has come since, and how long queues are; how many names move for it.
    pub fn tick(&mut self, now: MonoNs) -> usize {
        for receiver in &mut self.receivers {
            for _ in 0..MAX_SAMPLES_AT_ONCE {
                let Some((service, key)) = receiver.next_sample() else {
                    break;
                };
                self.n_samples += 1;
                self.n_arrived[service.idx()] += receiver.sample_every();
                self.laps.handle_sample(service, key);
            }
        }
        let in_effect = self.receivers.iter().map(ReceiverView::in_effect).min();
        if let Some(in_effect) = in_effect {
            self.laps.handle_in_effect(in_effect);
            self.settle(now, in_effect);
        }
        self.queue_lens.fill(0);
        for receiver in &self.receivers {
            receiver.add_queue_lens(&mut self.queue_lens);
        }
        self.allocate(now);
        let n_moved = self.laps.handle_queue_lengths(&self.queue_lens);
        self.publish();
        n_moved
    }

    /// Publishes what has been changed by [`laps_mut`](Self::laps_mut).
    pub fn publish(&mut self) {
        self.publisher.publish(self.laps.homes());
    }

    /// Passes workers between services as their loads demand, every now and then.
    fn allocate(&mut self, now: MonoNs) {
        let interval_ns = now.saturating_since(self.interval_began).as_nanos() as u64;
        if self.n_arrived.len() < 2 || interval_ns < INTERVAL_NS {
            return;
        }
        // The first one began before there was anything.
        if self.interval_began != MonoNs::ZERO {
            let services = (0..).map(ServiceId).zip(&self.n_arrived);
            let loads: Vec<_> = services
                .map(|(service, &n_arrived)| ServiceLoad {
                    n_arrived,
                    n_departed: n_arrived,
                    mean_queue: self.laps.mean_queue(service, &self.queue_lens),
                })
                .collect();
            self.laps.handle_interval(now.0, interval_ns, &loads);
        }
        self.n_arrived.fill(0);
        self.interval_began = now;
    }

    /// Whether all receivers have taken the latest homes, and what they had dispatched by
    /// former ones is done.
    #[must_use]
    pub fn is_in_effect(&self) -> bool {
        let mut in_effect = self.receivers.iter().map(ReceiverView::in_effect);
        in_effect.all(|version| version >= self.homes().version())
    }

    /// Forgets former homes at which nothing can be pending any more.
    fn settle(&mut self, now: MonoNs, in_effect: u64) {
        if self
            .settling
            .back()
            .is_none_or(|&(version, _)| version < in_effect)
        {
            if self.settling.len() == MAX_SETTLING {
                // The latest one waits longer instead.
                self.settling.pop_back();
            }
            let until = now.plus_ms(self.lifetime_ms);
            self.settling.push_back((in_effect, until));
        }
        let n_settled = self.settling.partition_point(|&(_, until)| until <= now);
        // The last one stays: it tells which versions are not new.
        if let Some(n_gone) = n_settled.checked_sub(1).filter(|&n_gone| n_gone > 0) {
            let (version, _) = self.settling[n_gone];
            if !is_settled(self.laps.homes()) {
                self.laps.settle(version);
            }
            self.settling.drain(..n_gone);
        }
    }

    /// Packets under way to each worker, by number, when it was last looked.
    #[must_use]
    pub fn queue_lens(&self) -> &[u32] {
        &self.queue_lens
    }

    /// Samples that were looked at so far.
    #[must_use]
    pub const fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// What a worker or receiver that is made later finds homes by.
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.publisher.reader()
    }

    /// What decides.
    #[must_use]
    pub const fn laps(&self) -> &Laps {
        &self.laps
    }

    /// What decides, to be told by an operator; known to receivers after the next
    /// [`publish`](Self::publish) or [`tick`](Self::tick).
    pub const fn laps_mut(&mut self) -> &mut Laps {
        &mut self.laps
    }

    /// Where names are at home.
    #[must_use]
    pub const fn homes(&self) -> &Homes {
        self.laps.homes()
    }
}
