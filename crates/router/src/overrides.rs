//! What the command line of `tachonym run` changes in a configuration.
//!
//! Owns `--socket` and `--port`, so that several routers start on one machine
//! without a file for each.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::config::Config;

/// The options of `tachonym run` that replace keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The Unix socket, in place of `faces.unix.path`; a relative path is of the working
    /// directory.
    pub socket: Option<PathBuf>,
    /// The port of each UDP and TCP listener, 1–65535.
    pub port: Option<u16>,
}

impl Overrides {
    /// Applies them to `config`. With a port, the default WebSocket listeners are left
    /// out, because a second router could not open them either; listeners that a file
    /// names stay.
    pub fn apply(&self, config: &mut Config) {
        if let Some(socket) = &self.socket {
            config.faces.unix.enabled = true;
            config.faces.unix.path = absolute(socket);
        }
        let Some(port) = self.port else {
            return;
        };
        let faces = &mut config.faces;
        for listen in [&mut faces.udp.listen, &mut faces.tcp.listen] {
            set_port(listen, port);
        }
        if faces.websocket.listen == Config::default().faces.websocket.listen {
            faces.websocket.listen.clear();
        }
    }
}

/// Gives every address of `listen` this port; of two that become equal one stays.
fn set_port(listen: &mut Vec<String>, port: u16) {
    let mut changed: Vec<String> = Vec::with_capacity(listen.len());
    for address in listen.iter() {
        let address = match address.parse::<SocketAddr>() {
            Ok(mut address) => {
                address.set_port(port);
                address.to_string()
            }
            // The check of the configuration has refused it already.
            Err(_) => address.clone(),
        };
        if !changed.contains(&address) {
            changed.push(address);
        }
    }
    *listen = changed;
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_moves_udp_and_tcp_and_drops_only_the_default_websocket() {
        let overrides = Overrides {
            socket: Some("/run/b.sock".into()),
            port: Some(7000),
        };
        let mut config = Config::default();
        overrides.apply(&mut config);
        assert_eq!(config.faces.unix.path, Path::new("/run/b.sock"));
        assert_eq!(config.faces.udp.listen, ["0.0.0.0:7000", "[::]:7000"]);
        assert_eq!(config.faces.tcp.listen, ["0.0.0.0:7000", "[::]:7000"]);
        assert!(config.faces.websocket.listen.is_empty());
        let text = "faces.udp.listen = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\n\
                    faces.tcp.listen = []\nfaces.websocket.listen = [\"127.0.0.1:9\"]\n";
        let mut config = Config::parse(text).expect("good");
        overrides.apply(&mut config);
        assert_eq!(config.faces.udp.listen, ["127.0.0.1:7000"]);
        assert!(config.faces.tcp.listen.is_empty());
        assert_eq!(config.faces.websocket.listen, ["127.0.0.1:9"]);
    }
}
