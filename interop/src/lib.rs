//! Real NDN programs against the real router: what the tests here share.
//!
//! [`Router`] runs the binary as users do; [`Peer`] runs python-ndn, NDNts, jndn
//! or the project's own tools as consumer and producer. Every program is an
//! ordinary process and says what it did in one line of JSON. `cargo xtask
//! interop` installs the programs and says where they are by [`INSTALLED`] and
//! [`BINARIES`]; run the tests through it.
#![forbid(unsafe_code)]

pub mod chain;
mod peer;
mod router;

pub use peer::{Fetched, Peer, Serving, home};
pub use router::{Router, in_namespace};

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Environment variable: the folder in which the peers are installed.
pub const INSTALLED: &str = "TACHONYM_INTEROP";
/// Environment variable: the folder with the binaries `tachonym` and
/// `tachonym-lab`.
pub const BINARIES: &str = "TACHONYM_BINARIES";

fn folder(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable);
    folder
        .unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask interop`"))
        .into()
}

/// One of the project's binaries.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    folder(BINARIES).join(name)
}

/// Something that the test command has installed.
#[must_use]
pub fn installed(path: &str) -> PathBuf {
    folder(INSTALLED).join(path)
}

/// Runs a program to its end and returns what it printed.
///
/// # Panics
/// If it fails: the message holds both its output streams.
pub fn output_of(command: &mut Command) -> String {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{stdout}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    stdout
}

/// The last line that a program prints, as JSON.
///
/// # Panics
/// If it fails, or prints something else.
pub fn json_of(command: &mut Command) -> Value {
    let text = output_of(command);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{command:?}: {error}: {text}"))
}

/// A program that runs until it is dropped.
pub struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    shown: String,
}

impl Running {
    /// Starts it; its standard input stays open.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let shown = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        Self {
            child,
            stdout,
            shown,
        }
    }

    /// The next line that it prints.
    ///
    /// # Panics
    /// If it has ended.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let n_read = self.stdout.read_line(&mut line).expect("text");
        assert!(n_read > 0, "{} has ended", self.shown);
        line.trim_end().to_owned()
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whether it is gone already does not matter here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// SHA-256 of `bytes` in hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Writes `n_bytes` that no compression and no repetition could fake, different
/// for each `seed`, and returns their SHA-256.
///
/// # Panics
/// If the file cannot be written.
#[must_use]
pub fn write_noise(path: &Path, n_bytes: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(n_bytes + 8);
    while bytes.len() < n_bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(n_bytes);
    std::fs::write(path, &bytes).expect("a file");
    sha256_hex(&bytes)
}
