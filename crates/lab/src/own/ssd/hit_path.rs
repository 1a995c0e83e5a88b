//! What an SSD level costs Interests that the DRAM level answers.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use tachonym_bench::{Bound, Context, Cost, Experiment, Need, Param, ParamKind, Record};
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::packets::in_order;
use super::rig::{BURST_PKTS, Rig, RigOptions, face_of};
use super::{BATCH, DIRECTORY, Figures, OBJECT_CHUNKS, StoreArgs, packet_bytes, ratios, store_mib};
use crate::beds::engine::workload::Burst;
use tachonym_bench::random::Random;

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/ssd-hit-path",
    title: "A hit in the DRAM level with and without an SSD level behind it",
    source: "",
    cost: Cost::minutes(0.2, 5.0),
    needs: &[Need::Disk, Need::IoUring, Need::MemoryGib(1.5, 1.5)],
    params: &[
        Param::new(
            "cached",
            "Data in the DRAM level, all of which are on the disk too",
            ParamKind::Count {
                min: 64,
                max: 1 << 20,
            },
            ["256", "16384", "16384"],
        ),
        Param::count(
            "requests",
            "Interests of a round, for each",
            ["1024", "64k", "262144"],
        ),
        Param::rounds(["2", "31", "101"]),
        Param::seed(),
        store_mib(["64", "512", "512"]),
        packet_bytes(["0"; 3]),
        BATCH,
        OBJECT_CHUNKS,
        DIRECTORY,
    ],
    run,
}];

/// In what order chunks are asked for.
#[derive(Clone, Copy)]
enum Order {
    Drawn,
    OneByOne,
}

/// Nanoseconds that a router takes for each packet of some bursts, all of which it answers at
/// once.
fn take(rig: &mut Rig, bursts: &[Burst]) -> anyhow::Result<f64> {
    rig.forget_sent();
    let begun = Instant::now();
    for burst in bursts {
        rig.receive(face_of(0), burst)?;
        rig.turn();
    }
    let elapsed_ns = begun.elapsed().as_nanos() as f64;
    let n_pkts: usize = bursts.iter().map(Burst::len).sum();
    ensure!(
        rig.bed.out.n_data == n_pkts as u64,
        "{} of {n_pkts} Interests were answered",
        rig.bed.out.n_data
    );
    Ok(elapsed_ns / n_pkts as f64)
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let args = StoreArgs::of(context);
    let (n_cached, n_requests) = (context.count("cached"), context.size("requests"));
    ensure!(
        2 * n_cached * (args.packets.data_bytes() as u64 + 256) <= args.bytes.max(64 << 20),
        "{n_cached} Data fill more than half of the store; raise store_mib"
    );
    let disk = args.disk(1)?;
    let options = RigOptions {
        l1_pkts: 2 * n_cached as usize,
        admission: AdmissionKind::None,
        n_consumers: 1,
        config: Config {
            batch_len: args.batch_len,
            max_batches: n_cached as usize,
            ..Config::default()
        },
    };
    let mut one = Rig::new(&options)?;
    let store = disk.format("hit-path", args.bytes, args.batch_len)?;
    let mut two = Rig::with_store(&options, store, Beginning::New)?;
    for rig in [&mut one, &mut two] {
        rig.fill(&args.packets, in_order(n_cached, args.object_chunks))?;
    }
    two.flush()?;
    two.check_stored(n_cached)?;
    let mut figures = Figures::new(&args);
    let mut random = Random::new(context.seed());
    for (order, label) in [
        (Order::Drawn, "names drawn"),
        (Order::OneByOne, "objects chunk by chunk"),
    ] {
        // What is sent is copied by a face, with two levels as with one: here it is counted
        // alone, or it would hide the difference.
        for (reads, how) in [(false, "counted"), (true, "read")] {
            let (mut without, mut with) = (Vec::new(), Vec::new());
            for round in 0..context.rounds() {
                let sizes = (n_requests, n_cached);
                let bursts = bursts(&mut two, &args, sizes, order, &mut random);
                one.bed.out.reads = reads;
                two.bed.out.reads = reads;
                if round % 2 == 0 {
                    without.push(take(&mut one, &bursts)?);
                    with.push(take(&mut two, &bursts)?);
                } else {
                    with.push(take(&mut two, &bursts)?);
                    without.push(take(&mut one, &bursts)?);
                }
            }
            figures.add(format!("one level, {label}, Data {how}"), "ns", &without);
            figures.add(format!("two levels, {label}, Data {how}"), "ns", &with);
            let what = format!("two levels by one, {label}, Data {how}");
            figures.judge(what, "", Bound::AtMost(1.05), &ratios(&with, &without))?;
        }
    }
    let n_reads = two.second().context("there are two")?.counters().n_reads;
    ensure!(n_reads == 0, "{n_reads} were read from the disk");
    let mut record = figures.finish();
    record.note(format!(
        "{n_cached} Data in DRAM, bursts of {BURST_PKTS} Interests; no read of the disk happened."
    ));
    Ok(record)
}

fn bursts(
    rig: &mut Rig,
    store: &StoreArgs,
    (n_requests, n_cached): (usize, u64),
    order: Order,
    random: &mut Random,
) -> Vec<Burst> {
    let mut next = random.next_u64() % n_cached;
    let n_bursts = n_requests.div_ceil(BURST_PKTS);
    let mut bursts = vec![Burst::default(); n_bursts];
    for burst in &mut bursts {
        for _ in 0..BURST_PKTS {
            next = match order {
                Order::Drawn => random.next_u64() % n_cached,
                Order::OneByOne => (next + 1) % n_cached,
            };
            rig.ask(store.chunk(next), burst);
        }
    }
    bursts
}
