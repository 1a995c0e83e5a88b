//! Drawings: lines over a common axis.

use std::path::Path;

use anyhow::anyhow;
use plotters::prelude::*;

/// A chart of several lines.
pub(super) struct Chart {
    pub(super) title: String,
    /// What the axes tell.
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    /// Each line's label and points.
    pub(super) lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Draws charts side by side as SVG.
pub(super) fn draw(charts: &[Chart], path: &Path) -> anyhow::Result<()> {
    let width = 560 * charts.len().max(1) as u32;
    let area = SVGBackend::new(path, (width, 460)).into_drawing_area();
    area.fill(&WHITE)?;
    for (chart, part) in charts
        .iter()
        .zip(area.split_evenly((1, charts.len().max(1))))
    {
        draw_one(chart, &part).map_err(|error| anyhow!("{error}"))?;
    }
    area.present()?;
    Ok(())
}

fn draw_one(
    chart: &Chart,
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || chart.lines.iter().flat_map(|(_, points)| points).copied();
    let max_x = points().map(|(x, _)| x).fold(0.0, f64::max);
    let min_x = points().map(|(x, _)| x).fold(max_x, f64::min);
    let max_y = points().map(|(_, y)| y).fold(1e-9, f64::max);
    let mut drawn = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(min_x..max_x.max(min_x + 1e-9), 0.0..max_y * 1.25)?;
    drawn
        .configure_mesh()
        .x_desc(chart.x)
        .y_desc(chart.y)
        .draw()?;
    for (idx, (label, points)) in chart.lines.iter().enumerate() {
        let color = Palette99::pick(idx).to_rgba();
        drawn
            .draw_series(LineSeries::new(
                points.iter().copied(),
                color.stroke_width(2),
            ))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
        let dots = points
            .iter()
            .map(|&point| Circle::new(point, 2, color.filled()));
        drawn.draw_series(dots)?;
    }
    drawn
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .label_font(("sans-serif", 11))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}
