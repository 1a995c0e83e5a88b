//! Which cached Data goes first.
//!
//! Owns the order among slots of the content store, and nothing of what is in
//! them. [`Eviction`] is what a policy has to answer; [`Lru`] and [`LocalLfu`]
//! are the ones there are, [`CsPolicy`] names them. What a policy knows of a
//! slot is two words in the line that the store reads anyway.

use std::fmt;
use std::str::FromStr;

const NIL: u32 = u32::MAX;

/// What a policy keeps of each Data, in its slot.
pub type SlotState = [u32; 2];

/// The states of all slots.
pub trait SlotStates {
    /// That of one slot. Whoever fills the slot has not changed it.
    fn state_mut(&mut self, slot: u32) -> &mut SlotState;
}

/// An eviction policy over slot numbers. Each call is O(1) and, in steady
/// state, allocates nothing.
pub trait Eviction {
    /// A slot that was empty holds a new Data.
    fn handle_insert(&mut self, slot: u32, states: &mut impl SlotStates);

    /// The Data in a slot was asked for, or arrived again.
    fn handle_hit(&mut self, slot: u32, states: &mut impl SlotStates);

    /// A slot is empty again.
    fn handle_remove(&mut self, slot: u32, states: &mut impl SlotStates);

    /// The slot to empty next; `None` only if the policy does not tell, or none
    /// holds a Data. `neighbours` hold Data that are indexed where one that is to
    /// come will be; they may be none.
    fn victim(
        &mut self,
        neighbours: impl Iterator<Item = u32>,
        states: &mut impl SlotStates,
    ) -> Option<u32>;
}

/// The eviction policies of the content store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CsPolicy {
    /// See [`Lru`].
    #[default]
    Lru,
    /// See [`LocalLfu`].
    Lfu,
}

impl CsPolicy {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Lru, Self::Lfu];

    /// The word for it in configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Lfu => "lfu",
        }
    }
}

impl fmt::Display for CsPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CsPolicy {
    type Err = UnknownCsPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownCsPolicy> {
        let found = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        found.ok_or(UnknownCsPolicy)
    }
}

/// The text names no eviction policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCsPolicy;

impl fmt::Display for UnknownCsPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not one of lru, lfu")
    }
}

impl std::error::Error for UnknownCsPolicy {}

/// The policy in charge.
#[derive(Debug)]
pub(super) enum Policy {
    Lru(Lru),
    Lfu(LocalLfu),
}

impl Policy {
    pub(super) fn new(policy: CsPolicy) -> Self {
        match policy {
            CsPolicy::Lru => Self::Lru(Lru::default()),
            CsPolicy::Lfu => Self::Lfu(LocalLfu::default()),
        }
    }

    pub(super) const fn policy(&self) -> CsPolicy {
        match self {
            Self::Lru(_) => CsPolicy::Lru,
            Self::Lfu(_) => CsPolicy::Lfu,
        }
    }
}

impl Eviction for Policy {
    fn handle_insert(&mut self, slot: u32, states: &mut impl SlotStates) {
        match self {
            Self::Lru(lru) => lru.handle_insert(slot, states),
            Self::Lfu(lfu) => lfu.handle_insert(slot, states),
        }
    }

    fn handle_hit(&mut self, slot: u32, states: &mut impl SlotStates) {
        match self {
            Self::Lru(lru) => lru.handle_hit(slot, states),
            Self::Lfu(lfu) => lfu.handle_hit(slot, states),
        }
    }

    fn handle_remove(&mut self, slot: u32, states: &mut impl SlotStates) {
        match self {
            Self::Lru(lru) => lru.handle_remove(slot, states),
            Self::Lfu(lfu) => lfu.handle_remove(slot, states),
        }
    }

    fn victim(
        &mut self,
        neighbours: impl Iterator<Item = u32>,
        states: &mut impl SlotStates,
    ) -> Option<u32> {
        match self {
            Self::Lru(lru) => lru.victim(neighbours, states),
            Self::Lfu(lfu) => lfu.victim(neighbours, states),
        }
    }
}

/// Evicts what was used longest ago. A hit writes to four lines: the Data's own,
/// which is read anyway, those of its neighbours in the list, and that of the
/// Data used last (Yuan 2015, section 6.1.3).
#[derive(Debug)]
pub struct Lru {
    oldest: u32,
    newest: u32,
}

impl Default for Lru {
    fn default() -> Self {
        Self {
            oldest: NIL,
            newest: NIL,
        }
    }
}

/// Places in [`Lru`]'s states.
const OLDER: usize = 0;
const NEWER: usize = 1;

impl Lru {
    /// What goes next.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NIL).then_some(self.oldest)
    }

    /// What goes after a slot of this state.
    pub(super) fn newer(state: SlotState) -> Option<u32> {
        (state[NEWER] != NIL).then_some(state[NEWER])
    }

    /// The slots that a hit of one of this state writes to besides.
    pub(super) fn neighbours(state: SlotState) -> impl Iterator<Item = u32> {
        state.into_iter().filter(|&slot| slot != NIL)
    }

    fn push_newest(&mut self, slot: u32, states: &mut impl SlotStates) {
        *states.state_mut(slot) = [self.newest, NIL];
        match self.newest {
            NIL => self.oldest = slot,
            newest => states.state_mut(newest)[NEWER] = slot,
        }
        self.newest = slot;
    }
}

impl Eviction for Lru {
    fn handle_insert(&mut self, slot: u32, states: &mut impl SlotStates) {
        self.push_newest(slot, states);
    }

    fn handle_hit(&mut self, slot: u32, states: &mut impl SlotStates) {
        if self.newest != slot {
            self.handle_remove(slot, states);
            self.push_newest(slot, states);
        }
    }

    fn handle_remove(&mut self, slot: u32, states: &mut impl SlotStates) {
        let [older, newer] = *states.state_mut(slot);
        match older {
            NIL => self.oldest = newer,
            older => states.state_mut(older)[NEWER] = newer,
        }
        match newer {
            NIL => self.newest = older,
            newer => states.state_mut(newer)[OLDER] = older,
        }
    }

    fn victim(&mut self, _: impl Iterator<Item = u32>, _: &mut impl SlotStates) -> Option<u32> {
        self.oldest()
    }
}

/// Greatest number of uses that is told from fewer.
const MAX_USES: u32 = 255;

/// Evicts what was used least among the Data that the index has where the new
/// one goes, sixteen at most: local search (Yuan 2015, section 6.1.3).
///
/// Uses are counted up to 255, and all counts are halved whenever as many Data
/// have come as there were at the last halving; a count is brought up to date
/// when it is looked at. Of equal counts the one goes that was looked at longest
/// ago. A hit writes to the Data's own line only.
#[derive(Debug, Default)]
pub struct LocalLfu {
    n_data: u32,
    /// How often counts were halved.
    n_halvings: u32,
    n_inserts_left: u32,
}

/// Places in [`LocalLfu`]'s states.
const USES: usize = 0;
const HALVED: usize = 1;

impl LocalLfu {
    fn uses(&self, state: SlotState) -> u32 {
        let n_missed = self.n_halvings.wrapping_sub(state[HALVED]);
        state[USES].checked_shr(n_missed).unwrap_or(0)
    }
}

impl Eviction for LocalLfu {
    fn handle_insert(&mut self, slot: u32, states: &mut impl SlotStates) {
        self.n_data += 1;
        if self.n_inserts_left == 0 {
            self.n_halvings = self.n_halvings.wrapping_add(1);
            self.n_inserts_left = self.n_data;
        }
        self.n_inserts_left -= 1;
        *states.state_mut(slot) = [1, self.n_halvings];
    }

    fn handle_hit(&mut self, slot: u32, states: &mut impl SlotStates) {
        let state = states.state_mut(slot);
        *state = [(self.uses(*state) + 1).min(MAX_USES), self.n_halvings];
    }

    fn handle_remove(&mut self, _: u32, _: &mut impl SlotStates) {
        self.n_data -= 1;
    }

    fn victim(
        &mut self,
        neighbours: impl Iterator<Item = u32>,
        states: &mut impl SlotStates,
    ) -> Option<u32> {
        neighbours.min_by_key(|&slot| {
            let state = *states.state_mut(slot);
            let age = self.n_halvings.wrapping_sub(state[HALVED]);
            (self.uses(state), u32::MAX - age)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl SlotStates for Vec<SlotState> {
        fn state_mut(&mut self, slot: u32) -> &mut SlotState {
            &mut self[slot as usize]
        }
    }

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
            let (mut lru, mut states) = (Lru::default(), vec![[0; 2]; 8]);
            let mut oracle = Vec::<u32>::new();
            for (slot, step) in steps {
                let place = oracle.iter().position(|&other| other == slot);
                match (place, step) {
                    (None, _) => {
                        lru.handle_insert(slot, &mut states);
                        oracle.push(slot);
                    }
                    (Some(place), 0) => {
                        lru.handle_remove(slot, &mut states);
                        oracle.remove(place);
                    }
                    (Some(place), _) => {
                        lru.handle_hit(slot, &mut states);
                        oracle.remove(place);
                        oracle.push(slot);
                    }
                }
                let victim = lru.victim(std::iter::empty(), &mut states);
                prop_assert_eq!(victim, oracle.first().copied());
            }
        }

        #[test]
        fn the_victim_is_what_was_used_least_of_those_shown(
            steps in proptest::collection::vec((0_u32..8, 0_u8..6, any::<u8>()), 1..300)
        ) {
            let (mut lfu, mut states) = (LocalLfu::default(), vec![[0; 2]; 8]);
            // Uses by slot, halved at once.
            let mut oracle = std::collections::BTreeMap::<u32, u32>::new();
            let mut n_inserts_left = 0;
            for (slot, step, shown) in steps {
                match (oracle.get_mut(&slot), step) {
                    (None, _) => {
                        lfu.handle_insert(slot, &mut states);
                        if n_inserts_left == 0 {
                            oracle.values_mut().for_each(|uses| *uses /= 2);
                            n_inserts_left = oracle.len() + 1;
                        }
                        n_inserts_left -= 1;
                        oracle.insert(slot, 1);
                    }
                    (Some(_), 0) => {
                        lfu.handle_remove(slot, &mut states);
                        oracle.remove(&slot);
                    }
                    (Some(uses), _) => {
                        lfu.handle_hit(slot, &mut states);
                        *uses = (*uses + 1).min(MAX_USES);
                    }
                }
                let shown = || (0..8).filter(|slot| shown >> slot & 1 == 1 && oracle.contains_key(slot));
                let victim = lfu.victim(shown(), &mut states);
                let least = shown().map(|slot| oracle[&slot]).min();
                prop_assert_eq!(victim.map(|slot| oracle[&slot]), least);
            }
        }
    }

    #[test]
    fn counts_of_uses_end_somewhere_and_fade() {
        let (mut lfu, mut states) = (LocalLfu::default(), vec![[0; 2]; 100]);
        lfu.handle_insert(0, &mut states);
        for _ in 0..1000 {
            lfu.handle_hit(0, &mut states);
        }
        assert_eq!(lfu.uses(states[0]), MAX_USES);
        for slot in 1..100 {
            lfu.handle_insert(slot, &mut states);
        }
        assert!(lfu.uses(states[0]) < 8, "halved with every doubling");
        assert_eq!(lfu.victim([0, 99].into_iter(), &mut states), Some(99));
    }
}
