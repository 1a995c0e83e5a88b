//! Draws by weight, in constant time: Walker's alias method with tables by Vose.

use crate::random::Random;

/// A distribution over the numbers below how many weights there are.
#[derive(Clone, Debug)]
pub struct Weighted {
    /// Probability, in 2^-32, that a place itself is taken, and what is taken else.
    places: Vec<(u32, u32)>,
}

impl Weighted {
    /// Numbers as likely as their weights say, which are at least 0 and not all 0. There is
    /// one at least, and fewer than 2^32.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn new(weights: &[f64]) -> Self {
        assert!(!weights.is_empty(), "something to draw");
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let mut left: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut places: Vec<_> = (0..weights.len() as u32).map(|n| (u32::MAX, n)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&n| left[n] < 1.0);
        while let (Some(&from), Some(to)) = (large.last(), small.pop()) {
            places[to] = ((left[to] * 4_294_967_296.0) as u32, from as u32);
            left[from] -= 1.0 - left[to];
            if left[from] < 1.0 {
                large.pop();
                small.push(from);
            }
        }
        Self { places }
    }

    /// Weights of Zipf and Mandelbrot: rank `r`, from 0 on, has `(r + 1 + offset)^-alpha`.
    #[must_use]
    pub fn zipf(n: u32, alpha: f64, offset: f64) -> Self {
        let weight = |rank: u32| (f64::from(rank) + 1.0 + offset).powf(-alpha);
        Self::new(&(0..n.max(1)).map(weight).collect::<Vec<_>>())
    }

    /// The next number.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        let bits = random.next_u64();
        let place = ((bits >> 32) * self.places.len() as u64) >> 32;
        let (own, other) = self.places[place as usize];
        if (bits as u32) < own {
            place as u32
        } else {
            other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_as_often_as_they_weigh() {
        let weights = [5.0, 0.0, 1.0, 3.0, 0.5, 0.5];
        let drawn = Weighted::new(&weights);
        let mut random = Random::new(2);
        let mut counts = [0_u32; 6];
        for _ in 0..1_000_000 {
            counts[drawn.draw(&mut random) as usize] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            assert!(
                (f64::from(*count) - weight * 1e5).abs() < 2_500.0,
                "{counts:?}"
            );
        }
        assert_eq!(counts[1], 0);
        assert_eq!(Weighted::zipf(0, 1.0, 0.0).draw(&mut random), 0);
    }
}
