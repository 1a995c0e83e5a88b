//! Where `get` writes: a file that appears when it is complete, or another kind of path.
//!
//! Owns the partial file beside its final place, and removes it when the fetch fails or a
//! signal ends the program. Only a regular file is ever replaced; a pipe, a device or a link
//! is written to.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Names that are tried for a partial file before giving up.
const MAX_NAMES: usize = 16;

/// An open output.
pub(super) enum Target {
    /// A file beside the place of a regular one.
    Partial(Partial, File),
    /// Not a regular file; written to directly.
    Other(File),
}

impl Target {
    /// Opens the output for `path`.
    ///
    /// # Errors
    /// If it cannot be.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let permissions = match fs::symlink_metadata(path) {
            Ok(old) if old.is_file() => Some(old.permissions()),
            Ok(_) => return open_other(path).map(Self::Other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (partial, file) = Partial::create(path, permissions)?;
        Ok(Self::Partial(partial, file))
    }
}

/// A file that is not complete yet. Removed when it is dropped, or a signal ends the
/// program, before it is complete.
pub(super) struct Partial {
    /// Its path; `None` once it is renamed or removed.
    place: Arc<Mutex<Option<PathBuf>>>,
    destination: PathBuf,
}

impl Partial {
    fn create(destination: &Path, permissions: Option<Permissions>) -> io::Result<(Self, File)> {
        let place = Arc::new(Mutex::new(None));
        remove_on_signals(&place)?;
        let partial = Self {
            place: Arc::clone(&place),
            destination: destination.to_owned(),
        };
        // Held while the file comes into being: a signal waits for it.
        let mut place = lock(&place);
        let (path, file) = create_beside(destination)?;
        *place = Some(path);
        drop(place);
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        Ok((partial, file))
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// If that fails; the partial file is removed.
    pub(super) fn complete(self) -> io::Result<()> {
        let mut place = lock(&self.place);
        if let Some(path) = place.as_deref() {
            fs::rename(path, &self.destination)?;
        }
        *place = None;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        remove(&mut lock(&self.place));
    }
}

fn lock(place: &Mutex<Option<PathBuf>>) -> std::sync::MutexGuard<'_, Option<PathBuf>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(place: &mut Option<PathBuf>) {
    if let Some(path) = place.take() {
        // The cause that ends the program is reported, not this.
        let _ = fs::remove_file(path);
    }
}

/// Opens a path that is not a regular file; a link is followed.
fn open_other(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).truncate(true);
    match options.open(path) {
        // The target of a link may not exist yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => options.create(true).open(path),
        opened => opened,
    }
}

/// A new file in the folder of `destination`.
fn create_beside(destination: &Path) -> io::Result<(PathBuf, File)> {
    let mut last = io::ErrorKind::AlreadyExists.into();
    for _ in 0..MAX_NAMES {
        let name = format!(".tachonym-{:08x}.part", getrandom::u32()?);
        let path = destination.with_file_name(name);
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Removes the partial file when a signal ends the program. A thread waits for the signal,
/// since the fetch may block.
fn remove_on_signals(place: &Arc<Mutex<Option<PathBuf>>>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let place = Arc::clone(place);
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            // Held to the end: nothing is put in its place any more.
            let mut place = lock(&place);
            remove(&mut place);
            // The default action ends the program.
            let _ = emulate_default_handler(signal);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(wait)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn partial(path: &Path) -> (Partial, File) {
        match Target::open(path).expect("it can be made") {
            Target::Partial(partial, file) => (partial, file),
            Target::Other(_) => panic!("{} is a regular file", path.display()),
        }
    }

    fn n_files(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn the_old_file_stays_until_the_new_one_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "old").expect("a file");
        let (given_up, mut file) = partial(&path);
        file.write_all(b"half").expect("room");
        // Two at once do not get into each other's way.
        let (completed, mut file) = partial(&path);
        file.write_all(b"new").expect("room");
        assert_eq!(fs::read(&path).expect("a file"), b"old");
        assert_eq!(n_files(folder.path()), 3);
        drop(given_up);
        assert_eq!(fs::read(&path).expect("a file"), b"old");
        completed.complete().expect("the same folder");
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        assert_eq!(n_files(folder.path()), 1);
    }

    #[test]
    fn a_new_file_may_be_read_by_those_who_could_read_the_old_one() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "old").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("own file");
        let (completed, _) = partial(&path);
        completed.complete().expect("the same folder");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
}
