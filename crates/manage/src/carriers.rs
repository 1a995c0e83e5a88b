//! Which faces may carry commands under `/localhost/nfd`.
//!
//! Owns the transports that may, and each face's transport, known by its events.
//! The event of a face precedes its commands, so a face without one carries none.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use tachonym_packet::FaceId;
use tachonym_protocol::{FaceEventKind, FaceEventNotification};

/// Most faces that are remembered after they are gone: commands that crossed from
/// another thread may come after the end of their face.
const MAX_GONE: usize = 1024;

/// A transport of local faces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandTransport {
    /// Unix sockets.
    Unix,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// WebSocket.
    WebSocket,
}

impl CommandTransport {
    /// The transport of a face by its two FaceUris; `None`: another one.
    fn of(remote: &str, local: &str) -> Option<Self> {
        [remote, local].into_iter().find_map(|uri| {
            Some(match uri.split("://").next()? {
                "unix" => Self::Unix,
                "tcp4" | "tcp6" => Self::Tcp,
                "udp4" | "udp6" => Self::Udp,
                "ws" | "wsclient" => Self::WebSocket,
                _ => return None,
            })
        })
    }
}

impl fmt::Display for CommandTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unix => "unix",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::WebSocket => "websocket",
        })
    }
}

/// The faces that may carry commands.
#[derive(Debug)]
pub(crate) struct Carriers {
    /// Transports that may; `None`: all.
    allowed: Option<Vec<CommandTransport>>,
    faces: HashMap<FaceId, Option<CommandTransport>>,
    /// Of `faces` those that are gone, the oldest first.
    gone: VecDeque<FaceId>,
}

impl Carriers {
    pub(crate) fn new(allowed: Option<Vec<CommandTransport>>) -> Self {
        Self {
            allowed,
            faces: HashMap::new(),
            gone: VecDeque::new(),
        }
    }

    /// Takes note of a face that came or went.
    pub(crate) fn note(&mut self, event: &FaceEventNotification) {
        if self.allowed.is_none() {
            return;
        }
        let face = FaceId(event.face_id);
        match event.kind {
            FaceEventKind::Created => {
                let transport = CommandTransport::of(&event.uri, &event.local_uri);
                self.faces.insert(face, transport);
            }
            FaceEventKind::Destroyed => {
                self.gone.push_back(face);
                if self.gone.len() > MAX_GONE
                    && let Some(oldest) = self.gone.pop_front()
                {
                    self.faces.remove(&oldest);
                }
            }
            FaceEventKind::Up | FaceEventKind::Down => {}
        }
    }

    /// Why `face` may carry no commands; `None`: it may. The internal face always may.
    pub(crate) fn refusal(&self, face: FaceId) -> Option<String> {
        let allowed = self.allowed.as_ref()?;
        if face == FaceId::INTERNAL {
            return None;
        }
        let transport = self.faces.get(&face).copied().flatten();
        if transport.is_some_and(|transport| allowed.contains(&transport)) {
            return None;
        }
        let by = transport.map_or_else(|| "this face".to_owned(), |by| by.to_string());
        let others: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        let others = match others.is_empty() {
            true => "no transport".to_owned(),
            false => others.join(" and "),
        };
        Some(format!(
            "commands are not accepted over {by}: management.transports lists {others}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use tachonym_protocol::{FacePersistency, FaceScope, LinkType};

    use super::*;

    fn event(kind: FaceEventKind, id: u64, uri: &str, local_uri: &str) -> FaceEventNotification {
        FaceEventNotification {
            kind,
            face_id: id,
            uri: uri.into(),
            local_uri: local_uri.into(),
            face_scope: FaceScope::Local,
            face_persistency: FacePersistency::OnDemand,
            link_type: LinkType::PointToPoint,
            flags: 0,
        }
    }

    #[test]
    fn faces_carry_commands_by_their_transport_until_long_after_their_end() {
        use CommandTransport::{Tcp, Udp, Unix, WebSocket};
        let faces = [
            (Unix, "fd://20", "unix:///run/nfd.sock"),
            (Unix, "unix:///run/other.sock", "fd://21"),
            (Tcp, "tcp4://127.0.0.1:4", "tcp4://127.0.0.1:6363"),
            (Tcp, "tcp6://[::1]:4", "tcp6://[::1]:6363"),
            (Udp, "udp4://127.0.0.1:4", "udp4://127.0.0.1:6363"),
            (WebSocket, "wsclient://127.0.0.1:4", "ws://127.0.0.1:9696"),
            (WebSocket, "ws://127.0.0.1:9696", "wsclient://127.0.0.1:4"),
        ];
        for allowed in [vec![], vec![Unix], vec![Tcp, WebSocket], vec![Udp]] {
            let mut carriers = Carriers::new(Some(allowed.clone()));
            assert!(carriers.refusal(FaceId(256)).is_some(), "no event yet");
            assert_eq!(carriers.refusal(FaceId::INTERNAL), None);
            for (id, (transport, uri, local_uri)) in (256..).zip(faces) {
                for kind in [FaceEventKind::Created, FaceEventKind::Destroyed] {
                    carriers.note(&event(kind, id, uri, local_uri));
                    let refusal = carriers.refusal(FaceId(id));
                    assert_eq!(refusal.is_none(), allowed.contains(&transport), "{uri}");
                }
            }
            for id in 1000..1000 + MAX_GONE as u64 {
                for kind in [FaceEventKind::Created, FaceEventKind::Destroyed] {
                    carriers.note(&event(kind, id, "fd://20", "unix:///s"));
                }
            }
            assert!(carriers.refusal(FaceId(256)).is_some(), "it is forgotten");
            assert_eq!(carriers.faces.len(), MAX_GONE);
        }
        assert_eq!(Carriers::new(None).refusal(FaceId(256)), None);
    }
}
