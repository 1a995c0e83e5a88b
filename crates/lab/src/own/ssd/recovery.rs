//! How soon a store is warm again after its router has ended.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tachonym_bench::{Bound, Context, Cost, Experiment, Need, Param, Record};
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::disk::Disk;
use super::packets::in_order;
use super::raw::Raw;
use super::rig::{Rig, RigOptions, now, process_cpu_ns};
use super::{BATCH, DIRECTORY, Figures, OBJECT_CHUNKS, StoreArgs, mib, packet_bytes, store_mib};
use tachonym_bench::random::Random;

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/ssd-recovery",
    title: "Recovery of a store, after a flush and without one",
    source: "",
    cost: Cost::minutes(0.1, 2.0),
    needs: &[Need::Disk, Need::IoUring],
    params: &[
        store_mib(["64", "1024", "4096"]),
        Param::count(
            "sample",
            "segments fetched from each recovered store",
            ["200", "2k", "2k"],
        ),
        Param::rounds(["1", "5", "5"]),
        Param::seed(),
        packet_bytes(["0"; 3]),
        BATCH,
        OBJECT_CHUNKS,
        DIRECTORY,
    ],
    run,
}];

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
    store_args: &StoreArgs,
    options: &RigOptions,
) -> anyhow::Result<(Rig, Recovered)> {
    let store = disk.reopen(FILE, store_args.bytes)?;
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

/// How many of `n_sampled` chunks, drawn from the first `n_chunks`, the store has. None is asked for twice: two Interests of one
/// consumer for one name, at a time, have one Data.
fn n_found(
    rig: &mut Rig,
    store: &StoreArgs,
    (n_sampled, n_chunks): (u64, u64),
    random: &mut Random,
) -> anyhow::Result<u64> {
    rig.forget_sent();
    let mut drawn = HashSet::new();
    for token in 0..n_sampled {
        let mut place = random.next_u64() % n_chunks;
        while !drawn.insert(place) {
            place = random.next_u64() % n_chunks;
        }
        rig.receive_known(store.chunk(place), token as u32)?;
        while rig.turn() || rig.n_in_flight() > 8 {}
    }
    rig.settle();
    rig.bed.out.upstream.clear();
    Ok(rig.bed.out.n_data)
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let args = StoreArgs::of(context);
    let disk = args.disk(1)?;
    let options = RigOptions {
        l1_pkts: 1_024,
        admission: AdmissionKind::None,
        n_consumers: 1,
        config: Config {
            batch_len: args.batch_len,
            max_batches: args.max_batches(args.batch_len),
            max_ahead: 0,
            ..Config::default()
        },
    };
    let n_flushed = args.n_chunks();
    let n_more = n_flushed / 200;
    let n_sampled = context.count("sample");
    ensure!(
        n_sampled <= n_flushed,
        "the store has {n_flushed} segments, which is too few to draw {n_sampled}; raise store_mib"
    );
    let mut random = Random::new(context.seed());
    let store = disk.format(FILE, args.bytes, args.batch_len)?;
    let mut rig = Rig::with_store(&options, store, Beginning::New)?;
    rig.fill(&args.packets, in_order(n_flushed, args.object_chunks))?;
    rig.flush()?;
    rig.check_stored(n_flushed)?;
    let used_bytes = rig.second()?.counters().n_written_bytes;
    rig.stop();

    let mut figures = Figures::new(&args);
    figures.add("Data flushed", "", &[n_flushed as f64]);
    let per_packet = |it: &Recovered| it.cpu_us / n_flushed as f64;
    let mut n_stored = n_flushed;
    for (label, is_killed) in [("after a flush", false), ("without", true)] {
        let (mut cpu, mut wall, mut device, mut found) = (vec![], vec![], vec![], vec![]);
        let mut last = None;
        for _ in 0..context.rounds() {
            if is_killed {
                // Its writes reach the disk as those of a process do that is killed: what was
                // submitted, and nothing of what was in memory.
                let (mut rig, _) = recover(&disk, &args, &options)?;
                let end = n_stored + n_more;
                let more = in_order(end, args.object_chunks);
                rig.fill(&args.packets, more.skip(n_stored as usize))?;
                n_stored = end;
                rig.stop();
            }
            let (mut rig, recovered) = recover(&disk, &args, &options)?;
            let n_served = n_found(&mut rig, &args, (n_sampled, n_flushed), &mut random)?;
            found.push(n_served as f64 / n_sampled as f64);
            rig.stop();
            // The device alone, with as many bytes in pieces as large.
            let read_bytes = usize::try_from(recovered.read_bytes)?.max(1);
            let n_regions = disk.reopen(FILE, args.bytes)?.1.n_regions as usize;
            let volume = disk.volume(FILE, args.bytes)?;
            let mut raw = Raw::new((volume, used_bytes), read_bytes.div_ceil(2 * n_regions), 32)?;
            let begun = now();
            raw.read_in_order(Duration::MAX, read_bytes as u64)?;
            device.push(now().saturating_since(begun).as_secs_f64() * 1e3);
            cpu.push(per_packet(&recovered));
            wall.push(recovered.wall_ms);
            last = Some(recovered);
        }
        let last = last.context("no round was measured")?;
        let what = format!("batches found, {label}");
        figures.add(what, "", &[last.n_batches as f64]);
        figures.add(format!("read, {label}"), "MiB", &[mib(last.read_bytes)]);
        figures.add(format!("time, {label}"), "ms", &wall);
        let what = format!("time of the device for as many bytes, {label}");
        figures.add(what, "ms", &device);
        let what = format!("processor time of a packet, {label}");
        figures.judge(what, "µs", Bound::AtMost(0.05), &cpu)?;
        let what = format!("of what was flushed, served, {label}");
        figures.judge(what, "", Bound::AtLeast(1.0), &found)?;
    }
    ensure!(n_stored > n_flushed, "nothing was written after the flush");
    let mut record = figures.finish();
    record.note(
        "Without a flush means that the store's process leaves with what it has submitted, and \
         nothing of what was in memory; the router's tests kill it.",
    );
    Ok(record)
}
