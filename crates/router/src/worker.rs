//! A thread on which packets travel.
//!
//! A round reads a burst, carries it through the engine or to the threads where it is at
//! home, takes what these have sent, sends what came of it, and then runs the jobs that
//! others have asked for. It blocks in `epoll_wait` alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use crossbeam_channel::Receiver;
use tachonym_face::{RxBatch, monotonic_now};

use crate::handle::Job;
use crate::plane::Plane;

/// Most jobs between two bursts, so that management never starves packets.
const MAX_JOBS_PER_ROUND: usize = 64;

/// No job begins after so many Data of the manager between two bursts: each
/// costs as much as a packet from outside.
const MAX_INJECTED_PER_ROUND: usize = 64;

/// The thread, to be run on one.
pub(crate) struct Forwarder {
    plane: Plane,
    jobs: Receiver<Job>,
    stop: Arc<AtomicBool>,
}

impl Forwarder {
    pub(crate) const fn new(plane: Plane, jobs: Receiver<Job>, stop: Arc<AtomicBool>) -> Self {
        Self { plane, jobs, stop }
    }

    /// Forwards until asked to stop.
    ///
    /// # Errors
    /// When the kernel refuses to wait for packets at all, or a worker that failed cannot be
    /// replaced.
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        let mut batch = RxBatch::new();
        let mut spare = Vec::new();
        let plane = &mut self.plane;
        while !self.stop.load(Ordering::Relaxed) {
            let timeout = match self.jobs.is_empty() {
                true => plane.timeout(),
                false => Some(Duration::ZERO),
            };
            let before = monotonic_now();
            plane
                .poll(before, timeout, &mut batch)
                .context("cannot wait for packets")?;
            let now = batch.received_at();
            let waited_ns = match timeout {
                Some(Duration::ZERO) => 0,
                _ => now.saturating_since(before).as_nanos() as u64,
            };
            plane.busy.note(waited_ns, now);
            plane.publish_done(now);
            plane.note_received(batch.len(), waited_ns);
            plane.handle_face_events();
            spare = plane.receive_all(&batch, spare);
            plane.handle_crossing(now);
            // What has come from disks in time is seen before it is called late.
            plane.take_from_ssd(now);
            plane.handle_timeout(now);
            run_jobs(plane, &self.jobs);
            plane.give_to_ssd(now);
            plane.hand_over_retired();
            plane.handle_face_events();
            plane.flush();
            if let Some(error) = plane.take_failure() {
                return Err(error);
            }
        }
        plane.shut_down();
        Ok(())
    }
}

fn run_jobs(plane: &mut Plane, jobs: &Receiver<Job>) {
    plane.n_injected = 0;
    for job in jobs.try_iter().take(MAX_JOBS_PER_ROUND) {
        plane.run(job);
        if plane.n_injected >= MAX_INJECTED_PER_ROUND {
            break;
        }
    }
}
