//! Experiments of Iqbal 2013, chapters 3 to 6: packet schedulers on simulated cores, and
//! their power.
//!
//! The schedulers are those of the crate `dispatch`, which a router runs; cores and traffic
//! are those of the crate `sim`. LAPS comes as a router runs it by default (what moves evens
//! loads out and keeps its packets' order, and a table of buckets divides names), with
//! linear hashing, and as published.

mod adaptive_hashing;
mod cost;
mod figure_4_12;
mod figure_4_2;
mod figure_4_3;
mod figure_4_6;
mod figure_4_9;
mod figure_5_10;
mod figure_5_6;
mod figure_5_7;
mod holt_winters;
mod power;
mod simulation;
mod table_5_1;
mod traces;

use tachonym_bench::Experiment;

/// All of them, in the order of the document.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[
    adaptive_hashing::EXPERIMENTS,
    holt_winters::EXPERIMENTS,
    figure_4_2::EXPERIMENTS,
    figure_4_3::EXPERIMENTS,
    figure_4_6::EXPERIMENTS,
    figure_4_9::EXPERIMENTS,
    figure_4_12::EXPERIMENTS,
    cost::EXPERIMENTS,
    figure_5_6::EXPERIMENTS,
    figure_5_7::EXPERIMENTS,
    figure_5_10::EXPERIMENTS,
    table_5_1::EXPERIMENTS,
    power::EXPERIMENTS[0],
    power::EXPERIMENTS[1],
    power::EXPERIMENTS[2],
    power::EXPERIMENTS[3],
    power::EXPERIMENTS[4],
    power::EXPERIMENTS[5],
];
