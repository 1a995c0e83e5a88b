//! What each figure compares, and what the thesis says of it.

use anyhow::ensure;

use super::bed::{Fetch, Matching, Table, Way};
use super::{Case, Comparison, Engine, FibArgs, Figure, Row};
use crate::choices::PageChoice;

/// Rules of a table, unless said otherwise.
const DEFAULT_RULES: u64 = 1_000_000;
/// Workers of the published table 3.2.
const PUBLISHED_WORKERS: f64 = 4.0;

/// What is drawn.
pub(super) const fn title(figure: Figure) -> &'static str {
    match figure {
        Figure::Pages => "Figure 3.6: page sizes, and names hashed beforehand",
        Figure::Prefetch => "Figure 3.7: prefetching",
        Figure::Sizes => "Figure 3.8: rules of seven components",
        Figure::LongNames => "Figure 3.9: rules of 15 components",
        Figure::Linear => "Figure 3.10: linear search",
        Figure::Threads => "Figure 3.11: threads, all prefetched",
        Figure::Throughput => "Table 3.2: throughput of the engine alone",
        Figure::LevelPulling => super::levels::TITLE,
    }
}

/// What is measured, in groups of which each is in memory at one time.
pub(super) fn cases(args: &FibArgs) -> anyhow::Result<Vec<Vec<Case>>> {
    let n_rules = args.rules.unwrap_or(DEFAULT_RULES);
    ensure!(n_rules > 0, "--rules must be at least 1");
    let up_to = args.up_to.unwrap_or(n_rules);
    ensure!(
        up_to >= n_rules,
        "--up-to {up_to} is less than --rules {n_rules}"
    );
    let sizes = std::iter::successors(Some(n_rules), |n| n.checked_mul(2));
    let sizes = sizes.take_while(|&n| n <= up_to);
    let table = |n_rules, n_components, engine, matching| Table {
        n_rules,
        n_components,
        engine,
        matching,
        pages: PageChoice::Auto,
    };
    let seven = |matching| table(n_rules, 7, args.engine, matching);
    let groups = match args.figure {
        Figure::Pages => vec![each_matching(|matching| page_sizes(seven(matching)))],
        Figure::Prefetch => vec![each_matching(|matching| fetches(seven(matching)))],
        Figure::Sizes => sizes
            .map(|n| each_matching(|matching| strategies(table(n, 7, args.engine, matching))))
            .collect(),
        Figure::LongNames => sizes
            .map(|n| {
                each_matching(|matching| {
                    let mut cases = strategies(table(n, 15, args.engine, matching));
                    // Beside the seven that it is compared with.
                    cases.extend(strategies(table(n, 7, args.engine, matching)));
                    cases
                })
            })
            .collect(),
        Figure::Linear => sizes
            .map(|n| {
                each_matching(|matching| {
                    let tables = Engine::ALL.map(|engine| table(n, 7, engine, matching));
                    tables.into_iter().flat_map(strategies).collect()
                })
            })
            .collect(),
        Figure::Threads => vec![each_matching(|matching| {
            let threads = numbers_of_threads(args);
            let case = |n_threads| case(seven(matching), Fetch::All, false, n_threads);
            threads.into_iter().map(case).collect()
        })],
        Figure::Throughput => vec![each_matching(|matching| {
            let n_threads = numbers_of_threads(args).pop().unwrap_or(1);
            [Fetch::None, Fetch::First, Fetch::All, Fetch::Burst]
                .map(|fetch| case(seven(matching), fetch, false, n_threads))
                .to_vec()
        })],
        Figure::LevelPulling => Vec::new(),
    };
    Ok(groups)
}

fn each_matching(cases: impl Fn(Matching) -> Vec<Case>) -> Vec<Case> {
    Matching::ALL.into_iter().flat_map(cases).collect()
}

fn case(table: Table, fetch: Fetch, is_hashed_before: bool, n_threads: usize) -> Case {
    let hashed = if is_hashed_before {
        ", hashed before"
    } else {
        ""
    };
    let way = Way {
        fetch,
        is_hashed_before,
        n_threads,
    };
    let series = format!(
        "{}, {} components, {}, fetch {}{hashed}",
        table.engine.label(),
        table.n_components,
        table.matching.label(),
        fetch.label()
    );
    Case { series, table, way }
}

fn page_sizes(table: Table) -> Vec<Case> {
    let pages = [
        (PageChoice::Base, "4 KiB"),
        (PageChoice::Transparent, "2 MiB"),
        (PageChoice::Huge1G, "1 GiB"),
    ];
    let mut cases = Vec::new();
    for (pages, label) in pages {
        let table = Table { pages, ..table };
        let hashed_before = [false, true].into_iter();
        // Only with large pages, as in the thesis.
        for is_hashed_before in hashed_before.take(if label == "4 KiB" { 1 } else { 2 }) {
            let case = case(table, Fetch::None, is_hashed_before, 1);
            let series = format!("{}, {label} asked", case.series);
            cases.push(Case { series, ..case });
        }
    }
    cases
}

fn fetches(table: Table) -> Vec<Case> {
    [Fetch::None, Fetch::First, Fetch::All, Fetch::Burst]
        .map(|fetch| case(table, fetch, false, 1))
        .to_vec()
}

/// What figures 3.8 to 3.10 draw.
fn strategies(table: Table) -> Vec<Case> {
    let mut cases = fetches(table);
    cases.push(case(table, Fetch::None, true, 1));
    cases
}

/// 1, 2, 4 and so on, and the most.
fn numbers_of_threads(args: &FibArgs) -> Vec<usize> {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let most = args.threads.map_or_else(processors, |n| n as usize);
    let mut numbers: Vec<usize> = std::iter::successors(Some(1), |n| Some(n * 2))
        .take_while(|&n| n < most)
        .collect();
    numbers.push(most);
    numbers
}

/// The medians of the rows of the largest table that are `of`.
struct Medians<'a>(&'a [Row]);

impl Medians<'_> {
    fn ns(&self, of: impl Fn(&Row) -> bool) -> Option<f64> {
        let row = self.0.iter().filter(|row| of(row));
        row.max_by_key(|row| row.table.n_rules)
            .map(|row| row.ns.median)
    }

    /// One in percent of the other, as more or less.
    fn change(&self, of: impl Fn(&Row) -> bool, by: impl Fn(&Row) -> bool) -> String {
        match (self.ns(of), self.ns(by)) {
            (Some(of), Some(by)) => format!("{:+.0} %", (of / by - 1.0) * 100.0),
            _ => "not available".to_owned(),
        }
    }
}

/// What the thesis says in words or numbers, and the same here, for the largest table.
pub(super) fn comparisons(figure: Figure, rows: &[Row]) -> Vec<Comparison> {
    Matching::ALL
        .into_iter()
        .flat_map(|matching| of_matching(figure, rows, matching))
        .collect()
}

fn of_matching(figure: Figure, rows: &[Row], matching: Matching) -> Vec<Comparison> {
    let rows: Vec<Row> = rows
        .iter()
        .filter(|row| row.table.matching == matching)
        .cloned()
        .collect();
    let medians = Medians(&rows);
    let is_always = matching == Matching::Always;
    let pick = |always, at_end| if is_always { always } else { at_end };
    let compared = |what: &str, published: &'static str, measured: String| Comparison {
        what: format!("{}: {what}", matching.label()),
        published: published.to_owned(),
        measured,
    };
    let fetch = |fetch: Fetch| {
        move |row: &Row| {
            row.way.fetch == fetch && !row.way.is_hashed_before && row.table.n_components == 7
        }
    };
    let before = |row: &Row| row.way.is_hashed_before && row.table.n_components == 7;
    match figure {
        Figure::Pages => {
            let on = |pages: &'static str, is_before: bool| {
                move |row: &Row| row.pages == pages && row.way.is_hashed_before == is_before
            };
            vec![
                compared(
                    "4 KB to 2 MB pages",
                    "−31 to −48 %",
                    medians.change(on("2 MiB", false), on("4 KiB", false)),
                ),
                compared(
                    "2 MB to 1 GB pages",
                    "−4 to −8 %",
                    medians.change(on("1 GiB", false), on("2 MiB", false)),
                ),
                compared(
                    "names hashed before",
                    pick("−21 %", "−45 %"),
                    medians.change(on("2 MiB", true), on("2 MiB", false)),
                ),
            ]
        }
        Figure::Prefetch | Figure::Sizes => vec![
            compared(
                "first bucket prefetched",
                pick("−2 to −3 %", "about −9 %"),
                medians.change(fetch(Fetch::First), fetch(Fetch::None)),
            ),
            compared(
                "all buckets prefetched",
                pick("−6 to −13 %", "about −9 %"),
                medians.change(fetch(Fetch::All), fetch(Fetch::None)),
            ),
            compared(
                "bursts of 32",
                "not in the thesis",
                medians.change(fetch(Fetch::Burst), fetch(Fetch::None)),
            ),
        ],
        Figure::LongNames => {
            let long = |row: &Row| row.way.is_hashed_before && row.table.n_components == 15;
            let long_all = |row: &Row| {
                row.way.fetch == Fetch::All
                    && !row.way.is_hashed_before
                    && row.table.n_components == 15
            };
            vec![
                compared(
                    "15 components against 7, hashed before",
                    pick("near +33 %", "near +25 %"),
                    medians.change(long, before),
                ),
                compared(
                    "15 components against 7, all prefetched",
                    "considerably more",
                    medians.change(long_all, fetch(Fetch::All)),
                ),
            ]
        }
        Figure::Linear => {
            let by = |engine: Engine, fetch: Fetch, is_before: bool| {
                move |row: &Row| {
                    row.table.engine == engine
                        && row.way.fetch == fetch
                        && row.way.is_hashed_before == is_before
                }
            };
            let (binary, shortest) = (Engine::BinarySearch, Engine::ShortestFirst);
            let against = |fetch, is_before| {
                medians.change(by(shortest, fetch, is_before), by(binary, fetch, is_before))
            };
            vec![
                compared(
                    "shortest first against binary search",
                    "slower",
                    against(Fetch::None, false),
                ),
                compared(
                    "the same, all prefetched",
                    pick("slower", "little slower"),
                    against(Fetch::All, false),
                ),
                compared(
                    "the same, hashed before",
                    pick("slower", "little slower"),
                    against(Fetch::None, true),
                ),
                compared(
                    "longest first against binary search, bursts of 32",
                    "not in the thesis",
                    medians.change(
                        by(Engine::LongestFirst, Fetch::Burst, false),
                        by(binary, Fetch::Burst, false),
                    ),
                ),
            ]
        }
        Figure::Threads => {
            let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
                return Vec::new();
            };
            let ratio = last.mpps.median / first.mpps.median;
            let measured = format!("×{ratio:.2} with {} threads", last.way.n_threads);
            vec![compared(
                "throughput against one thread",
                "×4 with 4 threads on one node",
                measured,
            )]
        }
        Figure::Throughput => {
            let published = if is_always {
                ["4.1", "4.2", "4.4"]
            } else {
                ["3.8", "4.0", "4.1"]
            };
            let fetches = [Fetch::None, Fetch::First, Fetch::All];
            let of = |(fetch, published): (Fetch, &'static str)| {
                let row = rows.iter().find(|row| row.way.fetch == fetch);
                let measured = row.map_or_else(String::new, |row| {
                    let n_threads = row.way.n_threads as f64;
                    format!(
                        "{:.2} with {n_threads} threads, {:.2} with {PUBLISHED_WORKERS} at that \
                         rate",
                        row.mpps.median,
                        row.mpps.median / n_threads * PUBLISHED_WORKERS,
                    )
                });
                let what = format!("Mpps of four workers, fetch {}", fetch.label());
                compared(&what, published, measured)
            };
            fetches.into_iter().zip(published).map(of).collect()
        }
        Figure::LevelPulling => Vec::new(),
    }
}
