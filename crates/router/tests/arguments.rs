//! What the tools refuse without asking a router, and the help that they give.

mod bed;

use bed::Bed;

fn refused(bed: &Bed, arguments: &[&str]) -> String {
    let (code, error) = bed.failure(arguments);
    assert_eq!(code, 2, "{arguments:?}: {error}");
    error
}

#[test]
fn a_good_configuration_with_an_open_port_beside_a_closed_socket_is_warned_of() {
    let bed = Bed::new();
    let file = bed.path("closed.toml");
    std::fs::write(&file, "[faces.unix]\nmode = \"0600\"\n").expect("a file");
    let output = bed.run(&["check-config", file.to_str().expect("text")]);
    assert!(output.status.success(), "{output:?}");
    let warning = String::from_utf8(output.stderr).expect("text");
    assert!(
        warning.contains("closed.toml:2: faces.unix.mode: "),
        "{warning}"
    );
    assert!(warning.contains("management.transports"), "{warning}");
}

#[test]
fn a_name_begins_with_a_slash() {
    let bed = Bed::new();
    let lines: [&[&str]; 26] = [
        &["route", "add", "NAME", "1"],
        &["route", "remove", "NAME", "1"],
        &["route", "show", "NAME"],
        &["route", "list", "--prefix", "NAME"],
        &["strategy", "set", "NAME", "multicast"],
        &["strategy", "unset", "NAME"],
        &["strategy", "show", "NAME"],
        &["cs", "erase", "NAME"],
        &["workers", "pin", "NAME", "0"],
        &["workers", "unpin", "NAME"],
        &["ping", "NAME"],
        &["pingserver", "NAME"],
        &["peek", "NAME"],
        &["peek", "/a", "--hint", "NAME"],
        &["poke", "NAME"],
        &["put", "NAME", "-"],
        &["get", "NAME"],
        &["face", "list", "--identity", "NAME"],
        &["dissect", "--name", "NAME"],
        &["keys", "generate", "NAME"],
        &["keys", "certificate", "NAME"],
        &["keys", "issue", "-", "--by", "NAME"],
        &["keys", "default", "NAME"],
        &["keys", "delete", "NAME"],
        &["keys", "export", "NAME"],
        &["keys", "request", "NAME"],
    ];
    for line in lines {
        for name in ["", "ndn", "x y", "//a/b"] {
            let place = |argument: &&str| *argument == "NAME";
            let mut arguments = line.to_vec();
            let place = arguments.iter().position(place).expect("a place");
            arguments[place] = name;
            let error = refused(&bed, &arguments);
            let help = "write it like /example/prefix";
            assert!(error.contains(help), "{arguments:?}: {error}");
        }
    }
    // Nothing came of it.
    let routes = bed.text(&["route", "list", "--prefix", "/"]);
    assert_eq!(routes.lines().count(), 1, "{routes}");
    // Both forms that there are do as well as ever.
    bed.text(&["strategy", "set", "ndn:/a/b", "multicast"]);
    bed.text(&["strategy", "unset", "/a/b/"]);
}

#[test]
fn nothing_is_asked_for_or_answered_no_times() {
    let bed = Bed::new();
    for arguments in [
        &["ping", "/a", "-c", "0"][..],
        &["pingserver", "/a", "-c", "0"],
        &["poke", "/a", "-c", "0"],
        &["peek", "/a", "--hop-limit", "0"],
        &["face", "events", "--count", "0"],
        &["cs", "erase", "/a", "--count", "0"],
        &["strategy", "set", "/a", ""],
        &["keys", "show", ""],
        &["workers", "pin", "/a"],
        &["workers", "pin", "/a", "-1"],
        &["workers", "remove"],
        &["workers", "remove", "first"],
    ] {
        refused(&bed, arguments);
    }
}

#[test]
fn a_face_to_a_multicast_group_is_a_matter_of_configuration() {
    let bed = Bed::new();
    let group = "udp4://224.0.23.170:56363";
    let error = refused(&bed, &["face", "create", group]);
    assert!(error.contains("[[faces.multicast]]"), "{error}");
    // A route may go by a face to a group that is there; here is none.
    let (code, error) = bed.failure(&["route", "add", "/a", group]);
    assert_eq!(code, 1);
    assert!(error.contains("[[faces.multicast]]"), "{error}");
}

#[test]
fn the_strategy_of_the_root_is_changed_and_never_unset() {
    let bed = Bed::new();
    let error = refused(&bed, &["strategy", "unset", "/"]);
    assert!(error.contains("strategy set / "), "{error}");
    bed.text(&["strategy", "set", "/", "multicast"]);
}

#[test]
fn whoever_misspells_a_strategy_hears_which_there_are() {
    let bed = Bed::new();
    let (code, error) = bed.failure(&["strategy", "set", "/a", "nosuch"]);
    assert_eq!(code, 5);
    for part in ["/nosuch", "best-route", "multicast", "random", "asf", "404"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    // Another refusal has nothing to do with that.
    let asf = "/localhost/nfd/strategy/asf/v=5/nonsense~1";
    let (code, error) = bed.failure(&["strategy", "set", "/a", asf]);
    assert_eq!(code, 5);
    assert!(!error.contains("best-route"), "{error}");
}

#[test]
fn the_help_shows_every_subcommand_once_in_its_group() {
    let bed = Bed::new();
    let help = bed.text(&["--help"]);
    let completions = bed.text(&["completions", "bash"]);
    let subcommands = completions.lines().filter_map(|line| {
        let name = line.trim().strip_prefix("tachonym,")?.strip_suffix(')')?;
        (name != "help").then_some(name)
    });
    let subcommands: Vec<_> = subcommands.collect();
    assert!(subcommands.len() > 15, "{subcommands:?}");
    for name in subcommands {
        let line = |line: &&str| line.trim_start().starts_with(&format!("{name} "));
        assert_eq!(help.lines().filter(line).count(), 1, "{name} in {help}");
    }
    for heading in [
        "Router:",
        "Manage a running router:",
        "Examples:",
        "Exit codes:",
    ] {
        assert!(help.contains(heading), "{heading} is not in {help}");
    }
    let help = bed.text(&["run", "--help"]);
    for part in ["--socket", "--port", "Examples:", "NDN_CLIENT_TRANSPORT"] {
        assert!(help.contains(part), "{part} is not in {help}");
    }
}
