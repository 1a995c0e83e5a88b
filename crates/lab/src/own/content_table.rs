//! The indexes of the content store (Yuan 2015, section 6.1.2: the content table, a d-left
//! hash table) beside each other: searches a second, and bytes for each Data.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Cell, Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table,
    cells, cpu,
};
use tachonym_memory::PagePreference;
use tachonym_packet::{
    DataView, HashKey, HashKind, HashSpan, InterestView, MonoNs, NameHashes, NameView,
};
use tachonym_policy::{AdmissionKind, EvictionKind, Policy, PolicyConfig};
use tachonym_tables::{
    CsCapacity, CsConfig, IndexKind, Known, PitConfig, PitCs, PitCsConfig, PitCsLayout, Sighted,
};

use crate::beds::engine::workload::{Burst, Workload};
use crate::beds::fib::{PAGES_PARAM, page_choice, some_key};
use tachonym_bench::random::Random;

/// The only one.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/content-table",
    title: "Searches a second and bytes for each Data of the content store's indexes",
    source: "Yuan 2015, section 6.1.2",
    cost: Cost::minutes(0.1, 8.0),
    needs: &[Need::HugePages, Need::MemoryGib(2.0, 12.0)],
    params: &[
        Param::new(
            "sizes",
            "Data in the content store, which is full",
            ParamKind::Counts,
            ["1k", "100k,1M", "100k,1M,4M"],
        ),
        Param::count(
            "packets",
            "packets of each kind in a round",
            ["320", "32k", "128k"],
        ),
        PAGES_PARAM,
        Param::rounds(["3", "15", "21"]),
        Param::seed(),
    ],
    run,
}];

/// Packets of a burst.
const BURST: u64 = 32;

/// What is measured, in nanoseconds a packet.
const CASES: [&str; 5] = [
    "hit",
    "hit, prefetched",
    "miss",
    "miss, prefetched",
    "insert and evict",
];

fn run(context: &Context) -> anyhow::Result<Record> {
    let (pinned, record) = cpu::on_pinned_thread(|| measure_sizes(context));
    let mut record = record?;
    record.note(cpu::note(&[pinned]));
    Ok(record)
}

fn measure_sizes(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Measured);
    let columns = [
        "Data",
        "index",
        "operation",
        "ns each",
        "million/s",
        "ratio to single",
    ];
    let mut table = Table::new("", columns);
    let kinds = IndexKind::ALL;
    let columns = [Column::new("Data")]
        .into_iter()
        .chain(kinds.map(|kind| Column::new(format!("{kind}, bytes each"))));
    let mut sizes = Table::new("Bytes of the index for each Data", columns);
    for n_data in context.values.counts("sizes") {
        ensure!(
            n_data >= 4 * BURST,
            "a size is at least four bursts of {BURST}"
        );
        let mut beds = kinds
            .into_iter()
            .map(|kind| Bed::new(context, kind, n_data))
            .collect::<anyhow::Result<Vec<_>>>()?;
        for (idx, (n_data, _)) in beds[0].bytes_each.iter().enumerate() {
            let bytes = beds.iter().map(|bed| bed.bytes_each[idx].1);
            sizes.row(
                [Cell::from(*n_data)]
                    .into_iter()
                    .chain(bytes.map(Cell::from)),
            );
        }
        let n_bursts = context.count("packets").div_ceil(BURST);
        let rounds = rotated(kinds.len() * CASES.len(), context.rounds(), |turn, _| {
            beds[turn / CASES.len()].measure(turn % CASES.len(), n_bursts)
        })?;
        let groups = kinds.map(IndexKind::as_str);
        let title = format!("Million operations a second, {n_data} Data");
        let mut chart = Chart::bars(title, groups, "million/s");
        for (case, label) in CASES.into_iter().enumerate() {
            for (idx, kind) in kinds.into_iter().enumerate() {
                let ns = &rounds[idx * CASES.len() + case];
                let rates: Vec<f64> = ns.iter().map(|ns| 1e3 / ns).collect();
                let rate = Spread::of(&rates).context("no round")?;
                table.row(cells![
                    n_data,
                    kind.as_str(),
                    label,
                    Spread::of(ns),
                    rate,
                    Spread::of_ratios(ns, &rounds[case]),
                ]);
                chart.point(label, idx as f64, rate.median);
            }
        }
        record.charts.push(chart);
    }
    record.tables.extend([table, sizes]);
    record.note("An index doubles when its lines hold 5 of 8 words on average (single) or 6 of 8 (d-left), so bytes for each Data halve over a doubling of their number.");
    record.note("Times are of the router's content store with the comparison of the name, without parsing and hashing; a hit also reads the packet's first byte. The thesis gives no figures for its content table.");
    Ok(record)
}

/// A full content store, beside an empty PIT.
struct Bed {
    tables: PitCs,
    workload: Workload,
    key: HashKey,
    random: Random,
    n_data: u64,
    n_inserted: u64,
    /// Data, and bytes of the index for each, while the store was filled.
    bytes_each: Vec<(u64, f64)>,
}

impl Bed {
    fn new(context: &Context, index: IndexKind, n_data: u64) -> anyhow::Result<Self> {
        let mut random = Random::new(context.seed());
        let key = some_key(HashKind::fastest(), &mut random);
        let pages = PagePreference::from(page_choice(context.text("pages")));
        let capacity = CsCapacity {
            max_pkts: usize::try_from(n_data)?,
            max_bytes: usize::MAX,
        };
        // In the order of arrival, so that the Data that are cached are known.
        let policy = PolicyConfig {
            pages,
            ..PolicyConfig::new(AdmissionKind::None, EvictionKind::Fifo, capacity.max_pkts)
        };
        let config = PitCsConfig {
            pit: PitConfig {
                max_entries: 1,
                index,
                pages,
                ..PitConfig::default()
            },
            cs: CsConfig {
                capacity,
                index,
                pages,
            },
            layout: PitCsLayout::Separate,
        };
        let policy = Policy::with_slots(&policy, capacity.max_slots())?;
        let mut bed = Self {
            tables: PitCs::new(config, policy, key.clone())?,
            workload: Workload {
                seed: context.seed(),
                n_prefixes: 1_000,
                n_prefix_components: 4,
                n_name_components: 7,
                content_bytes: 128,
            },
            key,
            random,
            n_data,
            n_inserted: 0,
            bytes_each: Vec::new(),
        };
        // Over the last doubling, in eighths of all.
        let mut n_bursts = 0;
        for eighth in 4..=8 {
            let upto = (n_data * eighth / 8).div_ceil(BURST);
            bed.insert(upto - n_bursts);
            n_bursts = upto;
            let n_cached = bed.tables.cs().len();
            let bytes = bed.tables.cs_index_bytes() as f64 / n_cached as f64;
            bed.bytes_each.push((n_cached as u64, bytes));
        }
        ensure!(
            bed.tables.cs().len() as u64 == n_data,
            "the content store is full"
        );
        Ok(bed)
    }

    /// Nanoseconds a packet of one of [`CASES`].
    fn measure(&mut self, case: usize, n_bursts: u64) -> anyhow::Result<f64> {
        let is_prefetched = case % 2 == 1;
        match case {
            0 | 1 => self.find(n_bursts, is_prefetched, true),
            2 | 3 => self.find(n_bursts, is_prefetched, false),
            _ => Ok(self.insert(n_bursts)),
        }
    }

    /// Searches for Data that are cached, or for such as never were.
    fn find(&mut self, n_bursts: u64, is_prefetched: bool, hits: bool) -> anyhow::Result<f64> {
        let (mut burst, mut hashes) = (Burst::default(), Hashes::default());
        let (mut n_hits, mut elapsed_ns) = (0, 0.0);
        for _ in 0..n_bursts {
            burst.clear();
            for _ in 0..BURST {
                let among = self.random.next_u64() % self.n_data;
                let number = match hits {
                    true => self.n_inserted - 1 - among,
                    false => u64::MAX / 2 + among,
                };
                burst.push(|out| self.workload.write_interest(number, out));
            }
            let interests: Vec<_> = burst
                .iter()
                .map(|wire| InterestView::parse(wire).expect("encoded here"))
                .collect();
            hashes.refill(&self.key, interests.iter().map(InterestView::name));
            let begun = Instant::now();
            if is_prefetched {
                let names = || hashes.iter().filter_map(|hashes| hashes.last());
                names().for_each(|&hash| self.tables.prefetch_buckets_for_interest(hash));
                let mut sighted = [Sighted::default(); BURST as usize];
                for (sighted, &hash) in sighted.iter_mut().zip(names()) {
                    *sighted = self.tables.prefetch_entries_for_interest(hash);
                }
                for sighted in sighted {
                    self.tables.prefetch_hit(sighted);
                }
            }
            for (interest, hashes) in interests.iter().zip(hashes.iter()) {
                let found = self.tables.find_data(interest, hashes, MonoNs::ZERO);
                n_hits += usize::from(black_box(found.map(|data| data.wire()[0])).is_ok());
            }
            elapsed_ns += begun.elapsed().as_nanos() as f64;
        }
        let n_packets = n_bursts * BURST;
        let wanted = if hits { n_packets } else { 0 };
        ensure!(n_hits as u64 == wanted, "{n_hits} hits instead of {wanted}");
        Ok(elapsed_ns / n_packets as f64)
    }

    /// Inserts new Data; each evicts another one once the store is full.
    fn insert(&mut self, n_bursts: u64) -> f64 {
        let (mut burst, mut hashes) = (Burst::default(), Hashes::default());
        let mut elapsed_ns = 0.0;
        for _ in 0..n_bursts {
            burst.clear();
            for _ in 0..BURST {
                let number = self.n_inserted;
                self.n_inserted += 1;
                burst.push(|out| self.workload.write_data(number, out));
            }
            let data: Vec<_> = burst
                .iter()
                .map(|wire| DataView::parse(wire).expect("encoded here"))
                .collect();
            hashes.refill(&self.key, data.iter().map(DataView::name));
            let begun = Instant::now();
            for (data, hashes) in data.iter().zip(hashes.iter()) {
                let unknown = (&[][..], Known::default());
                self.tables.insert_data(data, hashes, unknown, MonoNs::ZERO);
            }
            elapsed_ns += begun.elapsed().as_nanos() as f64;
        }
        elapsed_ns / (n_bursts * BURST) as f64
    }
}

/// Hashes of all prefixes of each name of a burst.
#[derive(Default)]
struct Hashes {
    hashes: NameHashes,
    spans: Vec<HashSpan>,
}

impl Hashes {
    fn refill<'a>(&mut self, key: &HashKey, names: impl Iterator<Item = NameView<'a>>) {
        self.hashes.clear();
        self.spans.clear();
        for name in names {
            self.spans.push(self.hashes.push_name(key, name));
        }
    }

    fn iter(&self) -> impl Iterator<Item = &[tachonym_packet::NameHash]> {
        self.spans.iter().map(|&span| self.hashes.slice(span))
    }
}
