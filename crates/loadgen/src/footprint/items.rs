//! Things that a forwarder keeps, made one after the other through its sockets.
//!
//! Each kind knows from the forwarder's answers that it has really taken an
//! item, so that a reading of its memory needs no pause. Refuses to read
//! memory: see [`super::measure`].

use std::io;
use std::time::{Duration, Instant};

use tachonym_packet::Name;

use crate::exchange::address::Address;
use crate::exchange::budget::{Deadline, Phase};
use crate::exchange::control;
use crate::exchange::drive::Driver;
use crate::exchange::flow::{Flow, FlowShape, Mode};
use crate::exchange::frame::Frame;
use crate::exchange::link::{self, Link};
use crate::exchange::template::{DataTemplate, InterestShape, InterestTemplate, Numbering};
use crate::launch::fresh_prefix;
use crate::routes::distinct_prefixes;
use crate::routes::stream::Commands;

/// After this time without progress no more items are expected.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time for one step of cached Data.
const STEP_PATIENCE: Duration = Duration::from_secs(300);
/// How long a pending Interest lives: longer than a measurement.
const PENDING_MS: u64 = 600_000;
/// Interests or commands that the forwarder may have before it shows that it
/// has taken them; few enough for its queues.
const WINDOW: usize = 256;

/// Things that can be added to a forwarder.
pub trait Items {
    /// Adds `n_items` and says how many the forwarder took: fewer at a limit.
    ///
    /// # Errors
    /// A failure of a link.
    fn add(&mut self, n_items: u64) -> anyhow::Result<u64>;

    /// Bytes that each item brings from outside.
    fn own_bytes(&self) -> u64;
}

/// Connections, each of which has sent one Interest and received its Data.
pub struct Faces {
    address: Address,
    producer: Link,
    interest: InterestTemplate,
    data: DataTemplate,
    links: Vec<Link>,
}

impl Faces {
    /// Faces at `address`; the producer that answers them is at `control`.
    ///
    /// # Errors
    /// If the producer's route is refused.
    pub fn new(control: &Address, address: &Address) -> anyhow::Result<Self> {
        let (prefix, seed) = fresh_prefix();
        let mut producer = Link::connect(control)?;
        control::register(&mut producer, &prefix, None, Deadline::NONE)?;
        let shape = InterestShape {
            lifetime_ms: PATIENCE.as_millis() as u64,
            must_be_fresh: false,
            token_bytes: None,
        };
        Ok(Self {
            address: address.clone(),
            producer,
            interest: InterestTemplate::new(&prefix, shape),
            data: DataTemplate::new(&prefix, 100, 3_600_000, seed),
            links: Vec::new(),
        })
    }

    /// Opens one; `None` if it does not work.
    fn open(&mut self) -> io::Result<Option<Link>> {
        let Ok(mut link) = Link::connect(&self.address) else {
            return Ok(None);
        };
        let nonce = self.links.len() as u32;
        // One name for all: the content store holds one Data more, not many.
        let outbox = link.outbox();
        outbox.push(|out| self.interest.write(out, 0, nonce));
        if link.flush().is_err() {
            return Ok(None);
        }
        let deadline = Instant::now() + PATIENCE;
        let mut ready = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            link::wait([&link, &self.producer].into_iter(), left, &mut ready)?;
            let mut is_answered = false;
            if ready.contains(&0) {
                let received = link.receive(|wire, _| {
                    let payload = Frame::parse(wire).unwrap_or_default().payload;
                    is_answered |= self.data.number_of_data(payload).is_some();
                });
                // A forwarder that wants no more faces closes them.
                if received.is_err() {
                    return Ok(None);
                }
            }
            if is_answered {
                return Ok(Some(link));
            }
            if ready.contains(&1) {
                let data = &self.data;
                self.producer.receive(|wire, outbox| {
                    let frame = Frame::parse(wire).unwrap_or_default();
                    if let Some(number) = data.number_of_interest(frame.payload) {
                        outbox.push(|out| data.write(out, number, frame.token));
                    }
                })?;
                self.producer.flush()?;
            }
        }
    }
}

impl Items for Faces {
    fn add(&mut self, n_items: u64) -> anyhow::Result<u64> {
        for n_added in 0..n_items {
            match self.open()? {
                Some(link) => self.links.push(link),
                None => return Ok(n_added),
            }
        }
        Ok(n_items)
    }

    fn own_bytes(&self) -> u64 {
        0
    }
}

/// Interests that no producer answers.
pub struct PendingInterests {
    consumer: Link,
    producer: Link,
    interest: InterestTemplate,
    data: DataTemplate,
    interest_bytes: u64,
    n_sent: u64,
}

impl PendingInterests {
    /// Interests from one face to another at `address`.
    ///
    /// # Errors
    /// If the silent producer's route is refused.
    pub fn new(address: &Address) -> anyhow::Result<Self> {
        let (prefix, seed) = fresh_prefix();
        let mut producer = Link::connect(address)?;
        control::register(&mut producer, &prefix, None, Deadline::NONE)?;
        let shape = InterestShape {
            lifetime_ms: PENDING_MS,
            must_be_fresh: false,
            token_bytes: None,
        };
        let interest = InterestTemplate::new(&prefix, shape);
        let mut wire = Vec::new();
        interest.write(&mut wire, 0, 0);
        Ok(Self {
            consumer: Link::connect(address)?,
            producer,
            interest,
            // Never sent: it knows the names.
            data: DataTemplate::new(&prefix, 0, 0, seed),
            interest_bytes: wire.len() as u64,
            n_sent: 0,
        })
    }
}

impl Items for PendingInterests {
    fn add(&mut self, n_items: u64) -> anyhow::Result<u64> {
        let (mut n_sent, mut n_pending, mut n_refused) = (0, 0, 0);
        let mut progress_at = Instant::now();
        let mut ready = Vec::new();
        while n_pending + n_refused < n_items {
            while n_sent < n_items && n_sent - n_pending - n_refused < WINDOW as u64 {
                let (number, nonce) = (self.n_sent, self.n_sent as u32);
                let outbox = self.consumer.outbox();
                outbox.push(|out| self.interest.write(out, number, nonce));
                self.n_sent += 1;
                n_sent += 1;
            }
            self.consumer.flush()?;
            let left = PATIENCE.saturating_sub(progress_at.elapsed());
            if left.is_zero() {
                break;
            }
            let links = [&self.consumer, &self.producer].into_iter();
            link::wait(links, left, &mut ready)?;
            let before = n_pending + n_refused;
            if ready.contains(&0) {
                self.consumer.receive(|wire, _| {
                    let frame = Frame::parse(wire).unwrap_or_default();
                    n_refused += u64::from(frame.nack_code.is_some());
                })?;
            }
            if ready.contains(&1) {
                let data = &self.data;
                self.producer.receive(|wire, _| {
                    let payload = Frame::parse(wire).unwrap_or_default().payload;
                    n_pending += u64::from(data.number_of_interest(payload).is_some());
                })?;
            }
            if n_pending + n_refused > before {
                progress_at = Instant::now();
            }
        }
        Ok(n_pending)
    }

    fn own_bytes(&self) -> u64 {
        self.interest_bytes
    }
}

/// Routes of one face.
pub struct Routes {
    link: Link,
    prefixes: std::vec::IntoIter<Name>,
}

impl Routes {
    /// At most `max_routes` routes, registered over `address`.
    ///
    /// # Errors
    /// If no forwarder listens there.
    pub fn new(address: &Address, max_routes: u64) -> anyhow::Result<Self> {
        Ok(Self {
            link: Link::connect(address)?,
            prefixes: distinct_prefixes(max_routes).into_iter(),
        })
    }
}

impl Items for Routes {
    fn add(&mut self, n_items: u64) -> anyhow::Result<u64> {
        let prefixes: Vec<Name> = self.prefixes.by_ref().take(n_items as usize).collect();
        let commands = Commands::register(&prefixes, 2 * PATIENCE);
        Ok(commands.carry_out(&mut self.link, WINDOW)?.n_done)
    }

    fn own_bytes(&self) -> u64 {
        0
    }
}

/// Data that were fetched once.
pub struct CachedData {
    driver: Driver,
}

impl CachedData {
    /// Data with `content_bytes` of Content, fetched through `address`.
    ///
    /// # Errors
    /// If the producer's route is refused or carries nothing.
    pub fn new(address: &Address, content_bytes: usize) -> anyhow::Result<Self> {
        let (prefix, seed) = fresh_prefix();
        let shape = FlowShape {
            mode: Mode::Miss,
            in_flight: WINDOW / 4,
            catalogue: 0,
            interest: InterestShape {
                lifetime_ms: PATIENCE.as_millis() as u64,
                must_be_fresh: false,
                token_bytes: None,
            },
            content_bytes,
            freshness_ms: 3_600_000,
            numbering: Numbering::Generic,
        };
        let (consumer, producer) = (Link::connect(address)?, Link::connect(address)?);
        let mut flow = Flow::new(prefix.clone(), consumer, producer, &shape, seed);
        control::register(flow.producer_mut(), &prefix, None, Deadline::NONE)?;
        let mut driver = Driver::new(vec![flow], false);
        driver.probe(Deadline::NONE)?;
        Ok(Self { driver })
    }
}

impl Items for CachedData {
    fn add(&mut self, n_items: u64) -> anyhow::Result<u64> {
        self.driver.flows_mut()[0].allow(n_items);
        let phase = Phase::lasting(Instant::now(), STEP_PATIENCE, PATIENCE);
        self.driver.run(phase, || {})?;
        Ok(self.driver.flows()[0].counters().n_exchanges)
    }

    fn own_bytes(&self) -> u64 {
        self.driver.flows()[0].packet_bytes() as u64
    }
}
