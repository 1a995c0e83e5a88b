//! When the Interests of a flow are due that has a rate of its own.

use std::time::Duration;

use tachonym_packet::MonoNs;

/// How far a sum of fractions may fall short of a whole Interest.
const ROUNDING: f64 = 1e-6;

/// Rates, one after the other, and Interests that are due all at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Nanoseconds from the start, and the Interests that are due by then; between two of
    /// them, the rate is constant. Both only grow.
    knots: Vec<(f64, f64)>,
}

impl Course {
    /// This number of Interests a second for `time` more.
    #[must_use]
    pub fn hold(mut self, time: Duration, per_s: f64) -> Self {
        let (at_ns, n_due) = self.end();
        if self.knots.is_empty() {
            self.knots.push((at_ns, n_due));
        }
        let end_ns = at_ns + time.as_nanos() as f64;
        let n_more = per_s.max(0.0) * time.as_secs_f64();
        self.knots.push((end_ns, n_due + n_more));
        self
    }

    /// This number of Interests at the end of the course so far.
    #[must_use]
    pub fn at_once(mut self, n_interests: f64) -> Self {
        let (at_ns, n_due) = self.end();
        self.knots.push((at_ns, n_due + n_interests.max(0.0)));
        self
    }

    /// The part of one of `n_flows` flows that share the course. Their Interests are due in
    /// turn.
    #[must_use]
    pub fn share(&self, flow: usize, n_flows: usize) -> Self {
        let (n_flows, before) = (n_flows as f64, flow as f64 / n_flows as f64);
        let share = |&(at_ns, n_due): &(f64, f64)| (at_ns, n_due / n_flows + before);
        Self {
            knots: self.knots.iter().map(share).collect(),
        }
    }

    fn end(&self) -> (f64, f64) {
        self.knots.last().copied().unwrap_or((0.0, 0.0))
    }

    /// How long it is.
    #[must_use]
    pub fn lasting(&self) -> Duration {
        Duration::from_nanos(self.end().0 as u64)
    }

    /// All its Interests.
    #[must_use]
    pub fn n_interests(&self) -> u64 {
        (self.end().1 + ROUNDING) as u64
    }

    /// Interests that are due by this time after the start, with fractions.
    #[must_use]
    pub fn due(&self, after: Duration) -> f64 {
        let at_ns = after.as_nanos() as f64;
        let next = self.knots.partition_point(|knot| knot.0 <= at_ns);
        match (next.checked_sub(1), self.knots.get(next)) {
            (None, _) => 0.0,
            (Some(last), None) => self.knots[last].1,
            (Some(last), Some(next)) => {
                let last = self.knots[last];
                last.1 + (next.1 - last.1) * (at_ns - last.0) / (next.0 - last.0)
            }
        }
    }

    /// When the `n`-th Interest is due, in nanoseconds after the start; the first is 1.
    fn due_at_ns(&self, n: u64) -> f64 {
        let n = n as f64 - ROUNDING;
        let next = self.knots.partition_point(|knot| knot.1 < n);
        match (next.checked_sub(1), self.knots.get(next)) {
            (_, None) => f64::INFINITY,
            (None, Some(first)) => first.0,
            (Some(last), Some(next)) => {
                let last = self.knots[last];
                last.0 + (next.0 - last.0) * (n - last.1) / (next.1 - last.1)
            }
        }
    }
}

/// How far a flow was behind its course.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Longest time from when an Interest was due until it was sent.
    pub longest: Duration,
    /// An Interest was due, and the window had no room: answers were missing.
    pub was_full: bool,
}

/// When the next Interest is due.
#[derive(Clone, Debug)]
pub(super) enum Pace {
    Rate {
        interval_ns: f64,
        /// The first is due as soon as it may be sent.
        next_ns: Option<f64>,
    },
    Course {
        course: Course,
        /// The first call of `take`.
        began: Option<MonoNs>,
        n_taken: u64,
        /// When the next is due, after that.
        next_ns: f64,
        lateness: Lateness,
    },
}

impl Pace {
    pub(super) const fn rate(per_s: f64) -> Self {
        Self::Rate {
            interval_ns: 1e9 / per_s,
            next_ns: None,
        }
    }

    pub(super) fn course(course: Course) -> Self {
        Self::Course {
            next_ns: course.due_at_ns(1),
            course,
            began: None,
            n_taken: 0,
            lateness: Lateness::default(),
        }
    }

    /// Takes one Interest that is due by `now`, if any is.
    pub(super) fn take(&mut self, now: MonoNs) -> bool {
        match self {
            Self::Rate {
                interval_ns,
                next_ns,
            } => {
                let at_ns = *next_ns.get_or_insert(now.0 as f64);
                let is_due = at_ns <= now.0 as f64;
                if is_due {
                    *next_ns = Some(at_ns + *interval_ns);
                }
                is_due
            }
            Self::Course {
                course,
                began,
                n_taken,
                next_ns,
                lateness,
            } => {
                let began = *began.get_or_insert(now);
                let late_ns = now.0.saturating_sub(began.0) as f64 - *next_ns;
                let is_due = late_ns >= 0.0;
                if is_due {
                    let late = Duration::from_nanos(late_ns as u64);
                    lateness.longest = lateness.longest.max(late);
                    *n_taken += 1;
                    *next_ns = course.due_at_ns(*n_taken + 1);
                }
                is_due
            }
        }
    }

    /// The window has no room now.
    pub(super) fn note_full(&mut self, now: MonoNs) {
        if let Self::Course {
            began: Some(began),
            next_ns,
            lateness,
            ..
        } = self
        {
            let elapsed_ns = now.0.saturating_sub(began.0) as f64;
            lateness.was_full |= elapsed_ns >= *next_ns;
        }
    }

    /// How far the flow was behind, if it has a course.
    pub(super) const fn lateness(&self) -> Option<Lateness> {
        match self {
            Self::Rate { .. } => None,
            Self::Course { lateness, .. } => Some(*lateness),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn course() -> Course {
        Course::default()
            .hold(SECOND, 100.0)
            .hold(SECOND, 0.0)
            .at_once(50.0)
            .hold(2 * SECOND, 200.0)
    }

    #[test]
    fn a_course_holds_each_rate_and_adds_what_is_due_at_once() {
        let course = course();
        assert_eq!((course.lasting(), course.n_interests()), (4 * SECOND, 550));
        // The first, the last before the pause, those at once and the first after them.
        let numbers = [1, 100, 101, 150, 151, 550, 551];
        let at_s = numbers.map(|n| (course.due_at_ns(n) / 1e6).round() / 1e3);
        assert_eq!(at_s, [0.01, 1.0, 2.0, 2.0, 2.005, 4.0, f64::INFINITY]);
        let due = [0.0, 0.5, 1.0, 1.9, 2.0, 3.0, 4.0, 9.0]
            .map(|seconds| course.due(Duration::from_secs_f64(seconds)));
        assert_eq!(due, [0.0, 50.0, 100.0, 100.0, 150.0, 350.0, 550.0, 550.0]);
        assert_eq!(Course::default().due(SECOND), 0.0);
    }

    #[test]
    fn shares_add_up_to_the_course() {
        let course = course();
        for n_flows in [1, 3, 8] {
            let shares: Vec<_> = (0..n_flows).map(|idx| course.share(idx, n_flows)).collect();
            for ms in [0, 10, 105, 999, 2_000, 2_001, 4_000] {
                let after = Duration::from_millis(ms);
                let whole = |share: &Course| (share.due(after) + ROUNDING) as u64;
                let n_due: u64 = shares.iter().map(whole).sum();
                let expected = (course.due(after) + ROUNDING) as u64;
                assert_eq!(n_due, expected, "{n_flows} flows, {ms} ms");
            }
        }
    }

    #[test]
    fn a_pace_begins_with_its_first_call_and_knows_how_late_it_is() {
        let mut pace = Pace::course(Course::default().hold(SECOND, 1e9));
        let lateness = |late_ns, was_full| {
            let longest = Duration::from_nanos(late_ns);
            Some(Lateness { longest, was_full })
        };
        assert!(!pace.take(MonoNs(77)));
        assert!(pace.take(MonoNs(78)) && !pace.take(MonoNs(78)));
        pace.note_full(MonoNs(78));
        assert_eq!(pace.lateness(), lateness(0, false));
        pace.note_full(MonoNs(80));
        assert_eq!(pace.lateness(), lateness(0, true));
        for _ in 0..4 {
            assert!(pace.take(MonoNs(82)));
        }
        assert!(!pace.take(MonoNs(82)));
        assert_eq!(pace.lateness(), lateness(3, true));
    }
}
