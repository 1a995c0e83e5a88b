//! `[content_store]`: the policy of the DRAM level.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tachonym_policy::{AdmissionKind, EvictionKind, PolicyConfig, PolicyError};
use tachonym_tables::CsCapacity;

use super::Config;
use super::faults::Faults;

/// The policy of the DRAM level of the content store. Its size is set in `[tables]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContentStore {
    /// Which Data packets are admitted to DRAM: those that arrive, and those that were read
    /// from SSD for an Interest. `none` admits all of them; `lcp` each one with
    /// `lcp_probability`; `k-lru` those that went through a chain of `k_lru_stages` caches,
    /// one a request; `filter` those requested `filter_threshold` times among the last
    /// `filter_history` Interests; `filter-auto` does the same with a threshold that follows
    /// the traffic; `tinylfu` those requested more often than the Data they would replace;
    /// `w-tinylfu` does the same after a small window that admits everything.
    /// `tachonym cs config --policy` changes it while the router runs.
    pub admission: Admission,
    /// Which Data packet is replaced when the store is full. `2q`, `arc`, `lirs` and
    /// `s3-fifo` test new Data by themselves and allow only `none` or `lcp` as `admission`.
    /// `tachonym-lab run own/cache-rates` compares the policies on a workload or a trace;
    /// `tachonym cs config --policy` changes it while the router runs.
    pub eviction: Eviction,
    /// With `filter`: how often a name must be requested.
    pub filter_threshold: u32,
    /// With `filter`: Interests that are remembered; 0: as many as the store holds packets.
    pub filter_history: usize,
    /// With `lcp`: probability with which a Data packet is admitted, 0 to 1.
    pub lcp_probability: f64,
    /// With `k-lru`: caches of the chain, 2 to 8. The last one is the store; the others hold
    /// as many names as the store holds packets.
    pub k_lru_stages: usize,
}

impl Default for ContentStore {
    fn default() -> Self {
        Self {
            admission: Admission::default(),
            eviction: Eviction::default(),
            filter_threshold: 2,
            filter_history: 0,
            lcp_probability: 0.1,
            k_lru_stages: 2,
        }
    }
}

impl ContentStore {
    /// The policy without the size of the store. `seed` seeds its random numbers.
    #[must_use]
    pub fn policy(&self, seed: u64) -> PolicyConfig {
        PolicyConfig {
            threshold: self.filter_threshold,
            history_len: (self.filter_history > 0).then_some(self.filter_history),
            probability: self.lcp_probability,
            n_stages: self.k_lru_stages,
            seed,
            ..PolicyConfig::new(self.admission.into(), self.eviction.into(), 0)
        }
    }
}

/// Memory that a policy may use for any size of store, in bytes.
pub(crate) const FREE_TABLE_BYTES: u64 = 16 << 20;

impl ContentStore {
    /// Whether the policy's tables are no larger than the store: `max_slots` packets in
    /// `cs_bytes`.
    ///
    /// # Errors
    /// How large they are, as text.
    pub fn check_memory(&self, max_slots: usize, cs_bytes: usize) -> Result<(), String> {
        let policy = PolicyConfig {
            capacity: max_slots,
            ..self.policy(0)
        };
        let table_bytes = policy.table_bytes();
        let max_bytes = (cs_bytes as u64).max(FREE_TABLE_BYTES);
        if table_bytes <= max_bytes {
            return Ok(());
        }
        Err(format!(
            "the policy's tables take {table_bytes} bytes, but only {max_bytes} are allowed \
             for this tables.cs_bytes"
        ))
    }

    /// As words `key=value` separated by commas, without the keys that the policy ignores.
    #[must_use]
    pub fn to_words(&self) -> String {
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let mut words = format!(
            "admission={},eviction={}",
            word(json!(self.admission)),
            word(json!(self.eviction))
        );
        match self.admission {
            Admission::Lcp => {
                words += &format!(",lcp_probability={}", self.lcp_probability);
            }
            Admission::KLru => words += &format!(",k_lru_stages={}", self.k_lru_stages),
            Admission::Filter => {
                words += &format!(
                    ",filter_threshold={},filter_history={}",
                    self.filter_threshold, self.filter_history
                );
            }
            _ => {}
        }
        words
    }

    /// This policy changed by `words`, in the form of [`ContentStore::to_words`].
    ///
    /// # Errors
    /// What is wrong with `words`, as text.
    pub fn with_words(&self, words: &str) -> Result<Self, String> {
        let mut values = json!(self);
        for word in words.split(',') {
            let (key, text) = word
                .split_once('=')
                .ok_or_else(|| format!("`{word}` is not a key, an equals sign and a value"))?;
            // Numbers are written as in JSON; everything else is a string.
            let value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            values[key] = value;
        }
        let changed: Self = serde_json::from_value(values).map_err(|error| error.to_string())?;
        let checked = changed.policy(0).check().map(|()| changed);
        checked.map_err(|error| error.to_string())
    }
}

/// Checks `[content_store]` against the size in `[tables]`.
pub(super) fn check(config: &Config, found: &mut Faults) {
    let (store, t) = (&config.content_store, &config.tables);
    let Err(error) = store.policy(0).check() else {
        let capacity = CsCapacity {
            max_pkts: t.cs_packets,
            max_bytes: t.cs_bytes,
        };
        if let Err(reason) = store.check_memory(capacity.max_slots(), t.cs_bytes) {
            let key = match (store.admission, store.filter_history) {
                (Admission::Filter, 1..) => "content_store.filter_history",
                _ => "tables.cs_packets",
            };
            found.conflict(
                key,
                reason,
                "write a lower number, or raise tables.cs_bytes",
            );
        }
        return;
    };
    let (key, remedy) = match error {
        PolicyError::Senseless { .. } => (
            "eviction",
            "write \"fifo\", \"clock\", \"sieve\" or \"lru\" with this admission, or admission = \"none\"",
        ),
        PolicyError::Probability(_) => ("lcp_probability", "write a number from 0 to 1"),
        PolicyError::Stages(_) => ("k_lru_stages", "write a number from 2 to 8"),
        PolicyError::Threshold { .. } => (
            "filter_threshold",
            "write 2, unless measurements show a better number",
        ),
        _ => (
            "filter_history",
            "write 0 for as many as the store holds packets, or at least filter_threshold",
        ),
    };
    found.conflict(format!("content_store.{key}"), error.to_string(), remedy);
}

/// Whether an arriving Data packet is cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// Every packet is admitted.
    #[default]
    None,
    /// Each packet with the same probability.
    Lcp,
    /// Packets that went through a chain of caches, one a request.
    KLru,
    /// Packets requested often enough lately.
    Filter,
    /// As `filter`, with a threshold that follows the traffic.
    FilterAuto,
    /// Packets requested more often than the one they would replace.
    #[serde(rename = "tinylfu")]
    TinyLfu,
    /// As `tinylfu`, after a window that admits everything.
    #[serde(rename = "w-tinylfu")]
    WTinyLfu,
}

impl From<Admission> for AdmissionKind {
    fn from(admission: Admission) -> Self {
        match admission {
            Admission::None => Self::None,
            Admission::Lcp => Self::Lcp,
            Admission::KLru => Self::KLru,
            Admission::Filter => Self::Filter,
            Admission::FilterAuto => Self::FilterAuto,
            Admission::TinyLfu => Self::TinyLfu,
            Admission::WTinyLfu => Self::WTinyLfu,
        }
    }
}

/// Which Data packet is replaced when the store is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Eviction {
    /// The packet that was inserted first.
    Fifo,
    /// A random packet.
    Random,
    /// The packet that was used longest ago.
    #[default]
    Lru,
    /// The one of 16 neighbours that was used longest ago.
    LruLocal,
    /// First in, first out, except packets that were used since the last round.
    Clock,
    /// As `clock`, with a count of uses.
    Gclock,
    /// Least recently used, in two segments.
    Slru,
    /// The packet that was used least often.
    Lfu,
    /// The least often used of 32 neighbours.
    LfuLocal,
    /// Adaptive replacement cache.
    Arc,
    /// 2Q.
    #[serde(rename = "2q")]
    TwoQ,
    /// Low inter-reference recency set.
    Lirs,
    /// S3-FIFO.
    #[serde(rename = "s3-fifo")]
    S3Fifo,
    /// SIEVE.
    Sieve,
}

impl From<Eviction> for EvictionKind {
    fn from(eviction: Eviction) -> Self {
        match eviction {
            Eviction::Fifo => Self::Fifo,
            Eviction::Random => Self::Random,
            Eviction::Lru => Self::Lru,
            Eviction::LruLocal => Self::LruLocal,
            Eviction::Clock => Self::Clock,
            Eviction::Gclock => Self::Gclock,
            Eviction::Slru => Self::Slru,
            Eviction::Lfu => Self::Lfu,
            Eviction::LfuLocal => Self::LfuLocal,
            Eviction::Arc => Self::Arc,
            Eviction::TwoQ => Self::TwoQ,
            Eviction::Lirs => Self::Lirs,
            Eviction::S3Fifo => Self::S3Fifo,
            Eviction::Sieve => Self::Sieve,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_change_what_they_name_and_are_refused_with_a_reason() {
        let store = ContentStore::default();
        assert_eq!(store.to_words(), "admission=none,eviction=lru");
        let changed = store
            .with_words("admission=filter,filter_threshold=3")
            .expect("it makes sense");
        assert_eq!(
            changed.to_words(),
            "admission=filter,eviction=lru,filter_threshold=3,filter_history=0"
        );
        assert_eq!(changed.with_words(&changed.to_words()), Ok(changed.clone()));
        let lcp = store.with_words("admission=lcp,lcp_probability=0.5");
        assert_eq!(lcp.map(|lcp| lcp.lcp_probability), Ok(0.5));
        let chain = store.with_words("admission=k-lru,eviction=lru-local,k_lru_stages=3");
        assert_eq!(
            chain.map(|chain| chain.to_words()).as_deref(),
            Ok("admission=k-lru,eviction=lru-local,k_lru_stages=3")
        );
        for (words, reason) in [
            ("eviction=2q", "trial"),
            ("eviction=best", "unknown variant `best`"),
            ("evict=lru", "unknown field `evict`"),
            ("filter_threshold=0", "threshold 0"),
            ("admission=k-lru,k_lru_stages=1", "use 2 to 8"),
            ("filter_threshold=-1", "invalid value"),
            ("lru", "not a key"),
            ("", "not a key"),
        ] {
            let refusal = changed.with_words(words).expect_err(words);
            assert!(refusal.contains(reason), "{words}: {refusal}");
        }
    }

    #[test]
    fn policies_are_called_as_the_lab_calls_them() {
        for admission in AdmissionKind::ALL {
            let word = serde_json::json!(admission.as_str());
            let read = serde_json::from_value::<Admission>(word).expect("known");
            assert_eq!(AdmissionKind::from(read), admission);
        }
        // What remembers a hundred times as many names as it holds is for the lab.
        let for_routers = EvictionKind::ALL.into_iter();
        for eviction in for_routers.filter(|&kind| kind != EvictionKind::LfuPerfect) {
            let word = serde_json::json!(eviction.as_str());
            let read = serde_json::from_value::<Eviction>(word).expect("known");
            assert_eq!(EvictionKind::from(read), eviction);
        }
    }
}
