//! Plain simulators of caches, written from the descriptions of the algorithms and without
//! the router's policies: what these have to agree with.

use std::collections::{BTreeSet, HashMap, VecDeque};

/// Hits of an LRU cache, by stack distance (Mattson et al. 1970): a request is a hit if
/// fewer than `capacity` other objects were requested since the last one for its object.
/// `requests` before `n_warm` are not counted.
pub(super) fn lru_hits(requests: &[u32], capacity: usize, n_warm: usize) -> u64 {
    // A Fenwick tree over times: 1 at the latest request of each object.
    let mut sums = vec![0_i32; requests.len() + 1];
    let add = |time: usize, what: i32, sums: &mut [i32]| {
        let mut at = time + 1;
        while at < sums.len() {
            sums[at] += what;
            at += at & at.wrapping_neg();
        }
    };
    let up_to = |time: usize, sums: &[i32]| {
        let (mut at, mut sum) = (time + 1, 0);
        while at > 0 {
            sum += sums[at];
            at -= at & at.wrapping_neg();
        }
        sum
    };
    let mut latest: HashMap<u32, usize> = HashMap::new();
    let mut n_hits = 0;
    for (now, &object) in requests.iter().enumerate() {
        if let Some(before) = latest.insert(object, now) {
            let since = latest.len() as i32 - up_to(before, &sums);
            n_hits += u64::from((since as usize) < capacity && now >= n_warm);
            add(before, -1, &mut sums);
        }
        add(now, 1, &mut sums);
    }
    n_hits
}

/// Hits of a queue in which an object goes round once more for each of its marks, of which a
/// hit adds one up to `max_marks`: FIFO with 0, CLOCK with 1, generalised CLOCK with 3.
pub(super) fn queue_hits(requests: &[u32], capacity: usize, n_warm: usize, max_marks: u32) -> u64 {
    let mut queue = VecDeque::new();
    let mut marks: HashMap<u32, u32> = HashMap::new();
    let mut n_hits = 0;
    for (now, &object) in requests.iter().enumerate() {
        if let Some(marks) = marks.get_mut(&object) {
            *marks = (*marks + 1).min(max_marks);
            n_hits += u64::from(now >= n_warm);
            continue;
        }
        while queue.len() >= capacity {
            let Some(oldest) = queue.pop_front() else {
                break;
            };
            match marks.get_mut(&oldest) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    queue.push_back(oldest);
                }
                _ => _ = marks.remove(&oldest),
            }
        }
        queue.push_back(object);
        marks.insert(object, 0);
    }
    n_hits
}

/// Hits of LFU, which evicts what reached the least count first; with `remembers`, counts
/// outlast eviction for ever.
pub(super) fn lfu_hits(requests: &[u32], capacity: usize, n_warm: usize, remembers: bool) -> u64 {
    let mut held: BTreeSet<(u64, usize, u32)> = BTreeSet::new();
    let mut place: HashMap<u32, (u64, usize)> = HashMap::new();
    let mut counts: HashMap<u32, u64> = HashMap::new();
    let mut n_hits = 0;
    for (now, &object) in requests.iter().enumerate() {
        if let Some((count, since)) = place.get(&object).copied() {
            n_hits += u64::from(now >= n_warm);
            held.remove(&(count, since, object));
            held.insert((count + 1, now, object));
            place.insert(object, (count + 1, now));
            continue;
        }
        if held.len() >= capacity
            && let Some((count, _, victim)) = held.pop_first()
        {
            place.remove(&victim);
            if remembers {
                counts.insert(victim, count);
            }
        }
        let count = counts.remove(&object).unwrap_or(0) + 1;
        held.insert((count, now, object));
        place.insert(object, (count, now));
    }
    n_hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_of_a_short_sequence_are_those_counted_by_hand() {
        let requests = [1, 2, 3, 1, 4, 1, 2, 3, 3];
        // LRU of three: 1 hits twice, 3 at the end; 2 and 3 are gone when they return.
        assert_eq!(lru_hits(&requests, 3, 0), 3);
        assert_eq!(lru_hits(&requests, 3, 6), 1);
        assert_eq!(lru_hits(&requests, 4, 0), 5);
        // FIFO of three: 4 evicts 1, 1 evicts 2, 2 evicts 3, 3 evicts 4.
        assert_eq!(queue_hits(&requests, 3, 0, 0), 2);
        // CLOCK of three: the mark of 1 saves it from 4, which evicts 2.
        assert_eq!(queue_hits(&requests, 3, 0, 1), 3);
        // LFU of three: 4 evicts 2, 2 evicts 3, 3 evicts 4.
        assert_eq!(lfu_hits(&requests, 3, 0, false), 3);
    }
}
