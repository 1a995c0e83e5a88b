//! Values of Takemasa 2019, chapter 5, which are those of Takemasa et al. 2019 (JIP).

use tachonym_bench::Reference;
use tachonym_policy::model::BlockCycles;

/// The thesis.
const THESIS: &str = "Takemasa 2019";

/// A value that its text or a table states.
pub(super) const fn stated(place: &'static str) -> Reference {
    Reference::stated(THESIS, place)
}

/// A value that follows from what it states.
pub(super) const fn inferred(place: &'static str) -> Reference {
    Reference::inferred(THESIS, place)
}

/// Objects of the web workload, and Data in the cache, of which hit ratios are stated.
pub(super) const N_WEB: u64 = 10_000_000;
/// The cache of these, % of the objects.
pub(super) const WEB_PERCENT: u64 = 1;

/// Hit ratios on the web workload with 10^5 Data (section 5.4.2, of Figure 5.6 (a)).
pub(super) const WEB_HIT_RATIOS: [(&str, f64); 6] = [
    ("fifo", 0.238),
    ("random", 0.241),
    ("lfu-perfect", 0.389),
    ("arc", 0.366),
    ("tinylfu/random", 0.376),
    ("filter/fifo", 0.341),
];

/// Cycles of B2, B12 and B13 (Table 5.2).
pub(in crate::takemasa) fn cycles(policy: &str) -> Option<[f64; 3]> {
    Some(match policy {
        "filter/fifo" => [83.0, 0.0, 28.0],
        "tinylfu/random" => [91.0, 0.0, 282.0],
        "arc" => [173.0, 202.0, 0.0],
        "random" => [0.0, 62.0, 0.0],
        "fifo" => [0.0, 0.0, 0.0],
        _ => return None,
    })
}

/// Cycles of the blocks that are the same with every policy (Table 5.1); 0 for numbers that
/// are not among them.
pub(in crate::takemasa) const fn block(number: u8) -> f64 {
    match number {
        1 => 571.0,
        3 => 148.0,
        4 => 72.0,
        5 => 188.0,
        6 => 413.0,
        7 => 56.0,
        8 => 188.0,
        9 => 73.0,
        10 => 329.0,
        11 => 50.0,
        _ => 0.0,
    }
}

/// The groups of equations 5.1 and 5.2, from the blocks by number, and B2, B12 and B13 of a
/// policy.
pub(super) fn grouped(block: impl Fn(u8) -> f64, [history, evict, admit]: [f64; 3]) -> BlockCycles {
    let sum = |numbers: &[u8]| numbers.iter().map(|&number| block(number)).sum::<f64>();
    BlockCycles {
        always: sum(&[1, 3, 11]) + history,
        hit: block(4),
        miss: sum(&[5, 6, 7, 8, 9]),
        insert: block(10),
        evict,
        admit,
    }
}

/// By how many hundredths fewer cycles Filter takes than each policy, with 10^5 Data (section
/// 5.4.3, of Figure 5.7).
pub(super) const FILTER_SAVES: [(&str, f64); 4] = [
    ("arc", 16.0),
    ("fifo", 11.0),
    ("random", 15.0),
    ("tinylfu/random", 9.0),
];

/// Forwarding rates in Gbit/s (section 5.4.4, of Figure 5.8).
pub(super) const GBPS: [(&str, f64); 3] = [("filter/fifo", 16.1), ("arc", 11.2), ("fifo", 13.9)];
