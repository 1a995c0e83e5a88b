//! Which names are aggressive: asked for so often that they overload a worker.
//!
//! The aggressive flow detector of Iqbal 2013 (section 4.4.2): a small fully associative
//! cache (AFC) of the names that are held to be aggressive, behind a larger
//! set-associative annex cache in which a name must prove itself. Both evict what was
//! used least frequently. What the thesis leaves open is decided thus:
//!
//! - Counters have a largest value, [`DetectorConfig::saturation`]; when one of the AFC
//!   reaches it, all counters of both caches are halved, since they are compared with
//!   each other. An annex counter stays at the largest value.
//! - As long as the AFC has room, its least count is 0: the second time that a name is met
//!   in the annex cache, it is promoted.
//! - A name that falls out of the AFC goes to its own set of the annex cache, count and
//!   all, in place of the one used least there.
//! - Of names used equally often the one that has stood in the cache at the lower place is
//!   evicted.
//! - Sampling leaves out 0 to `2 (sample_every - 1)` packets between two that it takes, each
//!   number as likely as another and drawn from the seed alone: one in `sample_every` is
//!   taken on average, and no pattern of arrivals escapes it.

use crate::{Key, LapsError, ServiceId};

/// Ways of a set of the annex cache.
pub const ANNEX_WAYS: usize = 4;

/// Most names in the AFC, which is searched from one end to the other.
pub const MAX_AGGRESSIVE: usize = 256;

/// Sizes of a [`Detector`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectorConfig {
    /// Names in the AFC, from 1 to [`MAX_AGGRESSIVE`].
    pub n_aggressive: usize,
    /// Names in the annex cache: a power of two from [`ANNEX_WAYS`] to 2^20.
    pub n_annex: usize,
    /// The count at which all are halved, from 2 on.
    pub saturation: u32,
    /// One packet in so many is looked at, from 1 on.
    pub sample_every: u32,
    /// What the choice of packets is drawn from.
    pub seed: u64,
}

impl Default for DetectorConfig {
    /// As published: 16 names behind an annex cache of 512. The thesis names no width of
    /// counters: here they have 16 bits.
    fn default() -> Self {
        Self {
            n_aggressive: 16,
            n_annex: 512,
            saturation: u16::MAX as u32,
            sample_every: 1,
            seed: 1,
        }
    }
}

/// An aggressive name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggressive {
    /// Its key.
    pub key: Key,
    /// Its service.
    pub service: ServiceId,
    /// How often it was met, halved as often as any count saturated meanwhile.
    pub count: u32,
}

/// A place of the annex cache; empty with a count of 0.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    key: Key,
    count: u32,
    service: ServiceId,
}

const EMPTY: Candidate = Candidate {
    key: Key(0),
    count: 0,
    service: ServiceId(0),
};

/// See the [module](self). Takes all memory when it is made.
#[derive(Clone, Debug)]
pub struct Detector {
    config: DetectorConfig,
    // The AFC. Keys lie apart, since each sample compares them all.
    keys: Vec<Key>,
    counts: Vec<u32>,
    services: Vec<ServiceId>,
    annex: Vec<[Candidate; ANNEX_WAYS]>,
    /// Packets until the next sample.
    n_until_sample: u32,
    random: u64,
    n_halvings: u64,
    n_promotions: u64,
}

impl Detector {
    /// An empty one.
    ///
    /// # Errors
    /// If a size is out of its range.
    pub fn new(config: DetectorConfig) -> Result<Self, LapsError> {
        let within = |what, value: usize, min, max| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(LapsError::Size {
                    what,
                    value,
                    min,
                    max,
                })
            }
        };
        let n_annex = config.n_annex;
        within("names tracked", config.n_aggressive, 1, MAX_AGGRESSIVE)?;
        within("names in the annex cache", n_annex, ANNEX_WAYS, 1 << 20)?;
        if !n_annex.is_power_of_two() {
            let max = n_annex.next_power_of_two();
            let what = "names in the annex cache, a power of two,";
            return Err(LapsError::Size {
                what,
                value: n_annex,
                min: max / 2,
                max,
            });
        }
        let max_u32 = u32::MAX as usize;
        within("saturation", config.saturation as usize, 2, max_u32)?;
        within("sample every", config.sample_every as usize, 1, max_u32)?;
        let mut detector = Self {
            config,
            keys: Vec::with_capacity(config.n_aggressive),
            counts: Vec::with_capacity(config.n_aggressive),
            services: Vec::with_capacity(config.n_aggressive),
            annex: vec![[EMPTY; ANNEX_WAYS]; n_annex / ANNEX_WAYS],
            n_until_sample: 0,
            random: config.seed,
            n_halvings: 0,
            n_promotions: 0,
        };
        detector.draw_gap();
        Ok(detector)
    }

    /// Sees a packet, and looks at it if it is its turn. Returns whether it was.
    #[inline]
    pub fn handle_packet(&mut self, service: ServiceId, key: Key) -> bool {
        if self.n_until_sample > 0 {
            self.n_until_sample -= 1;
            return false;
        }
        self.draw_gap();
        self.handle_sample(service, key);
        true
    }

    /// Bytes of its tables.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let of_name = size_of::<Key>() + size_of::<u32>() + size_of::<ServiceId>();
        self.config.n_aggressive * of_name + size_of_val(&*self.annex)
    }

    /// Looks at a packet that was chosen elsewhere. Takes time linear in the names tracked,
    /// and in the annex cache when a count saturates.
    pub fn handle_sample(&mut self, service: ServiceId, key: Key) {
        if let Some(at) = self.position(key) {
            self.counts[at] += 1;
            if self.counts[at] >= self.config.saturation {
                self.halve();
            }
            return;
        }
        let set = self.set_of(key);
        let ways = &mut self.annex[set];
        let Some(way) = (ways.iter()).position(|it| it.count > 0 && it.key == key) else {
            ways[least(ways)] = Candidate {
                key,
                count: 1,
                service,
            };
            return;
        };
        let count = (ways[way].count + 1).min(self.config.saturation - 1);
        ways[way].count = count;
        if self.keys.len() < self.config.n_aggressive {
            let promoted = std::mem::replace(&mut ways[way], EMPTY);
            self.keys.push(key);
            self.counts.push(count);
            self.services.push(promoted.service);
            self.n_promotions += 1;
            return;
        }
        let (at, least_count) = self.least_aggressive();
        if count > least_count {
            self.promote((set, way), at);
        }
    }

    /// Whether a name is held to be aggressive.
    #[inline]
    #[must_use]
    pub fn is_aggressive(&self, key: Key) -> bool {
        self.keys.contains(&key)
    }

    /// The aggressive names, in no order.
    pub fn aggressive(&self) -> impl Iterator<Item = Aggressive> + '_ {
        (self.keys.iter().zip(&self.services).zip(&self.counts)).map(
            |((&key, &service), &count)| Aggressive {
                key,
                service,
                count,
            },
        )
    }

    /// What it was made with.
    #[must_use]
    pub const fn config(&self) -> &DetectorConfig {
        &self.config
    }

    /// How often all counts were halved.
    #[must_use]
    pub const fn n_halvings(&self) -> u64 {
        self.n_halvings
    }

    /// How often a name was promoted from the annex cache.
    #[must_use]
    pub const fn n_promotions(&self) -> u64 {
        self.n_promotions
    }

    /// Halves all counts, as saturation does: names that are no longer asked for give way
    /// sooner. A name of the annex cache with a count of 1 is forgotten.
    pub fn halve(&mut self) {
        self.n_halvings += 1;
        for count in &mut self.counts {
            *count /= 2;
        }
        for candidate in self.annex.iter_mut().flatten() {
            candidate.count /= 2;
        }
    }

    fn position(&self, key: Key) -> Option<usize> {
        self.keys.iter().position(|&other| other == key)
    }

    fn set_of(&self, key: Key) -> usize {
        // Maps use the upper half of these bits.
        key.spread() as u32 as usize & (self.annex.len() - 1)
    }

    fn least_aggressive(&self) -> (usize, u32) {
        let least =
            (self.counts.iter().copied().enumerate()).min_by_key(|&(at, count)| (count, at));
        // A detector tracks one name at least, and is full when it is asked.
        least.unwrap_or((0, u32::MAX))
    }

    /// Draws how many packets to leave out: 0 to twice the mean.
    fn draw_gap(&mut self) {
        let span = 2 * u64::from(self.config.sample_every) - 1;
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let drawn = Key(self.random).spread() >> 32;
        self.n_until_sample = ((drawn * span) >> 32) as u32;
    }

    /// Promotes what stands in a way of a set to place `at` of the AFC, whose name goes to
    /// its own set.
    fn promote(&mut self, (set, way): (usize, usize), at: usize) {
        let promoted = std::mem::replace(&mut self.annex[set][way], EMPTY);
        let demoted = Candidate {
            key: self.keys[at],
            count: self.counts[at],
            service: self.services[at],
        };
        self.keys[at] = promoted.key;
        self.counts[at] = promoted.count;
        self.services[at] = promoted.service;
        self.n_promotions += 1;
        // One of a count of 0 is as good as forgotten.
        if demoted.count > 0 {
            let set = self.set_of(demoted.key);
            let ways = &mut self.annex[set];
            ways[least(ways)] = demoted;
        }
    }
}

/// The way that is used least.
fn least(ways: &[Candidate; ANNEX_WAYS]) -> usize {
    let mut least = 0;
    for (way, candidate) in ways.iter().enumerate() {
        if candidate.count < ways[least].count {
            least = way;
        }
    }
    least
}
