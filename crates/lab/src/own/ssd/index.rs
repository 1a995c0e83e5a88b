//! The index of the SSD level: its DRAM, and how often it is wrong.

use tachonym_bench::{Bound, Context, Cost, Experiment, Need, Param, Record};
use tachonym_packet::InterestView;
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config, Index};

use super::packets::{ChunkId, Packets, in_order};
use super::rig::{Rig, RigOptions};
use super::{BATCH, DIRECTORY, Figures, OBJECT_CHUNKS, StoreArgs, mib, packet_bytes, store_mib};

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/ssd-index",
    title: "DRAM of the SSD level's index, and its false positives",
    source: "",
    cost: Cost::minutes(0.1, 1.0),
    needs: &[Need::Disk, Need::IoUring],
    params: &[
        store_mib(["64", "1024", "4096"]),
        packet_bytes(["1100", "0", "0"]),
        Param::count("absent", "absent names to look up", ["1k", "1M", "10M"]),
        BATCH,
        OBJECT_CHUNKS,
        DIRECTORY,
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    const FILE: &str = "index";
    let store = StoreArgs::of(context);
    let disk = store.disk(1)?;
    let n_chunks = store.n_chunks();
    let n_batches = n_chunks as usize / store.batch_len;
    let n_objects = (n_chunks / store.object_chunks) as usize;
    let options = RigOptions {
        l1_pkts: 1_024,
        admission: AdmissionKind::None,
        n_consumers: 1,
        config: Config {
            batch_len: store.batch_len,
            // Each batch, each object's name, and little more: as full as an index gets.
            max_batches: (n_batches + n_objects) * 103 / 100 + 64,
            ..Config::default()
        },
    };
    let volume = disk.format(FILE, store.bytes, store.batch_len)?;
    let mut rig = Rig::with_store(&options, volume, Beginning::New)?;
    rig.fill(&store.packets, in_order(n_chunks, store.object_chunks))?;
    rig.flush()?;
    rig.check_stored(n_chunks)?;
    let (len, max_len) = rig.second()?.index_len();
    let bytes = Index::bytes_for(options.config.max_batches);
    let before = rig.second()?.counters();
    let n_absent = context.count("absent");
    let (mut n_wrong, mut wire) = (0_u64, Vec::new());
    for number in 0..n_absent {
        wire.clear();
        let chunk = ChunkId {
            object: u64::MAX - number,
            number: 0,
        };
        Packets::write_interest(chunk, number as u32, &mut wire);
        let interest = InterestView::parse(&wire)?;
        let second = rig.bed.engine.cs_mut().second_level();
        n_wrong += u64::from(second.is_some_and(|it| it.find(&interest).is_some()));
    }
    let mut figures = Figures::new(&store);
    figures.add("Data stored", "", &[n_chunks as f64]);
    figures.add("entries", "", &[len as f64]);
    let fill = 100.0 * len as f64 / max_len as f64;
    figures.add("entries by the most", "%", &[fill]);
    figures.add("index", "MiB", &[mib(bytes as u64)]);
    figures.add("DRAM of an entry", "bytes", &[bytes as f64 / len as f64]);
    let lost = before.n_regions_emptied_early + before.n_not_indexed + before.n_crowded_out;
    figures.add(
        "batches or regions refused for lack of room",
        "",
        &[lost as f64],
    );
    let wrong = n_wrong as f64 / n_absent as f64 * 1e6;
    figures.add("false positives per million absent names", "", &[wrong]);
    let by_packet = [bytes as f64 / n_chunks as f64];
    figures.judge(
        "DRAM of a stored packet",
        "bytes",
        Bound::AtMost(1.5),
        &by_packet,
    )?;
    let mut record = figures.finish();
    record.note("A false positive costs a read; the name is compared before Data is sent.");
    Ok(record)
}
