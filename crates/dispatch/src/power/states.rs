//! P-states, C-states and the power of a core in them: Iqbal 2013, section 2.4.
//!
//! Equation 2.1 is the dynamic power of a core. The thesis publishes no static power, but its
//! text requires one: section 2.4.3 takes the energy per instruction for a bathtub of the
//! P-states, and by equation 2.1 alone that falls down to the last of them. Here a core's static
//! power is [`STATIC_SHARE`] of what it takes at P0 and follows the square of the voltage.
//! - The share is that of C1 in Table 2.2: a core in C1 has no clock, so what it still takes is
//!   static.
//! - The square is the only whole power of the voltage that makes a bathtub of Table 2.1 that a
//!   search from P0 enters: by the first, P1 takes more energy for the same work than P0.
//!
//! A caller that passes a share of 0 has equation 2.1 alone.

/// Frequency and voltage of a P-state, by those of P0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperatingPoint {
    /// Frequency by that of P0.
    pub frequency: f64,
    /// Voltage by that of P0.
    pub voltage: f64,
}

/// Table 2.1: P0 to P4.
pub const P_STATES: [OperatingPoint; 5] = [
    point(1.0, 1.0),
    point(0.85, 0.96),
    point(0.75, 0.90),
    point(0.65, 0.85),
    point(0.50, 0.80),
];

const fn point(frequency: f64, voltage: f64) -> OperatingPoint {
    OperatingPoint { frequency, voltage }
}

impl OperatingPoint {
    /// Equation 2.1: watts of a core that takes `k_w` watts in P0.
    #[must_use]
    pub fn power_w(self, k_w: f64) -> f64 {
        k_w * self.voltage * self.voltage * self.frequency
    }

    /// Watts of a core that takes `core_w` at P0, `static_share` of it without any work:
    /// equation 2.1, and static power by the square of the voltage.
    #[must_use]
    pub fn core_power_w(self, core_w: f64, static_share: f64) -> f64 {
        let dynamic_w = self.power_w(core_w * (1.0 - static_share));
        dynamic_w + core_w * static_share * self.voltage * self.voltage
    }
}

/// Static power of a core by its power at P0: what a core without a clock still takes.
pub const STATIC_SHARE: f64 = CState::Light.relative_power();

/// Whether a core works or how deep it sleeps: Table 2.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CState {
    /// C0: it works, or looks for work.
    #[default]
    Active,
    /// C1: light sleep.
    Light,
    /// C2: deep sleep.
    Deep,
}

impl CState {
    /// Response latency of Table 2.2.
    #[must_use]
    pub const fn latency_ns(self) -> u64 {
        match self {
            Self::Active => 0,
            Self::Light => 10_000,
            Self::Deep => 100_000,
        }
    }

    /// Power by that of C0.
    #[must_use]
    pub const fn relative_power(self) -> f64 {
        match self {
            Self::Active => 1.0,
            Self::Light => 0.40,
            Self::Deep => 0.05,
        }
    }

    /// Equation 2.2: the shortest sleep that pays. To enter takes as long as to leave, and
    /// either takes no more power than to work.
    #[must_use]
    pub const fn break_even_ns(self) -> u64 {
        2 * self.latency_ns()
    }
}

/// Equation 2.3: the share of the time that was spent working; 0 of no time.
#[must_use]
pub fn utilization(active_ns: u64, idle_ns: u64) -> f64 {
    active_ns as f64 / (active_ns + idle_ns).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_states_take_less_energy_for_the_same_work() {
        let energy = P_STATES.map(|it| it.power_w(3.0) / it.frequency);
        assert!(energy.windows(2).all(|it| it[1] < it[0]));
        assert!((P_STATES[4].power_w(1.0) - 0.32).abs() < 1e-12);
    }

    #[test]
    fn static_power_makes_a_bathtub_of_the_energy_for_the_same_work() {
        let energy = |share| P_STATES.map(|it| it.core_power_w(2.0, share) / it.frequency);
        let [p0, p1, p2, p3, p4] = energy(STATIC_SHARE);
        assert!(p0 > p1 && p1 > p2 && p2 > p3 && p3 < p4);
        assert!((p0 - 2.0).abs() < 1e-12);
        let without = P_STATES.map(|it| it.power_w(2.0) / it.frequency);
        assert_eq!(energy(0.0), without);
    }

    #[test]
    fn break_even_times_are_the_published_ones() {
        assert_eq!(CState::Light.break_even_ns(), 20_000);
        assert_eq!(CState::Deep.break_even_ns(), 200_000);
        assert!((utilization(3, 1) - 0.75).abs() < 1e-12);
        assert!(utilization(0, 0).abs() < 1e-12);
    }
}
