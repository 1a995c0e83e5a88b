//! The services that workers are divided among: forwarding, and verification where it has
//! workers of its own.

use tachonym_dispatch::{Laps, LapsConfig, Publisher, ServiceId};
use tachonym_workers::{Scheduler, Services};

use crate::config::Config;
use crate::layout::Layout;

/// Packets that wait for a worker from which on names move off it.
const HIGH_THRESHOLD_PKTS: u32 = 256;
/// What a worker does in a second, in packets: below what one core can, for a service that
/// needs more than it has got should not have to drop first. Half of the packets that are
/// verified are Interests.
const FORWARDING_PPS: f64 = 500e3;
const VERIFICATION_PPS: f64 = 20e3;
/// A service gives a worker back when it has not needed it for so long.
const SURPLUS_AFTER_NS: u64 = 10_000_000_000;
/// All other names.
pub(crate) const FORWARDING: ServiceId = ServiceId(0);
/// Names whose Data are verified; see [`Config::verification`].
pub(crate) const VERIFICATION: ServiceId = ServiceId(1);

/// The names that are not only forwarded, if there are workers for each service.
pub(crate) fn services(config: &Config) -> anyhow::Result<Services> {
    if !config.verifies_apart() {
        return Ok(Services::default());
    }
    let prefixes = config.verification.iter();
    let prefixes = prefixes.map(|rule| Ok((rule.prefix.parse()?, VERIFICATION)));
    Ok(Services::new(prefixes.collect::<anyhow::Result<_>>()?))
}

/// What divides the names among the workers.
pub(crate) fn scheduler(config: &Config, layout: &Layout) -> anyhow::Result<Scheduler> {
    let mut worker_rates_pps = vec![FORWARDING_PPS];
    if config.verifies_apart() {
        worker_rates_pps.push(VERIFICATION_PPS);
    }
    let mut laps = Laps::new(&LapsConfig {
        map: config.workers.map.kind(),
        rule: config.workers.migrate.rule(),
        high_threshold: HIGH_THRESHOLD_PKTS,
        idle_ns: SURPLUS_AFTER_NS,
        worker_rates_pps,
        ..LapsConfig::new(layout.n_workers())
    })?;
    if !config.workers.balance {
        laps.freeze();
    }
    let publisher = Publisher::new(laps.homes());
    let lifetime_ms = config.forwarding.max_interest_lifetime_ms;
    let n_workers = layout.n_worker_threads();
    Ok(Scheduler::new(
        laps,
        n_workers,
        publisher,
        Vec::new(),
        lifetime_ms,
    ))
}
