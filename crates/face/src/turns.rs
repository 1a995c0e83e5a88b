//! Turns at reading: how much of the loop's time a socket may take.
//!
//! Owns the rule that a read is to bring a turn's packets, however small they
//! are, and that who brings more lets turns pass until that is made good (deficit
//! round robin: Shreedhar and Varghese 1996, section 3). Refuses sockets.

/// Packets that a peer brings in one turn while others have something to say:
/// what it brings beyond is taken off its next turns. A few dozen are enough for
/// a burst to cost no more for each packet than a longer one, and are no more than
/// a program with 64 Interests in flight brings.
pub const TURN_PKTS: usize = 64;

/// The turns of one socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    /// The next read brings no more than this, in whatever it is measured.
    limit: usize,
    min: usize,
    max: usize,
    /// Packets brought beyond its turns, and not yet waited for.
    ahead_pkts: usize,
}

impl Turns {
    /// Of a socket of which `min` to `max` are read at once: bytes or messages.
    pub(crate) fn new(min: usize, max: usize) -> Self {
        Self {
            limit: max,
            min,
            max,
            ahead_pkts: 0,
        }
    }

    /// How much to read in this turn; `None`: it passes.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<usize> {
        match self.ahead_pkts.checked_sub(TURN_PKTS) {
            Some(ahead_pkts) => {
                self.ahead_pkts = ahead_pkts;
                None
            }
            None => Some(self.limit),
        }
    }

    /// Learns how many packets of how many peers, at least one, a read has
    /// brought. Turns in which there was less are not made up for.
    #[inline]
    pub(crate) fn took(&mut self, n_pkts: usize, n_peers: usize) {
        let fair_pkts = TURN_PKTS * n_peers;
        self.ahead_pkts = (self.ahead_pkts + n_pkts).saturating_sub(fair_pkts);
        if n_pkts > fair_pkts {
            self.limit = (self.limit * fair_pkts / n_pkts).max(self.min);
        } else if n_pkts < fair_pkts / 2 {
            self.limit = (2 * self.limit).min(self.max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets brought in so many rounds by a socket that always has more: so
    /// many in a unit of what is measured.
    fn brought(turns: &mut Turns, pkts_per_unit: usize, n_peers: usize, n_rounds: usize) -> usize {
        let read = |turns: &mut Turns| {
            let n_pkts = turns.take().map_or(0, |limit| limit * pkts_per_unit);
            if n_pkts > 0 {
                turns.took(n_pkts, n_peers);
            }
            n_pkts
        };
        (0..n_rounds).map(|_| read(turns)).sum()
    }

    #[test]
    fn in_the_long_run_nobody_brings_more_than_a_turn_in_each_round() {
        for (pkts_per_unit, n_peers) in [(1, 1), (7, 1), (64, 1), (64, 3), (500, 1)] {
            let mut turns = Turns::new(1, 32);
            let n_pkts = brought(&mut turns, pkts_per_unit, n_peers, 1_000);
            let fair_pkts = 1_000 * TURN_PKTS * n_peers;
            assert!(n_pkts <= fair_pkts + 32 * pkts_per_unit, "{n_pkts}");
            let can_pkts = (32 * pkts_per_unit * 1_000).min(fair_pkts);
            assert!(n_pkts >= can_pkts / 2, "{n_pkts} of {can_pkts}");
        }
    }

    #[test]
    fn who_brings_little_may_bring_much_again() {
        let mut turns = Turns::new(1, 32);
        turns.took(32 * 64, 1);
        let n_passed = (0..100).take_while(|_| turns.take().is_none()).count();
        assert_eq!(n_passed, 31);
        assert_eq!(turns.take(), Some(1));
        for _ in 0..5 {
            turns.took(1, 1);
        }
        assert_eq!(turns.take(), Some(32));
    }
}
