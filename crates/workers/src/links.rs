//! Rings between threads.
//!
//! From each thread to each other one leads a ring of filled batches, and one back of empty
//! ones, so that memory is made where it is freed, and mostly once. A batch costs one exchange
//! of pointers, however many packets are in it.
//!
//! What may be under way is bounded in packets and bytes, by what so many full batches hold.
//! A thread that sends what little it has at the end of each round fills many batches with a
//! few packets each: there are more of these, made when they are needed and freed when they
//! come back to enough others. A sender that finds no room drops, and counts.

use std::collections::VecDeque;

use rtrb::{Consumer, Producer, RingBuffer};
use tachonym_dispatch::{WorkerId, WorkerSet};
use tachonym_packet::types::MAX_PACKET_BYTES;

use crate::batch::{Batch, Crossing, FULL_BYTES, MAX_BATCH_PKTS, Parcel};

/// Batches that there may be for each full one: a thousand packets are under way even if
/// each has one of its own.
const BATCHES_PER_FULL: usize = 16;
/// Empty batches that keep their memory, for each thread to send to: what a burst fills.
const MAX_SPARE: usize = 8;

/// How much may be under way.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    /// Full batches from one thread to another, at least 2: packets and bytes under way are
    /// at most what these hold.
    pub batches: usize,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self { batches: 128 }
    }
}

/// What a batch under way holds.
#[derive(Clone, Copy, Debug)]
struct Load {
    n_pkts: u32,
    n_bytes: u32,
}

#[derive(Debug)]
struct Outgoing {
    filled: Producer<Box<Batch>>,
    back: Consumer<Box<Batch>>,
    /// Empty ones; what came back last is filled first.
    #[expect(clippy::vec_box, reason = "a box goes from here into a ring and back")]
    spare: Vec<Box<Batch>>,
    /// The one that is being filled.
    current: Option<Box<Batch>>,
    /// Full batches that may be under way, and batches at all.
    n_full: usize,
    n_slots: usize,
    /// The oldest first.
    under_way: VecDeque<Load>,
    n_bytes_under_way: u64,
    n_sent: u64,
    n_done: u64,
    n_dropped: u64,
    /// Of these, those that were to leave by a face there.
    n_dropped_leaving: u64,
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
        if !link.has_room() {
            link.see_what_is_done();
            if !link.has_room() {
                link.count_drop(parcel);
                return false;
            }
        }
        let spare = &mut link.spare;
        let batch = link
            .current
            .get_or_insert_with(|| spare.pop().unwrap_or_default());
        batch.push(parcel);
        link.n_sent += 1;
        true
    }

    /// Those to whom something has gone since it was last told, by batches that were full: they
    /// may begin before [`flush`](Self::flush).
    #[inline]
    pub fn take_sent(&mut self) -> WorkerSet {
        std::mem::replace(&mut self.sent, WorkerSet::EMPTY)
    }

    /// Counts a packet that is not sent since too many are under way.
    ///
    /// # Panics
    /// If there is no such thread, or it is this one.
    pub fn refuse(&mut self, to: WorkerId, parcel: &Parcel<'_>) {
        let link = self.to[to.idx()]
            .as_mut()
            .expect("a link to another thread");
        link.count_drop(parcel);
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
        link.has_room_after(link.back.slots())
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
        self.take_sent()
    }

    /// Batches of another thread that wait to be received.
    #[must_use]
    pub fn n_waiting_from(&self, from: WorkerId) -> usize {
        self.from[from.idx()]
            .as_ref()
            .map_or(0, |link| link.filled.slots())
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

    /// Packets that found no room.
    #[must_use]
    pub fn n_dropped(&self) -> u64 {
        self.to.iter().flatten().map(|link| link.n_dropped).sum()
    }

    /// Of these, those that a worker was to carry; none for that of this thread.
    #[must_use]
    pub fn n_dropped_to(&self, to: WorkerId) -> u64 {
        let link = self.to[to.idx()].as_ref();
        link.map_or(0, |link| link.n_dropped - link.n_dropped_leaving)
    }

    /// How many threads there are.
    #[must_use]
    pub const fn n_threads(&self) -> usize {
        self.to.len()
    }
}

impl Outgoing {
    #[cold]
    fn count_drop(&mut self, parcel: &Parcel<'_>) {
        self.n_dropped += 1;
        self.n_dropped_leaving += u64::from(parcel.crossing == Crossing::Leaving);
    }

    /// Whether another packet has room, as far as was seen what is done.
    #[inline]
    fn has_room(&self) -> bool {
        self.has_room_after(0)
    }

    /// The same, if so many more batches are done.
    #[inline]
    fn has_room_after(&self, n_back: usize) -> bool {
        let (mut n_pkts, mut n_bytes) = (self.n_sent - self.n_done, self.n_bytes_under_way);
        for load in self.under_way.iter().take(n_back) {
            n_pkts -= u64::from(load.n_pkts);
            n_bytes -= u64::from(load.n_bytes);
        }
        let begun = self.current.as_ref();
        n_bytes += begun.map_or(0, |batch| batch.n_bytes() as u64);
        n_pkts < (self.n_full * MAX_BATCH_PKTS) as u64
            && n_bytes < (self.n_full * (FULL_BYTES + MAX_PACKET_BYTES)) as u64
            && (begun.is_some_and(|batch| !batch.is_full())
                || self.under_way.len() + usize::from(begun.is_some()) < self.n_slots + n_back)
    }

    /// Takes the batches that have come back, the oldest of those that went.
    fn see_what_is_done(&mut self) {
        while let Ok(batch) = self.back.pop() {
            if let Some(load) = self.under_way.pop_front() {
                self.n_done += u64::from(load.n_pkts);
                self.n_bytes_under_way -= u64::from(load.n_bytes);
            }
            if self.spare.len() < MAX_SPARE {
                self.spare.push(batch);
            }
        }
    }

    /// Sends the batch that is being filled; whether there was one with anything.
    fn flush(&mut self) -> bool {
        let Some(batch) = self.current.take_if(|batch| !batch.is_empty()) else {
            return false;
        };
        self.see_what_is_done();
        let load = Load {
            n_pkts: batch.len() as u32,
            n_bytes: batch.n_bytes() as u32,
        };
        self.under_way.push_back(load);
        self.n_bytes_under_way += u64::from(load.n_bytes);
        let pushed = self.filled.push(batch);
        debug_assert!(
            pushed.is_ok(),
            "a batch is begun only if there is room for it"
        );
        pushed.is_ok()
    }
}

fn link(config: LinkConfig) -> (Outgoing, Incoming) {
    let n_full = config.batches.max(2);
    let n_slots = n_full * BATCHES_PER_FULL;
    let (filled, filled_end) = RingBuffer::new(n_slots);
    let (spare_end, back) = RingBuffer::new(n_slots);
    let outgoing = Outgoing {
        filled,
        back,
        spare: Vec::with_capacity(MAX_SPARE),
        current: None,
        n_full,
        n_slots,
        under_way: VecDeque::with_capacity(n_slots),
        n_bytes_under_way: 0,
        n_sent: 0,
        n_done: 0,
        n_dropped: 0,
        n_dropped_leaving: 0,
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

    const A: WorkerId = WorkerId(0);
    const B: WorkerId = WorkerId(1);

    fn parcel(wire: &[u8]) -> Parcel<'_> {
        Parcel::leaving(FaceId(256), &Headers::EMPTY, wire, None)
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
            let n_seen_before = u64::from(n_seen);
            let n_fitting = fitting.len() as u64;
            assert_eq!(a.progress(B), (n_seen_before + n_fitting, n_seen_before));
            let mut seen = Vec::new();
            while let Some(batch) = b.receive(A) {
                seen.extend(batch.iter().map(|parcel| {
                    u32::from_le_bytes(parcel.wire().try_into().expect("four bytes"))
                }));
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
    fn a_thousand_packets_have_room_though_each_is_sent_alone() {
        let config = LinkConfig::default();
        let mut ends = Links::mesh(2, config);
        let mut b = ends.pop().expect("two ends");
        let mut a = ends.pop().expect("two ends");
        let n_slots = config.batches * BATCHES_PER_FULL;
        assert!(n_slots >= 1_000);
        for round in 0..3_u64 {
            for _ in 0..n_slots {
                assert!(a.has_room(B) && a.push(B, &parcel(b"one")));
                a.flush();
            }
            assert!(!a.has_room(B) && !a.push(B, &parcel(b"one")));
            assert_eq!(a.n_dropped(), round + 1);
            let mut n_seen = 0;
            while let Some(batch) = b.receive(A) {
                n_seen += batch.len();
                b.give_back(A, batch);
                assert!(a.has_room(B));
            }
            assert_eq!(n_seen, n_slots);
            assert_eq!(a.progress(B).0, a.progress(B).1);
            let link = a.to[B.idx()].as_ref().expect("a link");
            assert_eq!((link.spare.len(), link.n_bytes_under_way), (MAX_SPARE, 0));
        }
    }

    #[test]
    fn bytes_under_way_are_bounded() {
        let mut ends = Links::mesh(2, LinkConfig { batches: 2 });
        let a = &mut ends[0];
        let large = [0; MAX_PACKET_BYTES];
        let mut n_sent = 0;
        while a.push(B, &parcel(&large)) {
            a.flush();
            n_sent += 1;
        }
        let n_bytes = n_sent * MAX_PACKET_BYTES;
        let bound = 2 * (FULL_BYTES + MAX_PACKET_BYTES);
        assert!((bound..bound + MAX_PACKET_BYTES).contains(&n_bytes));
        assert_eq!(a.n_dropped(), 1);
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
                        assert_eq!(parcel.wire(), next.to_le_bytes());
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
