//! `tachonym-lab rib`: how fast routes can be loaded at best.
//!
//! The router's own RIB and FIB in this process, without commands, signatures and
//! sockets: each route goes into the RIB, and what that says of the FIB into the FIB.
//! Every name is then searched for. [`super`] measures a running forwarder.

use std::fmt;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use serde::Serialize;
use tachonym_manage::{FibChange, Rib, RibLimits, RibRoute};
use tachonym_memory::PagePreference;
use tachonym_packet::{FaceId, HashKey, HashKind, MonoNs, NameHashes, NameView};
use tachonym_protocol::route_flags;
use tachonym_tables::{Fib, FibConfig, NextHop};

use crate::choices::PageChoice;
use crate::lookup::names::NameSet;
use crate::output::{self, mib};
use crate::process::Process;

/// Faces that the routes lead to, in turn.
const N_FACES: u64 = 64;

/// Loads routes into the router's RIB and FIB, in this process
#[derive(Args, Clone, Debug)]
pub struct RibArgs {
    /// Routes, each with a prefix of its own
    #[arg(long, default_value_t = 10_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub routes: u64,
    /// Components of each prefix, of six to ten letters
    #[arg(long, default_value_t = 4, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=32))]
    pub components: u64,
    /// Pages of the FIB
    #[arg(long, value_enum, default_value_t = PageChoice::Auto)]
    pub pages: PageChoice,
    /// What names are made from
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What loading took.
#[derive(Clone, Debug, Serialize)]
struct RibReport {
    n_routes: u64,
    /// From the first route to the last, in seconds.
    seconds: f64,
    /// The longest that one route took, in milliseconds: the FIB had become too small and
    /// was copied. Searches go on meanwhile.
    longest_ms: f64,
    /// Growth of resident memory for each route, in bytes, RIB and FIB together.
    rss_bytes_per_route: f64,
    /// Of that the FIB's.
    fib_bytes_per_route: f64,
    rss_bytes: u64,
}

impl fmt::Display for RibReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each_ns = self.seconds * 1e9 / self.n_routes as f64;
        writeln!(
            f,
            "{} routes loaded in {:.2} s ({each_ns:.0} ns each, the longest {:.1} ms)",
            self.n_routes, self.seconds, self.longest_ms
        )?;
        writeln!(
            f,
            "memory: {:.0} bytes each, of which the FIB {:.0}; {:.0} MiB resident",
            self.rss_bytes_per_route,
            self.fib_bytes_per_route,
            mib(self.rss_bytes)
        )
    }
}

/// Runs the command.
///
/// # Errors
/// If a route is refused, or one is not found afterwards.
pub fn run(args: &RibArgs) -> anyhow::Result<()> {
    output::print(&load(args)?, args.json)
}

fn load(args: &RibArgs) -> anyhow::Result<RibReport> {
    let n_routes = usize::try_from(args.routes)?;
    let names = NameSet::new(args.seed, args.components as usize);
    let before = Process::own().memory()?.rss_bytes;
    let mut rib = Rib::new(RibLimits {
        max_routes: n_routes,
        max_name_bytes: usize::MAX,
        ..RibLimits::default()
    });
    let key = HashKey::new(HashKind::fastest(), &[7; 32]);
    let config = FibConfig {
        pages: PagePreference::from(args.pages),
        ..FibConfig::with_max_entries(n_routes)
    };
    let mut fib = Fib::new(config, key.clone())?;
    let (mut value, mut changes) = (Vec::new(), Vec::new());
    let mut longest_ns = 0;
    let begun = Instant::now();
    let mut last = begun;
    for number in 0..args.routes {
        value.clear();
        names.write(number, &mut value);
        let name = NameView::parse_value(&value)?;
        let route = RibRoute {
            face: face_of(number),
            origin: 0,
            cost: number % 8,
            flags: route_flags::CHILD_INHERIT,
            expires: MonoNs::NEVER,
        };
        let inserted = rib.insert(name, route, &mut changes);
        inserted.with_context(|| format!("route {number}"))?;
        for change in changes.drain(..) {
            apply(&mut fib, &change).with_context(|| format!("route {number}"))?;
        }
        let now = Instant::now();
        longest_ns = longest_ns.max((now - last).as_nanos());
        last = now;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rss_bytes = Process::own().memory()?.rss_bytes;
    check(&fib, &key, names, args.routes)?;
    Ok(RibReport {
        n_routes: args.routes,
        seconds,
        longest_ms: longest_ns as f64 / 1e6,
        rss_bytes_per_route: rss_bytes.saturating_sub(before) as f64 / args.routes as f64,
        fib_bytes_per_route: fib.memory_bytes() as f64 / args.routes as f64,
        rss_bytes,
    })
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

/// Every route leads to its face.
fn check(fib: &Fib, key: &HashKey, names: NameSet, n_routes: u64) -> anyhow::Result<()> {
    ensure!(fib.len() as u64 == n_routes, "the FIB has {}", fib.len());
    let mut reader = fib.reader();
    let mut hashes = NameHashes::new();
    let mut value = Vec::new();
    for number in 0..n_routes {
        value.clear();
        names.write(number, &mut value);
        let name = NameView::parse_value(&value)?;
        hashes.clear();
        let span = hashes.push_name(key, name);
        let view = reader.pin();
        let found = view.find_longest(name, hashes.slice(span));
        let found = found.ok_or_else(|| anyhow!("route {number} is not found"))?;
        let face = found.next_hops().iter().next().map(|hop| hop.face());
        ensure!(
            face == Some(face_of(number)),
            "route {number} leads elsewhere"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_that_was_loaded_is_found() {
        let args = RibArgs {
            routes: 3_000,
            components: 3,
            pages: PageChoice::Base,
            seed: 5,
            json: false,
        };
        let report = load(&args).expect("there is room");
        assert_eq!(report.n_routes, 3_000);
        assert!(report.fib_bytes_per_route > 0.0);
    }
}
