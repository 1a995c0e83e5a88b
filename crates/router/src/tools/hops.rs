//! The faces of next hops, as the tools show them beside routes.

use std::collections::HashMap;

use serde_json::Value;
use tachonym_client::{CommandError, Controller};
use tachonym_packet::FaceId;
use tachonym_protocol::{FaceState, FaceStatus, FaceUri};

use super::programs::Programs;

/// The peer of a face that the router has for itself.
const THIS_ROUTER: &str = "this router";

/// Faces of the router by their number.
#[derive(Default)]
pub(super) struct Hops {
    faces: HashMap<u64, FaceStatus>,
    programs: Programs,
}

impl Hops {
    /// Asks the router for its faces.
    pub(super) fn ask(controller: &mut Controller<'_>) -> Result<Self, CommandError> {
        let faces = controller.faces()?;
        Self::of(controller, faces)
    }

    /// Asks the router for the programs behind `faces`.
    pub(super) fn of(
        controller: &mut Controller<'_>,
        faces: Vec<FaceStatus>,
    ) -> Result<Self, CommandError> {
        let programs = Programs::of(controller, &faces)?;
        Ok(Self {
            faces: faces.into_iter().map(|face| (face.face_id, face)).collect(),
            programs,
        })
    }

    /// `up`, `down`, `connecting`; `gone` if there is no such face any more, `-` if the
    /// router does not report states. The router's own faces are always up.
    pub(super) fn state(&self, face: u64) -> &'static str {
        match self.faces.get(&face) {
            None if is_own(face) => FaceState::Up.as_str(),
            None => "gone",
            Some(face) => face.state.map_or("-", FaceState::as_str),
        }
    }

    /// The face in words: its number, and its peer if that is known.
    pub(super) fn show(&self, face: u64) -> String {
        match self.faces.get(&face) {
            Some(status) => format!("face {face} ({})", self.programs.peer(status)),
            None if is_own(face) => format!("face {face} ({THIS_ROUTER})"),
            None => format!("face {face}"),
        }
    }

    /// The state that the router reports for a face, if it has the face and reports states.
    pub(super) fn reported_state(&self, face: u64) -> Option<FaceState> {
        self.faces.get(&face).and_then(|face| face.state)
    }

    /// Address or program of the peer.
    pub(super) fn peer(&self, face: u64) -> String {
        match self.faces.get(&face) {
            Some(status) => self.programs.peer(status),
            None if is_own(face) => THIS_ROUTER.into(),
            None => "-".into(),
        }
    }

    /// Adds state and remote FaceUri to the object of a next hop.
    pub(super) fn describe(&self, hop: &mut Value, face: u64) {
        let status = self.faces.get(&face);
        let uri = status.map(|face| face.uri.clone());
        hop["remote"] = uri.or_else(|| own_uri(face)).into();
        hop["program"] = self.programs.to_json(face);
        hop["state"] = match status {
            None => self.state(face).into(),
            Some(face) => face.state.map(FaceState::as_str).into(),
        };
    }
}

/// Whether the router has the face for itself. `faces/list` has of these only the null face.
fn is_own(face: u64) -> bool {
    FaceId(face) < FaceId::FIRST_DYNAMIC
}

/// The FaceUri of a face that the router has for itself and does not list.
fn own_uri(face: u64) -> Option<String> {
    match FaceId(face) {
        FaceId::INTERNAL => Some(FaceUri::Internal.to_string()),
        FaceId::CONTENT_STORE => Some(FaceUri::ContentStore.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_routers_own_faces_are_up_without_being_listed() {
        let hops = Hops::default();
        let internal = FaceId::INTERNAL.0;
        assert_eq!(hops.state(internal), "up");
        assert_eq!(hops.peer(internal), "this router");
        assert_eq!(hops.show(internal), "face 1 (this router)");
        let mut hop = json!({});
        hops.describe(&mut hop, internal);
        let expected = json!({ "remote": "internal://", "program": null, "state": "up" });
        assert_eq!(hop, expected);
        assert_eq!((hops.state(256), &*hops.peer(256)), ("gone", "-"));
        hops.describe(&mut hop, 256);
        let expected = json!({ "remote": null, "program": null, "state": "gone" });
        assert_eq!(hop, expected);
    }
}
