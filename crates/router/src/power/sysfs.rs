//! Files below `/sys`, or below a copy of it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Most that is read of a file; the kernel's have at most a page.
const MAX_FILE_BYTES: u64 = 1 << 16;

/// A folder of sysfs.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A folder in it, which need not exist.
    pub(crate) fn folder(&self, name: &str) -> Self {
        Self(self.0.join(name))
    }

    /// The folders in it whose names are `prefix` and a number, in the order of these.
    pub(crate) fn numbered(&self, prefix: &str) -> Vec<(u32, Self)> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let number = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
                Some((number, Self(entry.path())))
            })
            .collect();
        found.sort_by_key(|&(number, _)| number);
        found
    }

    /// The text of a file, without white space around it.
    pub(crate) fn text(&self, file: &str) -> io::Result<String> {
        let path = self.0.join(file);
        let read = || {
            let mut text = String::new();
            let file = File::open(&path)?;
            file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
            Ok(text.trim().to_owned())
        };
        let with_path = |it: io::Error| {
            io::Error::new(it.kind(), format!("cannot read {}: {it}", path.display()))
        };
        read().map_err(with_path)
    }

    /// The number in a file.
    pub(crate) fn number(&self, file: &str) -> io::Result<u64> {
        let text = self.text(file)?;
        let invalid = |_| {
            let what = format!("{} has {text:?}, not a number", self.0.join(file).display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        text.parse().map_err(invalid)
    }

    /// Writes into a file that exists: nothing is ever created in sysfs.
    pub(crate) fn write(&self, file: &str, text: &str) -> io::Result<()> {
        let path = self.0.join(file);
        let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
        file.write_all(text.as_bytes())
    }
}
