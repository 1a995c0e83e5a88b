//! Pinning of threads to processors.

use std::fmt;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// Processors that this process may use, in ascending order.
#[must_use]
pub fn available() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None::<Pid>) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
}

/// What became of a thread's wish for a processor of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// The thread runs on this processor only.
    To(usize),
    /// The thread runs on this processor, and another thread of the experiment, too.
    Shared(usize),
    /// The kernel refused; the thread runs anywhere.
    Nowhere(String),
}

impl fmt::Display for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(cpu) => write!(f, "CPU {cpu}"),
            Self::Shared(cpu) => write!(f, "CPU {cpu} (shared with another thread)"),
            Self::Nowhere(why) => write!(f, "not pinned ({why})"),
        }
    }
}

/// Pins the calling thread, the `idx`-th of an experiment, to a processor of `cpus`, in
/// turn if there are fewer processors than threads.
#[must_use]
pub fn pin(idx: usize, cpus: &[usize]) -> Pinned {
    if cpus.is_empty() {
        return Pinned::Nowhere("no processor is known".to_owned());
    }
    let cpu = cpus[idx % cpus.len()];
    let mut set = CpuSet::new();
    set.set(cpu);
    match sched_setaffinity(None, &set) {
        Ok(()) if idx < cpus.len() => Pinned::To(cpu),
        Ok(()) => Pinned::Shared(cpu),
        Err(error) => Pinned::Nowhere(error.to_string()),
    }
}

/// Runs `work` on a thread of its own that is pinned, so that the caller's processors stay
/// as they are. Returns where it ran beside the result.
///
/// # Panics
/// If `work` panics.
pub fn on_pinned_thread<T: Send>(work: impl FnOnce() -> T + Send) -> (Pinned, T) {
    let cpus = available();
    std::thread::scope(|scope| {
        let run = move || (pin(0, &cpus), work());
        let thread = scope.spawn(run);
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// A sentence for a record about where threads ran.
#[must_use]
pub fn note(pinned: &[Pinned]) -> String {
    let places: Vec<_> = pinned.iter().map(Pinned::to_string).collect();
    format!("threads ran on: {}", places.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_on_its_processor() {
        let before = available();
        let (pinned, during) = on_pinned_thread(available);
        match pinned {
            Pinned::To(cpu) => assert_eq!(during, [cpu]),
            other => assert!(matches!(other, Pinned::Nowhere(_)), "{other}"),
        }
        assert_eq!(available(), before, "the caller stays as it was");
    }

    #[test]
    fn more_threads_than_processors_share() {
        let cpus = available();
        let shared = std::thread::scope(|scope| {
            let thread = scope.spawn(|| pin(cpus.len(), &cpus));
            thread.join().expect("it ends")
        });
        assert_eq!(shared, Pinned::Shared(cpus[0]));
        assert_eq!(
            note(&[shared]),
            format!(
                "threads ran on: CPU {} (shared with another thread)",
                cpus[0]
            )
        );
        assert!(matches!(pin(0, &[]), Pinned::Nowhere(_)));
    }
}
