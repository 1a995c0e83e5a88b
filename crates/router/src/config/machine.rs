//! Checks of the configuration against this machine: its files and network
//! interfaces. They change nothing. What they find does not fail at the start.

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

/// Why no socket can be created at `path`, and what to do about it. A missing
/// folder is no fault if it can be created.
pub(super) fn socket_path_fault(path: &Path) -> Option<(String, &'static str)> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > MAX_SOCKET_PATH_BYTES {
        let message =
            format!("the path of a Unix socket has at most {MAX_SOCKET_PATH_BYTES} bytes");
        return Some((message, "write a shorter path"));
    }
    if bytes.contains(&0) {
        return Some(("the path has a zero byte".into(), "remove it"));
    }
    let shown = path.display();
    if bytes.ends_with(b"/") || std::fs::metadata(path).is_ok_and(|found| found.is_dir()) {
        let message = format!("{shown} is a folder");
        return Some((message, "write the path of a file in it, such as nfd.sock"));
    }
    let is_socket = |found: Metadata| found.file_type().is_socket();
    if std::fs::symlink_metadata(path).is_ok_and(|found| !is_socket(found)) {
        let message = format!("{shown} exists and is not a socket");
        return Some((message, "remove it, or write another path"));
    }
    folder_fault(path.parent()?)
}

/// Why `folder` does not exist and cannot be created.
fn folder_fault(folder: &Path) -> Option<(String, &'static str)> {
    for (n_missing, place) in folder.ancestors().enumerate() {
        let place = match place.as_os_str().is_empty() {
            true => Path::new("."),
            false => place,
        };
        let shown = place.display();
        return match std::fs::metadata(place) {
            Ok(found) if !found.is_dir() => Some((
                format!("{shown} is not a folder"),
                "write a path in a folder that exists or can be created",
            )),
            Ok(_) if n_missing > 0 && !is_writable(place) => Some((
                format!(
                    "{} does not exist and cannot be created in {shown}",
                    folder.display()
                ),
                "create the folder for the router's user, or write another path",
            )),
            Ok(_) => None,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => Some((
                format!("cannot open {shown}: {error}"),
                "let the router's user enter the folder, or write another path",
            )),
        };
    }
    None
}

/// Why `path` cannot be a volume of the SSD level, as far as this user may see.
pub(super) fn volume_fault(path: &Path) -> Option<(String, &'static str)> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() || found.file_type().is_block_device() => None,
        Ok(_) => Some((
            format!("{shown} is neither a directory nor a block device"),
            "write the path of a directory, or of a block device (lsblk lists them)",
        )),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Some((
                format!("{shown} does not exist"),
                "create the directory (mkdir -p), connect the disk, or correct the path",
            ))
        }
        // The router may run as a user who may see it.
        Err(_) => None,
    }
}

fn is_writable(folder: &Path) -> bool {
    let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(folder, wanted).is_ok()
}

/// Whether `name` is a network interface. The kernel is asked by the call that the
/// router uses, because `/sys` may belong to another network namespace.
pub(super) fn has_interface(name: &str) -> bool {
    let domain = rustix::net::AddressFamily::UNIX;
    let kind = rustix::net::SocketType::DGRAM;
    let Ok(socket) = rustix::net::socket(domain, kind, None) else {
        return true;
    };
    (1..=MAX_INTERFACE_BYTES).contains(&name.len())
        && rustix::net::netdevice::name_to_index(&socket, name).is_ok()
}
