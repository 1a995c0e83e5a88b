//! Rounds in which cases take turns.
//!
//! A machine's speed drifts. Cases that are compared are measured in the same round, and
//! each round begins with another case, so that no case always follows the same one.

use std::time::Instant;

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
