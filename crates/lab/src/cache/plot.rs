//! Drawings: lines over a common axis.

use std::path::Path;

use anyhow::anyhow;
use plotters::prelude::*;

/// A line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// The line whose colour it has, interrupted: what a model expects of the other.
    pub(crate) model_of: Option<usize>,
}

impl Line {
    /// Without points.
    pub(crate) const fn new(label: String) -> Self {
        Self {
            label,
            points: Vec::new(),
            model_of: None,
        }
    }
}

/// How far apart values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// By their differences.
    Linear,
    /// By their ratios; they are above 0.
    Log,
}

impl Axis {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.log10(),
        }
    }
}

/// A chart of several lines.
pub(crate) struct Chart {
    pub(crate) x_axis: Axis,
    pub(crate) title: String,
    /// What the axes tell, and in what units.
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) lines: Vec<Line>,
    /// Published values, each with the line it belongs to: crosses.
    pub(crate) published: Vec<(usize, (f64, f64))>,
}

impl Chart {
    /// A chart of labelled points, without any that are published.
    pub(crate) fn of_lines(
        title: impl Into<String>,
        x: &str,
        y: &str,
        lines: Vec<(String, Vec<(f64, f64)>)>,
    ) -> Self {
        let lines = lines.into_iter().map(|(label, points)| Line {
            points,
            ..Line::new(label)
        });
        Self {
            x_axis: Axis::Linear,
            title: title.into(),
            x: x.to_owned(),
            y: y.to_owned(),
            lines: lines.collect(),
            published: Vec::new(),
        }
    }
}

/// Colours that are told apart on white, also by many who see some of them as one.
const COLORS: [RGBColor; 10] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(255, 127, 14),
    RGBColor(148, 103, 189),
    RGBColor(0, 0, 0),
    RGBColor(23, 190, 207),
    RGBColor(140, 86, 75),
    RGBColor(227, 119, 194),
    RGBColor(127, 127, 127),
];

const WIDTH_PX: u32 = 560;
const HEIGHT_PX: u32 = 460;
/// Height of the legend, for each line of it.
const LEGEND_PX: u32 = 18;
/// Lines of the legend that stand above each other.
const LEGEND_ROWS: usize = 5;

/// Draws charts side by side as SVG, each with its legend below.
pub(crate) fn draw(charts: &[Chart], path: &Path) -> anyhow::Result<()> {
    let n_charts = charts.len().max(1);
    let n_rows = charts.iter().map(legend_rows).max().unwrap_or(0);
    let height = HEIGHT_PX + LEGEND_PX * n_rows as u32 + 12;
    let area = SVGBackend::new(path, (WIDTH_PX * n_charts as u32, height)).into_drawing_area();
    area.fill(&WHITE)?;
    for (chart, part) in charts.iter().zip(area.split_evenly((1, n_charts))) {
        let (above, below) = part.split_vertically(HEIGHT_PX);
        draw_one(chart, &above).map_err(|error| anyhow!("{error}"))?;
        draw_legend(chart, &below).map_err(|error| anyhow!("{error}"))?;
    }
    area.present()?;
    Ok(())
}

fn n_entries(chart: &Chart) -> usize {
    chart.lines.len() + usize::from(!chart.published.is_empty())
}

fn legend_rows(chart: &Chart) -> usize {
    let n = n_entries(chart);
    if n <= LEGEND_ROWS { n } else { n.div_ceil(2) }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type DrawError = Box<dyn std::error::Error>;

fn color_of(chart: &Chart, idx: usize) -> RGBColor {
    let idx = chart.lines[idx].model_of.unwrap_or(idx);
    COLORS[idx % COLORS.len()]
}

/// As many digits as tell ticks apart.
fn tick(value: f64, span: f64) -> String {
    match span {
        _ if span >= 10.0 => format!("{value:.0}"),
        _ if span >= 1.0 => format!("{value:.1}"),
        _ if span >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Two digits that count.
fn round_tick(value: f64) -> String {
    let unit = 10_f64.powf(value.abs().max(1e-300).log10().floor() - 1.0);
    let rounded = (value / unit).round() * unit;
    match rounded {
        _ if rounded >= 10.0 => format!("{rounded:.0}"),
        _ if rounded >= 1.0 => format!("{rounded:.1}"),
        _ => format!("{rounded:.3}"),
    }
}

fn draw_one(chart: &Chart, area: &Area<'_>) -> Result<(), DrawError> {
    let placed = |&(x, y): &(f64, f64)| (chart.x_axis.place(x), y);
    let of_lines = chart.lines.iter().flat_map(|line| &line.points);
    let points: Vec<(f64, f64)> = of_lines
        .chain(chart.published.iter().map(|(_, point)| point))
        .map(placed)
        .collect();
    let max_x = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let min_x = points.iter().map(|point| point.0).fold(max_x, f64::min);
    let max_y = points.iter().map(|point| point.1).fold(1e-9, f64::max) * 1.05;
    let margin = (max_x - min_x).max(1e-9) * 0.02;
    let mut drawn = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(min_x - margin..max_x + margin, 0.0..max_y)?;
    drawn
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .x_label_formatter(&|x| match chart.x_axis {
            Axis::Linear => tick(*x, (max_x - min_x) * 2.0),
            Axis::Log => round_tick(10_f64.powf(*x)),
        })
        .y_label_formatter(&|y| tick(*y, max_y))
        .label_style(("sans-serif", 13))
        .draw()?;
    for (idx, line) in chart.lines.iter().enumerate() {
        let color = color_of(chart, idx);
        let points = || line.points.iter().map(placed);
        if line.model_of.is_some() {
            drawn.draw_series(DashedLineSeries::new(points(), 6, 4, color.stroke_width(2)))?;
            continue;
        }
        drawn.draw_series(LineSeries::new(points(), color.stroke_width(2)))?;
        drawn.draw_series(points().map(|point| Circle::new(point, 3, color.filled())))?;
    }
    let crosses = chart.published.iter().map(|(idx, point)| {
        let style = color_of(chart, *idx).stroke_width(2);
        Cross::new(placed(point), 6, style)
    });
    drawn.draw_series(crosses)?;
    Ok(())
}

fn draw_legend(chart: &Chart, area: &Area<'_>) -> Result<(), DrawError> {
    let n_rows = legend_rows(chart).max(1);
    let place = |idx: usize| {
        let column = (idx / n_rows) as i32;
        let row = (idx % n_rows) as i32;
        (76 + column * 240, 8 + row * LEGEND_PX as i32)
    };
    let text = |label: &str, (x, y): (i32, i32)| {
        Text::new(
            label.to_owned(),
            (x + 34, y - 6),
            ("sans-serif", 13).into_font(),
        )
    };
    for (idx, line) in chart.lines.iter().enumerate() {
        let (x, y) = place(idx);
        let style = color_of(chart, idx).stroke_width(2);
        let parts = if line.model_of.is_some() {
            vec![(x, x + 7), (x + 11, x + 18), (x + 22, x + 28)]
        } else {
            area.draw(&Circle::new((x + 14, y), 3, color_of(chart, idx).filled()))?;
            vec![(x, x + 28)]
        };
        for (from, to) in parts {
            area.draw(&PathElement::new(vec![(from, y), (to, y)], style))?;
        }
        area.draw(&text(&line.label, (x, y)))?;
    }
    if !chart.published.is_empty() {
        let (x, y) = place(chart.lines.len());
        area.draw(&Cross::new((x + 14, y), 6, BLACK.stroke_width(2)))?;
        area.draw(&text("published, in the colour of its policy", (x, y)))?;
    }
    Ok(())
}
