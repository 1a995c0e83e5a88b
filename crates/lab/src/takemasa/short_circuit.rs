//! Takemasa 2019, section 4.4.4: how often a speculative search of the FIB is wrong, and how
//! much of a cache the packets of a burst take.
//!
//! The search goes from the longest prefix to the shortest and stops at the first length
//! whose tag is in the hash table. The entry is fetched by its tag before names are compared.
//! With the tag of another name, it is the wrong entry.

use anyhow::{Context as _, ensure};
use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Reference, Table,
    cells,
};
use tachonym_forward::BURST_DISTANCE;
use tachonym_packet::{HashKey, HashKind, Name, NameHash, NameView};
use tachonym_tables::{Fib, FibConfig, PrefixHasher};

use crate::beds::engine::workload::Workload;
use crate::beds::fib::next_hops;

/// The experiment.
pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/short-circuit",
    title: "False tag matches of speculative FIB lookups, and cache footprint of a burst",
    source: "Takemasa 2019, section 4.4.4",
    cost: Cost::minutes(0.3, 12.0),
    needs: &[Need::MemoryGib(0.5, 4.0)],
    params: &[
        Param::count(
            "prefixes",
            "prefixes in the FIB, of 2 to 6 components",
            ["20k", "1M", "13548815"],
        ),
        Param::count(
            "names",
            "names of 7 components that are searched",
            ["50k", "4M", "80M"],
        ),
        Param::new(
            "weak-bits",
            "bits of the weak hash",
            ParamKind::Count { min: 20, max: 32 },
            ["24", "32", "32"],
        ),
        Param::seed(),
    ],
    run,
}];

const DOCUMENT: &str = "Takemasa 2019";
/// Components of prefixes: 4 on average, as published.
const LENGTHS: std::ops::Range<u64> = 2..7;
const N_NAME_COMPONENTS: usize = 7;
/// Bits of a tag in a word of a bucket, and words of a bucket.
const TAG_BITS: u32 = 22;
const BUCKET_WORDS: f64 = 8.0;

/// FNV-1a of 32 bits, folded to fewer. Bucket and tag are made of the same bits, and without
/// a key anyone can find names that collide.
#[derive(Clone, Copy, Debug)]
struct Fnv {
    n_bits: u32,
}

impl Fnv {
    fn spread(self, hash: u32) -> NameHash {
        let folded = u64::from(hash) ^ u64::from(hash) >> self.n_bits;
        let folded = folded & ((1 << self.n_bits) - 1);
        NameHash(folded << (64 - self.n_bits) | folded)
    }
}

impl PrefixHasher for Fnv {
    fn hash_prefixes(&self, name: NameView<'_>, hashes: &mut Vec<NameHash>) {
        hashes.clear();
        let mut hash = 0x811c_9dc5_u32;
        hashes.push(self.spread(hash));
        for component in name.components() {
            // The border of two components counts.
            for &byte in component.value().iter().chain(&[0xff]) {
                hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            }
            hashes.push(self.spread(hash));
        }
    }
}

/// What tags promised.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    n_names: u64,
    /// Searches of lengths that the FIB does not have under the name.
    n_absent: u64,
    /// Names whose first promise was wrong.
    n_false: u64,
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let workload = Workload {
        seed: context.seed(),
        n_prefixes: context.count("prefixes"),
        n_prefix_components: LENGTHS.end as usize - 1,
        n_name_components: N_NAME_COMPONENTS,
        content_bytes: 0,
    };
    let mut record = Record::new(Kind::Measured);
    let mut table = Table::new(
        "False tag matches",
        [
            Column::new("hash"),
            Column::fixed("names", 0),
            Column::fixed("absent lengths searched", 0),
            Column::fixed("wrong entries fetched", 0),
            Column::new("per million names"),
            Column::new("per million absent lengths"),
            Column::new("expected by its bits"),
        ],
    );
    let published = Reference::stated(DOCUMENT, "section 4.4.4");
    let by_chance = 1e6 * BUCKET_WORDS / f64::from(1 << TAG_BITS);
    let mut count = |label: &str, counts: Counts, share: Option<f64>| {
        table.row(cells![
            label,
            counts.n_names,
            counts.n_absent,
            counts.n_false,
            1e6 * counts.n_false as f64 / counts.n_names as f64,
            1e6 * counts.n_false as f64 / counts.n_absent as f64,
            share.map(|share| share * counts.n_absent as f64),
        ]);
    };
    let n_names = context.count("names");
    for kind in HashKind::ALL {
        let key = HashKey::new(kind, &[7; 32]);
        let counts = search(&workload, n_names, key.clone(), &key)?;
        count(kind.label(), counts, None);
        if kind == HashKind::SipHash24 {
            let what = "wrong entries fetched, siphash-2-4";
            record.compare(what, 0.0, "", published, Some(counts.n_false as f64));
        }
    }
    let weak = Fnv {
        n_bits: context.values.count32("weak-bits"),
    };
    let counts = search(&workload, n_names, weak, &weak)?;
    // The share of hashes that some prefix has.
    let share = workload.n_prefixes as f64 / (1_u64 << weak.n_bits) as f64;
    count(
        &format!("fnv-1a, {} bits", weak.n_bits),
        counts,
        Some(share),
    );
    record.tables.push(table);
    record.tables.push(footprint());
    record.compare(
        "bytes of two packets",
        1601.4,
        "bytes",
        published,
        Some(2.0 * PACKET_BYTES),
    );
    record.note(format!(
        "A tag has {TAG_BITS} bits and a bucket {BUCKET_WORDS} words: in full buckets chance makes \
         {by_chance:.2} wrong entries per million absent lengths. A wrong entry costs a fetch and a \
         second search, never a wrong route: each name's prefix was checked."
    ));
    Ok(record)
}

fn length_of(number: u64) -> usize {
    (LENGTHS.start + number % (LENGTHS.end - LENGTHS.start)) as usize
}

/// Fills a FIB and searches it by tags.
fn search(
    workload: &Workload,
    n_names: u64,
    hasher: impl PrefixHasher + 'static,
    same: &dyn PrefixHasher,
) -> anyhow::Result<Counts> {
    let n_prefixes = usize::try_from(workload.n_prefixes)?;
    let config = FibConfig {
        expected_entries: n_prefixes,
        expected_name_bytes: 44,
        ..FibConfig::with_max_entries(n_prefixes)
    };
    let mut fib = Fib::new(config, hasher)?;
    let hops = next_hops(256);
    for number in 0..workload.n_prefixes {
        let name = workload.prefix(number);
        fib.insert(name.view().prefix(length_of(number)), &hops)?;
    }
    let mut reader = fib.reader();
    let view = reader.pin();
    let (mut counts, mut hashes) = (Counts::default(), Vec::new());
    for number in 0..n_names {
        let name: Name = workload.name(number);
        let name = name.view();
        same.hash_prefixes(name, &mut hashes);
        let probe = view.probe(&hashes);
        let found = view.confirm(name, &hashes, probe);
        let length = found.context("each name has a prefix")?.prefix().len();
        ensure!(
            length == length_of(workload.prefix_of(number)),
            "name {number} was found under another prefix"
        );
        let promised = probe
            .promised_components()
            .context("tags promise a prefix")?;
        counts.n_names += 1;
        counts.n_absent += (LENGTHS.end as usize - 1 - length) as u64;
        counts.n_false += u64::from(promised != length);
    }
    Ok(counts)
}

/// Published memory traffic of a packet.
const PACKET_BYTES: f64 = 800.7;

/// What packets of a burst take of the caches, by the published bytes of a packet.
fn footprint() -> Table {
    let l2 = cache_bytes(2);
    let mut table = Table::new(
        "Cache footprint of packets under way at most, by the published 800.7 bytes a packet",
        [
            Column::new("method"),
            Column::fixed("packets under way", 0),
            Column::fixed("bytes", 1),
            Column::fixed("L2 of this machine, KiB", 0),
            Column::new("share of it"),
            Column::fixed("published L3 of a core, MB", 1),
            Column::new("share of that"),
        ],
    );
    for (method, n_pkts) in [("pre-hash", 2), ("shtl", 3), ("burst", 4 * BURST_DISTANCE)] {
        let bytes = n_pkts as f64 * PACKET_BYTES;
        table.row(cells![
            method,
            n_pkts,
            bytes,
            l2.map(|l2| l2 / 1_024.0),
            l2.map(|l2| bytes / l2),
            2.5,
            bytes / 2.5e6,
        ]);
    }
    table
}

/// Size of a cache of the first processor, if the kernel names it.
fn cache_bytes(level: u32) -> Option<f64> {
    let folder = "/sys/devices/system/cpu/cpu0/cache";
    let read = |idx: u32, file: &str| {
        let text = std::fs::read_to_string(format!("{folder}/index{idx}/{file}")).ok()?;
        Some(text.trim().to_owned())
    };
    (0..8).find_map(|idx| {
        let is_it = read(idx, "level")? == level.to_string();
        let kib: f64 = read(idx, "size")?.strip_suffix('K')?.parse().ok()?;
        is_it.then_some(kib * 1_024.0)
    })
}
