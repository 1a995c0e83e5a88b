//! Hashes of names and of all their prefixes, for every function.

use std::collections::HashSet;

use proptest::prelude::*;
use tachonym_packet::{Component, HashKey, HashKind, Name, NameHash, NameHashes, NameView};

const SECRET: [u8; 32] = {
    let mut secret = [0; 32];
    let mut i = 0;
    while i < 32 {
        secret[i] = i as u8;
        i += 1;
    }
    secret
};

/// Hashes under [`SECRET`] of the names of
/// [`values_are_the_same_on_every_processor`], found by a program of their
/// definitions in Python, with another library's AES.
const SIP24: [u64; 3] = [
    0x726f_db47_dd0e_0e31,
    0x86e0_b513_be13_0b9c,
    0x9dff_9f4a_35a4_40ba,
];
const SIP13: [u64; 3] = [
    0xabac_0158_050f_c4dc,
    0xe54c_b36a_06a7_336f,
    0x5e53_ef4d_bc97_8aef,
];
const AES: [u64; 3] = [
    0xea65_a6fc_7cb5_f2fd,
    0xd725_a5f0_4e28_00a6,
    0x7d21_c6e9_f930_9241,
];

fn keys() -> impl Iterator<Item = HashKey> {
    HashKind::ALL
        .map(|kind| HashKey::new(kind, &SECRET))
        .into_iter()
}

fn component(typ: u16, n_bytes: usize) -> Component {
    let value: Vec<u8> = (0..n_bytes)
        .map(|i| (i * 7 + usize::from(typ)) as u8)
        .collect();
    Component::new(typ, value).expect("a valid component")
}

fn name_of(components: impl IntoIterator<Item = Component>) -> Name {
    let mut name = Name::new();
    for component in components {
        name.push(component.view());
    }
    name
}

/// Names in which each way through the code is taken: lengths around a word,
/// a block and the one-byte numbers, and names of more blocks than one key has
/// words for.
fn names() -> Vec<Name> {
    let mut names = vec![
        Name::new(),
        name_of([component(8, 0)]),
        name_of([component(8, 8_700)]),
        name_of([component(8, 4_000), component(8, 4_000), component(8, 1)]),
        name_of((0..4_400).map(|_| component(8, 0))),
        name_of((0..700).map(|i| component(8, i % 12))),
        name_of([252, 253, 65_535].map(|typ| component(typ, 10))),
    ];
    let lens = [
        0, 1, 5, 6, 7, 8, 13, 14, 15, 16, 30, 31, 252, 253, 300, 1_024,
    ];
    for first in lens {
        for last in lens {
            names.push(name_of([component(8, first), component(8, last)]));
        }
    }
    for n_components in [30, 31, 32, 33, 62, 63, 64, 65, 66, 127, 128, 129, 130] {
        names.push(name_of((0..n_components).map(|_| component(8, 9))));
        names.push(name_of((0..n_components).map(|_| component(8, 20))));
    }
    names
}

fn assert_prefixes(key: &HashKey, name: NameView<'_>, hashes: &[NameHash]) {
    assert_eq!(hashes.len(), name.len() + 1);
    // All of a long name's would take time quadratic in it.
    let step = name.len() / 200 + 1;
    for n in (0..name.len()).step_by(step).chain([name.len()]) {
        let alone = key.hash_name(name.prefix(n));
        assert_eq!(hashes[n], alone, "{}, {n} of {}", key.kind(), name.len());
    }
}

#[test]
fn every_prefix_has_the_hash_that_it_has_alone() {
    let names = names();
    for key in keys() {
        let mut hashes = NameHashes::new();
        for name in &names {
            let span = hashes.push_name(&key, name.view());
            assert_prefixes(&key, name.view(), hashes.slice(span));
            assert_eq!(hashes.get(span, 0), key.hash_name(NameView::EMPTY));
        }
    }
}

#[test]
fn a_burst_is_hashed_as_its_names_one_by_one() {
    let names = names();
    for key in keys() {
        let (mut together, mut single) = (NameHashes::new(), NameHashes::new());
        let mut spans = Vec::new();
        for burst in names.chunks(40) {
            let n_before = spans.len();
            together.push_burst(&key, burst.iter().map(Name::view), &mut spans);
            assert_eq!(spans.len() - n_before, burst.len());
            for (name, &span) in burst.iter().zip(&spans[n_before..]) {
                let alone = single.push_name(&key, name.view());
                assert_eq!(together.slice(span), single.slice(alone));
            }
        }
        together.clear();
        spans.clear();
        together.push_burst(&key, std::iter::empty(), &mut spans);
        assert!(spans.is_empty());
    }
}

proptest! {
    #[test]
    fn prefixes_of_any_name_have_the_hashes_that_they_have_alone(
        components in prop::collection::vec((1u16..=700, prop::collection::vec(any::<u8>(), 0..40)), 0..90),
        secret in any::<[u8; 32]>(),
    ) {
        // Digest components have a length of their own.
        let components = components.into_iter().map(|(typ, value)| {
            Component::new(typ.max(8), value).expect("a valid component")
        });
        let name = name_of(components);
        for kind in HashKind::ALL {
            let key = HashKey::new(kind, &secret);
            let mut hashes = NameHashes::new();
            let span = hashes.push_name(&key, name.view());
            assert_prefixes(&key, name.view(), hashes.slice(span));
        }
    }
}

#[test]
fn values_are_the_same_on_every_processor() {
    let name = name_of([component(8, 5), component(50, 20), component(8, 14)]);
    let long = name_of((0..130).map(|i| component(8, i % 40)));
    for (kind, expected) in [
        (HashKind::SipHash24, SIP24),
        (HashKind::SipHash13, SIP13),
        (HashKind::MultilinearAes, AES),
    ] {
        let key = HashKey::new(kind, &SECRET);
        let names = [NameView::EMPTY, name.view(), long.view()];
        let hashes = names.map(|name| key.hash_name(name).0);
        assert_eq!(hashes, expected, "{kind}: {hashes:#x?}");
    }
    let same = HashKey::from_u64s(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
    assert_eq!(same.kind(), HashKind::SipHash13);
    assert_eq!(same.hash_name(name.view()), NameHash(SIP13[1]));
}

#[test]
fn each_bit_of_a_key_changes_the_hash() {
    let name: Name = "/example/a".parse().unwrap();
    for kind in HashKind::ALL {
        let n_bits = match kind {
            HashKind::MultilinearAes => 256,
            _ => 128,
        };
        let mut seen = HashSet::from([HashKey::new(kind, &SECRET).hash_name(name.view())]);
        for bit in 0..n_bits {
            let mut secret = SECRET;
            secret[bit / 8] ^= 1 << (bit % 8);
            let hash = HashKey::new(kind, &secret).hash_name(name.view());
            assert!(seen.insert(hash), "{kind}: bit {bit}");
        }
    }
}

#[test]
fn a_key_is_not_shown() {
    for key in keys() {
        let shown = format!("{key:?}");
        assert_eq!(shown, format!("HashKey({}, ..)", key.kind()));
    }
}

/// Each bit of a name, turned over, turns over half of the hash's bits. With
/// a fixed key and fixed names the outcome is the same each time.
#[test]
fn a_bit_of_the_name_decides_over_every_bit_of_the_hash() {
    const N_NAMES: u64 = 2_000;
    for key in keys() {
        let mut n_turned = [0u32; 64];
        let mut n_flips = 0;
        for i in 0..N_NAMES {
            let mut value = *b"component of 24 letters.";
            value[..8].copy_from_slice(&i.to_le_bytes());
            let hash = |value: &[u8]| {
                let last = Component::new(8, value.to_vec()).unwrap();
                key.hash_name(name_of([component(8, 6), last]).view()).0
            };
            let bit = (i * 37 % 192) as usize;
            let before = hash(&value);
            value[bit / 8] ^= 1 << (bit % 8);
            let turned = before ^ hash(&value);
            for (out, n) in n_turned.iter_mut().enumerate() {
                *n += (turned >> out & 1) as u32;
            }
            n_flips += 1;
        }
        // Five standard deviations about a half, for 64 bits.
        let half = f64::from(n_flips) / 2.0;
        let most = 5.0 * (f64::from(n_flips) / 4.0).sqrt();
        for (out, &n) in n_turned.iter().enumerate() {
            let off = (f64::from(n) - half).abs();
            assert!(off < most, "{}: bit {out} turned {n} times", key.kind());
        }
    }
}

/// A million names that differ in a number have as many equal halves of hashes
/// as random numbers would, within three standard deviations.
#[test]
fn similar_names_collide_no_more_than_random_numbers() {
    const N_NAMES: u64 = 1_000_000;
    let pairs = (N_NAMES * (N_NAMES - 1) / 2) as f64;
    let expected = pairs / f64::from(u32::MAX);
    let most = expected + 3.0 * expected.sqrt();
    let base: Name = "/example/videos/holiday/v=3".parse().unwrap();
    for key in keys() {
        let hashes: Vec<u64> = (0..N_NAMES)
            .map(|i| {
                let mut name = base.clone();
                name.push(Component::segment(i).view());
                key.hash_name(name.view()).0
            })
            .collect();
        for shift in [0, 16, 32] {
            let mut halves: Vec<u32> = hashes.iter().map(|hash| (hash >> shift) as u32).collect();
            halves.sort_unstable();
            let n_equal = halves.windows(2).filter(|pair| pair[0] == pair[1]).count();
            assert!(
                (n_equal as f64) < most,
                "{}: {n_equal} equal halves from bit {shift} on, {most:.0} at most",
                key.kind()
            );
        }
    }
}
