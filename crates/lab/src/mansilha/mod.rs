//! Experiments of Mansilha et al. 2017: a content store of two levels.
//!
//! All of them ask a store through the trait [`store::Hcs`]. Stores of one level are the
//! router's own tables ([`dram`]) and its whole engine ([`forwarder`]). Stores of two levels
//! are made in [`recipe`], so that every curve can be measured with each: the paper's serial
//! algorithm with its emulated L2 ([`emulated`]), and the router's own two levels
//! ([`two_levels`]) on an emulated device or a disk.

mod bed;
mod catalogue;
mod disk;
mod division;
pub(crate) mod dram;
mod emulated;
mod figure2;
mod figure3;
mod figure4;
mod figure5;
mod figure6;
mod figure8a;
mod figure9a;
mod fit;
mod forwarder;
mod made;
mod model;
mod paced;
mod packets;
mod published;
mod recipe;
mod store;
mod threads;
mod two_levels;
mod workload;

use tachonym_bench::Experiment;

/// All of them, in the order of the document.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[
    figure2::EXPERIMENTS,
    figure3::EXPERIMENTS,
    figure4::EXPERIMENTS,
    figure5::EXPERIMENTS,
    figure6::EXPERIMENTS,
    threads::FIGURE_7,
    figure8a::EXPERIMENTS,
    threads::FIGURE_8B,
    figure9a::EXPERIMENTS,
    threads::FIGURE_9B,
    disk::EXPERIMENTS,
];
