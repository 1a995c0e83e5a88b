//! Experiments of this project.

mod lookup;
pub mod rib;

use tachonym_bench::Experiment;

/// All of them, in the order of the document.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[lookup::EXPERIMENTS];
