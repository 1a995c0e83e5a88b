//! Experiments of this project.

mod content_table;
mod distance;
mod lookup;
mod pit_cs;
pub mod rib;

use tachonym_bench::Experiment;

use crate::takemasa::cache;

/// All of them, in the order of the document.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[
    distance::EXPERIMENTS,
    lookup::EXPERIMENTS,
    cache::validate::EXPERIMENTS,
    cache::tuned::EXPERIMENTS,
    cache::change::EXPERIMENTS,
    cache::rates::EXPERIMENTS,
    cache::speed::EXPERIMENTS,
    content_table::EXPERIMENTS,
    pit_cs::EXPERIMENTS,
];
