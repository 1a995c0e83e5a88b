//! The SSD level beside foyer, a hybrid cache for any program.

use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tachonym_bench::{Bound, Context, Cost, Experiment, Need, Param, ParamKind, Record};
use tachonym_policy::{AdmissionKind, EvictionKind, PolicyConfig};
use tachonym_store::{Beginning, Config};

use super::disk::Disk;
use super::packets::{ChunkId, Packets, in_order};
use super::rig::{BURST_PKTS, Rig, RigOptions, face_of, now, process_cpu_ns};
use super::{BATCH, DIRECTORY, Figures, OBJECT_CHUNKS, StoreArgs, packet_bytes, ratios, store_mib};
use crate::beds::engine::workload::Burst;
use crate::beds::first_level::FirstLevel;
use crate::workloads::zipf::Zipf;
use tachonym_bench::random::Random;

/// What to do where the other program is not built.
const HOW_TO_BUILD: &str = "build it (cargo build --release --manifest-path \
     compare/foyer/Cargo.toml), and name its path with --set program=PATH";

/// Data that DRAM has when its hits are measured.
const N_HOT: u64 = 512;
const N_HITS: usize = 1_000_000;

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/ssd-foyer",
    title: "The SSD level and foyer with the same values, requests, DRAM and disk",
    source: "",
    cost: Cost::minutes(1.5, 5.0),
    needs: &[
        Need::Disk,
        Need::IoUring,
        Need::Program("program", HOW_TO_BUILD),
    ],
    params: &[
        Param::new(
            "program",
            "the program that runs foyer",
            ParamKind::Text,
            ["compare/foyer/target/release/tachonym-compare-foyer"; 3],
        ),
        store_mib(["64", "1024", "4096"]),
        Param::new(
            "dram_mib",
            "DRAM for Data, MiB",
            ParamKind::Count {
                min: 16,
                max: 1 << 20,
            },
            ["16", "64", "64"],
        ),
        Param::new(
            "window",
            "requests in flight",
            ParamKind::Count { min: 1, max: 4_096 },
            ["320"; 3],
        ),
        Param::count(
            "requests",
            "objects requested after all have been read once",
            ["4", "100", "200"],
        ),
        Param::new(
            "alpha",
            "Zipf exponent of the objects' popularity",
            ParamKind::Number,
            ["0.8"; 3],
        ),
        Param::rounds(["1", "3", "3"]),
        Param::seed(),
        packet_bytes(["0"; 3]),
        BATCH,
        OBJECT_CHUNKS,
        DIRECTORY,
    ],
    run,
}];

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
    // A consumer that asks again for a pending name is sent one Data.
    let joined_before = rig.bed.engine.counters().n_aggregated_interests;
    let n_pending = |rig: &Rig, n_asked: u64| {
        let n_joined = rig.bed.engine.counters().n_aggregated_interests - joined_before;
        n_asked - rig.bed.out.n_ended[0] - n_joined
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
        n_data: rig.bed.out.n_data,
        cpu_s: (process_cpu_ns() - cpu_begun) as f64 / 1e9,
        wall_s: begun.elapsed().as_secs_f64(),
    })
}

/// Names of Data that DRAM has, as many as hits are measured.
fn hot_names(object_chunks: u64) -> impl Iterator<Item = ChunkId> {
    let mut random = Random::new(7);
    (0..N_HITS).map(move |_| hot(random.next_u64() % N_HOT, object_chunks))
}

const fn hot(number: u64, object_chunks: u64) -> ChunkId {
    ChunkId {
        object: number / object_chunks,
        number: number % object_chunks,
    }
}

/// Nanoseconds of an Interest that DRAM answers, all of the engine's work for it included.
/// Data are looked at, not copied.
fn exchange_ns(rig: &mut Rig, packets: &Packets, object_chunks: u64) -> anyhow::Result<f64> {
    let all_hot = (0..N_HOT).map(|number| hot(number, object_chunks));
    fetch(rig, packets, 32, all_hot)?;
    rig.settle();
    let mut bursts = vec![Burst::default(); N_HITS / BURST_PKTS];
    for (i, chunk) in hot_names(object_chunks).enumerate() {
        rig.ask(chunk, &mut bursts[i / BURST_PKTS]);
    }
    rig.bed.out.reads = false;
    let begun = Instant::now();
    for burst in &bursts {
        rig.receive(face_of(0), burst)?;
        rig.turn();
    }
    let n_pkts: usize = bursts.iter().map(Burst::len).sum();
    Ok(begun.elapsed().as_nanos() as f64 / n_pkts as f64)
}

/// Nanoseconds of a hit of the content store alone, by the bytes of an Interest: what the
/// other program measures of its own. A store is asked in bursts, as routers do.
fn store_hit_ns(packets: &Packets, object_chunks: u64, n_fit: usize) -> anyhow::Result<f64> {
    let lru = PolicyConfig::new(AdmissionKind::None, EvictionKind::Lru, n_fit);
    let mut store = FirstLevel::with_policy(&lru)?;
    let mut wire = Vec::new();
    for number in 0..N_HOT {
        wire.clear();
        packets.write_data(hot(number, object_chunks), &mut wire);
        store.insert_burst(std::iter::once(&wire[..]));
    }
    let mut bursts = vec![Burst::default(); N_HITS / BURST_PKTS];
    for (i, chunk) in hot_names(object_chunks).enumerate() {
        let burst = &mut bursts[i / BURST_PKTS];
        burst.push(|out| Packets::write_interest(chunk, i as u32, out));
    }
    let mut n_hits = 0;
    let begun = Instant::now();
    for burst in &bursts {
        store.find_burst(burst, |_, data| n_hits += usize::from(data.is_some()));
    }
    let elapsed_ns = begun.elapsed().as_nanos() as f64;
    ensure!(
        n_hits == N_HITS,
        "the DRAM level answered only {n_hits} of {N_HITS} requests"
    );
    Ok(elapsed_ns / N_HITS as f64)
}

/// What is asked of both.
struct Task<'a> {
    context: &'a Context,
    store: StoreArgs,
    n_chunks: u64,
    /// Of the trace.
    objects: Vec<u32>,
}

/// What a round has shown of ours.
#[derive(Clone, Copy, Debug)]
struct Ours {
    scan: Phase,
    trace: Phase,
    exchange_ns: f64,
    store_hit_ns: f64,
    /// Of what was inserted, what was not there.
    n_missing: u64,
    /// Of what was offered to the disk, that of which nothing is known.
    n_uncounted: f64,
}

impl Ours {
    fn disk_hits_in_cpu_s(&self) -> f64 {
        (self.scan.n_data - self.n_missing) as f64 / self.scan.cpu_s
    }
}

/// What the other program has said of itself.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Theirs {
    scan: TheirPhase,
    trace: TheirPhase,
    dram_hit_ns: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct TheirPhase {
    n_dram_hits: f64,
    n_disk_hits: f64,
    n_missing: f64,
    wall_s: f64,
    cpu_s: f64,
}

impl TheirPhase {
    /// In a CPU second, by its clock of ticks.
    fn in_cpu_s(&self, n: f64) -> f64 {
        n / self.cpu_s.max(0.01)
    }
}

impl Task<'_> {
    fn dram_bytes(&self) -> u64 {
        self.context.count("dram_mib") << 20
    }

    fn measure_ours(&self, disk: &Disk) -> anyhow::Result<Ours> {
        const FILE: &str = "ours";
        let (store, packets) = (&self.store, &self.store.packets);
        let (batch_len, object_chunks) = (store.batch_len, store.object_chunks);
        let window = self.context.size("window");
        let n_fit = (self.dram_bytes() / packets.data_bytes() as u64) as usize;
        let options = RigOptions {
            l1_pkts: n_fit,
            admission: AdmissionKind::None,
            n_consumers: 1,
            config: Config {
                batch_len,
                max_batches: store.max_batches(batch_len),
                max_reads: 2 * (window / batch_len) + 32,
                ..Config::default()
            },
        };
        let volume = disk.format(FILE, store.bytes, batch_len)?;
        let mut rig = Rig::with_store(&options, volume, Beginning::New)?;
        let all = || in_order(self.n_chunks, object_chunks);
        rig.fill(packets, all())?;
        rig.flush()?;
        let window = window as u64;
        let upstream_before = rig.bed.engine.counters().n_out_interests;
        let scan = fetch(&mut rig, packets, window, all())?;
        let n_missing = rig.bed.engine.counters().n_out_interests - upstream_before;
        let chunks = self.objects.iter().flat_map(|&object| {
            (0..object_chunks).map(move |number| ChunkId {
                object: object.into(),
                number,
            })
        });
        let trace = fetch(&mut rig, packets, window, chunks)?;
        let exchange_ns = exchange_ns(&mut rig, packets, object_chunks)?;
        rig.flush()?;
        let second = rig.second()?;
        let counters = second.counters();
        let n_counted = counters.n_ended() + second.n_waiting() as u64;
        let n_uncounted = counters.n_offered.abs_diff(n_counted) as f64;
        rig.stop();
        disk.remove(FILE)?;
        Ok(Ours {
            scan,
            trace,
            exchange_ns,
            store_hit_ns: store_hit_ns(packets, object_chunks, n_fit)?,
            n_missing,
            n_uncounted,
        })
    }

    fn measure_theirs(&self, disk: &Disk, disk_bytes: u64) -> anyhow::Result<Theirs> {
        let trace_path = disk.path("trace");
        let bytes: Vec<u8> = self
            .objects
            .iter()
            .flat_map(|it| it.to_le_bytes())
            .collect();
        fs::write(&trace_path, bytes)?;
        let folder = disk.path("foyer");
        fs::create_dir(&folder)?;
        let program = env::current_dir()?.join(self.context.text("program"));
        let output = Command::new(program)
            .arg("--trace")
            .arg(&trace_path)
            .arg("--directory")
            .arg(&folder)
            .arg(format!("--n-chunks={}", self.n_chunks))
            .arg(format!("--object-chunks={}", self.store.object_chunks))
            .arg(format!("--value-bytes={}", self.store.packets.data_bytes()))
            .arg(format!("--dram-bytes={}", self.dram_bytes()))
            .arg(format!("--disk-bytes={disk_bytes}"))
            .arg(format!("--window={}", self.context.count("window")))
            .output()
            .context(HOW_TO_BUILD)?;
        ensure!(
            output.status.success(),
            "the program that runs foyer failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        fs::remove_dir_all(folder)?;
        serde_json::from_slice(&output.stdout)
            .context("the program that runs foyer printed unexpected output")
    }
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let store = StoreArgs::of(context);
    // The other program writes each value to whole pages of 4 KiB, and needs as much again.
    let its_bytes = 2 * store.bytes;
    let disk = Disk::new(&store.directory, store.bytes + its_bytes)?;
    let n_objects = store.n_chunks() / store.object_chunks;
    ensure!(
        n_objects > 0,
        "the store is smaller than one object; raise store_mib"
    );
    let mut random = Random::new(context.seed());
    let zipf = Zipf::new(n_objects as u32, context.number("alpha"));
    let objects = (0..context.count("requests")).map(|_| zipf.draw(&mut random));
    let task = Task {
        context,
        n_chunks: n_objects * store.object_chunks,
        objects: objects.collect(),
        store,
    };
    let mut rounds = Vec::new();
    for _ in 0..context.rounds() {
        let ours = task.measure_ours(&disk)?;
        rounds.push((ours, task.measure_theirs(&disk, its_bytes)?));
    }
    task.record(&rounds)
}

impl Task<'_> {
    fn record(&self, rounds: &[(Ours, Theirs)]) -> anyhow::Result<Record> {
        let mut figures = Figures::new(&self.store);
        let ours = |figure: fn(&Ours) -> f64| -> Vec<f64> {
            rounds.iter().map(|(ours, _)| figure(ours)).collect()
        };
        let theirs = |figure: fn(&Theirs) -> f64| -> Vec<f64> {
            rounds.iter().map(|(_, theirs)| figure(theirs)).collect()
        };
        let rate = ours(|it| it.scan.n_data as f64 / it.scan.wall_s / 1e3);
        figures.add("read once in order", "thousand/s", &rate);
        let rate = theirs(|it| it.scan.n_disk_hits / it.scan.wall_s / 1e3);
        figures.add("foyer, the same", "thousand/s", &rate);
        let disk_hits = ours(|it| it.disk_hits_in_cpu_s() / 1e3);
        let their_disk_hits = theirs(|it| it.scan.in_cpu_s(it.scan.n_disk_hits) / 1e3);
        figures.add("hits of the disk, thousand in a CPU second", "", &disk_hits);
        figures.add("foyer, the same", "", &their_disk_hits);
        let trace_hits = ours(|it| it.trace.n_data as f64 / it.trace.cpu_s / 1e3);
        figures.add("trace, thousand hits in a CPU second", "", &trace_hits);
        let their_trace_hits = theirs(|it| {
            let n_hits = it.trace.n_disk_hits + it.trace.n_dram_hits;
            it.trace.in_cpu_s(n_hits) / 1e3
        });
        figures.add("foyer, the same", "", &their_trace_hits);
        let store_hits = ours(|it| it.store_hit_ns);
        let exchanges = ours(|it| it.exchange_ns);
        let their_hits = theirs(|it| it.dram_hit_ns);
        figures.add("a hit of DRAM, the content store alone", "ns", &store_hits);
        figures.add("the same, all that an Interest takes", "ns", &exchanges);
        figures.add("foyer, a hit of DRAM", "ns", &their_hits);
        let n_missing = ours(|it| it.n_missing as f64);
        figures.add("of what was inserted, not there", "", &n_missing);
        let n_missing = theirs(|it| it.scan.n_missing);
        figures.add("foyer, the same", "", &n_missing);
        let at_most = Bound::AtMost;
        let what = "hits of the disk in a CPU second, by foyer's";
        let by_theirs = ratios(&disk_hits, &their_disk_hits);
        figures.judge(what, "", Bound::AtLeast(10.0), &by_theirs)?;
        let what = "hits of the trace, of both levels, in a CPU second, by foyer's";
        let by_theirs = ratios(&trace_hits, &their_trace_hits);
        figures.judge(what, "", Bound::AtLeast(10.0), &by_theirs)?;
        let what = "cost of a hit of DRAM, the store alone, by foyer's";
        let by_theirs = ratios(&store_hits, &their_hits);
        figures.judge(what, "", at_most(0.5), &by_theirs)?;
        let what = "cost of a hit of DRAM, all that an Interest takes, by foyer's";
        let by_theirs = ratios(&exchanges, &their_hits);
        figures.judge(what, "", at_most(0.5), &by_theirs)?;
        let what = "Data offered of which nothing is known";
        figures.judge(what, "", at_most(0.0), &ours(|it| it.n_uncounted))?;

        let mut record = figures.finish();
        record.note(format!(
            "Program that runs foyer: {}. {} Data, DRAM of {} MiB, {} requests at a time; then {} \
             objects by Zipf {}; keys are names. foyer knows no bursts; all that an Interest takes \
             has headers, loop detection, counters and sending as well, which foyer does not do.",
            self.context.text("program"),
            self.n_chunks,
            self.context.count("dram_mib"),
            self.context.count("window"),
            self.context.count("requests"),
            self.context.number("alpha")
        ));
        Ok(record)
    }
}
