//! Time of single table operations, by size of the table:
//! `cargo bench -p tachonym-tables`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tachonym_packet::{
    Component, DataView, FaceId, HashKey, InterestView, MonoNs, Name, NameHash, NameHashes, Nonce,
    tlv, types,
};
use tachonym_tables::{
    ContentStore, CsCapacity, DeadNonceList, Fib, FibConfig, InRecord, MIN_DEAD_NONCE_LIFETIME,
    NextHop, OutRecord, Pit, PitConfig,
};

/// Packets of names that differ in their last component, with their hashes.
struct Packets {
    interest_wires: Vec<Vec<u8>>,
    data_wires: Vec<Vec<u8>>,
    hashes: Vec<Vec<NameHash>>,
}

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

impl Packets {
    fn new(n_names: usize) -> Self {
        let names: Vec<Name> = (0..n_names).map(nth_name).collect();
        Self {
            interest_wires: names.iter().map(interest_wire).collect(),
            data_wires: names.iter().map(data_wire).collect(),
            hashes: names.iter().map(hashes_of).collect(),
        }
    }

    /// Parsed beforehand: parsing is no part of what is measured.
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

fn interest_wire(name: &Name) -> Vec<u8> {
    let mut wire = Vec::new();
    tlv::write_nested(&mut wire, types::INTEREST, |out| {
        name.encode_into(out);
        tlv::write_tlv(out, types::NONCE, &[1, 2, 3, 4]);
    });
    wire
}

fn data_wire(name: &Name) -> Vec<u8> {
    let mut wire = Vec::new();
    tlv::write_nested(&mut wire, types::DATA, |out| {
        name.encode_into(out);
        tlv::write_tlv(out, types::CONTENT, &[7; 1000]);
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

/// What an exchange does to the PIT, with `n_pending` others waiting.
fn pit_exchange(c: &mut Criterion, n_pending: usize) {
    let packets = Packets::new(n_pending);
    let (interests, data) = (packets.interests(), packets.data());
    let mut pit = Pit::new(PitConfig {
        max_bytes: 1 << 30,
        ..PitConfig::default()
    });
    let (nonce, face) = (Nonce([1; 4]), FaceId(256));
    let mut matches = Vec::new();
    let express = |pit: &mut Pit, n: usize| {
        let found = pit.find_or_insert(&interests[n], &packets.hashes[n], MonoNs::ZERO);
        let (idx, _) = found.expect("below the limits");
        let expiry = MonoNs::ZERO.plus_ms(4000);
        let downstream = InRecord {
            face,
            nonce,
            expiry,
            pit_token: None,
            flags: 0,
        };
        pit.insert_in_record(idx, downstream)
            .expect("below the limits");
        let upstream = OutRecord {
            face,
            nonce,
            expiry,
            last_sent: MonoNs::ZERO,
            nack: None,
            strategy_word: 0,
        };
        pit.insert_out_record(idx, upstream)
            .expect("below the limits");
    };
    (0..n_pending).for_each(|n| express(&mut pit, n));
    let mut next = scattered(n_pending);
    c.bench_function(&format!("tables/pit_exchange/pending={n_pending}"), |b| {
        b.iter_batched(
            &mut next,
            |n| {
                pit.matches_for_data(&data[n], &packets.hashes[n], &mut matches);
                pit.remove(matches[0]);
                express(&mut pit, n);
            },
            BatchSize::SmallInput,
        );
    });
    assert_eq!(pit.len(), n_pending);
}

fn content_store(c: &mut Criterion, n_cached: usize) {
    let packets = Packets::new(2 * n_cached);
    let (interests, data) = (packets.interests(), packets.data());
    let capacity = CsCapacity {
        max_pkts: n_cached,
        max_bytes: 4 << 30,
    };
    let mut cs = ContentStore::new(capacity);
    for (data, hashes) in data.iter().zip(&packets.hashes).take(n_cached) {
        cs.insert(data, hashes, MonoNs::ZERO);
    }
    let mut next = scattered(n_cached);
    c.bench_function(&format!("tables/cs_hit/cached={n_cached}"), |b| {
        b.iter(|| {
            let n = next();
            let found = cs.find(&interests[n], &packets.hashes[n], MonoNs::ZERO);
            black_box(found.expect("cached").wire().len())
        });
    });
    let mut next = scattered(n_cached);
    c.bench_function(&format!("tables/cs_miss/cached={n_cached}"), |b| {
        b.iter(|| {
            let n = n_cached + next();
            cs.find(&interests[n], &packets.hashes[n], MonoNs::ZERO)
                .is_none()
        });
    });
    let mut n = 0;
    c.bench_function(
        &format!("tables/cs_insert_evict_1000B/cached={n_cached}"),
        |b| {
            b.iter(|| {
                n = (n + 1) % (2 * n_cached);
                cs.insert(&data[n], &packets.hashes[n], MonoNs::ZERO)
            });
        },
    );
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
    let mut list = DeadNonceList::new(MIN_DEAD_NONCE_LIFETIME, 1 << 20);
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
    for n_pending in [64, 100_000] {
        pit_exchange(c, n_pending);
    }
    for n_cached in [1024, 100_000] {
        content_store(c, n_cached);
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
