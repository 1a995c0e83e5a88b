//! Traces: drawn, or read from a file.
//!
//! The traces of the thesis are not available. `caida N` and `auckland N` are drawn, with
//! flow sizes that fall as `(rank + q)^-a`; a drawing of Figure 4.3 is all that is published
//! of theirs. `large flow` is `caida 1` with a flow that has 12 % of the packets, and `names`
//! are drawn by Zipf. A file has names, or the flows of any capture of IP packets.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use etherparse::PacketBuilder;
use tachonym_bench::{Context, Param, ParamKind, Record};
use tachonym_sim::traffic::{FlowModel, Trace};

use crate::workloads::capture;
use crate::workloads::trace::{Trace as NameTrace, TraceFormat};

/// Bytes of a packet of a file that has no sizes.
const BYTES_OF_RECORDED: u16 = 576;
/// The share of the flow in `large flow`.
const LARGE_SHARE: f64 = 0.12;
/// Bytes captured of a packet: headers of IPv4 and UDP.
const HEADER_BYTES: usize = 28;

/// A file instead of drawn traces.
pub(super) const FILE: Param = Param::new(
    "trace",
    "file of names or flows in place of the drawn traces; empty: none",
    ParamKind::Text,
    [""; 3],
);
/// The format of the file.
pub(super) const FORMAT: Param = Param::choice(
    "format",
    "the file's: pcap has names of NDN Interests, flows has flows of IP packets in pcap or pcapng",
    &["oracle-general", "csv", "pcap", "flows"],
    "csv",
);
/// The column of a line.
pub(super) const COLUMN: Param =
    Param::count("column", "column of the name in a line of csv", ["2"; 3]);

/// Which traces are drawn.
pub(super) const fn drawn(traces: &'static str) -> Param {
    Param::new(
        "traces",
        "drawn traces: caida N, auckland N, large flow, names",
        ParamKind::Text,
        [traces; 3],
    )
}

/// The traces of an experiment with these parameters, each with its name.
pub(super) fn all(context: &Context) -> anyhow::Result<Vec<(String, Trace)>> {
    let path = Path::new(context.text("trace"));
    if path.as_os_str().is_empty() {
        let names = context.text("traces").split(',').map(str::trim);
        return names
            .map(|name| Ok((name.to_owned(), trace(name, context.seed())?)))
            .collect();
    }
    let format = match context.text("format") {
        "oracle-general" => Some(TraceFormat::OracleGeneral),
        "csv" => Some(TraceFormat::Csv),
        "pcap" => Some(TraceFormat::Pcap),
        _ => None,
    };
    let packets = match format {
        Some(format) => {
            let names = NameTrace::read(path, format, context.size("column"))?;
            let objects = names.objects().iter();
            objects.map(|&name| (name, BYTES_OF_RECORDED)).collect()
        }
        None => {
            let bytes =
                fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let flows = capture::flows(&bytes).with_context(|| path.display().to_string())?;
            if flows.n_left_out > 0 {
                context.note(format!(
                    "{} packets of the capture are not IP and were skipped",
                    flows.n_left_out
                ));
            }
            flows.packets
        }
    };
    let trace = Trace::recorded(by_rank(packets)).context("the file has no packet")?;
    Ok(vec![(path.display().to_string(), trace)])
}

/// Numbers flows such that 0 came most often.
fn by_rank(mut packets: Vec<(u32, u16)>) -> Vec<(u32, u16)> {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for &(flow, _) in &packets {
        *counts.entry(flow).or_default() += 1;
    }
    let mut ranked: Vec<_> = counts.into_iter().collect();
    ranked.sort_unstable_by_key(|&(flow, count)| (std::cmp::Reverse(count), flow));
    let rank: HashMap<u32, u32> = ranked.iter().zip(0..).map(|(it, n)| (it.0, n)).collect();
    for (flow, _) in &mut packets {
        *flow = rank[flow];
    }
    packets
}

/// The model of a drawn trace.
pub(super) fn model(name: &str) -> anyhow::Result<FlowModel> {
    let (kind, number) = name.split_once(' ').unwrap_or((name, "1"));
    let number = number.parse();
    Ok(match (kind, number) {
        ("caida", Ok(number)) => FlowModel::backbone(number),
        ("auckland", Ok(number)) => FlowModel::campus(number),
        ("names", _) => FlowModel::names(100_000),
        _ if name == "large flow" => FlowModel::large_flow(LARGE_SHARE),
        _ => bail!("no drawn trace `{name}`: caida N, auckland N, large flow, names"),
    })
}

/// A drawn trace.
pub(super) fn trace(name: &str, seed: u64) -> anyhow::Result<Trace> {
    let mixed = |sum: u64, byte| sum.wrapping_mul(131) ^ u64::from(byte);
    Ok(Trace::drawn(&model(name)?, name.bytes().fold(seed, mixed)))
}

/// Says where the drawn traces come from, unless a file was read.
pub(super) fn note(context: &Context, record: &mut Record) {
    if context.text("trace").is_empty() {
        record.note(
            "The traces of the thesis are not available: these are drawn, with flow sizes that \
             fall as (rank + q)^-a, where a and q are assumed; iqbal/figure-4.3 shows them. \
             `--set trace=FILE --set format=flows` reads a capture.",
        );
    }
}

/// Writes packets of a trace as a pcap file of raw IP: headers only, with the sizes that the
/// packets have. Each flow has an address of its own.
pub(super) fn write_capture(path: &Path, trace: &mut Trace, n_packets: u64) -> anyhow::Result<()> {
    ensure!(trace.n_flows() < 1 << 24, "more flows than addresses");
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut file = BufWriter::new(file);
    for word in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, HEADER_BYTES as u32, 101] {
        file.write_all(&word.to_le_bytes())?;
    }
    let mut frame = Vec::new();
    for nth in 0..n_packets {
        let (flow, bytes) = trace.next_flow();
        let [_, a, b, c] = flow.to_be_bytes();
        let n_payload = usize::from(bytes).saturating_sub(HEADER_BYTES);
        frame.clear();
        PacketBuilder::ipv4([10, a, b, c], [192, 0, 2, 1], 64)
            .udp(1_024, 6_363)
            .write(&mut frame, &vec![0; n_payload])?;
        let (seconds, micros) = (nth / 1_000_000, nth % 1_000_000);
        for word in [
            seconds as u32,
            micros as u32,
            HEADER_BYTES as u32,
            frame.len() as u32,
        ] {
            file.write_all(&word.to_le_bytes())?;
        }
        file.write_all(&frame[..HEADER_BYTES])?;
    }
    file.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_numbered_by_rank() {
        let packets = [1, 2, 3, 2, 3, 3].map(|flow| (flow, 100)).to_vec();
        let numbers: Vec<_> = by_rank(packets).iter().map(|it| it.0).collect();
        assert_eq!(numbers, [2, 1, 0, 1, 0, 0]);
    }

    #[test]
    fn a_written_capture_has_the_flows_and_sizes_of_its_trace() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large.pcap");
        let drawn = trace("large flow", 3).expect("a known trace");
        write_capture(&path, &mut drawn.clone(), 5_000).expect("it is written");
        let flows = capture::flows(&fs::read(&path).expect("it is there")).expect("a capture");
        let mut trace = drawn;
        let mut numbers = HashMap::new();
        for &(flow, bytes) in &flows.packets {
            let (drawn, drawn_bytes) = trace.next_flow();
            let next = numbers.len() as u32;
            assert_eq!(flow, *numbers.entry(drawn).or_insert(next));
            assert_eq!(bytes, drawn_bytes);
        }
        assert_eq!(flows.packets.len(), 5_000);
    }

    #[test]
    fn a_trace_that_is_not_known_is_refused() {
        for name in ["caida", "caida x", "large", ""] {
            let is_known = model(name).is_ok();
            assert_eq!(is_known, name == "caida", "{name}");
        }
    }
}
