//! The threads' ends: one that ends, for whatever reason, is noticed.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context as _, anyhow};
use crossbeam_channel::Sender;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use tachonym_face::Waker;
use tracing::warn;

use crate::worker::Forwarder;

/// By how much the kernel may delay the end of a thread's sleep, in nanoseconds.
const TIMER_SLACK_NS: u64 = 1_000;

/// Says that a thread has ended when it is dropped: by returning or by a panic.
pub(crate) struct EndNotice(pub(crate) Sender<()>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        // Whoever is not there any more need not know.
        let _ = self.0.send(());
    }
}

/// A thread on which packets travel; it ends with this value.
pub(crate) struct ForwarderThread {
    name: String,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl ForwarderThread {
    /// Starts it, pinned to `cpu` if one is given. `stop` is what the thread looks at, `waker`
    /// what wakes it.
    pub(crate) fn spawn(
        name: String,
        forwarder: Forwarder,
        cpu: Option<u16>,
        stop: Arc<AtomicBool>,
        waker: Waker,
        notice: EndNotice,
    ) -> anyhow::Result<Self> {
        let own_name = name.clone();
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let _notice = notice;
                if let Some(cpu) = cpu {
                    pin(&own_name, cpu);
                }
                // Sleeps of tens of microseconds end in time. Where it is refused they last
                // 50 µs longer, within which packets only gather.
                let _ = set_current_timer_slack(NonZeroU64::new(TIMER_SLACK_NS));
                forwarder.run()
            })
            .with_context(|| format!("cannot start thread {name}"))?;
        Ok(Self {
            name,
            stop,
            waker,
            thread: Some(thread),
        })
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    /// Asks it to stop.
    pub(crate) fn begin_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Stops it and waits for its end.
    ///
    /// # Errors
    /// What ended it before.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        self.begin_stop();
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error.context(format!("thread {} failed", self.name))),
            Some(Err(_)) => Err(anyhow!(
                "thread {} panicked, which is a fault of the router",
                self.name
            )),
        }
    }
}

impl Drop for ForwarderThread {
    fn drop(&mut self) {
        // Whoever wants to know asks by `stop`.
        let _ = self.stop();
    }
}

fn pin(name: &str, cpu: u16) {
    let mut only = CpuSet::new();
    only.set(cpu.into());
    if let Err(error) = sched_setaffinity(None, &only) {
        warn!(
            "cannot pin thread {name} to core {cpu}: {error}; it runs on any core (see \
             workers.cpus, and the CPU set of the service or container)"
        );
    }
}
