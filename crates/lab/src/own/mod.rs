//! Experiments of this project.

mod content_table;
mod distance;
mod exchange;
mod fairness;
mod forwarders;
mod hot;
mod live;
mod lookup;
mod memory;
mod pit_cs;
mod power;
mod rib;
mod routes;
pub(crate) mod ssd;
mod startup;
mod transfer;
mod verify;
mod waiting;
mod workers;

use tachonym_bench::Experiment;

/// All of them: what runs in this process first, then what measures the running router.
pub(crate) const EXPERIMENTS: &[&[Experiment]] = &[
    distance::EXPERIMENTS,
    lookup::EXPERIMENTS,
    content_table::EXPERIMENTS,
    pit_cs::EXPERIMENTS,
    workers::EXPERIMENTS,
    hot::EXPERIMENTS,
    verify::EXPERIMENTS,
    rib::EXPERIMENTS,
    exchange::EXPERIMENTS,
    waiting::EXPERIMENTS,
    power::EXPERIMENTS,
    routes::EXPERIMENTS,
    memory::EXPERIMENTS,
    startup::EXPERIMENTS,
    transfer::EXPERIMENTS,
    fairness::EXPERIMENTS,
    live::EXPERIMENTS,
    ssd::INDEX,
    ssd::SERVE,
    ssd::LATENCY,
    ssd::AMPLIFICATION,
    ssd::RECOVERY,
    ssd::HIT_PATH,
    ssd::FOYER,
];
