//! What a dispatch decision costs: Table 4.1 and section 5.3.7, which have the cost of
//! hardware, beside the time of the same tables in software.

use std::hint::black_box;

use tachonym_bench::stats::Spread;
use tachonym_bench::turns::{cpu_seconds_of, rotated};
use tachonym_bench::{
    Context, Cost, Experiment, Kind, Param, Record, Reference, Table, cells, cpu,
};
use tachonym_dispatch::adaptive::{AdaptiveConfig, AdaptiveHash};
use tachonym_dispatch::baselines::{Fcfs, FlowShift, Grain, Scheduler};
use tachonym_dispatch::{Detector, DetectorConfig, Key, Laps, LapsConfig, MapKind, ServiceId};
use tachonym_packet::{HashKey, HashKind, Name};
use tachonym_sim::traffic::key_of;

use super::simulation::{IQBAL, LapsKind};
use super::{figure_4_2, traces};

const PACKETS: Param = Param::count("packets", "packets of a round", ["20k", "1M", "4M"]);
const TRACE: Param = Param::choice(
    "traces",
    "drawn trace of the packets",
    &["caida 1", "auckland 1", "names"],
    "caida 1",
);

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "iqbal/table-4.1",
        title: "Cost of the aggressive flow detector",
        source: "Iqbal 2013, section 4.4.3, Table 4.1",
        cost: Cost::minutes(0.1, 0.3),
        needs: &[],
        params: &[
            PACKETS,
            TRACE,
            Param::rounds(["3", "21", "31"]),
            Param::seed(),
        ],
        run: detector,
    },
    Experiment {
        id: "iqbal/dispatch-cost",
        title: "Time of a dispatch decision by scheduler",
        source: "Iqbal 2013, section 5.3.7",
        cost: Cost::minutes(0.1, 0.6),
        needs: &[],
        params: &[
            PACKETS,
            TRACE,
            Param::count("cores", "workers", ["16"; 3]),
            Param::rounds(["3", "21", "31"]),
            Param::seed(),
        ],
        run: decisions,
    },
];

const ONE: ServiceId = ServiceId(0);

/// What is measured: takes keys one after another.
type Work = Box<dyn FnMut(&[Key]) -> u64 + Send>;

fn of_each(mut one: impl FnMut(Key) -> u64 + Send + 'static) -> Work {
    Box::new(move |keys| keys.iter().fold(0, |sum, &key| sum.wrapping_add(one(key))))
}

/// Keys of a trace's packets.
fn keys(context: &Context) -> anyhow::Result<Vec<Key>> {
    let mut trace = traces::trace(context.text("traces"), context.seed())?;
    let packets = 0..context.count("packets");
    Ok(packets.map(|_| key_of(trace.next_flow().0)).collect())
}

/// Nanoseconds of processor time of each case by packet, after a round that is not counted.
fn measure(
    context: &Context,
    record: &mut Record,
    mut cases: Vec<Work>,
) -> anyhow::Result<Vec<Option<Spread>>> {
    let keys = keys(context)?;
    let (pinned, measured) = cpu::on_pinned_thread(|| {
        for case in &mut cases {
            black_box(case(&keys));
        }
        rotated(cases.len(), context.rounds(), |case, _| {
            let (seconds, sum) = cpu_seconds_of(|| cases[case](black_box(&keys)));
            black_box(sum);
            Ok(seconds * 1e9 / keys.len() as f64)
        })
    });
    record.note(cpu::note(&[pinned]));
    record.note(format!(
        "Processor time of packets of {}, one after another without other work between them: the \
         processor overlaps them.",
        context.text("traces")
    ));
    Ok(measured?.iter().map(|rounds| Spread::of(rounds)).collect())
}

fn detector(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Measured);
    let mut labels = Vec::new();
    let mut works = Vec::new();
    for (n_annex, sample_every) in [(64, 1), (512, 1), (2_048, 1), (512, 1_000)] {
        let mut detector = Detector::new(DetectorConfig {
            n_annex,
            sample_every,
            ..DetectorConfig::default()
        })?;
        labels.push((n_annex, sample_every, detector.memory_bytes()));
        works.push(of_each(move |key| {
            u64::from(detector.handle_packet(ONE, key))
        }));
    }
    let measured = measure(context, &mut record, works)?;
    let columns = "annex cache, flows | one packet in | bytes | packet, ns".split(" | ");
    let mut table = Table::new("", columns);
    for ((n_annex, sample_every, n_bytes), ns) in labels.into_iter().zip(&measured) {
        table.row(cells![n_annex, sample_every, n_bytes, *ns]);
    }
    record.tables.push(table);
    let place = Reference::stated(IQBAL, "Table 4.1");
    let here = measured[1].map(|it| it.median);
    record.compare(
        "access, in hardware of 32 nm there",
        0.375,
        "ns",
        place,
        here,
    );
    record.compare("area", 0.04, "mm²", place, None);
    record.compare("power", 0.0445, "W", place, None);
    record.note("Area and power are of a circuit: software has neither.");
    Ok(record)
}

fn scheduler(mut scheduler: impl Scheduler + Send + 'static, lens: Vec<u32>) -> Work {
    of_each(move |key| u64::from(scheduler.dispatch(ONE, key, &lens).0))
}

/// LAPS with these packets' aggressive flows moved off the first workers.
fn moved(n_cores: usize, map: MapKind, keys: &[Key]) -> anyhow::Result<Laps> {
    let config = LapsConfig {
        map,
        ..LapsConfig::new(n_cores)
    };
    let mut laps = Laps::new(&config)?;
    keys.iter().for_each(|&key| laps.handle_sample(ONE, key));
    let full: Vec<u32> = (0..n_cores)
        .map(|core| if core % 2 == 0 { 90 } else { 0 })
        .collect();
    laps.handle_queue_lengths(&full);
    Ok(laps)
}

fn decisions(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Measured);
    let n_cores = context.size("cores");
    let lens = || vec![0; n_cores];
    let buckets = MapKind::Buckets { n_buckets_log2: 10 };
    let sample = keys(context)?;
    let sample = &sample[..sample.len().min(100_000)];
    let services = [tachonym_sim::service::PATHS[1].clone()];
    let [table, linear] = [buckets, MapKind::Linear].map(|map| moved(n_cores, map, sample));
    let (table, linear) = (table?, linear?);
    let n_moved = table.homes().migrations().len();
    let hash_key = HashKey::new(HashKind::SipHash13, &[1; 32]);
    let name: Name = "/example/videos/7/segment".parse()?;
    let shift = |grain| FlowShift::new(n_cores, 10, grain, 80);
    let cases = [
        (
            "name table and moved names",
            of_each(move |key| u64::from(table.homes().home(ONE, key).0)),
        ),
        (
            "linear hashing and moved names",
            of_each(move |key| u64::from(linear.homes().home(ONE, key).0)),
        ),
        (
            "LAPS with its detector",
            scheduler(LapsKind::router(16).laps(n_cores, &services, 80)?, lens()),
        ),
        (
            "LAPS as published",
            scheduler(
                LapsKind::published(16).laps(n_cores, &services, 80)?,
                lens(),
            ),
        ),
        ("AFS", scheduler(shift(Grain::Bundle)?, lens())),
        ("DLB", scheduler(shift(Grain::Name)?, lens())),
        ("FCFS", scheduler(Fcfs::new(n_cores)?, lens())),
        (
            "adaptive hashing",
            scheduler(
                AdaptiveHash::new(AdaptiveConfig::new(n_cores, 1e6))?,
                lens(),
            ),
        ),
        (
            "CRC16 of a five-tuple, bit by bit",
            of_each(|key| {
                let mut tuple = [0; 13];
                tuple[..8].copy_from_slice(&key.0.to_le_bytes());
                figure_4_2::crc16(&tuple)
            }),
        ),
        (
            "SipHash-1-3 of a name of 4 components",
            of_each(move |key| hash_key.hash_name(black_box(&name).view()).0 ^ key.0),
        ),
    ];
    let (labels, works): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let measured = measure(context, &mut record, works)?;
    let mut rows = Table::new("", ["decision", "ns", "million a second"]);
    for (label, ns) in labels.iter().zip(&measured) {
        rows.row(cells![*label, *ns, ns.map(|it| 1e3 / it.median)]);
    }
    let here = |label: &str| rows.number(&[label], "million a second");
    let place = Reference::stated(IQBAL, "section 5.3.7");
    let needed = "decisions a second for 100 Gbit/s";
    record.compare(
        needed,
        100.0,
        "million",
        place,
        here("name table and moved names"),
    );
    let hardware = "decisions a second by a circuit for CRC16 of 200 MHz there";
    record.compare(
        hardware,
        200.0,
        "million",
        place,
        here("linear hashing and moved names"),
    );
    record.tables.push(rows);
    record.note(format!(
        "Queues are empty, so that no scheduler moves anything while it is measured; {n_moved} \
         names have moved before. Decisions begin with the hash of the name, which the router has \
         computed for its tables; the last two rows are hashes alone."
    ));
    Ok(record)
}
