//! Monotonic time as the engine, the tables and the faces see it.
//!
//! The core never reads a clock. Its caller passes a [`MonoNs`]: the router from
//! `CLOCK_MONOTONIC`, the tests from a virtual clock.

use std::ops::Add;
use std::time::Duration;

/// Nanoseconds on a monotonic clock with an arbitrary origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonoNs(pub u64);

impl MonoNs {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// This time plus `ms` milliseconds; saturates at [`MonoNs::NEVER`].
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }

    /// Time from `earlier` until this one; zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for MonoNs {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        let rhs_ns = u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(rhs_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_saturate_at_never() {
        assert_eq!(MonoNs(1) + Duration::MAX, MonoNs::NEVER);
        assert_eq!(MonoNs(1).plus_ms(u64::MAX), MonoNs::NEVER);
        assert_eq!(MonoNs(5).saturating_since(MonoNs(9)), Duration::ZERO);
    }
}
