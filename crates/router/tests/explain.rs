//! `tachonym explain`: what it says of each case, and what comes of the Interest that it sends.

mod bed;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tachonym_packet::{Component, Data, InterestView, Name, tlv};
use tachonym_protocol::{
    FibEntry, ForwarderStatus, NextHopRecord, RibEntry, Route, StrategyChoice, route_origin,
};

use bed::Bed;

/// Exit code and standard output.
fn outcome(output: &Output) -> (i32, String) {
    let code = output.status.code().expect("it ends by itself");
    (code, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The value of a row, and of those below it without a label.
fn value(text: &str, label: &str) -> String {
    let mut lines = text.lines().skip_while(|line| {
        line.strip_prefix(label)
            .is_none_or(|rest| !rest.starts_with("  "))
    });
    let first = lines.next().unwrap_or_else(|| panic!("no {label}: {text}"));
    let mut value = first[label.len()..].trim().to_owned();
    for line in lines.take_while(|line| line.starts_with("  ")) {
        value.push_str(" | ");
        value.push_str(line.trim());
    }
    value
}

/// Asks until `found` takes the answer.
fn until(bed: &Bed, arguments: &[&str], found: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..400 {
        let value = bed.json(arguments);
        if found(&value) {
            return value;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("{arguments:?}: {}", bed.json(arguments));
}

#[test]
fn a_name_without_a_route_is_refused_by_this_router() {
    let bed = Bed::new();
    let text = bed.text(&["explain", "/example/hello"]);
    assert_eq!(value(&text, "name"), "/example/hello");
    assert_eq!(
        value(&text, "content store"),
        "DRAM level: nothing | SSD level: none configured"
    );
    assert_eq!(value(&text, "pending"), "no");
    assert_eq!(
        value(&text, "route"),
        "none: no prefix of the name has a route"
    );
    assert_eq!(value(&text, "strategy"), "best-route, set at /");
    let step = "`tachonym route add /example FACEURI`, or start a producer on this machine";
    assert_eq!(value(&text, "next step"), step);
    let (code, text) = outcome(&bed.run(&["explain", "--send", "/example/hello"]));
    assert_eq!(code, 4, "{text}");
    let sent = value(&text, "sent");
    assert!(
        sent.starts_with("a Nack came after ") && sent.ends_with(": no-route"),
        "{sent}"
    );
    assert_eq!(value(&text, "from"), "this router");
    let dropped = value(&text, "dropped");
    assert!(
        dropped.starts_with("no-route: Interest from face "),
        "{dropped}"
    );
    assert_eq!(value(&text, "next step"), step);
    let value = bed.json(&["explain", "/example/hello"]);
    assert_eq!(value["route"], Value::Null);
    assert_eq!(value["content_store"]["ssd"], "not-configured");
    assert_eq!(value["next_step"], step);
    let drops = value["recent_drops"].as_array().expect("a list");
    assert_eq!((drops.len(), &drops[0]["reason"]), (1, &"no-route".into()));
    assert_eq!(drops[0]["name"], "/example/hello");
    assert_eq!(
        bed.json(&["explain", "/example/other"])["recent_drops"],
        json!([])
    );
    // With a route, the drop is what is left to see of the failure.
    let peer = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let remote = format!("udp4://{}", peer.local_addr().expect("bound"));
    bed.text(&["route", "add", "/example", &remote]);
    let step = bed.json(&["explain", "/example/hello"])["next_step"].clone();
    let step = step.as_str().expect("text");
    let expected = "nothing is in the way now, but ";
    assert!(
        step.starts_with(expected) && step.contains("dropped Interest for no-route"),
        "{step}"
    );
    let (code, error) = bed.failure(&["explain", "/"]);
    assert_eq!(code, 2, "{error}");
    let (code, error) = bed.failure(&["explain", "--from", "9999", "/example"]);
    assert_eq!(code, 5, "{error}");
}

#[test]
fn an_interest_is_answered_by_the_producer_and_then_by_the_content_store() {
    let bed = Bed::new();
    let _put = bed.serve(
        &["put", "/files/f", "-", "--json", "--freshness-ms", "60000"],
        b"text",
    );
    let asked = ["explain", "--can-be-prefix", "/files/f"];
    let text = bed.text(&asked);
    let hops = value(&text, "next hops");
    assert!(
        hops.starts_with("face ") && hops.ends_with("), cost 0, app, up, asked first"),
        "{hops}"
    );
    let step = "nothing is in the way: `tachonym peek --prefix /files/f`, or \
                `tachonym explain --send /files/f`";
    assert_eq!(value(&text, "next step"), step);
    assert!(hops.contains(" (tachonym (pid "), "{hops}");
    let face = hops.split(' ').nth(1).expect("a number");

    let sending = ["explain", "--send", "--can-be-prefix", "/files/f", "--json"];
    let (code, text) = outcome(&bed.run(&sending));
    let first: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (code, &first["sent"]["outcome"]),
        (0, &"data".into()),
        "{text}"
    );
    assert_eq!(first["sent"]["from"], "face");
    assert_eq!(first["sent"]["from_face"].to_string(), face);
    assert!(first["sent"]["after_ms"].as_f64().expect("a time") < 4_000.0);

    let cached = until(&bed, &asked, |value| {
        value["content_store"]["dram"] != Value::Null
    });
    assert_eq!(cached["content_store"]["dram"]["answers"], true);
    let text = bed.text(&asked);
    let store = value(&text, "content store");
    assert!(store.starts_with("DRAM level: hit, fresh for "), "{store}");
    let step = value(&text, "next step");
    assert_eq!(
        step,
        "the content store answers: `tachonym peek --prefix /files/f`"
    );
    let (code, text) = outcome(&bed.run(&["explain", "--send", "--can-be-prefix", "/files/f"]));
    assert_eq!(code, 0, "{text}");
    assert_eq!(value(&text, "from"), "this router's content store");
    assert!(value(&text, "sent").contains(": /files/f/v="), "{text}");
    // Data of `poke` is never fresh, and nothing else answers once it has ended.
    let poke = bed.serve(&["poke", "/stale", "--json"], b"text");
    bed.text(&["peek", "/stale"]);
    drop(poke);
    until(&bed, &["explain", "/stale"], |value| {
        value["route"] == Value::Null
    });
    let step = bed.json(&["explain", "--must-be-fresh", "/stale"])["next_step"].clone();
    let step = step.as_str().expect("text");
    assert!(
        step.ends_with("; `tachonym peek /stale` takes the stale copy"),
        "{step}"
    );
    // `explain` is no request: it counts neither as a hit nor as a miss.
    let lookups = || {
        let info = bed.json(&["cs", "info"]);
        ["hits", "misses"].map(|key| info[key].as_u64().expect("a number"))
    };
    let before = lookups();
    let exact = bed.json(&["explain", "/files/f"]);
    assert_eq!(exact["content_store"]["dram"], Value::Null);
    let cached = bed.json(&asked);
    assert_eq!(cached["content_store"]["dram"]["answers"], true);
    assert_eq!(lookups(), before);
}

#[test]
fn a_route_to_a_face_that_is_down_is_named_with_its_face() {
    let bed = Bed::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let remote = format!("tcp4://{}", listener.local_addr().expect("bound"));
    let made = bed.json(&["face", "create", &remote, "--persistency", "permanent"]);
    let face = made["face_id"].to_string();
    bed.text(&["route", "add", "/dead", &face]);
    drop(listener.accept().expect("it connects"));
    drop(listener);
    until(&bed, &["face", "show", &face], |face| {
        face["state"] == "down"
    });
    let text = bed.text(&["explain", "/dead/name"]);
    let described = format!("face {face} ({remote})");
    assert_eq!(
        value(&text, "next hops"),
        format!("{described}, cost 0, static, down, asked first: what is sent there is lost")
    );
    let step = format!("{described} is down: `tachonym face show {face}`, and check the peer");
    assert_eq!(value(&text, "next step"), step);
    let value = bed.json(&["explain", "/dead/name"]);
    assert_eq!(value["route"]["next_hops"][0]["use"], "face-down");
}

#[test]
fn a_nack_of_a_router_behind_this_one_is_told_from_its_own() {
    let [here, there] = [Bed::new(), Bed::new()];
    let remote = there.listening("tcp4");
    here.text(&["route", "add", "/far", &remote]);
    let (code, text) = outcome(&here.run(&["explain", "--send", "/far/name"]));
    assert_eq!(code, 4, "{text}");
    let from = value(&text, "from");
    assert!(
        from.starts_with("behind face ") && from.contains(&remote),
        "{from}"
    );
    let step = value(&text, "next step");
    let expected = "run `tachonym explain /far/name` on the router behind face ";
    assert!(step.starts_with(expected), "{step}");
    // There it is.
    let text = there.text(&["explain", "/far/name"]);
    assert!(value(&text, "next step").starts_with("`tachonym route add /far FACEURI`"));
}

#[test]
fn a_silent_next_hop_is_named_while_the_interest_is_pending_and_after_it() {
    let bed = Bed::new();
    let peer = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let remote = format!("udp4://{}", peer.local_addr().expect("bound"));
    bed.text(&["route", "add", "/silent", &remote]);
    let sending = ["explain", "--send", "--lifetime-ms", "1500", "/silent/x"];
    let sending = bed.command(&sending).spawn().expect("it runs");
    let is_pending = |value: &Value| {
        let pending = &value["pending"][0];
        pending["asked"][0]["nack"] == Value::Null && pending["waiting"][0].is_object()
    };
    let pending = until(&bed, &["explain", "/silent/x"], is_pending);
    let face = &pending["pending"][0]["asked"][0]["face_id"];
    let text = bed.text(&["explain", "/silent/x"]);
    let lines = value(&text, "pending");
    assert!(lines.starts_with("yes, expires in "), "{lines}");
    let sent_to = format!("sent to face {face} ({remote}) ");
    assert!(
        lines.contains(&sent_to) && lines.ends_with("no answer yet"),
        "{lines}"
    );
    let step = value(&text, "next step");
    let expected = format!("face {face} ({remote}) has not answered for ");
    assert!(step.starts_with(&expected), "{step}");
    // The same name with other selectors is another Interest.
    let step = bed.json(&["explain", "--must-be-fresh", "/silent/x"])["next_step"].clone();
    let step = step.as_str().expect("text");
    assert!(
        step.starts_with("nothing is in the way: `tachonym peek --fresh"),
        "{step}"
    );

    let (code, text) = outcome(&sending.wait_with_output().expect("it ends"));
    assert_eq!(code, 3, "{text}");
    let sent = value(&text, "sent");
    assert!(
        sent.starts_with("nothing came within 1.5 s | sent to "),
        "{sent}"
    );
    let expected = format!("face {face} ({remote}) does not answer: ");
    assert!(value(&text, "next step").starts_with(&expected), "{text}");
    assert_eq!(bed.json(&["explain", "/silent/x"])["pending"], json!([]));
}

#[test]
fn scope_is_explained_by_the_face_that_asks() {
    let bed = Bed::new();
    let peer = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let remote = format!("udp4://{}", peer.local_addr().expect("bound"));
    bed.text(&["route", "add", "/a", &remote]);
    let text = bed.text(&["explain", "--from", &remote, "/localhost/nfd/status"]);
    assert!(value(&text, "scope").starts_with("refused: "), "{text}");
    let step = "ask from a program on the router's machine, over its Unix socket";
    assert_eq!(value(&text, "next step"), step);
    let text = bed.text(&["explain", "--from", &remote, "/a/b"]);
    let hops = value(&text, "next hops");
    assert!(
        hops.ends_with("not used: the Interest comes from it"),
        "{hops}"
    );
    assert!(value(&text, "next step").starts_with("the route leads back to the face"));
    let text = bed.text(&["explain", "/localhost/nfd/status"]);
    assert!(
        value(&text, "next hops").starts_with("face 1 (this router), cost 0"),
        "{text}"
    );
}

/// A forwarder of another kind, which answers the datasets of the standard protocol and
/// nothing else. It ends with the connection of one program.
fn another_forwarder(socket: &Path) {
    let listener = UnixListener::bind(socket).expect("it binds");
    let name = |uri: &str| -> Name { uri.parse().expect("a name") };
    let status = ForwarderStatus {
        nfd_version: "22.12".into(),
        ..ForwarderStatus::default()
    };
    let hop = NextHopRecord {
        face_id: 300,
        cost: 7,
    };
    let fib = FibEntry {
        name: name("/a"),
        next_hops: vec![hop],
    };
    let route = Route {
        face_id: 300,
        origin: route_origin::NLSR,
        cost: 7,
        flags: 1,
        expiration_period_ms: None,
    };
    let rib = RibEntry {
        name: name("/a"),
        routes: vec![route],
    };
    let strategy = StrategyChoice {
        name: name("/"),
        strategy: name("/localhost/nfd/strategy/multicast/v=4"),
    };
    let mut general = Vec::new();
    status.encode_value_into(&mut general);
    let datasets = [
        ("/localhost/nfd/status/general", general),
        ("/localhost/nfd/faces/list", Vec::new()),
        ("/localhost/nfd/fib/list", fib.encode()),
        ("/localhost/nfd/rib/list", rib.encode()),
        ("/localhost/nfd/strategy-choice/list", strategy.encode()),
    ];
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a program");
        let (mut pending, mut room) = (Vec::new(), vec![0; 9000]);
        while let Ok(n_read @ 1..) = stream.read(&mut room) {
            pending.extend_from_slice(&room[..n_read]);
            while let Ok(Some(len)) = tlv::element_len(&pending)
                && len <= pending.len()
            {
                let frame: Vec<u8> = pending.drain(..len).collect();
                let asked = InterestView::parse(&frame)
                    .expect("an Interest")
                    .name()
                    .to_name();
                let found = datasets.iter().find(|(uri, _)| name(uri) == asked);
                let (_, content) = found.unwrap_or_else(|| panic!("asked for {asked}"));
                let last = Component::segment(0);
                let data = Data {
                    content: content.clone(),
                    freshness_period_ms: Some(1),
                    final_block_id: Some(last.clone()),
                    ..Data::new(asked.with(&Component::version(1)).with(&last))
                };
                let _ = stream.write_all(&data.encode_with_digest());
            }
        }
    });
}

#[test]
fn of_another_forwarder_the_standard_datasets_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("nfd");
    another_forwarder(&socket);
    let transport = format!("unix://{}", socket.display());
    let mut command = bed::tachonym(&["explain", "/a/b", "--transport", &transport]);
    let (code, text) = outcome(&command.output().expect("it runs"));
    assert_eq!(code, 0, "{text}");
    let unknown = "unknown: 22.12 does not answer `explain`";
    assert_eq!(value(&text, "content store"), unknown);
    assert_eq!(value(&text, "pending"), unknown);
    assert_eq!(value(&text, "route"), "/a");
    // No such face is listed.
    let hops = "face 300, cost 7, nlsr, gone: the route goes with it";
    assert_eq!(value(&text, "next hops"), hops);
    assert_eq!(value(&text, "strategy"), "multicast, set at /");
}

#[test]
fn without_a_router_the_exit_code_is_6() {
    let folder = tempfile::tempdir().expect("a folder");
    let transport = format!("unix://{}", folder.path().join("none").display());
    let mut command = bed::tachonym(&["explain", "/a", "--transport", &transport]);
    assert_eq!(outcome(&command.output().expect("it runs")).0, 6);
}
