//! TAP, traffic-aware power management: Iqbal 2013, section 6.3.
//!
//! [`Tap::handle_interval`] decides how many workers run: the packets that will come
//! ([`TrainedDes`]) times what one takes, by what all workers can do (equations 6.5 and 6.6,
//! rounded up). [`Tap::handle_step`], as often or oftener, has the filtered queue length move
//! P-states, and wake one more worker where all run at P0 (listing 6.2). A worker sleeps
//! lightly for some intervals before it sleeps deep.
//!
//! The thesis leaves open, and here is decided:
//! - Work is measured in nanoseconds at the highest frequency, so that none is needed.
//! - What a packet takes is kept per number of active workers.
//! - C_th is the queue length that wakes a worker, and begins as high_th does. Thresholds
//!   never rise above what they began with, which leaves room for what comes during a wake-up.
//! - The active worker of the highest number sleeps first; a light sleeper wakes first.
//! - The queue wakes a worker only while it grows, and one in the time that a wake-up takes
//!   ([`WakeRule::Growing`]). Section 6.3.5 leaves room in the queue for what comes meanwhile.
//!   With one more at each step of 50 µs, within the 200 µs and while the queue drains, workers
//!   wake that the traffic does not need.
//! - A router wakes no worker that was measured to add nothing ([`Gain::Measured`]), since its
//!   workers share a machine. Published cores share nothing, and each is taken to add.

use super::des::{DesConstants, Refit, TrainedDes};
use super::states::{CState, P_STATES};
use crate::worker::WorkerId;

/// Which frequencies can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrequencyLever {
    /// None: all workers run at P0.
    None,
    /// That of each worker.
    PerWorker,
    /// One for all.
    Global,
}

/// Whether workers sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepLever {
    /// As many run as are needed.
    OnOff,
    /// All run.
    AlwaysOn,
}

/// Whether a further worker is taken to raise the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// It is: as published, where workers are cores that share nothing.
    Assumed,
    /// Rates under saturation are measured, and no worker is woken that was measured to add
    /// nothing, until that is forgotten.
    Measured,
}

/// When a queue beyond its threshold wakes a worker, where all run at P0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeRule {
    /// At each step: listing 6.2 to the letter.
    EachStep,
    /// While the queue grows, and one in the time that a wake-up takes.
    Growing,
}

/// What TAP is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TapConfig {
    /// Workers there are.
    pub n_workers: usize,
    /// P-states there are, from 1 on.
    pub n_p_states: u8,
    /// Which frequencies can be set.
    pub frequency: FrequencyLever,
    /// Whether workers sleep.
    pub sleep: SleepLever,
    /// How often the number of workers is decided.
    pub interval_ns: u64,
    /// How often the queue is looked at.
    pub step_ns: u64,
    /// Packets that the queue holds: Qmax.
    pub queue_pkts: f64,
    /// Packets that may come while a worker wakes.
    pub wake_room_pkts: f64,
    /// How much of the filtered queue length is the latest: equation 6.7.
    pub filter: f64,
    /// Intervals of light sleep before deep sleep.
    pub light_intervals: u32,
    /// Intervals without the queue at C_th after which thresholds rise.
    pub calm_intervals: u32,
    /// Intervals that a worker woken by the queue runs at least. As published: 0.
    pub hold_intervals: u32,
    /// How far equation 6.6 may lie above a whole number that it is still rounded down to. The
    /// thesis does not say how it rounds: 0, which is up.
    pub rounds_down: f64,
    /// The frequency that equation 6.5 divides by, by that of P0. As published: 1, the highest.
    pub rated_frequency: f64,
    /// Whether a further worker is taken to raise the rate.
    pub gain: Gain,
    /// When the queue wakes a worker.
    pub wake_rule: WakeRule,
    /// How long a worker takes to wake. As published: 200 µs.
    pub wake_ns: u64,
    /// Constants of the forecast, as trained off line.
    pub forecast: DesConstants,
    /// How they are learned on line.
    pub refit: Option<Refit>,
    /// Intervals after which a measured rate is forgotten.
    pub forget_intervals: u32,
}

impl TapConfig {
    /// As published: decisions every 500 µs, and about P-states every 50 µs; a queue of 80.
    #[must_use]
    pub fn published(n_workers: usize) -> Self {
        Self {
            n_workers,
            n_p_states: P_STATES.len() as u8,
            frequency: FrequencyLever::PerWorker,
            sleep: SleepLever::OnOff,
            interval_ns: 500_000,
            step_ns: 50_000,
            queue_pkts: 80.0,
            wake_room_pkts: 40.0,
            filter: 0.025,
            light_intervals: 2,
            calm_intervals: 10,
            hold_intervals: 0,
            rounds_down: 0.0,
            rated_frequency: 1.0,
            gain: Gain::Assumed,
            wake_rule: WakeRule::Growing,
            wake_ns: 200_000,
            forecast: DesConstants::default(),
            refit: None,
            forget_intervals: 20_000,
        }
    }

    /// For a router: decisions every millisecond by one sample of the queue, constants learned
    /// on line. A queue of `queue_pkts` wakes a worker when half full.
    #[must_use]
    pub fn live(n_workers: usize, queue_pkts: f64, frequency: FrequencyLever) -> Self {
        Self {
            frequency,
            interval_ns: 1_000_000,
            step_ns: 1_000_000,
            queue_pkts,
            wake_room_pkts: queue_pkts / 2.0,
            filter: 0.5,
            hold_intervals: 10,
            gain: Gain::Measured,
            wake_rule: WakeRule::EachStep,
            refit: Some(Refit {
                every: 1_024,
                window: 256,
            }),
            ..Self::published(n_workers)
        }
    }
}

/// What an interval brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// When it ended.
    pub now_ns: u64,
    /// Packets that came.
    pub n_arrived: u64,
    /// Packets that were done.
    pub n_done: u64,
    /// What they took of all workers, in nanoseconds at the highest frequency.
    pub busy_ns: u64,
    /// Packets queued at its end.
    pub queue_pkts: u32,
}

/// What is to change. Empty lists allocate nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Workers that run once it is carried out.
    pub n_active: usize,
    /// Those that wake, at P0.
    pub wake: Vec<WorkerId>,
    /// Those that go to light sleep: they keep their names and wait.
    pub light: Vec<WorkerId>,
    /// Those that go from light to deep sleep: their names move.
    pub deep: Vec<WorkerId>,
    /// Those that get another P-state.
    pub p_states: Vec<(WorkerId, u8)>,
}

impl Decision {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wake.is_empty()
            && self.light.is_empty()
            && self.deep.is_empty()
            && self.p_states.is_empty()
    }
}

/// The queue lengths that decide. They shrink and grow together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Below: slower.
    pub low: f64,
    /// From here on: faster, and a worker more where that is no longer possible.
    pub high: f64,
    /// C_th: reached too seldom, and all three rise.
    pub wake: f64,
}

impl Thresholds {
    fn scaled(self, by: f64) -> Self {
        Self {
            low: self.low * by,
            high: self.high * by,
            wake: self.wake * by,
        }
    }
}

/// What was measured with a number of workers active.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    /// Nanoseconds of work in a packet, smoothed.
    packet_ns: Option<f64>,
    /// The rate under saturation.
    saturated: Option<Saturated>,
}

/// A rate under saturation.
#[derive(Clone, Copy, Debug)]
struct Saturated {
    /// Packets per nanosecond, smoothed.
    rate: f64,
    /// The latest interval of them.
    at: u64,
    n_intervals: u32,
}

/// A worker adds to the rate if it adds this share of what those before it do on average: less is
/// within the spread of measurements.
const ADDS: f64 = 0.02;
/// A rate under saturation is known after this many intervals.
const KNOWN_INTERVALS: u32 = 8;
/// How much of what a packet takes, and of a rate, is the latest interval's.
const PACKET_FILTER: f64 = 0.1;
/// Workers that are busy for so much of the interval are saturated.
const SATURATED: f64 = 0.95;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Tap {
    config: TapConfig,
    states: Vec<CState>,
    p_states: Vec<u8>,
    light_since: Vec<u64>,
    forecast: TrainedDes,
    /// By number of active workers.
    measured: Vec<Measured>,
    thresholds: Thresholds,
    largest: Thresholds,
    filtered_pkts: f64,
    max_since_interval: u32,
    n_calm: u32,
    hold_until: u64,
    /// Steps until the queue may wake another worker.
    n_waking_steps: u64,
    queue_pkts: u32,
    queue_pkts_before: u32,
    nth_interval: u64,
    last_ns: Option<u64>,
    traffic_factor: f64,
    changed: bool,
}

impl Tap {
    /// All workers run at P0.
    ///
    /// # Panics
    /// If there is no worker or P-state, or an interval takes no time.
    #[must_use]
    pub fn new(config: TapConfig) -> Self {
        assert!(config.n_workers > 0 && config.n_p_states > 0 && config.interval_ns > 0);
        let high = (config.queue_pkts - config.wake_room_pkts).max(1.0);
        let thresholds = Thresholds {
            low: high / 4.0,
            high,
            wake: high,
        };
        Self {
            states: vec![CState::Active; config.n_workers],
            p_states: vec![0; config.n_workers],
            light_since: vec![0; config.n_workers],
            forecast: TrainedDes::new(config.forecast, config.refit),
            measured: vec![Measured::default(); config.n_workers + 1],
            thresholds,
            largest: thresholds,
            filtered_pkts: 0.0,
            max_since_interval: 0,
            n_calm: 0,
            hold_until: 0,
            n_waking_steps: 0,
            queue_pkts: 0,
            queue_pkts_before: 0,
            nth_interval: 0,
            last_ns: None,
            traffic_factor: 0.0,
            changed: false,
            config,
        }
    }

    /// What it was told.
    #[must_use]
    pub const fn config(&self) -> &TapConfig {
        &self.config
    }

    /// Workers that run.
    #[must_use]
    pub fn n_active(&self) -> usize {
        self.states
            .iter()
            .filter(|&&it| it == CState::Active)
            .count()
    }

    /// How deep each worker sleeps.
    #[must_use]
    pub fn states(&self) -> &[CState] {
        &self.states
    }

    /// The P-state of each worker.
    #[must_use]
    pub fn p_states(&self) -> &[u8] {
        &self.p_states
    }

    /// The queue lengths that decide.
    #[must_use]
    pub const fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// The filtered queue length.
    #[must_use]
    pub const fn filtered_pkts(&self) -> f64 {
        self.filtered_pkts
    }

    /// Equation 6.5, of the latest interval.
    #[must_use]
    pub const fn traffic_factor(&self) -> f64 {
        self.traffic_factor
    }

    /// Packets that will come in the next interval.
    #[must_use]
    pub fn forecast_pkts(&self) -> f64 {
        self.forecast.forecast().max(0.0)
    }

    /// Nanoseconds of work in a packet with as many workers as run now, or with the nearest
    /// number that was measured.
    #[must_use]
    pub fn current_packet_ns(&self) -> Option<f64> {
        self.packet_ns(self.n_active())
    }

    /// A decision could not be carried out: how deep a worker sleeps after all.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn correct(&mut self, worker: WorkerId, state: CState) {
        self.states[worker.idx()] = state;
    }

    /// From now on no frequency can be set: all workers run at P0.
    pub fn lose_frequencies(&mut self) {
        self.config.frequency = FrequencyLever::None;
        self.p_states.fill(0);
    }

    /// Takes a length of the queue into account: equation 6.7.
    pub fn sample_queue(&mut self, queue_pkts: u32) {
        let filter = self.config.filter;
        self.filtered_pkts = filter * f64::from(queue_pkts) + (1.0 - filter) * self.filtered_pkts;
        self.max_since_interval = self.max_since_interval.max(queue_pkts);
        self.queue_pkts = queue_pkts;
    }

    /// Decides how many workers run: listing 6.1.
    pub fn handle_interval(&mut self, interval: &Interval) -> Decision {
        self.nth_interval += 1;
        let elapsed_ns = match self.last_ns.replace(interval.now_ns) {
            Some(last_ns) => interval.now_ns.saturating_sub(last_ns).max(1),
            None => self.config.interval_ns,
        };
        // An interval that took longer counts by its rate.
        let by_interval = self.config.interval_ns as f64 / elapsed_ns as f64;
        self.forecast
            .observe(interval.n_arrived as f64 * by_interval);
        self.measure(interval, elapsed_ns);
        self.adapt_thresholds(interval.queue_pkts);
        let mut decision = Decision::default();
        if self.config.sleep == SleepLever::OnOff {
            self.deepen(&mut decision);
            let n_active = self.n_active();
            let n_needed = self.n_needed(n_active);
            let n_wanted = self.without_lowering(n_needed);
            self.changed = n_wanted != n_active;
            if n_wanted > n_active {
                self.wake(n_wanted - n_active, &mut decision);
            } else if n_wanted < n_active && self.may_sleep(n_active) {
                self.sleep(n_active - n_wanted, &mut decision);
            }
        }
        decision.n_active = self.n_active();
        decision
    }

    /// Decides P-states by the filtered queue length: listing 6.2.
    pub fn handle_step(&mut self) -> Decision {
        let mut decision = Decision::default();
        let before = std::mem::replace(&mut self.queue_pkts_before, self.queue_pkts);
        self.n_waking_steps = self.n_waking_steps.saturating_sub(1);
        let may_wake = match self.config.wake_rule {
            WakeRule::EachStep => true,
            WakeRule::Growing => self.n_waking_steps == 0 && self.queue_pkts > before,
        };
        if self.filtered_pkts < self.thresholds.low {
            self.slow_down(&mut decision);
        } else if self.filtered_pkts >= self.thresholds.high && !self.speed_up(&mut decision) {
            let n_active = self.n_active();
            if self.config.sleep == SleepLever::OnOff
                && may_wake
                && self.without_lowering(n_active + 1) > n_active
            {
                self.wake(1, &mut decision);
                self.n_waking_steps = self.config.wake_ns / self.config.step_ns;
                self.changed = true;
                let hold = u64::from(self.config.hold_intervals);
                self.hold_until = self.nth_interval + hold;
            }
        }
        decision.n_active = self.n_active();
        decision
    }

    fn measure(&mut self, interval: &Interval, elapsed_ns: u64) {
        let n_active = self.n_active();
        let forget = u64::from(self.config.forget_intervals);
        for measured in &mut self.measured {
            let is_old = |it: Saturated| self.nth_interval - it.at > forget;
            if measured.saturated.is_some_and(is_old) {
                measured.saturated = None;
            }
        }
        // Workers that came or went within the interval belong to neither number.
        if std::mem::take(&mut self.changed) || interval.n_done == 0 {
            return;
        }
        let measured = &mut self.measured[n_active];
        let packet_ns = interval.busy_ns as f64 / interval.n_done as f64;
        let before = measured.packet_ns.unwrap_or(packet_ns);
        measured.packet_ns = Some(PACKET_FILTER * packet_ns + (1.0 - PACKET_FILTER) * before);
        let capacity_ns = elapsed_ns as f64 * n_active as f64;
        let is_fast = (self.states.iter().zip(&self.p_states))
            .all(|(&state, &p_state)| state != CState::Active || p_state == 0);
        let is_queued = f64::from(interval.queue_pkts) >= self.thresholds.wake;
        if is_fast && is_queued && interval.busy_ns as f64 >= SATURATED * capacity_ns {
            // As if busy all the time: the rest of it would hide what a worker of many adds.
            let rate = interval.n_done as f64 * n_active as f64 / interval.busy_ns as f64;
            let before = measured.saturated.unwrap_or(Saturated {
                rate,
                at: 0,
                n_intervals: 0,
            });
            measured.saturated = Some(Saturated {
                rate: PACKET_FILTER * rate + (1.0 - PACKET_FILTER) * before.rate,
                at: self.nth_interval,
                n_intervals: before.n_intervals.saturating_add(1),
            });
        }
    }

    /// Thresholds fall where the queue was nearly full, and rise after calm: section 6.3.5.
    fn adapt_thresholds(&mut self, queue_pkts: u32) {
        let longest = f64::from(self.max_since_interval.max(queue_pkts));
        self.max_since_interval = 0;
        if longest >= 0.95 * self.config.queue_pkts {
            // Below a tenth they would tell nothing from noise.
            if self.thresholds.high > self.largest.high / 10.0 {
                self.thresholds = self.thresholds.scaled(0.9);
            }
            self.n_calm = 0;
        } else if longest >= self.thresholds.wake {
            self.n_calm = 0;
        } else {
            self.n_calm += 1;
            if self.n_calm >= self.config.calm_intervals {
                self.n_calm = 0;
                let raised = self.thresholds.scaled(1.1);
                self.thresholds = if raised.high > self.largest.high {
                    self.largest
                } else {
                    raised
                };
            }
        }
    }

    /// Equations 6.5 and 6.6: the fewest workers that do what will come.
    fn n_needed(&mut self, n_active: usize) -> usize {
        let n_workers = self.config.n_workers;
        let Some(current_ns) = self.packet_ns(n_active) else {
            return n_active;
        };
        let per_interval = self.forecast_pkts() / self.config.interval_ns as f64;
        let rated = n_workers as f64 * self.config.rated_frequency;
        self.traffic_factor = per_interval * current_ns / rated;
        let is_enough = |&n: &usize| {
            let packet_ns = self.measured[n].packet_ns.unwrap_or(current_ns);
            let n_rated = per_interval * packet_ns / self.config.rated_frequency;
            n_rated <= n as f64 + self.config.rounds_down
        };
        (1..n_workers).find(is_enough).unwrap_or(n_workers)
    }

    /// What a packet takes with so many workers; measured with the nearest number if not
    /// with this.
    fn packet_ns(&self, n_active: usize) -> Option<f64> {
        let known = |&n: &usize| self.measured[n].packet_ns.is_some();
        let nearest = (1..self.measured.len())
            .filter(known)
            .min_by_key(|&n| n.abs_diff(n_active))?;
        self.measured[nearest].packet_ns
    }

    /// As many workers as wanted, less those that were measured to add nothing: the number
    /// before the first whose rate under saturation was not higher than what the next smaller
    /// known one does. That is its own rate under saturation, or what its packets' times come
    /// to if that is not known.
    fn without_lowering(&self, n_wanted: usize) -> usize {
        let n_wanted = n_wanted.clamp(1, self.config.n_workers);
        if self.config.gain == Gain::Assumed {
            return n_wanted;
        }
        let mut before = None;
        for (n, measured) in self.measured.iter().enumerate().take(n_wanted + 1) {
            let known = |it: &Saturated| it.n_intervals >= KNOWN_INTERVALS;
            let saturated = measured.saturated.filter(known).map(|it| it.rate);
            if let (Some((fewer, lower)), Some(rate)) = (before, saturated)
                && rate <= lower * (1.0 + ADDS * (n - fewer) as f64 / fewer as f64)
            {
                return fewer;
            }
            let by_packets = measured.packet_ns.map(|packet_ns| n as f64 / packet_ns);
            before = saturated.or(by_packets).map(|rate| (n, rate)).or(before);
        }
        n_wanted
    }

    const fn may_sleep(&self, n_active: usize) -> bool {
        n_active > 1 && self.nth_interval >= self.hold_until
    }

    fn deepen(&mut self, decision: &mut Decision) {
        let light = u64::from(self.config.light_intervals);
        for (idx, state) in self.states.iter_mut().enumerate() {
            if *state == CState::Light && self.nth_interval - self.light_since[idx] >= light {
                *state = CState::Deep;
                decision.deep.push(WorkerId(idx as u16));
            }
        }
    }

    fn wake(&mut self, n: usize, decision: &mut Decision) {
        for _ in 0..n {
            let sleepers = self.states.iter().enumerate();
            let shallowest = sleepers
                .filter(|&(_, &state)| state != CState::Active)
                .min_by_key(|&(idx, &state)| (state, idx));
            let Some((idx, _)) = shallowest else {
                return;
            };
            self.states[idx] = CState::Active;
            self.p_states[idx] = match self.config.frequency {
                FrequencyLever::Global => self.p_states[0],
                FrequencyLever::None | FrequencyLever::PerWorker => 0,
            };
            let worker = WorkerId(idx as u16);
            // One that would have gone deeper in the same breath just wakes.
            decision.deep.retain(|&it| it != worker);
            decision.wake.push(worker);
            if self.p_states[idx] != 0 {
                decision.p_states.push((worker, self.p_states[idx]));
            }
        }
    }

    fn sleep(&mut self, n: usize, decision: &mut Decision) {
        let active = (0..self.states.len()).rev();
        let active = active.filter(|&idx| self.states[idx] == CState::Active);
        let leaving: Vec<_> = active.take(n).collect();
        for idx in leaving {
            self.states[idx] = CState::Light;
            self.light_since[idx] = self.nth_interval;
            decision.light.push(WorkerId(idx as u16));
        }
    }

    /// The next lower frequency: of the fastest worker, or of all.
    fn slow_down(&mut self, decision: &mut Decision) {
        let last = self.config.n_p_states - 1;
        let fastest = self.active().min_by_key(|&idx| (self.p_states[idx], idx));
        if let Some(idx) = fastest.filter(|&idx| self.p_states[idx] < last) {
            self.set(idx, self.p_states[idx] + 1, decision);
        }
    }

    /// The next higher frequency: of the slowest worker, or of all. Whether there was one.
    fn speed_up(&mut self, decision: &mut Decision) -> bool {
        let slowest = (self.active()).max_by_key(|&idx| (self.p_states[idx], usize::MAX - idx));
        let Some(idx) = slowest.filter(|&idx| self.p_states[idx] > 0) else {
            return false;
        };
        self.set(idx, self.p_states[idx] - 1, decision);
        self.config.frequency != FrequencyLever::None
    }

    fn active(&self) -> impl Iterator<Item = usize> {
        let states = self.states.iter().enumerate();
        states.filter_map(|(idx, &state)| (state == CState::Active).then_some(idx))
    }

    fn set(&mut self, idx: usize, p_state: u8, decision: &mut Decision) {
        match self.config.frequency {
            FrequencyLever::None => {}
            FrequencyLever::PerWorker => {
                self.p_states[idx] = p_state;
                decision.p_states.push((WorkerId(idx as u16), p_state));
            }
            FrequencyLever::Global => {
                self.p_states.fill(p_state);
                let active = self.states.iter().enumerate();
                let active = active.filter(|&(_, &state)| state == CState::Active);
                let change = |(idx, _)| (WorkerId(idx as u16), p_state);
                decision.p_states.extend(active.map(change));
            }
        }
    }
}

#[cfg(test)]
mod tests;
