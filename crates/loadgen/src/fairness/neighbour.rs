//! Programs that run beside a measured one: an equal of it, and hostile ones.
//!
//! Each hostile program does one thing as fast as it can in a thread of its own
//! until it is stopped, and connects again when the forwarder closes its face.
//! Owns what they send. Refuses to look at what comes back.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use tachonym_bench::random::Random;
use tachonym_packet::{Interest, Name, Nonce, tlv, types};
use tachonym_protocol::{CommandName, ControlParameters};

use crate::exchange::address::Address;
use crate::exchange::budget::Deadline;
use crate::exchange::control;
use crate::exchange::flow::Mode;
use crate::exchange::link::{self, Link};
use crate::exchange::measure::{Forwarder, Load, Target, measure};
use crate::exchange::template::{InterestShape, InterestTemplate};
use crate::launch::fresh_prefix;

/// Packets that a hostile program writes with one call.
const BURST: usize = 64;
/// Longest wait before it looks whether it is to stop.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Lifetime of its Interests and commands.
const LIFETIME_MS: u64 = 4_000;
/// The equal lasts so much longer than the measured program: it must not end
/// before it.
const MARGIN_SECONDS: u64 = 4;
/// Bytes of a packet that is none.
const JUNK_BYTES: usize = 64;

/// A program to run beside the honest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An equal of the measured program: the fair share.
    Honest,
    /// Interests that no route leads anywhere; reads the Nacks.
    NoRoute,
    /// The same, but never reads.
    Deaf,
    /// Interests for its own producer, which never answers.
    Unanswered,
    /// Commands with signatures that do not verify; reads the answers.
    BadCommands,
    /// Commands without a signature; reads the answers.
    Unsigned,
    /// Requests for the list of faces, all of which are answered; reads it.
    Datasets,
    /// Whole TLVs that are no packets.
    Malformed,
    /// Bytes that are no TLV; connects again when it is closed.
    Garbage,
    /// Connects, sends an Interest and half of another, and goes, again and
    /// again.
    Churn,
}

impl Kind {
    /// All, in the order of the tables.
    pub const ALL: [Self; 10] = [
        Self::Honest,
        Self::NoRoute,
        Self::Deaf,
        Self::Unanswered,
        Self::BadCommands,
        Self::Unsigned,
        Self::Datasets,
        Self::Malformed,
        Self::Garbage,
        Self::Churn,
    ];

    /// Its name in tables and on the command line.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::NoRoute => "no-route",
            Self::Deaf => "deaf",
            Self::Unanswered => "unanswered",
            Self::BadCommands => "bad-commands",
            Self::Unsigned => "unsigned",
            Self::Datasets => "datasets",
            Self::Malformed => "malformed",
            Self::Garbage => "garbage",
            Self::Churn => "churn",
        }
    }
}

/// What a neighbour did.
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// Packets that it sent, or gave to a socket to send.
    pub n_sent: u64,
    /// Connections that it opened.
    pub n_connections: u64,
    /// How long it ran.
    pub elapsed: Duration,
}

impl Activity {
    /// Packets per second.
    #[must_use]
    pub fn pkts_per_s(&self) -> f64 {
        self.n_sent as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// A running neighbour. It ends when this is dropped, or a little later.
pub struct Neighbour {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<Activity>>>,
}

impl Neighbour {
    /// Starts one, `after` some time, beside a program that puts `load` on
    /// `forwarder`.
    #[must_use]
    pub fn start(kind: Kind, after: Duration, forwarder: &Forwarder, load: &Load) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (flag, forwarder, load) = (Arc::clone(&is_over), forwarder.clone(), load.clone());
        let thread = std::thread::spawn(move || {
            std::thread::sleep(after);
            match kind {
                Kind::Honest => be_honest(forwarder, load),
                _ => Hostile::new(kind, forwarder.consumer, &flag).run(),
            }
        });
        Self {
            is_over,
            thread: Some(thread),
        }
    }

    /// Ends it; an equal of the measured program ends by itself.
    ///
    /// # Errors
    /// If it could not do what it is there for.
    pub fn stop(mut self) -> anyhow::Result<Activity> {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("it is stopped once")?;
        let activity = thread.join();
        activity.map_err(|_| anyhow!("the neighbour failed"))?
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn be_honest(forwarder: Forwarder, load: Load) -> anyhow::Result<Activity> {
    let load = Load {
        max_seconds: load.max_seconds + MARGIN_SECONDS,
        ..load
    };
    let measurement = measure(&Target::Forwarder(forwarder), Mode::Miss, &load)?;
    Ok(Activity {
        n_sent: measurement.counters.n_sent,
        n_connections: 2,
        elapsed: Duration::from_secs_f64(measurement.seconds),
    })
}

/// A hostile program.
struct Hostile<'a> {
    kind: Kind,
    address: Address,
    is_over: &'a AtomicBool,
    prefix: Name,
    interest: InterestTemplate,
    random: Random,
    n_sent: u64,
    n_connections: u64,
}

impl<'a> Hostile<'a> {
    fn new(kind: Kind, address: Address, is_over: &'a AtomicBool) -> Self {
        let (prefix, seed) = fresh_prefix();
        let shape = InterestShape {
            lifetime_ms: LIFETIME_MS,
            must_be_fresh: false,
            token_bytes: None,
        };
        Self {
            kind,
            address,
            is_over,
            interest: InterestTemplate::new(&prefix, shape),
            prefix,
            random: Random::new(seed),
            n_sent: 0,
            n_connections: 0,
        }
    }

    fn run(mut self) -> anyhow::Result<Activity> {
        let started = Instant::now();
        // A producer that never answers has a route all the same.
        let mut producer = match self.kind {
            Kind::Unanswered => {
                let mut producer = Link::connect(&self.address)?;
                control::register(&mut producer, &self.prefix, None, Deadline::NONE)?;
                Some(producer)
            }
            _ => None,
        };
        while !self.is_over() {
            let link = self.connect()?;
            match self.kind {
                Kind::Churn => self.come_and_go(link),
                _ => self.flood(link, producer.as_mut())?,
            }
        }
        Ok(Activity {
            n_sent: self.n_sent,
            n_connections: self.n_connections,
            elapsed: started.elapsed(),
        })
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn connect(&mut self) -> anyhow::Result<Link> {
        self.n_connections += 1;
        Ok(Link::connect(&self.address)?)
    }

    /// Sends until the forwarder closes the connection or it is over.
    fn flood(&mut self, mut link: Link, mut producer: Option<&mut Link>) -> anyhow::Result<()> {
        let mut ready = Vec::new();
        while !self.is_over() {
            if !link.has_backlog() {
                for _ in 0..BURST {
                    let (number, nonce) = (self.n_sent, self.random.next_u64());
                    link.outbox()
                        .push(|out| self.write_packet(out, number, nonce));
                    self.n_sent += 1;
                }
            }
            // Closed: the caller connects again.
            if link.flush().is_err() {
                return Ok(());
            }
            if self.kind == Kind::Deaf {
                if link.has_backlog() {
                    wait_until_writable(&link)?;
                }
                continue;
            }
            let patience = if link.has_backlog() {
                LOOK_AGAIN
            } else {
                Duration::ZERO
            };
            let links = std::iter::once(&link).chain(producer.as_deref());
            link::wait(links, patience, &mut ready)?;
            if ready.contains(&0) && link.receive(|_, _| {}).is_err() {
                return Ok(());
            }
            if let Some(producer) = producer.as_deref_mut()
                && ready.contains(&1)
            {
                producer.receive(|_, _| {})?;
            }
        }
        Ok(())
    }

    /// One Interest, half of another, and away: while the forwarder may be in
    /// the middle of its burst.
    fn come_and_go(&mut self, mut link: Link) {
        for number in [self.n_sent, self.n_sent + 1] {
            let nonce = self.random.next_u64() as u32;
            link.outbox().push(|out| {
                let start = out.len();
                self.interest.write(out, number, nonce);
                let len = out.len() - start;
                out.truncate(start + if number == self.n_sent { len } else { len / 2 });
            });
        }
        self.n_sent += 1;
        // Whether it is still there does not matter to one who goes.
        let _ = link.flush();
    }

    fn write_packet(&self, out: &mut Vec<u8>, number: u64, nonce: u64) {
        match self.kind {
            Kind::BadCommands => self.write_command(out, nonce),
            Kind::Unsigned => {
                let number = number.to_be_bytes();
                let name = self.command_name().with(number.as_slice());
                out.extend_from_slice(&fresh_interest(name, nonce));
            }
            Kind::Datasets => {
                let name = CommandName::local("faces", "list").name();
                out.extend_from_slice(&fresh_interest(name, nonce));
            }
            Kind::Malformed => tlv::write_nested(out, types::INTEREST, |out| junk(out, nonce)),
            Kind::Garbage => {
                // No type is zero.
                out.push(0);
                junk(out, nonce);
            }
            _ => self.interest.write(out, number, nonce as u32),
        }
    }

    fn command_name(&self) -> Name {
        let parameters = ControlParameters {
            name: Some(self.prefix.clone()),
            ..ControlParameters::default()
        };
        CommandName::local("rib", "register").with_parameters(&parameters)
    }

    fn write_command(&self, out: &mut Vec<u8>, nonce: u64) {
        let (_, wire) = control::interest_with_signature(
            self.command_name(),
            control::signature_time_ms(),
            nonce,
            Duration::from_millis(LIFETIME_MS),
            |_, _| [nonce as u8; 32],
        );
        out.extend_from_slice(&wire);
    }
}

/// An unsigned Interest for fresh Data under `name`.
fn fresh_interest(name: Name, nonce: u64) -> Vec<u8> {
    Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        nonce: Some(Nonce((nonce as u32).to_be_bytes())),
        lifetime_ms: Some(LIFETIME_MS),
        ..Interest::new(name)
    }
    .encode()
}

/// Bytes without sense.
fn junk(out: &mut Vec<u8>, seed: u64) {
    let mut random = Random::new(seed);
    for _ in 0..JUNK_BYTES / 8 {
        out.extend_from_slice(&random.next_u64().to_be_bytes());
    }
}

fn wait_until_writable(link: &Link) -> io::Result<()> {
    let mut fds = [PollFd::from_borrowed_fd(link.as_fd(), PollFlags::OUT)];
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(LOOK_AGAIN.subsec_nanos()),
    };
    match rustix::event::poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::InterestView;

    use super::*;

    fn packet(kind: Kind) -> Vec<u8> {
        let is_over = AtomicBool::new(false);
        let address = "unix:///nowhere".parse().expect("an address");
        let mut out = Vec::new();
        Hostile::new(kind, address, &is_over).write_packet(&mut out, 5, 6);
        out
    }

    #[test]
    fn interests_and_commands_are_well_formed() {
        for (kind, prefix) in [
            (Kind::NoRoute, "/tachonym-lab/"),
            (Kind::BadCommands, "/localhost/nfd/rib/register/"),
            (Kind::Unsigned, "/localhost/nfd/rib/register/"),
            (Kind::Datasets, "/localhost/nfd/faces/list"),
        ] {
            let wire = packet(kind);
            let interest = InterestView::parse(&wire).expect("well-formed");
            let name = interest.name().to_string();
            assert!(name.starts_with(prefix), "{kind:?}: {name}");
        }
    }

    #[test]
    fn what_should_be_refused_is_no_packet() {
        let wire = packet(Kind::Malformed);
        assert_eq!(tlv::element_len(&wire), Ok(Some(wire.len())));
        InterestView::parse(&wire).expect_err("a TLV that is no Interest");
        tlv::element_len(&packet(Kind::Garbage)).expect_err("no TLV");
    }

    #[test]
    fn labels_are_what_the_command_line_takes() {
        use clap::ValueEnum;
        assert_eq!(Kind::value_variants(), Kind::ALL);
        for kind in Kind::ALL {
            let value = kind.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), kind.label());
        }
    }
}
