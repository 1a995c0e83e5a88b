//! Names and packets, each computed from a number and never stored.
//!
//! The shape is that of Takemasa 2019, section 3.2.2: prefixes of four
//! components in the FIB, names of seven, nine characters a component on
//! average, Data of 128 bytes. A seed makes all of it again.

use tachonym_packet::{Name, tlv, types};

use tachonym_bench::random::Random;

/// Characters of a component: at least so many, and up to [`SPREAD_CHARS`] - 1
/// more, which makes nine on average.
const MIN_CHARS: usize = 5;
const SPREAD_CHARS: u64 = 9;
/// Bytes of a component on average, its type and length included.
pub(super) const MEAN_COMPONENT_BYTES: usize = 11;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What keeps the numbers of prefixes and of names apart.
const PREFIX_SALT: u64 = 0x7072_6566_6978_0000;
const NAME_SALT: u64 = 0x6e61_6d65_0000_0000;

/// A set of prefixes, and names below them without end.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What all is computed from.
    pub seed: u64,
    /// Prefixes in the FIB; at least 1.
    pub n_prefixes: u64,
    /// Components of each prefix.
    pub n_prefix_components: usize,
    /// Components of each name; at least those of a prefix.
    pub n_name_components: usize,
    /// Bytes of content of each Data.
    pub content_bytes: usize,
}

impl Workload {
    /// The prefix `number`, below [`Self::n_prefixes`].
    #[must_use]
    pub fn prefix(&self, number: u64) -> Name {
        let mut value = Vec::with_capacity(16 * self.n_prefix_components);
        self.write_prefix(number, &mut value);
        name_of(&value)
    }

    /// The name `number`.
    #[must_use]
    pub fn name(&self, number: u64) -> Name {
        let mut value = Vec::with_capacity(16 * self.n_name_components);
        self.write_name(number, &mut value);
        name_of(&value)
    }

    /// Appends the Interest for the name `number`. Its nonce is the number's own.
    pub fn write_interest(&self, number: u64, out: &mut Vec<u8>) {
        self.write_interest_again(number, 0, out);
    }

    /// As [`Self::write_interest`], with another nonce for each `time`.
    pub fn write_interest_again(&self, number: u64, time: u64, out: &mut Vec<u8>) {
        let nonce = self.stream(number ^ time.rotate_right(16)).next_u64() as u32;
        tlv::write_nested(out, types::INTEREST, |out| {
            tlv::write_nested(out, types::NAME, |out| self.write_name(number, out));
            tlv::write_tlv(out, types::NONCE, &nonce.to_be_bytes());
        });
    }

    /// Appends the Data of the name `number`.
    pub fn write_data(&self, number: u64, out: &mut Vec<u8>) {
        tlv::write_nested(out, types::DATA, |out| {
            tlv::write_nested(out, types::NAME, |out| self.write_name(number, out));
            tlv::write_head(out, types::CONTENT, self.content_bytes);
            out.resize(out.len() + self.content_bytes, 0x5a);
            tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
                tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
            });
            tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0; 32]);
        });
    }

    /// The number of the prefix that the name `number` is below.
    #[must_use]
    pub fn prefix_of(&self, number: u64) -> u64 {
        self.stream(number ^ NAME_SALT).next_u64() % self.n_prefixes
    }

    fn write_prefix(&self, number: u64, out: &mut Vec<u8>) {
        let mut random = self.stream(number ^ PREFIX_SALT);
        for _ in 0..self.n_prefix_components {
            write_component(&mut random, out);
        }
    }

    /// The value of a name: a prefix that its number chooses, then components of
    /// its own.
    fn write_name(&self, number: u64, out: &mut Vec<u8>) {
        let mut random = self.stream(number ^ NAME_SALT);
        self.write_prefix(random.next_u64() % self.n_prefixes, out);
        for _ in self.n_prefix_components..self.n_name_components {
            write_component(&mut random, out);
        }
    }

    /// Streams of neighbouring numbers have nothing in common.
    fn stream(&self, number: u64) -> Random {
        let mixed = Random::new(self.seed ^ number).next_u64();
        Random::new(mixed ^ self.seed.rotate_left(32))
    }
}

fn name_of(value: &[u8]) -> Name {
    let name = tachonym_packet::NameView::parse_value(value);
    name.expect("components are written one after the other")
        .to_name()
}

fn write_component(random: &mut Random, out: &mut Vec<u8>) {
    let n_chars = MIN_CHARS + (random.next_u64() % SPREAD_CHARS) as usize;
    tlv::write_head(out, types::component::GENERIC.into(), n_chars);
    // Twelve characters of five bits are in one number; a component has up to 13.
    let low = u128::from(random.next_u64());
    let high = u128::from(random.next_u64());
    let mut bits = high << 64 | low;
    for _ in 0..n_chars {
        out.push(ALPHABET[(bits & 31) as usize]);
        bits >>= 5;
    }
}

/// Packets of one burst, in one run of bytes, as a receive ring holds them.
#[derive(Clone, Debug, Default)]
pub struct Burst {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Burst {
    /// Forgets the packets and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds the packet that `write` appends.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// How many packets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of the packet whose bytes these are; `None` if they lie elsewhere.
    #[must_use]
    pub fn place_of(&self, wire: &[u8]) -> Option<usize> {
        let start = wire
            .as_ptr()
            .addr()
            .checked_sub(self.bytes.as_ptr().addr())?;
        (start < self.bytes.len()).then(|| self.ends.partition_point(|&end| end <= start))
    }

    /// The packets.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let wire = &self.bytes[start..end];
            start = end;
            wire
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tachonym_packet::{DataView, InterestView};

    use super::*;

    fn workload() -> Workload {
        Workload {
            seed: 1,
            n_prefixes: 1_000,
            n_prefix_components: 4,
            n_name_components: 7,
            content_bytes: 128,
        }
    }

    #[test]
    fn interest_and_data_of_a_number_have_one_name_below_a_prefix() {
        let workload = workload();
        let prefixes: HashSet<Name> = (0..1_000).map(|number| workload.prefix(number)).collect();
        assert_eq!(prefixes.len(), 1_000);
        let mut names = HashSet::new();
        for number in 0..1_000 {
            let (mut asked, mut answer) = (Vec::new(), Vec::new());
            workload.write_interest(number, &mut asked);
            workload.write_data(number, &mut answer);
            let interest = InterestView::parse(&asked).expect("well-formed");
            let data = DataView::parse(&answer).expect("well-formed");
            assert_eq!(interest.name(), data.name());
            assert_eq!((data.name().len(), data.content().len()), (7, 128));
            assert!(prefixes.contains(&data.name().prefix(4).to_name()));
            names.insert(data.name().to_name());
        }
        assert_eq!(names.len(), 1_000);
    }

    #[test]
    fn components_have_nine_characters_on_average() {
        let workload = workload();
        let n_chars: usize = (0..1_000)
            .map(|number| workload.prefix(number).view().value_bytes().len() - 2 * 4)
            .sum();
        let mean = n_chars as f64 / 4_000.0;
        assert!((8.8..9.2).contains(&mean), "{mean}");
    }

    #[test]
    fn an_interest_sent_again_has_another_nonce() {
        let nonce = |time| {
            let mut wire = Vec::new();
            workload().write_interest_again(5, time, &mut wire);
            InterestView::parse(&wire).expect("well-formed").nonce()
        };
        assert_eq!(nonce(0), nonce(0));
        assert_ne!(nonce(0), nonce(1));
    }

    #[test]
    fn a_burst_gives_back_its_packets() {
        let mut burst = Burst::default();
        for packet in [&b"ab"[..], b"", b"c"] {
            burst.push(|out| out.extend_from_slice(packet));
        }
        assert_eq!(burst.iter().collect::<Vec<_>>(), [&b"ab"[..], b"", b"c"]);
        let places: Vec<_> = burst.iter().map(|packet| burst.place_of(packet)).collect();
        assert_eq!(
            places,
            [Some(0), Some(2), Some(2)],
            "what is empty is nowhere"
        );
        assert_eq!(burst.place_of(&[0]), None);
        burst.clear();
        assert!(burst.is_empty() && burst.iter().next().is_none());
    }
}
