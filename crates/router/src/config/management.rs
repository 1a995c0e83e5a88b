//! `[management]`: who may change the router while it runs.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::faults::Faults;
use super::{Announcements, Config, Local, Localhop, Transport};

/// The management protocol: commands and status datasets.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Management {
    /// Most commands that wait for the manager thread, 1 to 1048576. Commands beyond that
    /// are dropped and counted.
    pub queue_commands: usize,
    /// Who may send which commands over local faces. A command is accepted if one of the
    /// rules allows it. Without rules every signed command that arrives over one of
    /// `transports` is accepted. To restrict commands, list signers here; or write
    /// `transports = ["unix"]` and restrict the users of the socket with `faces.unix.mode`.
    pub authorize: Vec<Authorize>,
    /// Transports over which local faces may send commands under `/localhost/nfd`: `unix`,
    /// `tcp`, `udp`, `websocket`. Local faces of other transports can read datasets; their
    /// commands are refused with 403 and counted (`command-transport`). Every user of this
    /// machine can connect over TCP.
    pub transports: Vec<Transport>,
    /// Whether neighbours may register routes to themselves with commands under
    /// `/localhop/nfd/rib`. Applications on this machine that use UDP or WebSocket count as
    /// neighbours, unless `faces.udp.local` or `faces.websocket.local` says otherwise.
    pub localhop: Localhop,
    /// Whose prefix announcements are accepted: those of applications (`rib/announce`) and,
    /// with `learn`, those in Data packets for names whose strategy is `self-learning`.
    /// `/`, `/localhost` and `/localhop` cannot be announced. The route gets the cost in the
    /// announcement, or 2048. Without `any` and `anchors`, local applications may announce
    /// every other prefix, neighbours may announce what they may register, and no routes
    /// are learnt.
    pub announcements: Announcements,
}

impl Default for Management {
    fn default() -> Self {
        Self {
            queue_commands: 4096,
            authorize: Vec::new(),
            transports: vec![Transport::Unix, Transport::Tcp],
            localhop: Localhop::default(),
            announcements: Announcements::default(),
        }
    }
}

/// Signers and the modules that they may command.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Authorize {
    /// Modules that the signers may command: `faces`, `fib`, `rib`, `cs`,
    /// `strategy-choice`, `trace`, `workers`.
    #[schemars(example = ["rib"])]
    pub modules: Vec<String>,
    /// Accept every signer. Digests are verified; signatures by keys are not, because no
    /// certificate is known.
    #[serde(default)]
    pub any: bool,
    /// Files with trusted certificates, as `tachonym keys` and `ndnsec cert-dump` write
    /// them: signers with such a certificate, or with one that it issued, are accepted.
    #[serde(default)]
    #[schemars(example = ["/etc/tachonym/anchor.cert"])]
    pub anchors: Vec<PathBuf>,
    /// Files with the certificates between an anchor and a signer.
    #[serde(default)]
    #[schemars(example = ["/etc/tachonym/signer.cert"])]
    pub certificates: Vec<PathBuf>,
    /// Accept only signers whose key name has this prefix.
    #[schemars(example = &"/example/operator")]
    #[serde(default)]
    pub signers_under: Option<String>,
}

/// Checks `[management]`.
pub(super) fn check(config: &Config, found: &mut Faults) {
    let m = &config.management;
    found.range("management.queue_commands", m.queue_commands, 1, 1 << 20);
    let localhop = &m.localhop;
    if !localhop.enabled {
        let set = [
            ("any", localhop.any),
            ("anchors", !localhop.anchors.is_empty()),
            ("certificates", !localhop.certificates.is_empty()),
            ("signers_under", localhop.signers_under.is_some()),
            ("names", localhop.names.is_some()),
            (
                "min_cost",
                localhop.min_cost != Localhop::default().min_cost,
            ),
            ("allow_capture", localhop.allow_capture),
            (
                "max_expiry_s",
                localhop.max_expiry_s != Localhop::default().max_expiry_s,
            ),
        ];
        for (key, _) in set.iter().filter(|(_, is_set)| *is_set) {
            let key = format!("management.localhop.{key}");
            found.idle(&key, "management.localhop.enabled is false");
        }
    }
    let longest_s = 366 * 86_400;
    found.range(
        "management.localhop.max_expiry_s",
        localhop.max_expiry_s,
        0,
        longest_s,
    );
    transports(config, found);
}

/// Transports whose faces are never local carry no commands.
fn transports(config: &Config, found: &mut Faults) {
    let f = &config.faces;
    let is_dialled_locally = || {
        let mut faces = config.face.iter();
        faces.any(|face| face.locality == Some(Local::Loopback))
    };
    for (i, transport) in config.management.transports.iter().enumerate() {
        let (name, local) = match transport {
            Transport::Unix => ("unix", f.unix.local),
            Transport::Tcp => ("tcp", f.tcp.local),
            Transport::Udp => ("udp", f.udp.local),
            Transport::Websocket => ("websocket", f.websocket.local),
        };
        let is_default = Management::default().transports.contains(transport);
        if local == Local::Never && !is_default && !is_dialled_locally() {
            let reason = format!("faces.{name}.local is \"never\"");
            found.idle(&format!("management.transports[{i}]"), &reason);
        }
    }
}
