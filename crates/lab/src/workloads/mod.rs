//! What experiments ask for: popularity of names, and traces of real traffic.

pub(crate) mod capture;
pub mod names;
pub mod trace;
pub mod zipf;
