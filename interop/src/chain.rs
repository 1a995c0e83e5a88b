//! Three routers in a row, each in a network namespace of its own.
//!
//! ```text
//! consumer ─ west ─────── middle ══ impaired ══ east ─ producer
//! ```
//!
//! The link between `middle` and `east` goes through a relay that loses and
//! delays datagrams. Namespaces are named by process id and removed on drop; what
//! a killed test left behind, the next one removes.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

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
    // Dropped last: what runs in a namespace ends before it goes.
    namespaces: Vec<Namespace>,
}

impl Chain {
    /// A chain whose impaired link loses `loss_pct` of datagrams and delays each
    /// by `delay_ms`, and on which Interests under `prefix` go east.
    ///
    /// # Panics
    /// If the caller may not make namespaces.
    #[must_use]
    pub fn new(prefix: &str, loss_pct: &str, delay_ms: &str) -> Self {
        remove_abandoned();
        let names = ["west", "middle", "east"].map(Namespace::new);
        let [west, middle, east] = &names;
        connect(west, "10.77.1.1", middle, "10.77.1.2");
        connect(middle, "10.77.2.1", east, "10.77.2.2");

        // The relay stands at the middle router's end of the link.
        let mut command = in_namespace(Some(&middle.0), &binary("tachonym-lab"));
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
            |space: &Namespace, extra: &str| Router::configured(&listen, extra, Some(&space.0));
        let east_router = start(east, &face("10.77.2.1:7001"));
        let middle_router = start(middle, &link("10.77.2.1:7000"));
        let west_router = start(west, &link(&format!("10.77.1.2:{PORT}")));
        Self {
            west: west_router,
            middle: middle_router,
            east: east_router,
            relay,
            namespaces: names.into(),
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
    pub fn west_namespace(&self) -> &str {
        &self.namespaces[0].0
    }
}

/// A network namespace.
struct Namespace(String);

impl Namespace {
    fn new(role: &str) -> Self {
        static N_MADE: AtomicU32 = AtomicU32::new(0);
        let n = N_MADE.fetch_add(1, Ordering::Relaxed);
        let space = Self(format!("tachonym-{}-{n}-{role}", std::process::id()));
        ip(&["netns", "add", &space.0]);
        ip(&["-n", &space.0, "link", "set", "lo", "up"]);
        space
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing more can be done about one that cannot be removed.
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// Removes the namespaces of test processes that are no more. Nothing runs in
/// them: see [`Running`].
fn remove_abandoned() {
    let listed = output_of(Command::new("ip").args(["netns", "list"]));
    for name in listed.lines().filter_map(|line| line.split(' ').next()) {
        let owner = name.strip_prefix("tachonym-");
        let owner = owner.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            // Another test may have been faster.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

/// Joins two namespaces by a pair of virtual Ethernet devices.
fn connect(left: &Namespace, left_ip: &str, right: &Namespace, right_ip: &str) {
    let (to_right, to_left) = (device(left_ip), device(right_ip));
    let (left, right) = (&left.0, &right.0);
    ip(&[
        "-n", left, "link", "add", &to_right, "type", "veth", "peer", "name", &to_left, "netns",
        right,
    ]);
    for (space, device, address) in [(left, &to_right, left_ip), (right, &to_left, right_ip)] {
        let address = format!("{address}/24");
        ip(&["-n", space, "address", "add", &address, "dev", device]);
        ip(&["-n", space, "link", "set", device, "up"]);
    }
}

/// A device's name out of its address: at most 15 characters.
fn device(address: &str) -> String {
    format!("v{}", address.replace('.', "x"))
}

fn ip(arguments: &[&str]) {
    output_of(Command::new("ip").args(arguments));
}
