//! `tachonym face` and `tachonym route` against a running router: what they show, and what
//! they make.

mod bed;

use serde_json::Value;

use bed::Bed;

#[test]
fn faces_are_made_changed_listed_and_destroyed() {
    let bed = Bed::new();
    let remote = "udp4://127.0.0.1:9";
    let made = bed.json(&["face", "create", remote, "--persistency", "permanent"]);
    assert_eq!(made["existed"], false);
    assert_eq!(made["persistency"], "permanent");
    let again = bed.json(&["face", "create", remote]);
    assert_eq!(again["existed"], true);
    assert_eq!(again["face_id"], made["face_id"]);
    let changed = bed.json(&[
        "face",
        "update",
        remote,
        "--reliability",
        "on",
        "--mtu-bytes",
        "1400",
    ]);
    assert_eq!(changed["mtu_bytes"], 1400);
    let flags = changed["flags"].as_array().expect("a list");
    assert!(flags.contains(&"reliability".into()));
    let listed = bed.json(&["face", "list", "--remote", remote]);
    assert_eq!(listed.as_array().expect("a list").len(), 1);
    bed.text(&["face", "destroy", remote]);
    let made = bed.json(&["face", "create", remote, "--local", "udp4://127.0.0.7"]);
    let local = made["local"].as_str().expect("text");
    assert!(local.starts_with("udp4://127.0.0.7:"), "{local}");
    bed.text(&["face", "destroy", remote]);
    let (code, error) = bed.failure(&["face", "show", remote]);
    assert_eq!(code, 1);
    assert!(error.contains("no face to"), "{error}");
}

/// The lines of a table by their cells, two spaces apart.
fn cells(text: &str) -> Vec<Vec<&str>> {
    fn of_line(line: &str) -> Vec<&str> {
        let cells = line.split("  ").map(str::trim);
        cells.filter(|cell| !cell.is_empty()).collect()
    }
    text.lines().map(of_line).collect()
}

#[test]
fn faces_are_listed_with_state_program_and_headings() {
    let bed = Bed::new();
    let server = bed.serve(&["pingserver", "/p", "--json"], b"");
    let pid = u64::from(server.child.id());
    let closed = "tcp4://127.0.0.1:1";
    bed.text(&["face", "create", closed, "--persistency", "permanent"]);

    let text = bed.text(&["face", "list"]);
    let lines = cells(&text);
    assert_eq!(lines[0], ["RECEIVED", "SENT"]);
    let traffic = ["INTERESTS", "DATA", "NACKS", "INTERESTS", "DATA", "NACKS"];
    assert_eq!(
        lines[1][..5],
        ["FACE", "STATE", "REMOTE", "LOCAL", "PERSISTENCY"]
    );
    assert_eq!(lines[1][5..], traffic);
    let line_of = |peer: &str| {
        let line = lines.iter().find(|line| line.get(2) == Some(&peer));
        line.unwrap_or_else(|| panic!("no {peer} in {text}"))
    };
    assert_eq!(line_of(closed)[1], "down");
    let program = format!("tachonym (pid {pid})");
    assert_eq!(line_of(&program)[1], "up");
    assert!(!text.contains("fd://"), "{text}");

    let faces = bed.json(&["face", "list"]);
    let faces = faces.as_array().expect("a list");
    let of_server = faces.iter().find(|face| face["program"]["pid"] == pid);
    let of_server = of_server.expect("it is connected");
    assert_eq!(of_server["program"]["name"], "tachonym");
    assert!(
        of_server["remote"]
            .as_str()
            .is_some_and(|uri| uri.starts_with("fd://"))
    );
    let others = faces.iter().filter(|face| face["remote"] == closed);
    let others: Vec<_> = others
        .map(|face| (&face["state"], &face["program"]))
        .collect();
    assert_eq!(others, [(&Value::from("down"), &Value::Null)]);
    let shown = bed.text(&["face", "show", &of_server["face_id"].to_string()]);
    assert!(shown.contains(&program), "{shown}");
    // Routes name the program as well.
    let routes = bed.text(&["route", "list"]);
    assert!(routes.contains(&program), "{routes}");
}

#[test]
fn routes_show_which_next_hops_are_down() {
    let bed = Bed::new();
    let up = "udp4://127.0.0.1:9";
    let down = "tcp4://127.0.0.1:1";
    bed.text(&["route", "add", "/a", up]);
    let added = bed.text(&["route", "add", "/a", down, "--persistency", "permanent"]);
    assert!(added.contains("down"), "{added}");
    for arguments in [
        &["route", "show", "/a/b"][..],
        &["route", "list"],
        &["route", "list", "--fib"],
    ] {
        let text = bed.text(arguments);
        let lines = cells(&text);
        assert_eq!(lines[0][..4], ["PREFIX", "FACE", "STATE", "PEER"]);
        let state_of = |peer: &str| {
            let line = lines.iter().find(|line| line.get(3) == Some(&peer));
            line.unwrap_or_else(|| panic!("no {peer} in {text}"))[2]
        };
        assert_eq!((state_of(up), state_of(down)), ("up", "down"), "{text}");
        if arguments.ends_with(&["--fib"]) {
            assert_eq!(state_of("this router"), "up", "{text}");
        }
    }
    let hops = bed.json(&["route", "show", "/a/b"])["next_hops"].clone();
    let hops = hops.as_array().expect("a list");
    let states: Vec<_> = hops
        .iter()
        .map(|hop| (&hop["remote"], &hop["state"]))
        .collect();
    assert!(
        states.contains(&(&down.into(), &"down".into())),
        "{states:?}"
    );
}

#[test]
fn a_route_is_added_with_the_persistency_of_its_face() {
    let bed = Bed::new();
    let remote = "udp4://127.0.0.1:9";
    let persistency = || bed.json(&["face", "show", remote])["persistency"].clone();
    bed.text(&["route", "add", "/a", remote, "--persistency", "permanent"]);
    assert_eq!(persistency(), "permanent");
    // A face that exists stays as it is, and the tool says so.
    let output = bed.run(&["route", "add", "/b", remote, "--persistency", "persistent"]);
    assert!(output.status.success(), "{output:?}");
    let note = String::from_utf8(output.stderr).expect("text");
    assert!(note.contains("existed before and is permanent"), "{note}");
    assert!(
        note.contains("--persistency persistent` changes it"),
        "{note}"
    );
    assert_eq!(persistency(), "permanent");
    // Only peers make on-demand faces.
    let on_demand = [
        "route",
        "add",
        "/c",
        "udp4://127.0.0.1:7",
        "--persistency",
        "on-demand",
    ];
    let (code, error) = bed.failure(&on_demand);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("no face to udp4://127.0.0.1:7"), "{error}");
}
