//! What crosses from one worker to another.
//!
//! Owns the memory of packets on their way between threads: a batch is filled by one, read
//! by the other, and comes back empty.

use std::ops::Range;

use tachonym_dispatch::{WorkerId, WorkerSet};
use tachonym_forward::sharing::Downstream;
use tachonym_forward::{RxKind, RxPacket};
use tachonym_memory::prefetch;
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, HashedNames, MonoNs, NameHash, PacketCopies, PacketView};
use tachonym_tables::OfferRank;

/// A batch is full once it has so many packets.
pub const MAX_BATCH_PKTS: usize = 64;
/// Or so many bytes: what is larger than that at once still fits.
pub(crate) const FULL_BYTES: usize = 48 << 10;
const LINE_BYTES: usize = 64;
/// Lines of a packet that are fetched ahead: an Interest, or the name of a Data.
const PREFETCHED_LINES: usize = 4;
/// Memory that an empty batch keeps of each kind: a flood of large packets, or of Data for
/// many, is not remembered.
const KEPT_BYTES: usize = 4 * FULL_BYTES;

/// How far a store is looked through for an Interest of another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What it has in memory.
    First,
    /// No store has anything in memory: what it has on its second level, too.
    Second,
}

/// Why a packet crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// It has been received, and its name is at home where it goes.
    Arrived,
    /// A Data for which Interests may wait at several workers.
    Visiting {
        /// Where it goes next.
        rest: WorkerSet,
        /// Where its name is at home.
        home: WorkerId,
        /// See [`Served`](tachonym_forward::sharing::Served).
        since: MonoNs,
        /// Whether somebody has waited for it so far.
        was_wanted: bool,
        /// Whether its home knows already that it is to be cached.
        is_settled: bool,
    },
    /// A Data that has been everywhere, back at its home.
    Visited {
        /// Whether somebody has waited for it.
        was_wanted: bool,
    },
    /// A Nack whose Interest may be pending where its name was at home before.
    Nacking {
        /// Where it goes next.
        rest: WorkerSet,
        /// Whether an Interest like it is pending where it has been.
        is_pending: bool,
    },
    /// An Interest: does the store have something?
    Asking {
        /// Who wants to know.
        asker: WorkerId,
        /// Under which number it waits there.
        ticket: u64,
        /// How far it is to be looked for.
        level: Level,
    },
    /// What a store has for an Interest.
    Offered {
        /// The number under which that waits.
        ticket: u64,
        /// How good the Data is; `None`: there is no packet, the store has none.
        rank: Option<OfferRank>,
    },
    /// It leaves by a face that the receiving thread owns.
    Leaving,
}

/// A packet that crosses.
#[derive(Clone, Copy, Debug)]
pub struct Parcel<'a> {
    /// Why.
    pub crossing: Crossing,
    /// The face that it came by, or leaves by.
    pub face: FaceId,
    /// Its link-layer headers.
    pub headers: &'a Headers,
    /// A prefix announcement that came with it, or goes with it.
    pub announcement: Option<&'a [u8]>,
    /// Who has got it already.
    pub served: &'a [Downstream],
    pub(crate) content: Content<'a>,
}

/// What a worker gets of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    /// It is parsed, and the prefixes of its name are hashed unless there are no hashes.
    Parsed(PacketView<'a>, &'a [NameHash]),
    /// Its bytes.
    Wire(&'a [u8]),
}

impl<'a> Parcel<'a> {
    /// A received packet for the worker where its name, which has these prefix hashes, is at
    /// home.
    #[must_use]
    #[inline]
    pub fn arrived(packet: &RxPacket<'a>, hashes: &'a [NameHash]) -> Self {
        let view = match packet.packet {
            RxKind::Interest(interest) | RxKind::Nack(_, interest) => {
                PacketView::Interest(interest)
            }
            RxKind::Data(data) => PacketView::Data(data),
        };
        Self {
            crossing: Crossing::Arrived,
            face: packet.face,
            headers: packet.headers,
            announcement: packet.prefix_announcement,
            served: &[],
            content: Content::Parsed(view, hashes),
        }
    }

    /// A packet that leaves by a face of another thread.
    #[must_use]
    pub const fn leaving(
        face: FaceId,
        headers: &'a Headers,
        wire: &'a [u8],
        announcement: Option<&'a [u8]>,
    ) -> Self {
        Self {
            announcement,
            ..Self::of_wire(Crossing::Leaving, face, headers, wire)
        }
    }

    /// A packet of which the bytes alone cross.
    pub(crate) const fn of_wire(
        crossing: Crossing,
        face: FaceId,
        headers: &'a Headers,
        wire: &'a [u8],
    ) -> Self {
        Self {
            crossing,
            face,
            headers,
            announcement: None,
            served: &[],
            content: Content::Wire(wire),
        }
    }

    /// The bytes of the packet.
    #[must_use]
    pub const fn wire(&self) -> &'a [u8] {
        match &self.content {
            Content::Parsed(packet, _) => packet.wire(),
            Content::Wire(wire) => wire,
        }
    }

    /// The hashes of all prefixes of the name, if it has been hashed.
    #[must_use]
    #[inline]
    pub const fn hashes(&self) -> &'a [NameHash] {
        match self.content {
            Content::Parsed(_, hashes) => hashes,
            Content::Wire(_) => &[],
        }
    }

    /// The packet, if it has been parsed.
    #[must_use]
    #[inline]
    pub fn packet(&self) -> Option<RxPacket<'a>> {
        let Content::Parsed(packet, _) = self.content else {
            return None;
        };
        Some(RxPacket {
            face: self.face,
            packet: match (packet, self.headers.nack) {
                (PacketView::Interest(interest), None) => RxKind::Interest(interest),
                (PacketView::Interest(interest), Some(reason)) => RxKind::Nack(reason, interest),
                (PacketView::Data(data), _) => RxKind::Data(data),
            },
            headers: self.headers,
            prefix_announcement: self.announcement,
        })
    }
}

#[derive(Clone, Debug)]
struct Record {
    crossing: Crossing,
    face: FaceId,
    /// Its number among those that have any.
    headers: Option<u32>,
    /// Where its bytes are, unless it is the next one that is parsed.
    wire: Option<Range<u32>>,
    announcement: Option<Range<u32>>,
    served: Range<u32>,
}

/// Packets that cross together, in their order.
#[derive(Debug, Default)]
pub struct Batch {
    records: Vec<Record>,
    headers: Vec<Headers>,
    parsed: PacketCopies,
    /// Of the names of those that are parsed.
    names: HashedNames,
    bytes: Vec<u8>,
    served: Vec<Downstream>,
}

impl Batch {
    /// One that takes no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of packets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether it should go before another packet is put into it.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.records.len() >= MAX_BATCH_PKTS || self.n_bytes() >= FULL_BYTES
    }

    /// Bytes of packets, of hashes, and of who has got them.
    pub(crate) const fn n_bytes(&self) -> usize {
        self.parsed.n_bytes()
            + self.names.n_bytes()
            + self.bytes.len()
            + size_of_val(self.served.as_slice())
    }

    /// Puts a copy of a packet behind the others.
    pub fn push(&mut self, parcel: &Parcel<'_>) {
        let wire = match &parcel.content {
            Content::Parsed(packet, hashes) => {
                self.parsed.push(packet);
                self.names.push(hashes);
                None
            }
            Content::Wire(wire) => Some(append(&mut self.bytes, wire)),
        };
        let announcement = parcel.announcement.map(|it| append(&mut self.bytes, it));
        let served = append(&mut self.served, parcel.served);
        let headers = (!parcel.headers.is_empty()).then(|| {
            self.headers.push(*parcel.headers);
            self.headers.len() as u32 - 1
        });
        self.records.push(Record {
            crossing: parcel.crossing,
            face: parcel.face,
            headers,
            wire,
            announcement,
            served,
        });
    }

    /// The packets, in the order in which they were put in.
    pub fn iter(&self) -> impl Iterator<Item = Parcel<'_>> {
        let bytes = |range: &Range<u32>| &self.bytes[range.start as usize..range.end as usize];
        let mut n_parsed = 0;
        self.records.iter().map(move |record| Parcel {
            crossing: record.crossing,
            face: record.face,
            headers: match record.headers {
                Some(idx) => &self.headers[idx as usize],
                None => &Headers::EMPTY,
            },
            content: match &record.wire {
                Some(range) => Content::Wire(bytes(range)),
                None => {
                    n_parsed += 1;
                    let idx = n_parsed - 1;
                    Content::Parsed(self.parsed.get(idx), self.names.get(idx))
                }
            },
            announcement: record.announcement.as_ref().map(bytes),
            served: &self.served[record.served.start as usize..record.served.end as usize],
        })
    }

    /// Fetches the parsed packets, which another thread has written: side by side, and not one
    /// after the other when each is read.
    pub fn prefetch(&self) {
        for wire in self.parsed.wires() {
            for line in wire.chunks(LINE_BYTES).take(PREFETCHED_LINES) {
                prefetch(line);
            }
        }
    }

    /// Takes all packets out; keeps the memory.
    pub fn clear(&mut self) {
        self.records.clear();
        self.headers.clear();
        self.parsed.clear_and_shrink(KEPT_BYTES);
        self.names.clear_and_shrink(KEPT_BYTES);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.served.clear();
        let n_kept = KEPT_BYTES / size_of::<Downstream>();
        self.served.shrink_to(n_kept);
    }
}

/// Appends, and tells where; a batch is full long before 2^32.
fn append<T: Copy>(all: &mut Vec<T>, new: &[T]) -> Range<u32> {
    let start = all.len() as u32;
    all.extend_from_slice(new);
    start..all.len() as u32
}

#[cfg(test)]
mod tests {
    use tachonym_forward::sharing::MAX_SERVED;

    use super::*;

    #[test]
    fn packets_come_out_as_they_were_put_in_and_a_batch_is_full_in_time() {
        let mut batch = Batch::new();
        let headers = Headers {
            congestion_mark: 3,
            ..Headers::default()
        };
        let parcel =
            |wire, announcement| Parcel::leaving(FaceId(256), &headers, wire, announcement);
        for _ in 0..2 {
            batch.push(&parcel(b"one", None));
            batch.push(&parcel(b"two", Some(b"of")));
            let seen: Vec<_> = batch.iter().map(|p| (p.wire(), p.announcement)).collect();
            assert_eq!(seen, [(&b"one"[..], None), (b"two", Some(&b"of"[..]))]);
            assert!(batch.iter().all(|parcel| *parcel.headers == headers));
            batch.clear();
            assert!(batch.is_empty());
        }
        while !batch.is_full() {
            batch.push(&parcel(&[0; 8_800], None));
        }
        assert!(batch.len() < MAX_BATCH_PKTS && batch.bytes.len() < FULL_BYTES + 8_800);
    }

    #[test]
    fn who_has_got_a_data_fills_a_batch_too_and_is_not_remembered() {
        let mut batch = Batch::new();
        let served = [Downstream::of_interest(FaceId(256), &Headers::EMPTY); MAX_SERVED];
        let parcel = Parcel {
            served: &served,
            ..Parcel::leaving(FaceId(256), &Headers::EMPTY, b"one", None)
        };
        while !batch.is_full() {
            batch.push(&parcel);
        }
        assert!(batch.len() <= 1 + FULL_BYTES / size_of_val(&served));
        let of_one = size_of_val(&served);
        assert!(size_of_val(batch.served.as_slice()) < FULL_BYTES + of_one);
        // One that somebody has filled beyond that.
        for _ in 0..1 + KEPT_BYTES / of_one {
            batch.push(&parcel);
        }
        assert!(batch.served.capacity() * size_of::<Downstream>() > KEPT_BYTES);
        batch.clear();
        assert!(batch.served.capacity() * size_of::<Downstream>() <= KEPT_BYTES);
    }
}
