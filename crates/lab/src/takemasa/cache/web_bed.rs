//! The router's engine between a consumer and the producer of all web objects, in memory.
//!
//! Takemasa 2019, section 5.4.4: one thread, the web workload, Interests of 121 bytes and
//! Data of 1,143, names of seven components. A miss costs the Interest's way upstream and
//! the Data's way back, an insertion the copy of the Data and what it evicts, a hit the
//! answer.

use std::time::Instant;

use anyhow::Context as _;
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Output, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, HashKind, InterestRewrite, InterestView, MonoNs, NackReason, Name, NameView,
    tlv, types,
};
use tachonym_tables::{CsCapacity, FibConfig, NextHop};

use super::simulate::name_hash;
use super::sources::policy;
use super::workload::Independent;
use crate::beds::engine::workload::Burst;
use crate::beds::engine::{Kind, SendBuffer};
use crate::workloads::Requests as _;

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
pub(super) const INTEREST_BYTES: usize = 121;
pub(super) const DATA_BYTES: usize = 1_143;
/// Virtual time between two packets, in nanoseconds.
const PACKET_INTERVAL_NS: u64 = 250;

/// Sizes of a bed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) store_pkts: usize,
    pub(super) n_prefixes: u32,
    pub(super) burst_pkts: usize,
}

/// What has come and gone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) n_interests: u64,
    pub(super) n_misses: u64,
    pub(super) n_data: u64,
    pub(super) n_inserts: u64,
}

impl Counted {
    pub(super) const fn since(&self, earlier: &Self) -> Self {
        Self {
            n_interests: self.n_interests - earlier.n_interests,
            n_misses: self.n_misses - earlier.n_misses,
            n_data: self.n_data - earlier.n_data,
            n_inserts: self.n_inserts - earlier.n_inserts,
        }
    }
}

/// An engine between a consumer and the producer of all objects.
pub(super) struct WebBed {
    engine: Engine,
    requests: Independent,
    burst_pkts: usize,
    n_prefixes: u32,
    now: MonoNs,
    n_nonces: u32,
    out: Upstream,
    interests: Burst,
    data: Burst,
}

impl WebBed {
    /// A bed whose content store has the policy `name`.
    ///
    /// # Errors
    /// If there is no such policy, or not as much memory.
    pub(super) fn new(sizes: Sizes, requests: Independent, name: &str) -> anyhow::Result<Self> {
        let n_prefixes = sizes.n_prefixes as usize;
        let config = EngineConfig {
            cs: CsCapacity {
                max_pkts: sizes.store_pkts,
                // The number of packets is to be what bounds it.
                max_bytes: sizes.store_pkts * 8_192,
            },
            cs_policy: policy(name, sizes.store_pkts)?,
            fib: FibConfig {
                expected_entries: n_prefixes,
                ..FibConfig::with_max_entries(n_prefixes + 1_024)
            },
            ..EngineConfig::default()
        };
        let key = HashKey::new(HashKind::fastest(), &[7; 32]);
        let mut engine = Engine::new(config, key, 3)?;
        for face in [CONSUMER, PRODUCER] {
            engine.add_face(face, FaceTraits::REMOTE);
        }
        for number in 0..sizes.n_prefixes {
            let mut value = Vec::new();
            write_prefix(number, &mut value);
            let prefix: Name = NameView::parse_value(&value).context("a name")?.to_name();
            engine.add_next_hop(prefix.view(), NextHop::new(PRODUCER, 0))?;
        }
        Ok(Self {
            engine,
            requests,
            burst_pkts: sizes.burst_pkts,
            n_prefixes: sizes.n_prefixes,
            now: MonoNs(1_000_000_000),
            n_nonces: 0,
            out: Upstream {
                sent: SendBuffer::new(()),
                asked: Vec::new(),
            },
            interests: Burst::default(),
            data: Burst::default(),
        })
    }

    /// Counts so far.
    pub(super) fn counted(&self) -> Counted {
        let (engine, store) = (self.engine.counters(), self.engine.cs().counters());
        Counted {
            n_interests: engine.n_in_interests,
            n_misses: store.n_misses,
            n_data: engine.n_in_data,
            n_inserts: store.n_inserts,
        }
    }

    /// Carries `n_requests`; returns nanoseconds of the engine for each.
    pub(super) fn carry_requests(&mut self, n_requests: u64) -> f64 {
        let mut objects = vec![0; self.burst_pkts];
        let (mut n_taken, mut elapsed_ns) = (0, 0);
        while n_taken < n_requests {
            let n_here = self.requests.fill(&mut objects);
            n_taken += n_here as u64;
            self.interests.clear();
            for &object in &objects[..n_here] {
                self.n_nonces = self.n_nonces.wrapping_add(1);
                let (nonce, n_prefixes) = (self.n_nonces, self.n_prefixes);
                self.interests
                    .push(|out| write_interest(object, n_prefixes, nonce, out));
            }
            elapsed_ns += self.carry(Kind::Miss);
            self.data.clear();
            for &idx in &self.out.asked {
                let (object, n_prefixes) = (objects[idx], self.n_prefixes);
                self.data.push(|out| write_data(object, n_prefixes, out));
            }
            elapsed_ns += self.carry(Kind::Data);
        }
        elapsed_ns as f64 / n_taken as f64
    }

    /// Carries the Interests, or the Data; how long that took.
    fn carry(&mut self, kind: Kind) -> u128 {
        let (burst, face) = match kind {
            Kind::Data => (&self.data, PRODUCER),
            _ => (&self.interests, CONSUMER),
        };
        self.now.0 += PACKET_INTERVAL_NS * burst.len() as u64;
        self.out.asked.clear();
        let mut rx = Vec::with_capacity(burst.len());
        let headers = Headers::default();
        let begun = Instant::now();
        for wire in burst.iter() {
            rx.push(RxPacket::parse(face, &headers, wire).expect("written here"));
        }
        let mut out = Watched {
            upstream: &mut self.out,
            burst,
        };
        self.engine.handle_burst(self.now, &rx, &mut out);
        begun.elapsed().as_nanos()
    }
}

/// Where packets go, and which Interests went to the producer.
struct Upstream {
    sent: SendBuffer<()>,
    /// Their places in the burst.
    asked: Vec<usize>,
}

struct Watched<'a> {
    upstream: &'a mut Upstream,
    burst: &'a Burst,
}

impl Output for Watched<'_> {
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        let place = self.burst.place_of(interest.wire());
        self.upstream.asked.extend(place);
        let sent = &mut self.upstream.sent;
        sent.send_interest(face, interest, rewrite, headers);
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        self.upstream.sent.send_data(face, data_wire, headers);
    }

    fn send_nack(&mut self, _: FaceId, reason: NackReason, _: &[u8], _: &Headers) {
        panic!("nothing is refused here: {reason:?}");
    }
}

/// Four components, in which `number` is.
fn write_prefix(number: u32, out: &mut Vec<u8>) {
    for place in 0..4 {
        let scattered = name_hash(number.wrapping_mul(4).wrapping_add(place));
        write_component(scattered, 9, out);
    }
}

/// A component of `n_bytes` that says `number`.
fn write_component(number: u64, n_bytes: usize, out: &mut Vec<u8>) {
    tlv::write_head(out, types::component::GENERIC.into(), n_bytes);
    let text = format!("{number:016x}");
    out.extend(text.bytes().cycle().take(n_bytes));
}

fn write_name(object: u32, n_prefixes: u32, out: &mut Vec<u8>) {
    let scattered = name_hash(object);
    write_prefix((scattered % u64::from(n_prefixes)) as u32, out);
    write_component(scattered >> 32, 9, out);
    write_component(scattered, 9, out);
    // So long that an Interest is as long as it should be.
    write_component(
        u64::from(object),
        INTEREST_BYTES - 2 - 2 - 6 * 11 - 2 - 6,
        out,
    );
}

fn write_interest(object: u32, n_prefixes: u32, nonce: u32, out: &mut Vec<u8>) {
    tlv::write_nested(out, types::INTEREST, |out| {
        tlv::write_nested(out, types::NAME, |out| write_name(object, n_prefixes, out));
        tlv::write_tlv(out, types::NONCE, &nonce.to_be_bytes());
    });
}

fn write_data(object: u32, n_prefixes: u32, out: &mut Vec<u8>) {
    const REST_BYTES: usize = 4 + (INTEREST_BYTES - 2 - 6) + 4 + 5 + 34;
    tlv::write_nested(out, types::DATA, |out| {
        tlv::write_nested(out, types::NAME, |out| write_name(object, n_prefixes, out));
        tlv::write_head(out, types::CONTENT, DATA_BYTES - REST_BYTES);
        out.resize(out.len() + DATA_BYTES - REST_BYTES, 0x5a);
        tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
        });
        tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0; 32]);
    });
}

#[cfg(test)]
mod tests {
    use tachonym_packet::DataView;

    use super::*;

    #[test]
    fn packets_are_as_long_as_published_and_answer_each_other() {
        for object in [0, 7, 9_999_999] {
            let (mut interest, mut data) = (Vec::new(), Vec::new());
            write_interest(object, 1_000, 5, &mut interest);
            write_data(object, 1_000, &mut data);
            assert_eq!((interest.len(), data.len()), (INTEREST_BYTES, DATA_BYTES));
            let interest = InterestView::parse(&interest).expect("well-formed");
            let data = DataView::parse(&data).expect("well-formed");
            assert_eq!(interest.name(), data.name());
            assert_eq!(data.name().len(), 7);
        }
    }
}
