//! The hit ratio of the content store over both of its levels, and of each.

use serde_json::{Value, json};
use tachonym_client::{CommandError, Controller};
use tachonym_protocol::{CsInfo, CsStats, SecondLevelStats};

use super::own;

/// Lookups of Interests in both levels. Every Interest is looked up in the DRAM level, and
/// after a miss there in the SSD level, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HitRatio {
    dram: Lookups,
    ssd: Option<Lookups>,
}

/// Hits and misses of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lookups {
    n_hits: u64,
    n_misses: u64,
}

impl Lookups {
    fn of_ssd(stats: &SecondLevelStats) -> Self {
        Self {
            n_hits: stats.n_hits,
            n_misses: stats.n_misses,
        }
    }

    /// `5 hits, 15 misses (25.00 %)`.
    pub(super) fn text(self) -> String {
        let share = percent(self.n_hits, self.n_misses);
        format!("{} hits, {} misses{share}", self.n_hits, self.n_misses)
    }
}

impl HitRatio {
    /// Of the router that `info` came from. Only routers of this kind have an SSD level.
    ///
    /// # Errors
    /// If the router does not answer.
    pub(super) fn ask(
        controller: &mut Controller<'_>,
        version: &str,
        info: &CsInfo,
    ) -> Result<Self, CommandError> {
        let stats = own::dataset(version, || controller.content_store_stats())?;
        let dram = Lookups {
            n_hits: info.n_hits,
            n_misses: info.n_misses,
        };
        let ssd = stats.and_then(|stats| stats.second_level);
        let ssd = ssd.as_ref().map(Lookups::of_ssd);
        Ok(Self { dram, ssd })
    }

    /// Of `stats`.
    pub(super) fn of(stats: &CsStats) -> Self {
        Self {
            dram: Lookups {
                n_hits: stats.n_hits,
                n_misses: stats.n_misses,
            },
            ssd: stats.second_level.as_ref().map(Lookups::of_ssd),
        }
    }

    pub(super) const fn dram(&self) -> Lookups {
        self.dram
    }

    pub(super) const fn ssd(&self) -> Option<Lookups> {
        self.ssd
    }

    fn n_hits(&self) -> u64 {
        self.dram.n_hits + self.ssd.map_or(0, |ssd| ssd.n_hits)
    }

    fn n_interests(&self) -> u64 {
        self.dram.n_hits + self.dram.n_misses
    }

    /// Interests that either level answered, by all; `None` before there were any.
    pub(super) fn ratio(&self) -> Option<f64> {
        let n_interests = self.n_interests();
        // The levels are counted at different moments.
        let ratio = || (self.n_hits() as f64 / n_interests as f64).min(1.0);
        (n_interests > 0).then(ratio)
    }

    /// `75.00 % of 20 Interests`.
    pub(super) fn text(&self) -> String {
        match self.ratio() {
            Some(ratio) => format!("{:.2} % of {} Interests", 100.0 * ratio, self.n_interests()),
            None => "no Interests yet".into(),
        }
    }

    /// Hits, misses and ratio of the SSD level, or null.
    pub(super) fn ssd_json(&self) -> Value {
        self.ssd.map_or(Value::Null, |ssd| {
            json!({
                "hits": ssd.n_hits,
                "misses": ssd.n_misses,
                "hit_ratio": share(ssd.n_hits, ssd.n_misses),
            })
        })
    }
}

/// A share as it is shown behind its number; empty without any.
pub(super) fn percent(part: u64, rest: u64) -> String {
    match share(part, rest) {
        Some(share) => format!(" ({:.2} %)", 100.0 * share),
        None => String::new(),
    }
}

/// A part by the whole; `None` if both are 0.
pub(super) fn share(part: u64, rest: u64) -> Option<f64> {
    let whole = part + rest;
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_of_both_levels_is_of_all_interests() {
        let lookups = |n_hits, n_misses| Lookups { n_hits, n_misses };
        let both = HitRatio {
            dram: lookups(10, 30),
            ssd: Some(lookups(15, 15)),
        };
        assert_eq!(both.text(), "62.50 % of 40 Interests");
        assert_eq!(both.dram.text(), "10 hits, 30 misses (25.00 %)");
        assert_eq!(both.ssd_json()["hit_ratio"], 0.5);
        let one = HitRatio { ssd: None, ..both };
        assert_eq!(one.text(), "25.00 % of 40 Interests");
        let none = HitRatio {
            dram: lookups(0, 0),
            ssd: None,
        };
        assert_eq!(none.text(), "no Interests yet");
        assert_eq!(none.ratio(), None);
        assert_eq!(none.dram.text(), "0 hits, 0 misses");
    }
}
