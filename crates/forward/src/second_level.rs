//! The way to the SSD level of the content store, and back.
//!
//! An Interest that the DRAM level cannot answer, and the SSD level probably can, is
//! pending as any other, but is not sent: its entry *awaits the store*. When the batch has
//! been read, its Data are inserted into the DRAM level, and each answers every entry that
//! it matches, whether that asked for this read or not. Entries that still await the store
//! then are sent upstream as if they were new. So an Interest is aggregated, expires and is
//! checked for loops as ever.
//!
//! The engine makes no input or output: its owner takes requests from the SSD level to a
//! device, and brings completions back ([`Engine::handle_completion`](crate::Engine::handle_completion)).

use tachonym_packet::lp::Headers;
use tachonym_packet::{DataView, FaceId, InterestView, NameHash, NameView};
use tachonym_store::device::Completion;
use tachonym_store::layout::MAX_BATCH_LEN;
use tachonym_store::{Place, Recall, Recalled, RecalledChunk};
use tachonym_tables::{EntryIdx, FibView, Inserted, Marks, Regained};

use crate::block::Block;
use crate::burst::Output;
use crate::data::{Source, answer_pending, remove};
use crate::faces::FaceTraits;
use crate::marks::{N_BELIEVED, TRIGGERS, mark_batch_before};
use crate::remote_reads::end_remote_reads;
use crate::retry::send_after_store;
use crate::state::{Arrival, Core, KnownStale, Second, credible, is_remote, sharer_of};

/// How long after an Interest found no free read a Data that comes may be one that the SSD
/// level has already, in milliseconds: about as long as upstreams take to answer.
const UNREAD_MS: u64 = 4_000;

/// The traits of the face that Data of the SSD level seem to come from.
const STORE_TRAITS: FaceTraits = FaceTraits::LOCAL;

/// Looks an Interest up in the SSD level that has just become pending, or was so before.
/// True if it is answered, or waits for a read: it is not to be sent now.
pub(crate) fn lookup(
    core: &mut Core,
    second: &mut Second,
    (idx, inserted): (EntryIdx, Inserted),
    arrival: &Arrival<'_>,
    interest: &InterestView<'_>,
    out: &mut impl Output,
) -> bool {
    if inserted == Inserted::Existing {
        let is_waiting = core.tables.pit_cs.matched(idx).awaits_store();
        core.world.counters.n_aggregated_interests += u64::from(is_waiting);
        return is_waiting;
    }
    let place = find(core, second, arrival, interest);
    place.is_some_and(|place| recall(core, second, (idx, place), arrival, interest, out))
}

/// Where the SSD level has a Data for an Interest, as far as it knows.
fn find(
    core: &Core,
    second: &mut Second,
    arrival: &Arrival<'_>,
    interest: &InterestView<'_>,
) -> Option<Place> {
    let tables = &core.tables.pit_cs;
    let hash = arrival.name_hash();
    // What the DRAM level has of this name is no older, and not fresh enough.
    let is_stale = interest.must_be_fresh()
        && (tables.has_data_named(interest.name(), hash)
            || second.known_stale.contains(hash, core.world.now));
    if !tables.cs().serves() || is_stale {
        return None;
    }
    second.level.as_mut()?.find(interest)
}

/// Fetches what the SSD level has found. True if it has been sent, or is being read.
fn recall(
    core: &mut Core,
    second: &mut Second,
    (idx, place): (EntryIdx, Place),
    arrival: &Arrival<'_>,
    interest: &InterestView<'_>,
    out: &mut impl Output,
) -> bool {
    let Some(level) = &mut second.level else {
        return false;
    };
    let sharer = sharer_of(arrival.traits.source_of(arrival.face));
    match level.recall(core.world.now, place, (idx.to_bits(), sharer)) {
        Recall::Here(wire, fresh_until) => {
            let chunk = RecalledChunk {
                wire,
                fresh_until,
                is_trigger: false,
            };
            take_chunks(core, [chunk].into_iter(), arrival.fib, out);
            core.tables.pit_cs.pit().get(idx).is_none()
        }
        recall @ (Recall::Reading | Recall::Joined) => {
            let is_new = matches!(recall, Recall::Reading);
            core.tables.pit_cs.matched(idx).set_awaits_store(true);
            if is_new {
                mark_batch_before(core, level, interest.name());
            }
            true
        }
        Recall::Busy => {
            second.unread_until = core.world.now.plus_ms(UNREAD_MS);
            false
        }
        Recall::Gone => {
            core.world.counters.n_second_level_failures += 1;
            false
        }
    }
}

/// Takes what has become of a request of the SSD level, and answers the Interests that wait
/// for it.
pub(crate) fn handle_completion(
    core: &mut Core,
    second: &mut Second,
    completion: Completion,
    fib: &FibView<'_>,
    out: &mut impl Output,
) {
    let Some(level) = &mut second.level else {
        return;
    };
    if let Some(recalled) = level.handle_completion(core.world.now, completion) {
        take_batch(core, second, recalled, fib, out);
    }
    take_given_up(core, second, fib, out);
}

/// Does what has become due in the SSD level.
pub(crate) fn handle_timers(
    core: &mut Core,
    second: &mut Second,
    fib: &FibView<'_>,
    out: &mut impl Output,
) {
    let now = core.world.now;
    if let Some(level) = &mut second.level
        && level.poll_timeout().is_some_and(|at| at <= now)
    {
        level.handle_timeout(now);
        take_given_up(core, second, fib, out);
    }
}

/// Takes the reads that were given up.
fn take_given_up(core: &mut Core, second: &mut Second, fib: &FibView<'_>, out: &mut impl Output) {
    while let Some(recalled) = second.level.as_mut().and_then(|it| it.poll_given_up()) {
        take_batch(core, second, recalled, fib, out);
    }
}

/// Takes a batch that has been read, or could not be.
fn take_batch(
    core: &mut Core,
    second: &mut Second,
    recalled: Recalled,
    fib: &FibView<'_>,
    out: &mut impl Output,
) {
    if recalled.waiters().any(is_remote) {
        end_remote_reads(core, second, &recalled);
    }
    let Second {
        level, known_stale, ..
    } = second;
    let Some(level) = level else {
        return;
    };
    if let Some((name, hash)) = take_chunks(core, recalled.chunks(), fib, out) {
        let Core { tables, world, .. } = core;
        let is_reading = level.read_ahead(world.now, name, |first| {
            tables
                .pit_cs
                .has_data_named(first, world.key.hash_name(first))
        });
        if is_reading {
            let trust = |marks: Marks| marks.after(N_BELIEVED);
            tables.pit_cs.change_marks(name, hash, trust);
        }
    }
    for waiter in recalled.waiters().filter(|&it| !is_remote(it)) {
        give_up_waiting(core, known_stale, EntryIdx::from_bits(waiter), fib, out);
    }
    level.recycle(recalled);
}

/// Sends the Interest of an entry upstream that has waited for a batch without its Data.
fn give_up_waiting(
    core: &mut Core,
    known_stale: &mut KnownStale,
    idx: EntryIdx,
    fib: &FibView<'_>,
    out: &mut impl Output,
) {
    let Core { tables, world, .. } = core;
    let entry = tables.pit_cs.pending(idx);
    // The others have been answered.
    if let Some(mut entry) = entry.filter(|entry| entry.awaits_store()) {
        entry.set_awaits_store(false);
        if entry.must_be_fresh() {
            known_stale.add(entry.name_hash(), world.now);
        }
        world.counters.n_second_level_failures += 1;
        send_after_store(core, fib, idx, out);
    }
}

/// Inserts the Data of a batch into the DRAM level, after they have answered the entries that
/// they match. Returns the name of the one that triggers the read of the next batch, if it
/// answered an entry.
///
/// As with a burst, what each looks at is prefetched while others are dealt with.
fn take_chunks<'r>(
    core: &mut Core,
    chunks: impl Iterator<Item = RecalledChunk<'r>>,
    fib: &FibView<'_>,
    out: &mut impl Output,
) -> Option<(NameView<'r>, NameHash)> {
    let mut all = [None; MAX_BATCH_LEN];
    // A program that can write to the disk can put anything there.
    let data = chunks.filter_map(|chunk| Some((chunk, DataView::parse(chunk.wire).ok()?)));
    for (place, chunk) in all.iter_mut().zip(data) {
        *place = Some(chunk);
    }
    let all = all.iter().flatten();
    let Core {
        tables,
        world,
        scratch,
    } = core;
    // Taken out, since each Data goes its way with hashes from here.
    let mut hashes = std::mem::take(&mut scratch.batch_hashes);
    let mut spans = std::mem::take(&mut scratch.batch_spans);
    hashes.clear();
    spans.clear();
    let names = all.clone().map(|(_, data)| data.name());
    hashes.push_burst(&world.key, names, &mut spans);
    for &span in &spans {
        tables.pit_cs.prefetch_buckets_for_data(hashes.slice(span));
    }
    for &span in &spans {
        tables.pit_cs.prefetch_entries_for_data(hashes.slice(span));
    }
    let mut trigger = None;
    for ((chunk, data), &span) in all.zip(&spans) {
        core.tables.pit_cs.prefetch_victims();
        let hashes = hashes.slice(span);
        let is_wanted = take_chunk(core, chunk, data, (hashes, fib), out);
        if is_wanted && chunk.is_trigger {
            trigger = Some((data.name(), hashes[data.name().len()]));
        }
    }
    core.scratch.batch_hashes = hashes;
    core.scratch.batch_spans = spans;
    trigger
}

/// Inserts one Data, whose name has these hashes. Whether it answered an entry.
fn take_chunk(
    core: &mut Core,
    chunk: &RecalledChunk<'_>,
    data: &DataView<'_>,
    (hashes, fib): (&[NameHash], &FibView<'_>),
    out: &mut impl Output,
) -> bool {
    let now = core.world.now;
    let fresh_until = credible(chunk.fresh_until, data, now);
    let arrival = Arrival {
        face: FaceId::CONTENT_STORE,
        traits: STORE_TRAITS,
        headers: &Headers::EMPTY,
        announcement: None,
        borrowed: None,
        hashes,
        fib,
        probe: None,
    };
    let answered = answer_pending(
        core,
        &arrival,
        data,
        Source::SsdLevel { fresh_until },
        None,
        out,
    );
    remove(core);
    out.enter(Block::StoreInsertion);
    let period_ms = data.freshness_period_ms();
    let marks = if chunk.is_trigger {
        TRIGGERS
    } else {
        Marks::NONE
    };
    let regained = Regained {
        fresh_until: fresh_until.min(now.plus_ms(period_ms)),
        marks,
        has_answered: answered.is_wanted,
    };
    core.tables.pit_cs.insert_recalled(data, hashes, regained);
    answered.is_wanted
}
