//! Flow sizes by rank of the drawn traces, on which everything else of the chapter rests:
//! Figure 4.3. Also writes a drawn trace as a capture.

use std::path::Path;

use tachonym_bench::stats::LineFit;
use tachonym_bench::{
    Chart, Context, Cost, Experiment, Kind, Param, ParamKind, Record, Table, cells,
};

use super::traces;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/figure-4.3",
    title: "Flow sizes by rank of the traces",
    source: "Iqbal 2013, section 4.3.2, Figure 4.3",
    cost: Cost::minutes(0.1, 0.2),
    needs: &[],
    params: &[
        traces::drawn("caida 1,caida 2,auckland 1,auckland 2,large flow"),
        traces::FILE,
        traces::FORMAT,
        traces::COLUMN,
        Param::count("packets", "packets of each trace", ["100k", "3M", "30M"]),
        Param::new(
            "capture",
            "pcap file to which the first trace's packets are written; empty: none",
            ParamKind::Text,
            [""; 3],
        ),
        Param::seed(),
    ],
    run,
}];

/// Ranks of the tail whose slope is fitted.
const TAIL: std::ops::Range<usize> = 100..10_000;

fn run(context: &Context) -> anyhow::Result<Record> {
    let n_packets = context.count("packets");
    let mut record = Record::new(Kind::Simulated);
    let mut table = Table::new(
        "",
        "trace | flows | largest, % | largest 16, % | largest 1 %, % | one packet, % | \
            slope of the tail"
            .split(" | "),
    );
    let mut chart = Chart::new("Figure 4.3", "rank", "packets").log_log();
    for (nth, (name, mut trace)) in traces::all(context)?.into_iter().enumerate() {
        let path = context.text("capture");
        if nth == 0 && !path.is_empty() {
            traces::write_capture(Path::new(path), &mut trace.clone(), n_packets)?;
            context.note(format!(
                "{n_packets} packets of {name} were written to {path}"
            ));
        }
        let mut sizes = vec![0_u64; trace.n_flows() as usize];
        for _ in 0..n_packets {
            sizes[trace.next_flow().0 as usize] += 1;
        }
        sizes.retain(|&n| n > 0);
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let share = |flows: &[u64]| 100.0 * flows.iter().sum::<u64>() as f64 / n_packets as f64;
        let n_single = sizes.iter().filter(|&&n| n == 1).count();
        let tail = sizes.iter().enumerate().take(TAIL.end).skip(TAIL.start);
        let tail = tail.filter(|&(_, &n)| n > 4);
        let tail: Vec<_> = tail
            .map(|(rank, &n)| ((rank as f64 + 1.0).log10(), (n as f64).log10()))
            .collect();
        table.row(cells![
            &*name,
            sizes.len(),
            share(&sizes[..1]),
            share(&sizes[..sizes.len().min(16)]),
            share(&sizes[..sizes.len().div_ceil(100)]),
            100.0 * n_single as f64 / sizes.len() as f64,
            LineFit::of(&tail).map(|fit| fit.slope),
        ]);
        let mut rank = 1;
        while rank <= sizes.len() {
            chart.point(&name, rank as f64, sizes[rank - 1] as f64);
            rank += (rank / 5).max(1);
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(
        "Figure 4.3 has its values in a drawing without numbers that could be read: sizes that \
         fall along a straight line of both logarithmic axes.",
    );
    traces::note(context, &mut record);
    Ok(record)
}
