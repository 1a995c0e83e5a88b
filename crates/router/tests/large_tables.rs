//! Datasets of large tables: whole, though they are read piece by piece.

mod bed;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bed::Bed;

#[test]
fn a_fib_of_ten_thousand_routes_is_listed_whole() {
    let bed = Bed::with(|_| {
        (0..10_000).fold(String::new(), |mut text, i| {
            let _ = write!(
                text,
                "[[route]]\nprefix = \"/r/{i}\"\nnext_hop = \"udp4://127.0.0.1:9\"\n"
            );
            text
        })
    });
    // A gap in the middle.
    let face = bed.json(&["face", "show", "udp4://127.0.0.1:9"])["face_id"].to_string();
    bed.text(&["route", "remove", "/r/5000", &face, "--origin", "static"]);
    let listed = bed.json(&["route", "list", "--fib"]);
    let entries = listed.as_array().expect("a list");
    let prefixes = entries.iter().map(|entry| entry["prefix"].as_str());
    let prefixes: Vec<_> = prefixes.map(|prefix| prefix.expect("text")).collect();
    let unique: BTreeSet<_> = prefixes.iter().copied().collect();
    assert_eq!(unique.len(), prefixes.len(), "none is listed twice");
    for i in 0..10_000 {
        let is_there = unique.contains(format!("/r/{i}").as_str());
        assert_eq!(is_there, i != 5000, "/r/{i}");
    }
}

#[test]
fn hundreds_of_faces_are_listed_whole_and_in_order() {
    let bed = Bed::with(|_| {
        (1..=300).fold(String::new(), |mut text, port| {
            let _ = write!(
                text,
                "[[route]]\nprefix = \"/r/{port}\"\nnext_hop = \"udp4://127.0.0.2:{port}\"\n"
            );
            text
        })
    });
    let listed = bed.json(&["face", "list", "--scheme", "udp4"]);
    let faces = listed.as_array().expect("a list");
    let remotes: BTreeSet<_> = faces
        .iter()
        .map(|face| face["remote"].to_string())
        .collect();
    assert_eq!((faces.len(), remotes.len()), (300, 300));
    let ids: Vec<_> = faces.iter().map(|face| face["face_id"].as_u64()).collect();
    assert!(ids.is_sorted());
}
