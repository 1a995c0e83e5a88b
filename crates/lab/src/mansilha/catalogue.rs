//! The catalogue of contents: all of one length, cut into chunks, with sizes in bytes as
//! Mansilha et al. 2017 give them (Table 3).

use std::fmt;

use anyhow::ensure;

/// Bytes of content in a chunk. The paper says 8 KB, 8 chunks a second and 512 kbit/s: 8,000.
pub(super) const CHUNK_BYTES: u64 = 8_000;
/// Chunks of a content: 160 seconds of its stream.
pub(super) const CONTENT_CHUNKS: u32 = 1_280;

/// A size in bytes, written with a decimal unit as the paper does: `10 MB`, `1.5 GB`, `1 TB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bytes(pub(super) u64);

impl Bytes {
    /// A size in decimal gigabytes.
    ///
    /// # Errors
    /// If it is less than a chunk or more than 10 PB.
    pub(super) fn of_gb(gb: f64) -> anyhow::Result<Self> {
        let bytes = gb * 1e9;
        ensure!(
            (CHUNK_BYTES as f64..=1e16).contains(&bytes),
            "a size of {gb} GB is not from one chunk, {CHUNK_BYTES} bytes, to 10 PB"
        );
        Ok(Self(bytes.round() as u64))
    }

    /// Decimal gigabytes.
    pub(super) fn gb(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// As many whole chunks as fit.
    pub(super) const fn chunks(self) -> u64 {
        self.0 / CHUNK_BYTES
    }

    /// A part of it, at least one chunk.
    pub(super) fn shrunk(self, by: u32) -> Self {
        Self((self.0 / u64::from(by.max(1))).max(CHUNK_BYTES))
    }
}

const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
            Some((name, unit)) => write!(f, "{} {name}", (bytes / unit * 1e3).round() / 1e3),
            None => write!(f, "{} B", self.0),
        }
    }
}

/// A chunk of a content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Chunk {
    /// The content; the lower, the more popular.
    pub(super) content: u32,
    /// Its place there, from 0 on.
    pub(super) segment: u32,
}

/// All contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Catalogue {
    /// Contents, at least one.
    pub(super) n_contents: u32,
    /// Chunks of each, at least one.
    pub(super) content_chunks: u32,
}

impl Catalogue {
    /// As many whole contents of the published length as come closest to a size, at least
    /// one.
    pub(super) fn of(size: Bytes) -> Self {
        let contents = size.0 as f64 / (CHUNK_BYTES * u64::from(CONTENT_CHUNKS)) as f64;
        Self {
            n_contents: contents.round().clamp(1.0, f64::from(u32::MAX)) as u32,
            content_chunks: CONTENT_CHUNKS,
        }
    }

    /// Chunks in all.
    pub(super) const fn n_chunks(self) -> u64 {
        self.n_contents as u64 * self.content_chunks as u64
    }

    /// Bytes of all contents.
    pub(super) const fn size(self) -> Bytes {
        Bytes(self.n_chunks() * CHUNK_BYTES)
    }

    /// The number of a chunk among all.
    pub(super) const fn number(self, chunk: Chunk) -> u64 {
        chunk.content as u64 * self.content_chunks as u64 + chunk.segment as u64
    }

    /// The chunk of a number below [`Self::n_chunks`].
    pub(super) const fn chunk(self, number: u64) -> Chunk {
        Chunk {
            content: (number / self.content_chunks as u64) as u32,
            segment: (number % self.content_chunks as u64) as u32,
        }
    }

    /// Whether it has this chunk.
    pub(super) const fn has(self, chunk: Chunk) -> bool {
        chunk.content < self.n_contents && chunk.segment < self.content_chunks
    }
}

/// Chunks of a catalogue that one of its workers has.
#[derive(Clone, Copy)]
pub(super) struct Share<'a> {
    catalogue: Catalogue,
    /// `None` if all are.
    is_here: Option<&'a dyn Fn(Chunk) -> bool>,
}

impl<'a> Share<'a> {
    /// Those that `is_here` says.
    pub(super) const fn new(catalogue: Catalogue, is_here: &'a dyn Fn(Chunk) -> bool) -> Self {
        let is_here = Some(is_here);
        Self { catalogue, is_here }
    }

    /// All of them.
    pub(super) const fn all(catalogue: Catalogue) -> Self {
        let is_here = None;
        Self { catalogue, is_here }
    }

    /// Whether it is all of them.
    pub(super) const fn is_all(self) -> bool {
        self.is_here.is_none()
    }

    /// Whether a chunk is among them.
    pub(super) fn has(self, chunk: Chunk) -> bool {
        self.is_here.is_none_or(|is_here| is_here(chunk))
    }

    /// One after the other.
    pub(super) fn chunks(self) -> impl Iterator<Item = Chunk> {
        let all = (0..self.catalogue.n_chunks()).map(move |number| self.catalogue.chunk(number));
        all.filter(move |&chunk| self.has(chunk))
    }

    /// What all of it belongs to.
    pub(super) const fn catalogue(self) -> Catalogue {
        self.catalogue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_with_decimal_units() {
        for (gb, text) in [
            (0.01, "10 MB"),
            (1.5, "1.5 GB"),
            (1e3, "1 TB"),
            (8e-6, "8 kB"),
        ] {
            assert_eq!(Bytes::of_gb(gb).expect(text).to_string(), text);
        }
        for gb in [0.0, -1.0, 1e-6, 1e9, f64::INFINITY] {
            Bytes::of_gb(gb).expect_err("no size of a catalogue");
        }
        assert_eq!(Bytes(10_000_000_000).chunks(), 1_250_000);
        assert_eq!(Bytes(1_000_000_000).shrunk(10), Bytes(100_000_000));
    }

    #[test]
    fn chunks_have_numbers_and_numbers_chunks() {
        let catalogue = Catalogue::of(Bytes(100_000_000));
        assert_eq!((catalogue.n_contents, catalogue.n_chunks()), (10, 12_800));
        for number in [0, 1, 1_279, 1_280, 12_799] {
            let chunk = catalogue.chunk(number);
            assert_eq!(catalogue.number(chunk), number);
            assert!(catalogue.has(chunk));
        }
        assert!(!catalogue.has(catalogue.chunk(12_800)));
        assert_eq!(Catalogue::of(Bytes(8_000)).n_contents, 1);
    }

    #[test]
    fn shares_are_parts_of_all() {
        let catalogue = Catalogue::of(Bytes(30_000_000));
        let all: Vec<Chunk> = Share::all(catalogue).chunks().collect();
        assert_eq!(all.len() as u64, catalogue.n_chunks());
        let is_here = |chunk: Chunk| chunk.content == 1;
        let share = Share::new(catalogue, &is_here);
        assert!(share.chunks().eq(all[1_280..2_560].iter().copied()));
    }
}
