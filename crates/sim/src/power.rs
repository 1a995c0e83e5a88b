//! Cores that sleep and change their frequency: Iqbal 2013, chapter 6.
//!
//! Packets wait in one queue, first come, first served. A core that becomes idle takes the
//! next; a packet that finds cores idle goes to the one awake that has been idle longest, and
//! else to the one that sleeps least deep. A governor of the crate `dispatch` decides which
//! cores sleep and how fast they run. A core that wakes takes its full power meanwhile, and
//! a core that is active takes it whether or not it has a packet (equation 2.1, and static power
//! beside it). The thesis does not say in which P-state a core sleeps: here in the lowest, under
//! any governor.

use tachonym_dispatch::power::governors::{Governor, WorkerLoad, ladder_state};
use tachonym_dispatch::power::states::{CState, OperatingPoint, P_STATES, STATIC_SHARE};
use tachonym_dispatch::power::tap::{Decision, Interval};

mod arrivals;
pub mod on_off;

pub use arrivals::{TwoDays, arrivals_of, counts};

/// A processor, and what packets take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerConfig {
    /// Cores.
    pub n_cores: usize,
    /// Watts of a core at P0.
    pub core_w: f64,
    /// The part of them that is static: see [`states`](tachonym_dispatch::power::states).
    pub static_share: f64,
    /// Packets of the queue.
    pub queue_pkts: u32,
    /// What a packet takes at P0.
    pub packet_ns: u64,
    /// How often the governor hears of loads.
    pub interval_ns: u64,
    /// How often it looks at the queue.
    pub step_ns: u64,
    /// Wake-up from light sleep.
    pub light_wake_ns: u64,
    /// Wake-up from deep sleep. As published: 200 µs (section 6.3.5).
    pub deep_wake_ns: u64,
}

impl PowerConfig {
    /// Times and queue as published.
    #[must_use]
    pub const fn published(n_cores: usize, core_w: f64, packet_ns: u64) -> Self {
        Self {
            n_cores,
            core_w,
            static_share: STATIC_SHARE,
            queue_pkts: 80,
            packet_ns,
            interval_ns: 500_000,
            step_ns: 50_000,
            light_wake_ns: CState::Light.latency_ns(),
            deep_wake_ns: 200_000,
        }
    }

    /// Watts of a core that is active.
    #[must_use]
    pub fn power_w(&self, point: OperatingPoint) -> f64 {
        point.core_power_w(self.core_w, self.static_share)
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PowerOutcome {
    /// Packets that came.
    pub n_arrived: u64,
    /// Those that found the queue full.
    pub n_dropped: u64,
    /// Energy of all cores.
    pub energy_j: f64,
    /// Virtual time.
    pub elapsed_s: f64,
    /// Cores in C0, on average over time.
    pub mean_active: f64,
    /// At each step: the queue's length, and the governor's filtered one if it has that.
    pub queue: Vec<(u32, f64)>,
    /// At each interval: cores in C0 and the mean P-state of those.
    pub intervals: Vec<(usize, f64)>,
}

impl PowerOutcome {
    /// Watts of all cores, on average.
    #[must_use]
    pub fn power_w(&self) -> f64 {
        self.energy_j / self.elapsed_s
    }

    /// Dropped packets in percent.
    #[must_use]
    pub fn dropped_pct(&self) -> f64 {
        100.0 * self.n_dropped as f64 / self.n_arrived.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Idle,
    /// Wakes, with a packet if it was woken by one.
    Wakes {
        until_ns: u64,
        has_packet: bool,
    },
    Works {
        until_ns: u64,
    },
    Sleeps(CState),
}

#[derive(Clone, Copy, Debug)]
struct Core {
    doing: Doing,
    /// The sleep it goes to once its packet is done.
    sleep_after: Option<CState>,
    p_state: u8,
    since_ns: u64,
    /// Until when its energy is counted.
    counted_ns: u64,
    worked_ns: u64,
    energy_j: f64,
}

struct Run<'a> {
    config: &'a PowerConfig,
    governor: &'a mut Governor,
    cores: Vec<Core>,
    n_queued: u32,
    /// Work done, in nanoseconds at P0, and packets, since the interval began.
    busy_ns: f64,
    n_done: u64,
    n_arrived: u64,
    active_ns: f64,
    outcome: PowerOutcome,
}

/// Runs packets that arrive at these times, in order, until `end_ns`.
///
/// # Panics
/// If there is no core or times do not go on.
#[must_use]
pub fn run(
    config: &PowerConfig,
    governor: &mut Governor,
    arrivals_ns: &[u64],
    end_ns: u64,
) -> PowerOutcome {
    assert!(config.n_cores > 0 && config.step_ns > 0 && config.interval_ns > 0);
    let core = Core {
        doing: Doing::Idle,
        sleep_after: None,
        p_state: 0,
        since_ns: 0,
        counted_ns: 0,
        worked_ns: 0,
        energy_j: 0.0,
    };
    let mut run = Run {
        config,
        governor,
        cores: vec![core; config.n_cores],
        n_queued: 0,
        busy_ns: 0.0,
        n_done: 0,
        n_arrived: 0,
        active_ns: 0.0,
        outcome: PowerOutcome::default(),
    };
    let mut arrivals = arrivals_ns.iter().copied().peekable();
    let (mut next_step, mut next_interval) = (config.step_ns, config.interval_ns);
    loop {
        let ready = run
            .cores
            .iter()
            .enumerate()
            .filter_map(|(idx, core)| match core.doing {
                Doing::Works { until_ns } | Doing::Wakes { until_ns, .. } => Some((until_ns, idx)),
                Doing::Idle | Doing::Sleeps(_) => None,
            });
        let (ready_ns, core) = ready.min().unwrap_or((u64::MAX, 0));
        let arrival_ns = arrivals.peek().copied().unwrap_or(u64::MAX);
        let now_ns = ready_ns.min(arrival_ns).min(next_step).min(next_interval);
        if now_ns >= end_ns {
            break;
        }
        if now_ns == ready_ns {
            run.handle_ready(core, now_ns);
        } else if now_ns == arrival_ns {
            arrivals.next();
            run.handle_arrival(now_ns);
        } else if now_ns == next_interval {
            next_interval += config.interval_ns;
            run.handle_interval(now_ns);
        } else {
            next_step += config.step_ns;
            let decision = run.governor.handle_step();
            let filtered = run.governor.tap().map_or(0.0, |it| it.filtered_pkts());
            run.outcome.queue.push((run.n_queued, filtered));
            run.carry_out(&decision, now_ns);
        }
    }
    run.finish(end_ns)
}

impl Run<'_> {
    fn handle_arrival(&mut self, now_ns: u64) {
        self.n_arrived += 1;
        self.outcome.n_arrived += 1;
        let has_ladder = self.governor.has_ladder();
        let idle = self.cores.iter().enumerate();
        let idle = idle.filter(|(_, core)| core.doing == Doing::Idle);
        let depth = |core: &Core| match has_ladder {
            true => ladder_state(now_ns - core.since_ns),
            false => CState::Active,
        };
        let free = idle.min_by_key(|(idx, core)| (depth(core), core.since_ns, *idx));
        if let Some((idx, core)) = free {
            match depth(core) {
                CState::Active => self.start(idx, now_ns),
                state => {
                    let until_ns = now_ns + self.wake_ns(state);
                    let has_packet = true;
                    self.turn(
                        idx,
                        Doing::Wakes {
                            until_ns,
                            has_packet,
                        },
                        now_ns,
                    );
                }
            }
        } else if self.n_queued < self.config.queue_pkts {
            self.n_queued += 1;
        } else {
            self.outcome.n_dropped += 1;
        }
        self.governor.sample_queue(self.n_queued);
    }

    const fn wake_ns(&self, state: CState) -> u64 {
        match state {
            CState::Active => 0,
            CState::Light => self.config.light_wake_ns,
            CState::Deep => self.config.deep_wake_ns,
        }
    }

    fn start(&mut self, idx: usize, now_ns: u64) {
        let frequency = P_STATES[usize::from(self.cores[idx].p_state)].frequency;
        let until_ns = now_ns + (self.config.packet_ns as f64 / frequency).ceil() as u64;
        self.turn(idx, Doing::Works { until_ns }, now_ns);
    }

    /// A core has done its packet, or is awake.
    fn handle_ready(&mut self, idx: usize, now_ns: u64) {
        match self.cores[idx].doing {
            Doing::Wakes {
                has_packet: true, ..
            } => return self.start(idx, now_ns),
            Doing::Works { .. } => self.n_done += 1,
            Doing::Wakes { .. } | Doing::Idle | Doing::Sleeps(_) => {}
        }
        if let Some(state) = self.cores[idx].sleep_after.take() {
            self.turn(idx, Doing::Sleeps(state), now_ns);
        } else if let Some(n_queued) = self.n_queued.checked_sub(1) {
            self.n_queued = n_queued;
            self.start(idx, now_ns);
        } else {
            self.turn(idx, Doing::Idle, now_ns);
        }
    }

    fn turn(&mut self, idx: usize, doing: Doing, now_ns: u64) {
        self.count(idx, now_ns);
        self.cores[idx].doing = doing;
        self.cores[idx].since_ns = now_ns;
    }

    /// Counts energy and time of a core until now.
    fn count(&mut self, idx: usize, now_ns: u64) {
        let has_ladder = self.governor.has_ladder();
        let core = &mut self.cores[idx];
        let point = P_STATES[usize::from(core.p_state)];
        let power_w = self.config.power_w(point);
        let from_ns = std::mem::replace(&mut core.counted_ns, now_ns);
        let sleeping_w = self.config.power_w(P_STATES[P_STATES.len() - 1]);
        let spent = |state: CState, ns: u64| match state {
            CState::Active => power_w * ns as f64 / 1e9,
            CState::Light | CState::Deep => sleeping_w * state.relative_power() * ns as f64 / 1e9,
        };
        match core.doing {
            Doing::Sleeps(state) => core.energy_j += spent(state, now_ns - from_ns),
            Doing::Idle if has_ladder => {
                // What of this time each state of the ladder had.
                let ends = [
                    (
                        CState::Active,
                        core.since_ns + CState::Light.break_even_ns(),
                    ),
                    (CState::Light, core.since_ns + CState::Deep.break_even_ns()),
                    (CState::Deep, u64::MAX),
                ];
                let mut at_ns = from_ns;
                for (state, end_ns) in ends {
                    let until_ns = end_ns.clamp(at_ns, now_ns);
                    core.energy_j += spent(state, until_ns - at_ns);
                    if state == CState::Active {
                        self.active_ns += (until_ns - at_ns) as f64;
                    }
                    at_ns = until_ns;
                }
            }
            Doing::Idle | Doing::Wakes { .. } | Doing::Works { .. } => {
                core.energy_j += spent(CState::Active, now_ns - from_ns);
                self.active_ns += (now_ns - from_ns) as f64;
            }
        }
        if matches!(core.doing, Doing::Works { .. }) {
            core.worked_ns += now_ns - from_ns;
            self.busy_ns += (now_ns - from_ns) as f64 * point.frequency;
        }
    }

    fn handle_interval(&mut self, now_ns: u64) {
        let mut loads = Vec::with_capacity(self.cores.len());
        for idx in 0..self.cores.len() {
            self.count(idx, now_ns);
            let core = &mut self.cores[idx];
            let frequency = P_STATES[usize::from(core.p_state)].frequency;
            let worked_ns = std::mem::take(&mut core.worked_ns) as f64;
            // As sensors show it: the power while it works, by the work.
            let point = P_STATES[usize::from(core.p_state)];
            loads.push(WorkerLoad {
                utilization: (worked_ns / self.config.interval_ns as f64).min(1.0),
                energy_per_work: (worked_ns > 0.0).then(|| self.config.power_w(point) / frequency),
            });
        }
        let awake = self.cores.iter().filter(|core| match core.doing {
            Doing::Idle if self.governor.has_ladder() => {
                ladder_state(now_ns - core.since_ns) == CState::Active
            }
            Doing::Sleeps(_) => false,
            Doing::Idle | Doing::Wakes { .. } | Doing::Works { .. } => true,
        });
        let p_states: Vec<_> = awake.map(|core| f64::from(core.p_state)).collect();
        let n_awake = p_states.len();
        let mean = p_states.iter().sum::<f64>() / n_awake.max(1) as f64;
        self.outcome.intervals.push((n_awake, mean));
        let interval = Interval {
            now_ns,
            n_arrived: std::mem::take(&mut self.n_arrived),
            n_done: std::mem::take(&mut self.n_done),
            busy_ns: std::mem::take(&mut self.busy_ns) as u64,
            queue_pkts: self.n_queued,
        };
        let decision = self.governor.handle_interval(&interval, &loads);
        self.carry_out(&decision, now_ns);
    }

    fn carry_out(&mut self, decision: &Decision, now_ns: u64) {
        for (workers, state) in [
            (&decision.light, CState::Light),
            (&decision.deep, CState::Deep),
        ] {
            for worker in workers {
                let idx = worker.idx();
                match self.cores[idx].doing {
                    Doing::Idle | Doing::Sleeps(_) => {
                        self.turn(idx, Doing::Sleeps(state), now_ns);
                    }
                    Doing::Wakes { .. } | Doing::Works { .. } => {
                        self.cores[idx].sleep_after = Some(state);
                    }
                }
            }
        }
        for worker in &decision.wake {
            let idx = worker.idx();
            self.cores[idx].sleep_after = None;
            if let Doing::Sleeps(state) = self.cores[idx].doing {
                let until_ns = now_ns + self.wake_ns(state);
                let has_packet = false;
                self.turn(
                    idx,
                    Doing::Wakes {
                        until_ns,
                        has_packet,
                    },
                    now_ns,
                );
            }
            self.change(idx, 0, now_ns);
        }
        for &(worker, p_state) in &decision.p_states {
            self.change(worker.idx(), p_state, now_ns);
        }
    }

    /// Another frequency; the rest of a packet takes by it.
    fn change(&mut self, idx: usize, p_state: u8, now_ns: u64) {
        self.count(idx, now_ns);
        let core = &mut self.cores[idx];
        let frequency = |p_state: u8| P_STATES[usize::from(p_state)].frequency;
        let by = frequency(core.p_state) / frequency(p_state);
        core.p_state = p_state;
        if let Doing::Works { until_ns } = &mut core.doing {
            *until_ns = now_ns + (until_ns.saturating_sub(now_ns) as f64 * by).ceil() as u64;
        }
    }

    fn finish(mut self, end_ns: u64) -> PowerOutcome {
        for idx in 0..self.cores.len() {
            self.count(idx, end_ns);
        }
        let energy_j = self.cores.iter().map(|it| it.energy_j).sum();
        PowerOutcome {
            energy_j,
            elapsed_s: end_ns as f64 / 1e9,
            mean_active: self.active_ns / end_ns as f64,
            ..self.outcome
        }
    }
}

#[cfg(test)]
mod tests {
    use tachonym_dispatch::power::governors::GovernorKind;
    use tachonym_dispatch::power::tap::TapConfig;

    use super::*;

    fn outcome(kind: GovernorKind, arrivals_ns: &[u64]) -> PowerOutcome {
        let config = PowerConfig::published(4, 2.0, 10_000);
        let mut governor = Governor::new(kind, TapConfig::published(4));
        run(&config, &mut governor, arrivals_ns, 100_000_000)
    }

    #[test]
    fn without_a_governor_all_cores_take_full_power() {
        let found = outcome(GovernorKind::None, &[]);
        assert!((found.energy_j - 0.8).abs() < 1e-9);
        assert!((found.mean_active - 4.0).abs() < 1e-9);
    }

    #[test]
    fn idle_cores_of_the_ladder_sleep_deep() {
        let found = outcome(GovernorKind::Ladder, &[]);
        // 20 µs at 100 %, 180 µs at 40 %, the rest at 5 %, asleep in P4.
        let deep_w = found.power_w() / (2.0 * 4.0);
        assert!(deep_w < 0.0224 + 0.004, "{deep_w}");
        assert!(found.mean_active < 0.01);
    }

    #[test]
    fn a_packet_of_a_sleeping_core_waits_for_its_wake_up() {
        let found = outcome(GovernorKind::Ladder, &[50_000_000]);
        assert_eq!((found.n_arrived, found.n_dropped), (1, 0));
        let idle = outcome(GovernorKind::Ladder, &[]);
        // 200 µs of wake-up and 20 µs at P4 at least, at P4's power.
        let more_j = found.energy_j - idle.energy_j;
        assert!(more_j > 2.0 * 0.448 * 0.95 * 220e-6, "{more_j}");
    }

    #[test]
    fn more_than_the_queue_holds_is_dropped() {
        let burst = vec![1_000_000; 100];
        let found = outcome(GovernorKind::None, &burst);
        assert_eq!(found.n_dropped, 100 - 4 - 80);
    }

    #[test]
    fn tap_does_constant_traffic_without_loss_and_with_less_energy_than_all_cores() {
        let arrivals: Vec<_> = (0..19_000).map(|nth| nth * 5_263).collect();
        let found = |kind| outcome(kind, &arrivals);
        let tap = found(GovernorKind::Tap);
        assert_eq!(tap.n_dropped, 0);
        for kind in [GovernorKind::None, GovernorKind::Ladder] {
            let other_j = found(kind).energy_j;
            assert!(
                tap.energy_j < other_j,
                "{kind:?} {} {other_j}",
                tap.energy_j
            );
        }
    }
}
