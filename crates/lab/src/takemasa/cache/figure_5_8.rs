//! Figure 5.8: forwarding rate of one thread by cache algorithm.

use tachonym_bench::cpu::{note, on_pinned_thread};
use tachonym_bench::stats::{Spread, median};
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Bound, Chart, Context, Cost, Experiment, Kind, Need, Param, Record, Table, Values, cells,
};

use super::policies;
use super::published::{GBPS, inferred, stated};
use super::sources::{ALPHA, words};
use super::web_bed::{Counted, DATA_BYTES, INTEREST_BYTES, Sizes, WebBed};
use super::workload::Independent;

/// Requests that make a cache what it is in the long run, by its size.
const WARM_BY_LEN: u64 = 40;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/figure-5.8",
    title: "Forwarding rate of one thread by cache algorithm",
    source: "Takemasa 2019, section 5.4.4; Takemasa et al. 2019 (JIP), Figure 8",
    cost: Cost::minutes(1.0, 6.0),
    needs: &[Need::MemoryGib(2.5, 8.0)],
    params: &[
        policies([
            "fifo,filter/fifo,filter/clock,arc",
            "fifo,filter/fifo,filter/clock,filter-auto/gclock,arc,tinylfu/random,lru",
            "fifo,filter/fifo,filter/clock,filter-auto/gclock,arc,tinylfu/random,lru",
        ]),
        Param::count("objects", "web objects", ["2k", "10M", "10M"]),
        Param::count(
            "store",
            "Data in the content store",
            ["100", "100k", "100k"],
        ),
        Param::count("prefixes", "FIB prefixes", ["100", "200k", "1M"]),
        Param::count(
            "requests",
            "Interests of a round",
            ["1024", "65536", "65536"],
        ),
        Param::count("burst", "packets of a burst", ["32"; 3]),
        Param::rounds(["1", "15", "75"]),
        Param::seed(),
    ],
    run,
}];

fn run(context: &Context) -> anyhow::Result<Record> {
    let policies = words(context, "policies");
    let values = &context.values;
    let (pinned, measured) = on_pinned_thread(|| measure(values, &policies));
    let (counted, rounds) = measured?;
    let mut record = Record::new(Kind::Measured);
    let columns = [
        "policy",
        "hit ratio",
        "insertion ratio",
        "request, ns",
        "rate by FIFO's",
        "Mpps",
        "Gbit/s",
    ];
    let mut table = Table::new("", columns);
    let title = "Forwarded by one thread, web workload";
    let mut chart = Chart::bars(title, &policies, "Gbit/s");
    let fifo = policies.iter().position(|it| it == "fifo");
    for (idx, policy) in policies.iter().enumerate() {
        let (of, request_ns) = (&counted[idx], median(&rounds[idx]));
        let by_fifo = fifo.and_then(|fifo| Spread::of_ratios(&rounds[fifo], &rounds[idx]));
        let misses = of.n_misses as f64 / of.n_interests as f64;
        // A request sends a Data to the consumer, and one that misses an Interest before.
        let bits = 8.0 * (DATA_BYTES as f64 + INTEREST_BYTES as f64 * misses);
        chart.point("here", idx as f64, bits / request_ns);
        if let Some((_, gbps)) = GBPS.iter().find(|(name, _)| name == policy) {
            chart.point("published, Xeon E5-2699 v4", idx as f64, *gbps);
        }
        table.row(cells![
            policy.clone(),
            1.0 - misses,
            of.n_inserts as f64 / of.n_data.max(1) as f64,
            Spread::of(&rounds[idx]),
            by_fifo,
            (1.0 + misses) * 1e3 / request_ns,
            bits / request_ns
        ]);
    }
    let gbps = |policy: &str| table.number(&[policy], "Gbit/s");
    let mut compare = |other: &str, name: &str, text: f64, numbers: f64| {
        let here = gbps("filter/fifo").zip(gbps(other));
        let here = here.map(|(filter, other)| filter / other);
        let what = format!("rate with Filter by that with {name}");
        let (text_at, numbers_at) = (stated("section 5.4.4"), inferred("section 5.4.4"));
        record.compare(format!("{what}, text"), text, "", text_at, here);
        record.compare(
            format!("{what}, from its Gbit/s"),
            numbers,
            "",
            numbers_at,
            here,
        );
    };
    compare("arc", "ARC", 1.3, 16.1 / 11.2);
    compare("fifo", "FIFO", 1.1, 16.1 / 13.9);
    let filter = policies.iter().position(|it| it == "filter/fifo");
    for (other, least) in [("fifo", 1.2), ("arc", 1.35)] {
        let other_idx = policies.iter().position(|it| it == other);
        let ratio = filter.zip(other_idx).and_then(|(filter, other)| {
            // Rates are by requests, so that the ratio is that of times.
            Spread::of_ratios(&rounds[other], &rounds[filter])
        });
        if let Some(ratio) = ratio {
            let what = format!("requests a second with Filter by those with {other}");
            record.judge(what, "", Bound::AtLeast(least), ratio);
        }
    }
    for (policy, value) in GBPS {
        let what = format!("rate with {policy}");
        record.compare(what, value, "Gbit/s", stated("section 5.4.4"), gbps(policy));
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(format!(
        "Here the engine forwards between buffers in memory, without network interfaces, on \
         another processor: ratios compare, not Gbit/s. Interests of {INTEREST_BYTES} bytes, Data \
         of {DATA_BYTES}; published with 13,548,815 FIB prefixes."
    ));
    record.note(note(&[pinned]));
    Ok(record)
}

type Measured = (Vec<Counted>, Vec<Vec<f64>>);

/// What each policy's engine counted, and its nanoseconds a request by round.
fn measure(values: &Values, policies: &[String]) -> anyhow::Result<Measured> {
    let requests = Independent::new(values.count32("objects"), ALPHA, values.count("seed"));
    let sizes = Sizes {
        store_pkts: values.size("store"),
        n_prefixes: values.count32("prefixes"),
        burst_pkts: values.size("burst"),
    };
    let beds = policies
        .iter()
        .map(|name| WebBed::new(sizes, requests.clone(), name));
    let mut beds = beds.collect::<anyhow::Result<Vec<_>>>()?;
    for bed in &mut beds {
        bed.carry_requests(sizes.store_pkts as u64 * WARM_BY_LEN);
    }
    let before: Vec<Counted> = beds.iter().map(WebBed::counted).collect();
    let rounds = rotated(beds.len(), values.size("rounds"), |case, _| {
        Ok(beds[case].carry_requests(values.count("requests")))
    })?;
    let counted = beds
        .iter()
        .zip(&before)
        .map(|(bed, before)| bed.counted().since(before));
    Ok((counted.collect(), rounds))
}
