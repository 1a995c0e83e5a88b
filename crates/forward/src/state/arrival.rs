//! A packet's circumstances, and the downstreams that a Data goes to.

use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, MonoNs, NameHash, PitToken};
use tachonym_tables::{FibProbe, FibView, InRecord};

use crate::faces::FaceTraits;

/// Where a packet comes from, what came with it, and what is known of its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) face: FaceId,
    pub(crate) traits: FaceTraits,
    pub(crate) headers: &'a Headers,
    /// The prefix announcement that came with a Data.
    pub(crate) announcement: Option<&'a [u8]>,
    /// The Data of another engine's store that answers an Interest.
    pub(crate) borrowed: Option<BorrowedData<'a>>,
    /// `hashes[i]` is the hash of the first `i` components of the name.
    pub(crate) hashes: &'a [NameHash],
    /// The FIB during this burst.
    pub(crate) fib: &'a FibView<'a>,
    /// The FIB's candidates for an Interest without a forwarding hint, if they were looked
    /// up ahead.
    pub(crate) probe: Option<&'a FibProbe>,
}

impl Arrival<'_> {
    /// The hash of the whole name.
    pub(crate) fn name_hash(&self) -> NameHash {
        *self.hashes.last().expect("even the empty name has a hash")
    }
}

/// A Data of another engine's store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BorrowedData<'a> {
    pub(crate) wire: &'a [u8],
    /// Whether it was in the DRAM level there.
    pub(crate) is_in_memory: bool,
}

/// A face that gets an answer, and the token to return with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downstream {
    pub(crate) face: FaceId,
    pub(crate) pit_token: Option<PitToken>,
    /// Its Interest did not come marked NonDiscovery: it may want an announcement.
    pub(crate) is_discovering: bool,
}

/// Flag of an in-record: its Interest came marked NonDiscovery.
pub(crate) const NON_DISCOVERY: u8 = 1;
/// Flag of an in-record: its Interest states its lifetime.
pub(crate) const STATES_LIFETIME: u8 = 2;
/// Flag of an in-record: its Interest has other parameters than the one that made the entry,
/// and they are not kept.
pub(crate) const OTHER_PARAMETERS: u8 = 4;

impl Downstream {
    pub(crate) fn of(record: &InRecord) -> Self {
        Self {
            face: record.face,
            pit_token: record.pit_token,
            is_discovering: record.flags & NON_DISCOVERY == 0,
        }
    }

    /// The downstream that sent an Interest with these headers.
    #[must_use]
    pub const fn of_interest(face: FaceId, headers: &Headers) -> Self {
        Self {
            face,
            pit_token: headers.pit_token,
            is_discovering: !headers.non_discovery,
        }
    }

    /// Sorts equal downstreams together, one that is discovering first.
    pub(crate) fn sort_key(&self) -> (FaceId, &[u8], bool) {
        let token = self
            .pit_token
            .as_ref()
            .map_or(&[][..], |token| token.as_bytes());
        (self.face, token, !self.is_discovering)
    }

    /// Whether it is the same face with the same token.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.face == other.face && self.pit_token == other.pit_token
    }
}

/// Most downstreams that a visiting Data takes along; a choice of this module. They are
/// compared one by one with the downstreams at the next engine.
pub const MAX_SERVED: usize = 1_024;

/// Downstreams that have received a Data which visits several engines: at most
/// [`MAX_SERVED`] over all of them.
#[derive(Clone, Debug, Default)]
pub struct Served {
    since: MonoNs,
    downstreams: Vec<Downstream>,
    n_not_noted: u64,
}

impl Served {
    /// Starts a new Data, which `downstreams` have received. `since` is when it arrived at
    /// its home engine: an Interest that came later may not mean the copy its face has.
    pub fn begin(&mut self, since: MonoNs, downstreams: &[Downstream]) {
        self.since = since;
        self.downstreams.clear();
        self.add(downstreams);
    }

    /// Adds downstreams that have received it. One that finds no room is counted, and
    /// receives the Data again if it waits at another engine too.
    pub fn add(&mut self, downstreams: &[Downstream]) {
        let n_noted = downstreams.len().min(MAX_SERVED - self.downstreams.len());
        self.downstreams.extend_from_slice(&downstreams[..n_noted]);
        self.n_not_noted += (downstreams.len() - n_noted) as u64;
    }

    /// The downstreams that have received it.
    #[must_use]
    pub fn downstreams(&self) -> &[Downstream] {
        &self.downstreams
    }

    /// Downstreams that found no room since this was made, of all Data together.
    #[must_use]
    pub const fn n_not_noted(&self) -> u64 {
        self.n_not_noted
    }

    /// Whether a downstream whose Interest came at `asked_at` has received this Data as its
    /// answer.
    #[must_use]
    pub fn includes(&self, downstream: &Downstream, asked_at: MonoNs) -> bool {
        let mut downstreams = self.downstreams.iter();
        asked_at < self.since && downstreams.any(|served| served.is_same(downstream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_takes_no_more_downstreams_along_than_it_may() {
        let of = |face| Downstream::of_interest(FaceId(face), &Headers::EMPTY);
        let mut served = Served::default();
        served.begin(MonoNs(2), &[of(256), of(257)]);
        let others: Vec<_> = (258..).map(of).take(MAX_SERVED).collect();
        served.add(&others);
        served.add(&[of(9)]);
        assert_eq!(served.downstreams().len(), MAX_SERVED);
        assert_eq!(served.n_not_noted(), 3);
        let is_included = |face| served.includes(&of(face), MonoNs(1));
        assert!(is_included(256) && is_included(255 + MAX_SERVED as u64));
        assert!(!is_included(256 + MAX_SERVED as u64) && !is_included(9));
        assert!(
            !served.includes(&of(256), MonoNs(2)),
            "asked when it had come"
        );
    }
}
