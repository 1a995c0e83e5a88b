//! Files between programs of every library, through one router.

use tachonym_interop::{EVERYTHING_LOCAL, Fetched, NEIGHBOURS, Peer, Router, write_noise};

/// Every consumer over every transport it has gets what `producer` serves over
/// every transport that it has.
fn serves_all(producer: Peer) {
    const N_BYTES: usize = 50_021;
    let router = Router::start_with(EVERYTHING_LOCAL);
    let file = router.folder().join("file");
    for (i, over) in producer.transports().iter().enumerate() {
        let sha256 = write_noise(&file, N_BYTES, i as u64);
        let expected = Fetched {
            n_bytes: N_BYTES as u64,
            sha256,
        };
        let name = format!("/interop/{producer:?}/{over}");
        // One datagram each, for those who do not reassemble.
        let extra: &[&str] = match producer {
            Peer::Tachonym => &["--segment-bytes", "4096"],
            _ => &[],
        };
        let _serving = producer.put(router.uri(over), &name, &file, extra);
        for consumer in Peer::ALL {
            for via in consumer.transports() {
                let fetched = consumer.get(router.uri(via), &name);
                assert_eq!(
                    fetched, expected,
                    "{producer:?} {over} to {consumer:?} {via}"
                );
                // The next one gets it from the producer, not from the store.
                router.tool(&["cs", "erase", &name]);
            }
        }
    }
}

#[test]
fn python_ndn_serves_files_to_all_over_every_transport() {
    serves_all(Peer::PythonNdn);
}

#[test]
fn ndnts_serves_files_to_all_over_every_transport() {
    serves_all(Peer::Ndnts);
}

#[test]
fn jndn_serves_files_to_all_over_every_transport() {
    serves_all(Peer::Jndn);
}

#[test]
fn own_tools_serve_files_to_all_over_every_transport() {
    serves_all(Peer::Tachonym);
}

#[test]
fn metadata_tell_the_version_both_ways() {
    let router = Router::start();
    let file = router.folder().join("file");
    let sha256 = write_noise(&file, 30_000, 7);
    let by_ndnts = Peer::Ndnts.put(router.uri("unix"), "/rdr/ndnts", &file, &[]);
    let copy = router.folder().join("copy");
    let copy = copy.to_str().expect("text");
    router.tool(&["get", "/rdr/ndnts", "--discover", "metadata", "-o", copy]);
    let content = std::fs::read(copy).expect("a file");
    assert_eq!(tachonym_interop::sha256_hex(&content), sha256);
    drop(by_ndnts);

    let _by_put = Peer::Tachonym.put(router.uri("unix"), "/rdr/put", &file, &[]);
    let fetched = Peer::Ndnts.run(router.uri("unix"), &["--rdr", "get", "/rdr/put"]);
    assert_eq!(fetched["sha256"], sha256.as_str());
}

#[test]
fn what_is_larger_than_a_datagram_travels_in_fragments() {
    let router = Router::start_with(NEIGHBOURS);
    let file = router.folder().join("file");
    let sha256 = write_noise(&file, 200_000, 8);
    let udp = router.uri("udp4");
    // Packets of 8,000 bytes, in frames that fit Ethernet.
    let put = ["--segment-bytes", "8000", "--mtu-bytes", "1400"];
    let _serving = Peer::Ndnts.put(udp, "/fragments", &file, &put);
    for face in faces(&router) {
        router.tool(&["face", "update", &face, "--mtu-bytes", "1400"]);
    }
    let fetched = Peer::Ndnts.get(router.uri("unix"), "/fragments");
    assert_eq!(fetched.sha256, sha256);
    router.tool(&["cs", "erase", "/fragments"]);
    let fetched = Peer::Tachonym.get(udp, "/fragments");
    assert_eq!(fetched.sha256, sha256);
}

/// Numbers of the UDP faces.
fn faces(router: &Router) -> Vec<String> {
    let text = router.tool(&["face", "list", "--scheme", "udp4", "--json"]);
    let faces: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let faces = faces.as_array().expect("a list").iter();
    faces.map(|face| face["face_id"].to_string()).collect()
}
