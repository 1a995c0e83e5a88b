//! The manager's view of the router: each call is a job for the threads that it concerns,
//! and returns when all have done it. Routes alone are changed and listed here, on the
//! manager's thread.

use std::io::ErrorKind;
use std::time::Duration;

use tachonym_client::wall_ms;
use tachonym_dispatch::WorkerId;
use tachonym_face::{
    CreateError, FaceInfo, FaceParams, FaceUpdate, LinkOptions as FaceOptions, UpdateError,
};
use tachonym_forward::{Engine, Routes, StrategyError};
use tachonym_manage::{
    ControlError, ControlPlane, CsConfig, CsErased, Erasure, FaceChanges, FaceCreateRequest,
    FaceCreated, FibChange, FibRefusal, FibSlice, LinkOptions, TraceRequest, WorkersChange,
};
use tachonym_memory::PagePreference;
use tachonym_packet::{FaceId, Name, NameView};
use tachonym_policy::{Policy, PolicyConfig};
use tachonym_protocol::{
    ChannelStatus, ControlParameters, CsInfo, CsPopularity, CsStats, DropCount, ExplainQuery,
    FacePersistency, FaceProgram, FaceStatus, FaceUri, FibEntry, ForwarderStatus, NameExplanation,
    NextHopRecord, PopularityClass, PowerStatus, RecentDrop, StrategyChoice, TableMemory,
    TraceBatch, WorkersStatus, cs_flags, face_flags,
};
use tachonym_tables::{CsCapacity, MAX_PREFIX_COMPONENTS};

use crate::config::ContentStore;
use crate::cs_capacity::{Shrinking, shrink_some};
use crate::drops;
use crate::explain_control;
use crate::face_jobs;
use crate::face_status::{face_status, program, status};
use crate::fib_jobs;
use crate::handle::{Threads, WorkerGone};
use crate::null_face;
use crate::plane::Plane;
use crate::power::Power;
use crate::recent_drops;
use crate::second_level;
use crate::trace_control::TraceControl;
use crate::workers_control::WorkersControl;

/// Most FIB entries that are copied at once, and most faces by one job, which takes some
/// tens of microseconds for which packets wait.
const FIB_ENTRIES_PER_SLICE: usize = 256;
const FACES_PER_JOB: usize = 64;
/// Most prefix announcements that one job forgets; likewise.
const ANNOUNCEMENTS_PER_JOB: usize = 256;

/// The router as its manager sees it.
pub(crate) struct RouterControl {
    threads: Threads,
    workers: WorkersControl,
    power: Power,
    traces: TraceControl,
    routes: Routes,
    link: FaceOptions,
    pages: PagePreference,
    content_store: ContentStore,
    started_ms: u64,
}

impl RouterControl {
    /// `link` is what faces made by commands have unless they say otherwise;
    /// `pages` is what the tables were asked to use, `content_store` what it keeps.
    pub(crate) fn new(
        threads: Threads,
        workers: WorkersControl,
        power: Power,
        link: FaceOptions,
        pages: PagePreference,
        content_store: ContentStore,
    ) -> Self {
        Self {
            routes: threads.team().blueprint.routes().clone(),
            traces: TraceControl::new(threads.clone()),
            threads,
            workers,
            power,
            link,
            pages,
            content_store,
            started_ms: wall_ms(),
        }
    }

    /// Whether a policy, the one in force unless there are words for another one, makes
    /// sense for so many packets: before anything is changed.
    fn check_cs_policy(&self, words: Option<&str>, max_pkts: usize) -> Result<(), ControlError> {
        let policy = match words {
            Some(words) => self.content_store.with_words(words),
            None => Ok(self.content_store.clone()),
        };
        let capacity = CsCapacity {
            max_pkts,
            ..self.threads.team().blueprint.settings().cs
        };
        policy
            .and_then(|policy| policy.check_memory(capacity.max_slots(), capacity.max_bytes))
            .map_err(ControlError::CsPolicy)
    }

    /// Changes what the content store admits and evicts.
    fn set_cs_policy(&mut self, words: &str) -> Result<(), ControlError> {
        let changed = self.content_store.with_words(words);
        let changed = changed.map_err(ControlError::CsPolicy)?;
        if changed != self.content_store {
            let capacity = self.threads.team().blueprint.settings().cs;
            changed
                .check_memory(capacity.max_slots(), capacity.max_bytes)
                .map_err(ControlError::CsPolicy)?;
            self.put_cs_policy(&changed)?;
            self.content_store = changed;
        }
        Ok(())
    }

    /// Makes the policy for the size that each worker's store has, here and not where packets
    /// would wait for it, and puts it in charge.
    fn put_cs_policy(&self, content_store: &ContentStore) -> Result<(), ControlError> {
        let refused = |error: &dyn std::fmt::Display| ControlError::CsPolicy(error.to_string());
        let seed = getrandom::u64().map_err(|error| refused(&error))?;
        let of_worker = {
            let mut settings = self.threads.team().blueprint.settings();
            let policy = content_store
                .policy(seed)
                .for_one_of(settings.running.len());
            settings.config.cs_policy = policy;
            policy
        };
        let size = |plane: &mut Plane| {
            let engine = plane.engine()?;
            Some((plane.thread(), engine.cs().policy_size()))
        };
        for (thread, (n_slots, capacity)) in self.each(size)?.into_iter().flatten() {
            let policy = PolicyConfig {
                capacity,
                pages: self.pages,
                ..of_worker
            };
            let policy = Policy::with_slots(&policy, n_slots).map_err(|error| refused(&error))?;
            // Only commands make the store larger, and they come one after the other.
            let fits = self.at(thread.idx(), move |plane| {
                // One that has failed meanwhile begins with it.
                let engine = plane.engine_mut();
                engine.is_none_or(|engine| engine.cs_mut().set_policy(policy))
            })?;
            if !fits {
                return Err(refused(&"the content store grew meanwhile; try again"));
            }
        }
        Ok(())
    }

    /// Gives the content stores their parts of so many packets.
    fn set_cs_capacity(&self, max_pkts: usize) -> Result<(), ControlError> {
        let blueprint = &self.threads.team().blueprint;
        let former = std::mem::replace(&mut blueprint.settings().cs.max_pkts, max_pkts);
        loop {
            let outcomes = self.each_engine_of(shrink_some)?;
            if outcomes.contains(&Shrinking::GoesOn) {
                continue;
            }
            let mut settings = blueprint.settings();
            if !outcomes.contains(&Shrinking::Refused) || settings.cs.max_pkts == former {
                return Ok(());
            }
            // All have the same part, or none has.
            settings.cs.max_pkts = former;
        }
    }

    fn at<R: Send + 'static>(
        &self,
        thread: usize,
        job: impl FnOnce(&mut Plane) -> R + Send + 'static,
    ) -> Result<R, ControlError> {
        let answer = self.threads.at(thread, job);
        answer.map_err(|WorkerGone| ControlError::Unavailable)
    }

    fn each<R: Send + 'static>(
        &self,
        job: impl Fn(&mut Plane) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, ControlError> {
        let answers = self.threads.each(job);
        answers.map_err(|WorkerGone| ControlError::Unavailable)
    }

    fn each_system<R: Send + 'static>(
        &self,
        job: impl Fn(&mut Plane) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, ControlError> {
        let answers = self.threads.each_system(job);
        answers.map_err(|WorkerGone| ControlError::Unavailable)
    }

    fn each_engine<R: Send + 'static>(
        &self,
        job: impl Fn(&mut Engine) -> R + Clone + Send + 'static,
    ) -> Result<Vec<R>, ControlError> {
        let answers = self.threads.each_engine(job);
        answers.map_err(|WorkerGone| ControlError::Unavailable)
    }

    /// As [`RouterControl::each_engine`], for what also needs to know the worker.
    fn each_engine_of<R: Send + 'static>(
        &self,
        job: impl Fn(&mut Plane) -> Option<R> + Clone + Send + 'static,
    ) -> Result<Vec<R>, ControlError> {
        let answers: Vec<R> = self.each(job)?.into_iter().flatten().collect();
        match answers.is_empty() {
            false => Ok(answers),
            true => Err(ControlError::Unavailable),
        }
    }

    /// Every face but the null face.
    fn face_infos(&self) -> Result<Vec<FaceInfo>, ControlError> {
        let ids = |plane: &mut Plane| (plane.thread(), plane.faces.face_ids().collect::<Vec<_>>());
        let mut all = Vec::new();
        for (thread, ids) in self.each_system(ids)? {
            for slice in ids.chunks(FACES_PER_JOB) {
                let slice = slice.to_vec();
                let infos: Vec<FaceInfo> = self.at(thread.idx(), move |plane| {
                    let infos = slice.iter().map(|&id| plane.faces.info(id));
                    infos.flatten().collect()
                })?;
                all.extend(infos);
            }
        }
        Ok(all)
    }

    /// The system that has a face, by its thread.
    fn thread_of_face(&self, face: FaceId) -> Result<usize, ControlError> {
        let thread = self.threads.team().layout.thread_of_face(face);
        thread.map(WorkerId::idx).ok_or(ControlError::FaceNotFound)
    }
}

impl ControlPlane for RouterControl {
    fn create_face(&mut self, request: &FaceCreateRequest) -> Result<FaceCreated, ControlError> {
        if request.remote == FaceUri::Null {
            return Ok(FaceCreated::Existing(null_face::status()));
        }
        let mut params = FaceParams::new(request.remote.clone());
        params.local.clone_from(&request.local);
        params.persistency = request.persistency;
        params.link = with_changes(self.link, &request.options);
        params.mtu_bytes = request.options.mtu_bytes;
        let make = |plane: &mut Plane, params: &FaceParams| {
            let outcome = plane.faces.create(params)?;
            Ok((outcome, status(plane, outcome.id)))
        };
        let (outcome, status) = face_jobs::create(&self.threads, params, make)
            .map_err(|WorkerGone| ControlError::Unavailable)?
            .map_err(|error| create_error(error, request))?;
        self.threads.settle();
        let status = status.ok_or(ControlError::FaceNotFound)?;
        Ok(match (outcome.already_existed, outcome.is_up) {
            (true, _) => FaceCreated::Existing(status),
            (false, true) => FaceCreated::New(status),
            (false, false) => FaceCreated::Connecting(status),
        })
    }

    fn update_face(
        &mut self,
        face: FaceId,
        changes: &FaceChanges,
    ) -> Result<FaceStatus, ControlError> {
        let update = FaceUpdate {
            persistency: changes.persistency,
            mtu_bytes: changes.options.mtu_bytes,
            local_fields: changes.options.local_fields,
            reliability: changes.options.lp_reliability,
            congestion_marking: changes.options.congestion_marking,
            base_congestion_marking_interval: changes
                .options
                .base_congestion_marking_interval_ns
                .map(Duration::from_nanos),
            default_congestion_threshold_bytes: changes.options.default_congestion_threshold_bytes,
            locality: None,
        };
        let persistency = changes.persistency;
        let thread = self.thread_of_face(face)?;
        let updated = self.at(thread, move |plane| {
            plane
                .faces
                .update(face, &update)
                .map_err(|error| update_error(error, persistency))?;
            plane.renew_traits(face);
            status(plane, face).ok_or(ControlError::FaceNotFound)
        })?;
        self.threads.settle();
        updated
    }

    fn destroy_face(&mut self, face: FaceId) -> Result<(), ControlError> {
        let Ok(thread) = self.thread_of_face(face) else {
            return Ok(());
        };
        self.at(thread, move |plane| {
            plane.faces.destroy(face);
            plane.handle_face_events();
        })?;
        self.threads.settle();
        Ok(())
    }

    fn faces(&mut self) -> Result<Vec<FaceStatus>, ControlError> {
        let mut all = vec![null_face::status()];
        all.extend(self.face_infos()?.iter().map(face_status));
        all.sort_unstable_by_key(|status| status.face_id);
        Ok(all)
    }

    fn face_programs(&mut self) -> Result<Vec<FaceProgram>, ControlError> {
        let infos = self.face_infos()?;
        let mut all: Vec<_> = infos.iter().filter_map(program).collect();
        all.sort_unstable_by_key(|program| program.face_id);
        Ok(all)
    }

    fn channels(&mut self) -> Result<Vec<ChannelStatus>, ControlError> {
        let channels = self.each_system(|plane| plane.faces.channels())?;
        let statuses = channels.into_iter().flatten().map(|channel| ChannelStatus {
            local_uri: channel.local.to_string(),
        });
        Ok(statuses.collect())
    }

    fn fib_apply(&mut self, changes: Vec<FibChange>) -> Result<Vec<FibRefusal>, ControlError> {
        fib_jobs::in_slices(changes, |slice| {
            let faces = fib_jobs::added_faces(&slice);
            let asked = faces.clone();
            let known = self.each_engine(move |engine| {
                let is_there = |face: &FaceId| engine.face(*face).is_some();
                asked.iter().copied().filter(is_there).collect::<Vec<_>>()
            })?;
            let is_known = |face: &FaceId| known.iter().all(|known| known.contains(face));
            let there: Vec<_> = faces.into_iter().filter(is_known).collect();
            let refused = fib_jobs::apply_all(&mut self.routes.lock(), slice, &there);
            self.each_engine(move |engine| engine.note_new_next_hops(&there))?;
            Ok(refused)
        })
    }

    fn keep_announcement(
        &mut self,
        prefix: &Name,
        version: u64,
        wire: &[u8],
    ) -> Result<(), ControlError> {
        let blueprint = &self.threads.team().blueprint;
        let mut settings = blueprint.settings();
        let former = settings.announcements.get(prefix).cloned();
        if former.as_ref().is_none_or(|(kept, _)| *kept <= version) {
            let kept = (version, wire.to_vec());
            settings.announcements.insert(prefix.clone(), kept);
        }
        drop(settings);
        let (name, data) = (prefix.clone(), wire.to_vec());
        let outcomes = self.each_engine(move |it| {
            it.choices_mut()
                .keep_announcement(name.view(), version, &data)
        })?;
        if outcomes.iter().all(Result::is_ok) {
            return Ok(());
        }
        let announcements = &mut blueprint.settings().announcements;
        match former {
            Some(former) => announcements.insert(prefix.clone(), former),
            None => announcements.remove(prefix),
        };
        Err(ControlError::LimitReached("prefix announcements"))
    }

    fn forget_announcements(&mut self, prefixes: Vec<Name>) -> Result<(), ControlError> {
        for slice in prefixes.chunks(ANNOUNCEMENTS_PER_JOB) {
            let mut settings = self.threads.team().blueprint.settings();
            for prefix in slice {
                settings.announcements.remove(prefix);
            }
            drop(settings);
            let slice = slice.to_vec();
            self.each_engine(move |engine| {
                for prefix in &slice {
                    engine.choices_mut().forget_announcement(prefix.view());
                }
            })?;
        }
        Ok(())
    }

    fn fib_slice(&mut self, from: u64) -> Result<FibSlice, ControlError> {
        let (entries, next) = self.routes.lock().slice(from, FIB_ENTRIES_PER_SLICE);
        Ok(FibSlice {
            entries: entries.iter().map(fib_entry).collect(),
            next,
        })
    }

    fn cs_config(&mut self, config: &CsConfig) -> Result<CsInfo, ControlError> {
        let CsConfig { admit, serve, .. } = *config;
        if let Some(pkts) = config.capacity_pkts {
            let max_pkts = usize::try_from(pkts).unwrap_or(usize::MAX);
            self.check_cs_policy(config.policy.as_deref(), max_pkts)?;
            self.set_cs_capacity(max_pkts)?;
            // Shares of the cache are reckoned by its size.
            self.put_cs_policy(&self.content_store)?;
        }
        if let Some(words) = &config.policy {
            self.set_cs_policy(words)?;
        }
        let mut settings = self.threads.team().blueprint.settings();
        settings.cs_admits = admit.unwrap_or(settings.cs_admits);
        settings.cs_serves = serve.unwrap_or(settings.cs_serves);
        let (admits, serves) = (settings.cs_admits, settings.cs_serves);
        drop(settings);
        self.each_engine(move |engine| {
            engine.cs_mut().set_admits(admits);
            engine.cs_mut().set_serves(serves);
        })?;
        self.cs_info()
    }

    fn cs_erase(&mut self, prefix: &Name, erasure: Erasure) -> Result<CsErased, ControlError> {
        let limit = erasure.limit();
        let includes_second_level = matches!(erasure, Erasure::All { .. });
        let mut erased = CsErased {
            n_erased: 0,
            has_more: false,
        };
        for thread in 0..self.threads.team().layout.n_worker_threads() {
            let prefix = prefix.clone();
            let left = usize::try_from(limit.saturating_sub(erased.n_erased)).unwrap_or(usize::MAX);
            let (n_erased, has_more) = self.at(thread, move |plane| {
                plane.erase(&prefix, left, includes_second_level)
            })?;
            erased.n_erased += n_erased as u64;
            erased.has_more |= has_more;
        }
        Ok(erased)
    }

    fn cs_stats(&mut self) -> Result<CsStats, ControlError> {
        let of_stores = self.each_engine(|engine| {
            let cs = engine.cs();
            (
                *cs.counters(),
                cs.used_bytes() as u64,
                cs.capacity().max_bytes as u64,
                cs.policy_bytes() as u64,
            )
        })?;
        let info = self.cs_info()?;
        let mut stats = CsStats {
            policy: self.content_store.to_words(),
            n_cs_entries: info.n_cs_entries,
            capacity: info.capacity,
            n_hits: info.n_hits,
            n_misses: info.n_misses,
            ..CsStats::default()
        };
        for (counters, n_bytes, capacity_bytes, n_policy_bytes) in of_stores {
            stats.n_inserts += counters.n_inserts;
            stats.n_not_admitted += counters.n_not_admitted_policy;
            stats.n_evictions += counters.n_evictions;
            stats.n_bytes += n_bytes;
            stats.capacity_bytes += capacity_bytes;
            stats.n_policy_bytes += n_policy_bytes;
        }
        let of_second_levels = self.each_engine(second_level::stats)?;
        let of_second_levels = of_second_levels.into_iter().flatten();
        stats.second_level = of_second_levels.reduce(second_level::sum);
        Ok(stats)
    }

    fn cs_popularity(&mut self) -> Result<CsPopularity, ControlError> {
        let observed = self.each_engine(|engine| {
            let policy = engine.cs().policy();
            (policy.popularity(), policy.outcomes(), policy.meter_bytes())
        })?;
        let mut popularity = CsPopularity::default();
        for (observed, outcomes, n_meter_bytes) in observed {
            // What takes long is done here, where no packet waits.
            let measured = observed.measured();
            // Each name is at home at one worker.
            let classes = measured.classes.iter().map(|class| PopularityClass {
                n_names: class.n_names,
                n_requests: class.n_requests,
            });
            popularity.classes.extend(classes);
            popularity.n_requests += measured.n_requests;
            popularity.n_counted_names += measured.n_counted_names;
            popularity.n_requests_since_change += outcomes.n_requests;
            popularity.n_hits += outcomes.n_hits;
            popularity.n_inserts += outcomes.n_inserts;
            popularity.n_meter_bytes += n_meter_bytes as u64;
        }
        // Those asked for least first.
        let mean = |class: &PopularityClass| class.n_requests as f64 / class.n_names.max(1) as f64;
        popularity
            .classes
            .sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        Ok(popularity)
    }

    fn cs_info(&mut self) -> Result<CsInfo, ControlError> {
        let infos = self.each_engine(|engine| cs_info(engine))?;
        Ok(infos
            .into_iter()
            .reduce(|sum, info| CsInfo {
                // Parts are rounded up.
                capacity: sum.capacity.saturating_add(info.capacity),
                flags: sum.flags,
                n_cs_entries: sum.n_cs_entries + info.n_cs_entries,
                n_hits: sum.n_hits + info.n_hits,
                n_misses: sum.n_misses + info.n_misses,
            })
            .unwrap_or_default())
    }

    fn strategy_set(&mut self, prefix: &Name, strategy: &Name) -> Result<Name, ControlError> {
        let blueprint = &self.threads.team().blueprint;
        let chosen = blueprint
            .settings()
            .strategies
            .insert(prefix.clone(), strategy.clone());
        let (at, new) = (prefix.clone(), strategy.clone());
        let outcomes =
            self.each_engine(move |it| it.choices_mut().set_strategy(at.view(), new.view()))?;
        // All know the same strategies, and have as much room.
        let outcome: Result<Vec<Name>, _> = outcomes.into_iter().collect();
        match outcome {
            Ok(names) => names.into_iter().next().ok_or(ControlError::Unavailable),
            Err(error) => {
                let mut settings = self.threads.team().blueprint.settings();
                match chosen {
                    Some(former) => settings.strategies.insert(prefix.clone(), former),
                    None => settings.strategies.remove(prefix),
                };
                Err(strategy_error(error))
            }
        }
    }

    fn strategy_unset(&mut self, prefix: &Name) -> Result<(), ControlError> {
        let blueprint = &self.threads.team().blueprint;
        let chosen = blueprint.settings().strategies.remove(prefix);
        let name = prefix.clone();
        let outcomes =
            self.each_engine(move |engine| engine.choices_mut().unset_strategy(name.view()))?;
        let refused = outcomes.into_iter().find_map(Result::err);
        if let (Some(_), Some(chosen)) = (&refused, chosen) {
            let mut settings = blueprint.settings();
            settings.strategies.insert(prefix.clone(), chosen);
        }
        refused.map_or(Ok(()), |error| Err(strategy_error(error)))
    }

    fn strategies(&mut self) -> Result<Vec<StrategyChoice>, ControlError> {
        let choices = self.each_engine(|engine| {
            let choice = |(name, strategy): (NameView<'_>, NameView<'_>)| StrategyChoice {
                name: name.to_name(),
                strategy: strategy.to_name(),
            };
            engine
                .choices_mut()
                .strategies()
                .map(choice)
                .collect::<Vec<_>>()
        })?;
        Ok(choices.into_iter().next().unwrap_or_default())
    }

    fn drops(&mut self) -> Result<Vec<DropCount>, ControlError> {
        let dropped = self.each(|plane| drops::collect(plane))?;
        Ok(drops::sum(dropped)
            .into_iter()
            .map(DropCount::from)
            .collect())
    }

    fn recent_drops(
        &mut self,
        prefix: &Name,
        limit: usize,
    ) -> Result<Vec<RecentDrop>, ControlError> {
        let drops = recent_drops::of_all(&self.threads, prefix, limit);
        drops.map_err(|WorkerGone| ControlError::Unavailable)
    }

    fn start_trace(&mut self, request: &TraceRequest) -> Result<u64, ControlError> {
        self.traces.start(request)
    }

    fn read_trace(&mut self, trace_id: u64, read: u64) -> Result<TraceBatch, ControlError> {
        self.traces.read(trace_id, read)
    }

    fn stop_trace(&mut self, trace_id: u64) -> Result<(), ControlError> {
        self.traces.stop(trace_id)
    }

    fn table_memory(&mut self) -> Result<TableMemory, ControlError> {
        let got = self.each_engine(|engine| engine.memory())?;
        let fib = got.first().map(|memory| memory.fib_pages);
        let got = got.iter().map(|memory| memory.own_pages);
        let got = got.fold(fib.unwrap_or_default(), |sum, own| sum + own);
        Ok(TableMemory {
            asked_for: self.pages.to_string(),
            n_base_bytes: got.base_bytes,
            n_transparent_bytes: got.transparent_bytes,
            n_huge_2m_bytes: got.huge_2m_bytes,
            n_huge_1g_bytes: got.huge_1g_bytes,
        })
    }

    fn explain(&mut self, query: &ExplainQuery) -> Result<NameExplanation, ControlError> {
        let home = self.workers.home(&query.name);
        explain_control::explain(&self.threads, home, query)
    }

    fn workers(&mut self) -> Result<WorkersStatus, ControlError> {
        (self.workers.status()).map_err(|WorkerGone| ControlError::Unavailable)
    }

    fn power(&mut self) -> Result<PowerStatus, ControlError> {
        let status = self.power.status(&self.threads, self.workers.n_running());
        status.map_err(|WorkerGone| ControlError::Unavailable)
    }

    fn change_workers(&mut self, change: &WorkersChange) -> Result<(), ControlError> {
        if self.workers.change(change)? {
            // As many Data and as long histories, divided otherwise.
            let max_pkts = self.threads.team().blueprint.settings().cs.max_pkts;
            self.set_cs_capacity(max_pkts)?;
            self.put_cs_policy(&self.content_store)?;
        }
        Ok(())
    }

    fn general_status(&mut self) -> Result<ForwarderStatus, ControlError> {
        let of_engines = self.each_engine(|engine| (engine.sizes(), engine.counters().clone()))?;
        let mut status = ForwarderStatus {
            nfd_version: concat!("tachonym-", env!("CARGO_PKG_VERSION")).into(),
            start_timestamp_ms: self.started_ms,
            current_timestamp_ms: wall_ms(),
            ..ForwarderStatus::default()
        };
        for (sizes, counters) in of_engines {
            // All have one FIB.
            status.n_fib_entries = sizes.n_fib_entries as u64;
            status.n_pit_entries += sizes.n_pit_entries as u64;
            status.n_measurements_entries += sizes.n_measurements as u64;
            status.n_cs_entries += sizes.n_cs_entries as u64;
            status.n_in_interests += counters.n_in_interests;
            status.n_in_data += counters.n_in_data;
            status.n_in_nacks += counters.n_in_nacks;
            status.n_out_interests += counters.n_out_interests;
            status.n_out_data += counters.n_out_data;
            status.n_out_nacks += counters.n_out_nacks;
            status.n_satisfied_interests += counters.n_satisfied_interests;
            status.n_unsatisfied_interests += counters.n_unsatisfied_interests;
        }
        status.n_name_tree_entries = status.n_fib_entries + status.n_pit_entries;
        Ok(status)
    }
}

fn with_changes(options: FaceOptions, changes: &LinkOptions) -> FaceOptions {
    let interval = changes.base_congestion_marking_interval_ns;
    FaceOptions {
        local_fields: changes.local_fields.unwrap_or(options.local_fields),
        reliability: changes.lp_reliability.unwrap_or(options.reliability),
        congestion_marking: changes
            .congestion_marking
            .unwrap_or(options.congestion_marking),
        base_congestion_marking_interval: interval.map_or(
            options.base_congestion_marking_interval,
            Duration::from_nanos,
        ),
        default_congestion_threshold_bytes: changes
            .default_congestion_threshold_bytes
            .unwrap_or(options.default_congestion_threshold_bytes),
    }
}

/// The error repeats the properties that the face cannot have.
fn update_error(error: UpdateError, persistency: Option<FacePersistency>) -> ControlError {
    let mut refused = ControlParameters::default();
    match error {
        UpdateError::BadPersistency => refused.face_persistency = persistency,
        UpdateError::NotLocal => {
            refused.flags = Some(face_flags::LOCAL_FIELDS);
            refused.mask = Some(face_flags::LOCAL_FIELDS);
        }
        _ => return ControlError::FaceNotFound,
    }
    ControlError::Conflict(Box::new(refused))
}

fn create_error(error: CreateError, request: &FaceCreateRequest) -> ControlError {
    let FaceCreateRequest { remote, local, .. } = request;
    match error {
        CreateError::UnsupportedScheme => {
            ControlError::UnsupportedProtocol(remote.scheme().to_owned())
        }
        CreateError::NotCanonical if remote.is_multicast() => ControlError::BadAddress(format!(
            "{remote} is a multicast group; add it to [[faces.multicast]] in the configuration"
        )),
        CreateError::NotCanonical => ControlError::BadAddress(format!(
            "{remote} is no address of a peer; send one, as in udp4://192.0.2.1:6363"
        )),
        CreateError::BadLocalUri => {
            let local = local.as_ref().map(FaceUri::to_string).unwrap_or_default();
            ControlError::BadAddress(format!(
                "{local} cannot be the local end of a face to {remote}; send an address of \
                 this machine with the same scheme, or none"
            ))
        }
        CreateError::BadPersistency => {
            ControlError::Unsupported("faces of this transport cannot be permanent")
        }
        CreateError::NotLocal => ControlError::Unsupported("only local faces have local fields"),
        CreateError::TooManyFaces => ControlError::LimitReached("faces; raise faces.max_faces"),
        CreateError::Io(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionRefused
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable
                    | ErrorKind::TimedOut
            ) =>
        {
            ControlError::NoAnswer(format!("{remote}: {error}"))
        }
        CreateError::Io(error) => {
            ControlError::Socket(format!("cannot create a face to {remote}: {error}"))
        }
        other => ControlError::Socket(other.to_string()),
    }
}

fn strategy_error(error: StrategyError) -> ControlError {
    match error {
        StrategyError::BadParameter => ControlError::StrategyParameters("not understood"),
        StrategyError::PrefixTooLong => ControlError::NameTooLong {
            max_components: MAX_PREFIX_COMPONENTS,
        },
        StrategyError::TableFull => ControlError::LimitReached("strategy choices"),
        _ => ControlError::StrategyNotFound,
    }
}

fn cs_info(engine: &Engine) -> CsInfo {
    let cs = engine.cs();
    let admit = if cs.admits() {
        cs_flags::ENABLE_ADMIT
    } else {
        0
    };
    let serve = if cs.serves() {
        cs_flags::ENABLE_SERVE
    } else {
        0
    };
    CsInfo {
        capacity: cs.capacity().max_pkts as u64,
        flags: admit | serve,
        n_cs_entries: cs.len() as u64,
        n_hits: cs.counters().n_hits,
        // Management is never cached, and no operator reads its queries as misses.
        n_misses: (cs.counters().n_misses)
            .saturating_sub(engine.counters().n_cs_misses_of_management),
    }
}

fn fib_entry(entry: &tachonym_tables::FibEntry) -> FibEntry {
    let hops = entry.next_hops().iter();
    FibEntry {
        name: entry.name().to_name(),
        next_hops: hops
            .map(|hop| NextHopRecord {
                face_id: hop.face().0,
                cost: hop.cost(),
            })
            .collect(),
    }
}
