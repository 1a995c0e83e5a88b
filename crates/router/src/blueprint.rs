//! What an engine of this router is made of: all that it was told since the start.
//!
//! A worker that is added, or takes the place of one that failed, begins with the faces,
//! strategies and limits that the others have. Whoever changes one of these for the engines
//! that run changes it here first, so that one that is made meanwhile has it too.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tachonym_dispatch::{WorkerId, WorkerSet};
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Routes};
use tachonym_packet::{FaceId, HashKey, Name};
use tachonym_tables::CsCapacity;

use crate::null_face;

/// See the module.
pub(crate) struct Blueprint {
    key: HashKey,
    routes: Routes,
    settings: Mutex<Settings>,
}

/// What changes while the router runs.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Of a worker; its content store has its part of `cs`.
    pub(crate) config: EngineConfig,
    /// Limits of the content stores of all workers together.
    pub(crate) cs: CsCapacity,
    /// Who shares them.
    pub(crate) running: WorkerSet,
    pub(crate) cs_admits: bool,
    pub(crate) cs_serves: bool,
    pub(crate) faces: HashMap<FaceId, FaceTraits>,
    pub(crate) strategies: HashMap<Name, Name>,
    /// Prefix announcements by prefix, with their versions.
    pub(crate) announcements: HashMap<Name, (u64, Vec<u8>)>,
}

impl Settings {
    /// The part of a worker in the limits of the content stores.
    pub(crate) fn cs_part(&self, worker: WorkerId) -> CsCapacity {
        // What one has that is not running any more nobody asks for.
        let rank = self.running.into_iter().position(|it| it == worker);
        let n = self.running.len();
        let part = |total: usize| rank.map_or(0, |rank| total / n + usize::from(rank < total % n));
        CsCapacity {
            max_pkts: part(self.cs.max_pkts),
            max_bytes: part(self.cs.max_bytes),
        }
    }
}

impl Blueprint {
    /// By which `first` was made, of workers `running`; strategies come later. `cs` is for all
    /// of them.
    pub(crate) fn new(
        first: &Engine,
        config: EngineConfig,
        key: HashKey,
        cs: CsCapacity,
        running: WorkerSet,
    ) -> Self {
        Self {
            key,
            routes: first.routes().clone(),
            settings: Mutex::new(Settings {
                config,
                cs,
                running,
                cs_admits: true,
                cs_serves: true,
                faces: HashMap::from([
                    (FaceId::INTERNAL, FaceTraits::LOCAL),
                    (FaceId::NULL, null_face::TRAITS),
                ]),
                strategies: HashMap::new(),
                announcements: HashMap::new(),
            }),
        }
    }

    /// The settings, to be read or changed.
    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        // They are whole between any two statements.
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The FIB, which all engines share.
    pub(crate) const fn routes(&self) -> &Routes {
        &self.routes
    }

    /// The key by which names are hashed.
    pub(crate) const fn key(&self) -> &HashKey {
        &self.key
    }

    /// An engine for a worker, without faces: [`Blueprint::introduce`] tells it of these
    /// when it is in its place.
    pub(crate) fn build(&self, worker: WorkerId) -> anyhow::Result<Engine> {
        let settings = self.settings();
        let config = EngineConfig {
            cs: settings.cs_part(worker),
            routes: Some(self.routes.clone()),
            ..settings.config.clone()
        };
        drop(settings);
        let key = self.key.clone();
        let mut engine = Engine::new(config, key, getrandom::u64()?)?;
        self.configure(&mut engine)?;
        Ok(engine)
    }

    /// Tells an engine what it is to know, but for faces.
    pub(crate) fn configure(&self, engine: &mut Engine) -> anyhow::Result<()> {
        let settings = self.settings();
        for (prefix, strategy) in &settings.strategies {
            engine
                .choices_mut()
                .set_strategy(prefix.view(), strategy.view())?;
        }
        for (prefix, (version, wire)) in &settings.announcements {
            // The others had room for it.
            let _ = engine
                .choices_mut()
                .keep_announcement(prefix.view(), *version, wire);
        }
        engine.cs_mut().set_admits(settings.cs_admits);
        engine.cs_mut().set_serves(settings.cs_serves);
        Ok(())
    }

    /// Tells an engine of all faces. What was told of faces before now is in this.
    pub(crate) fn introduce(&self, engine: &mut Engine) {
        let settings = self.settings();
        let mut faces: Vec<_> = settings.faces.iter().collect();
        faces.sort_unstable_by_key(|&(face, _)| *face);
        for (&face, &traits) in faces {
            engine.add_face(face, traits);
        }
    }
}
