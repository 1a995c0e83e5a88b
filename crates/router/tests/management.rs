//! Management of a running router: who is obeyed, and what a flood of bad
//! commands does to the others.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tachonym_client::{CommandError, Controller, Endpoint, wall_ms};
use tachonym_packet::lp::{Headers, LpView};
use tachonym_packet::{
    Component, Data, DataView, Interest, Name, PacketView, SignatureInfo, lp, tlv,
};
use tachonym_protocol::{CommandName, ControlParameters, ControlResponse, FaceUri};
use tachonym_router::Router;
use tachonym_router::config::Config;
use tachonym_security::{Certificate, Signer, SigningKey, Validity};

/// Longest that anything takes here; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

struct Bed {
    folder: tempfile::TempDir,
    router: Router,
}

impl Bed {
    fn new(extra: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = base(folder.path()) + &extra(folder.path());
        let config = Config::parse(&text).expect("a good configuration");
        let router = Router::start(&config).expect("it starts");
        Self { folder, router }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn endpoint(&self) -> Endpoint {
        let uri = FaceUri::Unix(self.socket().to_string_lossy().into_owned());
        Endpoint::connect(&uri).expect("it listens")
    }
}

fn base(folder: &Path) -> String {
    format!(
        "faces.unix.path = \"{}\"\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
         faces.tcp.listen = []\nfaces.websocket.listen = []\n{}\n",
        folder.join("s").display(),
        // `cargo xtask test` runs the same tests with several workers.
        std::env::var("TACHONYM_TEST_CONFIG").unwrap_or_default()
    )
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

/// Writes a new certificate of `identity` to `file`, and returns its signer.
fn certified(identity: &str, file: &Path) -> Signer {
    let key = SigningKey::generate_ecdsa().expect("randomness");
    let key_name = tachonym_security::key_name(&name(identity), &Component::generic("1"));
    let validity = Validity::days_from(wall_ms() - 1000, 10);
    let certificate = Certificate::self_signed(&key_name, &key, 1, validity).expect("a key");
    std::fs::write(file, certificate.to_base64()).expect("a file");
    Signer::named(key, certificate.name().clone())
}

fn code(result: Result<(), CommandError>) -> u64 {
    match result {
        Ok(()) => 200,
        Err(CommandError::Refused { code, .. }) => code,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn configured_certificates_say_who_is_obeyed() {
    let mut operator = None;
    let bed = Bed::new(|folder| {
        let file = folder.join("operator.ndncert");
        operator = Some(certified("/operator", &file));
        format!(
            "[[management.authorize]]\nmodules = [\"rib\"]\nanchors = [\"{}\"]\n\
             [[route]]\nprefix = \"/static\"\nnext_hop = \"udp4://127.0.0.1:9\"\n",
            file.display()
        )
    });
    let operator = operator.expect("made above");
    let stranger = certified("/operator", &bed.folder.path().join("other"));
    let mut endpoint = bed.endpoint();
    let mut register = |signer: &Signer, prefix: &str| {
        code(Controller::new(&mut endpoint, signer.clone()).register(&name(prefix)))
    };
    assert_eq!(register(&operator, "/a"), 200);
    assert_eq!(register(&stranger, "/b"), 403);
    assert_eq!(register(&Signer::digest(), "/c"), 403);
    let mut controller = Controller::new(&mut endpoint, operator);
    let capacity = ControlParameters {
        capacity: Some(1),
        ..ControlParameters::default()
    };
    let refused = controller.command("cs", "config", &capacity).map(|_| ());
    assert_eq!(code(refused), 403, "no rule opens the content store");
    // Datasets are open, and the configured route needed no certificate.
    let routes = controller.rib().expect("an answer");
    let prefixes: Vec<_> = routes.iter().map(|entry| entry.name.to_string()).collect();
    assert_eq!(prefixes, ["/a", "/static"]);
}

#[test]
fn rules_that_cannot_work_start_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let garbage = folder.path().join("garbage");
    std::fs::write(&garbage, "not a certificate").expect("a file");
    let garbage = format!("modules = [\"rib\"]\nanchors = [\"{}\"]", garbage.display());
    for (rule, key) in [
        (
            "modules = [\"rib\"]\nanchors = [\"/nowhere\"]",
            "anchors[0]",
        ),
        (&*garbage, "anchors[0]"),
        ("modules = [\"rib\"]", "anchors"),
        ("modules = [\"ribs\"]\nany = true", "modules[0]"),
        ("modules = []\nany = true", "modules"),
        ("modules = [\"rib\"]\nany = true\nanchors = [\"/x\"]", "any"),
    ] {
        let text = format!("[[management.authorize]]\n{rule}\n");
        let complaints = Config::parse(&text).expect_err(rule);
        assert_eq!(
            complaints[0].key,
            format!("management.authorize[0].{key}"),
            "{rule}"
        );
    }
    let text = "[management.localhop]\nenabled = true\n";
    assert_eq!(
        Config::parse(text).expect_err("nobody is trusted")[0].key,
        "management.localhop.anchors"
    );
}

#[test]
fn configured_multicast_faces_are_there() {
    let bed = Bed::new(|_| {
        "[[faces.multicast]]\ninterface = \"lo\"\n\
         [[route]]\nprefix = \"/group\"\nnext_hop = \"udp4://224.0.23.170:56363\"\n"
            .into()
    });
    let mut endpoint = bed.endpoint();
    let mut controller = Controller::new(&mut endpoint, Signer::digest());
    let faces = controller.faces().expect("an answer");
    let group = faces
        .iter()
        .find(|face| face.uri == "udp4://224.0.23.170:56363")
        .expect("it is listed");
    assert_eq!(group.link_type.as_str(), "multi-access");
    assert_eq!(group.face_persistency.as_str(), "permanent");
    let routes = controller.rib().expect("an answer");
    let route = routes
        .iter()
        .find(|entry| entry.name.to_string() == "/group");
    let route = route.expect("it is listed");
    assert_eq!(route.routes[0].face_id, group.face_id);
}

/// Packets that the router has dropped, for whatever reason.
fn n_dropped_packets(bed: &Bed) -> u64 {
    // These are of no packets, or of such as went on.
    let beside = ["not-cached-size", "not-cached-name", "dead-nonce-early"];
    let snapshot = bed.router.snapshot().expect("it runs");
    let n_beside: u64 = beside.iter().map(|reason| snapshot.n_dropped(reason)).sum();
    snapshot.n_drops() - n_beside
}

/// How long a consumer waits before it asks again.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A stream of frames that are read one by one.
struct Program {
    stream: UnixStream,
    pending: Vec<u8>,
}

impl Program {
    fn new(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Self {
            stream,
            pending: Vec::new(),
        }
    }

    fn send(&mut self, wire: &[u8]) {
        self.stream.write_all(wire).expect("the router reads");
    }

    fn receive(&mut self) -> Vec<u8> {
        self.next().expect("the connection stands")
    }

    /// The next frame; `None` when the connection has ended.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Ok(Some(len)) = tlv::element_len(&self.pending)
                && len <= self.pending.len()
            {
                return Some(self.pending.drain(..len).collect());
            }
            let mut room = [0; 65_536];
            let n_read = self.stream.read(&mut room).expect("an answer in time");
            if n_read == 0 {
                return None;
            }
            self.pending.extend_from_slice(&room[..n_read]);
        }
    }

    /// Answers whatever it is asked, on a thread of its own, until the connection ends.
    fn answer_all(mut self) {
        std::thread::spawn(move || {
            while let Some(frame) = self.next() {
                let (headers, packet) = fragment(&frame);
                let Ok(PacketView::Interest(interest)) = PacketView::parse(&packet) else {
                    panic!("producers get Interests");
                };
                let headers = Headers {
                    pit_token: headers.pit_token,
                    ..Headers::default()
                };
                let data = Data::new(interest.name().to_name()).encode_with_digest();
                let mut answer = Vec::new();
                lp::write_packet(&mut answer, &headers, None, &[], Some(&data));
                if self.stream.write_all(&answer).is_err() {
                    return;
                }
            }
        });
    }

    /// Asks for a Data until it comes, as a flood of others' packets may have a worker drop
    /// what is asked or answered. How many times it has asked again.
    fn fetch(&mut self, asked: &Name) -> u64 {
        let (started, mut n_again) = (Instant::now(), 0);
        loop {
            self.send(&Interest::new(asked.clone()).encode());
            while self.waits_no_longer_than(ASKED_AGAIN_AFTER) {
                let (_, data) = fragment(&self.receive());
                // What was asked for again may come twice.
                if DataView::parse(&data).expect("a Data").name() == *asked {
                    return n_again;
                }
            }
            assert!(started.elapsed() < PATIENCE, "no answer to {asked}");
            n_again += 1;
        }
    }

    /// Whether a frame begins to come within this time.
    fn waits_no_longer_than(&mut self, longest: Duration) -> bool {
        if !self.pending.is_empty() {
            return true;
        }
        let mut room = [0; 65_536];
        self.stream
            .set_read_timeout(Some(longest))
            .expect("a time-out");
        let n_read = self.stream.read(&mut room);
        self.stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a time-out");
        match n_read {
            Ok(0) => panic!("the connection ended"),
            Ok(n_read) => self.pending.extend_from_slice(&room[..n_read]),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}"),
        }
        !self.pending.is_empty()
    }

    /// Counts the refusals that come from now on, on a thread of its own.
    fn count_refusals(&self) -> Arc<AtomicU64> {
        let stream = self.stream.try_clone().expect("a descriptor");
        let mut answers = Self {
            stream,
            pending: Vec::new(),
        };
        let n_refused = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&n_refused);
        std::thread::spawn(move || {
            while let Some(frame) = answers.next() {
                let (_, refusal) = fragment(&frame);
                let refusal = DataView::parse(&refusal).expect("a Data");
                let response = ControlResponse::decode(refusal.content()).expect("a response");
                assert_eq!(response.code, 403);
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        n_refused
    }
}

fn fragment(wire: &[u8]) -> (Headers, Vec<u8>) {
    let frame = LpView::parse(wire).expect("a frame");
    let fragment = frame.fragment().expect("a packet");
    (*frame.headers(), fragment.to_vec())
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split_whitespace().nth(1).expect("a number");
    pages.parse::<usize>().expect("a number") * 4096
}

#[test]
fn a_hundred_thousand_bad_commands_are_refused_or_dropped_while_others_are_served() {
    const N_BAD: usize = 100_000;
    const AT_A_TIME: usize = 500;
    let bed = Bed::new(|_| String::new());
    let mut producer = Program::new(&bed.socket());
    let mut consumer = Program::new(&bed.socket());
    let mut hostile = Program::new(&bed.socket());

    let mut parameters = ControlParameters {
        name: Some(name("/served")),
        ..ControlParameters::default()
    };
    let register = |parameters: &ControlParameters, nonce: u64| {
        let command = CommandName::local("rib", "register").with_parameters(parameters);
        let info = SignatureInfo {
            nonce: Some(nonce.to_be_bytes().to_vec()),
            ..SignatureInfo::digest()
        };
        Interest::new(command).encode_with_digest(&info)
    };
    producer.send(&register(&parameters, 0));
    let (_, response) = fragment(&producer.receive());
    let response = DataView::parse(&response).expect("a Data");
    let response = ControlResponse::decode(response.content()).expect("a response");
    assert_eq!(response.code, 200);

    parameters.name = Some(name("/evil"));
    producer.answer_all();
    let n_refused = hostile.count_refusals();
    let (mut before, mut n_asked_again) = (0, 0);
    for round in 0..N_BAD / AT_A_TIME {
        let mut burst = Vec::new();
        for i in 0..AT_A_TIME {
            let mut wire = register(&parameters, (round * AT_A_TIME + i) as u64);
            *wire.last_mut().expect("a signature") ^= 1;
            burst.extend_from_slice(&wire);
        }
        hostile.send(&burst);
        let asked = name("/served").with(&Component::segment(round as u64));
        n_asked_again += consumer.fetch(&asked);
        if round == 20 {
            before = resident_bytes();
        }
    }
    // Every one of them has left a trace, and the first ones an answer: the router counts
    // what it drops, whether of the queue of a face, a worker or the manager. What was dropped
    // beside them was asked for again.
    let n_refused = || n_refused.load(Ordering::Relaxed);
    let n_accounted = || n_refused() + n_dropped_packets(&bed);
    let started = Instant::now();
    while n_accounted() < N_BAD as u64 && started.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(n_refused() > 0);
    let (accounted, possible) = (n_accounted(), N_BAD as u64..=N_BAD as u64 + n_asked_again);
    let drops = bed.router.snapshot().expect("it runs").drops;
    assert!(
        possible.contains(&accounted),
        "{accounted} of {possible:?}: {} refused, {drops:?}",
        n_refused()
    );
    let grown = resident_bytes().saturating_sub(before);
    assert!(
        grown < 32 << 20,
        "{grown} bytes more than after the first commands"
    );
    let mut endpoint = bed.endpoint();
    let routes = Controller::new(&mut endpoint, Signer::digest())
        .rib()
        .expect("an answer");
    assert_eq!(routes.len(), 1, "{routes:?}");
}
