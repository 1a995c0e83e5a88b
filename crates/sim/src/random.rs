//! Reproducible random numbers.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
//! 2014, section 4).

/// A sequence that its seed repeats.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// The next number in `0.0..1.0`.
    #[inline]
    pub const fn next_fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `n`; 0 if that is 0.
    #[inline]
    pub const fn below(&mut self, n: u32) -> u32 {
        (((self.next_u64() >> 32) * n as u64) >> 32) as u32
    }

    /// A number of an exponential distribution with this mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.next_fraction()).ln() * mean
    }

    /// A number of a normal distribution with mean 0 (Box and Muller 1958).
    pub fn normal(&mut self, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.next_fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.next_fraction()).cos() * deviation
    }
}

/// Bits that depend on all of these.
#[inline]
pub(crate) const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_their_moments() {
        let mut random = Random::new(1);
        let n = 200_000;
        let mut mean = |draw: &mut dyn FnMut(&mut Random) -> f64| {
            (0..n).map(|_| draw(&mut random)).sum::<f64>() / f64::from(n)
        };
        assert!((mean(&mut |it| it.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!(mean(&mut |it| it.normal(2.0)).abs() < 0.03);
        assert!((mean(&mut |it| it.normal(2.0).powi(2)) - 4.0).abs() < 0.1);
        assert!((mean(&mut |it| f64::from(it.below(9))) - 4.0).abs() < 0.05);
        // First output for seed 0 of the published reference implementation.
        assert_eq!(Random::new(0).next_u64(), 0xE220_A839_7B1D_CDAF);
    }
}
