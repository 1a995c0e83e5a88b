//! What a router that cannot start says, and how soon one with many routes does.

mod bed;

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Stdio};

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

/// A `tachonym run` that ends with the test.
struct Started {
    child: Child,
    /// What it printed until it was ready.
    lines: Vec<String>,
}

impl Started {
    fn new(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = bed::tachonym(&[&["run"], arguments].concat())
            .current_dir(folder)
            .env_remove("NDN_CLIENT_TRANSPORT")
            .env("HOME", folder)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let lines = stdout.lines().map(|line| line.expect("text"));
        let lines: Vec<_> = lines.take_while(|line| line != "ready").collect();
        Self { child, lines }
    }

    /// The value in the `export` line.
    fn exported(&self) -> Option<&str> {
        let mut lines = self.lines.iter();
        lines.find_map(|line| line.strip_prefix("export NDN_CLIENT_TRANSPORT="))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that is free for UDP and TCP.
fn free_port() -> String {
    for _ in 0..100 {
        let tcp = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        let port = tcp.local_addr().expect("bound").port();
        if UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return port.to_string();
        }
    }
    panic!("no port is free for both");
}

#[test]
fn routers_on_one_machine_need_a_socket_and_a_port_and_print_how_to_reach_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let ports = [free_port(), free_port()];
    let routers = ["first.sock", "second.sock"].map(|socket| {
        let port = &ports[usize::from(socket == "second.sock")];
        let options = ["--socket", socket, "--port", port];
        (port, Started::new(folder.path(), &options, &[]))
    });
    for (port, router) in &routers {
        for scheme in ["udp4", "tcp4"] {
            let line = format!("listening on {scheme}://0.0.0.0:{port}");
            assert!(router.lines.contains(&line), "{:?}", router.lines);
        }
        let exported = router.exported().expect("not the default socket");
        let status = bed::tachonym(&["status", "--json"])
            .env("NDN_CLIENT_TRANSPORT", exported)
            .output()
            .expect("it runs");
        assert!(status.status.success(), "{status:?}");
        let status = String::from_utf8(status.stdout).expect("text");
        assert!(status.contains(&format!("0.0.0.0:{port}")), "{status}");
    }
    // A third one at the port of the first says what to do.
    let third = bed::tachonym(&["run", "--socket", "third.sock", "--port", &ports[0]])
        .current_dir(folder.path())
        .output()
        .expect("it ends");
    let error = String::from_utf8(third.stderr).expect("text");
    assert!(error.contains("address already in use"), "{error}");
    assert!(error.contains("--port"), "{error}");
}

#[test]
fn a_router_that_every_program_finds_prints_no_export_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("tachonym.toml");
    std::fs::write(&config, quiet(folder.path())).expect("a file");
    let config = config.to_str().expect("text");
    let socket = folder.path().join("it's here.sock");
    let uri = format!("unix://{}", socket.display());
    let options = ["--config", config, "--socket", "it's here.sock"];
    let router = Started::new(folder.path(), &options, &[]);
    let quoted = format!("'{}'", uri.replace('\'', "'\\''"));
    assert_eq!(router.exported(), Some(&*quoted));
    drop(router);
    let environment = [("NDN_CLIENT_TRANSPORT", &*uri)];
    let router = Started::new(folder.path(), &options, &environment);
    assert_eq!(router.lines, [format!("listening on {uri}")]);
    drop(router);
    // Only tools of this router look into XDG_RUNTIME_DIR.
    let own = format!("unix://{}", folder.path().join("nfd/nfd.sock").display());
    let options_of_own = ["--config", config, "--socket", "nfd/nfd.sock"];
    let environment = [("XDG_RUNTIME_DIR", folder.path().to_str().expect("text"))];
    let router = Started::new(folder.path(), &options_of_own, &environment);
    assert_eq!(router.exported(), Some(&*own));
    drop(router);
    // Every program reads this file in its home directory.
    let ndn = folder.path().join(".ndn");
    std::fs::create_dir(&ndn).expect("a folder");
    std::fs::write(ndn.join("client.conf"), format!("transport={uri}\n")).expect("a file");
    let router = Started::new(folder.path(), &options, &[]);
    assert_eq!(router.exported(), None);
}
