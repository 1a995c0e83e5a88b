//! How long Interests wait for the disk.

use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use tachonym_packet::MonoNs;
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::StoreArgs;
use super::disk::Disk;
use super::packets::{ChunkId, in_order};
use super::raw::Raw;
use super::report::{Bound, Report};
use super::rig::{Rig, RigOptions, now};
use crate::output;
use crate::random::Random;
use crate::stats::Histogram;

/// What a rate is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Saturation {
    /// Interests a second that the store answers from the disk at most
    Hits,
    /// Reads a second that the disk does at most for who does nothing with them
    Disk,
}

/// Measures the delay of Interests for random batches, at half the highest rate
#[derive(Args, Clone, Debug)]
pub(super) struct LatencyArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Interests or reads in flight while the highest rate is measured
    #[arg(long, default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    depth: u16,
    /// Which highest rate: of hits, or of the disk
    #[arg(long, value_enum, default_value_t = Saturation::Hits)]
    of: Saturation,
    /// Most reads in flight, and their buffers; only a disk that stalls reaches it
    #[arg(long, default_value_t = 256, value_name = "N",
          value_parser = clap::value_parser!(u16).range(4..=4_096))]
    reads: u16,
    /// Rate of Interests, in percent of the highest rate
    #[arg(long, default_value_t = 50, value_name = "PCT",
          value_parser = clap::value_parser!(u8).range(1..=95))]
    load_pct: u8,
    /// Rounds, each of which measures the disk and the store
    #[arg(long, default_value_t = 21, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Time for each measurement of a round, in milliseconds
    #[arg(long, default_value_t = 2_000, value_name = "MS",
          value_parser = clap::value_parser!(u32).range(10..=100_000))]
    slot_ms: u32,
    /// Seed of names and times
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

/// Times of events that come independently of each other at a rate a second, from now on.
fn arrivals(rate: f64, time: Duration, random: &mut Random) -> Vec<MonoNs> {
    let (begun, mut at_s) = (now(), 0.001);
    let mut times = Vec::new();
    while at_s < time.as_secs_f64() {
        at_s += -(1.0 - random.next_fraction()).ln() / rate;
        times.push(begun + Duration::from_secs_f64(at_s));
    }
    times
}

/// Grows by one with every Interest that does not take another's place.
fn n_pending_or_ended(rig: &Rig) -> u64 {
    rig.engine.sizes().n_pit_entries as u64 + rig.sink.n_data + rig.sink.n_nacks
}

/// Asks for chunks drawn at random at these times; how long each took.
fn ask_at(
    rig: &mut Rig,
    times: &[MonoNs],
    mut draw: impl FnMut() -> ChunkId,
) -> anyhow::Result<Histogram> {
    let mut histogram = Histogram::default();
    let (mut n_asked, mut n_replaced) = (0, 0);
    rig.forget_sent();
    rig.sink.tokens = Some(Vec::new());
    let last = times.last().copied().unwrap_or(MonoNs::ZERO);
    while histogram.len() < times.len() as u64 {
        while times.get(n_asked).is_some_and(|&due| due <= now()) {
            let n_known = n_pending_or_ended(rig);
            rig.receive_known(draw(), n_asked as u32)?;
            n_asked += 1;
            // Of two Interests of one consumer for one name, at a time, the latter is answered.
            n_replaced += u64::from(n_pending_or_ended(rig) == n_known);
        }
        rig.turn();
        let at = now();
        let answered = rig.sink.tokens.iter_mut().flat_map(|it| it.drain(..));
        for token in answered {
            let waited = at.saturating_since(times[token as usize]);
            histogram.record(waited.as_nanos() as u64);
        }
        let is_over = n_asked == times.len() && rig.engine.sizes().n_pit_entries == 0;
        // What was lost, refused or is not there.
        if is_over || at > last + Duration::from_secs(3) {
            break;
        }
    }
    rig.sink.tokens = None;
    let n_answered = histogram.len();
    let n_interests = times.len() as u64 - n_replaced;
    ensure!(
        rig.sink.n_nacks + (n_interests - n_answered) < n_interests / 1_000 + 1,
        "of {n_interests} Interests, {n_answered} were answered from the disk and {} refused",
        rig.sink.n_nacks
    );
    Ok(histogram)
}

/// Asks for chunks drawn at random, so many at a time; how many are answered a second.
fn saturate(
    rig: &mut Rig,
    (depth, time): (usize, Duration),
    mut draw: impl FnMut() -> ChunkId,
) -> anyhow::Result<f64> {
    rig.forget_sent();
    let (begun, mut n_asked) = (now(), 0);
    while now().saturating_since(begun) < time {
        while rig.engine.sizes().n_pit_entries < depth {
            rig.receive_known(draw(), n_asked)?;
            n_asked += 1;
        }
        rig.turn();
    }
    let rate = rig.sink.n_data as f64 / now().saturating_since(begun).as_secs_f64();
    rig.settle();
    Ok(rate)
}

/// Runs the command.
pub(super) fn run(args: &LatencyArgs) -> anyhow::Result<()> {
    const FILE: &str = "latency";
    let packets = args.store.packets();
    let disk = Disk::new(&args.store.directory, args.store.bytes())?;
    let batch_len = args.store.batch_len();
    let n_chunks = args.store.n_chunks();
    let options = RigOptions {
        admission: AdmissionKind::None,
        // Small enough that next to nothing is found there.
        l1_pkts: 256,
        n_consumers: 1,
        config: Config {
            batch_len,
            max_batches: args.store.max_batches(batch_len),
            max_reads: args.reads.into(),
            max_ahead: 0,
            ..Config::default()
        },
    };
    let store = disk.format(FILE, args.store.bytes(), batch_len)?;
    let mut rig = Rig::with_store(&options, store, Beginning::New)?;
    rig.fill(&packets, in_order(n_chunks, args.store.object_chunks))?;
    rig.flush()?;
    rig.check_stored(n_chunks)?;
    let used_bytes = rig.second()?.counters().n_written_bytes;
    let slot = Duration::from_millis(args.slot_ms.into());
    let mut random = Random::new(args.seed);
    let mut names = Random::new(!args.seed);
    let mut draw = || {
        let place = names.next_u64() % n_chunks;
        ChunkId {
            object: place / args.store.object_chunks,
            number: place % args.store.object_chunks,
        }
    };
    // Warms up, and shows how large reads are.
    ask_at(&mut rig, &arrivals(200.0, slot / 4, &mut random), &mut draw)?;
    let counters = rig.second()?.counters();
    let read_bytes = counters.n_read_bytes / counters.n_reads.max(1);
    let raw = |depth| {
        let volume = disk.volume(FILE, args.store.bytes())?;
        Raw::new((volume, used_bytes), read_bytes as usize, depth)
    };
    let rate = match args.of {
        Saturation::Hits => saturate(&mut rig, (args.depth.into(), slot), &mut draw)?,
        Saturation::Disk => raw(args.depth.into())?.saturate(slot, &mut random)?,
    };
    let load = rate * f64::from(args.load_pct) / 100.0;
    let mut raw = raw(args.reads.into())?;
    const PERMILLES: [(u64, &str); 3] = [(500, "p50"), (990, "p99"), (999, "p99.9")];
    let mut columns = vec![(Vec::new(), Vec::new(), Vec::new()); PERMILLES.len()];
    for _ in 0..args.rounds {
        let of_device = raw.read_at(&arrivals(load, slot, &mut random), &mut random)?;
        let of_store = ask_at(&mut rig, &arrivals(load, slot, &mut random), &mut draw)?;
        for (&(permille, _), column) in PERMILLES.iter().zip(&mut columns) {
            let device_us = of_device.quantile_ns(permille) as f64 / 1e3;
            let store_us = of_store.quantile_ns(permille) as f64 / 1e3;
            column.0.push(device_us);
            column.1.push(store_us);
            column.2.push(store_us - device_us);
        }
    }
    let mut report = Report::new(format!(
        "Interests for batches of {} bytes drawn among {} MiB, at {load:.0} a second: {} % of the \
         {rate:.0} that {} at most, {} at a time",
        raw.read_bytes(),
        args.store.store_mib,
        args.load_pct,
        match args.of {
            Saturation::Hits => "are answered",
            Saturation::Disk => "the disk reads",
        },
        args.depth
    ));
    for ((permille, label), (device, store, above)) in PERMILLES.into_iter().zip(columns) {
        report.add(format!("{label} of the device"), "µs", &device)?;
        report.add(format!("{label} of an Interest"), "µs", &store)?;
        let what = format!("{label} above the device's");
        match permille {
            990 => report.promise(what, "µs", Bound::AtMost(500.0), &above)?,
            _ => report.add(what, "µs", &above)?,
        }
    }
    output::print(&report, args.store.json)
}
