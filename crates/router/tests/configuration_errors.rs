//! One check of a configuration file reports everything that is wrong with it, and
//! suggests what was meant.

mod bed;

use bed::Bed;
use tachonym_router::config::{Complaint, Config};

fn complaints(text: &str) -> Vec<Complaint> {
    Config::parse(text).expect_err("the file is wrong")
}

/// Line and key of each error.
fn places(text: &str) -> Vec<(usize, String)> {
    let found = complaints(text).into_iter();
    found.map(|one| (one.line, one.key)).collect()
}

const MANY_ERRORS: &str = "\
[log]
level = 5
[face.udp]
listen = [\"0.0.0.0:6363\"]
[tables]
pit_entrys = 5
pit_bytes = \"16MiB\"
cs_packets = 10
dead_nonce_ms = 5
index = \"treble\"
[faces.tcp]
listen = [\"0.0.0.0:6363\", 6363]
[[route]]
prefix = \"/a\"
[[route]]
prefix = \"b\"
next_hop = \"udp4://192.0.2.1:6363\"
[[strategy]]
prefix = \"/\"
strategy = \"best-rout\"
";

#[test]
fn unknown_keys_types_and_ranges_are_reported_in_one_run() {
    let expected = [
        (2, "log.level"),
        (3, "face"),
        (6, "tables.pit_entrys"),
        (7, "tables.pit_bytes"),
        (9, "tables.dead_nonce_ms"),
        (10, "tables.index"),
        (12, "faces.tcp.listen[1]"),
        (13, "route[0]"),
        // The entry before it is left out of the check of values.
        (16, "route[1].prefix"),
        (20, "strategy[0].strategy"),
    ];
    let found = places(MANY_ERRORS);
    let found: Vec<_> = found.iter().map(|(line, key)| (*line, &key[..])).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_command_counts_the_errors_and_fails() {
    let bed = Bed::new();
    let file = bed.path("many.toml");
    std::fs::write(&file, MANY_ERRORS).expect("a file");
    let file = file.to_str().expect("text");
    let output = bed.run(&["check-config", file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "{output:?}");
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(errors.lines().count(), 11, "{errors}");
    assert!(
        errors.contains(&format!(
            "{file}:9: tables.dead_nonce_ms: 5 is out of range; "
        )),
        "{errors}"
    );
    assert!(
        errors.ends_with(&format!("{file}: 10 errors\n")),
        "{errors}"
    );
}

#[test]
fn a_correct_file_is_summarised() {
    let bed = Bed::new();
    let file = bed.path("good.toml");
    std::fs::write(
        &file,
        "[[route]]\nprefix = \"/\"\nnext_hop = \"udp4://192.0.2.1\"\n",
    )
    .expect("a file");
    let file = file.to_str().expect("text");
    let output = bed.run(&["check-config", file]);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(&format!("{file} is correct")[..]));
    let rows = [
        "listens on",
        "creates",
        "worker threads",
        "DRAM level",
        "SSD level",
        "commands",
    ];
    for row in rows {
        let line = lines.next().expect(row);
        assert!(line.trim_start().starts_with(row), "{text}");
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn a_value_that_depends_on_a_wrong_one_is_not_reported() {
    // Each of these would contradict the default of the key that is left out.
    for (text, line) in [
        ("[management.localhop]\nenabled = \"true\"\nany = true\n", 2),
        ("[management.announcements]\nlearn = true\nanny = true\n", 3),
        ("[second_level]\nvolume = \"/tmp\"\nreads = 8\n", 2),
        ("[workers]\nthreads = 2.5\nbalance = false\n", 2),
    ] {
        let found = places(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].0, line, "{text}: {found:?}");
    }
}

#[test]
fn the_table_that_was_meant_is_suggested() {
    for (text, suggestion) in [
        ("[face.udp]\nlisten = []\n", "[faces.udp]"),
        ("[face]\nmax_faces = 10\n", "[faces]"),
        ("[[faces]]\nremote = \"udp4://192.0.2.1\"\n", "[[face]]"),
        ("[[faces]]\nmax_faces = 10\n", "[faces]"),
        ("[[routes]]\nprefix = \"/\"\n", "[[route]]"),
        ("[routes]\nprefix = \"/\"\n", "[[route]]"),
        ("[[strategies]]\nprefix = \"/\"\n", "[[strategy]]"),
        ("[[volume]]\npath = \"/tmp\"\n", "[[second_level.volume]]"),
        (
            "second_level.volume = \"/tmp\"\n",
            "[[second_level.volume]]",
        ),
        ("[udp]\nlisten = []\n", "[faces.udp]"),
        ("[secondlevel]\n", "[second_level]"),
        ("pit_entries = 5\n", "`tables.pit_entries`"),
        ("[faces]\nlisten = []\n", "`faces.udp.listen`"),
        (
            "[[face]]\nremote = \"udp4://192.0.2.1\"\n[face.udp]\nlisten = []\n",
            "[faces.udp]",
        ),
    ] {
        let found = complaints(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].remedy.contains(suggestion), "{text}: {found:?}");
    }
}

#[test]
fn a_remedy_shows_what_to_write() {
    for (text, remedy) in [
        (
            "faces.max_faces = \"many\"",
            "write a number, as in max_faces = 4096",
        ),
        (
            "faces.silent_timeout_s = \"10s\"",
            "write a number of seconds, as in silent_timeout_s = 10",
        ),
        (
            "tables.cs_bytes = 1.5",
            "write a number of bytes, as in cs_bytes = 268435456",
        ),
        (
            "workers.prefix_components = 300",
            "write a number from 0 to 255, as in prefix_components = 2",
        ),
        (
            "[log]\nlevel = debug",
            "put it in quotes: level = \"debug\"",
        ),
        ("[log]\nlevel =", "write a value after level ="),
        ("[log", "close the bracket"),
        ("[log]\nlevel = \"info", "close the quotes"),
        (
            "content_store.eviction = \"lfru\"",
            "did you mean \"lru\"? ",
        ),
        (
            "[[faces.multicast]]\nhops = 1",
            "add a line such as interface = \"eth0\"",
        ),
    ] {
        let found = complaints(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].remedy.starts_with(remedy), "{text}: {found:?}");
    }
}

#[test]
fn each_syntax_error_names_its_line() {
    let text = "[log]\nlevel = debug\n[faces]\nmax_faces = 10\n[tables]\ncs_packets = = 1\n";
    let lines: Vec<_> = places(text).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 6]);
}

#[test]
fn a_file_that_is_not_utf_8_says_so_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tachonym.toml");
    std::fs::write(&file, b"[log]\n# caf\xe9\nlevel = \"info\"\n").expect("written");
    let reported = Config::load(&file).expect_err("Latin-1").to_string();
    let place = format!("{}:2: ", file.display());
    assert!(reported.starts_with(&place), "{reported}");
    assert!(reported.contains("UTF-8"), "{reported}");
}

#[test]
fn a_key_is_suggested_only_if_it_is_like_the_unknown_one() {
    let cases = [
        ("bogus = 1", "keys here are"),
        ("[log]\nlvl = \"info\"", "keys here are level"),
        ("[tables]\npit_entry = 5", "`pit_entries`"),
        ("[faces.udp]\nmtu = 1400", "`mtu_bytes`"),
        ("[faces]\nudp.listem = []", "`listen`"),
    ];
    for (text, word) in cases {
        let found = complaints(text);
        assert!(found[0].remedy.contains(word), "{text}: {found:?}");
    }
}

#[test]
fn volumes_whose_bytes_overflow_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = String::new();
    for i in 0..3 {
        let path = folder.path().join(i.to_string());
        std::fs::create_dir(&path).expect("a folder");
        text += &format!(
            "[[second_level.volume]]\npath = \"{}\"\nbytes = {}\n",
            path.display(),
            i64::MAX
        );
    }
    for admission in ["none", "filter", "filter-auto", "tinylfu"] {
        let text = format!("{text}[second_level]\nadmission = \"{admission}\"\n");
        let found = complaints(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].remedy.contains("bytes"), "{found:?}");
    }
}
