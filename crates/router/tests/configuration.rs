//! The errors of a wrong configuration file.

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
    assert_eq!(found[0].key, "faces.udp.lisen");
    assert!(found[0].message.contains("`lisen`"), "{found:?}");
    assert!(found[0].remedy.contains("`listen`"), "{found:?}");
}

#[test]
fn a_value_of_the_wrong_type_names_its_line() {
    let found = complaints("[tables]\npit_entries = \"many\"\n");
    assert_eq!(found[0].line, 2);
}

#[test]
fn every_value_out_of_range_is_reported_at_once() {
    let found = complaints(
        "[tables]\npit_entries = 0\ndead_nonce_ms = 5\n[faces]\nstall_timeout_s = 0\n\
         [forwarding]\nmax_interest_lifetime_ms = 3999\n",
    );
    let reported: Vec<_> = found.iter().map(|c| (c.line, c.key.as_str())).collect();
    assert_eq!(
        reported,
        [
            (2, "tables.pit_entries"),
            (3, "tables.dead_nonce_ms"),
            (5, "faces.stall_timeout_s"),
            (7, "forwarding.max_interest_lifetime_ms"),
        ]
    );
    assert!(found.iter().all(|c| c.remedy.contains("from")));
}

#[test]
fn bad_addresses_names_and_strategies_are_reported_with_a_remedy() {
    let text = "[faces.tcp]\nlisten = [\"[::]:6363\", \"localhost\"]\n\
                [[route]]\nprefix = \"/a\"\nnext_hop = \"carrier-pigeon://x\"\n\
                [[strategy]]\nprefix = \"/\"\nstrategy = \"best-rout\"\n";
    let found = complaints(text);
    let reported: Vec<_> = found.iter().map(|c| (c.line, c.key.as_str())).collect();
    assert_eq!(
        reported,
        [
            (2, "faces.tcp.listen[1]"),
            (5, "route[0].next_hop"),
            (8, "strategy[0].strategy")
        ]
    );
}

#[test]
fn learning_routes_needs_accepted_signers() {
    let text = "[management.announcements]\nlearn = true\n";
    let found = complaints(text);
    assert_eq!(found[0].line, 1);
    assert_eq!(found[0].key, "management.announcements.anchors");
    assert!(found[0].remedy.contains("any = true"), "{found:?}");
    Config::parse(&format!("{text}any = true\n")).expect("good");
    // Without a certificate there is no identity that names could be under.
    let any = format!("{text}any = true\n");
    Config::parse(&format!("{any}names = \"any\"\n")).expect("good");
    let bound = format!("{any}names = \"under-signer\"\n");
    let alone = "[management.announcements]\nnames = \"under-signer\"\n";
    let key = "management.announcements.names";
    assert_reported(&[(&bound, 4, key, "identity"), (alone, 2, key, "identity")]);
    let found = complaints("[management.announcements]\nanchors = [\"/nowhere\"]\n");
    assert_eq!(
        (found[0].line, found[0].key.as_str()),
        (2, "management.announcements.anchors[0]")
    );
}

#[test]
fn a_verification_that_drops_all_data_is_reported() {
    use tachonym_packet::{Component, Name};
    use tachonym_security::{
        Certificate, CertificateRequest, Signer, SigningKey, Validity, key_name,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let key_name_of = |identity: &str| {
        let identity: Name = identity.parse().expect("a name");
        key_name(&identity, &Component::generic("1"))
    };
    let write = |file: &str, certificate: &Certificate| {
        let file = folder.path().join(file);
        std::fs::write(&file, certificate.to_base64()).expect("the folder is ours");
        format!("\"{}\"", file.display())
    };
    let root = SigningKey::generate_ecdsa().expect("randomness");
    let root_name = key_name_of("/site");
    let anchor = Certificate::self_signed(&root_name, &root, 1, Validity::FOREVER);
    let anchor = write("anchor", &anchor.expect("it signs"));
    let alice = |issuer: Signer| {
        let request = CertificateRequest {
            key_name: key_name_of("/site/alice"),
            public_key: root.public_key_der().expect("ECDSA").to_vec(),
            issuer_id: Component::generic("issuer"),
            version: 1,
            validity: Validity::FOREVER,
        };
        request.issue(&issuer).expect("it signs")
    };
    let good = write("alice", &alice(Signer::named(root.clone(), root_name)));
    let stranger = SigningKey::generate_ecdsa().expect("randomness");
    let stranger = Signer::named(stranger, key_name_of("/stranger"));
    let stray = write("stray", &alice(stranger));

    let rule = |rest: &str| format!("[[verification]]\nprefix = \"/site\"\n{rest}\n");
    let digest = rule("digest_only = true");
    let by_alice =
        format!("anchors = [{anchor}]\ncertificates = [{good}]\nsigners_under = \"/site/alice\"");
    for text in [
        digest.clone(),
        rule(&format!("anchors = [{anchor}]")),
        rule(&format!("anchors = [{anchor}]")).replace("/site", "/site/a"),
        rule(&format!("anchors = [{anchor}]")).replace("\"/site\"", "\"/\""),
        format!("[[verification]]\nprefix = \"/else\"\nanchors = [{anchor}]\nnames = \"any\"\n"),
        format!("tables.verified_data = 0\n{}", rule(&by_alice)),
    ] {
        Config::parse(&text).expect("good");
    }
    let cases = [
        (rule(""), 1, "[0].anchors", "would be dropped"),
        (
            rule("anchors = [\"/nowhere\"]"),
            3,
            "[0].anchors[0]",
            "/nowhere",
        ),
        (
            rule(&format!(
                "anchors = [{anchor}]\ncertificates = [{good}, {stray}]"
            )),
            4,
            "[0].certificates[1]",
            "no anchor",
        ),
        (
            rule(&format!(
                "anchors = [{anchor}]\nsigners_under = \"/site/bob\""
            )),
            4,
            "[0].signers_under",
            "fetches none",
        ),
        (
            rule(&format!("anchors = [{anchor}]\nsigners_under = \"site\"")),
            4,
            "[0].signers_under",
            "does not begin",
        ),
        (
            rule(&format!("digest_only = true\nanchors = [{anchor}]")),
            4,
            "[0].anchors",
            "digest_only",
        ),
        (
            rule("digest_only = true\nnames = \"under-signer\""),
            4,
            "[0].names",
            "digest_only",
        ),
        (
            format!(
                "[[verification]]\nprefix = \"/else\"\nanchors = [{anchor}]\nnames = \"under-signer\"\n"
            ),
            4,
            "[0].names",
            "names = \"any\"",
        ),
        (
            rule("digest_only = true\nsigners_under = \"/a\""),
            4,
            "[0].signers_under",
            "digest_only",
        ),
        (format!("{digest}{digest}"), 5, "[1].prefix", "already"),
        (
            digest.replace("/site", "site"),
            2,
            "[0].prefix",
            "does not begin",
        ),
    ];
    for (text, line, key, word) in &cases {
        let key = format!("verification{key}");
        assert_reported(&[(text, *line, &key, word)]);
    }
    let many: String = (0..257)
        .map(|i| digest.replace("/site", &format!("/{i}")))
        .collect();
    assert_reported(&[
        (&many, 256 * 3 + 2, "verification[256].prefix", "256"),
        (
            "tables.verified_data = 8\n",
            1,
            "tables.verified_data",
            "[[verification]]",
        ),
    ]);
    let found = complaints("[[verification]]\nprefix = \"/a\"\nany = true\n");
    assert_eq!((found.len(), found[0].line), (1, 3), "{found:?}");
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
fn a_local_address_needs_no_port() {
    for (remote, locals) in [
        (
            "udp4://192.0.2.1",
            ["udp4://192.0.2.2", "udp4://192.0.2.2:6363"],
        ),
        (
            "tcp6://[2001:db8::1]",
            ["tcp6://[2001:db8::2]", "tcp://[::]:0"],
        ),
        (
            "ws://192.0.2.1",
            ["ws://192.0.2.2", "wsclient://192.0.2.2:0"],
        ),
    ] {
        for local in locals {
            let text = format!("[[face]]\nremote = \"{remote}\"\nlocal = \"{local}\"\n");
            assert!(Config::parse(&text).is_ok(), "{text}");
        }
    }
}

#[test]
fn what_cannot_be_done_at_start_is_reported_before() {
    let cases = [
        (
            "[[face]]\nremote = \"udp://router.example:6363\"",
            "host name",
        ),
        (
            "[[face]]\nremote = \"udp4://224.0.23.170:56363\"",
            "cannot create a face",
        ),
        (
            "[[face]]\nremote = \"tcp4://0.0.0.0:6363\"",
            "cannot create a face",
        ),
        ("[[face]]\nremote = \"fd://7\"", "cannot create a face"),
        (
            "[[face]]\nremote = \"unix:///s\"\npersistency = \"permanent\"",
            "permanent",
        ),
        (
            "[[face]]\nremote = \"tcp4://192.0.2.1:6363\"\nmtu_bytes = 1400",
            "only UDP",
        ),
        (
            "[[face]]\nremote = \"udp4://192.0.2.1:6363\"\nlocal = \"udp6://[::1]:6363\"",
            "begin at",
        ),
        (
            "[[face]]\nremote = \"ws://192.0.2.1:9696\"\nlocal = \"tcp4://192.0.2.2\"",
            "begin at",
        ),
        ("[[face]]\nremote = \"tcp4://192.0.2.1:0\"", "bad port"),
        (
            "[[face]]\nremote = \"tcp4://192.0.2.1\"\nlocal = \"tcp4://192.0.2.2:x\"",
            "bad port",
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
            "any key can sign",
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
fn a_second_face_or_route_to_one_peer_is_reported() {
    let text = "[[face]]\nremote = \"udp4://192.0.2.1:6363\"\n\
                [[face]]\nremote = \"udp4://192.0.2.1\"\n\
                [[route]]\nprefix = \"/a\"\nnext_hop = \"udp4://192.0.2.1:6363\"\n\
                [[route]]\nprefix = \"/a/\"\nnext_hop = \"udp4://192.0.2.1\"\n";
    let lines: Vec<_> = complaints(text).iter().map(|c| c.line).collect();
    assert_eq!(lines, [4, 10]);
}

#[test]
fn a_route_may_lead_to_a_joined_group() {
    let group = "[[faces.multicast]]\ninterface = \"lo\"\n";
    let route = "[[route]]\nprefix = \"/a\"\nnext_hop = \"udp4://224.0.23.170:56363\"\n";
    Config::parse(&format!("{group}{route}")).expect("good");
    assert_eq!(complaints(route)[0].line, 3);
}

fn assert_reported(cases: &[(&str, usize, &str, &str)]) {
    for &(text, line, key, word) in cases {
        let found = complaints(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        let reported = &found[0];
        assert_eq!(
            (reported.line, reported.key.as_str()),
            (line, key),
            "{text}"
        );
        let whole = format!("{}; {}", reported.message, reported.remedy);
        assert!(whole.contains(word), "{text}: {whole}");
    }
}

#[test]
fn an_unknown_log_level_is_reported() {
    for level in [
        "loud",
        "warning",
        "",
        "info,",
        "a=loud",
        "=info",
        "info debug",
        "info, a=warn",
    ] {
        let text = format!("[log]\nlevel = \"{level}\"\n");
        assert_reported(&[(&text, 2, "log.level", "off, error, warn, info")]);
    }
    for level in [
        "off",
        "INFO",
        "info,tachonym_router=debug",
        "a=trace,b=warn",
    ] {
        Config::parse(&format!("log.level = \"{level}\"")).expect(level);
    }
}

#[test]
fn a_name_begins_with_a_slash() {
    for name in [
        "ndn",
        "no slash",
        "x y",
        "",
        "ndn:",
        "ndn:a",
        "//host/a",
        "ndn://host/a",
    ] {
        let strategy = format!("[[strategy]]\nprefix = \"{name}\"\nstrategy = \"asf\"\n");
        let route = format!("[[route]]\nprefix = \"{name}\"\nnext_hop = \"udp4://192.0.2.1\"\n");
        let region = format!("[forwarding]\nproducer_region = [\"{name}\"]\n");
        assert_reported(&[
            (&strategy, 2, "strategy[0].prefix", "/example/prefix"),
            (&route, 2, "route[0].prefix", "/example/prefix"),
            (
                &region,
                2,
                "forwarding.producer_region[0]",
                "/example/prefix",
            ),
        ]);
    }
    let good = "[forwarding]\nproducer_region = [\"/\", \"ndn:/a\", \"/a/b/\"]\n";
    Config::parse(good).expect("good");
}

#[test]
fn values_beyond_the_limits_of_sockets_are_reported() {
    let face = "[[face]]\nremote = \"udp4://192.0.2.1\"\nmtu_bytes = 127\n";
    let multicast = "[[faces.multicast]]\ninterface = \"lo\"\nmtu_bytes = 127\n";
    let group = "[[faces.multicast]]\ninterface = \"lo\"\ngroup = \"224.0.23.170:0\"\n";
    assert_reported(&[
        ("faces.udp.mtu_bytes = 127", 1, "faces.udp.mtu_bytes", "128"),
        (
            "faces.udp.mtu_bytes = 65508",
            1,
            "faces.udp.mtu_bytes",
            "65507",
        ),
        (face, 3, "face[0].mtu_bytes", "128"),
        (multicast, 3, "faces.multicast[0].mtu_bytes", "128"),
        (group, 3, "faces.multicast[0].group", "56363"),
        (
            "faces.max_backlog_bytes = 268435457",
            1,
            "faces.max_backlog_bytes",
            "268435456",
        ),
        (
            "faces.socket_buffer_bytes = 1073741824",
            1,
            "faces.socket_buffer_bytes",
            "1073741823",
        ),
        (
            "faces.udp.idle_timeout_s = 1000000001",
            1,
            "faces.udp.idle_timeout_s",
            "1000000000",
        ),
    ]);
    Config::parse("faces.udp.mtu_bytes = 128").expect("good");
}

#[test]
fn keys_without_effect_are_reported() {
    let localhop = "[management.localhop]\n\nany = true\n";
    let bounds = "[management.localhop]\nmax_expiry_s = 60\n";
    let unix = "faces.unix.enabled = false\nfaces.unix.mode = \"0600\"\n";
    let udp = "[faces.udp]\nlisten = []\nmtu_bytes = 1400\n";
    let tcp = "[faces.tcp]\nlisten = []\nidle_timeout_s = 9\n";
    let websocket = "[faces.websocket]\nlisten = []\nidle_timeout_s = 9\n";
    assert_reported(&[
        (localhop, 3, "management.localhop.any", "enabled"),
        (bounds, 2, "management.localhop.max_expiry_s", "enabled"),
        (unix, 2, "faces.unix.mode", "enabled"),
        (udp, 3, "faces.udp.mtu_bytes", "listen"),
        (tcp, 3, "faces.tcp.idle_timeout_s", "listen"),
        (websocket, 3, "faces.websocket.idle_timeout_s", "listen"),
    ]);
}

#[test]
fn more_than_the_tables_hold_is_reported() {
    let route = |i: usize, j: usize| {
        format!("[[route]]\nprefix = \"/{i}\"\nnext_hop = \"udp4://192.0.2.1:{j}\"\n")
    };
    let of = |count: usize, one: &dyn Fn(usize) -> String| (1..=count).map(one).collect::<String>();
    let many = format!("tables.routes = 16\n{}", of(17, &|i| route(i, 1)));
    let remotes = format!("faces.max_faces = 2\n{}", of(3, &|i| route(1, i)));
    let next_hops = of(257, &|i| route(1, i));
    let history = "[content_store]\nadmission = \"filter\"\nfilter_history = 1000000000\n";
    let pulling = "tables.routes = 64\ntables.fib_level_pulling = 64\n";
    let deep = format!(
        "[[route]]\nprefix = \"{}\"\nnext_hop = \"udp4://192.0.2.1\"",
        "/a".repeat(33)
    );
    assert_reported(&[
        (&many, 1, "tables.routes", "17"),
        (pulling, 2, "tables.fib_level_pulling", "64 components"),
        (history, 3, "content_store.filter_history", "tables take"),
        (&remotes, 1, "faces.max_faces", "3 faces"),
        (&next_hops, 256 * 3 + 2, "route[256].prefix", "256"),
        (&deep, 2, "route[0].prefix", "32"),
    ]);
}

#[test]
fn what_the_machine_lacks_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("written");
    let at = |path: &std::path::Path| format!("[faces.unix]\npath = \"{}\"\n", path.display());
    let (is_folder, is_file) = (at(folder.path()), at(&file));
    let below_file = at(&file.join("nfd.sock"));
    let long = at(&folder.path().join("x".repeat(108)));
    let key = "faces.unix.path";
    assert_reported(&[
        (&is_folder, 2, key, "is a folder"),
        (&is_file, 2, key, "not a socket"),
        (&below_file, 2, key, "write a path"),
        (&long, 2, key, "shorter"),
        (
            "[[faces.multicast]]\ninterface = \"absent0\"\n",
            2,
            "faces.multicast[0].interface",
            "ip link",
        ),
    ]);
    let volume = |path: &std::path::Path| {
        let path = path.display();
        format!("[[second_level.volume]]\npath = \"{path}\"\nbytes = 67108864\n")
    };
    let key = "second_level.volume[0].path";
    assert_reported(&[
        (&volume(&folder.path().join("absent")), 2, key, "mkdir"),
        (&volume(&file.join("below")), 2, key, "mkdir"),
        (&volume(&file), 2, key, "lsblk"),
        (&volume("/dev/null".as_ref()), 2, key, "lsblk"),
    ]);
    Config::parse(&volume(folder.path())).expect("it is a directory");
    let missing = folder.path().join("a/b/nfd.sock");
    Config::parse(&at(&missing)).expect("the router makes the folders");
    assert!(!folder.path().join("a").exists(), "a check makes nothing");
}

#[test]
fn a_router_that_no_packet_can_reach_is_reported() {
    let text =
        "[faces]\nunix.enabled = false\nudp.listen = []\ntcp.listen = []\nwebsocket.listen = []\n";
    assert_reported(&[(text, 1, "faces", "unix.enabled")]);
    let face = format!("{text}[[face]]\nremote = \"udp4://192.0.2.1\"\n");
    Config::parse(&face).expect("the other end can send");
}

#[test]
fn an_address_is_listened_on_once() {
    let listen = |list: &str| format!("[faces.udp]\nlisten = [{list}]\n");
    for list in [
        "\"127.0.0.1:1\", \"127.0.0.1:1\"",
        "\"127.0.0.1:1\", \"0.0.0.0:1\"",
        "\"0.0.0.0:1\", \"127.0.0.1:1\"",
        "\"[::1]:1\", \"[::]:1\"",
    ] {
        assert_reported(&[(&listen(list), 2, "faces.udp.listen[1]", "taken")]);
    }
    Config::parse(&listen(
        "\"0.0.0.0:1\", \"[::]:1\", \"0.0.0.0:0\", \"127.0.0.1:0\"",
    ))
    .expect("good");
    assert_reported(&[(
        &listen("\"224.0.23.170:1\""),
        2,
        "faces.udp.listen[0]",
        "[[faces.multicast]]",
    )]);
}

#[test]
fn a_hundred_thousand_of_each_are_checked() {
    use std::fmt::Write as _;
    let mut text = String::from("tables.routes = 100000\nfaces.max_faces = 100000\n");
    for i in 0..100_000 {
        let (a, b, c) = (i >> 16, i >> 8 & 255, i & 255);
        let _ = write!(
            text,
            "[[route]]\nprefix = \"/r/{i}\"\nnext_hop = \"udp4://10.{a}.{b}.{c}\"\n\
             [[face]]\nremote = \"udp4://10.{a}.{b}.{c}\"\n\
             [[strategy]]\nprefix = \"/s/{i}\"\nstrategy = \"asf\"\n"
        );
    }
    let config = Config::parse(&text).expect("good");
    assert_eq!(config.route.len(), 100_000);
    // As many complaints, each with its line.
    let wrong = text.replace("asf", "fsa");
    assert_eq!(complaints(&wrong).len(), 100_000);
}

#[test]
fn a_remedy_is_toml_rather_than_rust() {
    let authorize = "[management.authorize]\nmodules = [\"rib\"]\n";
    assert_reported(&[
        (
            "tables.pit_entries = \"5\"",
            1,
            "tables.pit_entries",
            "without quotes: pit_entries = 5",
        ),
        (
            "tables.fib_level_pulling = 7",
            1,
            "tables.fib_level_pulling",
            "from 8 on",
        ),
        (
            "tables.pit_entries = -1",
            1,
            "tables.pit_entries",
            "a whole number from 0",
        ),
        (
            "tables.pit_entries = 1.5",
            1,
            "tables.pit_entries",
            "a whole number from 0",
        ),
        ("[faces]\nunix = true", 2, "faces.unix", "a table"),
        ("[log]\nlevel = info2", 2, "log.level", "not valid TOML"),
        ("log.level = true", 1, "log.level", "in quotes: \"true\""),
        (
            "faces.unix.enabled = \"true\"",
            1,
            "faces.unix.enabled",
            "without quotes: enabled = true",
        ),
        (
            "[faces.udp]\nlisten = \"0.0.0.0:6363\"",
            2,
            "faces.udp.listen",
            "in brackets: listen = [\"0.0.0.0:6363\"]",
        ),
        (
            "[face]\nremote = \"udp4://192.0.2.1\"",
            1,
            "face",
            "write [[face]]",
        ),
        (
            authorize,
            1,
            "management.authorize",
            "write [[management.authorize]]",
        ),
        ("[[log]]\nlevel = \"info\"", 1, "log", "write [log]"),
        ("faces.udp = [[]]", 1, "faces.udp", "write [faces.udp]"),
        (
            "forwarding.unsolicited_data = \"none\"",
            1,
            "forwarding.unsolicited_data",
            "\"drop-all\" or",
        ),
        (
            "[memory]\npages = \"4k\"",
            2,
            "memory.pages",
            "\"transparent\" or",
        ),
        (
            "tables.name_hash = \"md5\"",
            1,
            "tables.name_hash",
            "write \"auto\" or \"multilinear-aes\" or \"siphash-1-3\" or \"siphash-2-4\"",
        ),
        (
            "[[route]]\nprefix = \"/a\"",
            1,
            "route[0]",
            "such as next_hop = \"udp4://",
        ),
    ]);
}

#[test]
fn the_ssd_level_has_no_w_tinylfu() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display();
    let with = |admission: &str| {
        format!(
            "[[second_level.volume]]\npath = \"{path}\"\nbytes = 67108864\n[second_level]\n\
             admission = \"{admission}\"\n"
        )
    };
    for admission in ["none", "lcp", "filter", "filter-auto", "tinylfu"] {
        Config::parse(&with(admission)).expect(admission);
    }
    let refused = with("w-tinylfu");
    assert_reported(&[(
        &refused,
        5,
        "second_level.admission",
        "did you mean \"tinylfu\"?",
    )]);
    let key = "second_level.filter_history";
    for admission in ["filter", "tinylfu"] {
        let many = format!("{}filter_history = 40_000_000\n", with(admission));
        assert_reported(&[(&many, 6, key, "lower number")]);
    }
    // Of 24 bytes each, in tables of powers of two, within the 64 MiB of the volume.
    let few = format!("{}filter_history = 2_000_000\n", with("filter"));
    Config::parse(&few).expect("within 64 MiB");
}
