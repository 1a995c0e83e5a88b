//! How well aggressive flows are told: Figures 4.6 to 4.8.

use tachonym_bench::turns::in_parallel;
use tachonym_bench::{
    Axis, Chart, Context, Cost, Experiment, Kind, Param, Record, Reference, Table, cells,
};
use tachonym_dispatch::baselines::ExactTop;
use tachonym_dispatch::{Detector, DetectorConfig, ServiceId};
use tachonym_sim::traffic::{Trace, key_of};

use super::simulation::IQBAL;
use super::traces;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/figure-4.6",
    title: "False positives of the aggressive flow detector",
    source: "Iqbal 2013, section 4.5.1, Figures 4.6 to 4.8",
    cost: Cost::minutes(0.1, 2.0),
    needs: &[],
    params: &[
        traces::drawn("caida 1,caida 2,auckland 1,auckland 2,names"),
        traces::FILE,
        traces::FORMAT,
        traces::COLUMN,
        Param::count("packets", "packets of each trace", ["40k", "3M", "60M"]),
        Param::count("tracked", "flows tracked", ["16"; 3]),
        Param::seed(),
    ],
    run,
}];

const ANNEXES: [usize; 6] = [64, 128, 256, 512, 1_024, 2_048];
const WINDOWS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
const SAMPLES: [u32; 5] = [1, 10, 100, 1_000, 10_000];

/// The parts of the flows held to be aggressive that are not among the top; `None` if there
/// are no such flows, or no window ended.
struct FalsePositives {
    by_annex: Vec<Option<f64>>,
    /// Against a top that is as much larger as 20 is than 16.
    by_annex_of_more: Vec<Option<f64>>,
    /// Mean over the ends of windows.
    by_window: Vec<Option<f64>>,
    by_sample: Vec<Option<f64>>,
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let traces = traces::all(context)?;
    let (n_packets, n_tracked) = (context.count("packets"), context.size("tracked"));
    let found = in_parallel(traces.len(), |nth| {
        measure(&mut traces[nth].1.clone(), n_packets, n_tracked)
    })?;
    let mut record = Record::new(Kind::Simulated);
    let figures = [
        ("Figure 4.6", "flows in the annex cache"),
        ("Figure 4.7", "packets of a window"),
        ("Figure 4.8", "one packet sampled in"),
    ];
    for (figure, (title, x)) in figures.into_iter().enumerate() {
        let mut columns = vec!["trace", x, "false positives"];
        columns.extend((figure == 0).then_some("within a quarter more"));
        let mut table = Table::new(title, columns);
        let mut chart = Chart::new(title, x, "false positives");
        chart.x_axis = Axis::Log;
        for ((name, _), found) in traces.iter().zip(&found) {
            let (xs, parts): (Vec<u64>, _) = match figure {
                0 => (ANNEXES.map(|n| n as u64).to_vec(), &found.by_annex),
                1 => (WINDOWS.to_vec(), &found.by_window),
                _ => (SAMPLES.map(u64::from).to_vec(), &found.by_sample),
            };
            let points = xs.into_iter().zip(parts.iter().copied());
            for (nth, (x, part)) in points.enumerate() {
                let mut row = cells![&**name, x, part].to_vec();
                row.extend((figure == 0).then(|| found.by_annex_of_more[nth].into()));
                table.row(row);
                chart.point(name, x as f64, part.unwrap_or(f64::NAN));
            }
        }
        record.tables.push(table);
        record.charts.push(chart);
    }
    compare(&mut record);
    record.note(
        "Figure 4.6: at the end, by the size of the annex cache. Figure 4.7: against the top so \
         far, at the ends of windows. Figure 4.8: at the end; as many packets pass as without \
         sampling, so that few of them are looked at. Published: one in 1000 is no worse than all.",
    );
    traces::note(context, &mut record);
    Ok(record)
}

/// What the text says, beside what is in the tables.
fn compare(record: &mut Record) {
    let place = Reference::inferred(IQBAL, "section 4.5.1");
    for (trace, n_wrong) in [
        ("caida 1", 2.0),
        ("caida 2", 3.0),
        ("auckland 1", 0.0),
        ("auckland 2", 0.0),
    ] {
        let here = record.tables[0].number(&[trace, "512"], "false positives");
        let what = format!("false positives, annex cache of 512, {trace}");
        record.compare(what, n_wrong / 16.0, "", place, here);
    }
    let most = |table: &Table| {
        table
            .rows
            .iter()
            .filter_map(|row| row[2].number())
            .reduce(f64::max)
    };
    let at_windows = most(&record.tables[1]);
    let place = Reference::stated(IQBAL, "section 4.5.1");
    record.compare(
        "most false positives at the end of a window, below",
        0.1,
        "",
        place,
        at_windows,
    );
}

/// How many of the aggressive flows are not among the top, by all of them.
fn false_positives(detector: &Detector, top: &ExactTop) -> Option<f64> {
    let (mut n, mut n_false) = (0_u32, 0_u32);
    for it in detector.aggressive() {
        n += 1;
        n_false += u32::from(!top.contains(it.key));
    }
    (n > 0).then(|| f64::from(n_false) / f64::from(n))
}

fn measure(trace: &mut Trace, n_packets: u64, n_tracked: usize) -> anyhow::Result<FalsePositives> {
    let published = DetectorConfig {
        n_aggressive: n_tracked,
        ..DetectorConfig::default()
    };
    let of_annexes = ANNEXES.map(|n_annex| DetectorConfig {
        n_annex,
        ..published
    });
    let of_samples = SAMPLES.map(|sample_every| DetectorConfig {
        sample_every,
        ..published
    });
    let made = |configs: &[DetectorConfig]| -> Result<Vec<_>, _> {
        configs
            .iter()
            .map(|&config| Detector::new(config))
            .collect()
    };
    let mut by_annex = made(&of_annexes)?;
    let mut by_sample = made(&of_samples)?;
    let mut top = ExactTop::new(n_tracked);
    let mut wider = ExactTop::new(n_tracked * 5 / 4);
    let mut sums = [(0.0, 0_u32); WINDOWS.len()];
    for n in 1..=n_packets {
        let key = key_of(trace.next_flow().0);
        top.handle_packet(key);
        wider.handle_packet(key);
        for detector in by_annex.iter_mut().chain(&mut by_sample) {
            detector.handle_packet(ServiceId(0), key);
        }
        for (window, sum) in WINDOWS.iter().zip(&mut sums) {
            if n.is_multiple_of(*window) {
                // The first sample rate takes every packet, with an annex cache of 512.
                let part = false_positives(&by_sample[0], &top);
                sum.0 += part.unwrap_or_default();
                sum.1 += u32::from(part.is_some());
            }
        }
    }
    let at_end = |detectors: &[Detector], top| {
        detectors
            .iter()
            .map(|it| false_positives(it, top))
            .collect()
    };
    Ok(FalsePositives {
        by_annex: at_end(&by_annex, &top),
        by_annex_of_more: at_end(&by_annex, &wider),
        by_window: sums
            .map(|(sum, n)| (n > 0).then(|| sum / f64::from(n)))
            .to_vec(),
        by_sample: at_end(&by_sample, &top),
    })
}
