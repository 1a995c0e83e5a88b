//! A burst on its way through the tables, each step at packets of its own.
//!
//! Prefetches are hints: whether and when a step is taken changes no outcome. Which steps
//! are taken, and how far ahead, is the [schedule](crate::Schedule)'s choice.

use std::ops::Range;

use tachonym_packet::{HashSpan, NameHash, NameHashes};
use tachonym_tables::{FibProbe, FibView, Sighted};

use crate::block::Block;
use crate::burst::{Output, RxKind, RxPacket};
use crate::data::incoming_data;
use crate::interest::incoming_interest;
use crate::nack::incoming_nack;
use crate::schedule::{N_STEPS, Plan, Step};
use crate::state::{Arrival, State};

/// What the steps have seen of a packet; nothing at first.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// A Data that is a probable hit.
    cached: Sighted,
    /// The FIB's candidates; `None`: the FIB was not asked.
    fib: Option<FibProbe>,
}

/// Buffers for the packets of a burst.
#[derive(Debug, Default)]
pub(crate) struct BurstBuffers {
    pub(crate) hashes: NameHashes,
    /// Where the hashes of each packet are, of those that are hashed.
    pub(crate) spans: Vec<HashSpan>,
    seen: Vec<Seen>,
}

struct Burst<'b, 'rx> {
    rx: &'b [RxPacket<'rx>],
    fib: &'b FibView<'b>,
    state: &'b mut State,
    buffers: &'b mut BurstBuffers,
    fetches_victims: bool,
}

/// Carries a burst through the tables as `plan` says. Packets that have a span are hashed.
pub(crate) fn carry_burst(
    state: &mut State,
    fib: &FibView<'_>,
    rx: &[RxPacket<'_>],
    buffers: &mut BurstBuffers,
    plan: &Plan,
    out: &mut impl Output,
) {
    buffers.seen.clear();
    buffers.seen.resize(rx.len(), Seen::default());
    let mut burst = Burst {
        rx,
        fib,
        state,
        buffers,
        fetches_victims: plan.fetches_victims,
    };
    let mut n_taken = [0; N_STEPS];
    for start in (0..rx.len()).step_by(plan.group) {
        let end = start + plan.group;
        for (&(step, lead), n_taken) in plan.steps.iter().zip(&mut n_taken) {
            let packets = *n_taken..(end + lead).min(rx.len());
            *n_taken = packets.end;
            if !packets.is_empty() {
                burst.take(step, packets, out);
            }
        }
        for idx in start..end.min(rx.len()) {
            burst.carry(idx, out);
        }
    }
}

impl Burst<'_, '_> {
    fn take(&mut self, step: Step, packets: Range<usize>, out: &mut impl Output) {
        if step != Step::Hash {
            out.enter(Block::Prefetch);
        }
        match step {
            Step::None => {}
            Step::Hash => self.hash(packets, out),
            Step::IndexLines => packets.for_each(|idx| self.prefetch_index_lines(idx)),
            Step::Entries => packets.for_each(|idx| self.prefetch_entries(idx)),
            Step::Contents => {
                for seen in &self.buffers.seen[packets] {
                    self.state.core.tables.pit_cs.prefetch_hit(seen.cached);
                }
            }
            Step::FibLines => {
                for idx in packets.filter(|&idx| self.needs_fib(idx)) {
                    self.fib.prefetch_buckets(self.hashes(idx));
                }
            }
            Step::FibNodes => self.prefetch_fib_nodes(packets),
        }
    }

    fn hashes(&self, idx: usize) -> &[NameHash] {
        self.buffers.hashes.slice(self.buffers.spans[idx])
    }

    /// Whether the FIB will probably be asked about a packet's name: a probable hit does not
    /// need it.
    fn needs_fib(&self, idx: usize) -> bool {
        self.rx[idx].is_routed_by_name() && !self.buffers.seen[idx].cached.hits()
    }

    /// Hashes the names of packets that are not hashed, all of them in the block of the first.
    fn hash(&mut self, packets: Range<usize>, out: &mut impl Output) {
        let n_hashed = self.buffers.spans.len().min(packets.end);
        let new = &self.rx[n_hashed..packets.end];
        if let Some(first) = new.first() {
            out.enter(first.reception());
            let names = new.iter().map(RxPacket::name);
            let BurstBuffers { hashes, spans, .. } = self.buffers;
            hashes.push_burst(&self.state.core.world.key, names, spans);
        }
    }

    /// Prefetches where the tables look first.
    fn prefetch_index_lines(&self, idx: usize) {
        let hashes = self.hashes(idx);
        let name_hash = hashes[hashes.len() - 1];
        let tables = &self.state.core.tables;
        match &self.rx[idx].packet {
            RxKind::Interest(interest) => {
                if !tables.dead_nonces.is_empty()
                    && let Some(nonce) = interest.nonce()
                {
                    tables.dead_nonces.prefetch(name_hash, nonce);
                }
                tables.pit_cs.prefetch_buckets_for_interest(name_hash);
            }
            RxKind::Data(_) => tables.pit_cs.prefetch_buckets_for_data(hashes),
            RxKind::Nack(..) => tables.pit_cs.prefetch_buckets_for_nack(name_hash),
        }
    }

    /// Prefetches the entries that tags in the index promise.
    fn prefetch_entries(&mut self, idx: usize) {
        let hashes = self.hashes(idx);
        let name_hash = hashes[hashes.len() - 1];
        let pit_cs = &self.state.core.tables.pit_cs;
        match &self.rx[idx].packet {
            RxKind::Interest(_) => {
                let cached = pit_cs.prefetch_entries_for_interest(name_hash);
                self.buffers.seen[idx].cached = cached;
            }
            RxKind::Data(_) => pit_cs.prefetch_entries_for_data(hashes),
            RxKind::Nack(..) => pit_cs.prefetch_entries_for_nack(name_hash),
        }
    }

    /// Prefetches the nodes that tags of the FIB promise. Asks all tags before it prefetches
    /// the first node: then nothing stands between one prefetch and the next, and addresses
    /// are translated side by side.
    fn prefetch_fib_nodes(&mut self, packets: Range<usize>) {
        for idx in packets.clone() {
            if self.needs_fib(idx) {
                self.buffers.seen[idx].fib = Some(self.fib.probe(self.hashes(idx)));
            }
        }
        for (packet, seen) in self.rx[packets.clone()]
            .iter()
            .zip(&self.buffers.seen[packets])
        {
            if let Some(probe) = seen.fib {
                self.fib.prefetch_node(packet.name(), probe);
            }
        }
    }

    /// Carries a packet through the tables.
    fn carry(&mut self, idx: usize, out: &mut impl Output) {
        let packet = &self.rx[idx];
        if self.fetches_victims && matches!(packet.packet, RxKind::Data(_)) {
            out.enter(Block::Prefetch);
            self.state.core.tables.pit_cs.prefetch_victims();
        }
        out.enter(Block::Checks);
        let world = &mut self.state.core.world;
        let Some(traits) = world.faces.find(packet.face) else {
            packet.count_received(&mut world.counters);
            return world.drop_unknown_face(packet);
        };
        let buffers = &*self.buffers;
        let arrival = Arrival {
            face: packet.face,
            traits,
            headers: packet.headers,
            announcement: packet.prefix_announcement,
            borrowed: None,
            hashes: buffers.hashes.slice(buffers.spans[idx]),
            fib: self.fib,
            probe: buffers.seen[idx].fib.as_ref(),
        };
        match &packet.packet {
            RxKind::Interest(interest) => incoming_interest(self.state, &arrival, interest, out),
            RxKind::Data(data) => incoming_data(self.state, &arrival, data, out),
            RxKind::Nack(reason, interest) => {
                incoming_nack(self.state, &arrival, *reason, interest, out);
            }
        }
    }
}
