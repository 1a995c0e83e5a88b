//! How a content store gets smaller: in parts, between which packets travel on.

use tachonym_tables::CsCapacity;
use tracing::warn;

use crate::plane::Plane;

/// Data that leave the content store at once when it shrinks.
const CS_PKTS_PER_SLICE: usize = 1024;

/// How far a content store is from its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shrinking {
    Done,
    GoesOn,
    Refused,
}

/// Evicts some packets towards the worker's share of the capacity, a slice at a time, so that
/// no packet waits long.
pub(crate) fn shrink_some(plane: &mut Plane) -> Option<Shrinking> {
    let part = plane.cs_part();
    let engine = plane.engine_mut()?;
    let most_now = engine.cs().len().saturating_sub(CS_PKTS_PER_SLICE);
    let capacity = CsCapacity {
        max_pkts: part.max_pkts.max(most_now),
        ..part
    };
    if let Err(error) = engine.cs_mut().set_limits(capacity) {
        // The response to the command has the capacity in force.
        warn!(
            "the content store keeps its capacity of {} packets: {error}",
            engine.cs().capacity().max_pkts
        );
        return Some(Shrinking::Refused);
    }
    Some(match capacity.max_pkts > part.max_pkts {
        true => Shrinking::GoesOn,
        false => Shrinking::Done,
    })
}
