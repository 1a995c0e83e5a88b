//! A hundred megabytes through three routers, of which one link is lossy and
//! slow. Needs the right to make network namespaces.

use tachonym_interop::chain::Chain;
use tachonym_interop::{Fetched, Peer, in_namespace, write_noise};

const N_BYTES: usize = 100_000_000;

#[test]
fn a_large_file_crosses_three_routers_and_a_lossy_slow_link() {
    let mut chain = Chain::new("/large", "1", "10");
    let file = chain.east.folder().join("file");
    let sha256 = write_noise(&file, N_BYTES, 300);
    let segments = ["--segment-bytes", "8000"];
    // Unix sockets reach across network namespaces.
    let _serving = Peer::Ndnts.put(chain.east.uri("unix"), "/large", &file, &segments);
    let expected = Fetched {
        n_bytes: N_BYTES as u64,
        sha256,
    };
    let inside =
        |program: std::path::PathBuf| in_namespace(Some(&chain.west_namespace()), &program);
    let fetched = Peer::Tachonym.get_by(inside, chain.west.uri("unix"), "/large");
    assert_eq!(fetched, expected);

    // Nothing comes from a content store the second time.
    for router in [&chain.west, &chain.middle, &chain.east] {
        router.tool(&["cs", "erase", "/large"]);
    }
    assert_eq!(Peer::Ndnts.get(chain.west.uri("unix"), "/large"), expected);

    // The link was as bad as configured.
    let counted = chain.cut();
    assert_eq!(counted["impairment"]["delay_ms"], 10.0, "{counted}");
    for way in ["up", "down"] {
        let figure = |key: &str| counted[way][key].as_f64().expect("a number");
        let lost = figure("lost_pkts") / figure("received_pkts");
        assert!((0.005..0.02).contains(&lost), "{way}: {counted}");
    }
    // Every byte came over it, twice.
    let n_bytes = counted["down"]["received_bytes"].as_u64();
    assert!(n_bytes >= Some(2 * N_BYTES as u64), "{counted}");
}
