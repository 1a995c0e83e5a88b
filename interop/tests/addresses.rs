//! A router whose own address or interface goes while it runs, as a roaming
//! host's does. Needs the right to make network namespaces.

use tachonym_interop::namespace::{DEVICES, Namespace, connect};
use tachonym_interop::{Router, Running, sha256_hex, write_noise};

const N_BYTES: usize = 100_000;

const OLD: &str = "10.77.6.1/24";
const NEW: &str = "10.77.6.3/24";

/// Two hosts, and a router in each; everything of the one in the west goes to the
/// one in the east.
struct Pair {
    west: Namespace,
    _east: Namespace,
    consumers: Router,
    producers: Router,
    neighbour: String,
}

impl Pair {
    fn new() -> Self {
        let (west, east) = (Namespace::new(), Namespace::new());
        connect(&west, OLD, &east, "10.77.6.2/24");
        let listen = "udp.listen = [\"0.0.0.0:0\"]\ntcp.listen = []\nwebsocket.listen = []\n";
        let consumers = Router::configured(listen, "", Some(west.path()));
        let producers = Router::configured(listen, "", Some(east.path()));
        let (_, port) = producers.uri("udp4").rsplit_once(':').expect("a port");
        let neighbour = format!("udp4://10.77.6.2:{port}");
        consumers.tool(&["face", "create", &neighbour]);
        consumers.tool(&["route", "add", "/", &neighbour]);
        Self {
            west,
            _east: east,
            consumers,
            producers,
            neighbour,
        }
    }

    /// Serves a file in the east, and gets it in the west.
    fn fetch(&self, name: &str) {
        let file = self.producers.folder().join("file");
        let sha256 = write_noise(&file, N_BYTES, 302);
        let path = file.to_str().expect("text");
        let mut command = self.producers.tool_command(&["put", name, path, "--json"]);
        let mut serving = Running::start(&mut command);
        assert!(serving.line().contains("ready"));
        let copy = self.consumers.folder().join("copy");
        let path = copy.to_str().expect("text");
        self.consumers.tool(&["get", name, "--quiet", "-o", path]);
        let got = std::fs::read(copy).expect("fetched");
        assert_eq!(sha256_hex(&got), sha256, "{name}");
    }

    fn face(&self) -> String {
        self.consumers.tool(&["face", "show", &self.neighbour])
    }
}

#[test]
fn a_neighbour_is_reached_from_the_new_address_when_the_old_one_has_gone() {
    let pair = Pair::new();
    pair.fetch("/before");
    pair.west.remove_address(OLD, DEVICES[0]);
    pair.west.add_address(NEW, DEVICES[0]);
    pair.fetch("/after");
    let face = pair.face();
    assert!(!face.contains("send-error"), "{face}");
}

#[test]
fn an_interface_that_is_down_costs_packets_and_not_the_face() {
    let pair = Pair::new();
    pair.fetch("/before");
    pair.west.switch(DEVICES[0], false);
    let arguments = ["peek", "/down", "--lifetime-ms", "200"];
    let status = pair.consumers.tool_command(&arguments).status();
    assert_eq!(status.expect("it runs").code(), Some(3), "no producer");
    let face = pair.face();
    assert!(face.contains("send-error"), "{face}");
    pair.west.switch(DEVICES[0], true);
    pair.fetch("/after");
}
