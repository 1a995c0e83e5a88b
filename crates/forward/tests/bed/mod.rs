//! A test bed for one engine: packets written byte by byte, a virtual clock,
//! and everything the engine sends.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::time::Duration;

use tachonym_forward::{Engine, EngineConfig, FaceTraits, LinkType, Output, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    FaceId, HashKey, InterestRewrite, InterestView, MonoNs, NackReason, Name, NameView, PacketView,
    PitToken, tlv, types,
};
use tachonym_tables::NextHop;

pub(crate) const LOCAL: FaceTraits = FaceTraits::LOCAL;
pub(crate) const REMOTE: FaceTraits = FaceTraits::REMOTE;
pub(crate) const MULTI_ACCESS: FaceTraits = FaceTraits {
    link: LinkType::MultiAccess,
    ..REMOTE
};
pub(crate) const AD_HOC: FaceTraits = FaceTraits {
    link: LinkType::AdHoc,
    ..REMOTE
};

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().expect("a URI in a test is right")
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// An Interest to be written.
#[derive(Clone, Debug)]
pub(crate) struct Interest {
    pub(crate) name: Name,
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    pub(crate) hint: Vec<Name>,
    pub(crate) nonce: Option<u32>,
    pub(crate) lifetime_ms: Option<u64>,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) padding_bytes: usize,
}

/// An Interest with nonce 1 and nothing else.
pub(crate) fn interest(uri: &str) -> Interest {
    Interest {
        name: name(uri),
        can_be_prefix: false,
        must_be_fresh: false,
        hint: Vec::new(),
        nonce: Some(1),
        lifetime_ms: None,
        hop_limit: None,
        padding_bytes: 0,
    }
}

impl Interest {
    pub(crate) fn prefix(self) -> Self {
        Self {
            can_be_prefix: true,
            ..self
        }
    }

    pub(crate) fn fresh(self) -> Self {
        Self {
            must_be_fresh: true,
            ..self
        }
    }

    pub(crate) fn hint(self, uris: &[&str]) -> Self {
        let hint = uris.iter().map(|uri| name(uri)).collect();
        Self { hint, ..self }
    }

    pub(crate) fn nonce(self, nonce: u32) -> Self {
        Self {
            nonce: Some(nonce),
            ..self
        }
    }

    pub(crate) fn without_nonce(self) -> Self {
        Self {
            nonce: None,
            ..self
        }
    }

    pub(crate) fn lifetime_ms(self, lifetime_ms: u64) -> Self {
        Self {
            lifetime_ms: Some(lifetime_ms),
            ..self
        }
    }

    pub(crate) fn hop_limit(self, hop_limit: u8) -> Self {
        Self {
            hop_limit: Some(hop_limit),
            ..self
        }
    }

    pub(crate) fn wire(&self) -> Vec<u8> {
        let mut wire = Vec::new();
        tlv::write_nested(&mut wire, types::INTEREST, |out| {
            self.name.encode_into(out);
            if self.can_be_prefix {
                tlv::write_tlv(out, types::CAN_BE_PREFIX, &[]);
            }
            if self.must_be_fresh {
                tlv::write_tlv(out, types::MUST_BE_FRESH, &[]);
            }
            if !self.hint.is_empty() {
                tlv::write_nested(out, types::FORWARDING_HINT, |out| {
                    self.hint.iter().for_each(|name| name.encode_into(out));
                });
            }
            if let Some(nonce) = self.nonce {
                tlv::write_tlv(out, types::NONCE, &nonce.to_be_bytes());
            }
            if let Some(lifetime_ms) = self.lifetime_ms {
                tlv::write_nni(out, types::INTEREST_LIFETIME, lifetime_ms);
            }
            if let Some(hop_limit) = self.hop_limit {
                tlv::write_tlv(out, types::HOP_LIMIT, &[hop_limit]);
            }
            if self.padding_bytes > 0 {
                // A type that is not known, and that is not critical.
                tlv::write_tlv(out, 0xfe, &vec![0; self.padding_bytes]);
            }
        });
        wire
    }
}

/// A Data to be written.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) name: Name,
    pub(crate) freshness_ms: u64,
    pub(crate) content: Vec<u8>,
}

/// A Data that is never fresh.
pub(crate) fn data(uri: &str) -> Data {
    Data {
        name: name(uri),
        freshness_ms: 0,
        content: b"content".to_vec(),
    }
}

impl Data {
    pub(crate) fn fresh_ms(self, freshness_ms: u64) -> Self {
        Self {
            freshness_ms,
            ..self
        }
    }

    pub(crate) fn content(self, content: &[u8]) -> Self {
        Self {
            content: content.to_vec(),
            ..self
        }
    }

    pub(crate) fn wire(&self) -> Vec<u8> {
        let mut wire = Vec::new();
        tlv::write_nested(&mut wire, types::DATA, |out| {
            self.name.encode_into(out);
            if self.freshness_ms > 0 {
                tlv::write_nested(out, types::META_INFO, |out| {
                    tlv::write_nni(out, types::FRESHNESS_PERIOD, self.freshness_ms);
                });
            }
            tlv::write_tlv(out, types::CONTENT, &self.content);
            tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
                tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
            });
            tlv::write_tlv(out, types::SIGNATURE_VALUE, &[0; 32]);
        });
        wire
    }

    /// The name with the implicit digest of this Data.
    pub(crate) fn full_name(&self) -> Name {
        let wire = self.wire();
        let Ok(PacketView::Data(view)) = PacketView::parse(&wire) else {
            panic!("a Data of a test is well-formed");
        };
        let digest = tachonym_packet::Component::implicit_digest(&view.implicit_digest());
        self.name.clone().with(&digest)
    }
}

/// A packet that the engine sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) face: FaceId,
    pub(crate) kind: Kind,
    pub(crate) wire: Vec<u8>,
    pub(crate) headers: Headers,
    pub(crate) announcement: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Interest,
    Data,
    Nack(NackReason),
    /// Not sent, but told: `wire` is the name of the Data.
    LearnRoute,
    /// As before: `wire` is the name of the Interest.
    ForgetRoute,
}

impl Sent {
    pub(crate) fn interest(&self) -> InterestView<'_> {
        InterestView::parse(&self.wire).expect("what the engine sends is well-formed")
    }

    pub(crate) fn nonce(&self) -> u32 {
        u32::from_be_bytes(
            self.interest()
                .nonce()
                .expect("every Interest that leaves has one")
                .0,
        )
    }

    pub(crate) fn token(&self) -> Option<Vec<u8>> {
        self.headers
            .pit_token
            .map(|token| token.as_bytes().to_vec())
    }
}

/// Collects what is sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox(pub(crate) Vec<Sent>);

impl Output for Outbox {
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        let mut wire = Vec::new();
        rewrite.write_into(interest, &mut wire);
        self.0.push(Sent {
            face,
            kind: Kind::Interest,
            wire,
            headers: *headers,
            announcement: None,
        });
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        let wire = data_wire.to_vec();
        self.0.push(Sent {
            face,
            kind: Kind::Data,
            wire,
            headers: *headers,
            announcement: None,
        });
    }

    fn send_data_announcing(
        &mut self,
        face: FaceId,
        data_wire: &[u8],
        headers: &Headers,
        announcement: &[u8],
    ) {
        self.send_data(face, data_wire, headers);
        let sent = self.0.last_mut().expect("sent just now");
        sent.announcement = Some(announcement.to_vec());
    }

    fn learn_route(&mut self, face: FaceId, name: NameView<'_>, announcement: &[u8]) {
        self.0.push(Sent {
            face,
            kind: Kind::LearnRoute,
            wire: name.value_bytes().to_vec(),
            headers: Headers::default(),
            announcement: Some(announcement.to_vec()),
        });
    }

    fn forget_learnt_route(&mut self, face: FaceId, name: NameView<'_>) {
        self.0.push(Sent {
            face,
            kind: Kind::ForgetRoute,
            wire: name.value_bytes().to_vec(),
            headers: Headers::default(),
            announcement: None,
        });
    }

    fn send_nack(
        &mut self,
        face: FaceId,
        reason: NackReason,
        interest_wire: &[u8],
        headers: &Headers,
    ) {
        assert_eq!(headers.nack, Some(reason));
        let wire = interest_wire.to_vec();
        self.0.push(Sent {
            face,
            kind: Kind::Nack(reason),
            wire,
            headers: *headers,
            announcement: None,
        });
    }
}

/// An engine with a clock.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) now: MonoNs,
}

pub(crate) const A: FaceId = FaceId(256);
pub(crate) const B: FaceId = FaceId(257);
pub(crate) const C: FaceId = FaceId(258);
pub(crate) const D: FaceId = FaceId(259);

pub(crate) fn token(bytes: &[u8]) -> Headers {
    Headers {
        pit_token: PitToken::new(bytes),
        ..Headers::default()
    }
}

impl Node {
    pub(crate) fn new() -> Self {
        Self::with(EngineConfig::default())
    }

    pub(crate) fn with(config: EngineConfig) -> Self {
        let engine =
            Engine::new(config, HashKey::from_u64s(1, 2), 3).expect("memory for small tables");
        // Not at the origin, where too much is zero.
        Self {
            engine,
            now: MonoNs(1_000_000_000),
        }
    }

    /// Four point-to-point faces to other hosts, A to D.
    pub(crate) fn with_remote_faces() -> Self {
        Self::with_remote_faces_and(EngineConfig::default())
    }

    /// The same faces, in an engine of another configuration.
    pub(crate) fn with_remote_faces_and(config: EngineConfig) -> Self {
        let mut node = Self::with(config);
        for face in [A, B, C, D] {
            node.engine.add_face(face, REMOTE);
        }
        node
    }

    pub(crate) fn face(&mut self, face: FaceId, traits: FaceTraits) -> &mut Self {
        self.engine.add_face(face, traits);
        self
    }

    pub(crate) fn route(&mut self, prefix: &str, face: FaceId, cost: u64) -> &mut Self {
        let added = self
            .engine
            .add_next_hop(name(prefix).view(), NextHop::new(face, cost));
        added.expect("a route of a test is accepted");
        self
    }

    /// A route that `prefix` has from another, shorter by `distance` components.
    pub(crate) fn inherited_route(
        &mut self,
        prefix: &str,
        face: FaceId,
        cost: u64,
        distance: u8,
    ) -> &mut Self {
        let hop = NextHop::inherited(face, cost, distance);
        let added = self.engine.add_next_hop(name(prefix).view(), hop);
        added.expect("a route of a test is accepted");
        self
    }

    pub(crate) fn strategy(&mut self, prefix: &str, kind: &str) -> &mut Self {
        let strategy = name(&format!("/localhost/nfd/strategy/{kind}"));
        let set = self
            .engine
            .choices_mut()
            .set_strategy(name(prefix).view(), strategy.view());
        set.expect("a strategy of a test exists");
        self
    }

    pub(crate) fn advance(&mut self, by: Duration) -> Vec<Sent> {
        self.now = self.now + by;
        let mut outbox = Outbox::default();
        self.engine.handle_timeout(self.now, &mut outbox);
        outbox.0
    }

    pub(crate) fn receive(&mut self, face: FaceId, wire: &[u8], headers: Headers) -> Vec<Sent> {
        let packet = RxPacket::parse(face, &headers, wire).expect("a packet that may come");
        let mut outbox = Outbox::default();
        self.engine.handle_burst(self.now, &[packet], &mut outbox);
        outbox.0
    }

    pub(crate) fn interest(&mut self, face: FaceId, interest: &Interest) -> Vec<Sent> {
        self.receive(face, &interest.wire(), Headers::default())
    }

    pub(crate) fn data(&mut self, face: FaceId, data: &Data) -> Vec<Sent> {
        self.receive(face, &data.wire(), Headers::default())
    }

    /// A Data with a prefix announcement.
    pub(crate) fn announcing_data(
        &mut self,
        face: FaceId,
        data: &Data,
        announcement: &[u8],
    ) -> Vec<Sent> {
        let wire = data.wire();
        let packet = RxPacket {
            prefix_announcement: Some(announcement),
            ..RxPacket::parse(face, &Headers::EMPTY, &wire).expect("a packet that may come")
        };
        let mut outbox = Outbox::default();
        self.engine.handle_burst(self.now, &[packet], &mut outbox);
        outbox.0
    }

    pub(crate) fn nack(
        &mut self,
        face: FaceId,
        reason: NackReason,
        interest_wire: &[u8],
    ) -> Vec<Sent> {
        self.receive(
            face,
            interest_wire,
            Headers {
                nack: Some(reason),
                ..Headers::default()
            },
        )
    }

    /// Packets dropped for `reason`. Checks that every drop is on record.
    pub(crate) fn n_dropped(&self, reason: tachonym_forward::DropReason) -> u64 {
        let (counters, recent) = (self.engine.counters(), self.engine.recent_drops());
        let n_counted: u64 = counters.drops().map(|(_, n)| n).sum();
        assert_eq!(recent.n_drops(), n_counted, "a drop without a record");
        let n_dropped = counters.n_dropped(reason);
        if n_dropped > 0 && n_counted <= 64 {
            let records = recent.newest_under(NameView::EMPTY, usize::MAX);
            let of_reason = records.iter().filter(|record| record.reason() == reason);
            let n_on_record: u64 = of_reason.map(|record| u64::from(record.n_drops())).sum();
            assert_eq!(n_on_record, n_dropped, "{reason}");
        }
        n_dropped
    }
}

/// Faces and kinds of what was sent, for one-line comparisons.
pub(crate) fn summary(sent: &[Sent]) -> Vec<(FaceId, Kind)> {
    sent.iter().map(|sent| (sent.face, sent.kind)).collect()
}
