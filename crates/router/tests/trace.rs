//! `tachonym trace` and the record of recent drops, in a router that runs.

mod bed;
mod second_level_bed;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use bed::{Bed, certificate};
use rustix::process::{Pid, Signal, kill_process};
use second_level_bed::{Process, noise};
use serde_json::Value;
use tachonym_client::{Controller, Endpoint};
use tachonym_packet::lp::LpView;
use tachonym_packet::{
    Component, Data, DataView, Interest, Name, Nonce, PacketView, SignatureInfo, tlv,
};
use tachonym_protocol::{
    CommandName, ControlParameters, ControlResponse, ForwarderStatus, RecentDrop,
};
use tachonym_security::Signer;

/// Long enough for a loaded machine; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

fn interest(uri: &str, nonce: u8) -> Vec<u8> {
    interest_for(uri, nonce, 60_000)
}

fn interest_for(uri: &str, nonce: u8, lifetime_ms: u64) -> Vec<u8> {
    let mut interest = Interest::new(name(uri));
    interest.nonce = Some(Nonce([nonce; 4]));
    interest.lifetime_ms = Some(lifetime_ms);
    interest.encode()
}

fn data(uri: &str) -> Vec<u8> {
    Data::new(name(uri)).encode_with_digest()
}

/// A program at the router's Unix socket.
struct Program {
    stream: UnixStream,
    pending: Vec<u8>,
}

impl Program {
    fn new(bed: &Bed) -> Self {
        Self::over(UnixStream::connect(bed.path("s")).expect("it listens"))
    }

    fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Self {
            stream,
            pending: Vec::new(),
        }
    }

    fn send(&mut self, wire: &[u8]) {
        self.stream.write_all(wire).expect("it reads");
    }

    /// The next packet, and whether it is a Nack.
    fn receive(&mut self) -> (Vec<u8>, bool) {
        loop {
            if let Ok(Some(len)) = tlv::element_len(&self.pending)
                && len <= self.pending.len()
            {
                let wire: Vec<u8> = self.pending.drain(..len).collect();
                let frame = LpView::parse(&wire).expect("a frame");
                let is_nack = frame.headers().nack.is_some();
                return (frame.fragment().expect("a packet").to_vec(), is_nack);
            }
            let mut room = [0; 16_384];
            let n_read = self.stream.read(&mut room).expect("something in time");
            assert_ne!(n_read, 0, "the router has closed the connection");
            self.pending.extend_from_slice(&room[..n_read]);
        }
    }

    /// Waits until this packet comes.
    fn expect(&mut self, uri: &str) {
        let (wire, _) = self.receive();
        let packet = PacketView::parse(&wire).expect("a packet");
        let received = match &packet {
            PacketView::Interest(interest) => interest.name(),
            PacketView::Data(data) => data.name(),
        };
        assert_eq!(received.to_name(), name(uri));
    }

    fn register(&mut self, prefix: &str) {
        let parameters = ControlParameters {
            name: Some(name(prefix)),
            ..ControlParameters::default()
        };
        let command = CommandName::local("rib", "register").name();
        let command = command.with(&Component::generic(parameters.encode()));
        self.send(&Interest::new(command).encode_with_digest(&SignatureInfo::digest()));
        let (wire, _) = self.receive();
        let data = DataView::parse(&wire).expect("a Data");
        let response = ControlResponse::decode(data.content()).expect("a response");
        assert_eq!(response.code, 200, "{}", response.text);
    }
}

/// A trace that has begun.
struct Trace {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Trace {
    fn begin(mut command: Command) -> Self {
        let mut child = command.spawn().expect("it runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(ready["ready"], true);
        Self { child, stdout }
    }

    fn of(bed: &Bed, arguments: &[&str]) -> Self {
        let mut all = vec!["trace", "--json"];
        all.extend(arguments);
        Self::begin(bed.command(&all))
    }

    /// What it shows until it ends, and the summary.
    fn end(mut self) -> (Vec<Value>, Value) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("text");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{rest}");
        let lines = rest.lines();
        let mut shown: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let summary = shown.pop().expect("a summary");
        assert_eq!(summary["packets"], shown.len(), "{summary}");
        (shown, summary)
    }

    fn interrupt(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).expect("it runs");
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // Only after a failed assertion is it still there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Packet, name and decision of each.
fn decisions(shown: &[Value]) -> Vec<(&str, &str, &str)> {
    shown
        .iter()
        .map(|it| {
            let field = |key: &str| it[key].as_str().expect("text");
            (field("packet"), field("name"), field("decision"))
        })
        .collect()
}

fn recent_drops(bed: &Bed, prefix: &str) -> Vec<RecentDrop> {
    let uri = bed.transport.parse().expect("a FaceUri");
    let mut endpoint = Endpoint::connect(&uri).expect("it listens");
    let mut controller = Controller::new(&mut endpoint, Signer::digest());
    controller.recent_drops(&name(prefix)).expect("a dataset")
}

#[test]
fn a_trace_shows_faces_decisions_and_drop_reasons() {
    let bed = Bed::new();
    let (mut producer, mut consumer) = (Program::new(&bed), Program::new(&bed));
    let mut other = Program::new(&bed);
    producer.register("/t/p");
    consumer.send(&interest("/t/p/before", 1));
    producer.expect("/t/p/before");
    let trace = Trace::of(&bed, &["/t", "--for", "60s", "--count", "11"]);
    consumer.send(&interest("/t/p/1", 1));
    producer.expect("/t/p/1");
    producer.send(&data("/t/p/1"));
    consumer.expect("/t/p/1");
    other.send(&interest("/t/p/1", 2));
    other.expect("/t/p/1");
    consumer.send(&interest("/t/p/2", 1));
    producer.expect("/t/p/2");
    other.send(&interest("/t/p/2", 2));
    other.send(&interest("/t/none", 1));
    assert!(other.receive().1, "a Nack");
    // Both are in one burst, so no time passes between them.
    let both = [interest("/t/p/3", 1), interest("/t/p/3", 2)].concat();
    consumer.send(&both);
    producer.expect("/t/p/3");
    consumer.send(&interest_for("/t/p/silent", 1, 50));
    producer.expect("/t/p/silent");
    // Beyond the prefix.
    consumer.send(&interest("/u", 1));
    assert!(consumer.receive().1, "a Nack");
    consumer.send(&data("/t/unsolicited"));
    let (mut shown, summary) = trace.end();
    // Packets of one name have an order; two workers have none.
    shown.sort_by_key(|it| it["name"].to_string());
    let expected = [
        ("Interest", "/t/none", "dropped"),
        ("Interest", "/t/p/1", "forwarded"),
        ("Data", "/t/p/1", "delivered"),
        ("Interest", "/t/p/1", "answered-from-dram"),
        ("Interest", "/t/p/2", "forwarded"),
        ("Interest", "/t/p/2", "aggregated"),
        ("Interest", "/t/p/3", "forwarded"),
        ("Interest", "/t/p/3", "retransmission-suppressed"),
        ("Interest", "/t/p/silent", "forwarded"),
        ("Interest", "/t/p/silent", "unanswered"),
        ("Data", "/t/unsolicited", "dropped"),
    ];
    assert_eq!(decisions(&shown), expected);
    let (asked, answered) = (&shown[1], &shown[2]);
    assert_eq!(asked["to"][0], answered["face"]);
    assert_eq!(answered["to"][0], asked["face"]);
    assert_eq!(shown[3]["to"][0], shown[3]["face"]);
    let refused = &shown[0];
    assert_eq!(refused["dropped"][0], "no-route");
    assert_eq!(refused["nacked"][0], refused["face"]);
    assert_eq!(refused["nack_reason"], "no-route");
    assert_eq!(shown[9]["face"], asked["face"]);
    assert_eq!(shown[9]["to"], asked["to"]);
    assert_eq!(shown[10]["dropped"][0], "unsolicited-data");
    assert_eq!(shown[10]["face"], asked["face"]);
    let remote = asked["remote"].as_str().expect("an address");
    assert!(
        remote.starts_with("fd://") || remote.starts_with("unix://"),
        "{remote}"
    );
    assert_eq!(summary["dropped"], 2);
    assert_eq!(summary["not_shown"], 0);
}

#[test]
fn a_trace_ends_by_time_or_signal_and_only_four_run_at_once() {
    let bed = Bed::new();
    let traces: Vec<_> = (0..4)
        .map(|_| Trace::of(&bed, &["/t", "--for", "1h"]))
        .collect();
    let (code, printed) = bed.failure(&["trace", "/t"]);
    assert_eq!(code, 5, "{printed}");
    assert!(printed.contains("4 traces run already"), "{printed}");
    let mut program = Program::new(&bed);
    program.send(&interest("/t/none", 1));
    assert!(program.receive().1, "a Nack");
    for trace in traces {
        trace.interrupt();
        let (shown, summary) = trace.end();
        assert_eq!(decisions(&shown), [("Interest", "/t/none", "dropped")]);
        assert!(summary["seconds"].as_f64() < Some(60.0), "{summary}");
    }
    let printed = bed.text(&["trace", "/t", "--for", "100ms"]);
    let lines: Vec<_> = printed.lines().collect();
    let [heading, last] = lines[..] else {
        panic!("{printed}");
    };
    assert!(heading.starts_with("TIME (UTC)"), "{printed}");
    assert!(last.starts_with("0 packets in ") && last.ends_with(" s (0 dropped); 0 not shown"));
    let (code, printed) = bed.failure(&["trace", "/t", "--for", "2h"]);
    assert_eq!(code, 2, "{printed}");
}

#[test]
fn another_forwarder_is_reported_to_have_no_trace() {
    let bed = Bed::new();
    let socket = bed.path("other");
    let listener = UnixListener::bind(&socket).expect("it binds");
    let forwarder = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let mut client = Program::over(stream);
        let (wire, _) = client.receive();
        let Ok(PacketView::Interest(interest)) = PacketView::parse(&wire) else {
            panic!("the status is asked for first");
        };
        let status = ForwarderStatus {
            nfd_version: "22.12".into(),
            ..ForwarderStatus::default()
        };
        let segment = Component::segment(0);
        let name = interest.name().to_name().with(&Component::version(1));
        let mut answer = Data::new(name.with(&segment));
        answer.final_block_id = Some(segment);
        status.encode_value_into(&mut answer.content);
        client.send(&answer.encode_with_digest());
    });
    let transport = format!("unix://{}", socket.display());
    let (code, printed) = bed.failure(&["trace", "/t", "--transport", &transport]);
    assert_eq!(code, 5, "{printed}");
    assert!(
        printed.contains("this forwarder (22.12) has no trace"),
        "{printed}"
    );
    forwarder.join().expect("it was asked as it should be");
}

#[test]
fn a_worker_that_is_added_meanwhile_is_traced_too() {
    let workers = "workers.threads = 2\nworkers.max_threads = 3\nworkers.dispatch = \"name\"\n\
                   power.governor = \"none\"\n";
    let bed = Bed::of_workers(workers);
    let trace = Trace::of(&bed, &["/t", "--for", "60s", "--count", "90"]);
    let mut program = Program::new(&bed);
    let mut ask = |from: u64| {
        for n in from..from + 30 {
            program.send(&interest(&format!("/t/{n}"), 1));
        }
        for _ in 0..30 {
            assert!(program.receive().1, "a Nack");
        }
    };
    ask(0);
    bed.text(&["workers", "add"]);
    ask(30);
    ask(60);
    let third = bed.json(&["workers"])["workers"][2]["in_pkts"].as_u64();
    assert!(third > Some(0), "names have come to it");
    let (shown, summary) = trace.end();
    assert_eq!(summary["dropped"], 90);
    let mut names: Vec<_> = decisions(&shown).iter().map(|it| it.1.to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 90, "each once");
}

#[test]
fn a_trace_distinguishes_the_ssd_level_from_the_dram_level() {
    // One worker, whose DRAM level has room for a whole batch.
    let mut router = Process::with_workers("", "");
    let bytes = noise(1, 300_000);
    router.publish("/object", &bytes);
    // Then nothing is in memory.
    router.end(Signal::TERM);
    router.start();
    let mut command = router.command(&["trace", "/object", "--json", "--for", "60s"]);
    command.stdout(Stdio::piped());
    let trace = Trace::begin(command);
    assert_eq!(router.get("/object").as_ref(), Some(&bytes));
    // It has come into the DRAM level.
    assert!(router.run(&["peek", "/object/v=7/seg=37"]).status.success());
    trace.interrupt();
    let (shown, _) = trace.end();
    let decisions = decisions(&shown);
    let n_of = |packet: &str, decision: &str| {
        let same = decisions
            .iter()
            .filter(|it| it.0 == packet && it.2 == decision);
        same.count()
    };
    let n_waiting = n_of("Interest", "waits-for-ssd");
    let n_answered = n_of("Interest", "answered-from-dram");
    let n_read = n_of("Data", "answered-from-ssd");
    assert!(n_waiting > 0 && n_answered > 0, "{decisions:?}");
    assert_eq!(n_waiting, n_read, "{decisions:?}");
    assert_eq!(n_waiting + n_answered, 38 + 1, "{decisions:?}");
    assert_eq!(decisions.last().map(|it| it.2), Some("answered-from-dram"));
}

#[test]
fn recent_drops_include_packets_refused_before_the_engine() {
    let bed = Bed::with(|folder| {
        let file = folder.join("anchor");
        std::fs::write(&file, certificate("/site")).expect("the folder is ours");
        let file = file.display();
        format!("[[verification]]\nprefix = \"/site\"\nanchors = [\"{file}\"]\n")
    });
    let mut program = Program::new(&bed);
    for nonce in 1..4 {
        program.send(&interest("/none/1", nonce));
        assert!(program.receive().1, "a Nack");
    }
    program.send(&data("/site/unsigned"));
    program.send(&interest("/none/2", 1));
    assert!(program.receive().1, "a Nack");
    let listed = |prefix: &str| {
        let drops = recent_drops(&bed, prefix).into_iter();
        let fields = drops.map(|it| (it.name.to_string(), it.kind, it.reason, it.n_drops));
        fields.collect::<Vec<_>>()
    };
    let drop = |uri: &str, kind: &str, reason: &str, n_drops| {
        (uri.to_owned(), kind.to_owned(), reason.to_owned(), n_drops)
    };
    let (first, second) = (
        drop("/none/1", "Interest", "no-route", 3),
        drop("/none/2", "Interest", "no-route", 1),
    );
    assert_eq!(listed("/none"), [second, first.clone()]);
    assert_eq!(listed("/none/1"), [first]);
    let unsigned = drop("/site/unsigned", "Data", "unsigned-data", 1);
    assert_eq!(listed("/site"), [unsigned]);
    assert!(listed("/nothing").is_empty());
}
