//! Where faces and shared sockets are kept.
//!
//! Faces are found by their number, which is never used twice, and kept in
//! slots, which are. Sockets are kept in slots too and found by a key that
//! tells a slot's tenants apart.

use std::io;

use std::ops::{Index, IndexMut};

use hashbrown::HashMap;
use tachonym_packet::lp::FaceId;

use crate::counters::DropReason;
use crate::face::Face;
use crate::poller::SocketKey;
use crate::share::SystemShare;

/// The faces that exist.
pub(super) struct FaceTable {
    slots: Vec<Option<Face>>,
    free: Vec<usize>,
    by_id: HashMap<FaceId, usize, foldhash::fast::RandomState>,
    next_id: u64,
    id_step: u64,
    /// Which face a datagram came back to last, and why.
    last_returned: Option<(FaceId, io::ErrorKind)>,
}

impl FaceTable {
    /// A table whose faces have the numbers of this share.
    pub(super) fn new(share: &SystemShare) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::default(),
            next_id: share.first_face().0,
            id_step: share.n_systems() as u64,
            last_returned: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The next number.
    pub(super) fn allocate_id(&mut self) -> FaceId {
        let id = FaceId(self.next_id);
        self.next_id += self.id_step;
        id
    }

    pub(super) fn insert(&mut self, face: Face) -> usize {
        let id = face.id;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(face);
                slot
            }
            None => {
                self.slots.push(Some(face));
                self.slots.len() - 1
            }
        };
        self.by_id.insert(id, slot);
        slot
    }

    pub(super) fn remove(&mut self, id: FaceId) -> Option<Face> {
        let slot = self.by_id.remove(&id)?;
        self.free.push(slot);
        self.slots[slot].take()
    }

    /// Counts that an ICMP error came back for a datagram of this face: the port is
    /// closed, or there is no route to the host.
    #[cold]
    pub(super) fn count_returned(&mut self, id: FaceId, kind: io::ErrorKind) {
        self.last_returned = Some((id, kind));
        if let Some(face) = self.get_mut(id) {
            face.counters.drops.add(DropReason::SendError, 1);
        }
    }

    /// See [`crate::FaceSystem::returned`].
    pub(super) fn returned(&self, id: FaceId) -> Option<io::ErrorKind> {
        let (last, kind) = self.last_returned?;
        (last == id).then_some(kind)
    }

    #[inline]
    pub(super) fn slot_of(&self, id: FaceId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    #[inline]
    pub(super) fn get(&self, id: FaceId) -> Option<&Face> {
        self.slots[self.slot_of(id)?].as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: FaceId) -> Option<&mut Face> {
        let slot = self.slot_of(id)?;
        self.slots[slot].as_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Face> {
        self.slots.iter().flatten()
    }
}

impl Index<usize> for FaceTable {
    type Output = Face;

    #[inline]
    fn index(&self, slot: usize) -> &Face {
        self.slots[slot]
            .as_ref()
            .expect("slots come from slot_of and insert, and are used before a removal")
    }
}

impl IndexMut<usize> for FaceTable {
    #[inline]
    fn index_mut(&mut self, slot: usize) -> &mut Face {
        self.slots[slot]
            .as_mut()
            .expect("slots come from slot_of and insert, and are used before a removal")
    }
}

/// What a slot of a [`SocketTable`] holds.
pub(super) trait Keyed {
    fn generation(&self) -> u32;
    fn set_generation(&mut self, generation: u32);
}

/// Sockets that are not of one face alone.
pub(super) struct SocketTable<S> {
    slots: Vec<Option<S>>,
    last_generation: u32,
}

impl<S> Default for SocketTable<S> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            last_generation: 0,
        }
    }
}

impl<S: Keyed> SocketTable<S> {
    pub(super) fn insert(&mut self, mut socket: S) -> SocketKey {
        let idx = match self.slots.iter().position(Option::is_none) {
            Some(idx) => idx,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        self.last_generation = self.last_generation.wrapping_add(1);
        let key = SocketKey::new(idx, self.last_generation);
        socket.set_generation(key.generation);
        self.slots[idx] = Some(socket);
        key
    }

    #[inline]
    pub(super) fn get(&self, key: SocketKey) -> Option<&S> {
        self.slots
            .get(key.idx as usize)?
            .as_ref()
            .filter(|socket| socket.generation() == key.generation)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: SocketKey) -> Option<&mut S> {
        self.slots
            .get_mut(key.idx as usize)?
            .as_mut()
            .filter(|socket| socket.generation() == key.generation)
    }

    pub(super) fn remove(&mut self, key: SocketKey) -> Option<S> {
        self.get(key)?;
        self.slots[key.idx as usize].take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SocketKey, &S)> {
        self.slots.iter().enumerate().filter_map(|(idx, socket)| {
            let socket = socket.as_ref()?;
            Some((SocketKey::new(idx, socket.generation()), socket))
        })
    }
}
