//! What the manager's tests share: a client that gives commands to a manager of
//! a router in memory.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file includes this and uses its part"
)]

pub mod router;

use std::sync::atomic::{AtomicU64, Ordering};

use tachonym_manage::{Manager, ManagerConfig};
use tachonym_packet::{
    Component, Data, DataView, FaceId, Interest, InterestView, MonoNs, Name, SignatureInfo, types,
};
use tachonym_protocol::segments::Reassembly;
use tachonym_protocol::{CommandName, ControlParameters, ControlResponse, FaceEventKind, RibEntry};
use tachonym_security::{Certificate, Signer, SigningKey, Validity};

use self::router::MemoryRouter;

/// 2023-11-14T22:13:20Z.
pub const START_MS: u64 = 1_700_000_000_000;

/// A manager, its router, the time, and the face of a local client.
pub struct Site {
    pub manager: Manager<MemoryRouter>,
    pub now: MonoNs,
    pub wall_ms: u64,
    pub client: FaceId,
}

/// Shorthand for parameters.
pub fn p() -> ControlParameters {
    ControlParameters::default()
}

pub fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// Parameters with a name.
pub fn named(uri: &str) -> ControlParameters {
    ControlParameters {
        name: Some(name(uri)),
        ..p()
    }
}

impl Site {
    pub fn new(config: ManagerConfig) -> Self {
        let mut router = MemoryRouter::new();
        let client = router.accept("fd://20");
        Self {
            manager: Manager::new(config, router),
            now: MonoNs(1_000_000_000),
            wall_ms: START_MS,
            client,
        }
    }

    pub fn router(&mut self) -> &mut MemoryRouter {
        self.manager.control_mut()
    }

    pub fn pass_ms(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.wall_ms += ms;
    }

    /// What comes back for an Interest from `face`.
    pub fn send_from(&mut self, face: FaceId, wire: &[u8]) -> Vec<Data> {
        let mut replies = Vec::new();
        let interest = InterestView::parse(wire).unwrap();
        let (now, wall_ms) = (self.now, self.wall_ms);
        self.manager
            .handle_interest(now, wall_ms, face, &interest, &mut |wire| {
                replies.push(wire)
            });
        replies.iter().map(|wire| checked(wire)).collect()
    }

    /// The one response to a command from `face`; checks how the Data is named
    /// and typed.
    pub fn command_from(&mut self, face: FaceId, wire: &[u8]) -> ControlResponse {
        let mut replies = self.send_from(face, wire);
        assert_eq!(replies.len(), 1);
        let reply = replies.pop().unwrap();
        assert_eq!(reply.name, InterestView::parse(wire).unwrap().name());
        assert_eq!(reply.content_type, types::content_type::BLOB);
        ControlResponse::decode(&reply.content).unwrap()
    }

    /// The response to a command of the client.
    pub fn command(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> ControlResponse {
        let wire = signed_command(CommandName::local(module, verb), parameters);
        self.command_from(self.client, &wire)
    }

    /// The code of such a response, and its parameters if it has any.
    pub fn outcome(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> (u64, ControlParameters) {
        let response = self.command(module, verb, parameters);
        let body = response.parameters().unwrap().unwrap_or_default();
        (response.code, body)
    }

    pub fn register(&mut self, uri: &str, face: u64, flags: u64) {
        let route = ControlParameters {
            face_id: Some(face),
            flags: Some(flags),
            ..named(uri)
        };
        assert_eq!(self.outcome("rib", "register", &route).0, 200);
    }

    /// Fetches a dataset as clients do: first segment by discovery, the others
    /// by name.
    pub fn fetch(&mut self, prefix: &Name) -> Vec<u8> {
        let client = self.client;
        let discovery = Interest {
            can_be_prefix: true,
            must_be_fresh: true,
            ..Interest::new(prefix.clone())
        };
        let mut replies = self.send_from(client, &discovery.encode());
        let mut parts = Reassembly::new(1 << 30);
        loop {
            assert_eq!(replies.len(), 1);
            let data = replies.pop().unwrap();
            assert_eq!(data.freshness_period_ms, Some(1000));
            let number = data.name.last().unwrap().as_number().unwrap();
            let last = data.final_block_id.as_ref().and_then(Component::as_number);
            parts.insert(number, last, &data.content).unwrap();
            let Some(missing) = parts.next_missing() else {
                return parts.into_content().unwrap();
            };
            let mut next = data.name;
            next.pop();
            next.push(&Component::segment(missing));
            replies = self.send_from(client, &Interest::new(next).encode());
        }
    }

    pub fn dataset(&mut self, module: &str, verb: &str) -> Vec<u8> {
        self.fetch(&CommandName::local(module, verb).name())
    }

    pub fn routes(&mut self) -> Vec<RibEntry> {
        let content = self.dataset("rib", "list");
        RibEntry::decode_list(&content).unwrap()
    }

    /// Takes a face away behind the manager's back, and tells it.
    pub fn lose(&mut self, face: FaceId) -> Vec<Data> {
        let event = self.router().lose(face);
        assert_eq!(event.kind, FaceEventKind::Destroyed);
        let mut sent = Vec::new();
        let now = self.now;
        self.manager
            .handle_face_event(now, event, &mut |wire| sent.push(wire));
        sent.iter().map(|wire| checked(wire)).collect()
    }
}

/// A Data whose digest is right.
fn checked(wire: &[u8]) -> Data {
    use sha2::{Digest, Sha256};
    let view = DataView::parse(wire).unwrap();
    assert_eq!(view.signature_info().typ(), 0);
    assert_eq!(
        view.signature_value(),
        &Sha256::digest(view.signed_portion())[..]
    );
    view.to_data()
}

/// Signature information of a command given at [`START_MS`], with a nonce of its
/// own.
pub fn fresh_info(info: SignatureInfo) -> SignatureInfo {
    static N_SIGNED: AtomicU64 = AtomicU64::new(0);
    let nonce = N_SIGNED.fetch_add(1, Ordering::Relaxed);
    SignatureInfo {
        nonce: Some(nonce.to_be_bytes().to_vec()),
        time_ms: Some(START_MS),
        ..info
    }
}

/// A command in the form of Packet Format 0.3, signed with a digest.
pub fn signed_command(command: CommandName<'_>, parameters: &ControlParameters) -> Vec<u8> {
    Interest::new(command.with_parameters(parameters))
        .encode_with_digest(&fresh_info(SignatureInfo::digest()))
}

/// A command in the older form: four components behind the parameters.
pub fn legacy_command(command: CommandName<'_>, parameters: &ControlParameters) -> Vec<u8> {
    let interest = Interest::new(command.with_parameters(parameters));
    Signer::digest()
        .sign_legacy_interest(&interest, START_MS)
        .unwrap()
}

/// A certificate for `identity` and the signer whose key it certifies.
pub fn certified(identity: &str) -> (Certificate, Signer) {
    let key = SigningKey::generate_ecdsa().unwrap();
    let identity = name(identity);
    let key_name = tachonym_security::key_name(&identity, &Component::generic("1"));
    let validity = Validity::days_from(START_MS - 1000, 10);
    let certificate = Certificate::self_signed(&key_name, &key, START_MS, validity).unwrap();
    let signer = Signer::named(key, certificate.name().clone());
    (certificate, signer)
}

/// A command in the form of Packet Format 0.3, signed by `signer`.
pub fn command_by(
    signer: &Signer,
    command: CommandName<'_>,
    parameters: &ControlParameters,
) -> Vec<u8> {
    let interest = Interest::new(command.with_parameters(parameters));
    signer
        .sign_interest(&interest, &fresh_info(SignatureInfo::digest()))
        .unwrap()
}
