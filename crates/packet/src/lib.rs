//! NDN Packet Format 0.3 and NDNLPv2 as checked views and owned values.
#![forbid(unsafe_code)]

pub mod time;

pub use time::MonoNs;
