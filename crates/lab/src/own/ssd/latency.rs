//! How long Interests wait for the disk.

use std::time::Duration;

use anyhow::ensure;
use tachonym_bench::stats::Histogram;
use tachonym_bench::{Bound, Context, Cost, Experiment, Need, Param, ParamKind, Record};
use tachonym_packet::MonoNs;
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::packets::{ChunkId, in_order};
use super::raw::Raw;
use super::rig::{Rig, RigOptions, now};
use super::{BATCH, DIRECTORY, Figures, OBJECT_CHUNKS, StoreArgs, packet_bytes, store_mib};
use tachonym_bench::random::Random;

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/ssd-latency",
    title: "Delay of Interests for random batches at half the highest rate",
    source: "",
    cost: Cost::minutes(0.4, 2.0),
    needs: &[Need::Disk, Need::IoUring],
    params: &[
        store_mib(["32", "1024", "4096"]),
        Param::new(
            "depth",
            "Interests or reads in flight while the highest rate is measured",
            ParamKind::Count { min: 1, max: 1_024 },
            ["64"; 3],
        ),
        Param::choice(
            "of",
            "highest rate: hits that the store answers, or reads that the disk does",
            &["hits", "disk"],
            "hits",
        ),
        Param::new(
            "reads",
            "most reads in flight; only a disk that stalls reaches it",
            ParamKind::Count { min: 4, max: 4_096 },
            ["256"; 3],
        ),
        Param::new(
            "load_pct",
            "rate of Interests, percent of the highest",
            ParamKind::Count { min: 1, max: 95 },
            ["2", "50", "50"],
        ),
        Param::rounds(["1", "9", "21"]),
        Param::count(
            "slot_ms",
            "time of each measurement, ms",
            ["60", "1k", "2k"],
        ),
        Param::seed(),
        packet_bytes(["0"; 3]),
        BATCH,
        OBJECT_CHUNKS,
        DIRECTORY,
    ],
    run,
}];

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
    rig.bed.engine.sizes().n_pit_entries as u64 + rig.bed.out.n_data + rig.bed.out.n_nacks
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
    rig.bed.out.tokens = Some(Vec::new());
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
        let answered = rig.bed.out.tokens.iter_mut().flat_map(|it| it.drain(..));
        for token in answered {
            let waited = at.saturating_since(times[token as usize]);
            histogram.record(waited.as_nanos() as u64);
        }
        let is_over = n_asked == times.len() && rig.bed.engine.sizes().n_pit_entries == 0;
        // What was lost, refused or is not there.
        if is_over || at > last + Duration::from_secs(3) {
            break;
        }
    }
    rig.bed.out.tokens = None;
    let n_answered = histogram.len();
    let n_interests = times.len() as u64 - n_replaced;
    ensure!(
        rig.bed.out.n_nacks + (n_interests - n_answered) < n_interests / 1_000 + 1,
        "of {n_interests} Interests, {n_answered} were answered from the disk and {} refused",
        rig.bed.out.n_nacks
    );
    Ok(histogram)
}

/// Asks for chunks drawn at random, `depth` at a time; how many are answered a second.
fn saturate(
    rig: &mut Rig,
    (depth, time): (usize, Duration),
    mut draw: impl FnMut() -> ChunkId,
) -> anyhow::Result<f64> {
    rig.forget_sent();
    let (begun, mut n_asked) = (now(), 0);
    while now().saturating_since(begun) < time {
        while rig.bed.engine.sizes().n_pit_entries < depth {
            rig.receive_known(draw(), n_asked)?;
            n_asked += 1;
        }
        rig.turn();
    }
    let rate = rig.bed.out.n_data as f64 / now().saturating_since(begun).as_secs_f64();
    rig.settle();
    Ok(rate)
}

fn run(context: &Context) -> anyhow::Result<Record> {
    const FILE: &str = "latency";
    let args = StoreArgs::of(context);
    let disk = args.disk(1)?;
    let n_chunks = args.n_chunks();
    let max_reads = context.size("reads");
    let options = RigOptions {
        admission: AdmissionKind::None,
        // Small enough that next to nothing is found there.
        l1_pkts: 256,
        n_consumers: 1,
        config: Config {
            batch_len: args.batch_len,
            max_batches: args.max_batches(args.batch_len),
            max_reads,
            max_ahead: 0,
            ..Config::default()
        },
    };
    let store = disk.format(FILE, args.bytes, args.batch_len)?;
    let mut rig = Rig::with_store(&options, store, Beginning::New)?;
    rig.fill(&args.packets, in_order(n_chunks, args.object_chunks))?;
    rig.flush()?;
    rig.check_stored(n_chunks)?;
    let used_bytes = rig.second()?.counters().n_written_bytes;
    let slot = Duration::from_millis(context.count("slot_ms"));
    let mut random = Random::new(context.seed());
    let mut names = Random::new(!context.seed());
    let mut draw = || args.chunk(names.next_u64() % n_chunks);
    // Warms up, and shows how large reads are.
    ask_at(&mut rig, &arrivals(200.0, slot / 4, &mut random), &mut draw)?;
    let counters = rig.second()?.counters();
    let read_bytes = counters.n_read_bytes / counters.n_reads.max(1);
    let raw = |depth| {
        let volume = disk.volume(FILE, args.bytes)?;
        Raw::new((volume, used_bytes), read_bytes as usize, depth)
    };
    let (depth, is_of_hits) = (context.size("depth"), context.text("of") == "hits");
    let rate = match is_of_hits {
        true => saturate(&mut rig, (depth, slot), &mut draw)?,
        false => raw(depth)?.saturate(slot, &mut random)?,
    };
    let load = rate * context.number("load_pct") / 100.0;
    let mut raw = raw(max_reads)?;
    const PERMILLES: [(u64, &str); 3] = [(500, "p50"), (990, "p99"), (999, "p99.9")];
    let mut columns = vec![(Vec::new(), Vec::new(), Vec::new()); PERMILLES.len()];
    for round in 0..context.rounds() {
        let of_device =
            |raw: &mut Raw, random: &mut Random| raw.read_at(&arrivals(load, slot, random), random);
        let first = match round % 2 {
            0 => Some(of_device(&mut raw, &mut random)?),
            _ => None,
        };
        let of_store = ask_at(&mut rig, &arrivals(load, slot, &mut random), &mut draw)?;
        let of_device = match first {
            Some(first) => first,
            None => of_device(&mut raw, &mut random)?,
        };
        for (&(permille, _), column) in PERMILLES.iter().zip(&mut columns) {
            let device_us = of_device.quantile_ns(permille) as f64 / 1e3;
            let store_us = of_store.quantile_ns(permille) as f64 / 1e3;
            column.0.push(device_us);
            column.1.push(store_us);
            column.2.push(store_us - device_us);
        }
    }
    let mut figures = Figures::new(&args);
    let most = match is_of_hits {
        true => "Interests answered a second at most",
        false => "reads of the disk a second at most",
    };
    figures.add(most, "", &[rate]);
    figures.add("Interests a second while delays are measured", "", &[load]);
    for ((permille, label), (device, store, above)) in PERMILLES.into_iter().zip(columns) {
        figures.add(format!("{label} of the device"), "µs", &device);
        figures.add(format!("{label} of an Interest"), "µs", &store);
        let what = format!("{label} above the device's");
        figures.add(what.clone(), "µs", &above);
        if permille == 990 {
            figures.judge(what, "µs", Bound::AtMost(500.0), &above)?;
            let is_noise = above.iter().any(|&it| it < 0.0);
            if is_noise {
                figures.record.note(
                    "In some rounds the device alone was slower than the store: the disk stalled, \
                     and the difference tells little.",
                );
            }
        }
    }
    let read_bytes = raw.read_bytes();
    let mut record = figures.finish();
    record.note(format!(
        "Interests for batches drawn at random, reads of {read_bytes} bytes, {} % of the highest \
         rate, which was measured with {depth} at a time.",
        context.count("load_pct")
    ));
    Ok(record)
}
