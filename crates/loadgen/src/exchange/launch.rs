//! A forwarder that is started for a measurement and stopped after it, or one
//! that runs already.
//!
//! Owns child processes: none outlives its [`Running`]. Refuses to know any
//! forwarder's options: it starts the command it is given.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tachonym_bench::random::{Random, fresh_seed};
use tachonym_packet::{Component, Name, tlv, types};
use tachonym_protocol::CommandName;

use super::address::Address;
use super::control;
use super::frame::Frame;
use super::link::{self, Link};
use super::template::{DataTemplate, InterestShape, InterestTemplate};
use crate::process::Process;

/// Keys for a configuration of the router in which programs of this machine may
/// command over UDP, as the generator does where it is given no other address.
pub const LOCAL_UDP: &str =
    "faces.udp.local = \"loopback\"\nmanagement.transports = [\"unix\", \"tcp\", \"udp\"]\n";

/// Longest wait for a forwarder's first exchange.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait for its end after it was asked to end.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Pause between attempts to connect, and unit of waiting for an end.
const RETRY_PAUSE: Duration = Duration::from_micros(200);
/// After this time without an answer a packet is sent again.
const RESEND_AFTER: Duration = Duration::from_millis(20);

/// The forwarder to measure: one that runs, or one to start.
#[derive(Args, Clone, Debug)]
pub struct ForwarderArgs {
    /// Where the forwarder listens: unix:///path, tcp://127.0.0.1:6363 or
    /// udp://127.0.0.1:6363
    #[arg(long = "forwarder", value_name = "URI")]
    pub address: Address,
    /// Process id of the forwarder [default: of the process that owns the Unix socket]
    #[arg(long, value_name = "PID", conflicts_with = "start")]
    pub pid: Option<u32>,
    /// Starts it with this command line, and stops it at the end
    #[arg(long, value_name = "COMMAND")]
    pub start: Option<String>,
}

/// A forwarder that can be measured.
pub struct Attached {
    /// Its process.
    pub process: Process,
    /// Stops it when dropped, if it was started for this.
    pub started: Option<Running>,
}

impl ForwarderArgs {
    /// Finds the forwarder, or starts it and waits until it carries packets.
    ///
    /// # Errors
    /// If it does not run, is not to be found, or carries nothing.
    pub fn attach(&self) -> anyhow::Result<Attached> {
        if let Some(command) = &self.start {
            let mut running = Running::start(command)?;
            running.first_exchange(&self.address, &self.address)?;
            return Ok(Attached {
                process: running.process()?,
                started: Some(running),
            });
        }
        let pid = match self.pid {
            Some(pid) => Some(pid),
            None => Link::connect(&self.address)?.peer_pid(),
        };
        let pid = pid.context("the forwarder's process is not known; add --pid")?;
        Ok(Attached {
            process: Process::find(pid).with_context(|| format!("cannot measure process {pid}"))?,
            started: None,
        })
    }
}

/// A child process that ends with this value at the latest.
pub struct Running {
    child: Child,
    command: String,
    started_at: Instant,
}

/// When, after its start, a forwarder did something for the first time.
#[derive(Clone, Copy, Debug)]
pub struct FirstExchange {
    /// Took a connection; over UDP this says nothing.
    pub connected: Duration,
    /// Answered the command that registered a route.
    pub registered: Duration,
    /// Brought a Data from one program to another.
    pub exchanged: Duration,
}

impl Running {
    /// Starts `command`, a shell's command line whose process becomes the
    /// forwarder. What it prints is dropped, its errors go where this process's
    /// errors go.
    ///
    /// # Errors
    /// If no shell can be started.
    pub fn start(command: &str) -> anyhow::Result<Self> {
        control::forget_signature_times();
        let started_at = Instant::now();
        let child = Command::new("/bin/sh")
            .arg("-c")
            .arg(format!("exec {command}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Interrupting the measurement reaches the forwarder through
            // `drop`, not through the terminal.
            .process_group(0)
            .spawn()
            .context("cannot start /bin/sh")?;
        Ok(Self {
            child,
            command: command.to_owned(),
            started_at,
        })
    }

    /// Its process.
    ///
    /// # Errors
    /// If it has ended.
    pub fn process(&self) -> anyhow::Result<Process> {
        Process::find(self.child.id()).with_context(|| format!("`{}` has ended", self.command))
    }

    /// An error if it has ended.
    fn check_alive(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("`{}` has ended: {status}", self.command),
        }
    }

    /// Connects a producer and a consumer as soon as the forwarder lets them,
    /// registers a route and carries one Data, trying everything again and
    /// again until it works.
    ///
    /// # Errors
    /// If that takes half a minute, the forwarder ends meanwhile, or another
    /// process listens at `producer`.
    pub fn first_exchange(
        &mut self,
        producer: &Address,
        consumer: &Address,
    ) -> anyhow::Result<FirstExchange> {
        let mut random = Random::new(fresh_seed());
        let (prefix, _) = fresh_prefix();
        let (mut producer, connected) = self.connect(producer)?;
        if let Some(pid) = producer.peer_pid()
            && pid != self.child.id()
        {
            bail!(
                "process {pid} listens on this address, not `{}`; stop it first",
                self.command
            );
        }
        let registered = self.register(&mut producer, &prefix, &mut random)?;
        let (mut consumer, _) = self.connect(consumer)?;
        let exchanged = self.exchange_once(&mut producer, &mut consumer, &prefix, &mut random)?;
        Ok(FirstExchange {
            connected,
            registered,
            exchanged,
        })
    }

    /// Whether there is time for another attempt; waits a little before it.
    fn pause(&mut self, what: &str) -> anyhow::Result<()> {
        self.check_alive()?;
        if self.started_at.elapsed() > START_PATIENCE {
            bail!(
                "`{}` {what} for {} s",
                self.command,
                START_PATIENCE.as_secs()
            );
        }
        std::thread::sleep(RETRY_PAUSE);
        Ok(())
    }

    fn connect(&mut self, address: &Address) -> anyhow::Result<(Link, Duration)> {
        loop {
            match Link::connect(address) {
                Ok(link) => return Ok((link, self.started_at.elapsed())),
                Err(_) => self.pause("took no connection")?,
            }
        }
    }

    fn register(
        &mut self,
        link: &mut Link,
        prefix: &Name,
        random: &mut Random,
    ) -> anyhow::Result<Duration> {
        let parameters = control::route_parameters(prefix, None);
        loop {
            let command = CommandName::local("rib", "register");
            // A Nack or a refusal may mean that management is not there yet.
            if let Ok(Some(response)) =
                control::try_command(link, command, &parameters, RESEND_AFTER, random.next_u64())
                && response.code == 200
            {
                return Ok(self.started_at.elapsed());
            }
            self.pause("registered no route")?;
        }
    }

    fn exchange_once(
        &mut self,
        producer: &mut Link,
        consumer: &mut Link,
        prefix: &Name,
        random: &mut Random,
    ) -> anyhow::Result<Duration> {
        let interest = InterestTemplate::new(
            prefix,
            InterestShape {
                lifetime_ms: 1_000,
                must_be_fresh: false,
                token_bytes: None,
            },
        );
        let data = DataTemplate::new(prefix, 100, 1_000, random.next_u64());
        let mut ready = Vec::new();
        for number in 0.. {
            let nonce = random.next_u64() as u32;
            let outbox = consumer.outbox();
            outbox.push(|out| interest.write(out, number, nonce));
            let resend_at = Instant::now() + RESEND_AFTER;
            loop {
                consumer.flush()?;
                producer.flush()?;
                let left = resend_at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                link::wait([&*consumer, &*producer].into_iter(), left, &mut ready)?;
                let mut is_there = false;
                if ready.contains(&0) {
                    consumer.receive(|wire, _| {
                        let payload = Frame::parse(wire).unwrap_or_default().payload;
                        is_there |= data.number_of_data(payload).is_some();
                    })?;
                }
                if is_there {
                    return Ok(self.started_at.elapsed());
                }
                if ready.contains(&1) {
                    producer.receive(|wire, outbox| {
                        let frame = Frame::parse(wire).unwrap_or_default();
                        if let Some(number) = data.number_of_interest(frame.payload) {
                            outbox.push(|out| data.write(out, number, frame.token));
                        }
                    })?;
                }
            }
            self.pause("carried no packet")?;
        }
        unreachable!("there are more numbers than attempts")
    }

    /// Asks it to end and waits until it has; says how long that took.
    ///
    /// # Errors
    /// If it had to be killed.
    pub fn stop(mut self) -> anyhow::Result<Duration> {
        let asked_at = Instant::now();
        if self.end_politely() {
            return Ok(asked_at.elapsed());
        }
        bail!("`{}` did not end on SIGTERM", self.command)
    }

    /// Whether it ended by itself after SIGTERM.
    fn end_politely(&mut self) -> bool {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended before: then there is nothing to end.
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_PATIENCE;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(RETRY_PAUSE),
                Ok(Some(_)) => return true,
                Err(_) => break,
            }
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) && !self.end_politely() {
            // What cannot be killed cannot be reported from here either.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Raises the limit of open files as far as this process may.
///
/// # Errors
/// What the kernel reports.
pub fn raise_open_files_limit() -> io::Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(())
}

/// A Data packet with this name, which answers an Interest for it. The
/// signature is no real one, as in [`DataTemplate`].
#[must_use]
pub fn plain_data(name: &Name) -> Vec<u8> {
    let mut wire = Vec::new();
    tlv::write_nested(&mut wire, types::DATA, |out| {
        name.encode_into(out);
        tlv::write_tlv(out, types::CONTENT, b"tachonym-lab");
        tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
        });
        tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0; 32]);
    });
    wire
}

/// A prefix that no other run has, and the seed it is made from.
#[must_use]
pub fn fresh_prefix() -> (Name, u64) {
    let seed = fresh_seed();
    let run = Component::generic(format!("{seed:016x}"));
    (Name::new().with("tachonym-lab").with(&run), seed)
}
