//! Faces whose connection is under way, and the commands that wait for them.
//!
//! Owns the pending replies to `faces/create`: such a command is answered by the
//! face event that says whether the other end was reached. A face has at most one,
//! so the limit of faces bounds them too.

use tachonym_packet::{FaceId, Name, NameView};
use tachonym_protocol::{
    ControlParameters, ControlResponse, FaceEventKind, FaceEventNotification, status_code,
};

use crate::commands::ok;

/// An event of a face, with the cause that subscribers do not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaceReport {
    /// The event.
    pub event: FaceEventNotification,
    /// Why the face is down or gone, such as "connection refused".
    pub cause: Option<String>,
}

impl From<FaceEventNotification> for FaceReport {
    fn from(event: FaceEventNotification) -> Self {
        Self { event, cause: None }
    }
}

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

    /// The response that `event` allows, and the name of its command. `cause` is why the
    /// face is down or gone, such as "connection refused".
    pub(crate) fn handle_event(
        &mut self,
        event: &FaceEventNotification,
        cause: Option<&str>,
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
                let text = format!(
                    "cannot connect to {}: {}; check the address, and that a forwarder listens \
                     there",
                    event.uri,
                    cause.unwrap_or("the face was closed")
                );
                ControlResponse::new(status_code::TIMEOUT, text).with_parameters(&effective)
            }
            FaceEventKind::Down => {
                effective.local_uri = Some(event.local_uri.clone());
                let text = format!(
                    "OK, but not connected yet: {}; a permanent face tries again by itself",
                    cause.unwrap_or("no answer")
                );
                ControlResponse::new(status_code::OK, text).with_parameters(&effective)
            }
            FaceEventKind::Created | FaceEventKind::Up => {
                effective.local_uri = Some(event.local_uri.clone());
                ok(&effective)
            }
        };
        Some((reply_name, response))
    }
}
