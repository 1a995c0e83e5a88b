//! Room for new faces.
//!
//! Owns the rule by which an on-demand face gives way to a newcomer. What counts is
//! when a face last completed an exchange: the router sent it a Data, or it sent one
//! of the Data that the router had asked it for. Interests, Nacks, and Data that were
//! not asked for cost their sender nothing, and count for nothing. The least useful
//! face is the oldest of those that never completed an exchange; if there is none, the
//! one whose last exchange is longest ago. It gives way if it has had time:
//!
//! - one without an exchange, if it is older than a second;
//! - one with, if that was more than ten seconds ago, and as long as no more than an
//!   eighth of the faces are newcomers without an exchange.
//!
//! So a flood of newcomers replaces other newcomers, and an eighth of the faces at
//! most. Where no face gives way the newcomer is refused. Faces of this machine, of the
//! configuration and of commands never give way. The faces of one source are limited
//! besides; a further one of them replaces the least useful of that source, if it is
//! older than a second, whatever the others do.

use std::net::SocketAddr;
use std::time::Duration;

use tachonym_packet::lp::FaceId;
use tachonym_packet::{MonoNs, SourceId};
use tachonym_protocol::FaceScope;

use super::FaceSystem;
use crate::counters::DropReason;
use crate::error::CloseReason;
use crate::face::{Face, FaceState};

/// How long a new face may take for its first exchange.
const GRACE: Duration = Duration::from_secs(1);
/// How long a face is safe after an exchange.
const IN_USE: Duration = Duration::from_secs(10);
/// Part of the faces that newcomers without an exchange may take from others.
const NEWCOMERS_PART: usize = 8;
/// Where no face gives way, they are not looked at again before this.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Faces that one look at all of them finds, at least.
const MIN_FOUND: usize = 16;
/// One more face is found for each of this number that is looked at, so that a newcomer costs the
/// same however many faces there are.
const LOOKED_AT_PER_FOUND: usize = 16;

/// How a new peer has shown up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CameBy {
    Connection,
    /// Which costs a sender nothing.
    Datagram,
    /// The operator asked for the face.
    Command,
}

/// How useful a face is: by its last exchange, or by its age if there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Usefulness {
    is_used: bool,
    at: MonoNs,
}

impl Usefulness {
    fn of(face: &Face) -> Self {
        let last_exchange_at = face.link.last_exchange_at();
        let is_used = last_exchange_at != MonoNs::ZERO;
        Self {
            is_used,
            at: if is_used {
                last_exchange_at
            } else {
                face.created_at
            },
        }
    }

    /// Whether it has had time.
    fn gives_way(self, now: MonoNs) -> bool {
        let safe_for = if self.is_used { IN_USE } else { GRACE };
        self.at + safe_for <= now
    }
}

/// Faces that give way next.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    /// The least useful is the last.
    found: Vec<(Usefulness, FaceId)>,
    look_again_at: MonoNs,
}

/// Whether a face may ever give way.
fn is_evictable(face: &Face) -> bool {
    face.source().is_some() && !matches!(face.state, FaceState::Closing(_))
}

impl FaceSystem {
    /// Makes room for a face of this scope, to this peer if it has an address, by
    /// evicting another one if need be.
    ///
    /// # Errors
    /// If no face gives way; the reason is for the caller to count.
    pub(super) fn make_room(
        &mut self,
        scope: FaceScope,
        came_by: CameBy,
        peer: Option<SocketAddr>,
    ) -> Result<(), DropReason> {
        let is_limited = scope == FaceScope::NonLocal && came_by != CameBy::Command;
        let source = peer.filter(|_| is_limited);
        if let Some(source) = source.map(|peer| SourceId::of_peer(&peer)) {
            let max = self.options.max_faces_per_source;
            let mut has_room = max == 0 || self.sources.reserve(source, max);
            if !has_room && self.evict_of(source) {
                has_room = self.sources.reserve(source, max);
            }
            if !has_room {
                if came_by == CameBy::Connection {
                    self.counters.n_refused_of_source += 1;
                }
                return Err(DropReason::TooManyFacesOfSource);
            }
        }
        let max = self.options.max_faces;
        let kept = match (scope, came_by) {
            (_, CameBy::Command) => 0,
            (FaceScope::Local, CameBy::Connection) => max / 8,
            (FaceScope::Local, CameBy::Datagram) | (FaceScope::NonLocal, CameBy::Connection) => {
                max / 4
            }
            (FaceScope::NonLocal, CameBy::Datagram) => max / 2,
        };
        let n_staying = self.faces.len() - self.closing.len();
        if n_staying < max - kept || self.evict_any() {
            Ok(())
        } else {
            self.sources.release();
            Err(DropReason::TooManyFaces)
        }
    }

    /// Evicts the least useful face of a source. False if none gives way.
    fn evict_of(&mut self, source: SourceId) -> bool {
        if !self.sources.may_look(source, self.now) {
            return false;
        }
        let faces = self.sources.faces_of(source).iter();
        let faces = faces.filter_map(|id| self.faces.get(*id));
        let old_enough = faces.filter(|face| face.created_at + GRACE <= self.now);
        let least = old_enough
            .filter(|face| is_evictable(face))
            .min_by_key(|face| Usefulness::of(face))
            .and_then(|face| self.faces.slot_of(face.id));
        match least {
            Some(slot) => self.evict(slot),
            None => self.sources.look_again(source, self.now + LOOK_AGAIN),
        }
        least.is_some()
    }

    /// Evicts the least useful face of all. False if none gives way.
    fn evict_any(&mut self) -> bool {
        if let Some(slot) = self.next_found() {
            self.evict(slot);
            return true;
        }
        if self.now < self.evictions.look_again_at {
            return false;
        }
        self.look_for_evictable();
        match self.next_found() {
            Some(slot) => {
                self.evict(slot);
                true
            }
            None => {
                self.evictions.look_again_at = self.now + LOOK_AGAIN;
                false
            }
        }
    }

    /// The next face that was found and is still as useful as it was.
    fn next_found(&mut self) -> Option<usize> {
        while let Some((usefulness, id)) = self.evictions.found.pop() {
            let Some(slot) = self.faces.slot_of(id) else {
                continue;
            };
            let face = &self.faces[slot];
            if is_evictable(face) && Usefulness::of(face) == usefulness {
                return Some(slot);
            }
        }
        None
    }

    /// Looks at all faces for those that give way next.
    fn look_for_evictable(&mut self) {
        let (faces, now) = (&self.faces, self.now);
        let mut n_new = 0;
        let mut found = std::mem::take(&mut self.evictions.found);
        found.clear();
        for face in faces.iter().filter(|face| is_evictable(face)) {
            let usefulness = Usefulness::of(face);
            if usefulness.gives_way(now) {
                found.push((usefulness, face.id));
            } else if !usefulness.is_used {
                n_new += 1;
            }
        }
        found.sort_unstable();
        let n_unused = found.partition_point(|(usefulness, _)| !usefulness.is_used);
        let max_found = MIN_FOUND + faces.len() / LOOKED_AT_PER_FOUND;
        let max_found = if n_unused > 0 {
            max_found.min(n_unused)
        } else {
            max_found.min((self.options.max_faces / NEWCOMERS_PART).saturating_sub(n_new))
        };
        found.truncate(max_found);
        found.reverse();
        self.evictions.found = found;
    }

    fn evict(&mut self, slot: usize) {
        self.counters.n_evicted += 1;
        self.close(slot, CloseReason::Evicted);
    }
}
