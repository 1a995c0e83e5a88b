//! What Mansilha et al. 2017 tell in numbers: tables and text. Their curves are drawings
//! without numbers, and are told in words.

use super::workload::Kind;

/// Figure 3, in words (section 4.1).
pub(super) const FIGURE_3: &str = "Published (one core of a 1.9 GHz Xeon, NFD 0.3.1): forwarding \
is capped at about 4 Gbit/s, the store alone approaches 10 without reaching it; Seq above Real \
above Unif; fastest where 10 MB fit the processor's cache, even from 1 to 20 GB, and falling \
beyond, where the system pages (32 GB of memory). Points are drawn only";

/// Figure 4, in words (section 4.2).
pub(super) const FIGURE_4: &str = "Published: sleeping is unsatisfactory above 4 Gbit/s with \
either memory; busy waiting is exact up to about 64 with static memory, and saturates at about 4 \
with dynamic memory. Points are drawn only";

/// Root mean square errors of the first level's hit ratio (section 4.3.1).
pub(super) const fn hit_rmse(kind: Kind) -> f64 {
    match kind {
        Kind::Seq => 1e-6,
        Kind::Real => 1.6e-2,
        Kind::Unif => 4e-4,
    }
}

/// A row of Table 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Table4 {
    /// d_L1.lookup, and its asymptotic error, in microseconds.
    pub(super) lookup_us: (f64, f64),
    /// d_L1.insert of a batch, likewise.
    pub(super) insert_us: (f64, f64),
    /// The root mean square error, which has no unit there.
    pub(super) rmse: f64,
}

/// Table 4.
pub(super) const fn table_4(kind: Kind) -> Table4 {
    match kind {
        Kind::Seq => Table4 {
            lookup_us: (6.6, 0.06),
            insert_us: (67.2, 3.63),
            rmse: 0.076,
        },
        Kind::Real => Table4 {
            lookup_us: (7.4, 0.06),
            insert_us: (42.1, 5.31),
            rmse: 0.097,
        },
        Kind::Unif => Table4 {
            lookup_us: (12.1, 0.02),
            insert_us: (37.0, 0.74),
            rmse: 0.007,
        },
    }
}

/// Figure 6, in words (section 4.4).
pub(super) const FIGURE_6_A: &str = "Published: falls with the logarithm of |L2|; at 1 TB still \
close to 4 Gbit/s, as forwarding is; above a store of one level from some 24 GB on, where that \
one's machine pages. Points are drawn only";
/// As [`FIGURE_6_A`].
pub(super) const FIGURE_6_B: &str = "Published: 16 times the rate, from 4 to 64 Gbit/s, gain less \
than a factor of 2, and do not reach a store of one level. Points are drawn only";

/// Figure 7, in words (section 5.1).
pub(super) const FIGURE_7: &str = "Published (6 cores, 12 threads with hyper-threading): above 10 \
Gbit/s with few threads; grows with the logarithm of threads, more with 32 Gbit/s than with 4, \
with a knee where threads exceed cores. Points are drawn only";

/// By how much the most loaded of 16 workers has more under Content than under Batch
/// (section 5.2).
pub(super) const CONTENT_BY_BATCH_LOAD: f64 = 3.0;
/// What Batch gains in throughput over Content (section 5.2).
pub(super) const BATCH_GAIN: f64 = 0.2;

/// The gain of an ideal parallel scheme, at most, as the text has it with its parameters
/// (section 5.5), and by theory (section 5.3).
pub(super) const PARALLEL_GAIN: f64 = 0.1;
/// As [`PARALLEL_GAIN`].
pub(super) const PARALLEL_GAIN_BY_THEORY: f64 = 2.0 / 3.0;

/// Figure 9 (b), in words (section 5.4).
pub(super) const FIGURE_9_B: &str = "Published: two machines alike, the one in the Cloud (8 cores \
of 2 GHz, 112 GB) somewhat faster, also with five times the sizes. Bars are drawn only";
