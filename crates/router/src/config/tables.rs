//! `[tables]` and `[memory]`: how large the tables are, how they are searched, and the
//! pages of their memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_memory::PagePreference;
use tachonym_packet::HashKind;
use tachonym_policy::eviction::MAX_SLOTS;

use super::Config;
use super::faults::Faults;

/// Fewest components behind a prefix at which level pulling saves anything.
const MIN_LEVEL_PULLING: u32 = 8;

/// Sizes of the tables. Each size is a hard limit: what does not fit is dropped or
/// replaced, and counted. All workers share each size.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tables {
    /// Most pending Interests, 1 to 268435456.
    pub pit_entries: usize,
    /// Most bytes of pending Interests, 65536 to 1099511627776.
    pub pit_bytes: usize,
    /// Most Data packets in the DRAM level of the content store; 0 switches it off. The
    /// store is full when `cs_packets` or `cs_bytes` is reached: raise both together.
    pub cs_packets: usize,
    /// Most bytes of Data packets in the DRAM level of the content store, 0 to
    /// 4398046511104. The policy needs memory of its own on top, which
    /// `tachonym cs stats` shows.
    pub cs_bytes: usize,
    /// Hash index of the PIT and the content store: `single` reads one cache line for most
    /// lookups; `d-left` fills its memory better and reads two.
    pub index: TableIndex,
    /// Whether the PIT and the content store have an index each (`separate`) or share one
    /// (`composite`). With `composite` a packet needs one lookup instead of two. Results
    /// are the same.
    pub pit_cs: PitCsLayout,
    /// Most routes in the RIB, and so most prefixes in the FIB; 16 to 1073741824. A route
    /// beyond that is refused.
    pub routes: usize,
    /// Most bytes of the names of all prefixes with routes, 4096 to 1099511627776.
    pub route_bytes: usize,
    /// Algorithm of the longest-prefix match. `longest-first` tries the longest prefix
    /// first: least memory and fastest updates. `two-stage` begins at the length that most
    /// prefixes have: for names much longer than the prefixes. `binary-search` halves the
    /// range of lengths: for prefixes of many lengths. `shortest-first` is for short
    /// prefixes. Results are the same; `tachonym-lab run yuan/figure-3.10` measures the speed.
    pub fib_engine: FibEngine,
    /// When the FIB compares whole names rather than hashes: `at-end` once, after the
    /// longest match was found; `always` at every length whose hash matches. Results are
    /// the same.
    pub fib_matching: FibMatching,
    /// Level pulling: a lookup begins below a prefix that is followed by more than this
    /// number of different components. 0 switches it off; otherwise at least 8 and below
    /// `routes`. For FIBs in which most routes are under a few prefixes, such as /com.
    pub fib_level_pulling: u32,
    /// Milliseconds for which the nonce of an expired Interest is remembered to detect
    /// loops, 6000 to 600000. If `dead_nonces` is too small for that time, the oldest are
    /// forgotten early.
    pub dead_nonce_ms: u64,
    /// Most nonces of expired Interests that are remembered, 1024 to 1073741824. It
    /// should exceed the number of Interests that stay unanswered within `dead_nonce_ms`.
    /// Each nonce takes 32 to 45 bytes.
    pub dead_nonces: usize,
    /// Hash function for names, with a new random key at each start. `auto` is the fastest
    /// one on this processor.
    pub name_hash: NameHash,
    /// Most Data packets that are remembered as verified, so that they are not verified
    /// again; 0 to 16777216, each takes 20 bytes. Only with `[[verification]]`.
    pub verified_data: usize,
}

/// Algorithm of the longest-prefix match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FibEngine {
    /// The longest prefix first: least memory and fastest updates.
    #[default]
    LongestFirst,
    /// First the length that most prefixes have, then longer or shorter ones: for names
    /// much longer than the prefixes.
    TwoStage,
    /// Binary search over the lengths: for prefixes of many lengths.
    BinarySearch,
    /// The shortest prefix first: for short prefixes.
    ShortestFirst,
}

/// When the FIB compares whole names rather than hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FibMatching {
    /// Once, after the longest match was found.
    #[default]
    AtEnd,
    /// At every length whose hash matches.
    Always,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            pit_entries: 262_144,
            pit_bytes: 256 << 20,
            cs_packets: 65_536,
            cs_bytes: 256 << 20,
            index: TableIndex::default(),
            pit_cs: PitCsLayout::default(),
            routes: 10_000_000,
            route_bytes: 256 << 20,
            fib_engine: FibEngine::default(),
            fib_matching: FibMatching::default(),
            fib_level_pulling: 0,
            dead_nonce_ms: 6000,
            dead_nonces: 1 << 20,
            name_hash: NameHash::default(),
            verified_data: 65_536,
        }
    }
}

/// Hash function for names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NameHash {
    /// `multilinear-aes` if the processor has instructions for AES, else
    /// `siphash-1-3`.
    #[default]
    Auto,
    /// Universal hashing, then AES-128.
    MultilinearAes,
    /// SipHash with 1 and 3 rounds.
    #[serde(rename = "siphash-1-3")]
    SipHash13,
    /// SipHash with 2 and 4 rounds.
    #[serde(rename = "siphash-2-4")]
    SipHash24,
}

impl NameHash {
    /// The function to use on this processor.
    #[must_use]
    pub fn kind(self) -> HashKind {
        match self {
            Self::Auto => HashKind::fastest(),
            Self::MultilinearAes => HashKind::MultilinearAes,
            Self::SipHash13 => HashKind::SipHash13,
            Self::SipHash24 => HashKind::SipHash24,
        }
    }
}

/// Memory pages of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TablePages {
    /// The largest pages of which enough are free.
    #[default]
    Auto,
    /// 1 GiB pages of the kernel's pool.
    #[serde(rename = "1g")]
    Huge1G,
    /// 2 MiB pages of the kernel's pool.
    #[serde(rename = "2m")]
    Huge2M,
    /// The kernel combines pages to 2 MiB as it can.
    Transparent,
    /// The smallest pages.
    Base,
}

impl From<TablePages> for PagePreference {
    fn from(pages: TablePages) -> Self {
        match pages {
            TablePages::Auto => Self::Auto,
            TablePages::Huge1G => Self::Huge1G,
            TablePages::Huge2M => Self::Huge2M,
            TablePages::Transparent => Self::Transparent,
            TablePages::Base => Self::Base,
        }
    }
}

/// Memory pages of the tables.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Page size of the FIB and of the other tables' indexes. `1g` and `2m` use pages of
    /// the kernel's pool (`sysctl vm.nr_hugepages`); `transparent` lets the kernel combine
    /// pages to 2 MiB; `base` uses its smallest pages. `auto` uses the pool if it has
    /// enough pages for a table's whole growth, and otherwise `transparent`. If pages of
    /// one size run out, the next smaller size is used for the rest.
    /// `tachonym status` shows the pages in use.
    pub pages: TablePages,
}

/// Hash index of the PIT and the content store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableIndex {
    /// One cache line, or its neighbour if that is full.
    #[default]
    Single,
    /// The emptier of two cache lines: fuller tables, more reads.
    DLeft,
}

/// Whether the PIT and the content store share an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PitCsLayout {
    /// An index each.
    Separate,
    /// One index: a packet needs one lookup, and cached Data takes the place of the
    /// Interest that it satisfies.
    #[default]
    Composite,
}

/// Checks `[tables]`.
pub(super) fn check(config: &Config, found: &mut Faults) {
    let t = &config.tables;
    found.range("tables.pit_entries", t.pit_entries, 1, 1 << 28);
    found.range("tables.pit_bytes", t.pit_bytes, 1 << 16, 1 << 40);
    found.range("tables.cs_packets", t.cs_packets, 0, MAX_SLOTS);
    found.range("tables.cs_bytes", t.cs_bytes, 0, 1 << 42);
    found.range("tables.routes", t.routes, 16, 1 << 30);
    found.range("tables.route_bytes", t.route_bytes, 1 << 12, 1 << 40);
    found.range("tables.dead_nonce_ms", t.dead_nonce_ms, 6000, 600_000);
    found.range("tables.dead_nonces", t.dead_nonces, 1 << 10, 1 << 30);
    level_pulling(t, found);
}

/// With a low limit most of the FIB would be pulled; a limit above the number of routes
/// is never reached.
fn level_pulling(t: &Tables, found: &mut Faults) {
    const KEY: &str = "tables.fib_level_pulling";
    match t.fib_level_pulling {
        0 => {}
        n @ 1..MIN_LEVEL_PULLING => found.push(
            KEY,
            format!("{n} is too low to make any lookup faster"),
            &format!(
                "write 0 to switch it off, or a number from {MIN_LEVEL_PULLING} on, such as 64"
            ),
        ),
        n if n as usize >= t.routes => found.conflict(
            KEY,
            format!(
                "no prefix can be followed by more than {n} components: tables.routes is {}",
                t.routes
            ),
            "write 0 to switch it off, or a number below tables.routes",
        ),
        _ => {}
    }
}
