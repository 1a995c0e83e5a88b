//! `[content_store]`: which Data are cached, and which make room.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tachonym_policy::{AdmissionKind, EvictionKind, PolicyConfig};

/// Which Data are cached, and which make room. Its size is in `[tables]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContentStore {
    /// Whether an arriving Data is cached, or one of the second level that has answered.
    /// `filter` takes what was asked for
    /// `filter_threshold` times among the last `filter_history` Interests; `filter-auto`
    /// finds a threshold by itself; `tinylfu` what
    /// was asked for more often than what would have to go; `w-tinylfu` the same, after a
    /// small window for all; `lcp` takes each with `lcp_probability`.
    pub admission: Admission,
    /// Which Data leaves the full content store first. `2q`, `arc`, `lirs` and `s3-fifo`
    /// have a trial for newcomers of their own, and want `none` or `lcp` before them.
    pub eviction: Eviction,
    /// With `filter`: how often a name has to be asked for.
    pub filter_threshold: u32,
    /// With `filter`: Interests among which that has to be; 0 for as many as the store
    /// holds Data.
    pub filter_history: usize,
    /// With `lcp`: the probability, 0 to 1.
    pub lcp_probability: f64,
}

impl Default for ContentStore {
    fn default() -> Self {
        Self {
            admission: Admission::default(),
            eviction: Eviction::default(),
            filter_threshold: 2,
            filter_history: 0,
            lcp_probability: 0.1,
        }
    }
}

impl ContentStore {
    /// The policy, but for the size of the store. `seed` is what it draws from.
    #[must_use]
    pub fn policy(&self, seed: u64) -> PolicyConfig {
        PolicyConfig {
            threshold: self.filter_threshold,
            history_len: (self.filter_history > 0).then_some(self.filter_history),
            probability: self.lcp_probability,
            seed,
            ..PolicyConfig::new(self.admission.into(), self.eviction.into(), 0)
        }
    }
}

/// What policies may take of memory in any case, in bytes.
pub(crate) const FREE_TABLE_BYTES: u64 = 16 << 20;

impl ContentStore {
    /// Whether the policy's tables are no larger than what they decide about: `max_slots`
    /// Data in `cs_bytes`.
    ///
    /// # Errors
    /// How large they are, for a person to read.
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
            "the policy's tables take {table_bytes} bytes, more than the {max_bytes} that a \
             policy may for so many bytes of Data"
        ))
    }

    /// As words `key=value` with commas between; those that the choice does not use are
    /// left out.
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

    /// The same with what `words` say, in the form of [`ContentStore::to_words`].
    ///
    /// # Errors
    /// What is wrong with them, for a person to read.
    pub fn with_words(&self, words: &str) -> Result<Self, String> {
        let mut values = json!(self);
        for word in words.split(',') {
            let (key, text) = word
                .split_once('=')
                .ok_or_else(|| format!("`{word}` is not a key, an equals sign and a value"))?;
            // Numbers are written as in JSON, all else is a string.
            let value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            values[key] = value;
        }
        let changed: Self = serde_json::from_value(values).map_err(|error| error.to_string())?;
        let checked = changed.policy(0).check().map(|()| changed);
        checked.map_err(|error| error.to_string())
    }
}

/// Whether an arriving Data is cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// All are.
    #[default]
    None,
    /// Each with the same probability.
    Lcp,
    /// Those asked for often enough lately.
    Filter,
    /// The same, with a threshold that follows what is asked for.
    FilterAuto,
    /// Those asked for more often than what would have to go.
    #[serde(rename = "tinylfu")]
    TinyLfu,
    /// The same, after a window for all.
    #[serde(rename = "w-tinylfu")]
    WTinyLfu,
}

impl From<Admission> for AdmissionKind {
    fn from(admission: Admission) -> Self {
        match admission {
            Admission::None => Self::None,
            Admission::Lcp => Self::Lcp,
            Admission::Filter => Self::Filter,
            Admission::FilterAuto => Self::FilterAuto,
            Admission::TinyLfu => Self::TinyLfu,
            Admission::WTinyLfu => Self::WTinyLfu,
        }
    }
}

/// Which Data leaves the full content store first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Eviction {
    /// What came first.
    Fifo,
    /// Any.
    Random,
    /// What was used longest ago.
    #[default]
    Lru,
    /// First in, first out, but for what was used since the last round.
    Clock,
    /// The same, with a count of uses.
    Gclock,
    /// Least recently used, in two segments.
    Slru,
    /// What was used least often.
    Lfu,
    /// What was used least often of 32 neighbours.
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
        for (words, reason) in [
            ("eviction=2q", "trial"),
            ("eviction=best", "unknown variant `best`"),
            ("evict=lru", "unknown field `evict`"),
            ("filter_threshold=0", "threshold 0"),
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
