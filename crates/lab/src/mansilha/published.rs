//! Published values of Mansilha et al. 2017: its tables and text. Its curves are drawings
//! without numbers at their points; notes repeat what the text says of them.

use tachonym_bench::Reference;

use super::workload::Kind;

/// A value of the text or of a table.
pub(super) const fn stated(place: &'static str) -> Reference {
    Reference::stated("Mansilha et al. 2017", place)
}

/// Root mean square errors of L1's hit ratio (section 4.3.1).
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
