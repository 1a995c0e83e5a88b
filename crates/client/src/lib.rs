//! A small NDN consumer and producer library.
#![forbid(unsafe_code)]

pub mod cubic;
pub mod fetcher;
pub mod rtt;
