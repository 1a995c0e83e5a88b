//! What the experiments share: parameters, sizes, memory, and charts.
//!
//! Sizes are decimal, as published: 1 GB is 10⁹ bytes, and a chunk has 8,000.

use anyhow::ensure;
use tachonym_bench::{Axis, Chart, Context, Param, ParamKind};
use tachonym_memory::available_bytes;

use super::catalogue::{Bytes, Catalogue};
use super::model;
use super::workload::Settings;

/// Bytes of memory that a chunk in L1 takes: a buffer, its index entries, and a reserve.
const FIRST_BYTES_BY_CHUNK: u64 = 8_600;
/// Memory that is left to other programs.
const SPARE_BYTES: u64 = 1 << 30;

pub(super) const SHRINK: Param = Param::new(
    "shrink",
    "divides the published sizes of both levels and Real's arrivals",
    ParamKind::Count {
        min: 1,
        max: 10_000,
    },
    ["500", "10", "1"],
);
pub(super) const ROUNDS: Param = Param::rounds(["1", "3", "5"]);
pub(super) const WARM: Param = Param::count(
    "warm",
    "requests that fill L1, as a multiple of its chunks",
    ["4", "4", "10"],
);
pub(super) const BATCH: Param = Param::new(
    "batch",
    "chunks in a batch",
    ParamKind::Count { min: 1, max: 1_280 },
    ["10"; 3],
);

/// A size in GB, or several, the same at each scale, before it is divided.
pub(super) const fn gb(name: &'static str, help: &'static str, default: &'static str) -> Param {
    gbs(name, help, [default; 3])
}

/// Sizes in GB by scale.
pub(super) const fn gbs(
    name: &'static str,
    help: &'static str,
    defaults: [&'static str; 3],
) -> Param {
    Param::new(name, help, ParamKind::Numbers, defaults)
}

/// How an experiment is scaled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) shrink: u32,
    n_rounds: u64,
    seed: u64,
    warm_by_l1: u64,
    /// B.
    pub(super) batch_chunks: u32,
}

impl Sizes {
    /// As the parameters say.
    pub(super) fn of(context: &Context) -> Self {
        Self {
            shrink: context.values.count32("shrink"),
            n_rounds: context.rounds() as u64,
            seed: context.seed(),
            warm_by_l1: context.count("warm"),
            batch_chunks: context.values.count32("batch"),
        }
    }

    /// The divided sizes of a parameter.
    pub(super) fn all(&self, context: &Context, name: &str) -> anyhow::Result<Vec<Bytes>> {
        let sizes = context.values.numbers(name).into_iter();
        sizes
            .map(|gb| Ok(Bytes::of_gb(gb)?.shrunk(self.shrink)))
            .collect()
    }

    /// The divided size of a parameter; the first if there are several.
    pub(super) fn one(&self, context: &Context, name: &str) -> anyhow::Result<Bytes> {
        let gb = context.values.numbers(name)[0];
        Ok(Bytes::of_gb(gb)?.shrunk(self.shrink))
    }

    /// The workloads' settings for a catalogue.
    pub(super) fn settings(&self, catalogue: Catalogue) -> Settings {
        model::shrunk_settings(catalogue, self.shrink)
    }

    /// The seed of each round.
    pub(super) fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let seed = self.seed;
        (0..self.n_rounds).map(move |round| seed.wrapping_add(round))
    }

    /// Requests that fill an L1 of `l1_chunks`.
    pub(super) const fn n_warm(&self, l1_chunks: u64) -> u64 {
        self.warm_by_l1 * l1_chunks
    }

    /// A sentence for the record.
    pub(super) fn note(&self) -> String {
        let sizes = match self.shrink {
            1 => "Sizes are as published".to_owned(),
            by => format!("Sizes of both levels and Real's arrivals are 1/{by} of the published"),
        };
        format!(
            "{sizes}; {} times |L1| of requests to warm (published: 10), {} rounds with seeds of \
             their own (published: 5), B = {}; means with 95 % confidence.",
            self.warm_by_l1, self.n_rounds, self.batch_chunks
        )
    }
}

/// A chart whose x axis grows by ratios.
pub(super) fn log_chart(title: &str, x: &str, y: &str) -> Chart {
    Chart {
        x_axis: Axis::Log,
        ..Chart::new(title, x, y)
    }
}

/// Memory of an L1 of `n_chunks`.
pub(super) const fn first_bytes(n_chunks: u64) -> u64 {
    n_chunks * FIRST_BYTES_BY_CHUNK
}

/// Whether `needed_bytes` of memory are available beside 1 GiB for other programs.
pub(super) fn has_memory(needed_bytes: u64) -> bool {
    needed_bytes.saturating_add(SPARE_BYTES) <= available_bytes()
}

/// Refuses what the memory has no room for, before the kernel ends the program.
///
/// # Errors
/// If `needed_bytes` and 1 GiB for other programs are not available.
pub(super) fn ensure_memory(needed_bytes: u64) -> anyhow::Result<()> {
    ensure!(
        has_memory(needed_bytes),
        "this needs {} of memory, but {} are available, of which {} are kept for other programs; \
         use smaller sizes, a larger shrink, or memory=dynamic",
        Bytes(needed_bytes),
        Bytes(available_bytes()),
        Bytes(SPARE_BYTES),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_the_memory_are_refused() {
        ensure_memory(1 << 20).expect("a mebibyte is there");
        let error = ensure_memory(1 << 60).expect_err("no machine has that much");
        assert!(error.to_string().contains("shrink"), "{error}");
    }
}
