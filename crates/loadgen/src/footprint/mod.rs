//! `tachonym-lab footprint`: what a face, a pending Interest, a route and a
//! cached Data cost a forwarder in resident memory.
//!
//! Adds items in equal steps, reads the memory after each, and fits a line:
//! its slope is the cost of one more. Entry point: [`measure`]; how items are
//! made is in [`items`]. Refuses to look inside the forwarder: memory that it
//! had freed earlier and now uses again does not show, so begin with a fresh
//! one (`--start` makes one for each kind).

pub mod items;

use std::fmt;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tachonym_bench::stats::LineFit;

use self::items::{CachedData, Faces, Items, PendingInterests, Routes};
use crate::exchange::address::{Address, Transport};
use crate::exchange::template::MAX_CONTENT_BYTES;
use crate::launch::{ForwarderArgs, raise_open_files_limit};
use crate::output::{self, mib};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Connections that have carried one packet each way.
    Face,
    /// Pending Interests under a route that never answers.
    Pit,
    /// Routes of one face, each in the RIB and the FIB.
    Route,
    /// Data in the content store.
    Cached,
}

/// Measures memory per face, pending Interest, route and cached Data.
#[derive(Args, Clone, Debug)]
pub struct FootprintArgs {
    /// The forwarder.
    #[command(flatten)]
    pub forwarder: ForwarderArgs,
    /// What to measure; repeat for several [default: everything]
    #[arg(long = "of", value_name = "KIND")]
    pub kinds: Vec<Kind>,
    /// Opens faces here as well; repeat for several
    #[arg(long = "faces-at", value_name = "URI")]
    pub faces_at: Vec<Address>,
    /// Faces to open at each address
    #[arg(long, default_value_t = 2_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=100_000))]
    pub faces: u64,
    /// Interests to leave pending
    #[arg(long, default_value_t = 200_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    pub pit_entries: u64,
    /// Routes to register
    #[arg(long, default_value_t = 100_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    pub routes: u64,
    /// Data to cache; must fit the content store
    #[arg(long, default_value_t = 50_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    pub cached: u64,
    /// Content of each cached Data in bytes, up to 8,000
    #[arg(long, default_value_t = 1_000, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(0..=MAX_CONTENT_BYTES as u64))]
    pub content_bytes: u64,
    /// Steps in which items are added
    #[arg(long, default_value_t = 10, value_name = "N",
          value_parser = clap::value_parser!(u64).range(2..=100))]
    pub steps: u64,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct FootprintReport {
    /// One for each kind of item, and for faces one for each address.
    pub footprints: Vec<Footprint>,
}

/// The cost of one kind of item.
#[derive(Clone, Debug, Serialize)]
pub struct Footprint {
    /// What the items are.
    pub kind: Kind,
    /// How they are connected.
    pub transport: Transport,
    /// Bytes that each item brings from outside: the Interest's or the Data's
    /// length, nothing for others.
    pub own_bytes_per_item: u64,
    /// The forwarder's resident memory, by number of items.
    pub steps: Vec<Step>,
    /// Growth of resident memory per item in bytes, by least squares.
    pub rss_bytes_per_item: f64,
    /// How well the line fits, 0 to 1. Tables that double make it jump.
    pub r_squared: f64,
    /// Growth from no item to the last over the number of items, in bytes.
    pub mean_rss_bytes_per_item: f64,
    /// Why there are fewer items than asked for, if there are.
    pub limit: Option<String>,
}

/// One reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Items at the forwarder.
    pub n_items: u64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
}

/// Runs the command.
///
/// # Errors
/// If nothing could be measured. A limit of the forwarder is part of the figures.
pub fn run(args: &FootprintArgs) -> anyhow::Result<()> {
    output::print(&measure(args)?, args.json)
}

/// Measures every kind that `args` names.
///
/// # Errors
/// If the forwarder cannot be reached, refuses a route or takes no item.
pub fn measure(args: &FootprintArgs) -> anyhow::Result<FootprintReport> {
    raise_open_files_limit()?;
    let kinds = match args.kinds.as_slice() {
        [] => Kind::value_variants(),
        kinds => kinds,
    };
    let mut footprints = Vec::new();
    for &kind in kinds {
        match kind {
            Kind::Face => {
                for address in [&args.forwarder.address].into_iter().chain(&args.faces_at) {
                    footprints.push(measure_faces(args, address)?);
                }
            }
            Kind::Pit => footprints.push(measure_kind(args, kind, args.pit_entries, |address| {
                Ok(Box::new(PendingInterests::new(address)?))
            })?),
            Kind::Route => footprints.push(measure_kind(args, kind, args.routes, |address| {
                Ok(Box::new(Routes::new(address, args.routes)?))
            })?),
            Kind::Cached => footprints.push(measure_kind(args, kind, args.cached, |address| {
                Ok(Box::new(CachedData::new(
                    address,
                    args.content_bytes as usize,
                )?))
            })?),
        }
    }
    Ok(FootprintReport { footprints })
}

fn measure_faces(args: &FootprintArgs, address: &Address) -> anyhow::Result<Footprint> {
    let mut footprint = measure_kind(args, Kind::Face, args.faces, |control| {
        Ok(Box::new(Faces::new(control, address)?))
    })?;
    footprint.transport = address.transport();
    Ok(footprint)
}

/// Adds `n_items` of what `make` makes to the forwarder.
fn measure_kind(
    args: &FootprintArgs,
    kind: Kind,
    n_items: u64,
    make: impl FnOnce(&Address) -> anyhow::Result<Box<dyn Items>>,
) -> anyhow::Result<Footprint> {
    let attached = args.forwarder.attach()?;
    let mut items = make(&args.forwarder.address)?;
    let mut steps = vec![Step {
        n_items: 0,
        rss_bytes: attached.process.memory()?.rss_bytes,
    }];
    let mut limit = None;
    let mut n_there = 0;
    for step in 1..=args.steps {
        let wanted = n_items * step / args.steps;
        let n_added = items.add(wanted - n_there)?;
        n_there += n_added;
        if n_added > 0 {
            steps.push(Step {
                n_items: n_there,
                rss_bytes: attached.process.memory()?.rss_bytes,
            });
        }
        if n_there < wanted {
            limit = Some(format!("the forwarder took {n_there} of {n_items}"));
            break;
        }
    }
    let point = |s: &Step| (s.n_items as f64, s.rss_bytes as f64);
    let points: Vec<_> = steps.iter().map(point).collect();
    let (Some(line), Some(first), Some(last)) = (LineFit::of(&points), steps.first(), steps.last())
    else {
        bail!("the forwarder accepted none of {n_items} items");
    };
    let grown = last.rss_bytes as f64 - first.rss_bytes as f64;
    Ok(Footprint {
        kind,
        transport: args.forwarder.address.transport(),
        own_bytes_per_item: items.own_bytes(),
        rss_bytes_per_item: line.slope,
        r_squared: line.r_squared,
        mean_rss_bytes_per_item: grown / last.n_items as f64,
        limit,
        steps,
    })
}

impl fmt::Display for FootprintReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<13} {:>8} {:>12} {:>8} {:>10} {:>10} {:>10} {:>8}",
            "item", "items", "bytes/item", "r²", "mean", "own bytes", "beyond", "RSS MiB"
        )?;
        for (i, item) in self.footprints.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            let last = item.steps.last();
            let what = match item.kind {
                Kind::Face => format!("{} face", item.transport),
                Kind::Pit => "PIT entry".to_owned(),
                Kind::Route => "route".to_owned(),
                Kind::Cached => "cached Data".to_owned(),
            };
            write!(
                f,
                "{what:<13} {:>8} {:>12.0} {:>8.3} {:>10.0} {:>10} {:>10.0} {:>8.1}",
                last.map_or(0, |s| s.n_items),
                item.rss_bytes_per_item,
                item.r_squared,
                item.mean_rss_bytes_per_item,
                item.own_bytes_per_item,
                item.rss_bytes_per_item - item.own_bytes_per_item as f64,
                last.map_or(0.0, |s| mib(s.rss_bytes)),
            )?;
            if let Some(limit) = &item.limit {
                write!(f, "  {limit}")?;
            }
        }
        Ok(())
    }
}
