//! The programs that talk to the router.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Running, binary, installed, json_of, sha256_hex};

/// An NDN program that fetches and serves files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// python-ndn.
    PythonNdn,
    /// NDNts, on Node.js.
    Ndnts,
    /// jndn, on Java.
    Jndn,
    /// The project's own `get` and `put`.
    Tachonym,
}

/// What a consumer got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Bytes of content.
    pub n_bytes: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
}

/// A producer that serves until it is dropped.
pub struct Serving {
    /// The line it printed when it was ready.
    pub ready: Value,
    _process: Running,
}

/// A prefix that a program holds registered until it is dropped.
pub struct Registration(Running);

impl Registration {
    /// Has the program unregister it; its face stays.
    ///
    /// # Panics
    /// If it fails.
    pub fn undo(&mut self) {
        self.0.press_enter();
        assert_eq!(next_json(&mut self.0)["unregistered"], true);
    }
}

/// The next line of a program, as JSON.
fn next_json(process: &mut Running) -> Value {
    let line = process.line();
    serde_json::from_str(&line).expect(&line)
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::PythonNdn, Self::Ndnts, Self::Jndn, Self::Tachonym];

    /// The transports that it has, by the scheme of their FaceUri. python-ndn
    /// and jndn do not reassemble fragments: over UDP they get Data that fits
    /// one datagram.
    #[must_use]
    pub const fn transports(self) -> &'static [&'static str] {
        match self {
            Self::PythonNdn => &["unix", "tcp4", "udp4"],
            Self::Ndnts | Self::Tachonym => &["unix", "tcp4", "udp4", "ws"],
            Self::Jndn => &["tcp4", "udp4"],
        }
    }

    /// Fetches `name` over `transport`, a FaceUri.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn get(self, transport: &str, name: &str) -> Fetched {
        self.get_by(Command::new, transport, name)
    }

    /// As [`Peer::get`], with the command that `start` makes of a program.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn get_by(
        self,
        start: impl FnOnce(PathBuf) -> Command,
        transport: &str,
        name: &str,
    ) -> Fetched {
        if self == Self::Tachonym {
            return get_by_tool(start, transport, name);
        }
        let result = json_of(&mut self.command(start, transport, &["get", name]));
        Fetched {
            n_bytes: result["bytes"].as_u64().expect("a number"),
            sha256: result["sha256"].as_str().expect("text").to_owned(),
        }
    }

    /// Serves `file` as `name` over `transport`, a FaceUri.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn put(self, transport: &str, name: &str, file: &Path, extra: &[&str]) -> Serving {
        let mut arguments = vec!["put", name, file.to_str().expect("text")];
        arguments.extend_from_slice(extra);
        let mut process = Running::start(&mut self.command(Command::new, transport, &arguments));
        let ready = next_json(&mut process);
        assert_eq!(ready["ready"], true, "{ready}");
        Serving {
            ready,
            _process: process,
        }
    }

    /// Registers `name` over `transport`, a FaceUri. The project's own tools have
    /// no such command.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn register(self, transport: &str, name: &str) -> Registration {
        let mut command = self.command(Command::new, transport, &["register", name]);
        let mut process = Running::start(&mut command);
        assert_eq!(next_json(&mut process)["registered"], true);
        Registration(process)
    }

    /// Runs one of the program's own commands; see the head of its source.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn run(self, transport: &str, arguments: &[&str]) -> Value {
        json_of(&mut self.command(Command::new, transport, arguments))
    }

    fn command(
        self,
        start: impl FnOnce(PathBuf) -> Command,
        transport: &str,
        arguments: &[&str],
    ) -> Command {
        match self {
            Self::PythonNdn => {
                let mut command = start(installed("python/bin/python"));
                command.arg(source("python/peer.py"));
                command.args(["--transport", transport]).args(arguments);
                command.env("HOME", home());
                command
            }
            Self::Ndnts => {
                let mut command = start(node());
                // It lies beside the packages that it imports.
                command.arg(installed("node/peer.mjs"));
                command.args(["--transport", transport]).args(arguments);
                command
            }
            Self::Jndn => {
                let java = installed("java");
                let jars = format!("{0}/classes:{0}/lib/*", java.display());
                let mut command = start("java".into());
                let transport = transport
                    .replacen("4://", "://", 1)
                    .replacen("6://", "://", 1);
                command.args(["-cp", &jars, "tachonym.Peer", &transport]);
                command.args(arguments);
                command
            }
            Self::Tachonym => {
                let mut command = start(binary("tachonym"));
                command.args(arguments);
                command.args(["--json", "--transport", transport]);
                command
            }
        }
    }
}

fn get_by_tool(start: impl FnOnce(PathBuf) -> Command, transport: &str, name: &str) -> Fetched {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy");
    let mut command = start(binary("tachonym"));
    command.args(["get", name, "--json", "--transport", transport, "-o"]);
    let result = json_of(command.arg(&copy));
    let content = std::fs::read(&copy).expect("a file");
    let n_bytes = content.len() as u64;
    // A single Data has no count of its own.
    assert_eq!(result["bytes"].as_u64().unwrap_or(n_bytes), n_bytes);
    Fetched {
        n_bytes,
        sha256: sha256_hex(&content),
    }
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The Node.js that npm installed, or the system's.
#[must_use]
pub fn node() -> PathBuf {
    let architectures = ["x64", "arm64"].into_iter();
    let mut brought = architectures
        .map(|arch| installed(&format!("node/node_modules/node-linux-{arch}/bin/node")));
    brought
        .find(|path| path.exists())
        .unwrap_or_else(|| "node".into())
}

/// A home folder with a python-ndn key store in it, which nothing changes.
#[must_use]
pub fn home() -> PathBuf {
    installed("home")
}
