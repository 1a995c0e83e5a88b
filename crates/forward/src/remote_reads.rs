//! What the SSD level of the content store has for Interests that wait at other engines.
//!
//! Such an Interest is not pending here: it is kept with the number of the read that it waits
//! for, and its result is there for the owner of the engines to fetch
//! ([`Shared::poll_remote_read`](crate::sharing::Shared::poll_remote_read)). At most [`MAX_REMOTE_READS`] wait;
//! one beyond gets no Data, which is counted.

use tachonym_packet::types::component::IMPLICIT_SHA256_DIGEST;
use tachonym_packet::{DataView, FaceId, InterestView, MonoNs};
use tachonym_store::{Recall, Recalled};
use tachonym_tables::OfferRank;

use crate::state::{Core, RemoteRead, Requester, Second, credible, sharer_of};

/// How well a Data of the SSD level answers an Interest, if it does.
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
    let is_named = if is_longer {
        interest.can_be_prefix() && name.starts_with(asked)
    } else {
        name == asked || is_full_name()
    };
    let is_fresh = !interest.must_be_fresh() || now < fresh_until;
    (is_named && is_fresh).then(|| OfferRank::of_second_level(!is_longer, fresh_until))
}

/// Gives Interests of other engines what they find in a batch.
#[cold]
pub(crate) fn end_remote_reads(core: &Core, second: &mut Second, recalled: &Recalled) {
    let Second {
        remote,
        known_stale,
        ..
    } = second;
    let world = &core.world;
    let is_read = |waiter| recalled.waiters().any(|it| it == waiter);
    remote.end_waiting(is_read, |read| {
        let Ok(interest) = InterestView::parse(&read.interest) else {
            return;
        };
        read.data = recalled.chunks().find_map(|chunk| {
            let data = DataView::parse(chunk.wire).ok()?;
            let rank = rank(&interest, &data, chunk.fresh_until, world.now)?;
            Some((rank, chunk.wire.to_vec()))
        });
        if read.data.is_none() && interest.must_be_fresh() {
            known_stale.add(world.key.hash_name(interest.name()), world.now);
        }
    });
}

/// Looks up what the SSD level has for an Interest from `face` that waits at another engine.
pub(crate) fn start_read(
    core: &mut Core,
    second: &mut Second,
    requester: Requester,
    face: FaceId,
    interest: &InterestView<'_>,
) {
    let Second {
        level,
        known_stale,
        remote: reads,
        ..
    } = second;
    let world = &mut core.world;
    let mut read = RemoteRead {
        requester,
        interest: interest.wire().to_vec(),
        data: None,
    };
    let is_stale = interest.must_be_fresh()
        && known_stale.contains(world.key.hash_name(interest.name()), world.now);
    let serves = core.tables.pit_cs.cs().serves();
    let Some(level) = level.as_mut().filter(|_| serves && !is_stale) else {
        return reads.end(read);
    };
    let Some(place) = level.peek(interest) else {
        return reads.end(read);
    };
    if reads.is_full() {
        world.counters.n_sought_refused += 1;
        return reads.end(read);
    }
    let waiter = reads.next_waiter();
    let sharer = sharer_of(world.faces.source_of(face));
    match level.recall(world.now, place, (waiter, sharer)) {
        Recall::Here(wire, fresh_until) => {
            read.data = DataView::parse(wire).ok().and_then(|data| {
                let rank = rank(interest, &data, fresh_until, world.now)?;
                Some((rank, wire.to_vec()))
            });
            reads.end(read);
        }
        Recall::Reading | Recall::Joined => reads.wait(waiter, read),
        Recall::Busy => {
            world.counters.n_sought_refused += 1;
            reads.end(read);
        }
        Recall::Gone => reads.end(read),
    }
}
