//! Which cached Data goes first.
//!
//! Owns the order among slots of the content store, and nothing of what is in
//! them. [`Eviction`] is what a policy has to answer; [`Lru`] is the first one.

const NIL: u32 = u32::MAX;

/// An eviction policy over slot numbers. Each call is O(1) and, in steady
/// state, allocates nothing.
pub trait Eviction {
    /// A slot that was empty holds a new Data.
    fn handle_insert(&mut self, slot: u32);

    /// The Data in a slot was asked for, or arrived again.
    fn handle_hit(&mut self, slot: u32);

    /// A slot is empty again.
    fn handle_remove(&mut self, slot: u32);

    /// The slot to empty next; `None` only if none holds a Data.
    fn victim(&self) -> Option<u32>;

    /// Heap memory in use.
    fn memory_bytes(&self) -> usize;
}

#[derive(Clone, Copy, Debug)]
struct Link {
    older: u32,
    newer: u32,
}

/// Evicts what was used longest ago.
#[derive(Debug)]
pub struct Lru {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
}

impl Default for Lru {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            oldest: NIL,
            newest: NIL,
        }
    }
}

impl Lru {
    fn push_newest(&mut self, slot: u32) {
        self.links[slot as usize] = Link {
            older: self.newest,
            newer: NIL,
        };
        match self.newest {
            NIL => self.oldest = slot,
            newest => self.links[newest as usize].newer = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Link { older, newer } = self.links[slot as usize];
        match older {
            NIL => self.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        match newer {
            NIL => self.newest = older,
            newer => self.links[newer as usize].older = older,
        }
    }
}

impl Eviction for Lru {
    fn handle_insert(&mut self, slot: u32) {
        if slot as usize >= self.links.len() {
            self.links.resize(
                slot as usize + 1,
                Link {
                    older: NIL,
                    newer: NIL,
                },
            );
        }
        self.push_newest(slot);
    }

    fn handle_hit(&mut self, slot: u32) {
        if self.newest != slot {
            self.unlink(slot);
            self.push_newest(slot);
        }
    }

    fn handle_remove(&mut self, slot: u32) {
        self.unlink(slot);
    }

    fn victim(&self) -> Option<u32> {
        (self.oldest != NIL).then_some(self.oldest)
    }

    fn memory_bytes(&self) -> usize {
        self.links.capacity() * size_of::<Link>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn the_victim_is_what_was_used_longest_ago(
            steps in proptest::collection::vec((0_u32..8, 0_u8..3), 1..100)
        ) {
            let mut lru = Lru::default();
            let mut oracle = Vec::<u32>::new();
            for (slot, step) in steps {
                let place = oracle.iter().position(|&other| other == slot);
                match (place, step) {
                    (None, _) => {
                        lru.handle_insert(slot);
                        oracle.push(slot);
                    }
                    (Some(place), 0) => {
                        lru.handle_remove(slot);
                        oracle.remove(place);
                    }
                    (Some(place), _) => {
                        lru.handle_hit(slot);
                        oracle.remove(place);
                        oracle.push(slot);
                    }
                }
                prop_assert_eq!(lru.victim(), oracle.first().copied());
            }
        }
    }
}
