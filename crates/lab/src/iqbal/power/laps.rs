//! Power of LAPS beside FCFS, with cores that are on or asleep: Figures 6.11 and 6.12.

use anyhow::ensure;
use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind as RecordKind, Param, ParamKind, Record, Reference,
    Table, cells,
};
use tachonym_dispatch::baselines::Scheduler;
use tachonym_dispatch::power::on_off::{OnOffFcfs, OnOffLaps};
use tachonym_sim::cores::{Cores, CoresConfig, Counts};
use tachonym_sim::power::on_off::CoreTime;
use tachonym_sim::rate::{RateModel, SET_1};
use tachonym_sim::service::PATHS;
use tachonym_sim::traffic::{Trace, Traffic, mean_packet_bytes};

use super::super::simulation::{self, IQBAL, Kind, LapsKind, percent};
use super::super::table_5_1::{GROUPS, N_CORES, SETS, TRAFFIC_S};
use super::super::traces;
use super::{Application, saved_pct};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "iqbal/figure-6.11",
        title: "Power of LAPS beside FCFS, one service",
        source: "Iqbal 2013, section 6.4.6, Figure 6.11, equation 3.8",
        cost: Cost::minutes(0.2, 12.0),
        needs: &[],
        params: &[
            Param::new(
                "speedup",
                "factor by which rates change faster than published; a minute takes that much less",
                ParamKind::Number,
                ["600", "60", "1"],
            ),
            simulation::THRESHOLD,
            Param::seed(),
        ],
        run: one_service,
    },
    Experiment {
        id: "iqbal/figure-6.12",
        title: "Power of LAPS beside FCFS and DLB in the scenarios T1 to T8",
        source: "Iqbal 2013, section 6.4.6, Figure 6.12, Table 5.3",
        cost: Cost::minutes(1.2, 36.0),
        needs: &[],
        params: &[
            Param::new(
                "speedup",
                "factor by which rates change faster than published; a minute takes that much less",
                ParamKind::Number,
                ["2000", "30", "1"],
            ),
            simulation::THRESHOLD,
            Param::seed(),
        ],
        run: scenarios,
    },
];

/// Who decides where packets go, and which cores sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    /// Cores sleep.
    OnOff(Kind),
    /// All cores are on.
    AllOn(Kind),
}

const FCFS: Policy = Policy::OnOff(Kind::Fcfs);
const LAPS: Policy = Policy::OnOff(Kind::Laps(LapsKind::published(16)));
const LAPS_ROUTER: Policy = Policy::OnOff(Kind::Laps(LapsKind::router(16)));
const LAPS_ALL_ON: Policy = Policy::AllOn(Kind::Laps(LapsKind::router(16)));
const DLB: Policy = Policy::AllOn(Kind::Dlb);

/// What a run came to, its first tenth left out.
#[derive(Clone, Debug)]
struct Outcome {
    counts: Counts,
    time: CoreTime,
    /// At each of [`N_SAMPLES`] moments, in seconds of the traffic: cores that are on.
    active: Vec<(f64, f64)>,
}

/// Moments that the drawing shows.
const N_SAMPLES: u64 = 60;

impl Outcome {
    /// Power by that of all cores that are on.
    fn share(&self) -> f64 {
        self.time.energy_j(1.0) / (self.time.total_ns as f64 / 1e9)
    }

    fn dropped_pct(&self) -> f64 {
        percent(self.counts.n_dropped, self.counts.n_arrived)
    }

    /// Core-nanoseconds at full power by packet that was done.
    fn energy_of_packet(&self) -> f64 {
        self.time.energy_j(1e9) / self.counts.n_departed.max(1) as f64
    }
}

/// What is simulated.
#[derive(Clone, Copy, Debug)]
struct Bed<'a> {
    config: &'a CoresConfig,
    traffic: &'a [(RateModel, Trace)],
    threshold: u32,
    speedup: f64,
    seed: u64,
}

impl Bed<'_> {
    fn run(&self, policy: Policy) -> anyhow::Result<Outcome> {
        let end_ns = (TRAFFIC_S / self.speedup * 1e9) as u64;
        let (Policy::OnOff(kind) | Policy::AllOn(kind)) = policy;
        let n_cores = self.config.n_cores;
        let all_on = kind.scheduler(n_cores, &self.config.services, self.threshold)?;
        let scheduler: Box<dyn Scheduler> = match policy {
            Policy::AllOn(_) => all_on,
            Policy::OnOff(_) => {
                // A core's rates are profiled for a tenth of the time with all cores on.
                let profile = self.simulate(kind, all_on, end_ns / 10, self.seed + 1)?;
                let rates = self.rates_of(&profile);
                match kind {
                    Kind::Laps(laps) => {
                        let laps = laps.laps_of_rates(n_cores, rates, self.threshold)?;
                        Box::new(OnOffLaps::new(laps, self.threshold))
                    }
                    _ => Box::new(OnOffFcfs::new(n_cores, rates, self.threshold)?),
                }
            }
        };
        let (cores, warm, active) = self.drive(kind, scheduler, end_ns, self.seed)?;
        let (warm_counts, warm_time) = warm;
        Ok(Outcome {
            counts: cores.counts().since(&warm_counts),
            time: cores.core_time(end_ns).since(&warm_time),
            active,
        })
    }

    /// Packets per second of a core that does nothing but a service's, its penalties included.
    fn rates_of(&self, profile: &[Counts]) -> Vec<f64> {
        let services = self.config.services.iter().zip(profile);
        let rates = services.map(|(service, counts)| {
            let n_accepted = counts.n_arrived - counts.n_dropped;
            match n_accepted {
                0 => service.rate_pps(mean_packet_bytes()),
                _ => n_accepted as f64 * 1e9 / counts.busy_ns as f64,
            }
        });
        rates.collect()
    }

    fn simulate(
        &self,
        kind: Kind,
        scheduler: Box<dyn Scheduler>,
        end_ns: u64,
        seed: u64,
    ) -> anyhow::Result<Vec<Counts>> {
        let (cores, ..) = self.drive(kind, scheduler, end_ns, seed)?;
        Ok(cores.by_service().to_vec())
    }

    #[allow(
        clippy::type_complexity,
        reason = "what is known when a tenth is over, and after all"
    )]
    fn drive(
        &self,
        kind: Kind,
        scheduler: Box<dyn Scheduler>,
        end_ns: u64,
        seed: u64,
    ) -> anyhow::Result<(
        Cores<Box<dyn Scheduler>>,
        (Counts, CoreTime),
        Vec<(f64, f64)>,
    )> {
        ensure!(end_ns > 0, "a run takes time");
        let mut traffic = Traffic::new(self.traffic.to_vec(), self.speedup, seed);
        let mut cores = Cores::new(kind.cores(self.config), scheduler, traffic.n_flows());
        let mut warm = None;
        let mut samples = Vec::new();
        let mut before = CoreTime::default();
        while let Some(packet) = traffic.next_packet() {
            let at_ns = packet.at_ns.min(end_ns);
            while at_ns >= (samples.len() as u64 + 1) * end_ns / N_SAMPLES {
                let sample_ns = (samples.len() as u64 + 1) * end_ns / N_SAMPLES;
                let time = cores.core_time(sample_ns);
                let on = time.since(&before).mean_active(self.config.n_cores);
                samples.push((sample_ns as f64 / 1e9 * self.speedup, on));
                before = time;
            }
            if at_ns >= end_ns / 10 && warm.is_none() {
                warm = Some((*cores.counts(), cores.core_time(end_ns / 10)));
            }
            if packet.at_ns >= end_ns {
                break;
            }
            cores.handle_packet(packet);
        }
        cores.depart_until(end_ns);
        Ok((cores, warm.unwrap_or_default(), samples))
    }
}

fn label(policy: Policy) -> String {
    match policy {
        Policy::OnOff(kind) => kind.label(),
        Policy::AllOn(kind) => format!("{}, all cores on", kind.label()),
    }
}

fn one_service(context: &Context) -> anyhow::Result<Record> {
    let policies = [FCFS, LAPS, LAPS_ROUTER];
    let config = CoresConfig::new(N_CORES, vec![PATHS[1].clone()]);
    let rate = RateModel { a: 6.0, ..SET_1[0] };
    let seed = context.seed();
    let traffic = [(rate, traces::trace(GROUPS[0][0], seed)?)];
    let found = in_parallel(policies.len(), |case| {
        let bed = Bed {
            config: &config,
            traffic: &traffic,
            threshold: context.values.count32("threshold"),
            speedup: context.number("speedup"),
            seed,
        };
        bed.run(policies[case])
    })?;
    let core_w = Application::named("IPV4T")?.core_w();
    let mut record = Record::new(RecordKind::Simulated);
    let columns = "scheduler | W | below FCFS, % | cores on | of a packet, nJ | busy of a packet, ns | \
                   moved, % | dropped, % | wake-ups";
    let mut table = Table::new("IPV4T on 16 cores", columns.split(" | "));
    let mut chart = Chart::new("Figure 6.11", "s", "cores on");
    for (&policy, outcome) in policies.iter().zip(&found) {
        let counts = outcome.counts;
        table.row(cells![
            label(policy),
            outcome.share() * core_w * N_CORES as f64,
            saved_pct(outcome.share(), found[0].share()),
            outcome.time.mean_active(N_CORES),
            outcome.energy_of_packet() * core_w,
            counts.busy_ns as f64 / counts.n_departed.max(1) as f64,
            percent(counts.n_moved, counts.n_departed),
            outcome.dropped_pct(),
            outcome.time.n_wakes,
        ]);
        for &(at_s, on) in &outcome.active {
            chart.point(&label(policy), at_s, on);
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(format!(
        "{TRAFFIC_S} s of traffic in {} s of virtual time. Published is a drawing without numbers: \
         LAPS takes less power than FCFS, since a packet whose flow stays with its core takes \
         less. A packet takes 0.5 us (section 3.2.5), watts of a core are those inferred for IPV4T \
         (iqbal/table-6.2). The trace is not published: here the first of Table 5.2, drawn.",
        TRAFFIC_S / context.number("speedup")
    ));
    record.note(
        "Cores are on, or in deep sleep at 5 % of that. The resource manager of chapter 5 decides \
         for both, every millisecond, by what a core does of a service's packets under the same \
         scheduler, as profiling shows it.",
    );
    Ok(record)
}

fn scenarios(context: &Context) -> anyhow::Result<Record> {
    let policies = [FCFS, DLB, LAPS, LAPS_ROUTER, LAPS_ALL_ON];
    let n = policies.len();
    let config = CoresConfig::new(N_CORES, PATHS.to_vec());
    let seed = context.seed();
    let found = in_parallel(8 * n, |case| {
        let scenario = case / n;
        let traces = GROUPS[scenario % 4].map(|name| traces::trace(name, seed));
        let models = SETS[scenario / 4].into_iter();
        let traffic = models.zip(traces).map(|(model, trace)| Ok((model, trace?)));
        let traffic = traffic.collect::<anyhow::Result<Vec<_>>>()?;
        let bed = Bed {
            config: &config,
            traffic: &traffic,
            threshold: context.values.count32("threshold"),
            speedup: context.number("speedup"),
            seed,
        };
        bed.run(policies[case % n])
    })?;
    let mut record = Record::new(RecordKind::Simulated);
    let columns = "scenario | scheduler | power by all cores on | below FCFS, % | cores on | \
                   dropped, % | of a packet below FCFS, % | of a packet below DLB, %";
    let mut table = Table::new("", columns.split(" | "));
    let mut charts = ["power by all cores on", "of a packet, by DLB"]
        .map(|y| Chart::new("Figure 6.12", "scenario", y));
    // Below FCFS in T1 to T4, and of a packet below DLB in T5 to T8.
    let mut saved = [[0.0; 5]; 2];
    for (scenario, found) in found.chunks(n).enumerate() {
        for (nth, (&policy, outcome)) in policies.iter().zip(found).enumerate() {
            let name = format!("T{}", scenario + 1);
            let below = |nth: usize| saved_pct(outcome.share(), found[nth].share());
            let packet = Outcome::energy_of_packet;
            let packet_below = |nth: usize| saved_pct(packet(outcome), packet(&found[nth]));
            table.row(cells![
                name,
                label(policy),
                outcome.share(),
                below(0),
                outcome.time.mean_active(N_CORES),
                outcome.dropped_pct(),
                packet_below(0),
                packet_below(1),
            ]);
            let x = scenario as f64 + 1.0;
            charts[0].point(&label(policy), x, outcome.share());
            charts[1].point(&label(policy), x, packet(outcome) / packet(&found[1]));
            saved[scenario / 4][nth] += match scenario / 4 {
                0 => below(0) / 4.0,
                _ => packet_below(1) / 4.0,
            };
        }
    }
    let mut means = Table::new(
        "means",
        "scheduler | T1 to T4: power below FCFS, % | T5 to T8: of a packet below DLB, %"
            .split(" | "),
    );
    let place = Reference::stated(IQBAL, "section 6.4.6");
    for (nth, &policy) in policies.iter().enumerate() {
        means.row(cells![label(policy), saved[0][nth], saved[1][nth]]);
        if matches!(policy, Policy::OnOff(Kind::Laps(_))) {
            let what = format!("{}: energy of a packet below DLB, T5 to T8", label(policy));
            record.compare(what, 30.0, "%", place, Some(saved[1][nth]));
        }
    }
    record.tables.extend([means, table]);
    record.charts.extend(charts);
    record.note(format!(
        "{TRAFFIC_S} s of traffic in {} s of virtual time. Watts of the paths' cores are not \
         published: power is by that of 16 cores that are on. Published: LAPS saves power in T1 to \
         T4, and none in T5 to T8, where all cores are on. DLB puts no core to sleep here. Set 1 \
         is an underload only on average (iqbal/table-5.1), so that LAPS drops with all cores on, \
         too.",
        TRAFFIC_S / context.number("speedup")
    ));
    record.note(
        "Cores sleep as in iqbal/figure-6.11. The traces are drawn; iqbal/figure-4.3 shows them.",
    );
    Ok(record)
}
