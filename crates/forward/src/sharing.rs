//! What engines do for each other that share one router's work, each with its part of the
//! names: together they answer as one would.
//!
//! A packet is for the engine where its name is *at home*; only three kinds concern others.
//! An Interest with CanBePrefix whose name is so short that Data for it may be at home
//! anywhere: all engines [offer](Engine::offer) what they have cached, and if the best is
//! another one's, the Interest [is answered with it](Engine::handle_lent); if none has any, the
//! others' second levels [are asked](Engine::seek_for) the same. And Data for which
//! such an Interest may wait elsewhere, or which has had another home: it
//! [visits](Engine::visit) the engines where that may be so, and its home
//! [settles](Engine::settle) whether it is cached. A Nack for a name that has had another
//! home [visits](Engine::visit_nack) who had it until one knows what it answers. Who carries
//! packets from one engine to the other is not known here.

use tachonym_packet::{InterestView, MonoNs};
use tachonym_tables::{DataRef, Offer, OfferRank};

use crate::burst::{Output, RxKind, RxPacket};
use crate::engine::Engine;
use crate::pipelines::{Arrival, Downstream, Lent};

/// What became of a Data at an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visited {
    /// Some waited for it; they have it.
    Wanted,
    /// Nobody waited for it.
    Unwanted,
    /// It is not to go on; counted.
    Dropped,
}

/// What became of a Nack at an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nacked {
    /// It has met the Interest that it answers, or is dropped and counted.
    Done,
    /// It answers nothing that was sent from here; nothing is counted.
    Unknown {
        /// Whether an Interest like the one that it returns is pending here.
        is_pending: bool,
    },
}

/// Most downstreams that a visiting Data takes along; a choice of this module. They are
/// compared one by one with those who wait at the next engine.
pub const MAX_SERVED: usize = 1_024;

/// Who has got a Data that visits several engines: [`MAX_SERVED`] at most, over all of them.
#[derive(Clone, Debug, Default)]
pub struct Served {
    since: MonoNs,
    downstreams: Vec<Downstream>,
    n_not_noted: u64,
}

impl Served {
    /// Begins with those who have it. `since` is when it came to its home: whoever asked
    /// later may not mean the copy that he has.
    pub fn begin(&mut self, since: MonoNs, downstreams: &[Downstream]) {
        self.since = since;
        self.downstreams.clear();
        self.add(downstreams);
    }

    /// Notes who else has it. Who finds no room is counted, and gets it again if he waits at
    /// another engine too.
    pub fn add(&mut self, downstreams: &[Downstream]) {
        let n_noted = downstreams.len().min(MAX_SERVED - self.downstreams.len());
        self.downstreams.extend_from_slice(&downstreams[..n_noted]);
        self.n_not_noted += (downstreams.len() - n_noted) as u64;
    }

    /// Who has it.
    #[must_use]
    pub fn downstreams(&self) -> &[Downstream] {
        &self.downstreams
    }

    /// Downstreams that found no room since this was made, of all Data together.
    #[must_use]
    pub const fn n_not_noted(&self) -> u64 {
        self.n_not_noted
    }

    /// Whether a downstream that asked then has it, and knows that it is for this.
    #[must_use]
    pub fn includes(&self, downstream: &Downstream, asked_at: MonoNs) -> bool {
        let mut downstreams = self.downstreams.iter();
        asked_at < self.since && downstreams.any(|served| served.is_same(downstream))
    }
}

impl Engine {
    /// At which lengths of names Interests with CanBePrefix are pending: a bit for each, the
    /// highest for all from 63 on.
    #[must_use]
    pub fn waiting_lengths(&self) -> u64 {
        self.pipelines.tables.pit().prefix_lengths()
    }

    /// What this engine's store has for an Interest; counts nothing.
    pub fn offer(&mut self, now: MonoNs, interest: &InterestView<'_>) -> Option<Offer> {
        self.hashes.clear();
        let span = self.hashes.push_name(&self.pipelines.key, interest.name());
        let hashes = self.hashes.slice(span);
        self.pipelines.tables.offer(interest, hashes, now)
    }

    /// The Data of an offer of which this engine has done nothing else since.
    pub fn lend(&mut self, offer: Offer) -> DataRef<'_> {
        self.pipelines.tables.lend(offer)
    }

    /// Carries an Interest, which is answered with the Data of another engine's store, which
    /// has that rank, where its own would be asked.
    pub fn handle_lent(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        (rank, wire): (OfferRank, &[u8]),
        out: &mut impl Output,
    ) {
        let is_in_memory = rank.is_in_memory();
        self.carry_alone(now, packet, false, |pipelines, arrival| {
            let RxKind::Interest(interest) = &packet.packet else {
                return;
            };
            let arrival = Arrival {
                lent: Some(Lent { wire, is_in_memory }),
                ..*arrival
            };
            pipelines.incoming_interest(&arrival, interest, out);
        });
    }

    /// Whether an Interest will be dropped whatever any store has for it, so that none need be
    /// asked: it may not go on, or its nonce is dead. Counts nothing; to be carried as any
    /// other.
    pub fn refuses(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        interest: &InterestView<'_>,
    ) -> bool {
        let pipelines = &mut self.pipelines;
        pipelines.now = pipelines.now.max(now);
        let Some(traits) = pipelines.faces.find(packet.face) else {
            return true;
        };
        self.hashes.clear();
        let span = self.hashes.push_name(&pipelines.key, interest.name());
        let hashes = self.hashes.slice(span);
        pipelines.refusal(interest, traits).is_some() || pipelines.has_dead_nonce(interest, hashes)
    }

    /// Carries an Interest that has waited until stores would say what they have, and for
    /// which `data` has come meanwhile: as if it had been pending. `is_served` tells that the
    /// downstream has this Data already, or it came from there.
    pub fn handle_met(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        data: &RxPacket<'_>,
        is_served: bool,
        out: &mut impl Output,
    ) {
        self.carry_alone(now, packet, false, |pipelines, arrival| {
            if let (RxKind::Interest(interest), RxKind::Data(view)) = (&packet.packet, &data.packet)
            {
                pipelines.count_met(arrival, interest);
                if !is_served {
                    pipelines.send_to_met(arrival, (data.face, data.headers), view.wire(), out);
                }
            }
        });
    }

    /// Hands a Data to those who wait for it here, but not to `served`, who have it: they
    /// become more. At its home, `is_home`, it is counted as received, and cached if it is
    /// wanted.
    pub fn visit(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        is_home: bool,
        served: &mut Served,
        out: &mut impl Output,
    ) -> Visited {
        let mut visited = Visited::Dropped;
        self.carry_alone(now, packet, !is_home, |pipelines, arrival| {
            let RxKind::Data(data) = &packet.packet else {
                return;
            };
            if is_home && !pipelines.admits_data(arrival, data) {
                return;
            }
            visited = match pipelines.shared_data(arrival, data, is_home, served, out) {
                true => Visited::Wanted,
                false => Visited::Unwanted,
            };
        });
        visited
    }

    /// At the home of a Data that nobody wanted there: caches it if `was_wanted` by any of
    /// those it has visited since, and else treats it as Data that nobody asked for.
    pub fn settle(&mut self, now: MonoNs, packet: &RxPacket<'_>, was_wanted: bool) {
        self.carry_alone(now, packet, true, |pipelines, arrival| {
            if let RxKind::Data(data) = &packet.packet {
                pipelines.settle_shared_data(arrival, data, was_wanted);
            }
        });
    }

    /// Has a Nack meet the Interest that it answers, if that was sent from here. At the home
    /// of its name, `is_home`, it is counted as received.
    pub fn visit_nack(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        is_home: bool,
        out: &mut impl Output,
    ) -> Nacked {
        let mut nacked = Nacked::Done;
        self.carry_alone(now, packet, !is_home, |pipelines, arrival| {
            if let RxKind::Nack(reason, interest) = &packet.packet {
                pipelines.counters.n_in_nacks += u64::from(is_home);
                nacked = pipelines.shared_nack(arrival, *reason, interest, out);
            }
        });
        nacked
    }

    /// Drops a Nack that is [unknown](Nacked::Unknown) wherever it was, and counts it;
    /// `is_pending` tells whether an Interest like the one in it was pending anywhere.
    pub fn drop_nack(&mut self, packet: &RxPacket<'_>, is_pending: bool) {
        let dropped = packet.as_dropped();
        self.pipelines.drop_unknown_nack(dropped, is_pending);
    }

    /// Has one packet meet the tables; `is_counted` tells whether it has been counted as
    /// received. If not, it is new here, and dropped if its face has gone; a face of which
    /// another engine has taken a packet may have gone meanwhile.
    fn carry_alone(
        &mut self,
        now: MonoNs,
        packet: &RxPacket<'_>,
        is_counted: bool,
        carry: impl FnOnce(&mut crate::pipelines::Pipelines, &Arrival<'_>),
    ) {
        let fib = self.fib.pin();
        let pipelines = &mut self.pipelines;
        pipelines.now = pipelines.now.max(now);
        let traits = match is_counted {
            true => pipelines.faces.find_late(packet.face),
            false => pipelines.faces.find(packet.face),
        };
        let Some(traits) = traits else {
            return match is_counted {
                true => pipelines.drop_of_unknown_face(packet),
                false => pipelines.count_unknown_face(packet),
            };
        };
        self.hashes.clear();
        let span = self.hashes.push_name(&pipelines.key, packet.name());
        let arrival = Arrival {
            face: packet.face,
            traits,
            headers: packet.headers,
            announcement: packet.prefix_announcement,
            lent: None,
            hashes: self.hashes.slice(span),
            fib: &fib,
            probe: None,
        };
        carry(pipelines, &arrival);
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::FaceId;
    use tachonym_packet::lp::Headers;

    use super::*;

    #[test]
    fn a_data_takes_no_more_downstreams_along_than_it_may() {
        let of = |face| Downstream::of_interest(FaceId(face), &Headers::EMPTY);
        let mut served = Served::default();
        served.begin(MonoNs(2), &[of(256), of(257)]);
        let others: Vec<_> = (258..).map(of).take(MAX_SERVED).collect();
        served.add(&others);
        served.add(&[of(9)]);
        assert_eq!(served.downstreams().len(), MAX_SERVED);
        assert_eq!(served.n_not_noted(), 3);
        let is_included = |face| served.includes(&of(face), MonoNs(1));
        assert!(is_included(256) && is_included(255 + MAX_SERVED as u64));
        assert!(!is_included(256 + MAX_SERVED as u64) && !is_included(9));
        assert!(
            !served.includes(&of(256), MonoNs(2)),
            "asked when it had come"
        );
    }
}
