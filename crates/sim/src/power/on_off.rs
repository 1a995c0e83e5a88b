//! Energy of cores that are on or in deep sleep, under a scheduler that puts them to sleep.
//!
//! A core goes to sleep once it has done the packets that it has. One that is on takes its full
//! power whether or not it has a packet, and so does one that wakes. There is one frequency.

use tachonym_dispatch::power::states::CState;
use tachonym_dispatch::{WorkerId, WorkerSet};

/// How long each core has slept.
#[derive(Clone, Debug)]
pub struct SleepMeter {
    asleep: WorkerSet,
    /// Since when each core sleeps, if it does.
    since_ns: Vec<u64>,
    slept_ns: u64,
    n_wakes: u64,
}

/// What cores did in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// Nanoseconds of all cores.
    pub total_ns: u64,
    /// Those in deep sleep.
    pub slept_ns: u64,
    /// How often a core woke.
    pub n_wakes: u64,
}

impl SleepMeter {
    /// Cores that are on.
    #[must_use]
    pub fn new(n_cores: usize) -> Self {
        Self {
            asleep: WorkerSet::EMPTY,
            since_ns: vec![0; n_cores],
            slept_ns: 0,
            n_wakes: 0,
        }
    }

    /// Takes over which cores sleep. `idle_at_ns` has when each core has done its packets; a core
    /// that slept is ready `wake_ns` after now.
    pub fn set(&mut self, asleep: WorkerSet, now_ns: u64, wake_ns: u64, idle_at_ns: &mut [u64]) {
        if asleep == self.asleep {
            return;
        }
        for (core, idle_at_ns) in idle_at_ns.iter_mut().enumerate() {
            let worker = WorkerId(core as u16);
            match (self.asleep.contains(worker), asleep.contains(worker)) {
                (false, true) => self.since_ns[core] = now_ns.max(*idle_at_ns),
                // It had packets left: nothing was lost or saved.
                (true, false) if self.since_ns[core] > now_ns => {}
                (true, false) => {
                    self.slept_ns += now_ns - self.since_ns[core];
                    self.n_wakes += 1;
                    *idle_at_ns = now_ns + wake_ns;
                }
                _ => {}
            }
        }
        self.asleep = asleep;
    }

    /// What cores did until now.
    #[must_use]
    pub fn core_time(&self, now_ns: u64) -> CoreTime {
        let sleepers = self.asleep.into_iter();
        let sleeps_ns = sleepers.map(|it| now_ns.saturating_sub(self.since_ns[it.idx()]));
        CoreTime {
            total_ns: now_ns * self.since_ns.len() as u64,
            slept_ns: self.slept_ns + sleeps_ns.sum::<u64>(),
            n_wakes: self.n_wakes,
        }
    }
}

impl CoreTime {
    /// What came since.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            total_ns: self.total_ns - before.total_ns,
            slept_ns: self.slept_ns - before.slept_ns,
            n_wakes: self.n_wakes - before.n_wakes,
        }
    }

    /// Energy in joules of cores that take `core_w` watts each.
    #[must_use]
    pub fn energy_j(&self, core_w: f64) -> f64 {
        let slept_ns = self.slept_ns as f64;
        let on_ns = self.total_ns as f64 - slept_ns;
        core_w * (on_ns + CState::Deep.relative_power() * slept_ns) / 1e9
    }

    /// Cores that were on, of `n_cores`, on average.
    #[must_use]
    pub fn mean_active(&self, n_cores: usize) -> f64 {
        n_cores as f64 * (1.0 - self.slept_ns as f64 / self.total_ns.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_sleeps_once_it_is_done_and_wakes_late() {
        let mut meter = SleepMeter::new(2);
        let mut idle_at_ns = [0, 1_500];
        meter.set(WorkerSet::only(WorkerId(1)), 1_000, 200, &mut idle_at_ns);
        assert_eq!(meter.core_time(1_200).slept_ns, 0);
        assert_eq!(meter.core_time(2_000).slept_ns, 500);
        meter.set(WorkerSet::EMPTY, 2_500, 200, &mut idle_at_ns);
        assert_eq!(idle_at_ns, [0, 2_700]);
        let time = meter.core_time(4_000);
        assert_eq!(
            (time.total_ns, time.slept_ns, time.n_wakes),
            (8_000, 1_000, 1)
        );
        assert!((time.energy_j(1.0) - 7_050e-9).abs() < 1e-15);
        assert!((time.mean_active(2) - 1.75).abs() < 1e-12);
    }

    #[test]
    fn a_core_that_was_not_done_yet_wakes_at_once() {
        let mut meter = SleepMeter::new(1);
        let mut idle_at_ns = [900];
        meter.set(WorkerSet::only(WorkerId(0)), 100, 200, &mut idle_at_ns);
        meter.set(WorkerSet::EMPTY, 500, 200, &mut idle_at_ns);
        assert_eq!(idle_at_ns, [900]);
        assert_eq!(meter.core_time(1_000).slept_ns, 0);
    }
}
