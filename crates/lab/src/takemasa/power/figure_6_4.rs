//! Figure 6.4: power of processors by load, and its linear approximation.

use tachonym_bench::stats::{LineFit, Spread};
use tachonym_bench::{
    Bound, Cell, Chart, Column, Context, Cost, Experiment, Kind, Param, Record, Reference, Table,
    cells,
};
use tachonym_dispatch::power::model::Cpu;

use super::{DOCUMENT, THETA, servers};

pub(in super::super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/figure-6.4",
    title: "Power of three processors by load, and its linear approximation",
    source: "Takemasa 2019, section 6.3.3, Figure 6.4",
    cost: Cost::minutes(0.1, 0.1),
    needs: &[],
    params: &[
        Param::count("steps", "loads drawn for each core", ["20", "100", "1k"]),
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

/// The largest deviation of a slope by the best reading.
const TARGET_PERCENT: f64 = 2.0;

/// Loads that a line may have been fitted to.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// The first core whose loads are among them.
    first: u32,
    /// Equal steps of each core's utilization, the last of them full.
    n_steps: u32,
    /// Whether the idle processor is among them, too.
    has_none: bool,
}

impl Reading {
    fn all() -> impl Iterator<Item = Self> {
        let from = [(2, false), (1, false), (1, true)].into_iter();
        from.flat_map(|(first, has_none)| {
            [1, 2, 3, 4, 5, 10, 20, 100].map(|n_steps| Self {
                first,
                n_steps,
                has_none,
            })
        })
    }

    fn line(self, cpu: &Cpu, theta: f64) -> Option<LineFit> {
        let steps = (self.first - 1) * self.n_steps + 1..=cpu.n_cores * self.n_steps;
        let none = self.has_none.then_some(0);
        let points = none.into_iter().chain(steps).filter_map(|step| {
            let cores = f64::from(step) / f64::from(self.n_steps);
            Some((cores, cpu.power_w(cores * cpu.top().frequency_hz, theta)?))
        });
        LineFit::of(&points.collect::<Vec<_>>())
    }

    fn label(self) -> String {
        let Self { first, n_steps, .. } = self;
        let none = if self.has_none { "none, then " } else { "" };
        format!("{none}cores {first} to 4, each in steps of 1/{n_steps}")
    }
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let (steps, theta) = (context.count("steps"), context.number("theta"));
    let servers: Vec<_> = servers()?.into_iter().map(|it| it.0).collect();
    let mut record = Record::new(Kind::Computed);
    let mut readings = readings_table(servers.iter().map(|it| &*it.processor));
    let mut best: Option<(Reading, f64)> = None;
    for reading in Reading::all() {
        let lines = servers.iter().map(|it| reading.line(&it.cpu, theta));
        let off = lines.zip(PUBLISHED).map(|(line, [slope, intercept, r2])| {
            line.map_or([f64::INFINITY; 3], |it| {
                [
                    100.0 * (it.slope / slope - 1.0),
                    100.0 * (it.intercept / intercept - 1.0),
                    it.r_squared - r2,
                ]
            })
        });
        let off: Vec<[f64; 3]> = off.collect();
        let worst_of = |idx: usize| off.iter().map(|it| it[idx].abs()).fold(0.0, f64::max);
        let worst = worst_of(0);
        let numbers = off.iter().map(|it| it[0]);
        let numbers = numbers.chain([worst, worst_of(1), worst_of(2)]);
        let numbers = numbers.map(Cell::from);
        readings.row(cells![reading.label()].into_iter().chain(numbers));
        if best.is_none_or(|it| worst < it.1) {
            best = Some((reading, worst));
        }
    }
    let (best, worst) = best.ok_or_else(|| anyhow::anyhow!("there are readings"))?;
    let columns = ["processor", "line"].map(Column::new);
    let numbers = ["W by core", "W at none", "R²", "W at four cores"];
    let numbers = numbers.map(|it| Column::fixed(it, 3));
    let mut table = Table::new("", columns.into_iter().chain(numbers));
    let mut chart = Chart::new("power of one processor", "load, cores fully utilized", "W");
    for (server, published) in servers.iter().zip(PUBLISHED) {
        let (cpu, processor) = (&server.cpu, &*server.processor);
        let cores = f64::from(cpu.n_cores);
        let line = best.line(cpu, theta);
        let [slope, intercept, r2] = published;
        let here = line.map(|it| [it.slope, it.intercept, it.r_squared]);
        for (label, line) in [("here", here), ("published", Some(published))] {
            let of = |idx: usize| line.map(|it| it[idx]);
            let at_all = line.map(|it| it[0] * cores + it[1]);
            table.row(cells![processor, label, of(0), of(1), of(2), at_all]);
        }
        let full_w = cpu.full_w(cpu.n_cores);
        let none = None::<f64>;
        table.row(cells![processor, "the model", none, none, none, full_w]);
        let reference = Reference::stated(DOCUMENT, "section 6.3.3");
        let values = [
            ("W by core", slope, "W", here.map(|it| it[0])),
            ("W at none", intercept, "W", here.map(|it| it[1])),
            ("R²", r2, "", here.map(|it| it[2])),
        ];
        for (what, value, unit, here) in values {
            record.compare(format!("{processor}, {what}"), value, unit, reference, here);
        }
        for step in 1..=steps * u64::from(cpu.n_cores) {
            let load = step as f64 / steps as f64;
            let watts = cpu.power_w(load * cpu.top().frequency_hz, theta);
            chart.point(processor, load, watts.unwrap_or(f64::NAN));
            if step % steps == 0 {
                chart.published(processor, load, slope * load + intercept);
            }
        }
    }
    record.tables.extend([table, readings]);
    record.charts.push(chart);
    if let Some(spread) = Spread::of(&[worst]) {
        let what = "slopes of the best reading differ by";
        record.judge(what, "%", Bound::AtMost(TARGET_PERCENT), spread);
    }
    record.note(format!(
        "Which loads the published lines are fitted to is not stated. The comparison has those \
         whose slopes deviate least: {}. This reading is ours; the second table has the others. \
         The text calls power proportional where two or more cores are active, which fits.",
        best.label()
    ));
    record.note(format!(
        "Intercepts of this reading differ by {:.1} % at most, and R² by {:.3}. Published points \
         of the chart are those of the published lines.",
        worst_of(&record, "W at none", |here, value| 100.0
            * (here / value - 1.0)),
        worst_of(&record, "R²", |here, value| here - value),
    ));
    Ok(record)
}

fn readings_table<'a>(processors: impl Iterator<Item = &'a str>) -> Table {
    let columns = processors.map(|it| Column::fixed(format!("{it}, %"), 1));
    let columns = [Column::new("loads")].into_iter().chain(columns);
    Table::new(
        "Slopes by the loads that lines are fitted to, more than published",
        columns.chain([
            Column::fixed("worst, %", 1),
            Column::fixed("worst intercept, %", 1),
            Column::fixed("worst R²", 3),
        ]),
    )
}

/// The largest difference of compared values whose names end so.
fn worst_of(record: &Record, what: &str, off: impl Fn(f64, f64) -> f64) -> f64 {
    let compared = record.published.iter().filter(|it| it.what.ends_with(what));
    let off = compared.filter_map(|it| Some(off(it.here?, it.value).abs()));
    off.fold(0.0, f64::max)
}
