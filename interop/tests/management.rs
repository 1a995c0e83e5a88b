//! Management clients of other libraries, unmodified, against the router.

use std::process::Command;

use serde_json::{Value, json};
use tachonym_interop::{
    EVERYTHING_LOCAL, NEIGHBOURS, Peer, Router, home, installed, output_of, write_noise,
};

fn pynfdc(transport: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(installed("python/bin/pynfdc"));
    command.args(arguments).env("HOME", home());
    output_of(command.env("NDN_CLIENT_TRANSPORT", transport))
}

fn ndnts(transport: &str, verb: &str, fields: &Value) -> Value {
    Peer::Ndnts.run(transport, &["manage", verb, &fields.to_string()])
}

/// Has `manage` do its work over each transport that `peer` has, given by its
/// FaceUri.
fn over_each_transport(peer: Peer, manage: impl Fn(&Router, &str)) {
    let router = Router::start_with(EVERYTHING_LOCAL);
    for over in peer.transports() {
        manage(&router, router.uri(over));
    }
}

/// The output of a tool of the project.
fn own(router: &Router, arguments: &[&str]) -> Value {
    let mut arguments = arguments.to_vec();
    arguments.push("--json");
    serde_json::from_str(&router.tool(&arguments)).expect("JSON")
}

fn routes_of(router: &Router, prefix: &str) -> Vec<Value> {
    let entries = own(router, &["route", "list", "--prefix", prefix]);
    let entries = entries.as_array().expect("a list").iter();
    entries
        .flat_map(|entry| entry["routes"].as_array().expect("a list").clone())
        .collect()
}

#[test]
fn pynfdc_makes_and_removes_faces_and_routes() {
    over_each_transport(Peer::PythonNdn, |router, transport| {
        let remote = "udp4://127.0.0.1:9";
        let made = pynfdc(transport, &["New-Face", remote]);
        assert!(made.contains("200"), "{made}");
        let face = own(router, &["face", "show", remote])["face_id"].to_string();
        let added = pynfdc(transport, &["New-Route", "/py", &face]);
        assert!(added.contains("200"), "{added}");
        assert_eq!(routes_of(router, "/py").len(), 1);
        assert!(pynfdc(transport, &["Get-Route"]).contains("/py"));
        assert!(pynfdc(transport, &["Get-Face"]).contains(remote));
        let removed = pynfdc(transport, &["Remove-Route", "/py", &face]);
        assert!(removed.contains("200"), "{removed}");
        assert_eq!(routes_of(router, "/py").len(), 0);
        pynfdc(transport, &["Remove-Face", &face]);
        assert!(!pynfdc(transport, &["Get-Face"]).contains(remote));
    });
}

#[test]
fn pynfdc_changes_strategies_and_shows_the_status() {
    over_each_transport(Peer::PythonNdn, |router, transport| {
        let set = pynfdc(transport, &["Set-Strategy", "/py", "multicast"]);
        assert!(set.contains("200"), "{set}");
        let shown = own(router, &["strategy", "show", "/py/x"]);
        assert_eq!(shown["prefix"], "/py");
        assert!(pynfdc(transport, &["Get-Strategy"]).contains("multicast"));
        pynfdc(transport, &["Remove-Strategy", "/py"]);
        assert_eq!(own(router, &["strategy", "show", "/py/x"])["prefix"], "/");
        let status = pynfdc(transport, &["Get-Status"]);
        assert!(status.contains("tachonym"), "{status}");
    });
}

#[test]
fn python_ndn_registers_with_both_forms_of_commands() {
    let router = Router::start();
    let file = router.folder().join("file");
    std::fs::write(&file, "x").expect("a file");
    let serving = Peer::PythonNdn.put(router.uri("tcp4"), "/py/new", &file, &["--key"]);
    assert_eq!(routes_of(&router, "/py/new").len(), 1);
    drop(serving);
    let done = Peer::PythonNdn.run(router.uri("unix"), &["legacy-register", "/py/old"]);
    assert_eq!(done["registered"], true);
}

#[test]
fn ndnts_makes_and_removes_faces_and_routes() {
    over_each_transport(Peer::Ndnts, |router, transport| {
        let remote = "udp4://127.0.0.1:9";
        let made = ndnts(transport, "faces/create", &json!({ "uri": remote }));
        assert_eq!(made["code"], 200, "{made}");
        let face = made["faceId"].as_u64().expect("a number");
        let route = json!({ "name": "/ts", "faceId": face, "cost": 5 });
        assert_eq!(ndnts(transport, "rib/register", &route)["code"], 200);
        assert_eq!(routes_of(router, "/ts")[0]["cost"], 5);
        let listed = ndnts(transport, "rib", &json!({})).to_string();
        assert!(listed.contains("/8=ts"), "{listed}");
        let faces = ndnts(transport, "query", &json!({ "remoteUri": remote })).to_string();
        assert!(faces.contains(remote), "{faces}");
        let route = json!({ "name": "/ts", "faceId": face });
        assert_eq!(ndnts(transport, "rib/unregister", &route)["code"], 200);
        assert_eq!(routes_of(router, "/ts").len(), 0);
        let gone = ndnts(transport, "faces/destroy", &json!({ "faceId": face }));
        assert_eq!(gone["code"], 200);
    });
}

#[test]
fn ndnts_changes_strategies_and_reads_every_dataset() {
    over_each_transport(Peer::Ndnts, |router, transport| {
        let strategy = "/localhost/nfd/strategy/multicast";
        let choice = json!({ "name": "/ts", "strategy": strategy });
        assert_eq!(
            ndnts(transport, "strategy-choice/set", &choice)["code"],
            200
        );
        assert_eq!(own(router, &["strategy", "show", "/ts/x"])["prefix"], "/ts");
        for dataset in ["status", "faces", "cs", "strategies", "rib"] {
            let listed = ndnts(transport, dataset, &json!({}));
            assert!(!listed["entries"].is_null(), "{dataset}: {listed}");
        }
        let prefix = json!({ "name": "/ts" });
        assert_eq!(
            ndnts(transport, "strategy-choice/unset", &prefix)["code"],
            200
        );
        assert_eq!(own(router, &["strategy", "show", "/ts/x"])["prefix"], "/");
        let wrong = json!({ "name": "/ts", "strategy": "/no/such" });
        assert_eq!(ndnts(transport, "strategy-choice/set", &wrong)["code"], 404);
        assert!(ndnts(transport, "erase", &prefix)["count"].is_number());
    });
}

/// Has `peer` register and unregister over the transport `over` of `router`.
fn register_and_unregister(router: &Router, peer: Peer, over: &str) {
    let name = format!("/held/{peer:?}/{over}");
    let mut registration = peer.register(router.uri(over), &name);
    let routes = routes_of(router, &name);
    assert_eq!(routes.len(), 1, "{name}: {routes:?}");
    registration.undo();
    assert!(routes_of(router, &name).is_empty(), "{name}");
    // It went by the command: the face is still there.
    let face = &routes[0]["face_id"];
    let shown = own(router, &["face", "show", &face.to_string()]);
    assert_eq!(shown["face_id"], *face, "{name}");
}

#[test]
fn each_library_registers_and_unregisters_over_every_transport() {
    let router = Router::start_with(EVERYTHING_LOCAL);
    for peer in [Peer::PythonNdn, Peer::Ndnts, Peer::Jndn] {
        for over in peer.transports() {
            register_and_unregister(&router, peer, over);
        }
    }
}

#[test]
fn programs_register_as_neighbours_over_udp_and_websocket() {
    // By default neither is local: what comes over them is no command of this machine.
    let router = Router::start_with(NEIGHBOURS);
    for (peer, over) in [
        (Peer::Ndnts, "udp4"),
        (Peer::Ndnts, "ws"),
        (Peer::Jndn, "udp4"),
    ] {
        register_and_unregister(&router, peer, over);
    }
    let file = router.folder().join("file");
    let sha256 = write_noise(&file, 20_000, 9);
    for over in ["udp4", "ws"] {
        let name = format!("/neighbour/{over}");
        let _serving = Peer::Tachonym.put(router.uri(over), &name, &file, &[]);
        assert_eq!(Peer::Ndnts.get(router.uri("unix"), &name).sha256, sha256);
    }
}
