//! A policy for tests and benches.

use tachonym_policy::{AdmissionKind, EvictionKind, Policy, PolicyConfig};

/// Everything is admitted; the Data that was used longest ago is evicted first.
pub(crate) fn lru(n_slots: usize) -> Policy {
    let config = PolicyConfig::new(AdmissionKind::None, EvictionKind::Lru, n_slots);
    Policy::new(&config).expect("little memory")
}
