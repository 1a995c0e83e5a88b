//! Reading the file: from text to a checked [`Config`], or to complaints that
//! name file, line and remedy.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use super::lines::Lines;
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

fn syntax_complaint(text: &str, lines: &Lines<'_>, error: &toml::de::Error) -> Complaint {
    let span = error.span().unwrap_or(0..0);
    let message = error.message().replace('\n', " ");
    let remedy = remedy_for(&message, text.get(span.clone()).unwrap_or_default());
    Complaint {
        line: lines.line_at(&span),
        key: String::new(),
        message,
        remedy,
    }
}

/// Guesses the remedy from what the TOML reader says.
fn remedy_for(message: &str, at: &str) -> String {
    if let Some(expected) = message.strip_prefix("unknown field ") {
        let known: Vec<&str> = expected.split('`').skip(3).step_by(2).collect();
        let nearest = known
            .iter()
            .min_by_key(|k| strsim::damerau_levenshtein(k, at.trim()));
        return match nearest {
            Some(k) if strsim::damerau_levenshtein(k, at.trim()) <= 3 => {
                format!("did you mean `{k}`?")
            }
            _ => "remove it, or look the key up in the configuration reference".into(),
        };
    }
    if message.contains("duplicate key") {
        return "keep one of them".into();
    }
    if message.starts_with("invalid type")
        || message.starts_with("invalid value")
        || message.starts_with("unknown variant")
    {
        return "write a value of the expected kind".into();
    }
    if message.starts_with("missing field") {
        return "add the key".into();
    }
    "correct the TOML here".into()
}
