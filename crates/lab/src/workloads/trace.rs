//! Requests from files: public trace formats, and captures of NDN traffic.
//!
//! A trace is read whole; its names are numbered in the order in which they first come.
//! What cannot be read is an error that names the file and the line, record or packet.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use clap::ValueEnum;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::Linktype;
use tachonym_packet::lp::LpView;
use tachonym_packet::{InterestView, PacketView};

use super::capture;
use crate::workloads::Requests;

/// Bytes of a record of the oracleGeneral format: time (u32), object (u64), size (u32),
/// and when it is asked for next (i64), all little-endian.
const ORACLE_RECORD_BYTES: usize = 24;
/// Ethernet's type of NDN.
const ETHERTYPE_NDN: u16 = 0x8624;
/// The UDP port of NDN.
const UDP_PORT: u16 = 6363;

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// Binary records as libCacheSim reads and writes them, not compressed.
    OracleGeneral,
    /// Lines of fields with commas between them.
    Csv,
    /// A pcap or pcapng file: Interests in UDP datagrams from or to port 6363, or right in
    /// Ethernet frames, fragments excepted.
    Pcap,
}

/// A sequence of requests.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    objects: Vec<u32>,
    n_objects: u32,
    next: usize,
}

impl Trace {
    /// Reads a file. `column` is where a CSV line has its name, from 1 on.
    ///
    /// # Errors
    /// If the file cannot be read, or something in it is not as the format says; the
    /// error names the file and the place.
    pub fn read(path: &Path, format: TraceFormat, column: usize) -> anyhow::Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let trace = match format {
            TraceFormat::OracleGeneral => Self::from_oracle_general(&bytes),
            TraceFormat::Csv => Self::from_csv(&bytes, column),
            TraceFormat::Pcap => Self::from_pcap(&bytes),
        };
        trace.with_context(|| path.display().to_string())
    }

    /// Requests.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Names.
    #[must_use]
    pub const fn n_objects(&self) -> u32 {
        self.n_objects
    }

    /// The names' numbers, one a request.
    #[must_use]
    pub fn objects(&self) -> &[u32] {
        &self.objects
    }

    /// Numbers what `names` tells, in order.
    fn number<K: Eq + std::hash::Hash>(
        names: impl Iterator<Item = anyhow::Result<K>>,
    ) -> anyhow::Result<Self> {
        let mut numbers: HashMap<K, u32> = HashMap::new();
        let mut objects = Vec::new();
        for name in names {
            let next = u32::try_from(numbers.len()).context("more than 2^32 names")?;
            objects.push(*numbers.entry(name?).or_insert(next));
        }
        ensure!(!objects.is_empty(), "the trace has no request");
        Ok(Self {
            objects,
            n_objects: u32::try_from(numbers.len())?,
            next: 0,
        })
    }

    fn from_oracle_general(bytes: &[u8]) -> anyhow::Result<Self> {
        let records = bytes.chunks(ORACLE_RECORD_BYTES).zip(1_u64..);
        Self::number(records.map(|(record, n)| {
            let object = record
                .get(4..12)
                .filter(|_| record.len() == ORACLE_RECORD_BYTES);
            let Some(object) = object else {
                bail!(
                    "record {n} has {} bytes instead of {ORACLE_RECORD_BYTES}: the file is \
                     truncated or has another format",
                    record.len()
                );
            };
            Ok(u64::from_le_bytes(object.try_into()?))
        }))
    }

    fn from_csv(bytes: &[u8], column: usize) -> anyhow::Result<Self> {
        ensure!(column > 0, "columns are counted from 1");
        let lines = bytes
            .strip_suffix(b"\n")
            .unwrap_or(bytes)
            .split(|&byte| byte == b'\n');
        Self::number(lines.zip(1_u64..).map(|(line, n)| {
            let line = std::str::from_utf8(line).with_context(|| format!("line {n}"))?;
            let n_columns = line.split(',').count();
            match line.split(',').nth(column - 1).map(str::trim) {
                Some("") => bail!("line {n}: column {column} is empty"),
                Some(name) => Ok(name.to_owned()),
                None => bail!("line {n} has {n_columns} columns, but --column is {column}"),
            }
        }))
    }

    fn from_pcap(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut names = Vec::new();
        capture::for_each_frame(bytes, |frame| {
            names.extend(interest_name(frame.link, frame.bytes)?);
            Ok(())
        })?;
        Self::number(names.into_iter().map(Ok))
    }
}

impl Requests for Trace {
    fn fill(&mut self, objects: &mut [u32]) -> usize {
        let left = &self.objects[self.next..];
        let n = left.len().min(objects.len());
        objects[..n].copy_from_slice(&left[..n]);
        self.next += n;
        n
    }
}

/// The name of the Interest in a frame; `None` if something else is there.
fn interest_name(link: Option<Linktype>, frame: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
    let payload = match link {
        Some(Linktype::ETHERNET) => {
            let ether_type = frame
                .get(12..14)
                .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
            if ether_type == Some(ETHERTYPE_NDN) {
                return name_in(&frame[14..]);
            }
            SlicedPacket::from_ethernet(frame).ok()
        }
        Some(Linktype::RAW | Linktype::IPV4 | Linktype::IPV6) => SlicedPacket::from_ip(frame).ok(),
        _ => bail!("unsupported link type; only Ethernet and raw IP are supported"),
    };
    let Some(packet) = payload else {
        return Ok(None);
    };
    let is_fragment = match &packet.net {
        Some(NetSlice::Ipv4(ip)) => ip.header().is_fragmenting_payload(),
        _ => false,
    };
    match packet.transport {
        Some(TransportSlice::Udp(udp))
            if !is_fragment && [udp.source_port(), udp.destination_port()].contains(&UDP_PORT) =>
        {
            name_in(udp.payload())
        }
        _ => Ok(None),
    }
}

/// The name of the Interest in a frame of NDN; an error if it is none of NDN.
fn name_in(wire: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
    let lp = LpView::parse(wire).context("malformed")?;
    let headers = lp.headers();
    let Some(fragment) = lp.fragment().filter(|_| !headers.is_fragmented()) else {
        return Ok(None);
    };
    if headers.nack.is_some() {
        return Ok(None);
    }
    match PacketView::parse(fragment).context("malformed")? {
        PacketView::Interest(interest) => Ok(Some(name_of(&interest))),
        PacketView::Data(_) => Ok(None),
    }
}

fn name_of(interest: &InterestView<'_>) -> Vec<u8> {
    interest.name().value_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{Data, Interest, Name};

    use super::*;

    fn objects(trace: anyhow::Result<Trace>) -> Vec<u32> {
        let mut trace = trace.expect("a sound trace");
        let mut objects = vec![0; trace.len() + 1];
        let n = trace.fill(&mut objects);
        assert_eq!(n, trace.len());
        assert!(
            objects[..n]
                .iter()
                .all(|&object| object < trace.n_objects())
        );
        objects.truncate(n);
        objects
    }

    fn error(trace: anyhow::Result<Trace>) -> String {
        format!("{:#}", trace.expect_err("a broken trace"))
    }

    fn record(object: u64) -> [u8; 24] {
        let mut record = [7; 24];
        record[4..12].copy_from_slice(&object.to_le_bytes());
        record
    }

    #[test]
    fn oracle_general_records_are_numbered() {
        let bytes = [record(1 << 60), record(5), record(1 << 60)].concat();
        assert_eq!(objects(Trace::from_oracle_general(&bytes)), [0, 1, 0]);
        let text = error(Trace::from_oracle_general(&bytes[..60]));
        assert_eq!(
            text,
            "record 3 has 12 bytes instead of 24: the file is truncated or has another format"
        );
        assert_eq!(
            error(Trace::from_oracle_general(&[])),
            "the trace has no request"
        );
    }

    #[test]
    fn lines_are_numbered_by_their_column() {
        let csv = b"1,/a, 100\n2,/b,100\n3, /a ,100";
        assert_eq!(objects(Trace::from_csv(csv, 2)), [0, 1, 0]);
        assert_eq!(objects(Trace::from_csv(csv, 1)), [0, 1, 2]);
        let text = error(Trace::from_csv(b"1,a\n2\n3,b\n", 2));
        assert_eq!(text, "line 2 has 1 columns, but --column is 2");
        assert_eq!(
            error(Trace::from_csv(b"1,a\n2,\n", 2)),
            "line 2: column 2 is empty"
        );
        assert!(error(Trace::from_csv(b"1,a\n\xFF,b\n", 1)).starts_with("line 2: "));
        assert_eq!(
            error(Trace::from_csv(b"1,a", 0)),
            "columns are counted from 1"
        );
    }

    #[test]
    fn an_error_names_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("broken.csv");
        fs::write(&path, "a,b\n,c\n").expect("it is written");
        let text = error(Trace::read(&path, TraceFormat::Csv, 1));
        assert_eq!(
            text,
            format!("{}: line 2: column 1 is empty", path.display())
        );
        let gone = folder.path().join("gone");
        assert!(error(Trace::read(&gone, TraceFormat::Csv, 1)).contains("cannot read"));
    }

    /// A pcap file of Ethernet frames.
    fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
        let whole: Vec<_> = (frames.iter())
            .map(|frame| (frame.clone(), usize::MAX))
            .collect();
        crate::workloads::capture::tests::capture(1, &whole)
    }

    fn ndn_frame(wire: &[u8]) -> Vec<u8> {
        let mut frame = vec![1; 12];
        frame.extend(ETHERTYPE_NDN.to_be_bytes());
        frame.extend(wire);
        frame
    }

    fn udp_frame(port: u16, wire: &[u8]) -> Vec<u8> {
        let builder = etherparse::PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
            .udp(40_000, port);
        let mut frame = Vec::new();
        builder.write(&mut frame, wire).expect("it fits");
        frame
    }

    fn interest(uri: &str) -> Vec<u8> {
        Interest::new(uri.parse::<Name>().expect("a literal name")).encode()
    }

    #[test]
    fn interests_of_a_capture_are_numbered() {
        let data = Data::new("/a".parse::<Name>().expect("a literal name"));
        let frames = [
            ndn_frame(&interest("/a")),
            udp_frame(UDP_PORT, &interest("/b")),
            udp_frame(53, b"something else"),
            ndn_frame(&data.encode_with_digest()),
            udp_frame(UDP_PORT, &interest("/a")),
        ];
        assert_eq!(objects(Trace::from_pcap(&capture(&frames))), [0, 1, 0]);
        let broken = capture(&[ndn_frame(&interest("/a")), ndn_frame(&[5, 3, 0])]);
        assert!(error(Trace::from_pcap(&broken)).starts_with("packet 2: malformed"));
        let whole = capture(&frames);
        let text = error(Trace::from_pcap(&whole[..whole.len() - 3]));
        assert_eq!(text, "the capture ends within the packet after packet 4");
        assert!(error(Trace::from_pcap(b"no capture")).starts_with("the file is neither pcap nor"));
    }
}
