//! Experiments of Iqbal 2013, chapter 6: cores that sleep and change their frequency.
//!
//! Published are, as text, watts and active cores of each application; not what a packet
//! takes, watts of a core, the number of cores or the traffic. Watts of a core are inferred:
//! Table 6.2 by Table 6.3, under TAP. Table 6.3 lacks WFQ: its cores are taken to have the mean
//! watts of the others. The traffic is drawn by a rule of this project.

mod choices;
mod dvfs;
mod forecast;
mod laps;
mod policies;
mod queue;

use anyhow::{Context as _, ensure};
use tachonym_bench::{Context, Experiment, Param, ParamKind};
use tachonym_dispatch::power::des::DesConstants;
use tachonym_dispatch::power::governors::{Governor, GovernorKind};
use tachonym_dispatch::power::tap::TapConfig;
use tachonym_sim::power::{PowerConfig, PowerOutcome, TwoDays, arrivals_of, counts, run};

/// All of them, in the order of the document.
pub(super) const EXPERIMENTS: &[&[Experiment]] = &[
    policies::EXPERIMENTS,
    choices::EXPERIMENTS,
    dvfs::EXPERIMENTS,
    forecast::EXPERIMENTS,
    queue::EXPERIMENTS,
    laps::EXPERIMENTS,
];

/// Cores: 31.21 are active on average in Table 6.3.
const N_CORES: usize = 32;
/// Where Tables 6.2 and 6.3 have TAP.
const TAP: usize = 3;
/// Loss that counts as equal, in points of a percent.
const EQUAL_LOSS: f64 = 0.1;
/// Packets per second on average; at most about 200,000 come, as published.
const MEAN_PPS: f64 = 160_000.0;

/// An application of Tables 6.2 and 6.3.
#[derive(Clone, Copy, Debug)]
struct Application {
    name: &'static str,
    /// Watts as published: Base, Greedy, IdleT, TAP, of the first trace.
    power_w: [f64; 4],
    /// Active cores as published, of the same, if they are.
    n_active: Option<[f64; 4]>,
}

const fn application(name: &'static str, power_w: [f64; 4], n_active: [f64; 4]) -> Application {
    Application {
        name,
        power_w,
        n_active: Some(n_active),
    }
}

const APPLICATIONS: [Application; 7] = [
    application("FRAG", [7.82, 7.29, 5.93, 3.53], [3.10, 2.81, 2.21, 1.30]),
    application("IPV4T", [6.73, 7.79, 6.11, 4.10], [3.34, 3.69, 3.10, 1.42]),
    application(
        "IPV4R",
        [29.80, 27.80, 28.1, 25.23],
        [7.70, 7.90, 7.62, 5.50],
    ),
    application(
        "IPSEC",
        [63.20, 60.69, 59.80, 56.59],
        [29.10, 30.10, 29.00, 24.30],
    ),
    application(
        "MPLS",
        [45.03, 46.6, 45.2, 40.8],
        [13.81, 15.72, 13.81, 10.31],
    ),
    application(
        "SSLD",
        [101.6, 95.4, 96.1, 90.1],
        [30.53, 31.21, 31.11, 26.11],
    ),
    Application {
        name: "WFQ",
        power_w: [15.94, 16.73, 16.02, 12.1],
        n_active: None,
    },
];

impl Application {
    fn named(name: &str) -> anyhow::Result<Self> {
        let found = APPLICATIONS.into_iter().find(|it| it.name == name);
        found.with_context(|| format!("no application is called {name}"))
    }

    /// Watts of an active core: inferred.
    fn core_w(self) -> f64 {
        let of = |it: Self| it.n_active.map(|n_active| it.power_w[TAP] / n_active[TAP]);
        of(self).unwrap_or_else(|| {
            let known: Vec<_> = APPLICATIONS.into_iter().filter_map(of).collect();
            known.iter().sum::<f64>() / known.len() as f64
        })
    }

    /// What a packet takes, such that about the published number of cores is active: that is
    /// rounded up, by half a core on average.
    fn packet_ns(self) -> u64 {
        let n_active = self.power_w[TAP] / self.core_w();
        ((n_active - 0.5) / MEAN_PPS * 1e9) as u64
    }

    fn config(self) -> PowerConfig {
        PowerConfig::published(N_CORES, self.core_w(), self.packet_ns())
    }
}

/// Virtual time.
const SECONDS: Param = Param::new(
    "seconds",
    "virtual time that two days are drawn into, s",
    ParamKind::Number,
    ["0.1", "1", "10"],
);
/// A file in place of drawn traffic.
const TRACE: Param = Param::new(
    "trace",
    "file with a rate in packets per second a line, which divide the time; empty: drawn",
    ParamKind::Text,
    [""; 3],
);

/// Packets, and what a forecast learned of others of the kind.
struct Traffic {
    arrivals_ns: Vec<u64>,
    end_ns: u64,
    trained: DesConstants,
}

impl Traffic {
    /// The `nth` trace of an experiment with [`SECONDS`], [`TRACE`] and a seed.
    fn of(context: &Context, nth: u64) -> anyhow::Result<Self> {
        let seconds = context.number("seconds");
        ensure!(seconds > 0.0, "a run takes time");
        let drawn = TwoDays {
            mean_pps: MEAN_PPS,
            swing: 0.15,
            noise: 0.03,
            seconds,
        };
        let seed = context.seed() + 2 * nth;
        let path = context.text("trace");
        let (arrivals_ns, others_ns) = if path.is_empty() {
            (drawn.arrivals_ns(seed), drawn.arrivals_ns(seed + 1))
        } else {
            let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
            let rates = text.lines().map(|line| line.trim().parse::<f64>());
            let rates = rates.collect::<Result<Vec<_>, _>>();
            let rates = rates.with_context(|| format!("{path} has a number in each line"))?;
            ensure!(!rates.is_empty(), "{path} is empty");
            let drawn = |seed| arrivals_of(&rates, seconds, seed);
            (drawn(seed), drawn(seed + 1))
        };
        let end_ns = (seconds * 1e9) as u64;
        let trained = DesConstants::fit(&counts(&others_ns, 500_000, end_ns));
        Ok(Self {
            arrivals_ns,
            end_ns,
            trained,
        })
    }

    /// Packets at a constant rate.
    fn constant(rate_pps: f64, seconds: f64, seed: u64) -> Self {
        Self {
            arrivals_ns: arrivals_of(&[rate_pps], seconds, seed),
            end_ns: (seconds * 1e9) as u64,
            trained: DesConstants::default(),
        }
    }

    /// TAP as published, with what was learned.
    fn tap(&self) -> TapConfig {
        TapConfig {
            forecast: self.trained,
            ..TapConfig::published(N_CORES)
        }
    }

    fn run(&self, config: &PowerConfig, kind: GovernorKind, tap: TapConfig) -> PowerOutcome {
        let mut governor = Governor::new(kind, tap);
        run(config, &mut governor, &self.arrivals_ns, self.end_ns)
    }
}

/// By how many percent `value` lies below `reference`.
fn saved_pct(value: f64, reference: f64) -> f64 {
    100.0 * (1.0 - value / reference)
}
