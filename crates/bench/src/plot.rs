//! Drawings: lines or bars over a common axis, with published points as crosses.

use anyhow::anyhow;
use plotters::prelude::*;
use serde::{Deserialize, Serialize};

/// A line of a chart, or the bars of one colour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its text in the legend.
    pub label: String,
    /// Its points, x and y. In a chart of bars, x is the index of the group.
    pub points: Vec<(f64, f64)>,
    /// The line whose colour it has, interrupted: what a model expects of the other.
    pub model_of: Option<usize>,
    /// Points that a document publishes for it: crosses.
    #[serde(default)]
    pub published: Vec<(f64, f64)>,
}

impl Line {
    /// A line through points.
    #[must_use]
    pub fn new(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            label: label.into(),
            points,
            model_of: None,
            published: Vec::new(),
        }
    }
}

/// How values are placed along the x axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// By their differences.
    Linear,
    /// By their ratios; they are above 0.
    Log,
    /// Bars in groups with these labels, instead of lines.
    Groups(Vec<String>),
}

impl Axis {
    fn place(&self, value: f64) -> f64 {
        match self {
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
            Self::Linear | Self::Groups(_) => value,
        }
    }
}

/// A chart of several lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How the x axis is divided.
    pub x_axis: Axis,
    /// What the x axis shows, with its unit.
    pub x: String,
    /// What the y axis shows, with its unit.
    pub y: String,
    /// Whether the y axis is divided by ratios, too; values are above 0.
    #[serde(default)]
    pub y_is_log: bool,
    /// Its lines.
    pub lines: Vec<Line>,
}

impl Chart {
    /// A chart with a linear axis and no line yet.
    #[must_use]
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x_axis: Axis::Linear,
            x: x.into(),
            y: y.into(),
            y_is_log: false,
            lines: Vec::new(),
        }
    }

    /// The same with both axes divided by ratios.
    #[must_use]
    pub fn log_log(self) -> Self {
        Self {
            x_axis: Axis::Log,
            y_is_log: true,
            ..self
        }
    }

    /// A chart of bars: a group for each of `groups`.
    #[must_use]
    pub fn bars(
        title: impl Into<String>,
        groups: impl IntoIterator<Item = impl Into<String>>,
        y: impl Into<String>,
    ) -> Self {
        Self {
            x_axis: Axis::Groups(groups.into_iter().map(Into::into).collect()),
            ..Self::new(title, "", y)
        }
    }

    /// The line with this label, added if there is none.
    pub fn line(&mut self, label: &str) -> &mut Line {
        let idx = self.lines.iter().position(|line| line.label == label);
        let idx = idx.unwrap_or_else(|| {
            self.lines.push(Line::new(label, Vec::new()));
            self.lines.len() - 1
        });
        &mut self.lines[idx]
    }

    /// Adds a point to the line with this label.
    pub fn point(&mut self, label: &str, x: f64, y: f64) {
        if y.is_finite() {
            self.line(label).points.push((x, y));
        }
    }

    /// Adds a published point to the line with this label.
    pub fn published(&mut self, label: &str, x: f64, y: f64) {
        self.line(label).published.push((x, y));
    }
}

/// Colours that differ on white, for most colour-blind readers as well.
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

/// Draws a chart as SVG, with its legend below.
///
/// # Errors
/// If the plotting library cannot draw it, such as for values that are not finite.
pub fn svg(chart: &Chart) -> anyhow::Result<String> {
    let height = HEIGHT_PX + LEGEND_PX * legend_rows(chart) as u32 + 12;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH_PX, height)).into_drawing_area();
        area.fill(&WHITE)?;
        let (above, below) = area.split_vertically(HEIGHT_PX);
        draw_chart(chart, &above).map_err(|error| anyhow!("{error}"))?;
        draw_legend(chart, &below).map_err(|error| anyhow!("{error}"))?;
        area.present()?;
    }
    Ok(text)
}

fn has_published(chart: &Chart) -> bool {
    chart.lines.iter().any(|line| !line.published.is_empty())
}

fn legend_rows(chart: &Chart) -> usize {
    let n = chart.lines.len() + usize::from(has_published(chart));
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

/// The part of a group's width that its bars take.
const BARS_WIDTH: f64 = 0.8;

/// Where a bar of a group begins, and its width.
fn bar(group: f64, line: usize, n_lines: usize) -> (f64, f64) {
    let width = BARS_WIDTH / n_lines.max(1) as f64;
    (group - BARS_WIDTH / 2.0 + width * line as f64, width)
}

fn draw_chart(chart: &Chart, area: &Area<'_>) -> Result<(), DrawError> {
    let y_axis = match chart.y_is_log {
        true => Axis::Log,
        false => Axis::Linear,
    };
    let placed = |&(x, y): &(f64, f64)| (chart.x_axis.place(x), y_axis.place(y));
    let is_bars = matches!(chart.x_axis, Axis::Groups(_));
    let all = |line: &'_ Line| [line.points.clone(), line.published.clone()].concat();
    let points: Vec<(f64, f64)> = chart
        .lines
        .iter()
        .flat_map(all)
        .map(|it| placed(&it))
        .collect();
    let max_x = points
        .iter()
        .map(|point| point.0)
        .fold(f64::NEG_INFINITY, f64::max);
    let min_x = points
        .iter()
        .map(|point| point.0)
        .fold(f64::INFINITY, f64::min);
    let max_y = points.iter().map(|point| point.1).fold(1e-9, f64::max) * 1.05;
    let min_y = points.iter().map(|point| point.1).fold(0.0, f64::min) * 1.05;
    let axis_tick = |axis: &Axis, value: f64, span: f64| match axis {
        Axis::Log => round_tick(10_f64.powf(value)),
        Axis::Linear | Axis::Groups(_) => tick(value, span),
    };
    let (min_x, max_x) = match &chart.x_axis {
        Axis::Groups(groups) => (-0.5, groups.len().max(1) as f64 - 0.5),
        _ if points.is_empty() => (0.0, 1.0),
        _ => {
            let margin = (max_x - min_x).max(1e-9) * 0.02;
            (min_x - margin, max_x + margin)
        }
    };
    let mut drawn = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(min_x..max_x, min_y..max_y)?;
    let n_labels = match &chart.x_axis {
        Axis::Groups(groups) => groups.len() * 2 + 1,
        _ => 10,
    };
    drawn
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .x_labels(n_labels)
        .x_label_formatter(&|x| match &chart.x_axis {
            axis @ (Axis::Linear | Axis::Log) => axis_tick(axis, *x, (max_x - min_x) * 2.0),
            Axis::Groups(groups) => {
                let is_middle = (x - x.round()).abs() < 0.01 && *x >= 0.0;
                let label = groups.get(x.round().max(0.0) as usize);
                label.filter(|_| is_middle).cloned().unwrap_or_default()
            }
        })
        .y_label_formatter(&|y| axis_tick(&y_axis, *y, max_y - min_y))
        .label_style(("sans-serif", 13))
        .draw()?;
    for (idx, line) in chart.lines.iter().enumerate() {
        let color = color_of(chart, idx);
        let points = || line.points.iter().map(placed);
        if is_bars {
            let rectangle = |(x, y)| {
                let (from, width) = bar(x, idx, chart.lines.len());
                Rectangle::new([(from, 0.0), (from + width, y)], color.filled())
            };
            drawn.draw_series(points().map(rectangle))?;
        } else if line.model_of.is_some() {
            drawn.draw_series(DashedLineSeries::new(points(), 6, 4, color.stroke_width(2)))?;
        } else {
            drawn.draw_series(LineSeries::new(points(), color.stroke_width(2)))?;
            drawn.draw_series(points().map(|point| Circle::new(point, 3, color.filled())))?;
        }
        let crosses = line.published.iter().map(|point| {
            let (x, y) = placed(point);
            let (from, width) = bar(x, idx, chart.lines.len());
            let (x, color) = match is_bars {
                true => (from + width / 2.0, BLACK),
                false => (x, color),
            };
            Cross::new((x, y), 6, color.stroke_width(2))
        });
        drawn.draw_series(crosses)?;
    }
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
    if has_published(chart) {
        let (x, y) = place(chart.lines.len());
        area.draw(&Cross::new((x + 14, y), 6, BLACK.stroke_width(2)))?;
        area.draw(&text("published", (x, y)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_shows_its_labels_and_published_points() {
        let mut chart = Chart::new("rates", "threads", "Mpps");
        chart.point("measured", 1.0, 2.0);
        chart.point("measured", 2.0, 3.9);
        chart.point("measured", 3.0, f64::NAN);
        chart.published("measured", 2.0, 4.1);
        let drawing = svg(&chart).expect("it can be drawn");
        for part in ["<svg", "rates", "threads", "Mpps", "measured", "published"] {
            assert!(drawing.contains(part), "{part}");
        }
        assert_eq!(
            chart.lines[0].points.len(),
            2,
            "what is not a number is left out"
        );
    }

    #[test]
    fn bars_stand_in_groups_with_labels() {
        let mut chart = Chart::bars("cycles", ["LRU", "ARC"], "cycles");
        for (group, value) in [(0.0, 5.0), (1.0, 7.0)] {
            chart.point("hit", group, value);
            chart.point("miss", group, value + 1.0);
        }
        let drawing = svg(&chart).expect("it can be drawn");
        assert!(drawing.contains("ARC") && drawing.contains("<rect"));
        let (from, width) = bar(1.0, 1, 2);
        assert!((from - 1.0).abs() < 1e-12 && (width - 0.4).abs() < 1e-12);
    }

    #[test]
    fn both_axes_may_be_divided_by_ratios() {
        let mut chart = Chart::new("sizes", "rank", "packets").log_log();
        chart.point("trace", 1.0, 1e6);
        chart.point("trace", 1e5, 1.0);
        let drawing = svg(&chart).expect("it can be drawn");
        assert!(drawing.contains("1000000\n"), "a tick at 10^6");
    }

    #[test]
    fn an_empty_chart_can_be_drawn() {
        svg(&Chart::new("nothing", "x", "y")).expect("axes without lines");
    }
}
