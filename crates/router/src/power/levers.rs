//! What this machine lets the router govern and measure.

use std::path::Path;

use tachonym_dispatch::power::governors::GovernorKind;
use tachonym_dispatch::power::tap::FrequencyLever;
use tachonym_protocol::{EnergyCounter, PowerLever};

use super::cpufreq::{Cpufreq, WriteError};
use super::cpuidle::Cpuidle;
use super::rapl::Rapl;
use super::sysfs::Folder;

/// Where threads run.
#[derive(Clone, Debug, Default)]
pub(super) struct Cores {
    /// By worker; `None` if it may run on any core.
    pub(super) of_workers: Vec<Option<u32>>,
    /// Of threads that only receive, as far as they are bound.
    pub(super) of_receivers: Vec<u32>,
    /// All that this process may use.
    pub(super) usable: Vec<u32>,
}

/// Where each worker runs, and what governs it.
pub(super) struct Levers {
    cores: Cores,
    /// `None` unless the governor sets frequencies and the machine lets it.
    cpufreq: Option<Cpufreq>,
    /// Held so that it sets the idle governor back at the end.
    _cpuidle: Option<Cpuidle>,
    rapl: Option<Rapl>,
    max_khz: Option<u64>,
    told: Vec<PowerLever>,
}

/// What a governor can't do here, and why.
#[derive(Debug, Default)]
pub(super) struct Missing(pub(super) Vec<String>);

const fn sets_frequencies(kind: GovernorKind) -> bool {
    !matches!(kind, GovernorKind::None)
}

const fn sets_workers(kind: GovernorKind) -> bool {
    matches!(kind, GovernorKind::Tap | GovernorKind::IdleThread)
}

/// The highest frequency at which a core runs now, of a machine without cpufreq.
pub(crate) fn cpuinfo_khz() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let of_cores = text.lines().filter(|line| line.starts_with("cpu MHz"));
    let mhz = of_cores.filter_map(|line| line.split_once(':')?.1.trim().parse::<f64>().ok());
    let highest = mhz.fold(0.0, f64::max);
    (highest > 0.0).then_some((1e3 * highest) as u64)
}

impl Levers {
    /// Takes what `kind` needs of the machine, for threads on these cores. `kept` is for
    /// [`Cpufreq::open`].
    pub(super) fn take(
        sys: &Folder,
        kept: &Path,
        kind: GovernorKind,
        cores: Cores,
    ) -> (Self, Missing) {
        let mut missing = Missing::default();
        let mut told = Vec::new();
        let mut tell = |name: &str, is_used: bool, detail: String| {
            told.push(PowerLever {
                name: name.to_owned(),
                is_used,
                detail,
            });
        };
        let n_workers = cores.of_workers.len();
        match (sets_workers(kind), n_workers) {
            (true, 1) => tell("workers", false, "one worker always runs".to_owned()),
            (true, n) => tell("workers", true, format!("1 to {n} of {n} run")),
            (false, _) => tell("workers", false, "all run with this governor".to_owned()),
        }
        let bound: Vec<u32> = match cores.of_workers.iter().all(Option::is_some) {
            true => cores.of_workers.iter().flatten().copied().collect(),
            false => cores.usable.clone(),
        };
        let cpufreq = Cpufreq::open(sys, kept, &bound);
        let max_khz = cpufreq
            .as_ref()
            .ok()
            .map(Cpufreq::max_khz)
            .or_else(cpuinfo_khz);
        let taken = cpufreq.and_then(|mut cpufreq| {
            let detail = cpufreq.describe();
            if !sets_frequencies(kind) {
                return Ok((None, format!("{detail}; not used by this governor")));
            }
            cpufreq.claim()?;
            Ok((Some(cpufreq), detail))
        });
        let cpufreq = match taken {
            Ok((cpufreq, detail)) => {
                tell("cpufreq", cpufreq.is_some(), detail);
                cpufreq
            }
            Err(why) => {
                if sets_frequencies(kind) {
                    missing.0.push(format!("no frequency is set: {why}"));
                }
                tell("cpufreq", false, why);
                None
            }
        };
        let rapl = match Rapl::open(sys) {
            Ok(rapl) => {
                tell("rapl", true, rapl.describe());
                Some(rapl)
            }
            Err(why) => {
                if kind == GovernorKind::GreedyEpi {
                    let what = "the energy of a packet is unknown, so frequencies stay high";
                    missing.0.push(format!("{what}: {why}"));
                }
                tell("rapl", false, why);
                None
            }
        };
        // It is the whole machine's, so it is changed only for a governor that can govern.
        let sets_idle = match kind {
            GovernorKind::GreedyEpi => cpufreq.is_some() && rapl.is_some(),
            kind => kind == GovernorKind::Ladder,
        };
        let taken = Cpuidle::open(sys).and_then(|mut cpuidle| {
            if !sets_idle {
                return Ok((None, cpuidle.describe()));
            }
            cpuidle.choose_ladder()?;
            let detail = cpuidle.describe();
            Ok((Some(cpuidle), detail))
        });
        let cpuidle = match taken {
            Ok((cpuidle, detail)) => {
                tell("cpuidle", cpuidle.is_some(), detail);
                cpuidle
            }
            Err(why) => {
                if sets_idle {
                    missing.0.push(format!("no idle governor is chosen: {why}"));
                }
                tell("cpuidle", false, why);
                None
            }
        };
        let levers = Self {
            cores,
            cpufreq,
            _cpuidle: cpuidle,
            rapl,
            max_khz,
            told,
        };
        (levers, missing)
    }

    /// Which frequencies can be set.
    pub(super) fn frequency(&self) -> FrequencyLever {
        match &self.cpufreq {
            None => FrequencyLever::None,
            Some(cpufreq) if cpufreq.is_per_cpu(&self.cores.of_workers) => {
                FrequencyLever::PerWorker
            }
            Some(_) => FrequencyLever::Global,
        }
    }

    /// Sets the P-state of each worker. After a failed write all cores get back what they had
    /// before the router, as far as they can be reached, and frequencies are left alone.
    ///
    /// # Errors
    /// If a write fails.
    pub(super) fn set_frequencies(&mut self, p_states: &[u8]) -> Result<(), WriteError> {
        let Some(cpufreq) = &mut self.cpufreq else {
            return Ok(());
        };
        let of_workers = self.cores.of_workers.iter().copied();
        let of_workers = of_workers.zip(p_states.iter().copied());
        // Threads that only receive are never slowed down.
        let of_receivers = self.cores.of_receivers.iter().map(|&cpu| (Some(cpu), 0));
        let by_cpu = of_workers.chain(of_receivers);
        let outcome = cpufreq.set(&by_cpu.collect::<Vec<_>>());
        if let Err(error) = &outcome {
            self.cpufreq = None;
            let lever = self.told.iter_mut().find(|it| it.name == "cpufreq");
            if let Some(lever) = lever {
                lever.is_used = false;
                lever.detail = format!("lost: {error}");
            }
        }
        outcome
    }

    /// The speed of a worker's core by the highest, as set.
    pub(super) fn relative_frequency(&self, worker: usize) -> f64 {
        let cpufreq = self.cpufreq.as_ref();
        cpufreq.map_or(1.0, |it| it.relative(self.cores.of_workers[worker]))
    }

    /// The frequency that a worker's core was given.
    pub(super) fn khz(&self, worker: usize) -> Option<u64> {
        let cpufreq = self.cpufreq.as_ref()?;
        Some(cpufreq.khz(self.cores.of_workers[worker]))
    }

    /// The highest frequency, if known.
    pub(super) const fn max_khz(&self) -> Option<u64> {
        self.max_khz
    }

    /// Reads the energy of all processors since the start; 0 without counters.
    pub(super) fn read_energy_uj(&mut self) -> u64 {
        self.rapl.as_mut().map_or(0, |rapl| {
            rapl.read();
            rapl.all_uj()
        })
    }

    /// Each energy counter.
    pub(super) fn energy(&mut self) -> Vec<EnergyCounter> {
        let Some(rapl) = &mut self.rapl else {
            return Vec::new();
        };
        rapl.read();
        let counters = rapl.used_uj().take(EnergyCounter::MAX);
        counters
            .map(|(name, used_uj)| EnergyCounter {
                name: name.to_owned(),
                used_uj,
            })
            .collect()
    }

    /// Each lever, and the reason if it is not in use.
    pub(super) fn told(&self) -> &[PowerLever] {
        &self.told
    }
}
