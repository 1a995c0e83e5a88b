//! How evenly hashes divide flows among bins: Figure 4.2 of Iqbal 2013.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tachonym_packet::{Component, HashKey, HashKind, Name};
use tachonym_sim::random::Random;
use tachonym_sim::weighted::Weighted;

use super::bed::{self, Common};
use crate::cache::plot::Chart;
use crate::output;

/// Measures how evenly hashes divide flows among bins (Figure 4.2)
#[derive(Args, Clone, Debug)]
pub(super) struct HashArgs {
    #[command(flatten)]
    common: Common,
    /// Flows
    #[arg(long, default_value_t = 300_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    flows: u32,
}

/// Addresses, ports and protocol.
type FiveTuple = [u8; 13];

#[derive(Serialize)]
struct Row {
    hash: &'static str,
    n_bins: u32,
    /// Deviation of the flows of a bin by their mean.
    variation: f64,
    /// What equally likely bins would have on average.
    by_chance: f64,
}

#[derive(Serialize)]
struct Report {
    n_flows: u32,
    rows: Vec<Row>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} flows, drawn; coefficient of variation of the flows of a bin\n\n\
             | hash | bins | variation | by chance |\n|---|---|---|---|",
            self.n_flows
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {:.4} | {:.4} |",
                row.hash, row.n_bins, row.variation, row.by_chance
            )?;
        }
        writeln!(
            f,
            "\nFigure 4.2 has its values in a drawing only; its text calls both XOR and CRC16 \
             very good. Addresses are drawn here: networks and hosts by Zipf, servers' ports few, \
             clients' ports many."
        )
    }
}

/// Flows between clients and servers.
fn five_tuples(n: u32, seed: u64) -> Vec<FiveTuple> {
    let mut random = Random::new(seed);
    let networks = Weighted::zipf(4_096, 1.0, 0.0);
    let hosts = Weighted::zipf(65_536, 0.8, 0.0);
    let ports = Weighted::zipf(64, 1.5, 0.0);
    let address = |random: &mut Random| {
        // Networks lie scattered, hosts of one count up.
        let network = Random::new(u64::from(networks.draw(random))).next_u64() as u16;
        (u32::from(network) << 16 | hosts.draw(random)).to_be_bytes()
    };
    let flows = (0..n).map(|_| {
        let mut flow = [0; 13];
        flow[..4].copy_from_slice(&address(&mut random));
        flow[4..8].copy_from_slice(&address(&mut random));
        let client = 1_024 + random.below(64_512) as u16;
        let server = 80 + 3 * ports.draw(&mut random) as u16;
        flow[8..10].copy_from_slice(&client.to_be_bytes());
        flow[10..12].copy_from_slice(&server.to_be_bytes());
        flow[12] = if random.next_fraction() < 0.9 { 6 } else { 17 };
        flow
    });
    flows.collect()
}

/// CRC-16/CCITT: polynomial 0x1021, start 0xFFFF.
fn crc16(bytes: &[u8]) -> u64 {
    let mut crc = 0xFFFF_u16;
    for &byte in bytes {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            let carry = crc & 0x8000 != 0;
            crc = crc << 1 ^ if carry { 0x1021 } else { 0 };
        }
    }
    u64::from(crc)
}

/// Words of 16 bits, added without carry.
fn xor(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| {
        pair.iter()
            .fold(0, |word, &byte| word << 8 | u64::from(byte))
    };
    bytes.chunks(2).fold(0, |sum, pair| sum ^ word(pair))
}

/// The server's address, as if it were a hash: what no hash at all does.
fn address(bytes: &[u8]) -> u64 {
    u64::from(bytes[6]) << 8 | u64::from(bytes[7])
}

/// Runs the command.
///
/// # Errors
/// If the drawing cannot be written.
pub(super) fn run(args: &HashArgs) -> anyhow::Result<()> {
    let flows = five_tuples(args.flows, args.common.seed);
    let key = HashKey::new(HashKind::SipHash13, &[args.common.seed as u8; 32]);
    let named = |bytes: &[u8]| {
        key.hash_name(Name::new().with(&Component::generic(bytes)).view())
            .0
    };
    type Hash<'a> = &'a dyn Fn(&[u8]) -> u64;
    let hashes: [(&'static str, Hash<'_>); 4] = [
        ("server's address", &address),
        ("XOR", &xor),
        ("CRC16", &crc16),
        ("SipHash-1-3, the router's", &named),
    ];
    let mut rows = Vec::new();
    for (hash, of) in hashes {
        let hashed: Vec<u64> = flows.iter().map(|flow| of(flow)).collect();
        for n_bins in [2_u32, 4, 6, 8, 12, 16, 24, 32] {
            let mut counts = vec![0_u32; n_bins as usize];
            for hash in &hashed {
                counts[(hash % u64::from(n_bins)) as usize] += 1;
            }
            let mean = f64::from(args.flows) / f64::from(n_bins);
            let squares = counts.iter().map(|&n| (f64::from(n) - mean).powi(2));
            rows.push(Row {
                hash,
                n_bins,
                variation: (squares.sum::<f64>() / f64::from(n_bins)).sqrt() / mean,
                by_chance: (f64::from(n_bins - 1) / f64::from(args.flows)).sqrt(),
            });
        }
    }
    let report = Report {
        n_flows: args.flows,
        rows,
    };
    let lines = report.rows.chunks(8).map(|rows| {
        let points = rows
            .iter()
            .map(|row| (f64::from(row.n_bins), row.variation));
        (rows[0].hash.to_owned(), points.collect())
    });
    let chart = Chart::of_lines(
        "flows of a bin".to_owned(),
        "bins",
        "coefficient of variation",
        lines.collect(),
    );
    bed::draw(&args.common, &[chart])?;
    output::print(&report, args.common.json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_is_the_known_one() {
        // The check value of CRC-16/CCITT-FALSE.
        assert_eq!(crc16(b"123456789"), 0x29B1);
        assert_eq!(xor(&[1, 2, 3, 4, 5]), 0x0102 ^ 0x0304 ^ 5);
    }
}
