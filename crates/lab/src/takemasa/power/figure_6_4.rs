//! Figure 6.4: power of processors by load, and its linear approximation.

use tachonym_bench::stats::LineFit;
use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Kind, Param, Record, Reference, Table, cells,
};

use super::{DOCUMENT, THETA, servers};

pub(in super::super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/figure-6.4",
    title: "Power of three processors by load, and its linear approximation",
    source: "Takemasa 2019, section 6.3.3, Figure 6.4",
    cost: Cost::minutes(0.1, 0.1),
    needs: &[],
    params: &[
        Param::count("steps", "loads computed for each core", ["20", "100", "1k"]),
        THETA,
    ],
    run,
}];

/// Watts by each utilized core and at none, and R^2, as published.
const PUBLISHED: [[f64; 3]; 3] = [
    [5.88, 23.58, 0.997],
    [5.85, 5.43, 0.979],
    [1.65, 8.15, 0.943],
];

/// A line through the loads from `from` cores on.
fn line(points: &[(f64, f64)], from: f64) -> Option<LineFit> {
    let kept = points.iter().copied().filter(|it| it.0 >= from);
    LineFit::of(&kept.collect::<Vec<_>>())
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let (steps, theta) = (context.count("steps"), context.number("theta"));
    let mut record = Record::new(Kind::Computed);
    let columns = ["processor", "line through loads from"].map(Column::new);
    let numbers = ["W by core", "W at none", "R²", "W at four cores"];
    let numbers = numbers.map(|it| Column::fixed(it, 3));
    let mut table = Table::new("", columns.into_iter().chain(numbers));
    let mut chart = Chart::new("power of one processor", "load, cores fully utilized", "W");
    for ((server, _), published) in servers()?.into_iter().zip(PUBLISHED) {
        let (cpu, processor) = (&server.cpu, &*server.processor);
        let n_points = steps * u64::from(cpu.n_cores);
        let mut points = Vec::new();
        for step in 1..=n_points {
            let load = step as f64 / steps as f64;
            let watts = cpu.power_w(load * cpu.top().frequency_hz, theta);
            points.extend(watts.map(|it| (load, it)));
        }
        let (full_w, cores) = (cpu.full_w(cpu.n_cores), f64::from(cpu.n_cores));
        let all = line(&points, 0.0);
        let one = line(&points, 1.0);
        // The loads at which cores are fully utilized.
        let whole = (1..=cpu.n_cores).map(|n| (f64::from(n), cpu.full_w(n)));
        let whole = LineFit::of(&whole.collect::<Vec<_>>());
        let lines = [("0 cores", all), ("1 core", one), ("whole cores", whole)];
        for (from, line) in lines {
            let [slope, intercept, r2] = [
                line.map(|it| it.slope),
                line.map(|it| it.intercept),
                line.map(|it| it.r_squared),
            ];
            let at_all = line.map(|it| it.slope * cores + it.intercept);
            table.row(cells![processor, from, slope, intercept, r2, at_all]);
        }
        let [slope, intercept, r2] = published;
        let at_all = slope * cores + intercept;
        table.row(cells![processor, "published", slope, intercept, r2, at_all]);
        table.row(cells![
            processor,
            "the model",
            None::<f64>,
            None::<f64>,
            None::<f64>,
            full_w
        ]);
        let reference = Reference::stated(DOCUMENT, "section 6.3.3");
        let values = [
            ("W by core", slope, "W", one.map(|it| it.slope)),
            ("W at none", intercept, "W", one.map(|it| it.intercept)),
            ("R²", r2, "", one.map(|it| it.r_squared)),
        ];
        for (what, value, unit, here) in values {
            record.compare(format!("{processor}, {what}"), value, unit, reference, here);
        }
        for (load, _) in points
            .iter()
            .filter(|it| it.0 >= 1.0)
            .step_by(steps as usize)
        {
            chart.published(processor, *load, slope * load + intercept);
        }
        chart.line(processor).points = points;
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(
        "Which loads the published lines are fitted to is not stated; the comparison has those \
         from one core on, as the text calls the power proportional where two or more cores are \
         active. Published points of the chart are those of the published lines.",
    );
    Ok(record)
}
