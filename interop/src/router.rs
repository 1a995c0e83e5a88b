//! The router as users run it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Running, binary, output_of};

/// A running router with listeners of its own.
pub struct Router {
    _process: Running,
    folder: tempfile::TempDir,
    listening: Vec<String>,
    namespace: Option<PathBuf>,
}

impl Router {
    /// Starts one on ports that the kernel chooses.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// As [`Router::start`], with `extra` in the configuration.
    #[must_use]
    pub fn start_with(extra: &str) -> Self {
        let listen = "udp.listen = [\"127.0.0.1:0\"]\ntcp.listen = [\"127.0.0.1:0\"]\n\
                      websocket.listen = [\"127.0.0.1:0\"]\n";
        Self::configured(listen, extra, None)
    }

    /// Starts one whose `[faces]` table holds `listen`, in a network namespace.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn configured(listen: &str, extra: &str, namespace: Option<PathBuf>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // `cargo xtask test` runs the same tests with several workers.
        let workers = std::env::var("TACHONYM_TEST_CONFIG").unwrap_or_default();
        let text = format!(
            "log.level = \"warn\"\n{workers}\n[faces]\nunix.path = \"{}\"\n{listen}\n{extra}",
            folder.path().join("nfd.sock").display()
        );
        let file = folder.path().join("tachonym.toml");
        std::fs::write(&file, text).expect("a file");
        let mut command = in_namespace(namespace.as_deref(), &binary("tachonym"));
        let mut process = Running::start(command.arg("run").arg("--config").arg(&file));
        let mut listening = Vec::new();
        loop {
            let line = process.line();
            if line == "ready" {
                break;
            }
            if let Some(uri) = line.strip_prefix("listening on ") {
                listening.push(uri.to_owned());
            }
        }
        Self {
            _process: process,
            folder,
            listening,
            namespace,
        }
    }

    /// The address with this scheme, such as `unix` or `tcp4`.
    ///
    /// # Panics
    /// If it does not listen there.
    #[must_use]
    pub fn uri(&self, scheme: &str) -> &str {
        let found = self.listening.iter().find(|uri| {
            uri.strip_prefix(scheme)
                .is_some_and(|rest| rest.starts_with("://"))
        });
        found.expect("it listens there")
    }

    /// A folder that goes with the router.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a tool of the project against it and returns what it printed.
    pub fn tool(&self, arguments: &[&str]) -> String {
        output_of(&mut self.tool_command(arguments))
    }

    /// The command of such a tool.
    #[must_use]
    pub fn tool_command(&self, arguments: &[&str]) -> Command {
        let mut command = in_namespace(self.namespace.as_deref(), &binary("tachonym"));
        command
            .args(arguments)
            .env("NDN_CLIENT_TRANSPORT", self.uri("unix"));
        command
    }
}

/// A command that runs `program`, in the network namespace at `namespace` if
/// that is given.
#[must_use]
pub fn in_namespace(namespace: Option<&Path>, program: &Path) -> Command {
    match namespace {
        Some(namespace) => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net={}", namespace.display()));
            command.arg("--").arg(program);
            command
        }
        None => Command::new(program),
    }
}
