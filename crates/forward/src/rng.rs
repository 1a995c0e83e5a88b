//! Randomness of the engine: nonces, the `random` strategy, probing.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, "Scrambled linear
//! pseudorandom number generators", 2021), seeded by the caller, so that a run
//! can be repeated. It is not cryptographic; nothing here needs to be.

/// A repeatable source of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Spreads `seed` over the whole state with SplitMix64; any seed will do.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut mix = seed;
        let mut next = || {
            mix = mix.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = mix;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self {
            state: [next(), next(), next(), next()],
        }
    }

    /// The next 64 random bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let shifted = b << 17;
        let c = c ^ a;
        let d = d ^ b;
        self.state = [a ^ d, b ^ c, c ^ shifted, d.rotate_left(45)];
        result
    }

    /// A number below `bound`, each as likely as the next up to a bias of
    /// `bound / 2^64`. Zero if `bound` is zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        // The upper half of a product of two u64 fits a u64.
        (wide >> 64) as u64
    }

    /// The bytes of a fresh nonce.
    pub(crate) fn nonce_bytes(&mut self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.next_u64().to_be_bytes();
        [a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_the_same_numbers() {
        let (mut a, mut b) = (Rng::from_seed(7), Rng::from_seed(7));
        let mut other = Rng::from_seed(8);
        let ours: Vec<u64> = (0..8).map(|_| a.next_u64()).collect();
        assert_eq!(ours, (0..8).map(|_| b.next_u64()).collect::<Vec<_>>());
        assert_ne!(ours, (0..8).map(|_| other.next_u64()).collect::<Vec<_>>());
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut rng = Rng::from_seed(0);
        let mut seen = [0_u32; 5];
        for _ in 0..5_000 {
            seen[usize::try_from(rng.below(5)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&n| n > 800), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }
}
