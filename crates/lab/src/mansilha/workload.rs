//! Which chunks are asked for, and when: the workloads of Mansilha et al. 2017, section
//! 3.3.3, each of them from a seed.
//!
//! *Real* is merged in the order of time without a heap: all streams ask equally often, so
//! that the one which has just asked is the last to ask again. It begins in the steady
//! state: with the streams that would be on their way if it had always run.

use std::collections::VecDeque;
use std::fmt;

use super::catalogue::{Catalogue, Chunk};
use crate::workloads::zipf::Zipf;
use tachonym_bench::random::Random;

/// Time between two chunks of a stream: 8 a second.
pub(super) const PERIOD_NS: u64 = 125_000_000;

/// What asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Every chunk of every content, one after the other: the best case
    Seq,
    /// Streams of contents that are popular by Zipf's law with exponent 1
    Real,
    /// Any chunk, each as likely as another: the worst case
    Unif,
}

impl Kind {
    /// In the order of the paper's figures.
    pub(super) const ALL: [Self; 3] = [Self::Seq, Self::Real, Self::Unif];

    /// Its name, as the paper has it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Seq => "Seq",
            Self::Real => "Real",
            Self::Unif => "Unif",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A chunk that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// When, in nanoseconds from the start; never earlier than the one before.
    pub(super) at_ns: u64,
    /// Which.
    pub(super) chunk: Chunk,
}

/// What a workload is made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settings {
    /// What is asked for.
    pub(super) catalogue: Catalogue,
    /// Contents that begin to be asked for in a second; above 0.
    pub(super) arrivals_per_s: f64,
    /// The exponent of Zipf's law.
    pub(super) alpha: f64,
}

impl Settings {
    /// As published: one content a second, exponent 1.
    pub(super) const fn published(catalogue: Catalogue) -> Self {
        Self {
            catalogue,
            arrivals_per_s: 1.0,
            alpha: 1.0,
        }
    }

    /// Mean time between two streams that begin, in nanoseconds.
    fn gap_ns(&self) -> f64 {
        1e9 / self.arrivals_per_s
    }

    /// Mean time between two requests, in nanoseconds.
    fn interval_ns(&self) -> f64 {
        self.gap_ns() / f64::from(self.catalogue.content_chunks)
    }
}

/// Requests without end. Takes memory for the streams on their way, and for Zipf's law.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    settings: Settings,
    random: Random,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Seq { n_done: u64 },
    Unif { n_done: u64 },
    Real(Box<Streams>),
}

/// Streams on their way.
#[derive(Clone, Debug)]
struct Streams {
    popularity: Zipf,
    /// When each asks next and for what, in the order of time.
    waiting: VecDeque<Request>,
    /// When the next one begins, in nanoseconds.
    begins_ns: f64,
}

impl Requests {
    /// Requests of a kind; the same for the same seed.
    pub(super) fn new(kind: Kind, settings: &Settings, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let source = match kind {
            Kind::Seq => Source::Seq { n_done: 0 },
            Kind::Unif => Source::Unif { n_done: 0 },
            Kind::Real => Source::Real(Box::new(Streams::new(settings, &mut random))),
        };
        Self {
            settings: *settings,
            random,
            source,
        }
    }
}

impl Streams {
    fn new(settings: &Settings, random: &mut Random) -> Self {
        let catalogue = settings.catalogue;
        let popularity = Zipf::new(catalogue.n_contents, settings.alpha);
        let mut streams = Self {
            popularity,
            waiting: VecDeque::new(),
            begins_ns: 0.0,
        };
        // Streams that began before the start and are not over: they are where they would be.
        let mut ago_ns = random.exponential(settings.gap_ns());
        while ago_ns < (u64::from(catalogue.content_chunks) * PERIOD_NS) as f64 {
            let n_asked = ago_ns as u64 / PERIOD_NS + 1;
            let chunk = Chunk {
                content: streams.popularity.draw(random),
                segment: n_asked as u32,
            };
            if chunk.segment < catalogue.content_chunks {
                let at_ns = n_asked * PERIOD_NS - ago_ns as u64;
                streams.waiting.push_back(Request { at_ns, chunk });
            }
            ago_ns += random.exponential(settings.gap_ns());
        }
        let waiting = streams.waiting.make_contiguous();
        waiting.sort_by_key(|request| request.at_ns);
        streams.begins_ns = random.exponential(settings.gap_ns());
        streams
    }

    #[inline]
    fn next(&mut self, settings: &Settings, random: &mut Random) -> Request {
        let begins_ns = self.begins_ns as u64;
        let now = match self.waiting.front() {
            Some(front) if front.at_ns <= begins_ns => {
                let front = *front;
                self.waiting.pop_front();
                front
            }
            _ => {
                self.begins_ns += random.exponential(settings.gap_ns());
                let chunk = Chunk {
                    content: self.popularity.draw(random),
                    segment: 0,
                };
                Request {
                    at_ns: begins_ns,
                    chunk,
                }
            }
        };
        let segment = now.chunk.segment + 1;
        if segment < settings.catalogue.content_chunks {
            let chunk = Chunk {
                segment,
                ..now.chunk
            };
            let at_ns = now.at_ns + PERIOD_NS;
            self.waiting.push_back(Request { at_ns, chunk });
        }
        now
    }
}

impl Iterator for Requests {
    type Item = Request;

    /// Always one: requests do not end.
    #[inline]
    fn next(&mut self) -> Option<Request> {
        let catalogue = self.settings.catalogue;
        let (n_done, number) = match &mut self.source {
            Source::Real(streams) => return Some(streams.next(&self.settings, &mut self.random)),
            Source::Seq { n_done } => (n_done, None),
            Source::Unif { n_done } => {
                let wide = u128::from(self.random.next_u64()) * u128::from(catalogue.n_chunks());
                (n_done, Some((wide >> 64) as u64))
            }
        };
        let number = number.unwrap_or(*n_done % catalogue.n_chunks());
        let at_ns = (*n_done as f64 * self.settings.interval_ns()) as u64;
        *n_done += 1;
        Some(Request {
            at_ns,
            chunk: catalogue.chunk(number),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn settings(n_contents: u32, content_chunks: u32, arrivals_per_s: f64) -> Settings {
        let catalogue = Catalogue {
            n_contents,
            content_chunks,
        };
        Settings {
            arrivals_per_s,
            ..Settings::published(catalogue)
        }
    }

    #[test]
    fn a_seed_repeats_its_requests_in_the_order_of_time() {
        for kind in Kind::ALL {
            let draw = |seed| -> Vec<Request> {
                let requests = Requests::new(kind, &settings(20, 40, 3.0), seed);
                requests.take(20_000).collect()
            };
            let requests = draw(5);
            assert_eq!(requests, draw(5));
            assert_eq!(requests == draw(6), kind == Kind::Seq, "{kind}");
            assert!(requests.is_sorted_by_key(|request| request.at_ns), "{kind}");
            let catalogue = settings(20, 40, 3.0).catalogue;
            assert!(requests.iter().all(|request| catalogue.has(request.chunk)));
        }
    }

    #[test]
    fn seq_asks_for_every_chunk_in_turn_and_unif_for_each_as_often() {
        let settings = settings(3, 7, 1.0);
        let n_chunks = settings.catalogue.n_chunks();
        let seq = Requests::new(Kind::Seq, &settings, 1).take(50);
        for (number, request) in (0..).zip(seq) {
            assert_eq!(settings.catalogue.number(request.chunk), number % n_chunks);
        }
        let mut counts = vec![0_u32; n_chunks as usize];
        for request in Requests::new(Kind::Unif, &settings, 1).take(210_000) {
            counts[settings.catalogue.number(request.chunk) as usize] += 1;
        }
        // Five deviations of 10,000.
        assert!(
            counts.iter().all(|&n| n.abs_diff(10_000) < 500),
            "{counts:?}"
        );
    }

    #[test]
    fn real_has_poisson_arrivals_zipf_contents_and_periodic_streams() {
        let settings = settings(50, 200, 2.0);
        let mut begun = Vec::new();
        let mut by_content = vec![0_u32; 50];
        // Streams by their content and phase: when which chunk was asked for.
        let mut streams: HashMap<(u32, u64), (u64, u32)> = HashMap::new();
        let n_requests = 2_000_000;
        let mut last_ns = 0;
        for request in Requests::new(Kind::Real, &settings, 3).take(n_requests) {
            let Chunk { content, segment } = request.chunk;
            last_ns = request.at_ns;
            if segment == 0 {
                begun.push(request.at_ns);
                by_content[content as usize] += 1;
            }
            let phase = request.at_ns % PERIOD_NS;
            if let Some((at_ns, before)) = streams.get(&(content, phase))
                && segment > 0
            {
                assert_eq!((at_ns + PERIOD_NS, before + 1), (request.at_ns, segment));
            }
            streams.insert((content, phase), (request.at_ns, segment));
        }
        // 2 streams a second of 200 chunks each, from the first second on.
        let rate = n_requests as f64 / (last_ns as f64 / 1e9);
        assert!((rate - 400.0).abs() < 12.0, "{rate}");
        let first = Requests::new(Kind::Real, &settings, 3);
        let n_first = first.take_while(|it| it.at_ns < 1_000_000_000).count();
        assert!((250..550).contains(&n_first), "{n_first}");
        let gaps: Vec<f64> = begun
            .windows(2)
            .map(|two| (two[1] - two[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 5e8 - 1.0).abs() < 0.05, "{mean}");
        // An exponential distribution's deviation is its mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{variance}");
        let zipf = Zipf::new(50, 1.0);
        let n_begun = begun.len() as f64;
        for (content, &n) in (0..).zip(&by_content) {
            let expected = n_begun * zipf.probability(content);
            let off = (f64::from(n) - expected).abs();
            assert!(
                off < 5.0 * expected.sqrt() + 1.0,
                "{content}: {n} {expected}"
            );
        }
    }
}
