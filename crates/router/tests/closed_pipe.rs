//! Whoever reads the output goes away: tools end quietly, the router goes on.

mod bed;

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};

use tachonym_packet::Data;

use bed::{Bed, tachonym};

/// The writing end of a pipe whose reader has gone.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn a_tool_whose_reader_has_gone_ends_quietly() {
    let bed = Bed::new();
    let packet = bed.path("packet");
    let data = Data {
        freshness_period_ms: Some(60_000),
        content: b"content".to_vec(),
        ..Data::new("/kept".parse().expect("a name"))
    };
    std::fs::write(&packet, data.encode_with_digest()).expect("a file");
    let packet = packet.to_str().expect("text");
    let _pingserver = bed.serve(&["pingserver", "/p", "--json"], b"");
    let _put = bed.serve(&["put", "/f", "-", "--json"], b"content");
    bed.text(&["keys", "generate", "/me"]);
    bed.text(&["route", "add", "/a", "udp4://127.0.0.1:9"]);
    for line in [
        "--help",
        "status",
        "status --json",
        "face list",
        "face list --json",
        "face events",
        "face events --json",
        "route list",
        "route list --fib",
        "route show /a",
        "strategy list",
        "cs info",
        "cs erase /nothing",
        "ping /p",
        "ping /p --json",
        "ping /p --json -c 1 --quiet",
        "pingserver /q",
        "peek /f --prefix",
        "peek /f --prefix --json",
        "poke /x --json",
        "put /y -",
        "put /y - --json",
        "get /f",
        "keys list",
        "keys certificate /me",
        "completions bash",
        "check-config --reference",
        &format!("dissect {packet}"),
        &format!("dissect --json {packet}"),
        &format!("get /f --json -o {packet}"),
    ] {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let mut command = bed.command(&arguments);
        let output = command.stdout(closed_pipe()).output().expect("it runs");
        assert!(output.status.success(), "{line}: {output:?}");
        // A report of `get` is not an error; a panic would be.
        let error = String::from_utf8(output.stderr).expect("text");
        let quiet = error.is_empty() || line == "get /f" && error.starts_with("/f/v=");
        assert!(quiet, "{line}: {error}");
    }
    assert_eq!(std::fs::read(packet).expect("a file"), b"content");
}

#[test]
fn an_error_that_nobody_reads_is_told_by_the_exit_code() {
    let bed = Bed::new();
    let mut command = bed.command(&["face", "show", "987654"]);
    let status = command.stdout(closed_pipe()).stderr(closed_pipe()).status();
    assert_eq!(status.expect("it runs").code(), Some(1));
}

#[test]
fn a_remark_that_nobody_reads_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = folder.path().join("capture");
    // A capture of one frame whose link is unknown: it is passed over.
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    for word in [0_u32, 0, 65_535, 65_000, 0, 0, 4, 4, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    std::fs::write(&capture, bytes).expect("a file");
    let dissect = |stderr: Stdio| {
        let mut command = tachonym(&["dissect"]);
        command.arg(&capture).stdout(Stdio::null()).stderr(stderr);
        command.spawn().expect("it runs").wait_with_output()
    };
    let output = dissect(Stdio::piped()).expect("it ends");
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(told.contains("passed over 1 "), "{told}");
    let output = dissect(closed_pipe()).expect("it ends");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn an_output_that_cannot_be_written_is_a_failure() {
    let bed = Bed::new();
    let full = File::options().write(true).open("/dev/full");
    let mut command = bed.command(&["status"]);
    command.stdout(full.expect("Linux"));
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// A router as a program of its own. Killed when dropped.
struct Program(Child);

impl Program {
    fn stop(&mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.0.wait().expect("it ends")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Only after a failed assertion is it still there.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_router_goes_on_when_nobody_reads_its_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let config = folder.path().join("config");
    let text = format!(
        "log.level = \"trace\"\nfaces.unix.path = \"{}\"\nfaces.udp.listen = []\n\
         faces.tcp.listen = []\nfaces.websocket.listen = []\n",
        socket.display()
    );
    std::fs::write(&config, text).expect("a file");
    let mut run = tachonym(&["run", "--config"]);
    run.arg(&config).stdout(closed_pipe()).stderr(closed_pipe());
    let mut router = Program(run.spawn().expect("it runs"));
    let transport = format!("unix://{}", socket.display());
    let obeys = |arguments: &[&str]| {
        let mut tool: Command = tachonym(arguments);
        tool.args(["--transport", &transport]);
        tool.output().expect("it runs").status.success()
    };
    // It cannot say when it is ready.
    while !obeys(&["status"]) {
        assert!(router.0.try_wait().expect("a child").is_none(), "it ended");
    }
    // Commands are logged, each by the thread that a panic would end.
    for prefix in ["/a", "/b"] {
        assert!(obeys(&["strategy", "set", prefix, "multicast"]));
    }
    assert!(router.stop().success());
}
