//! Commands that an operator signs, given by the tools to a router that obeys
//! nobody else.

mod bed;

use bed::{Bed, generate};

/// A router whose routes and faces only `/operator` of the key store `mine` may
/// change. The key store `other` has a key of the same identity.
fn bed() -> Bed {
    Bed::with(|folder| {
        let certificate = folder.join("operator.ndncert");
        let text = generate(&folder.join("mine"), "/operator");
        std::fs::write(&certificate, text).expect("a file");
        generate(&folder.join("other"), "/operator");
        format!(
            "[[management.authorize]]\nmodules = [\"faces\", \"rib\"]\nanchors = [\"{}\"]\n",
            certificate.display()
        )
    })
}

#[test]
fn an_operator_is_obeyed_wherever_the_identity_stands() {
    let bed = bed();
    let store = bed.path("mine");
    let signed = [
        "--identity",
        "/operator",
        "--key-store",
        store.to_str().expect("text"),
    ];
    let remote = "udp4://127.0.0.1:9";
    let add = |prefix: &'static str| ["add", prefix, remote];
    for arguments in [
        [&["route"][..], &add("/behind"), &signed].concat(),
        [&["route"][..], &signed, &add("/before")].concat(),
        [&["route"][..], &signed[..2], &add("/around"), &signed[2..]].concat(),
    ] {
        bed.text(&arguments);
    }
    let routes = bed.json(&["route", "list"]);
    let routes = routes.as_array().expect("a list");
    let prefixes: Vec<_> = routes.iter().map(|route| &route["prefix"]).collect();
    assert_eq!(prefixes, ["/around", "/before", "/behind"]);
}

#[test]
fn others_are_refused_and_change_nothing() {
    let bed = bed();
    let store = bed.path("other");
    let other = ["--key-store", store.to_str().expect("text")];
    let other = [&other[..], &["--identity", "/operator"]].concat();
    let add = ["route", "add", "/x", "udp4://127.0.0.1:9"];
    for signed in [&[][..], &other] {
        let (code, error) = bed.failure(&[&add, signed].concat());
        assert_eq!(code, 5, "{signed:?}: {error}");
        assert!(error.contains("403"), "{error}");
    }
    assert_eq!(bed.json(&["route", "list"]), serde_json::json!([]));
    let (code, error) = bed.failure(&[&add[..], &["--identity", "/nobody"], &other[..2]].concat());
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("cannot sign as /nobody"), "{error}");
}
