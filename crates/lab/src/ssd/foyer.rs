//! The second level beside foyer, a hybrid cache for any program.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::Value;
use tachonym_store::{Beginning, Config};

use super::StoreArgs;
use super::disk::Disk;
use super::packets::{ChunkId, Packets, in_order};
use super::report::{Bound, Report};
use super::rig::{BURST_PKTS, Rig, RigOptions, face_of, now, process_cpu_ns};
use crate::cache::zipf::Zipf;
use crate::engine_bed::workload::Burst;
use crate::output;
use crate::random::Random;

/// What to do where the other program is not built.
const HOW_TO_BUILD: &str = "build it (cargo build --release --manifest-path \
     compare/foyer/Cargo.toml), and give its path by --program";

/// Data that DRAM has when its hits are measured.
const N_HOT: u64 = 512;
const N_HITS: usize = 1_000_000;

/// Measures the second level and foyer on the same values, requests, DRAM and disk
#[derive(Args, Clone, Debug)]
pub(super) struct FoyerArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The program that runs foyer
    #[arg(
        long,
        default_value = "compare/foyer/target/release/tachonym-compare-foyer",
        value_name = "PATH"
    )]
    program: PathBuf,
    /// DRAM for Data, in MiB
    #[arg(long, default_value_t = 64, value_name = "MIB",
          value_parser = clap::value_parser!(u32).range(16..=1 << 20))]
    dram_mib: u32,
    /// Requests that are on the way
    #[arg(long, default_value_t = 320, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=4_096))]
    window: u32,
    /// Objects that are asked for after all have been read once
    #[arg(long, default_value_t = 200, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    requests: u32,
    /// Popularity of objects, by Zipf
    #[arg(long, default_value_t = 0.8, value_name = "ALPHA")]
    alpha: f64,
    /// What objects are drawn from
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

/// What some requests have taken.
#[derive(Clone, Copy, Debug)]
struct Phase {
    n_data: u64,
    cpu_s: f64,
    wall_s: f64,
}

/// Fetches chunks in this order, as many at a time as the window allows.
fn fetch(
    rig: &mut Rig,
    packets: &Packets,
    window: u64,
    chunks: impl Iterator<Item = ChunkId>,
) -> anyhow::Result<Phase> {
    let mut chunks = chunks.peekable();
    let (mut burst, mut n_asked) = (Burst::default(), 0);
    rig.forget_sent();
    rig.forget_ended();
    let mut last_worked = now();
    // Who asks again for what he waits for is sent one Data.
    let joined_before = rig.engine.counters().n_aggregated_interests;
    let n_pending = |rig: &Rig, n_asked: u64| {
        let n_joined = rig.engine.counters().n_aggregated_interests - joined_before;
        n_asked - rig.sink.n_ended[0] - n_joined
    };
    let (begun, cpu_begun) = (Instant::now(), process_cpu_ns());
    loop {
        burst.clear();
        while burst.len() < BURST_PKTS
            && n_pending(rig, n_asked) < window
            && let Some(chunk) = chunks.next()
        {
            rig.ask(chunk, &mut burst);
            n_asked += 1;
        }
        if !burst.is_empty() {
            rig.receive(face_of(0), &burst)?;
        }
        let has_turned = rig.turn();
        rig.produce(packets)?;
        if chunks.peek().is_none() && n_pending(rig, n_asked) == 0 {
            break;
        }
        if !burst.is_empty() || has_turned {
            last_worked = now();
        } else {
            rig.check_alive(last_worked, n_pending(rig, n_asked))?;
            rig.wait(Duration::from_millis(5));
        }
    }
    Ok(Phase {
        n_data: rig.sink.n_data,
        cpu_s: (process_cpu_ns() - cpu_begun) as f64 / 1e9,
        wall_s: begun.elapsed().as_secs_f64(),
    })
}

/// Nanoseconds of a hit in DRAM, as the other program measures its own: Data are looked at,
/// not copied.
fn dram_hit_ns(rig: &mut Rig, packets: &Packets, object_chunks: u64) -> anyhow::Result<f64> {
    let hot = |number| ChunkId {
        object: number / object_chunks,
        number: number % object_chunks,
    };
    fetch(rig, packets, 32, (0..N_HOT).map(hot))?;
    rig.settle();
    let mut random = Random::new(7);
    let mut bursts = vec![Burst::default(); N_HITS / BURST_PKTS];
    for burst in &mut bursts {
        for _ in 0..BURST_PKTS {
            rig.ask(hot(random.next_u64() % N_HOT), burst);
        }
    }
    rig.sink.reads = false;
    let begun = Instant::now();
    for burst in &bursts {
        rig.receive(face_of(0), burst)?;
        rig.turn();
    }
    let n_pkts: usize = bursts.iter().map(Burst::len).sum();
    Ok(begun.elapsed().as_nanos() as f64 / n_pkts as f64)
}

/// Runs the command.
pub(super) fn run(args: &FoyerArgs) -> anyhow::Result<()> {
    const FILE: &str = "ours";
    ensure!(
        args.program.exists(),
        "there is no {}: {HOW_TO_BUILD}",
        args.program.display()
    );
    let packets = args.store.packets();
    // The other one writes each value to whole pages of 4 KiB, and needs as much more.
    let its_bytes = 2 * args.store.bytes();
    let disk = Disk::new(&args.store.directory, args.store.bytes() + its_bytes)?;
    let batch_len = args.store.batch_len();
    let object_chunks = args.store.object_chunks;
    let n_objects = args.store.n_chunks() / object_chunks;
    ensure!(n_objects > 0, "the store is smaller than an object");
    let n_chunks = n_objects * object_chunks;
    let dram_bytes = u64::from(args.dram_mib) << 20;
    let mut random = Random::new(args.seed);
    let zipf = Zipf::new(n_objects as u32, args.alpha);
    let objects: Vec<u32> = (0..args.requests).map(|_| zipf.draw(&mut random)).collect();

    let n_reads = args.window as usize / batch_len;
    let options = RigOptions {
        l1_pkts: (dram_bytes / packets.data_bytes() as u64) as usize,
        n_consumers: 1,
        config: Config {
            batch_len,
            max_batches: args.store.max_batches(batch_len),
            max_reads: 2 * n_reads + 32,
            ..Config::default()
        },
    };
    let store = disk.format(FILE, args.store.bytes(), batch_len)?;
    let mut rig = Rig::with_store(&options, store, Beginning::New)?;
    rig.fill(&packets, in_order(n_chunks, object_chunks))?;
    rig.flush()?;
    let window = u64::from(args.window);
    let upstream_before = rig.engine.counters().n_out_interests;
    let scan = fetch(
        &mut rig,
        &packets,
        window,
        in_order(n_chunks, object_chunks),
    )?;
    let n_missing = rig.engine.counters().n_out_interests - upstream_before;
    let chunks = objects.iter().flat_map(|&object| {
        (0..object_chunks).map(move |number| ChunkId {
            object: object.into(),
            number,
        })
    });
    let trace = fetch(&mut rig, &packets, window, chunks)?;
    let hit_ns = dram_hit_ns(&mut rig, &packets, object_chunks)?;
    rig.flush()?;
    let counters = rig.second()?.counters();
    let n_counted = counters.n_written
        + counters.n_known
        + counters.n_not_admitted
        + counters.n_no_room
        + counters.n_unsuited
        + counters.n_lost;
    rig.stop();
    disk.remove(FILE)?;

    let trace_path = disk.path("trace");
    let bytes: Vec<u8> = objects.iter().flat_map(|it| it.to_le_bytes()).collect();
    fs::write(&trace_path, bytes)?;
    let folder = disk.path("foyer");
    fs::create_dir(&folder)?;
    let program = env::current_dir()?.join(&args.program);
    let output = Command::new(program)
        .arg("--trace")
        .arg(&trace_path)
        .arg("--directory")
        .arg(&folder)
        .arg(format!("--n-chunks={n_chunks}"))
        .arg(format!("--object-chunks={object_chunks}"))
        .arg(format!("--value-bytes={}", packets.data_bytes()))
        .arg(format!("--dram-bytes={dram_bytes}"))
        .arg(format!("--disk-bytes={its_bytes}"))
        .arg(format!("--window={window}"))
        .output()
        .context(HOW_TO_BUILD)?;
    ensure!(
        output.status.success(),
        "the program that runs foyer fails: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let other: Value = serde_json::from_slice(&output.stdout)?;
    let field = |phase: &str, name: &str| {
        let value = other[phase][name].as_f64();
        value.with_context(|| format!("no {phase}.{name} was printed"))
    };

    let ours = (scan.n_data - n_missing) as f64 / scan.cpu_s;
    let theirs = field("scan", "n_disk_hits")? / field("scan", "cpu_s")?.max(0.01);
    let our_trace = trace.n_data as f64 / trace.cpu_s;
    let their_hits = field("trace", "n_disk_hits")? + field("trace", "n_dram_hits")?;
    let their_trace = their_hits / field("trace", "cpu_s")?.max(0.01);
    let other_ns = other["dram_hit_ns"].as_f64().context("no DRAM hits")?;
    let mut report = Report::new(format!(
        "{n_chunks} Data of {} bytes in objects of {object_chunks}, DRAM of {} MiB, {window} \
         requests at a time; then {} objects by Zipf {}",
        packets.data_bytes(),
        args.dram_mib,
        args.requests,
        args.alpha
    ));
    let rate = |n: f64, s: f64| n / s / 1e3;
    let our_rate = rate(scan.n_data as f64, scan.wall_s);
    let their_rate = rate(field("scan", "n_disk_hits")?, field("scan", "wall_s")?);
    report.add("read once in order", "thousand/s", &[our_rate])?;
    report.add("foyer, the same", "thousand/s", &[their_rate])?;
    report.add(
        "hits of the disk, thousand in a CPU second",
        "",
        &[ours / 1e3],
    )?;
    report.add("foyer, the same", "", &[theirs / 1e3])?;
    report.add(
        "trace, thousand hits in a CPU second",
        "",
        &[our_trace / 1e3],
    )?;
    report.add("foyer, the same", "", &[their_trace / 1e3])?;
    report.add("a hit of DRAM", "ns", &[hit_ns])?;
    report.add("foyer, the same", "ns", &[other_ns])?;
    report.add("of what was inserted, not there", "", &[n_missing as f64])?;
    let missing = field("scan", "n_missing")?;
    report.add("foyer, the same", "", &[missing])?;
    let at_least = Bound::AtLeast;
    let what = "hits of the disk in a CPU second, by foyer's";
    report.promise(what, "", at_least(10.0), &[ours / theirs])?;
    let what = "cost of a hit of DRAM, by foyer's";
    report.promise(what, "", Bound::AtMost(0.5), &[hit_ns / other_ns])?;
    let uncounted = counters.n_offered as f64 - n_counted as f64;
    let what = "Data offered of which nothing is known";
    report.promise(what, "", Bound::AtMost(0.0), &[uncounted.abs()])?;
    output::print(&report, args.store.json)
}
