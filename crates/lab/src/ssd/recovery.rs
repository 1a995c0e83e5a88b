//! How soon a store is warm again after its router has ended.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::StoreArgs;
use super::disk::Disk;
use super::packets::{ChunkId, in_order};
use super::raw::Raw;
use super::report::{Bound, Report};
use super::rig::{Rig, RigOptions, now, process_cpu_ns};
use crate::output;
use crate::random::Random;

/// Measures recovery of a store, after a flush and without one
#[derive(Args, Clone, Debug)]
pub(super) struct RecoveryArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Times that the store is opened, after a flush and without one
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Segments fetched from each recovered store
    #[arg(long, default_value_t = 2_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    sample: u32,
    /// Seed of the sample
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

const FILE: &str = "recovery";

/// What opening a store has taken.
#[derive(Clone, Copy, Debug)]
struct Recovered {
    wall_ms: f64,
    cpu_us: f64,
    read_bytes: u64,
    n_batches: u64,
}

/// Opens the store of a file and waits until all of it is known.
fn recover(
    disk: &Disk,
    args: &RecoveryArgs,
    options: &RigOptions,
) -> anyhow::Result<(Rig, Recovered)> {
    let store = disk.reopen(FILE, args.store.bytes())?;
    let mut rig = Rig::with_store(options, store, Beginning::Existing)?;
    let (begun, cpu_begun) = (now(), process_cpu_ns());
    while rig.second()?.is_recovering() {
        rig.turn_or_wait();
    }
    let wall_ms = now().saturating_since(begun).as_secs_f64() * 1e3;
    let cpu_us = (process_cpu_ns() - cpu_begun) as f64 / 1e3;
    let counters = rig.second()?.counters();
    let recovered = Recovered {
        wall_ms,
        cpu_us,
        read_bytes: counters.n_read_bytes,
        n_batches: counters.n_recovered,
    };
    rig.settle();
    Ok((rig, recovered))
}

/// How many chunks of a sample the store has. None is asked for twice: two Interests of one
/// consumer for one name, at a time, have one Data.
fn n_found(
    rig: &mut Rig,
    args: &RecoveryArgs,
    among: std::ops::Range<u64>,
    random: &mut Random,
) -> anyhow::Result<u64> {
    rig.forget_sent();
    let n_chunks = among.end - among.start;
    let mut drawn = HashSet::new();
    for token in 0..args.sample {
        let mut place = among.start + random.next_u64() % n_chunks;
        while !drawn.insert(place) {
            place = among.start + random.next_u64() % n_chunks;
        }
        let chunk = ChunkId {
            object: place / args.store.object_chunks,
            number: place % args.store.object_chunks,
        };
        rig.receive_known(chunk, token)?;
        while rig.turn() || rig.n_in_flight() > 8 {}
    }
    rig.settle();
    rig.sink.upstream.clear();
    Ok(rig.sink.n_data)
}

/// Runs the command.
pub(super) fn run(args: &RecoveryArgs) -> anyhow::Result<()> {
    let packets = args.store.packets();
    let disk = Disk::new(&args.store.directory, args.store.bytes())?;
    let batch_len = args.store.batch_len();
    let options = RigOptions {
        l1_pkts: 1_024,
        admission: AdmissionKind::None,
        n_consumers: 1,
        config: Config {
            batch_len,
            max_batches: args.store.max_batches(batch_len),
            max_ahead: 0,
            ..Config::default()
        },
    };
    let n_flushed = args.store.n_chunks();
    let n_more = n_flushed / 200;
    ensure!(
        u64::from(args.sample) <= n_flushed,
        "the store has {n_flushed} segments, which is too few to draw {}; raise --store-mib",
        args.sample
    );
    let mut random = Random::new(args.seed);
    let store = disk.format(FILE, args.store.bytes(), batch_len)?;
    let mut rig = Rig::with_store(&options, store, Beginning::New)?;
    rig.fill(&packets, in_order(n_flushed, args.store.object_chunks))?;
    rig.flush()?;
    rig.check_stored(n_flushed)?;
    let used_bytes = rig.second()?.counters().n_written_bytes;
    rig.stop();

    let mut report = Report::new(format!(
        "{n_flushed} Data of {} bytes, {} MiB in all, in batches of {batch_len}",
        packets.data_bytes(),
        args.store.store_mib
    ));
    let per_packet = |it: &Recovered| it.cpu_us / n_flushed as f64;
    let mut n_stored = n_flushed;
    for (label, is_killed) in [("after a flush", false), ("without", true)] {
        let (mut cpu, mut wall, mut device, mut found) = (vec![], vec![], vec![], vec![]);
        let mut last = None;
        for _ in 0..args.rounds {
            if is_killed {
                // Its writes reach the disk as those of a process do that is killed: what was
                // submitted, and nothing of what was in memory.
                let (mut rig, _) = recover(&disk, args, &options)?;
                let end = n_stored + n_more;
                let more = in_order(end, args.store.object_chunks);
                rig.fill(&packets, more.skip(n_stored as usize))?;
                n_stored = end;
                rig.stop();
            }
            let (mut rig, recovered) = recover(&disk, args, &options)?;
            let n_sampled = n_found(&mut rig, args, 0..n_flushed, &mut random)?;
            found.push(n_sampled as f64 / f64::from(args.sample));
            rig.stop();
            // The device alone, with as many bytes in pieces as large.
            let read_bytes = usize::try_from(recovered.read_bytes)?.max(1);
            let n_regions = disk.reopen(FILE, args.store.bytes())?.1.n_regions as usize;
            let volume = disk.volume(FILE, args.store.bytes())?;
            let mut raw = Raw::new((volume, used_bytes), read_bytes.div_ceil(2 * n_regions), 32)?;
            let begun = now();
            raw.read_in_order(Duration::MAX, read_bytes as u64)?;
            device.push(now().saturating_since(begun).as_secs_f64() * 1e3);
            cpu.push(per_packet(&recovered));
            wall.push(recovered.wall_ms);
            last = Some(recovered);
        }
        let last = last.context("no round was measured")?;
        report.add(
            format!("batches found, {label}"),
            "",
            &[last.n_batches as f64],
        )?;
        report.add(
            format!("read, {label}"),
            "MiB",
            &[output::mib(last.read_bytes)],
        )?;
        report.add(format!("time, {label}"), "ms", &wall)?;
        report.add(
            format!("time of the device for as many bytes, {label}"),
            "ms",
            &device,
        )?;
        let bound = Bound::AtMost(0.05);
        report.promise(format!("CPU of a packet, {label}"), "µs", bound, &cpu)?;
        let bound = Bound::AtLeast(1.0);
        let what = format!("of what was flushed, served, {label}");
        report.promise(what, "", bound, &found)?;
    }
    ensure!(n_stored > n_flushed, "nothing was written after the flush");
    output::print(&report, args.store.json)
}
