//! What is expected of a hierarchical content store: equations 1 to 11 of Mansilha et al.
//! 2017.
//!
//! **Over what equations 5 and 6 sum.** A first chunk that misses brings its whole batch, so
//! that the first level is a FIFO of batches with room for |L1|/B of them. The batches of a
//! content are asked for one after another by each of its streams: each batch has the
//! content's own Poisson process, shifted. With 1,280/B batches of equal rate a content,
//! equation 6 over batches is `Σ_m 1280/B · λ_m T/(1 + λ_m T) = |L1|/B`, |L1| in chunks, or
//! divided by 1280/B, a sum over *contents* with |L1| in units of contents. So it stands
//! here. The paper has |L1| without its unit; with a sum over contents and |L1| in chunks
//! there would be no solution. Equation 5 weighs the hit probabilities of contents by λ_m,
//! and λ_m has to be a share of all requests there, which it is in the paper because λ is 1
//! a second; here it is divided by λ. B is in neither equation.
//!
//! The model takes all chunks of a batch after the first for hits. That is so while batches
//! stay much longer than a stream takes for one, B/8 seconds.

use super::catalogue::{CHUNK_BYTES, Catalogue};
use super::workload::{Kind, Settings};

/// What is expected of the first level.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstLevel {
    /// What asks for what.
    pub(super) settings: Settings,
    /// |L1|, in chunks.
    pub(super) l1_chunks: u64,
    /// B, in chunks, at least 1.
    pub(super) batch_chunks: u32,
}

impl FirstLevel {
    /// Whether everything is in the first level.
    fn has_all(&self) -> bool {
        self.l1_chunks >= self.settings.catalogue.n_chunks()
    }

    /// Requests that the first level answers, by all (equations 2 to 4).
    pub(super) fn hit_ratio(&self, kind: Kind) -> f64 {
        if self.has_all() {
            return 1.0;
        }
        let batch = f64::from(self.batch_chunks.max(1));
        match kind {
            Kind::Unif => self.l1_chunks as f64 / self.settings.catalogue.n_chunks() as f64,
            Kind::Seq => 1.0 - 1.0 / batch,
            Kind::Real => 1.0 - (1.0 - self.first_hit_ratio()) / batch,
        }
    }

    /// First chunks of batches that are hits (equation 5).
    pub(super) fn first_hit_ratio(&self) -> f64 {
        if self.has_all() {
            return 1.0;
        }
        hits(&self.rates(), self.stays_s())
    }

    /// T_C, how long a batch stays, in seconds (equation 6, by bisection); infinite if
    /// everything has room.
    pub(super) fn stays_s(&self) -> f64 {
        if self.has_all() {
            return f64::INFINITY;
        }
        let room = self.l1_chunks as f64 / f64::from(self.settings.catalogue.content_chunks);
        stays_s(&self.rates(), room)
    }

    /// λ_m of each content, per second.
    fn rates(&self) -> Vec<f64> {
        rates(&self.settings)
    }
}

/// λ_m of each content, per second, by Zipf's law.
pub(super) fn rates(settings: &Settings) -> Vec<f64> {
    let ranks = 1..=u64::from(settings.catalogue.n_contents);
    let weights: Vec<f64> = ranks
        .map(|rank| (rank as f64).powf(-settings.alpha))
        .collect();
    let by_weight = settings.arrivals_per_s / weights.iter().sum::<f64>();
    weights.iter().map(|weight| weight * by_weight).collect()
}

/// T_C, how long a content stays in a FIFO with room for `room` of them, fewer than all, in
/// seconds (equation 6, by bisection).
pub(super) fn stays_s(rates: &[f64], room: f64) -> f64 {
    rising_to(room, |stays_s| held(rates, stays_s))
}

/// How many contents are held that stay for `stays_s`.
pub(super) fn held(rates: &[f64], stays_s: f64) -> f64 {
    rates.iter().map(|it| occupancy(it * stays_s)).sum()
}

/// Where a rising function has a value, by bisection to twelve digits.
pub(super) fn rising_to(value: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while of(high) < value && high < 1e300 {
        (low, high) = (high, high * 2.0);
    }
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        match of(middle) < value {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

/// Requests for contents that are held, by all (equation 5).
pub(super) fn hits(rates: &[f64], stays_s: f64) -> f64 {
    let hits = rates.iter().map(|rate| rate * occupancy(rate * stays_s));
    hits.sum::<f64>() / rates.iter().sum::<f64>()
}

/// How much of the time a batch is held that stays for a time and comes again after a mean
/// of 1, by `arrivals` expected in that time: FIFO by Che's approximation.
fn occupancy(arrivals: f64) -> f64 {
    arrivals / (1.0 + arrivals)
}

/// What operations take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Delays {
    /// Finding a chunk in the first level, or that it is not there.
    pub(super) lookup_ns: f64,
    /// Inserting a batch in the first level.
    pub(super) insert_ns: f64,
    /// Reading a batch from the second level.
    pub(super) read_ns: f64,
}

/// d_L2.read of a batch: its bytes by the rate, bits a nanosecond being Gbit/s (equation 1).
pub(super) fn read_ns(batch_chunks: u32, rate_gbps: f64) -> f64 {
    f64::from(batch_chunks) * CHUNK_BYTES as f64 * 8.0 / rate_gbps
}

impl Delays {
    /// A miss, one operation after another (equation 10).
    pub(super) fn serial_miss_ns(&self) -> f64 {
        self.lookup_ns + self.read_ns + self.insert_ns
    }

    /// A miss, all operations at once (equation 11).
    pub(super) fn parallel_miss_ns(&self) -> f64 {
        self.lookup_ns.max(self.insert_ns).max(self.read_ns)
    }

    /// The throughput with this part of misses that take so long, in Gbit/s (equations 7 to
    /// 9).
    pub(super) fn gbps(&self, miss_ratio: f64, miss_ns: f64) -> f64 {
        let chunk_ns = (1.0 - miss_ratio) * self.lookup_ns + miss_ratio * miss_ns;
        CHUNK_BYTES as f64 * 8.0 / chunk_ns
    }

    /// Throughput of the serial algorithm.
    pub(super) fn serial_gbps(&self, miss_ratio: f64) -> f64 {
        self.gbps(miss_ratio, self.serial_miss_ns())
    }

    /// Throughput if all operations of a miss could run at once.
    pub(super) fn parallel_gbps(&self, miss_ratio: f64) -> f64 {
        self.gbps(miss_ratio, self.parallel_miss_ns())
    }
}

/// The expected hit ratio of an L1 of `l1_chunks`.
pub(super) fn hit_ratio(kind: Kind, settings: &Settings, l1_chunks: u64, batch_chunks: u32) -> f64 {
    FirstLevel {
        settings: *settings,
        l1_chunks,
        batch_chunks,
    }
    .hit_ratio(kind)
}

/// The published setting of a catalogue, with arrivals that are divided as it is, so that
/// chunks stay as long.
pub(super) fn shrunk_settings(catalogue: Catalogue, shrink: u32) -> Settings {
    let published = Settings::published(catalogue);
    Settings {
        arrivals_per_s: published.arrivals_per_s / f64::from(shrink.max(1)),
        ..published
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use super::super::catalogue::{Bytes, Chunk};
    use super::super::workload::Requests;
    use super::*;

    fn first_level(n_contents: u32, l1_chunks: u64, batch_chunks: u32) -> FirstLevel {
        let catalogue = Catalogue {
            n_contents,
            content_chunks: 200,
        };
        FirstLevel {
            settings: Settings {
                arrivals_per_s: 2.0,
                ..Settings::published(catalogue)
            },
            l1_chunks,
            batch_chunks,
        }
    }

    /// Two levels as the paper has them, by sets of chunks and nothing of the tables.
    fn simulated(kind: Kind, of: &FirstLevel, n_requests: usize) -> f64 {
        let mut held = HashSet::new();
        let mut order: VecDeque<Chunk> = VecDeque::new();
        let mut n_hits = 0;
        let warm = 10 * of.l1_chunks as usize;
        let requests = Requests::new(kind, &of.settings, 7);
        for (nth, request) in requests.take(warm + n_requests).enumerate() {
            if held.contains(&request.chunk) {
                n_hits += usize::from(nth >= warm);
                continue;
            }
            let first = request.chunk.segment / of.batch_chunks * of.batch_chunks;
            for segment in first..first + of.batch_chunks {
                let chunk = Chunk {
                    segment,
                    ..request.chunk
                };
                if of.settings.catalogue.has(chunk) && held.insert(chunk) {
                    order.push_back(chunk);
                }
            }
            while order.len() as u64 > of.l1_chunks {
                held.remove(&order.pop_front().expect("it is not empty"));
            }
        }
        n_hits as f64 / n_requests as f64
    }

    #[test]
    fn the_model_expects_what_is_simulated() {
        // (contents, |L1|, B)
        let cases = [
            (100, 1_000, 10),
            (100, 4_000, 10),
            (100, 12_000, 10),
            (100, 4_000, 1),
            (100, 4_000, 20),
            (400, 8_000, 10),
        ];
        for (n_contents, l1_chunks, batch_chunks) in cases {
            let of = first_level(n_contents, l1_chunks, batch_chunks);
            for (kind, allowed) in [(Kind::Seq, 1e-3), (Kind::Unif, 5e-3), (Kind::Real, 0.02)] {
                let n_requests = if kind == Kind::Real { 600_000 } else { 100_000 };
                let (expected, got) = (of.hit_ratio(kind), simulated(kind, &of, n_requests));
                // Without batches equation 4 is the first chunk's alone, and noise is not
                // divided by B.
                let allowed = if batch_chunks == 1 && kind == Kind::Real {
                    2.0 * allowed
                } else {
                    allowed
                };
                assert!(
                    (expected - got).abs() < allowed,
                    "{kind} {n_contents} {l1_chunks} {batch_chunks}: {expected} {got}"
                );
            }
        }
    }

    #[test]
    fn a_first_level_with_room_for_all_always_hits() {
        for l1_chunks in [20_000, 30_000] {
            let of = first_level(100, l1_chunks, 10);
            for kind in Kind::ALL {
                assert_eq!(of.hit_ratio(kind), 1.0, "{kind}");
            }
            assert_eq!(of.stays_s(), f64::INFINITY);
        }
        // Next to it, almost.
        let almost = first_level(100, 19_999, 10);
        assert!(almost.first_hit_ratio() > 0.99 && almost.first_hit_ratio() < 1.0);
    }

    #[test]
    fn without_batches_seq_never_hits_and_real_hits_as_first_chunks_do() {
        let of = first_level(100, 2_000, 1);
        assert_eq!(of.hit_ratio(Kind::Seq), 0.0);
        assert!((of.hit_ratio(Kind::Real) - of.first_hit_ratio()).abs() < 1e-12);
        assert!((of.hit_ratio(Kind::Unif) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn contents_as_popular_as_each_other_are_held_by_their_share() {
        let mut of = first_level(100, 5_000, 10);
        of.settings.alpha = 0.0;
        // λ T / (1 + λ T) = 1/4 with λ = 2/100.
        assert!((of.stays_s() - 1.0 / 3.0 * 50.0).abs() < 1e-6);
        assert!((of.first_hit_ratio() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn the_published_setting_has_the_known_hit_ratio() {
        let catalogue = Catalogue::of(Bytes(10_000_000_000));
        let settings = Settings::published(catalogue);
        let l1_chunks = Bytes(1_000_000_000).chunks();
        let expected = hit_ratio(Kind::Real, &settings, l1_chunks, 10);
        assert!((expected - 0.952).abs() < 2e-3, "{expected}");
        // Arrivals that are divided as sizes are leave times as they are.
        let small = Catalogue::of(Bytes(1_000_000_000));
        let shrunk = FirstLevel {
            settings: shrunk_settings(small, 10),
            l1_chunks: l1_chunks / 10,
            batch_chunks: 10,
        };
        assert!((shrunk.hit_ratio(Kind::Real) - expected).abs() < 0.02);
    }

    #[test]
    fn delays_are_those_of_the_equations() {
        let delays = Delays {
            lookup_ns: 7_400.0,
            insert_ns: 42_100.0,
            read_ns: read_ns(10, 4.0),
        };
        assert_eq!(delays.read_ns, 160_000.0);
        assert_eq!(delays.serial_miss_ns(), 209_500.0);
        assert_eq!(delays.parallel_miss_ns(), 160_000.0);
        assert!((delays.serial_gbps(0.0) - 64_000.0 / 7_400.0).abs() < 1e-9);
        assert!((delays.serial_gbps(1.0) - 64_000.0 / 209_500.0).abs() < 1e-9);
        // Three equal parts: at once they take a third.
        let equal = Delays {
            lookup_ns: 5.0,
            insert_ns: 5.0,
            read_ns: 5.0,
        };
        let saved = 1.0 - equal.parallel_miss_ns() / equal.serial_miss_ns();
        assert!((saved - 2.0 / 3.0).abs() < 1e-12);
        assert!((equal.parallel_gbps(1.0) / equal.serial_gbps(1.0) - 3.0).abs() < 1e-12);
    }
}
