//! `tachonym-lab figures`: running forwarders, measured in one run.
//!
//! Starts the router, and beside it the other forwarders that are given, measures
//! them with the commands `exchange`, `routes`, `footprint`, `soak`, `transfer`,
//! `startup` and `fairness`, and prints one text. [`peers`] knows how to start
//! them. Refuses to judge: targets are in the experiments and in the documentation.

pub mod peers;
pub mod syscalls;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use tachonym_bench::machine::{Machine, version_of};
use tachonym_bench::random::fresh_seed;

use self::peers::{Peer, Program};
use crate::exchange::address::{Transport, UdpPeers};
use crate::exchange::compare::{Comparison, LabelledTarget, compare};
use crate::exchange::flow::Mode;
use crate::exchange::measure::{Forwarder, Load};
use crate::fairness::{self, FairnessArgs};
use crate::footprint::{self, FootprintArgs};
use crate::launch::Running;
use crate::output;
use crate::routes::{self, RoutesArgs};
use crate::soak::{self, SoakArgs};
use crate::startup::{self, StartupArgs};
use crate::transfer::{self, Rate, TransferArgs};

/// Transports in the order of the tables.
pub const TRANSPORTS: [Transport; 3] = [Transport::Unix, Transport::Tcp, Transport::Udp];

/// A transport of the exchanges, and how their consumers and producers use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// The transport.
    pub transport: Transport,
    /// Matters over UDP only.
    pub udp: UdpPeers,
}

impl Over {
    /// Those that are measured, in the order of the tables. Over UDP foreign programs come
    /// first; with the router's own kind of peer, many packets are one to the kernel.
    pub const ALL: [Self; 4] = [
        Self::of(Transport::Unix, UdpPeers::Single),
        Self::of(Transport::Tcp, UdpPeers::Single),
        Self::of(Transport::Udp, UdpPeers::Single),
        Self::of(Transport::Udp, UdpPeers::Offload),
    ];

    const fn of(transport: Transport, udp: UdpPeers) -> Self {
        Self { transport, udp }
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.udp {
            UdpPeers::Single => write!(f, "{}", self.transport),
            UdpPeers::Offload => write!(f, "{}, offload", self.transport),
        }
    }
}

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// CPU time per exchange, all forwarders and the generator alone in turn.
    Exchange,
    /// System calls of the router for each packet.
    Syscalls,
    /// Routes through the RIB, all forwarders.
    Routes,
    /// Memory per face, pending Interest, route and cached Data.
    Footprint,
    /// Memory over distinct names.
    Soak,
    /// Objects at rates up to 1 GB/s.
    Transfer,
    /// From start to the first packet, all forwarders.
    Startup,
    /// An honest program's rate beside hostile ones.
    Fairness,
}

/// Measures running forwarders: exchanges, system calls, routes, memory, transfers, start, fairness
///
/// The router, and ndnd and NFD where they are given, are started with their default settings.
/// The experiments `own/exchange` to `own/soak` measure the same one by one; everything that
/// runs without a forwarder is an experiment, too: see `tachonym-lab list`.
#[derive(Args, Clone, Debug)]
pub struct FiguresArgs {
    /// The router's binary, a release build
    #[arg(long, value_name = "PATH")]
    pub tachonym: PathBuf,
    /// ndnd's binary, to compare with
    #[arg(long, value_name = "PATH")]
    pub ndnd: Option<PathBuf>,
    /// NFD's binary, to compare with
    #[arg(long, value_name = "PATH")]
    pub nfd: Option<PathBuf>,
    /// What to measure; repeat for several [default: everything]
    #[arg(long = "only", value_name = "SECTION")]
    pub sections: Vec<Section>,
    /// Rounds of the comparison
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub rounds: u64,
    /// Exchanges of each forwarder in each round
    #[arg(long, default_value_t = 200_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub exchanges: u64,
    /// Routes of the router
    #[arg(long, default_value_t = 100_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    pub routes: u64,
    /// Routes of the other forwarders, which may take milliseconds for each
    #[arg(long, default_value_t = 5_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    pub peer_routes: u64,
    /// Faces of each transport, for memory per face
    #[arg(long, default_value_t = 2_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=100_000))]
    pub faces: u64,
    /// Pending Interests, for memory per entry
    #[arg(long, default_value_t = 100_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    pub pit_entries: u64,
    /// Cached Data, for memory per Data
    #[arg(long, default_value_t = 50_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    pub cached: u64,
    /// Distinct names, for memory over names
    #[arg(long, default_value_t = 10_000_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(10..=10_000_000_000))]
    pub names: u64,
    /// Size of each transfer in bytes [default: three seconds' worth]
    #[arg(long, value_name = "BYTES")]
    pub transfer_bytes: Option<u64>,
    /// Starts of each forwarder
    #[arg(long, default_value_t = 11, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub starts: u64,
    /// Seconds of each measurement beside another program
    #[arg(long, default_value_t = 3, value_name = "S",
          value_parser = clap::value_parser!(u64).range(1..=60))]
    pub fairness_seconds: u64,
}

/// A folder for sockets and configurations that goes with this value.
#[derive(Debug)]
pub struct WorkFolder(PathBuf);

impl WorkFolder {
    /// A folder with a short path.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new() -> anyhow::Result<Self> {
        // A socket's path must be short.
        let path = std::env::temp_dir().join(format!("lab-{:08x}", fresh_seed() as u32));
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // A folder in the temporary directory that stays does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Takes the figures and prints them.
///
/// # Errors
/// If a forwarder cannot be started or measured at all.
pub fn run(args: &FiguresArgs) -> anyhow::Result<()> {
    let folder = WorkFolder::new()?;
    let binaries = [
        (Program::Tachonym, Some(&args.tachonym)),
        (Program::Ndnd, args.ndnd.as_ref()),
        (Program::Nfd, args.nfd.as_ref()),
    ];
    let mut forwarders = Vec::new();
    for (program, binary) in binaries {
        if let Some(binary) = binary {
            forwarders.push(Peer::prepare(program, binary, &folder.0)?);
        }
    }
    println!("{}\n{}", Machine::read(), output::command_line());
    for peer in &forwarders {
        println!("{}: {}", peer.program.label(), version_of(&peer.binary)?);
    }
    let sections = match args.sections.as_slice() {
        [] => Section::value_variants(),
        sections => sections,
    };
    for section in sections {
        match section {
            Section::Exchange => {
                let load = exchange_load(args);
                exchange(&forwarders, args.rounds, &load, |over, comparison| {
                    let title = format!("exchange over {over}");
                    print_section(&title, comparison.rows_table());
                })?;
            }
            Section::Syscalls => {
                let load = exchange_load(args);
                let report = syscalls::measure_syscalls(&forwarders[0], &folder.0, &load)?;
                print_section("system calls", report);
            }
            Section::Routes => {
                for peer in &forwarders {
                    let report = routes::measure(&routes_args(args, peer))?;
                    print_section(&format!("routes, {}", peer.program.label()), report);
                }
            }
            Section::Startup => {
                for peer in &forwarders {
                    let report = startup::measure(&startup_args(args, peer))?;
                    print_section(&format!("startup, {}", peer.program.label()), report);
                }
            }
            Section::Footprint => {
                let report = footprint::measure(&footprint_args(args, &forwarders[0]))?;
                print_section("footprint", report);
            }
            Section::Soak => {
                print_section("soak", soak::measure(&soak_args(args, &forwarders[0]))?)
            }
            Section::Transfer => {
                let report = transfer::measure(&transfer_args(args, &forwarders[0]))?;
                print_section("transfer", report);
            }
            Section::Fairness => {
                let report = fairness::measure(&fairness_args(args, &forwarders[0]))?;
                print_section("fairness", report);
            }
        }
    }
    Ok(())
}

fn print_section(title: &str, text: impl std::fmt::Display) {
    println!("\n## {title}\n\n{text}");
}

fn exchange_load(args: &FiguresArgs) -> Load {
    Load::usual(args.exchanges, 60)
}

/// Starts all forwarders and measures them side by side over [`Over::ALL`], and in
/// the same rounds the generator without any; `each` gets what was measured.
///
/// # Errors
/// If a forwarder cannot be started. Rounds that fail are part of the result.
pub fn exchange(
    forwarders: &[Peer],
    n_rounds: u64,
    load: &Load,
    mut each: impl FnMut(Over, Comparison),
) -> anyhow::Result<()> {
    let mut running = Vec::new();
    for peer in forwarders {
        let mut process = Running::start(&peer.start)?;
        let unix = peer.address(Transport::Unix);
        process.first_exchange(&unix, &unix)?;
        running.push(process);
    }
    for over in Over::ALL {
        let load = Load {
            udp: over.udp,
            ..load.clone()
        };
        let mut targets = Vec::new();
        for (peer, process) in forwarders.iter().zip(&running) {
            targets.push(LabelledTarget {
                label: peer.program.label().to_owned(),
                forwarder: Forwarder {
                    consumer: peer.address(over.transport),
                    producer: peer.address(over.transport),
                    pid: Some(process.process()?.pid()),
                    // Not every forwarder takes commands over UDP.
                    control: Some(peer.address(Transport::Unix)),
                },
                binary: None,
                start: None,
            });
        }
        let modes = [Mode::Miss, Mode::Hit];
        each(over, compare(&targets, &modes, n_rounds, &load)?);
    }
    Ok(())
}

fn routes_args(args: &FiguresArgs, peer: &Peer) -> RoutesArgs {
    let is_own = peer.program == Program::Tachonym;
    RoutesArgs {
        forwarder: peer.to_start(),
        count: if is_own {
            args.routes
        } else {
            args.peer_routes
        },
        window: 256,
        sample: 1_000,
        lifetime_ms: 60_000,
        json: false,
    }
}

fn startup_args(args: &FiguresArgs, peer: &Peer) -> StartupArgs {
    StartupArgs {
        start: peer.start.clone(),
        address: peer.address(Transport::Unix),
        consumer: None,
        count: args.starts,
        json: false,
    }
}

fn footprint_args(args: &FiguresArgs, peer: &Peer) -> FootprintArgs {
    FootprintArgs {
        forwarder: peer.to_start(),
        kinds: Vec::new(),
        faces_at: vec![peer.address(Transport::Udp), peer.address(Transport::Tcp)],
        faces: args.faces,
        pit_entries: args.pit_entries,
        routes: args.routes,
        cached: args.cached,
        content_bytes: 1_000,
        steps: 10,
        json: false,
    }
}

fn soak_args(args: &FiguresArgs, peer: &Peer) -> SoakArgs {
    SoakArgs {
        forwarder: peer.to_start(),
        producer: None,
        names: args.names,
        content_bytes: 1_000,
        in_flight: 64,
        json: false,
    }
}

fn fairness_args(args: &FiguresArgs, peer: &Peer) -> FairnessArgs {
    FairnessArgs {
        forwarder: peer.to_start(),
        over: TRANSPORTS.map(|transport| peer.address(transport)).to_vec(),
        kinds: Vec::new(),
        in_flight: 64,
        rounds: args.rounds,
        seconds: args.fairness_seconds,
        json: false,
    }
}

fn transfer_args(args: &FiguresArgs, peer: &Peer) -> TransferArgs {
    let rates = [10, 30, 100, 300, 1_000].map(|mb| Rate::Limited(mb * 1_000_000));
    TransferArgs {
        forwarder: peer.to_start(),
        over: vec![
            peer.address(Transport::Udp),
            peer.address(Transport::Tcp),
            peer.address(Transport::Unix),
        ],
        rates: rates.into_iter().chain([Rate::Unlimited]).collect(),
        seconds: 3,
        bytes: args.transfer_bytes,
        segment_bytes: 8_000,
        max_window: 4_096,
        max_seconds: 120,
        json: false,
    }
}
