//! Runs foyer, a hybrid cache for any program, on what `tachonym-lab run own/ssd-foyer` asks of the
//! second level, and prints one line of JSON.
//!
//! All values are inserted once, read once in order, then asked for as a trace says; at last a
//! few of them, again and again, which DRAM has. It measures foyer's own CPU time: that of the
//! whole process.
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Parser;
use foyer::{
    BlockEngineConfig, DeviceBuilder as _, FsDeviceBuilder, HybridCache, HybridCacheBuilder,
    HybridCachePolicy, IoEngineConfig, UringIoEngineConfig,
};
use serde::Serialize;

/// Runs foyer beside the second level of a content store.
#[derive(Parser)]
struct Cli {
    /// Objects that are asked for, one after the other: numbers of four bytes
    #[arg(long)]
    trace: PathBuf,
    /// Folder for its files
    #[arg(long)]
    directory: PathBuf,
    /// Values
    #[arg(long)]
    n_chunks: u64,
    /// Values that are one object, and read in order
    #[arg(long)]
    object_chunks: u64,
    /// Bytes of each
    #[arg(long)]
    value_bytes: usize,
    /// DRAM for values
    #[arg(long)]
    dram_bytes: usize,
    /// Disk for values
    #[arg(long)]
    disk_bytes: usize,
    /// Requests at a time
    #[arg(long)]
    window: u64,
}

/// What a phase has taken.
#[derive(Debug, Default, Serialize)]
struct Phase {
    n_requests: u64,
    n_dram_hits: u64,
    n_disk_hits: u64,
    n_missing: u64,
    wall_s: f64,
    cpu_s: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    fill: Phase,
    scan: Phase,
    trace: Phase,
    dram_hit_ns: f64,
}

/// Keys are names, as they are on the wire.
type Cache = HybridCache<Vec<u8>, Vec<u8>>;

/// CPU time of this process, in seconds.
fn cpu_s() -> anyhow::Result<f64> {
    const TICKS_PER_S: f64 = 100.0;
    let text = fs::read_to_string("/proc/self/stat")?;
    let (_, after) = text.rsplit_once(')').context("a name in brackets")?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |idx: usize| -> anyhow::Result<f64> {
        Ok(fields.get(idx).context("a field")?.parse::<f64>()?)
    };
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_S)
}

fn value(chunk: u64, bytes: usize) -> Vec<u8> {
    let mut value = vec![chunk as u8; bytes];
    value[..8].copy_from_slice(&chunk.to_le_bytes());
    value
}

/// Appends the name of a chunk, `/lab/ssd/OBJECT/seg=NUMBER`.
fn write_name(chunk: u64, object_chunks: u64, name: &mut Vec<u8>) {
    const GENERIC: u8 = 8;
    const SEGMENT: u8 = 50;
    let (object, number) = (chunk / object_chunks, chunk % object_chunks);
    let mut push = |typ, value: &[u8]| {
        name.extend([typ, value.len() as u8]);
        name.extend(value);
    };
    push(GENERIC, b"lab");
    push(GENERIC, b"ssd");
    push(GENERIC, &object.to_be_bytes());
    let width = match number {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x1_0000_0000 => 4,
        _ => 8,
    };
    push(SEGMENT, &number.to_be_bytes()[8 - width..]);
}

fn name(chunk: u64, object_chunks: u64) -> Vec<u8> {
    let mut name = Vec::new();
    write_name(chunk, object_chunks, &mut name);
    name
}

/// Asks for `chunks`, as many at a time as the window allows; what is missing is inserted if
/// `inserts`.
async fn ask(
    cache: &Cache,
    chunks: Arc<Vec<u64>>,
    cli: &Cli,
    inserts: bool,
) -> anyhow::Result<Phase> {
    let (object_chunks, value_bytes) = (cli.object_chunks, cli.value_bytes);
    let counts: Arc<[AtomicU64; 4]> = Arc::default();
    let (begun, cpu_begun) = (Instant::now(), cpu_s()?);
    let tasks: Vec<_> = (0..cli.window)
        .map(|_| {
            let (cache, counts) = (cache.clone(), Arc::clone(&counts));
            let chunks = Arc::clone(&chunks);
            tokio::spawn(async move {
                let mut key = Vec::new();
                loop {
                    let next = counts[3].fetch_add(1, Ordering::Relaxed);
                    let Some(&chunk) = chunks.get(next as usize) else {
                        return Ok::<_, foyer::Error>(());
                    };
                    key.clear();
                    write_name(chunk, object_chunks, &mut key);
                    let get = cache.get(&key);
                    let from_disk = get.need_await();
                    let place = match get.await? {
                        Some(found) if found.value()[..8] == chunk.to_le_bytes() => {
                            usize::from(from_disk)
                        }
                        _ => {
                            if inserts {
                                cache.insert(key.clone(), value(chunk, value_bytes));
                            }
                            2
                        }
                    };
                    counts[place].fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let count = |idx: usize| counts[idx].load(Ordering::Relaxed);
    Ok(Phase {
        n_requests: chunks.len() as u64,
        n_dram_hits: count(0),
        n_disk_hits: count(1),
        n_missing: count(2),
        wall_s: begun.elapsed().as_secs_f64(),
        cpu_s: cpu_s()? - cpu_begun,
    })
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    let device = FsDeviceBuilder::new(&cli.directory)
        .with_capacity(cli.disk_bytes)
        .with_direct(true)
        .build()?;
    let engine: Box<dyn IoEngineConfig> = Box::new(UringIoEngineConfig::new());
    let cache: Cache = HybridCacheBuilder::new()
        .with_policy(HybridCachePolicy::WriteOnInsertion)
        .memory(cli.dram_bytes)
        .with_weighter(|_, value: &Vec<u8>| value.len())
        .storage()
        .with_io_engine_config(engine)
        .with_engine_config(BlockEngineConfig::new(device))
        .build()
        .await?;

    let (begun, cpu_begun) = (Instant::now(), cpu_s()?);
    for chunk in 0..cli.n_chunks {
        cache.insert(
            name(chunk, cli.object_chunks),
            value(chunk, cli.value_bytes),
        );
        // Not faster than a disk writes.
        if chunk % 64 == 0 {
            let due = Duration::from_secs_f64(
                (chunk * cli.value_bytes as u64) as f64 / (400.0 * f64::from(1 << 20)),
            );
            tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
        }
    }
    cache.storage().wait().await;
    let fill = Phase {
        n_requests: cli.n_chunks,
        wall_s: begun.elapsed().as_secs_f64(),
        cpu_s: cpu_s()? - cpu_begun,
        ..Phase::default()
    };
    let all = Arc::new((0..cli.n_chunks).collect::<Vec<_>>());
    let scan = ask(&cache, all, &cli, false).await?;

    let objects = fs::read(&cli.trace).context("cannot read the trace")?;
    let objects = objects
        .chunks_exact(4)
        .map(|bytes| u64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes"))));
    let chunks = objects.flat_map(|object| {
        let first = object * cli.object_chunks;
        first..first + cli.object_chunks
    });
    let chunks = Arc::new(chunks.collect::<Vec<_>>());
    let trace = ask(&cache, chunks, &cli, true).await?;

    const N_HOT: u64 = 512;
    const N_HITS: u64 = 1_000_000;
    let (mut names, mut ends) = (Vec::new(), Vec::new());
    for chunk in 0..N_HOT {
        cache.insert(
            name(chunk, cli.object_chunks),
            value(chunk, cli.value_bytes),
        );
    }
    for request in 0..N_HITS {
        let chunk = request.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 & (N_HOT - 1);
        write_name(chunk, cli.object_chunks, &mut names);
        ends.push(names.len());
    }
    cache.storage().wait().await;
    let begun = Instant::now();
    let (mut n_hits, mut start) = (0, 0);
    for end in ends {
        let get = cache.get(&names[start..end]);
        start = end;
        n_hits += u64::from(!get.need_await() && get.await?.is_some());
    }
    let dram_hit_ns = begun.elapsed().as_nanos() as f64 / N_HITS as f64;
    ensure!(
        n_hits * 100 > N_HITS * 95,
        "of {N_HITS} requests DRAM answered {n_hits}"
    );
    let report = Report {
        fill,
        scan,
        trace,
        dram_hit_ns,
    };
    println!("{}", serde_json::to_string(&report)?);
    cache.close().await?;
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(run(cli))
}
