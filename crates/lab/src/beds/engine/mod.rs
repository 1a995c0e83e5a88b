//! The packet path in memory: the router's own engine between a receive buffer
//! and a send buffer, without sockets.
//!
//! Owns the engine with its tables, virtual time, and the order of packets:
//! Interests that miss, Data that answer them at once or after some bursts,
//! and Interests that hit. Refuses to measure: a [`Listener`] does, which
//! hears of each burst's begin, its blocks and its end. What packets and names
//! look like is in [`workload`].

mod listener;
pub mod workload;

use anyhow::{Context, ensure};
use tachonym_forward::{Block, Engine, EngineConfig, FaceTraits, Output, RxPacket, Schedule};
use tachonym_memory::PagePreference;
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, HashKey, HashKind, MonoNs, PacketView};
use tachonym_tables::{CsCapacity, FibConfig, NextHop, PitConfig, PitCsLayout};

pub use self::listener::{Listener, SendBuffer};
use self::workload::{Burst, Workload};
use crate::random::Random;

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
    /// Interests that must have hit.
    n_hits: u64,
    hits: Random,
}

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
            hits: Random::new(!options.seed),
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

    /// Changes the order of work in a burst.
    pub const fn set_schedule(&mut self, schedule: Schedule) {
        self.engine.set_schedule(schedule);
    }

    /// Changes how many packets `burst` fetches for together.
    pub fn set_burst_distance(&mut self, n_pkts: usize) {
        self.engine.set_burst_distance(n_pkts);
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
                // The youngest quarter cannot have been evicted, however hits have
                // changed the order.
                let n_young = self.options.store_pkts as u64 / 4;
                for i in 0..n_pkts {
                    let age = self.hits.next_u64() % n_young;
                    let number = self.n_answered - 1 - age;
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
            let packet = PacketView::parse(wire).expect("the workload is well-formed");
            let packet = RxPacket::new(kind.face(), &headers, packet);
            rx.push(packet.expect("a packet without headers makes sense"));
        }
        self.engine.handle_burst(self.now, &rx, out);
        out.listener.end();
    }

    /// What was measured must be what the labels say.
    ///
    /// # Errors
    /// If an Interest hit that should have missed, or the other way round, or a
    /// packet was dropped.
    pub fn check(&self) -> anyhow::Result<()> {
        let counters = self.engine.counters();
        let seen = (
            counters.n_cs_hits,
            counters.n_out_interests,
            counters.n_out_data,
        );
        let meant = (self.n_hits, self.n_asked, self.n_answered + self.n_hits);
        ensure!(
            seen == meant,
            "hits, Interests and Data sent are {seen:?} and should be {meant:?}"
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
    fn every_block_of_the_path_is_heard_of() {
        let heard = run(&mut Bed::new(options(0)).expect("sizes make sense"), 1);
        for number in [1, 3, 4, 5, 6, 7, 8, 9, 10, 11] {
            let is_it = |block: &Block| block.number() == Some(number);
            assert!(heard.entered.iter().any(is_it), "B{number}");
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
