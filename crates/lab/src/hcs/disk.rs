//! What Mansilha et al. 2017 could not: their curves on a disk, with the router's own two
//! levels, for which nothing waits, with and without reading ahead, which they left for later
//! (section 3.2), and with everything waiting for a read, as their serial algorithm has it.
//!
//! Requests come as fast as they are answered, or at the workload's own times (`paced`): who
//! looks ahead has the time then that a consumer leaves him.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tachonym_store::Counters;

use super::bed::{OutputArgs, Scale, Scaled, ensure_memory, first_bytes, log_chart, number_within};
use super::catalogue::{Bytes, CHUNK_BYTES, Share};
use super::fit::Mean;
use super::model;
use super::paced;
use super::recipe::max_reads;
use super::store::{Measured, measure, warm};
use super::two_levels::{Settings, TwoLevels, volume_bytes};
use super::workload::{Kind, Requests};
use crate::ssd::disk::Disk;

/// Hits in the first level that reading ahead is to give: Real, |L1| = 1 GB, |L2| = 10 GB.
const PROMISED_HITS: f64 = 0.995;
/// Reads that it may take by those without it, and be called the same.
const MAX_READS: f64 = 1.02;

/// Measures the router's two levels on a disk by the size of the first, with and without reading
/// ahead, and with all Interests or none waiting for a read
#[derive(Args, Clone, Debug)]
pub(super) struct DiskArgs {
    #[command(flatten)]
    scale: Scale,
    /// Directory on the disk; a file slightly larger than |L2| for each --ahead and --pending is
    /// there during the run
    #[arg(long, default_value = "/var/tmp", value_name = "DIR")]
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
    /// Most batches to read ahead; 0: none
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "0,8")]
    ahead: Vec<u32>,
    /// Sends requests at the times of the workload, faster than published by this factor [default:
    /// as fast as they are answered]
    #[arg(long, value_name = "N", value_parser = a_speed)]
    speed: Option<f64>,
    /// Most pending Interests; with 1 each waits for the one before, as in the paper's serial
    /// algorithm
    #[arg(long, value_delimiter = ',', default_value = "64", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pending: Vec<u16>,
    #[command(flatten)]
    output: OutputArgs,
}

fn a_speed(text: &str) -> Result<f64, String> {
    number_within(text, 1e-3..=1e6)
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    workload: Kind,
    max_ahead: u32,
    n_pending: u16,
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
    n_requests: u64,
    /// Reads of the device for who was waiting, and ahead.
    n_reads: u64,
    n_reads_ahead: u64,
    /// Requests that came when their batch was on its way, and waited; they are no hits.
    n_waited: u64,
    /// How much later than it should have the latest request came, in milliseconds.
    latest_ms: Option<f64>,
    /// Interests that went upstream.
    n_missed: u64,
}

/// What reading ahead changed, of the same requests.
#[derive(Clone, Debug, Serialize)]
struct Verdict {
    workload: Kind,
    l1_bytes: u64,
    max_ahead: u32,
    n_pending: u16,
    hits_without: f64,
    hits_with: f64,
    /// Reads of the device, and bytes, by those without.
    reads: f64,
    bytes: f64,
    is_kept: bool,
}

/// What it gained that others than who asked for what is read need not wait for it.
#[derive(Clone, Debug, Serialize)]
struct Gain {
    workload: Kind,
    l1_bytes: u64,
    max_ahead: u32,
    n_pending: u16,
    /// Throughput by that of one Interest at a time.
    by_serial: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    scaled: Scaled,
    l2_bytes: u64,
    speed: Option<f64>,
    rows: Vec<Row>,
    verdicts: Vec<Verdict>,
    gains: Vec<Gain>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.speed {
            Some(speed) => writeln!(
                f,
                "Both levels of the router on a disk, |L2| = |C| = {}: requests at the workload's \
                 own times, {speed} times as fast; {}. A request for a chunk whose batch is being \
                 read waits for it, and is no hit",
                Bytes(self.l2_bytes),
                self.scaled
            )?,
            None => writeln!(
                f,
                "Both levels of the router on a disk, |L2| = |C| = {}: one thread that requests \
                 as fast as it gets answers; {}. A request for a chunk whose batch is being read \
                 is no hit, and with more than one Interest pending requests come as fast as they \
                 are \
                 answered, not as streams have them: so hits are fewer than by the model, and \
                 reads \
                 are what to compare",
                Bytes(self.l2_bytes),
                self.scaled
            )?,
        }
        writeln!(
            f,
            "\n| workload | ahead | pending | L1 | hits in L1 | model, nothing ahead | Gbit/s | \
             the disk's \
             Gbit/s | reads / requests | by the model | requests | reads | ahead | waited for a \
             batch on its way | latest, ms | went upstream |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {} | {} | {:.4} | {:.4} | {} | {} | {:.3} | {:.3} | {} | {} | {} | \
                 {} | \
                 {} | {} |",
                row.workload,
                row.max_ahead,
                row.n_pending,
                Bytes(row.l1_bytes),
                row.hit_ratio,
                row.expected_hit_ratio,
                row.gbps,
                row.second_gbps.map_or(String::new(), |it| it.to_string()),
                row.read_by_asked,
                row.expected_read_by_asked,
                row.n_requests,
                row.n_reads,
                row.n_reads_ahead,
                row.n_waited,
                row.latest_ms.map_or(String::new(), |it| format!("{it:.1}")),
                row.n_missed
            )?;
        }
        for it in &self.verdicts {
            writeln!(
                f,
                "\n{}, |L1| = {}: up to {} batches read ahead change hits in L1 from {:.4} to \
                 {:.4} \
                 (promised, with 1 GB before 10 GB: at least {PROMISED_HITS}), with {:.3} times \
                 the reads and {:.3} times the bytes (at most {MAX_READS}): {}",
                it.workload,
                Bytes(it.l1_bytes),
                it.max_ahead,
                it.hits_without,
                it.hits_with,
                it.reads,
                it.bytes,
                match it.is_kept {
                    true => "kept",
                    false => "missed",
                }
            )?;
        }
        for it in &self.gains {
            writeln!(
                f,
                "\n{}, |L1| = {}, {} ahead: {} Interests pending give {:.2} times what one gives, \
                 for which everything waits",
                it.workload,
                Bytes(it.l1_bytes),
                it.max_ahead,
                it.n_pending,
                it.by_serial
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
        let mut throughput: Vec<Vec<(f64, f64)>> = Vec::new();
        for row in &report.rows {
            let Id(kind, n_ahead, n_pending) = row.id();
            let label = format!("{kind}, {n_ahead} ahead, {n_pending} pending");
            let line = lines.iter().position(|line| line.0 == label);
            let line = line.unwrap_or_else(|| {
                lines.push((label, Vec::new()));
                throughput.push(Vec::new());
                lines.len() - 1
            });
            let gb = Bytes(row.l1_bytes).gb();
            lines[line].1.push((gb, row.hit_ratio.mean));
            throughput[line].push((gb, row.gbps.mean));
        }
        let labels = lines.iter().map(|line| line.0.clone());
        let throughput = labels.zip(throughput).collect();
        let chart = |y: &str, lines| log_chart("Both levels on a disk", "|L1|, GB", y, lines);
        vec![chart("hits in L1", lines), chart("Gbit/s", throughput)]
    })
}

/// A workload, batches ahead, Interests pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id(Kind, u32, u16);

impl Row {
    const fn id(&self) -> Id {
        Id(self.workload, self.max_ahead, self.n_pending)
    }
}

/// A store, and what was measured of it.
struct Candidate {
    max_ahead: u32,
    n_pending: u16,
    store: TwoLevels,
    runs: Vec<Run>,
}

struct Run {
    measured: Measured,
    counters: Counters,
    latest_ns: Option<u64>,
}

fn take(args: &DiskArgs) -> anyhow::Result<Report> {
    let scale = &args.scale;
    let catalogue = scale.catalogue(args.l2);
    let of_requests = scale.settings(catalogue);
    let mut rows = Vec::new();
    for &l1 in &args.l1 {
        let l1_chunks = scale.size(l1).chunks();
        let n_stores = (args.ahead.len() * args.pending.len()) as u64;
        ensure_memory(first_bytes(l1_chunks) * n_stores)?;
        let bytes = volume_bytes(catalogue.n_chunks()) * n_stores;
        let disk = Disk::new(&args.directory, bytes)?;
        let mut candidates = candidates(args, l1_chunks, &disk)?;
        for &kind in &args.workloads {
            let expected = model::hit_ratio(kind, &of_requests, l1_chunks, scale.batch_chunks());
            // They take turns, so that whoever else uses the disk harms all alike.
            for seed in scale.seeds() {
                for candidate in &mut candidates {
                    let requests = Requests::new(kind, &of_requests, seed);
                    let run = run_one(args, &mut candidate.store, requests, l1_chunks)?;
                    eprintln!(
                        "{kind} {l1} {} ahead, {} pending: {:.4}, {:.1}",
                        candidate.max_ahead,
                        candidate.n_pending,
                        run.measured.counts.first_ratio(),
                        run.measured.gbps()
                    );
                    candidate.runs.push(run);
                }
            }
            for candidate in &mut candidates {
                let runs = std::mem::take(&mut candidate.runs);
                let id = Id(kind, candidate.max_ahead, candidate.n_pending);
                rows.extend(row_of(id, l1_chunks, scale.batch_chunks(), expected, &runs));
            }
        }
    }
    Ok(Report {
        scaled: scale.scaled(),
        l2_bytes: catalogue.size().0,
        speed: args.speed,
        verdicts: match args.speed {
            Some(_) => verdicts(&rows),
            None => Vec::new(),
        },
        gains: match args.speed {
            Some(_) => Vec::new(),
            None => gains(&rows),
        },
        rows,
    })
}

fn candidates(args: &DiskArgs, l1_chunks: u64, disk: &Disk) -> anyhow::Result<Vec<Candidate>> {
    let share = Share::all(args.scale.catalogue(args.l2));
    let mut candidates = Vec::new();
    for &max_ahead in &args.ahead {
        for &n_pending in &args.pending {
            let settings = Settings {
                batch_chunks: args.scale.batch_chunks(),
                max_ahead,
                max_reads: max_reads(n_pending),
                max_pending: n_pending.into(),
            };
            let file = format!("ahead-{max_ahead}-pending-{n_pending}");
            let store = TwoLevels::on_disk(l1_chunks as usize, share, &settings, disk, &file)?;
            candidates.push(Candidate {
                max_ahead,
                n_pending,
                store,
                runs: Vec::new(),
            });
        }
    }
    Ok(candidates)
}

/// Fills the first level and measures.
fn run_one(
    args: &DiskArgs,
    store: &mut TwoLevels,
    mut requests: Requests,
    l1_chunks: u64,
) -> anyhow::Result<Run> {
    let n_warm = args.scale.n_warm(l1_chunks);
    let n_requests = args.scale.catalogue(args.l2).n_chunks();
    let (before, measured, latest_ns);
    match args.speed {
        Some(speed) => {
            paced::measure(store, &mut requests, n_warm, speed);
            before = store.counters();
            let paced = paced::measure(store, &mut requests, n_requests, speed);
            (measured, latest_ns) = (paced.measured, Some(paced.latest_ns));
        }
        None => {
            warm(store, &mut requests, n_warm, |_| true);
            before = store.counters();
            measured = measure(store, &mut requests, n_requests, |_| true);
            latest_ns = None;
        }
    }
    measured.counts.ensure_answered()?;
    let after = store.counters();
    Ok(Run {
        measured,
        counters: Counters {
            n_reads: after.n_reads - before.n_reads,
            n_reads_ahead: after.n_reads_ahead - before.n_reads_ahead,
            n_read_bytes: after.n_read_bytes - before.n_read_bytes,
            ..Counters::default()
        },
        latest_ns,
    })
}

fn row_of(
    Id(workload, max_ahead, n_pending): Id,
    l1_chunks: u64,
    batch_chunks: u32,
    expected_hit_ratio: f64,
    runs: &[Run],
) -> Option<Row> {
    let of = |value: &dyn Fn(&Measured) -> Option<f64>| {
        let values = runs.iter().filter_map(|run| value(&run.measured));
        Mean::of(&values.collect::<Vec<_>>())
    };
    let sum = |value: &dyn Fn(&Run) -> u64| -> u64 { runs.iter().map(value).sum() };
    let n_requests = sum(&|run| run.measured.counts.n_requests);
    let n_reads = sum(&|run| run.counters.n_reads);
    let n_second = sum(&|run| run.measured.counts.n_second);
    let latest_ns = runs.iter().filter_map(|run| run.latest_ns).max();
    Some(Row {
        workload,
        max_ahead,
        n_pending,
        l1_bytes: l1_chunks * CHUNK_BYTES,
        hit_ratio: of(&|run| Some(run.counts.first_ratio()))?,
        expected_hit_ratio,
        gbps: of(&|run| Some(run.gbps()))?,
        second_gbps: of(&|run| run.counts.second_gbps()),
        read_by_asked: sum(&|run| run.counters.n_read_bytes) as f64
            / (n_requests * CHUNK_BYTES).max(1) as f64,
        expected_read_by_asked: (1.0 - expected_hit_ratio) * f64::from(batch_chunks),
        n_requests,
        n_reads,
        n_reads_ahead: sum(&|run| run.counters.n_reads_ahead),
        n_waited: n_second.saturating_sub(n_reads),
        latest_ms: latest_ns.map(|ns| ns as f64 / 1e6),
        n_missed: sum(&|run| run.measured.counts.n_missed),
    })
}

/// Rows that read ahead beside those that do not.
fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let n_reads = |row: &Row| (row.n_reads + row.n_reads_ahead) as f64;
    let verdict = |row: &Row| {
        let is_base = |it: &&Row| {
            it.id() == Id(row.workload, 0, row.n_pending) && it.l1_bytes == row.l1_bytes
        };
        let base = rows.iter().find(is_base).filter(|_| row.max_ahead > 0)?;
        let reads = n_reads(row) / n_reads(base).max(1.0);
        let hits_with = row.hit_ratio.mean;
        Some(Verdict {
            workload: row.workload,
            l1_bytes: row.l1_bytes,
            max_ahead: row.max_ahead,
            n_pending: row.n_pending,
            hits_without: base.hit_ratio.mean,
            hits_with,
            reads,
            bytes: row.read_by_asked / base.read_by_asked.max(f64::MIN_POSITIVE),
            is_kept: hits_with >= PROMISED_HITS && reads <= MAX_READS,
        })
    };
    rows.iter().filter_map(verdict).collect()
}

/// Rows with several Interests pending beside those with one.
fn gains(rows: &[Row]) -> Vec<Gain> {
    let gain = |row: &Row| {
        let serial = Id(row.workload, row.max_ahead, 1);
        let is_serial = |it: &&Row| it.id() == serial && it.l1_bytes == row.l1_bytes;
        let serial = rows.iter().find(is_serial).filter(|_| row.n_pending > 1)?;
        Some(Gain {
            workload: row.workload,
            l1_bytes: row.l1_bytes,
            max_ahead: row.max_ahead,
            n_pending: row.n_pending,
            by_serial: row.gbps.mean / serial.gbps.mean,
        })
    };
    rows.iter().filter_map(gain).collect()
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
            "--pending",
            "1,64",
            "--workloads",
            "seq",
            "--directory",
            &directory,
        ]);
        let report = take(&Cli::parse_from(words).args).expect("a small file");
        let [serial, row] = report.rows.as_slice() else {
            panic!("a row for one and for 64 Interests");
        };
        // Where each waits for the one before, nine of ten come later than their batch.
        assert_eq!((serial.n_missed, serial.n_waited), (0, 0), "{serial:?}");
        assert!((serial.hit_ratio.mean - 0.9).abs() < 1e-9, "{serial:?}");
        assert_eq!(report.gains.len(), 1, "{report:?}");
        let left = std::fs::read_dir(&directory).expect("it is there").count();
        assert_eq!(left, 0, "files stay");
        assert_eq!(row.n_missed, 0, "{row:?}");
        // One thread asks on while a batch is read, so that more than a tenth come late.
        assert!(
            row.hit_ratio.mean <= 0.9 && row.hit_ratio.mean > 0.0,
            "{row:?}"
        );
        assert!(row.read_by_asked > 0.9, "{row:?}");
    }

    #[test]
    fn at_a_pace_requests_have_a_hit_or_wait_and_what_reads_ahead_is_compared() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let directory = folder.path().display().to_string();
        let mut words = vec!["x", "--shrink", "500", "--runs", "1", "--warm-by-l1", "1"];
        words.extend([
            "--l1",
            "4GB,5GB",
            "--speed",
            "2000",
            "--directory",
            &directory,
        ]);
        let report = take(&Cli::parse_from(words).args).expect("small files, used twice");
        let [_, _, without, with] = report.rows.as_slice() else {
            panic!("two rows for each size");
        };
        assert_eq!((without.n_reads_ahead, with.n_missed), (0, 0));
        assert!(with.n_reads_ahead > 0 && with.n_reads > 0, "{with:?}");
        // Whatever comes late, a request has a hit, waits, or has its batch read.
        for row in &report.rows {
            let n_first = (row.hit_ratio.mean * row.n_requests as f64).round() as u64;
            assert_eq!(
                n_first + row.n_reads + row.n_waited,
                row.n_requests,
                "{row:?}"
            );
        }
        assert_eq!(report.verdicts.len(), 2);
    }
}
