//! The drawing: cycles of each block, by kind of packet, over the published ones.

use std::path::Path;

use anyhow::anyhow;
use plotters::prelude::*;

use super::report::BottleneckReport;

/// Height of a row, in which two bars are one over the other.
const ROW_PX: u32 = 30;

/// Figures of a block. What is published is a number or a span, of which the end is drawn.
struct Row {
    label: String,
    measured: f64,
    published: Option<String>,
}

impl Row {
    fn published_end(&self) -> Option<f64> {
        self.published.as_ref()?.rsplit('-').next()?.parse().ok()
    }
}

/// Writes a chart of the result to this SVG file.
pub(super) fn draw(report: &BottleneckReport, path: &Path) -> anyhow::Result<()> {
    let rows: Vec<Row> = report
        .kinds
        .iter()
        .flat_map(|kind| {
            let whole = Row {
                label: format!("{}, whole", kind.kind),
                measured: kind.ticks.median,
                published: Some(kind.published_cycles.to_string()),
            };
            let blocks = kind.blocks.iter().map(|block| Row {
                label: format!("{}, {}", kind.kind, block.block),
                measured: block.ticks.median,
                published: block.published_cycles.map(str::to_owned),
            });
            std::iter::once(whole).chain(blocks)
        })
        .collect();
    draw_rows(&rows, report.tick, path).map_err(|error| anyhow!("{error}"))
}

fn draw_rows(rows: &[Row], tick: &str, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let figures = rows
        .iter()
        .flat_map(|row| [row.measured, row.published_end().unwrap_or(0.0)]);
    let max = figures.fold(1.0, f64::max);
    let area = SVGBackend::new(path, (1000, 120 + ROW_PX * rows.len() as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(
            "A packet's way, by blocks: here, and in Takemasa 2019, Tables 3.1 and 5.1",
            ("sans-serif", 18),
        )
        .margin(16)
        .x_label_area_size(40)
        .build_cartesian_2d(0.0..max * 1.2, rows.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_desc(format!(
            "here {tick} per packet (blue), published cycles (grey)"
        ))
        .draw()?;
    for (idx, row) in rows.iter().enumerate() {
        let top = idx as f64;
        let bar = |from: f64, to: f64, length: f64, color: RGBAColor| {
            Rectangle::new([(0.0, top + from), (length, top + to)], color.filled())
        };
        chart.draw_series([bar(0.1, 0.5, row.measured, BLUE.mix(0.3))])?;
        if let Some(published) = row.published_end() {
            chart.draw_series([bar(0.5, 0.9, published, BLACK.mix(0.2))])?;
        }
        let published = row.published.as_ref();
        let published = published.map_or(String::new(), |cycles| format!(" ({cycles})"));
        let text = format!(" {}: {:.0}{published}", row.label, row.measured);
        let font = ("sans-serif", 12).into_font();
        chart.draw_series([Text::new(text, (0.0, top + 0.3), font)])?;
    }
    area.present()?;
    Ok(())
}
