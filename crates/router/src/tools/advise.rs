//! `tachonym cs advise`: hit ratios to expect of other cache sizes and policies.
//!
//! The router reports the popularity of names and the counters of its store; everything
//! else is computed here by the model of Takemasa et al. 2019 (equations 1 to 7). Observed
//! and expected figures stand beside each other and are never mixed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use tachonym_client::Controller;
use tachonym_policy::EvictionKind;
use tachonym_policy::advice::{Choice, Costs, Expectation};
use tachonym_policy::eviction::MAX_SLOTS;
use tachonym_policy::model::Popularity;
use tachonym_policy::popularity::{MeasuredClass, Measurement};
use tachonym_protocol::{CsPopularity, CsStats};
use tachonym_tables::CsCapacity;

use super::failure::Failure;
use super::{Management, text};
use crate::config::FREE_TABLE_BYTES;

/// Sizes that are looked at, by the running one.
const SIZES_BY_RUNNING: [f64; 7] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];
/// What Filter is tried with: thresholds, and histories by the size of the cache.
const THRESHOLDS: [u32; 9] = [2, 3, 4, 6, 8, 11, 15, 22, 32];
const HISTORIES_BY_LEN: [usize; 3] = [1, 4, 16];
/// Hit ratios closer than this are as good as each other: what costs less is advised then.
const AS_GOOD: f64 = 0.005;
/// By the requests that were measured, those in which a filter that is advised has inserted as
/// many Data as there is room for.
const RENEWED_WITHIN: f64 = 4.0;
/// Most Data that are asked about.
const MAX_SIZE: u64 = MAX_SLOTS as u64;

/// Show the hit ratios to expect of other sizes and policies.
#[derive(Args)]
pub(super) struct Arguments {
    /// Sizes to compare, in packets; without it, a quarter of the current one to sixteen
    /// times it.
    #[arg(long, value_name = "N", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=MAX_SIZE))]
    size: Vec<u64>,
    /// File with the costs of the blocks of the packet path, in nanoseconds: TOML with the
    /// keys `always`, `hit`, `miss`, `insert`, `evict_fifo`, `evict_lru`, `history` and
    /// `admit`; a missing key has the value that this project measured.
    #[arg(long, value_name = "FILE")]
    blocks: Option<PathBuf>,
}

/// Runs it.
///
/// # Errors
/// If the router refuses or does not answer, or has seen no request yet.
pub(super) fn run(
    arguments: &Arguments,
    controller: &mut Controller<'_>,
    management: &Management,
) -> anyhow::Result<()> {
    let costs = match &arguments.blocks {
        Some(file) => read_costs(file)?,
        None => Costs::default(),
    };
    let stats = controller.content_store_stats()?;
    let seen = controller.content_store_popularity()?;
    if seen.n_requests == 0 {
        return Err(Failure::NothingMeasured.into());
    }
    let advice = Advice::new(&stats, &seen, &arguments.size, &costs);
    management.print(&advice.to_json(), || advice.to_text())
}

/// The keys of a file of costs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostsFile {
    always: Option<f64>,
    hit: Option<f64>,
    miss: Option<f64>,
    insert: Option<f64>,
    evict_fifo: Option<f64>,
    evict_lru: Option<f64>,
    history: Option<f64>,
    admit: Option<f64>,
}

fn read_costs(file: &Path) -> anyhow::Result<Costs> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let refused = |problem: String| Failure::BadFile {
        file: file.to_owned(),
        problem,
    };
    let keys: CostsFile =
        toml::from_str(&text).map_err(|error| refused(error.to_string().trim_end().into()))?;
    let usual = Costs::default();
    let costs = Costs {
        always: keys.always.unwrap_or(usual.always),
        hit: keys.hit.unwrap_or(usual.hit),
        miss: keys.miss.unwrap_or(usual.miss),
        insert: keys.insert.unwrap_or(usual.insert),
        evict_fifo: keys.evict_fifo.unwrap_or(usual.evict_fifo),
        evict_lru: keys.evict_lru.unwrap_or(usual.evict_lru),
        history: keys.history.unwrap_or(usual.history),
        admit: keys.admit.unwrap_or(usual.admit),
    };
    for (key, value) in costs_by_key(&costs) {
        if !(value.is_finite() && value >= 0.0) {
            return Err(refused(format!(
                "{key} = {value} is not a number of nanoseconds; write one such as 250"
            ))
            .into());
        }
    }
    Ok(costs)
}

fn costs_by_key(costs: &Costs) -> [(&'static str, f64); 8] {
    [
        ("always", costs.always),
        ("hit", costs.hit),
        ("miss", costs.miss),
        ("insert", costs.insert),
        ("evict_fifo", costs.evict_fifo),
        ("evict_lru", costs.evict_lru),
        ("history", costs.history),
        ("admit", costs.admit),
    ]
}

/// A size, a policy, and what to expect of them.
#[derive(Clone, Copy)]
struct Row {
    size: usize,
    choice: Choice,
    expected: Expectation,
}

impl Row {
    fn is_filter(&self) -> bool {
        self.choice.threshold_and_history().is_some()
    }
}

/// Everything that is shown.
struct Advice<'a> {
    stats: &'a CsStats,
    seen: &'a CsPopularity,
    measured: Measurement,
    popularity: Popularity,
    costs: &'a Costs,
    /// Data that the store can hold as it runs, by the packets or by the bytes.
    running_size: usize,
    /// The current policy, if the model covers it.
    running: Option<Row>,
    /// Mean bytes of a Data, with what finds it.
    mean_bytes: f64,
    sizes: Vec<usize>,
    rows: Vec<Row>,
    /// What is advised.
    best: Option<Row>,
}

impl<'a> Advice<'a> {
    fn new(stats: &'a CsStats, seen: &'a CsPopularity, wanted: &[u64], costs: &'a Costs) -> Self {
        let measured = measurement(seen);
        let popularity = measured.popularity();
        let mean_bytes = stats.n_bytes as f64 / stats.n_cs_entries.max(1) as f64;
        let running_size = running_size(stats, mean_bytes);
        let mut sizes: Vec<usize> = match wanted {
            [] => SIZES_BY_RUNNING
                .iter()
                .map(|by| ((running_size as f64 * by) as usize).clamp(1, MAX_SIZE as usize))
                .collect(),
            wanted => wanted.iter().map(|&size| size as usize).collect(),
        };
        // What is advised is for the running size, or for the first that is asked about.
        let advised_size = match wanted {
            [] => running_size.max(1),
            [first, ..] => *first as usize,
        };
        sizes.sort_unstable();
        sizes.dedup();
        let row = |size, choice: Choice| Row {
            size,
            choice,
            expected: choice.expected(size, &popularity, costs),
        };
        let rows: Vec<Row> = (sizes.iter())
            .flat_map(|&size| choices(size).into_iter().map(move |choice| (size, choice)))
            .map(|(size, choice)| row(size, choice))
            .collect();
        let running = running_choice(&stats.policy, policy_size(stats))
            .map(|choice| row(running_size, choice));
        // The router refuses tables that take more than this.
        let max_table_bytes = stats.capacity_bytes.max(FREE_TABLE_BYTES);
        let of_size = rows
            .iter()
            .filter(|row| row.size == advised_size && row.expected.table_bytes <= max_table_bytes);
        let best = advised(of_size, seen.n_requests);
        Self {
            stats,
            seen,
            measured,
            popularity,
            costs,
            running_size,
            running,
            mean_bytes,
            sizes,
            rows,
            best,
        }
    }

    /// What is seen of the running policy since it runs: the hit ratio, and the Data that
    /// were inserted by the misses.
    fn seen_ratios(&self) -> (Option<f64>, Option<f64>) {
        let &CsPopularity {
            n_requests_since_change: n_requests,
            n_hits,
            n_inserts,
            ..
        } = self.seen;
        let n_misses = n_requests.saturating_sub(n_hits);
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        (share(n_hits, n_requests), share(n_inserts, n_misses))
    }

    /// Whether a Data stays for longer than was measured: what is expected then hangs on
    /// names of which little is known.
    fn is_conjecture(&self, expected: &Expectation) -> bool {
        expected.characteristic_requests > self.seen.n_requests as f64
            && self.measured.unseen_share() > AS_GOOD
    }

    fn bytes_of(&self, row: &Row) -> u64 {
        (self.mean_bytes * row.size as f64) as u64 + row.expected.table_bytes
    }

    fn command(&self, row: &Row) -> String {
        let capacity = match row.size == self.running_size {
            // The bytes may be what bounds it, and allow more packets one day.
            true => String::new(),
            false => format!(" --capacity {}", row.size),
        };
        format!(
            "tachonym cs config{capacity} --policy {}",
            words(&row.choice)
        )
    }

    fn sentence(&self, best: &Row) -> String {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut sentence = format!(
            "With {} packets, the policy {} is expected to answer {} of the Interests and to \
             insert {} of the Data that arrive, at {:.0} ns per Interest",
            best.size,
            label(&best.choice),
            percent(best.expected.hit_ratio),
            percent(best.expected.insertion_ratio),
            best.expected.cost_ns,
        );
        if let (Some(hits), _) = self.seen_ratios() {
            sentence += &format!("; the current policy answers {}", percent(hits));
        }
        sentence + "."
    }

    /// Reasons not to follow the advice yet, or by a command alone.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.seen.n_requests < 4 * self.running_size as u64 {
            remarks.push(format!(
                "only {} requests were measured; wait for at least {}",
                self.seen.n_requests,
                4 * self.running_size
            ));
        }
        let data_bytes = |row: &Row| self.mean_bytes * row.size as f64;
        if let Some(best) = &self.best
            && data_bytes(best) > self.stats.capacity_bytes as f64
        {
            remarks.push(format!(
                "this many packets need tables.cs_bytes = {:.0}; set it in the configuration and \
                 restart the router",
                data_bytes(best)
            ));
        }
        remarks
    }

    fn to_json(&self) -> Value {
        let (hit_ratio, insert_ratio) = self.seen_ratios();
        let row = |row: &Row| {
            let (threshold, history) = row.choice.threshold_and_history().unzip();
            json!({
                "size": row.size,
                "policy": words(&row.choice),
                "threshold": threshold,
                "history": history,
                "hit_ratio": row.expected.hit_ratio,
                "insert_ratio": row.expected.insertion_ratio,
                "ns": row.expected.cost_ns,
                "bytes": self.bytes_of(row),
                "policy_bytes": row.expected.table_bytes,
                "conjecture": self.is_conjecture(&row.expected),
            })
        };
        let classes = self.seen.classes.iter();
        json!({
            "popularity": {
                "requests": self.seen.n_requests,
                "counted_names": self.seen.n_counted_names,
                "names": self.measured.n_names(),
                "unseen_share": self.measured.unseen_share(),
                "classes": classes.map(|c| [c.n_names, c.n_requests]).collect::<Vec<_>>(),
            },
            "seen": {
                "policy": self.stats.policy,
                "size": self.running_size,
                "requests": self.seen.n_requests_since_change,
                "hit_ratio": hit_ratio,
                "insert_ratio": insert_ratio,
            },
            "expected": self.running.as_ref().map(row),
            "best_hit_ratio": self.sizes.iter().map(|&size| {
                json!({ "size": size, "hit_ratio": self.popularity.best_hit_ratio(size as f64) })
            }).collect::<Vec<_>>(),
            "sizes": self.rows.iter().map(row).collect::<Vec<_>>(),
            "blocks_ns": BTreeMap::from(costs_by_key(self.costs)),
            "advice": self.best.as_ref().map(row),
            "command": self.best.as_ref().map(|row| self.command(row)),
            "remarks": self.remarks(),
        })
    }

    fn to_text(&self) -> String {
        let head = [
            "packets",
            "policy",
            "hits",
            "inserted",
            "ns/Interest",
            "memory",
            "",
        ];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        for &size in &self.sizes {
            let of_size = || self.rows.iter().filter(|row| row.size == size);
            let all = of_size().filter(|row| !row.is_filter());
            lines.extend(all.map(|row| self.line(row)));
            for eviction in [EvictionKind::Fifo, EvictionKind::Lru] {
                let filters =
                    of_size().filter(|row| row.is_filter() && row.choice.eviction() == eviction);
                let usual = filters
                    .clone()
                    .find(|row| row.choice.threshold_and_history() == Some((2, size)));
                let best = advised(filters.clone(), self.seen.n_requests);
                lines.extend(usual.map(|row| self.line(row)));
                let is_other = |row: &Row| usual.is_none_or(|usual| usual.choice != row.choice);
                lines.extend(best.filter(is_other).map(|row| self.line(&row)));
            }
            let bound = self.popularity.best_hit_ratio(size as f64);
            lines.push(vec![
                size.to_string(),
                "upper bound: the most popular names".to_owned(),
                format!("{bound:.4}"),
            ]);
        }
        let mut told = self.preface();
        told.push('\n');
        told += &text::columns(&lines);
        if let Some(best) = &self.best {
            told += &format!("\n{}\n", self.sentence(best));
            for remark in self.remarks() {
                told += &format!("Note: {remark}.\n");
            }
            told += &format!("{}\n", self.command(best));
        }
        told
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let is_running = self
            .running
            .is_some_and(|running| (running.size, running.choice) == (row.size, row.choice));
        let mut marks = Vec::new();
        if is_running {
            marks.push("current");
        }
        if self.is_conjecture(&row.expected) {
            marks.push("extrapolated");
        }
        vec![
            row.size.to_string(),
            label(&row.choice),
            format!("{:.4}", row.expected.hit_ratio),
            format!("{:.4}", row.expected.insertion_ratio),
            format!("{:.0}", row.expected.cost_ns),
            text::bytes(self.bytes_of(row)),
            marks.join(", "),
        ]
    }

    /// What is measured, and what runs.
    fn preface(&self) -> String {
        let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |r| format!("{r:.4}"));
        let (hits, inserted) = self.seen_ratios();
        let row = |label: &str, value: String| vec![label.to_owned(), value];
        let expected = match &self.running {
            Some(running) => format!(
                "hits {:.4}, inserted {:.4}",
                running.expected.hit_ratio, running.expected.insertion_ratio
            ),
            None => "the model does not cover this policy".to_owned(),
        };
        text::columns(&[
            row(
                "measured",
                format!(
                    "{} requests for about {} names; {:.1} % for names requested once",
                    self.seen.n_requests,
                    self.measured.n_names(),
                    100.0 * self.measured.unseen_share()
                ),
            ),
            row(
                "current policy",
                format!(
                    "{}, {} packets at most",
                    self.stats.policy.replace(',', ", "),
                    self.running_size
                ),
            ),
            row(
                "observed",
                format!(
                    "hits {}, inserted {}, over {} requests",
                    ratio(hits),
                    ratio(inserted),
                    self.seen.n_requests_since_change
                ),
            ),
            row("expected", expected),
        ])
    }
}

fn measurement(seen: &CsPopularity) -> Measurement {
    let classes = seen.classes.iter().map(|class| MeasuredClass {
        n_names: class.n_names,
        n_requests: class.n_requests,
    });
    Measurement {
        n_requests: seen.n_requests,
        n_counted_names: seen.n_counted_names,
        classes: classes.collect(),
    }
}

/// Data that the store can hold: packets, or as many as have room in its bytes.
fn running_size(stats: &CsStats, mean_bytes: f64) -> usize {
    let by_bytes = match mean_bytes {
        0.0 => f64::INFINITY,
        mean_bytes => stats.capacity_bytes as f64 / mean_bytes,
    };
    (stats.capacity as f64).min(by_bytes) as usize
}

/// Data that the router makes the policy for: as many as there could be of the least bytes.
fn policy_size(stats: &CsStats) -> usize {
    let capacity = CsCapacity {
        max_pkts: stats.capacity as usize,
        max_bytes: stats.capacity_bytes as usize,
    };
    capacity.max_slots()
}

/// What the model speaks of, at a size.
fn choices(size: usize) -> Vec<Choice> {
    let evictions = [EvictionKind::Fifo, EvictionKind::Lru];
    let all = evictions.into_iter().filter_map(Choice::all);
    let filters = evictions.into_iter().flat_map(|eviction| {
        HISTORIES_BY_LEN.into_iter().flat_map(move |by_len| {
            let history_len = size.saturating_mul(by_len);
            let reached = THRESHOLDS
                .into_iter()
                .filter(move |&threshold| threshold as usize <= history_len);
            reached.filter_map(move |threshold| Choice::filter(eviction, threshold, history_len))
        })
    });
    all.chain(filters).collect()
}

/// Of those whose hit ratio is next to the best, what costs least. A filter that
/// admits so little that its Data would hardly ever be others is left out: what is expected
/// of it comes as slowly.
fn advised<'r>(rows: impl Iterator<Item = &'r Row> + Clone, n_measured: u64) -> Option<Row> {
    let rows = rows.filter(|row| {
        let Expectation {
            hit_ratio,
            insertion_ratio,
            ..
        } = row.expected;
        // As many insertions as there are Data.
        let n_until_renewed = row.size as f64 / ((1.0 - hit_ratio) * insertion_ratio);
        !row.is_filter() || n_until_renewed <= RENEWED_WITHIN * n_measured as f64
    });
    let hit_ratios = rows.clone().map(|row| row.expected.hit_ratio);
    let best = hit_ratios.fold(0.0, f64::max);
    let as_good = rows.filter(|row| row.expected.hit_ratio >= best - AS_GOOD);
    let least = as_good.min_by(|a, b| a.expected.cost_ns.total_cmp(&b.expected.cost_ns));
    least.copied()
}

/// What a store runs, by the words of its statistics, if the model speaks of it.
fn running_choice(policy: &str, size: usize) -> Option<Choice> {
    let words: BTreeMap<&str, &str> = policy
        .split(',')
        .filter_map(|word| word.split_once('='))
        .collect();
    let eviction = words.get("eviction")?.parse().ok()?;
    match *words.get("admission")? {
        "none" => Choice::all(eviction),
        "filter" => {
            let threshold: u32 = words.get("filter_threshold")?.parse().ok()?;
            let history_len = match words.get("filter_history")?.parse().ok()? {
                0 => size.max(threshold as usize),
                history_len => history_len,
            };
            Choice::filter(eviction, threshold, history_len)
        }
        _ => None,
    }
}

/// A choice as `cs config --policy` takes it.
fn words(choice: &Choice) -> String {
    let eviction = choice.eviction().as_str();
    match choice.threshold_and_history() {
        None => format!("admission=none,eviction={eviction}"),
        Some((threshold, history_len)) => format!(
            "admission=filter,eviction={eviction},filter_threshold={threshold},\
             filter_history={history_len}"
        ),
    }
}

/// The same for a person.
fn label(choice: &Choice) -> String {
    let eviction = match choice.eviction() {
        // As good as each other.
        EvictionKind::Fifo => "fifo or random",
        other => other.as_str(),
    };
    match choice.threshold_and_history() {
        None => eviction.to_owned(),
        Some((threshold, history_len)) => {
            format!("filter over {eviction}, threshold {threshold}, history {history_len}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tachonym_protocol::PopularityClass;

    fn stats(policy: &str) -> CsStats {
        CsStats {
            policy: policy.to_owned(),
            n_cs_entries: 100,
            capacity: 1_000,
            n_bytes: 100_000,
            capacity_bytes: 10_000_000,
            ..CsStats::default()
        }
    }

    /// A hundred names asked for 900 times each, and 10,000 asked for once.
    fn seen() -> CsPopularity {
        let class = |n_names, n_requests| PopularityClass {
            n_names,
            n_requests,
        };
        CsPopularity {
            n_requests: 100_000,
            n_counted_names: 10_100,
            n_requests_since_change: 50_000,
            n_hits: 40_000,
            n_inserts: 5_000,
            classes: vec![class(10_000, 10_000), class(100, 90_000)],
            ..CsPopularity::default()
        }
    }

    #[test]
    fn what_runs_is_known_by_its_words() {
        let lru = running_choice("admission=none,eviction=lru", 10);
        assert_eq!(lru, Choice::all(EvictionKind::Lru));
        let words_of_filter = "admission=filter,eviction=fifo,filter_threshold=3,filter_history=0";
        let filter = running_choice(words_of_filter, 1_000);
        assert_eq!(filter, Choice::filter(EvictionKind::Fifo, 3, 1_000));
        let written = words(&filter.expect("the model knows it"));
        assert_eq!(running_choice(&written, 5), filter);
        for other in [
            "admission=none,eviction=sieve",
            "admission=tinylfu,eviction=lru",
            "",
        ] {
            assert_eq!(running_choice(other, 10), None, "{other}");
        }
    }

    #[test]
    fn what_is_seen_stands_beside_what_is_expected() {
        let (stats, seen, costs) = (
            stats("admission=none,eviction=lru"),
            seen(),
            Costs::default(),
        );
        let advice = Advice::new(&stats, &seen, &[], &costs);
        let json = advice.to_json();
        assert_eq!(json["seen"]["hit_ratio"], 0.8);
        assert_eq!(json["seen"]["insert_ratio"], 0.5);
        assert_eq!(json["expected"]["policy"], "admission=none,eviction=lru");
        let expected = json["expected"]["hit_ratio"].as_f64().expect("a number");
        assert!((expected - 0.9).abs() < 0.01, "{expected}");
        let told = advice.to_text();
        let marked: Vec<_> = told.lines().filter(|l| l.ends_with("current")).collect();
        assert_eq!(marked.len(), 1, "{told}");
        assert!(marked[0].starts_with("1000"), "{told}");
        assert!(
            told.lines()
                .last()
                .is_some_and(|line| { line.starts_with("tachonym cs config --policy admission=") })
        );
    }

    #[test]
    fn a_small_store_is_advised_to_filter_and_a_large_one_needs_none() {
        let (stats, seen, costs) = (
            stats("admission=none,eviction=lru"),
            seen(),
            Costs::default(),
        );
        let of_size = |size| {
            let advice = Advice::new(&stats, &seen, &[size], &costs);
            advice.best.expect("there are choices")
        };
        assert!(of_size(100).is_filter());
        assert!(of_size(100).expected.hit_ratio > 0.85);
        assert!(!of_size(1_000_000).is_filter());
        let other = Advice::new(&stats, &seen, &[100], &costs).to_json();
        let command = other["command"].as_str().expect("a line");
        assert!(command.starts_with("tachonym cs config --capacity 100 --policy"));
        // A store without room is advised nothing senseless.
        assert_eq!(of_size(1).size, 1);
    }

    #[test]
    fn more_data_than_bytes_have_room_for_are_remarked_upon() {
        let (mut stats, seen, costs) = (
            stats("admission=none,eviction=lru"),
            seen(),
            Costs::default(),
        );
        stats.capacity_bytes = 500_000;
        let advice = Advice::new(&stats, &seen, &[], &costs);
        assert_eq!(advice.running_size, 500, "by the bytes");
        assert_eq!(advice.remarks(), Vec::<String>::new());
        let advice = Advice::new(&stats, &seen, &[2_000], &costs);
        assert!(advice.remarks()[0].contains("tables.cs_bytes = 2000000"));
    }
}
