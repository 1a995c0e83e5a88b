//! A worker: an engine, and what it does with packets that concern others too.

use std::sync::Arc;

use tachonym_dispatch::{WorkerId, WorkerSet};
use tachonym_forward::sharing::{At, Downstream, Nacked, Requester, Served, Visited};
use tachonym_forward::{Engine, LinkType, Output, RxKind, RxPacket, relend};
use tachonym_packet::lp::Headers;
use tachonym_packet::{DataView, FaceId, HashedNames, InterestView, MonoNs, NameHash};
use tachonym_tables::OfferRank;

use crate::batch::{Batch, Crossing, Level, MAX_BATCH_PKTS, Parcel};
use crate::dispatcher::Dispatcher;
use crate::parked::{Parked, ParkedInterest};
use crate::tokens::TokenMaker;
use crate::waiting::WaitingLengths;

/// Where a worker's packets go: out by faces, or to another worker.
pub trait Port: Output {
    /// Takes a copy of a packet to another worker. False if it finds no room: it is dropped,
    /// and for the port to count.
    fn pass(&mut self, to: WorkerId, parcel: &Parcel<'_>) -> bool;

    /// Whether a packet that another thread has received is to be looked at; if not, it is for
    /// the port to count.
    fn admits(&mut self, _packet: &RxPacket<'_>) -> bool {
        true
    }
}

/// What happened to packets that concerned several workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounters {
    /// Interests about which all stores were asked.
    pub n_asked: u64,
    /// Of these, those that the store of another worker has answered.
    pub n_lent: u64,
    /// Of the Interests, those about which all second levels were asked, too.
    pub n_asked_second: u64,
    /// Interests that should have been, but too many waited already.
    pub n_not_asked: u64,
    /// Interests that went on without the answers of all.
    pub n_overdue: u64,
    /// Data of this worker that visited others.
    pub n_visits: u64,
    /// Downstreams that have got a Data here and that it has not taken along to other
    /// workers, for it had [too many](tachonym_forward::sharing::MAX_SERVED).
    pub n_not_noted: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Worker {
    me: WorkerId,
    engine: Engine,
    dispatcher: Dispatcher,
    waiting: Arc<WaitingLengths>,
    parked: Parked,
    /// Who has got the Data in hand.
    served: Served,
    /// Lends its memory to the packets of a batch.
    spare: Vec<RxPacket<'static>>,
    /// Hashes of packets that came without any, and of those of a batch.
    names: HashedNames,
    counters: WorkerCounters,
}

impl Worker {
    /// Worker `me` with an engine that [shares](tachonym_forward::EngineConfig::routes) routes and key with those
    /// of the others; `dispatcher` finds homes by the same rule in all of them.
    #[must_use]
    pub fn new(
        me: WorkerId,
        engine: Engine,
        dispatcher: Dispatcher,
        waiting: Arc<WaitingLengths>,
    ) -> Self {
        Self {
            me,
            engine,
            dispatcher,
            waiting,
            parked: Parked::default(),
            served: Served::default(),
            spare: Vec::with_capacity(MAX_BATCH_PKTS),
            names: HashedNames::new(),
            counters: WorkerCounters::default(),
        }
    }

    /// Its engine.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Its engine, to be changed between two bursts.
    pub const fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Has another engine from now on, and nothing pending; the former one, which may be in any
    /// state.
    pub fn replace_engine(&mut self, engine: Engine) -> Engine {
        self.parked = Parked::default();
        self.served = Served::default();
        std::mem::replace(&mut self.engine, engine)
    }

    /// What makes the PIT tokens of Interests that leave in the next burst, if they have any.
    #[must_use]
    pub fn token_maker(&self) -> Option<TokenMaker> {
        self.dispatcher.token_maker(self.me)
    }

    /// Has homes found by another rule, or by what another publisher says.
    pub fn set_dispatcher(&mut self, dispatcher: Dispatcher) {
        self.dispatcher = dispatcher;
    }

    /// What happened to packets that concerned several workers.
    #[must_use]
    pub const fn counters(&self) -> &WorkerCounters {
        &self.counters
    }

    /// Carries packets that are at home here.
    pub fn handle_burst<P: Port>(&mut self, now: MonoNs, rx: &[RxPacket<'_>], port: &mut P) {
        if self.waiting.is_of_one() {
            // There is nobody else whom a packet might concern.
            return self.engine.handle_burst(now, rx, port);
        }
        let mut names = std::mem::take(&mut self.names);
        self.dispatcher
            .hash(&mut names, rx.iter().map(RxPacket::name));
        self.handle_hashed_burst(now, rx, &mut names, port);
        self.names = names;
    }

    /// Carries packets that are at home here, and of whose names these are the hashes.
    pub fn handle_hashed_burst<P: Port>(
        &mut self,
        now: MonoNs,
        rx: &[RxPacket<'_>],
        names: &mut HashedNames,
        port: &mut P,
    ) {
        if self.waiting.is_of_one() {
            return self.engine.handle_hashed_burst(now, rx, names, 0, port);
        }
        self.dispatcher.refresh();
        let waits_elsewhere = self.waiting.of_others(self.me);
        let mut start = 0;
        while start < rx.len() {
            let is_plain = |&idx: &usize| self.is_plain(&rx[idx], names.get(idx), waits_elsewhere);
            let end = start + (start..rx.len()).take_while(is_plain).count();
            if start < end {
                let plain = &rx[start..end];
                self.engine
                    .handle_hashed_burst(now, plain, names, start, port);
            }
            if let Some(packet) = rx.get(end) {
                match &packet.packet {
                    RxKind::Interest(interest) => self.ask_all(now, packet, interest, port),
                    RxKind::Data(data) => {
                        self.home_data(now, packet, data, names.get(end), port);
                    }
                    RxKind::Nack(..) => self.home_nack(now, packet, names.get(end), port),
                }
            }
            start = end + 1;
        }
        self.publish_lengths();
    }

    /// Takes packets that another thread has sent, but for those that are
    /// [leaving](Crossing::Leaving): these are for the thread.
    pub fn handle_batch<P: Port>(&mut self, now: MonoNs, batch: &Batch, port: &mut P) {
        batch.prefetch();
        let mut burst = relend(std::mem::take(&mut self.spare));
        let mut names = std::mem::take(&mut self.names);
        names.clear();
        for parcel in batch.iter() {
            match parcel.crossing {
                Crossing::Leaving => {}
                Crossing::Arrived => {
                    if let Some(packet) = parcel.packet()
                        && port.admits(&packet)
                    {
                        burst.push(packet);
                        names.push(parcel.hashes());
                    }
                }
                _ => {
                    if !burst.is_empty() {
                        self.handle_hashed_burst(now, &burst, &mut names, port);
                        burst.clear();
                        names.clear();
                    }
                    self.handle_crossing(now, &parcel, port);
                }
            }
        }
        if !burst.is_empty() {
            self.handle_hashed_burst(now, &burst, &mut names, port);
        }
        (self.spare, self.names) = (relend(burst), names);
        self.publish_lengths();
    }

    /// Does what has become due by `now`.
    pub fn handle_timeout<P: Port>(&mut self, now: MonoNs, port: &mut P) {
        for parked in self.parked.take_overdue(now) {
            self.counters.n_overdue += 1;
            self.go_on(now, parked, port);
        }
        self.engine.handle_timeout(now, port);
        self.send_remote_reads(port);
        self.publish_lengths();
    }

    /// When [`Worker::handle_timeout`] next has work.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        let parked = self.parked.next_timeout();
        parked.into_iter().chain(self.engine.poll_timeout()).min()
    }

    /// Whether a packet concerns this worker alone.
    #[inline]
    fn is_plain(&self, packet: &RxPacket<'_>, hashes: &[NameHash], waits_elsewhere: u64) -> bool {
        match &packet.packet {
            RxKind::Interest(interest) => !self.dispatcher.reaches_all(interest),
            RxKind::Data(data) => {
                self.parked.is_empty()
                    && !self.dispatcher.may_be_awaited(data.name(), waits_elsewhere)
                    && self.dispatcher.is_settled_for(self.me, data.name(), hashes)
            }
            RxKind::Nack(_, interest) => {
                self.dispatcher
                    .is_settled_for(self.me, interest.name(), hashes)
            }
        }
    }

    /// Tells the others at which lengths Interests wait here.
    fn publish_lengths(&self) {
        if self.waiting.is_of_one() {
            return;
        }
        let mut lengths = self.engine.pit().prefix_lengths();
        if !self.parked.is_empty() {
            lengths |= self.parked.lengths();
        }
        self.waiting.publish(self.me, lengths);
    }

    /// An Interest for which Data may be at home anywhere: asks all stores.
    #[cold]
    fn ask_all<P: Port>(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        interest: &InterestView<'_>,
        port: &mut P,
    ) {
        if self.engine.shared().refuses(now, packet, interest) {
            return self.engine.handle_burst(now, &[*packet], port);
        }
        let mut others = self.dispatcher.homes().workers();
        others.remove(self.me);
        let own = self.engine.shared().offer(now, interest);
        if others.is_empty() || own.is_some_and(|own| own.rank().is_exact()) {
            return self.engine.handle_burst(now, &[*packet], port);
        }
        let Some(ticket) = self.parked.insert(packet, interest, others.len(), now) else {
            self.counters.n_not_asked += 1;
            return self.engine.handle_burst(now, &[*packet], port);
        };
        self.counters.n_asked += 1;
        // Whoever is asked sees that this one waits, and brings Data that comes later.
        self.publish_lengths();
        for _ in 0..self.pass_asking(
            others,
            (ticket, Level::First),
            &Parcel::arrived(packet, &[]),
            port,
        ) {
            self.handle_offer(now, ticket, None, port);
        }
    }

    /// Asks others about an Interest; how many of them have no time to answer.
    fn pass_asking<P: Port>(
        &self,
        others: WorkerSet,
        (ticket, level): (u64, Level),
        parcel: &Parcel<'_>,
        port: &mut P,
    ) -> usize {
        let crossing = Crossing::Asking {
            asker: self.me,
            ticket,
            level,
        };
        let asking = Parcel {
            crossing,
            ..*parcel
        };
        let others = others.into_iter();
        others.filter(|&it| !port.pass(it, &asking)).count()
    }

    /// All first levels have answered. If none has anything, nor this worker's second level, the
    /// second levels of the others are asked; if there are any, the Interest waits on.
    fn ask_second_levels<P: Port>(
        &mut self,
        now: MonoNs,
        parked: ParkedInterest,
        port: &mut P,
    ) -> Option<ParkedInterest> {
        let mut others = self.dispatcher.homes().workers();
        others.remove(self.me);
        let mut is_lacking = false;
        parked.with_packet(|packet, best| {
            if let RxKind::Interest(interest) = &packet.packet {
                is_lacking = best.is_none()
                    && self.engine.shared().lacks_on_second_level(interest)
                    && self.engine.shared().offer(now, interest).is_none();
            }
        });
        if !is_lacking || others.is_empty() || parked.level() == Level::Second {
            return Some(parked);
        }
        self.counters.n_asked_second += 1;
        let (ticket, mut n_silent) = (parked.ticket(), 0);
        parked.with_packet(|packet, _| {
            let asked = (ticket, Level::Second);
            n_silent = self.pass_asking(others, asked, &Parcel::arrived(packet, &[]), port);
        });
        if n_silent == others.len() {
            return Some(parked);
        }
        self.parked.insert_again(parked, others.len() - n_silent);
        None
    }

    /// All stores have answered, or have had their time: an Interest goes on.
    fn go_on<P: Port>(&mut self, now: MonoNs, parked: ParkedInterest, port: &mut P) {
        let Self {
            engine, counters, ..
        } = self;
        parked.with_packet(|packet, best| {
            let RxKind::Interest(interest) = &packet.packet else {
                return;
            };
            let lent = best.filter(|(rank, _)| {
                let own = engine.shared().offer(now, interest).map(|own| own.rank());
                own.is_none_or(|own| own < *rank)
            });
            match lent {
                Some((rank, wire)) => {
                    counters.n_lent += 1;
                    engine
                        .shared()
                        .handle_borrowed(now, packet, (rank, wire), port);
                }
                None => engine.handle_burst(now, &[*packet], port),
            }
        });
        self.parked.recycle(parked);
    }

    /// A Data that is at home here, and for which Interests may wait elsewhere too.
    #[cold]
    fn home_data<P: Port>(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        data: &DataView<'_>,
        hashes: &[NameHash],
        port: &mut P,
    ) {
        let waiting = &self.waiting;
        let waits = |worker, length_bit| waiting.of(worker) & length_bit != 0;
        let waiting_lengths = self.waiting.of_others(self.me);
        let name = data.name();
        let mut others = self
            .dispatcher
            .others_for(self.me, name, hashes, waiting_lengths, waits);
        self.served.begin(now, &[]);
        let served = &mut self.served;
        let visited = self
            .engine
            .shared()
            .visit(now, packet, At::Home, served, port);
        if visited == Visited::Dropped {
            return;
        }
        let is_settled = visited == Visited::Wanted;
        if is_settled {
            self.answer_parked(now, packet, data, port);
        } else if others.is_empty() {
            self.engine.shared().settle(now, packet, false);
        }
        while let Some(next) = take_first(&mut others) {
            let visiting = Parcel {
                crossing: Crossing::Visiting {
                    rest: others,
                    home: self.me,
                    since: now,
                    was_wanted: is_settled,
                    is_settled,
                },
                served: self.served.downstreams(),
                ..Parcel::arrived(packet, &[])
            };
            if port.pass(next, &visiting) {
                self.counters.n_visits += 1;
                return;
            }
            if others.is_empty() && !is_settled {
                self.engine.shared().settle(now, packet, false);
            }
        }
    }

    /// A Nack that is at home here, where names have had other homes.
    #[cold]
    fn home_nack<P: Port>(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        hashes: &[NameHash],
        port: &mut P,
    ) {
        let others = self
            .dispatcher
            .other_holders(self.me, packet.name(), hashes);
        let nacked = self.engine.shared().visit_nack(now, packet, At::Home, port);
        self.pass_nack_on(
            nacked,
            others,
            (packet, &Parcel::arrived(packet, &[])),
            port,
        );
    }

    /// Takes a Nack of which nothing is known where it has been to the next of those who
    /// may know it; if there is none, that is the end of it.
    fn pass_nack_on<P: Port>(
        &mut self,
        nacked: Nacked,
        mut rest: WorkerSet,
        (packet, parcel): (&RxPacket<'_>, &Parcel<'_>),
        port: &mut P,
    ) {
        let Nacked::Unknown { is_pending } = nacked else {
            return;
        };
        while let Some(next) = take_first(&mut rest) {
            let onwards = Parcel {
                crossing: Crossing::Nacking { rest, is_pending },
                ..*parcel
            };
            if port.pass(next, &onwards) {
                return;
            }
        }
        self.engine.shared().drop_nack(packet, is_pending);
    }

    /// Answers the parked Interests with a solicited Data, as the content store would if they
    /// came now. They were sent to no face yet, so they make no Data solicited. No downstream
    /// gets the Data twice, nor back.
    fn answer_parked<P: Port>(
        &mut self,
        now: MonoNs,
        data_packet: &RxPacket<'_>,
        data: &DataView<'_>,
        port: &mut P,
    ) {
        for parked in self.parked.take_answered(data.name()) {
            parked.with_packet(|packet, _| {
                let traits = self.engine.face(packet.face);
                let hears_all = traits.is_some_and(|traits| traits.link == LinkType::AdHoc);
                let has_it = packet.face == data_packet.face && !hears_all;
                let downstream = Downstream::of_interest(packet.face, packet.headers);
                let is_served = has_it || self.served.includes(&downstream, parked.since());
                if !is_served {
                    self.served.add(&[downstream]);
                }
                let unserved = (!is_served).then_some(data_packet);
                self.engine
                    .shared()
                    .handle_parked(now, packet, unserved, port);
            });
            self.parked.recycle(parked);
        }
        self.counters.n_not_noted = self.served.n_not_noted();
    }

    /// A packet that another worker has sent.
    #[cold]
    fn handle_crossing<P: Port>(&mut self, now: MonoNs, parcel: &Parcel<'_>, port: &mut P) {
        if let Crossing::Offered { ticket, rank } = parcel.crossing {
            let offer = rank.map(|rank| (rank, parcel.wire()));
            return self.handle_offer(now, ticket, offer, port);
        }
        let Some(packet) = &parcel.packet() else {
            return debug_assert!(false, "it was parsed where it was received");
        };
        match (parcel.crossing, &packet.packet) {
            (
                Crossing::Visiting {
                    mut rest,
                    home,
                    since,
                    was_wanted,
                    is_settled,
                },
                RxKind::Data(data),
            ) => {
                self.served.begin(since, parcel.served);
                let served = &mut self.served;
                let visited = self
                    .engine
                    .shared()
                    .visit(now, packet, At::Visit, served, port);
                let was_wanted = was_wanted || visited == Visited::Wanted;
                if was_wanted && visited != Visited::Dropped {
                    self.answer_parked(now, packet, data, port);
                }
                while let Some(next) = take_first(&mut rest) {
                    let crossing = Crossing::Visiting {
                        rest,
                        home,
                        since,
                        was_wanted,
                        is_settled,
                    };
                    let onwards = Parcel {
                        crossing,
                        served: self.served.downstreams(),
                        ..*parcel
                    };
                    if port.pass(next, &onwards) {
                        return;
                    }
                }
                if !is_settled {
                    let back = Parcel {
                        crossing: Crossing::Visited { was_wanted },
                        served: &[],
                        ..*parcel
                    };
                    port.pass(home, &back);
                }
            }
            (Crossing::Visited { was_wanted }, RxKind::Data(_)) => {
                self.engine.shared().settle(now, packet, was_wanted);
            }
            (Crossing::Nacking { rest, is_pending }, RxKind::Nack(..)) => {
                let mut nacked = self
                    .engine
                    .shared()
                    .visit_nack(now, packet, At::Visit, port);
                if let Nacked::Unknown {
                    is_pending: is_here,
                } = &mut nacked
                {
                    *is_here |= is_pending;
                }
                self.pass_nack_on(nacked, rest, (packet, parcel), port);
            }
            (
                Crossing::Asking {
                    asker,
                    ticket,
                    level,
                },
                RxKind::Interest(interest),
            ) => self.tell(now, (asker, ticket, level), packet.face, interest, port),
            _ => debug_assert!(false, "not for a worker: {:?}", parcel.crossing),
        }
    }

    /// Tells who asks what this worker's store has for an Interest from `face`.
    fn tell<P: Port>(
        &mut self,
        now: MonoNs,
        (asker, ticket, level): (WorkerId, u64, Level),
        face: FaceId,
        interest: &InterestView<'_>,
        port: &mut P,
    ) {
        let offer = self.engine.shared().offer(now, interest);
        if offer.is_none() && level == Level::Second {
            let engine = asker.0;
            self.engine
                .shared()
                .read_for(now, Requester { engine, ticket }, face, interest);
            return self.send_remote_reads(port);
        }
        let rank = offer.map(|offer| offer.rank());
        let wire = offer.map_or(&[][..], |offer| self.engine.shared().lend(offer).wire());
        port.pass(asker, &offered(ticket, rank, wire));
    }

    /// Tells others what this worker's second level has for their Interests, as far as that was
    /// found or read meanwhile.
    pub fn send_remote_reads<P: Port>(&mut self, port: &mut P) {
        while let Some(read) = self.engine.shared().poll_remote_read() {
            let (rank, wire) = match &read.data {
                Some((rank, wire)) => (Some(*rank), &wire[..]),
                None => (None, &[][..]),
            };
            let answer = offered(read.requester.ticket, rank, wire);
            port.pass(WorkerId(read.requester.engine), &answer);
        }
    }

    fn handle_offer<P: Port>(
        &mut self,
        now: MonoNs,
        ticket: u64,
        offer: Option<(OfferRank, &[u8])>,
        port: &mut P,
    ) {
        if let Some(parked) = self.parked.handle_offer(ticket, offer)
            && let Some(parked) = self.ask_second_levels(now, parked, port)
        {
            self.go_on(now, parked, port);
        }
    }
}

/// What a store has for the Interest of another worker that waits under this number.
fn offered(ticket: u64, rank: Option<OfferRank>, wire: &[u8]) -> Parcel<'_> {
    let crossing = Crossing::Offered { ticket, rank };
    Parcel::of_wire(crossing, FaceId::CONTENT_STORE, &Headers::EMPTY, wire)
}

/// The first of a set, which it leaves.
fn take_first(workers: &mut WorkerSet) -> Option<WorkerId> {
    let first = workers.into_iter().next()?;
    workers.remove(first);
    Some(first)
}
