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
}

impl Independent {
    /// Objects `0..n_objects` with exponent `alpha`.
    #[must_use]
    pub fn new(n_objects: u32, alpha: f64, seed: u64) -> Self {
        Self {
            zipf: Zipf::new(n_objects, alpha),
            random: Random::new(seed),
        }
    }

    /// The probability that the next request is for an object.
    #[must_use]
    pub fn probability(&self, object: u32) -> f64 {
        self.zipf.probability(object)
    }
}

impl Requests for Independent {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        for object in &mut *objects {
            *object = self.zipf.draw(&mut self.random);
        }
        objects.len()
    }
}
