//! `tachonym-lab impair`: a UDP relay that loses, delays, reorders,
//! duplicates and paces packets as asked.
//!
//! [`model`] decides, [`relay`] holds and sends; here is the command line.
//! It stands in for a kernel's own impairments where those are missing, and
//! needs no rights. Refuses TCP and Unix sockets: nothing is lost there.

pub mod model;
pub mod relay;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tachonym_bench::random::fresh_seed;

use self::model::Impairment;
use self::relay::{Relay, RelayOptions};

/// Relays UDP packets both ways and impairs them.
///
/// Prints one JSON line when it is ready, with the address it listens on and
/// the seed, and one with its counters when SIGTERM, SIGINT or --max-seconds
/// ends it. Shares, delay and rate apply to each direction by itself.
#[derive(Args, Debug)]
pub struct ImpairArgs {
    /// Address that clients send to; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    /// Address that their packets go to
    #[arg(long, value_name = "IP:PORT")]
    forward: SocketAddr,
    /// The only client, known before it sends [default: any sender]
    #[arg(long, value_name = "IP:PORT")]
    client: Option<SocketAddr>,
    /// Source address towards --forward of the first client's packets
    #[arg(long, value_name = "IP:PORT")]
    upstream_bind: Option<SocketAddr>,
    /// Most clients; each gets a socket of its own towards --forward
    #[arg(long, default_value_t = 64, value_name = "N")]
    max_clients: usize,
    /// Packets lost, in per cent
    #[arg(long, default_value_t = 0.0, value_name = "PCT")]
    loss_pct: f64,
    /// Packets sent twice, in per cent
    #[arg(long, default_value_t = 0.0, value_name = "PCT")]
    duplicate_pct: f64,
    /// Packets that skip the delay and overtake, in per cent
    #[arg(long, default_value_t = 0.0, value_name = "PCT")]
    reorder_pct: f64,
    /// One-way delay in milliseconds
    #[arg(long, default_value_t = 0.0, value_name = "MS")]
    delay_ms: f64,
    /// The delay varies evenly by up to this much, either way
    #[arg(long, default_value_t = 0.0, value_name = "MS")]
    jitter_ms: f64,
    /// Rate in 10⁶ bits of UDP payload per second [default: no limit]
    #[arg(long, value_name = "MBIT")]
    rate_mbit: Option<f64>,
    /// Most packets held in each direction, waiting or delayed; more are
    /// dropped
    #[arg(long, default_value_t = 16_384, value_name = "N")]
    queue_packets: usize,
    /// Seed of all random decisions [default: a fresh one, printed]
    #[arg(long)]
    seed: Option<u64>,
    /// Time limit, in seconds [default: never]
    #[arg(long, value_name = "S")]
    max_seconds: Option<u64>,
}

/// Runs the relay until a signal or the time limit ends it.
///
/// # Errors
/// Settings that cannot be, addresses that cannot be bound, and failures of
/// the sockets.
pub fn run(args: &ImpairArgs) -> anyhow::Result<()> {
    let from_ms = |ms: f64, name: &str| {
        Duration::try_from_secs_f64(ms / 1e3).with_context(|| format!("--{name} is {ms}"))
    };
    let options = RelayOptions {
        listen: args.listen,
        forward: args.forward,
        client: args.client,
        upstream_bind: args.upstream_bind,
        max_clients: args.max_clients,
        impairment: Impairment {
            loss_pct: args.loss_pct,
            duplicate_pct: args.duplicate_pct,
            reorder_pct: args.reorder_pct,
            delay: from_ms(args.delay_ms, "delay-ms")?,
            jitter: from_ms(args.jitter_ms, "jitter-ms")?,
            rate_mbit: args.rate_mbit,
            queue_packets: args.queue_packets,
        },
        seed: args.seed.unwrap_or_else(fresh_seed),
    };
    let (stop, signalled) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, signalled.try_clone()?)?;
    }
    let mut relay = Relay::new(options)?;
    print_line(&json!({
        "listen": relay.local_addr()?,
        "forward": args.forward,
        "seed": relay.seed(),
    }))?;
    let max_duration = args.max_seconds.map(Duration::from_secs);
    let report = relay.run(stop.as_fd(), max_duration)?;
    print_line(&serde_json::to_value(report)?)
}

fn print_line(value: &serde_json::Value) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()?;
    Ok(())
}
