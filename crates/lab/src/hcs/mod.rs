//! `tachonym-lab hcs`: a content store of two levels.
//!
//! The evaluation of Mansilha et al. 2017, one command for each of its figures.

mod catalogue;
mod dram;
mod emulated;
mod fit;
mod forwarder;
mod model;
mod packets;
mod store;
mod workload;
