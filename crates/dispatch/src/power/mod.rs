//! How many workers run, and how fast.
//!
//! Pure decisions: the time, counts and queue lengths come as arguments. No file, clock or
//! thread is touched here.
//!
//! | module | what |
//! |---|---|
//! | [`states`] | P-states, C-states, and the power of a core in them |
//! | [`des`] | double exponential smoothing, and its training |
//! | [`tap`] | traffic-aware power management (Iqbal 2013, chapter 6) |
//! | [`predict`] | other forecasts, to compare with |
//! | [`governors`] | other governors, and all of them behind one type |

pub mod des;
pub mod governors;
pub mod predict;
pub mod states;
pub mod tap;
