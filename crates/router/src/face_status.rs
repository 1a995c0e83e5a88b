//! Faces as management lists them, and the programs behind local ones.

use tachonym_face::FaceInfo;
use tachonym_packet::FaceId;
use tachonym_protocol::{FaceProgram, FaceStatus};

use crate::plane::Plane;
use crate::printable::is_unprintable;

/// The status of a face, if this thread has it.
pub(crate) fn status(plane: &Plane, id: FaceId) -> Option<FaceStatus> {
    plane.faces.info(id).map(|info| face_status(&info))
}

/// An entry of `faces/list`.
pub(crate) fn face_status(info: &FaceInfo) -> FaceStatus {
    let interval_ns = info.link.base_congestion_marking_interval.as_nanos();
    let expires_ms = info.expires_in.map(|left| left.as_millis());
    let counters = &info.counters;
    FaceStatus {
        face_id: info.id.0,
        uri: info.remote.to_string(),
        local_uri: info.local.to_string(),
        expiration_period_ms: expires_ms.and_then(|ms| u64::try_from(ms).ok()),
        face_scope: info.scope,
        face_persistency: info.persistency,
        link_type: info.link_type,
        base_congestion_marking_interval_ns: u64::try_from(interval_ns).ok(),
        default_congestion_threshold_bytes: Some(info.link.default_congestion_threshold_bytes),
        mtu_bytes: info.mtu_bytes,
        n_in_interests: counters.n_in_interests,
        n_in_data: counters.n_in_data,
        n_in_nacks: counters.n_in_nacks,
        n_out_interests: counters.n_out_interests,
        n_out_data: counters.n_out_data,
        n_out_nacks: counters.n_out_nacks,
        n_in_bytes: counters.n_in_bytes,
        n_out_bytes: counters.n_out_bytes,
        flags: info.flags(),
        state: Some(info.state),
    }
}

/// The program that connected to the router's Unix socket by this face, if it did. Reads its
/// name from `/proc`, so it is called where no packet waits.
pub(crate) fn program(info: &FaceInfo) -> Option<FaceProgram> {
    let pid = info.peer_pid?;
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok();
    Some(FaceProgram {
        face_id: info.id.0,
        pid: u64::from(pid),
        name: name.map(|name| printable(&name)),
    })
}

/// A program chooses its name itself: what is not printable becomes a question mark.
fn printable(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let name = name.trim_end_matches('\n');
    let is_shown = |c: char| !is_unprintable(c) && c != char::REPLACEMENT_CHARACTER;
    name.chars()
        .map(|c| if is_shown(c) { c } else { '?' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_cannot_command_a_terminal() {
        assert_eq!(printable(b"python3\n"), "python3");
        assert_eq!(printable(b"\x1b[2Jx\r\ny\n"), "?[2Jx??y");
        assert_eq!(printable(b"\xff\x9b1m\n"), "??1m");
        assert_eq!(printable("\u{9b}1m".as_bytes()), "?1m");
        assert_eq!(printable("a\u{202e}b\u{2066}".as_bytes()), "a?b?");
        assert_eq!(printable(b""), "");
    }
}
