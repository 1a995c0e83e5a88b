//! Admission and eviction together, as a content store asks for them.

use tachonym_memory::{Limit, MemoryError, PagePreference, Pages, available_bytes};

use crate::admission::{AutoFilter, Change, Filter, KLru, TinyLfu};
use crate::eviction::{Eviction, MAX_SLOTS};
use crate::kind::{AdmissionKind, CountersKind, EvictionKind, senseless};
use crate::popularity::{Observation, Outcomes, PopularityMeter};
use crate::random::Random;
use crate::window::Window;

/// What a [`Policy`] is made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Whether an arriving Data is cached.
    pub admission: AdmissionKind,
    /// What makes room.
    pub eviction: EvictionKind,
    /// Most Data; slots lie below it. 0 caches nothing.
    pub capacity: usize,
    /// Of [`AdmissionKind::Lcp`]: with what probability a Data is cached, 0 to 1.
    pub probability: f64,
    /// Of [`AdmissionKind::KLru`]: k, the caches of the chain, the one of Data included; in
    /// [`KLru::N_STAGES`].
    pub n_stages: usize,
    /// Of [`AdmissionKind::Filter`]: the least count that is cached, from 1.
    pub threshold: u32,
    /// Of [`AdmissionKind::Filter`]: requests in the history, from 1; `None` for as many
    /// as the capacity.
    pub history_len: Option<usize>,
    /// Of [`AdmissionKind::Filter`]: how requests are counted.
    pub counters: CountersKind,
    /// Of [`AdmissionKind::TinyLfu`] and [`AdmissionKind::WTinyLfu`]: requests in the
    /// window over which frequencies are kept, by the capacity; from 1.
    pub window_by_len: usize,
    /// What policies draw from.
    pub seed: u64,
    /// What pages the tables of admission should have.
    pub pages: PagePreference,
}

impl PolicyConfig {
    /// The same for one of several caches, each for as many of the names as another:
    /// histories that are counted in requests become shorter.
    #[must_use]
    pub fn for_one_of(self, n_caches: usize) -> Self {
        let part = |len: usize| (len / n_caches.max(1)).max(1);
        Self {
            history_len: self.history_len.map(part),
            ..self
        }
    }

    /// These two with so many Data, and all else as published: threshold 2, a history as
    /// long as the cache is large; for TinyLFU a window of fifty times that. For W-TinyLFU
    /// it is twenty times.
    #[must_use]
    pub fn new(admission: AdmissionKind, eviction: EvictionKind, capacity: usize) -> Self {
        Self {
            admission,
            eviction,
            capacity,
            probability: 0.1,
            n_stages: 2,
            threshold: 2,
            history_len: None,
            counters: CountersKind::default(),
            window_by_len: match admission {
                AdmissionKind::TinyLfu => 50,
                _ => 20,
            },
            seed: 1,
            pages: PagePreference::Auto,
        }
    }
}

impl PolicyConfig {
    /// Whether there can be such a policy, memory aside.
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn check(&self) -> Result<(), PolicyError> {
        let (admission, eviction) = (self.admission, self.eviction);
        if let Some(reason) = senseless(admission, eviction) {
            return Err(PolicyError::Senseless {
                admission,
                eviction,
                reason,
            });
        }
        match admission {
            AdmissionKind::None | AdmissionKind::FilterAuto => Ok(()),
            AdmissionKind::Lcp => match self.probability {
                0.0..=1.0 => Ok(()),
                other => Err(PolicyError::Probability(other)),
            },
            AdmissionKind::KLru if KLru::N_STAGES.contains(&self.n_stages) => Ok(()),
            AdmissionKind::KLru => Err(PolicyError::Stages(self.n_stages)),
            AdmissionKind::Filter => self.check_filter(),
            AdmissionKind::TinyLfu | AdmissionKind::WTinyLfu => match self.window_by_len {
                0 => Err(PolicyError::NoHistory),
                _ => Ok(()),
            },
        }
    }

    /// Bytes of the tables for this: as [`Policy::memory_bytes`] tells, without making them,
    /// but for evictions other than FIFO, LRU and at random, and for W-TinyLFU, which take
    /// so many at most.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        let of_eviction = match self.eviction {
            // A link to either side; its place in the list of all, and what is there.
            EvictionKind::Fifo | EvictionKind::Lru | EvictionKind::Random => {
                8 * self.capacity as u64
            }
            other => other.max_bytes(self.capacity),
        };
        let of_admission = match self.admission {
            AdmissionKind::Filter => {
                let as_the_cache = self.capacity.max(self.threshold as usize);
                Filter::bytes_for(self.history_len.unwrap_or(as_the_cache), self.counters)
            }
            AdmissionKind::KLru => KLru::bytes_for(self.capacity, self.n_stages),
            AdmissionKind::FilterAuto => AutoFilter::bytes_for(self.capacity),
            AdmissionKind::TinyLfu => TinyLfu::bytes_for(self.window_len()),
            // Links of the window, and what is held, beside it.
            AdmissionKind::WTinyLfu => {
                TinyLfu::bytes_for(self.window_len()) + 16 * self.capacity as u64
            }
            AdmissionKind::None | AdmissionKind::Lcp => 0,
        };
        of_eviction.saturating_add(of_admission)
    }

    /// Requests of the window of TinyLFU.
    fn window_len(&self) -> usize {
        self.capacity.max(1).saturating_mul(self.window_by_len)
    }

    fn check_filter(&self) -> Result<(), PolicyError> {
        let (threshold, counters) = (self.threshold, self.counters);
        let max = Filter::max_threshold(counters);
        if threshold == 0 || threshold > max {
            return Err(PolicyError::Threshold {
                threshold,
                counters,
                max,
            });
        }
        match self.history_len {
            Some(0) => Err(PolicyError::NoHistory),
            Some(history_len) if (history_len as u64) < u64::from(threshold) => {
                Err(PolicyError::Unreachable {
                    threshold,
                    history_len,
                })
            }
            _ => Ok(()),
        }
    }
}

/// Why there is no such policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// Admission and eviction do not go together.
    #[error("admission {admission} with eviction {eviction}: {reason}")]
    Senseless {
        /// The admission.
        admission: AdmissionKind,
        /// The eviction.
        eviction: EvictionKind,
        /// Why not.
        reason: &'static str,
    },
    /// More Data than a policy has slots for.
    #[error("{0} Data packets are more than the {MAX_SLOTS} that a policy can hold")]
    TooManySlots(usize),
    /// A probability outside of its range.
    #[error("{0} is not a probability; use a number from 0 to 1")]
    Probability(f64),
    /// A chain of k-LRU that is too short or too long.
    #[error(
        "{0} caches of k-LRU are out of range; use {min} to {max}",
        min = KLru::N_STAGES.start(),
        max = KLru::N_STAGES.end()
    )]
    Stages(usize),
    /// A threshold that cannot be counted to.
    #[error(
        "threshold {threshold} is out of range: counters of kind {counters} count from 1 to {max}"
    )]
    Threshold {
        /// What was asked for.
        threshold: u32,
        /// The counters.
        counters: CountersKind,
        /// The greatest that these tell.
        max: u32,
    },
    /// A threshold that no name can reach within the history.
    #[error(
        "threshold {threshold} is never reached in a history of {history_len} requests; lower it, \
         or lengthen the history"
    )]
    Unreachable {
        /// What was asked for.
        threshold: u32,
        /// Requests in the history.
        history_len: usize,
    },
    /// A history or a window of no request.
    #[error("a history or window needs at least one request")]
    NoHistory,
    /// There is not as much memory.
    #[error("tables of the admission policy: {0}")]
    Memory(#[from] MemoryError),
}

/// Admission and eviction of a store with slots `0..capacity`, and what is measured of its
/// requests.
///
/// The store calls, in this order: [`handle_request`](Self::handle_request) for each
/// Interest that misses, [`handle_answered`](Self::handle_answered) and
/// [`handle_hit`](Self::handle_hit) for each that hits; for each Data that arrives and is
/// not cached, [`admits`](Self::admits), and if so as often as room is wanted,
/// [`evict`](Self::evict), then [`handle_insert`](Self::handle_insert). What leaves for
/// other reasons is told by [`handle_remove`](Self::handle_remove). To change the
/// configuration while Data are held, a store makes another policy, which
/// [takes over](Self::take_over), and [moves](Self::handle_move) them there.
///
/// Nothing is allocated after [`new`](Self::new).
#[derive(Debug)]
pub struct Policy {
    admission: Admission,
    eviction: Eviction,
    meter: PopularityMeter,
    n_slots: usize,
    config: PolicyConfig,
}

#[derive(Debug)]
enum Admission {
    All,
    Lcp {
        random: Random,
        /// Draws below this are cached: the probability times 2^64.
        below: u128,
    },
    KLru(KLru),
    Filter(Filter),
    Auto(Box<AutoFilter>),
    TinyLfu {
        frequencies: TinyLfu,
        /// What the Data that was admitted last has beaten.
        beaten: Option<u32>,
    },
    Window {
        frequencies: TinyLfu,
        window: Window,
    },
}

impl Policy {
    /// A policy of which no slot is held. It measures no requests.
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn new(config: &PolicyConfig) -> Result<Self, PolicyError> {
        Self::with_slots(config, config.capacity)
    }

    /// As [`new`](Self::new), with slots below `n_slots`, if that is more than the
    /// capacity: a store may have slots that it does not fill.
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn with_slots(config: &PolicyConfig, n_slots: usize) -> Result<Self, PolicyError> {
        let n_slots = n_slots.max(config.capacity);
        let PolicyConfig {
            admission,
            eviction,
            capacity,
            ..
        } = *config;
        config.check()?;
        if n_slots > MAX_SLOTS {
            return Err(PolicyError::TooManySlots(n_slots));
        }
        let of_admission = match admission {
            AdmissionKind::KLru => KLru::bytes_for(capacity, config.n_stages),
            // Their tables check by themselves.
            _ => 0,
        };
        let needed_bytes = eviction.max_bytes(n_slots).saturating_add(of_admission);
        let available_bytes = available_bytes();
        if needed_bytes > available_bytes {
            return Err(PolicyError::Memory(MemoryError::TooLarge {
                needed_bytes,
                available_bytes,
                limit: Limit::Machine,
            }));
        }
        let mut target_len = capacity;
        let admission = match admission {
            AdmissionKind::None => Admission::All,
            AdmissionKind::Lcp => lcp(config.probability, config.seed),
            AdmissionKind::KLru => Admission::KLru(KLru::new(capacity, config.n_stages)),
            AdmissionKind::Filter => Admission::Filter(filter(config)?),
            AdmissionKind::FilterAuto => {
                Admission::Auto(Box::new(AutoFilter::new(capacity, config.pages)?))
            }
            AdmissionKind::TinyLfu => Admission::TinyLfu {
                frequencies: frequencies(config)?,
                beaten: None,
            },
            AdmissionKind::WTinyLfu => {
                let window = Window::new(n_slots, capacity);
                target_len = capacity - window.max_len();
                Admission::Window {
                    frequencies: frequencies(config)?,
                    window,
                }
            }
        };
        Ok(Self {
            admission,
            eviction: Eviction::new(eviction, n_slots, target_len, config.seed),
            meter: PopularityMeter::idle(),
            n_slots,
            config: *config,
        })
    }

    /// The same policy, which measures requests from the start.
    #[must_use]
    pub fn measuring(mut self) -> Self {
        self.meter = PopularityMeter::new(self.config.capacity, self.config.seed);
        self
    }

    /// Takes the place of `former`, which may hold Data still: continues its measurement.
    pub fn take_over(&mut self, former: &mut Self) {
        std::mem::swap(&mut self.meter, &mut former.meter);
        self.meter.begin_anew(self.config.capacity);
    }

    /// The measured popularity of names, a copy that takes some tens of microseconds.
    #[must_use]
    pub fn popularity(&self) -> Observation {
        self.meter.observed()
    }

    /// What became of the measured requests.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        self.meter.outcomes()
    }

    /// What it was made with.
    #[must_use]
    pub const fn config(&self) -> &PolicyConfig {
        &self.config
    }

    /// Slots lie below this number.
    #[must_use]
    pub const fn n_slots(&self) -> usize {
        self.n_slots
    }

    /// Whether [`admits`](Self::admits) is always true, but for a cache of none.
    #[inline]
    #[must_use]
    pub const fn admits_all(&self) -> bool {
        matches!(self.admission, Admission::All | Admission::Window { .. })
    }

    /// Which eviction it is.
    #[must_use]
    pub const fn eviction(&self) -> EvictionKind {
        self.eviction.kind()
    }

    /// Slots that are held.
    #[must_use]
    pub fn len(&self) -> usize {
        let in_window = match &self.admission {
            Admission::Window { window, .. } => window.len(),
            _ => 0,
        };
        self.eviction.len() + in_window
    }

    /// Whether no slot is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A name was asked for, and a Data answers: one that [`handle_hit`](Self::handle_hit)
    /// reports, or one that a former policy holds.
    #[inline]
    pub fn handle_answered(&mut self, hash: u64) {
        self.meter.handle_hit();
        self.handle_request(hash);
    }

    /// A name was asked for. Of a hit, [`handle_answered`](Self::handle_answered) tells the
    /// measurement, too.
    #[inline]
    pub fn handle_request(&mut self, hash: u64) {
        self.meter.handle_request(hash);
        match &mut self.admission {
            Admission::All | Admission::Lcp { .. } => {}
            Admission::KLru(chain) => chain.handle_request(hash),
            Admission::Filter(filter) => {
                filter.handle_request(hash);
            }
            Admission::Auto(filter) => {
                if filter.handle_request(hash) == Change::Sudden {
                    self.eviction.forget_hits();
                }
            }
            Admission::TinyLfu { frequencies, .. } | Admission::Window { frequencies, .. } => {
                frequencies.handle_request(hash);
            }
        }
    }

    /// Fetches what [`handle_request`](Self::handle_request) will read.
    #[inline]
    pub fn prefetch_request(&self, hash: u64) {
        match &self.admission {
            Admission::All | Admission::Lcp { .. } => {}
            Admission::KLru(chain) => chain.prefetch(hash),
            Admission::Filter(filter) => filter.prefetch(hash),
            Admission::Auto(filter) => filter.prefetch(hash),
            Admission::TinyLfu { frequencies, .. } | Admission::Window { frequencies, .. } => {
                frequencies.prefetch(hash);
            }
        }
    }

    /// The Data in a slot answers an Interest.
    #[inline]
    pub fn handle_hit(&mut self, slot: u32) {
        match &mut self.admission {
            Admission::Window { window, .. } if window.holds(slot) => {
                window.handle_hit(slot);
                return;
            }
            Admission::Auto(filter) => filter.handle_hit(),
            _ => {}
        }
        self.eviction.handle_hit(slot);
    }

    /// The Data in a slot has come again, though no Interest was answered by it.
    #[inline]
    pub fn handle_refresh(&mut self, slot: u32) {
        match &mut self.admission {
            Admission::Window { window, .. } if window.holds(slot) => window.handle_hit(slot),
            _ => self.eviction.handle_hit(slot),
        }
    }

    /// Whether a Data that is not cached, and whose name has this hash, is to be.
    /// `is_full` tells whether another one would have to go; `hash_of` is the hash of the
    /// name in a slot that is held.
    #[inline]
    pub fn admits(&mut self, hash: u64, is_full: bool, hash_of: impl Fn(u32) -> u64) -> bool {
        if self.config.capacity == 0 {
            return false;
        }
        match &mut self.admission {
            Admission::All | Admission::Window { .. } => true,
            Admission::Lcp { random, below } => u128::from(random.next_u64()) < *below,
            Admission::KLru(chain) => chain.admits(hash),
            Admission::Filter(filter) => filter.admits(hash),
            Admission::Auto(filter) => !is_full || filter.admits(hash),
            Admission::TinyLfu {
                frequencies,
                beaten,
            } => {
                *beaten = None;
                if !is_full {
                    return true;
                }
                let Some(victim) = self.eviction.victim(hash) else {
                    return true;
                };
                let wins = frequencies.frequency(hash) > frequencies.frequency(hash_of(victim));
                if wins {
                    *beaten = Some(victim);
                }
                wins
            }
        }
    }

    /// Takes out what has to make room for a Data whose name hashes to `incoming`: the
    /// slot is not held any more. `None` if none is held. `hash_of` is as in
    /// [`admits`](Self::admits).
    #[inline]
    pub fn evict(&mut self, incoming: u64, hash_of: impl Fn(u32) -> u64) -> Option<u32> {
        match &mut self.admission {
            Admission::Window {
                frequencies,
                window,
            } if let Some(candidate) = window.candidate(self.eviction.is_empty()) => {
                window.handle_remove(candidate);
                Some(weaker(candidate, &mut self.eviction, frequencies, hash_of))
            }
            Admission::TinyLfu { beaten, .. } if let Some(victim) = *beaten => {
                *beaten = None;
                self.eviction.handle_evict(victim, hash_of(victim));
                Some(victim)
            }
            _ => self.eviction.evict(incoming, hash_of),
        }
    }

    /// A slot that was not held has a new Data whose name has this hash.
    #[inline]
    pub fn handle_insert(&mut self, slot: u32, hash: u64, hash_of: impl Fn(u32) -> u64) {
        self.meter.handle_insert();
        self.handle_move(slot, hash, hash_of);
    }

    /// As [`handle_insert`](Self::handle_insert), of a Data that a former policy held.
    #[inline]
    pub fn handle_move(&mut self, slot: u32, hash: u64, hash_of: impl Fn(u32) -> u64) {
        match &mut self.admission {
            Admission::Window { window, .. } => {
                window.handle_insert(slot);
                if let Some(leaving) = window.overflow() {
                    window.handle_remove(leaving);
                    self.eviction.handle_insert(leaving, hash_of(leaving));
                }
            }
            _ => self.eviction.handle_insert(slot, hash),
        }
    }

    /// A slot is not held any more, for another reason than that
    /// [`evict`](Self::evict) named it.
    #[inline]
    pub fn handle_remove(&mut self, slot: u32) {
        match &mut self.admission {
            Admission::Window { window, .. } if window.holds(slot) => window.handle_remove(slot),
            Admission::TinyLfu { beaten, .. } => {
                if *beaten == Some(slot) {
                    *beaten = None;
                }
                self.eviction.handle_remove(slot);
            }
            _ => self.eviction.handle_remove(slot),
        }
    }

    /// Whether most Data are admitted. A hint.
    #[inline]
    #[must_use]
    pub const fn admits_most(&self) -> bool {
        match &self.admission {
            Admission::All | Admission::Window { .. } => true,
            Admission::Lcp { below, .. } => *below > 1 << 63,
            Admission::KLru(_)
            | Admission::Filter(_)
            | Admission::Auto(_)
            | Admission::TinyLfu { .. } => false,
        }
    }

    /// What is likely to be evicted after the next one, and what after that; `None` where
    /// that is not known cheaply. A hint.
    #[inline]
    #[must_use]
    pub fn upcoming(&self) -> [Option<u32>; 2] {
        self.eviction.upcoming()
    }

    /// Fetches what [`handle_hit`](Self::handle_hit) will read first.
    #[inline]
    pub fn prefetch_hit(&self, slot: u32) {
        self.eviction.prefetch_hit(slot);
    }

    /// What pages the tables of admission have.
    #[must_use]
    pub fn pages(&self) -> Pages {
        match &self.admission {
            Admission::All | Admission::Lcp { .. } | Admission::KLru(_) => Pages::default(),
            Admission::Filter(filter) => filter.pages(),
            Admission::Auto(filter) => filter.pages(),
            Admission::TinyLfu { frequencies, .. } | Admission::Window { frequencies, .. } => {
                frequencies.pages()
            }
        }
    }

    /// Memory of the measurement, in bytes.
    #[must_use]
    pub fn meter_bytes(&self) -> usize {
        self.meter.memory_bytes()
    }

    /// Memory in use, in bytes, that of the measurement included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let of_admission = match &self.admission {
            Admission::All | Admission::Lcp { .. } => 0,
            Admission::KLru(chain) => chain.memory_bytes(),
            Admission::Filter(filter) => filter.memory_bytes(),
            Admission::Auto(filter) => filter.memory_bytes(),
            Admission::TinyLfu { frequencies, .. } => frequencies.memory_bytes(),
            Admission::Window {
                frequencies,
                window,
            } => frequencies.memory_bytes() + window.memory_bytes(),
        };
        of_admission + self.eviction.memory_bytes() + self.meter.memory_bytes()
    }

    /// Fetches what [`evict`](Self::evict) and [`handle_insert`](Self::handle_insert)
    /// will read first.
    #[inline]
    pub fn prefetch_incoming(&self, hash: u64) {
        self.eviction.prefetch_incoming(hash);
    }
}

/// Which of two is evicted: the Data that leaves the window, or the main cache's victim if it
/// is asked for less often, whose place that one takes.
#[inline(never)]
fn weaker(
    candidate: u32,
    main: &mut Eviction,
    frequencies: &TinyLfu,
    hash_of: impl Fn(u32) -> u64,
) -> u32 {
    let hash = hash_of(candidate);
    let Some(victim) = main.victim(hash) else {
        return candidate;
    };
    let victim_hash = hash_of(victim);
    if frequencies.frequency(hash) <= frequencies.frequency(victim_hash) {
        return candidate;
    }
    main.handle_evict(victim, victim_hash);
    main.handle_insert(candidate, hash);
    victim
}

fn lcp(probability: f64, seed: u64) -> Admission {
    Admission::Lcp {
        random: Random::new(seed ^ 0x4C43_5000_0000_0000),
        below: (probability * 2_f64.powi(64)) as u128,
    }
}

fn filter(config: &PolicyConfig) -> Result<Filter, PolicyError> {
    let (threshold, counters) = (config.threshold, config.counters);
    // A cache of one Data would have a history that admits none.
    let as_the_cache = config.capacity.max(threshold as usize);
    let history_len = config.history_len.unwrap_or(as_the_cache);
    Ok(Filter::new(history_len, threshold, counters, config.pages)?)
}

fn frequencies(config: &PolicyConfig) -> Result<TinyLfu, PolicyError> {
    Ok(TinyLfu::new(config.window_len(), config.pages)?)
}
