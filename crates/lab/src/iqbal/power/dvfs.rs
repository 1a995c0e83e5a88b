//! What frequencies add to sleep: Figures 6.4 and 6.5.

use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind, Param, ParamKind, Record, Reference, Table, cells,
};
use tachonym_dispatch::power::governors::GovernorKind;
use tachonym_dispatch::power::states::{CState, P_STATES};
use tachonym_dispatch::power::tap::{FrequencyLever, SleepLever, TapConfig};
use tachonym_sim::power::PowerConfig;

use super::super::simulation::IQBAL;
use super::{APPLICATIONS, Application, SECONDS, TRACE, Traffic, saved_pct};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "iqbal/figure-6.4",
        title: "Frequency of each core, of all together, or none, with and without sleep",
        source: "Iqbal 2013, section 6.4.2, Figure 6.4",
        cost: Cost::minutes(0.3, 3.0),
        needs: &[],
        params: &[SECONDS, TRACE, Param::seed()],
        run,
    },
    Experiment {
        id: "iqbal/figure-6.5",
        title: "Frequency of each core or of all together, by traffic",
        source: "Iqbal 2013, section 6.4.2, Figure 6.5",
        cost: Cost::minutes(0.3, 3.0),
        needs: &[],
        params: &[
            Param::new(
                "loads",
                "traffic by what 16 cores do at P0",
                ParamKind::Numbers,
                [
                    "0.1,0.5,0.9",
                    "0.05,0.1,0.15,0.2,0.25,0.3,0.35,0.4,0.45,0.5,0.55,0.6,0.65,0.7,0.75,0.8,\
                     0.85,0.9,0.95,1",
                    "0.05,0.1,0.15,0.2,0.25,0.3,0.35,0.4,0.45,0.5,0.55,0.6,0.65,0.7,0.75,0.8,\
                     0.85,0.9,0.95,1",
                ],
            ),
            SECONDS,
            Param::seed(),
        ],
        run: by_traffic,
    },
];

const LEVERS: [(&str, FrequencyLever, SleepLever); 4] = [
    ("sleep alone", FrequencyLever::None, SleepLever::OnOff),
    (
        "sleep, each core's frequency",
        FrequencyLever::PerWorker,
        SleepLever::OnOff,
    ),
    (
        "sleep, one frequency",
        FrequencyLever::Global,
        SleepLever::OnOff,
    ),
    (
        "frequency alone",
        FrequencyLever::PerWorker,
        SleepLever::AlwaysOn,
    ),
];

fn run(context: &Context) -> anyhow::Result<Record> {
    let traffic = Traffic::of(context, 0)?;
    let n = LEVERS.len();
    let found = in_parallel(APPLICATIONS.len() * n, |case| {
        let (_, frequency, sleep) = LEVERS[case % n];
        let tap = TapConfig {
            frequency,
            sleep,
            ..traffic.tap()
        };
        Ok(traffic.run(&APPLICATIONS[case / n].config(), GovernorKind::Tap, tap))
    })?;
    let mut record = Record::new(Kind::Simulated);
    let columns = "application | levers | W | below sleep alone, % | active | dropped, %";
    let mut table = Table::new("", columns.split(" | "));
    for (application, found) in APPLICATIONS.iter().zip(found.chunks(n)) {
        for ((levers, ..), outcome) in LEVERS.iter().zip(found) {
            table.row(cells![
                application.name,
                *levers,
                outcome.power_w(),
                saved_pct(outcome.power_w(), found[0].power_w()),
                outcome.mean_active,
                outcome.dropped_pct(),
            ]);
        }
        let published = match application.name {
            "FRAG" => 39.0,
            _ => 15.0,
        };
        let place = Reference::stated(IQBAL, "section 6.4.2");
        let what = format!("{}: frequencies save", application.name);
        let here = saved_pct(found[1].power_w(), found[0].power_w());
        record.compare(what, published, "%", place, Some(here));
    }
    record.tables.push(table);
    record.note("15 % is published for most applications. Traffic and watts: iqbal/table-6.2.");
    Ok(record)
}

/// Cores of Figure 6.5.
const N_CORES: usize = 16;
/// Levers beside sleep.
const SLEEPING: usize = 3;

fn by_traffic(context: &Context) -> anyhow::Result<Record> {
    let (loads, seconds) = (context.values.numbers("loads"), context.number("seconds"));
    let application = Application::named("IPV4R")?;
    let config = PowerConfig {
        n_cores: N_CORES,
        ..application.config()
    };
    let full_pps = N_CORES as f64 * 1e9 / config.packet_ns as f64;
    let found = in_parallel(loads.len() * SLEEPING, |case| {
        let (_, frequency, sleep) = LEVERS[case % SLEEPING];
        let rate_pps = loads[case / SLEEPING] * full_pps;
        let traffic = Traffic::constant(rate_pps, seconds, context.seed());
        let tap = TapConfig {
            n_workers: N_CORES,
            frequency,
            sleep,
            ..traffic.tap()
        };
        Ok(traffic.run(&config, GovernorKind::Tap, tap))
    })?;
    let mut record = Record::new(Kind::Simulated);
    let columns = "load | levers | W | by sleep alone | active | dropped, % | least possible, W | \
                   by sleep alone (least)";
    let mut table = Table::new("IPV4R on 16 cores", columns.split(" | "));
    let mut chart = Chart::new("Figure 6.5", "load", "power by sleep alone");
    for (&load, found) in loads.iter().zip(found.chunks(SLEEPING)) {
        let least_w = LEVERS.map(|(_, frequency, _)| least_power_w(&config, frequency, load));
        for (nth, ((levers, ..), outcome)) in LEVERS.iter().zip(found).enumerate() {
            let by = outcome.power_w() / found[0].power_w();
            let by_least = least_w[nth] / least_w[0];
            table.row(cells![
                load,
                *levers,
                outcome.power_w(),
                by,
                outcome.mean_active,
                outcome.dropped_pct(),
                least_w[nth],
                by_least,
            ]);
            if nth > 0 {
                chart.point(levers, load, by);
                chart.point(&format!("{levers}, least possible"), load, by_least);
            }
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(
        "The figure is published as potential, in a drawing without numbers, of which the text says \
         that most is saved at low to middling traffic, and that one frequency for all exploits \
         most of it. The \
         least possible is computed: of all numbers of cores and their P-states that do the \
         traffic, those that take least, with the others in deep sleep. TAP runs the fewest cores \
         that suffice, and saves what the queue then lets it.",
    );
    Ok(record)
}

/// The least watts for which the cores do this share of what all do at P0.
fn least_power_w(config: &PowerConfig, frequency: FrequencyLever, load: f64) -> f64 {
    let lowest = P_STATES[P_STATES.len() - 1];
    let deep_w = config.power_w(lowest) * CState::Deep.relative_power();
    let needed = load * config.n_cores as f64 - 1e-9;
    let n_p_states = match frequency {
        FrequencyLever::None => 1,
        FrequencyLever::PerWorker | FrequencyLever::Global => P_STATES.len(),
    };
    // Cores left, work left and watts so far, with P-states from the `n`th on to choose from.
    let mut open = vec![(config.n_cores, needed, 0.0, 0)];
    let mut least_w = f64::INFINITY;
    while let Some((n_left, needed, so_far_w, first)) = open.pop() {
        if needed <= 0.0 {
            least_w = least_w.min(so_far_w + deep_w * n_left as f64);
            continue;
        }
        let points = P_STATES.iter().enumerate().take(n_p_states);
        for (p_state, point) in points.skip(first) {
            for n in 1..=n_left {
                let needed = needed - point.frequency * n as f64;
                let next = match frequency {
                    FrequencyLever::PerWorker => p_state + 1,
                    FrequencyLever::None | FrequencyLever::Global => n_p_states,
                };
                let so_far_w = so_far_w + config.power_w(*point) * n as f64;
                open.push((n_left - n, needed, so_far_w, next));
                if needed <= 0.0 {
                    break;
                }
            }
        }
    }
    least_w
}
