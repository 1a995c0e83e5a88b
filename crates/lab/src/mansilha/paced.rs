//! Requests at the workload's own times.

use std::thread;
use std::time::{Duration, Instant};

use super::packets::Asked;
use super::store::{Hcs, Measured};
use super::workload::Requests;

/// Requests that are carried together if they are due together, as a burst of the router.
const MAX_TOGETHER: usize = 32;
/// Longest sleep between two looks at the clock. A thread that sleeps is scheduled sooner than
/// one that reads the clock all the time when other programs want the processor.
const NAP: Duration = Duration::from_micros(100);

/// What became of requests that came at their times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Paced {
    /// What the store did, and how long all of it took.
    pub(super) measured: Measured,
    /// How much later than it should have the latest request came, in nanoseconds.
    pub(super) latest_ns: u64,
}

/// Asks for `n_requests` chunks, each when it is due, `speed` times as fast as the workload
/// says; none earlier, and later only if the store or this machine was too slow. Meanwhile the
/// store may go on.
pub(super) fn measure(
    store: &mut (impl Hcs + ?Sized),
    requests: &mut Requests,
    n_requests: u64,
    speed: f64,
) -> Paced {
    let before = store.counts();
    let mut asked = Asked::default();
    let mut requests = requests.take(n_requests as usize).peekable();
    let start_ns = requests.peek().map_or(0, |first| first.at_ns);
    let due_ns = |at_ns: u64| ((at_ns - start_ns) as f64 / speed) as u64;
    let begun = Instant::now();
    let mut latest_ns = 0;
    while requests.peek().is_some() {
        let now_ns = begun.elapsed().as_nanos() as u64;
        asked.clear();
        while asked.len() < MAX_TOGETHER
            && let Some(request) = requests.next_if(|it| due_ns(it.at_ns) <= now_ns)
        {
            latest_ns = latest_ns.max(now_ns - due_ns(request.at_ns));
            asked.push(request.chunk);
        }
        if asked.len() > 0 {
            store.request_burst(&asked);
        } else {
            store.go_on();
            let due_ns = requests.peek().map_or(0, |it| due_ns(it.at_ns));
            let now_ns = begun.elapsed().as_nanos() as u64;
            thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns)).min(NAP));
        }
    }
    store.settle();
    Paced {
        measured: Measured {
            counts: store.counts().since(&before),
            elapsed_ns: begun.elapsed().as_nanos() as u64,
        },
        latest_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{Catalogue, Chunk};
    use super::super::model;
    use super::super::store::{Counts, Hit};
    use super::super::workload::Kind;
    use super::*;

    /// Notes what it was asked for, and how long after the first.
    #[derive(Default)]
    struct Notes {
        begun: Option<Instant>,
        asked: Vec<(Chunk, u64)>,
        counts: Counts,
    }

    impl Hcs for Notes {
        fn request(&mut self, chunk: Chunk, _: &[u8]) -> Hit {
            let begun = *self.begun.get_or_insert_with(Instant::now);
            let after_ns = begun.elapsed().as_nanos() as u64;
            self.asked.push((chunk, after_ns));
            self.counts.count(Hit::First);
            Hit::First
        }

        fn counts(&self) -> Counts {
            self.counts
        }
    }

    #[test]
    fn requests_come_in_their_order_and_none_before_its_time() {
        let catalogue = Catalogue {
            n_contents: 20,
            content_chunks: 40,
        };
        let settings = model::shrunk_settings(catalogue, 1);
        let requests = || Requests::new(Kind::Real, &settings, 3);
        let speed = 1e4;
        let mut store = Notes::default();
        let begun = Instant::now();
        store.begun = Some(begun);
        let paced = measure(&mut store, &mut requests(), 2_000, speed);
        assert_eq!(paced.measured.counts.n_requests, 2_000);
        let expected: Vec<_> = requests().take(2_000).collect();
        let start_ns = expected[0].at_ns;
        for (request, (chunk, after_ns)) in expected.iter().zip(&store.asked) {
            assert_eq!(request.chunk, *chunk);
            let due_ns = (request.at_ns - start_ns) as f64 / speed;
            assert!(*after_ns as f64 >= due_ns - 1.0, "{after_ns} {due_ns}");
        }
        let last_ns = (expected[1_999].at_ns - start_ns) as f64 / speed;
        assert!(paced.measured.elapsed_ns as f64 >= last_ns);
    }
}
