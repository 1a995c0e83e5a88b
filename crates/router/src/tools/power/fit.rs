//! `tachonym power fit`: the model of a server from samples.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tachonym_dispatch::power::fit::{Fitted, Hardware, read_samples, server};

use super::super::{output, text};

/// Fit the power model of a server to samples of a power meter or of `tachonym power measure`,
/// and print it as a file for power.model. The fits and how much each explains (R²) go to
/// standard error.
#[derive(Args)]
pub(super) struct Fit {
    /// The samples: a CSV file with the columns device, n_cores, frequency_hz, utilization,
    /// rate and watts.
    file: PathBuf,
    /// What the server is called.
    #[arg(long, default_value = "this server")]
    name: String,
    /// The product of its processors.
    #[arg(long, default_value = "unknown processor")]
    processor: String,
    /// Processors of the server; samples are of one.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    processors: u32,
    /// Energy of a packet that the network card forwards, in joules, where no row is of the
    /// device nic; measured: 1.26e-5 (Intel X540-T2), 2.3e-7 (Intel XL710).
    #[arg(long, value_name = "JOULES")]
    nic_j_per_packet: Option<f64>,
}

/// Runs it.
///
/// # Errors
/// If the file can't be read or its samples do not give a server.
pub(super) fn run(arguments: &Fit, is_json: bool) -> anyhow::Result<()> {
    let file = arguments.file.display();
    let csv = std::fs::read_to_string(&arguments.file);
    let csv = csv.with_context(|| format!("cannot read {file}"))?;
    let samples = read_samples(&csv).with_context(|| file.to_string())?;
    let hardware = Hardware {
        name: &arguments.name,
        processor: &arguments.processor,
        n_processors: arguments.processors,
        nic_j_per_packet: arguments.nic_j_per_packet,
    };
    let Fitted { server, fits } = server(&hardware, &samples).with_context(|| file.to_string())?;
    if is_json {
        let fits = fits.iter().map(|it| {
            json!({"part": it.part.to_string(), "points": it.n_points, "r_squared": it.r_squared})
        });
        let value = json!({"server": server, "fits": fits.collect::<Vec<_>>()});
        output::line(format_args!("{value:#}"))?;
        return Ok(());
    }
    let rows = fits.iter().map(|fit| {
        vec![
            fit.part.to_string(),
            format!("{} points", fit.n_points),
            format!("R² {:.4}", fit.r_squared),
        ]
    });
    output::note(text::columns(&rows.collect::<Vec<_>>()).trim_end());
    output::text(&toml::to_string(&server).context("cannot write TOML")?)?;
    Ok(())
}
