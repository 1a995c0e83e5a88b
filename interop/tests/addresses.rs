//! A router whose own address changes while it runs, as a roaming host's does.
//! Needs the right to make network namespaces.

use tachonym_interop::namespace::{DEVICES, Namespace, connect};
use tachonym_interop::{Router, Running, sha256_hex, write_noise};

const N_BYTES: usize = 100_000;

#[test]
fn a_neighbour_is_reached_from_the_new_address_when_the_old_one_has_gone() {
    let (west, east) = (Namespace::new(), Namespace::new());
    let (old, new) = ("10.77.6.1/24", "10.77.6.3/24");
    connect(&west, old, &east, "10.77.6.2/24");
    let listen = "udp.listen = [\"0.0.0.0:0\"]\ntcp.listen = []\nwebsocket.listen = []\n";
    let consumers = Router::configured(listen, "", Some(west.path()));
    let producers = Router::configured(listen, "", Some(east.path()));
    let (_, port) = producers.uri("udp4").rsplit_once(':').expect("a port");
    let neighbour = format!("udp4://10.77.6.2:{port}");
    consumers.tool(&["face", "create", &neighbour]);
    consumers.tool(&["route", "add", "/", &neighbour]);

    let fetch = |name: &str| {
        let file = producers.folder().join("file");
        let sha256 = write_noise(&file, N_BYTES, 302);
        let path = file.to_str().expect("text");
        let mut command = producers.tool_command(&["put", name, path, "--json"]);
        let mut serving = Running::start(&mut command);
        assert!(serving.line().contains("ready"));
        let copy = consumers.folder().join("copy");
        let path = copy.to_str().expect("text");
        consumers.tool(&["get", name, "--quiet", "-o", path]);
        let got = std::fs::read(copy).expect("fetched");
        assert_eq!(sha256_hex(&got), sha256, "{name}");
    };
    fetch("/before");
    west.remove_address(old, DEVICES[0]);
    west.add_address(new, DEVICES[0]);
    fetch("/after");
    let face = consumers.tool(&["face", "show", &neighbour]);
    assert!(!face.contains("send-error"), "{face}");
}
