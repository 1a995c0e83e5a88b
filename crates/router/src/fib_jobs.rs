//! Changes of the FIB by commands, on the manager's thread.
//!
//! One command may change the FIB at every prefix below its own. Such a list is applied
//! in slices: between two of them the worker takes faces that have gone out of the FIB,
//! and offers what is pending to new next hops.

use tachonym_forward::RoutesGuard;
use tachonym_manage::{FibChange, FibRefusal, FibRefusalReason};
use tachonym_packet::FaceId;
use tachonym_tables::{FibError, NextHop};

/// Most changes in one slice.
const MAX_CHANGES_PER_SLICE: usize = 1024;

/// Gives `changes` to `apply` in their order, a bounded number at a time; what
/// was refused of all of them.
///
/// # Errors
/// The first of `apply`; what follows is not applied.
pub(crate) fn in_slices<E>(
    changes: Vec<FibChange>,
    mut apply: impl FnMut(Vec<FibChange>) -> Result<Vec<FibRefusal>, E>,
) -> Result<Vec<FibRefusal>, E> {
    if changes.len() <= MAX_CHANGES_PER_SLICE {
        return apply(changes);
    }
    let mut changes = changes.into_iter();
    let mut refusals = Vec::new();
    while changes.len() > 0 {
        let slice = changes.by_ref().take(MAX_CHANGES_PER_SLICE).collect();
        refusals.extend(apply(slice)?);
    }
    Ok(refusals)
}

/// The faces that `changes` add as next hops, each once.
pub(crate) fn added_faces(changes: &[FibChange]) -> Vec<FaceId> {
    let added = changes.iter().filter_map(|change| match change {
        FibChange::Add { face, .. } => Some(*face),
        FibChange::Remove { .. } => None,
    });
    let mut faces: Vec<_> = added.collect();
    faces.sort_unstable();
    faces.dedup();
    faces
}

/// Applies `changes` in their order, of which those that add a face are refused unless
/// it is among `faces`; what was refused.
pub(crate) fn apply_all(
    fib: &mut RoutesGuard<'_>,
    changes: Vec<FibChange>,
    faces: &[FaceId],
) -> Vec<FibRefusal> {
    let mut refusals = Vec::new();
    for change in changes {
        if let Err(reason) = apply(fib, &change, faces) {
            refusals.push(FibRefusal { change, reason });
        }
    }
    refusals
}

fn apply(
    fib: &mut RoutesGuard<'_>,
    change: &FibChange,
    faces: &[FaceId],
) -> Result<(), FibRefusalReason> {
    match change {
        FibChange::Add {
            name,
            face,
            cost,
            distance,
        } => {
            // Of the router's own faces, only the null face is a next hop.
            let is_own = *face < FaceId::FIRST_DYNAMIC && *face != FaceId::NULL;
            if is_own || !faces.contains(face) {
                return Err(FibRefusalReason::FaceNotFound);
            }
            let hop = NextHop::inherited(*face, *cost, *distance);
            fib.add_next_hop(name.view(), hop)
                .map_err(|error| match error {
                    FibError::NameTooLong => FibRefusalReason::NameTooLong,
                    FibError::TooManyNextHops => FibRefusalReason::TooManyNextHops,
                    FibError::TooManyCollisions => FibRefusalReason::TooManyCollisions,
                    FibError::OutOfMemory { missing_bytes } => {
                        FibRefusalReason::OutOfMemory { missing_bytes }
                    }
                    _ => FibRefusalReason::TableFull,
                })
        }
        FibChange::Remove { name, face } => {
            fib.remove_next_hop(name.view(), *face);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tachonym_packet::Name;

    #[test]
    fn no_slice_has_more_than_its_share_of_a_long_list() {
        for n_changes in [0, 1, 1024, 1025, 5000] {
            let changes: Vec<_> = (0..n_changes)
                .map(|face| FibChange::Remove {
                    name: Name::new(),
                    face: FaceId(face),
                })
                .collect();
            let mut applied = Vec::new();
            let refused = in_slices(changes.clone(), |slice| {
                assert!(slice.len() <= MAX_CHANGES_PER_SLICE);
                let last = slice.last().cloned().map(|change| FibRefusal {
                    change,
                    reason: FibRefusalReason::TableFull,
                });
                applied.extend(slice);
                Ok::<_, ()>(last.into_iter().collect())
            });
            assert_eq!(applied, changes);
            let n_slices = (n_changes as usize).div_ceil(MAX_CHANGES_PER_SLICE);
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
        let outcome = in_slices(vec![change; 3 * MAX_CHANGES_PER_SLICE], |_| {
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
