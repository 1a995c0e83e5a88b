//! Figures 6.1 and 6.2: power of the first core by load in each P-state, and of each further
//! core, fitted.

use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Bound, Cell, Chart, Column, Context, Cost, Experiment, Kind, Record, Reference, Table, cells,
};
use tachonym_dispatch::power::fit::samples::Activity;
use tachonym_dispatch::power::fit::server::Part;
use tachonym_dispatch::power::model::{CoreCurve, Cpu};

use super::DOCUMENT;
use super::meter::{Metered, PARAMS};

pub(in super::super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "takemasa/figure-6.1",
        title: "Power of one core by load in each P-state, drawn and fitted",
        source: "Takemasa 2019, section 6.3.3, Figures 6.1 and 6.3",
        cost: Cost::minutes(0.1, 0.1),
        needs: &[],
        params: &PARAMS,
        run: |context| run(context, |n| n == 1),
    },
    Experiment {
        id: "takemasa/figure-6.2",
        title: "Power of the second and further cores by load, drawn and fitted",
        source: "Takemasa 2019, section 6.3.3, Figure 6.2",
        cost: Cost::minutes(0.1, 0.1),
        needs: &[],
        params: &PARAMS,
        run: |context| run(context, |n| n > 1),
    },
];

/// Published R²: of the first core by frequency, of further cores, and of the largest watts
/// by frequency. Those of the E5620 are in drawings only.
const PUBLISHED: [(&str, &[f64], &[f64], f64); 2] = [
    (
        "Intel Xeon E3-1220",
        &[0.934, 0.946, 0.856, 0.922, 0.978, 0.981, 0.945, 0.954],
        &[0.891, 0.870, 0.699],
        0.951,
    ),
    (
        "Intel Itanium 9520",
        &[0.911, 0.899, 0.919],
        &[0.929, 0.998, 0.913],
        0.995,
    ),
];

/// How far fitted watts of a core may be from those that samples were drawn from.
const WITHIN_W: f64 = 0.25;

/// The curve of a part, if it is a core.
fn core_of(cpu: &Cpu, part: Part) -> Option<CoreCurve> {
    let Part::Core { n, frequency_hz } = part else {
        return None;
    };
    if n > 1 {
        return cpu.further_cores.get(n as usize - 2).copied();
    }
    let mut p_states = cpu.p_states.iter();
    let p_state = p_states.find(|it| it.frequency_hz == frequency_hz)?;
    Some(p_state.curve())
}

fn published_r2(metered: &Metered, part: Part) -> Option<f64> {
    let cpu = &metered.origin.as_ref()?.cpu;
    let row = PUBLISHED.iter().find(|it| it.0 == metered.label())?;
    match part {
        Part::Core { n: 1, frequency_hz } => {
            let mut p_states = cpu.p_states.iter();
            let idx = p_states.position(|it| it.frequency_hz == frequency_hz)?;
            row.1.get(idx).copied()
        }
        Part::Core { n, .. } => row.2.get(n as usize - 2).copied(),
        Part::Frequencies => Some(row.3),
        Part::Memory | Part::Nic => None,
    }
}

fn run(context: &Context, is_shown: fn(u32) -> bool) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Computed);
    let columns = ["processor", "fit"].map(Column::new).into_iter();
    let numbers = [
        ("σ", 3),
        ("σ drawn from", 3),
        ("full, W", 2),
        ("full, drawn from, W", 2),
        ("R²", 3),
        ("R² of means", 3),
        ("R² published", 3),
    ];
    let numbers = numbers.map(|(title, digits)| Column::fixed(title, digits));
    let mut table = Table::new("", columns.chain(numbers));
    let mut worst_w: Option<f64> = None;
    let metered = Metered::all(context, &mut record)?;
    for metered in &metered {
        for fit in metered.fits() {
            let is_here = match fit.part {
                Part::Core { n, .. } => is_shown(n),
                Part::Frequencies => is_shown(1),
                Part::Memory | Part::Nic => false,
            };
            if !is_here {
                continue;
            }
            let here = core_of(&metered.fitted.server.cpu, fit.part);
            let origin = metered.origin.as_ref();
            let origin = origin.and_then(|it| core_of(&it.cpu, fit.part));
            if let Some((here, origin)) = here.zip(origin) {
                let off_w = (here.max_w - origin.max_w).abs();
                worst_w = Some(worst_w.unwrap_or(0.0).max(off_w));
            }
            let means = points_of(metered, fit.part);
            let r2_of_means = (!means.is_empty()).then(|| Metered::r2_of_means(&means));
            let published = published_r2(metered, fit.part);
            table.row(cells![
                metered.label(),
                fit.part.to_string(),
                here.map(|it| it.sigma),
                origin.map(|it| it.sigma),
                here.map(|it| it.max_w),
                origin.map(|it| it.max_w),
                fit.r_squared,
                r2_of_means,
                published,
            ]);
            if let Some(value) = published {
                let what = format!("{}, {}, R²", metered.label(), fit.part);
                let stated = Reference::stated(DOCUMENT, "section 6.3.3");
                let here = r2_of_means.unwrap_or(fit.r_squared);
                record.compare(what, value, "", stated, Some(here));
            }
        }
    }
    record.tables.push(table);
    // The thesis draws the first of its servers.
    let first = &metered[0];
    let (chart, points) = drawings(first, is_shown);
    record.charts.push(chart);
    record.tables.push(points);
    if let Some(spread) = worst_w.and_then(|it| Spread::of(&[it])) {
        let what = "fully utilized cores differ from what was drawn by";
        record.judge(what, "W", Bound::AtMost(WITHIN_W), spread);
    }
    record.note(format!(
        "Means of the samples of a load have 95 % intervals of {:.2} W to each side at most.",
        first.widest_w()
    ));
    Ok(record)
}

/// The points of a core: its utilization, the mean of the samples and the fitted watts.
fn points_of(metered: &Metered, part: Part) -> Vec<(f64, f64, f64)> {
    metered.curve(|load| match load {
        Activity::Cpu(it) => {
            let of = Part::Core {
                n: it.n_cores,
                frequency_hz: it.frequency_hz,
            };
            (of == part).then_some(it.utilization)
        }
        _ => None,
    })
}

/// Means of the samples and the fitted curves of a server.
fn drawings(metered: &Metered, is_shown: fn(u32) -> bool) -> (Chart, Table) {
    let title = format!("power of a core of the {}", metered.label());
    let mut chart = Chart::new(title, "utilization of the core", "W");
    let columns = ["core", "utilization"].map(Column::new).into_iter();
    let watts = ["mean, W", "fitted, W"].map(|it| Column::fixed(it, 2));
    let title = format!("Points of the {}", metered.label());
    let mut table = Table::new(title, columns.chain(watts));
    for fit in metered.fits() {
        let Part::Core { n, .. } = fit.part else {
            continue;
        };
        if !is_shown(n) {
            continue;
        }
        let label = fit.part.to_string();
        let idx = chart.lines.len();
        let fitted = format!("{label}, fitted");
        let points = points_of(metered, fit.part);
        for (x, mean_w, fitted_w) in points {
            chart.point(&label, x, mean_w);
            chart.point(&fitted, x, fitted_w);
            let numbers = [x, mean_w, fitted_w].map(Cell::from);
            table.row(cells![label.as_str()].into_iter().chain(numbers));
        }
        chart.line(&fitted).model_of = Some(idx);
    }
    (chart, table)
}
