//! The nodes of a FIB: names, and what is known at each.
//!
//! Owns the bytes of names, and for one or more lengths of each (levels) what a
//! search needs to know there. A node is a run of 64-bit words: one for the name
//! itself, one more for each shorter prefix of it that the hash table finds here
//! too, so that they share its bytes (Yuan 2015, section 3.3.2), then the bytes.
//! Nodes never move. A node is written before the hash table tells of it, and
//! written over only when no reader can still know of it; after that only what a
//! level is for and the upper half of it change, and that as one word. What is free is a
//! node, too, so that a walk through memory passes it by.

use tachonym_memory::sync::{AtomicU64, Ordering};
use tachonym_memory::{MemoryError, PagePreference, Pages, Words};

/// Where a node is: the number of its first word. 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeRef(pub(crate) u64);

impl NodeRef {
    pub(crate) const NONE: Self = Self(0);
}

/// Bits of a place.
pub(crate) const REF_BITS: u32 = 40;

/// Most levels of a node: a prefix, and a marker at each shorter length but 0.
const MAX_LEVELS: usize = 63;
const MAX_NAME_BYTES: usize = (1 << 14) - 1;

const N_COMPONENTS_SHIFT: u32 = 14;
const N_LEVELS_SHIFT: u32 = 20;
/// The level is that of a prefix with next hops of its own.
const OWN: u64 = 1 << 26;
/// The level is that of a marker.
const MARKER: u64 = 1 << 27;
/// Nobody's: the words may be written over.
const FREE: u64 = 1 << 28;
/// What never changes.
const SHAPE: u64 = OWN - 1;
const INFO_SHIFT: u32 = 32;

/// One length of a name at which the FIB knows something, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(u64);

impl Level {
    /// A level of a name of so many bytes and components. Only the first level of a
    /// node, which is the longest, counts its levels.
    pub(crate) fn new(name_bytes: usize, n_components: usize, n_levels: usize) -> Self {
        assert!(name_bytes <= MAX_NAME_BYTES, "names fit packets");
        assert!(n_components < 64 && n_levels <= MAX_LEVELS);
        Self(
            name_bytes as u64
                | (n_components as u64) << N_COMPONENTS_SHIFT
                | (n_levels as u64) << N_LEVELS_SHIFT,
        )
    }

    /// Bytes of the prefix.
    pub(crate) const fn name_bytes(self) -> usize {
        (self.0 & MAX_NAME_BYTES as u64) as usize
    }

    /// Components of the prefix.
    pub(crate) const fn n_components(self) -> usize {
        (self.0 >> N_COMPONENTS_SHIFT & 63) as usize
    }

    /// Levels of the node, if this is its first.
    pub(crate) const fn n_levels(self) -> usize {
        (self.0 >> N_LEVELS_SHIFT & MAX_LEVELS as u64) as usize
    }

    /// Whether the prefix has next hops of its own.
    pub(crate) const fn is_own(self) -> bool {
        self.0 & OWN != 0
    }

    /// Whether the hash table has a marker that leads here.
    pub(crate) const fn is_marker(self) -> bool {
        self.0 & MARKER != 0
    }

    /// Of a prefix with next hops of its own: the number of their set. Of a marker: what
    /// the engine makes of it.
    pub(crate) const fn info(self) -> u32 {
        (self.0 >> INFO_SHIFT) as u32
    }

    pub(crate) fn with_n_levels(self, n_levels: usize) -> Self {
        Self::new(self.name_bytes(), self.n_components(), n_levels).with_kind_of(self)
    }

    pub(crate) const fn with_own(self, set: u32) -> Self {
        Self(self.0 & SHAPE | OWN | (set as u64) << INFO_SHIFT)
    }

    pub(crate) const fn with_marker(self, info: u32) -> Self {
        Self(self.0 & SHAPE | MARKER | (info as u64) << INFO_SHIFT)
    }

    /// As before, but says something else.
    pub(crate) const fn with_info(self, info: u32) -> Self {
        Self(self.0 & ((1 << INFO_SHIFT) - 1) | (info as u64) << INFO_SHIFT)
    }

    /// Neither a prefix nor a marker. A marker's searches may go on with what it said.
    pub(crate) const fn without_use(self) -> Self {
        Self(self.0 & !(OWN | MARKER))
    }

    /// That of so many free words.
    fn free(n_words: usize) -> Self {
        Self(Self::new((n_words - 1) * 8, 0, 1).0 | FREE)
    }

    const fn is_free(self) -> bool {
        self.0 & FREE != 0
    }

    const fn with_kind_of(self, other: Self) -> Self {
        Self(self.0 & SHAPE | other.0 & !SHAPE)
    }

    /// Words of the node whose first level this is.
    const fn node_words(self) -> usize {
        self.n_levels() + self.name_bytes().div_ceil(8)
    }
}

/// The nodes, as readers see them.
#[derive(Debug)]
pub(crate) struct Nodes {
    words: Words,
}

impl Nodes {
    #[inline]
    fn word(&self, idx: u64) -> &AtomicU64 {
        &self.words.words()[idx as usize]
    }

    /// The longest level of a node.
    #[inline]
    pub(crate) fn first_level(&self, node: NodeRef) -> Level {
        Level(self.word(node.0).load(Ordering::Acquire))
    }

    /// The level of a node that is a name of so many components.
    #[inline]
    pub(crate) fn level(&self, node: NodeRef, n_components: usize) -> Option<Level> {
        let first = self.first_level(node);
        if first.n_components() == n_components {
            return Some(first);
        }
        let mut others = self.levels(node).skip(1);
        others.find(|level| level.n_components() == n_components)
    }

    /// Every level of a node, the longest first.
    pub(crate) fn levels(&self, node: NodeRef) -> impl Iterator<Item = Level> {
        let first = self.first_level(node);
        let others = node.0 + 1..node.0 + first.n_levels() as u64;
        let others = others.map(|idx| Level(self.word(idx).load(Ordering::Acquire)));
        std::iter::once(first).chain(others)
    }

    /// Whether a node is a prefix, or has markers.
    pub(crate) fn is_in_use(&self, node: NodeRef) -> bool {
        self.levels(node)
            .any(|level| level.is_own() || level.is_marker())
    }

    /// Whether the node's name begins with the first bytes of `name`, as many as
    /// `level` has: the prefix of `name` that `level` stands for, if it is.
    #[inline]
    pub(crate) fn is_prefix_of(&self, node: NodeRef, level: Level, name: &[u8]) -> bool {
        let n_bytes = level.name_bytes();
        let Some(prefix) = name.get(..n_bytes) else {
            return false;
        };
        let n_levels = self.first_level(node).n_levels();
        let at = node.0 as usize + n_levels;
        let Some(stored) = self.words.words().get(at..at + n_bytes.div_ceil(8)) else {
            return false;
        };
        let (whole, tail) = prefix.as_chunks::<8>();
        let is_equal = |(bytes, word): (&[u8; 8], &AtomicU64)| {
            u64::from_le_bytes(*bytes) == word.load(Ordering::Relaxed)
        };
        if !whole.iter().zip(stored).all(is_equal) {
            return false;
        }
        let Some(last) = stored.get(whole.len()) else {
            return true;
        };
        // Where the name goes on, there is no need to copy the tail byte by byte.
        let from_tail = &name[8 * whole.len()..];
        let word = match from_tail.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => word_of(tail),
        };
        let mask = (1 << (8 * tail.len())) - 1;
        (last.load(Ordering::Relaxed) ^ word) & mask == 0
    }

    /// Fetches a node whose name has so many bytes at most.
    #[inline]
    pub(crate) fn prefetch(&self, node: NodeRef, name_bytes: usize) {
        let at = node.0 as usize;
        // Fewer lines than the longest names have: what is beyond, hardware guesses.
        let n_words = (1 + name_bytes / 8).min(MAX_PREFETCH_WORDS);
        for offset in (0..n_words).step_by(8) {
            self.words.prefetch(at + offset);
        }
        self.words.prefetch(at + n_words);
    }

    /// Appends the bytes of the node's name.
    pub(crate) fn copy_name(&self, node: NodeRef, out: &mut Vec<u8>) {
        let first = self.first_level(node);
        let n_bytes = first.name_bytes();
        let at = node.0 as usize + first.n_levels();
        let start = out.len();
        for word in &self.words.words()[at..at + n_bytes.div_ceil(8)] {
            out.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        out.truncate(start + n_bytes);
    }

    pub(crate) fn pages(&self) -> Pages {
        self.words.pages()
    }
}

/// Most words of a node that are fetched ahead.
const MAX_PREFETCH_WORDS: usize = 48;

/// Up to eight bytes as the low bytes of a word.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// What the writer knows of the nodes: which words are free.
#[derive(Debug)]
pub(crate) struct NodeAllocator {
    /// First word that was never used. Word 0 is nobody's.
    next: u64,
    /// Free nodes by number of words, and a bit for each number that has any.
    free: Vec<Vec<u64>>,
    free_sizes: [u64; MAX_FREE_WORDS / 64 + 1],
    n_free_words: u64,
    /// Words freed since free neighbours were last joined, and how often they were.
    n_freed_words: u64,
    n_joins: u64,
    max_words: u64,
}

/// Most words of a free node.
const MAX_FREE_WORDS: usize = 1 + MAX_NAME_BYTES / 8;

/// The memory that nodes are taken from is committed in steps of at least this.
pub(crate) const MIN_COMMIT_WORDS: u64 = if cfg!(loom) { 64 } else { 1 << 12 };

impl NodeAllocator {
    /// No nodes, and room for up to `max_words` words of them: for `expected_words` at
    /// once, for more when they are needed.
    ///
    /// # Errors
    /// If there is no address space for all of them, or no memory for those expected.
    pub(crate) fn new(
        max_words: u64,
        expected_words: u64,
        pages: PagePreference,
    ) -> Result<(Self, Nodes), MemoryError> {
        let max_words = max_words.max(expected_words).min(1 << REF_BITS);
        let words = Words::reserve(max_words as usize, pages)?;
        words.commit(expected_words.max(MIN_COMMIT_WORDS).min(max_words) as usize)?;
        let allocator = Self {
            next: 1,
            free: vec![Vec::new(); MAX_FREE_WORDS + 1],
            free_sizes: [0; MAX_FREE_WORDS / 64 + 1],
            n_free_words: 0,
            n_freed_words: 0,
            n_joins: 0,
            max_words,
        };
        Ok((allocator, Nodes { words }))
    }

    /// Writes a node: `levels`, the longest first, and `name`. Nobody knows of it yet.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn write(
        &mut self,
        nodes: &Nodes,
        levels: &[Level],
        name: &[u8],
    ) -> Result<NodeRef, MemoryError> {
        let node = self.allocate(nodes, levels[0].node_words())?;
        let mut at = node.0;
        for level in levels {
            nodes.word(at).store(level.0, Ordering::Relaxed);
            at += 1;
        }
        for bytes in name.chunks(8) {
            nodes.word(at).store(word_of(bytes), Ordering::Relaxed);
            at += 1;
        }
        Ok(node)
    }

    /// Changes what is known at one level.
    pub(crate) fn set_level(&self, nodes: &Nodes, node: NodeRef, level: Level) {
        let first = nodes.first_level(node);
        let n_levels = first.n_levels() as u64;
        let at = (node.0..node.0 + n_levels)
            .find(|&idx| {
                Level(nodes.word(idx).load(Ordering::Relaxed)).n_components()
                    == level.n_components()
            })
            .expect("a level of the node");
        nodes.word(at).store(level.0, Ordering::Release);
    }

    /// Takes back a node that no reader can know of any more.
    pub(crate) fn free(&mut self, nodes: &Nodes, node: NodeRef) {
        let n_words = nodes.first_level(node).node_words();
        self.n_freed_words += n_words as u64;
        self.keep_free(nodes, node.0, n_words);
    }

    /// Where a walk is that goes on later: after this node.
    pub(crate) const fn pause(&self, node: NodeRef) -> u64 {
        node.0 | self.n_joins << REF_BITS
    }

    /// The node after which a walk goes on that was paused. `None`: no walk was.
    pub(crate) fn resume(&self, nodes: &Nodes, paused: u64) -> Option<NodeRef> {
        let node = NodeRef(paused & ((1 << REF_BITS) - 1));
        if node.0 >= self.next {
            return None;
        }
        if self.pause(node) == paused {
            return Some(node);
        }
        // It may be within another one by now.
        let mut last = NodeRef::NONE;
        while let Some(next) = self.after(nodes, last)
            && next <= node
        {
            last = next;
        }
        Some(last)
    }

    /// The node after `node` in memory, free ones included; `None`: there is none.
    /// Begins at [`NodeRef::NONE`].
    pub(crate) fn after(&self, nodes: &Nodes, node: NodeRef) -> Option<NodeRef> {
        let next = match node {
            NodeRef::NONE => 1,
            NodeRef(at) => at + nodes.first_level(node).node_words() as u64,
        };
        (next < self.next).then_some(NodeRef(next))
    }

    /// Bytes of nodes and of what is free between them.
    pub(crate) fn memory_bytes(&self) -> usize {
        let lists: usize = self.free.iter().map(Vec::capacity).sum();
        (self.next as usize + lists) * 8
    }

    fn allocate(&mut self, nodes: &Nodes, n_words: usize) -> Result<NodeRef, MemoryError> {
        if let Some(at) = self.take_free(nodes, n_words) {
            return Ok(NodeRef(at));
        }
        // Joining looks at every node: not before an eighth of all words was freed.
        if self.n_free_words > self.next / 4 && self.n_freed_words > self.next / 8 {
            self.join_free(nodes);
            if let Some(at) = self.take_free(nodes, n_words) {
                return Ok(NodeRef(at));
            }
        }
        Ok(NodeRef(self.extend(nodes, n_words as u64)?))
    }

    /// Takes a free node of so many words, or the first ones of a larger one.
    fn take_free(&mut self, nodes: &Nodes, n_words: usize) -> Option<u64> {
        let size = self.least_free_size(n_words)?;
        let at = self.free[size].pop()?;
        if self.free[size].is_empty() {
            self.free_sizes[size / 64] &= !(1 << (size % 64));
        }
        self.n_free_words -= size as u64;
        if size > n_words {
            self.keep_free(nodes, at + n_words as u64, size - n_words);
        }
        Some(at)
    }

    /// The least size of a free node that is not less than `n_words`.
    fn least_free_size(&self, n_words: usize) -> Option<usize> {
        let first = n_words / 64;
        let words = self.free_sizes.iter().enumerate().skip(first);
        words
            .map(|(idx, &sizes)| match idx == first {
                true => (idx, sizes & u64::MAX << (n_words % 64)),
                false => (idx, sizes),
            })
            .find(|(_, sizes)| *sizes != 0)
            .map(|(idx, sizes)| idx * 64 + sizes.trailing_zeros() as usize)
    }

    /// Makes words a free node.
    fn keep_free(&mut self, nodes: &Nodes, at: u64, n_words: usize) {
        let level = Level::free(n_words);
        nodes.word(at).store(level.0, Ordering::Release);
        self.free[n_words].push(at);
        self.free_sizes[n_words / 64] |= 1 << (n_words % 64);
        self.n_free_words += n_words as u64;
    }

    /// Makes one free node of each run of them.
    fn join_free(&mut self, nodes: &Nodes) {
        self.free.iter_mut().for_each(Vec::clear);
        self.free_sizes.fill(0);
        self.n_free_words = 0;
        self.n_freed_words = 0;
        self.n_joins += 1;
        let (mut run_at, mut run_words) = (0, 0);
        let mut node = NodeRef::NONE;
        while let Some(next) = self.after(nodes, node) {
            node = next;
            let level = nodes.first_level(node);
            let n_words = level.node_words();
            if !level.is_free() || run_words + n_words > MAX_FREE_WORDS {
                self.keep_run(nodes, run_at, run_words);
                run_words = 0;
            }
            if level.is_free() {
                run_at = if run_words == 0 { node.0 } else { run_at };
                run_words += n_words;
            }
        }
        self.keep_run(nodes, run_at, run_words);
    }

    fn keep_run(&mut self, nodes: &Nodes, at: u64, n_words: usize) {
        if n_words > 0 {
            self.keep_free(nodes, at, n_words);
        }
    }

    fn extend(&mut self, nodes: &Nodes, n_words: u64) -> Result<u64, MemoryError> {
        let end = self.next + n_words;
        let n_committed = nodes.words.words().len() as u64;
        if end > n_committed {
            let step = (n_committed / 8).max(MIN_COMMIT_WORDS);
            let wanted = end.max(n_committed + step).min(self.max_words.max(end));
            nodes.words.commit(wanted as usize)?;
        }
        let at = self.next;
        self.next = end;
        Ok(at)
    }
}

const _: () = assert!(MAX_NAME_BYTES >= tachonym_packet::types::MAX_PACKET_BYTES);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn allocator() -> (NodeAllocator, Nodes) {
        NodeAllocator::new(1 << 20, 0, PagePreference::Base).expect("little memory")
    }

    fn write(allocator: &mut NodeAllocator, nodes: &Nodes, n_words: usize) -> NodeRef {
        let name = vec![7; (n_words - 1) * 8];
        let level = Level::new(name.len(), 1, 1).with_own(1);
        allocator.write(nodes, &[level], &name).expect("room")
    }

    #[test]
    fn names_of_any_length_take_the_words_of_those_that_went() {
        let (mut allocator, nodes) = allocator();
        for n_words in (2..900).chain((2..900).rev()) {
            let n_nodes = 20_000 / n_words;
            let written: Vec<NodeRef> = (0..n_nodes)
                .map(|_| write(&mut allocator, &nodes, n_words))
                .collect();
            for node in written {
                allocator.free(&nodes, node);
            }
        }
        assert!(allocator.next < 80_000, "{}", allocator.next);
    }

    #[test]
    fn what_is_in_use_stays_as_it_is_while_free_nodes_are_joined() {
        let (mut allocator, nodes) = allocator();
        let mut kept = Vec::new();
        for n_words in [3, 9, 4, 30, 100, 1000].into_iter().cycle().take(600) {
            let written = [0; 4].map(|_| write(&mut allocator, &nodes, n_words));
            kept.push((written[1], n_words));
            for node in [written[0], written[2], written[3]] {
                allocator.free(&nodes, node);
            }
        }
        allocator.join_free(&nodes);
        let mut walked = Vec::new();
        let mut node = NodeRef::NONE;
        let mut n_words = 1;
        while let Some(next) = allocator.after(&nodes, node) {
            node = next;
            let level = nodes.first_level(node);
            n_words += level.node_words() as u64;
            if level.is_own() {
                walked.push((node, level.node_words()));
            }
        }
        kept.sort_unstable();
        assert_eq!(walked, kept);
        assert_eq!(n_words, allocator.next);
        let lists = allocator.free.iter().enumerate();
        let n_free: usize = lists.map(|(n_words, list)| n_words * list.len()).sum();
        assert_eq!(n_free as u64, allocator.n_free_words);
    }

    #[test]
    fn a_walk_that_was_paused_at_a_free_node_goes_on_behind_it() {
        let (mut allocator, nodes) = allocator();
        let written: Vec<NodeRef> = (0..9).map(|_| write(&mut allocator, &nodes, 5)).collect();
        for &node in &written[..6] {
            allocator.free(&nodes, node);
        }
        let paused = allocator.pause(written[3]);
        assert_eq!(allocator.resume(&nodes, paused), Some(written[3]));
        allocator.join_free(&nodes);
        let resumed = allocator.resume(&nodes, paused).expect("a walk");
        assert_eq!(allocator.after(&nodes, resumed), Some(written[6]));
        assert_eq!(allocator.resume(&nodes, 0), Some(NodeRef::NONE));
        assert_eq!(allocator.resume(&nodes, 1 << 30), None);
    }
}
