//! Where a configuration was read, so that errors at the start name file and line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Config;
use super::lines::Lines;

/// The file that a configuration was read from, if any.
///
/// All origins are equal: two files with the same keys are the same configuration.
#[derive(Clone, Debug, Default)]
pub struct Origin(Option<Arc<File>>);

#[derive(Debug)]
struct File {
    path: PathBuf,
    text: String,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Origin {
    /// The file at `path` with the content `text`.
    pub(super) fn new(path: &Path, text: String) -> Self {
        let path = path.to_owned();
        Self(Some(Arc::new(File { path, text })))
    }
}

/// A configured value that the machine refuses at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// The file, and the line if the file has the key.
    pub place: Option<(PathBuf, Option<usize>)>,
    /// The key as a dotted path, such as `faces.udp.listen[1]`.
    pub key: String,
    /// What failed and why.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((path, Some(line))) => write!(f, "{}:{line}: ", path.display())?,
            Some((path, None)) => write!(f, "{}: ", path.display())?,
            None => {}
        }
        write!(f, "{}: {}; {}", self.key, self.message, self.remedy)
    }
}

impl std::error::Error for StartError {}

impl Config {
    /// The error for `key`, with its place in the file.
    pub(crate) fn failure(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> StartError {
        let key = key.into();
        let place = self.origin.0.as_ref().map(|file| {
            let line = Lines::new(&file.text).line_of(&key);
            (file.path.clone(), line)
        });
        StartError {
            place,
            key,
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}
