//! The queue under TAP, and the greedy search's P-states: Figures 6.8 and 6.3.

use tachonym_bench::{Chart, Context, Cost, Experiment, Kind, Param, Record, Table, cells};
use tachonym_dispatch::power::governors::GovernorKind;

use super::{APPLICATIONS, SECONDS, TRACE, Traffic};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "iqbal/figure-6.8",
        title: "Queue length and its smoothed value under TAP",
        source: "Iqbal 2013, section 6.4.4, Figure 6.8, equation 6.7",
        cost: Cost::minutes(0.1, 0.5),
        needs: &[],
        params: &[SECONDS, TRACE, Param::seed()],
        run: queue,
    },
    Experiment {
        id: "iqbal/figure-6.3",
        title: "P-states of the greedy search and of TAP",
        source: "Iqbal 2013, section 6.4.1, Figure 6.3",
        cost: Cost::minutes(0.1, 0.2),
        needs: &[],
        params: &[SECONDS, Param::seed()],
        run: greedy,
    },
];

/// Steps of 50 us that the drawings show.
const N_SHOWN: usize = 400;

fn queue(context: &Context) -> anyhow::Result<Record> {
    let traffic = Traffic::of(context, 0)?;
    let mut record = Record::new(Kind::Simulated);
    let columns = "application | mean | deviation | filtered, mean | filtered, deviation | longest";
    let mut table = Table::new("packets queued, every 50 us", columns.split(" | "));
    for application in APPLICATIONS {
        let outcome = traffic.run(&application.config(), GovernorKind::Tap, traffic.tap());
        let lens: Vec<_> = outcome.queue.iter().map(|it| f64::from(it.0)).collect();
        let filtered: Vec<_> = outcome.queue.iter().map(|it| it.1).collect();
        let longest = lens.iter().copied().fold(0.0, f64::max);
        let [(a, b), (c, d)] = [mean_and_deviation(&lens), mean_and_deviation(&filtered)];
        table.row(cells![application.name, a, b, c, d, longest]);
        if application.name == "IPV4R" {
            let mut chart = Chart::new("IPV4R", "ms", "packets");
            for (nth, (len, filtered)) in outcome.queue.iter().take(N_SHOWN).enumerate() {
                chart.point("queue", nth as f64 * 0.05, f64::from(*len));
                chart.point("filtered", nth as f64 * 0.05, *filtered);
            }
            record.charts.push(chart);
        }
    }
    record.tables.push(table);
    record.note("The filter takes the length whenever a packet comes, as RED does.");
    Ok(record)
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

fn greedy(context: &Context) -> anyhow::Result<Record> {
    // One core of IPV4R at P1 would do.
    let application = APPLICATIONS[2];
    let rate_pps = 0.8 * 1e9 / application.packet_ns() as f64;
    let traffic = Traffic::constant(rate_pps, context.number("seconds"), context.seed());
    let mut record = Record::new(Kind::Simulated);
    let columns = "policy | mean P-state | active | W | dropped, %";
    let mut table = Table::new("", columns.split(" | "));
    let mut chart = Chart::new("IPV4R", "ms", "P-state");
    for (name, kind) in [
        ("Greedy", GovernorKind::GreedyEpi),
        ("TAP", GovernorKind::Tap),
    ] {
        let outcome = traffic.run(&application.config(), kind, traffic.tap());
        let awake = outcome.intervals.iter().filter(|it| it.0 > 0);
        let p_states: Vec<_> = awake.map(|it| it.1).collect();
        let (mean, _) = mean_and_deviation(&p_states);
        let (power_w, dropped) = (outcome.power_w(), outcome.dropped_pct());
        table.row(cells![name, mean, outcome.mean_active, power_w, dropped]);
        for (nth, it) in outcome.intervals.iter().take(N_SHOWN / 10).enumerate() {
            chart.point(name, nth as f64 * 0.5, it.1);
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note("The traffic is what one core does at P1; the greedy search goes on to where energy per packet is least.");
    Ok(record)
}
