//! How other threads reach those on which packets travel: jobs that these run between two
//! bursts.
//!
//! Each of them owns its faces, its engine and its ends of rings alone. Whoever wants to see
//! or change them sends a closure; it runs on the thread, so nothing in the data plane is
//! locked, and [`Threads::at`] returns when the job has taken effect.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use tachonym_face::Waker;
use tachonym_forward::Engine;

use crate::plane::Plane;
use crate::team::Team;

/// A job for a thread.
pub(crate) type Job = Box<dyn FnOnce(&mut Plane) + Send>;

/// The thread has ended, or no worker is left; nothing answers any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the forwarding worker has stopped")]
pub(crate) struct WorkerGone;

/// Sends jobs to the threads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Threads {
    team: Arc<Team>,
    inboxes: Arc<[JobInbox]>,
}

/// How one thread is reached.
pub(crate) struct JobInbox {
    jobs: Sender<Job>,
    waker: Waker,
}

impl JobInbox {
    /// An inbox, and the queue from which its thread takes the jobs.
    pub(crate) fn new(waker: Waker) -> (Self, Receiver<Job>) {
        let (jobs, queue) = unbounded();
        (Self { jobs, waker }, queue)
    }

    fn post(&self, job: Job) -> Result<(), WorkerGone> {
        self.jobs.send(job).map_err(|_| WorkerGone)?;
        self.waker.wake();
        Ok(())
    }
}

impl Threads {
    pub(crate) fn new(team: Arc<Team>, inboxes: Vec<JobInbox>) -> Self {
        Self {
            team,
            inboxes: inboxes.into(),
        }
    }

    /// What the threads know of each other.
    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// Runs `job` on a thread and returns its answer.
    ///
    /// # Errors
    /// When the thread has ended, or the job failed.
    pub(crate) fn at<R: Send + 'static>(
        &self,
        thread: usize,
        job: impl FnOnce(&mut Plane) -> R + Send + 'static,
    ) -> Result<R, WorkerGone> {
        let (answer, wait) = bounded(1);
        self.post(thread, move |plane| {
            // The caller may have gone; then nobody wants the answer.
            let _ = answer.send(job(plane));
        })?;
        wait.recv().map_err(|_| WorkerGone)
    }

    /// Runs `job` on a thread some time soon.
    ///
    /// # Errors
    /// When the thread has ended.
    pub(crate) fn post(
        &self,
        thread: usize,
        job: impl FnOnce(&mut Plane) + Send + 'static,
    ) -> Result<(), WorkerGone> {
        self.inboxes[thread].post(Box::new(job))
    }

    /// Runs `job` on all threads, at the same time, and returns the answers of those that
    /// have not ended, in their order.
    ///
    /// # Errors
    /// When all have.
    pub(crate) fn each<R: Send + 'static>(
        &self,
        job: impl Fn(&mut Plane) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, WorkerGone> {
        self.each_of(0..self.inboxes.len(), job)
    }

    /// The same on the threads with a face system, in the order of the systems.
    ///
    /// # Errors
    /// When all have ended.
    pub(crate) fn each_system<R: Send + 'static>(
        &self,
        job: impl Fn(&mut Plane) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, WorkerGone> {
        self.each_of(self.team.layout.system_threads(), job)
    }

    /// The same with the engine of each worker that has one: one that has just failed has
    /// none until another is in its place.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn each_engine<R: Send + 'static>(
        &self,
        job: impl Fn(&mut Engine) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, WorkerGone> {
        let answers = self.each_of(0..self.team.layout.n_worker_threads(), move |plane| {
            plane.engine_mut().map(&job)
        })?;
        let answers: Vec<R> = answers.into_iter().flatten().collect();
        match answers.is_empty() {
            false => Ok(answers),
            true => Err(WorkerGone),
        }
    }

    /// Waits until all threads have taken what others have told them before.
    pub(crate) fn settle(&self) {
        if !self.team.layout.is_single() {
            // Those that have ended know nothing any more.
            let _ = self.each(|_| ());
        }
    }

    fn each_of<R: Send + 'static>(
        &self,
        threads: std::ops::Range<usize>,
        job: impl Fn(&mut Plane) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, WorkerGone> {
        let (first, n_threads) = (threads.start, threads.len());
        let (answer, wait) = bounded(n_threads);
        for thread in threads {
            let (answer, job) = (answer.clone(), job.clone());
            // One that has ended drops its end, and is missing.
            let _ = self.post(thread, move |plane| {
                let _ = answer.send((thread, job(plane)));
            });
        }
        drop(answer);
        let mut answers: Vec<Option<R>> = (0..n_threads).map(|_| None).collect();
        for (thread, answer) in wait {
            answers[thread - first] = Some(answer);
        }
        let answers: Vec<R> = answers.into_iter().flatten().collect();
        match answers.is_empty() {
            false => Ok(answers),
            true => Err(WorkerGone),
        }
    }
}
