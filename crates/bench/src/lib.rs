//! The skeleton of an experiment.
//!
//! An [`Experiment`] is a value: an id, a title, a source, what it needs, its parameters
//! and a function that returns a [`Record`]. From a record come the Markdown table
//! ([`markdown`]), the drawing ([`plot`]), the JSON file ([`ResultFile`]) and the page of
//! a report ([`report`]). The [`Catalogue`] names every figure, table and equation of the
//! source documents, each with its experiment or the reason why there is none.
//!
//! Experiments share [`turns`] (rounds in rotated order), [`stats`], [`cpu`] (pinning) and
//! [`machine`] (facts about the machine). This crate knows no router and no packet: the
//! experiments are in the crate `lab`.
#![forbid(unsafe_code)]

mod against;
pub mod catalogue;
pub mod cli;
pub mod cpu;
pub mod docs;
mod experiment;
pub mod machine;
pub mod markdown;
mod params;
pub mod plot;
pub mod random;
mod record;
pub mod report;
mod results;
pub mod stats;
pub mod turns;

pub use catalogue::Catalogue;
pub use experiment::{Context, Cost, Experiment, Need, Registry};
pub use params::{Param, ParamKind, Scale, Values};
pub use plot::{Axis, Chart, Line};
pub use record::{Bound, Cell, Column, Kind, Published, Record, Reference, Stated, Table, Verdict};
pub use results::{ResultFile, command_line};
