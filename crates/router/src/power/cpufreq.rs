//! Frequencies of cores, by the kernel's cpufreq.
//!
//! Each policy is a group of cores with one frequency. Where its governor is `userspace`, the
//! router sets the frequency; with any other it sets the highest one that is allowed, which
//! `intel_pstate` and `amd-pstate` know, too. Dropped, it sets all as they were. What they were
//! is kept in a file meanwhile, locked, so that a router that was killed leaves no slow machine
//! behind: the next one sets all back, whatever it governs itself.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tachonym_dispatch::power::states::P_STATES;

use super::sysfs::Folder;

const MAX_FREQ: &str = "scaling_max_freq";
const SETSPEED: &str = "scaling_setspeed";

/// Most that is read of the file that keeps what was before: a line for each policy.
const MAX_KEPT_BYTES: u64 = 1 << 20;

/// Why a frequency could not be set.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", .path.display())]
pub(crate) struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// Cores with one frequency.
#[derive(Debug)]
struct Policy {
    number: u32,
    folder: Folder,
    cpus: Vec<u32>,
    /// The file that sets the frequency, and what it held before.
    file: &'static str,
    before: String,
    /// By P-state, the highest first.
    khz: Vec<u64>,
    p_state: u8,
    is_touched: bool,
}

/// The frequencies of all cores that the router may use.
#[derive(Debug)]
pub(crate) struct Cpufreq {
    policies: Vec<Policy>,
    driver: String,
    /// Where what the files held before is kept, and this file from the first write on.
    kept: PathBuf,
    locked: Option<File>,
}

impl Cpufreq {
    /// Those of `cpus`, after what a router that was killed has left in `kept` is set back.
    ///
    /// # Errors
    /// Why none can be set, in words for an operator.
    pub(crate) fn open(sys: &Folder, kept: &Path, cpus: &[u32]) -> Result<Self, String> {
        let root = sys.folder("devices/system/cpu/cpufreq");
        let policies = root.numbered("policy");
        if policies.is_empty() {
            return Err(format!(
                "{} has no policy: the kernel has no cpufreq driver for this processor, as on \
                 most virtual machines",
                root.path().display()
            ));
        }
        put_back(&root, kept);
        let mut driver = String::new();
        let mut taken = Vec::new();
        for (number, folder) in policies {
            // A policy of cores that are off can't be read, and is none of these.
            let of_policy = folder.text("affected_cpus").unwrap_or_default();
            let of_policy = of_policy.split_whitespace();
            let of_policy: Vec<u32> = of_policy.filter_map(|it| it.parse().ok()).collect();
            if !cpus.iter().any(|cpu| of_policy.contains(cpu)) {
                continue;
            }
            driver = folder.text("scaling_driver").unwrap_or_default();
            let policy = Policy::open(number, folder, of_policy);
            taken.push(policy.map_err(|it| it.to_string())?);
        }
        if taken.is_empty() {
            return Err("no cpufreq policy has the cores on which the workers run".to_owned());
        }
        Ok(Self {
            policies: taken,
            driver,
            kept: kept.to_owned(),
            locked: None,
        })
    }

    /// Sets all to the highest, so that what cannot be written is known before it is needed.
    ///
    /// # Errors
    /// Why it can't be written, in words for an operator.
    pub(crate) fn claim(&mut self) -> Result<(), String> {
        let locked = keep(&self.kept, &self.policies).map_err(|it| {
            let kept = self.kept.display();
            format!("cannot write {kept}, without which frequencies could not be set back: {it}")
        })?;
        self.locked = Some(locked);
        for policy in &mut self.policies {
            policy.set(0).map_err(|it| {
                format!("{it}; run the router as root, or give it write access to this file")
            })?;
        }
        Ok(())
    }

    /// P-states with a frequency of their own, the fastest first: a processor may have fewer
    /// frequencies than there are P-states.
    pub(crate) fn p_states(&self) -> Vec<u8> {
        let khz = &self.policies[0].khz;
        let is_new = |&idx: &usize| idx == 0 || khz[idx] != khz[idx - 1];
        (0..khz.len()).filter(is_new).map(|idx| idx as u8).collect()
    }

    /// The highest frequency of any.
    pub(crate) fn max_khz(&self) -> u64 {
        self.policies.iter().map(|it| it.khz[0]).max().unwrap_or(0)
    }

    /// Whether each of these workers has a core and a policy of its own.
    pub(crate) fn is_per_cpu(&self, workers: &[Option<u32>]) -> bool {
        self.policies.iter().all(|policy| {
            let here = |cpu: &&Option<u32>| cpu.is_none_or(|cpu| policy.cpus.contains(&cpu));
            workers.iter().filter(here).count() <= 1
        })
    }

    /// Which driver, and how many groups of cores.
    pub(crate) fn describe(&self) -> String {
        let n = self.policies.len();
        let file = self.policies[0].file;
        format!("driver {}, {n} policies, by {file}", self.driver)
    }

    /// Sets the frequencies for workers that run on these cores (none: on any) in these
    /// P-states; of several workers on a policy the fastest counts.
    ///
    /// # Errors
    /// If a write fails. The others are tried nevertheless.
    pub(crate) fn set(&mut self, workers: &[(Option<u32>, u8)]) -> Result<(), WriteError> {
        let mut outcome = Ok(());
        for policy in &mut self.policies {
            let here =
                |&&(cpu, _): &&(Option<u32>, u8)| cpu.is_none_or(|cpu| policy.cpus.contains(&cpu));
            let fastest = workers.iter().filter(here).map(|&(_, p_state)| p_state);
            if let Some(p_state) = fastest.min()
                && p_state != policy.p_state
            {
                outcome = outcome.and(policy.set(p_state));
            }
        }
        outcome
    }

    /// The frequency that a worker on this core (none: on any) has been given, in kHz.
    pub(crate) fn khz(&self, cpu: Option<u32>) -> u64 {
        let here = |policy: &&Policy| cpu.is_none_or(|cpu| policy.cpus.contains(&cpu));
        let khz = |policy: &Policy| policy.khz[usize::from(policy.p_state)];
        self.policies
            .iter()
            .filter(here)
            .map(khz)
            .max()
            .unwrap_or(0)
    }

    /// The speed of that worker by the highest.
    pub(crate) fn relative(&self, cpu: Option<u32>) -> f64 {
        let here = |policy: &&Policy| cpu.is_none_or(|cpu| policy.cpus.contains(&cpu));
        let relative =
            |policy: &Policy| policy.khz[usize::from(policy.p_state)] as f64 / policy.khz[0] as f64;
        let all = self.policies.iter().filter(here).map(relative);
        all.fold(0.0, f64::max)
    }
}

impl Drop for Cpufreq {
    fn drop(&mut self) {
        let touched = self.policies.iter().filter(|it| it.is_touched);
        // A policy may have vanished.
        let restored: Vec<_> = touched
            .map(|it| it.folder.write(it.file, &it.before))
            .collect();
        if self.locked.is_some() && restored.iter().all(Result::is_ok) {
            let _ = std::fs::remove_file(&self.kept);
        }
    }
}

/// Writes what the files of policies held before into a file that is locked as long as it is
/// open.
fn keep(kept: &Path, policies: &[Policy]) -> io::Result<File> {
    if let Some(folder) = kept.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let options = File::options().write(true).create(true).to_owned();
    let mut file = options.open(kept)?;
    file.try_lock().map_err(|_| {
        io::Error::other("another process governs frequencies and has locked this file")
    })?;
    file.set_len(0)?;
    let lines = policies.iter().map(|policy| {
        let Policy {
            number,
            file,
            before,
            ..
        } = policy;
        format!("{number} {file} {before}\n")
    });
    file.write_all(lines.collect::<String>().as_bytes())?;
    Ok(file)
}

/// Sets back what [`keep`] has written, if the process that wrote it is gone. What can't be
/// written stays kept.
fn put_back(root: &Folder, kept: &Path) {
    let Ok(file) = File::open(kept) else {
        return;
    };
    if file.try_lock().is_err() {
        return;
    }
    let mut text = String::new();
    if file.take(MAX_KEPT_BYTES).read_to_string(&mut text).is_err() {
        return;
    }
    let mut is_back = true;
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        if let &[number, file @ (MAX_FREQ | SETSPEED), before] = &words[..]
            && number.parse::<u32>().is_ok()
        {
            let policy = root.folder(&format!("policy{number}"));
            is_back &= policy.write(file, before).is_ok();
        }
    }
    if is_back {
        let _ = std::fs::remove_file(kept);
    }
}

impl Policy {
    fn open(number: u32, folder: Folder, cpus: Vec<u32>) -> io::Result<Self> {
        // Not more and not less than an operator allows.
        let max_khz = folder.number(MAX_FREQ)?;
        let least = folder.number("cpuinfo_min_freq")?;
        let min_khz = folder
            .number("scaling_min_freq")
            .unwrap_or(least)
            .max(least);
        if min_khz == 0 || min_khz > max_khz {
            let what = format!(
                "{} has frequencies from {min_khz} to {max_khz} kHz",
                folder.path().display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let file = match folder.text("scaling_governor")?.as_str() {
            "userspace" => SETSPEED,
            _ => MAX_FREQ,
        };
        let available = folder.text("scaling_available_frequencies");
        let available = available.unwrap_or_default();
        let available: Vec<u64> = available
            .split_whitespace()
            .filter_map(|it| it.parse().ok())
            .filter(|khz| (min_khz..=max_khz).contains(khz))
            .collect();
        let before = folder.text(file)?;
        Ok(Self {
            number,
            khz: frequencies(min_khz, max_khz, &available),
            before,
            folder,
            cpus,
            file,
            p_state: 0,
            is_touched: false,
        })
    }

    fn set(&mut self, p_state: u8) -> Result<(), WriteError> {
        let khz = self.khz[usize::from(p_state)];
        let written = self.folder.write(self.file, &khz.to_string());
        written.map_err(|source| WriteError {
            path: self.folder.path().join(self.file),
            source,
        })?;
        self.p_state = p_state;
        self.is_touched = true;
        Ok(())
    }
}

/// The frequencies of Table 2.1's P-states (Iqbal 2013) on this processor: shares of the
/// highest, and of those that it has, the nearest that is not lower.
fn frequencies(min_khz: u64, max_khz: u64, available: &[u64]) -> Vec<u64> {
    let of = |share: f64| {
        let wanted = ((max_khz as f64 * share).round() as u64).max(min_khz);
        let nearest = available.iter().copied().filter(|&khz| khz >= wanted).min();
        nearest.unwrap_or(wanted)
    };
    P_STATES.iter().map(|it| of(it.frequency)).collect()
}
