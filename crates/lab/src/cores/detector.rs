//! How well aggressive flows are told: Figures 4.6 to 4.8 of Iqbal 2013.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tachonym_dispatch::baselines::ExactTop;
use tachonym_dispatch::{Detector, DetectorConfig, ServiceId};
use tachonym_sim::traffic::{Trace, key_of};

use super::bed::{self, Common, FileArgs};
use super::published;
use crate::cache::plot::Chart;
use crate::output;

/// Measures how well aggressive flows are detected (Figures 4.6 to 4.8)
#[derive(Args, Clone, Debug)]
pub(super) struct DetectorArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    file: FileArgs,
    /// Packets of each trace
    #[arg(long, default_value_t = 3_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..))]
    packets: u64,
    /// Flows tracked
    #[arg(long, default_value_t = 16, value_name = "N")]
    tracked: usize,
}

const TRACES: [&str; 5] = ["caida 1", "caida 2", "auckland 1", "auckland 2", "names"];
const ANNEXES: [usize; 6] = [64, 128, 256, 512, 1_024, 2_048];
const WINDOWS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
const SAMPLES: [u32; 5] = [1, 10, 100, 1_000, 10_000];

#[derive(Serialize)]
struct Row {
    trace: String,
    figure: &'static str,
    /// Size of the annex cache, packets of a window, or packets by sample.
    value: u64,
    /// Names held to be aggressive that are not among the top, by all that are held so.
    false_positives: f64,
    /// The same, against a top that is as much larger as 20 is than 16.
    of_a_quarter_more: Option<f64>,
    published_false_positives: Option<f64>,
}

#[derive(Serialize)]
struct Report {
    n_packets: u64,
    n_tracked: usize,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} packets of each trace, {} flows tracked; false positives by flows in the AFC\n\n\
             | figure | trace | value | false positives | within a quarter more | published |\n\
             |---|---|---|---|---|---|",
            self.n_packets, self.n_tracked
        )?;
        for row in &self.rows {
            let or_nothing =
                |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.4}"));
            writeln!(
                f,
                "| {} | {} | {} | {:.4} | {} | {} |",
                row.figure,
                row.trace,
                row.value,
                row.false_positives,
                or_nothing(row.of_a_quarter_more),
                or_nothing(row.published_false_positives)
            )?;
        }
        writeln!(
            f,
            "\n{}. Figure 4.6: by the size of the annex cache, at the end. Figure 4.7: mean over \
             the ends of windows of the given length, in packets, against the top so far; published, below 0.1. \
             Figure 4.8: with one packet sampled in the given number, at the end; published, 1 in 1000 is \
             no worse than all.",
            published::TRACES
        )
    }
}

/// How many of the aggressive names are not among the top, by all of them.
fn false_positives(detector: &Detector, top: &ExactTop) -> f64 {
    let n = detector.aggressive().count();
    let n_false = detector
        .aggressive()
        .filter(|it| !top.contains(it.key))
        .count();
    n_false as f64 / n.max(1) as f64
}

fn measure(args: &DetectorArgs, name: &str, trace: &mut Trace) -> anyhow::Result<Vec<Row>> {
    let sound = DetectorConfig {
        n_aggressive: args.tracked,
        ..DetectorConfig::default()
    };
    let of_sizes = ANNEXES.map(|n_annex| DetectorConfig { n_annex, ..sound });
    let of_samples = SAMPLES.map(|sample_every| DetectorConfig {
        sample_every,
        ..sound
    });
    let made = |configs: &[DetectorConfig]| -> Result<Vec<_>, _> {
        configs
            .iter()
            .map(|&config| Detector::new(config))
            .collect()
    };
    let mut by_size = made(&of_sizes)?;
    let mut by_sample = made(&of_samples)?;
    let mut windowed = Detector::new(sound)?;
    let mut top = ExactTop::new(args.tracked);
    let mut wider = ExactTop::new(args.tracked * 5 / 4);
    let mut sums = [(0.0, 0_u32); WINDOWS.len()];
    for n in 1..=args.packets {
        let key = key_of(trace.next_flow().0);
        top.handle_packet(key);
        wider.handle_packet(key);
        let all = by_size.iter_mut().chain(&mut by_sample);
        for detector in all.chain([&mut windowed]) {
            detector.handle_packet(ServiceId(0), key);
        }
        for (window, sum) in WINDOWS.iter().zip(&mut sums) {
            if n.is_multiple_of(*window) {
                sum.0 += false_positives(&windowed, &top);
                sum.1 += 1;
            }
        }
    }
    let row = |figure, value, false_positives| Row {
        trace: name.to_owned(),
        figure,
        value,
        false_positives,
        of_a_quarter_more: None,
        published_false_positives: None,
    };
    let mut rows = Vec::new();
    for (detector, &n_annex) in by_size.iter().zip(&ANNEXES) {
        let published = published::false_positives(name).filter(|_| n_annex == 512);
        rows.push(Row {
            of_a_quarter_more: Some(false_positives(detector, &wider)),
            published_false_positives: published.map(|n| f64::from(n) / 16.0),
            ..row("4.6", n_annex as u64, false_positives(detector, &top))
        });
    }
    for (&window, (sum, n)) in WINDOWS.iter().zip(sums) {
        if n > 0 {
            rows.push(row("4.7", window, sum / f64::from(n)));
        }
    }
    for (detector, &sample_every) in by_sample.iter().zip(&SAMPLES) {
        let value = u64::from(sample_every);
        rows.push(row("4.8", value, false_positives(detector, &top)));
    }
    Ok(rows)
}

/// Runs the command.
///
/// # Errors
/// If a trace cannot be read, a size is out of its range, or the drawing cannot be written.
pub(super) fn run(args: &DetectorArgs) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for (name, mut trace) in args.file.traces(&TRACES, args.common.seed)? {
        rows.extend(measure(args, &name, &mut trace)?);
    }
    let report = Report {
        n_packets: args.packets,
        n_tracked: args.tracked,
        rows,
    };
    let charts = [
        ("4.6", "names in the annex cache, log2"),
        ("4.7", "packets of a window, log2"),
        ("4.8", "packets by sample, log2"),
    ]
    .map(|(figure, x)| {
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for row in report.rows.iter().filter(|row| row.figure == figure) {
            let point = ((row.value as f64).log2(), row.false_positives);
            match lines.last_mut() {
                Some((trace, points)) if *trace == row.trace => points.push(point),
                _ => lines.push((row.trace.clone(), vec![point])),
            }
        }
        Chart::of_lines(format!("Figure {figure}"), x, "false positives", lines)
    });
    bed::draw(&args.common, &charts)?;
    output::print(&report, args.common.json)
}
