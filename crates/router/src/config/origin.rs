//! Where a configuration was read, so that what goes wrong at the start still
//! names file and line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Config;
use super::lines::Lines;

/// Where a configuration was read; nowhere for one that was made otherwise.
///
/// It is no part of what the configuration says: all are equal.
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
    /// The file at `path`, which reads `text`.
    pub(super) fn new(path: &Path, text: String) -> Self {
        let path = path.to_owned();
        Self(Some(Arc::new(File { path, text })))
    }
}

/// What the configuration asks for and the machine refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// The file, and the line in it if it has the key.
    pub place: Option<(PathBuf, Option<usize>)>,
    /// The key as a dotted path, such as `faces.udp.listen[1]`.
    pub key: String,
    /// What went wrong.
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
    /// What to say when `key` has led to `message`.
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
