//! What a second level costs those whom the first answers.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Args;
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::StoreArgs;
use super::disk::Disk;
use super::packets::{ChunkId, in_order};
use super::report::{Bound, Report};
use super::rig::{BURST_PKTS, Rig, RigOptions, face_of};
use super::serve::ratios;
use crate::engine_bed::workload::Burst;
use crate::output;
use crate::random::Random;

/// Measures a hit in the DRAM level with and without an SSD level behind it
#[derive(Args, Clone, Debug)]
pub(super) struct HitPathArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Data in the DRAM level, all of which are on the disk too
    #[arg(long, default_value_t = 16_384, value_name = "N",
          value_parser = clap::value_parser!(u32).range(64..=1 << 20))]
    cached: u32,
    /// Rounds, each of which measures both
    #[arg(long, default_value_t = 101, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Interests in a round, for each
    #[arg(long, default_value_t = 262_144, value_name = "N",
          value_parser = clap::value_parser!(u32).range(64..=1 << 28))]
    requests: u32,
    /// Seed of the names
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

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
        rig.sink.n_data == n_pkts as u64,
        "{} of {n_pkts} Interests were answered",
        rig.sink.n_data
    );
    Ok(elapsed_ns / n_pkts as f64)
}

/// Runs the command.
pub(super) fn run(args: &HitPathArgs) -> anyhow::Result<()> {
    let packets = args.store.packets();
    let n_cached = u64::from(args.cached);
    let store_bytes = (2 * n_cached * (packets.data_bytes() as u64 + 256)).max(64 << 20);
    let disk = Disk::new(&args.store.directory, store_bytes)?;
    let batch_len = args.store.batch_len();
    let options = RigOptions {
        l1_pkts: 2 * args.cached as usize,
        admission: AdmissionKind::None,
        n_consumers: 1,
        config: Config {
            batch_len,
            max_batches: args.cached as usize,
            ..Config::default()
        },
    };
    let mut one = Rig::new(&options)?;
    let store = disk.format("hit-path", store_bytes, batch_len)?;
    let mut two = Rig::with_store(&options, store, Beginning::New)?;
    for rig in [&mut one, &mut two] {
        rig.fill(&packets, in_order(n_cached, args.store.object_chunks))?;
    }
    two.flush()?;
    two.check_stored(n_cached)?;
    let mut report = Report::new(format!(
        "{n_cached} Data of {} bytes in DRAM, bursts of {BURST_PKTS} Interests",
        packets.data_bytes()
    ));
    let mut random = Random::new(args.seed);
    for (order, label) in [
        (Order::Drawn, "names drawn"),
        (Order::OneByOne, "objects chunk by chunk"),
    ] {
        // What is sent is copied by a face, with two levels as with one: here it is counted
        // alone, or it would hide the difference.
        for (reads, how) in [(false, "counted"), (true, "read")] {
            let (mut without, mut with) = (Vec::new(), Vec::new());
            for round in 0..args.rounds {
                let bursts = bursts(&mut two, args, order, &mut random);
                one.sink.reads = reads;
                two.sink.reads = reads;
                if round % 2 == 0 {
                    without.push(take(&mut one, &bursts)?);
                    with.push(take(&mut two, &bursts)?);
                } else {
                    with.push(take(&mut two, &bursts)?);
                    without.push(take(&mut one, &bursts)?);
                }
            }
            report.add(format!("one level, {label}, Data {how}"), "ns", &without)?;
            report.add(format!("two levels, {label}, Data {how}"), "ns", &with)?;
            let bound = Bound::AtMost(1.05);
            let what = format!("two levels by one, {label}, Data {how}");
            report.promise(what, "", bound, &ratios(&with, &without))?;
        }
    }
    let n_reads = two.second().context("there are two")?.counters().n_reads;
    ensure!(n_reads == 0, "{n_reads} were read from the disk");
    output::print(&report, args.store.json)
}

fn bursts(rig: &mut Rig, args: &HitPathArgs, order: Order, random: &mut Random) -> Vec<Burst> {
    let n_cached = u64::from(args.cached);
    let mut next = random.next_u64() % n_cached;
    let n_bursts = (args.requests as usize).div_ceil(BURST_PKTS);
    let mut bursts = vec![Burst::default(); n_bursts];
    for burst in &mut bursts {
        for _ in 0..BURST_PKTS {
            next = match order {
                Order::Drawn => random.next_u64() % n_cached,
                Order::OneByOne => (next + 1) % n_cached,
            };
            let chunk = ChunkId {
                object: next / args.store.object_chunks,
                number: next % args.store.object_chunks,
            };
            rig.ask(chunk, burst);
        }
    }
    bursts
}
