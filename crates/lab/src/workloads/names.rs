//! Synthetic names, each from its number.
//!
//! Names as Yuan 2015, section 3.4.1, makes them: components of six to ten random
//! letters. A name is computed whenever it is needed, so that tables of any size need no
//! list of what is in them.

use tachonym_packet::types::component::GENERIC;

use tachonym_bench::random::Random;

/// Names of so many components, by number.
#[derive(Clone, Copy, Debug)]
pub struct NameSet {
    seed: u64,
    n_components: usize,
}

impl NameSet {
    /// The names that belong to `seed`.
    #[must_use]
    pub const fn new(seed: u64, n_components: usize) -> Self {
        Self { seed, n_components }
    }

    /// Bytes of these names, on average.
    #[must_use]
    pub const fn mean_bytes(&self) -> usize {
        self.n_components * (2 + 8)
    }

    /// Appends the components of the name of this number to `out`.
    pub fn write(&self, number: u64, out: &mut Vec<u8>) {
        // The generator scatters consecutive numbers itself, but two seeds must not be
        // the same sequence begun elsewhere.
        let mut random = Random::new(Random::new(number ^ self.seed.rotate_left(32)).next_u64());
        for _ in 0..self.n_components {
            let len = 6 + (random.next_u64() % 5) as usize;
            out.extend_from_slice(&[GENERIC as u8, len as u8]);
            let mut letters = random.next_u64();
            for _ in 0..len {
                out.push(b'a' + (letters % 26) as u8);
                letters /= 26;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tachonym_packet::NameView;

    use super::*;

    #[test]
    fn names_are_different_and_as_long_as_published() {
        let names = NameSet::new(1, 7);
        let mut seen = HashSet::new();
        let mut n_bytes = 0;
        for number in 0..10_000 {
            let mut value = Vec::new();
            names.write(number, &mut value);
            let name = NameView::parse_value(&value).expect("a name");
            assert_eq!(name.len(), 7);
            for component in name.components() {
                assert!((6..=10).contains(&component.value().len()));
            }
            n_bytes += value.len();
            assert!(seen.insert(value));
        }
        // Two bytes of type and length, and eight letters on the average.
        let mean_bytes = n_bytes as f64 / 10_000.0;
        assert!((69.5..70.5).contains(&mean_bytes), "{mean_bytes}");
    }
}
