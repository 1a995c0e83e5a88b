//! The faces of next hops, as the tools show them beside routes.

use std::collections::HashMap;

use serde_json::Value;
use tachonym_client::{CommandError, Controller};
use tachonym_packet::FaceId;
use tachonym_protocol::{FaceState, FaceStatus};

use super::programs::Programs;

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
    /// router does not report states.
    pub(super) fn state(&self, face: u64) -> &'static str {
        match self.faces.get(&face) {
            None => "gone",
            Some(face) => face.state.map_or("-", FaceState::as_str),
        }
    }

    /// The face in words: its number, and its peer if that is known.
    pub(super) fn show(&self, face: u64) -> String {
        match self.faces.get(&face) {
            Some(status) => format!("face {face} ({})", self.programs.peer(status)),
            None if FaceId(face) == FaceId::INTERNAL => format!("face {face} (this router)"),
            None => format!("face {face}"),
        }
    }

    /// The state that the router reports for a face, if it has the face and reports states.
    pub(super) fn reported_state(&self, face: u64) -> Option<FaceState> {
        self.faces.get(&face).and_then(|face| face.state)
    }

    /// Address or program of the peer.
    pub(super) fn peer(&self, face: u64) -> String {
        let face = self.faces.get(&face);
        face.map_or_else(|| "-".into(), |face| self.programs.peer(face))
    }

    /// Adds state and remote FaceUri to the object of a next hop.
    pub(super) fn describe(&self, hop: &mut Value, face: u64) {
        let status = self.faces.get(&face);
        hop["remote"] = status.map(|face| face.uri.clone()).into();
        hop["program"] = self.programs.to_json(face);
        hop["state"] = match status {
            None => "gone".into(),
            Some(face) => face.state.map(FaceState::as_str).into(),
        };
    }
}
