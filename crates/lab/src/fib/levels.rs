//! Table 4.2 of Yuan 2015: how many hash lookups level pulling saves, and beyond that
//! what it gains in time, and which engine is the fastest on such names.

use std::fmt;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use tachonym_memory::PagePreference;
use tachonym_packet::{FaceId, HashKey, HashKind, NameHashes};
use tachonym_tables::{Fib, FibConfig, FibEngine, NextHop, NextHops};

use super::bed::{EncodedNames, Fetch, Way, search_ns, some_key};
use super::urls::{self, PUBLISHED, Scheme};
use super::{Comparison, Engine, FibArgs, write_comparisons};
use crate::lookup::names::NameSet;
use crate::random::Random;
use crate::stats::Spread;

/// What is drawn.
pub(super) const TITLE: &str = "Table 4.2: hash lookups that level pulling saves";
/// Random components behind each name that is looked up.
const N_BEYOND: usize = 3;
/// Names searched for in a round.
const N_SEARCHED: usize = 1 << 16;

/// What was measured with one set of names.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SetFigures {
    /// Of which names.
    pub set: String,
    /// How URLs became names.
    pub scheme: Scheme,
    /// How the FIB is searched.
    pub engine: Engine,
    /// Names in the FIB.
    pub n_names: u64,
    /// Prefixes that are pulled.
    pub n_pulled: u64,
    /// Hash lookups of a search, on average over every name, without level pulling.
    pub lookups: f64,
    /// And with it.
    pub lookups_pulled: f64,
    /// What that saves, in percent.
    pub saved_pct: f64,
    /// Time of a search in bursts, hashing included, without level pulling.
    pub ns: Spread,
    /// And with it.
    pub ns_pulled: Spread,
    /// Bytes a name in the FIB, everything included, without level pulling, and with it.
    pub bytes_per_name: [f64; 2],
}

/// Table 4.2.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LevelFigures {
    /// By set, scheme and engine.
    pub sets: Vec<SetFigures>,
    /// Beside what is published.
    pub comparisons: Vec<Comparison>,
    /// Lines of a file that are no names.
    pub n_refused: u64,
}

impl LevelFigures {
    /// What is drawn.
    pub(super) fn bars(&self) -> Vec<(String, f64)> {
        let bar = |set: &SetFigures| {
            let label = format!(
                "{}, {}, {}",
                set.set,
                set.scheme.label(),
                set.engine.label()
            );
            (label, set.saved_pct)
        };
        self.sets.iter().map(bar).collect()
    }
}

impl fmt::Display for LevelFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{TITLE}\n\n| set | scheme | engine | names | pulled | hash lookups | pulled | saved | \
             ns in bursts (p10–p90) | pulled | bytes a name | pulled |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|"
        )?;
        for set in &self.sets {
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {:.3} | {:.3} | {:.2} % | {:.0} ({:.0}–{:.0}) | \
                 {:.0} ({:.0}–{:.0}) | {:.0} | {:.0} |",
                set.set,
                set.scheme.label(),
                set.engine.label(),
                set.n_names,
                set.n_pulled,
                set.lookups,
                set.lookups_pulled,
                set.saved_pct,
                set.ns.median,
                set.ns.p10,
                set.ns.p90,
                set.ns_pulled.median,
                set.ns_pulled.p10,
                set.ns_pulled.p90,
                set.bytes_per_name[0],
                set.bytes_per_name[1],
            )?;
        }
        write_comparisons(f, &self.comparisons)?;
        match self.n_refused {
            0 => Ok(()),
            n => writeln!(f, "{n} lines are neither names nor URLs."),
        }
    }
}

/// Runs the experiment.
///
/// # Errors
/// If there is not as much memory as the tables need, or names cannot be read.
pub(super) fn measure(args: &FibArgs) -> anyhow::Result<LevelFigures> {
    let mut figures = LevelFigures {
        sets: Vec::new(),
        comparisons: Vec::new(),
        n_refused: 0,
    };
    if let Some(path) = &args.names {
        for scheme in Scheme::ALL {
            let mut names = EncodedNames::default();
            figures.n_refused = urls::read(path, scheme, &mut names)?;
            let label = path.display().to_string();
            figures
                .sets
                .extend(of_names(args, &label, scheme, &names, None)?);
        }
        return Ok(figures);
    }
    // The sets are made to have as many prefixes to pull; what that saves is measured.
    let alexa = args.rules.unwrap_or(PUBLISHED[0].n_urls);
    let scale = alexa as f64 / PUBLISHED[0].n_urls as f64;
    for set in &PUBLISHED {
        for (idx, scheme) in Scheme::ALL.into_iter().enumerate() {
            let mut names = EncodedNames::default();
            urls::synthetic(set, scale, args.threshold, args.seed, |url| {
                names.push(|out| url.write(scheme, out));
            });
            let of_set = of_names(args, set.label, scheme, &names, Some(scale))?;
            let each = |value: &dyn Fn(&SetFigures) -> String| {
                let engines = of_set.iter();
                let said = engines.map(|set| format!("{} {}", set.engine.label(), value(set)));
                said.collect::<Vec<_>>().join(", ")
            };
            let what = |of: &str| format!("{}, {}: {of}", set.label, scheme.label());
            figures.comparisons.push(Comparison {
                what: what("hash lookups saved, %"),
                published: set.saved_pct[idx].to_owned(),
                measured: each(&|set| format!("{:.2}", set.saved_pct)),
            });
            figures.comparisons.push(Comparison {
                what: what("prefixes pulled"),
                published: set.n_pulled[idx].to_string(),
                measured: of_set[0].n_pulled.to_string(),
            });
            figures.sets.extend(of_set);
        }
    }
    Ok(figures)
}

/// One set with every engine.
fn of_names(
    args: &FibArgs,
    label: &str,
    scheme: Scheme,
    names: &EncodedNames,
    scale: Option<f64>,
) -> anyhow::Result<Vec<SetFigures>> {
    let n_names = names.views().len();
    ensure!(n_names > 0, "{label} has no name");
    let set = match scale {
        Some(scale) if (scale - 1.0).abs() > f64::EPSILON => {
            format!("{label}, {:.1} % of it", scale * 100.0)
        }
        _ => label.to_owned(),
    };
    let mut random = Random::new(args.seed);
    let key = some_key(HashKind::fastest(), &mut random);
    let beyond = NameSet::new(args.seed, N_BEYOND);
    let views = names.views();
    let mut searched = EncodedNames::default();
    for _ in 0..N_SEARCHED {
        let name = views[(random.next_u64() % n_names as u64) as usize];
        searched.push(|out| {
            out.extend_from_slice(name.value_bytes());
            beyond.write(random.next_u64(), out);
        });
    }
    let searched = searched.views();
    Engine::ALL
        .into_iter()
        .map(|engine| {
            let fibs =
                [0, args.threshold].map(|level_pulling| filled(names, engine, level_pulling, &key));
            let [plain, pulled] = fibs;
            let (plain, pulled) = (plain?, pulled?);
            let (mut ns, mut ns_pulled) = (Vec::new(), Vec::new());
            let way = Way {
                fetch: Fetch::Burst,
                is_hashed_before: false,
                n_threads: 1,
            };
            for _ in 0..args.rounds {
                ns.push(search_ns(&mut plain.reader(), &searched, &key, way));
                ns_pulled.push(search_ns(&mut pulled.reader(), &searched, &key, way));
            }
            let (lookups, lookups_pulled) = (
                mean_lookups(&plain, names, &key, beyond),
                mean_lookups(&pulled, names, &key, beyond),
            );
            let bytes = |fib: &Fib| fib.memory_bytes() as f64 / fib.len() as f64;
            Ok(SetFigures {
                set: set.clone(),
                scheme,
                engine,
                n_names: plain.len() as u64,
                n_pulled: pulled.n_pulled() as u64,
                lookups,
                lookups_pulled,
                saved_pct: (1.0 - lookups_pulled / lookups) * 100.0,
                ns: Spread::of(&ns).context("no round")?,
                ns_pulled: Spread::of(&ns_pulled).context("no round")?,
                bytes_per_name: [bytes(&plain), bytes(&pulled)],
            })
        })
        .collect()
}

/// A FIB of all names.
fn filled(
    names: &EncodedNames,
    engine: Engine,
    level_pulling: u32,
    key: &HashKey,
) -> anyhow::Result<Fib> {
    let views = names.views();
    let config = FibConfig {
        expected_entries: views.len(),
        pages: PagePreference::Auto,
        engine: FibEngine::from(engine),
        level_pulling,
        ..FibConfig::with_max_entries(views.len())
    };
    let mut fib = Fib::new(config, key.clone())?;
    let hops = NextHops::new(vec![NextHop::new(FaceId(256), 1)]).expect("one");
    for name in views {
        fib.insert(name, &hops)?;
    }
    fib.pull_levels();
    Ok(fib)
}

/// Hash lookups of a search for a name with three more components, over every name.
fn mean_lookups(fib: &Fib, names: &EncodedNames, key: &HashKey, beyond: NameSet) -> f64 {
    let mut reader = fib.reader();
    let view = reader.pin();
    let mut hashes = NameHashes::new();
    let (mut value, mut n_lookups) = (Vec::new(), 0);
    let names = names.views();
    for (number, name) in names.iter().enumerate() {
        value.clear();
        value.extend_from_slice(name.value_bytes());
        beyond.write(number as u64, &mut value);
        let longer = tachonym_packet::NameView::parse_value(&value).expect("made of names");
        hashes.clear();
        let span = hashes.push_name(key, longer);
        n_lookups += view.n_lookups(hashes.slice(span));
    }
    n_lookups as f64 / names.len() as f64
}
