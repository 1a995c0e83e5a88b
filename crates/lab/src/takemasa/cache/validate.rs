//! Whether the simulator and the policies are right: hit ratios beside plain simulators, on
//! the same requests, and beside models.

use tachonym_bench::turns::seconds_of;
use tachonym_bench::{Column, Context, Cost, Experiment, Kind, Need, Param, Record, Table, cells};
use tachonym_policy::model::{EvictionModel, FilterModel, KLruModel, Popularity};

use super::plain::{lfu_hits, lru_hits, queue_hits};
use super::policies;
use super::simulate::{Drawn, Simulation};
use super::sources::{ALPHA, policy, words};
use super::workload::Independent;
use crate::workloads::Requests as _;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/cache-validate",
    title: "Hit ratios of the policies beside plain simulators and models",
    source: "",
    cost: Cost::minutes(0.2, 20.0),
    needs: &[Need::MemoryGib(0.7, 4.0)],
    params: &[
        policies(
            ["fifo,random,lru,lru-local,clock,gclock,2q,sieve,lirs,arc,s3-fifo,slru,lfu,lfu-local,\
             lfu-perfect,k-lru:2/lru,k-lru:3/lru,lcp/lru,filter-exact/fifo,filter-exact/random,\
             filter/fifo,filter/clock,filter/gclock,filter/sieve,filter/lfu,filter/lfu-local,\
             tinylfu/random,w-tinylfu/slru"; 3],
        ),
        Param::count(
            "objects",
            "objects of Zipf popularity 0.8",
            ["20k", "1M", "10M"],
        ),
        Param::count("cache", "Data in the cache", ["200", "10k", "100k"]),
        Param::count(
            "warm",
            "requests before measurement begins",
            ["50k", "2M", "20M"],
        ),
        Param::count(
            "requests",
            "requests that are measured",
            ["50k", "2M", "30M"],
        ),
        Param::seed(),
    ],
    run,
}];

/// Hits of a plain simulator, for the policies that have one.
fn plain_hits(name: &str, requests: &[u32], capacity: usize, n_warm: usize) -> Option<u64> {
    Some(match name {
        "lru" => lru_hits(requests, capacity, n_warm),
        "fifo" => queue_hits(requests, capacity, n_warm, 0),
        "clock" => queue_hits(requests, capacity, n_warm, 1),
        "gclock" => queue_hits(requests, capacity, n_warm, 3),
        "lfu" => lfu_hits(requests, capacity, n_warm, false),
        "lfu-perfect" => lfu_hits(requests, capacity, n_warm, true),
        _ => return None,
    })
}

/// The hit ratio and the insertion ratio of a model, for the policies that have one.
fn model(name: &str, capacity: f64, popularity: &Popularity) -> Option<(f64, Option<f64>)> {
    let filter = |threshold, eviction| {
        let model = FilterModel {
            capacity,
            history_len: capacity,
            threshold,
            eviction,
        };
        let expected = model.expected(popularity);
        Some((expected.hit_ratio, Some(expected.insertion_ratio)))
    };
    let chain = |n_stages| KLruModel { capacity, n_stages }.hit_ratio(popularity);
    match name {
        "fifo" | "random" => filter(1, EvictionModel::FifoOrRandom),
        "lru" => filter(1, EvictionModel::Lru),
        "filter-exact/fifo" | "filter-exact/random" => filter(2, EvictionModel::FifoOrRandom),
        "k-lru:2/lru" => Some((chain(2), None)),
        "k-lru:3/lru" => Some((chain(3), None)),
        _ => None,
    }
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let (n_objects, capacity) = (context.values.count32("objects"), context.size("cache"));
    let (n_warm, n_requests) = (context.size("warm"), context.size("requests"));
    let popularity = Popularity::zipf(u64::from(n_objects), ALPHA);
    let mut drawn = vec![0; n_warm + n_requests];
    Independent::new(n_objects, ALPHA, context.seed()).fill(&mut drawn);
    let columns: [Column; 8] = [
        "policy".into(),
        Column::fixed("hit ratio", 4),
        Column::fixed("plain simulator", 4),
        "hits more".into(),
        Column::fixed("model", 4),
        Column::fixed("insertion ratio", 4),
        Column::fixed("insertion ratio, model", 4),
        "M requests/s".into(),
    ];
    let mut table = Table::new("", columns);
    let mut n_off = 0_u64;
    for name in words(context, "policies") {
        let mut simulation = Simulation::new(&policy(&name, capacity)?, n_objects as usize)?;
        simulation.run(&mut Drawn(&drawn[..n_warm]), n_warm as u64);
        let warm = *simulation.counts();
        let mut rest = Drawn(&drawn[n_warm..]);
        let (seconds, _) = seconds_of(|| simulation.run(&mut rest, n_requests as u64));
        let counts = simulation.counts().since(&warm);
        let plain = plain_hits(&name, &drawn, capacity, n_warm);
        let more = plain.map(|plain| counts.n_hits as i64 - plain as i64);
        n_off += more.map_or(0, i64::unsigned_abs);
        let model = model(&name, capacity as f64, &popularity);
        table.row(cells![
            name,
            counts.hit_ratio(),
            plain.map(|plain| plain as f64 / n_requests as f64),
            more,
            model.map(|model| model.0),
            counts.insertion_ratio(),
            model.and_then(|model| model.1),
            n_requests as f64 / seconds / 1e6
        ]);
    }
    let mut record = Record::new(Kind::Simulated);
    record.tables.push(table);
    let best = popularity.best_hit_ratio(capacity as f64);
    record.note(format!(
        "{n_objects} objects, independent requests, {capacity} Data in the cache. The {capacity} \
         most popular objects get {best:.4} of the requests in the long run."
    ));
    record.note(format!(
        "Plain simulators are written from the descriptions of the algorithms, for LRU by stack \
         distances, and run on the same requests: hits differ by {n_off} in all. lfu-perfect \
         remembers a hundred evicted names for each Data, the plain simulator all of them. What \
         has no plain simulator here is compared with one in the tests of the crate policy, on \
         shorter sequences."
    ));
    record.note(
        "Models: the characteristic-time approximation for FIFO, random and LRU, equations 5.3 to \
         5.7 of Takemasa 2019 for Filter, and its extension to a chain of caches for k-LRU.",
    );
    Ok(record)
}
