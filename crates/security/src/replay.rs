//! Replays: telling a new signed Interest from one seen before.
//!
//! Owns the memory of what each key has signed lately. An Interest counts once:
//! its time must lie within the grace period around now, and its nonce (or,
//! without one, what it signs) must not have been seen from this key. Commands
//! of several programs that share a key may thus overtake each other, which a
//! rule of strictly increasing timestamps forbids. Sequence numbers
//! must increase. Memory is bounded per key and in keys; what is forgotten
//! early is counted, and for a verified key everything as old as what was
//! forgotten is refused from then on, so that forgetting never admits a replay.
//! That is why a verified key has to tell the time. A restart forgets everything: what
//! was signed before it is refused. The time of the start is reckoned back from the wall
//! clock by the time that has passed since, so that it stays right when that clock is set.
//! A signer whose clock is behind is refused until its clock has passed the start; one
//! whose clock is ahead can be repeated for as long after a restart. Where any
//! signer is accepted, a peer can sign its own: there an Interest without nonce and time is
//! accepted again, as some clients send their commands.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;

use tachonym_packet::{MonoNs, Name};

use crate::{Reject, SignedForm, SignedInterest};

/// Limits of replay protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayConfig {
    /// How far the time of a signed Interest may lie before or after now, in
    /// milliseconds.
    pub grace_ms: u64,
    /// Whether one must tell its time that nobody in particular has signed: by
    /// digest, or with a key that no policy knows. One signed with a trusted key
    /// always must.
    pub require_time: bool,
    /// Interests remembered for one key.
    pub max_interests_per_key: usize,
    /// Keys remembered.
    pub max_keys: usize,
}

impl Default for ReplayConfig {
    /// Two minutes of grace, time required; 4096 Interests for each of at most
    /// 1024 keys.
    fn default() -> Self {
        Self {
            grace_ms: 120_000,
            require_time: true,
            max_interests_per_key: 4096,
            max_keys: 1024,
        }
    }
}

/// What replay protection forgot early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounters {
    /// Interests forgotten because their key had too many.
    pub n_interests_evicted: u64,
    /// Keys forgotten because there were too many.
    pub n_keys_evicted: u64,
}

/// What each key has signed lately.
#[derive(Debug)]
pub(crate) struct ReplayGuard {
    config: ReplayConfig,
    hasher: RandomState,
    by_key: HashMap<Name, Record>,
    /// Digests and unverified keys, which strangers can mint, share this.
    anonymous: Record,
    /// Newest time that a forgotten key had used.
    forgotten_until_ms: u64,
    /// What was signed before was perhaps accepted by a former guard.
    started: MonoNs,
    n_used: u64,
    pub(crate) counters: ReplayCounters,
}

/// Now, on two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The clock that is never set.
    pub(crate) now: MonoNs,
    /// Milliseconds since the Unix epoch.
    pub(crate) wall_ms: u64,
}

impl Times {
    /// What the wall clock, as it is set now, would have shown at `moment`. Rounded down,
    /// so that what is signed from then on is never earlier.
    fn wall_ms_at(self, moment: MonoNs) -> u64 {
        let elapsed_ns = self.now.saturating_since(moment).as_nanos();
        let elapsed_ms = u64::try_from(elapsed_ns.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        self.wall_ms.saturating_sub(elapsed_ms)
    }
}

/// One signed Interest as it is remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The Interest's own time, or that of its arrival.
    time_ms: u64,
    has_time: bool,
    /// Whether two of them cannot be alike by intent.
    is_distinct: bool,
    /// Hash of the nonce, or of what is signed.
    token: u64,
    seq_num: Option<u64>,
}

#[derive(Debug, Default)]
struct Record {
    by_time: BTreeSet<(u64, u64)>,
    tokens: HashSet<u64>,
    /// Nothing this old is new any more.
    floor_ms: u64,
    last_seq_num: Option<u64>,
    last_used: u64,
}

impl ReplayGuard {
    pub(crate) fn new(config: ReplayConfig, started: MonoNs) -> Self {
        Self {
            config,
            hasher: RandomState::new(),
            by_key: HashMap::new(),
            anonymous: Record::default(),
            forgotten_until_ms: 0,
            started,
            n_used: 0,
            counters: ReplayCounters::default(),
        }
    }

    /// Checks the time, and notes what is to be remembered of `signed`.
    pub(crate) fn mark(&self, signed: &SignedInterest<'_>, times: Times) -> Result<Mark, Reject> {
        let wall_ms = times.wall_ms;
        let time_ms = match signed.time_ms() {
            Some(time_ms) if time_ms.abs_diff(wall_ms) > self.config.grace_ms => {
                return Err(Reject::OutsideGrace);
            }
            Some(time_ms) if time_ms < times.wall_ms_at(self.started) => {
                return Err(Reject::BeforeStart);
            }
            time_ms => time_ms,
        };
        let token = match signed.nonce() {
            Some(nonce) if signed.form() == SignedForm::V03 => self.hasher.hash_one(nonce),
            _ => self.hasher.hash_one(signed.signed_parts()),
        };
        Ok(Mark {
            time_ms: time_ms.unwrap_or(wall_ms),
            has_time: time_ms.is_some(),
            is_distinct: time_ms.is_some()
                || signed.nonce().is_some()
                || signed.seq_num().is_some(),
            token,
            seq_num: signed.seq_num(),
        })
    }

    /// Whether `mark` is new from this key; `None`: from nobody in particular.
    pub(crate) fn check(&self, key_name: Option<&Name>, mark: &Mark) -> Result<(), Reject> {
        if !mark.has_time && (key_name.is_some() || self.config.require_time) {
            return Err(Reject::MissingTime);
        }
        let is_new = match key_name {
            None => !mark.is_distinct || !self.anonymous.tokens.contains(&mark.token),
            Some(name) => match self.by_key.get(name) {
                Some(record) => record.is_new(mark),
                None => mark.time_ms > self.forgotten_until_ms,
            },
        };
        if is_new {
            Ok(())
        } else {
            Err(Reject::Replayed)
        }
    }

    /// Remembers `mark`, which was new and whose signature was good.
    pub(crate) fn remember(&mut self, key_name: Option<&Name>, mark: &Mark) {
        let max_interests = self.config.max_interests_per_key.max(1);
        let record = match key_name {
            None if !mark.is_distinct => return,
            None => &mut self.anonymous,
            Some(name) => {
                if !self.by_key.contains_key(name) {
                    self.make_room();
                }
                self.n_used += 1;
                // A key that was forgotten may come back: what it signed before then is
                // as old as before.
                let floor_ms = self.forgotten_until_ms;
                let record = self.by_key.entry(name.clone());
                let record = record.or_insert_with(|| Record {
                    floor_ms,
                    ..Record::default()
                });
                record.last_used = self.n_used;
                record
            }
        };
        record.last_seq_num = record.last_seq_num.max(mark.seq_num);
        record.tokens.insert(mark.token);
        record.by_time.insert((mark.time_ms, mark.token));
        while record.by_time.len() > max_interests {
            let Some((time_ms, token)) = record.by_time.pop_first() else {
                break;
            };
            record.tokens.remove(&token);
            record.floor_ms = record.floor_ms.max(time_ms);
            self.counters.n_interests_evicted += 1;
        }
    }

    /// Forgets the key unused for longest while there are too many.
    fn make_room(&mut self) {
        while self.by_key.len() >= self.config.max_keys.max(1) {
            let oldest = self.by_key.iter().min_by_key(|(_, r)| r.last_used);
            let Some(name) = oldest.map(|(name, _)| name.clone()) else {
                return;
            };
            if let Some(record) = self.by_key.remove(&name) {
                let newest_ms = record.by_time.last().map_or(0, |(time_ms, _)| *time_ms);
                self.forgotten_until_ms = self.forgotten_until_ms.max(newest_ms);
            }
            self.counters.n_keys_evicted += 1;
        }
    }
}

impl Record {
    fn is_new(&self, mark: &Mark) -> bool {
        let is_ordered = match (mark.seq_num, self.last_seq_num) {
            (Some(seq_num), Some(last)) => seq_num > last,
            _ => true,
        };
        is_ordered && mark.time_ms > self.floor_ms && !self.tokens.contains(&mark.token)
    }
}
