//! Where the router is.
//!
//! Owns the search: the environment, the client configuration that NDN programs
//! share, and the sockets on which forwarders usually listen. Also looks up host
//! names in FaceUris, which nothing below does.

use std::fs::Metadata;
use std::net::ToSocketAddrs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tachonym_protocol::{FaceUri, FaceUriError};

/// Environment variable that names the router, as a FaceUri.
pub const ENVIRONMENT: &str = "NDN_CLIENT_TRANSPORT";

/// File name of the router's Unix socket.
pub const SOCKET_NAME: &str = "nfd.sock";

/// Folder in which every NDN program looks for that socket.
const USUAL_FOLDER: &str = "/run/nfd";

/// Why no address of a router was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// A text is no FaceUri.
    #[error("{origin}: {text:?} is not an address: {reason}")]
    BadUri {
        /// Where the text stands.
        origin: String,
        /// The text.
        text: String,
        /// Why not.
        reason: FaceUriError,
    },
    /// A host name has no address.
    #[error("cannot look up the host {host}: {reason}; check the name, or use an address")]
    Unresolvable {
        /// The host.
        host: String,
        /// Why not.
        reason: String,
    },
    /// No socket of a router was found.
    #[error(
        "no router found: none of the sockets {} exists; start a router with `tachonym run`, or \
         name one with --transport or {ENVIRONMENT}, as in {ENVIRONMENT}=unix:///run/nfd/nfd.sock",
        list(.0)
    )]
    NoRouter(Vec<PathBuf>),
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join(", ")
}

/// Folders in which a router's socket lies, the usual one first: that of other
/// forwarders, the user's own, and one in `/tmp`.
#[must_use]
pub fn socket_folders() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from(USUAL_FOLDER)];
    // What is not absolute does not count (XDG Base Directory Specification).
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    if let Some(own) = own.filter(|own| own.is_absolute()) {
        folders.push(own.join("nfd"));
    }
    let uid = rustix::process::getuid().as_raw();
    folders.push(PathBuf::from(format!("/tmp/tachonym-{uid}")));
    folders
}

/// Whether only this user can have put a socket into `folder`, if all users may create
/// folders beside it, as in `/tmp`.
#[must_use]
pub fn is_trusted(folder: &Path) -> bool {
    let everybody = |found: Metadata| found.mode() & 0o002 != 0;
    let beside = folder.parent().unwrap_or(folder);
    if !std::fs::metadata(beside).is_ok_and(everybody) {
        return true;
    }
    let own = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0)
}

/// The address of the router: what [`ENVIRONMENT`] says, else `transport` in
/// `client.conf`, else the first socket of [`socket_folders`] that exists.
///
/// # Errors
/// If the address that is named is no FaceUri, or none is named and no socket exists.
pub fn find() -> Result<FaceUri, TransportError> {
    match named() {
        Some((text, origin)) => parse(&text, &origin),
        None => find_socket().map(|path| FaceUri::Unix(path.to_string_lossy().into_owned())),
    }
}

/// Whether every NDN program of this user, in this environment, connects to `uri`:
/// [`ENVIRONMENT`] or `client.conf` names it, or neither names any and it is the socket
/// `/run/nfd/nfd.sock`. The other folders of [`socket_folders`] do not count, because only
/// [`find`] looks there. Looks up no host.
#[must_use]
pub fn is_usual(uri: &FaceUri) -> bool {
    let usual = Path::new(USUAL_FOLDER).join(SOCKET_NAME);
    match named() {
        Some((text, _)) => text.trim().parse().as_ref() == Ok(uri),
        None => matches!(uri, FaceUri::Unix(path) if Path::new(path) == usual),
    }
}

/// The FaceUri of the environment or of `client.conf`, and where it is written.
fn named() -> Option<(String, String)> {
    if let Ok(text) = std::env::var(ENVIRONMENT) {
        return Some((text, ENVIRONMENT.to_owned()));
    }
    configuration_files().into_iter().find_map(|file| {
        let text = std::fs::read_to_string(&file).ok()?;
        Some((configured(&text)?.to_owned(), file.display().to_string()))
    })
}

/// The first socket of [`socket_folders`] that exists.
fn find_socket() -> Result<PathBuf, TransportError> {
    let mut sockets: Vec<PathBuf> = socket_folders();
    for folder in &mut sockets {
        folder.push(SOCKET_NAME);
    }
    let is_there = |path: &&PathBuf| path.exists() && path.parent().is_some_and(is_trusted);
    match sockets.iter().find(is_there).cloned() {
        Some(path) => Ok(path),
        None => Err(TransportError::NoRouter(sockets)),
    }
}

/// Reads `text`, a FaceUri that `origin` has given, and looks up the host in it.
///
/// # Errors
/// If it is no FaceUri, or the host has no address.
pub fn parse(text: &str, origin: &str) -> Result<FaceUri, TransportError> {
    match text.trim().parse() {
        Ok(uri) => resolve(uri),
        Err(reason) => Err(TransportError::BadUri {
            origin: origin.to_owned(),
            text: text.to_owned(),
            reason,
        }),
    }
}

/// `uri` with an address in the place of a host name.
///
/// # Errors
/// If the host has no address.
pub fn resolve(uri: FaceUri) -> Result<FaceUri, TransportError> {
    let host = match uri {
        FaceUri::Unresolved(host) => host,
        canonical => return Ok(canonical),
    };
    let unresolvable = |reason: String| TransportError::Unresolvable {
        host: host.host.clone(),
        reason,
    };
    let addresses = (host.host.as_str(), 0)
        .to_socket_addrs()
        .map_err(|error| unresolvable(error.to_string()))?;
    let mut last = unresolvable("it has no address".into());
    for address in addresses {
        let scope_id = match address {
            std::net::SocketAddr::V6(v6) => v6.scope_id(),
            std::net::SocketAddr::V4(_) => 0,
        };
        match FaceUri::resolve(&host, address.ip(), scope_id) {
            Ok(uri) => return Ok(uri),
            Err(reason) => last = unresolvable(reason.to_string()),
        }
    }
    Err(last)
}

/// Where NDN programs look for `client.conf`, in their order.
fn configuration_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Some(home) = std::env::var_os("HOME") {
        files.push(Path::new(&home).join(".ndn/client.conf"));
    }
    files.push("/usr/local/etc/ndn/client.conf".into());
    files.push("/etc/ndn/client.conf".into());
    files
}

/// The value of `transport` in the text of a `client.conf`; `None` if it has none.
#[must_use]
pub fn configured(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.split(';').next().unwrap_or(value).trim();
        (key.trim() == "transport" && !value.is_empty()).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_folder_of_everybody_only_an_own_closed_folder_is_trusted() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let everybody = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let folder = everybody.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        mode(&folder, 0o775);
        assert!(is_trusted(&folder), "only this user can write beside it");

        mode(everybody.path(), 0o1777);
        assert!(!is_trusted(&folder), "its group may write");
        mode(&folder, 0o755);
        assert!(is_trusted(&folder));
        let link = everybody.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(!is_trusted(&link));
        assert!(!is_trusted(&everybody.path().join("absent")));
    }

    #[test]
    fn the_transport_line_of_a_client_configuration_is_found() {
        let text = "; a comment\npib=pib-sqlite3\n;transport=tcp4://1.2.3.4\n \
                    transport = unix:///x/nfd.sock ; here\n";
        assert_eq!(configured(text), Some("unix:///x/nfd.sock"));
        assert_eq!(configured("transport=\n"), None);
        assert_eq!(configured("transports=a"), None);
    }

    #[test]
    fn host_names_are_looked_up_in_the_family_that_the_scheme_asks_for() {
        let uri = parse("tcp4://localhost:7000", "test").expect("localhost is known");
        assert_eq!(uri.to_string(), "tcp4://127.0.0.1:7000");
        let canonical = parse("udp4://192.0.2.1:6363", "test").expect("canonical");
        assert_eq!(canonical.to_string(), "udp4://192.0.2.1:6363");
    }

    #[test]
    fn a_bad_address_is_named_with_its_origin() {
        let error = parse("nonsense", "--transport").expect_err("not a URI");
        assert!(error.to_string().starts_with("--transport: \"nonsense\""));
    }
}
