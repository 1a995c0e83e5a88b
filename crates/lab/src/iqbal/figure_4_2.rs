//! How evenly hashes divide flows among bins: Figure 4.2.

use tachonym_bench::{Chart, Context, Cost, Experiment, Kind, Param, Record, Table, cells};
use tachonym_packet::{Component, HashKey, HashKind, Name};
use tachonym_sim::random::Random;
use tachonym_sim::weighted::Weighted;

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/figure-4.2",
    title: "How evenly hash functions divide flows among bins",
    source: "Iqbal 2013, section 4.3.1, Figure 4.2",
    cost: Cost::minutes(0.1, 0.05),
    needs: &[],
    params: &[
        Param::count("flows", "flows", ["20k", "300k", "3M"]),
        Param::seed(),
    ],
    run,
}];

const BINS: [u64; 8] = [2, 4, 6, 8, 12, 16, 24, 32];

/// Addresses, ports and protocol.
type FiveTuple = [u8; 13];

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
pub(super) fn crc16(bytes: &[u8]) -> u64 {
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

fn run(context: &Context) -> anyhow::Result<Record> {
    let flows = five_tuples(context.values.count32("flows"), context.seed());
    let key = HashKey::new(HashKind::SipHash13, &[context.seed() as u8; 32]);
    let named = |bytes: &[u8]| {
        let name = Name::new().with(&Component::generic(bytes));
        key.hash_name(name.view()).0
    };
    type Hash<'a> = (&'a str, &'a dyn Fn(&[u8]) -> u64);
    let hashes: [Hash<'_>; 4] = [
        ("server's address", &address),
        ("XOR", &xor),
        ("CRC16", &crc16),
        ("SipHash-1-3, the router's", &named),
    ];
    let mut record = Record::new(Kind::Computed);
    let columns = hashes.iter().map(|it| it.0).chain(["by chance"]);
    let mut table = Table::new("", std::iter::once("bins").chain(columns));
    let title = "flows of a bin";
    let mut chart = Chart::new(title, "bins", "coefficient of variation");
    let hashed = hashes.map(|(_, of)| flows.iter().map(|flow| of(flow)).collect::<Vec<_>>());
    for n_bins in BINS {
        let mut row = cells![n_bins].to_vec();
        for ((hash, _), hashed) in hashes.iter().zip(&hashed) {
            let variation = variation(hashed, n_bins);
            row.push(variation.into());
            chart.point(hash, n_bins as f64, variation);
        }
        let by_chance = ((n_bins - 1) as f64 / flows.len() as f64).sqrt();
        row.push(by_chance.into());
        chart.point("by chance", n_bins as f64, by_chance);
        table.row(row);
    }
    record.tables.push(table);
    record.charts.push(chart);
    record.note(
        "Figure 4.2 has its values in a drawing only, whose text calls both XOR and CRC16 very \
         good. Addresses are drawn here: networks and hosts by Zipf, servers' ports few, clients' \
         ports many.",
    );
    Ok(record)
}

/// Deviation of the flows of a bin by their mean.
fn variation(hashed: &[u64], n_bins: u64) -> f64 {
    let mut counts = vec![0_u32; n_bins as usize];
    for hash in hashed {
        counts[(hash % n_bins) as usize] += 1;
    }
    let mean = hashed.len() as f64 / n_bins as f64;
    let squares = counts.iter().map(|&n| (f64::from(n) - mean).powi(2));
    (squares.sum::<f64>() / n_bins as f64).sqrt() / mean
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
