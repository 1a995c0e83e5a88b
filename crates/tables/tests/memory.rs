//! What an entry of each table costs, measured and printed:
//! `cargo test -p tachonym-tables --test memory -- --nocapture`.

mod support;

use support::policy::lru;
use support::{Hashing, InterestSpec, data_wire, name};
use tachonym_memory::{MemoryError, PagePreference};
use tachonym_packet::{DataView, FaceId, InterestView, MonoNs, Nonce};
use tachonym_tables::cs::CS_ENTRY_BYTES;
use tachonym_tables::pit::PIT_ENTRY_BYTES;
use tachonym_tables::{
    CsCapacity, CsConfig, DeadNonceList, Fib, FibConfig, InRecord, Known, MIN_DEAD_NONCE_LIFETIME,
    Missed, NextHop, OutRecord, PitConfig, PitCs, PitCsConfig, PitCsLayout,
};

const N_ENTRIES: usize = if cfg!(miri) { 500 } else { 50_000 };

fn report(what: &str, per_entry_bytes: usize, limit_bytes: usize) {
    println!("{what}: {per_entry_bytes} bytes");
    assert!(
        per_entry_bytes <= limit_bytes,
        "{what}: {per_entry_bytes} > {limit_bytes}"
    );
}

#[test]
fn memory_per_pit_entry_is_what_is_accounted() {
    for layout in PitCsLayout::ALL {
        memory_per_pit_entry(layout);
    }
}

fn memory_per_pit_entry(layout: PitCsLayout) {
    let nothing = CsCapacity {
        max_pkts: 0,
        max_bytes: 0,
    };
    let cs = CsConfig {
        capacity: nothing,
        ..CsConfig::default()
    };
    let pit = PitConfig::default();
    let config = PitCsConfig { pit, cs, layout };
    let cs_slots = config.cs.capacity.max_slots();
    let mut tables = PitCs::new(config, lru(cs_slots), Hashing::Keyed).expect("small tables");
    let mut wire_bytes = 0;
    for n in 0..N_ENTRIES {
        let uri = format!(
            "/example/university/department/archives/of-a-year/object-{n:06}/rendition/v=1/seg=7"
        );
        let wire = InterestSpec::new(name(&uri)).encode();
        wire_bytes += wire.len();
        let interest = InterestView::parse(&wire).unwrap();
        let hashes = Hashing::Keyed.hashes(interest.name());
        let (mut entry, _) = tables
            .find_or_insert(&interest, &hashes, Missed::default(), MonoNs::ZERO)
            .unwrap();
        let (nonce, expiry) = (Nonce([0; 4]), MonoNs(1));
        let face = FaceId(256);
        let downstream = InRecord {
            face,
            nonce,
            expiry,
            pit_token: None,
            hop_limit: None,
            flags: 0,
            lifetime_ms: 4_000,
        };
        entry.insert_in_record(downstream).unwrap();
        let upstream = OutRecord {
            face,
            nonce,
            expiry,
            last_sent: MonoNs::ZERO,
            nack: None,
            strategy_word: 0,
        };
        entry.insert_out_record(upstream).unwrap();
    }
    println!("mean Interest: {} bytes", wire_bytes / N_ENTRIES);
    assert!((100..=120).contains(&(wire_bytes / N_ENTRIES)));
    assert_eq!(tables.pit().used_bytes() / N_ENTRIES, PIT_ENTRY_BYTES);
    report(
        &format!("PIT entry, one downstream and upstream, {layout} index"),
        tables.memory_bytes() / N_ENTRIES,
        PIT_ENTRY_BYTES,
    );
}

#[test]
fn memory_per_cached_data_is_what_is_accounted() {
    for layout in PitCsLayout::ALL {
        memory_per_cached_data(layout);
    }
}

fn memory_per_cached_data(layout: PitCsLayout) {
    let capacity = CsCapacity {
        max_pkts: N_ENTRIES,
        max_bytes: 1 << 30,
    };
    let config = PitCsConfig {
        cs: CsConfig {
            capacity,
            ..CsConfig::default()
        },
        layout,
        ..PitCsConfig::default()
    };
    let cs_slots = config.cs.capacity.max_slots();
    let mut tables = PitCs::new(config, lru(cs_slots), Hashing::Keyed).expect("small tables");
    let mut wire_bytes = 0;
    for n in 0..N_ENTRIES {
        let wire = data_wire(
            &name(&format!("/example/site/file/seg={n}")),
            1000,
            &[7; 1000],
        );
        wire_bytes += wire.len();
        let data = DataView::parse(&wire).unwrap();
        let hashes = Hashing::Keyed.hashes(data.name());
        tables.insert_data(&data, &hashes, (&[], Known::default()), MonoNs::ZERO);
    }
    assert_eq!(tables.cs().len(), N_ENTRIES);
    let overhead_bytes = (tables.memory_bytes() - wire_bytes) / N_ENTRIES;
    println!(
        "mean Data: {} bytes; {CS_ENTRY_BYTES} accounted beside it",
        wire_bytes / N_ENTRIES
    );
    report(
        &format!("content store entry, beside its packet, {layout} index"),
        overhead_bytes,
        240,
    );
}

#[test]
fn memory_per_route_is_small() {
    let config = FibConfig::with_max_entries(N_ENTRIES);
    let mut fib = Fib::new(config, Hashing::Keyed).expect("a small FIB");
    for n in 0..N_ENTRIES {
        let prefix = name(&format!("/example/site-{}/node-{n}", n % 100));
        let hop = NextHop::new(FaceId(256), 10);
        fib.add_next_hop(prefix.view(), hop).unwrap();
    }
    report(
        "FIB entry, one next hop",
        fib.memory_bytes() / N_ENTRIES,
        80,
    );
}

#[test]
fn memory_per_dead_nonce_is_small() {
    let mut list = DeadNonceList::new(MIN_DEAD_NONCE_LIFETIME, N_ENTRIES, PagePreference::Base)
        .expect("a small table");
    let key = Hashing::Keyed.hashes(name("/example").view())[1];
    for n in 0..N_ENTRIES as u32 {
        list.insert(key, Nonce(n.to_be_bytes()), MonoNs::ZERO);
    }
    report("dead nonce", list.memory_bytes() / N_ENTRIES, 48);
}

/// On a machine with less than fifty gibibytes of memory.
#[test]
#[cfg(not(miri))]
fn a_pit_whose_index_exceeds_memory_is_refused() {
    let config = PitConfig {
        max_entries: usize::MAX,
        max_bytes: usize::MAX,
        ..PitConfig::default()
    };
    let config = PitCsConfig {
        cs: CsConfig::default(),
        pit: config,
        layout: PitCsLayout::Separate,
    };
    match PitCs::new(config, lru(0), Hashing::Keyed) {
        Err(MemoryError::TooLarge {
            needed_bytes,
            available_bytes,
            ..
        }) => assert!(needed_bytes > available_bytes && needed_bytes >= 32 << 30),
        other => assert!(other.is_ok_and(|tables| tables.pages().total_bytes() >= 32 << 30)),
    }
}
