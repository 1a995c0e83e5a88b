//! FIBs as Yuan 2015, section 3.4.1, fills them, and searches of them.
//!
//! The worst case for a search: it meets a rule at each length that a binary search asks
//! for, and each rule's name is somewhere else in memory. So of each name rules are made
//! of those lengths (4, 6 and 7 of 7 components), all of one length before any of the
//! next.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::Context as _;
use serde::Serialize;
use tachonym_memory::{PagePreference, Pages};
use tachonym_packet::{FaceId, HashKey, HashKind, HashSpan, NameHashes, NameView};
use tachonym_tables::{Fib, FibConfig, FibEngine, FibMatching, FibReader, NextHop, NextHops};

use crate::choices::PageChoice;
use crate::lookup::{self, names::NameSet};
use crate::random::Random;

use super::Engine;

/// Most names searched for in a round.
const MAX_NAMES: usize = 1 << 16;
/// Names of a burst.
const BURST: usize = 32;

/// A FIB to be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Rules in it.
    pub n_rules: u64,
    /// Components of the longest of them.
    pub n_components: usize,
    /// How it is searched.
    pub engine: Engine,
    /// When names are compared.
    pub matching: Matching,
    /// Which pages are asked for.
    #[serde(skip)]
    pub pages: PageChoice,
}

/// When names are compared, and how they are hashed then: `always` allows a weaker hash,
/// `at the end` asks for one that nobody can make collide (Yuan 2015, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// Whenever tags agree, after the fastest keyed hash here; in the thesis CityHash.
    Always,
    /// When the search is over, after SipHash-2-4.
    AtEnd,
}

impl Matching {
    /// As the thesis calls the two.
    pub(super) const ALL: [Self; 2] = [Self::Always, Self::AtEnd];

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Always => "always (CityA)",
            Self::AtEnd => "at the end (SipE)",
        }
    }
}

/// What is fetched ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fetch {
    /// Nothing.
    None,
    /// The bucket that a search asks for first.
    First,
    /// Every bucket that it may ask for.
    All,
    /// Every bucket, and then every name, of 32 searches together: as the router does.
    Burst,
}

impl Fetch {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::First => "first",
            Self::All => "all",
            Self::Burst => "bursts of 32",
        }
    }
}

/// How a FIB is searched in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    /// What is fetched ahead.
    pub fetch: Fetch,
    /// Whether names were hashed before the clock starts.
    pub is_hashed_before: bool,
    /// Threads that search at once.
    pub n_threads: usize,
}

/// The lengths that a binary search for a name asks for, the longest last.
pub(super) fn lengths_asked(n_components: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut length = n_components;
    while length != 0 {
        lengths.push(length);
        length &= length - 1;
    }
    lengths.reverse();
    lengths
}

/// A FIB that is filled, and names to search for.
pub(super) struct Bed {
    fib: Fib,
    key: HashKey,
    names: EncodedNames,
}

/// Names one after the other.
#[derive(Default)]
pub(super) struct EncodedNames {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl EncodedNames {
    /// Appends the name whose components `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn views(&self) -> Vec<NameView<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| NameView::parse_value(&self.bytes[start..end]))
            .map(|name| name.expect("made of components"))
            .collect()
    }
}

pub(super) fn some_key(kind: HashKind, random: &mut Random) -> HashKey {
    let secret = std::array::from_fn(|_| random.next_u64() as u8);
    HashKey::new(kind, &secret)
}

impl Bed {
    /// Fills a FIB.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub(super) fn new(table: Table, seed: u64) -> anyhow::Result<Self> {
        let mut random = Random::new(seed);
        let lengths = lengths_asked(table.n_components);
        let n_names = (table.n_rules / lengths.len() as u64).max(1);
        let n_rules = usize::try_from(n_names)? * lengths.len();
        let kind = match table.matching {
            Matching::Always => HashKind::fastest(),
            Matching::AtEnd => HashKind::SipHash24,
        };
        let key = some_key(kind, &mut random);
        let set = NameSet::new(seed, table.n_components);
        let config = FibConfig {
            expected_entries: n_rules,
            expected_name_bytes: set.mean_bytes(),
            pages: PagePreference::from(table.pages),
            engine: FibEngine::from(table.engine),
            matching: match table.matching {
                Matching::Always => FibMatching::Always,
                Matching::AtEnd => FibMatching::AtEnd,
            },
            ..FibConfig::with_max_entries(n_rules)
        };
        let mut fib = Fib::new(config, key.clone())?;
        let hops = NextHops::new(vec![NextHop::new(FaceId(256), 1)]).expect("one");
        let mut value = Vec::new();
        for &length in &lengths {
            for number in 0..n_names {
                value.clear();
                set.write(number, &mut value);
                let name = NameView::parse_value(&value).context("a synthetic name")?;
                fib.insert(name.prefix(length), &hops)?;
            }
        }
        let mut names = EncodedNames::default();
        for _ in 0..MAX_NAMES.min(usize::try_from(n_names)?) {
            names.push(|out| set.write(random.next_u64() % n_names, out));
        }
        Ok(Self { fib, key, names })
    }

    pub(super) fn pages(&self) -> Pages {
        self.fib.pages()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.fib.memory_bytes()
    }

    /// Nanoseconds that one name takes one thread, and millions of names a second that all
    /// threads search for together.
    pub(super) fn measure(&self, way: Way) -> (f64, f64) {
        let names = self.names.views();
        let start = Barrier::new(way.n_threads);
        let times: Vec<f64> = std::thread::scope(|scope| {
            let searching: Vec<_> = (0..way.n_threads)
                .map(|_| {
                    let (names, start, key) = (&names, &start, &self.key);
                    let mut reader = self.fib.reader();
                    scope.spawn(move || {
                        start.wait();
                        search_ns(&mut reader, names, key, way)
                    })
                })
                .collect();
            let ended = searching
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join);
            ended
                .map(|ns| ns.expect("a search does not panic"))
                .collect()
        });
        let mean_ns = times.iter().sum::<f64>() / times.len() as f64;
        let mpps = times.iter().map(|ns| 1e3 / ns).sum();
        (mean_ns, mpps)
    }
}

/// Searches for every name; nanoseconds for each.
pub(super) fn search_ns(
    reader: &mut FibReader,
    names: &[NameView<'_>],
    key: &HashKey,
    way: Way,
) -> f64 {
    if way.fetch == Fetch::Burst {
        return lookup::search_ns(reader, names, key, BURST);
    }
    let mut before = NameHashes::new();
    let mut spans = Vec::new();
    if way.is_hashed_before {
        before.push_burst(key, names.iter().copied(), &mut spans);
    }
    let mut hashes = NameHashes::new();
    let mut n_found = 0;
    let begun = Instant::now();
    for (idx, names) in names.chunks(BURST).enumerate() {
        let spans = spans.chunks(BURST).nth(idx).unwrap_or_default();
        let hashed = (&before, spans);
        n_found += one_by_one(reader, names, key, &mut hashes, hashed, way.fetch);
    }
    let ns = begun.elapsed().as_nanos() as f64 / names.len() as f64;
    assert_eq!(n_found, names.len(), "every name has a prefix in the FIB");
    ns
}

fn one_by_one(
    reader: &mut FibReader,
    names: &[NameView<'_>],
    key: &HashKey,
    hashes: &mut NameHashes,
    (before, spans): (&NameHashes, &[HashSpan]),
    fetch: Fetch,
) -> usize {
    let view = reader.pin();
    let mut n_found = 0;
    for (idx, &name) in names.iter().enumerate() {
        let hashes = match spans.get(idx) {
            Some(&span) => before.slice(span),
            None => {
                hashes.clear();
                let span = hashes.push_name(key, name);
                hashes.slice(span)
            }
        };
        match fetch {
            Fetch::First => view.prefetch_first_bucket(hashes),
            Fetch::All => view.prefetch_buckets(hashes),
            Fetch::None | Fetch::Burst => {}
        }
        n_found += usize::from(black_box(view.find_longest(name, hashes)).is_some());
    }
    n_found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_searches_ask_for_the_published_lengths() {
        assert_eq!(lengths_asked(7), [4, 6, 7]);
        assert_eq!(lengths_asked(15), [8, 12, 14, 15]);
    }
}
