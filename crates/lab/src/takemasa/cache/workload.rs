//! Requests by law: what is asked for next.
//!
//! The workloads of Takemasa et al. 2019, section 6.1.2, and others that are harder on
//! a cache: popularity that changes, scans, names that are asked for once. All follow from
//! a seed.

use crate::workloads::Requests;
use std::collections::VecDeque;

use crate::workloads::zipf::Zipf;
use tachonym_bench::random::Random;

/// Requests that do not depend on each other, for objects of Zipf popularity: the lower
/// its number, the more popular an object. A Poisson process of any rate has its objects
/// in this order.
#[derive(Clone, Debug)]
pub(crate) struct Independent {
    zipf: Zipf,
    random: Random,
    n_objects: u32,
    /// The object of the first rank.
    first: u32,
}

impl Independent {
    /// Objects `0..n_objects` with exponent `alpha`.
    #[must_use]
    pub(crate) fn new(n_objects: u32, alpha: f64, seed: u64) -> Self {
        Self {
            zipf: Zipf::new(n_objects, alpha),
            random: Random::new(seed),
            n_objects: n_objects.max(1),
            first: 0,
        }
    }

    /// Makes objects that lie `n_ranks` further on as popular as those before them were:
    /// all are others if that is half of the objects.
    pub(crate) fn shift_popularity(&mut self, n_ranks: u32) {
        let first = (u64::from(self.first) + u64::from(n_ranks)) % u64::from(self.n_objects);
        self.first = first as u32;
    }
}

impl Requests for Independent {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        for object in &mut *objects {
            let drawn = u64::from(self.zipf.draw(&mut self.random)) + u64::from(self.first);
            let wrapped = drawn.checked_sub(u64::from(self.n_objects));
            *object = wrapped.unwrap_or(drawn) as u32;
        }
        objects.len()
    }
}

/// Videos that are watched from beginning to end.
///
/// Sessions begin as a Poisson process, each for a video of Zipf popularity, and ask for
/// its chunks one by one in constant intervals. The paper leaves the popularity of videos
/// open; here its exponent is that of the web objects.
#[derive(Clone, Debug)]
pub(crate) struct Video {
    popularity: Independent,
    arrivals: Random,
    n_chunks: u32,
    /// Chunks that a session asks for while one new session begins, on average.
    chunks_by_session: f64,
    /// The next chunk of each session, and the end of its video, in the order of their
    /// turns: all ask equally often.
    sessions: VecDeque<[u32; 2]>,
    /// Turns of one session until the next one begins.
    until_next: f64,
}

impl Video {
    /// `n_videos` of `n_chunks` each. `sessions_per_s` begin, and each asks for
    /// `chunks_per_s`.
    #[must_use]
    pub(crate) fn new(
        n_videos: u32,
        n_chunks: u32,
        alpha: f64,
        sessions_per_s: f64,
        chunks_per_s: f64,
        seed: u64,
    ) -> Self {
        let mut video = Self {
            popularity: Independent::new(n_videos, alpha, seed),
            arrivals: Random::new(!seed),
            n_chunks: n_chunks.max(1),
            chunks_by_session: chunks_per_s / sessions_per_s,
            sessions: VecDeque::new(),
            until_next: 0.0,
        };
        video.until_next = video.interval();
        video
    }

    fn interval(&mut self) -> f64 {
        -(1.0 - self.arrivals.next_fraction()).ln() * self.chunks_by_session
    }

    fn begin_session(&mut self) {
        let mut video = [0];
        self.popularity.fill(&mut video);
        let first = video[0] * self.n_chunks;
        self.sessions.push_back([first, first + self.n_chunks]);
        self.until_next += self.interval();
    }

    fn next(&mut self) -> u32 {
        // While n sessions take turns, one request is an n-th of each one's interval.
        while self.sessions.is_empty() || self.until_next <= 0.0 {
            if self.sessions.is_empty() {
                self.until_next = 0.0;
            }
            self.begin_session();
        }
        self.until_next -= 1.0 / self.sessions.len() as f64;
        let Some([chunk, end]) = self.sessions.pop_front() else {
            return 0;
        };
        if chunk + 1 < end {
            self.sessions.push_back([chunk + 1, end]);
        }
        chunk
    }
}

impl Requests for Video {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        for object in &mut *objects {
            *object = self.next();
        }
        objects.len()
    }
}

/// Two workloads, of which the first has a share of all requests. The objects of the
/// second follow those of the first.
#[derive(Clone, Debug)]
pub(crate) struct Mixed<A, B> {
    first: A,
    second: B,
    n_first_objects: u32,
    first_share: f64,
    random: Random,
}

impl<A: Requests, B: Requests> Mixed<A, B> {
    /// `first` has `n_first_objects`, and `first_share` of the requests, 0 to 1.
    #[must_use]
    pub(crate) fn new(
        first: A,
        n_first_objects: u32,
        first_share: f64,
        second: B,
        seed: u64,
    ) -> Self {
        Self {
            first,
            second,
            n_first_objects,
            first_share,
            random: Random::new(seed ^ 0x4D49_5845_4400_0000),
        }
    }
}

impl<A: Requests, B: Requests> Requests for Mixed<A, B> {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        for (idx, object) in objects.iter_mut().enumerate() {
            let mut one = [0];
            if self.random.next_fraction() < self.first_share {
                if self.first.fill(&mut one) == 0 {
                    return idx;
                }
                *object = one[0];
            } else {
                if self.second.fill(&mut one) == 0 {
                    return idx;
                }
                *object = one[0] + self.n_first_objects;
            }
        }
        objects.len()
    }
}

/// Requests among which scans come now and then: each asks once for objects that are
/// not requested otherwise, one after the other. Scans of one object are one-timers.
#[derive(Clone, Debug)]
pub(crate) struct Scans {
    popular: Independent,
    random: Random,
    /// The probability that a request belongs to a scan.
    share: f64,
    len: u32,
    n_left: u32,
    /// The next object of a scan, and those there are.
    next: u32,
    objects: [u32; 2],
}

impl Scans {
    /// `popular` has `n_popular` objects; `share` of the requests are for scans of `len`
    /// each, over `n_scanned` further objects, again from the first after the last.
    #[must_use]
    pub(crate) fn new(
        popular: Independent,
        n_popular: u32,
        n_scanned: u32,
        share: f64,
        len: u32,
        seed: u64,
    ) -> Self {
        Self {
            popular,
            random: Random::new(seed ^ 0x5343_414E_0000_0000),
            share: share.clamp(0.0, 1.0),
            len: len.max(1),
            n_left: 0,
            next: n_popular,
            objects: [n_popular, n_popular + n_scanned.max(1)],
        }
    }
}

impl Requests for Scans {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        // Of all requests `share` are in scans if they begin with this probability.
        let begins = self.share / (self.share + (1.0 - self.share) * f64::from(self.len));
        for object in &mut *objects {
            if self.n_left == 0 && self.random.next_fraction() < begins {
                self.n_left = self.len;
            }
            if self.n_left > 0 {
                self.n_left -= 1;
                *object = self.next;
                self.next += 1;
                if self.next == self.objects[1] {
                    self.next = self.objects[0];
                }
            } else {
                self.popular.fill(std::slice::from_mut(object));
            }
        }
        objects.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Requests;

    fn draw(requests: &mut impl Requests, n: usize) -> Vec<u32> {
        let mut objects = vec![0; n];
        assert_eq!(requests.fill(&mut objects), n);
        objects
    }

    #[test]
    fn a_seed_repeats_a_workload() {
        let objects = |seed| draw(&mut Video::new(50, 20, 0.8, 1.0, 5.0, seed), 1_000);
        assert_eq!(objects(1), objects(1));
        assert_ne!(objects(1), objects(2));
    }

    #[test]
    fn a_shift_makes_other_objects_popular() {
        let mut requests = Independent::new(1_000, 1.0, 1);
        let low = |objects: &[u32]| objects.iter().filter(|&&object| object < 10).count();
        assert!(low(&draw(&mut requests, 1_000)) > 300);
        requests.shift_popularity(995);
        let objects = draw(&mut requests, 1_000);
        assert!(objects.iter().filter(|&&object| object >= 995).count() > 250);
    }

    #[test]
    fn videos_are_watched_chunk_by_chunk() {
        let mut video = Video::new(100, 50, 0.8, 2.0, 25.0, 3);
        let objects = draw(&mut video, 100_000);
        assert!(objects.iter().all(|&object| object < 5_000));
        // Each chunk but a first one has its predecessor shortly before it.
        for (at, &object) in objects.iter().enumerate().skip(2_000) {
            let since = &objects[at - 2_000..at];
            assert!(
                object % 50 == 0 || since.contains(&(object - 1)),
                "{object}"
            );
        }
        // A session lasts 2 s, so that four go on at once.
        assert!((1..20).contains(&video.sessions.len()));
        let begun = objects.iter().filter(|&&object| object % 50 == 0).count();
        assert!((1_950..2_050).contains(&begun), "{begun}");
    }

    #[test]
    fn mixed_requests_have_their_shares() {
        let first = Independent::new(100, 0.8, 1);
        let mut mixed = Mixed::new(first, 100, 0.7, Independent::new(100, 0.8, 2), 3);
        let objects = draw(&mut mixed, 10_000);
        let n_first = objects.iter().filter(|&&object| object < 100).count();
        assert!((6_800..7_200).contains(&n_first), "{n_first}");
        assert!(objects.iter().all(|&object| object < 200));
    }

    #[test]
    fn scans_have_their_share_and_ask_in_order() {
        for len in [1, 40] {
            let popular = Independent::new(100, 0.8, 1);
            let mut scans = Scans::new(popular, 100, 1_000_000, 0.3, len, 5);
            let objects = draw(&mut scans, 500_000);
            let scanned: Vec<u32> = objects
                .into_iter()
                .filter(|&object| object >= 100)
                .collect();
            assert!(
                (135_000..165_000).contains(&scanned.len()),
                "{}",
                scanned.len()
            );
            assert!(scanned.windows(2).all(|pair| pair[1] == pair[0] + 1));
        }
    }
}
