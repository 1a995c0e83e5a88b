//! The processor's own clock, read where a system call would cost more than
//! what is measured.
//!
//! On x86-64 the time-stamp counter, which counts at one rate whatever the
//! core's frequency is; elsewhere the kernel's monotonic clock in nanoseconds.

/// What [`now_ticks`] counts.
#[cfg(target_arch = "x86_64")]
pub(crate) const TICK: &str = "TSC cycle";
/// What [`now_ticks`] counts.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const TICK: &str = "nanosecond";

/// The time in ticks of some length. All that comes before in the program has
/// been executed, loads included; what comes after may have begun.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn now_ticks() -> u64 {
    let mut aux = 0;
    // SAFETY: every x86-64 processor that runs Linux in this century has
    // `rdtscp`, and `aux` is a live `u32` for it to fill.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut aux) }
}

/// The time in ticks of some length.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn now_ticks() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_forward() {
        let begun = now_ticks();
        let mut x = 1_u64;
        for _ in 0..1_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(now_ticks() > begun);
    }
}
