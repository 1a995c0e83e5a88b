//! What this machine says about the configuration: a look at its files and
//! network interfaces, which changes nothing. Whatever it can tell before the
//! start need not fail then.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Longest path of a Unix socket, in bytes: `sun_path` less its final zero.
const MAX_SOCKET_PATH_BYTES: usize = 107;
/// Longest name of a network interface, in bytes: `IFNAMSIZ` less the final
/// zero.
const MAX_INTERFACE_BYTES: usize = 15;

/// Why no socket can be made at `path`, and what to do about it. A folder that
/// is missing is no reason if it can be made.
pub(super) fn socket_path_fault(path: &Path) -> Option<(String, &'static str)> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > MAX_SOCKET_PATH_BYTES {
        let message = format!("a Unix socket's path has at most {MAX_SOCKET_PATH_BYTES} bytes");
        return Some((message, "choose a shorter path"));
    }
    if bytes.contains(&0) {
        return Some(("a path has no zero byte".into(), "remove it"));
    }
    let shown = path.display();
    if bytes.ends_with(b"/") || std::fs::metadata(path).is_ok_and(|found| found.is_dir()) {
        let message = format!("{shown} is a folder");
        return Some((message, "name a file in it, like nfd.sock"));
    }
    let is_socket = |found: Metadata| found.file_type().is_socket();
    if std::fs::symlink_metadata(path).is_ok_and(|found| !is_socket(found)) {
        let message = format!("{shown} exists and is no socket");
        return Some((message, "remove it, or choose another path"));
    }
    folder_fault(path.parent()?)
}

/// Why `folder` is not there and cannot be made.
fn folder_fault(folder: &Path) -> Option<(String, &'static str)> {
    for (n_missing, place) in folder.ancestors().enumerate() {
        let place = match place.as_os_str().is_empty() {
            true => Path::new("."),
            false => place,
        };
        let shown = place.display();
        return match std::fs::metadata(place) {
            Ok(found) if !found.is_dir() => Some((
                format!("{shown} is no folder"),
                "choose a path in a folder that exists or can be made",
            )),
            Ok(_) if n_missing > 0 && !is_writable(place) => Some((
                format!(
                    "{} does not exist and cannot be made in {shown}",
                    folder.display()
                ),
                "make the folder and give it to the user who runs the router, or choose another path",
            )),
            Ok(_) => None,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => Some((
                format!("{shown} cannot be looked at: {error}"),
                "let the user who runs the router into the folder, or choose another path",
            )),
        };
    }
    None
}

/// Why a volume of the second level cannot be there, as far as this user may look.
pub(super) fn volume_fault(path: &Path) -> Option<(String, &'static str)> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() || found.file_type().is_block_device() => None,
        Ok(_) => Some((
            format!("{shown} is neither a directory nor a block device"),
            "name a directory, or a block device (lsblk lists them)",
        )),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Some((
                format!("{shown} is not there"),
                "make the directory (mkdir -p), connect the disk, or correct the path",
            ))
        }
        // The router may be run by a user who may look.
        Err(_) => None,
    }
}

fn is_writable(folder: &Path) -> bool {
    let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(folder, wanted).is_ok()
}

/// Whether this is a network interface, as far as the kernel tells. It is asked
/// as the router will ask: `/sys` may be that of another network namespace.
pub(super) fn has_interface(name: &str) -> bool {
    let domain = rustix::net::AddressFamily::UNIX;
    let kind = rustix::net::SocketType::DGRAM;
    let Ok(socket) = rustix::net::socket(domain, kind, None) else {
        return true;
    };
    (1..=MAX_INTERFACE_BYTES).contains(&name.len())
        && rustix::net::netdevice::name_to_index(&socket, name).is_ok()
}
