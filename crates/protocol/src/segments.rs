//! Cutting content into segments and putting it together again.
//!
//! Owns the arithmetic of segments and a bounded buffer that segments are put
//! together in. Knows no packet and no window: the manager signs what is cut
//! here, a fetcher decides what to ask for.

use std::collections::BTreeMap;

/// Content bytes of one segment that leave room for usual names and signatures
/// in a packet.
pub const SEGMENT_BYTES: usize = 8000;

/// How long a segment of a dataset is fresh, in milliseconds.
pub const DATASET_FRESHNESS_MS: u64 = 1000;

/// Number of the last segment of `content_bytes` bytes. Empty content is one
/// empty segment.
///
/// # Panics
/// If `segment_bytes` is 0.
#[must_use]
pub const fn last_segment(content_bytes: usize, segment_bytes: usize) -> u64 {
    (content_bytes.saturating_sub(1) / segment_bytes) as u64
}

/// Segment `number` of `content`; `None` beyond the last one.
///
/// # Panics
/// If `segment_bytes` is 0.
#[must_use]
pub fn segment(content: &[u8], number: u64, segment_bytes: usize) -> Option<&[u8]> {
    if number > last_segment(content.len(), segment_bytes) {
        return None;
    }
    let start = usize::try_from(number).ok()?.checked_mul(segment_bytes)?;
    let end = start.saturating_add(segment_bytes).min(content.len());
    content.get(start..end)
}

/// Why a segment was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReassemblyError {
    /// The content would exceed the limit.
    #[error("the content is larger than the limit")]
    TooLarge,
    /// The segment lies beyond the last one, or there are two last ones.
    #[error("the segments disagree on which one is the last")]
    Contradiction,
}

/// Segments on their way to becoming content again, in any order.
#[derive(Debug)]
pub struct Reassembly {
    segments: BTreeMap<u64, Vec<u8>>,
    last: Option<u64>,
    n_bytes: usize,
    max_bytes: usize,
}

impl Reassembly {
    /// Accepts up to `max_bytes` of content, and as many segments.
    #[must_use]
    pub const fn new(max_bytes: usize) -> Self {
        Self {
            segments: BTreeMap::new(),
            last: None,
            n_bytes: 0,
            max_bytes,
        }
    }

    /// Takes a segment. `last` is the number of the last segment, if this one
    /// says it. A repeated segment is ignored.
    ///
    /// # Errors
    /// If the limit or what earlier segments said is exceeded.
    pub fn insert(
        &mut self,
        number: u64,
        last: Option<u64>,
        content: &[u8],
    ) -> Result<(), ReassemblyError> {
        if let Some(last) = last {
            let highest = self.segments.last_key_value().map_or(0, |(&n, _)| n);
            if self.last.is_some_and(|known| known != last) || highest > last {
                return Err(ReassemblyError::Contradiction);
            }
            self.last = Some(last);
        }
        if self.last.is_some_and(|last| number > last) {
            return Err(ReassemblyError::Contradiction);
        }
        if self.segments.contains_key(&number) {
            return Ok(());
        }
        // An empty segment counts too: their number has to be bounded as well.
        let n_bytes = self.n_bytes.saturating_add(content.len().max(1));
        if n_bytes > self.max_bytes {
            return Err(ReassemblyError::TooLarge);
        }
        self.n_bytes = n_bytes;
        self.segments.insert(number, content.to_vec());
        Ok(())
    }

    /// The lowest segment that is missing; `None`: all are there.
    #[must_use]
    pub fn next_missing(&self) -> Option<u64> {
        let mut number = 0;
        for &present in self.segments.keys() {
            if present != number {
                return Some(number);
            }
            number += 1;
        }
        match self.last {
            Some(last) if number > last => None,
            _ => Some(number),
        }
    }

    /// The content, if all segments are there.
    #[must_use]
    pub fn into_content(self) -> Option<Vec<u8>> {
        if self.next_missing().is_some() {
            return None;
        }
        Some(self.segments.into_values().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn empty_content_is_one_empty_segment() {
        assert_eq!(last_segment(0, 10), 0);
        assert_eq!(segment(&[], 0, 10), Some(&[][..]));
        assert_eq!(segment(&[], 1, 10), None);
        assert_eq!(last_segment(10, 10), 0);
        assert_eq!(last_segment(11, 10), 1);
        assert_eq!(segment(&[0; 11], u64::MAX, 10), None);
    }

    #[test]
    fn contradictions_and_excess_are_refused() {
        let mut parts = Reassembly::new(10);
        parts.insert(3, None, &[0; 5]).unwrap();
        let contradiction = Err(ReassemblyError::Contradiction);
        assert_eq!(parts.insert(0, Some(2), &[]), contradiction);
        parts.insert(0, Some(5), &[]).unwrap();
        assert_eq!(parts.insert(1, Some(6), &[]), contradiction);
        assert_eq!(parts.insert(6, None, &[]), contradiction);
        assert_eq!(
            parts.insert(1, None, &[0; 5]),
            Err(ReassemblyError::TooLarge)
        );
        parts.insert(3, None, &[1; 100]).unwrap();
        assert_eq!(parts.next_missing(), Some(1));
        assert_eq!(parts.into_content(), None);
    }

    proptest! {
        #[test]
        fn content_survives_segmentation_in_any_order(
            content in prop::collection::vec(any::<u8>(), 0..200),
            segment_bytes in 1usize..50,
            seed: u64,
        ) {
            let last = last_segment(content.len(), segment_bytes);
            let mut order: Vec<u64> = (0..=last).collect();
            order.sort_by_key(|n| (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut parts = Reassembly::new(1000);
            for &n in &order {
                prop_assert!(parts.next_missing().is_some());
                let final_block = (n == last).then_some(last);
                let bytes = segment(&content, n, segment_bytes).unwrap();
                parts.insert(n, final_block, bytes).unwrap();
            }
            prop_assert_eq!(segment(&content, last + 1, segment_bytes), None);
            prop_assert_eq!(parts.into_content(), Some(content));
        }
    }
}
