//! Volumes whose checksums are right and whose contents no store has written.

mod common;

use common::{Harness, chunk, name_of};
use proptest::prelude::*;
use tachonym_packet::{Component, Name};
use tachonym_store::Config;
use tachonym_store::layout::{
    Chunk, Extent, MAX_PREFIXES, REGION_HEAD_BYTES, REGIONS_START, RecordHead, RecordKind, STEP,
    TocEntry, encode_region_head, encode_toc,
};

const VOLUME_BYTES: usize = 5 << 20;
/// What lies where superblocks would.
const MARK: u8 = 0xA5;

fn config() -> Config {
    Config {
        batch_len: 4,
        max_batches: 4_000,
        max_reads: 8,
        n_write_buffers: 4,
        write_buffer_bytes: 64 << 10,
        assembly_bytes: 256 << 10,
        ..Config::default()
    }
}

fn object() -> Name {
    "/a".parse().expect("a name")
}

/// Numbers at which something may overflow.
fn number(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0..8_u64,
        3 => 0..=most,
        1 => Just(most),
        1 => (0..64_u32).prop_map(move |bit| (1_u64 << bit).min(most)),
    ]
}

#[derive(Clone, Debug)]
struct HostileRecord {
    is_erasure: bool,
    key: u64,
    prefixes: Vec<u64>,
    /// Place, length, and when it is not fresh any more.
    chunks: Vec<(u8, u16, u64)>,
    /// So many copies, one after another.
    n_copies: usize,
}

#[derive(Clone, Debug)]
struct HostileRegion {
    seq: u64,
    records: Vec<HostileRecord>,
    /// Kind, hash and extent of each entry; `None`: there is no table.
    table: Option<Vec<(u8, u64, u64)>>,
}

fn record() -> impl Strategy<Value = HostileRecord> {
    let chunk = (number(255), number(65_535), number(u64::MAX));
    let chunk = chunk.prop_map(|(place, len, fresh)| (place as u8, len as u16, fresh));
    let n_copies = prop_oneof![Just(1_usize), Just(5_000)];
    let prefixes = prop_oneof![
        prop::collection::vec(number(u64::MAX), 0..4),
        prop::collection::vec(any::<u64>(), MAX_PREFIXES),
    ];
    let chunks = prop_oneof![Just(Vec::new()), prop::collection::vec(chunk, 0..20)];
    (any::<bool>(), number(u64::MAX), prefixes, chunks, n_copies).prop_map(
        |(is_erasure, key, prefixes, chunks, n_copies)| HostileRecord {
            is_erasure,
            key,
            prefixes,
            chunks,
            n_copies,
        },
    )
}

fn region() -> impl Strategy<Value = HostileRegion> {
    let entry = (1..4_u8, number(u64::MAX), number((1 << 46) - 1));
    let table = prop::collection::vec(entry, 0..200);
    let seq = prop_oneof![
        2 => number(u64::MAX),
        2 => Just((1 << 43) - 1),
        4 => 1..9_u64,
    ];
    (
        seq,
        prop::collection::vec(record(), 0..8),
        proptest::option::of(table),
    )
        .prop_map(|(seq, records, table)| HostileRegion {
            seq,
            records,
            table,
        })
}

/// Fills a region.
fn write(region: &HostileRegion, bytes: &mut [u8]) {
    let seq = region.seq;
    bytes[..REGION_HEAD_BYTES].copy_from_slice(&encode_region_head(seq));
    let (mut at, mut head) = (REGION_HEAD_BYTES, Vec::new());
    for record in &region.records {
        let chunks = record.chunks.iter();
        let chunks: Vec<Chunk> = chunks
            .map(|&(place, len, fresh_until_ms)| Chunk {
                place,
                len,
                fresh_until_ms,
            })
            .collect();
        let n_bytes: usize = chunks.iter().map(|it| usize::from(it.len)).sum();
        let payload = vec![0x5A; n_bytes];
        for copy in 0..record.n_copies {
            let prefixes: Vec<u64> = record
                .prefixes
                .iter()
                .map(|it| it.wrapping_add(copy as u64))
                .collect();
            let of_record = RecordHead {
                kind: match record.is_erasure {
                    true => RecordKind::Erasure,
                    false => RecordKind::Batch,
                },
                key: record.key.wrapping_add(copy as u64),
                prefixes: &prefixes,
                chunks: &chunks,
            };
            of_record.encode((seq, (at / STEP) as u32), &payload, &mut head);
            if at + head.len() > bytes.len() {
                break;
            }
            bytes[at..at + head.len()].copy_from_slice(&head);
            let end = (at + head.len() + n_bytes).min(bytes.len());
            bytes[at + head.len()..end].fill(0x5A);
            at += of_record.record_bytes();
            if at >= bytes.len() {
                break;
            }
        }
        if at >= bytes.len() {
            break;
        }
    }
    if let Some(table) = &region.table {
        let entries = table.iter().map(|&(kind, hash, word)| {
            let extent = Extent::unpack(word);
            match kind {
                1 => TocEntry::Batch(hash, extent),
                2 => TocEntry::Prefix(hash, extent),
                _ => TocEntry::Erasure(hash, extent),
            }
        });
        let end = encode_toc(seq, entries.collect(), 4_096);
        let start = bytes.len() - end.len();
        bytes[start..].copy_from_slice(&end);
    }
}

/// Uses a store on such volumes: it gives out nothing that it was not given, writes where it
/// may, and loses no volume.
fn live_on(regions: &[HostileRegion]) {
    let mut it = Harness::new(&[VOLUME_BYTES], config());
    let region_bytes = it.volumes[0].region_bytes as usize;
    let mut image = vec![vec![0; VOLUME_BYTES]];
    let (start, all) = image[0].split_at_mut(REGIONS_START as usize);
    start.fill(MARK);
    for (region, bytes) in regions.iter().zip(all.chunks_exact_mut(region_bytes)) {
        write(region, bytes);
    }
    let mut known = std::collections::BTreeMap::new();
    for life in 0..2_u8 {
        it = it.reboot(image, config());
        for number in 0..60 {
            let name = object().with(&Component::segment(number));
            let found = it.ask(name.view(), false).map(|(wire, _)| wire);
            assert!(found.is_none() || found.as_ref() == known.get(&number));
        }
        it.ask(object().view(), true);
        // More than all regions hold.
        for number in 0..900 {
            let wire = chunk("/a", number, life, 8_000);
            it.offer(&wire, true);
            known.insert(number, wire);
            it.pump();
        }
        it.store.erase(it.now, object().view());
        let wire = chunk("/a", 1_000, life, 8_000);
        it.offer(&wire, true);
        let ticket = it.flush();
        assert_eq!(it.store.poll_flushed(), ticket);
        assert!(it.ask(name_of(&wire).view(), false).is_some());
        known.clear();
        assert_eq!(it.store.n_lost_volumes(), 0);
        assert_eq!(it.store.counters().n_device_errors, 0);
        image = it.device.image();
        let start = &image[0][..REGIONS_START as usize];
        assert!(
            start.iter().all(|&byte| byte == MARK),
            "written before the regions"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_nobody_should_have_written_does_no_harm(
        regions in prop::collection::vec(region(), 0..5),
    ) {
        live_on(&regions);
    }
}

#[test]
fn tables_that_are_too_long_for_their_regions_are_not_written() {
    let mut seed = 0;
    let mut hash = || {
        seed += 1;
        seed << 32
    };
    let record = HostileRecord {
        is_erasure: false,
        key: 1,
        prefixes: (0..MAX_PREFIXES).map(|_| hash()).collect(),
        chunks: Vec::new(),
        n_copies: 5_000,
    };
    let region = HostileRegion {
        seq: 5,
        records: vec![record],
        table: None,
    };
    live_on(&[region]);
}

/// By what the store, with the key of [`Harness`], finds a prefix, and the first batch of an
/// object.
fn hashes_of(object: &Name) -> [u64; 2] {
    use std::hash::Hasher;
    let value = object.view().value_bytes().to_vec();
    let mut prefix = siphasher::sip::SipHasher13::new_with_key(&[7; 16]);
    let mut batch = prefix;
    prefix.write_u8(3);
    prefix.write(&value);
    batch.write_u8(2);
    batch.write_u16(Component::segment(0).view().typ());
    batch.write_u64(0);
    batch.write(&value);
    [prefix.finish(), batch.finish()]
}

#[test]
fn extents_beyond_their_regions_are_not_read() {
    let [prefix, batch] = hashes_of(&object());
    for at in [0, 1, 16_380, 16_384, 20_000, (1 << 20) - 1] {
        for len_kib in [0, 1, 40, 60, 1_023] {
            let word = at | len_kib << 20;
            let region = HostileRegion {
                seq: 1,
                records: Vec::new(),
                table: Some(vec![(1, batch, word | 0xF << 30), (2, prefix, word)]),
            };
            live_on(&[region]);
        }
    }
}
