//! How a thread waits for packets, of sockets and of rings, and when it wakes others for those
//! that it has put into theirs.
//!
//! To wake a thread costs both as much as some packets do. So a thread that has just had packets
//! looks for more before it sleeps, and until then keeps what is for threads that sleep: they
//! are woken once for all of it. Few packets are not kept, for they would wait longer than they
//! save; nor is a batch that is full.

use std::time::Duration;

use tachonym_face::{RxBatch, Wait, thread_cpu_ns};
use tachonym_packet::MonoNs;

use super::Plane;

/// Longest wait for packets: a bound, should a wake-up ever be missed.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// After a round with fewer packets, none are kept.
const MIN_KEPT_PKTS: u32 = 8;
/// Most rounds in a row after which packets are kept.
const MAX_ROUNDS_KEPT: u32 = 4;

impl Plane {
    /// Waits for packets, as [`tachonym_face::Waiting`] decides, and reads a burst. It is `now`.
    ///
    /// # Errors
    /// When the kernel refuses to wait at all.
    pub(crate) fn poll(
        &mut self,
        now: MonoNs,
        timeout: Option<Duration>,
        batch: &mut RxBatch,
    ) -> std::io::Result<()> {
        let may_wait = timeout != Some(Duration::ZERO);
        let n_pkts = self.faces.counters().n_in_packets + self.counters.n_crossed;
        match self.waiting.next(now, n_pkts, may_wait, thread_cpu_ns) {
            Wait::Poll => {
                std::hint::spin_loop();
                self.faces.poll(Some(Duration::ZERO), batch)?;
            }
            Wait::Watch { ns } => {
                self.flush_links();
                self.watch(timeout.map_or(ns, |timeout| ns.min(timeout.as_nanos() as u64)));
                self.faces.poll(Some(Duration::ZERO), batch)?;
            }
            // Packets in rings gather, too: the thread does not count as asleep.
            Wait::Gather { ns } => {
                self.flush_links();
                let duration = Duration::from_nanos(ns);
                self.faces
                    .gather(timeout.map_or(duration, |timeout| timeout.min(duration)))?;
                self.faces.poll(Some(Duration::ZERO), batch)?;
            }
            Wait::Block => self.block(timeout.unwrap_or(MAX_WAIT).min(MAX_WAIT), batch)?,
        }
        self.waiting.ended(batch.received_at());
        if let Some(cpu_ns) = self.faces.take_wait_cpu_ns() {
            self.waiting.note_wake_cost(cpu_ns);
        }
        Ok(())
    }

    /// Waits until something arrives, by rings included, for `timeout` at most.
    fn block(&mut self, timeout: Duration, batch: &mut RxBatch) -> std::io::Result<()> {
        if self.n_in_round > 0 && !self.team.layout.is_single() {
            // Not yet asleep: others would wake it for packets while it finds some by itself.
            self.faces.poll(Some(Duration::ZERO), batch)?;
            if !batch.is_empty() || !self.links.is_idle() {
                return Ok(());
            }
            self.flush_links();
        }
        self.team.flag(self.me).note_asleep();
        // Once more, now that others see that this thread is asleep.
        let timeout = match self.links.is_idle() {
            true => timeout,
            false => Duration::ZERO,
        };
        if self.waiting.wants_wake_cost() {
            self.faces.measure_next_wait();
        }
        let outcome = self.faces.poll(Some(timeout), batch);
        self.team.flag(self.me).note_awake();
        outcome
    }

    /// Hands everything over to the kernel and to other threads, but for what is kept.
    pub(crate) fn flush(&mut self) {
        let keeps = self.n_in_round >= MIN_KEPT_PKTS && self.n_rounds_kept < MAX_ROUNDS_KEPT;
        if keeps {
            let team = &self.team;
            let awake = |thread| !team.flag(thread).is_asleep();
            team.wake(self.links.flush_to(awake));
        }
        if keeps && self.links.has_unsent() {
            self.n_rounds_kept += 1;
        } else {
            self.flush_links();
        }
        self.faces.flush();
    }

    /// Hands over what is for other threads, and wakes those of them that sleep.
    pub(super) fn flush_links(&mut self) {
        self.n_rounds_kept = 0;
        if !self.team.layout.is_single() {
            self.team.wake(self.links.flush());
            self.foreign_drops.tell(&self.team);
            // Not before what came of them is on its way: who sent them waits for that.
            for (from, batch) in self.done.drain(..) {
                self.links.give_back(from, batch);
            }
        }
    }

    /// Rests until something arrives by rings, for about `ns` at most.
    fn watch(&self, ns: u64) {
        let flag = self.team.flag(self.me);
        flag.note_watching();
        // Once more, now that others see that this thread watches.
        if self.links.is_idle() {
            self.waiting.monitor().watch(flag, ns);
        }
        flag.note_awake();
    }
}
