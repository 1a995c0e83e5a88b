//! The router's engine with a content store of one level or two, between consumers and a
//! producer in memory, in one thread. The SSD level's device is owned here, as a worker of the
//! router owns it: requests and completions are moved between both when the owner of the bed
//! says so.

use anyhow::Context as _;
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Output, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, HashKey, MonoNs, NameView};
use tachonym_policy::PolicyConfig;
use tachonym_store::device::{Completion, Device};
use tachonym_store::{Counters, SecondLevel};
use tachonym_tables::{CsCapacity, FibConfig, NextHop};

/// The face of the first consumer.
const CONSUMER: FaceId = FaceId(256);
/// The face of the producer, which answers what the store does not.
pub(crate) const PRODUCER: FaceId = FaceId(1_024);
/// Requests of the device that are under way at most while a store is filled: what is offered
/// then finds room where batches are put together.
const MAX_FILLING: usize = 4;
/// Data that are put together or wait to be written meanwhile, which take a part of the memory
/// for that.
const MAX_WAITING: u64 = 2_000;

/// The DRAM level of a bed, and its faces.
pub(crate) struct StoreOptions<'a> {
    /// Room of the DRAM level.
    pub(crate) capacity: CsCapacity,
    /// Its admission and eviction.
    pub(crate) policy: PolicyConfig,
    /// Of the hashes of names.
    pub(crate) key: HashKey,
    /// Consumers; each has a face.
    pub(crate) n_consumers: u16,
    /// The prefix that the producer answers.
    pub(crate) prefix: NameView<'a>,
}

/// An engine, with an SSD level and its device if there are two levels; `out` receives what
/// the engine sends.
pub(crate) struct StoreBed<O> {
    pub(crate) engine: Engine,
    pub(crate) out: O,
    device: Option<Box<dyn Device>>,
    completions: Vec<Completion>,
}

impl<O: Output> StoreBed<O> {
    /// A bed with an empty DRAM level alone.
    ///
    /// # Errors
    /// If there is not as much memory.
    pub(crate) fn new(options: StoreOptions<'_>, out: O) -> anyhow::Result<Self> {
        let n_pkts = options.capacity.max_pkts;
        let config = EngineConfig {
            cs: options.capacity,
            cs_policy: options.policy,
            fib: FibConfig::with_max_entries(1_024),
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(config, options.key, 3)
            .with_context(|| format!("an engine with {n_pkts} Data"))?;
        engine.add_face(PRODUCER, FaceTraits::REMOTE);
        for consumer in 0..options.n_consumers {
            engine.add_face(face_of(consumer), FaceTraits::REMOTE);
        }
        engine.add_next_hop(options.prefix, NextHop::new(PRODUCER, 0))?;
        Ok(Self {
            engine,
            out,
            device: None,
            completions: Vec::new(),
        })
    }

    /// Adds an SSD level on a device.
    pub(crate) fn set_second(&mut self, second: SecondLevel, device: Box<dyn Device>) {
        self.engine.cs_mut().set_second_level(Some(second));
        self.device = Some(device);
    }

    /// The SSD level.
    ///
    /// # Errors
    /// If there is one level.
    pub(crate) fn second(&self) -> anyhow::Result<&SecondLevel> {
        self.engine.second_level().context("there is one level")
    }

    /// What the SSD level has counted; zeros if there is none.
    pub(crate) fn counters(&self) -> Counters {
        let second = self.engine.second_level();
        second.map_or_else(Counters::default, SecondLevel::counters)
    }

    /// The device.
    pub(crate) fn device(&self) -> Option<&dyn Device> {
        self.device.as_deref()
    }

    /// Requests that the device has.
    pub(crate) fn n_in_flight(&self) -> usize {
        self.device().map_or(0, Device::n_in_flight)
    }

    /// Whether more Data may be offered while a store is filled: not faster than the device
    /// writes them.
    pub(crate) fn may_fill(&self) -> bool {
        let counters = self.counters();
        let n_waiting = counters.n_offered - counters.n_ended();
        self.n_in_flight() <= MAX_FILLING && n_waiting <= MAX_WAITING
    }

    /// Receives a burst of packets without headers.
    ///
    /// # Errors
    /// If a packet is malformed.
    pub(crate) fn receive<'a>(
        &mut self,
        now: MonoNs,
        face: FaceId,
        wires: impl Iterator<Item = &'a [u8]>,
    ) -> anyhow::Result<()> {
        let headers = Headers::default();
        let mut rx = Vec::with_capacity(wires.size_hint().0);
        for wire in wires {
            let packet = RxPacket::parse(face, &headers, wire);
            rx.push(packet.context("the workload is well-formed")?);
        }
        self.engine.handle_burst(now, &rx, &mut self.out);
        Ok(())
    }

    /// Moves requests to the device and collects completions for [`Self::complete`]. Returns
    /// whether there were requests. An emulated device may wait here.
    pub(crate) fn exchange(&mut self, now: MonoNs) -> bool {
        let (Some(device), Some(second)) = (&mut self.device, self.engine.cs_mut().second_level())
        else {
            return false;
        };
        let mut has_submitted = false;
        while let Some(request) = second.poll_request() {
            if let Err(request) = device.submit(request) {
                second.give_back(request);
                break;
            }
            has_submitted = true;
        }
        if has_submitted {
            device.start();
        }
        device.poll(now, &mut self.completions);
        has_submitted
    }

    /// Gives the engine at most `max` completions, and does what is due. Returns how many.
    pub(crate) fn complete(&mut self, now: MonoNs, max: usize) -> usize {
        let n_completed = self.completions.len().min(max);
        for completion in self.completions.drain(..n_completed) {
            self.engine
                .handle_completion(now, completion, &mut self.out);
        }
        if self.engine.poll_timeout().is_some_and(|due| due <= now) {
            self.engine.handle_timeout(now, &mut self.out);
        }
        n_completed
    }
}

/// The face of a consumer.
pub(crate) const fn face_of(consumer: u16) -> FaceId {
    FaceId(CONSUMER.0 + consumer as u64)
}
