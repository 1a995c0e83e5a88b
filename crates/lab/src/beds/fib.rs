//! FIBs as Yuan 2015, section 3.4.1, fills them, and searches of them.
//!
//! The worst case of a search: it meets a rule at each length that a binary search asks
//! for, and each rule's name is somewhere else in memory. So of each name rules are made
//! of those lengths (4, 6 and 7 of 7 components), all of one length before any of the
//! next.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::Context as _;
use clap::ValueEnum as _;
use tachonym_bench::Param;
use tachonym_bench::cpu::{self, Pinned};
use tachonym_memory::{PagePreference, Pages};
use tachonym_packet::{FaceId, HashKey, HashKind, HashSpan, NameHashes, NameView};
use tachonym_tables::{Fib, FibConfig, FibEngine, FibMatching, FibReader, NextHop, NextHops};

use crate::choices::PageChoice;
use crate::workloads::names::NameSet;
use tachonym_bench::random::Random;

/// Most names that a thread searches for in a round.
const MAX_NAMES: u64 = 1 << 16;
/// Names of a burst.
const BURST: usize = 32;
/// Names of a burst that are hashed together, so that memory answers for those before
/// meanwhile.
const GROUP: usize = 16;

/// The search algorithms of the FIB, with their words.
pub(crate) const ENGINES: [(&str, FibEngine); 4] = [
    ("longest-first", FibEngine::LongestFirst),
    ("two-stage", FibEngine::TwoStage { first: 0 }),
    ("binary-search", FibEngine::BinarySearch),
    ("shortest-first", FibEngine::ShortestFirst),
];

/// The parameter that chooses one of [`ENGINES`].
pub(crate) const ENGINE_PARAM: Param = Param::choice(
    "engine",
    "search algorithm of the FIB",
    &[
        "longest-first",
        "two-stage",
        "binary-search",
        "shortest-first",
    ],
    "binary-search",
);

/// The parameter that chooses the pages of tables, read by [`page_choice`].
pub(crate) const PAGES_PARAM: Param = Param::choice(
    "pages",
    "pages of the tables",
    &["auto", "1g", "2m", "transparent", "base"],
    "auto",
);

/// The search algorithm that a word of [`ENGINE_PARAM`] stands for.
pub(crate) fn engine_named(word: &str) -> FibEngine {
    let found = ENGINES.iter().find(|(label, _)| *label == word);
    found.expect("a word of the parameter").1
}

/// The word of a search algorithm.
pub(crate) fn engine_label(engine: FibEngine) -> &'static str {
    let found = ENGINES.iter().find(|(_, other)| *other == engine);
    found.map_or("another", |(label, _)| label)
}

/// The pages that a word of [`PAGES_PARAM`] stands for.
pub(crate) fn page_choice(word: &str) -> PageChoice {
    PageChoice::from_str(word, false).expect("a word of the parameter")
}

/// When names are compared, in the order of Yuan 2015, section 3.3.2.
pub(crate) const MATCHINGS: [FibMatching; 2] = [FibMatching::Always, FibMatching::AtEnd];

/// The hash that goes with a way to compare names: comparing always allows a weaker hash;
/// comparing at the end asks for one whose collisions cannot be planned (Yuan 2015, section
/// 3.3.2).
pub(crate) fn hash_kind(matching: FibMatching) -> HashKind {
    match matching {
        FibMatching::Always => HashKind::fastest(),
        _ => HashKind::SipHash24,
    }
}

/// When names are compared, and the hash that runs here.
pub(crate) fn matching_label(matching: FibMatching) -> String {
    let when = match matching {
        FibMatching::Always => "always",
        _ => "at the end",
    };
    format!("{when}, {}", hash_kind(matching).label())
}

/// A FIB to be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FibSpec {
    /// Rules in it.
    pub(crate) n_rules: u64,
    /// Components of the longest of them.
    pub(crate) n_components: usize,
    /// How it is searched.
    pub(crate) engine: FibEngine,
    /// When names are compared.
    pub(crate) matching: FibMatching,
    /// Which pages are asked for.
    pub(crate) pages: PageChoice,
}

impl FibSpec {
    /// Memory that it takes at most, in bytes: a rule of seven components takes 211 with its
    /// markers, one of fifteen 340.
    pub(crate) const fn max_bytes(&self) -> u64 {
        self.n_rules * (100 + 20 * self.n_components as u64)
    }
}

/// What is fetched ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
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
    pub(crate) const ALL: [Self; 4] = [Self::None, Self::First, Self::All, Self::Burst];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::First => "first",
            Self::All => "all",
            Self::Burst => "bursts of 32",
        }
    }
}

/// How a FIB is searched in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// What is fetched ahead.
    pub(crate) fetch: Fetch,
    /// Whether names were hashed before the clock starts.
    pub(crate) is_hashed_before: bool,
    /// Threads that search at once.
    pub(crate) n_threads: usize,
}

/// What a round measured.
#[derive(Clone, Debug)]
pub(crate) struct Searched {
    /// Nanoseconds that a name takes a thread.
    pub(crate) ns: f64,
    /// Names of all threads by the time from their common start to the end of the slowest,
    /// in millions a second.
    pub(crate) mpps: f64,
    /// Where each thread ran.
    pub(crate) pinned: Vec<Pinned>,
}

/// The lengths that a binary search for a name asks for, the longest last.
pub(crate) fn lengths_asked(n_components: usize) -> Vec<usize> {
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
pub(crate) struct Bed {
    fib: Fib,
    key: HashKey,
    /// By thread: each has names of its own.
    names: Vec<EncodedNames>,
}

/// Names one after the other.
#[derive(Default)]
pub(crate) struct EncodedNames {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl EncodedNames {
    /// Appends the name whose components `write` appends.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn views(&self) -> Vec<NameView<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| NameView::parse_value(&self.bytes[start..end]))
            .map(|name| name.expect("made of components"))
            .collect()
    }
}

/// A key that belongs to a sequence of random numbers.
pub(crate) fn some_key(kind: HashKind, random: &mut Random) -> HashKey {
    let secret = std::array::from_fn(|_| random.next_u64() as u8);
    HashKey::new(kind, &secret)
}

/// A set of one next hop.
pub(crate) fn next_hops(face: u64) -> NextHops {
    NextHops::new(vec![NextHop::new(FaceId(face), 1)]).expect("there is one")
}

impl Bed {
    /// Fills a FIB, and draws names for each of `n_threads` threads.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub(crate) fn new(spec: FibSpec, n_threads: usize, seed: u64) -> anyhow::Result<Self> {
        let mut random = Random::new(seed);
        let lengths = lengths_asked(spec.n_components);
        let n_names = (spec.n_rules / lengths.len() as u64).max(1);
        let n_rules = usize::try_from(n_names)? * lengths.len();
        let key = some_key(hash_kind(spec.matching), &mut random);
        let set = NameSet::new(seed, spec.n_components);
        let config = FibConfig {
            expected_entries: n_rules,
            expected_name_bytes: set.mean_bytes(),
            pages: PagePreference::from(spec.pages),
            engine: spec.engine,
            matching: spec.matching,
            ..FibConfig::with_max_entries(n_rules)
        };
        let mut fib = Fib::new(config, key.clone())?;
        let hops = next_hops(256);
        let mut value = Vec::new();
        for &length in &lengths {
            for number in 0..n_names {
                value.clear();
                set.write(number, &mut value);
                let name = NameView::parse_value(&value).context("a synthetic name")?;
                fib.insert(name.prefix(length), &hops)?;
            }
        }
        let mut names_of_thread = |_| {
            let mut names = EncodedNames::default();
            for _ in 0..MAX_NAMES.min(n_names) {
                names.push(|out| set.write(random.next_u64() % n_names, out));
            }
            names
        };
        let names = (0..n_threads).map(&mut names_of_thread).collect();
        Ok(Self { fib, key, names })
    }

    pub(crate) fn pages(&self) -> Pages {
        self.fib.pages()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.fib.memory_bytes()
    }

    /// Searches with pinned threads, each for names of its own.
    pub(crate) fn measure(&self, way: Way) -> Searched {
        let names = &self.names[..way.n_threads];
        let start = Barrier::new(way.n_threads);
        let cpus = cpu::available();
        let ended: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = names
                .iter()
                .enumerate()
                .map(|(idx, names)| {
                    let (start, cpus, key) = (&start, &cpus, &self.key);
                    let mut reader = self.fib.reader();
                    let names = names.views();
                    scope.spawn(move || {
                        let pinned = cpu::pin(idx, cpus);
                        start.wait();
                        let time = search(&mut reader, &names, key, way);
                        (pinned, names.len(), time)
                    })
                })
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended
                .map(|it| it.expect("a search does not panic"))
                .collect()
        });
        let times = || ended.iter().map(|it| &it.2);
        let begun = times().map(|time| time.start).min().expect("a thread");
        let over = times().map(|time| time.end).max().expect("a thread");
        let n_names: usize = ended.iter().map(|it| it.1).sum();
        let each = ended.iter().map(|(_, n, time)| ns_each(time, *n));
        Searched {
            ns: each.sum::<f64>() / ended.len() as f64,
            mpps: n_names as f64 / (over - begun).as_secs_f64() / 1e6,
            pinned: ended.into_iter().map(|it| it.0).collect(),
        }
    }
}

fn ns_each(time: &Range<Instant>, n_names: usize) -> f64 {
    (time.end - time.start).as_nanos() as f64 / n_names as f64
}

/// Searches for every name; nanoseconds for each.
pub(crate) fn search_ns(
    reader: &mut FibReader,
    names: &[NameView<'_>],
    key: &HashKey,
    way: Way,
) -> f64 {
    ns_each(&search(reader, names, key, way), names.len())
}

/// Searches for every name; the time that it takes, without hashing if that is before.
fn search(
    reader: &mut FibReader,
    names: &[NameView<'_>],
    key: &HashKey,
    way: Way,
) -> Range<Instant> {
    if way.fetch == Fetch::Burst {
        return burst_search(reader, names, key, BURST);
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
    let time = begun..Instant::now();
    assert_eq!(n_found, names.len(), "every name has a prefix in the FIB");
    time
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

/// Hashes and searches for every name in bursts, in the steps of the packet path;
/// nanoseconds for each.
pub(crate) fn burst_search_ns(
    reader: &mut FibReader,
    names: &[NameView<'_>],
    key: &HashKey,
    burst: usize,
) -> f64 {
    ns_each(&burst_search(reader, names, key, burst), names.len())
}

fn burst_search(
    reader: &mut FibReader,
    names: &[NameView<'_>],
    key: &HashKey,
    burst: usize,
) -> Range<Instant> {
    let mut hashes = NameHashes::new();
    let (mut spans, mut probes) = (Vec::new(), Vec::new());
    let mut n_found = 0;
    let begun = Instant::now();
    for names in names.chunks(burst) {
        hashes.clear();
        spans.clear();
        probes.clear();
        let view = reader.pin();
        for step in 0..names.len().div_ceil(GROUP) + 2 {
            hashes.push_burst(key, group(names, step).iter().copied(), &mut spans);
            for &span in group(&spans, step) {
                view.prefetch_buckets(hashes.slice(span));
            }
            let Some(before) = step.checked_sub(1) else {
                continue;
            };
            let probed = group(&spans, before).iter();
            probes.extend(probed.map(|&span| view.probe(hashes.slice(span))));
            // One right after the other, so that addresses are translated side by side.
            for (&name, &probe) in group(names, before).iter().zip(group(&probes, before)) {
                view.prefetch_node(name, probe);
            }
            let Some(before) = step.checked_sub(2) else {
                continue;
            };
            let probes = group(&probes, before).iter();
            let names = group(names, before).iter().zip(group(&spans, before));
            for ((&name, &span), &probe) in names.zip(probes) {
                let found = view.confirm(name, hashes.slice(span), probe);
                n_found += usize::from(black_box(found).is_some());
            }
        }
    }
    let time = begun..Instant::now();
    assert_eq!(n_found, names.len(), "every name has a prefix in the FIB");
    time
}

/// The group of a burst that has this number.
fn group<T>(burst: &[T], number: usize) -> &[T] {
    let start = (number * GROUP).min(burst.len());
    &burst[start..(start + GROUP).min(burst.len())]
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
