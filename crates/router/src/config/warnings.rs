//! Warnings: a configuration that is correct but may not do what its author
//! expects.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{Config, Local, StartError, Transport};

/// A warning: file, line and key, what may be wrong, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning(StartError);

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Config {
    /// Warnings about this configuration. The router starts in spite of them.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        self.open_beside_the_socket()
            .map(Warning)
            .into_iter()
            .collect()
    }

    /// The Unix socket is closed to some users of this machine, but another transport
    /// carries commands of all of them.
    fn open_beside_the_socket(&self) -> Option<StartError> {
        let (unix, management) = (&self.faces.unix, &self.management);
        let needs_a_key =
            !management.authorize.is_empty() && !management.authorize.iter().any(|rule| rule.any);
        if !unix.enabled || needs_a_key {
            return None;
        }
        let mode = u32::from_str_radix(&unix.mode, 8).unwrap_or(0o666);
        let (key, closed) = if mode & 0o666 != 0o666 {
            ("faces.unix.mode", format!("has mode {}", unix.mode))
        } else {
            let folder = closed_folder(&unix.path)?;
            let closed = format!("is in {}, which other users cannot enter", folder.display());
            ("faces.unix.path", closed)
        };
        let faces = &self.faces;
        let others = [
            (Transport::Tcp, "tcp", faces.tcp.local, &faces.tcp.listen),
            (Transport::Udp, "udp", faces.udp.local, &faces.udp.listen),
            (
                Transport::Websocket,
                "websocket",
                faces.websocket.local,
                &faces.websocket.listen,
            ),
        ];
        let open = others.into_iter().filter(|(transport, _, local, listen)| {
            management.transports.contains(transport)
                && *local == Local::Loopback
                && listen.iter().any(|address| is_on_loopback(address))
        });
        let open: Vec<_> = open.map(|(_, name, ..)| name).collect();
        let first = *open.first()?;
        Some(self.failure(
            key,
            format!(
                "the Unix socket {closed}, but every user of this machine can send commands over {}",
                open.join(" and ")
            ),
            format!("write management.transports = [\"unix\"], or faces.{first}.local = \"never\""),
        ))
    }
}

/// The first folder on the way to `path` that only its owner or group may enter.
fn closed_folder(path: &Path) -> Option<&Path> {
    let mut folders: Vec<_> = path.ancestors().skip(1).collect();
    folders.reverse();
    folders.into_iter().find(|folder| {
        let known = std::fs::metadata(folder);
        known.is_ok_and(|folder| folder.permissions().mode() & 0o001 == 0)
    })
}

/// Whether a listener at `address` can be reached from a loopback address.
fn is_on_loopback(address: &str) -> bool {
    let address = address.parse::<SocketAddr>();
    address.is_ok_and(|address| address.ip().is_loopback() || address.ip().is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(text: &str) -> Option<String> {
        let warnings = Config::parse(text)
            .expect("a good configuration")
            .warnings();
        assert!(warnings.len() <= 1);
        warnings.first().map(ToString::to_string)
    }

    #[test]
    fn a_closed_socket_beside_an_open_port_gives_a_warning() {
        let mode = "faces.unix.mode = \"0660\"\n";
        let text = warning(mode).expect("a warning");
        for part in [
            "faces.unix.mode: ",
            "0660",
            "over tcp",
            "management.transports = [\"unix\"]",
            "faces.tcp.local = \"never\"",
        ] {
            assert!(text.contains(part), "{text}");
        }
        for remedy in [
            "management.transports = [\"unix\"]\n",
            "faces.tcp.local = \"never\"\n",
            "faces.tcp.listen = [\"192.0.2.1:6363\"]\n",
            "faces.unix.mode = \"0666\"\n",
        ] {
            let text = match remedy.starts_with("faces.unix") {
                true => remedy.to_owned(),
                false => format!("{mode}{remedy}"),
            };
            assert_eq!(warning(&text), None, "{remedy}");
        }
        let udp = "faces.tcp.listen = []\nfaces.udp.local = \"loopback\"\n\
                   management.transports = [\"unix\", \"udp\"]\n";
        let text = warning(&format!("{mode}{udp}")).expect("a warning");
        assert!(text.contains("over udp") && text.contains("faces.udp.local"));
    }

    #[test]
    fn a_socket_in_a_closed_folder_gives_a_warning() {
        let folder = tempfile::tempdir().expect("a folder");
        let set_mode = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path(), permissions).expect("its owner may");
        };
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let path = format!("faces.unix.path = \"{}\"\n", inner.join("s").display());
        set_mode(0o750);
        let text = warning(&path).expect("a warning");
        let shown = folder.path().display().to_string();
        assert!(
            text.contains("faces.unix.path: ") && text.contains(&shown),
            "{text}"
        );
        set_mode(0o755);
        assert_eq!(warning(&path), None);
    }
}
