//! When packets are gathered: only if that leaves their rate as it is.
//!
//! A sender with a window stops until it is answered, so waiting for more of its packets
//! only slows it down. A sender at a rate of its own goes on. A trial tells them apart:
//! slices of time with gathering and without take turns, and the rates are compared.
//! Gathering stays on if the rate does not fall, each wake-up serves more packets, and a
//! packet takes clearly less CPU time. The last cannot be taken for granted: on some virtual
//! machines a timed sleep costs more than the wake-ups that it saves. The trial is repeated
//! now and then, and gathering ends as soon as gathered packets become few.

use tachonym_packet::MonoNs;

use super::Wait;

/// Least time over which a rate is measured, in nanoseconds.
const WINDOW_NS: u64 = 4_000_000;
/// Length of a slice of a trial.
const SLICE_NS: u64 = 1_500_000;
/// Pairs of slices of a trial, without gathering and with it.
const N_PAIRS: usize = 6;
/// Bad pairs or windows in a row that end a trial or the gathering: a single one may be a
/// thread that was not scheduled.
const MAX_BAD: u32 = 2;
/// Least packets expected from the longest time of gathering, and least mean of them.
const MIN_PKTS: f64 = 3.0;
/// Packets that one wake-up is to serve.
const WANTED_PKTS: f64 = 24.0;
/// After a burst of this many packets the next follows without gathering: the loop is busy.
const FULL_BURST_PKTS: u64 = 32;
/// A shorter sleep costs more than it gathers, in nanoseconds.
const MIN_SLEEP_NS: u64 = 10_000;
/// A trial succeeds if the rate with gathering is at least this part of that without, by the
/// median of its pairs.
const KEPT_RATE: f64 = 0.92;
/// A pair below this part is bad.
const LOST_RATE: f64 = 0.7;
/// While gathering: a rate that falls to this part calls for a new trial.
const FALLEN_RATE: f64 = 0.6;
/// A wake-up with gathering serves at least this many times the packets of one without.
const MIN_GAIN: f64 = 1.3;
/// CPU time of a packet with gathering by that without, at most: less is not worth the delay.
const MAX_CPU: f64 = 0.75;
/// Windows of which the CPU time is not compared, and least number of those that follow.
const SKIPPED_WINDOWS: u32 = 2;
const TAKEN_WINDOWS: u32 = 4;
/// Shortest and longest time between two trials while gathering, in nanoseconds.
const HOLD_NS: [u64; 2] = [128_000_000, 1_024_000_000];
/// The same after trials that failed: in the end they take less than a thousandth of the time.
const BACK_OFF_NS: [u64; 2] = [64_000_000, 32_768_000_000];

/// Packets and waits over some time.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n_pkts: u64,
    n_waits: u64,
    lasted_ns: u64,
    cpu_ns: u64,
}

/// CPU time of a packet in windows of one kind that follow each other.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    n_windows: u32,
    /// The latest windows, the older the lighter.
    sums: Sums,
}

impl Cost {
    /// Takes a window, unless it still shows what came before: processors and hypervisors
    /// adapt to how long a thread sleeps.
    fn add(&mut self, window: &Sums) {
        self.n_windows = self.n_windows.saturating_add(1);
        if self.n_windows > SKIPPED_WINDOWS {
            self.sums.halve();
            self.sums.add(window);
        }
    }

    /// Whether enough windows were taken.
    fn is_known(&self) -> bool {
        self.n_windows >= SKIPPED_WINDOWS + TAKEN_WINDOWS
    }
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.n_pkts += other.n_pkts;
        self.n_waits += other.n_waits;
        self.lasted_ns += other.lasted_ns;
        self.cpu_ns += other.cpu_ns;
    }

    fn halve(&mut self) {
        for number in [
            &mut self.n_pkts,
            &mut self.n_waits,
            &mut self.lasted_ns,
            &mut self.cpu_ns,
        ] {
            *number /= 2;
        }
    }

    /// Packets a nanosecond.
    fn rate(&self) -> f64 {
        self.n_pkts as f64 / self.lasted_ns.max(1) as f64
    }

    fn cpu_by_pkt(&self) -> f64 {
        self.cpu_ns as f64 / self.n_pkts.max(1) as f64
    }

    fn pkts_by_wait(&self) -> f64 {
        self.n_pkts as f64 / self.n_waits.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Not gathering; the next trial begins at `until` at the earliest.
    Off { until: MonoNs },
    /// A trial.
    Trial(Trial),
    /// Gathering, with this rate in the trial.
    On {
        until: MonoNs,
        rate: f64,
        n_bad: u32,
    },
}

/// What a trial has found so far.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    /// The present slice gathers.
    is_gathering: bool,
    n_pairs: usize,
    /// The rate with gathering by that without, of each pair.
    kept: [f64; N_PAIRS],
    /// Bad pairs in a row.
    n_bad: u32,
    /// The slice without gathering of the present pair.
    slice: Sums,
    plain: Sums,
    gathered: Sums,
}

impl Trial {
    fn is_over(&self) -> bool {
        self.n_pairs == N_PAIRS || self.n_bad == MAX_BAD
    }

    /// Takes the slice that has ended.
    fn take(&mut self, sums: Sums) {
        match self.is_gathering {
            false => {
                self.plain.add(&sums);
                self.slice = sums;
            }
            true => {
                self.gathered.add(&sums);
                let kept = sums.rate() / self.slice.rate().max(f64::MIN_POSITIVE);
                self.kept[self.n_pairs] = kept;
                self.n_pairs += 1;
                self.n_bad = match kept < LOST_RATE {
                    true => self.n_bad + 1,
                    false => 0,
                };
            }
        }
        self.is_gathering = !self.is_gathering;
    }

    /// Whether gathering kept the rate, and served more packets by each wake-up.
    fn has_succeeded(&self) -> bool {
        let mut kept = self.kept;
        kept.sort_by(f64::total_cmp);
        let median = (kept[(N_PAIRS - 1) / 2] + kept[N_PAIRS / 2]) / 2.0;
        let by_wait = self.gathered.pkts_by_wait();
        self.n_pairs == N_PAIRS
            && self.n_bad < MAX_BAD
            && median >= KEPT_RATE
            && by_wait >= MIN_PKTS
            && by_wait >= MIN_GAIN * self.plain.pkts_by_wait()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Gathering {
    max_ns: u64,
    /// How long to gather at the present rate.
    gather_ns: u64,
    phase: Phase,
    /// The present slice or window.
    sums: Sums,
    since: MonoNs,
    /// CPU time of the thread at that time.
    cpu_since_ns: u64,
    /// Without gathering, since it was last off, and with gathering, since it is on.
    plain_cost: Cost,
    cost: Cost,
    hold_ns: u64,
    back_off_ns: u64,
    /// End of the latest wait: a period of gathering begins there.
    period_began: MonoNs,
}

impl Gathering {
    pub(super) fn new(max_ns: u64, now: MonoNs) -> Self {
        Self {
            max_ns,
            gather_ns: max_ns,
            phase: Phase::Off { until: now },
            sums: Sums::default(),
            since: now,
            cpu_since_ns: 0,
            plain_cost: Cost::default(),
            cost: Cost::default(),
            hold_ns: HOLD_NS[0],
            back_off_ns: BACK_OFF_NS[0],
            period_began: now,
        }
    }

    /// Whether packets are gathered now.
    pub(super) const fn is_on(&self) -> bool {
        match self.phase {
            Phase::Off { .. } => false,
            Phase::Trial(trial) => trial.is_gathering,
            Phase::On { .. } => true,
        }
    }

    /// How long packets are gathered now.
    pub(super) const fn gather_ns(&self) -> u64 {
        match self.is_on() {
            true => self.gather_ns,
            false => 0,
        }
    }

    /// The gathering before a burst of `n_new` packets is followed by, if it is by more.
    pub(super) fn plan(&self, now: MonoNs, n_new: u64) -> Option<Wait> {
        if !self.is_on() || n_new >= FULL_BURST_PKTS {
            return None;
        }
        let elapsed_ns = now.saturating_since(self.period_began).as_nanos() as u64;
        let ns = self.gather_ns.saturating_sub(elapsed_ns);
        Some(match ns < MIN_SLEEP_NS {
            true => Wait::Poll,
            false => Wait::Gather { ns },
        })
    }

    /// `n_new` packets have come since the last call, after `wait`, which ended at `ended`.
    /// `cpu_ns` reads the CPU time of the thread.
    pub(super) fn note(
        &mut self,
        now: MonoNs,
        ended: MonoNs,
        n_new: u64,
        wait: Wait,
        cpu_ns: impl FnOnce() -> u64,
    ) {
        if self.max_ns == 0 {
            return;
        }
        self.sums.n_pkts += n_new;
        self.sums.n_waits += u64::from(!matches!(wait, Wait::Poll | Wait::Watch { .. }));
        self.period_began = ended;
        let lasted_ns = now.saturating_since(self.since).as_nanos() as u64;
        let least_ns = match self.phase {
            Phase::Trial(_) => SLICE_NS,
            Phase::Off { .. } | Phase::On { .. } => WINDOW_NS,
        };
        if lasted_ns < least_ns {
            return;
        }
        let cpu_ns = cpu_ns();
        let sums = Sums {
            lasted_ns,
            cpu_ns: cpu_ns.saturating_sub(self.cpu_since_ns),
            ..self.sums
        };
        self.sums = Sums::default();
        (self.since, self.cpu_since_ns) = (now, cpu_ns);
        self.phase = self.after(now, sums);
    }

    /// The phase after a slice or window.
    fn after(&mut self, now: MonoNs, sums: Sums) -> Phase {
        match self.phase {
            Phase::Off { until } => {
                self.plain_cost.add(&sums);
                let is_time = now >= until && self.plain_cost.is_known();
                if !is_time || !self.is_worth_trying(sums) {
                    return self.phase;
                }
                self.set_time(sums.rate());
                Phase::Trial(Trial::default())
            }
            Phase::Trial(mut trial) => {
                trial.take(sums);
                match trial.is_over() {
                    false => Phase::Trial(trial),
                    true if trial.has_succeeded() => self.begin(now, trial.gathered.rate()),
                    true => self.back_off(now),
                }
            }
            Phase::On { until, rate, n_bad } => {
                let is_bad = sums.rate() < FALLEN_RATE * rate || sums.pkts_by_wait() < MIN_PKTS;
                let n_bad = if is_bad { n_bad + 1 } else { 0 };
                if n_bad == MAX_BAD {
                    return self.end(now);
                }
                self.cost.add(&sums);
                if self.cost.is_known() && !self.saves_cpu() {
                    return self.back_off(now);
                }
                if !is_bad {
                    self.set_time(sums.rate());
                }
                match now >= until {
                    true => {
                        let hold_ns = (2 * self.hold_ns).min(HOLD_NS[1]);
                        let off = self.end(now);
                        (self.hold_ns, self.back_off_ns) = (hold_ns, BACK_OFF_NS[0]);
                        off
                    }
                    false => Phase::On { until, rate, n_bad },
                }
            }
        }
    }

    /// Gathers from now on, at this rate.
    fn begin(&mut self, now: MonoNs, rate: f64) -> Phase {
        let until = MonoNs(now.0.saturating_add(self.hold_ns));
        self.cost = Cost::default();
        Phase::On {
            until,
            rate,
            n_bad: 0,
        }
    }

    /// Gathers no more; another trial may follow soon.
    fn end(&mut self, now: MonoNs) -> Phase {
        self.hold_ns = HOLD_NS[0];
        self.plain_cost = Cost::default();
        Phase::Off { until: now }
    }

    /// Gathers no more: that slows packets down or saves nothing.
    fn back_off(&mut self, now: MonoNs) -> Phase {
        let until = MonoNs(now.0.saturating_add(self.back_off_ns));
        self.back_off_ns = (2 * self.back_off_ns).min(BACK_OFF_NS[1]);
        self.end(until)
    }

    fn saves_cpu(&self) -> bool {
        self.cost.sums.cpu_by_pkt() <= MAX_CPU * self.plain_cost.sums.cpu_by_pkt()
    }

    /// Whether the longest gathering would bring enough, and waits bring few.
    fn is_worth_trying(&self, sums: Sums) -> bool {
        let expected = sums.rate() * self.max_ns as f64;
        expected >= MIN_PKTS && sums.n_waits > 0 && sums.pkts_by_wait() < WANTED_PKTS
    }

    /// Gathers for as long as the wanted packets take at this rate.
    fn set_time(&mut self, rate: f64) {
        let ns = WANTED_PKTS / rate.max(f64::MIN_POSITIVE);
        self.gather_ns = (ns as u64).clamp(MIN_SLEEP_NS.min(self.max_ns), self.max_ns);
    }
}
