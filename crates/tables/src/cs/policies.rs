//! The policy in charge of a content store, and those before it.
//!
//! A store may change its policy while it is full. What former ones hold is evicted first,
//! in their order, unless it is asked for; so the new one need not be told of all of it.

use std::collections::VecDeque;

use tachonym_memory::Pages;
use tachonym_packet::NameHash;
use tachonym_policy::Policy;

use super::entry::CsEntry;
use crate::slab::Slab;

/// A part of the work of the content store on a packet, for a caller that measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyStep {
    /// A request is noted: until the call returns.
    History,
    /// Whether a Data is admitted is decided.
    Admission,
    /// A victim is chosen.
    Eviction,
    /// Entries of the PIT that a Data has satisfied are removed.
    PendingRemoval,
    /// The store does its own work again.
    Store,
}

/// Most policies that were in charge before and hold Data still.
const MAX_FORMER: usize = 16;

/// Most policies that wait for being fetched: beyond, they are freed at once.
const MAX_RETIRED: usize = MAX_FORMER + 1;

/// See the module. Each entry has the number of the policy that holds it.
#[derive(Debug)]
pub(super) struct Policies {
    in_charge: Policy,
    /// Its number; those before count down from it.
    number: u8,
    /// The first in front, until all that they hold has gone or been asked for.
    former: VecDeque<Policy>,
    /// Those of which nothing is asked any more, until they are fetched: giving much memory
    /// back takes long.
    retired: Vec<Policy>,
}

impl Policies {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            in_charge: policy,
            number: 0,
            former: VecDeque::with_capacity(MAX_FORMER),
            retired: Vec::with_capacity(MAX_RETIRED),
        }
    }

    pub(super) const fn in_charge(&self) -> &Policy {
        &self.in_charge
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let others = self.former.iter().chain(&self.retired);
        self.in_charge.memory_bytes() + others.map(Policy::memory_bytes).sum::<usize>()
    }

    pub(super) fn pages(&self) -> Pages {
        let others = self.former.iter().chain(&self.retired).map(Policy::pages);
        others.fold(self.in_charge.pages(), |sum, pages| sum + pages)
    }

    /// Puts a policy in charge that holds no slot. Passes over no Data, unless there are
    /// [`MAX_FORMER`] policies before it: those of the first are told to the second then.
    pub(super) fn put_in_charge(&mut self, policy: Policy, slots: &mut Slab<CsEntry>) {
        while let Some(empty) = self.former.pop_front_if(|policy| policy.is_empty()) {
            self.retire(empty);
        }
        let mut before = std::mem::replace(&mut self.in_charge, policy);
        self.in_charge.take_over(&mut before);
        if before.is_empty() {
            // What has its number is nothing.
            return self.retire(before);
        }
        if self.former.len() == MAX_FORMER {
            self.join_oldest(slots);
        }
        self.former.push_back(before);
        self.number = self.number.wrapping_add(1);
    }

    /// The second of the former policies takes what the first holds.
    fn join_oldest(&mut self, slots: &mut Slab<CsEntry>) {
        let number = self.number.wrapping_sub(self.former.len() as u8);
        if let Some(first) = self.former.pop_front() {
            self.retire(first);
        }
        let Some(second) = self.former.front_mut() else {
            return;
        };
        for slot in 0..slots.n_touched() {
            let entry = &mut slots[slot];
            if entry.is_live() && entry.policy_number == number {
                entry.policy_number = number.wrapping_add(1);
                let hash = entry.name_hash.0;
                second.handle_move(slot, hash, |slot| slots[slot].name_hash.0);
            }
        }
    }

    /// The former policy of this number; `None` if it is the one in charge.
    fn former_of(&mut self, number: u8) -> Option<&mut Policy> {
        match usize::from(self.number.wrapping_sub(number)) {
            0 => None,
            age => {
                let n_former = self.former.len();
                self.former.get_mut(n_former.wrapping_sub(age))
            }
        }
    }

    /// Nothing is asked of a policy any more.
    fn retire(&mut self, policy: Policy) {
        if self.retired.len() < MAX_RETIRED {
            self.retired.push(policy);
        }
    }

    #[inline]
    pub(super) fn handle_request(&mut self, hash: NameHash) {
        self.in_charge.handle_request(hash.0);
    }

    #[inline]
    pub(super) fn handle_answered(&mut self, hash: NameHash) {
        self.in_charge.handle_answered(hash.0);
    }

    /// The Data in a slot is of use.
    #[inline]
    pub(super) fn handle_hit(&mut self, slot: u32, slots: &mut Slab<CsEntry>) {
        if slots[slot].policy_number == self.number {
            self.in_charge.handle_hit(slot);
        } else {
            self.move_to_charge(slot, slots);
        }
    }

    /// The policy in charge takes a Data over from a former one.
    #[cold]
    fn move_to_charge(&mut self, slot: u32, slots: &mut Slab<CsEntry>) {
        let entry = &mut slots[slot];
        if let Some(former) = self.former_of(entry.policy_number) {
            former.handle_remove(slot);
        }
        entry.policy_number = self.number;
        let hash = entry.name_hash.0;
        self.in_charge
            .handle_move(slot, hash, |slot| slots[slot].name_hash.0);
    }

    /// The Data in a slot has come again.
    pub(super) fn handle_refresh(&mut self, slot: u32, slots: &mut Slab<CsEntry>) {
        if slots[slot].policy_number == self.number {
            self.in_charge.handle_refresh(slot);
        } else {
            self.move_to_charge(slot, slots);
        }
    }

    /// As [`Policy::admits`]; what former policies hold competes with nothing.
    #[inline]
    pub(super) fn admits(&mut self, hash: NameHash, is_full: bool, slots: &Slab<CsEntry>) -> bool {
        let is_full = is_full && self.former.is_empty();
        self.in_charge
            .admits(hash.0, is_full, |slot| slots[slot].name_hash.0)
    }

    /// A slot that is held by none has a Data.
    #[inline]
    pub(super) fn handle_insert(&mut self, slot: u32, slots: &mut Slab<CsEntry>) {
        let entry = &mut slots[slot];
        entry.policy_number = self.number;
        let hash = entry.name_hash.0;
        self.in_charge
            .handle_insert(slot, hash, |slot| slots[slot].name_hash.0);
    }

    /// What makes room for a Data whose name hashes to `incoming`: it is not held any more.
    #[inline]
    pub(super) fn evict(&mut self, incoming: NameHash, slots: &Slab<CsEntry>) -> Option<u32> {
        if !self.former.is_empty()
            && let Some(victim) = self.evict_from_former(incoming, slots)
        {
            return Some(victim);
        }
        let hash_of = |slot: u32| slots[slot].name_hash.0;
        self.in_charge.evict(incoming.0, hash_of)
    }

    /// The next of the Data that former policies hold.
    #[cold]
    fn evict_from_former(&mut self, incoming: NameHash, slots: &Slab<CsEntry>) -> Option<u32> {
        while let Some(former) = self.former.front_mut() {
            let victim = former.evict(incoming.0, |slot| slots[slot].name_hash.0);
            if victim.is_some() {
                return victim;
            }
            let empty = self.former.pop_front()?;
            self.retire(empty);
        }
        None
    }

    /// A slot is emptied for another reason.
    pub(super) fn handle_remove(&mut self, slot: u32, slots: &Slab<CsEntry>) {
        match self.former_of(slots[slot].policy_number) {
            Some(former) => former.handle_remove(slot),
            None => self.in_charge.handle_remove(slot),
        }
    }

    /// As [`Policy::upcoming`].
    pub(super) fn upcoming(&self) -> [Option<u32>; 2] {
        self.former.front().unwrap_or(&self.in_charge).upcoming()
    }

    /// Takes out one of those of which nothing is asked any more.
    pub(super) fn take_retired(&mut self) -> Option<Policy> {
        self.retired.pop()
    }
}
