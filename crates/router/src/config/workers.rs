//! How many threads forward, and how packets come to them.

use std::num::{NonZeroU8, NonZeroU32};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_dispatch::{DispatchBy, MAX_WORKERS};
use tachonym_face::SystemShare;

use super::check::Faults;

/// Threads that receive, and threads that forward. Each that forwards has a pending Interest
/// table and a content store of its own, with its part of what `tables` allows; the FIB is
/// shared.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workers {
    /// Workers: threads that forward. More than one are of use where one cannot keep up, and
    /// no more than there are processor cores. Of several, some serve the prefixes of
    /// `[[verification]]` and the others all else, as many each as have to do: signatures
    /// take long, and other packets do not wait for them.
    pub threads: u16,
    /// Most workers that there may be: those that `tachonym workers add` adds while the
    /// router runs included. 0: as many as `threads`. Of pending Interests and dead nonces
    /// each has its part of so many; content stores are divided among those that run.
    pub max_threads: u16,
    /// How packets come to the workers.
    pub feed: Feed,
    /// Threads that only receive and send, with `io-threads`.
    pub io_threads: u16,
    /// By what a name is at home at a worker.
    pub dispatch: Dispatch,
    /// Components of a name that decide with `prefix`: names that begin with as many equal
    /// ones are at home at one worker.
    pub prefix_components: u8,
    /// Segments of an object that are at home together with `batch`.
    pub batch_segments: u32,
    /// Whether Interests that leave carry a PIT token that brings the answer to the worker
    /// which waits for it, so that whoever receives it need not hash its name. Neighbours that
    /// do not know PIT tokens drop what carries one; those that know, but return none, are
    /// served all the same. With `[[verification]]` there are none: by one of them a neighbour
    /// could bring Data to be verified to workers that do not.
    pub pit_tokens: bool,
    /// Processor cores that the threads are pinned to, workers first, one each. Empty: of
    /// several threads each to one of the cores that the process may use, if these are
    /// enough; a single thread to none.
    pub cpus: Vec<u16>,
    /// Whether names move off workers that have more to do than others.
    pub balance: bool,
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
        }
    }
}

/// How packets come to the workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Feed {
    /// Each worker receives by itself, a part of all connections and peers, and takes to
    /// others what is at home there.
    #[default]
    RunToCompletion,
    /// Threads of their own receive and send.
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

/// By what a name is at home at a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dispatch {
    /// Its first components: an Interest for whatever is below them concerns one worker.
    #[default]
    Prefix,
    /// All of it: even a single busy prefix is spread over all workers.
    Name,
    /// The object, and which batch of its segments: as `name`, but segments that follow each
    /// other stay together.
    Batch,
}

impl Workers {
    /// Most workers.
    #[must_use]
    pub fn most(&self) -> usize {
        self.threads.max(self.max_threads).into()
    }

    /// Threads that receive and send for workers.
    #[must_use]
    pub fn n_io_threads(&self) -> usize {
        match self.feed {
            Feed::RunToCompletion => 0,
            Feed::IoThreads => self.io_threads.into(),
        }
    }

    /// By what a name is at home at a worker.
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

    /// The same in words.
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
    /// Whether Data are verified by workers that do only that: with one worker it does
    /// everything.
    pub(crate) const fn verifies_apart(&self) -> bool {
        self.workers.threads > 1 && !self.verification.is_empty()
    }
}

/// What is wrong with it.
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
        let one = "there is one worker";
        if workers.pit_tokens && workers.n_io_threads() == 0 {
            found.idle("workers.pit_tokens", one);
        }
        if workers.balance != default.balance {
            found.idle("workers.balance", one);
        }
    }
    cpus(workers, found);
}

fn cpus(workers: &Workers, found: &mut Faults) {
    let n_threads = workers.most() + workers.n_io_threads();
    if !workers.cpus.is_empty() && workers.cpus.len() != n_threads {
        found.push(
            "workers.cpus",
            format!("{} cores for {n_threads} threads", workers.cpus.len()),
            "list one for each of max_threads, and of io_threads with \"io-threads\", or none",
        );
    }
    let usable = usable_cpus();
    for (i, cpu) in workers.cpus.iter().enumerate() {
        if !usable.contains(cpu) {
            found.push(
                format!("workers.cpus[{i}]"),
                format!("there is no core {cpu} that this process may use"),
                "use numbers that `taskset -cp $$` shows",
            );
        } else if workers.cpus[..i].contains(cpu) {
            found.push(
                format!("workers.cpus[{i}]"),
                format!("core {cpu} is listed twice"),
                "list each once",
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
        assert!(faults("threads = 2\nmax_threads = 4").is_empty());
        assert!(faults(&format!("cpus = [{cpu}]")).is_empty());
    }
}
