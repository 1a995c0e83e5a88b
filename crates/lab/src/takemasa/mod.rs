//! Experiments of Takemasa 2019, and Takemasa et al. 2019 (Journal of Information Processing).

mod bottleneck;
mod bottleneck_counters;
mod bottleneck_published;
pub(crate) mod cache;
mod fib_model;
mod power;
mod schedules;
mod short_circuit;
mod throughput;

use tachonym_bench::Experiment;

pub(crate) use schedules::{INFERRED_THREADS, PUBLISHED_PKTS_PER_S};

/// All of them in the order of the document, and then those of other documents and of this
/// project that use the same simulator.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[
    bottleneck::EXPERIMENTS,
    throughput::EXPERIMENTS,
    fib_model::EXPERIMENTS,
    schedules::EXPERIMENTS,
    short_circuit::EXPERIMENTS,
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
    cache::k_lru::EXPERIMENTS,
    cache::lru_local::EXPERIMENTS,
    cache::validate::EXPERIMENTS,
    cache::tuned::EXPERIMENTS,
    cache::change::EXPERIMENTS,
    cache::rates::EXPERIMENTS,
    cache::speed::EXPERIMENTS,
    power::TABLES,
    power::FIGURE_6_1,
    power::FIGURE_6_4,
    power::FIGURE_6_5,
    power::FIGURE_6_9,
    power::FIGURE_6_10,
];
