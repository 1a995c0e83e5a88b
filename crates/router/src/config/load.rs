//! Reading the file: from text to a checked [`Config`], or to complaints that
//! name file, line and remedy.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use super::lines::Lines;
use super::wording::{bracket_complaints, syntax_complaint};
use super::{Config, Origin, check};

/// One thing that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Line in the file, counted from 1.
    pub line: usize,
    /// The key at fault as a dotted path, such as `faces.udp.listen[1]`; empty
    /// where the file is no TOML at all.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// A configuration that cannot be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file was read and is wrong.
    Invalid {
        /// The file.
        path: PathBuf,
        /// Everything found wrong, in the order of the file.
        complaints: Vec<Complaint>,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, source } => write!(
                f,
                "{}: cannot be read: {source}; check the path and its permissions",
                path.display()
            ),
            Self::Invalid { path, complaints } => {
                for (i, c) in complaints.iter().enumerate() {
                    if i > 0 {
                        writeln!(f)?;
                    }
                    write!(f, "{}:{}: ", path.display(), c.line)?;
                    if !c.key.is_empty() {
                        write!(f, "{}: ", c.key)?;
                    }
                    write!(f, "{}; {}", c.message, c.remedy)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads and checks the file at `path`; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be read, is no TOML, has an unknown key, a value of the
    /// wrong type or range, or values that contradict each other.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let bytes = read(path).map_err(|source| ConfigError::Unreadable {
            path: path.into(),
            source,
        })?;
        let invalid = |complaints| ConfigError::Invalid {
            path: path.into(),
            complaints,
        };
        let text = String::from_utf8(bytes).map_err(|e| invalid(vec![no_utf8(&e)]))?;
        let mut config = Self::parse(&text).map_err(invalid)?;
        config.origin = Origin::new(path, text);
        Ok(config)
    }

    /// Reads and checks `text`.
    ///
    /// # Errors
    /// Every complaint that can be told at once.
    pub fn parse(text: &str) -> Result<Self, Vec<Complaint>> {
        let lines = Lines::new(text);
        let brackets = bracket_complaints(&lines);
        if !brackets.is_empty() {
            return Err(brackets);
        }
        let config: Self =
            toml::from_str(text).map_err(|e| vec![syntax_complaint(text, &lines, &e)])?;
        let faults = check::faults(&config);
        if faults.is_empty() {
            return Ok(config);
        }
        let mut complaints: Vec<_> = faults
            .into_iter()
            .map(|fault| Complaint {
                line: lines.line_of(&fault.key).unwrap_or(1),
                key: fault.key,
                message: fault.message,
                remedy: fault.remedy,
            })
            .collect();
        complaints.sort_by_key(|c| c.line);
        Err(complaints)
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if path.as_os_str() != "-" {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn no_utf8(error: &FromUtf8Error) -> Complaint {
    let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    Complaint {
        line: good.iter().filter(|&&byte| byte == b'\n').count() + 1,
        key: String::new(),
        message: "a byte that is not UTF-8".into(),
        remedy: "save the file as UTF-8".into(),
    }
}
