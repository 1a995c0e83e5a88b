//! The first level of a store: the router's own table of pending Interests and content
//! store, in memory.

use std::hint::black_box;

use anyhow::Context as _;
use tachonym_bench::random::Random;
use tachonym_forward::BURST_DISTANCE;
use tachonym_packet::{DataView, HashKey, HashKind, HashSpan, InterestView, MonoNs, NameHashes};
use tachonym_policy::{AdmissionKind, EvictionKind, Policy, PolicyConfig};
use tachonym_tables::{CsCapacity, CsConfig, Known, PitCs, PitCsConfig, Sighted};

use super::engine::workload::Burst;

/// Bytes that are allowed to each Data, more than any takes: the number of Data is to be
/// what bounds a store.
pub(crate) const MAX_BYTES_EACH: usize = 16_384;

/// All happens at this time: nothing here gets stale.
const NOW: MonoNs = MonoNs(1_000_000_000);

/// What evicts in all stores here.
pub(crate) fn fifo(n_chunks: usize) -> PolicyConfig {
    PolicyConfig::new(AdmissionKind::None, EvictionKind::Fifo, n_chunks)
}

/// A key of name hashes: that of the tables is always the same, for one of its own for every
/// run would make times differ.
pub(crate) fn hash_key(seed: u64) -> HashKey {
    let mut random = Random::new(seed);
    let secret: [u64; 4] = std::array::from_fn(|_| random.next_u64());
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(secret) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    HashKey::new(HashKind::fastest(), &bytes)
}

/// The tables of a first level.
#[derive(Debug)]
pub(crate) struct FirstLevel {
    tables: PitCs,
    key: HashKey,
    hashes: NameHashes,
    spans: Vec<HashSpan>,
    sighted: [Sighted; BURST_DISTANCE],
}

impl FirstLevel {
    /// Without any of the `n_chunks` Data that fit.
    ///
    /// # Errors
    /// If there is not as much memory as the indexes take.
    pub(crate) fn new(n_chunks: usize) -> anyhow::Result<Self> {
        Self::with_policy(&fifo(n_chunks))
    }

    /// The same, with another policy and as many chunks as it is for.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn with_policy(policy: &PolicyConfig) -> anyhow::Result<Self> {
        let n_chunks = policy.capacity;
        let capacity = CsCapacity {
            max_pkts: n_chunks,
            max_bytes: n_chunks.saturating_mul(MAX_BYTES_EACH),
        };
        let config = PitCsConfig {
            cs: CsConfig {
                capacity,
                ..CsConfig::default()
            },
            ..PitCsConfig::default()
        };
        let policy = Policy::with_slots(policy, capacity.max_slots())?;
        let key = hash_key(7);
        let tables = PitCs::new(config, policy, key.clone());
        Ok(Self {
            tables: tables.with_context(|| format!("an L1 of {n_chunks} chunks"))?,
            key,
            hashes: NameHashes::new(),
            spans: Vec::new(),
            sighted: [Sighted::default(); BURST_DISTANCE],
        })
    }

    /// Whether a Data answers. Reads its ends, and copies nothing.
    pub(crate) fn find(&mut self, interest: &[u8]) -> bool {
        let interest = InterestView::parse(interest).expect("written here");
        self.hashes.clear();
        let span = self.hashes.push_name(&self.key, interest.name());
        let found = self
            .tables
            .find_data(&interest, self.hashes.slice(span), NOW);
        found.is_ok_and(|data| read_ends(data.wire()))
    }

    /// Finds the Data for each, with what they read fetched ahead as the router does it. Tells
    /// which Interest it is, and the Data if there is one.
    pub(crate) fn find_burst(
        &mut self,
        asked: &Burst,
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) {
        let parse = |wire| InterestView::parse(wire).expect("written here");
        let interests: Vec<_> = asked.iter().map(parse).collect();
        self.hashes.clear();
        self.spans.clear();
        let names = interests.iter().map(InterestView::name);
        self.hashes.push_burst(&self.key, names, &mut self.spans);
        let groups = interests.chunks(BURST_DISTANCE);
        let mut numbers = 0..;
        for (interests, spans) in groups.zip(self.spans.chunks(BURST_DISTANCE)) {
            for (interest, &span) in interests.iter().zip(spans) {
                let hash = self.hashes.get(span, interest.name().len());
                self.tables.prefetch_buckets_for_interest(hash);
            }
            let sighted = self.sighted.iter_mut().zip(interests);
            for ((sighted, interest), &span) in sighted.zip(spans) {
                let hash = self.hashes.get(span, interest.name().len());
                *sighted = self.tables.prefetch_entries_for_interest(hash);
            }
            for &sighted in &self.sighted[..interests.len()] {
                self.tables.prefetch_hit(sighted);
            }
            let interests = interests.iter().zip(spans);
            for ((interest, &span), number) in interests.zip(&mut numbers) {
                let hashes = self.hashes.slice(span);
                let data = self.tables.find_data(interest, hashes, NOW);
                found(number, data.ok().map(|data| data.wire()));
            }
        }
    }

    /// Caches copies of Data, evicting what came first; those that are there stay where they
    /// are.
    pub(crate) fn insert_burst<'a>(&mut self, wires: impl Iterator<Item = &'a [u8]> + Clone) {
        let parse = |wire| DataView::parse(wire).expect("written here");
        self.hashes.clear();
        self.spans.clear();
        let names = wires.clone().map(|wire| parse(wire).name());
        self.hashes.push_burst(&self.key, names, &mut self.spans);
        for &span in &self.spans {
            let hashes = self.hashes.slice(span);
            self.tables.prefetch_buckets_for_data(hashes);
        }
        for (wire, &span) in wires.zip(&self.spans) {
            self.tables.prefetch_victims();
            let hashes = self.hashes.slice(span);
            let unasked = (&[][..], Known::default());
            self.tables.insert_data(&parse(wire), hashes, unasked, NOW);
        }
    }

    /// Data in it.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.tables.cs().len()
    }
}

/// Reads the first and the last byte of a packet.
#[inline]
pub(crate) fn read_ends(wire: &[u8]) -> bool {
    black_box(wire.first().copied());
    black_box(wire.last().copied());
    true
}
