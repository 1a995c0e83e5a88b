//! A hierarchical timer wheel over slot numbers.
//!
//! Owns when each slot is due, and nothing else. Scheduling, rescheduling and
//! cancelling are O(1); an entry moves at most once per level on its way down.
//! A tick is 2^20 ns, a little over a millisecond: nothing is reported before
//! its deadline, and whatever is due is reported by the first call that comes a
//! tick after it. Eight levels of 64 slots span every `u64` of nanoseconds, so
//! no deadline is too far (Varghese and Lauck 1987, scheme 7).

use tachonym_packet::MonoNs;

const TICK_BITS: u32 = 20;
const LEVEL_BITS: u32 = 6;
const LEVEL_SLOTS: usize = 1 << LEVEL_BITS;
const N_LEVELS: usize = 8;
const NIL: u32 = u32::MAX;
/// List of what was scheduled at or before the present tick.
const DUE: u16 = (N_LEVELS * LEVEL_SLOTS) as u16;
/// Not in any list.
const IDLE: u16 = DUE + 1;

const _: () = assert!(
    TICK_BITS + LEVEL_BITS * N_LEVELS as u32 >= 64,
    "levels span the clock"
);

/// Length of a tick of [`TimerWheel`], in nanoseconds.
pub const TICK_NS: u64 = 1 << TICK_BITS;

#[derive(Clone, Copy, Debug)]
struct Node {
    when_tick: u64,
    prev: u32,
    next: u32,
    list: u16,
}

const UNUSED: Node = Node {
    when_tick: 0,
    prev: NIL,
    next: NIL,
    list: IDLE,
};

/// Deadlines of numbered things. Memory grows with the largest number used.
#[derive(Debug)]
pub struct TimerWheel {
    heads: Box<[u32]>,
    /// Bit per slot of a level: set if its list is not empty.
    occupied: [u64; N_LEVELS],
    /// No list holds anything due at or before this tick, except `DUE`.
    now_tick: u64,
    nodes: Vec<Node>,
    n_scheduled: usize,
    /// The list that the last call left half drained. Until it is done the
    /// clock stands, so what is in it stays where it belongs.
    half_drained: Option<u16>,
}

impl Default for TimerWheel {
    fn default() -> Self {
        Self::new()
    }
}

impl TimerWheel {
    /// An empty wheel at the origin of the clock.
    #[must_use]
    pub fn new() -> Self {
        Self {
            heads: vec![NIL; N_LEVELS * LEVEL_SLOTS + 1].into_boxed_slice(),
            occupied: [0; N_LEVELS],
            now_tick: 0,
            nodes: Vec::new(),
            n_scheduled: 0,
            half_drained: None,
        }
    }

    /// Sets the deadline of `id`, replacing an earlier one.
    pub fn schedule(&mut self, id: u32, at: MonoNs) {
        if id as usize >= self.nodes.len() {
            self.nodes.resize(id as usize + 1, UNUSED);
        }
        // Rounding up keeps the promise that nothing is early.
        let when_tick = at.0.div_ceil(TICK_NS);
        let node = self.nodes[id as usize];
        if node.list != IDLE {
            if node.when_tick == when_tick {
                return;
            }
            self.unlink(id);
        } else {
            self.n_scheduled += 1;
        }
        self.nodes[id as usize].when_tick = when_tick;
        self.link(id);
    }

    /// Forgets the deadline of `id`, if it has one.
    pub fn cancel(&mut self, id: u32) {
        if self
            .nodes
            .get(id as usize)
            .is_some_and(|node| node.list != IDLE)
        {
            self.unlink(id);
            self.nodes[id as usize].list = IDLE;
            self.n_scheduled -= 1;
        }
    }

    /// Number of deadlines set.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.n_scheduled
    }

    /// Whether no deadline is set.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.n_scheduled == 0
    }

    /// When [`TimerWheel::expire`] next has work: never later than a tick after
    /// the earliest deadline; earlier, when far deadlines have to move down a
    /// level first.
    #[must_use]
    pub fn next_expiry(&self) -> Option<MonoNs> {
        let tick = if self.heads[DUE as usize] != NIL || self.half_drained.is_some() {
            self.now_tick
        } else {
            self.next_list()?.0
        };
        Some(MonoNs(tick.saturating_mul(TICK_NS)))
    }

    /// Appends everything whose deadline is at or before `now`, rounded up to
    /// the tick, and forgets those deadlines.
    pub fn expire(&mut self, now: MonoNs, expired: &mut Vec<u32>) {
        self.expire_some(now, usize::MAX, expired);
    }

    /// As [`TimerWheel::expire`], but looks at `max_deadlines` at most. False if
    /// that left some: then [`TimerWheel::next_expiry`] is not after `now`, and
    /// the next call goes on.
    pub fn expire_some(
        &mut self,
        now: MonoNs,
        max_deadlines: usize,
        expired: &mut Vec<u32>,
    ) -> bool {
        let target_tick = now.0 / TICK_NS;
        let mut n_left = max_deadlines;
        if let Some(list) = self.half_drained.take()
            && !self.drain(list, target_tick, &mut n_left, expired)
        {
            return false;
        }
        if !self.drain(DUE, target_tick, &mut n_left, expired) {
            return false;
        }
        while let Some((start_tick, list)) = self.next_list() {
            if start_tick > target_tick {
                break;
            }
            self.now_tick = start_tick;
            if !self.drain(list, target_tick, &mut n_left, expired) {
                return false;
            }
        }
        self.now_tick = self.now_tick.max(target_tick);
        true
    }

    /// Heap memory in use.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.heads.len() * size_of::<u32>() + self.nodes.capacity() * size_of::<Node>()
    }

    /// The list that begins next and its first tick.
    fn next_list(&self) -> Option<(u64, u16)> {
        // An occupied level holds only what shares every higher digit with
        // `now_tick`, so the lowest occupied level comes first.
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        let shift = LEVEL_BITS * level as u32;
        let slot = self.occupied[level].trailing_zeros();
        let above = self.now_tick >> (shift + LEVEL_BITS);
        let start_tick = ((above << LEVEL_BITS) | u64::from(slot)) << shift;
        Some((start_tick, (level * LEVEL_SLOTS) as u16 + slot as u16))
    }

    /// Takes what is due out of a list, and moves the rest where it belongs now.
    /// False if `n_left` did not suffice.
    fn drain(
        &mut self,
        list: u16,
        target_tick: u64,
        n_left: &mut usize,
        expired: &mut Vec<u32>,
    ) -> bool {
        let mut id = self.heads[list as usize];
        self.heads[list as usize] = NIL;
        if list != DUE {
            self.occupied[list as usize / LEVEL_SLOTS] &= !(1 << (list as usize % LEVEL_SLOTS));
        }
        while id != NIL {
            // If anything has come back to this list, the rest cannot.
            if *n_left == 0 && self.heads[list as usize] == NIL {
                self.nodes[id as usize].prev = NIL;
                self.heads[list as usize] = id;
                if list != DUE {
                    self.occupied[list as usize / LEVEL_SLOTS] |=
                        1 << (list as usize % LEVEL_SLOTS);
                }
                self.half_drained = Some(list);
                return false;
            }
            *n_left = n_left.saturating_sub(1);
            let node = &mut self.nodes[id as usize];
            let next = node.next;
            if node.when_tick <= target_tick {
                node.list = IDLE;
                self.n_scheduled -= 1;
                expired.push(id);
            } else {
                self.link(id);
            }
            id = next;
        }
        true
    }

    fn link(&mut self, id: u32) {
        let when_tick = self.nodes[id as usize].when_tick;
        let list = if when_tick <= self.now_tick {
            DUE
        } else {
            let highest_bit = 63 - (when_tick ^ self.now_tick).leading_zeros();
            let level = highest_bit / LEVEL_BITS;
            let slot = (when_tick >> (LEVEL_BITS * level)) as usize % LEVEL_SLOTS;
            self.occupied[level as usize] |= 1 << slot;
            (level as usize * LEVEL_SLOTS + slot) as u16
        };
        let head = self.heads[list as usize];
        if head != NIL {
            self.nodes[head as usize].prev = id;
        }
        let node = &mut self.nodes[id as usize];
        node.list = list;
        node.prev = NIL;
        node.next = head;
        self.heads[list as usize] = id;
    }

    fn unlink(&mut self, id: u32) {
        let Node {
            prev, next, list, ..
        } = self.nodes[id as usize];
        if next != NIL {
            self.nodes[next as usize].prev = prev;
        }
        if prev != NIL {
            self.nodes[prev as usize].next = next;
            return;
        }
        self.heads[list as usize] = next;
        if next == NIL && list != DUE {
            self.occupied[list as usize / LEVEL_SLOTS] &= !(1 << (list as usize % LEVEL_SLOTS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Schedule { id: u32, after_ns: u64 },
        Cancel { id: u32 },
        Advance { by_ns: u64, max_deadlines: usize },
    }

    /// Delays of every magnitude: the exponent is uniform, not the value.
    fn any_delay_ns() -> impl Strategy<Value = u64> {
        (0_u32..64, any::<u64>()).prop_map(|(shift, noise)| noise >> shift)
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u32..40, any_delay_ns())
                .prop_map(|(id, after_ns)| Step::Schedule { id, after_ns }),
            1 => (0_u32..40).prop_map(|id| Step::Cancel { id }),
            3 => (any_delay_ns(), prop_oneof![1..6_usize, Just(usize::MAX)])
                .prop_map(|(by_ns, max_deadlines)| Step::Advance { by_ns, max_deadlines }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 512 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn deadlines_pass_as_in_a_sorted_map(
            steps in proptest::collection::vec(any_step(), 1..120)
        ) {
            let mut wheel = TimerWheel::new();
            let mut oracle = BTreeMap::<u32, u64>::new();
            let mut now = MonoNs::ZERO;
            let mut is_done = true;
            for step in steps {
                match step {
                    Step::Schedule { id, after_ns } => {
                        let at = now.0.saturating_add(after_ns);
                        wheel.schedule(id, MonoNs(at));
                        oracle.insert(id, at);
                    }
                    Step::Cancel { id } => {
                        wheel.cancel(id);
                        oracle.remove(&id);
                    }
                    Step::Advance { by_ns, max_deadlines } => {
                        now = MonoNs(now.0.saturating_add(by_ns));
                        let mut expired = Vec::new();
                        is_done = wheel.expire_some(now, max_deadlines, &mut expired);
                        prop_assert!(expired.len() <= max_deadlines);
                        for id in expired {
                            let at = oracle.remove(&id).expect("only what was scheduled expires");
                            prop_assert!(at <= now.0, "early");
                        }
                        for &at in oracle.values() {
                            let latest = at.checked_add(TICK_NS);
                            prop_assert!(
                                !is_done || latest.is_none_or(|latest| now.0 < latest),
                                "late"
                            );
                        }
                    }
                }
                prop_assert_eq!(wheel.len(), oracle.len());
                match (wheel.next_expiry(), oracle.values().min()) {
                    (Some(next), Some(&first)) => {
                        prop_assert!(next.0 < first.saturating_add(TICK_NS) || next == MonoNs::NEVER);
                    }
                    (None, None) => {}
                    // Whatever was left has been cancelled since.
                    (Some(next), None) if !is_done => prop_assert!(next <= now),
                    (next, first) => prop_assert!(false, "{next:?} but {first:?}"),
                }
            }
        }
    }

    #[test]
    fn waiting_until_next_expiry_always_makes_progress() {
        let mut wheel = TimerWheel::new();
        let at = MonoNs(987_654_321_987_654);
        wheel.schedule(0, at);
        let mut expired = Vec::new();
        let mut n_wakes = 0;
        while let Some(next) = wheel.next_expiry() {
            wheel.expire(next, &mut expired);
            n_wakes += 1;
            assert!(n_wakes <= N_LEVELS, "one wake per level at most");
            if !expired.is_empty() {
                assert!(next >= at && next.0 - at.0 < TICK_NS);
            }
        }
        assert_eq!(expired, [0]);
    }

    #[test]
    fn a_deadline_in_the_past_is_due_at_once() {
        let mut wheel = TimerWheel::new();
        wheel.expire(MonoNs(10 * TICK_NS), &mut Vec::new());
        wheel.schedule(3, MonoNs(2 * TICK_NS));
        assert_eq!(wheel.next_expiry(), Some(MonoNs(10 * TICK_NS)));
        let mut expired = Vec::new();
        wheel.expire(MonoNs(10 * TICK_NS), &mut expired);
        assert_eq!(expired, [3]);
        assert!(wheel.is_empty());
    }
}
