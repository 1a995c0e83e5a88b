//! The case study of section 6.5: two routers on server 2 with two 40-Gbit/s network cards.
//!
//! Cycles and bytes of each block are in drawings only (Figures 6.7 and 6.8). What stands for
//! them here comes from the tables and from section 4.4.1; nothing is fitted to the result.

use tachonym_bench::{Context, Need, Param, ParamKind, Record};
use tachonym_dispatch::power::load::{Blocks, N_BLOCKS, Store};
use tachonym_dispatch::power::model::Watts;
use tachonym_dispatch::power::servers::Server;

use super::super::bottleneck_published::MEMORY_BYTES;
use super::super::cache::published::{block, cycles};
use super::{THETA, here};

/// Bits of a Data packet of 1,024 bytes.
const DATA_BITS: f64 = 8.0 * 1024.0;
/// Energy of a packet of the XL710 cards (section 6.5.1).
const XL710_J_PER_PACKET: f64 = 2.3e-7;
/// Bytes of B6 in the naive and in the optimised router (section 6.4.4).
const FIB_BYTES: [f64; 2] = [89.0, 281.0];
/// What prefetching saves of an Interest's cycles and of a Data's, % (section 4.4.1).
const SAVED_PERCENT: [f64; 2] = [28.85, 11.98];
/// The published reduction at [`FULL_GBPS`], % (section 6.5.3).
pub(super) const PUBLISHED_PERCENT: f64 = 11.3;
pub(super) const FULL_GBPS: f64 = 58.0;

const fn number(name: &'static str, help: &'static str, value: &'static str) -> Param {
    Param::new(name, help, ParamKind::Number, [value; 3])
}

/// What measuring cycles here needs.
pub(super) const NEEDS: &[Need] = &[Need::MemoryGib(1.0, 1.0)];

const OWN_PARAMS: [Param; 6] = [
    number("hits", "hit ratio of the naive router", "0.238"),
    number(
        "optimised_hits",
        "hit ratio of the optimised router",
        "0.341",
    ),
    number(
        "insertions",
        "share of Data that the optimised router inserts",
        "0.03",
    ),
    number("gbps", "the data rate of comparisons, Gbit/s", "58"),
    number(
        "chassis_w",
        "watts of the idle server; the thesis swaps two",
        "34.20",
    ),
    THETA,
];

/// Of the study, and of the cycles that are measured here.
pub(super) const PARAMS: [Param; 13] = joined(&OWN_PARAMS, &here::PARAMS);

/// Both, one after the other.
pub(super) const fn joined<const N: usize>(first: &[Param], second: &[Param]) -> [Param; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [first[0]; N];
    let mut idx = 0;
    while idx < N {
        all[idx] = if idx < first.len() {
            first[idx]
        } else {
            second[idx - first.len()]
        };
        idx += 1;
    }
    all
}

/// A router of the case study.
#[derive(Clone, Copy, Debug)]
pub(super) struct Router {
    pub(super) label: &'static str,
    pub(super) store: Store,
    pub(super) cycles: Blocks,
    pub(super) bytes: Blocks,
    /// Which router it is compared with: index in [`Study::routers`].
    naive: usize,
    /// The data rate at which they are compared.
    pub(super) gbps: f64,
}

impl Router {
    /// Cycles of an exchange.
    pub(super) fn exchange(&self) -> f64 {
        self.store.exchange(&self.cycles)
    }

    /// The same with cycles that are scaled such that an exchange takes `cycles`.
    fn with_exchange(mut self, cycles: f64) -> Self {
        let factor = cycles / self.exchange();
        self.cycles.0.iter_mut().for_each(|it| *it *= factor);
        self
    }
}

/// Index of the optimised router with published cycles.
pub(super) const OPTIMISED: usize = 2;

/// The server, and the routers to compare: naive, with Filter alone and optimised by
/// published cycles, then naive and optimised by those measured here.
pub(super) struct Study {
    server: Server,
    pub(super) routers: Vec<Router>,
    theta: f64,
}

/// Cycles of all blocks with a policy (Tables 5.1 and 5.2).
fn table_cycles(policy: &str) -> anyhow::Result<Blocks> {
    let by_policy = cycles(policy).ok_or_else(|| anyhow::anyhow!("no cycles of {policy}"))?;
    Ok(Blocks(std::array::from_fn(|idx| match idx + 1 {
        2 => by_policy[0],
        12 => by_policy[1],
        13 => by_policy[2],
        n => block(n as u8),
    })))
}

/// Cycles with prefetching: blocks of an Interest and of a Data each with their share saved.
fn prefetched(cycles: Blocks) -> Blocks {
    let is_of_interest = |n| (1..=7).contains(&n);
    Blocks(std::array::from_fn(|idx| {
        let saved = SAVED_PERCENT[usize::from(!is_of_interest(idx + 1))];
        cycles.0[idx] * (1.0 - saved / 100.0)
    }))
}

/// Bytes of blocks, such that an Interest that misses, one that hits and a Data have those of
/// Table 3.1; the table does not divide them further. B6 is as section 6.4.4 says.
fn bytes(fib_bytes: f64) -> Blocks {
    let [miss, hit, data] = MEMORY_BYTES.values.map(f64::from);
    let mut bytes = [0.0; N_BLOCKS];
    bytes[0] = hit;
    bytes[4] = miss - hit - FIB_BYTES[0];
    bytes[5] = fib_bytes;
    bytes[7] = data;
    Blocks(bytes)
}

impl Study {
    /// Notes of what is measured here go to the record.
    pub(super) fn new(context: &Context, record: &mut Record) -> anyhow::Result<Self> {
        let mut server = Server::published("e3-1220")?;
        server.nic_j_per_packet = XL710_J_PER_PACKET;
        server.chassis_w = context.number("chassis_w");
        server.check()?;
        let naive = Store::AdmitsAll {
            hits: context.number("hits"),
        };
        let filter = Store::Admits {
            hits: context.number("optimised_hits"),
            insertions: context.number("insertions"),
        };
        for share in ["hits", "optimised_hits", "insertions"] {
            let value = context.number(share);
            let is_share = (0.0..=1.0).contains(&value);
            anyhow::ensure!(is_share, "{share} is {value}, but must be from 0 to 1");
        }
        let gbps = context.number("gbps");
        let router = |label, store, cycles, fib_bytes| Router {
            label,
            store,
            cycles,
            bytes: bytes(fib_bytes),
            naive: 0,
            gbps,
        };
        let [fifo_cycles, filter_cycles] = [table_cycles("fifo")?, table_cycles("filter/fifo")?];
        let [few, many] = FIB_BYTES;
        let mut study = Self {
            server,
            routers: vec![
                router("naive", naive, fifo_cycles, few),
                router("Filter alone", filter, filter_cycles, few),
                router("optimised", filter, prefetched(filter_cycles), many),
            ],
            theta: context.number("theta"),
        };
        if let Some(measured) = here::measure(context, [naive, filter], record)? {
            let [naive_here, optimised_here] = measured.map(|it| it.cycles);
            study.add_here(
                router("naive, cycles here", naive, naive_here, few),
                router("optimised, cycles here", filter, optimised_here, many),
            );
        }
        Ok(study)
    }

    /// Adds two routers that are compared at the data rate of the study, or at the one that
    /// fills the slower of them.
    fn add_here(&mut self, naive: Router, optimised: Router) {
        let full = self.full_gbps(&naive).min(self.full_gbps(&optimised));
        // Rounding must not ask for more than all.
        let gbps = naive.gbps.min(full * (1.0 - 1e-9));
        let idx = self.routers.len();
        self.routers.extend([naive, optimised].map(|it| Router {
            naive: idx,
            gbps,
            ..it
        }));
    }

    /// Power at a data rate; `None` if the router can't carry it.
    pub(super) fn power(&self, router: &Router, gbps: f64) -> Option<Watts> {
        let interests_per_s = gbps * 1e9 / DATA_BITS;
        let load = router
            .store
            .load(&router.cycles, &router.bytes, interests_per_s);
        self.server.power(load, self.theta)
    }

    /// The data rate at which a router's cores are full.
    pub(super) fn full_gbps(&self, router: &Router) -> f64 {
        self.server.cpu.capacity_hz() / router.exchange() * DATA_BITS / 1e9
    }

    /// By how much a router takes less than its naive one at a data rate, %.
    pub(super) fn saved_percent(&self, router: &Router, gbps: f64) -> Option<f64> {
        let naive_w = self.power(&self.routers[router.naive], gbps)?.total_w();
        Some(100.0 * (1.0 - self.power(router, gbps)?.total_w() / naive_w))
    }

    /// The most cycles of an exchange with which the optimised router would save `percent`,
    /// all else as it is, found by halving.
    pub(super) fn cycles_for(&self, percent: f64, gbps: f64) -> Option<f64> {
        let router = self.routers[OPTIMISED];
        let saves = |cycles| self.saved_percent(&router.with_exchange(cycles), gbps);
        let (mut less, mut more) = (1.0, self.routers[0].exchange());
        if saves(less)? < percent || saves(more)? > percent {
            return None;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(less, more);
            if saves(middle)? >= percent {
                less = middle;
            } else {
                more = middle;
            }
        }
        Some(less)
    }
}
