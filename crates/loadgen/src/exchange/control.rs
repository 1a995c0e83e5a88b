//! Commands to a forwarder's management: routes for the producers.
//!
//! Signed Interests of packet format 0.3 with DigestSha256, as the NFD
//! management protocol accepts them from local faces. Refuses keys: a
//! forwarder that wants a real signature here is not one to measure.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use tachonym_bench::random::{Random, fresh_seed};
use tachonym_packet::tlv::{self, Reader};
use tachonym_packet::{Component, Name, types};
use tachonym_protocol::{CommandName, ControlParameters, ControlResponse, route_flags};

use super::budget::Deadline;
use super::frame::{Frame, Reassembler};
use super::link::{self, Link};

/// How long one attempt waits.
const ATTEMPT: Duration = Duration::from_secs(2);
/// Attempts before giving up; datagrams may get lost.
const N_ATTEMPTS: u32 = 3;

/// Sends `command` and returns what the forwarder answers, whatever its code.
///
/// # Errors
/// No answer within six seconds or by `deadline`, an answer that is none, or a failure of the link.
pub fn command(
    link: &mut Link,
    command: CommandName<'_>,
    parameters: &ControlParameters,
    deadline: Deadline,
) -> anyhow::Result<ControlResponse> {
    let mut random = Random::new(fresh_seed());
    let started = Instant::now();
    for _ in 0..N_ATTEMPTS {
        let patience = deadline.cap(Instant::now(), ATTEMPT);
        if patience.is_zero() {
            break;
        }
        let response = try_command(link, command, parameters, patience, random.next_u64())?;
        if let Some(response) = response {
            return Ok(response);
        }
    }
    bail!(
        "no answer to {} within {:.1} s",
        command.name(),
        started.elapsed().as_secs_f64()
    )
}

/// Sends `command` once and waits at most `patience` for the answer; `None`: it
/// did not come. No two attempts may have the same `nonce`.
///
/// # Errors
/// An answer that is none, or a failure of the link.
pub fn try_command(
    link: &mut Link,
    command: CommandName<'_>,
    parameters: &ControlParameters,
    patience: Duration,
    nonce: u64,
) -> anyhow::Result<Option<ControlResponse>> {
    let (name, wire) = signed_interest(
        command.with_parameters(parameters),
        signature_time_ms(),
        nonce,
        ATTEMPT,
    );
    link.outbox().push(|out| out.extend_from_slice(&wire));
    await_content(link, &name, patience)?
        .map(|content| ControlResponse::decode(&content))
        .transpose()
        .with_context(|| {
            format!(
                "the response to {} is not a ControlResponse",
                command.name()
            )
        })
}

/// Furthest that [`signature_time_ms`] runs ahead of the clock; forwarders
/// accept two minutes.
const MAX_AHEAD_MS: u64 = 60_000;

/// The latest time in a signature of this process.
static LAST_SIGNATURE_MS: AtomicU64 = AtomicU64::new(0);

/// Milliseconds since 1970 for the next signature: the present time, or later,
/// because a forwarder may take only ascending times from one signer. Times that
/// would run more than a minute ahead share the last one.
pub(crate) fn signature_time_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let wall_ms = since_epoch.map_or(0, |d| d.as_millis() as u64);
    let next = |last_ms: u64| wall_ms.max((last_ms + 1).min(wall_ms + MAX_AHEAD_MS));
    let last_ms = LAST_SIGNATURE_MS
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            Some(next(last))
        })
        .unwrap_or_default();
    next(last_ms)
}

/// Lets signatures have the present time again: for a forwarder that has just
/// started, and so has seen none.
pub(crate) fn forget_signature_times() {
    LAST_SIGNATURE_MS.store(0, Ordering::Relaxed);
}

/// What a command says that makes Interests under `prefix` go to `face_id`, or
/// without one to the face that the command comes from.
pub(crate) fn route_parameters(prefix: &Name, face_id: Option<u64>) -> ControlParameters {
    ControlParameters {
        name: Some(prefix.clone()),
        face_id,
        cost: Some(0),
        flags: Some(route_flags::CHILD_INHERIT),
        ..ControlParameters::default()
    }
}

/// Makes Interests under `prefix` go to `face`, or without one to the face
/// that `link` has at the forwarder.
///
/// # Errors
/// If the forwarder refuses or does not answer.
pub fn register(
    link: &mut Link,
    prefix: &Name,
    face_id: Option<u64>,
    deadline: Deadline,
) -> anyhow::Result<()> {
    expect_success(command(
        link,
        CommandName::local("rib", "register"),
        &route_parameters(prefix, face_id),
        deadline,
    )?)
    .with_context(|| format!("the forwarder refused the route {prefix}"))?;
    Ok(())
}

/// Takes the route of [`register`] back.
///
/// # Errors
/// If the forwarder refuses or does not answer.
pub fn unregister(
    link: &mut Link,
    prefix: &Name,
    face_id: Option<u64>,
    deadline: Deadline,
) -> anyhow::Result<()> {
    let parameters = ControlParameters {
        name: Some(prefix.clone()),
        face_id,
        ..ControlParameters::default()
    };
    expect_success(command(
        link,
        CommandName::local("rib", "unregister"),
        &parameters,
        deadline,
    )?)?;
    Ok(())
}

/// A forwarder's face towards a UDP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpFace {
    /// Its number.
    pub id: u64,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// The forwarder's face towards the UDP address `remote`, made if need be.
///
/// # Errors
/// If the forwarder refuses or does not answer.
pub fn udp_face(
    link: &mut Link,
    remote: SocketAddr,
    deadline: Deadline,
) -> anyhow::Result<UdpFace> {
    let scheme = if remote.is_ipv4() { "udp4" } else { "udp6" };
    let parameters = ControlParameters {
        uri: Some(format!("{scheme}://{remote}")),
        ..ControlParameters::default()
    };
    let create = CommandName::local("faces", "create");
    let response = command(link, create, &parameters, deadline)?;
    // 409: there is one already, and the answer describes it.
    let face_id = match response.code {
        200 | 409 => response.parameters().ok().flatten().and_then(|p| p.face_id),
        _ => None,
    };
    let is_new = response.code == 200;
    face_id.map(|id| UdpFace { id, is_new }).with_context(|| {
        format!(
            "cannot create a face to {remote}: {} {}",
            response.code, response.text
        )
    })
}

/// Destroys a face.
///
/// # Errors
/// If the forwarder refuses or does not answer.
pub fn destroy_face(link: &mut Link, face_id: u64, deadline: Deadline) -> anyhow::Result<()> {
    let parameters = ControlParameters {
        face_id: Some(face_id),
        ..ControlParameters::default()
    };
    expect_success(command(
        link,
        CommandName::local("faces", "destroy"),
        &parameters,
        deadline,
    )?)?;
    Ok(())
}

fn expect_success(response: ControlResponse) -> anyhow::Result<ControlResponse> {
    if response.code != 200 {
        bail!(
            "the forwarder responded {} {}",
            response.code,
            response.text
        );
    }
    Ok(response)
}

/// An Interest with a DigestSha256 signature (packet format 0.3, section
/// "Signed Interest") and its full name.
pub(crate) fn signed_interest(
    name: Name,
    wall_ms: u64,
    nonce: u64,
    lifetime: Duration,
) -> (Name, Vec<u8>) {
    interest_with_signature(name, wall_ms, nonce, lifetime, |name, parameters| {
        let signed = Sha256::new()
            .chain_update(name.value_bytes())
            .chain_update(parameters);
        signed.finalize().into()
    })
}

/// The same with a signature value that `sign` makes of the name and the
/// parameters so far.
pub(crate) fn interest_with_signature(
    name: Name,
    wall_ms: u64,
    nonce: u64,
    lifetime: Duration,
    sign: impl FnOnce(&Name, &[u8]) -> [u8; 32],
) -> (Name, Vec<u8>) {
    let mut parameters = Vec::new();
    tlv::write_tlv(&mut parameters, types::APPLICATION_PARAMETERS, &[]);
    tlv::write_nested(&mut parameters, types::INTEREST_SIGNATURE_INFO, |out| {
        tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
        tlv::write_tlv(out, types::SIGNATURE_NONCE, &nonce.to_be_bytes());
        tlv::write_nni(out, types::SIGNATURE_TIME, wall_ms);
    });
    let signature = sign(&name, &parameters);
    tlv::write_tlv(&mut parameters, types::INTEREST_SIGNATURE_VALUE, &signature);
    let digest: [u8; 32] = Sha256::digest(&parameters).into();
    let name = name.with(&Component::parameters_digest(&digest));
    let mut wire = Vec::new();
    tlv::write_nested(&mut wire, types::INTEREST, |out| {
        name.encode_into(out);
        tlv::write_tlv(out, types::MUST_BE_FRESH, &[]);
        tlv::write_tlv(out, types::NONCE, &(nonce as u32).to_be_bytes());
        tlv::write_nni(out, types::INTEREST_LIFETIME, lifetime.as_millis() as u64);
        out.extend_from_slice(&parameters);
    });
    (name, wire)
}

/// Waits for the Data `name` and returns its Content; `None`: none came.
fn await_content(
    link: &mut Link,
    name: &Name,
    patience: Duration,
) -> anyhow::Result<Option<Vec<u8>>> {
    let deadline = Instant::now() + patience;
    let mut reassembler = Reassembler::default();
    let mut ready = Vec::new();
    loop {
        link.flush()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        link::wait([&*link].into_iter(), left, &mut ready)?;
        let mut found = None;
        let mut nack_code = None;
        let received = link.receive(|wire, _| {
            let Ok(frame) = Frame::parse(wire) else {
                return;
            };
            nack_code = frame.nack_code.or(nack_code);
            if frame.frag_count > 1 {
                let whole = reassembler.accept(&frame);
                found = whole
                    .and_then(|w| content_of(&w.packet, name))
                    .or(found.take());
            } else {
                found = content_of(frame.payload, name).or(found.take());
            }
        });
        match received {
            // No socket listens on UDP yet: trying again may help.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => {
                other?;
            }
        }
        if found.is_some() {
            return Ok(found);
        }
        if let Some(code) = nack_code {
            bail!("the forwarder has no management on this face: Nack with reason {code}");
        }
    }
}

/// The Content of a Data packet with this name; `None` for anything else.
fn content_of(packet: &[u8], name: &Name) -> Option<Vec<u8>> {
    let mut reader = Reader::new(tlv::read_single(packet, types::DATA).ok()?);
    if reader.read_expected(types::NAME).ok()? != name.value_bytes() {
        return None;
    }
    while !reader.is_empty() {
        let element = reader.read_element().ok()?;
        if element.typ == types::CONTENT {
            return Some(element.value.to_vec());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::address::Transport;
    use super::*;

    #[test]
    fn the_signature_and_the_parameters_digest_cover_what_they_should() {
        let (name, wire) = signed_interest(
            Name::new().with("a").with("b"),
            1_700_000_000_000,
            7,
            ATTEMPT,
        );
        let value = tlv::read_single(&wire, types::INTEREST).expect("an Interest");
        let parameters_at = value
            .windows(2)
            .position(|w| w == [0x24, 0x00])
            .expect("empty ApplicationParameters");
        let digest = Sha256::digest(&value[parameters_at..]);
        assert_eq!(
            name.get(2).map(|c| c.value().to_vec()),
            Some(digest.to_vec())
        );
        let signature_at = value.len() - 34;
        let mut signed = name.prefix(2).to_name().value_bytes().to_vec();
        signed.extend_from_slice(&value[parameters_at..signature_at]);
        assert_eq!(value[signature_at + 2..], *Sha256::digest(signed));
    }

    /// Answers every command on `link` with `response`, once.
    fn answer(link: &mut Link, response: &ControlResponse) {
        let mut ready = Vec::new();
        link::wait([&*link].into_iter(), Duration::from_secs(20), &mut ready).expect("poll");
        link.receive(|wire, outbox| {
            let interest = tlv::read_single(wire, types::INTEREST).expect("bare");
            let name = Reader::new(interest)
                .read_expected(types::NAME)
                .expect("a name");
            outbox.push(|out| {
                tlv::write_nested(out, types::DATA, |out| {
                    tlv::write_tlv(out, types::NAME, name);
                    tlv::write_tlv(out, types::CONTENT, &response.encode());
                });
            });
        })
        .expect("the other end is open");
        link.flush().expect("the other end is open");
    }

    fn registered(response: ControlResponse) -> anyhow::Result<()> {
        let (mut ours, mut theirs) = Link::pair(Transport::Unix).expect("a pair");
        let peer = std::thread::spawn(move || {
            answer(&mut theirs, &response);
            theirs
        });
        let result = register(&mut ours, &Name::new().with("x"), None, Deadline::NONE);
        peer.join().expect("the peer answers");
        result
    }

    #[test]
    fn only_an_ok_registers() {
        registered(ControlResponse::new(200, "OK")).expect("accepted");
        let error = registered(ControlResponse::new(403, "no")).expect_err("refused");
        assert!(format!("{error:#}").contains("403 no"));
    }
}
