//! Figures of Takemasa 2019, section 4.4.3, and Mansilha 2017, sections 5.1 and 5.2, as far
//! as their texts tell them: the drawings themselves have no numbers.

use crate::takemasa::{INFERRED_THREADS as N_THREADS, PUBLISHED_PKTS_PER_S as PKTS_PER_S};

/// Threads up to which Takemasa's speed grows as their number; then memory is too slow.
const LINEAR_THREADS: u16 = 22;
/// Threads of Mansilha's Figure 8, where the schemes are compared.
const MANSILHA_THREADS: u16 = 16;
/// How many times as much the busiest has with hashing by content as with that by batch.
const CONTENT_BY_BATCH: f64 = 3.0;
/// Throughput by batch, by that by content.
const BATCH_RATE: f64 = 1.2;

/// Of `live workers`.
pub(super) fn workers() -> String {
    format!(
        "Published (Takemasa 2019, Figure 4.7, packets from two network interfaces without a \
         kernel, 20 cores): in proportion to the threads up to {LINEAR_THREADS}, with \
         {N_THREADS} {:.2} million packets a second, of which each thread has {:.2}; memory is \
         what limits",
        PKTS_PER_S / 1e6,
        PKTS_PER_S / 1e6 / f64::from(N_THREADS)
    )
}

/// Of `live dispatch`.
pub(super) fn dispatch() -> String {
    format!(
        "Published (Mansilha 2017, Figures 7 and 8, a content store in memory and on a disk \
         that is emulated): throughput grows as the logarithm of the threads, with a knee where \
         there are more than cores; with {MANSILHA_THREADS}, the busiest has by content (here: \
         prefix) {CONTENT_BY_BATCH} times what it has by batch, and throughput is by batch \
         {BATCH_RATE} times that by content"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_told_with_its_source() {
        assert!(workers().contains("42.49 million") && workers().contains("has 1.06"));
        assert!(dispatch().contains("1.2 times") && dispatch().contains("Figures 7 and 8"));
    }
}
