//! What Filter is expected to do, computed from the popularity of names.
//!
//! Equations 3 to 7 of Takemasa et al. 2019 (5.3 to 5.7 of Takemasa 2019): insertion
//! ratio, characteristic time and hit ratio of a cache behind Filter, for names that are
//! asked for independently of each other; and equations 1 and 2, what an exchange costs
//! on average. Time is counted in requests: where the paper has the rate of a name in
//! requests per second, here it is the name's share of all requests, and its q and tau are
//! numbers of requests. Dividing by the requests per second of all names gives seconds.

/// Names that are equally popular.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NameClass {
    /// How many there are; estimates need not be whole numbers.
    pub n_names: f64,
    /// The probability that a request is for a certain one of them: the paper's
    /// normalised rate, 0 to 1.
    pub share: f64,
}

/// How popular names are, in classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    classes: Vec<NameClass>,
}

impl Popularity {
    /// Names of these classes. Shares are scaled so that those of all names add up to 1;
    /// classes without names or without a share count for nothing.
    #[must_use]
    pub fn new(classes: impl IntoIterator<Item = NameClass>) -> Self {
        let mut classes: Vec<_> = classes
            .into_iter()
            .filter(|class| class.n_names > 0.0 && class.share > 0.0)
            .collect();
        let all: f64 = classes
            .iter()
            .map(|class| class.n_names * class.share)
            .sum();
        for class in &mut classes {
            class.share /= all;
        }
        Self { classes }
    }

    /// Zipf's law: of `n_names`, the r-th most popular has a share that goes with
    /// r^-alpha. The first 1,000 are told apart, those behind in classes that grow by a
    /// fiftieth, which moves results by less than 10^-4.
    #[must_use]
    pub fn zipf(n_names: u64, alpha: f64) -> Self {
        let mut classes = Vec::new();
        let mut first = 1;
        while first <= n_names {
            let len = if first <= 1_000 { 1 } else { first / 50 };
            let len = len.min(n_names + 1 - first);
            // The mean over the class, as the integral from half a rank before it.
            let (from, to) = (first as f64 - 0.5, (first + len) as f64 - 0.5);
            let sum = match len {
                1 => (first as f64).powf(-alpha),
                _ if (alpha - 1.0).abs() < 1e-9 => (to / from).ln(),
                _ => (to.powf(1.0 - alpha) - from.powf(1.0 - alpha)) / (1.0 - alpha),
            };
            classes.push(NameClass {
                n_names: len as f64,
                share: sum / len as f64,
            });
            first += len;
        }
        Self::new(classes)
    }

    /// The classes, with shares that add up to 1.
    #[must_use]
    pub fn classes(&self) -> &[NameClass] {
        &self.classes
    }

    /// The hit ratio of a cache that always holds the `capacity` most popular names: no
    /// cache without foresight does better in the long run.
    #[must_use]
    pub fn best_hit_ratio(&self, capacity: f64) -> f64 {
        let mut classes = self.classes.clone();
        classes.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut left = capacity;
        let mut hit_ratio = 0.0;
        for class in classes {
            let held = class.n_names.min(left);
            hit_ratio += held * class.share;
            left -= held;
        }
        hit_ratio
    }
}

/// What evicts behind Filter, as far as the model knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionModel {
    /// First in, first out, or at random: equations 5 and 6.
    #[default]
    FifoOrRandom,
    /// Least recently used, by the same approximation (Martina, Garetto and Leonardi
    /// 2014, section 3.2).
    Lru,
}

/// Parameters of a cache behind Filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterModel {
    /// Data that the cache holds: C.
    pub capacity: f64,
    /// Requests in the history: q.
    pub history_len: f64,
    /// Least count that is admitted, the present request included; 1 admits all.
    pub threshold: u32,
    /// What makes room.
    pub eviction: EvictionModel,
}

/// What is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Hits by requests (equation 7), 0 to 1.
    pub hit_ratio: f64,
    /// Insertions by Data that arrive, that is by misses (equation 4), 0 to 1.
    pub insertion_ratio: f64,
    /// How long a Data stays in the cache, in requests for any name (tau of equation 6);
    /// infinite if all that is admitted has room.
    pub characteristic_requests: f64,
}

impl FilterModel {
    /// The probability that a Data is admitted when it arrives, if its name has this
    /// share (equation 3).
    #[must_use]
    pub fn admission_probability(&self, share: f64) -> f64 {
        // Poisson: at least threshold - 1 requests among the last q.
        let mean = self.history_len * share;
        let mut term = (-mean).exp();
        let mut fewer = 0.0;
        for count in 1..self.threshold {
            fewer += term;
            term *= mean / f64::from(count);
        }
        (1.0 - fewer).clamp(0.0, 1.0)
    }

    /// What a cache does in the long run, if names are as popular as this. Takes some
    /// sixty passes over the classes.
    #[must_use]
    pub fn expected(&self, popularity: &Popularity) -> Expected {
        let admitted: Vec<(NameClass, f64)> = popularity
            .classes
            .iter()
            .map(|&class| (class, self.admission_probability(class.share)))
            .collect();
        let tau = self.characteristic(&admitted);
        let (mut hits, mut misses, mut inserts) = (0.0, 0.0, 0.0);
        for &(class, probability) in &admitted {
            let hit = self.hit_probability(class.share, probability, tau);
            let requests = class.n_names * class.share;
            hits += requests * hit;
            misses += requests * (1.0 - hit);
            inserts += requests * (1.0 - hit) * probability;
        }
        Expected {
            hit_ratio: hits,
            insertion_ratio: if misses > 0.0 { inserts / misses } else { 0.0 },
            characteristic_requests: tau,
        }
    }

    /// Equation 5: the probability that a request for a name is a hit.
    fn hit_probability(&self, share: f64, admitted: f64, tau: f64) -> f64 {
        if admitted <= 0.0 {
            return 0.0;
        }
        if tau.is_infinite() {
            return 1.0;
        }
        match self.eviction {
            EvictionModel::FifoOrRandom => {
                let stays = share * admitted * tau;
                stays / (1.0 + stays)
            }
            EvictionModel::Lru => {
                let gone = (-share * tau).exp();
                let enters = admitted * (1.0 - gone);
                enters / (gone + enters)
            }
        }
    }

    /// Equation 6.
    fn characteristic(&self, admitted: &[(NameClass, f64)]) -> f64 {
        characteristic(self.capacity, |tau| {
            let of = |&(class, probability): &(NameClass, f64)| {
                class.n_names * self.hit_probability(class.share, probability, tau)
            };
            admitted.iter().map(of).sum()
        })
    }
}

/// k caches in a row, each of which a name enters if the one before held it already: k-LRU.
///
/// An approximation that takes a cache's characteristic time for constant, as Che, Tung and
/// Wang 2002 do for one LRU cache; what one request leaves in the caches for the next is
/// exact. Two requests for a name in succession are a time A apart, exponentially
/// distributed; a cache whose characteristic time exceeds A still holds the name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KLruModel {
    /// Data, or names, that each cache holds.
    pub capacity: f64,
    /// k, from 1: plain LRU.
    pub n_stages: usize,
}

impl KLruModel {
    /// The hit ratio of the last cache in the long run.
    #[must_use]
    pub fn hit_ratio(&self, popularity: &Popularity) -> f64 {
        let mut taus: Vec<f64> = Vec::new();
        for _ in 0..self.n_stages {
            let stage = |tau: f64| {
                let mut taus = taus.clone();
                taus.push(tau);
                taus
            };
            let held = |tau: f64| {
                let taus = stage(tau);
                let of = |class: &NameClass| class.n_names * in_last(class.share, &taus);
                popularity.classes.iter().map(of).sum()
            };
            taus.push(characteristic(self.capacity, held));
        }
        let of = |class: &NameClass| class.n_names * class.share * in_last(class.share, &taus);
        popularity.classes.iter().map(of).sum()
    }
}

/// The probability that the last cache of a chain holds a name of this share. Times do not
/// decrease along the chain, since each cache gets fewer insertions than the one before.
fn in_last(share: f64, taus: &[f64]) -> f64 {
    // By cache, the probability that A is below its time.
    let below: Vec<f64> = taus.iter().map(|tau| -(-share * tau).exp_m1()).collect();
    let k = below.len();
    // With u(i) for the probability that, after a request, any cache from the i-th on holds
    // the name: u(i) = below(i-1) u(i-1) + sum over m from i to k of
    // (below(m) - below(m-1)) u(m). So u(i) is a multiple of u(i-1), from the last one back,
    // and u(1) = 1.
    let mut by_before = vec![1.0; k];
    for i in (1..k).rev() {
        let mut rest = 1.0;
        let mut product = 1.0;
        for m in i..k {
            if m > i {
                product *= by_before[m];
            }
            rest -= (below[m] - below[m - 1]).max(0.0) * product;
        }
        by_before[i] = if rest > 0.0 { below[i - 1] / rest } else { 1.0 };
    }
    let in_last_after = by_before.iter().product::<f64>();
    below[k - 1] * in_last_after.min(1.0)
}

/// The time in requests with which `held` says that a cache is full, solved by halving an
/// interval of its logarithm; infinite if all that is asked for has room.
fn characteristic(capacity: f64, held: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-20.0_f64, 60.0_f64);
    if held(high.exp()) <= capacity {
        return f64::INFINITY;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if held(middle.exp()) < capacity {
            low = middle;
        } else {
            high = middle;
        }
    }
    ((low + high) / 2.0).exp()
}

/// Cycles of the blocks of the packet path, in the groups of the paper (its section
/// 3.2.1). Any unit of time will do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockCycles {
    /// G1, for each Interest: receiving it, updating the history, searching the content
    /// store, sending the Data (B1, B2, B3, B11).
    pub always: f64,
    /// G2, for each hit: reading the Data (B4).
    pub hit: f64,
    /// G3, for each miss: PIT, FIB, sending the Interest, receiving the Data, and the PIT
    /// again (B5 to B9).
    pub miss: f64,
    /// Inserting a Data (B10).
    pub insert: f64,
    /// Choosing what has to go (B12).
    pub evict: f64,
    /// Deciding on admission (B13).
    pub admit: f64,
}

impl BlockCycles {
    /// Cycles for an Interest and the Data that answers it, if all Data are inserted
    /// (equation 1).
    #[must_use]
    pub fn with_eviction(&self, hit_ratio: f64) -> f64 {
        let miss = self.miss + self.evict + self.insert;
        self.always + hit_ratio * self.hit + (1.0 - hit_ratio) * miss
    }

    /// The same with an admission (equation 2). The paper has no eviction here; what is
    /// inserted into a full cache evicts, so that `evict` is counted with it.
    #[must_use]
    pub fn with_admission(&self, hit_ratio: f64, insertion_ratio: f64) -> f64 {
        let miss = self.miss + self.admit + insertion_ratio * (self.insert + self.evict);
        self.always + hit_ratio * self.hit + (1.0 - hit_ratio) * miss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(history_len: f64, threshold: u32) -> FilterModel {
        FilterModel {
            capacity: 1e5,
            history_len,
            threshold,
            eviction: EvictionModel::FifoOrRandom,
        }
    }

    #[test]
    fn expectations_are_those_known_of_ten_million_names() {
        let popularity = Popularity::zipf(10_000_000, 0.8);
        assert!((popularity.best_hit_ratio(1e5) - 0.3761).abs() < 2e-4);
        let all = filter(1e5, 1).expected(&popularity);
        assert!((all.hit_ratio - 0.2242).abs() < 1e-3, "{all:?}");
        assert_eq!(all.insertion_ratio, 1.0);
        let two = filter(1e5, 2).expected(&popularity);
        // Simulated: 0.324 and 0.029. The equations take a Data's first request after its
        // eviction for any other; that there was none for so long makes one less likely
        // within the history.
        assert!((two.hit_ratio - 0.324).abs() < 4e-3, "{two:?}");
        assert!((two.insertion_ratio - 0.029).abs() < 2.5e-3, "{two:?}");
        let lru = FilterModel {
            eviction: EvictionModel::Lru,
            ..filter(1e5, 1)
        };
        assert!((lru.expected(&popularity).hit_ratio - 0.2483).abs() < 1e-3);
    }

    #[test]
    fn a_cache_with_room_for_all_hits_always() {
        let popularity = Popularity::zipf(1_000, 1.0);
        let expected = filter(1e5, 1).expected(&popularity);
        assert_eq!(expected.characteristic_requests, f64::INFINITY);
        assert!((expected.hit_ratio - 1.0).abs() < 1e-9);
        assert!((popularity.best_hit_ratio(1e5) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn admission_is_the_tail_of_a_poisson_distribution() {
        assert_eq!(filter(1e4, 1).admission_probability(1e-9), 1.0);
        let mean: f64 = 1.5;
        let two = 1.0 - (-mean).exp();
        assert!((filter(1e4, 2).admission_probability(mean / 1e4) - two).abs() < 1e-12);
        let four = 1.0 - (-mean).exp() * (1.0 + mean + mean * mean / 2.0);
        assert!((filter(1e4, 4).admission_probability(mean / 1e4) - four).abs() < 1e-12);
    }

    #[test]
    fn classes_without_names_count_for_nothing() {
        let class = |n_names, share| NameClass { n_names, share };
        let popularity = Popularity::new([class(2.0, 3.0), class(0.0, 5.0), class(4.0, 0.0)]);
        assert_eq!(popularity.classes(), [class(2.0, 0.5)]);
        let nothing = filter(1e4, 2).expected(&Popularity::new([]));
        assert_eq!((nothing.hit_ratio, nothing.insertion_ratio), (0.0, 0.0));
    }

    #[test]
    fn average_cycles_are_those_of_the_papers_estimate() {
        // Section 3.3: ARC and TinyLFU at a hit ratio of 0.3, with Tables 1 and 2. The
        // blocks of its groups as the tables number them.
        let blocks = |history: f64| BlockCycles {
            always: 571.0 + history + 148.0 + 50.0,
            hit: 72.0,
            miss: 188.0 + 413.0 + 56.0 + 188.0 + 73.0,
            insert: 329.0,
            evict: 202.0,
            admit: 282.0,
        };
        let arc = blocks(173.0).with_eviction(0.3);
        assert!((arc - (942.0 + 21.6 + 0.7 * (918.0 + 202.0 + 329.0))).abs() < 1e-9);
        let without = BlockCycles {
            evict: 0.0,
            ..blocks(91.0)
        };
        let tiny = without.with_admission(0.3, 0.1);
        assert!((tiny - (860.0 + 21.6 + 0.7 * (918.0 + 282.0 + 32.9))).abs() < 1e-9);
        assert!(tiny < arc);
    }
}
