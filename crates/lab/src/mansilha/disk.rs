//! The curves of Mansilha et al. 2017 on a disk, with the router's own two levels: with each
//! Interest waiting for the one before, as in the paper's serial algorithm, and with many
//! pending; with and without reading ahead, which the paper left for later (section 3.2).
//!
//! Requests come as fast as they are answered, and then at the workload's own times
//! ([`paced`]), where a store that reads ahead has the time that a consumer leaves it.

use std::path::Path;

use tachonym_bench::stats::{Mean, Spread};
use tachonym_bench::{
    Bound, Column, Context, Cost, Experiment, Kind as How, Need, Param, ParamKind, Record, Table,
    cells,
};
use tachonym_store::Counters;

use super::bed::{
    BATCH, ROUNDS, SHRINK, Sizes, WARM, ensure_memory, first_bytes, gb, gbs, log_chart,
};
use super::catalogue::{Bytes, CHUNK_BYTES, Catalogue, Share};
use super::model;
use super::paced;
use super::recipe::{DIRECTORY, max_reads};
use super::store::{Measured, measure, warm};
use super::two_levels::{Settings, TwoLevels, volume_bytes};
use super::workload::{Kind, Requests};
use crate::own::ssd::disk::Disk;

/// Hits in L1 that reading ahead has to give: Real, |L1| = 1 GB, |L2| = 10 GB.
const WANTED_HITS: f64 = 0.995;
/// Reads with reading ahead by those without, at most.
const MAX_READS: f64 = 1.02;

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/hcs-disk",
    title: "The router's two levels on a disk: waiting or not, reading ahead or not",
    source: "",
    cost: Cost::minutes(1.5, 40.0),
    needs: &[Need::Disk, Need::IoUring, Need::MemoryGib(4.0, 14.0)],
    params: &[
        gbs("l1", "L1, GB", ["4", "1,4", "1,4"]),
        gb("l2", "L2, which is the catalogue, GB", "10"),
        Param::choice("workload", "the workload", &["real", "seq", "unif"], "real"),
        Param::new(
            "ahead",
            "batches read ahead at most; 0 is the base",
            ParamKind::Counts,
            ["0,8"; 3],
        ),
        Param::new(
            "pending",
            "pending Interests; 1 is the serial algorithm",
            ParamKind::Counts,
            ["1,64"; 3],
        ),
        Param::new(
            "speed",
            "speed of the workload's own times by the published; the first size of L1 alone",
            ParamKind::Number,
            ["2000", "100", "12"],
        ),
        SHRINK,
        ROUNDS,
        Param::seed(),
        WARM,
        BATCH,
        DIRECTORY,
    ],
    run,
}];

/// A store, and what was measured with it.
struct Candidate {
    max_ahead: u32,
    n_pending: u16,
    store: TwoLevels,
    runs: Vec<Measurement>,
}

struct Measurement {
    measured: Measured,
    counters: Counters,
    /// How much later than due the latest request came; `None` without a pace.
    latest_ns: Option<u64>,
}

impl Measurement {
    fn n_reads(&self) -> f64 {
        (self.counters.n_reads + self.counters.n_reads_ahead) as f64
    }
}

struct Bed<'a> {
    context: &'a Context,
    sizes: Sizes,
    catalogue: Catalogue,
    kind: Kind,
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let sizes = Sizes::of(context);
    let word = context.text("workload");
    let is_asked = |kind: &Kind| kind.label().eq_ignore_ascii_case(word);
    let bed = Bed {
        context,
        catalogue: Catalogue::of(sizes.one(context, "l2")?),
        kind: Kind::ALL.into_iter().find(is_asked).unwrap_or(Kind::Real),
        sizes,
    };
    let l1 = bed.sizes.all(context, "l1")?;
    let mut record = Record::new(How::Measured);
    bed.as_fast_as_answered(&l1, &mut record)?;
    bed.paced(l1[0], &mut record)?;
    record.note(format!(
        "{}, |L2| = |C| = {}, all of it on the disk, past the page cache; one thread. {}",
        bed.kind,
        bed.catalogue.size(),
        sizes.note()
    ));
    record.note(
        "A request for a chunk whose batch is being read waits for it and is no hit: with many \
         Interests pending hits are fewer than by the model, and the bytes read by those asked for \
         show that nothing is read twice. With one pending and nothing ahead, hits are those of \
         the serial algorithm.",
    );
    Ok(record)
}

impl Bed<'_> {
    /// Each candidate in each round, as fast as answers come.
    fn as_fast_as_answered(&self, l1: &[Bytes], record: &mut Record) -> anyhow::Result<()> {
        let mut table = Table::new(
            "Requests as fast as they are answered",
            [
                Column::new("L1, MB"),
                "ahead".into(),
                "pending".into(),
                Column::fixed("hits in L1", 4),
                Column::fixed("model, nothing ahead", 4),
                Column::fixed("read / asked for", 3),
                Column::fixed("by the model", 3),
                "Gbit/s".into(),
                "the disk's Gbit/s".into(),
                Column::fixed("by one pending", 2),
            ],
        );
        let mut charts = [
            log_chart("Both levels on a disk", "|L1|, GB", "hits in L1"),
            log_chart("Both levels on a disk", "|L1|, GB", "Gbit/s"),
        ];
        for &l1 in l1 {
            let l1_chunks = l1.chunks();
            let expected = self.expected_hits(l1_chunks);
            let pending = self.context.values.counts("pending");
            let candidates = self.measured(l1_chunks, &pending, |bed, store, requests| {
                warm(store, requests, bed.sizes.n_warm(l1_chunks), |_| true);
                let before = store.counters();
                let n_requests = bed.catalogue.n_chunks();
                let measured = measure(store, requests, n_requests, |_| true);
                Ok((before, measured, None))
            })?;
            let gbps_of = |it: &Candidate| it.mean(|run| Some(run.measured.gbps()));
            for it in &candidates {
                let serial = candidates
                    .iter()
                    .find(|other| other.max_ahead == it.max_ahead && other.n_pending == 1);
                let (gbps, serial) = (gbps_of(it), serial.and_then(gbps_of));
                let hits = it.mean(|run| Some(run.measured.counts.first_ratio()));
                table.row(cells![
                    l1.gb() * 1e3,
                    it.max_ahead,
                    it.n_pending,
                    hits,
                    expected,
                    it.read_by_asked(),
                    (1.0 - expected) * f64::from(self.sizes.batch_chunks),
                    gbps,
                    it.mean(|run| run.measured.counts.second_gbps()),
                    gbps.zip(serial)
                        .map(|(gbps, serial)| gbps.mean / serial.mean)
                ]);
                let label = format!("{} ahead, {} pending", it.max_ahead, it.n_pending);
                for (chart, mean) in charts.iter_mut().zip([hits, gbps]) {
                    if let Some(value) = mean.and_then(Mean::informed) {
                        chart.point(&label, l1.gb(), value);
                    }
                }
            }
        }
        record.tables.push(table);
        record.charts.extend(charts);
        Ok(())
    }

    /// At the workload's own times, with the most pending Interests.
    fn paced(&self, l1: Bytes, record: &mut Record) -> anyhow::Result<()> {
        let l1_chunks = l1.chunks();
        let speed = self.context.number("speed").clamp(1e-3, 1e6);
        let most = self.context.values.counts("pending").into_iter().max();
        let candidates =
            self.measured(l1_chunks, &[most.unwrap_or(1)], |bed, store, requests| {
                warm(store, requests, bed.sizes.n_warm(l1_chunks), |_| true);
                let before = store.counters();
                let paced = paced::measure(store, requests, bed.catalogue.n_chunks(), speed);
                Ok((before, paced.measured, Some(paced.latest_ns)))
            })?;
        let mut table = Table::new(
            format!("Requests at the workload's own times, {speed} times as fast"),
            [
                Column::new("L1, MB"),
                "ahead".into(),
                Column::fixed("hits in L1", 4),
                Column::fixed("model, nothing ahead", 4),
                Column::fixed("read / asked for", 3),
                "requests".into(),
                "reads".into(),
                "reads ahead".into(),
                "waited for a batch on its way".into(),
                "latest, ms".into(),
            ],
        );
        for it in &candidates {
            let sum = |value: fn(&Measurement) -> u64| it.runs.iter().map(value).sum::<u64>();
            let n_reads = sum(|run| run.counters.n_reads);
            let n_second = sum(|run| run.measured.counts.n_second);
            let latest_ns = it.runs.iter().filter_map(|run| run.latest_ns).max();
            table.row(cells![
                l1.gb() * 1e3,
                it.max_ahead,
                it.mean(|run| Some(run.measured.counts.first_ratio())),
                self.expected_hits(l1_chunks),
                it.read_by_asked(),
                sum(|run| run.measured.counts.n_requests),
                n_reads,
                sum(|run| run.counters.n_reads_ahead),
                n_second.saturating_sub(n_reads),
                latest_ns.map(|ns| ns as f64 / 1e6)
            ]);
        }
        record.tables.push(table);
        let base = candidates.iter().find(|it| it.max_ahead == 0);
        for it in candidates.iter().filter(|it| it.max_ahead > 0) {
            let hits = it.runs.iter().map(|run| run.measured.counts.first_ratio());
            let what = format!(
                "hits in L1, {} ahead, at the workload's times",
                it.max_ahead
            );
            if let Some(hits) = Spread::of(&hits.collect::<Vec<_>>()) {
                record.judge(what, "", Bound::AtLeast(WANTED_HITS), hits);
            }
            let Some(base) = base else { continue };
            let reads = it.runs.iter().map(Measurement::n_reads);
            let without = base.runs.iter().map(|run| run.n_reads().max(1.0));
            let (reads, without): (Vec<_>, Vec<_>) = (reads.collect(), without.collect());
            let what = format!("reads by those without, {} ahead", it.max_ahead);
            if let Some(ratio) = Spread::of_ratios(&reads, &without) {
                record.judge(what, "", Bound::AtMost(MAX_READS), ratio);
            }
        }
        Ok(())
    }

    fn expected_hits(&self, l1_chunks: u64) -> f64 {
        let settings = self.sizes.settings(self.catalogue);
        model::hit_ratio(self.kind, &settings, l1_chunks, self.sizes.batch_chunks)
    }

    /// A candidate for each number of batches ahead and of Interests pending. They take turns
    /// in each round, so that other programs' use of the disk concerns all alike.
    fn measured(
        &self,
        l1_chunks: u64,
        pending: &[u64],
        take: impl Fn(
            &Self,
            &mut TwoLevels,
            &mut Requests,
        ) -> anyhow::Result<(Counters, Measured, Option<u64>)>,
    ) -> anyhow::Result<Vec<Candidate>> {
        let ahead = self.context.values.counts("ahead");
        let n_stores = (ahead.len() * pending.len()) as u64;
        ensure_memory(first_bytes(l1_chunks) * n_stores)?;
        let bytes = volume_bytes(self.catalogue.n_chunks()) * n_stores;
        let disk = Disk::new(Path::new(self.context.text("directory")), bytes)?;
        let mut candidates = Vec::new();
        for &max_ahead in &ahead {
            for &n_pending in pending {
                candidates.push(self.candidate(max_ahead, n_pending, l1_chunks, &disk)?);
            }
        }
        let n_candidates = candidates.len();
        for (round, seed) in self.sizes.seeds().enumerate() {
            for turn in 0..n_candidates {
                let it = &mut candidates[(round + turn) % n_candidates];
                let settings = self.sizes.settings(self.catalogue);
                let mut requests = Requests::new(self.kind, &settings, seed);
                let (before, measured, latest_ns) = take(self, &mut it.store, &mut requests)?;
                measured.counts.ensure_answered()?;
                let after = it.store.counters();
                it.runs.push(Measurement {
                    measured,
                    counters: Counters {
                        n_reads: after.n_reads - before.n_reads,
                        n_reads_ahead: after.n_reads_ahead - before.n_reads_ahead,
                        n_read_bytes: after.n_read_bytes - before.n_read_bytes,
                        ..Counters::default()
                    },
                    latest_ns,
                });
            }
        }
        Ok(candidates)
    }

    fn candidate(
        &self,
        max_ahead: u64,
        n_pending: u64,
        l1_chunks: u64,
        disk: &Disk,
    ) -> anyhow::Result<Candidate> {
        let n_pending = n_pending.clamp(1, u16::MAX.into()) as u16;
        let settings = Settings {
            batch_chunks: self.sizes.batch_chunks,
            max_ahead: max_ahead as u32,
            max_reads: max_reads(n_pending),
            max_pending: n_pending.into(),
        };
        let file = format!("ahead-{max_ahead}-pending-{n_pending}");
        let share = Share::all(self.catalogue);
        Ok(Candidate {
            max_ahead: max_ahead as u32,
            n_pending,
            store: TwoLevels::on_disk(l1_chunks as usize, share, &settings, disk, &file)?,
            runs: Vec::new(),
        })
    }
}

impl Candidate {
    fn mean(&self, value: impl Fn(&Measurement) -> Option<f64>) -> Option<Mean> {
        Mean::of(&self.runs.iter().filter_map(value).collect::<Vec<_>>())
    }

    /// Bytes that were read from the disk by those of requests.
    fn read_by_asked(&self) -> f64 {
        let read: u64 = self.runs.iter().map(|run| run.counters.n_read_bytes).sum();
        let asked = self.runs.iter().map(|run| run.measured.counts.n_requests);
        read as f64 / (asked.sum::<u64>() * CHUNK_BYTES).max(1) as f64
    }
}
