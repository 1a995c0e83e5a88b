//! Counters of the kernel and, where there is one, of the processor's performance
//! monitoring unit, for the calling thread.

use std::fs::File;
use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::FromRawFd;

/// A kind of counter and which of it: `perf_event_attr.type` and `.config` of
/// include/uapi/linux/perf_event.h.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) kind: u32,
    pub(crate) config: u64,
}

impl Event {
    /// `PERF_TYPE_HARDWARE`.
    pub(crate) const fn hardware(config: u64) -> Self {
        Self { kind: 0, config }
    }

    /// `PERF_TYPE_HW_CACHE`: read accesses of `cache`.
    pub(crate) const fn reads(cache: u64) -> Self {
        Self {
            kind: 3,
            config: cache,
        }
    }

    /// `PERF_TYPE_HW_CACHE`: read accesses that missed in `cache`.
    pub(crate) const fn read_misses(cache: u64) -> Self {
        const RESULT_MISS: u64 = 1;
        Self {
            kind: 3,
            config: cache | RESULT_MISS << 16,
        }
    }
}

/// `struct perf_event_attr` as of its first version.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

/// `PERF_ATTR_SIZE_VER0`.
const _: () = assert!(size_of::<Attributes>() == 64);

/// Bits of `Attributes::flags`.
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const WITH_TIMES: u64 = 3;

/// A counter of this thread, outside the kernel. It counts while
/// [`switch_on`] says so.
pub(crate) struct Counter(File);

impl Counter {
    /// Opens a counter, which stands still.
    ///
    /// # Errors
    /// What the kernel reports: `NotFound` if this machine has no such counter.
    pub(crate) fn open(event: Event) -> io::Result<Self> {
        let attributes = Attributes {
            kind: event.kind,
            size: size_of::<Attributes>() as u32,
            config: event.config,
            sample_period: 0,
            sample_type: 0,
            read_format: WITH_TIMES,
            flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HV,
            wakeup_events: 0,
            bp_type: 0,
            bp_addr: 0,
        };
        const THIS_THREAD: libc::pid_t = 0;
        const ANY_CPU: libc::c_int = -1;
        const NO_GROUP: libc::c_int = -1;
        const CLOSE_ON_EXEC: libc::c_ulong = 8;
        // SAFETY: `attributes` is live and says its own size, which bounds what the
        // kernel reads.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                THIS_THREAD,
                ANY_CPU,
                NO_GROUP,
                CLOSE_ON_EXEC,
            )
        };
        match libc::c_int::try_from(fd) {
            // SAFETY: the kernel has just made this descriptor, and nobody else has it.
            Ok(fd) if fd >= 0 => Ok(Self(unsafe { File::from_raw_fd(fd) })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Events so far, scaled up if the counter had to share its place; `None` if
    /// it never had it.
    ///
    /// # Errors
    /// What the kernel reports.
    pub(crate) fn read(&mut self) -> io::Result<Option<f64>> {
        let mut bytes = [0; 24];
        self.0.read_exact(&mut bytes)?;
        let word = |i: usize| -> f64 {
            let word = bytes[8 * i..8 * i + 8].try_into();
            u64::from_ne_bytes(word.expect("eight bytes")) as f64
        };
        let (value, enabled_ns, running_ns) = (word(0), word(1), word(2));
        Ok((running_ns > 0.0).then(|| value * enabled_ns / running_ns))
    }
}

/// Lets every [`Counter`] of this process count.
pub(crate) fn switch_on() {
    control(libc::PR_TASK_PERF_EVENTS_ENABLE);
}

/// Stops every [`Counter`] of this process.
pub(crate) fn switch_off() {
    control(libc::PR_TASK_PERF_EVENTS_DISABLE);
}

fn control(what: libc::c_int) {
    // SAFETY: these two requests take no argument and no memory. They cannot fail.
    unsafe {
        libc::prctl(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_counts_only_while_it_is_on() {
        // `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_TASK_CLOCK`: any machine has it.
        let clock = Event { kind: 1, config: 1 };
        let mut counter = match Counter::open(clock) {
            Ok(counter) => counter,
            // A container may forbid even that.
            Err(error) => {
                let kinds = [
                    io::ErrorKind::PermissionDenied,
                    io::ErrorKind::Unsupported,
                    io::ErrorKind::NotFound,
                ];
                assert!(kinds.contains(&error.kind()), "{error}");
                return;
            }
        };
        let spin = || {
            let mut x = 1_u64;
            for _ in 0..1_000_000 {
                x = std::hint::black_box(x.wrapping_mul(3));
            }
        };
        spin();
        assert_eq!(counter.read().expect("it is open"), None);
        switch_on();
        spin();
        switch_off();
        let counted = counter.read().expect("it is open");
        assert!(counted.is_some_and(|counted| counted > 0.0), "{counted:?}");
        spin();
        assert_eq!(counter.read().expect("it is open"), counted);
    }
}
