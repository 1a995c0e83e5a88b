//! Rates and scenarios: equation 3.8 with the parameters of Table 5.1, and Tables 5.2 and
//! 5.3.

use tachonym_bench::{Chart, Context, Cost, Experiment, Kind, Record, Table, cells};
use tachonym_sim::random::Random;
use tachonym_sim::rate::{RateModel, SET_1, SET_2};
use tachonym_sim::service::PATHS;
use tachonym_sim::traffic::mean_packet_bytes;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/table-5.1",
    title: "Rates of the services by equation 3.8, and the cores that they need",
    source: "Iqbal 2013, sections 3.4.2 and 5.4.2, Tables 5.1 to 5.3, equations 3.8 and 5.1",
    cost: Cost::minutes(0.1, 0.02),
    needs: &[],
    params: &[],
    run,
}];

pub(super) const N_CORES: usize = 16;
/// Seconds of each scenario's traffic.
pub(super) const TRAFFIC_S: f64 = 60.0;
/// Table 5.1.
pub(super) const SETS: [[RateModel; 4]; 2] = [SET_1, SET_2];
/// Table 5.2. Scenario `T(4 s + g)` of Table 5.3 has set `s` and group `g`.
pub(super) const GROUPS: [[&str; 4]; 4] = [
    ["caida 1", "caida 2", "caida 3", "caida 4"],
    ["caida 5", "caida 6", "caida 2", "caida 3"],
    ["auckland 1", "auckland 2", "auckland 3", "auckland 4"],
    ["auckland 5", "auckland 6", "auckland 7", "auckland 8"],
];

fn run(_: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Computed);
    let columns = "set | service | a | b | c | m, s | sigma | path".split(" | ");
    let mut parameters = Table::new(
        "Table 5.1, rates in millions of packets per second",
        columns,
    );
    let columns = "set | mean, Mpps | at 0 s | at 60 s | cores needed, mean | at the most | \
        seconds above 16 cores"
        .split(" | ");
    let mut sums = Table::new("without noise, over 60 s", columns);
    let mut scenarios = Table::new(
        "Tables 5.2 and 5.3",
        "scenario | set | S1 | S2 | S3 | S4".split(" | "),
    );
    let mut chart = Chart::new("cores needed by equation 5.1", "s", "cores");
    let core_mpps = PATHS
        .each_ref()
        .map(|path| path.rate_pps(mean_packet_bytes()) / 1e6);
    for (nth, models) in SETS.iter().enumerate() {
        let set = format!("set {}", nth + 1);
        for (service, model) in models.iter().enumerate() {
            let RateModel { a, b, c, m, sigma } = *model;
            let name = format!("S{}", service + 1);
            parameters.row(cells![&*set, name, a, b, c, m, sigma, PATHS[service].name]);
        }
        let mut random = Random::new(0);
        let mut rates_mpps = |at_s: f64| {
            models.map(|model| {
                let still = RateModel {
                    sigma: 0.0,
                    ..model
                };
                still.rate_pps(at_s, &mut random) / 1e6
            })
        };
        let cores = |rates: [f64; 4]| rates.iter().zip(core_mpps).map(|(r, c)| r / c).sum::<f64>();
        let seconds: Vec<f64> = (0..TRAFFIC_S as u32).map(f64::from).collect();
        let needed: Vec<f64> = seconds
            .iter()
            .map(|&at_s| cores(rates_mpps(at_s)))
            .collect();
        for (&at_s, &needed) in seconds.iter().zip(&needed) {
            chart.point(&set, at_s, needed);
        }
        let sum =
            |at_s: f64, rates: &mut dyn FnMut(f64) -> [f64; 4]| rates(at_s).iter().sum::<f64>();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let all: Vec<f64> = seconds
            .iter()
            .map(|&at_s| sum(at_s, &mut rates_mpps))
            .collect();
        sums.row(cells![
            set,
            mean(&all),
            all[0],
            sum(TRAFFIC_S, &mut rates_mpps),
            mean(&needed),
            needed.iter().copied().fold(0.0, f64::max),
            needed.iter().filter(|&&n| n > N_CORES as f64).count(),
        ]);
    }
    for scenario in 0..8 {
        let [s1, s2, s3, s4] = GROUPS[scenario % 4];
        let set = scenario / 4 + 1;
        scenarios.row(cells![format!("T{}", scenario + 1), set, s1, s2, s3, s4]);
    }
    record.tables.extend([sums, parameters, scenarios]);
    record.charts.push(chart);
    record.note(
        "The parameters are those of Table 5.1. A core does what its path takes, without \
         penalties (section 3.2.5), for packets of the mean size of the drawn traces. The thesis \
         calls set 1 an underload and set 2 an overload.",
    );
    Ok(record)
}
