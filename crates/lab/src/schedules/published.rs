//! The figures of Takemasa 2019, section 4.4.

/// Time of a schedule by that of the naive one (Figure 4.5, by the percentages that the
/// text gives).
#[derive(Clone, Copy, Debug)]
pub(super) struct ByNaive {
    /// Of an Interest that misses.
    pub(super) miss: f64,
    /// Of a Data.
    pub(super) data: f64,
}

/// Packets per second with SHTL (Figure 4.7).
pub(crate) const PKTS_PER_S: f64 = 42.49e6;
/// Threads of that, two on a core.
pub(crate) const N_THREADS: u16 = 40;

/// `None` for what is not published.
pub(super) fn by_naive(schedule: &str) -> Option<ByNaive> {
    let bucket_prefetch = 1.0 - 0.1503;
    let pre_hash = bucket_prefetch * (1.0 - 0.0916);
    let (miss, data) = match schedule {
        "naive" => (1.0, 1.0),
        "bucket-prefetch" => (bucket_prefetch, 1.0),
        "pre-hash" => (pre_hash, 1.0),
        "shtl" => (pre_hash * (1.0 - 0.0782), 1.0 - 0.1198),
        _ => return None,
    };
    Some(ByNaive { miss, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_make_the_published_whole() {
        let shtl = by_naive("shtl").expect("it is published");
        assert!((shtl.miss - (1.0 - 0.2885)).abs() < 0.001);
        assert!(by_naive("burst").is_none());
    }
}
