//! Time of single table operations, by size of the table:
//! `cargo bench -p tachonym-tables`.

#[path = "../tests/support/policy.rs"]
mod policy;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use policy::lru;
use tachonym_memory::PagePreference;
use tachonym_packet::{
    Component, DataView, FaceId, HashKey, InterestView, MonoNs, Name, NameHash, NameHashes, Nonce,
    tlv, types,
};
use tachonym_tables::{
    CsCapacity, CsConfig, DeadNonceList, EntryIdx, Fib, FibConfig, InRecord, IndexKind, Known,
    MIN_DEAD_NONCE_LIFETIME, Missed, NextHop, OutRecord, PitConfig, PitCs, PitCsConfig,
    PitCsLayout, Sighted,
};

fn nth_name(n: usize) -> Name {
    let base: Name = "/example/site/file/v=1".parse().expect("a URI");
    base.with(&Component::segment(n as u64))
}

const KEY: HashKey = HashKey::from_u64s(3, 4);

fn hashes_of(name: &Name) -> Vec<NameHash> {
    let mut buffer = NameHashes::new();
    let span = buffer.push_name(&KEY, name.view());
    buffer.slice(span).to_vec()
}

fn interest_wire(name: &Name) -> Vec<u8> {
    let mut wire = Vec::new();
    tlv::write_nested(&mut wire, types::INTEREST, |out| {
        name.encode_into(out);
        tlv::write_tlv(out, types::NONCE, &[1, 2, 3, 4]);
    });
    wire
}

fn data_wire(name: &Name, content_bytes: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    tlv::write_nested(&mut wire, types::DATA, |out| {
        name.encode_into(out);
        tlv::write_tlv(out, types::CONTENT, &vec![7; content_bytes]);
        tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
        });
        tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0xaa; 32]);
    });
    wire
}

/// One name after another, in an order that caches cannot guess.
fn scattered(n_names: usize) -> impl FnMut() -> usize {
    let mut state = 1_usize;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n_names
    }
}

/// Packets in a burst.
const BURST: usize = 32;

/// A burst of packets of one size, written anew in warm memory for each use.
struct Burst {
    interest_wires: Vec<Vec<u8>>,
    data_wires: Vec<Vec<u8>>,
    hashes: Vec<Vec<NameHash>>,
}

impl Burst {
    fn new() -> Self {
        Self {
            interest_wires: vec![Vec::new(); BURST],
            data_wires: vec![Vec::new(); BURST],
            hashes: vec![Vec::new(); BURST],
        }
    }

    fn write(&mut self, mut number: impl FnMut() -> usize, content_bytes: usize) {
        for n in 0..BURST {
            let base: Name = "/example/site/file/v=1".parse().expect("a URI");
            let number = (number() as u32).to_be_bytes();
            let name = base.with(&Component::generic(number));
            self.interest_wires[n] = interest_wire(&name);
            self.data_wires[n] = data_wire(&name, content_bytes);
            self.hashes[n] = hashes_of(&name);
        }
    }

    fn interests(&self) -> Vec<InterestView<'_>> {
        let wires = self.interest_wires.iter();
        wires
            .map(|wire| InterestView::parse(wire).expect("encoded here"))
            .collect()
    }

    fn data(&self) -> Vec<DataView<'_>> {
        let wires = self.data_wires.iter();
        wires
            .map(|wire| DataView::parse(wire).expect("encoded here"))
            .collect()
    }
}

/// Time of `routine` for each of a burst's packets; what is before it in an
/// iteration is not measured.
fn bench_bursts(c: &mut Criterion, label: &str, mut burst: impl FnMut() -> Duration) {
    c.bench_function(label, |b| {
        b.iter_custom(|n_packets| {
            let n_bursts = n_packets.div_ceil(BURST as u64);
            let time: Duration = (0..n_bursts).map(|_| burst()).sum();
            time.mul_f64(n_packets as f64 / (n_bursts * BURST as u64) as f64)
        });
    });
}

/// Makes an Interest pending, for which `missed` is what a search for Data has seen.
fn express(tables: &mut PitCs, interest: &InterestView<'_>, hashes: &[NameHash], missed: Missed) {
    let found = tables.find_or_insert(interest, hashes, missed, MonoNs::ZERO);
    let (mut entry, _) = found.expect("below the limits");
    let (nonce, face) = (Nonce([1; 4]), FaceId(256));
    let expiry = MonoNs::ZERO.plus_ms(4000);
    let downstream = InRecord {
        face,
        nonce,
        expiry,
        pit_token: None,
        hop_limit: None,
        flags: 0,
        lifetime_ms: 4_000,
    };
    entry
        .insert_in_record(downstream)
        .expect("below the limits");
    let upstream = OutRecord {
        face,
        nonce,
        expiry,
        last_sent: MonoNs::ZERO,
        nack: None,
        strategy_word: 0,
    };
    entry.insert_out_record(upstream).expect("below the limits");
}

fn pit_config(n_pending: usize, index: IndexKind) -> PitConfig {
    PitConfig {
        max_entries: 2 * n_pending,
        max_bytes: 4 << 30,
        index,
        ..PitConfig::default()
    }
}

/// What exchanges do to the PIT, with `n_pending` others waiting: each Data finds
/// the entry of any of them and removes it, and the same Interest comes anew.
fn pit_exchange(c: &mut Criterion, n_pending: usize, index: IndexKind) {
    let config = PitCsConfig {
        pit: pit_config(n_pending, index),
        ..PitCsConfig::default()
    };
    let policy = lru(config.cs.capacity.max_slots());
    let mut tables = PitCs::new(config, policy, KEY).expect("tables that fit");
    let mut burst = Burst::new();
    let mut in_turn = 0..n_pending;
    for _ in 0..n_pending / BURST {
        burst.write(|| in_turn.next().expect("as many"), 0);
        for (interest, hashes) in burst.interests().iter().zip(&burst.hashes) {
            express(&mut tables, interest, hashes, Missed::default());
        }
    }
    let mut next = scattered(n_pending);
    let mut matches = Vec::new();
    for prefetches in ["none", "burst"] {
        let label = format!(
            "tables/pit_exchange/pending={n_pending},index={index},burst={BURST},prefetch={prefetches}"
        );
        bench_bursts(c, &label, || {
            burst.write(&mut next, 0);
            let (interests, data) = (burst.interests(), burst.data());
            let begun = Instant::now();
            if prefetches == "burst" {
                for hashes in &burst.hashes {
                    tables.prefetch_buckets_for_data(hashes);
                }
                for hashes in &burst.hashes {
                    tables.prefetch_entries_for_data(hashes);
                }
            }
            for (data, hashes) in data.iter().zip(&burst.hashes) {
                tables.matches_for_data(data, hashes, &mut matches);
                // One of its like in the burst may have removed it.
                if let Some(&idx) = matches.first() {
                    tables.remove_pending(idx);
                }
            }
            for (interest, hashes) in interests.iter().zip(&burst.hashes) {
                express(&mut tables, interest, hashes, Missed::default());
            }
            begun.elapsed()
        });
        assert_eq!(tables.pit().len(), n_pending);
    }
}

/// Exchanges of new names, each of which misses the full content store, waits while
/// `n_pending` others come, is answered, and evicts: PIT and content store together. Time
/// is for an Interest and its Data.
fn exchange(c: &mut Criterion, n_cached: usize, n_pending: usize, prefetches: bool) {
    let mut beds = PitCsLayout::ALL.map(|layout| ExchangeBed::new(layout, n_cached, n_pending));
    let n_warm = (n_pending + n_cached) / BURST + 1;
    for bed in &mut beds {
        for _ in 0..n_warm {
            bed.carry(prefetches);
        }
    }
    let label = |layout| {
        let prefetch = if prefetches { "burst" } else { "none" };
        format!(
            "tables/exchange/cached={n_cached},pending={n_pending},pit_cs={layout},\
             burst={BURST},prefetch={prefetch}"
        )
    };
    for bed in &mut beds {
        let layout = bed.tables.layout();
        bench_bursts(c, &label(layout), || bed.carry(prefetches));
    }
    for bed in beds {
        assert_eq!(bed.tables.cs().len(), n_cached);
        assert_eq!(bed.tables.pit().len(), n_pending);
    }
}

/// See [`exchange`].
struct ExchangeBed {
    tables: PitCs,
    interests: Burst,
    data: Burst,
    n_asked: usize,
    n_answered: usize,
    n_pending: usize,
    matches: Vec<EntryIdx>,
}

impl ExchangeBed {
    fn new(layout: PitCsLayout, n_cached: usize, n_pending: usize) -> Self {
        let cs = CsConfig {
            capacity: CsCapacity {
                max_pkts: n_cached,
                max_bytes: 4 << 30,
            },
            ..CsConfig::default()
        };
        let config = PitCsConfig {
            pit: pit_config(n_pending + n_cached, IndexKind::default()),
            cs,
            layout,
        };
        let policy = lru(config.cs.capacity.max_slots());
        Self {
            tables: PitCs::new(config, policy, KEY).expect("tables that fit"),
            interests: Burst::new(),
            data: Burst::new(),
            n_asked: 0,
            n_answered: 0,
            n_pending,
            matches: Vec::new(),
        }
    }

    /// Carries a burst of Interests, and one of Data once enough are pending.
    fn carry(&mut self, prefetches: bool) -> Duration {
        let Self {
            tables,
            n_asked,
            n_answered,
            matches,
            ..
        } = self;
        let one_more = |n: &mut usize| {
            *n += 1;
            *n
        };
        self.interests.write(|| one_more(n_asked), 0);
        let interests = self.interests.interests();
        let hashes = &self.interests.hashes;
        let begun = Instant::now();
        if prefetches {
            let names = || hashes.iter().filter_map(|hashes| hashes.last());
            names().for_each(|&hash| tables.prefetch_buckets_for_interest(hash));
            for &hash in names() {
                tables.prefetch_entries_for_interest(hash);
            }
        }
        for (interest, hashes) in interests.iter().zip(hashes) {
            let found = tables.find_data(interest, hashes, MonoNs::ZERO);
            let missed = found.expect_err("a new name");
            express(tables, interest, hashes, missed);
        }
        let elapsed = begun.elapsed();
        if tables.pit().len() <= self.n_pending {
            return elapsed;
        }
        self.data.write(|| one_more(n_answered), 100);
        let (data, hashes) = (self.data.data(), &self.data.hashes);
        let begun = Instant::now();
        if prefetches {
            for hashes in hashes {
                tables.prefetch_buckets_for_data(hashes);
            }
            for hashes in hashes {
                tables.prefetch_entries_for_data(hashes);
            }
        }
        for (data, hashes) in data.iter().zip(hashes) {
            let known = tables.matches_for_data(data, hashes, matches);
            if prefetches {
                tables.prefetch_victims();
            }
            tables.insert_data(data, hashes, (matches, known), MonoNs::ZERO);
        }
        elapsed + begun.elapsed()
    }
}

fn content_store(c: &mut Criterion, n_cached: usize, config: CsConfig, content_bytes: usize) {
    let config = CsConfig {
        capacity: CsCapacity {
            max_pkts: n_cached,
            max_bytes: 4 << 30,
        },
        ..config
    };
    let tables_config = PitCsConfig {
        cs: config,
        ..PitCsConfig::default()
    };
    let policy = lru(tables_config.cs.capacity.max_slots());
    let mut tables = PitCs::new(tables_config, policy, KEY).expect("tables that fit");
    let mut burst = Burst::new();
    let mut number = 0;
    let mut in_turn = move || {
        number += 1;
        number - 1
    };
    let mut insert = |tables: &mut PitCs, burst: &mut Burst| {
        burst.write(&mut in_turn, content_bytes);
        let data = burst.data();
        let begun = Instant::now();
        for (data, hashes) in data.iter().zip(&burst.hashes) {
            tables.insert_data(data, hashes, (&[], Known::default()), MonoNs::ZERO);
        }
        begun.elapsed()
    };
    for _ in 0..n_cached / BURST {
        insert(&mut tables, &mut burst);
    }
    let index = config.index;
    let params = format!("cached={n_cached},index={index},content={content_bytes},burst={BURST}");
    for (kind, n_first, prefetches) in [
        ("hit", 0, "none"),
        ("hit", 0, "burst"),
        ("miss", 1 << 31, "none"),
        ("miss", 1 << 31, "burst"),
    ] {
        let mut next = scattered(n_cached);
        let label = format!("tables/cs_{kind}/{params},prefetch={prefetches}");
        bench_bursts(c, &label, || {
            burst.write(|| n_first + next(), content_bytes);
            let interests = burst.interests();
            let begun = Instant::now();
            if prefetches == "burst" {
                let names = || burst.hashes.iter().filter_map(|hashes| hashes.last());
                names().for_each(|&hash| tables.prefetch_buckets_for_interest(hash));
                let sighted: Vec<Sighted> = names()
                    .map(|&hash| tables.prefetch_entries_for_interest(hash))
                    .collect();
                for sighted in sighted {
                    tables.prefetch_hit(sighted);
                }
            }
            for (interest, hashes) in interests.iter().zip(&burst.hashes) {
                let found = tables.find_data(interest, hashes, MonoNs::ZERO);
                let _ = black_box(found.map(|data| data.wire().len()));
            }
            begun.elapsed()
        });
    }
    let label = format!("tables/cs_insert_evict/{params}");
    bench_bursts(c, &label, || insert(&mut tables, &mut burst));
    assert_eq!(tables.cs().len(), n_cached);
}

fn fib(c: &mut Criterion, n_routes: usize) {
    let prefixes: Vec<Name> = (0..n_routes)
        .map(|n| {
            format!("/example/site-{}/node-{n}", n % 100)
                .parse()
                .expect("a URI")
        })
        .collect();
    let hop = NextHop::new(FaceId(256), 10);
    let fill = || {
        let config = FibConfig::with_max_entries(n_routes);
        let mut fib = Fib::new(config, KEY).expect("memory for some routes");
        for prefix in &prefixes {
            fib.add_next_hop(prefix.view(), hop)
                .expect("below the limits");
        }
        fib
    };
    c.bench_function(&format!("tables/fib_insert_all/routes={n_routes}"), |b| {
        b.iter_with_large_drop(fill);
    });
    let fib = fill();
    let mut reader = fib.reader();
    let names: Vec<Name> = prefixes
        .iter()
        .map(|prefix| prefix.join(nth_name(1).view()))
        .collect();
    let hashes: Vec<_> = names.iter().map(hashes_of).collect();
    let mut next = scattered(n_routes);
    c.bench_function(
        &format!("tables/fib_find_longest/routes={n_routes},components=8"),
        |b| {
            b.iter(|| {
                let n = next();
                let view = reader.pin();
                view.find_longest(names[n].view(), &hashes[n]).is_some()
            });
        },
    );
}

fn dead_nonces(c: &mut Criterion) {
    let mut list = DeadNonceList::new(MIN_DEAD_NONCE_LIFETIME, 1 << 20, PagePreference::Auto)
        .expect("a table that fits");
    for n in 0..100_000_u32 {
        list.insert(NameHash(u64::from(n)), Nonce(n.to_be_bytes()), MonoNs::ZERO);
    }
    let mut next = scattered(200_000);
    c.bench_function("tables/dead_nonce_contains/entries=100k,hit_pct=50", |b| {
        b.iter(|| {
            let n = next() as u32;
            let nonce = Nonce(n.to_be_bytes());
            list.contains(NameHash(u64::from(n)), nonce, MonoNs::ZERO)
        });
    });
}

fn all(c: &mut Criterion) {
    for (n_cached, n_pending) in [(1024, 64), (1 << 18, 1 << 10), (1 << 20, 1 << 16)] {
        for prefetches in [false, true] {
            exchange(c, n_cached, n_pending, prefetches);
        }
    }
    for index in IndexKind::ALL {
        for n_pending in [64, 1 << 20] {
            pit_exchange(c, n_pending, index);
        }
        let config = CsConfig {
            index,
            ..CsConfig::default()
        };
        content_store(c, 1024, config, 1000);
        content_store(c, 1 << 20, config, 100);
    }
    fib(c, 100_000);
    dead_nonces(c);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = all
}
criterion_main!(benches);
