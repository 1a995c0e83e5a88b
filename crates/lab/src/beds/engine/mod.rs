//! The packet path in memory: the router's own engine between a receive buffer
//! and a send buffer, without sockets.
//!
//! Owns the engine with its tables, virtual time, and the order of packets: Interests that
//! miss, Data that answer them at once or after some bursts, and Interests that hit. A
//! [`Listener`] measures: it is called at each burst's begin, at its blocks and at its end.
//! [`cycles`] has the listeners that read the time-stamp counter, [`params`] the parameters
//! of experiments. Packets and names are in [`workload`].

pub mod cycles;
mod hits;
mod listener;
pub mod params;
pub mod rates;
pub mod workload;

use anyhow::{Context, ensure};
use tachonym_forward::{Block, Engine, EngineConfig, FaceTraits, Output, RxPacket, Schedule};
use tachonym_memory::PagePreference;
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, HashKey, HashKind, MonoNs};
use tachonym_policy::{AdmissionKind, EvictionKind, PolicyConfig};
use tachonym_tables::{CsCapacity, FibConfig, NextHop, PitConfig, PitCsLayout};

use self::hits::Hits;
pub use self::listener::{Listener, SendBuffer};
use self::workload::{Burst, Workload};

/// Who asks.
const CONSUMER: FaceId = FaceId(256);
/// Who answers.
const PRODUCER: FaceId = FaceId(257);

/// Virtual time between two packets, in nanoseconds.
const PACKET_INTERVAL_NS: u64 = 250;

/// The three cases of Takemasa 2019, Table 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An Interest that the content store does not answer.
    Miss,
    /// An Interest that it answers.
    Hit,
    /// The Data that answers a miss.
    Data,
}

impl Kind {
    /// All of them, in the order of the published tables.
    pub const ALL: [Self; 3] = [Self::Miss, Self::Hit, Self::Data];

    /// As in the published tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Miss => "I-miss",
            Self::Hit => "I-hit",
            Self::Data => "Data",
        }
    }

    const fn face(self) -> FaceId {
        match self {
            Self::Miss | Self::Hit => CONSUMER,
            Self::Data => PRODUCER,
        }
    }

    const fn reception(self) -> Block {
        match self {
            Self::Miss | Self::Hit => Block::InterestReception,
            Self::Data => Block::DataReception,
        }
    }
}

/// Sizes of a bed.
#[derive(Clone, Debug)]
pub struct BedOptions {
    /// Prefixes in the FIB, at least 1.
    pub n_prefixes: u64,
    /// Packets of a burst, at least 1.
    pub burst_pkts: usize,
    /// Capacity of the content store in Data; it is full; at least four bursts.
    pub store_pkts: usize,
    /// Bursts of Interests that leave before the Data of one comes back; 0 for
    /// right after it.
    pub late_bursts: usize,
    /// Seed of names and nonces.
    pub seed: u64,
    /// What hashes names.
    pub name_hash: HashKind,
    /// The order of work in a burst.
    pub schedule: Schedule,
    /// Whether pending Interests and cached Data share an index.
    pub pit_cs: PitCsLayout,
    /// What the content store admits and evicts; the capacity there does not matter.
    pub policy: PolicyConfig,
    /// Pages of the tables.
    pub pages: PagePreference,
}

/// Components of each prefix, and of each name.
const N_PREFIX_COMPONENTS: usize = 4;
const N_NAME_COMPONENTS: usize = 7;

impl Default for BedOptions {
    /// A small bed, which is the same on every machine.
    fn default() -> Self {
        Self {
            n_prefixes: 1,
            burst_pkts: 32,
            store_pkts: 8_192,
            late_bursts: 0,
            seed: 1,
            name_hash: HashKind::SipHash13,
            schedule: Schedule::default(),
            pit_cs: PitCsLayout::default(),
            policy: PolicyConfig::new(AdmissionKind::None, EvictionKind::Lru, 0),
            pages: PagePreference::Auto,
        }
    }
}

/// An engine with full tables, and what goes through it next.
#[derive(Debug)]
pub struct Bed {
    engine: Engine,
    workload: Workload,
    options: BedOptions,
    now: MonoNs,
    /// Names asked for so far: numbers count from 0.
    n_asked: u64,
    /// Of these, answered.
    n_answered: u64,
    /// Interests written for names that are cached.
    n_hits: u64,
    hits: Hits,
}

/// A policy by its words: `lru`, or `tinylfu/fifo` with admission.
///
/// # Errors
/// If it names no policy.
pub fn policy(words: &str) -> anyhow::Result<PolicyConfig> {
    let (admission, eviction) = words.split_once('/').unwrap_or(("none", words));
    let named = || format!("no policy is called `{words}`");
    Ok(PolicyConfig::new(
        admission.parse().with_context(named)?,
        eviction.parse().with_context(named)?,
        0,
    ))
}

/// Share of Interests written as hits that may miss where the policy has evicted the Data
/// after its name was drawn.
const MAX_LOST_HITS: f64 = 0.03;

impl Bed {
    /// Builds the tables: all prefixes, and as many exchanges as fill the content
    /// store twice over, so that its memory and its order are those of a store
    /// long in use.
    ///
    /// # Errors
    /// If the sizes make no sense or the FIB refuses a prefix.
    pub fn new(options: BedOptions) -> anyhow::Result<Self> {
        ensure!(
            options.n_prefixes > 0 && options.burst_pkts > 0,
            "a bed needs a prefix, and bursts a packet"
        );
        ensure!(
            options.store_pkts >= 4 * options.burst_pkts,
            "the content store must hold at least four bursts"
        );
        let mut bed = Self {
            engine: engine(&options)?,
            workload: Workload {
                seed: options.seed,
                n_prefixes: options.n_prefixes,
                n_prefix_components: N_PREFIX_COMPONENTS,
                n_name_components: N_NAME_COMPONENTS,
                content_bytes: 128,
            },
            hits: Hits::new(&options),
            options,
            now: MonoNs(1_000_000_000),
            n_asked: 0,
            n_answered: 0,
            n_hits: 0,
        };
        bed.add_prefixes()?;
        bed.fill_store();
        Ok(bed)
    }

    /// Changes the order of work in a burst, and how many packets `burst` prefetches for
    /// together.
    pub fn set_schedule(&mut self, schedule: Schedule, burst_distance: usize) {
        self.engine.set_schedule(schedule, burst_distance);
    }

    /// Entries of the tables.
    #[must_use]
    pub fn sizes(&self) -> tachonym_forward::TableSizes {
        self.engine.sizes()
    }

    /// Writes the next burst of `kind`. For Data that may be none: at first, when
    /// they come late, nothing is due.
    pub fn write_burst(&mut self, kind: Kind, burst: &mut Burst) {
        burst.clear();
        let n_pkts = self.options.burst_pkts as u64;
        match kind {
            Kind::Miss => {
                for number in self.n_asked..self.n_asked + n_pkts {
                    burst.push(|out| self.workload.write_interest(number, out));
                }
                self.n_asked += n_pkts;
            }
            Kind::Data => {
                let n_pending = self.n_asked - self.n_answered;
                if n_pending <= self.options.late_bursts as u64 * n_pkts {
                    return;
                }
                for number in self.n_answered..self.n_answered + n_pkts {
                    burst.push(|out| self.workload.write_data(number, out));
                }
                self.n_answered += n_pkts;
            }
            Kind::Hit => {
                for i in 0..n_pkts {
                    let workload = &self.workload;
                    let number = self.hits.draw(self.n_answered, |number| {
                        self.engine.cs_mut().has_below(workload.name(number).view())
                    });
                    let time = self.n_hits + i + 1;
                    burst.push(|out| self.workload.write_interest_again(number, time, out));
                }
                self.n_hits += n_pkts;
            }
        }
    }

    /// Carries a burst that [`Self::write_burst`] wrote for `kind`.
    pub fn carry<L: Listener>(&mut self, kind: Kind, burst: &Burst, out: &mut SendBuffer<L>) {
        self.now.0 += PACKET_INTERVAL_NS * burst.len() as u64;
        let mut rx = Vec::with_capacity(burst.len());
        let headers = Headers::default();
        out.listener.begin();
        out.enter(kind.reception());
        for wire in burst.iter() {
            let packet = RxPacket::parse(kind.face(), &headers, wire);
            rx.push(packet.expect("the workload is well-formed"));
        }
        self.engine.handle_burst(self.now, &rx, out);
        out.listener.end();
    }

    /// Bursts of Interests that leave before the Data of one comes.
    #[must_use]
    pub const fn n_late_bursts(&self) -> usize {
        self.options.late_bursts
    }

    /// Data that came so far.
    #[must_use]
    pub const fn n_answered(&self) -> u64 {
        self.n_answered
    }

    /// Data inserted into the content store so far.
    #[must_use]
    pub fn n_inserts(&self) -> u64 {
        self.engine.cs().counters().n_inserts
    }

    /// Checks that packets went the way that their kind says.
    ///
    /// # Errors
    /// If an Interest hit that should have missed, or the other way round, or a packet was
    /// dropped. Of Interests that should hit, some may miss where the bed cannot know what
    /// the policy evicts.
    pub fn check(&self) -> anyhow::Result<()> {
        let counters = self.engine.counters();
        let n_lost = self.n_hits.saturating_sub(counters.n_cs_hits);
        let max_lost = match self.hits.are_sure() {
            true => 0.0,
            false => MAX_LOST_HITS * self.n_hits as f64,
        };
        let n_hits = self.n_hits - n_lost;
        // Two lost hits of one name may be pending together: the second is not sent.
        let sent = self.n_asked..=self.n_asked + n_lost;
        ensure!(
            n_lost as f64 <= max_lost
                && sent.contains(&counters.n_out_interests)
                && (counters.n_cs_hits, counters.n_out_data) == (n_hits, self.n_answered + n_hits),
            "{} hits, {} Interests and {} Data were sent; meant were {} hits, of which {max_lost} \
             may be lost, {sent:?} Interests and {} Data",
            counters.n_cs_hits,
            counters.n_out_interests,
            counters.n_out_data,
            self.n_hits,
            self.n_answered + n_hits
        );
        Ok(())
    }

    fn add_prefixes(&mut self) -> anyhow::Result<()> {
        let hop = NextHop::new(PRODUCER, 0);
        for number in 0..self.options.n_prefixes {
            let prefix = self.workload.prefix(number);
            self.engine
                .add_next_hop(prefix.view(), hop)
                .with_context(|| format!("add prefix {number}"))?;
        }
        Ok(())
    }

    fn fill_store(&mut self) {
        let mut burst = Burst::default();
        let mut out = SendBuffer::new(());
        while self.n_answered < 2 * self.options.store_pkts as u64 {
            for kind in [Kind::Miss, Kind::Data] {
                self.write_burst(kind, &mut burst);
                self.carry(kind, &burst, &mut out);
            }
        }
    }
}

/// An engine with two faces and room for what is to come.
fn engine(options: &BedOptions) -> anyhow::Result<Engine> {
    let n_pending = (options.late_bursts + 1) * options.burst_pkts;
    let n_prefixes =
        usize::try_from(options.n_prefixes).context("too many prefixes for this machine")?;
    let pit = PitConfig::default();
    let config = EngineConfig {
        // One face may use a part of it only.
        pit: PitConfig {
            max_entries: pit.max_entries.max(8 * n_pending),
            max_bytes: pit.max_bytes.max(8_192 * n_pending),
            ..pit
        },
        cs: CsCapacity {
            max_pkts: options.store_pkts,
            // The number of packets is to be what bounds it.
            max_bytes: options.store_pkts * 8_192,
        },
        fib: FibConfig {
            expected_entries: n_prefixes,
            expected_name_bytes: workload::MEAN_COMPONENT_BYTES * N_PREFIX_COMPONENTS,
            pages: options.pages,
            ..FibConfig::with_max_entries(n_prefixes + 1_024)
        },
        schedule: options.schedule,
        pit_cs: options.pit_cs,
        cs_policy: options.policy,
        ..EngineConfig::default()
    };
    // A key of its own for every run would make counts differ.
    let key = HashKey::new(options.name_hash, &[7; 32]);
    let mut engine = Engine::new(config, key, 3)?;
    for face in [CONSUMER, PRODUCER] {
        engine.add_face(face, FaceTraits::REMOTE);
    }
    Ok(engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(late_bursts: usize) -> BedOptions {
        BedOptions {
            n_prefixes: 500,
            burst_pkts: 8,
            store_pkts: 256,
            late_bursts,
            seed: 9,
            ..BedOptions::default()
        }
    }

    /// The blocks entered, and how many bursts began and ended.
    #[derive(Default)]
    struct Heard {
        entered: Vec<Block>,
        n_begun: usize,
        n_ended: usize,
    }

    impl Listener for Heard {
        fn begin(&mut self) {
            self.n_begun += 1;
        }

        fn enter(&mut self, block: Block) {
            self.entered.push(block);
        }

        fn end(&mut self) {
            self.n_ended += 1;
        }
    }

    fn run(bed: &mut Bed, n_bursts: usize) -> Heard {
        let mut burst = Burst::default();
        let mut out = SendBuffer::new(Heard::default());
        for kind in Kind::ALL.into_iter().cycle().take(3 * n_bursts) {
            bed.write_burst(kind, &mut burst);
            bed.carry(kind, &burst, &mut out);
        }
        out.listener
    }

    #[test]
    fn prompt_and_late_data_make_the_cases_that_labels_say() {
        for late_bursts in [0, 5] {
            let mut bed = Bed::new(options(late_bursts)).expect("sizes make sense");
            assert_eq!(bed.sizes().n_fib_entries, 500);
            let heard = run(&mut bed, 200);
            assert_eq!((heard.n_begun, heard.n_ended), (600, 600));
            bed.check().expect("hits hit and misses miss");
            assert_eq!(bed.sizes().n_pit_entries, 8 * late_bursts);
            assert_eq!(bed.sizes().n_cs_entries, 256);
        }
    }

    #[test]
    fn each_policy_enters_its_blocks_and_hits_what_it_has_cached() {
        for words in [
            "lru",
            "fifo",
            "random",
            "arc",
            "tinylfu/fifo",
            "filter/fifo",
        ] {
            // Names are requested once here, and Filter admits them with a threshold of 1 only.
            let policy = PolicyConfig {
                threshold: 1,
                ..policy(words).expect(words)
            };
            let mut bed = Bed::new(BedOptions {
                policy,
                ..options(0)
            });
            let bed = bed.as_mut().expect("sizes make sense");
            let n_before = bed.n_inserts();
            let heard = run(bed, 200);
            bed.check().expect(words);
            let n_of = |block| heard.entered.iter().filter(|it| **it == block).count();
            for number in 1..=11 {
                let is_it = |block: &Block| block.number() == Some(number);
                assert!(heard.entered.iter().any(is_it), "{words}: B{number}");
            }
            // A victim for each Data that a full store inserts, an answer for each that asks.
            let n_inserts = (bed.n_inserts() - n_before) as usize;
            assert_eq!(n_of(Block::Eviction), n_inserts, "{words}");
            let has_admission = policy.admission != AdmissionKind::None;
            let n_asked = if has_admission { 200 * 8 } else { 0 };
            assert_eq!(n_of(Block::Admission), n_asked, "{words}");
        }
    }

    #[test]
    fn words_that_are_no_policy_are_refused() {
        for words in ["", "lru/tinylfu", "fast"] {
            policy(words).expect_err(words);
        }
    }

    #[test]
    fn a_bed_without_prefixes_or_store_is_refused() {
        for nonsense in [
            BedOptions {
                n_prefixes: 0,
                ..options(0)
            },
            BedOptions {
                burst_pkts: 0,
                ..options(0)
            },
            BedOptions {
                store_pkts: 31,
                ..options(0)
            },
        ] {
            Bed::new(nonsense).expect_err("such a bed measures nothing");
        }
    }
}
