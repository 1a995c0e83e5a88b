//! Workloads and policies by name, and simulations of many pairs of them.
//!
//! Owns how large the published workloads are, and how they shrink so that an experiment
//! takes seconds: shares, exponents and sessions at a time stay, and sizes of caches are
//! reckoned by the number of objects.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, bail};
use tachonym_bench::{Context, cpu};
use tachonym_policy::{AdmissionKind, CountersKind, EvictionKind, PolicyConfig};

use super::simulate::{Counts, Simulation};
use super::workload::{Independent, Mixed, Scans, Video};
use crate::workloads::Requests;

/// Objects of the web workload.
pub(super) const N_WEB: u32 = 10_000_000;
/// Chunks of all videos.
const N_CHUNKS: u32 = 100_000_000;
/// Videos.
const N_VIDEOS: u32 = 10_000;
/// Sessions that begin in a second, and chunks that each asks for in a second.
const SESSIONS_PER_S: f64 = 0.5;
const CHUNKS_PER_S: f64 = 625.0;
/// Share of the requests that are for the web where it is mixed with scans.
const WEB_SHARE: f64 = 0.7;

/// Exponent of all popularity.
pub(super) const ALPHA: f64 = 0.8;

/// What asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workload {
    /// 10^7 objects of Zipf popularity 0.8.
    Web,
    /// 10^4 videos of 10^4 chunks.
    Video,
    /// Web and video.
    Mixed,
    /// Web with 0.7 of the requests, and scans of 1000 objects that are asked for once.
    Scans,
    /// Web with 0.7 of the requests, and objects that are asked for once.
    OneTimers,
    /// Web whose objects become other ones little by little: 10^4 ranks every 2·10^5
    /// requests.
    Drift,
}

impl Workload {
    const ALL: [Self; 6] = [
        Self::Web,
        Self::Video,
        Self::Mixed,
        Self::Scans,
        Self::OneTimers,
        Self::Drift,
    ];

    /// The workload of a word.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn named(word: &str) -> anyhow::Result<Self> {
        match Self::ALL.into_iter().find(|it| it.label() == word) {
            Some(workload) => Ok(workload),
            None => {
                let words = Self::ALL.map(Self::label).join(", ");
                bail!("unknown workload {word}; use one of {words}")
            }
        }
    }

    /// The word for it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Video => "video",
            Self::Mixed => "mixed",
            Self::Scans => "scans",
            Self::OneTimers => "one-timers",
            Self::Drift => "drift",
        }
    }

    /// Objects with numbers, of a workload that is a `shrink`-th of the published one.
    pub(super) const fn n_objects(self, shrink: u32) -> u32 {
        let web = n_web(shrink);
        match self {
            Self::Web | Self::Drift => web,
            Self::Video => N_VIDEOS * n_chunks_by_video(shrink),
            Self::Mixed => web + N_VIDEOS * n_chunks_by_video(shrink),
            Self::Scans | Self::OneTimers => 4 * web,
        }
    }

    /// Objects that sizes of caches are a share of: all but those that are asked for once.
    pub(super) const fn n_cacheable(self, shrink: u32) -> u32 {
        match self {
            Self::Scans | Self::OneTimers => n_web(shrink),
            _ => self.n_objects(shrink),
        }
    }

    /// Its requests. Where it is mixed with video, web has `web_share` of them.
    pub(super) fn requests(self, shrink: u32, web_share: f64, seed: u64) -> Source {
        let n_web = n_web(shrink);
        let web = || Independent::new(n_web, ALPHA, seed);
        let video = || {
            let n_chunks = n_chunks_by_video(shrink);
            // Sessions last as long as the published ones.
            let chunks_per_s =
                CHUNKS_PER_S * f64::from(n_chunks) * f64::from(N_VIDEOS) / f64::from(N_CHUNKS);
            Video::new(
                N_VIDEOS,
                n_chunks,
                ALPHA,
                SESSIONS_PER_S,
                chunks_per_s,
                seed,
            )
        };
        let scans = |len| Scans::new(web(), n_web, 3 * n_web, 1.0 - WEB_SHARE, len, seed);
        match self {
            Self::Web => Source::Web(web()),
            Self::Video => Source::Video(video()),
            Self::Mixed => Source::Mixed(Mixed::new(web(), n_web, web_share, video(), seed)),
            Self::Scans => Source::Scans(scans(1_000)),
            Self::OneTimers => Source::Scans(scans(1)),
            Self::Drift => Source::Drift(Drift {
                popular: web(),
                n_ranks: (DRIFT_RANKS / shrink).max(1),
                every: (DRIFT_EVERY / shrink as usize).max(1),
                n_until_shift: 0,
            }),
        }
    }
}

const fn n_web(shrink: u32) -> u32 {
    let n = N_WEB / shrink;
    if n == 0 { 1 } else { n }
}

const fn n_chunks_by_video(shrink: u32) -> u32 {
    let n = N_CHUNKS / N_VIDEOS / shrink;
    if n == 0 { 1 } else { n }
}

/// Requests of a workload.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Web(Independent),
    Video(Video),
    Mixed(Mixed<Independent, Video>),
    Scans(Scans),
    Drift(Drift),
}

impl Requests for Source {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        match self {
            Self::Web(requests) => requests.fill(objects),
            Self::Video(requests) => requests.fill(objects),
            Self::Mixed(requests) => requests.fill(objects),
            Self::Scans(requests) => requests.fill(objects),
            Self::Drift(requests) => requests.fill(objects),
        }
    }
}

/// Popularity that drifts.
#[derive(Clone, Debug)]
pub(super) struct Drift {
    popular: Independent,
    n_ranks: u32,
    every: usize,
    n_until_shift: usize,
}

const DRIFT_EVERY: usize = 200_000;
const DRIFT_RANKS: u32 = 10_000;

impl Requests for Drift {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        let mut n_drawn = 0;
        while n_drawn < objects.len() {
            if self.n_until_shift == 0 {
                self.popular.shift_popularity(self.n_ranks);
                self.n_until_shift = self.every;
            }
            let n = self.n_until_shift.min(objects.len() - n_drawn);
            self.popular.fill(&mut objects[n_drawn..n_drawn + n]);
            self.n_until_shift -= n;
            n_drawn += n;
        }
        n_drawn
    }
}

/// The words of a text with commas between them.
pub(super) fn words(context: &Context, parameter: &str) -> Vec<String> {
    let words = context.text(parameter).split(',');
    words.map(|word| word.trim().to_owned()).collect()
}

/// A policy by its name: an eviction, or an admission, a slash and an eviction. Of Filter
/// the counters may be named, as in filter-exact/fifo, and the threshold and the history by
/// the size of the cache, as in filter:3:2/fifo; of k-LRU k, as in k-lru:3/lru.
///
/// # Errors
/// If there is none of that name.
pub(super) fn policy(name: &str, capacity: usize) -> anyhow::Result<PolicyConfig> {
    let (admission, eviction) = name.split_once('/').unwrap_or(("none", name));
    let mut settings = admission.split(':');
    let admission = settings.next().unwrap_or_default();
    let (kind, counters) = match admission.strip_prefix("filter-") {
        Some(counters) if counters != "auto" => ("filter", counters.parse()),
        _ => (admission, Ok(CountersKind::default())),
    };
    let admission: AdmissionKind = kind
        .parse()
        .with_context(|| format!("admission {admission}"))?;
    let eviction: EvictionKind = eviction
        .parse()
        .with_context(|| format!("eviction {eviction}"))?;
    let mut config = PolicyConfig {
        counters: counters.with_context(|| format!("counters of {name}"))?,
        ..PolicyConfig::new(admission, eviction, capacity)
    };
    match settings.next() {
        Some(k) if config.admission == AdmissionKind::KLru => {
            config.n_stages = k.parse().with_context(|| format!("k of {name}"))?;
        }
        Some(threshold) => {
            let threshold = threshold.parse();
            config.threshold = threshold.with_context(|| format!("threshold of {name}"))?;
        }
        None => {}
    }
    if let Some(by_len) = settings.next() {
        let by_len: usize = by_len
            .parse()
            .with_context(|| format!("history of {name}"))?;
        config.history_len = Some(capacity.saturating_mul(by_len));
    }
    Ok(config)
}

/// A simulation to be run.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// What asks.
    pub(super) workload: Workload,
    /// By how much it is smaller than the published one.
    pub(super) shrink: u32,
    /// Of the policy.
    pub(super) config: PolicyConfig,
    /// Requests before measurement begins.
    pub(super) n_warm: u64,
    /// Requests that are measured.
    pub(super) n_requests: u64,
    /// Share of the requests that are for the web, where it is mixed with video.
    pub(super) web_share: f64,
    /// What they are drawn from.
    pub(super) seed: u64,
}

impl Cell {
    /// Runs it.
    ///
    /// # Errors
    /// If there is no such policy, or not as much memory.
    pub(super) fn simulate(&self) -> anyhow::Result<Counts> {
        let mut requests = self
            .workload
            .requests(self.shrink, self.web_share, self.seed);
        let n_objects = self.workload.n_objects(self.shrink);
        let mut simulation = Simulation::new(&self.config, n_objects as usize)?;
        simulation.run(&mut requests, self.n_warm);
        let warm = *simulation.counts();
        simulation.run(&mut requests, self.n_requests);
        Ok(simulation.counts().since(&warm))
    }
}

/// Runs all of them, one on each processor at a time. The results are in their order, and do
/// not depend on how many run at once.
///
/// # Errors
/// The first error of [`Cell::simulate`].
pub(super) fn simulate_all(cells: &[Cell]) -> anyhow::Result<Vec<Counts>> {
    simulate_on(cells, cpu::available().len())
}

fn simulate_on(cells: &[Cell], n_threads: usize) -> anyhow::Result<Vec<Counts>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<anyhow::Result<Counts>>>> =
        cells.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some((cell, result)) = {
            let idx = next.fetch_add(1, Ordering::Relaxed);
            cells.get(idx).zip(results.get(idx))
        } {
            let counts = cell.simulate();
            if let Ok(mut result) = result.lock() {
                *result = Some(counts);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(work);
        }
        work();
    });
    let done = results.into_iter().map(|result| {
        let result = result.into_inner().ok().flatten();
        result.context("the simulation ended early").flatten()
    });
    done.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_the_settings_in_its_name() {
        let config = policy("filter-exact:3:2/clock", 100).expect("there is one");
        assert_eq!(config.counters, CountersKind::Exact);
        assert_eq!((config.threshold, config.history_len), (3, Some(200)));
        assert_eq!(config.eviction, EvictionKind::Clock);
        let auto = policy("filter-auto/gclock", 100).expect("there is one");
        assert_eq!(auto.admission, AdmissionKind::FilterAuto);
        let chain = policy("k-lru:3/lru", 5).expect("there is one");
        assert_eq!((chain.admission, chain.n_stages), (AdmissionKind::KLru, 3));
        assert_eq!(
            policy("lru", 5).expect("there is one").admission,
            AdmissionKind::None
        );
        for unknown in [
            "nothing",
            "filter-none/fifo",
            "filter:x/fifo",
            "filter:2:y/fifo",
            "k-lru:x/lru",
        ] {
            assert!(policy(unknown, 5).is_err(), "{unknown}");
        }
    }

    #[test]
    fn requests_are_for_objects_that_there_are() {
        for workload in Workload::ALL {
            assert_eq!(Workload::named(workload.label()).ok(), Some(workload));
            for shrink in [10_000, 100_000_000] {
                let mut objects = vec![0; 5_000];
                let mut requests = workload.requests(shrink, 0.7, 3);
                assert_eq!(requests.fill(&mut objects), objects.len());
                let n_objects = workload.n_objects(shrink);
                assert!(
                    objects.iter().all(|&object| object < n_objects),
                    "{workload:?}"
                );
                assert!(workload.n_cacheable(shrink) <= n_objects);
            }
        }
    }

    #[test]
    fn simulations_come_out_the_same_however_many_run_at_once() {
        let cells: Vec<Cell> = ["fifo", "filter/fifo", "lru", "tinylfu/random"]
            .map(|name| Cell {
                workload: Workload::Web,
                shrink: 1_000,
                config: policy(name, 100).expect("there is one"),
                n_warm: 2_000,
                n_requests: 3_000,
                web_share: 0.7,
                seed: 7,
            })
            .into();
        let counts = |n_threads| simulate_on(&cells, n_threads).expect("small");
        let alone = counts(1);
        assert_eq!(alone, counts(3));
        assert!(alone.iter().all(|counts| counts.n_requests == 3_000));
        assert!(alone[0] != alone[2]);
    }
}
