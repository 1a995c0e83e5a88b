//! How many bytes are written for those that are kept.

use tachonym_bench::{Bound, Context, Cost, Experiment, Need, Param, Record};
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config};

use super::disk::{device_written_bytes, written_bytes};
use super::packets::{ChunkId, Packets};
use super::rig::{Rig, RigOptions};
use super::{BATCH, DIRECTORY, Figures, OBJECT_CHUNKS, StoreArgs, mib, packet_bytes, store_mib};
use tachonym_bench::random::Random;

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/ssd-amplification",
    title: "Bytes written by those of Data that arrive in many flows at once",
    source: "",
    cost: Cost::minutes(0.1, 2.0),
    needs: &[Need::Disk, Need::IoUring],
    params: &[
        store_mib(["64", "1024", "4096"]),
        packet_bytes(["1100", "0", "0"]),
        Param::count(
            "flows",
            "objects whose segments arrive at the same time",
            ["64"; 3],
        ),
        Param::count(
            "shuffled",
            "segments of a flow that arrive out of order",
            ["16"; 3],
        ),
        Param::seed(),
        BATCH,
        OBJECT_CHUNKS,
        DIRECTORY,
    ],
    run,
}];

/// How objects arrive side by side.
#[derive(Clone, Copy, Debug)]
struct Flows {
    flows: u64,
    shuffled: u64,
    object_chunks: u64,
    seed: u64,
}

/// The chunks of objects that are fetched side by side, each in an order that is somewhat
/// shuffled.
fn interleaved(flows: &Flows, n_chunks: u64) -> impl Iterator<Item = ChunkId> + use<> {
    let Flows {
        flows,
        shuffled,
        object_chunks,
        seed,
    } = *flows;
    let group_chunks = flows * object_chunks;
    let mut random = Random::new(seed);
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

fn run(context: &Context) -> anyhow::Result<Record> {
    let store = StoreArgs::of(context);
    let disk = store.disk(1)?;
    let sizes = match context.count("packet_bytes") {
        0 => vec![Packets::of(1_100), Packets::of(0)],
        _ => vec![store.packets.clone()],
    };
    let flows = Flows {
        flows: context.count("flows"),
        shuffled: context.count("shuffled"),
        object_chunks: store.object_chunks,
        seed: context.seed(),
    };
    let mut figures = Figures::new(&store);
    for packets in sizes {
        let file = format!("packets-of-{}", packets.data_bytes());
        let n_chunks = store.n_chunks_of(&packets);
        let volume = disk.format(&file, store.bytes, store.batch_len)?;
        let config = Config {
            batch_len: store.batch_len,
            max_batches: store.max_batches_of(&packets, store.batch_len),
            ..Config::default()
        };
        let options = RigOptions {
            l1_pkts: 1_024,
            admission: AdmissionKind::None,
            n_consumers: 1,
            config,
        };
        let mut rig = Rig::with_store(&options, volume, Beginning::New)?;
        let (process_begun, device_begun) = (written_bytes(), device_written_bytes(disk.folder()));
        rig.fill(&packets, interleaved(&flows, n_chunks))?;
        rig.flush()?;
        let of_process = written_bytes().zip(process_begun);
        let of_device = device_written_bytes(disk.folder()).zip(device_begun);
        rig.check_stored(n_chunks)?;
        let counters = rig.second()?.counters();
        let data_bytes = counters.n_written_data_bytes;
        let by_data = |bytes: u64| [bytes as f64 / data_bytes as f64];
        let label = format!("packets of {} bytes", packets.data_bytes());
        figures.add(format!("Data, {label}"), "MiB", &[mib(data_bytes)]);
        if let Some((after, before)) = of_device {
            let what = format!("whole disk, other programs' writes included, by Data, {label}");
            figures.add(what, "", &by_data(after - before));
        }
        let bound = Bound::AtMost(1.05);
        let what = format!("written by Data as the store counts, {label}");
        figures.judge(what, "", bound, &by_data(counters.n_written_bytes))?;
        if let Some((after, before)) = of_process {
            let what = format!("written by Data as the kernel counts, {label}");
            figures.judge(what, "", bound, &by_data(after - before))?;
        }
        rig.stop();
        disk.remove(&file)?;
    }
    let mut record = figures.finish();
    record.note(format!(
        "{} flows side by side, each shuffled within {} chunks.",
        flows.flows, flows.shuffled
    ));
    Ok(record)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn flows_are_shuffled_and_whole() {
        let flows = Flows {
            flows: 4,
            shuffled: 8,
            object_chunks: 20,
            seed: 1,
        };
        let chunks: Vec<_> = interleaved(&flows, 160).collect();
        let distinct: HashSet<_> = chunks.iter().copied().collect();
        assert_eq!((chunks.len(), distinct.len()), (160, 160));
        let first: HashSet<_> = chunks[..32].iter().map(|it| it.object).collect();
        assert_eq!(first.len(), 4, "side by side");
        assert!(chunks[..32].iter().all(|it| it.number < 8), "not far off");
        assert!(chunks.windows(2).any(|it| it[0].number > it[1].number));
    }
}
