//! The second level as Mansilha et al. 2017 emulate it, with their serial algorithm
//! (sections 3.2 to 3.2.2): what the first level lacks is read as a batch, for as long as
//! equation 1 says, then inserted, then answered; nothing else happens meanwhile. A baseline
//! for stores that wait for nothing.

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tachonym_bench::{Context, Param};

use super::catalogue::{CHUNK_BYTES, Catalogue, Chunk};
use super::model;
use super::packets::{Asked, MAX_DATA_BYTES, write_data};
use super::store::{Counts, Hcs, Hit, Watch};
use crate::beds::first_level::{FirstLevel, read_ends};

/// Where the packets of L2 are (M; Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// All in memory from the start.
    Static,
    /// Nowhere: a batch is made when it is read.
    Dynamic,
}

impl Memory {
    /// The parameter that says which; static as published.
    pub(super) const PARAM: Param = Param::choice(
        "memory",
        "memory of L2's packets: static, or dynamic: made when they are read",
        &["static", "dynamic"],
        "static",
    );

    /// As the parameter says.
    pub(super) fn of(context: &Context) -> Self {
        match context.text("memory") {
            "static" => Self::Static,
            _ => Self::Dynamic,
        }
    }

    /// Its name, as the paper has it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Static => "Static",
            Self::Dynamic => "Dynamic",
        }
    }
}

/// How the time of a read passes (D; Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delay {
    /// In a loop that reads the clock.
    Busy,
    /// In a system call.
    Sleep,
    /// Not at all, but it is added to the measured time; not one of the paper's.
    Counted,
}

impl Delay {
    /// The parameter that says how.
    pub(super) const PARAM: Param = Param::choice(
        "delay",
        "how an emulated read takes its time: counted is added, busy (as published) and sleep wait",
        &["counted", "busy", "sleep"],
        "counted",
    );

    /// As the parameter says.
    pub(super) fn of(context: &Context) -> Self {
        match context.text("delay") {
            "counted" => Self::Counted,
            "busy" => Self::Busy,
            _ => Self::Sleep,
        }
    }

    /// Its name, as the paper has it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Busy => "Busy",
            Self::Sleep => "Sleep",
            Self::Counted => "Counted",
        }
    }
}

/// The second level: the whole catalogue, as in all of the paper's experiments.
#[derive(Debug)]
pub(super) struct Second {
    catalogue: Catalogue,
    batch_chunks: u32,
    /// With static memory: packets, each at a multiple of [`MAX_DATA_BYTES`].
    packets: Option<Vec<u8>>,
}

impl Second {
    /// An L2 that gives batches of `batch_chunks`.
    pub(super) fn new(catalogue: Catalogue, batch_chunks: u32, memory: Memory) -> Self {
        let packets = (memory == Memory::Static).then(|| {
            let n_bytes = catalogue.n_chunks() as usize * MAX_DATA_BYTES;
            let mut packets = Vec::with_capacity(n_bytes);
            for number in 0..catalogue.n_chunks() {
                write_data(catalogue.chunk(number), &mut packets);
                packets.resize((number as usize + 1) * MAX_DATA_BYTES, 0);
            }
            packets
        });
        Self {
            catalogue,
            batch_chunks: batch_chunks.max(1),
            packets,
        }
    }

    /// Memory that one takes.
    pub(super) fn bytes(catalogue: Catalogue, memory: Memory) -> u64 {
        match memory {
            Memory::Static => catalogue.n_chunks() * MAX_DATA_BYTES as u64,
            Memory::Dynamic => 0,
        }
    }

    /// The batch that a chunk is in: its chunks' segments.
    fn batch_of(&self, chunk: Chunk) -> std::ops::Range<u32> {
        let first = chunk.segment / self.batch_chunks * self.batch_chunks;
        first..(first + self.batch_chunks).min(self.catalogue.content_chunks)
    }
}

/// Packets of a batch that was read: each with where it ends, one after the other or at
/// multiples of [`MAX_DATA_BYTES`].
enum Batch<'a> {
    Static(&'a [u8]),
    Dynamic(Vec<u8>, Vec<usize>),
}

/// Two levels with the serial algorithm.
#[derive(Debug)]
pub(super) struct Serial {
    first: FirstLevel,
    second: Arc<Second>,
    delay: Delay,
    read_ns_by_chunk: f64,
    is_warming: bool,
    counts: Counts,
}

impl Serial {
    /// A store with room for `n_first_chunks` in L1, and an L2 of `rate_gbps`.
    ///
    /// # Errors
    /// As [`FirstLevel::new`].
    pub(super) fn new(
        n_first_chunks: usize,
        second: Arc<Second>,
        delay: Delay,
        rate_gbps: f64,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            first: FirstLevel::new(n_first_chunks)?,
            second,
            delay,
            read_ns_by_chunk: model::read_ns(1, rate_gbps),
            is_warming: false,
            counts: Counts::default(),
        })
    }

    /// L2.read and L1.insert of the batch of a chunk.
    fn bring(&mut self, chunk: Chunk) {
        let batch = self.second.batch_of(chunk);
        let target_ns = (f64::from(batch.len() as u32) * self.read_ns_by_chunk) as u64;
        let delay = if self.is_warming {
            Delay::Counted
        } else {
            self.delay
        };
        // What is only counted is added to this thread's own time, and so is of that, too.
        let watch = Watch::of(delay != Delay::Counted);
        let begun_ns = watch.now_ns();
        if delay == Delay::Sleep {
            thread::sleep(Duration::from_nanos(target_ns));
        }
        let read = read(&self.second, chunk.content, batch.clone());
        let mut elapsed_ns = watch.now_ns() - begun_ns;
        match delay {
            Delay::Busy => {
                while elapsed_ns < target_ns {
                    spin_loop();
                    elapsed_ns = watch.now_ns() - begun_ns;
                }
            }
            Delay::Counted => {
                let unspent_ns = target_ns.saturating_sub(elapsed_ns);
                self.counts.unspent_ns += unspent_ns;
                elapsed_ns += unspent_ns;
            }
            Delay::Sleep => {}
        }
        self.counts.second_ns += elapsed_ns;
        self.counts.second_bytes += batch.len() as u64 * CHUNK_BYTES;
        let begun_ns = watch.now_ns();
        match &read {
            Batch::Static(packets) => {
                // A packet ends where its own length says.
                let packets = packets.chunks_exact(MAX_DATA_BYTES).map(unpadded);
                self.first.insert_burst(packets);
            }
            Batch::Dynamic(packets, ends) => {
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let ranges = starts.zip(ends).map(|(start, &end)| &packets[start..end]);
                self.first.insert_burst(ranges);
            }
        }
        self.counts.insert_ns += watch.now_ns() - begun_ns;
        black_box(read);
    }
}

/// The packet at the beginning of some bytes.
fn unpadded(bytes: &[u8]) -> &[u8] {
    match tachonym_packet::tlv::element_len(bytes) {
        Ok(Some(len)) => &bytes[..len],
        _ => bytes,
    }
}

/// The packets of a batch: found where they are, or made.
fn read(second: &Second, content: u32, batch: std::ops::Range<u32>) -> Batch<'_> {
    match &second.packets {
        Some(packets) => {
            let number = second.catalogue.number(Chunk {
                content,
                segment: batch.start,
            });
            let start = number as usize * MAX_DATA_BYTES;
            let packets = &packets[start..start + batch.len() * MAX_DATA_BYTES];
            for packet in packets.chunks_exact(MAX_DATA_BYTES) {
                read_ends(packet);
            }
            Batch::Static(packets)
        }
        None => {
            let mut packets = Vec::with_capacity(batch.len() * MAX_DATA_BYTES);
            let mut ends = Vec::with_capacity(batch.len());
            for segment in batch {
                write_data(Chunk { content, segment }, &mut packets);
                ends.push(packets.len());
            }
            Batch::Dynamic(packets, ends)
        }
    }
}

impl Hcs for Serial {
    fn request(&mut self, chunk: Chunk, interest: &[u8]) -> Hit {
        let hit = if self.first.find(interest) {
            Hit::First
        } else if self.second.catalogue.has(chunk) {
            self.bring(chunk);
            Hit::Second
        } else {
            Hit::Miss
        };
        self.counts.count(hit);
        hit
    }

    fn warm_burst(&mut self, asked: &Asked) {
        self.is_warming = true;
        self.request_burst(asked);
        self.is_warming = false;
    }

    fn is_waiting(&self) -> bool {
        self.delay != Delay::Counted
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use super::super::model::shrunk_settings;
    use super::super::store::{measure, warm};
    use super::super::workload::{Kind, Requests};
    use super::*;

    const CATALOGUE: Catalogue = Catalogue {
        n_contents: 12,
        content_chunks: 45,
    };

    fn serial(n_first: usize, memory: Memory, delay: Delay) -> Serial {
        let second = Arc::new(Second::new(CATALOGUE, 10, memory));
        Serial::new(n_first, second, delay, 64.0).expect("a small store")
    }

    /// Sets the rate of L2 and how its delay passes.
    fn set_second(store: &mut Serial, delay: Delay, rate_gbps: f64) {
        store.delay = delay;
        store.read_ns_by_chunk = model::read_ns(1, rate_gbps);
    }

    fn ask(store: &mut Serial, content: u32, segment: u32) -> Hit {
        let mut asked = Asked::default();
        asked.push(Chunk { content, segment });
        let (chunk, interest) = asked.iter().next().expect("one was pushed");
        store.request(chunk, interest)
    }

    #[test]
    fn a_read_brings_the_batch_and_no_more() {
        for memory in [Memory::Static, Memory::Dynamic] {
            let mut store = serial(100, memory, Delay::Counted);
            assert_eq!(ask(&mut store, 3, 27), Hit::Second);
            for segment in 20..30 {
                assert_eq!(ask(&mut store, 3, segment), Hit::First, "{memory:?}");
            }
            assert_eq!(ask(&mut store, 3, 30), Hit::Second);
            assert_eq!(ask(&mut store, 4, 27), Hit::Second);
            // The last batch of a content is shorter.
            assert_eq!(ask(&mut store, 3, 44), Hit::Second);
            assert_eq!(store.first.len(), 35);
            assert_eq!(store.counts().second_bytes, 35 * CHUNK_BYTES);
            assert_eq!(ask(&mut store, 12, 0), Hit::Miss);
            assert_eq!(ask(&mut store, 3, 45), Hit::Miss);
        }
    }

    #[test]
    fn both_levels_answer_as_sets_and_a_queue_of_chunks_do() {
        for kind in Kind::ALL {
            let mut store = serial(130, Memory::Dynamic, Delay::Counted);
            let (mut held, mut order) = (HashSet::new(), VecDeque::new());
            let settings = shrunk_settings(CATALOGUE, 1);
            let mut n_first = 0;
            for request in Requests::new(kind, &settings, 9).take(6_000) {
                let Chunk { content, segment } = request.chunk;
                let expected = if held.contains(&request.chunk) {
                    n_first += 1;
                    Hit::First
                } else {
                    let first = segment / 10 * 10;
                    for segment in first..(first + 10).min(45) {
                        let chunk = Chunk { content, segment };
                        if held.insert(chunk) {
                            order.push_back(chunk);
                        }
                        if order.len() > 130 {
                            held.remove(&order.pop_front().expect("it is not empty"));
                        }
                    }
                    Hit::Second
                };
                assert_eq!(ask(&mut store, content, segment), expected, "{kind}");
            }
            assert!(n_first > 500, "{kind}: {n_first}");
        }
    }

    #[test]
    fn reads_take_as_long_as_the_rate_says() {
        // 80,000 bytes at 64 Gbit/s are 10 µs; a wait may be longer, never shorter. What is
        // counted is so slow that no read can take as long by itself.
        let cases = [
            (Delay::Busy, 64.0),
            (Delay::Sleep, 64.0),
            (Delay::Counted, 1e-3),
        ];
        for (delay, rate_gbps) in cases {
            let mut store = serial(100, Memory::Static, delay);
            set_second(&mut store, delay, rate_gbps);
            for content in 0..12 {
                assert_eq!(ask(&mut store, content, 0), Hit::Second);
            }
            let counts = store.counts();
            assert!(counts.second_ns >= 12 * 10_000, "{delay:?}: {counts:?}");
            assert_eq!(counts.unspent_ns > 0, delay == Delay::Counted);
            assert!(counts.second_gbps().is_some_and(|gbps| gbps <= rate_gbps));
            assert!(counts.insert_ns > 0);
        }
    }

    #[test]
    fn warming_waits_for_nothing_and_measuring_counts_what_it_takes() {
        let mut store = serial(130, Memory::Static, Delay::Sleep);
        set_second(&mut store, Delay::Busy, 1e-3);
        let settings = shrunk_settings(CATALOGUE, 1);
        let mut requests = Requests::new(Kind::Unif, &settings, 2);
        // 640 ms each, were they waited for.
        warm(&mut store, &mut requests, 2_000, |_| true);
        let counts = store.counts();
        assert!(counts.n_second > 1_000 && counts.unspent_ns > counts.second_ns / 2);
        set_second(&mut store, Delay::Counted, 1e-3);
        let measured = measure(&mut store, &mut requests, 500, |chunk| {
            chunk.content % 2 == 0
        });
        assert_eq!(
            measured.counts.n_requests,
            measured.counts.n_first + measured.counts.n_second
        );
        assert!((150..350).contains(&measured.counts.n_requests));
        assert!(measured.elapsed_ns >= measured.counts.n_second * 300_000_000);
    }
}
