//! Files between programs of every library over IPv6, through one router on the
//! loopback address.

use tachonym_interop::{EVERYTHING_LOCAL, Fetched, Peer, Router, write_noise};

/// Where the router of these tests listens.
const LOOPBACK: &str = "udp.listen = [\"[::1]:0\"]\ntcp.listen = [\"[::1]:0\"]\n\
                        websocket.listen = [\"[::1]:0\"]\n";

/// The transports of `peer` that have addresses, by their scheme with IPv6.
fn transports(peer: Peer) -> impl Iterator<Item = String> {
    let schemes = peer.transports().iter();
    schemes
        .filter(|scheme| **scheme != "unix")
        .map(|scheme| scheme.replace('4', "6"))
}

/// Every consumer that has it gets over the same transport what `producer`
/// serves over each of its own.
fn serves_all(producer: Peer) {
    const N_BYTES: usize = 50_021;
    let router = Router::configured(LOOPBACK, EVERYTHING_LOCAL, None);
    let file = router.folder().join("file");
    for (i, over) in transports(producer).enumerate() {
        let sha256 = write_noise(&file, N_BYTES, 600 + i as u64);
        let expected = Fetched {
            n_bytes: N_BYTES as u64,
            sha256,
        };
        let uri = router.uri(&over);
        assert!(uri.contains("://[::1]:"), "{uri}");
        let name = format!("/interop/{producer:?}/{over}");
        // One datagram each, for those who do not reassemble.
        let extra: &[&str] = match producer {
            Peer::Tachonym => &["--segment-bytes", "4096"],
            _ => &[],
        };
        let _serving = producer.put(uri, &name, &file, extra);
        for consumer in Peer::ALL {
            if !transports(consumer).any(|via| via == over) {
                continue;
            }
            let fetched = consumer.get(uri, &name);
            assert_eq!(
                fetched, expected,
                "{producer:?} to {consumer:?} over {over}"
            );
            // The next one gets it from the producer, not from the store.
            router.tool(&["cs", "erase", &name]);
        }
    }
}

#[test]
fn python_ndn_serves_files_to_all_over_ipv6() {
    serves_all(Peer::PythonNdn);
}

#[test]
fn ndnts_serves_files_to_all_over_ipv6() {
    serves_all(Peer::Ndnts);
}

#[test]
fn jndn_serves_files_to_all_over_ipv6() {
    serves_all(Peer::Jndn);
}

#[test]
fn own_tools_serve_files_to_all_over_ipv6() {
    serves_all(Peer::Tachonym);
}
