//! Hit and insertion ratios of policies on workloads, over sizes of the cache.

use tachonym_bench::{Chart, Column, Context, Param, ParamKind, Table, cells};

use super::sources::{Cell, Workload, policy, simulate_all, words};

/// Objects of each workload by those published.
pub(super) const fn shrink(defaults: [&'static str; 3]) -> Param {
    Param::count(
        "shrink",
        "divides the published numbers of objects by this",
        defaults,
    )
}

/// Sizes of the cache.
pub(super) const fn percent(defaults: [&'static str; 3]) -> Param {
    Param::new(
        "percent",
        "sizes of the cache, % of the objects",
        ParamKind::Counts,
        defaults,
    )
}

/// Workloads.
pub(super) const fn workloads(default: &'static str) -> Param {
    Param::new("workloads", "workloads", ParamKind::Text, [default; 3])
}

/// Requests before measurement begins.
pub(super) const WARM: Param = Param::count(
    "warm",
    "requests before measurement begins, as a multiple of the cache",
    ["20", "50", "50"],
);

/// Requests that are measured.
pub(super) const REQUESTS: Param = Param::count(
    "requests",
    "requests that are measured, as a multiple of the cache",
    ["10"; 3],
);

/// Requests that are measured, at least.
pub(super) const MIN_REQUESTS: Param = Param::count(
    "min_requests",
    "requests that are measured, at least",
    ["2k", "2M", "2M"],
);

/// How the published mixture is read.
pub(super) const WEB_SHARE: Param = Param::new(
    "web_share",
    "share of the mixed workload's requests that are for web objects: 0.7, or 0.4118 if web to \
     video is 0.7",
    ParamKind::Number,
    ["0.7"; 3],
);

/// Workloads, policies and sizes.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) workloads: Vec<Workload>,
    pub(super) policies: Vec<String>,
    pub(super) percents: Vec<u64>,
    pub(super) shrink: u32,
    warm: u64,
    requests: u64,
    min_requests: u64,
    web_share: f64,
    seed: u64,
}

/// What was simulated.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) workload: Workload,
    pub(super) policy: String,
    /// Size of the cache by the objects.
    pub(super) percent: u64,
    pub(super) capacity: usize,
    pub(super) hit_ratio: f64,
    /// Of the Data that arrived.
    pub(super) insertion_ratio: f64,
}

impl Grid {
    /// As the parameters above have it.
    ///
    /// # Errors
    /// If there is no such workload.
    pub(super) fn of(context: &Context) -> anyhow::Result<Self> {
        let workloads = words(context, "workloads");
        let workloads = workloads.iter().map(|word| Workload::named(word));
        Ok(Self {
            workloads: workloads.collect::<anyhow::Result<_>>()?,
            policies: words(context, "policies"),
            percents: context.values.counts("percent"),
            shrink: context.values.count32("shrink"),
            warm: context.count("warm"),
            requests: context.count("requests"),
            min_requests: context.count("min_requests"),
            web_share: context.number("web_share"),
            seed: context.seed(),
        })
    }

    /// The same of the web workload with `n_objects`, and one size of the cache.
    pub(super) fn web_point(&self, n_objects: u64, percent: u64) -> Self {
        let shrink = Workload::Web.n_objects(1) / (n_objects as u32).max(1);
        Self {
            workloads: vec![Workload::Web],
            percents: vec![percent],
            shrink: shrink.max(1),
            ..self.clone()
        }
    }

    /// Simulates all of it.
    ///
    /// # Errors
    /// If there is no such policy, or not as much memory.
    pub(super) fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let (mut cells, mut rows) = (Vec::new(), Vec::new());
        for &workload in &self.workloads {
            for name in &self.policies {
                for &percent in &self.percents {
                    let n_objects = u64::from(workload.n_cacheable(self.shrink));
                    let len = n_objects * percent / 100;
                    let capacity = len as usize;
                    cells.push(Cell {
                        workload,
                        shrink: self.shrink,
                        config: policy(name, capacity)?,
                        n_warm: self.warm * len,
                        n_requests: self.min_requests.max(self.requests * len),
                        web_share: self.web_share,
                        seed: self.seed,
                    });
                    rows.push(Row {
                        workload,
                        policy: name.clone(),
                        percent,
                        capacity,
                        hit_ratio: 0.0,
                        insertion_ratio: 0.0,
                    });
                }
            }
        }
        for (row, counts) in rows.iter_mut().zip(simulate_all(&cells)?) {
            row.hit_ratio = counts.hit_ratio();
            row.insertion_ratio = counts.insertion_ratio();
        }
        Ok(rows)
    }

    /// What the rows are of.
    pub(super) fn note(&self) -> String {
        let mut text = String::from("Objects:");
        for workload in &self.workloads {
            let n_objects = workload.n_objects(self.shrink);
            text += &format!(" {} {n_objects},", workload.label());
        }
        text.pop();
        text + &format!(
            ". Requests for each Data of the cache: {} before measurement, {} measured (at least \
             {} in all).",
            self.warm, self.requests, self.min_requests
        )
    }

    /// How the published workloads are read, as far as they are among these.
    pub(super) fn readings(&self) -> Option<String> {
        let mixed = format!(
            "In the mixed workload, {} of the requests are for web objects (--set web_share=0.4118 \
             for the other reading of the published ratio). The exponent of the popularity of \
             videos is not published; it is taken to be that of web objects, 0.8.",
            self.web_share
        );
        let is_web = |it: &Workload| *it == Workload::Web;
        (!self.workloads.iter().all(is_web)).then_some(mixed)
    }
}

/// Rows as a table.
pub(super) fn table(title: &str, rows: &[Row]) -> Table {
    let columns: [Column; 6] = [
        "workload".into(),
        "policy".into(),
        "cache, %".into(),
        "Data".into(),
        Column::fixed("hit ratio", 4),
        Column::fixed("insertion ratio", 4),
    ];
    let mut table = Table::new(title, columns);
    for row in rows {
        table.row(cells![
            row.workload.label(),
            row.policy.clone(),
            row.percent,
            row.capacity,
            row.hit_ratio,
            row.insertion_ratio
        ]);
    }
    table
}

/// A chart for each workload of `rows`.
pub(super) fn charts(rows: &[Row], y: &str, value: impl Fn(&Row) -> f64) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for row in rows {
        let title = row.workload.label();
        if charts.last().is_none_or(|chart| chart.title != title) {
            charts.push(Chart::new(title, "Data in the cache, % of the objects", y));
        }
        if let Some(chart) = charts.last_mut() {
            chart.point(&row.policy, row.percent as f64, value(row));
        }
    }
    charts
}

/// The row of a policy on a workload at a size.
pub(super) fn find<'a>(
    rows: &'a [Row],
    workload: Workload,
    policy: &str,
    percent: u64,
) -> Option<&'a Row> {
    rows.iter()
        .find(|row| row.workload == workload && row.policy == policy && row.percent == percent)
}
