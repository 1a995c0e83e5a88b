//! What the index costs in DRAM, and how often it is wrong.

use clap::Args;
use tachonym_packet::InterestView;
use tachonym_policy::AdmissionKind;
use tachonym_store::{Beginning, Config, Index};

use super::StoreArgs;
use super::disk::Disk;
use super::packets::{ChunkId, Packets, in_order};
use super::report::{Bound, Report};
use super::rig::{Rig, RigOptions};
use crate::output;

/// Measures the index of a full store, and compares it with published ones
#[derive(Args, Clone, Debug)]
pub(super) struct IndexArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Absent names to look up
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    absent: u32,
}

/// Runs the command.
pub(super) fn run(args: &IndexArgs) -> anyhow::Result<()> {
    const FILE: &str = "index";
    let packets = args.store.packets();
    let disk = Disk::new(&args.store.directory, args.store.bytes())?;
    let batch_len = args.store.batch_len();
    let n_chunks = args.store.n_chunks();
    let n_batches = n_chunks as usize / batch_len;
    let n_objects = (n_chunks / args.store.object_chunks) as usize;
    let options = RigOptions {
        l1_pkts: 1_024,
        admission: AdmissionKind::None,
        n_consumers: 1,
        config: Config {
            batch_len,
            // Each batch, each object's name, and little more: as full as an index gets.
            max_batches: (n_batches + n_objects) * 103 / 100 + 64,
            ..Config::default()
        },
    };
    let store = disk.format(FILE, args.store.bytes(), batch_len)?;
    let mut rig = Rig::with_store(&options, store, Beginning::New)?;
    rig.fill(&packets, in_order(n_chunks, args.store.object_chunks))?;
    rig.flush()?;
    rig.check_stored(n_chunks)?;
    let (len, max_len) = rig.second()?.index_len();
    let bytes = Index::bytes_for(options.config.max_batches);
    let before = rig.second()?.counters();
    let mut n_wrong = 0_u64;
    let mut wire = Vec::new();
    for number in 0..args.absent {
        wire.clear();
        let chunk = ChunkId {
            object: u64::MAX - u64::from(number),
            number: 0,
        };
        Packets::write_interest(chunk, number, &mut wire);
        let interest = InterestView::parse(&wire)?;
        let second = rig.engine.second_level_mut();
        n_wrong += u64::from(second.is_some_and(|it| it.find(&interest).is_some()));
    }
    let mut report = Report::new(format!(
        "{n_chunks} Data of {} bytes in batches of {batch_len}, objects of {} chunks",
        packets.data_bytes(),
        args.store.object_chunks
    ));
    report.add("entries", "", &[len as f64])?;
    let fill = 100.0 * len as f64 / max_len as f64;
    report.add("share of the maximum", "%", &[fill])?;
    report.add("index", "MiB", &[output::mib(bytes as u64)])?;
    report.add("bytes of an entry", "", &[bytes as f64 / len as f64])?;
    let lost = before.n_regions_emptied_early + before.n_not_indexed + before.n_crowded_out;
    report.add(
        "batches or regions refused for lack of room",
        "",
        &[lost as f64],
    )?;
    report.add(
        "false positives per million absent names",
        "",
        &[n_wrong as f64 / f64::from(args.absent) * 1e6],
    )?;
    report.promise(
        "DRAM of a stored packet",
        "bytes",
        Bound::AtMost(1.5),
        &[bytes as f64 / n_chunks as f64],
    )?;
    report.note(
        "Published, bytes an object: flash caches about 1 with false hits, general cache \
         libraries 46 to 93, NDN-DPDK more than 1000. A false positive costs a read; the name is \
         compared before Data is sent.",
    );
    output::print(&report, args.store.json)
}
