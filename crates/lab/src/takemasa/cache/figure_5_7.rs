//! Figure 5.7: average cycles of an Interest and its Data, by equations 5.1 and 5.2.
//!
//! Hit and insertion ratios are simulated in this run. With them the published blocks
//! (Tables 5.1 and 5.2) say what the figure should show, and the blocks that are measured in
//! this run say what it is here.

use anyhow::Context as _;
use tachonym_bench::{Chart, Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells};
use tachonym_policy::AdmissionKind;
use tachonym_policy::model::BlockCycles;

use super::blocks::{self, PACKETS, PREFIXES, STORE};
use super::cycles::Measurement;
use super::grid::{self, Grid, MIN_REQUESTS, REQUESTS, WARM, WEB_SHARE, percent, shrink};
use super::policies;
use super::published::{FILTER_SAVES, WEB_PERCENT, block, cycles, grouped, stated};
use super::sources::{Workload, policy};

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/figure-5.7",
    title: "Average cycles of an exchange by cache size, from blocks and ratios",
    source: "Takemasa 2019, section 5.4.3; Takemasa et al. 2019 (JIP), Figure 7",
    cost: Cost::minutes(0.8, 12.0),
    needs: &[Need::MemoryGib(1.5, 4.0)],
    params: &[
        policies(["filter/fifo,tinylfu/random,fifo,random,arc,filter-auto/gclock"; 3]),
        grid::workloads("web"),
        percent(["1,5", "1,2,5,10", "1,2,3,4,5,6,7,8,9,10"]),
        shrink(["2k", "1", "1"]),
        WARM,
        REQUESTS,
        MIN_REQUESTS,
        WEB_SHARE,
        PREFIXES,
        STORE,
        PACKETS,
        Param::rounds(["1", "11", "31"]),
        Param::seed(),
    ],
    run,
}];

/// A policy at a size.
struct Average {
    policy: String,
    percent: u64,
    /// By the published blocks, where the policy has some.
    published_cycles: Option<f64>,
    /// By the blocks measured here.
    here_ns: f64,
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let grid = Grid::of(context)?;
    let rows = grid.rows()?;
    let measurement = Measurement::of(context.size("store"), context.rounds(), context.seed());
    let here = blocks::by_number(&blocks::measure(context, "fifo")?);
    let of_policies = measurement.rows(&grid.policies)?;
    let mut averages = Vec::new();
    let columns = [
        "policy",
        "cache, %",
        "hit ratio",
        "insertion ratio",
        "published blocks, cycles",
        "blocks here, ns",
    ];
    let mut table = Table::new("", columns);
    for row in &rows {
        let admits_all = policy(&row.policy, row.capacity)?.admission == AdmissionKind::None;
        let average = |blocks: BlockCycles| match admits_all {
            true => blocks.with_eviction(row.hit_ratio),
            false => blocks.with_admission(row.hit_ratio, row.insertion_ratio),
        };
        let own = of_policies.iter().find(|it| it.policy == row.policy);
        let own = own.context("a policy was not measured")?.medians()?;
        let published_cycles = cycles(&row.policy).map(|own| average(grouped(block, own)));
        let here_ns = average(grouped(|number| here[usize::from(number)], own));
        table.row(cells![
            row.policy.clone(),
            row.percent,
            row.hit_ratio,
            row.insertion_ratio,
            published_cycles,
            here_ns
        ]);
        averages.push(Average {
            policy: row.policy.clone(),
            percent: row.percent,
            published_cycles,
            here_ns,
        });
    }
    let mut record = Record::new(Kind::Measured);
    record.tables = vec![table, savings(&averages)];
    record.charts = charts(&averages);
    compare(&mut record, &grid, &rows, &averages);
    record.note(grid.note());
    record.note(
        "Cycles by the published blocks are computed; ratios, and the blocks here, are of this run. \
         The blocks here are the engine's with FIFO, whose marks leave B2, B12 and B13 out of the \
         others; B2, B12 and B13 are those of each policy alone. What the engine does beside the \
         numbered blocks (strategies, checks, prefetches) is not in them.",
    );
    record.note("No cycles of the figure are in the text, only what Filter saves with 10^5 Data.");
    Ok(record)
}

/// What Filter takes less than a policy at the least size, in hundredths of that policy's:
/// by the published blocks, and by those here.
fn saved(averages: &[Average], policy: &str) -> Option<(Option<f64>, f64)> {
    let first = |policy: &str| averages.iter().find(|it| it.policy == policy);
    let (filter, other) = (first("filter/fifo")?, first(policy)?);
    let published = filter.published_cycles.zip(other.published_cycles);
    let saved = |(filter, other): (f64, f64)| 100.0 * (1.0 - filter / other);
    Some((published.map(saved), saved((filter.here_ns, other.here_ns))))
}

fn savings(averages: &[Average]) -> Table {
    let columns = [
        "Filter takes less than",
        "published, %",
        "published blocks, %",
        "here, %",
    ];
    let mut table = Table::new("Savings of Filter at the smallest cache", columns);
    for (policy, published) in FILTER_SAVES {
        if let Some((by_published, here)) = saved(averages, policy) {
            table.row(cells![policy, published, by_published, here]);
        }
    }
    table
}

fn charts(averages: &[Average]) -> Vec<Chart> {
    let x = "Data in the cache, % of the objects";
    let mut published = Chart::new("By the published blocks", x, "cycles of an exchange");
    let mut here = Chart::new("By the blocks measured here", x, "ns of an exchange");
    for it in averages {
        let x = it.percent as f64;
        if let Some(cycles) = it.published_cycles {
            published.point(&it.policy, x, cycles);
        }
        here.point(&it.policy, x, it.here_ns);
    }
    vec![published, here]
}

fn compare(record: &mut Record, grid: &Grid, rows: &[grid::Row], averages: &[Average]) {
    let is_published_size = grid.shrink == 1 && grid.percents.first() == Some(&WEB_PERCENT);
    for (policy, published) in FILTER_SAVES {
        let here = saved(averages, policy).and_then(|(by_published, _)| by_published);
        record.compare(
            format!("saved by Filter against {policy}, published blocks"),
            published,
            "%",
            stated("section 5.4.3"),
            here.filter(|_| is_published_size),
        );
    }
    // Step 3: what the hits cost that Filter loses to TinyLFU.
    let find = |policy: &str| grid::find(rows, Workload::Web, policy, WEB_PERCENT);
    let lost = find("filter/fifo")
        .zip(find("tinylfu/random"))
        .zip(cycles("filter/fifo"));
    let cost = lost.map(|((filter, tiny), own)| {
        let blocks = grouped(block, own);
        let at = |hit_ratio| blocks.with_admission(hit_ratio, filter.insertion_ratio);
        at(filter.hit_ratio) - at(tiny.hit_ratio)
    });
    record.compare(
        "cost of the hits that Filter loses to TinyLFU",
        28.0,
        "cycles",
        stated("section 5.4.3"),
        cost.filter(|_| is_published_size),
    );
}

#[cfg(test)]
mod tests {
    use super::super::published::WEB_HIT_RATIOS;
    use super::*;

    #[test]
    fn published_tables_and_ratios_make_these_savings() {
        // With the hit ratios of section 5.4.2; of the insertion ratios none is in the
        // text: 0.03 for Filter (section 6.5.2) and 0.1 for TinyLFU (section 5.1.2).
        let average = |policy: &str, insertion: Option<f64>| {
            let hits = WEB_HIT_RATIOS.iter().find(|(name, _)| *name == policy);
            let hits = hits.expect("published").1;
            let blocks = grouped(block, cycles(policy).expect("published"));
            match insertion {
                None => blocks.with_eviction(hits),
                Some(insertion) => blocks.with_admission(hits, insertion),
            }
        };
        let filter = average("filter/fifo", Some(0.03));
        for (policy, insertion, expected) in [
            ("arc", None, 20.2),
            ("fifo", None, 13.2),
            ("random", None, 15.4),
            ("tinylfu/random", Some(0.1), 9.1),
        ] {
            let saved = 100.0 * (1.0 - filter / average(policy, insertion));
            assert!((saved - expected).abs() < 0.05, "{policy}: {saved}");
        }
    }
}
