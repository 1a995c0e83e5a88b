//! What a content store asks about which Data to keep.
//!
//! Owns the questions only: the store knows slots and hashes of names, and whoever answers
//! knows nothing else. Policies themselves are the affair of a crate of their own, so that
//! a simulation drives the very same ones.

use std::fmt::Debug;

use tachonym_memory::Pages;
use tachonym_packet::NameHash;

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

/// Decides which Data a content store admits, and which it evicts, by the slots that they
/// are in and the hashes of their names. No call may allocate.
///
/// `hash_of` is the hash of the name in a slot that is held.
pub trait CachePolicy: Debug + Sized {
    /// Why there is none for so many Data.
    type Refusal: Debug;

    /// An empty policy of the same kind for slots below `n_slots`, of which `capacity` are
    /// held at most in the long run.
    ///
    /// # Errors
    /// If there is not as much memory.
    fn for_capacity(&self, n_slots: usize, capacity: usize) -> Result<Self, Self::Refusal>;

    /// Slots lie below this number.
    fn n_slots(&self) -> usize;

    /// A name was asked for, and no Data answers.
    fn handle_request(&mut self, hash: NameHash);

    /// A name was asked for, and a Data answers: one that [`CachePolicy::handle_hit`] tells
    /// of, or that a policy before this one holds.
    fn handle_answered(&mut self, hash: NameHash);

    /// It is in charge from now on, and `former` no longer, which may hold Data still. What
    /// is known of requests, and not of Data, may be taken over.
    fn take_over(&mut self, former: &mut Self);

    /// The Data in a slot answers an Interest.
    fn handle_hit(&mut self, slot: u32);

    /// The Data in a slot has come again, though no Interest was answered by it.
    fn handle_refresh(&mut self, slot: u32);

    /// Whether it admits everything, so that it need not be asked.
    fn admits_all(&self) -> bool;

    /// Whether a Data is to be cached that is not. `is_full` tells whether another one
    /// would have to go.
    fn admits(&mut self, hash: NameHash, is_full: bool, hash_of: impl Fn(u32) -> NameHash) -> bool;

    /// A slot that was not held has a new Data.
    fn handle_insert(&mut self, slot: u32, hash: NameHash, hash_of: impl Fn(u32) -> NameHash);

    /// As [`CachePolicy::handle_insert`], of a Data that another policy held before.
    fn handle_move(&mut self, slot: u32, hash: NameHash, hash_of: impl Fn(u32) -> NameHash);

    /// Takes out the slot to empty, so that a Data whose name hashes to `incoming` may
    /// come; `None` if none is held.
    fn evict(&mut self, incoming: NameHash, hash_of: impl Fn(u32) -> NameHash) -> Option<u32>;

    /// A slot is emptied for another reason than that [`CachePolicy::evict`] named it.
    fn handle_remove(&mut self, slot: u32);

    /// Whether most Data are admitted. A hint.
    fn admits_most(&self) -> bool;

    /// What is likely to be evicted after the next one, and what after that; `None` where
    /// that is not known cheaply. A hint.
    fn upcoming(&self) -> [Option<u32>; 2];

    /// Fetches what [`CachePolicy::handle_request`] will read.
    fn prefetch_request(&self, hash: NameHash);

    /// Fetches what [`CachePolicy::admits`] and [`CachePolicy::handle_insert`] will read.
    fn prefetch_incoming(&self, hash: NameHash);

    /// Fetches what [`CachePolicy::handle_hit`] will read.
    fn prefetch_hit(&self, slot: u32);

    /// Whether no slot is held.
    fn is_empty(&self) -> bool;

    /// What pages its tables have, of those that ask the system for them.
    fn pages(&self) -> Pages;

    /// Memory in use.
    fn memory_bytes(&self) -> usize;
}
