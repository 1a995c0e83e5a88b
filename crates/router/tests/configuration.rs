//! What a wrong configuration file is answered with.

use tachonym_router::config::{Complaint, Config};

fn complaints(text: &str) -> Vec<Complaint> {
    Config::parse(text).expect_err("the file is wrong")
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(Config::parse("").expect("good"), Config::default());
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest_known_one() {
    let found = complaints("[faces]\n\n[faces.udp]\nlisen = []\n");
    assert_eq!(found[0].line, 4);
    assert!(found[0].message.contains("lisen"), "{found:?}");
    assert!(found[0].remedy.contains("`listen`"), "{found:?}");
}

#[test]
fn a_value_of_the_wrong_type_names_its_line() {
    let found = complaints("[tables]\npit_entries = \"many\"\n");
    assert_eq!(found[0].line, 2);
}

#[test]
fn every_value_out_of_range_is_told_at_once() {
    let found = complaints("[tables]\npit_entries = 0\ndead_nonce_ms = 5\n");
    let told: Vec<_> = found.iter().map(|c| (c.line, c.key.as_str())).collect();
    assert_eq!(
        told,
        [(2, "tables.pit_entries"), (3, "tables.dead_nonce_ms")]
    );
    assert!(found.iter().all(|c| c.remedy.contains("from")));
}

#[test]
fn bad_addresses_names_and_strategies_are_told_with_a_remedy() {
    let text = "[faces.tcp]\nlisten = [\"[::]:6363\", \"localhost\"]\n\
                [[route]]\nprefix = \"/a\"\nnext_hop = \"carrier-pigeon://x\"\n\
                [[strategy]]\nprefix = \"/\"\nstrategy = \"best-rout\"\n";
    let found = complaints(text);
    let told: Vec<_> = found.iter().map(|c| (c.line, c.key.as_str())).collect();
    assert_eq!(
        told,
        [
            (2, "faces.tcp.listen[1]"),
            (5, "route[0].next_hop"),
            (8, "strategy[0].strategy")
        ]
    );
}

#[test]
fn two_strategies_for_one_prefix_conflict() {
    let text = "[[strategy]]\nprefix = \"/a\"\nstrategy = \"multicast\"\n\
                [[strategy]]\nprefix = \"/a\"\nstrategy = \"best-route\"\n";
    assert_eq!(complaints(text)[0].line, 5);
}
