//! Facts about the machine that belong beside every result.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// CPU, kernel, memory and what the kernel lets an experiment use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the first CPU, if the kernel tells.
    pub cpu: Option<String>,
    /// CPUs that this process may use.
    pub n_cpus: usize,
    /// Kernel release.
    pub kernel: String,
    /// Memory that this process may use in bytes, control groups considered.
    pub memory_bytes: Option<u64>,
    /// Mean number of runnable tasks over the last minute.
    pub load_1min: Option<f64>,
    /// Whether performance counters of the processor can be read.
    pub has_pmu: bool,
    /// Whether io_uring is there.
    pub has_io_uring: bool,
    /// Reserved huge pages of 2 MiB and 1 GiB.
    pub n_huge_pages: [u64; 2],
    /// Frequency governor of the first CPU, if the kernel tells.
    pub governor: Option<String>,
}

fn read_number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl Machine {
    /// Reads the facts.
    #[must_use]
    pub fn read() -> Self {
        let first_field = |path: &str, key: &str| -> Option<String> {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let total = first_field("/proc/meminfo", "MemTotal")
            .and_then(|kib| kib.split(' ').next()?.parse::<u64>().ok())
            .map(|kib| kib * 1_024);
        let of_group = read_number("/sys/fs/cgroup/memory.max");
        let load = fs::read_to_string("/proc/loadavg").ok();
        let huge_pages = |kib: &str| {
            let path = format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages");
            read_number(&path).unwrap_or(0)
        };
        let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        let has_pmu = ["cpu", "cpu_core", "armv8_pmuv3_0"].iter().any(|pmu| {
            Path::new("/sys/bus/event_source/devices")
                .join(pmu)
                .exists()
        });
        // 2: no process may; absent on kernels that always allow it.
        let uring_disabled = read_number("/proc/sys/kernel/io_uring_disabled").unwrap_or(0);
        Self {
            cpu: first_field("/proc/cpuinfo", "model name"),
            n_cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            memory_bytes: [total, of_group].into_iter().flatten().min(),
            load_1min: load.and_then(|load| load.split(' ').next()?.parse().ok()),
            has_pmu,
            has_io_uring: uring_disabled < 2,
            n_huge_pages: [huge_pages("2048"), huge_pages("1048576")],
            governor: fs::read_to_string(governor)
                .ok()
                .map(|text| text.trim().to_owned()),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} CPUs, Linux {}",
            self.cpu.as_deref().unwrap_or("unknown CPU"),
            self.n_cpus,
            self.kernel
        )
    }
}

/// The commit of the source tree around the current folder; `None` outside a git
/// repository. A `+` follows where the program may be of another one: files differ from the
/// commit, or the program is older than it.
#[must_use]
pub fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let committed_s: u64 = git(&["log", "-1", "--format=%ct"])?.parse().ok()?;
    let built_at = std::env::current_exe().and_then(|path| path.metadata()?.modified());
    let is_older = built_at.map_or(true, |at| {
        at < SystemTime::UNIX_EPOCH + Duration::from_secs(committed_s)
    });
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let mark = if is_older || !changes.is_empty() {
        "+"
    } else {
        ""
    };
    Some(format!("{commit}{mark}"))
}

/// The first line that `binary --version` prints, on either stream.
///
/// # Errors
/// If the binary cannot be started or prints nothing.
pub fn version_of(binary: &Path) -> std::io::Result<String> {
    let output = Command::new(binary).arg("--version").output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.map(str::to_owned).ok_or_else(|| {
        let message = format!("{} --version printed nothing", binary.display());
        std::io::Error::new(std::io::ErrorKind::InvalidData, message)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_memory() {
        let machine = Machine::read();
        assert!(machine.n_cpus >= 1 && !machine.kernel.is_empty());
        assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn the_first_line_on_either_stream_is_the_version() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = |name: &str, body: &str| {
            let path = folder.path().join(name);
            let text = format!("#!/bin/sh\n{body}\n");
            fs::write(&path, text).expect("the folder is writable");
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&path, executable).expect("the file is ours");
            path
        };
        let speaks = script("speaks", "echo; echo '1.2 (abc)' >&2; echo more >&2");
        assert_eq!(version_of(&speaks).ok().as_deref(), Some("1.2 (abc)"));
        version_of(&script("silent", "true")).expect_err("it prints nothing");
        version_of(&folder.path().join("absent")).expect_err("it is not there");
    }
}
