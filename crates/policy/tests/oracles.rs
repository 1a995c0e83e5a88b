//! Each eviction policy answers as its published description does, written down as
//! plainly as possible, or as a well-kept crate that has it.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;

use proptest::prelude::*;
use tachonym_policy::EvictionKind;
use tachonym_policy::eviction::Eviction;

/// A cache that is asked for names, and inserts each that it has not.
trait Oracle {
    /// Whether it had the name.
    fn request(&mut self, name: u64) -> bool;
}

/// The policy under test.
struct Tested {
    eviction: Eviction,
    slots: Vec<u64>,
    capacity: usize,
}

impl Tested {
    fn new(kind: EvictionKind, capacity: usize) -> Self {
        Self {
            eviction: Eviction::new(kind, capacity, capacity, 1),
            slots: Vec::new(),
            capacity,
        }
    }
}

impl Oracle for Tested {
    fn request(&mut self, name: u64) -> bool {
        if let Some(slot) = self.slots.iter().position(|&held| held == name) {
            self.eviction.handle_hit(slot as u32);
            return true;
        }
        if self.slots.len() < self.capacity {
            self.slots.push(name);
            self.eviction
                .handle_insert(self.slots.len() as u32 - 1, name);
            return false;
        }
        let victim = self.eviction.victim(name).expect("a full cache");
        assert_eq!(
            self.eviction.victim(name),
            Some(victim),
            "asking changes nothing"
        );
        self.eviction
            .handle_evict(victim, self.slots[victim as usize]);
        self.slots[victim as usize] = name;
        self.eviction.handle_insert(victim, name);
        false
    }
}

impl Oracle for lru::LruCache<u64, ()> {
    fn request(&mut self, name: u64) -> bool {
        let is_hit = self.get(&name).is_some();
        if !is_hit {
            self.put(name, ());
        }
        is_hit
    }
}

fn take(list: &mut VecDeque<u64>, name: u64) -> bool {
    let place = list.iter().position(|&held| held == name);
    place.and_then(|place| list.remove(place)).is_some()
}

struct Fifo {
    queue: VecDeque<u64>,
    capacity: usize,
}

impl Oracle for Fifo {
    fn request(&mut self, name: u64) -> bool {
        if self.queue.contains(&name) {
            return true;
        }
        if self.queue.len() == self.capacity {
            self.queue.pop_front();
        }
        self.queue.push_back(name);
        false
    }
}

/// CLOCK as a queue: what was asked for goes round once more for each mark.
struct Clock {
    queue: VecDeque<(u64, u32)>,
    capacity: usize,
    max_marks: u32,
}

impl Oracle for Clock {
    fn request(&mut self, name: u64) -> bool {
        if let Some((_, marks)) = self.queue.iter_mut().find(|(held, _)| *held == name) {
            *marks = (*marks + 1).min(self.max_marks);
            return true;
        }
        while self.queue.len() == self.capacity {
            let (oldest, marks) = self.queue.pop_front().expect("a full cache");
            if marks > 0 {
                self.queue.push_back((oldest, marks - 1));
            }
        }
        self.queue.push_back((name, 0));
        false
    }
}

/// The front is the oldest; `hand` is where the next search begins.
#[derive(Default)]
struct Sieve {
    queue: Vec<(u64, bool)>,
    hand: usize,
    capacity: usize,
}

impl Oracle for Sieve {
    fn request(&mut self, name: u64) -> bool {
        if let Some((_, visited)) = self.queue.iter_mut().find(|(held, _)| *held == name) {
            *visited = true;
            return true;
        }
        if self.queue.len() == self.capacity {
            // Past the newest the hand begins again at the oldest.
            self.hand %= self.capacity;
            while self.queue[self.hand].1 {
                self.queue[self.hand].1 = false;
                self.hand = (self.hand + 1) % self.capacity;
            }
            let was_newest = self.hand + 1 == self.capacity;
            self.queue.remove(self.hand);
            if was_newest {
                self.hand = 0;
            }
        }
        self.queue.push((name, false));
        false
    }
}

/// Counts, and when each was reached, for LFU.
#[derive(Default)]
struct Lfu {
    cached: BTreeMap<u64, (u64, usize)>,
    evicted: BTreeMap<u64, u64>,
    remembers: bool,
    now: usize,
    capacity: usize,
}

impl Oracle for Lfu {
    fn request(&mut self, name: u64) -> bool {
        self.now += 1;
        if let Some((count, since)) = self.cached.get_mut(&name) {
            (*count, *since) = (*count + 1, self.now);
            return true;
        }
        if self.cached.len() == self.capacity {
            let least = self.cached.iter().min_by_key(|(_, rank)| **rank);
            let (&least, &(count, _)) = least.expect("a full cache");
            self.cached.remove(&least);
            self.evicted.insert(least, count);
        }
        let before = self.evicted.remove(&name).filter(|_| self.remembers);
        self.cached
            .insert(name, (before.unwrap_or(0) + 1, self.now));
        false
    }
}

#[derive(Default)]
struct TwoQ {
    newcomers: VecDeque<u64>,
    ghosts: VecDeque<u64>,
    frequent: VecDeque<u64>,
    capacity: usize,
}

impl Oracle for TwoQ {
    fn request(&mut self, name: u64) -> bool {
        if take(&mut self.frequent, name) {
            self.frequent.push_back(name);
            return true;
        }
        if self.newcomers.contains(&name) {
            return true;
        }
        let mut returns = self.ghosts.contains(&name);
        if self.newcomers.len() + self.frequent.len() == self.capacity {
            if self.newcomers.len() > self.capacity / 4 || self.frequent.is_empty() {
                let oldest = self.newcomers.pop_front().expect("newcomers");
                self.ghosts.push_back(oldest);
                if self.ghosts.len() > self.capacity / 2 {
                    self.ghosts.pop_front();
                    returns = self.ghosts.contains(&name);
                }
            } else {
                self.frequent.pop_front();
            }
        }
        if returns {
            take(&mut self.ghosts, name);
            self.frequent.push_back(name);
        } else {
            self.newcomers.push_back(name);
        }
        false
    }
}

/// Figure 4 of the paper, case by case. Fronts are least recent.
#[derive(Default)]
struct Arc {
    t1: VecDeque<u64>,
    t2: VecDeque<u64>,
    b1: VecDeque<u64>,
    b2: VecDeque<u64>,
    p: usize,
    c: usize,
}

impl Arc {
    fn replace(&mut self, in_b2: bool) {
        let n = self.t1.len();
        if n > 0 && (n > self.p || (in_b2 && n == self.p)) || self.t2.is_empty() {
            let name = self.t1.pop_front().expect("not both are empty");
            self.b1.push_back(name);
        } else {
            let name = self.t2.pop_front().expect("not empty");
            self.b2.push_back(name);
        }
    }
}

impl Oracle for Arc {
    fn request(&mut self, name: u64) -> bool {
        if take(&mut self.t1, name) || take(&mut self.t2, name) {
            self.t2.push_back(name);
            return true;
        }
        if self.b1.contains(&name) {
            let step = (self.b2.len() / self.b1.len()).max(1);
            self.p = (self.p + step).min(self.c);
            self.replace(false);
            take(&mut self.b1, name);
            self.t2.push_back(name);
            return false;
        }
        if self.b2.contains(&name) {
            let step = (self.b1.len() / self.b2.len()).max(1);
            self.p = self.p.saturating_sub(step);
            self.replace(true);
            take(&mut self.b2, name);
            self.t2.push_back(name);
            return false;
        }
        let (l1, l2) = (self.t1.len() + self.b1.len(), self.t2.len() + self.b2.len());
        if l1 == self.c {
            if self.t1.len() < self.c {
                self.b1.pop_front();
                self.replace(false);
            } else {
                self.t1.pop_front();
            }
        } else if l1 + l2 >= self.c {
            if l1 + l2 == 2 * self.c {
                self.b2.pop_front();
            }
            self.replace(false);
        }
        self.t1.push_back(name);
        false
    }
}

#[derive(Default)]
struct S3Fifo {
    small: VecDeque<(u64, u32)>,
    main: VecDeque<(u64, u32)>,
    ghosts: VecDeque<u64>,
    capacity: usize,
}

impl S3Fifo {
    fn evict(&mut self) {
        let max_small = self.capacity / 10;
        loop {
            if self.small.len() >= max_small.max(1) || self.main.is_empty() {
                let (name, count) = self.small.pop_front().expect("not both are empty");
                if count < 2 {
                    self.ghosts.push_back(name);
                    if self.ghosts.len() > self.capacity - max_small {
                        self.ghosts.pop_front();
                    }
                    return;
                }
                self.main.push_back((name, 0));
            } else {
                let (name, count) = self.main.pop_front().expect("not empty");
                if count == 0 {
                    return;
                }
                self.main.push_back((name, count - 1));
            }
        }
    }
}

impl Oracle for S3Fifo {
    fn request(&mut self, name: u64) -> bool {
        let mut all = self.small.iter_mut().chain(&mut self.main);
        if let Some((_, count)) = all.find(|(held, _)| *held == name) {
            *count = (*count + 1).min(3);
            return true;
        }
        if self.small.len() + self.main.len() == self.capacity {
            self.evict();
        }
        if take(&mut self.ghosts, name) {
            self.main.push_back((name, 0));
        } else {
            self.small.push_back((name, 0));
        }
        false
    }
}

#[derive(Default)]
struct Slru {
    probation: VecDeque<u64>,
    protected: VecDeque<u64>,
    capacity: usize,
}

impl Oracle for Slru {
    fn request(&mut self, name: u64) -> bool {
        if take(&mut self.protected, name) {
            self.protected.push_back(name);
            return true;
        }
        if take(&mut self.probation, name) {
            self.protected.push_back(name);
            if self.protected.len() > self.capacity * 4 / 5 {
                let demoted = self.protected.pop_front().expect("not empty");
                self.probation.push_back(demoted);
            }
            return true;
        }
        if self.probation.len() + self.protected.len() == self.capacity
            && self.probation.pop_front().is_none()
        {
            self.protected.pop_front();
        }
        self.probation.push_back(name);
        false
    }
}

/// The stack holds names; what is LIR and what is cached lies beside it.
#[derive(Default)]
struct Lirs {
    /// The back is the top.
    stack: VecDeque<u64>,
    lir: Vec<u64>,
    queue: VecDeque<u64>,
    ghosts: VecDeque<u64>,
    capacity: usize,
}

impl Lirs {
    fn prune(&mut self) {
        while let Some(&bottom) = self.stack.front() {
            if self.lir.contains(&bottom) {
                return;
            }
            self.stack.pop_front();
            take(&mut self.ghosts, bottom);
        }
    }

    fn make_lir(&mut self, name: u64) {
        let max_lir = self.capacity - (self.capacity / 100).max(1);
        self.stack.push_back(name);
        self.lir.push(name);
        if self.lir.len() > max_lir {
            self.prune();
            let bottom = self.stack.pop_front().expect("a LIR name");
            self.lir.retain(|&held| held != bottom);
            self.queue.push_back(bottom);
            self.prune();
        }
    }
}

impl Oracle for Lirs {
    fn request(&mut self, name: u64) -> bool {
        if self.lir.contains(&name) {
            take(&mut self.stack, name);
            self.stack.push_back(name);
            self.prune();
            return true;
        }
        if self.queue.contains(&name) {
            if take(&mut self.stack, name) {
                take(&mut self.queue, name);
                self.make_lir(name);
            } else {
                self.stack.push_back(name);
                take(&mut self.queue, name);
                self.queue.push_back(name);
                self.prune();
            }
            return true;
        }
        let mut returns = self.ghosts.contains(&name);
        if self.lir.len() + self.queue.len() == self.capacity {
            let victim = self.queue.pop_front().expect("one is not LIR");
            if self.stack.contains(&victim) {
                if self.ghosts.len() == self.capacity {
                    let oldest = self.ghosts.pop_front().expect("full");
                    take(&mut self.stack, oldest);
                    returns = self.ghosts.contains(&name);
                }
                self.ghosts.push_back(victim);
            }
        }
        let max_lir = self.capacity - (self.capacity / 100).max(1);
        if returns {
            take(&mut self.ghosts, name);
            take(&mut self.stack, name);
            self.make_lir(name);
        } else if self.lir.len() < max_lir {
            self.make_lir(name);
        } else {
            self.stack.push_back(name);
            self.queue.push_back(name);
            self.prune();
        }
        false
    }
}

fn oracle(kind: EvictionKind, capacity: usize) -> Option<Box<dyn Oracle>> {
    let clock = |max_marks| Clock {
        queue: VecDeque::new(),
        capacity,
        max_marks,
    };
    Some(match kind {
        EvictionKind::Fifo => Box::new(Fifo {
            queue: VecDeque::new(),
            capacity,
        }),
        // With one search for all of them, nothing is left out.
        EvictionKind::LruLocal if capacity > 16 => return None,
        EvictionKind::Lru | EvictionKind::LruLocal => {
            let capacity = NonZeroUsize::new(capacity).expect("not 0");
            Box::new(lru::LruCache::new(capacity))
        }
        EvictionKind::Sieve => Box::new(Sieve {
            capacity,
            ..Sieve::default()
        }),
        EvictionKind::Clock => Box::new(clock(1)),
        EvictionKind::Gclock => Box::new(clock(3)),
        EvictionKind::Lfu | EvictionKind::LfuPerfect => Box::new(Lfu {
            capacity,
            remembers: kind == EvictionKind::LfuPerfect,
            ..Lfu::default()
        }),
        EvictionKind::TwoQ => Box::new(TwoQ {
            capacity,
            ..TwoQ::default()
        }),
        EvictionKind::Arc => Box::new(Arc {
            c: capacity,
            ..Arc::default()
        }),
        EvictionKind::S3Fifo => Box::new(S3Fifo {
            capacity,
            ..S3Fifo::default()
        }),
        EvictionKind::Slru => Box::new(Slru {
            capacity,
            ..Slru::default()
        }),
        EvictionKind::Lirs => Box::new(Lirs {
            capacity,
            ..Lirs::default()
        }),
        // Draw, or search among neighbours: nothing to agree with, see `pairs`.
        _ => return None,
    })
}

fn assert_agreement(kind: EvictionKind, capacity: usize, names: &[u64]) {
    let Some(mut oracle) = oracle(kind, capacity) else {
        return;
    };
    let mut tested = Tested::new(kind, capacity);
    for (n, &name) in names.iter().enumerate() {
        let expected = oracle.request(name);
        assert_eq!(
            tested.request(name),
            expected,
            "{kind}, {capacity}: {name} at {n}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 100 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn hits_are_those_of_the_oracle(
        capacity in 1_usize..24,
        names in prop::collection::vec((0_u64..60, 0_u64..60), 1..400),
    ) {
        // The lesser of two draws: some are more popular.
        let names: Vec<u64> = names.into_iter().map(|(a, b)| a.min(b)).collect();
        for kind in EvictionKind::ALL {
            assert_agreement(kind, capacity, &names);
        }
    }
}

#[test]
fn hits_are_those_of_the_oracle_with_larger_shares() {
    // Large enough for the hundredths and tenths that some policies reckon with.
    let mut state = 7_u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (state >> 33) % n
    };
    let n_requests = if cfg!(miri) { 1_000 } else { 30_000 };
    let names: Vec<u64> = (0..n_requests)
        .map(|_| {
            let most = draw(1_500) + 1;
            draw(most)
        })
        .collect();
    for kind in EvictionKind::ALL {
        assert_agreement(kind, 230, &names);
    }
}
