//! How a thread waits for packets, of sockets and of rings.

use std::time::Duration;

use tachonym_face::{RxBatch, Wait, thread_cpu_ns};
use tachonym_packet::MonoNs;

use super::Plane;

/// Longest wait for packets: a bound, should a wake-up ever be missed.
const MAX_WAIT: Duration = Duration::from_secs(1);

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
                self.watch(timeout.map_or(ns, |timeout| ns.min(timeout.as_nanos() as u64)));
                self.faces.poll(Some(Duration::ZERO), batch)?;
            }
            // Packets in rings gather, too: the thread does not count as asleep.
            Wait::Gather { ns } => {
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
