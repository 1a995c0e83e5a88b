//! Rings between threads.
//!
//! From each thread to each other one leads a ring of filled batches, and one back of empty
//! ones, so that memory is made once and always freed where it was made. A batch costs one
//! exchange of pointers, however many packets are in it. A sender whose batches are all
//! under way drops, and counts.

use std::collections::VecDeque;

use rtrb::{Consumer, Producer, RingBuffer};
use tachonym_dispatch::{WorkerId, WorkerSet};

use crate::batch::{Batch, Parcel};

/// How much may be under way.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    /// Batches from one thread to another, at least 2.
    pub batches: usize,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self { batches: 32 }
    }
}

#[derive(Debug)]
struct Outgoing {
    filled: Producer<Box<Batch>>,
    spare: Consumer<Box<Batch>>,
    /// The one that is being filled.
    current: Option<Box<Batch>>,
    /// Batches that there are, and packets in each of those that are under way.
    n_batches: usize,
    under_way: VecDeque<u32>,
    n_sent: u64,
    n_done: u64,
    n_dropped: u64,
}

#[derive(Debug)]
struct Incoming {
    filled: Consumer<Box<Batch>>,
    spare: Producer<Box<Batch>>,
}

/// The ends that one thread has.
#[derive(Debug)]
pub struct Links {
    to: Vec<Option<Outgoing>>,
    from: Vec<Option<Incoming>>,
    /// To whom something has gone since [`Links::flush`] last told.
    sent: WorkerSet,
}

impl Links {
    /// The ends of so many threads, of which each has rings to and from each other one.
    #[must_use]
    pub fn mesh(n_threads: usize, config: LinkConfig) -> Vec<Self> {
        let mut all: Vec<Self> = (0..n_threads)
            .map(|_| Self {
                to: (0..n_threads).map(|_| None).collect(),
                from: (0..n_threads).map(|_| None).collect(),
                sent: WorkerSet::EMPTY,
            })
            .collect();
        for from in 0..n_threads {
            for to in (0..n_threads).filter(|&to| to != from) {
                let (outgoing, incoming) = link(config);
                all[from].to[to] = Some(outgoing);
                all[to].from[from] = Some(incoming);
            }
        }
        all
    }

    /// Sends a copy of a packet, with the next batch. False if there is no room; counted.
    ///
    /// # Panics
    /// If there is no such thread, or it is this one.
    pub fn push(&mut self, to: WorkerId, parcel: &Parcel<'_>) -> bool {
        let link = self.to[to.idx()]
            .as_mut()
            .expect("a link to another thread");
        if link.current.as_ref().is_some_and(|batch| batch.is_full()) {
            link.flush();
            self.sent.insert(to);
        }
        if link.current.is_none() {
            link.current = link.spare.pop().ok();
        }
        let Some(batch) = &mut link.current else {
            link.n_dropped += 1;
            return false;
        };
        batch.push(parcel);
        link.n_sent += 1;
        true
    }

    /// Whether another packet for a thread has room.
    ///
    /// # Panics
    /// If there is no such thread, or it is this one.
    #[must_use]
    pub fn has_room(&self, to: WorkerId) -> bool {
        let link = self.to[to.idx()]
            .as_ref()
            .expect("a link to another thread");
        let fits = link.current.as_ref().is_some_and(|batch| !batch.is_full());
        fits || !link.spare.is_empty()
    }

    /// Packets sent to a thread so far, those of the batch that is being filled included, and
    /// how many of them are done: in batches that have come back.
    ///
    /// # Panics
    /// If there is no such thread, or it is this one.
    pub fn progress(&mut self, to: WorkerId) -> (u64, u64) {
        let link = self.to[to.idx()]
            .as_mut()
            .expect("a link to another thread");
        link.see_what_is_done();
        (link.n_sent, link.n_done)
    }

    /// Packets under way to a thread, as far as [`Links::progress`] has last seen.
    ///
    /// # Panics
    /// If there is no such thread, or it is this one.
    #[must_use]
    pub fn n_under_way(&self, to: WorkerId) -> u64 {
        let link = self.to[to.idx()]
            .as_ref()
            .expect("a link to another thread");
        link.n_sent - link.n_done
    }

    /// Sends all batches that have something. Those who got any since the last time, for
    /// they may sleep.
    pub fn flush(&mut self) -> WorkerSet {
        for (idx, link) in self.to.iter_mut().enumerate() {
            if link.as_mut().is_some_and(Outgoing::flush) {
                self.sent.insert(WorkerId(idx as u16));
            }
        }
        std::mem::replace(&mut self.sent, WorkerSet::EMPTY)
    }

    /// The next batch of another thread, to be [given back](Self::give_back).
    pub fn receive(&mut self, from: WorkerId) -> Option<Box<Batch>> {
        let link = self.from[from.idx()].as_mut()?;
        link.filled.pop().ok()
    }

    /// Returns a batch of [`Links::receive`], whose packets have been seen to.
    pub fn give_back(&mut self, from: WorkerId, mut batch: Box<Batch>) {
        batch.clear();
        if let Some(link) = &mut self.from[from.idx()] {
            // There is room for all that there are.
            let _ = link.spare.push(batch);
        }
    }

    /// Whether nothing waits to be received.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let mut links = self.from.iter().flatten();
        links.all(|link| link.filled.is_empty())
    }

    /// Batches that wait to be received.
    #[must_use]
    pub fn n_waiting(&self) -> usize {
        self.from
            .iter()
            .flatten()
            .map(|link| link.filled.slots())
            .sum()
    }

    /// Packets that found no room.
    #[must_use]
    pub fn n_dropped(&self) -> u64 {
        self.to.iter().flatten().map(|link| link.n_dropped).sum()
    }

    /// Of these, those to one thread; none to this one.
    #[must_use]
    pub fn n_dropped_to(&self, to: WorkerId) -> u64 {
        self.to[to.idx()].as_ref().map_or(0, |link| link.n_dropped)
    }

    /// How many threads there are.
    #[must_use]
    pub const fn n_threads(&self) -> usize {
        self.to.len()
    }
}

impl Outgoing {
    /// Counts the packets of batches that have come back: the oldest of those that went.
    fn see_what_is_done(&mut self) {
        let n_here = self.spare.slots() + usize::from(self.current.is_some());
        let n_away = self.n_batches.saturating_sub(n_here);
        while self.under_way.len() > n_away {
            self.n_done += u64::from(self.under_way.pop_front().unwrap_or_default());
        }
    }

    /// Sends the batch that is being filled; whether there was one with anything.
    fn flush(&mut self) -> bool {
        let Some(batch) = self.current.take_if(|batch| !batch.is_empty()) else {
            return false;
        };
        self.see_what_is_done();
        self.under_way.push_back(batch.len() as u32);
        let pushed = self.filled.push(batch);
        debug_assert!(
            pushed.is_ok(),
            "there is room for all batches that there are"
        );
        pushed.is_ok()
    }
}

fn link(config: LinkConfig) -> (Outgoing, Incoming) {
    let n_batches = config.batches.max(2);
    let (filled, filled_end) = RingBuffer::new(n_batches);
    let (mut spare_end, spare) = RingBuffer::new(n_batches);
    for _ in 0..n_batches {
        let _ = spare_end.push(Box::new(Batch::new()));
    }
    let outgoing = Outgoing {
        filled,
        spare,
        current: None,
        n_batches,
        under_way: VecDeque::with_capacity(n_batches),
        n_sent: 0,
        n_done: 0,
        n_dropped: 0,
    };
    let incoming = Incoming {
        filled: filled_end,
        spare: spare_end,
    };
    (outgoing, incoming)
}

#[cfg(test)]
mod tests {
    use tachonym_packet::FaceId;
    use tachonym_packet::lp::Headers;

    use super::*;
    use crate::batch::{Crossing, MAX_BATCH_PKTS};

    const A: WorkerId = WorkerId(0);
    const B: WorkerId = WorkerId(1);

    fn parcel(wire: &[u8]) -> Parcel<'_> {
        Parcel {
            crossing: Crossing::Arrived,
            face: FaceId(256),
            headers: &Headers::EMPTY,
            wire,
            announcement: None,
            served: &[],
        }
    }

    #[test]
    fn all_that_found_room_arrives_in_order_and_the_rest_is_counted() {
        let mut ends = Links::mesh(2, LinkConfig { batches: 3 });
        let mut b = ends.pop().expect("two ends");
        let mut a = ends.pop().expect("two ends");
        let (mut n_sent, mut n_seen) = (0_u32, 0_u32);
        for _round in 0..3 {
            let n_before = a.n_dropped();
            let n_pushed = 5 * MAX_BATCH_PKTS;
            let mut fitting = Vec::new();
            for _ in 0..n_pushed {
                if a.push(B, &parcel(&n_sent.to_le_bytes())) {
                    fitting.push(n_sent);
                }
                n_sent += 1;
            }
            assert!(a.flush().contains(B));
            assert_eq!(fitting.len(), 3 * MAX_BATCH_PKTS);
            assert_eq!(a.n_dropped() - n_before, 2 * MAX_BATCH_PKTS as u64);
            assert_eq!(b.n_waiting(), 3);
            let n_seen_before = u64::from(n_seen);
            let n_fitting = fitting.len() as u64;
            assert_eq!(a.progress(B), (n_seen_before + n_fitting, n_seen_before));
            let mut seen = Vec::new();
            while let Some(batch) = b.receive(A) {
                seen.extend(
                    batch.iter().map(|parcel| {
                        u32::from_le_bytes(parcel.wire.try_into().expect("four bytes"))
                    }),
                );
                b.give_back(A, batch);
            }
            assert_eq!(seen, fitting);
            n_seen += seen.len() as u32;
            assert_eq!(a.progress(B), (u64::from(n_seen), u64::from(n_seen)));
            assert_eq!(a.n_under_way(B), 0);
            assert!(b.is_idle() && b.flush().is_empty() && a.flush().is_empty());
        }
        assert_eq!(u64::from(n_sent - n_seen), a.n_dropped());
    }

    #[test]
    fn packets_cross_between_threads_without_loss() {
        const N: u32 = if cfg!(miri) { 200 } else { 200_000 };
        let mut ends = Links::mesh(2, LinkConfig::default());
        let mut b = ends.pop().expect("two ends");
        let mut a = ends.pop().expect("two ends");
        let receiver = std::thread::spawn(move || {
            let mut next = 0;
            while next < N {
                while let Some(batch) = b.receive(A) {
                    for parcel in batch.iter() {
                        assert_eq!(parcel.wire, next.to_le_bytes());
                        next += 1;
                    }
                    b.give_back(A, batch);
                }
                std::thread::yield_now();
            }
        });
        for number in 0..N {
            while !a.push(B, &parcel(&number.to_le_bytes())) {
                a.flush();
                std::thread::yield_now();
            }
        }
        a.flush();
        receiver.join().expect("all came in order");
    }
}
