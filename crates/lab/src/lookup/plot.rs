//! The drawing of a lookup experiment: time by number of prefixes.

use std::path::Path;

use anyhow::anyhow;
use plotters::prelude::*;

use super::LookupFigures;

/// A line of the drawing: its label, its colour, and its points.
type Series = (&'static str, RGBColor, Vec<(f64, f64)>);

/// Draws the medians, both axes logarithmic, as SVG.
pub(super) fn draw(figures: &LookupFigures, path: &Path) -> anyhow::Result<()> {
    let series: [Series; 4] = [
        (
            "one by one",
            RED,
            points(figures, |size| size.single_ns.median),
        ),
        (
            "in bursts",
            BLUE,
            points(figures, |size| size.burst_ns.median),
        ),
        (
            "hashing alone",
            GREEN,
            points(figures, |size| size.hash_ns.median),
        ),
        (
            "random read",
            BLACK,
            points(figures, |size| size.read_ns.median),
        ),
    ];
    let all = || {
        series
            .iter()
            .flat_map(|(_, _, points)| points.iter().copied())
    };
    let (min_x, max_x) = range(all().map(|(x, _)| x)).ok_or_else(|| anyhow!("no figures"))?;
    let (min_y, max_y) = range(all().map(|(_, y)| y)).ok_or_else(|| anyhow!("no figures"))?;
    let area = SVGBackend::new(path, (760, 480)).into_drawing_area();
    area.fill(&WHITE)?;
    let caption = format!("Longest-prefix match, {} components", figures.n_components);
    let mut chart = ChartBuilder::on(&area)
        .caption(caption, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(
            (min_x * 0.8..max_x * 1.25).log_scale(),
            (min_y * 0.8..max_y * 4.0).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("prefixes")
        .y_desc("nanoseconds")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .draw()?;
    for (label, color, points) in series {
        chart
            .draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
        chart.draw_series(
            points
                .iter()
                .map(|&point| Circle::new(point, 3, color.filled())),
        )?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

fn points(figures: &LookupFigures, value: impl Fn(&super::SizeFigures) -> f64) -> Vec<(f64, f64)> {
    let sizes = figures.sizes.iter();
    sizes
        .map(|size| (size.n_prefixes as f64, value(size)))
        .collect()
}

/// Least and greatest.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((min, max)) => Some((value.min(min), value.max(max))),
    })
}
