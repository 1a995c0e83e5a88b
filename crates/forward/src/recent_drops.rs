//! The record of recent drops: which packet was dropped, from which face, when and why.
//!
//! Counters say how many packets were dropped for a reason; this record answers the
//! question "what became of this name". It is written on the cold drop path only, and a
//! record takes one write of fixed size: no allocation, no search of the whole record. Its
//! memory is bounded. Faces share it in [groups](RecentDrops): a flood of drops of one face
//! overwrites the records of that group alone.

use tachonym_packet::{FaceId, MonoNs, Name, NameView, tlv};

/// Bytes of a name that a record keeps; longer names are cut.
pub const NAME_BYTES: usize = 192;

/// Groups of faces; a power of two.
const N_GROUPS: usize = 16;
/// Records of each group.
const GROUP_LEN: usize = 64;
/// How many of a group's last records a new drop is compared with, so that repeated drops
/// of one packet take one record.
const N_COMPARED: usize = 4;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// An Interest.
    Interest,
    /// A Data.
    Data,
    /// A Nack.
    Nack,
}

impl PacketKind {
    /// The word that operators see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interest => "Interest",
            Self::Data => "Data",
            Self::Nack => "Nack",
        }
    }
}

/// A packet that is dropped.
#[derive(Clone, Copy, Debug)]
pub struct Dropped<'a> {
    /// Its kind.
    pub kind: PacketKind,
    /// The face it came from.
    pub face: FaceId,
    /// Its name; of a Nack, that of the Interest in it.
    pub name: NameView<'a>,
}

impl<'a> Dropped<'a> {
    /// An Interest from `face`.
    pub(crate) const fn interest(face: FaceId, name: NameView<'a>) -> Self {
        Self {
            kind: PacketKind::Interest,
            face,
            name,
        }
    }

    /// A Data from `face`.
    pub(crate) const fn data(face: FaceId, name: NameView<'a>) -> Self {
        Self {
            kind: PacketKind::Data,
            face,
            name,
        }
    }

    /// A Nack from `face`, which returns an Interest of this name.
    pub(crate) const fn nack(face: FaceId, name: NameView<'a>) -> Self {
        Self {
            kind: PacketKind::Nack,
            face,
            name,
        }
    }
}

/// The first [`NAME_BYTES`] bytes of a name, in memory of fixed size.
#[derive(Clone, Debug)]
pub struct KeptName {
    bytes: [u8; NAME_BYTES],
    /// Of the whole name.
    n_bytes: u16,
}

impl KeptName {
    /// Keeps as much of `name` as there is room for.
    #[must_use]
    pub fn new(name: NameView<'_>) -> Self {
        let whole = name.value_bytes();
        let kept = &whole[..whole.len().min(NAME_BYTES)];
        let mut bytes = [0; NAME_BYTES];
        bytes[..kept.len()].copy_from_slice(kept);
        Self {
            bytes,
            n_bytes: u16::try_from(whole.len()).unwrap_or(u16::MAX),
        }
    }

    /// Whether the name is longer than what is kept.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        usize::from(self.n_bytes) > NAME_BYTES
    }

    /// The name. Of one that [is cut](Self::is_cut), the components that are kept whole.
    #[must_use]
    pub fn name(&self) -> Name {
        let kept = self.kept();
        let mut end = 0;
        while let Ok(Some(len)) = tlv::element_len(&kept[end..])
            && let Some(next) = end.checked_add(len).filter(|&next| next <= kept.len())
        {
            end = next;
        }
        let name = NameView::parse_value(&kept[..end]);
        name.map_or_else(|_| Name::new(), |name| name.to_name())
    }

    /// Whether the name is `prefix` or under it. Of a name that is cut and a prefix longer
    /// than what is kept, the kept bytes decide.
    #[must_use]
    pub fn is_under(&self, prefix: NameView<'_>) -> bool {
        let prefix = prefix.value_bytes();
        match prefix.len() <= NAME_BYTES {
            // A prefix ends with a component, so equal bytes are equal components.
            true => self.kept().starts_with(prefix),
            false => {
                prefix.len() <= usize::from(self.n_bytes) && *self.kept() == prefix[..NAME_BYTES]
            }
        }
    }

    fn kept(&self) -> &[u8] {
        &self.bytes[..usize::from(self.n_bytes).min(NAME_BYTES)]
    }
}

/// Names of the same length of which the same bytes are kept are taken for the same.
impl PartialEq for KeptName {
    fn eq(&self, other: &Self) -> bool {
        self.n_bytes == other.n_bytes && self.kept() == other.kept()
    }
}

impl Eq for KeptName {}

/// What is known of a dropped packet, or of several alike: same kind, face, name and reason.
#[derive(Clone, Debug)]
pub struct DropRecord<R> {
    last: MonoNs,
    face: FaceId,
    n_drops: u32,
    kind: PacketKind,
    reason: R,
    name: KeptName,
}

impl<R: Copy + Eq> DropRecord<R> {
    fn new(now: MonoNs, reason: R, packet: &Dropped<'_>) -> Self {
        Self {
            last: now,
            face: packet.face,
            n_drops: 1,
            kind: packet.kind,
            reason,
            name: KeptName::new(packet.name),
        }
    }

    /// When the last of these packets was dropped.
    #[must_use]
    pub const fn last(&self) -> MonoNs {
        self.last
    }

    /// The face they came from.
    #[must_use]
    pub const fn face(&self) -> FaceId {
        self.face
    }

    /// How many there were; [`u32::MAX`] stands for as many or more.
    #[must_use]
    pub const fn n_drops(&self) -> u32 {
        self.n_drops
    }

    /// Their kind.
    #[must_use]
    pub const fn kind(&self) -> PacketKind {
        self.kind
    }

    /// Why they were dropped.
    #[must_use]
    pub const fn reason(&self) -> R {
        self.reason
    }

    /// Their name.
    #[must_use]
    pub const fn name(&self) -> &KeptName {
        &self.name
    }

    fn is_like(&self, other: &Self) -> bool {
        self.face == other.face
            && self.reason == other.reason
            && self.kind == other.kind
            && self.name == other.name
    }
}

/// The last drops that had a name, at most [`RecentDrops::CAPACITY`] of them.
///
/// Each face belongs to one of 16 groups, by a hash of its number. The faces of a group share
/// 64 records, of which a new one replaces the oldest.
#[derive(Clone, Debug)]
pub struct RecentDrops<R> {
    groups: [Group<R>; N_GROUPS],
    n_drops: u64,
}

/// A ring of records.
#[derive(Debug)]
struct Group<R> {
    records: Vec<DropRecord<R>>,
    /// Where the next one goes.
    next: usize,
}

impl<R: Copy + Eq> Default for RecentDrops<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Copy + Eq> RecentDrops<R> {
    /// Most records that are kept.
    pub const CAPACITY: usize = N_GROUPS * GROUP_LEN;

    /// An empty record. Allocates all the memory that it will use: about 220 KiB, which the
    /// system provides as drops are recorded.
    #[must_use]
    pub fn new() -> Self {
        Self {
            groups: std::array::from_fn(|_| Group {
                records: Vec::with_capacity(GROUP_LEN),
                next: 0,
            }),
            n_drops: 0,
        }
    }

    /// Records that `packet` was dropped at `now`. Takes the same time however many there
    /// are, and allocates nothing.
    pub fn record(&mut self, now: MonoNs, reason: R, packet: &Dropped<'_>) {
        self.n_drops += 1;
        self.groups[group_of(packet.face)].record(DropRecord::new(now, reason, packet));
    }

    /// Drops that were recorded since the start, those included whose records were replaced.
    #[must_use]
    pub const fn n_drops(&self) -> u64 {
        self.n_drops
    }

    /// The records of names under `prefix`, newest first, `limit` at most.
    #[must_use]
    pub fn newest_under(&self, prefix: NameView<'_>, limit: usize) -> Vec<&DropRecord<R>> {
        let records = self.groups.iter().flat_map(|group| &group.records);
        let mut found: Vec<_> = records
            .filter(|record| record.name.is_under(prefix))
            .collect();
        found.sort_unstable_by_key(|record| std::cmp::Reverse(record.last));
        found.truncate(limit);
        found
    }
}

/// The group of a face. Faces of one thread have numbers that differ by a multiple of the
/// number of threads, so the last bits alone would put many of them into one group.
const fn group_of(face: FaceId) -> usize {
    /// 2^64 divided by the golden ratio (Knuth 1998, section 6.4).
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    (face.0.wrapping_mul(MULTIPLIER) >> (u64::BITS - N_GROUPS.ilog2())) as usize
}

/// Keeps the whole capacity, so that records after a copy allocate nothing either.
impl<R: Clone> Clone for Group<R> {
    fn clone(&self) -> Self {
        let mut records = Vec::with_capacity(GROUP_LEN);
        records.extend_from_slice(&self.records);
        Self {
            records,
            next: self.next,
        }
    }
}

impl<R: Copy + Eq> Group<R> {
    fn record(&mut self, new: DropRecord<R>) {
        let n_records = self.records.len();
        for back in 1..=N_COMPARED.min(n_records) {
            let idx = (self.next + n_records - back) % n_records;
            let known = &mut self.records[idx];
            if known.is_like(&new) {
                known.n_drops = known.n_drops.saturating_add(1);
                known.last = new.last;
                return;
            }
        }
        match self.records.get_mut(self.next) {
            Some(oldest) => *oldest = new,
            None => self.records.push(new),
        }
        self.next = (self.next + 1) % GROUP_LEN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().expect("a literal name")
    }

    fn record(drops: &mut RecentDrops<u8>, at: u64, face: u64, uri: &str) {
        let name = name(uri);
        drops.record(MonoNs(at), 1, &Dropped::interest(FaceId(face), name.view()));
    }

    fn names(drops: &RecentDrops<u8>, prefix: &str, limit: usize) -> Vec<String> {
        let found = drops.newest_under(name(prefix).view(), limit);
        found
            .iter()
            .map(|it| it.name().name().to_string())
            .collect()
    }

    #[test]
    fn drops_are_found_by_prefix_newest_first() {
        let mut drops = RecentDrops::new();
        record(&mut drops, 1, 256, "/a/1");
        record(&mut drops, 2, 257, "/ab");
        record(&mut drops, 3, 300, "/a/2");
        assert_eq!(names(&drops, "/a", 9), ["/a/2", "/a/1"]);
        assert_eq!(names(&drops, "/a", 1), ["/a/2"]);
        assert_eq!(names(&drops, "/", 9).len(), 3);
        assert!(names(&drops, "/a/1/x", 9).is_empty());
    }

    #[test]
    fn repeated_drops_of_a_packet_take_one_record() {
        let mut drops = RecentDrops::new();
        for at in 0..10 {
            record(&mut drops, at, 256, "/a");
            record(&mut drops, at, 256, "/b");
        }
        let of_a = drops.newest_under(name("/a").view(), 9);
        let [of_a] = of_a[..] else {
            panic!("{of_a:?}");
        };
        assert_eq!((of_a.n_drops(), of_a.last()), (10, MonoNs(9)));
        let (packet, nack) = (name("/a"), PacketKind::Nack);
        let dropped = Dropped::nack(FaceId(256), packet.view());
        drops.record(MonoNs(10), 1, &dropped);
        drops.record(MonoNs(11), 2, &dropped);
        let found = drops.newest_under(packet.view(), 9);
        assert_eq!(found.len(), 3, "another kind, and another reason");
        assert_eq!((found[0].kind(), found[0].reason()), (nack, 2));
        assert_eq!(drops.n_drops(), 22);
    }

    #[test]
    fn a_flood_from_one_face_leaves_the_records_of_others() {
        let mut drops = RecentDrops::new();
        record(&mut drops, 1, 256, "/victim");
        for i in 0..100_000 {
            record(&mut drops, 2 + i, 257, &format!("/flood/{i}"));
        }
        assert_eq!(names(&drops, "/victim", 9), ["/victim"]);
        let flood = names(&drops, "/flood", usize::MAX);
        assert_eq!(flood.len(), GROUP_LEN);
        assert_eq!(flood[0], "/flood/99999");
        for face in 0..5_000 {
            record(&mut drops, 200_000 + face, face, &format!("/f/{face}"));
        }
        assert_eq!(
            names(&drops, "/", usize::MAX).len(),
            RecentDrops::<u8>::CAPACITY
        );
        let is_as_at_first = |group: &Group<u8>| group.records.capacity() == GROUP_LEN;
        assert!(drops.groups.iter().all(is_as_at_first), "it grew");
        let mut copy = RecentDrops::new();
        record(&mut copy, 1, 256, "/a");
        assert!(copy.clone().groups.iter().all(is_as_at_first), "it shrank");
    }

    #[test]
    fn faces_of_one_thread_of_many_are_spread_over_the_groups() {
        for n_threads in [1, 4, 16] {
            let faces = (0..64).map(|i| FaceId(256 + i * n_threads));
            let groups: std::collections::HashSet<_> = faces.map(group_of).collect();
            assert!(groups.len() > N_GROUPS / 2, "{n_threads} threads");
        }
    }

    #[test]
    fn a_long_name_is_cut_and_found_by_what_is_kept() {
        let long = format!("/a/{}/{}/end", "b".repeat(60), "c".repeat(180));
        let mut drops = RecentDrops::new();
        record(&mut drops, 1, 256, &long);
        let found = drops.newest_under(name("/a").view(), 9);
        assert!(found[0].name().is_cut());
        assert_eq!(
            found[0].name().name(),
            name(&format!("/a/{}", "b".repeat(60)))
        );
        assert_eq!(names(&drops, &long, 9).len(), 1);
        let other = format!("/a/{}/{}/end", "b".repeat(60), "x".repeat(180));
        assert!(names(&drops, &other, 9).is_empty());
        assert!(names(&drops, &format!("{long}/{}", "d".repeat(90)), 9).is_empty());
        let short = format!("/a/{}", "b".repeat(20));
        record(&mut drops, 2, 256, &short);
        assert!(
            !drops.newest_under(name(&short).view(), 9)[0]
                .name()
                .is_cut()
        );
    }
}
