//! How long a loop polls before it blocks: ski rental with a learned price.
//!
//! Polling for as long as a wake-up costs takes at most twice the CPU time of the best
//! choice for each gap (Karlin et al. 1994). It pays only if most gaps are shorter, which
//! is learned from the gaps themselves, those that ended in a wake-up included. The time
//! polled counts twice: while a thread wakes up, more packets come, and one round
//! serves them all.

/// By how much polled time is dearer than that of a wake-up.
const PRICE: i64 = 2;
/// A wake-up's CPU time before any was measured.
const FIRST_WAKE_COST_NS: u64 = 5_000;
/// A measured wake-up outside of these counts as the nearer one.
const WAKE_COST_NS: [u64; 2] = [1_000, 50_000];
/// A new sample's weight in a moving average: one by this.
const SMOOTHING: i64 = 16;
/// A sample moves the cost of a wake-up by one part of this number.
const MEDIAN_STEP: u64 = 32;

#[derive(Clone, Debug)]
pub(super) struct Spinning {
    max_ns: u64,
    wake_cost_ns: u64,
    /// CPU time that polling saves in each gap, moving average.
    saved_ns: i64,
}

impl Spinning {
    pub(super) const fn new(max_ns: u64) -> Self {
        Self {
            max_ns,
            wake_cost_ns: FIRST_WAKE_COST_NS,
            saved_ns: 0,
        }
    }

    pub(super) const fn wake_cost_ns(&self) -> u64 {
        self.wake_cost_ns
    }

    /// How long to poll before blocking.
    pub(super) fn limit_ns(&self) -> u64 {
        match self.saved_ns > 0 {
            true => self.longest_ns(),
            false => 0,
        }
    }

    fn longest_ns(&self) -> u64 {
        self.wake_cost_ns.min(self.max_ns)
    }

    /// Packets came `gap_ns` after the loop had nothing to do.
    pub(super) fn note_gap(&mut self, gap_ns: u64) {
        let spin_ns = self.longest_ns();
        let saved_ns = match gap_ns <= spin_ns {
            true => self.wake_cost_ns as i64 - PRICE * gap_ns as i64,
            false => -PRICE * spin_ns as i64,
        };
        self.saved_ns += (saved_ns - self.saved_ns) / SMOOTHING;
    }

    /// Polling for the time of [`limit_ns`](Self::limit_ns) has brought nothing.
    pub(super) fn note_miss(&mut self) {
        self.note_gap(u64::MAX);
    }

    /// A wake-up took `cpu_ns`. The cost follows the median: what a hypervisor or an
    /// interrupt adds to a few samples does not count.
    pub(super) fn note_wake_cost(&mut self, cpu_ns: u64) {
        let [least, most] = WAKE_COST_NS;
        let step_ns = self.wake_cost_ns / MEDIAN_STEP;
        let cost_ns = match cpu_ns > self.wake_cost_ns {
            true => self.wake_cost_ns.saturating_add(step_ns).min(cpu_ns),
            false => self.wake_cost_ns.saturating_sub(step_ns).max(cpu_ns),
        };
        self.wake_cost_ns = cost_ns.clamp(least, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_gaps_are_polled_through_and_long_ones_are_not() {
        let mut spin = Spinning::new(20_000);
        assert_eq!(spin.limit_ns(), 0);
        for _ in 0..20 {
            spin.note_gap(1_000);
        }
        assert_eq!(spin.limit_ns(), 5_000);
        for _ in 0..40 {
            spin.note_gap(1_000_000);
        }
        assert_eq!(spin.limit_ns(), 0);
    }

    #[test]
    fn polling_lasts_as_long_as_a_wake_up_costs_up_to_its_bound() {
        let mut spin = Spinning::new(20_000);
        for _ in 0..200 {
            spin.note_wake_cost(12_000);
            spin.note_gap(1_000);
        }
        assert!((11_900..=12_000).contains(&spin.limit_ns()));
        for _ in 0..200 {
            spin.note_wake_cost(u64::MAX);
            spin.note_gap(1_000);
        }
        assert_eq!(spin.limit_ns(), 20_000);
        assert!(spin.wake_cost_ns() <= 50_000);
    }

    #[test]
    fn single_long_wake_ups_do_not_count() {
        let mut spin = Spinning::new(20_000);
        for sample in 0..1_000 {
            spin.note_wake_cost(if sample % 4 == 0 { u64::MAX } else { 3_000 });
        }
        assert!((2_900..=3_300).contains(&spin.wake_cost_ns()));
    }

    #[test]
    fn no_bound_no_polling() {
        let mut spin = Spinning::new(0);
        for _ in 0..50 {
            spin.note_gap(0);
        }
        assert_eq!(spin.limit_ns(), 0);
    }
}
