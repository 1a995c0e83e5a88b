//! Takemasa 2019, section 4.1: reads of memory that depend on each other, in searches of a
//! hash table, counted; and in a search of a trie, by its model.

use anyhow::ensure;
use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Reference,
    Table, cells,
};
use tachonym_memory::PagePreference;
use tachonym_packet::{HashKind, NameHashes, NameView};
use tachonym_tables::{Fib, FibConfig, FibEngine, FibFetch, FibView};

use crate::beds::fib::{next_hops, some_key};
use crate::workloads::names::NameSet;
use tachonym_bench::random::Random;

/// In the order of the thesis.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "takemasa/dependent-accesses",
        title: "Reads of memory that depend on each other in a FIB search, by engine",
        source: "Takemasa 2019, section 4.1.2",
        cost: Cost::minutes(0.1, 5.0),
        needs: &[Need::MemoryGib(0.3, 4.0)],
        params: &[
            Param::count("prefixes", "prefixes in the FIB", ["2k", "1M", "13548815"]),
            Param::count("names", "names searched for", ["2k", "200k", "1M"]),
            Param::seed(),
        ],
        run: dependent_accesses,
    },
    Experiment {
        id: "takemasa/trie-model",
        title: "Model: vertices of a trie FIB that are read from DRAM",
        source: "Takemasa 2019, section 4.1.3",
        cost: Cost::minutes(0.1, 0.01),
        needs: &[],
        params: &[
            Param::count("entries", "entries of the FIB", ["13548815"; 3]),
            Param::count(
                "bytes-per-packet",
                "bytes that a Data packet brings into the cache",
                ["511"; 3],
            ),
            Param::new(
                "cache-mb",
                "last-level cache in 10^6 bytes",
                ParamKind::Number,
                ["55"; 3],
            ),
        ],
        run: trie_model,
    },
];

/// Components of names, and of those that the names of a site have in common.
const N_COMPONENTS: usize = 7;
const N_SHARED: usize = 4;
/// The middle length M of the two-stage search.
const FIRST: usize = N_SHARED;
/// Names of a site.
const N_MEMBERS: u64 = 8;

const ENGINES: [(&str, FibEngine); 4] = [
    ("longest-first", FibEngine::LongestFirst),
    ("two-stage", FibEngine::TwoStage { first: FIRST as u8 }),
    ("binary-search", FibEngine::BinarySearch),
    ("shortest-first", FibEngine::ShortestFirst),
];

/// How the longest prefix of a name compares with M, by its site.
const KINDS: [&str; 3] = ["shorter than 4", "4", "longer than 4"];

/// Names in sites. All names of a site have its first components, and a prefix of 2 or 3,
/// of 4, or each one of 5 or 6.
#[derive(Clone, Copy, Debug)]
struct Sites {
    shared: NameSet,
    own: NameSet,
    n_sites: u64,
}

impl Sites {
    /// Sites with about as many prefixes together: ten for each three.
    const fn new(n_prefixes: u64, seed: u64) -> Self {
        let n_sites = n_prefixes * 3 / (N_MEMBERS + 2);
        Self {
            shared: NameSet::new(seed, N_SHARED),
            own: NameSet::new(!seed, N_COMPONENTS - N_SHARED),
            n_sites: if n_sites < 3 { 3 } else { n_sites },
        }
    }

    fn write(&self, site: u64, member: u64, out: &mut Vec<u8>) {
        self.shared.write(site, out);
        self.own.write(site * N_MEMBERS + member, out);
    }

    /// The index in [`KINDS`] of a site's names.
    const fn kind(site: u64) -> usize {
        (site % KINDS.len() as u64) as usize
    }

    /// Components of the longest prefix of a name.
    const fn prefix_len(site: u64, member: u64) -> usize {
        match Self::kind(site) {
            0 => FIRST - 1 - (site / 3 % 2) as usize,
            1 => FIRST,
            _ => FIRST + 1 + (member % 2) as usize,
        }
    }

    /// Names with a prefix of their own: of other sites, all have the same.
    const fn n_members(site: u64) -> u64 {
        match Self::kind(site) {
            2 => N_MEMBERS,
            _ => 1,
        }
    }
}

/// What was counted of the names whose longest prefix is of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    n_names: u64,
    n_lookups: u64,
    n_reads: u64,
    /// With nothing fetched ahead but what the search needs, and with all buckets.
    n_dependent: [u64; 2],
    n_wrong_tags: u64,
}

impl Sum {
    fn mean(&self, of: u64) -> Option<f64> {
        (self.n_names > 0).then(|| of as f64 / self.n_names as f64)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            n_names: self.n_names + other.n_names,
            n_lookups: self.n_lookups + other.n_lookups,
            n_reads: self.n_reads + other.n_reads,
            n_dependent: [0, 1].map(|idx| self.n_dependent[idx] + other.n_dependent[idx]),
            n_wrong_tags: self.n_wrong_tags + other.n_wrong_tags,
        }
    }
}

fn dependent_accesses(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Measured);
    let columns: [Column; 8] = [
        "engine".into(),
        "longest prefix".into(),
        "names".into(),
        Column::fixed("hash lookups", 3),
        Column::fixed("reads", 3),
        Column::fixed("dependent reads", 3),
        Column::fixed("dependent reads, all buckets ahead", 3),
        "false tags".into(),
    ];
    let mut table = Table::new("", columns);
    let groups = ENGINES.map(|(label, _)| label);
    let mut chart = Chart::bars("Dependent reads of a search", groups, "reads in a row");
    let mut published = Vec::new();
    for (idx, (label, engine)) in ENGINES.into_iter().enumerate() {
        let [shorter, equal, longer] = count(context, engine)?;
        let all = shorter.plus(equal).plus(longer);
        let kinds = KINDS.into_iter().zip([shorter, equal, longer]);
        for (length, sum) in kinds.chain([("any", all)]) {
            table.row(cells![
                label,
                length,
                sum.n_names,
                sum.mean(sum.n_lookups),
                sum.mean(sum.n_reads),
                sum.mean(sum.n_dependent[0]),
                sum.mean(sum.n_dependent[1]),
                sum.n_wrong_tags,
            ]);
        }
        let lines = ["fetched when needed", "all buckets ahead"];
        for (line, n) in lines.into_iter().zip(all.n_dependent) {
            chart.point(line, idx as f64, all.mean(n).unwrap_or(f64::NAN));
        }
        match engine {
            FibEngine::LongestFirst => {
                published.push(("longest-first search", 2.0, all.mean(all.n_dependent[0])));
            }
            FibEngine::TwoStage { .. } => {
                let here = longer.mean(longer.n_dependent[0]);
                published.push(("two-stage search, prefix longer than M", 4.0, here));
            }
            _ => {}
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    let place = Reference::stated("Takemasa 2019", "section 4.1.2");
    for (what, value, here) in published {
        record.compare(what, value, "dependent reads", place, here);
    }
    record.note(format!(
        "Names have {N_COMPONENTS} components, prefixes 2 to 6, and M is {FIRST}. Counted by the \
         engines on the live table. Buckets of lengths that a search goes through one by one \
         arrive together; a length chosen by what was read comes after that. A bucket that is \
         full and sends the search to the next one is a further read."
    ));
    record.note("In the router, what stands at length M shares the name of one of the prefixes below, here one of eight: a two-stage search that ends there has read that name already, and takes 3 dependent reads. In the thesis it is an entry of its own.");
    record.note("The sets of next hops are not counted: prefixes share them, so they stay in the caches. A search whose tags were false begins again; that is not counted.");
    record.note("The router fetches all buckets ahead: then the two-stage search takes 3 reads in a row, as its second stage finds its buckets there.");
    Ok(record)
}

/// Counts by the longest prefix: shorter than M, M, longer.
fn count(context: &Context, engine: FibEngine) -> anyhow::Result<[Sum; 3]> {
    let n_prefixes = context.count("prefixes");
    let mut random = Random::new(context.seed());
    let key = some_key(HashKind::fastest(), &mut random);
    let sites = Sites::new(n_prefixes, context.seed());
    let n_entries = usize::try_from(n_prefixes)?.max(10);
    let config = FibConfig {
        expected_entries: n_entries,
        pages: PagePreference::Auto,
        engine,
        ..FibConfig::with_max_entries(n_entries)
    };
    let mut fib = Fib::new(config, key.clone())?;
    let hops = next_hops(256);
    let mut value = Vec::new();
    for site in 0..sites.n_sites {
        for member in 0..Sites::n_members(site) {
            value.clear();
            sites.write(site, member, &mut value);
            let name = NameView::parse_value(&value).expect("made here");
            fib.insert(name.prefix(Sites::prefix_len(site, member)), &hops)?;
        }
    }
    let mut sums = [Sum::default(); 3];
    let mut reader = fib.reader();
    let view = reader.pin();
    let mut hashes = NameHashes::new();
    for _ in 0..context.count("names") {
        let (site, member) = (
            random.next_u64() % sites.n_sites,
            random.next_u64() % N_MEMBERS,
        );
        value.clear();
        sites.write(site, member, &mut value);
        let name = NameView::parse_value(&value).expect("made here");
        hashes.clear();
        let span = hashes.push_name(&key, name);
        let sum = &mut sums[Sites::kind(site)];
        let found = view.find_longest(name, hashes.slice(span));
        let length = found.map(|found| found.n_components());
        ensure!(
            length == Some(Sites::prefix_len(site, member)),
            "a search found {length:?} components"
        );
        add(sum, &view, name, hashes.slice(span));
    }
    Ok(sums)
}

fn add(
    sum: &mut Sum,
    view: &FibView<'_>,
    name: NameView<'_>,
    hashes: &[tachonym_packet::NameHash],
) {
    let needed = view.trace(name, hashes, FibFetch::Needed);
    if !needed.is_right {
        sum.n_wrong_tags += 1;
        return;
    }
    let ahead = view.trace(name, hashes, FibFetch::Buckets);
    *sum = sum.plus(Sum {
        n_names: 1,
        n_lookups: needed.n_lookups as u64,
        n_reads: needed.n_reads as u64,
        n_dependent: [needed.n_dependent as u64, ahead.n_dependent as u64],
        n_wrong_tags: 0,
    });
}

/// How much deeper than log₂ n the leaves of a Patricia trie of n random keys are on
/// average, as the thesis cites it.
const PATRICIA_EXCESS: f64 = 0.3327;

/// A binary Patricia trie whose vertices compete for the cache with the packets that come
/// between two visits.
#[derive(Clone, Copy, Debug)]
struct Trie {
    n_entries: f64,
    /// What a packet brings into the cache.
    packet_bytes: f64,
    cache_bytes: f64,
}

impl Trie {
    fn mean_depth(self) -> f64 {
        self.n_entries.log2() + PATRICIA_EXCESS
    }

    /// Bytes that come into the cache between two visits of a vertex at a depth: one in 2^d
    /// searches passes it.
    fn bytes_between_visits(self, depth: u32) -> f64 {
        self.packet_bytes * 2_f64.powi(depth as i32)
    }

    fn is_in_dram(self, depth: u32) -> bool {
        self.bytes_between_visits(depth) > self.cache_bytes
    }

    fn leaf_depth(self) -> u32 {
        self.mean_depth().floor() as u32
    }

    /// Vertices of a search above the leaf that are read from DRAM.
    fn inner_from_dram(self) -> usize {
        let inner = 0..self.leaf_depth();
        inner.filter(|&depth| self.is_in_dram(depth)).count()
    }
}

fn trie_model(context: &Context) -> anyhow::Result<Record> {
    let trie = Trie {
        n_entries: context.count("entries") as f64,
        packet_bytes: context.count("bytes-per-packet") as f64,
        cache_bytes: context.number("cache-mb") * 1e6,
    };
    let mut record = Record::new(Kind::Computed);
    let mut table = Table::new(
        "",
        [
            "depth",
            "searches between two visits",
            "MB into the cache between them",
            "read from",
        ],
    );
    for depth in 0..=trie.leaf_depth() {
        let place = match trie.is_in_dram(depth) {
            true => "DRAM",
            false => "cache",
        };
        table.row(cells![
            depth,
            2_f64.powi(depth as i32),
            trie.bytes_between_visits(depth) / 1e6,
            place,
        ]);
    }
    record.tables.push(table);
    let place = Reference::stated("Takemasa 2019", "section 4.1.3");
    let (inner, leaf) = (trie.inner_from_dram(), trie.is_in_dram(trie.leaf_depth()));
    record.compare(
        "mean depth of the leaves",
        24.01,
        "",
        place,
        Some(trie.mean_depth()),
    );
    record.compare(
        "vertices above the leaf that are read from DRAM",
        7.0,
        "",
        place,
        Some(inner as f64),
    );
    record.note(format!(
        "The sum as the thesis prints it ends at the depth of the leaf, {}, and with it is {}; \
         its result of 7 is that without the leaf.",
        trie.leaf_depth(),
        inner + usize::from(leaf)
    ));
    record.note("The router has no trie: its hash table takes 2 dependent reads, see takemasa/dependent-accesses.");
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_cache_holds_more_levels_of_a_trie() {
        let trie = |cache_bytes| Trie {
            n_entries: 13_548_815.0,
            packet_bytes: 511.0,
            cache_bytes,
        };
        assert!((trie(55e6).mean_depth() - 24.0244).abs() < 1e-4);
        assert_eq!(trie(55e6).inner_from_dram(), 7);
        // A cache twice as large holds one level more.
        assert_eq!(trie(110e6).inner_from_dram(), 6);
        assert_eq!(trie(f64::INFINITY).inner_from_dram(), 0);
        assert_eq!(trie(0.0).inner_from_dram(), 24);
    }
}
