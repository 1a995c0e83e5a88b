//! Low inter-reference recency set.
//!
//! Jiang and Zhang, "LIRS: an efficient low inter-reference recency set replacement
//! policy", SIGMETRICS 2002. Of what it leaves open: a hundredth of the cache, and at
//! least one Data, is for those of high inter-reference recency (its section 3.3), and
//! of names that are cached no more, as many as the cache has Data stay on the stack; the
//! one evicted first is forgotten first.

use super::Evict;
use crate::ghosts::Ghosts;
use crate::list::{Links, List};

/// Names on the stack that are not cached, by the size of the cache.
const GHOSTS_BY_LEN: usize = 1;

/// Belongs to the LIR set.
const LIR: u8 = 1;
/// On the stack.
const ON_STACK: u8 = 2;

/// Keeps those whose last two requests lie close together; others pass a short
/// queue.
#[derive(Clone, Debug)]
pub(crate) struct Lirs {
    /// The stack's nodes: slots, then ghosts.
    stack_links: Links,
    /// S: front is its top.
    stack: List,
    /// Slots on the queue, and ghosts in the order in which they were evicted.
    queue_links: Links,
    /// Q: back is next to go.
    queue: List,
    ghost_queue: List,
    ghosts: Ghosts,
    /// By slot: see the flags.
    states: Vec<u8>,
    n_slots: u32,
    n_lir: usize,
    max_lir: usize,
}

impl Lirs {
    pub(crate) fn new(n_slots: usize, target_len: usize) -> Self {
        let n_ghosts = target_len * GHOSTS_BY_LEN;
        let max_hir = (target_len / 100).max(1);
        Self {
            stack_links: Links::new(n_slots + n_ghosts),
            stack: List::default(),
            queue_links: Links::new(n_slots + n_ghosts),
            queue: List::default(),
            ghost_queue: List::default(),
            ghosts: Ghosts::new(n_ghosts),
            states: vec![0; n_slots],
            n_slots: u32::try_from(n_slots).expect("sizes are checked before"),
            n_lir: 0,
            max_lir: target_len.saturating_sub(max_hir),
        }
    }

    fn has(&self, slot: u32, flag: u8) -> bool {
        self.states[slot as usize] & flag != 0
    }

    /// The bottom of the stack is a LIR slot, or the stack is empty.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.back() {
            if bottom >= self.n_slots {
                self.forget(bottom);
            } else if self.has(bottom, LIR) {
                return;
            } else {
                self.stack.remove(&mut self.stack_links, bottom);
                self.states[bottom as usize] &= !ON_STACK;
            }
        }
    }

    /// Forgets the ghost at this node of the stack.
    fn forget(&mut self, node: u32) {
        self.stack.remove(&mut self.stack_links, node);
        self.ghost_queue.remove(&mut self.queue_links, node);
        self.ghosts.remove(node - self.n_slots);
    }

    /// Makes the LIR slot at the bottom of the stack give way to another one.
    fn demote_bottom(&mut self) {
        self.prune();
        if let Some(bottom) = self.stack.back() {
            self.stack.remove(&mut self.stack_links, bottom);
            self.states[bottom as usize] = 0;
            self.n_lir -= 1;
            self.queue.push_front(&mut self.queue_links, bottom);
            self.prune();
        }
    }

    /// Puts a slot that is on neither list on top of the stack, as LIR.
    fn push_lir(&mut self, slot: u32) {
        self.stack.push_front(&mut self.stack_links, slot);
        self.states[slot as usize] = LIR | ON_STACK;
        self.n_lir += 1;
        if self.n_lir > self.max_lir {
            self.demote_bottom();
        }
    }
}

impl Evict for Lirs {
    fn insert(&mut self, slot: u32, hash: u64) {
        if let Some(ghost) = self.ghosts.find(hash) {
            self.forget(ghost + self.n_slots);
            self.push_lir(slot);
        } else if self.n_lir < self.max_lir {
            self.push_lir(slot);
        } else {
            self.states[slot as usize] = ON_STACK;
            self.stack.push_front(&mut self.stack_links, slot);
            self.queue.push_front(&mut self.queue_links, slot);
            // Without LIR slots there is no bottom to be measured against.
            self.prune();
        }
    }

    fn hit(&mut self, slot: u32) {
        if self.has(slot, LIR) {
            self.stack.move_to_front(&mut self.stack_links, slot);
            self.prune();
        } else if self.has(slot, ON_STACK) {
            self.stack.remove(&mut self.stack_links, slot);
            self.queue.remove(&mut self.queue_links, slot);
            self.push_lir(slot);
        } else {
            self.stack.push_front(&mut self.stack_links, slot);
            self.states[slot as usize] = ON_STACK;
            self.queue.move_to_front(&mut self.queue_links, slot);
            self.prune();
        }
    }

    fn victim(&mut self, _: u64) -> Option<u32> {
        // After a removal there may be LIR slots alone, one of which is at the bottom.
        self.queue.back().or(self.stack.back())
    }

    fn evict(&mut self, slot: u32, hash: u64) {
        let leaves_ghost = self.states[slot as usize] == ON_STACK;
        if !leaves_ghost || self.ghosts.find(hash).is_some() {
            self.remove(slot);
            return;
        }
        if self.ghosts.is_full()
            && let Some(oldest) = self.ghost_queue.back()
        {
            self.forget(oldest);
        }
        self.queue.remove(&mut self.queue_links, slot);
        self.states[slot as usize] = 0;
        match self.ghosts.insert(hash) {
            Some(ghost) => {
                let node = ghost + self.n_slots;
                self.stack.replace(&mut self.stack_links, slot, node);
                self.ghost_queue.push_front(&mut self.queue_links, node);
            }
            None => self.stack.remove(&mut self.stack_links, slot),
        }
    }

    fn remove(&mut self, slot: u32) {
        let state = std::mem::take(&mut self.states[slot as usize]);
        if state & ON_STACK != 0 {
            self.stack.remove(&mut self.stack_links, slot);
        }
        if state & LIR != 0 {
            self.n_lir -= 1;
        } else {
            self.queue.remove(&mut self.queue_links, slot);
        }
        self.prune();
    }

    fn len(&self) -> usize {
        self.n_lir + self.queue.len()
    }

    fn prefetch_incoming(&self, hash: u64) {
        self.ghosts.prefetch(hash);
    }

    fn prefetch_hit(&self, slot: u32) {
        self.stack_links.prefetch(slot);
    }

    fn memory_bytes(&self) -> usize {
        self.stack_links.memory_bytes()
            + self.queue_links.memory_bytes()
            + self.ghosts.memory_bytes()
            + size_of_val(&*self.states)
    }
}
