//! The whole forwarding engine as a store of one level: Interests from a consumer, Data sent
//! to it as copies; what is not cached is asked of a producer, which answers at once.

use tachonym_packet::{Component, MonoNs, Name};
use tachonym_tables::CsCapacity;

use super::catalogue::Chunk;
use super::packets::{Asked, PREFIX, write_data};
use super::store::{Counts, Hcs, Hit};
use crate::beds::engine::SendBuffer;
use crate::beds::first_level::{MAX_BYTES_EACH, fifo, hash_key};
use crate::beds::store::{PRODUCER, StoreBed, StoreOptions, face_of};

/// Virtual time between two packets, in nanoseconds.
const PACKET_INTERVAL_NS: u64 = 250;
/// Packets of a burst.
const BURST_PKTS: usize = 32;

/// A bed of one level whose Data are copied as a face would.
pub(super) type Bed = StoreBed<SendBuffer<()>>;

/// A bed with an empty DRAM level of `n_chunks`, FIFO, and a route for all contents.
///
/// # Errors
/// If the tables cannot be built.
pub(super) fn bed(n_chunks: usize) -> anyhow::Result<Bed> {
    let prefix = Name::new().with(Component::generic(PREFIX).view());
    let options = StoreOptions {
        capacity: CsCapacity {
            max_pkts: n_chunks,
            max_bytes: n_chunks.saturating_mul(MAX_BYTES_EACH),
        },
        policy: fifo(n_chunks),
        key: hash_key(7),
        n_consumers: 1,
        prefix: prefix.view(),
    };
    StoreBed::new(options, SendBuffer::new(()))
}

/// The router's engine between a consumer and a producer.
pub(super) struct Forwarder {
    bed: Bed,
    now: MonoNs,
    data: Vec<u8>,
    counts: Counts,
}

impl Forwarder {
    /// An engine with a content store of `n_chunks` Data, FIFO and empty.
    ///
    /// # Errors
    /// If the tables cannot be built.
    pub(super) fn new(n_chunks: usize) -> anyhow::Result<Self> {
        Ok(Self {
            bed: bed(n_chunks)?,
            now: MonoNs(1_000_000_000),
            data: Vec::new(),
            counts: Counts::default(),
        })
    }

    /// Carries Interests; those that the store did not answer are answered.
    fn carry(&mut self, interests: &[(Chunk, &[u8])]) {
        let before = self.bed.engine.counters().n_cs_hits;
        self.now.0 += PACKET_INTERVAL_NS * interests.len() as u64;
        let wires = interests.iter().map(|(_, wire)| *wire);
        let received = self.bed.receive(self.now, face_of(0), wires);
        received.expect("written here");
        let n_hits = self.bed.engine.counters().n_cs_hits - before;
        self.counts.n_requests += interests.len() as u64;
        self.counts.n_first += n_hits;
        let n_missed = interests.len() as u64 - n_hits;
        self.counts.n_missed += n_missed;
        if n_missed == 0 {
            return;
        }
        // Unsolicited Data are dropped, so all of the burst can be sent.
        for &(chunk, _) in interests {
            self.data.clear();
            write_data(chunk, &mut self.data);
            self.now.0 += PACKET_INTERVAL_NS;
            let wires = std::iter::once(&self.data[..]);
            let received = self.bed.receive(self.now, PRODUCER, wires);
            received.expect("written here");
        }
    }
}

impl Hcs for Forwarder {
    fn request(&mut self, chunk: Chunk, interest: &[u8]) -> Hit {
        let n_first = self.counts.n_first;
        self.carry(&[(chunk, interest)]);
        if self.counts.n_first > n_first {
            Hit::First
        } else {
            Hit::Miss
        }
    }

    fn request_burst(&mut self, asked: &Asked) {
        let asked: Vec<_> = asked.iter().collect();
        for burst in asked.chunks(BURST_PKTS) {
            self.carry(burst);
        }
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{Bytes, Catalogue};
    use super::super::model::shrunk_settings;
    use super::super::store::{measure, warm};
    use super::super::workload::{Kind, Requests};
    use super::*;

    #[test]
    fn what_was_asked_for_once_is_answered_from_the_store() {
        let catalogue = Catalogue::of(Bytes(20_000_000));
        let n_chunks = catalogue.n_chunks();
        let mut forwarder = Forwarder::new(n_chunks as usize).expect("a small engine");
        let settings = shrunk_settings(catalogue, 100);
        let mut seq = Requests::new(Kind::Seq, &settings, 1);
        warm(&mut forwarder, &mut seq, n_chunks, |_| true);
        assert_eq!(forwarder.counts().n_missed, n_chunks);
        for kind in Kind::ALL {
            let mut requests = Requests::new(kind, &settings, 1);
            let measured = measure(&mut forwarder, &mut requests, 1_000, |_| true);
            assert_eq!(measured.counts.n_first, 1_000, "{kind}");
        }
        let counters = forwarder.bed.engine.counters();
        assert_eq!(counters.n_out_data, n_chunks + 3_000);
        // Half of the room: what came last is there.
        let mut small = Forwarder::new(n_chunks as usize / 2).expect("a small engine");
        let mut seq = Requests::new(Kind::Seq, &settings, 1);
        warm(&mut small, &mut seq, n_chunks, |_| true);
        let last = Chunk {
            content: catalogue.n_contents - 1,
            segment: 1_279,
        };
        for (chunk, expected) in [(last, Hit::First), (Chunk::default(), Hit::Miss)] {
            let mut asked = Asked::default();
            asked.push(chunk);
            let (chunk, interest) = asked.iter().next().expect("one was pushed");
            assert_eq!(small.request(chunk, interest), expected);
        }
    }
}
