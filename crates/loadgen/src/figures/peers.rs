//! How the forwarders of a comparison are started: a configuration of each
//! that listens in a folder and on ports of its own, and is otherwise as
//! delivered.
//!
//! Owns the configuration texts. Refuses tuning: a figure is that of a
//! forwarder's defaults, logging of every packet or face aside.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::exchange::address::{Address, Transport};
use crate::launch::{ForwarderArgs, LOCAL_UDP};

/// A forwarder that this module can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `tachonym run`.
    Tachonym,
    /// `ndnd fw run`, the forwarder of ndnd.
    Ndnd,
    /// `nfd`.
    Nfd,
}

impl Program {
    /// Its name in tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Tachonym => "tachonym",
            Self::Ndnd => "ndnd",
            Self::Nfd => "nfd",
        }
    }

    fn configuration(self, folder: &Path, port: u16) -> String {
        let socket = socket_in(folder, self);
        let socket = socket.display();
        match self {
            Self::Tachonym => format!(
                "faces.unix.path = \"{socket}\"\n\
                 faces.udp.listen = [\"127.0.0.1:{port}\"]\n\
                 faces.tcp.listen = [\"127.0.0.1:{port}\"]\n\
                 faces.websocket.listen = []\n{}",
                LOCAL_UDP
            ),
            Self::Ndnd => format!(
                "core:\n  log_level: ERROR\n\
                 faces:\n  udp:\n    enabled_multicast: false\n    port_unicast: {port}\n  \
                 tcp:\n    port_unicast: {port}\n  \
                 unix:\n    socket_path: {socket}\n  \
                 websocket:\n    enabled: false\n"
            ),
            Self::Nfd => format!(
                "log {{\n  default_level ERROR\n}}\n\
                 tables {{\n  cs_max_packets 65536\n  strategy_choice {{\n    \
                 / /localhost/nfd/strategy/best-route\n    \
                 /localhost /localhost/nfd/strategy/multicast\n    \
                 /localhost/nfd /localhost/nfd/strategy/best-route\n  }}\n}}\n\
                 face_system {{\n  unix {{\n    path {socket}\n  }}\n  \
                 tcp {{\n    port {port}\n  }}\n  \
                 udp {{\n    port {port}\n    mcast no\n  }}\n}}\n\
                 authorizations {{\n  authorize {{\n    certfile any\n    privileges {{\n      \
                 faces\n      fib\n      cs\n      strategy-choice\n    }}\n  }}\n}}\n\
                 rib {{\n  localhost_security {{\n    trust-anchor {{\n      type any\n    }}\n  \
                 }}\n}}\n"
            ),
        }
    }
}

fn socket_in(folder: &Path, program: Program) -> PathBuf {
    folder.join(format!("{}.sock", program.label()))
}

/// A forwarder with its configuration written.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Which one.
    pub program: Program,
    /// Its executable.
    pub binary: PathBuf,
    /// Command line that starts it.
    pub start: String,
    command: String,
    unix: Address,
    network: SocketAddr,
}

impl Peer {
    /// Writes the configuration of `binary` into `folder`.
    ///
    /// # Errors
    /// If the binary is not there, the file cannot be written, or no port is
    /// free.
    pub fn prepare(program: Program, binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        let binary = fs::canonicalize(binary)
            .with_context(|| format!("{} does not exist", binary.display()))?;
        let port = free_port()?;
        let config = folder.join(format!("{}.conf", program.label()));
        fs::write(&config, program.configuration(folder, port))
            .with_context(|| format!("cannot write {}", config.display()))?;
        let (quoted_binary, quoted_config) = (quoted(&binary), quoted(&config));
        let command = match program {
            Program::Tachonym => format!("{quoted_binary} run --config {quoted_config}"),
            Program::Ndnd => format!("{quoted_binary} fw run {quoted_config}"),
            // It makes a key chain in its home folder.
            Program::Nfd => format!(
                "env HOME={} {quoted_binary} --config {quoted_config}",
                quoted(folder)
            ),
        };
        Ok(Self {
            program,
            binary,
            start: format!("{command} 2>/dev/null"),
            command,
            unix: Address::Unix(socket_in(folder, program)),
            network: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        })
    }

    /// Command line that starts it and writes its log to `log`, over what is
    /// there.
    #[must_use]
    pub fn start_with_log(&self, log: &Path) -> String {
        format!("{} 2>{}", self.command, quoted(log))
    }

    /// The forwarder that a measurement starts and reaches through its Unix socket.
    #[must_use]
    pub fn to_start(&self) -> ForwarderArgs {
        ForwarderArgs {
            address: self.unix.clone(),
            pid: None,
            start: Some(self.start.clone()),
        }
    }

    /// Where it will listen.
    #[must_use]
    pub fn address(&self, transport: Transport) -> Address {
        match transport {
            Transport::Unix => self.unix.clone(),
            Transport::Udp => Address::Udp(self.network),
            Transport::Tcp => Address::Tcp(self.network),
        }
    }
}

/// A word of a shell's command line.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A port that neither TCP nor UDP uses at the moment.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    for _ in 0..100 {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = tcp.local_addr()?.port();
        if UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    anyhow::bail!("no port is free for both TCP and UDP")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_names_its_socket_and_port() {
        let folder = Path::new("/tmp/x y");
        for program in [Program::Tachonym, Program::Ndnd, Program::Nfd] {
            let text = program.configuration(folder, 16_363);
            assert!(text.contains(&format!("/tmp/x y/{}.sock", program.label())));
            assert_eq!(text.matches("16363").count(), 2, "{text}");
        }
        let text = Program::Nfd.configuration(folder, 1);
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn a_path_is_one_word_whatever_it_holds() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }

    #[test]
    fn an_absent_binary_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let absent = folder.path().join("absent");
        let error = Peer::prepare(Program::Nfd, &absent, folder.path()).expect_err("absent");
        assert!(format!("{error:#}").contains("does not exist"));
    }
}
