//! Forecast of a service's packets: equations 3.4 to 3.7 on series that equation 3.8 draws.

use anyhow::{Context as _, ensure};
use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind, Param, ParamKind, Record, Table, cells,
};
use tachonym_sim::rate::{HoltWinters, RateModel};
use tachonym_sim::traffic::{FlowModel, Trace, Traffic};

use super::table_5_1::{SETS, TRAFFIC_S};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/holt-winters",
    title: "Error of Holt-Winters forecasts of the packets of a second",
    source: "Iqbal 2013, section 3.4.2, equations 3.4 to 3.8",
    cost: Cost::minutes(0.1, 0.2),
    needs: &[],
    params: &[
        Param::new(
            "seasons",
            "seasons of a series, an even number from 4 on: half are fitted, half are forecast",
            ParamKind::Count { min: 4, max: 1_000 },
            ["4", "8", "16"],
        ),
        Param::count(
            "thinning",
            "packets for each one that is drawn",
            ["5k", "200", "20"],
        ),
        Param::new(
            "trend",
            "change of the baseline over a series, as a share of it; its sign is that of Table 5.1",
            ParamKind::Number,
            ["0.5"; 3],
        ),
        Param::seed(),
    ],
    run,
}];

struct Series {
    values: Vec<f64>,
    /// The rate without noise in each second.
    still: Vec<f64>,
    m: usize,
}

/// Errors of forecasts of the second half, as shares of its mean.
struct Forecast {
    parameters: [f64; 3],
    holt_winters: f64,
    last_value: f64,
    last_season: f64,
    /// Of a forecast that knows the rate without noise.
    noise: f64,
    points: Vec<(f64, f64, f64)>,
}

fn run(context: &Context) -> anyhow::Result<Record> {
    ensure!(
        context.count("seasons").is_multiple_of(2),
        "an even number of seasons"
    );
    let found = in_parallel(8, |case| {
        let series = draw(context, SETS[case / 4][case % 4])?;
        Ok((series.m, forecast(&series)?))
    })?;
    let mut record = Record::new(Kind::Simulated);
    let columns = "set | service | season, s | alpha | beta | gamma | Holt-Winters, % | \
        last second, % | a season ago, % | noise, %"
        .split(" | ");
    let mut table = Table::new(
        "root mean square of the forecasts' error, by the mean",
        columns,
    );
    let mut chart = Chart::new("set 1, S1: packets of a second", "s", "millions");
    for (case, (m, forecast)) in found.iter().enumerate() {
        let [alpha, beta, gamma] = forecast.parameters;
        table.row(cells![
            case / 4 + 1,
            format!("S{}", case % 4 + 1),
            *m,
            alpha,
            beta,
            gamma,
            100.0 * forecast.holt_winters,
            100.0 * forecast.last_value,
            100.0 * forecast.last_season,
            100.0 * forecast.noise,
        ]);
        if case == 0 {
            for &(at_s, came, forecast) in &forecast.points {
                chart.point("came", at_s, came);
                chart.point("forecast", at_s, forecast);
            }
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(format!(
        "Published: the equations, no error. Packets are counted in each second of a series of {} \
         seasons; one is drawn for {}, which adds noise of its own. The parameters have the least \
         squared error over the first half, in steps of a tenth. The trends of Table 5.1 are for \
         {TRAFFIC_S} s, in which no season of S4 fits: here the baseline changes by {} of itself \
         over a series. Noise: of a forecast that knows the rate.",
        context.count("seasons"),
        context.count("thinning"),
        context.number("trend"),
    ));
    Ok(record)
}

/// Counts the packets of each second.
fn draw(context: &Context, model: RateModel) -> anyhow::Result<Series> {
    let (m, thinning) = (model.m as usize, context.count("thinning") as f64);
    let n_seconds = m * context.size("seasons");
    let change = context.number("trend") * model.a * model.b.signum();
    let model = RateModel {
        b: change / n_seconds as f64,
        ..model
    };
    let thin = RateModel {
        a: model.a / thinning,
        b: model.b / thinning,
        c: model.c / thinning,
        ..model
    };
    let trace = Trace::drawn(&FlowModel::names(1), context.seed());
    let mut traffic = Traffic::new(vec![(thin, trace)], 1.0, context.seed());
    let mut values = vec![0.0; n_seconds];
    while let Some(packet) = traffic.next_packet() {
        let second = (packet.at_ns / 1_000_000_000) as usize;
        let Some(value) = values.get_mut(second) else {
            break;
        };
        *value += thinning / 1e6;
    }
    let still = RateModel {
        sigma: 0.0,
        ..model
    };
    let mut random = tachonym_sim::random::Random::new(0);
    let rate = |second| still.rate_pps(f64::from(second), &mut random) / 1e6;
    Ok(Series {
        still: (0..n_seconds as u32).map(rate).collect(),
        values,
        m,
    })
}

/// Fits the first half and forecasts the second, a second ahead.
fn forecast(series: &Series) -> anyhow::Result<Forecast> {
    let Series { values, still, m } = series;
    let half = values.len() / 2;
    let (parameters, _) = HoltWinters::fit(&values[..half], *m).context("more than a season")?;
    let mut model = HoltWinters::new(parameters, &values[..*m]);
    values[*m..half].iter().for_each(|&y| model.handle_value(y));
    let mut sums = [0.0; 4];
    let mut points = Vec::new();
    for (at, &y) in values.iter().enumerate().skip(half) {
        let forecast = model.forecast();
        let forecasts = [forecast, values[at - 1], values[at - m], still[at]];
        for (sum, forecast) in sums.iter_mut().zip(forecasts) {
            *sum += (y - forecast).powi(2);
        }
        points.push((at as f64, y, forecast));
        model.handle_value(y);
    }
    let n = points.len() as f64;
    let mean = values[half..].iter().sum::<f64>() / n;
    let [holt_winters, last_value, last_season, noise] = sums.map(|sum| (sum / n).sqrt() / mean);
    Ok(Forecast {
        parameters,
        holt_winters,
        last_value,
        last_season,
        noise,
        points,
    })
}
