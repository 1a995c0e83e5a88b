//! Figure 2 of Mansilha et al. 2017: the flow of misses that leaves a router by the size of its
//! memory, with DRAM alone (a), with an SSD that is fast enough (b), and with one whose
//! throughput is the bottleneck (c).
//!
//! A content store of one level sends upstream what it does not hold. With two levels, L2 is
//! asked for what it holds beyond L1; as soon as that is more than it can read, further size
//! brings nothing: the rest goes upstream although it is stored.

use std::path::Path;

use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};

use super::bed::{gb, gbs, log_chart};
use super::catalogue::{Bytes, CHUNK_BYTES, Catalogue};
use super::model;
use super::workload::Settings;
use crate::own::ssd;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "mansilha/figure-2",
    title: "Flow of misses by the size of the memory; where the SSD saturates",
    source: "Mansilha et al. 2017, section 2.2",
    cost: Cost::minutes(0.1, 0.6),
    needs: &[Need::Disk],
    params: &[
        Param::new("line", "line rate, Gbit/s", ParamKind::Number, ["40"; 3]),
        gbs("catalogue", "catalogue, GB", ["2500", "10000", "10000"]),
        Param::new(
            "alphas",
            "exponents of the contents' popularity",
            ParamKind::Numbers,
            ["0.8,1"; 3],
        ),
        gb("dram", "DRAM as published, GB", "8"),
        gbs(
            "sizes",
            "memory sizes of the lines, GB",
            [
                "8,480,1920",
                "1,2,4,8,16,32,64,128,240,480,960,1920,3840",
                "1,2,4,8,16,32,64,128,240,480,960,1920,3840",
            ],
        ),
        Param::count(
            "disk_mib",
            "MiB of this machine's disk that are read in order",
            ["32", "1024", "4096"],
        ),
        Param::new(
            "directory",
            "folder on that disk",
            ParamKind::Text,
            ["/var/tmp"; 3],
        ),
    ],
    run,
}];

/// An SSD behind the DRAM.
#[derive(Clone, Copy, Debug)]
struct Ssd {
    size: Bytes,
    rate_gbps: f64,
}

/// The published device of point (b): sequential reads of 3,000 MB/s.
const PCIE: Ssd = Ssd {
    size: Bytes(480_000_000_000),
    rate_gbps: 24.0,
};
/// The published device of point (c): sequential reads of 550 MB/s.
const SATA: Ssd = Ssd {
    size: Bytes(1_920_000_000_000),
    rate_gbps: 4.4,
};

/// Hits of contents by equations 5 and 6, for a FIFO of any size.
struct Hits {
    rates: Vec<f64>,
    content_bytes: f64,
}

impl Hits {
    fn new(catalogue: Catalogue, alpha: f64) -> Self {
        let settings = Settings {
            alpha,
            ..Settings::published(catalogue)
        };
        Self {
            rates: model::rates(&settings),
            content_bytes: (CHUNK_BYTES * u64::from(catalogue.content_chunks)) as f64,
        }
    }

    /// The share of requests that a memory answers.
    fn of(&self, size: Bytes) -> f64 {
        let room = size.0 as f64 / self.content_bytes;
        match room >= self.rates.len() as f64 {
            true => 1.0,
            false => model::hits(&self.rates, model::stays_s(&self.rates, room)),
        }
    }

    /// The size of the memory that answers a share of the requests, below 1.
    fn size_for(&self, share: f64) -> Bytes {
        let stays_s = model::rising_to(share, |stays_s| model::hits(&self.rates, stays_s));
        Bytes((model::held(&self.rates, stays_s) * self.content_bytes) as u64)
    }
}

/// What leaves a router, of requests at `line_gbps`, by what its levels hold.
struct Flow {
    /// Asked of L2, Gbit/s.
    demand_gbps: f64,
    /// Upstream, Gbit/s.
    miss_gbps: f64,
}

impl Flow {
    fn of(line_gbps: f64, l1_hits: f64, both_hits: f64, rate_gbps: f64) -> Self {
        let demand_gbps = line_gbps * (both_hits - l1_hits);
        Self {
            demand_gbps,
            miss_gbps: line_gbps * (1.0 - l1_hits) - demand_gbps.min(rate_gbps),
        }
    }
}

/// The part of an SSD behind some DRAM that no request can use.
fn wasted(hits: &Hits, line_gbps: f64, dram: Bytes, ssd: Ssd) -> Bytes {
    let l1_hits = hits.of(dram);
    let flow = Flow::of(
        line_gbps,
        l1_hits,
        hits.of(Bytes(dram.0 + ssd.size.0)),
        ssd.rate_gbps,
    );
    if flow.demand_gbps <= ssd.rate_gbps {
        return Bytes(0);
    }
    let useful = hits.size_for(l1_hits + ssd.rate_gbps / line_gbps);
    Bytes((dram.0 + ssd.size.0).saturating_sub(useful.0))
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let line_gbps = context.number("line");
    let catalogue = Catalogue::of(Bytes::of_gb(context.values.numbers("catalogue")[0])?);
    let dram = Bytes::of_gb(context.values.numbers("dram")[0])?;
    let directory = Path::new(context.text("directory"));
    let disk_gbps = ssd::read_mib_per_s(directory, context.values.count32("disk_mib"))?
        * f64::from(1 << 20)
        * 8.0
        / 1e9;
    let here = Ssd {
        rate_gbps: disk_gbps,
        ..SATA
    };
    let points = [
        ("(a) DRAM", None),
        ("(b) DRAM and PCIe SSD", Some(PCIE)),
        ("(c) DRAM and SATA SSD", Some(SATA)),
        ("as (c), with this machine's disk", Some(here)),
    ];
    let mut record = Record::new(Kind::Computed);
    let mut table = Table::new(
        "Operational points",
        [
            Column::new("point"),
            "Zipf exponent".into(),
            "DRAM, GB".into(),
            "SSD, GB".into(),
            "SSD reads, Gbit/s".into(),
            Column::fixed("hits of DRAM", 3),
            Column::fixed("of both", 3),
            "asked of the SSD, Gbit/s".into(),
            "misses upstream, Gbit/s".into(),
            "with a fast enough SSD, Gbit/s".into(),
            "SSD without use, GB".into(),
        ],
    );
    let mut lines = Table::new(
        "Misses upstream by the size of the memory, Gbit/s",
        [
            "Zipf exponent",
            "memory, GB",
            "fast enough",
            "PCIe SSD",
            "SATA SSD",
        ],
    );
    let mut chart = log_chart("Figure 2", "memory, GB", "misses upstream, Gbit/s");
    for alpha in context.values.numbers("alphas") {
        let hits = Hits::new(catalogue, alpha);
        let l1_hits = hits.of(dram);
        for (name, ssd) in points {
            let both = Bytes(dram.0 + ssd.map_or(0, |ssd| ssd.size.0));
            let both_hits = hits.of(both);
            let rate_gbps = ssd.map_or(0.0, |ssd| ssd.rate_gbps);
            let flow = Flow::of(line_gbps, l1_hits, both_hits, rate_gbps);
            table.row(cells![
                name,
                alpha,
                dram.gb(),
                ssd.map(|ssd| ssd.size.gb()),
                ssd.map(|ssd| ssd.rate_gbps),
                l1_hits,
                both_hits,
                flow.demand_gbps,
                flow.miss_gbps,
                line_gbps * (1.0 - both_hits),
                ssd.map(|ssd| wasted(&hits, line_gbps, dram, ssd).gb())
            ]);
            if name.starts_with('(') {
                let label = format!("{}, α = {alpha}", &name[..3]);
                chart.point(&label, both.gb(), flow.miss_gbps);
            }
        }
        for gb in context.values.numbers("sizes") {
            let size = Bytes::of_gb(gb)?;
            let all_hits = hits.of(size);
            let wanted = line_gbps * (1.0 - all_hits);
            let [pcie, sata] = [PCIE, SATA].map(|ssd| {
                let is_behind = size >= dram;
                is_behind.then(|| Flow::of(line_gbps, l1_hits, all_hits, ssd.rate_gbps).miss_gbps)
            });
            lines.row(cells![alpha, gb, wanted, pcie, sata]);
            chart.point(&format!("fast enough, α = {alpha}"), gb, wanted);
            for (name, miss_gbps) in [("PCIe SSD", pcie), ("SATA SSD", sata)] {
                if let Some(miss_gbps) = miss_gbps {
                    chart.point(&format!("{name}, α = {alpha}"), gb, miss_gbps);
                }
            }
        }
    }
    record.tables = vec![table, lines];
    record.charts.push(chart);
    record.note(format!(
        "Computed: hits of a FIFO by equations 5 and 6, contents of 10.24 MB, a catalogue of {} \
         and {line_gbps} Gbit/s of requests, all of them for chunks whose batches are used whole. \
         Sizes and sequential reads of the SSDs are those of the published table (480 GB and \
         3,000 MB/s, 1,920 GB and 550 MB/s).",
        catalogue.size()
    ));
    record.note(format!(
        "This machine's disk read {disk_gbps:.1} Gbit/s in order, measured in this run past the \
         page cache; its size is taken as that of (c)."
    ));
    record.note(
        "Published: a sketch without numbers. In (b) the misses follow the line of one large \
         memory, in (c) they stay where the SSD's throughput ends, and the rest of its size is \
         wasted.",
    );
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_as_popular_as_each_other_make_straight_lines() {
        // 1,000 contents; a memory holds its share of the requests.
        let catalogue = Catalogue::of(Bytes(10_240_000_000));
        let hits = Hits::new(catalogue, 0.0);
        let gb = |gb: f64| Bytes((gb * 1e9) as u64);
        assert!((hits.of(gb(2.56)) - 0.25).abs() < 1e-9);
        assert!((hits.size_for(0.25).gb() - 2.56).abs() < 1e-6);
        // 10 Gbit/s: DRAM has a tenth, the SSD half, which is 5 Gbit/s of reads.
        let (dram, size) = (gb(1.024), gb(5.12));
        let [l1, both] = [dram, Bytes(dram.0 + size.0)].map(|size| hits.of(size));
        let at = |rate_gbps| {
            let flow = Flow::of(10.0, l1, both, rate_gbps);
            let ssd = Ssd { size, rate_gbps };
            let wasted = wasted(&hits, 10.0, dram, ssd).gb();
            [flow.demand_gbps, flow.miss_gbps, wasted]
        };
        // A disk of 2 Gbit/s can use a fifth of the catalogue only.
        for (rate_gbps, expected) in [(6.0, [5.0, 4.0, 0.0]), (2.0, [5.0, 7.0, 3.072])] {
            for (found, expected) in at(rate_gbps).into_iter().zip(expected) {
                let off: f64 = found - expected;
                assert!(off.abs() < 1e-6, "{rate_gbps}: {found} {expected}");
            }
        }
        // DRAM alone: what it does not hold.
        assert!((Flow::of(10.0, l1, l1, 0.0).miss_gbps - 9.0).abs() < 1e-6);
    }
}
