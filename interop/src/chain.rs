//! Three routers in a row, each in a network namespace of its own.
//!
//! ```text
//! consumer ─ west ─────── middle ══ impaired ══ east ─ producer
//! ```
//!
//! The link between `middle` and `east` goes through a relay that loses and
//! delays datagrams.

use std::path::PathBuf;

use serde_json::Value;

use crate::namespace::{Namespace, connect};
use crate::{Router, Running, binary, in_namespace};

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
        connect(west, "10.77.1.1/24", middle, "10.77.1.2/24");
        connect(middle, "10.77.2.1/24", east, "10.77.2.2/24");

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
