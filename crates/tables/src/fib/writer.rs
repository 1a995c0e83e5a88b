//! Changes of the FIB.
//!
//! Owns what only the one who writes needs to know: free memory, who has which set of
//! next hops, and what readers may still know of. A change allocates, and may copy the
//! whole hash table when that has grown full, so the packet path does not make any.

mod growth;
mod inheritance;
mod pulling;

use std::collections::VecDeque;
use std::sync::Arc;

use tachonym_memory::grace::Era;
use tachonym_memory::sync::Ordering;
use tachonym_memory::{
    MemoryError, PagePreference, Pages, available_address_space, available_bytes,
};
use tachonym_packet::types::MAX_PACKET_BYTES;
use tachonym_packet::{FaceId, NameHash, NameView};

use super::MAX_PREFIX_COMPONENTS;
use super::alternatives::markers::{Markers, Needed, Released};
use super::alternatives::partitions::Partitions;
use super::alternatives::{FibEngine, FibMatching};
use super::buckets::{Buckets, NoRoom};
use super::hasher::PrefixHasher;
use super::next_hops::{NextHop, NextHops, NextHopsError};
use super::nodes::{Level, MIN_COMMIT_WORDS, NodeAllocator, NodeRef};
use super::recent::RecentChanges;
use super::sets::{Leftover, SetId, SetWriter};
use super::view::{FibReader, Shared, Table};
use growth::{CopyAt, DEFAULT_FIRST, EXPECTED_LOAD_PCT, MIN_REPLAN, n_buckets_for};

/// Limits and layout of a [`Fib`].
#[derive(Clone, Copy, Debug)]
pub struct FibConfig {
    /// Most prefixes.
    pub max_entries: usize,
    /// Prefixes for which there is room from the start, so that loading them copies
    /// nothing, and is refused before it begins if memory does not suffice.
    pub expected_entries: usize,
    /// Bytes of the names of these, on average.
    pub expected_name_bytes: usize,
    /// Pages of its memory.
    pub pages: PagePreference,
    /// How it is searched.
    pub engine: FibEngine,
    /// When a search compares names.
    pub matching: FibMatching,
    /// Level pulling (Yuan 2015, section 4.1): searches for names below a prefix that more
    /// than so many different components follow begin one component below it. At most
    /// 4096 prefixes are pulled, those that most components follow. 0: none.
    ///
    /// They are chosen whenever the FIB has become twice or half as large. The writer then
    /// counts the components behind each prefix: for a moment that takes some 30 bytes for
    /// each prefix and each name above one.
    pub level_pulling: u32,
}

impl FibConfig {
    /// Room for so many prefixes, as they come.
    #[must_use]
    pub const fn with_max_entries(max_entries: usize) -> Self {
        Self {
            max_entries,
            expected_entries: 0,
            expected_name_bytes: 0,
            pages: PagePreference::Auto,
            engine: FibEngine::LongestFirst,
            matching: FibMatching::AtEnd,
            level_pulling: 0,
        }
    }
}

/// Why a FIB was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FibError {
    /// The FIB holds as many prefixes as it may.
    Full,
    /// The prefix has more than [`MAX_PREFIX_COMPONENTS`] components, or more bytes than
    /// a packet.
    NameTooLong,
    /// The prefix would have more than [`MAX_NEXT_HOPS`](super::MAX_NEXT_HOPS) next hops.
    TooManyNextHops,
    /// An entry without a next hop leads nowhere.
    NoNextHop,
    /// So many bytes of memory are missing.
    OutOfMemory {
        /// How many.
        missing_bytes: u64,
    },
    /// Too many prefixes have almost the same hash. Under a secret key that is chance,
    /// and will not be under the next one.
    TooManyCollisions,
}

impl std::fmt::Display for FibError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "the FIB is full",
            Self::NameTooLong => "the prefix has too many components or bytes",
            Self::TooManyNextHops => "the prefix has too many next hops",
            Self::NoNextHop => "a FIB entry needs a next hop",
            Self::OutOfMemory { missing_bytes } => {
                return write!(f, "the FIB lacks {missing_bytes} bytes of memory");
            }
            Self::TooManyCollisions => "the hashes of too many prefixes collide",
        })
    }
}

impl std::error::Error for FibError {}

impl From<NextHopsError> for FibError {
    fn from(error: NextHopsError) -> Self {
        match error {
            NextHopsError::NoNextHop => Self::NoNextHop,
            NextHopsError::TooManyNextHops => Self::TooManyNextHops,
        }
    }
}

impl From<MemoryError> for FibError {
    fn from(error: MemoryError) -> Self {
        let missing_bytes = match error {
            MemoryError::TooLarge {
                needed_bytes,
                available_bytes,
                ..
            } => needed_bytes.saturating_sub(available_bytes),
            MemoryError::Map { needed_bytes, .. } => needed_bytes,
            MemoryError::BeyondReserve { .. } => return Self::Full,
            _ => 0,
        };
        Self::OutOfMemory { missing_bytes }
    }
}

/// A prefix with its next hops, as [`Fib::iter`] lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FibEntry {
    name: Vec<u8>,
    next_hops: Vec<NextHop>,
}

impl FibEntry {
    /// The prefix.
    #[must_use]
    pub fn name(&self) -> NameView<'_> {
        NameView::parse_value(&self.name).expect("copied from a name")
    }

    /// Next hops, the best first; at least one.
    #[must_use]
    pub fn next_hops(&self) -> &[NextHop] {
        &self.next_hops
    }
}

/// What a face was taken out of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unrouted {
    /// Different sets of next hops.
    pub n_sets: usize,
    /// Prefixes that have those.
    pub n_prefixes: usize,
}

/// Nodes are freed when as many wait for readers.
const MAX_RETIRED: usize = if cfg!(loom) { 1 } else { 256 };

/// Something that some reader may still know of.
#[derive(Clone, Copy, Debug)]
enum Retired {
    Node(NodeRef),
    Hops(Leftover),
    Partition(u32),
}

/// The FIB, for the one who changes it; see the module `fib`.
#[derive(Debug)]
pub struct Fib {
    config: FibConfig,
    hasher: Box<dyn PrefixHasher>,
    shared: Arc<Shared>,
    table: Arc<Table>,
    nodes: NodeAllocator,
    markers: Markers,
    partitions: Partitions,
    copy_at: CopyAt,
    /// When there are so many prefixes, the middle length is chosen again.
    replan_at: usize,
    /// When the number of prefixes is outside of it, pulled prefixes are chosen again.
    repull_at: std::ops::Range<usize>,
    sets: SetWriter,
    /// Prefixes that have next hops.
    len: usize,
    /// Nodes of prefixes whose last next hop has gone with its face.
    n_dead: usize,
    n_by_length: [usize; MAX_PREFIX_COMPONENTS + 1],
    retired: VecDeque<(Era, Retired)>,
    recent: RecentChanges,
    hashes: Vec<NameHash>,
    /// Where the search for dead nodes goes on.
    sweep_at: u64,
}

impl Fib {
    /// An empty FIB.
    ///
    /// # Errors
    /// If there is not as much memory as `expected_entries` need; nothing is kept of it.
    pub fn new(
        config: FibConfig,
        hasher: impl PrefixHasher + 'static,
    ) -> Result<Self, MemoryError> {
        let max_entries = config.max_entries.min(1 << 31);
        let n_buckets = n_buckets_for(config.expected_entries, EXPECTED_LOAD_PCT);
        let first = match config.engine {
            FibEngine::TwoStage { first } if first > 0 => {
                usize::from(first).min(MAX_PREFIX_COMPONENTS)
            }
            _ => DEFAULT_FIRST,
        };
        let table = Arc::new(Table {
            buckets: Buckets::new(n_buckets, config.pages)?,
            first,
        });
        let (allocator, nodes) = NodeAllocator::new(
            max_node_words(max_entries),
            expected_node_words(&config),
            config.pages,
        )?;
        let (set_writer, sets) = SetWriter::new(max_entries, config.pages)?;
        let max_inheriting = match config.engine {
            FibEngine::BinarySearch => max_entries,
            _ => 0,
        };
        let (partitions, heirs) = Partitions::new(max_inheriting, config.pages)?;
        Ok(Self {
            config: FibConfig {
                max_entries,
                ..config
            },
            hasher: Box::new(hasher),
            shared: Arc::new(Shared::new(
                (nodes, sets, heirs),
                (config.engine, config.matching),
                Arc::clone(&table),
            )),
            copy_at: CopyAt::of(&table.buckets),
            table,
            nodes: allocator,
            markers: Markers::new(config.engine, first, Arc::default()),
            partitions,
            replan_at: MIN_REPLAN,
            repull_at: Self::next_repull(0, config.level_pulling),
            sets: set_writer,
            len: 0,
            n_dead: 0,
            n_by_length: [0; MAX_PREFIX_COMPONENTS + 1],
            retired: VecDeque::new(),
            recent: RecentChanges::default(),
            hashes: Vec::new(),
            sweep_at: 0,
        })
    }

    /// One more reader.
    #[must_use]
    pub fn reader(&self) -> FibReader {
        FibReader::new(Arc::clone(&self.shared))
    }

    /// Number of prefixes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no prefix has a next hop.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory in use, next hops included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.table.buckets.memory_bytes()
            + self.nodes.memory_bytes()
            + self.sets.memory_bytes()
            + self.markers.memory_bytes()
            + self.partitions.memory_bytes()
    }

    /// The pages of that memory.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.shared.pages()
    }

    /// The next hops of exactly this prefix, the best first; none if it is not there.
    #[must_use]
    pub fn next_hops(&self, prefix: NameView<'_>) -> Vec<NextHop> {
        let hash = self.hasher.hash_name(prefix);
        match self.find_node(prefix, hash) {
            Some((_, level)) => self.next_hops_at(level).collect(),
            None => Vec::new(),
        }
    }

    fn next_hops_at(&self, level: Level) -> impl Iterator<Item = NextHop> {
        self.shared.sets.get(SetId(level.info())).iter()
    }

    /// Sets all next hops of a prefix, replacing those it had.
    ///
    /// # Errors
    /// If the prefix is too long, or is new and the FIB is full; nothing has changed.
    pub fn insert(&mut self, prefix: NameView<'_>, next_hops: &NextHops) -> Result<(), FibError> {
        let hash = self.hash(prefix)?;
        let found = self.find_node(prefix, hash);
        self.insert_at(found, prefix, hash, next_hops)
    }

    /// As [`Fib::insert`], where the prefix that was hashed last was found or not.
    fn insert_at(
        &mut self,
        found: Option<(NodeRef, Level)>,
        prefix: NameView<'_>,
        hash: NameHash,
        next_hops: &NextHops,
    ) -> Result<(), FibError> {
        match found {
            Some((node, level)) => self.change_next_hops(node, level, next_hops),
            None => self.insert_new(prefix, hash, next_hops),
        }
    }

    /// Removes a prefix; `false` if it was not there.
    pub fn remove(&mut self, prefix: NameView<'_>) -> bool {
        let Ok(hash) = self.hash(prefix) else {
            return false;
        };
        let Some((node, level)) = self.find_node(prefix, hash) else {
            return false;
        };
        self.remove_at(node, level, prefix)
    }

    /// Removes the prefix that was hashed last and found; `false` if it had no next hop.
    fn remove_at(&mut self, node: NodeRef, level: Level, prefix: NameView<'_>) -> bool {
        let was_alive = !self.shared.sets.is_empty(SetId(level.info()));
        self.settle();
        self.remove_node(node, level, prefix);
        self.pull_levels_in_time();
        was_alive
    }

    /// Adds a next hop to a prefix, or changes the one of its face.
    ///
    /// # Errors
    /// As [`Fib::insert`], and if the prefix has too many next hops.
    pub fn add_next_hop(&mut self, prefix: NameView<'_>, hop: NextHop) -> Result<(), FibError> {
        let hash = self.hash(prefix)?;
        let found = self.find_node(prefix, hash);
        let mut hops = vec![hop];
        if let Some((_, level)) = found {
            let others = self.next_hops_at(level);
            hops.extend(others.filter(|other| other.face() != hop.face()));
        }
        self.insert_at(found, prefix, hash, &NextHops::new(hops)?)
    }

    /// Removes a next hop from a prefix, and the prefix with its last one; `false` if it
    /// was not there.
    pub fn remove_next_hop(&mut self, prefix: NameView<'_>, face: FaceId) -> bool {
        let Ok(hash) = self.hash(prefix) else {
            return false;
        };
        let Some((node, level)) = self.find_node(prefix, hash) else {
            return false;
        };
        if !self.next_hops_at(level).any(|hop| hop.face() == face) {
            return false;
        }
        let others = self.next_hops_at(level).filter(|hop| hop.face() != face);
        match NextHops::new(others.collect()) {
            // Without memory for what is left, rather no way than a wrong one.
            Ok(rest) => {
                self.change_next_hops(node, level, &rest).is_ok()
                    || self.remove_at(node, level, prefix)
            }
            Err(_) => self.remove_at(node, level, prefix),
        }
    }

    /// Removes a face from every prefix, and the prefixes that have no other next hop;
    /// the number of prefixes that had it.
    pub fn remove_face(&mut self, face: FaceId) -> usize {
        self.remove_face_from_some(face, usize::MAX).n_prefixes
    }

    /// As [`Fib::remove_face`], but changes `max_sets` different sets of next hops at
    /// most: if it changes fewer, no prefix has the face any more.
    pub fn remove_face_from_some(&mut self, face: FaceId, max_sets: usize) -> Unrouted {
        let mut unrouted = Unrouted::default();
        while unrouted.n_sets < max_sets
            && let Some(set) = self.sets.set_with_face(face)
        {
            self.recent.wait(&self.shared.domain);
            unrouted.n_sets += 1;
            unrouted.n_prefixes += self.remove_face_from_set(face, set);
        }
        unrouted
    }

    /// Frees prefixes that have lost their last next hop with its face, which no search
    /// finds any more: looks at `max_nodes` at most. `false`: there are no more.
    pub fn sweep(&mut self, max_nodes: usize) -> bool {
        let resumed = self.nodes.resume(&self.shared.nodes, self.sweep_at);
        let mut node = resumed.unwrap_or(NodeRef::NONE);
        for _ in 0..max_nodes {
            if self.n_dead == 0 {
                break;
            }
            let Some(next) = self.nodes.after(&self.shared.nodes, node) else {
                node = NodeRef::NONE;
                continue;
            };
            node = next;
            let level = self.shared.nodes.first_level(node);
            if level.is_own() && self.shared.sets.is_empty(SetId(level.info())) {
                let mut name = Vec::new();
                self.shared.nodes.copy_name(node, &mut name);
                let name = NameView::parse_value(&name).expect("copied from a name");
                self.hash(name).expect("it was inserted");
                self.settle();
                self.remove_node(node, level, name);
            }
        }
        self.sweep_at = self.nodes.pause(node);
        self.n_dead > 0
    }

    /// Every prefix, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = FibEntry> {
        let nodes = std::iter::successors(
            self.nodes.after(&self.shared.nodes, NodeRef::NONE),
            |&node| self.nodes.after(&self.shared.nodes, node),
        );
        nodes.filter_map(|node| self.entry(node))
    }

    /// The prefixes at the next `max_nodes` places in memory, and where the walk through
    /// all of them, which begins at 0, goes on; `None`: it is complete. Prefixes that are
    /// there throughout a walk are met once.
    pub fn slice(&self, from: u64, max_nodes: usize) -> (Vec<FibEntry>, Option<u64>) {
        let mut entries = Vec::new();
        let Some(mut node) = self.nodes.resume(&self.shared.nodes, from) else {
            return (entries, None);
        };
        for _ in 0..max_nodes {
            match self.nodes.after(&self.shared.nodes, node) {
                None => return (entries, None),
                Some(next) => node = next,
            }
            entries.extend(self.entry(node));
        }
        (entries, Some(self.nodes.pause(node)))
    }

    fn entry(&self, node: NodeRef) -> Option<FibEntry> {
        let level = self.shared.nodes.first_level(node);
        let next_hops = self.shared.sets.get(SetId(level.info()));
        if !level.is_own() || next_hops.is_empty() {
            return None;
        }
        let mut name = Vec::new();
        self.shared.nodes.copy_name(node, &mut name);
        Some(FibEntry {
            name,
            next_hops: next_hops.iter().collect(),
        })
    }

    /// Hashes a prefix, and keeps the hashes of all that is above it.
    fn hash(&mut self, prefix: NameView<'_>) -> Result<NameHash, FibError> {
        if prefix.len() > MAX_PREFIX_COMPONENTS || prefix.value_bytes().len() > MAX_PACKET_BYTES {
            return Err(FibError::NameTooLong);
        }
        self.hasher.hash_prefixes(prefix, &mut self.hashes);
        Ok(self.hashes[prefix.len()])
    }

    /// The node of a prefix, even if it has lost its next hops.
    fn find_node(&self, prefix: NameView<'_>, hash: NameHash) -> Option<(NodeRef, Level)> {
        let nodes = &self.shared.nodes;
        let mut found = None;
        self.table.buckets.find(hash, |slot| {
            let level = nodes.level(slot.node(), prefix.len()).filter(|level| {
                level.is_own()
                    && level.name_bytes() == prefix.value_bytes().len()
                    && nodes.is_prefix_of(slot.node(), *level, prefix.value_bytes())
            });
            found = level.map(|level| (slot.node(), level));
            found.is_some()
        });
        found
    }

    fn change_next_hops(
        &mut self,
        node: NodeRef,
        level: Level,
        next_hops: &NextHops,
    ) -> Result<(), FibError> {
        let old = SetId(level.info());
        let was_dead = self.shared.sets.is_empty(old);
        if was_dead && self.len >= self.config.max_entries {
            return Err(FibError::Full);
        }
        let set = self.sets.acquire(&self.shared.sets, next_hops)?;
        self.settle();
        self.nodes
            .set_level(&self.shared.nodes, node, level.with_own(set.0));
        self.n_dead -= usize::from(was_dead);
        self.len += usize::from(was_dead);
        let leftover = self.sets.release(&self.shared.sets, old);
        self.retire(Retired::Hops(leftover));
        Ok(())
    }

    fn insert_new(
        &mut self,
        prefix: NameView<'_>,
        hash: NameHash,
        next_hops: &NextHops,
    ) -> Result<(), FibError> {
        if self.len >= self.config.max_entries {
            return Err(FibError::Full);
        }
        self.make_room(prefix.len())?;
        let set = self.sets.acquire(&self.shared.sets, next_hops)?;
        let nodes = &self.shared.nodes;
        let needed = self
            .markers
            .needed(nodes, &self.table.buckets, prefix, &self.hashes);
        let name = prefix.value_bytes();
        let own = Level::new(name.len(), prefix.len(), 1).with_own(set.0);
        let levels = self.markers.levels(own, &needed);
        let has_room = self.partitions.reserve(&self.shared.heirs, needed.len());
        let node = match has_room.and_then(|()| self.nodes.write(nodes, &levels, name)) {
            Ok(node) => node,
            Err(error) => {
                let leftover = self.sets.release(&self.shared.sets, set);
                self.sets.free(leftover);
                return Err(error.into());
            }
        };
        self.inherit(node, prefix, &needed);
        self.settle();
        // Readers look for a length before there is anything of it.
        self.n_by_length[prefix.len()] += 1;
        self.shared
            .lengths
            .fetch_or(1 << prefix.len(), Ordering::Release);
        for marker in &needed {
            let at = marker.node.unwrap_or(node);
            let nodes = &self.shared.nodes;
            self.markers
                .acquire(&self.nodes, nodes, at, marker, prefix.len());
        }
        self.len += 1;
        if self.link(hash, node, &needed).is_err()
            && let Err(error) = self.link_in_larger()
        {
            let level = self.shared.nodes.first_level(node);
            self.remove_node(node, level, prefix);
            return Err(error);
        }
        self.bequeath(node, prefix);
        self.pull_levels_in_time();
        Ok(())
    }

    /// Shows a prefix and its new markers to readers: first what leads to others.
    fn link(&self, hash: NameHash, node: NodeRef, needed: &[Needed]) -> Result<(), NoRoom> {
        let buckets = &self.table.buckets;
        for marker in needed.iter().filter(|marker| marker.node.is_none()) {
            buckets.insert_marker(self.hashes[marker.length], node)?;
        }
        buckets.insert(hash, node)
    }

    /// Removes the prefix that was hashed last.
    fn remove_node(&mut self, node: NodeRef, level: Level, prefix: NameView<'_>) {
        self.disinherit(node, prefix);
        self.table.buckets.remove(self.hashes[prefix.len()], node);
        self.forget_length(prefix.len());
        let set = SetId(level.info());
        if self.shared.sets.is_empty(set) {
            self.n_dead -= 1;
        } else {
            self.len -= 1;
        }
        // So that walks pass it by. A search that knows it still goes on to the next.
        self.nodes
            .set_level(&self.shared.nodes, node, level.without_use());
        let leftover = self.sets.release(&self.shared.sets, set);
        self.retire(Retired::Hops(leftover));
        if !self.shared.nodes.is_in_use(node) {
            self.retire(Retired::Node(node));
        }
        self.release_markers(node, prefix);
    }

    /// The prefix that was hashed last, which was at `node`, needs no markers any more.
    fn release_markers(&mut self, node: NodeRef, prefix: NameView<'_>) {
        let needed = self.markers.needed(
            &self.shared.nodes,
            &self.table.buckets,
            prefix,
            &self.hashes,
        );
        for marker in needed {
            // Those that found no room are the prefix's own.
            self.release_marker(marker.node.unwrap_or(node), &marker, prefix);
        }
    }

    /// The prefix that was hashed last needs the marker at a node not any more.
    fn release_marker(&mut self, at: NodeRef, marker: &Needed, prefix: NameView<'_>) {
        let place = (marker.length, self.hashes[marker.length]);
        let memory = (&self.nodes, &self.shared.nodes, &self.table.buckets);
        let released = self.markers.release(memory, at, place, prefix.len());
        if released == Released::Needed {
            return;
        }
        let name = &prefix.value_bytes()[..marker.name_bytes];
        self.leave(at, name, marker.length);
        if released == Released::GoneWithNode {
            self.retire(Retired::Node(at));
        }
    }

    fn remove_face_from_set(&mut self, face: FaceId, set: SetId) -> usize {
        let sets = &self.shared.sets;
        let (leftover, n_users) = match self.sets.remove_face(sets, set, face) {
            Ok(changed) => changed,
            Err(_) => {
                // Without memory for the others, rather no way than one to a face that
                // is another's tomorrow.
                let leftover = self.sets.clear(sets, set);
                (leftover, self.sets.n_users(set))
            }
        };
        if sets.is_empty(set) {
            self.len -= n_users as usize;
            self.n_dead += n_users as usize;
        }
        self.retire(Retired::Hops(leftover));
        n_users as usize
    }

    fn forget_length(&mut self, length: usize) {
        self.n_by_length[length] -= 1;
        if self.n_by_length[length] == 0 {
            self.shared
                .lengths
                .fetch_and(!(1 << length), Ordering::Release);
        }
    }

    /// Before a change of the prefix that was hashed last becomes visible: waits for
    /// searches that may have missed an earlier one above or below it.
    fn settle(&mut self) {
        let domain = &self.shared.domain;
        self.recent.note(&self.hashes, domain);
    }

    fn retire(&mut self, what: Retired) {
        if let Retired::Hops(Leftover {
            set: None,
            hops: None,
        }) = what
        {
            return;
        }
        let era = self.shared.domain.advance();
        self.retired.push_back((era, what));
        if self.retired.len() >= MAX_RETIRED {
            self.reclaim();
        }
    }

    /// Frees what no reader knows of any more.
    fn reclaim(&mut self) {
        // Eras end in order, and asking is dear: the middle answers for half of them.
        while let Some(&(era, _)) = self.retired.get(self.retired.len() / 2) {
            if !self.shared.domain.is_over(era) {
                if self.retired.len() < 16 * MAX_RETIRED {
                    return;
                }
                self.shared.domain.wait(era);
            }
            for _ in 0..=self.retired.len() / 2 {
                match self.retired.pop_front() {
                    Some((_, Retired::Node(node))) => self.nodes.free(&self.shared.nodes, node),
                    Some((_, Retired::Hops(leftover))) => self.sets.free(leftover),
                    Some((_, Retired::Partition(number))) => self.partitions.free(number),
                    None => return,
                }
            }
        }
    }
}

fn expected_node_words(config: &FibConfig) -> u64 {
    let words = 1 + config.expected_name_bytes.div_ceil(8) as u64;
    (config.expected_entries as u64).saturating_mul(words)
}

/// Address space for the nodes of so many prefixes: of the longest names, but no more
/// than memory would ever hold, nor than a process of limited addresses can spare.
fn max_node_words(max_entries: usize) -> u64 {
    let longest = (MAX_PACKET_BYTES / 8 + 1 + MAX_PREFIX_COMPONENTS) as u64;
    let by_names = (max_entries as u64 + 1).saturating_mul(longest);
    let by_memory = available_bytes().max(1 << 30).saturating_mul(4) / 8;
    let by_addresses = available_address_space() / 4 / 8;
    let by_names = if cfg!(loom) { 0 } else { by_names };
    by_names
        .min(by_memory)
        .min(by_addresses)
        .max(MIN_COMMIT_WORDS)
}
