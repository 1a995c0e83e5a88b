//! A governor of the crate `dispatch`, carried out on the running router.
//!
//! Called by the scheduler's thread at each of its looks. A worker that sleeps lightly keeps
//! its names. One that sleeps deep has given them to the others as if an operator had removed
//! it, so pending Interests stay where they are and are answered there; it keeps thread,
//! engine and content store, and its thread goes on receiving for its faces.

use tachonym_dispatch::power::governors::{Governor as Decider, GovernorKind, WorkerLoad};
use tachonym_dispatch::power::states::{CState, P_STATES};
use tachonym_dispatch::power::tap::{Decision, FrequencyLever, Interval, TapConfig};
use tachonym_dispatch::{Migration, MigrationState, WorkerId};
use tachonym_packet::MonoNs;
use tachonym_protocol::{TapStatus, WorkerPower};
use tachonym_workers::{ReceiverConfig, Scheduler};
use tracing::{debug, warn};

use super::levers::Levers;
use crate::services::FORWARDING;
use crate::team::Team;

/// A governor of `dispatch`, and what it last read of the workers.
pub(super) struct Governor {
    decider: Decider,
    /// What the workers had done at the latest look.
    before: Vec<(u64, u64)>,
    last_ns: Option<u64>,
    queue_pkts: u32,
    /// Most that counts of a worker's queue: sockets do not tell how much they hold, and a
    /// thread without a pause counts ever more.
    max_queue_pkts: u32,
    energy_uj: u64,
}

/// What a look at the workers has come to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looked {
    /// Whether a worker fell asleep or woke.
    pub(crate) has_changed: bool,
    /// Whether packets were handled since the latest look.
    pub(crate) is_busy: bool,
}

impl Governor {
    /// Governs workers 0 to `n_workers` - 1, which all run, with these frequencies.
    pub(super) fn new(kind: GovernorKind, n_workers: usize, frequency: FrequencyLever) -> Self {
        let max_queue_pkts = ReceiverConfig::default().max_queue_pkts;
        let config = TapConfig::live(n_workers, max_queue_pkts.into(), frequency);
        let mut decider = Decider::new(kind, config);
        if frequency == FrequencyLever::None {
            decider.lose_frequencies();
        }
        Self {
            decider,
            before: vec![(0, 0); n_workers],
            last_ns: None,
            queue_pkts: 0,
            max_queue_pkts,
            energy_uj: 0,
        }
    }

    /// Takes what has happened since the latest look into account, has workers sleep or wake,
    /// and sets frequencies.
    pub(super) fn tick(
        &mut self,
        now: MonoNs,
        team: &Team,
        scheduler: &mut Scheduler,
        levers: &mut Levers,
    ) -> Looked {
        let (interval, loads) = self.interval(now, team, scheduler, levers);
        self.decider.sample_queue(interval.queue_pkts);
        let of_interval = self.decider.handle_interval(&interval, &loads);
        let has_changed = self.carry_out(&of_interval, scheduler);
        let of_step = self.decider.handle_step();
        let has_changed = self.carry_out(&of_step, scheduler) || has_changed;
        if !of_interval.is_empty() || !of_step.is_empty() {
            self.set_frequencies(levers, scheduler);
        }
        Looked {
            has_changed,
            is_busy: interval.n_done > 0 || interval.queue_pkts > 0,
        }
    }

    /// Has workers sleep or wake; whether any did. What can't be carried out is as if it had
    /// not been decided.
    fn carry_out(&mut self, decision: &Decision, scheduler: &mut Scheduler) -> bool {
        let mut has_changed = false;
        for &worker in &decision.deep {
            if put_to_sleep(worker, scheduler) {
                has_changed = true;
            } else {
                self.decider.correct(worker, CState::Active);
            }
        }
        for &worker in &decision.wake {
            has_changed |= wake(worker, scheduler);
            if !scheduler.homes().workers().contains(worker) {
                self.decider.correct(worker, CState::Deep);
            }
        }
        has_changed
    }

    /// The core of a worker without names runs at the lowest: its thread only receives.
    fn set_frequencies(&mut self, levers: &mut Levers, scheduler: &Scheduler) {
        const LOWEST: u8 = P_STATES.len() as u8 - 1;
        let with_names = scheduler.homes().workers();
        let p_states = self.decider.p_states().iter().enumerate();
        let p_states = p_states.map(|(idx, &p_state)| {
            let has_names = with_names.contains(WorkerId(idx as u16));
            if has_names { p_state } else { LOWEST }
        });
        let p_states: Vec<_> = p_states.collect();
        if let Err(error) = levers.set_frequencies(&p_states) {
            warn!(
                "{error}; from now on the router leaves frequencies alone (restart it once \
                 cpufreq can be written again)"
            );
            self.decider.lose_frequencies();
        }
    }

    fn interval(
        &mut self,
        now: MonoNs,
        team: &Team,
        scheduler: &Scheduler,
        levers: &mut Levers,
    ) -> (Interval, Vec<WorkerLoad>) {
        let last_ns = self.last_ns.replace(now.0);
        let elapsed_ns = last_ns.map_or(1, |last_ns| now.0.saturating_sub(last_ns).max(1));
        let (mut n_done, mut cycles_ns) = (0, 0.0);
        let mut loads = Vec::with_capacity(self.before.len());
        for (idx, before) in self.before.iter_mut().enumerate() {
            let done = team.done(WorkerId(idx as u16)).get();
            n_done += done.0.saturating_sub(before.0);
            let busy_ns = done.1.saturating_sub(before.1) as f64;
            *before = done;
            let relative = levers.relative_frequency(idx);
            cycles_ns += busy_ns * relative;
            loads.push(WorkerLoad {
                utilization: (busy_ns / elapsed_ns as f64).min(1.0),
                energy_per_work: None,
            });
        }
        if self.decider.kind() == GovernorKind::GreedyEpi {
            let energy_uj = levers.read_energy_uj();
            let used_uj = energy_uj.saturating_sub(self.energy_uj);
            self.energy_uj = energy_uj;
            // Counters are of whole processors: all workers share what their work took.
            if cycles_ns > 0.0 && used_uj > 0 {
                let energy_per_work = Some(used_uj as f64 / cycles_ns);
                for load in &mut loads {
                    load.energy_per_work = energy_per_work;
                }
            }
        }
        let queue_lens = scheduler.queue_lens().iter();
        let queue_pkts = queue_lens.map(|&len| len.min(self.max_queue_pkts)).sum();
        let queue_before = u64::from(std::mem::replace(&mut self.queue_pkts, queue_pkts));
        let n_arrived = (n_done + u64::from(queue_pkts)).saturating_sub(queue_before);
        let interval = Interval {
            now_ns: now.0,
            n_arrived,
            n_done,
            busy_ns: cycles_ns as u64,
            queue_pkts,
        };
        (interval, loads)
    }

    /// How each worker stands.
    pub(super) fn workers(&self, levers: &Levers) -> Vec<WorkerPower> {
        let states = self.decider.states().iter().zip(self.decider.p_states());
        let states = states.enumerate().take(WorkerPower::MAX);
        states
            .map(|(idx, (&state, &p_state))| WorkerPower {
                worker: idx as u64,
                sleep: state as u64,
                p_state: p_state.into(),
                khz: levers.khz(idx),
            })
            .collect()
    }

    /// What TAP decides by, if it is that.
    pub(super) fn tap(&self) -> Option<TapStatus> {
        let tap = self.decider.tap()?;
        let milli = |value: f64| (1e3 * value.max(0.0)).round() as u64;
        Some(TapStatus {
            forecast_millipkts: milli(tap.forecast_pkts()),
            interval_ns: tap.config().interval_ns,
            traffic_factor_permille: milli(tap.traffic_factor()),
            packet_ns: tap.current_packet_ns().map(|it| it.round() as u64),
            queue_millipkts: milli(tap.filtered_pkts()),
            low_millipkts: milli(tap.thresholds().low),
            high_millipkts: milli(tap.thresholds().high),
        })
    }
}

/// Gives a worker's names to the others, unless an operator has pinned any to it, has removed
/// it, or has frozen all where they are.
fn put_to_sleep(worker: WorkerId, scheduler: &mut Scheduler) -> bool {
    let is_pinned_here = |it: &Migration| it.worker == worker && it.state == MigrationState::Pinned;
    if scheduler.laps().is_frozen()
        || scheduler.homes().migrations().iter().any(is_pinned_here)
        || scheduler.laps_mut().remove_worker(worker).is_err()
    {
        return false;
    }
    debug!("worker {worker} sleeps; its names moved to the others");
    true
}

/// Gives a worker names again, if it has none and an operator has not frozen all.
fn wake(worker: WorkerId, scheduler: &mut Scheduler) -> bool {
    let is_asleep = !scheduler.homes().workers().contains(worker);
    if !is_asleep
        || scheduler.laps().is_frozen()
        || scheduler.laps_mut().add_worker(worker, FORWARDING).is_err()
    {
        return false;
    }
    debug!("worker {worker} wakes");
    true
}
