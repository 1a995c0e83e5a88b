//! The content of datasets that the RIB takes part in.

use tachonym_packet::{FaceId, MonoNs, NameView};
use tachonym_protocol::{
    ControlResponse, ExplainQuery, NameExplanation, RibEntry, Route, status_code,
};

use crate::control::ControlPlane;
use crate::rib::Rib;

/// What would become of the Interest of `status/explain`, with the origins of its routes;
/// `rest` is what follows the dataset's name.
///
/// # Errors
/// The response to a query that is malformed, or that the router refuses.
pub(crate) fn explanation(
    control: &mut impl ControlPlane,
    rib: &Rib,
    rest: NameView<'_>,
) -> Result<NameExplanation, ControlResponse> {
    let query = rest
        .get(0)
        .and_then(|component| ExplainQuery::decode(component.value()).ok())
        .ok_or_else(|| ControlResponse::new(status_code::BAD_REQUEST, "malformed query"))?;
    let mut explanation = control.explain(&query)?;
    if let Some(prefix) = &explanation.route_prefix {
        for hop in &mut explanation.next_hops {
            let face = FaceId(hop.face_id);
            hop.origin = rib.origin_of(prefix.view(), face, hop.cost);
        }
    }
    Ok(explanation)
}

/// The content of `rib/list` at `now`.
pub(crate) fn rib_list(rib: &Rib, now: MonoNs) -> Vec<u8> {
    let mut content = Vec::new();
    rib.for_each(|name, routes| {
        let routes = routes.iter().map(|route| Route {
            face_id: route.face.0,
            origin: route.origin,
            cost: route.cost,
            flags: route.flags,
            expiration_period_ms: (route.expires != MonoNs::NEVER)
                .then(|| (route.expires.0.saturating_sub(now.0)) / 1_000_000),
        });
        let entry = RibEntry {
            name: name.to_name(),
            routes: routes.collect(),
        };
        entry.encode_into(&mut content);
    });
    content
}
