//! When transmissions that a strategy has given a time-out come of age.
//!
//! Nothing is taken back when an answer comes: a wake-up tells which
//! transmission it is for, and is void once that is no longer awaited. Void ones
//! are dropped when they get in front, and all at once when they outnumber the
//! pending entries; so memory follows the pending Interest table, and a wake-up
//! costs a heap's logarithm.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tachonym_packet::{FaceId, MonoNs};
use tachonym_tables::{EntryIdx, Pit};

/// Void wake-ups that are always tolerated.
const SLACK: usize = 1_024;

/// One transmission, and when it has taken too long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wakeup {
    pub(crate) at: MonoNs,
    pub(crate) idx: EntryIdx,
    pub(crate) face: FaceId,
    pub(crate) sent: MonoNs,
}

impl Wakeup {
    /// Whether its transmission still waits for an answer. One without a record
    /// does, but gets none: the record has gone with its face.
    pub(crate) fn is_valid(&self, pit: &Pit) -> bool {
        pit.get(self.idx).is_some_and(|entry| {
            let record = entry.out_record(self.face);
            !entry.satisfied
                && record
                    .is_none_or(|record| record.nack.is_none() && record.last_sent == self.sent)
        })
    }
}

/// Turned round: the heap has its greatest in front, and that is to be the
/// earliest.
impl Ord for Wakeup {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}

impl PartialOrd for Wakeup {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Wakeup {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Wakeup {}

/// The wake-ups.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    heap: BinaryHeap<Wakeup>,
}

impl Wakeups {
    pub(crate) fn insert(&mut self, wakeup: Wakeup, pit: &Pit) {
        if self.heap.len() >= 2 * pit.len() + SLACK {
            self.heap.retain(|wakeup| wakeup.is_valid(pit));
        }
        self.heap.push(wakeup);
    }

    /// Takes out the next one that is due, and the void ones before it.
    pub(crate) fn pop_due(&mut self, now: MonoNs, pit: &Pit) -> Option<Wakeup> {
        while let Some(front) = self.heap.peek() {
            let is_valid = front.is_valid(pit);
            if is_valid && front.at > now {
                break;
            }
            let front = self.heap.pop();
            if is_valid {
                return front;
            }
        }
        None
    }

    pub(crate) fn next(&self) -> Option<MonoNs> {
        self.heap.peek().map(|wakeup| wakeup.at)
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{HashKey, Interest, InterestView, NameHashes, Nonce};
    use tachonym_policy::{AdmissionKind, EvictionKind, Policy, PolicyConfig};
    use tachonym_tables::{Missed, OutRecord, PitCs, PitCsConfig};

    use super::*;

    const FACE: FaceId = FaceId(256);

    /// A table with an entry that was sent to `FACE` at `sent`.
    fn pit_with_entry(sent: MonoNs) -> (PitCs, EntryIdx) {
        let mut interest = Interest::new("/a".parse().unwrap());
        interest.nonce = Some(Nonce([1; 4]));
        let wire = interest.encode();
        let interest = InterestView::parse(&wire).unwrap();
        let mut hashes = NameHashes::new();
        let span = hashes.push_name(&HashKey::from_u64s(1, 2), interest.name());
        let key = HashKey::from_u64s(1, 2);
        let policy = PolicyConfig::new(AdmissionKind::None, EvictionKind::Lru, 0);
        let policy = Policy::with_slots(&policy, 65_536).expect("a sensible one");
        let mut tables = PitCs::new(PitCsConfig::default(), policy, key).expect("small tables");
        let (mut entry, _) = tables
            .find_or_insert(&interest, hashes.slice(span), Missed::default(), sent)
            .unwrap();
        let record = OutRecord {
            face: FACE,
            nonce: Nonce([1; 4]),
            expiry: sent.plus_ms(4_000),
            last_sent: sent,
            nack: None,
            strategy_word: 0,
        };
        entry.insert_out_record(record).unwrap();
        let idx = entry.idx();
        (tables, idx)
    }

    #[test]
    fn wakeups_come_in_the_order_of_their_times_and_void_ones_never() {
        let sent = MonoNs(5);
        let (mut tables, idx) = pit_with_entry(sent);
        let mut wakeups = Wakeups::default();
        for at in [30, 10, 20] {
            let wakeup = Wakeup {
                at: MonoNs(at),
                idx,
                face: FACE,
                sent,
            };
            wakeups.insert(wakeup, tables.pit());
            let of_an_earlier_transmission = Wakeup {
                at: MonoNs(at - 5),
                sent: MonoNs(4),
                ..wakeup
            };
            wakeups.insert(of_an_earlier_transmission, tables.pit());
        }
        assert!(wakeups.pop_due(MonoNs(9), tables.pit()).is_none());
        assert_eq!(wakeups.next(), Some(MonoNs(10)));
        for at in [10, 20] {
            let due = wakeups.pop_due(MonoNs(20), tables.pit()).map(|due| due.at);
            assert_eq!(due, Some(MonoNs(at)));
        }
        assert!(wakeups.pop_due(MonoNs(20), tables.pit()).is_none());
        tables.remove_pending(idx);
        assert!(wakeups.pop_due(MonoNs(20), tables.pit()).is_none());
        assert_eq!(wakeups.next(), None);
    }

    #[test]
    fn void_wakeups_do_not_pile_up_behind_a_valid_one() {
        let sent = MonoNs(5);
        let (tables, idx) = pit_with_entry(sent);
        let mut wakeups = Wakeups::default();
        for n in 0..100_000 {
            let wakeup = Wakeup {
                at: MonoNs(1_000 + n),
                idx,
                face: FACE,
                sent: MonoNs(if n == 0 { 5 } else { 4 }),
            };
            wakeups.insert(wakeup, tables.pit());
            assert!(wakeups.heap.len() <= SLACK + 2);
        }
        assert!(wakeups.pop_due(MonoNs(1_000), tables.pit()).is_some());
    }
}
