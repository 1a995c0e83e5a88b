//! The meter: two samples of requests, over windows of so many.

use super::names::LowestNames;
use crate::random::Random;

/// Names that are counted in a window, those with the lowest hashes.
const MAX_NAMES: usize = 4_096;

/// Requests that are noted in a window.
const LOG_LEN: usize = 16_384;

/// Requests in a window, by the number of Data that the cache may hold. What is asked for
/// less often is told from what is never asked for again by conjecture only.
const WINDOW_BY_LEN: u64 = 16;

/// What became of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Requests.
    pub n_requests: u64,
    /// Those of them that were hits.
    pub n_hits: u64,
    /// Data that were inserted meanwhile.
    pub n_inserts: u64,
}

impl Outcomes {
    fn plus(self, other: Self) -> Self {
        Self {
            n_requests: self.n_requests + other.n_requests,
            n_hits: self.n_hits + other.n_hits,
            n_inserts: self.n_inserts + other.n_inserts,
        }
    }
}

/// As much of a name's hash as tells it from the others that are noted: hardly ever are two
/// of so few alike.
pub(super) type Noted = u32;

/// What is noted of a name with this hash.
pub(super) const fn noted(hash: u64) -> Noted {
    hash as Noted
}

/// Requests of some time.
#[derive(Debug)]
struct Window {
    names: LowestNames,
    log: Vec<Noted>,
    n_requests: u64,
    outcomes: Outcomes,
}

impl Window {
    fn new(max_names: usize, max_noted: usize) -> Self {
        Self {
            names: LowestNames::new(max_names),
            log: Vec::with_capacity(max_noted),
            n_requests: 0,
            outcomes: Outcomes::default(),
        }
    }

    fn clear(&mut self, below: u64) {
        self.names.clear(below);
        self.log.clear();
        self.n_requests = 0;
        self.outcomes = Outcomes::default();
    }

    fn observed(&self) -> ObservedWindow {
        ObservedWindow {
            below: self.names.below(),
            n_requests: self.n_requests,
            names: self.names.iter().collect(),
            log: self.log.clone(),
        }
    }
}

/// Measures the popularity of names from the requests for them, over the last one or two
/// windows of sixteen requests for each Data that the cache may hold. Takes some 450 KiB
/// when it is made, whatever the cache's size, and nothing later.
#[derive(Debug)]
pub struct PopularityMeter {
    /// Requests until the next one that is noted.
    until_noted: u64,
    /// Names below are counted.
    below: u64,
    n_hits: u64,
    n_inserts: u64,
    /// Of how many requests the next noted one is the last.
    gap: u64,
    /// From one to the next on average, in the current window, and in those after it.
    mean_gap: u64,
    next_mean_gap: u64,
    random: Random,
    current: Window,
    previous: Window,
}

impl PopularityMeter {
    /// A meter that has seen nothing, for a cache of `capacity` Data. `seed` is what it
    /// draws from.
    #[must_use]
    pub fn new(capacity: usize, seed: u64) -> Self {
        let mut meter = Self {
            until_noted: 0,
            below: u64::MAX,
            n_hits: 0,
            n_inserts: 0,
            gap: 0,
            mean_gap: mean_gap(capacity),
            next_mean_gap: mean_gap(capacity),
            random: Random::new(seed),
            current: Window::new(MAX_NAMES, LOG_LEN),
            previous: Window::new(MAX_NAMES, LOG_LEN),
        };
        meter.draw_gap();
        meter
    }

    /// A meter that measures nothing and has no memory: what stands where one is to come.
    #[must_use]
    pub fn idle() -> Self {
        Self {
            // Never reached.
            until_noted: u64::MAX,
            below: 0,
            n_hits: 0,
            n_inserts: 0,
            gap: u64::MAX,
            mean_gap: 1,
            next_mean_gap: 1,
            random: Random::new(0),
            current: Window::new(0, 0),
            previous: Window::new(0, 0),
        }
    }

    /// The cache may hold so many Data from now on, or decides otherwise: the next window
    /// gets another length, and [`Outcomes`] begin anew.
    pub fn begin_anew(&mut self, capacity: usize) {
        self.next_mean_gap = mean_gap(capacity);
        self.previous.outcomes = Outcomes::default();
        let n_requests = self.n_requests();
        self.current.outcomes = Outcomes::default();
        // Those before do not count, which the sum with `n_requests` makes up for.
        self.current.outcomes.n_requests = 0_u64.wrapping_sub(n_requests);
        (self.n_hits, self.n_inserts) = (0, 0);
    }

    /// A name was asked for, cached or not.
    #[inline]
    pub fn handle_request(&mut self, hash: u64) {
        self.until_noted -= 1;
        if self.until_noted == 0 || hash < self.below {
            self.note(hash);
        }
    }

    /// The last request was a hit.
    #[inline]
    pub const fn handle_hit(&mut self) {
        self.n_hits += 1;
    }

    /// A Data was inserted.
    #[inline]
    pub const fn handle_insert(&mut self) {
        self.n_inserts += 1;
    }

    /// What became of the requests that are measured, since the cache last changed its size
    /// or its policy.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        self.outcomes_of_current().plus(self.previous.outcomes)
    }

    /// A copy of what was seen: at most 256 KiB, in some tens of microseconds.
    #[must_use]
    pub fn observed(&self) -> Observation {
        let mut current = self.current.observed();
        current.n_requests = self.n_requests();
        Observation {
            windows: [current, self.previous.observed()],
        }
    }

    /// Memory in use, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let windows = [&self.current, &self.previous].into_iter();
        let of_window = |window: &Window| {
            window.names.memory_bytes() + window.log.capacity() * size_of::<Noted>()
        };
        windows.map(of_window).sum()
    }

    /// Requests of the current window.
    const fn n_requests(&self) -> u64 {
        self.current.n_requests + (self.gap - self.until_noted)
    }

    fn outcomes_of_current(&self) -> Outcomes {
        Outcomes {
            n_requests: self
                .n_requests()
                .wrapping_add(self.current.outcomes.n_requests),
            n_hits: self.n_hits,
            n_inserts: self.n_inserts,
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&mut self, hash: u64) {
        if hash < self.below {
            self.current.names.count(hash);
            self.below = self.current.names.below();
        }
        if self.until_noted > 0 {
            return;
        }
        self.current.log.push(noted(hash));
        self.current.n_requests += self.gap;
        if self.current.log.len() == LOG_LEN {
            self.renew();
        }
        self.draw_gap();
    }

    fn draw_gap(&mut self) {
        // One to twice the mean less one, so that requests that come in turns are noted as
        // often as others.
        let n_gaps = usize::try_from(2 * self.mean_gap - 1).unwrap_or(usize::MAX);
        self.gap = 1 + self.random.below(n_gaps) as u64;
        self.until_noted = self.gap;
    }

    /// Begins another window.
    fn renew(&mut self) {
        self.gap = 0;
        self.current.outcomes = self.outcomes_of_current();
        (self.n_hits, self.n_inserts) = (0, 0);
        std::mem::swap(&mut self.current, &mut self.previous);
        // Twice as many names as last time have room before the bound is lowered, in case
        // that fewer are asked for now.
        self.current
            .clear(self.previous.names.below().saturating_mul(2));
        self.below = self.current.names.below();
        self.mean_gap = self.next_mean_gap;
    }
}

/// Requests from one that is noted to the next, on average.
const fn mean_gap(capacity: usize) -> u64 {
    let window_len = (capacity as u64).saturating_mul(WINDOW_BY_LEN);
    match window_len.div_ceil(LOG_LEN as u64) {
        0 => 1,
        gap => gap,
    }
}

/// What a [`PopularityMeter`] has seen.
#[derive(Clone, Debug)]
pub struct Observation {
    pub(super) windows: [ObservedWindow; 2],
}

/// Of one window.
#[derive(Clone, Debug)]
pub(super) struct ObservedWindow {
    pub(super) below: u64,
    pub(super) n_requests: u64,
    pub(super) names: Vec<(u64, u32)>,
    pub(super) log: Vec<Noted>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(name: u64) -> u64 {
        Random::new(name).next_u64()
    }

    #[test]
    fn every_request_is_counted_over_two_windows_at_most() {
        let mut meter = PopularityMeter::new(10_000, 1);
        let mut n_asked = 0;
        for name in 0..150_000 {
            meter.handle_request(hash(name));
            n_asked += 1;
            assert_eq!(meter.outcomes().n_requests, n_asked);
        }
        let seen = |meter: &PopularityMeter| -> u64 {
            let windows = meter.observed().windows;
            windows.iter().map(|window| window.n_requests).sum()
        };
        assert_eq!(seen(&meter), n_asked);
        for name in 0..600_000 {
            meter.handle_request(hash(name));
        }
        let n_requests = seen(&meter);
        assert_eq!(meter.outcomes().n_requests, n_requests);
        assert!((140_000..330_000).contains(&n_requests), "{n_requests}");
    }

    #[test]
    fn an_idle_meter_counts_and_keeps_nothing() {
        let mut meter = PopularityMeter::idle();
        (0..100_000).for_each(|name| meter.handle_request(hash(name)));
        let measured = meter.observed().measured();
        assert_eq!((measured.classes.len(), meter.memory_bytes() / 100), (0, 0));
    }

    #[test]
    fn outcomes_are_those_since_the_cache_has_changed() {
        let mut meter = PopularityMeter::new(1_000, 1);
        let ask = |meter: &mut PopularityMeter, n: u64| {
            for name in 0..n {
                meter.handle_request(hash(name));
                if name % 2 == 0 {
                    meter.handle_hit();
                }
                if name % 10 == 0 {
                    meter.handle_insert();
                }
            }
        };
        ask(&mut meter, 20_000);
        let outcomes = meter.outcomes();
        assert!(outcomes.n_requests > 15_000, "{outcomes:?}");
        assert!(outcomes.n_hits.abs_diff(outcomes.n_requests / 2) < 2);
        assert!(outcomes.n_inserts.abs_diff(outcomes.n_requests / 10) < 2);
        meter.begin_anew(100);
        assert_eq!(meter.outcomes(), Outcomes::default());
        ask(&mut meter, 1_000);
        let expected = Outcomes {
            n_requests: 1_000,
            n_hits: 500,
            n_inserts: 100,
        };
        assert_eq!(meter.outcomes(), expected);
        let n_seen: u64 = meter.observed().windows.iter().map(|w| w.n_requests).sum();
        assert!(n_seen > 15_000, "popularity is not forgotten");
    }

    #[test]
    fn memory_is_what_is_said_however_many_names_are_asked_for() {
        let mut meter = PopularityMeter::new(usize::MAX, 1);
        let before = meter.memory_bytes();
        assert!((200 << 10..=500 << 10).contains(&before), "{before}");
        for name in 0..1_000_000 {
            meter.handle_request(hash(name));
        }
        assert_eq!(meter.memory_bytes(), before);
    }
}
