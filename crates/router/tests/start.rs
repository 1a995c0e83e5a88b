//! What a router that cannot start says, and how soon one with many routes does.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;

use tachonym_client::{Controller, Endpoint};
use tachonym_protocol::{FaceUri, face_flags};
use tachonym_router::Router;
use tachonym_router::config::Config;
use tachonym_security::Signer;

/// A router of its own folder that listens on its Unix socket alone.
fn quiet(folder: &Path) -> String {
    format!(
        "[faces]\nunix.path = \"{}\"\nudp.listen = []\ntcp.listen = []\nwebsocket.listen = []\n",
        folder.join("a/b/nfd.sock").display()
    )
}

fn refusal(config: &Config) -> String {
    let error = Router::start(config).err().expect("it cannot start");
    format!("{error:#}")
}

#[test]
fn an_address_that_is_taken_names_key_line_uri_and_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let file = folder.path().join("tachonym.toml");
    for (scheme, key, address) in [
        ("tcp4", "tcp", tcp.local_addr()),
        ("udp4", "udp", udp.local_addr()),
        ("ws", "websocket", tcp.local_addr()),
    ] {
        let address = address.expect("bound");
        let text = quiet(folder.path()).replace(
            &format!("{key}.listen = []"),
            &format!("{key}.listen = [\n  \"127.0.0.1:0\",\n  \"{address}\",\n]"),
        );
        let line = 1 + text
            .lines()
            .position(|l| l.contains(&address.to_string()))
            .expect("there");
        let rest = format!(
            "faces.{key}.listen[1]: cannot listen on {scheme}://{address}: address already in \
             use; stop the other program, or use another port (--port, or faces.{key}.listen)"
        );
        assert_eq!(refusal(&Config::parse(&text).expect("good")), rest);
        std::fs::write(&file, &text).expect("written");
        let config = Config::load(&file).expect("good");
        assert_eq!(
            refusal(&config),
            format!("{}:{line}: {rest}", file.display())
        );
    }
}

#[test]
fn an_address_of_another_machine_is_told_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = quiet(folder.path()).replace("tcp.listen = []", "tcp.listen = [\"192.0.2.1:6363\"]");
    let told = refusal(&Config::parse(&text).expect("good"));
    assert!(told.contains("tcp4://192.0.2.1:6363"), "{told}");
    assert!(
        told.ends_with("`ip address` shows in faces.tcp.listen"),
        "{told}"
    );
}

#[test]
fn a_static_face_to_nobody_names_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let absent = folder.path().join("absent.sock");
    let uri = format!("unix://{}", absent.display());
    let face = format!("{}[[face]]\nremote = \"{uri}\"\n", quiet(folder.path()));
    let told = refusal(&Config::parse(&face).expect("good"));
    assert!(
        told.starts_with(&format!("face[0].remote: cannot create the face to {uri}")),
        "{told}"
    );
    assert!(
        told.contains("; start the program that listens there first"),
        "{told}"
    );
    let route = format!(
        "{}[[route]]\nprefix = \"/a\"\nnext_hop = \"udp4://192.0.2.1\"\n\
         [[route]]\nprefix = \"/b\"\nnext_hop = \"{uri}\"\n",
        quiet(folder.path())
    );
    let told = refusal(&Config::parse(&route).expect("good"));
    assert!(told.starts_with("route[1].next_hop: "), "{told}");
}

#[test]
fn static_faces_have_the_link_options_that_they_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let face =
        |port: u16, keys: &str| format!("[[face]]\nremote = \"udp4://127.0.0.1:{port}\"\n{keys}\n");
    let text = quiet(folder.path())
        + &face(
            9,
            "reliability = true\nlocal_fields = true\nlocality = \"loopback\"",
        )
        + &face(10, "congestion_marking = false")
        + &face(11, "");
    let router = Router::start(&Config::parse(&text).expect("good")).expect("it starts");
    let socket = folder.path().join("a/b/nfd.sock");
    let uri = FaceUri::Unix(socket.to_string_lossy().into_owned());
    let mut endpoint = Endpoint::connect(&uri).expect("it listens");
    let faces = Controller::new(&mut endpoint, Signer::digest())
        .faces()
        .expect("an answer");
    let flags = |port: u16| {
        let remote = format!("udp4://127.0.0.1:{port}");
        let face = faces.iter().find(|face| face.uri == remote).expect("made");
        let has = |flag| face.flags & flag != 0;
        (
            has(face_flags::LP_RELIABILITY),
            has(face_flags::LOCAL_FIELDS),
            has(face_flags::CONGESTION_MARKING),
        )
    };
    assert_eq!(flags(9), (true, true, true));
    assert_eq!(flags(10), (false, false, false));
    assert_eq!(flags(11), (false, false, true));
    drop(router);

    // UDP is not local by default.
    let text = quiet(folder.path()) + &face(9, "local_fields = true");
    let told = refusal(&Config::parse(&text).expect("good"));
    assert!(told.contains("remove its local_fields"), "{told}");

    let text = quiet(folder.path())
        + "[[face]]\nremote = \"udp4://192.0.2.1:6363\"\nlocal_fields = true\n";
    let told = refusal(&Config::parse(&text).expect("good"));
    // A machine without any network does not even know a way there.
    let remedies = ["remove its local_fields", "check that the network is up"];
    assert!(remedies.iter().any(|r| told.contains(r)), "{told}");
}

#[test]
fn a_hundred_thousand_static_routes_are_there_at_start() {
    use std::fmt::Write as _;
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = quiet(folder.path());
    for i in 0..100_000 {
        let _ = write!(
            text,
            "[[route]]\nprefix = \"/r/{i}\"\nnext_hop = \"udp4://192.0.2.{}:6363\"\n",
            i % 200
        );
    }
    let config = Config::parse(&text).expect("good");
    let router = Router::start(&config).expect("it starts");
    // A face serves all the routes to its remote.
    assert_eq!(router.snapshot().expect("it runs").n_faces, 200);
    router.stop().expect("it ran well");
}
