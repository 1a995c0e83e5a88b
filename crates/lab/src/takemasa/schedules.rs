//! What fetching ahead gains: Takemasa 2019, section 4.4, on the router's own engine. All
//! Interests miss, and their Data come back.

use tachonym_bench::cpu;
use tachonym_bench::stats::{Spread, median};
use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Kind, Need, Param, Record, Reference, Table, cells,
};
use tachonym_forward::Schedule;

use super::bottleneck::{INSTRUCTIONS, count_instructions};
use crate::beds::engine::params::{
    BURST, HASH, LATE, PACKETS, PAGES, PIT_CS, PREFIXES, STORE, n_bursts, options, policy_of,
};
use crate::beds::engine::rates::{Plan, Rate, Rates, measure, spread};
use crate::beds::engine::{BedOptions, Kind as BedKind};

/// The experiments, in the order of the thesis.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "takemasa/table-3.6",
        title: "Cycles of an Interest that misses by the number of threads, without prefetches",
        source: "Takemasa 2019, section 3.2.3",
        cost: Cost::minutes(0.1, 8.0),
        needs: NEEDS,
        params: &params("fifo"),
        run: table_3_6,
    },
    Experiment {
        id: "takemasa/figure-4.5",
        title: "Time of a packet with each prefetching method, one thread",
        source: "Takemasa 2019, section 4.4.1",
        cost: Cost::minutes(0.1, 8.0),
        needs: &[Need::MemoryGib(1.0, 8.0)],
        params: &FIGURE_4_5,
        run: figure_4_5,
    },
    Experiment {
        id: "takemasa/figure-4.6",
        title: "Time of a packet with each prefetching method, several threads",
        source: "Takemasa 2019, section 4.4.2",
        cost: Cost::minutes(0.1, 12.0),
        needs: NEEDS,
        params: &params("tinylfu/fifo"),
        run: figure_4_6,
    },
    Experiment {
        id: "takemasa/figure-4.7",
        title: "Packets a second by the number of threads and prefetching method",
        source: "Takemasa 2019, section 4.4.3",
        cost: Cost::minutes(0.1, 12.0),
        needs: NEEDS,
        params: &params("tinylfu/fifo"),
        run: figure_4_7,
    },
];

const NEEDS: &[Need] = &[Need::MemoryGib(2.0, 16.0)];

const fn params(policy: &'static str) -> [Param; 11] {
    [
        PREFIXES,
        BURST,
        STORE,
        LATE,
        PACKETS,
        policy_of(policy),
        PIT_CS,
        HASH,
        PAGES,
        Param::rounds(["2", "15", "31"]),
        Param::seed(),
    ]
}

const FIGURE_4_5: [Param; 12] = {
    let mut all = [INSTRUCTIONS; 12];
    let shared = params("tinylfu/fifo");
    let mut idx = 0;
    while idx < shared.len() {
        all[idx] = shared[idx];
        idx += 1;
    }
    all
};

const DOCUMENT: &str = "Takemasa 2019";
/// Rate of a core of the published computer, in GHz.
const PUBLISHED_GHZ: f64 = 2.2;

/// Measures these schedules with these numbers of threads.
fn rates(context: &Context, n_threads: &[usize], schedules: &[Schedule]) -> anyhow::Result<Rates> {
    let rates = measure(&Plan {
        bed: options(context)?,
        n_threads: n_threads.to_vec(),
        settings: schedules.iter().map(|&it| it.into()).collect(),
        n_rounds: context.rounds(),
        n_bursts: n_bursts(context),
    })?;
    context.note(cpu::note(&rates.pinned));
    context.note(format!(
        "At most a thread for each processor; each has tables and names of its own. Policy of the \
         content store: {}; {:.3} Data inserted per Data. Data come {} bursts after their \
         Interests.",
        context.text("policy"),
        rates.insertion_ratio,
        context.size("late")
    ));
    if rates.insertion_ratio < 0.01 {
        context.note(
            "Names are asked for once, so this admission inserts hardly any Data. The thesis \
             traces what SHTL saves for Data to the Data that are replaced: --set policy=fifo \
             replaces one for each that comes.",
        );
    }
    Ok(rates)
}

/// 1, 2, 4, … and as many threads as there are processors, at most `limit`.
fn thread_counts(limit: usize) -> Vec<usize> {
    let n_cpus = cpu::available().len().clamp(1, limit);
    let doubled = std::iter::successors(Some(1), |n| Some(2 * n));
    doubled
        .take_while(|&n| n < n_cpus)
        .chain([n_cpus])
        .collect()
}

/// The rates of a number of threads, by schedule.
fn at(rates: &Rates, n_threads: usize) -> impl Iterator<Item = (Schedule, &Rate)> {
    let of_number = rates
        .rates
        .iter()
        .filter(move |it| it.n_threads == n_threads);
    of_number.map(|rate| (rate.setting.schedule, rate))
}

fn of(rates: &Rates, n_threads: usize, schedule: Schedule) -> anyhow::Result<&Rate> {
    let rate = rates.of(n_threads, schedule.into());
    rate.ok_or_else(|| anyhow::anyhow!("{schedule} was not measured"))
}

/// The share of its time that a schedule saves against another one, in percent: the median
/// over rounds.
fn saving(of: &[f64], against: &[f64]) -> Option<f64> {
    Some(100.0 * (1.0 - Spread::of_ratios(of, against)?.median))
}

fn table_3_6(context: &Context) -> anyhow::Result<Record> {
    const PUBLISHED: [(usize, [f64; 3]); 3] = [
        (1, [1470.0, 460.0, 4.0]),
        (10, [1567.0, 640.0, 4.0]),
        (20, [2033.0, 878.0, 4.0]),
    ];
    let mut counts = thread_counts(20);
    if cpu::available().len() > 10 {
        counts.push(10);
        counts.sort_unstable();
    }
    let rates = rates(context, &counts, &[Schedule::Naive])?;
    let one = median(&of(&rates, 1, Schedule::Naive)?.miss_ns);
    let mut table = Table::new(
        "",
        [
            Column::new("threads"),
            Column::fixed("I-miss, ns", 0),
            Column::fixed("by that of one thread", 3),
            Column::fixed("published cycles", 0),
            Column::fixed("published, by one thread", 3),
            Column::fixed("cycles of DRAM stalls", 0),
            Column::fixed("published cycles of DRAM stalls", 0),
            Column::fixed("published DRAM accesses", 0),
        ],
    );
    let mut record = Record::new(Kind::Measured);
    let all: std::collections::BTreeSet<usize> = counts
        .iter()
        .copied()
        .chain(PUBLISHED.map(|it| it.0))
        .collect();
    for n_threads in all {
        let here = rates.of(n_threads, Schedule::Naive.into());
        let here = here.and_then(|rate| Spread::of(&rate.miss_ns));
        let published = PUBLISHED.iter().find(|it| it.0 == n_threads).map(|it| it.1);
        let by_one = here.map(|ns| ns.median / one);
        table.row(cells![
            n_threads,
            here,
            by_one,
            published.map(|it| it[0]),
            published.map(|it| it[0] / PUBLISHED[0].1[0]),
            None::<f64>,
            published.map(|it| it[1]),
            published.map(|it| it[2]),
        ]);
        if let Some([cycles, ..]) = published {
            let what = format!("I-miss by that of one thread, threads: {n_threads}");
            let reference = Reference::inferred(DOCUMENT, "Table 3.6");
            record.compare(what, cycles / PUBLISHED[0].1[0], "", reference, by_one);
        }
    }
    record.tables.push(table);
    record.note(
        "Schedule naive, as the prototype of chapter 3. Cycles of DRAM stalls need counters that \
         only some processors have: they are not measured.",
    );
    Ok(record)
}

/// A row for each schedule with `n_threads` threads, and its comparison with naive.
fn by_schedule(rates: &Rates, n_threads: usize) -> anyhow::Result<Table> {
    let columns = [Column::new("method")]
        .into_iter()
        .chain(["I-miss, ns", "Data, ns", "both, ns"].map(|it| Column::fixed(it, 0)))
        .chain(
            ["I-miss, by naive", "Data, by naive", "both, by naive"].map(|it| Column::fixed(it, 3)),
        );
    let mut table = Table::new("", columns);
    let naive = of(rates, n_threads, Schedule::Naive)?;
    for (schedule, rate) in at(rates, n_threads) {
        let both = rate.exchange_ns();
        table.row(cells![
            schedule.to_string(),
            spread(&rate.miss_ns)?,
            spread(&rate.data_ns)?,
            spread(&both)?,
            Spread::of_ratios(&rate.miss_ns, &naive.miss_ns).map(|it| it.median),
            Spread::of_ratios(&rate.data_ns, &naive.data_ns).map(|it| it.median),
            Spread::of_ratios(&both, &naive.exchange_ns()).map(|it| it.median),
        ]);
    }
    Ok(table)
}

fn bars(rates: &Rates, n_threads: usize, title: &str) -> Chart {
    let labels = at(rates, n_threads).map(|(schedule, _)| schedule.to_string());
    let mut chart = Chart::bars(title, labels.collect::<Vec<_>>(), "ns per packet");
    for (group, (_, rate)) in at(rates, n_threads).enumerate() {
        chart.point("I-miss", group as f64, median(&rate.miss_ns));
        chart.point("Data", group as f64, median(&rate.data_ns));
    }
    chart
}

fn figure_4_5(context: &Context) -> anyhow::Result<Record> {
    use Schedule as S;
    let rates = rates(context, &[1], &Schedule::ALL)?;
    let mut record = Record::new(Kind::Measured);
    let mut table = by_schedule(&rates, 1)?;
    add_instructions(context, &mut table)?;
    record.tables.push(table);
    record
        .charts
        .push(bars(&rates, 1, "Time of a packet, one thread"));
    for (schedule, against, published) in [
        (S::BucketPrefetch, S::Naive, 15.03),
        (S::PreHash, S::BucketPrefetch, 9.16),
        (S::Shtl, S::PreHash, 7.82),
        (S::Shtl, S::Naive, 28.85),
    ] {
        let saved = saving(
            &of(&rates, 1, schedule)?.miss_ns,
            &of(&rates, 1, against)?.miss_ns,
        );
        let what = format!("I-miss: {schedule} saves against {against}");
        let reference = Reference::stated(DOCUMENT, "section 4.4.1");
        record.compare(what, published, "%", reference, saved);
    }
    for against in [S::Naive, S::BucketPrefetch, S::PreHash] {
        let saved = saving(
            &of(&rates, 1, S::Shtl)?.data_ns,
            &of(&rates, 1, against)?.data_ns,
        );
        let what = format!("Data: {} saves against {against}", S::Shtl);
        let reference = Reference::stated(DOCUMENT, "section 4.4.1");
        record.compare(what, 11.98, "%", reference, saved);
    }
    record.note("The method burst is this router's own: each step for a group of packets.");
    Ok(record)
}

/// Instructions of an exchange, counted by stepping, beside the times of [`Schedule::ALL`].
fn add_instructions(context: &Context, table: &mut Table) -> anyhow::Result<()> {
    let titles = [
        "I-miss, instructions",
        "Data, instructions",
        "both, instructions",
    ];
    table.columns.extend(titles.map(|it| Column::fixed(it, 0)));
    let bed = options(context)?;
    for (row, schedule) in table.rows.iter_mut().zip(Schedule::ALL) {
        let bed = BedOptions {
            schedule,
            ..bed.clone()
        };
        let counts = count_instructions(context, &bed)?;
        let of = |kind: BedKind| {
            let mut counts = counts.iter();
            let count = counts.find(|it| it.kind == kind.label());
            count.map(|it| it.total.own)
        };
        let [miss, data] = [of(BedKind::Miss), of(BedKind::Data)];
        let both = miss.zip(data).map(|(miss, data)| miss + data);
        row.extend(cells![miss, data, both]);
    }
    Ok(())
}

fn figure_4_6(context: &Context) -> anyhow::Result<Record> {
    let counts = thread_counts(20);
    let most = counts[counts.len() - 1];
    let ends: Vec<usize> = if most > 1 { vec![1, most] } else { vec![1] };
    let rates = rates(context, &ends, &Schedule::ALL)?;
    let mut record = Record::new(Kind::Measured);
    let mut table = by_schedule(&rates, most)?;
    table.columns.push(Column::fixed("both, by one thread", 3));
    for (row, (schedule, rate)) in table.rows.iter_mut().zip(at(&rates, most)) {
        let one = median(&of(&rates, 1, schedule)?.exchange_ns());
        row.push((median(&rate.exchange_ns()) / one).into());
    }
    record.tables.push(table);
    let title = format!("Time of a packet, {most} threads");
    record.charts.push(bars(&rates, most, &title));
    let growth = |schedule| -> anyhow::Result<f64> {
        let many = median(&of(&rates, most, schedule)?.miss_ns);
        Ok(many / median(&of(&rates, 1, schedule)?.miss_ns))
    };
    // The text has "does not increase" for SHTL; for naive, Table 3.6 has the cycles.
    let reference = Reference::inferred(DOCUMENT, "section 4.4.2");
    let here = Some(growth(Schedule::Shtl)?);
    record.compare("I-miss, 20 threads by one: shtl", 1.0, "", reference, here);
    let reference = Reference::inferred(DOCUMENT, "Table 3.6");
    let here = Some(growth(Schedule::Naive)?);
    let what = "I-miss, 20 threads by one: naive";
    record.compare(what, 2033.0 / 1470.0, "", reference, here);
    record.note(format!("Here with {most} threads, published with 20."));
    Ok(record)
}

/// Packets a second with SHTL.
pub(crate) const PUBLISHED_PKTS_PER_S: f64 = 42.49e6;
/// Threads of that: inferred, two on each of 20 cores; the thesis does not state it.
pub(crate) const INFERRED_THREADS: u16 = 40;

fn figure_4_7(context: &Context) -> anyhow::Result<Record> {
    let counts = thread_counts(40);
    let rates = rates(context, &counts, &Schedule::ALL)?;
    let mut record = Record::new(Kind::Measured);
    let mut table = Table::new(
        "",
        [
            Column::new("method"),
            Column::fixed("threads", 0),
            Column::fixed("million packets/s", 2),
            Column::fixed("of each thread", 2),
            Column::fixed("by one thread", 2),
        ],
    );
    let title = "Packets a second of all threads";
    let mut chart = Chart::new(title, "threads", "million packets/s");
    for schedule in Schedule::ALL {
        let one = &of(&rates, 1, schedule)?.pkts_per_s;
        for &n_threads in &counts {
            let pkts_per_s = &of(&rates, n_threads, schedule)?.pkts_per_s;
            let millions: Vec<f64> = pkts_per_s.iter().map(|it| it / 1e6).collect();
            let millions = spread(&millions)?;
            table.row(cells![
                schedule.to_string(),
                n_threads,
                millions,
                millions.median / n_threads as f64,
                Spread::of_ratios(pkts_per_s, one).map(|it| it.median),
            ]);
            let label = schedule.to_string();
            chart.point(&label, n_threads as f64, millions.median);
        }
    }
    let most = counts[counts.len() - 1];
    let shtl = median(&of(&rates, most, Schedule::Shtl)?.pkts_per_s);
    let published = PUBLISHED_PKTS_PER_S / 1e6;
    let unit = "million packets/s";
    let reference = Reference::stated(DOCUMENT, "section 4.4.3");
    let what = format!("shtl; here with {most} threads");
    record.compare(what, published, unit, reference, Some(shtl / 1e6));
    let by_thread = published / f64::from(INFERRED_THREADS);
    let reference = Reference::inferred(DOCUMENT, "section 4.4.3");
    let what = format!("shtl, of each of {INFERRED_THREADS} threads");
    let here = Some(shtl / 1e6 / most as f64);
    record.compare(what, by_thread, unit, reference, here);
    let inferred = f64::from(INFERRED_THREADS);
    chart.published(&Schedule::Shtl.to_string(), inferred, published);
    record.tables.push(table);
    record.charts.push(chart);
    record.note(format!(
        "A rate is the packets of all threads by the time of the slowest. Packets are in memory; \
         the published ones come from network interfaces to cores of {PUBLISHED_GHZ} GHz."
    ));
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saving_is_of_the_median_ratio_of_rounds() {
        let saved = saving(&[50.0, 80.0, 60.0], &[100.0, 100.0, 100.0]);
        assert!((saved.expect("three rounds") - 40.0).abs() < 1e-9);
        assert_eq!(saving(&[], &[]), None);
    }

    #[test]
    fn published_steps_make_the_published_whole() {
        let left = (1.0 - 0.1503) * (1.0 - 0.0916) * (1.0 - 0.0782);
        assert!((left - (1.0 - 0.2885_f64)).abs() < 0.001);
    }
}
