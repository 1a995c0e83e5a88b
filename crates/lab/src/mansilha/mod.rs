//! Experiments of Mansilha et al. 2017.

use tachonym_bench::Experiment;

use crate::takemasa::cache;

/// All of them, in the order of the document.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[cache::k_lru::EXPERIMENTS];
