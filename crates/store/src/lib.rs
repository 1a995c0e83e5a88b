//! The second level of the content store (L2): Data on SSD behind those in DRAM, after
//! Mansilha et al. 2017.
//!
//! The first level is `tachonym_tables::ContentStore`. This crate has what lies behind it,
//! without any input or output of its own but in [`device`].
#![deny(unsafe_code)]

pub mod device;
mod index;
pub mod layout;
