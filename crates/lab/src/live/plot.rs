//! The drawing: packets per second over the number of workers, the router's CPU time for a
//! packet, and how much more than the mean the busiest worker has.

use std::path::Path;

use anyhow::anyhow;
use plotters::prelude::*;

use super::{Report, Row};
use tachonym_loadgen::live::{Feed, Rule};

/// One colour for each feed and rule.
const COLORS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(255, 127, 14),
    RGBColor(148, 103, 189),
    RGBColor(120, 120, 120),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type DrawError = Box<dyn std::error::Error>;

/// Writes a chart of the result to this SVG file.
pub(super) fn draw(report: &Report, path: &Path) -> anyhow::Result<()> {
    let area = SVGBackend::new(path, (1_200, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let parts = area.split_evenly((1, 3));
    type Value = fn(&Row) -> f64;
    let charts: [(&str, Value); 3] = [
        ("Thousand packets/s", |row| row.pkts_per_s.median / 1e3),
        ("Router's CPU ns a packet", |row| row.cpu_ns_per_pkt.median),
        ("Busiest worker by mean", |row| row.busiest_by_mean.median),
    ];
    for (part, (caption, value)) in parts.iter().zip(charts) {
        draw_over_workers(report, part, caption, value).map_err(|error| anyhow!("{error}"))?;
    }
    area.present()?;
    Ok(())
}

/// Feeds and rules in the order of the rows.
fn series(report: &Report) -> Vec<(Feed, Rule)> {
    let mut series = Vec::new();
    for row in &report.rows {
        let key = (row.setting.feed, row.setting.dispatch);
        if !series.contains(&key) {
            series.push(key);
        }
    }
    series
}

fn draw_over_workers(
    report: &Report,
    area: &Area<'_>,
    caption: &str,
    value: fn(&Row) -> f64,
) -> Result<(), DrawError> {
    let most = report.rows.iter().map(|row| row.setting.n_workers).max();
    let most = most.unwrap_or(1);
    let max = report.rows.iter().map(value).fold(0.1, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..f64::from(most) + 0.5, 0.0..max * 1.4)?;
    chart
        .configure_mesh()
        .x_labels(usize::from(most) + 1)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .x_desc("workers")
        .draw()?;
    for (idx, (feed, dispatch)) in series(report).into_iter().enumerate() {
        let color = COLORS[idx % COLORS.len()];
        // Of one worker there is one row, whatever the rule.
        let rows = report.rows.iter().filter(|row| {
            let is_own = row.setting.dispatch == dispatch || row.setting.n_workers == 1;
            row.setting.feed == feed && is_own
        });
        let points: Vec<(f64, f64)> = rows
            .map(|row| (f64::from(row.setting.n_workers), value(row)))
            .collect();
        chart
            .draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?
            .label(format!("{feed}, {dispatch}"))
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 12, y + 4)], color.filled()));
        chart.draw_series(points.iter().map(|&at| Circle::new(at, 3, color.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}
