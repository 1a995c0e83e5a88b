//! What a thread gives its worker to do.
//!
//! A value rather than a closure, because there are two kinds of ports that it runs with:
//! plain ones, and those of a trace. Which of them is decided once for each task, so that
//! packets pay nothing for traces while none runs.

use tachonym_forward::RxPacket;
use tachonym_packet::{HashedNames, MonoNs};
use tachonym_workers::{Batch, Port, Worker};

use crate::second_level::Ssd;

/// A task.
pub(crate) enum Task<'a, 'rx> {
    /// Packets that this thread has received, and that are at home here.
    Burst(&'a [RxPacket<'rx>]),
    /// The same with the hashes of their names.
    HashedBurst(&'a [RxPacket<'rx>], &'a mut HashedNames),
    /// Packets that another thread has sent.
    Batch(&'a Batch),
    /// What has become due.
    Timeout,
    /// What the disks of the SSD level have done.
    Completions(&'a mut Ssd),
    /// Flush the SSD level: the thread ends.
    ShutDown(&'a mut Ssd),
}

impl Task<'_, '_> {
    /// Runs it at `now`.
    pub(crate) fn run<P: Port>(self, now: MonoNs, worker: &mut Worker, ports: &mut P) {
        match self {
            Self::Burst(rx) => worker.handle_burst(now, rx, ports),
            Self::HashedBurst(rx, names) => worker.handle_hashed_burst(now, rx, names, ports),
            Self::Batch(batch) => worker.handle_batch(now, batch, ports),
            Self::Timeout => worker.handle_timeout(now, ports),
            Self::Completions(ssd) => {
                ssd.take_completions(now, worker.engine_mut(), ports);
                worker.send_remote_reads(ports);
            }
            Self::ShutDown(ssd) => ssd.shut_down(worker.engine_mut(), ports),
        }
    }
}
