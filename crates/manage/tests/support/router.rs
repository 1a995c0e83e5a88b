//! A router in memory: it keeps the state that commands change, and refuses
//! what a real one refuses.

use std::collections::{BTreeMap, BTreeSet};

use tachonym_manage::{
    ControlError, ControlPlane, CsConfig, CsErased, Erasure, FaceChanges, FaceCreateRequest,
    FaceCreated, FibChange, FibRefusal, FibRefusalReason, FibSlice, LinkOptions, TraceRequest,
    WorkersChange,
};
use tachonym_packet::{Component, FaceId, Name};
use tachonym_protocol::*;

pub const MAX_FIB_COMPONENTS: usize = 16;
pub const FIB_SLICE_LEN: u32 = 100;

#[derive(Debug)]
pub struct MemoryRouter {
    pub faces: BTreeMap<u64, FaceStatus>,
    next_face: u64,
    pub fib: BTreeMap<Name, BTreeMap<u64, u64>>,
    pub max_fib_entries: usize,
    pub cs: CsInfo,
    pub cs_policy: String,
    pub popularity: CsPopularity,
    pub cs_names: BTreeSet<Name>,
    pub strategies: BTreeMap<Name, Name>,
    /// How often the FIB was changed, and by how many changes in all.
    pub n_fib_batches: usize,
    pub n_fib_changes: usize,
    /// Most changes that came together.
    pub max_fib_batch: usize,
    pub n_fib_slices: usize,
    pub drops: Vec<DropCount>,
    pub recent_drops: Vec<RecentDrop>,
    /// What each trace was started with.
    pub traces: BTreeMap<u64, TraceRequest>,
    /// Workers 0 and 1 run, 2 is spare.
    pub workers: WorkersStatus,
    pub power: PowerStatus,
    /// Announcements by prefix, with their versions.
    pub announcements: BTreeMap<Name, (u64, Vec<u8>)>,
    pub max_announcements: usize,
    /// What every call fails with.
    pub failure: Option<ControlError>,
}

impl MemoryRouter {
    pub fn new() -> Self {
        let mut router = Self {
            faces: BTreeMap::new(),
            next_face: 256,
            fib: BTreeMap::new(),
            max_fib_entries: usize::MAX,
            cs_policy: "eviction=lru".to_owned(),
            popularity: CsPopularity::default(),
            cs: CsInfo {
                capacity: 65536,
                flags: cs_flags::ALL,
                ..CsInfo::default()
            },
            cs_names: BTreeSet::new(),
            strategies: BTreeMap::new(),
            n_fib_batches: 0,
            n_fib_changes: 0,
            max_fib_batch: 0,
            n_fib_slices: 0,
            drops: Vec::new(),
            recent_drops: Vec::new(),
            traces: BTreeMap::new(),
            workers: two_workers_and_a_spare(),
            power: PowerStatus::default(),
            announcements: BTreeMap::new(),
            max_announcements: usize::MAX,
            failure: None,
        };
        let best_route = "/localhost/nfd/strategy/best-route/v=5".parse().unwrap();
        router.strategies.insert(Name::new(), best_route);
        router
    }

    /// Opens a face as a client's connection would, and returns its number.
    pub fn accept(&mut self, uri: &str) -> FaceId {
        self.add_face(uri, "unix:///run/nfd.sock", FacePersistency::OnDemand)
    }

    fn add_face(&mut self, uri: &str, local_uri: &str, persistency: FacePersistency) -> FaceId {
        let id = self.next_face;
        self.next_face += 1;
        let is_local = uri.starts_with("fd") || uri.starts_with("unix");
        self.faces.insert(
            id,
            FaceStatus {
                face_id: id,
                uri: uri.to_owned(),
                local_uri: local_uri.to_owned(),
                expiration_period_ms: None,
                face_scope: if is_local {
                    FaceScope::Local
                } else {
                    FaceScope::NonLocal
                },
                face_persistency: persistency,
                link_type: LinkType::PointToPoint,
                base_congestion_marking_interval_ns: Some(100_000_000),
                default_congestion_threshold_bytes: Some(65536),
                mtu_bytes: Some(8800),
                n_in_interests: 1,
                n_in_data: 2,
                n_in_nacks: 3,
                n_out_interests: 4,
                n_out_data: 5,
                n_out_nacks: 6,
                n_in_bytes: 7,
                n_out_bytes: 8,
                flags: 0,
                state: Some(FaceState::Up),
            },
        );
        FaceId(id)
    }

    /// Takes a face away, as when its peer goes, and says what happened.
    pub fn lose(&mut self, face: FaceId) -> FaceEventNotification {
        let status = self.faces.remove(&face.0).expect("the face is there");
        for hops in self.fib.values_mut() {
            hops.remove(&face.0);
        }
        self.fib.retain(|_, hops| !hops.is_empty());
        event(FaceEventKind::Destroyed, &status)
    }

    pub fn hops(&self, uri: &str) -> Vec<(u64, u64)> {
        let name: Name = uri.parse().unwrap();
        self.fib
            .get(&name)
            .map(|hops| hops.iter().map(|(&face, &cost)| (face, cost)).collect())
            .unwrap_or_default()
    }

    fn check(&self) -> Result<(), ControlError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// The worker with this number, if it runs.
    fn running(&mut self, worker: u64) -> Result<&mut WorkerStatus, ControlError> {
        let mut workers = self.workers.workers.iter_mut();
        workers
            .find(|it| it.worker == worker && it.state == WorkerState::Running)
            .ok_or_else(|| {
                let text = format!("worker {worker} does not run: name one that does");
                ControlError::Workers(text)
            })
    }

    /// Divides all names evenly among the workers that run.
    fn divide(&mut self) {
        let workers = &mut self.workers.workers;
        let is_running = |it: &WorkerStatus| it.state == WorkerState::Running;
        let n_running = workers.iter().filter(|it| is_running(it)).count() as u64;
        for it in workers {
            it.share_permille = if is_running(it) { 1000 / n_running } else { 0 };
        }
        self.workers.map_version += 1;
    }

    fn set_options(face: &mut FaceStatus, options: &LinkOptions) -> Result<(), ControlError> {
        if options.local_fields == Some(true) && face.face_scope == FaceScope::NonLocal {
            let mut refused = ControlParameters::default();
            refused.set_flag(face_flags::LOCAL_FIELDS, true);
            return Err(ControlError::Conflict(Box::new(refused)));
        }
        for (bit, on) in [
            (face_flags::LOCAL_FIELDS, options.local_fields),
            (face_flags::LP_RELIABILITY, options.lp_reliability),
            (face_flags::CONGESTION_MARKING, options.congestion_marking),
        ] {
            match on {
                Some(true) => face.flags |= bit,
                Some(false) => face.flags &= !bit,
                None => {}
            }
        }
        let set = |to: &mut Option<u64>, from: Option<u64>| *to = from.or(*to);
        set(
            &mut face.base_congestion_marking_interval_ns,
            options.base_congestion_marking_interval_ns,
        );
        set(
            &mut face.default_congestion_threshold_bytes,
            options.default_congestion_threshold_bytes,
        );
        set(&mut face.mtu_bytes, options.mtu_bytes);
        Ok(())
    }
}

fn two_workers_and_a_spare() -> WorkersStatus {
    let worker = |worker, state, share_permille| WorkerStatus {
        worker,
        state,
        service: "forwarding".into(),
        cpu: Some(worker + 1),
        busy_permille: Some(10 * worker),
        n_queued_pkts: 0,
        share_permille,
        n_in_pkts: 0,
        n_crossed_pkts: 0,
        n_dropped_pkts: 0,
        n_pit_entries: 0,
        n_cs_entries: 0,
        waiting: None,
    };
    WorkersStatus {
        feed: "io-threads".into(),
        dispatch: "prefix 2".into(),
        n_buckets: 16,
        workers: vec![
            worker(0, WorkerState::Running, 500),
            worker(1, WorkerState::Running, 500),
            worker(2, WorkerState::Spare, 0),
        ],
        receivers: vec![ReceiverStatus {
            thread: 0,
            cpu: None,
            busy_permille: None,
            n_received_pkts: 0,
            waiting: None,
        }],
        ..WorkersStatus::default()
    }
}

pub fn event(kind: FaceEventKind, face: &FaceStatus) -> FaceEventNotification {
    FaceEventNotification {
        kind,
        face_id: face.face_id,
        uri: face.uri.clone(),
        local_uri: face.local_uri.clone(),
        face_scope: face.face_scope,
        face_persistency: face.face_persistency,
        link_type: face.link_type,
        flags: face.flags,
    }
}

impl ControlPlane for MemoryRouter {
    fn keep_announcement(
        &mut self,
        prefix: &Name,
        version: u64,
        wire: &[u8],
    ) -> Result<(), ControlError> {
        self.check()?;
        if self.announcements.len() >= self.max_announcements {
            return Err(ControlError::LimitReached("prefix announcements"));
        }
        self.announcements
            .insert(prefix.clone(), (version, wire.to_vec()));
        Ok(())
    }

    fn forget_announcements(&mut self, prefixes: Vec<Name>) -> Result<(), ControlError> {
        self.check()?;
        for prefix in prefixes {
            self.announcements.remove(&prefix);
        }
        Ok(())
    }

    fn create_face(&mut self, request: &FaceCreateRequest) -> Result<FaceCreated, ControlError> {
        self.check()?;
        let uri = request.remote.to_string();
        match request.remote {
            FaceUri::Udp(_) => {}
            FaceUri::Tcp(addr) if addr.port() == 1 => {
                return Err(ControlError::NoAnswer("connection refused".into()));
            }
            FaceUri::Tcp(addr) if addr.port() == 2 => {
                return Err(ControlError::Socket("permission denied".into()));
            }
            FaceUri::Tcp(_) => {}
            _ => {
                let scheme = request.remote.scheme().to_owned();
                return Err(ControlError::UnsupportedProtocol(scheme));
            }
        }
        if request.options.local_fields == Some(true) {
            return Err(ControlError::Unsupported("not on a non-local face"));
        }
        if let Some(face) = self.faces.values().find(|face| face.uri == uri) {
            return Ok(FaceCreated::Existing(face.clone()));
        }
        let local_uri = request
            .local
            .as_ref()
            .map_or("udp4://192.0.2.99:6363".into(), FaceUri::to_string);
        let id = self.add_face(&uri, &local_uri, request.persistency);
        let face = self.faces.get_mut(&id.0).unwrap();
        match Self::set_options(face, &request.options) {
            Ok(()) if matches!(request.remote, FaceUri::Tcp(_)) => {
                Ok(FaceCreated::Connecting(face.clone()))
            }
            Ok(()) => Ok(FaceCreated::New(face.clone())),
            Err(error) => {
                self.faces.remove(&id.0);
                Err(error)
            }
        }
    }

    fn update_face(
        &mut self,
        face: FaceId,
        changes: &FaceChanges,
    ) -> Result<FaceStatus, ControlError> {
        self.check()?;
        let face = self
            .faces
            .get_mut(&face.0)
            .ok_or(ControlError::FaceNotFound)?;
        Self::set_options(face, &changes.options)?;
        if let Some(persistency) = changes.persistency {
            face.face_persistency = persistency;
        }
        Ok(face.clone())
    }

    fn destroy_face(&mut self, face: FaceId) -> Result<(), ControlError> {
        self.check()?;
        if self.faces.contains_key(&face.0) {
            self.lose(face);
        }
        Ok(())
    }

    fn faces(&mut self) -> Result<Vec<FaceStatus>, ControlError> {
        self.check()?;
        Ok(self.faces.values().cloned().collect())
    }

    fn channels(&mut self) -> Result<Vec<ChannelStatus>, ControlError> {
        self.check()?;
        Ok(["unix:///run/nfd.sock", "udp4://0.0.0.0:6363"]
            .map(|uri| ChannelStatus {
                local_uri: uri.into(),
            })
            .to_vec())
    }

    fn fib_apply(&mut self, changes: Vec<FibChange>) -> Result<Vec<FibRefusal>, ControlError> {
        self.check()?;
        self.n_fib_batches += 1;
        self.n_fib_changes += changes.len();
        self.max_fib_batch = self.max_fib_batch.max(changes.len());
        let mut refusals = Vec::new();
        for change in changes {
            match &change {
                FibChange::Add {
                    name, face, cost, ..
                } => {
                    let reason = if !self.faces.contains_key(&face.0) {
                        FibRefusalReason::FaceNotFound
                    } else if name.len() > MAX_FIB_COMPONENTS {
                        FibRefusalReason::NameTooLong
                    } else if self.fib.len() >= self.max_fib_entries && !self.fib.contains_key(name)
                    {
                        FibRefusalReason::TableFull
                    } else {
                        self.fib
                            .entry(name.clone())
                            .or_default()
                            .insert(face.0, *cost);
                        continue;
                    };
                    refusals.push(FibRefusal { change, reason });
                }
                FibChange::Remove { name, face } => {
                    if let Some(hops) = self.fib.get_mut(name) {
                        hops.remove(&face.0);
                        if hops.is_empty() {
                            self.fib.remove(name);
                        }
                    }
                }
            }
        }
        Ok(refusals)
    }

    fn fib_slice(&mut self, from: u64) -> Result<FibSlice, ControlError> {
        self.check()?;
        self.n_fib_slices += 1;
        let entry = |(name, hops): (&Name, &BTreeMap<u64, u64>)| FibEntry {
            name: name.clone(),
            next_hops: hops
                .iter()
                .map(|(&face_id, &cost)| NextHopRecord { face_id, cost })
                .collect(),
        };
        let end = from + u64::from(FIB_SLICE_LEN);
        let slice = self.fib.iter().skip(from as usize);
        Ok(FibSlice {
            entries: slice.take(FIB_SLICE_LEN as usize).map(entry).collect(),
            next: ((end as usize) < self.fib.len()).then_some(end),
        })
    }

    fn cs_config(&mut self, config: &CsConfig) -> Result<CsInfo, ControlError> {
        self.check()?;
        if config.capacity_pkts.is_some_and(|n| n > 1 << 40) {
            return Err(ControlError::LimitReached("content store capacity"));
        }
        if let Some(policy) = &config.policy {
            if !policy.contains('=') {
                return Err(ControlError::CsPolicy(format!("`{policy}` is no policy")));
            }
            self.cs_policy.clone_from(policy);
        }
        self.cs.capacity = config.capacity_pkts.unwrap_or(self.cs.capacity);
        for (bit, on) in [
            (cs_flags::ENABLE_ADMIT, config.admit),
            (cs_flags::ENABLE_SERVE, config.serve),
        ] {
            match on {
                Some(true) => self.cs.flags |= bit,
                Some(false) => self.cs.flags &= !bit,
                None => {}
            }
        }
        self.cs_info()
    }

    fn cs_erase(&mut self, prefix: &Name, erasure: Erasure) -> Result<CsErased, ControlError> {
        let limit = erasure.limit();
        self.check()?;
        let victims: Vec<Name> = self
            .cs_names
            .iter()
            .filter(|name| name.starts_with(prefix))
            .take(limit as usize)
            .cloned()
            .collect();
        for name in &victims {
            self.cs_names.remove(name);
        }
        Ok(CsErased {
            n_erased: victims.len() as u64,
            has_more: self.cs_names.iter().any(|name| name.starts_with(prefix)),
        })
    }

    fn cs_stats(&mut self) -> Result<CsStats, ControlError> {
        let info = self.cs_info()?;
        Ok(CsStats {
            policy: self.cs_policy.clone(),
            n_cs_entries: info.n_cs_entries,
            capacity: info.capacity,
            ..CsStats::default()
        })
    }

    fn cs_popularity(&mut self) -> Result<CsPopularity, ControlError> {
        self.check()?;
        Ok(self.popularity.clone())
    }

    fn cs_info(&mut self) -> Result<CsInfo, ControlError> {
        self.check()?;
        self.cs.n_cs_entries = self.cs_names.len() as u64;
        Ok(self.cs.clone())
    }

    fn strategy_set(&mut self, prefix: &Name, strategy: &Name) -> Result<Name, ControlError> {
        self.check()?;
        if prefix.len() > MAX_FIB_COMPONENTS {
            return Err(ControlError::NameTooLong {
                max_components: MAX_FIB_COMPONENTS,
            });
        }
        let known: Name = "/localhost/nfd/strategy".parse().unwrap();
        let (program, version) = match strategy.get(3).map(|c| c.value().to_vec()).as_deref() {
            Some(b"best-route") => ("best-route", 5),
            Some(b"multicast") => ("multicast", 4),
            _ => return Err(ControlError::StrategyNotFound),
        };
        if !strategy.starts_with(&known) {
            return Err(ControlError::StrategyNotFound);
        }
        if strategy.len() > 5 {
            return Err(ControlError::StrategyParameters("none are known"));
        }
        let instance = known.with(program).with(&Component::version(version));
        if strategy.len() == 5 && *strategy != instance {
            return Err(ControlError::StrategyNotFound);
        }
        self.strategies.insert(prefix.clone(), instance.clone());
        Ok(instance)
    }

    fn strategy_unset(&mut self, prefix: &Name) -> Result<(), ControlError> {
        self.check()?;
        assert!(!prefix.is_empty(), "the root always has a strategy");
        self.strategies.remove(prefix);
        Ok(())
    }

    fn strategies(&mut self) -> Result<Vec<StrategyChoice>, ControlError> {
        self.check()?;
        let choice = |(name, strategy): (&Name, &Name)| StrategyChoice {
            name: name.clone(),
            strategy: strategy.clone(),
        };
        Ok(self.strategies.iter().map(choice).collect())
    }

    fn drops(&mut self) -> Result<Vec<DropCount>, ControlError> {
        self.check()?;
        Ok(self.drops.clone())
    }

    fn recent_drops(
        &mut self,
        prefix: &Name,
        limit: usize,
    ) -> Result<Vec<RecentDrop>, ControlError> {
        self.check()?;
        let drops = self.recent_drops.iter();
        let under = drops.filter(|drop| drop.name.starts_with(prefix));
        Ok(under.take(limit).cloned().collect())
    }

    fn start_trace(&mut self, request: &TraceRequest) -> Result<u64, ControlError> {
        self.check()?;
        if self.traces.len() == MAX_TRACES {
            return Err(ControlError::LimitReached("traces"));
        }
        let id = 1_000 + self.traces.len() as u64;
        self.traces.insert(id, request.clone());
        Ok(id)
    }

    fn read_trace(&mut self, trace_id: u64, read: u64) -> Result<TraceBatch, ControlError> {
        self.check()?;
        let trace = self.traces.get(&trace_id);
        trace.ok_or(ControlError::TraceNotFound)?;
        Ok(TraceBatch {
            n_not_shown: read,
            ..TraceBatch::default()
        })
    }

    fn stop_trace(&mut self, trace_id: u64) -> Result<(), ControlError> {
        self.check()?;
        self.traces.remove(&trace_id);
        Ok(())
    }

    fn face_programs(&mut self) -> Result<Vec<FaceProgram>, ControlError> {
        self.check()?;
        let local = self.faces.values().filter(|it| it.uri.starts_with("fd://"));
        let programs = local.map(|face| FaceProgram {
            face_id: face.face_id,
            pid: 10_000 + face.face_id,
            name: Some("program".into()),
        });
        Ok(programs.collect())
    }

    fn table_memory(&mut self) -> Result<TableMemory, ControlError> {
        self.check()?;
        Ok(TableMemory {
            asked_for: "2m".into(),
            n_huge_2m_bytes: 3 << 21,
            ..TableMemory::default()
        })
    }

    /// That of a name under the longest prefix in the FIB, with nothing else found.
    fn explain(&mut self, query: &ExplainQuery) -> Result<NameExplanation, ControlError> {
        self.check()?;
        if query
            .face_id
            .is_some_and(|id| !self.faces.contains_key(&id))
        {
            return Err(ControlError::FaceNotFound);
        }
        let routes = self.fib.iter();
        let route = routes
            .filter(|(prefix, _)| query.name.starts_with(prefix.view()))
            .max_by_key(|(prefix, _)| prefix.len());
        let next_hops = route.into_iter().flat_map(|(_, hops)| hops);
        let next_hops = next_hops.map(|(&face_id, &cost)| ExplainedNextHop {
            face_id,
            cost,
            usage: NextHopUse::Usable,
            origin: None,
        });
        Ok(NameExplanation {
            worker: 0,
            is_out_of_scope: false,
            is_for_local_faces: false,
            store_serves: true,
            cached: None,
            on_ssd: SsdFinding::NotConfigured,
            pending: Vec::new(),
            next_hops: next_hops.collect(),
            route_prefix: route.map(|(prefix, _)| prefix.clone()),
            strategy: self.strategies[&Name::new()].clone(),
            strategy_prefix: Name::new(),
            faces: self.faces.values().cloned().collect(),
        })
    }

    fn workers(&mut self) -> Result<WorkersStatus, ControlError> {
        self.check()?;
        self.workers.n_away = self.workers.moved_names.len() as u64;
        Ok(self.workers.clone())
    }

    fn power(&mut self) -> Result<PowerStatus, ControlError> {
        self.check()?;
        Ok(self.power.clone())
    }

    fn change_workers(&mut self, change: &WorkersChange) -> Result<(), ControlError> {
        self.check()?;
        let refused = |text: &str| Err(ControlError::Workers(text.to_owned()));
        match change {
            WorkersChange::Freeze => self.workers.is_frozen = true,
            WorkersChange::Thaw => self.workers.is_frozen = false,
            WorkersChange::Pin { name, worker } => {
                self.running(*worker)?;
                let names = &mut self.workers.moved_names;
                names.retain(|moved| moved.name.as_ref() != Some(name));
                if names.len() == MovedName::MAX {
                    return refused("no place for another pinned name: unpin one");
                }
                names.push(MovedName {
                    key: name.wire_len() as u64,
                    worker: *worker,
                    is_pinned: true,
                    name: Some(name.clone()),
                });
                self.workers.n_moved += 1;
            }
            WorkersChange::Unpin { name } => {
                let names = &mut self.workers.moved_names;
                let place = names.iter().position(|it| it.name.as_ref() == Some(name));
                let Some(place) = place else {
                    return refused("the name is not pinned: name one that is");
                };
                names.remove(place);
            }
            WorkersChange::Add => {
                let mut workers = self.workers.workers.iter_mut();
                let Some(worker) = workers.find(|it| it.state != WorkerState::Running) else {
                    return refused("all workers run: configure more");
                };
                worker.state = WorkerState::Running;
                self.divide();
            }
            WorkersChange::Remove { worker } => {
                self.running(*worker)?;
                let workers = &self.workers.workers;
                let running = workers.iter().filter(|it| it.state == WorkerState::Running);
                if running.count() == 1 {
                    return refused("it is the last worker: add another first");
                }
                self.running(*worker)?.state = WorkerState::Removed;
                self.workers.moved_names.retain(|it| it.worker != *worker);
                self.divide();
            }
        }
        Ok(())
    }

    fn general_status(&mut self) -> Result<ForwarderStatus, ControlError> {
        self.check()?;
        Ok(ForwarderStatus {
            nfd_version: "memory".into(),
            n_fib_entries: self.fib.len() as u64,
            n_cs_entries: self.cs_names.len() as u64,
            ..ForwarderStatus::default()
        })
    }
}
