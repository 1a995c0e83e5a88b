//! `tachonym-lab routes`: how fast a forwarder takes routes, and whether they
//! work.
//!
//! Registers many prefixes through the RIB on one face, sends Interests under a
//! sample of them from another, which must come to the first, and takes all of
//! them back. [`stream`] is the commands. Refuses other origins and costs: every
//! route is a plain one of an application.

pub mod stream;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use tachonym_packet::{Component, Name, tlv, types};

use self::stream::{CommandReport, Commands};
use crate::exchange::frame::Frame;
use crate::exchange::link::{self, Link};
use crate::launch::{ForwarderArgs, fresh_prefix, plain_data};
use crate::output::{self, mib};
use crate::process::Process;

/// Interests of the sample that are under way together.
const SAMPLE_WINDOW: usize = 32;
/// After this time without progress the rest of the sample is lost.
const SAMPLE_PATIENCE: Duration = Duration::from_secs(4);
/// Pause before an Interest that came back as a Nack is sent again.
const NACK_PAUSE: Duration = Duration::from_millis(5);

/// Registers many routes, checks that they forward, and unregisters them.
#[derive(Args, Clone, Debug)]
pub struct RoutesArgs {
    /// The forwarder.
    #[command(flatten)]
    pub forwarder: ForwarderArgs,
    /// Routes, each with a prefix of its own
    #[arg(long, default_value_t = 100_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub count: u64,
    /// Commands in flight
    #[arg(long, default_value_t = 256, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=4_096))]
    pub window: u64,
    /// Routes to send an Interest to, spread evenly over all
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    pub sample: u64,
    /// Lifetime of a command, after which it counts as unanswered
    #[arg(long, default_value_t = 10_000, value_name = "MS",
          value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub lifetime_ms: u64,
    /// Prints one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What the routes cost, and what they did.
#[derive(Clone, Debug, Serialize)]
pub struct RoutesReport {
    /// The forwarder's process.
    pub pid: u32,
    /// The program's name as the kernel knows it.
    pub program: Option<String>,
    /// Registering.
    pub register: Phase,
    /// Interests that were sent under registered prefixes.
    pub n_sampled: u64,
    /// Of these, how many came to the face that registered the prefix, and
    /// whose Data came back.
    pub n_came_back: u64,
    /// Interests of the sample that first came back as a Nack: the command had
    /// been answered before the route worked.
    pub n_too_early: u64,
    /// From the first command until the last route of the sample worked, in
    /// seconds.
    pub working_seconds: f64,
    /// Unregistering.
    pub unregister: Phase,
    /// Resident memory before the first command, in bytes.
    pub rss_before_bytes: u64,
    /// Resident memory with all routes, in bytes.
    pub rss_with_routes_bytes: u64,
    /// Resident memory after all are gone, in bytes.
    pub rss_after_bytes: u64,
    /// Growth of resident memory for each route, in bytes.
    pub rss_bytes_per_route: f64,
}

/// Commands of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// What became of them.
    #[serde(flatten)]
    pub commands: CommandReport,
    /// The forwarder's CPU time per command in microseconds, all threads.
    pub cpu_us_per_command: f64,
}

/// Runs the command.
///
/// # Errors
/// If nothing could be measured. Refused routes are figures.
pub fn run(args: &RoutesArgs) -> anyhow::Result<()> {
    output::print(&measure(args)?, args.json)
}

/// Registers, checks and unregisters.
///
/// # Errors
/// If the forwarder cannot be reached or takes no route at all.
pub fn measure(args: &RoutesArgs) -> anyhow::Result<RoutesReport> {
    let attached = args.forwarder.attach()?;
    let process = attached.process;
    let mut producer = Link::connect(&args.forwarder.address)?;
    let mut consumer = Link::connect(&args.forwarder.address)?;
    let prefixes = distinct_prefixes(args.count);
    let patience = Duration::from_millis(args.lifetime_ms);
    let window = args.window as usize;

    let rss_before_bytes = process.memory()?.rss_bytes;
    let started = Instant::now();
    let commands = Commands::register(&prefixes, patience);
    let signed = started.elapsed();
    let register = phase(process, &commands, &mut producer, window)?;
    drop(commands);
    if register.commands.n_done == 0 {
        bail!("the forwarder accepted no route: {:?}", register.commands);
    }
    let rss_with_routes_bytes = process.memory()?.rss_bytes;
    let sample = spread_sample(&prefixes, args.sample);
    let fetched = fetch_each(&mut producer, &mut consumer, &sample)?;
    let working = started.elapsed().saturating_sub(signed);
    let commands = Commands::unregister(&prefixes, patience);
    let unregister = phase(process, &commands, &mut producer, window)?;
    let grown = rss_with_routes_bytes as f64 - rss_before_bytes as f64;
    Ok(RoutesReport {
        pid: process.pid(),
        program: process.name(),
        n_sampled: sample.len() as u64,
        n_came_back: fetched.n_came_back,
        n_too_early: fetched.n_too_early,
        working_seconds: working.as_secs_f64(),
        rss_before_bytes,
        rss_with_routes_bytes,
        rss_after_bytes: process.memory()?.rss_bytes,
        rss_bytes_per_route: grown / register.commands.n_done as f64,
        register,
        unregister,
    })
}

fn phase(
    process: Process,
    commands: &Commands,
    link: &mut Link,
    window: usize,
) -> anyhow::Result<Phase> {
    let before_ns = process.cpu_ns()?;
    let report = commands.carry_out(link, window)?;
    let cpu_ns = process.cpu_ns()?.saturating_sub(before_ns);
    Ok(Phase {
        cpu_us_per_command: cpu_ns as f64 / 1e3 / report.n_sent.max(1) as f64,
        commands: report,
    })
}

/// `count` prefixes of three components that no other run has.
#[must_use]
pub fn distinct_prefixes(count: u64) -> Vec<Name> {
    let (base, _) = fresh_prefix();
    let name = |i: u64| base.clone().with(i.to_string().as_str());
    (0..count).map(name).collect()
}

/// At most `n_sample` of `all`, from the first to the last.
fn spread_sample(all: &[Name], n_sample: u64) -> Vec<Name> {
    let n_sample = (n_sample as usize).min(all.len());
    let pick = |i: usize| match n_sample {
        1 => all[0].clone(),
        _ => all[i * (all.len() - 1) / (n_sample - 1)].clone(),
    };
    (0..n_sample).map(pick).collect()
}

#[derive(Default)]
struct Fetched {
    n_came_back: u64,
    n_too_early: u64,
}

/// Sends an Interest under each prefix from `consumer`, answers those that come
/// to `producer`, and says how many Data came back. What is nacked is sent
/// again a little later.
fn fetch_each(
    producer: &mut Link,
    consumer: &mut Link,
    prefixes: &[Name],
) -> anyhow::Result<Fetched> {
    let question = Component::generic("question");
    let names = prefixes.iter().map(|prefix| prefix.clone().with(&question));
    let mut rest = names.collect::<VecDeque<Name>>();
    let mut waiting: HashSet<Vec<u8>> = HashSet::new();
    let mut nacked: VecDeque<(Instant, Name)> = VecDeque::new();
    let mut seen_nacked: HashSet<Vec<u8>> = HashSet::new();
    let mut nonce = 0_u32;
    let mut n_came_back = 0;
    let mut ready = Vec::new();
    let mut progress_at = Instant::now();
    loop {
        while let Some((_, name)) = nacked.pop_front_if(|(at, _)| at.elapsed() >= NACK_PAUSE) {
            rest.push_front(name);
        }
        while waiting.len() < SAMPLE_WINDOW
            && let Some(name) = rest.pop_front()
        {
            nonce += 1;
            consumer
                .outbox()
                .push(|out| write_interest(out, &name, nonce));
            waiting.insert(name.value_bytes().to_vec());
        }
        let left = SAMPLE_PATIENCE.saturating_sub(progress_at.elapsed());
        if waiting.is_empty() && nacked.is_empty() || left.is_zero() {
            return Ok(Fetched {
                n_came_back,
                n_too_early: seen_nacked.len() as u64,
            });
        }
        consumer.flush()?;
        producer.flush()?;
        let links = [&*consumer, &*producer].into_iter();
        let wait = if nacked.is_empty() { left } else { NACK_PAUSE };
        link::wait(links, wait, &mut ready)?;
        if ready.contains(&1) {
            producer.receive(|wire, outbox| {
                let frame = Frame::parse(wire).unwrap_or_default();
                if let Some(name) = name_of(frame.payload, types::INTEREST) {
                    outbox.push(|out| {
                        write_answer(out, name, frame.token);
                    });
                }
            })?;
        }
        if ready.contains(&0) {
            consumer.receive(|wire, _| {
                let frame = Frame::parse(wire).unwrap_or_default();
                if frame.nack_code.is_some() {
                    let name = name_of(frame.payload, types::INTEREST);
                    if let Some(name) = name.filter(|name| waiting.remove(name.value_bytes())) {
                        seen_nacked.insert(name.value_bytes().to_vec());
                        nacked.push_back((Instant::now(), name));
                    }
                } else if let Some(name) = name_of(frame.payload, types::DATA)
                    && waiting.remove(name.value_bytes())
                {
                    n_came_back += 1;
                    progress_at = Instant::now();
                }
            })?;
        }
    }
}

fn write_interest(out: &mut Vec<u8>, name: &Name, nonce: u32) {
    tlv::write_nested(out, types::INTEREST, |out| {
        name.encode_into(out);
        tlv::write_tlv(out, types::NONCE, &nonce.to_be_bytes());
        tlv::write_nni(
            out,
            types::INTEREST_LIFETIME,
            SAMPLE_PATIENCE.as_millis() as u64,
        );
    });
}

fn write_answer(out: &mut Vec<u8>, name: Name, token: Option<&[u8]>) {
    let data = plain_data(&name);
    match token {
        None => out.extend_from_slice(&data),
        Some(token) => tlv::write_nested(out, types::LP_PACKET, |out| {
            tlv::write_tlv(out, types::LP_PIT_TOKEN, token);
            tlv::write_tlv(out, types::LP_FRAGMENT, &data);
        }),
    }
}

/// The name of a packet of type `typ`.
fn name_of(packet: &[u8], typ: u32) -> Option<Name> {
    let mut reader = tlv::Reader::new(tlv::read_single(packet, typ).ok()?);
    let value = reader.read_expected(types::NAME).ok()?;
    Some(
        tachonym_packet::NameView::parse_value(value)
            .ok()?
            .to_name(),
    )
}

impl fmt::Display for RoutesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} (pid {})",
            self.program.as_deref().unwrap_or("?"),
            self.pid
        )?;
        for (what, phase) in [
            ("register", &self.register),
            ("unregister", &self.unregister),
        ] {
            let c = &phase.commands;
            write!(
                f,
                "{what:<12}{} of {} in {:.3} s, p50 {:.1} µs, p99 {:.1} µs, \
                 forwarder {:.2} µs/command",
                c.n_done,
                c.n_sent,
                c.seconds,
                c.latency.p50_us,
                c.latency.p99_us,
                phase.cpu_us_per_command
            )?;
            if c.n_done < c.n_sent {
                write!(
                    f,
                    "; refused by code {:?}, {} nacked, {} unanswered",
                    c.n_refused_by_code, c.n_nacked, c.n_unanswered
                )?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "forwarded   {} of {} Interests came to the face that registered, {} of them with a \
             delay;\n            all after {:.3} s",
            self.n_came_back, self.n_sampled, self.n_too_early, self.working_seconds
        )?;
        write!(
            f,
            "memory      {:.0} bytes per route: {:.1} MiB before, {:.1} with, {:.1} after",
            self.rss_bytes_per_route,
            mib(self.rss_before_bytes),
            mib(self.rss_with_routes_bytes),
            mib(self.rss_after_bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_spreads_from_the_first_to_the_last() {
        let all = distinct_prefixes(100);
        let sample = spread_sample(&all, 10);
        assert_eq!(sample.len(), 10);
        assert_eq!((&sample[0], &sample[9]), (&all[0], &all[99]));
        assert_eq!(spread_sample(&all, 1), all[..1]);
        assert!(spread_sample(&all, 0).is_empty());
        assert_eq!(spread_sample(&all[..2], 9), all[..2]);
    }
}
