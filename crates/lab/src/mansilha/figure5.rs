//! Figure 5 and Table 4 of Mansilha et al. 2017: hit ratio of L1 and throughput of both levels
//! by the size of L1, beside the models, and the times of lookups and insertions that a fit
//! infers.

use tachonym_bench::stats::Mean;
use tachonym_bench::{
    Cell, Column, Context, Cost, Experiment, Line, Need, Param, ParamKind, Record, Table, cells,
};

use super::bed::{BATCH, ROUNDS, SHRINK, Sizes, WARM, gb, gbs, log_chart};
use super::catalogue::{Bytes, CHUNK_BYTES, Catalogue};
use super::emulated::{Delay, Memory};
use super::fit::{Fitted, Point, rmse};
use super::model::{self, Delays};
use super::published::{self, stated};
use super::recipe::{AHEAD, DIRECTORY, Needs, PENDING, Pace, Recipe, STORE, StoreArgs};
use super::store::{Measured, measure, warm};
use super::workload::{Kind, Requests};

const L2: Param = gb("l2", "L2, which is the catalogue, GB", "10");
const RATE: Param = Param::new("rate", "rate of L2, Gbit/s", ParamKind::Number, ["4"; 3]);
const WORKLOADS: Param = Param::choice(
    "workload",
    "which workloads",
    &["all", "seq", "real", "unif"],
    "all",
);

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "mansilha/figure-5",
        title: "Hit ratio of L1 and throughput by the size of L1, model and measured",
        source: "Mansilha et al. 2017, section 4.3.1",
        cost: Cost::minutes(1.6, 30.0),
        needs: &[Need::MemoryGib(3.2, 21.0)],
        params: &[
            gbs(
                "l1",
                "L1, GB",
                ["1,10", "0.1,0.5,1,2,4,6,8,10", "0.1,0.5,1,2,4,6,8,10"],
            ),
            L2,
            RATE,
            WORKLOADS,
            SHRINK,
            ROUNDS,
            Param::seed(),
            WARM,
            BATCH,
            Memory::PARAM,
            Delay::PARAM,
            STORE,
            AHEAD,
            PENDING,
            DIRECTORY,
        ],
        run: figure_5,
    },
    Experiment {
        id: "mansilha/table-4",
        title: "Times of a lookup and of the insertion of a batch, inferred by fitting the model",
        source: "Mansilha et al. 2017, section 4.3.2",
        cost: Cost::minutes(0.8, 20.0),
        needs: &[Need::MemoryGib(2.9, 19.0)],
        params: &[
            gbs("l1", "L1, GB", ["0.5,1,5", "0.1,1,4,8", "0.1,0.5,1,2,4,8"]),
            L2,
            RATE,
            WORKLOADS,
            SHRINK,
            ROUNDS,
            Param::seed(),
            WARM,
            BATCH,
            Memory::PARAM,
            Delay::PARAM,
            STORE,
            AHEAD,
            PENDING,
            DIRECTORY,
        ],
        run: table_4,
    },
];

/// A series of runs over sizes of L1.
struct Sweep {
    sizes: Sizes,
    store: StoreArgs,
    workloads: Vec<Kind>,
    l1: Vec<Bytes>,
    l2: Bytes,
    rate_gbps: f64,
    memory: Memory,
    delay: Delay,
}

/// One size of L1.
struct Row {
    l1_chunks: u64,
    hit_ratio: Mean,
    expected_hit_ratio: f64,
    gbps: Mean,
    /// Of L2 while it was busy.
    second_gbps: Option<Mean>,
    /// By equations 7 to 10 with the times fitted by time and the measured hit ratio.
    fitted_gbps: Option<f64>,
}

/// One workload.
struct Curve {
    kind: Kind,
    rows: Vec<Row>,
    /// By least squares of throughput, as published.
    by_throughput: Option<Fitted>,
    /// By least squares of the time without reads.
    by_time: Option<Fitted>,
    /// The insertion of a batch by the clock; `None` if it is not known apart.
    clocked_insert_ns: Option<f64>,
}

impl Sweep {
    fn of(context: &Context) -> anyhow::Result<Self> {
        let sizes = Sizes::of(context);
        let word = context.text("workload");
        let is_asked = |kind: &Kind| word == "all" || kind.label().eq_ignore_ascii_case(word);
        Ok(Self {
            store: StoreArgs::of(context),
            workloads: Kind::ALL.into_iter().filter(is_asked).collect(),
            l1: sizes.all(context, "l1")?,
            l2: sizes.one(context, "l2")?,
            rate_gbps: context.number("rate"),
            memory: Memory::of(context),
            delay: Delay::of(context),
            sizes,
        })
    }

    fn take(&self) -> anyhow::Result<Vec<Curve>> {
        let most = self.l1.iter().max().map_or(0, |l1| l1.chunks());
        let needs = Needs {
            catalogue: Catalogue::of(self.l2),
            l1_chunks: most,
            n_stores: 1,
            batch_chunks: self.sizes.batch_chunks,
            memory: self.memory,
        };
        let recipe = Recipe::new(&self.store, &needs)?;
        let curves = self.workloads.iter();
        curves.map(|&kind| self.curve(kind, &recipe)).collect()
    }

    fn curve(&self, kind: Kind, recipe: &Recipe) -> anyhow::Result<Curve> {
        let (mut points, mut rows) = (Vec::new(), Vec::new());
        let (mut insert_ns, mut n_batches) = (0, 0);
        for &l1 in &self.l1 {
            // The largest has room for everything, although contents are whole.
            let l1_chunks = match l1 >= self.l2 {
                true => recipe.catalogue().n_chunks(),
                false => l1.chunks(),
            };
            let runs = self.runs(kind, recipe, l1_chunks)?;
            for run in &runs {
                insert_ns += run.counts.insert_ns;
                n_batches += run.counts.n_second;
                points.push(point_of(run));
            }
            let of = |value: &dyn Fn(&Measured) -> Option<f64>| {
                Mean::of(&runs.iter().filter_map(value).collect::<Vec<_>>())
            };
            let hit_ratio = of(&|run| Some(run.counts.first_ratio()));
            let gbps = of(&|run| Some(run.gbps()));
            let settings = self.sizes.settings(recipe.catalogue());
            if let (Some(hit_ratio), Some(gbps)) = (hit_ratio, gbps) {
                rows.push(Row {
                    l1_chunks,
                    hit_ratio,
                    expected_hit_ratio: model::hit_ratio(
                        kind,
                        &settings,
                        l1_chunks,
                        self.sizes.batch_chunks,
                    ),
                    gbps,
                    second_gbps: of(&|run| run.counts.second_gbps()),
                    fitted_gbps: None,
                });
            }
        }
        if !self.store.is_one_by_one() {
            points.clear();
        }
        let by_time = Fitted::by_time(&points);
        for row in &mut rows {
            row.fitted_gbps = by_time.map(|fitted| self.fitted_gbps(&fitted, row));
        }
        Ok(Curve {
            kind,
            rows,
            by_throughput: Fitted::by_throughput(&points),
            by_time,
            clocked_insert_ns: (insert_ns > 0).then(|| insert_ns as f64 / n_batches.max(1) as f64),
        })
    }

    fn runs(&self, kind: Kind, recipe: &Recipe, l1_chunks: u64) -> anyhow::Result<Vec<Measured>> {
        let settings = self.sizes.settings(recipe.catalogue());
        let pace = Pace {
            delay: self.delay,
            rate_gbps: self.rate_gbps,
        };
        let run = |seed| {
            let mut store = recipe.make(l1_chunks as usize, pace)?;
            let mut requests = Requests::new(kind, &settings, seed);
            let n_warm = self.sizes.n_warm(l1_chunks);
            warm(&mut *store, &mut requests, n_warm, |_| true);
            let n_requests = recipe.catalogue().n_chunks();
            let measured = measure(&mut *store, &mut requests, n_requests, |_| true);
            measured.counts.ensure_answered()?;
            Ok(measured)
        };
        self.sizes.seeds().map(run).collect()
    }

    fn fitted_gbps(&self, fitted: &Fitted, row: &Row) -> f64 {
        let rate_gbps = match self.store.is_disk() {
            true => row.second_gbps.map_or(self.rate_gbps, |it| it.mean),
            false => self.rate_gbps,
        };
        let delays = Delays {
            lookup_ns: fitted.lookup_ns,
            insert_ns: fitted.insert_ns,
            read_ns: model::read_ns(self.sizes.batch_chunks, rate_gbps),
        };
        delays.serial_gbps(1.0 - row.hit_ratio.mean)
    }

    fn notes(&self, record: &mut Record) {
        record.note(self.store.note(Some(self.memory), Some(self.delay)));
        let l2 = Catalogue::of(self.l2).size();
        record.note(format!(
            "|L2| = |C| = {l2}; each run measures |C| requests. {}",
            self.sizes.note()
        ));
    }
}

fn point_of(measured: &Measured) -> Point {
    let counts = &measured.counts;
    Point {
        miss_ratio: 1.0 - counts.first_ratio(),
        read_ns: counts.second_ns as f64 / counts.n_second.max(1) as f64,
        gbps: measured.gbps(),
    }
}

/// The times that are fitted for Real with dynamic memory, for Figure 9 (a).
///
/// # Errors
/// If there is not as much memory.
pub(super) fn fitted_real(sizes: Sizes) -> anyhow::Result<Option<Fitted>> {
    let shrunk = |gb: f64| Bytes::of_gb(gb).map(|size| size.shrunk(sizes.shrink));
    let l1: anyhow::Result<_> = [0.5, 1.0, 2.0, 4.0, 8.0].into_iter().map(shrunk).collect();
    let sweep = Sweep {
        sizes,
        store: StoreArgs::serial(),
        workloads: vec![Kind::Real],
        l1: l1?,
        l2: shrunk(10.0)?,
        rate_gbps: 4.0,
        memory: Memory::Dynamic,
        delay: Delay::Counted,
    };
    Ok(sweep.take()?.into_iter().find_map(|it| it.by_time))
}

fn figure_5(context: &Context) -> anyhow::Result<Record> {
    let sweep = Sweep::of(context)?;
    let curves = sweep.take()?;
    let mut record = Record::new(sweep.store.kind());
    let mut table = Table::new(
        "",
        [
            Column::new("workload"),
            "L1, MB".into(),
            Column::fixed("hits in L1", 5),
            Column::fixed("model", 5),
            Column::fixed("off by", 5),
            "Gbit/s".into(),
            "fitted, Gbit/s".into(),
            "L2's Gbit/s while busy".into(),
        ],
    );
    let mut charts = [
        log_chart("Figure 5 (a)", "|L1|, GB", "hits in L1"),
        log_chart("Figure 5 (b)", "|L1|, GB", "Gbit/s"),
    ];
    for curve in &curves {
        let (kind, measured) = (curve.kind, charts[0].lines.len());
        for chart in &mut charts {
            chart.lines.push(Line::new(kind.label(), Vec::new()));
            let mut line = Line::new(format!("{kind}, model"), Vec::new());
            line.model_of = Some(measured);
            chart.lines.push(line);
        }
        for row in &curve.rows {
            let l1 = Bytes(row.l1_chunks * CHUNK_BYTES);
            let (hits, model) = (row.hit_ratio, row.expected_hit_ratio);
            table.row(cells![
                kind.label(),
                l1.gb() * 1e3,
                hits,
                model,
                hits.mean - model,
                row.gbps,
                row.fitted_gbps,
                row.second_gbps
            ]);
            let [hits_chart, rate_chart] = &mut charts;
            hits_chart.point(kind.label(), l1.gb(), hits.mean);
            hits_chart.point(&format!("{kind}, model"), l1.gb(), model);
            if let Some(gbps) = row.gbps.informed() {
                rate_chart.point(kind.label(), l1.gb(), gbps);
            }
            if let Some(gbps) = row.fitted_gbps {
                rate_chart.point(&format!("{kind}, model"), l1.gb(), gbps);
            }
        }
        let hits = curve.rows.iter();
        let hits = hits.map(|row| (row.hit_ratio.mean, row.expected_hit_ratio));
        record.compare(
            format!("root mean square error of {kind}'s hit ratio"),
            published::hit_rmse(kind),
            "",
            stated("section 4.3.1"),
            Some(rmse(hits)),
        );
    }
    record.tables.push(table);
    record.charts = charts.into();
    sweep.notes(&mut record);
    record.note(
        "With all of the catalogue in L1, Real misses what has not been asked for yet; the model \
         has it warm.",
    );
    Ok(record)
}

fn table_4(context: &Context) -> anyhow::Result<Record> {
    let sweep = Sweep::of(context)?;
    let curves = sweep.take()?;
    let mut record = Record::new(sweep.store.kind());
    let mut table = Table::new(
        "",
        [
            "workload",
            "fitted by",
            "lookup, µs",
            "insertion of a batch, µs",
            "insertion by the clock, µs",
            "RMSE",
        ],
    );
    for curve in &curves {
        let kind = curve.kind;
        let published = published::table_4(kind);
        let fits = [
            ("throughput, RMSE in Gbit/s", curve.by_throughput, 1.0),
            ("time, RMSE in µs", curve.by_time, 1e-3),
        ];
        for (by, fitted, unit) in fits {
            let clocked = curve.clocked_insert_ns.map(|ns| ns / 1e3);
            table.row(cells![
                kind.label(),
                by,
                fitted.map(|it| time(it.lookup_ns, it.lookup_error_ns)),
                fitted.map(|it| time(it.insert_ns, it.insert_error_ns)),
                clocked,
                fitted.map(|it| it.rmse * unit)
            ]);
        }
        let fitted = curve.by_throughput;
        for (what, (value, error), here) in [
            (
                "lookup",
                published.lookup_us,
                fitted.map(|it| (it.lookup_ns, it.lookup_error_ns)),
            ),
            (
                "insertion of a batch",
                published.insert_us,
                fitted.map(|it| (it.insert_ns, it.insert_error_ns)),
            ),
        ] {
            let here = here.filter(|(ns, error_ns)| error_ns < ns);
            record.compare(
                format!("{what}, {kind} (± {error})"),
                value,
                "µs",
                stated("Table 4"),
                here.map(|(ns, _)| ns / 1e3),
            );
        }
        let here = fitted.map(|it| it.rmse);
        let what = format!("RMSE of the fit, {kind} (no unit there)");
        record.compare(what, published.rmse, "", stated("Table 4"), here);
    }
    record.tables.push(table);
    sweep.notes(&mut record);
    if !sweep.store.is_one_by_one() {
        record.note("Interests do not wait for each other here, so there is nothing to fit.");
    }
    record.note(
        "± is the asymptotic standard error. Throughput is fitted as published; it counts most \
         where it is highest, and there hardly anything is inserted: an insertion whose error \
         exceeds it is named as no information. Time without reads gives more weight to misses. \
         The equations take a lookup to be as long at any size of L1; here it waits longer for \
         memory in a larger L1.",
    );
    Ok(record)
}

/// A time with its standard error, in microseconds; no information if the error is larger.
fn time(value_ns: f64, error_ns: f64) -> Cell {
    Cell::from(Mean {
        mean: value_ns / 1e3,
        half_width: Some(error_ns / 1e3),
    })
}
