//! Experiments of Takemasa 2019, and Takemasa et al. 2019 (Journal of Information Processing).

use tachonym_bench::Experiment;

/// All of them, in the order of the document.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[];
