//! The loop that carries flows through a phase: wait, read, answer, repeat.
//!
//! One thread drives consumers and producers alike, so that the generator
//! takes one core and the forwarder has the others. Owns the clock. Refuses to
//! judge the outcome: see [`super::report`].

use std::io;
use std::time::{Duration, Instant};

use anyhow::Context;
use tachonym_packet::MonoNs;

use super::budget::{Deadline, Phase};
use super::flow::Flow;
use super::link;

/// How often Interests are given up and `on_tick` is called.
const TICK_MS: u64 = 50;
/// Time for one probe, and how many there are.
const PROBE_WAIT: Duration = Duration::from_millis(250);
const N_PROBES: u32 = 20;

/// Flows under way together.
pub struct Driver {
    flows: Vec<Flow>,
    origin: Instant,
    is_spinning: bool,
    ready: Vec<usize>,
}

impl Driver {
    /// A driver that waits in poll(2), or with `is_spinning`, and wherever a flow has
    /// a rate, asks again and again without sleeping.
    #[must_use]
    pub fn new(flows: Vec<Flow>, is_spinning: bool) -> Self {
        Self {
            flows,
            origin: Instant::now(),
            is_spinning,
            ready: Vec::new(),
        }
    }

    /// The flows.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The flows, to register them or allow them something.
    pub fn flows_mut(&mut self) -> &mut [Flow] {
        &mut self.flows
    }

    fn now(&self) -> MonoNs {
        MonoNs::ZERO + self.origin.elapsed()
    }

    /// Waits until every flow has brought one Data from its producer to its
    /// consumer. Routes and on-demand faces may take a moment to work.
    ///
    /// # Errors
    /// If a flow stays silent for five seconds or until `deadline`, or a link
    /// fails.
    pub fn probe(&mut self, deadline: Deadline) -> anyhow::Result<()> {
        for flow in &mut self.flows {
            let mut is_answered = false;
            let mut n_probes = 0;
            while n_probes < N_PROBES && !deadline.is_over(Instant::now()) {
                flow.send_probe(n_probes)?;
                n_probes += 1;
                let now = Instant::now();
                let next_probe = now + deadline.cap(now, PROBE_WAIT);
                while !is_answered && Instant::now() < next_probe {
                    let left = next_probe.saturating_duration_since(Instant::now());
                    let links = [flow.consumer(), flow.producer()].into_iter();
                    link::wait(links, left, &mut self.ready)?;
                    if self.ready.contains(&1) {
                        flow.serve_producer()?;
                    }
                    if self.ready.contains(&0) {
                        is_answered = flow.receive_probe()?;
                    }
                }
                if is_answered {
                    break;
                }
            }
            let n_produced = flow.counters().n_produced;
            is_answered.then_some(()).with_context(|| {
                format!(
                    "{n_probes} Interests under {} got no Data; {n_produced} of them came to \
                     the producer",
                    flow.prefix()
                )
            })?;
        }
        Ok(())
    }

    /// Carries all flows until each is done or the time of sending is over;
    /// then only what is in flight is awaited, for its lifetime or until the
    /// phase ends. Calls `on_tick` about twenty times a second. Returns the
    /// time from the start to the last right Data.
    ///
    /// # Errors
    /// A failure of a link.
    pub fn run(&mut self, phase: Phase, mut on_tick: impl FnMut()) -> io::Result<Duration> {
        let started = self.now();
        let since_origin = |at: Instant| MonoNs::ZERO + at.saturating_duration_since(self.origin);
        let send_until = since_origin(phase.send_until());
        let end = since_origin(phase.end());
        let mut is_sending = true;
        let mut next_tick = started.plus_ms(TICK_MS);
        for flow in &mut self.flows {
            flow.send_interests(started)?;
        }
        while !self.flows.iter().all(Flow::is_done) {
            let patience = if self.is_spinning || self.flows.iter().any(Flow::has_rate) {
                Duration::ZERO
            } else {
                next_tick.min(end).saturating_since(self.now())
            };
            let links = self.flows.iter().flat_map(|f| [f.consumer(), f.producer()]);
            link::wait(links, patience, &mut self.ready)?;
            let mut now = self.now();
            for &link_idx in &self.ready {
                let flow = &mut self.flows[link_idx / 2];
                if link_idx % 2 == 0 {
                    flow.serve_consumer(now)?;
                } else {
                    flow.serve_producer()?;
                }
                now = MonoNs::ZERO + self.origin.elapsed();
            }
            for flow in self.flows.iter_mut().filter(|flow| flow.has_rate()) {
                flow.send_interests(now)?;
            }
            if is_sending && now >= send_until {
                is_sending = false;
                self.flows.iter_mut().for_each(Flow::stop);
            }
            if now >= end {
                self.flows.iter_mut().for_each(Flow::cut_off);
            }
            if now >= next_tick {
                next_tick = now.plus_ms(TICK_MS);
                for flow in &mut self.flows {
                    flow.expire(now);
                    flow.send_interests(now)?;
                }
                on_tick();
            }
        }
        let last = self.flows.iter().map(Flow::last_exchange).max();
        Ok(match last {
            Some(last) if last > started => last.saturating_since(started),
            _ => self.now().saturating_since(started),
        })
    }
}
