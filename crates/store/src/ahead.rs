//! How far ahead of a consumer batches are read.
//!
//! The last Data but one of each batch is marked in the DRAM level: a consumer that requests it
//! is about to request the next batch (left for later in Mansilha 2017, section 3.2). A hit then
//! costs one look at a byte in the cache line at hand. The next batch is read unless the first
//! level has it. If the consumer requests more than one batch during a read, as many more are
//! read, and one in addition, up to `read_ahead`. Nothing is read ahead while half of the
//! buffers are in use.
//!
//! Owns the time of each consumer's last request, from which its pace follows. Consumers of
//! different objects, or at different places of one, are told apart by the batch that each is
//! expected to reach; of two that share a place in the table, one is taken for new.

use tachonym_packet::MonoNs;

/// Consumers that are followed.
const N_FLOWS: usize = 4096;

/// Weight of a new measurement of the time that a read takes.
const WEIGHT: u64 = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Object and batch that the consumer will reach next.
    expected: u64,
    since: MonoNs,
    /// The batch up to which was read.
    read_until: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ahead {
    flows: Box<[Flow]>,
    max_depth: u32,
    /// How long a read takes, smoothed, in nanoseconds.
    read_ns: u64,
}

impl Ahead {
    pub(crate) fn new(max_depth: u32) -> Self {
        Self {
            flows: vec![Flow::default(); N_FLOWS].into(),
            max_depth,
            read_ns: 0,
        }
    }

    /// A read took so long.
    pub(crate) fn note_read(&mut self, took_ns: u64) {
        self.read_ns = match self.read_ns {
            0 => took_ns,
            before => before - before / WEIGHT + took_ns / WEIGHT,
        };
    }

    /// A consumer is about to leave a batch of an object, which the hash stands for. Which
    /// batches are to be read now.
    pub(crate) fn plan(&mut self, now: MonoNs, object: u64, batch: u64) -> std::ops::Range<u64> {
        if self.max_depth == 0 {
            return 0..0;
        }
        let here = self.flow(object, batch);
        let known = Some(*here).filter(|flow| flow.expected == id(object, batch));
        let depth = match known {
            Some(flow) => {
                let pace_ns = (now.saturating_since(flow.since).as_nanos() as u64).max(1);
                // Twice the mean, for some reads take longer.
                let n_meanwhile = 2 * self.read_ns / pace_ns;
                (1 + n_meanwhile).min(u64::from(self.max_depth))
            }
            None => 1,
        };
        let read_until = known.map_or(batch, |flow| flow.read_until.max(batch));
        let until = batch.saturating_add(depth);
        let next = batch.saturating_add(1);
        *self.flow(object, next) = Flow {
            expected: id(object, next),
            since: now,
            read_until: until.max(read_until),
        };
        read_until.saturating_add(1)..until.saturating_add(1)
    }

    fn flow(&mut self, object: u64, batch: u64) -> &mut Flow {
        let idx = id(object, batch) as usize % N_FLOWS;
        &mut self.flows[idx]
    }
}

/// What an object's batch is known by.
fn id(object: u64, batch: u64) -> u64 {
    let mixed =
        (object ^ batch.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_slow_consumer_has_one_batch_read_ahead() {
        let mut ahead = Ahead::new(8);
        ahead.note_read(MS);
        for batch in 0..20 {
            let at = MonoNs(batch * 1_000 * MS);
            assert_eq!(ahead.plan(at, 77, batch), batch + 1..batch + 2);
        }
    }

    #[test]
    fn a_fast_consumer_has_more_read_ahead_but_not_without_bound() {
        let mut ahead = Ahead::new(8);
        ahead.note_read(10 * MS);
        let mut read_until = 0;
        for batch in 0..50 {
            let at = MonoNs(batch * 5 * MS);
            let planned = ahead.plan(at, 5, batch);
            assert!(planned.start > read_until, "nothing is read twice");
            read_until = planned.end - 1;
            assert!(read_until <= batch + 8);
        }
        assert_eq!(
            read_until,
            49 + 5,
            "four batches while one is read, and one more"
        );
        ahead.note_read(1_000_000 * MS);
        assert_eq!(ahead.plan(MonoNs(50 * 5 * MS), 5, 50), 55..59);
    }

    #[test]
    fn consumers_are_told_apart_and_none_is_read_ahead_for_if_that_is_off() {
        let mut ahead = Ahead::new(4);
        assert_eq!(ahead.plan(MonoNs(1), 1, 9), 10..11);
        assert_eq!(ahead.plan(MonoNs(1), 2, 9), 10..11);
        assert_eq!(ahead.plan(MonoNs(1), 1, 3), 4..5);
        assert_eq!(Ahead::new(0).plan(MonoNs(1), 1, 3), 0..0);
        assert!(ahead.plan(MonoNs(1), 1, u64::MAX).is_empty());
    }
}
