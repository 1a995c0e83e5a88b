//! What a word of an index leads to.
//!
//! Owns a bit. Slot numbers of both tables are below 2^31, so the highest bit of a word
//! is free to tell cached Data from pending Interests, and what is of the other kind is
//! passed over without a look at its entry.

const CACHED: u32 = 1 << 31;

/// The word of a pending Interest.
pub(crate) const fn pending(slot: u32) -> u32 {
    debug_assert!(slot & CACHED == 0);
    slot
}

/// The word of a cached Data.
pub(crate) const fn cached(slot: u32) -> u32 {
    debug_assert!(slot & CACHED == 0);
    slot | CACHED
}

/// The slot in the PIT, if the word is a pending Interest's.
pub(crate) const fn as_pending(word: u32) -> Option<u32> {
    if word & CACHED == 0 { Some(word) } else { None }
}

/// The slot in the content store, if the word is a cached Data's.
pub(crate) const fn as_cached(word: u32) -> Option<u32> {
    if word & CACHED == 0 {
        None
    } else {
        Some(word & !CACHED)
    }
}
