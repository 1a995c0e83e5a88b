//! From a configuration to engines.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tachonym_dispatch::WorkerId;
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Schedule, UnsolicitedDataPolicy};
use tachonym_packet::{FaceId, HashKey, Name};
use tachonym_tables::{
    CsCapacity, FibConfig, FibEngine, FibMatching, IndexKind, NextHop, PitConfig, PitCsLayout,
};
use tracing::{info, warn};

use crate::blueprint::Blueprint;
use crate::config::{self, Config, NameHash, TableIndex, UnsolicitedData};
use crate::null_face;
use crate::strategies;

/// What engines are made of, and the first of them. Names are hashed by `secret`, or else by
/// one that is new.
pub(crate) fn blueprint(
    config: &Config,
    managed: &[Name],
    secret: Option<[u8; 32]>,
) -> anyhow::Result<(Blueprint, Engine)> {
    let t = &config.tables;
    let n_workers = usize::from(config.workers.threads);
    let running = (0..config.workers.threads).map(WorkerId).collect();
    let all_stores = CsCapacity {
        max_pkts: t.cs_packets,
        max_bytes: t.cs_bytes,
    };
    let key = hash_key(t.name_hash, secret)?;
    let mut engine_config = engine_config(config)?;
    engine_config.management_prefix = managed.first().cloned();
    engine_config.cs = CsCapacity {
        max_pkts: t.cs_packets.div_ceil(n_workers),
        max_bytes: t.cs_bytes.div_ceil(n_workers),
    };
    let mut first = Engine::new(engine_config.clone(), key.clone(), getrandom::u64()?)?;
    first.add_face(FaceId::INTERNAL, FaceTraits::LOCAL);
    first.add_face(FaceId::NULL, null_face::TRAITS);
    for prefix in managed {
        add_management_route(&mut first, prefix)?;
    }
    let blueprint = Blueprint::new(&first, engine_config, key, all_stores, running);
    let mut settings = blueprint.settings();
    for choice in &config.strategy {
        let prefix: Name = choice.prefix.parse()?;
        let strategy =
            strategies::find(&choice.strategy).with_context(|| choice.strategy.clone())?;
        if strategies::learns_routes(&strategy) && !config.management.announcements.learn {
            warn!(
                "{prefix} has the strategy self-learning, but this router learns no routes: each \
                 Interest without a route floods to all neighbours; set \
                 management.announcements.learn = true, unless only other routers are to learn"
            );
        }
        settings.strategies.insert(prefix, strategy);
    }
    drop(settings);
    blueprint.configure(&mut first)?;
    Ok((blueprint, first))
}

/// Of a worker: its part of the tables.
fn engine_config(config: &Config) -> anyhow::Result<EngineConfig> {
    let t = &config.tables;
    let n_workers = config.workers.most();
    let regions: Result<Vec<Name>, _> = config
        .forwarding
        .producer_region
        .iter()
        .map(|name| name.parse())
        .collect();
    Ok(EngineConfig {
        pit: PitConfig {
            max_entries: t.pit_entries.div_ceil(n_workers),
            max_bytes: t.pit_bytes.div_ceil(n_workers),
            index: match t.index {
                TableIndex::Single => IndexKind::Single,
                TableIndex::DLeft => IndexKind::DLeft,
            },
            pages: config.memory.pages.into(),
            ..PitConfig::default()
        },
        cs: CsCapacity {
            max_pkts: t.cs_packets,
            max_bytes: t.cs_bytes,
        },
        pit_cs: match t.pit_cs {
            config::PitCsLayout::Separate => PitCsLayout::Separate,
            config::PitCsLayout::Composite => PitCsLayout::Composite,
        },
        cs_policy: config
            .content_store
            .policy(getrandom::u64()?)
            .for_one_of(config.workers.threads.into()),
        routes: None,
        fib: fib(config),
        max_lifetime_ms: config.forwarding.max_interest_lifetime_ms,
        dead_nonce_lifetime: Duration::from_millis(t.dead_nonce_ms),
        dead_nonces_max: t.dead_nonces.div_ceil(n_workers),
        unsolicited_data: match config.forwarding.unsolicited_data {
            UnsolicitedData::DropAll => UnsolicitedDataPolicy::DropAll,
            UnsolicitedData::AdmitLocal => UnsolicitedDataPolicy::AdmitLocal,
            UnsolicitedData::AdmitNetwork => UnsolicitedDataPolicy::AdmitNetwork,
            UnsolicitedData::AdmitAll => UnsolicitedDataPolicy::AdmitAll,
        },
        producer_regions: regions?,
        verify_parameters_digest: config.forwarding.verify_parameters_digest,
        management_prefix: None,
        schedule: match config.forwarding.schedule {
            config::Schedule::Naive => Schedule::Naive,
            config::Schedule::BucketPrefetch => Schedule::BucketPrefetch,
            config::Schedule::PreHash => Schedule::PreHash,
            config::Schedule::Shtl => Schedule::Shtl,
            config::Schedule::Burst => Schedule::Burst,
        },
        burst_distance: config.forwarding.burst_distance.into(),
    })
}

fn fib(config: &Config) -> FibConfig {
    let t = &config.tables;
    FibConfig {
        pages: config.memory.pages.into(),
        engine: match t.fib_engine {
            config::FibEngine::LongestFirst => FibEngine::LongestFirst,
            config::FibEngine::TwoStage => FibEngine::TwoStage { first: 0 },
            config::FibEngine::BinarySearch => FibEngine::BinarySearch,
            config::FibEngine::ShortestFirst => FibEngine::ShortestFirst,
        },
        matching: match t.fib_matching {
            config::FibMatching::AtEnd => FibMatching::AtEnd,
            config::FibMatching::Always => FibMatching::Always,
        },
        level_pulling: t.fib_level_pulling,
        // The routes of management come on top.
        ..FibConfig::with_max_entries(t.routes + 2)
    }
}

/// A key for the function that `choice` asks for, which the log tells.
fn hash_key(choice: NameHash, secret: Option<[u8; 32]>) -> anyhow::Result<HashKey> {
    let kind = choice.kind();
    info!("name hash: {kind}");
    if !kind.is_native() {
        warn!(
            "tables.name_hash: this processor has no instructions for {kind}, which slows down \
             every packet; set \"auto\""
        );
    }
    let secret = match secret {
        Some(secret) => secret,
        None => {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret)?;
            secret
        }
    };
    Ok(HashKey::new(kind, &secret))
}

/// Management is reached like any producer: by a route to the internal face.
fn add_management_route(engine: &mut Engine, prefix: &Name) -> anyhow::Result<()> {
    let hop = NextHop::new(FaceId::INTERNAL, 0);
    engine
        .add_next_hop(prefix.view(), hop)
        .map_err(|e| anyhow!("{e}"))
}
