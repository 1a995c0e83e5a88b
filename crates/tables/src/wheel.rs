//! A hierarchical timer wheel over slot numbers.
//!
//! Owns in which order slots become due, and nothing else: each slot carries its
//! deadline and its links in the line that the table reads anyway. Scheduling
//! writes to one neighbour, the slot scheduled last at about the same time;
//! cancelling writes to two. Both are O(1), and so is rescheduling; an entry
//! moves at most once per level on its way down.
//! A tick is 2^20 ns, a little over a millisecond: nothing is reported before
//! its deadline, and whatever is due is reported by the first call that comes a
//! tick after it. Eight levels of 64 slots span every `u64` of nanoseconds, so
//! no deadline is too far (Varghese and Lauck 1987, scheme 7).

use tachonym_packet::MonoNs;

use crate::slab::Slab;

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

/// Length of a tick of the timers, in nanoseconds.
pub const TICK_NS: u64 = 1 << TICK_BITS;

/// Place of a slot in the wheel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    prev: u32,
    next: u32,
    list: u16,
}

impl Default for Timer {
    fn default() -> Self {
        Self {
            prev: NIL,
            next: NIL,
            list: IDLE,
        }
    }
}

/// What a slot with a deadline carries for the wheel, which changes both.
pub(crate) trait Timed {
    fn timer(&self) -> &Timer;

    fn timer_mut(&mut self) -> &mut Timer;

    fn deadline(&self) -> MonoNs;

    fn set_deadline(&mut self, at: MonoNs);
}

/// Rounding up keeps the promise that nothing is early.
const fn tick_of(at: MonoNs) -> u64 {
    at.0.div_ceil(TICK_NS)
}

/// Deadlines of the slots of one slab, which is passed to each call.
#[derive(Debug)]
pub(crate) struct TimerWheel {
    heads: Box<[u32]>,
    /// Bit per slot of a level: set if its list is not empty.
    occupied: [u64; N_LEVELS],
    /// No list holds anything due at or before this tick, except `DUE`.
    now_tick: u64,
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
    pub(crate) fn new() -> Self {
        Self {
            heads: vec![NIL; N_LEVELS * LEVEL_SLOTS + 1].into_boxed_slice(),
            occupied: [0; N_LEVELS],
            now_tick: 0,
            n_scheduled: 0,
            half_drained: None,
        }
    }

    /// Sets the deadline of a slot, replacing an earlier one.
    #[inline]
    pub(crate) fn schedule<T: Timed + Default>(
        &mut self,
        slots: &mut Slab<T>,
        id: u32,
        at: MonoNs,
    ) {
        let slot = &mut slots[id];
        let tick_before = tick_of(slot.deadline());
        slot.set_deadline(at);
        if slot.timer().list == IDLE {
            self.n_scheduled += 1;
        } else if tick_before == tick_of(at) {
            return;
        } else {
            self.unlink(slots, id);
        }
        self.link(slots, id);
    }

    /// Forgets the deadline of a slot, if it has one.
    #[inline]
    pub(crate) fn cancel<T: Timed + Default>(&mut self, slots: &mut Slab<T>, id: u32) {
        if slots[id].timer().list != IDLE {
            self.unlink(slots, id);
            slots[id].timer_mut().list = IDLE;
            self.n_scheduled -= 1;
        }
    }

    /// Number of deadlines set.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.n_scheduled
    }

    /// When [`TimerWheel::expire_some`] next has work: never later than a tick after
    /// the earliest deadline; earlier, when far deadlines have to move down a
    /// level first.
    pub(crate) fn next_expiry(&self) -> Option<MonoNs> {
        let tick = if self.heads[DUE as usize] != NIL || self.half_drained.is_some() {
            self.now_tick
        } else {
            self.next_list()?.0
        };
        Some(MonoNs(tick.saturating_mul(TICK_NS)))
    }

    /// Appends everything whose deadline is at or before `now`, rounded up to
    /// the tick, and forgets those deadlines; but looks at `max_deadlines` at
    /// most. False if that left some: then [`TimerWheel::next_expiry`] is not
    /// after `now`, and the next call goes on.
    pub(crate) fn expire_some<T: Timed + Default>(
        &mut self,
        slots: &mut Slab<T>,
        now: MonoNs,
        max_deadlines: usize,
        expired: &mut Vec<u32>,
    ) -> bool {
        let target_tick = now.0 / TICK_NS;
        let mut n_left = max_deadlines;
        if let Some(list) = self.half_drained.take()
            && !self.drain(slots, list, target_tick, &mut n_left, expired)
        {
            return false;
        }
        if !self.drain(slots, DUE, target_tick, &mut n_left, expired) {
            return false;
        }
        while let Some((start_tick, list)) = self.next_list() {
            if start_tick > target_tick {
                break;
            }
            self.now_tick = start_tick;
            if !self.drain(slots, list, target_tick, &mut n_left, expired) {
                return false;
            }
        }
        self.now_tick = self.now_tick.max(target_tick);
        true
    }

    /// Heap memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.heads.len() * size_of::<u32>()
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
    fn drain<T: Timed + Default>(
        &mut self,
        slots: &mut Slab<T>,
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
                slots[id].timer_mut().prev = NIL;
                self.heads[list as usize] = id;
                if list != DUE {
                    self.occupied[list as usize / LEVEL_SLOTS] |=
                        1 << (list as usize % LEVEL_SLOTS);
                }
                self.half_drained = Some(list);
                return false;
            }
            *n_left = n_left.saturating_sub(1);
            let slot = &mut slots[id];
            let next = slot.timer().next;
            if tick_of(slot.deadline()) <= target_tick {
                slot.timer_mut().list = IDLE;
                self.n_scheduled -= 1;
                expired.push(id);
            } else {
                self.link(slots, id);
            }
            id = next;
        }
        true
    }

    fn link<T: Timed + Default>(&mut self, slots: &mut Slab<T>, id: u32) {
        let when_tick = tick_of(slots[id].deadline());
        let list = if when_tick <= self.now_tick {
            DUE
        } else {
            let highest_bit = 63 - (when_tick ^ self.now_tick).leading_zeros();
            let level = highest_bit / LEVEL_BITS;
            let slot = (when_tick >> (LEVEL_BITS * level)) as usize % LEVEL_SLOTS;
            self.occupied[level as usize] |= 1 << slot;
            (level as usize * LEVEL_SLOTS + slot) as u16
        };
        let head = std::mem::replace(&mut self.heads[list as usize], id);
        *slots[id].timer_mut() = Timer {
            prev: NIL,
            next: head,
            list,
        };
        if head != NIL {
            slots[head].timer_mut().prev = id;
        }
    }

    fn unlink<T: Timed + Default>(&mut self, slots: &mut Slab<T>, id: u32) {
        let Timer { prev, next, list } = *slots[id].timer();
        if next != NIL {
            slots[next].timer_mut().prev = prev;
        }
        if prev != NIL {
            slots[prev].timer_mut().next = next;
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
    use tachonym_memory::PagePreference;

    #[derive(Debug, Default)]
    struct Slot {
        timer: Timer,
        deadline: MonoNs,
    }

    impl Timed for Slot {
        fn timer(&self) -> &Timer {
            &self.timer
        }

        fn timer_mut(&mut self) -> &mut Timer {
            &mut self.timer
        }

        fn deadline(&self) -> MonoNs {
            self.deadline
        }

        fn set_deadline(&mut self, at: MonoNs) {
            self.deadline = at;
        }
    }

    fn slots() -> Slab<Slot> {
        let mut slots = Slab::new(40, PagePreference::Base).unwrap();
        for _ in 0..40 {
            slots.alloc();
        }
        slots
    }

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
            let (mut wheel, mut slots) = (TimerWheel::new(), slots());
            let mut oracle = BTreeMap::<u32, u64>::new();
            let mut now = MonoNs::ZERO;
            let mut is_done = true;
            for step in steps {
                match step {
                    Step::Schedule { id, after_ns } => {
                        let at = now.0.saturating_add(after_ns);
                        wheel.schedule(&mut slots, id, MonoNs(at));
                        oracle.insert(id, at);
                    }
                    Step::Cancel { id } => {
                        wheel.cancel(&mut slots, id);
                        oracle.remove(&id);
                    }
                    Step::Advance { by_ns, max_deadlines } => {
                        now = MonoNs(now.0.saturating_add(by_ns));
                        let mut expired = Vec::new();
                        is_done = wheel.expire_some(&mut slots, now, max_deadlines, &mut expired);
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
        let (mut wheel, mut slots) = (TimerWheel::new(), slots());
        let at = MonoNs(987_654_321_987_654);
        wheel.schedule(&mut slots, 0, at);
        let mut expired = Vec::new();
        let mut n_wakes = 0;
        while let Some(next) = wheel.next_expiry() {
            wheel.expire_some(&mut slots, next, usize::MAX, &mut expired);
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
        let (mut wheel, mut slots) = (TimerWheel::new(), slots());
        wheel.expire_some(
            &mut slots,
            MonoNs(10 * TICK_NS),
            usize::MAX,
            &mut Vec::new(),
        );
        wheel.schedule(&mut slots, 3, MonoNs(2 * TICK_NS));
        assert_eq!(wheel.next_expiry(), Some(MonoNs(10 * TICK_NS)));
        let mut expired = Vec::new();
        wheel.expire_some(&mut slots, MonoNs(10 * TICK_NS), usize::MAX, &mut expired);
        assert_eq!(expired, [3]);
        assert_eq!(wheel.len(), 0);
    }
}
