//! The simulator of Iqbal 2013, chapter 3: packets, a queue for each core, and a scheduler.
//!
//! Every packet stays with one core. A core works on its queue in order; a packet takes
//! what its service takes, and penalties ([`Penalties`]). The queue counts the packet that
//! is being worked on, and a packet that finds it full is dropped. Time is virtual and in
//! nanoseconds; the same packets and scheduler come to the same end.
//!
//! Since a core works in order and its next packet is known, when a packet will be done is
//! known when it arrives. Between arrivals, packets leave in the order of their times, over
//! all cores; a packet whose flow has had a later one leave before is out of order.
//!
//! With [`CoresConfig::order`], packets of a flow that moves are held until its former core
//! has done what it had, as the receiving threads of a router do, by the same code
//! ([`Order`]). A held packet takes a place of its new core's queue.
//!
//! With [`CoresConfig::restoration`], packets are numbered as they enter queues and leave in
//! this order ([`Restoration`]). A packet that is done and waits for an earlier one keeps its
//! place of its core's queue, which the core does not wait for.
//!
//! A scheduler may put cores to sleep ([`Scheduler::sleeping`]). One that wakes begins its first
//! packet [`CoresConfig::wake_ns`] later. How long cores slept is counted ([`SleepMeter`]).

use std::collections::VecDeque;

use tachonym_dispatch::baselines::Scheduler;
use tachonym_dispatch::restoration::{Restoration, TagScope};
use tachonym_dispatch::{Offer, Order, OrderConfig, ServiceLoad};

use crate::power::on_off::{CoreTime, SleepMeter};
use crate::service::{Penalties, ServiceModel};
use crate::traffic::{Packet, key_of};

/// A processor, and what it works on.
#[derive(Clone, Debug, PartialEq)]
pub struct CoresConfig {
    /// Cores.
    pub n_cores: usize,
    /// Packets of a queue, from 1 on. As published: 100.
    pub queue_pkts: usize,
    /// What packets of each service cost.
    pub services: Vec<ServiceModel>,
    /// What they cost beyond.
    pub penalties: Penalties,
    /// How often the scheduler hears of loads.
    pub interval_ns: u64,
    /// Whether, and within which bounds, packets of what moves are kept in order, if the
    /// scheduler tells what moves. As published, they are not.
    pub order: Option<OrderConfig>,
    /// Among which packets order is restored where they leave. As published, among none.
    pub restoration: Option<TagScope>,
    /// What a core takes to wake from deep sleep. As published: 200 µs (section 6.3.5).
    pub wake_ns: u64,
}

/// How often the scheduler hears of loads, where nothing else is said; the thesis names no
/// interval. A service of a million packets per second then has a thousand, which are known
/// to 3 %; by a hundred, known to 10 %, workers would come and go by chance. A full queue of
/// the slowest service is drained in as long.
pub const INTERVAL_NS: u64 = 1_000_000;

impl CoresConfig {
    /// Queues and penalties as published.
    #[must_use]
    pub const fn new(n_cores: usize, services: Vec<ServiceModel>) -> Self {
        Self {
            n_cores,
            queue_pkts: 100,
            services,
            penalties: Penalties::PUBLISHED,
            interval_ns: INTERVAL_NS,
            order: None,
            restoration: None,
            wake_ns: 200_000,
        }
    }
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that came.
    pub n_arrived: u64,
    /// Those that found a queue full.
    pub n_dropped: u64,
    /// Those that were done.
    pub n_departed: u64,
    /// Those that left after a later one of their flow.
    pub n_out_of_order: u64,
    /// Those that went to another core than their flow's packet before.
    pub n_moved: u64,
    /// Those whose core had worked for another service before.
    pub n_cold: u64,
    /// Those that were held until their flow's former core was done.
    pub n_held: u64,
    /// Those of the dropped ones that had to be held and found no room.
    pub n_dropped_unheld: u64,
    /// How long packets were held, all together.
    pub held_ns: u64,
    /// Those that were done and waited for an earlier one before they left.
    pub n_restored: u64,
    /// How long they waited, all together.
    pub restored_ns: u64,
    /// How long cores work on those that found room, all together.
    pub busy_ns: u64,
}

impl Counts {
    /// What came since.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            n_arrived: self.n_arrived - before.n_arrived,
            n_dropped: self.n_dropped - before.n_dropped,
            n_departed: self.n_departed - before.n_departed,
            n_out_of_order: self.n_out_of_order - before.n_out_of_order,
            n_moved: self.n_moved - before.n_moved,
            n_cold: self.n_cold - before.n_cold,
            n_held: self.n_held - before.n_held,
            n_dropped_unheld: self.n_dropped_unheld - before.n_dropped_unheld,
            held_ns: self.held_ns - before.held_ns,
            n_restored: self.n_restored - before.n_restored,
            restored_ns: self.restored_ns - before.restored_ns,
            busy_ns: self.busy_ns - before.busy_ns,
        }
    }
}

/// What an overloaded core's queue held when a flow moved off it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtMigration {
    /// When.
    pub at_ns: u64,
    /// Flows with packets in the queue.
    pub n_flows: u32,
    /// Those of them that are large.
    pub n_large: u32,
}

/// A packet that was numbered among its flow's, on its way to a core.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    packet: Packet,
    /// Which of its flow's packets that found room it is, from 1 on.
    nth: u32,
    core: u16,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    done_ns: u64,
    flow: u32,
    /// Which of its flow's packets that found room it is, from 1 on.
    nth: u32,
    /// Its number where order is restored.
    tag: u32,
    service: u8,
}

/// A packet that is done.
#[derive(Clone, Copy, Debug)]
struct Done {
    packet: Waiting,
    core: u16,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    n_accepted: u32,
    /// The latest of its packets that left.
    last_departed: u32,
    core: u16,
}

/// No packet of the flow came.
const NO_CORE: u16 = u16::MAX;
/// The queue is empty.
const NEVER: u64 = u64::MAX;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Cores<S> {
    config: CoresConfig,
    scheduler: S,
    queues: Vec<VecDeque<Waiting>>,
    lens: Vec<u32>,
    /// When the first packet of each queue will be done.
    heads_ns: Vec<u64>,
    /// When each core will have nothing to do, and for whom it worked last.
    idle_at_ns: Vec<u64>,
    sleep: SleepMeter,
    last_service: Vec<Option<u8>>,
    /// Packets that came into each queue, and that are done.
    queued: Vec<u64>,
    done: Vec<u64>,
    order: Option<Order<Numbered>>,
    released: Vec<Numbered>,
    restoration: Option<Restoration<Done>>,
    leaving: Vec<Done>,
    flows: Vec<Flow>,
    counts: Counts,
    by_service: Vec<Counts>,
    loads: Vec<ServiceLoad>,
    next_interval_ns: u64,
    large_flows: Option<u32>,
    migrations: Vec<AtMigration>,
    in_queue: Vec<u32>,
}

impl<S: Scheduler> Cores<S> {
    /// Cores with nothing to do, for flows numbered below `n_flows`.
    ///
    /// # Panics
    /// If there is no core, queues have no room, or intervals take no time.
    #[must_use]
    pub fn new(config: CoresConfig, mut scheduler: S, n_flows: usize) -> Self {
        assert!(config.n_cores > 0 && config.queue_pkts > 0 && config.interval_ns > 0);
        let n_cores = config.n_cores;
        let n_services = config.services.len();
        let flow = Flow {
            n_accepted: 0,
            last_departed: 0,
            core: NO_CORE,
        };
        let order = (config.order.zip(scheduler.homes()))
            .map(|(bounds, homes)| Order::new(bounds, n_cores, homes.version()));
        if order.is_none() {
            // Whatever changes is in effect at once.
            scheduler.handle_in_effect(u64::MAX);
        }
        Self {
            queued: vec![0; n_cores],
            done: vec![0; n_cores],
            order,
            released: Vec::new(),
            restoration: config.restoration.map(Restoration::new),
            leaving: Vec::new(),
            queues: vec![VecDeque::with_capacity(config.queue_pkts); n_cores],
            lens: vec![0; n_cores],
            heads_ns: vec![NEVER; n_cores],
            idle_at_ns: vec![0; n_cores],
            sleep: SleepMeter::new(n_cores),
            last_service: vec![None; n_cores],
            flows: vec![flow; n_flows],
            counts: Counts::default(),
            by_service: vec![Counts::default(); n_services],
            loads: vec![ServiceLoad::default(); n_services],
            next_interval_ns: config.interval_ns,
            large_flows: None,
            migrations: Vec::new(),
            in_queue: Vec::new(),
            config,
            scheduler,
        }
    }

    /// Notes from now on what queues hold when a flow moves off them. Flows numbered below
    /// `n_large` are large.
    pub const fn watch_migrations(&mut self, n_large: u32) {
        self.large_flows = Some(n_large);
    }

    /// A packet arrives, not before the one before.
    ///
    /// # Panics
    /// If there is no such flow or service, or the scheduler names no core.
    pub fn handle_packet(&mut self, packet: Packet) {
        while packet.at_ns >= self.next_interval_ns {
            self.depart_until(self.next_interval_ns);
            self.end_interval();
        }
        self.depart_until(packet.at_ns);
        let service = packet.service.idx();
        self.counts.n_arrived += 1;
        self.by_service[service].n_arrived += 1;
        let n_shifts = self.scheduler.n_shifts();
        let key = key_of(packet.flow);
        let core = (self.scheduler)
            .dispatch(packet.service, key, &self.lens)
            .idx();
        if self.large_flows.is_some() && self.scheduler.n_shifts() > n_shifts {
            self.note_migration(&packet);
        }
        self.adopt();
        if self.lens[core] as usize >= self.config.queue_pkts {
            self.drop_one(&packet);
            return;
        }
        self.lens[core] += 1;
        let flow = &mut self.flows[packet.flow as usize];
        let numbered = Numbered {
            packet,
            nth: flow.n_accepted + 1,
            core: core as u16,
        };
        let offer = match (&mut self.order, self.scheduler.homes()) {
            (Some(order), Some(homes)) if !order.is_calm() => {
                order.offer(homes, (packet.service, key), &self.done, numbered)
            }
            _ => Offer::Go(numbered),
        };
        match offer {
            Offer::Go(numbered) => {
                flow.n_accepted += 1;
                self.accept(numbered, packet.at_ns);
            }
            Offer::Held => {
                flow.n_accepted += 1;
                self.counts.n_held += 1;
                self.by_service[service].n_held += 1;
            }
            Offer::NoRoom(_) => {
                self.lens[core] -= 1;
                self.counts.n_dropped_unheld += 1;
                self.by_service[service].n_dropped_unheld += 1;
                self.drop_one(&packet);
            }
        }
    }

    fn drop_one(&mut self, packet: &Packet) {
        self.counts.n_dropped += 1;
        self.by_service[packet.service.idx()].n_dropped += 1;
    }

    /// Marks the queues if the scheduler changed something.
    #[inline]
    fn adopt(&mut self) {
        if let (Some(order), Some(homes)) = (&mut self.order, self.scheduler.homes()) {
            order.adopt(homes.version(), &self.queued);
        }
    }

    /// Lets packets go that need not be held any more, now that one is done.
    fn release(&mut self, now_ns: u64) {
        let (Some(order), Some(homes)) = (&mut self.order, self.scheduler.homes()) else {
            return;
        };
        let lens = &mut self.lens;
        let released = &mut self.released;
        released.clear();
        order.release(homes, &self.done, |home, _, _, mut numbered| {
            if home.0 != numbered.core {
                // The flow's new core has changed meanwhile, and its place with it.
                lens[usize::from(numbered.core)] -= 1;
                lens[home.idx()] += 1;
                numbered.core = home.0;
            }
            released.push(numbered);
        });
        let in_effect = order.in_effect();
        self.scheduler.handle_in_effect(in_effect);
        for nth in 0..self.released.len() {
            let numbered = self.released[nth];
            let (core, packet) = (usize::from(numbered.core), numbered.packet);
            if self.lens[core] as usize > self.config.queue_pkts {
                self.lens[core] -= 1;
                self.drop_one(&packet);
                continue;
            }
            let held_ns = now_ns - packet.at_ns;
            self.counts.held_ns += held_ns;
            self.by_service[packet.service.idx()].held_ns += held_ns;
            self.accept(numbered, now_ns);
        }
    }

    /// Puts a packet into the queue that keeps a place for it.
    fn accept(&mut self, numbered: Numbered, now_ns: u64) {
        let Numbered { packet, nth, core } = numbered;
        let core = usize::from(core);
        let service = packet.service.idx();
        let counts = &mut self.by_service[service];
        let flow = &mut self.flows[packet.flow as usize];
        let mut takes_ns = self.config.services[service].processing_ns(packet.bytes);
        if flow.core != core as u16 {
            if flow.core != NO_CORE {
                takes_ns += u64::from(self.config.penalties.flow_moved_ns);
                self.counts.n_moved += 1;
                counts.n_moved += 1;
            }
            flow.core = core as u16;
        }
        let last_service = self.last_service[core].replace(packet.service.0);
        if last_service.is_some_and(|last| last != packet.service.0) {
            takes_ns += u64::from(self.config.penalties.cold_code_ns);
            self.counts.n_cold += 1;
            counts.n_cold += 1;
        }
        self.counts.busy_ns += takes_ns;
        counts.busy_ns += takes_ns;
        let done_ns = self.idle_at_ns[core].max(now_ns) + takes_ns;
        self.idle_at_ns[core] = done_ns;
        let tag = (self.restoration.as_mut()).map(|it| it.tag(key_of(packet.flow)));
        self.queues[core].push_back(Waiting {
            done_ns,
            flow: packet.flow,
            nth,
            tag: tag.unwrap_or_default(),
            service: packet.service.0,
        });
        self.queued[core] += 1;
        self.heads_ns[core] = self.heads_ns[core].min(done_ns);
        self.loads[service].n_arrived += 1;
    }

    /// Has everything leave that is done by then.
    pub fn depart_until(&mut self, now_ns: u64) {
        loop {
            let mut first = (NEVER, 0);
            for (core, &head_ns) in self.heads_ns.iter().enumerate() {
                if head_ns < first.0 {
                    first = (head_ns, core);
                }
            }
            let (head_ns, core) = first;
            if head_ns > now_ns || head_ns == NEVER {
                return;
            }
            let Some(done) = self.queues[core].pop_front() else {
                return;
            };
            self.done[core] += 1;
            self.heads_ns[core] = self.queues[core].front().map_or(NEVER, |it| it.done_ns);
            let core = core as u16;
            let done = Done { packet: done, core };
            match &mut self.restoration {
                None => self.leave(done, head_ns),
                Some(restoration) => {
                    let key = key_of(done.packet.flow);
                    let leaving = &mut self.leaving;
                    restoration.handle_done((key, done.packet.tag), done, |it| leaving.push(it));
                    for nth in 0..self.leaving.len() {
                        self.leave(self.leaving[nth], head_ns);
                    }
                    self.leaving.clear();
                }
            }
            if self.order.as_ref().is_some_and(|order| !order.is_calm()) {
                self.release(head_ns);
            }
        }
    }

    /// Lets a packet go that is done.
    #[inline]
    fn leave(&mut self, Done { packet, core }: Done, now_ns: u64) {
        self.lens[usize::from(core)] -= 1;
        let service = usize::from(packet.service);
        let counts = &mut self.by_service[service];
        self.counts.n_departed += 1;
        counts.n_departed += 1;
        self.loads[service].n_departed += 1;
        if packet.done_ns < now_ns {
            let waited_ns = now_ns - packet.done_ns;
            self.counts.n_restored += 1;
            self.counts.restored_ns += waited_ns;
            counts.n_restored += 1;
            counts.restored_ns += waited_ns;
        }
        let flow = &mut self.flows[packet.flow as usize];
        if packet.nth < flow.last_departed {
            self.counts.n_out_of_order += 1;
            counts.n_out_of_order += 1;
        } else {
            flow.last_departed = packet.nth;
        }
    }

    fn end_interval(&mut self) {
        let now_ns = self.next_interval_ns;
        self.scheduler
            .handle_loads(now_ns, self.config.interval_ns, &mut self.loads, &self.lens);
        self.loads.fill(ServiceLoad::default());
        let asleep = self.scheduler.sleeping();
        let wake_ns = self.config.wake_ns;
        (self.sleep).set(asleep, now_ns, wake_ns, &mut self.idle_at_ns);
        self.adopt();
        self.next_interval_ns += self.config.interval_ns;
    }

    #[cold]
    fn note_migration(&mut self, packet: &Packet) {
        let from = self.flows[packet.flow as usize].core;
        if from == NO_CORE {
            return;
        }
        let queue = &self.queues[usize::from(from)];
        self.in_queue.clear();
        self.in_queue.extend(queue.iter().map(|it| it.flow));
        self.in_queue.sort_unstable();
        self.in_queue.dedup();
        let n_large = self.large_flows.unwrap_or_default();
        let is_large = |&&flow: &&u32| flow < n_large;
        self.migrations.push(AtMigration {
            at_ns: packet.at_ns,
            n_flows: self.in_queue.len() as u32,
            n_large: self.in_queue.iter().filter(is_large).count() as u32,
        });
    }

    /// What became of packets so far.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The same for each service.
    #[must_use]
    pub fn by_service(&self) -> &[Counts] {
        &self.by_service
    }

    /// How long cores were on and slept until `now_ns`, which is not before the last packet.
    #[must_use]
    pub fn core_time(&self, now_ns: u64) -> CoreTime {
        self.sleep.core_time(now_ns)
    }

    /// The scheduler.
    #[must_use]
    pub const fn scheduler(&self) -> &S {
        &self.scheduler
    }

    /// The most names that had tagged packets inside at the same time, where order is restored.
    #[must_use]
    pub fn n_names_tagged(&self) -> Option<usize> {
        self.restoration.as_ref().map(Restoration::most_names)
    }

    /// Packets of each core's queue.
    #[must_use]
    pub fn queue_lens(&self) -> &[u32] {
        &self.lens
    }

    /// What was noted of migrations: see [`watch_migrations`](Self::watch_migrations).
    #[must_use]
    pub fn migrations(&self) -> &[AtMigration] {
        &self.migrations
    }
}
