//! Which segment to ask for next: the part of a fetch that needs neither
//! socket nor clock.
//!
//! A [`Fetcher`] knows segment numbers, times and marks; names and packets belong to the
//! caller. [`Fetcher::poll_transmit`] returns what to request, the `handle_` functions take
//! what arrived, and [`Fetcher::poll_timeout`] says when to call again.

use std::collections::VecDeque;
use std::time::Duration;

use tachonym_packet::MonoNs;

use crate::cubic::Cubic;
use crate::rtt::RttEstimator;

/// Segments that arrive after a later-sent one before a gap counts as loss.
/// RFC 5681 takes 3; NDN paths reorder more, and a false alarm costs only an
/// Interest that the pending one absorbs.
const REORDERING_SEGMENTS: u32 = 8;

/// Time since its Interest after which a gap counts as loss of the segment. Forwarders
/// suppress retransmissions within 10 ms (NFD's best-route), so an earlier one would have no
/// effect.
const MIN_GAP_AGE: Duration = Duration::from_millis(12);

/// How a fetch behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Most segments in flight.
    pub max_window: usize,
    /// Times a segment is asked for again before the fetch gives up.
    pub max_retries: u32,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            max_window: 4096,
            max_retries: 15,
        }
    }
}

/// Whether an arriving segment was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was missing, and is here now.
    New,
    /// It arrived before, or was not requested.
    Unneeded,
}

/// Counters of a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchCounters {
    /// Interests sent, retransmissions included.
    pub n_interests: u64,
    /// Of these, retransmissions.
    pub n_retransmissions: u64,
    /// Segments that arrived and were needed.
    pub n_segments: u64,
    /// Data that carried a congestion mark.
    pub n_marks: u64,
    /// Time-outs and gaps taken for loss.
    pub n_losses: u64,
    /// Times the window was reduced.
    pub n_reductions: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Asked for at `sent`, as transmission number `serial`.
    InFlight {
        sent: MonoNs,
        serial: u64,
        retries: u32,
        n_overtaken: u32,
    },
    /// To be asked for again.
    Lost {
        retries: u32,
    },
    Arrived,
}

/// Fetches segments `0..=final` in the order that congestion allows.
#[derive(Debug)]
pub struct Fetcher {
    limits: FetchLimits,
    rtt: RttEstimator,
    cubic: Cubic,
    /// State of segment `base + i`; the front is the lowest that is missing.
    segments: VecDeque<State>,
    base: u64,
    final_segment: Option<u64>,
    n_in_flight: usize,
    /// Segments to ask for again, lowest first.
    lost: VecDeque<u64>,
    /// Transmissions in the order they left: segment and serial.
    order: VecDeque<(u64, u64)>,
    next_serial: u64,
    /// The round trip is over when this serial has been answered.
    round_ends_at: u64,
    /// Most segments in flight in this round trip, and in the one before.
    peak_in_flight: usize,
    last_peak_in_flight: usize,
    /// Congestion seen on what left before this serial has been answered.
    reduced_at: u64,
    gave_up: Option<u64>,
    counters: FetchCounters,
}

impl Fetcher {
    /// A fetch of segments from 0 to a final one whose number is not known yet. Segment 0
    /// is requested alone.
    #[must_use]
    pub fn new(limits: FetchLimits) -> Self {
        Self {
            limits,
            rtt: RttEstimator::default(),
            cubic: Cubic::new(limits.max_window),
            segments: VecDeque::new(),
            base: 0,
            final_segment: None,
            n_in_flight: 0,
            lost: VecDeque::new(),
            order: VecDeque::new(),
            next_serial: 0,
            round_ends_at: 0,
            peak_in_flight: 0,
            last_peak_in_flight: 0,
            reduced_at: 0,
            gave_up: None,
            counters: FetchCounters::default(),
        }
    }

    /// The next segment to ask for, if the window has room for one. The caller
    /// sends its Interest now, with a fresh nonce.
    pub fn poll_transmit(&mut self, now: MonoNs) -> Option<u64> {
        if self.n_in_flight >= self.cubic.window() || self.gave_up.is_some() {
            return None;
        }
        let (segment, retries) = self
            .next_lost()
            .or_else(|| self.next_new().map(|s| (s, 0)))?;
        let serial = self.next_serial;
        self.next_serial += 1;
        *self.state_mut(segment)? = State::InFlight {
            sent: now,
            serial,
            retries,
            n_overtaken: 0,
        };
        self.order.push_back((segment, serial));
        self.n_in_flight += 1;
        self.peak_in_flight = self.peak_in_flight.max(self.n_in_flight);
        self.counters.n_interests += 1;
        self.counters.n_retransmissions += u64::from(retries > 0);
        Some(segment)
    }

    /// `segment` arrived; `marked` if it carried a congestion mark. The final
    /// segment is `final_segment`, if this Data states it.
    pub fn handle_data(
        &mut self,
        now: MonoNs,
        segment: u64,
        final_segment: Option<u64>,
        marked: bool,
    ) -> Arrival {
        if let Some(last) = final_segment {
            self.learn_final(last);
        }
        if marked {
            self.counters.n_marks += 1;
        }
        let Some(state) = self.state_mut(segment) else {
            return Arrival::Unneeded;
        };
        let before = std::mem::replace(state, State::Arrived);
        match before {
            State::Arrived => return Arrival::Unneeded,
            // It was given up too early; `next_lost` passes over it.
            State::Lost { .. } => {}
            State::InFlight {
                sent,
                serial,
                retries,
                ..
            } => {
                self.n_in_flight -= 1;
                if serial >= self.round_ends_at {
                    self.round_ends_at = self.next_serial;
                    self.last_peak_in_flight = self.peak_in_flight;
                    self.peak_in_flight = self.n_in_flight;
                    self.cubic.on_round();
                }
                if retries == 0 {
                    let rtt = now.saturating_since(sent);
                    self.rtt.add_sample(rtt);
                    self.cubic.on_rtt_sample(rtt);
                }
                if marked {
                    self.reduce(serial);
                }
                self.count_overtaken(now, serial);
            }
        }
        self.counters.n_segments += 1;
        if !marked && self.uses_window() {
            self.cubic
                .on_data(now, self.rtt.smoothed().unwrap_or_default());
        }
        while matches!(self.segments.front(), Some(State::Arrived)) {
            self.segments.pop_front();
            self.base += 1;
        }
        Arrival::New
    }

    /// The Interest for `segment` was refused. Congestion shrinks the window;
    /// any Nack asks again, after the time-out at the latest.
    pub fn handle_nack(&mut self, segment: u64, congestion: bool) {
        if let Some(&mut State::InFlight {
            serial, retries, ..
        }) = self.state_mut(segment)
            && congestion
        {
            self.lose(segment, serial, retries);
        }
    }

    /// Takes segments whose time has run out for lost.
    pub fn handle_timeout(&mut self, now: MonoNs) {
        let mut backed_off = false;
        while let Some((segment, sent, serial, retries)) = self.oldest_in_flight() {
            if now < sent + self.rtt.rto() {
                break;
            }
            self.order.pop_front();
            self.lose(segment, serial, retries);
            if !backed_off {
                self.rtt.back_off();
                backed_off = true;
            }
        }
    }

    /// When [`Fetcher::handle_timeout`] next has work.
    #[must_use]
    pub fn poll_timeout(&mut self) -> Option<MonoNs> {
        self.oldest_in_flight()
            .map(|(_, sent, ..)| sent + self.rtt.rto())
    }

    /// Whether every segment is here.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.final_segment.is_some_and(|last| self.base > last)
    }

    /// The segment that was asked for too often; the fetch has failed.
    #[must_use]
    pub const fn gave_up(&self) -> Option<u64> {
        self.gave_up
    }

    /// Number of the final segment, once a Data has stated it.
    #[must_use]
    pub const fn final_segment(&self) -> Option<u64> {
        self.final_segment
    }

    /// Whether `segment` was asked for and has not arrived. There are never
    /// more of these than the fetch runs ahead.
    #[must_use]
    pub fn is_awaited(&self, segment: u64) -> bool {
        let offset = segment.checked_sub(self.base);
        let state = offset
            .and_then(|offset| usize::try_from(offset).ok())
            .and_then(|offset| self.segments.get(offset));
        state.is_some_and(|state| !matches!(state, State::Arrived))
    }

    /// The lowest segment that is still missing.
    #[must_use]
    pub const fn first_missing(&self) -> u64 {
        self.base
    }

    /// What the fetch has done so far.
    #[must_use]
    pub const fn counters(&self) -> &FetchCounters {
        &self.counters
    }

    /// The round-trip times it has seen.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Segments that may be in flight now.
    #[must_use]
    pub fn window(&self) -> usize {
        self.cubic.window()
    }

    fn state_mut(&mut self, segment: u64) -> Option<&mut State> {
        let offset = usize::try_from(segment.checked_sub(self.base)?).ok()?;
        self.segments.get_mut(offset)
    }

    fn next_lost(&mut self) -> Option<(u64, u32)> {
        while let Some(segment) = self.lost.pop_front() {
            if let Some(&mut State::Lost { retries }) = self.state_mut(segment) {
                return Some((segment, retries + 1));
            }
        }
        None
    }

    fn next_new(&mut self) -> Option<u64> {
        let segment = self.base + self.segments.len() as u64;
        // The first segment usually states the final one. To wait for it costs one round
        // trip, and no Interest is sent for a segment that does not exist.
        if segment > 0 && self.counters.n_segments == 0 {
            return None;
        }
        // What arrived beyond a hole is kept by the caller: bound how far the
        // fetch runs ahead of it.
        let max_ahead = 4 * self.limits.max_window.max(64);
        if self.final_segment.is_some_and(|last| segment > last) || self.segments.len() >= max_ahead
        {
            return None;
        }
        self.segments.push_back(State::Lost { retries: 0 });
        Some(segment)
    }

    /// Forgets what was asked for beyond the final segment.
    fn learn_final(&mut self, last: u64) {
        self.final_segment = Some(last);
        let keep = last.saturating_add(1).saturating_sub(self.base);
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        while self.segments.len() > keep {
            if let Some(State::InFlight { .. }) = self.segments.pop_back() {
                self.n_in_flight -= 1;
            }
        }
    }

    /// Whether the window is what limits the fetch. One that is paced, or that
    /// waits for its reader, learns nothing about the path by which a larger
    /// window could be justified (RFC 9438, section 5.8).
    fn uses_window(&self) -> bool {
        let peak = self.peak_in_flight.max(self.last_peak_in_flight);
        2 * peak >= self.cubic.window()
    }

    /// One that left after them has arrived: older ones may be lost. What was
    /// asked for again is left to its time-out.
    fn count_overtaken(&mut self, now: MonoNs, arrived: u64) {
        let mut i = 0;
        while let Some(&(segment, serial)) = self.order.get(i) {
            if serial >= arrived {
                break;
            }
            let overtaken = match self.state_mut(segment) {
                Some(State::InFlight {
                    sent,
                    serial: s,
                    retries,
                    n_overtaken,
                }) if *s == serial => {
                    *n_overtaken += 1;
                    let is_gap = *retries == 0
                        && *n_overtaken >= REORDERING_SEGMENTS
                        && now.saturating_since(*sent) >= MIN_GAP_AGE;
                    Some((is_gap, *retries))
                }
                _ => None,
            };
            match overtaken {
                Some((true, retries)) => {
                    self.order.remove(i);
                    self.lose(segment, serial, retries);
                }
                Some((false, _)) => i += 1,
                None => {
                    self.order.remove(i);
                }
            }
        }
    }

    fn lose(&mut self, segment: u64, serial: u64, retries: u32) {
        self.counters.n_losses += 1;
        self.n_in_flight -= 1;
        if retries >= self.limits.max_retries {
            self.gave_up.get_or_insert(segment);
        }
        if let Some(state) = self.state_mut(segment) {
            *state = State::Lost { retries };
        }
        let at = self.lost.partition_point(|&other| other < segment);
        self.lost.insert(at, segment);
        self.reduce(serial);
    }

    /// Shrinks the window, once for all that was in flight together.
    fn reduce(&mut self, serial: u64) {
        if serial >= self.reduced_at {
            self.reduced_at = self.next_serial;
            self.cubic.on_congestion();
            self.counters.n_reductions += 1;
        }
    }

    /// The transmission that left first and is still in flight.
    fn oldest_in_flight(&mut self) -> Option<(u64, MonoNs, u64, u32)> {
        while let Some(&(segment, serial)) = self.order.front() {
            match self.state_mut(segment) {
                Some(&mut State::InFlight {
                    sent,
                    serial: s,
                    retries,
                    ..
                }) if s == serial => {
                    return Some((segment, sent, serial, retries));
                }
                _ => {
                    self.order.pop_front();
                }
            }
        }
        None
    }
}

/// Longest time to wait for one segment before its Interest is repeated; also
/// the lifetime put into the Interest.
pub const SEGMENT_LIFETIME: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    /// A path of fixed delay that loses what `lose` says, and what it took.
    fn run(n_segments: u64, mut lose: impl FnMut(u64) -> bool) -> (Fetcher, MonoNs) {
        let mut fetcher = Fetcher::new(FetchLimits::default());
        let mut now = MonoNs(1);
        let mut path: VecDeque<(MonoNs, u64)> = VecDeque::new();
        let mut n_sent = 0;
        while !fetcher.is_done() && fetcher.gave_up().is_none() {
            while let Some(segment) = fetcher.poll_transmit(now) {
                n_sent += 1;
                if segment < n_segments && !lose(n_sent) {
                    path.push_back((now + RTT, segment));
                }
            }
            let arrival = path.front().map(|&(at, _)| at);
            let timer = fetcher.poll_timeout();
            now = arrival
                .into_iter()
                .chain(timer)
                .min()
                .expect("something is in flight");
            if arrival == Some(now) {
                let (_, segment) = path.pop_front().expect("just seen");
                fetcher.handle_data(now, segment, Some(n_segments - 1), false);
            }
            fetcher.handle_timeout(now);
        }
        (fetcher, now)
    }

    #[test]
    fn every_segment_is_asked_for_once_on_a_clean_path() {
        let (fetcher, _) = run(1000, |_| false);
        assert!(fetcher.is_done());
        assert_eq!(fetcher.counters().n_interests, 1000);
        assert_eq!(fetcher.counters().n_segments, 1000);
        assert_eq!(fetcher.counters().n_retransmissions, 0);
    }

    #[test]
    fn a_hundredth_lost_arrives_all_the_same() {
        let (fetcher, _) = run(5000, |n| n % 100 == 7);
        assert!(fetcher.is_done());
        assert_eq!(fetcher.counters().n_segments, 5000);
        assert!(fetcher.counters().n_retransmissions >= 50);
    }

    #[test]
    fn a_lost_segment_is_not_asked_for_again_and_again_at_once() {
        // Segment 1 never comes, and the others come quickly.
        let mut fetcher = Fetcher::new(FetchLimits::default());
        let mut now = MonoNs(1);
        let mut asked_at = Vec::new();
        while now < MonoNs(1) + Duration::from_millis(150) {
            while let Some(segment) = fetcher.poll_transmit(now) {
                if segment == 1 {
                    asked_at.push(now);
                } else {
                    now = now + Duration::from_micros(50);
                    fetcher.handle_data(now, segment, None, false);
                }
            }
            now = now + Duration::from_micros(50);
            fetcher.handle_timeout(now);
        }
        // Once at first, and once after the gap was seen; then its time-out counts.
        assert_eq!(asked_at.len(), 2, "{asked_at:?}");
        assert!(asked_at[1].saturating_since(asked_at[0]) >= MIN_GAP_AGE);
        assert_eq!(fetcher.gave_up(), None);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut fetcher = Fetcher::new(FetchLimits::default());
        let mut now = MonoNs(1);
        for _ in 0..5_000 {
            let segment = fetcher.poll_transmit(now).expect("nothing is in flight");
            now = now + RTT;
            fetcher.handle_data(now, segment, None, false);
        }
        assert_eq!(fetcher.window(), 10);
    }

    #[test]
    fn losing_everything_gives_up_after_the_retries() {
        let (fetcher, _) = run(1, |_| true);
        assert!(fetcher.gave_up().is_some());
    }

    #[test]
    fn nothing_is_requested_beyond_the_final_segment() {
        for n_segments in [1, 2, 5, 9, 10, 11, 37] {
            let (fetcher, end) = run(n_segments, |_| false);
            assert_eq!(fetcher.counters().n_interests, n_segments);
            // One round trip for the first segment; the others as the window allows.
            let n_round_trips = match n_segments {
                1 => 1,
                2..=11 => 2,
                _ => 4,
            };
            assert!(
                end <= MonoNs(1) + RTT * n_round_trips,
                "{n_segments}: {end:?}"
            );
        }
    }

    #[test]
    fn other_segments_are_requested_once_the_first_has_arrived() {
        let mut fetcher = Fetcher::new(FetchLimits::default());
        let now = MonoNs(1);
        assert_eq!(fetcher.poll_transmit(now), Some(0));
        assert_eq!(fetcher.poll_transmit(now), None);
        // A producer may state the final segment in the last Data alone.
        fetcher.handle_data(now + RTT, 0, None, false);
        let sent: Vec<_> = std::iter::from_fn(|| fetcher.poll_transmit(now + RTT)).collect();
        assert_eq!(sent, (1..=10).collect::<Vec<_>>());
    }

    #[test]
    fn a_single_segment_needs_no_more_than_the_first_window() {
        let (fetcher, end) = run(1, |_| false);
        assert!(fetcher.is_done());
        assert_eq!(end, MonoNs(1) + RTT);
    }

    #[test]
    fn marks_of_one_round_trip_shrink_the_window_once() {
        let mut fetcher = Fetcher::new(FetchLimits::default());
        let now = MonoNs(1);
        assert_eq!(fetcher.poll_transmit(now), Some(0));
        fetcher.handle_data(now + RTT, 0, None, false);
        let now = now + RTT;
        let sent: Vec<_> = std::iter::from_fn(|| fetcher.poll_transmit(now)).collect();
        assert_eq!(sent.len(), 10);
        for segment in sent {
            fetcher.handle_data(now + RTT, segment, None, true);
        }
        assert_eq!(fetcher.counters().n_marks, 10);
        assert_eq!(fetcher.counters().n_reductions, 1);
        assert_eq!(fetcher.window(), 7);
    }

    #[test]
    fn unasked_and_repeated_segments_change_nothing() {
        let mut fetcher = Fetcher::new(FetchLimits::default());
        let now = MonoNs(1);
        assert_eq!(fetcher.handle_data(now, 99, None, false), Arrival::Unneeded);
        assert_eq!(fetcher.poll_transmit(now), Some(0));
        assert_eq!(fetcher.handle_data(now, 0, None, false), Arrival::New);
        assert_eq!(fetcher.handle_data(now, 0, None, false), Arrival::Unneeded);
        assert_eq!(fetcher.counters().n_segments, 1);
    }

    #[test]
    fn a_fetch_does_not_run_far_ahead_of_a_hole() {
        let limits = FetchLimits {
            max_window: 64,
            max_retries: 1000,
        };
        let mut fetcher = Fetcher::new(limits);
        let mut now = MonoNs(1);
        let mut highest = 0;
        for _ in 0..2000 {
            while let Some(segment) = fetcher.poll_transmit(now) {
                highest = highest.max(segment);
                if segment != 1 {
                    fetcher.handle_data(now, segment, None, false);
                }
            }
            now = now + Duration::from_millis(1);
            fetcher.handle_timeout(now);
        }
        assert!(highest <= 256, "{highest}");
    }
}
