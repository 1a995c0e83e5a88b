//! What the experiments share: sizes, runs, memory, and where drawings go.

use std::fmt;
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde::Serialize;

use super::catalogue::{BATCH_CHUNKS, Bytes, Catalogue};
use super::model;
use super::workload::Settings;
use crate::cache::plot::{self, Axis, Chart};

/// Bytes of memory that a chunk in the first level takes: a buffer, what finds it, and some.
const FIRST_BYTES_BY_CHUNK: u64 = 8_600;
/// Memory that is to be left to all others.
const SPARE_BYTES: u64 = 1 << 30;

/// How large, how often, and from what.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Sizes as published, five runs; may take long
    #[arg(long)]
    full: bool,
    /// Divides the sizes of both levels and the arrivals of Real by this, without --full, so that
    /// chunks stay in the first level for the same time
    #[arg(long, default_value_t = 10, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    shrink: u32,
    /// Runs, each with a seed of its own [default: 3; with --full 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    runs: Option<u16>,
    /// Seed of the first run
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Requests that fill the first level, as a multiple of its chunks [default: 4; with --full 10,
    /// as published]
    #[arg(long, value_name = "N")]
    warm_by_l1: Option<u64>,
    /// Segments in a batch
    #[arg(long, default_value_t = BATCH_CHUNKS, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1_280))]
    batch: u32,
}

/// How an experiment was scaled, for its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Scaled {
    shrink: u32,
    n_runs: u16,
    seed: u64,
    warm_by_l1: u64,
    batch_chunks: u32,
}

impl Scale {
    /// By what sizes are divided.
    pub(super) const fn shrink(&self) -> u32 {
        if self.full { 1 } else { self.shrink }
    }

    /// Whether sizes are as published.
    pub(super) const fn is_full(&self) -> bool {
        self.shrink() == 1
    }

    /// A published size, divided.
    pub(super) fn size(&self, published: Bytes) -> Bytes {
        published.shrunk(self.shrink())
    }

    /// A published size of all contents, divided.
    pub(super) fn catalogue(&self, published: Bytes) -> Catalogue {
        Catalogue::of(self.size(published))
    }

    /// The workloads' settings for a catalogue.
    pub(super) fn settings(&self, catalogue: Catalogue) -> Settings {
        model::shrunk_settings(catalogue, self.shrink())
    }

    /// B.
    pub(super) const fn batch_chunks(&self) -> u32 {
        self.batch
    }

    /// The seed of each run.
    pub(super) fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let n_runs = self.n_runs();
        let seed = self.seed;
        (0..u64::from(n_runs)).map(move |run| seed.wrapping_add(run))
    }

    /// Requests that fill a first level of so many chunks.
    pub(super) fn n_warm(&self, l1_chunks: u64) -> u64 {
        self.warm_by_l1() * l1_chunks
    }

    fn warm_by_l1(&self) -> u64 {
        self.warm_by_l1.unwrap_or(if self.full { 10 } else { 4 })
    }

    fn n_runs(&self) -> u16 {
        self.runs.unwrap_or(if self.full { 5 } else { 3 })
    }

    /// For the report.
    pub(super) fn scaled(&self) -> Scaled {
        Scaled {
            shrink: self.shrink(),
            n_runs: self.n_runs(),
            seed: self.seed,
            warm_by_l1: self.warm_by_l1(),
            batch_chunks: self.batch,
        }
    }
}

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shrink {
            1 => write!(f, "sizes as published")?,
            by => write!(
                f,
                "sizes of both levels and Real's arrivals reduced to 1/{by}"
            )?,
        }
        write!(
            f,
            "; {} |L1| of requests to warm (published: 10), {} runs from seed {}, B = {}; means \
             with 95 % confidence",
            self.warm_by_l1, self.n_runs, self.seed, self.batch_chunks
        )
    }
}

/// Where results go.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct OutputArgs {
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

impl OutputArgs {
    /// Draws the charts if that is asked for, and prints the report.
    ///
    /// # Errors
    /// If the drawing cannot be written.
    pub(super) fn finish<T: Serialize + fmt::Display>(
        &self,
        report: &T,
        charts: impl FnOnce() -> Vec<Chart>,
    ) -> anyhow::Result<()> {
        if let Some(path) = &self.svg {
            plot::draw(&charts(), path)
                .with_context(|| format!("cannot draw {}", path.display()))?;
        }
        crate::output::print(report, self.json)
    }
}

/// A chart whose x grows by ratios.
pub(super) fn log_chart(
    title: impl Into<String>,
    x: &str,
    y: &str,
    lines: Vec<(String, Vec<(f64, f64)>)>,
) -> Chart {
    Chart {
        x_axis: Axis::Log,
        ..Chart::of_lines(title, x, y, lines)
    }
}

/// Memory of a first level of so many chunks.
pub(super) const fn first_bytes(n_chunks: u64) -> u64 {
    n_chunks * FIRST_BYTES_BY_CHUNK
}

/// Refuses what this machine has no memory for now, rather than to be killed later.
///
/// # Errors
/// If so much is not available, and 1 GiB for others; not if the system does not tell.
pub(super) fn ensure_memory(needed_bytes: u64) -> anyhow::Result<()> {
    let Some(available_bytes) = available_bytes() else {
        return Ok(());
    };
    ensure!(
        needed_bytes + SPARE_BYTES <= available_bytes,
        "this needs {} of memory, but {} are available, of which {} are kept for other programs; \
         use smaller sizes, a larger --shrink, or --memory dynamic",
        Bytes(needed_bytes),
        Bytes(available_bytes),
        Bytes(SPARE_BYTES),
    );
    Ok(())
}

fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1_024)
}

/// A rate of a second level, in Gbit/s.
pub(super) fn a_rate(text: &str) -> Result<f64, String> {
    number_within(text, 1e-3..=1e4)
}

/// A number of the command line.
pub(super) fn number_within(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number")?;
    match range.contains(&number) {
        true => Ok(number),
        false => Err(format!("not between {} and {}", range.start(), range.end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_there_is_is_refused() {
        ensure_memory(1 << 20).expect("a mebibyte is there");
        let error = ensure_memory(1 << 60).expect_err("no machine has so much");
        assert!(error.to_string().contains("--shrink"), "{error}");
    }
}
