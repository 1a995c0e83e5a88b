//! What another forwarder would do with an Interest, as far as its datasets say.
//!
//! They show FIB, RIB, faces and strategies. What its content store has, and what is pending,
//! no dataset of the standard protocol says.

use tachonym_client::{CommandError, Controller};
use tachonym_packet::{FaceId, Name, NameScope};
use tachonym_protocol::{
    ExplainQuery, ExplainedNextHop, FaceScope, FaceState, FaceStatus, NameExplanation, NextHopUse,
    RibEntry, SsdFinding,
};

/// What the FIB, RIB, faces and strategies say; nothing of what they do not say.
pub(super) fn explain(
    controller: &mut Controller<'_>,
    query: &ExplainQuery,
) -> Result<NameExplanation, CommandError> {
    let mut faces = controller.faces()?;
    let find = |id: u64| faces.iter().find(|face| face.face_id == id);
    let scope = query.name.view().scope();
    let is_from_here = query.face_id.is_none_or(|id| is_local(find(id)));
    let is_for_local_faces = match scope {
        NameScope::Localhost => true,
        NameScope::Localhop => !is_from_here,
        NameScope::Global => false,
    };
    let fib = controller.fib()?;
    let route = fib
        .into_iter()
        .filter(|entry| query.name.starts_with(entry.name.view()))
        .max_by_key(|entry| entry.name.len());
    let rib = controller.rib()?;
    let mut next_hops = Vec::new();
    for hop in route.iter().flat_map(|entry| &entry.next_hops) {
        let face = find(hop.face_id);
        next_hops.push(ExplainedNextHop {
            face_id: hop.face_id,
            cost: hop.cost,
            usage: if face.is_none() && hop.face_id >= FaceId::FIRST_DYNAMIC.0 {
                NextHopUse::FaceGone
            } else if query.face_id == Some(hop.face_id) {
                NextHopUse::Incoming
            } else if is_for_local_faces && !is_local(face) {
                NextHopUse::OutOfScope
            } else if face.is_some_and(|face| face.state == Some(FaceState::Down)) {
                NextHopUse::FaceDown
            } else {
                NextHopUse::Usable
            },
            origin: origin_of(&rib, &query.name, (hop.face_id, hop.cost)),
        });
    }
    let choice = controller
        .strategies()?
        .into_iter()
        .filter(|choice| query.name.starts_with(choice.name.view()))
        .max_by_key(|choice| choice.name.len());
    let (strategy_prefix, strategy) =
        choice.map_or_else(Default::default, |choice| (choice.name, choice.strategy));
    let is_out_of_scope = scope == NameScope::Localhost && !is_from_here;
    faces.retain(|face| {
        let mut hops = next_hops.iter();
        hops.any(|hop| hop.face_id == face.face_id) || query.face_id == Some(face.face_id)
    });
    Ok(NameExplanation {
        worker: 0,
        is_out_of_scope,
        is_for_local_faces,
        store_serves: true,
        cached: None,
        on_ssd: SsdFinding::NotConfigured,
        pending: Vec::new(),
        route_prefix: route.map(|entry| entry.name),
        next_hops,
        strategy,
        strategy_prefix,
        faces,
    })
}

/// Whether a face counts as local; one that is not listed is of the forwarder itself.
fn is_local(face: Option<&FaceStatus>) -> bool {
    face.is_none_or(|face| face.face_scope == FaceScope::Local)
}

/// The origin of the route with the longest prefix that leads to a face at this cost.
fn origin_of(rib: &[RibEntry], name: &Name, (face_id, cost): (u64, u64)) -> Option<u64> {
    let entries = rib
        .iter()
        .filter(|entry| name.starts_with(entry.name.view()));
    let routes = entries.flat_map(|entry| entry.routes.iter().map(|it| (entry.name.len(), it)));
    let routes = routes.filter(|(_, it)| it.face_id == face_id && it.cost == cost);
    routes
        .max_by_key(|&(n_components, _)| n_components)
        .map(|(_, route)| route.origin)
}
