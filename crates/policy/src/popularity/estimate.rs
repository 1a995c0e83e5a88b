//! What two samples of requests say of all names.
//!
//! The log of requests tells what share of all requests is for names that it has never,
//! once, twice and so on; what names there are among those, the counted ones tell (this is
//! stratification after sampling). Names that the log has often are as popular as it says.
//!
//! How popular names are is not how often they were asked for within a window, since chance
//! has its part in that: of a thousand names that are asked for 0.3 times in a window on
//! average, some forty are asked for twice or more, and most not at
//! all. So popularity is what makes the counts likely ([`Measurement::popularity`]).

use std::collections::BTreeMap;

use super::meter::{self, Observation};
use crate::model::{NameClass, Popularity};

/// Times that a name is noted whose share the log tells; names that are noted less often
/// are told apart by how often.
const MIN_NOTED: usize = 4;

/// Counted names that tell what others like them are, at least.
const MIN_ALIKE: usize = 8;

/// Counts up to this are told apart, and made good for chance. That of more is at most an
/// eighth of the count, as a rule, and hits do not hang on it.
const MAX_SMALL_COUNT: u32 = 64;

/// Classes of greater counts, from one to its double.
const CLASSES_PER_OCTAVE: f64 = 8.0;

/// The least popular names that are told from those that are never asked for again: one
/// request in so many windows. Its logarithm by two.
const LEAST_LOG2: i32 = -6;
/// Classes of popularity, from one to its double, and the steps in which they are found.
const GRID_PER_OCTAVE: i32 = 3;
const N_STEPS: usize = 300;

/// Names that were asked for about as often as each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredClass {
    /// How many, of all names: an estimate, if not all were counted.
    pub n_names: u64,
    /// Requests for all of them together.
    pub n_requests: u64,
}

/// How often names were asked for within a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Requests in the window.
    pub n_requests: u64,
    /// Names whose requests were counted one by one.
    pub n_counted_names: u64,
    /// The names that were asked for, at most some 500 classes: those asked for least first.
    pub classes: Vec<MeasuredClass>,
}

impl Observation {
    /// What this says of all names.
    #[must_use]
    pub fn measured(&self) -> Measurement {
        Measurement::of(self)
    }
}

impl Measurement {
    fn of(observation: &Observation) -> Self {
        let windows = &observation.windows;
        let n_requests = windows.iter().map(|window| window.n_requests).sum();
        let below = windows.iter().map(|w| w.below).min().unwrap_or(0);
        // Names below both bounds were counted in both windows.
        let mut counts = BTreeMap::<u64, u64>::new();
        let names = windows.iter().flat_map(|window| &window.names);
        for &(hash, count) in names.filter(|(hash, _)| *hash < below) {
            *counts.entry(hash).or_default() += u64::from(count);
        }
        let n_counted_names = counts.len() as u64;
        let mut by_class = Classes::default();
        if below == u64::MAX {
            // All were counted.
            counts
                .values()
                .for_each(|&count| by_class.add(count as f64, 1.0));
        } else {
            let noted = Noted::of(observation);
            if noted.n_noted == 0 {
                // Of all names as many as have so small a hash were counted.
                let scale = u64::MAX as f64 / below.max(1) as f64;
                counts
                    .values()
                    .for_each(|&count| by_class.add(count as f64, scale));
            } else {
                noted.add_to(&mut by_class, n_requests as f64, &counts);
            }
        }
        Self {
            n_requests,
            n_counted_names,
            classes: by_class.rounded(),
        }
    }

    /// How popular names are, most likely: what the model asks for.
    ///
    /// Requests for a name are taken for independent of each other, and a mixture of
    /// Poisson distributions is fitted to the counts by the method of expectation and
    /// maximisation (Dempster, Laird and Rubin 1977, section 4.3), names that were not
    /// asked for being counted among the unseen. What is asked for less than 64 times less
    /// often than once in a window is taken to be asked for as often as that. Takes some
    /// milliseconds.
    #[must_use]
    pub fn popularity(&self) -> Popularity {
        let n_requests = self.n_requests as f64;
        let mut classes = Vec::new();
        let mut small = vec![0.0; MAX_SMALL_COUNT as usize];
        for class in &self.classes {
            let (n_names, count) = class.names_and_count();
            match small.get_mut((count.round() as usize).wrapping_sub(1)) {
                Some(n_of_count) => *n_of_count += n_names,
                None => classes.push(NameClass {
                    n_names,
                    share: count / n_requests,
                }),
            }
        }
        let fitted = fitted(&small).map(|(n_names, mean)| NameClass {
            n_names,
            share: mean / n_requests,
        });
        classes.extend(fitted);
        Popularity::new(classes)
    }

    /// Names that were asked for within the window.
    #[must_use]
    pub fn n_names(&self) -> u64 {
        self.classes.iter().map(|class| class.n_names).sum()
    }

    /// The share of requests that were for names asked for once: as much as the next
    /// request is likely to be for a name not seen yet (Good, "The population frequencies
    /// of species and the estimation of population parameters", Biometrika 1953). Of them
    /// popularity is known by conjecture only. 0 to 1.
    #[must_use]
    pub fn unseen_share(&self) -> f64 {
        let is_once = |class: &&MeasuredClass| class.names_and_count().1 < 1.5;
        let once = self.classes.iter().find(is_once);
        let n_once = once.map_or(0, |class| class.n_requests);
        n_once as f64 / self.n_requests.max(1) as f64
    }
}

impl MeasuredClass {
    /// How many names, and how often each was asked for.
    fn names_and_count(&self) -> (f64, f64) {
        let n_names = self.n_names as f64;
        (n_names, self.n_requests as f64 / n_names.max(1.0))
    }
}

/// Names and requests by class, of which the number says how often a name was asked for.
#[derive(Default)]
struct Classes(BTreeMap<u32, (f64, f64)>);

impl Classes {
    /// So many names that were asked for so often each.
    fn add(&mut self, count: f64, n_names: f64) {
        let class = if count < f64::from(MAX_SMALL_COUNT) + 0.5 {
            (count.round() as u32).max(1)
        } else {
            MAX_SMALL_COUNT + (CLASSES_PER_OCTAVE * count.log2()) as u32
        };
        let sums = self.0.entry(class).or_default();
        sums.0 += n_names;
        sums.1 += n_names * count;
    }

    fn rounded(self) -> Vec<MeasuredClass> {
        let classes = self
            .0
            .into_values()
            .map(|(n_names, n_requests)| MeasuredClass {
                n_names: n_names.round() as u64,
                n_requests: n_requests.round() as u64,
            });
        classes.filter(|class| class.n_names > 0).collect()
    }
}

/// The log of requests, or the better of two that are not alike.
struct Noted {
    counts: BTreeMap<meter::Noted, usize>,
    n_noted: usize,
}

impl Noted {
    fn of(observation: &Observation) -> Self {
        let [a, b] = &observation.windows;
        // Requests for one that is noted: the same in both, unless the cache has another
        // size by now.
        let ratio =
            (a.n_requests as f64 * b.log.len() as f64) / (b.n_requests as f64 * a.log.len() as f64);
        let logs = if (0.7..1.4).contains(&ratio) {
            [&a.log[..], &b.log]
        } else if a.n_requests > b.n_requests {
            [&a.log[..], &[]]
        } else {
            [&b.log[..], &[]]
        };
        let mut counts = BTreeMap::new();
        for &hash in logs.into_iter().flatten() {
            *counts.entry(hash).or_default() += 1;
        }
        Self {
            counts,
            n_noted: logs.map(<[meter::Noted]>::len).iter().sum(),
        }
    }

    /// Adds all names, of which those in `counts` were counted.
    ///
    /// What share of the requests outside the log is for names that were noted so often
    /// follows from leaving one out (Good 1953): as many as of the requests in the log, each
    /// if it were not there.
    fn add_to(&self, classes: &mut Classes, n_requests: f64, counts: &BTreeMap<u64, u64>) {
        let times_noted = |hash: u64| self.counts.get(&meter::noted(hash)).copied().unwrap_or(0);
        let n_noted = self.n_noted as f64;
        let beside = (n_requests - n_noted).max(0.0) / n_noted.max(1.0);
        let mut n_names = [0.0_f64; MIN_NOTED + 1];
        for &times in self.counts.values() {
            n_names[times.min(MIN_NOTED)] += 1.0;
        }
        let mut counted = [const { Vec::new() }; MIN_NOTED];
        for (&hash, &count) in counts {
            if let Some(alike) = counted.get_mut(times_noted(hash)) {
                alike.push(count as f64);
            }
        }
        let n_exactly = |times| self.counts.values().filter(|&&n| n == times).count() as f64;
        for (times, alike) in counted.iter().enumerate() {
            let n_requests = beside * (times + 1) as f64 * n_exactly(times + 1)
                + times as f64 * n_exactly(times);
            let n_counted: f64 = alike.iter().sum();
            if times > 0 && alike.len() < MIN_ALIKE {
                classes.add(n_requests / n_names[times].max(1.0), n_names[times]);
            } else {
                let scale = n_requests / n_counted.max(1.0);
                alike.iter().for_each(|&count| classes.add(count, scale));
            }
        }
        // Of those that are noted often enough, the ones that just are owe it to luck: each
        // has as much less than its count says as all have together.
        let less = MIN_NOTED as f64 * n_exactly(MIN_NOTED) / n_names[MIN_NOTED].max(1.0);
        for &times in self.counts.values().filter(|&&n| n >= MIN_NOTED) {
            let times = times as f64;
            classes.add(times + (times - less) * beside, 1.0);
        }
    }
}

/// How many names are asked for how often on average, if `n_of_count[k - 1]` of them were
/// asked for `k` times.
fn fitted(n_of_count: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    let greatest = (MAX_SMALL_COUNT.ilog2() as i32 + 1) * GRID_PER_OCTAVE;
    let grid = LEAST_LOG2 * GRID_PER_OCTAVE..=greatest;
    let means: Vec<f64> = grid
        .map(|step| (f64::from(step) / f64::from(GRID_PER_OCTAVE)).exp2())
        .collect();
    // The probability of a count, of names that are asked for at all.
    let likelihoods: Vec<Vec<f64>> = (means.iter())
        .map(|&mean| {
            let mut probability = (-mean).exp() / -(-mean).exp_m1();
            let counts = (1..=n_of_count.len()).map(|count| {
                probability *= mean / count as f64;
                probability
            });
            counts.collect()
        })
        .collect();
    let n_seen: f64 = n_of_count.iter().sum();
    let mut seen = vec![n_seen / means.len() as f64; means.len()];
    for _ in 0..N_STEPS {
        let mut next = vec![0.0; means.len()];
        for (idx, &n_names) in n_of_count.iter().enumerate().filter(|(_, n)| **n > 0.0) {
            let parts = seen.iter().zip(&likelihoods).map(|(n, l)| n * l[idx]);
            let sum: f64 = parts.clone().sum();
            if sum > 0.0 {
                for (next, part) in next.iter_mut().zip(parts) {
                    *next += n_names * part / sum;
                }
            }
        }
        seen = next;
    }
    // Those that were not asked for are added.
    let all = seen.into_iter().zip(means);
    all.map(|(n_seen, mean)| (n_seen / -(-mean).exp_m1(), mean))
}
