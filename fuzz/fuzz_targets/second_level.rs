//! What lies on a volume of the second level: superblocks, heads of regions, records and tables
//! of contents. Checksums are made right, or nothing behind them would be reached.
#![no_main]

use crc_fast::{CrcAlgorithm, checksum};
use libfuzzer_sys::fuzz_target;
use tachonym_store::layout::{Foot, Record, Superblock, crc64, decode_region_head};

/// Where a record's head has what.
const RECORD_MAGIC: &[u8] = b"TchB";
const FOOT_MAGIC: &[u8] = b"TchF";

fn seal(bytes: &mut [u8], at: usize, from: usize, to: usize) {
    if from <= to && to <= bytes.len() {
        let crc = checksum(CrcAlgorithm::Crc32Iscsi, &bytes[from..to]) as u32;
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let _ = Superblock::decode(bytes);
    if bytes.len() < 64 {
        return;
    }
    let _ = decode_region_head(bytes);
    let mut record = bytes.to_vec();
    record[..4].copy_from_slice(RECORD_MAGIC);
    record[8..20].fill(0);
    let head_bytes = 48 + usize::from(record[41]) * 8 + usize::from(record[42]) * 12;
    let len = record.len();
    if head_bytes <= len {
        let crc = crc64(&record[head_bytes..]);
        record[32..40].copy_from_slice(&crc.to_le_bytes());
        record[20..24].copy_from_slice(&(len as u32).to_le_bytes());
        seal(&mut record, 4, 8, head_bytes);
    }
    if let Ok(found) = Record::parse(&record, (0, 0)) {
        let n_bytes: usize = found.chunks().map(|(_, wire)| wire.len()).sum();
        assert!(n_bytes <= len && found.record_bytes() >= head_bytes);
        assert!(found.prefixes().count() <= 32 && found.places().count() <= 64);
    }
    let mut tail = bytes.to_vec();
    let foot = len - 64;
    tail[foot..foot + 4].copy_from_slice(FOOT_MAGIC);
    let crc = crc64(&tail[..foot]);
    tail[foot + 24..foot + 32].copy_from_slice(&crc.to_le_bytes());
    seal(&mut tail, foot + 4, foot + 8, len);
    if let Some(foot) = Foot::decode(&tail)
        && let Some(entries) = foot.entries(&tail)
    {
        assert!(entries.count() * 16 + 64 <= foot.toc_bytes());
    }
});
