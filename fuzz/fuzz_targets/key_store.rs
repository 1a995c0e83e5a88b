//! Files of a key store: any bytes as a private key, a certificate and the
//! choice of defaults.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use tachonym_packet::Name;
use tachonym_security::{KeyStore, sha256};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let store = KeyStore::open(folder.path()).expect("it is empty");
    // That of the key in the corpus: a file is named after what it holds.
    let name: Name = "/fuzz/KEY/1".parse().expect("a literal name");
    let hash: String = sha256(&[&name.encode()])
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    for file in [
        format!("keys/{hash}.key"),
        format!("certs/{hash}.ndncert"),
        "defaults".to_owned(),
    ] {
        fs::write(folder.path().join(file), bytes).expect("a file");
    }
    if let Ok(key) = store.key(&name) {
        // Without a password no work is done for it, and no secret is a digest.
        assert_ne!(key.kind(), tachonym_security::KeyKind::Digest);
    }
    let _ = store.list();
    let _ = store.default_identity();
    let _ = store.signer(None);
    let _ = store.signer(Some(&"/fuzz".parse().expect("a literal name")));
});
