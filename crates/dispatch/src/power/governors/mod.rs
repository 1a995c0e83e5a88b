//! Governors beside TAP: Iqbal 2013, section 2.4.3, 2.4.4 and 6.4.1.
//!
//! | kind | workers | P-states |
//! |---|---|---|
//! | `none` | all run | P0 |
//! | `tap` | by the forecast | by the queue |
//! | `ondemand`, `conservative` | all run | by utilization |
//! | `ladder` | sleep by idle time | by ondemand (the thesis' Base) |
//! | `idle-thread` | by idle workers | by ondemand |
//! | `greedy-epi` | sleep by idle time | by energy per packet |

use super::states::{CState, P_STATES};
use super::tap::{Decision, Interval, Tap, TapConfig};
use crate::worker::WorkerId;

/// Which governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table of the module says what they are")]
pub enum GovernorKind {
    None,
    Tap,
    Ondemand,
    Conservative,
    Ladder,
    IdleThread,
    GreedyEpi,
}

/// What a worker did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerLoad {
    /// The share of the time that it worked.
    pub utilization: f64,
    /// Energy by work done, in any unit; `None` if it did none.
    pub energy_per_work: Option<f64>,
}

/// How far a worker may sleep that has been idle for so long: the ladder, with the break-even
/// times of equation 2.2.
#[must_use]
pub const fn ladder_state(idle_ns: u64) -> CState {
    if idle_ns >= CState::Deep.break_even_ns() {
        CState::Deep
    } else if idle_ns >= CState::Light.break_even_ns() {
        CState::Light
    } else {
        CState::Active
    }
}

/// Above: the highest frequency (Listing 2.1).
const UP_THRESHOLD: f64 = 0.90;
/// Where the conservative governor leaves the frequency alone.
const CONSERVATIVE: std::ops::RangeInclusive<f64> = 0.3..=0.6;
/// Intervals that the greedy search holds after it went too far.
const HOLD_INTERVALS: u32 = 5;
/// Intervals of light sleep before deep sleep.
const LIGHT_INTERVALS: u32 = 2;
/// The lowest P-state.
const LAST: u8 = P_STATES.len() as u8 - 1;

/// Listing 2.1: the next P-state.
#[must_use]
pub fn ondemand(p_state: u8, utilization: f64) -> u8 {
    if utilization > UP_THRESHOLD {
        0
    } else {
        (p_state + 1).min(LAST)
    }
}

/// The next P-state such that utilization stays within 0.3 to 0.6.
#[must_use]
pub fn conservative(p_state: u8, utilization: f64) -> u8 {
    if CONSERVATIVE.contains(&utilization) {
        p_state
    } else if utilization > *CONSERVATIVE.end() {
        p_state.saturating_sub(1)
    } else {
        (p_state + 1).min(LAST)
    }
}

/// A worker's search for the P-state of the least energy per instruction.
#[derive(Clone, Copy, Debug, Default)]
pub struct GreedyEpi {
    before: Option<f64>,
    goes_up: bool,
    n_hold: u32,
}

impl GreedyEpi {
    /// The next P-state. It goes on as it went while energy falls; it takes a step back once
    /// that rises, holds, and goes on in that direction.
    pub fn next(&mut self, p_state: u8, energy_per_work: Option<f64>) -> u8 {
        let Some(energy) = energy_per_work else {
            return p_state;
        };
        if self.n_hold > 0 {
            self.n_hold -= 1;
            self.before = Some(energy);
            return p_state;
        }
        if self.before.replace(energy).is_some_and(|it| energy > it) {
            self.goes_up = !self.goes_up;
            self.n_hold = HOLD_INTERVALS;
        }
        if self.goes_up {
            p_state.saturating_sub(1)
        } else {
            (p_state + 1).min(LAST)
        }
    }
}

/// A governor at work.
#[derive(Clone, Debug)]
pub struct Governor {
    kind: GovernorKind,
    tap: Option<Tap>,
    queue_pkts: f64,
    states: Vec<CState>,
    p_states: Vec<u8>,
    n_light: Vec<u32>,
    searches: Vec<GreedyEpi>,
    has_frequencies: bool,
}

impl Governor {
    /// Of so many workers and this queue as `config` says, and with its levers if it is TAP.
    #[must_use]
    pub fn new(kind: GovernorKind, config: TapConfig) -> Self {
        let n_workers = config.n_workers;
        Self {
            kind,
            tap: (kind == GovernorKind::Tap).then(|| Tap::new(config)),
            queue_pkts: config.queue_pkts,
            states: vec![CState::Active; n_workers],
            p_states: vec![0; n_workers],
            n_light: vec![0; n_workers],
            searches: vec![GreedyEpi::default(); n_workers],
            has_frequencies: true,
        }
    }

    /// Which it is.
    #[must_use]
    pub const fn kind(&self) -> GovernorKind {
        self.kind
    }

    /// TAP, if it is that.
    #[must_use]
    pub const fn tap(&self) -> Option<&Tap> {
        self.tap.as_ref()
    }

    /// How deep each worker sleeps by its decisions.
    #[must_use]
    pub fn states(&self) -> &[CState] {
        self.tap.as_ref().map_or(&self.states, Tap::states)
    }

    /// The P-state of each worker.
    #[must_use]
    pub fn p_states(&self) -> &[u8] {
        self.tap.as_ref().map_or(&self.p_states, Tap::p_states)
    }

    /// A decision could not be carried out: how deep a worker sleeps after all.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn correct(&mut self, worker: WorkerId, state: CState) {
        match &mut self.tap {
            Some(tap) => tap.correct(worker, state),
            None => self.states[worker.idx()] = state,
        }
    }

    /// From now on no frequency can be set: all workers run at P0.
    pub fn lose_frequencies(&mut self) {
        self.has_frequencies = false;
        self.p_states.fill(0);
        if let Some(tap) = &mut self.tap {
            tap.lose_frequencies();
        }
    }

    /// Whether idle workers sleep by [`ladder_state`].
    #[must_use]
    pub const fn has_ladder(&self) -> bool {
        matches!(self.kind, GovernorKind::Ladder | GovernorKind::GreedyEpi)
    }

    /// Takes a length of the queue into account.
    pub fn sample_queue(&mut self, queue_pkts: u32) {
        if let Some(tap) = &mut self.tap {
            tap.sample_queue(queue_pkts);
        }
    }

    /// What is decided within an interval.
    pub fn handle_step(&mut self) -> Decision {
        match &mut self.tap {
            Some(tap) => tap.handle_step(),
            None => Decision {
                n_active: self.n_active(),
                ..Decision::default()
            },
        }
    }

    /// What is decided after an interval, in which each worker did as `loads` say.
    pub fn handle_interval(&mut self, interval: &Interval, loads: &[WorkerLoad]) -> Decision {
        if let Some(tap) = &mut self.tap {
            return tap.handle_interval(interval);
        }
        let mut decision = Decision::default();
        if self.kind == GovernorKind::IdleThread {
            self.follow_idle(interval, loads, &mut decision);
        }
        for (idx, load) in loads.iter().enumerate().take(self.states.len()) {
            if self.states[idx] != CState::Active || !self.has_frequencies {
                continue;
            }
            let before = self.p_states[idx];
            let p_state = match self.kind {
                GovernorKind::None | GovernorKind::Tap => 0,
                GovernorKind::Conservative => conservative(before, load.utilization),
                GovernorKind::GreedyEpi => self.searches[idx].next(before, load.energy_per_work),
                GovernorKind::Ondemand | GovernorKind::Ladder | GovernorKind::IdleThread => {
                    ondemand(before, load.utilization)
                }
            };
            if p_state != before {
                self.p_states[idx] = p_state;
                decision.p_states.push((WorkerId(idx as u16), p_state));
            }
        }
        decision.n_active = self.n_active();
        decision
    }

    fn n_active(&self) -> usize {
        let active = |&&it: &&CState| it == CState::Active;
        self.states.iter().filter(active).count()
    }

    /// One sleeps for each that is idle beyond the first; one wakes when none is idle.
    fn follow_idle(&mut self, interval: &Interval, loads: &[WorkerLoad], into: &mut Decision) {
        for (idx, state) in self.states.iter_mut().enumerate() {
            if *state == CState::Light {
                self.n_light[idx] += 1;
                if self.n_light[idx] >= LIGHT_INTERVALS {
                    *state = CState::Deep;
                    into.deep.push(WorkerId(idx as u16));
                }
            }
        }
        let active = self.states.iter().zip(loads);
        let idle: f64 = active
            .filter(|&(&state, _)| state == CState::Active)
            .map(|(_, load)| 1.0 - load.utilization)
            .sum();
        let is_queued = f64::from(interval.queue_pkts) >= self.queue_pkts / 4.0;
        if is_queued || idle < 0.1 {
            let sleepers = self.states.iter().enumerate();
            let shallowest = sleepers
                .filter(|&(_, &state)| state != CState::Active)
                .min_by_key(|&(idx, &state)| (state, idx));
            if let Some((idx, _)) = shallowest {
                self.states[idx] = CState::Active;
                self.p_states[idx] = 0;
                into.deep.retain(|it| it.idx() != idx);
                into.wake.push(WorkerId(idx as u16));
            }
            return;
        }
        let n_beyond = (idle as usize).min(self.n_active() - 1);
        let active = (0..self.states.len()).rev();
        let active = active.filter(|&idx| self.states[idx] == CState::Active);
        for idx in active.take(n_beyond).collect::<Vec<_>>() {
            self.states[idx] = CState::Light;
            self.n_light[idx] = 0;
            into.light.push(WorkerId(idx as u16));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ondemand_jumps_up_and_steps_down() {
        assert_eq!(
            [ondemand(3, 0.91), ondemand(0, 0.90), ondemand(4, 0.0)],
            [0, 1, 4]
        );
    }

    #[test]
    fn conservative_keeps_its_range() {
        let next = [0.2, 0.3, 0.6, 0.7].map(|utilization| conservative(2, utilization));
        assert_eq!(next, [3, 2, 2, 1]);
    }

    #[test]
    fn the_ladder_goes_down_at_break_even_times() {
        let states = [19_999, 20_000, 199_999, 200_000].map(ladder_state);
        let [a, l, d] = [CState::Active, CState::Light, CState::Deep];
        assert_eq!(states, [a, l, l, d]);
    }

    #[test]
    fn greedy_turns_back_and_holds_five_intervals() {
        let mut search = GreedyEpi::default();
        assert_eq!(search.next(0, Some(5.0)), 1);
        assert_eq!(search.next(1, Some(4.0)), 2);
        assert_eq!(search.next(2, Some(4.5)), 1);
        for _ in 0..5 {
            assert_eq!(search.next(1, Some(4.0)), 1);
        }
        assert_eq!(search.next(1, Some(4.0)), 0);
    }

    #[test]
    fn a_worker_that_could_not_sleep_is_decided_about_again() {
        for kind in [GovernorKind::Tap, GovernorKind::IdleThread] {
            let mut governor = Governor::new(kind, TapConfig::published(2));
            let mut interval = Interval {
                n_arrived: 1,
                n_done: 1,
                busy_ns: 1_000,
                ..Interval::default()
            };
            let idle = [WorkerLoad::default(); 2];
            for _ in 0..2 {
                let n_before = governor.states().iter().filter(|&&it| it == CState::Deep);
                assert_eq!(n_before.count(), 0, "{kind:?}");
                let decided = (0..100).find_map(|_| {
                    interval.now_ns += 500_000;
                    let decision = governor.handle_interval(&interval, &idle);
                    decision.deep.first().copied()
                });
                assert_eq!(decided, Some(WorkerId(1)), "{kind:?}");
                governor.correct(WorkerId(1), CState::Active);
            }
        }
    }

    #[test]
    fn without_frequencies_all_run_at_the_highest() {
        for kind in [GovernorKind::Ondemand, GovernorKind::Tap] {
            let mut governor = Governor::new(kind, TapConfig::published(2));
            let idle = [WorkerLoad::default(); 2];
            let mut set = Vec::new();
            for _ in 0..2 {
                set.extend(governor.handle_step().p_states);
                let decision = governor.handle_interval(&Interval::default(), &idle);
                set.extend(decision.p_states);
            }
            assert!(!set.is_empty(), "{kind:?}");
            governor.lose_frequencies();
            assert_eq!(governor.p_states(), [0, 0], "{kind:?}");
            let step = governor.handle_step();
            let interval = governor.handle_interval(&Interval::default(), &idle);
            assert!(step.p_states.is_empty() && interval.p_states.is_empty());
        }
    }

    #[test]
    fn idle_workers_sleep_and_wake_when_none_is_idle() {
        let config = TapConfig::published(4);
        let mut governor = Governor::new(GovernorKind::IdleThread, config);
        let load = |utilization| WorkerLoad {
            utilization,
            energy_per_work: Some(1.0),
        };
        let interval = Interval::default();
        let decision = governor.handle_interval(&interval, &[load(0.4); 4]);
        assert_eq!(decision.light, [WorkerId(3), WorkerId(2)]);
        let busy = [load(0.6), load(0.6), load(0.0), load(0.0)];
        governor.handle_interval(&interval, &busy);
        assert_eq!(governor.handle_interval(&interval, &busy).deep.len(), 2);
        let full = [load(1.0), load(1.0), load(0.0), load(0.0)];
        assert_eq!(
            governor.handle_interval(&interval, &full).wake,
            [WorkerId(2)]
        );
    }
}
