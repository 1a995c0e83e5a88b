//! Experiments of Yuan 2015.

mod fib;
mod hash_table;
mod levels;
mod requirements;
mod threads;
mod urls;

use tachonym_bench::Experiment;

/// All of them, in the order of the document.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[
    hash_table::EXPERIMENTS,
    threads::EXPERIMENTS,
    levels::EXPERIMENTS,
    requirements::EXPERIMENTS,
];
