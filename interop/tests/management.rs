//! Management clients of other libraries, unmodified, against the router.

use std::process::Command;

use serde_json::{Value, json};
use tachonym_interop::{Peer, Router, home, installed, output_of};

fn pynfdc(router: &Router, arguments: &[&str]) -> String {
    let mut command = Command::new(installed("python/bin/pynfdc"));
    command.args(arguments).env("HOME", home());
    output_of(command.env("NDN_CLIENT_TRANSPORT", router.uri("unix")))
}

fn ndnts(router: &Router, verb: &str, fields: &Value) -> Value {
    Peer::Ndnts.run(router.uri("unix"), &["manage", verb, &fields.to_string()])
}

/// What the router itself says.
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
    let router = Router::start();
    let remote = "udp4://127.0.0.1:9";
    let made = pynfdc(&router, &["New-Face", remote]);
    assert!(made.contains("200"), "{made}");
    let face = own(&router, &["face", "show", remote])["face_id"].to_string();
    let added = pynfdc(&router, &["New-Route", "/py", &face]);
    assert!(added.contains("200"), "{added}");
    assert_eq!(routes_of(&router, "/py").len(), 1);
    assert!(pynfdc(&router, &["Get-Route"]).contains("/py"));
    assert!(pynfdc(&router, &["Get-Face"]).contains(remote));
    let removed = pynfdc(&router, &["Remove-Route", "/py", &face]);
    assert!(removed.contains("200"), "{removed}");
    assert_eq!(routes_of(&router, "/py").len(), 0);
    pynfdc(&router, &["Remove-Face", &face]);
    assert!(!pynfdc(&router, &["Get-Face"]).contains(remote));
}

#[test]
fn pynfdc_changes_strategies_and_shows_the_status() {
    let router = Router::start();
    let set = pynfdc(&router, &["Set-Strategy", "/py", "multicast"]);
    assert!(set.contains("200"), "{set}");
    let shown = own(&router, &["strategy", "show", "/py/x"]);
    assert_eq!(shown["prefix"], "/py");
    assert!(pynfdc(&router, &["Get-Strategy"]).contains("multicast"));
    pynfdc(&router, &["Remove-Strategy", "/py"]);
    assert_eq!(own(&router, &["strategy", "show", "/py/x"])["prefix"], "/");
    let status = pynfdc(&router, &["Get-Status"]);
    assert!(status.contains("tachonym"), "{status}");
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
    let router = Router::start();
    let remote = "udp4://127.0.0.1:9";
    let made = ndnts(&router, "faces/create", &json!({ "uri": remote }));
    assert_eq!(made["code"], 200, "{made}");
    let face = made["faceId"].as_u64().expect("a number");
    let route = json!({ "name": "/ts", "faceId": face, "cost": 5 });
    assert_eq!(ndnts(&router, "rib/register", &route)["code"], 200);
    assert_eq!(routes_of(&router, "/ts")[0]["cost"], 5);
    let listed = ndnts(&router, "rib", &json!({})).to_string();
    assert!(listed.contains("/8=ts"), "{listed}");
    let faces = ndnts(&router, "query", &json!({ "remoteUri": remote })).to_string();
    assert!(faces.contains(remote), "{faces}");
    let route = json!({ "name": "/ts", "faceId": face });
    assert_eq!(ndnts(&router, "rib/unregister", &route)["code"], 200);
    assert_eq!(routes_of(&router, "/ts").len(), 0);
    let gone = ndnts(&router, "faces/destroy", &json!({ "faceId": face }));
    assert_eq!(gone["code"], 200);
}

#[test]
fn ndnts_changes_strategies_and_reads_every_dataset() {
    let router = Router::start();
    let strategy = "/localhost/nfd/strategy/multicast";
    let choice = json!({ "name": "/ts", "strategy": strategy });
    assert_eq!(ndnts(&router, "strategy-choice/set", &choice)["code"], 200);
    assert_eq!(
        own(&router, &["strategy", "show", "/ts/x"])["prefix"],
        "/ts"
    );
    for dataset in ["status", "faces", "cs", "strategies", "rib"] {
        let listed = ndnts(&router, dataset, &json!({}));
        assert!(!listed["entries"].is_null(), "{dataset}: {listed}");
    }
    let prefix = json!({ "name": "/ts" });
    assert_eq!(
        ndnts(&router, "strategy-choice/unset", &prefix)["code"],
        200
    );
    assert_eq!(own(&router, &["strategy", "show", "/ts/x"])["prefix"], "/");
    let wrong = json!({ "name": "/ts", "strategy": "/no/such" });
    assert_eq!(ndnts(&router, "strategy-choice/set", &wrong)["code"], 404);
    assert!(ndnts(&router, "erase", &prefix)["count"].is_number());
}
