//! A router under attack, and the peers that attack it.

#![allow(
    unreachable_pub,
    dead_code,
    reason = "each module of the tests uses its part"
)]

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tachonym_client::{Controller, Endpoint};
use tachonym_packet::lp::{Headers, LpView};
use tachonym_packet::{
    Component, Data, DataView, Interest, InterestView, Name, PitToken, SignatureInfo, lp, tlv,
    types,
};
use tachonym_protocol::{
    CommandName, ControlParameters, ControlResponse, FaceStatus, FaceUri, Scope,
};
use tachonym_router::Router;
use tachonym_router::config::Config;
use tachonym_security::Signer;

/// Reached only by a test that fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Bed {
    pub folder: tempfile::TempDir,
    pub router: Router,
    config: Config,
}

impl Bed {
    pub fn new(extra: &str) -> Self {
        Self::with(|_| extra.to_owned())
    }

    /// What `extra` adds to the configuration may name files in the folder.
    pub fn with(extra: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let extra = extra(folder.path());
        let text = format!(
            "faces.unix.path = \"{}\"\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
             faces.tcp.listen = [\"127.0.0.1:0\"]\nfaces.websocket.listen = [\"127.0.0.1:0\"]\n\
             {}\n{extra}",
            folder.path().join("s").display(),
            // `cargo xtask test` runs the same tests with several workers.
            std::env::var("TACHONYM_TEST_CONFIG").unwrap_or_default()
        );
        let config = Config::parse(&text).expect("a good configuration");
        let router = Router::start(&config).expect("it starts");
        Self {
            folder,
            router,
            config,
        }
    }

    /// Ends the router, and starts another one with the same configuration.
    pub fn restart(self) -> Self {
        self.router.stop().expect("it ends");
        let router = Router::start(&self.config).expect("it starts");
        Self { router, ..self }
    }

    pub fn address(&self, transport: &str) -> SocketAddr {
        let uris = self.router.listening().iter();
        let mut found = uris.filter(|uri| uri.scheme().starts_with(transport));
        let uri = found.next().expect("it listens");
        FaceUri::socket_addr(uri).expect("an address")
    }

    pub fn unix(&self) -> Stream<UnixStream> {
        let stream = UnixStream::connect(self.folder.path().join("s")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Stream::new(stream)
    }

    pub fn tcp(&self) -> Stream<TcpStream> {
        let stream = TcpStream::connect(self.address("tcp")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Stream::new(stream)
    }

    pub fn websocket(&self) -> WebSocket {
        let (answer, socket) = self.upgrade("");
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        socket
    }

    /// Asks for a WebSocket with these lines in the request. The answer, and
    /// the connection.
    pub fn upgrade(&self, lines: &str) -> (String, WebSocket) {
        let mut socket = TcpStream::connect(self.address("ws")).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let request = UPGRADE.replace("\r\n\r\n", &format!("\r\n{lines}\r\n"));
        socket.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).expect("a handshake");
            answer.extend(byte);
        }
        let answer = String::from_utf8(answer).expect("text");
        (answer, WebSocket { socket })
    }

    /// Does something with an operator's program at the Unix socket.
    pub fn operator<R>(&self, work: impl FnOnce(&mut Controller<'_>) -> R) -> R {
        let path = self.folder.path().join("s");
        let uri = FaceUri::Unix(path.to_str().expect("text").into());
        let mut endpoint = Endpoint::connect(&uri).expect("it listens");
        work(&mut Controller::new(&mut endpoint, Signer::digest()))
    }

    /// Whether there is a route of this very prefix.
    pub fn has_route(&self, prefix: &str) -> bool {
        let routes = self.operator(|operator| operator.rib().expect("a list"));
        routes.iter().any(|entry| entry.name == name(prefix))
    }

    /// The face whose remote address has this scheme.
    pub fn face(&self, scheme: &str) -> FaceStatus {
        let faces = self.operator(|operator| operator.faces().expect("a list"));
        let mut found = faces
            .into_iter()
            .filter(|face| face.uri.starts_with(scheme));
        found.next().expect("such a face")
    }

    pub fn udp(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect(self.address("udp")).expect("loopback");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        socket
    }

    /// Packets dropped so far.
    pub fn n_drops(&self) -> u64 {
        self.router.snapshot().expect("it runs").n_drops()
    }

    /// Packets dropped so far for this reason.
    pub fn n_dropped(&self, reason: &str) -> u64 {
        self.router.snapshot().expect("it runs").n_dropped(reason)
    }

    /// Waits until so many packets have been dropped for this reason, and no more.
    pub fn drops_of_become(&self, reason: &str, n_drops: u64) {
        let deadline = Instant::now() + PATIENCE;
        while self.n_dropped(reason) < n_drops && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.n_dropped(reason), n_drops, "{reason}");
    }

    /// Waits until so many packets have been dropped, and no more.
    pub fn drops_become(&self, n_drops: u64, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.n_drops() < n_drops && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.n_drops(), n_drops, "{what}");
    }

    /// A producer and a consumer that are to be served whatever others do.
    pub fn honest(&self) -> Honest {
        let mut producer = self.unix();
        producer.register("/honest");
        Honest {
            producer,
            consumer: self.unix(),
            n_exchanged: 0,
        }
    }
}

pub struct Honest {
    pub producer: Stream<UnixStream>,
    pub consumer: Stream<UnixStream>,
    pub n_exchanged: u64,
}

impl Honest {
    /// One exchange, which must succeed.
    pub fn exchange(&mut self) {
        self.n_exchanged += 1;
        let asked = name("/honest").with(&Component::segment(self.n_exchanged));
        self.consumer.send(&Interest::new(asked.clone()).encode());
        self.producer.answer();
        let (_, data) = self.consumer.packet();
        assert_eq!(DataView::parse(&data).expect("a Data").name(), asked);
    }
}

/// A stream of frames.
pub struct Stream<S> {
    pub socket: S,
    pub pending: VecDeque<u8>,
}

impl<S: Read + Write> Stream<S> {
    pub fn new(socket: S) -> Self {
        Self {
            socket,
            pending: VecDeque::new(),
        }
    }

    pub fn send(&mut self, wire: &[u8]) {
        self.socket.write_all(wire).expect("the router reads");
    }

    /// The next frame; `None` if the router closed the connection.
    pub fn frame(&mut self) -> Option<Vec<u8>> {
        match self.next_frame() {
            Ok(frame) => frame,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no answer in time: {error}"),
        }
    }

    /// The next frame; `None` if the router closed the connection.
    fn next_frame(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            let bytes = self.pending.make_contiguous();
            if let Ok(Some(len)) = tlv::element_len(bytes)
                && len <= bytes.len()
            {
                return Ok(Some(self.pending.drain(..len).collect()));
            }
            let mut room = [0; 65_536];
            match self.socket.read(&mut room) {
                Ok(0) => return Ok(None),
                Ok(n_read) => self.pending.extend(&room[..n_read]),
                // A thread that has made a router with io_uring may be interrupted by it.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The headers and the packet of the next frame.
    pub fn packet(&mut self) -> (Headers, Vec<u8>) {
        let wire = self.frame().expect("the connection stands");
        let frame = LpView::parse(&wire).expect("a frame");
        let packet = frame.fragment().expect("a packet").to_vec();
        (*frame.headers(), packet)
    }

    /// The next frame, or `None` if the time-out of the socket is over first.
    pub fn frame_in_time(&mut self) -> Option<Vec<u8>> {
        self.next_frame().ok().flatten()
    }

    pub fn register(&mut self, prefix: &str) {
        let parameters = ControlParameters {
            name: Some(name(prefix)),
            ..ControlParameters::default()
        };
        self.command(("rib", "register"), &parameters);
    }

    /// Sends a command, whatever comes of it.
    pub fn send_command(&mut self, (module, verb): (&str, &str), parameters: &ControlParameters) {
        let command = CommandName::local(module, verb).with_parameters(parameters);
        // A command that was seen before is refused.
        static N_COMMANDS: AtomicU64 = AtomicU64::new(0);
        let number = N_COMMANDS.fetch_add(1, Ordering::Relaxed);
        let info = SignatureInfo {
            nonce: Some(number.to_be_bytes().to_vec()),
            ..SignatureInfo::digest()
        };
        self.send(&Interest::new(command).encode_with_digest(&info));
    }

    /// Has a command carried out, which must succeed; what the router says of it.
    pub fn command(
        &mut self,
        (module, verb): (&str, &str),
        parameters: &ControlParameters,
    ) -> ControlParameters {
        self.send_command((module, verb), parameters);
        let (_, response) = self.packet();
        let data = DataView::parse(&response).expect("a Data");
        let response = tachonym_protocol::ControlResponse::decode(data.content());
        let response = response.expect("a response");
        assert_eq!(response.code, 200, "{module}/{verb}: {}", response.text);
        ControlParameters::decode(&response.body).expect("its parameters")
    }

    /// Sends an Interest without a route; whether the next frame is the Nack for it.
    pub fn probe_is_next(&mut self, uri: &str) -> bool {
        self.send(&interest(uri));
        let (headers, packet) = self.packet();
        let asked = InterestView::parse(&packet);
        headers.nack.is_some() && asked.is_ok_and(|asked| asked.name() == name(uri))
    }

    /// Answers the next Interest.
    pub fn answer(&mut self) {
        let (headers, interest) = self.packet();
        let asked = InterestView::parse(&interest).expect("an Interest");
        let data = data(asked.name().to_name());
        self.send(&framed(headers.pit_token, &data));
    }
}

pub const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Opcode of a whole binary message (RFC 6455, section 5.2).
pub const BINARY: u8 = 0x82;

/// A WebSocket whose handshake is over.
pub struct WebSocket {
    pub socket: TcpStream,
}

impl WebSocket {
    pub fn send(&mut self, packet: &[u8]) {
        let wire = message(BINARY, packet);
        self.socket.write_all(&wire).expect("the router reads");
    }

    /// The content of the next message; `None` if the router closed the connection.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 2];
        self.socket.read_exact(&mut head).ok()?;
        let mut len = usize::from(head[1]);
        if len == 126 {
            let mut long = [0; 2];
            self.socket.read_exact(&mut long).ok()?;
            len = usize::from(u16::from_be_bytes(long));
        }
        let mut content = vec![0; len];
        self.socket.read_exact(&mut content).ok()?;
        (head[0] == BINARY).then_some(content)
    }

    /// Asks for what nobody has; the headers of the Nack, or `None` if the router
    /// closed the connection.
    pub fn probe(&mut self, uri: &str) -> Option<Headers> {
        // A connection that is closed shows when it is read.
        let _ = self.socket.write_all(&message(BINARY, &interest(uri)));
        let wire = self.receive()?;
        let headers = *LpView::parse(&wire).expect("a frame").headers();
        assert!(headers.nack.is_some(), "{uri}");
        Some(headers)
    }
}

/// A command, signed by its digest, that has Interests under `prefix` sent to its
/// sender.
pub fn registration(scope: Scope, prefix: &str) -> Vec<u8> {
    let parameters = ControlParameters {
        name: Some(name(prefix)),
        ..ControlParameters::default()
    };
    let command = CommandName {
        scope,
        ..CommandName::local("rib", "register")
    };
    command_wire(command, &parameters)
}

pub fn command_wire(command: CommandName<'_>, parameters: &ControlParameters) -> Vec<u8> {
    let command = Interest::new(command.with_parameters(parameters));
    command.encode_with_digest(&SignatureInfo::digest())
}

/// What a Data says that answers a command, in an LpPacket or bare.
pub fn response(wire: &[u8]) -> ControlResponse {
    let frame = LpView::parse(wire).expect("a frame");
    let packet = frame.fragment().expect("a packet");
    let data = DataView::parse(packet).expect("a Data");
    ControlResponse::decode(data.content()).expect("a response")
}

/// A message from a client: its mask is zero.
pub fn message(head: u8, content: &[u8]) -> Vec<u8> {
    let mut wire = vec![head];
    match u8::try_from(content.len()) {
        Ok(len) if len < 126 => wire.push(0x80 | len),
        _ => {
            let len = u16::try_from(content.len()).expect("a short message");
            wire.push(0x80 | 126);
            wire.extend(len.to_be_bytes());
        }
    }
    wire.extend([0; 4]);
    wire.extend(content);
    wire
}

pub fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

pub fn interest(uri: &str) -> Vec<u8> {
    Interest::new(name(uri)).encode()
}

/// A Data that costs no cryptography.
pub fn data(name: Name) -> Vec<u8> {
    Data {
        signature_info: SignatureInfo::new(types::signature_type::NULL),
        ..Data::new(name)
    }
    .encode()
}

pub fn framed(token: Option<PitToken>, packet: &[u8]) -> Vec<u8> {
    let headers = Headers {
        pit_token: token,
        ..Headers::default()
    };
    let mut out = Vec::new();
    lp::write_packet(&mut out, &headers, None, &[], Some(packet));
    out
}

pub fn element(typ: u32, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::write_tlv(&mut out, typ, value);
    out
}
