//! The manager's view of the router: each call is a job for the worker, and
//! returns when the job has run. Routes alone are changed and listed here, on the
//! manager's thread.

use std::io::ErrorKind;
use std::time::{SystemTime, UNIX_EPOCH};

use tachonym_face::{
    CreateError, FaceInfo, FaceParams, FaceUpdate, LinkOptions as FaceOptions, UpdateError,
};
use tachonym_forward::{Routes, StorePolicy, StrategyError};
use tachonym_manage::{
    ControlError, ControlPlane, CsConfig, CsErased, FaceChanges, FaceCreateRequest, FaceCreated,
    FibChange, FibRefusal, FibSlice, LinkOptions,
};
use tachonym_memory::PagePreference;
use tachonym_packet::{FaceId, Name};
use tachonym_policy::PolicyConfig;
use tachonym_protocol::{
    ChannelStatus, ControlParameters, CsInfo, CsPopularity, CsStats, DropCount, FacePersistency,
    FaceState, FaceStatus, FibEntry, ForwarderStatus, NextHopRecord, PopularityClass,
    StrategyChoice, TableMemory, cs_flags, face_flags,
};
use tachonym_tables::{CsCapacity, MAX_PREFIX_COMPONENTS};
use tracing::warn;

use crate::config::ContentStore;
use crate::drops;
use crate::fib_jobs;
use crate::handle::{WorkerGone, WorkerHandle};
use crate::worker::Plane;

/// Most FIB entries that are copied at once, and most faces by one job, which takes some
/// tens of microseconds for which packets wait.
const FIB_ENTRIES_PER_SLICE: usize = 256;
const FACES_PER_JOB: usize = 64;
/// Data that leave the content store at once when it shrinks.
const CS_PKTS_PER_SLICE: usize = 1024;
/// Most prefix announcements that one job forgets; likewise.
const ANNOUNCEMENTS_PER_JOB: usize = 256;

/// The router as its manager sees it.
pub(crate) struct RouterControl {
    worker: WorkerHandle,
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
        worker: WorkerHandle,
        routes: Routes,
        link: FaceOptions,
        pages: PagePreference,
        content_store: ContentStore,
    ) -> Self {
        Self {
            worker,
            routes,
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
            ..self.call(|plane| plane.engine.cs().capacity())?
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
            let capacity = self.call(|plane| plane.engine.cs().capacity())?;
            changed
                .check_memory(capacity.max_slots(), capacity.max_bytes)
                .map_err(ControlError::CsPolicy)?;
            self.put_cs_policy(&changed)?;
            self.content_store = changed;
        }
        Ok(())
    }

    /// Makes the policy for the size that the store has, here and not where packets would
    /// wait for it, and puts it in charge.
    fn put_cs_policy(&self, content_store: &ContentStore) -> Result<(), ControlError> {
        let refused = |error: &dyn std::fmt::Display| ControlError::CsPolicy(error.to_string());
        let seed = getrandom::u64().map_err(|error| refused(&error))?;
        let (n_slots, capacity) = self.call(|plane| plane.engine.cs_policy_size())?;
        let policy = PolicyConfig {
            capacity,
            pages: self.pages,
            ..content_store.policy(seed)
        };
        let policy = StorePolicy::new(&policy, n_slots).map_err(|error| refused(&error))?;
        // Only commands make the store larger, and they come one after the other.
        let fits = self.call(move |plane| plane.engine.set_cs_policy(policy))?;
        if fits {
            Ok(())
        } else {
            Err(refused(&"the content store has grown meanwhile: try again"))
        }
    }

    fn call<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Plane) -> R + Send + 'static,
    ) -> Result<R, ControlError> {
        self.worker
            .call(job)
            .map_err(|WorkerGone| ControlError::Unavailable)
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl ControlPlane for RouterControl {
    fn create_face(&mut self, request: &FaceCreateRequest) -> Result<FaceCreated, ControlError> {
        let mut params = FaceParams::new(request.remote.clone());
        params.local.clone_from(&request.local);
        params.persistency = request.persistency;
        params.link = with_changes(self.link, &request.options);
        params.mtu_bytes = request.options.mtu_bytes;
        self.call(move |plane| {
            let outcome = plane.faces.create(&params).map_err(create_error)?;
            plane.handle_face_events();
            let status = status(plane, outcome.id).ok_or(ControlError::FaceNotFound)?;
            Ok(match (outcome.already_existed, outcome.is_up) {
                (true, _) => FaceCreated::Existing(status),
                (false, true) => FaceCreated::New(status),
                (false, false) => FaceCreated::Connecting(status),
            })
        })?
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
                .map(std::time::Duration::from_nanos),
            default_congestion_threshold_bytes: changes.options.default_congestion_threshold_bytes,
        };
        let persistency = changes.persistency;
        self.call(move |plane| {
            plane
                .faces
                .update(face, &update)
                .map_err(|error| update_error(error, persistency))?;
            plane.renew_traits(face);
            status(plane, face).ok_or(ControlError::FaceNotFound)
        })?
    }

    fn destroy_face(&mut self, face: FaceId) -> Result<(), ControlError> {
        self.call(move |plane| {
            plane.faces.destroy(face);
            plane.handle_face_events();
        })
    }

    fn faces(&mut self) -> Result<Vec<FaceStatus>, ControlError> {
        let mut ids: Vec<_> = self.call(|plane| plane.faces.face_ids().collect())?;
        ids.sort_unstable();
        let mut all = Vec::with_capacity(ids.len());
        for slice in ids.chunks(FACES_PER_JOB) {
            let slice = slice.to_vec();
            let infos: Vec<FaceInfo> = self.call(move |plane| {
                let infos = slice.iter().map(|&id| plane.faces.info(id));
                infos.flatten().collect()
            })?;
            all.extend(infos.iter().map(face_status));
        }
        Ok(all)
    }

    fn channels(&mut self) -> Result<Vec<ChannelStatus>, ControlError> {
        self.call(|plane| {
            let channels = plane.faces.channels();
            channels
                .iter()
                .map(|c| ChannelStatus {
                    local_uri: c.local.to_string(),
                })
                .collect()
        })
    }

    fn fib_apply(&mut self, changes: Vec<FibChange>) -> Result<Vec<FibRefusal>, ControlError> {
        fib_jobs::in_slices(changes, |slice| {
            let faces = fib_jobs::added_faces(&slice);
            let there = self.call(move |plane| {
                let is_there = |face: &FaceId| plane.engine.face(*face).is_some();
                faces.into_iter().filter(is_there).collect::<Vec<_>>()
            })?;
            let refused = fib_jobs::apply_all(&mut self.routes.lock(), slice, &there);
            self.call(move |plane| plane.engine.note_new_next_hops(&there))?;
            Ok(refused)
        })
    }

    fn keep_announcement(
        &mut self,
        prefix: &Name,
        version: u64,
        wire: &[u8],
    ) -> Result<(), ControlError> {
        let (prefix, wire) = (prefix.clone(), wire.to_vec());
        self.call(move |plane| {
            plane
                .engine
                .keep_announcement(prefix.view(), version, &wire)
                .map_err(|_| ControlError::LimitReached("prefix announcements"))
        })?
    }

    fn forget_announcements(&mut self, prefixes: Vec<Name>) -> Result<(), ControlError> {
        for slice in prefixes.chunks(ANNOUNCEMENTS_PER_JOB) {
            let slice = slice.to_vec();
            self.call(move |plane| {
                for prefix in &slice {
                    plane.engine.forget_announcement(prefix.view());
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
            while self.call(move |plane| shrink_some(plane, max_pkts))? {}
            // Shares of the cache are reckoned by its size.
            self.put_cs_policy(&self.content_store)?;
        }
        if let Some(words) = &config.policy {
            self.set_cs_policy(words)?;
        }
        self.call(move |plane| {
            let cs = plane.engine.cs_mut();
            if let Some(admit) = admit {
                cs.set_admits(admit);
            }
            if let Some(serve) = serve {
                cs.set_serves(serve);
            }
            cs_info(plane)
        })
    }

    fn cs_erase(&mut self, prefix: &Name, limit: u64) -> Result<CsErased, ControlError> {
        let prefix = prefix.clone();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.call(move |plane| CsErased {
            n_erased: plane.engine.erase_cs(prefix.view(), limit) as u64,
            has_more: plane.engine.has_cached(prefix.view()),
        })
    }

    fn cs_stats(&mut self) -> Result<CsStats, ControlError> {
        let policy = self.content_store.to_words();
        self.call(move |plane| {
            let (cs, info) = (plane.engine.cs(), cs_info(plane));
            CsStats {
                policy,
                n_cs_entries: info.n_cs_entries,
                capacity: info.capacity,
                n_hits: info.n_hits,
                n_misses: info.n_misses,
                n_inserts: cs.counters().n_inserts,
                n_not_admitted: cs.counters().n_not_admitted_policy,
                n_evictions: cs.counters().n_evictions,
                n_bytes: cs.used_bytes() as u64,
                capacity_bytes: cs.capacity().max_bytes as u64,
                n_policy_bytes: cs.policy_bytes() as u64,
            }
        })
    }

    fn cs_popularity(&mut self) -> Result<CsPopularity, ControlError> {
        let (observed, outcomes, (_, n_meter_bytes)) = self.call(|plane| {
            let policy = plane.engine.cs().policy();
            (
                policy.popularity(),
                policy.outcomes(),
                policy.memory_by_part(),
            )
        })?;
        // What takes long is done here, where no packet waits.
        let measured = observed.measured();
        let classes = measured.classes.iter().map(|class| PopularityClass {
            n_names: class.n_names,
            n_requests: class.n_requests,
        });
        Ok(CsPopularity {
            n_requests: measured.n_requests,
            n_counted_names: measured.n_counted_names,
            n_requests_since_change: outcomes.n_requests,
            n_hits: outcomes.n_hits,
            n_inserts: outcomes.n_inserts,
            n_meter_bytes: n_meter_bytes as u64,
            classes: classes.collect(),
        })
    }

    fn cs_info(&mut self) -> Result<CsInfo, ControlError> {
        self.call(|plane| cs_info(plane))
    }

    fn strategy_set(&mut self, prefix: &Name, strategy: &Name) -> Result<Name, ControlError> {
        let (prefix, strategy) = (prefix.clone(), strategy.clone());
        self.call(move |plane| {
            plane
                .engine
                .set_strategy(prefix.view(), strategy.view())
                .map_err(strategy_error)
        })?
    }

    fn strategy_unset(&mut self, prefix: &Name) -> Result<(), ControlError> {
        let prefix = prefix.clone();
        self.call(move |plane| {
            plane
                .engine
                .unset_strategy(prefix.view())
                .map(drop)
                .map_err(strategy_error)
        })?
    }

    fn strategies(&mut self) -> Result<Vec<StrategyChoice>, ControlError> {
        self.call(|plane| {
            let choice = |(name, strategy): (tachonym_packet::NameView<'_>, _)| StrategyChoice {
                name: name.to_name(),
                strategy: tachonym_packet::NameView::to_name(&strategy),
            };
            plane.engine.strategies().map(choice).collect()
        })
    }

    fn drops(&mut self) -> Result<Vec<DropCount>, ControlError> {
        let mut dropped = self.call(|plane| drops::collect(plane))?;
        dropped.sort_by_key(|dropped| dropped.face);
        Ok(dropped.into_iter().map(DropCount::from).collect())
    }

    fn table_memory(&mut self) -> Result<TableMemory, ControlError> {
        let got = self.call(|plane| plane.engine.memory_pages())?;
        Ok(TableMemory {
            asked_for: self.pages.to_string(),
            n_base_bytes: got.base_bytes,
            n_transparent_bytes: got.transparent_bytes,
            n_huge_2m_bytes: got.huge_2m_bytes,
            n_huge_1g_bytes: got.huge_1g_bytes,
        })
    }

    fn general_status(&mut self) -> Result<ForwarderStatus, ControlError> {
        let start_timestamp_ms = self.started_ms;
        self.call(move |plane| {
            let (sizes, counters) = (plane.engine.sizes(), plane.engine.counters());
            ForwarderStatus {
                nfd_version: concat!("tachonym-", env!("CARGO_PKG_VERSION")).into(),
                start_timestamp_ms,
                current_timestamp_ms: wall_ms(),
                n_name_tree_entries: (sizes.n_fib_entries + sizes.n_pit_entries) as u64,
                n_fib_entries: sizes.n_fib_entries as u64,
                n_pit_entries: sizes.n_pit_entries as u64,
                n_measurements_entries: sizes.n_measurements as u64,
                n_cs_entries: sizes.n_cs_entries as u64,
                n_in_interests: counters.n_in_interests,
                n_in_data: counters.n_in_data,
                n_in_nacks: counters.n_in_nacks,
                n_out_interests: counters.n_out_interests,
                n_out_data: counters.n_out_data,
                n_out_nacks: counters.n_out_nacks,
                n_satisfied_interests: counters.n_satisfied_interests,
                n_unsatisfied_interests: counters.n_unsatisfied_interests,
            }
        })
    }
}

/// Takes the content store some way to a capacity: what has to go goes in parts, so that
/// packets travel on meanwhile. False: it has that capacity, or keeps the one that it has.
fn shrink_some(plane: &mut Plane, max_pkts: usize) -> bool {
    let cs = plane.engine.cs();
    let most_now = cs.len().saturating_sub(CS_PKTS_PER_SLICE);
    let capacity = CsCapacity {
        max_pkts: max_pkts.max(most_now),
        ..cs.capacity()
    };
    if let Err(error) = plane.engine.set_cs_capacity(capacity) {
        // Whoever asked is told what it is now.
        warn!("the content store keeps its capacity: {error}");
        return false;
    }
    capacity.max_pkts > max_pkts
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
            std::time::Duration::from_nanos,
        ),
        default_congestion_threshold_bytes: changes
            .default_congestion_threshold_bytes
            .unwrap_or(options.default_congestion_threshold_bytes),
    }
}

/// The properties that cannot be had are told back.
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

fn create_error(error: CreateError) -> ControlError {
    match error {
        CreateError::UnsupportedScheme => ControlError::UnsupportedProtocol,
        CreateError::NotCanonical => ControlError::BadAddress("FaceUri is not canonical"),
        CreateError::BadLocalUri => ControlError::BadAddress("LocalUri cannot be had"),
        CreateError::BadPersistency => ControlError::Unsupported("such faces are not permanent"),
        CreateError::NotLocal => ControlError::Unsupported("local fields are for local faces only"),
        CreateError::TooManyFaces => ControlError::LimitReached("faces"),
        CreateError::Io(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionRefused
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable
                    | ErrorKind::TimedOut
            ) =>
        {
            ControlError::NoAnswer(error.to_string())
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

fn cs_info(plane: &Plane) -> CsInfo {
    let cs = plane.engine.cs();
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
        n_misses: cs.counters().n_misses,
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

fn status(plane: &Plane, id: FaceId) -> Option<FaceStatus> {
    plane.faces.info(id).map(|info| face_status(&info))
}

fn face_status(info: &FaceInfo) -> FaceStatus {
    let interval_ns = info.link.base_congestion_marking_interval.as_nanos();
    let expires_ms = info.expires_in.map(|left| left.as_millis());
    let counters = &info.counters;
    FaceStatus {
        face_id: info.id.0,
        uri: info.remote.to_string(),
        local_uri: info.local.to_string(),
        expiration_period_ms: expires_ms.and_then(|ms| u64::try_from(ms).ok()),
        face_scope: info.scope,
        face_persistency: info.persistency,
        link_type: info.link_type,
        base_congestion_marking_interval_ns: u64::try_from(interval_ns).ok(),
        default_congestion_threshold_bytes: Some(info.link.default_congestion_threshold_bytes),
        mtu_bytes: info.mtu_bytes,
        n_in_interests: counters.n_in_interests,
        n_in_data: counters.n_in_data,
        n_in_nacks: counters.n_in_nacks,
        n_out_interests: counters.n_out_interests,
        n_out_data: counters.n_out_data,
        n_out_nacks: counters.n_out_nacks,
        n_in_bytes: counters.n_in_bytes,
        n_out_bytes: counters.n_out_bytes,
        flags: info.flags(),
        state: Some(match info.is_up {
            true => FaceState::Up,
            false => FaceState::Down,
        }),
    }
}
