//! Which cached Data lie under a prefix, of those that were entered.
//!
//! Owns a tree of their names. A leaf is a Data; an inner vertex is a prefix
//! at which names part, so there are fewer of them than Data, however long names
//! are (a trie with paths compressed, as Morrison 1968 has it, of components in
//! place of bits). An edge is found by the hash of the name down to the first
//! component of the edge, so that a walk takes a probe for each vertex on the way,
//! and a Data that shares its name with none takes a single vertex.
//!
//! The children of a vertex are a heap, first the one with the Data below it that
//! stays fresh longest: a Data under a prefix is found by going down, and if that
//! one is not fresh, none is. The heaps are leftist (Crane 1972; Knuth, The Art of
//! Computer Programming, volume 3, section 5.2.3): to add or take out a child
//! touches a number of siblings that grows with the logarithm of all, and is one
//! or two while Data come in the order in which they become stale. Names are at
//! most [`MAX_CS_COMPONENTS`] long, which bounds every walk.
//!
//! Vertices store no name: a Data below has it. Hashes only find candidates; where
//! two prefixes have the same one, a second walk compares bytes at every step.

use tachonym_memory::{MemoryError, PagePreference, Pages};
use tachonym_packet::{MonoNs, NameHash, NameView};

use super::entry::CsEntry;
use crate::buckets::{BucketIndex, IndexKind};
use crate::fib::PrefixHasher;
use crate::slab::Slab;

/// Most components of a name in a [`ContentStore`](super::ContentStore).
pub const MAX_CS_COMPONENTS: usize = 64;

/// What a vertex costs, in bytes: slot, place in the free list, and a word in an
/// index between 5/16 and 5/8 full.
pub(super) const VERTEX_BYTES: usize = size_of::<Vertex>() + 4 + 20;

/// Most vertices that a Data adds.
pub(super) const MAX_VERTICES_PER_DATA: usize = 2;

const NIL: u32 = u32::MAX;

/// The vertex of the empty name, which is always there.
const ROOT: u32 = 0;

/// A Data, or a prefix at which names part.
#[derive(Clone, Copy, Debug)]
struct Vertex {
    /// Of the first `start` components; of no meaning if the name has fewer.
    hash: NameHash,
    /// Until when the Data, or the last one below, is fresh.
    fresh_until: MonoNs,
    parent: u32,
    /// The heap of siblings: what is above, and two below.
    up: u32,
    left: u32,
    right: u32,
    /// The slot of the Data, or the first of the children, of which there are at
    /// least two except in the root.
    below: u32,
    /// Components of the name down to the first one that the parent has not, and
    /// down to the vertex. The former is greater if the Data's name is the
    /// parent's.
    start: u8,
    end: u8,
    /// Bytes of the name down to the vertex.
    end_bytes: u16,
    /// Steps to the right in the heap until nothing is there.
    rank: u8,
    is_data: bool,
    /// Whether any child may be a Data whose edge is not in the index and begins
    /// within its name.
    has_unindexed: bool,
}

const _: () = assert!(size_of::<Vertex>() == 48);

impl Default for Vertex {
    fn default() -> Self {
        Self {
            hash: NameHash(0),
            fresh_until: MonoNs::ZERO,
            parent: NIL,
            up: NIL,
            left: NIL,
            right: NIL,
            below: NIL,
            start: 0,
            end: 0,
            end_bytes: 0,
            rank: 1,
            is_data: false,
            has_unindexed: false,
        }
    }
}

impl Vertex {
    /// Whether the edge to it is in the index. It is not if the first component of
    /// it is the last of a Data's name, or comes after it: the content store's own
    /// index finds such a Data by the same hash.
    const fn is_indexed(&self) -> bool {
        !self.is_data || self.start < self.end
    }
}

/// A vertex on the way of a name, and how many components of the name all below
/// it share.
#[derive(Clone, Copy, Debug)]
struct Reached {
    vertex: u32,
    n_common: usize,
}

/// A Data that is to be added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer<'a> {
    pub(super) slot: u32,
    /// Of at least one and at most [`MAX_CS_COMPONENTS`] components.
    pub(super) name: NameView<'a>,
    pub(super) hashes: &'a [NameHash],
    pub(super) fresh_until: MonoNs,
}

/// See the module. Data are the slots of the content store, passed to each call;
/// `hashes[i]` is the hash of the first `i` components of the name in question, if
/// it is known.
#[derive(Debug)]
pub(super) struct PrefixTree {
    vertices: Slab<Vertex>,
    edges: BucketIndex,
    n_vertices: usize,
    hasher: Box<dyn PrefixHasher>,
    #[cfg(test)]
    n_touched: std::cell::Cell<usize>,
}

impl PrefixTree {
    /// An empty tree, for `max_data` at most. `hasher` makes the hashes that are
    /// passed in.
    ///
    /// # Errors
    /// If there is not as much memory as the index may take.
    pub(super) fn new(
        kind: IndexKind,
        max_data: usize,
        pages: PagePreference,
        hasher: Box<dyn PrefixHasher>,
    ) -> Result<Self, MemoryError> {
        let max_vertices = max_data.saturating_mul(MAX_VERTICES_PER_DATA);
        let mut vertices = Slab::new(max_vertices.saturating_add(1), pages)?;
        assert_eq!(vertices.alloc(), ROOT, "slots are handed out in order");
        Ok(Self {
            vertices,
            edges: BucketIndex::new(kind, max_vertices, pages)?,
            n_vertices: 0,
            hasher,
            #[cfg(test)]
            n_touched: std::cell::Cell::new(0),
        })
    }

    /// Makes room for `max_data`.
    ///
    /// # Errors
    /// If there is not as much memory; what is there stays.
    pub(super) fn set_max_data(
        &mut self,
        kind: IndexKind,
        max_data: usize,
        pages: PagePreference,
    ) -> Result<(), MemoryError> {
        let max_vertices = max_data.saturating_mul(MAX_VERTICES_PER_DATA);
        self.vertices
            .set_max_slots(max_vertices.saturating_add(1))?;
        if max_vertices <= self.edges.max_slots() {
            return Ok(());
        }
        self.edges = BucketIndex::new(kind, max_vertices, pages)?;
        for (id, vertex) in self.vertices.iter_touched() {
            if vertex.parent != NIL && vertex.is_indexed() {
                self.edges.insert(vertex.hash.0, id);
            }
        }
        Ok(())
    }

    /// What makes the hashes.
    pub(super) fn hasher(&self) -> &dyn PrefixHasher {
        &*self.hasher
    }

    /// What pages the vertices and their index have.
    pub(super) fn pages(&self) -> Pages {
        self.vertices.pages() + self.edges.pages()
    }

    /// Vertices but the root.
    pub(super) const fn n_vertices(&self) -> usize {
        self.n_vertices
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.vertices.memory_bytes() + self.edges.memory_bytes()
    }

    /// Of the Data whose names begin with `prefix` and are longer, or are `prefix`
    /// and share it with longer ones: the one that stays fresh longest.
    pub(super) fn freshest_below(
        &self,
        prefix: NameView<'_>,
        hashes: &[NameHash],
        data: &Slab<CsEntry>,
    ) -> Option<u32> {
        let reached = self.reach(prefix, hashes, data);
        (reached.n_common == prefix.len()).then(|| self.freshest_at(reached.vertex))?
    }

    /// Adds a Data whose name is not there yet; which vertex it is from then on.
    /// `find_exact` tells the vertex of the Data of a name, if there is one.
    pub(super) fn insert(
        &mut self,
        new: Newcomer<'_>,
        data: &Slab<CsEntry>,
        find_exact: impl FnOnce(NameView<'_>, NameHash) -> Option<u32>,
    ) -> u32 {
        let name = new.name;
        let reached = self.reach(name, new.hashes, data);
        let mut parent = reached.vertex;
        let above = self.at(parent);
        let end = usize::from(above.end);
        if reached.n_common < end || above.is_data {
            parent = self.split(parent, name.prefix(reached.n_common), data);
        } else if above.has_unindexed && end + 1 < name.len() {
            let prefix = name.prefix(end + 1);
            if let Some(leaf) = find_exact(prefix, new.hashes[end + 1]) {
                parent = self.split(leaf, prefix, data);
            }
        }
        let start = usize::from(self.at(parent).end) + 1;
        let leaf = self.alloc();
        let hash = if start <= name.len() {
            new.hashes[start]
        } else {
            NameHash::default()
        };
        *self.at_mut(leaf) = Vertex {
            hash,
            fresh_until: new.fresh_until,
            parent,
            below: new.slot,
            start: start as u8,
            end: name.len() as u8,
            end_bytes: name.value_bytes().len() as u16,
            is_data: true,
            ..Vertex::default()
        };
        if start < name.len() {
            self.edges.insert(hash.0, leaf);
        } else if start == name.len() {
            self.at_mut(parent).has_unindexed = true;
        }
        self.attach(leaf, parent, new.fresh_until);
        self.refresh(parent);
        leaf
    }

    /// A Data, which is this vertex, has come again, and is fresh until then.
    pub(super) fn set_fresh_until(&mut self, leaf: u32, fresh_until: MonoNs) {
        let parent = self.at(leaf).parent;
        self.detach(leaf);
        self.attach(leaf, parent, fresh_until);
        self.refresh(parent);
    }

    /// Takes out the Data that is this vertex.
    pub(super) fn remove(&mut self, leaf: u32) {
        let Vertex { parent, hash, .. } = *self.at(leaf);
        if self.at(leaf).is_indexed() {
            self.edges.remove(hash.0, leaf);
        }
        self.detach(leaf);
        self.free(leaf);
        let only = self.at(parent).below;
        if parent != ROOT && self.at(only).left == NIL {
            self.replace_by_child(parent, only);
        } else {
            self.refresh(parent);
        }
    }

    /// Goes down along `name` as far as edges begin within it.
    fn reach(&self, name: NameView<'_>, hashes: &[NameHash], data: &Slab<CsEntry>) -> Reached {
        let vertex = self.descend(name, hashes, |_| true);
        let n_common = self.n_common(vertex, name, data);
        if n_common >= usize::from(self.at(vertex).start) {
            return Reached { vertex, n_common };
        }
        // Some edge has the hash of another prefix.
        let vertex = self.descend(name, hashes, |vertex| {
            self.n_common(vertex, name, data) >= usize::from(self.at(vertex).start)
        });
        let n_common = self.n_common(vertex, name, data);
        Reached { vertex, n_common }
    }

    fn descend(
        &self,
        name: NameView<'_>,
        hashes: &[NameHash],
        accepts: impl Fn(u32) -> bool,
    ) -> u32 {
        let mut reached = ROOT;
        loop {
            let start = usize::from(self.at(reached).end) + 1;
            if start > name.len() {
                return reached;
            }
            let hash = hashes[start];
            let child = self.edges.find(hash.0, |id| {
                let vertex = self.at(id);
                vertex.hash == hash && vertex.parent == reached && accepts(id)
            });
            match child {
                Some(child) => reached = child,
                None => return reached,
            }
        }
    }

    /// How many components of `name` the names below a vertex share, down to the
    /// vertex.
    fn n_common(&self, vertex: u32, name: NameView<'_>, data: &Slab<CsEntry>) -> usize {
        if vertex == ROOT {
            return 0;
        }
        let sample = self.sample(vertex, data).name_bytes();
        let Vertex { end, end_bytes, .. } = *self.at(vertex);
        let down_to_it = &sample[..usize::from(end_bytes)];
        if name.value_bytes().starts_with(down_to_it) {
            return usize::from(end);
        }
        n_common_components(name, down_to_it)
    }

    /// A Data below a vertex that is not the root.
    fn sample<'a>(&self, vertex: u32, data: &'a Slab<CsEntry>) -> &'a CsEntry {
        &data[self.freshest_at(vertex).expect("only the root may be bare")]
    }

    fn freshest_at(&self, mut vertex: u32) -> Option<u32> {
        loop {
            let Vertex { below, is_data, .. } = *self.at(vertex);
            match (is_data, below) {
                (false, NIL) => return None,
                (false, child) => vertex = child,
                (true, slot) => return Some(slot),
            }
        }
    }

    /// Puts an inner vertex of this prefix above a vertex below it, which becomes
    /// its only child; the new one.
    fn split(&mut self, lower: u32, prefix: NameView<'_>, data: &Slab<CsEntry>) -> u32 {
        let upper = self.alloc();
        let before = *self.at(lower);
        let start = prefix.len() + 1;
        *self.at_mut(upper) = Vertex {
            below: lower,
            end: prefix.len() as u8,
            end_bytes: prefix.value_bytes().len() as u16,
            is_data: false,
            has_unindexed: before.is_data && start == usize::from(before.end),
            ..before
        };
        if !before.is_indexed() {
            self.edges.insert(before.hash.0, upper);
        } else {
            self.edges.replace(before.hash.0, lower, upper);
        }
        self.take_place(lower, upper);
        let hash = if start <= usize::from(before.end) {
            let name = self.sample(lower, data).name();
            self.hasher.hash_name(name.prefix(start))
        } else {
            NameHash::default()
        };
        let vertex = self.at_mut(lower);
        (vertex.start, vertex.hash, vertex.parent) = (start as u8, hash, upper);
        (vertex.up, vertex.left, vertex.right, vertex.rank) = (NIL, NIL, NIL, 1);
        if vertex.is_indexed() {
            self.edges.insert(hash.0, lower);
        }
        upper
    }

    /// Takes out an inner vertex that has one child left.
    fn replace_by_child(&mut self, upper: u32, lower: u32) {
        let before = *self.at(upper);
        let child = *self.at(lower);
        if child.is_indexed() {
            self.edges.remove(child.hash.0, lower);
        }
        let child = Vertex {
            below: child.below,
            end: child.end,
            end_bytes: child.end_bytes,
            is_data: child.is_data,
            has_unindexed: child.has_unindexed,
            ..before
        };
        let fresh_until = self.at(lower).fresh_until;
        *self.at_mut(lower) = child;
        self.take_place(upper, lower);
        self.free(upper);
        if child.is_indexed() {
            self.edges.replace(before.hash.0, upper, lower);
        } else {
            self.edges.remove(before.hash.0, upper);
            if child.start == child.end {
                self.at_mut(before.parent).has_unindexed = true;
            }
        }
        if fresh_until != before.fresh_until {
            self.set_fresh_until(lower, fresh_until);
        }
    }

    /// Points what is around `old` in the heap to `new`, which has its links.
    fn take_place(&mut self, old: u32, new: u32) {
        let Vertex {
            parent,
            up,
            left,
            right,
            ..
        } = *self.at(new);
        match up {
            NIL => self.at_mut(parent).below = new,
            up => self.replace_in_heap(up, old, new),
        }
        for child in [left, right] {
            if child != NIL {
                self.at_mut(child).up = new;
            }
        }
    }

    /// Brings a vertex, and all above it, up to date with the first of its
    /// children.
    fn refresh(&mut self, mut vertex: u32) {
        while vertex != ROOT {
            let Vertex {
                below,
                parent,
                up,
                fresh_until: before,
                ..
            } = *self.at(vertex);
            let fresh_until = self.at(below).fresh_until;
            if fresh_until == before {
                return;
            }
            if up == NIL && fresh_until > before {
                // First it was, and stays.
                self.at_mut(vertex).fresh_until = fresh_until;
            } else {
                self.detach(vertex);
                self.attach(vertex, parent, fresh_until);
            }
            vertex = parent;
        }
    }

    /// Adds a vertex to the children of its parent: before those that are fresh as
    /// long.
    fn attach(&mut self, vertex: u32, parent: u32, fresh_until: MonoNs) {
        self.at_mut(vertex).fresh_until = fresh_until;
        let first = self.at(parent).below;
        if first != NIL {
            let before = self.at_mut(first);
            if before.fresh_until > fresh_until {
                self.merge(first, vertex);
                return;
            }
            before.up = vertex;
            self.at_mut(vertex).left = first;
        }
        self.at_mut(parent).below = vertex;
    }

    /// Takes a vertex out of the children of its parent.
    fn detach(&mut self, vertex: u32) {
        let Vertex {
            parent,
            up,
            left,
            right,
            ..
        } = *self.at(vertex);
        let rest = match right {
            NIL => left,
            right => self.merge(left, right),
        };
        if rest != NIL {
            self.at_mut(rest).up = up;
        }
        if up == NIL {
            self.at_mut(parent).below = rest;
        } else {
            self.replace_in_heap(up, vertex, rest);
            self.restore_ranks(up);
        }
        let vertex = self.at_mut(vertex);
        (vertex.up, vertex.left, vertex.right, vertex.rank) = (NIL, NIL, NIL, 1);
    }

    fn replace_in_heap(&mut self, up: u32, old: u32, new: u32) {
        let above = self.at_mut(up);
        if above.left == old {
            above.left = new;
        } else {
            above.right = new;
        }
    }

    /// The heap of all in two heaps. What is above its first is left to the
    /// caller.
    fn merge(&mut self, older: u32, newer: u32) -> u32 {
        if older == NIL {
            return newer;
        }
        if newer == NIL {
            return older;
        }
        let is_newer_first = self.at(newer).fresh_until >= self.at(older).fresh_until;
        let (first, second) = if is_newer_first {
            (newer, older)
        } else {
            (older, newer)
        };
        // As deep as the sum of both ranks.
        let right = self.merge(self.at(first).right, second);
        self.at_mut(right).up = first;
        self.at_mut(first).right = right;
        self.restore_rank(first);
        first
    }

    /// Puts the lower rank right; whether this changed the vertex's own.
    fn restore_rank(&mut self, vertex: u32) -> bool {
        let Vertex { left, right, .. } = *self.at(vertex);
        let (left_rank, right_rank) = (self.rank(left), self.rank(right));
        let vertex = self.at_mut(vertex);
        if left_rank < right_rank {
            (vertex.left, vertex.right) = (right, left);
        }
        let before = std::mem::replace(&mut vertex.rank, left_rank.min(right_rank) + 1);
        before != vertex.rank
    }

    /// The same from a vertex upwards, as far as something changes.
    fn restore_ranks(&mut self, mut vertex: u32) {
        while vertex != NIL && self.restore_rank(vertex) {
            vertex = self.at(vertex).up;
        }
    }

    fn rank(&self, vertex: u32) -> u8 {
        match vertex {
            NIL => 0,
            vertex => self.at(vertex).rank,
        }
    }

    fn alloc(&mut self) -> u32 {
        self.n_vertices += 1;
        self.vertices.alloc()
    }

    fn free(&mut self, id: u32) {
        self.at_mut(id).parent = NIL;
        self.vertices.free(id);
        self.n_vertices -= 1;
    }

    fn at(&self, id: u32) -> &Vertex {
        #[cfg(test)]
        self.n_touched.set(self.n_touched.get() + 1);
        &self.vertices[id]
    }

    fn at_mut(&mut self, id: u32) -> &mut Vertex {
        #[cfg(test)]
        self.n_touched.set(self.n_touched.get() + 1);
        &mut self.vertices[id]
    }
}

/// How many components of `name` another one, of these bytes, begins with.
fn n_common_components(name: NameView<'_>, other: &[u8]) -> usize {
    let n_bytes = n_common_bytes(name.value_bytes(), other);
    if n_bytes == name.value_bytes().len() {
        return name.len();
    }
    let mut end = 0;
    let ends = name.components().map(|component| {
        end += component.wire_len();
        end
    });
    ends.take_while(|&end| end <= n_bytes).count()
}

/// How many bytes two slices share from the start, eight at a time.
fn n_common_bytes(one: &[u8], other: &[u8]) -> usize {
    let (words, _) = one.as_chunks::<8>();
    let (other_words, _) = other.as_chunks::<8>();
    for (i, (word, other_word)) in words.iter().zip(other_words).enumerate() {
        let differing = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other_word);
        if differing != 0 {
            return 8 * i + differing.trailing_zeros() as usize / 8;
        }
    }
    let n_words = words.len().min(other_words.len());
    let rest = one[8 * n_words..].iter().zip(&other[8 * n_words..]);
    8 * n_words
        + rest
            .take_while(|(byte, other_byte)| byte == other_byte)
            .count()
}

#[cfg(test)]
mod tests;
