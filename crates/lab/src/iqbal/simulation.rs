//! Schedulers of the comparison, and a run of one of them.

use anyhow::ensure;
use tachonym_bench::{Context, Param, ParamKind};
use tachonym_dispatch::adaptive::{AdaptiveConfig, AdaptiveHash};
use tachonym_dispatch::baselines::{
    Fcfs, FlowShift, Grain, RoundRobin, Scheduler, StaticHash, TopNames,
};
use tachonym_dispatch::restoration::TagScope;
use tachonym_dispatch::{DetectorConfig, Laps, LapsConfig, MapKind, MoveRule, OrderConfig};
use tachonym_sim::cores::{Cores, CoresConfig, Counts};
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::ServiceModel;
use tachonym_sim::traffic::{Trace, Traffic, mean_packet_bytes};

/// The document.
pub(super) const IQBAL: &str = "Iqbal 2013";

/// Buckets of the map tables of schedulers that move bundles, as a power of two.
const BUCKETS_LOG2: u8 = 10;

/// Queue lengths that count as overload.
pub(super) const THRESHOLD: Param = Param::count(
    "threshold",
    "packets in a queue of 100 at which a core counts as overloaded; the thesis names no number",
    ["80"; 3],
);

/// Traffic of one service.
pub(super) const LOAD: Param = Param::new(
    "load",
    "traffic by the capacity of all cores without penalties; published: slightly more than 1",
    ParamKind::Number,
    ["1.02"; 3],
);

/// Seconds of virtual time, of which the first tenth is not counted.
pub(super) const fn seconds(defaults: [&'static str; 3]) -> Param {
    let help = "virtual time, s; the first tenth is not counted";
    Param::new("seconds", help, ParamKind::Number, defaults)
}

/// A scheduler of the comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// LAPS.
    Laps(LapsKind),
    /// Any flow that meets an overloaded core moves.
    Dlb,
    /// Any bundle of flows that meets an overloaded core moves.
    Afs,
    /// Each packet to the shortest queue.
    Fcfs,
    /// The same, with order restored where packets leave.
    Restored(TagScope),
    /// Batches of packets to one core after another, with order restored.
    Batches,
    /// Nothing moves.
    Static,
    /// Weights of cores follow their loads; with or without migration of aggressive flows.
    Adaptive { migrates: bool },
    /// LAPS with exact counts of all flows.
    Oracle { n_tracked: usize },
}

/// A variant of LAPS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LapsKind {
    /// Flows tracked.
    pub(super) n_tracked: usize,
    /// Linear hashing in place of a table of 1024 buckets.
    pub(super) is_linear: bool,
    /// Whatever aggressive flow arrives moves, and packets of what moves are not held.
    pub(super) is_published: bool,
}

impl LapsKind {
    /// As the router runs it by default.
    pub(super) const fn router(n_tracked: usize) -> Self {
        Self {
            n_tracked,
            is_linear: false,
            is_published: false,
        }
    }

    /// As the thesis has it.
    pub(super) const fn published(n_tracked: usize) -> Self {
        Self {
            n_tracked,
            is_linear: true,
            is_published: true,
        }
    }

    /// The variant of an experiment with the parameters [`MAP`] and [`RULE`].
    pub(super) fn of(context: &Context) -> Self {
        Self {
            n_tracked: 16,
            is_linear: context.text("map") == "linear",
            is_published: context.text("rule") == "published",
        }
    }

    /// For these cores and services, with this threshold.
    pub(super) fn laps(
        self,
        n_cores: usize,
        services: &[ServiceModel],
        high_threshold: u32,
    ) -> anyhow::Result<Laps> {
        let rates = services.iter().map(|it| it.rate_pps(mean_packet_bytes()));
        self.laps_of_rates(n_cores, rates.collect(), high_threshold)
    }

    /// For these cores, which do `worker_rates_pps` of each service.
    pub(super) fn laps_of_rates(
        self,
        n_cores: usize,
        worker_rates_pps: Vec<f64>,
        high_threshold: u32,
    ) -> anyhow::Result<Laps> {
        Ok(Laps::new(&LapsConfig {
            worker_rates_pps,
            detector: DetectorConfig {
                n_aggressive: self.n_tracked,
                ..DetectorConfig::default()
            },
            map: match self.is_linear {
                true => MapKind::Linear,
                false => MapKind::Buckets {
                    n_buckets_log2: BUCKETS_LOG2,
                },
            },
            rule: match self.is_published {
                true => MoveRule::Published,
                false => MoveRule::EVENS,
            },
            high_threshold,
            ..LapsConfig::new(n_cores)
        })?)
    }
}

/// How names are divided.
pub(super) const MAP: Param = Param::choice(
    "map",
    "how LAPS divides flows: by a table of 1024 buckets, or by linear hashing as published",
    &["buckets", "linear"],
    "buckets",
);
/// What moves.
pub(super) const RULE: Param = Param::choice(
    "rule",
    "what LAPS moves: the flow that evens loads out, in order; published: the one that arrives",
    &["evens", "published"],
    "evens",
);

impl Kind {
    pub(super) fn label(self) -> String {
        match self {
            Self::Laps(kind) => {
                let what = match (kind.is_published, kind.is_linear) {
                    (false, false) => "LAPS",
                    (false, true) => "LAPS, linear",
                    (true, true) => "LAPS as published",
                    (true, false) => "LAPS as published, buckets",
                };
                match kind.n_tracked {
                    16 => what.to_owned(),
                    n_tracked => format!("{what}, {n_tracked} tracked"),
                }
            }
            Self::Dlb => "DLB".to_owned(),
            Self::Afs => "AFS".to_owned(),
            Self::Fcfs => "FCFS".to_owned(),
            Self::Restored(TagScope::PerName) => "FCFS, order by flow".to_owned(),
            Self::Restored(TagScope::Global) => "FCFS, global order".to_owned(),
            Self::Batches => "batches of 8, global order".to_owned(),
            Self::Static => "no migration".to_owned(),
            Self::Adaptive { migrates: false } => "adaptive hashing".to_owned(),
            Self::Adaptive { migrates: true } => "adaptive hashing and migration".to_owned(),
            Self::Oracle { n_tracked } => format!("exact counts, {n_tracked} tracked"),
        }
    }

    /// The scheduler for these cores and services, with this threshold.
    pub(super) fn scheduler(
        self,
        n_cores: usize,
        services: &[ServiceModel],
        threshold: u32,
    ) -> anyhow::Result<Box<dyn Scheduler>> {
        let shift = |grain| FlowShift::new(n_cores, BUCKETS_LOG2, grain, threshold);
        Ok(match self {
            Self::Laps(kind) => Box::new(kind.laps(n_cores, services, threshold)?),
            Self::Dlb => Box::new(shift(Grain::Name)?),
            Self::Afs => Box::new(shift(Grain::Bundle)?),
            Self::Fcfs | Self::Restored(_) => Box::new(Fcfs::new(n_cores)?),
            Self::Batches => Box::new(RoundRobin::new(n_cores, 8)?),
            Self::Static => Box::new(StaticHash::new(n_cores, BUCKETS_LOG2)?),
            Self::Adaptive { migrates } => {
                // A mean packet's time, with equal shares of the services.
                let rates = services.iter().map(|it| it.rate_pps(mean_packet_bytes()));
                let seconds = rates.map(f64::recip).sum::<f64>() / services.len() as f64;
                Box::new(AdaptiveHash::new(AdaptiveConfig {
                    n_bundles_log2: BUCKETS_LOG2,
                    detector: migrates.then(DetectorConfig::default),
                    high_threshold: threshold,
                    ..AdaptiveConfig::new(n_cores, seconds.recip())
                })?)
            }
            Self::Oracle { n_tracked } => {
                Box::new(TopNames::new(n_cores, BUCKETS_LOG2, n_tracked, threshold)?)
            }
        })
    }

    /// Cores that keep or restore order, if this kind has that.
    pub(super) fn cores(self, config: &CoresConfig) -> CoresConfig {
        let keeps_order = matches!(self, Self::Laps(kind) if !kind.is_published);
        CoresConfig {
            order: keeps_order.then(OrderConfig::default),
            restoration: match self {
                Self::Restored(scope) => Some(scope),
                Self::Batches => Some(TagScope::Global),
                _ => None,
            },
            ..config.clone()
        }
    }
}

/// What a run came to, its first tenth left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) counts: Counts,
    /// Flows, or bundles of them, that moved.
    pub(super) n_shifts: u64,
    /// Packets per second that came and that were done.
    pub(super) offered_pps: f64,
    pub(super) done_pps: f64,
    /// The most flows with tagged packets inside, where order is restored.
    pub(super) n_names_tagged: Option<usize>,
}

impl Outcome {
    pub(super) fn dropped_pct(&self) -> f64 {
        percent(self.counts.n_dropped, self.counts.n_arrived)
    }

    pub(super) fn cold_pct(&self) -> f64 {
        percent(self.counts.n_cold, self.counts.n_departed)
    }

    pub(super) fn out_of_order_pct(&self) -> f64 {
        percent(self.counts.n_out_of_order, self.counts.n_departed)
    }
}

/// Runs traffic for so many seconds of virtual time.
pub(super) fn simulate(
    config: &CoresConfig,
    (kind, threshold): (Kind, u32),
    services: Vec<(RateModel, Trace)>,
    (seconds, speedup): (f64, f64),
    seed: u64,
) -> anyhow::Result<Outcome> {
    ensure!(seconds > 0.0 && speedup > 0.0, "a run takes time");
    let mut traffic = Traffic::new(services, speedup, seed);
    let n_flows = traffic.n_flows();
    let scheduler = kind.scheduler(config.n_cores, &config.services, threshold)?;
    let mut cores = Cores::new(kind.cores(config), scheduler, n_flows);
    let end_ns = (seconds * 1e9) as u64;
    let warm_ns = end_ns / 10;
    let mut warm = None;
    while let Some(packet) = traffic.next_packet() {
        if packet.at_ns >= warm_ns && warm.is_none() {
            warm = Some((*cores.counts(), cores.scheduler().n_shifts()));
        }
        if packet.at_ns >= end_ns {
            break;
        }
        cores.handle_packet(packet);
    }
    cores.depart_until(end_ns);
    let (warm, n_shifts) = warm.unwrap_or_default();
    let counts = cores.counts().since(&warm);
    let measured_s = (end_ns - warm_ns) as f64 / 1e9;
    Ok(Outcome {
        counts,
        n_shifts: cores.scheduler().n_shifts() - n_shifts,
        offered_pps: counts.n_arrived as f64 / measured_s,
        done_pps: counts.n_departed as f64 / measured_s,
        n_names_tagged: cores.n_names_tagged(),
    })
}

/// A part in percent of a whole; 0 of nothing.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// By how many percent a value lies below a reference; `None` without one.
pub(super) fn below_pct(value: u64, reference: u64) -> Option<f64> {
    (reference > 0).then(|| 100.0 - 100.0 * value as f64 / reference as f64)
}
