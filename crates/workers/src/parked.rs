//! Interests that wait until all content stores have said what they have.
//!
//! Owns copies of them, at most [`MAX_PARKED`] at a worker, each for [`MAX_WAIT_MS`] at most:
//! if a worker does not answer, an Interest goes on as if its store had nothing.

use tachonym_forward::RxPacket;
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, InterestView, MonoNs, NameView, Span};
use tachonym_tables::OfferRank;

use crate::batch::Level;
use crate::waiting::bit_of;

/// Most Interests that wait at a worker; beyond, its own store alone is asked.
pub const MAX_PARKED: usize = 1_024;
/// Longest time that one waits, in milliseconds. Answers take some microseconds, or a read of a
/// disk; disks were seen to stop for 160 ms.
pub const MAX_WAIT_MS: u64 = 1_000;
/// Buffers that are kept for later.
const MAX_SPARE: usize = 16;

/// An Interest that waits.
#[derive(Debug)]
pub(crate) struct ParkedInterest {
    ticket: u64,
    face: FaceId,
    headers: Headers,
    wire: Vec<u8>,
    /// Where its name's components are in it, and the bit of how many they are.
    name: Span,
    length_bit: u64,
    since: MonoNs,
    n_outstanding: usize,
    /// What stores have been asked for.
    level: Level,
    /// The best Data that stores have, with its rank.
    best: Option<(OfferRank, Vec<u8>)>,
}

impl ParkedInterest {
    /// Under which number it waits.
    pub(crate) const fn ticket(&self) -> u64 {
        self.ticket
    }

    /// What stores have been asked for.
    pub(crate) const fn level(&self) -> Level {
        self.level
    }

    /// When it came.
    pub(crate) const fn since(&self) -> MonoNs {
        self.since
    }

    /// The Interest as it was received, for `go_on`; with the best Data that other stores
    /// have for it, and its rank.
    pub(crate) fn with_packet(
        &self,
        go_on: impl FnOnce(&RxPacket<'_>, Option<(OfferRank, &[u8])>),
    ) {
        let packet = RxPacket::parse(self.face, &self.headers, &self.wire);
        debug_assert!(packet.is_some(), "it was parsed when it came");
        if let Some(packet) = packet {
            let best = self.best.as_ref();
            go_on(&packet, best.map(|(rank, wire)| (*rank, &wire[..])));
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    /// The oldest first.
    waiting: Vec<ParkedInterest>,
    spare: Vec<Vec<u8>>,
    last_ticket: u64,
}

impl Parked {
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Lengths of the names that wait.
    pub(crate) fn lengths(&self) -> u64 {
        let waiting = self.waiting.iter();
        waiting.fold(0, |bits, parked| bits | parked.length_bit)
    }

    /// Lets an Interest wait for so many answers. Its ticket, if there is room.
    pub(crate) fn insert(
        &mut self,
        packet: &RxPacket<'_>,
        interest: &InterestView<'_>,
        n_outstanding: usize,
        now: MonoNs,
    ) -> Option<u64> {
        if self.waiting.len() == MAX_PARKED {
            return None;
        }
        let mut wire = self.spare.pop().unwrap_or_default();
        wire.extend_from_slice(interest.wire());
        self.last_ticket += 1;
        self.waiting.push(ParkedInterest {
            ticket: self.last_ticket,
            face: packet.face,
            headers: *packet.headers,
            wire,
            name: interest.name_span(),
            length_bit: bit_of(interest.name().len()),
            since: now,
            n_outstanding,
            level: Level::First,
            best: None,
        });
        Some(self.last_ticket)
    }

    /// Lets an Interest wait on, for as many answers about second levels, and no longer than it
    /// might have before.
    pub(crate) fn insert_again(&mut self, parked: ParkedInterest, n_outstanding: usize) {
        let before = |it: &ParkedInterest| it.ticket < parked.ticket;
        let idx = self.waiting.partition_point(before);
        let again = ParkedInterest {
            n_outstanding,
            level: Level::Second,
            ..parked
        };
        self.waiting.insert(idx, again);
    }

    /// A store has said what it has. The Interest, if that was the last one.
    pub(crate) fn handle_offer(
        &mut self,
        ticket: u64,
        offer: Option<(OfferRank, &[u8])>,
    ) -> Option<ParkedInterest> {
        let idx = self
            .waiting
            .binary_search_by_key(&ticket, |parked| parked.ticket);
        // It may have waited too long.
        let idx = idx.ok()?;
        let parked = &mut self.waiting[idx];
        if let Some((rank, wire)) = offer
            && parked.best.as_ref().is_none_or(|(best, _)| *best < rank)
        {
            parked.best = Some((rank, wire.to_vec()));
        }
        parked.n_outstanding -= 1;
        (parked.n_outstanding == 0).then(|| self.waiting.remove(idx))
    }

    /// The Interests that a Data of this name answers: they need not wait any more. Takes
    /// time linear in those that wait.
    pub(crate) fn take_answered(&mut self, name: NameView<'_>) -> Vec<ParkedInterest> {
        // Whole components: what begins with the bytes begins with the name.
        let is_answered = |parked: &mut ParkedInterest| {
            let waiting = parked.name.of_wire(&parked.wire);
            waiting.is_some_and(|waiting| name.value_bytes().starts_with(waiting))
        };
        self.waiting.extract_if(.., is_answered).collect()
    }

    /// When the oldest has waited long enough.
    pub(crate) fn next_timeout(&self) -> Option<MonoNs> {
        let first = self.waiting.first();
        first.map(|parked| parked.since.plus_ms(MAX_WAIT_MS))
    }

    /// Those that have waited long enough by `now`.
    pub(crate) fn take_overdue(&mut self, now: MonoNs) -> Vec<ParkedInterest> {
        let is_overdue = |parked: &ParkedInterest| parked.since.plus_ms(MAX_WAIT_MS) <= now;
        let n_overdue = self.waiting.partition_point(is_overdue);
        self.waiting.drain(..n_overdue).collect()
    }

    /// Takes memory back.
    pub(crate) fn recycle(&mut self, parked: ParkedInterest) {
        if self.spare.len() < MAX_SPARE {
            let mut wire = parked.wire;
            wire.clear();
            self.spare.push(wire);
        }
    }
}
