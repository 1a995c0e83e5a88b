//! What the second level of the content store has for Interests that wait at other engines.
//!
//! Such an Interest is not pending here: it is kept with the number of the read that it waits
//! for, and what it has found is there for whoever owns the engines to take
//! ([`Engine::poll_sought`]). No more of them wait than [`MAX_SOUGHT`]; for one beyond, the
//! second level is said to have nothing, and that is counted.

use std::collections::VecDeque;

use tachonym_packet::types::component::IMPLICIT_SHA256_DIGEST;
use tachonym_packet::{DataView, FaceId, InterestView, MonoNs};
use tachonym_store::{Recall, Recalled, Waiter};
use tachonym_tables::OfferRank;

use crate::engine::Engine;
use crate::pipelines::Pipelines;
use crate::second_level::{STALE_MS, credible, sharer_of};

/// Most Interests of other engines that wait for reads here; a choice of this module.
pub const MAX_SOUGHT: usize = 1_024;

/// The slot that no pending Interest has: who waits for a read with it is one of these.
const NO_SLOT: u32 = u32::MAX;

/// At which engine an Interest waits, and under which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeker {
    /// The engine, by whatever number its owner gives it.
    pub engine: u16,
    /// The Interest, by whatever number it has there.
    pub ticket: u64,
}

/// What the second level has for an Interest of another engine.
#[derive(Debug, PartialEq, Eq)]
pub struct Sought {
    /// Where that waits.
    pub seeker: Seeker,
    /// The Interest.
    pub interest: Vec<u8>,
    /// The Data, and how good it is; `None`: there is none, or it cannot be had now.
    pub data: Option<(OfferRank, Vec<u8>)>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SoughtReads {
    /// With the number of its wait.
    waiting: Vec<(Waiter, Sought)>,
    ended: VecDeque<Sought>,
    last_number: u32,
}

/// Whether who waits for a read is one of these.
pub(crate) const fn is_seeker(waiter: Waiter) -> bool {
    waiter as u32 == NO_SLOT
}

/// How well a Data of the second level answers an Interest, if it does.
fn rank(
    interest: &InterestView<'_>,
    data: &DataView<'_>,
    fresh_until: MonoNs,
    now: MonoNs,
) -> Option<OfferRank> {
    let fresh_until = credible(fresh_until, data, now);
    let (asked, name) = (interest.name(), data.name());
    let is_full_name = || {
        let last = asked.last().filter(|it| it.typ() == IMPLICIT_SHA256_DIGEST);
        asked.len() == name.len() + 1
            && asked.starts_with(name)
            && last.is_some_and(|last| last.value() == data.implicit_digest())
    };
    let is_longer = name.len() > asked.len();
    let is_named = match is_longer {
        true => interest.can_be_prefix() && name.starts_with(asked),
        false => name == asked || is_full_name(),
    };
    let is_fresh = !interest.must_be_fresh() || now < fresh_until;
    (is_named && is_fresh).then(|| OfferRank::of_second_level(!is_longer, fresh_until))
}

impl SoughtReads {
    fn end(&mut self, sought: Sought) {
        self.ended.push_back(sought);
    }
}

impl Pipelines {
    /// Gives those who wait for a batch what they find in it.
    #[cold]
    pub(crate) fn take_for_seekers(&mut self, recalled: &Recalled) {
        let reads = &mut self.sought;
        let ended = reads
            .waiting
            .extract_if(.., |(waiter, _)| recalled.waiters().any(|it| it == *waiter));
        for (_, mut sought) in ended {
            let Ok(interest) = InterestView::parse(&sought.interest) else {
                continue;
            };
            sought.data = recalled.chunks().find_map(|chunk| {
                let data = DataView::parse(chunk.wire).ok()?;
                let rank = rank(&interest, &data, chunk.fresh_until, self.now)?;
                Some((rank, chunk.wire.to_vec()))
            });
            if sought.data.is_none() && interest.must_be_fresh() {
                let hash = self.key.hash_name(interest.name());
                self.known_stale.add(hash, self.now.plus_ms(STALE_MS));
            }
            reads.ended.push_back(sought);
        }
    }

    /// Looks for what the second level has for an Interest of another engine.
    fn seek_for(&mut self, seeker: Seeker, face: FaceId, interest: &InterestView<'_>) {
        let mut sought = Sought {
            seeker,
            interest: interest.wire().to_vec(),
            data: None,
        };
        let hash = self.key.hash_name(interest.name());
        let is_hopeless = !self.tables.cs().serves()
            || interest.must_be_fresh() && self.known_stale.contains(hash, self.now);
        let now = self.now;
        let Some(second) = self.second.as_mut().filter(|_| !is_hopeless) else {
            return self.sought.end(sought);
        };
        let Some(place) = second.peek(interest) else {
            return self.sought.end(sought);
        };
        if self.sought.waiting.len() == MAX_SOUGHT {
            self.counters.n_sought_refused += 1;
            return self.sought.end(sought);
        }
        self.sought.last_number = self.sought.last_number.wrapping_add(1);
        let waiter = u64::from(self.sought.last_number) << 32 | u64::from(NO_SLOT);
        match second.recall(now, place, (waiter, sharer_of(self.faces.source_of(face)))) {
            Recall::Here(wire, fresh_until) => {
                sought.data = DataView::parse(wire).ok().and_then(|data| {
                    let rank = rank(interest, &data, fresh_until, now)?;
                    Some((rank, wire.to_vec()))
                });
                self.sought.end(sought);
            }
            Recall::Reading | Recall::Joined => self.sought.waiting.push((waiter, sought)),
            Recall::Busy => {
                self.counters.n_sought_refused += 1;
                self.sought.end(sought);
            }
            Recall::Gone => self.sought.end(sought),
        }
    }
}

impl Engine {
    /// Whether another engine's second level is to be asked about an Interest that no first
    /// level has Data for: there are such levels, and this engine's own seems to have nothing.
    #[must_use]
    pub fn lacks_on_second_level(&self, interest: &InterestView<'_>) -> bool {
        let second = self.second_level();
        second.is_some_and(|second| second.peek(interest).is_none())
    }

    /// Has the second level asked about an Interest from `face` that waits at another engine. What
    /// it has comes from [`Engine::poll_sought`], at once or when it has been read; counts nothing but
    /// the read.
    pub fn seek_for(
        &mut self,
        now: MonoNs,
        seeker: Seeker,
        face: FaceId,
        interest: &InterestView<'_>,
    ) {
        let pipelines = &mut self.pipelines;
        pipelines.now = pipelines.now.max(now);
        pipelines.seek_for(seeker, face, interest);
    }

    /// What has been found, or not, for an Interest of another engine: the first that was not
    /// taken yet.
    pub fn poll_sought(&mut self) -> Option<Sought> {
        self.pipelines.sought.ended.pop_front()
    }
}
