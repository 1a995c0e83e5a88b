//! Figure 6 of Mansilha et al. 2017: throughput by the size of L2 (a), and by its rate (b).

use tachonym_bench::stats::Mean;
use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Need, Param, ParamKind, Record, Table, cells,
};

use super::bed::{
    BATCH, ROUNDS, SHRINK, Sizes, WARM, ensure_memory, first_bytes, gb, gbs, log_chart,
};
use super::catalogue::{Bytes, CHUNK_BYTES, Catalogue};
use super::dram::{Dram, OneByOne};
use super::emulated::{Delay, Memory};
use super::model::{self, Delays};
use super::published::stated;
use super::recipe::{
    AHEAD, DIRECTORY, EMULATED_STORE, Needs, PENDING, Pace, Recipe, STORE, StoreArgs,
};
use super::store::{Measured, measure, warm};
use super::workload::{Kind, Requests};

const REQUESTS: Param = Param::count(
    "requests",
    "requests of a round at most (published: all of the catalogue)",
    ["20k", "200k", "1250k"],
);

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "mansilha/figure-6a",
        title: "Throughput of both levels by the size of L2, up to 1 TB",
        source: "Mansilha et al. 2017, section 4.4.1",
        cost: Cost::minutes(0.3, 25.0),
        needs: &[Need::MemoryGib(2.2, 12.0)],
        params: &[
            gb("l1", "L1, GB", "10"),
            gbs(
                "l2",
                "L2, which is the catalogue, GB",
                [
                    "20,80",
                    "10,24,50,100,250,500,1000",
                    "10,24,50,100,250,500,1000",
                ],
            ),
            Param::new("rates", "rate of L2, Gbit/s", ParamKind::Numbers, ["4"; 3]),
            REQUESTS,
            SHRINK,
            ROUNDS,
            Param::seed(),
            WARM,
            BATCH,
            Param::choice(
                "memory",
                "memory of L2's packets: dynamic as published",
                &["static", "dynamic"],
                "dynamic",
            ),
            Delay::PARAM,
            STORE,
            AHEAD,
            PENDING,
            DIRECTORY,
        ],
        run: by_size,
    },
    Experiment {
        id: "mansilha/figure-6b",
        title: "Throughput of both levels by the rate of L2",
        source: "Mansilha et al. 2017, section 4.4.2",
        cost: Cost::minutes(0.1, 15.0),
        needs: &[Need::MemoryGib(2.4, 22.0)],
        params: &[
            gb("l1", "L1, GB", "1"),
            gb("l2", "L2, which is the catalogue, GB", "10"),
            Param::new(
                "rates",
                "rates of L2, Gbit/s",
                ParamKind::Numbers,
                ["1,64", "4,8,16,32,64", "4,8,16,32,64"],
            ),
            REQUESTS,
            SHRINK,
            ROUNDS,
            Param::seed(),
            WARM,
            BATCH,
            Memory::PARAM,
            Delay::PARAM,
            EMULATED_STORE,
            AHEAD,
            PENDING,
            DIRECTORY,
        ],
        run: by_rate,
    },
];

fn by_size(context: &Context) -> anyhow::Result<Record> {
    let bed = Bed::of(context)?;
    let rows = bed.take(&bed.sizes.all(context, "l2")?, Catalogue::of(bed.l1))?;
    let of_l2 = |row: &Row| Bytes(row.l2_bytes).gb();
    let mut record = bed.record(&rows, "Figure 6 (a)", "|L2|, GB", of_l2);
    let largest = rows.two_levels.last().and_then(|row| row.gbps.informed());
    let what = "largest L2: close to";
    record.compare(what, 4.0, "Gbit/s", stated("section 4.4.1"), largest);
    record.note(
        "Published: throughput falls with the logarithm of |L2|, and is above that of one level \
         from 24 GB on, where the machine of one level pages.",
    );
    Ok(record)
}

fn by_rate(context: &Context) -> anyhow::Result<Record> {
    let bed = Bed::of(context)?;
    let l2 = bed.sizes.one(context, "l2")?;
    let rows = bed.take(&[l2], Catalogue::of(l2))?;
    let mut record = bed.record(&rows, "Figure 6 (b)", "rate of L2, Gbit/s", |row| {
        row.rate_gbps
    });
    let at = |rate_gbps| {
        let mut rows = rows.two_levels.iter();
        rows.find(|row| row.rate_gbps == rate_gbps)?.gbps.informed()
    };
    let gain = at(64.0).zip(at(4.0)).map(|(fast, slow)| fast / slow);
    let what = "gain of 64 over 4 Gbit/s: less than";
    record.compare(what, 2.0, "", stated("section 4.4.2"), gain);
    record.note(
        "Published: the fastest L2 does not reach a store of one level. There a lookup takes longer \
         than a read, so that a faster L2 gains little; here reads are what takes the time.",
    );
    Ok(record)
}

struct Row {
    l2_bytes: u64,
    rate_gbps: f64,
    n_requests: u64,
    hit_ratio: Mean,
    expected_hit_ratio: f64,
    /// Bytes that were read from L2, by those of requests.
    read_by_asked: f64,
    gbps: Mean,
    /// Of L2 while it was busy.
    second_gbps: Option<Mean>,
    /// By equations 7 to 10, with a lookup as in one level, an insertion by the clock where it
    /// is known apart, as of the serial algorithm, and the model's hit ratio.
    expected_gbps: f64,
}

struct Rows {
    two_levels: Vec<Row>,
    /// One level with everything in it, asked one by one.
    one_level: Option<Mean>,
    one_level_bytes: u64,
}

struct Bed {
    sizes: Sizes,
    l1: Bytes,
    rates: Vec<f64>,
    max_requests: u64,
    memory: Memory,
    delay: Delay,
    store: StoreArgs,
}

impl Bed {
    fn of(context: &Context) -> anyhow::Result<Self> {
        let sizes = Sizes::of(context);
        Ok(Self {
            l1: sizes.one(context, "l1")?,
            rates: context.values.numbers("rates"),
            max_requests: context.count("requests"),
            memory: Memory::of(context),
            delay: Delay::of(context),
            store: StoreArgs::of(context),
            sizes,
        })
    }

    fn take(&self, l2: &[Bytes], one_level: Catalogue) -> anyhow::Result<Rows> {
        let one = self.one_level(one_level)?;
        let lookups: Vec<f64> = one.iter().map(Measured::chunk_ns).collect();
        let lookup_ns = Mean::of(&lookups).map_or(0.0, |mean| mean.mean);
        let mut two_levels = Vec::new();
        for &l2 in l2 {
            // The memory of one recipe is freed before the next is made.
            let needs = Needs {
                catalogue: Catalogue::of(l2),
                l1_chunks: self.l1.chunks(),
                n_stores: 1,
                batch_chunks: self.sizes.batch_chunks,
                memory: self.memory,
            };
            let recipe = Recipe::new(&self.store, &needs)?;
            for &rate_gbps in &self.rates {
                two_levels.extend(self.row(&recipe, rate_gbps, lookup_ns)?);
            }
        }
        Ok(Rows {
            two_levels,
            one_level: Mean::of(&one.iter().map(Measured::gbps).collect::<Vec<_>>()),
            one_level_bytes: one_level.size().0,
        })
    }

    fn record(&self, rows: &Rows, title: &str, x: &str, of: impl Fn(&Row) -> f64) -> Record {
        let mut record = Record::new(self.store.kind());
        let mut table = Table::new(
            "",
            [
                Column::new("L2, GB"),
                "L2, Gbit/s".into(),
                "Gbit/s while it was busy".into(),
                "requests".into(),
                Column::fixed("hits in L1", 4),
                Column::fixed("model", 4),
                Column::fixed("read / asked for", 3),
                "Gbit/s".into(),
                "by equations".into(),
                "by one level".into(),
            ],
        );
        let mut chart: Chart = log_chart(title, x, "Gbit/s");
        let one = rows.one_level;
        let one_size = Bytes(rows.one_level_bytes);
        for row in &rows.two_levels {
            table.row(cells![
                Bytes(row.l2_bytes).gb(),
                self.store.rate(row.rate_gbps),
                row.second_gbps,
                row.n_requests,
                row.hit_ratio,
                row.expected_hit_ratio,
                row.read_by_asked,
                row.gbps,
                row.expected_gbps,
                one.map(|one| row.gbps.mean / one.mean)
            ]);
            if let Some(gbps) = row.gbps.informed() {
                chart.point("two levels", of(row), gbps);
            }
            chart.point("by equations 7 to 10", of(row), row.expected_gbps);
            if let Some(one) = one {
                chart.point(&format!("one level of {one_size}"), of(row), one.mean);
            }
        }
        let name = format!("one level of {one_size}");
        let none = || None::<f64>;
        table.row(cells![
            name,
            none(),
            none(),
            none(),
            1.0,
            none(),
            none(),
            one,
            none(),
            1.0
        ]);
        record.tables.push(table);
        record.charts.push(chart);
        record.note(self.store.note(Some(self.memory), Some(self.delay)));
        record.note(format!("|L1| = {}, Real. {}", self.l1, self.sizes.note()));
        record
    }

    /// Everything in one level, asked one by one as two levels are.
    fn one_level(&self, catalogue: Catalogue) -> anyhow::Result<Vec<Measured>> {
        let n_chunks = catalogue.n_chunks();
        ensure_memory(first_bytes(n_chunks))?;
        let mut store = OneByOne::new(Dram::new(n_chunks as usize)?);
        let settings = self.sizes.settings(catalogue);
        let mut all = Requests::new(Kind::Seq, &settings, 0);
        warm(&mut store, &mut all, n_chunks, |_| true);
        let runs = self.sizes.seeds().map(|seed| {
            let mut requests = Requests::new(Kind::Real, &settings, seed);
            let n_requests = n_chunks.min(self.max_requests);
            measure(&mut store, &mut requests, n_requests, |_| true)
        });
        Ok(runs.collect())
    }

    fn row(&self, recipe: &Recipe, rate_gbps: f64, lookup_ns: f64) -> anyhow::Result<Option<Row>> {
        let catalogue = recipe.catalogue();
        let settings = self.sizes.settings(catalogue);
        // An L1 with room for everything gets everything.
        let l1_chunks = match self.l1.0 * 101 / 100 >= catalogue.size().0 {
            true => catalogue.n_chunks(),
            false => self.l1.chunks(),
        };
        let n_requests = catalogue.n_chunks().min(self.max_requests);
        let mut runs = Vec::new();
        for seed in self.sizes.seeds() {
            let delay = self.delay;
            let mut store = recipe.make(l1_chunks as usize, Pace { delay, rate_gbps })?;
            let mut requests = Requests::new(Kind::Real, &settings, seed);
            let n_warm = self.sizes.n_warm(l1_chunks);
            warm(&mut *store, &mut requests, n_warm, |_| true);
            let measured = measure(&mut *store, &mut requests, n_requests, |_| true);
            measured.counts.ensure_answered()?;
            runs.push(measured);
        }
        let of = |value: &dyn Fn(&Measured) -> Option<f64>| {
            Mean::of(&runs.iter().filter_map(value).collect::<Vec<_>>())
        };
        let sum = |value: fn(&Measured) -> u64| runs.iter().map(value).sum::<u64>();
        let batch_chunks = self.sizes.batch_chunks;
        let expected_hit_ratio = model::hit_ratio(Kind::Real, &settings, l1_chunks, batch_chunks);
        let second_gbps = of(&|run| run.counts.second_gbps());
        let read_gbps = match recipe.is_disk() {
            true => second_gbps.map_or(rate_gbps, |it| it.mean),
            false => rate_gbps,
        };
        let n_batches = sum(|run| run.counts.n_second);
        let delays = Delays {
            lookup_ns,
            insert_ns: sum(|run| run.counts.insert_ns) as f64 / n_batches.max(1) as f64,
            read_ns: model::read_ns(batch_chunks, read_gbps),
        };
        let hit_ratio = of(&|run| Some(run.counts.first_ratio()));
        let gbps = of(&|run| Some(run.gbps()));
        let asked_bytes = sum(|run| run.counts.n_requests) * CHUNK_BYTES;
        Ok(hit_ratio.zip(gbps).map(|(hit_ratio, gbps)| Row {
            l2_bytes: catalogue.size().0,
            rate_gbps,
            n_requests,
            hit_ratio,
            expected_hit_ratio,
            read_by_asked: sum(|run| run.counts.second_bytes) as f64 / asked_bytes.max(1) as f64,
            gbps,
            second_gbps,
            expected_gbps: delays.serial_gbps(1.0 - expected_hit_ratio),
        }))
    }
}
