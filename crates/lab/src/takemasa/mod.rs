//! Experiments of Takemasa 2019, and Takemasa et al. 2019 (Journal of Information Processing).

mod bottleneck;
mod bottleneck_counters;
mod bottleneck_published;
pub(crate) mod cache;
mod fib_model;

use tachonym_bench::Experiment;

/// All of them, in the order of the document.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[
    bottleneck::EXPERIMENTS,
    cache::dependent_accesses::EXPERIMENTS,
    cache::section_5_1_2::EXPERIMENTS,
    cache::false_positives::EXPERIMENTS,
    cache::figure_5_4::EXPERIMENTS,
    cache::figure_5_5::EXPERIMENTS,
    cache::figure_5_6::EXPERIMENTS,
    cache::table_5_1::EXPERIMENTS,
    cache::table_5_2::EXPERIMENTS,
    cache::figure_5_7::EXPERIMENTS,
    cache::figure_5_8::EXPERIMENTS,
    fib_model::EXPERIMENTS,
];
/// Packets a second with SHTL (Figure 4.7).
pub(crate) const PKTS_PER_S: f64 = 42.49e6;
/// Threads of that: inferred from two on each of 20 cores; the thesis states no number.
pub(crate) const N_THREADS: u16 = 40;
