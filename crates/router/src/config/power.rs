//! `[power]`: how the power that the router takes follows its traffic.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_dispatch::power::governors::GovernorKind;
use tachonym_dispatch::power::servers::Server;

use super::Config;
use super::faults::Faults;

/// How the power that the router takes follows its traffic. A thread without packets sleeps by
/// itself, whatever is set here; `tachonym power` shows what is governed, and why not more.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Power {
    /// What decides how many of `workers.threads` run, and at which frequency. By default
    /// `tap` where more than one worker runs without an SSD level and `[[verification]]`, else
    /// `none` (one worker is the default of `workers.threads`). `none`: all run, and the kernel
    /// chooses frequencies. `tap`: as many as the traffic needs, by a forecast of its rate, the
    /// time that a packet takes and the length of the queues, and frequencies by that length
    /// (Iqbal 2013, section 6.3).
    /// `idle-thread`: one worker more when none is idle, one fewer for each idle one. With
    /// these two, a worker that is not needed sleeps: its names are handled by the others, and
    /// it keeps its tables. Until it wakes, they are of no use: what it has cached, on SSD too,
    /// is requested again. The others govern frequencies alone: `ondemand` and `conservative`
    /// by how busy a worker is; `ladder` like `ondemand`, and it has the kernel choose how deep
    /// idle cores sleep by its governor of that name; `greedy-epi` seeks the frequency at which
    /// a packet takes the least energy. `ladder` and `greedy-epi` change the idle governor of
    /// all cores of the machine while the router runs. Frequencies need cpufreq and
    /// `greedy-epi` needs RAPL: where the machine has none, they stay as they are.
    pub governor: Option<Governor>,
    /// The server whose watts `tachonym power` computes from the load of the router: `e5620`,
    /// `e3-1220` or `9520`, measured by Takemasa 2019 (section 6.3), or a file that
    /// `tachonym power fit` has written.
    pub model: PathBuf,
    /// Where sysfs is mounted. In a container that governs its host, the host's.
    pub sysfs: PathBuf,
    /// A file that keeps what frequencies were before the router, while it governs them. After
    /// the router was killed, the next one sets them back by it.
    pub kept: PathBuf,
}

/// See [`Power::kept`].
pub(crate) const KEPT: &str = "/run/tachonym/cpufreq";

impl Default for Power {
    fn default() -> Self {
        Self {
            governor: None,
            model: "e3-1220".into(),
            sysfs: "/sys".into(),
            kept: KEPT.into(),
        }
    }
}

/// What decides how many workers run, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Governor {
    /// All run; the kernel chooses frequencies.
    None,
    /// By forecast and queue.
    Tap,
    /// Frequencies by how busy a worker is: at once up, step by step down.
    Ondemand,
    /// Frequencies by how busy a worker is, step by step.
    Conservative,
    /// As `ondemand`, and the kernel's idle governor `ladder`.
    Ladder,
    /// Workers by how many are idle.
    IdleThread,
    /// Frequencies by the energy of a packet.
    GreedyEpi,
}

impl Governor {
    /// Its name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tap => "tap",
            Self::Ondemand => "ondemand",
            Self::Conservative => "conservative",
            Self::Ladder => "ladder",
            Self::IdleThread => "idle-thread",
            Self::GreedyEpi => "greedy-epi",
        }
    }

    /// What decides.
    pub(crate) const fn kind(self) -> GovernorKind {
        match self {
            Self::None => GovernorKind::None,
            Self::Tap => GovernorKind::Tap,
            Self::Ondemand => GovernorKind::Ondemand,
            Self::Conservative => GovernorKind::Conservative,
            Self::Ladder => GovernorKind::Ladder,
            Self::IdleThread => GovernorKind::IdleThread,
            Self::GreedyEpi => GovernorKind::GreedyEpi,
        }
    }

    /// Whether it decides how many workers run.
    pub(crate) const fn governs_workers(self) -> bool {
        matches!(self, Self::Tap | Self::IdleThread)
    }
}

impl Config {
    /// The governor that is set, or the default for this number of workers.
    pub(crate) fn governor(&self) -> Governor {
        // Of a large store no part should be lost while there is little traffic.
        let may_sleep = !self.verifies_apart() && self.second_level.volume.is_empty();
        let default = match self.workers.threads > 1 && may_sleep {
            true => Governor::Tap,
            false => Governor::None,
        };
        self.power.governor.unwrap_or(default)
    }
}

impl Power {
    /// The server of the key `model`.
    ///
    /// # Errors
    /// Why the file can't be read or is not one.
    pub(crate) fn server(&self) -> Result<Server, String> {
        server(&self.model)
    }
}

/// A published server, or one in a file.
///
/// # Errors
/// Why the file can't be read or is not one.
pub(crate) fn server(model: &Path) -> Result<Server, String> {
    if let Some(name) = model.to_str().filter(|it| Server::PUBLISHED.contains(it)) {
        return Server::published(name).map_err(|it| it.to_string());
    }
    let text = std::fs::read_to_string(model);
    let text = text.map_err(|it| format!("cannot read {}: {it}", model.display()))?;
    Server::from_toml(&text).map_err(|it| format!("{}: {it}", model.display()))
}

/// What cannot be governed or computed.
pub(super) fn check(config: &Config, found: &mut Faults) {
    if let Err(why) = config.power.server() {
        found.push(
            "power.model",
            why,
            "write e5620, e3-1220 or 9520, or a file that `tachonym power fit` has written",
        );
    }
    if config.governor().governs_workers() && config.verifies_apart() {
        found.conflict(
            "power.governor",
            "workers that verify Data are divided by what they verify, not by a governor",
            "write \"none\" or \"ondemand\", or remove [[verification]]",
        );
    }
}
