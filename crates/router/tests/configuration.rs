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

#[test]
fn a_strategy_is_the_same_however_its_prefix_is_written() {
    let text = "[[strategy]]\nprefix = \"/a\"\nstrategy = \"multicast\"\n\
                [[strategy]]\nprefix = \"ndn:/a/\"\nstrategy = \"best-route\"\n";
    assert_eq!(complaints(text)[0].line, 5);
}

#[test]
fn what_could_not_be_done_at_start_is_told_before() {
    let cases = [
        ("[[face]]\nremote = \"udp://router.example:6363\"", "host"),
        (
            "[[face]]\nremote = \"udp4://224.0.23.170:56363\"",
            "no face",
        ),
        ("[[face]]\nremote = \"tcp4://0.0.0.0:6363\"", "no face"),
        ("[[face]]\nremote = \"fd://7\"", "no face"),
        (
            "[[face]]\nremote = \"unix:///s\"\npersistency = \"permanent\"",
            "permanent",
        ),
        (
            "[[face]]\nremote = \"tcp4://192.0.2.1:6363\"\nmtu_bytes = 1400",
            "stream",
        ),
        (
            "[[face]]\nremote = \"udp4://192.0.2.1:6363\"\nlocal = \"udp6://[::1]:6363\"",
            "begins",
        ),
        (
            "[faces]\ncongestion_threshold_bytes = 200000\nmax_backlog_bytes = 100000",
            "dropped",
        ),
        (
            "[faces]\nudp.listen = [\"0.0.0.0:6363\", \"127.0.0.1:6363\"]",
            "taken",
        ),
        (
            "[faces]\ntcp.listen = [\"[::]:6363\"]\nwebsocket.listen = [\"[::1]:6363\"]",
            "taken",
        ),
        (
            "[[management.authorize]]\nmodules = [\"rib\"]\nany = true\nsigners_under = \"/a\"",
            "anybody",
        ),
    ];
    for (text, word) in cases {
        let found = complaints(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].message.contains(word), "{text}: {found:?}");
        assert!(found[0].line > 1, "{text}: {found:?}");
    }
}

#[test]
fn faces_and_routes_are_there_once() {
    let text = "[[face]]\nremote = \"udp4://192.0.2.1:6363\"\n\
                [[face]]\nremote = \"udp4://192.0.2.1\"\n\
                [[route]]\nprefix = \"/a\"\nnext_hop = \"udp4://192.0.2.1:6363\"\n\
                [[route]]\nprefix = \"/a/\"\nnext_hop = \"udp4://192.0.2.1\"\n";
    let lines: Vec<_> = complaints(text).iter().map(|c| c.line).collect();
    assert_eq!(lines, [4, 10]);
}

#[test]
fn a_route_may_be_by_a_group_that_is_joined() {
    let group = "[[faces.multicast]]\ninterface = \"lo\"\n";
    let route = "[[route]]\nprefix = \"/a\"\nnext_hop = \"udp4://224.0.23.170:56363\"\n";
    Config::parse(&format!("{group}{route}")).expect("good");
    assert_eq!(complaints(route)[0].line, 3);
}
