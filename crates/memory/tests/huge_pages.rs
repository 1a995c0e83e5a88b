//! Huge pages of the kernel's pool. The tests enlarge the pool for as long as
//! they run, for which they must be root; `cargo xtask test` skips them, and says
//! so, where it cannot be done.
#![cfg(not(any(loom, miri)))]

use std::fs::{self, File};
use std::sync::atomic::Ordering::Relaxed;

use tachonym_memory::{PagePreference, PageSize, Words, available_huge_bytes};

const POOL: &str = "/proc/sys/vm/nr_hugepages";
const PAGE_BYTES: usize = 2 << 20;
const PAGE_WORDS: usize = PAGE_BYTES / 8;

/// A pool with pages added, until it is dropped; one at a time on a machine.
struct LargerPool {
    n_before: u64,
    _alone: File,
}

impl LargerPool {
    fn with(n_more: u64) -> Self {
        let path = std::env::temp_dir().join("tachonym-huge-pages.lock");
        let alone = File::create(&path).expect("make a lock");
        alone.lock().expect("wait for the lock");
        let n_before = n_pages();
        fs::write(POOL, (n_before + n_more).to_string()).expect("enlarge the pool: must be root");
        let pool = Self {
            n_before,
            _alone: alone,
        };
        assert_eq!(n_pages(), n_before + n_more, "memory is too fragmented");
        pool
    }
}

impl Drop for LargerPool {
    fn drop(&mut self) {
        let restored = fs::write(POOL, self.n_before.to_string());
        if !std::thread::panicking() {
            restored.expect("restore the pool");
        }
    }
}

fn n_pages() -> u64 {
    let text = fs::read_to_string(POOL).expect("read the size of the pool");
    text.trim().parse().expect("a number")
}

fn free_bytes() -> u64 {
    available_huge_bytes(PageSize::Huge2M)
}

fn fill(words: &Words) {
    for word in words.words() {
        assert_eq!(word.fetch_add(1, Relaxed), 0);
    }
}

#[test]
fn huge_pages_are_taken_at_once_and_given_back() {
    let _pool = LargerPool::with(16);
    let before = free_bytes();
    let words = Words::reserve(8 * PAGE_WORDS, PagePreference::Huge2M).unwrap();
    assert_eq!(free_bytes(), before);
    words.commit(1).unwrap();
    assert_eq!(words.committed_bytes(), PAGE_BYTES);
    assert_eq!(before - free_bytes(), PAGE_BYTES as u64);
    let at = words.words().as_ptr();
    words.commit(4 * PAGE_WORDS + 1).unwrap();
    assert_eq!(words.pages().huge_2m_bytes, 5 * PAGE_BYTES as u64);
    assert_eq!(words.pages().total_bytes(), 5 * PAGE_BYTES as u64);
    assert_eq!(before - free_bytes(), 5 * PAGE_BYTES as u64);
    assert_eq!(words.words().as_ptr(), at);
    assert!(at.addr().is_multiple_of(PAGE_BYTES));
    fill(&words);
    drop(words);
    assert_eq!(free_bytes(), before);
}

#[test]
fn huge_pages_that_are_missing_are_replaced() {
    let _pool = LargerPool::with(4);
    let n_free = free_bytes() as usize / PAGE_BYTES;
    let n_words = (n_free + 8) * PAGE_WORDS;
    let words = Words::reserve(n_words, PagePreference::Huge2M).unwrap();
    words.commit(n_words).unwrap();
    let pages = words.pages();
    assert_eq!(pages.huge_2m_bytes, (n_free * PAGE_BYTES) as u64);
    assert_eq!(
        pages.base_bytes + pages.transparent_bytes,
        8 * PAGE_BYTES as u64
    );
    assert_eq!(free_bytes(), 0);
    // None is missing behind what was promised.
    fill(&words);
}

#[test]
fn huge_pages_are_preferred_only_where_all_can_have_them() {
    let _pool = LargerPool::with(8);
    let n_free = free_bytes() as usize / PAGE_BYTES;
    let max_words = (n_free + 8) * PAGE_WORDS;
    let words = Words::reserve(max_words, PagePreference::Auto).unwrap();
    // Less than a page, then whole ones with a piece before; the last is rounded up.
    words.commit(PAGE_WORDS / 2).unwrap();
    assert_eq!(words.committed_bytes(), PAGE_BYTES / 2);
    words.commit(3 * PAGE_WORDS + PAGE_WORDS / 2).unwrap();
    assert_eq!(words.committed_bytes(), 4 * PAGE_BYTES);
    assert_eq!(words.pages().huge_2m_bytes, 3 * PAGE_BYTES as u64);
    fill(&words);
    // The pool has fewer than this needs.
    words.commit(max_words).unwrap();
    assert_eq!(words.pages().huge_2m_bytes, 3 * PAGE_BYTES as u64);
    assert_eq!(words.committed_bytes(), max_words * 8);
    assert_eq!(words.words()[max_words - 1].load(Relaxed), 0);
}

#[test]
fn huge_pages_are_not_lost_by_a_refusal() {
    let _pool = LargerPool::with(8);
    let before = free_bytes();
    let words = Words::reserve(1 << 40, PagePreference::Huge2M).unwrap();
    words.commit(PAGE_WORDS).unwrap();
    fill(&words);
    words.commit(1 << 40).expect_err("no machine has 8 TiB");
    assert_eq!(words.committed_bytes(), PAGE_BYTES);
    assert_eq!(before - free_bytes(), PAGE_BYTES as u64);
    words.commit(2 * PAGE_WORDS).unwrap();
    assert_eq!(words.pages().huge_2m_bytes, 2 * PAGE_BYTES as u64);
}
