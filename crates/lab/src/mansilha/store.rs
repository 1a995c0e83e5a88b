//! The trait through which the experiments ask every content store, and how requests are
//! measured. Curves are made from its counts alone.

use std::time::Instant;

use anyhow::ensure;
use rustix::time::{ClockId, clock_gettime};

use super::catalogue::{CHUNK_BYTES, Chunk};
use super::packets::Asked;
use super::workload::Requests;

/// From where a chunk came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// From the first level.
    First,
    /// From the second level.
    Second,
    /// From nowhere, or from upstream.
    Miss,
}

/// What a store has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Chunks asked for.
    pub(super) n_requests: u64,
    /// Those that the first level had.
    pub(super) n_first: u64,
    /// Those for which the second level was read, or waited for.
    pub(super) n_second: u64,
    /// Those that neither had, or that could not be read.
    pub(super) n_missed: u64,
    /// Those that were refused because all reads were in use.
    pub(super) n_refused: u64,
    /// Bytes that were read from the second level: content of the serial algorithm's, and what
    /// the device was asked for of the router's.
    pub(super) second_bytes: u64,
    /// How long the second level was busy with that, in nanoseconds: of several reads at
    /// once, the time in which there was any.
    pub(super) second_ns: u64,
    /// How long inserting what was read took, in nanoseconds; 0 if that is not known apart.
    pub(super) insert_ns: u64,
    /// Of `second_ns`, what passed for waiting and did not pass.
    pub(super) unspent_ns: u64,
}

impl Counts {
    /// What was done since an earlier time.
    pub(super) const fn since(&self, earlier: &Self) -> Self {
        Self {
            n_requests: self.n_requests - earlier.n_requests,
            n_first: self.n_first - earlier.n_first,
            n_second: self.n_second - earlier.n_second,
            n_missed: self.n_missed - earlier.n_missed,
            n_refused: self.n_refused - earlier.n_refused,
            second_bytes: self.second_bytes - earlier.second_bytes,
            second_ns: self.second_ns - earlier.second_ns,
            insert_ns: self.insert_ns - earlier.insert_ns,
            unspent_ns: self.unspent_ns - earlier.unspent_ns,
        }
    }

    /// Requests that the first level answered, by all; 0 of none.
    pub(super) fn first_ratio(&self) -> f64 {
        self.n_first as f64 / self.n_requests.max(1) as f64
    }

    /// What the second level gave while it was busy, in Gbit/s; `None` if it was not.
    pub(super) fn second_gbps(&self) -> Option<f64> {
        (self.second_ns > 0).then(|| self.second_bytes as f64 * 8.0 / self.second_ns as f64)
    }

    /// Whether throughput is that of answers.
    ///
    /// # Errors
    /// If Interests were refused, or more than one in a thousand chunks came from neither level.
    pub(super) fn ensure_answered(&self) -> anyhow::Result<()> {
        let Self {
            n_requests,
            n_missed,
            n_refused,
            ..
        } = *self;
        ensure!(
            n_refused == 0,
            "{n_refused} of {n_requests} Interests were refused because all reads were in use; \
             lower pending or ahead"
        );
        ensure!(
            n_missed * 1_000 <= n_requests,
            "{n_missed} of {n_requests} chunks came from neither level: L2 failed"
        );
        Ok(())
    }

    /// Counts where a chunk came from.
    pub(super) const fn count(&mut self, hit: Hit) {
        self.n_requests += 1;
        match hit {
            Hit::First => self.n_first += 1,
            Hit::Second => self.n_second += 1,
            Hit::Miss => self.n_missed += 1,
        }
    }
}

/// A content store of one level or two.
pub(super) trait Hcs {
    /// Asks for a chunk, with the Interest for it, and has it before it returns.
    fn request(&mut self, chunk: Chunk, interest: &[u8]) -> Hit;

    /// Asks for chunks in this order. What comes later than the first level's answers may
    /// come after this returns, but not after [`Hcs::settle`].
    fn request_burst(&mut self, asked: &Asked) {
        for (chunk, interest) in asked.iter() {
            self.request(chunk, interest);
        }
    }

    /// Asks as [`Hcs::request_burst`] to fill the first level; what is not of use for that,
    /// as waiting for a disk that is none, may be left out.
    fn warm_burst(&mut self, asked: &Asked) {
        self.request_burst(asked);
    }

    /// Whether time passes in it that is not the processor's, or is to look like that: then
    /// the clock tells how long it takes, and else this thread's own time does, in which
    /// other programs do not count.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Takes what has come meanwhile, while nothing is asked for; does not wait.
    fn go_on(&mut self) {}

    /// Returns when all that was asked for has come.
    fn settle(&mut self) {}

    /// What it has done since it was made.
    fn counts(&self) -> Counts;
}

/// What a store took for some requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// What it did.
    pub(super) counts: Counts,
    /// How long it took, in nanoseconds, writing requests not included; waiting that did not
    /// pass is. See [`Hcs::is_waiting`] for whose time.
    pub(super) elapsed_ns: u64,
}

impl Measured {
    /// Nanoseconds of a chunk; 0 of none.
    pub(super) fn chunk_ns(&self) -> f64 {
        self.elapsed_ns as f64 / self.counts.n_requests.max(1) as f64
    }

    /// Content that was asked for, in Gbit/s (equation 7).
    pub(super) fn gbps(&self) -> f64 {
        CHUNK_BYTES as f64 * 8.0 / self.chunk_ns().max(1e-3)
    }
}

/// Requests that are written together, outside of what is measured.
const ASKED_PKTS: usize = 256;

/// Asks for `n_requests` chunks, of those that `is_here` says; how long that took.
pub(super) fn measure(
    store: &mut (impl Hcs + ?Sized),
    requests: &mut Requests,
    n_requests: u64,
    is_here: impl Fn(Chunk) -> bool,
) -> Measured {
    let before = store.counts();
    let watch = Watch::of(store.is_waiting());
    let mut elapsed_ns = 0;
    take(requests, n_requests, is_here, |asked| {
        let begun_ns = watch.now_ns();
        store.request_burst(asked);
        elapsed_ns += watch.now_ns() - begun_ns;
    });
    let begun_ns = watch.now_ns();
    store.settle();
    elapsed_ns += watch.now_ns() - begun_ns;
    let counts = store.counts().since(&before);
    Measured {
        counts,
        elapsed_ns: elapsed_ns + counts.unspent_ns,
    }
}

/// Which time is measured.
#[derive(Clone, Copy, Debug)]
pub(super) enum Watch {
    /// The clock, from this moment.
    Clock(Instant),
    /// What this thread has had of the processor.
    Thread,
}

impl Watch {
    /// The one for a store that [waits](Hcs::is_waiting), or does not.
    pub(super) fn of(is_waiting: bool) -> Self {
        match is_waiting {
            true => Self::Clock(Instant::now()),
            false => Self::Thread,
        }
    }

    /// Now, in nanoseconds from any time on.
    pub(super) fn now_ns(self) -> u64 {
        match self {
            Self::Clock(since) => since.elapsed().as_nanos() as u64,
            Self::Thread => {
                let time = clock_gettime(ClockId::ThreadCPUTime);
                time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
            }
        }
    }
}

/// Asks for `n_requests` chunks, of those that `is_here` says, to fill the first level.
pub(super) fn warm(
    store: &mut (impl Hcs + ?Sized),
    requests: &mut Requests,
    n_requests: u64,
    is_here: impl Fn(Chunk) -> bool,
) {
    take(requests, n_requests, is_here, |asked| {
        store.warm_burst(asked)
    });
    store.settle();
}

fn take(
    requests: &mut Requests,
    n_requests: u64,
    is_here: impl Fn(Chunk) -> bool,
    mut ask: impl FnMut(&Asked),
) {
    let mut asked = Asked::default();
    let mut n_left = n_requests;
    while n_left > 0 {
        asked.clear();
        while n_left > 0 && asked.len() < ASKED_PKTS {
            let Some(request) = requests.next() else {
                return;
            };
            n_left -= 1;
            if is_here(request.chunk) {
                asked.push(request.chunk);
            }
        }
        ask(&asked);
    }
}
