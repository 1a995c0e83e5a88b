//! `tachonym-lab live` with a router in a child process: every setting is started, carries
//! packets and is told of. How fast is not looked at.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tachonym_router::Router;
use tachonym_router::config::Config;

/// Tells the child process what its router's configuration is.
const CONFIG_VARIABLE: &str = "TACHONYM_LAB_TEST_CONFIG";

/// Makes this process a router where [`router_program`] started it, until it is asked to end.
fn be_a_router_if_told() {
    let Some(path) = std::env::var_os(CONFIG_VARIABLE) else {
        return;
    };
    let config = Config::load(Path::new(&path)).expect("a good configuration");
    let router = Router::start(&config).expect("it starts");
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM]);
    signals.expect("signals can be waited for").forever().next();
    drop(router);
    std::process::exit(0);
}

/// A program in `folder` that does what `tachonym run --config FILE` does: this very test
/// program, told by a variable to be a router.
fn router_program(folder: &Path) -> PathBuf {
    let this = std::env::current_exe().expect("this test has a program");
    let script = format!(
        "#!/bin/sh\n{CONFIG_VARIABLE}=\"$3\" exec '{}' --exact --nocapture \
         every_setting_carries_packets_and_is_told_of\n",
        this.display()
    );
    let path = folder.join("router");
    std::fs::write(&path, script).expect("the folder is ours");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, executable).expect("the file is ours");
    path
}

/// The figures of `tachonym-lab live` with these arguments.
fn live(folder: &Path, args: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .arg("live")
        .args(args)
        .arg("--tachonym")
        .arg(router_program(folder))
        .args(["--workers", "1,2", "--rounds", "1", "--ms", "20"])
        .args(["--objects", "6", "--in-flight", "24", "--json"])
        .output()
        .expect("the binary was built for this test");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["figures"].clone()
}

fn assert_rows(figures: &serde_json::Value, settings: &[(&str, u64, &str)]) {
    let rows = figures["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), settings.len());
    for (row, (feed, n_workers, dispatch)) in rows.iter().zip(settings) {
        assert_eq!(row["setting"]["feed"], *feed);
        assert_eq!(row["setting"]["n_workers"], *n_workers);
        assert_eq!(row["setting"]["dispatch"], *dispatch);
        let shares = row["shares"].as_array().expect("shares");
        assert_eq!(shares.len() as u64, *n_workers, "{row}");
        let sum: f64 = shares.iter().filter_map(serde_json::Value::as_f64).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{row}");
        assert!(row["pkts_per_s"]["median"].as_f64() > Some(0.0), "{row}");
    }
}

#[test]
fn every_setting_carries_packets_and_is_told_of() {
    be_a_router_if_told();
    let folder = tempfile::tempdir().expect("a folder");
    let svg = folder.path().join("x.svg");
    let svg_text = svg.to_str().expect("a plain path");
    let workers = live(folder.path(), &["workers", "--svg", svg_text]);
    assert_rows(
        &workers,
        &[
            ("run-to-completion", 1, "prefix"),
            ("run-to-completion", 2, "prefix"),
            ("io-threads", 1, "prefix"),
            ("io-threads", 2, "prefix"),
        ],
    );
    let drawing = std::fs::read_to_string(&svg).expect("it was drawn");
    assert!(drawing.contains("<svg") && drawing.contains("io-threads, prefix"));
    let over_udp = ["dispatch", "--over", "udp", "--feed", "io-threads"];
    let dispatch = live(folder.path(), &over_udp);
    assert_rows(
        &dispatch,
        &[
            ("io-threads", 1, "prefix"),
            ("io-threads", 2, "prefix"),
            ("io-threads", 2, "name"),
            ("io-threads", 2, "batch"),
        ],
    );
    // Of names by segments, both workers have some; whole objects may all fall to one.
    let row = &dispatch["rows"][2];
    let shares = [0, 1].map(|worker| row["shares"][worker].as_f64());
    assert!(shares.iter().all(|&share| share > Some(0.0)), "{row}");
}
