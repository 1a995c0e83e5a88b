//! What an operator sees of the memory of the tables.

mod bed;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use bed::Bed;

#[test]
fn status_tells_the_pages_of_the_tables_beside_what_is_configured() {
    for (extra, asked_for) in [("", "auto"), ("memory.pages = \"1g\"\n", "1g")] {
        let bed = Bed::with(|_| extra.to_owned());
        let memory = bed.json(&["status"])["memory"].clone();
        assert_eq!(memory["asked_for"], asked_for);
        let kinds = ["base", "transparent", "huge_2m", "huge_1g"];
        let n_bytes = kinds.map(|kind| memory[format!("{kind}_bytes")].as_u64());
        let n_bytes = n_bytes.map(|n_bytes| n_bytes.expect("a number"));
        // The FIB holds the routes of management from the start.
        assert!(n_bytes.iter().sum::<u64>() > 0, "{memory}");

        let told = bed.text(&["status"]);
        let line = told.lines().find(|line| line.starts_with("table memory"));
        let line = line.expect("a line for it");
        assert!(
            line.ends_with(&format!("(configured: {asked_for})")),
            "{line}"
        );
        let n_kinds = n_bytes.iter().filter(|&&n_bytes| n_bytes > 0).count();
        assert_eq!(line.matches(" pages").count(), n_kinds, "{line}");
    }
}

/// `ulimit -v` bounds what a program may reserve, not only what it uses.
#[test]
fn a_router_starts_where_addresses_are_limited() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("tachonym.toml");
    let socket = folder.path().join("nfd.sock");
    let text = format!(
        "faces.unix.path = \"{}\"\nfaces.udp.listen = []\nfaces.tcp.listen = []\n\
         faces.websocket.listen = []\n",
        socket.display()
    );
    std::fs::write(&config, text).expect("written");
    let script = format!(
        "ulimit -v 2000000; exec {} run --config {}",
        env!("CARGO_BIN_EXE_tachonym"),
        config.display()
    );
    let mut router = Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let stdout = BufReader::new(router.stdout.take().expect("a pipe"));
    let is_ready = stdout.lines().any(|line| line.expect("text") == "ready");
    router.kill().expect("it has not ended");
    router.wait().expect("it ends");
    assert!(is_ready);
}
