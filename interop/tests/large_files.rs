//! A hundred megabytes through one router.

use tachonym_interop::{Fetched, NEIGHBOURS, Peer, Router, write_noise};

const N_BYTES: usize = 100_000_000;

/// `producer` serves, `consumer` fetches, each over its own transport.
fn arrives((producer, over): (Peer, &str), (consumer, via): (Peer, &str)) {
    let router = Router::start_with(NEIGHBOURS);
    let file = router.folder().join("file");
    let sha256 = write_noise(&file, N_BYTES, 100);
    let segments = ["--segment-bytes", "8000"];
    let _serving = producer.put(router.uri(over), "/large", &file, &segments);
    let expected = Fetched {
        n_bytes: N_BYTES as u64,
        sha256,
    };
    assert_eq!(consumer.get(router.uri(via), "/large"), expected);
}

#[test]
fn a_large_file_goes_from_ndnts_to_python_ndn() {
    arrives((Peer::Ndnts, "unix"), (Peer::PythonNdn, "tcp4"));
}

#[test]
fn a_large_file_goes_from_python_ndn_to_ndnts() {
    arrives((Peer::PythonNdn, "unix"), (Peer::Ndnts, "unix"));
}

#[test]
fn a_large_file_goes_from_put_to_jndn() {
    arrives((Peer::Tachonym, "udp4"), (Peer::Jndn, "tcp4"));
}
