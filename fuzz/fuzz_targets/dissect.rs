//! `tachonym dissect` on any bytes: packets, texts and captures. What it shows is
//! text, and stays in proportion. The first byte says what the rest is taken for,
//! and how it is shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_router::tools::dissect::{Form, Kind, Options, dissect};

/// Most bytes that are shown for a byte of the input: a packet of two bytes is
/// told about in a line or two.
const MAX_GROWTH: usize = 250;

fuzz_target!(|bytes: &[u8]| {
    let [choice, input @ ..] = bytes else {
        return;
    };
    let options = Options {
        input: match choice & 3 {
            0 => None,
            1 => Some(Form::Raw),
            2 => Some(Form::Capture),
            _ => Some(Form::Hex),
        },
        json: choice & 4 != 0,
        brief: choice & 8 != 0,
        kind: (choice & 16 != 0).then_some(Kind::Data),
        name: (choice & 32 != 0).then(|| "/a".parse().expect("a name")),
        port: if choice & 64 != 0 { vec![9999] } else { vec![] },
    };
    let mut out = Vec::new();
    // A capture may be damaged, and a text no text.
    let _ = dissect(input, &options, &mut out, &mut |line| {
        assert!(!line.is_empty());
    });
    assert!(out.len() <= MAX_GROWTH * input.len() + 500);
    let text = String::from_utf8(out).expect("text");
    assert!(text.chars().all(|c| !c.is_control() || c == '\n'));
});
