//! Table 4.2 of Yuan 2015: how many hash lookups level pulling saves, and beyond that
//! what it gains in time, and which engine is the fastest on such names.

use std::path::Path;

use anyhow::{Context as _, ensure};
use tachonym_bench::stats::Spread;
use tachonym_bench::turns::rotated;
use tachonym_bench::{
    Chart, Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
    cpu,
};
use tachonym_memory::PagePreference;
use tachonym_packet::{HashKey, HashKind, NameHashes, NameView};
use tachonym_tables::{Fib, FibConfig, FibEngine};

use super::fib::stated;
use super::urls::{self, PUBLISHED, Scheme};
use crate::beds::fib::{ENGINES, EncodedNames, Fetch, Way, next_hops, search_ns, some_key};
use crate::workloads::names::NameSet;
use tachonym_bench::random::Random;

/// The only one.
pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "yuan/table-4.2",
    title: "Hash lookups that level pulling saves",
    source: "Yuan 2015, section 4.1",
    cost: Cost::minutes(0.4, 10.0),
    needs: &[Need::MemoryGib(0.5, 4.0)],
    params: &[
        Param::count(
            "urls",
            "URLs of the set like Alexa's, and of the others in proportion",
            ["10k", "100k", "1M"],
        ),
        Param::new(
            "names",
            "file of URLs or names, one a line, instead of the synthetic sets",
            ParamKind::Text,
            [""; 3],
        ),
        Param::count(
            "threshold",
            "most components behind a prefix before it is pulled",
            ["64"; 3],
        ),
        Param::rounds(["3", "5", "7"]),
        Param::seed(),
    ],
    run: level_pulling,
}];

/// Random components behind each name that is looked up.
const N_BEYOND: usize = 3;
/// Names searched for in a round.
const N_SEARCHED: usize = 1 << 16;

/// What was measured of one set of names with one engine.
#[derive(Clone, Debug)]
struct SetFigures {
    engine: &'static str,
    /// Names in the FIB.
    n_names: u64,
    /// Prefixes that are pulled.
    n_pulled: u64,
    /// Hash lookups of a search, on average over every name, without level pulling and with
    /// it.
    lookups: [f64; 2],
    /// Time of a search in bursts, hashing included.
    ns: [Spread; 2],
    /// Bytes a name in the FIB, everything included.
    bytes_per_name: [f64; 2],
}

impl SetFigures {
    fn saved_pct(&self) -> f64 {
        (1.0 - self.lookups[1] / self.lookups[0]) * 100.0
    }
}

fn level_pulling(context: &Context) -> anyhow::Result<Record> {
    let (pinned, record) = cpu::on_pinned_thread(|| match context.text("names") {
        "" => synthetic(context),
        path => from_file(context, Path::new(path)),
    });
    let mut record = record?;
    record.note(cpu::note(&[pinned]));
    Ok(record)
}

fn table() -> Table {
    let columns: [Column; 12] = [
        "set".into(),
        "names".into(),
        "engine".into(),
        "names in the FIB".into(),
        "prefixes pulled".into(),
        Column::fixed("hash lookups", 3),
        Column::fixed("hash lookups, pulled", 3),
        Column::fixed("saved, %", 2),
        "ns in bursts".into(),
        "ns in bursts, pulled".into(),
        "bytes a name".into(),
        "bytes a name, pulled".into(),
    ];
    Table::new("", columns)
}

fn rows(table: &mut Table, set: &str, scheme: Scheme, figures: &[SetFigures]) {
    for it in figures {
        table.row(cells![
            set,
            scheme.label(),
            it.engine,
            it.n_names,
            it.n_pulled,
            it.lookups[0],
            it.lookups[1],
            it.saved_pct(),
            it.ns[0],
            it.ns[1],
            it.bytes_per_name[0],
            it.bytes_per_name[1],
        ]);
    }
}

fn from_file(context: &Context, path: &Path) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Measured);
    let mut table = table();
    let set = path.display().to_string();
    let mut n_refused = 0;
    for scheme in Scheme::ALL {
        let mut names = EncodedNames::default();
        n_refused = urls::read(path, scheme, &mut names)?;
        rows(&mut table, &set, scheme, &of_names(context, &set, &names)?);
    }
    record.tables.push(table);
    if n_refused > 0 {
        record.note(format!("{n_refused} lines are neither names nor URLs."));
    }
    Ok(record)
}

/// With sets that are made to have as many prefixes to pull; what that saves is measured.
fn synthetic(context: &Context) -> anyhow::Result<Record> {
    let n_urls = context.count("urls");
    let scale = n_urls as f64 / PUBLISHED[0].n_urls as f64;
    let threshold = context.values.count32("threshold");
    let mut record = Record::new(Kind::Measured);
    let mut table = table();
    let groups = ENGINES.map(|(label, _)| label);
    let mut chart = Chart::bars("Hash lookups saved", groups, "% fewer hash lookups");
    let place = stated("Table 4.2");
    for set in &PUBLISHED {
        for (idx, scheme) in Scheme::ALL.into_iter().enumerate() {
            let mut names = EncodedNames::default();
            urls::synthetic(set, scale, threshold, context.seed(), |url| {
                names.push(|out| url.write(scheme, out));
            });
            let figures = of_names(context, set.label, &names)?;
            rows(&mut table, set.label, scheme, &figures);
            let what = format!("{}, {}", set.label, scheme.label());
            for (group, it) in figures.iter().enumerate() {
                chart.point(&what, group as f64, it.saved_pct());
            }
            let binary = figures.iter().find(|it| it.engine == "binary-search");
            let binary = binary.context("binary search is one of the engines")?;
            record.compare(
                format!("{what}: hash lookups saved by binary search"),
                set.saved_pct[idx],
                "%",
                place,
                Some(binary.saved_pct()),
            );
            // A part of the set has a part of them.
            if n_urls == PUBLISHED[0].n_urls {
                record.compare(
                    format!("{what}: prefixes pulled (the set is built to have them)"),
                    set.n_pulled[idx] as f64,
                    "",
                    place,
                    Some(binary.n_pulled as f64),
                );
            }
        }
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note("The URL sets are synthetic and built to have the published number of prefixes to pull: that the numbers of pulled prefixes agree is so by construction. What pulling saves is measured.");
    if n_urls != PUBLISHED[0].n_urls {
        let pct = scale * 100.0;
        record.note(format!(
            "Sets have {pct:.1} % of the published URLs, and of the prefixes to pull."
        ));
    }
    record.note("The thesis does not say in which order its hash tables are visited without pulling; it describes an order by the number of leaf entries, which is none of the engines here.");
    Ok(record)
}

/// One set with every engine.
fn of_names(
    context: &Context,
    label: &str,
    names: &EncodedNames,
) -> anyhow::Result<Vec<SetFigures>> {
    let views = names.views();
    let n_names = views.len();
    ensure!(n_names > 0, "{label} has no name");
    let mut random = Random::new(context.seed());
    let key = some_key(HashKind::fastest(), &mut random);
    let beyond = NameSet::new(context.seed(), N_BEYOND);
    let mut searched = EncodedNames::default();
    for _ in 0..N_SEARCHED {
        let name = views[(random.next_u64() % n_names as u64) as usize];
        searched.push(|out| {
            out.extend_from_slice(name.value_bytes());
            beyond.write(random.next_u64(), out);
        });
    }
    let searched = searched.views();
    let threshold = context.values.count32("threshold");
    let way = Way {
        fetch: Fetch::Burst,
        is_hashed_before: false,
        n_threads: 1,
    };
    let of_engine = |(label, engine): (&'static str, FibEngine)| {
        let fibs = [
            filled(&views, engine, 0, &key)?,
            filled(&views, engine, threshold, &key)?,
        ];
        let ns = rotated(2, context.rounds(), |idx, _| {
            Ok(search_ns(&mut fibs[idx].reader(), &searched, &key, way))
        })?;
        let spread = |ns: &[f64]| Spread::of(ns).context("no round");
        Ok(SetFigures {
            engine: label,
            n_names: fibs[0].len() as u64,
            n_pulled: fibs[1].n_pulled() as u64,
            lookups: [0, 1].map(|idx| mean_lookups(&fibs[idx], &views, &key, beyond)),
            ns: [spread(&ns[0])?, spread(&ns[1])?],
            bytes_per_name: [0, 1].map(|idx| {
                let fib = &fibs[idx];
                fib.memory_bytes() as f64 / fib.len() as f64
            }),
        })
    };
    ENGINES.into_iter().map(of_engine).collect()
}

/// A FIB of all names.
fn filled(
    views: &[NameView<'_>],
    engine: FibEngine,
    level_pulling: u32,
    key: &HashKey,
) -> anyhow::Result<Fib> {
    let config = FibConfig {
        expected_entries: views.len(),
        pages: PagePreference::Auto,
        engine,
        level_pulling,
        ..FibConfig::with_max_entries(views.len())
    };
    let mut fib = Fib::new(config, key.clone())?;
    let hops = next_hops(256);
    for &name in views {
        fib.insert(name, &hops)?;
    }
    fib.pull_levels();
    Ok(fib)
}

/// Hash lookups of a search for a name with three more components, over every name.
fn mean_lookups(fib: &Fib, names: &[NameView<'_>], key: &HashKey, beyond: NameSet) -> f64 {
    let mut reader = fib.reader();
    let view = reader.pin();
    let mut hashes = NameHashes::new();
    let (mut value, mut n_lookups) = (Vec::new(), 0);
    for (number, name) in names.iter().enumerate() {
        value.clear();
        value.extend_from_slice(name.value_bytes());
        beyond.write(number as u64, &mut value);
        let longer = NameView::parse_value(&value).expect("made of names");
        hashes.clear();
        let span = hashes.push_name(key, longer);
        n_lookups += view.n_lookups(hashes.slice(span));
    }
    n_lookups as f64 / names.len() as f64
}
