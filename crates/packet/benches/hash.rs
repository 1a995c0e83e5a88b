//! Time to hash every prefix of a name, by function and length of the name:
//! `cargo bench -p tachonym-packet --bench hash`.
//!
//! Names are random and many, lest the processor learn where their components
//! end. `siphasher` is that crate, asked for one prefix after the other, as
//! a reference.

use std::hash::Hasher as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siphasher::sip::SipHasher13;
use tachonym_packet::{HashKey, HashKind, Name, NameHashes};

/// Names hashed at once, as many as a worker takes off a socket.
const BURST: usize = 32;
const N_NAMES: usize = 64 * BURST;

/// Numbers that look random enough: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A name of components of 6 to 10 letters.
    fn name(&mut self, n_components: usize) -> Name {
        let mut name = Name::new();
        for _ in 0..n_components {
            let n_letters = 6 + self.next() % 5;
            let letters: String = (0..n_letters)
                .map(|_| char::from(b'a' + (self.next() % 26) as u8))
                .collect();
            name.push(letters.as_str());
        }
        name
    }
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("packet/name_hashes");
    for n_components in [7, 15] {
        let mut numbers = Numbers(n_components as u64);
        let names: Vec<Name> = (0..N_NAMES).map(|_| numbers.name(n_components)).collect();
        group.throughput(Throughput::Elements(N_NAMES as u64));
        let mut hashes = NameHashes::new();
        let mut spans = Vec::new();
        for kind in HashKind::ALL {
            let key = HashKey::new(kind, &[7; 32]);
            let id = format!("kind={kind},components={n_components},burst={BURST}");
            group.bench_function(BenchmarkId::from_parameter(id), |b| {
                b.iter(|| {
                    for burst in black_box(&names).chunks(BURST) {
                        hashes.clear();
                        spans.clear();
                        hashes.push_burst(&key, burst.iter().map(Name::view), &mut spans);
                        black_box((&hashes, &spans));
                    }
                });
            });
            let id = format!("kind={kind},components={n_components},burst=1");
            group.bench_function(BenchmarkId::from_parameter(id), |b| {
                b.iter(|| {
                    for name in black_box(&names) {
                        hashes.clear();
                        hashes.push_name(&key, name.view());
                        black_box(&hashes);
                    }
                });
            });
        }
        let mut out = Vec::new();
        let id = format!("kind=siphasher,components={n_components},burst=1");
        group.bench_function(BenchmarkId::from_parameter(id), |b| {
            b.iter(|| {
                for name in black_box(&names) {
                    out.clear();
                    let mut hasher = SipHasher13::new_with_keys(1, 2);
                    out.push(hasher.finish());
                    let mut start = 0;
                    for n in 1..=n_components {
                        let end = name.prefix(n).value_bytes().len();
                        hasher.write(&name.value_bytes()[start..end]);
                        out.push(hasher.finish());
                        start = end;
                    }
                    black_box(&out);
                }
            });
        });
    }
    group.finish();
}

criterion_group!(hash, benches);
criterion_main!(hash);
