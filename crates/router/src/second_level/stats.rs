//! What the second level of an engine has done, as management tells it.

use tachonym_face::monotonic_now;
use tachonym_forward::Engine;
use tachonym_protocol::{SecondLevelBalance, SecondLevelStats};

/// Nanoseconds of a day.
const DAY_NS: u128 = 24 * 3_600 * 1_000_000_000;

/// How the second level of an engine stands, if it has one.
pub(crate) fn stats(engine: &mut Engine) -> Option<SecondLevelStats> {
    let store = engine.second_level()?;
    let (counters, of_engine) = (store.counters(), engine.counters());
    let since_start = monotonic_now()
        .saturating_since(store.started_at())
        .as_nanos();
    let per_day = u128::from(counters.n_written_bytes) * DAY_NS / since_start.max(1);
    let (n_indexed, max_indexed) = store.index_len();
    let n_hits = of_engine.n_second_level_hits;
    Some(SecondLevelStats {
        n_hits,
        n_misses: (of_engine.n_cs_misses)
            .saturating_sub(n_hits + of_engine.n_cs_misses_of_management),
        n_reads: counters.n_reads + counters.n_reads_ahead,
        n_reads_ahead: counters.n_reads_ahead,
        n_read_bytes: counters.n_read_bytes,
        n_inserts: counters.n_written.saturating_sub(counters.n_lost),
        n_not_admitted: counters.n_not_admitted,
        n_lost: counters.n_lost + counters.n_dropped,
        n_data_bytes: counters.n_written_data_bytes,
        n_written_bytes: counters.n_written_bytes,
        n_written_bytes_per_day: u64::try_from(per_day).unwrap_or(u64::MAX),
        n_indexed: n_indexed as u64,
        max_indexed: max_indexed as u64,
        n_device_errors: counters.n_device_errors,
        n_damaged: counters.n_damaged,
        n_lost_volumes: store.n_lost_volumes() as u64,
        n_recovered: counters.n_recovered,
        is_recovering: store.is_recovering(),
        n_erasures_merged: Some(counters.n_erasures_merged),
        balance: Some(SecondLevelBalance {
            n_offered: counters.n_offered,
            n_known: counters.n_known,
            n_unsuited: counters.n_unsuited,
            n_no_room: counters.n_no_room,
            n_replaced: counters.n_replaced,
            n_erased: counters.n_erased,
            n_waiting: store.n_waiting() as u64,
            n_not_indexed: counters.n_not_indexed,
            n_crowded_out: counters.n_crowded_out,
            n_emptied_early: counters.n_regions_emptied_early,
            n_prefixes_not_indexed: counters.n_prefixes_not_indexed,
        }),
        n_sought_refused: Some(of_engine.n_sought_refused),
        n_reads_refused: Some(counters.n_busy),
    })
}

/// How two stand together.
pub(crate) fn sum(a: SecondLevelStats, b: SecondLevelStats) -> SecondLevelStats {
    SecondLevelStats {
        n_hits: a.n_hits + b.n_hits,
        n_misses: a.n_misses + b.n_misses,
        n_reads: a.n_reads + b.n_reads,
        n_reads_ahead: a.n_reads_ahead + b.n_reads_ahead,
        n_read_bytes: a.n_read_bytes + b.n_read_bytes,
        n_inserts: a.n_inserts + b.n_inserts,
        n_not_admitted: a.n_not_admitted + b.n_not_admitted,
        n_lost: a.n_lost + b.n_lost,
        n_data_bytes: a.n_data_bytes + b.n_data_bytes,
        n_written_bytes: a.n_written_bytes + b.n_written_bytes,
        n_written_bytes_per_day: a.n_written_bytes_per_day + b.n_written_bytes_per_day,
        n_indexed: a.n_indexed + b.n_indexed,
        max_indexed: a.max_indexed + b.max_indexed,
        n_device_errors: a.n_device_errors + b.n_device_errors,
        n_damaged: a.n_damaged + b.n_damaged,
        n_lost_volumes: a.n_lost_volumes + b.n_lost_volumes,
        n_recovered: a.n_recovered + b.n_recovered,
        is_recovering: a.is_recovering || b.is_recovering,
        n_erasures_merged: a
            .n_erasures_merged
            .zip(b.n_erasures_merged)
            .map(|(a, b)| a + b),
        balance: a
            .balance
            .zip(b.balance)
            .map(|(a, b)| sum_of_balances(&a, &b)),
        n_sought_refused: a
            .n_sought_refused
            .zip(b.n_sought_refused)
            .map(|(a, b)| a + b),
        n_reads_refused: a.n_reads_refused.zip(b.n_reads_refused).map(|(a, b)| a + b),
    }
}

const fn sum_of_balances(a: &SecondLevelBalance, b: &SecondLevelBalance) -> SecondLevelBalance {
    SecondLevelBalance {
        n_offered: a.n_offered + b.n_offered,
        n_known: a.n_known + b.n_known,
        n_unsuited: a.n_unsuited + b.n_unsuited,
        n_no_room: a.n_no_room + b.n_no_room,
        n_replaced: a.n_replaced + b.n_replaced,
        n_erased: a.n_erased + b.n_erased,
        n_waiting: a.n_waiting + b.n_waiting,
        n_not_indexed: a.n_not_indexed + b.n_not_indexed,
        n_crowded_out: a.n_crowded_out + b.n_crowded_out,
        n_emptied_early: a.n_emptied_early + b.n_emptied_early,
        n_prefixes_not_indexed: a.n_prefixes_not_indexed + b.n_prefixes_not_indexed,
    }
}
