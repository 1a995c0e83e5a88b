//! Rate and processor time of serving objects from the disk.

use std::time::Duration;

use anyhow::ensure;
use tachonym_bench::{Bound, Context, Cost, Experiment, Need, Param, ParamKind, Record};
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::disk::Disk;
use super::packets::in_order;
use super::raw::Raw;
use super::rig::{BURST_PKTS, Rig, RigOptions, face_of, now, process_cpu_ns, thread_cpu_ns};
use super::{
    BATCH, DIRECTORY, Figures, OBJECT_CHUNKS, StoreArgs, fio, mib, packet_bytes, ratios, store_mib,
};
use crate::beds::engine::workload::Burst;

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/ssd-serve",
    title: "Rate and processor time of serving objects from the disk",
    source: "",
    cost: Cost::minutes(0.5, 3.0),
    needs: &[Need::Disk, Need::IoUring],
    params: &[
        store_mib(["160", "2048", "4096"]),
        Param::new(
            "consumers",
            "consumers, each of which fetches other objects",
            ParamKind::Count { min: 1, max: 64 },
            ["1"; 3],
        ),
        Param::new(
            "window",
            "Interests in flight; more batches than the disk's queue keep it busy",
            ParamKind::Count { min: 1, max: 4_096 },
            ["320", "4096", "4096"],
        ),
        Param::new(
            "ahead",
            "batches read ahead for each consumer at most",
            ParamKind::Count { min: 0, max: 64 },
            ["8"; 3],
        ),
        Param::choice(
            "first_level",
            "admission of the DRAM level for Data read from the disk",
            &["none", "filter"],
            "filter",
        ),
        Param::new(
            "fio",
            "whether fio reads the same file for comparison",
            ParamKind::Choice(&["if-installed", "never"]),
            ["never", "if-installed", "if-installed"],
        ),
        Param::choice(
            "singles",
            "whether a store with batches of one is measured too",
            &["yes", "no"],
            "yes",
        ),
        Param::rounds(["2", "7", "15"]),
        Param::count(
            "slot_ms",
            "time of each measurement, ms",
            ["60", "1k", "2k"],
        ),
        packet_bytes(["0"; 3]),
        BATCH,
        OBJECT_CHUNKS,
        DIRECTORY,
    ],
    run,
}];

/// What is measured in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Fio,
    Store,
    /// The device without a store.
    Raw,
    /// The store with batches of one.
    Singles,
}

/// What one measurement has shown.
#[derive(Clone, Copy, Debug)]
struct Served {
    chunks_per_s: f64,
    mib_per_s: f64,
    thread_us_per_chunk: f64,
    process_us_per_chunk: f64,
    busy_cores: f64,
    /// Bytes that the store read for each byte that it served.
    read_ratio: f64,
}

/// A store, and the consumers that fetch from it.
struct Bed {
    rig: Rig,
    store: StoreArgs,
    /// The place of each consumer.
    places: Vec<u64>,
    /// Interests of each so far.
    n_asked: Vec<u64>,
    n_chunks: u64,
    window: u64,
}

impl Bed {
    fn new(context: &Context, disk: &Disk, batch_len: usize) -> anyhow::Result<Self> {
        let store = StoreArgs::of(context);
        let (window, n_consumers) = (context.size("window"), context.size("consumers"));
        let n_chunks = store.n_chunks();
        let n_reads = window / batch_len + n_consumers;
        // Nothing is there twice, but what is read ahead must be there once.
        let l1_pkts = 4 * window + 2_048;
        ensure!(
            n_chunks >= 4 * l1_pkts as u64,
            "a store of {n_chunks} Data beside {l1_pkts} in DRAM is hardly read; raise store_mib \
             or lower window"
        );
        let options = RigOptions {
            l1_pkts,
            admission: match context.text("first_level") {
                "none" => AdmissionKind::None,
                _ => AdmissionKind::Filter,
            },
            n_consumers: n_consumers as u16,
            config: Config {
                batch_len,
                max_batches: store.max_batches(batch_len),
                max_reads: 2 * n_reads + 32,
                max_ahead: context.values.count32("ahead"),
                ..Config::default()
            },
        };
        let volume = disk.format(&file_of(batch_len), store.bytes, batch_len)?;
        let mut rig = Rig::with_store(&options, volume, Beginning::New)?;
        let n_filled = rig.fill(&store.packets, in_order(n_chunks, store.object_chunks))?;
        ensure!(n_filled == n_chunks, "filled {n_filled} of {n_chunks}");
        rig.flush()?;
        rig.check_stored(n_chunks)?;
        rig.forget_ended();
        let between = n_chunks / n_consumers as u64;
        Ok(Self {
            rig,
            places: (0..n_consumers as u64).map(|it| between * it).collect(),
            n_asked: vec![0; n_consumers],
            n_chunks,
            window: (window / n_consumers) as u64,
            store,
        })
    }

    /// Interests of all consumers that are in flight.
    fn n_pending(&self) -> u64 {
        let ended = self.rig.bed.out.n_ended.iter().sum::<u64>();
        self.n_asked.iter().sum::<u64>() - ended
    }

    /// Sends Interests of each consumer, as many as its window allows.
    fn ask(&mut self, burst: &mut Burst) -> anyhow::Result<bool> {
        let mut has_asked = false;
        for consumer in 0..self.places.len() {
            burst.clear();
            while burst.len() < BURST_PKTS
                && self.n_asked[consumer] - self.rig.bed.out.n_ended[consumer] < self.window
            {
                let place = self.places[consumer];
                self.places[consumer] = (place + 1) % self.n_chunks;
                self.rig.ask(self.store.chunk(place), burst);
                self.n_asked[consumer] += 1;
            }
            if !burst.is_empty() {
                has_asked = true;
                self.rig.receive(face_of(consumer as u16), burst)?;
            }
        }
        Ok(has_asked)
    }

    fn serve(&mut self, time: Duration) -> anyhow::Result<Served> {
        let mut burst = Burst::default();
        self.rig.forget_sent();
        let read_before = self.rig.second()?.counters().n_read_bytes;
        let begun = now();
        let (cpu_begun, thread_begun) = (process_cpu_ns(), thread_cpu_ns());
        let mut last_worked = begun;
        loop {
            let is_over = now().saturating_since(begun) >= time;
            let has_asked = !is_over && self.ask(&mut burst)?;
            let has_turned = self.rig.turn();
            // What the store has lost comes from upstream, and is counted.
            self.rig.produce(&self.store.packets)?;
            if has_asked || has_turned {
                last_worked = now();
                continue;
            }
            let n_pending = self.n_pending();
            self.rig.check_alive(last_worked, n_pending)?;
            if is_over && n_pending == 0 {
                break;
            }
            self.rig.wait(Duration::from_millis(5));
        }
        let elapsed_s = now().saturating_since(begun).as_secs_f64();
        let process_us = (process_cpu_ns() - cpu_begun) as f64 / 1e3;
        let thread_us = (thread_cpu_ns() - thread_begun) as f64 / 1e3;
        // What was read ahead is taken now: no turn comes while others are measured, and what
        // has not ended after that counts as stalled.
        self.rig.settle();
        let sink = &self.rig.bed.out;
        ensure!(sink.n_nacks == 0, "{} Interests were refused", sink.n_nacks);
        let n_chunks = sink.n_data as f64;
        let read_bytes = self.rig.second()?.counters().n_read_bytes - read_before;
        Ok(Served {
            chunks_per_s: n_chunks / elapsed_s,
            mib_per_s: mib(sink.n_bytes) / elapsed_s,
            thread_us_per_chunk: thread_us / n_chunks,
            process_us_per_chunk: process_us / n_chunks,
            busy_cores: process_us / 1e6 / elapsed_s,
            read_ratio: read_bytes as f64 / sink.n_bytes as f64,
        })
    }

    /// Mean bytes of a read so far.
    fn read_bytes(&self) -> anyhow::Result<usize> {
        let counters = self.rig.second()?.counters();
        let n_reads = (counters.n_reads + counters.n_reads_ahead).max(1);
        Ok((counters.n_read_bytes / n_reads) as usize)
    }

    /// Checks that hardly anything was asked for upstream.
    fn check(&self) -> anyhow::Result<()> {
        let counters = self.rig.bed.engine.counters();
        let n_upstream = counters.n_out_interests - self.n_chunks;
        ensure!(
            n_upstream * 1_000 <= self.n_chunks,
            "{n_upstream} segments were requested upstream, but should be in the store"
        );
        Ok(())
    }
}

fn file_of(batch_len: usize) -> String {
    format!("batches-of-{batch_len}")
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let store = StoreArgs::of(context);
    let has_fio = context.text("fio") != "never" && fio::is_installed();
    let has_singles = context.text("singles") == "yes";
    let disk = store.disk(1 + u64::from(has_singles))?;
    let slot = Duration::from_millis(context.count("slot_ms"));
    let mut batches = Bed::new(context, &disk, store.batch_len)?;
    let mut singles = match has_singles {
        true => Some(Bed::new(context, &disk, 1)?),
        false => None,
    };
    // Warms up, and shows how large reads are.
    batches.serve(slot / 4)?;
    let file = file_of(store.batch_len);
    let volume = disk.volume(&file, store.bytes)?;
    let depth = (context.size("window") / store.batch_len).max(1);
    let used_bytes = batches.rig.second()?.counters().n_written_bytes;
    let mut raw = Raw::new((volume, used_bytes), batches.read_bytes()?, depth)?;
    let (mut by_fio, mut by_raw) = (Vec::new(), Vec::new());
    let (mut by_store, mut by_singles) = (Vec::new(), Vec::new());
    for round in 0..context.rounds() {
        // Each comes after others in turn: what a disk is busy with for another while counts.
        let mut turns = [Turn::Fio, Turn::Store, Turn::Raw, Turn::Singles];
        if round % 2 == 1 {
            turns.reverse();
        }
        for turn in turns {
            match turn {
                Turn::Fio if !has_fio => {}
                Turn::Fio => by_fio.push(fio::read(
                    (&disk.path(&file), used_bytes),
                    raw.read_bytes(),
                    depth,
                    slot,
                )?),
                Turn::Store => by_store.push(batches.serve(slot)?),
                Turn::Raw => by_raw.push(raw.read_in_order(slot, u64::MAX)?),
                Turn::Singles => {
                    if let Some(singles) = &mut singles {
                        by_singles.push(singles.serve(slot)?);
                    }
                }
            }
        }
    }
    batches.check()?;
    let mut figures = Figures::new(&store);
    let of = |served: &[Served], figure: fn(&Served) -> f64| -> Vec<f64> {
        served.iter().map(figure).collect()
    };
    let rates = of(&by_store, |it| it.mib_per_s);
    let raw_rates: Vec<f64> = by_raw.iter().map(|it| it.mib_per_s).collect();
    if has_fio {
        let fio_rates: Vec<f64> = by_fio.iter().map(|it| it.mib_per_s).collect();
        let cpu: Vec<f64> = by_fio.iter().map(|it| it.cpu_us_per_read).collect();
        figures.add("fio, sequential read", "MiB/s", &fio_rates);
        figures.add("fio, processor time of a read", "µs", &cpu);
        let by_fio = ratios(&rates, &fio_rates);
        figures.judge("served by what fio reads", "", Bound::AtLeast(0.9), &by_fio)?;
    }
    figures.add("the same device without a store", "MiB/s", &raw_rates);
    let cpu: Vec<f64> = by_raw.iter().map(|it| it.cpu_us_per_read).collect();
    figures.add("processor time of a read there", "µs", &cpu);
    figures.add("served", "MiB/s", &rates);
    figures.add("served", "chunks/s", &of(&by_store, |it| it.chunks_per_s));
    figures.add(
        "read by served bytes",
        "",
        &of(&by_store, |it| it.read_ratio),
    );
    let thread = of(&by_store, |it| it.thread_us_per_chunk);
    figures.add(
        "processor time of a chunk, forwarding thread",
        "µs",
        &thread,
    );
    let by_device = ratios(&rates, &raw_rates);
    figures.add("served by the device without a store", "", &by_device);
    let process = of(&by_store, |it| it.process_us_per_chunk);
    let what = "processor time of a chunk, all threads";
    figures.judge(what, "µs", Bound::AtMost(2.5), &process)?;
    let busy = of(&by_store, |it| it.busy_cores);
    figures.judge("cores busy", "", Bound::AtMost(1.0), &busy)?;
    if has_singles {
        let single_rates = of(&by_singles, |it| it.mib_per_s);
        figures.add("served by batches of one", "MiB/s", &single_rates);
        let cpu = of(&by_singles, |it| it.process_us_per_chunk);
        figures.add("processor time of a chunk there", "µs", &cpu);
        let by_singles = ratios(&rates, &single_rates);
        let what = "rate by that of batches of one";
        figures.judge(what, "", Bound::AtLeast(4.0), &by_singles)?;
    }
    let opened = batches.rig.opened.map(|it| it.to_string());
    let read_bytes = raw.read_bytes();
    let mut record = figures.finish();
    record.note(format!(
        "{} consumers with {} Interests in flight in all, admission of the DRAM level: {}; reads \
         of {read_bytes} bytes, {depth} at a time; {}. Every other round is in the reverse order.",
        context.count("consumers"),
        context.count("window"),
        context.text("first_level"),
        opened.unwrap_or_default()
    ));
    if !has_fio && context.text("fio") != "never" {
        record.note(fio::HOW_TO_GET);
    }
    Ok(record)
}
