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

mod routes;
mod tree;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tachonym_packet::{FaceId, MonoNs, Name, NameView};
use tachonym_protocol::{route_flags, route_origin};

use self::routes::{RouteIdx, RouteList, Routes};
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
    #[error("the prefix has too many components")]
    NameTooLong,
    /// There are as many routes as may be.
    #[error("the RIB is full; raise tables.routes")]
    Full,
    /// The names of the prefixes have as many bytes together as may be.
    #[error("the names of all routes have too many bytes; raise tables.route_bytes")]
    TooManyNameBytes,
    /// The prefix has [`MAX_ORIGINS`] routes to the face.
    #[error("the prefix has routes of too many origins to this face; remove one first")]
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

/// The next hops that the FIB has been told for a prefix. Nearly all have one, which
/// needs no memory of its own.
#[derive(Debug, Default)]
enum Told {
    #[default]
    None,
    One {
        depth: u8,
        face: FaceId,
        cost: u64,
    },
    /// By ascending face.
    Many(Box<[Hop]>),
}

const _: () = assert!(size_of::<Told>() == 24);

impl Told {
    fn new(hops: &[Hop]) -> Self {
        match *hops {
            [] => Self::None,
            [Hop { face, cost, depth }] => Self::One { depth, face, cost },
            _ => Self::Many(hops.into()),
        }
    }

    /// By ascending face.
    fn hops(&self) -> impl Iterator<Item = Hop> {
        let (one, many) = match self {
            Self::None => (None, [].as_slice()),
            &Self::One { depth, face, cost } => (Some(Hop { face, cost, depth }), [].as_slice()),
            Self::Many(hops) => (None, &**hops),
        };
        one.into_iter().chain(many.iter().copied())
    }
}

/// What a prefix has.
#[derive(Debug, Default)]
struct Prefix {
    told: Told,
    routes: RouteList,
    /// Its own next hops have to be computed again.
    is_dirty: bool,
    /// And those of all below it.
    is_dirty_below: bool,
}

const _: () = assert!(size_of::<Prefix>() == 32);

/// Routes by prefix.
#[derive(Debug)]
pub struct Rib {
    tree: NameTree<Prefix>,
    routes: Routes,
    limits: RibLimits,
    /// Bytes of the names of prefixes with routes.
    name_bytes: usize,
    /// Routes that expire, by when.
    by_expiry: BTreeSet<(MonoNs, RouteIdx)>,
    /// Prefixes whose next hops have to be computed again.
    dirty: Vec<NodeIdx>,
    /// Prefixes that have lost their last announced route.
    withdrawn: Vec<Name>,
    /// Next hops while they are computed.
    hops: Vec<Hop>,
}

impl Rib {
    /// A RIB without routes.
    #[must_use]
    pub fn new(mut limits: RibLimits) -> Self {
        limits.max_name_components = limits.max_name_components.min(255);
        // Places are 32 bits wide, and each prefix with routes may need two nodes.
        limits.max_routes = limits.max_routes.min(1 << 30);
        Self {
            tree: NameTree::new(),
            routes: Routes::new(),
            limits,
            name_bytes: 0,
            by_expiry: BTreeSet::new(),
            dirty: Vec::new(),
            withdrawn: Vec::new(),
            hops: Vec::new(),
        }
    }

    /// Number of routes.
    #[must_use]
    pub const fn n_routes(&self) -> usize {
        self.routes.len()
    }

    /// Bytes that count towards [`RibLimits::max_name_bytes`].
    #[must_use]
    pub const fn name_bytes(&self) -> usize {
        self.name_bytes
    }

    /// Number of nodes in the tree of prefixes, the root included: prefixes with routes,
    /// and those where names part.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.tree.len()
    }

    /// Bytes in use, without what the system's allocator adds and without lists of next
    /// hops of prefixes that have more than one.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes()
            + self.routes.memory_bytes()
            + self.by_expiry.len() * size_of::<(MonoNs, RouteIdx)>()
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
        let is_full = self.routes.len() >= self.limits.max_routes;
        let n_bytes = name.value_bytes().len();
        let has_room_for_name = self.name_bytes + n_bytes <= self.limits.max_name_bytes;
        let idx = if is_full {
            self.tree.find(name).ok_or(RibError::Full)?
        } else if has_room_for_name {
            self.tree.find_or_insert(name)
        } else {
            self.tree.find(name).ok_or(RibError::TooManyNameBytes)?
        };
        let list = &mut self.tree.value_mut(idx).routes;
        let is_new_prefix = list.is_empty();
        let captured = captures(&self.routes, *list);
        let (at, old) = match self.routes.find(*list, route.face, route.origin) {
            None if is_full => return Err(RibError::Full),
            None if is_new_prefix && !has_room_for_name => return Err(RibError::TooManyNameBytes),
            None if n_origins(&self.routes, *list, route.face) >= MAX_ORIGINS => {
                return Err(RibError::TooManyOrigins);
            }
            Some(at) => (at, Some(self.routes.replace(at, route))),
            None => (self.routes.insert(idx, list, route), None),
        };
        let is_same = old.is_some_and(|old| old.cost == route.cost && old.flags == route.flags);
        let reaches_below = route.is_inherited()
            || old.is_some_and(|old| old.is_inherited())
            || captured != captures(&self.routes, *list);
        if is_new_prefix {
            self.name_bytes += n_bytes;
        }
        if let Some(old) = old {
            self.forget_expiry(at, &old);
        }
        if route.expires != MonoNs::NEVER {
            self.by_expiry.insert((route.expires, at));
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
        let Some(idx) = self.find(name, face, origin) else {
            return false;
        };
        self.take_route(idx);
        self.refresh(changes);
        true
    }

    /// The route of `name` to `face` with this origin, if there is one.
    #[must_use]
    pub fn route(&self, name: NameView<'_>, face: FaceId, origin: u64) -> Option<&RibRoute> {
        let idx = self.find(name, face, origin)?;
        Some(self.routes.get(idx))
    }

    fn find(&self, name: NameView<'_>, face: FaceId, origin: u64) -> Option<RouteIdx> {
        let idx = self.tree.find(name)?;
        self.routes.find(self.tree.value(idx).routes, face, origin)
    }

    /// The longest prefix of `name` that has a route to `face` with this origin.
    /// Costs as much as the longest prefix in the RIB, however long `name` is.
    #[must_use]
    pub fn longest_with_route(
        &self,
        name: NameView<'_>,
        face: FaceId,
        origin: u64,
    ) -> Option<Name> {
        let nodes = self.tree.path(name);
        let has_route = |idx: &NodeIdx| {
            let list = self.tree.value(*idx).routes;
            self.routes.find(list, face, origin).is_some()
        };
        let idx = nodes.into_iter().rev().find(has_route)?;
        Some(self.tree.name(idx))
    }

    /// The origin of the route by which `name` has a next hop: of those to `face` with this
    /// cost, the one of the longest prefix, and the lowest origin there.
    #[must_use]
    pub fn origin_of(&self, name: NameView<'_>, face: FaceId, cost: u64) -> Option<u64> {
        let nodes = self.tree.path(name);
        nodes.into_iter().rev().find_map(|idx| {
            let routes = self.routes.of(self.tree.value(idx).routes);
            let makes_hop = |route: &&RibRoute| route.face == face && route.cost == cost;
            routes.filter(makes_hop).map(|route| route.origin).min()
        })
    }

    /// Prefixes that have lost their last route of origin
    /// [`PREFIX_ANNOUNCEMENT`](route_origin::PREFIX_ANNOUNCEMENT) since this was
    /// last asked. One may have got a new one since.
    pub fn take_withdrawn(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.withdrawn)
    }

    /// Whether a prefix has a route of this origin.
    #[must_use]
    pub fn has_origin(&self, name: NameView<'_>, origin: u64) -> bool {
        let idx = self.tree.find(name);
        idx.is_some_and(|idx| has_origin(&self.routes, self.tree.value(idx).routes, origin))
    }

    /// Removes all routes of a face and returns how many it were.
    pub fn remove_face(&mut self, face: FaceId, changes: &mut Vec<FibChange>) -> usize {
        let n_before = self.routes.len();
        while let Some(idx) = self.routes.of_face(face) {
            self.take_route(idx);
        }
        self.refresh(changes);
        n_before - self.routes.len()
    }

    /// Removes the routes whose time has come and returns how many it were.
    pub fn expire(&mut self, now: MonoNs, changes: &mut Vec<FibChange>) -> usize {
        let n_before = self.routes.len();
        while let Some(&(at, idx)) = self.by_expiry.first() {
            if at > now {
                break;
            }
            self.take_route(idx);
        }
        self.refresh(changes);
        n_before - self.routes.len()
    }

    /// When the next route expires.
    #[must_use]
    pub fn next_expiry(&self) -> Option<MonoNs> {
        self.by_expiry.first().map(|&(at, _)| at)
    }

    /// Calls `visit` for every prefix with routes, in canonical order of the names.
    pub fn for_each(&self, mut visit: impl FnMut(NameView<'_>, &[RibRoute])) {
        let mut routes = Vec::new();
        self.tree.for_each(|name, prefix| {
            if !prefix.routes.is_empty() {
                routes.clear();
                routes.extend(self.routes.of(prefix.routes));
                visit(name, &routes);
            }
        });
    }

    /// Takes a route out and marks what has to be computed again.
    fn take_route(&mut self, at: RouteIdx) {
        let idx = self.routes.prefix(at);
        let list = &mut self.tree.value_mut(idx).routes;
        let captured = captures(&self.routes, *list);
        let route = self.routes.remove(list, at);
        let list = *list;
        let reaches_below = route.is_inherited() || captured != captures(&self.routes, list);
        if list.is_empty() {
            self.name_bytes -= self.tree.name_bytes(idx);
        }
        let announced = route_origin::PREFIX_ANNOUNCEMENT;
        if route.origin == announced && !has_origin(&self.routes, list, announced) {
            self.withdrawn.push(self.tree.name(idx));
        }
        self.forget_expiry(at, &route);
        self.mark(idx, reaches_below);
    }

    fn forget_expiry(&mut self, at: RouteIdx, route: &RibRoute) {
        if route.expires != MonoNs::NEVER {
            self.by_expiry.remove(&(route.expires, at));
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
            hops.extend(self.passed_on(idx));
            if captures(&self.routes, self.tree.value(idx).routes) {
                break;
            }
            ancestor = self.tree.parent(idx);
        }
        keep_nearest_and_cheapest(&mut hops);
        hops
    }

    /// The own hops that a prefix passes on.
    fn passed_on(&self, idx: NodeIdx) -> impl Iterator<Item = Hop> {
        let depth = self.tree.depth(idx);
        let routes = self.routes.of(self.tree.value(idx).routes);
        let inherited = routes.filter(|route| route.is_inherited());
        inherited.map(move |route| route.hop(depth))
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
        let captures = captures(&self.routes, prefix.routes);
        let inherited = if captures { &[] } else { inherited };
        self.refresh_one(idx, inherited, changes);
        if !(is_marked_below || from_above && !captures) {
            return;
        }
        if self.tree.first_child(idx).is_none() {
            return;
        }
        let mut passed_on: Vec<Hop> = self.passed_on(idx).collect();
        let passed_on = if passed_on.is_empty() {
            inherited
        } else {
            passed_on.extend(inherited);
            keep_nearest_and_cheapest(&mut passed_on);
            &passed_on
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
        let mut hops = std::mem::take(&mut self.hops);
        hops.clear();
        let depth = self.tree.depth(idx);
        let routes = self.routes.of(self.tree.value(idx).routes);
        hops.extend(routes.map(|route| route.hop(depth)));
        if !hops.is_empty() {
            hops.extend(inherited);
            keep_nearest_and_cheapest(&mut hops);
        }
        let told = &self.tree.value(idx).told;
        if !told.hops().eq(hops.iter().copied()) {
            note_difference((&self.tree.name(idx), depth), told.hops(), &hops, changes);
            self.tree.value_mut(idx).told = Told::new(&hops);
        }
        self.hops = hops;
    }
}

fn captures(routes: &Routes, list: RouteList) -> bool {
    routes.of(list).any(RibRoute::is_capture)
}

fn has_origin(routes: &Routes, list: RouteList, origin: u64) -> bool {
    routes.of(list).any(|route| route.origin == origin)
}

fn n_origins(routes: &Routes, list: RouteList, face: FaceId) -> usize {
    routes.of(list).filter(|route| route.face == face).count()
}

/// Keeps of each face the hop of the deepest prefix, and of its hops the cheapest; by
/// ascending face.
fn keep_nearest_and_cheapest(hops: &mut Vec<Hop>) {
    hops.sort_unstable_by_key(|hop| (hop.face, Reverse(hop.depth), hop.cost));
    hops.dedup_by_key(|hop| hop.face);
}

/// Appends the changes that turn `old` into `new`, both by ascending face, for
/// a prefix of `depth` components.
fn note_difference(
    (name, depth): (&Name, u8),
    old: impl Iterator<Item = Hop>,
    new: &[Hop],
    changes: &mut Vec<FibChange>,
) {
    let mut old = old.peekable();
    for hop in new {
        while let Some(gone) = old.next_if(|old| old.face < hop.face) {
            changes.push(FibChange::Remove {
                name: name.clone(),
                face: gone.face,
            });
        }
        let kept = old.next_if(|old| old.face == hop.face);
        if kept != Some(*hop) {
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
