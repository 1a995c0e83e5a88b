//! Rounds in which cases take turns, and cases that run side by side.
//!
//! A machine's speed drifts. Cases that are compared are measured in the same round, and
//! each round begins with another case, so that no case always follows the same one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::cpu;

/// Measures `n_cases` cases in `n_rounds` rounds. `measure` gets the case and the round;
/// what it returns is collected by case.
///
/// # Errors
/// The first error of `measure`.
pub fn rotated<T>(
    n_cases: usize,
    n_rounds: usize,
    mut measure: impl FnMut(usize, usize) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<Vec<T>>> {
    let mut results: Vec<Vec<T>> = (0..n_cases).map(|_| Vec::with_capacity(n_rounds)).collect();
    for round in 0..n_rounds {
        for turn in 0..n_cases {
            let case = (round + turn) % n_cases;
            results[case].push(measure(case, round)?);
        }
    }
    Ok(results)
}

/// Runs `work` for each case below `n_cases` on as many threads as there are processors, and
/// returns the results in the order of the cases. For what is computed or simulated: what is
/// measured would be disturbed.
///
/// # Errors
/// The error of the first case that failed; cases that have not begun are left out.
///
/// # Panics
/// If `work` panics.
pub fn in_parallel<T: Send>(
    n_cases: usize,
    work: impl Fn(usize) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut results = Vec::new();
        loop {
            let case = next.fetch_add(1, Ordering::Relaxed);
            if case >= n_cases {
                return results;
            }
            let result = work(case);
            if result.is_err() {
                next.store(n_cases, Ordering::Relaxed);
            }
            results.push((case, result));
        }
    };
    let n_threads = cpu::available().len().clamp(1, n_cases.max(1));
    let mut results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(run)).collect();
        let ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ends.flatten().collect::<Vec<_>>()
    });
    results.sort_by_key(|it| it.0);
    results.into_iter().map(|it| it.1).collect()
}

/// Seconds of processor time that the calling thread spends on `work`. Other programs on the
/// processor do not count, but for what they do to its caches.
pub fn cpu_seconds_of<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let start = now();
    let result = work();
    (now() - start, result)
}

/// Seconds that `work` takes, by the monotonic clock.
pub fn seconds_of<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another_case() {
        let mut order = Vec::new();
        let results = rotated(3, 3, |case, round| {
            order.push(case);
            Ok((case, round))
        });
        let results = results.expect("nothing fails");
        assert_eq!(order, [0, 1, 2, 1, 2, 0, 2, 0, 1]);
        assert_eq!(results[1], [(1, 0), (1, 1), (1, 2)]);
    }

    #[test]
    fn cases_side_by_side_return_in_order() {
        let squares = in_parallel(50, |case| Ok(case * case)).expect("nothing fails");
        assert_eq!(squares, (0..50).map(|n| n * n).collect::<Vec<_>>());
        let failed = in_parallel(50, |case| {
            anyhow::ensure!(case != 7, "case {case}");
            Ok(())
        });
        assert_eq!(failed.expect_err("one fails").to_string(), "case 7");
        assert!(in_parallel(0, Ok).expect("nothing to do").is_empty());
    }

    #[test]
    fn processor_time_leaves_sleep_out() {
        let sleep = || std::thread::sleep(std::time::Duration::from_millis(50));
        let (cpu_s, ()) = cpu_seconds_of(sleep);
        assert!((0.0..0.04).contains(&cpu_s), "{cpu_s}");
        let (cpu_s, sum) =
            cpu_seconds_of(|| (0..10_000_000_u64).map(std::hint::black_box).sum::<u64>());
        assert!(cpu_s > 0.0 && sum > 0);
    }

    #[test]
    fn an_error_ends_the_rounds() {
        let mut n_calls = 0;
        let failed = rotated(2, 5, |_, _| -> anyhow::Result<()> {
            n_calls += 1;
            anyhow::bail!("no")
        });
        failed.expect_err("the first call fails");
        assert_eq!(n_calls, 1);
    }
}
