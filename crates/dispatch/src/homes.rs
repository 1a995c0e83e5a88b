//! Where names are at home: the maps of all services, and the names that were moved.

use crate::map::ServiceMap;
use crate::migration::{Migration, MigrationState, MigrationTable, Placed};
use crate::{Key, ServiceId, WorkerId, WorkerSet};

/// The map of each service and the migration table: all that it takes to find a home.
///
/// Plain values: a copy of it is a snapshot that answers the same for ever.
#[derive(Clone, Debug)]
pub struct Homes {
    pub(crate) maps: Vec<ServiceMap>,
    pub(crate) migrations: MigrationTable,
    pub(crate) workers: WorkerSet,
    pub(crate) version: u64,
}

impl Homes {
    /// The home of a key in a service. Takes constant time and allocates nothing.
    ///
    /// # Panics
    /// If there is no such service.
    #[inline]
    #[must_use]
    pub fn home(&self, service: ServiceId, key: Key) -> WorkerId {
        match self.migrations.find(service, key) {
            Some(migration) if migration.state != MigrationState::Returned => migration.worker,
            _ => self.maps[service.idx()].home(key),
        }
    }

    /// The workers that Data of a key concerns: the home, and those that the name had
    /// before and that may still have Interests pending for it.
    ///
    /// # Panics
    /// If there is no such service.
    #[inline]
    #[must_use]
    pub fn holders(&self, service: ServiceId, key: Key) -> WorkerSet {
        let held = self.maps[service.idx()].holders(key);
        match self.migrations.find(service, key) {
            None => held,
            Some(migration) if migration.state == MigrationState::Returned => {
                held.union(migration.former)
            }
            Some(migration) => {
                // Of the map's holders some may have the name from before it was moved.
                let former = migration.former.union(WorkerSet::only(migration.worker));
                let map = &self.maps[service.idx()];
                if map.n_unsettled() > 0 {
                    former.union(held)
                } else {
                    former
                }
            }
        }
    }

    /// The workers, other than its home, that a key was at before changes later than
    /// `version`, and the latest of these changes; `None` if there are none. Takes constant
    /// time and allocates nothing.
    ///
    /// Some of the workers may have lost the key in earlier changes.
    ///
    /// # Panics
    /// If there is no such service.
    #[inline]
    #[must_use]
    pub fn moved_since(
        &self,
        service: ServiceId,
        key: Key,
        version: u64,
    ) -> Option<(WorkerSet, u64)> {
        let map = &self.maps[service.idx()];
        let (mut former, mut latest) = map.moved_since(key, version);
        if !former.is_empty() {
            // A name that was moved off it meanwhile may have been there before.
            former.insert(map.home(key));
        }
        if let Some(migration) = self.migrations.find(service, key)
            && migration.version > version
        {
            former = former.union(migration.former);
            latest = latest.max(migration.version);
        }
        former.remove(self.home(service, key));
        (!former.is_empty()).then_some((former, latest))
    }

    /// All workers: those that an Interest that [reaches all](crate::Reach::All) concerns.
    #[must_use]
    pub const fn workers(&self) -> WorkerSet {
        self.workers
    }

    /// Services.
    #[must_use]
    pub const fn n_services(&self) -> usize {
        self.maps.len()
    }

    /// The map of a service.
    ///
    /// # Panics
    /// If there is no such service.
    #[must_use]
    pub fn map(&self, service: ServiceId) -> &ServiceMap {
        &self.maps[service.idx()]
    }

    /// The names that were moved.
    #[must_use]
    pub const fn migrations(&self) -> &MigrationTable {
        &self.migrations
    }

    /// Counts changes: each has a version of its own.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Moves a name, or has another one go home to make room for it later. Changes up to
    /// `in_effect` are in effect everywhere.
    pub(crate) fn migrate(
        &mut self,
        service: ServiceId,
        key: Key,
        (worker, state): (WorkerId, MigrationState),
        in_effect: u64,
    ) -> Placed {
        let former = WorkerSet::only(self.home(service, key));
        self.version += 1;
        let migration = Migration {
            key,
            service,
            worker,
            state,
            former,
            version: self.version,
        };
        let (placed, displaced) = self.migrations.place(migration, in_effect);
        if let Some(it) = displaced {
            self.maps[it.service.idx()].remember(it.key, it.former, it.version);
        }
        placed
    }

    /// Sends the moved names home that `is_concerned`, and returns how many these were.
    pub(crate) fn send_home(&mut self, is_concerned: impl Fn(&Migration) -> bool) -> usize {
        let mut n_sent = 0;
        let version = self.version;
        self.migrations.retain(|migration| {
            if migration.state != MigrationState::Returned && is_concerned(migration) {
                migration.send_home(version);
                n_sent += 1;
            }
            true
        });
        n_sent
    }

    pub(crate) fn settle(&mut self, version: u64) {
        for map in &mut self.maps {
            map.settle(version);
        }
        self.migrations.retain(|migration| {
            if migration.version <= version {
                migration.former = WorkerSet::EMPTY;
            }
            migration.state != MigrationState::Returned || !migration.former.is_empty()
        });
    }

    pub(crate) fn forget(&mut self, worker: WorkerId) {
        for map in &mut self.maps {
            map.forget(worker);
        }
        self.migrations.retain(|migration| {
            migration.former.remove(worker);
            migration.state != MigrationState::Returned || !migration.former.is_empty()
        });
    }
}
