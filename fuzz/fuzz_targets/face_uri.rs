//! FaceUris: what is read prints as something that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_protocol::FaceUri;

fuzz_target!(|text: &str| {
    let Ok(uri) = text.parse::<FaceUri>() else {
        return;
    };
    let printed = uri.to_string();
    assert_eq!(printed.parse::<FaceUri>().expect(&printed), uri);
    let _ = (
        uri.scheme(),
        uri.is_canonical(),
        uri.socket_addr(),
        uri.is_multicast(),
    );
});
