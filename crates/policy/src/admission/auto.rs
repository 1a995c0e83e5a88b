//! Filter that tunes itself.
//!
//! What the published Filter leaves to the operator follows the traffic here. The history
//! holds [`HISTORY_BY_LEN`] times as many requests as the cache has Data, so that it tells
//! names near the edge of the cache apart; how much of it counts depends on when popularity
//! last changed, which shows as a sudden fall of the hit ratio. The threshold is the least
//! that about as many names reach as the cache has room for, less in the long run: how many
//! those are is estimated from the counts that requests meet (Good, "The population
//! frequencies of species and the estimation of population parameters", Biometrika 1953). If
//! a share f of requests is for names that were asked for k times before within q requests,
//! about q f / (k + 1) names have a count of k + 1. The threshold may lie between two
//! counts: then those names are admitted at the lower one whose hashes say so.
//!
//! Where popularity drifts, counts grew in less time than the history spans, and names are
//! more popular now than their counts tell. That shows in when the earlier requests for a name
//! came: with popularity that stays, they lie evenly over the history. Of one name in sixteen
//! the last requests are counted apart, and if more of its requests are among them than
//! should be, the estimate takes the history for as much shorter.

use tachonym_memory::{MemoryError, PagePreference, Pages};

use super::filter::Filter;
use crate::kind::CountersKind;

/// Requests in the history, by the size of the cache.
pub const HISTORY_BY_LEN: usize = 20;

/// Counts that are told apart: from 1 to the greatest that counters have.
const N_COUNTS: usize = Filter::max_threshold(CountersKind::Lines) as usize;
/// Between two tunings there are requests for this part of the cache.
const PERIODS_BY_LEN: usize = 20;
/// Of how many names one has its last requests counted apart, as a power of two.
const SAMPLE_BITS: u32 = 4;
/// Requests count towards the span of counts up to this count: those of more are near what
/// counters can tell, and may seem fewer than they are.
const MAX_TOLD: usize = 8;
/// Earlier requests that tell where earlier ones lie, at least.
const MIN_MET: f64 = 30.0;
/// How much of what was met is forgotten in a period.
const FORGOTTEN: f64 = 0.01;
/// Counts that grew in less than this share of the history tell that popularity drifts.
const DRIFTING_SHARE: f64 = 0.6;
/// How much of a period's counts goes into those that the threshold is found by: while
/// learning, and afterwards. One period may be a scan.
const NEW_WHILE_LEARNING: f64 = 0.3;
const NEW: f64 = 0.1;
/// Requests between two tunings, at least: fewer tell little.
const MIN_PERIOD: usize = 256;
/// Names that may reach the threshold, by the size of the cache: while the cache is
/// learning what is popular, and afterwards. Found by trial on independent references,
/// where the former decides how fast a change is learnt and the latter how much is
/// inserted.
const LEARNING_SHARE: f64 = 1.1;
const SETTLED_SHARE: f64 = 0.54;
/// Requests for which learning goes on, by the size of the cache.
const LEARNING_BY_LEN: usize = 35;
/// A hit ratio below this share of what it was tells that popularity has changed, if it
/// lies as many standard deviations below: those of chance, or those that it had lately if
/// they are greater, since some traffic goes up and down all the time.
const CHANGED_SHARE: f64 = 0.7;
const CHANGED_DEVIATIONS: f64 = 4.0;
/// How much of a period's hit ratio goes into the long-run one, if it is higher and if it
/// is lower.
const RISING: f64 = 0.2;
const FALLING: f64 = 0.05;
/// How much of a period's squared deviation goes into the usual one.
const DEVIATING: f64 = 0.01;

/// Whether what was popular is no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is, as far as one can tell.
    None,
    /// Popularity has changed at once: what hits told before is worth nothing.
    Sudden,
}

/// Requests for names that are counted apart.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    /// Earlier requests for the same name within the history, and those of them that are
    /// among the last.
    n_before: f64,
    n_lately: f64,
    /// Requests for such names, and for all.
    n_sampled: f64,
    n_requests: f64,
}

impl Met {
    fn fade_into(&mut self, new: Self) {
        let faded = |old: f64, new: f64| old * (1.0 - FORGOTTEN) + new;
        *self = Self {
            n_before: faded(self.n_before, new.n_before),
            n_lately: faded(self.n_lately, new.n_lately),
            n_sampled: faded(self.n_sampled, new.n_sampled),
            n_requests: faded(self.n_requests, new.n_requests),
        };
    }

    /// In how many requests counts have grown, if as many of the sampled requests as
    /// `n_last` are the last ones. `None` if too little was met.
    fn span(&self, n_last: f64) -> Option<f64> {
        let last_span = n_last * self.n_requests / self.n_sampled.max(1.0);
        (self.n_lately >= MIN_MET).then(|| last_span * self.n_before / self.n_lately)
    }
}

/// Whether a name's last requests are counted apart: by bits that neither the line nor the
/// counters are chosen by.
const fn is_counted_apart(hash: u64) -> bool {
    hash >> 32 & ((1 << SAMPLE_BITS) - 1) == 0
}

/// Requests that are counted apart.
const fn short_len(capacity: usize) -> usize {
    let len = capacity >> SAMPLE_BITS;
    if len < 4 { 4 } else { len }
}

/// See the module.
#[derive(Debug)]
pub struct AutoFilter {
    filter: Filter,
    capacity: f64,
    period: usize,
    n_requests: usize,
    n_hits: usize,
    /// Requests of the period by the count that they led to: 1, 2 and so on.
    by_count: [u32; N_COUNTS],
    /// Requests since popularity changed.
    n_since_change: usize,
    /// The hit ratio in the long run.
    hit_ratio: f64,
    /// The square of its deviations from that.
    variance: f64,
    /// Shares of the requests by count as in `by_count`, over some periods.
    recent_by: [f64; N_COUNTS],
    /// The last requests for the names that are counted apart: as many as the cache has
    /// Data, in the long run.
    short: Filter,
    /// Since the last tuning.
    met: Met,
    /// Over some periods.
    recent_met: Met,
    /// In 256ths.
    threshold: u32,
}

impl AutoFilter {
    /// A filter for a cache of `capacity` Data that knows nothing yet, and admits all.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub fn new(capacity: usize, pages: PagePreference) -> Result<Self, MemoryError> {
        let history_len = capacity.saturating_mul(HISTORY_BY_LEN);
        Ok(Self {
            filter: Filter::sparse(history_len, pages)?,
            capacity: capacity as f64,
            period: (capacity / PERIODS_BY_LEN).max(MIN_PERIOD),
            n_requests: 0,
            n_hits: 0,
            by_count: [0; N_COUNTS],
            n_since_change: 0,
            hit_ratio: 0.0,
            variance: 0.0,
            recent_by: [0.0; N_COUNTS],
            short: Filter::sparse(short_len(capacity), pages)?,
            met: Met::default(),
            recent_met: Met::default(),
            threshold: 256,
        })
    }

    /// The threshold in force. Of the names whose count is next below it, it admits as
    /// large a part as it lies below a whole number.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        f64::from(self.threshold) / 256.0
    }

    /// A name was asked for. Every so often this finds another threshold, which takes a
    /// few hundred steps.
    #[inline]
    pub fn handle_request(&mut self, hash: u64) -> Change {
        let count = self.filter.handle_request(hash) as usize;
        if is_counted_apart(hash) {
            let lately = self.short.handle_request(hash) as usize;
            self.met.n_sampled += 1.0;
            if count <= MAX_TOLD {
                self.met.n_before += count.saturating_sub(1) as f64;
                self.met.n_lately += lately.min(count).saturating_sub(1) as f64;
            }
        }
        self.by_count[count.clamp(1, N_COUNTS) - 1] += 1;
        self.n_requests += 1;
        if self.n_requests < self.period {
            return Change::None;
        }
        self.tune()
    }

    /// A request was a hit.
    #[inline]
    pub const fn handle_hit(&mut self) {
        self.n_hits += 1;
    }

    /// Whether a Data of this name is admitted.
    #[inline]
    #[must_use]
    pub fn admits(&self, hash: u64) -> bool {
        // Bits that neither the line nor the counters are chosen by.
        let luck = (hash >> 24) as u32 & 0xFF;
        (self.filter.count(hash) << 8 | luck) >= self.threshold
    }

    /// Fetches the counters of a name that will be asked for soon.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.filter.prefetch(hash);
    }

    /// What pages its tables have.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.filter.pages() + self.short.pages()
    }

    /// Memory of history and counters, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.filter.memory_bytes() + self.short.memory_bytes()
    }

    /// The same for a cache of `capacity` Data, before it is made.
    #[must_use]
    pub fn bytes_for(capacity: usize) -> u64 {
        let history = Filter::sparse_bytes_for(capacity.saturating_mul(HISTORY_BY_LEN));
        history.saturating_add(Filter::sparse_bytes_for(short_len(capacity)))
    }

    #[cold]
    fn tune(&mut self) -> Change {
        let n_requests = self.n_requests as f64;
        let change = self.follow_hits(self.n_hits as f64 / n_requests);
        let is_learning = (self.n_since_change as f64) < self.capacity * LEARNING_BY_LEN as f64;
        let share = if is_learning {
            LEARNING_SHARE
        } else {
            SETTLED_SHARE
        };
        let weight = if is_learning { NEW_WHILE_LEARNING } else { NEW };
        for (recent, &new) in self.recent_by.iter_mut().zip(&self.by_count) {
            *recent += weight * (f64::from(new) / n_requests - *recent);
        }
        self.met.n_requests = n_requests;
        self.recent_met.fade_into(std::mem::take(&mut self.met));
        let history_len = self.n_since_change.min(self.filter.history_len()) as f64;
        let history_len = match self.recent_met.span(self.short.history_len() as f64) {
            Some(span) if !is_learning && span < DRIFTING_SHARE * history_len => {
                span.max(self.capacity)
            }
            _ => history_len,
        };
        let room = share * self.capacity;
        let names_of = |idx: usize| history_len * self.recent_by[idx] / (idx as f64 + 1.0);
        let mut names = 0.0;
        self.threshold = 256;
        for idx in (0..N_COUNTS).rev() {
            let count = idx as u32 + 1;
            let more = names_of(idx);
            if names + more > room {
                // While learning, doubtful names are left out: there are better ones.
                let part = if is_learning {
                    0.0
                } else {
                    (room - names) / more
                };
                self.threshold = (256.0 * (f64::from(count + 1) - part)) as u32;
                break;
            }
            names += more;
        }
        self.threshold = self.threshold.min(N_COUNTS as u32 * 256);
        self.by_count = [0; N_COUNTS];
        (self.n_requests, self.n_hits) = (0, 0);
        change
    }

    /// Compares the hit ratio of a period with that of the long run.
    fn follow_hits(&mut self, hit_ratio: f64) -> Change {
        let usual = self.hit_ratio;
        let chance = usual * (1.0 - usual) / self.n_requests as f64;
        let deviation = chance.max(self.variance).sqrt();
        self.variance += DEVIATING * ((hit_ratio - usual).powi(2) - self.variance);
        let has_fallen =
            hit_ratio < usual * CHANGED_SHARE && hit_ratio < usual - CHANGED_DEVIATIONS * deviation;
        if has_fallen {
            self.hit_ratio = hit_ratio;
            self.n_since_change = self.n_requests;
            self.recent_by = self.by_count.map(|n| f64::from(n) / self.n_requests as f64);
            self.recent_met = Met::default();
            return Change::Sudden;
        }
        let weight = if hit_ratio > usual { RISING } else { FALLING };
        self.hit_ratio += weight * (hit_ratio - usual);
        self.n_since_change = self.n_since_change.saturating_add(self.n_requests);
        Change::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Asks for names `first..first + n_names` at random.
    fn ask(filter: &mut AutoFilter, random: &mut Random, first: u64, n_names: usize, n: usize) {
        for _ in 0..n {
            let name = first + random.below(n_names) as u64;
            filter.handle_request(hash(name));
        }
    }

    fn hash(name: u64) -> u64 {
        Random::new(name).next_u64()
    }

    #[test]
    fn the_threshold_is_what_as_many_names_reach_as_there_is_room_for() {
        let mut filter = AutoFilter::new(1_000, PagePreference::Base).expect("little memory");
        let mut random = Random::new(1);
        // There is room for all: whatever is asked for is admitted.
        ask(&mut filter, &mut random, 0, 400, 60_000);
        assert!(filter.admits(hash(5)));
        assert!(
            (filter.threshold() - 1.0).abs() < 1e-9,
            "{}",
            filter.threshold()
        );
        // Far more names than room, each about 2 times within the history.
        ask(&mut filter, &mut random, 10_000, 10_000, 60_000);
        let n_admitted = (10_000..20_000)
            .filter(|&name| filter.admits(hash(name)))
            .count();
        assert!((300..1_500).contains(&n_admitted), "{n_admitted}");
        assert!(
            (4.0..8.0).contains(&filter.threshold()),
            "{}",
            filter.threshold()
        );
    }

    #[test]
    fn a_fall_of_the_hit_ratio_is_a_change_and_noise_is_not() {
        let mut filter = AutoFilter::new(10_000, PagePreference::Base).expect("little memory");
        let mut random = Random::new(2);
        let mut changes = |filter: &mut AutoFilter, n: usize, hits_of_20: usize| {
            let mut n_changes = 0;
            for _ in 0..n {
                let change = filter.handle_request(random.next_u64());
                n_changes += usize::from(change == Change::Sudden);
                if random.below(20) < hits_of_20 {
                    filter.handle_hit();
                }
            }
            n_changes
        };
        assert_eq!(changes(&mut filter, 200_000, 8), 0);
        assert_eq!(
            changes(&mut filter, 100_000, 7),
            0,
            "a small decline is none"
        );
        assert_eq!(changes(&mut filter, 5_000, 0), 1);
        assert_eq!(
            changes(&mut filter, 5_000, 0),
            0,
            "it has been told already"
        );
    }

    #[test]
    fn a_hit_ratio_that_always_goes_up_and_down_tells_of_no_change() {
        let mut filter = AutoFilter::new(10_000, PagePreference::Base).expect("little memory");
        let mut random = Random::new(4);
        let mut changed_at = Vec::new();
        for n in 0..200 {
            for _ in 0..500 {
                if filter.handle_request(random.next_u64()) == Change::Sudden {
                    changed_at.push(n);
                }
                if n / 3 % 2 == 0 {
                    filter.handle_hit();
                }
            }
        }
        assert!(changed_at.iter().all(|&n| n < 20), "{changed_at:?}");
    }

    #[test]
    fn the_threshold_falls_where_popularity_drifts() {
        let threshold = |drifts: bool| {
            let mut filter = AutoFilter::new(4_000, PagePreference::Base).expect("little memory");
            let mut random = Random::new(5);
            for step in 0..400 {
                let first = if drifts { 500 * step } else { 0 };
                ask(&mut filter, &mut random, first, 20_000, 1_000);
            }
            filter.threshold()
        };
        let (stays, drifts) = (threshold(false), threshold(true));
        assert!(drifts < 0.75 * stays, "{drifts} {stays}");
    }

    #[test]
    fn a_scan_does_not_lower_the_threshold() {
        let mut filter = AutoFilter::new(1_000, PagePreference::Base).expect("little memory");
        let mut random = Random::new(6);
        ask(&mut filter, &mut random, 0, 10_000, 100_000);
        let before = filter.threshold();
        for name in 0..600 {
            filter.handle_request(hash(1_000_000 + name));
        }
        assert!(
            filter.threshold() > 0.7 * before,
            "{before} {}",
            filter.threshold()
        );
    }
}
