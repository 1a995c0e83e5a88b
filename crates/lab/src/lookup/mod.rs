//! `tachonym-lab lookup`: longest-prefix match over very many prefixes.
//!
//! Fills the router's own FIB with synthetic names, and measures in rounds that take
//! turns: a search in bursts, hashing and the comparison of names included; the same one
//! by one; hashing alone; and a random read of 64 bytes from as much memory as the FIB
//! takes with 32 under way, which is what the machine can do at best. With `--writer`
//! another thread changes prefixes meanwhile, at a rate, in every other round. Tables may
//! double from one size to another, and the result be drawn.

pub mod names;
mod plot;

use std::fmt;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde::Serialize;
use tachonym_memory::{PagePreference, Pages, Words, available_bytes};
use tachonym_packet::{FaceId, HashKey, HashKind, NameHashes, NameView};
use tachonym_tables::{Fib, FibConfig, FibReader, NextHop, NextHops};

use self::names::NameSet;
use crate::choices::PageChoice;
use crate::output;
use crate::random::Random;
use crate::stats::Spread;

/// Names searched for in a round.
const N_NAMES: usize = 1 << 16;
/// Most packets of a burst.
const MAX_BURST: u64 = 1_024;
/// Random reads of a round, and how many are under way.
const N_READS: usize = 1 << 19;
const READS_AHEAD: usize = 32;
/// Prefixes that the writer adds and removes, beside those that are searched.
const N_CHURNED: u64 = 1 << 16;

/// Measures longest-prefix match in the router's FIB.
#[derive(Args, Clone, Debug)]
pub struct LookupArgs {
    /// Prefixes in the FIB
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=2_000_000_000))]
    pub prefixes: u64,
    /// Doubles the number of prefixes up to this one
    #[arg(long, value_name = "N")]
    pub up_to: Option<u64>,
    /// Components of each prefix
    #[arg(long, default_value_t = 7, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=63))]
    pub components: u64,
    /// Components that names have beyond their prefix
    #[arg(long, default_value_t = 0, value_name = "N",
          value_parser = clap::value_parser!(u64).range(0..=63))]
    pub extra: u64,
    /// Names looked up together
    #[arg(long, default_value_t = 32, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=MAX_BURST))]
    pub burst: u64,
    /// Pages of the tables
    #[arg(long, value_enum, default_value_t = PageChoice::Auto)]
    pub pages: PageChoice,
    /// Changes of the FIB per second by another thread, in every other round
    #[arg(long, value_name = "N")]
    pub writer: Option<u64>,
    /// Rounds, in each of which everything is measured once
    #[arg(long, default_value_t = 15, value_name = "N",
          value_parser = clap::value_parser!(u64).range(3..=1_000))]
    pub rounds: u64,
    /// Seed of the names
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What was measured at one size of the FIB. Times are of one name, or of one read.
#[derive(Clone, Debug, Serialize)]
pub struct SizeFigures {
    /// Prefixes in the FIB.
    pub n_prefixes: u64,
    /// Memory of the FIB for each, in bytes, everything included.
    pub bytes_per_prefix: f64,
    /// Time to load each, in nanoseconds.
    pub load_ns: f64,
    /// Bytes of the FIB on huge pages, and on others.
    pub huge_bytes: u64,
    /// The rest.
    pub base_bytes: u64,
    /// Memory that random reads are from.
    pub read_bytes: u64,
    /// A random read, with 32 under way.
    pub read_ns: Spread,
    /// Hashing alone.
    pub hash_ns: Spread,
    /// A search in bursts.
    pub burst_ns: Spread,
    /// A search one by one.
    pub single_ns: Spread,
    /// The ratio of a search in bursts to a read, of the medians.
    pub reads_per_search: f64,
    /// With a writer: a search in bursts meanwhile, by that without, of the medians.
    pub with_writer: Option<WriterFigures>,
}

/// What a writer costs readers.
#[derive(Clone, Debug, Serialize)]
pub struct WriterFigures {
    /// Changes made in a second, while readers searched.
    pub changes_per_s: f64,
    /// A search in bursts meanwhile.
    pub burst_ns: Spread,
    /// That by one without a writer, of the medians.
    pub ratio: f64,
}

/// All sizes.
#[derive(Clone, Debug, Serialize)]
pub struct LookupFigures {
    /// Components of prefixes, and of names beyond them.
    pub n_components: u64,
    /// See there.
    pub n_extra: u64,
    /// By number of prefixes.
    pub sizes: Vec<SizeFigures>,
}

impl fmt::Display for LookupFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} components, {} more in names; nanoseconds, median (p10–p90)\n",
            self.n_components, self.n_extra
        )?;
        writeln!(
            f,
            "| prefixes | bytes each | load | random read | hashing | search in bursts | \
             reads per search | one by one | with a writer |\n|---|---|---|---|---|---|---|---|---|"
        )?;
        for size in &self.sizes {
            let writer = size.with_writer.as_ref().map_or_else(
                || "".to_owned(),
                |writer| format!("×{:.3} at {:.0}/s", writer.ratio, writer.changes_per_s),
            );
            writeln!(
                f,
                "| {} | {:.1} | {:.0} | {:.1} | {:.1} | {:.1} ({:.1}–{:.1}) | {:.1} | {:.1} | \
                 {writer} |",
                size.n_prefixes,
                size.bytes_per_prefix,
                size.load_ns,
                size.read_ns.median,
                size.hash_ns.median,
                size.burst_ns.median,
                size.burst_ns.p10,
                size.burst_ns.p90,
                size.reads_per_search,
                size.single_ns.median,
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If there is not as much memory as the tables need, which is then said before anything
/// is filled, or the drawing cannot be written.
pub fn run(args: &LookupArgs) -> anyhow::Result<()> {
    let mut sizes = Vec::new();
    let last = args.up_to.unwrap_or(args.prefixes);
    ensure!(
        last >= args.prefixes,
        "--up-to {last} is less than --prefixes {}",
        args.prefixes
    );
    let mut n_prefixes = args.prefixes;
    loop {
        sizes.push(measure(args, n_prefixes)?);
        match n_prefixes.checked_mul(2) {
            Some(next) if next <= last => n_prefixes = next,
            _ => break,
        }
    }
    let figures = LookupFigures {
        n_components: args.components,
        n_extra: args.extra,
        sizes,
    };
    if let Some(path) = &args.svg {
        plot::draw(&figures, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&figures, args.json)
}

/// Names to search for, one after the other.
struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    /// Names below some of the prefixes, in random order.
    fn below(prefixes: NameSet, args: &LookupArgs, n_prefixes: u64, random: &mut Random) -> Self {
        let extra = NameSet::new(args.seed ^ u64::MAX, args.extra as usize);
        let mut names = Self {
            bytes: Vec::new(),
            ends: Vec::new(),
        };
        for _ in 0..N_NAMES {
            prefixes.write(random.next_u64() % n_prefixes, &mut names.bytes);
            extra.write(random.next_u64(), &mut names.bytes);
            names.ends.push(names.bytes.len());
        }
        names
    }

    fn views(&self) -> Vec<NameView<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let values = starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes[start..end]);
        values
            .map(|value| NameView::parse_value(value).expect("made here"))
            .collect()
    }
}

fn measure(args: &LookupArgs, n_prefixes: u64) -> anyhow::Result<SizeFigures> {
    let mut random = Random::new(args.seed);
    let secret = std::array::from_fn(|_| random.next_u64() as u8);
    let key = HashKey::new(HashKind::fastest(), &secret);
    let n_churned = if args.writer.is_some() { N_CHURNED } else { 0 };
    let n_entries = usize::try_from(n_prefixes + n_churned)?;
    let prefixes = NameSet::new(args.seed, args.components as usize);
    let config = FibConfig {
        expected_entries: n_entries,
        expected_name_bytes: prefixes.mean_bytes(),
        pages: args.pages.into(),
        ..FibConfig::with_max_entries(n_entries)
    };
    let mut fib = Fib::new(config, key.clone())?;
    let load_ns = load(&mut fib, prefixes, n_prefixes)?;
    let bytes_per_prefix = fib.memory_bytes() as f64 / n_prefixes as f64;
    let pages: Pages = fib.pages();

    let names = Names::below(prefixes, args, n_prefixes, &mut random);
    let names = names.views();
    // As large as the FIB, if memory has room for that twice.
    let n_lines = (fib.memory_bytes() as u64).min(available_bytes() / 2) / 64;
    let memory = memory_of(usize::try_from(n_lines)?, args.pages.into())?;
    let mut reader = fib.reader();
    let burst = args.burst as usize;
    let (mut reads, mut hashing, mut bursts, mut singles, mut disturbed) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut changes_per_s = Vec::new();
    for _ in 0..args.rounds {
        reads.push(random_reads_ns(&memory, &mut random));
        hashing.push(hashing_ns(&names, &key, burst));
        bursts.push(search_ns(&mut reader, &names, &key, burst));
        singles.push(search_ns(&mut reader, &names, &key, 1));
        if let Some(rate) = args.writer {
            let churned = NameSet::new(args.seed.wrapping_add(1), args.components as usize);
            let changed = (churned, &names[..], args.components as usize);
            let (ns, rate) = with_writer(&mut fib, changed, rate, || {
                search_ns(&mut reader, &names, &key, burst)
            });
            disturbed.push(ns);
            changes_per_s.push(rate);
        }
    }
    let spread = |values: &[f64]| Spread::of(values).context("no round");
    let (read_ns, burst_ns) = (spread(&reads)?, spread(&bursts)?);
    let with_writer = match Spread::of(&disturbed) {
        None => None,
        Some(disturbed) => Some(WriterFigures {
            changes_per_s: spread(&changes_per_s)?.median,
            ratio: disturbed.median / burst_ns.median,
            burst_ns: disturbed,
        }),
    };
    let huge_bytes = pages.transparent_bytes + pages.huge_2m_bytes + pages.huge_1g_bytes;
    Ok(SizeFigures {
        n_prefixes,
        bytes_per_prefix,
        load_ns,
        huge_bytes,
        base_bytes: pages.base_bytes,
        read_bytes: 64 * n_lines,
        reads_per_search: burst_ns.median / read_ns.median,
        read_ns,
        hash_ns: spread(&hashing)?,
        burst_ns,
        single_ns: spread(&singles)?,
        with_writer,
    })
}

/// Fills the FIB; nanoseconds for each prefix.
fn load(fib: &mut Fib, prefixes: NameSet, n_prefixes: u64) -> anyhow::Result<f64> {
    let hops = next_hops(256);
    let mut value = Vec::new();
    let begun = Instant::now();
    for number in 0..n_prefixes {
        value.clear();
        prefixes.write(number, &mut value);
        let prefix = NameView::parse_value(&value).expect("made here");
        fib.insert(prefix, &hops)
            .with_context(|| format!("after {number} prefixes"))?;
    }
    Ok(begun.elapsed().as_nanos() as f64 / n_prefixes as f64)
}

fn next_hops(face: u64) -> NextHops {
    NextHops::new(vec![NextHop::new(FaceId(face), 1)]).expect("there is one")
}

fn memory_of(n_lines: usize, pages: PagePreference) -> anyhow::Result<Words> {
    let n_words = n_lines.max(1 << 10) * 8;
    let memory = Words::reserve(n_words, pages)?;
    memory.commit(n_words)?;
    for word in memory.words().iter().step_by(8) {
        word.store(1, Ordering::Relaxed);
    }
    Ok(memory)
}

fn random_reads_ns(memory: &Words, random: &mut Random) -> f64 {
    let words = memory.words();
    let n_lines = words.len() as u64 / 8;
    let places: Vec<usize> = (0..N_READS)
        .map(|_| (random.next_u64() % n_lines) as usize * 8)
        .collect();
    let begun = Instant::now();
    let mut sum = 0;
    for (idx, &place) in places.iter().enumerate() {
        if let Some(&ahead) = places.get(idx + READS_AHEAD) {
            memory.prefetch(ahead);
        }
        sum += words[place].load(Ordering::Relaxed);
    }
    black_box(sum);
    begun.elapsed().as_nanos() as f64 / N_READS as f64
}

fn hashing_ns(names: &[NameView<'_>], key: &HashKey, burst: usize) -> f64 {
    let mut hashes = NameHashes::new();
    let mut spans = Vec::new();
    let begun = Instant::now();
    for names in names.chunks(burst) {
        hashes.clear();
        spans.clear();
        hashes.push_burst(key, names.iter().copied(), &mut spans);
        black_box((&hashes, &spans));
    }
    begun.elapsed().as_nanos() as f64 / names.len() as f64
}

/// Names of a burst that are hashed together, so that memory answers for those before
/// meanwhile.
const GROUP: usize = 16;

/// Hashes and searches for every name, in the steps of the packet path.
pub(crate) fn search_ns(
    reader: &mut FibReader,
    names: &[NameView<'_>],
    key: &HashKey,
    burst: usize,
) -> f64 {
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
    let ns = begun.elapsed().as_nanos() as f64 / names.len() as f64;
    assert_eq!(n_found, names.len(), "every name has a prefix in the FIB");
    ns
}

/// The group of a burst that has this number.
fn group<T>(burst: &[T], number: usize) -> &[T] {
    let start = (number * GROUP).min(burst.len());
    &burst[start..(start + GROUP).min(burst.len())]
}

/// Runs `measure` while another thread changes prefixes at a rate; what it measured, and
/// the changes made in a second. Of these, half add prefixes of `churned` and remove them,
/// and half give other next hops to prefixes that searches for `names` find, which have
/// `n_components`.
fn with_writer(
    fib: &mut Fib,
    (churned, names, n_components): (NameSet, &[NameView<'_>], usize),
    changes_per_s: u64,
    measure: impl FnOnce() -> f64,
) -> (f64, f64) {
    let is_over = AtomicBool::new(false);
    let pace = Duration::from_nanos(1_000_000_000 / changes_per_s.max(1));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let hops = [256, 257].map(next_hops);
            let mut value = Vec::new();
            let begun = Instant::now();
            let mut n_changes = 0_u32;
            while !is_over.load(Ordering::Acquire) {
                let turn = n_changes as usize / 4;
                let found = names[turn % names.len()].prefix(n_components);
                value.clear();
                churned.write(turn as u64 % N_CHURNED, &mut value);
                let fresh = NameView::parse_value(&value).expect("made here");
                match n_changes % 4 {
                    0 => fib.insert(fresh, &hops[1]).expect("there is room for it"),
                    2 => assert!(fib.remove(fresh), "it was added"),
                    _ => {
                        let other = &hops[(n_changes as usize / 2) % 2];
                        fib.insert(found, other).expect("it is there already");
                    }
                }
                n_changes += 1;
                while begun.elapsed() < pace * n_changes && !is_over.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
            }
            f64::from(n_changes) / begun.elapsed().as_secs_f64()
        });
        let ns = measure();
        is_over.store(true, Ordering::Release);
        (ns, writer.join().expect("the writer does not panic"))
    })
}
