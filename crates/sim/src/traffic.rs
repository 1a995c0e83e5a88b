//! Which packets come.
//!
//! The traces of the thesis (CAIDA 2011, Auckland-II 2000) are not available. The
//! traffic in their place is drawn: flows whose sizes fall with their rank as `(r + q)^-a`
//! (its Figure 4.3 shows sizes that fall like this, in a drawing that tells no numbers),
//! packets of a flow in trains, as its section 4.3.3 describes them, and sizes of packets
//! of three kinds. Every number below is an assumption of this module, and none was chosen
//! by what came of it.

use std::sync::Arc;

use tachonym_dispatch::{Key, ServiceId};

use crate::random::{Random, mix};
use crate::rate::RateModel;
use crate::weighted::Weighted;

/// A packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When, in nanoseconds from the start.
    pub at_ns: u64,
    /// Its flow, or name.
    pub flow: u32,
    /// Its service.
    pub service: ServiceId,
    /// Its size, in bytes.
    pub bytes: u16,
}

/// The key that a flow is dispatched by, as a keyed hash of its name would be.
#[inline]
#[must_use]
pub const fn key_of(flow: u32) -> Key {
    Key(mix(flow as u64 ^ 0x05EE_D0FF_1050_0000))
}

/// Sizes of packets and their shares: acknowledgements, what old links allow, and full
/// frames. About 650 bytes on average, as backbone links of 2011 had.
pub const SIZES: [(u16, f64); 3] = [(64, 0.5), (576, 0.15), (1_500, 0.35)];

/// Bytes of a packet on average.
#[must_use]
pub fn mean_packet_bytes() -> f64 {
    SIZES
        .iter()
        .map(|&(bytes, share)| f64::from(bytes) * share)
        .sum()
}

/// What a trace is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowModel {
    /// Flows.
    pub n_flows: u32,
    /// How steeply sizes fall with the rank.
    pub alpha: f64,
    /// How much flatter the first ranks are.
    pub offset: f64,
    /// Packets of a train on average, from 1 on.
    pub train_pkts: f64,
    /// Share of the packets that the largest flow has, below 1; 0: as its rank says.
    pub largest_share: f64,
}

impl FlowModel {
    /// In place of a minute on a backbone link (CAIDA), numbered from 1: hundreds of
    /// thousands of flows, the largest of which has less than a hundredth of the packets.
    #[must_use]
    pub fn backbone(number: u32) -> Self {
        Self {
            n_flows: 300_000,
            alpha: 1.025 + 0.025 * f64::from(number),
            offset: 20.0,
            train_pkts: 3.0,
            largest_share: 0.0,
        }
    }

    /// In place of a university's link (Auckland), numbered from 1: fewer flows, and larger
    /// ones among them.
    #[must_use]
    pub fn campus(number: u32) -> Self {
        Self {
            n_flows: 50_000,
            alpha: 1.125 + 0.025 * f64::from(number),
            offset: 5.0,
            train_pkts: 3.0,
            largest_share: 0.0,
        }
    }

    /// Names that are asked for as web objects are: Zipf of 0.8.
    #[must_use]
    pub const fn names(n_names: u32) -> Self {
        Self {
            n_flows: n_names,
            alpha: 0.8,
            offset: 0.0,
            train_pkts: 1.0,
            largest_share: 0.0,
        }
    }

    /// A backbone link with one flow that has this share of the packets.
    #[must_use]
    pub fn large_flow(share: f64) -> Self {
        Self {
            largest_share: share,
            ..Self::backbone(1)
        }
    }

    /// How often each flow is drawn, by rank.
    #[must_use]
    pub fn weights(&self) -> Vec<f64> {
        let weight = |rank: u32| (f64::from(rank) + 1.0 + self.offset).powf(-self.alpha);
        let mut weights: Vec<_> = (0..self.n_flows.max(1)).map(weight).collect();
        if self.largest_share > 0.0 && weights.len() > 1 {
            let others: f64 = weights[1..].iter().sum();
            weights[0] = others * self.largest_share / (1.0 - self.largest_share);
        }
        weights
    }
}

/// Trains on their way at the same time.
const N_TRAINS: u32 = 64;

/// Flows and sizes of a service's packets, one after another.
#[derive(Clone, Debug)]
pub enum Trace {
    /// Drawn from a model.
    Drawn(Box<Drawn>),
    /// Read from somewhere, again and again.
    Recorded(Recorded),
}

/// See [`Trace::Drawn`]. Flow 0 is the largest.
#[derive(Clone, Debug)]
pub struct Drawn {
    flows: Weighted,
    n_flows: u32,
    sizes: Weighted,
    trains: [u32; N_TRAINS as usize],
    ends: f64,
    random: Random,
}

/// See [`Trace::Recorded`].
#[derive(Clone, Debug)]
pub struct Recorded {
    packets: Arc<[(u32, u16)]>,
    n_flows: u32,
    next: usize,
}

impl Trace {
    /// Draws from a model.
    #[must_use]
    pub fn drawn(model: &FlowModel, seed: u64) -> Self {
        let flows = Weighted::new(&model.weights());
        let mut random = Random::new(seed);
        let trains = std::array::from_fn(|_| flows.draw(&mut random));
        Self::Drawn(Box::new(Drawn {
            flows,
            n_flows: model.n_flows.max(1),
            sizes: Weighted::new(&SIZES.map(|(_, share)| share)),
            trains,
            ends: 1.0 / model.train_pkts.max(1.0),
            random,
        }))
    }

    /// Repeats these packets: flows and sizes in bytes. `None` if there is none.
    #[must_use]
    pub fn recorded(packets: Vec<(u32, u16)>) -> Option<Self> {
        let n_flows = packets.iter().map(|it| it.0).max()?.checked_add(1)?;
        Some(Self::Recorded(Recorded {
            packets: packets.into(),
            n_flows,
            next: 0,
        }))
    }

    /// Flows are numbered below this.
    #[must_use]
    pub const fn n_flows(&self) -> u32 {
        match self {
            Self::Drawn(drawn) => drawn.n_flows,
            Self::Recorded(recorded) => recorded.n_flows,
        }
    }

    /// The next packet's flow and size in bytes.
    #[inline]
    pub fn next_flow(&mut self) -> (u32, u16) {
        match self {
            Self::Drawn(drawn) => drawn.next_flow(),
            Self::Recorded(recorded) => {
                let packet = recorded.packets[recorded.next];
                recorded.next = (recorded.next + 1) % recorded.packets.len();
                packet
            }
        }
    }
}

impl Drawn {
    #[inline]
    fn next_flow(&mut self) -> (u32, u16) {
        let random = &mut self.random;
        let train = random.below(N_TRAINS) as usize;
        let flow = self.trains[train];
        if random.next_fraction() < self.ends {
            self.trains[train] = self.flows.draw(random);
        }
        let (bytes, _) = SIZES[self.sizes.draw(random) as usize];
        (flow, bytes)
    }
}

/// Changes of rates without a packet after which traffic is over.
pub const MAX_QUIET_CHANGES: u32 = 10_000;

/// Packets of several services: traces whose rates follow models, as in section 3.4.2.
/// Gaps are those of a Poisson process with the rate of the moment.
#[derive(Clone, Debug)]
pub struct Traffic {
    services: Vec<(RateModel, Trace, u32)>,
    rates_pps: Vec<f64>,
    total_pps: f64,
    at_ns: f64,
    /// When rates change next.
    changes_at_ns: f64,
    /// By how much rates change sooner than their models say.
    speedup: f64,
    random: Random,
}

impl Traffic {
    /// A service for each model and trace. Rates change `speedup` times as fast as their
    /// models say, so that a minute of theirs takes less than one.
    ///
    /// # Panics
    /// If `speedup` isn't above 0.
    #[must_use]
    pub fn new(services: Vec<(RateModel, Trace)>, speedup: f64, seed: u64) -> Self {
        assert!(speedup > 0.0, "time goes on");
        let mut first = 0;
        let services: Vec<_> = (services.into_iter())
            .map(|(rate, trace)| {
                let offset = first;
                first += trace.n_flows();
                (rate, trace, offset)
            })
            .collect();
        let mut traffic = Self {
            rates_pps: vec![0.0; services.len()],
            services,
            total_pps: 0.0,
            at_ns: 0.0,
            changes_at_ns: 0.0,
            speedup,
            random: Random::new(seed),
        };
        traffic.change_rates();
        traffic
    }

    /// Flows of all services are numbered below this: those of the first first.
    #[must_use]
    pub fn n_flows(&self) -> usize {
        let flows = self.services.iter();
        flows.map(|(_, trace, _)| trace.n_flows() as usize).sum()
    }

    /// Rates of the moment, in packets per second.
    #[must_use]
    pub fn rates_pps(&self) -> &[f64] {
        &self.rates_pps
    }

    fn change_rates(&mut self) {
        let at_s = self.changes_at_ns * self.speedup / 1e9;
        for ((model, _, _), rate) in self.services.iter().zip(&mut self.rates_pps) {
            *rate = model.rate_pps(at_s, &mut self.random);
        }
        self.total_pps = self.rates_pps.iter().sum();
        self.changes_at_ns += 1e9 / self.speedup;
    }

    /// The next packet; `None` if none came in [`MAX_QUIET_CHANGES`] changes of rates.
    #[inline]
    pub fn next_packet(&mut self) -> Option<Packet> {
        let mut n_changes = 0;
        loop {
            let next_ns = if self.total_pps > 0.0 {
                self.at_ns + self.random.exponential(1e9 / self.total_pps)
            } else {
                f64::INFINITY
            };
            if next_ns < self.changes_at_ns {
                self.at_ns = next_ns;
                break;
            }
            n_changes += 1;
            if n_changes > MAX_QUIET_CHANGES {
                return None;
            }
            // Without memory, a Poisson process restarts with the new rate.
            self.at_ns = self.changes_at_ns;
            self.change_rates();
        }
        let mut drawn = self.random.next_fraction() * self.total_pps;
        let mut service = 0;
        while service + 1 < self.rates_pps.len() && drawn >= self.rates_pps[service] {
            drawn -= self.rates_pps[service];
            service += 1;
        }
        let (_, trace, first) = &mut self.services[service];
        let (flow, bytes) = trace.next_flow();
        Some(Packet {
            at_ns: self.at_ns as u64,
            flow: *first + flow,
            service: ServiceId(service as u8),
            bytes,
        })
    }
}
