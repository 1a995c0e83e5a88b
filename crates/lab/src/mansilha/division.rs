//! Which worker has which chunks: by content or by batch, with the router's own dispatch
//! (Mansilha et al. 2017, sections 3.2.3 and 5.2).

use std::num::{NonZeroU8, NonZeroU32};

use tachonym_dispatch::{BucketMap, DispatchBy, WorkerId};
use tachonym_packet::{NameHashes, NameView};

use super::catalogue::{Catalogue, Chunk};
use super::packets::write_name_value;
use crate::beds::first_level::hash_key;

/// Buckets that workers share out, as a power of two: as the router has unless configured.
const N_BUCKETS_LOG2: u8 = 10;

/// What is hashed (H; Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Names of contents.
    Content,
    /// Names of contents and numbers of batches.
    Batch,
}

impl Rule {
    /// Its name, as the paper has it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Content => "Content",
            Self::Batch => "Batch",
        }
    }

    fn dispatch(self, batch_chunks: u32) -> DispatchBy {
        match self {
            // `/content/<number>`, without the segment.
            Self::Content => DispatchBy::Prefix {
                n_components: NonZeroU8::MIN.saturating_add(1),
            },
            Self::Batch => DispatchBy::Batch {
                n_segments: NonZeroU32::new(batch_chunks).unwrap_or(NonZeroU32::MIN),
            },
        }
    }
}

/// The worker of each batch.
#[derive(Clone, Debug)]
pub(super) struct Division {
    batch_chunks: u32,
    content_batches: u32,
    workers: Vec<u16>,
    n_workers: u16,
}

impl Division {
    /// Divides a catalogue among `n_workers`, at least one, by hashes with a key of a seed.
    ///
    /// # Errors
    /// If there are more workers than the dispatch crate has numbers for.
    pub(super) fn new(
        catalogue: Catalogue,
        rule: Rule,
        n_workers: u16,
        batch_chunks: u32,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let workers: Vec<WorkerId> = (0..n_workers).map(WorkerId).collect();
        let map = BucketMap::new(N_BUCKETS_LOG2, &workers)?;
        let (by, key) = (rule.dispatch(batch_chunks), hash_key(seed));
        let content_batches = catalogue.content_chunks.div_ceil(batch_chunks);
        let mut hashes = NameHashes::new();
        let mut name = Vec::new();
        let n_batches = u64::from(catalogue.n_contents) * u64::from(content_batches);
        let workers = (0..n_batches).map(|batch| {
            let chunk = Chunk {
                content: (batch / u64::from(content_batches)) as u32,
                segment: (batch % u64::from(content_batches)) as u32 * batch_chunks,
            };
            name.clear();
            write_name_value(chunk, &mut name);
            let name = NameView::parse_value(&name).expect("written here");
            hashes.clear();
            let span = hashes.push_name(&key, name);
            map.home(by.key(name, hashes.slice(span))).0
        });
        Ok(Self {
            batch_chunks,
            content_batches,
            workers: workers.collect(),
            n_workers,
        })
    }

    /// The worker of a chunk of the catalogue.
    #[inline]
    pub(super) fn home(&self, chunk: Chunk) -> u16 {
        let batch = chunk.segment / self.batch_chunks;
        let first = chunk.content as usize * self.content_batches as usize;
        self.workers[first + batch as usize]
    }

    /// Workers.
    pub(super) const fn n_workers(&self) -> u16 {
        self.n_workers
    }
}

/// The load of the most loaded worker by the mean; 1 without any load.
pub(super) fn most_by_mean(loads: &[u64]) -> f64 {
    let all: u64 = loads.iter().sum();
    let most = loads.iter().max().copied().unwrap_or(0);
    if all == 0 {
        return 1.0;
    }
    most as f64 * loads.len() as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn batches_stay_together_and_contents_only_by_content() {
        let catalogue = Catalogue {
            n_contents: 40,
            content_chunks: 95,
        };
        for rule in [Rule::Content, Rule::Batch] {
            let division = Division::new(catalogue, rule, 8, 10, 1).expect("eight workers");
            let mut used = HashSet::new();
            for content in 0..40 {
                let home = |segment| division.home(Chunk { content, segment });
                let homes: HashSet<u16> = (0..95).map(home).collect();
                assert_eq!(homes.len() == 1, rule == Rule::Content, "{homes:?}");
                for segment in 0..95 {
                    assert_eq!(home(segment), home(segment / 10 * 10));
                }
                used.extend(homes);
            }
            assert_eq!(used.len(), 8);
        }
    }

    #[test]
    fn the_most_loaded_is_compared_with_the_mean() {
        assert_eq!(most_by_mean(&[1, 1, 4, 2]), 2.0);
        assert_eq!(most_by_mean(&[5]), 1.0);
        assert_eq!(most_by_mean(&[0, 0]), 1.0);
    }
}
