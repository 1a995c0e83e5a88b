//! What has been promised: memory that arrays may use and have not touched yet.
//!
//! The kernel counts memory when it is touched, so two arrays that each find
//! enough available may still not fit together. Every growth is therefore
//! admitted here, against what is available less what earlier ones still may
//! take. Other processes are not seen before they touch theirs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::available::{Available, available_memory};
use crate::error::MemoryError;
use crate::sys::mapping::resident_bytes;

/// Part of the available memory that arrays leave to everything else.
const MARGIN_PART: u64 = 16;

/// Most that is left so.
const MARGIN_MAX_BYTES: u64 = 512 << 20;

/// Part of what is left after an admission that may be admitted without asking
/// the kernel again: asking costs tens of microseconds, and a walk through the
/// page tables.
const CREDIT_PART: u64 = 16;

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger::new());

/// The account of the whole process. One growth is admitted and done at a time.
pub(crate) fn lock() -> MutexGuard<'static, Ledger> {
    // Whoever panicked left a complete account: every change is one step.
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Ledger {
    /// Lengths of what is usable and backed when touched, by address.
    ranges: BTreeMap<usize, usize>,
    credit_bytes: u64,
}

impl Ledger {
    const fn new() -> Self {
        Self {
            ranges: BTreeMap::new(),
            credit_bytes: 0,
        }
    }

    /// Whether memory of `bytes` may be made usable.
    pub(crate) fn admit(&mut self, bytes: u64) -> Result<(), MemoryError> {
        if self.take_credit(bytes) {
            return Ok(());
        }
        let untouched = |(&addr, &len): (&usize, &usize)| (len - resident_bytes(addr, len)) as u64;
        let promised_bytes = self.ranges.iter().map(untouched).sum();
        self.admit_within(bytes, available_memory(), promised_bytes)
    }

    fn take_credit(&mut self, bytes: u64) -> bool {
        let left = self.credit_bytes.checked_sub(bytes);
        self.credit_bytes = left.unwrap_or(self.credit_bytes);
        left.is_some()
    }

    fn admit_within(
        &mut self,
        bytes: u64,
        available: Available,
        promised_bytes: u64,
    ) -> Result<(), MemoryError> {
        let margin_bytes = (available.bytes / MARGIN_PART).min(MARGIN_MAX_BYTES);
        let free_bytes = available.bytes.saturating_sub(margin_bytes);
        let free_bytes = free_bytes.saturating_sub(promised_bytes);
        let Some(left_bytes) = free_bytes.checked_sub(bytes) else {
            return Err(MemoryError::TooLarge {
                needed_bytes: bytes,
                available_bytes: free_bytes,
                limit: available.limit,
            });
        };
        self.credit_bytes = left_bytes / CREDIT_PART;
        Ok(())
    }

    /// Remembers that `len` bytes at `addr`, of the mapping at `base`, are usable
    /// and backed when touched.
    pub(crate) fn add(&mut self, base: usize, addr: usize, len: usize) {
        match self.ranges.range_mut(base..addr).next_back() {
            Some((&before, length)) if before + *length == addr => *length += len,
            _ => {
                self.ranges.insert(addr, len);
            }
        }
    }

    /// Forgets what lies in `len` bytes at `addr`: one mapping, all of it.
    pub(crate) fn remove(&mut self, addr: usize, len: usize) {
        let mut after = self.ranges.split_off(&addr);
        let mut beyond = after.split_off(&(addr + len));
        self.ranges.append(&mut beyond);
    }

    /// The ranges in `len` bytes at `addr`.
    pub(crate) fn within(&self, addr: usize, len: usize) -> impl Iterator<Item = (usize, usize)> {
        let found = self.ranges.range(addr..addr + len);
        found.map(|(&addr, &len)| (addr, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Limit;

    const MIB: u64 = 1 << 20;

    fn available(bytes: u64) -> Available {
        Available {
            bytes,
            limit: Limit::Machine,
        }
    }

    #[test]
    fn promises_and_a_margin_are_kept() {
        let mut ledger = Ledger::new();
        // A sixteenth of 1,600 MiB is kept, and 500 MiB are promised.
        let at_most = 1000 * MIB;
        let refused = ledger.admit_within(at_most + 1, available(1600 * MIB), 500 * MIB);
        match refused {
            Err(MemoryError::TooLarge {
                needed_bytes,
                available_bytes,
                ..
            }) => assert_eq!((needed_bytes, available_bytes), (at_most + 1, at_most)),
            other => panic!("{other:?}"),
        }
        let admitted = ledger.admit_within(at_most, available(1600 * MIB), 500 * MIB);
        assert!(admitted.is_ok());
        let admitted = ledger.admit_within(1, available(600 * MIB), 600 * MIB);
        assert!(admitted.is_err());
    }

    #[test]
    fn credit_covers_small_growth_until_it_is_spent() {
        let mut ledger = Ledger::new();
        assert!(!ledger.take_credit(1));
        let all = 16 * 512 * MIB;
        ledger.admit_within(0, available(all), 0).unwrap();
        let credit = (all - 512 * MIB) / CREDIT_PART;
        assert!(!ledger.take_credit(credit + 1));
        assert!(ledger.take_credit(credit - 1));
        assert!(ledger.take_credit(1));
        assert!(!ledger.take_credit(1));
    }

    #[test]
    fn ranges_are_merged_and_forgotten_with_their_mapping() {
        let mut ledger = Ledger::new();
        ledger.add(0x1000, 0x1000, 0x1000);
        ledger.add(0x1000, 0x2000, 0x1000);
        ledger.add(0x1000, 0x5000, 0x4000);
        // Another mapping, right behind.
        ledger.add(0x9000, 0x9000, 0x1000);
        let of_first: Vec<_> = ledger.within(0x1000, 0x8000).collect();
        assert_eq!(of_first, [(0x1000, 0x2000), (0x5000, 0x4000)]);
        ledger.remove(0x1000, 0x8000);
        assert_eq!(
            ledger.within(0, 0x10000).collect::<Vec<_>>(),
            [(0x9000, 0x1000)]
        );
    }
}
