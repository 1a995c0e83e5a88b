//! Two routers that know no address of each other but the group that both have
//! joined. Needs the right to make network namespaces.

use tachonym_interop::namespace::{DEVICES, Namespace, connect};
use tachonym_interop::{Fetched, Peer, Router, write_noise};

const N_BYTES: usize = 300_000;

#[test]
fn a_file_comes_from_a_neighbour_in_a_multicast_group() {
    let (west, east) = (Namespace::new(), Namespace::new());
    connect(&west, "fe80::1/64", &east, "fe80::2/64");
    for (west_ip, east_ip, group, scheme) in [
        ("10.77.3.1/24", "10.77.3.2/24", "224.0.23.170:56363", "udp4"),
        ("fe80::3/64", "fe80::4/64", "[ff02::1234]:56363", "udp6"),
    ] {
        west.add_address(west_ip, DEVICES[0]);
        east.add_address(east_ip, DEVICES[1]);
        let join = |device| {
            format!("[[faces.multicast]]\ninterface = \"{device}\"\ngroup = \"{group}\"\n")
        };
        let route = format!("[[route]]\nprefix = \"/file\"\nnext_hop = \"{scheme}://{group}\"\n");
        let start = |space: &Namespace, extra: &str| {
            let listen = "udp.listen = []\ntcp.listen = []\nwebsocket.listen = []\n";
            Router::configured(listen, extra, Some(space.path()))
        };
        let consumers = start(&west, &(join(DEVICES[0]) + &route));
        let producers = start(&east, &join(DEVICES[1]));

        let file = producers.folder().join("file");
        let sha256 = write_noise(&file, N_BYTES, 301);
        // Larger than a frame of the link: they travel in fragments.
        let segments = ["--segment-bytes", "8000"];
        let _serving = Peer::Ndnts.put(producers.uri("unix"), "/file", &file, &segments);
        let expected = Fetched {
            n_bytes: N_BYTES as u64,
            sha256,
        };
        let fetched = Peer::Ndnts.get(consumers.uri("unix"), "/file");
        assert_eq!(fetched, expected, "{group}");
    }
}
