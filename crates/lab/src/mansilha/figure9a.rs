//! Figure 9 (a) of Mansilha et al. 2017: the gain of doing everything of a miss at once, by
//! equations 7 to 11.

use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind as How, Need, Param, ParamKind, Record, Table, cells,
};

use super::bed::{BATCH, ROUNDS, SHRINK, Sizes, WARM, gb, log_chart};
use super::catalogue::{Bytes, Catalogue};
use super::figure5;
use super::model::{self, Delays};
use super::published::{self, stated};
use super::workload::{Kind, Settings};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "mansilha/figure-9a",
    title: "Gain of parallel over serial lookups, by equations 7 to 11",
    source: "Mansilha et al. 2017, section 5.3",
    cost: Cost::minutes(0.1, 10.0),
    needs: &[Need::MemoryGib(2.0, 10.0)],
    params: &[
        gb("l1", "L1 of the equations, not divided, GB", "1"),
        gb(
            "l2",
            "L2, which is the catalogue, of the equations, not divided, GB",
            "10",
        ),
        Param::new(
            "rates",
            "rates of L2, Gbit/s",
            ParamKind::Numbers,
            ["1,2,4,8,16,32,64"; 3],
        ),
        SHRINK,
        ROUNDS,
        Param::seed(),
        WARM,
        BATCH,
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let sizes = Sizes::of(context);
    let l1 = Bytes::of_gb(context.values.numbers("l1")[0])?;
    let catalogue = Catalogue::of(Bytes::of_gb(context.values.numbers("l2")[0])?);
    let settings = Settings::published(catalogue);
    let hits = model::hit_ratio(Kind::Real, &settings, l1.chunks(), sizes.batch_chunks);
    let of_paper = published::table_4(Kind::Real);
    let of_paper = (of_paper.lookup_us.0 * 1e3, of_paper.insert_us.0 * 1e3);
    let fitted = figure5::fitted_real(sizes)?.map(|it| (it.lookup_ns, it.insert_ns));
    let mut record = Record::new(How::Computed);
    let mut table = Table::new(
        "",
        [
            Column::new("times"),
            "L2, Gbit/s".into(),
            Column::fixed("lookup, µs", 3),
            Column::fixed("insertion, µs", 2),
            Column::fixed("read, µs", 1),
            Column::fixed("serial, Gbit/s", 2),
            Column::fixed("parallel, Gbit/s", 2),
            Column::fixed("gain, %", 1),
            Column::fixed("a miss is shorter by, %", 1),
        ],
    );
    for (whose, times) in [("published", Some(of_paper)), ("here", fitted)] {
        let Some((lookup_ns, insert_ns)) = times else {
            record.note("Nothing could be fitted: rows of this machine are missing.");
            continue;
        };
        let title = format!("Figure 9 (a), times {whose}");
        let mut chart = log_chart(&title, "rate of L2, Gbit/s", "Gbit/s");
        for rate_gbps in context.values.numbers("rates") {
            let delays = Delays {
                lookup_ns,
                insert_ns,
                read_ns: model::read_ns(sizes.batch_chunks, rate_gbps),
            };
            let gains = Gains::of(&delays, 1.0 - hits);
            table.row(cells![
                whose,
                rate_gbps,
                lookup_ns / 1e3,
                insert_ns / 1e3,
                delays.read_ns / 1e3,
                gains.serial_gbps,
                gains.parallel_gbps,
                100.0 * gains.of_throughput,
                100.0 * gains.of_a_miss
            ]);
            chart.point("serial", rate_gbps, gains.serial_gbps);
            chart.point("parallel", rate_gbps, gains.parallel_gbps);
            if whose == "published" && rate_gbps == 4.0 {
                let here = Some(gains.of_throughput);
                let what = "gain with the published times at 4 Gbit/s: about";
                record.compare(what, 0.1, "", stated("section 5.5"), here);
            }
        }
        record.charts.push(chart);
    }
    record.tables.push(table);
    let equal = Delays {
        lookup_ns: 1.0,
        insert_ns: 1.0,
        read_ns: 1.0,
    };
    let (with_hits, without) = (Gains::of(&equal, 1.0 - hits), Gains::of(&equal, 1.0));
    let what = "part of a miss that is saved with three equal times";
    let here = Some(without.of_a_miss);
    record.compare(what, 2.0 / 3.0, "", stated("section 5.3"), here);
    record.note(format!(
        "Real, |L1| = {l1}, |L2| = |C| = {}: {hits:.4} hits in L1 by equation 4. With three equal \
         times throughput gains {:.0} % where everything misses, and {:.1} % with these hits.",
        catalogue.size(),
        100.0 * without.of_throughput,
        100.0 * with_hits.of_throughput
    ));
    record.note(format!(
        "Times of this machine are fitted to runs with an emulated L2. {}",
        sizes.note()
    ));
    Ok(record)
}

/// The gains of doing everything of a miss at once.
struct Gains {
    serial_gbps: f64,
    parallel_gbps: f64,
    /// By how much throughput grows.
    of_throughput: f64,
    /// By how much a miss is shorter.
    of_a_miss: f64,
}

impl Gains {
    fn of(delays: &Delays, miss_ratio: f64) -> Self {
        let serial_gbps = delays.serial_gbps(miss_ratio);
        let parallel_gbps = delays.parallel_gbps(miss_ratio);
        Self {
            serial_gbps,
            parallel_gbps,
            of_throughput: parallel_gbps / serial_gbps - 1.0,
            of_a_miss: 1.0 - delays.parallel_miss_ns() / delays.serial_miss_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_misses_save_two_thirds_at_most() {
        let equal = Delays {
            lookup_ns: 1.0,
            insert_ns: 1.0,
            read_ns: 1.0,
        };
        let gains = Gains::of(&equal, 1.0);
        assert!((gains.of_a_miss - 2.0 / 3.0).abs() < 1e-12);
        assert!((gains.of_throughput - 2.0).abs() < 1e-12);
        // 4.8 % misses of three units instead of one, by what was one for each.
        assert!((Gains::of(&equal, 0.048).of_throughput - 0.096).abs() < 1e-12);
        for read_ns in [1e3, 1e4, 1e5, 1e6] {
            let delays = Delays {
                lookup_ns: 200.0,
                insert_ns: 9_000.0,
                read_ns,
            };
            let gains = Gains::of(&delays, 0.048);
            assert!(gains.parallel_gbps > gains.serial_gbps, "{read_ns}");
            assert!((0.0..2.0 / 3.0).contains(&gains.of_a_miss), "{read_ns}");
        }
    }
}
