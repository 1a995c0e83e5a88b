//! System calls that no safe crate offers: another process's CPU clock, and the
//! batches of datagrams that the faces use too.
//!
//! Owns every `unsafe` block of this crate.

use std::io;

pub(crate) use tachonym_face::sys::{
    MAX_SEGMENTS, MAX_SEND_BYTES, RecvBatch, SendBatch, SendItem, enable_udp_gro, receive_drops,
};

/// CPU time, user and system, that process `pid` has used since its start,
/// in nanoseconds: every thread, also those that have ended.
///
/// # Errors
/// `NotFound` if there is no such process, else what the kernel reports.
pub(crate) fn process_cpu_ns(pid: u32) -> io::Result<u64> {
    let pid =
        libc::pid_t::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is a live `clockid_t` for the call to fill.
    let error = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if error != 0 {
        return Err(match error {
            libc::ESRCH => io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no process {pid}"),
            ),
            other => io::Error::from_raw_os_error(other),
        });
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live `timespec` for the call to fill.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_cpu_clock_advances_and_an_absent_process_is_an_error() {
        let before_ns = process_cpu_ns(std::process::id()).expect("this process");
        let mut x = 1_u64;
        while process_cpu_ns(std::process::id()).expect("this process") < before_ns + 1_000_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let absent = process_cpu_ns(u32::MAX / 2 - 1).expect_err("pids end far below");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }
}
