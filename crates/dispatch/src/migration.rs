//! The migration table: names that have another home than the map says.
//!
//! Sets of eight, each found by a key's bits and searched as a whole: a look-up reads one
//! line of keys, and no pattern of keys makes it longer. The thesis (Iqbal 2013, section
//! 4.4) leaves the size open, and what happens when there is no room: here, a name that
//! was not met since others came gives way (second chance): it goes home to where the map
//! says, and its place is taken once that is in effect, so that the order of its packets is
//! known meanwhile. Who had it is remembered by its bucket of the map from then on, until
//! that has settled. Pinned names stay.

use crate::{Key, ServiceId, WorkerId, WorkerSet};

/// Names of a set.
pub const MIGRATION_WAYS: usize = 8;

/// No worker: the place is empty.
const NOBODY: WorkerId = WorkerId(u16::MAX);

/// Why a name is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationState {
    /// It was moved off an overloaded worker.
    Migrated,
    /// The operator keeps it where it is.
    Pinned,
    /// It is home again, and its former workers are remembered until that has settled.
    Returned,
}

/// A name in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its key.
    pub key: Key,
    /// Its service.
    pub service: ServiceId,
    /// Its home.
    pub worker: WorkerId,
    /// Why it is here.
    pub state: MigrationState,
    /// Who may still have Interests pending for it, besides its home.
    pub former: WorkerSet,
    /// The version in which it last moved.
    pub version: u64,
}

impl Migration {
    /// Goes to where the map says, in this version.
    pub(crate) fn send_home(&mut self, version: u64) {
        self.former.insert(self.worker);
        self.state = MigrationState::Returned;
        self.version = version;
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    migration: Migration,
    /// Met since the set last sought room.
    is_used: bool,
}

const EMPTY: Place = Place {
    migration: Migration {
        key: Key(0),
        service: ServiceId(0),
        worker: NOBODY,
        state: MigrationState::Returned,
        former: WorkerSet::EMPTY,
        version: 0,
    },
    is_used: false,
};

/// What became of a name that was to be put into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It is there.
    Done,
    /// It is not yet: another one went home to make room, once that is in effect.
    Later,
    /// It is not: all its places are pinned, or of names that are going home.
    Refused,
}

/// See the [module](self). Takes all memory when it is made.
#[derive(Clone, Debug)]
pub struct MigrationTable {
    keys: Vec<[Key; MIGRATION_WAYS]>,
    places: Vec<[Place; MIGRATION_WAYS]>,
    len: usize,
}

impl MigrationTable {
    /// Room for `capacity` names, rounded up to a power of two from
    /// [`MIGRATION_WAYS`] on.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let n_sets = capacity.div_ceil(MIGRATION_WAYS).next_power_of_two();
        Self {
            keys: vec![[Key(0); MIGRATION_WAYS]; n_sets],
            places: vec![[EMPTY; MIGRATION_WAYS]; n_sets],
            len: 0,
        }
    }

    /// Names in it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no name is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Names that it has room for.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.keys.len() * MIGRATION_WAYS
    }

    /// The entry of a key in a service. Takes constant time.
    #[inline]
    #[must_use]
    pub fn find(&self, service: ServiceId, key: Key) -> Option<&Migration> {
        if self.len == 0 {
            return None;
        }
        let (set, way) = self.locate(service, key)?;
        Some(&self.places[set][way].migration)
    }

    /// Notes that a name of the table was met.
    #[inline]
    pub(crate) fn touch(&mut self, service: ServiceId, key: Key) {
        if self.len > 0
            && let Some((set, way)) = self.locate(service, key)
        {
            self.places[set][way].is_used = true;
        }
    }

    #[inline]
    fn locate(&self, service: ServiceId, key: Key) -> Option<(usize, usize)> {
        let set = self.set_of(key);
        let keys = &self.keys[set];
        (0..MIGRATION_WAYS).find_map(|way| {
            let is_it = keys[way] == key && {
                let found = &self.places[set][way].migration;
                found.worker != NOBODY && found.service == service
            };
            is_it.then_some((set, way))
        })
    }

    #[inline]
    const fn set_of(&self, key: Key) -> usize {
        // Bits that neither maps nor the annex cache begin with.
        (key.spread() >> 16) as usize & (self.keys.len() - 1)
    }

    /// Puts a name into the table, or changes its entry, whose former workers it keeps.
    /// A place whose name has gone home is taken if that is in effect everywhere, as changes
    /// up to `in_effect` are; the entry that was there comes back, for Interests of its name
    /// may still be pending at its former workers.
    pub(crate) fn place(
        &mut self,
        mut migration: Migration,
        in_effect: u64,
    ) -> (Placed, Option<Migration>) {
        let set = self.set_of(migration.key);
        let mut displaced = None;
        let way = match self.locate(migration.service, migration.key) {
            Some((_, way)) => {
                let was = &self.places[set][way].migration;
                migration.former = migration.former.union(was.former);
                way
            }
            None => {
                let Some(way) = self.room(set, in_effect) else {
                    return (Placed::Refused, None);
                };
                let was = &mut self.places[set][way].migration;
                if was.worker == NOBODY {
                    self.len += 1;
                } else if was.state == MigrationState::Migrated {
                    was.send_home(migration.version);
                    return (Placed::Later, None);
                } else {
                    displaced = Some(*was);
                }
                way
            }
        };
        migration.former.remove(migration.worker);
        self.keys[set][way] = migration.key;
        self.places[set][way] = Place {
            migration,
            is_used: true,
        };
        (Placed::Done, displaced)
    }

    /// A place of a set to take: an empty one, one whose name is at home again, one that
    /// was not met for long.
    fn room(&mut self, set: usize, in_effect: u64) -> Option<usize> {
        let places = &mut self.places[set];
        let rank = |place: &Place| match place.migration.state {
            _ if place.migration.worker == NOBODY => 0,
            MigrationState::Returned if place.migration.version <= in_effect => 1,
            MigrationState::Returned => 4,
            MigrationState::Migrated if !place.is_used => 2,
            MigrationState::Migrated => 3,
            MigrationState::Pinned => 5,
        };
        let (way, rank) = (places.iter().map(rank).enumerate()).min_by_key(|&(_, rank)| rank)?;
        if rank == 3 {
            // All were met: from now on, who is met again.
            for place in places.iter_mut() {
                place.is_used = false;
            }
        }
        (rank < 4).then_some(way)
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Migration> + '_ {
        let all = self.places.iter().flatten();
        all.map(|place| &place.migration)
            .filter(|migration| migration.worker != NOBODY)
    }

    /// Hands each entry to `change`, which says whether it stays.
    pub(crate) fn retain(&mut self, mut change: impl FnMut(&mut Migration) -> bool) {
        if self.len == 0 {
            return;
        }
        for place in self.places.iter_mut().flatten() {
            if place.migration.worker != NOBODY && !change(&mut place.migration) {
                *place = EMPTY;
                self.len -= 1;
            }
        }
    }
}
