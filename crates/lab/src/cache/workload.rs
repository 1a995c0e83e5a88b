//! Requests by law: what is asked for next.

use super::simulate::Requests;
use super::zipf::Zipf;
use crate::random::Random;

/// Requests that do not depend on each other, for objects of Zipf popularity: the lower
/// its number, the more popular an object. A Poisson process of any rate has its objects
/// in this order.
#[derive(Clone, Debug)]
pub struct Independent {
    zipf: Zipf,
    random: Random,
    n_objects: u32,
    /// The object of the first rank.
    first: u32,
}

impl Independent {
    /// Objects `0..n_objects` with exponent `alpha`.
    #[must_use]
    pub fn new(n_objects: u32, alpha: f64, seed: u64) -> Self {
        Self {
            zipf: Zipf::new(n_objects, alpha),
            random: Random::new(seed),
            n_objects: n_objects.max(1),
            first: 0,
        }
    }

    /// Makes `n_ranks` objects further on as popular as those before them were: all are
    /// others if it is half of the objects.
    pub fn shift_popularity(&mut self, n_ranks: u32) {
        let first = (u64::from(self.first) + u64::from(n_ranks)) % u64::from(self.n_objects);
        self.first = first as u32;
    }

    /// The probability that the next request is for an object.
    #[must_use]
    pub fn probability(&self, object: u32) -> f64 {
        let rank = object.checked_sub(self.first);
        self.zipf
            .probability(rank.unwrap_or_else(|| object + (self.n_objects - self.first)))
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
