//! Experiments of this project.

mod lookup;

use tachonym_bench::Experiment;

/// All of them, in the order of the document.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[lookup::EXPERIMENTS];
