//! One face to a router, and waiting on it.
//!
//! Owns the socket (through `tachonym-face`), the receive batch and nonces. It
//! keeps no table of pending Interests: what arrives is handed to the caller,
//! and [`Endpoint::express`] waits for one answer at a time.

use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tachonym_face::{
    CloseReason, CreateError, DropReason, FaceCounters, FaceParams, FaceSystem, FaceUpdate,
    RxBatch, SystemOptions, monotonic_now,
};
use tachonym_packet::lp::Headers;
use tachonym_packet::types::component;
use tachonym_packet::{
    DataView, FaceId, Interest, InterestRewrite, InterestView, MonoNs, NackReason, Nonce,
    PacketView, PitToken,
};
use tachonym_protocol::{FaceEventKind, FaceUri, Scope};

/// Bytes that may wait for the router to read them.
const MAX_BACKLOG_BYTES: usize = 64 << 20;

/// Time beyond an Interest's lifetime in which its answer or Nack may arrive.
const LIFETIME_GRACE: Duration = Duration::from_millis(20);

/// Why an endpoint cannot be used any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The face could not be created.
    #[error("cannot connect to {uri}: {reason}; {}", connect_hint(uri))]
    Connect {
        /// The router's address.
        uri: String,
        /// Why not.
        reason: CreateError,
    },
    /// The router could not be reached.
    #[error("cannot connect to {uri}: {reason}; {}", connect_hint(uri))]
    Unreachable {
        /// The router's address.
        uri: String,
        /// Why not, such as "connection refused".
        reason: String,
    },
    /// The connection was closed.
    #[error("the connection to {uri} was closed: {reason}; see that the router still runs")]
    Closed {
        /// The router's address.
        uri: String,
        /// What ended it.
        reason: String,
    },
    /// The operating system refused to wait.
    #[error("cannot wait for packets")]
    Io(#[from] io::Error),
}

/// What to check when the router at `uri` cannot be reached.
fn connect_hint(uri: &str) -> &'static str {
    if uri.starts_with("unix://") {
        "check that a router runs and listens on this socket (`tachonym run` prints its addresses)"
    } else {
        "check the address and port, that a router listens there (`tachonym run` prints its \
         addresses), and that no firewall is between"
    }
}

/// Why an Interest has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressError {
    /// No answer came within the lifetime, nor to any of the retries.
    #[error("no answer in time")]
    TimedOut,
    /// The Interest came back as a Nack with this reason.
    #[error("refused by a router: {0}")]
    Nack(NackReason),
    /// The Interest is larger than a packet may be, or malformed.
    #[error("the Interest cannot be sent: {0}")]
    Unsendable(String),
    /// The connection to the router failed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// What arrived.
#[derive(Clone, Copy, Debug)]
pub enum Received<'a> {
    /// An Interest, for a producer.
    Interest(InterestView<'a>, Headers),
    /// A Data.
    Data(DataView<'a>, Headers),
    /// An Interest that comes back.
    Nack(NackReason, InterestView<'a>, Headers),
}

/// What came of one Interest.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A Data.
    Data(Answer),
    /// A router refused.
    Nack {
        /// Why.
        reason: NackReason,
        /// The face of the router by which the Nack came, [`FaceId::INTERNAL`] if the router
        /// itself refuses; `None` unless this face has
        /// [local fields](crate::Controller::enable_local_fields).
        incoming_face_id: Option<FaceId>,
        /// Time from sending the Interest.
        after: Duration,
    },
    /// Neither, until the lifetime of the Interest was over.
    Nothing {
        /// Time from sending the Interest.
        after: Duration,
    },
}

/// A Data that answers an Interest.
#[derive(Clone, Debug)]
pub struct Answer {
    wire: Vec<u8>,
    /// Time from the last time the Interest was sent.
    pub rtt: Duration,
    /// Congestion mark; 0 is none.
    pub congestion_mark: u64,
    /// The face of the router by which the Data came, [`FaceId::CONTENT_STORE`] for its own
    /// store; `None` unless this face has
    /// [local fields](crate::Controller::enable_local_fields).
    pub incoming_face_id: Option<FaceId>,
}

impl Answer {
    /// The Data.
    #[must_use]
    pub fn data(&self) -> DataView<'_> {
        DataView::parse(&self.wire).expect("it was parsed when it arrived")
    }

    /// The whole element.
    #[must_use]
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }
}

/// The sending half of an [`Endpoint`].
pub struct Link {
    faces: FaceSystem,
    face: FaceId,
    nonce_state: u64,
    n_unparsed: u64,
    n_unsent: u64,
}

impl Link {
    /// A nonce that was not used before.
    pub fn nonce(&mut self) -> Nonce {
        // SplitMix64 (Steele et al. 2014): nonces need to differ, not to be
        // secret.
        self.nonce_state = self.nonce_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.nonce_state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [a, b, c, d, ..] = (z ^ (z >> 31)).to_be_bytes();
        Nonce([a, b, c, d])
    }

    /// Queues an Interest; one without a nonce gets one.
    pub fn send_interest(&mut self, interest: &mut Interest) {
        if interest.nonce.is_none() {
            interest.nonce = Some(self.nonce());
        }
        self.send(&Headers::default(), &interest.encode());
    }

    /// Queues a Data as the answer to an Interest that came with `token`.
    pub fn send_data(&mut self, wire: &[u8], token: Option<PitToken>) {
        let headers = Headers {
            pit_token: token,
            ..Headers::default()
        };
        self.send(&headers, wire);
    }

    /// Queues a Nack of an Interest that came with `token`.
    pub fn send_nack(&mut self, wire: &[u8], reason: NackReason, token: Option<PitToken>) {
        let headers = Headers {
            pit_token: token,
            nack: Some(reason),
            ..Headers::default()
        };
        self.send(&headers, wire);
    }

    fn send(&mut self, headers: &Headers, l3: &[u8]) {
        let dropped: Result<(), DropReason> = self.faces.send(self.face, headers, l3);
        self.n_unsent += u64::from(dropped.is_err());
    }

    /// Packets that arrived and were no Interest, Data or Nack, and Interests
    /// whose parameters do not match the digest in their name.
    #[must_use]
    pub const fn n_unparsed(&self) -> u64 {
        self.n_unparsed
    }

    /// Packets that were dropped because the router did not read.
    #[must_use]
    pub const fn n_unsent(&self) -> u64 {
        self.n_unsent
    }
}

/// A program's face to a router.
pub struct Endpoint {
    link: Link,
    batch: RxBatch,
    /// The first packet of the batch that was not handed out.
    next_idx: usize,
    remote: FaceUri,
    closed: Option<CloseReason>,
}

impl Endpoint {
    /// Connects to the router at `uri`, and waits until the connection is established.
    ///
    /// # Errors
    /// If that fails.
    pub fn connect(uri: &FaceUri) -> Result<Self, EndpointError> {
        let mut options = SystemOptions::default();
        options.max_face_backlog_bytes = MAX_BACKLOG_BYTES;
        let mut faces = FaceSystem::new(options)?;
        let outcome = faces
            .create(&FaceParams::new(uri.clone()))
            .map_err(|reason| EndpointError::Connect {
                uri: uri.to_string(),
                reason,
            })?;
        let nonce_state = getrandom::u64().map_err(io::Error::from)?;
        let mut endpoint = Self {
            link: Link {
                faces,
                face: outcome.id,
                nonce_state,
                n_unparsed: 0,
                n_unsent: 0,
            },
            batch: RxBatch::new(),
            next_idx: 0,
            remote: uri.clone(),
            closed: None,
        };
        let mut is_up = outcome.is_up;
        while !is_up {
            endpoint.wait(None)?;
            is_up = endpoint.take_events();
            endpoint.check_open()?;
        }
        Ok(endpoint)
    }

    /// The time that deadlines count in.
    #[must_use]
    pub fn now(&self) -> MonoNs {
        monotonic_now()
    }

    /// The sending half.
    pub const fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// The router's address.
    #[must_use]
    pub const fn remote(&self) -> &FaceUri {
        &self.remote
    }

    /// The scope of registrations over this face: `/localhost` over a Unix socket or TCP
    /// between loopback addresses, `/localhop` otherwise. Over UDP and WebSocket every
    /// application counts as a neighbour, as with NFD.
    #[must_use]
    pub fn registration_scope(&self) -> Scope {
        match &self.remote {
            FaceUri::Unix(_) => Scope::Localhost,
            FaceUri::Tcp(addr) if addr.ip().is_loopback() => Scope::Localhost,
            _ => Scope::Localhop,
        }
    }

    /// Accepts local fields (NDNLPv2) from the router, such as the IncomingFaceId of a
    /// Nack. False if the router is not on this machine.
    pub(crate) fn accept_local_fields(&mut self) -> bool {
        let update = FaceUpdate {
            local_fields: Some(true),
            ..FaceUpdate::default()
        };
        let faces = &mut self.link.faces;
        faces.update(self.link.face, &update).is_ok()
    }

    /// This end of the connection, as a FaceUri.
    #[must_use]
    pub fn local_uri(&self) -> Option<FaceUri> {
        self.link
            .faces
            .info(self.link.face)
            .map(|info| info.local.clone())
    }

    /// Sends what is queued, waits until something arrives or `deadline` has
    /// come (`None`: as long as it takes), and hands every packet that has
    /// arrived to `handle`. When `handle` breaks, the rest is kept for the next
    /// call. Comes back after one wait, with or without packets.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn poll(
        &mut self,
        deadline: Option<MonoNs>,
        mut handle: impl FnMut(&mut Link, Received<'_>) -> ControlFlow<()>,
    ) -> Result<(), EndpointError> {
        if self.next_idx >= self.batch.len() {
            self.check_open()?;
            self.wait(deadline)?;
            self.take_events();
            self.check_reachable()?;
        }
        while let Some(frame) = self.batch.get(self.next_idx) {
            self.next_idx += 1;
            let received = match (PacketView::parse(frame.l3), frame.headers.nack) {
                (Ok(PacketView::Interest(interest)), Some(reason)) => {
                    Received::Nack(reason, interest, *frame.headers)
                }
                (Ok(PacketView::Interest(interest)), None)
                    if interest.verify_parameters_digest() =>
                {
                    Received::Interest(interest, *frame.headers)
                }
                (Ok(PacketView::Data(data)), None) => Received::Data(data, *frame.headers),
                _ => {
                    self.link.n_unparsed += 1;
                    continue;
                }
            };
            if handle(&mut self.link, received).is_break() {
                break;
            }
        }
        self.link.faces.flush();
        Ok(())
    }

    /// Sends `interest` and waits for the Data that answers it. It is sent again
    /// up to `n_retries` times, each time with a new nonce, when its lifetime
    /// has passed. Other packets that arrive meanwhile are lost; those behind
    /// the answer are kept.
    ///
    /// # Errors
    /// If there is no answer, or a Nack.
    pub fn express(&mut self, interest: &Interest, n_retries: u32) -> Result<Answer, ExpressError> {
        self.express_wire(&interest.encode(), n_retries)
    }

    /// Like [`Endpoint::express`], of an Interest that is encoded (and perhaps
    /// signed) already. Its nonce is replaced.
    ///
    /// # Errors
    /// If there is no answer, or a Nack, or `wire` is no Interest.
    pub fn express_wire(&mut self, wire: &[u8], n_retries: u32) -> Result<Answer, ExpressError> {
        for _ in 0..=n_retries {
            match self.ask_wire(wire)? {
                Reply::Data(answer) => return Ok(answer),
                Reply::Nack { reason, .. } => return Err(ExpressError::Nack(reason)),
                Reply::Nothing { .. } => {}
            }
        }
        Err(ExpressError::TimedOut)
    }

    /// Sends `interest` once and waits for its lifetime. Like [`Endpoint::express`], but a
    /// Nack and silence are replies, with what the router says about them.
    ///
    /// # Errors
    /// If the Interest cannot be sent, or the connection is gone.
    pub fn ask(&mut self, interest: &Interest) -> Result<Reply, ExpressError> {
        self.ask_wire(&interest.encode())
    }

    fn ask_wire(&mut self, wire: &[u8]) -> Result<Reply, ExpressError> {
        let interest = InterestView::parse(wire)
            .map_err(|error| ExpressError::Unsendable(error.to_string()))?;
        let lifetime = Duration::from_millis(interest.lifetime_ms()) + LIFETIME_GRACE;
        let rewrite = InterestRewrite {
            nonce: Some(self.link.nonce()),
            ..InterestRewrite::default()
        };
        let mut renewed = Vec::new();
        rewrite.write_into(&interest, &mut renewed);
        self.link.send(&Headers::default(), &renewed);
        let sent = monotonic_now();
        Ok(self.wait_for(&interest, sent, sent + lifetime)?)
    }

    fn wait_for(
        &mut self,
        interest: &InterestView<'_>,
        sent: MonoNs,
        deadline: MonoNs,
    ) -> Result<Reply, EndpointError> {
        let mut result = None;
        loop {
            self.poll(Some(deadline), |_, received| {
                match received {
                    Received::Data(data, headers) if satisfies(&data, interest) => {
                        result = Some(Reply::Data(Answer {
                            wire: data.wire().to_vec(),
                            rtt: monotonic_now().saturating_since(sent),
                            congestion_mark: headers.congestion_mark,
                            incoming_face_id: headers.incoming_face_id,
                        }));
                    }
                    Received::Nack(reason, back, headers) if back.name() == interest.name() => {
                        result = Some(Reply::Nack {
                            reason,
                            incoming_face_id: headers.incoming_face_id,
                            after: monotonic_now().saturating_since(sent),
                        });
                    }
                    _ => return ControlFlow::Continue(()),
                }
                ControlFlow::Break(())
            })?;
            if let Some(reply) = result.take() {
                return Ok(reply);
            }
            if monotonic_now() >= deadline {
                let after = monotonic_now().saturating_since(sent);
                return Ok(Reply::Nothing { after });
            }
        }
    }

    /// One wait of the face system, until `deadline` at the latest.
    fn wait(&mut self, deadline: Option<MonoNs>) -> Result<(), EndpointError> {
        let faces = &mut self.link.faces;
        faces.flush();
        let now = monotonic_now();
        let timeout = deadline.map(|at| at.saturating_since(now));
        faces.poll(timeout, &mut self.batch)?;
        self.next_idx = 0;
        Ok(())
    }

    /// Whether the face came up.
    fn take_events(&mut self) -> bool {
        let mut is_up = false;
        while let Some(event) = self.link.faces.poll_event() {
            match event.kind {
                FaceEventKind::Destroyed if event.face.id == self.link.face => {
                    self.closed = event.reason.or(Some(CloseReason::Destroyed));
                }
                FaceEventKind::Up => is_up = true,
                _ => {}
            }
        }
        is_up
    }

    fn check_open(&self) -> Result<(), EndpointError> {
        let Some(reason) = self.closed else {
            return Ok(());
        };
        let uri = self.remote.to_string();
        Err(match reason {
            CloseReason::ConnectFailed(_) => EndpointError::Unreachable {
                uri,
                reason: reason.cause(),
            },
            _ => EndpointError::Closed {
                uri,
                reason: reason.cause(),
            },
        })
    }

    /// Fails if the first datagrams to the router came back. Once something was received,
    /// an error may be of a router that restarts, and is ignored.
    fn check_reachable(&self) -> Result<(), EndpointError> {
        let faces = &self.link.faces;
        let Some(kind) = faces.returned(self.link.face) else {
            return Ok(());
        };
        let has_received = |counters: &FaceCounters| counters.n_in_bytes > 0;
        if faces
            .face_counters(self.link.face)
            .is_some_and(has_received)
        {
            return Ok(());
        }
        let reason = match kind {
            io::ErrorKind::ConnectionRefused => "no program listens on this UDP port".to_owned(),
            kind => kind.to_string(),
        };
        Err(EndpointError::Unreachable {
            uri: self.remote.to_string(),
            reason,
        })
    }
}

/// Whether `data` is an answer to `interest`, freshness aside.
fn satisfies(data: &DataView<'_>, interest: &InterestView<'_>) -> bool {
    let asked = interest.name();
    if let Some(last) = asked.last()
        && last.typ() == component::IMPLICIT_SHA256_DIGEST
        && data.name() == asked.prefix(asked.len() - 1)
    {
        return data.implicit_digest() == last.value();
    }
    if interest.can_be_prefix() {
        data.name().starts_with(asked)
    } else {
        data.name() == asked
    }
}

/// Milliseconds since the Unix epoch, by this machine's clock.
#[must_use]
pub fn wall_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
