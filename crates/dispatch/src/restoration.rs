//! Order restoration: packets are processed by any worker and leave in the order in which
//! they came (Iqbal 2013, section 2.3.1).
//!
//! A packet gets a number when it enters a queue, among all packets or among those of its
//! name ([`TagScope`]). A packet that is done before an earlier one waits for it.
//!
//! This is a baseline to compare with: workers of a router would have to share these lists.
//! Numbers of a name are kept only while it has a packet inside, so that the state is bounded
//! by the queues and not by the names that exist.

use std::collections::{HashMap, VecDeque};

use crate::Key;

/// Among which packets order is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagScope {
    /// All: one list, and a packet may wait for one of another name.
    Global,
    /// Those of one name.
    PerName,
}

/// Packets with numbers from `first` on; `None`: not done.
#[derive(Clone, Debug)]
struct List<T> {
    first: u32,
    packets: VecDeque<Option<T>>,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Restoration<T> {
    scope: TagScope,
    lists: HashMap<Key, List<T>>,
    most_names: usize,
}

impl<T> Restoration<T> {
    /// Without packets.
    #[must_use]
    pub fn new(scope: TagScope) -> Self {
        Self {
            scope,
            lists: HashMap::new(),
            most_names: 0,
        }
    }

    const fn list_of(&self, key: Key) -> Key {
        match self.scope {
            TagScope::Global => Key(0),
            TagScope::PerName => key,
        }
    }

    /// The number of a packet that enters a queue. Numbers wrap around.
    pub fn tag(&mut self, key: Key) -> u32 {
        let list = self.lists.entry(self.list_of(key)).or_insert_with(|| List {
            first: 0,
            packets: VecDeque::new(),
        });
        list.packets.push_back(None);
        let number = list.first.wrapping_add(list.packets.len() as u32 - 1);
        self.most_names = self.most_names.max(self.lists.len());
        number
    }

    /// A packet with this number is done: hands out those that may leave now, in order.
    ///
    /// # Panics
    /// If no packet of the name has this number, or it was done before.
    pub fn handle_done(&mut self, (key, number): (Key, u32), packet: T, mut out: impl FnMut(T)) {
        let key = self.list_of(key);
        let list = self.lists.get_mut(&key).expect("a name with packets");
        let place = &mut list.packets[number.wrapping_sub(list.first) as usize];
        assert!(place.is_none(), "a packet is done once");
        *place = Some(packet);
        while let Some(Some(_)) = list.packets.front() {
            list.first = list.first.wrapping_add(1);
            if let Some(Some(packet)) = list.packets.pop_front() {
                out(packet);
            }
        }
        if list.packets.is_empty() && self.scope == TagScope::PerName {
            self.lists.remove(&key);
        }
    }

    /// The most names that had packets inside at the same time; at most 1 with
    /// [`TagScope::Global`].
    #[must_use]
    pub const fn most_names(&self) -> usize {
        self.most_names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets by name and number, done in the order of `done`; returns what leaves.
    fn leaves(scope: TagScope, names: &[u64], done: &[usize]) -> (Vec<usize>, usize) {
        let mut restoration = Restoration::new(scope);
        let tags: Vec<_> = (names.iter())
            .map(|&name| (Key(name), restoration.tag(Key(name))))
            .collect();
        let mut left = Vec::new();
        for &packet in done {
            restoration.handle_done(tags[packet], packet, |packet| left.push(packet));
        }
        (left, restoration.most_names())
    }

    #[test]
    fn global_order_waits_for_other_names() {
        let done = [3, 1, 0, 2];
        assert_eq!(
            leaves(TagScope::Global, &[7, 8, 7, 8], &done),
            (vec![0, 1, 2, 3], 1)
        );
        assert_eq!(
            leaves(TagScope::PerName, &[7, 8, 7, 8], &done),
            (vec![1, 3, 0, 2], 2)
        );
    }

    #[test]
    fn a_name_without_packets_is_forgotten() {
        let mut restoration = Restoration::new(TagScope::PerName);
        for name in 0..100 {
            let tag = restoration.tag(Key(name));
            let mut n_left = 0;
            restoration.handle_done((Key(name), tag), (), |()| n_left += 1);
            assert_eq!(n_left, 1);
        }
        assert_eq!(restoration.most_names(), 1);
        assert!(restoration.lists.is_empty());
    }
}
