//! `tachonym keys`, and what is signed with them.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

struct Store {
    folder: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path.to_str().expect("text").to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tachonym"));
        command
            .arg("keys")
            .args(arguments)
            .arg("--key-store")
            .arg(self.folder.path().join("store"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout)
            .expect("text")
            .trim_end()
            .to_owned()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        serde_json::from_str(&self.text(&arguments)).expect("JSON")
    }

    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        String::from_utf8(output.stderr).expect("text")
    }
}

fn testdata(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../security/testdata");
    path.join(name).to_str().expect("text").to_owned()
}

#[test]
fn keys_of_every_kind_are_made_listed_and_deleted() {
    let store = Store::new();
    for kind in ["ecdsa", "rsa", "ed25519", "hmac"] {
        let identity = format!("/me/{kind}");
        let key = store.text(&["generate", &identity, "--type", kind]);
        assert!(key.starts_with(&format!("{identity}/KEY/")), "{key}");
        let listed = store.json(&["list"]);
        let identities = listed["identities"].as_array().expect("a list");
        let found = identities.iter().find(|i| i["name"] == identity.as_str());
        let found = &found.expect("it is listed")["keys"][0];
        assert_eq!(found["kind"], kind);
        let n_certificates = found["certificates"].as_array().expect("a list").len();
        assert_eq!(n_certificates, usize::from(kind != "hmac"));
        store.text(&["delete", &key]);
    }
    let output = store.run(&["list"]);
    assert!(output.status.success() && output.stdout.is_empty());
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(told.contains("tachonym keys generate"), "{told}");
    assert_eq!(store.json(&["list"])["identities"], serde_json::json!([]));
}

#[test]
fn a_certificate_comes_from_standard_input_too() {
    let store = Store::new();
    store.text(&["generate", "/me"]);
    let certificate = store.file("me", &store.text(&["certificate", "/me"]));
    for arguments in [
        &["show", "-"][..],
        &["issue", "-"],
        &["verify", "-", "--issuer", &certificate],
        &["verify", &certificate, "--issuer", "-"],
        &["install", "-"],
    ] {
        let mut command = store.command(arguments);
        let input = std::fs::File::open(&certificate).expect("a file");
        let output = command.stdin(input).output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn a_certificate_is_issued_installed_and_verified() {
    let store = Store::new();
    store.text(&["generate", "/authority"]);
    store.text(&["generate", "/authority/site"]);
    let authority = store.file("authority", &store.text(&["certificate", "/authority"]));
    let request = store.file("request", &store.text(&["request", "/authority/site"]));
    let issue = [
        "issue",
        &request,
        "--by",
        "/authority",
        "--days",
        "7",
        "--issuer-id",
        "boss",
    ];
    let issued = store.file("issued", &store.text(&issue));
    let shown = store.text(&["show", &issued]);
    assert!(shown.contains("/boss/"), "{shown}");
    assert!(shown.contains("signed by"), "{shown}");
    assert!(shown.contains("SignatureSha256WithEcdsa (3)"), "{shown}");
    let verdict = store.text(&["verify", &issued, "--issuer", &authority]);
    assert!(verdict.contains("signed by /authority/KEY/"), "{verdict}");
    let output = store.run(&["verify", &request, "--issuer", &authority]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.contains("not signed by"), "{error}");
    let name = store.text(&["install", &issued]);
    store.text(&["default", &name]);
    let listed = store.text(&["list"]);
    assert!(listed.contains(&format!("* {name}")), "{listed}");
}

#[test]
fn a_key_travels_in_a_safe_bag() {
    let (here, there) = (Store::new(), Store::new());
    let key = here.text(&["generate", "/traveller"]);
    let password = here.file("password", "correct horse\n");
    let wrong = here.file("wrong", "battery staple\n");
    let bag = here.text(&["export", "/traveller", "--password-file", &password]);
    let bag = here.file("bag", &bag);
    let error = there.error(&["import", &bag, "--password-file", &wrong]);
    assert!(error.contains("password"), "{error}");
    assert_eq!(
        there.text(&["import", &bag, "--password-file", &password]),
        key
    );
    assert_eq!(
        here.text(&["certificate", "/traveller"]),
        there.text(&["certificate", "/traveller"])
    );
}

#[test]
fn keys_of_ndnsec_are_taken() {
    let store = Store::new();
    let shown = store.json(&["show", &testdata("operator.ndncert")]);
    let identity = shown["identity"].as_str().expect("text");
    let password = store.file("password", "secret");
    let key = store.text(&[
        "import",
        &testdata("operator.safebag"),
        "--password-file",
        &password,
    ]);
    assert!(key.starts_with(identity), "{key} is not of {identity}");
}

#[test]
fn what_is_no_certificate_or_not_there_is_told() {
    let store = Store::new();
    let garbage = store.file("garbage", "[no certificate]");
    let error = store.error(&["show", &garbage]);
    assert!(error.contains("holds no certificate"), "{error}");
    assert!(error.trim_end().ends_with("not base64"), "{error}");
    assert!(error.contains(&garbage), "{error}");
    assert!(store.error(&["install", "/nowhere"]).contains("/nowhere"));
    assert!(store.error(&["certificate", "/nobody"]).contains("/nobody"));
    assert!(
        store
            .error(&["import", &garbage])
            .contains("holds no SafeBag")
    );
    store.text(&["generate", "/me"]);
    let error = store.error(&["export", "/me"]);
    assert!(error.contains("--password-file"), "{error}");
}

#[test]
fn data_is_signed_by_an_identity() {
    let store = Store::new();
    store.text(&["generate", "/signer"]);
    let folder = store.folder.path();
    let router = tachonym_router::Router::start(
        &tachonym_router::config::Config::parse(&format!(
            "[faces]\nunix.path = \"{}\"\nudp.listen = []\ntcp.listen = []\nwebsocket.listen = []\n",
            folder.join("s").display()
        ))
        .expect("good"),
    )
    .expect("it starts");
    let transport = format!("unix://{}", folder.join("s").display());
    let tool = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tachonym"));
        command.args(arguments).args(["--transport", &transport]);
        command
    };
    let content = store.file("content", "signed");
    let mut poke = tool(&["poke", "/signer/x", "--identity", "/signer", "--json"]);
    poke.arg("--key-store").arg(folder.join("store"));
    poke.stdin(std::fs::File::open(&content).expect("a file"));
    poke.stdout(std::process::Stdio::piped());
    let mut poke = poke.spawn().expect("it runs");
    let mut ready = String::new();
    let mut stdout = std::io::BufReader::new(poke.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut stdout, &mut ready).expect("a line");
    let peeked = tool(&["peek", "/signer/x", "--packet"])
        .output()
        .expect("it runs");
    assert!(poke.wait().expect("it ends").success());
    let data = tachonym_packet::DataView::parse(&peeked.stdout).expect("a Data");
    let certificate = store.text(&["certificate", "/signer"]);
    let certificate = tachonym_security::Certificate::from_base64(&certificate).expect("one");
    let key = certificate.verifying_key().expect("a key");
    tachonym_security::verify_data(&data, &key).expect("it is signed by that key");
    router.stop().expect("it stops");
}
