//! The whole forwarding engine as a store of one level: Interests from a consumer, Data sent
//! to him as copies; what is not cached is asked of a producer, who answers at once.

use anyhow::Context as _;
use tachonym_forward::{Engine, EngineConfig, FaceTraits, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{Component, FaceId, MonoNs, Name, PacketView};
use tachonym_tables::{CsCapacity, FibConfig, NextHop};

use super::catalogue::Chunk;
use super::dram::{MAX_BYTES_EACH, fifo, hash_key};
use super::packets::{Asked, PREFIX, write_data};
use super::store::{Counts, Hcs, Hit};
use crate::engine_bed::SendBuffer;

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
/// Virtual time between two packets, in nanoseconds.
const PACKET_INTERVAL_NS: u64 = 250;
/// Packets of a burst.
const BURST_PKTS: usize = 32;

/// See the module.
#[derive(Debug)]
pub(super) struct Forwarder {
    engine: Engine,
    now: MonoNs,
    sent: SendBuffer<()>,
    data: Vec<u8>,
    counts: Counts,
}

impl Forwarder {
    /// With a content store of so many Data, FIFO and empty, and a route for all contents.
    ///
    /// # Errors
    /// If the tables cannot be built.
    pub(super) fn new(n_chunks: usize) -> anyhow::Result<Self> {
        let config = EngineConfig {
            cs: CsCapacity {
                max_pkts: n_chunks,
                max_bytes: n_chunks.saturating_mul(MAX_BYTES_EACH),
            },
            cs_policy: fifo(n_chunks),
            fib: FibConfig::with_max_entries(1_024),
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(config, hash_key(7), 3)
            .with_context(|| format!("an engine with {n_chunks} chunks"))?;
        for face in [CONSUMER, PRODUCER] {
            engine.add_face(face, FaceTraits::REMOTE);
        }
        let prefix = Name::new().with(Component::generic(PREFIX).view());
        engine.add_next_hop(prefix.view(), NextHop::new(PRODUCER, 0))?;
        Ok(Self {
            engine,
            now: MonoNs(1_000_000_000),
            sent: SendBuffer::new(()),
            data: Vec::new(),
            counts: Counts::default(),
        })
    }

    /// Carries Interests; those that the store did not answer are answered.
    fn carry(&mut self, interests: &[(Chunk, &[u8])]) {
        let before = self.engine.counters().n_cs_hits;
        let packets = interests.iter().map(|(_, wire)| *wire);
        self.receive(packets, CONSUMER);
        let n_hits = self.engine.counters().n_cs_hits - before;
        self.counts.n_requests += interests.len() as u64;
        self.counts.n_first += n_hits;
        let n_missed = interests.len() as u64 - n_hits;
        self.counts.n_missed += n_missed;
        if n_missed == 0 {
            return;
        }
        // Data that nobody waits for are dropped: so it need not be known who does.
        let mut data = std::mem::take(&mut self.data);
        for &(chunk, _) in interests {
            data.clear();
            write_data(chunk, &mut data);
            self.receive(std::iter::once(&data[..]), PRODUCER);
        }
        self.data = data;
    }

    fn receive<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>, face: FaceId) {
        let headers = Headers::default();
        let rx: Vec<_> = packets
            .map(|wire| {
                let packet = PacketView::parse(wire).expect("written here");
                RxPacket::new(face, &headers, packet).expect("no headers")
            })
            .collect();
        self.now.0 += PACKET_INTERVAL_NS * rx.len() as u64;
        self.engine.handle_burst(self.now, &rx, &mut self.sent);
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
        let counters = forwarder.engine.counters();
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
