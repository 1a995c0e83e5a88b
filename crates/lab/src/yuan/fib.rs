//! Yuan 2015, section 3.4: what the figures about the FIB share.
//!
//! A figure is a list of cases: a FIB and how it is searched. Cases of a group take turns
//! in every round. What the thesis says of a figure in words or numbers stands beside what
//! is measured here; bars and lines that it only draws are not read off.

use anyhow::{Context as _, ensure};
use tachonym_bench::cpu;
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::rotated;
use tachonym_bench::{Axis, Chart, Context, Kind, Param, Record, Reference, Table, cells};
use tachonym_memory::Pages;
use tachonym_memory::available_bytes;
use tachonym_tables::{FibEngine, FibMatching};

use crate::beds::fib::{
    Bed, ENGINE_PARAM, Fetch, FibSpec, MATCHINGS, Way, engine_label, engine_named, matching_label,
};
use crate::choices::PageChoice;

/// A value of a section's text.
pub(super) const fn stated(place: &'static str) -> Reference {
    Reference::stated("Yuan 2015", place)
}

/// Parameters of a figure with FIBs of several sizes.
pub(super) const fn sizes_param(defaults: [&'static str; 3]) -> Param {
    let help =
        "rules in the FIB, 512 M and 1 G in the thesis; what memory is too small for is left out";
    Param::new("sizes", help, tachonym_bench::ParamKind::Counts, defaults)
}

/// Parameters of a figure about one FIB, whose engine may be chosen.
pub(super) const ONE_FIB: &[Param] = &[
    sizes_param(["600", "1M", "32M"]),
    ENGINE_PARAM,
    Param::rounds(["3", "11", "15"]),
    Param::seed(),
];

/// What is measured: a FIB, and how it is searched.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// What it belongs to in the drawing.
    pub(super) series: String,
    pub(super) spec: FibSpec,
    pub(super) way: Way,
}

impl Case {
    pub(super) fn new(spec: FibSpec, fetch: Fetch, is_hashed_before: bool) -> Self {
        let hashed = match is_hashed_before {
            true => ", hashed before",
            false => "",
        };
        let way = Way {
            fetch,
            is_hashed_before,
            n_threads: 1,
        };
        let series = format!(
            "{}, {} components, {}, fetch {}{hashed}",
            engine_label(spec.engine),
            spec.n_components,
            matching_label(spec.matching),
            fetch.label()
        );
        Self { series, spec, way }
    }

    pub(super) fn with_threads(mut self, n_threads: usize) -> Self {
        self.way.n_threads = n_threads;
        self
    }
}

/// A FIB of seven components and the chosen engine.
pub(super) fn seven(context: &Context, n_rules: u64, matching: FibMatching) -> FibSpec {
    FibSpec {
        n_rules,
        n_components: 7,
        engine: engine_named(context.text("engine")),
        matching,
        pages: PageChoice::Auto,
    }
}

/// The cases of both ways to compare names.
pub(super) fn each_matching(cases: impl Fn(FibMatching) -> Vec<Case>) -> Vec<Case> {
    MATCHINGS.into_iter().flat_map(cases).collect()
}

/// What was measured.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) case: Case,
    /// Pages that most of the table is on.
    pub(super) pages: &'static str,
    /// Memory of the table for each rule, in bytes, everything included.
    pub(super) bytes_per_rule: f64,
    /// Time that a name takes a thread, hashing included unless it was before.
    pub(super) ns: Spread,
    /// By round.
    ns_by_round: Vec<f64>,
    /// Names that all threads together search for, in millions a second.
    pub(super) mpps: Spread,
}

/// The rows of one way to compare names.
pub(super) struct Rows<'a>(pub(super) Vec<&'a Row>);

impl<'a> Rows<'a> {
    pub(super) fn of(rows: &'a [Row], matching: FibMatching) -> Self {
        let of_matching = |row: &&Row| row.case.spec.matching == matching;
        Self(rows.iter().filter(of_matching).collect())
    }

    /// The row that is `of`, with the most rules.
    pub(super) fn get(&self, of: impl Fn(&Row) -> bool) -> Option<&'a Row> {
        let found = self.0.iter().copied().filter(|row| of(row));
        found.max_by_key(|row| row.case.spec.n_rules)
    }

    /// The time of one row by that of another in the same round, as percent more or less;
    /// the median of the rounds.
    pub(super) fn change_pct(
        &self,
        of: impl Fn(&Row) -> bool,
        by: impl Fn(&Row) -> bool,
    ) -> Option<f64> {
        let (of, by) = (self.get(of)?, self.get(by)?);
        let ratio = Spread::of_ratios(&of.ns_by_round, &by.ns_by_round)?;
        Some((ratio.median - 1.0) * 100.0)
    }
}

/// Rows whose names were hashed meanwhile, with something fetched ahead.
pub(super) fn fetching(fetch: Fetch, n_components: usize) -> impl Fn(&Row) -> bool {
    move |row| {
        let way = row.case.way;
        way.fetch == fetch && !way.is_hashed_before && row.case.spec.n_components == n_components
    }
}

/// Rows whose names were hashed before.
pub(super) fn hashed_before(n_components: usize) -> impl Fn(&Row) -> bool {
    move |row| row.case.way.is_hashed_before && row.case.spec.n_components == n_components
}

/// How the thesis calls a way to compare names.
pub(super) const fn published_label(matching: FibMatching) -> &'static str {
    match matching {
        FibMatching::Always => "names compared always (published: CityHash)",
        _ => "names compared at the end (published: SipHash)",
    }
}

/// Measures groups of cases, each group in memory at one time, for the sizes that memory
/// has room for.
///
/// # Errors
/// If memory has no room for the first group.
pub(super) fn measure(
    context: &Context,
    cases: impl Fn(u64) -> Vec<Case>,
) -> anyhow::Result<(Record, Vec<Row>)> {
    let mut rows: Vec<Row> = Vec::new();
    for n_rules in context.values.counts("sizes") {
        ensure!(n_rules > 0, "a FIB has at least one rule");
        let cases = cases(n_rules);
        let specs = specs_of(&cases);
        let needed: u64 = specs.iter().map(FibSpec::max_bytes).sum();
        let missing = needed.saturating_sub(available_bytes());
        if missing > 0 {
            let refused = format!(
                "{} FIBs of {n_rules} rules need {missing} bytes more memory than is free",
                specs.len()
            );
            ensure!(!rows.is_empty(), "{refused}");
            context.note(format!("{refused}: not measured."));
            continue;
        }
        measure_together(context, cases, &specs, &mut rows)?;
    }
    let mut record = Record::new(Kind::Measured);
    record.tables.push(table_of(&rows));
    record.charts.push(chart_of(&rows));
    record.note("The thesis has 512 million rules and more on 2.3 GHz processors of 2012: changes in percent compare, times do not. A change is the median over the rounds.");
    Ok((record, rows))
}

fn specs_of(cases: &[Case]) -> Vec<FibSpec> {
    let mut specs: Vec<FibSpec> = Vec::new();
    for case in cases {
        if !specs.contains(&case.spec) {
            specs.push(case.spec);
        }
    }
    specs
}

/// Measures cases in rounds in which they take turns.
fn measure_together(
    context: &Context,
    cases: Vec<Case>,
    specs: &[FibSpec],
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let n_threads = cases.iter().map(|case| case.way.n_threads).max();
    let beds = specs
        .iter()
        .map(|&spec| Bed::new(spec, n_threads.unwrap_or(1), context.seed()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let bed_of = |case: &Case| {
        let idx = specs.iter().position(|&spec| spec == case.spec);
        &beds[idx.expect("each case's FIB is among them")]
    };
    let measured = rotated(cases.len(), context.rounds(), |idx, _| {
        let case = &cases[idx];
        let searched = bed_of(case).measure(case.way);
        if case.way.n_threads > 1 || Some(1) == n_threads {
            context.note(cpu::note(&searched.pinned));
        }
        Ok((searched.ns, searched.mpps))
    })?;
    for (case, measured) in cases.into_iter().zip(measured) {
        let (ns, mpps): (Vec<_>, Vec<_>) = measured.into_iter().unzip();
        let bed = bed_of(&case);
        let pages = most_pages(bed.pages());
        if case.spec.pages == PageChoice::Huge1G && pages != "1 GiB" {
            context.note(format!(
                "1 GiB pages were requested, and the system provided {pages} ones."
            ));
        }
        rows.push(Row {
            pages,
            bytes_per_rule: bed.memory_bytes() as f64 / case.spec.n_rules as f64,
            ns: Spread::of(&ns).context("no round")?,
            mpps: Spread::of(&mpps).context("no round")?,
            ns_by_round: ns,
            case,
        });
    }
    Ok(())
}

/// The pages that most bytes are on.
fn most_pages(pages: Pages) -> &'static str {
    let kinds = [
        (pages.base_bytes, "4 KiB"),
        (pages.transparent_bytes + pages.huge_2m_bytes, "2 MiB"),
        (pages.huge_1g_bytes, "1 GiB"),
    ];
    kinds.into_iter().max().map_or("no", |(_, label)| label)
}

fn table_of(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "",
        [
            "rules",
            "components",
            "engine",
            "names compared, hash",
            "pages",
            "prefetched",
            "hashed",
            "threads",
            "bytes a rule",
            "ns a name",
            "million names/s",
        ],
    );
    for row in rows {
        let (spec, way) = (row.case.spec, row.case.way);
        let pages = match spec.pages {
            PageChoice::Huge1G if row.pages != "1 GiB" => format!("{}, 1 GiB asked", row.pages),
            _ => row.pages.to_owned(),
        };
        table.row(cells![
            spec.n_rules,
            spec.n_components,
            engine_label(spec.engine),
            matching_label(spec.matching),
            pages,
            way.fetch.label(),
            if way.is_hashed_before {
                "before"
            } else {
                "meanwhile"
            },
            way.n_threads,
            row.bytes_per_rule,
            row.ns,
            row.mpps,
        ]);
    }
    table
}

/// Lines over the number of threads or of rules where that varies, and bars elsewhere.
fn chart_of(rows: &[Row]) -> Chart {
    let varies = |of: &dyn Fn(&Row) -> f64| rows.iter().any(|row| of(row) != of(&rows[0]));
    let threads = |row: &Row| row.case.way.n_threads as f64;
    let rules = |row: &Row| row.case.spec.n_rules as f64;
    if varies(&threads) {
        let mut chart = Chart::new("Names searched for", "threads", "million names a second");
        for row in rows {
            chart.point(&row.case.series, threads(row), row.mpps.median);
        }
        return chart;
    }
    if varies(&rules) {
        let mut chart = Chart::new("Time of a search", "rules", "nanoseconds a name");
        chart.x_axis = Axis::Log;
        for row in rows {
            chart.point(&row.case.series, rules(row), row.ns.median);
        }
        return chart;
    }
    let groups = rows.iter().map(|row| row.case.series.clone());
    let mut chart = Chart::bars("Time of a search", groups, "nanoseconds a name");
    for (idx, row) in rows.iter().enumerate() {
        chart.point("here", idx as f64, row.ns.median);
    }
    chart
}

/// A FIB of another engine.
pub(super) const fn with_engine(spec: FibSpec, engine: FibEngine) -> FibSpec {
    FibSpec { engine, ..spec }
}
