//! Experiments of chapter 6: the power of a router by its load.
//!
//! The model is that of the crate `dispatch`. Its parameters are the published ones: no
//! server of the thesis and no power meter is here. Samples that a meter would have are drawn
//! (`meter`), or read from a file.

mod case_study;
mod figure_6_1;
mod figure_6_10;
mod figure_6_4;
mod figure_6_5;
mod figure_6_9;
mod here;
mod meter;
mod tables;

use tachonym_bench::{Param, ParamKind};
use tachonym_dispatch::power::servers::Server;

pub(super) use figure_6_1::EXPERIMENTS as FIGURE_6_1;
pub(super) use figure_6_4::EXPERIMENTS as FIGURE_6_4;
pub(super) use figure_6_5::EXPERIMENTS as FIGURE_6_5;
pub(super) use figure_6_9::EXPERIMENTS as FIGURE_6_9;
pub(super) use figure_6_10::EXPERIMENTS as FIGURE_6_10;
pub(super) use tables::EXPERIMENTS as TABLES;

const DOCUMENT: &str = "Takemasa 2019";

const THETA: Param = Param::new(
    "theta",
    "utilization from which a core's frequency rises; the thesis has 0.8 as an instance",
    ParamKind::Number,
    ["0.8"; 3],
);

/// The published servers, each with the place of its parameters.
const SERVERS: [(&str, &str); 3] = [
    ("e5620", "Table 6.1"),
    ("e3-1220", "Table 6.2"),
    ("9520", "Table 6.3"),
];

fn servers() -> anyhow::Result<Vec<(Server, &'static str)>> {
    let read = |(name, place)| Ok((Server::published(name)?, place));
    SERVERS.into_iter().map(read).collect()
}
