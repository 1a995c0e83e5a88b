//! Longest-prefix match over many prefixes, against the memory below it.
//!
//! `cargo bench -p tachonym-tables --bench fib -- [PREFIXES] [COMPONENTS] [EXTRA]` prints
//! the time of a search, hashing and the comparison of names included, and in the same
//! run that of a random read of 64 bytes with 32 under way. Names have components of six
//! to ten random letters (Yuan 2015, section 3.4.1), and EXTRA more than the prefixes.

use std::hint::black_box;
use std::time::Instant;

use tachonym_memory::sync::Ordering;
use tachonym_memory::{PagePreference, Words};
use tachonym_packet::{FaceId, HashKey, NameHashes, NameView};
use tachonym_tables::{Fib, FibConfig, NextHop, NextHops};

const BURST: usize = 32;
const N_NAMES: usize = 1 << 17;
const N_ROUNDS: usize = 11;

/// SplitMix64 (Steele, Lea and Flood 2014).
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Value of the name of a number.
fn write_name(number: u64, n_components: usize, out: &mut Vec<u8>) {
    out.clear();
    let mut state = number.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 42;
    for _ in 0..n_components {
        let random = mix(&mut state);
        let len = 6 + (random % 5) as usize;
        out.extend_from_slice(&[8, len as u8]);
        let mut letters = mix(&mut state);
        for _ in 0..len {
            out.push(b'a' + (letters % 26) as u8);
            letters /= 26;
        }
    }
}

fn median(mut runs: Vec<f64>) -> f64 {
    runs.sort_unstable_by(f64::total_cmp);
    runs[runs.len() / 2]
}

fn main() {
    let args: Vec<usize> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let arg = |idx: usize, default| args.get(idx).copied().unwrap_or(default);
    let (n_prefixes, n_components, n_extra) = (arg(0, 1 << 20), arg(1, 7), arg(2, 0));
    let key = HashKey::from_u64s(1, 2);
    let config = FibConfig {
        max_entries: n_prefixes,
        expected_entries: n_prefixes,
        pages: PagePreference::Auto,
    };
    let mut fib = Fib::new(config, key).expect("memory for the prefixes");
    let hop = NextHops::new(vec![NextHop::new(FaceId(256), 1)]).expect("one");
    let mut buffer = Vec::new();
    let begun = Instant::now();
    for number in 0..n_prefixes as u64 {
        write_name(number, n_components, &mut buffer);
        let prefix = NameView::parse_value(&buffer).expect("a name");
        fib.insert(prefix, &hop).expect("room");
    }
    let load_ns = begun.elapsed().as_nanos() as f64 / n_prefixes as f64;
    println!(
        "prefixes={n_prefixes} components={n_components}: {:.1} bytes and {load_ns:.0} ns each to load, {:?}",
        fib.memory_bytes() as f64 / n_prefixes as f64,
        fib.pages(),
    );

    let mut state = 7;
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for _ in 0..N_NAMES {
        write_name(
            mix(&mut state) % n_prefixes as u64,
            n_components,
            &mut buffer,
        );
        bytes.extend_from_slice(&buffer);
        for _ in 0..n_extra {
            let number = mix(&mut state);
            write_name(number, 1, &mut buffer);
            bytes.extend_from_slice(&buffer);
        }
        ends.push(bytes.len());
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let names: Vec<NameView<'_>> = starts
        .zip(&ends)
        .map(|(start, &end)| NameView::parse_value(&bytes[start..end]).expect("a name"))
        .collect();

    let n_lines = (n_prefixes / 6).max(1 << 10);
    let memory = Words::reserve(n_lines * 8, PagePreference::Auto).expect("memory");
    memory.commit(n_lines * 8).expect("memory");
    for word in memory.words().iter().step_by(8) {
        word.store(1, Ordering::Relaxed);
    }

    let mut reader = fib.reader();
    let (mut reads_ns, mut burst_ns, mut single_ns, mut hash_ns) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut hashes = NameHashes::new();
    for _ in 0..N_ROUNDS {
        reads_ns.push(random_reads(&memory, n_lines, &mut state));

        let begun = Instant::now();
        let mut n_found = 0;
        for burst in names.chunks_exact(BURST) {
            hashes.clear();
            let spans: [_; BURST] = std::array::from_fn(|i| hashes.push_name(&key, burst[i]));
            let view = reader.pin();
            let queries: [_; BURST] = std::array::from_fn(|i| (burst[i], hashes.slice(spans[i])));
            let mut found = [None; BURST];
            view.find_longest_burst(&queries, &mut found);
            n_found += found.iter().filter(|found| found.is_some()).count();
        }
        burst_ns.push(begun.elapsed().as_nanos() as f64 / N_NAMES as f64);
        assert_eq!(n_found, N_NAMES);

        let begun = Instant::now();
        let mut n_found = 0;
        for &name in &names {
            hashes.clear();
            let span = hashes.push_name(&key, name);
            let view = reader.pin();
            n_found += usize::from(view.find_longest(name, hashes.slice(span)).is_some());
        }
        single_ns.push(begun.elapsed().as_nanos() as f64 / N_NAMES as f64);
        assert_eq!(n_found, N_NAMES);

        let begun = Instant::now();
        for burst in names.chunks_exact(BURST) {
            hashes.clear();
            for &name in burst {
                black_box(hashes.push_name(&key, name));
            }
        }
        hash_ns.push(begun.elapsed().as_nanos() as f64 / N_NAMES as f64);
    }
    let (read, burst, single, hash) = (
        median(reads_ns),
        median(burst_ns),
        median(single_ns),
        median(hash_ns),
    );
    println!("random read of 64 bytes, 32 under way, {n_lines} lines: {read:.1} ns");
    println!("hashing alone: {hash:.1} ns");
    println!(
        "search in bursts of {BURST}: {burst:.1} ns, {:.1} reads",
        burst / read
    );
    println!(
        "search one by one: {single:.1} ns, {:.1} reads",
        single / read
    );
}

/// Nanoseconds per read.
fn random_reads(memory: &Words, n_lines: usize, state: &mut u64) -> f64 {
    const N_READS: usize = 1 << 20;
    let places: Vec<usize> = (0..N_READS)
        .map(|_| (mix(state) % n_lines as u64) as usize * 8)
        .collect();
    let words = memory.words();
    let begun = Instant::now();
    let mut sum = 0;
    for (idx, &place) in places.iter().enumerate() {
        if let Some(&ahead) = places.get(idx + 32) {
            memory.prefetch(ahead);
        }
        sum += words[place].load(Ordering::Relaxed);
    }
    let ns = begun.elapsed().as_nanos() as f64 / N_READS as f64;
    assert_eq!(sum, N_READS as u64);
    ns
}
