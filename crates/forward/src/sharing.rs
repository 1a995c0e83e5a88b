//! What engines do for each other that share one router's work, each with its part of the
//! names: together they answer as one would.
//!
//! A packet goes to the engine that is the *home* of its name; three kinds concern others.
//! An Interest with CanBePrefix, whose name is so short that Data for it may have any home:
//! each engine [offers](Shared::offer) the best Data it has cached, and if the best of all is
//! another engine's, the Interest [is answered with it](Shared::handle_borrowed); if none has
//! any, the others' SSD levels [are read](Shared::read_for) too. A Data for which such an
//! Interest may wait elsewhere, or whose name has had another home: it
//! [visits](Shared::visit) these engines, and its home [settles](Shared::settle) whether it is
//! cached. A Nack for a name that has had another home [visits](Shared::visit_nack) former
//! homes until one knows what it answers. Who carries packets from one engine to the other is
//! not known here.

use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, InterestView, MonoNs, NameHash, NameHashes};
use tachonym_tables::{DataRef, FibReader, Known, Offer, OfferRank};

use crate::burst::{Output, RxKind, RxPacket};
use crate::data::{Source, admits_data, answer_pending, remove, store, unsolicited_data};
use crate::interest::{has_dead_nonce, incoming_interest, refusal};
use crate::nack::{apply_nack, drop_unknown_nack};
use crate::remote_reads::start_read;
use crate::state::{Arrival, BorrowedData, Core, State};

pub use crate::nack::Nacked;
pub use crate::state::{Downstream, MAX_REMOTE_READS, MAX_SERVED, RemoteRead, Requester, Served};

/// What became of a Data at an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visited {
    /// It answered pending Interests.
    Wanted,
    /// It answered none.
    Unwanted,
    /// It is dropped, and counted.
    Dropped,
}

/// Which engine a packet is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The home of its name, which counts it as received.
    Home,
    /// Another one, after its home.
    Visit,
}

/// An engine as other engines of the same router use it.
#[derive(Debug)]
pub struct Shared<'e> {
    pub(crate) state: &'e mut State,
    pub(crate) fib: &'e mut FibReader,
    pub(crate) hashes: &'e mut NameHashes,
}

impl<'e> Shared<'e> {
    /// The best Data that this engine's store has for an Interest; counts nothing.
    pub fn offer(&mut self, now: MonoNs, interest: &InterestView<'_>) -> Option<Offer> {
        let (state, hashes) = self.hashed(interest);
        state.core.tables.pit_cs.offer(interest, hashes, now)
    }

    /// The Data of an offer, if this engine has done nothing else since.
    #[must_use]
    pub fn lend(self, offer: Offer) -> DataRef<'e> {
        self.state.core.tables.pit_cs.lend(offer)
    }

    /// Carries an Interest, which is answered with the Data of another engine's store, which
    /// has that rank, where its own would be asked.
    pub fn handle_borrowed(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        (rank, wire): (OfferRank, &[u8]),
        out: &mut impl Output,
    ) {
        let is_in_memory = rank.is_in_memory();
        self.carry(now, packet, At::Home, |state, arrival| {
            if let RxKind::Interest(interest) = &packet.packet {
                let borrowed = Some(BorrowedData { wire, is_in_memory });
                incoming_interest(
                    state,
                    &Arrival {
                        borrowed,
                        ..*arrival
                    },
                    interest,
                    out,
                );
            }
        });
    }

    /// Whether an Interest will be dropped whatever any store has for it, so that none need be
    /// asked: for its scope, its hop limit, or a dead nonce. Counts nothing; to be carried as
    /// any other.
    pub fn refuses(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        interest: &InterestView<'_>,
    ) -> bool {
        let world = &mut self.state.core.world;
        world.advance(now);
        let Some(traits) = world.faces.find(packet.face) else {
            return true;
        };
        if refusal(world, interest, traits).is_some() {
            return true;
        }
        let (state, hashes) = self.hashed(interest);
        has_dead_nonce(&state.core, interest, hashes)
    }

    /// Answers an Interest that has waited for the offers of other engines with a Data that
    /// has come meanwhile, as if the Interest had been pending. `None`: the downstream has
    /// that Data already, or it came from there.
    pub fn handle_parked(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        data: Option<&RxPacket<'_>>,
        out: &mut impl Output,
    ) {
        self.carry(now, packet, At::Home, |state, arrival| {
            let RxKind::Interest(interest) = &packet.packet else {
                return;
            };
            let Core { tables, world, .. } = &mut state.core;
            world.counters.n_in_interests += 1;
            world.counters.n_cs_misses += 1;
            world.counters.n_satisfied_interests += 1;
            tables.pit_cs.note_miss(interest, arrival.hashes);
            if let Some(RxPacket {
                packet: RxKind::Data(data),
                face: data_face,
                headers: data_headers,
                ..
            }) = data
            {
                let headers = Headers {
                    pit_token: arrival.headers.pit_token,
                    incoming_face_id: Some(*data_face),
                    congestion_mark: data_headers.congestion_mark,
                    ..Headers::default()
                };
                out.send_data(arrival.face, data.wire(), &headers);
                world.counters.n_out_data += 1;
            }
        });
    }

    /// Hands a Data to the downstreams that wait for it here, but for those in `served`, which
    /// have received it; adds the others there. At its home it is cached if it is wanted.
    pub fn visit(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        at: At,
        served: &mut Served,
        out: &mut impl Output,
    ) -> Visited {
        let mut visited = Visited::Dropped;
        self.carry(now, packet, at, |state, arrival| {
            let RxKind::Data(data) = &packet.packet else {
                return;
            };
            let State { core, second, .. } = state;
            if at == At::Home && !admits_data(&mut core.world, arrival, data) {
                return;
            }
            let source = match at {
                At::Home => Source::Upstream,
                At::Visit => Source::UpstreamOfOther,
            };
            let answered = answer_pending(core, arrival, data, source, Some(served), out);
            visited = match (answered.is_wanted, at) {
                (false, _) => Visited::Unwanted,
                (true, At::Home) => {
                    store(core, second, arrival, data, answered.known, |_| ());
                    Visited::Wanted
                }
                (true, At::Visit) => {
                    remove(core);
                    Visited::Wanted
                }
            };
        });
        visited
    }

    /// At the home of a Data that nothing waited for there: caches it if `was_wanted` by any
    /// of the engines it has visited since, and else treats it as unsolicited.
    pub fn settle(&mut self, now: MonoNs, packet: &RxPacket<'_>, was_wanted: bool) {
        self.carry(now, packet, At::Visit, |state, arrival| {
            let RxKind::Data(data) = &packet.packet else {
                return;
            };
            let State { core, second, .. } = state;
            // No entry ends here; whether the Data is cached was not looked up.
            core.scratch.matches.clear();
            let known = Known::default();
            if !was_wanted {
                return unsolicited_data(core, second, arrival, data, known, |_| ());
            }
            if !arrival.headers.no_cache {
                core.tables.pit_cs.note_far_answer(arrival.name_hash());
            }
            store(core, second, arrival, data, known, |_| ());
        });
    }

    /// Has a Nack meet the Interest that it answers, if that was sent from here.
    pub fn visit_nack(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        at: At,
        out: &mut impl Output,
    ) -> Nacked {
        let mut nacked = Nacked::Done;
        self.carry(now, packet, at, |state, arrival| {
            if let RxKind::Nack(reason, interest) = &packet.packet {
                let core = &mut state.core;
                core.world.counters.n_in_nacks += u64::from(at == At::Home);
                nacked = apply_nack(core, arrival, *reason, interest, out);
            }
        });
        nacked
    }

    /// Drops a Nack that is [unknown](Nacked::Unknown) at each engine it was at, and counts it;
    /// `is_pending` says whether an Interest like the one in it was pending at any.
    pub fn drop_nack(&mut self, packet: &RxPacket<'_>, is_pending: bool) {
        drop_unknown_nack(&mut self.state.core.world, packet.as_dropped(), is_pending);
    }

    /// Whether another engine's SSD level is to be asked about an Interest that no DRAM level
    /// has Data for: there are such levels, and this engine's own has no candidate.
    #[must_use]
    pub fn lacks_on_second_level(&self, interest: &InterestView<'_>) -> bool {
        let level = self.state.second.level.as_ref();
        level.is_some_and(|level| level.peek(interest).is_none())
    }

    /// Looks up the SSD level for an Interest from `face` that waits at another engine. The
    /// result comes from [`Self::poll_remote_read`], at once or when it has been read; counts
    /// nothing but the read.
    pub fn read_for(
        &mut self,
        now: MonoNs,
        requester: Requester,
        face: FaceId,
        interest: &InterestView<'_>,
    ) {
        let State { core, second, .. } = &mut *self.state;
        core.world.advance(now);
        start_read(core, second, requester, face, interest);
    }

    /// The oldest result of [`Self::read_for`] that was not fetched yet.
    pub fn poll_remote_read(&mut self) -> Option<RemoteRead> {
        self.state.second.remote.poll()
    }

    fn hashed(&mut self, interest: &InterestView<'_>) -> (&mut State, &[NameHash]) {
        self.hashes.clear();
        let key = &self.state.core.world.key;
        let span = self.hashes.push_name(key, interest.name());
        (self.state, self.hashes.slice(span))
    }

    /// Has one packet meet the tables. At its home it is new, and dropped if its face has gone;
    /// elsewhere the face may have gone since its home has taken it.
    fn carry(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        at: At,
        carry: impl FnOnce(&mut State, &Arrival<'_>),
    ) {
        let fib = self.fib.pin();
        let world = &mut self.state.core.world;
        world.advance(now);
        let traits = match at {
            At::Home => world.faces.find(packet.face),
            At::Visit => world.faces.find_late(packet.face),
        };
        let Some(traits) = traits else {
            if at == At::Home {
                packet.count_received(&mut world.counters);
            }
            return world.drop_unknown_face(packet);
        };
        self.hashes.clear();
        let span = self.hashes.push_name(&world.key, packet.name());
        let arrival = Arrival {
            face: packet.face,
            traits,
            headers: packet.headers,
            announcement: packet.prefix_announcement,
            borrowed: None,
            hashes: self.hashes.slice(span),
            fib: &fib,
            probe: None,
        };
        carry(self.state, &arrival);
    }
}
