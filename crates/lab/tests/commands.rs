//! The commands of `tachonym-lab` that measure running forwarders, end to end.

#[path = "../../loadgen/tests/support/router.rs"]
mod router;

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tachonym_loadgen::launch::LOCAL_UDP;
use tachonym_router::Router;
use tachonym_router::config::Config;

/// Far more than the seconds of a measurement, and far less than what waiting for
/// every Interest, probe and command would take.
const GENEROUS: Duration = Duration::from_secs(40);

/// A UDP socket that gives up reading at last.
fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    let patience = Some(Duration::from_secs(20));
    socket
        .set_read_timeout(patience)
        .expect("a timeout is accepted");
    socket
}

#[test]
fn this_program_is_a_router_where_asked() {
    router::run_if_asked();
}

fn exchange(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .arg("exchange")
        .args(args)
        .output()
        .expect("the binary was built for this test")
}

#[test]
fn the_command_prints_one_line_of_json() {
    let output = exchange(&["--direct", "tcp", "--count", "200", "--json"]);
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["measurement"]["counters"]["n_exchanges"], 200);
    assert_eq!(report["measurement"]["consumer"], "tcp");
    assert!(report["machine"]["kernel"].is_string());
}

#[test]
fn an_experiment_is_compared_with_another_build() {
    let program = env!("CARGO_BIN_EXE_tachonym-lab");
    let output = Command::new(program)
        .args(["run", "own/distance", "--scale", "tiny", "--json"])
        .args(["--rounds", "2", "--against", program])
        .output()
        .expect("the binary was built for this test");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let result: tachonym_bench::ResultFile = serde_json::from_slice(&output.stdout).expect("JSON");
    let table = &result.record.tables[0];
    for distance in ["naive", "16", "64"] {
        let ratio = table.number(&[distance], "both, ns").expect(distance);
        assert!((0.01..100.0).contains(&ratio), "{distance}: {ratio}");
    }
}

#[test]
fn a_listener_that_never_answers_is_an_error_when_the_time_is_over() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("s.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("the folder is ours");
    let uri = format!("unix://{}", path.display());
    let started = Instant::now();
    let output = exchange(&["--consumer", &uri, "--max-seconds", "1"]);
    assert!(started.elapsed() < GENEROUS);
    drop(listener);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("the time limit of --max-seconds 1 is over"),
        "{message}"
    );
    assert!(message.contains("rib/register"), "{message}");
}

#[test]
fn a_run_that_the_time_cut_off_says_so_and_has_an_exit_code_of_its_own() {
    let args = ["--direct", "unix", "--max-seconds", "1", "--json"];
    let output = exchange(&[&args[..], &["--count", "1000000000"]].concat());
    assert_eq!(output.status.code(), Some(3));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let measurement = &report["measurement"];
    assert_eq!(measurement["is_complete"], false);
    let n_sent = measurement["counters"]["n_sent"].as_u64();
    let n_not_sent = measurement["n_not_sent"].as_u64();
    assert_eq!(
        n_sent.zip(n_not_sent).map(|(a, b)| a + b),
        Some(1_000_000_000)
    );
}

#[test]
fn arguments_without_measure_are_refused() {
    for args in [
        ["--warm-up", "1000000001"],
        ["--freshness-ms", "31536000001"],
        ["--max-seconds", "601"],
        ["--count", "0"],
        ["--lifetime-ms", "60001"],
    ] {
        let output = exchange(&[&["--direct", "unix"], &args[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    let many = ["--flows", "1024", "--in-flight", "65536"];
    let output = exchange(&[&["--direct", "unix"], &many[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--in-flight"));
}

#[test]
fn other_machines_and_absent_forwarders_are_refused() {
    for (args, word) in [
        (["--consumer", "udp://192.0.2.1:6363"], "loopback"),
        (
            ["--consumer", "unix:///nonexistent/nfd.sock"],
            "cannot connect",
        ),
        (["--content-bytes", "8001"], "8000"),
        (["--mode", "miss"], "--consumer"),
    ] {
        let output = exchange(&args);
        assert!(!output.status.success(), "{args:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(word), "{args:?}: {message}");
    }
}

#[test]
fn a_socket_without_management_is_an_error_and_not_a_figure() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("s.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("the folder is ours");
    let hang_up = std::thread::spawn(move || {
        // Consumer and producer connect; then both are closed.
        drop([listener.accept(), listener.accept()]);
    });
    let output = exchange(&["--consumer", &format!("unix://{}", path.display())]);
    hang_up.join().expect("both connected");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("closed the connection"));
}

#[test]
fn the_command_announces_itself_and_reports_at_sigterm() {
    let server = socket();
    let mut relay = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .args(["impair", "--listen", "127.0.0.1:0", "--seed", "5"])
        .args(["--delay-ms", "1.5", "--max-seconds", "60", "--forward"])
        .arg(server.local_addr().expect("it is bound").to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let mut out = BufReader::new(relay.stdout.take().expect("it is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it prints");
    let ready: serde_json::Value = serde_json::from_str(&line).expect("one line of JSON");
    assert_eq!(ready["seed"], 5);
    let listen = ready["listen"].as_str().expect("an address");
    socket()
        .send_to(&77_u32.to_be_bytes(), listen)
        .expect("loopback");
    let mut bytes = [0; 2_000];
    let len = server.recv(&mut bytes).expect("a packet arrives");
    assert_eq!(&bytes[..len], 77_u32.to_be_bytes());
    let pid = rustix::process::Pid::from_child(&relay);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    assert!(relay.wait().expect("it ends").success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("it prints");
    let report: serde_json::Value = serde_json::from_str(&rest).expect("one line of JSON");
    assert_eq!(report["up"]["sent_pkts"], 1);
    assert_eq!(report["impairment"]["delay_ms"], 1.5);
}

#[test]
fn impossible_settings_end_the_command_with_a_remedy() {
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .args(["impair", "--listen", "127.0.0.1:0"])
        .args(["--forward", "127.0.0.1:9", "--jitter-ms", "3"])
        .output()
        .expect("the binary was built for this test");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--delay-ms"));
}

#[test]
fn the_commands_print_their_figures_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let text = format!(
        "faces.unix.path = \"{}\"\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
         faces.tcp.listen = []\nfaces.websocket.listen = []\n{LOCAL_UDP}",
        path.display()
    );
    let config = Config::parse(&text).expect("a good configuration");
    let _router = Router::start(&config).expect("it starts");
    let address = format!("unix://{}", path.display());
    for args in [
        &["routes", "--count", "10", "--sample", "3"][..],
        &["soak", "--names", "100"],
        &["footprint", "--of", "route", "--routes", "20"],
        &["transfer", "--bytes", "100000", "--rate", "1GB"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
            .args(args)
            .args(["--forwarder", &address, "--json"])
            .output()
            .expect("the binary was built for this test");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {message}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(report["machine"]["kernel"].is_string());
        assert!(report["figures"].is_object(), "{args:?}");
    }
}

/// All but `fairness`, which takes minutes and has a test of its own.
const SECTIONS: [&str; 7] = [
    "exchange",
    "syscalls",
    "routes",
    "footprint",
    "soak",
    "transfer",
    "startup",
];

#[test]
fn the_figures_are_taken_in_one_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = router::program(folder.path());
    let output = Command::new(env!("CARGO_BIN_EXE_tachonym-lab"))
        .args(["figures", "--rounds", "2", "--exchanges", "300"])
        .args(["--routes", "50", "--faces", "10", "--pit-entries", "50"])
        .args(["--cached", "50", "--names", "100", "--starts", "1"])
        .args(["--transfer-bytes", "80000"])
        .args(SECTIONS.iter().flat_map(|section| ["--only", section]))
        .arg("--tachonym")
        .arg(&program)
        .output()
        .expect("the binary was built for this test");
    let text = String::from_utf8_lossy(&output.stdout);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{message}");
    for title in [
        "exchange over unix",
        "exchange over tcp",
        "exchange over udp",
        "exchange over udp, offload",
        "system calls",
        "routes, tachonym",
        "footprint",
        "soak",
        "transfer",
        "startup, tachonym",
    ] {
        assert!(text.contains(&format!("## {title}\n")), "{text}");
    }
    assert!(!message.contains("failed"), "{message}");
    // The generator's ceiling over each transport, a miss and a hit, over UDP with and without
    // offload.
    for (transport, n_rows) in [("(unix)", 2), ("(tcp)", 2), ("(udp)", 4)] {
        let rows = text.lines().filter(|line| line.contains(transport));
        assert_eq!(rows.count(), n_rows, "{text}");
    }
}
