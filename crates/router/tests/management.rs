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
    _router: Router,
}

impl Bed {
    fn new(extra: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = base(folder.path()) + &extra(folder.path());
        let config = Config::parse(&text).expect("a good configuration");
        let router = Router::start(&config).expect("it starts");
        Self {
            folder,
            _router: router,
        }
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

/// Commands that were dropped, since their face has sent too many bad ones or has
/// too many waiting.
fn n_dropped_commands(bed: &Bed) -> u64 {
    let reasons = ["throttled-command", "command-share-full"];
    let mut endpoint = bed.endpoint();
    let drops = Controller::new(&mut endpoint, Signer::digest())
        .drops()
        .expect("an answer");
    let of_router = drops.iter().filter(|drop| drop.face_id.is_none());
    of_router
        .filter(|drop| reasons.contains(&&*drop.reason))
        .map(|drop| drop.n_dropped)
        .sum()
}

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
    let n_refused = hostile.count_refusals();
    let mut before = 0;
    for round in 0..N_BAD / AT_A_TIME {
        let mut burst = Vec::new();
        for i in 0..AT_A_TIME {
            let mut wire = register(&parameters, (round * AT_A_TIME + i) as u64);
            *wire.last_mut().expect("a signature") ^= 1;
            burst.extend_from_slice(&wire);
        }
        hostile.send(&burst);

        let asked = name("/served").with(&Component::segment(round as u64));
        consumer.send(&Interest::new(asked.clone()).encode());
        let (headers, interest) = fragment(&producer.receive());
        let PacketView::Interest(interest) = PacketView::parse(&interest).expect("a packet") else {
            panic!("producers get Interests");
        };
        assert_eq!(interest.name(), asked);
        let mut answer = Vec::new();
        let headers = Headers {
            pit_token: headers.pit_token,
            ..Headers::default()
        };
        let data = Data::new(asked.clone()).encode_with_digest();
        lp::write_packet(&mut answer, &headers, None, &[], Some(&data));
        producer.send(&answer);
        let (_, data) = fragment(&consumer.receive());
        assert_eq!(DataView::parse(&data).expect("a Data").name(), asked);

        if round == 20 {
            before = resident_bytes();
        }
    }
    // Every one of them has left a trace, and the first ones an answer.
    let n_accounted = || n_refused.load(Ordering::Relaxed) + n_dropped_commands(&bed);
    let started = Instant::now();
    while n_accounted() < N_BAD as u64 && started.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    let n_refused = n_refused.load(Ordering::Relaxed);
    assert!(n_refused > 0);
    assert_eq!(n_refused + n_dropped_commands(&bed), N_BAD as u64);
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
