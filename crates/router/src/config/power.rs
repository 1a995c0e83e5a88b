//! `[power]`: how the power that the router takes follows its traffic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;
use super::faults::Faults;

/// How the power that the router takes follows its traffic. With one worker, the default,
/// there is nothing to govern: a thread without packets sleeps by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Power {
    /// What decides how many of `workers.threads` run. `none`: all of them. `tap`: as many as
    /// the traffic needs, by a forecast of its rate, the time that a packet takes and the
    /// length of the queues (Iqbal 2013, section 6.3). A worker that is not needed sleeps: its
    /// names are handled by the others, and it keeps its tables.
    pub governor: Governor,
}

/// What decides how many workers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Governor {
    /// All run.
    #[default]
    None,
    /// As many as the traffic needs.
    Tap,
}

/// What cannot be governed.
pub(super) fn check(config: &Config, found: &mut Faults) {
    if config.power.governor == Governor::Tap && config.verifies_apart() {
        found.conflict(
            "power.governor",
            "workers that verify Data are divided by what they verify, not by a governor",
            "write \"none\", or remove [[verification]]",
        );
    }
}
