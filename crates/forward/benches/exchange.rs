//! Time of one Interest–Data exchange in memory, without sockets.
//!
//! `cargo bench -p tachonym-forward` prints, for each case, median and p10–p90
//! over eleven runs in nanoseconds of CPU time per exchange. An exchange is one
//! Interest and, for a miss, the Data that answers it. Packets are written into
//! a receive buffer that stays warm, as a kernel would; then they are parsed,
//! carried through the engine in bursts and copied into a send buffer, as faces
//! do. What the writing costs is in the figure.

#[path = "../tests/bed/mod.rs"]
mod bed;

use std::hint::black_box;

use bed::{data, interest, name};
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Output, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, InterestRewrite, InterestView, MonoNs, NackReason, PacketView, PitToken,
};
use tachonym_tables::{CsCapacity, NextHop};

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
const N_RUNS: usize = 11;
/// The kernel counts CPU time in steps of some milliseconds; a run takes many.
const N_PASSES_PER_RUN: usize = 8;
const N_NAMES: usize = 1 << 16;

/// A name whose last component takes a number of four bytes.
const NAME: &str = "/bench/exchange/object/v=1/AAAA";

/// A packet named [`NAME`].
struct Template {
    wire: Vec<u8>,
    number_at: usize,
}

impl Template {
    fn new(wire: Vec<u8>) -> Self {
        let number_at = wire
            .windows(4)
            .position(|at| at == b"AAAA")
            .expect("NAME ends so");
        Self { wire, number_at }
    }

    /// Gives the packet a name of its own.
    fn number(&mut self, n: u32) {
        self.wire[self.number_at..self.number_at + 4].copy_from_slice(&n.to_be_bytes());
    }
}

/// CPU time of this thread; time that others took does not count.
fn cpu_time_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let on_cpu = stat.split_whitespace().next().expect("three numbers");
    on_cpu.parse().expect("the first is nanoseconds on a CPU")
}

/// Copies what is sent, as a face does, and starts over when it is full.
struct SendBuffer(Vec<u8>);

impl SendBuffer {
    fn room(&mut self) -> &mut Vec<u8> {
        if self.0.len() > 1 << 16 {
            self.0.clear();
        }
        &mut self.0
    }
}

impl Output for SendBuffer {
    fn send_interest(
        &mut self,
        _: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        _: &Headers,
    ) {
        rewrite.write_into(interest, self.room());
    }

    fn send_data(&mut self, _: FaceId, data_wire: &[u8], _: &Headers) {
        self.room().extend_from_slice(data_wire);
    }

    fn send_nack(&mut self, _: FaceId, _: NackReason, interest_wire: &[u8], _: &Headers) {
        self.room().extend_from_slice(interest_wire);
    }
}

/// One case: its name says what moves the result.
struct Case {
    strategy: &'static str,
    burst: usize,
    n_routes: usize,
    is_hit: bool,
    has_token: bool,
}

impl Case {
    fn label(&self) -> String {
        let Self {
            strategy,
            burst,
            n_routes,
            ..
        } = self;
        let kind = if self.is_hit { "hit" } else { "miss" };
        let token = if self.has_token { "8" } else { "0" };
        format!(
            "forward/exchange/{kind}/strategy={strategy},burst={burst},routes={n_routes},\
             content=1000,token_bytes={token}"
        )
    }

    fn engine(&self) -> Engine {
        let n_cached = if self.is_hit { 2 * N_NAMES } else { 1024 };
        let config = EngineConfig {
            cs: CsCapacity {
                max_pkts: n_cached,
                max_bytes: 1 << 30,
            },
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(config, HashKey::from_u64s(1, 2), 3);
        for face in [CONSUMER, PRODUCER] {
            engine.add_face(face, FaceTraits::LOCAL);
        }
        let hop = NextHop::new(PRODUCER, 0);
        engine
            .add_next_hop(name("/bench/exchange").view(), hop)
            .expect("a small FIB");
        for n in 1..self.n_routes {
            let prefix = name(&format!("/routes/{n}/to/elsewhere"));
            engine
                .add_next_hop(prefix.view(), hop)
                .expect("a small FIB");
        }
        let strategy = name(&format!("/localhost/nfd/strategy/{}", self.strategy));
        engine
            .set_strategy(name("/").view(), strategy.view())
            .expect("the strategy exists");
        engine
    }

    /// Nanoseconds per exchange, one number per run.
    fn run(&self) -> Vec<f64> {
        match self.burst {
            1 => self.run_in_bursts::<1>(),
            32 => self.run_in_bursts::<32>(),
            burst => unreachable!("no case has bursts of {burst}"),
        }
    }

    fn run_in_bursts<const BURST: usize>(&self) -> Vec<f64> {
        let mut engine = self.engine();
        let mut out = SendBuffer(Vec::with_capacity(1 << 17));
        let mut asked: [_; BURST] = std::array::from_fn(|_| Template::new(interest(NAME).wire()));
        let answer = data(NAME).content(&[0; 1000]).wire();
        let mut answers: [_; BURST] = std::array::from_fn(|_| Template::new(answer.clone()));
        let mut now = MonoNs(1);
        // The first run fills the store and the tables' memory.
        let mut runs_ns = Vec::new();
        for run in 0..=N_RUNS {
            let begun_ns = cpu_time_ns();
            let n_passes = if run == 0 { 1 } else { N_PASSES_PER_RUN };
            for first in (0..n_passes).flat_map(|_| (0..N_NAMES).step_by(BURST)) {
                now.0 += 1_000 * BURST as u64;
                self.carry(&mut engine, now, CONSUMER, &mut asked, first, &mut out);
                if !self.is_hit || run == 0 {
                    self.carry(&mut engine, now, PRODUCER, &mut answers, first, &mut out);
                }
            }
            if run > 0 {
                runs_ns.push((cpu_time_ns() - begun_ns) as f64 / (N_NAMES * n_passes) as f64);
            }
        }
        self.check(&engine);
        runs_ns
    }

    fn carry<const BURST: usize>(
        &self,
        engine: &mut Engine,
        now: MonoNs,
        face: FaceId,
        templates: &mut [Template; BURST],
        first: usize,
        out: &mut SendBuffer,
    ) {
        let headers = Headers {
            pit_token: PitToken::new(&[7; 8]).filter(|_| self.has_token && face == CONSUMER),
            ..Headers::default()
        };
        for (n, template) in templates.iter_mut().enumerate() {
            template.number((first + n) as u32);
        }
        let templates = &*templates;
        let rx: [RxPacket<'_>; BURST] = std::array::from_fn(|n| {
            let wire = black_box(&templates[n].wire);
            let packet = PacketView::parse(wire).expect("written well-formed");
            RxPacket::new(face, headers, packet).expect("headers make sense")
        });
        engine.handle_burst(now, &rx, out);
        black_box(&out.0);
    }

    /// What was measured must be what the label says.
    fn check(&self, engine: &Engine) {
        let counters = engine.counters();
        let n_names = N_NAMES as u64;
        let n_measured = n_names * (N_RUNS * N_PASSES_PER_RUN) as u64;
        assert_eq!(counters.n_satisfied_interests, n_names + n_measured);
        let n_hits = if self.is_hit { n_measured } else { 0 };
        assert_eq!(counters.n_cs_hits, n_hits);
    }
}

fn main() {
    let base = Case {
        strategy: "best-route",
        burst: 32,
        n_routes: 1,
        is_hit: false,
        has_token: false,
    };
    let cases = [
        Case { ..base },
        Case {
            is_hit: true,
            ..base
        },
        Case {
            has_token: true,
            ..base
        },
        Case {
            is_hit: true,
            has_token: true,
            ..base
        },
        Case { burst: 1, ..base },
        Case {
            n_routes: 100_000,
            ..base
        },
        Case {
            strategy: "multicast",
            ..base
        },
        Case {
            strategy: "random",
            ..base
        },
        Case {
            strategy: "asf",
            ..base
        },
        Case {
            strategy: "access",
            ..base
        },
    ];
    // As with other benches, an argument picks the cases that contain it.
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let is_picked = |case: &&Case| {
        filter
            .as_ref()
            .is_none_or(|part| case.label().contains(part))
    };
    for case in cases.iter().filter(is_picked) {
        let mut runs_ns = case.run();
        runs_ns.sort_by(f64::total_cmp);
        let at = |pct: usize| runs_ns[(runs_ns.len() - 1) * pct / 100];
        println!(
            "{}: {:.0} ns/exchange ({:.0}–{:.0})",
            case.label(),
            at(50),
            at(10),
            at(90)
        );
    }
}
