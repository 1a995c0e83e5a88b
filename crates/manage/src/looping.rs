//! Faces that lead back to this router.
//!
//! Owns the test for them and the faces that it found, so that a route to one
//! can be answered with a warning. Only faces that a command or the
//! configuration made are tested: the other end of such a face is an on-demand
//! face of this router.

use tachonym_packet::FaceId;
use tachonym_protocol::{ChannelStatus, ControlResponse, FaceUri, status_code};
use tracing::warn;

use crate::control::ControlPlane;

/// The faces whose remote end is a listener of this router.
#[derive(Debug, Default)]
pub(crate) struct LoopingFaces {
    faces: Vec<FaceId>,
}

impl LoopingFaces {
    /// Tests the new face between `local` and `remote`, two FaceUris. Asks `control`
    /// for its listeners only if both ends have one address.
    pub(crate) fn note(
        &mut self,
        control: &mut impl ControlPlane,
        face: FaceId,
        remote: &str,
        local: &str,
    ) {
        let (Ok(remote_uri), Ok(local)) = (remote.parse(), FaceUri::parse_local(local)) else {
            return;
        };
        if self.faces.contains(&face) || !is_on_one_host(&remote_uri, &local) {
            return;
        }
        let channels = control.channels().unwrap_or_default();
        if channels.iter().any(|channel| serves(channel, &remote_uri)) {
            self.faces.push(face);
            warn!(
                "face {face} to {remote} leads back to this router: Interests sent to it are \
                 dropped as loops; remove it with `tachonym face destroy {face}`"
            );
        }
    }

    /// A face is gone.
    pub(crate) fn remove(&mut self, face: FaceId) {
        self.faces.retain(|&looping| looping != face);
    }

    /// Whether `face` leads back.
    pub(crate) fn contains(&self, face: FaceId) -> bool {
        self.faces.contains(&face)
    }

    /// `response` to a command about `face`; a success has a warning for its text if the
    /// face leads back.
    pub(crate) fn with_warning(&self, face: FaceId, response: ControlResponse) -> ControlResponse {
        if response.code != status_code::OK || !self.contains(face) {
            return response;
        }
        ControlResponse {
            text: format!(
                "OK, but face {face} leads back to this router, which drops the Interests that \
                 come back; use the address of the next router"
            ),
            ..response
        }
    }
}

/// Whether both ends of a face are on one host: a socket that is dialled to an own
/// address gets that address itself, unless another one is asked for.
fn is_on_one_host(remote: &FaceUri, local: &FaceUri) -> bool {
    match (remote.socket_addr(), local.socket_addr()) {
        (Some(remote), Some(local)) => remote.ip() == local.ip(),
        _ => matches!(remote, FaceUri::Unix(_)),
    }
}

/// Whether a connection to `remote`, an address of this host, reaches `channel`.
fn serves(channel: &ChannelStatus, remote: &FaceUri) -> bool {
    let Ok(channel) = channel.local_uri.parse::<FaceUri>() else {
        return false;
    };
    if channel == *remote {
        return true;
    }
    let (Some(at), Some(remote_addr)) = (channel.socket_addr(), remote.socket_addr()) else {
        return false;
    };
    channel.scheme() == remote.scheme()
        && at.port() == remote_addr.port()
        && at.is_ipv4() == remote_addr.is_ipv4()
        && at.ip().is_unspecified()
}
