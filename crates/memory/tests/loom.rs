//! Models: every interleaving, and every value that the memory model lets a load
//! return, within the bounds given. `cargo xtask test` runs them with
//! `--cfg loom`.
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use tachonym_memory::grace::Domain;
use tachonym_memory::sync::{AtomicU64, Ordering, Tracked};
use tachonym_memory::{PagePreference, Words};

/// Entries and the number of the one that is linked.
struct Table {
    link: AtomicU64,
    contents: Words,
    /// What entries consist of besides: plain memory.
    plain: [Tracked; 2],
}

const FRESH: [u64; 2] = [10, 20];
const REUSED: u64 = 99;

impl Table {
    fn new() -> Arc<Self> {
        let contents = Words::reserve(2, PagePreference::Auto).unwrap();
        contents.commit(2).unwrap();
        contents.words()[0].store(FRESH[0], Ordering::Relaxed);
        Arc::new(Self {
            link: AtomicU64::new(0),
            contents,
            plain: [Tracked::new(), Tracked::new()],
        })
    }

    fn read(&self) {
        let idx = self.link.load(Ordering::Acquire) as usize;
        let content = self.contents.words()[idx].load(Ordering::Relaxed);
        assert_eq!(content, FRESH[idx], "reused while it was read");
        self.plain[idx].read();
    }

    /// Links entry 1 in the place of entry 0.
    fn replace(&self) {
        self.plain[1].write();
        self.contents.words()[1].store(FRESH[1], Ordering::Relaxed);
        self.link.store(1, Ordering::Release);
    }

    /// Gives entry 0 another meaning.
    fn reuse(&self) {
        self.plain[0].write();
        self.contents.words()[0].store(REUSED, Ordering::Relaxed);
    }
}

#[test]
fn entry_is_reused_after_every_reader_that_could_reach_it() {
    loom::model(|| {
        let (table, domain) = (Table::new(), Domain::new());
        let mut reader = domain.reader();
        let reading = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                // The second walk may begin before the writer asks.
                for _ in 0..2 {
                    let _pin = reader.pin();
                    table.read();
                }
            })
        };
        table.replace();
        domain.wait(domain.advance());
        table.reuse();
        reading.join().unwrap();
    });
}

#[test]
fn every_reader_is_waited_for() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (table, domain) = (Table::new(), Domain::new());
        let reading: Vec<_> = (0..2)
            .map(|_| {
                let (table, mut reader) = (Arc::clone(&table), domain.reader());
                thread::spawn(move || {
                    let _pin = reader.pin();
                    table.read();
                })
            })
            .collect();
        table.replace();
        domain.wait(domain.advance());
        table.reuse();
        for thread in reading {
            thread.join().unwrap();
        }
    });
}

#[test]
fn reader_that_comes_late_finds_nothing_that_was_unlinked() {
    loom::model(|| {
        let (table, domain) = (Table::new(), Domain::new());
        let reading = {
            let (table, domain) = (Arc::clone(&table), Arc::clone(&domain));
            thread::spawn(move || {
                let mut reader = domain.reader();
                let _pin = reader.pin();
                table.read();
            })
        };
        table.replace();
        let era = domain.advance();
        // Asked once: a reader that has not come must not be needed.
        if domain.is_over(era) {
            table.reuse();
        }
        reading.join().unwrap();
    });
}

/// The models above see what they look for.
#[test]
#[should_panic(expected = "reused while it was read")]
fn reuse_without_waiting_is_seen() {
    loom::model(|| {
        let (table, domain) = (Table::new(), Domain::new());
        let mut reader = domain.reader();
        let reading = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let _pin = reader.pin();
                let idx = table.link.load(Ordering::Acquire) as usize;
                let content = table.contents.words()[idx].load(Ordering::Relaxed);
                assert_eq!(content, FRESH[idx], "reused while it was read");
            })
        };
        table.replace();
        domain.advance();
        table.contents.words()[0].store(REUSED, Ordering::Relaxed);
        reading.join().unwrap();
    });
}
