//! The RIB: routes by prefix, and the FIB that follows from them.
//!
//! Owns the routes, their expiry and the rule by which longer prefixes inherit
//! them; it says what changes of the FIB each of its own changes brings about,
//! and no more than those. Refuses what its limits do not hold. It knows no
//! clock and applies nothing: the manager hands the changes on.
//!
//! The rule (NFD developer's guide, section "RIB manager, FIB updates"): a
//! prefix with routes gets a FIB entry. Its next hops are the faces of its own
//! routes, each at the lowest cost. Unless one of its routes has the capture
//! flag, it also gets the faces of child-inherit routes of its ancestors; of two
//! ancestors with the same face the nearer one counts, an own route counts more
//! than both, and no ancestor above one with a capture flag counts at all. With
//! each next hop the FIB learns how far up it was inherited from.

mod tree;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use tachonym_packet::{FaceId, MonoNs, Name, NameView};
use tachonym_protocol::{route_flags, route_origin};

use self::tree::{NameTree, NodeIdx};
use crate::control::FibChange;

/// Most routes of one prefix to one face, which differ in their origin. The
/// protocol knows seven origins.
pub const MAX_ORIGINS: usize = 16;

/// How much a [`Rib`] may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RibLimits {
    /// Most routes.
    pub max_routes: usize,
    /// Most components of a prefix; at most 255.
    pub max_name_components: usize,
    /// Most bytes of the names of all prefixes with routes together, each
    /// counted once.
    pub max_name_bytes: usize,
}

impl Default for RibLimits {
    /// A million routes, with names as deep as NFD takes them and 256 bytes long
    /// on average.
    fn default() -> Self {
        Self {
            max_routes: 1_000_000,
            max_name_components: 32,
            max_name_bytes: 256 << 20,
        }
    }
}

/// One route of a prefix. Face and origin identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RibRoute {
    /// The next hop.
    pub face: FaceId,
    /// Where the route came from.
    pub origin: u64,
    /// Its cost.
    pub cost: u64,
    /// Flags: see [`route_flags`].
    pub flags: u64,
    /// When it expires; [`MonoNs::NEVER`]: never.
    pub expires: MonoNs,
}

impl RibRoute {
    const fn hop(&self, depth: u8) -> Hop {
        Hop {
            face: self.face,
            cost: self.cost,
            depth,
        }
    }

    const fn is_inherited(&self) -> bool {
        self.flags & route_flags::CHILD_INHERIT != 0
    }

    const fn is_capture(&self) -> bool {
        self.flags & route_flags::CAPTURE != 0
    }
}

/// What came of inserting a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteInserted {
    /// It is new.
    Added,
    /// A route with the same face and origin was there and has been replaced.
    Replaced,
}

/// Why a route was not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RibError {
    /// The prefix has too many components.
    #[error("prefix has too many components")]
    NameTooLong,
    /// There are as many routes as may be.
    #[error("too many routes")]
    Full,
    /// The names of the prefixes have as many bytes together as may be.
    #[error("too many bytes of names")]
    TooManyNameBytes,
    /// The prefix has [`MAX_ORIGINS`] routes to the face.
    #[error("too many origins for one prefix and face")]
    TooManyOrigins,
}

/// A face, what it costs to send there, and whose route says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    face: FaceId,
    cost: u64,
    /// Components of the prefix that has the route. This, rather than how far up
    /// that is, is the same for all that inherit the route.
    depth: u8,
}

/// What a prefix has.
#[derive(Debug, Default)]
struct Prefix {
    routes: Vec<RibRoute>,
    /// What the FIB has been told, by ascending face.
    hops: Box<[Hop]>,
    /// Its own next hops have to be computed again.
    is_dirty: bool,
    /// And those of all below it.
    is_dirty_below: bool,
}

impl Prefix {
    fn captures(&self) -> bool {
        self.routes.iter().any(RibRoute::is_capture)
    }
}

/// Routes by prefix.
#[derive(Debug)]
pub struct Rib {
    tree: NameTree<Prefix>,
    limits: RibLimits,
    n_routes: usize,
    /// Bytes of the names of prefixes with routes.
    name_bytes: usize,
    by_face:
        HashMap<FaceId, HashSet<NodeIdx, foldhash::fast::RandomState>, foldhash::fast::RandomState>,
    /// Routes that expire, by when.
    by_expiry: BTreeSet<(MonoNs, NodeIdx, FaceId, u64)>,
    /// Prefixes whose next hops have to be computed again.
    dirty: Vec<NodeIdx>,
    /// Prefixes that have lost their last announced route.
    withdrawn: Vec<Name>,
}

impl Rib {
    /// A RIB without routes.
    #[must_use]
    pub fn new(mut limits: RibLimits) -> Self {
        limits.max_name_components = limits.max_name_components.min(255);
        // Node places are 32 bits wide, and each route may need 255 of them.
        limits.max_routes = limits.max_routes.min(1 << 24);
        Self {
            tree: NameTree::new(),
            limits,
            n_routes: 0,
            name_bytes: 0,
            by_face: HashMap::default(),
            by_expiry: BTreeSet::new(),
            dirty: Vec::new(),
            withdrawn: Vec::new(),
        }
    }

    /// Number of routes.
    #[must_use]
    pub const fn n_routes(&self) -> usize {
        self.n_routes
    }

    /// Bytes that count towards [`RibLimits::max_name_bytes`].
    #[must_use]
    pub const fn name_bytes(&self) -> usize {
        self.name_bytes
    }

    /// Number of nodes in the tree of prefixes, the root included.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.tree.len()
    }

    /// Inserts a route or replaces the one with its face and origin. What the FIB
    /// has to do is appended to `changes`.
    ///
    /// # Errors
    /// If a limit is reached; then nothing has changed.
    pub fn insert(
        &mut self,
        name: NameView<'_>,
        route: RibRoute,
        changes: &mut Vec<FibChange>,
    ) -> Result<RouteInserted, RibError> {
        if name.len() > self.limits.max_name_components {
            return Err(RibError::NameTooLong);
        }
        let is_full = self.n_routes >= self.limits.max_routes;
        let n_bytes = name.value_bytes().len();
        let has_room_for_name = self.name_bytes + n_bytes <= self.limits.max_name_bytes;
        let idx = if is_full {
            self.tree.find(name).ok_or(RibError::Full)?
        } else if has_room_for_name {
            self.tree.find_or_insert(name)
        } else {
            self.tree.find(name).ok_or(RibError::TooManyNameBytes)?
        };
        let prefix = self.tree.value_mut(idx);
        let captured = prefix.captures();
        let is_new_prefix = prefix.routes.is_empty();
        let old = match position(&prefix.routes, route.face, route.origin) {
            None if is_full => return Err(RibError::Full),
            None if is_new_prefix && !has_room_for_name => return Err(RibError::TooManyNameBytes),
            None if n_origins(&prefix.routes, route.face) >= MAX_ORIGINS => {
                return Err(RibError::TooManyOrigins);
            }
            Some(at) => Some(std::mem::replace(&mut prefix.routes[at], route)),
            None => {
                prefix.routes.reserve_exact(1);
                prefix.routes.push(route);
                None
            }
        };
        let is_same = old.is_some_and(|old| old.cost == route.cost && old.flags == route.flags);
        let reaches_below = route.is_inherited()
            || old.is_some_and(|old| old.is_inherited())
            || captured != prefix.captures();
        if is_new_prefix {
            self.name_bytes += n_bytes;
        }
        if old.is_none() {
            self.n_routes += 1;
            self.by_face.entry(route.face).or_default().insert(idx);
        }
        if let Some(old) = old {
            self.forget_expiry(idx, &old);
        }
        if route.expires != MonoNs::NEVER {
            let key = (route.expires, idx, route.face, route.origin);
            self.by_expiry.insert(key);
        }
        if !is_same {
            self.mark(idx, reaches_below);
            self.refresh(changes);
        }
        Ok(match old {
            Some(_) => RouteInserted::Replaced,
            None => RouteInserted::Added,
        })
    }

    /// Removes a route; false if it is not there.
    pub fn remove(
        &mut self,
        name: NameView<'_>,
        face: FaceId,
        origin: u64,
        changes: &mut Vec<FibChange>,
    ) -> bool {
        let Some(idx) = self.tree.find(name) else {
            return false;
        };
        let is_removed = self.take_route(idx, face, origin);
        self.refresh(changes);
        is_removed
    }

    /// The route of `name` to `face` with this origin, if there is one.
    pub fn route(&mut self, name: NameView<'_>, face: FaceId, origin: u64) -> Option<&RibRoute> {
        let idx = self.tree.find(name)?;
        let routes = &self.tree.value(idx).routes;
        position(routes, face, origin).map(|at| &routes[at])
    }

    /// The longest prefix of `name` that has a route to `face` with this origin.
    /// Costs as much as the longest prefix in the RIB, however long `name` is.
    pub fn longest_with_route(
        &mut self,
        name: NameView<'_>,
        face: FaceId,
        origin: u64,
    ) -> Option<Name> {
        let nodes = self.tree.path(name);
        let has_route =
            |idx: &NodeIdx| position(&self.tree.value(*idx).routes, face, origin).is_some();
        let idx = nodes.into_iter().rev().find(has_route)?;
        Some(self.tree.name(idx))
    }

    /// Prefixes that have lost their last route of origin
    /// [`PREFIX_ANNOUNCEMENT`](route_origin::PREFIX_ANNOUNCEMENT) since this was
    /// last asked. One may have got a new one since.
    pub fn take_withdrawn(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.withdrawn)
    }

    /// Whether a prefix has a route of this origin.
    pub fn has_origin(&mut self, name: NameView<'_>, origin: u64) -> bool {
        let idx = self.tree.find(name);
        idx.is_some_and(|idx| has_origin(&self.tree.value(idx).routes, origin))
    }

    /// Removes all routes of a face and returns how many it were.
    pub fn remove_face(&mut self, face: FaceId, changes: &mut Vec<FibChange>) -> usize {
        let Some(nodes) = self.by_face.remove(&face) else {
            return 0;
        };
        let n_before = self.n_routes;
        for idx in nodes {
            let of_face = |route: &RibRoute| (route.face == face).then_some(route.origin);
            while let Some(origin) = self.tree.value(idx).routes.iter().find_map(of_face) {
                self.take_route(idx, face, origin);
            }
        }
        self.refresh(changes);
        n_before - self.n_routes
    }

    /// Removes the routes whose time has come and returns how many it were.
    pub fn expire(&mut self, now: MonoNs, changes: &mut Vec<FibChange>) -> usize {
        let n_before = self.n_routes;
        while let Some(&(at, idx, face, origin)) = self.by_expiry.first() {
            if at > now {
                break;
            }
            self.take_route(idx, face, origin);
        }
        self.refresh(changes);
        n_before - self.n_routes
    }

    /// When the next route expires.
    #[must_use]
    pub fn next_expiry(&self) -> Option<MonoNs> {
        self.by_expiry.first().map(|&(at, ..)| at)
    }

    /// Every prefix with routes, in canonical order of the names.
    #[must_use]
    pub fn entries(&self) -> Vec<(Name, &[RibRoute])> {
        let mut entries = Vec::new();
        self.tree.for_each(|idx, prefix| {
            if !prefix.routes.is_empty() {
                entries.push((self.tree.name(idx), &*prefix.routes));
            }
        });
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        entries
    }

    /// Takes a route out and marks what has to be computed again.
    fn take_route(&mut self, idx: NodeIdx, face: FaceId, origin: u64) -> bool {
        let prefix = self.tree.value_mut(idx);
        let Some(at) = position(&prefix.routes, face, origin) else {
            return false;
        };
        let captured = prefix.captures();
        let route = prefix.routes.swap_remove(at);
        let reaches_below = route.is_inherited() || captured != prefix.captures();
        let is_withdrawn =
            origin == route_origin::PREFIX_ANNOUNCEMENT && !has_origin(&prefix.routes, origin);
        let is_last_of_face = !prefix.routes.iter().any(|route| route.face == face);
        if prefix.routes.is_empty() {
            prefix.routes = Vec::new();
            self.name_bytes -= self.tree.name_bytes(idx);
        }
        if is_withdrawn {
            self.withdrawn.push(self.tree.name(idx));
        }
        self.n_routes -= 1;
        self.forget_expiry(idx, &route);
        if is_last_of_face && let Some(nodes) = self.by_face.get_mut(&face) {
            nodes.remove(&idx);
            if nodes.is_empty() {
                self.by_face.remove(&face);
            }
        }
        self.mark(idx, reaches_below);
        true
    }

    fn forget_expiry(&mut self, idx: NodeIdx, route: &RibRoute) {
        if route.expires != MonoNs::NEVER {
            let key = (route.expires, idx, route.face, route.origin);
            self.by_expiry.remove(&key);
        }
    }

    fn mark(&mut self, idx: NodeIdx, reaches_below: bool) {
        let prefix = self.tree.value_mut(idx);
        if !prefix.is_dirty {
            self.dirty.push(idx);
        }
        prefix.is_dirty = true;
        prefix.is_dirty_below |= reaches_below;
    }

    /// Computes the next hops of everything that is marked, each prefix once.
    fn refresh(&mut self, changes: &mut Vec<FibChange>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        // Shallow ones first: they cover marked ones below.
        dirty.sort_by_key(|&idx| self.tree.depth(idx));
        for &idx in &dirty {
            if self.tree.value(idx).is_dirty {
                let inherited = self.inherited(idx);
                self.refresh_from(idx, &inherited, false, changes);
            }
        }
        for idx in dirty.drain(..) {
            self.tree.prune(idx, |prefix| !prefix.routes.is_empty());
        }
        self.dirty = dirty;
    }

    /// What `idx` inherits from its ancestors, its own capture flag aside, by
    /// ascending face.
    fn inherited(&self, idx: NodeIdx) -> Vec<Hop> {
        let mut hops = Vec::new();
        let mut ancestor = self.tree.parent(idx);
        while let Some(idx) = ancestor {
            let prefix = self.tree.value(idx);
            hops.extend(inherited_hops(prefix, self.depth(idx)));
            if prefix.captures() {
                break;
            }
            ancestor = self.tree.parent(idx);
        }
        nearest_and_cheapest(hops)
    }

    fn depth(&self, idx: NodeIdx) -> u8 {
        let depth = self.tree.depth(idx);
        u8::try_from(depth).expect("`Rib::new` lets no name have more than 255 components")
    }

    /// Computes `idx` and what is below it, as far as that is affected: by a mark
    /// of `idx`, or, if `from_above`, by what `idx` passes on. The recursion is as
    /// deep as the names, which are bounded.
    fn refresh_from(
        &mut self,
        idx: NodeIdx,
        inherited: &[Hop],
        from_above: bool,
        changes: &mut Vec<FibChange>,
    ) {
        let prefix = self.tree.value_mut(idx);
        prefix.is_dirty = false;
        let is_marked_below = std::mem::take(&mut prefix.is_dirty_below);
        let captures = prefix.captures();
        let inherited = if captures { &[] } else { inherited };
        self.refresh_one(idx, inherited, changes);
        if !(is_marked_below || from_above && !captures) {
            return;
        }
        let prefix = self.tree.value(idx);
        let own;
        let passed_on = if prefix.routes.iter().any(RibRoute::is_inherited) {
            own = merged(inherited_hops(prefix, self.depth(idx)), inherited);
            &own
        } else {
            inherited
        };
        let mut child = self.tree.first_child(idx);
        while let Some(idx) = child {
            self.refresh_from(idx, passed_on, true, changes);
            child = self.tree.next_sibling(idx);
        }
    }

    /// Computes the next hops of one prefix and notes how they differ from what
    /// the FIB has been told.
    fn refresh_one(&mut self, idx: NodeIdx, inherited: &[Hop], changes: &mut Vec<FibChange>) {
        let prefix = self.tree.value(idx);
        let hops = if prefix.routes.is_empty() {
            Vec::new()
        } else {
            let depth = self.depth(idx);
            merged(
                prefix.routes.iter().map(|route| route.hop(depth)),
                inherited,
            )
        };
        if *hops == *prefix.hops {
            return;
        }
        let (name, depth) = (self.tree.name(idx), self.depth(idx));
        let prefix = self.tree.value_mut(idx);
        note_difference((&name, depth), &prefix.hops, &hops, changes);
        prefix.hops = hops.into_boxed_slice();
    }
}

fn has_origin(routes: &[RibRoute], origin: u64) -> bool {
    routes.iter().any(|route| route.origin == origin)
}

fn position(routes: &[RibRoute], face: FaceId, origin: u64) -> Option<usize> {
    routes
        .iter()
        .position(|route| route.face == face && route.origin == origin)
}

fn n_origins(routes: &[RibRoute], face: FaceId) -> usize {
    routes.iter().filter(|route| route.face == face).count()
}

/// The hops that a prefix of `depth` components passes on.
fn inherited_hops(prefix: &Prefix, depth: u8) -> impl Iterator<Item = Hop> {
    let inherited = prefix.routes.iter().filter(|route| route.is_inherited());
    inherited.map(move |route| route.hop(depth))
}

/// Of each face the cheapest of `near`, or if there is none that of `far`.
fn merged(near: impl Iterator<Item = Hop>, far: &[Hop]) -> Vec<Hop> {
    nearest_and_cheapest(near.chain(far.iter().copied()).collect())
}

/// Of each face the hop of the deepest prefix, and of its hops the cheapest; by
/// ascending face.
fn nearest_and_cheapest(mut hops: Vec<Hop>) -> Vec<Hop> {
    hops.sort_unstable_by_key(|hop| (hop.face, Reverse(hop.depth), hop.cost));
    hops.dedup_by_key(|hop| hop.face);
    hops
}

/// Appends the changes that turn `old` into `new`, both by ascending face, for
/// a prefix of `depth` components.
fn note_difference(
    (name, depth): (&Name, u8),
    old: &[Hop],
    new: &[Hop],
    changes: &mut Vec<FibChange>,
) {
    let mut old = old.iter().peekable();
    for hop in new {
        while let Some(gone) = old.next_if(|old| old.face < hop.face) {
            changes.push(FibChange::Remove {
                name: name.clone(),
                face: gone.face,
            });
        }
        let kept = old.next_if(|old| old.face == hop.face);
        if kept != Some(hop) {
            changes.push(FibChange::Add {
                name: name.clone(),
                face: hop.face,
                cost: hop.cost,
                distance: depth - hop.depth,
            });
        }
    }
    for gone in old {
        changes.push(FibChange::Remove {
            name: name.clone(),
            face: gone.face,
        });
    }
}

#[cfg(test)]
mod tests;
