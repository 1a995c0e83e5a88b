//! Drawings of what was measured.

use std::path::Path;

use anyhow::anyhow;
use plotters::prelude::*;

use super::{FibFigures, Figure, Row};

/// Points of a line.
type Line = (String, Vec<(f64, f64)>);

/// Draws a figure as SVG: lines where there are several sizes or numbers of threads, and
/// bars elsewhere.
pub(super) fn draw(figure: Figure, figures: &FibFigures, path: &Path) -> anyhow::Result<()> {
    let threads = |row: &Row| row.way.n_threads as f64;
    let rules = |row: &Row| row.table.n_rules as f64;
    let is_long = figures
        .rows
        .iter()
        .any(|row| rules(row) != rules(&figures.rows[0]));
    match figure {
        Figure::Threads => {
            let lines = lines(figures, threads, |row| row.mpps.median);
            draw_lines(
                figures.title,
                ("threads", "million names a second"),
                &lines,
                path,
            )
        }
        _ if is_long => {
            let lines = lines(figures, rules, |row| row.ns.median);
            draw_lines(figures.title, ("rules", "nanoseconds a name"), &lines, path)
        }
        _ => {
            let values: Vec<_> = figures
                .rows
                .iter()
                .map(|row| (row.series.clone(), row.ns.median))
                .collect();
            bars(figures.title, "nanoseconds a name", &values, path)
        }
    }
}

fn lines(figures: &FibFigures, x: impl Fn(&Row) -> f64, y: impl Fn(&Row) -> f64) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in &figures.rows {
        let point = (x(row), y(row));
        match lines.iter_mut().find(|(label, _)| *label == row.series) {
            Some((_, points)) => points.push(point),
            None => lines.push((row.series.clone(), vec![point])),
        }
    }
    lines
}

fn draw_lines(
    title: &str,
    (x, y): (&str, &str),
    lines: &[Line],
    path: &Path,
) -> anyhow::Result<()> {
    let all = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let max = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let (max_x, max_y) = (max(&mut all().map(|p| p.0)), max(&mut all().map(|p| p.1)));
    let min_x = all().map(|p| p.0).fold(max_x, f64::min);
    let area = SVGBackend::new(path, (1000, 560)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d((min_x * 0.9..max_x * 1.1).log_scale(), 0.0..max_y * 1.6)?;
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .draw()?;
    for (idx, (label, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(idx).to_rgba();
        chart
            .draw_series(LineSeries::new(
                points.iter().copied(),
                color.stroke_width(2),
            ))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
        let dots = points
            .iter()
            .map(|&point| Circle::new(point, 3, color.filled()));
        chart.draw_series(dots)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(("sans-serif", 11))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Draws a bar for each value, from the left.
pub(super) fn bars(
    title: &str,
    unit: &str,
    values: &[(String, f64)],
    path: &Path,
) -> anyhow::Result<()> {
    let max = values.iter().map(|value| value.1).fold(0.0, f64::max);
    let min = values.iter().map(|value| value.1).fold(0.0, f64::min);
    if values.is_empty() {
        return Err(anyhow!("no figures"));
    }
    let height = 120 + 22 * values.len() as u32;
    let area = SVGBackend::new(path, (1000, height)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(40)
        .build_cartesian_2d(min * 1.1..(max * 1.1).max(1.0), values.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_desc(unit)
        .draw()?;
    for (idx, (label, value)) in values.iter().enumerate() {
        let top = idx as f64;
        let bar = [(0.0, top + 0.1), (*value, top + 0.9)];
        chart.draw_series([Rectangle::new(bar, BLUE.mix(0.3).filled())])?;
        let text = format!(" {label}: {value:.1}");
        let font = ("sans-serif", 12).into_font();
        chart.draw_series([Text::new(text, (0.0, top + 0.25), font)])?;
    }
    area.present()?;
    Ok(())
}
