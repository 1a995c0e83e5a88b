//! `client.conf`, which NDN programs share: any text names one router, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_client::transport;
use tachonym_protocol::FaceUri;

fuzz_target!(|text: &str| {
    if let Some(uri) = transport::configured(text) {
        assert!(!uri.is_empty() && uri == uri.trim());
        // No host is looked up here.
        let _ = uri.parse::<FaceUri>();
    }
});
