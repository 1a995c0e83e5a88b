//! Longest-prefix match over very many prefixes.
//!
//! Fills the router's own FIB with synthetic names, and measures in rounds that take
//! turns: a search in bursts, hashing and the comparison of names included; the same one
//! by one; hashing alone; and a random read of 64 bytes from as much memory as the FIB
//! takes with 32 under way, which is what the machine can do at best. With a writer,
//! another thread changes prefixes during a further search in bursts.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tachonym_bench::stats::{Spread, median};
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Axis, Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table,
    cells, cpu,
};
use tachonym_memory::available_bytes;
use tachonym_memory::{PagePreference, Words};
use tachonym_packet::{HashKey, HashKind, NameHashes, NameView};
use tachonym_tables::{Fib, FibConfig};

use crate::beds::fib::{
    EncodedNames, PAGES_PARAM, burst_search_ns, next_hops, page_choice, some_key,
};
use crate::workloads::names::NameSet;
use tachonym_bench::random::Random;

/// The only one.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/lookup",
    title: "Longest-prefix match in the router's FIB by the number of prefixes",
    source: "",
    cost: Cost::minutes(0.3, 60.0),
    needs: &[Need::HugePages, Need::MemoryGib(2.0, 2.0)],
    params: &[
        Param::new(
            "sizes",
            "prefixes in the FIB, up to 2 G; what memory is too small for is left out",
            ParamKind::Counts,
            ["1k,2k", "1M,2M,4M,8M", "1M,4M,16M,64M,128M,256M,512M,1G,2G"],
        ),
        Param::new(
            "components",
            "components of each prefix",
            ParamKind::Count { min: 1, max: 63 },
            ["7"; 3],
        ),
        Param::new(
            "extra",
            "components that names have beyond their prefix",
            ParamKind::Count { min: 0, max: 63 },
            ["0"; 3],
        ),
        Param::new(
            "burst",
            "names looked up together",
            ParamKind::Count { min: 1, max: 1_024 },
            ["32"; 3],
        ),
        Param::new(
            "writer",
            "changes of the FIB a second by another thread; 0: no writer",
            ParamKind::Count {
                min: 0,
                max: 1_000_000_000,
            },
            ["1k"; 3],
        ),
        PAGES_PARAM,
        Param::rounds(["3", "11", "15"]),
        Param::seed(),
    ],
    run,
}];

/// Names searched for in a round.
const N_NAMES: usize = 1 << 16;
/// Random reads of a round, and how many are under way.
const N_READS: usize = 1 << 19;
const READS_AHEAD: usize = 32;
/// Prefixes that the writer adds and removes, beside those that are searched.
const N_CHURNED: u64 = 1 << 16;
/// Memory that a prefix takes at most, in bytes, beside those of its name.
const PREFIX_BYTES: u64 = 40;

/// What was measured at one size of the FIB. Times are of one name, or of one read.
struct SizeFigures {
    bytes_per_prefix: f64,
    load_ns: f64,
    /// Of the FIB.
    huge_pages_pct: f64,
    reads_per_search: Spread,
    /// In the order of [`Case`].
    ns: Vec<Spread>,
    /// With a writer: a search in bursts meanwhile by that without, and changes a second.
    with_writer: Option<(Spread, f64)>,
}

/// What takes turns in a round.
#[derive(Clone, Copy, Debug)]
enum Case {
    Read,
    Hash,
    Burst,
    Single,
    Disturbed,
}

const CASES: [Case; 5] = [
    Case::Read,
    Case::Hash,
    Case::Burst,
    Case::Single,
    Case::Disturbed,
];

fn run(context: &Context) -> anyhow::Result<Record> {
    let (pinned, record) = cpu::on_pinned_thread(|| measure_sizes(context));
    let mut record = record?;
    record.note(cpu::note(&[pinned]));
    Ok(record)
}

fn measure_sizes(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Measured);
    let columns: [Column; 11] = [
        "prefixes".into(),
        "bytes each".into(),
        "on huge pages, %".into(),
        "load, ns".into(),
        "random read, ns".into(),
        "hashing, ns".into(),
        "search in bursts, ns".into(),
        "reads per search".into(),
        "one by one, ns".into(),
        "with a writer, ratio".into(),
        "changes/s".into(),
    ];
    let mut table = Table::new("", columns);
    let mut chart = Chart::new("Time of a search", "prefixes", "nanoseconds");
    chart.x_axis = Axis::Log;
    for n_prefixes in context.values.counts("sizes") {
        let is_possible = (1..=2_000_000_000).contains(&n_prefixes);
        ensure!(
            is_possible,
            "{n_prefixes} prefixes are not between 1 and 2 G"
        );
        let name_bytes = NameSet::new(0, context.size("components")).mean_bytes() as u64;
        let needed = n_prefixes * (PREFIX_BYTES + name_bytes);
        let missing = needed.saturating_sub(available_bytes());
        if missing > 0 {
            let refused =
                format!("{n_prefixes} prefixes need {missing} bytes more memory than is free");
            ensure!(!table.rows.is_empty(), "{refused}");
            record.note(format!("{refused}: not measured."));
            continue;
        }
        let size = measure(context, n_prefixes)?;
        let ns = |case: Case| size.ns.get(case as usize).copied();
        table.row(cells![
            n_prefixes,
            size.bytes_per_prefix,
            size.huge_pages_pct,
            size.load_ns,
            ns(Case::Read),
            ns(Case::Hash),
            ns(Case::Burst),
            size.reads_per_search,
            ns(Case::Single),
            size.with_writer.map(|it| it.0),
            size.with_writer.map(|it| it.1),
        ]);
        for (label, case) in [
            ("a search in bursts", Case::Burst),
            ("one by one", Case::Single),
            ("hashing alone", Case::Hash),
            ("a random read", Case::Read),
        ] {
            let median = ns(case).map_or(f64::NAN, |ns| ns.median);
            chart.point(label, n_prefixes as f64, median);
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    Ok(record)
}

fn measure(context: &Context, n_prefixes: u64) -> anyhow::Result<SizeFigures> {
    let (seed, rate) = (context.seed(), context.count("writer"));
    let n_components = context.size("components");
    let pages = PagePreference::from(page_choice(context.text("pages")));
    let mut random = Random::new(seed);
    let key = some_key(HashKind::fastest(), &mut random);
    let n_churned = if rate > 0 { N_CHURNED } else { 0 };
    let n_entries = usize::try_from(n_prefixes + n_churned)?;
    let prefixes = NameSet::new(seed, n_components);
    let config = FibConfig {
        expected_entries: n_entries,
        expected_name_bytes: prefixes.mean_bytes(),
        pages,
        ..FibConfig::with_max_entries(n_entries)
    };
    let mut fib = Fib::new(config, key.clone())?;
    let load_ns = load(&mut fib, prefixes, n_prefixes)?;
    let fib_bytes = fib.memory_bytes();
    let of_fib = fib.pages();

    // Below some of the prefixes, in random order.
    let extra = NameSet::new(seed ^ u64::MAX, context.size("extra"));
    let mut names = EncodedNames::default();
    for _ in 0..N_NAMES {
        names.push(|out| {
            prefixes.write(random.next_u64() % n_prefixes, out);
            extra.write(random.next_u64(), out);
        });
    }
    let names = names.views();
    // As large as the FIB, if memory has room for that twice.
    let n_lines = (fib_bytes as u64).min(available_bytes() / 2) / 64;
    let memory = memory_of(usize::try_from(n_lines)?, pages)?;
    let mut reader = fib.reader();
    let burst = context.size("burst");
    let mut changes_per_s = Vec::new();
    let n_cases = if rate > 0 { 5 } else { 4 };
    let times = rotated(n_cases, context.rounds(), |case, _| {
        Ok(match CASES[case] {
            Case::Read => random_reads_ns(&memory, &mut random),
            Case::Hash => hashing_ns(&names, &key, burst),
            Case::Burst => burst_search_ns(&mut reader, &names, &key, burst),
            Case::Single => burst_search_ns(&mut reader, &names, &key, 1),
            Case::Disturbed => {
                let churned = NameSet::new(seed.wrapping_add(1), n_components);
                let changed = (churned, &names[..], n_components);
                let (ns, rate) = with_writer(&mut fib, changed, rate, || {
                    burst_search_ns(&mut reader, &names, &key, burst)
                });
                changes_per_s.push(rate);
                ns
            }
        })
    })?;
    let of = |case: Case| times.get(case as usize);
    let ratio = |of: &[f64], by: &[f64]| Spread::of_ratios(of, by).context("no round");
    let (read, in_bursts) = (&times[Case::Read as usize], &times[Case::Burst as usize]);
    let disturbed = of(Case::Disturbed).map(|disturbed| ratio(disturbed, in_bursts));
    let huge = of_fib.transparent_bytes + of_fib.huge_2m_bytes + of_fib.huge_1g_bytes;
    Ok(SizeFigures {
        bytes_per_prefix: fib_bytes as f64 / n_prefixes as f64,
        load_ns,
        huge_pages_pct: huge as f64 / (huge + of_fib.base_bytes).max(1) as f64 * 100.0,
        reads_per_search: ratio(in_bursts, read)?,
        ns: times.iter().filter_map(|ns| Spread::of(ns)).collect(),
        with_writer: match disturbed {
            None => None,
            Some(ratio) => Some((ratio?, median(&changes_per_s))),
        },
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
