//! `tachonym power`: what the router takes in watts, modelled and measured, and what governs it.

mod fit;
mod measure;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tachonym_client::Controller;
use tachonym_dispatch::power::load::{Blocks, Store};
use tachonym_dispatch::power::model::{CONSERVATIVE_THETA, Load, Watts};
use tachonym_dispatch::power::servers::Server;
use tachonym_protocol::{PowerStatus, PowerWork, TapStatus};

use super::{Management, text};
use fit::Fit;
use measure::Measure;

use crate::config::server;

const EXAMPLES: &str = "\
Examples:
  tachonym power
  tachonym power --seconds 10 --model e5620
  tachonym power --json | jq .modelled.total_w
  tachonym power measure > samples.csv
  tachonym power fit samples.csv --nic-j-per-packet 2.3e-7 > server.toml";

/// Show what governs the router's power, and what it takes in watts: as a model computes them
/// from its load, and as the processor measures them.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    /// Time over which load and energy are taken.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
    seconds: Duration,
    /// The server whose watts are computed, in place of the router's power.model: e5620,
    /// e3-1220, 9520, or a file.
    #[arg(long, value_name = "SERVER|FILE")]
    model: Option<PathBuf>,
    /// The utilization from which a core's frequency rises in the model, from 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = CONSERVATIVE_THETA, value_parser = parse_share)]
    theta: f64,
    /// What to do; without it, the router's power is shown.
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Fit(Fit),
    Measure(Measure),
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.1..=3600.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("give 0.1 to 3600 seconds".to_owned()),
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err("give 0 to 1".to_owned()),
    }
}

/// Runs it.
///
/// # Errors
/// If the router does not answer, or the model can't be read.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Some(Command::Fit(fit)) => return fit::run(fit, arguments.management.json),
        Some(Command::Measure(arguments)) => return measure::run(arguments),
        None => {}
    }
    let management = &arguments.management;
    management.with(|controller| {
        let chosen = arguments.model.as_deref().map(server).transpose();
        let chosen = chosen.map_err(|it| anyhow::anyhow!("--model: {it}"))?;
        let before = Sample::take(controller)?;
        wait(controller, arguments.seconds)?;
        let after = Sample::take(controller)?;
        let server = match chosen {
            Some(server) => server,
            None => Server::from_toml(&after.status.model)?,
        };
        let report = Report::new(&before, &after, server, arguments.theta);
        management.print(&report.to_json(), || report.to_text())
    })
}

/// Waits, and has the router read its energy counters before they begin again.
fn wait(controller: &mut Controller<'_>, time: Duration) -> anyhow::Result<()> {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        std::thread::sleep(left.min(Duration::from_secs(60)));
        if left <= Duration::from_secs(60) {
            return Ok(());
        }
        controller.power()?;
    }
}

/// The router at one moment.
struct Sample {
    status: PowerStatus,
    /// Bytes received and sent, by FaceId.
    n_bytes: HashMap<u64, u64>,
}

impl Sample {
    fn take(controller: &mut Controller<'_>) -> anyhow::Result<Self> {
        let faces = controller.faces()?;
        let bytes = faces
            .iter()
            .map(|it| (it.face_id, it.n_in_bytes + it.n_out_bytes));
        Ok(Self {
            n_bytes: bytes.collect(),
            status: controller.power()?,
        })
    }
}

/// What is shown.
struct Report {
    status: PowerStatus,
    elapsed_s: f64,
    server: Server,
    load: Load,
    /// Whether the cycles are those of the model's frequency, as the machine's is unknown.
    is_frequency_assumed: bool,
    store: Store,
    /// `None` if the server can't carry the load.
    watts: Option<Watts>,
    /// Energy counters in watts.
    measured: Vec<(String, f64)>,
}

impl Report {
    fn new(before: &Sample, after: &Sample, server: Server, theta: f64) -> Self {
        let (old, new) = (&before.status.work, &after.status.work);
        let since = |of: fn(&PowerWork) -> u64| of(new).saturating_sub(of(old)) as f64;
        let elapsed_s = (since(|it| it.at_ns) / 1e9).max(1e-9);
        let hertz = new.max_khz.map(|khz| 1e3 * khz as f64);
        let top_hz = hertz.unwrap_or_else(|| server.cpu.top().frequency_hz);
        // Faces that have closed meanwhile are left out.
        let of_faces = after.n_bytes.iter().map(|(face, &n_bytes)| {
            let before = before.n_bytes.get(face).copied().unwrap_or(0);
            n_bytes.saturating_sub(before)
        });
        let n_bytes: u64 = of_faces.sum();
        let load = Load {
            cycles_hz: since(|it| it.cycles_ns) / 1e9 / elapsed_s * top_hz,
            memory_bytes_per_s: n_bytes as f64 / elapsed_s,
            // What goes out again was forwarded once (equation 6.13).
            packets_per_s: since(|it| it.n_out_pkts) / elapsed_s,
        };
        let share = |part: f64, whole: f64| (part / whole.max(1.0)).min(1.0);
        let hits = share(since(|it| it.n_hits), since(|it| it.n_interests));
        let insertions = share(since(|it| it.n_inserts), since(|it| it.n_data));
        let admits_all = since(|it| it.n_data) < 1.0 || insertions > 0.99;
        let store = match admits_all {
            true => Store::AdmitsAll { hits },
            false => Store::Admits { hits, insertions },
        };
        let watts = server.power(load, theta);
        let counters = after.status.energy.iter();
        let measured = counters.filter_map(|counter| {
            let mut known = before.status.energy.iter();
            let before = known.find(|it| it.name == counter.name)?;
            let used_uj = counter.used_uj.saturating_sub(before.used_uj) as f64;
            Some((counter.name.clone(), used_uj / 1e6 / elapsed_s))
        });
        Self {
            elapsed_s,
            load,
            is_frequency_assumed: hertz.is_none(),
            store,
            watts,
            measured: measured.collect(),
            server,
            status: after.status.clone(),
        }
    }

    /// Watts of the processors by block, B1 first.
    fn blocks_w(&self) -> Vec<f64> {
        let cycles = match self.store {
            Store::AdmitsAll { .. } => Blocks::FIFO_CYCLES,
            Store::Admits { .. } => Blocks::FILTER_CYCLES,
        };
        let cpu_w = self.watts.map_or(0.0, |it| it.cpu_w);
        self.store.watts_by_block(&cycles, cpu_w).to_vec()
    }

    fn to_json(&self) -> Value {
        let levers = self.status.levers.iter();
        let levers =
            levers.map(|it| json!({"name": it.name, "used": it.is_used, "detail": it.detail}));
        let workers = self.status.workers.iter().map(|it| {
            json!({
                "worker": it.worker,
                "sleep": sleep(it.sleep),
                "p_state": it.p_state,
                "khz": it.khz,
            })
        });
        let (hits, insertions) = (self.store.hits(), insertions(self.store));
        let measured = self.measured.iter();
        let measured = measured.map(|(name, watts)| json!({"counter": name, "watts": watts}));
        json!({
            "governor": {
                "name": self.status.governor,
                "active_workers": self.status.n_active,
                "levers": levers.collect::<Vec<_>>(),
                "workers": workers.collect::<Vec<_>>(),
                "tap": self.status.tap.as_ref().map(tap_json),
            },
            "seconds": self.elapsed_s,
            "load": {
                "cycles_per_s": self.load.cycles_hz,
                "is_frequency_assumed": self.is_frequency_assumed,
                "memory_bytes_per_s": self.load.memory_bytes_per_s,
                "packets_per_s": self.load.packets_per_s,
                "hits": hits,
                "insertions": insertions,
            },
            "modelled": {
                "server": self.server.name,
                "processor": self.server.processor,
                "is_overloaded": self.watts.is_none(),
                "cpu_w": self.watts.map(|it| it.cpu_w),
                "memory_w": self.watts.map(|it| it.memory_w),
                "nic_w": self.watts.map(|it| it.nic_w),
                "chassis_w": self.watts.map(|it| it.chassis_w),
                "total_w": self.watts.map(Watts::total_w),
                "blocks_w": self.blocks_w(),
            },
            "measured": measured.collect::<Vec<_>>(),
        })
    }

    fn to_text(&self) -> String {
        let mut out = text::columns(&self.governor_rows());
        out.push('\n');
        out.push_str(&text::columns(&self.load_rows()));
        out.push('\n');
        out.push_str(&format!(
            "MODELLED: what this load would take of {} ({})\n",
            self.server.name, self.server.processor
        ));
        let watts = |value: f64| format!("{value:.3} W");
        match self.watts {
            None => out.push_str("  this server can't carry the load: choose another --model\n"),
            Some(it) => {
                let devices = [
                    ("  CPU", it.cpu_w),
                    ("  memory", it.memory_w),
                    ("  network cards", it.nic_w),
                    ("  chassis", it.chassis_w),
                    ("  sum", it.total_w()),
                ];
                let rows = devices.map(|(device, value)| vec![device.to_owned(), watts(value)]);
                out.push_str(&text::columns(&rows));
                out.push_str("  of the CPU, by the published cycles of each block:\n");
                let blocks = self.blocks_w().into_iter().zip(Blocks::NAMES).enumerate();
                let blocks = blocks.filter(|(_, (value, _))| *value > 0.0);
                let rows = blocks.map(|(idx, (value, what))| {
                    vec![format!("    B{}", idx + 1), watts(value), what.to_owned()]
                });
                out.push_str(&text::columns(&rows.collect::<Vec<_>>()));
            }
        }
        out.push_str("\nMEASURED by the processor's counters, of the whole machine\n");
        if self.measured.is_empty() {
            out.push_str("  nothing: see rapl above\n");
        }
        let rows = self.measured.iter();
        let rows = rows.map(|(name, value)| vec![format!("  {name}"), watts(*value)]);
        out.push_str(&text::columns(&rows.collect::<Vec<_>>()));
        out
    }

    fn governor_rows(&self) -> Vec<Vec<String>> {
        let row = |label: &str, value: String| vec![label.to_owned(), value];
        let mut rows = vec![
            row("governor", self.status.governor.clone()),
            row("active workers", self.status.n_active.to_string()),
        ];
        if let Some(tap) = &self.status.tap {
            let per_s = tap.forecast_millipkts as f64 * 1e6 / tap.interval_ns.max(1) as f64;
            rows.push(row("  forecast", format!("{per_s:.0} packets/s")));
            let permille = tap.traffic_factor_permille;
            rows.push(row(
                "  traffic factor",
                format!("{:.3}", permille as f64 / 1e3),
            ));
            if let Some(packet_ns) = tap.packet_ns {
                rows.push(row("  a packet takes", format!("{packet_ns} ns")));
            }
            let pkts = |milli: u64| format!("{:.1}", milli as f64 / 1e3);
            let queue = format!(
                "{} packets (slower below {}, faster from {})",
                pkts(tap.queue_millipkts),
                pkts(tap.low_millipkts),
                pkts(tap.high_millipkts)
            );
            rows.push(row("  filtered queue", queue));
        }
        for worker in &self.status.workers {
            let khz = worker.khz.map(|khz| format!(", {} MHz", khz / 1000));
            let value = format!(
                "{}, P{}{}",
                sleep(worker.sleep),
                worker.p_state,
                khz.unwrap_or_default()
            );
            rows.push(row(&format!("  worker {}", worker.worker), value));
        }
        for lever in &self.status.levers {
            let used = if lever.is_used {
                "in use"
            } else {
                "not in use"
            };
            rows.push(row(&lever.name, format!("{used}: {}", lever.detail)));
        }
        rows
    }

    fn load_rows(&self) -> Vec<Vec<String>> {
        let row = |label: &str, value: String| vec![label.to_owned(), value];
        let assumed = match self.is_frequency_assumed {
            true => ", at the model's frequency: this machine's is unknown",
            false => "",
        };
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        vec![
            row("load over", format!("{:.1} s", self.elapsed_s)),
            row(
                "  cycles",
                format!("{:.1} million/s{assumed}", self.load.cycles_hz / 1e6),
            ),
            row(
                "  packet bytes",
                format!(
                    "{}/s in and out",
                    text::bytes(self.load.memory_bytes_per_s as u64)
                ),
            ),
            row(
                "  packets",
                format!("{:.0}/s sent", self.load.packets_per_s),
            ),
            row("  hits", percent(self.store.hits())),
            row("  insertions", percent(insertions(self.store))),
        ]
    }
}

fn insertions(store: Store) -> f64 {
    match store {
        Store::AdmitsAll { .. } => 1.0,
        Store::Admits { insertions, .. } => insertions,
    }
}

fn sleep(code: u64) -> &'static str {
    match code {
        0 => "active",
        1 => "light",
        _ => "deep",
    }
}

fn tap_json(tap: &TapStatus) -> Value {
    let pkts = |milli: u64| milli as f64 / 1e3;
    json!({
        "forecast_pkts": pkts(tap.forecast_millipkts),
        "interval_ns": tap.interval_ns,
        "traffic_factor": pkts(tap.traffic_factor_permille),
        "packet_ns": tap.packet_ns,
        "queue_pkts": pkts(tap.queue_millipkts),
        "low_pkts": pkts(tap.low_millipkts),
        "high_pkts": pkts(tap.high_millipkts),
    })
}
