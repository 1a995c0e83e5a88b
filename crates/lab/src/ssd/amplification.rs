//! How many bytes are written for those that are kept.

use clap::Args;
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::StoreArgs;
use super::disk::{Disk, device_written_bytes, written_bytes};
use super::packets::{ChunkId, Packets};
use super::report::{Bound, Report};
use super::rig::{Rig, RigOptions};
use crate::output;
use crate::random::Random;

/// Measures write amplification when Data of many flows arrive at once
#[derive(Args, Clone, Debug)]
pub(super) struct AmplificationArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Objects whose segments arrive at the same time
    #[arg(long, default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    flows: u32,
    /// Segments of a flow that arrive out of order
    #[arg(long, default_value_t = 16, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1_024))]
    shuffled: u32,
    /// Seed of the orders
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

/// The chunks of objects that are fetched side by side, each in an order that is somewhat
/// shuffled.
fn interleaved(args: &AmplificationArgs, n_chunks: u64) -> impl Iterator<Item = ChunkId> {
    let object_chunks = args.store.object_chunks;
    let (flows, shuffled) = (u64::from(args.flows), u64::from(args.shuffled));
    let group_chunks = flows * object_chunks;
    let mut random = Random::new(args.seed);
    let windows = (0..n_chunks.div_ceil(group_chunks)).flat_map(move |group| {
        let starts = (0..object_chunks).step_by(shuffled as usize);
        starts.map(move |start| (group, start))
    });
    let all = windows.flat_map(move |(group, start)| {
        let end = (start + shuffled).min(object_chunks);
        let mut window: Vec<_> = (start..end)
            .flat_map(|number| {
                (0..flows).map(move |flow| ChunkId {
                    object: group * flows + flow,
                    number,
                })
            })
            .collect();
        for last in (1..window.len()).rev() {
            window.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        window
    });
    all.take(n_chunks as usize)
}

/// Runs the command.
pub(super) fn run(args: &AmplificationArgs) -> anyhow::Result<()> {
    let disk = Disk::new(&args.store.directory, args.store.bytes())?;
    let batch_len = args.store.batch_len();
    let sizes = match args.store.packet_bytes {
        Some(bytes) => vec![Packets::of_size(bytes.into())],
        None => vec![Packets::of_size(1_100), Packets::with_content(8_192)],
    };
    let mut report = Report::new(format!(
        "{} flows side by side, each shuffled within {} chunks, batches of {batch_len}",
        args.flows, args.shuffled
    ));
    for packets in sizes {
        let file = format!("packets-of-{}", packets.data_bytes());
        let n_chunks = args.store.n_chunks_of(&packets);
        let store = disk.format(&file, args.store.bytes(), batch_len)?;
        let config = Config {
            batch_len,
            max_batches: args.store.max_batches_of(&packets, batch_len),
            ..Config::default()
        };
        let options = RigOptions {
            l1_pkts: 1_024,
            admission: AdmissionKind::None,
            n_consumers: 1,
            config,
        };
        let mut rig = Rig::with_store(&options, store, Beginning::New)?;
        let (process_begun, device_begun) = (written_bytes(), device_written_bytes(disk.folder()));
        rig.fill(&packets, interleaved(args, n_chunks))?;
        rig.flush()?;
        let of_process = written_bytes().zip(process_begun);
        let of_device = device_written_bytes(disk.folder()).zip(device_begun);
        rig.check_stored(n_chunks)?;
        let counters = rig.second()?.counters();
        let data_bytes = counters.n_written_data_bytes as f64;
        let label = format!("packets of {} bytes", packets.data_bytes());
        report.add(format!("Data, {label}"), "MiB", &[data_bytes / 1_048_576.0])?;
        if let Some((after, before)) = of_device {
            let share = (after - before) as f64 / data_bytes;
            report.add(
                format!("whole disk, others' writes included, by Data, {label}"),
                "",
                &[share],
            )?;
        }
        let bound = Bound::AtMost(1.05);
        let share = counters.n_written_bytes as f64 / data_bytes;
        report.promise(
            format!("written by Data as the store counts, {label}"),
            "",
            bound,
            &[share],
        )?;
        if let Some((after, before)) = of_process {
            let share = (after - before) as f64 / data_bytes;
            let what = format!("written by Data as the kernel counts, {label}");
            report.promise(what, "", bound, &[share])?;
        }
        rig.stop();
        disk.remove(&file)?;
    }
    output::print(&report, args.store.json)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: AmplificationArgs,
    }

    #[test]
    fn flows_are_shuffled_and_whole() {
        let options = [
            "lab",
            "--flows",
            "4",
            "--shuffled",
            "8",
            "--object-chunks",
            "20",
        ];
        let args = Cli::parse_from(options).args;
        let chunks: Vec<_> = interleaved(&args, 160).collect();
        let distinct: HashSet<_> = chunks.iter().copied().collect();
        assert_eq!((chunks.len(), distinct.len()), (160, 160));
        let first: HashSet<_> = chunks[..32].iter().map(|it| it.object).collect();
        assert_eq!(first.len(), 4, "side by side");
        assert!(chunks[..32].iter().all(|it| it.number < 8), "not far off");
        assert!(chunks.windows(2).any(|it| it[0].number > it[1].number));
    }
}
