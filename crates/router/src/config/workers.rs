//! `[workers]`: how many threads forward, and how packets are dispatched to them.

use std::num::{NonZeroU8, NonZeroU32};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_dispatch::{DispatchBy, MAX_WORKERS, MapKind, MoveRule};
use tachonym_face::{SystemShare, WaitingLimits};

use super::faults::Faults;

/// Buckets of the table that divides names, as a power of two.
const N_BUCKETS_LOG2: u8 = 10;

/// Threads that receive and forward. Each worker thread has a PIT and a content store of its
/// own, with its share of the sizes in `[tables]`; the FIB is shared.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workers {
    /// Worker threads: threads that forward packets. Raise it if one thread cannot keep up
    /// (`tachonym workers` shows the load), to no more than the processor has cores. With several
    /// workers and `[[verification]]`, some workers verify Data and the others forward
    /// everything else, so that other packets do not wait for signatures.
    pub threads: u16,
    /// Most worker threads, with those that `tachonym workers add` starts while the router
    /// runs; 0 means `threads`. The PIT, the dead nonces and the SSD level are divided into
    /// this number of parts; the DRAM level is divided among the workers that run.
    pub max_threads: u16,
    /// `run-to-completion`: each worker receives packets of a part of the faces, and passes
    /// on those that belong to other workers. `io-threads`: separate threads receive and
    /// send.
    pub feed: Feed,
    /// With `io-threads`: threads that receive and send.
    pub io_threads: u16,
    /// What decides which worker handles a name. `prefix`: its first `prefix_components`
    /// components. `name`: the whole name, so that one busy prefix is spread over all
    /// workers. `batch`: the object and a group of `batch_segments` segments.
    pub dispatch: Dispatch,
    /// With `prefix`: components that decide, 1 to 32. Names that agree in them are handled
    /// by the same worker.
    pub prefix_components: u8,
    /// With `batch`: consecutive segments of an object that the same worker handles, 1 to
    /// 1048576.
    pub batch_segments: u32,
    /// Whether Interests are sent with a PIT token, which leads the Data directly to the
    /// worker with the pending Interest. Neighbours that do not support PIT tokens drop such
    /// Interests; neighbours that do not return the token still work. With
    /// `[[verification]]` no tokens are sent, because they could lead Data past the workers
    /// that verify it.
    pub pit_tokens: bool,
    /// Processor cores to which the threads are pinned: one for each of `max_threads`
    /// workers, then one for each of `io_threads`. Empty: a single thread is not pinned;
    /// several threads are pinned to the cores that the process may use, if there are enough.
    #[schemars(example = [0, 1])]
    pub cpus: Vec<u16>,
    /// Whether names migrate from busy workers to less busy ones.
    pub balance: bool,
    /// How names are divided among the workers. `buckets`: by a table of 1024 buckets, of
    /// which each worker has the same share. `linear`: by linear hashing (Iqbal 2013, section
    /// 5.3.4); some workers have twice the share of others unless their number is that of
    /// `threads` times a power of two.
    pub map: Map,
    /// Which names migrate from a busy worker. `evens`: the frequently requested name whose
    /// migration evens measured loads out best, if any does. `published`: all frequently
    /// requested names of the worker, to the worker with the shortest queue (Iqbal 2013,
    /// section 4.4).
    pub migrate: Migrate,
    /// Longest time, in microseconds, for which a thread under middling load gathers packets
    /// instead of waking up for each, 0 to 1000; 0: never. Gathering takes less CPU time. It
    /// stays off, and is tried again now and then, where it slows transfers down or gathers
    /// few packets. An Interest and its Data may each be delayed by this time.
    pub max_gather_us: u32,
    /// Longest time, in microseconds, for which a thread polls without packets before it
    /// blocks, 0 to 1000; 0: never. It polls only where most packets arrive within that
    /// time, and where the process may use more cores than it has threads. Polling shortens
    /// the latency and takes more CPU time: while a thread wakes up, several packets arrive,
    /// which it then handles together.
    pub max_spin_us: u32,
}

impl Default for Workers {
    fn default() -> Self {
        Self {
            threads: 1,
            max_threads: 0,
            feed: Feed::default(),
            io_threads: 1,
            dispatch: Dispatch::default(),
            prefix_components: 2,
            batch_segments: 64,
            pit_tokens: false,
            cpus: Vec::new(),
            balance: true,
            map: Map::default(),
            migrate: Migrate::default(),
            max_gather_us: 100,
            max_spin_us: 0,
        }
    }
}

/// How names are divided among the workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Map {
    /// By a table of buckets, of which each worker has the same share.
    #[default]
    Buckets,
    /// By linear hashing.
    Linear,
}

impl Map {
    /// The map of a scheduler.
    #[must_use]
    pub const fn kind(self) -> MapKind {
        match self {
            Self::Buckets => MapKind::Buckets {
                n_buckets_log2: N_BUCKETS_LOG2,
            },
            Self::Linear => MapKind::Linear,
        }
    }
}

/// Which names migrate from a busy worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Migrate {
    /// The one whose migration evens loads out best.
    #[default]
    Evens,
    /// All that are requested frequently.
    Published,
}

impl Migrate {
    /// The rule of a scheduler.
    #[must_use]
    pub const fn rule(self) -> MoveRule {
        match self {
            Self::Evens => MoveRule::EVENS,
            Self::Published => MoveRule::Published,
        }
    }
}

/// Which threads receive packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Feed {
    /// Each worker receives the packets of a part of the faces.
    #[default]
    RunToCompletion,
    /// Separate threads receive and send.
    IoThreads,
}

impl Feed {
    /// Its name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RunToCompletion => "run-to-completion",
            Self::IoThreads => "io-threads",
        }
    }
}

/// What decides which worker handles a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dispatch {
    /// Its first components.
    #[default]
    Prefix,
    /// The whole name: even one busy prefix is spread over all workers.
    Name,
    /// The object and a group of its segments: as `name`, but consecutive segments stay
    /// together.
    Batch,
}

impl Workers {
    /// Most worker threads.
    #[must_use]
    pub fn most(&self) -> usize {
        self.threads.max(self.max_threads).into()
    }

    /// Threads that only receive and send.
    #[must_use]
    pub fn n_io_threads(&self) -> usize {
        match self.feed {
            Feed::RunToCompletion => 0,
            Feed::IoThreads => self.io_threads.into(),
        }
    }

    /// What decides which worker handles a name.
    #[must_use]
    pub fn dispatch_by(&self) -> DispatchBy {
        match self.dispatch {
            Dispatch::Prefix => DispatchBy::Prefix {
                n_components: NonZeroU8::new(self.prefix_components).unwrap_or(NonZeroU8::MIN),
            },
            Dispatch::Name => DispatchBy::Name,
            Dispatch::Batch => DispatchBy::Batch {
                n_segments: NonZeroU32::new(self.batch_segments).unwrap_or(NonZeroU32::MIN),
            },
        }
    }

    /// Bounds of how `n_threads` threads on `n_cpus` processor cores wait for packets.
    #[must_use]
    pub const fn waiting_limits(&self, n_threads: usize, n_cpus: usize) -> WaitingLimits {
        WaitingLimits {
            max_gather_ns: self.max_gather_us as u64 * 1_000,
            max_spin_ns: match n_cpus > n_threads {
                true => self.max_spin_us as u64 * 1_000,
                false => 0,
            },
        }
    }

    /// What decides which worker handles a name, in words.
    #[must_use]
    pub fn dispatch_words(&self) -> String {
        match self.dispatch {
            Dispatch::Prefix => format!("prefix {}", self.prefix_components),
            Dispatch::Name => "name".into(),
            Dispatch::Batch => format!("batch {}", self.batch_segments),
        }
    }
}

impl super::Config {
    /// Whether separate workers verify Data; a single worker does everything.
    pub(crate) const fn verifies_apart(&self) -> bool {
        self.workers.threads > 1 && !self.verification.is_empty()
    }
}

/// Checks `[workers]`.
pub(super) fn check(workers: &Workers, found: &mut Faults) {
    let most = MAX_WORKERS as u16 / 2;
    found.range("workers.threads", workers.threads, 1, most);
    let max = workers.max_threads;
    if max != 0 {
        found.range("workers.max_threads", max, workers.threads.min(most), most);
    }
    found.range(
        "workers.prefix_components",
        workers.prefix_components,
        1,
        32,
    );
    found.range("workers.batch_segments", workers.batch_segments, 1, 1 << 20);
    found.range("workers.max_gather_us", workers.max_gather_us, 0, 1_000);
    found.range("workers.max_spin_us", workers.max_spin_us, 0, 1_000);
    let default = Workers::default();
    match workers.feed {
        Feed::IoThreads => {
            let most = most.min(SystemShare::MAX_SYSTEMS as u16);
            found.range("workers.io_threads", workers.io_threads, 1, most);
        }
        Feed::RunToCompletion if workers.io_threads != default.io_threads => {
            found.idle(
                "workers.io_threads",
                "workers.feed is \"run-to-completion\"",
            );
        }
        Feed::RunToCompletion => {}
    }
    if workers.dispatch != Dispatch::Prefix
        && workers.prefix_components != default.prefix_components
    {
        found.idle(
            "workers.prefix_components",
            "workers.dispatch is not \"prefix\"",
        );
    }
    if workers.dispatch != Dispatch::Batch && workers.batch_segments != default.batch_segments {
        found.idle(
            "workers.batch_segments",
            "workers.dispatch is not \"batch\"",
        );
    }
    if workers.most() == 1 {
        let one = "there is only one worker";
        if workers.pit_tokens && workers.n_io_threads() == 0 {
            found.idle("workers.pit_tokens", one);
        }
        if workers.balance != default.balance {
            found.idle("workers.balance", one);
        }
        if workers.map != default.map {
            found.idle("workers.map", one);
        }
    }
    if workers.migrate != default.migrate {
        if workers.most() == 1 {
            found.idle("workers.migrate", "there is only one worker");
        } else if !workers.balance {
            found.idle("workers.migrate", "workers.balance is false");
        }
    }
    cpus(workers, found);
}

fn cpus(workers: &Workers, found: &mut Faults) {
    let n_threads = workers.most() + workers.n_io_threads();
    if !workers.cpus.is_empty() && workers.cpus.len() != n_threads {
        found.conflict(
            "workers.cpus",
            format!(
                "the list has {} cores for {n_threads} threads",
                workers.cpus.len()
            ),
            "list one core for each of max_threads, and with \"io-threads\" for each of \
             io_threads; or write []",
        );
    }
    let usable = usable_cpus();
    for (i, cpu) in workers.cpus.iter().enumerate() {
        if !usable.contains(cpu) {
            found.push(
                format!("workers.cpus[{i}]"),
                format!("this process may not use a core {cpu}"),
                "write numbers that `taskset -cp $$` shows",
            );
        } else if workers.cpus[..i].contains(cpu) {
            found.push(
                format!("workers.cpus[{i}]"),
                format!("core {cpu} is already in the list"),
                "list each core once",
            );
        }
    }
}

/// The processor cores that this process may use, in order.
pub(crate) fn usable_cpus() -> Vec<u16> {
    let set = rustix::thread::sched_getaffinity(None);
    let all = 0..rustix::thread::CpuSet::MAX_CPU;
    set.map_or_else(
        |_| Vec::new(),
        |set| {
            all.filter(|&cpu| set.is_set(cpu))
                .map(|cpu| cpu as u16)
                .collect()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn faults(text: &str) -> Vec<String> {
        match Config::parse(&format!("[workers]\n{text}")) {
            Ok(_) => Vec::new(),
            Err(complaints) => complaints.iter().map(|it| it.key.clone()).collect(),
        }
    }

    #[test]
    fn threads_poll_only_where_cores_are_left() {
        let workers = Workers {
            max_spin_us: 20,
            ..Workers::default()
        };
        let limits = |n_threads| workers.waiting_limits(n_threads, 2);
        assert_eq!(Workers::default().waiting_limits(1, 2).max_spin_ns, 0);
        assert_eq!(limits(1).max_spin_ns, 20_000);
        assert_eq!(limits(2).max_spin_ns, 0);
        assert_eq!(limits(2).max_gather_ns, 100_000);
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_remedy() {
        let cpu = usable_cpus()[0];
        for (text, key) in [
            ("threads = 0".to_owned(), "workers.threads"),
            ("threads = 4\nmax_threads = 3".into(), "workers.max_threads"),
            ("io_threads = 2".into(), "workers.io_threads"),
            (
                "feed = \"io-threads\"\nio_threads = 0".into(),
                "workers.io_threads",
            ),
            (
                "dispatch = \"name\"\nprefix_components = 3".into(),
                "workers.prefix_components",
            ),
            ("batch_segments = 3".into(), "workers.batch_segments"),
            ("pit_tokens = true".into(), "workers.pit_tokens"),
            ("balance = false".into(), "workers.balance"),
            ("map = \"linear\"".into(), "workers.map"),
            ("migrate = \"published\"".into(), "workers.migrate"),
            (
                "threads = 2\nbalance = false\nmigrate = \"published\"".into(),
                "workers.migrate",
            ),
            ("cpus = [1000]".into(), "workers.cpus[0]"),
            (
                format!("cpus = [{cpu}, {cpu}]\nthreads = 2"),
                "workers.cpus[1]",
            ),
            (format!("cpus = [{cpu}]\nthreads = 2"), "workers.cpus"),
        ] {
            let faults = faults(&text);
            assert_eq!(faults.len(), 1, "{text}: {faults:?}");
            assert!(faults[0].contains(key), "{text}: {faults:?}");
        }
        assert_eq!(faults("max_gather_us = 1001"), ["workers.max_gather_us"]);
        assert_eq!(faults("max_spin_us = 1001"), ["workers.max_spin_us"]);
        assert!(faults("max_gather_us = 0\nmax_spin_us = 0").is_empty());
        assert!(faults("threads = 2\nmax_threads = 4").is_empty());
        assert!(faults("threads = 2\nmap = \"linear\"\nmigrate = \"published\"").is_empty());
        assert!(faults(&format!("cpus = [{cpu}]")).is_empty());
    }
}
