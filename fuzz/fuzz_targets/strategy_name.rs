//! Names of strategies with their parameters, as management commands and the
//! configuration bring them: whole, or what follows the usual prefix.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_forward::resolve_strategy;
use tachonym_packet::{Name, NameView};

const PREFIX: &str = "/localhost/nfd/strategy";

fn resolve(name: NameView<'_>) {
    if let Ok(full) = resolve_strategy(name) {
        assert!(full.view().starts_with(name));
        assert_eq!(resolve_strategy(full.view()), Ok(full));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let prefix: Name = PREFIX.parse().expect("a literal name");
    if let Ok(name) = NameView::parse_value(bytes) {
        resolve(name);
        resolve(prefix.join(name).view());
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for uri in [text.to_owned(), format!("{PREFIX}/{text}")] {
        if let Ok(name) = uri.parse::<Name>() {
            resolve(name.view());
        }
    }
});
