//! The drawing: bars of time per packet, for each number of threads, and packets per
//! second by the number of threads.

use std::path::Path;

use anyhow::anyhow;
use plotters::prelude::*;

use super::SchedulesReport;

/// One colour for each schedule.
const COLORS: [RGBColor; 5] = [
    RGBColor(120, 120, 120),
    RGBColor(214, 39, 40),
    RGBColor(255, 127, 14),
    RGBColor(44, 160, 44),
    RGBColor(31, 119, 180),
];

/// Writes a chart of the result to this SVG file.
pub(super) fn draw(report: &SchedulesReport, path: &Path) -> anyhow::Result<()> {
    let area = SVGBackend::new(path, (900, 460)).into_drawing_area();
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(560);
    draw_bars(report, &left).map_err(|error| anyhow!("{error}"))?;
    draw_rates(report, &right).map_err(|error| anyhow!("{error}"))?;
    area.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type DrawError = Box<dyn std::error::Error>;

/// For the least and the greatest number of threads: Interests, then Data.
fn draw_bars(report: &SchedulesReport, area: &Area<'_>) -> Result<(), DrawError> {
    let mut groups = Vec::new();
    let numbers = match report.by_threads.len() {
        0 | 1 => vec![0],
        n => vec![0, n - 1],
    };
    for idx in numbers {
        let schedules = &report.by_threads[idx];
        let threads = idx + 1;
        let of = |value: &dyn Fn(&super::ScheduleFigures) -> f64| -> Vec<f64> {
            schedules.iter().map(value).collect()
        };
        groups.push((format!("I-miss, {threads}"), of(&|s| s.miss_ns.median)));
        groups.push((format!("Data, {threads}"), of(&|s| s.data_ns.median)));
    }
    let max = groups
        .iter()
        .flat_map(|(_, bars)| bars)
        .copied()
        .fold(1.0, f64::max);
    let n_groups = groups.len();
    let mut chart = ChartBuilder::on(area)
        .caption("Time per packet, by threads", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..n_groups as f64, 0.0..max * 1.5)?;
    let label = |x: &f64| {
        let idx = *x as usize;
        let is_middle = (x.fract() - 0.5).abs() < 0.01;
        match groups.get(idx) {
            Some((label, _)) if is_middle => label.clone(),
            _ => String::new(),
        }
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(2 * n_groups + 1)
        .x_label_formatter(&label)
        .y_desc("nanoseconds")
        .draw()?;
    let names = report.by_threads.first().into_iter().flatten();
    for (idx, (name, color)) in names.zip(COLORS).enumerate() {
        let bars = groups.iter().enumerate().map(|(group, (_, bars))| {
            let x = group as f64 + 0.1 + 0.16 * idx as f64;
            Rectangle::new([(x, 0.0), (x + 0.14, bars[idx])], color.filled())
        });
        chart
            .draw_series(bars)?
            .label(&name.schedule)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 12, y + 4)], color.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}

fn draw_rates(report: &SchedulesReport, area: &Area<'_>) -> Result<(), DrawError> {
    let n_threads = report.by_threads.len();
    let max = report
        .by_threads
        .iter()
        .flatten()
        .map(|s| s.pkts_per_s / 1e6)
        .fold(0.1, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption("Packets per second", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..n_threads as f64 + 0.5, 0.0..max * 1.1)?;
    chart
        .configure_mesh()
        .x_labels(n_threads + 1)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .x_desc("threads")
        .y_desc("millions")
        .draw()?;
    for (idx, color) in COLORS.into_iter().enumerate() {
        let by_threads = report.by_threads.iter().enumerate();
        let points: Vec<(f64, f64)> = by_threads
            .filter_map(|(threads, schedules)| {
                let figures = schedules.get(idx)?;
                Some((threads as f64 + 1.0, figures.pkts_per_s / 1e6))
            })
            .collect();
        chart.draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?;
        chart.draw_series(points.iter().map(|&at| Circle::new(at, 3, color.filled())))?;
    }
    Ok(())
}
