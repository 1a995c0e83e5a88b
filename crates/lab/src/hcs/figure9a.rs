//! Figure 9 (a) of Mansilha et al. 2017: what it would gain to do everything of a miss at
//! once, by equations 7 to 11.

use std::fmt;

use clap::Args;
use serde::Serialize;

use super::bed::{OutputArgs, Scale, a_rate, log_chart};
use super::catalogue::{Bytes, Catalogue};
use super::figure5;
use super::model::{self, Delays};
use super::published;
use super::workload::{Kind, Settings};

/// Computes the gain of parallel over serial lookups, with the published times and with those
/// fitted here (figure 9 (a))
#[derive(Args, Clone, Debug)]
pub(super) struct Figure9AArgs {
    #[command(flatten)]
    scale: Scale,
    /// |L1| of the equations; not reduced
    #[arg(long, default_value = "1GB", value_name = "SIZE")]
    l1: Bytes,
    /// |L2|, which is the catalogue, of the equations; not reduced
    #[arg(long, default_value = "10GB", value_name = "SIZE")]
    l2: Bytes,
    /// Rates of the second level, in Gbit/s
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "GBPS",
        default_value = "1,2,4,8,16,32,64",
        value_parser = a_rate
    )]
    rates: Vec<f64>,
    /// Time of a lookup, in nanoseconds [default: fitted as in figure-5, like --insert-ns]
    #[arg(long, value_name = "NS", requires = "insert_ns")]
    lookup_ns: Option<f64>,
    /// Time to insert a batch, in nanoseconds
    #[arg(long, value_name = "NS", requires = "lookup_ns")]
    insert_ns: Option<f64>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    whose: &'static str,
    rate_gbps: f64,
    lookup_ns: f64,
    insert_ns: f64,
    read_ns: f64,
    serial_gbps: f64,
    parallel_gbps: f64,
    /// By how much throughput grows.
    gain: f64,
    /// By how much a miss is shorter.
    miss_saved: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    l1_bytes: u64,
    l2_bytes: u64,
    hit_ratio: f64,
    rows: Vec<Row>,
    /// With three equal times: what a miss saves, and what throughput gains with this hit
    /// ratio and without any hit.
    equal_miss_saved: f64,
    equal_gain: f64,
    equal_gain_of_misses: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Figure 9 (a), computed and not measured: Real, |L1| = {}, |L2| = |C| = {}, hits in \
             L1 by equation 4: {:.4}\n\n| times | L2, Gbit/s | lookup, µs | insertion, µs | read, \
             µs | serial, Gbit/s | parallel, Gbit/s | gain | a miss is shorter by |\n\
             |---|---|---|---|---|---|---|---|---|",
            Bytes(self.l1_bytes),
            Bytes(self.l2_bytes),
            self.hit_ratio
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {:.3} | {:.2} | {:.1} | {:.2} | {:.2} | {:.1} % | {:.1} % |",
                row.whose,
                row.rate_gbps,
                row.lookup_ns / 1e3,
                row.insert_ns / 1e3,
                row.read_ns / 1e3,
                row.serial_gbps,
                row.parallel_gbps,
                row.gain * 100.0,
                row.miss_saved * 100.0
            )?;
        }
        writeln!(
            f,
            "\nPublished: gains of about {:.0} % with its times, and of {:.3} at most, where all \
             three times are equal. By equations 10 and 11 that is what a miss is shorter by \
             ({:.3}); throughput gains {:.0} % where everything misses, and {:.1} % with the hits \
             above.",
            published::PARALLEL_GAIN * 100.0,
            published::PARALLEL_GAIN_BY_THEORY,
            self.equal_miss_saved,
            self.equal_gain_of_misses * 100.0,
            self.equal_gain * 100.0
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If nothing can be fitted, or the drawing cannot be written.
pub(super) fn run(args: &Figure9AArgs) -> anyhow::Result<()> {
    let own = match args.lookup_ns.zip(args.insert_ns) {
        Some(own) => Some(own),
        None => {
            let fitted = figure5::fitted_real(args.scale)?;
            fitted.map(|fitted| (fitted.lookup_ns, fitted.insert_ns))
        }
    };
    let report = take(args, own);
    args.output.finish(&report, || {
        let of = |whose: &'static str, how: &str, value: fn(&Row) -> f64| {
            let rows = report.rows.iter().filter(|row| row.whose == whose);
            let points = rows.map(|row| (row.rate_gbps, value(row)));
            (format!("{whose}, {how}"), points.collect())
        };
        let chart = |whose: &'static str| {
            log_chart(
                format!("Figure 9 (a), times {whose}"),
                "rate of L2, Gbit/s",
                "Gbit/s",
                vec![
                    of(whose, "serial", |row| row.serial_gbps),
                    of(whose, "parallel", |row| row.parallel_gbps),
                ],
            )
        };
        vec![chart(PUBLISHED), chart(HERE)]
    })
}

const PUBLISHED: &str = "published";
const HERE: &str = "here";

fn take(args: &Figure9AArgs, own: Option<(f64, f64)>) -> Report {
    let catalogue = Catalogue::of(args.l2);
    let settings = Settings::published(catalogue);
    let batch_chunks = args.scale.batch_chunks();
    let hit_ratio = model::hit_ratio(Kind::Real, &settings, args.l1.chunks(), batch_chunks);
    let table = published::table_4(Kind::Real);
    let theirs = (table.lookup_us.0 * 1e3, table.insert_us.0 * 1e3);
    let mut rows = Vec::new();
    for (whose, times) in [(PUBLISHED, Some(theirs)), (HERE, own)] {
        for &rate_gbps in &args.rates {
            let Some((lookup_ns, insert_ns)) = times else {
                continue;
            };
            let delays = Delays {
                lookup_ns,
                insert_ns,
                read_ns: model::read_ns(batch_chunks, rate_gbps),
            };
            rows.push(row_of(whose, rate_gbps, &delays, 1.0 - hit_ratio));
        }
    }
    let equal = Delays {
        lookup_ns: 1.0,
        insert_ns: 1.0,
        read_ns: 1.0,
    };
    let equal_row = row_of("equal", 0.0, &equal, 1.0 - hit_ratio);
    Report {
        l1_bytes: args.l1.0,
        l2_bytes: catalogue.size().0,
        hit_ratio,
        rows,
        equal_miss_saved: equal_row.miss_saved,
        equal_gain: equal_row.gain,
        equal_gain_of_misses: row_of("equal", 0.0, &equal, 1.0).gain,
    }
}

fn row_of(whose: &'static str, rate_gbps: f64, delays: &Delays, miss_ratio: f64) -> Row {
    let serial_gbps = delays.serial_gbps(miss_ratio);
    let parallel_gbps = delays.parallel_gbps(miss_ratio);
    Row {
        whose,
        rate_gbps,
        lookup_ns: delays.lookup_ns,
        insert_ns: delays.insert_ns,
        read_ns: delays.read_ns,
        serial_gbps,
        parallel_gbps,
        gain: parallel_gbps / serial_gbps - 1.0,
        miss_saved: 1.0 - delays.parallel_miss_ns() / delays.serial_miss_ns(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Figure9AArgs,
    }

    #[test]
    fn parallel_misses_save_two_thirds_at_most() {
        let args = Cli::parse_from(["x"]).args;
        let report = take(&args, Some((200.0, 9_000.0)));
        assert_eq!(report.rows.len(), 14);
        for row in &report.rows {
            assert!(row.parallel_gbps > row.serial_gbps, "{row:?}");
            assert!(
                row.miss_saved > 0.0 && row.miss_saved < 2.0 / 3.0,
                "{row:?}"
            );
        }
        assert!((report.equal_miss_saved - 2.0 / 3.0).abs() < 1e-12);
        assert!((report.equal_gain_of_misses - 2.0).abs() < 1e-12);
        // 4.8 % misses of three units instead of one, by what was one for each.
        let gain = 2.0 * (1.0 - report.hit_ratio);
        assert!(
            (report.equal_gain - gain).abs() < 1e-12,
            "{}",
            report.equal_gain
        );
    }
}
