//! Figures 3.6 to 3.10 of Yuan 2015: the hash table of the FIB with one thread.

use tachonym_bench::{Context, Cost, Experiment, Need, Param, Record, Reference};
use tachonym_tables::FibEngine;

use super::fib::{
    Case, ONE_FIB, Row, Rows, each_matching, fetching, hashed_before, measure, published_label,
    seven, sizes_param, stated, with_engine,
};
use crate::beds::fib::{ENGINE_PARAM, ENGINES, Fetch, FibSpec, MATCHINGS};
use crate::choices::PageChoice;

/// In the order of the thesis.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "yuan/figure-3.6",
        title: "Time of a FIB search by page size, and with names hashed before",
        source: "Yuan 2015, section 3.4.1",
        cost: Cost::minutes(0.5, 20.0),
        needs: &[Need::HugePages, Need::MemoryGib(1.5, 6.5)],
        params: ONE_FIB,
        run: pages,
    },
    Experiment {
        id: "yuan/figure-3.7",
        title: "Time of a FIB search by what is prefetched",
        source: "Yuan 2015, section 3.4.1",
        cost: Cost::minutes(0.2, 12.0),
        needs: &[Need::MemoryGib(0.5, 6.5)],
        params: ONE_FIB,
        run: prefetching,
    },
    Experiment {
        id: "yuan/figure-3.8",
        title: "Time of a FIB search by the number of rules of seven components",
        source: "Yuan 2015, section 3.4.1",
        cost: Cost::minutes(1.5, 60.0),
        needs: &[Need::MemoryGib(2.0, 2.0)],
        params: &[
            sizes_param([
                "300,600",
                "1M,2M,4M",
                "1M,2M,4M,8M,16M,32M,64M,128M,256M,512M,1G",
            ]),
            ENGINE_PARAM,
            Param::rounds(["3", "11", "15"]),
            Param::seed(),
        ],
        run: sizes,
    },
    Experiment {
        id: "yuan/figure-3.9",
        title: "Time of a FIB search by the number of rules of 15 components",
        source: "Yuan 2015, section 3.4.1",
        cost: Cost::minutes(0.6, 60.0),
        needs: &[Need::MemoryGib(1.5, 1.5)],
        params: &[
            sizes_param(["600", "1M", "1M,2M,4M,8M,16M,32M,64M,128M,256M"]),
            ENGINE_PARAM,
            Param::rounds(["3", "11", "15"]),
            Param::seed(),
        ],
        run: long_names,
    },
    Experiment {
        id: "yuan/figure-3.10",
        title: "Linear search of lengths beside binary search",
        source: "Yuan 2015, section 3.4.2",
        cost: Cost::minutes(0.6, 60.0),
        needs: &[Need::MemoryGib(2.0, 2.0)],
        params: &[
            sizes_param(["600", "1M", "1M,2M,4M,8M,16M,32M,64M,128M,256M"]),
            Param::rounds(["3", "11", "15"]),
            Param::seed(),
        ],
        run: linear,
    },
];

const FIGURE_3_6: Reference = stated("section 3.4.1, Figure 3.6");
const FIGURE_3_7: Reference = stated("section 3.4.1, Figure 3.7");
const FIGURE_3_8: Reference = Reference::inferred("Yuan 2015", "section 3.4.1, memory");
const FIGURE_3_9: Reference = stated("section 3.4.1, Figure 3.9");

/// A change in percent, for each way to compare names.
struct Change<'a> {
    what: &'a str,
    /// With names compared always, and at the end; a range, or one value.
    published: [(f64, Option<f64>); 2],
    reference: Reference,
}

impl Change<'_> {
    fn compare(
        &self,
        record: &mut Record,
        rows: &[Row],
        of: impl Fn(&Row) -> bool,
        by: impl Fn(&Row) -> bool,
    ) {
        for (matching, published) in MATCHINGS.into_iter().zip(self.published) {
            let what = format!("{}: {}", published_label(matching), self.what);
            let here = Rows::of(rows, matching).change_pct(&of, &by);
            record.compare_range(what, published, "%", self.reference, here);
        }
    }
}

fn pages(context: &Context) -> anyhow::Result<Record> {
    let cases = |spec: FibSpec| {
        let on = |pages, label, is_hashed_before| {
            let spec = FibSpec { pages, ..spec };
            let mut case = Case::new(spec, Fetch::None, is_hashed_before);
            case.series += &format!(", {label} asked");
            case
        };
        // Hashed before only with large pages, as in the thesis.
        vec![
            on(PageChoice::Base, "4 KiB", false),
            on(PageChoice::Transparent, "2 MiB", false),
            on(PageChoice::Transparent, "2 MiB", true),
            on(PageChoice::Huge1G, "1 GiB", false),
            on(PageChoice::Huge1G, "1 GiB", true),
        ]
    };
    let (mut record, rows) = measure(context, |n_rules| {
        each_matching(|matching| cases(seven(context, n_rules, matching)))
    })?;
    let on = |choice: PageChoice, pages: &'static str, is_before: bool| {
        move |row: &Row| {
            row.case.spec.pages == choice
                && row.pages == pages
                && row.case.way.is_hashed_before == is_before
        }
    };
    let base = on(PageChoice::Base, "4 KiB", false);
    let large = on(PageChoice::Transparent, "2 MiB", false);
    let change = |what, published| Change {
        what,
        published,
        reference: FIGURE_3_6,
    };
    change("2 MiB pages instead of 4 KiB", [(-31.0, Some(-48.0)); 2]).compare(
        &mut record,
        &rows,
        large,
        base,
    );
    change("1 GiB pages instead of 2 MiB", [(-4.0, Some(-8.0)); 2]).compare(
        &mut record,
        &rows,
        on(PageChoice::Huge1G, "1 GiB", false),
        large,
    );
    change("names hashed before", [(-21.0, None), (-45.0, None)]).compare(
        &mut record,
        &rows,
        on(PageChoice::Transparent, "2 MiB", true),
        large,
    );
    record.note("The thesis hashes before with 1 GiB pages; here with 2 MiB pages, which more machines provide.");
    Ok(record)
}

/// Every way to fetch ahead.
fn fetches(spec: FibSpec) -> Vec<Case> {
    Fetch::ALL
        .map(|fetch| Case::new(spec, fetch, false))
        .to_vec()
}

/// What figures 3.8 to 3.10 draw.
fn strategies(spec: FibSpec) -> Vec<Case> {
    let mut cases = fetches(spec);
    cases.push(Case::new(spec, Fetch::None, true));
    cases
}

fn prefetching(context: &Context) -> anyhow::Result<Record> {
    let (mut record, rows) = measure(context, |n_rules| {
        each_matching(|matching| fetches(seven(context, n_rules, matching)))
    })?;
    compare_fetches(&mut record, &rows);
    Ok(record)
}

fn compare_fetches(record: &mut Record, rows: &[Row]) {
    let none = fetching(Fetch::None, 7);
    let change = |what, published| Change {
        what,
        published,
        reference: FIGURE_3_7,
    };
    change(
        "first bucket prefetched",
        [(-3.0, Some(-2.0)), (-9.0, None)],
    )
    .compare(record, rows, fetching(Fetch::First, 7), &none);
    change(
        "all buckets prefetched",
        [(-13.0, Some(-6.0)), (-9.0, None)],
    )
    .compare(record, rows, fetching(Fetch::All, 7), &none);
    record.note("Bursts of 32, which the router has, are not in the thesis.");
}

fn sizes(context: &Context) -> anyhow::Result<Record> {
    let (mut record, rows) = measure(context, |n_rules| {
        each_matching(|matching| strategies(seven(context, n_rules, matching)))
    })?;
    compare_fetches(&mut record, &rows);
    let bytes = rows.last().map(|row| row.bytes_per_rule);
    // 57.3 GB for 512 M rules and 111.8 GB for a billion.
    for (rules, value) in [("512 M", 57.3e9 / 512e6), ("1 G", 111.8e9 / 1e9)] {
        record.compare(
            format!("memory of {rules} rules"),
            value,
            "bytes a rule",
            FIGURE_3_8,
            bytes,
        );
    }
    Ok(record)
}

fn long_names(context: &Context) -> anyhow::Result<Record> {
    let (mut record, rows) = measure(context, |n_rules| {
        each_matching(|matching| {
            let seven = seven(context, n_rules, matching);
            let long = FibSpec {
                n_components: 15,
                ..seven
            };
            // Beside the seven that it is compared with.
            [strategies(long), strategies(seven)].concat()
        })
    })?;
    Change {
        what: "15 components instead of 7, hashed before",
        published: [(33.0, None), (25.0, None)],
        reference: FIGURE_3_9,
    }
    .compare(&mut record, &rows, hashed_before(15), hashed_before(7));
    for matching in MATCHINGS {
        let all = |n_components| fetching(Fetch::All, n_components);
        if let Some(pct) = Rows::of(&rows, matching).change_pct(all(15), all(7)) {
            record.note(format!(
                "{}: 15 components take {pct:.0} % longer than 7 with all buckets prefetched; \
                 considerably more than the 25 and 33 % of the memory accesses in the thesis.",
                published_label(matching)
            ));
        }
    }
    Ok(record)
}

fn linear(context: &Context) -> anyhow::Result<Record> {
    let spec = |n_rules, matching| FibSpec {
        n_rules,
        n_components: 7,
        engine: FibEngine::BinarySearch,
        matching,
        pages: PageChoice::Auto,
    };
    let (mut record, rows) = measure(context, |n_rules| {
        each_matching(|matching| {
            let each = ENGINES.map(|(_, engine)| with_engine(spec(n_rules, matching), engine));
            each.into_iter().flat_map(strategies).collect()
        })
    })?;
    let by = |engine: FibEngine, fetch: Fetch, is_before: bool| {
        move |row: &Row| {
            row.case.spec.engine == engine
                && row.case.way.fetch == fetch
                && row.case.way.is_hashed_before == is_before
        }
    };
    let (binary, shortest) = (FibEngine::BinarySearch, FibEngine::ShortestFirst);
    let cases = [
        (
            "nothing prefetched",
            shortest,
            Fetch::None,
            false,
            ["slower"; 2],
        ),
        (
            "all buckets prefetched",
            shortest,
            Fetch::All,
            false,
            ["slower", "a little slower"],
        ),
        (
            "hashed before",
            shortest,
            Fetch::None,
            true,
            ["slower", "a little slower"],
        ),
        (
            "bursts of 32",
            FibEngine::LongestFirst,
            Fetch::Burst,
            false,
            ["not stated"; 2],
        ),
    ];
    for (what, engine, fetch, is_before, published) in cases {
        let (of, than) = (by(engine, fetch, is_before), by(binary, fetch, is_before));
        for (matching, published) in MATCHINGS.into_iter().zip(published) {
            let first = match engine == shortest {
                true => "shortest first",
                false => "longest first",
            };
            let rows = Rows::of(&rows, matching);
            if let Some(pct) = rows.change_pct(of, than) {
                record.note(format!(
                    "{}: {first} beside binary search, {what}: {pct:+.0} % here; in the thesis \
                     {published}.",
                    published_label(matching)
                ));
            }
        }
    }
    Ok(record)
}
