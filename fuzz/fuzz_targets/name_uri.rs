//! Names as people write them: what is read prints as something that reads the
//! same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_packet::{Name, NameView};

fuzz_target!(|text: &str| {
    let Ok(name) = text.parse::<Name>() else {
        return;
    };
    let printed = name.to_string();
    assert_eq!(printed.parse::<Name>().expect(&printed), name);
    let wire = name.encode();
    assert_eq!(
        NameView::parse_element(&wire).expect("own encoding"),
        name.view()
    );
});
