//! Marks of cached Data, by which the DRAM level of the content store and the SSD level
//! cooperate: a hit on a marked Data triggers a read ahead, or has the Data offered again.

use tachonym_packet::{DataView, MonoNs, NameHash, NameView};
use tachonym_store::{Novelty, Offered, SecondLevel};
use tachonym_tables::{Admission, DataRef, Marks, NotAdmitted};

use crate::state::{Core, Second};

/// Mark of a Data: its answer triggers the read of the next batch of its object, unless the
/// DRAM level has that.
pub(crate) const TRIGGERS: Marks = Marks::new(1);
/// Mark of a Data: its answer has it offered to the SSD level again.
const IS_TO_BE_OFFERED: Marks = Marks::new(2);

/// Answers for which the DRAM level is trusted to hold the next batch once it has had it.
/// Where a Data of that batch was evicted sooner, the Interest that has to wait for it resets
/// the mark.
pub(crate) const N_BELIEVED: u8 = Marks::MAX_PAUSE;

/// What is to be done after a Data with marks has answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    /// Its neighbours are to be read; its name is in the buffer.
    reads_ahead: bool,
    /// It is not to be offered again.
    is_offered: bool,
}

/// A Data with marks has answered an Interest. Leaves its name in `name`.
#[cold]
pub(crate) fn handle_marked_hit(
    level: &mut SecondLevel,
    now: MonoNs,
    data: &DataRef<'_>,
    name: &mut Vec<u8>,
) -> Next {
    let marks = data.marks();
    let data = data.view();
    name.clear();
    name.extend_from_slice(data.name().value_bytes());
    let mut next = Next {
        reads_ahead: marks.include(TRIGGERS),
        is_offered: false,
    };
    if marks.include(IS_TO_BE_OFFERED) {
        let hash = level.request_hash(data.name());
        level.note_request(hash);
        let offered = level.offer(now, &data, hash, Novelty::New);
        next.is_offered = offered != Offered::NotAdmitted;
    }
    next
}

/// Does what [`handle_marked_hit`] says for the Data whose name is in `scratch.name`.
#[cold]
pub(crate) fn follow_marked_hit(
    core: &mut Core,
    level: &mut SecondLevel,
    hashes: &[NameHash],
    next: Next,
) {
    let Core {
        tables,
        world,
        scratch,
    } = core;
    let name = NameView::parse_value(&scratch.name).expect("the name of a cached Data");
    let is_done = next.reads_ahead
        && level.read_ahead(world.now, name, |first| {
            tables
                .pit_cs
                .has_data_named(first, world.key.hash_name(first))
        });
    // The Interest had this name, or a longer one; or a shorter one with CanBePrefix.
    let hash = hashes.get(name.len()).copied();
    let hash = hash.unwrap_or_else(|| world.key.hash_name(name));
    tables.pit_cs.change_marks(name, hash, |marks| {
        let marks = if next.is_offered {
            marks.without(IS_TO_BE_OFFERED)
        } else {
            marks
        };
        if is_done && marks == TRIGGERS {
            marks.after(N_BELIEVED)
        } else {
            marks
        }
    });
}

/// Has the batch with a segment that an Interest waits for read ahead next time: when the
/// batch before it is asked for.
pub(crate) fn mark_batch_before(core: &mut Core, level: &SecondLevel, name: NameView<'_>) {
    let buffer = &mut core.scratch.name;
    if level.write_trigger_before(name, buffer)
        && let Ok(trigger) = NameView::parse_value(buffer)
    {
        let hash = core.world.key.hash_name(trigger);
        let pit_cs = &mut core.tables.pit_cs;
        pit_cs.change_marks(trigger, hash, |marks| marks.with(TRIGGERS).after(0));
    }
}

/// Offers a Data that has come to the SSD level.
pub(crate) fn offer_to_second_level(
    core: &mut Core,
    second: &mut Second,
    data: &DataView<'_>,
    hashes: &[NameHash],
    admission: Admission,
) {
    let Some(level) = &mut second.level else {
        return;
    };
    if admission == Admission::NotAdmitted(NotAdmitted::AdmitOff) {
        return;
    }
    let now = core.world.now;
    let (name, name_hash) = (data.name(), hashes[data.name().len()]);
    let novelty = match admission {
        // It was offered when it was inserted.
        Admission::Refreshed => return,
        Admission::Replaced => Novelty::Replacement,
        // The SSD level may have one that is not fresh, or for which no read was free.
        _ if now < second.unread_until || second.known_stale.contains(name_hash, now) => {
            Novelty::Unsure
        }
        _ => Novelty::New,
    };
    let hash = level.request_hash(name);
    let offered = level.offer(now, data, hash, novelty);
    let mut marks = Marks::NONE;
    if level.is_trigger(name) {
        marks = marks.with(TRIGGERS);
    }
    if offered == Offered::NotAdmitted && level.admission_learns() {
        marks = marks.with(IS_TO_BE_OFFERED);
    }
    if !marks.is_empty() {
        core.tables.pit_cs.change_marks(name, name_hash, |_| marks);
    }
}
