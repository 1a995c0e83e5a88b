//! What each source holds of the PIT.
//!
//! Owns one sum per source: how many entries its faces wait at, and their bytes. An
//! entry at which several faces wait counts for each of them. Knows which face has
//! which source, and remembers that of a gone face until its last record has gone. The
//! rule that follows from the sums is the PIT's.

use hashbrown::HashMap;
use tachonym_packet::{FaceId, SourceId};

/// What a face or a source holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) n_entries: usize,
    pub(super) n_bytes: usize,
}

impl Share {
    fn add(&mut self, other: Self) {
        self.n_entries += other.n_entries;
        self.n_bytes += other.n_bytes;
    }

    fn remove(&mut self, other: Self) {
        self.n_entries -= other.n_entries;
        self.n_bytes -= other.n_bytes;
    }
}

/// A face that exists, or holds something.
#[derive(Debug)]
struct Holder {
    face: FaceId,
    share: Share,
    /// Place of its source.
    source: u32,
    /// Whether it exists.
    is_attached: bool,
}

/// Holders that are found without a hash: face numbers are given in sequence, so
/// this many faces, if they came one after the other, have a place each.
const N_PLACES: usize = 256;

/// The holders, each at the place of its face's number. Of several that share a
/// place, the one that came last has it; the others are displaced.
#[derive(Debug)]
struct Holders {
    places: Box<[Option<Holder>; N_PLACES]>,
    displaced: HashMap<FaceId, Holder, foldhash::fast::FixedState>,
}

const fn place_of(face: FaceId) -> usize {
    (face.0 % N_PLACES as u64) as usize
}

impl Default for Holders {
    fn default() -> Self {
        Self {
            places: Box::new([const { None }; N_PLACES]),
            displaced: HashMap::default(),
        }
    }
}

impl Holders {
    #[inline]
    fn find(&self, face: FaceId) -> Option<&Holder> {
        match &self.places[place_of(face)] {
            Some(holder) if holder.face == face => Some(holder),
            _ => self.displaced.get(&face),
        }
    }

    #[inline]
    fn find_mut(&mut self, face: FaceId) -> Option<&mut Holder> {
        match &mut self.places[place_of(face)] {
            Some(holder) if holder.face == face => Some(holder),
            _ => self.displaced.get_mut(&face),
        }
    }

    /// Adds the holder of a face that has none.
    fn insert(&mut self, holder: Holder) {
        let place = &mut self.places[place_of(holder.face)];
        if let Some(displaced) = place.replace(holder) {
            self.displaced.insert(displaced.face, displaced);
        }
    }

    fn remove(&mut self, face: FaceId) -> Option<Holder> {
        let place = &mut self.places[place_of(face)];
        let placed = place.take_if(|holder| holder.face == face);
        placed.or_else(|| self.displaced.remove(&face))
    }
}

/// A source, and what its faces hold together.
#[derive(Debug)]
struct Source {
    id: SourceId,
    share: Share,
    n_holders: u32,
}

/// Shares of the sources that have a face or hold anything.
#[derive(Debug, Default)]
pub(super) struct Shares {
    holders: Holders,
    by_source: HashMap<SourceId, u32, foldhash::fast::FixedState>,
    /// Those in `free` have no holder.
    sources: Vec<Source>,
    free: Vec<u32>,
}

impl Shares {
    /// A face exists, or has another source than before. What it holds moves along.
    pub(super) fn attach(&mut self, face: FaceId, id: SourceId) {
        let source = self.place_of(id);
        match self.holders.find_mut(face) {
            Some(holder) => {
                let (former, share) = (holder.source, holder.share);
                (holder.source, holder.is_attached) = (source, true);
                self.sources[former as usize].share.remove(share);
                self.sources[source as usize].share.add(share);
                self.leave(former);
            }
            None => {
                self.holders.insert(Holder {
                    face,
                    share: Share::default(),
                    source,
                    is_attached: true,
                });
            }
        }
    }

    /// A face has gone. What it holds counts until it is removed.
    pub(super) fn detach(&mut self, face: FaceId) {
        if let Some(holder) = self.holders.find_mut(face) {
            holder.is_attached = false;
            if holder.share.n_entries == 0 {
                self.forget(face);
            }
        }
    }

    /// Adds an entry of `n_bytes` to the share of `face`, if `allows` it with what the
    /// source of the face holds already. False if not.
    #[inline]
    pub(super) fn add(
        &mut self,
        face: FaceId,
        n_bytes: usize,
        allows: impl FnOnce(Share) -> bool,
    ) -> bool {
        let added = Share {
            n_entries: 1,
            n_bytes,
        };
        let Some(holder) = self.holders.find_mut(face) else {
            return self.add_unattached(face, added, allows);
        };
        let source = &mut self.sources[holder.source as usize];
        if !allows(source.share) {
            return false;
        }
        source.share.add(added);
        holder.share.add(added);
        true
    }

    /// Adds the first entry of a face that is not attached: its source is its own.
    #[inline(never)]
    fn add_unattached(
        &mut self,
        face: FaceId,
        added: Share,
        allows: impl FnOnce(Share) -> bool,
    ) -> bool {
        let source = self.place_of(SourceId::of_face(face));
        let is_allowed = allows(self.sources[source as usize].share);
        if is_allowed {
            self.sources[source as usize].share.add(added);
            self.holders.insert(Holder {
                face,
                share: added,
                source,
                is_attached: false,
            });
        } else {
            self.leave(source);
        }
        is_allowed
    }

    /// An entry that `face` waits at has grown by `n_bytes`.
    pub(super) fn grow(&mut self, face: FaceId, n_bytes: usize) {
        if let Some(holder) = self.holders.find_mut(face) {
            holder.share.n_bytes += n_bytes;
            self.sources[holder.source as usize].share.n_bytes += n_bytes;
        }
    }

    /// Takes back a [`Shares::add`] that was allowed.
    #[inline]
    pub(super) fn remove(&mut self, face: FaceId, n_bytes: usize) {
        if let Some(holder) = self.holders.find_mut(face) {
            let removed = Share {
                n_entries: 1,
                n_bytes,
            };
            holder.share.remove(removed);
            self.sources[holder.source as usize].share.remove(removed);
            if holder.share.n_entries == 0 && !holder.is_attached {
                self.forget(face);
            }
        }
    }

    /// What the source of a face holds.
    pub(super) fn of_source(&self, face: FaceId) -> Share {
        let holder = self.holders.find(face);
        holder.map_or_else(Share::default, |holder| {
            self.sources[holder.source as usize].share
        })
    }

    /// The place of a source, which has a holder more from then on.
    fn place_of(&mut self, id: SourceId) -> u32 {
        if let Some(&place) = self.by_source.get(&id) {
            self.sources[place as usize].n_holders += 1;
            return place;
        }
        let source = Source {
            id,
            share: Share::default(),
            n_holders: 1,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.sources[place as usize] = source;
                place
            }
            None => {
                self.sources.push(source);
                self.sources.len() as u32 - 1
            }
        };
        self.by_source.insert(id, place);
        place
    }

    /// A source has a holder less.
    fn leave(&mut self, place: u32) {
        let source = &mut self.sources[place as usize];
        source.n_holders -= 1;
        if source.n_holders == 0 {
            self.by_source.remove(&source.id);
            self.free.push(place);
        }
    }

    /// Forgets a face that is gone and holds nothing.
    #[cold]
    fn forget(&mut self, face: FaceId) {
        if let Some(holder) = self.holders.remove(face) {
            self.leave(holder.source);
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.holders.places)
            + self.holders.displaced.allocation_size()
            + self.by_source.allocation_size()
            + self.sources.capacity() * size_of::<Source>()
            + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: fn(Share) -> bool = |_| true;

    fn source(n: u64) -> SourceId {
        SourceId::of_face(FaceId(n))
    }

    fn is_empty(holders: &Holders) -> bool {
        holders.places.iter().all(Option::is_none) && holders.displaced.is_empty()
    }

    #[test]
    fn a_source_is_forgotten_with_its_last_face_and_entry() {
        let mut shares = Shares::default();
        let [a, b] = [FaceId(1), FaceId(2)];
        for face in [a, b] {
            shares.attach(face, source(9));
            assert!(shares.add(face, 10, ANY));
        }
        let both = Share {
            n_entries: 2,
            n_bytes: 20,
        };
        assert_eq!(shares.of_source(a), both);
        shares.detach(a);
        assert_eq!(shares.of_source(b), both, "its record is still there");
        shares.remove(a, 10);
        assert_eq!(shares.of_source(b).n_entries, 1);
        shares.remove(b, 10);
        assert_eq!(shares.by_source.len(), 1, "it has a face");
        shares.detach(b);
        assert!(shares.by_source.is_empty() && is_empty(&shares.holders));
        shares.attach(a, source(8));
        assert_eq!(shares.sources.len(), 1, "places are used again");
    }

    #[test]
    fn what_a_face_holds_moves_to_its_new_source() {
        let mut shares = Shares::default();
        let [a, b] = [FaceId(1), FaceId(2)];
        shares.attach(a, source(8));
        shares.attach(b, source(9));
        assert!(shares.add(a, 10, ANY));
        shares.grow(a, 5);
        shares.attach(a, source(9));
        assert_eq!(shares.of_source(b).n_bytes, 15);
        assert_eq!(shares.by_source.len(), 1);
        // Saying it twice changes nothing.
        shares.attach(a, source(9));
        assert_eq!(shares.of_source(b).n_bytes, 15);
        shares.remove(a, 15);
        assert_eq!(shares.of_source(b), Share::default());
    }

    #[test]
    fn a_face_that_is_not_attached_is_its_own_source() {
        let mut shares = Shares::default();
        let face = FaceId(7);
        assert!(!shares.add(face, 1, |_| false));
        assert!(shares.by_source.is_empty());
        assert!(shares.add(face, 1, |held| held.n_entries == 0));
        assert!(!shares.add(face, 1, |held| held.n_entries == 0));
        shares.remove(face, 1);
        assert!(shares.by_source.is_empty() && is_empty(&shares.holders));
    }

    #[test]
    fn faces_that_share_a_place_are_told_apart() {
        let mut shares = Shares::default();
        let [old, young, other] = [0, 1, 2].map(|n| FaceId(300 + n * N_PLACES as u64));
        shares.attach(old, source(8));
        assert!(shares.add(old, 10, ANY));
        shares.attach(young, source(9));
        assert!(shares.add(young, 20, ANY));
        assert!(shares.add(old, 10, ANY));
        assert_eq!(shares.of_source(old).n_bytes, 20);
        assert_eq!(shares.of_source(young).n_bytes, 20);
        assert_eq!(shares.of_source(other), Share::default());
        // The one that has the place goes, and then the displaced one.
        shares.remove(young, 20);
        shares.detach(young);
        shares.grow(old, 5);
        assert_eq!(shares.of_source(old).n_bytes, 25);
        shares.remove(old, 25);
        assert_eq!(shares.of_source(old).n_entries, 1);
        shares.remove(old, 0);
        shares.detach(old);
        assert!(shares.by_source.is_empty() && is_empty(&shares.holders));
    }
}
