//! What the engine knows of a face: that it exists, how far it reaches, and
//! what kind of link it is. Sockets and queues belong to the face crate.

use std::collections::{BTreeSet, VecDeque};

use hashbrown::HashMap;
use tachonym_packet::{FaceId, SourceId};

/// How far a face reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The peer is a program on this host.
    Local,
    /// The peer may be elsewhere.
    NonLocal,
}

/// How many peers a face has, and whether they hear each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Exactly one peer.
    PointToPoint,
    /// Several peers, all of which hear each other.
    MultiAccess,
    /// Several peers, some of which may not hear each other: packets may
    /// leave by the face they came from.
    AdHoc,
}

/// The properties of a face that forwarding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FaceTraits {
    /// How far the face reaches.
    pub scope: Scope,
    /// What kind of link it is.
    pub link: LinkType,
    /// Whether the peer made it, and it was not asked for here. Where an Interest
    /// may not go to everybody, it goes to others first.
    pub is_on_demand: bool,
    /// Whose limits the face shares; `None`: it has limits of its own.
    pub source: Option<SourceId>,
}

impl FaceTraits {
    /// A program on this host.
    pub const LOCAL: Self = Self {
        scope: Scope::Local,
        link: LinkType::PointToPoint,
        is_on_demand: true,
        source: None,
    };
    /// A peer elsewhere, over a link to it alone.
    pub const REMOTE: Self = Self {
        scope: Scope::NonLocal,
        link: LinkType::PointToPoint,
        is_on_demand: false,
        source: None,
    };

    /// Whose limits `face`, which has these traits, shares.
    pub(crate) fn source_of(self, face: FaceId) -> SourceId {
        self.source.unwrap_or_else(|| SourceId::of_face(face))
    }

    pub(crate) fn is_local(self) -> bool {
        self.scope == Scope::Local
    }

    pub(crate) fn is_point_to_point(self) -> bool {
        self.link == LinkType::PointToPoint
    }
}

/// The faces that exist.
///
/// For a while, records in the tables may name faces that have gone; the code that
/// uses such a record asks here first.
#[derive(Debug)]
pub(crate) struct FaceTable {
    faces: HashMap<FaceId, FaceTraits, foldhash::fast::FixedState>,
    /// Copies of what is in `faces`, each at the place of its number: several
    /// look-ups of a packet need no hash. Of those that share a place, the one that
    /// came last has it.
    places: Box<[Option<(FaceId, FaceTraits)>; N_PLACES]>,
    /// On-demand ones last.
    non_local: BTreeSet<(bool, FaceId)>,
    /// Some that have gone, the latest last.
    past: VecDeque<PastFace>,
    /// Sweeps for records of faces that have gone, those begun.
    n_sweeps: u64,
}

/// A face that has gone.
#[derive(Clone, Copy, Debug)]
struct PastFace {
    face: FaceId,
    traits: FaceTraits,
    /// Sweeps that were begun before it went.
    n_sweeps: u64,
}

/// Places of faces that are found at once. Numbers are given in sequence, so that
/// as many faces, if they came one after the other, have a place each.
const N_PLACES: usize = 256;

/// Faces that have gone and are remembered.
const MAX_PAST: usize = 1_024;

impl Default for FaceTable {
    fn default() -> Self {
        Self {
            faces: HashMap::default(),
            places: Box::new([None; N_PLACES]),
            non_local: BTreeSet::new(),
            past: VecDeque::new(),
            n_sweeps: 0,
        }
    }
}

/// Place of a face.
const fn place_of(face: FaceId) -> usize {
    // The remainder fits a usize, since the divisor came from one.
    (face.0 % N_PLACES as u64) as usize
}

impl FaceTable {
    pub(crate) fn insert(&mut self, face: FaceId, traits: FaceTraits) {
        self.take_out(face);
        self.faces.insert(face, traits);
        self.places[place_of(face)] = Some((face, traits));
        if !traits.is_local() {
            self.non_local.insert((traits.is_on_demand, face));
        }
    }

    /// False if the face is unknown.
    pub(crate) fn remove(&mut self, face: FaceId) -> bool {
        let Some(traits) = self.take_out(face) else {
            return false;
        };
        if self.past.len() == MAX_PAST {
            self.past.pop_front();
        }
        self.past.push_back(PastFace {
            face,
            traits,
            n_sweeps: self.n_sweeps,
        });
        true
    }

    /// Another face is about to have a number: none that had it before has gone lately.
    pub(crate) fn forget_past(&mut self, face: FaceId) {
        self.past.retain(|past| past.face != face);
    }

    /// A sweep for records of faces that have gone begins.
    pub(crate) fn begin_sweep(&mut self) {
        self.n_sweeps += 1;
    }

    /// Whether a face has gone since the sweep before the last one began: what it brought may
    /// still be on its way among engines.
    #[cold]
    pub(crate) fn went_lately(&self, face: FaceId) -> bool {
        let mut past = self.past.iter().rev();
        let is_late = |past: &&PastFace| past.n_sweeps + 1 >= self.n_sweeps;
        past.by_ref()
            .take_while(is_late)
            .any(|past| past.face == face)
    }

    fn take_out(&mut self, face: FaceId) -> Option<FaceTraits> {
        let traits = self.faces.remove(&face)?;
        self.places[place_of(face)].take_if(|(placed, _)| *placed == face);
        self.non_local.remove(&(traits.is_on_demand, face));
        Some(traits)
    }

    /// What a face is, or was that has gone a moment ago: of what it brought some may be on
    /// its way among engines.
    #[cold]
    pub(crate) fn find_late(&self, face: FaceId) -> Option<FaceTraits> {
        let past = || self.past.iter().rev().find(|past| past.face == face);
        self.find(face).or_else(|| past().map(|past| past.traits))
    }

    #[inline]
    pub(crate) fn find(&self, face: FaceId) -> Option<FaceTraits> {
        match self.places[place_of(face)] {
            Some((placed, traits)) if placed == face => Some(traits),
            _ => self.find_displaced(face),
        }
    }

    #[cold]
    fn find_displaced(&self, face: FaceId) -> Option<FaceTraits> {
        self.faces.get(&face).copied()
    }

    /// Whose limits `face` shares; a gone face has limits of its own.
    pub(crate) fn source_of(&self, face: FaceId) -> SourceId {
        let traits = self.find(face);
        traits.map_or_else(|| SourceId::of_face(face), |traits| traits.source_of(face))
    }

    #[inline]
    pub(crate) fn contains(&self, face: FaceId) -> bool {
        self.find(face).is_some()
    }

    /// Faces that lead off this host: those that were asked for, then those that
    /// peers made, each by ascending number.
    pub(crate) fn non_local(&self) -> impl Iterator<Item = FaceId> {
        self.non_local.iter().map(|&(_, face)| face)
    }

    pub(crate) fn len(&self) -> usize {
        self.faces.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_that_share_a_place_are_told_apart() {
        let mut faces = FaceTable::default();
        let [old, young] = [FaceId(300), FaceId(300 + N_PLACES as u64)];
        faces.insert(old, FaceTraits::LOCAL);
        assert_eq!(faces.find(young), None);
        faces.insert(young, FaceTraits::REMOTE);
        assert_eq!(faces.find(old), Some(FaceTraits::LOCAL));
        assert_eq!(faces.find(young), Some(FaceTraits::REMOTE));
        // The one that has no place goes, and then the one that has it.
        faces.insert(old, FaceTraits::REMOTE);
        assert!(faces.remove(young));
        assert_eq!(faces.find(young), None);
        assert_eq!(faces.find(old), Some(FaceTraits::REMOTE));
        assert_eq!(faces.source_of(old), SourceId::of_face(old));
        assert!(faces.remove(old));
        assert!(!faces.contains(old) && faces.len() == 0);
        // What they have brought may be on its way.
        assert_eq!(faces.find_late(old), Some(FaceTraits::REMOTE));
        for face in 0..MAX_PAST as u64 {
            faces.insert(FaceId(1000 + face), FaceTraits::LOCAL);
            faces.remove(FaceId(1000 + face));
        }
        assert_eq!(faces.find_late(old), None);
        assert_eq!(faces.find_late(FaceId(1000)), Some(FaceTraits::LOCAL));
    }
}
