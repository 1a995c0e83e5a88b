//! How other threads reach the worker: jobs that it runs between two bursts.
//!
//! The worker owns the engine and the faces alone. Whoever wants to see or
//! change them sends a closure; it runs on the worker's thread, so nothing in
//! the data plane is locked, and [`WorkerHandle::call`] returns when the job
//! has taken effect.

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use tachonym_face::Waker;

use crate::worker::Plane;

/// A job for the worker's thread.
pub(crate) type Job = Box<dyn FnOnce(&mut Plane) + Send>;

/// The worker has ended; nothing answers any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the forwarding worker has stopped")]
pub(crate) struct WorkerGone;

/// Sends jobs to the worker. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WorkerHandle {
    jobs: Sender<Job>,
    waker: Waker,
}

impl WorkerHandle {
    /// A handle, and the queue from which the worker takes its jobs.
    pub(crate) fn new(waker: Waker) -> (Self, Receiver<Job>) {
        let (jobs, queue) = unbounded();
        (Self { jobs, waker }, queue)
    }

    /// Runs `job` on the worker's thread and returns its answer.
    ///
    /// # Errors
    /// When the worker has stopped.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Plane) -> R + Send + 'static,
    ) -> Result<R, WorkerGone> {
        let (answer, wait) = bounded(1);
        self.post(move |plane| {
            // The caller may have gone; then nobody wants the answer.
            let _ = answer.send(job(plane));
        })?;
        wait.recv().map_err(|_| WorkerGone)
    }

    /// Runs `job` on the worker's thread some time soon.
    ///
    /// # Errors
    /// When the worker has stopped.
    pub(crate) fn post(
        &self,
        job: impl FnOnce(&mut Plane) + Send + 'static,
    ) -> Result<(), WorkerGone> {
        self.jobs.send(Box::new(job)).map_err(|_| WorkerGone)?;
        self.waker.wake();
        Ok(())
    }
}
