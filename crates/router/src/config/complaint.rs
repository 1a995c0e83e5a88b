//! One line of what `check-config` reports.

/// One thing that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Line in the file, counted from 1.
    pub line: usize,
    /// The wrong key as a dotted path, such as `faces.udp.listen[1]`; empty where the
    /// file is not valid TOML.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}
