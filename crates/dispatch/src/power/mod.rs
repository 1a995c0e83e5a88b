//! How many workers run, how fast, and what a load costs in watts.
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
//! | [`on_off`] | cores that are on or asleep, by the resource manager of LAPS |
//! | [`load`] | cycles, bytes and IP packets of an exchange by block |
//! | [`model`] | watts of a server's devices by their load (Takemasa 2019, chapter 6) |
//! | [`fit`] | parameters of that model from measured watts: of one device, or of a server by a table of samples |
//! | [`servers`] | parameters of that model as TOML, and three published servers |

pub mod des;
pub mod fit;
pub mod governors;
pub mod load;
pub mod model;
pub mod on_off;
pub mod predict;
pub mod servers;
pub mod states;
pub mod tap;
