//! k-LRU: a chain of LRU caches in which a name advances by one cache a request.
//!
//! Martina, Garetto and Leonardi, "A unified approach to the performance analysis of
//! caching systems", INFOCOM 2014, section 2; Mansilha et al. 2017, section 2.1, name it as
//! an admission. The first k-1 caches hold names only, and each has as many as the content
//! store has Data. Every request goes to all of them: it enters the first one, and each
//! further one if the cache before held the name already. A Data is admitted if the last
//! of them held its name before the latest request.

use crate::ghosts::Ghosts;
use crate::list::{Links, List};

/// The caches of names.
#[derive(Debug)]
pub struct KLru {
    stages: Vec<Stage>,
}

/// Names in the order of their latest requests.
#[derive(Debug)]
struct Stage {
    names: Ghosts,
    links: Links,
    recent: List,
    /// By name, one bit each: it was here before its latest request.
    is_known: Vec<u64>,
}

impl Stage {
    fn new(max_names: usize) -> Self {
        Self {
            names: Ghosts::new(max_names),
            links: Links::new(max_names),
            recent: List::default(),
            is_known: vec![0; max_names.div_ceil(64)],
        }
    }

    fn set_known(&mut self, name: u32, is_known: bool) {
        let bit = 1 << (name % 64);
        let word = &mut self.is_known[name as usize / 64];
        *word = (*word & !bit) | (u64::from(is_known) * bit);
    }

    fn touch(&mut self, name: u32) {
        self.recent.move_to_front(&mut self.links, name);
        self.set_known(name, true);
    }

    fn enter(&mut self, hash: u64) {
        if self.names.is_full()
            && let Some(oldest) = self.recent.pop_back(&mut self.links)
        {
            self.names.remove(oldest);
        }
        if let Some(name) = self.names.insert(hash) {
            self.recent.push_front(&mut self.links, name);
            self.set_known(name, false);
        }
    }

    fn memory_bytes(&self) -> usize {
        self.names.memory_bytes() + self.links.memory_bytes() + size_of_val(&*self.is_known)
    }
}

impl KLru {
    /// The least and the greatest k.
    pub const N_STAGES: std::ops::RangeInclusive<usize> = 2..=8;

    /// The caches of names in front of a content store of `capacity` Data, which is the
    /// last of the `n_stages` caches of the chain.
    #[must_use]
    pub fn new(capacity: usize, n_stages: usize) -> Self {
        let stages = (1..n_stages).map(|_| Stage::new(capacity.max(1)));
        Self {
            stages: stages.collect(),
        }
    }

    /// Most bytes that they take.
    #[must_use]
    pub fn bytes_for(capacity: usize, n_stages: usize) -> u64 {
        let max_names = capacity.max(1) as u64;
        // Hash, chain, free number and links by name; a bucket by name or up to two; a bit.
        let by_stage = max_names
            .saturating_mul(24)
            .saturating_add(4 * max_names.next_power_of_two().max(2))
            .saturating_add(8 * max_names.div_ceil(64));
        by_stage.saturating_mul(n_stages.saturating_sub(1) as u64)
    }

    /// A name was asked for.
    #[inline]
    pub fn handle_request(&mut self, hash: u64) {
        // From the last cache to the first: what a cache held before the request decides on
        // the cache behind it.
        for idx in (0..self.stages.len()).rev() {
            let (before, behind) = self.stages.split_at_mut(idx);
            let stage = &mut behind[0];
            if let Some(name) = stage.names.find(hash) {
                stage.touch(name);
            } else if before
                .last()
                .is_none_or(|stage| stage.names.find(hash).is_some())
            {
                stage.enter(hash);
            }
        }
    }

    /// Whether a Data of this name is admitted.
    #[inline]
    #[must_use]
    pub fn admits(&self, hash: u64) -> bool {
        let Some(last) = self.stages.last() else {
            return true;
        };
        let name = last.names.find(hash);
        name.is_some_and(|name| last.is_known[name as usize / 64] >> (name % 64) & 1 != 0)
    }

    /// Fetches what a request of this name reads first.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        for stage in &self.stages {
            stage.names.prefetch(hash);
        }
    }

    /// Memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.stages.iter().map(Stage::memory_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_advances_by_one_cache_a_request() {
        for n_stages in KLru::N_STAGES {
            let mut chain = KLru::new(4, n_stages);
            for n_requests in 1..10 {
                chain.handle_request(7);
                assert_eq!(chain.admits(7), n_requests >= n_stages, "{n_requests}");
            }
            // Four others push it out of the first cache only, but for k = 2.
            (100..104).for_each(|name| chain.handle_request(name));
            assert_eq!(chain.admits(7), n_stages > 2);
        }
    }

    #[test]
    fn memory_is_no_more_than_was_said() {
        for capacity in [0, 1, 63, 64, 65, 1_000, 4_097] {
            for n_stages in [2, 5] {
                let taken = KLru::new(capacity, n_stages).memory_bytes() as u64;
                assert!(taken <= KLru::bytes_for(capacity, n_stages), "{capacity}");
            }
        }
    }
}
