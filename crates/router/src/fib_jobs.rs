//! Changes of the FIB as jobs for the worker.
//!
//! One command may change the FIB at every prefix below its own. Such a list is
//! applied in slices, each a job: packets pass between two of them.

use tachonym_forward::RouteError;
use tachonym_manage::{FibChange, FibRefusal, FibRefusalReason};
use tachonym_packet::FaceId;
use tachonym_tables::{FibError, NextHop};

use crate::worker::Plane;

/// Most changes in one job: packets wait no longer than those take, a few
/// milliseconds.
const MAX_CHANGES_PER_JOB: usize = 1024;

/// Gives `changes` to `apply` in their order, a bounded number at a time; what
/// was refused of all of them.
///
/// # Errors
/// The first of `apply`; what follows is not applied.
pub(crate) fn in_slices<E>(
    changes: Vec<FibChange>,
    mut apply: impl FnMut(Vec<FibChange>) -> Result<Vec<FibRefusal>, E>,
) -> Result<Vec<FibRefusal>, E> {
    if changes.len() <= MAX_CHANGES_PER_JOB {
        return apply(changes);
    }
    let mut changes = changes.into_iter();
    let mut refusals = Vec::new();
    while changes.len() > 0 {
        let slice = changes.by_ref().take(MAX_CHANGES_PER_JOB).collect();
        refusals.extend(apply(slice)?);
    }
    Ok(refusals)
}

/// Applies `changes` in their order; what was refused.
pub(crate) fn apply_all(plane: &mut Plane, changes: Vec<FibChange>) -> Vec<FibRefusal> {
    let mut refusals = Vec::new();
    for change in changes {
        if let Err(reason) = apply(plane, &change) {
            refusals.push(FibRefusal { change, reason });
        }
    }
    refusals
}

fn apply(plane: &mut Plane, change: &FibChange) -> Result<(), FibRefusalReason> {
    match change {
        FibChange::Add {
            name,
            face,
            cost,
            distance,
        } => {
            // The router's own faces are nobody's next hop.
            if *face < FaceId::FIRST_DYNAMIC {
                return Err(FibRefusalReason::FaceNotFound);
            }
            let hop = NextHop::inherited(*face, *cost, *distance);
            plane
                .engine
                .add_next_hop(name.view(), hop)
                .map_err(|error| match error {
                    RouteError::UnknownFace => FibRefusalReason::FaceNotFound,
                    RouteError::Fib(FibError::NameTooLong) => FibRefusalReason::NameTooLong,
                    _ => FibRefusalReason::TableFull,
                })
        }
        FibChange::Remove { name, face } => {
            plane.engine.remove_next_hop(name.view(), *face);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tachonym_packet::Name;

    #[test]
    fn no_job_has_more_than_its_share_of_a_long_list() {
        for n_changes in [0, 1, 1024, 1025, 5000] {
            let changes: Vec<_> = (0..n_changes)
                .map(|face| FibChange::Remove {
                    name: Name::new(),
                    face: FaceId(face),
                })
                .collect();
            let mut applied = Vec::new();
            let refused = in_slices(changes.clone(), |slice| {
                assert!(slice.len() <= MAX_CHANGES_PER_JOB);
                let last = slice.last().cloned().map(|change| FibRefusal {
                    change,
                    reason: FibRefusalReason::TableFull,
                });
                applied.extend(slice);
                Ok::<_, ()>(last.into_iter().collect())
            });
            assert_eq!(applied, changes);
            let n_slices = (n_changes as usize).div_ceil(MAX_CHANGES_PER_JOB);
            assert_eq!(refused.map(|refused| refused.len()), Ok(n_slices));
        }
    }

    #[test]
    fn after_a_failure_nothing_more_is_applied() {
        let change = FibChange::Remove {
            name: Name::new(),
            face: FaceId(1),
        };
        let mut n_slices = 0;
        let outcome = in_slices(vec![change; 3 * MAX_CHANGES_PER_JOB], |_| {
            n_slices += 1;
            if n_slices == 2 {
                Err("gone")
            } else {
                Ok(Vec::new())
            }
        });
        assert_eq!((outcome, n_slices), (Err("gone"), 2));
    }
}
