//! Caches whose accesses to memory are traced, with the tables that Takemasa 2019, sections
//! 4.2.2 and 4.2.3, gives them.
//!
//! Counted are cache lines that no processor cache is expected to hold: buckets and entries
//! of the hash table of Data, nodes of a list, slots of a ring, counters. An access depends
//! on another one if its address follows from what the other one read.

use std::collections::HashMap;

use super::simulate::name_hash;

/// A table, and a line of it.
type Line = (Table, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Bucket,
    Entry,
    Node,
    Ring,
    Counter,
    History,
}

/// The accesses of one operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// Each with the length of the longest chain of accesses that ends in it.
    lines: Vec<(Line, u32)>,
}

impl Trace {
    /// Reads a line whose address the access number `after` of a chain has read, 0 for an
    /// address known before; returns this access's own number.
    fn read(&mut self, line: Line, after: u32) -> u32 {
        let known = self.lines.iter().find(|(of, _)| *of == line);
        if let Some((_, length)) = known {
            return after.max(*length);
        }
        self.lines.push((line, after + 1));
        after + 1
    }

    /// Accesses in a row, each of which depends on the one before.
    pub(super) fn n_dependent(&self) -> u32 {
        self.lines
            .iter()
            .map(|(_, length)| *length)
            .max()
            .unwrap_or(0)
    }

    /// All accesses.
    pub(super) fn n_lines(&self) -> usize {
        self.lines.len()
    }
}

/// How a cache is ordered, and what it admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// A doubly linked list in the order of requests.
    LruList,
    /// A linked list with a flag in each node.
    ClockList,
    /// A ring; all Data are admitted.
    Fifo,
    /// A ring behind the counters of TinyLFU.
    TinyLfu,
    /// A ring behind history and counters of Filter.
    Filter,
}

/// What one request did.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces {
    /// Finding the Data, and what its order needs. `None` without a hit.
    pub(super) hit: Option<Trace>,
    /// Counting the request.
    pub(super) request: Trace,
    /// Finding the victim, or deciding on admission; `None` with a hit.
    pub(super) decision: Option<Trace>,
    /// Removing the victim and inserting the Data; `None` if it was not admitted.
    pub(super) insertion: Option<Trace>,
}

/// A cache of objects.
#[derive(Debug)]
pub(super) struct Traced {
    algorithm: Algorithm,
    capacity: usize,
    slot_of: HashMap<u32, u32>,
    /// By slot.
    object_in: Vec<u32>,
    is_flagged: Vec<bool>,
    /// By slot, the neighbours in a circle; the front is behind the back.
    links: Vec<[u32; 2]>,
    front: u32,
    counts: HashMap<u32, u32>,
    history: std::collections::VecDeque<u32>,
    n_requests: u64,
}

impl Traced {
    pub(super) fn new(algorithm: Algorithm, capacity: usize) -> Self {
        Self {
            algorithm,
            capacity: capacity.max(4),
            slot_of: HashMap::new(),
            object_in: Vec::new(),
            is_flagged: Vec::new(),
            links: Vec::new(),
            front: 0,
            counts: HashMap::new(),
            history: std::collections::VecDeque::new(),
            n_requests: 0,
        }
    }

    fn bucket(&self, object: u32) -> Line {
        (Table::Bucket, name_hash(object) % self.capacity as u64)
    }

    const fn entry(slot: u32) -> Line {
        (Table::Entry, slot as u64)
    }

    const fn node(slot: u32) -> Line {
        (Table::Node, slot as u64)
    }

    fn ring(slot: u32) -> Line {
        // Eight hashes of 64 bits in a line.
        (Table::Ring, u64::from(slot / 8))
    }

    fn counter(object: u32) -> Line {
        (Table::Counter, name_hash(object))
    }

    /// The slot at the back: what was inserted, or requested, first.
    fn back(&self) -> u32 {
        self.links[self.front as usize][0]
    }

    fn unlink(&mut self, slot: u32) {
        let [before, after] = self.links[slot as usize];
        self.links[before as usize][1] = after;
        self.links[after as usize][0] = before;
        if self.front == slot {
            self.front = after;
        }
    }

    fn push_front(&mut self, slot: u32) {
        let (front, back) = (self.front, self.back());
        self.links[slot as usize] = [back, front];
        self.links[back as usize][1] = slot;
        self.links[front as usize][0] = slot;
        self.front = slot;
    }

    /// Takes a request, and the Data if it misses.
    pub(super) fn request(&mut self, object: u32) -> Traces {
        let mut traces = Traces::default();
        self.count(object, &mut traces.request);
        if let Some(slot) = self.slot_of.get(&object).copied() {
            traces.hit = Some(self.hit(object, slot));
            return traces;
        }
        if self.object_in.len() < self.capacity {
            self.fill(object);
            return traces;
        }
        let mut decision = Trace::default();
        let (victim, after) = self.decide(object, &mut decision);
        traces.decision = Some(decision.clone());
        if let Some(victim) = victim {
            traces.insertion = Some(self.replace(object, victim, after, decision));
        }
        traces
    }

    /// As long as there is room; not traced.
    fn fill(&mut self, object: u32) {
        let slot = self.object_in.len() as u32;
        self.object_in.push(object);
        self.is_flagged.push(false);
        self.links.push([slot; 2]);
        if slot > 0 {
            self.push_front(slot);
        }
        self.slot_of.insert(object, slot);
    }

    fn count(&mut self, object: u32, trace: &mut Trace) {
        self.n_requests += 1;
        match self.algorithm {
            Algorithm::TinyLfu => {
                trace.read(Self::counter(object), 0);
                *self.counts.entry(object).or_default() += 1;
            }
            Algorithm::Filter => {
                trace.read(Self::counter(object), 0);
                *self.counts.entry(object).or_default() += 1;
                self.history.push_back(object);
                if self.history.len() > self.capacity
                    && let Some(oldest) = self.history.pop_front()
                {
                    let place = self.n_requests % self.capacity as u64 / 8;
                    let known = trace.read((Table::History, place), 0);
                    trace.read(Self::counter(oldest), known);
                    if let Some(count) = self.counts.get_mut(&oldest) {
                        *count -= 1;
                    }
                }
            }
            Algorithm::LruList | Algorithm::ClockList | Algorithm::Fifo => {}
        }
    }

    fn hit(&mut self, object: u32, slot: u32) -> Trace {
        let mut trace = Trace::default();
        let known = trace.read(self.bucket(object), 0);
        let known = trace.read(Self::entry(slot), known);
        match self.algorithm {
            Algorithm::LruList => {
                trace.read(Self::node(self.front), 0);
                let known = trace.read(Self::node(slot), known);
                if slot != self.front {
                    for neighbour in self.links[slot as usize] {
                        trace.read(Self::node(neighbour), known);
                    }
                    self.unlink(slot);
                    self.push_front(slot);
                }
            }
            Algorithm::ClockList => {
                trace.read(Self::node(slot), known);
                self.is_flagged[slot as usize] = true;
            }
            Algorithm::Fifo | Algorithm::TinyLfu | Algorithm::Filter => {}
        }
        trace
    }

    /// The victim, if the Data is admitted, and the number of the access that has read it.
    fn decide(&mut self, object: u32, trace: &mut Trace) -> (Option<u32>, u32) {
        let count = |counts: &HashMap<u32, u32>, object| counts.get(&object).copied().unwrap_or(0);
        let back = self.back();
        match self.algorithm {
            Algorithm::LruList => {
                let known = trace.read(Self::node(back), 0);
                (Some(back), known)
            }
            Algorithm::ClockList => {
                // The hand is the back; what it passes goes to the front.
                let (mut at, mut known) = (back, trace.read(Self::node(back), 0));
                while self.is_flagged[at as usize] {
                    self.is_flagged[at as usize] = false;
                    self.front = at;
                    at = self.back();
                    known = trace.read(Self::node(at), known);
                }
                (Some(at), known)
            }
            Algorithm::Fifo => {
                let known = trace.read(Self::ring(back), 0);
                (Some(back), known)
            }
            Algorithm::TinyLfu => {
                trace.read(Self::counter(object), 0);
                let known = trace.read(Self::ring(back), 0);
                let victim = self.object_in[back as usize];
                trace.read(Self::counter(victim), known);
                let is_admitted = count(&self.counts, object) > count(&self.counts, victim);
                (is_admitted.then_some(back), known)
            }
            Algorithm::Filter => {
                trace.read(Self::counter(object), 0);
                let is_admitted = count(&self.counts, object) >= 2;
                (is_admitted.then_some(back), 0)
            }
        }
    }

    /// Removes the victim, whose slot the access number `after` has read, and inserts the Data.
    fn replace(&mut self, object: u32, victim: u32, after: u32, mut trace: Trace) -> Trace {
        let evicted = self.object_in[victim as usize];
        match self.algorithm {
            Algorithm::LruList | Algorithm::ClockList => {
                // The node leads to the entry, and the entry has the name.
                let known = trace.read(Self::entry(victim), after);
                trace.read(self.bucket(evicted), known);
                trace.read(Self::node(self.front), 0);
                let before = self.links[victim as usize][0];
                trace.read(Self::node(before), after);
            }
            Algorithm::Fifo | Algorithm::TinyLfu | Algorithm::Filter => {
                // The ring has the hash of the name.
                let known = trace.read(Self::ring(victim), 0);
                let known = trace.read(self.bucket(evicted), known);
                trace.read(Self::entry(victim), known);
            }
        }
        trace.read(self.bucket(object), 0);
        self.slot_of.remove(&evicted);
        self.slot_of.insert(object, victim);
        self.object_in[victim as usize] = object;
        self.unlink(victim);
        self.push_front(victim);
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain::{lru_hits, queue_hits};
    use super::super::workload::Independent;
    use super::*;
    use crate::workloads::Requests as _;

    #[test]
    fn traced_caches_hit_as_plain_simulators_do() {
        let mut requests = vec![0; 20_000];
        Independent::new(2_000, 0.8, 5).fill(&mut requests);
        for (algorithm, expected) in [
            (Algorithm::LruList, lru_hits(&requests, 100, 0)),
            (Algorithm::ClockList, queue_hits(&requests, 100, 0, 1)),
            (Algorithm::Fifo, queue_hits(&requests, 100, 0, 0)),
        ] {
            let mut cache = Traced::new(algorithm, 100);
            let hits = requests
                .iter()
                .filter(|&&it| cache.request(it).hit.is_some());
            assert_eq!(hits.count() as u64, expected, "{algorithm:?}");
        }
    }
}
