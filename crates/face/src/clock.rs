//! The clock that faces run on: `CLOCK_MONOTONIC`.
//!
//! Only the edges of the face system read it, once a poll and once a flush;
//! the state machines of the link service are told the time.

use rustix::time::{ClockId, clock_gettime};
use tachonym_packet::MonoNs;

/// The time on `CLOCK_MONOTONIC`, the origin that every [`MonoNs`] of this
/// crate counts from.
#[must_use]
pub fn monotonic_now() -> MonoNs {
    let now = clock_gettime(ClockId::Monotonic);
    let secs = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    MonoNs(secs.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// CPU time of the calling thread in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back() {
        let earlier = monotonic_now();
        let later = monotonic_now();
        assert!(earlier > MonoNs::ZERO);
        assert!(later >= earlier);
    }
}
