//! Several workers, each with both levels of its own and its share of the names: Figures 7,
//! 8 (b) and 9 (b) of Mansilha et al. 2017.
//!
//! Workers run at the same time as long as each has a processor. More of them run one after
//! another, as if each had a processor of its own: what they would take from each other of
//! memory and bus is not in such a figure, and the record says which ones they are. On a disk
//! all run at the same time. The throughput is that of all requests in the time of the slowest
//! worker, because the paper measures the time to process a workload.

use std::sync::Barrier;
use std::thread;

use anyhow::{Context as _, anyhow};
use tachonym_bench::cpu::{self, Pinned};
use tachonym_bench::stats::Mean;
use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Need, Param, ParamKind, Record, Table, cells,
};

use super::bed::{BATCH, ROUNDS, SHRINK, Sizes, WARM, ensure_memory, first_bytes, gb};
use super::catalogue::{Bytes, CHUNK_BYTES, Catalogue};
use super::division::{Division, Rule, most_by_mean};
use super::dram::{Dram, OneByOne};
use super::emulated::{Delay, Memory};
use super::published::stated;
use super::recipe::{AHEAD, DIRECTORY, Needs, PENDING, Pace, Recipe, STORE, StoreArgs};
use super::store::{Measured, measure, warm};
use super::workload::{Kind, Requests};

const L1: Param = gb("l1", "L1 of all workers together, GB", "1");
const L2: Param = gb(
    "l2",
    "L2 of all workers together, which is the catalogue, GB",
    "10",
);
const WORKERS: Param = workers(["1,3", "1,2,4,6,8,12,16", "1,2,4,6,8,12,16"]);
const TURNS: Param = Param::choice(
    "turns",
    "together: workers run at the same time while each has a processor; alone: never",
    &["together", "alone"],
    "together",
);
const NEEDS: &[Need] = &[Need::MemoryGib(2.4, 15.0)];

const fn workers(defaults: [&'static str; 3]) -> Param {
    Param::new(
        "workers",
        "numbers of workers, each a thread, at most 128 each",
        ParamKind::Counts,
        defaults,
    )
}

const fn rates(default: &'static str) -> Param {
    Param::new(
        "rates",
        "rates of each worker's L2, Gbit/s",
        ParamKind::Numbers,
        [default; 3],
    )
}

/// Parameters of a figure, with its own first.
macro_rules! params {
    ($($own:expr),*) => {
        &[
            $($own,)* L1, L2, SHRINK, ROUNDS, Param::seed(), WARM, BATCH, TURNS, Memory::PARAM,
            Delay::PARAM, STORE, AHEAD, PENDING, DIRECTORY,
        ]
    };
}

pub(super) const FIGURE_7: &[Experiment] = &[Experiment {
    id: "mansilha/figure-7",
    title: "Throughput by the number of workers, with slow and fast L2",
    source: "Mansilha et al. 2017, section 5.1",
    cost: Cost::minutes(0.2, 20.0),
    needs: NEEDS,
    params: params![WORKERS, rates("4,32")],
    run: figure_7,
}];

pub(super) const FIGURE_8B: &[Experiment] = &[Experiment {
    id: "mansilha/figure-8b",
    title: "Throughput by the part of the name that is hashed to find a worker",
    source: "Mansilha et al. 2017, section 5.2",
    cost: Cost::minutes(0.2, 20.0),
    needs: NEEDS,
    params: params![WORKERS, rates("4")],
    run: figure_8b,
}];

pub(super) const FIGURE_9B: &[Experiment] = &[Experiment {
    id: "mansilha/figure-9b",
    title: "One level, and both levels with one worker and with six, on this machine",
    source: "Mansilha et al. 2017, section 5.4",
    cost: Cost::minutes(0.1, 8.0),
    needs: &[Need::MemoryGib(2.4, 22.0)],
    params: params![workers(["1,6"; 3]), rates("4")],
    run: figure_9b,
}];

fn figure_7(context: &Context) -> anyhow::Result<Record> {
    let bed = Bed::of(context)?;
    let rows = bed.rows(&[Rule::Content])?;
    let mut record = bed.record("Figure 7", &rows);
    let most = rows.iter().filter_map(|row| row.gbps.informed());
    let most = most.max_by(f64::total_cmp);
    let what = "most throughput of all workers: above";
    record.compare(what, 10.0, "Gbit/s", stated("section 5.1"), most);
    record.note(
        "Published, 6 cores with 12 hardware threads: throughput grows with the logarithm of the \
         threads, more with 32 Gbit/s than with 4, with a knee where threads exceed cores.",
    );
    Ok(record)
}

fn figure_8b(context: &Context) -> anyhow::Result<Record> {
    let bed = Bed::of(context)?;
    let rows = bed.rows(&[Rule::Content, Rule::Batch])?;
    let mut record = bed.record("Figure 8 (b)", &rows);
    for content in rows.iter().filter(|row| row.rule == Rule::Content) {
        let is_same = |row: &&Row| {
            (row.rule, row.n_workers, row.rate_gbps)
                == (Rule::Batch, content.n_workers, content.rate_gbps)
        };
        let batch = rows.iter().find(is_same);
        let (batch, content_gbps) = (batch.map(|it| it.gbps), content.gbps.informed());
        let gain = batch.and_then(Mean::informed).zip(content_gbps);
        let gain = gain.map(|(batch, content)| batch / content);
        match (content.n_workers, gain) {
            (16, gain) => {
                let what = "Batch by Content, 16 workers: about";
                record.compare(what, 1.2, "", stated("section 5.2"), gain);
            }
            (n, Some(gain)) => record.note(format!(
                "Batch has {gain:.2} times the throughput of Content with {n} workers."
            )),
            (n, None) => record.note(format!(
                "Batch by Content with {n} workers: no information, an interval is wider than \
                 the value."
            )),
        }
    }
    record.note(
        "Published: about 20 % more with Batch, 16 threads on 12 hardware threads and an emulated \
         L2. Here the most loaded worker alone counts, because no other shares its processor.",
    );
    Ok(record)
}

fn figure_9b(context: &Context) -> anyhow::Result<Record> {
    let one_level = one_level(context)?;
    let bed = Bed::of(context)?;
    let rows = bed.rows(&[Rule::Content])?;
    let mut record = bed.record("Figure 9 (b)", &rows);
    let mut table = Table::new("One level, one thread", ["catalogue, GB", "Gbit/s"]);
    table.row(cells![bed.recipe.catalogue().size().gb(), one_level]);
    record.tables.push(table);
    record.note(
        "Published: two machines alike, the one in the cloud (8 cores of 2 GHz, 112 GB) somewhat \
         faster, also with five times the sizes. Bars are drawn only; this is one machine.",
    );
    Ok(record)
}

/// All of the catalogue in one level, asked by one thread.
fn one_level(context: &Context) -> anyhow::Result<Option<Mean>> {
    let sizes = Sizes::of(context);
    let catalogue = Catalogue::of(sizes.one(context, "l2")?);
    let (n_chunks, settings) = (catalogue.n_chunks(), sizes.settings(catalogue));
    ensure_memory(first_bytes(n_chunks))?;
    let mut store = OneByOne::new(Dram::new(n_chunks as usize)?);
    let mut all = Requests::new(Kind::Seq, &settings, 0);
    warm(&mut store, &mut all, n_chunks, |_| true);
    let runs = sizes.seeds().map(|seed| {
        let mut requests = Requests::new(Kind::Real, &settings, seed);
        measure(&mut store, &mut requests, n_chunks, |_| true).gbps()
    });
    Ok(Mean::of(&runs.collect::<Vec<_>>()))
}

/// How workers ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// At the same time, each on a processor; on a disk they share processors.
    Together,
    /// One after another, as if each had a processor of its own.
    OneByOne,
}

impl How {
    const fn label(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::OneByOne => "one by one",
        }
    }
}

#[derive(Clone, Debug)]
struct Row {
    n_workers: u16,
    rule: Rule,
    rate_gbps: f64,
    how: How,
    gbps: Mean,
    hit_ratio: f64,
    /// Requests of the most loaded worker by the mean, the mean of all rounds.
    most_by_mean: f64,
    /// Of an L2 while it was busy.
    second_gbps: Option<f64>,
    /// The time in which L2 was not busy, by all.
    own_share: f64,
}

struct Bed {
    sizes: Sizes,
    l1_chunks: u64,
    n_workers: Vec<u16>,
    rates: Vec<f64>,
    memory: Memory,
    delay: Delay,
    store: StoreArgs,
    recipe: Recipe,
    cpus: Vec<usize>,
    never_together: bool,
}

impl Bed {
    fn of(context: &Context) -> anyhow::Result<Self> {
        let sizes = Sizes::of(context);
        let store = StoreArgs::of(context);
        let (cpus, never_together) = (cpu::available(), context.text("turns") == "alone");
        let n_workers = context.values.counts("workers").into_iter();
        let n_workers: Vec<u16> = n_workers.map(|it| it.min(128) as u16).collect();
        let most = n_workers.iter().max().copied().unwrap_or(1).into();
        let n_together = match (store.is_disk(), never_together) {
            (true, _) => most,
            (false, true) => 1,
            (false, false) => most.min(cpus.len()).max(1),
        };
        let l1_chunks = sizes.one(context, "l1")?.chunks();
        let memory = Memory::of(context);
        let needs = Needs {
            catalogue: Catalogue::of(sizes.one(context, "l2")?),
            l1_chunks,
            n_stores: n_together as u64,
            batch_chunks: sizes.batch_chunks,
            memory,
        };
        Ok(Self {
            l1_chunks,
            n_workers,
            // The rate of a disk is its own.
            rates: match store.is_disk() {
                true => context.values.numbers("rates")[..1].to_vec(),
                false => context.values.numbers("rates"),
            },
            memory,
            delay: Delay::of(context),
            recipe: Recipe::new(&store, &needs)?,
            store,
            sizes,
            cpus,
            never_together,
        })
    }

    /// How `n_workers` run.
    fn how(&self, n_workers: u16) -> How {
        let has_cpus = usize::from(n_workers) <= self.cpus.len() && !self.never_together;
        match has_cpus || self.recipe.is_disk() {
            true => How::Together,
            false => How::OneByOne,
        }
    }

    fn rows(&self, rules: &[Rule]) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for &rule in rules {
            for &rate_gbps in &self.rates {
                for &n_workers in &self.n_workers {
                    rows.extend(self.row(rule, n_workers, rate_gbps)?);
                }
            }
        }
        Ok(rows)
    }

    fn record(&self, title: &str, rows: &[Row]) -> Record {
        let mut record = Record::new(self.store.kind());
        let mut table = Table::new(
            "",
            [
                Column::new("workers"),
                "hashed".into(),
                "L2, Gbit/s".into(),
                "Gbit/s while it was busy".into(),
                "workers ran".into(),
                "Gbit/s".into(),
                Column::fixed("by the first", 2),
                Column::fixed("hits in L1", 4),
                Column::fixed("most loaded / mean", 2),
                Column::fixed("time without a read, %", 0),
            ],
        );
        let mut chart = Chart::new(title, "workers", "Gbit/s");
        for row in rows {
            let is_line = |it: &&Row| it.rule == row.rule && it.rate_gbps == row.rate_gbps;
            let first = rows.iter().find(is_line).and_then(|it| it.gbps.informed());
            let gbps = row.gbps.informed();
            let rule = row.rule.label();
            table.row(cells![
                row.n_workers,
                rule,
                self.store.rate(row.rate_gbps),
                row.second_gbps,
                row.how.label(),
                row.gbps,
                gbps.zip(first).map(|(gbps, first)| gbps / first),
                row.hit_ratio,
                row.most_by_mean,
                100.0 * row.own_share
            ]);
            if let Some(gbps) = gbps {
                let label = match self.store.is_disk() {
                    true => rule.to_owned(),
                    false => format!("{rule}, {} Gbit/s", row.rate_gbps),
                };
                chart.point(&label, row.n_workers.into(), gbps);
            }
        }
        record.tables.push(table);
        record.charts.push(chart);
        if rows.iter().any(|row| row.how == How::OneByOne) {
            record.note(format!(
                "Of more workers than the {} processors here, one ran after another, as if each \
                 had a processor of its own, and their requests were added up: emulated, without \
                 what workers take from each other of memory and bus.",
                self.cpus.len()
            ));
        }
        record.note(self.store.note(Some(self.memory), Some(self.delay)));
        record.note(format!(
            "|L1| = {}, |L2| = |C| = {} of all workers together, Real; each run measures |C| \
             requests. {}",
            Bytes(self.l1_chunks * CHUNK_BYTES),
            self.recipe.catalogue().size(),
            self.sizes.note()
        ));
        record
    }

    fn row(&self, rule: Rule, n_workers: u16, rate_gbps: f64) -> anyhow::Result<Option<Row>> {
        let catalogue = self.recipe.catalogue();
        let how = self.how(n_workers);
        let mut gbps = Vec::new();
        let mut imbalances = Vec::new();
        let mut all = Measured::default();
        for seed in self.sizes.seeds() {
            let batch_chunks = self.sizes.batch_chunks;
            let division = Division::new(catalogue, rule, n_workers, batch_chunks, seed)?;
            let workers = self.take(&division, how, rate_gbps, seed)?;
            let slowest = workers.iter().map(|it| it.elapsed_ns).max().unwrap_or(0);
            let loads: Vec<u64> = workers.iter().map(|it| it.counts.n_requests).collect();
            let n_requests: u64 = loads.iter().sum();
            gbps.push((n_requests * CHUNK_BYTES * 8) as f64 / slowest.max(1) as f64);
            imbalances.push(most_by_mean(&loads));
            for worker in &workers {
                worker.counts.ensure_answered()?;
                all.elapsed_ns += worker.elapsed_ns;
                all.counts.n_requests += worker.counts.n_requests;
                all.counts.n_first += worker.counts.n_first;
                all.counts.second_ns += worker.counts.second_ns;
                all.counts.second_bytes += worker.counts.second_bytes;
            }
        }
        let means = Mean::of(&gbps).zip(Mean::of(&imbalances));
        Ok(means.map(|(gbps, imbalance)| Row {
            n_workers,
            rule,
            rate_gbps,
            how,
            gbps,
            hit_ratio: all.counts.first_ratio(),
            most_by_mean: imbalance.mean,
            second_gbps: all.counts.second_gbps(),
            own_share: (1.0 - all.counts.second_ns as f64 / all.elapsed_ns.max(1) as f64).max(0.0),
        }))
    }

    /// What each worker took.
    fn take(
        &self,
        division: &Division,
        how: How,
        rate_gbps: f64,
        seed: u64,
    ) -> anyhow::Result<Vec<Measured>> {
        let all = 0..division.n_workers();
        if how == How::OneByOne {
            let alone = Barrier::new(1);
            let workers = all.map(|worker| self.work(division, worker, rate_gbps, seed, &alone));
            return workers.collect();
        }
        let barrier = Barrier::new(all.len());
        thread::scope(|scope| {
            let threads: Vec<_> = all
                .map(|worker| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        // Of no consequence but for the spread, where the kernel refuses.
                        let _: Pinned = cpu::pin(worker.into(), &self.cpus);
                        self.work(division, worker, rate_gbps, seed, barrier)
                    })
                })
                .collect();
            let ended = threads.into_iter().map(|thread| {
                let measured = thread.join();
                measured.map_err(|_| anyhow!("a worker panicked"))?
            });
            ended.collect()
        })
    }

    /// A worker fills its L1 and takes its part of the requests.
    fn work(
        &self,
        division: &Division,
        worker: u16,
        rate_gbps: f64,
        seed: u64,
        barrier: &Barrier,
    ) -> anyhow::Result<Measured> {
        let own_chunks = self.l1_chunks.div_ceil(division.n_workers().into()) as usize;
        let is_here = |chunk| division.home(chunk) == worker;
        let pace = Pace {
            delay: self.delay,
            rate_gbps,
        };
        let store = self.recipe.make_for(worker, &is_here, own_chunks, pace);
        let settings = self.sizes.settings(self.recipe.catalogue());
        let mut requests = Requests::new(Kind::Real, &settings, seed);
        let mut store = match store.with_context(|| format!("worker {worker}")) {
            Ok(store) => store,
            Err(error) => {
                // The other workers must not wait for one that failed.
                barrier.wait();
                return Err(error);
            }
        };
        let n_warm = self.sizes.n_warm(self.l1_chunks);
        warm(&mut *store, &mut requests, n_warm, is_here);
        barrier.wait();
        let n_requests = self.recipe.catalogue().n_chunks();
        Ok(measure(&mut *store, &mut requests, n_requests, is_here))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tachonym_bench::Scale;

    use super::*;

    #[test]
    fn workers_share_requests_and_find_what_one_would() {
        let set = ["shrink=200", "rounds=1", "memory=dynamic", "workers=1,3"];
        let set = set.map(str::to_owned);
        let context = Context::new(&FIGURE_7[0], Scale::Tiny, &set, Path::new("lab"));
        let bed = Bed::of(&context.expect("declared")).expect("small stores");
        let catalogue = bed.recipe.catalogue();
        for how in [How::Together, How::OneByOne] {
            let mut n_first = Vec::new();
            for n_workers in [1, 3] {
                let division = Division::new(catalogue, Rule::Batch, n_workers, 10, 1);
                let division = division.expect("few workers");
                let workers = bed.take(&division, how, 4.0, 1).expect("small stores");
                assert_eq!(workers.len(), usize::from(n_workers));
                let n_requests: u64 = workers.iter().map(|it| it.counts.n_requests).sum();
                assert_eq!(n_requests, catalogue.n_chunks());
                assert!(workers.iter().all(|it| it.counts.n_requests > 0));
                n_first.push(workers.iter().map(|it| it.counts.n_first).sum::<u64>());
            }
            // A third of the room for a third of the names.
            let ratio = n_first[1] as f64 / n_first[0] as f64;
            assert!((0.97..1.03).contains(&ratio), "{how:?}: {n_first:?}");
        }
        let row = bed.row(Rule::Content, 2, 4.0).expect("small stores");
        let row = row.expect("one round");
        assert!(row.gbps.mean > 0.0 && row.most_by_mean >= 1.0);
        assert!(row.own_share > 0.0 && row.own_share < 1.0, "{row:?}");
    }
}
