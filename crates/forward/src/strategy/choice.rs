//! Which strategy serves which names: the longest prefix wins, and the root
//! always has one.
//!
//! Every change begins a new epoch. A pending entry remembers the epoch and the
//! instance that served it. Once the epoch has moved on, its strategy is looked
//! up again, and if that is another instance, the entry's strategy state starts
//! afresh. So a change costs nothing per pending entry, and forwarding goes on.

use tachonym_packet::{HashKey, Name, NameHash, NameView};
use tachonym_tables::{PrefixMap, PrefixMapError};

use super::instance::{self, StrategyError};
use super::{EntryState, IntervalMs, Strategy};

/// Most prefixes with a strategy of their own.
const MAX_CHOICES: usize = 65_536;

/// Where the root's strategy is.
const ROOT: InstanceIdx = InstanceIdx(0);

/// Index of an instance; another one may take it in a later epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstanceIdx(u32);

/// A strategy in service at one prefix.
#[derive(Debug)]
struct Instance {
    /// Never reused.
    id: u32,
    name: Name,
    strategy: Strategy,
}

/// The table. **Invariant**: `instances[0]` is the root's.
#[derive(Debug)]
pub(crate) struct StrategyTable {
    by_prefix: PrefixMap<InstanceIdx>,
    instances: Vec<Option<Instance>>,
    /// Never 0, which stands for "not served yet" in an entry.
    epoch: u32,
    next_id: u32,
    /// Instances that want to hear of new next hops.
    n_wanting_next_hops: usize,
    /// Instances that want to hear of Data.
    n_measuring: usize,
    key: HashKey,
}

impl StrategyTable {
    /// A table in which `best-route` serves every name.
    pub(crate) fn new(key: HashKey) -> Self {
        let (root, root_name) = instance::default_strategy();
        let mut by_prefix = PrefixMap::new(MAX_CHOICES);
        let top = Name::new();
        by_prefix
            .insert(top.view(), key.hash_name(top.view()), ROOT)
            .expect("an empty map takes the root");
        let root = Instance {
            id: 1,
            name: root_name,
            strategy: root,
        };
        Self {
            by_prefix,
            instances: vec![Some(root)],
            epoch: 1,
            next_id: 2,
            n_wanting_next_hops: 0,
            n_measuring: 0,
            key,
        }
    }

    /// Lets the strategy named `strategy_name` serve names under `prefix`;
    /// returns its full name. Choosing what is chosen already changes nothing.
    pub(crate) fn set(
        &mut self,
        prefix: NameView<'_>,
        strategy_name: NameView<'_>,
    ) -> Result<Name, StrategyError> {
        let (strategy, name) = instance::parse(strategy_name)?;
        let hash = self.key.hash_name(prefix);
        let known = self.by_prefix.get(prefix, hash).map(|entry| entry.value);
        if let Some(idx) = known {
            if self.instance(idx).name == name {
                return Ok(name);
            }
            self.put_instance(idx, Some((strategy, name.clone())));
        } else {
            let vacant = self.instances.iter().position(Option::is_none);
            let slot = vacant.unwrap_or(self.instances.len());
            let idx = InstanceIdx(u32::try_from(slot).expect("MAX_CHOICES fits a u32"));
            self.by_prefix.insert(prefix, hash, idx)?;
            if vacant.is_none() {
                self.instances.push(None);
            }
            self.put_instance(idx, Some((strategy, name.clone())));
        }
        self.begin_epoch();
        Ok(name)
    }

    /// Leaves names under `prefix` to the next shorter choice. False if there
    /// was none of its own.
    pub(crate) fn unset(&mut self, prefix: NameView<'_>) -> Result<bool, StrategyError> {
        if prefix.is_empty() {
            return Err(StrategyError::RootNeedsStrategy);
        }
        let Some(idx) = self.by_prefix.remove(prefix, self.key.hash_name(prefix)) else {
            return Ok(false);
        };
        self.put_instance(idx, None);
        self.begin_epoch();
        Ok(true)
    }

    /// Prefixes with the full name of their strategy, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameView<'_>, NameView<'_>)> {
        self.by_prefix
            .iter()
            .map(|entry| (entry.name(), self.instance(entry.value).name.view()))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_prefix.len()
    }

    /// The instance that serves `name`.
    #[inline]
    pub(crate) fn find(&self, name: NameView<'_>, hashes: &[NameHash]) -> InstanceIdx {
        // Only the root has a choice in most routers.
        if self.by_prefix.len() == 1 {
            return ROOT;
        }
        self.find_longest(name, hashes)
    }

    fn find_longest(&self, name: NameView<'_>, hashes: &[NameHash]) -> InstanceIdx {
        self.by_prefix
            .find_longest(name, hashes)
            .map_or(ROOT, |entry| entry.value)
    }

    /// The prefix whose choice serves `name`, and the full name of the strategy.
    pub(crate) fn choice(
        &self,
        name: NameView<'_>,
        hashes: &[NameHash],
    ) -> (NameView<'_>, NameView<'_>) {
        let entry = self.by_prefix.find_longest(name, hashes);
        let prefix = entry.map_or(NameView::EMPTY, |entry| entry.name());
        let instance = self.instance(entry.map_or(ROOT, |entry| entry.value));
        (prefix, instance.name.view())
    }

    pub(crate) fn strategy_mut(&mut self, idx: InstanceIdx) -> &mut Strategy {
        let instance = self.instances[idx.0 as usize].as_mut();
        &mut instance.expect("indices are of the present epoch").strategy
    }

    /// The instance that `words` of an entry name, and the entry's state; `None`
    /// if choices have changed since.
    pub(crate) fn recall(&self, words: &[u64; 3]) -> Option<(InstanceIdx, EntryState)> {
        let saved = SavedState::from_words(words);
        (saved.epoch == self.epoch).then_some((saved.idx, saved.state))
    }

    /// The state that `words` hold for the instance at `idx`; `None` if they
    /// hold that of another one, which is void.
    pub(crate) fn state_for(&self, idx: InstanceIdx, words: &[u64; 3]) -> Option<EntryState> {
        let saved = SavedState::from_words(words);
        (saved.id == self.instance(idx).id).then_some(saved.state)
    }

    /// What an entry served by `idx` remembers.
    pub(crate) fn words(&self, idx: InstanceIdx, state: EntryState) -> [u64; 3] {
        let id = self.instance(idx).id;
        SavedState {
            epoch: self.epoch,
            idx,
            id,
            state,
        }
        .to_words()
    }

    /// Whether any strategy wants to hear of new next hops.
    pub(crate) fn any_wants_new_next_hops(&self) -> bool {
        self.n_wanting_next_hops > 0
    }

    /// Whether any strategy wants to hear of Data.
    pub(crate) fn any_measures(&self) -> bool {
        self.n_measuring > 0
    }

    /// Routes measured by all strategies together.
    pub(crate) fn n_measurements(&self) -> usize {
        self.instances
            .iter()
            .flatten()
            .map(|instance| instance.strategy.n_measurements())
            .sum()
    }

    fn instance(&self, idx: InstanceIdx) -> &Instance {
        self.instances[idx.0 as usize]
            .as_ref()
            .expect("indices are of the present epoch")
    }

    /// Replaces what is at `idx`, under a new number.
    fn put_instance(&mut self, idx: InstanceIdx, new: Option<(Strategy, Name)>) {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1).max(1);
        let new = new.map(|(strategy, name)| Instance { id, name, strategy });
        let old = std::mem::replace(&mut self.instances[idx.0 as usize], new);
        let count = |instance: &Option<Instance>, is_counted: fn(&Strategy) -> bool| {
            let strategy = instance.as_ref().map(|instance| &instance.strategy);
            usize::from(strategy.is_some_and(is_counted))
        };
        let new = &self.instances[idx.0 as usize];
        self.n_wanting_next_hops += count(new, Strategy::wants_new_next_hops);
        self.n_wanting_next_hops -= count(&old, Strategy::wants_new_next_hops);
        self.n_measuring += count(new, Strategy::measures);
        self.n_measuring -= count(&old, Strategy::measures);
    }

    fn begin_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1).max(1);
    }
}

impl From<PrefixMapError> for StrategyError {
    fn from(error: PrefixMapError) -> Self {
        match error {
            PrefixMapError::NameTooLong => Self::PrefixTooLong,
            _ => Self::TableFull,
        }
    }
}

/// What the strategy words of an entry hold.
struct SavedState {
    epoch: u32,
    idx: InstanceIdx,
    id: u32,
    state: EntryState,
}

impl SavedState {
    fn to_words(&self) -> [u64; 3] {
        let namespace = self.state.namespace;
        [
            join(self.epoch, self.idx.0),
            join(self.id, self.state.interval.0),
            join(namespace.generation, namespace.slot),
        ]
    }

    fn from_words(words: &[u64; 3]) -> Self {
        let [(epoch, idx), (id, interval), (generation, slot)] = words.map(split);
        let namespace = super::measurements::NamespaceRef { slot, generation };
        Self {
            epoch,
            idx: InstanceIdx(idx),
            id,
            state: EntryState {
                interval: IntervalMs(interval),
                namespace,
            },
        }
    }
}

const fn join(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

const fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

#[cfg(test)]
mod tests {
    use tachonym_packet::NameHashes;

    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn table() -> StrategyTable {
        StrategyTable::new(HashKey::from_u64s(1, 2))
    }

    fn chosen(table: &StrategyTable, uri: &str) -> String {
        let mut hashes = NameHashes::new();
        let name = name(uri);
        let span = hashes.push_name(&table.key, name.view());
        let idx = table.find(name.view(), hashes.slice(span));
        table.instance(idx).name.to_string()
    }

    #[test]
    fn longest_prefix_decides_the_strategy() {
        let mut table = table();
        let set = |table: &mut StrategyTable, prefix: &str, kind: &str| {
            let strategy = name(&format!("/localhost/nfd/strategy/{kind}"));
            table.set(name(prefix).view(), strategy.view()).unwrap()
        };
        set(&mut table, "/a", "multicast");
        set(&mut table, "/a/b/c", "random");
        assert_eq!(
            chosen(&table, "/b"),
            "/localhost/nfd/strategy/best-route/v=5"
        );
        assert_eq!(
            chosen(&table, "/a"),
            "/localhost/nfd/strategy/multicast/v=5"
        );
        assert_eq!(
            chosen(&table, "/a/b/d"),
            "/localhost/nfd/strategy/multicast/v=5"
        );
        assert_eq!(
            chosen(&table, "/a/b/c/d"),
            "/localhost/nfd/strategy/random/v=1"
        );
        assert_eq!(table.unset(name("/a").view()), Ok(true));
        assert_eq!(table.unset(name("/a").view()), Ok(false));
        assert_eq!(
            chosen(&table, "/a/b"),
            "/localhost/nfd/strategy/best-route/v=5"
        );
        // The vacated place is taken again.
        set(&mut table, "/z", "asf");
        assert_eq!(chosen(&table, "/z/1"), "/localhost/nfd/strategy/asf/v=5");
        assert_eq!((table.len(), table.instances.len()), (3, 3));
        set(&mut table, "/", "multicast");
        assert_eq!(
            chosen(&table, "/b"),
            "/localhost/nfd/strategy/multicast/v=5"
        );
    }

    #[test]
    fn root_cannot_be_unset() {
        let mut table = table();
        assert_eq!(
            table.unset(name("/").view()),
            Err(StrategyError::RootNeedsStrategy)
        );
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn changed_strategy_voids_the_state_of_entries_and_a_change_elsewhere_does_not() {
        let mut table = table();
        let multicast = name("/localhost/nfd/strategy/multicast");
        let state = EntryState {
            interval: IntervalMs(40),
            ..EntryState::default()
        };
        let words = table.words(ROOT, state);
        assert_eq!(table.recall(&words), Some((ROOT, state)));
        table
            .set(name("/elsewhere").view(), multicast.view())
            .unwrap();
        assert_eq!(table.recall(&words), None);
        assert_eq!(table.state_for(ROOT, &words), Some(state));
        table.set(name("/").view(), multicast.view()).unwrap();
        assert_eq!(table.state_for(ROOT, &words), None);
        assert_eq!(table.recall(&[0; 3]), None);
    }
}
