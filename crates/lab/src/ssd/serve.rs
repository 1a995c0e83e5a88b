//! How fast, and at what cost, objects come from the disk.

use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::disk::Disk;
use super::packets::{ChunkId, Packets, in_order};
use super::raw::Raw;
use super::report::{Bound, Report};
use super::rig::{BURST_PKTS, Rig, RigOptions, face_of, now, process_cpu_ns, thread_cpu_ns};
use super::{StoreArgs, fio};
use crate::engine_bed::workload::Burst;
use crate::output;

/// Measures rate and CPU time of serving objects from the disk, and compares them with fio
#[derive(Args, Clone, Debug)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Consumers, each of which fetches other objects
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    consumers: u16,
    /// Interests in flight of all consumers together. More batches of them than the disk takes
    /// requests keep it busy while Data are sent
    #[arg(long, default_value_t = 4_096, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=4_096))]
    window: u32,
    /// Most batches to read ahead for each consumer
    #[arg(long, default_value_t = 8, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=64))]
    ahead: u32,
    /// Admission policy of the DRAM level for Data read from the disk: none admits all, filter
    /// those requested twice recently
    #[arg(long, default_value_t = AdmissionKind::Filter, value_name = "ADMISSION")]
    first_level: AdmissionKind,
    /// Rounds, in each of which everything is measured once
    #[arg(long, default_value_t = 15, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Time for each measurement of a round, in milliseconds
    #[arg(long, default_value_t = 2_000, value_name = "MS",
          value_parser = clap::value_parser!(u32).range(10..=100_000))]
    slot_ms: u32,
    /// Leaves out fio
    #[arg(long)]
    no_fio: bool,
    /// Leaves out the store with batches of one
    #[arg(long)]
    no_single: bool,
}

/// What is measured in a round.
#[derive(Clone, Copy, Debug)]
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

/// A store, and those who fetch from it.
struct Bed {
    rig: Rig,
    packets: Packets,
    /// Of each consumer: where it is.
    places: Vec<u64>,
    /// Of each: Interests so far.
    n_asked: Vec<u64>,
    n_chunks: u64,
    object_chunks: u64,
    window: u64,
}

impl Bed {
    fn new(disk: &Disk, args: &ServeArgs, batch_len: usize) -> anyhow::Result<Self> {
        let packets = args.store.packets();
        let n_chunks = args.store.n_chunks();
        let n_reads = args.window as usize / batch_len + usize::from(args.consumers);
        // Nothing is there twice, but what is read ahead must be there once.
        let l1_pkts = 4 * args.window as usize + 2_048;
        ensure!(
            n_chunks >= 4 * l1_pkts as u64,
            "a store of {n_chunks} Data beside {l1_pkts} in DRAM is hardly read; raise \
             --store-mib or lower --window"
        );
        let options = RigOptions {
            l1_pkts,
            admission: args.first_level,
            n_consumers: args.consumers,
            config: Config {
                batch_len,
                max_batches: args.store.max_batches(batch_len),
                max_reads: 2 * n_reads + 32,
                max_ahead: args.ahead,
                ..Config::default()
            },
        };
        let file = format!("batches-of-{batch_len}");
        let store = disk.format(&file, args.store.bytes(), batch_len)?;
        let mut rig = Rig::with_store(&options, store, Beginning::New)?;
        let n_filled = rig.fill(&packets, in_order(n_chunks, args.store.object_chunks))?;
        ensure!(n_filled == n_chunks, "filled {n_filled} of {n_chunks}");
        rig.flush()?;
        rig.check_stored(n_chunks)?;
        rig.forget_ended();
        let n_consumers = u64::from(args.consumers);
        Ok(Self {
            rig,
            packets,
            places: (0..n_consumers)
                .map(|it| n_chunks / n_consumers * it)
                .collect(),
            n_asked: vec![0; args.consumers.into()],
            n_chunks,
            object_chunks: args.store.object_chunks,
            window: u64::from(args.window) / n_consumers,
        })
    }

    /// Interests of each consumer that are on the way.
    fn n_pending(&self) -> u64 {
        let ended = self.rig.sink.n_ended.iter().sum::<u64>();
        self.n_asked.iter().sum::<u64>() - ended
    }

    /// Has each consumer ask for as much as its window allows.
    fn ask(&mut self, burst: &mut Burst) -> anyhow::Result<bool> {
        let mut has_asked = false;
        for consumer in 0..self.places.len() {
            burst.clear();
            while burst.len() < BURST_PKTS
                && self.n_asked[consumer] - self.rig.sink.n_ended[consumer] < self.window
            {
                let place = self.places[consumer];
                self.places[consumer] = (place + 1) % self.n_chunks;
                let chunk = ChunkId {
                    object: place / self.object_chunks,
                    number: place % self.object_chunks,
                };
                self.rig.ask(chunk, burst);
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
            self.rig.produce(&self.packets)?;
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
        // What was read ahead is taken now: as long as others are measured nobody looks, and
        // what has not ended after that passes for stalled.
        self.rig.settle();
        let sink = &self.rig.sink;
        ensure!(sink.n_nacks == 0, "{} Interests were refused", sink.n_nacks);
        let n_chunks = sink.n_data as f64;
        let read_bytes = self.rig.second()?.counters().n_read_bytes - read_before;
        Ok(Served {
            chunks_per_s: n_chunks / elapsed_s,
            mib_per_s: output::mib(sink.n_bytes) / elapsed_s,
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
        let counters = self.rig.engine.counters();
        let n_upstream = counters.n_out_interests - self.n_chunks;
        ensure!(
            n_upstream * 1_000 <= self.n_chunks,
            "{n_upstream} segments were requested upstream, but should be in the store"
        );
        Ok(())
    }
}

/// Runs the command.
pub(super) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let n_stores = if args.no_single { 1 } else { 2 };
    let disk = Disk::new(&args.store.directory, n_stores * args.store.bytes())?;
    let slot = Duration::from_millis(args.slot_ms.into());
    let batch_len = args.store.batch_len();
    let mut batches = Bed::new(&disk, args, batch_len)?;
    let mut singles = match args.no_single {
        true => None,
        false => Some(Bed::new(&disk, args, 1)?),
    };
    // Warms up, and shows how large reads are.
    batches.serve(slot / 4)?;
    let file = format!("batches-of-{batch_len}");
    let volume = disk.volume(&file, args.store.bytes())?;
    let depth = (args.window as usize / batch_len).max(1);
    let used_bytes = batches.rig.second()?.counters().n_written_bytes;
    let mut raw = Raw::new((volume, used_bytes), batches.read_bytes()?, depth)?;
    let (mut by_fio, mut by_raw) = (Vec::new(), Vec::new());
    let (mut by_store, mut by_singles) = (Vec::new(), Vec::new());
    for round in 0..args.rounds {
        // Each comes after others in turn: what a disk is busy with for another while counts.
        let mut turns = [Turn::Fio, Turn::Store, Turn::Raw, Turn::Singles];
        if round % 2 == 1 {
            turns.reverse();
        }
        for turn in turns {
            match turn {
                Turn::Fio if args.no_fio => {}
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
    let opened = batches.rig.opened.map(|it| it.to_string());
    let mut report = Report::new(format!(
        "{} MiB of Data of {} bytes in batches of {batch_len}, {} consumers with a window of {} \
         chunks in all, admission of the first level {}; reads of {} bytes, {depth} at a time; {}",
        args.store.store_mib,
        batches.packets.data_bytes(),
        args.consumers,
        args.window,
        args.first_level,
        raw.read_bytes(),
        opened.unwrap_or_default()
    ));
    let of = |served: &[Served], figure: fn(&Served) -> f64| -> Vec<f64> {
        served.iter().map(figure).collect()
    };
    let rates = of(&by_store, |it| it.mib_per_s);
    let raw_rates: Vec<f64> = by_raw.iter().map(|it| it.mib_per_s).collect();
    if !args.no_fio {
        let fio_rates: Vec<f64> = by_fio.iter().map(|it| it.mib_per_s).collect();
        report.add("fio, sequential read", "MiB/s", &fio_rates)?;
        let cpu: Vec<f64> = by_fio.iter().map(|it| it.cpu_us_per_read).collect();
        report.add("fio, CPU of a read", "µs", &cpu)?;
        report.promise(
            "served by what fio reads",
            "",
            Bound::AtLeast(0.9),
            &ratios(&rates, &fio_rates),
        )?;
    }
    report.add("the same device without a store", "MiB/s", &raw_rates)?;
    let cpu: Vec<f64> = by_raw.iter().map(|it| it.cpu_us_per_read).collect();
    report.add("CPU of a read there", "µs", &cpu)?;
    report.add("served", "MiB/s", &rates)?;
    report.add("served", "chunks/s", &of(&by_store, |it| it.chunks_per_s))?;
    report.add(
        "read by served bytes",
        "",
        &of(&by_store, |it| it.read_ratio),
    )?;
    let thread = of(&by_store, |it| it.thread_us_per_chunk);
    report.add("CPU of a chunk, forwarding thread", "µs", &thread)?;
    report.add(
        "served by the device without a store",
        "",
        &ratios(&rates, &raw_rates),
    )?;
    let process = of(&by_store, |it| it.process_us_per_chunk);
    report.promise(
        "CPU of a chunk, all threads",
        "µs",
        Bound::AtMost(2.5),
        &process,
    )?;
    let busy = of(&by_store, |it| it.busy_cores);
    report.promise("cores busy", "", Bound::AtMost(1.0), &busy)?;
    if !by_singles.is_empty() {
        let single_rates = of(&by_singles, |it| it.mib_per_s);
        report.add("served by batches of one", "MiB/s", &single_rates)?;
        let cpu = of(&by_singles, |it| it.process_us_per_chunk);
        report.add("CPU of a chunk there", "µs", &cpu)?;
        report.promise(
            "rate by that of batches of one",
            "",
            Bound::AtLeast(4.0),
            &ratios(&rates, &single_rates),
        )?;
    }
    output::print(&report, args.store.json)
}

/// Each round's ratio.
pub(super) fn ratios(these: &[f64], those: &[f64]) -> Vec<f64> {
    these.iter().zip(those).map(|(a, b)| a / b).collect()
}
