//! Faces whose connection is under way, and the commands that wait for them.
//!
//! Owns the replies to `faces/create` that cannot be given yet: the command is
//! answered when it is known whether the other end can be reached, by the face
//! events that say so. There is at most one for a face, so they are as few as
//! the faces may be.

use tachonym_packet::{FaceId, Name, NameView};
use tachonym_protocol::{
    ControlParameters, ControlResponse, FaceEventKind, FaceEventNotification, status_code,
};

use crate::commands::ok;

/// A command that has opened a face and is not answered yet.
#[derive(Debug)]
struct Creation {
    face: FaceId,
    /// Name of the command Interest.
    reply_name: Name,
    /// The parameters in effect, if it succeeds.
    effective: ControlParameters,
}

/// The commands that wait for a face to connect.
#[derive(Debug, Default)]
pub(crate) struct ConnectingFaces {
    creations: Vec<Creation>,
}

impl ConnectingFaces {
    /// The command `reply_name` has opened `face`.
    pub(crate) fn insert(&mut self, face: FaceId, reply_name: Name, effective: ControlParameters) {
        self.creations.push(Creation {
            face,
            reply_name,
            effective,
        });
    }

    /// Whether the command of this name is being carried out.
    pub(crate) fn is_under_way(&self, name: NameView<'_>) -> bool {
        self.creations
            .iter()
            .any(|creation| creation.reply_name == name)
    }

    /// The answer that `event` brings, and to which command.
    pub(crate) fn handle_event(
        &mut self,
        event: &FaceEventNotification,
    ) -> Option<(Name, ControlResponse)> {
        if event.kind == FaceEventKind::Created {
            return None;
        }
        let face = FaceId(event.face_id);
        let idx = self.creations.iter().position(|it| it.face == face)?;
        let Creation {
            reply_name,
            mut effective,
            ..
        } = self.creations.swap_remove(idx);
        let response = match event.kind {
            FaceEventKind::Destroyed => {
                effective.face_id = None;
                ControlResponse::new(status_code::TIMEOUT, "could not connect")
                    .with_parameters(&effective)
            }
            // One that is down is permanent, and dials again by itself.
            _ => {
                effective.local_uri = Some(event.local_uri.clone());
                ok(&effective)
            }
        };
        Some((reply_name, response))
    }
}
