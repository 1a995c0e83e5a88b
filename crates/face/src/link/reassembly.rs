//! Putting fragments together.
//!
//! Owns the incomplete packets of one face, each identified by its sender and
//! the Sequence of its first fragment (NDNLPv2, "Fragmentation and
//! reassembly"). Bounded in number, in bytes over all faces, in time since the
//! last new fragment, and in time since the first one. Fragments may come in
//! any order, repeatedly, or not at all. Knows nothing of what is in them.

use std::net::SocketAddr;

use tachonym_packet::MonoNs;
use tachonym_packet::lp::Headers;

use super::budget::ReassemblyBudget;
use super::partial::{Added, Partial, Reassembled};
use crate::counters::DropReason;
use crate::source::SourceIdx;

/// Incomplete packets of one face.
const MAX_PARTIALS: usize = 64;
/// Fragments of one packet.
pub(crate) const MAX_FRAGMENTS: u64 = 400;

/// The incomplete packets of one face.
#[derive(Default)]
pub(crate) struct Reassembler {
    /// The one that grew last is at the end.
    #[expect(clippy::vec_box, reason = "the boxes move between lists")]
    partials: Vec<Box<Partial>>,
}

impl Reassembler {
    /// Takes the fragment with these headers from `peer`. What is kept counts to
    /// `source`, which all calls have to name alike. `evicted` is called for each incomplete packet that has to give way.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn receive(
        &mut self,
        now: MonoNs,
        peer: Option<SocketAddr>,
        headers: &Headers,
        prefix_announcement: &[u8],
        fragment: &[u8],
        budget: &mut ReassemblyBudget,
        out: &mut Vec<u8>,
        source: SourceIdx,
        mut evicted: impl FnMut(),
    ) -> Reassembled {
        let Some(sequence) = headers.sequence else {
            return Reassembled::Dropped(DropReason::BadFragment);
        };
        if headers.frag_count > MAX_FRAGMENTS || headers.frag_index >= headers.frag_count {
            return Reassembled::Dropped(DropReason::BadFragment);
        }
        let base_sequence = sequence.wrapping_sub(headers.frag_index);
        let found = self
            .partials
            .iter()
            .rposition(|partial| partial.base_sequence == base_sequence && partial.peer == peer);
        let mut partial = match found {
            // Taken out, and put back at the end if it still lacks something.
            Some(idx) => self.partials.remove(idx),
            None => {
                let mut partial = budget.take_partial();
                partial.reset(now, peer, base_sequence, headers.frag_count);
                partial
            }
        };
        match partial.add(now, headers, prefix_announcement, fragment) {
            Ok(Added::Repeated) => {
                self.partials.push(partial);
                Reassembled::Dropped(DropReason::Duplicate)
            }
            Ok(Added::Complete) => {
                let complete = partial.write(out);
                self.recycle(partial, source, budget);
                complete
            }
            Ok(Added::Incomplete) => {
                let cost = partial.footprint_bytes() - partial.charged_bytes;
                while self.partials.len() >= MAX_PARTIALS || !budget.take(source, cost) {
                    // The face's own oldest packet gives way, never another's.
                    if self.partials.is_empty() {
                        self.recycle(partial, source, budget);
                        return Reassembled::Dropped(DropReason::ReassemblyOverflow);
                    }
                    let oldest = self.partials.remove(0);
                    self.recycle(oldest, source, budget);
                    evicted();
                }
                partial.charged_bytes += cost;
                self.partials.push(partial);
                Reassembled::Waiting
            }
            Err(reason) => {
                self.recycle(partial, source, budget);
                Reassembled::Dropped(reason)
            }
        }
    }

    /// Drops what has waited for too long; returns how many packets that were.
    pub(crate) fn handle_timeout(
        &mut self,
        now: MonoNs,
        source: SourceIdx,
        budget: &mut ReassemblyBudget,
    ) -> u64 {
        let mut n_expired = 0;
        // In the order of their last growth, hence of their deadlines, but for
        // repeated fragments, which move a packet without prolonging its life.
        while let Some(idx) = self.partials.iter().position(|p| p.deadline <= now) {
            let partial = self.partials.remove(idx);
            self.recycle(partial, source, budget);
            n_expired += 1;
        }
        n_expired
    }

    /// When [`Reassembler::handle_timeout`] next has work.
    pub(crate) fn poll_timeout(&self) -> Option<MonoNs> {
        self.partials.iter().map(|partial| partial.deadline).min()
    }

    /// Gives all memory back.
    pub(crate) fn clear(&mut self, source: SourceIdx, budget: &mut ReassemblyBudget) {
        while let Some(partial) = self.partials.pop() {
            self.recycle(partial, source, budget);
        }
    }

    /// From now on all of it counts to the source `to`, whatever that has already.
    pub(crate) fn change_source(
        &mut self,
        from: SourceIdx,
        to: SourceIdx,
        budget: &mut ReassemblyBudget,
    ) {
        let n_bytes = self.partials.iter().map(|partial| partial.charged_bytes);
        let n_bytes = n_bytes.sum();
        budget.give(from, n_bytes);
        // Fairly held before.
        budget.take_unfairly(to, n_bytes);
    }

    fn recycle(
        &mut self,
        mut partial: Box<Partial>,
        source: SourceIdx,
        budget: &mut ReassemblyBudget,
    ) {
        budget.give(source, partial.charged_bytes);
        partial.charged_bytes = 0;
        budget.give_partial(partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::budget::MAX_SPARE_BYTES;
    use proptest::prelude::*;
    use tachonym_packet::types::MAX_PACKET_BYTES;

    struct Bench {
        reassembler: Reassembler,
        budget: ReassemblyBudget,
        source: SourceIdx,
        out: Vec<u8>,
        n_evicted: usize,
    }

    impl Bench {
        fn new(limit_bytes: usize) -> Self {
            Self {
                reassembler: Reassembler::default(),
                budget: ReassemblyBudget::new(limit_bytes),
                source: SourceIdx::default(),
                out: Vec::new(),
                n_evicted: 0,
            }
        }

        fn handle_timeout(&mut self, now: MonoNs) -> u64 {
            let (source, budget) = (self.source, &mut self.budget);
            self.reassembler.handle_timeout(now, source, budget)
        }

        fn clear(&mut self) {
            self.reassembler.clear(self.source, &mut self.budget);
        }

        fn receive(&mut self, now_ms: u64, headers: &Headers, fragment: &[u8]) -> Reassembled {
            self.receive_from(None, now_ms, headers, fragment)
        }

        fn receive_from(
            &mut self,
            peer: Option<SocketAddr>,
            now_ms: u64,
            headers: &Headers,
            fragment: &[u8],
        ) -> Reassembled {
            self.out.clear();
            self.reassembler.receive(
                MonoNs::ZERO.plus_ms(now_ms),
                peer,
                headers,
                &[],
                fragment,
                &mut self.budget,
                &mut self.out,
                self.source,
                || self.n_evicted += 1,
            )
        }
    }

    fn fragment(base: u64, index: u64, count: u64) -> Headers {
        Headers {
            sequence: Some(base.wrapping_add(index)),
            frag_index: index,
            frag_count: count,
            ..Headers::default()
        }
    }

    #[test]
    fn fragments_of_two_senders_do_not_mix() {
        let mut bench = Bench::new(1 << 20);
        let [a, b]: [Option<SocketAddr>; 2] =
            ["192.0.2.1:1", "192.0.2.2:1"].map(|text| Some(text.parse().unwrap()));
        for (peer, byte) in [(a, 1), (b, 2)] {
            let waiting = bench.receive_from(peer, 0, &fragment(7, 0, 2), &[byte; 3]);
            assert!(matches!(waiting, Reassembled::Waiting));
        }
        let complete = bench.receive_from(b, 0, &fragment(7, 1, 2), &[2; 2]);
        assert!(matches!(
            complete,
            Reassembled::Complete { l3_bytes: 5, .. }
        ));
        assert_eq!(bench.out, [2; 5]);
    }

    #[test]
    fn headers_come_from_the_first_fragment_and_marks_from_any() {
        let mut bench = Bench::new(1 << 20);
        let mut second = fragment(1, 1, 2);
        second.congestion_mark = 1;
        bench.receive(0, &second, &[1]);
        let mut first = fragment(1, 0, 2);
        first.non_discovery = true;
        match bench.receive(0, &first, &[0]) {
            Reassembled::Complete { headers, .. } => {
                assert!(headers.non_discovery);
                assert_eq!(headers.congestion_mark, 1);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(bench.out, [0, 1]);
    }

    #[test]
    fn an_incomplete_packet_is_dropped_after_500_ms() {
        let mut bench = Bench::new(1 << 20);
        bench.receive(0, &fragment(1, 0, 3), &[0]);
        bench.receive(400, &fragment(1, 1, 3), &[1]);
        let at = |ms| MonoNs::ZERO.plus_ms(ms);
        assert_eq!(bench.reassembler.poll_timeout(), Some(at(900)));
        assert_eq!(bench.handle_timeout(at(899)), 0);
        assert_eq!(bench.handle_timeout(at(900)), 1);
        assert_eq!(bench.budget.used_bytes(), 0);
        // What comes late begins a new packet, which stays incomplete.
        let late = bench.receive(901, &fragment(1, 2, 3), &[2]);
        assert!(matches!(late, Reassembled::Waiting));
    }

    #[test]
    fn fragments_that_trickle_in_do_not_keep_a_packet_for_ever() {
        let mut bench = Bench::new(1 << 20);
        let at = |ms| MonoNs::ZERO.plus_ms(ms);
        for n in 0..5 {
            bench.receive(n * 400, &fragment(1, n, 10), &[0]);
            let deadline = at((n * 400 + 500).min(2000));
            assert_eq!(bench.reassembler.poll_timeout(), Some(deadline));
        }
        assert_eq!(bench.handle_timeout(at(2000)), 1);
    }

    #[test]
    fn sources_that_take_what_they_can_leave_room_for_others() {
        let mut bench = Bench::new(100_000);
        let mut greedy = Vec::new();
        let sources: Vec<_> = sources(6);
        for &source in &sources[..5] {
            bench.source = source;
            for n in 0..100 {
                bench.receive(0, &fragment(n * 10, 0, 2), &[0; 1000]);
            }
            assert!(bench.budget.used_bytes() <= 100_000);
            greedy.push((source, std::mem::take(&mut bench.reassembler)));
        }
        bench.n_evicted = 0;
        bench.source = sources[5];
        bench.receive(0, &fragment(1, 0, 2), &[1; 400]);
        let complete = bench.receive(0, &fragment(1, 1, 2), &[2; 400]);
        assert!(matches!(
            complete,
            Reassembled::Complete { l3_bytes: 800, .. }
        ));
        assert_eq!(bench.n_evicted, 0);
        for (source, mut reassembler) in greedy {
            reassembler.clear(source, &mut bench.budget);
            assert_eq!(bench.budget.held_bytes[source.idx()], 0);
        }
        assert_eq!(bench.budget.used_bytes(), 0);
    }

    /// Indexes of different sources.
    fn sources(n: usize) -> Vec<SourceIdx> {
        let mut sources = crate::system::sources_of_test();
        let faces = (0..n as u64).map(tachonym_packet::FaceId);
        faces.map(|face| sources.join(face, None)).collect()
    }

    #[test]
    fn the_faces_of_a_source_hold_no_more_together_than_one() {
        let held = |n_faces: usize| {
            let mut bench = Bench::new(100_000);
            let mut faces: Vec<_> = (0..n_faces).map(|_| Reassembler::default()).collect();
            for n in 0..200 {
                std::mem::swap(&mut faces[n as usize % n_faces], &mut bench.reassembler);
                bench.receive(0, &fragment(n * 10, 0, 2), &[0; 1000]);
                std::mem::swap(&mut faces[n as usize % n_faces], &mut bench.reassembler);
            }
            bench.budget.used_bytes()
        };
        assert!(held(1) > 40_000);
        assert!(
            held(50).abs_diff(held(1)) < 2_000,
            "{} {}",
            held(1),
            held(50)
        );
    }

    #[test]
    fn what_a_face_holds_moves_to_its_new_source() {
        let mut bench = Bench::new(100_000);
        let [from, to] = sources(2).try_into().unwrap();
        bench.source = from;
        bench.receive(0, &fragment(1, 0, 2), &[0; 1000]);
        let n_bytes = bench.budget.used_bytes();
        let budget = &mut bench.budget;
        bench.reassembler.change_source(from, to, budget);
        assert_eq!(budget.held_bytes, [0, n_bytes]);
        assert_eq!(budget.used_bytes(), n_bytes);
        bench.reassembler.clear(to, budget);
        assert_eq!(budget.held_bytes, [0, 0]);
    }

    #[test]
    fn emptied_packets_are_kept_for_all_faces_together_and_used_again() {
        let mut bench = Bench::new(64 << 20);
        let mut faces = Vec::new();
        for _ in 0..500 {
            for index in 0..2 {
                for n in 0..4 {
                    bench.receive(0, &fragment(n * 10, index, 2), &[0; 4000]);
                }
            }
            // It keeps nothing itself.
            assert!(bench.reassembler.partials.is_empty());
            assert_eq!(bench.budget.used_bytes(), 0);
            faces.push(std::mem::take(&mut bench.reassembler));
        }
        // All at once: more than are kept.
        for index in 0..2 {
            for face in &mut faces {
                std::mem::swap(face, &mut bench.reassembler);
                bench.receive(0, &fragment(1, index, 2), &[0; 4000]);
                std::mem::swap(face, &mut bench.reassembler);
            }
        }
        let spare = &bench.budget.spare;
        let kept: usize = spare.iter().map(|spare| spare.footprint_bytes()).sum();
        assert_eq!(kept, bench.budget.spare_bytes);
        assert!(kept <= MAX_SPARE_BYTES, "{kept}");
        let n_spare = spare.len();
        assert!(n_spare > 50);
        bench.receive(0, &fragment(1, 0, 2), &[0; 4000]);
        assert_eq!(bench.budget.spare.len(), n_spare - 1);
        // What it has kept of its former use counts.
        assert!(bench.budget.used_bytes() >= 8000);
    }

    #[test]
    fn incomplete_packets_are_bounded_in_number_and_bytes() {
        let mut bench = Bench::new(1 << 20);
        for n in 0..1000 {
            bench.receive(0, &fragment(n * 10, 0, 2), &[0; 100]);
            assert!(bench.reassembler.partials.len() <= MAX_PARTIALS);
        }
        assert_eq!(bench.n_evicted, 1000 - MAX_PARTIALS);

        let mut bench = Bench::new(10_000);
        for n in 0..100 {
            bench.receive(0, &fragment(n * 10, 0, 2), &[0; 5000]);
            assert!(bench.budget.used_bytes() <= 10_000);
        }
        assert_eq!(bench.n_evicted, 99);
        bench.clear();
        assert_eq!(bench.budget.used_bytes(), 0);

        let mut tiny = Bench::new(100);
        let refused = tiny.receive(0, &fragment(1, 0, 2), &[0; 200]);
        assert!(matches!(
            refused,
            Reassembled::Dropped(DropReason::ReassemblyOverflow)
        ));
    }

    #[test]
    fn senseless_fragments_are_dropped() {
        let mut bench = Bench::new(1 << 20);
        let mut no_sequence = fragment(1, 0, 2);
        no_sequence.sequence = None;
        for headers in [
            no_sequence,
            fragment(1, 0, MAX_FRAGMENTS + 1),
            fragment(1, 2, 2),
        ] {
            let dropped = bench.receive(0, &headers, &[0]);
            assert!(matches!(
                dropped,
                Reassembled::Dropped(DropReason::BadFragment)
            ));
        }
        bench.receive(0, &fragment(1, 0, 2), &[0]);
        let contradiction = bench.receive(0, &fragment(1, 1, 3), &[0]);
        assert!(matches!(
            contradiction,
            Reassembled::Dropped(DropReason::BadFragment)
        ));
        bench.receive(0, &fragment(50, 0, 3), &[0; MAX_PACKET_BYTES]);
        let over = bench.receive(0, &fragment(50, 1, 3), &[0]);
        assert!(matches!(over, Reassembled::Dropped(DropReason::TooLarge)));
        assert_eq!(bench.budget.used_bytes(), 0);
    }

    proptest! {
        /// Whatever is lost, repeated and reordered: a packet all of whose
        /// fragments arrive is delivered once, byte for byte, and no other is.
        #[test]
        fn complete_packets_are_delivered_once_and_others_never(
            packets in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 2..400), 1..60_usize), 1..30),
            lost in prop::collection::vec(prop::bool::weighted(0.1), 1..50),
            repeated in prop::collection::vec(prop::bool::weighted(0.1), 1..50),
            shuffle in prop::collection::vec(0..8_usize, 1..50),
        ) {
            let mut sequence = u64::MAX - 20;
            let mut wire: Vec<(Headers, Vec<u8>)> = Vec::new();
            let mut whole = Vec::new();
            let mut lost = lost.iter().cycle();
            let mut repeated = repeated.iter().cycle();
            for (payload, piece_bytes) in &packets {
                let pieces: Vec<&[u8]> = payload.chunks(*piece_bytes).collect();
                if pieces.len() < 2 {
                    continue;
                }
                let mut is_whole = true;
                for (index, piece) in pieces.iter().enumerate() {
                    let headers = fragment(sequence, index as u64, pieces.len() as u64);
                    if *lost.next().unwrap() {
                        is_whole = false;
                        continue;
                    }
                    wire.push((headers, piece.to_vec()));
                    // A repetition after completion would begin a packet anew;
                    // only reliability can tell those.
                    if *repeated.next().unwrap() && index + 1 < pieces.len() {
                        wire.push((headers, piece.to_vec()));
                    }
                }
                sequence = sequence.wrapping_add(pieces.len() as u64);
                if is_whole {
                    whole.push(payload.clone());
                }
            }
            let mut shuffle = shuffle.iter().cycle();
            for i in 0..wire.len() {
                let j = (i + shuffle.next().unwrap()).min(wire.len() - 1);
                wire.swap(i, j);
            }
            let mut bench = Bench::new(1 << 20);
            let mut got = Vec::new();
            for (headers, piece) in &wire {
                if let Reassembled::Complete { l3_bytes, .. } = bench.receive(0, headers, piece) {
                    prop_assert_eq!(l3_bytes, bench.out.len());
                    got.push(bench.out.clone());
                }
            }
            got.sort();
            whole.sort();
            prop_assert_eq!(bench.n_evicted, 0);
            prop_assert_eq!(got, whole);
            bench.clear();
            prop_assert_eq!(bench.budget.used_bytes(), 0);
        }
    }
}
