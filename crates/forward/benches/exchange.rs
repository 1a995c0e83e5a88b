//! Time of one Interest–Data exchange in memory, without sockets.
//!
//! `cargo bench -p tachonym-forward` prints, for each case, median and p10–p90
//! over eleven runs in nanoseconds of CPU time per exchange. An exchange is one
//! Interest and, for a miss, the Data that answers it. Packets are written into
//! a receive buffer that stays warm, as a kernel would; then they are parsed,
//! carried through the engine in bursts and copied into a send buffer, as faces
//! do. What the writing costs is in the figure; the case `writing` is that alone.
//!
//! An argument picks the cases that contain it. With `--once` each case runs over
//! its names a single time after the warm-up, for tools that count instructions:
//! `valgrind --tool=callgrind --toggle-collect='*Case::measured*' <bench> <case>
//! --once`.

#[path = "../tests/bed/mod.rs"]
mod bed;

use std::hint::black_box;

use bed::{data, interest, name};
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Output, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, HashKind, InterestRewrite, InterestView, MonoNs, NackReason, PitToken,
};
use tachonym_tables::{CsCapacity, NextHop};

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
/// The kernel counts CPU time in steps of some milliseconds; a run takes many.
const FULL: Extent = Extent {
    n_runs: 11,
    n_passes: 8,
};
const ONCE: Extent = Extent {
    n_runs: 1,
    n_passes: 1,
};
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

/// What becomes of the Interests of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Each is sent upstream and answered from there.
    Miss,
    /// The content store answers each.
    Hit,
    /// Nothing: they are only written, and so are the Data.
    Writing,
}

/// One case: its name says what moves the result.
#[derive(Clone, Copy)]
struct Case {
    strategy: &'static str,
    burst: usize,
    n_routes: usize,
    kind: Kind,
    content_bytes: usize,
    has_token: bool,
}

impl Case {
    fn label(&self) -> String {
        let Self {
            strategy,
            burst,
            n_routes,
            content_bytes,
            ..
        } = self;
        let kind = match self.kind {
            Kind::Miss => "miss",
            Kind::Hit => "hit",
            Kind::Writing => "writing",
        };
        let token = if self.has_token { "8" } else { "0" };
        format!(
            "forward/exchange/{kind}/strategy={strategy},burst={burst},routes={n_routes},\
             content={content_bytes},token_bytes={token}"
        )
    }

    fn engine(&self) -> Engine {
        let n_cached = if self.kind == Kind::Hit {
            2 * N_NAMES
        } else {
            1024
        };
        let config = EngineConfig {
            cs: CsCapacity {
                max_pkts: n_cached,
                max_bytes: 1 << 30,
            },
            ..EngineConfig::default()
        };
        let key = HashKey::new(HashKind::fastest(), &[7; 32]);
        let mut engine = Engine::new(config, key, 3).expect("memory for small tables");
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
            .choices_mut()
            .set_strategy(name("/").view(), strategy.view())
            .expect("the strategy exists");
        engine
    }

    /// Nanoseconds per exchange, one number per run.
    fn run(&self, extent: Extent) -> Vec<f64> {
        match self.burst {
            1 => self.run_in_bursts::<1>(extent),
            32 => self.run_in_bursts::<32>(extent),
            burst => unreachable!("no case has bursts of {burst}"),
        }
    }

    fn run_in_bursts<const BURST: usize>(&self, extent: Extent) -> Vec<f64> {
        let answer = data(NAME).content(&vec![0; self.content_bytes]).wire();
        let mut bed = Bed::<BURST> {
            engine: self.engine(),
            out: SendBuffer(Vec::with_capacity(1 << 17)),
            asked: std::array::from_fn(|_| Template::new(interest(NAME).wire())),
            answers: std::array::from_fn(|_| Template::new(answer.clone())),
            now: MonoNs(1),
        };
        // The first pass fills the store and the tables' memory.
        self.pass(&mut bed, true);
        let runs_ns = (0..extent.n_runs).map(|_| self.measured(&mut bed, extent.n_passes));
        let runs_ns = runs_ns.collect();
        self.check(&bed.engine, extent);
        runs_ns
    }

    /// Nanoseconds per exchange of one run.
    #[inline(never)]
    fn measured<const BURST: usize>(&self, bed: &mut Bed<BURST>, n_passes: usize) -> f64 {
        let begun_ns = cpu_time_ns();
        for _ in 0..n_passes {
            self.pass(bed, self.kind != Kind::Hit);
        }
        (cpu_time_ns() - begun_ns) as f64 / (N_NAMES * n_passes) as f64
    }

    /// Asks once for every name.
    fn pass<const BURST: usize>(&self, bed: &mut Bed<BURST>, is_answered: bool) {
        for first in (0..N_NAMES).step_by(BURST) {
            bed.now.0 += 1_000 * BURST as u64;
            self.carry(CONSUMER, first, bed);
            if is_answered {
                self.carry(PRODUCER, first, bed);
            }
        }
    }

    fn carry<const BURST: usize>(&self, face: FaceId, first: usize, bed: &mut Bed<BURST>) {
        let headers = Headers {
            pit_token: PitToken::new(&[7; 8]).filter(|_| self.has_token && face == CONSUMER),
            ..Headers::default()
        };
        let templates = match face {
            CONSUMER => &mut bed.asked,
            _ => &mut bed.answers,
        };
        for (n, template) in templates.iter_mut().enumerate() {
            template.number((first + n) as u32);
        }
        let templates = black_box(&*templates);
        if self.kind == Kind::Writing {
            return;
        }
        let rx: [RxPacket<'_>; BURST] = std::array::from_fn(|n| {
            RxPacket::parse(face, &headers, &templates[n].wire).expect("written well-formed")
        });
        bed.engine.handle_burst(bed.now, &rx, &mut bed.out);
        black_box(&bed.out.0);
    }

    /// What was measured must be what the label says.
    fn check(&self, engine: &Engine, extent: Extent) {
        let counters = engine.counters();
        let n_names = N_NAMES as u64;
        let n_measured = n_names * (extent.n_runs * extent.n_passes) as u64;
        let (n_satisfied, n_hits) = match self.kind {
            Kind::Miss => (n_names + n_measured, 0),
            Kind::Hit => (n_names + n_measured, n_measured),
            Kind::Writing => (0, 0),
        };
        assert_eq!(counters.n_satisfied_interests, n_satisfied);
        assert_eq!(counters.n_cs_hits, n_hits);
    }
}

/// An engine with packets for it.
struct Bed<const BURST: usize> {
    engine: Engine,
    out: SendBuffer,
    asked: [Template; BURST],
    answers: [Template; BURST],
    now: MonoNs,
}

/// How long a case is measured.
#[derive(Clone, Copy)]
struct Extent {
    n_runs: usize,
    n_passes: usize,
}

fn main() {
    let base = Case {
        strategy: "best-route",
        burst: 32,
        n_routes: 1,
        kind: Kind::Miss,
        content_bytes: 1000,
        has_token: false,
    };
    let small = Case {
        content_bytes: 128,
        ..base
    };
    let hit = |case: Case| Case {
        kind: Kind::Hit,
        ..case
    };
    let with_token = |case: Case| Case {
        has_token: true,
        ..case
    };
    let by_strategy = |strategy| Case { strategy, ..base };
    let cases = [
        Case {
            kind: Kind::Writing,
            ..small
        },
        small,
        hit(small),
        Case { burst: 1, ..small },
        base,
        hit(base),
        with_token(base),
        with_token(hit(base)),
        Case { burst: 1, ..base },
        Case {
            n_routes: 100_000,
            ..base
        },
        by_strategy("multicast"),
        by_strategy("random"),
        by_strategy("asf"),
        by_strategy("access"),
    ];
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let is_picked = |case: &&Case| {
        filter
            .as_ref()
            .is_none_or(|part| case.label().contains(part))
    };
    let is_once = std::env::args().any(|argument| argument == "--once");
    let extent = if is_once { ONCE } else { FULL };
    for case in cases.iter().filter(is_picked) {
        let mut runs_ns = case.run(extent);
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
