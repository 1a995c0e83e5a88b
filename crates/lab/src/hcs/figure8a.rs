//! Figure 8 (a) of Mansilha et al. 2017: how evenly workers are loaded by what is hashed.

use std::fmt;

use clap::Args;
use serde::Serialize;

use super::bed::OutputArgs;
use super::catalogue::{BATCH_CHUNKS, Bytes, Catalogue};
use super::division::{Division, Rule, most_by_mean};
use super::fit::Mean;
use super::published;
use super::workload::{Kind, Requests, Settings};
use crate::cache::plot::Chart;

/// Counts the load of workers when segments and when batches are hashed (figure 8 (a))
#[derive(Args, Clone, Debug)]
pub(super) struct Figure8AArgs {
    /// Runs, each with a seed of its own
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    runs: u16,
    /// Seed of the first run, for requests and for the key of hashes
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Segments in a batch
    #[arg(long, default_value_t = BATCH_CHUNKS, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1_280))]
    batch: u32,
    /// Size of the catalogue; the published one by default, because none of it is in memory
    #[arg(long, default_value = "10GB", value_name = "SIZE")]
    catalogue: Bytes,
    /// Workers
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,2,4,6,8,12,16",
          value_parser = clap::value_parser!(u16).range(1..=128))]
    workers: Vec<u16>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    n_workers: u16,
    /// The most loaded by the mean.
    content: Mean,
    batch: Mean,
    /// The most loaded under Content by the most loaded under Batch.
    ratio: Mean,
    /// Shares of the first run, the largest first.
    content_shares: Vec<f64>,
    batch_shares: Vec<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    n_runs: u16,
    seed: u64,
    batch_chunks: u32,
    catalogue_bytes: u64,
    n_requests: u64,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Figure 8 (a): Real, catalogue of {}, {} requests in each of {} runs from seed {}, B = \
             {}; means with 95 % confidence\n\n| workers | Content: most loaded by \
             mean | Batch: most loaded / mean | most loaded: Content / Batch | shares \
             under Content | shares under Batch |\n|---|---|---|---|---|---|",
            Bytes(self.catalogue_bytes),
            self.n_requests,
            self.n_runs,
            self.seed,
            self.batch_chunks
        )?;
        let shares = |shares: &[f64]| {
            let texts: Vec<String> = shares.iter().map(|share| format!("{share:.3}")).collect();
            texts.join(" ")
        };
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {} |",
                row.n_workers,
                row.content,
                row.batch,
                row.ratio,
                shares(&row.content_shares),
                shares(&row.batch_shares)
            )?;
        }
        writeln!(
            f,
            "\nPublished: with 16 workers the most loaded has {} times as much under Content as \
             under Batch.",
            published::CONTENT_BY_BATCH_LOAD
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If the drawing cannot be written.
pub(super) fn run(args: &Figure8AArgs) -> anyhow::Result<()> {
    let report = take(args)?;
    args.output.finish(&report, || {
        let line = |label: &str, of: fn(&Row) -> f64| {
            let points = report
                .rows
                .iter()
                .map(|row| (row.n_workers.into(), of(row)));
            (label.to_owned(), points.collect())
        };
        vec![Chart::of_lines(
            "Figure 8 (a)",
            "workers",
            "most loaded / mean",
            vec![
                line("Content", |row| row.content.mean),
                line("Batch", |row| row.batch.mean),
            ],
        )]
    })
}

fn take(args: &Figure8AArgs) -> anyhow::Result<Report> {
    let catalogue = Catalogue::of(args.catalogue);
    let settings = Settings::published(catalogue);
    let n_requests = catalogue.n_chunks();
    let mut rows = Vec::new();
    for &n_workers in &args.workers {
        let mut runs = Vec::new();
        for run in 0..u64::from(args.runs) {
            let seed = args.seed.wrapping_add(run);
            let divide = |rule| Division::new(catalogue, rule, n_workers, args.batch, seed);
            let divisions = [divide(Rule::Content)?, divide(Rule::Batch)?];
            let mut loads = [(); 2].map(|()| vec![0_u64; usize::from(n_workers)]);
            let requests = Requests::new(Kind::Real, &settings, seed);
            for request in requests.take(n_requests as usize) {
                for (division, loads) in divisions.iter().zip(&mut loads) {
                    loads[usize::from(division.home(request.chunk))] += 1;
                }
            }
            runs.push(loads);
        }
        let of = |value: &dyn Fn(&[Vec<u64>; 2]) -> f64| {
            Mean::of(&runs.iter().map(value).collect::<Vec<_>>())
        };
        let most = |loads: &[u64]| loads.iter().max().copied().unwrap_or(0) as f64;
        let shares = |rule: usize| -> Vec<f64> {
            let mut shares: Vec<f64> = runs.first().map_or(Vec::new(), |loads| {
                let loads = loads[rule].iter();
                loads.map(|&load| load as f64 / n_requests as f64).collect()
            });
            shares.sort_by(|a, b| b.total_cmp(a));
            shares
        };
        let content = of(&|loads| most_by_mean(&loads[0]));
        let batch = of(&|loads| most_by_mean(&loads[1]));
        let ratio = of(&|loads| most(&loads[0]) / most(&loads[1]).max(1.0));
        if let (Some(content), Some(batch), Some(ratio)) = (content, batch, ratio) {
            rows.push(Row {
                n_workers,
                content,
                batch,
                ratio,
                content_shares: shares(0),
                batch_shares: shares(1),
            });
        }
    }
    Ok(Report {
        n_runs: args.runs,
        seed: args.seed,
        batch_chunks: args.batch,
        catalogue_bytes: catalogue.size().0,
        n_requests,
        rows,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Figure8AArgs,
    }

    #[test]
    fn batches_spread_what_contents_keep_together() {
        let words = "x --catalogue 1GB --workers 1,16 --runs 2";
        let report = take(&Cli::parse_from(words.split(' ')).args).expect("few workers");
        let [one, many] = report.rows.as_slice() else {
            panic!("two numbers of workers");
        };
        assert_eq!(
            (one.content.mean, one.batch.mean, one.ratio.mean),
            (1.0, 1.0, 1.0)
        );
        assert!(many.content.mean > 2.0, "{many:?}");
        assert!(many.batch.mean < 1.5 && many.ratio.mean > 1.5, "{many:?}");
        let all: f64 = many.batch_shares.iter().sum();
        assert!((all - 1.0).abs() < 1e-9 && many.batch_shares.is_sorted_by(|a, b| a >= b));
    }
}
