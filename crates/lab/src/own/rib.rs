//! How fast routes can be loaded at best.
//!
//! The router's own RIB and FIB in this process, without commands, signatures and sockets:
//! routes go into the RIB, and the changes that result go into the FIB. Both take turns, a
//! batch at a time, so that the time of each is known. Every name is then searched for and
//! every route listed, and with all of them there some more are added and removed.
//! `own/routes` measures a running forwarder.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use tachonym_bench::stats::Spread;
use tachonym_bench::{
    Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};
use tachonym_loadgen::output::mib;
use tachonym_loadgen::process::Process;
use tachonym_manage::{FibChange, Rib, RibLimits, RibRoute};
use tachonym_memory::PagePreference;
use tachonym_packet::{FaceId, HashKey, HashKind, MonoNs, NameHashes, NameView};
use tachonym_protocol::route_flags;
use tachonym_tables::{Fib, FibConfig, NextHop};

use crate::beds::fib::{PAGES_PARAM, page_choice};
use crate::workloads::names::NameSet;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "own/rib",
    title: "Loading of routes into RIB and FIB, without commands",
    source: "",
    cost: Cost::minutes(0.2, 3.0),
    needs: &[Need::MemoryGib(1.0, 5.0)],
    params: &[
        Param::new(
            "routes",
            "routes, each with a prefix of its own",
            ParamKind::Count {
                min: 1,
                max: 1_000_000_000,
            },
            ["3k", "2M", "10M"],
        ),
        Param::new(
            "components",
            "components of each prefix, of six to ten letters; one load for each number",
            ParamKind::Counts,
            ["4", "2,4", "2,4"],
        ),
        PAGES_PARAM,
        Param::seed(),
    ],
    run,
}];

/// Faces that the routes lead to, in turn.
const N_FACES: u64 = 64;
/// Routes that go into the RIB before what they change goes into the FIB; as many as fit
/// the caches.
const BATCH: u64 = 256;
/// Routes that come and go when all others are there.
const N_MORE: u64 = 1000;

/// What loading took.
#[derive(Debug)]
struct Loaded {
    rib_seconds: f64,
    fib_seconds: f64,
    /// Of these, on the processor: the same on a machine that others use, too.
    rib_cpu_seconds: f64,
    fib_cpu_seconds: f64,
    /// The longest that one route took in the RIB, in milliseconds.
    rib_longest_ms: f64,
    /// And in the FIB: it had become too small and was copied. Searches go on meanwhile.
    fib_longest_ms: f64,
    /// Growth of resident memory for each route, in bytes, RIB and FIB together.
    rss_bytes_per_route: f64,
    /// What the RIB says that it takes, without what the allocator adds.
    rib_bytes_per_route: f64,
    /// What the FIB says that it takes.
    fib_bytes_per_route: f64,
    rss_bytes: u64,
    /// Median of adding one more route, in RIB and FIB, in microseconds.
    add_us: f64,
    /// And of removing it.
    remove_us: f64,
    /// Walking all routes in the order of their names, in seconds.
    list_seconds: f64,
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let n_routes = context.count("routes");
    let pages = PagePreference::from(page_choice(context.text("pages")));
    let columns = [
        "components",
        "routes",
        "loaded in, s",
        "RIB, ns/route",
        "FIB, ns/route",
        "RIB, CPU ns/route",
        "FIB, CPU ns/route",
        "longest in the RIB, ms",
        "longest in the FIB, ms",
        "memory, bytes/route",
        "RIB, bytes/route",
        "FIB, bytes/route",
        "resident, MiB",
        "one more, µs",
        "its removal, µs",
        "listing, s",
    ];
    let mut table = Table::new("", columns);
    for n_components in context.values.counts("components") {
        ensure!(
            (1..=32).contains(&n_components),
            "{n_components} components are not 1 to 32"
        );
        let names = NameSet::new(context.seed(), n_components as usize);
        let loaded = load(names, n_routes, pages)?;
        let each_ns = |seconds: f64| seconds * 1e9 / n_routes as f64;
        table.row(cells![
            n_components,
            n_routes,
            loaded.rib_seconds + loaded.fib_seconds,
            each_ns(loaded.rib_seconds),
            each_ns(loaded.fib_seconds),
            each_ns(loaded.rib_cpu_seconds),
            each_ns(loaded.fib_cpu_seconds),
            loaded.rib_longest_ms,
            loaded.fib_longest_ms,
            loaded.rss_bytes_per_route,
            loaded.rib_bytes_per_route,
            loaded.fib_bytes_per_route,
            mib(loaded.rss_bytes),
            loaded.add_us,
            loaded.remove_us,
            loaded.list_seconds,
        ]);
    }
    let mut record = Record::new(Kind::Measured);
    record.tables.push(table);
    record.note(
        "Making the names is not counted. The longest step of the FIB is the copy of its hash \
         table into a larger one; searches continue meanwhile. Every route is searched for and \
         listed afterwards. Growth of resident memory counts memory that an earlier load freed \
         only once.",
    );
    Ok(record)
}

fn load(names: NameSet, n_routes: u64, pages: PagePreference) -> anyhow::Result<Loaded> {
    let before = Process::own().memory()?.rss_bytes;
    let mut tables = Tables::new(usize::try_from(n_routes)?, pages)?;
    let mut batch = Batch::default();
    let (mut in_rib, mut in_fib) = (Elapsed::default(), Elapsed::default());
    for first in (0..n_routes).step_by(BATCH as usize) {
        batch.fill(names, first..n_routes.min(first + BATCH));
        let begun_ns = Process::own().cpu_ns()?;
        tables.insert(&batch, &mut in_rib)?;
        let between_ns = Process::own().cpu_ns()?;
        tables.apply_changes(&mut in_fib)?;
        in_rib.cpu_ns += between_ns - begun_ns;
        in_fib.cpu_ns += Process::own().cpu_ns()? - between_ns;
    }
    let rss_bytes = Process::own().memory()?.rss_bytes;
    tables.check(names, n_routes)?;
    let begun = Instant::now();
    tables.check_list(n_routes)?;
    let list_seconds = begun.elapsed().as_secs_f64();
    let (rib_bytes, fib_bytes) = (tables.rib.memory_bytes(), tables.fib.memory_bytes());
    let (add_us, remove_us) = tables.change_some(names, n_routes)?;
    let each = |n_bytes: usize| n_bytes as f64 / n_routes as f64;
    Ok(Loaded {
        rib_seconds: in_rib.total.as_secs_f64(),
        fib_seconds: in_fib.total.as_secs_f64(),
        rib_cpu_seconds: in_rib.cpu_ns as f64 / 1e9,
        fib_cpu_seconds: in_fib.cpu_ns as f64 / 1e9,
        rib_longest_ms: in_rib.longest.as_secs_f64() * 1e3,
        fib_longest_ms: in_fib.longest.as_secs_f64() * 1e3,
        rss_bytes_per_route: rss_bytes.saturating_sub(before) as f64 / n_routes as f64,
        rib_bytes_per_route: each(rib_bytes),
        fib_bytes_per_route: each(fib_bytes),
        rss_bytes,
        add_us,
        remove_us,
        list_seconds,
    })
}

/// What steps took that follow each other.
#[derive(Clone, Copy, Debug, Default)]
struct Elapsed {
    total: Duration,
    longest: Duration,
    cpu_ns: u64,
}

impl Elapsed {
    /// A step took from `begun` until now, when the next begins.
    fn step(&mut self, begun: &mut Instant) {
        let now = Instant::now();
        let step = now - std::mem::replace(begun, now);
        self.total += step;
        self.longest = self.longest.max(step);
    }
}

/// Some names with their numbers.
#[derive(Debug, Default)]
struct Batch {
    value: Vec<u8>,
    /// Numbers and where the names end.
    names: Vec<(u64, usize)>,
}

impl Batch {
    fn fill(&mut self, names: NameSet, numbers: std::ops::Range<u64>) {
        self.value.clear();
        self.names.clear();
        for number in numbers {
            names.write(number, &mut self.value);
            self.names.push((number, self.value.len()));
        }
    }

    fn iter(&self) -> impl Iterator<Item = anyhow::Result<(u64, NameView<'_>)>> {
        let mut start = 0;
        self.names.iter().map(move |&(number, end)| {
            let value = &self.value[std::mem::replace(&mut start, end)..end];
            Ok((number, NameView::parse_value(value)?))
        })
    }
}

/// The tables that are loaded.
#[derive(Debug)]
struct Tables {
    rib: Rib,
    fib: Fib,
    key: HashKey,
    changes: Vec<FibChange>,
}

impl Tables {
    fn new(n_routes: usize, pages: PagePreference) -> anyhow::Result<Self> {
        // Some more come when all are there.
        let max_routes = n_routes + 1;
        let rib = Rib::new(RibLimits {
            max_routes,
            max_name_bytes: usize::MAX,
            ..RibLimits::default()
        });
        let key = HashKey::new(HashKind::fastest(), &[7; 32]);
        let config = FibConfig {
            pages,
            ..FibConfig::with_max_entries(max_routes)
        };
        Ok(Self {
            rib,
            fib: Fib::new(config, key.clone())?,
            key,
            changes: Vec::new(),
        })
    }

    fn insert(&mut self, batch: &Batch, elapsed: &mut Elapsed) -> anyhow::Result<()> {
        let mut begun = Instant::now();
        for entry in batch.iter() {
            let (number, name) = entry?;
            let inserted = self.rib.insert(name, route(number), &mut self.changes);
            inserted.with_context(|| format!("route {number}"))?;
            elapsed.step(&mut begun);
        }
        Ok(())
    }

    fn apply_changes(&mut self, elapsed: &mut Elapsed) -> anyhow::Result<()> {
        let mut begun = Instant::now();
        for change in self.changes.drain(..) {
            apply(&mut self.fib, &change).with_context(|| format!("{change:?}"))?;
            elapsed.step(&mut begun);
        }
        Ok(())
    }

    /// Medians of adding one more route and of removing it, in microseconds.
    fn change_some(&mut self, names: NameSet, n_routes: u64) -> anyhow::Result<(f64, f64)> {
        let mut value = Vec::new();
        let (mut added_us, mut removed_us) = (Vec::new(), Vec::new());
        for number in n_routes..n_routes + N_MORE {
            value.clear();
            names.write(number, &mut value);
            let name = NameView::parse_value(&value)?;
            let mut elapsed = Elapsed::default();
            let mut begun = Instant::now();
            self.rib.insert(name, route(number), &mut self.changes)?;
            self.apply_changes(&mut Elapsed::default())?;
            elapsed.step(&mut begun);
            added_us.push(elapsed.total.as_secs_f64() * 1e6);
            let mut elapsed = Elapsed::default();
            let mut begun = Instant::now();
            let was_there = self.rib.remove(name, face_of(number), 0, &mut self.changes);
            ensure!(was_there, "route {number} was gone already");
            self.apply_changes(&mut Elapsed::default())?;
            elapsed.step(&mut begun);
            removed_us.push(elapsed.total.as_secs_f64() * 1e6);
        }
        let median = |values: &[f64]| Spread::of(values).map(|spread| spread.median);
        let medians = median(&added_us).zip(median(&removed_us));
        medians.context("routes changed during the listing")
    }

    /// Every route leads to its face.
    fn check(&self, names: NameSet, n_routes: u64) -> anyhow::Result<()> {
        let fib = &self.fib;
        ensure!(fib.len() as u64 == n_routes, "the FIB has {}", fib.len());
        let mut reader = fib.reader();
        let mut hashes = NameHashes::new();
        let mut value = Vec::new();
        for number in 0..n_routes {
            value.clear();
            names.write(number, &mut value);
            let name = NameView::parse_value(&value)?;
            hashes.clear();
            let span = hashes.push_name(&self.key, name);
            let view = reader.pin();
            let found = view.find_longest(name, hashes.slice(span));
            let found = found.ok_or_else(|| anyhow!("route {number} is missing"))?;
            let face = found.next_hops().iter().next().map(|hop| hop.face());
            ensure!(
                face == Some(face_of(number)),
                "route {number} has another next hop"
            );
        }
        Ok(())
    }

    /// Every prefix is listed once, in canonical order.
    fn check_list(&self, n_routes: u64) -> anyhow::Result<()> {
        let (mut n_listed, mut is_ordered) = (0, true);
        let mut last = Vec::new();
        self.rib.for_each(|name, routes| {
            is_ordered &= n_listed == 0 || *last < *name.value_bytes();
            last.clear();
            last.extend_from_slice(name.value_bytes());
            n_listed += routes.len() as u64;
        });
        ensure!(n_listed == n_routes, "the RIB lists {n_listed} routes");
        ensure!(is_ordered, "the RIB lists routes out of order");
        Ok(())
    }
}

const fn route(number: u64) -> RibRoute {
    RibRoute {
        face: face_of(number),
        origin: 0,
        cost: number % 8,
        flags: route_flags::CHILD_INHERIT,
        expires: MonoNs::NEVER,
    }
}

const fn face_of(number: u64) -> FaceId {
    FaceId(256 + number % N_FACES)
}

fn apply(fib: &mut Fib, change: &FibChange) -> anyhow::Result<()> {
    match change {
        FibChange::Add {
            name,
            face,
            cost,
            distance,
        } => {
            let hop = NextHop::inherited(*face, *cost, *distance);
            fib.add_next_hop(name.view(), hop)?;
        }
        FibChange::Remove { name, face } => {
            fib.remove_next_hop(name.view(), *face);
        }
    }
    Ok(())
}
