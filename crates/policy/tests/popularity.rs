//! What is measured of popularity, against popularity that is known: names asked for by
//! Zipf's law, independently of each other.

use tachonym_policy::model::{EvictionModel, FilterModel, Popularity};
use tachonym_policy::popularity::{Measurement, PopularityMeter};

/// SplitMix64 (Steele, Lea and Flood 2014), as numbers to draw and as hashes of names.
fn mixed(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Draws ranks by Zipf's law.
struct Zipf {
    /// The probability of each rank or a lower one.
    cumulated: Vec<f64>,
    n_drawn: u64,
    seed: u64,
}

impl Zipf {
    fn new(n_names: usize, alpha: f64, seed: u64) -> Self {
        let mut sum = 0.0;
        let mut cumulated: Vec<f64> = (1..=n_names)
            .map(|rank| {
                sum += (rank as f64).powf(-alpha);
                sum
            })
            .collect();
        cumulated.iter_mut().for_each(|c| *c /= sum);
        Self {
            cumulated,
            n_drawn: 0,
            seed,
        }
    }

    fn draw(&mut self) -> u64 {
        self.n_drawn += 1;
        let drawn = mixed(self.seed.wrapping_add(self.n_drawn << 20));
        let uniform = (drawn >> 11) as f64 / (1_u64 << 53) as f64;
        self.cumulated.partition_point(|&c| c < uniform) as u64
    }
}

/// What was asked for, and what a meter for a cache of so many Data makes of it.
struct Run {
    measured: Measurement,
    /// Requests for each name within what was measured.
    counts: Vec<u32>,
}

fn run(capacity: usize, (n_names, alpha): (usize, f64), n_requests: usize, seed: u64) -> Run {
    let mut meter = PopularityMeter::new(capacity, seed);
    let mut zipf = Zipf::new(n_names, alpha, seed);
    let asked: Vec<u64> = (0..n_requests).map(|_| zipf.draw()).collect();
    for &name in &asked {
        meter.handle_request(mixed(name ^ seed << 40));
    }
    let measured = meter.observed().measured();
    let mut counts = vec![0; n_names];
    for &name in &asked[n_requests - measured.n_requests as usize..] {
        counts[name as usize] += 1;
    }
    Run { measured, counts }
}

fn models(capacity: f64) -> [FilterModel; 4] {
    let fifo = |threshold, by_len| FilterModel {
        capacity,
        history_len: capacity * by_len,
        threshold,
        eviction: EvictionModel::FifoOrRandom,
    };
    let lru = FilterModel {
        eviction: EvictionModel::Lru,
        ..fifo(1, 1.0)
    };
    [fifo(1, 1.0), lru, fifo(2, 1.0), fifo(4, 4.0)]
}

/// How far hit ratios are from the true ones at most, of the models and the best static set.
fn greatest_error(measured: &Popularity, truth: &Popularity, capacity: f64) -> f64 {
    let by_model = models(capacity)
        .map(|model| model.expected(measured).hit_ratio - model.expected(truth).hit_ratio);
    let best = measured.best_hit_ratio(capacity) - truth.best_hit_ratio(capacity);
    let errors = by_model.into_iter().chain([best]);
    errors.map(f64::abs).fold(0.0, f64::max)
}

#[test]
fn hit_ratios_by_what_is_measured_are_those_by_what_is_true() {
    for (capacity, names) in [
        (10_000, (1_000_000, 0.8)),
        (10_000, (1_000_000, 1.0)),
        (3_000, (300_000, 0.6)),
        (1_000, (1_000_000, 1.2)),
    ] {
        let truth = Popularity::zipf(names.0 as u64, names.1);
        for seed in 1..=3 {
            let Run { measured, .. } = run(capacity, names, 40 * capacity, seed);
            let popularity = measured.popularity();
            // A store sixteen times as large keeps Data for longer than was measured.
            for (by_len, tolerance) in [(0.25, 0.02), (1.0, 0.02), (4.0, 0.04), (16.0, 0.07)] {
                let error = greatest_error(&popularity, &truth, by_len * capacity as f64);
                println!("{names:?}, {by_len} of {capacity}, seed {seed}: {error:.4}");
                assert!(error < tolerance, "{names:?}, {by_len}: {error}");
            }
        }
    }
}

#[test]
fn classes_have_as_many_names_as_were_asked_for_so_often() {
    for seed in 1..=3 {
        let Run { measured, counts } = run(10_000, (1_000_000, 0.8), 400_000, seed);
        assert!(measured.n_counted_names < 10_000, "a sample");
        let all: u64 = measured.classes.iter().map(|class| class.n_requests).sum();
        assert!(all.abs_diff(measured.n_requests) * 500 < measured.n_requests);
        for (from, to, tolerance) in [(1, 1, 0.04), (2, 3, 0.1), (4, 15, 0.15), (16, 150, 0.3)] {
            let counts = counts.iter().filter(|&&count| (from..=to).contains(&count));
            let n_true = counts.count() as f64;
            let classes = measured.classes.iter().filter(|class| {
                let count = (class.n_requests as f64 / class.n_names as f64).round() as u32;
                (from..=to).contains(&count)
            });
            let n_names: u64 = classes.map(|class| class.n_names).sum();
            let error = n_names as f64 / n_true - 1.0;
            println!("{from} to {to} times, seed {seed}: {n_names} of {n_true}");
            assert!(error.abs() < tolerance, "{from} to {to}: {error}");
        }
        let n_once = counts.iter().filter(|&&count| count == 1).count() as f64;
        let unseen = n_once / measured.n_requests as f64;
        assert!((measured.unseen_share() - unseen).abs() < 0.02);
    }
}

#[test]
fn of_few_names_all_counts_are_exact() {
    let Run { measured, counts } = run(100, (500, 0.8), 30_000, 1);
    let n_names = counts.iter().filter(|&&count| count > 0).count() as u64;
    assert_eq!(measured.n_counted_names, n_names);
    assert_eq!(measured.n_names(), n_names);
    let all: u64 = measured.classes.iter().map(|class| class.n_requests).sum();
    assert_eq!(all, measured.n_requests);
    let nothing = PopularityMeter::new(100, 1).observed().measured();
    assert_eq!((nothing.n_requests, nothing.classes.len()), (0, 0));
    assert_eq!(nothing.popularity().classes(), []);
    assert_eq!(nothing.unseen_share(), 0.0);
}

#[test]
fn names_that_are_never_asked_for_again_are_told_from_those_that_are() {
    // Half of all requests are for a thousand names, the others for one each.
    let mut meter = PopularityMeter::new(2_000, 1);
    for n in 0..100_000 {
        let name = if n % 2 == 0 {
            mixed(n) % 1_000
        } else {
            1_000 + n
        };
        meter.handle_request(mixed(name));
    }
    let measured = meter.observed().measured();
    assert!((measured.unseen_share() - 0.5).abs() < 0.01);
    let popularity = measured.popularity();
    let best = popularity.best_hit_ratio(1_000.0);
    assert!((best - 0.5).abs() < 0.01, "{best}");
    let [fifo, lru, twice, _] = models(2_000.0).map(|model| model.expected(&popularity));
    // Most of what comes is of no use, and takes the place of what is: equation 6 has 2,833
    // requests for which a Data stays, equation 5 0.293 of hits.
    assert!((fifo.hit_ratio - 0.293).abs() < 0.01, "{fifo:?}");
    assert!(
        lru.hit_ratio > fifo.hit_ratio && lru.hit_ratio < 0.5,
        "{lru:?}"
    );
    assert!(twice.hit_ratio > 0.47, "{twice:?}");
    assert!(twice.insertion_ratio < 0.06, "{twice:?}");
}
