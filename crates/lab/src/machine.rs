//! Facts about the machine that belong beside every figure.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

/// CPU, kernel and memory of this machine.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Model of the first CPU, if the kernel tells.
    pub cpu: Option<String>,
    /// CPUs that this process may use.
    pub n_cpus: usize,
    /// Kernel release.
    pub kernel: String,
    /// Memory in bytes, if the kernel tells.
    pub memory_bytes: Option<u64>,
    /// Mean number of runnable tasks over the last minute.
    pub load_1min: Option<f64>,
}

impl Machine {
    /// Reads the facts.
    #[must_use]
    pub fn read() -> Self {
        let first_field = |path: &str, key: &str, separator: char| -> Option<String> {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(separator)?.1.trim().to_owned())
        };
        let memory = first_field("/proc/meminfo", "MemTotal", ':');
        let load = fs::read_to_string("/proc/loadavg").ok();
        Self {
            cpu: first_field("/proc/cpuinfo", "model name", ':'),
            n_cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            memory_bytes: memory
                .and_then(|kib| kib.split(' ').next()?.parse::<u64>().ok())
                .map(|kib| kib * 1_024),
            load_1min: load.and_then(|load| load.split(' ').next()?.parse().ok()),
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
