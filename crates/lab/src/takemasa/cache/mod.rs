//! Cache admission and eviction: Takemasa 2019, chapter 5, and Takemasa et al. 2019 (JIP).
//!
//! [`simulate`] is a content store of names without Data that runs the router's policies;
//! [`workload`] and [`sources`] draw what is asked for, and [`grid`] runs policies over
//! workloads and sizes. Each other file is an experiment.

mod blocks;
mod cycles;
mod grid;
mod plain;
pub(super) mod published;
pub(crate) mod simulate;
mod sources;
mod traced;
mod web_bed;
mod workload;

pub(crate) mod change;
pub(crate) mod dependent_accesses;
pub(crate) mod false_positives;
pub(crate) mod figure_5_4;
pub(crate) mod figure_5_5;
pub(crate) mod figure_5_6;
pub(crate) mod figure_5_7;
pub(crate) mod figure_5_8;
pub(crate) mod k_lru;
pub(crate) mod lru_local;
pub(crate) mod rates;
pub(crate) mod section_5_1_2;
pub(crate) mod speed;
pub(crate) mod table_5_1;
pub(crate) mod table_5_2;
pub(crate) mod tuned;
pub(crate) mod validate;

use tachonym_bench::{Param, ParamKind};

/// The parameter of the policies that an experiment compares.
const fn policies(defaults: [&'static str; 3]) -> Param {
    Param::new(
        "policies",
        "eviction policies, each alone or after an admission, as in tinylfu/random; settings \
         follow a colon: filter:THRESHOLD:HISTORY_BY_CACHE, k-lru:K",
        ParamKind::Text,
        defaults,
    )
}
