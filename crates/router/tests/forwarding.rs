//! A running router between real sockets: programs register, ask and answer.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tachonym_packet::lp::{Headers, LpView};
use tachonym_packet::{
    Component, Data, DataView, Interest, InterestView, NackReason, Name, PitToken, SignatureInfo,
    lp, tlv,
};
use tachonym_protocol::{CommandName, ControlParameters, ControlResponse, FaceUri};
use tachonym_router::Router;
use tachonym_router::config::Config;

/// Long enough for a loaded machine; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(20);

struct Bed {
    folder: tempfile::TempDir,
    router: Router,
}

impl Bed {
    fn new(extra: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "faces.unix.path = \"{}\"\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
             faces.tcp.listen = [\"127.0.0.1:0\"]\nfaces.websocket.listen = []\n{}\n{extra}",
            folder.path().join("s").display(),
            // `cargo xtask test` runs the same tests with several workers.
            std::env::var("TACHONYM_TEST_CONFIG").unwrap_or_default()
        );
        let config = Config::parse(&text).expect("a good configuration");
        let router = Router::start(&config).expect("it starts");
        Self { folder, router }
    }

    fn unix(&self) -> Program<UnixStream> {
        Program::unix(&self.folder.path().join("s"))
    }

    fn tcp(&self) -> Program<TcpStream> {
        let tcp = self.router.listening().iter().find_map(|uri| match uri {
            FaceUri::Tcp(addr) => Some(*addr),
            _ => None,
        });
        let stream = TcpStream::connect(tcp.expect("it listens")).expect("it accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Program {
            stream,
            pending: Vec::new(),
        }
    }
}

/// A program that speaks NDN over a stream.
struct Program<S> {
    stream: S,
    pending: Vec<u8>,
}

impl Program<UnixStream> {
    fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Self {
            stream,
            pending: Vec::new(),
        }
    }
}

impl<S: Read + Write> Program<S> {
    fn send(&mut self, wire: &[u8]) {
        self.stream.write_all(wire).expect("the router reads");
    }

    /// The next frame.
    fn receive(&mut self) -> Vec<u8> {
        loop {
            if let Ok(Some(len)) = tlv::element_len(&self.pending)
                && len <= self.pending.len()
            {
                return self.pending.drain(..len).collect();
            }
            let mut room = [0; 16_384];
            let n_read = self.stream.read(&mut room).expect("an answer in time");
            assert!(n_read > 0, "the router closed the connection");
            self.pending.extend_from_slice(&room[..n_read]);
        }
    }

    /// Carries out a command and returns its status code.
    fn command(&mut self, module: &str, verb: &str, parameters: &ControlParameters) -> u64 {
        self.command_with_answer(module, verb, parameters).0
    }

    /// As [`Program::command`], with the parameters of the response.
    fn command_with_answer(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> (u64, ControlParameters) {
        let name = CommandName::local(module, verb).name();
        let name = name.with(&Component::generic(parameters.encode()));
        // A command that was seen before, whoever sent it, is refused.
        static N_COMMANDS: AtomicU64 = AtomicU64::new(0);
        let nonce = N_COMMANDS.fetch_add(1, Ordering::Relaxed);
        let info = SignatureInfo {
            nonce: Some(nonce.to_be_bytes().to_vec()),
            ..SignatureInfo::digest()
        };
        self.send(&Interest::new(name).encode_with_digest(&info));
        let wire = self.receive();
        let frame = LpView::parse(&wire).expect("a frame");
        let data = DataView::parse(frame.fragment().expect("a packet")).expect("a Data");
        let response = ControlResponse::decode(data.content()).expect("a response");
        let parameters = ControlParameters::decode(&response.body).unwrap_or_default();
        (response.code, parameters)
    }

    fn register(&mut self, prefix: &str) {
        let parameters = ControlParameters {
            name: Some(name(prefix)),
            ..ControlParameters::default()
        };
        assert_eq!(self.command("rib", "register", &parameters), 200);
    }

    fn answer_one(&mut self, content: &[u8]) {
        let wire = self.receive();
        let frame = LpView::parse(&wire).expect("a frame");
        let interest = InterestView::parse(frame.fragment().expect("a packet")).expect("asked");
        let mut data = Data::new(interest.name().to_name());
        data.content = content.to_vec();
        self.send(&data.encode_with_digest());
    }
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

fn interest(uri: &str) -> Vec<u8> {
    let mut interest = Interest::new(name(uri));
    interest.nonce = Some(tachonym_packet::Nonce([1, 2, 3, 4]));
    interest.encode()
}

fn content(wire: &[u8]) -> Vec<u8> {
    let frame = LpView::parse(wire).expect("a frame");
    let data = DataView::parse(frame.fragment().expect("a packet")).expect("a Data");
    data.content().to_vec()
}

#[test]
fn interest_reaches_its_producer_and_data_comes_back_over_unix_and_tcp() {
    let bed = Bed::new("");
    let (mut producer, mut consumer) = (bed.unix(), bed.tcp());
    producer.register("/app");
    consumer.send(&interest("/app/x"));
    producer.answer_one(b"hello");
    assert_eq!(content(&consumer.receive()), b"hello");
    // The second time, the content store answers: the producer stays silent.
    let mut other = bed.unix();
    other.send(&interest("/app/x"));
    assert_eq!(content(&other.receive()), b"hello");
    bed.router.stop().expect("it stops in order");
}

#[test]
fn pit_tokens_of_every_valid_length_come_back_unchanged() {
    let bed = Bed::new("");
    let (mut producer, mut consumer) = (bed.unix(), bed.unix());
    producer.register("/app");
    for len in 1..=32_u8 {
        let token = PitToken::new(&vec![len; usize::from(len)]);
        let headers = Headers {
            pit_token: token,
            ..Headers::default()
        };
        let mut wire = Vec::new();
        let packet = interest(&format!("/app/{len}"));
        lp::write_packet(&mut wire, &headers, None, &[], Some(&packet));
        consumer.send(&wire);
        producer.answer_one(&[len]);
        let answer = consumer.receive();
        assert_eq!(
            LpView::parse(&answer).expect("a frame").headers().pit_token,
            token
        );
        assert_eq!(content(&answer), [len]);
    }
}

#[test]
fn interest_without_a_route_is_nacked() {
    let bed = Bed::new("");
    let mut consumer = bed.unix();
    consumer.send(&interest("/nowhere"));
    let answer = consumer.receive();
    let frame = LpView::parse(&answer).expect("a frame");
    assert_eq!(frame.headers().nack, Some(NackReason::NoRoute));
}

#[test]
fn a_local_producer_comes_before_a_default_route_of_the_same_cost() {
    let bed = Bed::new("");
    let (mut operator, mut consumer) = (bed.unix(), bed.unix());
    // Nobody is there any more: what goes that way is lost.
    let dead = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let uplink = format!("udp4://{}", dead.local_addr().expect("it is bound"));
    drop(dead);
    let face = ControlParameters {
        uri: Some(uplink),
        ..ControlParameters::default()
    };
    let (code, face) = operator.command_with_answer("faces", "create", &face);
    assert_eq!(code, 200);
    let default_route = ControlParameters {
        name: Some(Name::new()),
        face_id: face.face_id,
        ..ControlParameters::default()
    };
    assert_eq!(operator.command("rib", "register", &default_route), 200);
    let mut producer = bed.unix();
    producer.register("/p");
    for i in 0..3 {
        // A lost Interest would not be sent again: it has one transmission.
        consumer.send(&interest(&format!("/p/ping/{i}")));
        producer.answer_one(&[i]);
        assert_eq!(content(&consumer.receive()), [i]);
    }
    // A lower cost counts more than nearness.
    let route = ControlParameters {
        name: Some(name("/p/ping")),
        face_id: face.face_id,
        cost: Some(10),
        ..ControlParameters::default()
    };
    assert_eq!(operator.command("rib", "register", &route), 200);
    consumer.send(&interest("/p/ping/3"));
    producer.answer_one(&[3]);
    assert_eq!(content(&consumer.receive()), [3]);
}

#[test]
fn faces_are_made_from_a_local_address_by_command() {
    let bed = Bed::new("");
    let folder = tempfile::tempdir().expect("a folder");
    let far = format!(
        "faces.unix.path = \"{}\"\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
         faces.tcp.listen = [\"[::1]:0\"]\nfaces.websocket.listen = [\"127.0.0.1:0\"]\n",
        folder.path().join("s").display()
    );
    let far = Config::parse(&far).expect("a good configuration");
    let far = Router::start(&far).expect("it starts");
    let mut operator = bed.unix();
    let mut create = |remote: &FaceUri, local: &str| {
        let face = ControlParameters {
            uri: Some(remote.to_string()),
            local_uri: Some(local.into()),
            ..ControlParameters::default()
        };
        let (code, face) = operator.command_with_answer("faces", "create", &face);
        let local = face.local_uri.and_then(|uri| uri.parse::<FaceUri>().ok());
        (code, local.and_then(|uri| uri.socket_addr()))
    };
    for remote in far.listening() {
        let (locals, ip) = match remote {
            FaceUri::Udp(_) => (["udp4://127.0.0.7:0", "tcp4://127.0.0.7"], "127.0.0.7"),
            FaceUri::Tcp(_) => (["tcp6://[::1]", "tcp4://127.0.0.7"], "::1"),
            FaceUri::WebSocket(_) => (["ws://127.0.0.7", "udp4://127.0.0.7"], "127.0.0.7"),
            _ => continue,
        };
        // The second is no end of such a face.
        assert_eq!(create(remote, locals[1]).0, 400, "{remote}");
        let (code, local) = create(remote, locals[0]);
        let local = local.expect("the face has an address");
        assert_eq!((code, local.ip().to_string()), (200, ip.into()), "{remote}");
        assert_ne!(local.port(), 0, "the one that the system chose");
    }
    let nowhere = FaceUri::Tcp("127.0.0.1:0".parse().expect("an address"));
    assert_eq!(create(&nowhere, "tcp4://127.0.0.7").0, 400);
}

#[test]
fn a_program_that_goes_takes_its_routes_along() {
    let bed = Bed::new("");
    let mut producer = bed.unix();
    producer.register("/app");
    drop(producer);
    let mut consumer = bed.unix();
    // The face is gone when the router has read the end of its stream; until
    // then an Interest may still be sent there and lost.
    for i in 0..1000 {
        consumer.send(&interest(&format!("/app/{i}")));
        consumer
            .stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .expect("a time-out");
        let mut room = [0; 256];
        if let Ok(n_read) = consumer.stream.read(&mut room) {
            let frame = LpView::parse(&room[..n_read]).expect("one frame");
            assert_eq!(frame.headers().nack, Some(NackReason::NoRoute));
            return;
        }
    }
    panic!("the route stays");
}

#[test]
fn commands_change_the_router_and_bad_ones_are_answered_with_their_code() {
    let bed = Bed::new("");
    let mut operator = bed.unix();
    let none = ControlParameters::default();
    assert_eq!(operator.command("strategy-choice", "set", &none), 400);
    let multicast = ControlParameters {
        name: Some(name("/m")),
        strategy: Some(name("/localhost/nfd/strategy/multicast")),
        ..none.clone()
    };
    assert_eq!(operator.command("strategy-choice", "set", &multicast), 200);
    let unknown = ControlParameters {
        strategy: Some(name("/localhost/nfd/strategy/none-such")),
        ..multicast
    };
    assert_eq!(operator.command("strategy-choice", "set", &unknown), 404);
    let face = ControlParameters {
        face_id: Some(99_999),
        ..none.clone()
    };
    assert_eq!(operator.command("faces", "destroy", &face), 200);
    let udp = ControlParameters {
        uri: Some("udp4://127.0.0.1:9".into()),
        ..none.clone()
    };
    assert_eq!(operator.command("faces", "create", &udp), 200);
    assert_eq!(operator.command("faces", "create", &udp), 409);
}

#[test]
fn tcp_face_is_answered_for_when_it_is_connected_or_refused() {
    let bed = Bed::new("");
    let mut operator = bed.unix();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let uri = format!("tcp4://{}", listener.local_addr().expect("bound"));
    let create = ControlParameters {
        uri: Some(uri),
        ..ControlParameters::default()
    };
    assert_eq!(operator.command("faces", "create", &create), 200);
    listener.set_nonblocking(true).expect("a socket");
    let (stream, _) = listener.accept().expect("it is connected by now");
    assert_eq!(operator.command("faces", "create", &create), 409);
    drop(stream);
    // A port that was free a moment ago.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let uri = format!("tcp4://{}", closed.local_addr().expect("bound"));
    drop(closed);
    let create = ControlParameters {
        uri: Some(uri),
        ..ControlParameters::default()
    };
    assert_eq!(operator.command("faces", "create", &create), 504);
}

#[test]
fn static_routes_are_there_before_the_first_packet() {
    let upstream = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    upstream
        .set_read_timeout(Some(PATIENCE))
        .expect("a time-out");
    let port = upstream.local_addr().expect("bound").port();
    let bed = Bed::new(&format!(
        "[[route]]\nprefix = \"/far\"\nnext_hop = \"udp4://127.0.0.1:{port}\"\n"
    ));
    let mut consumer = bed.unix();
    consumer.send(&interest("/far/away"));
    let mut room = [0; 9000];
    let (n_read, from) = upstream.recv_from(&mut room).expect("it is forwarded");
    let frame = LpView::parse(&room[..n_read]).expect("a frame");
    let asked = InterestView::parse(frame.fragment().expect("a packet")).expect("as it came");
    let mut data = Data::new(asked.name().to_name());
    data.content = b"far".to_vec();
    upstream
        .send_to(&data.encode_with_digest(), from)
        .expect("loopback");
    assert_eq!(content(&consumer.receive()), b"far");
}

#[test]
fn garbage_on_one_face_leaves_the_others_alone() {
    let bed = Bed::new("");
    let (mut producer, mut consumer) = (bed.unix(), bed.unix());
    producer.register("/app");
    let mut bad = bed.unix();
    bad.send(&[0xff; 64]);
    assert_eq!(bad.stream.read(&mut [0; 8]).expect("closed in order"), 0);
    consumer.send(&interest("/app/1"));
    producer.answer_one(b"still here");
    assert_eq!(content(&consumer.receive()), b"still here");
    assert!(bed.router.is_running());
}
