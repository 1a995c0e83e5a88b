//! The routes of the RIB, one place each.
//!
//! Owns where routes are and two lists through them: the routes of a prefix, in the order
//! in which they came, and the routes of a face. Knows no names, and no rule about routes:
//! see the parent module.

use std::collections::HashMap;

use tachonym_packet::FaceId;

use super::RibRoute;
use super::tree::NodeIdx;

/// Place of a route. It stays while the route does; places of removed routes are used
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RouteIdx(u32);

impl RouteIdx {
    const NONE: Self = Self(u32::MAX);

    fn some(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// The routes of one prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteList {
    first: RouteIdx,
}

impl Default for RouteList {
    fn default() -> Self {
        Self {
            first: RouteIdx::NONE,
        }
    }
}

impl RouteList {
    pub(super) fn is_empty(self) -> bool {
        self.first == RouteIdx::NONE
    }
}

#[derive(Debug)]
struct Place {
    route: RibRoute,
    prefix: NodeIdx,
    /// In a free place: the next free one.
    next_of_prefix: RouteIdx,
    prev_of_face: RouteIdx,
    next_of_face: RouteIdx,
}

/// The routes of the RIB, each linked into the list of its prefix and that of its face.
#[derive(Debug)]
pub(super) struct Routes {
    places: Vec<Place>,
    first_free: RouteIdx,
    len: usize,
    /// The first route of each face that has one.
    by_face: HashMap<FaceId, RouteIdx, foldhash::fast::RandomState>,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            first_free: RouteIdx::NONE,
            len: 0,
            by_face: HashMap::default(),
        }
    }

    /// Number of routes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Number of faces that have routes.
    #[cfg(test)]
    pub(super) fn n_faces(&self) -> usize {
        self.by_face.len()
    }

    fn place(&self, idx: RouteIdx) -> &Place {
        &self.places[idx.0 as usize]
    }

    fn place_mut(&mut self, idx: RouteIdx) -> &mut Place {
        &mut self.places[idx.0 as usize]
    }

    pub(super) fn get(&self, idx: RouteIdx) -> &RibRoute {
        &self.place(idx).route
    }

    /// The prefix that has a route.
    pub(super) fn prefix(&self, idx: RouteIdx) -> NodeIdx {
        self.place(idx).prefix
    }

    /// The routes of a list with their places.
    pub(super) fn iter(&self, list: RouteList) -> impl Iterator<Item = (RouteIdx, &RibRoute)> {
        std::iter::successors(list.first.some(), |&idx| {
            self.place(idx).next_of_prefix.some()
        })
        .map(|idx| (idx, self.get(idx)))
    }

    /// The same without their places.
    pub(super) fn of(&self, list: RouteList) -> impl Iterator<Item = &RibRoute> {
        self.iter(list).map(|(_, route)| route)
    }

    /// The route of a list to `face` with this origin.
    pub(super) fn find(&self, list: RouteList, face: FaceId, origin: u64) -> Option<RouteIdx> {
        let mut routes = self.iter(list);
        let found = routes.find(|(_, route)| route.face == face && route.origin == origin);
        found.map(|(idx, _)| idx)
    }

    /// Some route of a face.
    pub(super) fn of_face(&self, face: FaceId) -> Option<RouteIdx> {
        self.by_face.get(&face).copied()
    }

    /// Changes a route; face and origin remain.
    pub(super) fn replace(&mut self, idx: RouteIdx, route: RibRoute) -> RibRoute {
        let old = &mut self.place_mut(idx).route;
        debug_assert_eq!((old.face, old.origin), (route.face, route.origin));
        std::mem::replace(old, route)
    }

    /// Adds a route at the end of the list of `prefix`.
    pub(super) fn insert(
        &mut self,
        prefix: NodeIdx,
        list: &mut RouteList,
        route: RibRoute,
    ) -> RouteIdx {
        let idx = self.first_free.some().unwrap_or_else(|| {
            let idx = RouteIdx(u32::try_from(self.places.len()).expect("routes are bounded"));
            assert_ne!(idx, RouteIdx::NONE, "routes are bounded");
            idx
        });
        let next_of_face = self.by_face.insert(route.face, idx);
        let place = Place {
            route,
            prefix,
            next_of_prefix: RouteIdx::NONE,
            prev_of_face: RouteIdx::NONE,
            next_of_face: next_of_face.unwrap_or(RouteIdx::NONE),
        };
        match self.places.get_mut(idx.0 as usize) {
            Some(free) => {
                self.first_free = free.next_of_prefix;
                *free = place;
            }
            None => self.places.push(place),
        }
        if let Some(next) = next_of_face {
            self.place_mut(next).prev_of_face = idx;
        }
        match self.iter(*list).last() {
            Some((last, _)) => self.place_mut(last).next_of_prefix = idx,
            None => list.first = idx,
        }
        self.len += 1;
        idx
    }

    /// Removes a route of `list`.
    pub(super) fn remove(&mut self, list: &mut RouteList, idx: RouteIdx) -> RibRoute {
        let &Place {
            route,
            next_of_prefix: next,
            prev_of_face,
            next_of_face,
            ..
        } = self.place(idx);
        if list.first == idx {
            list.first = next;
        } else {
            let is_before = |&(at, _): &(RouteIdx, _)| self.place(at).next_of_prefix == idx;
            let found = self.iter(*list).find(is_before);
            let (before, _) = found.expect("a route is in the list of its prefix");
            self.place_mut(before).next_of_prefix = next;
        }
        if let Some(next) = next_of_face.some() {
            self.place_mut(next).prev_of_face = prev_of_face;
        }
        match (prev_of_face.some(), next_of_face.some()) {
            (Some(prev), _) => self.place_mut(prev).next_of_face = next_of_face,
            (None, Some(next)) => {
                self.by_face.insert(route.face, next);
            }
            (None, None) => {
                self.by_face.remove(&route.face);
            }
        }
        self.place_mut(idx).next_of_prefix = self.first_free;
        self.first_free = idx;
        self.len -= 1;
        route
    }

    /// Bytes of routes and faces.
    pub(super) fn memory_bytes(&self) -> usize {
        self.places.len() * size_of::<Place>()
            + self.by_face.capacity() * size_of::<(FaceId, RouteIdx)>()
    }
}
