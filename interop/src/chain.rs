//! Three routers in a row, each in a network namespace of its own.
//!
//! ```text
//! consumer ─ west ─────── middle ══ impaired ══ east ─ producer
//! ```
//!
//! The link between `middle` and `east` goes through a relay that loses and
//! delays datagrams. A namespace has no name, but a process that holds it: the
//! kernel removes it, with its devices, when the last process in it has ended.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Router, Running, binary, in_namespace, output_of};

/// Port of the routers and of the relay.
const PORT: u16 = 6363;

/// The chain.
pub struct Chain {
    /// The router of the consumer.
    pub west: Router,
    /// The router between them.
    pub middle: Router,
    /// The router of the producer.
    pub east: Router,
    relay: Running,
    namespaces: [Namespace; 3],
}

impl Chain {
    /// A chain whose impaired link loses `loss_pct` of datagrams and delays each
    /// by `delay_ms`, and on which Interests under `prefix` go east.
    ///
    /// # Panics
    /// If the caller may not make namespaces.
    #[must_use]
    pub fn new(prefix: &str, loss_pct: &str, delay_ms: &str) -> Self {
        let namespaces = [(); 3].map(|()| Namespace::new());
        let [west, middle, east] = &namespaces;
        connect(west, "10.77.1.1", middle, "10.77.1.2");
        connect(middle, "10.77.2.1", east, "10.77.2.2");

        // The relay stands at the middle router's end of the link.
        let mut command = in_namespace(Some(&middle.path()), &binary("tachonym-lab"));
        command.args(["impair", "--listen", "10.77.2.1:7000"]);
        command.args(["--upstream-bind", "10.77.2.1:7001"]);
        command.args(["--forward", &format!("10.77.2.2:{PORT}")]);
        command.args(["--loss-pct", loss_pct, "--delay-ms", delay_ms]);
        let mut relay = Running::start(&mut command);
        relay.line();

        let listen =
            format!("udp.listen = [\"0.0.0.0:{PORT}\"]\ntcp.listen = []\nwebsocket.listen = []\n");
        let face = |remote: &str| {
            format!(
                "[[face]]\nremote = \"udp4://{remote}\"\nreliability = true\nmtu_bytes = 1400\n"
            )
        };
        let link = |remote: &str| {
            let route = format!("prefix = \"{prefix}\"\nnext_hop = \"udp4://{remote}\"\n");
            format!("{}[[route]]\n{route}", face(remote))
        };
        let start =
            |space: &Namespace, extra: &str| Router::configured(&listen, extra, Some(space.path()));
        let east_router = start(east, &face("10.77.2.1:7001"));
        let middle_router = start(middle, &link("10.77.2.1:7000"));
        let west_router = start(west, &link(&format!("10.77.1.2:{PORT}")));
        Self {
            west: west_router,
            middle: middle_router,
            east: east_router,
            relay,
            namespaces,
        }
    }

    /// Ends the link and returns what `tachonym-lab impair` counted on it: `up`
    /// is towards the producer, `down` towards the consumer.
    ///
    /// # Panics
    /// If the relay had ended before.
    #[must_use]
    pub fn cut(&mut self) -> Value {
        self.relay.terminate();
        let line = self.relay.line();
        serde_json::from_str(&line).expect(&line)
    }

    /// The namespace of the consumer's router.
    #[must_use]
    pub fn west_namespace(&self) -> PathBuf {
        self.namespaces[0].path()
    }
}

/// A network namespace: that of a process which does nothing else.
struct Namespace(Running);

impl Namespace {
    fn new() -> Self {
        let mut command = Command::new("unshare");
        // It speaks when it is inside, and ends with its input.
        command.args(["--net", "sh", "-c", "echo inside; exec cat"]);
        let mut holder = Running::start(&mut command);
        holder.line();
        let space = Self(holder);
        space.ip(&["link", "set", "lo", "up"]);
        space
    }

    fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    fn ip(&self, arguments: &[&str]) {
        output_of(in_namespace(Some(&self.path()), Path::new("ip")).args(arguments));
    }
}

/// Joins two namespaces by a pair of virtual Ethernet devices.
fn connect(left: &Namespace, left_ip: &str, right: &Namespace, right_ip: &str) {
    let (to_right, to_left) = (device(left_ip), device(right_ip));
    let holder = right.0.id().to_string();
    left.ip(&[
        "link", "add", &to_right, "type", "veth", "peer", "name", &to_left, "netns", &holder,
    ]);
    for (space, device, address) in [(left, &to_right, left_ip), (right, &to_left, right_ip)] {
        let address = format!("{address}/24");
        space.ip(&["address", "add", &address, "dev", device]);
        space.ip(&["link", "set", device, "up"]);
    }
}

/// A device's name out of its address: at most 15 characters.
fn device(address: &str) -> String {
    format!("v{}", address.replace('.', "x"))
}
