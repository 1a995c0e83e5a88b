//! `tachonym-lab cache forward`: what the policy of the content store does to the rate of
//! forwarding.
//!
//! Takemasa et al. 2019, section 6.4 and Figure 8: one thread, the web workload, Interests
//! of 121 bytes and Data of 1,143, names of seven components; here with the router's own
//! engine between buffers in memory. A miss costs the Interest's way upstream and the
//! Data's way back, an insertion the copy of the Data and what it evicts, a hit the answer.
//! Policies take turns, each with an engine of its own that sees the same requests.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Args;
use plotters::prelude::*;
use serde::Serialize;
use tachonym_forward::{Engine, EngineConfig, FaceTraits, Output, RxPacket, Schedule};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, HashKind, InterestRewrite, InterestView, MonoNs, NackReason, Name, NameView,
    PacketView, tlv, types,
};
use tachonym_tables::{CsCapacity, FibConfig, NextHop};

use super::rates::policy;
use super::simulate::{Requests as _, name_hash};
use super::workload::Independent;
use crate::engine_bed::workload::Burst;
use crate::engine_bed::{Kind, SendBuffer};
use crate::output;
use crate::stats::Spread;

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
const ALPHA: f64 = 0.8;
const INTEREST_BYTES: usize = 121;
const DATA_BYTES: usize = 1_143;
/// Virtual time between two packets, in nanoseconds.
const PACKET_INTERVAL_NS: u64 = 250;
/// Requests that make a cache what it is in the long run, by its size.
const WARM_BY_LEN: usize = 40;

/// The published forwarding rates, in gigabits a second.
const PUBLISHED_GBPS: [(&str, f64); 3] = [("filter/fifo", 16.1), ("arc", 11.2), ("fifo", 13.9)];

/// Measures how fast the engine forwards with each policy of the content store
#[derive(Args, Clone, Debug)]
pub(super) struct ForwardArgs {
    /// Objects of one Data each, by Zipf's law with exponent 0.8
    #[arg(long, default_value_t = 10_000_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1_000..=1 << 30))]
    objects: u32,
    /// Data in the content store of each engine
    #[arg(long, default_value_t = 100_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(100..=1 << 26))]
    store: u32,
    /// Policies: an eviction policy, or an admission policy, a slash and an eviction policy; the
    /// others are compared with the first
    #[arg(long, value_delimiter = ',', value_name = "POLICY", default_values_t =
          ["fifo", "filter/fifo", "filter/clock", "filter-auto/gclock", "arc",
           "tinylfu/random", "lru"].map(String::from))]
    policy: Vec<String>,
    /// Prefixes in the FIB of each engine
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    fib_prefixes: u32,
    /// Rounds, each of which measures every policy
    #[arg(long, default_value_t = 75, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Interests in a round, of each policy
    #[arg(long, default_value_t = 65_536, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1_024..=1 << 28))]
    requests: u32,
    /// Packets of a burst
    #[arg(long, default_value_t = 32, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    burst: u16,
    /// Order of work in a burst
    #[arg(long, default_value_t = Schedule::default(), value_name = "SCHEDULE")]
    schedule: Schedule,
    /// Seed of the requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Writes a chart of the result to this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
struct ForwardReport {
    /// Objects.
    n_objects: u32,
    /// Data in the store.
    store_pkts: u32,
    /// Prefixes in the FIB.
    n_fib_prefixes: u32,
    /// By policy.
    rows: Vec<Row>,
}

/// One policy.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// Admission and eviction.
    policy: String,
    /// Interests that the store answered, by all.
    hit_ratio: f64,
    /// Data cached, by those that came.
    insertion_ratio: f64,
    /// A request: its Interest, and if it missed, its Data; in nanoseconds.
    request_ns: Spread,
    /// Interests and Data forwarded in a second, by those of the first: the median of the
    /// rounds' ratios.
    rate_by_first: f64,
    /// Interests and Data sent, millions in a second.
    mpps: f64,
    /// What they have of bits, in gigabits a second.
    gbps: f64,
}

impl fmt::Display for ForwardReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} objects, {} Data cached, {} prefixes; Interests of {INTEREST_BYTES} bytes, Data \
             of {DATA_BYTES}; one thread\n\n| policy | hits | Data inserted | ns a request \
             (p10-p90) \
             | requests/s relative to the first | million packets/s | Gbit/s | published Gbit/s, \
             by FIFO's |\
             \n|---|---|---|---|---|---|---|---|",
            self.n_objects, self.store_pkts, self.n_fib_prefixes
        )?;
        let published = |policy: &str| {
            let found = PUBLISHED_GBPS.iter().find(|(name, _)| *name == policy);
            found.map_or(String::new(), |(_, gbps)| {
                format!("{gbps}, {:.2}", gbps / PUBLISHED_GBPS[2].1)
            })
        };
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {:.4} | {:.4} | {:.0} ({:.0}-{:.0}) | {:.3} | {:.2} | {:.1} | {} |",
                row.policy,
                row.hit_ratio,
                row.insertion_ratio,
                row.request_ns.median,
                row.request_ns.p10,
                row.request_ns.p90,
                row.rate_by_first,
                row.mpps,
                row.gbps,
                published(&row.policy),
            )?;
        }
        Ok(())
    }
}

/// Runs the command.
///
/// # Errors
/// If the tables cannot be built, or the drawing cannot be written.
pub(super) fn run(args: &ForwardArgs) -> anyhow::Result<()> {
    let requests = Independent::new(args.objects, ALPHA, args.seed);
    let policies = args.policy.iter();
    let mut beds = policies
        .map(|name| WebBed::new(args, requests.clone(), name))
        .collect::<anyhow::Result<Vec<_>>>()?;
    for bed in &mut beds {
        bed.take((args.store as usize * WARM_BY_LEN) as u64);
    }
    let before: Vec<Counted> = beds.iter().map(WebBed::counted).collect();
    let mut rounds = vec![Vec::new(); beds.len()];
    for round in 0..usize::from(args.rounds) {
        for turn in 0..beds.len() {
            let idx = (turn + round) % beds.len();
            rounds[idx].push(beds[idx].take(args.requests.into()));
        }
    }
    let rows = beds.iter().enumerate().map(|(idx, bed)| {
        let counted = bed.counted().since(&before[idx]);
        row_of(bed, &counted, &rounds[idx], &rounds[0])
    });
    let report = ForwardReport {
        n_objects: args.objects,
        store_pkts: args.store,
        n_fib_prefixes: args.fib_prefixes,
        rows: rows
            .collect::<Option<_>>()
            .context("no round was measured")?,
    };
    if let Some(path) = &args.svg {
        draw(&report, path).with_context(|| format!("cannot draw {}", path.display()))?;
    }
    output::print(&report, args.json)
}

fn row_of(bed: &WebBed, counted: &Counted, rounds: &[f64], first: &[f64]) -> Option<Row> {
    let request_ns = Spread::of(rounds)?;
    let ratios: Vec<f64> = first
        .iter()
        .zip(rounds)
        .map(|(first, own)| first / own)
        .collect();
    let n_interests = counted.n_interests as f64;
    // A request sends a Data to the consumer, and one that misses an Interest before.
    let n_sent_by_request = 1.0 + counted.n_misses as f64 / n_interests;
    let bits_by_request =
        8.0 * (DATA_BYTES as f64 + INTEREST_BYTES as f64 * counted.n_misses as f64 / n_interests);
    Some(Row {
        policy: bed.label.clone(),
        hit_ratio: 1.0 - counted.n_misses as f64 / n_interests,
        insertion_ratio: counted.n_inserts as f64 / counted.n_data.max(1) as f64,
        rate_by_first: Spread::of(&ratios)?.median,
        mpps: n_sent_by_request * 1e3 / request_ns.median,
        gbps: bits_by_request / request_ns.median,
        request_ns,
    })
}

/// What has come and gone.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    n_interests: u64,
    n_misses: u64,
    n_data: u64,
    n_inserts: u64,
}

impl Counted {
    const fn since(&self, earlier: &Self) -> Self {
        Self {
            n_interests: self.n_interests - earlier.n_interests,
            n_misses: self.n_misses - earlier.n_misses,
            n_data: self.n_data - earlier.n_data,
            n_inserts: self.n_inserts - earlier.n_inserts,
        }
    }
}

/// An engine between a consumer and the producer of all objects.
struct WebBed {
    label: String,
    engine: Engine,
    requests: Independent,
    burst_pkts: usize,
    n_prefixes: u32,
    now: MonoNs,
    n_nonces: u32,
    out: Upstream,
    interests: Burst,
    data: Burst,
}

impl WebBed {
    fn new(args: &ForwardArgs, requests: Independent, name: &str) -> anyhow::Result<Self> {
        let n_prefixes = args.fib_prefixes as usize;
        let config = EngineConfig {
            cs: CsCapacity {
                max_pkts: args.store as usize,
                // The number of packets is to be what bounds it.
                max_bytes: args.store as usize * 8_192,
            },
            cs_policy: policy(name, args.store as usize)?,
            fib: FibConfig {
                expected_entries: n_prefixes,
                ..FibConfig::with_max_entries(n_prefixes + 1_024)
            },
            schedule: args.schedule,
            ..EngineConfig::default()
        };
        let key = HashKey::new(HashKind::fastest(), &[7; 32]);
        let mut engine = Engine::new(config, key, 3)?;
        for face in [CONSUMER, PRODUCER] {
            engine.add_face(face, FaceTraits::REMOTE);
        }
        for number in 0..args.fib_prefixes {
            let mut value = Vec::new();
            write_prefix(number, &mut value);
            let prefix: Name = NameView::parse_value(&value).context("a name")?.to_name();
            engine.add_next_hop(prefix.view(), NextHop::new(PRODUCER, 0))?;
        }
        Ok(Self {
            label: name.to_owned(),
            engine,
            requests,
            burst_pkts: usize::from(args.burst),
            n_prefixes: args.fib_prefixes,
            now: MonoNs(1_000_000_000),
            n_nonces: 0,
            out: Upstream {
                sent: SendBuffer::new(()),
                asked: Vec::new(),
            },
            interests: Burst::default(),
            data: Burst::default(),
        })
    }

    fn counted(&self) -> Counted {
        let (engine, store) = (self.engine.counters(), self.engine.cs().counters());
        Counted {
            n_interests: engine.n_in_interests,
            n_misses: store.n_misses,
            n_data: engine.n_in_data,
            n_inserts: store.n_inserts,
        }
    }

    /// Takes so many requests; nanoseconds of the engine for each.
    fn take(&mut self, n_requests: u64) -> f64 {
        let mut objects = vec![0; self.burst_pkts];
        let (mut n_taken, mut elapsed_ns) = (0, 0);
        while n_taken < n_requests {
            let n_here = self.requests.fill(&mut objects);
            n_taken += n_here as u64;
            self.interests.clear();
            for &object in &objects[..n_here] {
                self.n_nonces = self.n_nonces.wrapping_add(1);
                let (nonce, n_prefixes) = (self.n_nonces, self.n_prefixes);
                self.interests
                    .push(|out| write_interest(object, n_prefixes, nonce, out));
            }
            elapsed_ns += self.carry(Kind::Miss);
            self.data.clear();
            for &idx in &self.out.asked {
                let (object, n_prefixes) = (objects[idx], self.n_prefixes);
                self.data.push(|out| write_data(object, n_prefixes, out));
            }
            elapsed_ns += self.carry(Kind::Data);
        }
        elapsed_ns as f64 / n_taken as f64
    }

    /// Carries the Interests, or the Data; how long that took.
    fn carry(&mut self, kind: Kind) -> u128 {
        let (burst, face) = match kind {
            Kind::Data => (&self.data, PRODUCER),
            _ => (&self.interests, CONSUMER),
        };
        self.now.0 += PACKET_INTERVAL_NS * burst.len() as u64;
        self.out.asked.clear();
        let mut rx = Vec::with_capacity(burst.len());
        let headers = Headers::default();
        let begun = Instant::now();
        for wire in burst.iter() {
            let packet = PacketView::parse(wire).expect("written here");
            rx.push(RxPacket::new(face, &headers, packet).expect("no headers"));
        }
        let mut out = Watched {
            upstream: &mut self.out,
            burst,
        };
        self.engine.handle_burst(self.now, &rx, &mut out);
        begun.elapsed().as_nanos()
    }
}

/// Where packets go, and which Interests went to the producer.
struct Upstream {
    sent: SendBuffer<()>,
    /// Their places in the burst.
    asked: Vec<usize>,
}

struct Watched<'a> {
    upstream: &'a mut Upstream,
    burst: &'a Burst,
}

impl Output for Watched<'_> {
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        let place = self.burst.place_of(interest.wire());
        self.upstream.asked.extend(place);
        let sent = &mut self.upstream.sent;
        sent.send_interest(face, interest, rewrite, headers);
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        self.upstream.sent.send_data(face, data_wire, headers);
    }

    fn send_nack(&mut self, _: FaceId, reason: NackReason, _: &[u8], _: &Headers) {
        panic!("nothing is refused here: {reason:?}");
    }
}

/// Four components, in which `number` is.
fn write_prefix(number: u32, out: &mut Vec<u8>) {
    for place in 0..4 {
        let scattered = name_hash(number.wrapping_mul(4).wrapping_add(place));
        write_component(scattered, 9, out);
    }
}

/// A component of `n_bytes` that says `number`.
fn write_component(number: u64, n_bytes: usize, out: &mut Vec<u8>) {
    tlv::write_head(out, types::component::GENERIC.into(), n_bytes);
    let text = format!("{number:016x}");
    out.extend(text.bytes().cycle().take(n_bytes));
}

fn write_name(object: u32, n_prefixes: u32, out: &mut Vec<u8>) {
    let scattered = name_hash(object);
    write_prefix((scattered % u64::from(n_prefixes)) as u32, out);
    write_component(scattered >> 32, 9, out);
    write_component(scattered, 9, out);
    // So long that an Interest is as long as it should be.
    write_component(
        u64::from(object),
        INTEREST_BYTES - 2 - 2 - 6 * 11 - 2 - 6,
        out,
    );
}

fn write_interest(object: u32, n_prefixes: u32, nonce: u32, out: &mut Vec<u8>) {
    tlv::write_nested(out, types::INTEREST, |out| {
        tlv::write_nested(out, types::NAME, |out| write_name(object, n_prefixes, out));
        tlv::write_tlv(out, types::NONCE, &nonce.to_be_bytes());
    });
}

fn write_data(object: u32, n_prefixes: u32, out: &mut Vec<u8>) {
    const REST_BYTES: usize = 4 + (INTEREST_BYTES - 2 - 6) + 4 + 5 + 34;
    tlv::write_nested(out, types::DATA, |out| {
        tlv::write_nested(out, types::NAME, |out| write_name(object, n_prefixes, out));
        tlv::write_head(out, types::CONTENT, DATA_BYTES - REST_BYTES);
        out.resize(out.len() + DATA_BYTES - REST_BYTES, 0x5a);
        tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
        });
        tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0; 32]);
    });
}

/// Draws gigabits a second by policy, as bars, and the published ones beside.
fn draw(report: &ForwardReport, path: &Path) -> anyhow::Result<()> {
    ensure!(!report.rows.is_empty(), "nothing to draw");
    let published = PUBLISHED_GBPS.iter().map(|(_, gbps)| *gbps);
    let of_rows = report.rows.iter().map(|row| row.gbps);
    let max = of_rows.chain(published).fold(0.1, f64::max);
    let n_rows = report.rows.len();
    let area = SVGBackend::new(path, (960, 460)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(
            "Figure 8: forwarded by one thread, web workload",
            ("sans-serif", 18),
        )
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..n_rows as f64, 0.0..max * 1.3)?;
    let label = |x: &f64| {
        let is_middle = (x.fract() - 0.5).abs() < 0.01;
        match report.rows.get(*x as usize) {
            Some(row) if is_middle => row.policy.clone(),
            _ => String::new(),
        }
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(2 * n_rows + 1)
        .x_label_formatter(&label)
        .label_style(("sans-serif", 13))
        .y_desc("Gbit/s")
        .draw()?;
    let bar = |from: f64, to: f64, height: f64, color: RGBAColor| {
        Rectangle::new([(from, 0.0), (to, height)], color.filled())
    };
    let key = |color: RGBAColor| {
        move |(x, y): (i32, i32)| Rectangle::new([(x, y - 4), (x + 12, y + 4)], color.filled())
    };
    let (here, grey) = (BLUE.mix(0.7), BLACK.mix(0.35));
    let rows = || report.rows.iter().zip(0_u16..);
    chart
        .draw_series(rows().map(|(row, idx)| {
            let x = f64::from(idx);
            bar(x + 0.15, x + 0.48, row.gbps, here)
        }))?
        .label("here")
        .legend(key(here));
    chart
        .draw_series(rows().filter_map(|(row, idx)| {
            let (x, found) = (
                f64::from(idx),
                PUBLISHED_GBPS.iter().find(|of| of.0 == row.policy),
            );
            found.map(|(_, gbps)| bar(x + 0.52, x + 0.85, *gbps, grey))
        }))?
        .label("published, Xeon E5-2699 v4")
        .legend(key(grey));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tachonym_packet::DataView;

    use super::*;

    #[test]
    fn packets_are_as_long_as_published_and_answer_each_other() {
        for object in [0, 7, 9_999_999] {
            let (mut interest, mut data) = (Vec::new(), Vec::new());
            write_interest(object, 1_000, 5, &mut interest);
            write_data(object, 1_000, &mut data);
            assert_eq!((interest.len(), data.len()), (INTEREST_BYTES, DATA_BYTES));
            let interest = InterestView::parse(&interest).expect("well-formed");
            let data = DataView::parse(&data).expect("well-formed");
            assert_eq!(interest.name(), data.name());
            assert_eq!(data.name().len(), 7);
        }
    }
}
