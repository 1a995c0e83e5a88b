//! The threads' ends: one that ends, for whatever reason, is noticed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context as _, anyhow};
use crossbeam_channel::Sender;
use tachonym_face::Waker;

use crate::worker::Worker;

/// Says that a thread has ended when it is dropped: by returning or by a panic.
pub(crate) struct EndNotice(pub(crate) Sender<()>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        // Whoever is not there any more need not know.
        let _ = self.0.send(());
    }
}

/// The thread on which the worker runs; it ends with this value.
pub(crate) struct WorkerThread {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl WorkerThread {
    /// Starts it. `stop` is what the worker looks at, `waker` what wakes it.
    pub(crate) fn spawn(
        worker: Worker,
        stop: Arc<AtomicBool>,
        waker: Waker,
        notice: EndNotice,
    ) -> anyhow::Result<Self> {
        let thread = std::thread::Builder::new()
            .name("worker-0".into())
            .spawn(move || {
                let _notice = notice;
                worker.run()
            })
            .context("cannot start the worker")?;
        Ok(Self {
            stop,
            waker,
            thread: Some(thread),
        })
    }

    /// Whether it still forwards.
    pub(crate) fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    /// Stops it and waits for its end.
    ///
    /// # Errors
    /// What ended it before.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error).context("the worker could not wait for packets"),
            Some(Err(_)) => Err(anyhow!("the worker panicked")),
        }
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        // Whoever wants to know asks by `stop`.
        let _ = self.stop();
    }
}
