//! What Mansilha et al. 2017 could not: their curves on a disk, with the router's own two
//! levels, for which nothing waits, with and without reading ahead.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::bed::{OutputArgs, Scale, Scaled, ensure_memory, first_bytes, log_chart};
use super::catalogue::{Bytes, CHUNK_BYTES};
use super::fit::Mean;
use super::model;
use super::store::{Measured, measure, warm};
use super::two_levels::{Settings, TwoLevels};
use super::workload::{Kind, Requests};

/// Measures the router's own two levels on a disk by the size of the first, with and without
/// reading ahead
#[derive(Args, Clone, Debug)]
pub(super) struct DiskArgs {
    #[command(flatten)]
    scale: Scale,
    /// Directory for a file that is somewhat larger than |L2| and stays there
    #[arg(long, value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Workloads
    #[arg(long, value_enum, value_delimiter = ',', default_value = "real")]
    workloads: Vec<Kind>,
    /// |L1|
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZE",
        default_value = "0.5GB,1GB,4GB"
    )]
    l1: Vec<Bytes>,
    /// |L2|, which is the catalogue
    #[arg(long, default_value = "10GB", value_name = "SIZE")]
    l2: Bytes,
    /// Batches that are read ahead at most; 0 reads none
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "0,8")]
    ahead: Vec<u32>,
    /// Interests that may be pending
    #[arg(long, default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pending: u16,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    workload: Kind,
    max_ahead: u32,
    l1_bytes: u64,
    hit_ratio: Mean,
    /// By the model, which reads nothing ahead.
    expected_hit_ratio: f64,
    gbps: Mean,
    /// What was read while anything was being read, in Gbit/s.
    second_gbps: Option<Mean>,
    /// Bytes that were read, by those of requests.
    read_by_asked: f64,
    /// The same by the model, of content alone.
    expected_read_by_asked: f64,
    /// Interests that went upstream.
    n_missed: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    scaled: Scaled,
    l2_bytes: u64,
    n_pending: u16,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Both levels of the router on a disk, |L2| = |C| = {}: one thread that asks as fast as \
             it is answered, at most {} Interests pending (and a burst); {}. Who asks for a chunk while its batch is \
             read has no hit, and requests here come as fast as they are answered, not as streams \
             have them: so hits are fewer than by the model, and reads are what to compare\n\n| workload | ahead | L1 | hits in L1 | model, nothing ahead | Gbit/s | the \
             disk's Gbit/s | read by asked for | by the model | went upstream |\n|---|---|---|---|---|---|---|---|---|---|",
            Bytes(self.l2_bytes),
            self.n_pending,
            self.scaled
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {} | {:.4} | {:.4} | {} | {} | {:.3} | {:.3} | {} |",
                row.workload,
                row.max_ahead,
                Bytes(row.l1_bytes),
                row.hit_ratio,
                row.expected_hit_ratio,
                row.gbps,
                row.second_gbps.map_or(String::new(), |it| it.to_string()),
                row.read_by_asked,
                row.expected_read_by_asked,
                row.n_missed
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If the directory cannot be used, there is not as much memory, or the drawing cannot be
/// written.
pub(super) fn run(args: &DiskArgs) -> anyhow::Result<()> {
    let report = take(args)?;
    args.output.finish(&report, || {
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for row in &report.rows {
            let label = format!("{}, {} ahead", row.workload, row.max_ahead);
            let point = (Bytes(row.l1_bytes).gb(), row.hit_ratio.mean);
            match lines.iter_mut().find(|line| line.0 == label) {
                Some(line) => line.1.push(point),
                None => lines.push((label, vec![point])),
            }
        }
        vec![log_chart(
            "Both levels on a disk",
            "|L1|, GB",
            "hits in the first level",
            lines,
        )]
    })
}

fn take(args: &DiskArgs) -> anyhow::Result<Report> {
    let scale = &args.scale;
    let catalogue = scale.catalogue(args.l2);
    let of_requests = scale.settings(catalogue);
    let batch_chunks = scale.batch_chunks();
    let mut rows = Vec::new();
    for &max_ahead in &args.ahead {
        for &l1 in &args.l1 {
            let l1_chunks = scale.size(l1).chunks();
            ensure_memory(first_bytes(l1_chunks))?;
            let settings = Settings {
                batch_chunks,
                max_ahead,
                max_reads: 64,
                max_pending: args.pending.into(),
            };
            let n_first = l1_chunks as usize;
            let mut store =
                TwoLevels::in_directory(n_first, catalogue, &settings, &args.directory)?;
            for &kind in &args.workloads {
                let mut runs = Vec::new();
                for seed in scale.seeds() {
                    let mut requests = Requests::new(kind, &of_requests, seed);
                    warm(&mut store, &mut requests, scale.n_warm(l1_chunks), |_| true);
                    let n_requests = catalogue.n_chunks();
                    runs.push(measure(&mut store, &mut requests, n_requests, |_| true));
                }
                let expected = model::hit_ratio(kind, &of_requests, l1_chunks, batch_chunks);
                rows.extend(row_of(
                    (kind, max_ahead),
                    l1_chunks,
                    batch_chunks,
                    expected,
                    &runs,
                ));
                if let Some(row) = rows.last() {
                    eprintln!(
                        "{kind} {l1} {max_ahead}: {:.4}, {}",
                        row.hit_ratio, row.gbps
                    );
                }
            }
        }
    }
    Ok(Report {
        scaled: scale.scaled(),
        l2_bytes: catalogue.size().0,
        n_pending: args.pending,
        rows,
    })
}

fn row_of(
    (workload, max_ahead): (Kind, u32),
    l1_chunks: u64,
    batch_chunks: u32,
    expected_hit_ratio: f64,
    runs: &[Measured],
) -> Option<Row> {
    let of = |value: &dyn Fn(&Measured) -> Option<f64>| {
        Mean::of(&runs.iter().filter_map(value).collect::<Vec<_>>())
    };
    let read: u64 = runs.iter().map(|run| run.counts.second_bytes).sum();
    let asked: u64 = runs.iter().map(|run| run.counts.n_requests).sum();
    Some(Row {
        workload,
        max_ahead,
        l1_bytes: l1_chunks * CHUNK_BYTES,
        hit_ratio: of(&|run| Some(run.counts.first_ratio()))?,
        expected_hit_ratio,
        gbps: of(&|run| Some(run.gbps()))?,
        second_gbps: of(&|run| run.counts.second_gbps()),
        read_by_asked: read as f64 / (asked * CHUNK_BYTES).max(1) as f64,
        expected_read_by_asked: (1.0 - expected_hit_ratio) * f64::from(batch_chunks),
        n_missed: runs.iter().map(|run| run.counts.n_missed).sum(),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: DiskArgs,
    }

    #[test]
    fn a_file_answers_what_the_first_level_does_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let directory = folder.path().display().to_string();
        let mut words = vec!["x", "--shrink", "500", "--runs", "1", "--l1", "5GB"];
        words.extend([
            "--ahead",
            "0",
            "--workloads",
            "seq",
            "--directory",
            &directory,
        ]);
        let report = take(&Cli::parse_from(words).args).expect("a small file");
        let [row] = report.rows.as_slice() else {
            panic!("one row");
        };
        assert_eq!(row.n_missed, 0, "{row:?}");
        // One thread asks on while a batch is read, so that more than a tenth come late.
        assert!(
            row.hit_ratio.mean <= 0.9 && row.hit_ratio.mean > 0.0,
            "{row:?}"
        );
        assert!(row.read_by_asked > 0.9, "{row:?}");
    }
}
