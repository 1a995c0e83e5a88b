//! Sending lost fragments again (NDNLPv2, "Link reliability").
//!
//! Each fragment carries a TxSequence of its own; the peer acknowledges it.
//! What is overtaken by three later acknowledgements, or not acknowledged
//! within the retransmission time-out, is sent again under a new TxSequence,
//! three times at most. Owns the copies of what is unacknowledged, the
//! acknowledgements to send, and the memory of what came, against repetitions.
//! All of it is bounded. Writes nothing by itself: the link asks for what is
//! due.

use std::collections::VecDeque;
use std::time::Duration;

use tachonym_packet::MonoNs;
use tachonym_packet::lp::Headers;

use super::rtt::RttEstimator;

/// Retransmissions of a fragment.
const MAX_RETRANSMISSIONS: u8 = 3;
/// Acknowledgements of later fragments that make one lost.
const LOSS_THRESHOLD: u8 = 3;
/// Longest time that an acknowledgement waits for a packet to travel with.
pub(crate) const ACK_DELAY: Duration = Duration::from_millis(5);
/// Acknowledgements that are sent without waiting.
pub(crate) const ACK_BATCH: usize = 256;
/// Acknowledgements that wait; beyond, the oldest are forgotten, and what they
/// acknowledge is sent again.
const MAX_ACKS: usize = 4096;
/// Transmissions that are watched, acknowledged ones between them included.
const MAX_WATCHED: usize = 2048;
/// Bytes of watched fragments.
const MAX_WATCHED_BYTES: usize = 4 << 20;
/// Buffers that are kept for reuse.
const MAX_SPARE: usize = 64;
/// Sequences that are remembered; a power of two.
const N_REMEMBERED: usize = 4096;
/// How long a Sequence is remembered: longer than a peer keeps trying.
const REMEMBER_FOR: Duration = Duration::from_secs(10);

/// A fragment that was sent.
struct Transmission {
    headers: Headers,
    /// The prefix announcement, then the fragment.
    bytes: Vec<u8>,
    prefix_announcement_bytes: u32,
    sent_at: MonoNs,
    n_retransmissions: u8,
    n_overtaken: u8,
    /// Which network packet it belongs to.
    packet: u64,
}

/// A fragment to be sent again.
pub(crate) struct Resend<'a> {
    pub(crate) headers: Headers,
    pub(crate) prefix_announcement: Option<&'a [u8]>,
    pub(crate) fragment: &'a [u8],
}

/// What the acknowledgements and time-outs of late have led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReliabilityReport {
    /// Packets given up.
    pub(crate) n_exhausted: u64,
    /// Fragments that were sent without a copy being kept.
    pub(crate) n_unwatched: u64,
}

/// See the module documentation.
pub(crate) struct Reliability {
    /// TxSequence of the first of `watched`.
    first_watched: u64,
    /// By TxSequence, without a gap; `None`: acknowledged, lost or given up.
    /// The first one is not `None`.
    /// Sent in this order, so also ordered by `sent_at`.
    watched: VecDeque<Option<Transmission>>,
    watched_bytes: usize,
    lost: VecDeque<Transmission>,
    spare: Vec<Vec<u8>>,
    rtt: RttEstimator,
    next_packet: u64,
    acks: VecDeque<u64>,
    acks_due: MonoNs,
    remembered: Box<[(u64, MonoNs)]>,
    report: ReliabilityReport,
}

impl Reliability {
    /// `first_tx_sequence` should not repeat what an earlier life of this
    /// router used.
    pub(crate) fn new(first_tx_sequence: u64) -> Self {
        Self {
            first_watched: first_tx_sequence,
            watched: VecDeque::new(),
            watched_bytes: 0,
            lost: VecDeque::new(),
            spare: Vec::new(),
            rtt: RttEstimator::default(),
            next_packet: 0,
            acks: VecDeque::new(),
            acks_due: MonoNs::NEVER,
            remembered: vec![(0, MonoNs::ZERO); N_REMEMBERED].into(),
            report: ReliabilityReport::default(),
        }
    }

    /// Begins a network packet: the fragments watched from now on are its.
    pub(crate) fn begin_packet(&mut self) {
        self.next_packet = self.next_packet.wrapping_add(1);
    }

    /// Watches a fragment that is about to be sent, and says under which
    /// TxSequence.
    pub(crate) fn watch(
        &mut self,
        now: MonoNs,
        headers: &Headers,
        prefix_announcement: Option<&[u8]>,
        fragment: &[u8],
    ) -> u64 {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(prefix_announcement.unwrap_or_default());
        let prefix_announcement_bytes = bytes.len() as u32;
        bytes.extend_from_slice(fragment);
        self.push(Transmission {
            headers: *headers,
            bytes,
            prefix_announcement_bytes,
            sent_at: now,
            n_retransmissions: 0,
            n_overtaken: 0,
            packet: self.next_packet,
        })
    }

    fn push(&mut self, transmission: Transmission) -> u64 {
        self.watched_bytes += transmission.bytes.len();
        self.watched.push_back(Some(transmission));
        while self.watched.len() > MAX_WATCHED || self.watched_bytes > MAX_WATCHED_BYTES {
            let Some(oldest) = self.watched.pop_front() else {
                break;
            };
            self.first_watched = self.first_watched.wrapping_add(1);
            if let Some(oldest) = oldest {
                self.report.n_unwatched += 1;
                self.forget(oldest);
            }
        }
        // The timers look at the first one only.
        self.trim();
        self.first_watched
            .wrapping_add(self.watched.len() as u64)
            .wrapping_sub(1)
    }

    fn forget(&mut self, transmission: Transmission) {
        self.watched_bytes -= transmission.bytes.len();
        if self.spare.len() < MAX_SPARE {
            self.spare.push(transmission.bytes);
        }
    }

    fn trim(&mut self) {
        while let Some(None) = self.watched.front() {
            self.watched.pop_front();
            self.first_watched = self.first_watched.wrapping_add(1);
        }
    }

    /// Takes an acknowledgement from the peer. One of nothing watched changes
    /// nothing.
    pub(crate) fn handle_ack(&mut self, now: MonoNs, tx_sequence: u64) {
        let idx = tx_sequence.wrapping_sub(self.first_watched);
        let Some(transmission) = usize::try_from(idx)
            .ok()
            .and_then(|idx| self.watched.get_mut(idx))
            .and_then(Option::take)
        else {
            return;
        };
        if transmission.n_retransmissions == 0 {
            self.rtt
                .add_sample(now.saturating_since(transmission.sent_at));
        }
        self.forget(transmission);
        for before in 0..idx as usize {
            let Some(overtaken) = &mut self.watched[before] else {
                continue;
            };
            overtaken.n_overtaken += 1;
            if overtaken.n_overtaken >= LOSS_THRESHOLD
                && let Some(lost) = self.watched[before].take()
            {
                self.handle_loss(lost);
            }
        }
        self.trim();
    }

    fn handle_loss(&mut self, mut lost: Transmission) {
        if lost.n_retransmissions < MAX_RETRANSMISSIONS {
            lost.n_retransmissions += 1;
            lost.n_overtaken = 0;
            self.lost.push_back(lost);
            return;
        }
        // Without this fragment the others of its packet are of no use.
        let packet = lost.packet;
        self.forget(lost);
        self.report.n_exhausted += 1;
        for idx in 0..self.watched.len() {
            if let Some(sibling) = self.watched[idx].take_if(|other| other.packet == packet) {
                self.forget(sibling);
            }
        }
        for _ in 0..self.lost.len() {
            if let Some(other) = self.lost.pop_front() {
                if other.packet == packet {
                    self.forget(other);
                } else {
                    self.lost.push_back(other);
                }
            }
        }
    }

    /// Finds what has waited for its acknowledgement for too long.
    pub(crate) fn handle_timeout(&mut self, now: MonoNs) {
        let rto = self.rtt.rto();
        let mut has_timed_out = false;
        while let Some(Some(first)) = self.watched.front() {
            if first.sent_at + rto > now {
                break;
            }
            if let Some(Some(lost)) = self.watched.pop_front() {
                self.first_watched = self.first_watched.wrapping_add(1);
                self.handle_loss(lost);
                has_timed_out = true;
            }
            self.trim();
        }
        if has_timed_out {
            self.rtt.back_off();
        }
    }

    /// When [`Reliability::handle_timeout`] or the acknowledgements are next
    /// due.
    pub(crate) fn poll_timeout(&self) -> Option<MonoNs> {
        let loss = match self.watched.front() {
            Some(Some(first)) => first.sent_at + self.rtt.rto(),
            _ => MonoNs::NEVER,
        };
        let due = if self.lost.is_empty() {
            loss.min(self.acks_due)
        } else {
            MonoNs::ZERO
        };
        (due != MonoNs::NEVER).then_some(due)
    }

    /// Lets `send` send the next lost fragment again, under the TxSequence it
    /// is given. False if there is none.
    pub(crate) fn resend(&mut self, now: MonoNs, send: impl FnOnce(u64, Resend<'_>)) -> bool {
        let Some(mut transmission) = self.lost.pop_front() else {
            return false;
        };
        // It is counted again when it is watched again.
        self.watched_bytes -= transmission.bytes.len();
        transmission.sent_at = now;
        let tx_sequence = self.push(transmission);
        if let Some(Some(transmission)) = self.watched.back() {
            let (announcement, fragment) = transmission
                .bytes
                .split_at(transmission.prefix_announcement_bytes as usize);
            send(
                tx_sequence,
                Resend {
                    headers: transmission.headers,
                    prefix_announcement: (!announcement.is_empty()).then_some(announcement),
                    fragment,
                },
            );
        }
        true
    }

    /// Notes that a fragment with `tx_sequence` came, to be acknowledged.
    pub(crate) fn handle_received(&mut self, now: MonoNs, tx_sequence: u64) {
        if self.acks.len() == MAX_ACKS {
            self.acks.pop_front();
        }
        self.acks.push_back(tx_sequence);
        self.acks_due = self.acks_due.min(now + ACK_DELAY);
    }

    /// Whether the fragment with `sequence` came before; it has from now on.
    pub(crate) fn is_repeated(&mut self, now: MonoNs, sequence: u64) -> bool {
        let slot = &mut self.remembered[sequence as usize % N_REMEMBERED];
        let (last, at) = *slot;
        *slot = (sequence, now);
        last == sequence && at != MonoNs::ZERO && now.saturating_since(at) < REMEMBER_FOR
    }

    /// How many acknowledgements wait.
    pub(crate) fn n_acks(&self) -> usize {
        self.acks.len()
    }

    /// Whether acknowledgements should go now, with a packet or without.
    pub(crate) fn are_acks_due(&self, now: MonoNs) -> bool {
        self.acks.len() >= ACK_BATCH || self.acks_due <= now
    }

    /// Moves up to `max` acknowledgements to `out`, which is emptied first.
    pub(crate) fn take_acks(&mut self, max: usize, out: &mut Vec<u64>) {
        out.clear();
        out.extend(self.acks.drain(..max.min(self.acks.len())));
        if self.acks.is_empty() {
            self.acks_due = MonoNs::NEVER;
        }
    }

    /// What has happened since the last call.
    pub(crate) fn take_report(&mut self) -> ReliabilityReport {
        std::mem::take(&mut self.report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> MonoNs {
        MonoNs::ZERO.plus_ms(n + 1)
    }

    fn headers(sequence: u64) -> Headers {
        Headers {
            sequence: Some(sequence),
            ..Headers::default()
        }
    }

    fn watch(state: &mut Reliability, now: MonoNs, sequence: u64) -> u64 {
        state.begin_packet();
        state.watch(now, &headers(sequence), None, &[sequence as u8])
    }

    fn resent(state: &mut Reliability, now: MonoNs) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        while state.resend(now, |tx_sequence, resend| {
            assert_eq!(resend.fragment, [resend.headers.sequence.unwrap() as u8]);
            all.push((tx_sequence, resend.headers.sequence.unwrap()));
        }) {}
        all
    }

    #[test]
    fn three_later_acks_make_a_fragment_lost() {
        let mut state = Reliability::new(100);
        for sequence in 0..5 {
            assert_eq!(watch(&mut state, ms(0), sequence), 100 + sequence);
        }
        for tx_sequence in [101, 102] {
            state.handle_ack(ms(10), tx_sequence);
            assert!(resent(&mut state, ms(10)).is_empty());
        }
        // Repeated and foreign acknowledgements do not count.
        state.handle_ack(ms(10), 102);
        state.handle_ack(ms(10), 5000);
        assert!(resent(&mut state, ms(10)).is_empty());
        state.handle_ack(ms(10), 103);
        assert_eq!(resent(&mut state, ms(10)), [(105, 0)]);
        state.handle_ack(ms(20), 105);
        state.handle_ack(ms(20), 104);
        assert_eq!(state.poll_timeout(), None);
        assert_eq!(state.watched_bytes, 0);
    }

    #[test]
    fn an_unacknowledged_fragment_is_sent_four_times_and_given_up() {
        let mut state = Reliability::new(u64::MAX - 1);
        watch(&mut state, ms(0), 7);
        let mut n_sent = 1;
        while let Some(due) = state.poll_timeout() {
            state.handle_timeout(due);
            n_sent += resent(&mut state, due).len();
        }
        assert_eq!(n_sent, 4);
        assert_eq!(state.take_report().n_exhausted, 1);
        assert_eq!(state.watched_bytes, 0);
    }

    #[test]
    fn giving_up_one_fragment_gives_up_its_packet() {
        let mut state = Reliability::new(0);
        state.begin_packet();
        for sequence in 0..3 {
            state.watch(ms(0), &headers(sequence), None, &[sequence as u8]);
        }
        watch(&mut state, ms(0), 3);
        let mut sent = Vec::new();
        while let Some(due) = state.poll_timeout() {
            state.handle_timeout(due);
            for (tx_sequence, sequence) in resent(&mut state, due) {
                sent.push(sequence);
                // Only fragment 0 never arrives.
                if sequence == 3 {
                    state.handle_ack(due, tx_sequence);
                }
            }
        }
        assert_eq!(sent.iter().filter(|&&sequence| sequence == 0).count(), 3);
        assert_eq!(state.take_report().n_exhausted, 1);
        assert_eq!(state.watched_bytes, 0);
        assert!(state.watched.iter().all(Option::is_none));
    }

    #[test]
    fn unacknowledged_fragments_are_bounded() {
        let mut state = Reliability::new(0);
        for sequence in 0..3000 {
            watch(&mut state, ms(0), sequence);
            assert!(state.watched.len() <= MAX_WATCHED);
        }
        assert_eq!(state.take_report().n_unwatched, 3000 - MAX_WATCHED as u64);
        state.begin_packet();
        for _ in 0..1000 {
            state.watch(ms(0), &headers(0), None, &[0; 8800]);
            assert!(state.watched_bytes <= MAX_WATCHED_BYTES);
        }
    }

    #[test]
    fn what_follows_an_evicted_fragment_is_sent_again_and_given_up() {
        let mut state = Reliability::new(0);
        for sequence in 0..MAX_WATCHED as u64 {
            watch(&mut state, ms(0), sequence);
        }
        state.handle_ack(ms(1), 1);
        // One more: the first one is not watched any longer.
        watch(&mut state, ms(1), MAX_WATCHED as u64);
        assert_eq!(state.take_report().n_unwatched, 1);

        let mut n_sent = vec![0; MAX_WATCHED + 1];
        while let Some(due) = state.poll_timeout() {
            state.handle_timeout(due);
            while state.resend(due, |_, resend| {
                n_sent[resend.headers.sequence.unwrap() as usize] += 1;
            }) {}
        }
        assert_eq!(n_sent[..2], [0, 0]);
        assert!(n_sent[2..].iter().all(|&n_sent| n_sent == 3));
        assert_eq!(state.take_report().n_exhausted, MAX_WATCHED as u64 - 1);
        assert_eq!(state.watched_bytes, 0);
    }

    #[test]
    fn acks_wait_five_milliseconds_or_until_there_are_many() {
        let mut state = Reliability::new(0);
        state.handle_received(ms(0), 9);
        assert_eq!(state.poll_timeout(), Some(ms(5)));
        assert!(!state.are_acks_due(ms(4)));
        assert!(state.are_acks_due(ms(5)));
        for tx_sequence in 0..ACK_BATCH as u64 {
            state.handle_received(ms(1), tx_sequence);
        }
        assert!(state.are_acks_due(ms(1)));
        let mut acks = Vec::new();
        state.take_acks(2, &mut acks);
        assert_eq!(acks, [9, 0]);
        state.take_acks(usize::MAX, &mut acks);
        assert_eq!(acks.len(), ACK_BATCH - 1);
        assert_eq!(state.poll_timeout(), None);
        for tx_sequence in 0..2 * MAX_ACKS as u64 {
            state.handle_received(ms(1), tx_sequence);
        }
        assert_eq!(state.n_acks(), MAX_ACKS);
    }

    #[test]
    fn a_repeated_sequence_is_noticed_for_a_while() {
        let mut state = Reliability::new(0);
        assert!(!state.is_repeated(ms(0), 0));
        assert!(state.is_repeated(ms(1), 0));
        assert!(!state.is_repeated(ms(20_000), 0));
        assert!(!state.is_repeated(ms(20_000), N_REMEMBERED as u64));
        assert!(!state.is_repeated(ms(20_000), 0));
    }
}
