//! Reads the file: from text to a checked [`Config`], or to complaints with file,
//! line and remedy.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use serde::Deserialize as _;
use toml::de::Deserializer;

use super::complaint::Complaint;
use super::document::Review;
use super::lines::Lines;
use super::shape::Table;
use super::wording::syntax_complaint;
use super::{Config, Origin, check};

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
                "cannot read {}: {source}; check the path and its permissions",
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
                match complaints.len() {
                    1 => Ok(()),
                    n => write!(f, "\n{}: {n} errors", path.display()),
                }
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads and checks the file at `path`; `-` is standard input.
    ///
    /// # Errors
    /// If the file cannot be read, is not valid TOML, has an unknown key, a value of the
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
    /// Everything that is wrong with it, in the order of its lines; only the syntax errors
    /// if it is not valid TOML.
    pub fn parse(text: &str) -> Result<Self, Vec<Complaint>> {
        let lines = Lines::new(text);
        let document = lines.document().map_err(|errors| {
            let errors = errors.iter();
            let complaints = errors.map(|error| syntax_complaint(text, &lines, error));
            let mut complaints = in_order(complaints.collect());
            // One slip in a line often leads the reader to several errors.
            complaints.dedup_by_key(|c| c.line);
            complaints
        })?;
        let root = Table::root();
        let review = Review::new(document, &root, &lines);
        let is_well_shaped = review.complaints.is_empty();
        let pruned = (!is_well_shaped).then(|| review.prune(document));
        let mut complaints = review.complaints;
        let document = pruned.as_ref().map_or(document, |pruned| &pruned.document);
        let config = match Self::deserialize(Deserializer::from(document.clone())) {
            Ok(config) => config,
            // What the schema does not show.
            Err(error) => {
                complaints.push(syntax_complaint(text, &lines, &error));
                return Err(in_order(complaints));
            }
        };
        let faults = check::faults(&config).into_iter();
        // Without the values that are left out, nothing certain can be said of how
        // values go together.
        let certain = faults.filter(|fault| is_well_shaped || !fault.is_conflict);
        complaints.extend(certain.map(|fault| {
            let key = match &pruned {
                Some(pruned) => pruned.path_in_file(&fault.key),
                None => fault.key,
            };
            Complaint {
                line: lines.line_of(&key).unwrap_or(1),
                key,
                message: fault.message,
                remedy: fault.remedy,
            }
        }));
        match complaints.is_empty() {
            true => Ok(config),
            false => Err(in_order(complaints)),
        }
    }
}

fn in_order(mut complaints: Vec<Complaint>) -> Vec<Complaint> {
    complaints.sort_by_key(|c| c.line);
    complaints
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
        message: "this line has a byte that is not UTF-8".into(),
        remedy: "save the file as UTF-8".into(),
    }
}
