//! The verification experiment at a size that takes no time.

use std::process::Command;

use serde_json::Value;

#[test]
fn every_kind_of_signature_is_measured() {
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .args(["verify", "--data", "3", "--rounds", "3", "--json"])
        .output()
        .expect("the program is built");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let line: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let kinds = line["figures"]["kinds"].as_array().expect("by kind");
    let names: Vec<_> = kinds
        .iter()
        .filter_map(|kind| kind["kind"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "digest",
            "HMAC",
            "RSA 2048",
            "RSA 4096",
            "ECDSA P-256",
            "Ed25519"
        ]
    );
    for kind in kinds {
        for figure in [
            "hash_us",
            "alone_us",
            "first_us",
            "again_us",
            "forged_us",
            "unknown_us",
        ] {
            assert!(
                kind[figure]["median"].as_f64() > Some(0.0),
                "{figure}: {kind}"
            );
        }
        assert!(kind["data_bytes"].as_f64() > Some(1_000.0));
    }
    let rows = line["figures"]["unconcerned"]
        .as_array()
        .expect("by prefixes");
    assert_eq!(rows.len(), 4);
}
