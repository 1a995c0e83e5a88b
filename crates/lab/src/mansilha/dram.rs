//! A store of one level, in memory, that has nothing behind it.

use super::catalogue::Chunk;
use super::packets::{Asked, write_data};
use super::store::{Counts, Hcs, Hit};
use crate::beds::first_level::{FirstLevel, read_ends};

/// A store of one level: what it does not have comes from nowhere and at once.
#[derive(Debug)]
pub(super) struct Dram {
    first: FirstLevel,
    data: Vec<u8>,
    missed: Vec<Chunk>,
    counts: Counts,
}

impl Dram {
    /// An empty store with room for `n_chunks`.
    ///
    /// # Errors
    /// As [`FirstLevel::new`].
    pub(super) fn new(n_chunks: usize) -> anyhow::Result<Self> {
        Ok(Self {
            first: FirstLevel::new(n_chunks)?,
            data: Vec::new(),
            missed: Vec::new(),
            counts: Counts::default(),
        })
    }

    fn bring(&mut self, chunk: Chunk) {
        self.data.clear();
        write_data(chunk, &mut self.data);
        self.first.insert_burst(std::iter::once(&self.data[..]));
    }
}

impl Hcs for Dram {
    fn request(&mut self, chunk: Chunk, interest: &[u8]) -> Hit {
        let hit = if self.first.find(interest) {
            Hit::First
        } else {
            self.bring(chunk);
            Hit::Miss
        };
        self.counts.count(hit);
        hit
    }

    fn request_burst(&mut self, asked: &Asked) {
        let (counts, missed) = (&mut self.counts, &mut self.missed);
        missed.clear();
        self.first.find_burst(asked.interests(), |number, data| {
            let is_there = data.is_some_and(read_ends);
            counts.count(if is_there { Hit::First } else { Hit::Miss });
            if !is_there {
                missed.push(asked.chunks()[number]);
            }
        });
        for nth in 0..self.missed.len() {
            self.bring(self.missed[nth]);
        }
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

/// The same, asked one by one: what two levels with the serial algorithm are compared with.
#[derive(Debug)]
pub(super) struct OneByOne(Dram);

impl OneByOne {
    /// Asks this store.
    pub(super) const fn new(store: Dram) -> Self {
        Self(store)
    }
}

impl Hcs for OneByOne {
    fn request(&mut self, chunk: Chunk, interest: &[u8]) -> Hit {
        self.0.request(chunk, interest)
    }

    fn counts(&self) -> Counts {
        self.0.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{Bytes, Catalogue};
    use super::super::model::shrunk_settings;
    use super::super::store::{measure, warm};
    use super::super::workload::{Kind, Requests};
    use super::*;

    fn chunk(number: u32) -> Chunk {
        Chunk {
            content: number / 10,
            segment: number % 10,
        }
    }

    fn ask(store: &mut Dram, numbers: &[u32]) -> Vec<Hit> {
        let mut hits = Vec::new();
        for &number in numbers {
            let mut asked = Asked::default();
            asked.push(chunk(number));
            let (chunk, interest) = asked.iter().next().expect("one was pushed");
            hits.push(store.request(chunk, interest));
        }
        hits
    }

    #[test]
    fn what_came_first_goes_first_though_it_was_asked_for() {
        let mut store = Dram::new(3).expect("a small store");
        use Hit::{First, Miss};
        assert_eq!(
            ask(&mut store, &[1, 2, 3, 1, 2]),
            [Miss, Miss, Miss, First, First]
        );
        assert_eq!(ask(&mut store, &[4, 2, 1, 3]), [Miss, First, Miss, First]);
        assert_eq!(store.first.len(), 3);
        assert_eq!(store.counts().n_missed, 5);
    }

    #[test]
    fn a_burst_hits_as_requests_one_by_one() {
        let catalogue = Catalogue::of(Bytes(20_000_000));
        let mut one_by_one = Dram::new(catalogue.n_chunks() as usize).expect("a small store");
        let mut in_bursts = Dram::new(catalogue.n_chunks() as usize).expect("a small store");
        let settings = shrunk_settings(catalogue, 100);
        let mut requests = Requests::new(Kind::Seq, &settings, 1);
        warm(&mut in_bursts, &mut requests, catalogue.n_chunks(), |_| {
            true
        });
        for number in 0..catalogue.n_chunks() {
            one_by_one.bring(catalogue.chunk(number));
        }
        let mut requests = Requests::new(Kind::Unif, &settings, 1);
        let measured = measure(&mut in_bursts, &mut requests, 3_000, |_| true);
        assert_eq!(
            (measured.counts.n_requests, measured.counts.n_first),
            (3_000, 3_000)
        );
        assert!(measured.gbps() > 0.0 && measured.elapsed_ns > 0);
        for request in Requests::new(Kind::Unif, &settings, 1).take(3_000) {
            let mut asked = Asked::default();
            asked.push(request.chunk);
            let (chunk, interest) = asked.iter().next().expect("one was pushed");
            assert_eq!(one_by_one.request(chunk, interest), Hit::First);
        }
    }
}
