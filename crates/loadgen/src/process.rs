//! What the kernel says about a process and the machine's CPU time.
//!
//! Refuses to guess: what cannot be read is an error or `None`, never zero.
//! CPU time comes from the process's CPU clock, not from
//! `/proc`: see the `sys` module.

use std::fs;
use std::io;

use serde::Serialize;

use crate::sys;

/// A process under measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pid: u32,
}

/// Memory of a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Most resident memory since the process started, in bytes.
    pub peak_rss_bytes: u64,
    /// Threads alive.
    pub n_threads: u64,
}

impl Process {
    /// The process with this id.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn find(pid: u32) -> io::Result<Self> {
        sys::process_cpu_ns(pid)?;
        Ok(Self { pid })
    }

    /// This process.
    #[must_use]
    pub fn own() -> Self {
        Self {
            pid: std::process::id(),
        }
    }

    /// Its id.
    #[must_use]
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// CPU time in nanoseconds since its start: user and system, every
    /// thread, also those that have ended.
    ///
    /// # Errors
    /// `NotFound` once it has ended.
    pub fn cpu_ns(self) -> io::Result<u64> {
        sys::process_cpu_ns(self.pid)
    }

    /// Its memory now.
    ///
    /// # Errors
    /// Once it has ended.
    pub fn memory(self) -> io::Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        parse_status(&status).ok_or_else(|| {
            let message = format!(
                "/proc/{}/status has no VmRSS; the process may have ended",
                self.pid
            );
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    /// Page faults since its start for which something was read from a disk.
    ///
    /// # Errors
    /// Once it has ended.
    pub fn major_faults(self) -> io::Result<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        parse_major_faults(&stat).ok_or_else(|| {
            let message = format!("/proc/{}/stat has no page faults", self.pid);
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    /// The program's name as the kernel knows it.
    #[must_use]
    pub fn name(self) -> Option<String> {
        let comm = fs::read_to_string(format!("/proc/{}/comm", self.pid)).ok()?;
        Some(comm.trim_end().to_owned())
    }
}

/// The twelfth field of proc_pid_stat(5). The second is a name in brackets, in which there
/// may be anything.
fn parse_major_faults(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(9)?.parse().ok()
}

fn parse_status(status: &str) -> Option<Memory> {
    let number = |key: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(key))?;
        line[key.len()..].split_whitespace().next()?.parse().ok()
    };
    Some(Memory {
        rss_bytes: number("VmRSS:")? * 1_024,
        peak_rss_bytes: number("VmHWM:")? * 1_024,
        n_threads: number("Threads:")?,
    })
}

/// CPU time of the whole machine since it started, in nanoseconds with the
/// grain of the kernel's tick (usually 10 ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineCpu {
    /// Time of all cores spent on anything but idling, stolen time excluded.
    pub busy_ns: u64,
    /// Time that the hypervisor gave to other machines.
    pub stolen_ns: u64,
}

impl MachineCpu {
    /// Reads `/proc/stat`.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn read() -> io::Result<Self> {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        parse_machine_cpu(&fs::read_to_string("/proc/stat")?, tick_ns)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/stat has no cpu line"))
    }
}

/// The first line of proc_stat(5): user, nice, system, idle, iowait, irq,
/// softirq, steal; guest time is part of user time.
fn parse_machine_cpu(stat: &str, tick_ns: u64) -> Option<MachineCpu> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let busy: u64 = [0, 1, 2, 5, 6].iter().filter_map(|&i| fields.get(i)).sum();
    Some(MachineCpu {
        busy_ns: busy * tick_ns,
        stolen_ns: fields.get(7)? * tick_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t3\n";
        assert_eq!(
            parse_status(status),
            Some(Memory {
                rss_bytes: 1 << 20,
                peak_rss_bytes: 2 << 20,
                n_threads: 3
            })
        );
        assert_eq!(parse_status("Name:\tkthread\n"), None);
        let own = Process::own().memory().expect("this process lives");
        assert!(own.rss_bytes > 0 && own.peak_rss_bytes >= own.rss_bytes);
    }

    #[test]
    fn major_faults_are_found_behind_any_name() {
        let stat = "7 (a) b 5) S 1 7 7 0 -1 4194560 300 0 42 0 11 3 0 0 20 0 1 0 9";
        assert_eq!(parse_major_faults(stat), Some(42));
        assert_eq!(parse_major_faults("7 (a"), None);
        let own = Process::own();
        own.major_faults().expect("this process lives");
    }

    #[test]
    fn idle_and_stolen_time_are_not_busy() {
        let stat = "cpu  10 20 30 4000 500 6 7 80 9 0\ncpu0 1 2 3\n";
        assert_eq!(
            parse_machine_cpu(stat, 10),
            Some(MachineCpu {
                busy_ns: 730,
                stolen_ns: 800
            })
        );
        assert_eq!(parse_machine_cpu("intr 5\n", 10), None);
        MachineCpu::read().expect("this machine has /proc/stat");
    }

    #[test]
    fn an_absent_process_is_not_found() {
        let error = Process::find(u32::MAX / 2 - 1).expect_err("pids end far below");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(Process::find(1).map(Process::pid).ok(), Some(1));
    }
}
