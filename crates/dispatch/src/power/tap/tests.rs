//! What TAP decides, interval by interval.

use super::*;

const INTERVAL_NS: u64 = 500_000;

/// Feeds intervals of packets that take 10 µs each.
struct Bed {
    tap: Tap,
    now_ns: u64,
}

impl Bed {
    fn new(config: TapConfig) -> Self {
        Self {
            tap: Tap::new(config),
            now_ns: 0,
        }
    }

    fn interval(&mut self, n_arrived: u64, n_done: u64, queue_pkts: u32) -> Decision {
        self.now_ns += self.tap.config().interval_ns;
        self.tap.handle_interval(&Interval {
            now_ns: self.now_ns,
            n_arrived,
            n_done,
            busy_ns: n_done * 10_000,
            queue_pkts,
        })
    }

    /// Packets that keep all busy and rates that depend on the number of workers.
    fn saturated(&mut self, rates: &[u64]) -> Decision {
        let n_active = self.tap.n_active();
        self.now_ns += INTERVAL_NS;
        self.tap.handle_interval(&Interval {
            now_ns: self.now_ns,
            n_arrived: 1_000,
            n_done: rates[n_active],
            busy_ns: INTERVAL_NS * n_active as u64,
            queue_pkts: 60,
        })
    }
}

#[test]
fn as_many_run_as_the_forecast_needs_rounded_up() {
    let mut bed = Bed::new(TapConfig::published(8));
    // 120 packets of 10 µs in 500 µs: 2.4 workers.
    let decision = bed.interval(120, 120, 0);
    assert_eq!(decision.n_active, 3);
    assert_eq!(decision.light, [7, 6, 5, 4, 3].map(WorkerId));
    assert!((bed.tap.traffic_factor() - 0.3).abs() < 1e-9);
}

#[test]
fn workers_are_counted_by_frequency_and_rounding() {
    let n_active = |rounds_down, rated_frequency| {
        let mut bed = Bed::new(TapConfig {
            rounds_down,
            rated_frequency,
            ..TapConfig::published(8)
        });
        // 2.4 workers at P0.
        bed.interval(120, 120, 0).n_active
    };
    assert_eq!(n_active(0.5, 1.0), 2);
    assert_eq!(n_active(0.3, 1.0), 3);
    assert_eq!(n_active(0.0, 0.65), 4);
}

#[test]
fn light_sleep_lasts_two_intervals() {
    let mut bed = Bed::new(TapConfig::published(2));
    assert_eq!(bed.interval(10, 10, 0).light, [WorkerId(1)]);
    assert!(bed.interval(10, 10, 0).is_empty());
    assert_eq!(bed.interval(10, 10, 0).deep, [WorkerId(1)]);
    assert_eq!(bed.tap.states(), [CState::Active, CState::Deep]);
    assert_eq!(bed.interval(300, 50, 0).wake, [WorkerId(1)]);
}

#[test]
fn one_runs_at_rest() {
    let mut bed = Bed::new(TapConfig::published(4));
    bed.interval(10, 10, 0);
    (0..100).for_each(|_| drop(bed.interval(0, 0, 0)));
    assert_eq!(bed.tap.n_active(), 1);
}

#[test]
fn the_fastest_slows_first_and_the_slowest_speeds_up_first() {
    let mut tap = Tap::new(TapConfig::published(2));
    assert_eq!(tap.handle_step().p_states, [(WorkerId(0), 1)]);
    assert_eq!(tap.handle_step().p_states, [(WorkerId(1), 1)]);
    assert_eq!(tap.handle_step().p_states, [(WorkerId(0), 2)]);
    (0..10).for_each(|_| drop(tap.handle_step()));
    assert_eq!(tap.p_states(), [4, 4]);
    (0..400).for_each(|_| tap.sample_queue(60));
    assert_eq!(tap.handle_step().p_states, [(WorkerId(0), 3)]);
    assert_eq!(tap.handle_step().p_states, [(WorkerId(1), 3)]);
}

#[test]
fn all_change_together_with_one_frequency() {
    let mut tap = Tap::new(TapConfig {
        frequency: FrequencyLever::Global,
        ..TapConfig::published(2)
    });
    let both = [(WorkerId(0), 1), (WorkerId(1), 1)];
    assert_eq!(tap.handle_step().p_states, both);
}

#[test]
fn a_worker_wakes_when_all_run_at_p0() {
    for (frequency, n_steps) in [(FrequencyLever::PerWorker, 1), (FrequencyLever::None, 0)] {
        let config = TapConfig::published(2);
        let mut bed = Bed::new(TapConfig {
            frequency,
            ..config
        });
        bed.interval(10, 10, 0);
        bed.tap.handle_step();
        (0..400).for_each(|_| bed.tap.sample_queue(60));
        for _ in 0..n_steps {
            assert!(bed.tap.handle_step().wake.is_empty());
            bed.tap.sample_queue(61);
        }
        assert_eq!(bed.tap.handle_step().wake, [WorkerId(1)]);
    }
}

#[test]
fn the_queue_wakes_one_worker_a_wake_up_and_only_while_it_grows() {
    let woken = |wake_rule, lens: [u32; 6]| {
        let mut bed = Bed::new(TapConfig {
            frequency: FrequencyLever::None,
            wake_rule,
            ..TapConfig::published(8)
        });
        bed.interval(10, 10, 0);
        (0..400).for_each(|_| bed.tap.sample_queue(60));
        bed.tap.handle_step();
        lens.map(|len| {
            bed.tap.sample_queue(len);
            bed.tap.handle_step().wake.len()
        })
    };
    let grows = [61, 62, 63, 64, 65, 66];
    // The first woke at the step before; 200 µs are four steps.
    assert_eq!(woken(WakeRule::Growing, grows), [0, 0, 0, 1, 0, 0]);
    assert_eq!(woken(WakeRule::EachStep, grows), [1; 6]);
    let drains = [59, 58, 57, 56, 55, 54];
    assert_eq!(woken(WakeRule::Growing, drains), [0; 6]);
}

#[test]
fn the_queue_length_is_filtered() {
    let mut tap = Tap::new(TapConfig::published(1));
    tap.sample_queue(80);
    assert!((tap.filtered_pkts() - 2.0).abs() < 1e-12);
    tap.sample_queue(0);
    assert!((tap.filtered_pkts() - 1.95).abs() < 1e-12);
}

#[test]
fn thresholds_fall_when_nearly_full_and_rise_after_ten_calm_intervals() {
    let mut bed = Bed::new(TapConfig::published(2));
    let Thresholds { low, high, wake } = bed.tap.thresholds();
    assert_eq!([low, high, wake], [10.0, 40.0, 40.0]);
    bed.tap.sample_queue(76);
    bed.interval(10, 10, 0);
    assert!((bed.tap.thresholds().high - 36.0).abs() < 1e-9);
    assert!((bed.tap.thresholds().low - 9.0).abs() < 1e-9);
    (0..9).for_each(|_| drop(bed.interval(10, 10, 0)));
    assert!((bed.tap.thresholds().wake - 36.0).abs() < 1e-9);
    bed.interval(10, 10, 0);
    assert!((bed.tap.thresholds().wake - 39.6).abs() < 1e-9);
    (0..10).for_each(|_| drop(bed.interval(10, 10, 0)));
    assert!((bed.tap.thresholds().wake - 40.0).abs() < 1e-9);
    (0..1_000).for_each(|_| drop(bed.interval(10, 10, 80)));
    assert!(bed.tap.thresholds().high > 3.0);
}

#[test]
fn no_worker_is_woken_that_lowers_the_rate_until_that_is_forgotten() {
    let mut bed = Bed::new(TapConfig {
        forget_intervals: 100,
        gain: Gain::Measured,
        ..TapConfig::published(2)
    });
    // One does 50 an interval; two together 32.
    let rates = [0, 50, 32];
    (0..3).for_each(|_| drop(bed.interval(10, 10, 0)));
    assert_eq!(bed.tap.n_active(), 1);
    let mut n_with_two = 0;
    let mut n_wakes = Vec::new();
    for nth in 0..400 {
        let decision = bed.saturated(&rates);
        n_with_two += u32::from(decision.n_active == 2);
        if !decision.wake.is_empty() {
            n_wakes.push(nth);
        }
    }
    // It is tried, measured, and tried again once that is forgotten.
    assert!((2..=5).contains(&n_wakes.len()), "{n_wakes:?}");
    assert!(n_wakes.windows(2).all(|it| it[1] - it[0] >= 100));
    // Eight intervals make a rate known, each time.
    assert!(n_with_two < 45, "{n_with_two}");
}

#[test]
fn workers_that_raise_the_rate_all_run() {
    let mut bed = Bed::new(TapConfig {
        gain: Gain::Measured,
        ..TapConfig::published(4)
    });
    bed.interval(10, 10, 0);
    (0..200).for_each(|_| drop(bed.saturated(&[0, 50, 95, 130, 150])));
    assert_eq!(bed.tap.n_active(), 4);
}

#[test]
fn one_of_many_that_adds_little_is_not_refused() {
    let n_workers = 32;
    let mut bed = Bed::new(TapConfig {
        frequency: FrequencyLever::None,
        gain: Gain::Measured,
        wake_rule: WakeRule::EachStep,
        hold_intervals: 1_000,
        ..TapConfig::published(n_workers)
    });
    (0..3).for_each(|_| drop(bed.interval(10, 10, 0)));
    assert_eq!(bed.tap.n_active(), 1);
    for _ in 1..n_workers {
        (0..400).for_each(|_| bed.tap.sample_queue(60));
        bed.tap.handle_step();
        let n_active = bed.tap.n_active() as u64;
        // An even number is busy for 96 % of the time: short by more than a worker of 32 adds.
        let busy_ns = INTERVAL_NS * n_active / 100 * (96 + 4 * (n_active % 2));
        for _ in 0..12 {
            bed.now_ns += INTERVAL_NS;
            bed.tap.handle_interval(&Interval {
                now_ns: bed.now_ns,
                n_arrived: busy_ns / 10_000,
                n_done: busy_ns / 10_000,
                busy_ns,
                queue_pkts: 60,
            });
        }
    }
    assert_eq!(bed.tap.n_active(), n_workers);
}

#[test]
fn all_run_without_sleep() {
    let mut bed = Bed::new(TapConfig {
        sleep: SleepLever::AlwaysOn,
        ..TapConfig::published(4)
    });
    (0..10).for_each(|_| drop(bed.interval(1, 1, 0)));
    assert_eq!(bed.tap.n_active(), 4);
}
