//! Forecasts of the packets of an interval: Table 6.4, Figures 6.6 and 6.7.

use anyhow::Context as _;
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::in_parallel;
use tachonym_bench::{Bound, Context, Cost, Experiment, Kind, Param, Record, Table, cells};
use tachonym_dispatch::power::des::{DesConstants, Refit, TrainedDes};
use tachonym_dispatch::power::governors::GovernorKind;
use tachonym_dispatch::power::predict::{
    Linear, LinearKind, MOVING_AVERAGE, MovingAverage, Neural, Predictor, nmse,
};
use tachonym_dispatch::power::tap::TapConfig;
use tachonym_sim::power::counts;

use super::{APPLICATIONS, SECONDS, TRACE, Traffic, saved_pct};

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "iqbal/figure-6.6",
        title: "Accuracy of traffic predictors",
        source: "Iqbal 2013, section 6.4.3, Table 6.4, Figure 6.6, equations 6.1 to 6.3 and 6.8",
        cost: Cost::minutes(0.1, 0.5),
        needs: &[],
        params: &[SECONDS, TRACE, Param::seed()],
        run: accuracy,
    },
    Experiment {
        id: "iqbal/figure-6.7",
        title: "Power saved by DES over the last value as forecast",
        source: "Iqbal 2013, section 6.4.3, Figure 6.7",
        cost: Cost::minutes(0.2, 2.0),
        needs: &[],
        params: &[SECONDS, TRACE, Param::seed()],
        run: saving,
    },
];

const INTERVAL_NS: u64 = 500_000;
const REFIT: Refit = Refit {
    every: 64,
    window: 256,
};

fn accuracy(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Simulated);
    let mut table = Table::new(
        "NMSE",
        "trace | predictor | NMSE | orders or constants".split(" | "),
    );
    let mut worst = 0.0_f64;
    for trace in 0..2 {
        let traffic = Traffic::of(context, trace)?;
        let values = counts(&traffic.arrivals_ns, INTERVAL_NS, traffic.end_ns);
        let (train, test) = values.split_at(values.len() / 2);
        let few = "more values: a longer time";
        let ar = Linear::fit(LinearKind::Ar, train).context(few)?;
        let arma = Linear::fit(LinearKind::Arma, train).context(few)?;
        let constants = DesConstants::fit(train);
        let orders = |it: &Linear| format!("{}, {}", it.orders().0, it.orders().1);
        let DesConstants { alpha, gamma } = constants;
        let (ar_orders, arma_orders) = (orders(&ar), orders(&arma));
        let neural = Neural::train(train, context.seed()).context(few)?;
        let des = format!("{alpha:.3}, {gamma:.3}");
        let predictors: [(&str, String, Box<dyn Predictor>); 7] = [
            ("LV", String::new(), Box::new(MovingAverage::new(1))),
            (
                "MA",
                "8".to_owned(),
                Box::new(MovingAverage::new(MOVING_AVERAGE)),
            ),
            ("AR", ar_orders, Box::new(ar)),
            ("ARMA", arma_orders, Box::new(arma)),
            ("ANN", "8, 6, 1".to_owned(), Box::new(neural)),
            ("DES", des, Box::new(TrainedDes::new(constants, None))),
            ("DES on line", String::new(), {
                Box::new(TrainedDes::new(DesConstants::default(), Some(REFIT)))
            }),
        ];
        let (mut best, mut of_des) = (f64::INFINITY, f64::INFINITY);
        for (name, what, mut predictor) in predictors {
            train.iter().for_each(|&it| predictor.observe(it));
            let found = nmse(&mut *predictor, test).context("the traffic changes")?;
            if !found.is_finite() {
                record.note(format!(
                    "{name} diverges on trace {}: its fitted terms of former errors add up.",
                    trace + 1
                ));
            }
            best = best.min(found);
            if name == "DES" {
                of_des = found;
            }
            table.row(cells![trace + 1, name, found, what]);
        }
        worst = worst.max(of_des / best);
    }
    record.tables.push(table);
    if let Some(spread) = Spread::of(&[worst]) {
        record.judge("NMSE of DES by the best", "", Bound::AtMost(1.1), spread);
    }
    record.note(
        "Packets of 500 us, of the drawn traffic of iqbal/table-6.2. The first half trains, the \
         second is forecast. Orders of AR and ARMA, left out in the thesis, have the least AIC. \
         Packets come by chance, and no predictor foresees that part of the variance.",
    );
    Ok(record)
}

fn saving(context: &Context) -> anyhow::Result<Record> {
    let traffic = Traffic::of(context, 0)?;
    let last_value = DesConstants {
        alpha: 1.0,
        gamma: 0.0,
    };
    let found = in_parallel(APPLICATIONS.len() * 3, |case| {
        let tap = TapConfig {
            forecast: [last_value, traffic.trained, DesConstants::default()][case % 3],
            refit: (case % 3 == 2).then_some(REFIT),
            ..traffic.tap()
        };
        Ok(traffic.run(&APPLICATIONS[case / 3].config(), GovernorKind::Tap, tap))
    })?;
    let mut record = Record::new(Kind::Simulated);
    let columns = "application | forecast | W | below LV, % | dropped, %";
    let mut table = Table::new("", columns.split(" | "));
    for (application, found) in APPLICATIONS.iter().zip(found.chunks(3)) {
        for (name, outcome) in ["LV", "DES", "DES on line"].iter().zip(found) {
            let saved = saved_pct(outcome.power_w(), found[0].power_w());
            let dropped = outcome.dropped_pct();
            table.row(cells![
                application.name,
                *name,
                outcome.power_w(),
                saved,
                dropped
            ]);
        }
    }
    record.tables.push(table);
    record.note("LV is DES with alpha 1 and gamma 0. Traffic and watts: iqbal/table-6.2.");
    Ok(record)
}
