//! The figures of Iqbal 2013, chapters 4 and 5, as far as its text tells them, and why
//! some differ from what is simulated here.

/// Reordering and flow shifts below DLB with 16 flows tracked, in percent (sections 4.5.2).
pub(super) const REORDERING_BELOW_DLB_PCT: f64 = 85.0;
pub(super) const SHIFTS_BELOW_DLB_PCT: f64 = 80.0;

/// Throughput of LAPS by that of AFS and of FCFS (section 5.4.1).
pub(super) const BY_AFS: f64 = 1.56;
pub(super) const BY_FCFS: f64 = 2.0;

/// Flows in the overloaded core's queue when one moves (section 4.5.3).
pub(super) const FLOWS_AT_MIGRATION: &str = "15 to 20";

/// False positives of 16 with an annex cache of 512 (section 4.5.1): of the traces that the
/// number stands for.
pub(super) fn false_positives(trace: &str) -> Option<u32> {
    Some(match trace {
        "caida 1" => 2,
        "caida 2" => 3,
        "auckland 1" | "auckland 2" => 0,
        _ => return None,
    })
}

/// Packets that meet a cold cache with FCFS and AFS, in percent (section 5.4.2).
pub(super) const COLD_PCT: f64 = 60.0;

/// What stands for the traces.
pub(super) const TRACES: &str = "The traces of the thesis are not available: `caida` and \
`auckland` are drawn, with flow sizes that fall as (rank + q)^-a, a assumed";
